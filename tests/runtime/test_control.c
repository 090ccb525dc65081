/* Control flow and sizes that data gives: every plan against the graph's interpreter, at several sizes of one package.
 */
#include "tests/runtime/support.h"

#include <math.h>
#include <string.h>

static const char *const kernels = KERNEL_TWICE("twice", "0..100000") /**/
    "igraph @add on cpu {\n"
    "  dim N in 0..100000\n"
    "  ptr %a : dram f32 [N] in 0\n"
    "  ptr %b : dram f32 [N] in 1\n"
    "  ptr %y : dram f32 [N] out 0\n"
    "  phase {\n"
    "    binary.add.f32 %y[0:N], %a[0:N], %b[0:N]\n"
    "  }\n"
    "}\n"
    "igraph @join on cpu {\n"
    "  dim N in 0..100000\n"
    "  ptr %x : dram f32 [N] in 0\n"
    "  ptr %y : dram f32 [2*N] out 0\n"
    "  phase {\n"
    "    move.dram.dram.f32 %y[0:N], %x[0:N]\n"
    "    move.dram.dram.f32 %y[N:N], %x[0:N]\n"
    "  }\n"
    "}\n"
    "igraph @less on cpu {\n"
    "  ptr %a : dram i64 [1] in 0\n"
    "  ptr %b : dram i64 [1] in 1\n"
    "  ptr %y : dram bool [1] out 0\n"
    "  phase {\n"
    "    compare.lt.i64 %y, %a, %b\n"
    "  }\n"
    "}\n";

static const char *const trips_module =
    "module opset 17\n"
    "size N\n"
    "size T\n"
    "constant %n: i64[] = [5]\n"
    "graph \"main\" (%x: f32[N]) {\n"
    "    %last: f32[N], %rows: f32[T, N] = loop(%n, none, %x) {body = graph \"b\" (%i: i64[], %c: bool[], %v: f32[N]) "
    "{\n"                      /**/
    GROUP_TWICE("w", "v", "1") /**/
    "        %u: f32[N] = group(%w, %x) {body = graph \"g2\" (%a2: f32[N], %b2: f32[N]) {\n"
    "        %r2: f32[N] = add(%a2, %b2)\n"
    "        return %r2\n"
    "    }, sizes = [N], kernel = \"add\"}\n"
    "        return %c, %u, %w\n"
    "    }}\n"
    "    return %last, %rows\n"
    "}\n";

static const char *const condition_module =
    "module opset 17\n"
    "size N\n"
    "size T\n"
    "graph \"main\" (%x: f32[N], %limit: i64[]) {\n"
    "    %last: f32[N], %rows: i64[T] = loop(none, none, %x) {body = graph \"b\" (%i: i64[], %c: bool[], %v: f32[N]) "
    "{\n"                      /**/
    GROUP_TWICE("w", "v", "3") /**/
    "        %go: bool[] = group(%i, %limit) {body = graph \"g4\" (%a4: i64[], %b4: i64[]) {\n"
    "        %r4: bool[] = lt(%a4, %b4)\n"
    "        return %r4\n"
    "    }, sizes = [], kernel = \"less\"}\n"
    "        return %go, %w, %i\n"
    "    }}\n"
    "    return %last, %rows\n"
    "}\n";

static const char *const zero_module = /**/
    "module opset 17\n"
    "size N\n"
    "size T\n"
    "constant %no: bool[] = [0]\n"
    "graph \"main\" (%x: f32[N], %n: i64[]) {\n"
    "    %last: f32[N], %rows: f32[T, N] = loop(%n, %no, %x) {body = graph \"b\" "
    "(%i: i64[], %c: bool[], %v: f32[N]) {\n" /**/
    GROUP_TWICE("w", "v", "5")                /**/
    "        return %c, %w, %w\n"
    "    }}\n"                    /**/
    GROUP_TWICE("z", "last", "6") /**/
    "    return %z, %rows, %last\n"
    "}\n";

static const char *const grows_module =
    "module opset 17\n"
    "size N\n"
    "size K\n"
    "size L\n"
    "graph \"main\" (%x: f32[N], %n: i64[]) {\n"
    "    %last: f32[L] = loop(%n, none, %x) {body = graph \"b\" (%i: i64[], %c: bool[], %v: f32[K]) {\n"
    "        %w: f32[2*K] = group(%v) {body = graph \"g7\" (%a7: f32[K]) {\n"
    "        %r7: f32[2*K] = concat(%a7, %a7) {axis = 0}\n"
    "        return %r7\n"
    "    }, sizes = [K], kernel = \"join\"}\n"
    "        return %c, %w\n"
    "    }}\n"                            /**/
    GROUP_TWICE_OF("L", "z", "last", "8") /**/
    "    return %z\n"
    "}\n";

