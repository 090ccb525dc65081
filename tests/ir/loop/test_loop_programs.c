/* What the loop AST's verifier knows at each place, and what its interpreter computes: loop bounds, conditions,
 * domains, the parts of a monoid, conversions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ir/loop/loop.h"

#include <math.h>
#include <string.h>

typedef struct outcome {
    uir_status verified, ran;
    char said[2000]; /* all messages */
} outcome;

/* Reads, verifies and, with `tensors`, interprets a program whatever the verifier says: a fault must be found twice. */
static outcome try_program(const char *text, const int64_t *sizes, void *const *tensors) {
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_diagnostics_init(&diagnostics, &allocator);
    uir_loop_function *function = NULL;
    outcome result = {UIR_STATUS_OK, UIR_STATUS_OK, ""};
    uir_status status = uir_loop_parse(&allocator, text, strlen(text), "test", &diagnostics, &function);
    if (status == UIR_STATUS_OK) {
        result.verified = uir_loop_verify(function, &diagnostics);
        if (tensors) result.ran = uir_loop_interpret(function, sizes, tensors, NULL, &diagnostics);
    }
    for (const uir_diagnostic *d = diagnostics.first; d; d = d->next) {
        strncat(result.said, d->message, sizeof result.said - strlen(result.said) - 2);
        strcat(result.said, "\n");
    }
    uir_loop_function_destroy(function);
    uir_diagnostics_deinit(&diagnostics);
    if (status != UIR_STATUS_OK) fail_msg("%s", result.said);
    return result;
}

static void expect_verified(const char *text) {
    outcome result = try_program(text, NULL, NULL);
    if (result.verified != UIR_STATUS_OK) fail_msg("%s", result.said);
}

static void expect_refused(const char *text, const char *message) {
    outcome result = try_program(text, NULL, NULL);
    assert_int_equal(result.verified, UIR_STATUS_BAD_FILE);
    if (!strstr(result.said, message)) fail_msg("nothing says '%s':\n%s", message, result.said);
}

static void expect_fault(const char *text, const int64_t *sizes, void *const *tensors, const char *message) {
    outcome result = try_program(text, sizes, tensors);
    assert_int_equal(result.ran, UIR_STATUS_BAD_DATA);
    if (!strstr(result.said, message)) fail_msg("nothing says '%s':\n%s", message, result.said);
}

/* ---- what the verifier knows ---- */

#define VECTORS "func @f {\n  dim N in 1..64\n  tensor X : f32 [N] in 0\n  tensor Y : f32 [N] out 0\n"

static void a_loop_variable_begins_at_its_least_value(void **state) {
    (void)state;
    expect_verified(VECTORS "  ScheduleBlock(Z) { Y[0] = f32(0) }\n  serial for (i, 1, N - 1) {\n    ScheduleBlock(B) "
                            "{ vi = axis.bind(i - 1) : N  Y[vi] = X[vi] }\n  }\n}\n");
    expect_refused(VECTORS "  serial for (i, 1, N - 1) {\n    ScheduleBlock(B) { vi = axis.bind(i - 2) : N  Y[vi] = "
                           "X[vi] }\n  }\n}\n",
                   "not proved to stay in");
    expect_refused(VECTORS "  serial for (i, 1, N) {\n    ScheduleBlock(B) { vi = axis.bind(i) : N  Y[vi] = X[vi] }\n "
                           " }\n}\n",
                   "not proved to stay in");
}

/* So it does where that value is a size. */
static void a_loop_may_begin_at_a_size(void **state) {
    (void)state;
    static const char head[] = "func @f {\n  dim M in 0..8\n  tensor X : f32 [4] in 0\n  tensor Y : f32 [4] out 0\n  ";
    char text[600];
    strcpy(text, head);
    expect_verified(strcat(text,
                           "serial for (i, M, 4) {\n    ScheduleBlock(B) { vi = axis.bind(i - M) : 4  Y[vi] = X[vi] "
                           "}\n  }\n}\n"));
    strcpy(text, head);
    expect_refused(strcat(text,
                          "serial for (i, M, 5) {\n    ScheduleBlock(B) { vi = axis.bind(i - M) : 4  Y[vi] = X[vi] "
                          "}\n  }\n}\n"),
                   "not proved to stay in");
    strcpy(text, head);
    expect_refused(strcat(text, "serial for (i, M, 4) {\n    ScheduleBlock(B) { vi = axis.bind(i - M - 1) : 4  Y[vi] = "
                                "X[vi] }\n  }\n}\n"),
                   "not proved to stay in");
}

