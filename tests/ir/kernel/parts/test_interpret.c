/* The iGraph's interpreter: what indices, first() and last() mean, and each fault that it must find by itself, since
 * nothing before it looked at these kernels. */
#include "tests/ir/kernel/parts/support.h"

#include <math.h>

enum { SIZE = 16 };

#define HEAD                                                                                                           \
    "igraph @k on cpu {\n  dim N in 0..16\n  ptr %x : dram f32 [N] in 0\n  ptr %i : dram i64 [N] in 1\n"               \
    "  ptr %y : dram f32 [N] out 0\n  ptr %w : dram f32 [N + 1] work\n"

/* Runs a kernel on x = 1, 2, .. and the given indices. */
static uir_status run(kernel *k, const char *text, int64_t n, const int64_t *indices, float *out) {
    float x[SIZE], work[SIZE + 1] = {0};
    int64_t i[SIZE] = {0};
    for (int e = 0; e < SIZE; e++) x[e] = (float)(e + 1);
    for (int e = 0; e < SIZE; e++) out[e] = -77;
    if (indices) memcpy(i, indices, (size_t)n * sizeof *i);
    void *pointers[] = {x, i, out, work};
    uir_kernel_arguments arguments = {&n, NULL, pointers};
    kernel_open(k, text);
    return uir_igraph_interpret(k->igraph, &arguments, NULL, &k->diagnostics);
}

static void expect(const char *text, int64_t n, const int64_t *indices, const float *expected) {
    kernel k;
    float out[SIZE];
    uir_status status = run(&k, text, n, indices, out);
    if (status != UIR_STATUS_OK) fail_msg("%s in\n%s", k.diagnostics.last->message, text);
    for (int64_t e = 0; e < n; e++)
        if (out[e] != expected[e] && !(isnan(out[e]) && isnan(expected[e])))
            fail_msg("element %d is %g, not %g, in\n%s", (int)e, (double)out[e], (double)expected[e], text);
    for (int64_t e = n; e < SIZE; e++) assert_true(out[e] == -77);
    kernel_close(&k);
}

static void expect_fault(const char *text, int64_t n, const char *message) {
    kernel k;
    float out[SIZE];
    uir_status status = run(&k, text, n, NULL, out);
    if (status == UIR_STATUS_OK) fail_msg("nothing was found (%s) in\n%s", message, text);
    if (!kernel_said(&k, message)) fail_msg("'%s' does not say '%s'", k.diagnostics.last->message, message);
    kernel_close(&k);
}

/* ---- meanings ---- */

static void indices_outside_are_wrapped_clamped_or_skipped(void **state) {
    (void)state;
    static const int64_t indices[] = {-1, 0, 5, 7, -9, 6, -7, 13};
    static const struct {
        const char *mode;
        float expected[8];
    } cases[] = {
        {"wrap", {8, 1, 6, 8, 8, 7, 2, 6}},
        {"clamp", {1, 1, 6, 8, 1, 7, 1, 8}},
        {"skip", {9, 1, 6, 8, 9, 7, 9, 9}},
    };
    for (size_t c = 0; c < 3; c++) {
        char text[1000];
        strcpy(text, HEAD "  phase {\n    loop r : N {\n      index a = %i[r] in 0..N-1 ");
        strcat(text, cases[c].mode);
        strcat(text, "\n      move.f32 %y[r:1], %x[a:1] fill 9\n    }\n  }\n}\n");
        expect(text, 8, indices, cases[c].expected);
    }
}

static void a_number_that_selects_is_a_bool(void **state) {
    (void)state;
    expect(HEAD "  phase {\n    ternary.select.f32 %y[0:N], 1, %x[0:N], 9\n  }\n}\n", 3, NULL, (float[]){1, 2, 3});
    expect(HEAD "  phase {\n    ternary.select.f32 %y[0:N], 0, %x[0:N], 9\n  }\n}\n", 3, NULL, (float[]){9, 9, 9});
}

