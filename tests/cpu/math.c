/* The functions of ir/kernel_math.inc against the C library in double: the ulp that its comments state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "ir/kernel_math.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct function {
    const char *name;
    float (*of)(float);
    double (*exact)(double);
    double ulp;     /* at most */
    double largest; /* of |x| for which that holds; 0: all */
} function;

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static const function functions[] = {
    {"exp", uir_math_exp, exp, 1, 0},        {"exp2", uir_math_exp2, exp2, 2, 0},
    {"log", uir_math_log, log, 1, 0},        {"tanh", uir_math_tanh, tanh, 2, 0},
    {"erf", uir_math_erf, erf, 2, 0},        {"sigmoid", uir_math_sigmoid, sigmoid, 3, 0},
    {"sin", uir_math_sin, sin, 2, 131072.0}, {"cos", uir_math_cos, cos, 2, 131072.0},
};

/* The distance of neighbouring floats at a value; subnormals are all one step apart. */
static double ulp_at(double x) {
    int exponent;
    if (fabs(x) < 1.1754943508222875e-38) return 1.401298464324817e-45;
    frexp(x, &exponent);
    return ldexp(1, exponent - 24);
}

static double error_of(const function *f, float x) {
    double exact = f->exact((double)x);
    float got = f->of(x);
    if (isnan(exact)) return isnan(got) ? 0 : INFINITY;
    if (fabs(exact) >= 3.4028235677973366e38) return got == (float)exact ? 0 : INFINITY;
    return isfinite(got) ? fabs((double)got - exact) / ulp_at(exact) : INFINITY;
}

static void test_stated_ulp(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        const function *f = &functions[i];
        double worst = 0;
        float where = 0;
        for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += 997) {
            float x = uir_math_value((int32_t)(uint32_t)bits);
            if (f->largest > 0 && fabs((double)x) > f->largest) continue;
            double error = error_of(f, x);
            if (error > worst) worst = error, where = x;
        }
        if (worst > f->ulp) fail_msg("%s(%a): %g ulp, %g stated", f->name, (double)where, worst, f->ulp);
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
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) assert_true(isnan(functions[i].of(NAN)));
}

/* Far out there is no accuracy, but never an infinity. */
static void test_large_angles(void **state) {
    (void)state;
    for (float x = 131072; x < 3e38f; x *= 1.37f) {
        float s = uir_math_sin(x), c = uir_math_cos(x);
        assert_true(fabsf(s) < 1.01f && fabsf(c) < 1.01f);
        if (x < 4194304)
            assert_true(fabs((double)s - sin((double)x)) < 1e-6 && fabs((double)c - cos((double)x)) < 1e-6);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stated_ulp),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_large_angles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
