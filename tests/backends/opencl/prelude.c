/* The OpenCL prelude against the CPU's, bit by bit, where any NaN is any other: every function of vectors, casts,
 * products.
 *
 *   test_opencl_prelude [--section N] [LANES...]
 *
 * A program for each part of cases.inc, for vectors of each width, on the first OpenCL device. Without one the test is
 * skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "backends/opencl/driver/library.h"
#include "tests/backends/opencl/reference.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    IN_BYTES = TYPES * 3 * COUNT * 8,
    OUT_BYTES = MOST_CASES * COUNT * 8,
    SPECIALS = 24,
    MOST_TEXT = 1 << 18
};
static const char *const type_names[TYPES] = {"f32", "i8",  "u8",   "i16",     "u16", "i32",  "u32",     "i64",
                                              "u64", "f16", "bf16", "boolean", "f64", "tame", "tame_f64"};

static cl_library cl;
static cl_handle device, context, queue, in_memory, out_memory;
static unsigned char in[IN_BYTES], wanted[OUT_BYTES], got[OUT_BYTES], zeros[OUT_BYTES];
static bool has_f64;

/* ---- operands ---- */
static uint64_t random_state = 1;
static uint64_t draw(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state >> 33 ^ random_state << 21; /* the high bits are the best */
}

static double real(int k) {
    static const double values[SPECIALS] = {0,
                                            -0.0,
                                            1,
                                            -1,
                                            0.5,
                                            -1.5,
                                            2.5,
                                            255.5,
                                            INFINITY,
                                            -INFINITY,
                                            NAN,
                                            65520,
                                            -40000,
                                            1e-40,
                                            5e-324,
                                            3e38,
                                            2147483648.0,
                                            -2147483648.0,
                                            4294967296.0,
                                            9223372036854775808.0,
                                            -9223372036854775808.0,
                                            1e300,
                                            6e-8,
                                            448};
    return values[k];
}

static uint64_t whole(int k) {
    static const uint64_t values[SPECIALS] = {0,
                                              1,
                                              (uint64_t)-1,
                                              2,
                                              3,
                                              7,
                                              8,
                                              15,
                                              16,
                                              31,
                                              32,
                                              63,
                                              64,
                                              127,
                                              128,
                                              (uint64_t)-128,
                                              255,
                                              32767,
                                              32768,
                                              (uint64_t)-32768,
                                              0x7fffffff,
                                              0x80000000,
                                              INT64_MAX,
                                              (uint64_t)INT64_MIN};
    return values[k];
}

static uint16_t half_of(double x) { /* of what halves hold, truncated */
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    int exponent = (int)(bits >> 23 & 255) - 112;
    if (exponent <= 0) return (uint16_t)(bits >> 16 & 0x8000);
    return (uint16_t)((bits >> 16 & 0x8000) |
                      (exponent > 31 ? 0x7c00u : (uint32_t)exponent << 10 | (bits >> 13 & 0x3ff)));
}

static void put(int type, unsigned char *at, int i, uint64_t bits, double value, bool is_value) {
    float f = (float)value;
    uint32_t word;
    memcpy(&word, &f, sizeof word);
    switch (type) {
    case TYPE_f32:
        if (!is_value) word = (uint32_t)bits;
        memcpy(at + i * 4, &word, 4);
        break;
    case TYPE_f64:
        memcpy(at + i * 8, is_value ? (void *)&value : (void *)&bits, 8);
        break;
    case TYPE_i8:
    case TYPE_u8:
        at[i] = (unsigned char)bits;
        break;
    case TYPE_boolean:
        at[i] = bits & 1;
        break;
    case TYPE_f16:
    case TYPE_bf16:
        if (is_value) bits = type == TYPE_f16 ? half_of(value) : word >> 16;
        memcpy(at + i * 2, &bits, 2);
        break;
    case TYPE_i16:
    case TYPE_u16:
        memcpy(at + i * 2, &bits, 2);
        break;
    case TYPE_i32:
    case TYPE_u32:
        memcpy(at + i * 4, &bits, 4);
        break;
    default:
        memcpy(at + i * 8, &bits, 8);
        break;
    }
}

/* An integer in the middle of two that eight digits hold, or right beside it. */
static uint64_t near_tie(void) {
    const uint64_t digits = (draw() & 127) << 1 | 0x101, beside = draw() % 3;
    return (digits << draw() % 55) + beside - 1;
}

