/* Symbolic dims by example: what must simplify, what must be proved, what must not. */
#include "support.h"

#include "base/dim.h"

#include <stdio.h>
#include <string.h>

typedef struct world {
    uir_allocator allocator;
    uir_dims *dims;
    uir_arena arena;
    uir_diagnostics diagnostics;
} world;

static uir_dim resolve(void *user, const char *name, size_t length) {
    const world *w = user;
    for (uint32_t i = 0; i < uir_dims_symbol_count(w->dims); i++) {
        const char *text = uir_dims_symbol_name(w->dims, (uir_symbol){i});
        if (strlen(text) == length && memcmp(text, name, length) == 0) return uir_dim_symbol(w->dims, (uir_symbol){i});
    }
    return UIR_DIM_NONE;
}

static uir_status read(world *w, const char *text, uir_dim *out_dim) {
    uir_tokenizer tokenizer;
    uir_tokenizer_init(&tokenizer, text, strlen(text), "t", &w->arena, &w->diagnostics);
    uir_status status = uir_dim_parse(w->dims, &tokenizer, resolve, w, out_dim);
    if (status == UIR_STATUS_OK && tokenizer.current.kind != UIR_TOKEN_END) return UIR_STATUS_BAD_FILE;
    return status;
}

static uir_dim parse(world *w, const char *text) {
    uir_dim dim;
    if (read(w, text, &dim) != UIR_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", text, w->diagnostics.last ? w->diagnostics.last->message : "?");
        fail();
    }
    return dim;
}

static uir_symbol add_symbol(world *w, const char *name, int64_t min, int64_t max, int64_t multiple,
                             const char *bound) {
    uir_symbol symbol;
    uir_symbol_facts facts = {min, max, multiple, bound ? parse(w, bound) : UIR_DIM_NONE};
    assert_int_equal(uir_dims_add_symbol(w->dims, name, strlen(name), facts, &symbol), UIR_STATUS_OK);
    return symbol;
}

#define ANY UIR_DIM_UNBOUNDED

static int begin(void **state) {
    static world w;
    w.allocator = uir_allocator_system();
    uir_arena_init(&w.arena, &w.allocator);
    uir_diagnostics_init(&w.diagnostics, &w.allocator);
    assert_int_equal(uir_dims_create(&w.allocator, &w.dims), UIR_STATUS_OK);
    add_symbol(&w, "M", 0, ANY, 1, NULL);
    add_symbol(&w, "N", 0, ANY, 1, NULL);
    add_symbol(&w, "K", 0, ANY, 1, NULL);
    add_symbol(&w, "s", 1, ANY, 1, NULL);
    add_symbol(&w, "z", -5, 5, 1, NULL);
    add_symbol(&w, "tr", 1, 64, 1, NULL);
    add_symbol(&w, "tn", 1, ANY, 16, NULL);
    add_symbol(&w, "tm", 1, ANY, 12, NULL);
    add_symbol(&w, "tk", 1, ANY, 1, NULL);
    add_symbol(&w, "p", 0, ANY, 1, "ceildiv(M, tr)");
    add_symbol(&w, "r", 0, ANY, 1, "tr");
    add_symbol(&w, "l", 0, ANY, 1, "ceildiv(N, tn)");
    add_symbol(&w, "kk", 0, ANY, 1, "ceildiv(K, tk)");
    add_symbol(&w, "i", 0, ANY, 1, "tm/12");
    add_symbol(&w, "j", 0, ANY, 1, "tn/16");
    add_symbol(&w, "m", 0, ANY, 1, "M");
    add_symbol(&w, "a", 0, ANY, 1, "tm");
    add_symbol(&w, "kb", 0, ANY, 1, "tk");
    add_symbol(&w, "g", 0, ANY, 1, "M*N");
    *state = &w;
    return 0;
}

static int end(void **state) {
    world *w = *state;
    uir_dims_destroy(w->dims);
    uir_diagnostics_deinit(&w->diagnostics);
    uir_arena_deinit(&w->arena);
    return 0;
}

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
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_simplified(w, cases[i][0], cases[i][1]);
}

