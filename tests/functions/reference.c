/* Arguments and exact results. */
#include "tests/functions/functions.h"

#include "base/dtype.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- what MPFR has by another form ---- */
static int exact_floor(mpfr_ptr r, mpfr_srcptr x, mpfr_rnd_t rounding) {
    (void)rounding;
    return mpfr_floor(r, x);
}
static int exact_ceil(mpfr_ptr r, mpfr_srcptr x, mpfr_rnd_t rounding) {
    (void)rounding;
    return mpfr_ceil(r, x);
}
static int exact_round(mpfr_ptr r, mpfr_srcptr x, mpfr_rnd_t rounding) {
    (void)rounding;
    return mpfr_rint(r, x, MPFR_RNDN);
}
static int exact_reciprocal(mpfr_ptr r, mpfr_srcptr x, mpfr_rnd_t rounding) {
    return mpfr_ui_div(r, 1, x, rounding);
}
static int exact_softplus(mpfr_ptr r, mpfr_srcptr x, mpfr_rnd_t rounding) {
    if (mpfr_cmp_ui(x, 10000) > 0) return mpfr_set(r, x, rounding); /* what is added has no digit of it */
    mpfr_exp(r, x, rounding);
    return mpfr_log1p(r, r, rounding);
}
static int exact_sigmoid(mpfr_ptr r, mpfr_srcptr x, mpfr_rnd_t rounding) {
    mpfr_neg(r, x, rounding);
    mpfr_exp(r, r, rounding);
    mpfr_add_ui(r, r, 1, rounding);
    return mpfr_ui_div(r, 1, r, rounding);
}
/* A NaN of either is one. */
static int exact_max(mpfr_ptr r, mpfr_srcptr a, mpfr_srcptr b, mpfr_rnd_t rounding) {
    if (mpfr_nan_p(a) || mpfr_nan_p(b)) return mpfr_set_nan(r), 0;
    return mpfr_max(r, a, b, rounding);
}
static int exact_min(mpfr_ptr r, mpfr_srcptr a, mpfr_srcptr b, mpfr_rnd_t rounding) {
    if (mpfr_nan_p(a) || mpfr_nan_p(b)) return mpfr_set_nan(r), 0;
    return mpfr_min(r, a, b, rounding);
}
static int exact_remainder(mpfr_ptr r, mpfr_srcptr a, mpfr_srcptr b, mpfr_rnd_t rounding) {
    return mpfr_fmod(r, a, b, rounding);
}
/* With the divisor's sign. */
static int exact_modulo(mpfr_ptr r, mpfr_srcptr a, mpfr_srcptr b, mpfr_rnd_t rounding) {
    mpfr_fmod(r, a, b, rounding);
    if (mpfr_nan_p(r)) return 0;
    if (mpfr_zero_p(r)) return mpfr_setsign(r, r, mpfr_signbit(b), rounding);
    return mpfr_signbit(r) == mpfr_signbit(b) ? 0 : mpfr_add(r, r, b, rounding);
}

/* ---- the table ---- */
enum primitive {
    EXACT,
    LOOSE,
#define UIR_KERNEL_MATH_PRIMITIVE(op, f32, f64) op,
#include "ir/kernel/interpret/kernel_math.def"
    PRIMITIVES
};
#define UIR_KERNEL_MATH_PRIMITIVE(op, f32, f64) [op] = f32,
static const double ulps_f32[] = {
    [EXACT] = 0.5,
    [LOOSE] = 0.5,
#include "ir/kernel/interpret/kernel_math.def"
};
#define UIR_KERNEL_MATH_PRIMITIVE(op, f32, f64) [op] = f64,
static const double ulps_f64[] = {
    [EXACT] = 0.5,
    [LOOSE] = 0.5,
#include "ir/kernel/interpret/kernel_math.def"
};

const function functions[] = {
#define UNARY(name, primitive, reference)             {name, NULL, reference, NULL, primitive, primitive == LOOSE},
#define BINARY(name, attribute, primitive, reference) {name, attribute, NULL, reference, primitive, primitive == LOOSE},
#include "tests/functions/functions.def"
};
const uint32_t function_count = sizeof functions / sizeof *functions;

double functions_ulp(const function *f, uir_dtype dtype) {
    return dtype == UIR_DTYPE_F64 ? ulps_f64[f->primitive] : ulps_f32[f->primitive];
}

const char *functions_missing(void) {
    static const enum primitive tried[] = {
#define UNARY(name, primitive, reference)             primitive,
#define BINARY(name, attribute, primitive, reference) primitive,
#include "tests/functions/functions.def"
    };
    static const char *const names[PRIMITIVES] = {
#define UIR_KERNEL_MATH_PRIMITIVE(op, f32, f64) [op] = #op,
#include "ir/kernel/interpret/kernel_math.def"
    };
    for (int p = LOOSE + 1; p < PRIMITIVES; p++) {
        size_t i = 0;
        while (i < sizeof tried / sizeof *tried && tried[i] != (enum primitive)p) i++;
        if (i == sizeof tried / sizeof *tried) return names[p];
    }
    return NULL;
}

