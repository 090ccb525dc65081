/* Budgets: what is counted, what ends an operation, and what is said of it; the watch. */
#include "support.h"

#include "base/status.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

typedef struct rig {
    uir_budget budget;
    uir_allocator allocator;
    uir_diagnostics diagnostics;
} rig;

static void begin(rig *r, uir_limits limits, const volatile bool *cancel) {
    uir_allocator system = uir_allocator_system();
    limits.struct_size = sizeof limits;
    uir_budget_init(&r->budget, &system, &limits);
    r->allocator = uir_budget_allocator(&r->budget);
    uir_diagnostics_init(&r->diagnostics, &system);
    assert_int_equal(uir_budget_begin(&r->budget, "the test", cancel, NULL), UIR_STATUS_OK);
}

static void end(rig *r, uir_status given, uir_status expected, const char *text) {
    assert_int_equal(uir_budget_end(&r->budget, given, &r->diagnostics), expected);
    assert_int_equal(r->diagnostics.count, text ? 1 : 0);
    if (text && !strstr(r->diagnostics.first->message, text)) fail_msg("%s", r->diagnostics.first->message);
    assert_int_equal(r->budget.used, 0);
    uir_diagnostics_deinit(&r->diagnostics);
    uir_budget_deinit(&r->budget);
}

static void test_memory_is_counted(void **state) {
    rig r;
    (void)state;
    begin(&r, (uir_limits){.memory = 1000}, NULL);
    assert_ptr_equal(uir_budget_of(&r.allocator), &r.budget);
    assert_null(uir_budget_of(&r.budget.under));
    char *a = uir_allocate(&r.allocator, 400), *b = uir_allocate(&r.allocator, 400);
    assert_true(a && b);
    a = uir_reallocate(&r.allocator, a, 400, 100);
    assert_int_equal(r.budget.used, 500);
    assert_int_equal(r.budget.peak, 800);
    assert_null(uir_reallocate(&r.allocator, a, 100, 700));
    assert_null(uir_allocate(&r.allocator, 1)); /* what broke stays broken */
    uir_release(&r.allocator, a, 100);
    uir_release(&r.allocator, b, 400);
    end(&r, UIR_STATUS_OUT_OF_MEMORY, UIR_STATUS_LIMIT, "the test takes more than 1000 bytes of memory: 600 requested");
}

/* Between operations memory is refused, and nothing stays broken. */
static void test_the_limit_holds_between_operations(void **state) {
    rig r;
    (void)state;
    begin(&r, (uir_limits){.memory = 1000}, NULL);
    assert_int_equal(uir_budget_end(&r.budget, UIR_STATUS_OK, &r.diagnostics), UIR_STATUS_OK);
    assert_null(uir_allocate(&r.allocator, 1001));
    void *a = uir_allocate(&r.allocator, 1000);
    assert_non_null(a);
    assert_int_equal(uir_budget_begin(&r.budget, "the next", NULL, NULL), UIR_STATUS_OK);
    uir_release(&r.allocator, a, 1000);
    end(&r, UIR_STATUS_OK, UIR_STATUS_OK, NULL);
}

static void test_work_is_counted(void **state) {
    rig r;
    uir_arena arena;
    (void)state;
    begin(&r, (uir_limits){.work = 10 * UIR_ARENA_UNSPENT}, NULL);
    uir_budget_enter(&r.budget, "stage");
    uir_budget_at(&r.budget, "node", "Op");
    uir_arena_init(&arena, &r.allocator);
    uir_status status = UIR_STATUS_OK;
    uint32_t steps = 0;
    for (; status == UIR_STATUS_OK && steps < 100 * UIR_ARENA_UNSPENT; steps++) status = uir_arena_spend(&arena, 1);
    assert_int_equal(status, UIR_STATUS_CANCELLED);
    assert_true(steps > 10 * UIR_ARENA_UNSPENT && steps <= 11 * UIR_ARENA_UNSPENT);
    uir_arena_deinit(&arena);
    end(&r, status, UIR_STATUS_LIMIT, "the test (stage) takes more than 40960 steps");
}

static void test_a_flag_stops_it(void **state) {
    rig r;
    volatile bool cancel = false;
    (void)state;
    begin(&r, (uir_limits){0}, &cancel);
    void *a = uir_allocate(&r.allocator, 10);
    cancel = true;
    assert_null(uir_allocate(&r.allocator, 10));
    uir_release(&r.allocator, a, 10);
    (void)uir_error(&r.diagnostics, UIR_STATUS_OUT_OF_MEMORY, NULL, "memory is exhausted");
    end(&r, UIR_STATUS_OUT_OF_MEMORY, UIR_STATUS_CANCELLED, NULL);
    begin(&r, (uir_limits){0}, &cancel); /* what was refused nothing is whole */
    end(&r, UIR_STATUS_OK, UIR_STATUS_OK, NULL);
}

