/* Launches: kernels, sizes, offsets, phases, workspaces. */
#include "tests/drivers/suite.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 70000 };
static float x[MOST], y[MOST], z[MOST], expected[MOST];

static void fill_numbers(bench *b, float *values, int64_t count) {
    for (int64_t i = 0; i < count; i++) values[i] = (float)draw(b, 200) - 100;
}

static uir_region given(bench *b, const void *data, size_t size) {
    uir_region region = allocate(b, size);
    put(b, 0, region, data);
    return region;
}

static void test_elementwise(void **state) {
    static const int64_t counts[] = {0, 1, 63, 64, 65, 1000, MOST};
    bench b;
    bench_begin(&b, state);
    for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
        int64_t n = counts[i];
        size_t size = (size_t)n * sizeof *x;
        fill_numbers(&b, x, n);
        fill_numbers(&b, y, n);
        uir_region r[3] = {given(&b, x, size), given(&b, y, size), allocate(&b, size)};
        call_once(&b, 0, KERNEL_add, &n, r);
        get(&b, 0, r[2], z);
        for (int64_t k = 0; k < n; k++) assert_true(z[k] == x[k] + y[k]);
    }
    bench_end(&b);
}

static void test_bytes(void **state) {
    static unsigned char from[5000], to[5000];
    bench b;
    bench_begin(&b, state);
    for (size_t i = 0; i < sizeof from; i++) from[i] = (unsigned char)draw(&b, 256);
    for (int64_t n = 1; n < 5000; n = n * 3 + 1) {
        uir_region r[2] = {given(&b, from, (size_t)n), allocate(&b, (size_t)n)};
        call_once(&b, 0, KERNEL_copy_bytes, &n, r);
        get(&b, 0, r[1], to);
        assert_memory_equal(from, to, (size_t)n);
    }
    bench_end(&b);
}

static void test_transpose(void **state) {
    enum { M = 37, N = 91 };
    static const int64_t sizes[] = {M, N};
    bench b;
    bench_begin(&b, state);
    fill_numbers(&b, x, M * N);
    uir_region r[2] = {given(&b, x, M * N * sizeof *x), allocate(&b, M * N * sizeof *x)};
    call_once(&b, 0, KERNEL_transpose, sizes, r);
    get(&b, 0, r[1], y);
    for (int i = 0; i < M; i++)
        for (int k = 0; k < N; k++) assert_true(y[k * M + i] == x[i * N + k]);
    bench_end(&b);
}

/* Indices out of bounds are clamped: no index reaches memory that is not the table's. */
static void test_gather(void **state) {
    enum { T = 7, V = 11, D = 13 };
    static const int64_t sizes[] = {T, V, D}, ids[T] = {3, 0, 10, -1, 11, INT64_MIN, INT64_MAX};
    bench b;
    bench_begin(&b, state);
    fill_numbers(&b, x, V * D);
    uir_region r[3] = {given(&b, ids, sizeof ids), given(&b, x, V * D * sizeof *x), allocate(&b, T * D * sizeof *x)};
    call_once(&b, 0, KERNEL_gather, sizes, r);
    get(&b, 0, r[2], y);
    for (int t = 0; t < T; t++) {
        int64_t row = ids[t] < 0 ? 0 : ids[t] >= V ? V - 1 : ids[t];
        assert_memory_equal(y + t * D, x + row * D, D * sizeof *x);
    }
    bench_end(&b);
}

static void test_pointers(void **state) {
    enum { N = 100 };
    static const int64_t sizes[] = {N};
    static float in[6][N];
    bench b;
    uir_region r[8];
    bench_begin(&b, state);
    for (int i = 0; i < 6; i++) {
        fill_numbers(&b, in[i], N);
        r[i] = given(&b, in[i], sizeof in[i]);
    }
    r[6] = allocate(&b, sizeof in[0]);
    r[7] = allocate(&b, sizeof in[0]);
    call_once(&b, 0, KERNEL_many_pointers, sizes, r);
    get(&b, 0, r[6], y);
    get(&b, 0, r[7], z);
    for (int i = 0; i < N; i++) {
        assert_true(y[i] == in[0][i] + 2 * in[1][i] + 4 * in[2][i]);
        assert_true(z[i] == in[3][i] + 2 * in[4][i] + 4 * in[5][i]);
    }
    bench_end(&b);
}

