/* Reductions, arg-reductions and cumulative ops. Meaning: the operator documents of ONNX.
 *
 * Axes may be an operand that is only known when the model runs: each axis is then reduced or not as a mask says, with
 * the rank kept, and the axes are dropped at the end. */
#include "decompose/math/rules_math.h"

/* A reduction is: a primitive, something done to each element before, something to the result after. */
typedef struct reduction {
    uir_op onnx, primitive;
    bool magnitude, square, exponential; /* before */
    bool root, logarithm, mean;          /* after */
} reduction;

static const reduction reductions[] = {
    {UIR_OP_ONNX_REDUCE_SUM, UIR_OP_REDUCE_SUM, .mean = false},
    {UIR_OP_ONNX_REDUCE_MEAN, UIR_OP_REDUCE_SUM, .mean = true},
    {UIR_OP_ONNX_REDUCE_PROD, UIR_OP_REDUCE_PROD, .mean = false},
    {UIR_OP_ONNX_REDUCE_MAX, UIR_OP_REDUCE_MAX, .mean = false},
    {UIR_OP_ONNX_REDUCE_MIN, UIR_OP_REDUCE_MIN, .mean = false},
    {UIR_OP_ONNX_REDUCE_L1, UIR_OP_REDUCE_SUM, .magnitude = true},
    {UIR_OP_ONNX_REDUCE_L2, UIR_OP_REDUCE_SUM, .square = true, .root = true},
    {UIR_OP_ONNX_REDUCE_SUM_SQUARE, UIR_OP_REDUCE_SUM, .square = true},
    {UIR_OP_ONNX_REDUCE_LOG_SUM, UIR_OP_REDUCE_SUM, .logarithm = true},
    {UIR_OP_ONNX_REDUCE_LOG_SUM_EXP, UIR_OP_REDUCE_SUM, .exponential = true, .logarithm = true},
};

static const reduction *find_reduction(uir_op op) {
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
        if (reductions[i].onnx == op) return &reductions[i];
    return &reductions[0];
}

/* Which axes: a constant list, or a mask known at run time. */
typedef struct chosen_axes {
    const int64_t *axes;
    uint32_t count;
    uir_value_id mask; /* bool [rank]; none: the list */
} chosen_axes;

static uir_value_id keep_axis(uir_rule_context *context, uir_value_id value, uint32_t axis, uir_op op) {
    int64_t place = axis;
    return uir_build_reduce(&context->builder, op, value, &place, 1, true);
}
static uir_value_id sum_axis(uir_rule_context *context, uir_value_id value, uint32_t axis) {
    return keep_axis(context, value, axis, UIR_OP_REDUCE_SUM);
}
static uir_value_id product_axis(uir_rule_context *context, uir_value_id value, uint32_t axis) {
    return keep_axis(context, value, axis, UIR_OP_REDUCE_PROD);
}
static uir_value_id max_axis(uir_rule_context *context, uir_value_id value, uint32_t axis) {
    return keep_axis(context, value, axis, UIR_OP_REDUCE_MAX);
}
static uir_value_id min_axis(uir_rule_context *context, uir_value_id value, uint32_t axis) {
    return keep_axis(context, value, axis, UIR_OP_REDUCE_MIN);
}

/* The axes' extents become 1. */
static uir_value_id reduce_kept(uir_rule_context *context, uir_op op, uir_value_id x, const chosen_axes *chosen) {
    if (!chosen->mask.id) return uir_build_reduce(&context->builder, op, x, chosen->axes, chosen->count, true);
    uint32_t rank = uir_rule_rank(context, x);
    return uir_math_where_masked(context, x, chosen->mask, rank,
                                 op == UIR_OP_REDUCE_SUM    ? sum_axis
                                 : op == UIR_OP_REDUCE_PROD ? product_axis
                                 : op == UIR_OP_REDUCE_MAX  ? max_axis
                                                            : min_axis);
}

