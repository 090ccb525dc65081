/* Elementwise ops that are one primitive or nearly so. Meaning: the operator documents of ONNX. */
#include "decompose/rules.h"

#include <string.h>

static const uir_op direct[UIR_OP_COUNT] = {
    [UIR_OP_ONNX_ABS] = UIR_OP_ABS,
    [UIR_OP_ONNX_NEG] = UIR_OP_NEG,
    [UIR_OP_ONNX_SIGN] = UIR_OP_SIGN,
    [UIR_OP_ONNX_FLOOR] = UIR_OP_FLOOR,
    [UIR_OP_ONNX_CEIL] = UIR_OP_CEIL,
    [UIR_OP_ONNX_ROUND] = UIR_OP_ROUND,
    [UIR_OP_ONNX_SQRT] = UIR_OP_SQRT,
    [UIR_OP_ONNX_EXP] = UIR_OP_EXP,
    [UIR_OP_ONNX_LOG] = UIR_OP_LOG,
    [UIR_OP_ONNX_ERF] = UIR_OP_ERF,
    [UIR_OP_ONNX_TANH] = UIR_OP_TANH,
    [UIR_OP_ONNX_SIGMOID] = UIR_OP_SIGMOID,
    [UIR_OP_ONNX_SIN] = UIR_OP_SIN,
    [UIR_OP_ONNX_COS] = UIR_OP_COS,
    [UIR_OP_ONNX_TAN] = UIR_OP_TAN,
    [UIR_OP_ONNX_ASIN] = UIR_OP_ASIN,
    [UIR_OP_ONNX_ACOS] = UIR_OP_ACOS,
    [UIR_OP_ONNX_ATAN] = UIR_OP_ATAN,
    [UIR_OP_ONNX_SINH] = UIR_OP_SINH,
    [UIR_OP_ONNX_COSH] = UIR_OP_COSH,
    [UIR_OP_ONNX_ASINH] = UIR_OP_ASINH,
    [UIR_OP_ONNX_ACOSH] = UIR_OP_ACOSH,
    [UIR_OP_ONNX_ATANH] = UIR_OP_ATANH,
    [UIR_OP_ONNX_IS_NAN] = UIR_OP_IS_NAN,
    [UIR_OP_ONNX_NOT] = UIR_OP_NOT,
    [UIR_OP_ONNX_BITWISE_NOT] = UIR_OP_BIT_NOT,
    [UIR_OP_ONNX_ADD] = UIR_OP_ADD,
    [UIR_OP_ONNX_SUB] = UIR_OP_SUB,
    [UIR_OP_ONNX_MUL] = UIR_OP_MUL,
    [UIR_OP_ONNX_DIV] = UIR_OP_DIV,
    [UIR_OP_ONNX_AND] = UIR_OP_AND,
    [UIR_OP_ONNX_OR] = UIR_OP_OR,
    [UIR_OP_ONNX_XOR] = UIR_OP_XOR,
    [UIR_OP_ONNX_BITWISE_AND] = UIR_OP_BIT_AND,
    [UIR_OP_ONNX_BITWISE_OR] = UIR_OP_BIT_OR,
    [UIR_OP_ONNX_BITWISE_XOR] = UIR_OP_BIT_XOR,
    [UIR_OP_ONNX_EQUAL] = UIR_OP_EQ,
    [UIR_OP_ONNX_LESS] = UIR_OP_LT,
    [UIR_OP_ONNX_LESS_OR_EQUAL] = UIR_OP_LE,
    [UIR_OP_ONNX_GREATER] = UIR_OP_GT,
    [UIR_OP_ONNX_GREATER_OR_EQUAL] = UIR_OP_GE,
    [UIR_OP_ONNX_MAX] = UIR_OP_MAX,
    [UIR_OP_ONNX_MIN] = UIR_OP_MIN,
    [UIR_OP_ONNX_SUM] = UIR_OP_ADD,
    [UIR_OP_ONNX_MEAN] = UIR_OP_ADD,
};

uir_status uir_rule_unary(uir_rule_context *context) {
    context->outputs[0] = uir_build_unary(&context->builder, direct[context->op], uir_rule_input(context, 0));
    return context->builder.status;
}

/* The second operand. Before opset 7 `axis` says at which axis of the first one its own begin, where `broadcast` is
 * set; without it they are the last ones, as they are since. */
static uir_value_id second_operand(uir_rule_context *context) {
    uir_value_id b = uir_rule_input(context, 1);
    const bool placed = context->since_version < 7 && uir_rule_int(context, "broadcast", 0) != 0;
    if (!placed || !uir_rule_attribute(context, "axis")) return b;
    uint32_t rank = uir_rule_rank(context, uir_rule_input(context, 0)), own = uir_rule_rank(context, b);
    int64_t axis = uir_rule_axis(context, uir_rule_int(context, "axis", 0), rank), axes[UIR_MAX_RANK];
    if (!own || context->builder.status != UIR_STATUS_OK) return b;
    if (axis + own > rank) {
        uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE,
                         "an operand of rank %u does not fit at axis %lld of one of rank %u", own, (long long)axis,
                         rank);
        return b;
    }
    uint32_t after = rank - own - (uint32_t)axis;
    for (uint32_t i = 0; i < after; i++) axes[i] = own + i;
    return uir_build_unsqueeze(&context->builder, b, axes, after);
}

