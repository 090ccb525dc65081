/* Units against each other: within a phase, no unit touches a place that another writes.
 *
 * Two accesses are taken with two units that differ: the indices of the second are renamed, and for the first parallel
 * axis in which they differ both orders are tried. Somewhere their boxes must then lie apart in some dim. Where that
 * hangs on loops, the loops' indices are compared too. */
#include "ir/kernel/verify/igraph_verify.h"

#include <string.h>

#define MAX_VARIABLES  40
#define MAX_LOOP_CASES 3
#define MAX_ACCESSES   2000

typedef struct pair {
    uir_iverifier *v;
    uint32_t rank;
    uir_term low[2][UIR_IGRAPH_MAX_RANK], high[2][UIR_IGRAPH_MAX_RANK];
    uir_term compared[MAX_VARIABLES][2]; /* loops around both: index here and there */
    uint32_t compared_count;
} pair;

static bool apart(pair *p, uint32_t depth) {
    uir_terms *t = &p->v->terms;
    for (uint32_t d = 0; d < p->rank; d++)
        if (uir_term_prove_le(t, p->high[0][d], p->low[1][d]) || uir_term_prove_le(t, p->high[1][d], p->low[0][d]))
            return true;
    if (t->exhausted) return false;
    if (uir_term_prove_unreachable(t)) return true; /* one of them is guarded by what only the other unit meets */
    if (depth >= p->compared_count || depth >= MAX_LOOP_CASES) return false;
    uir_term a = p->compared[depth][0], b = p->compared[depth][1], one = uir_term_const(t, 1);
    uint32_t mark = t->assumptions.count;
    bool good = true;
    for (int order = 0; order < 3 && good; order++) {
        if (order < 2) {
            uir_term_assume(t, uir_term_sub(t, order ? uir_term_sub(t, a, b) : uir_term_sub(t, b, a), one));
        } else {
            uir_term_assume(t, uir_term_sub(t, a, b));
            uir_term_assume(t, uir_term_sub(t, b, a));
        }
        good = apart(p, depth + 1);
        t->assumptions.count = mark;
    }
    return good;
}

/* Renames the variables of the second access. */
static bool rename_second(uir_iverifier *v, const uir_iaccess *b, uint32_t *from, uir_term *to, uint32_t *out_count) {
    *out_count = 0;
    if (b->variable_count > MAX_VARIABLES - 8) return false;
    for (uint32_t i = 0; i < b->variable_count; i++) {
        bool there = false;
        for (uint32_t k = 0; k < *out_count; k++) there = there || from[k] == b->variables[i];
        if (there) continue;
        uint32_t copy = uir_iverify_copy_variable(v, b->variables[i], from, to, *out_count);
        if (copy == UIR_VARIABLE_NONE) return false;
        from[*out_count] = b->variables[i];
        to[(*out_count)++] = uir_term_variable(&v->terms, copy);
    }
    return true;
}

bool uir_iverify_is_unit_axis(const uir_iphase *phase, uint32_t axis) {
    bool groups = false;
    for (uint32_t k = 0; k < phase->parallel_count; k++) groups = groups || phase->parallel[k].scope == UIR_SCOPE_GROUP;
    return groups && phase->parallel[axis].scope == UIR_SCOPE_UNIT;
}

/* Two accesses by different units; `within_group`: of one group. */
static bool units_apart(uir_iverifier *v, const uir_iaccess *a, const uir_iaccess *b, bool within_group) {
    uir_terms *t = &v->terms;
    const uir_iphase *phase = &v->g->phases.data[a->phase];
    uint32_t from[MAX_VARIABLES], count, mark = t->assumptions.count;
    uir_term to[MAX_VARIABLES];
    pair p = {.v = v, .rank = uir_iverify_pointer(v, a->pointer)->rank};
    if (!rename_second(v, b, from, to, &count)) return false;
    for (uint32_t d = 0; d < p.rank; d++) {
        p.low[0][d] = a->low[d];
        p.high[0][d] = a->high[d];
        p.low[1][d] = uir_term_substitute(t, b->low[d], from, to, count);
        p.high[1][d] = uir_term_substitute(t, b->high[d], from, to, count);
    }
    uint32_t symbols[5], symbol_count = 0;
    bool unit_axis[5];
    for (uint32_t k = 0; k < phase->parallel_count; k++) {
        unit_axis[symbol_count] = uir_iverify_is_unit_axis(phase, k);
        symbols[symbol_count++] = phase->parallel[k].symbol;
    }
    if (a->body == b->body && phase->bodies[a->body].unit_symbol != UINT32_MAX) {
        unit_axis[symbol_count] = true;
        symbols[symbol_count++] = phase->bodies[a->body].unit_symbol;
    }
    for (uint32_t i = 0; i < a->variable_count; i++) { /* loops around both */
        uint32_t variable = a->variables[i];
        bool parallel = false;
        for (uint32_t k = 0; k < symbol_count; k++)
            parallel = parallel || uir_term_of_symbol(t, symbols[k]) == variable;
        for (uint32_t k = 0; k < count && !parallel && p.compared_count < MAX_VARIABLES; k++) {
            if (from[k] != variable) continue;
            bool matters = false;
            for (uint32_t d = 0; d < p.rank; d++) matters = matters || uir_term_mentions(t, a->low[d], variable);
            if (!matters) continue;
            p.compared[p.compared_count][0] = uir_term_variable(t, variable);
            p.compared[p.compared_count++][1] = to[k];
        }
    }
    for (uint32_t i = 0; i < a->condition_count; i++) uir_term_assume(t, a->conditions[i]);
    for (uint32_t i = 0; i < b->condition_count; i++)
        uir_term_assume(t, uir_term_substitute(t, b->conditions[i], from, to, count));
    bool good = true;
    uir_term one = uir_term_const(t, 1);
    for (uint32_t k = 0; k < symbol_count && good; k++) {
        uint32_t variable = uir_term_of_symbol(t, symbols[k]);
        uir_term mine = uir_term_variable(t, variable), theirs = uir_term_substitute(t, mine, from, to, count);
        uint32_t inner = t->assumptions.count;
        /* In this axis they differ, in those before they are equal; of one access with itself one order is enough. */
        for (int order = 0; order < (a == b ? 1 : 2) && good && !(within_group && !unit_axis[k]); order++) {
            uir_term_assume(
                t, uir_term_sub(t, order ? uir_term_sub(t, mine, theirs) : uir_term_sub(t, theirs, mine), one));
            good = apart(&p, 0);
            t->assumptions.count = inner;
        }
        uir_term_assume(t, uir_term_sub(t, mine, theirs));
        uir_term_assume(t, uir_term_sub(t, theirs, mine));
    }
    t->assumptions.count = mark;
    return good;
}

