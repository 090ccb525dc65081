/* Symbolic dims against plain evaluation: random expressions are kept as trees beside the simplified dims, and whatever
 * the library says of a dim must hold for the tree at random bindings that the facts allow. */
#include "tests/base/support.h"

#include "base/dims/dim.h"

#include <stdio.h>
#include <string.h>

__extension__ typedef __int128 wide;

enum { SYMBOL_COUNT = 7, TREE_MAX = 4096, BINDING_COUNT = 24 };

typedef struct tree {
    uir_dim_kind kind;
    int64_t value;
    int left, right;
} tree;

typedef struct world {
    random_state random;
    uir_dims *dims;
    tree trees[TREE_MAX];
    int tree_count;
    uir_symbol_facts facts[SYMBOL_COUNT];
    int bound_trees[SYMBOL_COUNT]; /* -1: none */
    int64_t values[SYMBOL_COUNT];
} world;

static int64_t pick(world *w, int64_t low, int64_t high) {
    return random_between(&w->random, low, high);
}

static int add_tree(world *w, uir_dim_kind kind, int64_t value, int left, int right) {
    assert_true(w->tree_count < TREE_MAX);
    w->trees[w->tree_count] = (tree){kind, value, left, right};
    return w->tree_count++;
}

/* False where it is undefined. */
static bool tree_value(const world *w, int at, wide *out) {
    const tree *t = &w->trees[at];
    wide a, b;
    if (t->kind == UIR_DIM_CONST) {
        *out = t->value;
        return true;
    }
    if (t->kind == UIR_DIM_SYMBOL) {
        *out = w->values[t->value];
        return true;
    }
    if (!tree_value(w, t->left, &a) || !tree_value(w, t->right, &b)) return false;
    switch (t->kind) {
    case UIR_DIM_ADD:
        *out = a + b;
        return true;
    case UIR_DIM_MUL:
        *out = a * b;
        return true;
    case UIR_DIM_MIN:
        *out = a < b ? a : b;
        return true;
    case UIR_DIM_MAX:
        *out = a > b ? a : b;
        return true;
    default:
        break;
    }
    if (b <= 0) return false;
    wide rest = a % b;
    if (rest < 0) rest += b;
    if (t->kind == UIR_DIM_MOD)
        *out = rest;
    else
        *out = (a - rest) / b + (t->kind == UIR_DIM_CEILDIV && rest != 0);
    return true;
}

static uir_dim build(world *w, int at) {
    const tree *t = &w->trees[at];
    if (t->kind == UIR_DIM_CONST) return uir_dim_const(w->dims, t->value);
    if (t->kind == UIR_DIM_SYMBOL) return uir_dim_symbol(w->dims, (uir_symbol){(uint32_t)t->value});
    uir_dim a = build(w, t->left), b = build(w, t->right);
    switch (t->kind) {
    case UIR_DIM_ADD:
        return uir_dim_add(w->dims, a, b);
    case UIR_DIM_MUL:
        return uir_dim_mul(w->dims, a, b);
    case UIR_DIM_MIN:
        return uir_dim_min(w->dims, a, b);
    case UIR_DIM_MAX:
        return uir_dim_max(w->dims, a, b);
    case UIR_DIM_FLOORDIV:
        return uir_dim_floordiv(w->dims, a, b);
    case UIR_DIM_CEILDIV:
        return uir_dim_ceildiv(w->dims, a, b);
    default:
        return uir_dim_mod(w->dims, a, b);
    }
}

