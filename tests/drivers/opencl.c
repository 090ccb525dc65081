/* The OpenCL driver by the conformance suite, on the first device of the system, and without a library.
 *
 *   test_drivers_opencl [--library FILE]
 *
 * Without an OpenCL device the suite is skipped. */
#include "tests/drivers/suite.h"

#include "backends/opencl/driver/opencl.h"
#include "base/allocator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A library that is not there, and one that is not OpenCL's. */
static void test_no_library(void **state) {
    static const char *const paths[] = {"/no/such/libOpenCL.so", "libm.so.6"};
    static const char *const said[] = {"/no/such/libOpenCL.so", "clGetPlatformIDs"};
    uir_allocator allocator = uir_allocator_system();
    (void)state;
    for (int i = 0; i < 2; i++) {
        uir_driver_options options = {.allocator = &allocator, .library = paths[i]};
        uir_driver_device *device = NULL;
        uir_diagnostics diagnostics;
        uint32_t count = 7;
        uir_diagnostics_init(&diagnostics, &allocator);
        assert_int_equal(uir_opencl_driver.count(&options, &diagnostics, &count), UIR_STATUS_DEVICE_FAILED);
        assert_int_equal(count, 0);
        assert_non_null(strstr(diagnostics.first->message, said[i]));
        uir_diagnostics_clear(&diagnostics);
        assert_int_equal(uir_opencl_driver.open(&options, &diagnostics, &device), UIR_STATUS_DEVICE_FAILED);
        assert_null(device);
        assert_non_null(strstr(diagnostics.first->message, said[i]));
        uir_diagnostics_deinit(&diagnostics);
    }
}

/* A saved program loads again, and computes the same. */
static void test_save(void **state) {
    static const int64_t sizes[] = {10};
    float x[10], y[10];
    bench b;
    uir_text bytes, format;
    uir_driver_code *code;
    bench_begin(&b, state);
    uir_text_init(&bytes, &b.allocator);
    uir_text_init(&format, &b.allocator);
    check_ok(&b, b.driver->save(b.code, &b.diagnostics, &bytes, &format));
    uir_driver_image image = {format.data, bytes.data, bytes.length};
    assert_true(b.driver->rank(b.device, format.data) > b.driver->rank(b.device, b.subject->image.format));
    check_ok(&b, b.driver->load(b.device, &image, &b.diagnostics, &code));
    check_ok(&b, b.driver->find(code, &b.subject->entries[KERNEL_twice_and_one], &b.diagnostics,
                                &b.kernels[KERNEL_twice_and_one]));
    for (int i = 0; i < 10; i++) x[i] = (float)i;
    uir_region r[2] = {allocate(&b, sizeof x), allocate(&b, sizeof x)};
    put(&b, 0, r[0], x);
    call_once(&b, 0, KERNEL_twice_and_one, sizes, r);
    get(&b, 0, r[1], y);
    for (int i = 0; i < 10; i++) assert_true(y[i] == 2 * x[i] + 1);
    b.driver->unload(b.device, code);
    uir_text_deinit(&bytes);
    uir_text_deinit(&format);
    bench_end(&b);
}

/* ---- chips ---- */
/* Any device runs each chip that it has enough for; one opened as a chip runs no other. */
static void test_chips(void **state) {
    static const char *const parameters[] = {"gpu", "cpu", "gpu:0", "cpu:0", "0"};
    const driver_subject *subject = *state;
    const uir_driver *driver = subject->driver;
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_diagnostics_init(&diagnostics, &allocator);
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
        const uir_driver_options options = {
            .allocator = &allocator, .library = subject->library, .parameter = parameters[i]};
        uir_driver_device *device;
        uir_status status = driver->open(&options, &diagnostics, &device);
        if (status != UIR_STATUS_OK) { /* a device may lack f64 */
            assert_int_equal(status, UIR_STATUS_DEVICE_FAILED);
            uir_diagnostics_clear(&diagnostics);
            continue;
        }
        const char *chip = driver->get_facts(device)->chip, *other = strcmp(chip, "gpu") ? "gpu" : "cpu";
        bool is_named = parameters[i][0] > '9';
        if (is_named) assert_memory_equal(chip, parameters[i], strlen(chip));
        assert_int_equal(driver->check_chip(device, chip, &diagnostics), UIR_STATUS_OK);
        status = driver->check_chip(device, other, &diagnostics);
        if (is_named) assert_int_equal(status, UIR_STATUS_DEVICE_FAILED);
        assert_int_equal(driver->check_chip(device, "vast", &diagnostics), UIR_STATUS_DEVICE_FAILED);
        assert_non_null(diagnostics.first);
        uir_diagnostics_clear(&diagnostics);
        driver->close(device);
    }
    uir_diagnostics_deinit(&diagnostics);
}

