/* The table of stages: that it is one, and that a compile goes along it, from wherever it begins. */
#include "compile/compile.h"
#include "tests/base/support.h"

#include <string.h>

static const char source[] = "module opset 20\nsize N\ngraph \"g\" (%x: f32[N, 8]) {\n"
                             "    %y: f32[N, 8] = exp(%x)\n    return %y\n}\n";

static void test_table(void **state) {
    (void)state;
    double shares = 0;
    for (uir_stage stage = 0; stage < UIR_STAGE_COUNT; stage++) {
        const uir_stage_row *row = uir_stage_get(stage);
        uir_stage found = UIR_STAGE_COUNT;
        assert_true(uir_stage_find(row->name, &found)); /* a name is one row's */
        assert_int_equal(found, stage);
        assert_true(row->run || row->print);
        assert_true(!row->pass.run == !(stage > UIR_STAGE_PRIMITIVES && stage <= UIR_STAGE_CLEANED));
        assert_true(!row->checked == (row->held == UIR_UNHELD));
        assert_true(!row->launch || (row->checked && stage > UIR_STAGE_FUSION));
        shares += row->share;
    }
    assert_true(shares > 99.5 && shares < 100.5);
    uir_stage found;
    assert_false(uir_stage_find("nonsense", &found));
}

typedef struct told {
    double fraction;
    uir_stage stage; /* the last that was told of, among those from FUSION on */
} told;

static bool hear(void *user, const char *stage, double fraction) {
    told *t = user;
    uir_stage found;
    assert_true(fraction >= t->fraction && fraction <= 1);
    t->fraction = fraction;
    if (uir_stage_find(stage, &found)) {
        assert_true(found >= t->stage);
        t->stage = found;
    }
    return false;
}

/* Each stage once, in order; a compile that is asked for what is done does nothing. */
static void test_order(void **state) {
    (void)state;
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_compile c;
    told t = {0, 0};
    uir_operation operation = {.tell = hear, .user = &t};
    const uir_compile_text text = {source, strlen(source), "stages", NULL};
    const uir_compile_call call = {.diagnostics = &diagnostics, .progress = uir_operation_whole(&operation)};
    uir_diagnostics_init(&diagnostics, &allocator);
    uir_compile_init(&c, NULL, NULL, &allocator, NULL);
    assert_int_equal(uir_compile_read(&c, UIR_STAGE_PRIMITIVES, &text, &diagnostics), UIR_STATUS_OK);
    for (uir_stage last = c.next; last <= UIR_STAGE_RUNS; last++) {
        const uir_compile_call step = {.diagnostics = &diagnostics};
        assert_int_equal(uir_compile_run(&c, last, &step), UIR_STATUS_OK);
        assert_int_equal(c.next, last + 1);
        assert_int_equal(uir_compile_run(&c, last, &step), UIR_STATUS_OK);
        assert_int_equal(c.next, last + 1);
    }
    assert_int_equal(c.lowering.kernels.count, 1);
    assert_int_equal(c.igraph_count, c.lowering.kernels.data[0].lowered.igraphs.count);
    uir_compile_deinit(&c);

    uir_compile_init(&c, NULL, NULL, &allocator, NULL);
    assert_int_equal(uir_compile_read(&c, UIR_STAGE_PRIMITIVES, &text, &diagnostics), UIR_STATUS_OK);
    assert_int_equal(uir_compile_run(&c, UIR_STAGE_RUNS, &call), UIR_STATUS_OK);
    assert_int_equal(t.stage, UIR_STAGE_RUNS);
    assert_true(t.fraction > 0.9);
    uir_compile_deinit(&c);
    uir_diagnostics_deinit(&diagnostics);
}

static void test_readers(void **state) {
    (void)state;
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_compile c;
    const uir_compile_text text = {source, strlen(source), "stages", NULL};
    uir_diagnostics_init(&diagnostics, &allocator);
    uir_compile_init(&c, NULL, NULL, &allocator, NULL);
    for (uir_stage stage = UIR_STAGE_EMIT; stage < UIR_STAGE_COUNT; stage++) {
        assert_int_equal(uir_compile_read(&c, stage, &text, &diagnostics), UIR_STATUS_INVALID_ARGUMENT);
        assert_non_null(strstr(diagnostics.first->message, uir_stage_get(stage)->name));
        uir_diagnostics_clear(&diagnostics);
    }
    uir_compile_deinit(&c);
    uir_diagnostics_deinit(&diagnostics);
}

/* A kernel's text after scheduling is its steps, each a line behind a mark, then its variants: `steps` again without
 * the marks, no byte more or less. */
static void test_steps(void **state) {
    (void)state;
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_compile c, again;
    const uir_compile_text given = {source, strlen(source), "stages", NULL};
    const uir_compile_call call = {.diagnostics = &diagnostics};
    const uir_print_options options = {0};
    uir_text text, steps, whole;
    uir_diagnostics_init(&diagnostics, &allocator);
    uir_text_init(&text, &allocator);
    uir_text_init(&steps, &allocator);
    uir_text_init(&whole, &allocator);
    uir_compile_init(&c, NULL, NULL, &allocator, NULL);
    assert_int_equal(uir_compile_read(&c, UIR_STAGE_PRIMITIVES, &given, &diagnostics), UIR_STATUS_OK);
    assert_int_equal(uir_compile_run(&c, UIR_STAGE_SCHEDULE, &call), UIR_STATUS_OK);
    const uir_lowering_kernel *kernel = &c.lowering.kernels.data[0];
    assert_int_equal(uir_compile_print_kernel(&c, UIR_STAGE_SCHEDULE, kernel->name, &text, &diagnostics),
                     UIR_STATUS_OK);
    const char *at = text.data;
    while (!strncmp(at, "# ", 2)) {
        const char *end = strchr(at, '\n');
        assert_non_null(end);
        uir_text_append(&steps, at + 2, (size_t)(end + 1 - at - 2));
        at = end + 1;
    }
    assert_int_equal(strncmp(at, "func @", 6), 0);
    assert_true(steps.length > 1);
    assert_int_equal(steps.length, kernel->lowered.steps.length);
    assert_memory_equal(steps.data, kernel->lowered.steps.data, steps.length);

    /* Read again, the stage has the same steps. */
    assert_int_equal(uir_compile_print(&c, UIR_STAGE_SCHEDULE, &options, &whole, &diagnostics), UIR_STATUS_OK);
    const uir_compile_text printed = {whole.data, whole.length, "printed", NULL};
    uir_compile_init(&again, NULL, NULL, &allocator, NULL);
    assert_int_equal(uir_compile_read(&again, UIR_STAGE_SCHEDULE, &printed, &diagnostics), UIR_STATUS_OK);
    assert_int_equal(again.lowering.kernels.count, 1);
    assert_int_equal(again.lowering.kernels.data[0].lowered.steps.length, steps.length);
    assert_memory_equal(again.lowering.kernels.data[0].lowered.steps.data, steps.data, steps.length);
    uir_compile_deinit(&again);
    uir_text_deinit(&whole);
    uir_text_deinit(&steps);
    uir_text_deinit(&text);
    uir_compile_deinit(&c);
    uir_diagnostics_deinit(&diagnostics);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table), cmocka_unit_test(test_order),
                                       cmocka_unit_test(test_readers), cmocka_unit_test(test_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
