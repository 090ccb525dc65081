/* Attention against loops: shared key heads, a past that may be empty, masks, causal order, lengths; rotary embedding.
 */
#include "rig.h"

typedef struct setting {
    int64_t heads, kv_heads, queries, keys, past;
    bool causal, float_mask, bool_mask, lengths;
    double softcap;
} setting;

enum { BATCH = 2, SIZE = 4, VALUE_SIZE = 3 };

static const setting settings[] = {
    {2, 2, 3, 3, 0, false, false, false, false, 0}, {4, 2, 3, 3, 0, true, false, false, false, 0},
    {6, 2, 1, 1, 5, true, false, false, false, 0},  {2, 1, 4, 4, 2, true, true, false, false, 2},
    {2, 2, 2, 5, 0, false, false, true, false, 0},  {4, 4, 2, 6, 0, false, true, false, true, 0},
};

/* [B, heads, rows, size] of the concatenation of past and now. */
static double at(const double *past, const double *now, int64_t heads, int64_t past_rows, int64_t rows, int64_t size,
                 int64_t b, int64_t h, int64_t row, int64_t j) {
    if (row < past_rows) return past[((b * heads + h) * past_rows + row) * size + j];
    return now[((b * heads + h) * rows + row - past_rows) * size + j];
}

typedef struct operands {
    double q[200], k[200], v[200], past_k[200], past_v[200], mask[200], lengths[BATCH], y[200];
} operands;

static void loops(const setting *s, operands *o) {
    int64_t total = s->past + s->keys;
    for (int64_t b = 0; b < BATCH; b++)
        for (int64_t h = 0; h < s->heads; h++)
            for (int64_t i = 0; i < s->queries; i++) {
                double score[16], most = -INFINITY, sum = 0;
                int64_t shared = h / (s->heads / s->kv_heads);
                for (int64_t j = 0; j < total; j++) {
                    double dot = 0;
                    for (int64_t d = 0; d < SIZE; d++)
                        dot += o->q[((b * s->heads + h) * s->queries + i) * SIZE + d] *
                               at(o->past_k, o->k, s->kv_heads, s->past, s->keys, SIZE, b, shared, j, d);
                    dot /= sqrt((double)SIZE);
                    if (s->softcap > 0) dot = s->softcap * tanh(dot / s->softcap);
                    if (s->float_mask) dot += o->mask[i * total + j];
                    if (s->bool_mask && o->mask[i * total + j] == 0) dot = -INFINITY;
                    if (s->causal && j > s->past + i) dot = -INFINITY;
                    if (s->lengths && j >= (int64_t)o->lengths[b]) dot = -INFINITY;
                    score[j] = dot;
                    most = fmax(most, dot);
                }
                for (int64_t j = 0; j < total; j++) sum += score[j] = exp(score[j] - most);
                for (int64_t d = 0; d < VALUE_SIZE; d++) {
                    double y = 0;
                    for (int64_t j = 0; j < total; j++)
                        y += score[j] / sum *
                             at(o->past_v, o->v, s->kv_heads, s->past, s->keys, VALUE_SIZE, b, shared, j, d);
                    o->y[((b * s->heads + h) * s->queries + i) * VALUE_SIZE + d] = y;
                }
            }
}

