/* Slack: spare capacity behind an axis of a tensor in device memory, so that the tensor can grow along it in place.
 *
 * A cache of keys and values [batch, heads, time, channels] has a block of `time` rows per batch and head. Its owner
 * allocates more rows per block than are used; slack is the number of spare rows. A kernel that knows the slack of its
 * argument finds the rows of the grown tensor at their old addresses. A concatenation then copies rows onto themselves:
 * such copies become parallel indices of their own here, so that a runtime can skip them.
 *
 * In: a verified iGraph before runs are formed. Out: the same kernel with one more `dim` per argument with slack. With
 * slack 0 it computes the same as before. */
#ifndef UIR_IR_IGRAPH_SLACK_H
#define UIR_IR_IGRAPH_SLACK_H

#include "ir/kernel/igraph.h"

/* An argument that gets slack: IN or OUT `index`. Its time axis has `time` elements (over the kernel's dims) of `inner`
 * elements each. `growing` is the DIM in `time` by which it grows. */
typedef struct uir_islack {
    uir_ipointer_role role;
    uint32_t index;
    uir_dim time;
    uint32_t growing; /* symbol index */
    int64_t inner;
} uir_islack;

/* Adds a DIM, the last one, and counts it in the strides of all pointers of that argument. False if a layout cannot:
 * its outer dims are joined with the axis. The iGraph is then unusable. */
bool uir_igraph_add_slack(uir_igraph *igraph, const uir_islack *slack, uir_status *out_status);

/* Splits off the copies at top level that move operand `in` to the same coordinates of result `out`: the first half of
 * the parallel indices does only these. No effect if that is impossible. */
uir_status uir_igraph_split_copies(uir_igraph *igraph, uint32_t in, uint32_t out);

/* The pairs of pointers (from, to) that the first half of a phase's parallel indices copies, coordinate by coordinate,
 * without other work; at most `capacity`. 0: no such half. */
typedef struct uir_icopy {
    uint32_t from, to; /* pointers */
} uir_icopy;
uint32_t uir_igraph_find_copies(const uir_igraph *igraph, uint32_t phase, uir_icopy *out_copies, uint32_t capacity);

#endif