static void report_race(uir_iverifier *v, const uir_iaccess *a, const uir_iaccess *b) {
    const char *name = uir_iverify_pointer(v, a->pointer)->name;
    if (a->write && b->write)
        uir_iverify_report(v, a->line, "two units may write one element of %%%s in one phase (lines %u and %u)", name,
                           a->line, b->line);
    else
        uir_iverify_report(v, a->write ? a->line : b->line,
                           "a unit may read an element of %%%s that another writes in the same phase (lines %u and %u)",
                           name, a->line, b->line);
}

static bool same_access(const uir_iverifier *v, const uir_iaccess *a, const uir_iaccess *b) {
    uint32_t rank = uir_iverify_pointer(v, a->pointer)->rank;
    return a->body == b->body && a->variable_count == b->variable_count && a->condition_count == b->condition_count &&
           memcmp(a->low, b->low, rank * sizeof *a->low) == 0 &&
           memcmp(a->high, b->high, rank * sizeof *a->high) == 0 &&
           (a->condition_count == 0 ||
            memcmp(a->conditions, b->conditions, a->condition_count * sizeof *a->conditions) == 0) &&
           (a->variable_count == 0 ||
            memcmp(a->variables, b->variables, a->variable_count * sizeof *a->variables) == 0);
}

/* Bodies of a phase run at once. What one writes and a later one reads is between units of one parallel index, after a
 * sync at the top level of both. */
static bool bodies_synchronised(const uir_iverifier *v, const uir_iaccess *first, const uir_iaccess *second) {
    const uir_igraph *g = v->g;
    const uir_iphase *phase = &g->phases.data[first->phase];
    bool signalled = false, waited = false;
    for (int side = 0; side < 2; side++) {
        const uir_iaccess *access = side ? second : first;
        for (uint32_t at = phase->bodies[access->body].first_item; at != UINT32_MAX; at = g->items.data[at].next) {
            const uir_iitem *item = &g->items.data[at];
            if (item->kind != UIR_IITEM_INSTRUCTION || item->guard.count) continue;
            const uir_iinstruction *i = &g->instructions.data[item->instruction];
            if (i->code != UIR_IOP_SYNC || i->sync_kind != UIR_SYNC_KINDS ||
                i->sync_from != phase->bodies[first->body].unit_kind ||
                i->sync_to != phase->bodies[second->body].unit_kind)
                continue;
            if (side == 0 && item->instruction > first->position) signalled = true;
            if (side == 1 && item->instruction < second->position) waited = true;
        }
    }
    return signalled && waited;
}

static void compare_bodies(uir_iverifier *v, const uir_iaccess *a, const uir_iaccess *b) {
    const uir_iaccess *first = a->body < b->body ? a : b, *second = a->body < b->body ? b : a;
    if (bodies_synchronised(v, first, second)) return;
    const uir_iphase *phase = &v->g->phases.data[a->phase];
    const uir_machine *machine = v->g->machine;
    uir_iverify_report(
        v, second->line, "%%%s is shared by two bodies that run at once: missing sync.%s.%s between lines %u and %u",
        uir_iverify_pointer(v, a->pointer)->name, machine->unit_kinds[phase->bodies[first->body].unit_kind],
        machine->unit_kinds[phase->bodies[second->body].unit_kind], first->line, second->line);
}

