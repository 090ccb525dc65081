/* Axis analysis: which dims of the values of a set of nodes are the same axis of one loop nest.
 *
 * In: nodes of one graph, in its order. Out: the axes, and a list of axes for each value made inside and each operand.
 * The axes of a list address the tensor, slowest first in memory (row-major, unless the value has a layout). Two dims
 * are one axis because a node relates them, never because their extents are equal. Reshapes split dims into axes,
 * transposes permute, broadcasts and reductions leave axes out; a dim of extent 1 has no axis. A value from outside has
 * the same axes in each operand that reads it. If one value would then have an axis twice (x + transpose(x), x times
 * its own transpose), each of these operands has axes of its own. Neighbouring axes are joined if they are neighbours
 * in every list that contains one of them. So a tensor is addressed by as few axes as possible.
 *
 * A node may relate two axes by more than identity (an element of a slice is at start + step*i). Both are then
 * `unsplittable`: neither split nor joined with a neighbour. UNSUPPORTED: dims that cannot be told apart or related
 * this way. Examples: a reshape that does not factor, x + transpose(x) of a value made inside, a broadcast decided at
 * run time. */
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

/* Analyses the nodes; all results are allocated in `arena`. UNSUPPORTED, without a message, if the nodes have no common
 * axes; `out_node`, unless NULL, is then the index of the node that could not be added. New dims are made in the
 * module's dims. */
uir_status uir_axes_analyse(const uir_module *module, const uir_node_id *nodes, uint32_t count, uir_arena *arena,
                            uir_axes *out_axes, uint32_t *out_node);

/* The order of the dims in memory, slowest first: that of the value's layout if the layout is an order of dims, else
 * row-major. */
void uir_axes_order_dims(const uir_module *module, uir_value_id value, uint32_t *out_order);

/* Axes of a value made by one of the nodes. */
uir_axis_list uir_axes_of_value(const uir_axes *axes, uir_value_id value);
/* Axes of operand `index` of node `node` of the analysed list. */
uir_axis_list uir_axes_of_operand(const uir_axes *axes, uint32_t node, uint32_t index);
/* Whether a slice, a pad or windows map every index along a dim to itself. The dim is then the same axis before and
 * after. Otherwise both may still be one axis because of another relation in the group: x against x reversed. */
bool uir_axes_slice_keeps(const uir_module *module, const uir_node_info *node, uint32_t dim);
bool uir_axes_pad_keeps(const uir_module *module, const uir_node_info *node, uint32_t dim);
bool uir_axes_windows_keep(const uir_module *module, const uir_node_info *node, uint32_t dim); /* of the operand */
/* Whether all dilations of the windows are 0: the windows then repeat the operand along axes that it lacks. */
bool uir_axes_windows_repeat(const uir_module *module, const uir_node_info *node);
/* The only axis of a dim. NONE: a dim of extent 1, or of several joined or split axes. Ask only for dims that the
 * node's rule makes unsplittable, as those of a slice or a reduction. */
uint32_t uir_axes_of_value_dim(const uir_axes *axes, uir_value_id value, uint32_t dim);
uint32_t uir_axes_of_operand_dim(const uir_axes *axes, uint32_t node, uint32_t index, uint32_t dim);

/* Whether a grouped convolution has separate axes for the groups and for the channels in each. */
bool uir_axes_splits_channels(const uir_module *module, const uir_node_info *node);

/* Whether a pad is more than its operand at shifted coordinates: it has interior elements, or extends a dim of one
 * element, which has no axis. */
bool uir_axes_pads_apart(const uir_module *module, const uir_node_info *node);

/* Whether the node reads or writes elements smaller than a byte, so that two units may have to write to one byte. */
bool uir_axes_shares_bytes(const uir_module *module, const uir_node_info *node);

#endif
