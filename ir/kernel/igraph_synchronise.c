#include "ir/kernel/igraph_synchronise.h"

#include "ir/kernel/igraph_threads.h"

#include <string.h>

#define NONE UINT32_MAX

/* Step a has to be done before step b begins: in the same iteration (loop NONE), or what it did so many iterations of a
 * loop before. */
typedef struct demand {
    uint32_t a, b, loop, distance;
} demand;

/* Uses between which the threads of a unit meet; in the same iteration (around NONE) or in one of this loop's before.
 */
typedef struct meeting {
    uint32_t a, b, around;
} meeting;

typedef struct synchroniser {
    uir_igraph *g;
    uir_arena *arena;
    uir_iorder order;
    uir_vector(demand) demands;
    uir_vector(meeting) meetings;
    uint64_t *kept; /* what is before what, while a wait is left out */
} synchroniser;

/* ---- barriers of threads ---- */
static uir_status demand_meeting(synchroniser *s, uint32_t a, uint32_t b, uint32_t around) {
    const uir_iorder_use *uses = s->order.uses.data;
    UIR_TRY(uir_arena_spend(s->arena, 1));
    if (!uir_ithreads_conflict(&s->order, &uses[a], &uses[b], around)) return UIR_STATUS_OK;
    return uir_vector_push(s->arena, &s->meetings, (meeting){a, b, around});
}

/* Those in one iteration first, by the later use, its nearest ones first; then those across iterations, of the inner
 * loops first. */
static uir_status find_meetings(synchroniser *s) {
    const uir_iorder *o = &s->order;
    s->meetings.count = 0;
    for (uint32_t b = 0; b < o->uses.count; b++)
        for (uint32_t a = b; a-- > 0;) UIR_TRY(demand_meeting(s, a, b, NONE));
    for (uint32_t loop = o->blocks.count; loop-- > 0;) {
        if (!o->blocks.data[loop].is_loop) continue;
        for (uint32_t b = 0; b < o->uses.count; b++)
            for (uint32_t a = 0; a < o->uses.count && uir_iorder_holds(o, loop, o->uses.data[b].step); a++)
                if (uir_iorder_holds(o, loop, o->uses.data[a].step)) UIR_TRY(demand_meeting(s, a, b, loop));
    }
    return UIR_STATUS_OK;
}

static bool has_met(const uir_iorder *o, const meeting *m) {
    return uir_ithreads_are_apart(o, &o->uses.data[m->a], &o->uses.data[m->b], m->around);
}

static void find_place_in(const uir_iorder *o, uint32_t step, uint32_t loop, uir_iorder_sync *wait);

/* In the innermost block around both, before what holds the later one; across iterations, in the loop. */
static uir_status add_barrier(synchroniser *s, const meeting *m) {
    uir_iorder *o = &s->order;
    uint32_t a = o->uses.data[m->a].step, b = o->uses.data[m->b].step, block = m->around;
    uir_iorder_sync barrier = {.is_unit = true, .pointer = NONE};
    if (block == NONE)
        for (block = o->steps.data[b].block; !uir_iorder_holds(o, block, a);) block = o->blocks.data[block].parent;
    find_place_in(o, b, block, &barrier);
    barrier.loop = NONE;
    return uir_vector_push(s->arena, &o->syncs, barrier);
}

static uir_status add_barriers(synchroniser *s) {
    uir_iorder *o = &s->order;
    uint32_t first = o->syncs.count;
    UIR_TRY(find_meetings(s));
    for (uint32_t i = 0; i < s->meetings.count; i++)
        if (!has_met(o, &s->meetings.data[i])) UIR_TRY(add_barrier(s, &s->meetings.data[i]));
    for (uint32_t i = first; i < o->syncs.count; i++) {
        bool needless = o->syncs.data[i].is_off = true;
        for (uint32_t k = 0; k < s->meetings.count && needless; k++) needless = has_met(o, &s->meetings.data[k]);
        UIR_TRY(uir_arena_spend(s->arena, 1));
        o->syncs.data[i].is_off = needless;
    }
    return UIR_STATUS_OK;
}

/* ---- waits ---- */
static bool is_met(const uir_iorder *o, const demand *d) {
    return d->loop == NONE ? uir_iorder_is_before(o, d->a, d->b)
                           : uir_iorder_is_before_turn(o, d->a, d->b, d->loop, d->distance);
}