/* A guard says something about what it guards and nothing about what follows. */
static void knowledge_ends_with_its_scope(void **state) {
    (void)state;
    expect_verified(VECTORS "  serial for (i, 0, 64) {\n    if i < N {\n      ScheduleBlock(B) { vi = axis.bind(i) : "
                            "N  Y[vi] = X[vi] }\n    }\n  }\n}\n");
    expect_refused(VECTORS "  serial for (i, 0, 64) {\n    if i < N {\n      ScheduleBlock(B) { vi = axis.bind(i) : N "
                           " Y[vi] = X[vi] }\n    }\n    ScheduleBlock(C) { vi = axis.bind(i) : N  Y[vi] = X[vi] }\n  "
                           "}\n}\n",
                   "block C");
    expect_refused(VECTORS
                   "  serial for (i, 0, 64) {\n    ScheduleBlock(B) { vi = axis.bind(i) : N  where i < N  Y[vi] "
                   "= X[vi] }\n    ScheduleBlock(C) { vi = axis.bind(i) : N  Y[vi] = X[vi] }\n  }\n}\n",
                   "block C");
}

static void some_types_have_no_arithmetic(void **state) {
    (void)state;
    expect_refused("func @f {\n  tensor X : c64 [4] in 0\n  tensor Y : f32 [1] out 0\n  ScheduleBlock(B) { Y[0] = "
                   "f32(0) }\n}\n",
                   "is not supported");
    expect_refused("func @f {\n  tensor X : string [4] in 0\n  tensor Y : f32 [1] out 0\n  ScheduleBlock(B) { Y[0] = "
                   "f32(0) }\n}\n",
                   "is not supported");
}

/* ---- what the interpreter computes ---- */

static void loops_count_from_their_least_value(void **state) {
    (void)state;
    float x[6] = {1, 2, 3, 4, 5, 6}, y[6];
    void *tensors[] = {x, y};
    outcome result = try_program(VECTORS "  ScheduleBlock(Z) { Y[0] = f32(9) }\n  serial for (i, 1, N - 1) {\n    "
                                         "ScheduleBlock(B) { vi = axis.bind(i) : N  Y[vi] = X[vi - 1] }\n  }\n}\n",
                                 (int64_t[]){6}, tensors);
    assert_int_equal(result.ran, UIR_STATUS_OK);
    for (int i = 0; i < 6; i++) assert_true(y[i] == (i ? x[i - 1] : 9));
}

/* A block runs where all its conditions hold: the first ones count as much as the last. */
static void every_condition_counts(void **state) {
    (void)state;
    static const char *const wheres[] = {"i >= 2 and i < 5", "i < 5 and i >= 2"};
    for (int w = 0; w < 2; w++) {
        char text[600];
        strcpy(text, VECTORS "  serial for (i, 0, N) {\n    ScheduleBlock(Z) { vi = axis.bind(i) : N  Y[vi] = f32(0) "
                             "}\n    ScheduleBlock(B) { vi = axis.bind(i) : N  where ");
        strcat(strcat(text, wheres[w]), "  Y[vi] = X[vi] }\n  }\n}\n");
        float x[7] = {1, 2, 3, 4, 5, 6, 7}, y[7];
        void *tensors[] = {x, y};
        assert_int_equal(try_program(text, (int64_t[]){7}, tensors).ran, UIR_STATUS_OK);
        for (int i = 0; i < 7; i++) assert_true(y[i] == (i >= 2 && i < 5 ? x[i] : 0));
    }
}

