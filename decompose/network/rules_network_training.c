/* One step of an optimiser (ai.onnx.preview.training): Adagrad, Adam, Momentum.
 *
 * Inputs R (learning rate), T (steps so far), then the tensors X..., gradients G..., and one or two states each;
 * outputs the new tensors and states in that order. */
#include "decompose/network/rules_network.h"

typedef struct optimiser {
    uir_rule_context *context;
    uir_value_id rate, steps; /* rank 0, dtype of the tensor being updated */
    uir_value_id started;     /* bool: steps > 0 */
} optimiser;

/* Updates one tensor; `values` are X, G, states...; `out` X, states... */
typedef void (*update_function)(const optimiser *o, const uir_value_id *values, uir_value_id *out);

static double coefficient(const optimiser *o, const char *name, double fallback) {
    return uir_rule_float(o->context, name, fallback);
}

/* G + norm_coefficient * X. */
static uir_value_id regularised(const optimiser *o, uir_value_id x, uir_value_id g) {
    uir_builder *b = &o->context->builder;
    return add(b, multiply_scalar(b, x, coefficient(o, "norm_coefficient", 0)), g);
}

static void adagrad(const optimiser *o, const uir_value_id *v, uir_value_id *out) {
    uir_builder *b = &o->context->builder;
    uir_value_id decay = add_scalar(b, multiply_scalar(b, o->steps, coefficient(o, "decay_factor", 0)), 1);
    uir_value_id g = regularised(o, v[0], v[1]);
    out[1] = add(b, v[2], square(b, g));
    uir_value_id root = add_scalar(b, square_root(b, out[1]), coefficient(o, "epsilon", 1e-6f));
    out[0] = subtract(b, v[0], divide(b, multiply(b, divide(b, o->rate, decay), g), root));
}

/* old * factor + (1 - factor) * now. */
static uir_value_id blend(uir_builder *b, uir_value_id old, uir_value_id now, double factor) {
    return add(b, multiply_scalar(b, old, factor), multiply_scalar(b, now, 1 - factor));
}

static void adam(const optimiser *o, const uir_value_id *v, uir_value_id *out) {
    uir_builder *b = &o->context->builder;
    double alpha = coefficient(o, "alpha", 0.9f), beta = coefficient(o, "beta", 0.999f);
    uir_value_id g = regularised(o, v[0], v[1]), one = scalar_like(b, o->rate, 1);
    out[1] = blend(b, v[2], g, alpha);
    out[2] = blend(b, v[3], square(b, g), beta);
    uir_value_id root = add_scalar(b, square_root(b, out[2]), coefficient(o, "epsilon", 1e-6f));
    uir_value_id first = subtract(b, one, power(b, scalar_like(b, o->rate, alpha), o->steps));
    uir_value_id second = subtract(b, one, power(b, scalar_like(b, o->rate, beta), o->steps));
    uir_value_id corrected = divide(b, multiply(b, o->rate, square_root(b, second)), first);
    uir_value_id rate = uir_build_select(b, o->started, corrected, o->rate);
    uir_value_id x = subtract(b, v[0], multiply(b, rate, divide(b, out[1], root)));
    out[0] = multiply_scalar(b, x, 1 - coefficient(o, "norm_coefficient_post", 0));
}

static void momentum(const optimiser *o, const uir_value_id *v, uir_value_id *out) {
    static const char *const modes[] = {"standard", "nesterov", NULL};
    uir_builder *b = &o->context->builder;
    double alpha = coefficient(o, "alpha", 0);
    uir_value_id g = regularised(o, v[0], v[1]);
    uir_value_id beta =
        uir_build_select(b, o->started, scalar_like(b, g, coefficient(o, "beta", 1)), scalar_like(b, g, 1));
    out[1] = add(b, multiply_scalar(b, v[2], alpha), multiply(b, beta, g));
    uir_value_id direction = out[1];
    if (uir_network_choice(o->context, "mode", "standard", modes) == 1)
        direction = add(b, g, multiply_scalar(b, out[1], alpha));
    out[0] = subtract(b, v[0], multiply(b, o->rate, direction));
}

static uir_status run_optimiser(uir_rule_context *context, uint32_t states, update_function update) {
    uir_builder *b = &context->builder;
    uint32_t per_tensor = 2 + states, given = context->node->input_count;
    if (given < 2 + per_tensor || (given - 2) % per_tensor != 0)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "%u inputs; required: R, T, and %u for each tensor", given,
                                per_tensor);
    uint32_t count = (given - 2) / per_tensor;
    uir_value_id rate = uir_network_as_scalar(context, uir_rule_input(context, 0), "R");
    uir_value_id steps = uir_network_as_scalar(context, uir_rule_input(context, 1), "T");
    uir_value_id started = greater(b, steps, scalar_like(b, steps, 0));
    for (uint32_t i = 0; i < count && b->status == UIR_STATUS_OK; i++) {
        uir_value_id values[4], out[3] = {{0}, {0}, {0}};
        for (uint32_t j = 0; j < per_tensor; j++) {
            values[j] = uir_rule_input(context, 2 + j * count + i);
            if (is_none(values[j]))
                return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "input %u is absent but required", 2 + j * count + i);
        }
        uir_dtype dtype = dtype_of(b, values[0]);
        optimiser o = {context, uir_build_cast(b, rate, dtype), uir_build_cast(b, steps, dtype), started};
        update(&o, values, out);
        for (uint32_t j = 0; j < 1 + states; j++)
            if (uir_rule_has_output(context, j * count + i)) context->outputs[j * count + i] = out[j];
    }
    return b->status;
}

uir_status uir_rule_adagrad(uir_rule_context *context) {
    return run_optimiser(context, 1, adagrad);
}
uir_status uir_rule_adam(uir_rule_context *context) {
    return run_optimiser(context, 2, adam);
}
uir_status uir_rule_momentum(uir_rule_context *context) {
    return run_optimiser(context, 1, momentum);
}
