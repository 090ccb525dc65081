/* Proves `term >= 0` by refuting `term <= -1`.
 *
 * Every fact is a polynomial that is at least 0: bounds and axioms of the variables that the goal reaches, the
 * assumptions, and products of these with variables of known sign, as far as they meet monomials already there. If a
 * non-negative combination of facts and of the negated goal is the constant -1, no values satisfy all (Farkas' lemma,
 * over monomials taken as unknowns). The combination is sought in floating point by the simplex method and then checked
 * exactly in integers, so a rounding error can lose a proof but never make one. Where min or max stand in the way, both
 * cases are tried. */
#include "ir/kernel/verify/igraph_prove.h"

#include <string.h>

#define MAX_BASE       90
#define MAX_ASSUMED    256 /* that are looked at */
#define MAX_SPLITS     4
#define MEMO_SIZE      (1u << 14)
#define EFFORT_LIMIT   UINT64_C(1500000000)
#define THOROUGH_LIMIT UINT64_C(400000000)
#define MEMORY_LIMIT   ((size_t)256 << 20)
#define EFFORT_STEP    64 /* of a step of work */

/* ---- rows: monomials ---- */
static uint32_t hash_monomial(const uir_monomial *m) {
    uint64_t h = m->degree * 0x9e3779b97f4a7c15u + 1;
    for (uint32_t i = 0; i < m->degree; i++) h = (h ^ (m->variables[i] + 1)) * 0xff51afd7ed558ccdu, h ^= h >> 31;
    return (uint32_t)(h >> 8) & (UIR_PROVER_ROW_TABLE - 1);
}

static bool same_monomial(const uir_monomial *a, const uir_monomial *b) {
    return a->degree == b->degree && memcmp(a->variables, b->variables, a->degree * sizeof *a->variables) == 0;
}

/* Row of a monomial; UINT32_MAX when absent and not to be added, or when there is no room. */
static uint32_t find_row(uir_prover *p, const uir_monomial *m, bool add) {
    uint32_t slot = hash_monomial(m);
    for (; p->row_table[slot]; slot = (slot + 1) & (UIR_PROVER_ROW_TABLE - 1))
        if (same_monomial(&p->rows[p->row_table[slot] - 1], m)) return p->row_table[slot] - 1u;
    if (!add) return UINT32_MAX;
    if (p->row_count == UIR_PROVER_MAX_ROWS) {
        p->full = true;
        return UINT32_MAX;
    }
    p->rows[p->row_count++] = *m;
    p->row_table[slot] = (uint16_t)p->row_count;
    return p->row_count - 1;
}

/* Adds to the column being built; equal rows are merged. */
static bool put_entry(uir_prover *p, uint32_t row, int64_t coefficient) {
    uint32_t begin = p->column_start[p->column_count], end = p->column_start[p->column_count + 1];
    if (row == UINT32_MAX) return false;
    for (uint32_t i = begin; i < end; i++)
        if (p->entries[i].row == row)
            return !__builtin_add_overflow(p->entries[i].coefficient, coefficient, &p->entries[i].coefficient);
    if (end == UIR_PROVER_MAX_ENTRIES) return false;
    p->entries[end] = (uir_prover_entry){row, coefficient};
    p->column_start[p->column_count + 1] = end + 1;
    return true;
}

static bool begin_column(uir_prover *p) {
    if (p->column_count == UIR_PROVER_MAX_COLUMNS) {
        p->full = true;
        return false;
    }
    p->column_start[p->column_count + 1] = p->column_start[p->column_count];
    return true;
}

static void end_column(uir_prover *p, bool good) {
    if (good)
        p->column_count++;
    else
        p->column_start[p->column_count + 1] = p->column_start[p->column_count];
}

/* Large numbers make bad conditioning and are seldom needed: facts with them are left out at first. */
#define NARROW_BOUND 4096

static void add_term_column(const uir_terms *t, uir_prover *p, uir_term term) {
    const uir_term_node *node = &t->nodes.data[term];
    if (!p->wide && p->column_count > 0) { /* not the goal */
        for (uint32_t i = 0; i < node->count; i++) {
            if (node->monomials[i].coefficient <= NARROW_BOUND && node->monomials[i].coefficient >= -NARROW_BOUND)
                continue;
            p->omitted = true;
            return;
        }
    }
    if (!term || p->column_count >= MAX_BASE || !begin_column(p)) return;
    bool good = true;
    for (uint32_t i = 0; i < node->count && good; i++)
        good = put_entry(p, find_row(p, &node->monomials[i], true), node->monomials[i].coefficient);
    end_column(p, good);
}

