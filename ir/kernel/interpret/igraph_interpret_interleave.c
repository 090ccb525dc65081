/* Pipes that run apart: a unit's program gives each its queue of instructions, with the values of the symbols that they
 * stand among; any pipe may go on whose first waits are over, and a seed chooses which does. */
#include "ir/kernel/igraph_threads.h"
#include "ir/kernel/interpret/igraph_machine.h"

#include <string.h>

#define NONE UINT32_MAX

/* What an instruction's expressions are made of, where it stands in the program. */
typedef struct isnapshot {
    int64_t *values;
    bool *bound, *outside;
    uint32_t *turns;
} isnapshot;

/* An instruction, or a wait until a pipe has done so many of its own. */
typedef struct ientry {
    uint32_t item; /* of the instruction; NONE: a wait */
    uint32_t sequence;
    const isnapshot *state;
    uint32_t from, count;
} ientry;

typedef struct ipipe {
    uir_vector(ientry) entries;
    uint32_t next;        /* entry */
    uint32_t given, done; /* instructions so far */
    uint32_t *last;       /* by pointer that has a place: the number given with the last that uses it */
} ipipe;

/* A sync with a distance: of the loop around it, what each turn (modulo the distance) had given when it was over. */
typedef struct iback {
    uint32_t instruction, loop; /* NONE: it stands in none */
    uint32_t *counts;
} iback;

typedef struct iqueues {
    uir_arena *arena;
    ipipe pipes[UIR_MACHINE_MAX_PIPES];
    uir_vector(iback) backs;
    const isnapshot *state;                  /* the last one taken */
    uint32_t awaited[UIR_MACHINE_MAX_PIPES]; /* instructions of each that the program waits for before it goes on */
} iqueues;

static uir_status find_backs(const imachine *machine, iqueues *queues, uint32_t first, uint32_t loop) {
    const uir_igraph *g = machine->igraph;
    for (uint32_t at = first; at != NONE; at = g->items.data[at].next) {
        const uir_iitem *item = &g->items.data[at];
        if (item->kind == UIR_IITEM_INSTRUCTION) {
            const uir_iinstruction *i = &g->instructions.data[item->instruction];
            if (i->code != UIR_IOP_SYNC || i->sync_kind != UIR_SYNC_PIPES || !i->sync_distance) continue;
            iback back = {.instruction = item->instruction, .loop = loop};
            UIR_TRY_ALLOCATE(back.counts,
                             uir_arena_allocate_array(queues->arena, i->sync_distance, sizeof *back.counts));
            UIR_TRY(uir_vector_push(queues->arena, &queues->backs, back));
        }
        UIR_TRY(find_backs(machine, queues, item->first_child, item->kind == UIR_IITEM_LOOP ? at : loop));
    }
    return UIR_STATUS_OK;
}

uir_status uir_imachine_open_queues(imachine *machine, uir_arena *arena, uint32_t first_item, iunit *unit) {
    iqueues *queues;
    UIR_TRY_ALLOCATE(queues, uir_arena_allocate_array(arena, 1, sizeof *queues));
    queues->arena = arena;
    for (uint32_t p = 0; p < machine->igraph->machine->pipe_count; p++)
        UIR_TRY_ALLOCATE(queues->pipes[p].last, uir_arena_allocate_array(arena, machine->igraph->pointers.count + 1,
                                                                         sizeof *queues->pipes[p].last));
    unit->queues = queues;
    unit->moved = true;
    return find_backs(machine, queues, first_item, NONE);
}

/* ---- giving ---- */
static uir_status take_snapshot(const imachine *machine, iunit *unit) {
    uint32_t n = machine->symbol_count + 1;
    isnapshot *state;
    uir_arena *arena = unit->queues->arena;
    if (!unit->moved) return UIR_STATUS_OK;
    UIR_TRY_ALLOCATE(state, uir_arena_allocate_array(arena, 1, sizeof *state));
    UIR_TRY_ALLOCATE(state->values, uir_arena_copy(arena, unit->values, n * sizeof *state->values));
    UIR_TRY_ALLOCATE(state->bound, uir_arena_copy(arena, unit->bound, n * sizeof *state->bound));
    UIR_TRY_ALLOCATE(state->outside, uir_arena_copy(arena, unit->outside, n * sizeof *state->outside));
    UIR_TRY_ALLOCATE(state->turns, uir_arena_copy(arena, unit->turns, n * sizeof *state->turns));
    unit->queues->state = state;
    unit->moved = false;
    return UIR_STATUS_OK;
}