/* How many elements each result is made of, as a scalar of x's dtype. */
static uir_value_id element_count(uir_rule_context *context, uir_value_id x, const chosen_axes *chosen) {
    uir_builder *b = &context->builder;
    uir_value_id count;
    if (chosen->mask.id) {
        int64_t axis = 0;
        uir_value_id one = uir_build_integer_scalar(b, UIR_DTYPE_I64, 1);
        count = uir_build_select(b, chosen->mask, uir_math_shape(context, x), one);
        count = uir_build_reduce(b, UIR_OP_REDUCE_PROD, count, &axis, 1, false);
    } else {
        const uir_dim *extents = uir_rule_extents(context, x);
        uir_dim product = uir_rule_dim(context, 1);
        for (uint32_t i = 0; extents && i < chosen->count; i++)
            product = uir_math_mul(context, product, extents[chosen->axes[i]]);
        int64_t known;
        if (product.id && uir_dim_is_const(b->module->dims, product, &known))
            return uir_rule_number(context, x, (double)known);
        count = uir_build_dim_values(b, &product, 1, true, UIR_DTYPE_I64);
    }
    return uir_build_cast(b, count, uir_rule_dtype(context, x));
}

/* log(sum(exp(x))) = m + log(sum(exp(x - m))) with m the greatest x where that is finite, else 0. */
static uir_value_id stable_shift(uir_rule_context *context, uir_value_id x, const chosen_axes *chosen) {
    uir_builder *b = &context->builder;
    uir_value_id peak = reduce_kept(context, UIR_OP_REDUCE_MAX, x, chosen), infinite;
    uir_attribute attributes[] = {uir_attribute_int(b, "positive", 1), uir_attribute_int(b, "negative", 1)};
    uir_build_node(b, UIR_OP_IS_INF, &peak, 1, attributes, 2, &infinite, 1);
    return uir_build_select(b, infinite, uir_rule_number(context, peak, 0), peak);
}

static uir_value_id reduce(uir_rule_context *context, const reduction *r, uir_value_id x, const chosen_axes *chosen) {
    uir_builder *b = &context->builder;
    uir_dtype dtype = uir_rule_dtype(context, x);
    bool computes = r->primitive == UIR_OP_REDUCE_SUM || r->primitive == UIR_OP_REDUCE_PROD;
    uir_value_id value = computes ? uir_rule_widen(context, x) : x, shift = {0};
    /* Roots and logarithms of integers are taken in f64 and truncated at the end. */
    if ((r->root || r->logarithm) && uir_dtype_is_integer(dtype)) value = uir_build_cast(b, value, UIR_DTYPE_F64);
    if (r->magnitude) value = uir_build_unary(b, UIR_OP_ABS, value);
    if (r->square) value = uir_build_binary(b, UIR_OP_MUL, value, value);
    if (r->exponential) {
        shift = stable_shift(context, value, chosen);
        value = uir_build_unary(b, UIR_OP_EXP, uir_build_binary(b, UIR_OP_SUB, value, shift));
    }
    uir_value_id count = r->mean ? element_count(context, value, chosen) : shift;
    value = reduce_kept(context, r->primitive, value, chosen);
    if (r->mean) value = uir_build_binary(b, UIR_OP_DIV, value, count);
    if (r->root) value = uir_build_unary(b, UIR_OP_SQRT, value);
    if (r->logarithm) value = uir_build_unary(b, UIR_OP_LOG, value);
    if (shift.id) value = uir_build_binary(b, UIR_OP_ADD, value, shift);
    return uir_build_cast(b, value, dtype);
}

static void choose_at_run_time(uir_rule_context *context, uir_value_id axes, uint32_t rank, bool none_means_all,
                               chosen_axes *chosen) {
    uir_builder *b = &context->builder;
    chosen->mask = uir_math_axis_mask(context, axes, rank);
    if (uir_math_count(context, axes) >= 0 || !none_means_all) return;
    /* How many axes there are is not known either: an empty list names them all. */
    uir_dim count = uir_rule_type(context, axes)->dims[0];
    uir_value_id none = uir_math_with(context, UIR_OP_EQ, uir_build_dim_values(b, &count, 1, true, UIR_DTYPE_I64), 0);
    chosen->mask = uir_build_binary(b, UIR_OP_OR, chosen->mask, none);
}

