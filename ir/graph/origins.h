/* Origins: the fate of each node of a model's file.
 *
 * In: the ONNX module, and the replacements that passes make among its primitives. Out: a fate for each node of the
 * file. An origin is such a node: its name and op, under a number that each of its primitives carries
 * (uir_node_info.source). Its fate is STANDS as long as one of its primitives exists, and afterwards the last one
 * noted. Without a note, its readers do its work, or no output needs it.
 *
 * A pass notes nothing itself: replacing values does (passes/tools.h), and a builder opened for a node keeps its
 * number. */
#ifndef UIR_IR_ORIGINS_H
#define UIR_IR_ORIGINS_H

#include "ir/graph/graph.h"

/* Adds a node of the file that will have no primitives, or that is found while decomposing; numbers begin with 1. */
uir_status uir_origins_add(uir_module *module, const char *name, const char *op, uir_fate fate, uint32_t *out_origin);
/* Numbers each ONNX node of `source`; copies the names, numbers and edges of all to `target`. */
uir_status uir_origins_begin(uir_module *source, uir_module *target);
/* Replaces the earlier note. `into` 0: no other origin. */
void uir_origins_note(uir_module *module, uint32_t origin, uir_fate fate, uint32_t into);
/* Notes that the decomposition of the node has begun. */
void uir_origins_meet(uir_module *module, uint32_t origin);
/* Notes the node's result after its rule has run: an existing value, a constant or a new value. */
void uir_origins_note_result(uir_module *module, uint32_t origin, uir_value_id result);
/* Notes that `to` replaces `from`. */
void uir_origins_note_replaced(uir_module *module, uir_value_id from, uir_value_id to);

/* Whether the node counts as work on values of a run. A movement of constants only does not: its reader could do that
 * work, and equal copies are merged across origins. */
bool uir_origins_count(const uir_module *module, const uir_node_info *node);

typedef struct uir_settled_origin {
    uir_fate fate;
    uint32_t into; /* the origin of fate STANDS that does its work now; 0: none */
} uir_settled_origin;
/* The final fate of each origin, by number. `stands`, by number: whether a primitive that a run computes carries the
 * number. */
uir_status uir_origins_settle(const uir_module *module, const bool *stands, uir_arena *arena,
                              uir_settled_origin **out_settled);

/* ---- cost ---- */
/* Nominal extents for symbols without a value, by symbol. */
uir_status uir_nominal_sizes(const uir_dims *dims, uir_arena *arena, int64_t **out_sizes, uint32_t *out_count);
double uir_nominal_elements(const uir_dims *dims, const int64_t *sizes, uint32_t count, const uir_type *type);
/* Operations of the primitive at nominal sizes: a model of its share of a kernel's time. */
double uir_nominal_work(const uir_module *module, const int64_t *sizes, uint32_t count, const uir_node_info *node);

#endif
