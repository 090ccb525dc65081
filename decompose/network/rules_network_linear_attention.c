/* LinearAttention (ai.onnx 27): a matrix per head, updated and read at each step.
 *
 * One step is the body of a loop over time. The state S [B, kv heads, dk, dv] decays (gated rules), forgets what the
 * key already retrieves (delta rules), takes in key x value, and is read by the query; query heads that share a state
 * lie side by side. */
#include "decompose/network/rules_network.h"

#include <math.h>

typedef struct linear_attention {
    uir_rule_context *context;
    uir_value_id q, k, v, decay, beta; /* time first: [T, B, kv heads, group or 1, size]; decay and beta may be none */
    uir_dim batch, time, heads, group, key_size, value_size;
    bool decay_by_key;
    double scale;
} linear_attention;

/* [B, T, a * size] to [T, B, a, size] in f32. */
static uir_value_id time_first(uir_builder *b, uir_value_id x, uir_dim batch, uir_dim time, uir_dim heads,
                               uir_dim size) {
    uir_shape shape = {4, {batch, time, heads, size}};
    const int64_t perm[4] = {1, 0, 2, 3};
    return uir_build_transpose(b, uir_network_reshape(b, uir_build_cast(b, x, UIR_DTYPE_F32), &shape), perm);
}

static uir_value_id step_of(uir_builder *body, uir_value_id x, uir_value_id iteration) {
    return uir_build_gather(body, x, iteration, 0);
}

/* One step: the new state, and what the queries read from it [B, kv heads, group, dv]. */
static void step(const linear_attention *a, uir_builder *body, uir_value_id iteration, uir_value_id state,
                 uir_value_id *out_state, uir_value_id *out_read) {
    const int64_t row = 2, column = 3;
    uir_value_id k = step_of(body, a->k, iteration), v = step_of(body, a->v, iteration);
    uir_value_id q = step_of(body, a->q, iteration);
    uir_value_id value = uir_build_unsqueeze(body, v, &row, 1); /* [B, H, 1, dv] */
    if (!is_none(a->decay)) {
        uir_value_id g = step_of(body, a->decay, iteration);
        state = multiply(body, state, uir_build_unsqueeze(body, exponential(body, g), &column, 1));
    }
    if (!is_none(a->beta)) {
        uir_value_id found = uir_build_matmul(body, uir_build_unsqueeze(body, k, &row, 1), state, UIR_DTYPE_F32);
        uir_value_id beta = uir_build_unsqueeze(body, step_of(body, a->beta, iteration), &column, 1);
        value = multiply(body, beta, subtract(body, value, found));
    }
    *out_state = add(body, state, multiply(body, uir_build_unsqueeze(body, k, &column, 1), value));
    uir_shape grouped = {4, {a->batch, a->heads, a->group, a->key_size}};
    q = multiply_scalar(body, uir_network_reshape(body, q, &grouped), a->scale);
    *out_read = uir_build_matmul(body, q, *out_state, UIR_DTYPE_F32);
}

static int64_t last_extent(uir_rule_context *context, uir_value_id x, const char *name) {
    int64_t extent = -1;
    uir_shape shape = uir_network_shape_between(context, x, name, 3, 3);
    if (context->builder.status == UIR_STATUS_OK &&
        !uir_dim_is_const(context->builder.module->dims, shape.dims[2], &extent))
        (void)uir_builder_fail(&context->builder, UIR_STATUS_UNSUPPORTED,
                               "input %s's last extent is unknown; give it a fixed one", name);
    return extent;
}

