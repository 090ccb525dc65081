/* Where a run puts things and what it chooses: room that is used again, buffers of the caller that meet, tiles by their
 * cost, sizes that matter only where they are used. */
#include "tests/runtime/support.h"

#include "runtime/internal.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

static const char *const kernels = KERNEL_TWICE("twice", "0..100000") /**/
    "igraph @shared on cpu {\n"
    "  dim N in 0..100000\n"
    "  ptr %x : dram f32 [N] in 0\n"
    "  ptr %y : dram f32 [N] out 0\n"
    "  phase {\n"
    "    parallel p : ceildiv(N, 64) group\n"
    "    binary.add.f32 %y[p*64:64], %x[p*64:64], %x[p*64:64]\n"
    "  }\n"
    "}\n"
    "igraph @put on cpu {\n"
    "  dim N in 1..1000\n"
    "  ptr %old : dram f32 [N] in 0\n"
    "  ptr %row : dram f32 [1] in 1\n"
    "  ptr %new : dram f32 [N] out 0 tied %old\n"
    "  phase {\n"
    "    move.dram.dram.f32 %new[N-1:1], %row[0:1]\n"
    "  }\n"
    "}\n"
    "igraph @which on cpu {\n"
    "  dim N in 0..1000\n"
    "  tile t in 1..64\n"
    "  candidate t = 5 cost 3*N\n"
    "  candidate t = 6 cost N + 20\n"
    "  candidate t = 7 cost N + 20\n"
    "  candidate t = 8 when N >= 100 cost 0\n" TELL_TILE /**/
    "}\n"
    "igraph @share on cpu {\n"
    "  dim N in 0..1000\n"
    "  tile t in 1..64\n"
    "  candidate t = 5 cost 10 units N\n"
    "  candidate t = 6 cost 25 units ceildiv(N, 4)\n" TELL_TILE /**/
    "}\n"
    "igraph @append on cpu {\n"
    "  dim P in 0..1000, N in 0..1000\n"
    "  ptr %t : sram f32 [1]\n"
    "  ptr %past : dram f32 [P] in 0\n"
    "  ptr %new : dram f32 [N] in 1\n"
    "  ptr %all : dram f32 [P+N] out 0\n"
    "  phase {\n"
    "    parallel half : 2 group\n"
    "    if half == 0 {\n"
    "      loop r : P {\n"
    "        move.dram.dram.f32 %all[r:1], %past[r:1]\n"
    "      }\n"
    "    }\n"
    "    if half == 1 {\n"
    "      fill.f32 %t[0:1], 0\n"
    "      loop q : N {\n"
    "        move.dram.dram.f32 %all[P+q:1], %new[q:1]\n"
    "      }\n"
    "    }\n"
    "  }\n"
    "}\n"
    "igraph @spread on cpu {\n"
    "  ptr %past : dram f32 [4]:((2, 2)):((2, 1)) in 0\n"
    "  ptr %new : dram f32 [1] in 1\n"
    "  ptr %all : dram f32 [4]:((4, 1)):((2, 1)) out 0\n"
    "  ptr %one : dram f32 [1] out 1\n"
    "  phase {\n"
    "    parallel half : 2 group\n"
    "    if half == 0 {\n"
    "      loop r : 4 {\n"
    "        move.dram.dram.f32 %all[r:1], %past[r:1]\n"
    "      }\n"
    "    }\n"
    "    if half == 1 {\n"
    "      loop q : 1 {\n"
    "        move.dram.dram.f32 %one[q:1], %new[q:1]\n"
    "      }\n"
    "    }\n"
    "  }\n"
    "}\n"
    "igraph @works on cpu {\n"
    "  dim N in 0..100\n"
    "  ptr %x : dram f32 [N] in 0\n"
    "  ptr %y : dram f32 [N] out 0\n"
    "  ptr %a, %b, %c, %d, %e, %f, %g, %h : dram f32 [N] work\n"
    "  phase {\n"
    "    move.dram.dram.f32 %a[0:N], %x[0:N]\n"
    "    move.dram.dram.f32 %b[0:N], %a[0:N]\n"
    "    move.dram.dram.f32 %c[0:N], %b[0:N]\n"
    "    move.dram.dram.f32 %d[0:N], %c[0:N]\n"
    "    move.dram.dram.f32 %e[0:N], %d[0:N]\n"
    "    move.dram.dram.f32 %f[0:N], %e[0:N]\n"
    "    move.dram.dram.f32 %g[0:N], %f[0:N]\n"
    "    move.dram.dram.f32 %h[0:N], %g[0:N]\n"
    "    binary.add.f32 %y[0:N], %a[0:N], %h[0:N]\n"
    "  }\n"
    "}\n" KERNEL_TWICE("works", "101..1000") /**/
    "igraph @beyond on cpu {\n"
    "  dim N in 0..1000\n"
    "  ptr %x : dram f32 [N+1] in 0\n"
    "  ptr %y : dram f32 [N] out 0\n"
    "  phase {\n"
    "    move.dram.dram.f32 %y[0:N], %x[1:N]\n"
    "  }\n"
    "}\n";

