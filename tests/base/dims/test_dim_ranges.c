/* Symbolic dims against counting: bounds and relations over every pair of small ranges, and where the limits are. */
#include "dim_world.h"

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
        {"floordiv(tn, -4)", 16, INT64_MAX, 1},
        {"ceildiv(tn, 0)", 16, INT64_MAX, 1},
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

/* TRUE where the relation holds for all of the pairs, FALSE where it holds for none. */
static uir_truth truth_of_ranges(range a, uir_relation relation, range b) {
    bool all = true, none = true;
    for (int64_t x = a.min; x <= a.max; x++) {
        for (int64_t y = b.min; y <= b.max; y++) {
            bool holds = uir_relation_holds(relation, x, y);
            all = all && holds;
            none = none && !holds;
        }
    }
    return all ? UIR_TRUE : none ? UIR_FALSE : UIR_UNKNOWN;
}

/* Every relation between every two ranges that lie apart, touch or overlap; and between one and itself, moved. */
static void test_relations_of_ranges(void **state) {
    world *w = *state;
    enum { MOST = 5 };
    uir_dim left[MOST][MOST], right[MOST][MOST];
    for (int i = 0; i < MOST; i++) {
        for (int j = i; j < MOST; j++) {
            left[i][j] = uir_dim_symbol(w->dims, add_symbol(w, "x", i, j, 1, NULL));
            right[i][j] = uir_dim_symbol(w->dims, add_symbol(w, "y", i, j, 1, NULL));
        }
    }
    for (int at = 0; at < MOST * MOST * MOST * MOST * 6; at++) {
        int i = at % MOST, j = at / MOST % MOST, k = at / MOST / MOST % MOST, l = at / MOST / MOST / MOST % MOST;
        uir_relation relation = (uir_relation)(at / (MOST * MOST * MOST * MOST));
        if (j < i || l < k) continue;
        uir_truth expected = truth_of_ranges((range){i, j}, relation, (range){k, l});
        assert_int_equal(uir_dim_compare(w->dims, left[i][j], relation, right[k][l]), expected);
        /* The same of symbols of which nothing is known. */
        uir_dim m = parse(w, "M*3"), n = parse(w, "N");
        assert_int_equal(uir_dim_compare(w->dims, uir_dim_add(w->dims, m, left[i][j]), relation,
                                         uir_dim_add(w->dims, right[k][l], m)),
                         expected);
        if (i == j && k == l) continue;
        assert_int_equal(uir_dim_compare(w->dims, uir_dim_add(w->dims, m, left[i][j]), relation,
                                         uir_dim_add(w->dims, n, right[k][l])),
                         UIR_UNKNOWN);
    }
    for (int64_t moved = -2; moved <= 2; moved++)
        for (int relation = 0; relation < 6; relation++)
            assert_int_equal(uir_dim_compare(w->dims, parse(w, "M*N - K"), (uir_relation)relation,
                                             uir_dim_add(w->dims, parse(w, "M*N - K"), uir_dim_const(w->dims, moved))),
                             truth_of_ranges((range){0, 0}, (uir_relation)relation, (range){moved, moved}));
}

/* x in [0, 9] of which one thing is given: what then holds of it against every number. */
static void test_relations_given(void **state) {
    world *w = *state;
    uir_dim x = uir_dim_symbol(w->dims, add_symbol(w, "x", 0, 9, 1, NULL));
    for (int given = 0; given < 6; given++) {
        for (int64_t c = 0; c < 10; c++) {
            uir_condition condition = {(uir_relation)given, x, uir_dim_const(w->dims, c)};
            uir_condition mirrored = {condition.relation, uir_dim_sub(w->dims, parse(w, "M"), condition.right),
                                      uir_dim_sub(w->dims, parse(w, "M"), x)};
            for (int asked = 0; asked < 6; asked++) {
                for (int64_t d = -1; d <= 10; d++) {
                    bool all = true, none = true;
                    for (int64_t value = 0; value <= 9; value++) {
                        if (!uir_relation_holds((uir_relation)given, value, c)) continue;
                        bool holds = uir_relation_holds((uir_relation)asked, value, d);
                        all = all && holds;
                        none = none && !holds;
                    }
                    if (all && none) continue; /* there is no such x */
                    uir_truth expected = all ? UIR_TRUE : none ? UIR_FALSE : UIR_UNKNOWN;
                    /* A number left out between others is no bound. */
                    if (given == UIR_RELATION_NE && d == c && c > 0 && c < 9 && asked <= UIR_RELATION_NE)
                        expected = UIR_UNKNOWN;
                    uir_truth found = uir_dim_compare_given(w->dims, &condition, 1, x, (uir_relation)asked,
                                                            uir_dim_const(w->dims, d));
                    uir_truth same =
                        uir_dim_compare_given(w->dims, &mirrored, 1, x, (uir_relation)asked, uir_dim_const(w->dims, d));
                    assert_int_equal(found, expected);
                    assert_int_equal(same, expected);
                }
            }
        }
    }
}