/* A random expression over the first `symbols` symbols. */
static int random_tree(world *w, int depth, int symbols) {
    static const int64_t constants[] = {0, 1, 1, 2, 3, 4, 8, 12, 16, 5, 7, -1, -2, -8};
    if (depth == 0 || pick(w, 0, 5) == 0) {
        if (symbols && pick(w, 0, 2)) return add_tree(w, UIR_DIM_SYMBOL, pick(w, 0, symbols - 1), -1, -1);
        size_t i = (size_t)pick(w, 0, sizeof constants / sizeof *constants - 1);
        return add_tree(w, UIR_DIM_CONST, constants[i], -1, -1);
    }
    static const uir_dim_kind kinds[] = {UIR_DIM_ADD, UIR_DIM_ADD, UIR_DIM_ADD,      UIR_DIM_MUL,     UIR_DIM_MUL,
                                         UIR_DIM_MIN, UIR_DIM_MAX, UIR_DIM_FLOORDIV, UIR_DIM_CEILDIV, UIR_DIM_MOD};
    uir_dim_kind kind = kinds[pick(w, 0, sizeof kinds / sizeof *kinds - 1)];
    int left = random_tree(w, depth - 1, symbols), right = random_tree(w, depth - 1, symbols);
    /* Whether something is zero: what slices and broadcasts of symbolic dims ask. */
    if (kind == UIR_DIM_MIN && pick(w, 0, 2) == 0) right = add_tree(w, UIR_DIM_CONST, 1, -1, -1);
    /* Subtraction, and the shapes that kernels are made of: i*t + r, ceildiv(n, t)*t, x - floordiv(x, t)*t. */
    if (kind == UIR_DIM_ADD && pick(w, 0, 3) == 0)
        right = add_tree(w, UIR_DIM_MUL, 0, add_tree(w, UIR_DIM_CONST, -1, -1, -1), right);
    int made = add_tree(w, kind, 0, left, right);
    bool division = kind == UIR_DIM_FLOORDIV || kind == UIR_DIM_CEILDIV;
    if (division && pick(w, 0, 2) == 0) made = add_tree(w, UIR_DIM_MUL, 0, made, right);
    if (division && pick(w, 0, 3) == 0)
        made = add_tree(w, UIR_DIM_ADD, 0, made, add_tree(w, UIR_DIM_MOD, 0, left, right));
    return made;
}

/* A loop's extent: mostly one that is often positive. */
static int random_bound(world *w, int symbols) {
    int size = add_tree(w, UIR_DIM_SYMBOL, pick(w, 0, symbols - 1), -1, -1);
    int other = pick(w, 0, 1) ? add_tree(w, UIR_DIM_SYMBOL, pick(w, 0, symbols - 1), -1, -1)
                              : add_tree(w, UIR_DIM_CONST, pick(w, 1, 16), -1, -1);
    switch (pick(w, 0, 5)) {
    case 0:
        return size;
    case 1:
        return add_tree(w, UIR_DIM_CEILDIV, 0, size, other);
    case 2:
        return add_tree(w, UIR_DIM_MIN, 0, size, other);
    case 3:
        return add_tree(w, UIR_DIM_ADD, 0, size, other);
    case 4:
        return other;
    default:
        return random_tree(w, 2, symbols);
    }
}

static void begin_world(world *w, uint64_t seed) {
    uir_allocator allocator = uir_allocator_system();
    memset(w, 0, sizeof *w);
    w->random.state = seed * 0x9e3779b97f4a7c15u | 1;
    assert_int_equal(uir_dims_create(&allocator, &w->dims), UIR_STATUS_OK);
    for (int i = 0; i < SYMBOL_COUNT; i++) {
        static const int64_t multiples[] = {1, 1, 1, 1, 2, 4, 12};
        uir_symbol_facts facts = UIR_SYMBOL_FACTS_SIZE;
        facts.multiple_of = multiples[pick(w, 0, 6)];
        facts.min = pick(w, 0, 3) == 0 ? pick(w, -6, 6) : pick(w, 0, 1);
        if (pick(w, 0, 3) == 0) facts.max = facts.min + pick(w, 0, 30);
        w->bound_trees[i] = -1;
        if (i >= 3) { /* an axis index */
            facts = UIR_SYMBOL_FACTS_SIZE;
            w->bound_trees[i] = random_bound(w, i);
            facts.bound = build(w, w->bound_trees[i]);
            if (!facts.bound.id) w->bound_trees[i] = -1;
        }
        char name[2] = {(char)('a' + i), 0};
        uir_symbol symbol;
        assert_int_equal(uir_dims_add_symbol(w->dims, name, 1, facts, &symbol), UIR_STATUS_OK);
        assert_int_equal(symbol.id, i);
        w->facts[i] = facts;
    }
}

