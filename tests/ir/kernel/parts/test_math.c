/* kernel_math.inc: how far each function is from the C library's in double, against the bound that the file states;
 * over floats spread evenly by their bits, and all those near where one formula gives way to another. */
#include "tests/base/support.h"

#include "ir/kernel/interpret/kernel_math.h"

typedef struct function {
    const char *name;
    float (*compute)(float);
    double (*exact)(double);
    double ulps;
    float low, high; /* where the bound holds */
    float edge;      /* a place where formulas meet; both signs */
} function;

#define UIR_KERNEL_MATH(constant, name, ulp)                                                                           \
    static float math_##name(float x) {                                                                                \
        return uir_math_##name(x);                                                                                     \
    }
#include "ir/kernel/interpret/kernel_math.def"
enum { /* ulp_exp and the others */
#define UIR_KERNEL_MATH(constant, name, ulp) ulp_##name = ulp,
#include "ir/kernel/interpret/kernel_math.def"
};
static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static const function functions[] = {
    {"exp", math_exp, exp, ulp_exp, -104, 88.7f, 0.34657359f},
    {"exp2", math_exp2, exp2, ulp_exp2, -149, 127.99f, 1},
    {"log", math_log, log, ulp_log, 1e-45f, 3.4e38f, 1.41421354f},
    {"tanh", math_tanh, tanh, ulp_tanh, -3e38f, 3e38f, 0.6f},
    {"erf", math_erf, erf, ulp_erf, -3e38f, 3e38f, 1},
    {"sigmoid", math_sigmoid, sigmoid, ulp_sigmoid, -87, 3e38f, 0.34657359f},
    {"sin", math_sin, sin, ulp_sin, -3e38f, 3e38f, 0.78539819f},
    {"cos", math_cos, cos, ulp_cos, -3e38f, 3e38f, 0.78539819f},
    {"tan", math_tan, tan, ulp_tan, -3e38f, 3e38f, 0.78539819f},
};

/* The distance in units of the float's last place (of the least normal one's below it). */
static double distance(float got, double exact) {
    int exponent;
    frexp(exact, &exponent);
    double unit = ldexp(1, exponent < -125 ? -149 : exponent - 24);
    return fabs((double)got - exact) / unit;
}

static void check(const function *f, float x) {
    if (!(x >= f->low && x <= f->high)) return;
    double d = distance(f->compute(x), f->exact((double)x));
    if (!(d <= f->ulps))
        fail_msg("%s(%.9g) is %.9g: %.2f ulp off, %g stated", f->name, (double)x, (double)f->compute(x), d, f->ulps);
}

static void results_are_within_the_stated_ulps(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const function *f = &functions[i];
        for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 4001) check(f, uir_math_value((int32_t)(uint32_t)bits));
        for (int32_t step = -3000; step <= 3000; step++) {
            check(f, uir_math_value(uir_math_bits(f->edge) + step));
            check(f, -uir_math_value(uir_math_bits(f->edge) + step));
        }
        for (float x = -12; x < 12; x += 1.0f / 2048) check(f, x);
    }
}

static void ends_are_what_they_must_be(void **state) {
    (void)state;
    const float inf = INFINITY;
    assert_true(uir_math_exp(-inf) == 0 && uir_math_exp(inf) == inf && uir_math_exp(0) == 1);
    assert_true(uir_math_exp(-104) == 0 && uir_math_exp(89) == inf && uir_math_exp(-103) > 0);
    assert_true(uir_math_log(0) == -inf && uir_math_log(-0.0f) == -inf && uir_math_log(inf) == inf);
    assert_true(uir_math_log(1) == 0 && isnan(uir_math_log(-1)) && isnan(uir_math_log(-1e-45f)));
    assert_true(uir_math_tanh(inf) == 1 && uir_math_tanh(-inf) == -1 && signbit(uir_math_tanh(-0.0f)));
    assert_true(uir_math_erf(inf) == 1 && uir_math_erf(-inf) == -1 && signbit(uir_math_erf(-0.0f)));
    assert_true(uir_math_sigmoid(inf) == 1 && uir_math_sigmoid(-inf) == 0 && uir_math_sigmoid(0) == 0.5f);
    assert_true(signbit(uir_math_sin(-0.0f)) && uir_math_sin(0) == 0 && uir_math_cos(0) == 1);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) assert_true(isnan(functions[i].compute(NAN)));
}

/* Beyond 2^17 as below, to the last float. */
static void large_angles(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (functions[i].high < 3e38f || functions[i].low > -3e38f) continue;
        for (float x = 131000; x < 4194304; x += 97.25f) check(&functions[i], x);
        for (float x = 1e7f; x < 3e38f; x *= 1.0007f) check(&functions[i], x);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_within_the_stated_ulps),
        cmocka_unit_test(ends_are_what_they_must_be),
        cmocka_unit_test(large_angles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
