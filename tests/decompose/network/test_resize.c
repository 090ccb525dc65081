/* Resize against a loop over each output element, sizes known or not, scales or sizes, every coordinate mode. */
#include "rig.h"

#include <stdio.h>

typedef struct setting {
    const char *mode, *transform, *nearest;
    double scale; /* 0: by size */
    int64_t size;
    bool antialias, exclude;
} setting;

static const setting settings[] = {
    {"nearest", "asymmetric", "floor", 2, 0, false, false},
    {"nearest", "half_pixel", "round_prefer_floor", 3, 0, false, false},
    {"nearest", "half_pixel", "round_prefer_ceil", 0.5, 0, false, false},
    {"nearest", "asymmetric", "ceil", 0, 5, false, false},
    {"nearest", "align_corners", "round_prefer_ceil", 0, 9, false, false},
    {"linear", "half_pixel", "floor", 2, 0, false, false},
    {"linear", "pytorch_half_pixel", "floor", 0, 1, false, false},
    {"linear", "align_corners", "floor", 0, 7, false, false},
    {"linear", "asymmetric", "floor", 1.5, 0, false, false},
    {"linear", "half_pixel_symmetric", "floor", 0.75, 0, false, false},
    {"cubic", "half_pixel", "floor", 2.5, 0, false, false},
    {"cubic", "half_pixel", "floor", 0.5, 0, false, true},
    {"linear", "half_pixel", "floor", 0.5, 0, true, false},
    {"cubic", "half_pixel", "floor", 0, 3, true, true},
};

static double weight_of(const setting *s, double d) {
    d = fabs(d);
    if (strcmp(s->mode, "linear") == 0) return fmax(1 - d, 0);
    const double a = -0.75;
    if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

static double coordinate(const setting *s, double x, double in, double out, double scale) {
    double length = in * scale;
    if (strcmp(s->transform, "asymmetric") == 0) return x / scale;
    if (strcmp(s->transform, "align_corners") == 0) return length == 1 ? 0 : x * (in - 1) / (length - 1);
    if (strcmp(s->transform, "pytorch_half_pixel") == 0 && out <= 1) return 0;
    double centred = (x + 0.5) / scale - 0.5;
    return strcmp(s->transform, "half_pixel_symmetric") == 0 ? centred + in / 2 * (1 - out / length) : centred;
}

static double pixel(const double *row, int64_t at, int64_t in) {
    return row[at < 0 ? 0 : at >= in ? in - 1 : at];
}

static double sample(const setting *s, const double *row, int64_t in, double at, double scale) {
    if (strcmp(s->mode, "nearest") == 0) {
        double index = strcmp(s->nearest, "floor") == 0               ? floor(at)
                       : strcmp(s->nearest, "ceil") == 0              ? ceil(at)
                       : strcmp(s->nearest, "round_prefer_ceil") == 0 ? floor(at + 0.5)
                                                                      : ceil(at - 0.5);
        return pixel(row, (int64_t)index, in);
    }
    double narrow = s->antialias ? fmin(scale, 1) : 1, sum = 0, total = 0;
    for (int64_t i = (int64_t)floor(at) - 16; i < (int64_t)floor(at) + 18; i++) {
        double w = weight_of(s, ((double)i - at) * narrow);
        if (s->exclude && (i < 0 || i >= in)) w = 0;
        sum += w * pixel(row, i, in);
        total += w;
    }
    return sum / total;
}

/* by_name: the extent is a symbol when decomposed; runtime: scales or sizes come as an input. */
static void check(const setting *s, bool by_name, bool runtime) {
    uint64_t seed = 8;
    for (int64_t in = 2; in < 9; in++) {
        double x[16], y[64], scale = s->scale > 0 ? s->scale : (double)s->size / (double)in;
        int64_t out = s->scale > 0 ? (int64_t)floor((double)in * s->scale) : s->size;
        rig_fill(&seed, x, (uint64_t)(2 * in));
        for (int64_t c = 0; c < 2; c++)
            for (int64_t o = 0; o < out; o++)
                y[c * out + o] =
                    sample(s, x + c * in, in, coordinate(s, (double)o, (double)in, (double)out, scale), scale);
        rig r;
        rig_init(&r, 19);
        char dims[16];
        snprintf(dims, sizeof dims, by_name ? "C,L" : "2,%d", (int)in);
        rig_input(&r, UIR_DTYPE_F32, dims);
        rig_absent(&r);
        const int64_t one = 1;
        double number = s->scale > 0 ? s->scale : (double)s->size;
        uir_dtype dtype = s->scale > 0 ? UIR_DTYPE_F32 : UIR_DTYPE_I64;
        if (s->scale <= 0) rig_absent(&r);
        if (runtime)
            rig_input(&r, dtype, "1");
        else
            rig_constant(&r, dtype, 1, &one, &number);
        rig_ints(&r, "axes", 1, &one);
        rig_text(&r, "mode", s->mode);
        rig_text(&r, "coordinate_transformation_mode", s->transform);
        rig_text(&r, "nearest_mode", s->nearest);
        rig_int(&r, "antialias", s->antialias);
        rig_int(&r, "exclude_outside", s->exclude);
        rig_decompose(&r, "", "Resize", 1);
        rig_give(&r, 0, UIR_DTYPE_F32, 2, (int64_t[]){2, in}, x);
        if (runtime) rig_give(&r, 1, dtype, 1, &one, &number);
        rig_run(&r);
        rig_expect_shape(&r, 0, 2, (int64_t[]){2, out});
        rig_expect(&r, 0, y, (uint64_t)(2 * out), 1e-5);
        rig_deinit(&r);
    }
}

static void test_fixed(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) check(&settings[i], false, false);
}
static void test_symbolic(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) check(&settings[i], true, false);
}
static void test_runtime(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) check(&settings[i], true, true);
}

/* A whole scale that only repeats elements is movement: no gather, no coordinates. */
static void test_repeats(void **state) {
    (void)state;
    rig r;
    rig_init(&r, 13);
    rig_input(&r, UIR_DTYPE_F32, "1,1,H,W");
    rig_absent(&r);
    rig_constant(&r, UIR_DTYPE_F32, 1, (int64_t[]){4}, (double[]){1, 1, 2, 3});
    rig_text(&r, "coordinate_transformation_mode", "asymmetric");
    rig_text(&r, "nearest_mode", "floor");
    rig_decompose(&r, "", "Resize", 1);
    assert_int_equal(rig_count(&r, UIR_OP_GATHER), 0);
    assert_int_equal(rig_count(&r, UIR_OP_IOTA), 0);
    rig_give(&r, 0, UIR_DTYPE_F32, 4, (int64_t[]){1, 1, 1, 2}, (double[]){1, 2});
    rig_run(&r);
    rig_expect(&r, 0, (double[]){1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2}, 12, 0);
    rig_give(&r, 0, UIR_DTYPE_F32, 4, (int64_t[]){1, 1, 0, 2}, NULL);
    rig_run(&r);
    rig_expect_shape(&r, 0, 4, (int64_t[]){1, 1, 0, 6});
    rig_deinit(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fixed),
        cmocka_unit_test(test_symbolic),
        cmocka_unit_test(test_runtime),
        cmocka_unit_test(test_repeats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
