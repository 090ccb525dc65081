/* Faults: what a driver refuses, and what is left after a request has failed. */
#include "tests/drivers/suite.h"

#include <stdio.h>
#include <string.h>

enum { N = 256 };
static const int64_t sizes[] = {N};

static void test_code(void **state) {
    bench b;
    uir_driver_code *code = NULL;
    const uir_driver_kernel *kernel = NULL;
    bench_begin(&b, state);
    uir_driver_image unknown = {"no such format", "text", 4};
    check_status(&b, b.driver->load(b.device, &unknown, &b.diagnostics, &code), UIR_STATUS_UNSUPPORTED);
    assert_null(code);
    /* A kernel that is not as it is described. */
    for (int i = 0; i < 4; i++) {
        uir_kernel_entry entry = b.subject->entries[KERNEL_add];
        entry.dim_count += i == 0;
        entry.tile_count += i == 1;
        entry.pointer_count -= i == 2;
        entry.phase_count += i == 3;
        uir_status status = b.driver->find(b.code, &entry, &b.diagnostics, &kernel);
        if (status != UIR_STATUS_OK) { /* a format that does not tell is believed */
            check_status(&b, status, UIR_STATUS_BAD_FILE);
            assert_null(kernel);
        }
    }
    bench_end(&b);
}

/* An image that is cut off or changed gives an error, or kernels that do no harm. */
static void test_damaged(void **state) {
    static char bytes[1 << 16];
    bench b;
    bench_begin(&b, state);
    const uir_driver_image *whole = &b.subject->image;
    assert_true(whole->size <= sizeof bytes);
    for (int round = 0; round < 16; round++) {
        uir_driver_image image = {whole->format, bytes, whole->size};
        uir_driver_code *code = NULL;
        memcpy(bytes, whole->bytes, whole->size);
        if (round % 2) image.size = (size_t)draw(&b, whole->size);
        for (int i = 0; i < 5; i++) bytes[draw(&b, whole->size)] ^= (char)(1 + draw(&b, 255));
        uir_status status = b.driver->load(b.device, &image, &b.diagnostics, &code);
        for (int k = 0; k < DRIVER_KERNELS && status == UIR_STATUS_OK; k++) {
            const uir_driver_kernel *kernel;
            uir_status found = b.driver->find(code, &b.subject->entries[k], &b.diagnostics, &kernel);
            if (found != UIR_STATUS_OK) assert_non_null(b.diagnostics.first);
            uir_diagnostics_clear(&b.diagnostics);
        }
        if (status != UIR_STATUS_OK) assert_non_null(b.diagnostics.first);
        uir_diagnostics_clear(&b.diagnostics);
        b.driver->unload(b.device, code);
    }
    bench_end(&b);
}

static void expect_refused(bench *b, call *c) {
    check_status(b, b->driver->launch(b->queues[0], &c->launch, 0, 1, &b->diagnostics), UIR_STATUS_INVALID_ARGUMENT);
}

