#include "ir/kernel/igraph_order.h"

#include "ir/kernel/igraph_threads.h"

#include <string.h>

#define NONE UINT32_MAX

/* ---- collecting ---- */
static uir_status push_block(uir_iorder *o, uint32_t item, bool is_loop, uint32_t *out_block) {
    uir_iorder_block block = {.parent = o->block, .item = item, .first = NONE, .is_loop = is_loop};
    *out_block = o->blocks.count;
    return uir_vector_push(o->arena, &o->blocks, block);
}

/* The block of what stands here under a condition of its own, or without one. */
static uir_status find_block(uir_iorder *o, uint32_t at, uint32_t *out_block) {
    *out_block = o->block;
    return o->igraph->items.data[at].guard.count ? push_block(o, at, false, out_block) : UIR_STATUS_OK;
}

static uir_status push_sync(uir_iorder *o, uint32_t at, const uir_iinstruction *i, bool is_barrier) {
    bool is_step = i->code != UIR_IOP_SYNC;
    uir_iorder_sync s = {.at = 2 * o->steps.count + is_step,
                         .loop = o->loop,
                         .line = o->igraph->items.data[at].line,
                         .from = i->sync_from,
                         .to = i->sync_to,
                         .distance = i->sync_distance,
                         .pointer = i->sync_pointer,
                         .of_pipes = !is_step && i->sync_kind == UIR_SYNC_PIPES,
                         .is_barrier = is_barrier,
                         .before = UIR_IORDER_GIVEN,
                         .is_unit = !is_step && i->sync_kind == UIR_SYNC_UNIT};
    UIR_TRY(find_block(o, at, &s.block));
    return uir_vector_push(o->arena, &o->syncs, s);
}

/* Behind an instruction at whose end the threads meet. */
static uir_status push_meeting(uir_iorder *o, uint32_t block) {
    uir_iorder_sync s = {.at = 2 * o->steps.count, .block = block, .loop = o->loop, .pointer = NONE, .is_unit = true};
    s.before = UIR_IORDER_GIVEN;
    s.line = o->steps.data[o->steps.count - 1].line;
    return uir_vector_push(o->arena, &o->syncs, s);
}

static uir_status push_use(uir_iorder *o, const uir_iinstruction *i, uint32_t slice, bool write) {
    uir_iorder_use use = {.step = o->steps.count, .slice = slice, .write = write};
    use.pointer = slice == NONE ? i->scratch.pointer : i->slices[slice].pointer;
    use.own = slice != NONE && uir_ithreads_count(o->igraph) > 1 && uir_ithreads_is_own(o->igraph, i, slice);
    return uir_vector_push(o->arena, &o->uses, use);
}

static uir_status push_uses(uir_iorder *o, const uir_iinstruction *i) {
    uir_iop_family family = uir_iop_get_row(i->code)->family;
    for (uint32_t k = 0; k < i->slice_count; k++) {
        UIR_TRY(push_use(o, i, k, k == 0 || (family == UIR_IOP_FAMILY_SCAN && k == 2)));
        if (k == 0 && (i->accumulate || family == UIR_IOP_FAMILY_MMA)) UIR_TRY(push_use(o, i, k, false));
    }
    return i->has_scratch ? push_use(o, i, NONE, true) : UIR_STATUS_OK;
}

static uir_status push_step(uir_iorder *o, uir_iorder_step *step) {
    UIR_TRY(find_block(o, step->item, &step->block));
    step->use_count = o->uses.count - step->first_use;
    for (uint32_t block = step->block; block != NONE; block = o->blocks.data[block].parent) {
        uir_iorder_block *around = &o->blocks.data[block];
        if (around->first == NONE) around->first = o->steps.count;
        around->last = o->steps.count;
    }
    return uir_vector_push(o->arena, &o->steps, *step);
}

static uir_status collect_index(uir_iorder *o, uint32_t at) {
    const uir_iitem *item = &o->igraph->items.data[at];
    uir_iorder_step step = {
        .item = at, .instruction = NONE, .line = item->line, .pipe = -1, .is_index = true, .first_use = o->uses.count};
    uir_iorder_use use = {.pointer = item->index.slice.pointer, .step = o->steps.count};
    UIR_TRY(uir_vector_push(o->arena, &o->uses, use));
    return push_step(o, &step);
}