static bool facts_allow(const world *w, int symbol, wide value) {
    const uir_symbol_facts *facts = &w->facts[symbol];
    wide bound;
    if (value < facts->min || (facts->max != UIR_DIM_UNBOUNDED && value > facts->max)) return false;
    if (value % facts->multiple_of) return false;
    return w->bound_trees[symbol] < 0 || (tree_value(w, w->bound_trees[symbol], &bound) && value < bound);
}

/* Values that the facts allow; false when the draw met an empty range. */
static bool draw_binding(world *w) {
    for (int i = 0; i < SYMBOL_COUNT; i++) {
        const uir_symbol_facts *facts = &w->facts[i];
        int64_t low = facts->min, high = facts->min + (pick(w, 0, 3) ? 6 : 60);
        wide bound;
        if (facts->max < high) high = facts->max;
        if (w->bound_trees[i] >= 0) {
            if (!tree_value(w, w->bound_trees[i], &bound)) return false;
            if (bound - 1 < high) high = (int64_t)(bound - 1);
            if (pick(w, 0, 2) == 0 && bound - 1 < 100000) high = (int64_t)(bound - 1); /* the far end as well */
        }
        if (low > high) return false;
        int choice = (int)pick(w, 0, 3);
        int64_t value = choice == 0 ? low : choice == 1 ? high : pick(w, low, high);
        value -= ((value % facts->multiple_of) + facts->multiple_of) % facts->multiple_of;
        if (value < low) value += facts->multiple_of;
        w->values[i] = value;
        if (!facts_allow(w, i, value)) return false;
    }
    return true;
}

static void print_tree(const world *w, int at) {
    static const char *const names[] = {"", "", "add", "mul", "floordiv", "ceildiv", "mod", "min", "max"};
    const tree *t = &w->trees[at];
    if (t->kind == UIR_DIM_CONST) {
        fprintf(stderr, "%lld", (long long)t->value);
    } else if (t->kind == UIR_DIM_SYMBOL) {
        fprintf(stderr, "%c", (char)('a' + t->value));
    } else {
        fprintf(stderr, "%s(", names[t->kind]);
        print_tree(w, t->left);
        fprintf(stderr, ", ");
        print_tree(w, t->right);
        fprintf(stderr, ")");
    }
}

static void print_dim(const world *w, const char *what, uir_dim dim) {
    uir_allocator allocator = uir_allocator_system();
    uir_text text;
    uir_text_init(&text, &allocator);
    uir_dim_print(w->dims, dim, &text);
    fprintf(stderr, "%s %s\n", what, text.data);
    uir_text_deinit(&text);
}

static void complain(const world *w, const char *what, int at, uir_dim dim) {
    fprintf(stderr, "%s\n  tree ", what);
    print_tree(w, at);
    fprintf(stderr, "\n");
    print_dim(w, "  dim ", dim);
    for (int i = 0; i < SYMBOL_COUNT; i++) {
        const uir_symbol_facts *f = &w->facts[i];
        fprintf(stderr, "  %c = %lld in %lld..%lld mult %lld", (char)('a' + i), (long long)w->values[i],
                (long long)f->min, (long long)f->max, (long long)f->multiple_of);
        if (f->bound.id)
            print_dim(w, " below", f->bound);
        else
            fprintf(stderr, "\n");
    }
    fail();
}

