/* Slice, Split, Concat and Pad. Where starts, ends, axes, steps or pads are operands known only at run time, positions
 * are computed as data. Meaning: the operator documents of ONNX. */
#include "decompose/math/rules_math.h"

#include <stdio.h>

/* Positions that users write for "to the end" (INT64_MAX, INT32_MAX, and their negatives) are beyond any extent. */
#define FAR ((int64_t)1 << 48)

/* ---- Slice ---- */

/* A position counted from the front: negative ones count from the end. Exact for every sign the dim may have. */
static uir_dim from_front(uir_rule_context *context, uir_dim position, uir_dim extent) {
    uir_dims *dims = context->builder.module->dims;
    int64_t min, max;
    uir_dim_bounds(dims, position, &min, &max);
    if (min >= 0) return position;
    if (max < 0) return uir_dim_add(dims, position, extent);
    uir_dim zero = uir_rule_dim(context, 0), one = uir_rule_dim(context, 1);
    uir_dim negative = uir_dim_min(dims, one, uir_dim_max(dims, zero, uir_dim_sub(dims, zero, position)));
    return uir_dim_add(dims, position, uir_dim_mul(dims, extent, negative));
}

/* numpy's clamping: to 0..extent going up, to -1..extent-1 going down. */
static uir_dim clamped(uir_rule_context *context, uir_dim position, uir_dim extent, int64_t step) {
    uir_dims *dims = context->builder.module->dims;
    uir_dim low = uir_rule_dim(context, step > 0 ? 0 : -1);
    uir_dim high = step > 0 ? extent : uir_dim_sub(dims, extent, uir_rule_dim(context, 1));
    int64_t known;
    if (uir_dim_is_const(dims, position, &known)) {
        if (known >= FAR) return high;
        if (known <= -FAR) return low;
    }
    position = from_front(context, position, extent);
    return uir_dim_max(dims, low, uir_dim_min(dims, high, position));
}

/* Start and number of elements along one axis. */
static void measure(uir_rule_context *context, uir_dim extent, uir_dim start, uir_dim end, int64_t step,
                    uir_dim *out_start, uir_dim *out_size) {
    uir_dims *dims = context->builder.module->dims;
    start = clamped(context, start, extent, step);
    end = clamped(context, end, extent, step);
    uir_dim span = step > 0 ? uir_dim_sub(dims, end, start) : uir_dim_sub(dims, start, end);
    span = uir_dim_max(dims, uir_rule_dim(context, 0), span);
    *out_start = start;
    *out_size = uir_dim_ceildiv(dims, span, uir_rule_dim(context, step > 0 ? step : -step));
}

/* Positions as dims; data read at run time is first brought within reach, so that no arithmetic on it overflows. */
static const uir_dim *positions(uir_rule_context *context, uir_value_id value, uint32_t *out_count) {
    if (!uir_math_known(context, value)) {
        value = uir_math_with(context, UIR_OP_MIN, uir_math_vector(context, value), FAR);
        value = uir_math_with(context, UIR_OP_MAX, value, -FAR);
    }
    return uir_rule_dims(context, value, -FAR, out_count);
}

/* Steps that the run tells, none of them 0; one beyond any extent takes the first element as one beyond FAR does, and
 * leaves room for what is computed with it. */
static uir_value_id read_steps(uir_rule_context *context, uir_value_id value) {
    uir_builder *b = &context->builder;
    uint32_t count;
    value = uir_math_with(context, UIR_OP_MIN, uir_math_vector(context, value), FAR);
    value = uir_math_with(context, UIR_OP_MAX, value, -FAR);
    const uir_dim *steps = uir_math_count(context, value) < 0 ? NULL : uir_rule_dims(context, value, -FAR, &count);
    for (uint32_t i = 0; steps && i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "step %u", i);
        uir_build_check(b, name, steps[i], UIR_RELATION_NE, false, "", uir_rule_dim(context, 0));
    }
    return value;
}

