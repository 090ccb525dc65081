/* The conformance suite of drivers: tests by area, which every driver passes.
 *
 * In: a driver, its device's parameter, an image of the kernels of kernels.def in the driver's format. Out: cmocka's
 * results. A program for each driver makes the image and calls run_driver_suite. */
#ifndef UIR_TESTS_DRIVERS_SUITE_H
#define UIR_TESTS_DRIVERS_SUITE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/driver.h"

typedef enum driver_kernel {
#define UIR_DRIVER_KERNEL(name, ...) KERNEL_##name,
#include "tests/drivers/kernels.def"
#undef UIR_DRIVER_KERNEL
    DRIVER_KERNELS
} driver_kernel;

/* A driver under test. */
typedef struct driver_subject {
    const uir_driver *driver;
    const char *parameter;                   /* of the device; NULL: none */
    const char *library;                     /* of the vendor; NULL: the usual one */
    const char *const *bad_parameters;       /* that the driver refuses, to NULL; NULL: it has none */
    const uir_kernel_format *const *formats; /* for devices that execute on the host */
    uint32_t format_count;
    uir_driver_image image;
    uir_kernel_entry entries[DRIVER_KERNELS];
    bool checks_zeros; /* a launch with a workspace that is not zero fails */
} driver_subject;

/* Pointers and writable arrays of the entries: counts by kernels.def. */
void describe_kernels(uir_kernel_entry *entries);
/* Runs all areas; the number of failures. */
int run_driver_suite(driver_subject *subject);

/* ---- memory that is counted ---- */
typedef struct counted {
    int64_t bytes;
    uint64_t allocations;
} counted;
uir_allocator count_memory(counted *counts);

/* ---- a device with its kernels ---- */
typedef struct bench {
    const driver_subject *subject;
    const uir_driver *driver;
    uir_allocator allocator;
    counted memory; /* of the driver's structures */
    uir_diagnostics diagnostics;
    uir_driver_device *device;
    const uir_driver_facts *facts;
    uir_driver_code *code;
    const uir_driver_kernel *kernels[DRIVER_KERNELS];
    uir_driver_queue *queues[3];
    uir_driver_buffer *buffers[128];
    uint32_t buffer_count;
    uint64_t random;
} bench;

void bench_begin(bench *b, void **state);
/* Everything is released, and the driver's structures with it. */
void bench_end(bench *b);
void check_status(bench *b, uir_status status, uir_status expected);
#define check_ok(b, call) check_status((b), (call), UIR_STATUS_OK)
uint64_t draw(bench *b, uint64_t limit);

/* ---- memory ---- */
/* Device memory, released by bench_end. */
uir_region allocate(bench *b, uint64_t size);
uir_region part_of(uir_region region, uint64_t offset, uint64_t size);
uir_region host_region(const void *data, uint64_t size);
/* Submits a copy of all bytes of the smaller region. */
void copy(bench *b, uint32_t queue, uir_region to, uir_region from);
void put(bench *b, uint32_t queue, uir_region to, const void *data);
/* Copies to the host, and waits. */
void get(bench *b, uint32_t queue, uir_region from, void *data);
uint64_t mark(bench *b, uint32_t queue);
void follow(bench *b, uint32_t queue, uint32_t other, uint64_t point);
void finish(bench *b, uint32_t queue); /* waits for all of its requests */

/* ---- launches ---- */
typedef struct call {
    uir_driver_launch launch;
    driver_kernel kernel;
    int64_t symbols[8];
    uir_region pointers[12];
    uint64_t needed[12];
    int64_t indices[2], begins[2];
    size_t state_size;
} call;

/* `pointers` in the order inputs, outputs, works. */
void call_begin(bench *b, call *c, driver_kernel kernel, const int64_t *symbols, const uir_region *pointers);
/* Its sizes changed. */
void call_prepare(bench *b, call *c);
/* All phases, in one launch where the device joins them. */
void call_submit(bench *b, uint32_t queue, call *c);
void call_end(bench *b, call *c);
/* Once, from preparation to retirement, without a wait before the end. */
void call_once(bench *b, uint32_t queue, driver_kernel kernel, const int64_t *symbols, const uir_region *pointers);

/* ---- the areas ---- */
extern const struct CMUnitTest open_tests[], memory_tests[], order_tests[], launch_tests[], fault_tests[],
    random_tests[];
extern const size_t open_test_count, memory_test_count, order_test_count, launch_test_count, fault_test_count,
    random_test_count;
#define AREA(name, ...)                                                                                                \
    const struct CMUnitTest name##_tests[] = {__VA_ARGS__};                                                            \
    const size_t name##_test_count = sizeof name##_tests / sizeof *name##_tests

#endif