static void test_attention(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const setting *s = &settings[i];
        uint64_t seed = i + 1;
        int64_t total = s->past + s->keys;
        operands o;
        rig_fill(&seed, o.q, 200), rig_fill(&seed, o.k, 200), rig_fill(&seed, o.v, 200);
        rig_fill(&seed, o.past_k, 200), rig_fill(&seed, o.past_v, 200), rig_fill(&seed, o.mask, 200);
        for (int64_t j = 0; j < 200 && s->bool_mask; j++) o.mask[j] = o.mask[j] > -0.3 || j % total == 0;
        for (int64_t b = 0; b < BATCH; b++) o.lengths[b] = (double)(total - b);
        loops(s, &o);
        rig r;
        rig_init(&r, 24);
        /* Head counts that share must be known; all else is a symbol. */
        rig_input(&r, UIR_DTYPE_F32,
                  s->heads == s->kv_heads ? "B,H,S,D"
                  : s->heads == 6         ? "B,6,S,D"
                  : s->heads == 4         ? "B,4,S,D"
                                          : "B,2,S,D");
        rig_input(&r, UIR_DTYPE_F32, s->heads == s->kv_heads ? "B,H,K,D" : s->kv_heads == 1 ? "B,1,K,D" : "B,2,K,D");
        rig_input(&r, UIR_DTYPE_F32, s->heads == s->kv_heads ? "B,H,K,V" : s->kv_heads == 1 ? "B,1,K,V" : "B,2,K,V");
        uint32_t next = 3, mask_at = 0, lengths_at = 0;
        if (s->float_mask || s->bool_mask) {
            rig_input(&r, s->bool_mask ? UIR_DTYPE_BOOL : UIR_DTYPE_F32, "S,L");
            mask_at = next++;
        } else
            rig_absent(&r);
        bool with_past = !s->lengths;
        if (with_past) {
            rig_input(&r, UIR_DTYPE_F32,
                      s->heads == s->kv_heads ? "B,H,P,D"
                      : s->kv_heads == 1      ? "B,1,P,D"
                                              : "B,2,P,D");
            rig_input(&r, UIR_DTYPE_F32,
                      s->heads == s->kv_heads ? "B,H,P,V"
                      : s->kv_heads == 1      ? "B,1,P,V"
                                              : "B,2,P,V");
            next += 2;
        } else {
            rig_absent(&r);
            rig_absent(&r);
            rig_input(&r, UIR_DTYPE_I64, "B");
            lengths_at = next++;
        }
        if (s->causal) rig_int(&r, "is_causal", 1);
        if (s->softcap > 0) rig_float(&r, "softcap", s->softcap);
        rig_decompose(&r, "", "Attention", with_past ? 3 : 1);
        rig_give(&r, 0, UIR_DTYPE_F32, 4, (int64_t[]){BATCH, s->heads, s->queries, SIZE}, o.q);
        rig_give(&r, 1, UIR_DTYPE_F32, 4, (int64_t[]){BATCH, s->kv_heads, s->keys, SIZE}, o.k);
        rig_give(&r, 2, UIR_DTYPE_F32, 4, (int64_t[]){BATCH, s->kv_heads, s->keys, VALUE_SIZE}, o.v);
        if (mask_at)
            rig_give(&r, mask_at, s->bool_mask ? UIR_DTYPE_BOOL : UIR_DTYPE_F32, 2, (int64_t[]){s->queries, total},
                     o.mask);
        if (with_past) {
            rig_give(&r, next - 2, UIR_DTYPE_F32, 4, (int64_t[]){BATCH, s->kv_heads, s->past, SIZE}, o.past_k);
            rig_give(&r, next - 1, UIR_DTYPE_F32, 4, (int64_t[]){BATCH, s->kv_heads, s->past, VALUE_SIZE}, o.past_v);
        } else
            rig_give(&r, lengths_at, UIR_DTYPE_I64, 1, (int64_t[]){BATCH}, o.lengths);
        rig_run(&r);
        rig_expect_shape(&r, 0, 4, (int64_t[]){BATCH, s->heads, s->queries, VALUE_SIZE});
        rig_expect(&r, 0, o.y, (uint64_t)(BATCH * s->heads * s->queries * VALUE_SIZE), 1e-5);
        if (with_past) rig_expect_shape(&r, 1, 4, (int64_t[]){BATCH, s->kv_heads, total, SIZE});
        rig_deinit(&r);
    }
}