/* Of a row 0, 1, .. whose element 0 became 0/0. A quotient by what is left tells the sign of a 0. */
#define OF_NAN(instructions)                                                                                           \
    HEAD "  phase {\n    binary.sub.f32 %w[0:N], %x[0:N], 1\n    binary.div.f32 %w[0:1], %w[0:1], "                    \
         "%w[0:1]\n" instructions "  }\n}\n"
#define OF_ZEROS(instruction)                                                                                          \
    HEAD "  phase {\n    binary.mul.f32 %w[0:N], %x[0:N], 0\n    unary.neg.f32 %y[0:N], %w[0:N]\n    " instruction     \
         "\n    binary.div.f32 %y[0:N], 1, %y[0:N]\n  }\n}\n"
static void the_greatest_is_nan_or_passes_over_it(void **state) {
    (void)state;
    expect(OF_NAN("    binary.max.f32 %y[0:N], %w[0:N], %x[0:N]\n"), 3, NULL, (float[]){NAN, 2, 3});
    expect(OF_NAN("    binary.max.f32 %y[0:N], %x[0:N], %w[0:N]\n"), 3, NULL, (float[]){NAN, 2, 3});
    expect(OF_NAN("    binary.maxnum.f32 %y[0:N], %w[0:N], %x[0:N]\n"), 3, NULL, (float[]){1, 2, 3});
    expect(OF_NAN("    binary.maxnum.f32 %y[0:N], %x[0:N], %w[0:N]\n"), 3, NULL, (float[]){1, 2, 3});
    expect(OF_NAN("    binary.maxnum.f32 %y[0:N], %w[0:N], 1.5\n"), 3, NULL, (float[]){1.5f, 1.5f, 2});
    expect(OF_NAN("    binary.maxnum.f32 %y[0:N], %w[0:N], %w[0:N]\n"), 2, NULL, (float[]){NAN, 1});
    expect(OF_NAN("    reduce.max.row.unit.f32 %y[0:1], %w[0:N]\n"), 1, NULL, (float[]){NAN});
    expect(OF_NAN("    fill.f32 %y[0:N], 0\n    reduce.max.row.unit.f32 %y[0:1], %w[0:N]\n"), 3, NULL,
           (float[]){NAN, 0, 0});
    expect(OF_NAN("    fill.f32 %y[0:N], 0\n    reduce.maxnum.row.unit.f32 %y[0:1], %w[0:N]\n"), 3, NULL,
           (float[]){2, 0, 0});
    expect(OF_NAN("    reduce.maxnum.row.unit.f32 %y[0:1], %w[0:N]\n"), 1, NULL, (float[]){-INFINITY});
    /* Of 0 and -0 the later one, but for maxnum. */
    expect(OF_ZEROS("binary.max.f32 %y[0:N], %w[0:N], %y[0:N]"), 1, NULL, (float[]){-INFINITY});
    expect(OF_ZEROS("binary.max.f32 %y[0:N], %y[0:N], %w[0:N]"), 1, NULL, (float[]){INFINITY});
    expect(OF_ZEROS("binary.maxnum.f32 %y[0:N], %w[0:N], %y[0:N]"), 1, NULL, (float[]){INFINITY});
    expect(OF_ZEROS("binary.maxnum.f32 %y[0:N], %y[0:N], %w[0:N]"), 1, NULL, (float[]){-INFINITY});
}

#define REMAINDER(before, operands) HEAD "  phase {\n" before "    binary.fmod.f32 %y[0:N], " operands "\n  }\n}\n"
static void a_remainder_of_floats_is_exact(void **state) {
    (void)state;
    /* 2^40 is one more than a multiple of 3. */
    expect(REMAINDER("    binary.mul.f32 %y[0:N], %x[0:N], 1099511627776\n", "%y[0:N], 3"), 4, NULL,
           (float[]){1, 2, 0, 1});
    expect(REMAINDER("    unary.neg.f32 %y[0:N], %x[0:N]\n", "%y[0:N], 3"), 4, NULL, (float[]){-1, -2, 0, -1});
    expect(REMAINDER("", "3.5, %x[0:N]"), 4, NULL, (float[]){0.5f, 1.5f, 0.5f, 3.5f});
    expect(REMAINDER("", "%x[0:N], 0"), 2, NULL, (float[]){NAN, NAN});
}

