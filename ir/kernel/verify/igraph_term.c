#include "ir/kernel/verify/igraph_term.h"

#include <string.h>

#define TABLE_START 1024u
#define MAX_NODES   400000u

/* ---- bounds that saturate ---- */
static int64_t add_bound(int64_t a, int64_t b) {
    int64_t sum;
    if (a == INT64_MIN || b == INT64_MIN) return INT64_MIN;
    if (a == INT64_MAX || b == INT64_MAX) return INT64_MAX;
    return __builtin_add_overflow(a, b, &sum) ? (a < 0 ? INT64_MIN : INT64_MAX) : sum;
}

static int64_t mul_bound(int64_t a, int64_t b) {
    int64_t product;
    if (a == 0 || b == 0) return 0;
    bool negative = (a < 0) != (b < 0);
    if (a == INT64_MIN || a == INT64_MAX || b == INT64_MIN || b == INT64_MAX || __builtin_mul_overflow(a, b, &product))
        return negative ? INT64_MIN : INT64_MAX;
    return product;
}

static void mul_range(int64_t *min, int64_t *max, int64_t other_min, int64_t other_max) {
    int64_t p[4] = {mul_bound(*min, other_min), mul_bound(*min, other_max), mul_bound(*max, other_min),
                    mul_bound(*max, other_max)};
    *min = *max = p[0];
    for (int i = 1; i < 4; i++) {
        if (p[i] < *min) *min = p[i];
        if (p[i] > *max) *max = p[i];
    }
}

static int64_t floor_bound(int64_t a, int64_t b) {
    if (a == INT64_MIN || a == INT64_MAX) return b == INT64_MAX ? (a < 0 ? -1 : 0) : a;
    if (b == INT64_MAX) return a < 0 ? -1 : 0;
    return a / b - (a % b < 0);
}

void uir_term_bounds(const uir_terms *terms, uir_term term, int64_t *out_min, int64_t *out_max) {
    *out_min = INT64_MIN;
    *out_max = INT64_MAX;
    if (!term) return;
    const uir_term_node *node = &terms->nodes.data[term];
    int64_t total_min = 0, total_max = 0;
    for (uint32_t i = 0; i < node->count; i++) {
        const uir_monomial *m = &node->monomials[i];
        int64_t min = m->coefficient, max = m->coefficient;
        for (uint32_t k = 0; k < m->degree; k++) {
            const uir_variable *v = &terms->variables.data[m->variables[k]];
            mul_range(&min, &max, v->min, v->max);
        }
        /* An unknown side stays unknown: infinities of both signs do not meet within one side. */
        total_min = add_bound(total_min, min);
        total_max = total_max == INT64_MAX || max == INT64_MAX ? INT64_MAX : add_bound(total_max, max);
    }
    *out_min = total_min;
    *out_max = total_max;
}

static int compare_monomials(const uir_monomial *a, const uir_monomial *b) {
    if (a->degree != b->degree) return a->degree < b->degree ? -1 : 1;
    for (uint32_t i = 0; i < a->degree; i++)
        if (a->variables[i] != b->variables[i]) return a->variables[i] < b->variables[i] ? -1 : 1;
    return 0;
}

int64_t uir_term_least_difference(const uir_terms *terms, uir_term a, uir_term b) {
    const uir_term_node *x = &terms->nodes.data[a], *y = &terms->nodes.data[b];
    int64_t total = 0;
    for (uint32_t i = 0, k = 0; i < x->count || k < y->count;) {
        int order = i == x->count ? 1 : k == y->count ? -1 : compare_monomials(&x->monomials[i], &y->monomials[k]);
        const uir_monomial *m = order <= 0 ? &x->monomials[i] : &y->monomials[k];
        int64_t min = order <= 0 ? m->coefficient : 0, max;
        if (order >= 0 && __builtin_sub_overflow(min, y->monomials[k].coefficient, &min)) return INT64_MIN;
        max = min;
        for (uint32_t v = 0; v < m->degree && min != 0; v++) {
            const uir_variable *variable = &terms->variables.data[m->variables[v]];
            mul_range(&min, &max, variable->min, variable->max);
        }
        total = add_bound(total, min);
        i += order <= 0;
        k += order >= 0;
    }
    return total;
}

/* ---- interning ---- */