#define MODULE "module opset 17\nsize N min 1\n"

static void begin(session *s, const char *text, const uir_runtime_options *options) {
    session_begin(s, text, kernels, options);
}

static const void *output(session *s, uint32_t index) {
    uir_runtime_output out;
    check_ok(&s->f, uir_runtime_get_output(s->r, index, &out));
    return out.data;
}

/* ---- room ---- */
/* A chain needs two places whatever its length: a gap is filled to its last byte. */
static void test_chain(void **state) {
    (void)state;
    session s;
    uint64_t bytes;
    begin(&s,
          MODULE "graph \"main\" (%x: f32[N]) {\n" GROUP_TWICE("c", "x", "1") GROUP_TWICE("d", "c", "2")
              GROUP_TWICE("e", "d", "3") GROUP_TWICE("f", "e", "4") GROUP_TWICE("g", "f", "5") "    return %g\n}\n",
          &(uir_runtime_options){.threads = 1});
    session_set(&s, 0, 1024, NULL);
    check_ok(&s.f, uir_runtime_plan(s.r, &bytes));
    assert_int_equal(bytes, 2 * 1024 * sizeof(float));
    session_end(&s);
}

/* The variant that wants most room decides how many places there may be, whichever is the last. */
static void test_works(void **state) {
    (void)state;
    static const int64_t sizes[] = {64, 500, 16};
    float x[500];
    session s;
    uint64_t bytes;
    begin(&s,
          MODULE "graph \"main\" (%x: f32[N]) {\n    %y: f32[N] = group(%x) {body = graph \"g\" (%a: f32[N]) {\n"
                 "        %b: f32[N] = add(%a, %a)\n        return %b\n"
                 "    }, sizes = [N], kernel = \"works\"}\n    return %y\n}\n",
          &(uir_runtime_options){.threads = 1});
    for (int i = 0; i < 500; i++) x[i] = (float)i;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        session_set(&s, 0, sizes[i], x);
        check_ok(&s.f, uir_runtime_plan(s.r, &bytes));
        assert_int_equal(bytes, sizes[i] > 100 ? 0 : 8 * sizes[i] * sizeof(float));
        check_ok(&s.f, uir_runtime_run(s.r));
        const float *y = output(&s, 0);
        for (int64_t k = 0; k < sizes[i]; k++) assert_true(y[k] == 2 * x[k]);
    }
    session_end(&s);
}

/* ---- buffers of the caller ---- */
/* A result that begins before or after an input in one buffer, which is read until the end. */
static void test_meeting(void **state) {
    (void)state;
    for (int first = 0; first <= 2; first += 2) {
        session s;
        float buffer[6] = {1, 2, 3, 4, 5, 6}, x[4] = {10, 20, 30, 40}, y[4];
        float *input = buffer + first, *result = buffer + 2 - first;
        begin(&s,
              MODULE "graph \"main\" (%x: f32[N], %y: f32[N]) {\n" GROUP_TWICE("c", "x", "1") "    return %c, %y\n}\n",
              &(uir_runtime_options){.threads = 1});
        memcpy(y, input, sizeof y);
        session_set(&s, 0, 4, x);
        session_set(&s, 1, 4, input);
        check_ok(&s.f, uir_runtime_bind_output(s.r, 0, result, sizeof x));
        check_ok(&s.f, uir_runtime_run(s.r));
        assert_memory_equal(output(&s, 1), y, sizeof y);
        for (int i = 0; i < 4; i++) assert_true(result[i] == 2 * x[i]);
        session_end(&s);
    }
}

