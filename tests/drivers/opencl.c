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

int main(int argc, char **argv) {
    static char source[1 << 16];
    const struct CMUnitTest library_tests[] = {cmocka_unit_test(test_no_library)};
    driver_subject subject = {.driver = &uir_opencl_driver,
                              .library = argc == 3 && !strcmp(argv[1], "--library") ? argv[2] : NULL};
    const struct CMUnitTest save_tests[] = {cmocka_unit_test_prestate(test_save, &subject)};
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
    failed += run_driver_suite(&subject) + cmocka_run_group_tests(save_tests, NULL, NULL);
    return failed ? 1 : 0;
}
