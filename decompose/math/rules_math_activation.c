/* Activations: formulas of the operator documents of ONNX. Half types compute in f32 and round once at the end. */
#include "decompose/rules.h"

static uir_value_id begin(uir_rule_context *context) {
    return uir_rule_widen(context, uir_rule_input(context, 0));
}

static uir_status end(uir_rule_context *context, uir_value_id result) {
    uir_dtype dtype = uir_rule_dtype(context, uir_rule_input(context, 0));
    context->outputs[0] = uir_build_cast(&context->builder, result, dtype);
    return context->builder.status;
}

/* exp(x) - 1 without the cancellation near 0: (exp(x) + 1) * tanh(x / 2). */
static uir_value_id exp_minus_one(uir_rule_context *context, uir_value_id x) {
    uir_builder *b = &context->builder;
    uir_value_id half = uir_build_unary(b, UIR_OP_TANH, uir_rule_binary_number(context, UIR_OP_MUL, x, 0.5));
    uir_value_id sum = uir_rule_binary_number(context, UIR_OP_ADD, uir_build_unary(b, UIR_OP_EXP, x), 1);
    return uir_build_binary(b, UIR_OP_MUL, sum, half);
}

static uir_value_id choose_negative(uir_rule_context *context, uir_value_id x, uir_value_id when_negative) {
    uir_value_id negative = uir_rule_binary_number(context, UIR_OP_LT, x, 0);
    return uir_build_select(&context->builder, negative, when_negative, x);
}

static uir_value_id softplus(uir_rule_context *context, uir_value_id x) {
    uir_builder *b = &context->builder;
    uir_value_id decay =
        uir_build_unary(b, UIR_OP_EXP, uir_build_unary(b, UIR_OP_NEG, uir_build_unary(b, UIR_OP_ABS, x)));
    return uir_build_binary(b, UIR_OP_ADD, uir_rule_binary_number(context, UIR_OP_MAX, x, 0),
                            uir_build_unary(b, UIR_OP_LOG1P, decay));
}

uir_status uir_rule_relu(uir_rule_context *context) {
    return end(context, uir_rule_binary_number(context, UIR_OP_MAX, uir_rule_input(context, 0), 0));
}

uir_status uir_rule_elu(uir_rule_context *context) {
    uir_value_id x = begin(context);
    uir_value_id low =
        uir_rule_binary_number(context, UIR_OP_MUL, exp_minus_one(context, x), uir_rule_float(context, "alpha", 1));
    return end(context, choose_negative(context, x, low));
}

uir_status uir_rule_selu(uir_rule_context *context) {
    const bool first = context->since_version < 6;
    const double alpha = first ? 1.6732f : 1.67326319217681884765625,
                 gamma = first ? 1.0507f : 1.05070102214813232421875;
    uir_value_id x = begin(context);
    uir_value_id low =
        uir_rule_binary_number(context, UIR_OP_MUL, exp_minus_one(context, x), uir_rule_float(context, "alpha", alpha));
    uir_value_id result = choose_negative(context, x, low);
    return end(context, uir_rule_binary_number(context, UIR_OP_MUL, result, uir_rule_float(context, "gamma", gamma)));
}

uir_status uir_rule_celu(uir_rule_context *context) {
    uir_value_id x = begin(context);
    double alpha = uir_rule_float(context, "alpha", 1);
    uir_value_id low = exp_minus_one(context, uir_rule_binary_number(context, UIR_OP_DIV, x, alpha));
    return end(context, choose_negative(context, x, uir_rule_binary_number(context, UIR_OP_MUL, low, alpha)));
}

uir_status uir_rule_leaky_relu(uir_rule_context *context) {
    uir_value_id x = begin(context);
    double alpha = uir_rule_float(context, "alpha", 0.01f);
    return end(context, choose_negative(context, x, uir_rule_binary_number(context, UIR_OP_MUL, x, alpha)));
}

uir_status uir_rule_prelu(uir_rule_context *context) {
    uir_value_id x = begin(context), slope = uir_rule_widen(context, uir_rule_input(context, 1));
    if (context->since_version < 7) { /* a slope for each channel, of axis 1 */
        uint32_t rank = uir_rule_rank(context, x), own = uir_rule_rank(context, slope);
        int64_t axes[UIR_MAX_RANK];
        for (uint32_t i = 0; i + 2 < rank; i++) axes[i] = i + 1;
        if (own == 1 && rank > 2) slope = uir_build_unsqueeze(&context->builder, slope, axes, rank - 2);
    }
    uir_value_id low = uir_build_binary(&context->builder, UIR_OP_MUL, x, slope);
    return end(context, choose_negative(context, x, low));
}

uir_status uir_rule_thresholded_relu(uir_rule_context *context) {
    uir_value_id x = begin(context);
    uir_value_id above = uir_rule_binary_number(context, UIR_OP_GT, x, uir_rule_float(context, "alpha", 1));
    return end(context, uir_build_select(&context->builder, above, x, uir_rule_number(context, x, 0)));
}

static uir_value_id hard_sigmoid(uir_rule_context *context, uir_value_id x, double alpha, double beta) {
    uir_value_id line = uir_rule_binary_number(context, UIR_OP_MUL, x, alpha);
    line = uir_rule_binary_number(context, UIR_OP_ADD, line, beta);
    line = uir_rule_binary_number(context, UIR_OP_MIN, line, 1);
    return uir_rule_binary_number(context, UIR_OP_MAX, line, 0);
}

