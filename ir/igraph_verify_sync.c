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

/* Instructions are numbered as they stand in the text: those of a block in a row. */
typedef struct range {
    uint32_t first, last;
} range;

typedef struct sync_place {
    const uir_iinstruction *i;
    uint32_t instruction, line;
    uint32_t block; /* the innermost block around it: of those that hold an instruction, all do when this does */
    bool certain;   /* runs whenever its block does */
    uint32_t loops[MAX_NEST], depth;
} sync_place;

/* What one body has, in the order of its text. */
typedef struct uir_iverify_body {
    uir_iverifier *v;
    uir_vector(use) uses;
    uir_vector(sync_place) syncs;
    uir_vector(range) blocks; /* the first is the body */
    uint32_t loops[MAX_NEST], depth, block;
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
    sync_place s = {.i = i,
                    .instruction = item->instruction,
                    .line = item->line,
                    .block = c->block,
                    .certain = item->guard.count == 0,
                    .depth = c->depth};
    for (uint32_t k = 0; k < c->depth; k++) s.loops[k] = c->loops[k];
    if (uir_vector_push(c->v->arena, &c->syncs, s) != UIR_STATUS_OK) c->v->failed = true;
}

static void collect_instruction(collector *c, const uir_iitem *item) {
    uir_iverifier *v = c->v;
    const uir_iinstruction *i = &v->g->instructions.data[item->instruction];
    const uir_iop_row *row = uir_iop_get_row(i->code);
    c->blocks.data[c->block].last = item->instruction;
    if (row->family == UIR_IOP_FAMILY_SYNC) {
        push_sync(c, item, i);
        return;
    }
    if (is_barrier(i)) push_sync(c, item, i);
    int32_t pipe = uir_igraph_get_pipe(v->g, i);
    bool tied = i->accumulate || row->family == UIR_IOP_FAMILY_MMA;
    for (uint32_t k = 0; k < i->slice_count; k++) {
        bool write = k == 0 || (row->family == UIR_IOP_FAMILY_SCAN && k == 2);
        push_use(c, item, i->slices[k].pointer, write, pipe);
        if (k == 0 && tied) push_use(c, item, i->slices[k].pointer, false, pipe);
    }
    if (i->has_scratch) push_use(c, item, i->scratch.pointer, true, pipe);
}

static void collect_items(collector *c, uint32_t first);

/* Nesting is the parser's: at most MAX_NEST deep. */
static void collect_block(collector *c, uint32_t at) {
    const uir_iitem *item = &c->v->g->items.data[at];
    bool loop = item->kind == UIR_IITEM_LOOP, block = item->kind != UIR_IITEM_RUN;
    uint32_t outer = c->block;
    if (item->first_child == UINT32_MAX || c->depth == MAX_NEST) return;
    if (block) {
        c->block = c->blocks.count;
        if (uir_vector_push(c->v->arena, &c->blocks, ((range){UINT32_MAX, 0})) != UIR_STATUS_OK) c->v->failed = true;
    }
    if (loop) c->loops[c->depth++] = at;
    if (!c->v->failed) collect_items(c, item->first_child);
    if (loop) c->depth--;
    if (block) {
        range inner = c->blocks.data[c->block], *around = &c->blocks.data[outer];
        c->block = outer;
        if (inner.first < around->first) around->first = inner.first;
        if (inner.last > around->last) around->last = inner.last;
    }
}

static void collect_items(collector *c, uint32_t first) {
    const uir_igraph *g = c->v->g;
    for (uint32_t at = first; at != UINT32_MAX && !c->v->failed; at = g->items.data[at].next) {
        const uir_iitem *item = &g->items.data[at];
        range *around = &c->blocks.data[c->block];
        if (item->kind != UIR_IITEM_INSTRUCTION) {
            collect_block(c, at);
            continue;
        }
        if (item->instruction < around->first) around->first = item->instruction;
        collect_instruction(c, item);
    }
}

/* Collected once; NULL when there is no memory. */
static const collector *body_of(uir_iverifier *v, uint32_t phase, uint32_t body) {
    const uir_igraph *g = v->g;
    uint32_t index = body, count = 0;
    for (uint32_t k = 0; k < g->phases.count; k++) {
        if (k < phase) index += g->phases.data[k].body_count;
        count += g->phases.data[k].body_count;
    }
    if (!v->bodies) v->bodies = uir_arena_allocate_array(v->arena, count, sizeof *v->bodies);
    if (v->bodies && !v->bodies[index]) {
        collector *c = uir_arena_allocate_array(v->arena, 1, sizeof *c);
        v->bodies[index] = c;
        if (!c) {
            v->failed = true;
            return NULL;
        }
        c->v = v;
        if (uir_vector_push(v->arena, &c->blocks, ((range){UINT32_MAX, 0})) != UIR_STATUS_OK) v->failed = true;
        if (!v->failed) collect_items(c, g->phases.data[phase].bodies[body].first_item);
    }
    if (!v->bodies) v->failed = true;
    return v->failed ? NULL : v->bodies[index];
}

