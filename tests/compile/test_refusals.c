/* A stage that refuses one group costs that group alone; what is in the way of any device ends the compile. A fault of
 * the compiler ends it too, and is called one; where faults are isolated it costs its group alone, and is counted.
 *
 * The schedules, kernels and runs of lower/ and ir/ stand behind a wrapper (the linker's --wrap), which fails for the
 * group that a case names, with the case's status. */
#include "backends/cpu/target/cpu.h"
#include "compile/compile.h"
#include "tests/base/support.h"

#include <string.h>

static const char source[] = "module opset 20\nsize N\nsize P\n"
                             "graph \"g\" (%x: f32[N, 8], %w: f32[8, 8], %p: f32[2, P, 8], %q: f32[2, N, 8]) {\n"
                             " %a: f32[N, 8] = exp(%x)\n %b: f32[N, 8] = matmul(%a, %w) {to = f32}\n"
                             " %s: f32[8, N] = transpose(%b) {perm = [1, 0]}\n"
                             " %m: f32[8] = reduce_max(%s) {axes = [1], keep = 0}\n"
                             " %g: f32[2, P + N, 8] = concat(%p, %q) {axis = 1}\n return %b, %m, %g\n}\n";

typedef struct refusal_case {
    uir_stage stage;
    uir_status status;
    bool ends;          /* the compile, not the group's kernel alone */
    const char *victim; /* part of the kernel's name */
    bool isolated;      /* faults cost their groups alone */
    const char *fault;  /* NULL: it counts as none */
} refusal_case;

static const refusal_case cases[] = {
    {UIR_STAGE_SCHEDULE, UIR_STATUS_UNSUPPORTED, false, "matmul", false, NULL},
    {UIR_STAGE_SCHEDULE, UIR_STATUS_LIMIT, false, "matmul", false, NULL},
    {UIR_STAGE_IGRAPH, UIR_STATUS_UNSUPPORTED, false, "matmul", false, NULL},
    {UIR_STAGE_RUNS, UIR_STATUS_LIMIT, false, "concat", false, NULL}, /* whose past and present have slack by then */
    {UIR_STAGE_SCHEDULE, UIR_STATUS_INTERNAL, true, "matmul", false, NULL},
    {UIR_STAGE_SCHEDULE, UIR_STATUS_BAD_FILE, true, "matmul", false, NULL},
    {UIR_STAGE_IGRAPH, UIR_STATUS_INTERNAL, true, "matmul", false, NULL},
    {UIR_STAGE_IGRAPH, UIR_STATUS_BAD_FILE, true, "matmul", false, NULL},
    {UIR_STAGE_IGRAPH, UIR_STATUS_BAD_DATA, true, "matmul", false, NULL},
    {UIR_STAGE_RUNS, UIR_STATUS_BAD_FILE, true, "concat", false, NULL},
    {UIR_STAGE_SCHEDULE, UIR_STATUS_OUT_OF_MEMORY, true, "matmul", false, NULL},
    {UIR_STAGE_IGRAPH, UIR_STATUS_CANCELLED, true, "matmul", false, NULL},
    {UIR_STAGE_SCHEDULE, UIR_STATUS_INTERNAL, false, "matmul", true, "_matmul, schedule: this one is refused"},
    {UIR_STAGE_SCHEDULE, UIR_STATUS_BAD_FILE, false, "matmul", true, "_matmul, schedule: this one is refused"},
    {UIR_STAGE_IGRAPH, UIR_STATUS_INTERNAL, false, "matmul", true, "_matmul, igraph: this one is refused"},
    {UIR_STAGE_IGRAPH, UIR_STATUS_BAD_DATA, false, "matmul", true, "_matmul, igraph: this one is refused"},
    {UIR_STAGE_RUNS, UIR_STATUS_BAD_FILE, false, "concat", true, "_concat, runs: this one is refused"},
    {UIR_STAGE_SCHEDULE, UIR_STATUS_LIMIT, false, "matmul", true, NULL},
    {UIR_STAGE_RUNS, UIR_STATUS_UNSUPPORTED, false, "concat", true, NULL},
    {UIR_STAGE_SCHEDULE, UIR_STATUS_OUT_OF_MEMORY, true, "matmul", true, NULL},
    {UIR_STAGE_IGRAPH, UIR_STATUS_CANCELLED, true, "matmul", true, NULL},
};
static const refusal_case *current; /* NULL: nothing fails */
static const char *const words = "this one is refused";

static bool is_victim(const char *name, uir_stage stage) {
    return current && current->stage == stage && strstr(name, current->victim);
}

uir_status __real_uir_lower_schedule(const uir_loop_function *function, const uir_machine *machine,
                                     uir_parameter_choice *choice, uir_text *steps, uir_diagnostics *diagnostics,
                                     uir_loop_list *out);
uir_status __wrap_uir_lower_schedule(const uir_loop_function *function, const uir_machine *machine,
                                     uir_parameter_choice *choice, uir_text *steps, uir_diagnostics *diagnostics,
                                     uir_loop_list *out);
uir_status __wrap_uir_lower_schedule(const uir_loop_function *function, const uir_machine *machine,
                                     uir_parameter_choice *choice, uir_text *steps, uir_diagnostics *diagnostics,
                                     uir_loop_list *out) {
    if (is_victim(function->name, UIR_STAGE_SCHEDULE))
        return uir_error(diagnostics, current->status, NULL, "%s", words);
    return __real_uir_lower_schedule(function, machine, choice, steps, diagnostics, out);
}

