/* The functions of ir/kernel/interpret/kernel_math*.inc against the C library: of f32 in double, of f64 in long double where that has
 * more digits; within the ulp of ir/kernel/interpret/kernel_math.def, whatever the argument. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "ir/kernel/interpret/kernel_math.h"

#include <float.h>
#include <stdbool.h>
#include <stdio.h>

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

typedef struct function {
    const char *name;
    float (*of)(float);
    double (*exact)(double);
    double ulp; /* at most */
} function;

static const function functions[] = {
#define UIR_KERNEL_MATH(constant, name, ulp) {#name, uir_math_##name, name, ulp},
#include "ir/kernel/interpret/kernel_math.def"
};

typedef struct function_f64 {
    const char *name;
    double (*of)(double);
    long double (*exact)(long double);
    double ulp;
} function_f64;

static const function_f64 functions_f64[] = {
#define UIR_KERNEL_MATH_LARGE_F64(constant, name, ulp) {#name, uir_math_##name##_f64, name##l, ulp},
#include "ir/kernel/interpret/kernel_math.def"
};

typedef struct function_of_two {
    const char *name;
    float (*of)(float, float);
    double (*exact)(double, double);
    double ulp;
} function_of_two;

static const function_of_two functions_of_two[] = {
#define UIR_KERNEL_MATH_BINARY(constant, name, ulp) {#name, uir_math_##name, name, ulp},
#include "ir/kernel/interpret/kernel_math.def"
};

typedef struct function_of_two_f64 {
    const char *name;
    double (*of)(double, double);
    long double (*exact)(long double, long double);
    double ulp;
} function_of_two_f64;

static const function_of_two_f64 functions_of_two_f64[] = {
#define UIR_KERNEL_MATH_BINARY_F64(constant, name, ulp) {#name, uir_math_##name##_f64, name##l, ulp},
#include "ir/kernel/interpret/kernel_math.def"
};

/* Of a float: what no float reaches must be infinite. */
static double error_of(float got, double exact) {
    int exponent;
    if (isnan(exact)) return isnan(got) ? 0 : INFINITY;
    if (fabs(exact) >= 3.4028235677973366e38) return got == (float)exact ? 0 : INFINITY;
    if (!isfinite(got) || (got == 0 && !signbit(got) != !signbit(exact))) return INFINITY;
    frexp(exact, &exponent);
    return fabs((double)got - exact) / ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

static double error_of_f64(double got, long double exact) {
    int exponent;
    if (isnan(exact)) return isnan(got) ? 0 : INFINITY;
    if (fabsl(exact) >= (long double)DBL_MAX) return got == (double)exact ? 0 : INFINITY;
    if (!isfinite(got) || (got == 0 && !signbit(got) != !signbit(exact))) return INFINITY;
    frexpl(exact, &exponent);
    return (double)(fabsl((long double)got - exact) / ldexpl(1, (exponent < -1021 ? -1021 : exponent) - 53));
}

static void test_stated_ulp(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        const function *f = &functions[i];
        double worst = 0;
        float where = 0;
        for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += 997) {
            float x = uir_math_value((int32_t)(uint32_t)bits);
            double error = error_of(f->of(x), f->exact((double)x));
            if (error > worst) worst = error, where = x;
        }
        if (worst > f->ulp) fail_msg("%s(%a): %g ulp, %g stated", f->name, (double)where, worst, f->ulp);
    }
}

static uint64_t draw(uint64_t *seed) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* Whole numbers of quarter turns too, which leave the least. A long double of no more digits than a double says nothing
 * of its last one. */
static void test_stated_ulp_f64(void **state) {
    (void)state;
    if (LDBL_MANT_DIG < 64) skip();
    for (size_t i = 0; i < sizeof functions_f64 / sizeof functions_f64[0]; i++) {
        const function_f64 *f = &functions_f64[i];
        uint64_t seed = 88172645463325252u;
        for (int n = 0; n < 300000; n++) {
            uint64_t bits = draw(&seed);
            double x = uir_math_value_f64((int64_t)bits);
            if (n % 3 == 1) x = (double)(int64_t)bits * 0x1p-63 * 150000;
            if (n % 3 == 2) x = (double)((int64_t)bits >> (draw(&seed) % 62)) * 1.5707963267948966;
            double error = error_of_f64(f->of(x), f->exact((long double)x));
            if (error > f->ulp) fail_msg("%s(%a): %g ulp, %g stated", f->name, x, error, f->ulp);
        }
    }
}

static const double specials[] = {0,
                                  -0.0,
                                  1,
                                  -1,
                                  0.5,
                                  -0.5,
                                  2,
                                  -2,
                                  3,
                                  -3,
                                  1.5,
                                  -1.5,
                                  INFINITY,
                                  -INFINITY,
                                  NAN,
                                  0x1p-149,
                                  -0x1p-149,
                                  0x1p127,
                                  -0x1p127,
                                  16777216,
                                  -16777216,
                                  16777215,
                                  -16777215,
                                  8388609,
                                  0.99999994,
                                  1.00000012,
                                  1e10,
                                  -1e10,
                                  1e20,
                                  0x1p-126,
                                  9007199254740991.0,
                                  -9007199254740991.0,
                                  9007199254740992.0,
                                  0x1p-1074,
                                  0x1.fffffffffffffp1023};