/* sign * (variable - limit) >= 0 */
static void add_bound_column(uir_prover *p, uint32_t variable, int64_t limit, int64_t sign) {
    if (p->column_count >= MAX_BASE || limit == INT64_MIN || limit == INT64_MAX || !begin_column(p)) return;
    uir_monomial m = {.degree = 1, .variables = {variable}}, one = {.degree = 0};
    bool good = put_entry(p, find_row(p, &m, true), sign) &&
                (limit == 0 || put_entry(p, find_row(p, &one, true), -sign * limit));
    end_column(p, good);
}

/* ---- which facts matter ---- */
static bool include_variable(uir_prover *p, uint32_t variable) {
    for (uint32_t i = 0; i < p->variable_count; i++)
        if (p->variables[i] == variable) return false;
    if (p->variable_count == UIR_PROVER_MAX_VARIABLES) return false;
    p->variables[p->variable_count++] = variable;
    return true;
}

static bool is_included(const uir_prover *p, uint32_t variable) {
    for (uint32_t i = 0; i < p->variable_count; i++)
        if (p->variables[i] == variable) return true;
    return false;
}

static void include_term(const uir_terms *t, uir_prover *p, uir_term term) {
    const uir_term_node *node = &t->nodes.data[term];
    for (uint32_t i = 0; i < node->count; i++)
        for (uint32_t k = 0; k < node->monomials[i].degree; k++) include_variable(p, node->monomials[i].variables[k]);
}

static bool touches(const uir_terms *t, const uir_prover *p, uir_term term) {
    const uir_term_node *node = &t->nodes.data[term];
    for (uint32_t i = 0; i < node->count; i++)
        for (uint32_t k = 0; k < node->monomials[i].degree; k++)
            if (is_included(p, node->monomials[i].variables[k])) return true;
    return node->count > 0 && node->monomials[0].degree == 0 && node->count == 1;
}

/* Is a variable that is included inside a quotient, a min or a max of the term? */
static bool touches_deep(const uir_terms *t, const uir_prover *p, uir_term term) {
    for (uint32_t i = 0; i < p->variable_count; i++)
        if (uir_term_mentions(t, term, p->variables[i])) return true;
    return false;
}

static void collect(uir_terms *t, uir_prover *p, uir_term negated, bool wide, bool deep) {
    bool taken[MAX_ASSUMED] = {false};
    p->row_count = p->column_count = p->variable_count = 0;
    p->column_start[0] = 0;
    p->full = p->omitted = p->missed = false;
    p->wide = wide;
    p->assumed = 1;
    memset(p->row_table, 0, sizeof p->row_table);
    uir_monomial one = {.degree = 0};
    find_row(p, &one, true); /* row 0 is the constant */
    add_term_column(t, p, negated);
    include_term(t, p, negated);
    for (uint32_t done = 0, again = 1; again;) {
        for (; done < p->variable_count; done++) {
            const uir_variable *v = &t->variables.data[p->variables[done]];
            add_bound_column(p, p->variables[done], v->min, 1);
            if (wide || v->max <= NARROW_BOUND)
                add_bound_column(p, p->variables[done], v->max, -1);
            else
                p->omitted = p->omitted || v->max != INT64_MAX;
            for (uint32_t i = 0; i < v->axiom_count; i++) {
                add_term_column(t, p, v->axioms[i]);
                include_term(t, p, v->axioms[i]);
            }
        }
        again = 0;
        for (uint32_t i = 0; i < t->assumptions.count && i < MAX_ASSUMED; i++) {
            uir_term assumption = t->assumptions.data[i];
            if (taken[i]) continue;
            if (!touches(t, p, assumption)) {
                if (!deep || !touches_deep(t, p, assumption)) continue;
                p->missed = true;
            }
            taken[i] = true;
            again = 1;
            p->assumed = (p->assumed ^ assumption) * 0x9e3779b97f4a7c15u;
            p->assumed ^= p->assumed >> 29;
            add_term_column(t, p, assumption);
            include_term(t, p, assumption);
        }
    }
    if (deep) t->effort += (uint64_t)t->assumptions.count * p->variable_count;
}

