/* Convolutions and products against loops, with symbolic extents bound to several sizes, 0 among them. */
#include "rig.h"

#include <stdio.h>

typedef struct setting {
    int64_t groups, channels, filters, kernel, stride, dilation, low, high, extra; /* channels per group */
    const char *auto_pad;
} setting;

static const setting settings[] = {
    {1, 2, 3, 3, 1, 1, 1, 1, 0, "NOTSET"},     {1, 2, 3, 3, 2, 1, 0, 1, 1, "NOTSET"},
    {2, 1, 4, 2, 3, 2, 2, 1, 2, "NOTSET"},     {3, 1, 3, 3, 2, 1, 0, 0, 1, "VALID"},
    {1, 1, 2, 3, 2, 1, 0, 0, 0, "SAME_UPPER"}, {1, 1, 2, 4, 3, 1, 0, 0, 0, "SAME_LOWER"},
    {1, 2, 2, 1, 2, 1, 0, 0, 0, "SAME_UPPER"},
};

/* Padding at the low end and the number of positions. */
static void place(const setting *s, int64_t in, int64_t *out_low, int64_t *out_count) {
    int64_t span = (s->kernel - 1) * s->dilation + 1;
    *out_low = s->low;
    if (strncmp(s->auto_pad, "SAME", 4) == 0) {
        *out_count = (in + s->stride - 1) / s->stride;
        int64_t total = (*out_count - 1) * s->stride + span - in;
        if (total < 0) total = 0;
        *out_low = strcmp(s->auto_pad, "SAME_UPPER") == 0 ? total / 2 : total - total / 2;
        return;
    }
    int64_t reach = in + s->low + s->high - span;
    *out_count = reach < 0 ? 0 : reach / s->stride + 1;
}

static void conv_loops(const setting *s, int64_t batch, int64_t in, const double *x, const double *w,
                       const double *bias, double *y, int64_t *out_count) {
    int64_t low, count, per_group = s->filters / s->groups, all = s->channels * s->groups;
    place(s, in, &low, &count);
    *out_count = count;
    for (int64_t n = 0; n < batch; n++)
        for (int64_t f = 0; f < s->filters; f++)
            for (int64_t o = 0; o < count; o++) {
                double sum = bias[f];
                for (int64_t c = 0; c < s->channels; c++)
                    for (int64_t k = 0; k < s->kernel; k++) {
                        int64_t at = o * s->stride - low + k * s->dilation, channel = f / per_group * s->channels + c;
                        if (at >= 0 && at < in)
                            sum += x[(n * all + channel) * in + at] * w[(f * s->channels + c) * s->kernel + k];
                    }
                y[(n * s->filters + f) * count + o] = sum;
            }
}

static void test_conv(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const setting *s = &settings[i];
        double x[1000], w[200], bias[8], y[2000];
        rig_fill(&seed, w, (uint64_t)(s->filters * s->channels * s->kernel));
        rig_fill(&seed, bias, (uint64_t)s->filters);
        rig r;
        rig_init(&r, 22);
        char dims[32];
        snprintf(dims, sizeof dims, "N,%d,L", (int)(s->channels * s->groups));
        rig_input(&r, UIR_DTYPE_F32, dims);
        rig_constant(&r, UIR_DTYPE_F32, 3, (int64_t[]){s->filters, s->channels, s->kernel}, w);
        rig_constant(&r, UIR_DTYPE_F32, 1, (int64_t[]){s->filters}, bias);
        rig_int(&r, "group", s->groups);
        rig_ints(&r, "strides", 1, &s->stride);
        rig_ints(&r, "dilations", 1, &s->dilation);
        rig_text(&r, "auto_pad", s->auto_pad);
        if (strcmp(s->auto_pad, "NOTSET") == 0) rig_ints(&r, "pads", 2, (int64_t[]){s->low, s->high});
        rig_decompose(&r, "", "Conv", 1);
        for (int64_t in = 1; in < 12; in++) {
            int64_t batch = in % 3, count, shape[3] = {batch, s->channels * s->groups, in};
            rig_fill(&seed, x, (uint64_t)(batch * shape[1] * in));
            rig_give(&r, 0, UIR_DTYPE_F32, 3, shape, x);
            rig_run(&r);
            conv_loops(s, batch, in, x, w, bias, y, &count);
            rig_expect_shape(&r, 0, 3, (int64_t[]){batch, s->filters, count});
            rig_expect(&r, 0, y, (uint64_t)(batch * s->filters * count), 1e-5);
        }
        rig_deinit(&r);
    }
}

