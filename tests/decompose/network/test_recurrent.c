/* LSTM, GRU and RNN against loops: directions, lengths, initial states, peepholes, clipping, no steps at all. */
#include "rig.h"

#include <stdio.h>

enum { IN = 3, HIDDEN = 2, BATCH = 2, MAX_TIME = 6 };

typedef struct layer {
    const char *op;
    int64_t gates;
    const char *direction;
    bool lengths, initial, peepholes, linear_before_reset, input_forget, batch_first;
    double clip;
} layer;

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}
static double clipped(const layer *l, double x) {
    return l->clip > 0 ? fmin(fmax(x, -l->clip), l->clip) : x;
}

/* One step of one sequence in one direction: x [IN], h and c [HIDDEN] are updated. W [gates*H, IN], R [gates*H, H], b
 * [2*gates*H], p [3*H]. */
static void step(const layer *l, const double *x, const double *w, const double *r, const double *b, const double *p,
                 double *h, double *c) {
    double sum[4 * HIDDEN], state[4 * HIDDEN], old[HIDDEN];
    int64_t rows = l->gates * HIDDEN;
    memcpy(old, h, sizeof old);
    for (int64_t g = 0; g < rows; g++) {
        sum[g] = b[g];
        state[g] = b[rows + g];
        for (int64_t i = 0; i < IN; i++) sum[g] += w[g * IN + i] * x[i];
        for (int64_t i = 0; i < HIDDEN; i++) state[g] += r[g * HIDDEN + i] * old[i];
    }
    double reset[HIDDEN];
    for (int64_t j = 0; j < HIDDEN && l->gates == 3; j++)
        reset[j] = sigmoid(clipped(l, sum[HIDDEN + j] + state[HIDDEN + j]));
    for (int64_t j = 0; j < HIDDEN; j++) {
        if (l->gates == 1) {
            h[j] = tanh(clipped(l, sum[j] + state[j]));
        } else if (l->gates == 3) {
            double z = sigmoid(clipped(l, sum[j] + state[j])), inner = reset[j] * state[2 * HIDDEN + j];
            if (!l->linear_before_reset) {
                inner = b[rows + 2 * HIDDEN + j];
                for (int64_t i = 0; i < HIDDEN; i++) inner += r[(2 * HIDDEN + j) * HIDDEN + i] * reset[i] * old[i];
            }
            h[j] = (1 - z) * tanh(clipped(l, sum[2 * HIDDEN + j] + inner)) + z * old[j];
        } else {
            double i = sum[j] + state[j], o = sum[HIDDEN + j] + state[HIDDEN + j];
            double f = sum[2 * HIDDEN + j] + state[2 * HIDDEN + j], g = sum[3 * HIDDEN + j] + state[3 * HIDDEN + j];
            if (l->peepholes) i += p[j] * c[j], f += p[2 * HIDDEN + j] * c[j];
            i = sigmoid(clipped(l, i));
            f = l->input_forget ? 1 - i : sigmoid(clipped(l, f));
            c[j] = f * c[j] + i * tanh(clipped(l, g));
            if (l->peepholes) o += p[HIDDEN + j] * c[j];
            h[j] = sigmoid(clipped(l, o)) * tanh(c[j]);
        }
    }
}

typedef struct operands {
    double x[MAX_TIME * BATCH * IN], w[2 * 4 * HIDDEN * IN], r[2 * 4 * HIDDEN * HIDDEN], b[2 * 8 * HIDDEN];
    double h[2 * BATCH * HIDDEN], c[2 * BATCH * HIDDEN], p[2 * 3 * HIDDEN], lengths[BATCH];
    double y[MAX_TIME * 2 * BATCH * HIDDEN], last_h[2 * BATCH * HIDDEN], last_c[2 * BATCH * HIDDEN];
} operands;

/* x and y time first here, whatever the layout. */
static void loops(const layer *l, operands *o, int64_t time, int64_t directions) {
    int64_t rows = l->gates * HIDDEN;
    memset(o->y, 0, sizeof o->y);
    for (int64_t d = 0; d < directions; d++)
        for (int64_t n = 0; n < BATCH; n++) {
            int64_t length = l->lengths ? (int64_t)o->lengths[n] : time;
            bool reverse = strcmp(l->direction, "reverse") == 0 || d == 1;
            double h[HIDDEN] = {0}, c[HIDDEN] = {0};
            for (int64_t j = 0; j < HIDDEN && l->initial; j++) {
                h[j] = o->h[(d * BATCH + n) * HIDDEN + j];
                c[j] = o->c[(d * BATCH + n) * HIDDEN + j];
            }
            for (int64_t t = 0; t < length; t++) {
                int64_t at = reverse ? length - 1 - t : t;
                step(l, o->x + (at * BATCH + n) * IN, o->w + d * rows * IN, o->r + d * rows * HIDDEN,
                     o->b + d * 2 * rows, o->p + d * 3 * HIDDEN, h, c);
                memcpy(o->y + ((at * directions + d) * BATCH + n) * HIDDEN, h, sizeof h);
            }
            memcpy(o->last_h + (d * BATCH + n) * HIDDEN, h, sizeof h);
            memcpy(o->last_c + (d * BATCH + n) * HIDDEN, c, sizeof c);
        }
}

