/* The syncs that a synchronised kernel must have.
 *
 * A unit's pipes run at once; each keeps its own order. Where one pipe writes what another reads or writes after it, a
 * `sync.FROM.TO %ptr` stands between; where an iteration reuses what an earlier one used, a `sync.FROM.TO %ptr dist d`
 * stands in the loop before the use, with d at most the number of the buffer's instances. Units of a group that meet in
 * a shared space do so across a `sync.group`. */
#include "ir/igraph_verify.h"

#define MAX_NEST 48
#define MAX_USES 1500

typedef struct use {
    uint32_t pointer, instruction, line;
    bool write;
    int32_t pipe;
    uint32_t loops[MAX_NEST]; /* items of the loops around it */
    uint32_t depth;
} use;

typedef struct sync_place {
    const uir_iinstruction *i;
    uint32_t instruction, line;
    uint32_t blocks[MAX_NEST]; /* items of all blocks around it */
    uint32_t block_count;
    uint32_t loops[MAX_NEST], depth;
} sync_place;

typedef struct collector {
    uir_iverifier *v;
    uir_vector(use) uses;
    uir_vector(sync_place) syncs;
    uint32_t loops[MAX_NEST], depth, blocks[MAX_NEST], block_count;
} collector;

static void push_use(collector *c, const uir_iitem *item, uint32_t pointer, bool write, int32_t pipe) {
    use u = {.pointer = pointer,
             .instruction = item->instruction,
             .line = item->line,
             .write = write,
             .pipe = pipe,
             .depth = c->depth};
    for (uint32_t i = 0; i < c->depth; i++) u.loops[i] = c->loops[i];
    if (uir_vector_push(c->v->arena, &c->uses, u) != UIR_STATUS_OK) c->v->failed = true;
}

static bool is_barrier(const uir_iinstruction *i) {
    return i->code == UIR_IOP_SYNC ? i->sync_kind == UIR_SYNC_GROUP : i->scope == UIR_SCOPE_GROUP;
}

static void push_sync(collector *c, const uir_iitem *item, const uir_iinstruction *i) {
    sync_place s = {
        .i = i, .instruction = item->instruction, .line = item->line, .depth = c->depth, .block_count = c->block_count};
    for (uint32_t k = 0; k < c->depth; k++) s.loops[k] = c->loops[k];
    for (uint32_t k = 0; k < c->block_count; k++) s.blocks[k] = c->blocks[k];
    if (item->guard.count) s.block_count = UINT32_MAX; /* may not run: counts for nothing */
    if (uir_vector_push(c->v->arena, &c->syncs, s) != UIR_STATUS_OK) c->v->failed = true;
}

static void collect_instruction(collector *c, const uir_iitem *item) {
    uir_iverifier *v = c->v;
    const uir_iinstruction *i = &v->g->instructions.data[item->instruction];
    const uir_iop_row *row = uir_iop_get_row(i->code);
    if (row->family == UIR_IOP_FAMILY_SYNC) {
        push_sync(c, item, i);
        return;
    }
    if (is_barrier(i)) push_sync(c, item, i);
    int32_t pipe = i->legal_row != UINT32_MAX ? v->g->device->legal[i->legal_row].pipe : -1;
    bool tied = i->accumulate || row->family == UIR_IOP_FAMILY_MMA;
    for (uint32_t k = 0; k < i->slice_count; k++) {
        bool write = k == 0 || (row->family == UIR_IOP_FAMILY_SCAN && k == 2);
        push_use(c, item, i->slices[k].pointer, write, pipe);
        if (k == 0 && tied) push_use(c, item, i->slices[k].pointer, false, pipe);
    }
    if (i->has_scratch) push_use(c, item, i->scratch.pointer, true, pipe);
}

