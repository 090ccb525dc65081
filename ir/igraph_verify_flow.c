/* Walks a kernel and knows, at every place, what is defined.
 *
 * A loop is analysed by induction. What its first iteration leaves behind is proposed as what every earlier iteration
 * has left; the body is walked with that and must re-establish it; what does not hold is dropped and the walk repeated.
 * Messages of walks that did not hold are dropped with them. */
#include "ir/igraph_verify.h"

#include <string.h>

#define MAX_ROUNDS 5

/* ---- conditions ---- */
static uir_term loop_trips(uir_iverifier *v, uint32_t symbol) {
    const uir_isymbol *loop = &v->g->symbols.data[symbol];
    return uir_term_of_dim(&v->terms, uir_dims_symbol_facts(v->g->dims, loop->symbol).bound);
}

bool uir_iverify_guard_terms(uir_iverifier *v, const uir_iguard *guard, uir_term *out, uint32_t *out_count) {
    uir_terms *t = &v->terms;
    bool complete = true;
    uir_term one = uir_term_const(t, 1);
    *out_count = 0;
    for (uint32_t i = 0; i < guard->count; i++) {
        const uir_iatom *atom = &guard->atoms[i];
        if (atom->kind != UIR_IATOM_RELATION) {
            /* first: l <= 0; last: l >= n - 1 */
            uir_term l = uir_term_variable(t, uir_term_of_symbol(t, atom->loop)), zero = uir_term_const(t, 0);
            uir_term last = uir_term_sub(t, loop_trips(v, atom->loop), one);
            if (atom->kind == UIR_IATOM_FIRST)
                out[(*out_count)++] = atom->negated ? uir_term_sub(t, l, one) : uir_term_sub(t, zero, l);
            else
                out[(*out_count)++] =
                    atom->negated ? uir_term_sub(t, uir_term_sub(t, last, one), l) : uir_term_sub(t, l, last);
            continue;
        }
        uir_term a = uir_term_of_dim(t, atom->condition.left), b = uir_term_of_dim(t, atom->condition.right);
        uir_term more = uir_term_sub(t, a, b), less = uir_term_sub(t, b, a);
        switch (atom->condition.relation) {
        case UIR_RELATION_LT:
            out[(*out_count)++] = uir_term_sub(t, less, one);
            break;
        case UIR_RELATION_LE:
            out[(*out_count)++] = less;
            break;
        case UIR_RELATION_GT:
            out[(*out_count)++] = uir_term_sub(t, more, one);
            break;
        case UIR_RELATION_GE:
            out[(*out_count)++] = more;
            break;
        case UIR_RELATION_EQ:
            out[(*out_count)++] = less;
            out[(*out_count)++] = more;
            break;
        case UIR_RELATION_NE:
            complete = false;
            break;
        }
    }
    for (uint32_t i = 0; i < *out_count; i++) complete = complete && out[i];
    return complete;
}

/* Facts made since `mark` hold only where the condition does. */
static void qualify_facts(uir_iverifier *v, uint32_t mark, const uir_term *terms, uint32_t count, bool complete) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < v->facts.count; i++) {
        uir_ifact fact = v->facts.data[i];
        bool keep = true;
        if (fact.birth >= mark) {
            keep = complete && fact.condition_count + count <= UIR_IFACT_MAX_CONDITIONS &&
                   uir_iverify_rename_active(v, &fact);
            for (uint32_t k = 0; keep && k < count; k++) {
                bool there = false;
                for (uint32_t c = 0; c < fact.condition_count; c++) there = there || fact.conditions[c] == terms[k];
                if (!there) fact.conditions[fact.condition_count++] = terms[k];
            }
        }
        if (keep) v->facts.data[kept++] = fact;
    }
    v->facts.count = kept;
}

static void walk_items(uir_iverifier *v, uint32_t first);
static void walk_item(uir_iverifier *v, const uir_iitem *item);

/* Walks what a condition guards. */
static void walk_guarded(uir_iverifier *v, const uir_iguard *guard, const uir_iitem *item) {
    if (guard->count == 0) {
        walk_item(v, item);
        return;
    }
    uir_term terms[32];
    uint32_t count, mark = v->next_fact, assumptions = v->terms.assumptions.count;
    bool complete = uir_iverify_guard_terms(v, guard, terms, &count);
    for (uint32_t i = 0; i < count; i++) uir_term_assume(&v->terms, terms[i]);
    if (!uir_term_prove_unreachable(&v->terms)) {
        const uir_term *outer = v->guard;
        uint32_t outer_mark = v->guard_mark;
        v->guard = complete && count == 1 ? &terms[0] : NULL;
        v->guard_mark = mark;
        walk_item(v, item);
        v->guard = outer;
        v->guard_mark = outer_mark;
        v->terms.assumptions.count = assumptions;
        qualify_facts(v, mark, terms, count, complete);
    }
    v->terms.assumptions.count = assumptions;
}

/* ---- slices ---- */
/* The part of a slice, in its own dims, in which every element is defined. */
typedef struct region {
    bool none, full;
    uir_term low[UIR_IGRAPH_MAX_RANK], high[UIR_IGRAPH_MAX_RANK];
} region;

typedef struct slice_terms {
    const uir_islice *slice;
    uint32_t rank;                                                /* of the pointer */
    uir_term low[UIR_IGRAPH_MAX_RANK], high[UIR_IGRAPH_MAX_RANK]; /* in the pointer's dims; a window: one point */
    uir_term counts[UIR_IGRAPH_MAX_RANK];                         /* of the slice's dims */
    bool loose; /* uses an index that may name no element: then the slice lies outside */
} slice_terms;

static bool mentions_loose_index(uir_iverifier *v, uir_term term) {
    for (uint32_t s = 0; s < v->g->symbols.count; s++)
        if (v->g->symbols.data[s].kind == UIR_ISYMBOL_INDEX && !v->index_safe[s] &&
            uir_term_mentions(&v->terms, term, v->terms.of_symbol[s]))
            return true;
    return false;
}

static void read_slice(uir_iverifier *v, const uir_islice *slice, slice_terms *out) {
    uir_terms *t = &v->terms;
    *out = (slice_terms){.slice = slice, .rank = uir_iverify_pointer(v, slice->pointer)->rank};
    for (uint32_t d = 0; d < out->rank; d++) {
        out->low[d] = uir_term_of_dim(t, slice->starts[d]);
        uir_term count = slice->window ? uir_term_const(t, 1) : uir_term_of_dim(t, slice->counts[d]);
        out->high[d] = uir_term_add(t, out->low[d], count);
        out->loose = out->loose || mentions_loose_index(v, out->low[d]);
    }
    for (uint32_t d = 0; d < slice->rank; d++) out->counts[d] = uir_term_of_dim(t, slice->counts[d]);
}

