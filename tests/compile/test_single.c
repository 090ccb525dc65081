/* Runs of single kernels: by every runner the same results and refusals; by a format of this test, which indices run on
 * which threads, and what a failed slice tells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "compile/kernel.h"
#include "compile/single.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 16, COLUMNS = 4, ELEMENTS = ROWS * COLUMNS };

/* The second phase reads rows of the first in another order. */
static const char text[] = "igraph @turn on cpu {\n"
                           "  dim M in 0..16, N in 1..64\n"
                           "  ptr %x : dram f32 [M,N] in 0  ptr %y : dram f32 [M,N] out 0\n"
                           "  ptr %w : dram f32 [M,N] work\n"
                           "  phase { parallel m : M group\n"
                           "    binary.mul.f32 %w[m:1, 0:N], %x[m:1, 0:N], 2\n"
                           "  }\n"
                           "  phase { parallel m : M group\n"
                           "    binary.add.f32 %y[m:1, 0:N], %w[M-1-m:1, 0:N], 1\n"
                           "  }\n"
                           "}\n";

typedef struct fixture {
    uir_allocator allocator;
    uir_diagnostics diagnostics;
    uir_compile_machines *machines;
    uir_igraph *igraph;
    float x[ELEMENTS], y[ELEMENTS], w[ELEMENTS];
    int64_t dims[2], tiles[1];
    void *pointers[3];
    size_t sizes[3];
    uir_kernel_arguments arguments;
} fixture;

static void open_fixture(fixture *f) {
    memset(f, 0, sizeof *f);
    f->allocator = uir_allocator_system();
    uir_diagnostics_init(&f->diagnostics, &f->allocator);
    assert_int_equal(uir_compile_machines_create(&f->allocator, NULL, &f->diagnostics, &f->machines), UIR_STATUS_OK);
    uir_status status = uir_igraph_parse(&f->allocator, uir_compile_machines_get(f->machines), text, strlen(text),
                                         "turn", &f->diagnostics, &f->igraph);
    if (status == UIR_STATUS_OK) status = uir_igraph_verify(f->igraph, &f->diagnostics);
    if (status != UIR_STATUS_OK) fail_msg("%s", f->diagnostics.first ? f->diagnostics.first->message : "?");
    for (int i = 0; i < ELEMENTS; i++) f->x[i] = (float)i;
    f->dims[0] = ROWS;
    f->dims[1] = COLUMNS;
    f->pointers[0] = f->x;
    f->pointers[1] = f->y;
    f->pointers[2] = f->w;
    f->sizes[0] = f->sizes[1] = f->sizes[2] = sizeof f->x;
    f->arguments = (uir_kernel_arguments){f->dims, f->tiles, f->pointers};
}

static void close_fixture(fixture *f) {
    uir_igraph_destroy(f->igraph);
    uir_compile_machines_destroy(f->machines);
    uir_diagnostics_deinit(&f->diagnostics);
}

static bool said(const fixture *f, const char *words) {
    for (const uir_diagnostic *d = f->diagnostics.first; d; d = d->next)
        if (strstr(d->message, words)) return true;
    return false;
}

static void forget(fixture *f) {
    uir_diagnostics_clear(&f->diagnostics);
    memset(f->y, 0x55, sizeof f->y);
}

static void expect_untouched(const fixture *f) {
    float y[ELEMENTS];
    memset(y, 0x55, sizeof y);
    assert_memory_equal(f->y, y, sizeof y);
}

/* ---- by every runner ---- */
typedef void runner_test(fixture *f, const char *name, uir_kernel_runner *runner, volatile bool *cancel);

static void with_runner(const char *name, runner_test *test) {
    fixture f;
    volatile bool cancel = false;
    uir_kernel_runner *runner;
    open_fixture(&f);
    uir_status status = uir_kernel_runner_create(&f.allocator, name, f.igraph, NULL, &cancel, &f.diagnostics, &runner);
    if (status != UIR_STATUS_OK) fail_msg("%s: %s", name, f.diagnostics.first ? f.diagnostics.first->message : "?");
    test(&f, name, runner, &cancel);
    uir_kernel_runner_destroy(runner);
    close_fixture(&f);
}