/* Everything as data: each axis is gathered at start + i * step. */
static void slice_unknown(uir_rule_context *context, uir_value_id x, uint32_t rank) {
    uir_builder *b = &context->builder;
    uir_value_id shape = uir_math_shape(context, x), axes = uir_rule_input(context, 3);
    uir_value_id zeros = uir_math_with(context, UIR_OP_MUL, shape, 0),
                 ones = uir_math_with(context, UIR_OP_ADD, zeros, 1);
    uir_value_id starts = uir_math_vector(context, uir_rule_input(context, 1));
    const uir_dim *length = uir_rule_extents(context, starts);
    if (!length) return;
    if (!axes.id) axes = uir_math_iota(context, length[0]);
    uir_value_id start = uir_math_per_axis(context, axes, starts, zeros, rank);
    uir_value_id end = uir_math_per_axis(context, axes, uir_rule_input(context, 2), shape, rank);
    uir_value_id step = ones;
    if (uir_rule_has_input(context, 4))
        step = uir_math_per_axis(context, axes, read_steps(context, uir_rule_input(context, 4)), ones, rank);
    uir_value_id upward = uir_math_with(context, UIR_OP_GT, step, 0);
    uir_value_id low = uir_build_select(b, upward, zeros, uir_math_with(context, UIR_OP_SUB, zeros, 1));
    uir_value_id high = uir_build_binary(b, UIR_OP_ADD, shape, low);
    uir_value_id ends[2] = {start, end};
    for (int i = 0; i < 2; i++) {
        uir_value_id negative = uir_math_with(context, UIR_OP_LT, ends[i], 0);
        ends[i] = uir_build_select(b, negative, uir_build_binary(b, UIR_OP_ADD, ends[i], shape), ends[i]);
        ends[i] = uir_build_binary(b, UIR_OP_MAX, low, uir_build_binary(b, UIR_OP_MIN, high, ends[i]));
    }
    uir_value_id span = uir_build_binary(b, UIR_OP_SUB, ends[1], ends[0]);
    uir_value_id rounding = uir_build_binary(b, UIR_OP_SUB, step, uir_build_unary(b, UIR_OP_SIGN, step));
    uir_value_id sizes = uir_build_binary(b, UIR_OP_DIV, uir_build_binary(b, UIR_OP_ADD, span, rounding), step);
    uint32_t count;
    const uir_dim *counts = uir_rule_dims(context, uir_math_with(context, UIR_OP_MAX, sizes, 0), 0, &count);
    for (uint32_t d = 0; d < rank && b->status == UIR_STATUS_OK; d++) {
        uir_value_id at = uir_build_integer_scalar(b, UIR_DTYPE_I64, d);
        uir_value_id index =
            uir_build_binary(b, UIR_OP_MUL, uir_math_iota(context, counts[d]), uir_build_gather(b, step, at, 0));
        x = uir_math_take(context, x, uir_build_binary(b, UIR_OP_ADD, index, uir_build_gather(b, ends[0], at, 0)), d);
    }
    context->outputs[0] = x;
}

static bool read_list(uir_rule_context *context, const char *attribute, uint32_t input, const uir_dim **out_dims,
                      uint32_t *out_count) {
    if (context->since_version >= 10) {
        *out_dims = positions(context, uir_rule_input(context, input), out_count);
        return *out_dims != NULL;
    }
    const int64_t *values;
    int64_t count = uir_rule_ints(context, attribute, &values);
    if (count < 0) uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "the attribute %s is missing", attribute);
    uir_dim *dims = uir_rule_allocate(context, (size_t)(count < 0 ? 0 : count) + 1, sizeof *dims);
    for (int64_t i = 0; dims && i < count; i++) dims[i] = uir_rule_dim(context, values[i]);
    *out_dims = dims;
    *out_count = count < 0 ? 0 : (uint32_t)count;
    return context->builder.status == UIR_STATUS_OK;
}

static void slice_known(uir_rule_context *context, uir_value_id x, uint32_t rank, const uir_dim *extents) {
    uir_builder *b = &context->builder;
    const uir_dim *starts, *ends;
    const int64_t *axes, *steps;
    uint32_t start_count, end_count, axis_count, step_count;
    if (!read_list(context, "starts", 1, &starts, &start_count) || !read_list(context, "ends", 2, &ends, &end_count))
        return;
    bool has_axes = uir_rule_integers(context, "axes", 3, &axes, &axis_count);
    bool has_steps = uir_rule_integers(context, NULL, 4, &steps, &step_count);
    if (b->status != UIR_STATUS_OK) return;
    if (start_count != end_count || (has_axes && axis_count != start_count) ||
        (has_steps && step_count != start_count) || (!has_axes && start_count > rank)) {
        uir_builder_fail(b, UIR_STATUS_BAD_FILE, "starts, ends, axes and steps have different lengths");
        return;
    }
    uir_dim from[UIR_MAX_RANK], sizes[UIR_MAX_RANK];
    int64_t strides[UIR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++) {
        from[d] = uir_rule_dim(context, 0);
        sizes[d] = extents[d];
        strides[d] = 1;
    }
    for (uint32_t i = 0; i < start_count && b->status == UIR_STATUS_OK; i++) {
        int64_t axis = uir_rule_axis(context, has_axes ? axes[i] : i, rank), step = has_steps ? steps[i] : 1;
        if (step == 0) uir_builder_fail(b, UIR_STATUS_BAD_FILE, "a step is 0");
        if (b->status != UIR_STATUS_OK) return;
        step = step > FAR ? FAR : step < -FAR ? -FAR : step;
        measure(context, extents[axis], starts[i], ends[i], step, &from[axis], &sizes[axis]);
        strides[axis] = step;
    }
    context->outputs[0] = uir_build_slice(b, x, from, sizes, strides);
}