/* ---- products ---- */
static bool extend(const uir_monomial *m, uint32_t variable, uir_monomial *out) {
    if (m->degree >= 4) return false;
    *out = *m;
    uint32_t at = m->degree;
    while (at > 0 && out->variables[at - 1] > variable) {
        out->variables[at] = out->variables[at - 1];
        at--;
    }
    out->variables[at] = variable;
    out->degree = m->degree + 1;
    return true;
}

/* Does some monomial of the column, times the variable, occur already, and not only as the variable itself? */
static bool product_meets(uir_prover *p, uint32_t column, uint32_t variable) {
    for (uint32_t i = p->column_start[column]; i < p->column_start[column + 1]; i++) {
        uir_monomial product;
        const uir_monomial *m = &p->rows[p->entries[i].row];
        if (m->degree == 0 || !extend(m, variable, &product)) continue;
        if (find_row(p, &product, false) != UINT32_MAX) return true;
    }
    return false;
}

/* column * sign * (variable - limit) */
static void add_product(uir_prover *p, uint32_t column, uint32_t variable, int64_t limit, int64_t sign) {
    if (limit == INT64_MIN || limit == INT64_MAX || !begin_column(p)) return;
    bool good = true;
    for (uint32_t i = p->column_start[column]; i < p->column_start[column + 1] && good; i++) {
        uir_monomial product;
        int64_t scaled, c = p->entries[i].coefficient;
        good = extend(&p->rows[p->entries[i].row], variable, &product) &&
               !__builtin_mul_overflow(c, -sign * limit, &scaled) && c != INT64_MIN &&
               put_entry(p, find_row(p, &product, true), sign * c) &&
               (limit == 0 || put_entry(p, p->entries[i].row, scaled));
    }
    end_column(p, good);
}

/* Where x*a*b occurs, a fact about x must be multiplied by a*b at once to meet it: these are the factors to try. */
#define MAX_FACTORS 8

static void add_factor(const uir_terms *t, const uir_monomial *m, uint32_t without, uir_monomial *factors,
                       uint32_t *count) {
    uir_monomial factor = {.coefficient = 0};
    for (uint32_t k = 0; k < m->degree; k++) {
        if (k == without) continue;
        if (t->variables.data[m->variables[k]].min < 0) return;
        factor.variables[factor.degree++] = m->variables[k];
    }
    for (uint32_t i = 0; i < *count; i++)
        if (same_monomial(&factors[i], &factor)) return;
    if (*count < MAX_FACTORS) factors[(*count)++] = factor;
}

static bool multiply_row(const uir_monomial *m, const uir_monomial *factor, uir_monomial *out) {
    *out = *m;
    for (uint32_t k = 0; k < factor->degree; k++) {
        uir_monomial wider;
        if (!extend(out, factor->variables[k], &wider)) return false;
        *out = wider;
    }
    return true;
}

static void add_wide_products(const uir_terms *t, uir_prover *p, uint32_t to) {
    uir_monomial factors[MAX_FACTORS], product;
    uint32_t count = 0, rows = p->row_count;
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t k = 0; p->rows[r].degree >= 3 && k < p->rows[r].degree; k++)
            add_factor(t, &p->rows[r], k, factors, &count);
    for (uint32_t f = 0; f < count; f++) {
        for (uint32_t c = 0; c < to && !p->full; c++) {
            bool meets = false;
            for (uint32_t i = p->column_start[c]; i < p->column_start[c + 1] && !meets; i++) {
                const uir_monomial *m = &p->rows[p->entries[i].row];
                meets = m->degree == 1 && multiply_row(m, &factors[f], &product) &&
                        find_row(p, &product, false) != UINT32_MAX;
            }
            if (!meets || !begin_column(p)) continue;
            bool good = true;
            for (uint32_t i = p->column_start[c]; i < p->column_start[c + 1] && good; i++)
                good = multiply_row(&p->rows[p->entries[i].row], &factors[f], &product) &&
                       put_entry(p, find_row(p, &product, true), p->entries[i].coefficient);
            end_column(p, good);
        }
    }
}

