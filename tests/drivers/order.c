/* Queues: the order of their requests, points, waits, clocks. */
#include "tests/drivers/suite.h"

#include <string.h>

enum { N = 1000 };
static const int64_t sizes[] = {N};

/* Elements stay whole numbers of f32 for a dozen steps. */
static void fill_numbers(float *x, int first) {
    for (int i = 0; i < N; i++) x[i] = (float)((first + i) % 50);
}

static void twice_and_one(float *x) {
    for (int i = 0; i < N; i++) x[i] = 2 * x[i] + 1;
}

/* A chain in one queue needs no wait but the last. */
static void test_one_queue(void **state) {
    float x[N], y[N], z[N]; /* x stays as it is until its copy is done */
    bench b;
    call there, back;
    bench_begin(&b, state);
    uir_region regions[2] = {allocate(&b, sizeof x), allocate(&b, sizeof x)}, reverse[2] = {regions[1], regions[0]};
    call_begin(&b, &there, KERNEL_twice_and_one, sizes, regions);
    call_begin(&b, &back, KERNEL_twice_and_one, sizes, reverse);
    for (int round = 0; round < 20; round++) {
        fill_numbers(x, round);
        fill_numbers(z, round);
        put(&b, 0, regions[0], x);
        for (int i = 0; i < 6; i++) {
            call_submit(&b, 0, i % 2 ? &back : &there);
            twice_and_one(z);
        }
        get(&b, 0, regions[0], y);
        assert_memory_equal(z, y, sizeof y);
    }
    call_end(&b, &there);
    call_end(&b, &back);
    bench_end(&b);
}

/* A write, then a read in another queue; the read, then another write in the first. */
static void test_two_queues(void **state) {
    float x[2][N], y[N];
    bench b;
    call c;
    bench_begin(&b, state);
    uir_region regions[2] = {allocate(&b, sizeof y), allocate(&b, sizeof y)};
    call_begin(&b, &c, KERNEL_twice_and_one, sizes, regions);
    uint64_t read = 0;
    for (int round = 0; round < 50; round++) {
        fill_numbers(x[round % 2], 3 * round);
        if (round) follow(&b, 0, 1, read); /* the last round's read is over before this write */
        put(&b, 0, regions[0], x[round % 2]);
        follow(&b, 1, 0, mark(&b, 0));
        call_submit(&b, 1, &c);
        read = mark(&b, 1);
        if (round % 5) continue;
        get(&b, 1, regions[1], y);
        twice_and_one(x[round % 2]);
        assert_memory_equal(x[round % 2], y, sizeof y);
    }
    finish(&b, 1);
    finish(&b, 0);
    call_end(&b, &c);
    bench_end(&b);
}

/* One queue feeds two, a third request needs both. */
static void test_diamond(void **state) {
    float x[N], y[N], z[N];
    bench b;
    call left, right, join;
    bench_begin(&b, state);
    uir_region r[4];
    for (int i = 0; i < 4; i++) r[i] = allocate(&b, sizeof x);
    call_begin(&b, &left, KERNEL_twice_and_one, sizes, (uir_region[]){r[0], r[1]});
    call_begin(&b, &right, KERNEL_add, sizes, (uir_region[]){r[0], r[0], r[2]});
    call_begin(&b, &join, KERNEL_add, sizes, (uir_region[]){r[1], r[2], r[3]});
    for (int round = 0; round < 30; round++) {
        fill_numbers(x, 7 * round);
        put(&b, 0, r[0], x);
        uint64_t given = mark(&b, 0);
        follow(&b, 1, 0, given);
        call_submit(&b, 1, &left);
        follow(&b, 2, 0, given);
        call_submit(&b, 2, &right);
        follow(&b, 0, 1, mark(&b, 1));
        follow(&b, 0, 2, mark(&b, 2));
        call_submit(&b, 0, &join);
        get(&b, 0, r[3], z);
        for (int i = 0; i < N; i++) y[i] = (2 * x[i] + 1) + (x[i] + x[i]);
        assert_memory_equal(y, z, sizeof y);
    }
    call_end(&b, &left);
    call_end(&b, &right);
    call_end(&b, &join);
    bench_end(&b);
}

/* A chain of points through three queues, each of which goes on from the one before. */
static void test_chain(void **state) {
    float x[N], y[N], z[N];
    bench b;
    call calls[2];
    bench_begin(&b, state);
    uir_region r[2] = {allocate(&b, sizeof x), allocate(&b, sizeof x)};
    for (int i = 0; i < 2; i++) call_begin(&b, &calls[i], KERNEL_twice_and_one, sizes, (uir_region[]){r[i], r[!i]});
    fill_numbers(x, 1);
    fill_numbers(z, 1);
    put(&b, 0, r[0], x);
    for (uint32_t i = 0; i < 10; i++) {
        follow(&b, (i + 1) % 3, i % 3, mark(&b, i % 3));
        call_submit(&b, (i + 1) % 3, &calls[i % 2]);
        twice_and_one(z);
    }
    get(&b, 10 % 3, r[0], y);
    assert_memory_equal(z, y, sizeof y);
    for (int i = 0; i < 2; i++) call_end(&b, &calls[i]);
    bench_end(&b);
}