static const char *const nested_module = /**/
    "module opset 17\n"
    "size N\n"
    "size T\n"
    "size U\n"
    "constant %n: i64[] = [3]\n"
    "constant %m: i64[] = [2]\n"
    "graph \"main\" (%x: f32[N]) {\n" /**/
    GROUP_TWICE("y", "x", "9")        /**/
    "    %last: f32[N], %rows: f32[T, 2, N] = loop(%n, none, %x) {body = graph \"b\" (%i: i64[], %c: bool[], %v: "
    "f32[N]) {\n"               /**/
    GROUP_TWICE("p", "v", "10") /**/
    "        %last2: f32[N], %rows2: f32[U, N] = loop(%m, none, %p) {body = graph \"b2\" (%i2: i64[], %c2: bool[], "
    "%v2: f32[N]) {\n"
    "            %w2: f32[N] = group(%v2, %y) {body = graph \"g11\" (%a11: f32[N], %b11: f32[N]) {\n"
    "        %r11: f32[N] = add(%a11, %b11)\n"
    "        return %r11\n"
    "    }, sizes = [N], kernel = \"add\"}\n"
    "            %u2: f32[N] = group(%w2, %p) {body = graph \"g12\" (%a12: f32[N], %b12: f32[N]) {\n"
    "        %r12: f32[N] = add(%a12, %b12)\n"
    "        return %r12\n"
    "    }, sizes = [N], kernel = \"add\"}\n"
    "            return %c2, %u2, %w2\n"
    "        }}\n"
    "        %fixed: f32[2, N] = reshape(%rows2) {dims = [2, N]}\n"
    "        return %c, %last2, %fixed\n"
    "    }}\n"
    "    return %last, %rows, %y\n"
    "}\n";

static const char *const branch_module = /**/
    "module opset 17\n"
    "size N\n"
    "size K\n"
    "graph \"main\" (%x: f32[N], %c: bool[]) {\n" /**/
    GROUP_TWICE("before", "x", "13")              /**/
    "    %y: f32[K], %z: f32[N] = if(%c) {then = graph \"t\" () {\n"
    "        %w: f32[2*N] = group(%x) {body = graph \"g14\" (%a14: f32[N]) {\n"
    "        %r14: f32[2*N] = concat(%a14, %a14) {axis = 0}\n"
    "        return %r14\n"
    "    }, sizes = [N], kernel = \"join\"}\n"
    "        return %w, %x\n"
    "    }, else = graph \"e\" () {\n" /**/
    GROUP_TWICE("u", "before", "15")   /**/
    "        return %u, %before\n"
    "    }}\n"                          /**/
    GROUP_TWICE_OF("K", "q", "y", "16") /**/
    "    return %q, %z\n"
    "}\n";

static const char *const host_module =
    "module opset 17\n"
    "size N\n"
    "size F\n"
    "graph \"main\" (%x: f32[N]) {\n"
    "    %i: i64[1, F] = non_zero(%x)\n"
    "    %v: f32[3], %j: i64[3] = top_k(%x) {axis = 0, k = [3], largest = 1, sorted = 1}\n"
    "    %n: i64[2] = dim_values() {dims = [F, N + 2*F], scalar = 0, dtype = i64}\n"
    "    return %i, %v, %j, %n\n"
    "}\n";

/* Every attribute away from what it would be if it were lost. */
static const char *const attributes_module =
    "module opset 17\n"
    "graph \"main\" (%x: f32[12]) {\n"
    "    %m: f32[4, 3] = reshape(%x) {dims = [4, 3]}\n"
    "    %a: f32[2, 3], %i: i64[2, 3] = top_k(%m) {axis = 0, k = [2], largest = 0, sorted = 1}\n"
    "    %b: f32[4, 1], %j: i64[4, 1] = top_k(%m) {axis = 1, k = [1], largest = 1, sorted = 1}\n"
    "    return %a, %i, %b, %j\n"
    "}\n";

/* What is given and what is not; either way of saying boxes; a limit below and above what stays. */
static const char *const boxes_module =
    "module opset 17\n"
    "size N\n"
    "size A\n"
    "size B\n"
    "size C\n"
    "size D\n"
    "constant %few: i64[] = [2]\n"
    "constant %many: i64[] = [9000000000000000000]\n"
    "constant %less: i64[] = [-1]\n"
    "constant %far: f32[] = [0.4]\n"
    "constant %least: f32[] = [0.25]\n"
    "graph \"main\" (%b: f32[2, N, 4], %s: f32[2, 3, N]) {\n"
    "    %a: i64[A, 3] = non_max_suppression(%b, %s, %few, %far, %least) {center = 0}\n"
    "    %c: i64[B, 3] = non_max_suppression(%b, %s, %many, %far, none) {center = 1}\n"
    "    %d: i64[C, 3] = non_max_suppression(%b, %s, %many, none, %least) {center = 0}\n"
    "    %e: i64[D, 3] = non_max_suppression(%b, %s, %less) {center = 0}\n"
    "    %n: i64[4] = dim_values() {dims = [A, B, C, D], scalar = 0, dtype = i64}\n"
    "    return %a, %c, %d, %e, %n\n"
    "}\n";