/* A divisor that may be 0 stays, so that evaluation reports it. */
static void test_unknown_divisors_stay(void **state) {
    world *w = *state;
    static const char *const kept[] = {"floordiv(0, M)",  "mod(M, M)",      "floordiv(M, z)",
                                       "ceildiv(M*N, N)", "floordiv(5, 0)", "mod(5, -2)"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) expect_simplified(w, kept[i], kept[i]);
    int64_t values[3] = {0, 0, 0}, value;
    assert_int_equal(uir_dim_evaluate(w->dims, parse(w, "mod(M, M)"), values, NULL, 3, &value), UIR_DIM_DIVISION);
    assert_int_equal(uir_dim_evaluate(w->dims, parse(w, "floordiv(5, 0)"), values, NULL, 3, &value), UIR_DIM_DIVISION);
    /* No bound of a possibly undefined operand is used to drop it. */
    uir_dim lower = parse(w, "min(-1, floordiv(M, N))");
    assert_int_equal(uir_dim_evaluate(w->dims, lower, values, NULL, 3, &value), UIR_DIM_DIVISION);
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

/* ---- bounds, against counting ---- */

/* An end of a range: a number, or far away, where what depends on how far has no bound. */
enum { FAR = 1000 };
static const int64_t ends[] = {-FAR, -7, -3, -1, 0, 1, 2, 5, FAR};
enum { ENDS = sizeof ends / sizeof *ends };

typedef struct range {
    int64_t min, max;
} range;

static range scaled(range a, int64_t far) {
    return (range){a.min == -FAR ? -far : a.min, a.max == FAR ? far : a.max};
}

static int64_t floor_of(int64_t a, int64_t b) {
    int64_t quotient = a / b;
    return quotient * b > a ? quotient - 1 : quotient;
}

static int64_t apply(int op, int64_t a, int64_t b) {
    switch (op) {
    case '+':
        return a + b;
    case '*':
        return a * b;
    case '/':
        return floor_of(a, b);
    case '^':
        return -floor_of(-a, b);
    case '<':
        return a < b ? a : b;
    default:
        return a > b ? a : b;
    }
}

/* Every one of these is monotone in each operand, so the corners hold the least and the greatest value. */
static range corners(int op, range a, range b, int64_t far) {
    a = scaled(a, far);
    b = scaled(b, far);
    if ((op == '/' || op == '^') && b.min < 1) b.min = 1;
    int64_t values[4] = {apply(op, a.min, b.min), apply(op, a.min, b.max), apply(op, a.max, b.min),
                         apply(op, a.max, b.max)};
    range result = {values[0], values[0]};
    for (int i = 1; i < 4; i++) {
        result.min = apply('<', result.min, values[i]);
        result.max = apply('>', result.max, values[i]);
    }
    return result;
}

static range expected_bounds(int op, range a, range b) {
    if (op == '%') {
        range result = {0, b.max == FAR ? INT64_MAX : b.max - 1};
        if (a.min >= 0 && a.max != FAR && a.max < result.max) result.max = a.max;
        if (a.min >= 0 && a.max < b.min) result.min = a.min;
        return result;
    }
    range near = corners(op, a, b, FAR * 1000), further = corners(op, a, b, FAR * 1000 * 7);
    return (range){near.min == further.min ? near.min : INT64_MIN, near.max == further.max ? near.max : INT64_MAX};
}

/* What a rest by one of these divisors is, where the range is bounded. */
static range rests(range a, range b) {
    range result = {INT64_MAX, INT64_MIN};
    for (int64_t x = a.min; x <= a.max; x++) {
        for (int64_t y = b.min; y <= b.max; y++) {
            int64_t rest = x - floor_of(x, y) * y;
            result.min = apply('<', result.min, rest);
            result.max = apply('>', result.max, rest);
        }
    }
    return result;
}

/* The bounds of every operation over every pair of ranges are the tightest there are. */
static void test_bounds_of_operations(void **state) {
    world *w = *state;
    static const char operations[] = "+*/^%<>";
    range ranges[ENDS * ENDS];
    uir_dim left[ENDS * ENDS], right[ENDS * ENDS];
    uint32_t count = 0;
    for (int i = 0; i < ENDS; i++) {
        for (int j = i; j < ENDS; j++) {
            if (i == j && (i == 0 || i == ENDS - 1)) continue;
            ranges[count] = (range){ends[i], ends[j]};
            int64_t min = ends[i] == -FAR ? INT64_MIN : ends[i], max = ends[j] == FAR ? ANY : ends[j];
            left[count] = uir_dim_symbol(w->dims, add_symbol(w, "x", min, max, 1, NULL));
            right[count++] = uir_dim_symbol(w->dims, add_symbol(w, "y", min, max, 1, NULL));
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < count; j++) {
            for (const char *op = operations; *op; op++) {
                if (strchr("/^%", *op) && ranges[j].max < 1) continue;
                if (*op == '%' && ranges[j].min < 1) continue;
                uir_dim a = left[i], b = right[j];
                uir_dim dim = *op == '+'   ? uir_dim_add(w->dims, a, b)
                              : *op == '*' ? uir_dim_mul(w->dims, a, b)
                              : *op == '/' ? uir_dim_floordiv(w->dims, a, b)
                              : *op == '^' ? uir_dim_ceildiv(w->dims, a, b)
                              : *op == '%' ? uir_dim_mod(w->dims, a, b)
                              : *op == '<' ? uir_dim_min(w->dims, a, b)
                                           : uir_dim_max(w->dims, a, b);
                range expected = expected_bounds(*op, ranges[i], ranges[j]), found;
                uir_dim_bounds(w->dims, dim, &found.min, &found.max);
                /* What is known of a rest may be more. */
                if (*op == '%' && found.min > expected.min) expected.min = rests(ranges[i], ranges[j]).min;
                if (*op == '%' && found.max < expected.max) expected.max = rests(ranges[i], ranges[j]).max;
                if (found.min != expected.min || found.max != expected.max)
                    fprintf(stderr, "[%lld, %lld] %c [%lld, %lld]\n", (long long)ranges[i].min,
                            (long long)ranges[i].max, *op, (long long)ranges[j].min, (long long)ranges[j].max);
                assert_int_equal(found.min, expected.min);
                assert_int_equal(found.max, expected.max);
            }
        }
    }
}

/* The bounds of a symbol: its own, its axis' extent, its divisor; and of powers, and where 64 bits end. */
static void test_bounds_of_facts(void **state) {
    world *w = *state;
    static const struct {
        int64_t min, max, multiple;
        const char *bound;
        int64_t low, high, divisor;
    } symbols[] = {
        {3, 30, 8, NULL, 8, 24, 8},
        {-30, -3, 8, NULL, -24, -8, 8},
        {-30, 30, 8, NULL, -24, 24, 8},
        {8, 24, 8, NULL, 8, 24, 8},
        {1, ANY, 8, NULL, 8, INT64_MAX, 8},
        {INT64_MIN, 30, 8, NULL, INT64_MIN, 24, 8},
        {INT64_MIN + 1, INT64_MAX - 1, 8, NULL, INT64_MIN + 8, INT64_MAX - 7, 8},
        {6, 6, 1, NULL, 6, 6, 6},
        {-6, -6, 1, NULL, -6, -6, 6},
        {0, 0, 1, NULL, 0, 0, 0},
        {0, 7, 0, NULL, 0, 7, 1},
        {0, 7, -3, NULL, 0, 7, 1},
        {0, ANY, 1, "tr", 0, 63, 1},
        {0, ANY, 8, "tr", 0, 56, 8},
        {0, 10, 1, "tr", 0, 10, 1},
        {0, 100, 1, "tr", 0, 63, 1},
        {0, 63, 1, "tr", 0, 63, 1},
        {0, ANY, 1, "M", 0, INT64_MAX, 1},
        {0, 100, 1, "M", 0, 100, 1},
        {-9, ANY, 1, "-5", -9, -6, 1},
    };
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        int64_t low, high;
        uir_symbol symbol = add_symbol(w, "x", symbols[i].min, symbols[i].max, symbols[i].multiple, symbols[i].bound);
        uir_dim dim = uir_dim_symbol(w->dims, symbol);
        uir_dim_bounds(w->dims, dim, &low, &high);
        assert_int_equal(low, symbols[i].low);
        assert_int_equal(high, symbols[i].high);
        assert_int_equal(uir_dim_multiple(w->dims, dim), symbols[i].divisor);
    }
    add_symbol(w, "e", -3, 5, 1, NULL);
    static const struct {
        const char *text;
        int64_t low, high, divisor;
    } rows[] = {
        {"z*z*z", -125, 125, 1},
        {"z*z*z*z", 0, 625, 1},
        {"e*e", 0, 25, 1},
        {"e*e*e", -75, 125, 1},
        {"-e*e", -25, 0, 1},
        {"e*e*z", -125, 125, 1},
        {"e*z*2", -50, 50, 2},
        {"tr*4611686018427387904", 4611686018427387904, INT64_MAX, 4611686018427387904},
        {"z*4611686018427387904", INT64_MIN, INT64_MAX, 4611686018427387904},
        {"tr + 9223372036854775807", INT64_MAX - 1, INT64_MAX, 1},
        {"z - 9223372036854775800", INT64_MIN + 3, INT64_MIN + 13, 1},
        {"z - 9223372036854775804", INT64_MIN, INT64_MIN + 9, 1},
        {"-9223372036854775808", INT64_MIN, INT64_MIN + 1, 4611686018427387904},
        {"9223372036854775807", INT64_MAX - 1, INT64_MAX, INT64_MAX},
        {"tn*9223372036854775807", INT64_MAX - 1, INT64_MAX, INT64_MAX},
        {"mod(tn, 24)", 0, 23, 8},
        {"mod(tn, tm)", 0, INT64_MAX, 4},
        {"min(tn, 24)", 16, 24, 8},
        {"max(tn, tm)", 16, INT64_MAX, 4},
        {"tn - tm", INT64_MIN, INT64_MAX, 4},
        {"tn*3 - 64", -16, INT64_MAX, 16},
        {"floordiv(tn, 3)", 5, INT64_MAX, 1},
        {"floordiv(tn, s)", 0, INT64_MAX, 1},
        {"floordiv(tn*3, 8)", 6, INT64_MAX, 6},
        {"ceildiv(tr, 16)", 1, 4, 1},
        {"z*4 + tn", -4, INT64_MAX, 4},
        {"floordiv(M, -4)", 0, INT64_MAX, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t low, high;
        uir_dim dim = parse(w, rows[i].text);
        uir_dim_bounds(w->dims, dim, &low, &high);
        if (low != rows[i].low || high != rows[i].high || uir_dim_multiple(w->dims, dim) != rows[i].divisor)
            fprintf(stderr, "%s: %lld .. %lld, divisor %lld\n", rows[i].text, (long long)low, (long long)high,
                    (long long)uir_dim_multiple(w->dims, dim));
        assert_int_equal(low, rows[i].low);
        assert_int_equal(high, rows[i].high);
        assert_int_equal(uir_dim_multiple(w->dims, dim), rows[i].divisor);
    }
    int64_t low, high;
    uir_dim_bounds(w->dims, UIR_DIM_NONE, &low, &high);
    assert_true(low == INT64_MIN && high == INT64_MAX);
    assert_int_equal(uir_dim_multiple(w->dims, UIR_DIM_NONE), 1);
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
    uir_dim dim = parse(w, "late*2 + 1");
    int64_t low, high;
    uir_dim_bounds(w->dims, dim, &low, &high);
    assert_int_equal(low, 1);
    uir_symbol_facts facts = uir_dims_symbol_facts(w->dims, symbol);
    facts.min = 10;
    facts.max = 20;
    uir_dims_set_symbol_facts(w->dims, symbol, facts);
    uir_dim_bounds(w->dims, dim, &low, &high);
    assert_int_equal(low, 21);
    assert_int_equal(high, 41);
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

static void test_bad_text(void **state) {
    world *w = *state;
    static const char *const cases[][2] = {
        {"", "expected a size: a number, a name or '('"},
        {"M +", "expected a size: a number, a name or '('"},
        {"(M", "expected ')', found the end"},
        {"Q + 1", "'Q' is not a known size"},
        {"ceildiv(M)", "ceildiv takes two operands"},
        {"ceildiv(M, 2, 3)", "ceildiv takes at most 2 operands"},
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

static void test_every_allocation_may_fail(void **state) {
    (void)state;
    run_with_failures(build_some);
}

int main(void) {
#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, begin, end)
    const struct CMUnitTest tests[] = {
        WITH_WORLD(test_simplification),
        WITH_WORLD(test_unknown_divisors_stay),
        WITH_WORLD(test_known_bounds),
        WITH_WORLD(test_bounds_of_operations),
        WITH_WORLD(test_bounds_of_facts),
        WITH_WORLD(test_claims),
        WITH_WORLD(test_assumptions),
        WITH_WORLD(test_assumptions_times_a_factor),
        WITH_WORLD(test_kernel_claims),
        WITH_WORLD(test_narrowed_facts),
        WITH_WORLD(test_broadcast),
        WITH_WORLD(test_evaluation),
        WITH_WORLD(test_symbols_and_substitution),
        WITH_WORLD(test_none_and_overflow),
        WITH_WORLD(test_bad_text),
        WITH_WORLD(test_odd_names),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
