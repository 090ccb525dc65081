/* What is known of a dim by itself: an interval that holds every value, and a divisor of every value. */
#include "base/dims/dim_internal.h"

__extension__ typedef __int128 wide;

int64_t uir_integer_gcd(int64_t a, int64_t b) {
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    while (y) {
        uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    /* 2^63 itself is not an int64: half of it divides as well. */
    return x > INT64_MAX ? (int64_t)(x / 2) : (int64_t)x;
}

int64_t uir_integer_floordiv(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

int64_t uir_integer_ceildiv(int64_t a, int64_t b) {
    return a / b + (a % b > 0);
}

int64_t uir_integer_mod(int64_t a, int64_t b) {
    return a % b < 0 ? a % b + b : a % b;
}

/* ---- extended integers: the two ends of int64 are infinities ----------------------------------------------------- */

static bool is_infinite(int64_t a) {
    return a == INT64_MIN || a == INT64_MAX;
}

static int64_t clamp(wide value) {
    return value <= INT64_MIN ? INT64_MIN : value >= INT64_MAX ? INT64_MAX : (int64_t)value;
}

/* 0 * infinity is 0: infinity stands for an unknown integer. */
static int64_t extended_multiply(int64_t a, int64_t b) {
    if (a == 0 || b == 0) return 0;
    if (is_infinite(a) || is_infinite(b)) return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
    return clamp((wide)a * b);
}

/* b >= 1, possibly infinite. */
static int64_t extended_floordiv(int64_t a, int64_t b) {
    if (is_infinite(a)) return a;
    return uir_integer_floordiv(a, b);
}

static int64_t extended_ceildiv(int64_t a, int64_t b) {
    if (is_infinite(a)) return a;
    return uir_integer_ceildiv(a, b);
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}
static int64_t greatest(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* Keeps the infinities to their own ends: a least value of INT64_MAX would be taken for infinity in a product. */
static interval tidy(interval a) {
    a.min = least(a.min, INT64_MAX - 1);
    a.max = greatest(a.max, INT64_MIN + 1);
    return a;
}

static interval interval_add(interval a, interval b) {
    /* An unknown end stays unknown whatever is added to it. */
    bool unknown_min = a.min == INT64_MIN || b.min == INT64_MIN;
    bool unknown_max = a.max == INT64_MAX || b.max == INT64_MAX;
    return tidy((interval){unknown_min ? INT64_MIN : clamp((wide)a.min + b.min),
                           unknown_max ? INT64_MAX : clamp((wide)a.max + b.max)});
}

static interval interval_multiply(interval a, interval b) {
    int64_t p = extended_multiply(a.min, b.min), q = extended_multiply(a.min, b.max);
    int64_t r = extended_multiply(a.max, b.min), s = extended_multiply(a.max, b.max);
    return tidy((interval){least(least(p, q), least(r, s)), greatest(greatest(p, q), greatest(r, s))});
}

/* Divisors below 1 make the expression undefined, so only the others count. */
static interval interval_divide(interval a, interval b, int64_t (*divide)(int64_t, int64_t)) {
    b.min = greatest(b.min, 1);
    b.max = greatest(b.max, b.min);
    int64_t p = divide(a.min, b.min), q = divide(a.min, b.max), r = divide(a.max, b.min), s = divide(a.max, b.max);
    return tidy((interval){least(p, q), greatest(r, s)});
}

static interval interval_mod(interval a, interval b) {
    interval result = {0, b.max == INT64_MAX ? INT64_MAX : greatest(b.max, 1) - 1};
    if (a.min >= 0) result.max = least(result.max, a.max);
    if (a.min >= 0 && a.max < greatest(b.min, 1)) result.min = a.min;
    return result;
}

static interval symbol_interval(uir_dims *dims, uint32_t id) {
    uir_symbol_facts facts = dims->symbols.data[id].facts;
    interval result = {facts.min, facts.max};
    if (facts.bound.id) {
        int64_t bound = uir_dim_interval(dims, facts.bound).max;
        if (bound != INT64_MAX) result.max = least(result.max, bound - 1);
    }
    if (facts.multiple_of > 1) {
        /* Rounded inward to multiples; a rounding that would overflow is left out. */
        if (!is_infinite(result.min))
            result.min = clamp((wide)uir_integer_ceildiv(result.min, facts.multiple_of) * facts.multiple_of);
        if (!is_infinite(result.max))
            result.max = clamp((wide)uir_integer_floordiv(result.max, facts.multiple_of) * facts.multiple_of);
    }
    return result;
}

/* ---- divisors ---------------------------------------------------------------------------------------------------- */

/* Product of two divisors; when it does not fit, one of them is a divisor still. */
static int64_t multiply_divisors(int64_t a, int64_t b) {
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? greatest(a, b) : product;
}

static int64_t divisor_of(int64_t value) {
    return uir_integer_gcd(value, 0);
}

static int64_t node_multiple(uir_dims *dims, const uir_dim_node *node) {
    int64_t result;
    switch (node->kind) {
    case UIR_DIM_CONST:
        return divisor_of(node->value);
    case UIR_DIM_SYMBOL: {
        uir_symbol_facts facts = dims->symbols.data[node->value].facts;
        return facts.min == facts.max ? divisor_of(facts.min) : facts.multiple_of;
    }
    case UIR_DIM_MUL:
        result = 1;
        for (uint32_t i = 0; i < node->count; i++)
            result = multiply_divisors(result, uir_dim_multiple(dims, node->operands[i]));
        return result;
    case UIR_DIM_FLOORDIV:
    case UIR_DIM_CEILDIV: {
        int64_t divisor, multiple = uir_dim_multiple(dims, node->operands[0]);
        if (!uir_dim_is_const(dims, node->operands[1], &divisor) || divisor < 1 || multiple % divisor) return 1;
        return multiple / divisor;
    }
    case UIR_DIM_ADD:
    case UIR_DIM_MOD: /* a - b*floordiv(a, b) */
    case UIR_DIM_MIN:
    case UIR_DIM_MAX:
        break;
    }
    result = 0;
    for (uint32_t i = 0; i < node->count; i++)
        result = uir_integer_gcd(result, uir_dim_multiple(dims, node->operands[i]));
    return result;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

static interval node_interval(uir_dims *dims, const uir_dim_node *node) {
    interval result = {INT64_MIN, INT64_MAX};
    if (node->kind == UIR_DIM_CONST) return tidy((interval){node->value, node->value});
    if (node->kind == UIR_DIM_SYMBOL) return tidy(symbol_interval(dims, (uint32_t)node->value));
    if (node->kind == UIR_DIM_MUL) return uir_term_interval(dims, (term){1, node->count, node->operands});
    for (uint32_t i = 0; i < node->count; i++) {
        interval operand = uir_dim_interval(dims, node->operands[i]);
        if (i == 0) {
            result = operand;
            continue;
        }
        switch (node->kind) {
        case UIR_DIM_ADD:
            result = interval_add(result, operand);
            break;
        case UIR_DIM_FLOORDIV:
            result = interval_divide(result, operand, extended_floordiv);
            break;
        case UIR_DIM_CEILDIV:
            result = interval_divide(result, operand, extended_ceildiv);
            break;
        case UIR_DIM_MOD:
            result = interval_mod(result, operand);
            break;
        case UIR_DIM_MIN:
            result = (interval){least(result.min, operand.min), least(result.max, operand.max)};
            break;
        case UIR_DIM_MAX:
            result = (interval){greatest(result.min, operand.min), greatest(result.max, operand.max)};
            break;
        case UIR_DIM_CONST:
        case UIR_DIM_SYMBOL:
        case UIR_DIM_MUL:
            break;
        }
    }
    return result;
}

/* Fills the node's cache. A symbol whose bound leads back to itself is met while busy and taken as unbounded. */
static void derive(uir_dims *dims, dim_node *node) {
    if (node->facts_version == dims->facts_version || node->busy) return;
    node->busy = true;
    node->min = INT64_MIN;
    node->max = INT64_MAX;
    node->multiple = 1;
    node->multiple = node_multiple(dims, &node->node);
    interval result = node_interval(dims, &node->node);
    node->min = result.min;
    node->max = result.max;
    node->facts_version = dims->facts_version;
    node->busy = false;
}

interval uir_dim_interval(uir_dims *dims, uir_dim dim) {
    dim_node *node = dim_at(dims, dim);
    derive(dims, node);
    return (interval){node->min, node->max};
}

void uir_dim_bounds(uir_dims *dims, uir_dim dim, int64_t *out_min, int64_t *out_max) {
    interval result = dim.id ? uir_dim_interval(dims, dim) : (interval){INT64_MIN, INT64_MAX};
    *out_min = result.min;
    *out_max = result.max;
}

int64_t uir_dim_multiple(uir_dims *dims, uir_dim dim) {
    if (!dim.id) return 1;
    dim_node *node = dim_at(dims, dim);
    derive(dims, node);
    return node->multiple;
}

interval uir_term_interval(uir_dims *dims, term t) {
    interval result = tidy((interval){t.coefficient, t.coefficient});
    for (uint32_t i = 0; i < t.degree; i++) {
        interval factor = uir_dim_interval(dims, t.atoms[i]);
        /* An even power is not negative. */
        if (i + 1 < t.degree && t.atoms[i + 1].id == t.atoms[i].id) {
            factor = interval_multiply(factor, factor);
            factor.min = greatest(factor.min, 0);
            i++;
        }
        result = interval_multiply(result, factor);
    }
    return result;
}

interval uir_polynomial_interval(uir_dims *dims, polynomial p) {
    interval result = {0, 0};
    for (uint32_t i = 0; i < p.count && !(result.min == INT64_MIN && result.max == INT64_MAX); i++)
        result = interval_add(result, uir_term_interval(dims, p.terms[i]));
    return result;
}

int64_t uir_term_multiple(uir_dims *dims, term t) {
    int64_t result = divisor_of(t.coefficient);
    for (uint32_t i = 0; i < t.degree; i++) result = multiply_divisors(result, uir_dim_multiple(dims, t.atoms[i]));
    return result;
}