static void collect_items(collector *c, uint32_t first) {
    const uir_igraph *g = c->v->g;
    for (uint32_t at = first; at != UINT32_MAX; at = g->items.data[at].next) {
        const uir_iitem *item = &g->items.data[at];
        if (item->kind == UIR_IITEM_INSTRUCTION) {
            collect_instruction(c, item);
            continue;
        }
        if (item->first_child == UINT32_MAX || c->depth == MAX_NEST || c->block_count == MAX_NEST) continue;
        bool loop = item->kind == UIR_IITEM_LOOP, block = item->kind != UIR_IITEM_RUN;
        if (loop) c->loops[c->depth++] = at;
        if (block) c->blocks[c->block_count++] = at;
        collect_items(c, item->first_child);
        if (block) c->block_count--;
        if (loop) c->depth--;
    }
}

/* Is every block around the sync also around the instruction whose uses it orders? Then it runs whenever that does. */
static bool surrounds(const collector *c, const sync_place *s, uint32_t instruction) {
    const uir_igraph *g = c->v->g;
    if (s->block_count == UINT32_MAX) return false;
    for (uint32_t b = 0; b < s->block_count; b++) {
        /* A block's instructions are numbered in a row, as they stand in the text. */
        uint32_t low = UINT32_MAX, high = 0;
        uint32_t stack[256], count = 0;
        stack[count++] = g->items.data[s->blocks[b]].first_child;
        while (count > 0) {
            for (uint32_t at = stack[--count]; at != UINT32_MAX; at = g->items.data[at].next) {
                const uir_iitem *item = &g->items.data[at];
                if (item->kind == UIR_IITEM_INSTRUCTION) {
                    if (item->instruction < low) low = item->instruction;
                    if (item->instruction > high) high = item->instruction;
                } else if (item->first_child != UINT32_MAX && count < 256) {
                    stack[count++] = item->first_child;
                }
            }
        }
        if (instruction < low || instruction > high) return false;
    }
    return true;
}

static bool find_forward(const collector *c, const use *a, const use *b) {
    for (uint32_t i = 0; i < c->syncs.count; i++) {
        const sync_place *s = &c->syncs.data[i];
        if (s->i->sync_kind == UIR_SYNC_PIPES && s->i->sync_distance == 0 &&
            (s->i->sync_pointer == a->pointer || s->i->sync_pointer == UINT32_MAX) &&
            (int32_t)s->i->sync_from == a->pipe && (int32_t)s->i->sync_to == b->pipe &&
            s->instruction > a->instruction && s->instruction < b->instruction &&
            (surrounds(c, s, a->instruction) || surrounds(c, s, b->instruction)))
            return true;
    }
    return false;
}

static const char *pipe_name(const collector *c, int32_t pipe) {
    return c->v->g->device->pipes[pipe];
}

/* The wait of `b` for what `a` did `distance` iterations of the loop before. */
static void want_backward(collector *c, const use *a, const use *b, uint32_t loop, uint32_t distance) {
    const uir_ipointer *p = uir_iverify_pointer(c->v, a->pointer);
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < c->syncs.count; i++) {
        const sync_place *s = &c->syncs.data[i];
        if (s->i->sync_kind != UIR_SYNC_PIPES || s->i->sync_distance == 0 || s->i->sync_pointer != a->pointer ||
            (int32_t)s->i->sync_from != a->pipe || (int32_t)s->i->sync_to != b->pipe ||
            s->instruction > b->instruction || s->depth == 0 || s->loops[s->depth - 1] != loop ||
            !surrounds(c, s, b->instruction))
            continue;
        if (s->i->sync_distance <= distance) return;
        wrong = s->line;
    }
    const char *name = c->v->g->symbols.data[c->v->g->items.data[loop].symbol].name;
    if (wrong)
        uir_iverify_report(c->v, wrong,
                           "wrong instance: %%%s has %u by loop %s, so a later wait than dist %u lets an instance be "
                           "overwritten in use",
                           p->name, distance, name, distance);
    else
        uir_iverify_report(c->v, b->line,
                           "missing sync.%s.%s %%%s dist %u in loop %s: line %u uses what line %u reuses",
                           pipe_name(c, a->pipe), pipe_name(c, b->pipe), p->name, distance, name, a->line, b->line);
}

static bool is_local(const collector *c, uint32_t pointer) {
    return uir_iverify_space(c->v, pointer)->scope == UIR_SCOPE_UNIT;
}

