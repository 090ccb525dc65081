/* Facts about what is defined, and the proof that they cover a region.
 *
 * A region is covered when a point of it, taken as an unknown, lies in the box of some fact. The values of the fact's
 * variables that show it are found by dividing: of a box that starts at p*tr + i*8, p is the point's coordinate div tr.
 * What cannot be proved of a fact (a condition, one side of its box) becomes a case: either it holds, and the fact
 * covers the point, or it does not, and another fact must. */
#include "ir/kernel/verify/igraph_verify.h"

#include <string.h>

#define MAX_UNPROVED      2
#define MAX_CASES         3
#define MAX_ORDERED_CASES 1 /* of the slower way */
#define MAX_CUTS          64

/* ---- sets of facts ---- */
uir_status uir_iverify_facts_push(uir_iverifier *v, uir_ifacts *facts, const uir_ifact *fact) {
    if (facts->count == facts->capacity) {
        uint32_t capacity = facts->capacity ? 2 * facts->capacity : 16;
        uir_ifact *grown;
        UIR_TRY_ALLOCATE(grown, uir_arena_allocate_array(v->arena, capacity, sizeof *grown));
        if (facts->count) memcpy(grown, facts->data, facts->count * sizeof *grown);
        facts->data = grown;
        facts->capacity = capacity;
    }
    facts->data[facts->count++] = *fact;
    return UIR_STATUS_OK;
}

uir_status uir_iverify_facts_copy(uir_iverifier *v, const uir_ifacts *from, uir_ifacts *to) {
    to->count = 0;
    for (uint32_t i = 0; i < from->count; i++) UIR_TRY(uir_iverify_facts_push(v, to, &from->data[i]));
    return UIR_STATUS_OK;
}

static bool iverify_is_active(const uir_iverifier *v, uint32_t variable) {
    for (uint32_t i = 0; i < v->active.count; i++)
        if (v->active.data[i] == variable) return true;
    return false;
}

bool uir_iverify_fact_mentions(const uir_iverifier *v, const uir_ifact *fact, uint32_t variable) {
    uint32_t rank = uir_iverify_pointer(v, fact->pointer)->rank;
    for (uint32_t d = 0; d < rank; d++)
        if (uir_term_mentions(&v->terms, fact->low[d], variable) ||
            uir_term_mentions(&v->terms, fact->high[d], variable))
            return true;
    for (uint32_t i = 0; i < fact->condition_count; i++)
        if (uir_term_mentions(&v->terms, fact->conditions[i], variable)) return true;
    for (uint32_t i = 0; i < fact->variable_count; i++) {
        const uir_variable *x = &v->terms.variables.data[fact->variables[i]];
        for (uint32_t k = 0; k < x->axiom_count; k++)
            if (fact->variables[i] != variable && uir_term_mentions(&v->terms, x->axioms[k], variable)) return true;
    }
    return false;
}

uint32_t uir_iverify_copy_variable(uir_iverifier *v, uint32_t variable, const uint32_t *from, const uir_term *to,
                                   uint32_t count) {
    uir_variable x = v->terms.variables.data[variable];
    uint32_t copy = uir_term_fresh(&v->terms, x.min, x.max);
    uint32_t more_from[UIR_IFACT_MAX_VARIABLES + 17];
    uir_term more_to[UIR_IFACT_MAX_VARIABLES + 17];
    if (count > UIR_IFACT_MAX_VARIABLES + 16) return UIR_VARIABLE_NONE;
    memcpy(more_from, from, count * sizeof *from);
    memcpy(more_to, to, count * sizeof *to);
    more_from[count] = variable;
    more_to[count] = uir_term_variable(&v->terms, copy);
    for (uint32_t i = 0; i < x.axiom_count; i++)
        uir_term_add_axiom(&v->terms, copy, uir_term_substitute(&v->terms, x.axioms[i], more_from, more_to, count + 1));
    return copy;
}

