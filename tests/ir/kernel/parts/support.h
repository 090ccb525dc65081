/* What the tests of iGraphs share: a kernel from text on the CPU's description, and the messages that were given. */
#ifndef UIR_TESTS_IR_IGRAPH_SUPPORT_H
#define UIR_TESTS_IR_IGRAPH_SUPPORT_H

#include "tests/base/support.h"

#include "backends/cpu/target/cpu.h"
#include "ir/kernel/igraph.h"
#include <stdio.h>
#include <string.h>

typedef struct kernel {
    uir_allocator allocator;
    uir_diagnostics diagnostics;
    uir_cpu_device device;
    uir_igraph *igraph;
} kernel;

/* Parsed, not verified. */
static inline void kernel_open(kernel *k, const char *text) {
    k->allocator = uir_allocator_system();
    uir_diagnostics_init(&k->diagnostics, &k->allocator);
    assert_int_equal(uir_cpu_describe("generic", &k->diagnostics, &k->device), UIR_STATUS_OK);
    const uir_machine *machine = &k->device.machine;
    uir_machine_list devices = {&machine, 1};
    uir_status status =
        uir_igraph_parse(&k->allocator, &devices, text, strlen(text), "text", &k->diagnostics, &k->igraph);
    if (status != UIR_STATUS_OK)
        fail_msg("%s in\n%s", k->diagnostics.last ? k->diagnostics.last->message : "no message", text);
}

/* A body between what its test's kernels share. */
static inline void kernel_open_body(kernel *k, const char *head, const char *body, const char *tail) {
    char source[2000];
    assert_true((size_t)snprintf(source, sizeof source, "%s%s%s", head, body, tail) < sizeof source);
    kernel_open(k, source);
}

static inline void kernel_close(kernel *k) {
    uir_igraph_destroy(k->igraph);
    uir_diagnostics_deinit(&k->diagnostics);
}

/* Whether the text is not what is wanted, which is said: 1 or 0. Ends both. */
static inline uint32_t kernel_end_case(kernel *k, const char *name, uir_text *text, const char *wanted) {
    const char *got = text->data ? text->data : "";
    uint32_t wrong = strcmp(got, wanted) != 0;
    if (wrong) print_error("%s: '%s', not '%s'\n", name, got, wanted);
    uir_text_deinit(text);
    kernel_close(k);
    return wrong;
}

static inline bool kernel_said(const kernel *k, const char *text) {
    for (const uir_diagnostic *d = k->diagnostics.first; d; d = d->next)
        if (strstr(d->message, text)) return true;
    return false;
}

#endif
