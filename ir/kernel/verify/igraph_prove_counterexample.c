/* Seeks a counterexample: sizes at which all facts and the negated goal hold.
 *
 * Most of what cannot be proved is plainly false somewhere. Points that satisfy every fact taken so far are looked for
 * at small and random sizes; one that satisfies the negated goal too ends the search for a proof before it begins. */
#include "ir/kernel/verify/igraph_prove.h"

#include <string.h>

#define TRIAL_POINTS 48

static uint32_t next_random(uir_prover *p) {
    p->random = p->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(p->random >> 33);
}

static bool value_of_variable(const uir_terms *t, uir_prover *p, uint32_t variable, int64_t *out);

/* False when the value is not known or does not fit. `without` is left out of the sum. */
static bool value_of_term(const uir_terms *t, uir_prover *p, uir_term term, uint32_t without, int64_t *out) {
    const uir_term_node *node = &t->nodes.data[term];
    *out = 0;
    for (uint32_t i = 0; i < node->count; i++) {
        const uir_monomial *m = &node->monomials[i];
        int64_t product = m->coefficient, value;
        if (m->degree == 1 && m->variables[0] == without) continue;
        for (uint32_t k = 0; k < m->degree; k++)
            if (!value_of_variable(t, p, m->variables[k], &value) || __builtin_mul_overflow(product, value, &product))
                return false;
        if (__builtin_add_overflow(*out, product, out)) return false;
    }
    return true;
}

/* The coefficient of a variable that stands alone in a term, 0 if it does not. */
static int64_t lone_coefficient(const uir_terms *t, uir_term term, uint32_t variable) {
    const uir_term_node *node = &t->nodes.data[term];
    int64_t found = 0;
    for (uint32_t i = 0; i < node->count; i++) {
        const uir_monomial *m = &node->monomials[i];
        for (uint32_t k = 0; k < m->degree; k++) {
            if (m->variables[k] != variable) continue;
            if (m->degree > 1) return 0;
            found = m->coefficient;
        }
    }
    return found;
}

static bool choose_value(const uir_terms *t, uir_prover *p, uint32_t variable, int64_t *out) {
    static const int16_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 17, 24, 31, 32, 33, 64, 100, 257, 1000};
    const uir_variable *v = &t->variables.data[variable];
    int64_t low = v->min, high = v->max, rest;
    for (uint32_t i = 0; i < v->axiom_count; i++) {
        int64_t c = lone_coefficient(t, v->axioms[i], variable);
        if ((c != 1 && c != -1) || !value_of_term(t, p, v->axioms[i], variable, &rest)) continue;
        if (c == -1 && rest < high) high = rest;
        if (c == 1 && -rest > low) low = -rest;
    }
    if (low == INT64_MIN) low = high < 0 ? high : 0;
    if (low > high) return false;
    uint32_t kind = next_random(p) % 8;
    int64_t wide = kind < 6 ? sizes[next_random(p) % (sizeof sizes / sizeof *sizes)] : 0;
    if (kind == 7) {
        *out = high == INT64_MAX ? low + 1000 : high;
    } else {
        int64_t span = high - low < 0 ? INT64_MAX : high - low;
        *out = low + (wide <= span ? wide : (int64_t)(next_random(p) % (uint64_t)(span + 1)));
        if (kind < 2 && v->kind == UIR_VARIABLE_SYMBOL && wide >= low && wide <= high) *out = wide;
    }
    return true;
}

static bool value_of_variable(const uir_terms *t, uir_prover *p, uint32_t variable, int64_t *out) {
    enum { UNSET, BUSY, SET };
    uint32_t at = 0;
    while (at < p->variable_count && p->variables[at] != variable) at++;
    if (at == p->variable_count || p->state[at] == BUSY) return false;
    if (p->state[at] == UNSET) {
        const uir_variable *v = &t->variables.data[variable];
        int64_t a, b, value;
        p->state[at] = BUSY;
        bool good;
        if (v->kind < UIR_VARIABLE_FLOORDIV) {
            good = choose_value(t, p, variable, &value);
        } else {
            good = value_of_term(t, p, v->a, UIR_VARIABLE_NONE, &a) &&
                   value_of_term(t, p, v->b, UIR_VARIABLE_NONE, &b) && (v->kind != UIR_VARIABLE_FLOORDIV || b > 0);
            if (good)
                value = v->kind == UIR_VARIABLE_FLOORDIV           ? a / b - (a % b < 0)
                        : (v->kind == UIR_VARIABLE_MIN) == (a < b) ? a
                                                                   : b;
        }
        if (!good) {
            p->state[at] = UNSET;
            return false;
        }
        p->values[at] = value;
        p->state[at] = SET;
    }
    *out = p->values[at];
    return true;
}

/* Does a trial point satisfy every column of the base, the negated goal among them? */
bool uir_prover_has_counterexample(uir_terms *t, uir_prover *p) {
    int64_t rows[UIR_PROVER_MAX_ROWS];
    for (uint32_t point = 0; point < TRIAL_POINTS; point++) {
        bool good = true;
        memset(p->state, 0, p->variable_count);
        for (uint32_t r = 0; r < p->row_count && good; r++) {
            rows[r] = 1;
            for (uint32_t k = 0; k < p->rows[r].degree && good; k++) {
                int64_t value;
                good = value_of_variable(t, p, p->rows[r].variables[k], &value) &&
                       !__builtin_mul_overflow(rows[r], value, &rows[r]);
            }
        }
        for (uint32_t c = 0; c < p->column_count && good; c++) {
            int64_t sum = 0, product;
            for (uint32_t i = p->column_start[c]; i < p->column_start[c + 1] && good; i++)
                good = !__builtin_mul_overflow(p->entries[i].coefficient, rows[p->entries[i].row], &product) &&
                       !__builtin_add_overflow(sum, product, &sum);
            good = good && sum >= 0;
        }
        t->effort += p->row_count + p->column_count;
        if (good) return true;
    }
    return false;
}