/* A result goes on from an input in its place only when nothing reads the input afterwards. */
static void test_read_later(void **state) {
    (void)state;
    session s;
    float old[3] = {1, 2, 3}, row[1] = {7};
    int64_t one = 1;
    begin(&s,
          MODULE "graph \"main\" (%old: f32[N], %row: f32[1]) {\n"
                 "    %new: f32[N] = group(%old, %row) {body = graph \"p\" (%a: f32[N], %b: f32[1]) {\n"
                 "        %head: f32[N - 1] = slice(%a) {starts = [0], sizes = [N - 1], steps = [1]}\n"
                 "        %all: f32[N] = concat(%head, %b) {axis = 0}\n        return %all\n"
                 "    }, sizes = [N], kernel = \"put\"}\n" GROUP_TWICE("c", "old", "1") "    return %new, %c\n}\n",
          &(uir_runtime_options){.threads = 1});
    session_set(&s, 0, 3, old);
    check_ok(&s.f, uir_runtime_set_input(s.r, 1, UIR_DTYPE_F32, 1, &one, row));
    check_ok(&s.f, uir_runtime_bind_output(s.r, 0, old, sizeof old));
    check_ok(&s.f, uir_runtime_run(s.r));
    assert_memory_equal(output(&s, 1), ((float[]){2, 4, 6}), sizeof old);
    assert_memory_equal(old, ((float[]){1, 2, 7}), sizeof old);
    session_end(&s);
}

/* What appends to an input in the input's own buffer leaves the input's elements where they are. */
static void test_appended(void **state) {
    (void)state;
    session s;
    float buffer[5] = {1, 2, 3}, row[2] = {8, 9};
    uint64_t whole;
    begin(&s,
          MODULE "size P\ngraph \"main\" (%old: f32[P], %new: f32[N]) {\n"
                 "    %all: f32[N + P] = group(%old, %new) {body = graph \"g\" (%a: f32[P], %b: f32[N]) {\n"
                 "        %c: f32[N + P] = concat(%a, %b) {axis = 0}\n        return %c\n"
                 "    }, sizes = [P, N], kernel = \"append\"}\n    return %all\n}\n",
          &(uir_runtime_options){.threads = 1});
    session_set(&s, 0, 3, buffer);
    session_set(&s, 1, 2, row);
    check_ok(&s.f, uir_runtime_run(s.r));
    assert_memory_equal(output(&s, 0), ((float[]){1, 2, 3, 8, 9}), sizeof buffer);
    whole = uir_runtime_get_statistics(s.r).dram_bytes;
    check_ok(&s.f, uir_runtime_bind_output(s.r, 0, buffer, sizeof buffer));
    check_ok(&s.f, uir_runtime_run(s.r));
    assert_memory_equal(buffer, ((float[]){1, 2, 3, 8, 9}), sizeof buffer);
    assert_int_equal(whole - uir_runtime_get_statistics(s.r).dram_bytes, 2 * 3 * sizeof(float));
    session_end(&s);
}

/* The same strides are no same places where the modes that they are of have other sizes. */
static void test_spread(void **state) {
    (void)state;
    session s;
    float buffer[8] = {1, 2, 3, 4, 0, 0, 0, 0}, row[1] = {5};
    begin(&s,
          MODULE "graph \"main\" (%old: f32[4], %new: f32[1]) {\n"
                 "    %all: f32[8], %one: f32[1] = group(%old, %new) {body = graph \"g\" (%a: f32[4], %b: f32[1]) {\n"
                 "        %c: f32[8] = concat(%a, %a) {axis = 0}\n        return %c, %b\n"
                 "    }, sizes = [], kernel = \"spread\"}\n    return %all, %one\n}\n",
          &(uir_runtime_options){.threads = 1});
    session_set(&s, 0, 4, buffer);
    session_set(&s, 1, 1, row);
    check_ok(&s.f, uir_runtime_bind_output(s.r, 0, buffer, sizeof buffer));
    check_ok(&s.f, uir_runtime_run(s.r));
    for (int i = 0; i < 4; i++) assert_true(buffer[2 * i] == ((float[]){1, 3, 2, 4})[i]);
    session_end(&s);
}