/* ---- arguments ---- */
double functions_value(uir_dtype dtype, uint64_t bits) {
    return uir_dtype_load_double(dtype, &bits, 0);
}

uint64_t functions_bits(uir_dtype dtype, double value) {
    uint64_t bits = 0;
    uir_dtype_store_double(dtype, &bits, 0, value, UIR_ROUND_NEAREST_EVEN);
    return bits;
}

static double nearest(uir_dtype dtype, double value) {
    return functions_value(dtype, functions_bits(dtype, value));
}

static uint64_t draw(uint64_t seed) { /* splitmix64 */
    uint64_t z = seed * 0x9e3779b97f4a7c15 + 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static double unit(uint64_t number) { /* -1 .. 1 */
    return (double)(int64_t)number * 0x1p-63;
}

/* Ends, and places where one formula gives way to another. */
static const double specials[] = {0,
                                  -0.0,
                                  1,
                                  -1,
                                  INFINITY,
                                  -INFINITY,
                                  NAN,
                                  0.5,
                                  -0.5,
                                  2,
                                  -2,
                                  3,
                                  -3,
                                  1.5,
                                  -1.5,
                                  2.5,
                                  -2.5,
                                  0x1p-149,
                                  -0x1p-149,
                                  0x1p-126,
                                  0x1p-1074,
                                  -0x1p-1022,
                                  0x1p-24,
                                  -0x1p-14,
                                  0x1.fffffep127,
                                  65504,
                                  -65504,
                                  0x1.fep127,
                                  88.72,
                                  88.73,
                                  -87.4,
                                  -103.97,
                                  -104,
                                  89.41,
                                  89.42,
                                  -89.42,
                                  709.78,
                                  709.79,
                                  710.47,
                                  -745.1,
                                  -745.2,
                                  1e10,
                                  -1e10,
                                  1e20,
                                  -1e20,
                                  1e-20,
                                  -12345.678,
                                  131072,
                                  131071.99,
                                  -131072,
                                  16777215,
                                  16777216,
                                  -16777217,
                                  0.6,
                                  -0.6,
                                  0.99999994,
                                  1.0000001,
                                  -0.99999994,
                                  0.25,
                                  0.34,
                                  1e9,
                                  1e300,
                                  -1e300,
                                  1e-300,
                                  1e22,
                                  7.7e6,
                                  11,
                                  11.1,
                                  80,
                                  80.1,
                                  1e-4,
                                  -1e-4,
                                  4,
                                  4.1,
                                  -4,
                                  8,
                                  0.7071068,
                                  1.4142135,
                                  1.5707964,
                                  3.1415927,
                                  0.7853982,
                                  8388609,
                                  4503599627370497.0,
                                  9007199254740993.0,
                                  -9007199254740991.0,
                                  0.33333334,
                                  -0.33333334};
enum { SPECIALS = sizeof specials / sizeof *specials };

/* A few numbers away. */
static double beside(uir_dtype dtype, double value, uint64_t number) {
    return functions_value(dtype, functions_bits(dtype, value) + number % 9 - 4);
}

static double draw_argument(uir_dtype dtype, uint64_t index, uint64_t number) {
    uint64_t more = draw(number);
    switch (index % 5) {
    case 0:
        return functions_value(dtype, number);
    case 1:
        return nearest(dtype, ldexp(unit(number), (int)(more % 64) - 40));
    case 2:
        return nearest(dtype, 12 * unit(number));
    case 3: /* near a multiple of pi/2 */
        return beside(dtype, (double)(int64_t)(number >> (16 + more % 47)) * 1.5707963267948966 * (more & 64 ? 1 : -1),
                      more >> 8);
    default:
        return beside(dtype, specials[number % SPECIALS], more);
    }
}

double functions_argument(const function *f, uir_dtype dtype, uint64_t index, bool second) {
    bool half = uir_dtype_bits(dtype) == 16;
    uint64_t number = draw(2 * index + (second ? 1 : 0));
    if (f->unary && half) return functions_value(dtype, index);
    if (f->unary) return index < SPECIALS ? nearest(dtype, specials[index]) : draw_argument(dtype, index, number);
    if (index < SPECIALS * SPECIALS) return nearest(dtype, specials[second ? index / SPECIALS : index % SPECIALS]);
    if (index & 1) return draw_argument(dtype, number, draw(number));
    /* Bases and exponents of powers that are neither too large nor too small; whole exponents too. */
    uint64_t other = draw(2 * index + 1);
    double exponent = ldexp(unit(other), (int)(other % 32) - 16);
    if (other % 3 == 0) exponent = rint(12 * unit(draw(other)));
    if (second) return nearest(dtype, exponent);
    double most = dtype == UIR_DTYPE_F64 ? 720 : dtype == UIR_DTYPE_F16 ? 17 : 90;
    double base = exp(most * unit(number) / (fabs(exponent) < 1e-3 ? 1e-3 : fabs(exponent)));
    return nearest(dtype, number & 1 ? base : -base);
}

/* ---- exact results ---- */
enum { BLOCK = 4096 };

static void path_of(const char *folder, const function *f, uir_dtype dtype, uint64_t count, char *out, size_t size) {
    snprintf(out, size, "%s/%s%s-%s-%llu", folder, f->op, f->attribute ? f->attribute : "", uir_dtype_name(dtype),
             (unsigned long long)count);
}

/* In files of their own until they are whole. */
static bool compute(const char *folder, const function *f, uir_dtype dtype, uint64_t count) {
    static double high[BLOCK];
    static float low[BLOCK];
    char path[600], part[620];
    bool wide = dtype == UIR_DTYPE_F64, fine;
    mpfr_t a, b, r;
    path_of(folder, f, dtype, count, path, sizeof path);
    snprintf(part, sizeof part, "%s.part", path);
    FILE *file = fopen(part, "wb");
    if (!file) return false;
    mpfr_inits2(53, a, b, (mpfr_ptr)0);
    mpfr_init2(r, wide ? 140 : 100);
    for (uint64_t i = 0; i < count; i += BLOCK) {
        uint64_t n = count - i < BLOCK ? count - i : BLOCK;
        for (uint64_t k = 0; k < n; k++) {
            mpfr_set_d(a, functions_argument(f, dtype, i + k, false), MPFR_RNDN);
            if (f->binary) mpfr_set_d(b, functions_argument(f, dtype, i + k, true), MPFR_RNDN);
            if (f->unary)
                f->unary(r, a, MPFR_RNDN);
            else
                f->binary(r, a, b, MPFR_RNDN);
            high[k] = mpfr_get_d(r, MPFR_RNDN);
            low[k] = 0;
            if (!wide || !isfinite(high[k])) continue;
            mpfr_sub_d(r, r, high[k], MPFR_RNDN);
            /* In units of the last place, which no float is too small for. */
            int exponent = high[k] == 0 ? -1022 : ilogb(high[k]);
            mpfr_mul_2si(r, r, 52 - (exponent < -1022 ? -1022 : exponent), MPFR_RNDN);
            low[k] = mpfr_get_flt(r, MPFR_RNDN);
        }
        fwrite(high, sizeof *high, n, file);
        if (wide) {
            fseek(file, (long)(count * sizeof *high + i * sizeof *low), SEEK_SET);
            fwrite(low, sizeof *low, n, file);
            fseek(file, (long)((i + n) * sizeof *high), SEEK_SET);
        }
    }
    mpfr_clears(a, b, r, (mpfr_ptr)0);
    fine = !ferror(file);
    fine = fclose(file) == 0 && fine;
    return fine && rename(part, path) == 0;
}

static bool is_there(const char *folder, const function *f, uir_dtype dtype, uint64_t count) {
    char path[600];
    struct stat status;
    path_of(folder, f, dtype, count, path, sizeof path);
    return stat(path, &status) == 0;
}

bool functions_prepare(const char *folder, uir_dtype dtype, uint64_t unary_count, uint64_t binary_count,
                       uint32_t jobs) {
    uint32_t running = 0;
    bool fine = true;
    for (uint32_t i = 0; i <= function_count; i++) {
        int status = 0;
        while (running && (running == jobs || i == function_count)) {
            fine = wait(&status) >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 && fine;
            running--;
        }
        if (i == function_count) break;
        uint64_t count = functions[i].unary ? unary_count : binary_count;
        if (is_there(folder, &functions[i], dtype, count)) continue;
        pid_t child = fork();
        if (child == 0) _exit(compute(folder, &functions[i], dtype, count) ? 0 : 1);
        fine = child > 0 && fine;
        running += child > 0;
    }
    if (!fine) fprintf(stderr, "uir-functions: exact results cannot be computed in '%s'\n", folder);
    return fine;
}

bool functions_open(const char *folder, const function *f, uir_dtype dtype, uint64_t count, exact *out) {
    char path[600];
    path_of(folder, f, dtype, count, path, sizeof path);
    size_t size = (size_t)count * (dtype == UIR_DTYPE_F64 ? 12 : 8);
    struct stat status;
    int file = open(path, O_RDONLY);
    if (file < 0) return false;
    void *data = fstat(file, &status) == 0 && (size_t)status.st_size == size
                     ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0)
                     : MAP_FAILED;
    close(file);
    if (data == MAP_FAILED) return false;
    out->high = data;
    out->low = dtype == UIR_DTYPE_F64 ? (const float *)(out->high + count) : NULL;
    return true;
}
