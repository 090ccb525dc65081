/* What one instruction needs and leaves: which parts of its operands are defined, which part of its result is then, and
 * what it touches. In: the facts at its place. Out: facts after it, its accesses for the comparison of units, messages.
 */
#include "ir/kernel/verify/igraph_verify.h"

#include <string.h>

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

/* A slice of no elements touches nothing: only where every count is at least 1 is there something to prove. */
static bool inside_extents(uir_iverifier *v, const slice_terms *s) {
    const uir_ipointer *p = uir_iverify_pointer(v, s->slice->pointer);
    uir_terms *t = &v->terms;
    if (s->loose) return false;
    uint32_t mark = t->assumptions.count;
    bool inside = true;
    for (uint32_t pass = 0; pass < 2; pass++) {
        inside = true;
        for (uint32_t d = 0; d < s->rank && inside; d++)
            inside =
                uir_term_prove(t, s->low[d]) && uir_term_prove_le(t, s->high[d], uir_term_of_dim(t, p->extents[d]));
        if (inside || s->slice->window) break;
        for (uint32_t d = 0; d < s->rank && pass == 0; d++)
            uir_term_assume(t, uir_term_sub(t, s->counts[d], uir_term_const(t, 1)));
    }
    t->assumptions.count = mark;
    return inside;
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

/* The symbols of the axes that tell the units of a group apart; gives how many. Without a group's axis every unit is a
 * group. */
static uint32_t unit_symbols(const uir_iverifier *v, uint32_t *out) {
    const uir_iphase *phase = &v->g->phases.data[v->phase];
    uint32_t count = 0;
    for (uint32_t k = 0; k < phase->parallel_count; k++)
        if (uir_iverify_is_unit_axis(phase, k)) out[count++] = phase->parallel[k].symbol;
    if (phase->bodies[v->body].unit_symbol != UINT32_MAX) out[count++] = phase->bodies[v->body].unit_symbol;
    return count;
}

/* What one unit of a group writes into a shared space, all of them do: the fact is said of every unit. */
static void spread_over_units(uir_iverifier *v, uir_ifact *fact) {
    uint32_t symbols[5], from[5], count = 0, units = unit_symbols(v, symbols);
    uir_term to[5];
    for (uint32_t i = 0; i < units; i++) {
        uint32_t symbol = symbols[i], variable = uir_term_of_symbol(&v->terms, symbol);
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
    for (uint32_t i = 0; i < fact->condition_count; i++)
        fact->conditions[i] = uir_term_substitute(&v->terms, fact->conditions[i], from, to, count);
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

/* An axis of a window that moves one coordinate by one, and nothing else, makes an interval of it. */
static bool widen_by_axis(uir_iverifier *v, const slice_terms *s, const uir_islice_axis *axis, uir_ifact *fact) {
    uint32_t variable = uir_term_of_symbol(&v->terms, axis->symbol), at = UINT32_MAX;
    for (uint32_t d = 0; d < s->rank; d++) {
        if (!uir_term_mentions(&v->terms, fact->low[d], variable)) continue;
        if (at != UINT32_MAX) return false;
        at = d;
    }
    if (at == UINT32_MAX) return false;
    uir_term start = uir_term_sub(&v->terms, fact->low[at], uir_term_variable(&v->terms, variable));
    if (uir_term_mentions(&v->terms, start, variable)) return false;
    if (uir_term_sub(&v->terms, fact->high[at], fact->low[at]) != uir_term_const(&v->terms, 1)) return false;
    fact->low[at] = start;
    fact->high[at] = uir_term_add(&v->terms, start, uir_term_of_dim(&v->terms, axis->extent));
    return true;
}

/* `first_only`: of a group's units the first alone writes. */
static void write_region(uir_iverifier *v, const slice_terms *s, const region *r, bool first_only) {
    uir_ifact fact = {.pointer = s->slice->pointer};
    bool window = s->slice->window;
    memcpy(fact.low, s->low, sizeof fact.low);
    memcpy(fact.high, s->high, sizeof fact.high);
    for (uint32_t a = 0; window && a < s->slice->axis_count; a++)
        if (!widen_by_axis(v, s, &s->slice->axes[a], &fact))
            fact.variables[fact.variable_count++] = uir_term_of_symbol(&v->terms, s->slice->axes[a].symbol);
    uint32_t symbols[5], units = first_only ? unit_symbols(v, symbols) : 0;
    for (uint32_t i = 0; i < units; i++) {
        uir_term unit = uir_term_variable(&v->terms, uir_term_of_symbol(&v->terms, symbols[i]));
        fact.conditions[fact.condition_count++] = uir_term_sub(&v->terms, uir_term_const(&v->terms, 0), unit);
    }
    for (uint32_t p = 0; p < v->g->pointers.count; p++)
        if (uir_igraph_share_place(v->g, p, fact.pointer)) uir_iverify_kill(v, p, NULL, NULL);
    if (is_group_shared(v, fact.pointer)) spread_over_units(v, &fact);
    if (!r->full) forget_region(v, &fact);
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
            uir_iverify_report(v, v->line, "%s: %%%s has an instance per iteration of loop %s, but is used outside it",
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
    bool said = false;
    for (uint32_t k = whole_result ? 0 : 1; k < count; k++) {
        if (!r[k].none) continue;
        said = true;
        uir_iverify_report(v, v->line, "%s may be read before it is written%s", uir_iverify_slice_text(v, s[k].slice),
                           uir_iverify_is_dram(v, s[k].slice->pointer) ? ", or is outside the extents" : "");
    }
    for (uint32_t k = 1; k < count && !said; k++)
        if (!r[k].full)
            uir_iverify_report(v, v->line, "part of %s may be undefined where all of it is needed",
                               uir_iverify_slice_text(v, s[k].slice));
}

/* Of a scan: its rows carry on where the result's are defined. */
static void carry_region(uir_iverifier *v, const slice_terms *s, const region *out, region *carry) {
    full_region(v, &s[2], carry);
    if (out->none) *carry = *out;
    for (uint32_t k = 2; k <= s[2].slice->rank && k <= s[0].slice->rank; k++)
        meet_dim(v, carry, s[2].slice->rank - k, out, s[0].slice->rank - k);
}

/* What the units of a group do together, all of them must come to. */
static void check_collective(uir_iverifier *v, const uir_iinstruction *i) {
    uint32_t symbols[5], units[5], count = unit_symbols(v, symbols);
    for (uint32_t k = 0; k < count; k++) units[k] = uir_term_of_symbol(&v->terms, symbols[k]);
    bool sync = i->code == UIR_IOP_SYNC, uneven = false;
    if (sync ? i->sync_kind != UIR_SYNC_GROUP : i->scope != UIR_SCOPE_GROUP) return;
    if (v->g->phases.data[v->phase].body_count > 1)
        uir_iverify_report(
            v, v->line,
            "the units of a group cannot synchronise in a phase with several bodies; use sync of two kinds");
    for (uint32_t k = 0; k < count; k++) {
        for (uint32_t n = 0; n < i->slice_count; n++)
            for (uint32_t d = 0; d < i->slices[n].rank; d++)
                uneven = uneven ||
                         uir_term_mentions(&v->terms, uir_term_of_dim(&v->terms, i->slices[n].counts[d]), units[k]);
        for (uint32_t a = v->base_assumptions; a < v->terms.assumptions.count; a++)
            uneven = uneven || uir_term_mentions(&v->terms, v->terms.assumptions.data[a], units[k]);
        for (uint32_t l = 0; l < v->active_loops.count; l++)
            uneven =
                uneven || uir_term_mentions(&v->terms, uir_iverify_loop_trips(v, v->active_loops.data[l]), units[k]);
    }
    if (uneven)
        uir_iverify_report(v, v->line,
                           "not all units of a group may reach this instruction, where they must synchronise");
}

void uir_iverify_walk_instruction(uir_iverifier *v, const uir_iitem *item) {
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
    uint32_t symbols[5], units[5], unit_count = i->scope == UIR_SCOPE_GROUP ? unit_symbols(v, symbols) : 0;
    for (uint32_t k = 0; k < unit_count; k++) units[k] = uir_term_of_symbol(&v->terms, symbols[k]);
    bool reduces_group = unit_count > 0 && uir_iop_get_row(i->code)->family == UIR_IOP_FAMILY_REDUCE;
    v->seen[item->instruction] = true;
    for (uint32_t k = 0; k < i->slice_count; k++) {
        uint32_t mark = v->terms.assumptions.count;
        /* A broadcast over a group reads what the first unit has. */
        for (uint32_t n = 0; n < unit_count && k > 0 && !reduces_group; n++)
            uir_term_assume(&v->terms, uir_term_sub(&v->terms, uir_term_const(&v->terms, 0),
                                                    uir_term_variable(&v->terms, units[n])));
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
        v->terms.assumptions.count = mark;
    }
    if (i->has_scratch) {
        slice_terms scratch;
        region nothing = {.none = true};
        read_slice(v, &i->scratch, &scratch);
        check_place(v, &scratch, inside_extents(v, &scratch), true);
        record_access(v, &scratch, true, item->instruction);
        write_region(v, &scratch, &nothing, false);
    }
    defined_result(v, i, s, r, &out);
    if (i->scope == UIR_SCOPE_GROUP && !out.full && !out.none) { /* of every unit, not of this one */
        for (uint32_t k = 0; k < unit_count; k++)
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
    write_region(v, &s[0], &out, reduces_group);
    if (scan) {
        region carry;
        carry_region(v, s, &out, &carry);
        write_region(v, &s[2], &carry, false);
    }
}

void uir_iverify_walk_index(uir_iverifier *v, const uir_iitem *item) {
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
