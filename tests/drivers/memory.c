/* Memory: allocations, copies, fills. */
#include "tests/drivers/suite.h"

#include <stdlib.h>
#include <string.h>

enum { LARGE = 1 << 20 };

static void fill_bytes(bench *b, unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) bytes[i] = (unsigned char)draw(b, 256);
}

static void fill_region(bench *b, uir_region region, unsigned char value) {
    check_ok(b, b->driver->fill(b->queues[0], &region, value, &b->diagnostics));
}

/* Allocations of any size are memory of their own. */
static void test_allocate(void **state) {
    static const uint64_t sizes[] = {0, 1, 3, 63, 64, 65, 4096, 4097, LARGE + 5, 1, 1, 1};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    static unsigned char bytes[LARGE + 5];
    bench b;
    uir_region regions[COUNT];
    bench_begin(&b, state);
    for (unsigned i = 0; i < COUNT; i++) regions[i] = allocate(&b, sizes[i]);
    for (unsigned i = 0; i < COUNT; i++) fill_region(&b, regions[i], (unsigned char)(i + 1));
    for (unsigned i = 0; i < COUNT; i++) {
        memset(bytes, 0xee, sizeof bytes);
        get(&b, 0, regions[i], bytes);
        for (uint64_t k = 0; k < sizes[i]; k++) assert_int_equal(bytes[k], i + 1);
    }
    bench_end(&b);
}

static void test_kinds(void **state) {
    bench b;
    uir_driver_buffer *buffers[3];
    char *hosts[3], expected[3000];
    bench_begin(&b, state);
    for (int kind = 0; kind < 3; kind++) {
        uir_status status = b.driver->allocate(b.device, (uir_memory_kind)kind, sizeof expected, &b.diagnostics,
                                               &buffers[kind], &hosts[kind]);
        if (kind == UIR_MEMORY_SHARED && status == UIR_STATUS_UNSUPPORTED) { /* staging memory takes its place */
            check_status(&b, status, UIR_STATUS_UNSUPPORTED);
            status = b.driver->allocate(b.device, UIR_MEMORY_STAGING, sizeof expected, &b.diagnostics, &buffers[kind],
                                        &hosts[kind]);
        }
        check_status(&b, status, UIR_STATUS_OK);
    }
    assert_true((hosts[UIR_MEMORY_DEVICE] != NULL) == b.facts->shares_memory);
    assert_non_null(hosts[UIR_MEMORY_STAGING]);
    assert_non_null(hosts[UIR_MEMORY_SHARED]);
    fill_bytes(&b, (unsigned char *)expected, sizeof expected);
    memcpy(hosts[UIR_MEMORY_STAGING], expected, sizeof expected);
    uir_region regions[3];
    for (int kind = 0; kind < 3; kind++)
        regions[kind] = (uir_region){.buffer = buffers[kind], .size = sizeof expected, .host = hosts[kind]};
    copy(&b, 0, regions[UIR_MEMORY_DEVICE], regions[UIR_MEMORY_STAGING]);
    copy(&b, 0, regions[UIR_MEMORY_SHARED], regions[UIR_MEMORY_DEVICE]);
    finish(&b, 0);
    assert_memory_equal(hosts[UIR_MEMORY_SHARED], expected, sizeof expected);
    /* Staging memory by its address alone. */
    const uir_region staging = host_region(hosts[UIR_MEMORY_STAGING], sizeof expected);
    assert_int_equal((uintptr_t)hosts[UIR_MEMORY_STAGING] % 64, 0);
    fill_bytes(&b, (unsigned char *)hosts[UIR_MEMORY_STAGING], sizeof expected);
    memcpy(expected, hosts[UIR_MEMORY_STAGING], sizeof expected);
    copy(&b, 0, regions[UIR_MEMORY_DEVICE], staging);
    finish(&b, 0);
    memset(hosts[UIR_MEMORY_STAGING], 0, sizeof expected);
    copy(&b, 0, staging, regions[UIR_MEMORY_DEVICE]);
    finish(&b, 0);
    assert_memory_equal(hosts[UIR_MEMORY_STAGING], expected, sizeof expected);
    for (int kind = 0; kind < 3; kind++) b.driver->release(b.device, buffers[kind]);
    bench_end(&b);
}

static void test_too_large(void **state) {
    bench b;
    uir_driver_buffer *buffer = NULL;
    char *host;
    bench_begin(&b, state);
    check_status(&b, b.driver->allocate(b.device, UIR_MEMORY_DEVICE, UINT64_MAX / 2, &b.diagnostics, &buffer, &host),
                 UIR_STATUS_OUT_OF_MEMORY);
    assert_null(buffer);
    fill_region(&b, allocate(&b, 100), 1); /* the device goes on */
    finish(&b, 0);
    bench_end(&b);
}