/* [B, S, heads * size] in, and no queries at all. */
static void test_flat_and_empty(void **state) {
    (void)state;
    rig r;
    rig_init(&r, 23);
    rig_input(&r, UIR_DTYPE_F16, "B,S,8");
    rig_input(&r, UIR_DTYPE_F16, "B,K,4");
    rig_input(&r, UIR_DTYPE_F16, "B,K,6");
    rig_int(&r, "q_num_heads", 4);
    rig_int(&r, "kv_num_heads", 2);
    rig_decompose(&r, "", "Attention", 1);
    double ones[64];
    for (int i = 0; i < 64; i++) ones[i] = 1;
    rig_give(&r, 0, UIR_DTYPE_F16, 3, (int64_t[]){1, 3, 8}, ones);
    rig_give(&r, 1, UIR_DTYPE_F16, 3, (int64_t[]){1, 2, 4}, ones);
    rig_give(&r, 2, UIR_DTYPE_F16, 3, (int64_t[]){1, 2, 6}, ones);
    rig_run(&r);
    rig_expect_shape(&r, 0, 3, (int64_t[]){1, 3, 12});
    rig_expect(&r, 0, ones, 36, 0);
    rig_give(&r, 0, UIR_DTYPE_F16, 3, (int64_t[]){1, 0, 8}, ones);
    rig_run(&r);
    rig_expect_shape(&r, 0, 3, (int64_t[]){1, 0, 12});
    rig_deinit(&r);
}

/* Turning by the angle of each position, halves or interleaved, part of the head or all of it. */
static void test_rotary(void **state) {
    (void)state;
    for (int interleaved = 0; interleaved < 2; interleaved++)
        for (int64_t width = 0; width <= 4; width += 4) {
            enum { HEAD = 6, POSITIONS = 8 };
            int64_t turned = width ? width : HEAD, half = turned / 2;
            double x[2 * HEAD * 3], cosines[POSITIONS * 3], sines[POSITIONS * 3], y[2 * HEAD * 3];
            const double positions[3] = {5, 0, 7};
            uint64_t seed = 4;
            rig_fill(&seed, x, 36);
            for (int64_t p = 0; p < POSITIONS; p++)
                for (int64_t j = 0; j < half; j++) {
                    cosines[p * half + j] = cos((double)(p * (j + 1)));
                    sines[p * half + j] = sin((double)(p * (j + 1)));
                }
            memcpy(y, x, sizeof y);
            for (int64_t h = 0; h < 2; h++)
                for (int64_t s = 0; s < 3; s++)
                    for (int64_t j = 0; j < half; j++) {
                        double *row = y + (h * 3 + s) * HEAD, *a = row + (interleaved ? 2 * j : j);
                        double *b = interleaved ? a + 1 : a + half, c = cosines[(int64_t)positions[s] * half + j];
                        double sine = sines[(int64_t)positions[s] * half + j], first = *a;
                        *a = first * c - *b * sine;
                        *b = first * sine + *b * c;
                    }
            rig r;
            rig_init(&r, 23);
            rig_input(&r, UIR_DTYPE_F32, "B,H,S,6");
            rig_constant(&r, UIR_DTYPE_F32, 2, (int64_t[]){POSITIONS, half}, cosines);
            rig_constant(&r, UIR_DTYPE_F32, 2, (int64_t[]){POSITIONS, half}, sines);
            rig_input(&r, UIR_DTYPE_I64, "B,S");
            rig_int(&r, "interleaved", interleaved);
            rig_int(&r, "rotary_embedding_dim", width);
            rig_decompose(&r, "", "RotaryEmbedding", 1);
            rig_give(&r, 0, UIR_DTYPE_F32, 4, (int64_t[]){1, 2, 3, HEAD}, x);
            rig_give(&r, 1, UIR_DTYPE_I64, 2, (int64_t[]){1, 3}, positions);
            rig_run(&r);
            rig_expect(&r, 0, y, 36, 1e-6);
            rig_deinit(&r);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_flat_and_empty),
        cmocka_unit_test(test_rotary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
