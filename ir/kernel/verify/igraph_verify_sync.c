/* The syncs that a synchronised kernel must have.
 *
 * A unit's pipes run at once; each keeps its own order. Where one pipe writes what another reads or writes after it, a
 * `sync.FROM.TO %ptr` stands between; where an iteration reuses what an earlier one used, a `sync.FROM.TO %ptr dist d`
 * stands in the loop before the use, with a d that divides the number of the buffer's instances; or the order follows
 * from other waits (ir/kernel/igraph_order.h). Units of a group that meet in a shared space do so across a
 * `sync.group`. */
#include "ir/kernel/igraph_threads.h"
#include "ir/kernel/verify/igraph_verify.h"

#define MAX_USES 1500

/* Collected once; NULL when there is no memory. */
static uir_iorder *order_of(uir_iverifier *v, uint32_t phase, uint32_t body) {
    const uir_igraph *g = v->g;
    uint32_t index = body, count = 0;
    for (uint32_t k = 0; k < g->phases.count; k++) {
        if (k < phase) index += g->phases.data[k].body_count;
        count += g->phases.data[k].body_count;
    }
    if (!v->orders) v->orders = uir_arena_allocate_array(v->arena, count, sizeof *v->orders);
    if (v->orders && !v->orders[index]) {
        v->orders[index] = uir_arena_allocate_array(v->arena, 1, sizeof **v->orders);
        if (!v->orders[index] || uir_iorder_collect(g, g->phases.data[phase].bodies[body].first_item, v->arena,
                                                    v->orders[index]) != UIR_STATUS_OK)
            v->failed = true;
    }
    if (!v->orders) v->failed = true;
    return v->failed ? NULL : v->orders[index];
}

static const char *pipe_name(const uir_iorder *o, uint32_t step) {
    return o->igraph->machine->pipes[o->steps.data[step].pipe];
}

/* The line of a sync of the loop that is over the use's place, but waits for too late or the wrong iterations; 0. */
static uint32_t find_wrong_distance(const uir_iorder *o, const uir_iorder_use *a, const uir_iorder_use *b,
                                    uint32_t loop, uint32_t distance) {
    for (uint32_t i = o->syncs.count; i-- > 0;) {
        const uir_iorder_sync *s = &o->syncs.data[i];
        if (s->of_pipes && s->distance && distance % s->distance != 0 && s->loop == loop && s->at <= 2 * b->step &&
            (int32_t)s->from == o->steps.data[a->step].pipe && (int32_t)s->to == o->steps.data[b->step].pipe &&
            uir_iorder_uses_place(o, b->step, s->pointer))
            return s->line;
    }
    return 0;
}

/* The wait of use `b` for what `a`, behind it in the text, did in an earlier iteration. */
static void check_backward(uir_iverifier *v, const uir_iorder *o, const uir_iorder_use *a, const uir_iorder_use *b) {
    uint32_t loop, distance;
    if (!uir_iorder_find_turn(o, a, b, &loop, &distance) ||
        uir_iorder_is_before_turn(o, a->step, b->step, loop, distance))
        return;
    const char *pointer = v->g->pointers.data[a->pointer].name;
    const char *name = v->g->symbols.data[v->g->items.data[o->blocks.data[loop].item].symbol].name;
    uint32_t wrong = find_wrong_distance(o, a, b, loop, distance), line = o->steps.data[b->step].line;
    if (wrong)
        uir_iverify_report(v, wrong,
                           "wrong instance: %%%s has %u by loop %s; a wait whose dist does not divide %u lets an "
                           "instance be overwritten in use",
                           pointer, distance, name, distance);
    else
        uir_iverify_report(v, line, "missing sync.%s.%s %%%s dist %u in loop %s: line %u uses what line %u reuses",
                           pipe_name(o, a->step), pipe_name(o, b->step), pointer, distance, name,
                           o->steps.data[a->step].line, line);
}

static void check_uses(uir_iverifier *v, const uir_iorder *o, const uir_iorder_use *a, const uir_iorder_use *b) {
    if (!uir_iorder_conflicts(o, a, b)) return;
    if (a->step > b->step) check_backward(v, o, a, b);
    if (a->step < b->step && !uir_iorder_is_before(o, a->step, b->step))
        uir_iverify_report(v, o->steps.data[b->step].line, "missing sync.%s.%s %%%s between lines %u and %u",
                           pipe_name(o, a->step), pipe_name(o, b->step), v->g->pointers.data[a->pointer].name,
                           o->steps.data[a->step].line, o->steps.data[b->step].line);
}

/* ---- threads of a unit ---- */
static void check_meeting(uir_iverifier *v, const uir_iorder *o, const uir_iorder_use *a, const uir_iorder_use *b,
                          uint32_t around) {
    if (!uir_ithreads_conflict(o, a, b, around) || uir_ithreads_are_apart(o, a, b, around)) return;
    uint32_t first = o->steps.data[a->step].line, second = o->steps.data[b->step].line;
    const char *name = v->g->pointers.data[b->pointer].name;
    if (around == UINT32_MAX)
        uir_iverify_report(v, second,
                           "missing sync.unit between lines %u and %u: their elements of %%%s are of different "
                           "threads",
                           first, second, name);
    else
        uir_iverify_report(v, second,
                           "missing sync.unit in loop %s: line %u uses elements of %%%s that line %u used in "
                           "an earlier iteration in other threads",
                           v->g->symbols.data[v->g->items.data[o->blocks.data[around].item].symbol].name, second, name,
                           first);
}