/* ---- choices ---- */
/* Of the candidates whose conditions hold the one of least cost, the first of equals. */
static void test_cost(void **state) {
    (void)state;
    static const struct {
        int64_t size;
        int32_t tile;
    } cases[] = {{1, 5}, {9, 5}, {10, 5}, {11, 6}, {99, 6}, {100, 8}};
    session s;
    float x[100] = {0};
    begin(&s,
          MODULE "graph \"main\" (%x: f32[N]) {\n    %t: i32[1, 1] = group(%x) {body = graph \"g\" (%a: f32[N]) {\n"
                 "        %b: i32[1, 1] = iota() {axis = 1, dims = [1, 1], dtype = i32}\n        return %b\n"
                 "    }, sizes = [N], kernel = \"which\"}\n    return %t\n}\n",
          &(uir_runtime_options){.threads = 1});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        session_set(&s, 0, cases[i].size, x);
        check_ok(&s.f, uir_runtime_run(s.r));
        assert_int_equal(*(const int32_t *)output(&s, 0), cases[i].tile);
    }
    session_end(&s);
}

/* Threads share the units of a candidate: what is cheapest depends on how many there are. */
static void test_shared_cost(void **state) {
    (void)state;
    static const struct {
        uint32_t threads;
        int64_t size;
        int32_t tile;
    } cases[] = {{1, 1, 5}, {1, 2, 5}, {1, 3, 6}, {1, 8, 6}, {2, 8, 6}, {3, 8, 6}, {4, 8, 5}, {4, 12, 6}, {4, 100, 6}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        session s;
        float x[100] = {0};
        begin(&s,
              MODULE "graph \"main\" (%x: f32[N]) {\n    %t: i32[1, 1] = group(%x) {body = graph \"g\" (%a: f32[N]) {\n"
                     "        %b: i32[1, 1] = iota() {axis = 1, dims = [1, 1], dtype = i32}\n        return %b\n"
                     "    }, sizes = [N], kernel = \"share\"}\n    return %t\n}\n",
              &(uir_runtime_options){.threads = cases[i].threads});
        session_set(&s, 0, cases[i].size, x);
        check_ok(&s.f, uir_runtime_run(s.r));
        if (*(const int32_t *)output(&s, 0) != cases[i].tile) fail_msg("case %zu", i);
        session_end(&s);
    }
}

static void count_calls(void *user, uint32_t count, void (*task)(void *context, uint32_t i), void *context) {
    ++*(uint32_t *)user;
    for (uint32_t i = 0; i < count; i++) task(context, i);
}

/* What is too little work to wake anybody is done by the caller. */
static void test_little_work(void **state) {
    (void)state;
    static float x[4096];
    session s;
    uint32_t calls = 0;
    begin(&s,
          MODULE "graph \"main\" (%x: f32[N]) {\n    %y: f32[N] = group(%x) {body = graph \"g\" (%a: f32[N]) {\n"
                 "        %b: f32[N] = add(%a, %a)\n        return %b\n"
                 "    }, sizes = [N], kernel = \"shared\"}\n    return %y\n}\n",
          &(uir_runtime_options){.threads = 3, .parallel = count_calls, .parallel_user = &calls});
    session_set(&s, 0, 256, x);
    check_ok(&s.f, uir_runtime_run(s.r));
    assert_int_equal(calls, 0);
    session_set(&s, 0, 4096, x);
    check_ok(&s.f, uir_runtime_run(s.r));
    assert_int_equal(calls, 1);
    session_end(&s);
}

/* ---- threads ---- */
static void note_thread(void *context, uint32_t thread) {
    atomic_uint *greatest = context;
    uint32_t seen = atomic_load(greatest);
    while (thread > seen && !atomic_compare_exchange_weak(greatest, &seen, thread)) continue;
    nanosleep(&(struct timespec){0, 2000000}, NULL);
}

/* A task is for as many threads as it says, however many there are. */
static void test_few_threads(void **state) {
    (void)state;
    uir_allocator allocator = uir_allocator_system();
    uir_rt_pool *pool;
    atomic_uint greatest = 0;
    assert_int_equal(uir_rt_pool_create(&allocator, 5, &pool), UIR_STATUS_OK);
    for (int i = 0; i < 20; i++) uir_rt_pool_run(pool, 2, note_thread, &greatest);
    uir_rt_pool_destroy(pool);
    assert_in_range(greatest, 0, 1);
}