/* A sync over one buffer of a place is over all of them. */
static bool is_of_place(const collector *c, uint32_t sync_pointer, uint32_t pointer) {
    const uir_igraph *g = c->v->g;
    return sync_pointer != UINT32_MAX && uir_igraph_place(g, sync_pointer) == uir_igraph_place(g, pointer);
}

/* Is every block around the sync also around the instruction whose uses it orders? Then it runs whenever that does. */
static bool surrounds(const collector *c, const sync_place *s, uint32_t instruction) {
    const range *block = &c->blocks.data[s->block];
    return s->certain && block->first <= instruction && instruction <= block->last;
}

/* Of a use, the syncs after it that its pipe signals for its pointer, up to some place in the text: how far their
 * blocks reach, by the pipe that waits. */
typedef struct forward {
    const use *from;
    uint32_t next; /* sync to look at */
    range reached[UIR_DEVICE_MAX_PIPES];
} forward;

static void begin_forward(forward *f, const use *from) {
    f->from = from;
    f->next = 0;
    for (int i = 0; i < UIR_DEVICE_MAX_PIPES; i++) f->reached[i] = (range){UINT32_MAX, 0};
}

/* Does one stand between the use and the later one `b`, wherever either of them runs? Asked in the order of the text.
 */
static bool find_forward(const collector *c, forward *f, const use *b) {
    for (; f->next < c->syncs.count && c->syncs.data[f->next].instruction < b->instruction; f->next++) {
        const sync_place *s = &c->syncs.data[f->next];
        if (s->i->sync_kind != UIR_SYNC_PIPES || s->i->sync_distance != 0 || !s->certain ||
            (s->i->sync_pointer != UINT32_MAX && !is_of_place(c, s->i->sync_pointer, f->from->pointer)) ||
            (int32_t)s->i->sync_from != f->from->pipe || s->instruction <= f->from->instruction)
            continue;
        const range *block = &c->blocks.data[s->block];
        range *reached = &f->reached[s->i->sync_to];
        if (block->first < reached->first) reached->first = block->first;
        if (block->last > reached->last) reached->last = block->last;
    }
    const range *reached = &f->reached[b->pipe];
    return reached->first <= f->from->instruction || reached->last >= b->instruction;
}

/* The syncs before a use, in one of its loops, that wait for earlier iterations' uses of one pipe. */
typedef struct backward {
    uint32_t distance; /* the least; 0: there is none */
    uint32_t line;     /* of the last */
} backward;

typedef struct comparison {
    const collector *c;
    backward **before; /* by use: by the signalling pipe and the depth of the loop */
} comparison;

static backward *find_backward(const comparison *m, uint32_t use, uint32_t pipe, uint32_t depth) {
    return &m->before[use][pipe * m->c->uses.data[use].depth + depth];
}

static bool begin_comparison(comparison *m, const collector *c) {
    uir_arena *arena = c->v->arena;
    *m = (comparison){c, uir_arena_allocate_array(arena, (size_t)c->uses.count + 1, sizeof *m->before)};
    for (uint32_t u = 0; m->before && u < c->uses.count; u++) {
        const use *b = &c->uses.data[u];
        m->before[u] = uir_arena_allocate_array(arena, (size_t)UIR_DEVICE_MAX_PIPES * b->depth + 1, sizeof **m->before);
        if (!m->before[u]) return false;
        for (uint32_t i = 0; i < c->syncs.count && c->syncs.data[i].instruction <= b->instruction; i++) {
            const sync_place *s = &c->syncs.data[i];
            if (s->i->sync_kind != UIR_SYNC_PIPES || s->i->sync_distance == 0 ||
                !is_of_place(c, s->i->sync_pointer, b->pointer) || (int32_t)s->i->sync_to != b->pipe || s->depth == 0 ||
                s->depth > b->depth || b->loops[s->depth - 1] != s->loops[s->depth - 1] ||
                !surrounds(c, s, b->instruction))
                continue;
            backward *known = find_backward(m, u, s->i->sync_from, s->depth - 1);
            if (!known->distance || s->i->sync_distance < known->distance) known->distance = s->i->sync_distance;
            known->line = s->line;
        }
    }
    return m->before != NULL;
}

static const char *pipe_name(const collector *c, int32_t pipe) {
    return c->v->g->device->pipes[pipe];
}

/* The wait of use `b` for what `a` did `distance` iterations before of the loop that is `depth` deep around both. */
static void want_backward(const comparison *m, const use *a, uint32_t b, uint32_t depth, uint32_t distance) {
    const collector *c = m->c;
    const uir_ipointer *p = uir_iverify_pointer(c->v, a->pointer);
    const use *later = &c->uses.data[b];
    const backward *known = find_backward(m, b, (uint32_t)a->pipe, depth);
    const char *loop = c->v->g->symbols.data[c->v->g->items.data[later->loops[depth]].symbol].name;
    if (known->distance && known->distance <= distance) return;
    if (known->distance)
        uir_iverify_report(c->v, known->line,
                           "wrong instance: %%%s has %u by loop %s, so a later wait than dist %u lets an instance be "
                           "overwritten in use",
                           p->name, distance, loop, distance);
    else
        uir_iverify_report(
            c->v, later->line, "missing sync.%s.%s %%%s dist %u in loop %s: line %u uses what line %u reuses",
            pipe_name(c, a->pipe), pipe_name(c, later->pipe), p->name, distance, loop, a->line, later->line);
}

