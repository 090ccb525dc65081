/* Walks a kernel as its units would, and counts. */
#include "ir/kernel/igraph_estimate.h"

#include "ir/kernel/igraph_threads.h"

#include <string.h>

#define NONE UINT32_MAX

enum { MOST_DISTANCE = 8 }; /* of a wait, in iterations; farther ones are taken for this */

/* When the pipe that a wait is for had done what it was given, at the wait's latest executions. */
typedef struct wait_times {
    double ready[MOST_DISTANCE];
    uint32_t executed;
} wait_times;

typedef struct walk {
    const uir_igraph *igraph;
    uir_diagnostics *diagnostics;
    const volatile bool *cancel;
    uir_estimate *out;
    int64_t *values, *trips; /* per symbol */
    bool *bound;
    uint32_t symbol_count;
    wait_times *waits;                        /* per instruction */
    double free_at[UIR_MACHINE_MAX_PIPES];    /* of the unit at work: when its pipe has done what it was given */
    double not_before[UIR_MACHINE_MAX_PIPES]; /* and may begin with what it is given next */
} walk;

static uir_status evaluate(walk *w, uir_dim dim, int64_t *out_value) {
    uir_dim_result result = uir_dim_evaluate(w->igraph->dims, dim, w->values, w->bound, w->symbol_count, out_value);
    if (result == UIR_DIM_EVALUATED) return UIR_STATUS_OK;
    return uir_error(w->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                     "kernel @%s: an expression has no value at these sizes", w->igraph->name);
}

static uir_status holds(walk *w, const uir_iguard *guard, bool *out_holds) {
    *out_holds = true;
    for (uint32_t i = 0; i < guard->count && *out_holds; i++) {
        const uir_iatom *atom = &guard->atoms[i];
        if (atom->kind == UIR_IATOM_RELATION) {
            int64_t left, right;
            UIR_TRY(evaluate(w, atom->condition.left, &left));
            UIR_TRY(evaluate(w, atom->condition.right, &right));
            *out_holds = uir_relation_holds(atom->condition.relation, left, right);
        } else {
            int64_t end = atom->kind == UIR_IATOM_FIRST ? 0 : w->trips[atom->loop] - 1;
            *out_holds = (w->values[atom->loop] == end) != atom->negated;
        }
    }
    return UIR_STATUS_OK;
}

/* ---- one instruction ---- */
/* Elements of the slice that lie in its tensor. */
static uir_status count_elements(walk *w, const uir_islice *slice, uint64_t *out_count) {
    const uir_ipointer *p = &w->igraph->pointers.data[slice->pointer];
    *out_count = 1;
    for (uint32_t d = 0; d < slice->rank; d++) {
        int64_t count, start, extent;
        UIR_TRY(evaluate(w, slice->counts[d], &count));
        if (!slice->window) {
            UIR_TRY(evaluate(w, slice->starts[d], &start));
            UIR_TRY(evaluate(w, p->extents[d], &extent));
            if (start < 0) count += start, start = 0;
            if (count > extent - start) count = extent - start;
        }
        *out_count *= count > 0 ? (uint64_t)count : 0;
    }
    return UIR_STATUS_OK;
}

static uir_status count_bytes(walk *w, const uir_islice *slice, uint64_t *out_bytes) {
    uint64_t elements;
    UIR_TRY(count_elements(w, slice, &elements));
    *out_bytes = (elements * uir_dtype_bits(w->igraph->pointers.data[slice->pointer].dtype) + 7) / 8;
    return UIR_STATUS_OK;
}

static uint32_t space_of(const walk *w, const uir_islice *slice) {
    return w->igraph->pointers.data[slice->pointer].space;
}