static void substitute_fact(uir_iverifier *v, uir_ifact *fact, const uint32_t *from, const uir_term *to,
                            uint32_t count) {
    uint32_t rank = uir_iverify_pointer(v, fact->pointer)->rank;
    for (uint32_t d = 0; d < rank; d++) {
        fact->low[d] = uir_term_substitute(&v->terms, fact->low[d], from, to, count);
        fact->high[d] = uir_term_substitute(&v->terms, fact->high[d], from, to, count);
    }
    for (uint32_t i = 0; i < fact->condition_count; i++)
        fact->conditions[i] = uir_term_substitute(&v->terms, fact->conditions[i], from, to, count);
}

static bool has_unknown(const uir_iverifier *v, const uir_ifact *fact) {
    uint32_t rank = uir_iverify_pointer(v, fact->pointer)->rank;
    for (uint32_t d = 0; d < rank; d++)
        if (!fact->low[d] || !fact->high[d]) return true;
    for (uint32_t i = 0; i < fact->condition_count; i++)
        if (!fact->conditions[i]) return true;
    return false;
}

bool uir_iverify_rename_active(uir_iverifier *v, uir_ifact *fact) {
    uint32_t from[UIR_IFACT_MAX_VARIABLES], count = 0;
    uir_term to[UIR_IFACT_MAX_VARIABLES];
    for (uint32_t i = 0; i < fact->variable_count; i++) {
        bool follows = false; /* its range mentions a renamed one */
        const uir_variable *x = &v->terms.variables.data[fact->variables[i]];
        for (uint32_t k = 0; k < count; k++)
            for (uint32_t a = 0; a < x->axiom_count; a++)
                follows = follows || uir_term_mentions(&v->terms, x->axioms[a], from[k]);
        if (!follows && !iverify_is_active(v, fact->variables[i])) continue;
        uint32_t copy = uir_iverify_copy_variable(v, fact->variables[i], from, to, count);
        from[count] = fact->variables[i];
        to[count++] = uir_term_variable(&v->terms, copy);
        fact->variables[i] = copy;
    }
    if (count) substitute_fact(v, fact, from, to, count);
    return !has_unknown(v, fact);
}

static bool same_fact(const uir_iverifier *v, const uir_ifact *a, const uir_ifact *b) {
    uint32_t rank = uir_iverify_pointer(v, a->pointer)->rank;
    if (a->pointer != b->pointer || a->variable_count != b->variable_count || a->condition_count != b->condition_count)
        return false;
    return memcmp(a->variables, b->variables, a->variable_count * sizeof *a->variables) == 0 &&
           memcmp(a->conditions, b->conditions, a->condition_count * sizeof *a->conditions) == 0 &&
           memcmp(a->low, b->low, rank * sizeof *a->low) == 0 && memcmp(a->high, b->high, rank * sizeof *a->high) == 0;
}

/* Every side is known to be at least 0 long. */
static bool is_plain(uir_iverifier *v, const uir_ifact *fact) {
    uint32_t rank = uir_iverify_pointer(v, fact->pointer)->rank;
    for (uint32_t d = 0; d < rank; d++) {
        int64_t width;
        uir_term side = uir_term_sub(&v->terms, fact->high[d], fact->low[d]);
        if (uir_term_is_const(&v->terms, side, &width) ? width < 0 : !uir_term_prove(&v->terms, side)) return false;
    }
    return true;
}

/* Boxes side by side along one dim are one: `fact` grows by `other`. */
static bool join(const uir_iverifier *v, uir_ifact *fact, const uir_ifact *other) {
    uint32_t rank = uir_iverify_pointer(v, fact->pointer)->rank, along = rank;
    uir_ifact moved = *other;
    for (uint32_t d = 0; d < rank; d++) {
        if (fact->low[d] == other->low[d] && fact->high[d] == other->high[d]) continue;
        if (along < rank || (fact->low[d] != other->high[d] && fact->high[d] != other->low[d])) return false;
        along = d;
        moved.low[d] = fact->low[d];
        moved.high[d] = fact->high[d];
    }
    if (along == rank || !same_fact(v, fact, &moved)) return false;
    if (fact->low[along] == other->high[along])
        fact->low[along] = other->low[along];
    else
        fact->high[along] = other->high[along];
    return true;
}

static bool push_fact(uir_iverifier *v, const uir_ifact *fact);