/* Every pair of special values, then random bits, random numbers of moderate size, and integers of every length. */
static void make_operands(void) {
    for (int t = 0; t < TYPE_tame; t++) {
        for (int k = 0; k < 3; k++) {
            unsigned char *at = in + (t * 3 + k) * COUNT * 8;
            for (int i = 0; i < COUNT; i++) {
                const int special = k == 0 ? i / SPECIALS : k == 1 ? i % SPECIALS : i * 7 % SPECIALS;
                const bool is_float = t == TYPE_f32 || t == TYPE_f64 || t == TYPE_f16 || t == TYPE_bf16;
                if (i < SPECIALS * SPECIALS)
                    put(t, at, i, whole(special), real(special), is_float);
                else if (i % 2)
                    put(t, at, i, draw() >> (is_float ? 0 : draw() % 64), 0, false);
                else
                    put(t, at, i, i % 4 ? draw() : near_tie(), ldexp((double)(int64_t)draw(), -63 + (int)(draw() % 24)),
                        is_float);
            }
        }
    }
    for (int i = 0; i < COUNT * 2; i++) {
        const double value = ldexp((double)(int64_t)draw(), -63);
        put(TYPE_f32, in + TYPE_tame * 3 * COUNT * 8, i, 0, value, true);
        put(TYPE_f16, in + (TYPE_tame * 3 + 1) * COUNT * 8, i, 0, value, true);
        put(TYPE_bf16, in + (TYPE_tame * 3 + 2) * COUNT * 8, i, 0, value, true);
        if (i < COUNT) put(TYPE_f64, in + TYPE_tame_f64 * 3 * COUNT * 8, i, 0, value, true);
        if (i < COUNT) put(TYPE_f64, in + (TYPE_tame_f64 * 3 + 1) * COUNT * 8, i, 0, value * 1.1, true);
    }
}

/* ---- programs ---- */
static void add_file(char *text, const char *path) {
    FILE *file = fopen(path, "rb");
    size_t length = strlen(text);
    if (!file) fail_msg("%s cannot be opened", path);
    length += fread(text + length, 1, MOST_TEXT - 1 - length, file);
    assert_true(length < MOST_TEXT - 1);
    text[length] = 0;
    fclose(file);
}

/* The files of the prelude in their order; those of f64 are the last of each kind. */
static void add_prelude(char *text) {
    static const char *const files[] = {
        "backends/opencl/target/prelude_vector.inc",     "backends/opencl/target/prelude_integers.inc",
        "64backends/opencl/target/prelude_f64.inc",      "backends/opencl/target/prelude_cast.inc",
        "64backends/opencl/target/prelude_cast_f64.inc", "backends/opencl/target/prelude_math.inc",
        "ir/kernel/interpret/kernel_math_reduce.inc",    "backends/opencl/target/prelude_single.inc",
        "ir/kernel/interpret/kernel_math.inc",           "64backends/opencl/target/prelude_math_f64.inc",
        "64ir/kernel/interpret/kernel_math_f64.inc",     "backends/opencl/target/prelude_mma.inc",
        "backends/opencl/target/prelude_mma_halves.inc", "64backends/opencl/target/prelude_mma_f64.inc",
        "backends/opencl/target/prelude_dot.inc"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const bool is_f64 = files[i][0] == '6';
        if (has_f64 || !is_f64) add_file(text, files[i] + (is_f64 ? 2 : 0));
    }
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static cl_handle build(const char *text, const char *options) {
    int32_t error;
    static char log[1 << 16];
    cl_handle program = cl.clCreateProgramWithSource(context, 1, &text, NULL, &error);
    assert_int_equal(error, 0);
    error = cl.clBuildProgram(program, 1, &device, options, NULL, NULL);
    if (error) {
        cl.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log, log, NULL);
        fail_msg("error %d: %.4000s", (int)error, log);
    }
    return program;
}

/* Results equal bit by bit, or as NaN. */
static bool is_nan(int type, const unsigned char *x) {
    uint64_t bits = 0;
    memcpy(&bits, x, type == TYPE_f64 ? 8 : type == TYPE_f32 ? 4 : 2);
    switch (type) {
    case TYPE_f64:
        return (bits & INT64_MAX) > 0x7ff0000000000000u;
    case TYPE_f32:
        return (bits & 0x7fffffff) > 0x7f800000;
    case TYPE_f16:
        return (bits & 0x7fff) > 0x7c00;
    case TYPE_bf16:
        return (bits & 0x7fff) > 0x7f80;
    default:
        return false;
    }
}

static int bytes_of(int type) {
    static const int bytes[TYPES] = {4, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 1, 8, 0, 0};
    return bytes[type];
}

