/* Ops that make tensors: constants, ranges, masks, random values. Meaning: the operator documents of ONNX. */
#include "decompose/math/rules_math.h"

static uir_dtype dtype_attribute(uir_rule_context *context, const char *name, uir_dtype fallback) {
    int64_t dtype = uir_rule_int(context, name, fallback);
    if (dtype > 0 && dtype < UIR_DTYPE_COUNT && uir_dtype_is_valid((int)dtype)) return (uir_dtype)dtype;
    uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "attribute %s is %lld, which is not an element type", name,
                     (long long)dtype);
    return UIR_DTYPE_F32;
}

/* ---- constants ---- */

static uir_tensor *new_tensor(uir_rule_context *context, uir_dtype dtype, bool scalar, int64_t count) {
    uir_tensor *tensor = NULL;
    uir_status status = uir_tensor_create(context->builder.module->allocator, dtype, scalar ? 0 : 1, &count, &tensor);
    if (status != UIR_STATUS_OK) context->builder.status = status;
    return tensor;
}

uir_value_id uir_math_constant_of(uir_rule_context *context, const uir_attribute *a) {
    uir_builder *b = &context->builder;
    bool one = a->kind == UIR_ATTRIBUTE_INT || a->kind == UIR_ATTRIBUTE_FLOAT || a->kind == UIR_ATTRIBUTE_STRING;
    uint32_t count = one ? 1 : a->count;
    uir_tensor *tensor = NULL;
    switch (a->kind) {
    case UIR_ATTRIBUTE_TENSOR:
        uir_tensor_retain(a->value.tensor);
        return uir_build_constant(b, a->value.tensor);
    case UIR_ATTRIBUTE_INT:
    case UIR_ATTRIBUTE_INTS:
        tensor = new_tensor(context, UIR_DTYPE_I64, one, count);
        for (uint32_t i = 0; tensor && i < count; i++)
            ((int64_t *)tensor->data)[i] = one ? a->value.integer : a->value.integers[i];
        break;
    case UIR_ATTRIBUTE_FLOAT:
    case UIR_ATTRIBUTE_FLOATS:
        tensor = new_tensor(context, UIR_DTYPE_F32, one, count);
        for (uint32_t i = 0; tensor && i < count; i++)
            ((float *)tensor->data)[i] = (float)(one ? a->value.real : a->value.reals[i]);
        break;
    case UIR_ATTRIBUTE_STRING:
    case UIR_ATTRIBUTE_STRINGS:
        tensor = new_tensor(context, UIR_DTYPE_STRING, one, count);
        for (uint32_t i = 0; tensor && i < count; i++) {
            uir_string text = one ? a->value.string : a->value.strings[i];
            uir_status status = uir_tensor_set_string(tensor, i, uir_string_text(&context->source->strings, text),
                                                      uir_string_length(&context->source->strings, text));
            if (status == UIR_STATUS_OK) continue;
            uir_tensor_release(tensor);
            b->status = status;
            tensor = NULL;
        }
        break;
    default:
        uir_builder_fail(b, UIR_STATUS_BAD_FILE, "the attribute kind of the value is not one of constants");
        break;
    }
    return tensor ? uir_build_constant(b, tensor) : (uir_value_id){0};
}

uir_status uir_rule_constant_node(uir_rule_context *context) {
    static const char *const names[] = {"value",        "value_int",    "value_ints",   "value_float",
                                        "value_floats", "value_string", "value_strings"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const uir_attribute *attribute = uir_rule_attribute(context, names[i]);
        if (!attribute) continue;
        context->outputs[0] = uir_math_constant_of(context, attribute);
        return context->builder.status;
    }
    return uir_builder_fail(&context->builder, UIR_STATUS_UNSUPPORTED,
                            "the constant has no dense value (sparse ones are not supported)");
}

uir_status uir_rule_constant_of_shape(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uint32_t rank;
    const uir_dim *dims = uir_rule_dims(context, uir_rule_input(context, 0), 0, &rank);
    const uir_attribute *attribute = uir_rule_attribute(context, "value");
    uir_value_id value;
    if (b->status != UIR_STATUS_OK) return b->status;
    if (attribute && attribute->kind == UIR_ATTRIBUTE_TENSOR) {
        uir_tensor_retain(attribute->value.tensor);
        value = uir_rule_scalar(context, uir_build_constant(b, attribute->value.tensor));
    } else {
        value = uir_build_scalar(b, UIR_DTYPE_F32, 0);
    }
    context->outputs[0] = uir_build_broadcast(b, value, dims, rank);
    return b->status;
}