static bool inside_extents(uir_iverifier *v, const slice_terms *s) {
    const uir_ipointer *p = uir_iverify_pointer(v, s->slice->pointer);
    uir_terms *t = &v->terms;
    if (s->loose) return false;
    for (uint32_t d = 0; d < s->rank; d++) {
        if (!uir_term_prove(t, s->low[d]) || !uir_term_prove_le(t, s->high[d], uir_term_of_dim(t, p->extents[d])))
            return false;
    }
    return true;
}

static uir_term lesser(uir_iverifier *v, uir_term a, uir_term b) {
    return uir_term_prove_le(&v->terms, a, b)   ? a
           : uir_term_prove_le(&v->terms, b, a) ? b
                                                : uir_term_min(&v->terms, a, b);
}

static uir_term greater(uir_iverifier *v, uir_term a, uir_term b) {
    return uir_term_prove_le(&v->terms, b, a)   ? a
           : uir_term_prove_le(&v->terms, a, b) ? b
                                                : uir_term_max(&v->terms, a, b);
}

static void full_region(uir_iverifier *v, const slice_terms *s, region *out) {
    *out = (region){.full = true};
    for (uint32_t d = 0; d < s->slice->rank; d++) {
        out->low[d] = uir_term_const(&v->terms, 0);
        out->high[d] = s->counts[d];
    }
}

/* Is the content of the pointer given, wherever it is inside? */
static bool is_given(const uir_ipointer *p) {
    return p->role == UIR_IPOINTER_IN || p->role == UIR_IPOINTER_CONST ||
           (p->role == UIR_IPOINTER_OUT && p->tied != UINT32_MAX);
}

static bool region_covered(uir_iverifier *v, const slice_terms *s, const region *r) {
    uir_term low[UIR_IGRAPH_MAX_RANK], high[UIR_IGRAPH_MAX_RANK];
    for (uint32_t d = 0; d < s->rank; d++) {
        low[d] = uir_term_add(&v->terms, s->low[d], r->low[d]);
        high[d] = uir_term_add(&v->terms, s->low[d], r->high[d]);
    }
    return uir_iverify_covered(v, s->slice->pointer, low, high);
}

/* Along one dim of a slice, is the region all of it? */
static bool spans(uir_iverifier *v, const slice_terms *s, const region *r, uint32_t d) {
    return uir_term_prove_le(&v->terms, r->low[d], uir_term_const(&v->terms, 0)) &&
           uir_term_prove_le(&v->terms, s->counts[d], r->high[d]);
}

static bool region_is_full(uir_iverifier *v, const slice_terms *s, const region *r) {
    for (uint32_t d = 0; d < s->slice->rank; d++)
        if (!spans(v, s, r, d)) return false;
    return true;
}

/* Of a box slice, when it is not defined as a whole: the parts that facts speak of are tried, each alone and all
 * together. */
static void search_region(uir_iverifier *v, const slice_terms *s, const region *start, region *out) {
    region all = *start, tried;
    uint32_t candidates = 0;
    for (uint32_t i = v->facts.count; i-- > 0 && candidates < 12;) {
        uir_ifact fact = v->facts.data[i];
        bool usable = fact.pointer == s->slice->pointer;
        for (uint32_t k = 0; usable && k < fact.variable_count; k++)
            for (uint32_t d = 0; d < s->rank; d++)
                usable = usable && !uir_term_mentions(&v->terms, fact.low[d], fact.variables[k]) &&
                         !uir_term_mentions(&v->terms, fact.high[d], fact.variables[k]);
        if (!usable) continue;
        candidates++;
        tried = *start;
        for (uint32_t d = 0; d < s->rank; d++) {
            uir_term low = uir_term_sub(&v->terms, fact.low[d], s->low[d]),
                     high = uir_term_sub(&v->terms, fact.high[d], s->low[d]);
            tried.low[d] = greater(v, tried.low[d], low);
            tried.high[d] = lesser(v, tried.high[d], high);
            all.low[d] = greater(v, all.low[d], low);
            all.high[d] = lesser(v, all.high[d], high);
        }
        if (region_covered(v, s, &tried)) {
            *out = tried;
            return;
        }
    }
    *out = (region){.none = true};
    if (candidates > 1 && region_covered(v, s, &all)) *out = all;
}

static void defined_part(uir_iverifier *v, const slice_terms *s, bool inside, region *out) {
    const uir_ipointer *p = uir_iverify_pointer(v, s->slice->pointer);
    uir_terms *t = &v->terms;
    full_region(v, s, out);
    if (s->loose && !s->slice->has_fill) {
        *out = (region){.none = true};
        return;
    }
    bool covered = is_given(p) || uir_iverify_covered(v, s->slice->pointer, s->low, s->high);
    if (covered && (inside || s->slice->has_fill)) return;
    if (s->slice->window || s->loose) { /* of a window, what is inside need not be a box */
        *out = (region){.none = true};
        return;
    }
    out->full = false;
    if (!inside && !s->slice->has_fill) {
        for (uint32_t d = 0; d < s->rank; d++) {
            uir_term extent = uir_term_of_dim(t, p->extents[d]);
            out->low[d] = greater(v, out->low[d], uir_term_sub(t, uir_term_const(t, 0), s->low[d]));
            out->high[d] = lesser(v, out->high[d], uir_term_sub(t, extent, s->low[d]));
        }
    }
    if (!covered) {
        region start = *out;
        if (!region_covered(v, s, &start)) search_region(v, s, &start, out);
    }
    if (!out->none) out->full = region_is_full(v, s, out);
}

/* ---- results ---- */
static bool is_group_shared(const uir_iverifier *v, uint32_t pointer) {
    return uir_iverify_space(v, pointer)->scope == UIR_SCOPE_GROUP;
}

