/* Walks a kernel and knows, at every place, what is defined.
 *
 * A loop is analysed by induction. What its first iteration leaves behind is proposed as what every earlier iteration
 * has left; the body is walked with that and must re-establish it; what does not hold is dropped and the walk repeated.
 * Messages of walks that did not hold are dropped with them. */
#include "ir/kernel/verify/igraph_verify.h"

#include <string.h>

#define MAX_ROUNDS 16
#define PROPOSING  3 /* rounds in which facts may be proposed; those after it can only drop some */

/* ---- conditions ---- */
uir_term uir_iverify_loop_trips(uir_iverifier *v, uint32_t symbol) {
    const uir_isymbol *loop = &v->g->symbols.data[symbol];
    return uir_term_of_dim(&v->terms, uir_dims_symbol_facts(v->g->dims, loop->symbol).bound);
}

/* a < ceildiv(n, c) is a * c < n: without a quotient of which only bounds are known. */
static void undivide(uir_iverifier *v, const uir_condition *condition, uir_term *left, uir_term *right) {
    uir_terms *t = &v->terms;
    uir_dim dim = condition->right;
    const uir_dim_node *node;
    int64_t divisor;
    while (condition->relation == UIR_RELATION_LT && (node = uir_dim_get(v->g->dims, dim))->kind == UIR_DIM_CEILDIV &&
           uir_dim_is_const(v->g->dims, node->operands[1], &divisor) && divisor > 0) {
        dim = node->operands[0];
        uir_term scaled = uir_term_mul(t, *left, uir_term_const(t, divisor)), whole = uir_term_of_dim(t, dim);
        if (!scaled || !whole) return;
        *left = scaled;
        *right = whole;
    }
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
            uir_term last = uir_term_sub(t, uir_iverify_loop_trips(v, atom->loop), one);
            if (atom->kind == UIR_IATOM_FIRST)
                out[(*out_count)++] = atom->negated ? uir_term_sub(t, l, one) : uir_term_sub(t, zero, l);
            else
                out[(*out_count)++] =
                    atom->negated ? uir_term_sub(t, uir_term_sub(t, last, one), l) : uir_term_sub(t, l, last);
            continue;
        }
        uir_term a = uir_term_of_dim(t, atom->condition.left), b = uir_term_of_dim(t, atom->condition.right);
        undivide(v, &atom->condition, &a, &b);
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
    for (uint32_t i = 0; i < fact->condition_count; i++)
        if (fact->conditions[i] == condition) return true;
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
    for (uint32_t i = 0; i < v->facts.count && round < PROPOSING; i++) {
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
    while (after.count > UIR_IFACT_MAX) uir_iverify_forget(v, &after);
    return uir_iverify_facts_copy(v, &after, &v->facts);
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
    w.trips = uir_iverify_loop_trips(v, item->symbol);
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
        uir_iverify_walk_index(v, item);
        break;
    case UIR_IITEM_INSTRUCTION:
        uir_iverify_walk_instruction(v, item);
        break;
    case UIR_IITEM_RUN:
        walk_run(v, item);
        break;
    }
}

static void walk_items(uir_iverifier *v, uint32_t first) {
    for (uint32_t at = first; at != UINT32_MAX && !v->terms.exhausted && !v->failed; at = v->g->items.data[at].next) {
        uir_term_spend(&v->terms, 4000);
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
        for (uint32_t k = 0; k < phase->parallel_count && keep; k++) {
            uint32_t symbol = phase->parallel[k].symbol;
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

/* What is in a unit's own memory goes with its body; what it left in device memory, all units of the body did. */
static void close_body(uir_iverifier *v, const uir_ibody *body) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < v->facts.count; i++) {
        uir_ifact fact = v->facts.data[i];
        bool keep = uir_iverify_is_dram(v, fact.pointer);
        if (keep && body->unit_symbol != UINT32_MAX) {
            uint32_t unit = uir_term_of_symbol(&v->terms, body->unit_symbol);
            if (uir_iverify_fact_mentions(v, &fact, unit)) keep = add_variable(&fact, unit);
        }
        if (keep) v->facts.data[kept++] = fact;
    }
    v->facts.count = kept;
}

static void check_outputs(uir_iverifier *v) {
    v->patient = true;
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
            close_body(v, &phase->bodies[b]);
        }
        v->active.count = 0;
        close_phase(v, phase);
    }
    if (!v->terms.exhausted) check_outputs(v);
}
