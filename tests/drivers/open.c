/* Devices: open, describe, close. */
#include "tests/drivers/suite.h"

#include <string.h>

static void test_count(void **state) {
    bench b;
    uint32_t count = 0;
    bench_begin(&b, state);
    uir_driver_options options = {.allocator = &b.allocator, .library = b.subject->library};
    check_ok(&b, b.driver->count(&options, &b.diagnostics, &count));
    assert_true(count >= 1);
    assert_int_equal(b.driver->version, UIR_DRIVER_VERSION);
    assert_true(*b.driver->name != 0);
    options.ordinal = count;
    uir_driver_device *device = NULL;
    check_status(&b, b.driver->open(&options, &b.diagnostics, &device), UIR_STATUS_INVALID_ARGUMENT);
    assert_null(device);
    bench_end(&b);
}

static void test_bad_parameters(void **state) {
    bench b;
    bench_begin(&b, state);
    for (const char *const *bad = b.subject->bad_parameters; bad && *bad; bad++) {
        uir_driver_options options = {.allocator = &b.allocator, .parameter = *bad, .library = b.subject->library};
        uir_driver_device *device = NULL;
        check_status(&b, b.driver->open(&options, &b.diagnostics, &device), UIR_STATUS_INVALID_ARGUMENT);
        assert_null(device);
    }
    bench_end(&b);
}

static void test_facts(void **state) {
    bench b;
    bench_begin(&b, state);
    assert_true(*b.facts->name != 0);
    assert_non_null(b.facts->chip);
    assert_true(b.facts->alignment && !(b.facts->alignment & (b.facts->alignment - 1)));
    assert_true(b.facts->queue_count >= 1);
    assert_true(b.driver->rank(b.device, b.subject->image.format) > 0);
    assert_int_equal(b.driver->rank(b.device, "no such format"), 0);
    bench_end(&b);
}

/* Two devices of a driver share nothing. */
static void test_two(void **state) {
    static const int64_t sizes[] = {100};
    bench a, b;
    float x[100], y[100];
    bench_begin(&a, state);
    bench_begin(&b, state);
    for (int i = 0; i < 100; i++) x[i] = (float)i;
    uir_region first[2] = {allocate(&a, sizeof x), allocate(&a, sizeof x)},
               second[2] = {allocate(&b, sizeof x), allocate(&b, sizeof x)};
    put(&a, 0, first[0], x);
    put(&b, 0, second[0], x);
    call_once(&a, 0, KERNEL_twice_and_one, sizes, first);
    call_once(&b, 0, KERNEL_twice_and_one, sizes, second);
    get(&a, 0, first[1], y);
    for (int i = 0; i < 100; i++) assert_true(y[i] == 2 * x[i] + 1);
    memset(y, 0, sizeof y);
    bench_end(&a);
    get(&b, 0, second[1], y);
    for (int i = 0; i < 100; i++) assert_true(y[i] == 2 * x[i] + 1);
    bench_end(&b);
}

AREA(open, cmocka_unit_test(test_count), cmocka_unit_test(test_bad_parameters), cmocka_unit_test(test_facts),
     cmocka_unit_test(test_two));