/* The item of a loop's block that holds the step, or is it: where a wait of the loop stands at the latest. */
static void find_place_in(const uir_iorder *o, uint32_t step, uint32_t loop, uir_iorder_sync *wait) {
    uint32_t item = o->steps.data[step].item, block = o->steps.data[step].block;
    wait->at = 2 * step;
    while (block != loop && block != NONE) {
        if (o->blocks.data[block].first < wait->at / 2) wait->at = 2 * o->blocks.data[block].first;
        item = o->blocks.data[block].item;
        block = o->blocks.data[block].parent;
    }
    wait->before = item;
    wait->block = wait->loop = loop;
}

/* Right before step b, or in the loop. */
static uir_status add_wait(synchroniser *s, const demand *d, uint32_t pointer) {
    uir_iorder *o = &s->order;
    const uir_iorder_step *b = &o->steps.data[d->b];
    bool own = o->blocks.data[b->block].item == b->item; /* its condition's, which the wait has not */
    uir_iorder_sync wait = {.at = 2 * d->b,
                            .block = own ? o->blocks.data[b->block].parent : b->block,
                            .loop = NONE,
                            .before = b->item,
                            .from = (uint32_t)o->steps.data[d->a].pipe,
                            .to = (uint32_t)b->pipe,
                            .distance = d->distance,
                            .pointer = pointer,
                            .of_pipes = true};
    if (d->loop != NONE) find_place_in(o, d->b, d->loop, &wait);
    return uir_vector_push(s->arena, &o->syncs, wait);
}

static uir_status demand_order(synchroniser *s, const demand *d, uint32_t pointer) {
    if (s->demands.count) {
        const demand *last = &s->demands.data[s->demands.count - 1];
        if (last->a == d->a && last->b == d->b && last->loop == d->loop && last->distance == d->distance)
            return UIR_STATUS_OK;
    }
    UIR_TRY(uir_arena_spend(s->arena, 1));
    UIR_TRY(uir_vector_push(s->arena, &s->demands, *d));
    if (is_met(&s->order, d)) return UIR_STATUS_OK;
    UIR_TRY(add_wait(s, d, pointer));
    if (d->loop == NONE) uir_iorder_find_step(&s->order, d->b);
    return UIR_STATUS_OK;
}

/* What each step must wait for of those in front of it. */
static uir_status demand_forward(synchroniser *s) {
    uir_iorder *o = &s->order;
    for (uint32_t b = 0; b < o->steps.count; b++) {
        uir_iorder_find_step(o, b);
        const uir_iorder_step *step = &o->steps.data[b];
        for (uint32_t k = step->first_use; k < step->first_use + step->use_count; k++)
            for (uint32_t i = 0; i < step->first_use; i++) {
                const uir_iorder_use *use = &o->uses.data[i];
                if (!uir_iorder_conflicts(o, use, &o->uses.data[k])) continue;
                UIR_TRY(demand_order(s, &(demand){use->step, b, NONE, 0}, o->uses.data[k].pointer));
            }
    }
    return UIR_STATUS_OK;
}

/* And of those behind it, in earlier iterations of a loop around both. */
static uir_status demand_backward(synchroniser *s) {
    uir_iorder *o = &s->order;
    for (uint32_t k = 0; k < o->uses.count; k++)
        for (uint32_t i = k + 1; i < o->uses.count; i++) {
            const uir_iorder_use *earlier = &o->uses.data[k], *later = &o->uses.data[i];
            demand d = {later->step, earlier->step, NONE, 0};
            if (!uir_iorder_conflicts(o, later, earlier) ||
                !uir_iorder_find_turn(o, later, earlier, &d.loop, &d.distance))
                continue;
            UIR_TRY(demand_order(s, &d, earlier->pointer));
        }
    return UIR_STATUS_OK;
}