static uir_status collect_instruction(uir_iorder *o, uint32_t at) {
    const uir_iitem *item = &o->igraph->items.data[at];
    const uir_iinstruction *i = &o->igraph->instructions.data[item->instruction];
    bool is_sync = i->code == UIR_IOP_SYNC;
    bool is_barrier = is_sync ? i->sync_kind == UIR_SYNC_GROUP : i->scope == UIR_SCOPE_GROUP;
    if (is_sync || is_barrier) UIR_TRY(push_sync(o, at, i, is_barrier));
    if (is_sync) return UIR_STATUS_OK;
    bool meets = uir_ithreads_meet(o->igraph, i);
    uir_iorder_step step = {.item = at,
                            .instruction = item->instruction,
                            .line = item->line,
                            .pipe = meets ? -1 : uir_igraph_get_pipe(o->igraph, i),
                            .first_use = o->uses.count};
    UIR_TRY(push_uses(o, i));
    UIR_TRY(push_step(o, &step));
    return meets ? push_meeting(o, step.block) : UIR_STATUS_OK;
}

static uir_status collect_items(uir_iorder *o, uint32_t first) {
    const uir_igraph *g = o->igraph;
    for (uint32_t at = first; at != NONE; at = g->items.data[at].next) {
        const uir_iitem *item = &g->items.data[at];
        uint32_t block = o->block, loop = o->loop;
        if (item->kind == UIR_IITEM_INSTRUCTION) UIR_TRY(collect_instruction(o, at));
        if (item->kind == UIR_IITEM_INDEX) UIR_TRY(collect_index(o, at));
        if (item->first_child == NONE) continue;
        if (item->kind != UIR_IITEM_RUN) {
            uint32_t inner;
            UIR_TRY(push_block(o, at, item->kind == UIR_IITEM_LOOP, &inner));
            o->block = inner;
            if (item->kind == UIR_IITEM_LOOP) o->loop = inner;
        }
        UIR_TRY(collect_items(o, item->first_child));
        o->block = block;
        o->loop = loop;
    }
    return UIR_STATUS_OK;
}

uir_status uir_iorder_collect(const uir_igraph *igraph, uint32_t first_item, uir_arena *arena, uir_iorder *out) {
    *out = (uir_iorder){.igraph = igraph, .arena = arena, .block = NONE, .loop = NONE};
    UIR_TRY(push_block(out, NONE, false, &out->block));
    UIR_TRY(collect_items(out, first_item));
    out->words = (out->steps.count + 63) / 64;
    UIR_TRY_ALLOCATE(out->before,
                     uir_arena_allocate_array(arena, (size_t)out->steps.count * out->words + 1, sizeof *out->before));
    return UIR_STATUS_OK;
}

/* ---- orders ---- */
static bool has_bit(const uint64_t *bits, uint32_t i) {
    return bits[i / 64] >> i % 64 & 1;
}

bool uir_iorder_uses_place(const uir_iorder *o, uint32_t step, uint32_t pointer) {
    const uir_iorder_step *s = &o->steps.data[step];
    if (pointer == NONE) return true;
    for (uint32_t k = s->first_use; k < s->first_use + s->use_count; k++)
        if (uir_igraph_place(o->igraph, o->uses.data[k].pointer) == uir_igraph_place(o->igraph, pointer)) return true;
    return false;
}

/* Is `a`, which the program comes to first, done before b begins, without any wait? */
static bool share_order(const uir_iorder *o, uint32_t a, uint32_t b) {
    const uir_iorder_step *last = &o->steps.data[b];
    if (last->is_index) return uir_iorder_uses_place(o, a, o->uses.data[last->first_use].pointer);
    int32_t x = o->steps.data[a].pipe, y = o->steps.data[b].pipe;
    return x == y || x < 0 || y < 0;
}