static void compare_uses(collector *c, const use *a, const use *b) {
    bool conflict =
        a->pointer == b->pointer && (a->write || b->write) && a->pipe >= 0 && b->pipe >= 0 && a->pipe != b->pipe;
    const uir_igraph *g = c->v->g;
    if (!conflict) return;
    const uir_ipointer *p = uir_iverify_pointer(c->v, a->pointer);
    if (a->instruction < b->instruction && !find_forward(c, a, b))
        uir_iverify_report(c->v, b->line, "missing sync.%s.%s %%%s between lines %u and %u", pipe_name(c, a->pipe),
                           pipe_name(c, b->pipe), p->name, a->line, b->line);
    /* The same two, an iteration or more apart. */
    if (!is_local(c, a->pointer)) return;
    for (uint32_t d = 0; d < a->depth && d < b->depth && a->loops[d] == b->loops[d]; d++) {
        bool own = p->by_loop != UINT32_MAX && g->items.data[a->loops[d]].symbol == p->by_loop;
        bool inner_owned = false; /* a fresh instance per iteration of a loop further in: that loop has the wait */
        for (uint32_t k = d + 1; k < a->depth && k < b->depth; k++)
            inner_owned = inner_owned || (p->by_loop != UINT32_MAX && g->items.data[a->loops[k]].symbol == p->by_loop);
        if (inner_owned) continue;
        if (a->instruction > b->instruction) want_backward(c, a, b, a->loops[d], own ? p->instances : 1);
    }
}

/* ---- units of a group ---- */
static const use *find_use(const collector *c, uint32_t instruction) {
    for (uint32_t i = 0; i < c->uses.count; i++)
        if (c->uses.data[i].instruction == instruction) return &c->uses.data[i];
    return NULL;
}

static bool in_loop(const uint32_t *loops, uint32_t depth, uint32_t loop) {
    for (uint32_t i = 0; i < depth; i++)
        if (loops[i] == loop) return true;
    return false;
}

/* From the use at `a` to that at `b` later in the text, and around every loop that holds both, the units meet. */
bool uir_iverify_units_meet(uir_iverifier *v, uint32_t phase, uint32_t body, uint32_t a, uint32_t b) {
    collector c = {.v = v};
    collect_items(&c, v->g->phases.data[phase].bodies[body].first_item);
    const use *first = find_use(&c, a < b ? a : b), *second = find_use(&c, a < b ? b : a);
    bool between = false;
    if (!first || !second) return false;
    for (uint32_t s = 0; s < c.syncs.count; s++) {
        const sync_place *place = &c.syncs.data[s];
        between = between || (is_barrier(place->i) && place->instruction > first->instruction &&
                              place->instruction < second->instruction &&
                              (surrounds(&c, place, first->instruction) || surrounds(&c, place, second->instruction)));
    }
    for (uint32_t l = 0; l < first->depth && between; l++) {
        bool around = !in_loop(second->loops, second->depth, first->loops[l]);
        for (uint32_t s = 0; s < c.syncs.count && !around; s++) {
            const sync_place *place = &c.syncs.data[s];
            around = is_barrier(place->i) &&
                     (place->instruction > second->instruction || place->instruction < first->instruction) &&
                     in_loop(place->loops, place->depth, first->loops[l]) && surrounds(&c, place, first->instruction);
        }
        between = around;
    }
    return between;
}

void uir_iverify_syncs(uir_iverifier *v) {
    if (!v->g->synchronised) return;
    for (uint32_t ph = 0; ph < v->g->phases.count; ph++) {
        const uir_iphase *phase = &v->g->phases.data[ph];
        for (uint32_t b = 0; b < phase->body_count; b++) {
            collector c = {.v = v};
            collect_items(&c, phase->bodies[b].first_item);
            if (c.uses.count > MAX_USES) {
                v->terms.exhausted = true;
                return;
            }
            for (uint32_t i = 0; i < c.uses.count; i++)
                for (uint32_t k = 0; k < c.uses.count; k++) compare_uses(&c, &c.uses.data[i], &c.uses.data[k]);
        }
    }
}