/* What one unit of a group writes into a shared space, all of them do: the fact is said of every unit. */
static void spread_over_units(uir_iverifier *v, uir_ifact *fact) {
    const uir_iphase *phase = &v->g->phases.data[v->phase];
    uint32_t from[5], count = 0;
    uir_term to[5];
    for (uint32_t i = 0; i <= phase->parallel_count; i++) {
        uint32_t symbol = i < phase->parallel_count ? phase->parallel[i].symbol : phase->bodies[v->body].unit_symbol;
        if (symbol == UINT32_MAX || (i < phase->parallel_count && phase->parallel[i].scope != UIR_SCOPE_UNIT)) continue;
        uint32_t variable = uir_term_of_symbol(&v->terms, symbol);
        if (!uir_iverify_fact_mentions(v, fact, variable) || fact->variable_count == UIR_IFACT_MAX_VARIABLES) continue;
        if (v->previous[symbol] == UIR_VARIABLE_NONE)
            v->previous[symbol] = uir_iverify_copy_variable(v, variable, from, to, count);
        fact->variables[fact->variable_count++] = v->previous[symbol];
        from[count] = variable;
        to[count++] = uir_term_variable(&v->terms, v->previous[symbol]);
    }
    uint32_t rank = uir_iverify_pointer(v, fact->pointer)->rank;
    for (uint32_t d = 0; d < rank; d++) {
        fact->low[d] = uir_term_substitute(&v->terms, fact->low[d], from, to, count);
        fact->high[d] = uir_term_substitute(&v->terms, fact->high[d], from, to, count);
    }
}

/* What is known of the region as a whole is forgotten when part of what is written there is undefined. */
static void forget_region(uir_iverifier *v, const uir_ifact *written) {
    /* The axes and units that the region ranges over are names of its own here, unlike those of the facts. */
    uint32_t active = v->active.count;
    for (uint32_t i = 0; i < written->variable_count; i++)
        if (uir_vector_push(v->arena, &v->active, written->variables[i]) != UIR_STATUS_OK) v->failed = true;
    uir_iverify_kill(v, written->pointer, written->low, written->high);
    v->active.count = active;
}

static void write_region(uir_iverifier *v, const slice_terms *s, const region *r) {
    uir_ifact fact = {.pointer = s->slice->pointer};
    bool window = s->slice->window;
    memcpy(fact.low, s->low, sizeof fact.low);
    memcpy(fact.high, s->high, sizeof fact.high);
    for (uint32_t a = 0; window && a < s->slice->axis_count; a++)
        fact.variables[fact.variable_count++] = uir_term_of_symbol(&v->terms, s->slice->axes[a].symbol);
    if (is_group_shared(v, fact.pointer)) spread_over_units(v, &fact);
    if (!r->full || s->loose) forget_region(v, &fact);
    if (r->none || s->loose || (window && !r->full)) return;
    for (uint32_t d = 0; d < s->rank && !r->full; d++) {
        uir_term start = fact.low[d];
        fact.low[d] = uir_term_add(&v->terms, start, r->low[d]);
        fact.high[d] = uir_term_add(&v->terms, start, r->high[d]);
    }
    uir_iverify_add_fact(v, &fact);
}

/* An undefined element must not be stored to an element of an output. */
static bool stores_defined(uir_iverifier *v, const slice_terms *s, const region *r) {
    uir_terms *t = &v->terms;
    const uir_ipointer *p = uir_iverify_pointer(v, s->slice->pointer);
    if (r->full) return true;
    uir_term one = uir_term_const(t, 1), at[UIR_IGRAPH_MAX_RANK];
    uint32_t mark = t->assumptions.count;
    for (uint32_t d = 0; d < s->rank; d++) {
        uir_term extent = uir_term_of_dim(t, p->extents[d]),
                 where = uir_iverify_point(v, s->low[d], s->high[d], extent, d);
        at[d] = uir_term_sub(t, where, s->low[d]);
        uir_term_assume(t, where);
        uir_term_assume(t, uir_term_sub(t, uir_term_sub(t, extent, one), where));
    }
    bool good = uir_term_prove_unreachable(t);
    if (!good && !r->none) {
        good = true;
        for (uint32_t d = 0; d < s->slice->rank && good; d++) {
            uir_term x = at[d];
            if (s->slice->window) { /* the index in the group of axes, the last fastest */
                x = uir_term_const(t, 0);
                for (uint32_t a = 0; a < s->slice->axis_count; a++) {
                    const uir_islice_axis *axis = &s->slice->axes[a];
                    if (axis->dim != d) continue;
                    x = uir_term_add(t, uir_term_mul(t, x, uir_term_of_dim(t, axis->extent)),
                                     uir_term_variable(t, uir_term_of_symbol(t, axis->symbol)));
                }
            }
            good = uir_term_prove_le(t, r->low[d], x) && uir_term_prove_lt(t, x, r->high[d]);
        }
    }
    t->assumptions.count = mark;
    return good;
}

static void record_access(uir_iverifier *v, const slice_terms *s, bool write, uint32_t position) {
    uir_terms *t = &v->terms;
    if (!v->recording) return;
    uir_iaccess access = {.pointer = s->slice->pointer,
                          .phase = v->phase,
                          .body = v->body,
                          .position = position,
                          .line = v->line,
                          .write = write};
    memcpy(access.low, s->low, sizeof access.low);
    memcpy(access.high, s->high, sizeof access.high);
    access.condition_count = t->assumptions.count - v->base_assumptions;
    access.conditions =
        uir_arena_copy(v->arena, t->assumptions.data + v->base_assumptions, access.condition_count * sizeof(uir_term));
    uint32_t count = v->active.count + (s->slice->window ? s->slice->axis_count : 0);
    uint32_t *variables = uir_arena_allocate_array(v->arena, count + 1, sizeof *variables);
    if (!variables || (access.condition_count && !access.conditions)) {
        v->failed = true;
        return;
    }
    if (v->active.count) memcpy(variables, v->active.data, v->active.count * sizeof *variables);
    for (uint32_t i = v->active.count; i < count; i++)
        variables[i] = uir_term_of_symbol(t, s->slice->axes[i - v->active.count].symbol);
    access.variables = variables;
    access.variable_count = count;
    if (uir_vector_push(v->arena, &v->accesses, access) != UIR_STATUS_OK) v->failed = true;
}