static bool read_linear_attention(uir_rule_context *context, linear_attention *a) {
    static const char *const rules[] = {"linear", "gated", "delta", "gated_delta", NULL};
    uir_builder *b = &context->builder;
    uir_value_id q = uir_rule_input(context, 0), decay = uir_rule_input(context, 4), beta = uir_rule_input(context, 5);
    uint32_t rule = uir_network_choice(context, "update_rule", "gated_delta", rules);
    int64_t heads = uir_rule_int(context, "kv_num_heads", 0), q_heads = uir_rule_int(context, "q_num_heads", 0);
    int64_t q_width = last_extent(context, q, "query"),
            v_width = last_extent(context, uir_rule_input(context, 2), "value");
    (void)uir_network_shape_between(context, uir_rule_input(context, 1), "key", 3, 3);
    if (b->status != UIR_STATUS_OK) return false;
    if (heads < 1 || q_heads < 1 || q_heads % heads != 0 || q_width % q_heads != 0 || v_width % heads != 0) {
        (void)uir_builder_fail(
            b, UIR_STATUS_BAD_FILE,
            "attributes q_num_heads (%lld) and kv_num_heads (%lld) do not divide query and value evenly",
            (long long)q_heads, (long long)heads);
        return false;
    }
    bool gated = rule % 2 == 1, delta = rule >= 2;
    if (gated == is_none(decay) || delta == is_none(beta)) {
        (void)uir_builder_fail(b, UIR_STATUS_BAD_FILE, "update_rule '%s' requires input decay %s and input beta %s",
                               rules[rule], gated ? "present" : "absent", delta ? "present" : "absent");
        return false;
    }
    int64_t size = q_width / q_heads;
    uir_shape shape = uir_network_shape(context, q);
    a->context = context;
    a->batch = shape.dims[0], a->time = shape.dims[1];
    a->heads = dim_int(b, heads), a->group = dim_int(b, q_heads / heads);
    a->key_size = dim_int(b, size), a->value_size = dim_int(b, v_width / heads);
    a->scale = uir_rule_float(context, "scale", 0);
    if (a->scale == 0) a->scale = 1 / sqrt((double)(size > 0 ? size : 1));
    a->q = time_first(b, q, a->batch, a->time, dim_int(b, q_heads), a->key_size);
    a->k = time_first(b, uir_rule_input(context, 1), a->batch, a->time, a->heads, a->key_size);
    a->v = time_first(b, uir_rule_input(context, 2), a->batch, a->time, a->heads, a->value_size);
    if (gated) {
        int64_t width = last_extent(context, decay, "decay");
        if (width != heads && width != heads * size) {
            (void)uir_builder_fail(b, UIR_STATUS_BAD_FILE,
                                   "input decay's last extent is %lld; %lld or %lld is required", (long long)width,
                                   (long long)heads, (long long)(heads * size));
            return false;
        }
        a->decay = time_first(b, decay, a->batch, a->time, a->heads, dim_int(b, width / heads));
    }
    if (delta) {
        int64_t width = last_extent(context, beta, "beta");
        if (width != heads && width != 1) {
            (void)uir_builder_fail(b, UIR_STATUS_BAD_FILE, "input beta's last extent is %lld; %lld or 1 is required",
                                   (long long)width, (long long)heads);
            return false;
        }
        a->beta = time_first(b, beta, a->batch, a->time, dim_int(b, width), dim_int(b, 1));
    }
    return b->status == UIR_STATUS_OK;
}

uir_status uir_rule_linear_attention(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    linear_attention a = {0};
    if (!read_linear_attention(context, &a)) return b->status;
    uir_value_id past = uir_rule_input(context, 3), q = uir_rule_input(context, 0);
    uir_shape state_shape = {4, {a.batch, a.heads, a.key_size, a.value_size}};
    uir_value_id initial = is_none(past)
                               ? uir_network_full(b, UIR_DTYPE_F32, 0, &state_shape)
                               : uir_network_broadcast(b, uir_build_cast(b, past, UIR_DTYPE_F32), &state_shape);
    uir_loop loop;
    if (!uir_network_loop_begin(b, &initial, 1, &loop)) return b->status;
    uir_value_id next = {0}, read = {0}, outputs[2] = {{0}, {0}};
    step(&a, &loop.body, loop.iteration, loop.carried[0], &next, &read);
    uir_network_loop_end(b, &loop, a.time, &initial, &next, &read, 1, outputs);
    const int64_t perm[5] = {1, 0, 2, 3, 4}; /* [T, B, H, group, dv] to batch first */
    uir_shape flat = {3, {a.batch, a.time, dim_mul(b, dim_mul(b, a.heads, a.group), a.value_size)}};
    uir_value_id y = uir_network_reshape(b, uir_build_transpose(b, outputs[1], perm), &flat);
    context->outputs[0] = uir_build_cast(b, y, dtype_of(b, q));
    if (uir_rule_has_output(context, 1))
        context->outputs[1] = uir_build_cast(b, outputs[0], dtype_of(b, is_none(past) ? q : past));
    return b->status;
}