static bool is_repeated(const uir_iinstruction *in, uint32_t operand) {
    for (uint32_t i = 1; i < operand; i++)
        if (in->slices[i].pointer == in->slices[operand].pointer && !in->slices[i].window &&
            !in->slices[operand].window &&
            !memcmp(in->slices[i].starts, in->slices[operand].starts, sizeof in->slices[i].starts) &&
            !memcmp(in->slices[i].counts, in->slices[operand].counts, sizeof in->slices[i].counts))
            return true;
    return false;
}

/* Bytes of every operand go to the spaces' accounts. */
static uir_status count_operands(walk *w, const uir_iinstruction *in, const uir_iop_row *row, uint64_t *out_longest) {
    bool reads_result = in->accumulate || row->family == UIR_IOP_FAMILY_MMA;
    uint64_t bytes = 0;
    *out_longest = 0;
    for (uint32_t i = 0; i < in->slice_count; i++) {
        bool is_carry = row->family == UIR_IOP_FAMILY_SCAN && i == 2, is_result = i < row->results;
        if (is_repeated(in, i)) continue;
        UIR_TRY(count_bytes(w, &in->slices[i], &bytes));
        if (is_result || is_carry) w->out->written[space_of(w, &in->slices[i])] += bytes;
        if (!is_result || reads_result) w->out->read[space_of(w, &in->slices[i])] += bytes;
        if (bytes > *out_longest) *out_longest = bytes;
    }
    return UIR_STATUS_OK;
}

/* Bytes that a move takes out of the device's memory or puts there: of each row whole multiples of its alignment. */
static uir_status count_granules(walk *w, const uir_iinstruction *in, uint32_t from, uint32_t to, uint64_t *bytes) {
    const uir_space *spaces = w->igraph->machine->spaces,
                    *end = &spaces[spaces[from].roles & UIR_SPACE_MEMORY ? from : to];
    const uir_islice *rows = &in->slices[0];
    int64_t length = 0;
    if (!(end->roles & UIR_SPACE_MEMORY) || end->alignment < 2 || !rows->rank) return UIR_STATUS_OK;
    UIR_TRY(evaluate(w, rows->counts[rows->rank - 1], &length));
    uint64_t row = length > 0 ? (uint64_t)length * uir_dtype_bits(in->dtype) / 8 : 0;
    if (row) *bytes = *bytes / row * ((row + end->alignment - 1) / end->alignment * end->alignment);
    return UIR_STATUS_OK;
}

static int64_t count_blocks(int64_t extent, uint32_t block) {
    return block ? (extent + block - 1) / block : extent;
}

/* Of mma: its blocks of rows by columns by depth. */
static uir_status count_mma_blocks(walk *w, const uir_iinstruction *in, double *out_blocks) {
    const uir_machine *d = w->igraph->machine;
    const uir_islice *a = &in->slices[1], *b = &in->slices[2];
    int64_t m = 1, n = 1, k = 1;
    if (a->rank > 1) UIR_TRY(evaluate(w, a->counts[a->rank - 2], &m));
    if (a->rank) UIR_TRY(evaluate(w, a->counts[a->rank - 1], &k));
    if (b->rank) UIR_TRY(evaluate(w, b->counts[b->rank - 1], &n));
    *out_blocks =
        (double)count_blocks(m, d->mma_m) * (double)count_blocks(n, d->mma_n) * (double)count_blocks(k, d->mma_k);
    return UIR_STATUS_OK;
}

/* Of an instruction that is no move. */
static uir_status count_operations(walk *w, const uir_iinstruction *in, const uir_iop_row *op) {
    const uir_islice *factor = &in->slices[op->family == UIR_IOP_FAMILY_MMA ? 1 : 0];
    bool reduces = op->family == UIR_IOP_FAMILY_REDUCE;
    uint64_t elements;
    int64_t columns = 1;
    UIR_TRY(count_elements(w, reduces ? &in->slices[1] : factor, &elements));
    if (op->family == UIR_IOP_FAMILY_MMA) {
        const uir_islice *right = &in->slices[2];
        if (right->rank) UIR_TRY(evaluate(w, right->counts[right->rank - 1], &columns));
        columns *= 2;
    }
    w->out->operations += (double)elements * (double)columns;
    return UIR_STATUS_OK;
}