/* ---- one instruction ---- */
/* A local buffer is reached inside its extents alone, and only where it has an instance. */
static void check_place(uir_iverifier *v, const slice_terms *s, bool inside, bool write) {
    const uir_ipointer *p = uir_iverify_pointer(v, s->slice->pointer);
    if (p->by_loop != UINT32_MAX) {
        bool in_loop = false;
        for (uint32_t i = 0; i < v->active_loops.count; i++) in_loop = in_loop || v->active_loops.data[i] == p->by_loop;
        if (!in_loop)
            uir_iverify_report(v, v->line,
                               "%s: %%%s has an instance per iteration of loop %s, and this is outside of it",
                               uir_iverify_slice_text(v, s->slice), p->name, v->g->symbols.data[p->by_loop].name);
    }
    if (inside || uir_iverify_is_dram(v, s->slice->pointer)) return;
    if (s->slice->window && s->slice->has_fill && !write) return;
    uir_iverify_report(v, v->line,
                       "out of bounds: %s cannot be proved inside the extents of %%%s, which is not in device memory",
                       uir_iverify_slice_text(v, s->slice), p->name);
}

static bool is_const_one(uir_iverifier *v, uir_term term) {
    int64_t value;
    return uir_term_is_const(&v->terms, term, &value) && value == 1;
}

/* Narrows `out` to where an elementwise operand is defined. Dims are aligned at their ends; a dim of 1 broadcasts. */
static void meet_elementwise(uir_iverifier *v, const slice_terms *result, const slice_terms *operand, const region *r,
                             region *out) {
    uint32_t n = result->slice->rank, m = operand->slice->rank;
    if (r->full || out->none) return;
    if (r->none) {
        *out = *r;
        return;
    }
    for (uint32_t k = 1; k <= m; k++) {
        uint32_t d = m - k;
        bool repeats = (operand->slice->block && k == 1) || k > n ||
                       (is_const_one(v, operand->counts[d]) && !is_const_one(v, result->counts[n - k]));
        if (repeats) {
            if (!spans(v, operand, r, d)) {
                *out = (region){.none = true};
                return;
            }
            continue;
        }
        out->full = false;
        out->low[n - k] = greater(v, out->low[n - k], r->low[d]);
        out->high[n - k] = lesser(v, out->high[n - k], r->high[d]);
    }
}

/* Along one dim of a slice, is all of it defined? */
static bool whole_along(uir_iverifier *v, const slice_terms *s, const region *r, uint32_t d) {
    return r->full || (!r->none && spans(v, s, r, d));
}

/* Takes one dim's range over from an operand's dim. */
static void meet_dim(uir_iverifier *v, region *out, uint32_t d, const region *r, uint32_t from) {
    if (r->full || out->none) return;
    if (r->none) {
        *out = *r;
        return;
    }
    out->full = false;
    out->low[d] = greater(v, out->low[d], r->low[from]);
    out->high[d] = lesser(v, out->high[d], r->high[from]);
}

/* The last two dims of an mma operand, after dims of 1 in front are dropped. */
static void matrix_dims(uir_iverifier *v, const slice_terms *s, uint32_t *rows, uint32_t *cols) {
    (void)v;
    *cols = s->slice->rank ? s->slice->rank - 1 : 0;
    *rows = s->slice->rank > 1 ? s->slice->rank - 2 : 0;
}

static void defined_result(uir_iverifier *v, const uir_iinstruction *i, const slice_terms *s, const region *r,
                           region *out) {
    const uir_iop_row *row = uir_iop_get_row(i->code);
    full_region(v, &s[0], out);
    uint32_t rank = s[0].slice->rank;
    switch (row->family) {
    case UIR_IOP_FAMILY_REDUCE:
    case UIR_IOP_FAMILY_SCAN: {
        uint32_t m = s[1].slice->rank, reduced = i->axis == UIR_IAXIS_COL ? 2 : 1;
        if (m < reduced || !whole_along(v, &s[1], &r[1], m - reduced)) {
            *out = (region){.none = true};
            return;
        }
        for (uint32_t k = 1; k <= m && k <= rank; k++)
            if (k != reduced) meet_dim(v, out, rank - k, &r[1], m - k);
        if (i->accumulate) meet_elementwise(v, &s[0], &s[0], &r[0], out);
        if (row->family == UIR_IOP_FAMILY_SCAN) meet_elementwise(v, &s[0], &s[2], &r[2], out);
        return;
    }
    case UIR_IOP_FAMILY_MMA: {
        uint32_t rows[3], cols[3];
        for (int k = 0; k < 3; k++) matrix_dims(v, &s[k], &rows[k], &cols[k]);
        if (!whole_along(v, &s[1], &r[1], cols[1]) || !whole_along(v, &s[2], &r[2], rows[2])) {
            *out = (region){.none = true};
            return;
        }
        meet_elementwise(v, &s[0], &s[0], &r[0], out);
        meet_dim(v, out, rows[0], &r[1], rows[1]);
        meet_dim(v, out, cols[0], &r[2], cols[2]);
        for (int k = 1; k <= 2; k++)
            for (uint32_t d = 0; d < rows[k] && s[k].slice->rank > 2; d++)
                if (!whole_along(v, &s[k], &r[k], d)) *out = (region){.none = true};
        return;
    }
    default:
        for (uint32_t k = 1; k < i->slice_count; k++) meet_elementwise(v, &s[0], &s[k], &r[k], out);
        return;
    }
}

static bool reads_result(const uir_iinstruction *i) {
    return i->accumulate || uir_iop_get_row(i->code)->family == UIR_IOP_FAMILY_MMA;
}

/* Which operand is undefined, for the message. */
static void report_undefined(uir_iverifier *v, const slice_terms *s, const region *r, uint32_t count,
                             bool whole_result) {
    for (uint32_t k = whole_result ? 0 : 1; k < count; k++) {
        if (!r[k].none) continue;
        uir_iverify_report(v, v->line, "%s may be read before it is written%s", uir_iverify_slice_text(v, s[k].slice),
                           uir_iverify_is_dram(v, s[k].slice->pointer) ? ", or lies outside the extents" : "");
    }
}

/* Of a scan: its rows carry on where the result's are defined. */
static void carry_region(uir_iverifier *v, const slice_terms *s, const region *out, region *carry) {
    full_region(v, &s[2], carry);
    if (out->none) *carry = *out;
    for (uint32_t k = 2; k <= s[2].slice->rank && k <= s[0].slice->rank; k++)
        meet_dim(v, carry, s[2].slice->rank - k, out, s[0].slice->rank - k);
}

