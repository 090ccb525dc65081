/* Pools against loops: ceil_mode, padding that counts or not, indices, over sizes that are symbols when decomposed. */
#include "rig.h"

#include <stdio.h>

typedef struct setting {
    int64_t kernel, stride, dilation, low, high, ceil, count_padding;
    const char *auto_pad;
} setting;

static const setting settings[] = {
    {3, 1, 1, 0, 0, 0, 0, "NOTSET"},     {3, 2, 1, 1, 1, 0, 0, "NOTSET"}, {3, 2, 1, 1, 1, 1, 0, "NOTSET"},
    {3, 2, 1, 1, 1, 1, 1, "NOTSET"},     {2, 3, 2, 0, 1, 1, 1, "NOTSET"}, {2, 2, 1, 0, 0, 0, 1, "SAME_UPPER"},
    {3, 2, 1, 0, 0, 0, 0, "SAME_LOWER"}, {1, 3, 1, 0, 0, 1, 0, "NOTSET"},
};

/* Low padding, high padding as given, and the number of positions. */
static void place(const setting *s, int64_t in, int64_t *low, int64_t *high, int64_t *count) {
    int64_t span = (s->kernel - 1) * s->dilation + 1;
    *low = s->low, *high = s->high;
    if (strncmp(s->auto_pad, "SAME", 4) == 0) {
        *count = (in + s->stride - 1) / s->stride;
        int64_t total = (*count - 1) * s->stride + span - in;
        if (total < 0) total = 0;
        *low = strcmp(s->auto_pad, "SAME_UPPER") == 0 ? total / 2 : total - total / 2;
        *high = total - *low;
        return;
    }
    int64_t reach = in + s->low + s->high - span;
    if (reach < 0 && !(s->ceil && reach > -s->stride)) {
        *count = 0;
        return;
    }
    *count = s->ceil ? (reach + s->stride - 1) / s->stride + 1 : reach / s->stride + 1;
    if (s->ceil && (*count - 1) * s->stride >= in + s->low) --*count;
}

static void describe(rig *r, const setting *s) {
    rig_ints(r, "kernel_shape", 1, &s->kernel);
    rig_ints(r, "strides", 1, &s->stride);
    rig_ints(r, "dilations", 1, &s->dilation);
    rig_int(r, "ceil_mode", s->ceil);
    rig_text(r, "auto_pad", s->auto_pad);
    if (strcmp(s->auto_pad, "NOTSET") == 0) rig_ints(r, "pads", 2, (int64_t[]){s->low, s->high});
}

static void test_average(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const setting *s = &settings[i];
        rig r;
        rig_init(&r, 19);
        rig_input(&r, UIR_DTYPE_F32, "N,2,L");
        describe(&r, s);
        rig_int(&r, "count_include_pad", s->count_padding);
        rig_decompose(&r, "", "AveragePool", 1);
        for (int64_t in = 3; in < 12; in++) {
            double x[24], y[40];
            int64_t low, high, count;
            place(s, in, &low, &high, &count);
            rig_fill(&seed, x, (uint64_t)(2 * in));
            for (int64_t c = 0; c < 2; c++)
                for (int64_t o = 0; o < count; o++) {
                    double sum = 0, counted = 0;
                    for (int64_t k = 0; k < s->kernel; k++) {
                        int64_t at = o * s->stride - low + k * s->dilation;
                        if (at >= 0 && at < in) sum += x[c * in + at];
                        bool counts = s->count_padding ? at >= -low && at < in + high : at >= 0 && at < in;
                        counted += counts;
                    }
                    y[c * count + o] = sum / counted;
                }
            rig_give(&r, 0, UIR_DTYPE_F32, 3, (int64_t[]){1, 2, in}, x);
            rig_run(&r);
            rig_expect_shape(&r, 0, 3, (int64_t[]){1, 2, count});
            rig_expect(&r, 0, y, (uint64_t)(2 * count), 1e-6);
        }
        rig_deinit(&r);
    }
}