/* The runners of this machine with their variants, then a device with memory of its own. */
static void with_every_runner(runner_test *test) {
    const char *name, *variant;
    char whole[64];
    for (size_t i = 0; (name = uir_kernel_runner_name(i)) != NULL; i++) {
        with_runner(name, test);
        for (size_t v = 0; (variant = uir_kernel_runner_variant(i, v)) != NULL; v++) {
            snprintf(whole, sizeof whole, "%s:%s", name, variant);
            with_runner(whole, test);
        }
    }
    with_runner("null", test);
}

static void run_rows(fixture *f, const char *name, uir_kernel_runner *runner, uint32_t threads) {
    forget(f);
    uir_status status = uir_kernel_runner_run(runner, &f->arguments, f->sizes, threads, &f->diagnostics);
    if (status != UIR_STATUS_OK) fail_msg("%s: %s", name, f->diagnostics.first ? f->diagnostics.first->message : "?");
    for (int m = 0; m < (int)f->dims[0]; m++)
        for (int n = 0; n < COLUMNS; n++)
            assert_true(f->y[m * COLUMNS + n] == 2 * f->x[((int)f->dims[0] - 1 - m) * COLUMNS + n] + 1);
}

static void expect_result(fixture *f, const char *name, uir_kernel_runner *runner, volatile bool *cancel) {
    (void)cancel;
    for (uint32_t threads = 0; threads < 5; threads++) run_rows(f, name, runner, threads);
    f->dims[0] = 3;
    f->sizes[0] = f->sizes[1] = f->sizes[2] = 3 * COLUMNS * sizeof(float);
    run_rows(f, name, runner, 20); /* more threads than indices */
    f->dims[0] = 0;
    run_rows(f, name, runner, 2);
    expect_untouched(f);
}

static void expect_refusals(fixture *f, const char *name, uir_kernel_runner *runner, volatile bool *cancel) {
    (void)cancel;
    forget(f);
    f->dims[0] = ROWS + 1; /* breaks the dim's facts */
    assert_int_equal(uir_kernel_runner_run(runner, &f->arguments, f->sizes, 2, &f->diagnostics),
                     UIR_STATUS_INVALID_ARGUMENT);
    expect_untouched(f);
    f->dims[0] = ROWS;
    for (int p = 0; p < 3 && strcmp(name, "interpreter") != 0; p++) { /* which is told no sizes */
        forget(f);
        f->sizes[p]--;
        assert_int_equal(uir_kernel_runner_run(runner, &f->arguments, f->sizes, 2, &f->diagnostics),
                         UIR_STATUS_INVALID_ARGUMENT);
        assert_true(said(f, "has 255 bytes, 256 are needed"));
        expect_untouched(f);
        f->sizes[p]++;
    }
    run_rows(f, name, runner, 2); /* a refusal leaves nothing behind */
}

static void expect_cancelled(fixture *f, const char *name, uir_kernel_runner *runner, volatile bool *cancel) {
    forget(f);
    *cancel = true;
    assert_int_equal(uir_kernel_runner_run(runner, &f->arguments, f->sizes, 2, &f->diagnostics), UIR_STATUS_CANCELLED);
    assert_null(f->diagnostics.first);
    *cancel = false;
    run_rows(f, name, runner, 2);
}

static void test_results(void **state) {
    (void)state;
    with_every_runner(expect_result);
}

static void test_refusals(void **state) {
    (void)state;
    with_every_runner(expect_refusals);
}

static void test_cancelled(void **state) {
    (void)state;
    with_every_runner(expect_cancelled);
}

/* ---- by a format of this test ---- */
static atomic_int runs[2][ROWS], strangers, failing;
static pthread_t caller;