static void compare_uses(const comparison *m, forward *f, uint32_t later) {
    const collector *c = m->c;
    const use *a = f->from, *b = &c->uses.data[later];
    /* What is read of a place was written there after all that another buffer had to do with it. */
    bool conflict =
        (a->pointer == b->pointer ? a->write || b->write : b->write && is_of_place(c, a->pointer, b->pointer)) &&
        a->pipe >= 0 && b->pipe >= 0 && a->pipe != b->pipe;
    const uir_igraph *g = c->v->g;
    if (!conflict) return;
    const uir_ipointer *p = uir_iverify_pointer(c->v, a->pointer);
    if (a->instruction < b->instruction && !find_forward(c, f, b))
        uir_iverify_report(c->v, b->line, "missing sync.%s.%s %%%s between lines %u and %u", pipe_name(c, a->pipe),
                           pipe_name(c, b->pipe), p->name, a->line, b->line);
    /* Buffers of a unit are reused by the next iteration of a loop around both. */
    if (a->instruction <= b->instruction || uir_iverify_space(c->v, a->pointer)->scope != UIR_SCOPE_UNIT) return;
    uint32_t common = 0, owned = 0; /* loops around both; up to the innermost whose iterations have instances, plus 1 */
    for (; common < a->depth && common < b->depth && a->loops[common] == b->loops[common]; common++) {
    }
    for (uint32_t d = 0; d < a->depth && d < b->depth; d++)
        if (p->by_loop != UINT32_MAX && g->items.data[a->loops[d]].symbol == p->by_loop) owned = d + 1;
    /* A fresh instance per iteration of a loop further in: that loop has the wait. */
    for (uint32_t d = owned ? owned - 1 : 0; d < common; d++)
        want_backward(m, a, later, d, d + 1 == owned ? p->instances : 1);
}

void uir_iverify_syncs(uir_iverifier *v) {
    if (!v->g->synchronised) return;
    for (uint32_t ph = 0; ph < v->g->phases.count; ph++) {
        const uir_iphase *phase = &v->g->phases.data[ph];
        for (uint32_t b = 0; b < phase->body_count; b++) {
            const collector *c = body_of(v, ph, b);
            comparison m;
            if (c && c->uses.count > MAX_USES) v->terms.exhausted = true;
            if (!c || v->terms.exhausted) return;
            if (!begin_comparison(&m, c)) {
                v->failed = true;
                return;
            }
            for (uint32_t i = 0; i < c->uses.count; i++) {
                forward f;
                begin_forward(&f, &c->uses.data[i]);
                for (uint32_t k = 0; k < c->uses.count; k++) compare_uses(&m, &f, k);
            }
        }
    }
}

/* ---- units of a group ---- */
/* The first use by the instruction; NULL: it has none. */
static const use *find_use(const collector *c, uint32_t instruction) {
    uint32_t low = 0, high = c->uses.count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (c->uses.data[middle].instruction < instruction)
            low = middle + 1;
        else
            high = middle;
    }
    return low < c->uses.count && c->uses.data[low].instruction == instruction ? &c->uses.data[low] : NULL;
}

static bool in_loop(const uint32_t *loops, uint32_t depth, uint32_t loop) {
    for (uint32_t i = 0; i < depth; i++)
        if (loops[i] == loop) return true;
    return false;
}

/* From the use at `a` to that at `b` later in the text, and around every loop that holds both, the units meet. */
bool uir_iverify_units_meet(uir_iverifier *v, uint32_t phase, uint32_t body, uint32_t a, uint32_t b) {
    const collector *c = body_of(v, phase, body);
    const use *first = c ? find_use(c, a < b ? a : b) : NULL, *second = c ? find_use(c, a < b ? b : a) : NULL;
    bool between = false;
    if (!first || !second) return false;
    uir_term_spend(&v->terms, c->syncs.count);
    for (uint32_t s = 0; s < c->syncs.count; s++) {
        const sync_place *place = &c->syncs.data[s];
        between = between || (is_barrier(place->i) && place->instruction > first->instruction &&
                              place->instruction < second->instruction &&
                              (surrounds(c, place, first->instruction) || surrounds(c, place, second->instruction)));
    }
    for (uint32_t l = 0; l < first->depth && between; l++) {
        bool around = !in_loop(second->loops, second->depth, first->loops[l]);
        for (uint32_t s = 0; s < c->syncs.count && !around; s++) {
            const sync_place *place = &c->syncs.data[s];
            around = is_barrier(place->i) &&
                     (place->instruction > second->instruction || place->instruction < first->instruction) &&
                     in_loop(place->loops, place->depth, first->loops[l]) && surrounds(c, place, first->instruction);
        }
        between = around;
    }
    return between;
}