static bool has_units(const uir_iverifier *v, const uir_iaccess *a) {
    const uir_iphase *phase = &v->g->phases.data[a->phase];
    bool units = phase->bodies[a->body].unit_symbol != UINT32_MAX;
    for (uint32_t k = 0; k < phase->parallel_count; k++) units = units || uir_iverify_is_unit_axis(phase, k);
    return units;
}

/* In a shared space the units of a group touch one place only with a barrier between; where two buffers lie in it, all
 * of it. */
static void compare_shared(uir_iverifier *v, const uir_iaccess *a, const uir_iaccess *b) {
    if (!has_units(v, a) || (a->pointer == b->pointer && units_apart(v, a, b, true))) return;
    if (a->position == b->position)
        report_race(v, a, b);
    else if (!uir_iverify_units_meet(v, a->phase, a->body, a->position, b->position))
        uir_iverify_report(v, b->line, "missing sync.group between lines %u and %u: units of a group share %%%s",
                           a->line, b->line, uir_iverify_pointer(v, a->pointer)->name);
}

void uir_iverify_races(uir_iverifier *v) {
    if (v->accesses.count > MAX_ACCESSES) v->terms.exhausted = true;
    for (uint32_t i = 0; i < v->accesses.count; i++) {
        const uir_iaccess *a = &v->accesses.data[i];
        uir_scope scope = uir_iverify_space(v, a->pointer)->scope;
        if (scope == UIR_SCOPE_UNIT) continue;
        for (uint32_t k = i; k < v->accesses.count && !v->terms.exhausted; k++) {
            uir_term_spend(&v->terms, 200);
            const uir_iaccess *b = &v->accesses.data[k];
            if (a->phase != b->phase || (!a->write && !b->write) ||
                uir_igraph_place(v->g, a->pointer) != uir_igraph_place(v->g, b->pointer))
                continue;
            bool repeated = false; /* a pair like it was compared before */
            for (uint32_t n = i; n < k && !repeated && scope == UIR_SCOPE_DEVICE; n++)
                repeated = v->accesses.data[n].pointer == b->pointer && v->accesses.data[n].phase == b->phase &&
                           v->accesses.data[n].write >= b->write && same_access(v, &v->accesses.data[n], b) &&
                           (n > i || a->write);
            if (repeated) continue;
            if (a->body != b->body) compare_bodies(v, a, b);
            if (scope == UIR_SCOPE_GROUP) {
                if (a->body == b->body) compare_shared(v, a, b);
                continue;
            }
            if (!units_apart(v, a, b, false)) report_race(v, a, b);
        }
    }
}

bool uir_iverify_window_injective(uir_iverifier *v, const uir_islice *slice) {
    uir_terms *t = &v->terms;
    uint32_t rank = uir_iverify_pointer(v, slice->pointer)->rank, from[UIR_IGRAPH_MAX_RANK],
             mark = t->assumptions.count;
    uir_term to[UIR_IGRAPH_MAX_RANK], one = uir_term_const(t, 1);
    pair p = {.v = v, .rank = rank};
    for (uint32_t a = 0; a < slice->axis_count; a++) {
        from[a] = uir_term_of_symbol(t, slice->axes[a].symbol);
        to[a] = uir_term_variable(t, uir_iverify_copy_variable(v, from[a], from, to, a));
        p.compared[a][0] = uir_term_variable(t, from[a]);
        p.compared[a][1] = to[a];
    }
    for (uint32_t d = 0; d < rank; d++) {
        p.low[0][d] = uir_term_of_dim(t, slice->starts[d]);
        p.high[0][d] = uir_term_add(t, p.low[0][d], one);
        p.low[1][d] = uir_term_substitute(t, p.low[0][d], from, to, slice->axis_count);
        p.high[1][d] = uir_term_add(t, p.low[1][d], one);
    }
    bool good = true;
    for (uint32_t a = 0; a < slice->axis_count && good; a++) {
        uint32_t inner = t->assumptions.count;
        uir_term_assume(t, uir_term_sub(t, uir_term_sub(t, to[a], p.compared[a][0]), one));
        p.compared_count = 0;
        /* Axes after this one may take any values: compare them where that helps. */
        uir_term rest[UIR_IGRAPH_MAX_RANK][2];
        uint32_t rest_count = 0;
        for (uint32_t b = a + 1; b < slice->axis_count; b++, rest_count++) {
            rest[rest_count][0] = uir_term_variable(t, from[b]);
            rest[rest_count][1] = to[b];
        }
        uir_term saved[MAX_VARIABLES][2];
        memcpy(saved, p.compared, sizeof saved);
        memcpy(p.compared, rest, rest_count * sizeof *rest);
        p.compared_count = rest_count;
        bool single = uir_term_prove_le(t, uir_term_of_dim(t, slice->axes[a].extent), one); /* it has no two values */
        good = single || apart(&p, 0);
        memcpy(p.compared, saved, sizeof saved);
        t->assumptions.count = inner;
        uir_term_assume(t, uir_term_sub(t, to[a], p.compared[a][0]));
        uir_term_assume(t, uir_term_sub(t, p.compared[a][0], to[a]));
    }
    t->assumptions.count = mark;
    return good;
}
