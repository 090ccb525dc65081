/* Recurrent layers: LSTM, GRU, RNN.
 *
 * The product with the input is hoisted out of time: one contraction for all steps. What is left, a product with the
 * previous hidden state and elementwise arithmetic, is the body of a `loop` over the (possibly symbolic, possibly zero)
 * time extent. A layer runs each direction by itself; a reverse one with sequence lengths runs forward over each
 * sequence turned round. */
#include "decompose/network/rules_network.h"

#include <string.h>

/* ---- activations ---- */

typedef uir_value_id (*activation_function)(uir_builder *b, uir_value_id x, double alpha, double beta);

static uir_value_id apply_relu(uir_builder *b, uir_value_id x, double alpha, double beta) {
    (void)alpha, (void)beta;
    return maximum(b, x, scalar_like(b, x, 0));
}
static uir_value_id apply_tanh(uir_builder *b, uir_value_id x, double alpha, double beta) {
    (void)alpha, (void)beta;
    return tangent_hyperbolic(b, x);
}
static uir_value_id apply_sigmoid(uir_builder *b, uir_value_id x, double alpha, double beta) {
    (void)alpha, (void)beta;
    return sigmoid(b, x);
}
static uir_value_id apply_affine(uir_builder *b, uir_value_id x, double alpha, double beta) {
    return add_scalar(b, multiply_scalar(b, x, alpha), beta);
}
static uir_value_id apply_leaky_relu(uir_builder *b, uir_value_id x, double alpha, double beta) {
    (void)beta;
    return uir_build_select(b, less(b, x, scalar_like(b, x, 0)), multiply_scalar(b, x, alpha), x);
}
static uir_value_id apply_thresholded_relu(uir_builder *b, uir_value_id x, double alpha, double beta) {
    (void)beta;
    return uir_build_select(b, greater(b, x, scalar_like(b, x, alpha)), x, scalar_like(b, x, 0));
}
static uir_value_id apply_scaled_tanh(uir_builder *b, uir_value_id x, double alpha, double beta) {
    return multiply_scalar(b, tangent_hyperbolic(b, multiply_scalar(b, x, beta)), alpha);
}
static uir_value_id apply_hard_sigmoid(uir_builder *b, uir_value_id x, double alpha, double beta) {
    return uir_network_clamp(b, apply_affine(b, x, alpha, beta), 0, 1);
}
static uir_value_id apply_elu(uir_builder *b, uir_value_id x, double alpha, double beta) {
    (void)beta;
    uir_value_id zero = scalar_like(b, x, 0);
    uir_value_id below = multiply_scalar(b, add_scalar(b, exponential(b, minimum(b, x, zero)), -1), alpha);
    return uir_build_select(b, less(b, x, zero), below, x);
}
static uir_value_id apply_softsign(uir_builder *b, uir_value_id x, double alpha, double beta) {
    (void)alpha, (void)beta;
    return divide(b, x, add_scalar(b, absolute(b, x), 1));
}
static uir_value_id apply_softplus(uir_builder *b, uir_value_id x, double alpha, double beta) {
    (void)alpha, (void)beta;
    uir_value_id tail = uir_build_unary(b, UIR_OP_LOG1P, exponential(b, negate(b, absolute(b, x))));
    return add(b, maximum(b, x, scalar_like(b, x, 0)), tail);
}

typedef struct activation_row {
    const char *name;
    bool takes_alpha, takes_beta; /* consumes an element of activation_alpha / activation_beta */
    double alpha, beta;           /* defaults */
    activation_function apply;
} activation_row;

static const activation_row activation_rows[] = {
    {"Relu", false, false, 0, 0, apply_relu},
    {"Tanh", false, false, 0, 0, apply_tanh},
    {"Sigmoid", false, false, 0, 0, apply_sigmoid},
    {"Affine", true, true, 1, 0, apply_affine},
    {"LeakyRelu", true, false, 0.01f, 0, apply_leaky_relu},
    {"ThresholdedRelu", true, false, 1, 0, apply_thresholded_relu},
    {"ScaledTanh", true, true, 1, 1, apply_scaled_tanh},
    {"HardSigmoid", true, true, 0.2f, 0.5, apply_hard_sigmoid},
    {"Elu", true, false, 1, 0, apply_elu},
    {"Softsign", false, false, 0, 0, apply_softsign},
    {"Softplus", false, false, 0, 0, apply_softplus},
};