/* Step w is done before v; with it what is done before w, as long as w runs whenever that or v does. */
static void add_before(uir_iorder *o, uint32_t w, uint32_t v) {
    uint64_t *to = &o->before[(size_t)v * o->words];
    const uint64_t *from = &o->before[(size_t)w * o->words];
    const uir_iorder_block *block = &o->blocks.data[o->steps.data[w].block];
    if (has_bit(to, w)) return;
    bool all = uir_iorder_holds(o, o->steps.data[w].block, v);
    for (uint32_t k = 0; k <= w / 64; k++) {
        uint64_t mask = ~(uint64_t)0;
        if (!all && block->first / 64 == k) mask <<= block->first % 64;
        if (!all && block->first / 64 > k) mask = 0;
        to[k] |= from[k] & mask; /* none of them is behind the block's last: they are in front of w */
    }
    to[w / 64] |= (uint64_t)1 << w % 64;
}

static void add_awaited(uir_iorder *o, const uir_iorder_sync *s, uint32_t v) {
    bool runs = uir_iorder_holds(o, s->block, v);
    for (uint32_t u = s->at / 2; u-- > 0;)
        if (o->steps.data[u].pipe == (int32_t)s->from && uir_iorder_uses_place(o, u, s->pointer) &&
            (runs || uir_iorder_holds(o, s->block, u)))
            add_before(o, u, v);
}

/* All that stands before a barrier of the unit. */
static void add_met(uir_iorder *o, const uir_iorder_sync *s, uint32_t v) {
    bool runs = uir_iorder_holds(o, s->block, v);
    for (uint32_t u = s->at / 2; u-- > 0;)
        if (runs || uir_iorder_holds(o, s->block, u)) add_before(o, u, v);
}

void uir_iorder_find_step(uir_iorder *o, uint32_t v) {
    memset(&o->before[(size_t)v * o->words], 0, o->words * sizeof *o->before);
    for (uint32_t w = v; w-- > 0;)
        if (share_order(o, w, v)) add_before(o, w, v);
    for (uint32_t i = 0; i < o->syncs.count; i++) {
        const uir_iorder_sync *s = &o->syncs.data[i];
        if (s->of_pipes && !s->is_off && !s->distance && s->at <= 2 * v && (int32_t)s->to == o->steps.data[v].pipe)
            add_awaited(o, s, v);
        if (s->is_unit && !s->is_off && s->at <= 2 * v) add_met(o, s, v);
    }
}

void uir_iorder_find_from(uir_iorder *o, uint32_t step) {
    for (uint32_t v = step; v < o->steps.count; v++) uir_iorder_find_step(o, v);
}

/* What is read of a place was written there after all that another buffer had to do with it. */
bool uir_iorder_conflicts(const uir_iorder *o, const uir_iorder_use *a, const uir_iorder_use *b) {
    bool place = uir_igraph_place(o->igraph, a->pointer) == uir_igraph_place(o->igraph, b->pointer);
    bool touches = a->pointer == b->pointer ? a->write || b->write : b->write && place;
    return touches && !share_order(o, a->step, b->step);
}

bool uir_iorder_is_before(const uir_iorder *o, uint32_t a, uint32_t b) {
    return has_bit(&o->before[(size_t)b * o->words], a);
}

/* A wait in the innermost loop around both is one for all that earlier iterations did, of whichever round of it. */
bool uir_iorder_find_turn(const uir_iorder *o, const uir_iorder_use *later, const uir_iorder_use *earlier,
                          uint32_t *out_loop, uint32_t *out_distance) {
    const uir_ipointer *p = &o->igraph->pointers.data[later->pointer];
    uint32_t block = o->steps.data[earlier->step].block;
    while (block != NONE && !(o->blocks.data[block].is_loop && uir_iorder_holds(o, block, later->step)))
        block = o->blocks.data[block].parent;
    if (block == NONE) return false;
    bool owner = p->by_loop != NONE && later->pointer == earlier->pointer && /* another in its place lies across them */
                 o->igraph->items.data[o->blocks.data[block].item].symbol == p->by_loop;
    *out_loop = block;
    *out_distance = owner ? p->instances : 1;
    return true;
}