void uir_iverify_add_fact(uir_iverifier *v, const uir_ifact *fact) {
    if (has_unknown(v, fact) || !push_fact(v, fact)) return;
    /* Pieces of a row: what they cover together is a fact as well, or proofs would try them case by case. An empty box
     * is no neighbour: low <= high is not known of it. */
    uir_ifact whole = *fact;
    bool joined = false;
    for (uint32_t i = v->facts.count; i-- > 0;) {
        const uir_ifact *other = &v->facts.data[i];
        uir_ifact both = whole;
        if (other->pointer != fact->pointer || !join(v, &both, other) || !is_plain(v, &whole) || !is_plain(v, other))
            continue;
        whole = both;
        joined = true;
    }
    if (joined) push_fact(v, &whole);
}

/* Does `a` say less than `b`? What is in device memory is written once and read much later; what is on the chip is
 * written anew by each iteration. */
static bool says_less(const uir_iverifier *v, const uir_ifact *a, const uir_ifact *b) {
    bool lasts = uir_iverify_is_dram(v, a->pointer);
    if (lasts != uir_iverify_is_dram(v, b->pointer)) return !lasts;
    return a->condition_count > b->condition_count;
}

void uir_iverify_forget(const uir_iverifier *v, uir_ifacts *facts) {
    uint32_t least = 0;
    for (uint32_t i = 1; i < facts->count; i++)
        if (says_less(v, &facts->data[i], &facts->data[least])) least = i;
    facts->count--;
    memmove(facts->data + least, facts->data + least + 1, (facts->count - least) * sizeof *facts->data);
}

static bool push_fact(uir_iverifier *v, const uir_ifact *fact) {
    for (uint32_t i = 0; i < v->facts.count; i++)
        if (same_fact(v, &v->facts.data[i], fact)) return false;
    if (v->facts.count == UIR_IFACT_MAX) uir_iverify_forget(v, &v->facts);
    uir_ifact copy = *fact;
    copy.id = copy.birth = v->next_fact++;
    if (uir_iverify_facts_push(v, &v->facts, &copy) != UIR_STATUS_OK) v->failed = true;
    return true;
}

/* ---- forgetting ---- */
static bool survives(uir_iverifier *v, const uir_ifact *original, const uir_term *low, const uir_term *high) {
    uir_terms *t = &v->terms;
    uir_ifact fact = *original;
    if (!low || !uir_iverify_rename_active(v, &fact)) return false;
    uint32_t rank = uir_iverify_pointer(v, fact.pointer)->rank, mark = t->assumptions.count;
    for (uint32_t i = 0; i < fact.condition_count; i++) uir_term_assume(t, fact.conditions[i]);
    bool apart = fact.condition_count > 0 && uir_term_prove_unreachable(t);
    for (uint32_t d = 0; d < rank && !apart; d++)
        apart = uir_term_prove_le(t, fact.high[d], low[d]) || uir_term_prove_le(t, high[d], fact.low[d]);
    t->assumptions.count = mark;
    return apart;
}

void uir_iverify_kill(uir_iverifier *v, uint32_t pointer, const uir_term *low, const uir_term *high) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < v->facts.count; i++) {
        uir_ifact *fact = &v->facts.data[i];
        bool keep = fact->pointer != pointer || survives(v, fact, low, high);
        if (!keep && low && v->guard && fact->birth < v->guard_mark &&
            fact->condition_count < UIR_IFACT_MAX_CONDITIONS) {
            /* Where the condition around the write does not hold, nothing was written. */
            uir_ifact weaker = *fact;
            uir_term negated = uir_term_sub(&v->terms, uir_term_const(&v->terms, -1), *v->guard);
            if (negated && uir_iverify_rename_active(v, &weaker)) {
                weaker.conditions[weaker.condition_count++] = negated;
                weaker.id = v->next_fact++;
                *fact = weaker;
                keep = true;
            }
        }
        if (keep) v->facts.data[kept++] = *fact;
    }
    v->facts.count = kept;
}

/* ---- covering ---- */
typedef struct query {
    uint32_t pointer, rank;
    uir_term point[UIR_IGRAPH_MAX_RANK];
    int64_t from[UIR_IGRAPH_MAX_RANK], to[UIR_IGRAPH_MAX_RANK]; /* numbers around the point's range, exclusive end */
    bool in_order;
} query;