/* Scattering each input element over the window it stands for. */
static void transpose_loops(const setting *s, int64_t in, const double *x, const double *w, double *y, int64_t out,
                            int64_t low) {
    int64_t per_group = s->filters / s->groups;
    memset(y, 0, (size_t)(s->filters * out) * sizeof *y);
    for (int64_t c = 0; c < s->channels * s->groups; c++)
        for (int64_t f = 0; f < per_group; f++)
            for (int64_t i = 0; i < in; i++)
                for (int64_t k = 0; k < s->kernel; k++) {
                    int64_t at = i * s->stride + k * s->dilation - low, filter = c / s->channels * per_group + f;
                    if (at >= 0 && at < out)
                        y[filter * out + at] += x[c * in + i] * w[(c * per_group + f) * s->kernel + k];
                }
}

static void test_conv_transpose(void **state) {
    (void)state;
    uint64_t seed = 2;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const setting *s = &settings[i];
        bool same = strncmp(s->auto_pad, "SAME", 4) == 0, plain = strcmp(s->auto_pad, "NOTSET") == 0;
        int64_t extra = s->extra < s->stride ? s->extra : 0, span = (s->kernel - 1) * s->dilation + 1;
        int64_t channels = s->channels * s->groups, per_group = s->filters / s->groups;
        double x[1000], w[200], y[2000];
        rig_fill(&seed, w, (uint64_t)(channels * per_group * s->kernel));
        rig r;
        rig_init(&r, 11);
        char dims[32];
        snprintf(dims, sizeof dims, "1,%d,L", (int)channels);
        rig_input(&r, UIR_DTYPE_F32, dims);
        rig_constant(&r, UIR_DTYPE_F32, 3, (int64_t[]){channels, per_group, s->kernel}, w);
        rig_int(&r, "group", s->groups);
        rig_ints(&r, "strides", 1, &s->stride);
        rig_ints(&r, "dilations", 1, &s->dilation);
        rig_ints(&r, "output_padding", 1, &extra);
        rig_text(&r, "auto_pad", s->auto_pad);
        if (plain) rig_ints(&r, "pads", 2, (int64_t[]){s->low, s->high});
        rig_decompose(&r, "", "ConvTranspose", 1);
        for (int64_t in = 1; in < 8; in++) {
            int64_t full = (in - 1) * s->stride + span + extra, low = plain ? s->low : 0, out = full;
            if (plain) out -= s->low + s->high;
            if (same) {
                out = in * s->stride;
                int64_t total = full > out ? full - out : 0;
                low = strcmp(s->auto_pad, "SAME_UPPER") == 0 ? total / 2 : total - total / 2;
            }
            if (out < 1) continue;
            rig_fill(&seed, x, (uint64_t)(channels * in));
            rig_give(&r, 0, UIR_DTYPE_F32, 3, (int64_t[]){1, channels, in}, x);
            rig_run(&r);
            transpose_loops(s, in, x, w, y, out, low);
            rig_expect_shape(&r, 0, 3, (int64_t[]){1, s->filters, out});
            rig_expect(&r, 0, y, (uint64_t)(s->filters * out), 1e-5);
        }
        rig_deinit(&r);
    }
}

/* Two axes of known size, the other one its mirror: phases by themselves where that is less to multiply, together, and
 * images of one element. */
static void transpose_at(uint64_t *seed, int64_t in, int64_t kernel, int64_t stride, int64_t low, int64_t high,
                         int64_t filters) {
    enum { CHANNELS = 2 };
    int64_t out = (in - 1) * stride + kernel - low - high;
    double x[CHANNELS * 16], w[CHANNELS * 16 * 25], y[16 * 14 * 14] = {0};
    char dims[32];
    rig r;
    if (out < 1) return;
    rig_fill(seed, x, (uint64_t)(CHANNELS * in * in));
    rig_fill(seed, w, (uint64_t)(CHANNELS * filters * kernel * kernel));
    for (int64_t c = 0; c < CHANNELS; c++)
        for (int64_t f = 0; f < filters; f++)
            for (int64_t i = 0; i < in * in; i++)
                for (int64_t k = 0; k < kernel * kernel; k++) {
                    int64_t line = i / in * stride + k / kernel - low, at = i % in * stride + k % kernel - high;
                    if (line < 0 || line >= out || at < 0 || at >= out) continue;
                    y[(f * out + line) * out + at] += x[c * in * in + i] * w[(c * filters + f) * kernel * kernel + k];
                }
    snprintf(dims, sizeof dims, "1,2,%d,%d", (int)in, (int)in);
    rig_init(&r, 11);
    rig_input(&r, UIR_DTYPE_F32, dims);
    rig_constant(&r, UIR_DTYPE_F32, 4, (int64_t[]){CHANNELS, filters, kernel, kernel}, w);
    rig_ints(&r, "strides", 2, (int64_t[]){stride, stride});
    rig_ints(&r, "pads", 4, (int64_t[]){low, high, high, low});
    rig_decompose(&r, "", "ConvTranspose", 1);
    rig_give(&r, 0, UIR_DTYPE_F32, 4, (int64_t[]){1, CHANNELS, in, in}, x);
    rig_run(&r);
    rig_expect_shape(&r, 0, 4, (int64_t[]){1, filters, out, out});
    rig_expect(&r, 0, y, (uint64_t)(filters * out * out), 1e-5);
    rig_deinit(&r);
}