/* Swaps two leading axes: [a, b, rest] to [b, a, rest]. */
static void swapped(const double *x, int64_t a, int64_t b, int64_t rest, double *out) {
    for (int64_t i = 0; i < a; i++)
        for (int64_t j = 0; j < b; j++)
            memcpy(out + (j * a + i) * rest, x + (i * b + j) * rest, (size_t)rest * sizeof *x);
}

static void check_layer(const layer *l) {
    uint64_t seed = 5;
    int64_t directions = strcmp(l->direction, "bidirectional") == 0 ? 2 : 1, rows = l->gates * HIDDEN;
    bool cell = l->gates == 4;
    operands o;
    rig_fill(&seed, o.w, sizeof o.w / 8);
    rig_fill(&seed, o.r, sizeof o.r / 8);
    rig_fill(&seed, o.b, sizeof o.b / 8);
    rig_fill(&seed, o.h, sizeof o.h / 8);
    rig_fill(&seed, o.c, sizeof o.c / 8);
    rig_fill(&seed, o.p, sizeof o.p / 8);
    rig r;
    rig_init(&r, 14);
    char dims[32];
    rig_input(&r, UIR_DTYPE_F32, l->batch_first ? "B,T,3" : "T,B,3");
    rig_constant(&r, UIR_DTYPE_F32, 3, (int64_t[]){directions, rows, IN}, o.w);
    rig_constant(&r, UIR_DTYPE_F32, 3, (int64_t[]){directions, rows, HIDDEN}, o.r);
    rig_constant(&r, UIR_DTYPE_F32, 2, (int64_t[]){directions, 2 * rows}, o.b);
    uint32_t lengths_at = 0, h_at = 0;
    uint32_t given = 1;
    if (l->lengths) {
        rig_input(&r, UIR_DTYPE_I32, "B");
        lengths_at = given++;
    } else
        rig_absent(&r);
    snprintf(dims, sizeof dims, l->batch_first ? "B,%d,2" : "%d,B,2", (int)directions);
    for (int i = 0; i < 1 + cell; i++) {
        if (l->initial) {
            rig_input(&r, UIR_DTYPE_F32, dims);
            if (i == 0) h_at = given;
            given++;
        } else
            rig_absent(&r);
    }
    if (l->peepholes) rig_constant(&r, UIR_DTYPE_F32, 2, (int64_t[]){directions, 3 * HIDDEN}, o.p);
    rig_text(&r, "direction", l->direction);
    rig_int(&r, "hidden_size", HIDDEN);
    if (l->batch_first) rig_int(&r, "layout", 1);
    if (l->clip > 0) rig_float(&r, "clip", l->clip);
    if (l->linear_before_reset) rig_int(&r, "linear_before_reset", 1);
    if (l->input_forget) rig_int(&r, "input_forget", 1);
    rig_decompose(&r, "", l->op, 2 + cell);
    for (int64_t time = 0; time <= MAX_TIME; time++) {
        double swap[MAX_TIME * 2 * BATCH * HIDDEN * 2];
        rig_fill(&seed, o.x, (uint64_t)(time * BATCH * IN));
        o.lengths[0] = (double)time, o.lengths[1] = (double)(time / 2);
        loops(l, &o, time, directions);
        int64_t leading[2] = {l->batch_first ? BATCH : time, l->batch_first ? time : BATCH};
        if (l->batch_first) swapped(o.x, time, BATCH, IN, swap);
        rig_give(&r, 0, UIR_DTYPE_F32, 3, (int64_t[]){leading[0], leading[1], IN}, l->batch_first ? swap : o.x);
        if (l->lengths) rig_give(&r, lengths_at, UIR_DTYPE_I32, 1, (int64_t[]){BATCH}, o.lengths);
        for (uint32_t i = 0; i < 1u + cell && l->initial; i++) {
            const double *state = i ? o.c : o.h;
            if (l->batch_first) swapped(state, directions, BATCH, HIDDEN, swap);
            int64_t shape[3] = {l->batch_first ? BATCH : directions, l->batch_first ? directions : BATCH, HIDDEN};
            rig_give(&r, h_at + i, UIR_DTYPE_F32, 3, shape, l->batch_first ? swap : state);
        }
        rig_run(&r);
        uint64_t count = (uint64_t)(time * directions * BATCH * HIDDEN), ends = (uint64_t)(directions * BATCH * HIDDEN);
        if (l->batch_first) { /* [B, T, D, H] */
            swapped(o.y, time * directions, BATCH, HIDDEN, swap);
            rig_expect(&r, 0, swap, count, 1e-5);
            swapped(o.last_h, directions, BATCH, HIDDEN, swap);
            rig_expect(&r, 1, swap, ends, 1e-5);
        } else {
            rig_expect_shape(&r, 0, 4, (int64_t[]){time, directions, BATCH, HIDDEN});
            rig_expect(&r, 0, o.y, count, 1e-5);
            rig_expect(&r, 1, o.last_h, ends, 1e-5);
            if (cell) rig_expect(&r, 2, o.last_c, ends, 1e-5);
        }
    }
    rig_deinit(&r);
}