/* ---- none too many ---- */
/* Leaves the wait out if everything is still ordered without it. */
static uir_status leave_out(synchroniser *s, uir_iorder_sync *wait) {
    uir_iorder *o = &s->order;
    size_t size = (size_t)o->steps.count * o->words * sizeof *o->before;
    bool needless = true;
    wait->is_off = true;
    memcpy(s->kept, o->before, size);
    if (!wait->distance) uir_iorder_find_from(o, wait->at / 2);
    for (uint32_t i = 0; i < s->demands.count && needless; i++) {
        needless = is_met(o, &s->demands.data[i]);
        UIR_TRY(uir_arena_spend(s->arena, 1));
    }
    wait->is_off = needless;
    if (!needless) memcpy(o->before, s->kept, size);
    return UIR_STATUS_OK;
}

static uir_status leave_out_needless(synchroniser *s) {
    for (uint32_t i = 0; i < s->order.syncs.count; i++) {
        uir_iorder_sync *wait = &s->order.syncs.data[i];
        if (wait->of_pipes && !wait->is_off) UIR_TRY(leave_out(s, wait));
    }
    return UIR_STATUS_OK;
}

/* ---- no more flags than there are ---- */
/* The wait of a loop around that costs the least to do without flags of its own: of distance 1, for what is done up to
 * here is little more; else of the outermost loop, whose iterations are the longest. */
static uir_iorder_sync *find_cheapest(uir_iorder *o, const uir_iorder_sync *at) {
    uir_iorder_sync *best = NULL;
    for (uint32_t i = 0; i < o->syncs.count; i++) {
        uir_iorder_sync *wait = &o->syncs.data[i];
        if (!uir_iorder_holds_flags(o, wait, at)) continue;
        bool is_one = wait->distance == 1, best_is_one = best && best->distance == 1;
        if (!best || (is_one && !best_is_one) ||
            (is_one == best_is_one && wait->loop != best->loop && uir_iorder_is_inside(o, best->loop, wait->loop)))
            best = wait;
    }
    return best;
}

/* Lets one wait stand for another one of the same loop and distance, over whatever their pipe had to do. */
static bool merge(uir_iorder *o, const uir_iorder_sync *at) {
    for (uint32_t i = 0; i < o->syncs.count; i++)
        for (uint32_t k = i + 1; k < o->syncs.count && uir_iorder_holds_flags(o, &o->syncs.data[i], at); k++) {
            uir_iorder_sync *a = &o->syncs.data[i], *b = &o->syncs.data[k];
            if (!uir_iorder_holds_flags(o, b, at) || a->loop != b->loop || a->distance != b->distance) continue;
            uir_iorder_sync *first = a->at <= b->at ? a : b;
            first->pointer = NONE;
            (first == a ? b : a)->is_off = true;
            return true;
        }
    return false;
}

/* Where a pair has too few flags, first what costs nothing, then merging; at last the iterations no longer overlap. */
static uir_status fit_flags(synchroniser *s) {
    uir_iorder *o = &s->order;
    uint32_t most = s->g->machine->flag_count;
    bool changed = false;
    for (uint32_t i = 0; i < o->syncs.count && most;) {
        const uir_iorder_sync *at = &o->syncs.data[i];
        if (!at->of_pipes || at->is_off || uir_iorder_count_flags(o, at) <= most) {
            i++;
            continue;
        }
        uir_iorder_sync *cheapest = find_cheapest(o, at);
        changed = true;
        if (cheapest->distance > 1 && merge(o, at)) continue;
        cheapest->distance = 0;
    }
    if (!changed) return UIR_STATUS_OK;
    uir_iorder_find_from(o, 0);
    return leave_out_needless(s);
}

/* ---- the tree with its waits ---- */
/* Gives the item that the wait becomes, in front of what it stands before. */
static uir_status put_wait(synchroniser *s, const uir_iorder_sync *w, uint32_t *out_item) {
    uir_iinstruction sync = {.code = UIR_IOP_SYNC,
                             .sync_kind = w->is_unit ? UIR_SYNC_UNIT : UIR_SYNC_PIPES,
                             .sync_from = w->from,
                             .sync_to = w->to,
                             .sync_pointer = w->pointer,
                             .sync_distance = w->distance,
                             .legal_row = UINT32_MAX};
    uir_iitem item = {.kind = UIR_IITEM_INSTRUCTION,
                      .symbol = UINT32_MAX,
                      .instruction = s->g->instructions.count,
                      .first_child = NONE,
                      .next = w->before};
    *out_item = s->g->items.count;
    UIR_TRY(uir_vector_push(&s->g->arena, &s->g->instructions, sync));
    return uir_vector_push(&s->g->arena, &s->g->items, item);
}