static void test_conv_transpose_sizes(void **state) {
    (void)state;
    uint64_t seed = 4;
    for (int64_t in = 1; in < 5; in++)
        for (int64_t kernel = 1; kernel < 6; kernel++)
            for (int64_t stride = 1; stride < 4; stride++)
                for (int64_t low = 0; low < 3; low++)
                    for (int64_t high = 0; high < 3; high++)
                        for (int64_t filters = 3; filters < 17; filters += 13)
                            transpose_at(&seed, in, kernel, stride, low, high, filters);
}

/* Zero points on both sides, padding that stands for zero: the sums are exact integers. */
static void test_conv_integer(void **state) {
    (void)state;
    const int64_t x_zero = 131, w_zero[4] = {3, 250, 0, 128};
    double x[2 * 2 * 7], w[4 * 1 * 3], zeros[4], y[1000];
    for (int i = 0; i < 28; i++) x[i] = (i * 97 + 13) % 256;
    for (int i = 0; i < 12; i++) w[i] = (i * 55 + 7) % 256;
    for (int i = 0; i < 4; i++) zeros[i] = (double)w_zero[i];
    rig r;
    rig_init(&r, 10);
    rig_input(&r, UIR_DTYPE_U8, "N,2,L");
    rig_constant(&r, UIR_DTYPE_U8, 3, (int64_t[]){4, 1, 3}, w);
    rig_constant(&r, UIR_DTYPE_U8, 0, NULL, (double[]){(double)x_zero});
    rig_constant(&r, UIR_DTYPE_U8, 1, (int64_t[]){4}, zeros);
    rig_int(&r, "group", 2);
    rig_ints(&r, "pads", 2, (int64_t[]){1, 2});
    rig_decompose(&r, "", "ConvInteger", 1);
    rig_give(&r, 0, UIR_DTYPE_U8, 3, (int64_t[]){2, 2, 7}, x);
    rig_run(&r);
    for (int n = 0; n < 2; n++)
        for (int f = 0; f < 4; f++)
            for (int o = 0; o < 8; o++) {
                double sum = 0;
                for (int k = 0; k < 3; k++) {
                    int at = o - 1 + k;
                    if (at >= 0 && at < 7)
                        sum += (x[(n * 2 + f / 2) * 7 + at] - (double)x_zero) * (w[f * 3 + k] - zeros[f]);
                }
                y[(n * 4 + f) * 8 + o] = sum;
            }
    rig_expect_shape(&r, 0, 3, (int64_t[]){2, 4, 8});
    rig_expect(&r, 0, y, 64, 0);
    rig_deinit(&r);
}

typedef struct product {
    const char *a, *b;
    uint32_t a_rank, b_rank, y_rank;
    int64_t a_shape[4], b_shape[4], y_shape[4];
} product;