typedef struct activation {
    const activation_row *row;
    double alpha, beta;
} activation;

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same_name(const char *a, const char *b) {
    while (*a && lower(*a) == lower(*b)) a++, b++;
    return *a == *b;
}

/* Reads `count` activations for all directions; alphas and betas go, in order, to the functions that take one. */
static bool read_activations(uir_rule_context *context, const char *const *defaults, uint32_t per_direction,
                             uint32_t count, activation *out) {
    uint32_t alphas = 0, betas = 0;
    for (uint32_t i = 0; i < count; i++) {
        const char *name = uir_network_string_at(context, "activations", i);
        if (!name) name = defaults[i % per_direction];
        out[i].row = NULL;
        for (size_t r = 0; r < sizeof activation_rows / sizeof *activation_rows; r++)
            if (same_name(name, activation_rows[r].name)) out[i].row = &activation_rows[r];
        if (!out[i].row) {
            (void)uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE,
                                   "attribute activations names '%s', which is not an activation of ONNX", name);
            return false;
        }
        out[i].alpha = out[i].row->alpha;
        out[i].beta = out[i].row->beta;
        if (out[i].row->takes_alpha) (void)uir_network_float_at(context, "activation_alpha", alphas++, &out[i].alpha);
        if (out[i].row->takes_beta) (void)uir_network_float_at(context, "activation_beta", betas++, &out[i].beta);
    }
    return true;
}

/* ---- one layer ---- */

typedef struct layer {
    uir_rule_context *context;
    uir_dtype real; /* of the arithmetic */
    uir_value_id x; /* [T, B, I], real */
    uir_dim time, batch, hidden;
    uir_value_id lengths; /* i64 [B], or none */
    double clip;          /* 0: none */
    uint32_t gates;
    bool wants_sequence;
    bool quantised; /* weights of 8 bits, transposed; both products are in integers */
} layer;

/* One direction's operands. */
typedef struct pass {
    const layer *layer;
    const activation *activations;
    bool reverse;
    uir_value_id recurrent;       /* R transposed: [H, gates * H]; of a GRU that resets first, the part of z and r */
    uir_integer_weights integers; /* in its place, where the layer is quantised */
    uir_value_id candidate;       /* of such a GRU: the part of h, [H, H] */
    uir_value_id recurrent_bias;  /* [gates * H], or none; folded into the input product where it can be */
    uir_value_id peepholes;       /* [3 * H], or none */
    bool linear_before_reset, input_forget;
} pass;

/* A step: from the input product of this step [B, gates*H] and the carried values to the new carried values. */
typedef void (*step_function)(uir_builder *b, const pass *p, uir_value_id input, const uir_value_id *carried,
                              uir_value_id *out_next);

static uir_value_id apply(uir_builder *b, const pass *p, uint32_t which, uir_value_id x) {
    const activation *a = &p->activations[which];
    return a->row->apply(b, x, a->alpha, a->beta);
}

/* Of a gate's sum, which `clip` bounds. */
static uir_value_id activate(uir_builder *b, const pass *p, uint32_t which, uir_value_id x) {
    double clip = p->layer->clip;
    if (clip > 0) x = uir_network_clamp(b, x, -clip, clip);
    return apply(b, p, which, x);
}

/* Gate `index` of [.., gates * H]. */
static uir_value_id gate(uir_builder *b, const pass *p, uir_value_id x, uint32_t index) {
    uir_dim hidden = p->layer->hidden;
    return uir_network_slice(b, x, rank_of(b, x) - 1, dim_times(b, hidden, index), hidden, 1);
}

static uir_value_id recurrent_product(uir_builder *b, const pass *p, uir_value_id h) {
    if (p->layer->quantised) return uir_network_dynamic_product(b, h, &p->integers);
    return uir_build_matmul(b, h, p->recurrent, p->layer->real);
}

