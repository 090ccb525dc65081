/* The null driver by the conformance suite, for several seeds. */
#include "tests/drivers/suite.h"

#include "backends/null/driver/null.h"
#include "backends/vm/encode/encode.h"
#include "backends/vm/vm.h"
#include "compile/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS = 12 };

static char *read_text(const char *path, size_t *out_size) {
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 16);
    *out_size = file && text ? fread(text, 1, (1 << 16) - 1, file) : 0;
    if (file) fclose(file);
    return text;
}

/* The kernels' text as bytecode, one after the other. */
static uir_status encode(driver_subject *subject, uir_text *bytes, uir_diagnostics *diagnostics) {
    uir_allocator allocator = uir_allocator_system();
    uir_compile_machines *machines = NULL;
    uir_igraph_list kernels = {.allocator = allocator};
    size_t size;
    char *text = read_text("tests/drivers/kernels.igraph", &size);
    uir_status status = uir_compile_machines_create(&allocator, NULL, diagnostics, &machines);
    if (status == UIR_STATUS_OK)
        status = uir_igraph_parse_list(&allocator, uir_compile_machines_get(machines), text, size, "kernels.igraph",
                                       diagnostics, &kernels);
    if (status == UIR_STATUS_OK && kernels.count != DRIVER_KERNELS) status = UIR_STATUS_BAD_FILE;
    for (uint32_t k = 0; k < DRIVER_KERNELS && status == UIR_STATUS_OK; k++) {
        uir_kernel_entry *entry = &subject->entries[k];
        if (strcmp(entry->symbol, kernels.igraphs[k]->name)) status = UIR_STATUS_BAD_FILE;
        entry->offset = bytes->length;
        if (status == UIR_STATUS_OK) status = uir_igraph_verify(kernels.igraphs[k], diagnostics);
        if (status == UIR_STATUS_OK) status = uir_vm_encode(kernels.igraphs[k], diagnostics, bytes);
        entry->size = bytes->length - entry->offset;
    }
    uir_igraph_list_deinit(&kernels);
    uir_compile_machines_destroy(machines);
    free(text);
    return status;
}

/* What the header says of the device, and the suite believes. */
static void test_simulated(void **state) {
    bench b;
    bench_begin(&b, state);
    assert_true(b.facts->is_simulated && !b.facts->is_harmful && !b.facts->shares_memory);
    bench_end(&b);
}

static void expect_copies(bench *b, uir_null_copies before, uint64_t locked, uint64_t pageable) {
    const uir_null_copies copies = uir_null_count_copies(b->device);
    assert_int_equal(copies.locked - before.locked, locked);
    assert_int_equal(copies.pageable - before.pageable, pageable);
}

/* Copies over the bus are counted by the host's memory, page-locked or not, however a region names it. */
static void test_counts(void **state) {
    char other[64] = {0}, *host, *shared;
    uir_driver_buffer *locked, *both;
    bench b;
    bench_begin(&b, state);
    uir_region x = allocate(&b, 64), y = allocate(&b, 64);
    check_ok(&b, b.driver->allocate(b.device, UIR_MEMORY_STAGING, 64, &b.diagnostics, &locked, &host));
    check_ok(&b, b.driver->allocate(b.device, UIR_MEMORY_SHARED, 64, &b.diagnostics, &both, &shared));
    const uir_region by_buffer = {.buffer = locked, .size = 64, .host = host};
    memset(host, 1, 64);
    const uir_null_copies before = uir_null_count_copies(b.device);
    copy(&b, 0, x, by_buffer);
    expect_copies(&b, before, 1, 0);
    copy(&b, 0, host_region(host + 60, 4), part_of(x, 0, 4));
    expect_copies(&b, before, 2, 0);
    copy(&b, 0, x, host_region(other, 64));
    copy(&b, 0, host_region(other, 64), x);
    expect_copies(&b, before, 2, 2);
    copy(&b, 0, y, x); /* over no bus */
    expect_copies(&b, before, 2, 2);
    copy(&b, 0, (uir_region){.buffer = both, .size = 64, .host = shared}, x);
    expect_copies(&b, before, 2, 3);
    finish(&b, 0);
    b.driver->release(b.device, locked);
    b.driver->release(b.device, both);
    bench_end(&b);
}

/* Page-locked memory that a copy still uses, by its address alone, is not to be released: the device is lost. */
static void test_early_release(void **state) {
    uir_driver_failure failure;
    uir_driver_buffer *locked;
    uint64_t point;
    char *host;
    bench b;
    bench_begin(&b, state);
    uir_region x = allocate(&b, 64);
    check_ok(&b, b.driver->allocate(b.device, UIR_MEMORY_STAGING, 64, &b.diagnostics, &locked, &host));
    memset(host, 1, 64);
    copy(&b, 0, x, host_region(host, 64)); /* by this seed a wait executes it */
    b.driver->release(b.device, locked);
    check_status(&b, b.driver->mark(b.queues[0], &b.diagnostics, &point), UIR_STATUS_DEVICE_FAILED);
    check_status(&b, b.driver->fill(b.queues[0], &x, 0, &b.diagnostics), UIR_STATUS_DEVICE_FAILED);
    (void)b.driver->wait(b.queues[0], 0, NULL, &failure);
    bench_end(&b);
}

int main(void) {
    static const char *const bad_parameters[] = {"seven", "7seven", "-7", "99999999999999999999", NULL};
    uir_allocator allocator = uir_allocator_system();
    const uir_kernel_format *const formats[] = {&uir_vm_format};
    driver_subject subject = {.driver = &uir_null_driver,
                              .formats = formats,
                              .format_count = 1,
                              .bad_parameters = bad_parameters,
                              .checks_zeros = true};
    const struct CMUnitTest null_tests[] = {cmocka_unit_test_prestate(test_simulated, &subject),
                                            cmocka_unit_test_prestate(test_counts, &subject),
                                            cmocka_unit_test_prestate(test_early_release, &subject)};
    uir_diagnostics diagnostics;
    uir_text bytes;
    int failed = 0;
    uir_diagnostics_init(&diagnostics, &allocator);
    uir_text_init(&bytes, &allocator);
    describe_kernels(subject.entries);
    uir_status status = encode(&subject, &bytes, &diagnostics);
    if (status != UIR_STATUS_OK) {
        fprintf(stderr, "kernels.igraph: %s\n",
                diagnostics.first ? diagnostics.first->message : uir_status_text(status));
        failed = 1;
    }
    subject.image = (uir_driver_image){"vm", bytes.data, bytes.length};
    if (status == UIR_STATUS_OK) failed += cmocka_run_group_tests(null_tests, NULL, NULL);
    for (int seed = 0; seed < SEEDS && status == UIR_STATUS_OK; seed++) {
        char parameter[16];
        snprintf(parameter, sizeof parameter, "%d", seed);
        subject.parameter = parameter;
        failed += run_driver_suite(&subject);
    }
    uir_text_deinit(&bytes);
    uir_diagnostics_deinit(&diagnostics);
    return failed ? 1 : 0;
}
