/* Every instruction that the CPU's table allows, as a kernel of its own, on every instruction set of the VM: the
 * interpreter's bits, whether the result is a place of its own or an operand's, at lengths around a vector's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/ir/kernel/campaign/harness.h"
#include "tests/ir/kernel/campaign/single.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SINGLES = 4000 };

static const int64_t lengths[] = {0, 1, 31, 32, 33, 1000, 1025};

static void compare(harness *h, const uir_igraph *igraph, const uir_vm_kernel *vm, const char *name, int64_t length) {
    const int64_t dims[] = {3, length, 5};
    const char *isa;
    char what[200];
    harness_case c;
    size_t size;
    if (!harness_bind_to(h, igraph, dims, NULL, &c)) fail_msg("%s: no data at length %lld", name, (long long)length);
    uir_kernel_arguments arguments = harness_arguments(&c);
    harness_reset(&c);
    if (uir_igraph_interpret(igraph, &arguments, NULL, &h->diagnostics) != UIR_STATUS_OK) {
        harness_say(h, name);
        fail_msg("%s: the interpreter refuses", name);
    }
    void *expected = harness_outputs(h, &c, &size);
    for (size_t i = 0; uir_vm_isa(i, &isa); i++) {
        uir_vm_options options = {.isa = isa};
        harness_reset(&c);
        if (uir_vm_run(vm, &arguments, c.size, &options, &h->diagnostics) != UIR_STATUS_OK) {
            harness_say(h, name);
            fail_msg("%s on %s refuses length %lld", name, isa, (long long)length);
        }
        void *actual = harness_outputs(h, &c, &size);
        const char *difference = harness_differ(&c, expected, actual, what, sizeof what);
        if (difference) fail_msg("%s on %s, length %lld: %s", name, isa, (long long)length, difference);
        uir_release(&h->allocator, actual, size);
    }
    uir_release(&h->allocator, expected, size);
    harness_free(h, &c);
}

static void run_single(harness *h, const single *s, single_form form) {
    single_kernel kernel;
    uir_text text, bytes;
    uir_vm_kernel *vm = NULL;
    char name[120];
    single_describe(s, name, sizeof name);
    uir_text_init(&text, &h->allocator);
    uir_text_init(&bytes, &h->allocator);
    single_begin(&kernel, &h->allocator);
    bool exists = single_add(&kernel, s, form);
    single_end(&kernel, "single", 4, 2000, &text);
    if (exists) {
        uir_igraph *igraph = harness_read(h, text.data, text.length, name);
        if (!igraph) {
            harness_say(h, name);
            fail_msg("%s is refused:\n%.*s", name, (int)text.length, text.data);
        }
        assert_int_equal(uir_vm_encode(igraph, &h->diagnostics, &bytes), UIR_STATUS_OK);
        assert_int_equal(uir_vm_load(&h->allocator, bytes.data, bytes.length, &h->diagnostics, &vm), UIR_STATUS_OK);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) compare(h, igraph, vm, name, lengths[i]);
        uir_vm_destroy(vm);
        uir_igraph_destroy(igraph);
    }
    uir_text_deinit(&text);
    uir_text_deinit(&bytes);
}

/* One test per form: the state is the form. */
static void all_singles(void **state) {
    single_form form = *(single_form *)*state;
    harness h;
    uir_cpu_device device;
    single *singles = calloc(MAX_SINGLES, sizeof *singles);
    harness_init(&h, 7);
    assert_non_null(singles);
    assert_int_equal(uir_cpu_describe(NULL, &h.diagnostics, &device), UIR_STATUS_OK);
    uint32_t count = single_list(&device.machine, singles, MAX_SINGLES);
    assert_in_range(count, 100, MAX_SINGLES);
    for (uint32_t i = 0; i < count; i++) run_single(&h, &singles[i], form);
    assert_int_equal(h.failures, 0);
    harness_deinit(&h);
    free(singles);
}

int main(void) {
    static single_form forms[] = {SINGLE_PLAIN, SINGLE_IN_PLACE, SINGLE_LAST, SINGLE_FIRST, SINGLE_BROADCAST};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(all_singles, &forms[0]), cmocka_unit_test_prestate(all_singles, &forms[1]),
        cmocka_unit_test_prestate(all_singles, &forms[2]), cmocka_unit_test_prestate(all_singles, &forms[3]),
        cmocka_unit_test_prestate(all_singles, &forms[4]),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