static uir_value_id one_minus(uir_builder *b, uir_value_id x) {
    return subtract(b, scalar_like(b, x, 1), x);
}

/* Gates i, o, f, c; peepholes i, o, f. */
static void lstm_step(uir_builder *b, const pass *p, uir_value_id input, const uir_value_id *carried,
                      uir_value_id *out_next) {
    uir_value_id c = carried[1], sums = add(b, input, recurrent_product(b, p, carried[0]));
    uir_value_id i = gate(b, p, sums, 0), o = gate(b, p, sums, 1), f = gate(b, p, sums, 2);
    bool peeps = !is_none(p->peepholes);
    if (peeps) i = add(b, i, multiply(b, gate(b, p, p->peepholes, 0), c));
    if (peeps) f = add(b, f, multiply(b, gate(b, p, p->peepholes, 2), c));
    i = activate(b, p, 0, i);
    f = p->input_forget ? one_minus(b, i) : activate(b, p, 0, f);
    uir_value_id candidate = activate(b, p, 1, gate(b, p, sums, 3));
    uir_value_id cell = add(b, multiply(b, f, c), multiply(b, i, candidate));
    if (peeps) o = add(b, o, multiply(b, gate(b, p, p->peepholes, 1), cell));
    out_next[0] = multiply(b, activate(b, p, 0, o), apply(b, p, 2, cell));
    out_next[1] = cell;
}

/* Gates z, r, h. */
static void gru_step(uir_builder *b, const pass *p, uir_value_id input, const uir_value_id *carried,
                     uir_value_id *out_next) {
    uir_value_id h = carried[0], product = recurrent_product(b, p, h), reset;
    if (!is_none(p->recurrent_bias)) product = add(b, product, p->recurrent_bias);
    uir_value_id z = activate(b, p, 0, add(b, gate(b, p, input, 0), gate(b, p, product, 0)));
    uir_value_id r = activate(b, p, 0, add(b, gate(b, p, input, 1), gate(b, p, product, 1)));
    if (p->linear_before_reset)
        reset = multiply(b, r, gate(b, p, product, 2));
    else
        reset = uir_build_matmul(b, multiply(b, r, h), p->candidate, p->layer->real);
    uir_value_id candidate = activate(b, p, 1, add(b, gate(b, p, input, 2), reset));
    out_next[0] = add(b, multiply(b, one_minus(b, z), candidate), multiply(b, z, h));
}

static void rnn_step(uir_builder *b, const pass *p, uir_value_id input, const uir_value_id *carried,
                     uir_value_id *out_next) {
    out_next[0] = activate(b, p, 0, add(b, input, recurrent_product(b, p, carried[0])));
}

/* For each step and sequence the step that it mirrors: length-1-t inside the sequence, t beyond it. [T, B], its own
 * inverse. */
static uir_value_id mirror(uir_builder *b, const layer *l) {
    const int64_t second = 1;
    uir_value_id t = uir_build_unsqueeze(b, uir_network_range(b, UIR_DTYPE_I64, l->time), &second, 1);
    uir_value_id one = uir_build_integer_scalar(b, UIR_DTYPE_I64, 1);
    uir_value_id back = subtract(b, subtract(b, l->lengths, one), t);
    return uir_build_select(b, less(b, t, l->lengths), back, t);
}

/* x [T, B, n] with each sequence turned round. */
static uir_value_id mirrored(uir_builder *b, const layer *l, uir_value_id x) {
    const int64_t third = 2;
    uir_dim extent = uir_build_extent(b, x, 2);
    uir_shape shape = {3, {l->time, l->batch, extent}};
    uir_value_id index = uir_build_unsqueeze(b, mirror(b, l), &third, 1);
    uir_value_id inputs[2] = {x, uir_network_broadcast(b, index, &shape)}, y = {0};
    uir_attribute axis = uir_attribute_int(b, "axis", 0);
    uir_build_node(b, UIR_OP_GATHER_ELEMENTS, inputs, 2, &axis, 1, &y, 1);
    return y;
}

/* Runs one direction. `input` [T, B, gates*H] is the input product with its biases. Outputs the sequence [T, B, H]
 * (none when it is not wanted) and the last carried values. */