uir_status uir_rule_slice(uir_rule_context *context) {
    uir_value_id x = uir_rule_input(context, 0), axes = uir_rule_input(context, 3), steps = uir_rule_input(context, 4);
    uint32_t rank = uir_rule_rank(context, x);
    const uir_dim *extents = uir_rule_extents(context, x);
    if (!extents) return context->builder.status;
    bool known = context->since_version < 10 || uir_math_count(context, uir_rule_input(context, 1)) >= 0;
    known = known && (!axes.id || uir_rule_constant(context, axes)) && (!steps.id || uir_rule_constant(context, steps));
    if (known)
        slice_known(context, x, rank, extents);
    else
        slice_unknown(context, x, rank);
    return context->builder.status;
}

/* ---- Split ---- */

static uir_status split_sizes(uir_rule_context *context, uir_dim extent, uir_dim *sizes) {
    uir_dims *dims = context->builder.module->dims;
    uint32_t parts = context->output_count, count;
    if (uir_rule_has_input(context, 1)) {
        const uir_dim *given = uir_rule_dims(context, uir_rule_input(context, 1), 0, &count);
        for (uint32_t i = 0; given && i < parts && i < count; i++) sizes[i] = given[i];
        if (given && count != parts)
            return uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "%u split sizes for %u outputs", count,
                                    parts);
        return context->builder.status;
    }
    const int64_t *integers;
    int64_t given = uir_rule_ints(context, "split", &integers);
    if (given >= 0 && given != parts)
        return uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "%lld split sizes for %u outputs",
                                (long long)given, parts);
    for (int64_t i = 0; i < given; i++) sizes[i] = uir_rule_dim(context, integers[i]);
    if (given >= 0) return context->builder.status;
    /* Equal parts; the last ones are smaller when they do not divide. */
    uir_dim part = uir_dim_ceildiv(dims, extent, uir_rule_dim(context, parts));
    if (context->since_version < 18) part = uir_dim_floordiv(dims, extent, uir_rule_dim(context, parts));
    uir_dim left = extent;
    for (uint32_t i = 0; i < parts; i++) {
        bool last = i + 1 == parts, constant = uir_dim_is_const(dims, left, NULL);
        sizes[i] = constant ? uir_dim_min(dims, part, left) : last ? left : part;
        left = uir_dim_sub(dims, left, sizes[i]);
    }
    return context->builder.status;
}

uir_status uir_rule_split(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    uint32_t rank = uir_rule_rank(context, x);
    const uir_dim *extents = uir_rule_extents(context, x);
    int64_t axis = uir_rule_axis(context, uir_rule_int(context, "axis", 0), rank);
    uir_dim *sizes = uir_rule_allocate(context, context->output_count + 1u, sizeof *sizes);
    if (b->status != UIR_STATUS_OK) return b->status;
    UIR_TRY(split_sizes(context, extents[axis], sizes));
    uir_dim start = uir_rule_dim(context, 0);
    for (uint32_t i = 0; i < context->output_count && b->status == UIR_STATUS_OK; i++) {
        context->outputs[i] = uir_math_cut(context, x, (uint32_t)axis, start, sizes[i]);
        start = uir_math_add(context, start, sizes[i]);
    }
    uir_build_check(b, "the sum of the split sizes", start, UIR_RELATION_EQ, false, "the extent of the axis",
                    extents[axis]);
    return b->status;
}

/* What is concatenated has the same extents along the other axes: where that is not proved, a run checks it, and all
 * operands have those of one, numbers where any has some. */