static uir_dim resolve(void *user, const char *name, size_t length) {
    world *w = user;
    if (length != 1 || name[0] < 'a' || name[0] >= 'a' + SYMBOL_COUNT) return UIR_DIM_NONE;
    return uir_dim_symbol(w->dims, (uir_symbol){(uint32_t)(name[0] - 'a')});
}

static void check_text(world *w, int at, uir_dim dim) {
    uir_allocator allocator = uir_allocator_system();
    uir_text text;
    uir_arena arena;
    uir_diagnostics diagnostics;
    uir_tokenizer tokenizer;
    uir_dim again = UIR_DIM_NONE;
    uir_text_init(&text, &allocator);
    uir_arena_init(&arena, &allocator);
    uir_diagnostics_init(&diagnostics, &allocator);
    uir_dim_print(w->dims, dim, &text);
    uir_tokenizer_init(&tokenizer, text.data, text.length, "<text>", &arena, &diagnostics);
    uir_status status = uir_dim_parse(w->dims, &tokenizer, resolve, w, &again);
    if (status != UIR_STATUS_OK || !uir_dim_equal(dim, again) || tokenizer.current.kind != UIR_TOKEN_END) {
        print_dim(w, "read back as", again);
        complain(w, "text does not read back", at, dim);
    }
    uir_diagnostics_deinit(&diagnostics);
    uir_arena_deinit(&arena);
    uir_text_deinit(&text);
}

/* The dim's value at the present binding; false where the tree is undefined. */
static bool check_value(world *w, int at, uir_dim dim, wide *out) {
    int64_t value = 0;
    if (!tree_value(w, at, out)) return false;
    if (*out < INT64_MIN || *out > INT64_MAX) return false;
    uir_dim_result result = uir_dim_evaluate(w->dims, dim, w->values, NULL, SYMBOL_COUNT, &value);
    if (result != UIR_DIM_EVALUATED || value != *out) {
        fprintf(stderr, "result %d value %lld, the tree gives %lld\n", (int)result, (long long)value, (long long)*out);
        complain(w, "wrong value", at, dim);
    }
    int64_t low, high, multiple = uir_dim_multiple(w->dims, dim);
    uir_dim_bounds(w->dims, dim, &low, &high);
    if (value < low || value > high) complain(w, "out of bounds", at, dim);
    if (multiple ? value % multiple : value) complain(w, "not a multiple", at, dim);
    return true;
}

static void check_substitution(world *w, int at, uir_dim dim) {
    int symbol = (int)pick(w, 0, SYMBOL_COUNT - 1), by = random_tree(w, 2, SYMBOL_COUNT);
    uir_dim replacements[SYMBOL_COUNT] = {{0}};
    replacements[symbol] = build(w, by);
    uir_dim result = uir_dim_substitute(w->dims, dim, replacements, SYMBOL_COUNT);
    if (!replacements[symbol].id || !result.id) return;
    for (int i = 0; i < BINDING_COUNT / 4; i++) {
        wide value, expected;
        int64_t actual = 0;
        if (!draw_binding(w) || !tree_value(w, by, &value) || !facts_allow(w, symbol, value)) continue;
        /* Other symbols' bounds may depend on the replaced one: they must hold with its new value as well. */
        int64_t kept = w->values[symbol];
        w->values[symbol] = (int64_t)value;
        bool allowed = true;
        for (int k = 0; k < SYMBOL_COUNT; k++) allowed = allowed && facts_allow(w, k, w->values[k]);
        bool defined = allowed && tree_value(w, at, &expected);
        w->values[symbol] = kept;
        if (!defined) continue;
        uir_dim_result evaluated = uir_dim_evaluate(w->dims, result, w->values, NULL, SYMBOL_COUNT, &actual);
        if (evaluated != UIR_DIM_EVALUATED || actual != expected) {
            fprintf(stderr, "symbol %c, result %d value %lld, expected %lld\n", 'a' + symbol, (int)evaluated,
                    (long long)actual, (long long)expected);
            print_dim(w, "by", replacements[symbol]);
            complain(w, "wrong substitution", at, dim);
        }
    }
}