static void run_direction(const pass *p, uir_value_id input, const uir_value_id *initial, uint32_t carried_count,
                          step_function step, uir_value_id *out_sequence, uir_value_id *out_last) {
    const layer *l = p->layer;
    uir_builder *b = &l->context->builder;
    bool by_length = !is_none(l->lengths);
    if (p->reverse && by_length) input = mirrored(b, l, input);
    uir_loop loop;
    if (!uir_network_loop_begin(b, initial, carried_count, &loop)) return;
    uir_builder *body = &loop.body;
    uir_value_id at = loop.iteration, next[2] = {{0}, {0}}, scanned = {0}, outputs[3] = {{0}, {0}, {0}};
    if (p->reverse && !by_length)
        at = subtract(body, uir_network_dim_value(body, dim_plus(body, l->time, -1), UIR_DTYPE_I64), at);
    uir_value_id inside = {0}, before[2] = {loop.carried[0], loop.carried[1]};
    if (by_length) {
        const int64_t second = 1;
        inside = less(body, loop.iteration, uir_build_unsqueeze(body, l->lengths, &second, 1));
        /* The scale of a step is that of the sequences which are still going on. */
        if (l->quantised) before[0] = uir_build_select(body, inside, before[0], scalar_like(body, before[0], 0));
    }
    step(body, p, uir_build_gather(body, input, at, 0), before, next);
    scanned = next[0];
    if (by_length) {
        scanned = uir_build_select(body, inside, next[0], scalar_like(body, next[0], 0));
        for (uint32_t i = 0; i < carried_count; i++) next[i] = uir_build_select(body, inside, next[i], loop.carried[i]);
    }
    uir_network_loop_end(b, &loop, l->time, initial, next, &scanned, l->wants_sequence ? 1 : 0, outputs);
    for (uint32_t i = 0; i < carried_count; i++) out_last[i] = outputs[i];
    *out_sequence = outputs[carried_count];
    if (!l->wants_sequence || !p->reverse) return;
    *out_sequence = by_length ? mirrored(b, l, *out_sequence) : uir_network_flip(b, *out_sequence, 0);
}

/* Entry `direction` of an input [directions, ..], or of [B, directions, H] when batch comes first. None stays none. */
static uir_value_id pick_stored(const layer *l, uir_value_id value, uint32_t direction, uint32_t axis) {
    uir_builder *b = &l->context->builder;
    if (is_none(value)) return value;
    const int64_t squeezed = axis;
    uir_value_id one = uir_network_slice(b, value, axis, dim_int(b, direction), dim_int(b, 1), 1);
    return uir_build_squeeze(b, one, &squeezed, 1);
}

/* The same, in the dtype of the arithmetic. */
static uir_value_id pick(const layer *l, uir_value_id value, uint32_t direction, uint32_t axis) {
    return cast_present(&l->context->builder, pick_stored(l, value, direction, axis), l->real);
}

/* The initial state [B, H] of one direction: given, or zeros. */
static uir_value_id initial_state(const layer *l, uir_value_id given, uint32_t direction, uint32_t axis) {
    uir_builder *b = &l->context->builder;
    uir_shape shape = {2, {l->batch, l->hidden}};
    if (is_none(given)) return uir_network_full(b, l->real, 0, &shape);
    return uir_network_broadcast(b, pick(l, given, direction, axis), &shape);
}

/* Values of all directions joined along a new axis. */
static uir_value_id joined(uir_builder *b, const uir_value_id *values, uint32_t count, int64_t axis, uir_dtype to) {
    uir_value_id parts[2] = {{0}, {0}};
    for (uint32_t i = 0; i < count; i++) parts[i] = uir_build_unsqueeze(b, values[i], &axis, 1);
    return uir_build_cast(b, count == 1 ? parts[0] : uir_build_concat(b, parts, count, axis), to);
}

typedef struct layer_kind {
    uint32_t gates, carried, functions;
    const char *defaults[3];
    step_function step;
    bool quantised;
} layer_kind;