uir_status uir_rule_reduce(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    const reduction *r = find_reduction(context->op);
    uir_value_id x = uir_rule_input(context, 0), data_axes = uir_rule_input(context, 1);
    uint32_t rank = uir_rule_rank(context, x);
    bool keep = uir_rule_int(context, "keepdims", 1) != 0,
         none_means_all = !uir_rule_int(context, "noop_with_empty_axes", 0);
    int64_t data_count = data_axes.id ? uir_math_count(context, data_axes) : 0;
    chosen_axes chosen = {0};
    int64_t all[UIR_MAX_RANK];
    if (b->status != UIR_STATUS_OK) return b->status;
    if (data_axes.id && data_count != 0 && !uir_rule_constant(context, data_axes)) {
        if (data_count < 0 && !keep)
            return uir_builder_fail(b, UIR_STATUS_UNSUPPORTED,
                                    "the rank of the result is only known when the model runs");
        choose_at_run_time(context, data_axes, rank, none_means_all, &chosen);
    } else if (data_count == 0 && data_axes.id) {
        chosen.axes = all;
    } else if (!uir_rule_axes(context, "axes", 1, rank, &chosen.axes, &chosen.count)) {
        chosen.axes = all;
    }
    if (!chosen.mask.id && !chosen.count && none_means_all)
        for (; chosen.count < rank; chosen.count++) all[chosen.count] = chosen.count;
    if (b->status != UIR_STATUS_OK) return b->status;
    uir_value_id result = reduce(context, r, x, &chosen);
    if (!keep && chosen.mask.id)
        result = uir_math_drop_masked(context, result, chosen.mask, (uint32_t)data_count);
    else if (!keep)
        result = uir_build_squeeze(b, result, chosen.axes, chosen.count);
    context->outputs[0] = result;
    return b->status;
}

uir_status uir_rule_arg(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    int64_t axis = uir_rule_axis(context, uir_rule_int(context, "axis", 0), uir_rule_rank(context, x));
    uir_attribute attributes[] = {uir_attribute_int(b, "axis", axis),
                                  uir_attribute_int(b, "keep", uir_rule_int(context, "keepdims", 1) != 0),
                                  uir_attribute_int(b, "last", uir_rule_int(context, "select_last_index", 0) != 0)};
    uir_op op = context->op == UIR_OP_ONNX_ARG_MAX ? UIR_OP_ARG_MAX : UIR_OP_ARG_MIN;
    uir_build_node(b, op, &x, 1, attributes, 3, context->outputs, 1);
    return b->status;
}

/* ---- cumulative ops ---- */

static uir_value_id scan_axis(uir_rule_context *context, uir_value_id value, uint32_t axis) {
    uir_builder *b = &context->builder;
    uir_op op = context->op == UIR_OP_ONNX_CUM_SUM ? UIR_OP_SCAN_SUM : UIR_OP_SCAN_PROD;
    uir_attribute attributes[] = {uir_attribute_int(b, "axis", axis),
                                  uir_attribute_int(b, "exclusive", uir_rule_int(context, "exclusive", 0) != 0),
                                  uir_attribute_int(b, "reverse", uir_rule_int(context, "reverse", 0) != 0)};
    uir_value_id result;
    uir_build_node(b, op, &value, 1, attributes, 3, &result, 1);
    return result;
}

uir_status uir_rule_cumulative(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), axis = uir_rule_input(context, 1), result;
    uint32_t rank = uir_rule_rank(context, x);
    uir_value_id wide = uir_rule_widen(context, x);
    double known;
    if (uir_rule_constant_number(context, axis, &known)) {
        int64_t fixed = uir_rule_axis(context, (int64_t)known, rank);
        result = b->status == UIR_STATUS_OK ? scan_axis(context, wide, (uint32_t)fixed) : wide;
    } else {
        result = uir_math_where_masked(context, wide, uir_math_axis_mask(context, axis, rank), rank, scan_axis);
    }
    context->outputs[0] = uir_build_cast(b, result, uir_rule_dtype(context, x));
    return b->status;
}
