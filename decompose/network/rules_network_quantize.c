/* Quantisation: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear. Per tensor, per axis and blocked, to and from
 * every integer of 2 to 16 bits and the narrow floats. */
#include "decompose/network/rules_network.h"

static uir_value_id cast_float(uir_builder *b, uir_value_id x, uir_dtype to, bool saturate) {
    uir_value_id output = {0};
    uir_attribute attributes[2] = {uir_attribute_dtype(b, "to", to), uir_attribute_int(b, "saturate", saturate)};
    uir_build_node(b, UIR_OP_CAST, &x, 1, attributes, 2, &output, 1);
    return output;
}

uir_value_id uir_network_quantize(uir_builder *b, uir_value_id scaled, uir_value_id zero_point, uir_dtype to,
                                  bool saturate) {
    if (uir_dtype_is_float(to)) return cast_float(b, scaled, to, saturate || to == UIR_DTYPE_F4E2M1);
    if (!uir_dtype_is_integer(to)) {
        (void)uir_builder_fail(b, UIR_STATUS_BAD_FILE, "%s is not a type to quantise to", uir_dtype_name(to));
        return scaled;
    }
    uir_value_id y = round_even(b, scaled);
    if (!is_none(zero_point)) y = add(b, y, uir_build_cast(b, zero_point, dtype_of(b, y)));
    y = uir_network_clamp(b, y, (double)uir_dtype_integer_min(to), (double)uir_dtype_integer_max(to));
    return uir_build_cast(b, y, to);
}

/* (x - zero_point) * scale in f32 (f64 stays). Operands already broadcast against x. */
static uir_value_id network_dequantize(uir_builder *b, uir_value_id x, uir_value_id scale, uir_value_id zero_point) {
    uir_dtype real = uir_network_working_dtype(dtype_of(b, scale));
    if (!is_none(zero_point) && uir_dtype_is_integer(dtype_of(b, x)))
        x = subtract(b, uir_build_cast(b, x, UIR_DTYPE_I32), uir_build_cast(b, zero_point, UIR_DTYPE_I32));
    return multiply(b, uir_build_cast(b, x, real), uir_build_cast(b, scale, real));
}

/* A scale or zero point as it broadcasts against x: rank 0 (or one element) for the whole tensor, rank 1 along the
 * axis, the rank of x with the axis in blocks. Where x has no such axis, rank 1 can be one element alone. */
static uir_value_id parameter(uir_rule_context *context, uir_value_id value, const uir_shape *x, const char *name) {
    uir_builder *b = &context->builder;
    if (is_none(value) || b->status != UIR_STATUS_OK) return value;
    int64_t block = uir_rule_int(context, "block_size", 0), extent;
    uir_shape shape = uir_network_shape(context, value);
    if (b->status != UIR_STATUS_OK || shape.rank == 0) return value;
    int64_t axis = uir_rule_int(context, "axis", 1);
    bool is_known = uir_dim_is_const(b->module->dims, shape.dims[0], &extent);
    bool is_one = is_known ? extent == 1 : axis < -(int64_t)x->rank || axis >= (int64_t)x->rank;
    if (shape.rank == 1 && block == 0 && is_one)
        return uir_build_reshape(b, uir_build_expect(b, value, 0, dim_int(b, 1)), NULL, 0);
    axis = uir_rule_axis(context, axis, x->rank);
    if (b->status != UIR_STATUS_OK) return value;
    if (block == 0 && shape.rank == 1) return uir_network_along(b, value, (uint32_t)axis, x->rank);
    if (block < 1 || block > INT32_MAX || shape.rank != x->rank) {
        (void)uir_builder_fail(
            b, UIR_STATUS_BAD_FILE,
            "input %s has rank %u and block_size is %lld; required: rank 0 or 1 and no block_size, or rank %u with one",
            name, shape.rank, (long long)block, x->rank);
        return value;
    }
    value = uir_network_repeat(context, value, (uint32_t)axis, dim_int(b, block));
    uir_dim wanted = x->dims[axis];
    if (uir_dim_equal(uir_build_extent(b, value, (uint32_t)axis), wanted)) return value;
    return uir_network_slice(b, value, (uint32_t)axis, dim_int(b, 0), wanted, 1);
}

