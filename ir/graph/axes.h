/* Axis identities: which dims of which values of a set of nodes are the same axis of one loop nest.
 *
 * In: nodes of one graph, in its order. Out: the axes, and for each value made inside and each operand read the list of
 * axes that address it, slowest first as they lie in memory (row-major, where it has no layout). Two dims are one axis
 * because a node relates them, never because their extents are equal. Reshapes split dims into axes, transposes
 * permute, broadcasts and reductions leave axes out; a dim of extent 1 has none. A value read from outside at several
 * places has the same axes at each, unless that would give one value an axis twice (x + transpose(x), x times its own
 * transpose): then each place has its own. Axes that stand side by side wherever one of them stands become one, so that
 * a tensor is addressed by as few as will do.
 *
 * Where a node relates two axes by more than identity (an element of a slice lies at start + step*i), both are
 * `unsplittable`: never split, never joined with a neighbour. A set whose dims cannot be told apart or related this way
 * (a reshape that does not factor, x + transpose(x) of a value made inside, a broadcast decided at run time) is
 * UNSUPPORTED. */
#ifndef UIR_IR_AXES_H
#define UIR_IR_AXES_H

#include "ir/graph/graph.h"

#define UIR_AXES_NONE UINT32_MAX

typedef struct uir_axis_info {
    uir_dim extent;
    bool unsplittable;
} uir_axis_info;

/* The axes of a tensor, slowest first. */
typedef struct uir_axis_list {
    const uint32_t *axes;
    uint32_t count;
} uir_axis_list;

typedef struct uir_axes {
    const uir_axis_info *axes;
    uint32_t count;
    const struct uir_axes_table *table; /* private */
} uir_axes;

/* All results lie in `arena`. UNSUPPORTED, without a message, when the nodes have no common axes; `out_node`, when not
 * NULL, is then the index of the node that could not be added. New dims are made in the module's dims. */
uir_status uir_axes_analyse(const uir_module *module, const uir_node_id *nodes, uint32_t count, uir_arena *arena,
                            uir_axes *out_axes, uint32_t *out_node);

/* The dims in the order of the axes, slowest first: as the value's layout has them one after the other, else as they
 * stand. */
void uir_axes_order_dims(const uir_module *module, uir_value_id value, uint32_t *out_order);

/* Of a value made by one of the nodes. */
uir_axis_list uir_axes_of_value(const uir_axes *axes, uir_value_id value);
/* Of operand `index` of the node at `node` in the given list. */
uir_axis_list uir_axes_of_operand(const uir_axes *axes, uint32_t node, uint32_t index);
/* Whether a slice, or a pad, leaves every index along a dim as it is: then the dim is the same axis before and after.
 * Where it does not, the two may still be one axis, because something else in the group relates them: x against x
 * reversed. */
bool uir_axes_slice_keeps(const uir_module *module, const uir_node_info *node, uint32_t dim);
bool uir_axes_pad_keeps(const uir_module *module, const uir_node_info *node, uint32_t dim);
bool uir_axes_windows_keep(const uir_module *module, const uir_node_info *node, uint32_t dim); /* of the operand */
/* Do windows stay in one place (all their dilations are 0)? They repeat what they read, along axes that it does not
 * have. */
bool uir_axes_windows_repeat(const uir_module *module, const uir_node_info *node);
/* The one axis of a dim, NONE when it has none (extent 1); a dim of several joined or split axes gives NONE too: ask
 * for dims that a node's meaning keeps unsplittable, as a slice's or a reduction's. */
uint32_t uir_axes_of_value_dim(const uir_axes *axes, uir_value_id value, uint32_t dim);
uint32_t uir_axes_of_operand_dim(const uir_axes *axes, uint32_t node, uint32_t index, uint32_t dim);

/* Has a convolution in groups axes of its own for the groups and for what is in each? */
bool uir_axes_splits_channels(const uir_module *module, const uir_node_info *node);

/* Is a pad more than its operand at shifted coordinates: are there elements between, or is a dim of one element, which
 * has no axis, made longer? */
bool uir_axes_pads_apart(const uir_module *module, const uir_node_info *node);

/* Does it read or make elements of less than a byte, which several units would write at once if each had its own? */
bool uir_axes_shares_bytes(const uir_module *module, const uir_node_info *node);

#endif