static uir_status push_entry(iunit *unit, ipipe *pipe, ientry entry) {
    unit->queued++;
    return uir_vector_push(unit->queues->arena, &pipe->entries, entry);
}

static uir_status give_instruction(imachine *machine, iunit *unit, uint32_t item, const uir_iinstruction *i,
                                   ipipe *pipe) {
    const uir_igraph *g = machine->igraph;
    UIR_TRY(take_snapshot(machine, unit));
    UIR_TRY(push_entry(unit, pipe, (ientry){.item = item, .sequence = ++unit->sequence, .state = unit->queues->state}));
    pipe->given++;
    for (uint32_t k = 0; k < i->slice_count; k++) pipe->last[uir_igraph_place(g, i->slices[k].pointer)] = pipe->given;
    if (i->has_scratch) pipe->last[uir_igraph_place(g, i->scratch.pointer)] = pipe->given;
    return UIR_STATUS_OK;
}

/* How many instructions a pipe has been given up to now that a sync over the pointer, or over all, is about. */
static uint32_t count_given(const imachine *machine, const ipipe *pipe, uint32_t pointer) {
    return pointer == NONE ? pipe->given : pipe->last[uir_igraph_place(machine->igraph, pointer)];
}

/* How many instructions of the signalling pipe the sync waits for, where the program has come to it. */
static uint32_t count_awaited(const imachine *machine, const iunit *unit, uint32_t id, const uir_iinstruction *i) {
    const iqueues *queues = unit->queues;
    if (!i->sync_distance) return count_given(machine, &queues->pipes[i->sync_from], i->sync_pointer);
    for (uint32_t b = 0; b < queues->backs.count; b++) {
        const iback *back = &queues->backs.data[b];
        if (back->instruction != id || back->loop == NONE) continue;
        int64_t index = unit->values[machine->igraph->items.data[back->loop].symbol];
        return back->counts[index % i->sync_distance];
    }
    return 0;
}

void uir_imachine_end_turn(const imachine *machine, iunit *unit, uint32_t loop_item, int64_t index) {
    iqueues *queues = unit->queues;
    for (uint32_t b = 0; b < queues->backs.count; b++) {
        const iback *back = &queues->backs.data[b];
        if (back->loop != loop_item) continue;
        const uir_iinstruction *i = &machine->igraph->instructions.data[back->instruction];
        back->counts[index % i->sync_distance] = count_given(machine, &queues->pipes[i->sync_from], i->sync_pointer);
    }
}

bool uir_imachine_is_held(const iunit *unit) {
    for (uint32_t p = 0; p < UIR_MACHINE_MAX_PIPES; p++)
        if (unit->queues->pipes[p].done < unit->queues->awaited[p]) return true;
    return false;
}

/* The program stays at this item. */
static void hold(iunit *unit, uint32_t id) {
    unit->draining = true;
    unit->frames[unit->depth - 1].next = id;
}

uir_status uir_imachine_give(imachine *machine, iunit *unit, uint32_t id, bool *out_given) {
    const uir_iitem *item = &machine->igraph->items.data[id];
    const uir_iinstruction *i = &machine->igraph->instructions.data[item->instruction];
    iqueues *queues = unit->queues;
    *out_given = true;
    if (i->code == UIR_IOP_SYNC && i->sync_kind == UIR_SYNC_PIPES) {
        ientry wait = {.item = NONE, .from = i->sync_from, .count = count_awaited(machine, unit, item->instruction, i)};
        return wait.count ? push_entry(unit, &queues->pipes[i->sync_to], wait) : UIR_STATUS_OK;
    }
    int32_t pipe = uir_igraph_get_pipe(machine->igraph, i);
    if (i->code != UIR_IOP_SYNC && i->scope != UIR_SCOPE_GROUP && pipe >= 0 && !uir_ithreads_meet(machine->igraph, i))
        return give_instruction(machine, unit, id, i, &queues->pipes[pipe]);
    for (uint32_t p = 0; p < UIR_MACHINE_MAX_PIPES; p++) queues->awaited[p] = queues->pipes[p].given;
    *out_given = uir_imachine_is_held(unit); /* in order with all that stands before it */
    if (*out_given) hold(unit, id);
    unit->sequence += !*out_given;
    return UIR_STATUS_OK;
}