/* ---- ranges and masks ---- */

/* The number of integers from start on, i64: as a dim where that can be told, which stays within 63 bits; else the
 * distance is a number of 64 bits. */
static uir_value_id count_integers(uir_rule_context *context, uir_value_id start, uir_value_id limit,
                                   uir_value_id step) {
    uir_builder *b = &context->builder;
    double known_step = 0;
    bool has_step = uir_rule_constant_number(context, step, &known_step);
    if (has_step && uir_math_known(context, start) && uir_math_known(context, limit) &&
        !(uir_rule_constant(context, start) && uir_rule_constant(context, limit))) {
        uir_value_id span = uir_build_binary(b, UIR_OP_SUB, limit, start);
        if (known_step == 1) return uir_math_with(context, UIR_OP_MAX, span, 0);
        uir_value_id rounding = uir_build_binary(b, UIR_OP_SUB, step, uir_build_unary(b, UIR_OP_SIGN, step));
        span = uir_build_binary(b, UIR_OP_DIV, uir_build_binary(b, UIR_OP_ADD, span, rounding), step);
        return uir_math_with(context, UIR_OP_MAX, span, 0);
    }
    uir_value_id upward = uir_math_with(context, UIR_OP_GT, step, 0);
    uir_value_id any = uir_build_select(b, upward, uir_build_binary(b, UIR_OP_GT, limit, start),
                                        uir_build_binary(b, UIR_OP_LT, limit, start));
    uir_value_id first = uir_build_select(b, upward, start, limit), last = uir_build_select(b, upward, limit, start);
    uir_value_id size = uir_build_select(b, upward, step, uir_build_unary(b, UIR_OP_NEG, step));
    uir_value_id span = uir_math_with(context, UIR_OP_SUB, uir_build_binary(b, UIR_OP_SUB, last, first), 1);
    uir_value_id steps =
        uir_build_binary(b, UIR_OP_DIV, uir_build_cast(b, span, UIR_DTYPE_U64), uir_build_cast(b, size, UIR_DTYPE_U64));
    steps = uir_math_with(context, UIR_OP_ADD, uir_build_cast(b, steps, UIR_DTYPE_I64), 1);
    return uir_build_select(b, any, steps, uir_build_integer_scalar(b, UIR_DTYPE_I64, 0));
}

/* max(0, ceil((limit - start) / step)) elements, start + i * step. Integers count in i64. Floats are counted and made
 * in f64 and rounded once, as the standard's reference has it: in their own type a count may be one off. */
uir_status uir_rule_range(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id ends[3];
    uir_dtype dtype = uir_rule_dtype(context, uir_rule_input(context, 0));
    bool whole = uir_dtype_is_integer(dtype);
    for (uint32_t i = 0; i < 3; i++) {
        ends[i] = uir_rule_scalar(context, uir_rule_input(context, i));
        ends[i] = uir_build_cast(b, ends[i], whole ? UIR_DTYPE_I64 : UIR_DTYPE_F64);
    }
    uir_value_id start = ends[0], limit = ends[1], step = ends[2], count;
    uir_value_id moves = whole ? step : uir_build_binary(b, UIR_OP_NE, step, uir_rule_number(context, step, 0));
    uint32_t one;
    const uir_dim *extent = uir_rule_dims(context, uir_build_cast(b, moves, UIR_DTYPE_I64), INT64_MIN, &one);
    if (!extent) return b->status;
    uir_build_check(b, "delta", *extent, UIR_RELATION_NE, false, "", uir_rule_dim(context, 0));
    if (whole) {
        count = count_integers(context, start, limit, step);
    } else {
        uir_value_id span = uir_build_binary(b, UIR_OP_SUB, limit, start);
        count = uir_build_unary(b, UIR_OP_CEIL, uir_build_binary(b, UIR_OP_DIV, span, step));
        count = uir_math_with(context, UIR_OP_MAX, uir_build_cast(b, count, UIR_DTYPE_I64), 0);
    }
    extent = uir_rule_dims(context, count, 0, &one);
    if (!extent) return b->status;
    uir_value_id index = uir_build_cast(b, uir_math_iota(context, *extent), uir_rule_dtype(context, start));
    uir_value_id result = uir_build_binary(b, UIR_OP_ADD, uir_build_binary(b, UIR_OP_MUL, index, step), start);
    context->outputs[0] = uir_build_cast(b, result, dtype);
    return b->status;
}

