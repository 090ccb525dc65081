/* Which local buffers are alive when, and which may lie in one place.
 *
 * Steps are numbered as they stand in the text: an instruction is one, and so are those that a run may hold, since a
 * run does its instructions block by block. A buffer is alive from its first step to its last. Where loops are around
 * only some of them, those count as all of the loop: what one iteration leaves, the next ones must. And where a read in
 * a loop is of something that this iteration has not itself written before, the buffer lives through all of that loop.
 */
#include "ir/kernel/igraph_places.h"

#include "ir/kernel/igraph_runs.h"

#define NONE UINT32_MAX

typedef struct loop_span {
    uint32_t symbol;
    uint32_t parent, depth; /* the outermost loops are 1 deep */
    uint32_t first, last;   /* steps */
} loop_span;

/* The innermost loop that an instruction touches a pointer in. */
typedef struct touch {
    uint32_t step, loop;
    uint32_t next; /* of the same pointer */
} touch;

/* A write that is done whenever the end of its list is reached. */
typedef struct written {
    const uir_islice *slice;
    uint32_t depth;    /* of loops */
    uint32_t previous; /* of the same pointer */
} written;

typedef struct buffer {
    bool shared;      /* may share its place */
    bool moved;       /* a move brings it here from another space or takes it there */
    bool ordered;     /* one within its space makes it: what lies otherwise there */
    uint32_t touches; /* NONE: there are none */
    uint32_t written; /* the last of those that hold here */
    uint32_t kept;    /* loops that no value crosses an iteration of: as many from outside as are around each read */
    uint32_t first, last;
    uir_dim bytes;      /* of one instance */
    uint32_t next_over; /* of its place */
} buffer;

typedef struct places {
    uir_igraph *g;
    uir_arena *arena;
    uir_vector(loop_span) loops;
    uir_vector(touch) touches;
    uir_vector(written) trail;
    buffer *buffers; /* per pointer */
    const uir_iinstruction **run;
    uint32_t step, loop;
    uir_status status;
} places;

static uint32_t depth_of(const places *p, uint32_t loop) {
    return loop == NONE ? 0 : p->loops.data[loop].depth;
}

/* The loop around `loop` that is so deep. */
static uint32_t ancestor(const places *p, uint32_t loop, uint32_t depth) {
    while (depth_of(p, loop) > depth) loop = p->loops.data[loop].parent;
    return loop;
}

/* ---- the walk ---- */
static bool is_whole(const uir_igraph *g, const uir_islice *slice) {
    const uir_ipointer *pointer = &g->pointers.data[slice->pointer];
    int64_t start;
    for (uint32_t d = 0; d < pointer->rank && !slice->window; d++)
        if (!uir_dim_is_const(g->dims, slice->starts[d], &start) || start != 0 ||
            !uir_dim_equal(slice->counts[d], pointer->extents[d]))
            return false;
    return !slice->window;
}

static bool is_at_least(const uir_igraph *g, uir_dim a, uir_dim b) {
    int64_t low, high;
    uir_dim rest = uir_dim_sub(g->dims, a, b);
    if (!rest.id) return false;
    uir_dim_bounds(g->dims, rest, &low, &high);
    return low >= 0;
}

/* Is all that a slice names in what was written? */
static bool covers(const uir_igraph *g, const uir_islice *write, const uir_islice *read) {
    if (is_whole(g, write)) return true;
    if (write->window || read->window || write->rank != read->rank) return false;
    for (uint32_t d = 0; d < write->rank; d++) {
        if (uir_dim_equal(write->starts[d], read->starts[d]) && uir_dim_equal(write->counts[d], read->counts[d]))
            continue;
        if (!is_at_least(g, read->starts[d], write->starts[d]) ||
            !is_at_least(g, uir_dim_add(g->dims, write->starts[d], write->counts[d]),
                         uir_dim_add(g->dims, read->starts[d], read->counts[d])))
            return false;
    }
    return true;
}

static void touch_slice(places *p, const uir_islice *slice, bool read) {
    buffer *b = &p->buffers[slice->pointer];
    if (!b->shared || p->status != UIR_STATUS_OK) return;
    touch t = {p->step, p->loop, b->touches};
    b->touches = p->touches.count;
    p->status = uir_vector_push(p->arena, &p->touches, t);
    if (!read) return;
    uint32_t at = b->written;
    while (at != NONE && !covers(p->g, p->trail.data[at].slice, slice)) at = p->trail.data[at].previous;
    uint32_t kept = at == NONE ? 0 : p->trail.data[at].depth;
    if (kept < b->kept) b->kept = kept;
}

