/* Which inputs and outputs get slack, so that one grows where the other lies: models in text, and how many of their
 * kernels count slack in the end. A kernel has as many dims as its group has sizes and slacks in any case. */
#include "backends/cpu/target/cpu.h"
#include "compile/compile.h"
#include "tests/base/support.h"

#include <stdio.h>
#include <string.h>

#define HEAD "module opset 20\nsize p\nsize q\nsize n\nsize m\n"
/* The past and what is new, along axis 1. */
#define PAST          "%past: f32[2, p, 4], %new: f32[2, n, 4]"
#define APPEND        "    %all: f32[2, p + n, 4] = concat(%past, %new) {axis = 1}\n"
#define SUM(to, from) "    %" to ": f32[2, 4] = reduce_sum(%" from ") {axes = [1], keep = 0}\n"

static const struct {
    const char *name, *text;
    uint32_t with; /* groups whose kernels count slack */
} cases[] = {
    {"an output that appends to an input", "graph \"g\" (" PAST ") {\n" APPEND "    return %all\n}\n", 1},
    {"what reads it", "graph \"g\" (" PAST ") {\n" APPEND SUM("s", "all") "    return %all, %s\n}\n", 2},
    {"what reads it as rows of rows",
     "graph \"g\" (" PAST ") {\n" APPEND "    %r: f32[2, p*4 + n*4] = reshape(%all) {dims = [2, p*4 + n*4]}\n"
     "    %s: f32[2] = reduce_sum(%r) {axes = [1], keep = 0}\n    return %all, %s\n}\n",
     2},
    {"what reads it as one row has no room between",
     "graph \"g\" (" PAST ") {\n" APPEND "    %r: f32[p*8 + n*8] = reshape(%all) {dims = [p*8 + n*8]}\n"
     "    %e: f32[p*8 + n*8] = exp(%r)\n    return %all, %e\n}\n",
     0},
    {"two that append to one past",
     "graph \"g\" (" PAST ", %other: f32[2, m, 4]) {\n" APPEND
     "    %b: f32[2, p + m, 4] = concat(%past, %other) {axis = 1}\n    return %all, %b\n}\n",
     2},
    {"each its own past",
     "graph \"g\" (" PAST ", %old: f32[2, q, 4]) {\n" APPEND
     "    %b: f32[2, q + n, 4] = concat(%old, %new) {axis = 1}\n" SUM("s", "all")
         SUM("t", "b") "    return %all, %b, %s, %t\n}\n",
     4},
    {"the past is what comes first",
     "graph \"g\" (" PAST ") {\n    %all: f32[2, n + p, 4] = concat(%new, %past) {axis = 1}\n    return %all\n}\n", 1},
    {"what is no output",
     "graph \"g\" (" PAST ") {\n" APPEND "    %e: f32[2, p + n, 4] = exp(%all)\n" SUM("s", "e")
         SUM("t", "all") "    return %s, %t\n}\n",
     0},
    {"the axis' elements are not known",
     "graph \"g\" (%past: f32[2, p, q], %new: f32[2, n, q]) {\n"
     "    %all: f32[2, p + n, q] = concat(%past, %new) {axis = 1}\n    return %all\n}\n",
     0},
    {"a past that does not grow",
     "graph \"g\" (%past: f32[2, 3, 4], %new: f32[2, n, 4]) {\n"
     "    %all: f32[2, n + 3, 4] = concat(%past, %new) {axis = 1}\n    return %all\n}\n",
     0},
    {"a body gives it",
     "graph \"g\" (" PAST ", %c: bool[], %z: f32[2, p + n, 4]) {\n" APPEND
     "    %b: f32[2, p + n, 4] = if(%c) {then = graph \"t\" () {\n        return %all\n    }, else = graph \"e\" () {\n"
     "        return %z\n    }}\n    return %all, %b\n}\n",
     0},
    {"a body gives the past",
     "graph \"g\" (" PAST ", %c: bool[], %z: f32[2, p, 4]) {\n" APPEND
     "    %b: f32[2, p, 4] = if(%c) {then = graph \"t\" () {\n        return %past\n    }, else = graph \"e\" () {\n"
     "        return %z\n    }}\n    return %all, %b\n}\n",
     0},
    {"a body reads it",
     "graph \"g\" (" PAST ", %c: bool[], %z: f32[2, 4]) {\n" APPEND
     "    %b: f32[2, 4] = if(%c) {then = graph \"t\" () {\n    " SUM(
         "x", "all") "        return %x\n"
                     "    }, else = graph \"e\" () {\n        return %z\n    }}\n    return %all, %b\n}\n",
     0},
    {"what is appended to is computed",
     "graph \"g\" (" PAST ") {\n    %e: f32[2, p, 4] = neg(%past)\n    %k: f32[2, n, 4] = exp(%new)\n"
     "    %all: f32[2, p + n, 4] = concat(%e, %k) {axis = 1}\n    return %all\n}\n",
     0},
    {"what is appended to is made by another",
     "graph \"g\" (" PAST ") {\n    %v: f32[2, p, 4], %i: i64[2, p, 4] = top_k(%past) {axis = 1, k = [p], "
     "largest = 1, sorted = 1}\n    %all: f32[2, p + n, 4] = concat(%v, %new) {axis = 1}\n    return %all, %i\n}\n",
     0},
    {"the same kernel appends to something else",
     "graph \"g\" (" PAST ", %old: f32[2, q, 4]) {\n" APPEND
     "    %b: f32[2, q + n, 4] = concat(%old, %new) {axis = 1}\n"
     "    %v: f32[2, 1, 4], %i: i64[2, 1, 4] = top_k(%b) {axis = 1, k = [1], largest = 1, sorted = 1}\n"
     "    return %all, %v, %i\n}\n",
     1},
    {"a host operator reads it",
     "graph \"g\" (" PAST ") {\n" APPEND "    %v: f32[2, 1, 4], %i: i64[2, 1, 4] = top_k(%all) {axis = 1, k = [1], "
     "largest = 1, sorted = 1}\n    return %all, %v, %i\n}\n",
     0},
};