/* All pipes finish before any goes on. */
static void meet(walk *w) {
    double last = 0;
    for (uint32_t p = 0; p < UIR_MACHINE_MAX_PIPES; p++) last = w->free_at[p] > last ? w->free_at[p] : last;
    for (uint32_t p = 0; p < UIR_MACHINE_MAX_PIPES; p++) w->not_before[p] = last;
}

static uir_status execute(walk *w, const uir_iinstruction *in) {
    const uir_machine *d = w->igraph->machine;
    const uir_iop_row *op = uir_iop_get_row(in->code);
    static const uir_legal_row unknown = {.pipe = -1};
    const uir_legal_row *row = in->legal_row < d->legal_count ? &d->legal[in->legal_row] : &unknown;
    uint32_t pipe = row->pipe >= 0 ? (uint32_t)row->pipe : 0;
    uint64_t longest;
    uint32_t bits = uir_dtype_bits(in->dtype);
    double cycles, steps, elements;
    UIR_TRY(count_operands(w, in, op, &longest));
    elements = (double)longest * 8 / (bits ? bits : 8);
    if (op->family == UIR_IOP_FAMILY_MOVE) {
        uint32_t to = space_of(w, &in->slices[0]), from = in->slice_count > 1 ? space_of(w, &in->slices[1]) : to;
        w->out->moved[from][to] += longest;
        UIR_TRY(count_granules(w, in, from, to, &longest));
        cycles = uir_machine_move_cycles(d, row, (int)from, (int)to, elements, (double)longest);
    } else if (op->family == UIR_IOP_FAMILY_MMA) {
        UIR_TRY(count_operations(w, in, op));
        UIR_TRY(count_mma_blocks(w, in, &steps));
        cycles = uir_legal_row_cycles(row, steps);
    } else {
        UIR_TRY(count_operations(w, in, op));
        steps = (double)((longest + d->vector_bytes - 1) / (d->vector_bytes ? d->vector_bytes : 1));
        cycles = row->cycles_per_element ? elements * row->cycles_per_element + row->latency
                                         : uir_legal_row_cycles(row, steps);
    }
    double begin = w->free_at[pipe] > w->not_before[pipe] ? w->free_at[pipe] : w->not_before[pipe];
    w->free_at[pipe] = begin + cycles;
    w->out->pipe_cycles[pipe] += cycles;
    if (uir_ithreads_meet(w->igraph, in)) meet(w);
    return UIR_STATUS_OK;
}

/* Pipe `to` waits for what pipe `from` had been given: until now, or until this wait's execution `distance` - 1 times
 * before. */
static void wait(walk *w, uint32_t instruction) {
    const uir_iinstruction *in = &w->igraph->instructions.data[instruction];
    if (in->sync_kind == UIR_SYNC_UNIT) meet(w);
    if (in->sync_kind != UIR_SYNC_PIPES) return;
    wait_times *times = &w->waits[instruction];
    uint32_t back = in->sync_distance > 1 ? in->sync_distance - 1 : 0;
    if (back >= MOST_DISTANCE) back = MOST_DISTANCE - 1;
    times->ready[times->executed % MOST_DISTANCE] = w->free_at[in->sync_from];
    if (times->executed >= back) {
        double ready = times->ready[(times->executed - back) % MOST_DISTANCE];
        if (ready > w->not_before[in->sync_to]) w->not_before[in->sync_to] = ready;
    }
    times->executed++;
}

/* ---- the tree ---- */
static uir_status walk_items(walk *w, uint32_t first);