/* A native handle names the memory: a buffer imported by it is the same bytes, which outlive it. */
static void test_import(void **state) {
    unsigned char bytes[500], got[500];
    bench b;
    uir_driver_buffer *imported = NULL;
    bench_begin(&b, state);
    uir_region region = allocate(&b, sizeof bytes);
    fill_bytes(&b, bytes, sizeof bytes);
    void *native = b.driver->get_native(region.buffer);
    assert_non_null(native);
    check_ok(&b, b.driver->import(b.device, native, sizeof bytes, &b.diagnostics, &imported));
    uir_region other = {.buffer = imported, .size = sizeof bytes};
    put(&b, 0, other, bytes);
    get(&b, 0, region, got);
    assert_memory_equal(bytes, got, sizeof bytes);
    b.driver->release(b.device, imported);
    memset(got, 0, sizeof got);
    get(&b, 0, region, got);
    assert_memory_equal(bytes, got, sizeof bytes);
    check_status(&b, b.driver->import(b.device, NULL, 100, &b.diagnostics, &imported), UIR_STATUS_INVALID_ARGUMENT);
    uint64_t beyond = sizeof bytes + b.facts->read_behind + 1;
    check_status(&b, b.driver->import(b.device, native, beyond, &b.diagnostics, &imported),
                 UIR_STATUS_INVALID_ARGUMENT);
    bench_end(&b);
}

/* From the host to the device, within it, and back, at any offset. */
static void test_copies(void **state) {
    static const uint64_t sizes[] = {0, 1, 7, 64, 65, 1000, 4096, LARGE - 300};
    static unsigned char bytes[LARGE], got[LARGE];
    bench b;
    bench_begin(&b, state);
    uir_region x = allocate(&b, LARGE), y = allocate(&b, LARGE);
    fill_bytes(&b, bytes, sizeof bytes);
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint64_t at = draw(&b, 150), to = draw(&b, 150), size = sizes[i];
        fill_region(&b, y, 0x55);
        put(&b, 0, part_of(x, at, size), bytes + 100);
        copy(&b, 0, part_of(y, to, size), part_of(x, at, size));
        get(&b, 0, y, got);
        for (uint64_t k = 0; k < to; k++) assert_int_equal(got[k], 0x55);
        assert_memory_equal(got + to, bytes + 100, size);
        for (uint64_t k = to + size; k < LARGE; k += 1 + k / 64) assert_int_equal(got[k], 0x55);
    }
    bench_end(&b);
}

/* Rows with a pitch on either side; what lies between rows is untouched. */
static void test_pitch(void **state) {
    enum { ROWS = 37, BYTES = 23, FROM = 29, TO = 41 };
    unsigned char bytes[ROWS * FROM], middle[ROWS * TO], got[ROWS * FROM];
    bench b;
    bench_begin(&b, state);
    uir_region x = allocate(&b, ROWS * TO), y = allocate(&b, ROWS * BYTES);
    fill_bytes(&b, bytes, sizeof bytes);
    fill_region(&b, x, 0x11);
    uir_driver_copy in = {.from = host_region(bytes, sizeof bytes),
                          .to = x,
                          .rows = ROWS,
                          .row_bytes = BYTES,
                          .from_pitch = FROM,
                          .to_pitch = TO};
    uir_driver_copy pack = {.from = x, .to = y, .rows = ROWS, .row_bytes = BYTES, .from_pitch = TO, .to_pitch = BYTES};
    uir_driver_copy out = {.from = y,
                           .to = host_region(got, sizeof got),
                           .rows = ROWS,
                           .row_bytes = BYTES,
                           .from_pitch = BYTES,
                           .to_pitch = FROM};
    memset(got, 0x22, sizeof got);
    check_ok(&b, b.driver->copy(b.queues[0], &in, &b.diagnostics));
    check_ok(&b, b.driver->copy(b.queues[0], &pack, &b.diagnostics));
    check_ok(&b, b.driver->copy(b.queues[0], &out, &b.diagnostics));
    get(&b, 0, x, middle);
    for (int r = 0; r < ROWS; r++) {
        assert_memory_equal(middle + r * TO, bytes + r * FROM, BYTES);
        assert_memory_equal(got + r * FROM, bytes + r * FROM, BYTES);
        for (int k = BYTES; k < TO; k++) assert_int_equal(middle[r * TO + k], 0x11);
        for (int k = BYTES; k < FROM; k++) assert_int_equal(got[r * FROM + k], 0x22);
    }
    bench_end(&b);
}