static void expect_alike(uir_rule_context *context, uir_value_id *operands, uint32_t rank, int64_t axis) {
    uir_builder *b = &context->builder;
    for (uint32_t d = 0; d < rank && b->status == UIR_STATUS_OK; d++) {
        if (d == (uint32_t)axis) continue;
        uir_dim extent = uir_build_extent(b, operands[0], d);
        for (uint32_t i = 1; i < context->input_count && !uir_dim_is_const(b->module->dims, extent, NULL); i++) {
            uir_dim other = uir_build_extent(b, operands[i], d);
            if (uir_dim_is_const(b->module->dims, other, NULL)) extent = other;
        }
        for (uint32_t i = 0; i < context->input_count; i++) operands[i] = uir_build_expect(b, operands[i], d, extent);
    }
}

static bool are_tensors_of_rank(uir_rule_context *context, uint32_t rank) {
    for (uint32_t i = 0; i < context->input_count; i++) {
        const uir_type *type = uir_value_type(context->builder.module, context->inputs[i]);
        if (type->kind != UIR_VALUE_TENSOR || !type->rank_known || type->rank != rank) return false;
    }
    return true;
}

uir_status uir_rule_concat(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uint32_t rank = uir_rule_rank(context, uir_rule_input(context, 0));
    int64_t axis = uir_rule_axis(context, uir_rule_int(context, "axis", 1), rank);
    uir_value_id *operands;
    UIR_TRY(b->status);
    UIR_TRY_ALLOCATE(operands,
                     uir_arena_copy(&b->module->arena, context->inputs, context->input_count * sizeof *operands));
    if (are_tensors_of_rank(context, rank)) expect_alike(context, operands, rank, axis);
    context->outputs[0] = uir_build_concat(b, operands, context->input_count, axis);
    return b->status;
}

/* ---- Pad ---- */

/* What is read for each position of the padded axis: an index into what is left of the operand. */
static uir_value_id border_of_rest(uir_rule_context *context, char mode, uir_dim size, uir_dim rest, uir_dim low) {
    uir_builder *b = &context->builder;
    uir_dims *dims = b->module->dims;
    uir_dim last = uir_dim_max(dims, uir_rule_dim(context, 0), uir_dim_sub(dims, rest, uir_rule_dim(context, 1)));
    uir_value_id at = uir_build_binary(b, UIR_OP_SUB, uir_math_iota(context, size),
                                       uir_build_dim_values(b, &low, 1, true, UIR_DTYPE_I64));
    uir_value_id limit = uir_build_dim_values(b, &last, 1, true, UIR_DTYPE_I64);
    if (mode == 'e') /* edge */
        return uir_build_binary(b, UIR_OP_MAX, uir_build_binary(b, UIR_OP_MIN, at, limit),
                                uir_build_integer_scalar(b, UIR_DTYPE_I64, 0));
    if (mode == 'w') /* wrap: modulo the extent */
        return uir_build_binary(b, UIR_OP_MOD, at, uir_math_with(context, UIR_OP_ADD, limit, 1));
    /* reflect: a wave of period 2 * last, as numpy repeats it */
    uir_value_id period = uir_math_with(context, UIR_OP_MAX, uir_math_with(context, UIR_OP_MUL, limit, 2), 1);
    at = uir_build_binary(b, UIR_OP_MOD, at, period);
    return uir_build_binary(b, UIR_OP_MIN, at, uir_build_binary(b, UIR_OP_SUB, period, at));
}

/* An index into the operand, whatever the sign of the padding. ONNX does not say what goes first where one end of an
 * axis is cut off and the other is padded, and its reference refuses to cut: here what is cut off is gone, and the rest
 * is repeated, as onnxruntime has it. */
static uir_value_id border_index(uir_rule_context *context, char mode, uir_dim extent, uir_dim low, uir_dim high) {
    uir_builder *b = &context->builder;
    uir_dims *dims = b->module->dims;
    uir_dim size = uir_dim_add(dims, uir_dim_add(dims, extent, low), high), zero = uir_rule_dim(context, 0);
    uir_dim before = uir_dim_max(dims, zero, low), cut = uir_dim_sub(dims, before, low);
    uir_dim rest = uir_dim_add(dims, uir_dim_sub(dims, extent, cut), uir_dim_min(dims, zero, high));
    uir_value_id at = border_of_rest(context, mode, size, rest, before);
    if (uir_math_is(context, cut, 0)) return at;
    return uir_build_binary(b, UIR_OP_ADD, at, uir_build_dim_values(b, &cut, 1, true, UIR_DTYPE_I64));
}