static void write_slice(places *p, const uir_islice *slice) {
    buffer *b = &p->buffers[slice->pointer];
    if (!b->shared || p->status != UIR_STATUS_OK) return;
    written w = {slice, depth_of(p, p->loop), b->written};
    b->written = p->trail.count;
    p->status = uir_vector_push(p->arena, &p->trail, w);
}

/* `certain`: it is done whenever the end of its list is reached. */
static void see_instruction(places *p, const uir_iinstruction *in, bool certain) {
    const uir_iop_row *row = uir_iop_get_row(in->code);
    bool tied = in->accumulate || row->family == UIR_IOP_FAMILY_MMA;
    if (row->family == UIR_IOP_FAMILY_SYNC) return;
    for (uint32_t k = 0; k < in->slice_count; k++) touch_slice(p, &in->slices[k], k > 0 || tied);
    bool moves = row->family == UIR_IOP_FAMILY_MOVE &&
                 p->g->pointers.data[in->slices[0].pointer].space != p->g->pointers.data[in->slices[1].pointer].space;
    for (uint32_t k = 0; k < in->slice_count && moves; k++) p->buffers[in->slices[k].pointer].moved = true;
    if (row->family == UIR_IOP_FAMILY_MOVE && !moves) p->buffers[in->slices[0].pointer].ordered = true;
    if (in->has_scratch) touch_slice(p, &in->scratch, false);
    /* What the units of a group do together, one of them writes. */
    if (certain && in->scope == UIR_SCOPE_UNIT && in->slice_count) write_slice(p, &in->slices[0]);
}

static void see_items(places *p, uint32_t first, bool certain);

/* What was written since is no longer certain. */
static void forget(places *p, uint32_t mark) {
    while (p->trail.count > mark) {
        const written *w = &p->trail.data[--p->trail.count];
        p->buffers[w->slice->pointer].written = w->previous;
    }
}

static void see_loop(places *p, const uir_iitem *item) {
    uint32_t mark = p->trail.count, outer = p->loop, loop = p->loops.count;
    loop_span span = {.symbol = item->symbol, .parent = outer, .depth = depth_of(p, outer) + 1, .first = p->step};
    p->status = uir_vector_push(p->arena, &p->loops, span);
    if (p->status != UIR_STATUS_OK) return;
    p->loop = loop;
    see_items(p, item->first_child, true);
    p->loops.data[loop].last = p->step > span.first ? p->step - 1 : span.first;
    p->loop = outer;
    forget(p, mark);
}

/* The instructions from an item on that may form a run: one step. Returns the last of them. */
static uint32_t see_instructions(places *p, uint32_t at, bool certain) {
    const uir_igraph *g = p->g;
    uint32_t count = 0, last = at;
    for (uint32_t i = at; i != NONE; i = g->items.data[i].next) {
        const uir_iitem *item = &g->items.data[i];
        if (item->kind != UIR_IITEM_INSTRUCTION) break;
        const uir_iinstruction *in = &g->instructions.data[item->instruction];
        bool runs = !item->guard.count && uir_iop_get_row(in->code)->family != UIR_IOP_FAMILY_SYNC &&
                    uir_igraph_run_accepts(g, p->run, count, in);
        if (count && !runs) break;
        see_instruction(p, in, certain && !item->guard.count);
        last = i;
        p->run[count++] = in;
        if (!runs) break;
    }
    p->step++;
    return last;
}

