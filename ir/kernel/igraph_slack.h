/* Slack: room behind an axis of a tensor in device memory, so that the tensor grows along it where it lies.
 *
 * A cache of keys and values [batch, heads, time, channels] has one stretch of `time` rows for each batch and head. Its
 * owner gives each stretch room for more rows than there are; slack is how many more. A kernel that knows the slack
 * of its argument finds the rows of the grown tensor where those of the shorter one were, and a concatenation then
 * copies rows onto themselves: such copies stand apart here, as parallel indices of their own, so that a runtime may
 * leave them out.
 *
 * In: a verified iGraph before runs are formed. Out: the same kernel with one more `dim` per argument with slack. With
 * slack 0 it is the kernel that it was. */
#ifndef UIR_IR_IGRAPH_SLACK_H
#define UIR_IR_IGRAPH_SLACK_H

#include "ir/kernel/igraph.h"

/* An argument that gets slack: IN or OUT `index`. Its time axis has `time` elements (over the kernel's dims) of `inner`
 * elements each, and `growing` is the one DIM among those of `time` that stands for its growth. */
typedef struct uir_islack {
    uir_ipointer_role role;
    uint32_t index;
    uir_dim time;
    uint32_t growing; /* symbol index */
    int64_t inner;
} uir_islack;

/* Adds a DIM, the last one, and lets the strides of all pointers of that argument count it. False when some layout of
 * it cannot: its outer dims are joined with the axis. The iGraph is then of no use any more. */
bool uir_igraph_add_slack(uir_igraph *igraph, const uir_islack *slack, uir_status *out_status);

/* Lets the copies of the top level that move operand `in` to the same coordinates of result `out` be made by parallel
 * indices of their own, the first half. Nothing happens where that cannot be. */
uir_status uir_igraph_split_copies(uir_igraph *igraph, uint32_t in, uint32_t out);

/* The pairs of pointers (from, to) that the first half of a phase's parallel indices copies, coordinate by coordinate,
 * and does nothing else; at most `capacity`. 0: there is no such half. */
typedef struct uir_icopy {
    uint32_t from, to; /* pointers */
} uir_icopy;
uint32_t uir_igraph_find_copies(const uir_igraph *igraph, uint32_t phase, uir_icopy *out_copies, uint32_t capacity);

#endif