/* What a kernel reads of an operand must be there. */
static void test_beyond(void **state) {
    (void)state;
    session s;
    float x[4] = {1, 2, 3, 4};
    begin(&s,
          MODULE "graph \"main\" (%x: f32[N]) {\n    %t: f32[N] = group(%x) {body = graph \"g\" (%a: f32[N]) {\n"
                 "        %b: f32[N] = neg(%a)\n        return %b\n"
                 "    }, sizes = [N], kernel = \"beyond\"}\n    return %t\n}\n",
          &(uir_runtime_options){.threads = 1});
    session_set(&s, 0, 4, x);
    assert_int_equal(uir_runtime_run(s.r), UIR_STATUS_BAD_FILE);
    check_message(&s.f, "pointer 0 of the step's kernel requires 20 bytes, but has 16");
    session_end(&s);
}

/* Sizes that cannot be are an error in the branch that is taken alone. */
static void test_branch(void **state) {
    (void)state;
    session s;
    float x[3] = {1, 2, 3};
    bool take = false;
    begin(&s,
          MODULE /**/
          "graph \"main\" (%x: f32[N], %c: bool[]) {\n    %y: f32[N] = if(%c) {then = graph \"t\" () {\n"
          "    %s: f32[N - 5] = group(%x) {body = graph \"h\" (%p: f32[N]) {\n"
          "        %q: f32[N - 5] = slice(%p) {starts = [0], sizes = [N - 5], steps = [1]}\n        return %q\n"
          "    }, sizes = [N - 5], kernel = \"twice\"}\n"       /**/
          GROUP_TWICE("d", "x", "1")                            /**/
          "        return %d\n    }, else = graph \"e\" () {\n" /**/
          GROUP_TWICE("f", "x", "2")                            /**/
          "        return %f\n    }}\n    return %y\n}\n",
          &(uir_runtime_options){.threads = 1});
    session_set(&s, 0, 3, x);
    check_ok(&s.f, uir_runtime_set_input(s.r, 1, UIR_DTYPE_BOOL, 0, NULL, &take));
    check_ok(&s.f, uir_runtime_run(s.r));
    assert_memory_equal(output(&s, 0), ((float[]){2, 4, 6}), sizeof x);
    take = true;
    assert_int_not_equal(uir_runtime_run(s.r), UIR_STATUS_OK);
    session_end(&s);
}

/* An output that is a reshape to sizes which a later step tells. */
static void test_sized_later(void **state) {
    (void)state;
    session s;
    float x[6] = {1, 2, 3, 4, 5, 6};
    int64_t two = 2, one = 1;
    uir_runtime_output out;
    begin(&s,
          MODULE                                                               /**/
          "size K min 1 max 1000\ngraph \"main\" (%x: f32[N], %k: i64[1]) {\n" /**/
          GROUP_TWICE("d", "x", "1")                                           /**/
          "    bind_dims(%k) {dims = [K]}\n"
          "    %o: f32[K, floordiv(N, K)] = reshape(%d) {dims = [K, floordiv(N, K)]}\n    return %o\n}\n",
          &(uir_runtime_options){.threads = 1});
    session_set(&s, 0, 6, x);
    check_ok(&s.f, uir_runtime_set_input(s.r, 1, UIR_DTYPE_I64, 1, &one, &two));
    check_ok(&s.f, uir_runtime_run(s.r));
    check_ok(&s.f, uir_runtime_get_output(s.r, 0, &out));
    assert_int_equal(out.shape[0], 2);
    assert_int_equal(out.shape[1], 3);
    assert_memory_equal(out.data, ((float[]){2, 4, 6, 8, 10, 12}), sizeof x);
    session_end(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),       cmocka_unit_test(test_works),  cmocka_unit_test(test_meeting),
        cmocka_unit_test(test_read_later),  cmocka_unit_test(test_cost),   cmocka_unit_test(test_shared_cost),
        cmocka_unit_test(test_little_work), cmocka_unit_test(test_beyond), cmocka_unit_test(test_appended),
        cmocka_unit_test(test_spread),      cmocka_unit_test(test_branch), cmocka_unit_test(test_sized_later),
        cmocka_unit_test(test_few_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
