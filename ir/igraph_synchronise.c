#include "ir/igraph_synchronise.h"

#include <string.h>

#define NONE UINT32_MAX
enum { MOST_DEPTH = UIR_IGRAPH_MAX_DEPTH + 2 };

/* A pointer that an instruction touches by a pipe. */
typedef struct use {
    uint32_t pointer, item, step; /* steps count instructions in the order of the text */
    bool write;
    int32_t pipe;
} use;

/* A wait that stands before an item of the tree, in that item's block. */
typedef struct wait {
    uint32_t before, step; /* the item, and its first instruction's step */
    uint32_t from, to, pointer, distance;
    bool needed;
} wait;

typedef struct synchroniser {
    uir_igraph *g;
    uir_arena *arena;
    uir_vector(use) uses;
    uir_vector(wait) waits;
    uint32_t *parents;     /* per item: the item whose block it stands in; NONE: the body's */
    uint32_t *first_steps; /* per item: the first step in it */
    uint32_t step;
    uir_status status;
} synchroniser;

/* ---- what is touched ---- */
static void push_use(synchroniser *s, uint32_t item, uint32_t pointer, bool write, int32_t pipe) {
    use u = {pointer, item, s->step, write, pipe};
    if (s->status == UIR_STATUS_OK) s->status = uir_vector_push(s->arena, &s->uses, u);
}

static void see_instruction(synchroniser *s, uint32_t item) {
    const uir_iinstruction *i = &s->g->instructions.data[s->g->items.data[item].instruction];
    const uir_iop_row *row = uir_iop_get_row(i->code);
    if (row->family == UIR_IOP_FAMILY_SYNC) return;
    int32_t pipe = uir_igraph_get_pipe(s->g, i);
    bool tied = i->accumulate || row->family == UIR_IOP_FAMILY_MMA;
    for (uint32_t k = 0; k < i->slice_count; k++) {
        push_use(s, item, i->slices[k].pointer, k == 0 || (row->family == UIR_IOP_FAMILY_SCAN && k == 2), pipe);
        if (k == 0 && tied) push_use(s, item, i->slices[k].pointer, false, pipe);
    }
    if (i->has_scratch) push_use(s, item, i->scratch.pointer, true, pipe);
}

static void see_items(synchroniser *s, uint32_t first, uint32_t parent) {
    for (uint32_t at = first; at != NONE && s->status == UIR_STATUS_OK; at = s->g->items.data[at].next) {
        s->parents[at] = parent;
        s->first_steps[at] = s->step;
        if (s->g->items.data[at].kind == UIR_IITEM_INSTRUCTION) {
            see_instruction(s, at);
            s->step++;
        }
        see_items(s, s->g->items.data[at].first_child, at);
    }
}

/* ---- places in the tree ---- */
/* Is the item in the block of `block` (NONE: the body's), at any depth? */
static bool is_in_block(const synchroniser *s, uint32_t item, uint32_t block) {
    if (block == NONE) return true;
    for (uint32_t at = s->parents[item]; at != NONE; at = s->parents[at])
        if (at == block) return true;
    return false;
}

/* The loops around an item, outermost first. */
static uint32_t find_loops(const synchroniser *s, uint32_t item, uint32_t *out_loops) {
    uint32_t count = 0, backwards[MOST_DEPTH];
    for (uint32_t at = s->parents[item]; at != NONE && count < MOST_DEPTH; at = s->parents[at])
        if (s->g->items.data[at].kind == UIR_IITEM_LOOP) backwards[count++] = at;
    for (uint32_t i = 0; i < count; i++) out_loops[i] = backwards[count - 1 - i];
    return count;
}

/* The item of the block that holds another one, or is it. */
static uint32_t child_of(const synchroniser *s, uint32_t item, uint32_t block) {
    while (s->parents[item] != block && s->parents[item] != NONE) item = s->parents[item];
    return item;
}

static bool is_of_place(const synchroniser *s, uint32_t a, uint32_t b) {
    return uir_igraph_place(s->g, a) == uir_igraph_place(s->g, b);
}