static void see_items(places *p, uint32_t first, bool certain) {
    const uir_igraph *g = p->g;
    for (uint32_t i = first; i != NONE && p->status == UIR_STATUS_OK; i = g->items.data[i].next) {
        const uir_iitem *item = &g->items.data[i];
        uint32_t mark = p->trail.count, step = p->step;
        switch (item->kind) {
        case UIR_IITEM_INSTRUCTION:
            i = see_instructions(p, i, certain);
            break;
        case UIR_IITEM_INDEX:
            touch_slice(p, &item->index.slice, true);
            p->step++;
            break;
        case UIR_IITEM_LOOP:
            see_loop(p, item);
            break;
        case UIR_IITEM_RUN:
            for (uint32_t c = item->first_child; c != NONE && p->status == UIR_STATUS_OK; c = g->items.data[c].next) {
                p->step = step;
                if (g->items.data[c].kind == UIR_IITEM_INSTRUCTION)
                    see_instruction(p, &g->instructions.data[g->items.data[c].instruction], certain);
            }
            p->step = step + 1;
            break;
        case UIR_IITEM_IF:
            see_items(p, item->first_child, true);
            forget(p, mark);
            break;
        case UIR_IITEM_LET:
            break;
        }
    }
}

/* ---- lives ---- */
/* The loops around all that touches the buffer. */
static uint32_t common_loops(const places *p, const buffer *b) {
    uint32_t loop = p->touches.data[b->touches].loop;
    for (uint32_t t = b->touches; t != NONE; t = p->touches.data[t].next) {
        uint32_t other = ancestor(p, p->touches.data[t].loop, depth_of(p, loop));
        loop = ancestor(p, loop, depth_of(p, other));
        while (loop != other) loop = p->loops.data[loop].parent, other = p->loops.data[other].parent;
    }
    return depth_of(p, loop);
}

static void find_life(const places *p, uint32_t index) {
    buffer *b = &p->buffers[index];
    uint32_t depth = common_loops(p, b), by_loop = p->g->pointers.data[index].by_loop;
    if (b->kept < depth) depth = b->kept;
    for (uint32_t l = 0; by_loop != NONE && l < p->loops.count;
         l++) /* several instances are alive in all of the loop */
        if (p->loops.data[l].symbol == by_loop && p->loops.data[l].depth <= depth) depth = p->loops.data[l].depth - 1;
    b->first = NONE;
    b->last = 0;
    for (uint32_t t = b->touches; t != NONE; t = p->touches.data[t].next) {
        const touch *at = &p->touches.data[t];
        bool deeper = depth_of(p, at->loop) > depth;
        const loop_span *around = deeper ? &p->loops.data[ancestor(p, at->loop, depth + 1)] : NULL;
        uint32_t first = deeper ? around->first : at->step, last = deeper ? around->last : at->step;
        if (first < b->first) b->first = first;
        if (last > b->last) b->last = last;
    }
}

/* ---- places ---- */
static int64_t round_up(int64_t bytes, int64_t alignment) {
    return alignment > 1 ? (bytes + alignment - 1) / alignment * alignment : bytes;
}

/* Buffer `a` fits the place of `b`, for all sizes and with all its instances: told in ways that the verifier can
 * follow. */
static bool fits(const places *p, uint32_t a, uint32_t b) {
    const uir_ipointer *small = &p->g->pointers.data[a], *large = &p->g->pointers.data[b];
    const uir_space *space = &p->g->machine->spaces[small->space];
    int64_t alignment = space->alignment, low, most, least, high;
    /* A register has an element; threads that share registers keep the places that they have. */
    if (space->roles & UIR_SPACE_REGISTERS && uir_dtype_bits(small->dtype) != uir_dtype_bits(large->dtype))
        return false;
    uir_dim_bounds(p->g->dims, p->buffers[a].bytes, &low, &most);
    uir_dim_bounds(p->g->dims, p->buffers[b].bytes, &least, &high);
    if (small->instances <= large->instances) {
        if (uir_dim_equal(p->buffers[a].bytes, p->buffers[b].bytes)) return true;
        if (uir_dim_equal(small->element_span, large->element_span))
            return uir_dtype_bits(small->dtype) <= uir_dtype_bits(large->dtype);
        if (most <= least) return true;
    }
    return most < INT32_MAX && least < INT32_MAX && most * small->instances <= least * large->instances &&
           round_up(most, alignment) * small->instances <= round_up(least, alignment) * large->instances;
}

static bool lives_with(const places *p, const buffer *b, uint32_t place) {
    for (uint32_t i = place; i != NONE; i = p->buffers[i].next_over)
        if (p->buffers[i].first <= b->last && b->first <= p->buffers[i].last) return true;
    return false;
}