uir_status __real_uir_lower_kernel(const uir_loop_function *function, const uir_machine *machine,
                                   const uir_allocator *allocator, uir_diagnostics *diagnostics, uir_igraph_list *out);
uir_status __wrap_uir_lower_kernel(const uir_loop_function *function, const uir_machine *machine,
                                   const uir_allocator *allocator, uir_diagnostics *diagnostics, uir_igraph_list *out);
uir_status __wrap_uir_lower_kernel(const uir_loop_function *function, const uir_machine *machine,
                                   const uir_allocator *allocator, uir_diagnostics *diagnostics, uir_igraph_list *out) {
    if (is_victim(function->name, UIR_STAGE_IGRAPH)) return uir_error(diagnostics, current->status, NULL, "%s", words);
    return __real_uir_lower_kernel(function, machine, allocator, diagnostics, out);
}

uir_status __real_uir_igraph_form_runs(uir_igraph *igraph, uir_diagnostics *diagnostics);
uir_status __wrap_uir_igraph_form_runs(uir_igraph *igraph, uir_diagnostics *diagnostics);
uir_status __wrap_uir_igraph_form_runs(uir_igraph *igraph, uir_diagnostics *diagnostics) {
    if (is_victim(igraph->name, UIR_STAGE_RUNS)) return uir_error(diagnostics, current->status, NULL, "%s", words);
    return __real_uir_igraph_form_runs(igraph, diagnostics);
}

static uir_status compile(const uir_machine *machine, uir_diagnostics *diagnostics, uir_compile *out_compile) {
    uir_allocator allocator = uir_allocator_system();
    const uir_compile_options options = {
        .description = machine, .unfused = true, .isolates_faults = current && current->isolated};
    const uir_compile_text text = {source, strlen(source), "refusals", NULL};
    const uir_compile_call call = {.diagnostics = diagnostics};
    uir_compile_init(out_compile, NULL, &options, &allocator, NULL);
    assert_int_equal(uir_compile_read(out_compile, UIR_STAGE_CLEANED, &text, diagnostics), UIR_STATUS_OK);
    return uir_compile_run(out_compile, UIR_STAGE_RUNS, &call);
}

static bool has_kernel(const uir_lowering *lowering, const char *op) {
    for (uint32_t i = 0; i < lowering->kernels.count; i++)
        if (strstr(lowering->kernels.data[i].name, op)) return true;
    return false;
}

static void check(const uir_machine *machine, uint32_t whole) {
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_compile c;
    uir_diagnostics_init(&diagnostics, &allocator);
    uir_status status = compile(machine, &diagnostics, &c);
    if (current->ends) {
        bool fault = current->status != UIR_STATUS_OUT_OF_MEMORY && current->status != UIR_STATUS_CANCELLED;
        assert_int_equal(status, fault ? UIR_STATUS_INTERNAL : current->status);
        assert_non_null(strstr(diagnostics.first->message, words));
    } else {
        assert_int_equal(status, UIR_STATUS_OK);
        assert_null(diagnostics.first); /* the group's own refusal says it */
        assert_int_equal(c.lowering.refusals.count, 1);
        assert_string_equal(c.lowering.refusals.data[0].why, words);
        const uir_node_info *group = uir_node_get(c.primitives, c.lowering.refusals.data[0].group);
        static const char *const kernels_own[] = {"kernel", "sizes", "slack"};
        for (size_t i = 0; i < sizeof kernels_own / sizeof *kernels_own; i++)
            assert_null(uir_node_find_attribute(c.primitives, group, kernels_own[i]));
        assert_false(has_kernel(&c.lowering, current->victim));
        assert_int_equal(c.lowering.kernels.count, whole - 1);
        assert_true(has_kernel(&c.lowering, "reduce_max")); /* a kernel after it, and one before it */
        assert_true(has_kernel(&c.lowering, "exp"));
    }
    assert_int_equal(c.lowering.faults.count, current->fault != NULL);
    if (current->fault) {
        const char *fault = c.lowering.faults.data[0];
        assert_int_equal(strncmp(fault, "kernel k", 8), 0);
        assert_non_null(strstr(fault, current->fault));
    }
    uir_compile_deinit(&c);
    uir_diagnostics_deinit(&diagnostics);
}

static void test_refusals(void **state) {
    static uir_cpu_device cpu;
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_compile c;
    (void)state;
    uir_diagnostics_init(&diagnostics, &allocator);
    assert_int_equal(uir_cpu_describe("generic", &diagnostics, &cpu), UIR_STATUS_OK);
    assert_int_equal(compile(&cpu.machine, &diagnostics, &c), UIR_STATUS_OK);
    uint32_t whole = c.lowering.kernels.count;
    assert_true(has_kernel(&c.lowering, "matmul") && has_kernel(&c.lowering, "concat"));
    assert_int_equal(c.lowering.refusals.count, 0);
    uir_compile_deinit(&c);
    uir_diagnostics_deinit(&diagnostics);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        current = &cases[i];
        check(&cpu.machine, whole);
    }
    current = NULL;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