bool uir_iorder_is_inside(const uir_iorder *o, uint32_t block, uint32_t around) {
    while (block != around && block != NONE) block = o->blocks.data[block].parent;
    return block == around;
}

bool uir_iorder_holds_flags(const uir_iorder *o, const uir_iorder_sync *wait, const uir_iorder_sync *at) {
    return wait->of_pipes && !wait->is_off && wait->distance && wait->from == at->from && wait->to == at->to &&
           uir_iorder_is_inside(o, at->block, wait->loop);
}

uint32_t uir_iorder_count_flags(const uir_iorder *o, const uir_iorder_sync *at) {
    uint32_t flags = at->distance ? 0 : 1;
    for (uint32_t i = 0; i < o->syncs.count; i++)
        if (uir_iorder_holds_flags(o, &o->syncs.data[i], at)) flags += o->syncs.data[i].distance;
    return flags;
}

/* Does the step run whenever `end` does, in the same iteration of the loop, after it (or, `front`, before it)? */
static bool is_with(const uir_iorder *o, uint32_t step, uint32_t end, uint32_t loop, bool front) {
    if (step == end) return true;
    return uir_iorder_holds(o, loop, step) && uir_iorder_holds(o, o->steps.data[step].block, end) &&
           (front ? step < end && uir_iorder_is_before(o, step, end)
                  : step > end && uir_iorder_is_before(o, end, step));
}

/* Does the sync wait for some step that runs after `a`, and hold back one that runs before `b`? */
static bool joins(const uir_iorder *o, const uir_iorder_sync *s, uint32_t a, uint32_t b, uint32_t loop) {
    bool from = false, to = false;
    const uir_iorder_block *around = &o->blocks.data[loop];
    for (uint32_t u = a; u <= around->last && !from; u++)
        from = o->steps.data[u].pipe == (int32_t)s->from && uir_iorder_uses_place(o, u, s->pointer) &&
               is_with(o, u, a, loop, false);
    for (uint32_t v = s->at / 2; v <= b && from && !to; v++)
        to =
            o->steps.data[v].pipe == (int32_t)s->to && uir_iorder_holds(o, s->block, v) && is_with(o, v, b, loop, true);
    return to;
}

/* Pipes (a bit each) with a step that runs after `end`, or before it; all bits: one that is in order with all. */
static uint32_t find_pipes(const uir_iorder *o, uint32_t end, uint32_t loop, bool front) {
    uint32_t pipes = 0;
    for (uint32_t step = o->blocks.data[loop].first; step <= o->blocks.data[loop].last; step++)
        if (is_with(o, step, end, loop, front) && !(front && o->steps.data[step].is_index))
            pipes |= o->steps.data[step].pipe < 0 ? NONE : 1u << o->steps.data[step].pipe;
    return pipes;
}

/* Does a barrier of the unit come after `a`, or before `b`, or (across iterations) once in each? */
static bool meets(const uir_iorder *o, const uir_iorder_sync *s, uint32_t a, uint32_t b, uint32_t loop, bool across) {
    return s->is_unit && !s->is_off && uir_iorder_is_inside(o, s->block, loop) &&
           ((s->at > 2 * a + 1 && uir_iorder_holds(o, s->block, a)) ||
            (s->at < 2 * b + 1 && uir_iorder_holds(o, s->block, b)) || (across && s->block == loop));
}

/* A wait for what is done up to now is one for earlier turns too. */
bool uir_iorder_is_before_turn(const uir_iorder *o, uint32_t a, uint32_t b, uint32_t loop, uint32_t distance) {
    if (find_pipes(o, a, loop, false) & find_pipes(o, b, loop, true)) return true;
    for (uint32_t i = 0; i < o->syncs.count; i++) {
        const uir_iorder_sync *s = &o->syncs.data[i];
        bool is_in =
            s->distance ? s->loop == loop && distance % s->distance == 0 : uir_iorder_is_inside(o, s->block, loop);
        if (s->of_pipes && !s->is_off && is_in && joins(o, s, a, b, loop)) return true;
        if (meets(o, s, a, b, loop, distance > 1)) return true;
    }
    return false;
}