bool uir_imachine_hold_index(const imachine *machine, iunit *unit, uint32_t id) {
    uint32_t place = uir_igraph_place(machine->igraph, machine->igraph->items.data[id].index.slice.pointer);
    iqueues *queues = unit->queues;
    for (uint32_t p = 0; p < machine->igraph->machine->pipe_count; p++)
        queues->awaited[p] = queues->pipes[p].last[place];
    bool held = uir_imachine_is_held(unit);
    if (held) hold(unit, id);
    return held;
}

/* ---- executing ---- */
static uint64_t draw(imachine *machine) {
    machine->random ^= machine->random >> 12;
    machine->random ^= machine->random << 25;
    machine->random ^= machine->random >> 27;
    return machine->random * 0x2545f4914f6cdd1du >> 33;
}

/* Has the pipe an instruction that nothing holds back? Waits that are over leave its queue. */
static bool is_ready(iunit *unit, ipipe *pipe) {
    while (pipe->next < pipe->entries.count) {
        const ientry *first = &pipe->entries.data[pipe->next];
        if (first->item != NONE) return true;
        if (unit->queues->pipes[first->from].done < first->count) return false;
        pipe->next++;
        unit->queued--;
    }
    pipe->entries.count = pipe->next = 0;
    return false;
}

static uir_status execute_first(imachine *machine, iunit *unit, ipipe *pipe) {
    ientry entry = pipe->entries.data[pipe->next++];
    const uir_iitem *item = &machine->igraph->items.data[entry.item];
    iunit as_given = *unit;
    as_given.values = entry.state->values;
    as_given.bound = entry.state->bound;
    as_given.outside = entry.state->outside;
    as_given.turns = entry.state->turns;
    as_given.sequence = entry.sequence;
    unit->queued--;
    pipe->done++;
    machine->line = item->line;
    uir_arena_reset(&machine->scratch);
    return uir_imachine_execute(machine, &as_given, &machine->igraph->instructions.data[item->instruction]);
}

/* The pipes of all units that may go on, counted; the one with this number among those that are (not) delayed. */
static uint32_t count_ready(imachine *machine, bool delayed, uint32_t wanted, uint32_t *out_unit, uint32_t *out_pipe) {
    uint32_t count = 0;
    for (uint32_t u = 0; u < machine->group.unit_count; u++) {
        iunit *unit = &machine->group.units[u];
        for (uint32_t p = 0; unit->queued && p < machine->igraph->machine->pipe_count; p++) {
            bool is_delayed = (int32_t)p == machine->interleaving->delayed_pipe;
            if (is_delayed != delayed || !is_ready(unit, &unit->queues->pipes[p])) continue;
            if (count++ != wanted) continue;
            *out_unit = u;
            *out_pipe = p;
        }
    }
    return count;
}

static uint32_t count_queued(const imachine *machine) {
    uint32_t count = 0;
    for (uint32_t u = 0; u < machine->group.unit_count; u++) count += machine->group.units[u].queued;
    return count;
}

/* Every other seed lets a pipe go on for a while before another one is drawn: they come further apart. */
static bool stays(imachine *machine) {
    uint32_t most = 1u << machine->interleaving->seed % 4;
    return most > 1 && draw(machine) % most != 0;
}

uir_status uir_imachine_step(imachine *machine, bool *out_stepped) {
    uint32_t u = machine->last_unit, p = machine->last_pipe, ignored;
    uint32_t queued = count_queued(machine);
    if (machine->cancel && __atomic_load_n(machine->cancel, __ATOMIC_RELAXED)) return UIR_STATUS_CANCELLED;
    bool delayed = count_ready(machine, false, NONE, &ignored, &ignored) == 0;
    uint32_t count = count_ready(machine, delayed, NONE, &ignored, &ignored);
    *out_stepped = count > 0 || count_queued(machine) < queued; /* waits may be all that was left */
    if (!count) return UIR_STATUS_OK;
    bool again = u < machine->group.unit_count && machine->group.units[u].queued &&
                 ((int32_t)p == machine->interleaving->delayed_pipe) == delayed &&
                 is_ready(&machine->group.units[u], &machine->group.units[u].queues->pipes[p]);
    if (!again || !stays(machine)) (void)count_ready(machine, delayed, (uint32_t)(draw(machine) % count), &u, &p);
    machine->last_unit = u;
    machine->last_pipe = p;
    iunit *unit = &machine->group.units[u];
    return execute_first(machine, unit, &unit->queues->pipes[p]);
}
