/* Packages end to end: kernels by the VM, aliases, outputs, threads, allocation. */
#include "tests/runtime/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kernels =
    KERNEL_TWICE_IN_PARTS("0..100000", "  candidate t = 64\n  candidate t = 256 when N >= 1024 cost -N\n") /**/
    "igraph @sum on cpu {\n"
    "  dim M in 0..10000, N in 0..10000\n"
    "  ptr %x : dram f32 [M, N] in 0\n"
    "  ptr %c : dram f32 [1] const 1\n"
    "  ptr %w : dram f32 [M, N] work\n"
    "  ptr %y : dram f32 [M, 1] out 0\n"
    "  phase {\n"
    "    parallel p : M group\n"
    "    binary.mul.f32 %w[p:1, 0:N], %x[p:1, 0:N], %c\n"
    "  }\n"
    "  phase {\n"
    "    parallel p : M group\n"
    "    reduce.add.row.unit.f32 %y[p:1, 0:1], %w[p:1, 0:N]\n"
    "  }\n"
    "}\n";

static const char *const module_text = /**/
    "module opset 17\n"
    "size M\n"
    "size N\n"
    "constant %c: f32[1] = [3]\n"
    "graph \"main\" (%x: f32[M, N]) {\n"
    "    %f: f32[M*N] = reshape(%x) {dims = [M*N]}\n" /**/
    GROUP_TWICE_OF("M*N", "d", "f", "1")              /**/
    GROUP_TWICE_OF("M*N", "e", "d", "2")              /**/
    "    %r: f32[M, N] = reshape(%e) {dims = [M, N]}\n"
    "    %s: f32[M, 1] = group(%r, %c) {body = graph \"h\" (%p: f32[M, N], %k: f32[1]) {\n"
    "        %kb: f32[M, N] = broadcast(%k) {dims = [M, N]}\n"
    "        %m: f32[M, N] = mul(%p, %kb)\n"
    "        %q: f32[M, 1] = reduce_sum(%m) {axes = [1], keep = 1}\n"
    "        return %q\n"
    "    }, sizes = [M, N], kernel = \"sum\"}\n"
    "    return %s, %r, %x\n"
    "}\n";

static void fill(float *x, size_t count) {
    for (size_t i = 0; i < count; i++) x[i] = (float)((i * 37 + 11) % 101) * 0.25f - 10;
}

static void run_and_check(fixture *f, uir_runtime *r, int64_t m, int64_t n, float *out_first) {
    size_t count = (size_t)(m * n);
    float *x = malloc((count + 1) * sizeof *x);
    int64_t shape[2] = {m, n};
    uir_runtime_output sum, four, same;
    fill(x, count);
    check_ok(f, uir_runtime_set_input(r, 0, UIR_DTYPE_F32, 2, shape, x));
    check_ok(f, uir_runtime_run(r));
    check_ok(f, uir_runtime_get_output(r, 0, &sum));
    check_ok(f, uir_runtime_get_output(r, 1, &four));
    check_ok(f, uir_runtime_get_output(r, 2, &same));
    assert_int_equal(sum.rank, 2);
    assert_int_equal(sum.shape[0], m);
    assert_int_equal(sum.shape[1], 1);
    assert_int_equal(four.size, count * 4);
    assert_int_equal(same.size, count * 4);
    for (size_t i = 0; i < count; i++) {
        assert_true(((const float *)four.data)[i] == x[i] * 4);
        assert_true(((const float *)same.data)[i] == x[i]);
    }
    for (int64_t i = 0; i < m; i++) {
        double expected = 0;
        for (int64_t k = 0; k < n; k++) expected += (double)x[i * n + k] * 12;
        assert_true(fabs(((const float *)sum.data)[i] - expected) <= 1e-3 + 1e-5 * fabs(expected));
        if (out_first) out_first[i] = ((const float *)sum.data)[i];
    }
    free(x);
}

