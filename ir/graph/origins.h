/* Where the nodes of a model's file went.
 *
 * In: the ONNX module, and what passes do to the primitives that came from it. Out: for each node of the file what
 * became of it. An origin is such a node: its name and op, by a number that each primitive made for it carries
 * (uir_node_info.source). As long as such a primitive is there the node stands. Where none is left, the last thing that
 * was noted of it says why; where nothing was noted, its readers do its work, or nobody needs it.
 *
 * A pass notes nothing itself: replacing values does (passes/tools.h), and building by a node's builder keeps its
 * number. */
#ifndef UIR_IR_ORIGINS_H
#define UIR_IR_ORIGINS_H

#include "ir/graph/graph.h"

/* A node of the file that no primitive will stand for, or that is found while decomposing; numbers begin with 1. */
uir_status uir_origins_add(uir_module *module, const char *name, const char *op, uir_fate fate, uint32_t *out_origin);
/* Gives each ONNX node of `source` a number, and `target` the names, numbers and edges of all. */
uir_status uir_origins_begin(uir_module *source, uir_module *target);
/* 0 as `into`: none. What was noted before is forgotten. */
void uir_origins_note(uir_module *module, uint32_t origin, uir_fate fate, uint32_t into);
/* A rule has been asked for it. */
void uir_origins_meet(uir_module *module, uint32_t origin);
/* What the node gives, once its rule has run: a value that was there before, or a constant, or something new. */
void uir_origins_note_result(uir_module *module, uint32_t origin, uir_value_id result);
/* `to` stands for `from` from now on. */
void uir_origins_note_replaced(uir_module *module, uir_value_id from, uir_value_id to);

/* Whether the node works on what a run gives: what copies a constant alone does what a reader could as well, and equal
 * copies are one, whichever nodes they came from. */
bool uir_origins_count(const uir_module *module, const uir_node_info *node);

typedef struct uir_settled_origin {
    uir_fate fate;
    uint32_t into; /* the origin that stands and took it over; 0: none */
} uir_settled_origin;
/* What became of each in the end, by number. `stands`, by number: whether something of the run is known by it. */
uir_status uir_origins_settle(const uir_module *module, const bool *stands, uir_arena *arena,
                              uir_settled_origin **out_settled);

/* ---- cost ---- */
/* Extents for symbols whose values are open, by symbol. */
uir_status uir_nominal_sizes(const uir_dims *dims, uir_arena *arena, int64_t **out_sizes, uint32_t *out_count);
double uir_nominal_elements(const uir_dims *dims, const int64_t *sizes, uint32_t count, const uir_type *type);
/* Operations of the primitive at such sizes, as a model of its share of a kernel's time. */
double uir_nominal_work(const uir_module *module, const int64_t *sizes, uint32_t count, const uir_node_info *node);

#endif