/* A text that does not compile: the kernel of its first error is named, and the compiler's words are told. */
static void test_build_error(void **state) {
    static const char source[] = "__kernel void k0_fine_phase0(__global int *p) { *p = 1; }\n"
                                 "__kernel void k1_wrong_phase0(__global int *p) {\n"
                                 "    *p = nowhere_to_be_found;\n"
                                 "}\n"
                                 "__kernel void k2_fine_phase0(__global int *p) { *p = 2; }\n";
    const uir_driver_image image = {"opencl-c", source, sizeof source - 1};
    uir_driver_code *code;
    bench b;
    bench_begin(&b, state);
    uir_status status = b.driver->load(b.device, &image, &b.diagnostics, &code);
    assert_null(code);
    assert_non_null(strstr(b.diagnostics.first->message, "k1_wrong"));
    assert_non_null(strstr(b.diagnostics.first->location.quote, "nowhere_to_be_found"));
    check_status(&b, status, UIR_STATUS_DEVICE_FAILED);
    bench_end(&b);
}

/* ---- scratch ---- */
enum { ROW = 64, ROW_BYTES = ROW * sizeof(float) };

static const uir_driver_kernel *find_kernel(bench *b, const char *symbol) {
    static const bool writable[] = {false, true};
    const uir_kernel_entry entry = {.symbol = symbol, .pointer_count = 2, .phase_count = 1, .writable = writable};
    const uir_driver_kernel *kernel, *again;
    check_ok(b, b->driver->find(b->code, &entry, &b->diagnostics, &kernel));
    check_ok(b, b->driver->find(b->code, &entry, &b->diagnostics, &again));
    assert_ptr_equal(kernel, again);
    return kernel;
}

typedef struct turn {
    uir_driver_launch launch;
    uir_region pointers[2];
    uint64_t needed[2];
    int64_t indices, begin, symbols;
    size_t state_size;
} turn;

static void begin_turn(bench *b, turn *t, const char *symbol, int64_t rows, uir_region from, uir_region to) {
    *t = (turn){.pointers = {from, to}, .needed = {from.size, to.size}, .indices = rows};
    t->launch = (uir_driver_launch){.kernel = find_kernel(b, symbol),
                                    .symbols = &t->symbols,
                                    .pointer_count = 2,
                                    .phase_count = 1,
                                    .needed = t->needed,
                                    .indices = &t->indices,
                                    .begins = &t->begin,
                                    .pointers = t->pointers,
                                    .scratch_size = ROW_BYTES};
    t->state_size = b->driver->state_size(t->launch.kernel);
    t->launch.state = uir_allocate_zeroed(&b->allocator, t->state_size);
    assert_non_null(t->launch.state);
    check_ok(b, b->driver->prepare(b->device, &t->launch, &b->diagnostics));
    if (t->launch.workspace_size) t->launch.workspace = allocate(b, t->launch.workspace_size);
}

static void end_turn(bench *b, turn *t) {
    b->driver->retire(b->device, &t->launch);
    uir_release(&b->allocator, t->launch.state, t->state_size);
}

/* Each unit has scratch of its own, however many indices there are, from whichever index on. */
static void test_scratch(void **state) {
    enum { ROWS = 300 };
    static float x[ROWS * ROW], y[ROWS * ROW];
    static const int64_t rows[] = {1, 2, 7, ROWS};
    bench b;
    turn t;
    bench_begin(&b, state);
    for (int i = 0; i < ROWS * ROW; i++) x[i] = (float)i;
    uir_region from = allocate(&b, sizeof x), to = allocate(&b, sizeof y);
    put(&b, 0, from, x);
    for (int k = 0; k < 8; k++) {
        int64_t count = rows[k / 2];
        begin_turn(&b, &t, k % 2 ? "turn_together" : "turn_alone", count, from, to);
        assert_int_equal(t.launch.workspace_size > 0, k % 2 == 0);
        for (t.begin = 0; t.begin < count; t.begin += count / 3 + 1) {
            check_ok(&b, b.driver->fill(b.queues[0], &to, 0, &b.diagnostics));
            check_ok(&b, b.driver->launch(b.queues[0], &t.launch, 0, 1, &b.diagnostics));
            get(&b, 0, to, y);
            for (int64_t i = 0; i < ROWS * ROW; i++)
                assert_true(y[i] == (i / ROW < t.begin || i / ROW >= count ? 0 : x[i / ROW * ROW + ROW - 1 - i % ROW]));
        }
        end_turn(&b, &t);
    }
    bench_end(&b);
}