static int compare(int section, int lanes, int cases, const int *kinds) {
    int failed = 0;
    for (int c = 0; c < cases; c++) {
        const int type = kinds[c], bytes = bytes_of(type);
        int wrong = 0;
        for (int i = 0; i < COUNT * 8 / bytes; i++) {
            const unsigned char *x = got + c * COUNT * 8 + i * bytes, *y = wanted + c * COUNT * 8 + i * bytes;
            if (!memcmp(x, y, (size_t)bytes) || (is_nan(type, x) && is_nan(type, y))) continue;
            if (!wrong++) {
                uint64_t a = 0, b = 0;
                memcpy(&a, x, (size_t)bytes);
                memcpy(&b, y, (size_t)bytes);
                print_error("section %d, case %d (%s), %d lanes: element %d is %llx, not %llx\n", section, c,
                            type_names[type], lanes, i, (unsigned long long)a, (unsigned long long)b);
            }
        }
        failed += wrong != 0;
    }
    return failed;
}

static int run_section(int section, int lanes) {
    static char text[MOST_TEXT];
    char options[256];
    int kinds[MOST_CASES];
    const size_t one = 1;
    int32_t error;
    snprintf(options, sizeof options,
             "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt -DUIR_LANES=%d -DSECTION=%d%s", lanes, section,
             has_f64 ? " -DUIR_HAS_F64" : "");
    *text = 0;
    add_prelude(text);
    add_file(text, "tests/backends/opencl/cases.h");
    strcat(text, "#undef min\n#undef max\n#define MEMORY __global\n#define RESULT(T)\n"
                 "__kernel __attribute__((reqd_work_group_size(1, 1, 1)))\n"
                 "void test(const __global uchar *in, __global uchar *out) {\n");
    add_file(text, "tests/backends/opencl/cases.inc");
    strcat(text, "}\n");
    double start = now();
    cl_handle program = build(text, options), kernel = cl.clCreateKernel(program, "test", &error);
    double built = now();
    assert_int_equal(error, 0);
    cl.clSetKernelArg(kernel, 0, sizeof in_memory, &in_memory);
    cl.clSetKernelArg(kernel, 1, sizeof out_memory, &out_memory);
    assert_int_equal(cl.clEnqueueWriteBuffer(queue, out_memory, 1, 0, OUT_BYTES, zeros, 0, NULL, NULL), 0);
    assert_int_equal(cl.clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL), 0);
    assert_int_equal(cl.clEnqueueReadBuffer(queue, out_memory, 1, 0, OUT_BYTES, got, 0, NULL, NULL), 0);
    if (getenv("UIR_TIMES"))
        print_message("section %d, %d lanes: built in %.3f s, run in %.3f s\n", section, lanes, built - start,
                      now() - built);
    cl.clReleaseKernel(kernel);
    cl.clReleaseProgram(program);
    memset(wanted, 0, sizeof wanted);
    int cases = reference_compute(section, in, wanted, kinds);
    assert_in_range(cases, 1, MOST_CASES);
    return compare(section, lanes, cases, kinds);
}

static int first_section, last_section = SECTIONS - 1, all_lanes[3] = {4, 8, 16}, lanes_count = 3;

static void test_sections(void **state) {
    int failed = 0;
    (void)state;
    for (int l = 0; l < lanes_count; l++)
        for (int s = first_section; s <= last_section; s++)
            if (has_f64 || s < FIRST_OF_F64) failed += run_section(s, all_lanes[l]);
    assert_int_equal(failed, 0);
}

static bool open_device(void) {
    cl_handle platform = NULL;
    uint32_t platforms = 0, devices = 0;
    char extensions[4096] = "";
    int32_t error;
    if (uir_opencl_open_library(NULL, NULL, &cl)) return false;
    if (cl.clGetPlatformIDs(1, &platform, &platforms) || !platforms) return false;
    if (cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, &device, &devices) || !devices) return false;
    cl.clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof extensions, extensions, NULL);
    has_f64 = strstr(extensions, "cl_khr_fp64") != NULL && !getenv("UIR_WITHOUT_F64");
    context = cl.clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    if (!context) return false;
    queue = cl.clCreateCommandQueue(context, device, 0, &error);
    in_memory = cl.clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, IN_BYTES, in, &error);
    out_memory = cl.clCreateBuffer(context, CL_MEM_READ_WRITE, OUT_BYTES, NULL, &error);
    return queue && in_memory && out_memory;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sections)};
    make_operands();
    if (!open_device()) {
        printf("skip: needs opencl: a CPU that the OpenCL library finds\n0 passed, 0 failed, 1 skipped\n");
        return 0;
    }
    int k = 1;
    if (argc > 2 && !strcmp(argv[1], "--section")) first_section = last_section = atoi(argv[2]), k = 3;
    if (k < argc) lanes_count = 0;
    for (; k < argc && lanes_count < 3; k++) all_lanes[lanes_count++] = atoi(argv[k]);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