enum witness { WITNESS_SAME, WITNESS_GREATEST, WITNESS_LEAST, WITNESS_COUNT };

/* The greatest value of a variable by its axioms, or UNKNOWN. */
static uir_term greatest(uir_iverifier *v, uint32_t variable) {
    uir_terms *t = &v->terms;
    uir_variable x = t->variables.data[variable];
    for (uint32_t i = 0; i < x.axiom_count; i++) {
        uir_term factor, rest;
        int64_t value;
        if (uir_term_split(t, x.axioms[i], variable, &factor, &rest) && uir_term_is_const(t, factor, &value) &&
            value == -1)
            return rest;
    }
    return x.max == INT64_MAX ? UIR_TERM_UNKNOWN : uir_term_const(t, x.max);
}

/* Of the variables that a dim's start is linear in, the ones without a value get one from the point's coordinate. */
static void solve_dim(uir_iverifier *v, const uir_ifact *fact, uint32_t d, uir_term point, uir_term *values) {
    uir_terms *t = &v->terms;
    uint32_t chosen[UIR_IFACT_MAX_VARIABLES], count = 0;
    uir_term strides[UIR_IFACT_MAX_VARIABLES], rest = fact->low[d], known_from[UIR_IFACT_MAX_VARIABLES];
    uint32_t known[UIR_IFACT_MAX_VARIABLES], known_count = 0;
    for (uint32_t i = 0; i < fact->variable_count; i++) {
        if (!values[i]) continue;
        known[known_count] = fact->variables[i];
        known_from[known_count++] = values[i];
    }
    rest = uir_term_substitute(t, rest, known, known_from, known_count);
    for (uint32_t i = 0; i < fact->variable_count; i++) {
        uir_term factor, remainder;
        if (values[i] || !uir_term_mentions(t, rest, fact->variables[i])) continue;
        if (!uir_term_split(t, rest, fact->variables[i], &factor, &remainder)) return;
        for (uint32_t k = 0; k < fact->variable_count; k++)
            if (!values[k] && uir_term_mentions(t, factor, fact->variables[k])) return;
        chosen[count] = i;
        strides[count++] = factor;
        rest = remainder;
    }
    /* The widest stride first. */
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = i + 1; k < count; k++) {
            if (!uir_term_prove_le(t, strides[i], strides[k]) || uir_term_prove_le(t, strides[k], strides[i])) continue;
            uir_term stride = strides[i];
            uint32_t index = chosen[i];
            strides[i] = strides[k];
            chosen[i] = chosen[k];
            strides[k] = stride;
            chosen[k] = index;
        }
    }
    uir_term left = uir_term_sub(t, point, rest);
    for (uint32_t i = 0; i < count; i++) {
        values[chosen[i]] = uir_term_floordiv(t, left, strides[i]);
        left = uir_term_sub(t, left, uir_term_mul(t, values[chosen[i]], strides[i]));
    }
}

static bool find_values(uir_iverifier *v, const query *q, const uir_ifact *fact, enum witness kind, uir_term *values) {
    for (uint32_t i = 0; i < fact->variable_count; i++)
        values[i] = kind == WITNESS_SAME && iverify_is_active(v, fact->variables[i])
                        ? uir_term_variable(&v->terms, fact->variables[i])
                        : UIR_TERM_UNKNOWN;
    for (uint32_t d = 0; d < q->rank; d++) solve_dim(v, fact, d, q->point[d], values);
    for (uint32_t i = 0; i < fact->variable_count; i++) {
        if (values[i]) continue;
        uir_term least = uir_term_const(&v->terms, v->terms.variables.data[fact->variables[i]].min);
        values[i] = kind == WITNESS_GREATEST ? greatest(v, fact->variables[i]) : least;
        if (!values[i]) return false;
    }
    /* The greatest value of one variable may be said in terms of another. */
    for (uint32_t round = 0; kind == WITNESS_GREATEST && round < fact->variable_count; round++)
        for (uint32_t i = 0; i < fact->variable_count; i++)
            values[i] = uir_term_substitute(&v->terms, values[i], fact->variables, values, fact->variable_count);
    return true;
}