static const uir_relation relations[] = {UIR_RELATION_EQ, UIR_RELATION_NE, UIR_RELATION_LT,
                                         UIR_RELATION_LE, UIR_RELATION_GT, UIR_RELATION_GE};

static void check_comparison(world *w, int a, uir_dim dim_a, int b, uir_dim dim_b) {
    uir_relation relation = relations[pick(w, 0, 5)];
    uir_condition given[3];
    int given_trees[3][2];
    uint32_t count = (uint32_t)pick(w, 0, 3);
    for (uint32_t i = 0; i < count; i++) {
        given_trees[i][0] = random_tree(w, 2, SYMBOL_COUNT);
        given_trees[i][1] = random_tree(w, 1, SYMBOL_COUNT);
        given[i] = (uir_condition){relations[pick(w, 0, 5)], build(w, given_trees[i][0]), build(w, given_trees[i][1])};
        if (!given[i].left.id || !given[i].right.id) return;
    }
    uir_truth alone = uir_dim_compare(w->dims, dim_a, relation, dim_b);
    uir_truth with = uir_dim_compare_given(w->dims, given, count, dim_a, relation, dim_b);
    for (int i = 0; i < BINDING_COUNT; i++) {
        wide x, y;
        if (!draw_binding(w) || !tree_value(w, a, &x) || !tree_value(w, b, &y)) continue;
        if (x != (int64_t)x || y != (int64_t)y) continue;
        bool holds = uir_relation_holds(relation, (int64_t)x, (int64_t)y), assumed = true;
        for (uint32_t k = 0; k < count && assumed; k++) {
            wide left, right;
            assumed = tree_value(w, given_trees[k][0], &left) && tree_value(w, given_trees[k][1], &right) &&
                      left == (int64_t)left && right == (int64_t)right &&
                      uir_relation_holds(given[k].relation, (int64_t)left, (int64_t)right);
        }
        if ((alone != UIR_UNKNOWN && holds != (alone == UIR_TRUE)) ||
            (assumed && with != UIR_UNKNOWN && holds != (with == UIR_TRUE))) {
            for (uint32_t k = 0; k < count; k++) {
                print_dim(w, "given", given[k].left);
                print_dim(w, uir_relation_text(given[k].relation), given[k].right);
            }
            fprintf(stderr, "alone %d, given %d, relation %s, values %lld %lld\n", (int)alone, (int)with,
                    uir_relation_text(relation), (long long)x, (long long)y);
            print_dim(w, "right", dim_b);
            complain(w, "wrong comparison", a, dim_a);
        }
    }
}

static void test_random_expressions(void **state) {
    (void)state;
    uint64_t total = fuzz_iterations(8000), per_world = 8;
    static world w;
    for (uint64_t i = 0; i < total; i += per_world) {
        begin_world(&w, fuzz_seed() * 1000003 + i);
        int kept = w.tree_count;
        for (uint64_t k = 0; k < per_world; k++) {
            w.tree_count = kept;
            int a = random_tree(&w, (int)pick(&w, 1, 4), SYMBOL_COUNT), b;
            uir_dim dim_a = build(&w, a), dim_b;
            if (!dim_a.id) continue; /* an overflow of a coefficient */
            if (pick(&w, 0, 1)) {    /* something near a, so that answers are not all unknown */
                b = add_tree(&w, UIR_DIM_ADD, 0, a, random_tree(&w, 1, SYMBOL_COUNT));
            } else {
                b = random_tree(&w, (int)pick(&w, 0, 3), SYMBOL_COUNT);
            }
            dim_b = build(&w, b);
            if (!dim_b.id) continue;
            for (int n = 0; n < BINDING_COUNT; n++) {
                wide value;
                if (draw_binding(&w)) check_value(&w, a, dim_a, &value);
            }
            check_text(&w, a, dim_a);
            check_comparison(&w, a, dim_a, b, dim_b);
            check_substitution(&w, a, dim_a);
        }
        uir_dims_destroy(w.dims);
    }
}