static const char *const bind_module = /**/
    "module opset 17\n"
    "size N\n"
    "size K min 1 max 1000\n"
    "graph \"main\" (%x: f32[N], %k: i64[1]) {\n"
    "    bind_dims(%k) {dims = [K]}\n"
    "    %y: f32[K, floordiv(N, K)] = reshape(%x) {dims = [K, floordiv(N, K)]}\n"
    "    %f: f32[K*floordiv(N, K)] = reshape(%y) {dims = [K*floordiv(N, K)]}\n" /**/
    GROUP_TWICE_OF("K*floordiv(N, K)", "z", "f", "17")                          /**/
    "    %o: f32[K, floordiv(N, K)] = reshape(%z) {dims = [K, floordiv(N, K)]}\n"
    "    return %o, %y\n"
    "}\n";

static float numbers[4096];

static array vector(int64_t count) {
    return (array){UIR_DTYPE_F32, 1, {count}, numbers};
}
static array integer(const int64_t *value, uint32_t rank) {
    return (array){UIR_DTYPE_I64, rank, {1}, value};
}

typedef struct counted {
    fixture f;
    counting c;
    uir_package *package;
    uir_runtime *r;
} counted;

static void begin(counted *s, const char *module_text) {
    fixture_init(&s->f);
    counting_init(&s->c);
    check_ok(&s->f, fixture_build(&s->f, module_text, kernels));
    check_ok(&s->f, fixture_open(&s->f, &s->c.allocator, &s->package));
    check_ok(&s->f, uir_runtime_create(s->package, &(uir_runtime_options){.threads = 2}, &s->c.allocator,
                                       &s->f.diagnostics, &s->r));
}

static void end(counted *s) {
    uir_runtime_destroy(s->r);
    uir_package_close(s->package);
    assert_int_equal(s->c.bytes, 0);
    fixture_deinit(&s->f);
}

/* Runs it until nothing is left to grow, then holds that it allocates no more. */
static void compare(counted *s, const array *inputs, uint32_t count) {
    for (int i = 0; i < 2; i++) compare_with_interpreter(&s->f, s->r, inputs, count);
    uint64_t calls = s->c.calls;
    for (int i = 0; i < 3; i++) check_ok(&s->f, uir_runtime_run(s->r));
    assert_int_equal(s->c.calls, calls);
}

static void test_trips(void **state) {
    (void)state;
    counted s;
    begin(&s, trips_module);
    static const int64_t sizes[] = {7, 0, 1, 300, 7};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) compare(&s, (array[]){vector(sizes[i])}, 1);
    end(&s);
}

static void test_condition(void **state) {
    (void)state;
    counted s;
    begin(&s, condition_module);
    static const int64_t limits[] = {4, 0, 20, 1};
    for (size_t i = 0; i < 4; i++) compare(&s, (array[]){vector(5), integer(&limits[i], 0)}, 2);
    end(&s);
}

static void test_zero(void **state) {
    (void)state;
    counted s;
    int64_t n = 4;
    begin(&s, zero_module);
    compare(&s, (array[]){vector(5), integer(&n, 0)}, 2);
    compare(&s, (array[]){vector(0), integer(&n, 0)}, 2);
    end(&s);
}

static void test_grows(void **state) {
    (void)state;
    counted s;
    static const int64_t trips[] = {3, 0, 5, 1, 3};
    begin(&s, grows_module);
    for (size_t i = 0; i < 5; i++) compare(&s, (array[]){vector(3), integer(&trips[i], 0)}, 2);
    end(&s);
}

static void test_nested(void **state) {
    (void)state;
    counted s;
    begin(&s, nested_module);
    compare(&s, (array[]){vector(5)}, 1);
    compare(&s, (array[]){vector(1)}, 1);
    compare(&s, (array[]){vector(500)}, 1);
    end(&s);
}

static void test_branch(void **state) {
    (void)state;
    counted s;
    static const unsigned char conditions[] = {1, 0, 0, 1};
    begin(&s, branch_module);
    for (size_t i = 0; i < 4; i++) {
        array condition = {UIR_DTYPE_BOOL, 0, {0}, &conditions[i]};
        compare(&s, (array[]){vector(6), condition}, 2);
        compare(&s, (array[]){vector(2), condition}, 2);
    }
    end(&s);
}