typedef struct obligations {
    uir_term terms[MAX_UNPROVED];
    uint32_t count; /* more than MAX_UNPROVED: too many */
    bool in_order; /* each is proved, or its failure looked at, where those before it hold: proves more, takes longer */
} obligations;

static void oblige(uir_iverifier *v, obligations *o, uir_term term) {
    if (o->count > MAX_UNPROVED || uir_term_prove(&v->terms, term)) return;
    if (!term || o->count == MAX_UNPROVED) {
        o->count = MAX_UNPROVED + 1;
        return;
    }
    o->terms[o->count++] = term;
    /* Where it fails is a case of its own: what comes after it may count on it. */
    if (o->in_order) uir_term_assume(&v->terms, term);
}

static void try_fact(uir_iverifier *v, const query *q, const uir_ifact *fact, enum witness kind, obligations *o) {
    uir_terms *t = &v->terms;
    uir_term values[UIR_IFACT_MAX_VARIABLES];
    uint32_t n = fact->variable_count;
    *o = (obligations){.in_order = q->in_order};
    if (!find_values(v, q, fact, kind, values)) {
        o->count = MAX_UNPROVED + 1;
        return;
    }
    uir_term one = uir_term_const(t, 1);
    uint32_t mark = t->assumptions.count;
    /* The guards first: ranges follow from them more often than the other way round. */
    for (uint32_t i = 0; i < fact->condition_count; i++)
        oblige(v, o, uir_term_substitute(t, fact->conditions[i], fact->variables, values, n));
    for (uint32_t d = 0; d < q->rank; d++) {
        uir_term low = uir_term_substitute(t, fact->low[d], fact->variables, values, n);
        uir_term high = uir_term_substitute(t, fact->high[d], fact->variables, values, n);
        oblige(v, o, uir_term_sub(t, q->point[d], low));
        oblige(v, o, uir_term_sub(t, uir_term_sub(t, high, one), q->point[d]));
    }
    for (uint32_t i = 0; i < n; i++) {
        uir_variable x = t->variables.data[fact->variables[i]];
        if (x.min != INT64_MIN) oblige(v, o, uir_term_sub(t, values[i], uir_term_const(t, x.min)));
        /* The greatest value of an index follows from its axioms. */
        if (x.max != INT64_MAX && x.axiom_count == 0)
            oblige(v, o, uir_term_sub(t, uir_term_const(t, x.max), values[i]));
        for (uint32_t a = 0; a < x.axiom_count; a++)
            oblige(v, o, uir_term_substitute(t, x.axioms[a], fact->variables, values, n));
    }
    t->assumptions.count = mark;
}

static bool point_covered(uir_iverifier *v, const query *q, uint32_t cases);

/* The fact covers the point but for what is unproved; where that fails, others must. The first that fails is a case:
 * those before it hold there. */
static bool covered_otherwise(uir_iverifier *v, const query *q, const obligations *o, uint32_t cases) {
    uir_terms *t = &v->terms;
    uint32_t begin = t->assumptions.count;
    bool covered = true;
    for (uint32_t i = 0; i < o->count && covered; i++) {
        uint32_t mark = t->assumptions.count;
        uir_term_assume(t, uir_term_sub(t, uir_term_const(t, -1), o->terms[i]));
        covered = point_covered(v, q, cases - 1);
        t->assumptions.count = mark;
        if (o->in_order) uir_term_assume(t, o->terms[i]);
    }
    t->assumptions.count = begin;
    return covered;
}

/* Is something unproved already assumed not to hold? */
static bool is_denied(uir_iverifier *v, const obligations *o) {
    for (uint32_t i = 0; i < o->count; i++) {
        uir_term negated = uir_term_sub(&v->terms, uir_term_const(&v->terms, -1), o->terms[i]);
        for (uint32_t k = v->base_assumptions; k < v->terms.assumptions.count; k++)
            if (v->terms.assumptions.data[k] == negated) return true;
    }
    return false;
}