/* `upper`: with (max - variable) in place of (variable - min). */
static void add_products(const uir_terms *t, uir_prover *p, uint32_t to, bool upper) {
    bool nonlinear[UIR_PROVER_MAX_VARIABLES] = {false};
    for (uint32_t r = 0; r < p->row_count; r++) {
        if (p->rows[r].degree < 2) continue;
        for (uint32_t k = 0; k < p->rows[r].degree; k++)
            for (uint32_t v = 0; v < p->variable_count; v++)
                if (p->variables[v] == p->rows[r].variables[k]) nonlinear[v] = true;
    }
    for (uint32_t v = 0; v < p->variable_count; v++) {
        const uir_variable *variable = &t->variables.data[p->variables[v]];
        if (!nonlinear[v]) continue;
        if (upper ? variable->max > (p->wide ? INT64_C(1) << 40 : NARROW_BOUND) : variable->min < 0) continue;
        for (uint32_t c = 0; c < to && !p->full; c++) {
            if (!product_meets(p, c, p->variables[v])) continue;
            add_product(p, c, p->variables[v], upper ? variable->max : variable->min, upper ? -1 : 1);
        }
    }
}

static bool refute(uir_terms *t) {
    uir_prover *p = t->room;
    uint32_t base = p->column_count, before;
    if (uir_prover_solve(t, p) && uir_prover_certify(p)) return true;
    add_wide_products(t, p, base);
    add_products(t, p, base, false);
    if (p->column_count == base) return false;
    if (uir_prover_solve(t, p) && uir_prover_certify(p)) return true;
    /* Further rounds: with the greatest values, then products of products. */
    for (int round = 0;
         round < 2 && p->column_count < UIR_PROVER_MAX_COLUMNS / 2 && p->row_count < UIR_PROVER_MAX_ROWS * 2 / 3;
         round++) {
        before = p->column_count;
        add_products(t, p, round ? before : base, round == 0);
        if (p->column_count > before && uir_prover_solve(t, p) && uir_prover_certify(p)) return true;
    }
    return false;
}

/* ---- cases ---- */
static bool already_split(const uir_terms *t, uir_term one, uir_term other) {
    for (uint32_t i = 0; i < t->assumptions.count; i++)
        if (t->assumptions.data[i] == one || t->assumptions.data[i] == other) return true;
    return false;
}

/* The first min or max, not decided yet, among the variables that the goal reached; gives what either case assumes. */
static bool find_split(uir_terms *t, uir_term *out_one, uir_term *out_other) {
    uint32_t variables[UIR_PROVER_MAX_VARIABLES], count = t->room->variable_count;
    memcpy(variables, t->room->variables, count * sizeof *variables);
    for (uint32_t i = 0; i < count; i++) {
        uir_variable v = t->variables.data[variables[i]];
        if (v.kind != UIR_VARIABLE_MIN && v.kind != UIR_VARIABLE_MAX) continue;
        uir_term self = uir_term_variable(t, variables[i]);
        bool least = v.kind == UIR_VARIABLE_MIN;
        *out_one = least ? uir_term_sub(t, self, v.a) : uir_term_sub(t, v.a, self);
        *out_other = least ? uir_term_sub(t, self, v.b) : uir_term_sub(t, v.b, self);
        if (*out_one && *out_other && !already_split(t, *out_one, *out_other)) return true;
    }
    return false;
}

void uir_term_spend(uir_terms *t, uint64_t effort) {
    t->effort += effort;
    uint64_t limit = t->thorough ? THOROUGH_LIMIT : EFFORT_LIMIT;
    if (t->effort > limit || t->arena->used > MEMORY_LIMIT) t->exhausted = true;
    uint64_t steps = (t->effort - t->told) / EFFORT_STEP;
    t->told += steps * EFFORT_STEP;
    if (uir_arena_spend(t->arena, steps < UINT32_MAX ? (uint32_t)steps : UINT32_MAX) != UIR_STATUS_OK)
        t->failed = t->exhausted = true; /* it is to stop */
}

static struct uir_proof_memo *find_memo(uir_terms *t, uir_term goal, uint64_t *out_key) {
    *out_key = t->room->assumed | 1;
    return &t->memo[(uint32_t)((*out_key >> 7) ^ goal * 0x85ebca6bu) & (MEMO_SIZE - 1)];
}