/* Every pairing of ranks, extents known or not, with broadcast batches and empty sums. */
static void test_matmul(void **state) {
    (void)state;
    static const product products[] = {
        {"K", "K", 1, 1, 0, {3}, {3}, {0}},
        {"K", "K,N", 1, 2, 1, {3}, {3, 2}, {2}},
        {"M,K", "K", 2, 1, 1, {4, 3}, {3}, {4}},
        {"M,K", "K,N", 2, 2, 2, {4, 0}, {0, 2}, {4, 2}},
        {"B,M,K", "K,N", 3, 2, 3, {2, 4, 3}, {3, 5}, {2, 4, 5}},
        {"K", "B,K,N", 1, 3, 2, {3}, {2, 3, 5}, {2, 5}},
        {"A,B,M,K", "C,K,N", 4, 3, 4, {2, 3, 2, 3}, {1, 3, 4}, {2, 3, 2, 4}},
        {"1,M,K", "B,K,N", 3, 3, 3, {1, 2, 3}, {0, 3, 4}, {0, 2, 4}},
        {"A,M,K", "B,K,1", 3, 3, 3, {1, 2, 3}, {4, 3, 1}, {4, 2, 1}},
    };
    uint64_t seed = 3;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        const product *p = &products[i];
        double a[200], b[200];
        uint64_t a_count = 1, b_count = 1, y_count = 1;
        for (uint32_t d = 0; d < p->a_rank; d++) a_count *= (uint64_t)p->a_shape[d];
        for (uint32_t d = 0; d < p->b_rank; d++) b_count *= (uint64_t)p->b_shape[d];
        for (uint32_t d = 0; d < p->y_rank; d++) y_count *= (uint64_t)p->y_shape[d];
        rig_fill(&seed, a, a_count);
        rig_fill(&seed, b, b_count);
        rig r;
        rig_init(&r, 13);
        rig_input(&r, UIR_DTYPE_F32, p->a);
        rig_input(&r, UIR_DTYPE_F32, p->b);
        rig_decompose(&r, "", "MatMul", 1);
        rig_give(&r, 0, UIR_DTYPE_F32, p->a_rank, p->a_shape, a);
        rig_give(&r, 1, UIR_DTYPE_F32, p->b_rank, p->b_shape, b);
        rig_run(&r);
        rig_expect_shape(&r, 0, p->y_rank, p->y_shape);
        int64_t m = p->a_rank > 1 ? p->a_shape[p->a_rank - 2] : 1, k = p->a_shape[p->a_rank - 1];
        int64_t n = p->b_rank > 1 ? p->b_shape[p->b_rank - 1] : 1;
        uint64_t batches = m * n > 0 ? y_count / (uint64_t)(m * n) : 0;
        for (uint64_t batch = 0; batch < batches; batch++) {
            /* Batches repeat from the right; the pairs above have one batch axis that counts. */
            uint64_t a_batch = a_count / (uint64_t)(m * k > 0 ? m * k : 1),
                     b_batch = b_count / (uint64_t)(k * n > 0 ? k * n : 1);
            const double *left = a + (a_batch > 1 ? batch : 0) * (uint64_t)(m * k);
            const double *right = b + (b_batch > 1 ? batch : 0) * (uint64_t)(k * n);
            for (int64_t at = 0; at < m * n; at++) {
                double sum = 0;
                for (int64_t j = 0; j < k; j++) sum += left[at / n * k + j] * right[j * n + at % n];
                assert_true(fabs(rig_get(&r, 0, batch * (uint64_t)(m * n) + (uint64_t)at) - sum) < 1e-5);
            }
        }
        rig_deinit(&r);
    }
}

static void test_gemm(void **state) {
    (void)state;
    rig r;
    rig_init(&r, 13);
    rig_input(&r, UIR_DTYPE_F16, "2,M");
    rig_input(&r, UIR_DTYPE_F16, "3,2");
    rig_input(&r, UIR_DTYPE_F16, "3");
    rig_int(&r, "transA", 1);
    rig_int(&r, "transB", 1);
    rig_float(&r, "alpha", 0.5);
    rig_float(&r, "beta", 2);
    rig_decompose(&r, "", "Gemm", 1);
    rig_give(&r, 0, UIR_DTYPE_F16, 2, (int64_t[]){2, 2}, (double[]){1, 2, 3, 4});
    rig_give(&r, 1, UIR_DTYPE_F16, 2, (int64_t[]){3, 2}, (double[]){1, 0, 0, 1, 1, 1});
    rig_give(&r, 2, UIR_DTYPE_F16, 1, (int64_t[]){3}, (double[]){1, 2, 3});
    rig_run(&r);
    rig_expect(&r, 0, (double[]){2.5, 5.5, 8, 3, 6, 9}, 6, 0);
    rig_give(&r, 0, UIR_DTYPE_F16, 2, (int64_t[]){2, 0}, NULL);
    rig_run(&r);
    rig_expect_shape(&r, 0, 2, (int64_t[]){0, 3});
    rig_deinit(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv),
        cmocka_unit_test(test_conv_transpose),
        cmocka_unit_test(test_conv_transpose_sizes),
        cmocka_unit_test(test_conv_integer),
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_gemm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