/* Update takes elements, combine takes states: with a monoid where the two differ, a sum of squares. */
static void update_and_combine_are_two_things(void **state) {
    (void)state;
    static const char text[] =
        "func @f {\n  dim N in 0..8\n  tensor X : f32 [2, N] in 0\n  tensor Y : f32 [] out 0\n  tensor p : f32 [2] "
        "temp "
        "sram\n  tensor s : f32 [] temp reg\n"
        "  monoid squares (a : f32) {\n    identity f32(0)\n    update (x : f32) add(a, mul(x, x))\n    combine (b : "
        "f32) add(a, b)\n    finish sqrt(a)\n  }\n"
        "  serial for (r, 0, 2) {\n    ScheduleBlock(begin) { vr = axis.bind(r) : 2  init squares (p[vr]) }\n"
        "    serial for (k, 0, N) { ScheduleBlock(part) { vr, vk = axis.bind(r, k) : 2, reduce N  update squares "
        "(p[vr]) with (X[vr, vk]) } }\n  }\n"
        "  ScheduleBlock(start) { init squares (s[]) }\n"
        "  serial for (q, 0, 2) { ScheduleBlock(join) { vq = axis.bind(q) : reduce 2  combine squares (s[]) with "
        "(p[vq]) } }\n  ScheduleBlock(end) { finish squares (Y[]) with (s[]) }\n}\n";
    float x[6] = {1, 2, 3, 4, 5, 3}, y = -1;
    void *tensors[] = {x, &y};
    outcome result = try_program(text, (int64_t[]){3}, tensors);
    if (result.verified != UIR_STATUS_OK || result.ran != UIR_STATUS_OK) fail_msg("%s", result.said);
    assert_true(y == 8); /* of 64 */
}

/* A cast to an 8-bit float stops at the greatest finite value. */
static void casts_saturate(void **state) {
    (void)state;
    static const char text[] =
        "func @f {\n  tensor X : f32 [4] in 0\n  tensor Y : f32 [4] out 0\n  serial for (i, 0, 4) "
        "{\n    ScheduleBlock(B) { vi = axis.bind(i) : 4  Y[vi] = "
        "cast.f32(cast.f8e4m3fn(X[vi])) }\n  }\n}\n";
    float x[4] = {1000, -1000, 1.5f, -INFINITY}, y[4];
    void *tensors[] = {x, y};
    outcome result = try_program(text, NULL, tensors);
    if (result.ran != UIR_STATUS_OK) fail_msg("%s", result.said);
    static const float expected[4] = {448, -448, 1.5f, -448};
    for (int i = 0; i < 4; i++) assert_true(y[i] == expected[i]);
}

/* ---- faults at run time ---- */

static void sizes_keep_their_declaration(void **state) {
    (void)state;
    static const char text[] = "func @f {\n  dim N in 4..16 mult 4\n  tensor X : f32 [N] in 0\n  tensor Y : f32 [N] "
                               "out 0\n  serial for (i, 0, N) {\n    ScheduleBlock(B) { vi = axis.bind(i) : N  Y[vi] = "
                               "X[vi] }\n  }\n}\n";
    float x[32] = {0}, y[32];
    void *tensors[] = {x, y};
    static const int64_t good[] = {4, 8, 16}, bad[] = {0, 3, 6, 10, 17, 20};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(try_program(text, &good[i], tensors).ran, UIR_STATUS_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) expect_fault(text, &bad[i], tensors, "N = ");
}

static void iteration_variables_keep_their_domain(void **state) {
    (void)state;
    float x[8] = {0}, y[9];
    void *tensors[] = {x, y};
    /* The element exists; the domain is what is left. */
    expect_fault("func @f {\n  tensor X : f32 [8] in 0\n  tensor Y : f32 [9] out 0\n  serial for (i, 0, 9) {\n    "
                 "ScheduleBlock(B) { vi = axis.bind(i) : 8  Y[vi] = X[0] }\n  }\n}\n",
                 NULL, tensors, "vi = 8 is outside 0..7");
    expect_fault("func @f {\n  tensor X : f32 [8] in 0\n  tensor Y : f32 [9] out 0\n  serial for (i, 0, 9) {\n    "
                 "ScheduleBlock(B) { vi = axis.bind(i - 1) : 9  Y[0] = X[0] }\n  }\n}\n",
                 NULL, tensors, "vi = -1 is outside 0..8");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_variable_begins_at_its_least_value),
        cmocka_unit_test(a_loop_may_begin_at_a_size),
        cmocka_unit_test(knowledge_ends_with_its_scope),
        cmocka_unit_test(some_types_have_no_arithmetic),
        cmocka_unit_test(loops_count_from_their_least_value),
        cmocka_unit_test(every_condition_counts),
        cmocka_unit_test(update_and_combine_are_two_things),
        cmocka_unit_test(casts_saturate),
        cmocka_unit_test(sizes_keep_their_declaration),
        cmocka_unit_test(iteration_variables_keep_their_domain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