static uint64_t mix(uint64_t h, uint64_t x) {
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

static bool same_monomials(const uir_term_node *node, const uir_monomial *monomials, uint32_t count) {
    if (node->count != count) return false;
    for (uint32_t i = 0; i < count; i++)
        if (node->monomials[i].coefficient != monomials[i].coefficient ||
            compare_monomials(&node->monomials[i], &monomials[i]) != 0)
            return false;
    return true;
}

static bool grow_table(uir_terms *t) {
    uint32_t size = 2 * t->table_size, *table;
    table = uir_arena_allocate_array(t->arena, size, sizeof *table);
    if (!table) return false;
    for (uint32_t i = 1; i < t->nodes.count; i++) {
        uint32_t slot = (uint32_t)t->nodes.data[i].hash & (size - 1);
        while (table[slot]) slot = (slot + 1) & (size - 1);
        table[slot] = i;
    }
    t->table = table;
    t->table_size = size;
    return true;
}

/* `monomials` sorted, without zeros. */
static uir_term intern(uir_terms *t, const uir_monomial *monomials, uint32_t count) {
    uint64_t hash = count, mentions = 0;
    for (uint32_t i = 0; i < count; i++) {
        hash = mix(hash, (uint64_t)monomials[i].coefficient);
        for (uint32_t k = 0; k < monomials[i].degree; k++) {
            hash = mix(hash, monomials[i].variables[k] + 1);
            mentions |=
                UINT64_C(1) << (monomials[i].variables[k] & 63) | t->variables.data[monomials[i].variables[k]].mentions;
        }
    }
    uint32_t slot = (uint32_t)hash & (t->table_size - 1);
    for (; t->table[slot]; slot = (slot + 1) & (t->table_size - 1)) {
        const uir_term_node *node = &t->nodes.data[t->table[slot]];
        if (node->hash == hash && same_monomials(node, monomials, count)) return t->table[slot];
    }
    if (t->nodes.count >= MAX_NODES) {
        t->exhausted = true;
        return UIR_TERM_UNKNOWN;
    }
    uir_monomial *copy = uir_arena_copy(t->arena, monomials, count * sizeof *monomials);
    if ((count && !copy) ||
        uir_vector_push(t->arena, &t->nodes, ((uir_term_node){copy, count, hash, mentions})) != UIR_STATUS_OK) {
        t->failed = true;
        return UIR_TERM_UNKNOWN;
    }
    uir_term term = t->nodes.count - 1;
    t->table[slot] = term;
    if (2 * t->nodes.count > t->table_size && !grow_table(t)) {
        t->failed = true;
        return UIR_TERM_UNKNOWN;
    }
    return term;
}

uir_status uir_terms_init(uir_terms *t, uir_arena *arena, uir_igraph *igraph) {
    *t = (uir_terms){.arena = arena, .igraph = igraph, .table_size = TABLE_START};
    UIR_TRY_ALLOCATE(t->table, uir_arena_allocate_array(arena, t->table_size, sizeof *t->table));
    UIR_TRY_ALLOCATE(t->of_symbol, uir_arena_allocate_array(arena, igraph->symbols.count + 1, sizeof *t->of_symbol));
    memset(t->of_symbol, 0xff, (igraph->symbols.count + 1) * sizeof *t->of_symbol);
    return uir_vector_push(arena, &t->nodes, ((uir_term_node){NULL, 0, 0, 0})); /* UNKNOWN */
}

/* ---- arithmetic ---- */
uir_term uir_term_const(uir_terms *t, int64_t value) {
    return intern(t, &(uir_monomial){.coefficient = value}, value != 0);
}

uir_term uir_term_variable(uir_terms *t, uint32_t variable) {
    if (variable == UIR_VARIABLE_NONE) return UIR_TERM_UNKNOWN;
    return intern(t, &(uir_monomial){.coefficient = 1, .degree = 1, .variables = {variable}}, 1);
}

static uint32_t add_variable(uir_terms *t, uir_variable variable) {
    if (variable.kind >= UIR_VARIABLE_FLOORDIV) {
        for (int i = 0; i < 2; i++) variable.mentions |= t->nodes.data[i ? variable.b : variable.a].mentions;
    }
    if (uir_vector_push(t->arena, &t->variables, variable) != UIR_STATUS_OK) {
        t->failed = true;
        return UIR_VARIABLE_NONE;
    }
    return t->variables.count - 1;
}

uint32_t uir_term_fresh(uir_terms *t, int64_t min, int64_t max) {
    return add_variable(t, (uir_variable){.kind = UIR_VARIABLE_FRESH, .min = min, .max = max});
}

void uir_term_add_axiom(uir_terms *t, uint32_t variable, uir_term axiom) {
    if (variable == UIR_VARIABLE_NONE || !axiom) return;
    uir_variable *v = &t->variables.data[variable];
    if (v->axiom_count < 4) v->axioms[v->axiom_count++] = axiom;
}

bool uir_term_is_const(const uir_terms *t, uir_term term, int64_t *out_value) {
    if (!term) return false;
    const uir_term_node *node = &t->nodes.data[term];
    if (node->count > 1 || (node->count == 1 && node->monomials[0].degree > 0)) return false;
    if (out_value) *out_value = node->count ? node->monomials[0].coefficient : 0;
    return true;
}

/* a + factor * b */
static uir_term add_scaled(uir_terms *t, uir_term a, uir_term b, int64_t factor) {
    if (!a || !b) return UIR_TERM_UNKNOWN;
    const uir_term_node x = t->nodes.data[a], y = t->nodes.data[b];
    uir_monomial out[UIR_TERM_MAX_MONOMIALS];
    uint32_t count = 0, i = 0, k = 0;
    while (i < x.count || k < y.count) {
        if (count == UIR_TERM_MAX_MONOMIALS) return UIR_TERM_UNKNOWN;
        int order = i == x.count ? 1 : k == y.count ? -1 : compare_monomials(&x.monomials[i], &y.monomials[k]);
        uir_monomial m = order <= 0 ? x.monomials[i] : y.monomials[k];
        int64_t scaled = 0;
        if (order >= 0 && __builtin_mul_overflow(y.monomials[k].coefficient, factor, &scaled)) return UIR_TERM_UNKNOWN;
        if (__builtin_add_overflow(order <= 0 ? m.coefficient : 0, scaled, &m.coefficient)) return UIR_TERM_UNKNOWN;
        i += order <= 0;
        k += order >= 0;
        if (m.coefficient) out[count++] = m;
    }
    return intern(t, out, count);
}

uir_term uir_term_add(uir_terms *t, uir_term a, uir_term b) {
    return add_scaled(t, a, b, 1);
}
uir_term uir_term_sub(uir_terms *t, uir_term a, uir_term b) {
    return add_scaled(t, a, b, -1);
}

static bool multiply_monomials(const uir_monomial *a, const uir_monomial *b, uir_monomial *out) {
    *out = (uir_monomial){.degree = a->degree + b->degree};
    if (out->degree > UIR_TERM_MAX_DEGREE || __builtin_mul_overflow(a->coefficient, b->coefficient, &out->coefficient))
        return false;
    for (uint32_t i = 0, x = 0, y = 0; i < out->degree; i++) {
        bool first = y == b->degree || (x < a->degree && a->variables[x] <= b->variables[y]);
        out->variables[i] = first ? a->variables[x++] : b->variables[y++];
    }
    return true;
}

uir_term uir_term_mul(uir_terms *t, uir_term a, uir_term b) {
    if (!a || !b) return UIR_TERM_UNKNOWN;
    const uir_term_node x = t->nodes.data[a], y = t->nodes.data[b];
    uir_term sum = uir_term_const(t, 0);
    for (uint32_t i = 0; i < x.count; i++) {
        /* One row of the product is sorted already: multiplying by a monomial keeps the order of equal degrees, but not
         * across repeated variables, so each product is added by itself. */
        for (uint32_t k = 0; k < y.count; k++) {
            uir_monomial m;
            if (!multiply_monomials(&x.monomials[i], &y.monomials[k], &m)) return UIR_TERM_UNKNOWN;
            sum = uir_term_add(t, sum, intern(t, &m, 1));
        }
    }
    return sum;
}

/* ---- floordiv, min, max ---- */
static int64_t gcd(int64_t a, int64_t b) {
    a = a < 0 ? -a : a;
    b = b < 0 ? -b : b;
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

int64_t uir_term_divisor(const uir_terms *t, uir_term term) {
    int64_t divisor = 0;
    if (!term) return 1;
    const uir_term_node *node = &t->nodes.data[term];
    for (uint32_t i = 0; i < node->count; i++) {
        if (node->monomials[i].coefficient == INT64_MIN) return 1;
        divisor = gcd(divisor, node->monomials[i].coefficient);
    }
    return divisor;
}

static uir_term find_or_add(uir_terms *t, uir_variable_kind kind, uir_term a, uir_term b) {
    for (uint32_t i = 0; i < t->variables.count; i++) {
        const uir_variable *v = &t->variables.data[i];
        if (v->kind == kind && v->a == a && v->b == b) return uir_term_variable(t, i);
    }
    int64_t a_min, a_max, b_min, b_max;
    uir_term_bounds(t, a, &a_min, &a_max);
    uir_term_bounds(t, b, &b_min, &b_max);
    uir_variable v = {.kind = kind, .a = a, .b = b};
    if (kind == UIR_VARIABLE_FLOORDIV) {
        if (b_min < 1) b_min = 1; /* a divisor below 1 is rejected where it stands */
        v.min = floor_bound(a_min, a_min < 0 ? b_min : b_max);
        v.max = floor_bound(a_max, a_max < 0 ? b_max : b_min);
    } else if (kind == UIR_VARIABLE_MIN) {
        v.min = a_min < b_min ? a_min : b_min;
        v.max = a_max < b_max ? a_max : b_max;
    } else {
        v.min = a_min > b_min ? a_min : b_min;
        v.max = a_max > b_max ? a_max : b_max;
    }
    uint32_t variable = add_variable(t, v);
    uir_term self = uir_term_variable(t, variable);
    if (!self) return self;
    if (kind == UIR_VARIABLE_FLOORDIV) {
        /* b*q <= a <= b*q + b - 1 */
        uir_term product = uir_term_mul(t, b, self);
        uir_term_add_axiom(t, variable, uir_term_sub(t, a, product));
        uir_term_add_axiom(t, variable,
                           uir_term_sub(t, uir_term_add(t, product, uir_term_sub(t, b, uir_term_const(t, 1))), a));
    } else {
        bool least = kind == UIR_VARIABLE_MIN;
        uir_term_add_axiom(t, variable, least ? uir_term_sub(t, a, self) : uir_term_sub(t, self, a));
        uir_term_add_axiom(t, variable, least ? uir_term_sub(t, b, self) : uir_term_sub(t, self, b));
    }
    return self;
}

/* m / d when d divides it as a monomial. */
static bool divide_monomial(const uir_monomial *m, const uir_monomial *d, uir_monomial *out) {
    if (m->coefficient % d->coefficient != 0 || (d->coefficient == -1 && m->coefficient == INT64_MIN)) return false;
    *out = (uir_monomial){.coefficient = m->coefficient / d->coefficient};
    uint32_t k = 0;
    for (uint32_t i = 0; i < m->degree; i++) {
        if (k < d->degree && m->variables[i] == d->variables[k])
            k++;
        else
            out->variables[out->degree++] = m->variables[i];
    }
    return k == d->degree;
}

/* Divides both by a common factor, a number or variables that are at least 1. */
static bool reduce_fraction(uir_terms *t, uir_term *a, uir_term *b) {
    int64_t common = gcd(uir_term_divisor(t, *a), uir_term_divisor(t, *b));
    if (!common) return false;
    uir_monomial factor = {.coefficient = common};
    const uir_term_node *nodes[2] = {&t->nodes.data[*a], &t->nodes.data[*b]};
    if (nodes[1]->count == 0) return false;
    const uir_monomial *first = &nodes[1]->monomials[0];
    for (uint32_t i = 0; i < first->degree; i++) {
        if (t->variables.data[first->variables[i]].min < 1) continue;
        uir_monomial wider = factor, rest;
        wider.variables[wider.degree++] = first->variables[i];
        bool divides = true;
        for (int n = 0; n < 2; n++)
            for (uint32_t k = 0; k < nodes[n]->count; k++)
                divides = divides && divide_monomial(&nodes[n]->monomials[k], &wider, &rest);
        if (divides) factor = wider;
    }
    if (factor.coefficient == 1 && factor.degree == 0) return true;
    uir_term out[2];
    for (int n = 0; n < 2; n++) {
        uir_monomial divided[UIR_TERM_MAX_MONOMIALS];
        uir_term_node node = t->nodes.data[n ? *b : *a];
        out[n] = uir_term_const(t, 0);
        for (uint32_t k = 0; k < node.count; k++) {
            if (!divide_monomial(&node.monomials[k], &factor, &divided[k])) return false;
            out[n] = uir_term_add(t, out[n], intern(t, &divided[k], 1));
        }
    }
    *a = out[0];
    *b = out[1];
    return true;
}

/* The part of `a` whose monomials `b` divides goes before the floor; of a constant, its multiple of b. */
static uir_term pull_out(uir_terms *t, uir_term *a, uir_term b) {
    uir_term whole = uir_term_const(t, 0), rest = whole;
    const uir_term_node x = t->nodes.data[*a], y = t->nodes.data[b];
    if (y.count != 1) {
        /* Of a sum as divisor only equal multiples: (k*b + r) / b where r is what is left. */
        return whole;
    }
    for (uint32_t i = 0; i < x.count; i++) {
        uir_monomial quotient, m = x.monomials[i];
        if (divide_monomial(&m, &y.monomials[0], &quotient)) {
            whole = uir_term_add(t, whole, intern(t, &quotient, 1));
            continue;
        }
        if (y.monomials[0].degree == 0) {
            int64_t d = y.monomials[0].coefficient, q = floor_bound(m.coefficient, d);
            quotient = m;
            quotient.coefficient = q;
            if (q) whole = uir_term_add(t, whole, intern(t, &quotient, 1));
            m.coefficient -= q * d;
        }
        if (m.coefficient) rest = uir_term_add(t, rest, intern(t, &m, 1));
    }
    *a = rest;
    return whole;
}

/* Whole numbers around the quotient as it was asked for: what was taken out of it knows its parts' ranges alone. */
static void bound_quotient(uir_terms *t, uir_term quotient, uint32_t variable, int64_t low, int64_t high) {
    int64_t min, max;
    uir_term_bounds(t, quotient, &min, &max);
    if (low > min && low > INT64_MIN / 2)
        uir_term_add_axiom(t, variable, uir_term_sub(t, quotient, uir_term_const(t, low)));
    if (high < max && high < INT64_MAX / 2)
        uir_term_add_axiom(t, variable, uir_term_sub(t, uir_term_const(t, high), quotient));
}

uir_term uir_term_floordiv(uir_terms *t, uir_term a, uir_term b) {
    int64_t divisor, a_min, a_max, b_min, b_max, low, high;
    if (!a || !b) return UIR_TERM_UNKNOWN;
    uir_term_bounds(t, b, &b_min, &b_max);
    if (b_min < 1) {
        if (b_max < 1) return UIR_TERM_UNKNOWN;
        return find_or_add(t, UIR_VARIABLE_FLOORDIV, a, b);
    }
    if (uir_term_is_const(t, b, &divisor) && divisor == 1) return a;
    uir_term_bounds(t, a, &a_min, &a_max);
    low = floor_bound(a_min, a_min < 0 ? b_min : b_max);
    high = floor_bound(a_max, a_max < 0 ? b_max : b_min);
    uir_term whole = pull_out(t, &a, b);
    if (!whole || !a) return UIR_TERM_UNKNOWN;
    uir_term_bounds(t, a, &a_min, &a_max);
    if (a_min >= 0 && a_max < b_min) return whole;
    if (a_min >= -b_min && a_max < 0) return uir_term_sub(t, whole, uir_term_const(t, 1));
    if (!reduce_fraction(t, &a, &b)) return UIR_TERM_UNKNOWN;
    if (uir_term_is_const(t, b, &divisor) && divisor == 1) return uir_term_add(t, whole, a);
    uint32_t known = t->variables.count;
    uir_term rest = find_or_add(t, UIR_VARIABLE_FLOORDIV, a, b), quotient = uir_term_add(t, whole, rest);
    if (t->variables.count > known && quotient) bound_quotient(t, quotient, known, low, high);
    return quotient;
}

static uir_term extremum(uir_terms *t, uir_variable_kind kind, uir_term a, uir_term b) {
    if (!a || !b) return UIR_TERM_UNKNOWN;
    int64_t min, max;
    uir_term_bounds(t, uir_term_sub(t, a, b), &min, &max);
    if (min >= 0) return kind == UIR_VARIABLE_MIN ? b : a;
    if (max <= 0) return kind == UIR_VARIABLE_MIN ? a : b;
    return find_or_add(t, kind, a < b ? a : b, a < b ? b : a);
}

uir_term uir_term_min(uir_terms *t, uir_term a, uir_term b) {
    return extremum(t, UIR_VARIABLE_MIN, a, b);
}
uir_term uir_term_max(uir_terms *t, uir_term a, uir_term b) {
    return extremum(t, UIR_VARIABLE_MAX, a, b);
}

/* ---- from dims ---- */
uint32_t uir_term_of_symbol(uir_terms *t, uint32_t index) {
    uir_igraph *g = t->igraph;
    if (t->of_symbol[index] != UIR_VARIABLE_NONE) return t->of_symbol[index];
    const uir_isymbol *symbol = &g->symbols.data[index];
    uir_symbol_facts facts = uir_dims_symbol_facts(g->dims, symbol->symbol);
    uir_variable v = {.kind = UIR_VARIABLE_SYMBOL, .symbol = index};
    v.min = facts.min;
    v.max = facts.max;
    bool size = symbol->kind == UIR_ISYMBOL_DIM || symbol->kind == UIR_ISYMBOL_TILE;
    /* A size that is a multiple of m is m times a variable; the variable stands for the quotient. */
    if (size && facts.multiple_of > 1) {
        v.min = facts.min / facts.multiple_of + (facts.min % facts.multiple_of > 0);
        if (v.max != INT64_MAX) v.max = facts.max / facts.multiple_of;
    }
    uint32_t variable = add_variable(t, v);
    t->of_symbol[index] = variable;
    /* An index read from data has its range only where something is always read: the caller adds it. */
    if (!size && symbol->kind != UIR_ISYMBOL_INDEX && facts.bound.id) {
        uir_term last = uir_term_sub(t, uir_term_of_dim(t, facts.bound), uir_term_const(t, 1));
        int64_t min, max;
        uir_term_bounds(t, last, &min, &max);
        if (variable != UIR_VARIABLE_NONE && max < t->variables.data[variable].max)
            t->variables.data[variable].max = max < 0 ? 0 : max;
        uir_term_add_axiom(t, variable, uir_term_sub(t, last, uir_term_variable(t, variable)));
    }
    return variable;
}

static uir_term of_symbol_dim(uir_terms *t, uint32_t index) {
    uir_igraph *g = t->igraph;
    if (index >= g->symbols.count) return UIR_TERM_UNKNOWN;
    const uir_isymbol *symbol = &g->symbols.data[index];
    if (symbol->kind == UIR_ISYMBOL_LET || symbol->kind == UIR_ISYMBOL_CONSTANT || symbol->kind == UIR_ISYMBOL_DEVICE)
        return uir_term_of_dim(t, symbol->definition);
    uir_term term = uir_term_variable(t, uir_term_of_symbol(t, index));
    uir_symbol_facts facts = uir_dims_symbol_facts(g->dims, symbol->symbol);
    bool size = symbol->kind == UIR_ISYMBOL_DIM || symbol->kind == UIR_ISYMBOL_TILE;
    return size && facts.multiple_of > 1 ? uir_term_mul(t, term, uir_term_const(t, facts.multiple_of)) : term;
}

static uir_term convert(uir_terms *t, uir_dim dim) {
    const uir_dim_node *node = uir_dim_get(t->igraph->dims, dim);
    uir_dim operands[64];
    uint32_t count = node->count;
    uir_dim_kind kind = node->kind;
    if (kind == UIR_DIM_CONST) return uir_term_const(t, node->value);
    if (kind == UIR_DIM_SYMBOL)
        return of_symbol_dim(t, uir_igraph_symbol_index(t->igraph, (uir_symbol){(uint32_t)node->value}));
    if (count == 0 || count > 64) return UIR_TERM_UNKNOWN;
    memcpy(operands, node->operands, count * sizeof *operands);
    uir_term result = uir_term_of_dim(t, operands[0]);
    for (uint32_t i = 1; i < count; i++) {
        uir_term other = uir_term_of_dim(t, operands[i]);
        switch (kind) {
        case UIR_DIM_ADD:
            result = uir_term_add(t, result, other);
            break;
        case UIR_DIM_MUL:
            result = uir_term_mul(t, result, other);
            break;
        case UIR_DIM_FLOORDIV:
            result = uir_term_floordiv(t, result, other);
            break;
        case UIR_DIM_CEILDIV:
            result = uir_term_floordiv(t, uir_term_add(t, result, uir_term_sub(t, other, uir_term_const(t, 1))), other);
            break;
        case UIR_DIM_MOD:
            result = uir_term_sub(t, result, uir_term_mul(t, other, uir_term_floordiv(t, result, other)));
            break;
        case UIR_DIM_MIN:
            result = uir_term_min(t, result, other);
            break;
        default:
            result = uir_term_max(t, result, other);
            break;
        }
    }
    return result;
}

uir_term uir_term_of_dim(uir_terms *t, uir_dim dim) {
    if (!dim.id) return UIR_TERM_UNKNOWN;
    if (dim.id >= t->of_dim_count) {
        uint32_t count = 2 * dim.id + 64;
        uir_term *grown = uir_arena_allocate_array(t->arena, count, sizeof *grown);
        if (!grown) {
            t->failed = true;
            return UIR_TERM_UNKNOWN;
        }
        if (t->of_dim_count) memcpy(grown, t->of_dim, t->of_dim_count * sizeof *grown);
        t->of_dim = grown;
        t->of_dim_count = count;
    }
    if (t->of_dim[dim.id]) return t->of_dim[dim.id];
    uir_term term = convert(t, dim);
    t->of_dim[dim.id] = term;
    return term;
}

/* ---- taking apart ---- */
bool uir_term_mentions(const uir_terms *t, uir_term term, uint32_t variable) {
    if (!term || variable == UIR_VARIABLE_NONE) return false;
    const uir_term_node *node = &t->nodes.data[term];
    if (!(node->mentions >> (variable & 63) & 1)) return false;
    for (uint32_t i = 0; i < node->count; i++) {
        for (uint32_t k = 0; k < node->monomials[i].degree; k++) {
            uint32_t v = node->monomials[i].variables[k];
            if (v == variable) return true;
            const uir_variable *x = &t->variables.data[v];
            if (x->kind >= UIR_VARIABLE_FLOORDIV &&
                (uir_term_mentions(t, x->a, variable) || uir_term_mentions(t, x->b, variable)))
                return true;
        }
    }
    return false;
}

static uir_term substitute_variable(uir_terms *t, uint32_t variable, const uint32_t *from, const uir_term *to,
                                    uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (from[i] == variable) return to[i];
    uir_variable v = t->variables.data[variable];
    if (v.kind < UIR_VARIABLE_FLOORDIV) return uir_term_variable(t, variable);
    uir_term a = uir_term_substitute(t, v.a, from, to, count), b = uir_term_substitute(t, v.b, from, to, count);
    if (a == v.a && b == v.b) return uir_term_variable(t, variable);
    return v.kind == UIR_VARIABLE_FLOORDIV ? uir_term_floordiv(t, a, b)
           : v.kind == UIR_VARIABLE_MIN    ? uir_term_min(t, a, b)
                                           : uir_term_max(t, a, b);
}

uir_term uir_term_substitute(uir_terms *t, uir_term term, const uint32_t *from, const uir_term *to, uint32_t count) {
    if (!term) return term;
    uir_term_node node = t->nodes.data[term];
    bool touched = false;
    for (uint32_t i = 0; i < count && !touched; i++) touched = node.mentions >> (from[i] & 63) & 1;
    if (!touched) return term;
    uir_term sum = uir_term_const(t, 0);
    for (uint32_t i = 0; i < node.count; i++) {
        uir_term product = uir_term_const(t, node.monomials[i].coefficient);
        for (uint32_t k = 0; k < node.monomials[i].degree; k++)
            product = uir_term_mul(t, product, substitute_variable(t, node.monomials[i].variables[k], from, to, count));
        sum = uir_term_add(t, sum, product);
    }
    return sum;
}

bool uir_term_split(uir_terms *t, uir_term term, uint32_t variable, uir_term *out_factor, uir_term *out_rest) {
    if (!term) return false;
    uir_term_node node = t->nodes.data[term];
    *out_factor = *out_rest = uir_term_const(t, 0);
    for (uint32_t i = 0; i < node.count; i++) {
        uir_monomial m = node.monomials[i];
        uint32_t found = 0, kept = 0;
        for (uint32_t k = 0; k < m.degree; k++) {
            if (m.variables[k] == variable)
                found++;
            else
                m.variables[kept++] = m.variables[k];
        }
        m.degree = kept;
        uir_term part = intern(t, &m, 1);
        if (found > 1 || uir_term_mentions(t, part, variable)) return false;
        if (found)
            *out_factor = uir_term_add(t, *out_factor, part);
        else
            *out_rest = uir_term_add(t, *out_rest, part);
    }
    return *out_factor && *out_rest;
}