/* ---- waits ---- */
/* Does the wait order the earlier use before the later one, wherever either of them runs? */
static bool orders(const synchroniser *s, const wait *w, const use *a, const use *b) {
    return w->needed && !w->distance && (int32_t)w->from == a->pipe && (int32_t)w->to == b->pipe &&
           is_of_place(s, w->pointer, a->pointer) && w->step > a->step && w->step <= b->step &&
           (is_in_block(s, a->item, s->parents[w->before]) || is_in_block(s, b->item, s->parents[w->before]));
}

/* Does it make the use wait for what earlier iterations of the loop did by a pipe? */
static bool orders_back(const synchroniser *s, const wait *w, uint32_t loop, const use *a, const use *b,
                        uint32_t distance) {
    return w->needed && w->distance && w->distance <= distance && (int32_t)w->from == a->pipe &&
           (int32_t)w->to == b->pipe && is_of_place(s, w->pointer, b->pointer) && s->parents[w->before] == loop &&
           w->step <= b->step;
}

static void add_wait(synchroniser *s, uint32_t before, const use *a, const use *b, uint32_t distance) {
    wait w = {before, s->first_steps[before], (uint32_t)a->pipe, (uint32_t)b->pipe, b->pointer, distance, true};
    if (s->status == UIR_STATUS_OK) s->status = uir_vector_push(s->arena, &s->waits, w);
}

/* Is one of the two changed where the other is used, by pipes that do not keep their order? What is read of a place was
 * written there after all that another buffer had to do with it. */
static bool conflict(const synchroniser *s, const use *a, const use *b) {
    bool touches = a->pointer == b->pointer ? a->write || b->write : b->write && is_of_place(s, a->pointer, b->pointer);
    return touches && a->pipe >= 0 && b->pipe >= 0 && a->pipe != b->pipe;
}

static bool is_ordered(const synchroniser *s, const use *a, const use *b) {
    for (uint32_t i = 0; i < s->waits.count; i++)
        if (orders(s, &s->waits.data[i], a, b)) return true;
    return false;
}

/* What a use must wait for of those before it in the text. */
static void wait_forward(synchroniser *s, const use *a, const use *b) {
    if (!is_ordered(s, a, b)) add_wait(s, b->item, a, b, 0);
}

/* A loop in which a use waits for what another one, behind it in the text, did so many iterations before. */
typedef struct turn {
    uint32_t loop, distance;
} turn;

/* All of them: the loops around both. A fresh instance per iteration of a loop further in: that loop has the wait. */
static uint32_t find_turns(const synchroniser *s, const use *a, const use *b, turn out[MOST_DEPTH]) {
    uint32_t loops[MOST_DEPTH], others[MOST_DEPTH], common = 0, owned = 0, turns = 0;
    uint32_t count = find_loops(s, a->item, loops), other_count = find_loops(s, b->item, others);
    const uir_ipointer *p = &s->g->pointers.data[a->pointer];
    if (s->g->device->spaces[p->space].scope != UIR_SCOPE_UNIT) return 0;
    while (common < count && common < other_count && loops[common] == others[common]) common++;
    for (uint32_t d = 0; d < count && d < other_count; d++)
        if (p->by_loop != UINT32_MAX && s->g->items.data[loops[d]].symbol == p->by_loop) owned = d + 1;
    for (uint32_t d = owned ? owned - 1 : 0; d < common; d++)
        out[turns++] = (turn){loops[d], d + 1 == owned ? p->instances : 1};
    return turns;
}

static bool is_ordered_in(const synchroniser *s, const turn *t, const use *a, const use *b) {
    for (uint32_t i = 0; i < s->waits.count; i++)
        if (orders_back(s, &s->waits.data[i], t->loop, a, b, t->distance)) return true;
    return false;
}