static void test_points(void **state) {
    bench b, other;
    uir_driver_failure failure;
    bench_begin(&b, state);
    bench_begin(&other, state);
    uint64_t points[5];
    unsigned char bytes[5], got[5] = {0};
    uir_region x = allocate(&b, 5);
    for (unsigned char i = 0; i < 5; i++) {
        bytes[i] = i + 1;
        put(&b, 0, part_of(x, i, 1), &bytes[i]);
        copy(&b, 0, host_region(&got[i], 1), part_of(x, i, 1));
        points[i] = mark(&b, 0);
        if (i) assert_true(points[i] > points[i - 1]);
    }
    /* All before a point is done; what is after it may be. */
    assert_int_equal(b.driver->wait(b.queues[0], points[2], NULL, &failure), UIR_STATUS_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(got[i], i + 1);
    assert_int_equal(b.driver->wait(b.queues[0], points[0], NULL, &failure), UIR_STATUS_OK);
    assert_int_equal(b.driver->wait(b.queues[0], points[4], NULL, &failure), UIR_STATUS_OK);
    assert_int_equal(b.driver->wait(b.queues[0], points[4], NULL, &failure), UIR_STATUS_OK);
    assert_memory_equal(bytes, got, 5);
    follow(&b, 1, 0, points[1]); /* reached long ago */
    follow(&b, 1, 1, mark(&b, 1));
    finish(&b, 1);
    uint64_t never = points[4] + 1000;
    check_status(&b, b.driver->follow(b.queues[1], b.queues[0], never, &b.diagnostics), UIR_STATUS_INVALID_ARGUMENT);
    uint64_t theirs = mark(&other, 0); /* of another device */
    check_status(&b, b.driver->follow(b.queues[1], other.queues[0], theirs, &b.diagnostics),
                 UIR_STATUS_INVALID_ARGUMENT);
    finish(&b, 1);
    bench_end(&other);
    bench_end(&b);
}

/* Many rounds with more points than a queue keeps, and no allocation after the first two. */
static void test_steady(void **state) {
    float x[N], y[N];
    bench b;
    call c;
    bench_begin(&b, state);
    uir_region r[2] = {allocate(&b, sizeof x), allocate(&b, sizeof x)};
    call_begin(&b, &c, KERNEL_twice_and_one, sizes, r);
    uint64_t after = 0;
    for (int round = 0; round < 100; round++) {
        fill_numbers(x, round);
        put(&b, 1, r[0], x);
        follow(&b, 0, 1, mark(&b, 1));
        call_submit(&b, 0, &c);
        get(&b, 0, r[1], y);
        twice_and_one(x);
        assert_memory_equal(x, y, sizeof x);
        if (round == 1) after = b.memory.allocations;
    }
    assert_int_equal(b.memory.allocations, after);
    call_end(&b, &c);
    bench_end(&b);
}

/* A queue that is destroyed does what was submitted, also when another waits for it. */
static void test_destroy(void **state) {
    float x[N], y[N];
    bench b;
    uir_driver_queue *queue;
    uint64_t point;
    bench_begin(&b, state);
    uir_region r = allocate(&b, sizeof x);
    fill_numbers(x, 5);
    check_ok(&b, b.driver->create_queue(b.device, 1, NULL, &b.diagnostics, &queue));
    uir_driver_copy in = {.from = host_region(x, sizeof x), .to = r, .rows = 1, .row_bytes = sizeof x};
    check_ok(&b, b.driver->copy(queue, &in, &b.diagnostics));
    check_ok(&b, b.driver->mark(queue, &b.diagnostics, &point));
    check_ok(&b, b.driver->follow(b.queues[0], queue, point, &b.diagnostics));
    b.driver->destroy_queue(queue);
    b.driver->destroy_queue(NULL);
    get(&b, 0, r, y);
    assert_memory_equal(x, y, sizeof x);
    fill_numbers(x, 6);
    check_ok(&b, b.driver->create_queue(b.device, 1, NULL, &b.diagnostics, &queue));
    check_ok(&b, b.driver->copy(queue, &in, &b.diagnostics));
    b.driver->destroy_queue(queue);
    get(&b, 1, r, y);
    assert_memory_equal(x, y, sizeof x);
    bench_end(&b);
}

/* The device's clock counts up along a queue, and across a point that another queue follows. */
static void test_clock(void **state) {
    static unsigned char bytes[100000];
    double times[4], early[4];
    bool known[4];
    bench b;
    bench_begin(&b, state);
    if (b.driver->get_time) {
        uir_region x = allocate(&b, sizeof bytes);
        uint64_t points[4], foreign = 0;
        points[0] = mark(&b, 0);
        put(&b, 0, x, bytes);
        points[1] = mark(&b, 0);
        follow(&b, 1, 0, points[1]);
        copy(&b, 1, part_of(x, 0, 50000), part_of(x, 50000, 50000));
        foreign = mark(&b, 1);
        follow(&b, 0, 1, foreign);
        points[2] = mark(&b, 0);
        put(&b, 0, x, bytes);
        points[3] = mark(&b, 0);
        for (int i = 0; i < 4; i++) known[i] = b.driver->get_time(b.queues[0], points[i], &early[i]);
        finish(&b, 0);
        for (int i = 0; i < 4; i++) {
            assert_true(b.driver->get_time(b.queues[0], points[i], &times[i]));
            assert_true(!known[i] || early[i] == times[i]); /* a point that is not reached has no time */
            if (i) assert_true(times[i] >= times[i - 1]);
        }
        assert_true(times[1] > times[0] && times[2] > times[1] && times[3] > times[2]);
        assert_false(b.driver->get_time(b.queues[0], points[3] + 1000, &times[0]));
        uint64_t later = mark(&b, 2); /* of a queue without points in common, after the host has waited */
        finish(&b, 2);
        assert_true(b.driver->get_time(b.queues[2], later, &times[0]) && times[0] >= times[3]);
    }
    bench_end(&b);
}

AREA(order, cmocka_unit_test(test_one_queue), cmocka_unit_test(test_two_queues), cmocka_unit_test(test_diamond),
     cmocka_unit_test(test_chain), cmocka_unit_test(test_points), cmocka_unit_test(test_steady),
     cmocka_unit_test(test_destroy), cmocka_unit_test(test_clock));