static void *refuse_large(void *user, void *pointer, size_t old_size, size_t new_size) {
    uir_allocator system = uir_allocator_system();
    if (new_size > *(size_t *)user) return NULL;
    return system.resize(system.user, pointer, old_size, new_size);
}

/* Whoever was refused the memory knows best what for. */
static void test_memory_that_was_told_of(void **state) {
    size_t most = 100;
    rig r;
    (void)state;
    begin(&r, (uir_limits){0}, NULL);
    r.budget.under = (uir_allocator){refuse_large, &most};
    assert_null(uir_allocate(&r.allocator, 101));
    uir_status told = uir_error(&r.diagnostics, UIR_STATUS_OUT_OF_MEMORY, NULL, "the output takes 101 bytes");
    end(&r, told, UIR_STATUS_OUT_OF_MEMORY, "the output takes 101 bytes");
}

/* Memory that the caller's allocator does not have ends the operation, whatever a stage makes of it; not the next. */
static void test_memory_that_is_not_there(void **state) {
    static const uir_status taken_for[] = {UIR_STATUS_OUT_OF_MEMORY, UIR_STATUS_BAD_FILE, UIR_STATUS_UNSUPPORTED,
                                           UIR_STATUS_INTERNAL, UIR_STATUS_OK};
    size_t most = 100;
    (void)state;
    for (size_t i = 0; i < sizeof taken_for / sizeof *taken_for; i++) {
        rig r;
        begin(&r, (uir_limits){0}, NULL);
        r.budget.under = (uir_allocator){refuse_large, &most};
        void *a = uir_allocate(&r.allocator, 50);
        uir_budget_enter(&r.budget, "stage");
        uir_budget_at(&r.budget, "node", "Op");
        assert_false(uir_budget_is_over(&r.budget));
        if (i % 2)
            assert_null(uir_allocate(&r.allocator, 101));
        else
            assert_null(uir_reallocate(&r.allocator, a, 50, 101));
        assert_true(uir_budget_is_over(&r.budget));
        assert_null(uir_allocate(&r.allocator, 1));
        uir_release(&r.allocator, a, 50);
        (void)uir_error(&r.diagnostics, UIR_STATUS_BAD_FILE, NULL, "the number of elements overflows");
        assert_int_equal(uir_budget_end(&r.budget, taken_for[i], &r.diagnostics), UIR_STATUS_OUT_OF_MEMORY);
        assert_int_equal(r.diagnostics.count, 1);
        assert_string_equal(r.diagnostics.first->message, "the test (stage): out of memory");
        assert_string_equal(r.diagnostics.first->location.node, "node");
        uir_diagnostics_clear(&r.diagnostics);
        assert_null(uir_allocate(&r.allocator, 101)); /* between operations: nothing to end */
        assert_int_equal(uir_budget_begin(&r.budget, "the next", NULL, NULL), UIR_STATUS_OK);
        a = uir_allocate(&r.allocator, 100);
        assert_non_null(a);
        uir_release(&r.allocator, a, 100);
        end(&r, UIR_STATUS_OK, UIR_STATUS_OK, NULL);
    }
}

static void test_limits_grow_with_the_files(void **state) {
    rig r;
    (void)state;
    begin(&r, (uir_limits){.file_bytes = 1000}, NULL);
    uint64_t before = uir_budget_get_limit(&r.budget, UIR_LIMIT_MEMORY);
    assert_true(uir_budget_add_file(&r.budget, 900));
    assert_int_equal(uir_budget_get_limit(&r.budget, UIR_LIMIT_MEMORY), before + 16 * 900);
    assert_int_equal(uir_budget_get_limit(&r.budget, UIR_LIMIT_FILE_BYTES), 1000);
    assert_false(uir_budget_add_file(&r.budget, 101));
    end(&r, UIR_STATUS_LIMIT, UIR_STATUS_LIMIT, "more than 1000 bytes of files");
    begin(&r, (uir_limits){.memory = UIR_NO_LIMIT, .depth = UIR_NO_LIMIT}, NULL);
    assert_false(uir_budget_add_file(&r.budget, UINT64_MAX / 2)); /* and nothing overflows */
    assert_int_equal(uir_budget_get_limit(&r.budget, UIR_LIMIT_MEMORY), UIR_NO_LIMIT);
    assert_int_equal(uir_budget_get_limit(&r.budget, UIR_LIMIT_DEPTH), 100);
    end(&r, UIR_STATUS_OK, UIR_STATUS_LIMIT, "bytes of files");
}

