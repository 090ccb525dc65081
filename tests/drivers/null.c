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

int main(void) {
    static const char *const bad_parameters[] = {"seven", "7seven", "-7", "99999999999999999999", NULL};
    uir_allocator allocator = uir_allocator_system();
    const uir_kernel_format *const formats[] = {&uir_vm_format};
    driver_subject subject = {.driver = &uir_null_driver,
                              .formats = formats,
                              .format_count = 1,
                              .bad_parameters = bad_parameters,
                              .checks_zeros = true};
    const struct CMUnitTest null_tests[] = {cmocka_unit_test_prestate(test_simulated, &subject)};
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