/* bool [rows, columns]: `op` of column - row and k. */
static uir_value_id diagonal_mask(uir_rule_context *context, uir_dim rows, uir_dim columns, uir_op op, uir_value_id k) {
    uir_builder *b = &context->builder;
    uir_dim dims[] = {rows, columns};
    uir_value_id row = uir_build_iota(b, UIR_DTYPE_I64, dims, 2, 0),
                 column = uir_build_iota(b, UIR_DTYPE_I64, dims, 2, 1);
    return uir_build_binary(b, op, uir_build_binary(b, UIR_OP_SUB, column, row), k);
}

uir_status uir_rule_eye_like(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    uir_dtype dtype = dtype_attribute(context, "dtype", uir_rule_dtype(context, x));
    uint32_t rank = uir_rule_rank(context, x);
    const uir_dim *extents = uir_rule_extents(context, x);
    if (!extents) return b->status;
    if (rank != 2) return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "the input has rank %u instead of 2", rank);
    uir_value_id k = uir_build_integer_scalar(b, UIR_DTYPE_I64, uir_rule_int(context, "k", 0));
    context->outputs[0] = uir_build_cast(b, diagonal_mask(context, extents[0], extents[1], UIR_OP_EQ, k), dtype);
    return b->status;
}

uir_status uir_rule_trilu(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), k = uir_rule_input(context, 1);
    uint32_t rank = uir_rule_rank(context, x);
    const uir_dim *extents = uir_rule_extents(context, x);
    if (!extents) return b->status;
    if (rank < 2)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "the input has rank %u; at least 2 is required", rank);
    k = k.id ? uir_build_cast(b, uir_rule_scalar(context, k), UIR_DTYPE_I64)
             : uir_build_integer_scalar(b, UIR_DTYPE_I64, 0);
    uir_op op = uir_rule_int(context, "upper", 1) ? UIR_OP_GE : UIR_OP_LE;
    uir_value_id mask = diagonal_mask(context, extents[rank - 2], extents[rank - 1], op, k);
    context->outputs[0] = uir_build_select(b, mask, x, uir_rule_number(context, x, 0));
    return b->status;
}

uir_status uir_rule_one_hot(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id indices = uir_rule_input(context, 0), values = uir_rule_input(context, 2);
    uir_value_id depth = uir_build_cast(b, uir_rule_input(context, 1), UIR_DTYPE_I64);
    uint32_t rank = uir_rule_rank(context, indices), count;
    const uir_dim *extent = uir_rule_dims(context, uir_rule_scalar(context, depth), 0, &count);
    int64_t axis = uir_rule_axis(context, uir_rule_int(context, "axis", -1), rank + 1);
    if (b->status != UIR_STATUS_OK) return b->status;
    indices = uir_rule_indices(context, uir_build_cast(b, indices, UIR_DTYPE_I64), *extent);
    uir_value_id places = uir_math_along(context, uir_math_iota(context, *extent), (uint32_t)axis, rank + 1);
    uir_value_id hot = uir_build_binary(b, UIR_OP_EQ, uir_math_insert_axis(context, indices, (uint32_t)axis), places);
    uir_value_id zero = uir_build_integer_scalar(b, UIR_DTYPE_I64, 0),
                 one = uir_build_integer_scalar(b, UIR_DTYPE_I64, 1);
    context->outputs[0] =
        uir_build_select(b, hot, uir_build_gather(b, values, one, 0), uir_build_gather(b, values, zero, 0));
    return b->status;
}

/* ---- random values ---- */

static uir_value_id random_values(uir_rule_context *context, uir_op op, const char *first, double first_value,
                                  const char *second, double second_value, uir_dtype dtype, const uir_dim *dims,
                                  uint32_t rank) {
    uir_builder *b = &context->builder;
    uir_attribute attributes[5] = {uir_attribute_dims(b, "dims", dims, rank), uir_attribute_dtype(b, "dtype", dtype),
                                   uir_attribute_float(b, first, first_value),
                                   uir_attribute_float(b, second, second_value)};
    uint32_t count = 4;
    if (uir_rule_attribute(context, "seed")) {
        /* ONNX seeds are floats; the bits of the number are the seed, so that 0.5 and 0.25 differ. */
        union {
            double number;
            int64_t bits;
        } seed = {.number = uir_rule_float(context, "seed", 0)};
        attributes[count++] = uir_attribute_int(b, "seed", seed.bits);
    }
    uir_value_id result;
    uir_build_node(b, op, NULL, 0, attributes, count, &result, 1);
    return result;
}