/* Values of equal size occur: the first one's index counts. */
static void test_max_with_indices(void **state) {
    (void)state;
    uint64_t seed = 2;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const setting *s = &settings[i];
        rig r;
        rig_init(&r, 12);
        rig_input(&r, UIR_DTYPE_I8, "N,2,L");
        describe(&r, s);
        rig_decompose(&r, "", "MaxPool", 2);
        for (int64_t in = 3; in < 10; in++) {
            double x[40], y[60], index[60];
            int64_t low, high, count;
            place(s, in, &low, &high, &count);
            for (int64_t j = 0; j < 4 * in; j++) x[j] = floor(rig_random(&seed) * 3);
            for (int64_t plane = 0; plane < 4; plane++)
                for (int64_t o = 0; o < count; o++) {
                    double best = -1000, where = -1;
                    for (int64_t k = 0; k < s->kernel; k++) {
                        int64_t at = o * s->stride - low + k * s->dilation;
                        if (at < 0 || at >= in || x[plane * in + at] <= best) continue;
                        best = x[plane * in + at];
                        where = (double)(plane * in + at);
                    }
                    y[plane * count + o] = best;
                    index[plane * count + o] = where;
                }
            rig_give(&r, 0, UIR_DTYPE_I8, 3, (int64_t[]){2, 2, in}, x);
            rig_run(&r);
            rig_expect(&r, 0, y, (uint64_t)(4 * count), 0);
            rig_expect(&r, 1, index, (uint64_t)(4 * count), 0);
        }
        rig_deinit(&r);
    }
}

/* Column-major indices, two axes. */
static void test_storage_order(void **state) {
    (void)state;
    rig r;
    rig_init(&r, 12);
    rig_input(&r, UIR_DTYPE_F32, "1,1,H,W");
    rig_ints(&r, "kernel_shape", 2, (int64_t[]){2, 2});
    rig_int(&r, "storage_order", 1);
    rig_decompose(&r, "", "MaxPool", 2);
    rig_give(&r, 0, UIR_DTYPE_F32, 4, (int64_t[]){1, 1, 2, 3}, (double[]){0, 5, 1, 2, 3, 9});
    rig_run(&r);
    rig_expect(&r, 0, (double[]){5, 9}, 2, 0);
    rig_expect(&r, 1, (double[]){2, 5}, 2, 0); /* (0, 1) is 0 + 1*2, (1, 2) is 1 + 2*2 */
    rig_deinit(&r);
}

static void test_global(void **state) {
    (void)state;
    static const struct {
        const char *op;
        double wanted[2];
    } ops[] = {
        {"GlobalAveragePool", {2.5, -2.5}}, {"GlobalMaxPool", {4, -1}}, {"GlobalLpPool", {5.4772256, 5.4772256}}};
    for (size_t i = 0; i < 3; i++) {
        rig r;
        rig_init(&r, 22);
        rig_input(&r, UIR_DTYPE_F32, "N,C,H,W");
        rig_decompose(&r, "", ops[i].op, 1);
        rig_give(&r, 0, UIR_DTYPE_F32, 4, (int64_t[]){1, 2, 2, 2}, (double[]){1, 2, 3, 4, -1, -2, -3, -4});
        rig_run(&r);
        rig_expect_shape(&r, 0, 4, (int64_t[]){1, 2, 1, 1});
        rig_expect(&r, 0, ops[i].wanted, 2, 1e-6);
        rig_give(&r, 0, UIR_DTYPE_F32, 4, (int64_t[]){0, 2, 2, 2}, NULL);
        rig_run(&r);
        rig_expect_shape(&r, 0, 4, (int64_t[]){0, 2, 1, 1});
        rig_deinit(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_average),
        cmocka_unit_test(test_max_with_indices),
        cmocka_unit_test(test_storage_order),
        cmocka_unit_test(test_global),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