/* A kernel that needs more local memory than the device has is named, and nothing is launched. */
static void test_large_scratch(void **state) {
    bench b;
    turn t;
    bench_begin(&b, state);
    begin_turn(&b, &t, "turn_together", 1, allocate(&b, ROW_BYTES), allocate(&b, ROW_BYTES));
    t.launch.scratch_size = 1ull << 40;
    uir_status status = b.driver->prepare(b.device, &t.launch, &b.diagnostics);
    assert_non_null(strstr(b.diagnostics.first->message, "turn_together"));
    check_status(&b, status, UIR_STATUS_DEVICE_FAILED);
    check_status(&b, b.driver->launch(b.queues[0], &t.launch, 0, 1, &b.diagnostics), UIR_STATUS_INVALID_ARGUMENT);
    end_turn(&b, &t);
    begin_turn(&b, &t, "turn_alone", 1, allocate(&b, ROW_BYTES), allocate(&b, ROW_BYTES));
    t.launch.workspace = part_of(allocate(&b, t.launch.workspace_size + 64), 64, t.launch.workspace_size);
    check_status(&b, b.driver->launch(b.queues[0], &t.launch, 0, 1, &b.diagnostics), UIR_STATUS_INVALID_ARGUMENT);
    end_turn(&b, &t);
    bench_end(&b);
}

/* Nor one that needs larger work-groups, whichever of compiler and driver notices. */
static void test_large_group(void **state) {
    static const char source[] = "__kernel __attribute__((reqd_work_group_size(1048576, 1, 1))) void wide_phase0("
                                 "__global uchar *p, ulong o, __global const long *s, long b, long e, __global uchar *"
                                 "t, ulong u, __local uchar *l) { ((__global float *)(p + o))[0] = 1; }";
    static const bool writable[] = {true};
    const uir_driver_image image = {"opencl-c", source, sizeof source - 1};
    const uir_kernel_entry entry = {.symbol = "wide", .pointer_count = 1, .phase_count = 1, .writable = writable};
    const uir_driver_kernel *kernel = NULL;
    uir_driver_code *code;
    bench b;
    bench_begin(&b, state);
    uir_status status = b.driver->load(b.device, &image, &b.diagnostics, &code);
    if (status == UIR_STATUS_OK) status = b.driver->find(code, &entry, &b.diagnostics, &kernel);
    assert_null(kernel);
    assert_int_not_equal(status, UIR_STATUS_OK);
    assert_non_null(b.diagnostics.first);
    uir_diagnostics_clear(&b.diagnostics);
    b.driver->unload(b.device, code);
    bench_end(&b);
}

int main(int argc, char **argv) {
    static char source[1 << 16];
    const struct CMUnitTest library_tests[] = {cmocka_unit_test(test_no_library)};
    static const char *const bad_parameters[] = {"fast", "gpu:", "gpu:x", "cpu:0:0", ":0", "00000", "cpu0", NULL};
    driver_subject subject = {.driver = &uir_opencl_driver,
                              .bad_parameters = bad_parameters,
                              .library = argc == 3 && !strcmp(argv[1], "--library") ? argv[2] : NULL};
    const struct CMUnitTest own_tests[] = {
        cmocka_unit_test_prestate(test_save, &subject),          cmocka_unit_test_prestate(test_chips, &subject),
        cmocka_unit_test_prestate(test_build_error, &subject),   cmocka_unit_test_prestate(test_scratch, &subject),
        cmocka_unit_test_prestate(test_large_scratch, &subject), cmocka_unit_test_prestate(test_large_group, &subject)};
    uir_allocator allocator = uir_allocator_system();
    uir_driver_options options = {.allocator = &allocator, .library = subject.library};
    FILE *file = fopen("tests/drivers/kernels.cl", "rb");
    uint32_t count = 0;
    if (!file) return 2;
    size_t size = fread(source, 1, sizeof source - 1, file);
    fclose(file);
    subject.image = (uir_driver_image){"opencl-c", source, size};
    describe_kernels(subject.entries);
    int failed = cmocka_run_group_tests(library_tests, NULL, NULL);
    uir_status status = uir_opencl_driver.count(&options, NULL, &count);
    if (status != UIR_STATUS_OK || !count) {
        printf("skip: needs opencl: a device that the OpenCL library finds\n0 passed, 0 failed, 1 skipped\n");
        return failed ? 1 : 0;
    }
    failed += run_driver_suite(&subject) + cmocka_run_group_tests(own_tests, NULL, NULL);
    return failed ? 1 : 0;
}