/* The waits of a loop begin anew with it. */
static void forget_waits(walk *w, uint32_t first) {
    for (uint32_t i = first; i != NONE; i = w->igraph->items.data[i].next) {
        const uir_iitem *item = &w->igraph->items.data[i];
        if (item->kind == UIR_IITEM_INSTRUCTION) w->waits[item->instruction].executed = 0;
    }
}

static uir_status walk_loop(walk *w, const uir_iitem *item) {
    int64_t trips;
    UIR_TRY(evaluate(w, item->extent, &trips));
    if (item->named_ends && trips < 1) trips = 1;
    w->trips[item->symbol] = trips;
    w->bound[item->symbol] = true;
    forget_waits(w, item->first_child);
    for (int64_t i = 0; i < trips; i++) {
        bool runs;
        w->values[item->symbol] = i;
        if (w->cancel && __atomic_load_n(w->cancel, __ATOMIC_RELAXED)) return UIR_STATUS_CANCELLED;
        UIR_TRY(holds(w, &item->guard, &runs));
        if (runs) UIR_TRY(walk_items(w, item->first_child));
    }
    w->bound[item->symbol] = false;
    return UIR_STATUS_OK;
}

static uir_status walk_item(walk *w, const uir_iitem *item) {
    bool runs;
    if (item->kind == UIR_IITEM_LOOP) return walk_loop(w, item);
    UIR_TRY(holds(w, &item->guard, &runs));
    if (!runs) return UIR_STATUS_OK;
    switch (item->kind) {
    case UIR_IITEM_LET:
        UIR_TRY(evaluate(w, w->igraph->symbols.data[item->symbol].definition, &w->values[item->symbol]));
        w->bound[item->symbol] = true;
        return UIR_STATUS_OK;
    case UIR_IITEM_INDEX:
        w->values[item->symbol] = 0;
        w->bound[item->symbol] = true;
        return UIR_STATUS_OK;
    case UIR_IITEM_INSTRUCTION:
        if (w->igraph->instructions.data[item->instruction].code != UIR_IOP_SYNC)
            return execute(w, &w->igraph->instructions.data[item->instruction]);
        wait(w, item->instruction);
        return UIR_STATUS_OK;
    default:
        return walk_items(w, item->first_child);
    }
}

static uir_status walk_items(walk *w, uint32_t first) {
    for (uint32_t i = first; i != NONE; i = w->igraph->items.data[i].next)
        UIR_TRY(walk_item(w, &w->igraph->items.data[i]));
    return UIR_STATUS_OK;
}

/* ---- phases ---- */
/* Cycles of one parallel index by the unit that takes it. */
static uir_status walk_index(walk *w, const uir_ibody *body, double *out_cycles) {
    memset(w->free_at, 0, sizeof w->free_at);
    memset(w->not_before, 0, sizeof w->not_before);
    memset(w->waits, 0, w->igraph->instructions.count * sizeof *w->waits);
    UIR_TRY(walk_items(w, body->first_item));
    *out_cycles = 0;
    for (uint32_t p = 0; p < UIR_MACHINE_MAX_PIPES; p++)
        if (w->free_at[p] > *out_cycles) *out_cycles = w->free_at[p];
    return UIR_STATUS_OK;
}