uir_status uir_rule_random(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    bool normal = context->op == UIR_OP_ONNX_RANDOM_NORMAL || context->op == UIR_OP_ONNX_RANDOM_NORMAL_LIKE;
    uir_dtype dtype = UIR_DTYPE_F32;
    const uir_dim *dims;
    uint32_t rank;
    if (uir_rule_has_input(context, 0)) {
        uir_value_id like = uir_rule_input(context, 0);
        rank = uir_rule_rank(context, like);
        dims = uir_rule_extents(context, like);
        if (uir_dtype_is_float(uir_rule_dtype(context, like))) dtype = uir_rule_dtype(context, like);
    } else {
        const int64_t *shape;
        int64_t count = uir_rule_ints(context, "shape", &shape);
        rank = count < 0 ? 0 : (uint32_t)count;
        uir_dim *made = uir_rule_allocate(context, rank + 1u, sizeof *made);
        for (uint32_t i = 0; made && i < rank; i++) made[i] = uir_rule_dim(context, shape[i]);
        dims = made;
    }
    dtype = dtype_attribute(context, "dtype", dtype);
    if (b->status != UIR_STATUS_OK) return b->status;
    context->outputs[0] = normal
                              ? random_values(context, UIR_OP_RANDOM_NORMAL, "mean", uir_rule_float(context, "mean", 0),
                                              "scale", uir_rule_float(context, "scale", 1), dtype, dims, rank)
                              : random_values(context, UIR_OP_RANDOM_UNIFORM, "low", uir_rule_float(context, "low", 0),
                                              "high", uir_rule_float(context, "high", 1), dtype, dims, rank);
    return b->status;
}

uir_status uir_rule_bernoulli(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    uir_dtype dtype = dtype_attribute(context, "dtype", uir_rule_dtype(context, x));
    uir_value_id wide = uir_rule_widen(context, x);
    uint32_t rank = uir_rule_rank(context, x);
    const uir_dim *extents = uir_rule_extents(context, x);
    uir_value_id drawn = random_values(context, UIR_OP_RANDOM_UNIFORM, "low", 0, "high", 1,
                                       uir_rule_dtype(context, wide), extents, rank);
    context->outputs[0] = uir_build_cast(b, uir_build_binary(b, UIR_OP_LT, drawn, wide), dtype);
    return b->status;
}

/* A uniform number lies in the class whose share of the cumulative probabilities it falls into. */
uir_status uir_rule_multinomial(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id logits = uir_rule_widen(context, uir_rule_input(context, 0)), sums;
    uint32_t rank = uir_rule_rank(context, logits);
    const uir_dim *extents = uir_rule_extents(context, logits);
    uir_dtype dtype = dtype_attribute(context, "dtype", UIR_DTYPE_I32);
    if (!extents) return b->status;
    if (rank != 2) return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "the input has rank %u instead of 2", rank);
    int64_t axis = 1;
    uir_value_id peak = uir_build_reduce(b, UIR_OP_REDUCE_MAX, logits, &axis, 1, true);
    uir_value_id shares = uir_build_unary(b, UIR_OP_EXP, uir_build_binary(b, UIR_OP_SUB, logits, peak));
    uir_value_id total = uir_build_reduce(b, UIR_OP_REDUCE_SUM, shares, &axis, 1, true);
    uir_attribute attributes[] = {uir_attribute_int(b, "axis", 1), uir_attribute_int(b, "exclusive", 0),
                                  uir_attribute_int(b, "reverse", 0)};
    uir_build_node(b, UIR_OP_SCAN_SUM, &shares, 1, attributes, 3, &sums, 1);
    uir_dim dims[] = {extents[0], uir_rule_dim(context, uir_rule_int(context, "sample_size", 1))};
    uir_value_id drawn =
        random_values(context, UIR_OP_RANDOM_UNIFORM, "low", 0, "high", 1, uir_rule_dtype(context, logits), dims, 2);
    drawn = uir_build_binary(b, UIR_OP_MUL, drawn, total);
    uir_value_id passed =
        uir_build_binary(b, UIR_OP_LE, uir_math_insert_axis(context, sums, 1), uir_math_insert_axis(context, drawn, 2));
    axis = 2;
    uir_value_id index =
        uir_build_reduce(b, UIR_OP_REDUCE_SUM, uir_build_cast(b, passed, UIR_DTYPE_I64), &axis, 1, false);
    uir_dim last = uir_math_sub(context, extents[1], uir_rule_dim(context, 1));
    index = uir_build_binary(b, UIR_OP_MIN, index, uir_build_dim_values(b, &last, 1, true, UIR_DTYPE_I64));
    context->outputs[0] = uir_build_cast(b, index, dtype);
    return b->status;
}