static void test_fill(void **state) {
    unsigned char got[3000];
    bench b;
    bench_begin(&b, state);
    uir_region x = allocate(&b, sizeof got);
    fill_region(&b, x, 9);
    fill_region(&b, part_of(x, 701, 1503), 0);
    fill_region(&b, part_of(x, 1000, 0), 5);
    get(&b, 0, x, got);
    for (size_t i = 0; i < sizeof got; i++) assert_int_equal(got[i], i >= 701 && i < 701 + 1503 ? 0 : 9);
    bench_end(&b);
}

/* A request that reaches beyond a buffer is refused, and nothing of it is done. */
static void test_outside(void **state) {
    unsigned char bytes[200] = {0}, got[100];
    bench b, other;
    bench_begin(&b, state);
    bench_begin(&other, state);
    uir_region x = allocate(&b, 100), theirs = allocate(&other, 100);
    fill_region(&b, x, 3);
    const struct {
        uint64_t offset, size, rows, row_bytes, pitch;
    } cases[] = {
        {0, 100, 1, 101, 101},      {1, 100, 1, 100, 100},           {101, 0, 1, 0, 0},
        {0, 100, 2, 50, 51},        {0, 100, UINT64_MAX, 10, 10},    {UINT64_MAX - 10, 20, 1, 20, 20},
        {0, UINT64_MAX, 1, 50, 50}, {0, 100, 3, 10, UINT64_MAX / 2}, {0, 60, 1, 61, 61},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        uir_region region = {.buffer = x.buffer, .offset = cases[i].offset, .size = cases[i].size};
        uir_driver_copy in = {.from = host_region(bytes, UINT64_MAX),
                              .to = region,
                              .rows = cases[i].rows,
                              .row_bytes = cases[i].row_bytes,
                              .from_pitch = 0,
                              .to_pitch = cases[i].pitch};
        uir_driver_copy out = {.from = region,
                               .to = host_region(bytes, UINT64_MAX),
                               .rows = cases[i].rows,
                               .row_bytes = cases[i].row_bytes,
                               .from_pitch = cases[i].pitch,
                               .to_pitch = 0};
        check_status(&b, b.driver->copy(b.queues[0], &in, &b.diagnostics), UIR_STATUS_INVALID_ARGUMENT);
        check_status(&b, b.driver->copy(b.queues[0], &out, &b.diagnostics), UIR_STATUS_INVALID_ARGUMENT);
    }
    uir_region beyond = {.buffer = x.buffer, .offset = 50, .size = 51}, nowhere = {.size = 10};
    check_status(&b, b.driver->fill(b.queues[0], &beyond, 1, &b.diagnostics), UIR_STATUS_INVALID_ARGUMENT);
    check_status(&b, b.driver->fill(b.queues[0], &theirs, 1, &b.diagnostics), UIR_STATUS_INVALID_ARGUMENT);
    check_status(&b, b.driver->fill(b.queues[0], &nowhere, 1, &b.diagnostics), UIR_STATUS_INVALID_ARGUMENT);
    uir_driver_copy foreign = {.from = theirs, .to = x, .rows = 1, .row_bytes = 100};
    check_status(&b, b.driver->copy(b.queues[0], &foreign, &b.diagnostics), UIR_STATUS_INVALID_ARGUMENT);
    get(&b, 0, x, got);
    for (size_t i = 0; i < sizeof got; i++) assert_int_equal(got[i], 3);
    bench_end(&other);
    bench_end(&b);
}

/* Memory is given back: a thousand allocations. */
static void test_release(void **state) {
    bench b;
    bench_begin(&b, state);
    int64_t before = b.memory.bytes;
    for (int i = 0; i < 1000; i++) {
        uir_driver_buffer *buffer;
        char *host;
        check_ok(&b, b.driver->allocate(b.device, UIR_MEMORY_DEVICE, 10000, &b.diagnostics, &buffer, &host));
        b.driver->release(b.device, buffer);
    }
    assert_int_equal(b.memory.bytes, before);
    b.driver->release(b.device, NULL);
    bench_end(&b);
}

AREA(memory, cmocka_unit_test(test_allocate), cmocka_unit_test(test_kinds), cmocka_unit_test(test_too_large),
     cmocka_unit_test(test_import), cmocka_unit_test(test_copies), cmocka_unit_test(test_pitch),
     cmocka_unit_test(test_fill), cmocka_unit_test(test_outside), cmocka_unit_test(test_release));