/* All of a list; those before one item in the order in which they were found. */
static uir_status put_all(synchroniser *s, uint32_t *first) {
    uint32_t before = NONE; /* the item in front */
    for (uint32_t at = *first; at != NONE; at = s->g->items.data[at].next) {
        for (uint32_t i = 0; i < s->order.syncs.count; i++) {
            const uir_iorder_sync *wait = &s->order.syncs.data[i];
            uint32_t item;
            bool is_new = (wait->of_pipes || wait->is_unit) && wait->before != UIR_IORDER_GIVEN;
            if (!is_new || wait->is_off || wait->before != at) continue;
            UIR_TRY(put_wait(s, wait, &item));
            if (before == NONE)
                *first = item;
            else
                s->g->items.data[before].next = item;
            before = item;
        }
        uint32_t child = s->g->items.data[at].first_child;
        if (child != NONE) {
            UIR_TRY(put_all(s, &child));
            s->g->items.data[at].first_child = child;
        }
        before = at;
    }
    return UIR_STATUS_OK;
}

/* Instructions are numbered as they stand in the text. */
static void number(synchroniser *s, uint32_t first, uir_iinstruction *to, uint32_t *count) {
    for (uint32_t at = first; at != NONE; at = s->g->items.data[at].next) {
        uir_iitem *item = &s->g->items.data[at];
        if (item->kind == UIR_IITEM_INSTRUCTION) {
            to[*count] = s->g->instructions.data[item->instruction];
            item->instruction = (*count)++;
        }
        number(s, item->first_child, to, count);
    }
}

static uir_status number_all(synchroniser *s) {
    uir_igraph *g = s->g;
    uint32_t count = 0;
    uir_iinstruction *ordered = uir_arena_allocate_array(s->arena, (size_t)g->instructions.count + 1, sizeof *ordered);
    if (!ordered) return UIR_STATUS_OUT_OF_MEMORY;
    for (uint32_t p = 0; p < g->phases.count; p++)
        for (uint32_t b = 0; b < g->phases.data[p].body_count; b++)
            number(s, g->phases.data[p].bodies[b].first_item, ordered, &count);
    memcpy(g->instructions.data, ordered, count * sizeof *ordered);
    g->instructions.count = count;
    return UIR_STATUS_OK;
}

static uir_status synchronise_body(synchroniser *s, uint32_t *first) {
    uir_iorder *o = &s->order;
    s->demands.count = 0;
    UIR_TRY(uir_iorder_collect(s->g, *first, s->arena, o));
    UIR_TRY_ALLOCATE(s->kept,
                     uir_arena_allocate_array(s->arena, (size_t)o->steps.count * o->words + 1, sizeof *s->kept));
    if (uir_ithreads_count(s->g) > 1) UIR_TRY(add_barriers(s));
    UIR_TRY(demand_forward(s));
    UIR_TRY(demand_backward(s));
    UIR_TRY(leave_out_needless(s));
    UIR_TRY(fit_flags(s));
    return put_all(s, first);
}

static uir_status synchronise(synchroniser *s) {
    uir_igraph *g = s->g;
    for (uint32_t p = 0; p < g->phases.count; p++)
        for (uint32_t b = 0; b < g->phases.data[p].body_count; b++)
            UIR_TRY(synchronise_body(s, &g->phases.data[p].bodies[b].first_item));
    UIR_TRY(number_all(s));
    g->synchronised = true;
    return UIR_STATUS_OK;
}

bool uir_igraph_needs_syncs(const uir_machine *machine) {
    return machine->pipe_count > 1 || uir_machine_threads(machine) > 1;
}

uir_status uir_igraph_synchronise(uir_igraph *igraph) {
    synchroniser s = {.g = igraph};
    uir_arena arena;
    if (igraph->synchronised || !uir_igraph_needs_syncs(igraph->machine)) return UIR_STATUS_OK;
    uir_arena_init(&arena, &igraph->allocator);
    s.arena = &arena;
    uir_status status = synchronise(&s);
    uir_arena_deinit(&arena);
    return status;
}