/* The axes that tell the units of a group apart; gives how many. */
static uint32_t unit_variables(uir_iverifier *v, uint32_t *out) {
    const uir_iphase *phase = &v->g->phases.data[v->phase];
    uint32_t count = 0;
    for (uint32_t k = 0; k < phase->parallel_count; k++)
        if (phase->parallel[k].scope == UIR_SCOPE_UNIT)
            out[count++] = uir_term_of_symbol(&v->terms, phase->parallel[k].symbol);
    if (phase->bodies[v->body].unit_symbol != UINT32_MAX)
        out[count++] = uir_term_of_symbol(&v->terms, phase->bodies[v->body].unit_symbol);
    return count;
}

/* What the units of a group do together, all of them must come to. */
static void check_collective(uir_iverifier *v, const uir_iinstruction *i) {
    uint32_t units[5], count = unit_variables(v, units);
    bool sync = i->code == UIR_IOP_SYNC, uneven = false;
    if (sync ? i->sync_kind != UIR_SYNC_GROUP : i->scope != UIR_SCOPE_GROUP) return;
    if (v->g->phases.data[v->phase].body_count > 1)
        uir_iverify_report(v, v->line,
                           "the units of a group cannot meet in a phase with several bodies; use sync of two kinds");
    for (uint32_t k = 0; k < count; k++) {
        for (uint32_t a = v->base_assumptions; a < v->terms.assumptions.count; a++)
            uneven = uneven || uir_term_mentions(&v->terms, v->terms.assumptions.data[a], units[k]);
        for (uint32_t l = 0; l < v->active_loops.count; l++)
            uneven = uneven || uir_term_mentions(&v->terms, loop_trips(v, v->active_loops.data[l]), units[k]);
    }
    if (uneven) uir_iverify_report(v, v->line, "not all units of a group may come to this place, where they must meet");
}

static void walk_instruction(uir_iverifier *v, const uir_iitem *item) {
    uir_iinstruction *i = &v->g->instructions.data[item->instruction];
    v->line = item->line;
    check_collective(v, i);
    if (i->code == UIR_IOP_SYNC) {
        v->seen[item->instruction] = true;
        return;
    }
    slice_terms s[UIR_IOP_MAX_SLICES];
    region r[UIR_IOP_MAX_SLICES], out;
    bool tied = reads_result(i), scan = uir_iop_get_row(i->code)->family == UIR_IOP_FAMILY_SCAN;
    v->line = item->line;
    v->seen[item->instruction] = true;
    for (uint32_t k = 0; k < i->slice_count; k++) {
        read_slice(v, &i->slices[k], &s[k]);
        bool inside = inside_extents(v, &s[k]), write = k == 0 || (scan && k == 2);
        if (!inside) i->unguarded &= ~(1u << k);
        check_place(v, &s[k], inside, write);
        if (k > 0 || tied) {
            defined_part(v, &s[k], inside, &r[k]);
            record_access(v, &s[k], false, item->instruction);
        } else {
            full_region(v, &s[0], &r[0]);
        }
        if (write) record_access(v, &s[k], true, item->instruction);
    }
    if (i->has_scratch) {
        slice_terms scratch;
        region nothing = {.none = true};
        read_slice(v, &i->scratch, &scratch);
        check_place(v, &scratch, inside_extents(v, &scratch), true);
        record_access(v, &scratch, true, item->instruction);
        write_region(v, &scratch, &nothing);
    }
    defined_result(v, i, s, r, &out);
    if (i->scope == UIR_SCOPE_GROUP && !out.full && !out.none) { /* of every unit, not of this one */
        uint32_t units[5], count = unit_variables(v, units);
        for (uint32_t k = 0; k < count; k++)
            for (uint32_t d = 0; d < s[0].slice->rank; d++)
                out.none = out.none || uir_term_mentions(&v->terms, out.low[d], units[k]) ||
                           uir_term_mentions(&v->terms, out.high[d], units[k]);
    }
    const uir_ipointer *p = uir_iverify_pointer(v, s[0].slice->pointer);
    if (out.none) report_undefined(v, s, r, i->slice_count, tied);
    if (uir_iverify_is_dram(v, s[0].slice->pointer)) {
        if (stores_defined(v, &s[0], &out)) {
            if (!out.full) full_region(v, &s[0], &out); /* of what is inside, all */
        } else if (p->role == UIR_IPOINTER_OUT) {
            uir_iverify_report(v, v->line, "an undefined element may be stored to %s",
                               uir_iverify_slice_text(v, s[0].slice));
            out = (region){.none = true};
        }
    }
    write_region(v, &s[0], &out);
    if (scan) {
        region carry;
        carry_region(v, s, &out, &carry);
        write_region(v, &s[2], &carry);
    }
}

static void walk_index(uir_iverifier *v, const uir_iitem *item) {
    uir_terms *t = &v->terms;
    slice_terms s;
    region r;
    v->line = item->line;
    read_slice(v, &item->index.slice, &s);
    bool inside = inside_extents(v, &s);
    check_place(v, &s, inside, false);
    defined_part(v, &s, inside, &r);
    record_access(v, &s, false, UINT32_MAX);
    if (!r.full)
        uir_iverify_report(v, v->line, "index %s reads %s, which may be undefined",
                           v->g->symbols.data[item->symbol].name, uir_iverify_slice_text(v, &item->index.slice));
    /* From here on it is another value: nothing said of the old one is about it. */
    uint32_t variable = uir_term_of_symbol(t, item->symbol), kept = 0;
    for (uint32_t i = 0; i < v->facts.count; i++)
        if (!uir_iverify_fact_mentions(v, &v->facts.data[i], variable)) v->facts.data[kept++] = v->facts.data[i];
    v->facts.count = kept;
    if (uir_vector_push(v->arena, &v->active, variable) != UIR_STATUS_OK) v->failed = true;
}

/* ---- loops ---- */
static bool mentions_index(uir_iverifier *v, const uir_ifact *fact) {
    for (uint32_t s = 0; s < v->g->symbols.count; s++)
        if (v->g->symbols.data[s].kind == UIR_ISYMBOL_INDEX && v->terms.of_symbol[s] != UIR_VARIABLE_NONE &&
            uir_iverify_fact_mentions(v, fact, v->terms.of_symbol[s]))
            return true;
    return false;
}

