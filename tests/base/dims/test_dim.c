/* Symbolic dims by example: what must simplify, what must be proved, what must not. */
#include "dim_world.h"

static void expect_text(world *w, uir_dim dim, const char *expected) {
    uir_text text;
    uir_text_init(&text, &w->allocator);
    uir_dim_print(w->dims, dim, &text);
    assert_string_equal(text.data, expected);
    uir_text_deinit(&text);
}

static void expect_simplified(world *w, const char *from, const char *to) {
    uir_dim dim = parse(w, from);
    expect_text(w, dim, to);
    assert_int_equal(parse(w, to).id, dim.id);
}

static void test_simplification(void **state) {
    world *w = *state;
    static const char *const cases[][2] = {
        {"p*tr + r - p*tr", "r"},
        {"2*M + 3*M - 5*M", "0"},
        {"(M + 1)*(N + 2) - M*N", "M*2 + N + 2"},
        {"N*M - M*N + 7", "7"},
        {"M - p*tr", "M - p*tr"},
        {"-M - 1", "-M - 1"},
        {"ceildiv(M, tr)*4 + min(K, 3) - 1", "ceildiv(M, tr)*4 + min(K, 3) - 1"},
        {"floordiv(12, 5)", "2"},
        {"floordiv(-12, 5)", "-3"},
        {"ceildiv(-12, 5)", "-2"},
        {"mod(-12, 5)", "3"},
        {"ceildiv(M, 1)", "M"},
        {"floordiv(M, 1)", "M"},
        {"mod(M, 1)", "0"},
        {"floordiv(8*M + 3, 4)", "M*2"},
        {"floordiv(6*M + 9, 4)", "M + floordiv(M, 2) + 2"},
        {"mod(8*M + 3, 4)", "3"},
        {"floordiv(tr*M + r, tr)", "M"},
        {"mod(tr*M + r, tr)", "r"},
        {"floordiv(M*s, N*s)", "floordiv(M*s, N*s)"}, /* N may be 0 */
        {"floordiv(M*s, tk*s)", "floordiv(M, tk)"},
        {"mod(M*s, tk*s)", "s*mod(M, tk)"},
        {"mod(M, 8) + 8*floordiv(M, 8)", "M"},
        {"mod(M + 15, 16) + 16*ceildiv(M, 16)", "M + 15"},
        {"K*(mod(M, tk) + tk*floordiv(M, tk))", "K*M"},
        {"mod(mod(M, 12), 4)", "mod(M, 4)"},
        {"mod(mod(M, tk), tk)", "mod(M, tk)"},
        {"floordiv(floordiv(M, 3), 4)", "floordiv(M, 12)"},
        {"ceildiv(ceildiv(M, tr), 4)", "ceildiv(M, tr*4)"},
        {"tm/12*12", "tm"},
        {"ceildiv(tn, 16)*32", "tn*2"},
        {"floordiv(tn + 3, 16)", "floordiv(tn, 16)"},
        {"align(tn, 8)", "tn"},
        {"align(N, 8)", "ceildiv(N, 8)*8"},
        {"ceildiv(N + 7, 8)", "floordiv(N + 6, 8) + 1"},
        {"floordiv(N + 7, 8)", "ceildiv(N, 8)"},
        {"floordiv(M - 1, tk) + 1", "ceildiv(M, tk)"},
        {"ceildiv(768, tk)", "ceildiv(768, tk)"},
        {"ceildiv(min(tr, 5), tr)", "1"},
        {"min(M, M + 1)", "M"},
        {"min(M + min(M, 1), 1)", "min(M, 1)"}, /* only whether it is 0 */
        {"M + min(M, 1) - min(M + min(M, 1), 1)", "M"},
        {"min(3*M*M, 1)", "min(M, 1)"},
        {"min(M*N + M, 1)", "min(M, 1)"},
        {"min(M + N, 1)", "min(M + N, 1)"},
        {"min(M + K*min(N, 1)*M, 1)", "min(M, 1)"},
        {"min(N*min(M, 1), 1)", "min(M*N, 1)"},
        {"min(z*z, 1)", "min(z*z, 1)"}, /* z may be negative */
        {"min(3*M, 2)", "min(M*3, 2)"},
        {"max(M - 1, M, 3, 5)", "max(M, 5)"},
        {"min(min(M, N), min(N, K))", "min(K, M, N)"},
        {"min(M + 3, N + 3)", "min(M, N) + 3"},
        {"min(1, s)", "1"},
        {"max(0, M)", "M"},
        {"min(0, M)", "0"},
        {"max(M, min(M, N))", "M"},
        {"min(tr, 64)", "tr"},
        {"min(r, tr)", "r"},
        {"max(p*tr, M)", "M"},
        {"floordiv((M + 1)*tn, M + 1)", "tn"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"9223372036854775807 - 1", "9223372036854775806"},
        {"(M)", "M"},
        {"12/4*M", "M*3"},
        {"floordiv(M, 3) + floordiv(M, 2)", "floordiv(M, 2) + floordiv(M, 3)"},
        {"floordiv(N, 2) + floordiv(M, 3)", "floordiv(M, 3) + floordiv(N, 2)"},
        {"mod(M, 3)*floordiv(M, 3)", "floordiv(M, 3)*mod(M, 3)"},
        {"min(M, N, s) + min(M, N)", "min(M, N) + min(M, N, s)"},
        {"max(M, N) + min(M, N, s)", "min(M, N, s) + max(M, N)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_simplified(w, cases[i][0], cases[i][1]);
}

/* Two ways to write one thing: quotients and rests that are known, factors that cancel, nested divisions. */
static void test_same_divisions(void **state) {
    world *w = *state;
    static const char *const cases[][2] = {
        {"ceildiv(M + 1, tk)", "floordiv(M, tk) + 1"},
        {"floordiv(M + N - 1, tk)", "ceildiv(M + N, tk) - 1"},
        {"floordiv(tr + 127, 64)", "2"},
        {"mod(tr + 127, 64)", "tr - 1"},
        {"floordiv(tr - 1, 64)", "0"},
        {"floordiv(-tr, 64)", "-1"},
        {"mod(-tr, 64)", "64 - tr"},
        {"ceildiv(tr - 64, 64)", "0"},
        {"ceildiv(-tr, 65)", "0"},
        {"ceildiv(tr + 192, 64)", "4"},
        {"floordiv(M*64 + tr - 1, 64)", "M"},
        {"floordiv(r, tr)", "0"},
        {"mod(r, tr)", "r"},
        {"floordiv(-r - 1, tr)", "-1"},
        {"mod(-r - 1, tr)", "tr - r - 1"},
        {"ceildiv(r + 1, tr)", "1"},
        {"ceildiv(-r, tr)", "0"},
        {"floordiv(M*tk + tk, 4*tk)", "floordiv(M + 1, 4)"},
        {"ceildiv(M*tk, 4*tk)", "ceildiv(M, 4)"},
        {"mod(M*tk, 4*tk)", "tk*mod(M, 4)"},
        {"floordiv(6*M + 3*N, 3*tk)", "floordiv(2*M + N, tk)"},
        {"ceildiv(6*M + 3*N, 3*tk)", "ceildiv(2*M + N, tk)"},
        {"mod(6*M, 3*tk)", "3*mod(2*M, tk)"},
        {"mod(6*M*s, 4*s*tk)", "2*s*mod(3*M, 2*tk)"},
        {"mod(mod(M, tr*4), 4)", "mod(M, 4)"},
        {"mod(mod(M, tn), 8)", "mod(M, 8)"},
        {"mod(6*M + 5, 4)", "2*mod(M, 2)*3 - 4*mod(M, 2) + 1"},
        {"mod(6*M + 7, 9)", "3*mod(2*M + 2, 3) + 1"},
        {"floordiv(6*M + 7, 9)", "floordiv(2*M + 2, 3)"},
        {"floordiv(5*floordiv(M, 3), 4)", "floordiv(M, 12) + floordiv(M, 3)"},
        {"floordiv(floordiv(M, 3) + 2, 4)", "floordiv(M + 6, 12)"},
        {"floordiv(floordiv(M, tk) - 2, tr)", "floordiv(M - 2*tk, tk*tr)"},
        {"ceildiv(ceildiv(M, tk) + 2, tr)", "ceildiv(M + 2*tk, tk*tr)"},
        {"floordiv(tn + 16*M + 5, 16)", "floordiv(tn, 16) + M"},
        {"mod(tn + 16*M + 5, 16)", "5"},
        {"floordiv((M + 1)*(N + 1), N + 1)", "M + 1"},
        {"mod((M + 1)*(N + 1), N + 1)", "0"},
        {"mod(M*(N + 1) + N, N + 1)", "N"},
        {"floordiv(7*M, 4) - M", "floordiv(3*M, 4)"},
        {"min(2*M + 3, 2*N + 3) - 3", "min(2*M, 2*N)"},
        {"max(M + N, K + N, N)", "max(M, K) + N"},
        {"min(M + N, K + N, N - 1)", "N - 1"},
        {"max(M*N, M*N + K, 7 + M*N)", "M*N + max(K, 7)"},
        {"min(min(M, N) + 5, 5 + K)", "min(M, N, K) + 5"},
        {"max(tr, 65)", "65"},
        {"max(tr, 1)", "tr"},
        {"min(tr, tr, tr)", "tr"},
        {"min(z, 6) + max(z, -6)", "2*z"},
    };
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (parse(w, cases[i][0]).id == parse(w, cases[i][1]).id) continue;
        fprintf(stderr, "%s is not %s\n", cases[i][0], cases[i][1]);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

/* A divisor that may be 0 stays, so that evaluation reports it. */
static void test_unknown_divisors_stay(void **state) {
    world *w = *state;
    static const char *const kept[] = {"floordiv(0, M)",
                                       "mod(M, M)",
                                       "floordiv(M, z)",
                                       "ceildiv(M*N, N)",
                                       "floordiv(5, 0)",
                                       "mod(5, -2)",
                                       "floordiv(floordiv(M, N), 4)",
                                       "mod(mod(M, N*4), 4)",
                                       "floordiv(M*tk, tk + 1)",
                                       "floordiv(N + floordiv(M, 3), 4)",
                                       "floordiv(N*floordiv(M, 3), 4)",
                                       "mod(mod(M, tr), 4)",
                                       "mod(N*mod(M, 12), 4)",
                                       "floordiv(min(mod(M, N), 5), 8)"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) expect_simplified(w, kept[i], kept[i]);
    int64_t values[3] = {0, 0, 0}, value;
    assert_int_equal(uir_dim_evaluate(w->dims, parse(w, "mod(M, M)"), values, NULL, 3, &value), UIR_DIM_DIVISION);
    assert_int_equal(uir_dim_evaluate(w->dims, parse(w, "floordiv(5, 0)"), values, NULL, 3, &value), UIR_DIM_DIVISION);
    /* No bound of a possibly undefined operand is used to drop it. */
    static const char *const lower[] = {
        "min(-1, floordiv(M, N))",   "min(-1, ceildiv(M, N))",           "min(-1, mod(M, N))",
        "min(-1, mod(M, N)*2 + 1)",  "min(-1, floordiv(mod(M, N), 3))",  "min(-3, ceildiv(floordiv(M, N), 5))",
        "max(9, min(mod(M, N), 8))", "min(M - 1, mod(mod(K, N), 5) + M)"};
    for (size_t i = 0; i < sizeof lower / sizeof *lower; i++)
        assert_int_equal(uir_dim_evaluate(w->dims, parse(w, lower[i]), values, NULL, 3, &value), UIR_DIM_DIVISION);
}

static void test_known_bounds(void **state) {
    world *w = *state;
    int64_t low, high;
    uir_dim_bounds(w->dims, parse(w, "tr*2 - 1"), &low, &high);
    assert_int_equal(low, 1);
    assert_int_equal(high, 127);
    uir_dim_bounds(w->dims, parse(w, "r"), &low, &high);
    assert_int_equal(low, 0);
    assert_int_equal(high, 63);
    uir_dim_bounds(w->dims, parse(w, "tn"), &low, &high);
    assert_int_equal(low, 16);
    assert_true(high == INT64_MAX);
    uir_dim_bounds(w->dims, parse(w, "mod(M, 8)"), &low, &high);
    assert_int_equal(low, 0);
    assert_int_equal(high, 7);
    uir_dim_bounds(w->dims, parse(w, "z*z"), &low, &high);
    assert_int_equal(low, 0);
    assert_int_equal(high, 25);
    uir_dim_bounds(w->dims, parse(w, "M - N"), &low, &high);
    assert_true(low == INT64_MIN && high == INT64_MAX);
    assert_int_equal(uir_dim_multiple(w->dims, parse(w, "tn*6 + 32")), 32);
    assert_int_equal(uir_dim_multiple(w->dims, parse(w, "tn*tm")), 192);
    assert_int_equal(uir_dim_multiple(w->dims, parse(w, "tn/8")), 2);
    assert_int_equal(uir_dim_multiple(w->dims, parse(w, "M")), 1);
    assert_int_equal(uir_dim_multiple(w->dims, parse(w, "0")), 0);
    assert_int_equal(uir_dim_multiple(w->dims, parse(w, "-12")), 12);
}

typedef struct claim {
    const char *left, *relation, *right;
    uir_truth truth;
} claim;

static uir_relation relation_named(const char *text) {
    for (int i = UIR_RELATION_EQ; i <= UIR_RELATION_GE; i++)
        if (strcmp(uir_relation_text((uir_relation)i), text) == 0) return (uir_relation)i;
    fail();
    return UIR_RELATION_EQ;
}

static void expect_claim(world *w, const claim *c) {
    uir_truth truth = uir_dim_compare(w->dims, parse(w, c->left), relation_named(c->relation), parse(w, c->right));
    if (truth != c->truth)
        fprintf(stderr, "%s %s %s: %d, expected %d\n", c->left, c->relation, c->right, truth, c->truth);
    assert_int_equal(truth, c->truth);
}

static void test_claims(void **state) {
    world *w = *state;
    static const claim claims[] = {
        {"p*tr + min(tr, M - p*tr)", "<=", "M", UIR_TRUE},
        {"min(tr, M - p*tr)", ">=", "1", UIR_TRUE},
        {"M - p*tr", ">", "0", UIR_TRUE},
        {"l*tn", "<", "N", UIR_TRUE},
        {"l*tn + tn", "<", "N + tn", UIR_TRUE},
        {"l*tn + j*16 + 16", "<=", "align(N, tn)", UIR_TRUE},
        {"kk*tk + min(tk, K - kk*tk)", "<=", "K", UIR_TRUE},
        {"p*tr + r", "<", "align(M, tr)", UIR_TRUE},
        {"p*tr + r", "<", "M", UIR_UNKNOWN},
        {"p*tr + r", "<", "M + tr", UIR_TRUE},
        {"i*12 + 12", "<=", "tm", UIR_TRUE},
        {"i*12 + 11", "<", "tm", UIR_TRUE},
        {"i*12 + 12", "<", "tm", UIR_UNKNOWN},
        {"align(N, 8)", ">=", "N", UIR_TRUE},
        {"align(N, 8)", "<", "N + 8", UIR_TRUE},
        {"align(N, 8)", ">", "N + 8", UIR_FALSE},
        {"align(N, tk)", ">=", "N", UIR_TRUE},
        {"floordiv(N, tk)*tk", "<=", "N", UIR_TRUE},
        {"mod(M, 8)", "<=", "M", UIR_TRUE},
        {"mod(M, tk)", "<", "tk", UIR_TRUE},
        {"ceildiv(M, tr)", "<=", "M", UIR_TRUE},
        {"M*tr", ">=", "M", UIR_TRUE},
        {"M*N", ">=", "M", UIR_UNKNOWN},
        {"(m + 1)*N", "<=", "M*N", UIR_TRUE},
        {"m*N + N - 1", "<", "M*N", UIR_TRUE},
        {"m", "<", "M", UIR_TRUE},
        {"m", ">=", "M", UIR_FALSE},
        {"2*M + 1", "==", "2*N", UIR_FALSE},
        {"tn + 8", "!=", "tn*2", UIR_TRUE},
        {"floordiv(m, 12)*12*tk + 12*(tk - 1) + mod(m, 12)", "<", "align(M, 12)*tk", UIR_TRUE},
        {"floordiv(a, 12)*12*tk + 12*kb + mod(a, 12)", "<", "tm*tk", UIR_TRUE},
        {"floordiv(g, N)", "<", "M", UIR_TRUE},
        {"mod(g, N)", "<", "N", UIR_TRUE},
        {"M", "==", "M + 1", UIR_FALSE},
        {"M", "==", "N", UIR_UNKNOWN},
        {"max(M, N)", ">=", "min(M, N)", UIR_TRUE},
        {"max(M, N)", ">=", "M", UIR_TRUE},
        {"max(M, N) + min(M, N)", "==", "M + N", UIR_TRUE},
        {"3", "<", "2", UIR_FALSE},
        {"mod(M, 4)", "==", "4", UIR_FALSE},
        {"z*z", ">=", "0", UIR_TRUE},
        {"9223372036854775807", ">", "-9223372036854775808", UIR_TRUE},
        {"floordiv(M + 2, 2)*2", ">", "M", UIR_TRUE},
        {"floordiv(M - 3, 2)*2 + 3", "<=", "M", UIR_TRUE},
        {"floordiv(M - 3, 2)*2 + 3", "<", "M", UIR_UNKNOWN},
        {"(-9223372036854775807 - 1)*tr*floordiv(M, 65 - tr)", "<=", "N - M", UIR_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) expect_claim(w, &claims[i]);
}

/* Windows: a padded convolution's coordinates stay inside when the guard says so. */
static void test_assumptions(void **state) {
    world *w = *state;
    uir_condition tail = {UIR_RELATION_LT, parse(w, "p*tr + r"), parse(w, "M")};
    uir_condition pair[2] = {tail, {UIR_RELATION_GE, parse(w, "M*N - K"), parse(w, "0")}};
    assert_int_equal(uir_dim_compare_given(w->dims, &tail, 1, parse(w, "p*tr + r"), UIR_RELATION_LE, parse(w, "M - 1")),
                     UIR_TRUE);
    assert_int_equal(
        uir_dim_compare_given(w->dims, &tail, 1, parse(w, "(p*tr + r)*N + N"), UIR_RELATION_LE, parse(w, "M*N")),
        UIR_TRUE);
    assert_int_equal(uir_dim_compare_given(w->dims, &tail, 1, parse(w, "M"), UIR_RELATION_GT, parse(w, "0")), UIR_TRUE);
    assert_int_equal(uir_dim_compare_given(w->dims, pair, 2, parse(w, "K"), UIR_RELATION_LE, parse(w, "M*N")),
                     UIR_TRUE);
    assert_int_equal(uir_dim_compare_given(w->dims, &tail, 1, parse(w, "K"), UIR_RELATION_LE, parse(w, "M*N")),
                     UIR_UNKNOWN);
    uir_condition equal = {UIR_RELATION_EQ, parse(w, "M"), parse(w, "N")};
    assert_int_equal(uir_dim_compare_given(w->dims, &equal, 1, parse(w, "M*2"), UIR_RELATION_EQ, parse(w, "N*2")),
                     UIR_TRUE);
}

/* Symbols of which nothing is known but the conditions, two each: from 0 to below a bound. */
static uint32_t add_ranges(world *w, const char *const (*bounds)[2], size_t symbols, uir_condition *out_given) {
    uint32_t count = 0;
    for (size_t i = 0; i < symbols; i++) {
        add_symbol(w, bounds[i][0], INT64_MIN, ANY, 1, NULL);
        out_given[count++] = (uir_condition){UIR_RELATION_GE, parse(w, bounds[i][0]), parse(w, "0")};
        out_given[count++] = (uir_condition){UIR_RELATION_LT, parse(w, bounds[i][0]), parse(w, bounds[i][1])};
    }
    return count;
}

/* The dim is less than `bound` by what is given, and nothing says that it is less than `tighter`. */
static void expect_least_bound(world *w, const uir_condition *given, uint32_t count, const char *dim, const char *bound,
                               const char *tighter) {
    assert_int_equal(uir_dim_compare_given(w->dims, given, count, parse(w, dim), UIR_RELATION_LT, parse(w, bound)),
                     UIR_TRUE);
    assert_int_equal(uir_dim_compare_given(w->dims, given, count, parse(w, dim), UIR_RELATION_LT, parse(w, tighter)),
                     UIR_UNKNOWN);
}

/* A loop that is split twice, by factors that do not divide: the condition that says so cancels two terms at once. */
static void test_split_twice(void **state) {
    world *w = *state;
    static const char *const bounds[][2] = {
        {"v0", "M"}, {"v1", "ceildiv(N, 32)"}, {"v2", "2"}, {"a", "16"}, {"b", "32"}, {"c", "32"}};
    uir_condition given[16];
    uint32_t count = add_ranges(w, bounds, sizeof bounds / sizeof *bounds, given);
    given[count++] = (uir_condition){UIR_RELATION_LT, parse(w, "b + v1*32"), parse(w, "N")};
    given[count++] = (uir_condition){UIR_RELATION_LT, parse(w, "a + v2*16"), parse(w, "30")};
    expect_least_bound(w, given, count, "c + a*32 + v2*512", "960", "959");
}

/* A sum of two of many conditions, each of which the search may take for the one that matters. */
static void test_two_of_many_assumptions(void **state) {
    world *w = *state;
    static const char *const bounds[][2] = {
        {"v0", "M"}, {"v1", "K"}, {"v2", "4*M"}, {"a", "3"}, {"b", "2"}, {"c", "ceildiv(N, 2)"}, {"d", "1"}};
    uir_condition given[16];
    uint32_t count = add_ranges(w, bounds, sizeof bounds / sizeof *bounds, given);
    given[count++] = (uir_condition){UIR_RELATION_LT, parse(w, "b + c*2"), parse(w, "N")};
    given[count++] = (uir_condition){UIR_RELATION_LT, parse(w, "a + d*3"), parse(w, "1")};
    expect_least_bound(w, given, count, "a + d*3 + b + c*2", "N", "N - 1");
}

/* A symbol between a number and itself is the number, however many other conditions there are. */
static void test_assumptions_of_one_value(void **state) {
    world *w = *state;
    const uir_condition given[] = {
        {UIR_RELATION_GE, parse(w, "p"), parse(w, "0")}, {UIR_RELATION_LT, parse(w, "p"), parse(w, "ceildiv(K, 3)")},
        {UIR_RELATION_GE, parse(w, "r"), parse(w, "0")}, {UIR_RELATION_LT, parse(w, "r"), parse(w, "3")},
        {UIR_RELATION_GE, parse(w, "z"), parse(w, "2")}, {UIR_RELATION_LT, parse(w, "z"), parse(w, "3")},
        {UIR_RELATION_GE, parse(w, "M"), parse(w, "0")}, {UIR_RELATION_LT, parse(w, "M"), parse(w, "N + 3")},
        {UIR_RELATION_LT, parse(w, "M"), parse(w, "N")}, {UIR_RELATION_LT, parse(w, "r + p*3"), parse(w, "K")},
    };
    const uint32_t count = sizeof given / sizeof *given;
    uir_dim left = parse(w, "z + r + p*3"), beyond = parse(w, "2*z + r + p*3");
    assert_int_equal(uir_dim_compare_given(w->dims, given, count, left, UIR_RELATION_LT, parse(w, "K + 2")), UIR_TRUE);
    assert_int_equal(uir_dim_compare_given(w->dims, given, count, left, UIR_RELATION_LT, parse(w, "K + 1")),
                     UIR_UNKNOWN);
    assert_int_equal(uir_dim_compare_given(w->dims, given, count, beyond, UIR_RELATION_LT, parse(w, "K + 4")),
                     UIR_TRUE);
    assert_int_equal(uir_dim_compare_given(w->dims, given, count, parse(w, "z*z"), UIR_RELATION_GE, parse(w, "4")),
                     UIR_TRUE);
    assert_int_equal(uir_dim_compare_given(w->dims, given, count, parse(w, "3*z"), UIR_RELATION_EQ, parse(w, "6")),
                     UIR_TRUE);
    assert_int_equal(uir_dim_compare_given(w->dims, given, count, parse(w, "z"), UIR_RELATION_NE, parse(w, "2")),
                     UIR_FALSE);
}

/* A multiple of a condition says what the condition says only where the factor is not negative. */
static void test_assumptions_times_a_factor(void **state) {
    world *w = *state;
    uir_condition given = {UIR_RELATION_GE, parse(w, "M"), parse(w, "5")};
    static const char *const claims[][2] = {{"z*M", "5*z"}, {"z*M*N", "5*z*N"}, {"(z + 4)*M", "5*(z + 4)"}};
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++)
        assert_int_not_equal(
            uir_dim_compare_given(w->dims, &given, 1, parse(w, claims[i][0]), UIR_RELATION_GE, parse(w, claims[i][1])),
            UIR_TRUE);
    assert_int_equal(uir_dim_compare_given(w->dims, &given, 1, parse(w, "N*M"), UIR_RELATION_GE, parse(w, "5*N")),
                     UIR_TRUE);
    assert_int_equal(
        uir_dim_compare_given(w->dims, &given, 1, parse(w, "(z + 5)*M"), UIR_RELATION_GE, parse(w, "5*(z + 5)")),
        UIR_TRUE);
}

/* Guards and requirements as kernels have them: what a verifier asks. */
static void test_kernel_claims(void **state) {
    world *w = *state;
    add_symbol(w, "cores", 1, 48, 1, NULL);
    add_symbol(w, "c", 0, ANY, 1, "cores");
    add_symbol(w, "u", 0, ANY, 1, "ceildiv(ceildiv(M, tr), cores)");
    add_symbol(w, "tp", 1, ANY, 32, NULL);
    add_symbol(w, "pn", 0, ANY, 1, "ceildiv(N, tp)");
    add_symbol(w, "jp", 0, ANY, 1, "tp/32");
    add_symbol(w, "sram", 0, ANY, 1, NULL);
    add_symbol(w, "H", 0, ANY, 1, NULL);
    add_symbol(w, "KH", 1, 16, 1, NULL);
    add_symbol(w, "sh", 1, 8, 1, NULL);
    add_symbol(w, "ho", 0, ANY, 1, "floordiv(H - KH, sh) + 1");
    add_symbol(w, "kh", 0, ANY, 1, "KH");
    add_symbol(w, "w0", 0, ANY, 1, "ceildiv(N, 14)");
    add_symbol(w, "wo", 0, ANY, 1, "14");
    add_symbol(w, "index", 0, ANY, 1, "M");
    static const struct {
        const char *given[3][3];
        const char *left, *relation, *right;
        uir_truth truth;
    } cases[] = {
        {{{"(u*cores + c)*tr", "<", "M"}}, "min(tr, M - (u*cores + c)*tr)", ">=", "1", UIR_TRUE},
        {{{"(u*cores + c)*tr", "<", "M"}}, "(u*cores + c)*tr + min(tr, M - (u*cores + c)*tr)", "<=", "M", UIR_TRUE},
        {{{0}}, "u*cores + c", "<", "ceildiv(M, tr) + cores", UIR_TRUE},
        {{{"kk", "==", "ceildiv(K, tk) - 1"}}, "kk*tk + min(tk, K - kk*tk)", "==", "K", UIR_TRUE},
        {{{"kk", "==", "ceildiv(K, tk) - 1"}}, "kk*tk + tk", ">=", "K", UIR_TRUE},
        {{{"kk", "<", "ceildiv(K, tk) - 1"}}, "kk*tk + tk", "<=", "K", UIR_TRUE},
        {{{"kk", "<", "ceildiv(K, tk) - 1"}}, "min(tk, K - kk*tk)", "==", "tk", UIR_TRUE},
        {{{"pn*tp + jp*32", "<", "N"}}, "pn*tp + jp*32 + 32", "<=", "ceildiv(N, 32)*32", UIR_TRUE},
        {{{"pn*tp + jp*32", "<", "N"}}, "pn*tp + jp*32 + 32", "<=", "N", UIR_UNKNOWN},
        {{{"tr*tn*4", "<=", "sram/2"}}, "2*tr*tn*4", "<=", "sram", UIR_TRUE},
        {{{"tr*tn*4", "<=", "sram/2"}}, "4*tr*tn*4", "<=", "sram", UIR_UNKNOWN},
        {{{"align(tr*tn*4, 64)*2 + 64", "<=", "sram"}}, "align(tr*tn*4, 64)*2", "<=", "sram", UIR_TRUE},
        {{{"tr*N*4", "<=", "sram"}}, "tr*N*4", ">", "sram", UIR_FALSE},
        {{{"H", ">=", "KH"}}, "ho*sh + kh", "<", "H", UIR_TRUE},
        {{{0}}, "ho*sh + kh", ">=", "0", UIR_TRUE},
        {{{0}}, "w0*14 + wo", "<", "align(N, 14)", UIR_TRUE},
        {{{"w0*14 + wo", "<", "N"}}, "floordiv(w0*14 + wo, 14)*14", "<", "N", UIR_TRUE},
        {{{0}}, "index*N + j", ">=", "0", UIR_TRUE},
        {{{"m*N + N", "<=", "K"}, {"N", ">", "0"}}, "m*N", "<", "K", UIR_TRUE},
        {{{"M", "==", "N"}}, "m", "<", "N", UIR_TRUE},
        {{{"M", "==", "4"}}, "p*tr", "<", "4", UIR_TRUE},
        {{{"p*tr + r", "<", "M"}, {"kk*tk", "<", "K"}}, "(p*tr + r)*K + kk*tk", "<", "M*K", UIR_TRUE},
        {{{"p*tr + r", "<", "M"}, {"kk*tk", "<", "K"}},
         "(p*tr + r)*K + kk*tk + min(tk, K - kk*tk)",
         "<=",
         "M*K",
         UIR_TRUE},
        {{{"r", "!=", "0"}}, "r", ">", "0", UIR_TRUE},
        {{{"r", "!=", "tr - 1"}}, "r + 1", "<", "tr", UIR_TRUE},
        {{{"ceildiv(M, tr)", "==", "1"}}, "M", "<=", "tr", UIR_TRUE},
        {{{"M", "<=", "tr"}}, "p", "==", "0", UIR_TRUE},
    };
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uir_condition given[3];
        uint32_t count = 0;
        for (; count < 3 && cases[i].given[count][0]; count++)
            given[count] = (uir_condition){relation_named(cases[i].given[count][1]), parse(w, cases[i].given[count][0]),
                                           parse(w, cases[i].given[count][2])};
        uir_truth truth = uir_dim_compare_given(w->dims, given, count, parse(w, cases[i].left),
                                                relation_named(cases[i].relation), parse(w, cases[i].right));
        if (truth == cases[i].truth) continue;
        fprintf(stderr, "%s %s %s: %d, expected %d\n", cases[i].left, cases[i].relation, cases[i].right, (int)truth,
                (int)cases[i].truth);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

static void test_narrowed_facts(void **state) {
    world *w = *state;
    uir_symbol symbol = add_symbol(w, "late", 0, ANY, 1, NULL);
    uir_dim dim = parse(w, "late*2 + 1"), rest = parse(w, "mod(late, 100)"), product = parse(w, "late*K");
    int64_t low, high;
    uir_dim_bounds(w->dims, rest, &low, &high);
    assert_int_equal(low, 0);
    assert_int_equal(high, 99);
    uir_dim_bounds(w->dims, dim, &low, &high);
    assert_int_equal(low, 1);
    uir_symbol_facts facts = uir_dims_symbol_facts(w->dims, symbol);
    facts.min = 10;
    facts.max = 20;
    uir_dims_set_symbol_facts(w->dims, symbol, facts);
    uir_dim_bounds(w->dims, dim, &low, &high);
    assert_int_equal(low, 21);
    assert_int_equal(high, 41);
    uir_dim_bounds(w->dims, rest, &low, &high);
    assert_int_equal(low, 10);
    assert_int_equal(high, 20);
    facts.max = facts.min = 0;
    uir_dims_set_symbol_facts(w->dims, symbol, facts);
    uir_dim_bounds(w->dims, rest, &low, &high);
    assert_true(low == 0 && high == 0);
    uir_dim_bounds(w->dims, product, &low, &high);
    assert_true(low == 0 && high == 0);
    facts.min = 10;
    /* A symbol bounded by itself, by mistake: no endless search. */
    facts.max = ANY;
    facts.bound = parse(w, "late + 1");
    uir_dims_set_symbol_facts(w->dims, symbol, facts);
    uir_dim_bounds(w->dims, dim, &low, &high);
    assert_int_equal(low, 21);
    assert_int_equal(uir_dim_compare(w->dims, dim, UIR_RELATION_LT, parse(w, "M")), UIR_UNKNOWN);
}

static void test_broadcast(void **state) {
    world *w = *state;
    uir_dim m = parse(w, "M"), n = parse(w, "N"), one = parse(w, "1"), four = parse(w, "4");
    assert_int_equal(uir_dim_broadcast(w->dims, m, m).id, m.id);
    assert_int_equal(uir_dim_broadcast(w->dims, m, one).id, m.id);
    assert_int_equal(uir_dim_broadcast(w->dims, one, m).id, m.id);
    assert_int_equal(uir_dim_broadcast(w->dims, m, four).id, four.id);
    uir_dim both = uir_dim_broadcast(w->dims, m, n);
    static const int64_t cases[][3] = {{1, 1, 1}, {1, 7, 7}, {7, 1, 7}, {7, 7, 7}, {0, 1, 0}, {1, 0, 0}, {0, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t value;
        assert_int_equal(uir_dim_evaluate(w->dims, both, cases[i], NULL, 2, &value), UIR_DIM_EVALUATED);
        assert_int_equal(value, cases[i][2]);
    }
}

static void test_evaluation(void **state) {
    world *w = *state;
    int64_t values[3] = {10, 3, INT64_MAX}, value;
    bool bound[3] = {true, false, true};
    assert_int_equal(uir_dim_evaluate(w->dims, parse(w, "ceildiv(M, N + 1)*2 - 1"), values, NULL, 3, &value),
                     UIR_DIM_EVALUATED);
    assert_int_equal(value, 5);
    assert_int_equal(uir_dim_evaluate(w->dims, parse(w, "M + N"), values, bound, 3, &value), UIR_DIM_UNBOUND);
    assert_int_equal(uir_dim_evaluate(w->dims, parse(w, "M + N"), values, NULL, 1, &value), UIR_DIM_UNBOUND);
    assert_int_equal(uir_dim_evaluate(w->dims, parse(w, "K + M"), values, NULL, 3, &value), UIR_DIM_OVERFLOW);
    assert_int_equal(uir_dim_evaluate(w->dims, parse(w, "K*K*K*K"), values, NULL, 3, &value), UIR_DIM_OVERFLOW);
    /* A product that was multiplied out is not undone by an intermediate overflow. */
    assert_int_equal(uir_dim_evaluate(w->dims, parse(w, "(K - 9223372036854775806)*(M + 1)"), values, NULL, 3, &value),
                     UIR_DIM_EVALUATED);
    assert_int_equal(value, 11);
    assert_int_equal(uir_dim_evaluate(w->dims, UIR_DIM_NONE, values, NULL, 3, &value), UIR_DIM_UNBOUND);
}

static void count_symbol(void *user, uir_symbol symbol) {
    ((uint32_t *)user)[symbol.id]++;
}

static void test_symbols_and_substitution(void **state) {
    world *w = *state;
    uint32_t counts[32] = {0};
    uir_dim_visit_symbols(w->dims, parse(w, "M*M + min(N, M) + floordiv(K, tr)"), count_symbol, counts);
    uint32_t total = 0;
    for (int i = 0; i < 32; i++) {
        assert_true(counts[i] <= 1);
        total += counts[i];
    }
    assert_int_equal(total, 4);
    uir_dim replacements[3] = {parse(w, "N*2"), UIR_DIM_NONE, parse(w, "5")};
    assert_int_equal(uir_dim_substitute(w->dims, parse(w, "M + N + K"), replacements, 3).id, parse(w, "3*N + 5").id);
    assert_int_equal(uir_dim_substitute(w->dims, parse(w, "tr"), replacements, 3).id, parse(w, "tr").id);
    assert_int_equal(uir_dim_substitute(w->dims, parse(w, "min(M, 2*N + 1)"), replacements, 3).id, parse(w, "2*N").id);
    uir_symbol m = {0}, k = {2};
    uir_dim_replacement listed[4] = {{m, parse(w, "7")}, {k, parse(w, "5")}, {m, parse(w, "N*2")}, {k, UIR_DIM_NONE}};
    assert_int_equal(uir_dim_replace(w->dims, parse(w, "M + N + K"), listed, 3).id, parse(w, "3*N + 5").id);
    assert_int_equal(uir_dim_replace(w->dims, parse(w, "M + N + K"), listed, 4).id, parse(w, "3*N + K").id);
    assert_int_equal(uir_dim_replace(w->dims, parse(w, "M + K"), NULL, 0).id, parse(w, "M + K").id);
}

static void test_none_and_overflow(void **state) {
    world *w = *state;
    uir_dim m = parse(w, "M"), big = uir_dim_const(w->dims, INT64_MAX);
    assert_int_equal(uir_dim_add(w->dims, m, UIR_DIM_NONE).id, 0);
    assert_int_equal(uir_dim_floordiv(w->dims, UIR_DIM_NONE, m).id, 0);
    assert_int_equal(uir_dim_add(w->dims, big, uir_dim_const(w->dims, 1)).id, 0);
    assert_int_equal(uir_dim_mul(w->dims, uir_dim_mul(w->dims, m, big), big).id, 0);
    assert_int_equal(uir_dim_compare(w->dims, m, UIR_RELATION_EQ, UIR_DIM_NONE), UIR_UNKNOWN);
    uir_dim square = m, sum = m;
    for (int i = 0; i < 10; i++) square = uir_dim_mul(w->dims, square, square);
    assert_int_equal(square.id, 0);
    for (int i = 0; i < 1000 && sum.id; i++) sum = uir_dim_max(w->dims, uir_dim_mod(w->dims, sum, parse(w, "s")), m);
    for (int i = 0; i < 1000 && sum.id; i++)
        sum = uir_dim_add(w->dims, uir_dim_floordiv(w->dims, uir_dim_add(w->dims, sum, m), parse(w, "s + 1")), m);
    assert_int_equal(sum.id, 0); /* too deep: refused, not crashed */
    for (int64_t v = 1; v < 9; v++) {
        assert_true(uir_dim_is_const(w->dims, uir_dim_const(w->dims, INT64_MIN + v), NULL));
        uir_dim low = uir_dim_const(w->dims, INT64_MIN);
        assert_int_equal(uir_dim_floordiv(w->dims, low, uir_dim_const(w->dims, v)).id != 0, true);
        assert_int_equal(uir_dim_mod(w->dims, low, uir_dim_const(w->dims, v)).id != 0, true);
    }
}

/* Names decide the order, not when symbols were made; symbols of one name come in the order of making. */
static void test_order_of_names(void **state) {
    world *w = *state;
    static const char *const names[] = {"qb", "qab", "q", "qa", "q", "r1"};
    enum { NAMES = sizeof names / sizeof *names };
    uir_dim symbols[NAMES], forward = uir_dim_const(w->dims, 0), backward = forward;
    for (int i = 0; i < NAMES; i++) symbols[i] = uir_dim_symbol(w->dims, add_symbol(w, names[i], 0, ANY, 1, NULL));
    for (int i = 0; i < NAMES; i++) {
        forward = uir_dim_add(w->dims, forward, symbols[i]);
        backward = uir_dim_add(w->dims, backward, symbols[NAMES - 1 - i]);
    }
    assert_int_equal(forward.id, backward.id);
    expect_text(w, forward, "q + q + qa + qab + qb + r1");
    assert_int_equal(uir_dim_get(w->dims, forward)->operands[0].id, symbols[2].id);
}

static void test_nothing(void **state) {
    world *w = *state;
    uint32_t counts[1] = {0};
    assert_null(uir_dim_get(w->dims, UIR_DIM_NONE));
    assert_false(uir_dim_is_const(w->dims, UIR_DIM_NONE, NULL));
    assert_false(uir_dim_mentions(w->dims, UIR_DIM_NONE, (uir_symbol){0}));
    uir_dim_visit_symbols(w->dims, UIR_DIM_NONE, count_symbol, counts);
    assert_int_equal(uir_dim_symbol(w->dims, (uir_symbol){uir_dims_symbol_count(w->dims)}).id, 0);
    uir_dims_destroy(NULL);
    uir_dim dim = parse(w, "M + floordiv(K, tr)");
    const uint32_t expected[] = {0, 2, 5}; /* M, K, tr */
    for (uint32_t i = 0; i < uir_dims_symbol_count(w->dims); i++) {
        bool mentioned = false;
        for (size_t k = 0; k < sizeof expected / sizeof *expected; k++) mentioned = mentioned || i == expected[k];
        assert_int_equal(uir_dim_mentions(w->dims, dim, (uir_symbol){i}), mentioned);
    }
}

static void test_bad_text(void **state) {
    world *w = *state;
    static const char *const cases[][2] = {
        {"", "expected a size: a number, a name or '('"},
        {"M +", "expected a size: a number, a name or '('"},
        {"(M", "expected ')', found the end"},
        {"Q + 1", "'Q' is not a known size"},
        {"ceildiv(M)", "ceildiv expects two operands"},
        {"ceildiv(M, 2, 3)", "ceildiv expects at most 2 operands"},
        {"min()", "expected a size: a number, a name or '('"},
        {"9223372036854775807 + 1", "the expression overflows or is too large"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uir_dim dim;
        assert_int_equal(read(w, cases[i][0], &dim), UIR_STATUS_BAD_FILE);
        assert_int_equal(dim.id, 0);
        assert_string_equal(w->diagnostics.last->message, cases[i][1]);
    }
    char deep[3000];
    memset(deep, '(', sizeof deep);
    deep[sizeof deep - 1] = 0;
    uir_dim dim;
    assert_int_equal(read(w, deep, &dim), UIR_STATUS_BAD_FILE);
    assert_string_equal(w->diagnostics.last->message, "the expression is nested too deeply");
    memset(deep, '-', sizeof deep - 1);
    assert_int_equal(read(w, deep, &dim), UIR_STATUS_BAD_FILE);
}

/* Names that are no names are quoted, whatever is in them. */
static void test_odd_names(void **state) {
    world *w = *state;
    add_symbol(w, "batch size*/\n", 1, ANY, 1, NULL);
    expect_simplified(w, "\"batch size*/\\n\"*2 + M", "M + \"batch size*/\\n\"*2");
    add_symbol(w, "min", 0, ANY, 1, NULL);
    expect_simplified(w, "min + min(min, 3)", "min + min(min, 3)");
}

static bool build_some(const uir_allocator *allocator) {
    uir_dims *dims;
    if (uir_dims_create(allocator, &dims) != UIR_STATUS_OK) return false;
    uir_symbol symbols[4];
    bool done = true;
    for (int i = 0; i < 4 && done; i++) {
        uir_symbol_facts facts = {i & 1, UIR_DIM_UNBOUNDED, 1 + i, UIR_DIM_NONE};
        done = uir_dims_add_symbol(dims, "name", 4, facts, &symbols[i]) == UIR_STATUS_OK;
    }
    for (int64_t round = 0; round < 40 && done; round++) {
        uir_dim a = uir_dim_symbol(dims, symbols[0]), b = uir_dim_symbol(dims, symbols[1]);
        uir_dim c = uir_dim_symbol(dims, symbols[2]), k = uir_dim_const(dims, round + 2);
        uir_dim sum = uir_dim_add(dims, uir_dim_mul(dims, a, k), uir_dim_floordiv(dims, uir_dim_add(dims, c, k), b));
        uir_dim rest = uir_dim_mod(dims, sum, k), low = uir_dim_min(dims, rest, uir_dim_sub(dims, c, a));
        uir_dim high = uir_dim_max(dims, uir_dim_ceildiv(dims, low, k), uir_dim_align(dims, c, k));
        uir_dim replacements[2] = {high, k}, replaced = uir_dim_substitute(dims, sum, replacements, 2);
        done = replaced.id != 0;
        uir_truth truth = uir_dim_compare(dims, uir_dim_mod(dims, a, k), UIR_RELATION_LT, k);
        assert_true(truth != UIR_FALSE);
        done = done && truth == UIR_TRUE;
        uir_text text;
        uir_text_init(&text, allocator);
        uir_dim_print(dims, high, &text);
        done = done && uir_text_status(&text) == UIR_STATUS_OK;
        uir_text_deinit(&text);
    }
    uir_dims_destroy(dims);
    return done;
}

static void test_shared_cost(void **state) {
    (void)state;
    static const struct {
        int64_t cost, units, workers, all;
    } cases[] = {
        {7, 5, 1, 35},
        {7, 5, 2, 21},
        {7, 6, 2, 21},
        {7, 5, 5, 7},
        {7, 5, 100, 7},
        {7, 0, 2, 0},
        {7, -1, 2, 0},
        {7, INT64_MIN, 1, 0},
        {0, 5, 1, 0},
        {7, 5, 0, 35},
        {7, 5, -3, 35},
        {1, INT64_MAX, 1, INT64_MAX},
        {1, INT64_MAX, 2, INT64_MAX / 2 + 1},
        {INT64_MAX / 2, 3, 1, INT64_MAX},
        {INT64_MAX / 2, 4, 2, INT64_MAX - 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(uir_shared_cost(cases[i].cost, cases[i].units, cases[i].workers), cases[i].all);
}

static void test_every_allocation_may_fail(void **state) {
    (void)state;
    run_with_failures(build_some);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_WORLD(test_simplification),
        WITH_WORLD(test_same_divisions),
        WITH_WORLD(test_unknown_divisors_stay),
        WITH_WORLD(test_known_bounds),
        WITH_WORLD(test_claims),
        WITH_WORLD(test_assumptions),
        WITH_WORLD(test_assumptions_of_one_value),
        WITH_WORLD(test_two_of_many_assumptions),
        WITH_WORLD(test_split_twice),
        WITH_WORLD(test_assumptions_times_a_factor),
        WITH_WORLD(test_kernel_claims),
        WITH_WORLD(test_narrowed_facts),
        WITH_WORLD(test_broadcast),
        WITH_WORLD(test_evaluation),
        WITH_WORLD(test_symbols_and_substitution),
        WITH_WORLD(test_none_and_overflow),
        WITH_WORLD(test_order_of_names),
        WITH_WORLD(test_nothing),
        WITH_WORLD(test_bad_text),
        WITH_WORLD(test_odd_names),
        cmocka_unit_test(test_shared_cost),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
