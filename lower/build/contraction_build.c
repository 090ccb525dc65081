/* The naive loop AST of a matmul or a convolution: a sum of products, marked as a contraction. */
#include "lower/internal.h"

#include <stdio.h>
#include <string.h>

/* Axes of the second operand (of a matmul's: of both) that the result has not; in the order of the sums. */
static uir_status summed_axes(uir_lower_builder *b, uint32_t node, uir_axis_list *out_axes) {
    uir_axis_list from = uir_axes_of_operand(&b->axes, node, 1),
                  to = uir_axes_of_value(&b->axes, uir_lower_node_info(b, node)->outputs[0]);
    uint32_t *axes, count = 0;
    UIR_TRY_ALLOCATE(axes, uir_arena_allocate_array(b->arena, from.count + 1, sizeof *axes));
    for (uint32_t i = 0; i < from.count; i++) {
        bool kept = false;
        for (uint32_t k = 0; k < to.count; k++) kept |= to.axes[k] == from.axes[i];
        if (!kept) axes[count++] = from.axes[i];
    }
    uint32_t channels = uir_axes_of_operand_dim(&b->axes, node, 1, 1);
    /* A convolution is summed tap by tap, its channels innermost, wherever they lie: the order is not the layout's. */
    if (count && axes[0] == channels && uir_lower_node_info(b, node)->op == UIR_OP_CONV) {
        memmove(axes, axes + 1, (count - 1) * sizeof *axes);
        axes[count - 1] = channels;
    }
    *out_axes = (uir_axis_list){axes, count};
    return UIR_STATUS_OK;
}

/* Floats are summed in f32 or f64, integers in 32 or 64 bits. */
static uir_dtype sum_dtype(const uir_lower_builder *b, const uir_node_info *info, uir_dtype to) {
    uir_dtype left = uir_value_type(b->module, info->inputs[0])->dtype,
              right = uir_value_type(b->module, info->inputs[1])->dtype;
    if (uir_dtype_is_float(left))
        return left == UIR_DTYPE_F64 || right == UIR_DTYPE_F64 || to == UIR_DTYPE_F64 ? UIR_DTYPE_F64 : UIR_DTYPE_F32;
    return uir_dtype_bits(to) <= 32 ? UIR_DTYPE_I32 : UIR_DTYPE_I64;
}

static uir_dim coord(uir_lower_builder *b, uint32_t axis) {
    return axis == UIR_AXES_NONE ? uir_dim_const(b->f->dims, 0) : b->coord[axis];
}

/* Sets where the image is read: windows along its spatial dims, and with groups that are no axis along its channels. */
static uir_status place_window(uir_lower_builder *b, uint32_t node, bool *out_padded) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    uir_dims *dims = b->f->dims;
    uint32_t rank = uir_value_type(b->module, info->inputs[0])->rank;
    int64_t groups = uir_node_int(b->module, info, "groups", 1);
    *out_padded = false;
    if (groups != 1 && !uir_axes_splits_channels(b->module, info)) {
        uint32_t axis = uir_axes_of_operand_dim(&b->axes, node, 0, 1);
        const uir_type *weights = uir_value_type(b->module, info->inputs[1]);
        int64_t made, used;
        if (!uir_dim_is_const(b->module->dims, weights->dims[0], &made) ||
            !uir_dim_is_const(b->module->dims, weights->dims[1], &used) || made < groups)
            return uir_lower_refuse(b, node, "the number of channels of a group is unknown");
        uir_dim of = uir_dim_floordiv(dims, coord(b, uir_axes_of_value_dim(&b->axes, info->outputs[0], 1)),
                                      uir_dim_const(dims, made / groups));
        of = uir_dim_add(dims, uir_dim_mul(dims, of, uir_dim_const(dims, used)),
                         coord(b, uir_axes_of_operand_dim(&b->axes, node, 1, 1)));
        if (!of.id) return UIR_STATUS_OUT_OF_MEMORY;
        if (axis != UIR_AXES_NONE) b->coord[axis] = of;
    }
    for (uint32_t d = 2; d < rank; d++)
        UIR_TRY(uir_lower_window_dim(b, node, d, coord(b, uir_axes_of_operand_dim(&b->axes, node, 1, d)), out_padded));
    return UIR_STATUS_OK;
}