/* Replaces a variable, and copies the quantified ones whose range mentions it. */
static bool replace_variable(uir_iverifier *v, uir_ifact *fact, uint32_t variable, uir_term by) {
    uint32_t from[UIR_IFACT_MAX_VARIABLES + 1] = {variable}, count = 1;
    uir_term to[UIR_IFACT_MAX_VARIABLES + 1] = {by};
    for (uint32_t i = 0; i < fact->variable_count; i++) {
        uir_variable x = v->terms.variables.data[fact->variables[i]];
        bool follows = false;
        for (uint32_t a = 0; a < x.axiom_count; a++)
            for (uint32_t k = 0; k < count; k++)
                follows = follows || uir_term_mentions(&v->terms, x.axioms[a], from[k]);
        if (!follows) continue;
        uint32_t copy = uir_iverify_copy_variable(v, fact->variables[i], from, to, count);
        from[count] = fact->variables[i];
        to[count++] = uir_term_variable(&v->terms, copy);
        fact->variables[i] = copy;
    }
    uint32_t rank = uir_iverify_pointer(v, fact->pointer)->rank;
    bool known = true;
    for (uint32_t d = 0; d < rank; d++) {
        fact->low[d] = uir_term_substitute(&v->terms, fact->low[d], from, to, count);
        fact->high[d] = uir_term_substitute(&v->terms, fact->high[d], from, to, count);
        known = known && fact->low[d] && fact->high[d];
    }
    for (uint32_t i = 0; i < fact->condition_count; i++) {
        fact->conditions[i] = uir_term_substitute(&v->terms, fact->conditions[i], from, to, count);
        known = known && fact->conditions[i];
    }
    return known;
}

static bool add_condition(uir_ifact *fact, uir_term condition) {
    if (!condition || fact->condition_count == UIR_IFACT_MAX_CONDITIONS) return false;
    fact->conditions[fact->condition_count++] = condition;
    return true;
}

static bool add_variable(uir_ifact *fact, uint32_t variable) {
    if (fact->variable_count == UIR_IFACT_MAX_VARIABLES) return false;
    /* Its range may be mentioned by those there: it goes first. */
    memmove(fact->variables + 1, fact->variables, fact->variable_count * sizeof *fact->variables);
    fact->variables[0] = variable;
    fact->variable_count++;
    return true;
}

typedef struct loop_walk {
    const uir_iitem *item;
    uint32_t variable;
    uir_term index, trips;
    uir_ifacts entry;      /* before the loop */
    bool *killed;          /* by entry fact: some iteration may undo it */
    uir_ifacts candidates; /* what an iteration l leaves behind, in terms of l */
    uint32_t *shifted;     /* by candidate: the id it has as "left by earlier iterations" */
    uint32_t mark;         /* facts from here on are the iteration's own */
} loop_walk;

static void walk_body(uir_iverifier *v, const uir_iitem *item) {
    uint32_t active = v->active.count;
    walk_items(v, item->first_child);
    v->active.count = active;
}

/* The body where its `when` holds; what it leaves is qualified by that. */
static void walk_iteration(uir_iverifier *v, loop_walk *w) {
    uir_iitem body = *w->item;
    uint32_t kept = 0;
    body.kind = UIR_IITEM_IF;
    walk_guarded(v, &w->item->guard, &body);
    for (uint32_t i = 0; i < v->facts.count; i++) /* instances of buffers end with the iteration */
        if (uir_iverify_pointer(v, v->facts.data[i].pointer)->by_loop != w->item->symbol)
            v->facts.data[kept++] = v->facts.data[i];
    v->facts.count = kept;
}

/* The earlier iteration's variable: 0 <= it < l. */
static uint32_t previous_variable(uir_iverifier *v, loop_walk *w) {
    uint32_t *slot = &v->previous[w->item->symbol];
    if (*slot == UIR_VARIABLE_NONE) {
        *slot = uir_term_fresh(&v->terms, 0, INT64_MAX);
        uir_term one = uir_term_const(&v->terms, 1);
        uir_term_add_axiom(
            &v->terms, *slot,
            uir_term_sub(&v->terms, uir_term_sub(&v->terms, w->index, one), uir_term_variable(&v->terms, *slot)));
        uir_term last = uir_term_sub(&v->terms, w->trips, one);
        uir_term_add_axiom(&v->terms, *slot, uir_term_sub(&v->terms, last, uir_term_variable(&v->terms, *slot)));
    }
    return *slot;
}

static bool shift_candidate(uir_iverifier *v, loop_walk *w, const uir_ifact *candidate, uir_ifact *out) {
    *out = *candidate;
    if (!uir_iverify_fact_mentions(v, candidate, w->variable))
        return add_condition(out, uir_term_sub(&v->terms, w->index, uir_term_const(&v->terms, 1)));
    uint32_t previous = previous_variable(v, w);
    return replace_variable(v, out, w->variable, uir_term_variable(&v->terms, previous)) && add_variable(out, previous);
}

/* The state at the head of any iteration. */
static uir_status enter_iteration(uir_iverifier *v, loop_walk *w) {
    v->facts.count = 0;
    for (uint32_t i = 0; i < w->entry.count; i++) {
        uir_ifact fact = w->entry.data[i];
        if (w->killed[i] && !add_condition(&fact, uir_term_sub(&v->terms, uir_term_const(&v->terms, 0), w->index)))
            continue;
        UIR_TRY(uir_iverify_facts_push(v, &v->facts, &fact));
    }
    w->shifted = uir_arena_allocate_array(v->arena, w->candidates.count + 1, sizeof *w->shifted);
    if (!w->shifted) return UIR_STATUS_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < w->candidates.count; i++) {
        uir_ifact fact;
        w->shifted[i] = UINT32_MAX;
        if (!shift_candidate(v, w, &w->candidates.data[i], &fact)) continue;
        fact.id = fact.birth = w->shifted[i] = v->next_fact++;
        UIR_TRY(uir_iverify_facts_push(v, &v->facts, &fact));
    }
    w->mark = v->next_fact;
    return UIR_STATUS_OK;
}

static bool has_fact(const uir_iverifier *v, uint32_t id) {
    for (uint32_t i = 0; i < v->facts.count; i++)
        if (v->facts.data[i].id == id) return true;
    return false;
}