static void check_meetings(uir_iverifier *v, const uir_iorder *o) {
    for (uint32_t a = 0; a < o->uses.count; a++)
        for (uint32_t b = 0; b < o->uses.count; b++) {
            const uir_iorder_use *x = &o->uses.data[a], *y = &o->uses.data[b];
            if (x->step < y->step) check_meeting(v, o, x, y, UINT32_MAX);
            uint32_t block = o->steps.data[x->step].block;
            for (; block != UINT32_MAX; block = o->blocks.data[block].parent)
                if (o->blocks.data[block].is_loop && uir_iorder_holds(o, block, y->step))
                    check_meeting(v, o, x, y, block);
        }
}

static void check_flags(uir_iverifier *v, const uir_iorder *o) {
    const uir_machine *machine = v->g->machine;
    for (uint32_t i = 0; i < o->syncs.count && machine->flag_count; i++) {
        const uir_iorder_sync *s = &o->syncs.data[i];
        uint32_t flags = s->of_pipes ? uir_iorder_count_flags(o, s) : 0;
        if (flags > machine->flag_count)
            uir_iverify_report(v, s->line,
                               "sync.%s.%s: %u flags of the pair are in use here, a distance for each wait of the "
                               "enclosing loops; %s has %u",
                               machine->pipes[s->from], machine->pipes[s->to], flags, machine->name,
                               machine->flag_count);
    }
}

/* Each pair of kinds that wait for each other in a phase has a signal of its own. */
static void check_signals(uir_iverifier *v, const uir_iphase *phase) {
    const uir_machine *machine = v->g->machine;
    bool seen[UIR_MACHINE_MAX_UNIT_KINDS][UIR_MACHINE_MAX_UNIT_KINDS] = {0};
    uint32_t count = 0;
    for (uint32_t b = 0; b < phase->body_count && machine->signal_count; b++)
        for (uint32_t at = phase->bodies[b].first_item; at != UINT32_MAX; at = v->g->items.data[at].next) {
            const uir_iitem *item = &v->g->items.data[at];
            if (item->kind != UIR_IITEM_INSTRUCTION) continue;
            const uir_iinstruction *i = &v->g->instructions.data[item->instruction];
            if (i->code != UIR_IOP_SYNC || i->sync_kind != UIR_SYNC_KINDS || seen[i->sync_from][i->sync_to]) continue;
            seen[i->sync_from][i->sync_to] = true;
            if (++count > machine->signal_count)
                uir_iverify_report(v, item->line, "sync.%s.%s: a phase of %s has signals for %u pairs of kinds",
                                   machine->unit_kinds[i->sync_from], machine->unit_kinds[i->sync_to], machine->name,
                                   machine->signal_count);
        }
}

void uir_iverify_syncs(uir_iverifier *v) {
    for (uint32_t ph = 0; ph < v->g->phases.count; ph++) check_signals(v, &v->g->phases.data[ph]);
    if (!v->g->synchronised) return;
    for (uint32_t ph = 0; ph < v->g->phases.count; ph++) {
        const uir_iphase *phase = &v->g->phases.data[ph];
        for (uint32_t b = 0; b < phase->body_count; b++) {
            uir_iorder *o = order_of(v, ph, b);
            if (o && o->uses.count > MAX_USES) v->terms.exhausted = true;
            if (!o || v->terms.exhausted) return;
            check_flags(v, o);
            uir_iorder_find_from(o, 0);
            if (uir_ithreads_count(v->g) > 1) check_meetings(v, o);
            for (uint32_t i = 0; i < o->uses.count; i++)
                for (uint32_t k = 0; k < o->uses.count; k++) check_uses(v, o, &o->uses.data[i], &o->uses.data[k]);
        }
    }
}

/* ---- units of a group ---- */
/* The step that is the instruction; UINT32_MAX: it is none. */
static uint32_t find_step(const uir_iorder *o, uint32_t instruction) {
    for (uint32_t i = 0; i < o->steps.count; i++)
        if (o->steps.data[i].instruction == instruction) return i;
    return UINT32_MAX;
}

/* Does a barrier stand between the steps (or, `around`, before the first or behind the second, in the loop), which runs
 * whenever one of them does? */
static bool find_barrier(const uir_iorder *o, uint32_t first, uint32_t second, uint32_t around) {
    for (uint32_t i = 0; i < o->syncs.count; i++) {
        const uir_iorder_sync *s = &o->syncs.data[i];
        bool between = s->at > 2 * first + 1 && s->at < 2 * second + 1;
        bool beyond = s->at > 2 * second + 1 || s->at < 2 * first + 1;
        if (!s->is_barrier) continue;
        if (around == UINT32_MAX
                ? between && (uir_iorder_holds(o, s->block, first) || uir_iorder_holds(o, s->block, second))
                : beyond && uir_iorder_is_inside(o, s->block, around) && uir_iorder_holds(o, s->block, first))
            return true;
    }
    return false;
}

/* From the use at `a` to that at `b` later in the text, and around every loop that holds both, the units meet. */
bool uir_iverify_units_meet(uir_iverifier *v, uint32_t phase, uint32_t body, uint32_t a, uint32_t b) {
    const uir_iorder *o = order_of(v, phase, body);
    uint32_t first = o ? find_step(o, a < b ? a : b) : UINT32_MAX, second = o ? find_step(o, a < b ? b : a) : first;
    if (first == UINT32_MAX || second == UINT32_MAX) return false;
    uir_term_spend(&v->terms, o->syncs.count + o->steps.count);
    bool meet = find_barrier(o, first, second, UINT32_MAX);
    for (uint32_t block = o->steps.data[first].block; block != UINT32_MAX && meet; block = o->blocks.data[block].parent)
        if (o->blocks.data[block].is_loop && uir_iorder_holds(o, block, second))
            meet = find_barrier(o, first, second, block);
    return meet;
}