static void test_folding_has_its_own(void **state) {
    rig r;
    (void)state;
    begin(&r, (uir_limits){.fold_work = 100, .fold_bytes = 50}, NULL);
    assert_true(uir_budget_take_fold(&r.budget, 60, 20));
    assert_false(uir_budget_take_fold(&r.budget, 41, 1));
    assert_false(uir_budget_take_fold(&r.budget, 1, 31));
    assert_true(uir_budget_take_fold(&r.budget, 40, 30));
    assert_false(uir_budget_take_fold(&r.budget, UINT64_MAX, UINT64_MAX));
    assert_true(uir_budget_take_fold(NULL, UINT64_MAX, UINT64_MAX));
    end(&r, UIR_STATUS_OK, UIR_STATUS_OK, NULL);
}

/* ---- time ---- */
static void count_ring(void *user) {
    __atomic_add_fetch((uint32_t *)user, 1, __ATOMIC_RELAXED);
}

static void test_a_watch_rings_once(void **state) {
    uir_watch watch = {0};
    uint32_t rings = 0;
    (void)state;
    assert_int_equal(uir_watch_start(&watch, 3600 * 1000, count_ring, &rings), UIR_STATUS_OK);
    uir_watch_stop(&watch);
    assert_int_equal(uir_watch_start(&watch, 1, count_ring, &rings), UIR_STATUS_OK);
    while (!__atomic_load_n(&rings, __ATOMIC_RELAXED)) sched_yield();
    uir_watch_stop(&watch);
    uir_watch_deinit(&watch);
    assert_int_equal(rings, 1);
    uir_watch_deinit(&watch);
}

static void test_time_ends_it(void **state) {
    rig r;
    (void)state;
    begin(&r, (uir_limits){.milliseconds = 1}, NULL);
    while (uir_budget_spend(&r.budget, 1) == UIR_STATUS_OK) sched_yield();
    end(&r, UIR_STATUS_CANCELLED, UIR_STATUS_LIMIT, "more than 0.001 seconds");
}

/* What goes on beside operations polls, and an operation's flag is its caller's alone once it has ended. */
typedef struct poller {
    uir_budget *budget;
    bool end;
} poller;

static void *poll_until_end(void *user) {
    poller *p = user;
    while (!__atomic_load_n(&p->end, __ATOMIC_RELAXED)) uir_budget_is_over(p->budget);
    return NULL;
}

static void test_a_flag_may_go_when_it_has_ended(void **state) {
    rig r;
    poller beside = {&r.budget, false};
    pthread_t thread;
    (void)state;
    begin(&r, (uir_limits){0}, NULL);
    assert_int_equal(pthread_create(&thread, NULL, poll_until_end, &beside), 0);
    for (uint32_t i = 0; i < 2000; i++) {
        bool *flag = calloc(1, sizeof *flag);
        assert_non_null(flag);
        assert_int_equal(uir_budget_end(&r.budget, UIR_STATUS_OK, &r.diagnostics), UIR_STATUS_OK);
        assert_int_equal(uir_budget_begin(&r.budget, "the test", flag, NULL), UIR_STATUS_OK);
        sched_yield();
        assert_int_equal(uir_budget_end(&r.budget, UIR_STATUS_OK, &r.diagnostics), UIR_STATUS_OK);
        *flag = true;
        free(flag);
        assert_int_equal(uir_budget_begin(&r.budget, "the test", NULL, NULL), UIR_STATUS_OK);
    }
    __atomic_store_n(&beside.end, true, __ATOMIC_RELAXED);
    assert_int_equal(pthread_join(thread, NULL), 0);
    end(&r, UIR_STATUS_OK, UIR_STATUS_OK, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_counted),
        cmocka_unit_test(test_the_limit_holds_between_operations),
        cmocka_unit_test(test_work_is_counted),
        cmocka_unit_test(test_a_flag_stops_it),
        cmocka_unit_test(test_memory_that_was_told_of),
        cmocka_unit_test(test_memory_that_is_not_there),
        cmocka_unit_test(test_limits_grow_with_the_files),
        cmocka_unit_test(test_folding_has_its_own),
        cmocka_unit_test(test_a_watch_rings_once),
        cmocka_unit_test(test_time_ends_it),
        cmocka_unit_test(test_a_flag_may_go_when_it_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
