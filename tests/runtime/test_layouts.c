/* Values that do not lie row-major: plans whose kernels write and read them, against the graph's interpreter, at
 * several sizes of one package; what nobody but a kernel may touch. */
#include "tests/runtime/support.h"

#include <stdio.h>
#include <string.h>

#define NEGATE(name, from, to)                                                                                         \
    "igraph @" name " on cpu {\n  dim N in 0..100000\n  ptr %x : dram f32 [N, 6]" from                                 \
    " in 0\n  ptr %y : dram f32 [N, 6]" to " out 0\n"                                                                  \
    "  phase { parallel r : N group\n    unary.neg.f32 %y[r:1, 0:6], %x[r:1, 0:6]\n  } }\n"
#define ACROSS ":(1, N)"
#define APART  ":(9, 1)"
#define PANELS ":(N, (4, 2)):(4, (1, 4*N))"
static const char *const kernels = NEGATE("across", "", ACROSS) NEGATE("apart", ACROSS, APART)
    NEGATE("panels", APART, PANELS) NEGATE("back", PANELS, "");

#define GROUP(to, layout, from, kernel)                                                                                \
    "    %" to ": f32[N, 6]" layout " = group(%" from ") {body = graph \"g_" to "\" (%a_" to ": f32[N, 6]) {\n"        \
    "        %r_" to ": f32[N, 6] = neg(%a_" to ")\n        return %r_" to "\n    }, sizes = [N], kernel = \"" kernel  \
    "\"}\n"
#define HEAD  "module opset 17\nsize N\ngraph \"main\" (%x: f32[N, 6]) {\n"
#define CHAIN GROUP("a", ACROSS, "x", "across") GROUP("b", APART, "a", "apart") GROUP("c", PANELS, "b", "panels")

static float numbers[64 * 6];

static void test_sizes(void **state) {
    (void)state;
    static const int64_t sizes[] = {5, 0, 1, 64, 2};
    session s;
    session_begin(&s, HEAD CHAIN GROUP("y", "", "c", "back") "    return %y\n}\n", kernels, NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        array x = {UIR_DTYPE_F32, 2, {sizes[i], 6}, numbers};
        for (int again = 0; again < 2; again++) compare_with_interpreter(&s.f, s.r, &x, 1);
    }
    session_end(&s);
}

/* What the planner refuses, in the place of the last group. */
static void refuse(const char *rest, const char *message) {
    char text[4000];
    fixture f;
    fixture_init(&f);
    snprintf(text, sizeof text, "%s%s", HEAD CHAIN, rest);
    assert_int_not_equal(fixture_build(&f, text, kernels), UIR_STATUS_OK);
    check_message(&f, message);
    fixture_deinit(&f);
}

static void test_refusals(void **state) {
    (void)state;
    refuse("    %y: f32[N*6] = reshape(%c) {dims = [N*6]}\n    return %y\n}\n",
           "value 'c' has a layout, but not all of its writers and readers are kernels");
    refuse("    return %c\n}\n", "has a layout");
}

static void read_row_major(void *user, uir_plan *plan) {
    (void)user;
    uir_plan_step *s = &plan->steps[1]; /* a launch that reads what the first has laid out */
    assert_int_equal(plan->tensors[uir_plan_get_word(plan, s->inputs, 0)].storage, UIR_PLAN_STORAGE_LAID_OUT);
    s->kind = UIR_PLAN_STEP_COPY;
    s->target = s->other = UIR_PLAN_NONE;
    s->values.count = s->constants.count = 0;
}

static void test_forged(void **state) {
    (void)state;
    fixture f;
    uir_package *package;
    fixture_init(&f);
    check_ok(&f, fixture_build(&f, HEAD CHAIN GROUP("y", "", "c", "back") "    return %y\n}\n", kernels));
    uir_status status = fixture_open_forged(&f, &open_by_vm, read_row_major, NULL, &package);
    assert_int_not_equal(status, UIR_STATUS_OK);
    check_message(&f, "as row-major, but it has a layout");
    fixture_deinit(&f);
}

int main(void) {
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) numbers[i] = (float)i - 100;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes), cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_forged)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