static bool check(const uir_machine *machine, size_t i) {
    uir_allocator allocator = uir_allocator_system();
    const uir_compile_options options = {.description = machine};
    uir_diagnostics diagnostics;
    uir_compile c;
    char text[2000];
    uint32_t with = 0;
    bool good = true;
    uir_diagnostics_init(&diagnostics, &allocator);
    snprintf(text, sizeof text, HEAD "%s", cases[i].text);
    const uir_compile_text read = {text, strlen(text), cases[i].name, NULL};
    const uir_compile_call call = {.diagnostics = &diagnostics};
    uir_compile_init(&c, NULL, &options, &allocator, NULL);
    uir_status status = uir_compile_read(&c, UIR_STAGE_CLEANED, &read, &diagnostics);
    if (status == UIR_STATUS_OK) status = uir_compile_run(&c, UIR_STAGE_RUNS, &call);
    const uir_module *module = c.primitives;
    if (status != UIR_STATUS_OK)
        print_error("%s: %s\n", cases[i].name,
                    diagnostics.first ? diagnostics.first->message : uir_status_text(status));
    for (uint32_t n = 1; status == UIR_STATUS_OK && n < module->nodes.count; n++) {
        const uir_node_info *node = uir_node_get(module, (uir_node_id){n});
        if (node->op != UIR_OP_GROUP || !uir_node_find_attribute(module, node, "kernel")) continue;
        const char *kernel = uir_node_string(module, node, "kernel", "");
        uint32_t sizes, slacks;
        bool own = false; /* and not only of another group that the kernel computes */
        uir_node_dims(module, node, "sizes", &sizes);
        const int64_t *slack = uir_node_ints(module, node, "slack", &slacks);
        for (uint32_t k = 0; k < slacks; k += 2) own |= slack[k] >= 0;
        with += own;
        for (uint32_t k = 0; k < c.lowering.kernels.count; k++) {
            const uir_igraph_list *list = &c.lowering.kernels.data[k].lowered.igraphs;
            for (uint32_t v = 0; v < list->count && !strcmp(c.lowering.kernels.data[k].name, kernel); v++)
                good &= uir_igraph_count_symbols(list->igraphs[v], UIR_ISYMBOL_DIM) == sizes + slacks / 2;
        }
    }
    if (status == UIR_STATUS_OK && !good) print_error("%s: a kernel has other dims than its group\n", cases[i].name);
    if (status == UIR_STATUS_OK && with != cases[i].with)
        print_error("%s: %u groups with slack in place of %u\n", cases[i].name, with, cases[i].with);
    uir_compile_deinit(&c);
    uir_diagnostics_deinit(&diagnostics);
    return status == UIR_STATUS_OK && good && with == cases[i].with;
}

static void test_slack(void **state) {
    static uir_cpu_device cpu;
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics diagnostics;
    uint32_t wrong = 0;
    (void)state;
    uir_diagnostics_init(&diagnostics, &allocator);
    assert_int_equal(uir_cpu_describe("generic", &diagnostics, &cpu), UIR_STATUS_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) wrong += !check(&cpu.machine, i);
    uir_diagnostics_deinit(&diagnostics);
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_slack)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