/* Dims and tiles come in order, all 64 bits of them, and anew with each preparation. */
static void test_sizes(void **state) {
    static const int64_t sizes[3][5] = {
        {1, 2, 3, 4, 5}, {0, 1ll << 40, (1ll << 32) + 7, 1ll << 33, 1ll << 40}, {9, 8, 7, 6, 5}};
    int64_t got[5];
    bench b;
    call c;
    bench_begin(&b, state);
    uir_region r = allocate(&b, sizeof got);
    call_begin(&b, &c, KERNEL_tell_sizes, sizes[0], &r);
    for (int i = 0; i < 3; i++) {
        memcpy(c.symbols, sizes[i], sizeof sizes[i]);
        call_prepare(&b, &c);
        call_submit(&b, 0, &c);
        get(&b, 0, r, got);
        assert_memory_equal(got, sizes[i], sizeof got);
    }
    call_end(&b, &c);
    bench_end(&b);
}

/* Operands anywhere in one buffer, at the device's alignment: neighbours are not written. */
static void test_offsets(void **state) {
    enum { N = 100, PIECES = 12 };
    static const int64_t sizes[] = {N};
    bench b;
    bench_begin(&b, state);
    uint64_t step = (N * sizeof *x + b.facts->alignment - 1) / b.facts->alignment * b.facts->alignment;
    assert_true(step * PIECES <= sizeof x);
    fill_numbers(&b, x, MOST);
    uir_region all = given(&b, x, (size_t)step * PIECES);
    memcpy(expected, x, sizeof expected);
    for (int round = 0; round < 20; round++) {
        uint64_t at[3] = {draw(&b, PIECES), draw(&b, PIECES), draw(&b, PIECES)};
        if (at[2] == at[0] || at[2] == at[1]) continue;
        uir_region r[3];
        for (int i = 0; i < 3; i++) r[i] = part_of(all, at[i] * step, N * sizeof *x);
        call_once(&b, 0, KERNEL_add, sizes, r);
        for (size_t i = 0; i < N; i++)
            expected[at[2] * step / sizeof *x + i] =
                expected[at[0] * step / sizeof *x + i] + expected[at[1] * step / sizeof *x + i];
    }
    get(&b, 0, all, y);
    assert_memory_equal(y, expected, (size_t)step * PIECES);
    bench_end(&b);
}

/* A prepared launch takes other regions each time. */
static void test_moves(void **state) {
    enum { N = 300 };
    static const int64_t sizes[] = {N};
    static float in[4][N];
    bench b;
    call c;
    uir_region from[4], to[4];
    bench_begin(&b, state);
    for (int i = 0; i < 4; i++) {
        fill_numbers(&b, in[i], N);
        from[i] = given(&b, in[i], sizeof in[i]);
        to[i] = allocate(&b, sizeof in[i]);
    }
    call_begin(&b, &c, KERNEL_twice_and_one, sizes, (uir_region[]){from[0], to[0]});
    for (int i = 0; i < 4; i++) { /* none is executed before the next is submitted */
        c.pointers[0] = from[i];
        c.pointers[1] = to[3 - i];
        call_submit(&b, 0, &c);
    }
    for (int i = 0; i < 4; i++) {
        get(&b, 0, to[3 - i], y);
        for (int k = 0; k < N; k++) assert_true(y[k] == 2 * in[i][k] + 1);
    }
    call_end(&b, &c);
    bench_end(&b);
}

/* Two launches of one kernel have sizes of their own. */
static void test_two_sizes(void **state) {
    static const int64_t small[] = {10}, large[] = {1000};
    bench b;
    call first, second;
    bench_begin(&b, state);
    fill_numbers(&b, x, 1000);
    uir_region r[2] = {given(&b, x, 1000 * sizeof *x), allocate(&b, 1000 * sizeof *x)};
    call_begin(&b, &first, KERNEL_twice_and_one, small, (uir_region[]){part_of(r[0], 0, 40), part_of(r[1], 0, 40)});
    call_begin(&b, &second, KERNEL_twice_and_one, large, r);
    for (int i = 0; i < 3; i++) {
        check_ok(&b, b.driver->fill(b.queues[0], &r[1], 0, &b.diagnostics));
        call_submit(&b, 0, &first);
        get(&b, 0, r[1], y);
        for (int k = 0; k < 1000; k++) assert_true(y[k] == (k < 10 ? 2 * x[k] + 1 : 0));
        call_submit(&b, 0, &second);
        get(&b, 0, r[1], y);
        for (int k = 0; k < 1000; k++) assert_true(y[k] == 2 * x[k] + 1);
    }
    call_end(&b, &first);
    call_end(&b, &second);
    bench_end(&b);
}