uir_status uir_rule_hard_sigmoid(uir_rule_context *context) {
    return end(context, hard_sigmoid(context, begin(context), uir_rule_float(context, "alpha", 0.2f),
                                     uir_rule_float(context, "beta", 0.5)));
}

uir_status uir_rule_hard_swish(uir_rule_context *context) {
    uir_value_id x = begin(context);
    return end(context, uir_build_binary(&context->builder, UIR_OP_MUL, x, hard_sigmoid(context, x, 1.0 / 6, 0.5)));
}

uir_status uir_rule_softplus(uir_rule_context *context) {
    return end(context, softplus(context, begin(context)));
}

uir_status uir_rule_softsign(uir_rule_context *context) {
    uir_value_id x = begin(context);
    uir_value_id magnitude = uir_build_unary(&context->builder, UIR_OP_ABS, x);
    return end(context, uir_build_binary(&context->builder, UIR_OP_DIV, x,
                                         uir_rule_binary_number(context, UIR_OP_ADD, magnitude, 1)));
}

uir_status uir_rule_mish(uir_rule_context *context) {
    uir_value_id x = begin(context);
    uir_value_id gate = uir_build_unary(&context->builder, UIR_OP_TANH, softplus(context, x));
    return end(context, uir_build_binary(&context->builder, UIR_OP_MUL, x, gate));
}

/* x * sigmoid(alpha * x). */
static uir_value_id swish(uir_rule_context *context, uir_value_id x, double alpha) {
    uir_value_id scaled = alpha == 1 ? x : uir_rule_binary_number(context, UIR_OP_MUL, x, alpha);
    uir_value_id gate = uir_build_unary(&context->builder, UIR_OP_SIGMOID, scaled);
    return uir_build_binary(&context->builder, UIR_OP_MUL, x, gate);
}

uir_status uir_rule_swish(uir_rule_context *context) {
    return end(context, swish(context, begin(context), uir_rule_float(context, "alpha", 1)));
}

uir_status uir_rule_quick_gelu(uir_rule_context *context) {
    return end(context, swish(context, begin(context), uir_rule_float(context, "alpha", 1.702f)));
}

/* Exactly: x/2 * (1 + erf(x / sqrt 2)); by tanh: x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))). */
static uir_value_id gelu(uir_rule_context *context, uir_value_id x, bool by_tanh) {
    uir_builder *b = &context->builder;
    uir_value_id inner;
    if (by_tanh) {
        uir_value_id cube = uir_build_binary(b, UIR_OP_MUL, x, uir_build_binary(b, UIR_OP_MUL, x, x));
        inner = uir_build_binary(b, UIR_OP_ADD, x, uir_rule_binary_number(context, UIR_OP_MUL, cube, 0.044715));
        inner = uir_rule_binary_number(context, UIR_OP_MUL, inner, 0.79788456080286535588);
        inner = uir_build_unary(b, UIR_OP_TANH, inner);
    } else {
        inner = uir_build_unary(b, UIR_OP_ERF, uir_rule_binary_number(context, UIR_OP_MUL, x, 0.70710678118654752440));
    }
    inner = uir_rule_binary_number(context, UIR_OP_ADD, inner, 1);
    return uir_build_binary(b, UIR_OP_MUL, uir_rule_binary_number(context, UIR_OP_MUL, x, 0.5), inner);
}

uir_status uir_rule_gelu(uir_rule_context *context) {
    bool by_tanh = uir_rule_string(context, "approximate", "none")[0] == 't';
    return end(context, gelu(context, begin(context), by_tanh));
}

/* com.microsoft: a bias along the last axis, where there is one, is added first. */
static uir_value_id begin_biased(uir_rule_context *context) {
    uir_value_id x = begin(context);
    if (!uir_rule_has_input(context, 1)) return x;
    return uir_build_binary(&context->builder, UIR_OP_ADD, x, uir_rule_widen(context, uir_rule_input(context, 1)));
}

uir_status uir_rule_ms_gelu(uir_rule_context *context) {
    return end(context, gelu(context, begin_biased(context), false));
}

uir_status uir_rule_fast_gelu(uir_rule_context *context) {
    return end(context, gelu(context, begin_biased(context), true));
}

/* Integers go through f64: threshold and bias are real numbers. */
uir_status uir_rule_shrink(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = begin(context);
    if (uir_dtype_is_integer(uir_rule_dtype(context, x))) x = uir_build_cast(b, x, UIR_DTYPE_F64);
    double bias = uir_rule_float(context, "bias", 0), threshold = uir_rule_float(context, "lambd", 0.5);
    uir_value_id below = uir_rule_binary_number(context, UIR_OP_LT, x, -threshold);
    uir_value_id above = uir_rule_binary_number(context, UIR_OP_GT, x, threshold);
    uir_value_id high = uir_build_select(b, above, uir_rule_binary_number(context, UIR_OP_SUB, x, bias),
                                         uir_rule_number(context, x, 0));
    return end(context, uir_build_select(b, below, uir_rule_binary_number(context, UIR_OP_ADD, x, bias), high));
}