static bool read_pads(uir_rule_context *context, uint32_t rank, uir_dim *low, uir_dim *high) {
    uir_builder *b = &context->builder;
    uir_value_id value = uir_rule_input(context, 1), data_axes = uir_rule_input(context, 3);
    const uir_dim *pads = NULL;
    uint32_t count = 0, axis_count = rank;
    for (uint32_t d = 0; d < rank; d++) low[d] = high[d] = uir_rule_dim(context, 0);
    if (context->since_version < 11) {
        const int64_t *given;
        int64_t given_count = uir_rule_ints(context, context->since_version < 2 ? "paddings" : "pads", &given);
        uir_dim *dims = uir_rule_allocate(context, 2 * UIR_MAX_RANK, sizeof *dims);
        for (int64_t i = 0; dims && i < given_count && i < 2 * UIR_MAX_RANK; i++)
            dims[i] = uir_rule_dim(context, given[i]);
        pads = dims;
        count = given_count < 0 ? 0 : (uint32_t)given_count;
    } else if (data_axes.id && !uir_rule_constant(context, data_axes)) {
        /* Spread over all axes as data; then the axes are 0, 1, .. */
        data_axes = uir_math_vector(context, data_axes);
        uir_dim half = uir_build_extent(b, data_axes, 0), two = uir_rule_dim(context, 2);
        uir_value_id list = uir_build_expect(b, uir_math_vector(context, value), 0, uir_math_mul(context, half, two));
        uir_value_id halves[2];
        uir_value_id zeros = uir_math_with(context, UIR_OP_MUL, uir_math_iota(context, uir_rule_dim(context, rank)), 0);
        for (int i = 0; i < 2; i++) {
            halves[i] = uir_math_cut(context, list, 0, i ? half : uir_rule_dim(context, 0), half);
            halves[i] = uir_math_per_axis(context, data_axes, halves[i], zeros, rank);
        }
        data_axes = (uir_value_id){0};
        pads = uir_rule_dims(context, uir_build_concat(b, halves, 2, 0), -FAR, &count);
    } else {
        pads = uir_rule_dims(context, value, -FAR, &count);
    }
    const int64_t *axes = NULL;
    if (data_axes.id) uir_rule_constant_integers(context, data_axes, &axes, &axis_count);
    if (b->status == UIR_STATUS_OK && count != 2 * axis_count)
        uir_builder_fail(b, UIR_STATUS_BAD_FILE, "%u pads for %u axes", count, axis_count);
    for (uint32_t i = 0; i < axis_count && b->status == UIR_STATUS_OK; i++) {
        int64_t axis = axes ? uir_rule_axis(context, axes[i], rank) : i;
        low[axis] = pads[i];
        high[axis] = pads[axis_count + i];
    }
    return b->status == UIR_STATUS_OK;
}

uir_status uir_rule_pad(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), value = uir_rule_input(context, 2);
    uint32_t rank = uir_rule_rank(context, x);
    const uir_dim *extents = uir_rule_extents(context, x);
    uir_dim low[UIR_MAX_RANK], high[UIR_MAX_RANK];
    int64_t interior[UIR_MAX_RANK] = {0};
    const char *mode = uir_rule_string(context, "mode", "constant");
    if (!extents || !read_pads(context, rank, low, high)) return b->status;
    if (mode[0] == 'c') {
        double number = uir_rule_float(context, "value", 0);
        value = value.id ? uir_rule_scalar(context, value) : uir_rule_number(context, x, number);
        context->outputs[0] = uir_build_pad(b, x, value, low, high, interior);
        return b->status;
    }
    if (mode[0] != 'r' && mode[0] != 'e' && mode[0] != 'w')
        return uir_builder_fail(b, UIR_STATUS_UNSUPPORTED, "mode '%s' is not supported", mode);
    for (uint32_t d = 0; d < rank && b->status == UIR_STATUS_OK; d++) {
        if (uir_math_is(context, low[d], 0) && uir_math_is(context, high[d], 0)) continue;
        x = uir_math_take(context, x, border_index(context, mode[0], extents[d], low[d], high[d]), d);
    }
    context->outputs[0] = x;
    return b->status;
}
