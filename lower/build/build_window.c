/* Windows: where the image is read for an element of the result and a place in its window. */
#include "lower/internal.h"

#include <stdio.h>

static uir_dim coord(const uir_lower_builder *b, uint32_t axis) {
    return axis == UIR_AXES_NONE ? uir_dim_const(b->f->dims, 0) : b->coord[axis];
}

uir_status uir_lower_window_dim(uir_lower_builder *b, uint32_t node, uint32_t d, uir_dim place, bool *io_padded) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    uir_dims *dims = b->f->dims;
    uint32_t count, axis = uir_axes_of_operand_dim(&b->axes, node, 0, d), s = d - 2;
    const int64_t *strides = uir_node_ints(b->module, info, "strides", &count),
                  *dilations = uir_node_ints(b->module, info, "dilations", &count);
    const uir_dim *low = uir_node_dims(b->module, info, "low", &count),
                  *high = uir_node_dims(b->module, info, "high", &count);
    int64_t number;
    uir_dim start;
    bool padded = !uir_dim_is_const(b->module->dims, low[s], &number) || number != 0;
    padded |= !uir_dim_is_const(b->module->dims, high[s], &number) || number > 0;
    if (axis == UIR_AXES_NONE && padded) return uir_lower_refuse(b, node, "an image of one element is padded");
    if (axis == UIR_AXES_NONE) return UIR_STATUS_OK;
    UIR_TRY(uir_lower_dim(b, low[s], &start));
    uir_dim at = uir_dim_mul(dims, coord(b, uir_axes_of_value_dim(&b->axes, info->outputs[0], d)),
                             uir_dim_const(dims, strides[s]));
    at = uir_dim_add(dims, at, uir_dim_mul(dims, place, uir_dim_const(dims, dilations[s])));
    b->coord[axis] = uir_dim_sub(dims, at, start);
    if (!b->coord[axis].id) return UIR_STATUS_OUT_OF_MEMORY;
    bool inside = uir_dim_compare(dims, b->coord[axis], UIR_RELATION_GE, uir_dim_const(dims, 0)) == UIR_TRUE &&
                  uir_dim_compare(dims, b->coord[axis], UIR_RELATION_LT, b->extents[axis]) == UIR_TRUE;
    *io_padded |= padded || !inside;
    return UIR_STATUS_OK;
}

uir_status uir_lower_fill_outside(uir_lower_builder *b, uint32_t node, uint32_t expression, double fill) {
    uir_loop_expression *e = &b->f->expressions.data[expression];
    if (e->kind != UIR_LOOP_LOAD || (e->has_fill && e->fill != fill))
        return uir_lower_refuse(b, node, "an operand computed in the group may be read out of bounds");
    e->has_fill = true;
    e->fill = fill;
    return UIR_STATUS_OK;
}

bool uir_lower_is_window(uir_op op) {
    return op == UIR_OP_WINDOW_SUM || op == UIR_OP_WINDOW_MAX;
}

uir_status uir_lower_iterate_window(uir_lower_builder *b, uint32_t node, bool *out_padded) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    uint32_t count;
    const uir_dim *window = uir_node_dims(b->module, info, "window", &count);
    uir_dim places[UIR_MAX_RANK];
    *out_padded = false;
    for (uint32_t s = 0; s < count; s++) {
        char name[24];
        uir_dim extent;
        UIR_TRY(uir_lower_extent(b, window[s], &extent));
        snprintf(name, sizeof name, "window%u", s);
        UIR_TRY(uir_nest_add_iter(b->nest, name, 0, extent, true, &places[s]));
    }
    for (uint32_t s = 0; s < count; s++) UIR_TRY(uir_lower_window_dim(b, node, s + 2, places[s], out_padded));
    return UIR_STATUS_OK;
}