/* By numbers alone: of many pieces side by side all but a few are seen to lie elsewhere without a proof. */
static bool lies_elsewhere(const uir_iverifier *v, const query *q, const uir_ifact *fact) {
    for (uint32_t d = 0; d < q->rank; d++) {
        int64_t least, greatest, unused;
        uir_term_bounds(&v->terms, fact->low[d], &least, &unused);
        uir_term_bounds(&v->terms, fact->high[d], &unused, &greatest);
        if (greatest <= q->from[d] || least >= q->to[d]) return true;
    }
    return false;
}

static bool point_covered(uir_iverifier *v, const query *q, uint32_t cases) {
    obligations partial[12];
    uint32_t partial_count = 0, facts = 0;
    if (uir_term_prove_unreachable(&v->terms)) return true;
    for (uint32_t i = v->facts.count; i-- > 0;) {
        uir_ifact fact = v->facts.data[i];
        if (fact.pointer != q->pointer || lies_elsewhere(v, q, &fact)) continue;
        facts++;
        uint32_t kinds = fact.variable_count ? WITNESS_COUNT : 1;
        for (uint32_t kind = 0; kind < kinds; kind++) {
            obligations o;
            try_fact(v, q, &fact, (enum witness)kind, &o);
            if (o.count == 0) return true;
            if (o.count <= MAX_UNPROVED && partial_count < 12 && !is_denied(v, &o)) partial[partial_count++] = o;
        }
    }
    for (uint32_t want = 1; cases > 0 && facts > 1 && want <= MAX_UNPROVED; want++)
        for (uint32_t i = 0; i < partial_count; i++)
            if (partial[i].count == want && covered_otherwise(v, q, &partial[i], cases)) return true;
    return false;
}

/* A variable for the coordinate of a point in a range; the same range gets the same one, so that proofs are found
 * again. */
uir_term uir_iverify_point(uir_iverifier *v, uir_term low, uir_term high, uir_term extent, uint32_t dim) {
    uir_terms *t = &v->terms;
    int64_t width;
    if (uir_term_is_const(t, uir_term_sub(t, high, low), &width) && width == 1) return low;
    for (uint32_t i = 0; i < v->points.count; i++) {
        const uir_ipoint *p = &v->points.data[i];
        if (p->low == low && p->high == high && p->extent == extent && p->dim == dim)
            return uir_term_variable(t, p->variable);
    }
    int64_t min, max;
    uir_term_bounds(t, low, &min, &max);
    uint32_t variable = uir_term_fresh(t, min < 0 ? 0 : min, INT64_MAX);
    uir_term x = uir_term_variable(t, variable), one = uir_term_const(t, 1);
    uir_term_add_axiom(t, variable, uir_term_sub(t, x, low));
    uir_term_add_axiom(t, variable, uir_term_sub(t, uir_term_sub(t, high, one), x));
    if (extent) uir_term_add_axiom(t, variable, uir_term_sub(t, uir_term_sub(t, extent, one), x));
    if (uir_vector_push(v->arena, &v->points, ((uir_ipoint){low, high, extent, dim, variable})) != UIR_STATUS_OK)
        v->failed = true;
    return x;
}

static bool covered_by_one(uir_iverifier *v, const uir_ifact *fact, const uir_term *low, const uir_term *high) {
    const uir_ipointer *p = uir_iverify_pointer(v, fact->pointer);
    if (fact->variable_count) return false;
    for (uint32_t d = 0; d < p->rank; d++) {
        if (!uir_term_prove_le(&v->terms, fact->low[d], low[d])) return false;
        if (!uir_term_prove_le(&v->terms, high[d], fact->high[d]) &&
            !uir_term_prove_le(&v->terms, uir_term_of_dim(&v->terms, p->extents[d]), fact->high[d]))
            return false;
    }
    for (uint32_t i = 0; i < fact->condition_count; i++)
        if (!uir_term_prove(&v->terms, fact->conditions[i])) return false;
    return true;
}

