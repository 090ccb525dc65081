/* Values of two dims side by side at trial points: a search for a proof is long where there is none, and a point that
 * contradicts what is to be proved ends it before it begins.
 *
 * A point gives each symbol in sight a value that its facts allow: the least ones, small sizes, greatest ones. Points
 * that an assumption excludes, or at which something cannot be evaluated, say nothing. */
#include "base/dims/dim_internal.h"

#include <string.h>

enum {
    TRIAL_POINTS = 24,
    TRIAL_SYMBOLS = 64, /* more are not tried */
    TRIAL_DEPTH = 8     /* bounds of bounds */
};
#define WIDEST ((uint64_t)1 << 40) /* range that values are taken from */

typedef struct trial {
    uir_dims *dims;
    uint32_t symbols[TRIAL_SYMBOLS];
    uint32_t count;
    int64_t *values; /* by symbol */
    bool *chosen;
    uint32_t point;
} trial;

static bool see_symbols(trial *t, uir_dim dim, uint32_t depth) {
    const dim_node *node = dim_at(t->dims, dim);
    for (uint32_t i = 0; i < node->symbol_count; i++) {
        uint32_t symbol = node->symbols[i], at = 0;
        uir_dim bound = t->dims->symbols.data[symbol].facts.bound;
        while (at < t->count && t->symbols[at] != symbol) at++;
        if (at < t->count) continue;
        if (t->count == TRIAL_SYMBOLS) return false;
        t->symbols[t->count++] = symbol;
        if (bound.id && (depth == TRIAL_DEPTH || !see_symbols(t, bound, depth + 1))) return false;
    }
    return true;
}

/* One of the values from `low` to `high` that the point wants of the symbol. */
static int64_t value_within(const trial *t, uint32_t symbol, int64_t low, int64_t high) {
    static const int16_t steps[] = {0, 1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 64, 100, 257};
    enum { STEPS = sizeof steps / sizeof *steps };
    uint32_t mixed = (symbol + 1) * 0x9e3779b1u ^ t->point * 0x85ebca6bu;
    mixed ^= mixed >> 15;
    mixed *= 0x2c1b3c6du;
    mixed ^= mixed >> 13;
    uint64_t span = (uint64_t)high - (uint64_t)low;
    if (t->point < 3) return low + (int64_t)(t->point <= span ? t->point : span); /* all symbols alike */
    if (t->point < 6 && high - low < 1 << 20) return t->point % 2 ? high : low + (int64_t)(span / 2);
    uint64_t step = (uint64_t)steps[mixed % STEPS];
    return low + (int64_t)(step <= span ? step : mixed % (span + 1));
}

static bool choose(trial *t, uint32_t symbol, uint32_t depth) {
    const uir_symbol_facts facts = t->dims->symbols.data[symbol].facts;
    int64_t low = facts.min, high = facts.max, unit = facts.multiple_of < 1 ? 1 : facts.multiple_of, bound;
    if (t->chosen[symbol]) return true;
    if (facts.bound.id) {
        const dim_node *node = dim_at(t->dims, facts.bound);
        if (depth > TRIAL_DEPTH) return false;
        for (uint32_t i = 0; i < node->symbol_count; i++)
            if (!choose(t, node->symbols[i], depth + 1)) return false;
        if (uir_dim_evaluate(t->dims, facts.bound, t->values, t->chosen, t->dims->symbols.count, &bound) !=
            UIR_DIM_EVALUATED)
            return false;
        if (bound <= high) high = bound - 1;
    }
    if (low == INT64_MIN) low = high < 0 ? high - 1000 : -1000;
    if (low > high) return false;
    if ((uint64_t)high - (uint64_t)low > WIDEST) high = low + (int64_t)WIDEST;
    int64_t value = value_within(t, symbol, low, high), off = uir_integer_mod(value, unit);
    value = off && value <= high - (unit - off) ? value + unit - off : value - off;
    if (value < low || value > high) return false;
    t->values[symbol] = value;
    t->chosen[symbol] = true;
    return true;
}

static bool evaluate(const trial *t, uir_dim dim, int64_t *out_value) {
    return uir_dim_evaluate(t->dims, dim, t->values, t->chosen, t->dims->symbols.count, out_value) == UIR_DIM_EVALUATED;
}

static bool try_point(trial *t, const uir_condition *assumptions, uint32_t count, uir_dim a, uir_dim b, int *out_sign) {
    int64_t left, right;
    for (uint32_t i = 0; i < t->count; i++) t->chosen[t->symbols[i]] = false;
    for (uint32_t i = 0; i < t->count; i++)
        if (!choose(t, t->symbols[i], 0)) return false;
    for (uint32_t i = 0; i < count; i++)
        if (!evaluate(t, assumptions[i].left, &left) || !evaluate(t, assumptions[i].right, &right) ||
            !uir_relation_holds(assumptions[i].relation, left, right))
            return false;
    if (!evaluate(t, a, &left) || !evaluate(t, b, &right)) return false;
    *out_sign = (left > right) - (left < right);
    return true;
}

uir_dim_signs uir_dim_try_signs(uir_dims *dims, const uir_condition *assumptions, uint32_t count, uir_dim a,
                                uir_dim b) {
    uir_dim_signs seen = {false, false, false};
    trial t = {.dims = dims};
    bool fits = see_symbols(&t, a, 0) && see_symbols(&t, b, 0);
    for (uint32_t i = 0; i < count && fits; i++)
        fits = assumptions[i].left.id && assumptions[i].right.id && see_symbols(&t, assumptions[i].left, 0) &&
               see_symbols(&t, assumptions[i].right, 0);
    if (!fits) return seen;
    t.values = uir_dim_scratch(dims, dims->symbols.count + 1u, sizeof *t.values);
    t.chosen = uir_dim_scratch(dims, dims->symbols.count + 1u, sizeof *t.chosen);
    if (!t.values || !t.chosen) return seen;
    memset(t.chosen, 0, dims->symbols.count + 1u);
    for (t.point = 0; t.point < TRIAL_POINTS && !(seen.less && seen.greater); t.point++) {
        int sign;
        if (!try_point(&t, assumptions, count, a, b, &sign)) continue;
        seen.less |= sign < 0;
        seen.equal |= sign == 0;
        seen.greater |= sign > 0;
    }
    return seen;
}