/* Is all that `fact` says also said by the state? */
static bool holds_at_end(uir_iverifier *v, const uir_ifact *fact) {
    uint32_t rank = uir_iverify_pointer(v, fact->pointer)->rank;
    for (uint32_t i = 0; i < v->facts.count; i++) {
        const uir_ifact *x = &v->facts.data[i];
        if (x->pointer != fact->pointer || x->variable_count != fact->variable_count ||
            x->condition_count > fact->condition_count ||
            memcmp(x->variables, fact->variables, x->variable_count * sizeof *x->variables) != 0 ||
            memcmp(x->low, fact->low, rank * sizeof *x->low) != 0 ||
            memcmp(x->high, fact->high, rank * sizeof *x->high) != 0)
            continue;
        bool weaker = true;
        for (uint32_t c = 0; c < x->condition_count && weaker; c++) {
            weaker = false;
            for (uint32_t k = 0; k < fact->condition_count; k++)
                weaker = weaker || fact->conditions[k] == x->conditions[c];
        }
        if (weaker) return true;
    }
    uint32_t mark = v->terms.assumptions.count;
    uir_ifact free = *fact;
    if (!uir_iverify_rename_active(v, &free)) return false;
    for (uint32_t i = 0; i < free.condition_count; i++) uir_term_assume(&v->terms, free.conditions[i]);
    bool held = uir_iverify_covered(v, free.pointer, free.low, free.high);
    v->terms.assumptions.count = mark;
    return held;
}

static bool same_shape(const uir_iverifier *v, const uir_ifact *a, const uir_ifact *b) {
    uint32_t rank = uir_iverify_pointer(v, a->pointer)->rank;
    return a->pointer == b->pointer && a->variable_count == b->variable_count &&
           a->condition_count == b->condition_count &&
           memcmp(a->variables, b->variables, a->variable_count * sizeof *a->variables) == 0 &&
           memcmp(a->conditions, b->conditions, a->condition_count * sizeof *a->conditions) == 0 &&
           memcmp(a->low, b->low, rank * sizeof *a->low) == 0 && memcmp(a->high, b->high, rank * sizeof *a->high) == 0;
}

static bool is_candidate(const uir_iverifier *v, const uir_ifacts *candidates, const uir_ifact *fact) {
    for (uint32_t i = 0; i < candidates->count; i++)
        if (same_shape(v, &candidates->data[i], fact)) return true;
    return false;
}

/* What of an iteration's own facts may be proposed. */
static bool may_propose(uir_iverifier *v, const loop_walk *w, const uir_ifact *fact) {
    return fact->id >= w->mark && !mentions_index(v, fact);
}

/* Compares the end of an iteration with what its head assumed. True when all of it holds and nothing was left unsaid.
 */
static uir_status settle(uir_iverifier *v, loop_walk *w, uint32_t round, bool *out_settled) {
    uir_ifacts kept = {0};
    *out_settled = true;
    for (uint32_t i = 0; i < w->entry.count; i++) {
        if (w->killed[i] || has_fact(v, w->entry.data[i].id)) continue;
        w->killed[i] = true;
        *out_settled = false;
    }
    for (uint32_t i = 0; i < w->candidates.count; i++) {
        /* What is said of each earlier iteration must still be there; what is the same for all may have been renewed.
         */
        bool kept_up = has_fact(v, w->shifted[i]) || !uir_iverify_fact_mentions(v, &w->candidates.data[i], w->variable);
        if (w->shifted[i] != UINT32_MAX && kept_up && holds_at_end(v, &w->candidates.data[i]))
            UIR_TRY(uir_iverify_facts_push(v, &kept, &w->candidates.data[i]));
        else
            *out_settled = false;
    }
    for (uint32_t i = 0; i < v->facts.count && round + 2 < MAX_ROUNDS; i++) {
        if (!may_propose(v, w, &v->facts.data[i]) || is_candidate(v, &w->candidates, &v->facts.data[i])) continue;
        UIR_TRY(uir_iverify_facts_push(v, &kept, &v->facts.data[i]));
        *out_settled = false;
    }
    w->candidates = kept;
    return UIR_STATUS_OK;
}

/* The state after the loop. */
static uir_status leave_loop(uir_iverifier *v, loop_walk *w) {
    uir_ifacts after = {0};
    uir_term one = uir_term_const(&v->terms, 1);
    bool runs = uir_term_prove_le(&v->terms, one, w->trips);
    for (uint32_t i = 0; i < w->entry.count; i++) {
        uir_ifact fact = w->entry.data[i];
        if (w->killed[i]) {
            if (runs || !add_condition(&fact, uir_term_sub(&v->terms, uir_term_const(&v->terms, 0), w->trips)))
                continue;
            fact.id = v->next_fact++;
        }
        UIR_TRY(uir_iverify_facts_push(v, &after, &fact));
    }
    for (uint32_t i = 0; i < w->candidates.count; i++) {
        uir_ifact fact = w->candidates.data[i];
        bool good = uir_iverify_fact_mentions(v, &fact, w->variable) ? add_variable(&fact, w->variable)
                    : runs                                           ? true
                           : add_condition(&fact, uir_term_sub(&v->terms, w->trips, one));
        fact.id = fact.birth = v->next_fact++;
        if (good) UIR_TRY(uir_iverify_facts_push(v, &after, &fact));
    }
    v->facts.count = 0;
    uint32_t skip = after.count > UIR_IFACT_MAX ? after.count - UIR_IFACT_MAX : 0;
    for (uint32_t i = skip; i < after.count; i++) UIR_TRY(uir_iverify_facts_push(v, &v->facts, &after.data[i]));
    return UIR_STATUS_OK;
}

static uir_status walk_rounds(uir_iverifier *v, loop_walk *w) {
    uint32_t errors = v->errors.count, dropped = v->dropped_errors, accesses = v->accesses.count;
    /* The first iteration proposes. */
    uint32_t assumptions = v->terms.assumptions.count;
    bool recording = v->recording;
    v->recording = false;
    w->mark = v->next_fact;
    uir_term_assume(&v->terms, uir_term_sub(&v->terms, uir_term_const(&v->terms, 0), w->index));
    walk_iteration(v, w);
    v->terms.assumptions.count = assumptions;
    for (uint32_t i = 0; i < w->entry.count; i++) w->killed[i] = !has_fact(v, w->entry.data[i].id);
    for (uint32_t i = 0; i < v->facts.count; i++)
        if (may_propose(v, w, &v->facts.data[i])) UIR_TRY(uir_iverify_facts_push(v, &w->candidates, &v->facts.data[i]));
    v->recording = recording;
    for (uint32_t round = 0; round <= MAX_ROUNDS; round++) {
        bool settled;
        if (round == MAX_ROUNDS) { /* what always holds: nothing of before or of earlier iterations */
            memset(w->killed, 1, w->entry.count * sizeof *w->killed);
            w->candidates.count = 0;
        }
        v->errors.count = errors;
        v->dropped_errors = dropped;
        v->accesses.count = accesses;
        UIR_TRY(enter_iteration(v, w));
        walk_iteration(v, w);
        if (round == MAX_ROUNDS) break;
        UIR_TRY(settle(v, w, round, &settled));
        if (settled || v->terms.exhausted || v->failed) break;
    }
    return leave_loop(v, w);
}