static bool box_covered(uir_iverifier *v, uint32_t pointer, const uir_term *low, const uir_term *high) {
    const uir_ipointer *p = uir_iverify_pointer(v, pointer);
    uir_terms *t = &v->terms;
    query q = {.pointer = pointer, .rank = p->rank};
    for (uint32_t d = 0; d < p->rank; d++)
        if (!low[d] || !high[d]) return false;
    for (uint32_t i = v->facts.count; i-- > 0;)
        if (v->facts.data[i].pointer == pointer && covered_by_one(v, &v->facts.data[i], low, high)) return true;
    for (uint32_t d = 0; d < p->rank; d++) {
        int64_t unused;
        uir_term_bounds(t, low[d], &q.from[d], &unused);
        uir_term_bounds(t, high[d], &unused, &q.to[d]);
        if (q.to[d] <= q.from[d]) return true; /* of nothing */
    }
    uint32_t mark = t->assumptions.count;
    uir_term one = uir_term_const(t, 1), zero = uir_term_const(t, 0);
    for (uint32_t d = 0; d < p->rank; d++) {
        uir_term extent = uir_term_of_dim(t, p->extents[d]);
        q.point[d] = uir_iverify_point(v, low[d], high[d], extent, d);
        if (q.point[d] == low[d]) { /* a coordinate of its own: only points inside matter */
            uir_term_assume(t, uir_term_sub(t, uir_term_sub(t, extent, one), low[d]));
            uir_term_assume(t, uir_term_sub(t, low[d], zero));
        } else { /* that there is one says that the range has elements */
            uir_term_assume(t, uir_term_sub(t, uir_term_sub(t, high[d], one), low[d]));
        }
    }
    bool covered = point_covered(v, &q, MAX_CASES);
    if (!covered) {
        q.in_order = true;
        covered = point_covered(v, &q, v->patient ? MAX_CASES : MAX_ORDERED_CASES);
    }
    t->assumptions.count = mark;
    return covered;
}

/* Numbers within the range at which some fact's boxes may begin: where its variables have their least values. */
static uint32_t find_cuts(uir_iverifier *v, uint32_t pointer, uint32_t d, int64_t from, int64_t to, int64_t *cuts) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < v->facts.count; i++) {
        const uir_ifact *fact = &v->facts.data[i];
        uir_term least[UIR_IFACT_MAX_VARIABLES];
        int64_t begin;
        uint32_t at = 0;
        if (fact->pointer != pointer) continue;
        for (uint32_t k = 0; k < fact->variable_count; k++)
            least[k] = uir_term_const(&v->terms, v->terms.variables.data[fact->variables[k]].min);
        uir_term first = uir_term_substitute(&v->terms, fact->low[d], fact->variables, least, fact->variable_count);
        if (!uir_term_is_const(&v->terms, first, &begin) || begin <= from || begin >= to) continue;
        while (at < count && cuts[at] < begin) at++;
        if (at < count && cuts[at] == begin) continue;
        if (count == MAX_CUTS) return 0;
        memmove(cuts + at + 1, cuts + at, (count - at) * sizeof *cuts);
        cuts[at] = begin;
        count++;
    }
    return count;
}

/* A range of known length that many facts share is proved part by part: taken whole, each fact would be a case of all
 * the others'. */
bool uir_iverify_covered(uir_iverifier *v, uint32_t pointer, const uir_term *low, const uir_term *high) {
    uint32_t rank = uir_iverify_pointer(v, pointer)->rank;
    for (uint32_t d = 0; d < rank; d++) {
        int64_t from, to, cuts[MAX_CUTS + 1];
        uir_term begin[UIR_IGRAPH_MAX_RANK], end[UIR_IGRAPH_MAX_RANK];
        if (!low[d] || !high[d] || !uir_term_is_const(&v->terms, low[d], &from) ||
            !uir_term_is_const(&v->terms, high[d], &to))
            continue;
        uint32_t count = find_cuts(v, pointer, d, from, to, cuts);
        bool covered = count >= MAX_CASES;
        for (uint32_t i = 0; i <= count && covered; i++) {
            memcpy(begin, low, rank * sizeof *begin);
            memcpy(end, high, rank * sizeof *end);
            begin[d] = uir_term_const(&v->terms, i ? cuts[i - 1] : from);
            end[d] = uir_term_const(&v->terms, i < count ? cuts[i] : to);
            covered = box_covered(v, pointer, begin, end);
        }
        if (covered) return true;
    }
    return box_covered(v, pointer, low, high);
}