static bool read_layer(uir_rule_context *context, const layer_kind *kind, bool batch_first, layer *l) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), lengths = uir_rule_input(context, 4);
    (void)uir_network_shape_between(context, x, "X", 3, 3);
    (void)uir_network_shape_between(context, uir_rule_input(context, 1), "W", 3, 3);
    uir_shape recurrent = uir_network_shape_between(context, uir_rule_input(context, 2), "R", 3, 3);
    if (!is_none(uir_rule_input(context, 3)))
        (void)uir_network_shape_between(context, uir_rule_input(context, 3), "B", 2, 2);
    if (!is_none(lengths)) (void)uir_network_shape_between(context, lengths, "sequence_lens", 1, 1);
    if (!is_none(uir_rule_input(context, 5)))
        (void)uir_network_shape_between(context, uir_rule_input(context, 5), "initial_h", 3, 3);
    if (b->status != UIR_STATUS_OK) return false;
    l->context = context;
    l->x = uir_network_widen(b, batch_first ? uir_network_swap(b, x, 0, 1) : x);
    l->real = dtype_of(b, l->x);
    l->time = uir_build_extent(b, l->x, 0);
    l->batch = uir_build_extent(b, l->x, 1);
    l->quantised = kind->quantised;
    l->hidden = recurrent.dims[kind->quantised ? 1 : 2];
    if (!is_none(lengths)) uir_rule_check_below(context, lengths, lengths, dim_plus(b, l->time, 1));
    l->lengths = cast_present(b, lengths, UIR_DTYPE_I64);
    l->clip = uir_rule_float(context, "clip", 0);
    l->gates = kind->gates;
    l->wants_sequence = uir_rule_has_output(context, 0);
    return b->status == UIR_STATUS_OK;
}

/* Weights at input `weights` of one direction, with scale and zero point at `scale` and behind it. */
static uir_integer_weights pick_integers(const layer *l, uint32_t weights, uint32_t scale, uint32_t direction) {
    uir_rule_context *context = l->context;
    return uir_network_integer_weights(context, pick_stored(l, uir_rule_input(context, weights), direction, 0),
                                       pick_stored(l, uir_rule_input(context, scale), direction, 0),
                                       pick_stored(l, uir_rule_input(context, scale + 1), direction, 0));
}

/* x with zeros beyond the longest sequence: the scale is that of the steps that some sequence has. */
static uir_value_id steps_that_count(const layer *l) {
    uir_builder *b = &l->context->builder;
    const int64_t first = 0, inner[2] = {1, 2};
    if (is_none(l->lengths)) return l->x;
    uir_value_id longest = uir_build_reduce(b, UIR_OP_REDUCE_MAX, l->lengths, &first, 1, false);
    uir_value_id counts = less(b, uir_network_range(b, UIR_DTYPE_I64, l->time), longest);
    return uir_build_select(b, uir_build_unsqueeze(b, counts, inner, 2), l->x, scalar_like(b, l->x, 0));
}

/* Both biases of a direction, [gates * H] each. The recurrent one joins the input's but for the part that a reset gate
 * multiplies. */
static uir_value_id input_product(const pass *p, uint32_t direction, uir_value_id *out_recurrent_bias) {
    const layer *l = p->layer;
    uir_builder *b = &l->context->builder;
    uir_value_id bias = pick(l, uir_rule_input(l->context, 3), direction, 0), product;
    if (l->quantised) {
        const uir_integer_weights w = pick_integers(l, 1, 8, direction);
        product = uir_network_dynamic_product(b, steps_that_count(l), &w);
    } else {
        uir_value_id w = pick(l, uir_rule_input(l->context, 1), direction, 0);
        product = uir_network_matmul(l->context, l->x, uir_network_swap(b, w, 0, 1), l->real);
    }
    *out_recurrent_bias = (uir_value_id){0};
    if (is_none(bias)) return product;
    uir_dim width = dim_times(b, l->hidden, l->gates);
    uir_value_id of_input = uir_network_slice(b, bias, 0, dim_int(b, 0), width, 1);
    uir_value_id of_state = uir_network_slice(b, bias, 0, width, width, 1);
    if (p->linear_before_reset)
        *out_recurrent_bias = of_state;
    else
        of_input = add(b, of_input, of_state);
    return add(b, product, of_input);
}