enum { SPECIALS = sizeof specials / sizeof specials[0] };

/* All pairs of special numbers, then bases and exponents whose power is neither too large nor too small. */
static void draw_pair(int n, double most, uint64_t *seed, double *out_x, double *out_y) {
    if (n < SPECIALS * SPECIALS) {
        *out_x = specials[n / SPECIALS];
        *out_y = specials[n % SPECIALS];
        return;
    }
    double y = ldexp((double)(int64_t)draw(seed) * 0x1p-63, (int)(draw(seed) % 24) - 12);
    if (n % 3 == 0) y = rint(y);
    *out_y = y;
    *out_x = exp(most * (double)(int64_t)draw(seed) * 0x1p-63 / (fabs(y) < 1e-3 ? 1e-3 : fabs(y)));
    if (n % 3 == 0 && n & 1) *out_x = -*out_x;
}

static void test_stated_ulp_of_two(void **state) {
    (void)state;
    uint64_t seed = 88172645463325252u;
    for (size_t i = 0; i < sizeof functions_of_two / sizeof functions_of_two[0]; i++) {
        const function_of_two *f = &functions_of_two[i];
        for (int n = 0; n < 2000000; n++) {
            double x, y;
            draw_pair(n, 90, &seed, &x, &y);
            float a = (float)x, b = (float)y;
            double error = error_of(f->of(a, b), f->exact((double)a, (double)b));
            if (error > f->ulp) fail_msg("%s(%a, %a): %g ulp, %g stated", f->name, (double)a, (double)b, error, f->ulp);
        }
    }
}

static void test_stated_ulp_of_two_f64(void **state) {
    (void)state;
    uint64_t seed = 88172645463325252u;
    if (LDBL_MANT_DIG < 64) skip();
    for (size_t i = 0; i < sizeof functions_of_two_f64 / sizeof functions_of_two_f64[0]; i++) {
        const function_of_two_f64 *f = &functions_of_two_f64[i];
        for (int n = 0; n < 300000; n++) {
            double x, y;
            draw_pair(n, 740, &seed, &x, &y);
            double error = error_of_f64(f->of(x, y), f->exact((long double)x, (long double)y));
            if (error > f->ulp) fail_msg("%s(%a, %a): %g ulp, %g stated", f->name, x, y, error, f->ulp);
        }
    }
}

static void test_ends(void **state) {
    (void)state;
    const float inf = INFINITY;
    assert_true(uir_math_exp(-inf) == 0 && uir_math_exp(inf) == inf && uir_math_exp(0) == 1);
    assert_true(uir_math_exp2(-inf) == 0 && uir_math_exp2(inf) == inf);
    for (int n = -149; n < 128; n++) assert_true(uir_math_exp2((float)n) == ldexpf(1, n));
    assert_true(uir_math_log(0) == -inf && uir_math_log(-0.0f) == -inf && uir_math_log(inf) == inf &&
                uir_math_log(1) == 0);
    assert_true(isnan(uir_math_log(-1)) && isnan(uir_math_log(-1e-45f)));
    assert_true(uir_math_tanh(inf) == 1 && uir_math_tanh(-inf) == -1 && signbit(uir_math_tanh(-0.0f)));
    assert_true(uir_math_erf(inf) == 1 && uir_math_erf(-inf) == -1 && signbit(uir_math_erf(-0.0f)));
    assert_true(uir_math_sigmoid(-inf) == 0 && uir_math_sigmoid(inf) == 1 && uir_math_sigmoid(0) == 0.5f);
    assert_true(isnan(uir_math_sin(inf)) && isnan(uir_math_cos(-inf)) && signbit(uir_math_sin(-0.0f)));
    assert_true(isnan(uir_math_tan(inf)) && isnan(uir_math_tan_f64(-INFINITY)) && signbit(uir_math_tan_f64(-0.0)));
    assert_true(isnan(uir_math_sin_f64(INFINITY)) && isnan(uir_math_cos_f64(NAN)) && signbit(uir_math_sin_f64(-0.0)));
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) assert_true(isnan(functions[i].of(NAN)));
}

/* Below 2^17 what knows of it has the bits of what does not. */
static void test_small_angles(void **state) {
    (void)state;
    for (double x = -131071.9; x < 131072; x += 0.7317) {
        float f = (float)x;
        assert_true(uir_math_sin(f) == uir_math_sin_of(f, 0) && uir_math_cos(f) == uir_math_cos_of(f, 0));
        assert_true(uir_math_tan(f) == uir_math_tan_of(f, 0) && uir_math_tan_f64(x) == uir_math_tan_of_f64(x, 0));
        assert_true(uir_math_sin_f64(x) == uir_math_sin_of_f64(x, 0) &&
                    uir_math_cos_f64(x) == uir_math_cos_of_f64(x, 0));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stated_ulp),
        cmocka_unit_test(test_stated_ulp_f64),
        cmocka_unit_test(test_stated_ulp_of_two),
        cmocka_unit_test(test_stated_ulp_of_two_f64),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_small_angles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