/* The place for a buffer: one as large, else the smallest that it fits, else one that it makes larger; NONE. */
static uint32_t find_place(const places *p, uint32_t index) {
    const uir_igraph *g = p->g;
    uint32_t best = NONE;
    for (uint32_t i = 0; i < index; i++) {
        const buffer *place = &p->buffers[i];
        if (!place->shared || g->pointers.data[i].over != NONE || place->touches == NONE ||
            g->pointers.data[i].space != g->pointers.data[index].space || lives_with(p, &p->buffers[index], i))
            continue;
        bool holds = fits(p, index, i), held = fits(p, i, index);
        if (holds && held) return i;
        if (!holds && !held) continue;
        if (best == NONE ||
            (holds ? !fits(p, index, best) || fits(p, i, best) : !fits(p, index, best) && fits(p, best, i)))
            best = i;
    }
    return best;
}

/* The larger of the two is the place, and what lay over the other lies over it. */
static void join(places *p, uint32_t index, uint32_t place) {
    uir_ipointer *pointers = p->g->pointers.data;
    bool larger = !fits(p, index, place);
    uint32_t owner = larger ? index : place, last = owner;
    p->buffers[index].next_over = larger ? place : p->buffers[place].next_over;
    if (!larger) p->buffers[place].next_over = index;
    for (last = p->buffers[owner].next_over; last != NONE; last = p->buffers[last].next_over)
        pointers[last].over = owner;
}

static bool may_share(const uir_igraph *g, uint32_t index) {
    const uir_ipointer *p = &g->pointers.data[index];
    const uir_space *space = &g->machine->spaces[p->space];
    int64_t elements;
    return p->role == UIR_IPOINTER_LOCAL && p->over == NONE && space->scope == UIR_SCOPE_UNIT &&
           !(uir_dim_is_const(g->dims, p->element_span, &elements) && elements <= 1);
}

/* Which buffers are touched where. */
static uir_status look(places *p) {
    uir_igraph *g = p->g;
    uint32_t count = g->pointers.count;
    UIR_TRY_ALLOCATE(p->buffers, uir_arena_allocate_array(p->arena, (size_t)count + 1, sizeof *p->buffers));
    UIR_TRY_ALLOCATE(p->run, uir_arena_allocate_array(p->arena, (size_t)g->instructions.count + 1, sizeof *p->run));
    for (uint32_t i = 0; i < count; i++) {
        p->buffers[i] = (buffer){.shared = may_share(g, i),
                                 .touches = NONE,
                                 .written = NONE,
                                 .kept = NONE,
                                 .bytes = uir_igraph_instance_bytes(g, i),
                                 .next_over = NONE};
        if (!p->buffers[i].bytes.id) return UIR_STATUS_INVALID_ARGUMENT;
    }
    for (uint32_t i = 0; i < count; i++) /* whose place others have already keeps it for them */
        if (g->pointers.data[i].over != NONE) p->buffers[g->pointers.data[i].over].shared = false;
    for (uint32_t ph = 0; ph < g->phases.count; ph++)
        for (uint32_t b = 0; b < g->phases.data[ph].body_count; b++) {
            see_items(p, g->phases.data[ph].bodies[b].first_item, true);
            forget(p, 0);
        }
    return p->status;
}

static void share_in(places *p, uint32_t space) {
    for (uint32_t i = 0; i < p->g->pointers.count; i++) {
        if (!p->buffers[i].shared || p->buffers[i].touches == NONE || p->g->pointers.data[i].space != space) continue;
        find_life(p, i);
        uint32_t place = find_place(p, i);
        if (place != NONE) join(p, i, place);
    }
}

static uir_status share(places *p) {
    for (uint32_t space = 0; space < p->g->machine->space_count; space++) share_in(p, space);
    return UIR_STATUS_OK;
}

/* The innermost loop around all that touches the buffer; NONE. */
static uint32_t common_loop(const places *p, const buffer *b) {
    uint32_t depth = common_loops(p, b);
    return depth ? ancestor(p, p->touches.data[b->touches].loop, depth) : NONE;
}

/* The loop by which the buffer may have two instances; NONE: it may not. */
static uint32_t doubling_loop(const places *p, uint32_t index) {
    const buffer *b = &p->buffers[index];
    if (!b->shared || b->touches == NONE || p->g->pointers.data[index].by_loop != NONE) return NONE;
    uint32_t loop = common_loop(p, b);
    return loop == NONE || b->kept < depth_of(p, loop) ? NONE : loop;
}