static void walk_loop(uir_iverifier *v, const uir_iitem *item) {
    loop_walk w = {.item = item, .variable = uir_term_of_symbol(&v->terms, item->symbol)};
    w.index = uir_term_variable(&v->terms, w.variable);
    w.trips = loop_trips(v, item->symbol);
    uint32_t active = v->active.count, loops = v->active_loops.count;
    bool good = uir_vector_push(v->arena, &v->active, w.variable) == UIR_STATUS_OK &&
                uir_vector_push(v->arena, &v->active_loops, item->symbol) == UIR_STATUS_OK;
    /* Facts left by an earlier execution of this loop quantify its index, which now is a place's own. */
    uint32_t kept = 0;
    for (uint32_t i = 0; i < v->facts.count; i++)
        if (uir_iverify_rename_active(v, &v->facts.data[i])) v->facts.data[kept++] = v->facts.data[i];
    v->facts.count = kept;
    w.killed = uir_arena_allocate_array(v->arena, v->facts.count + 1, sizeof *w.killed);
    good = good && w.killed && uir_iverify_facts_copy(v, &v->facts, &w.entry) == UIR_STATUS_OK &&
           walk_rounds(v, &w) == UIR_STATUS_OK;
    if (!good) v->failed = true;
    v->active.count = active;
    v->active_loops.count = loops;
}

/* ---- the tree ---- */
static void walk_run(uir_iverifier *v, const uir_iitem *item) {
    walk_items(v, item->first_child);
    for (uint32_t i = 0; i < item->dead_count; i++) uir_iverify_kill(v, item->dead[i], NULL, NULL);
}

static void walk_item(uir_iverifier *v, const uir_iitem *item) {
    switch (item->kind) {
    case UIR_IITEM_LOOP:
        walk_loop(v, item);
        break;
    case UIR_IITEM_IF:
        walk_body(v, item);
        break;
    case UIR_IITEM_LET:
        break;
    case UIR_IITEM_INDEX:
        walk_index(v, item);
        break;
    case UIR_IITEM_INSTRUCTION:
        walk_instruction(v, item);
        break;
    case UIR_IITEM_RUN:
        walk_run(v, item);
        break;
    }
}

static void walk_items(uir_iverifier *v, uint32_t first) {
    for (uint32_t at = first; at != UINT32_MAX && !v->terms.exhausted && !v->failed; at = v->g->items.data[at].next) {
        const uir_iitem *item = &v->g->items.data[at];
        if (item->kind == UIR_IITEM_LOOP)
            walk_loop(v, item); /* its guard belongs to its body */
        else
            walk_guarded(v, &item->guard, item);
    }
}

/* ---- phases ---- */
/* After the phase every unit has done its part. */
static void close_phase(uir_iverifier *v, const uir_iphase *phase) {
    uir_ifacts after = {0};
    for (uint32_t i = 0; i < v->facts.count; i++) {
        uir_ifact fact = v->facts.data[i];
        bool keep = uir_iverify_is_dram(v, fact.pointer) && !mentions_index(v, &fact);
        for (uint32_t k = 0; k < phase->parallel_count + phase->body_count && keep; k++) {
            uint32_t symbol = k < phase->parallel_count ? phase->parallel[k].symbol
                                                        : phase->bodies[k - phase->parallel_count].unit_symbol;
            if (symbol == UINT32_MAX) continue;
            uint32_t variable = uir_term_of_symbol(&v->terms, symbol);
            uir_term extent = uir_term_of_dim(&v->terms, v->g->symbols.data[symbol].definition);
            if (uir_iverify_fact_mentions(v, &fact, variable))
                keep = add_variable(&fact, variable);
            else if (fact.birth >= v->phase_mark && !uir_term_prove_le(&v->terms, uir_term_const(&v->terms, 1), extent))
                keep = add_condition(&fact, uir_term_sub(&v->terms, extent, uir_term_const(&v->terms, 1)));
        }
        if (keep && uir_iverify_facts_push(v, &after, &fact) != UIR_STATUS_OK) v->failed = true;
    }
    v->facts = after;
}

static void activate(uir_iverifier *v, uint32_t symbol) {
    if (symbol != UINT32_MAX &&
        uir_vector_push(v->arena, &v->active, uir_term_of_symbol(&v->terms, symbol)) != UIR_STATUS_OK)
        v->failed = true;
}

static void drop_local_facts(uir_iverifier *v) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < v->facts.count; i++)
        if (uir_iverify_is_dram(v, v->facts.data[i].pointer)) v->facts.data[kept++] = v->facts.data[i];
    v->facts.count = kept;
}

static void check_outputs(uir_iverifier *v) {
    for (uint32_t i = 0; i < v->g->pointers.count; i++) {
        const uir_ipointer *p = &v->g->pointers.data[i];
        uir_term low[UIR_IGRAPH_MAX_RANK], high[UIR_IGRAPH_MAX_RANK];
        if (p->role != UIR_IPOINTER_OUT || p->tied != UINT32_MAX) continue;
        for (uint32_t d = 0; d < p->rank; d++) {
            low[d] = uir_term_const(&v->terms, 0);
            high[d] = uir_term_of_dim(&v->terms, p->extents[d]);
        }
        if (!uir_iverify_covered(v, i, low, high))
            uir_iverify_report(v, p->line, "not every element of %%%s can be proved written", p->name);
    }
}

void uir_iverify_phases(uir_iverifier *v) {
    v->recording = true;
    for (uint32_t ph = 0; ph < v->g->phases.count; ph++) {
        const uir_iphase *phase = &v->g->phases.data[ph];
        v->phase = ph;
        v->phase_mark = v->next_fact;
        v->active.count = 0;
        for (uint32_t k = 0; k < phase->parallel_count; k++) activate(v, phase->parallel[k].symbol);
        uint32_t active = v->active.count;
        for (uint32_t b = 0; b < phase->body_count; b++) {
            v->body = b;
            activate(v, phase->bodies[b].unit_symbol);
            walk_items(v, phase->bodies[b].first_item);
            v->active.count = active;
            drop_local_facts(v);
        }
        v->active.count = 0;
        close_phase(v, phase);
    }
    if (!v->terms.exhausted) check_outputs(v);
}