/* The largest product, sum and min there are, and one more. */
static void test_limits(void **state) {
    world *w = *state;
    enum { DEGREE = 64, TERMS = 1024, OPERANDS = 64 };
    uir_dim m = parse(w, "M"), power = m;
    for (int i = 1; i < DEGREE; i++) power = uir_dim_mul(w->dims, power, m);
    assert_int_not_equal(power.id, 0);
    assert_int_equal(uir_dim_get(w->dims, power)->count, DEGREE);
    assert_int_not_equal(uir_dim_mul(w->dims, power, uir_dim_const(w->dims, 7)).id, 0);
    assert_int_equal(uir_dim_mul(w->dims, power, m).id, 0);
    assert_int_equal(uir_dim_get(w->dims, parse(w, "M*N"))->count, 2);
    assert_int_equal(uir_dim_get(w->dims, parse(w, "M*N*2"))->count, 3);
    assert_int_equal(uir_dim_get(w->dims, parse(w, "M + N"))->count, 2);
    char text[OPERANDS * 5 + 20] = "min(M", more[sizeof text + 8];
    size_t length = strlen(text);
    static uir_dim sums[TERMS];
    for (int i = 0; i < TERMS; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        sums[i] = uir_dim_symbol(w->dims, add_symbol(w, name, 0, ANY, 1, NULL));
        if (i + 1 < OPERANDS) length += (size_t)snprintf(text + length, sizeof text - length, ", %s", name);
    }
    for (int step = 1; step < TERMS; step *= 2)
        for (int i = 0; i < TERMS; i += 2 * step) sums[i] = uir_dim_add(w->dims, sums[i], sums[i + step]);
    assert_int_not_equal(sums[0].id, 0);
    assert_int_equal(uir_dim_get(w->dims, sums[0])->count, TERMS);
    assert_int_equal(uir_dim_add(w->dims, sums[0], m).id, 0);
    snprintf(more, sizeof more, "%s, s900)", text);
    snprintf(text + length, sizeof text - length, ")");
    assert_int_equal(uir_dim_get(w->dims, parse(w, text))->count, OPERANDS);
    uir_dim dim;
    assert_int_equal(read(w, more, &dim), UIR_STATUS_BAD_FILE);
}

/* However many there are: one handle for one value, found again. */
static void test_many_nodes(void **state) {
    world *w = *state;
    enum { COUNT = 120000 };
    uir_dim m = parse(w, "M");
    uint32_t first = uir_dim_const(w->dims, 1000).id;
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            uir_dim number = uir_dim_const(w->dims, 1000 + (int64_t)i), sum = uir_dim_add(w->dims, m, number);
            const uir_dim_node *node = uir_dim_get(w->dims, sum);
            assert_int_equal(number.id, first + 2 * i);
            assert_int_equal(sum.id, first + 2 * i + 1);
            assert_int_equal(node->kind, UIR_DIM_ADD);
            assert_int_equal(node->operands[1].id, number.id);
        }
    }
}

/* 200 levels, a million nodes written out. */
static void test_depth_and_size(void **state) {
    world *w = *state;
    uir_dim deep = parse(w, "M"), large = deep;
    int levels = 0, doublings = 0;
    for (; deep.id; levels++)
        deep = uir_dim_mod(w->dims, deep, uir_dim_symbol(w->dims, add_symbol(w, "d", 1, ANY, 1, NULL)));
    assert_int_equal(levels, 200);
    for (; large.id && doublings < 60; doublings++) {
        uir_dim fresh = uir_dim_symbol(w->dims, add_symbol(w, "f", 1, ANY, 1, NULL));
        uir_dim divisor = uir_dim_add(w->dims, large, fresh);
        large = uir_dim_min(w->dims, uir_dim_mod(w->dims, parse(w, "N"), divisor),
                            uir_dim_floordiv(w->dims, parse(w, "K"), divisor));
    }
    assert_true(doublings > 12 && doublings < 25);
}

/* One operation on values gives what the evaluation of a dim gives. */
static void test_operations_on_values(void **state) {
    static const struct {
        uir_dim_kind kind;
        const char *text;
    } kinds[] = {{UIR_DIM_ADD, "x + y"},
                 {UIR_DIM_MUL, "x*y"},
                 {UIR_DIM_MIN, "min(x, y)"},
                 {UIR_DIM_MAX, "max(x, y)"},
                 {UIR_DIM_MOD, "mod(x, y)"},
                 {UIR_DIM_FLOORDIV, "floordiv(x, y)"},
                 {UIR_DIM_CEILDIV, "ceildiv(x, y)"}};
    static const int64_t values[] = {INT64_MIN, INT64_MIN + 1, -7, -6, -1, 0, 1, 2, 3, 7, INT64_MAX - 1, INT64_MAX};
    enum { COUNT = sizeof values / sizeof *values };
    world *w = *state;
    uir_symbol x = add_symbol(w, "x", INT64_MIN, INT64_MAX, 1, NULL),
               y = add_symbol(w, "y", INT64_MIN, INT64_MAX, 1, NULL);
    int64_t bound[64] = {0}, want = 0, got;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        uir_dim dim = parse(w, kinds[k].text);
        assert_true(dim.id != 0 && x.id < 64 && y.id < 64);
        for (int at = 0; at < COUNT * COUNT; at++) {
            bound[x.id] = values[at % COUNT], bound[y.id] = values[at / COUNT];
            bool has = uir_dim_evaluate(w->dims, dim, bound, NULL, 64, &want) == UIR_DIM_EVALUATED;
            assert_int_equal(uir_dim_operate(kinds[k].kind, bound[x.id], bound[y.id], &got), has);
            if (has) assert_int_equal(got, want);
        }
    }
    assert_false(uir_dim_operate(UIR_DIM_CONST, 1, 1, &got));
    assert_false(uir_dim_operate(UIR_DIM_SYMBOL, 1, 1, &got));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_WORLD(test_bounds_of_operations),
        WITH_WORLD(test_bounds_of_facts),
        WITH_WORLD(test_relations_of_ranges),
        WITH_WORLD(test_relations_given),
        WITH_WORLD(test_limits),
        WITH_WORLD(test_many_nodes),
        WITH_WORLD(test_depth_and_size),
        WITH_WORLD(test_operations_on_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