/* And of those behind it, in earlier iterations of the loops around both. */
static void wait_backward(synchroniser *s, const use *a, const use *b) {
    turn turns[MOST_DEPTH];
    uint32_t count = find_turns(s, a, b, turns);
    for (uint32_t i = 0; i < count; i++)
        if (!is_ordered_in(s, &turns[i], a, b))
            add_wait(s, child_of(s, b->item, turns[i].loop), a, b, turns[i].distance);
}

/* ---- none too many ---- */
static bool is_ordered_back(const synchroniser *s, const use *a, const use *b) {
    turn turns[MOST_DEPTH];
    uint32_t count = find_turns(s, a, b, turns);
    for (uint32_t i = 0; i < count; i++)
        if (!is_ordered_in(s, &turns[i], a, b)) return false;
    return true;
}

/* Without the wait, is everything still ordered that it is about? */
static bool is_needless(synchroniser *s, uint32_t index) {
    wait *w = &s->waits.data[index];
    bool needless = true;
    w->needed = false;
    for (uint32_t i = 0; i < s->uses.count && needless; i++) {
        const use *a = &s->uses.data[i];
        if (a->pipe != (int32_t)w->from || !is_of_place(s, a->pointer, w->pointer)) continue;
        for (uint32_t k = 0; k < s->uses.count && needless; k++) {
            const use *b = &s->uses.data[k];
            if (b->pipe != (int32_t)w->to || !conflict(s, a, b)) continue;
            if (!w->distance && a->step < b->step) needless = is_ordered(s, a, b);
            if (w->distance && a->step > b->step) needless = is_ordered_back(s, a, b);
        }
    }
    w->needed = !needless;
    return needless;
}

/* ---- the tree with its waits ---- */
/* Gives the item that the wait becomes, in front of what it stands before. */
static uir_status put_wait(synchroniser *s, const wait *w, uint32_t *out_item) {
    uir_iinstruction sync = {.code = UIR_IOP_SYNC,
                             .sync_kind = UIR_SYNC_PIPES,
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
        for (uint32_t i = 0; i < s->waits.count; i++) {
            uint32_t item;
            if (!s->waits.data[i].needed || s->waits.data[i].before != at) continue;
            UIR_TRY(put_wait(s, &s->waits.data[i], &item));
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
    s->uses.count = s->waits.count = s->step = 0;
    see_items(s, *first, NONE);
    for (uint32_t k = 0; k < s->uses.count; k++)
        for (uint32_t i = 0; i < s->uses.count && s->status == UIR_STATUS_OK; i++) {
            const use *a = &s->uses.data[i], *b = &s->uses.data[k];
            if (!conflict(s, a, b)) continue;
            if (a->step < b->step) wait_forward(s, a, b);
            if (a->step > b->step) wait_backward(s, a, b);
        }
    UIR_TRY(s->status);
    for (uint32_t i = 0; i < s->waits.count; i++) (void)is_needless(s, i);
    return put_all(s, first);
}

static uir_status synchronise(synchroniser *s) {
    uir_igraph *g = s->g;
    size_t items = (size_t)g->items.count + 1;
    UIR_TRY_ALLOCATE(s->parents, uir_arena_allocate_array(s->arena, items, sizeof *s->parents));
    UIR_TRY_ALLOCATE(s->first_steps, uir_arena_allocate_array(s->arena, items, sizeof *s->first_steps));
    for (uint32_t p = 0; p < g->phases.count; p++)
        for (uint32_t b = 0; b < g->phases.data[p].body_count; b++)
            UIR_TRY(synchronise_body(s, &g->phases.data[p].bodies[b].first_item));
    UIR_TRY(number_all(s));
    g->synchronised = true;
    return UIR_STATUS_OK;
}

uir_status uir_igraph_synchronise(uir_igraph *igraph) {
    synchroniser s = {.g = igraph};
    uir_arena arena;
    if (igraph->synchronised || igraph->device->pipe_count < 2) return UIR_STATUS_OK;
    uir_arena_init(&arena, &igraph->allocator);
    s.arena = &arena;
    uir_status status = synchronise(&s);
    uir_arena_deinit(&arena);
    return status;
}
