/* The iGraph's interpreter: memory with shadows, units that take turns, control flow. igraph_interpret_ops.c does the
 * arithmetic. */
#include "ir/kernel/igraph_threads.h"
#include "ir/kernel/interpret/igraph_machine.h"

#include <stdio.h>
#include <string.h>

#define NONE UINT32_MAX

uir_status uir_imachine_fail(imachine *machine, const char *format, ...) {
    char message[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    uir_location location = {.file = machine->igraph->file, .line = machine->line};
    return uir_error(machine->diagnostics, UIR_STATUS_BAD_DATA, &location, "@%s: %s", machine->igraph->name, message);
}

uir_status uir_imachine_evaluate(imachine *machine, const iunit *unit, uir_dim dim, int64_t *out_value) {
    uir_dim_result result =
        uir_dim_evaluate(machine->igraph->dims, dim, unit->values, unit->bound, machine->symbol_count, out_value);
    if (result == UIR_DIM_EVALUATED) return UIR_STATUS_OK;
    return uir_imachine_fail(machine, result == UIR_DIM_UNBOUND ? "an expression uses a name that has no value here"
                                      : result == UIR_DIM_OVERFLOW
                                          ? "an expression overflows"
                                          : "an expression divides by a value that is not positive");
}

/* ---- memory ---- */
static uir_status make_storage(imachine *machine, uir_arena *arena, const iunit *unit, const uir_ipointer *pointer,
                               istorage *out) {
    size_t bytes;
    int64_t total;
    UIR_TRY(uir_imachine_evaluate(machine, unit, pointer->element_span, &out->span));
    if (out->span < 0) out->span = 0;
    out->instances = pointer->instances ? pointer->instances : 1;
    if (__builtin_mul_overflow(out->span, out->instances, &total) ||
        !uir_dtype_storage_size(pointer->dtype, (uint64_t)total, &bytes)) {
        return uir_imachine_fail(machine, "%%%s is too large", pointer->name);
    }
    UIR_TRY_ALLOCATE(out->data, uir_arena_allocate(arena, bytes + 16));
    UIR_TRY_ALLOCATE(out->shadow, uir_arena_allocate_array(arena, (size_t)total + 1, sizeof *out->shadow));
    if (uir_imachine_has_threads(machine))
        UIR_TRY_ALLOCATE(out->meetings, uir_arena_allocate_array(arena, (size_t)total + 1, sizeof *out->meetings));
    out->owned = true;
    return UIR_STATUS_OK;
}

/* The storage a unit means by a pointer. */
static const istorage *imachine_storage(const imachine *machine, const iunit *unit, uint32_t pointer) {
    const uir_ipointer *p = &machine->igraph->pointers.data[pointer];
    if (p->role != UIR_IPOINTER_LOCAL) return &machine->storage[pointer];
    return machine->igraph->machine->spaces[p->space].scope == UIR_SCOPE_UNIT ? &unit->storage[pointer]
                                                                              : &machine->group.storage[pointer];
}

static void poison(const istorage *storage, int64_t first, int64_t instances) {
    if (storage->span)
        memset(storage->shadow + first * storage->span, 0,
               (size_t)storage->span * (size_t)instances * sizeof *storage->shadow);
}

/* ---- slices ---- */
typedef struct index_search {
    const iunit *unit;
    bool outside;
} index_search;

static void find_outside(void *user, uir_symbol symbol) {
    index_search *s = user;
    s->outside |= s->unit->outside[symbol.id];
}

static uir_status bind_dim(imachine *machine, const iunit *unit, const uir_ipointer *p, uint32_t d,
                           uir_bound_layout *out) {
    UIR_TRY(uir_imachine_evaluate(machine, unit, p->extents[d], &out->extents[d]));
    out->mode_count[d] = p->layout.mode_count[d];
    for (uint32_t m = 0; m < p->layout.mode_count[d]; m++) {
        UIR_TRY(uir_imachine_evaluate(machine, unit, p->layout.modes[d][m].size, &out->sizes[d][m]));
        UIR_TRY(uir_imachine_evaluate(machine, unit, p->layout.modes[d][m].stride, &out->strides[d][m]));
        if (m + 1 < p->layout.mode_count[d] && out->sizes[d][m] < 1) out->extents[d] = 0;
    }
    return UIR_STATUS_OK;
}

/* -1 outside the extent. */
static int64_t offset_along(const uir_bound_layout *l, uint32_t d, int64_t index) {
    return index < 0 || index >= l->extents[d] ? -1 : uir_layout_offset_along(l, d, index);
}

static int64_t finish_offset(const uir_bound_layout *l, int64_t offset) {
    return offset < 0 ? -1 : uir_layout_swizzle(l->swizzle, offset);
}

static uir_status view_box(imachine *machine, const iunit *unit, const uir_islice *slice,
                           const uir_bound_layout *layout, bool outside, iview *view, int64_t *offsets) {
    int64_t *along[UIR_IGRAPH_MAX_RANK];
    for (uint32_t d = 0; d < view->rank; d++) {
        int64_t start;
        UIR_TRY(uir_imachine_evaluate(machine, unit, slice->starts[d], &start));
        UIR_TRY_ALLOCATE(along[d],
                         uir_arena_allocate_array(&machine->scratch, (size_t)view->counts[d] + 1, sizeof *along[d]));
        for (int64_t i = 0; i < view->counts[d]; i++) along[d][i] = outside ? -1 : offset_along(layout, d, start + i);
    }
    int64_t index[UIR_IGRAPH_MAX_RANK] = {0};
    for (int64_t e = 0; e < view->total; e++) {
        int64_t offset = 0;
        for (uint32_t d = 0; d < view->rank && offset >= 0; d++)
            offset = along[d][index[d]] < 0 ? -1 : offset + along[d][index[d]];
        offsets[e] = finish_offset(layout, offset);
        for (uint32_t d = view->rank; d-- > 0;) {
            if (++index[d] < view->counts[d]) break;
            index[d] = 0;
        }
    }
    return UIR_STATUS_OK;
}

/* The axes of the window count like digits, the last fastest; the slice's dims are their groups in order. */
static uir_status view_window(imachine *machine, const iunit *unit, const uir_islice *slice,
                              const uir_bound_layout *layout, uint32_t pointer_rank, bool outside, iview *view,
                              int64_t *offsets) {
    int64_t extents[UIR_IGRAPH_MAX_RANK];
    for (uint32_t a = 0; a < slice->axis_count; a++) {
        UIR_TRY(uir_imachine_evaluate(machine, unit, slice->axes[a].extent, &extents[a]));
        unit->values[slice->axes[a].symbol] = 0;
        unit->bound[slice->axes[a].symbol] = true;
    }
    for (int64_t e = 0; e < view->total; e++) {
        int64_t offset = outside ? -1 : 0;
        for (uint32_t d = 0; d < pointer_rank && offset >= 0; d++) {
            int64_t coordinate, along;
            UIR_TRY(uir_imachine_evaluate(machine, unit, slice->starts[d], &coordinate));
            along = offset_along(layout, d, coordinate);
            offset = along < 0 ? -1 : offset + along;
        }
        offsets[e] = finish_offset(layout, offset);
        for (uint32_t a = slice->axis_count; a-- > 0;) {
            int64_t *value = &unit->values[slice->axes[a].symbol];
            if (++*value < extents[a]) break;
            *value = 0;
        }
    }
    for (uint32_t a = 0; a < slice->axis_count; a++) unit->bound[slice->axes[a].symbol] = false;
    return UIR_STATUS_OK;
}

uir_status uir_imachine_view(imachine *machine, const iunit *unit, const uir_islice *slice, iview *view) {
    const uir_ipointer *p = &machine->igraph->pointers.data[slice->pointer];
    const istorage *storage = imachine_storage(machine, unit, slice->pointer);
    int64_t instance = 0;
    if (p->by_loop != NONE) {
        if (!unit->bound[p->by_loop])
            return uir_imachine_fail(machine, "%%%s belongs to loop %s, which is not running here", p->name,
                                     machine->igraph->symbols.data[p->by_loop].name);
        instance = unit->values[p->by_loop] % storage->instances;
    }
    *view = (iview){.storage = storage,
                    .dtype = p->dtype,
                    .pointer = slice->pointer,
                    .rank = slice->rank,
                    .total = 1,
                    .has_fill = slice->has_fill,
                    .fill = slice->fill,
                    .block = slice->block};
    view->turn = p->by_loop != NONE ? unit->turns[p->by_loop] : 0;
    view->shadow = storage->shadow + instance * storage->span;
    view->meetings = storage->meetings ? storage->meetings + instance * storage->span : NULL;
    view->data = storage->data + instance * storage->span * (int64_t)(uir_dtype_bits(p->dtype) / 8);
    if (uir_dtype_bits(p->dtype) < 8 && instance)
        return uir_imachine_fail(machine, "%%%s: packed dtypes have one instance", p->name);
    for (uint32_t d = 0; d < slice->rank; d++) {
        UIR_TRY(uir_imachine_evaluate(machine, unit, slice->counts[d], &view->counts[d]));
        if (view->counts[d] < 0) view->counts[d] = 0;
        if (__builtin_mul_overflow(view->total, view->counts[d], &view->total))
            return uir_imachine_fail(machine, "a slice of %%%s is too large", p->name);
    }
    uir_bound_layout layout = {.swizzle = p->layout.swizzle};
    index_search search = {unit, false};
    for (uint32_t d = 0; d < p->rank; d++) {
        UIR_TRY(bind_dim(machine, unit, p, d, &layout));
        uir_dim_visit_symbols(machine->igraph->dims, slice->starts[d], find_outside, &search);
    }
    int64_t *offsets;
    UIR_TRY_ALLOCATE(offsets, uir_arena_allocate_array(&machine->scratch, (size_t)view->total + 1, sizeof *offsets));
    view->offsets = offsets;
    if (view->total == 0) return UIR_STATUS_OK;
    if (slice->window) return view_window(machine, unit, slice, &layout, p->rank, search.outside, view, offsets);
    return view_box(machine, unit, slice, &layout, search.outside, view, offsets);
}

/* Whether the access lies in a unit's past without a barrier between, and was another unit's. */
static bool is_race(const imachine *machine, const iunit *unit, itouch touch) {
    uint32_t of_group = machine->group.unit_count;
    if (!touch.unit || touch.unit == unit->number || touch.phase != machine->phase) return false;
    return (touch.unit - 1) / of_group != (unit->number - 1) / of_group || touch.epoch == machine->group.epoch;
}

static itouch touch_now(const imachine *machine, const iunit *unit) {
    return (itouch){unit->number, machine->group.epoch, machine->phase, unit->sequence};
}

/* Was the element touched by an instruction of the unit that stands behind this one in its program? */
static bool is_behind(const imachine *machine, const iunit *unit, itouch touch) {
    return touch.unit == unit->number && touch.phase == machine->phase && touch.sequence > unit->sequence;
}

static uir_status tell_order(imachine *machine, const char *format, const uir_ipointer *p) {
    if (machine->interleaving->elements_alone) return UIR_STATUS_OK;
    return uir_imachine_fail(machine, format, p->name);
}

/* A pointer of the unit's own is touched: does another one lie in its place by now? */
static uir_status touch_place(imachine *machine, const iunit *unit, uint32_t pointer) {
    const uir_ipointer *p = &machine->igraph->pointers.data[pointer];
    if (!unit->sequence || p->role != UIR_IPOINTER_LOCAL ||
        machine->igraph->machine->spaces[p->space].scope != UIR_SCOPE_UNIT)
        return UIR_STATUS_OK;
    const istorage *place = &unit->storage[uir_igraph_place(machine->igraph, pointer)];
    istorage *storage = &unit->storage[pointer];
    if (storage->latest < unit->sequence) storage->latest = unit->sequence;
    if (!place->holder || place->holder == pointer + 1 || place->taken <= unit->sequence) return UIR_STATUS_OK;
    return tell_order(machine, "%%%s: an element is accessed after a later instruction has reused its storage", p);
}

uir_status uir_imachine_load(imachine *machine, const iunit *unit, const iview *view, int64_t offset, icell *out) {
    const uir_ipointer *p = &machine->igraph->pointers.data[view->pointer];
    *out = (icell){0};
    bool is_float = uir_dtype_is_float(view->dtype);
    if (offset < 0) {
        out->defined = view->has_fill;
        out->real = view->fill;
        if (!is_float) out->integer = (int64_t)view->fill;
        return UIR_STATUS_OK;
    }
    if (offset >= view->storage->span)
        return uir_imachine_fail(machine, "%%%s: an element is outside its storage", p->name);
    ishadow *shadow = &view->shadow[offset];
    if (is_race(machine, unit, shadow->writer)) {
        return uir_imachine_fail(machine, "%%%s: a unit reads what another unit wrote with no sync between", p->name);
    }
    UIR_TRY(touch_place(machine, unit, view->pointer));
    if (is_behind(machine, unit, shadow->writer))
        UIR_TRY(tell_order(machine, "%%%s: an element is read after a later instruction has overwritten it", p));
    if (!is_behind(machine, unit, shadow->reader)) shadow->reader = touch_now(machine, unit);
    bool alone;
    UIR_TRY(uir_imachine_touch(machine, unit, view, offset, false, &alone));
    out->defined = shadow->defined && shadow->turn == view->turn && alone;
    if (is_float)
        out->real = uir_dtype_load_double(view->dtype, view->data, (uint64_t)offset);
    else
        out->integer = uir_dtype_load_integer(view->dtype, view->data, (uint64_t)offset);
    return UIR_STATUS_OK;
}

/* A pointer that is written has its place to itself: what the one before it held there is undefined from now on, and no
 * other unit may still be at it. */
static uir_status take_place(imachine *machine, const iunit *unit, uint32_t pointer) {
    const uir_igraph *g = machine->igraph;
    const uir_ipointer *p = &g->pointers.data[pointer];
    bool of_unit = g->machine->spaces[p->space].scope == UIR_SCOPE_UNIT;
    istorage *storage = of_unit ? unit->storage : machine->group.storage,
             *place = &storage[uir_igraph_place(g, pointer)];
    uint32_t before = place->holder;
    if (before == pointer + 1) return UIR_STATUS_OK;
    place->holder = pointer + 1;
    place->taken = unit->sequence;
    if (!before) return UIR_STATUS_OK;
    const istorage *lost = &storage[before - 1];
    if (of_unit && lost->latest > unit->sequence)
        UIR_TRY(tell_order(machine, "%%%s: its storage held a buffer that a later instruction has already used", p));
    for (int64_t e = 0; e < lost->span * lost->instances; e++)
        if (is_race(machine, unit, lost->shadow[e].writer) || is_race(machine, unit, lost->shadow[e].reader))
            return uir_imachine_fail(machine, "%%%s: a unit writes where another unit uses %%%s with no sync between",
                                     p->name, g->pointers.data[before - 1].name);
    poison(lost, 0, lost->instances);
    return UIR_STATUS_OK;
}

uir_status uir_imachine_store(imachine *machine, const iunit *unit, const iview *view, int64_t offset, icell cell) {
    const uir_ipointer *p = &machine->igraph->pointers.data[view->pointer];
    if (offset < 0) return UIR_STATUS_OK;
    UIR_TRY(touch_place(machine, unit, view->pointer));
    if (p->role == UIR_IPOINTER_LOCAL) UIR_TRY(take_place(machine, unit, view->pointer));
    if (p->role == UIR_IPOINTER_IN || p->role == UIR_IPOINTER_CONST)
        return uir_imachine_fail(machine, "%%%s is an input: it may not be written", p->name);
    if (offset >= view->storage->span)
        return uir_imachine_fail(machine, "%%%s: an element is outside its storage", p->name);
    bool alone;
    UIR_TRY(uir_imachine_touch(machine, unit, view, offset, true, &alone));
    cell.defined = cell.defined && alone;
    if (!cell.defined && p->role == UIR_IPOINTER_OUT)
        return uir_imachine_fail(machine, "an undefined value is stored to the output %%%s", p->name);
    ishadow *shadow = &view->shadow[offset];
    if (is_race(machine, unit, shadow->writer)) {
        return uir_imachine_fail(machine, "two units write one element of %%%s in one phase", p->name);
    }
    if (is_race(machine, unit, shadow->reader)) {
        return uir_imachine_fail(machine, "%%%s: a unit writes what another unit read with no sync between", p->name);
    }
    if (is_behind(machine, unit, shadow->writer))
        UIR_TRY(tell_order(machine, "%%%s: an element is written after a later instruction has written it", p));
    if (is_behind(machine, unit, shadow->reader))
        UIR_TRY(tell_order(machine, "%%%s: an element is written after a later instruction has read it", p));
    shadow->defined = cell.defined;
    shadow->turn = view->turn;
    shadow->writer = touch_now(machine, unit);
    if (uir_dtype_is_float(view->dtype))
        uir_dtype_store_double(view->dtype, view->data, (uint64_t)offset, cell.real, UIR_ROUND_NEAREST_EVEN);
    else
        uir_dtype_store_integer(view->dtype, view->data, (uint64_t)offset, cell.integer, false, UIR_ROUND_NEAREST_EVEN);
    return UIR_STATUS_OK;
}

/* ---- conditions and control ---- */
static uir_status holds(imachine *machine, const iunit *unit, const uir_iguard *guard, bool *out_holds) {
    *out_holds = true;
    for (uint32_t i = 0; i < guard->count && *out_holds; i++) {
        const uir_iatom *atom = &guard->atoms[i];
        if (atom->kind == UIR_IATOM_RELATION) {
            int64_t left, right;
            UIR_TRY(uir_imachine_evaluate(machine, unit, atom->condition.left, &left));
            UIR_TRY(uir_imachine_evaluate(machine, unit, atom->condition.right, &right));
            *out_holds = uir_relation_holds(atom->condition.relation, left, right);
            continue;
        }
        if (!unit->bound[atom->loop])
            return uir_imachine_fail(machine, "first() or last() of a loop that is not running");
        int64_t end = atom->kind == UIR_IATOM_FIRST ? 0 : unit->trips[atom->loop] - 1;
        *out_holds = (unit->values[atom->loop] == end) != atom->negated;
    }
    return UIR_STATUS_OK;
}

static uint32_t deepest(const uir_igraph *igraph) {
    return igraph->items.count + 2;
}

/* Moves a LOOP frame to its next iteration whose `when` holds; pops it when there is none. */
static uir_status next_iteration(imachine *machine, iunit *unit) {
    iframe *frame = &unit->frames[unit->depth - 1];
    const uir_iitem *item = &machine->igraph->items.data[frame->item];
    unit->moved = true;
    if (unit->queues && frame->index >= 0) uir_imachine_end_turn(machine, unit, frame->item, frame->index);
    while (++frame->index < frame->trips) {
        bool runs;
        unit->values[item->symbol] = frame->index;
        machine->line = item->line;
        UIR_TRY(holds(machine, unit, &item->guard, &runs));
        if (!runs) continue;
        unit->turns[item->symbol]++; /* with fresh instances of the buffers that belong to it */
        frame->next = item->first_child;
        return UIR_STATUS_OK;
    }
    unit->bound[item->symbol] = false;
    unit->depth--;
    return UIR_STATUS_OK;
}

static uir_status enter_loop(imachine *machine, iunit *unit, uint32_t id) {
    const uir_iitem *item = &machine->igraph->items.data[id];
    int64_t trips;
    UIR_TRY(uir_imachine_evaluate(machine, unit, item->extent, &trips));
    if (trips < 0) trips = 0;
    if (item->named_ends && trips < 1) trips = 1;
    unit->bound[item->symbol] = true;
    unit->trips[item->symbol] = trips;
    unit->frames[unit->depth++] = (iframe){id, -1, trips, NONE};
    return next_iteration(machine, unit);
}

static uir_status read_index(imachine *machine, iunit *unit, const uir_iitem *item) {
    iview view;
    icell cell;
    int64_t limit, value;
    UIR_TRY(uir_imachine_view(machine, unit, &item->index.slice, &view));
    UIR_TRY(uir_imachine_evaluate(machine, unit, item->index.limit, &limit));
    unit->moved = true;
    if (unit->queues) unit->sequence++;
    machine->thread = uir_imachine_has_threads(machine) ? UIR_ITHREAD_ALL : 0;
    if (view.total != 1) return uir_imachine_fail(machine, "index reads %lld elements, not one", (long long)view.total);
    UIR_TRY(uir_imachine_load(machine, unit, &view, view.offsets[0], &cell));
    if (!cell.defined)
        return uir_imachine_fail(machine, "index %s reads an undefined element",
                                 machine->igraph->symbols.data[item->symbol].name);
    value = cell.integer;
    unit->outside[item->symbol] = limit <= 0;
    if (limit > 0 && (value < 0 || value >= limit)) {
        switch (item->index.mode) {
        case UIR_INDEX_CLAMP:
            value = value < 0 ? 0 : limit - 1;
            break;
        case UIR_INDEX_WRAP:
            value = (value % limit + limit) % limit;
            break;
        case UIR_INDEX_SKIP:
            unit->outside[item->symbol] = true;
            break;
        }
    }
    unit->values[item->symbol] = unit->outside[item->symbol] ? 0 : value;
    unit->bound[item->symbol] = true;
    return UIR_STATUS_OK;
}

static void end_run(imachine *machine, iunit *unit, const uir_iitem *item) {
    for (uint32_t i = 0; i < item->dead_count; i++) {
        const istorage *storage = imachine_storage(machine, unit, item->dead[i]);
        uint32_t loop = machine->igraph->pointers.data[item->dead[i]].by_loop;
        poison(storage, loop == NONE ? 0 : unit->values[loop] % storage->instances, 1);
    }
}

/* Whether a unit must wait at this instruction for others; taking the signal when it need not. */
static bool must_wait(imachine *machine, iunit *unit, const uir_iinstruction *instruction) {
    bool collective = instruction->code == UIR_IOP_SYNC ? instruction->sync_kind == UIR_SYNC_GROUP
                                                        : instruction->scope == UIR_SCOPE_GROUP;
    if (collective) return machine->group.unit_count > 1;
    if (instruction->code != UIR_IOP_SYNC || instruction->sync_kind != UIR_SYNC_KINDS) return false;
    if (unit->kind == instruction->sync_from) {
        machine->group.raised[instruction->sync_from][instruction->sync_to]++;
        machine->group.epoch++;
        return false;
    }
    if (unit->kind != instruction->sync_to) return false;
    uint32_t senders = 0;
    for (uint32_t i = 0; i < machine->group.unit_count; i++)
        senders += machine->group.units[i].kind == instruction->sync_from;
    uint32_t needed = (unit->signals[instruction->sync_from] + 1) * (senders ? senders : 1);
    if (machine->group.raised[instruction->sync_from][instruction->sync_to] < needed) return true;
    unit->signals[instruction->sync_from]++;
    return false;
}

static uir_status run_item(imachine *machine, iunit *unit, uint32_t id) {
    const uir_iitem *item = &machine->igraph->items.data[id];
    bool runs = true;
    machine->line = item->line;
    uir_arena_reset(&machine->scratch);
    if (item->kind != UIR_IITEM_LOOP) UIR_TRY(holds(machine, unit, &item->guard, &runs));
    if (!runs) return UIR_STATUS_OK;
    switch (item->kind) {
    case UIR_IITEM_LOOP:
        return enter_loop(machine, unit, id);
    case UIR_IITEM_IF:
    case UIR_IITEM_RUN:
        unit->frames[unit->depth++] = (iframe){id, 0, 1, item->first_child};
        return UIR_STATUS_OK;
    case UIR_IITEM_LET: {
        int64_t value;
        UIR_TRY(uir_imachine_evaluate(machine, unit, machine->igraph->symbols.data[item->symbol].definition, &value));
        unit->values[item->symbol] = value;
        unit->bound[item->symbol] = unit->moved = true;
        return UIR_STATUS_OK;
    }
    case UIR_IITEM_INDEX:
        if (unit->queues && uir_imachine_hold_index(machine, unit, id)) return UIR_STATUS_OK;
        return read_index(machine, unit, item);
    case UIR_IITEM_INSTRUCTION:
        break;
    }
    const uir_iinstruction *instruction = &machine->igraph->instructions.data[item->instruction];
    bool given = false;
    if (unit->queues) UIR_TRY(uir_imachine_give(machine, unit, id, &given));
    if (given) return UIR_STATUS_OK;
    if (must_wait(machine, unit, instruction)) {
        unit->waiting = item->instruction;
        return UIR_STATUS_OK;
    }
    if (instruction->code != UIR_IOP_SYNC) {
        UIR_TRY(uir_imachine_execute(machine, unit, instruction));
        unit->meets += uir_ithreads_meet(machine->igraph, instruction);
        return UIR_STATUS_OK;
    }
    unit->meets += instruction->sync_kind == UIR_SYNC_UNIT || instruction->sync_kind == UIR_SYNC_GROUP;
    if (instruction->sync_kind == UIR_SYNC_DEVICE)
        return uir_imachine_fail(machine, "sync.device: only the end of a phase is a barrier of the whole device");
    return UIR_STATUS_OK;
}

/* Runs a unit until it waits or has ended; where its pipes run apart, that is until they have their instructions. */
static uir_status run_unit(imachine *machine, iunit *unit) {
    while (unit->depth > 0 && unit->waiting == NONE && !unit->draining) {
        if (machine->cancel && __atomic_load_n(machine->cancel, __ATOMIC_RELAXED)) return UIR_STATUS_CANCELLED;
        iframe *frame = &unit->frames[unit->depth - 1];
        if (frame->next != NONE) {
            uint32_t id = frame->next;
            frame->next = machine->igraph->items.data[id].next;
            UIR_TRY(run_item(machine, unit, id));
            continue;
        }
        const uir_iitem *item = frame->item == NONE ? NULL : &machine->igraph->items.data[frame->item];
        if (item && item->kind == UIR_IITEM_LOOP) {
            UIR_TRY(next_iteration(machine, unit));
            continue;
        }
        if (item && item->kind == UIR_IITEM_RUN && !unit->queues) end_run(machine, unit, item);
        unit->depth--;
    }
    unit->ended = unit->depth == 0;
    return UIR_STATUS_OK;
}

/* All units stand at one collective instruction: does it and lets them go on. */
static uir_status meet(imachine *machine) {
    igroup *group = &machine->group;
    uint32_t at = group->units[0].waiting;
    for (uint32_t i = 0; i < group->unit_count; i++) {
        if (group->units[i].ended || group->units[i].waiting != at)
            return uir_imachine_fail(machine, "the units of a group wait at different instructions: deadlock");
    }
    const uir_iinstruction *instruction = &machine->igraph->instructions.data[at];
    group->epoch++;
    uir_arena_reset(&machine->scratch);
    machine->thread = 0;
    if (instruction->code != UIR_IOP_SYNC) UIR_TRY(uir_imachine_execute_group(machine, instruction));
    group->epoch++;
    for (uint32_t i = 0; i < group->unit_count; i++) {
        group->units[i].waiting = NONE;
        group->units[i].meets++;
    }
    return UIR_STATUS_OK;
}

static uir_status run_group(imachine *machine) {
    igroup *group = &machine->group;
    for (;;) {
        bool progress = false, all_ended = true, all_wait = true, any_signal = false;
        for (uint32_t i = 0; i < group->unit_count; i++) {
            iunit *unit = &group->units[i];
            unit->draining = unit->draining && uir_imachine_is_held(unit);
            if (unit->draining || (unit->ended && unit->queued)) {
                all_ended = all_wait = false;
                continue;
            }
            if (!unit->ended && unit->waiting == NONE) {
                UIR_TRY(run_unit(machine, unit));
                progress = true;
            } else if (!unit->ended) {
                const uir_iinstruction *at = &machine->igraph->instructions.data[unit->waiting];
                bool signal = at->code == UIR_IOP_SYNC && at->sync_kind == UIR_SYNC_KINDS;
                if (signal && !must_wait(machine, unit, at)) {
                    unit->waiting = NONE;
                    progress = true;
                }
                any_signal |= signal;
            }
            all_ended &= unit->ended && !unit->queued;
            all_wait &= !unit->ended && unit->waiting != NONE;
        }
        if (machine->interleaving && !progress) UIR_TRY(uir_imachine_step(machine, &progress));
        if (all_ended) return UIR_STATUS_OK;
        if (progress) continue;
        if (!all_wait || any_signal)
            return uir_imachine_fail(machine, "units wait for signals that are never sent: deadlock");
        UIR_TRY(meet(machine));
    }
}

/* ---- phases ---- */
static uir_status start_unit(imachine *machine, uir_arena *arena, const int64_t *values, const bool *bound,
                             uint32_t number, iunit *out) {
    uint32_t n = machine->symbol_count;
    const uir_igraph *igraph = machine->igraph;
    *out = (iunit){.number = number, .waiting = NONE};
    UIR_TRY_ALLOCATE(out->values, uir_arena_copy(arena, values, (n + 1) * sizeof *values));
    UIR_TRY_ALLOCATE(out->bound, uir_arena_copy(arena, bound, (n + 1) * sizeof *bound));
    UIR_TRY_ALLOCATE(out->outside, uir_arena_allocate_array(arena, n + 1, sizeof *out->outside));
    UIR_TRY_ALLOCATE(out->trips, uir_arena_allocate_array(arena, n + 1, sizeof *out->trips));
    UIR_TRY_ALLOCATE(out->storage, uir_arena_allocate_array(arena, igraph->pointers.count + 1, sizeof *out->storage));
    UIR_TRY_ALLOCATE(out->frames, uir_arena_allocate_array(arena, deepest(igraph), sizeof *out->frames));
    UIR_TRY_ALLOCATE(out->turns, uir_arena_allocate_array(arena, n + 1, sizeof *out->turns));
    UIR_TRY_ALLOCATE(out->signals, uir_arena_allocate_array(arena, UIR_MACHINE_MAX_UNIT_KINDS, sizeof *out->signals));
    return UIR_STATUS_OK;
}

static uir_status make_locals(imachine *machine, uir_arena *arena, const iunit *unit, bool unit_scope,
                              istorage *storage) {
    for (uint32_t i = 0; i < machine->igraph->pointers.count; i++) {
        const uir_ipointer *p = &machine->igraph->pointers.data[i];
        bool of_unit = machine->igraph->machine->spaces[p->space].scope == UIR_SCOPE_UNIT;
        if (p->role == UIR_IPOINTER_LOCAL && of_unit == unit_scope)
            UIR_TRY(make_storage(machine, arena, unit, p, &storage[i]));
    }
    return UIR_STATUS_OK;
}

/* Values of the parallel axes of one scope from a flat index, row-major. */
static void set_axes(const uir_iphase *phase, const int64_t *extents, bool group_axes, int64_t flat, iunit *unit) {
    bool any_group = false;
    for (uint32_t a = 0; a < phase->parallel_count; a++) any_group |= phase->parallel[a].scope == UIR_SCOPE_GROUP;
    for (uint32_t a = phase->parallel_count; a-- > 0;) {
        bool is_group = phase->parallel[a].scope == UIR_SCOPE_GROUP || !any_group;
        if (is_group != group_axes) continue;
        unit->values[phase->parallel[a].symbol] = flat % extents[a];
        unit->bound[phase->parallel[a].symbol] = true;
        flat /= extents[a];
    }
}

/* The group with this flat index: its units of every body, started and run. */
static uir_status run_parallel_index(imachine *machine, const uir_iphase *phase, const int64_t *extents, int64_t flat,
                                     int64_t units, const int64_t *values, const bool *bound) {
    uir_arena arena;
    uir_status status = UIR_STATUS_OK;
    uint32_t total = 0;
    igroup *group = &machine->group;
    uir_arena_init(&arena, &machine->igraph->allocator);
    for (uint32_t b = 0; b < phase->body_count; b++)
        total += (uint32_t)units * (phase->bodies[b].unit_symbol == NONE ? 1 : phase->bodies[b].unit_count);
    *group = (igroup){.unit_count = total};
    group->units = uir_arena_allocate_array(&arena, total + 1, sizeof *group->units);
    group->storage = uir_arena_allocate_array(&arena, machine->igraph->pointers.count + 1, sizeof *group->storage);
    if (!group->units || !group->storage) status = UIR_STATUS_OUT_OF_MEMORY;
    uint32_t k = 0;
    for (uint32_t b = 0; b < phase->body_count && status == UIR_STATUS_OK; b++) {
        const uir_ibody *body = &phase->bodies[b];
        int64_t copies = units * (body->unit_symbol == NONE ? 1 : body->unit_count);
        for (int64_t u = 0; u < copies && status == UIR_STATUS_OK; u++, k++) {
            iunit *unit = &group->units[k];
            status = start_unit(machine, &arena, values, bound, (uint32_t)(flat * total + k + 1), unit);
            if (status != UIR_STATUS_OK) break;
            unit->kind = body->unit_kind;
            set_axes(phase, extents, true, flat, unit);
            set_axes(phase, extents, false, u % units, unit);
            if (body->unit_symbol != NONE) {
                unit->values[body->unit_symbol] = u / units;
                unit->bound[body->unit_symbol] = true;
            }
            unit->frames[unit->depth++] = (iframe){NONE, 0, 1, body->first_item};
            if (machine->interleaving) status = uir_imachine_open_queues(machine, &arena, body->first_item, unit);
            if (status == UIR_STATUS_OK) status = make_locals(machine, &arena, unit, true, unit->storage);
        }
    }
    if (status == UIR_STATUS_OK && total)
        status = make_locals(machine, &arena, &group->units[0], false, group->storage);
    if (status == UIR_STATUS_OK) status = run_group(machine);
    uir_arena_deinit(&arena);
    group->units = NULL;
    group->storage = NULL;
    return status;
}

static uir_status run_phase(imachine *machine, const uir_iphase *phase, int64_t *values, bool *bound) {
    iunit outer = {.values = values, .bound = bound};
    int64_t extents[4], groups = 1, units = 1;
    bool any_group = false;
    for (uint32_t a = 0; a < phase->parallel_count; a++) any_group |= phase->parallel[a].scope == UIR_SCOPE_GROUP;
    for (uint32_t a = 0; a < phase->parallel_count; a++) {
        UIR_TRY(uir_imachine_evaluate(machine, &outer, phase->parallel[a].extent, &extents[a]));
        if (extents[a] < 0) extents[a] = 0;
        bool is_group = phase->parallel[a].scope == UIR_SCOPE_GROUP || !any_group;
        if (__builtin_mul_overflow(is_group ? groups : units, extents[a], is_group ? &groups : &units))
            return uir_imachine_fail(machine, "too many parallel indices");
    }
    if (units > 4096) return uir_imachine_fail(machine, "%lld units in one group", (long long)units);
    for (int64_t flat = 0; flat < groups && units > 0; flat++) {
        UIR_TRY(run_parallel_index(machine, phase, extents, flat, units, values, bound));
    }
    return UIR_STATUS_OK;
}

static uir_status check_outputs(imachine *machine, const int64_t *values, const bool *bound) {
    iunit outer = {.values = (int64_t *)(uintptr_t)values, .bound = (bool *)(uintptr_t)bound};
    UIR_TRY_ALLOCATE(outer.outside,
                     uir_arena_allocate_array(&machine->arena, machine->symbol_count + 1, sizeof *outer.outside));
    for (uint32_t i = 0; i < machine->igraph->pointers.count; i++) {
        const uir_ipointer *p = &machine->igraph->pointers.data[i];
        if (p->role != UIR_IPOINTER_OUT) continue;
        machine->line = machine->thread = 0;
        uir_islice slice;
        iview view;
        uir_arena_reset(&machine->scratch);
        uir_igraph_whole_slice(machine->igraph, i, &slice);
        UIR_TRY(uir_imachine_view(machine, &outer, &slice, &view));
        for (int64_t e = 0; e < view.total; e++) {
            if (!view.shadow[view.offsets[e]].defined)
                return uir_imachine_fail(machine, "element %lld of the output %%%s was never written", (long long)e,
                                         p->name);
        }
    }
    return UIR_STATUS_OK;
}

static uir_status bind_pointers(imachine *machine, const uir_kernel_arguments *arguments, const iunit *outer) {
    uint32_t argument = 0;
    for (uint32_t i = 0; i < machine->igraph->pointers.count; i++) {
        const uir_ipointer *p = &machine->igraph->pointers.data[i];
        istorage *storage = &machine->storage[i];
        if (p->role == UIR_IPOINTER_LOCAL) continue;
        UIR_TRY(uir_imachine_evaluate(machine, outer, p->element_span, &storage->span));
        if (storage->span < 0) storage->span = 0;
        storage->instances = 1;
        if (uir_imachine_has_threads(machine))
            UIR_TRY_ALLOCATE(storage->meetings, uir_arena_allocate_array(&machine->arena, (size_t)storage->span + 1,
                                                                         sizeof *storage->meetings));
        storage->data = arguments->pointers[argument++];
        UIR_TRY_ALLOCATE(storage->shadow,
                         uir_arena_allocate_array(&machine->arena, (size_t)storage->span + 1, sizeof *storage->shadow));
        bool defined = p->role == UIR_IPOINTER_IN || p->role == UIR_IPOINTER_CONST || p->tied != UINT32_MAX;
        for (int64_t e = 0; defined && e < storage->span; e++) storage->shadow[e].defined = true;
    }
    return UIR_STATUS_OK;
}

static uir_status run_kernel(imachine *machine, const uir_kernel_arguments *arguments) {
    uint32_t n = machine->symbol_count = uir_dims_symbol_count(machine->igraph->dims);
    int64_t *values;
    bool *bound;
    UIR_TRY_ALLOCATE(values, uir_arena_allocate_array(&machine->arena, n + 1, sizeof *values));
    UIR_TRY_ALLOCATE(bound, uir_arena_allocate_array(&machine->arena, n + 1, sizeof *bound));
    UIR_TRY_ALLOCATE(machine->storage, uir_arena_allocate_array(&machine->arena, machine->igraph->pointers.count + 1,
                                                                sizeof *machine->storage));
    UIR_TRY(uir_igraph_bind(machine->igraph, arguments->dim_values, arguments->tile_values, values, bound,
                            machine->diagnostics));
    iunit outer = {.values = values, .bound = bound};
    UIR_TRY(bind_pointers(machine, arguments, &outer));
    for (machine->phase = 0; machine->phase < machine->igraph->phases.count; machine->phase++) {
        UIR_TRY(run_phase(machine, &machine->igraph->phases.data[machine->phase], values, bound));
    }
    return check_outputs(machine, values, bound);
}

uir_status uir_igraph_interpret_interleaved(const uir_igraph *igraph, const uir_kernel_arguments *arguments,
                                            const uir_interleaving *interleaving, const volatile bool *cancel,
                                            uir_diagnostics *diagnostics) {
    imachine machine = {.igraph = igraph, .diagnostics = diagnostics, .cancel = cancel, .interleaving = interleaving};
    if (interleaving) machine.random = interleaving->seed * 2654435761u + 88172645463325252u;
    uir_arena_init(&machine.arena, &igraph->allocator);
    uir_arena_init(&machine.scratch, &igraph->allocator);
    uir_status status = run_kernel(&machine, arguments);
    uir_arena_deinit(&machine.scratch);
    uir_arena_deinit(&machine.arena);
    return status;
}

uir_status uir_igraph_interpret(const uir_igraph *igraph, const uir_kernel_arguments *arguments,
                                const volatile bool *cancel, uir_diagnostics *diagnostics) {
    return uir_igraph_interpret_interleaved(igraph, arguments, NULL, cancel, diagnostics);
}
