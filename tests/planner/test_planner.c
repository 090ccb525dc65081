/* What the planner asks of kernels and nodes: bytecode or another code for each kernel, a maker for each node. */
#include "tests/runtime/support.h"

#include <string.h>

static const char *const module_text =                         /**/
    "module opset 17\nsize N\ngraph \"main\" (%x: f32[N]) {\n" /**/
    GROUP_TWICE("y", "x", "1") "    return %y\n}\n";
/* Two groups for which there are no kernels. */
static const char *const bare_text = "module opset 17\nsize N\ngraph \"main\" (%x: f32[N]) {\n"
                                     "    %y: f32[N] = group(%x) {body = graph \"g\" (%a: f32[N]) {\n        %b: "
                                     "f32[N] = add(%a, %a)\n        return %b\n"
                                     "    }} name \"first\" from \"Add\"\n"
                                     "    %z: f32[N] = group(%y) {body = graph \"h\" (%c: f32[N]) {\n        %d: "
                                     "f32[N] = mul(%c, %c)\n        return %d\n"
                                     "    }} name \"second\" from \"Mul\"\n    return %z\n}\n";

static uir_status refuse(const uir_igraph *igraph, uir_diagnostics *diagnostics, uir_text *bytes) {
    (void)bytes;
    return uir_error(diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "@%s: no bytecode", igraph->name);
}
static uir_status run_out(const uir_igraph *igraph, uir_diagnostics *diagnostics, uir_text *bytes) {
    (void)igraph, (void)diagnostics, (void)bytes;
    return UIR_STATUS_OUT_OF_MEMORY;
}

/* A kernel without bytecode needs an object that has it. */
static void bytecode_or_native(void **state) {
    static const struct {
        uir_status (*encode)(const uir_igraph *igraph, uir_diagnostics *diagnostics, uir_text *bytes);
        const char *symbol; /* in the object */
        uir_status status;
        const char *message;
    } cases[] = {
        {refuse, "twice", UIR_STATUS_OK, NULL},
        {refuse, NULL, UIR_STATUS_UNSUPPORTED, "@twice: no bytecode"},
        {run_out, "twice", UIR_STATUS_OUT_OF_MEMORY, NULL},
        {NULL, NULL, UIR_STATUS_OK, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        uir_text package;
        fixture_init(&f);
        check_ok(&f, fixture_build(&f, module_text, KERNEL_TWICE("twice", "0..1000")));
        const char *symbols[] = {cases[i].symbol};
        const uir_dim scratch[] = {uir_dim_const(f.kernels.igraphs[0]->dims, 0)};
        const uir_plan_object object = {"avx2", "object", 6, symbols};
        const uir_plan_options options = {
            .objects = &object, .object_count = 1, .scratch = scratch, .encode = cases[i].encode};
        uir_text_init(&package, &f.allocator);
        assert_int_equal(fixture_plan(&f, &options, &f.allocator, &package), cases[i].status);
        if (cases[i].message)
            check_message(&f, cases[i].message);
        else
            assert_null(f.diagnostics.first);
        uir_text_deinit(&package);
        fixture_deinit(&f);
    }
}

static uint32_t count_messages(const fixture *f) {
    uint32_t count = 0;
    for (const uir_diagnostic *d = f->diagnostics.first; d; d = d->next) count++;
    return count;
}

/* Every node without a maker is reported, with and without a package to write; the opener may be left all of them. */
static void nodes_without_a_maker(void **state) {
    fixture f;
    (void)state;
    fixture_init(&f);
    assert_int_equal(fixture_build(&f, bare_text, KERNEL_TWICE("twice", "0..1000")), UIR_STATUS_UNSUPPORTED);
    assert_int_equal(count_messages(&f), 2);
    uir_diagnostics_clear(&f.diagnostics);
    const uir_plan_options look = {0}, custom = {.custom = true};
    assert_int_equal(uir_plan_build(f.module, NULL, 0, &look, &f.allocator, &f.diagnostics, NULL),
                     UIR_STATUS_UNSUPPORTED);
    assert_int_equal(count_messages(&f), 2);
    uir_diagnostics_clear(&f.diagnostics);
    check_ok(&f, uir_plan_build(f.module, NULL, 0, &custom, &f.allocator, &f.diagnostics, NULL));
    fixture_deinit(&f);
}

static void a_kernel_is_missing(void **state) {
    fixture f;
    (void)state;
    fixture_init(&f);
    assert_int_equal(fixture_build(&f, module_text, KERNEL_TWICE("thrice", "0..1000")), UIR_STATUS_INTERNAL);
    check_message(&f, "kernel 'twice' is missing");
    fixture_deinit(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(bytecode_or_native), cmocka_unit_test(nodes_without_a_maker),
                                       cmocka_unit_test(a_kernel_is_missing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