/* All parallel indices of one body. */
static uir_status walk_body(walk *w, const uir_iphase *phase, const uir_ibody *body, const int64_t *extents,
                            uir_arena *arena, double *out_cycles) {
    int64_t copies = body->unit_symbol == NONE ? 1 : body->unit_count, total = copies;
    int64_t units = uir_machine_count_units(w->igraph->machine, body->unit_kind);
    for (uint32_t a = 0; a < phase->parallel_count; a++)
        if (__builtin_mul_overflow(total, extents[a], &total))
            return uir_error(w->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "kernel @%s: too many parallel indices",
                             w->igraph->name);
    if (units < 1 || units > total) units = total;
    double *busy;
    UIR_TRY_ALLOCATE(busy, uir_arena_allocate_array(arena, (size_t)units + 1, sizeof *busy));
    *out_cycles = 0;
    for (int64_t flat = 0; flat < total; flat++) {
        int64_t rest = flat;
        double cycles;
        if (body->unit_symbol != NONE) {
            w->values[body->unit_symbol] = rest % copies;
            w->bound[body->unit_symbol] = true;
            rest /= copies;
        }
        for (uint32_t a = phase->parallel_count; a-- > 0; rest /= extents[a]) {
            w->values[phase->parallel[a].symbol] = rest % extents[a];
            w->bound[phase->parallel[a].symbol] = true;
        }
        UIR_TRY(walk_index(w, body, &cycles));
        busy[flat % units] += cycles;
        if (busy[flat % units] > *out_cycles) *out_cycles = busy[flat % units];
    }
    if ((uint64_t)units > w->out->most_units) w->out->most_units = (uint64_t)units;
    return UIR_STATUS_OK;
}

static uir_status walk_phase(walk *w, const uir_iphase *phase, uir_arena *arena) {
    int64_t extents[4];
    double longest = 0, cycles = 0;
    for (uint32_t a = 0; a < phase->parallel_count; a++) {
        UIR_TRY(evaluate(w, phase->parallel[a].extent, &extents[a]));
        if (extents[a] <= 0) return UIR_STATUS_OK;
    }
    for (uint32_t b = 0; b < phase->body_count; b++) {
        UIR_TRY(walk_body(w, phase, &phase->bodies[b], extents, arena, &cycles));
        if (cycles > longest) longest = cycles;
    }
    w->out->cycles += longest;
    return UIR_STATUS_OK;
}

static uir_status walk_kernel(walk *w, const int64_t *dim_values, const int64_t *tile_values, uir_arena *arena) {
    const uir_igraph *g = w->igraph;
    uint32_t n = w->symbol_count = uir_dims_symbol_count(g->dims);
    UIR_TRY_ALLOCATE(w->values, uir_arena_allocate_array(arena, n + 1, sizeof *w->values));
    UIR_TRY_ALLOCATE(w->trips, uir_arena_allocate_array(arena, n + 1, sizeof *w->trips));
    UIR_TRY_ALLOCATE(w->bound, uir_arena_allocate_array(arena, n + 1, sizeof *w->bound));
    UIR_TRY_ALLOCATE(w->waits, uir_arena_allocate_array(arena, g->instructions.count + 1, sizeof *w->waits));
    UIR_TRY(uir_igraph_bind(g, dim_values, tile_values, w->values, w->bound, w->diagnostics));
    for (uint32_t i = 0; i < g->phases.count; i++) UIR_TRY(walk_phase(w, &g->phases.data[i], arena));
    return UIR_STATUS_OK;
}

uir_status uir_igraph_estimate(const uir_igraph *igraph, const int64_t *dim_values, const int64_t *tile_values,
                               const volatile bool *cancel, uir_diagnostics *diagnostics, uir_estimate *out_estimate) {
    walk w = {.igraph = igraph, .diagnostics = diagnostics, .cancel = cancel, .out = out_estimate};
    uir_arena arena;
    *out_estimate = (uir_estimate){0};
    uir_arena_init(&arena, &igraph->allocator);
    uir_status status = walk_kernel(&w, dim_values, tile_values, &arena);
    uir_arena_deinit(&arena);
    return status;
}

uir_estimate_floor uir_estimate_get_floor(const uir_machine *machine, const uir_estimate *estimate) {
    int memory = uir_machine_find_role(machine, UIR_SPACE_MEMORY);
    uir_estimate_floor floor = {0};
    if (memory >= 0 && machine->peak_bytes_per_second > 0)
        floor.moving = (double)(estimate->read[memory] + estimate->written[memory]) / machine->peak_bytes_per_second;
    if (machine->peak_flops > 0) floor.computing = estimate->operations / machine->peak_flops;
    return floor;
}