static void test_host(void **state) {
    (void)state;
    counted s;
    begin(&s, host_module);
    compare(&s, (array[]){vector(9)}, 1);
    compare(&s, (array[]){vector(100)}, 1);
    compare(&s, (array[]){vector(3)}, 1);
    assert_int_equal(uir_runtime_get_statistics(s.r).host_calls, 2);
    end(&s);
}

static void test_host_attributes(void **state) {
    (void)state;
    counted s;
    begin(&s, attributes_module);
    compare(&s, (array[]){vector(12)}, 1);
    assert_int_equal(uir_runtime_get_statistics(s.r).host_calls, 2);
    end(&s);
}

/* Boxes that overlap by all degrees, two in three of their scores given twice, some of them NaN. */
static void test_boxes(void **state) {
    (void)state;
    counted s;
    static float boxes[2 * 40 * 4], scores[2 * 3 * 40];
    static const int64_t counts[] = {40, 7, 1, 0, 40};
    uint32_t seed = 1;
    for (size_t i = 0; i < sizeof boxes / sizeof *boxes; i++)
        boxes[i] = (float)((seed = seed * 1664525 + 1013904223) >> 20) / 4096;
    for (size_t i = 0; i < sizeof scores / sizeof *scores; i++)
        scores[i] = i % 17 == 3 ? (float)NAN : i % 3 ? (float)(i * 7 % 30) / 30 : scores[i / 2];
    begin(&s, boxes_module);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        compare(&s,
                (array[]){{UIR_DTYPE_F32, 3, {2, counts[i], 4}, boxes}, {UIR_DTYPE_F32, 3, {2, 3, counts[i]}, scores}},
                2);
    uir_runtime_output found;
    check_ok(&s.f, uir_runtime_get_output(s.r, 4, &found));
    const int64_t *n = found.data; /* of 120 boxes in each batch: some are left out by each rule */
    assert_int_equal(n[0], 12);
    assert_true(n[0] < n[2] && n[2] < n[1] && n[1] < 200);
    assert_int_equal(n[3], 0);
    end(&s);
}

static void test_bind(void **state) {
    (void)state;
    counted s;
    static const int64_t ks[] = {3, 4, 12, 1, 5, 0, 1001};
    begin(&s, bind_module);
    for (size_t i = 0; i < 4; i++) compare(&s, (array[]){vector(12), integer(&ks[i], 1)}, 2);
    /* A reshape that does not fit, and dims that the facts exclude. */
    for (size_t i = 4; i < 7; i++) {
        int64_t shape[1] = {1};
        check_ok(&s.f, uir_runtime_set_input(s.r, 1, UIR_DTYPE_I64, 1, shape, &ks[i]));
        assert_int_equal(uir_runtime_run(s.r), UIR_STATUS_BAD_DATA);
    }
    check_message(&s.f, "reshape: the number of elements of operand 0 is 12 (N) and must be 10");
    check_message(&s.f, "dim K is 1001 and must be in 1..1000");
    compare(&s, (array[]){vector(12), integer(&ks[1], 1)}, 2);
    end(&s);
}

/* A list with more or fewer elements than the dims that it is to bind. */
static void test_bind_count(void **state) {
    (void)state;
    static const int64_t values[] = {3, 4, 5};
    counted s;
    begin(&s, "module opset 17\nsize M\nsize K min 1 max 1000\nsize L min 1 max 1000\n"
              "graph \"main\" (%k: i64[M]) {\n    bind_dims(%k) {dims = [K, L]}\n"
              "    %d: i64[1] = dim_values() {dims = [K + L], dtype = i64, scalar = 0}\n    return %d\n}\n");
    for (int64_t count = 0; count <= 3; count++) {
        check_ok(&s.f, uir_runtime_set_input(s.r, 0, UIR_DTYPE_I64, 1, &count, values));
        assert_int_equal(uir_runtime_run(s.r), count == 2 ? UIR_STATUS_OK : UIR_STATUS_BAD_DATA);
    }
    check_message(&s.f, "1 values are bound to 2 dims");
    check_message(&s.f, "3 values are bound to 2 dims");
    end(&s);
}

int main(void) {
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) numbers[i] = (float)((i * 7 + 3) % 11) - 4;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trips),      cmocka_unit_test(test_condition),       cmocka_unit_test(test_zero),
        cmocka_unit_test(test_grows),      cmocka_unit_test(test_nested),          cmocka_unit_test(test_branch),
        cmocka_unit_test(test_host),       cmocka_unit_test(test_host_attributes), cmocka_unit_test(test_bind),
        cmocka_unit_test(test_bind_count), cmocka_unit_test(test_boxes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