uir_status uir_rule_binary(uir_rule_context *context) {
    context->outputs[0] =
        uir_build_binary(&context->builder, direct[context->op], uir_rule_input(context, 0), second_operand(context));
    return context->builder.status;
}

uir_status uir_rule_variadic(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    bool sums = direct[context->op] == UIR_OP_ADD && context->input_count > 1;
    uir_dtype dtype = uir_rule_dtype(context, uir_rule_input(context, 0));
    uir_value_id result = uir_rule_input(context, 0);
    if (sums) result = uir_rule_widen(context, result);
    for (uint32_t i = 1; i < context->input_count; i++) {
        uir_value_id next = uir_rule_input(context, i);
        result = uir_build_binary(b, direct[context->op], result, sums ? uir_rule_widen(context, next) : next);
    }
    if (context->op == UIR_OP_ONNX_MEAN && context->input_count > 1)
        result = uir_rule_binary_number(context, UIR_OP_DIV, result, context->input_count);
    context->outputs[0] = uir_build_cast(b, result, dtype);
    return b->status;
}

uir_status uir_rule_where(uir_rule_context *context) {
    context->outputs[0] = uir_build_select(&context->builder, uir_rule_input(context, 0), uir_rule_input(context, 1),
                                           uir_rule_input(context, 2));
    return context->builder.status;
}

/* Constant numbers that f32 has too. */
static bool fits_f32(uir_rule_context *context, uir_value_id value) {
    const uir_tensor *tensor = uir_rule_constant(context, value);
    if (!tensor) return false;
    for (uint64_t i = 0; i < tensor->element_count; i++) {
        double number = uir_dtype_is_float(tensor->dtype)
                            ? uir_dtype_load_double(tensor->dtype, tensor->data, i)
                            : (double)uir_dtype_load_integer(tensor->dtype, tensor->data, i);
        if ((double)(float)number != number) return false;
    }
    return true;
}

/* In which dtype a power is computed: one that has every base and exponent. Integers wrap, so that i64 (u64) gives the
 * low bits of any narrower integer power. */
static uir_dtype power_dtype(uir_rule_context *context, uir_dtype base, uir_dtype other, uir_value_id exponent) {
    if (base == other) return base;
    if (uir_dtype_is_integer(base)) {
        if (uir_dtype_is_float(other)) return UIR_DTYPE_F64;
        return base == UIR_DTYPE_U64 ? UIR_DTYPE_U64 : UIR_DTYPE_I64;
    }
    bool wide = base == UIR_DTYPE_F64 || other == UIR_DTYPE_F64 ||
                (uir_dtype_is_integer(other) && uir_dtype_bits(other) >= 32);
    if (wide && base != UIR_DTYPE_F64 && fits_f32(context, exponent)) wide = false;
    return wide ? UIR_DTYPE_F64 : UIR_DTYPE_F32;
}

/* The result has the base's dtype. */
uir_status uir_rule_pow(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id base = uir_rule_input(context, 0), exponent = second_operand(context);
    uir_dtype from = uir_rule_dtype(context, base);
    uir_dtype compute = power_dtype(context, from, uir_rule_dtype(context, exponent), exponent);
    uir_value_id power =
        uir_build_binary(b, UIR_OP_POW, uir_build_cast(b, base, compute), uir_build_cast(b, exponent, compute));
    context->outputs[0] = uir_build_cast(b, power, from);
    return b->status;
}

uir_status uir_rule_mod(uir_rule_context *context) {
    uir_op op = uir_rule_int(context, "fmod", 0) ? UIR_OP_REMAINDER : UIR_OP_MOD;
    context->outputs[0] =
        uir_build_binary(&context->builder, op, uir_rule_input(context, 0), uir_rule_input(context, 1));
    return context->builder.status;
}

uir_status uir_rule_bit_shift(uir_rule_context *context) {
    bool left = uir_rule_string_is(context, "direction", "", "LEFT");
    if (!left && !uir_rule_string_is(context, "direction", "", "RIGHT"))
        return uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE,
                                "attribute direction is '%s'; it must be LEFT or RIGHT",
                                uir_rule_string(context, "direction", ""));
    context->outputs[0] = uir_build_binary(&context->builder, left ? UIR_OP_SHIFT_LEFT : UIR_OP_SHIFT_RIGHT,
                                           uir_rule_input(context, 0), uir_rule_input(context, 1));
    return context->builder.status;
}

