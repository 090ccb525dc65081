/* Lowering asks a description what its spaces are for: under other names the kernels are the same. */
#include "tests/base/support.h"

#include "backends/cpu/target/cpu.h"
#include "fusion/fusion.h"
#include "tests/lower/harness.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *sizes, *body;
} cases[] = {
#define CASE(name, sizes, body) {name, sizes, body},
#include "tests/lower/cases.def"
};

enum { STEP = UIR_TEST_SHARE > 1 ? 4 : 1 }; /* under the sanitizers every fourth case */

/* Names of this kind occur in nothing that is not one of them. */
static void random_names(uir_machine *machine, uint32_t seed, char names[][16]) {
    for (uint32_t i = 0; i < machine->space_count; i++) {
        seed = seed * 1664525u + 1013904223u;
        snprintf(names[i], 16, "zq%cw%uk", 'a' + (char)i, seed >> 12);
        machine->spaces[i].name = names[i];
    }
}

/* Text with each of the device's names replaced by that of another description. */
static void append_renamed(uir_text *out, const char *text, const uir_machine *from, const uir_machine *to) {
    while (*text) {
        size_t length = 0;
        for (uint32_t i = 0; i < from->space_count && !length; i++) {
            const char *name = from->spaces[i].name;
            if (strncmp(text, name, strlen(name))) continue;
            length = strlen(name);
            uir_text_append_string(out, to->spaces[i].name);
        }
        if (!length) uir_text_append(out, text, 1);
        text += length ? length : 1;
    }
}

/* All that lowering says of the case: schedules, kernels, source. */
static void append_lowered(size_t k, const uir_machine *machine, uir_text *out) {
    static char source[8000];
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics d;
    uir_module *module = NULL;
    uir_diagnostics_init(&d, &allocator);
    snprintf(source, sizeof source, "module opset 20\n%s\ngraph \"g\" %s\n", cases[k].sizes, cases[k].body);
    assert_int_equal(uir_module_parse(&allocator, &d, source, strlen(source), cases[k].name, NULL, &module),
                     UIR_STATUS_OK);
    assert_int_equal(uir_fuse(module, NULL, &d), UIR_STATUS_OK);
    const uir_graph_info graph = *uir_graph_get(module, module->main);
    for (uint32_t n = 0; n < graph.nodes.count; n++) {
        lower_check c = {.machine = machine, .allocator = &allocator};
        if (uir_node_get(module, graph.nodes.data[n])->op != UIR_OP_GROUP) continue;
        lower_prepare(&c, module, graph.nodes.data[n]);
        if (c.stage != LOWER_FINE) fail_msg("%s: %s", cases[k].name, c.message);
        uir_text_append(out, c.lowered.steps.data ? c.lowered.steps.data : "", c.lowered.steps.length);
        for (uint32_t i = 0; i < c.lowered.igraphs.count; i++) {
            uir_loop_print(c.lowered.scheduled.variants[i].function, out);
            uir_igraph_print(c.lowered.igraphs.igraphs[i], out);
            assert_int_equal(uir_cpu_emit_kernel(c.lowered.igraphs.igraphs[i], i, out, &d), UIR_STATUS_OK);
        }
        lower_finish(&c);
    }
    uir_module_destroy(module);
    uir_diagnostics_deinit(&d);
}

static void kernels_are_the_same_by_any_names(void **state) {
    (void)state;
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics d;
    uir_cpu_device own;
    uir_diagnostics_init(&d, &allocator);
    assert_int_equal(uir_cpu_describe("avx512", &d, &own), UIR_STATUS_OK);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k += STEP) {
        char names[UIR_MACHINE_MAX_SPACES][16];
        uir_cpu_device other = own;
        uir_text expected, said, renamed;
        random_names(&other.machine, 77 + (uint32_t)k, names);
        uir_text_init(&expected, &allocator);
        uir_text_init(&said, &allocator);
        uir_text_init(&renamed, &allocator);
        append_lowered(k, &own.machine, &expected);
        append_lowered(k, &other.machine, &said);
        assert_true(said.length > 0);
        append_renamed(&renamed, said.data, &other.machine, &own.machine);
        if (strcmp(expected.data, renamed.data)) fail_msg("%s is another kernel under other names", cases[k].name);
        uir_text_deinit(&expected);
        uir_text_deinit(&said);
        uir_text_deinit(&renamed);
    }
    uir_diagnostics_deinit(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_are_the_same_by_any_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