static void double_buffer(places *p, uint32_t index, uint32_t loop) {
    p->g->pointers.data[index].instances = 2;
    p->g->pointers.data[index].by_loop = p->loops.data[loop].symbol;
}

/* Bytes that an instance takes in its space, at most; -1: too many to tell. */
static int64_t most_bytes(const places *p, uint32_t index) {
    int64_t alignment = p->g->machine->spaces[p->g->pointers.data[index].space].alignment, least, most;
    uir_dim_bounds(p->g->dims, p->buffers[index].bytes, &least, &most);
    return most < INT64_MAX / 4 ? round_up(most, alignment) : -1;
}

/* Does all fit that lies in the space, once what is not alive together shares its place? */
static bool has_room(places *p, uint32_t space) {
    uint64_t capacity = p->g->machine->spaces[space].capacity;
    int64_t left = capacity && capacity < INT64_MAX ? (int64_t)capacity : INT64_MAX;
    share_in(p, space);
    for (uint32_t i = 0; i < p->g->pointers.count; i++) {
        uir_ipointer *pointer = &p->g->pointers.data[i];
        if (pointer->role != UIR_IPOINTER_LOCAL || pointer->space != space || pointer->over != NONE || left < 0)
            continue;
        int64_t bytes = most_bytes(p, i);
        left = bytes < 0 || bytes > left / pointer->instances ? -1 : left - bytes * pointer->instances;
    }
    for (uint32_t i = 0; i < p->g->pointers.count; i++)
        if (p->buffers[i].shared && p->g->pointers.data[i].space == space)
            p->g->pointers.data[i].over = p->buffers[i].next_over = NONE;
    return left >= 0;
}

/* The innermost loops turn most often: theirs first. Of what comes from other spaces before what is put in order here,
 * by another unit than those that compute, maybe. */
static void give_as_fits(places *p, bool moved) {
    uint32_t deepest = 0;
    for (uint32_t l = 0; l < p->loops.count; l++)
        if (p->loops.data[l].depth > deepest) deepest = p->loops.data[l].depth;
    for (uint32_t depth = deepest; depth > 0; depth--)
        for (uint32_t i = 0; i < p->g->pointers.count; i++) {
            uir_ipointer *pointer = &p->g->pointers.data[i];
            uint32_t loop = doubling_loop(p, i);
            if (loop == NONE || depth_of(p, loop) != depth) continue;
            if (p->buffers[i].moved != moved || !(moved || p->buffers[i].ordered)) continue;
            double_buffer(p, i, loop);
            if (has_room(p, pointer->space)) continue;
            pointer->instances = 1;
            pointer->by_loop = NONE;
        }
}

static uir_status give_fitting(places *p) {
    give_as_fits(p, true);
    give_as_fits(p, false);
    return UIR_STATUS_OK;
}

static uir_status give_in_scratch(places *p) {
    int scratch = uir_machine_find_role(p->g->machine, UIR_SPACE_SCRATCH);
    for (uint32_t i = 0; i < p->g->pointers.count; i++) {
        uint32_t loop = doubling_loop(p, i);
        if (loop != NONE && p->buffers[i].moved && (int)p->g->pointers.data[i].space == scratch)
            double_buffer(p, i, loop);
    }
    return give_fitting(p);
}

static uir_status work(uir_igraph *igraph, uir_status (*pass)(places *p)) {
    places p = {.g = igraph, .loop = NONE};
    uir_arena arena;
    if (igraph->synchronised) return UIR_STATUS_OK;
    uir_arena_init(&arena, &igraph->allocator);
    p.arena = &arena;
    uir_status status = look(&p);
    if (status == UIR_STATUS_OK) status = pass(&p);
    uir_arena_deinit(&arena);
    return status;
}

uir_status uir_igraph_share_places(uir_igraph *igraph) {
    return work(igraph, share);
}

uir_status uir_igraph_give_instances(uir_igraph *igraph, uir_doubling doubling) {
    if (igraph->machine->pipe_count < 2 || doubling == UIR_DOUBLE_NONE) return UIR_STATUS_OK;
    return work(igraph, doubling == UIR_DOUBLE_SCRATCH ? give_in_scratch : give_fitting);
}