static uir_status run_layer(uir_rule_context *context, const layer_kind *kind) {
    static const char *const directions[] = {"forward", "reverse", "bidirectional", NULL};
    uir_builder *b = &context->builder;
    uint32_t which = uir_network_choice(context, "direction", "forward", directions), count = which == 2 ? 2 : 1;
    bool batch_first = context->since_version >= 14 && uir_rule_int(context, "layout", 0) != 0;
    uint32_t state_axis = batch_first ? 1 : 0;
    activation activations[6];
    layer l = {0};
    if (!read_layer(context, kind, batch_first, &l) ||
        !read_activations(context, kind->defaults, kind->functions, kind->functions * count, activations))
        return b->status;
    uir_value_id sequences[2] = {{0}, {0}}, last[2][2] = {{{0}}};
    for (uint32_t d = 0; d < count; d++) {
        pass p = {.layer = &l, .activations = activations + d * kind->functions, .reverse = which == 1 || d == 1};
        p.linear_before_reset = kind->step == gru_step && uir_rule_int(context, "linear_before_reset", 0) != 0;
        p.input_forget = uir_rule_int(context, "input_forget", 0) != 0;
        if (l.quantised)
            p.integers = pick_integers(&l, 2, 10, d);
        else
            p.recurrent = uir_network_swap(b, pick(&l, uir_rule_input(context, 2), d, 0), 0, 1);
        if (kind->step == gru_step && !p.linear_before_reset) {
            uir_dim reset_width = dim_times(b, l.hidden, 2);
            p.candidate = uir_network_slice(b, p.recurrent, 1, reset_width, l.hidden, 1);
            p.recurrent = uir_network_slice(b, p.recurrent, 1, dim_int(b, 0), reset_width, 1);
        }
        p.peepholes = kind->carried == 2 ? pick(&l, uir_rule_input(context, 7), d, 0) : (uir_value_id){0};
        uir_value_id input = input_product(&p, d, &p.recurrent_bias);
        uir_value_id initial[2] = {{0}, {0}}, ends[2] = {{0}, {0}};
        for (uint32_t i = 0; i < kind->carried; i++)
            initial[i] = initial_state(&l, uir_rule_input(context, 5 + i), d, state_axis);
        run_direction(&p, input, initial, kind->carried, kind->step, &sequences[d], ends);
        for (uint32_t i = 0; i < kind->carried; i++) last[i][d] = ends[i];
        if (b->status != UIR_STATUS_OK) return b->status;
    }
    uir_dtype to = dtype_of(b, uir_rule_input(context, 0));
    if (uir_rule_has_output(context, 0)) {
        uir_value_id y = joined(b, sequences, count, 1, to); /* [T, D, B, H] */
        const int64_t perm[4] = {2, 0, 1, 3};
        context->outputs[0] = batch_first ? uir_build_transpose(b, y, perm) : y;
    }
    for (uint32_t i = 0; i < kind->carried; i++)
        if (uir_rule_has_output(context, 1 + i)) context->outputs[1 + i] = joined(b, last[i], count, state_axis, to);
    return b->status;
}

uir_status uir_rule_lstm(uir_rule_context *context) {
    static const layer_kind kind = {4, 2, 3, {"Sigmoid", "Tanh", "Tanh"}, lstm_step, false};
    return run_layer(context, &kind);
}

/* com.microsoft: weights [directions, I or H, 4 * H] of 8 bits; X as a whole and each step's hidden states as a whole
 * are quantised to u8 before their products. */
uir_status uir_rule_dynamic_quantize_lstm(uir_rule_context *context) {
    static const layer_kind kind = {4, 2, 3, {"Sigmoid", "Tanh", "Tanh"}, lstm_step, true};
    return run_layer(context, &kind);
}

uir_status uir_rule_gru(uir_rule_context *context) {
    static const layer_kind kind = {3, 1, 2, {"Sigmoid", "Tanh", NULL}, gru_step, false};
    return run_layer(context, &kind);
}

uir_status uir_rule_rnn(uir_rule_context *context) {
    static const layer_kind kind = {1, 1, 1, {"Tanh", NULL, NULL}, rnn_step, false};
    return run_layer(context, &kind);
}