static void test_slice(void **state) {
    (void)state;
    fixture f;
    uir_package *package;
    uir_runtime *r;
    fixture_init(&f);
    check_ok(&f, fixture_build(&f, module_text, kernels));
    check_ok(&f, fixture_open(&f, &f.allocator, &package));
    check_ok(&f, uir_runtime_create(package, &(uir_runtime_options){.threads = 1}, &f.allocator, &f.diagnostics, &r));
    run_and_check(&f, r, 3, 5, NULL);
    run_and_check(&f, r, 40, 77, NULL);
    run_and_check(&f, r, 1, 1, NULL);
    uir_runtime_statistics s = uir_runtime_get_statistics(r);
    assert_int_equal(s.vm_calls, 3);
    assert_int_equal(s.phases, 4);
    run_and_check(&f, r, 0, 4, NULL); /* no elements, no work */
    s = uir_runtime_get_statistics(r);
    assert_int_equal(s.vm_calls, 0);
    assert_int_equal(s.phases, 0);
    /* x 4, 4 to 4, then the sum: 20 floats and its constant a row, read, written, read again, and a result a row. */
    run_and_check(&f, r, 4, 5, NULL);
    check_ok(&f, uir_runtime_count_traffic(r));
    assert_int_equal(uir_runtime_get_statistics(r).dram_bytes, 4 * (20 + 20 + 20 + 20 + 20 + 4 + 20 + 20 + 4));
    uir_runtime_destroy(r);
    uir_package_close(package);
    fixture_deinit(&f);
}

static uir_runtime_choice choice_of(const uir_runtime *r) {
    uir_runtime_choice choice;
    assert_true(uir_runtime_get_choice(r, 1, &choice));
    return choice;
}

/* Which candidate runs is what the costs say, or who measures; the results are the same. */
static void test_choice(void **state) {
    (void)state;
    fixture f;
    uir_package *package;
    uir_runtime *r;
    float first[40], other[40];
    uir_runtime_choice choice;
    fixture_init(&f);
    check_ok(&f, fixture_build(&f, module_text, kernels));
    check_ok(&f, fixture_open(&f, &f.allocator, &package));
    check_ok(&f, uir_runtime_create(package, &(uir_runtime_options){.threads = 2}, &f.allocator, &f.diagnostics, &r));
    assert_false(uir_runtime_get_choice(r, 1, &choice)); /* nothing ran */
    run_and_check(&f, r, 40, 77, first);
    choice = choice_of(r);
    assert_int_equal(choice.variant, 0);
    assert_int_equal(choice.variant_count, 1);
    assert_int_equal(choice.candidate, 1); /* the second one, of cost -N */
    assert_int_equal(choice.candidate_count, 2);
    assert_int_equal(choice.tile_count, 1);
    assert_int_equal(choice.tiles[0], 256);
    assert_int_equal(choice.cost, -40 * 77);
    assert_int_equal(choice.units, 1);
    check_ok(&f, uir_runtime_want_candidate(r, "twice", 0));
    run_and_check(&f, r, 40, 77, other);
    choice = choice_of(r);
    assert_int_equal(choice.candidate, 0);
    assert_int_equal(choice.tiles[0], 64);
    assert_int_equal(choice.cost, 0);
    assert_memory_equal(first, other, sizeof first);
    check_ok(&f, uir_runtime_want_candidate(r, "twice", 1)); /* not valid for fewer than 1024 */
    run_and_check(&f, r, 10, 7, NULL);
    assert_int_equal(choice_of(r).candidate, 0);
    check_ok(&f, uir_runtime_want_candidate(r, "twice", UINT32_MAX));
    run_and_check(&f, r, 40, 77, NULL);
    assert_int_equal(choice_of(r).candidate, 1);
    assert_int_equal(uir_runtime_want_candidate(r, "thrice", 0), UIR_STATUS_NOT_FOUND);
    assert_false(uir_runtime_get_choice(r, 1000, &choice));
    uir_runtime_destroy(r);
    uir_package_close(package);
    fixture_deinit(&f);
}