static void test_layers(void **state) {
    (void)state;
    static const layer layers[] = {
        {"LSTM", 4, "forward", false, false, false, false, false, false, 0},
        {"LSTM", 4, "reverse", false, true, true, false, false, false, 0.5},
        {"LSTM", 4, "bidirectional", true, true, true, false, false, false, 0},
        {"LSTM", 4, "bidirectional", false, true, false, false, true, true, 0},
        {"GRU", 3, "forward", false, true, false, false, false, false, 0},
        {"GRU", 3, "reverse", true, false, false, true, false, false, 0},
        {"GRU", 3, "bidirectional", true, true, false, true, false, true, 0.25},
        {"GRU", 3, "bidirectional", false, false, false, false, false, false, 0},
        {"RNN", 1, "forward", false, true, false, false, false, true, 0},
        {"RNN", 1, "bidirectional", true, true, false, false, false, false, 0.75},
    };
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) check_layer(&layers[i]);
}

/* Named in any case; alphas and betas go to the functions that take them. */
static void test_activations(void **state) {
    (void)state;
    static const struct {
        const char *name;
        double alpha, beta, wanted; /* of 0.5 */
    } rows[] = {
        {"Relu", 0, 0, 0.5},
        {"affine", 2, 1, 2},
        {"LeakyRelu", 0.1, 0, 0.5},
        {"THRESHOLDEDRELU", 0.6, 0, 0},
        {"ScaledTanh", 2, 3, 1.810297},
        {"HardSigmoid", 0.2, 0.5, 0.6},
        {"Elu", 1, 0, 0.5},
        {"Softsign", 0, 0, 1.0 / 3},
        {"Softplus", 0, 0, 0.974077},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig r;
        rig_init(&r, 14);
        rig_input(&r, UIR_DTYPE_F32, "1,1,1");
        rig_constant(&r, UIR_DTYPE_F32, 3, (int64_t[]){1, 1, 1}, (double[]){1});
        rig_constant(&r, UIR_DTYPE_F32, 3, (int64_t[]){1, 1, 1}, (double[]){1});
        rig_texts(&r, "activations", 1, &rows[i].name);
        uir_attribute list = uir_attribute_float(&r.maker, "activation_alpha", 0);
        list.kind = UIR_ATTRIBUTE_FLOATS;
        list.count = 1;
        list.value.reals = &rows[i].alpha;
        r.attributes[r.attribute_count++] = list;
        list = uir_attribute_float(&r.maker, "activation_beta", 0);
        list.kind = UIR_ATTRIBUTE_FLOATS;
        list.count = 1;
        list.value.reals = &rows[i].beta;
        r.attributes[r.attribute_count++] = list;
        rig_decompose(&r, "", "RNN", 1);
        rig_give(&r, 0, UIR_DTYPE_F32, 3, (int64_t[]){1, 1, 1}, (double[]){0.5});
        rig_run(&r);
        rig_expect(&r, 0, &rows[i].wanted, 1, 1e-5);
        rig_deinit(&r);
    }
}

/* The input product stands outside the loop: one contraction for all steps, the loop's body has the recurrent one. */
static void test_hoisting(void **state) {
    (void)state;
    rig r;
    rig_init(&r, 14);
    rig_input(&r, UIR_DTYPE_F32, "T,B,3");
    rig_input(&r, UIR_DTYPE_F32, "1,8,3");
    rig_input(&r, UIR_DTYPE_F32, "1,8,2");
    rig_decompose(&r, "", "LSTM", 1);
    assert_int_equal(rig_count(&r, UIR_OP_MATMUL), 1);
    assert_int_equal(rig_count(&r, UIR_OP_LOOP), 1);
    rig_deinit(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_hoisting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