/* Launches that reach beyond what they were given. */
static void test_bad_launches(void **state) {
    float x[N];
    bench b, other;
    call c;
    bench_begin(&b, state);
    bench_begin(&other, state);
    uir_region r[2] = {allocate(&b, sizeof x + b.facts->alignment), allocate(&b, sizeof x)},
               theirs = allocate(&other, sizeof x);
    r[0] = part_of(r[0], 0, sizeof x);
    for (int i = 0; i < N; i++) x[i] = (float)i;
    put(&b, 0, r[0], x);
    check_ok(&b, b.driver->fill(b.queues[0], &r[1], 0, &b.diagnostics));
    call_begin(&b, &c, KERNEL_twice_and_one, sizes, r);
    c.pointers[1].size--;
    expect_refused(&b, &c);
    c.pointers[1] = r[1];
    c.pointers[1].offset = 1ull << 40;
    expect_refused(&b, &c);
    c.pointers[1] = r[1];
    c.pointers[1].size = UINT64_MAX;
    expect_refused(&b, &c);
    c.pointers[1] = theirs;
    expect_refused(&b, &c);
    c.pointers[1] = r[1];
    if (!b.facts->shares_memory) {
        c.pointers[0] = host_region(x, sizeof x);
        expect_refused(&b, &c);
        c.pointers[0] = r[0];
    }
    if (b.facts->alignment > 4) {
        c.pointers[0].offset = b.facts->alignment / 2;
        expect_refused(&b, &c);
        c.pointers[0] = r[0];
    }
    check_status(&b, b.driver->launch(b.queues[0], &c.launch, 1, 1, &b.diagnostics), UIR_STATUS_INVALID_ARGUMENT);
    check_status(&b, b.driver->launch(b.queues[0], &c.launch, 0, 2, &b.diagnostics), UIR_STATUS_INVALID_ARGUMENT);
    get(&b, 0, r[1], x); /* nothing was done, and the queue goes on */
    for (int i = 0; i < N; i++) assert_true(x[i] == 0);
    call_submit(&b, 0, &c);
    get(&b, 0, r[1], x);
    for (int i = 0; i < N; i++) assert_true(x[i] == (float)(2 * i + 1));
    b.driver->retire(b.device, &c.launch);
    expect_refused(&b, &c); /* not prepared any more */
    call_prepare(&b, &c);
    call_submit(&b, 0, &c);
    finish(&b, 0);
    call_end(&b, &c);
    bench_end(&other);
    bench_end(&b);
}

/* Preparations whose counts or regions do not fit the kernel, or whose kernel is on another device. */
static void test_bad_preparations(void **state) {
    bench b, other;
    call c;
    bench_begin(&b, state);
    bench_begin(&other, state);
    uir_region r[2] = {allocate(&b, N * sizeof(float)), allocate(&b, N * sizeof(float))};
    call_begin(&b, &c, KERNEL_twice_and_one, sizes, r);
    for (int i = 0; i < 5; i++) {
        uir_driver_launch launch = c.launch;
        launch.dim_count += i == 0;
        launch.tile_count += i == 1;
        launch.pointer_count -= i == 2;
        launch.phase_count += i == 3;
        if (i == 4) launch.kernel = other.kernels[KERNEL_twice_and_one];
        check_status(&b, b.driver->prepare(b.device, &launch, &b.diagnostics), UIR_STATUS_INVALID_ARGUMENT);
        assert_false(launch.is_prepared);
    }
    if (!b.facts->is_harmful) { /* its code would reach what is behind */
        c.needed[1]--;
        check_status(&b, b.driver->prepare(b.device, &c.launch, &b.diagnostics), UIR_STATUS_INVALID_ARGUMENT);
        expect_refused(&b, &c);
        call_prepare(&b, &c);
    }
    call_end(&b, &c);
    bench_end(&other);
    bench_end(&b);
}

static void test_bad_workspace(void **state) {
    float x[N] = {0};
    bench b;
    call c;
    bench_begin(&b, state);
    uir_region in = allocate(&b, sizeof x);
    put(&b, 0, in, x);
    call_begin(&b, &c, KERNEL_sum_in_phases, sizes, (uir_region[]){in, allocate(&b, 4), allocate(&b, sizeof x)});
    if (c.launch.workspace_size) {
        uir_region workspace = c.launch.workspace;
        c.launch.workspace.size = c.launch.workspace_size - 1;
        expect_refused(&b, &c);
        c.launch.workspace = (uir_region){.buffer = NULL};
        expect_refused(&b, &c);
        c.launch.workspace = workspace;
    }
    call_submit(&b, 0, &c);
    finish(&b, 0);
    call_end(&b, &c);
    bench_end(&b);
}

/* A request that fails is named; what stands behind it is not done, in this queue and in those that follow it. Others
 * go on, and the device with them. */
