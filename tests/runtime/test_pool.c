/* Threads that share a task: who comes to it, and that nobody is at it any more when it has ended. */
#include "runtime/internal.h"
#include "tests/base/support.h"

#include <string.h>
#include <time.h>

enum { WORKERS = 3, MOST = WORKERS + 1 };

typedef struct round {
    atomic_int entered[MOST], left; /* by index */
    int wanted;                     /* the caller waits until so many are at it */
    int slow_ms;                    /* how long all others take */
    bool in_time;
} round_of;

static void nap(int milliseconds) {
    nanosleep(&(struct timespec){0, milliseconds * 1000000L}, NULL);
}

static int count_entered(const round_of *r) {
    int count = 0;
    for (int i = 0; i < MOST; i++) count += atomic_load(&r->entered[i]) > 0;
    return count;
}

static void task(void *context, uint32_t index) {
    round_of *r = context;
    assert_in_range(index, 0, MOST - 1);
    atomic_fetch_add(&r->entered[index], 1);
    uint64_t end = uir_rt_now() + UINT64_C(20000000000);
    if (index == 0) {
        while (count_entered(r) < r->wanted && uir_rt_now() < end) nap(0);
        r->in_time = count_entered(r) >= r->wanted;
    } else if (r->slow_ms) {
        nap(r->slow_ms);
    }
    atomic_fetch_add(&r->left, 1);
}

/* What happened with so many threads; the caller waits for `wanted` of them. */
static void check_round(uir_rt_pool *pool, uint32_t threads, int wanted, int slow_ms) {
    round_of r = {.wanted = wanted, .slow_ms = slow_ms};
    uir_rt_pool_run(pool, threads, task, &r);
    int left = atomic_load(&r.left), entered = count_entered(&r);
    assert_true(r.in_time);
    assert_int_equal(left, entered); /* whoever has begun is done */
    assert_int_equal(atomic_load(&r.entered[0]), 1);
    for (int i = 0; i < MOST; i++)
        assert_in_range(atomic_load(&r.entered[i]), 0, i < (int)(threads ? threads : 1) ? 1 : 0);
    nap(slow_ms ? 1 : 0);
    assert_int_equal(atomic_load(&r.left), left);
}

static void *resize(void *user, void *pointer, size_t old_size, size_t new_size) {
    uir_allocator system = uir_allocator_system();
    *(long long *)user += (long long)new_size - (long long)(pointer ? old_size : 0);
    return system.resize(system.user, pointer, old_size, new_size);
}

static void test_rounds(void **state) {
    (void)state;
    long long live = 0;
    uir_allocator allocator = {resize, &live};
    for (uint32_t workers = 0; workers <= WORKERS; workers++) {
        uir_rt_pool *pool;
        assert_int_equal(uir_rt_pool_create(&allocator, workers, &pool), UIR_STATUS_OK);
        for (int awake = 0; awake < 2; awake++) {
            for (int i = 0; i < 30; i++) {
                uint32_t threads = (uint32_t)(i % (MOST + 1));
                int all = threads < 2 ? 1 : (int)(threads <= workers ? threads : workers + 1);
                if (awake) uir_rt_pool_begin(pool);
                check_round(pool, threads, all, 0);             /* all of them come, and no more */
                check_round(pool, threads, 1, 0);               /* nobody need come */
                if (i < 10) check_round(pool, threads, all, 2); /* they take longer than the caller looks for them */
                if (awake) uir_rt_pool_end(pool);
                if (i % 7 == 0) nap(1); /* until they sleep */
            }
        }
        uir_rt_pool_destroy(pool);
        assert_int_equal(live, 0);
    }
    uir_rt_pool_destroy(NULL);
}

/* A pool that ends while its threads still look for work, or have never had any. */
static void test_ends(void **state) {
    (void)state;
    long long live = 0;
    uir_allocator allocator = {resize, &live};
    for (int i = 0; i < 20; i++) {
        uir_rt_pool *pool;
        assert_int_equal(uir_rt_pool_create(&allocator, WORKERS, &pool), UIR_STATUS_OK);
        if (i % 2) uir_rt_pool_begin(pool);
        if (i % 4 > 1) check_round(pool, MOST, 1, 0);
        uir_rt_pool_destroy(pool);
        assert_int_equal(live, 0);
    }
}

static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void test_clock(void **state) {
    (void)state;
    for (int i = 0; i < 10; i++) {
        uint64_t before = nanoseconds(), now = uir_rt_now();
        assert_in_range(now, before, nanoseconds());
        nap(1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rounds), cmocka_unit_test(test_ends),
                                       cmocka_unit_test(test_clock)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