uir_status uir_rule_quantize_linear(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), zero_input = uir_rule_input(context, 2);
    uir_shape shape = uir_network_shape_between(context, x, "x", 0, UIR_MAX_RANK);
    uir_value_id scale = parameter(context, uir_rule_input(context, 1), &shape, "y_scale");
    uir_value_id zero = parameter(context, zero_input, &shape, "y_zero_point");
    uir_dtype to = is_none(zero_input) ? UIR_DTYPE_U8 : dtype_of(b, zero_input);
    uir_dtype asked = uir_network_dtype_attribute(context, "output_dtype", to);
    if (b->status != UIR_STATUS_OK) return b->status;
    if (!is_none(zero_input) && asked != to)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "attribute output_dtype is %s, y_zero_point's type %s",
                                uir_dtype_name(asked), uir_dtype_name(to));
    uir_dtype real = uir_network_working_dtype(dtype_of(b, x));
    if (!uir_dtype_is_float(real)) real = UIR_DTYPE_F32;
    uir_value_id scaled = divide(b, uir_build_cast(b, x, real), uir_build_cast(b, scale, real));
    context->outputs[0] = uir_network_quantize(b, scaled, zero, asked, uir_rule_int(context, "saturate", 1) != 0);
    return b->status;
}

uir_status uir_rule_dequantize_linear(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), scale_input = uir_rule_input(context, 1);
    uir_value_id zero_input = uir_rule_input(context, 2);
    uir_shape shape = uir_network_shape_between(context, x, "x", 0, UIR_MAX_RANK);
    uir_value_id scale = parameter(context, scale_input, &shape, "x_scale");
    if (uir_network_is_zero(context, zero_input)) zero_input = (uir_value_id){0};
    uir_value_id zero = parameter(context, zero_input, &shape, "x_zero_point");
    uir_dtype to = uir_network_dtype_attribute(context, "output_dtype", dtype_of(b, scale_input));
    if (b->status != UIR_STATUS_OK) return b->status;
    context->outputs[0] = uir_build_cast(b, network_dequantize(b, x, scale, zero), to);
    return b->status;
}

uir_value_id uir_network_quantize_dynamically(uir_builder *b, uir_value_id x, uir_value_id *out_scale,
                                              uir_value_id *out_zero) {
    int64_t axes[UIR_NETWORK_AXES];
    uint32_t rank = rank_of(b, x);
    for (uint32_t i = 0; i < rank; i++) axes[i] = i;
    uir_value_id none = scalar_like(b, x, 0);
    uir_value_id low = minimum(b, uir_build_reduce(b, UIR_OP_REDUCE_MIN, x, axes, rank, false), none);
    uir_value_id high = maximum(b, uir_build_reduce(b, UIR_OP_REDUCE_MAX, x, axes, rank, false), none);
    uir_value_id range = subtract(b, high, low);
    uir_value_id scale = uir_build_select(b, equal(b, range, none), scalar_like(b, x, 1), divide_scalar(b, range, 255));
    uir_value_id zero = round_even(b, uir_network_clamp(b, divide(b, negate(b, low), scale), 0, 255));
    *out_zero = uir_build_cast(b, zero, UIR_DTYPE_U8);
    *out_scale = scale;
    return uir_network_quantize(b, divide(b, x, scale), *out_zero, UIR_DTYPE_U8, true);
}

uir_status uir_rule_dynamic_quantize_linear(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), scale, zero;
    (void)uir_rule_rank(context, x);
    if (b->status != UIR_STATUS_OK) return b->status;
    context->outputs[0] = uir_network_quantize_dynamically(b, x, &scale, &zero);
    if (uir_rule_has_output(context, 1)) context->outputs[1] = scale;
    if (uir_rule_has_output(context, 2)) context->outputs[2] = zero;
    return b->status;
}