/* What a fixed sample of expressions comes to: how much is decided, how short the texts are, how much is known. */
typedef struct strength {
    uint32_t decided, given, chained, scaled, equal, bounded, divided, characters;
} strength;

static void measure(world *w, strength *s) {
    int a = random_tree(w, (int)pick(w, 1, 4), SYMBOL_COUNT), b = random_tree(w, (int)pick(w, 0, 3), SYMBOL_COUNT);
    int near = add_tree(w, UIR_DIM_ADD, 0, a, random_tree(w, 1, SYMBOL_COUNT)), other = random_tree(w, 2, SYMBOL_COUNT);
    int factor = random_tree(w, 1, SYMBOL_COUNT);
    uir_relation relation = relations[pick(w, 0, 5)];
    uir_dim x = build(w, a), y = build(w, b), z = build(w, near), u = build(w, other), f = build(w, factor);
    if (!x.id || !y.id || !z.id || !u.id || !f.id) return;
    uir_allocator allocator = uir_allocator_system();
    uir_text text;
    uir_text_init(&text, &allocator);
    uir_dim_print(w->dims, x, &text);
    s->characters += (uint32_t)text.length;
    uir_text_deinit(&text);
    int64_t low, high;
    uir_dim_bounds(w->dims, x, &low, &high);
    s->bounded += (low != INT64_MIN) + (high != INT64_MAX);
    s->divided += uir_dim_multiple(w->dims, x) > 1;
    s->decided += uir_dim_compare(w->dims, x, relation, y) != UIR_UNKNOWN;
    s->decided += uir_dim_compare(w->dims, x, relation, z) != UIR_UNKNOWN;
    /* x <= y <= u; x and y times something that is not negative; x spelled otherwise. */
    uir_condition chain[] = {{UIR_RELATION_LE, x, y}, {UIR_RELATION_LT, y, u}};
    s->given += uir_dim_compare_given(w->dims, chain, 2, z, relation, u) != UIR_UNKNOWN;
    s->chained += uir_dim_compare_given(w->dims, chain, 2, x, UIR_RELATION_LT, u) == UIR_TRUE;
    uir_dim positive = uir_dim_max(w->dims, f, uir_dim_const(w->dims, 0));
    uir_dim left = uir_dim_mul(w->dims, x, positive), right = uir_dim_mul(w->dims, y, positive);
    s->scaled += uir_dim_compare_given(w->dims, chain, 1, left, UIR_RELATION_LE, right) == UIR_TRUE;
    uir_dim back =
        uir_dim_sub(w->dims, uir_dim_mul(w->dims, uir_dim_add(w->dims, x, y), f), uir_dim_mul(w->dims, f, y));
    s->equal += uir_dim_compare(w->dims, back, UIR_RELATION_EQ, uir_dim_mul(w->dims, x, f)) == UIR_TRUE;
}

/* Fewer proofs or longer texts than there were are a loss, however right they are. */
static void test_strength(void **state) {
    (void)state;
    static world w;
    strength s = {0};
    for (uint64_t i = 0; i < 120; i++) {
        begin_world(&w, 5000 + i);
        int kept = w.tree_count;
        for (int k = 0; k < 8; k++, w.tree_count = kept) measure(&w, &s);
        uir_dims_destroy(w.dims);
    }
    assert_true(s.decided >= 937);
    assert_true(s.given >= 503);
    assert_true(s.chained >= 749);
    assert_true(s.scaled >= 930);
    assert_int_equal(s.equal, 960);
    assert_true(s.bounded >= 1272);
    assert_true(s.divided >= 172);
    assert_true(s.characters <= 30443);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_expressions), cmocka_unit_test(test_strength)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