static uir_status find_any(uir_loaded_module *module, const uir_kernel_entry *entry, uir_diagnostics *diagnostics,
                           const uir_loaded_kernel **out_kernel) {
    (void)module, (void)diagnostics;
    assert_int_equal(entry->pointer_count, 3);
    assert_false(entry->writable[0]);
    assert_true(entry->writable[1] && entry->writable[2]);
    *out_kernel = NULL;
    return UIR_STATUS_OK;
}

static size_t no_state(const uir_loaded_kernel *kernel) {
    (void)kernel;
    return 0;
}

static uir_status prepare_little(uir_kernel_launch *launch, uir_diagnostics *diagnostics) {
    (void)diagnostics;
    launch->scratch_size = 64;
    return UIR_STATUS_OK;
}

static uir_status count_run(const uir_kernel_launch *launch, uint32_t phase, uir_kernel_scratch *scratch, int64_t begin,
                            int64_t end) {
    (void)launch;
    memset(scratch->data, 1, scratch->size);
    if (!pthread_equal(pthread_self(), caller)) atomic_fetch_add(&strangers, 1);
    for (int64_t i = begin; i < end; i++) {
        if (phase * ROWS + i == atomic_load(&failing)) {
            snprintf(scratch->failure, sizeof scratch->failure, "index %d is broken", (int)i);
            return UIR_STATUS_BAD_DATA;
        }
        atomic_fetch_add(&runs[phase][i], 1);
    }
    return UIR_STATUS_OK;
}

static const uir_kernel_format counting = {
    .name = "counting", .find = find_any, .state_size = no_state, .prepare = prepare_little, .run = count_run};

static void test_threads(void **state) {
    (void)state;
    fixture f;
    uir_single *single;
    open_fixture(&f);
    const uir_single_kernel kernel = {.igraph = f.igraph};
    assert_int_equal(uir_single_find(&f.allocator, &kernel, &counting, NULL, &f.diagnostics, &single), UIR_STATUS_OK);
    caller = pthread_self();
    atomic_store(&failing, -1);
    for (uint32_t threads = 0; threads < 6; threads++) {
        memset(runs, 0, sizeof runs);
        atomic_store(&strangers, 0);
        assert_int_equal(uir_single_run_once(single, &f.arguments, f.sizes, threads, &f.diagnostics), UIR_STATUS_OK);
        for (int i = 0; i < 2 * ROWS; i++) assert_int_equal(runs[i / ROWS][i % ROWS], 1);
        assert_int_equal(atomic_load(&strangers) > 0, threads > 1);
    }
    uir_single_destroy(single);
    close_fixture(&f);
}

/* Later phases do not run; the words of the slice are the message. */
static void test_failures(void **state) {
    (void)state;
    fixture f;
    uir_single *single;
    open_fixture(&f);
    const uir_single_kernel kernel = {.igraph = f.igraph};
    assert_int_equal(uir_single_find(&f.allocator, &kernel, &counting, NULL, &f.diagnostics, &single), UIR_STATUS_OK);
    for (uint32_t threads = 1; threads < 4; threads++) {
        memset(runs, 0, sizeof runs);
        atomic_store(&failing, 5);
        assert_int_equal(uir_single_bind(single, &f.arguments, f.sizes, threads, &f.diagnostics), UIR_STATUS_OK);
        assert_int_equal(uir_single_run(single, &f.diagnostics), UIR_STATUS_BAD_DATA);
        assert_true(said(&f, "index 5 is broken"));
        for (int i = 0; i < ROWS; i++) assert_int_equal(runs[1][i], 0);
        uir_diagnostics_clear(&f.diagnostics);
        atomic_store(&failing, -1);
        assert_int_equal(uir_single_run(single, &f.diagnostics), UIR_STATUS_OK); /* it is bound still */
        assert_int_equal(runs[1][ROWS - 1], 1);
    }
    uir_single_destroy(single);
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_results), cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_cancelled), cmocka_unit_test(test_threads),
                                       cmocka_unit_test(test_failures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