static void test_threads(void **state) {
    (void)state;
    fixture f;
    uir_package *package;
    float first[300], other[300];
    fixture_init(&f);
    check_ok(&f, fixture_build(&f, module_text, kernels));
    check_ok(&f, fixture_open(&f, &f.allocator, &package));
    for (uint32_t threads = 1; threads <= 4; threads *= 2) {
        uir_runtime *r;
        check_ok(&f, uir_runtime_create(package, &(uir_runtime_options){.threads = threads}, &f.allocator,
                                        &f.diagnostics, &r));
        for (int i = 0; i < 20; i++) run_and_check(&f, r, 300, 301, threads == 1 ? first : other);
        if (threads > 1) assert_memory_equal(first, other, sizeof first);
        uir_runtime_destroy(r);
    }
    uir_package_close(package);
    fixture_deinit(&f);
}

static void test_steady(void **state) {
    (void)state;
    fixture f;
    counting c;
    uir_package *package;
    uir_runtime *r;
    fixture_init(&f);
    counting_init(&c);
    check_ok(&f, fixture_build(&f, module_text, kernels));
    check_ok(&f, fixture_open(&f, &c.allocator, &package));
    check_ok(&f, uir_runtime_create(package, &(uir_runtime_options){.threads = 2}, &c.allocator, &f.diagnostics, &r));
    for (int i = 0; i < 3; i++) run_and_check(&f, r, 100, 90, NULL);
    uint64_t before = c.calls;
    for (int i = 0; i < 10; i++) run_and_check(&f, r, 100, 90, NULL);
    run_and_check(&f, r, 50, 90, NULL); /* smaller fits what is there */
    run_and_check(&f, r, 100, 90, NULL);
    assert_int_equal(c.calls, before);
    uir_runtime_destroy(r);
    uir_package_close(package);
    assert_int_equal(c.bytes, 0);
    fixture_deinit(&f);
}

static void test_deterministic(void **state) {
    (void)state;
    fixture f, g;
    fixture_init(&f);
    fixture_init(&g);
    check_ok(&f, fixture_build(&f, module_text, kernels));
    check_ok(&g, fixture_build(&g, module_text, kernels));
    assert_int_equal(f.package.length, g.package.length);
    assert_memory_equal(f.package.data, g.package.data, f.package.length);
    fixture_deinit(&g);
    fixture_deinit(&f);
}

/* ---- constants ---- */
static const char *const plus_kernel = "igraph @plus on cpu {\n"
                                       "  ptr %x : dram f32 [2048] in 0\n"
                                       "  ptr %c : dram f32 [2048] const 1\n"
                                       "  ptr %y : dram f32 [2048] out 0\n"
                                       "  phase {\n"
                                       "    binary.add.f32 %y[0:2048], %x[0:2048], %c[0:2048]\n"
                                       "  }\n"
                                       "}\n";

/* The bytes of a package that adds two constants, each with its own value. */
static size_t two_constants(int first, int second) {
    char text[1024];
    fixture f;
    snprintf(text, sizeof text,
             "module opset 17\n"
             "constant %%c: f32[2048] = splat %d\n"
             "constant %%d: f32[2048] = splat %d\n"
             "graph \"main\" (%%x: f32[2048]) {\n"
             "    %%y: f32[2048] = group(%%x, %%c) {body = graph \"g\" (%%a: f32[2048], %%k: f32[2048]) {\n"
             "        %%b: f32[2048] = add(%%a, %%k)\n"
             "        return %%b\n"
             "    }, sizes = [], kernel = \"plus\"}\n"
             "    %%z: f32[2048] = group(%%y, %%d) {body = graph \"h\" (%%e: f32[2048], %%l: f32[2048]) {\n"
             "        %%g: f32[2048] = add(%%e, %%l)\n"
             "        return %%g\n"
             "    }, sizes = [], kernel = \"plus\"}\n"
             "    return %%z\n"
             "}\n",
             first, second);
    fixture_init(&f);
    check_ok(&f, fixture_build(&f, text, plus_kernel));
    size_t size = f.package.length;
    fixture_deinit(&f);
    return size;
}

static void test_constants_shared(void **state) {
    (void)state;
    size_t same = two_constants(3, 3), other = two_constants(3, 4);
    assert_true(other >= same + 2048 * sizeof(float));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slice),         cmocka_unit_test(test_threads),          cmocka_unit_test(test_steady),
        cmocka_unit_test(test_deterministic), cmocka_unit_test(test_constants_shared), cmocka_unit_test(test_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