static bool refute_by_cases(uir_terms *t, uir_term negated, uint32_t splits) {
    uir_term_spend(t, 0);
    if (t->exhausted) return false;
    collect(t, t->room, negated, true, t->thorough);
    uint64_t key;
    struct uir_proof_memo *memo = find_memo(t, negated, &key);
    if (memo->key == key && memo->goal == negated) return memo->proved;
    uir_term one, other;
    bool proved = false;
    if (!uir_prover_has_counterexample(t, t->room)) {
        /* Few facts at first: of more a combination is harder to find. */
        bool missed = t->room->missed;
        for (int deep = 0; deep <= missed && !proved; deep++) {
            collect(t, t->room, negated, false, deep);
            proved = refute(t);
            if (proved || !t->room->omitted) continue;
            collect(t, t->room, negated, true, deep);
            proved = refute(t);
        }
        if (!proved && splits > 0 && find_split(t, &one, &other)) {
            uint32_t count = t->assumptions.count;
            proved = true;
            for (int k = 0; k < 2 && proved; k++) {
                uir_term_assume(t, k ? other : one);
                proved = refute_by_cases(t, negated, splits - 1);
                t->assumptions.count = count;
            }
        }
    }
    if (!t->exhausted && splits == MAX_SPLITS) *memo = (struct uir_proof_memo){key, negated, proved};
    return proved;
}

void uir_term_assume(uir_terms *t, uir_term term) {
    int64_t value;
    if (uir_term_is_const(t, term, &value) && value >= 0) return; /* says nothing */
    if (term && uir_vector_push(t->arena, &t->assumptions, term) != UIR_STATUS_OK) t->failed = true;
}

static bool prepare(uir_terms *t) {
    if (!t->room) t->room = uir_arena_allocate(t->arena, sizeof *t->room);
    if (!t->memo) t->memo = uir_arena_allocate_array(t->arena, MEMO_SIZE, sizeof *t->memo);
    if (!t->room || !t->memo) t->failed = true;
    return !t->failed;
}

bool uir_term_prove(uir_terms *t, uir_term term) {
    int64_t min, max;
    if (!term || t->exhausted || t->failed) return false;
    uir_term_bounds(t, term, &min, &max);
    if (min >= 0) return true;
    for (uint32_t i = 0; i < t->assumptions.count; i++) /* it is one, or one and what is at least 0 */
        if (t->assumptions.data[i] == term || uir_term_least_difference(t, term, t->assumptions.data[i]) >= 0)
            return true;
    if (!prepare(t)) return false;
    uir_term negated = uir_term_sub(t, uir_term_const(t, -1), term);
    return negated && refute_by_cases(t, negated, MAX_SPLITS);
}

bool uir_term_prove_le(uir_terms *t, uir_term a, uir_term b) {
    return a && b && (a == b || uir_term_prove(t, uir_term_sub(t, b, a)));
}

bool uir_term_prove_lt(uir_terms *t, uir_term a, uir_term b) {
    return a && b && uir_term_prove(t, uir_term_sub(t, uir_term_sub(t, b, a), uir_term_const(t, 1)));
}

bool uir_term_prove_eq(uir_terms *t, uir_term a, uir_term b) {
    if (!a || !b) return false;
    return a == b || (uir_term_prove_le(t, a, b) && uir_term_prove_le(t, b, a));
}

/* An assumption is refuted from the others: what it shares variables with, directly or through one another, comes in
 * by itself. Those that this did not reach may contradict one another all the same: the last of them is next. */
bool uir_term_prove_unreachable(uir_terms *t) {
    bool reached[MAX_ASSUMED] = {false};
    bool proved = false;
    if (!prepare(t)) return false;
    for (uint32_t goal = t->assumptions.count; goal-- > 0 && !proved && !t->exhausted;) {
        if (goal < MAX_ASSUMED && reached[goal]) continue;
        uir_term last = t->assumptions.data[t->assumptions.count - 1], one = t->assumptions.data[goal];
        uir_term negation = uir_term_sub(t, uir_term_const(t, -1), one);
        if (!negation) continue;
        t->assumptions.data[goal] = last;
        t->assumptions.count--;
        proved = uir_term_prove(t, negation);
        t->assumptions.data[goal] = one;
        t->assumptions.data[t->assumptions.count++] = last;
        for (uint32_t i = 0; i < goal && i < MAX_ASSUMED; i++)
            reached[i] = reached[i] || touches(t, t->room, t->assumptions.data[i]) ||
                         (t->thorough && touches_deep(t, t->room, t->assumptions.data[i]));
    }
    return proved;
}