static void first_and_last_are_the_ends_of_a_loop(void **state) {
    (void)state;
    static const char text[] = HEAD "  phase {\n    loop l : N {\n      fill.f32 %y[l:1], 5\n      fill.f32 %y[l:1], 1 "
                                    "when first(l)\n      fill.f32 %y[l:1], 2 when last(l)\n    }\n  }\n}\n";
    expect(text, 4, NULL, (float[]){1, 5, 5, 2});
    expect(text, 1, NULL, (float[]){2});
    static const char negated[] =
        HEAD "  phase {\n    loop l : N {\n      fill.f32 %y[l:1], 5\n      fill.f32 %y[l:1], "
             "1 when not first(l)\n      fill.f32 %y[l:1], 2 when not last(l)\n    }\n  "
             "}\n}\n";
    expect(negated, 4, NULL, (float[]){2, 2, 2, 1});
}

/* A loop whose ends are named runs once where it would not run: what its first iteration sets is there. */
static void a_loop_with_named_ends_runs_at_least_once(void **state) {
    (void)state;
    static const char text[] = HEAD "  ptr %s : reg f32 [1]\n  phase {\n    loop l : N - 4 {\n      fill.f32 %s, 3 "
                                    "when first(l)\n    }\n    loop r "
                                    ": N {\n      move.f32 %y[r:1], %s\n    }\n  }\n}\n";
    expect(text, 2, NULL, (float[]){3, 3});
    expect(text, 6, NULL, (float[]){3, 3, 3, 3, 3, 3});
}

/* ---- faults ---- */

static void a_place_holds_one_buffer(void **state) {
    (void)state;
    static const char head[] = HEAD "  ptr %a : sram f32 [N]\n  ptr %b : sram f32 [N] over %a\n  phase {\n"
                                    "    move.f32 %a, %x\n    move.f32 %b[0:1], %x[0:1]\n";
    char text[1000];
    snprintf(text, sizeof text, "%s    move.f32 %%y, %%a\n  }\n}\n", head);
    expect_fault(text, 3, "an undefined value is stored to the output");
    snprintf(text, sizeof text, "%s    move.f32 %%y, %%b\n  }\n}\n", head);
    expect_fault(text, 3, "an undefined value is stored to the output");
    snprintf(text, sizeof text, "%s    move.f32 %%a, %%x\n    move.f32 %%y, %%a\n  }\n}\n", head);
    expect(text, 3, NULL, (const float[]){1, 2, 3});
}

static void undefined_values_do_not_come_out(void **state) {
    (void)state;
    expect_fault(HEAD
                 "  ptr %s : reg f32 [1]\n  phase {\n    loop r : N {\n      move.f32 %y[r:1], %s\n    }\n  }\n}\n",
                 2, "an undefined value is stored to the output");
    expect_fault(HEAD "  phase {\n    move.f32 %y[0:N], %w[0:N]\n  }\n}\n", 2,
                 "an undefined value is stored to the output");
    expect_fault(HEAD "  phase {\n    move.f32 %y[0:N], %x[1:N]\n  }\n}\n", 2,
                 "an undefined value is stored to the output");
    expect_fault(HEAD
                 "  ptr %s : reg i64 [1]\n  phase {\n    loop r : N {\n      index a = %s[0] in 0..N-1 clamp\n      "
                 "move.f32 %y[r:1], %x[a:1]\n    }\n  }\n}\n",
                 2, "reads an undefined element");
    expect_fault(HEAD "  phase {\n    move.f32 %y[0:N-1], %x[0:N-1]\n  }\n}\n", 3, "was never written");
}