/* The element types that Cast-1 names, by the names of TensorProto.DataType. */
static uir_dtype named_dtype(uir_rule_context *context) {
    static const struct {
        const char *name;
        uir_dtype dtype;
    } rows[] = {{"FLOAT", UIR_DTYPE_F32},    {"DOUBLE", UIR_DTYPE_F64}, {"FLOAT16", UIR_DTYPE_F16},
                {"INT8", UIR_DTYPE_I8},      {"INT16", UIR_DTYPE_I16},  {"INT32", UIR_DTYPE_I32},
                {"INT64", UIR_DTYPE_I64},    {"UINT8", UIR_DTYPE_U8},   {"UINT16", UIR_DTYPE_U16},
                {"UINT32", UIR_DTYPE_U32},   {"UINT64", UIR_DTYPE_U64}, {"BOOL", UIR_DTYPE_BOOL},
                {"STRING", UIR_DTYPE_STRING}};
    const char *to = uir_rule_string(context, "to", "");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, to)) return rows[i].dtype;
    uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "attribute to is '%s', which is not an element type", to);
    return UIR_DTYPE_NONE;
}

static uir_dtype target_dtype(uir_rule_context *context) {
    if (context->op == UIR_OP_ONNX_CAST_LIKE) return uir_rule_dtype(context, uir_rule_input(context, 1));
    if (context->op == UIR_OP_ONNX_CAST && context->since_version < 6) return named_dtype(context);
    int64_t to = uir_rule_int(context, "to", 0);
    if (to > 0 && to < UIR_DTYPE_COUNT && uir_dtype_is_valid((int)to)) return (uir_dtype)to;
    uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "attribute to is %lld, which is not an element type",
                     (long long)to);
    return UIR_DTYPE_NONE;
}

uir_status uir_rule_cast(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    uir_dtype from = uir_rule_dtype(context, x), to = target_dtype(context);
    if (b->status != UIR_STATUS_OK) return b->status;
    bool complex_type =
        uir_dtype_get_class(from) == UIR_DTYPE_CLASS_COMPLEX || uir_dtype_get_class(to) == UIR_DTYPE_CLASS_COMPLEX;
    if (complex_type)
        return uir_builder_fail(b, UIR_STATUS_UNSUPPORTED, "a cast from %s to %s is not supported",
                                uir_dtype_name(from), uir_dtype_name(to));
    if (to == UIR_DTYPE_F8E8M0 && !uir_rule_string_is(context, "round_mode", "up", "up"))
        return uir_builder_fail(b, UIR_STATUS_UNSUPPORTED, "round_mode '%s' is not supported",
                                uir_rule_string(context, "round_mode", ""));
    if (from == to) {
        context->outputs[0] = x;
        return b->status;
    }
    uir_attribute attributes[2] = {uir_attribute_dtype(b, "to", to)};
    uint32_t count = 1;
    if (!uir_rule_int(context, "saturate", 1)) attributes[count++] = uir_attribute_int(b, "saturate", 0);
    uir_build_node(b, UIR_OP_CAST, &x, 1, attributes, count, context->outputs, 1);
    return b->status;
}

uir_status uir_rule_bit_cast(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    uir_dtype to = target_dtype(context);
    uir_attribute attribute = uir_attribute_dtype(b, "to", to);
    uir_build_node(b, UIR_OP_BIT_CAST, &x, 1, &attribute, 1, context->outputs, 1);
    return b->status;
}

uir_status uir_rule_is_inf(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    uir_attribute attributes[] = {uir_attribute_int(b, "positive", uir_rule_int(context, "detect_positive", 1) != 0),
                                  uir_attribute_int(b, "negative", uir_rule_int(context, "detect_negative", 1) != 0)};
    uir_build_node(b, UIR_OP_IS_INF, &x, 1, attributes, 2, context->outputs, 1);
    return b->status;
}

/* min(max(x, low), high): with low > high all is high, as the document says. */
uir_status uir_rule_clip(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id result = uir_rule_input(context, 0);
    uir_value_id low = uir_rule_input(context, 1), high = uir_rule_input(context, 2);
    if (context->since_version < 11) {
        if (uir_rule_attribute(context, "min"))
            low = uir_rule_number(context, result, uir_rule_float(context, "min", 0));
        if (uir_rule_attribute(context, "max"))
            high = uir_rule_number(context, result, uir_rule_float(context, "max", 0));
    }
    if (low.id) result = uir_build_binary(b, UIR_OP_MAX, result, low);
    if (high.id) result = uir_build_binary(b, UIR_OP_MIN, result, high);
    context->outputs[0] = result;
    return b->status;
}

uir_status uir_rule_reciprocal(uir_rule_context *context) {
    uir_value_id x = uir_rule_input(context, 0);
    context->outputs[0] = uir_build_binary(&context->builder, UIR_OP_DIV, uir_rule_number(context, x, 1), x);
    return context->builder.status;
}