static uir_status read_factor(uir_lower_builder *b, uint32_t node, uint32_t which, uir_dtype sum, bool padded,
                              uint32_t *out_expression) {
    UIR_TRY(uir_lower_operand(b, node, which, out_expression));
    if (padded) UIR_TRY(uir_lower_fill_outside(b, node, *out_expression, 0));
    return uir_loop_add_cast(b->f, *out_expression, sum, out_expression);
}

static uir_status sum_nest(uir_lower_builder *b, uint32_t node, uint32_t number, uint32_t monoid, uint32_t state,
                           uir_axis_list list, uir_dtype sum) {
    uir_nest nest;
    uir_axis_list summed;
    uint32_t factors[2], product;
    bool padded = false;
    UIR_TRY(summed_axes(b, node, &summed));
    UIR_TRY(uir_lower_begin_nest(b, &nest, number, "", list));
    UIR_TRY(uir_lower_iterate(b, summed, true));
    uir_loop_access target = {.tensor = state};
    for (uint32_t i = 0; i < list.count; i++) target.indices[i] = b->coord[list.axes[i]];
    bool convolution = uir_lower_node_info(b, node)->op == UIR_OP_CONV;
    if (convolution) UIR_TRY(place_window(b, node, &padded));
    UIR_TRY(read_factor(b, node, 0, sum, padded, &factors[0]));
    UIR_TRY(read_factor(b, node, 1, sum, false, &factors[1]));
    UIR_TRY(uir_loop_add_call(b->f, UIR_OP_MUL, sum, factors, 2, &product));
    UIR_TRY(uir_nest_add_statement(&nest, UIR_LOOP_STATEMENT_UPDATE, monoid, &target, 1, &product, 1));
    nest.block.uses |= 1u << UIR_LOOP_USE_CONTRACTION;
    if (convolution) nest.block.uses |= 1u << UIR_LOOP_USE_CONVOLUTION;
    return uir_lower_end_nest(b, &nest);
}

uir_status uir_lower_contraction(uir_lower_builder *b, uint32_t node) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    uir_dtype to = uir_value_type(b->module, info->outputs[0])->dtype, sum = sum_dtype(b, info, to);
    uir_axis_list list = uir_axes_of_value(&b->axes, info->outputs[0]);
    uir_dim extents[UIR_LOOP_MAX_RANK];
    uint32_t monoid, number = b->names++, state, result, value;
    uir_loop_access target;
    uir_nest nest;
    char name[48];
    if (list.count > UIR_LOOP_MAX_RANK)
        return uir_lower_refuse(b, node, "the result has more than %d axes", UIR_LOOP_MAX_RANK);
    UIR_TRY(uir_loop_get_monoid(b->f, UIR_OP_REDUCE_SUM, false, sum, &monoid));
    UIR_TRY(uir_lower_add_result(b, node, 0, &result));
    for (uint32_t i = 0; i < list.count; i++) extents[i] = b->extents[list.axes[i]];
    snprintf(name, sizeof name, "s%u", b->names++);
    UIR_TRY(uir_loop_add_tensor(b->f, name, sum, UIR_LOOP_ROLE_TEMP, 0, extents, list.count, &state));
    target = (uir_loop_access){.tensor = state};
    UIR_TRY(uir_lower_begin_nest(b, &nest, number, "_init", list));
    for (uint32_t i = 0; i < list.count; i++) target.indices[i] = b->coord[list.axes[i]];
    UIR_TRY(uir_nest_add_statement(&nest, UIR_LOOP_STATEMENT_INIT, monoid, &target, 1, NULL, 0));
    UIR_TRY(uir_lower_end_nest(b, &nest));
    UIR_TRY(sum_nest(b, node, number, monoid, state, list, sum));
    UIR_TRY(uir_lower_begin_nest(b, &nest, number, "_result", list));
    for (uint32_t i = 0; i < list.count; i++) target.indices[i] = b->coord[list.axes[i]];
    UIR_TRY(uir_loop_add_load(b->f, state, target.indices, &value));
    UIR_TRY(uir_loop_add_cast(b->f, value, to, &value));
    UIR_TRY(uir_lower_target(b, info->outputs[0], &target));
    UIR_TRY(uir_nest_add_statement(&nest, UIR_LOOP_STATEMENT_STORE, 0, &target, 1, &value, 1));
    return uir_lower_end_nest(b, &nest);
}
