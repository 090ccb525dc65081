/* Describes broken constraints on run-time sizes and indices, in one wording for all checks. */
#ifndef UIR_BASE_DEMAND_H
#define UIR_BASE_DEMAND_H

#include "base/dims/dim.h"
#include "base/dtype.h"

#include <stddef.h>

/* One side of a constraint: its name, its dims as text, its value. */
typedef struct uir_demand_side {
    const char *name, *dims; /* "dim 2 of operand 1"; "height floordiv 16": "" or the number itself is not printed */
    int64_t value;
} uir_demand_side;

/* "dim 2 of operand 1 is 5 (ceildiv(height, 16)) and must be 4, as dim 2 of operand 0 (height floordiv 16)".
 * `also`: a second value allowed on the left, "3 by 4 at axis 0: dim 0 of operand 0 (n) must be 1 or 4"; NULL: none.
 * Cut to the buffer. */
void uir_demand_describe(uir_demand_side left, uir_relation relation, const int64_t *also, uir_demand_side right,
                         char *buffer, size_t capacity);

/* The same for an unexpected extent: "dim 1 is 3 (width) and must be 4". */
void uir_extent_describe(uint32_t d, const char *dim, int64_t extent, int64_t expected, char *buffer, size_t capacity);

/* Whether the numeric facts of a run-time size allow the value. */
bool uir_facts_hold(uir_symbol_facts facts, int64_t value);
/* Describes a value that the facts forbid: "dim height is 50 and must be a multiple of 4". Cut to the buffer. */
void uir_facts_describe(const char *dim, uir_symbol_facts facts, int64_t value, char *buffer, size_t capacity);
/* "dim batch is 2 in one place and 3 in another". */
void uir_conflict_describe(const char *dim, int64_t one, int64_t other, char *buffer, size_t capacity);

/* Indices in memory and their bounds: low[k] <= index < high[k], where k is the position along the last axis modulo
 * `bounds`. */
typedef struct uir_index_demand {
    uir_dtype dtype; /* an integer of whole bytes */
    const void *data;
    uint32_t rank;
    const int64_t *shape;
    const int64_t *low, *high;
    uint32_t bounds;  /* at least 1; more than 1: the extent of the last axis */
    const char *name; /* of the tensor; "" for a tensor without a name */
    bool ends;        /* `data` has only the least and the greatest index: messages name no position */
} uir_index_demand;

/* Whether all indices are inside; else *out_at is the first that is outside. */
bool uir_indices_hold(const uir_index_demand *demand, uint64_t *out_at);
/* "'input_ids' is 40000 at [0, 3] and must be in -30522..30521". Cut to the buffer. */
void uir_index_describe(const uir_index_demand *demand, uint64_t at, char *buffer, size_t capacity);

#endif