/* What a buffer of a loop held in an iteration is gone in the next. */
static void buffers_of_a_loop_begin_anew(void **state) {
    (void)state;
    static const char once[] =
        HEAD "  ptr %t : sram f32 [1] x2 by l\n  phase {\n    loop l : N {\n      fill.f32 %t, 1 "
             "when first(l)\n      move.f32 %y[l:1], %t\n    }\n  }\n}\n";
    expect(once, 1, NULL, (float[]){1});
    expect_fault(once, 2, "an undefined value is stored");
    expect_fault(once, 3, "an undefined value is stored");
    static const char alternately[] = HEAD
        "  ptr %t : sram f32 [1] x2 by l\n  phase {\n    loop l : N {\n      fill.f32 %t, 1 when l < 2\n      move.f32 "
        "%y[l:1], %t\n    }\n  }\n}\n";
    expect(alternately, 2, NULL, (float[]){1, 1});
    expect_fault(alternately, 3, "an undefined value is stored");
}

/* A run that says what dies inside is held to it. */
static void what_dies_in_a_run_is_gone_after_it(void **state) {
    (void)state;
#define RUN(dead)                                                                                                      \
    HEAD "  ptr %s : sram f32 [1, 16]\n  phase {\n    run" dead " {\n      move.f32 %s[0:1, 0:N], %x[0:N]\n    }\n"    \
         "    move.f32 %y[0:N], %s[0:1, 0:N]\n  }\n}\n"
    expect(RUN(""), 4, NULL, (float[]){1, 2, 3, 4});
    expect_fault(RUN(" dead %s"), 4, "an undefined value is stored to the output");
#undef RUN
}

static void units_keep_out_of_each_others_way(void **state) {
    (void)state;
    expect_fault(HEAD "  phase {\n    parallel p : N group\n    move.f32 %y[0:1], %x[0:1]\n  }\n}\n", 2,
                 "two units write one element of %y");
    expect_fault(HEAD "  phase {\n    parallel p : N group\n    move.f32 %w[p+1:1], %x[p:1]\n    move.f32 %y[p:1], "
                      "%w[p:1] when p > 0\n  }\n}\n",
                 2, "a unit reads what another unit wrote");
    expect_fault(HEAD "  ptr %s : reg f32 [1]\n  phase {\n    parallel p : N group\n    move.f32 %s, %w[p+1:1]\n    "
                      "move.f32 %w[p:1], %x[p:1]\n  }\n}\n",
                 2, "a unit writes what another unit read");
    /* Each its own, or in two phases: nothing to object to. */
    expect(HEAD "  phase {\n    parallel p : N group\n    move.f32 %w[p:1], %x[p:1]\n    move.f32 %y[p:1], %w[p:1]\n  "
                "}\n}\n",
           3, NULL, (float[]){1, 2, 3});
    expect(HEAD
           "  phase {\n    parallel p : N group\n    move.f32 %w[p:1], %x[p:1]\n  }\n  phase {\n    parallel q : N "
           "group\n    move.f32 %y[q:1], %w[N-1-q:1]\n  }\n}\n",
           3, NULL, (float[]){3, 2, 1});
}

static void inputs_are_not_written(void **state) {
    (void)state;
    expect_fault(HEAD "  phase {\n    move.f32 %y[0:N], %x[0:N]\n    fill.f32 %x[0:N], 0\n  }\n}\n", 2, "is an input");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indices_outside_are_wrapped_clamped_or_skipped),
        cmocka_unit_test(a_number_that_selects_is_a_bool),
        cmocka_unit_test(the_greatest_is_nan_or_passes_over_it),
        cmocka_unit_test(a_remainder_of_floats_is_exact),
        cmocka_unit_test(first_and_last_are_the_ends_of_a_loop),
        cmocka_unit_test(a_loop_with_named_ends_runs_at_least_once),
        cmocka_unit_test(a_place_holds_one_buffer),
        cmocka_unit_test(undefined_values_do_not_come_out),
        cmocka_unit_test(buffers_of_a_loop_begin_anew),
        cmocka_unit_test(what_dies_in_a_run_is_gone_after_it),
        cmocka_unit_test(units_keep_out_of_each_others_way),
        cmocka_unit_test(inputs_are_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