static void test_failing(void **state) {
    float x[N] = {0}, y[N];
    bench b;
    call c;
    uir_driver_failure failure;
    uint64_t point, followed;
    bench_begin(&b, state);
    if (!b.subject->checks_zeros) {
        print_message("no launch of this driver can be made to fail\n");
        bench_end(&b);
        skip();
    }
    uir_region in = allocate(&b, sizeof x), kept = allocate(&b, sizeof x);
    put(&b, 0, in, x);
    check_ok(&b, b.driver->fill(b.queues[0], &kept, 0, &b.diagnostics));
    finish(&b, 0);
    call_begin(&b, &c, KERNEL_sum_in_phases, sizes, (uir_region[]){in, allocate(&b, 4), allocate(&b, sizeof x)});
    check_ok(&b, b.driver->fill(b.queues[0], &c.launch.workspace, 1, &b.diagnostics));
    finish(&b, 0);
    c.launch.step = 1234;
    check_ok(&b, b.driver->launch(b.queues[0], &c.launch, 0, 1, &b.diagnostics));
    uir_status status = b.driver->mark(b.queues[0], &b.diagnostics, &point); /* may have failed by now */
    if (status == UIR_STATUS_OK) status = b.driver->follow(b.queues[1], b.queues[0], point, &b.diagnostics);
    bool follows = status == UIR_STATUS_OK;
    uir_driver_copy spoil = {
        .from = host_region(memset(y, 5, sizeof y), sizeof y), .to = kept, .rows = 1, .row_bytes = sizeof y};
    if (follows) status = b.driver->copy(b.queues[1], &spoil, &b.diagnostics);
    if (follows && status == UIR_STATUS_OK) status = b.driver->mark(b.queues[1], &b.diagnostics, &followed);
    if (follows && status == UIR_STATUS_OK) {
        assert_int_equal(b.driver->wait(b.queues[1], followed, NULL, &failure), UIR_STATUS_DEVICE_FAILED);
        assert_int_equal(failure.step, 1234);
    }
    uir_diagnostics_clear(&b.diagnostics);
    assert_int_equal(b.driver->wait(b.queues[0], 1, NULL, &failure), UIR_STATUS_DEVICE_FAILED);
    assert_int_equal(failure.step, 1234);
    assert_false(failure.is_lost);
    assert_true(*failure.text != 0);
    check_status(&b, b.driver->copy(b.queues[0], &spoil, &b.diagnostics), UIR_STATUS_DEVICE_FAILED);
    check_status(&b, b.driver->fill(b.queues[0], &kept, 1, &b.diagnostics), UIR_STATUS_DEVICE_FAILED);
    check_status(&b, b.driver->mark(b.queues[0], &b.diagnostics, &point), UIR_STATUS_DEVICE_FAILED);
    get(&b, 2, kept, y);
    for (int i = 0; i < N; i++) assert_true(y[i] == 0);
    b.driver->destroy_queue(b.queues[0]);
    check_ok(&b, b.driver->create_queue(b.device, 8, NULL, &b.diagnostics, &b.queues[0]));
    check_ok(&b, b.driver->fill(b.queues[0], &c.launch.workspace, 0, &b.diagnostics));
    call_submit(&b, 0, &c);
    finish(&b, 0);
    call_end(&b, &c);
    bench_end(&b);
}

/* A wait ends when the flag is set; the requests are done all the same. */
static void test_cancel(void **state) {
    static const int64_t some[] = {1000};
    volatile bool cancel = true;
    float x = 5, y = 0;
    bench b;
    uir_driver_failure failure;
    call c;
    bench_begin(&b, state);
    uir_region r[2] = {allocate(&b, 4), allocate(&b, 4)};
    put(&b, 0, r[0], &x);
    call_begin(&b, &c, KERNEL_count, some, r);
    call_submit(&b, 0, &c);
    copy(&b, 0, host_region(&y, 4), r[1]);
    uint64_t point = mark(&b, 0);
    bool is_pending = b.facts->is_simulated && y == 0; /* nothing is executed between two calls */
    uir_status status = b.driver->wait(b.queues[0], point, &cancel, &failure);
    if (is_pending || status != UIR_STATUS_OK) /* else it was done already */
        assert_int_equal(status, UIR_STATUS_CANCELLED);
    cancel = false;
    assert_int_equal(b.driver->wait(b.queues[0], point, &cancel, &failure), UIR_STATUS_OK);
    assert_true(y == 1005);
    call_end(&b, &c);
    bench_end(&b);
}