/* The first index of a phase is read by each launch. */
static void test_begins(void **state) {
    enum { N = 100 };
    static const int64_t sizes[] = {N};
    bench b;
    call c;
    bench_begin(&b, state);
    fill_numbers(&b, x, 2 * N);
    uir_region r[2] = {given(&b, x, 2 * N * sizeof *x), allocate(&b, 2 * N * sizeof *x)};
    call_begin(&b, &c, KERNEL_halves, sizes, r);
    for (int64_t begin = 2; begin >= 0; begin--) {
        check_ok(&b, b.driver->fill(b.queues[0], &r[1], 0, &b.diagnostics));
        c.begins[0] = begin;
        call_submit(&b, 0, &c);
        c.begins[0] = 0; /* was read */
        get(&b, 0, r[1], y);
        for (int i = 0; i < 2 * N; i++) assert_true(y[i] == (i / N >= begin ? x[i] + 1 : 0));
    }
    call_end(&b, &c);
    int64_t few = 100; /* of the second phase of two, nothing is left */
    float sum = 0, untouched = 77;
    uir_region of_sum[3] = {part_of(r[0], 0, 400), given(&b, &untouched, 4), allocate(&b, 64)};
    for (int64_t i = 0; i < few; i++) sum += x[i];
    call_begin(&b, &c, KERNEL_sum_in_phases, &few, of_sum);
    c.begins[1] = 1;
    call_submit(&b, 0, &c);
    get(&b, 0, of_sum[1], &untouched);
    assert_true(untouched == 77);
    c.begins[1] = 0;
    call_submit(&b, 0, &c);
    get(&b, 0, of_sum[1], &untouched);
    assert_true(untouched == sum);
    call_end(&b, &c);
    bench_end(&b);
}

/* The second phase sees all of the first; launches of a queue share a workspace. */
static void test_phases(void **state) {
    static const int64_t counts[] = {1, 64, 65, 5000, MOST};
    bench b;
    call calls[2];
    float sums[2];
    bench_begin(&b, state);
    for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
        int64_t n = counts[i];
        size_t size = (size_t)n * sizeof *x, parts = (size_t)(n + 63) / 64 * sizeof *x;
        float sum = 0;
        for (int64_t k = 0; k < n; k++) {
            x[k] = (float)draw(&b, 16);
            sum += x[k];
        }
        uir_region in = given(&b, x, size), out[2] = {allocate(&b, 4), allocate(&b, 4)};
        for (int k = 0; k < 2; k++)
            call_begin(&b, &calls[k], KERNEL_sum_in_phases, &n, (uir_region[]){in, out[k], allocate(&b, parts)});
        calls[1].launch.workspace = calls[0].launch.workspace;
        for (int round = 0; round < 3; round++) {
            for (int k = 0; k < 2; k++) check_ok(&b, b.driver->fill(b.queues[0], &out[k], 0, &b.diagnostics));
            for (int k = 0; k < 2; k++) call_submit(&b, 0, &calls[k]);
            for (int k = 0; k < 2; k++) get(&b, 0, out[k], &sums[k]);
            assert_true(sums[0] == sum && sums[1] == sum);
        }
        for (int k = 0; k < 2; k++) call_end(&b, &calls[k]);
    }
    bench_end(&b);
}

/* Two queues with a workspace each. */
static void test_workspaces(void **state) {
    static const int64_t sizes[] = {MOST};
    bench b;
    call calls[2];
    float sums[2], sum = 0;
    bench_begin(&b, state);
    for (int i = 0; i < MOST; i++) sum += x[i] = (float)draw(&b, 8);
    uir_region in = given(&b, x, sizeof x), out[2] = {allocate(&b, 4), allocate(&b, 4)};
    finish(&b, 0);
    for (int k = 0; k < 2; k++)
        call_begin(&b, &calls[k], KERNEL_sum_in_phases, sizes,
                   (uir_region[]){in, out[k], allocate(&b, (MOST + 63) / 64 * sizeof *x)});
    for (int round = 0; round < 5; round++) {
        for (uint32_t k = 0; k < 2; k++) call_submit(&b, k, &calls[k]);
        for (uint32_t k = 0; k < 2; k++) get(&b, k, out[k], &sums[k]);
        assert_true(sums[0] == sum && sums[1] == sum);
    }
    for (int k = 0; k < 2; k++) call_end(&b, &calls[k]);
    bench_end(&b);
}

AREA(launch, cmocka_unit_test(test_elementwise), cmocka_unit_test(test_bytes), cmocka_unit_test(test_transpose),
     cmocka_unit_test(test_gather), cmocka_unit_test(test_pointers), cmocka_unit_test(test_sizes),
     cmocka_unit_test(test_offsets), cmocka_unit_test(test_moves), cmocka_unit_test(test_two_sizes),
     cmocka_unit_test(test_begins), cmocka_unit_test(test_phases), cmocka_unit_test(test_workspaces));