/* A launch ends when its flag is set, where the device's kernels are those of a format that looks at it. */
static void test_interrupt(void **state) {
    static const int64_t some[] = {100000};
    volatile bool cancel = true;
    float x = 5;
    bench b;
    uir_driver_failure failure;
    uint64_t point;
    call c;
    bench_begin(&b, state);
    uir_region r[2] = {allocate(&b, 4), allocate(&b, 4)};
    put(&b, 0, r[0], &x);
    finish(&b, 0);
    call_begin(&b, &c, KERNEL_count, some, r);
    c.launch.cancel = &cancel;
    call_prepare(&b, &c);
    if (b.subject->format_count) {
        call_submit(&b, 0, &c);
        uir_status status = b.driver->mark(b.queues[0], &b.diagnostics, &point); /* may have failed by now */
        if (status == UIR_STATUS_OK) status = b.driver->wait(b.queues[0], point, NULL, &failure);
        assert_int_equal(status, UIR_STATUS_DEVICE_FAILED);
    }
    cancel = false;
    call_submit(&b, 1, &c);
    get(&b, 1, r[1], &x);
    assert_true(x == 100005);
    call_end(&b, &c);
    bench_end(&b);
}

/* A device that is given up takes no request, ends each wait, and is destroyed without one. */
static void test_given_up(void **state) {
    static const int64_t some[] = {1000};
    const volatile bool cancel = true;
    float x = 5;
    bench b;
    uir_driver_failure failure;
    uint64_t point, other;
    call c;
    bench_begin(&b, state);
    uir_region r[2] = {allocate(&b, 4), allocate(&b, 4)};
    uir_driver_copy again = {.from = r[0], .to = r[1], .rows = 1, .row_bytes = 4};
    put(&b, 0, r[0], &x);
    call_begin(&b, &c, KERNEL_count, some, r);
    call_submit(&b, 0, &c);
    point = mark(&b, 0);
    other = mark(&b, 1);
    bool is_pending = b.facts->is_simulated && /* nothing is executed between two calls */
                      b.driver->wait(b.queues[0], point, &cancel, &failure) == UIR_STATUS_CANCELLED;
    b.driver->give_up(b.device);
    b.driver->give_up(b.device);
    check_status(&b, b.driver->launch(b.queues[0], &c.launch, 0, 1, &b.diagnostics), UIR_STATUS_DEVICE_FAILED);
    check_status(&b, b.driver->copy(b.queues[1], &again, &b.diagnostics), UIR_STATUS_DEVICE_FAILED);
    check_status(&b, b.driver->fill(b.queues[1], &r[1], 1, &b.diagnostics), UIR_STATUS_DEVICE_FAILED);
    check_status(&b, b.driver->mark(b.queues[2], &b.diagnostics, &other), UIR_STATUS_DEVICE_FAILED);
    check_status(&b, b.driver->follow(b.queues[2], b.queues[0], point, &b.diagnostics), UIR_STATUS_DEVICE_FAILED);
    uir_status status = b.driver->wait(b.queues[0], point, NULL, &failure);
    if (is_pending || status != UIR_STATUS_OK) { /* else it was reached before */
        assert_int_equal(status, UIR_STATUS_DEVICE_FAILED);
        assert_true(failure.is_lost && *failure.text);
    }
    call_end(&b, &c);
    bench_end(&b);
}

AREA(fault, cmocka_unit_test(test_code), cmocka_unit_test(test_damaged), cmocka_unit_test(test_bad_launches),
     cmocka_unit_test(test_bad_preparations), cmocka_unit_test(test_bad_workspace), cmocka_unit_test(test_failing),
     cmocka_unit_test(test_cancel), cmocka_unit_test(test_interrupt), cmocka_unit_test(test_given_up));
