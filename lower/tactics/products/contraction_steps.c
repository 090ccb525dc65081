/* Carrying out what was decided for contractions, by schedule primitives.
 *
 * The first block that reads the sums is the anchor: its loops are tiled and shared out. The sums are computed at its
 * tile, the factors' blocks where they are read, and what follows at the tile's rows (or at the tile, when it goes out
 * across). Then all that is on chip shrinks to what is alive, and lies as mma wants it.
 *
 * Products side by side have the loops of the one that has most columns: each one's anchor gets all of them, its own
 * extended, and they are merged. Their sums begin together and go along the depth together, and the first product
 * copies the rows that all of them take. */
#include "lower/tactics/products/contraction_steps.h"
#include "lower/internal.h"

#include <stdio.h>
#include <string.h>

#define STATEMENT(f, id)  (&(f)->statements.data[id])
#define EXPRESSION(f, id) (&(f)->expressions.data[id])
#define NONE              UIR_LOOP_NONE

enum { MAX_PARALLEL = 4, MAX_LOOPS = UIR_CONTRACTION_MAX_LOOPS };

/* ---- what is computed before ---- */
static bool reads_any(const uir_loop_function *f, uint32_t block, const bool *tensors) {
    for (uint32_t t = 0; t < f->tensors.count; t++)
        if (tensors[t] && uir_loop_block_reads(f, block, t)) return true;
    return false;
}

uir_status uir_contraction_inline(uir_schedule *s) {
    uir_loop_function *f = uir_schedule_function(s);
    uint32_t count = uir_schedule_blocks(s, NONE, NULL, 0), *blocks;
    bool *follows; /* per tensor: it depends on sums */
    UIR_TRY_ALLOCATE(follows, uir_arena_allocate_array(&f->arena, f->tensors.count + 1, sizeof *follows));
    UIR_TRY_ALLOCATE(blocks, uir_arena_allocate_array(&f->arena, count + 1, sizeof *blocks));
    uir_schedule_blocks(s, NONE, blocks, count);
    for (uint32_t i = 0; i < count; i++) {
        if (!uir_loop_is_used_as(f, blocks[i], UIR_LOOP_USE_CONTRACTION)) continue;
        const uir_loop_statement *sum = STATEMENT(f, STATEMENT(f, blocks[i])->first_child);
        for (uint32_t t = 0; t < sum->target_count; t++) follows[sum->targets[t].tensor] = true;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uir_loop_statement *store = STATEMENT(f, STATEMENT(f, blocks[i])->first_child);
        if (reads_any(f, blocks[i], follows)) {
            for (uint32_t t = 0; t < store->target_count; t++) follows[store->targets[t].tensor] = true;
        } else if (store->kind == UIR_LOOP_STATEMENT_STORE &&
                   f->tensors.data[store->targets[0].tensor].role == UIR_LOOP_ROLE_TEMP) {
            UIR_TRY(uir_schedule_inline(s, blocks[i]));
        }
    }
    return UIR_STATUS_OK;
}

void uir_contraction_plan_find_crossed(uir_contraction_plan *p) {
    uint32_t m = p->sides[UIR_CONTRACTION_M].axis;
    if (m == NONE || p->sides[UIR_CONTRACTION_N].axis == NONE) return;
    for (uint32_t i = 0; i < p->c.after_count; i++) {
        const uir_loop_statement *store = STATEMENT(p->f, uir_contraction_plan_statement_of(p->f, p->c.after[i].id));
        const uir_loop_tensor *t = &p->f->tensors.data[store->targets[0].tensor];
        if (t->role != UIR_LOOP_ROLE_OUT || uir_contraction_plan_last_axis(p, &p->c.after[i]) != m) continue;
        const uir_loop_expression *value = EXPRESSION(p->f, store->values[0]);
        p->by_tiles = true;
        p->crossed += value->kind != UIR_LOOP_LOAD || p->f->tensors.data[value->load.tensor].role != UIR_LOOP_ROLE_TEMP;
    }
}

/* ---- loops of blocks ---- */
typedef uir_contraction_steps steps;

/* The loop that an iteration variable of a naive block is. */
static uint32_t loop_of_iter(const steps *t, uint32_t block, uint32_t iter) {
    uint32_t loops[MAX_LOOPS], count = uir_schedule_loops(t->s, block, loops, MAX_LOOPS);
    for (uint32_t i = 0; i < count && i < MAX_LOOPS; i++)
        if (uir_dim_mentions(t->f->dims, STATEMENT(t->f, block)->iters[iter].value, STATEMENT(t->f, loops[i])->symbol))
            return loops[i];
    return NONE;
}

/* The loops around a block that stand in `under` (NONE: all). */
uint32_t uir_contraction_loops_below(const steps *t, uint32_t block, uint32_t under, uint32_t *out) {
    uint32_t loops[MAX_LOOPS], all = uir_schedule_loops(t->s, block, loops, MAX_LOOPS), count = 0, first = 0;
    if (all > MAX_LOOPS) all = MAX_LOOPS;
    for (uint32_t i = 0; i < all; i++)
        if (loops[i] == under) first = i + 1;
    for (uint32_t i = first; i < all; i++) out[count++] = loops[i];
    return count;
}

/* Of those, the one that decides the iteration variable; NONE: it stands still there. */
uint32_t uir_contraction_loop_below(const steps *t, uint32_t block, uint32_t under, uint32_t iter) {
    uint32_t loops[MAX_LOOPS], count = uir_contraction_loops_below(t, block, under, loops);
    for (uint32_t i = 0; i < count; i++)
        if (uir_dim_mentions(t->f->dims, STATEMENT(t->f, block)->iters[iter].value, STATEMENT(t->f, loops[i])->symbol))
            return loops[i];
    return NONE;
}

static uint32_t iter_of_axis(const steps *t, const uir_contraction_block *b, uint32_t axis) {
    for (uint32_t i = 0; axis != NONE && i < STATEMENT(t->f, b->id)->iter_count; i++)
        if (b->axes[i] == axis) return i;
    return NONE;
}

/* Loops in this order, unless they stand so. */
uir_status uir_contraction_order(steps *t, const uint32_t *loops, uint32_t count) {
    if (count < 2) return UIR_STATUS_OK;
    uint32_t now[MAX_LOOPS], all = uir_schedule_loops(t->s, loops[count - 1], now, MAX_LOOPS), at = 0;
    for (uint32_t i = 0; i < all && i < MAX_LOOPS; i++) at += at < count && now[i] == loops[at];
    if (at + 1 == count) return UIR_STATUS_OK;
    return uir_schedule_reorder(t->s, loops, count);
}

/* ---- the anchor ---- */
typedef struct tiled {
    uint32_t outer, inner; /* loops; NONE: there is none */
} tiled;

static uir_status tile_side(steps *t, uint32_t class, tiled *out) {
    const uir_contraction_side *side = &t->p->sides[class];
    const uir_contraction_block *anchor = &t->p->c.after[0];
    *out = (tiled){NONE, NONE};
    uint32_t iter = iter_of_axis(t, anchor, side->axis);
    if (iter == NONE) return UIR_STATUS_OK;
    out->inner = loop_of_iter(t, anchor->id, iter);
    bool one = !uir_dim_equal(side->extent, t->leader->sides[class].extent) && /* beside more */
               uir_dim_compare(t->f->dims, side->tile, UIR_RELATION_GE, side->extent) == UIR_TRUE;
    if (!side->split || one) { /* a loop of known length: so is all that is kept of it */
        bool known = uir_contraction_plan_is_const(t->p, side->extent, NULL);
        return known ? UIR_STATUS_OK : uir_schedule_extend(t->s, out->inner, side->tile);
    }
    return uir_schedule_split(t->s, out->inner, side->tile, &out->outer, &out->inner);
}

/* A loop that all products share: over an axis that is not tiled, the `place`th of its class (or, of rows, what is that
 * of the first product), or over the tiles of a class. */
typedef struct level {
    uint32_t class, place;
    bool tiles, serial;
    uir_dim extent; /* the greatest of all products' */
} level;

typedef struct levels {
    level data[MAX_LOOPS];
    uint32_t count;
} levels;

/* Of a product's axes of a class that are not tiled and have a loop, the one of that number. */
static uint32_t nth_loose(const steps *t, uint32_t class, uint32_t place) {
    const uir_contraction_plan *p = t->p;
    for (uint32_t a = 0; a < p->c.axis_count; a++) {
        uint32_t iter = iter_of_axis(t, &p->c.after[0], a);
        if (p->c.axes[a].class != class || iter == NONE || p->sides[class].axis == a) continue;
        if (loop_of_iter(t, p->c.after[0].id, iter) != NONE && place-- == 0) return a;
    }
    return NONE;
}

/* The product's axis that a level goes over; NONE: it has none there. */
static uint32_t axis_of_level(const steps *t, const steps *first, const level *l) {
    if (l->class != UIR_CONTRACTION_M || t == first) return nth_loose(t, l->class, l->place);
    uint32_t axis = nth_loose(first, l->class, l->place);
    if (axis == NONE) return NONE;
    return uir_contraction_plan_axis_like(t->p, l->class, &STATEMENT(t->f, first->p->c.update)->iters[axis]);
}

static bool mentions_class(const uir_contraction *c, uir_dim index, uint32_t class) {
    const uir_loop_statement *block = STATEMENT(c->f, c->update);
    for (uint32_t a = 0; a < c->axis_count; a++)
        if (c->axes[a].class == class && uir_dim_mentions(c->f->dims, index, block->iters[a].symbol)) return true;
    return false;
}

/* Of a factor's loads that rows lead to: do batches go along a dim of some, and along none by themselves? */
static bool reads_windows_by_batch(const uir_contraction *c, uint32_t expression, bool *out_found) {
    const uir_loop_expression *e = EXPRESSION(c->f, expression);
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++)
        if (!reads_windows_by_batch(c, e->arguments[i], out_found)) return false;
    uint32_t rank = e->kind == UIR_LOOP_LOAD ? c->f->tensors.data[e->load.tensor].rank : 0;
    bool rows = false;
    for (uint32_t d = 0; d < rank; d++) rows |= mentions_class(c, e->load.indices[d], UIR_CONTRACTION_M);
    for (uint32_t d = 0; rows && d < rank; d++) {
        if (!mentions_class(c, e->load.indices[d], UIR_CONTRACTION_BATCH)) continue;
        if (!mentions_class(c, e->load.indices[d], UIR_CONTRACTION_M)) return false;
        *out_found = true;
    }
    return true;
}

/* Do all batches read the same elements, each in its own places of their windows, as those of Winograd's formula do?
 * Then rows go around batches: the elements are near for all of them, and a unit has its part of the image, as in other
 * kernels. */
static bool shares_rows(const uir_contraction *c) {
    bool found = false;
    return reads_windows_by_batch(c, c->factors[0], &found) && found;
}

/* Over what is not tiled, and over tiles. The first ones are shared out, four at most: the tiles' always, where there
 * may be several. */
static uir_status find_levels(const steps *products, uint32_t count, const uir_contraction_plan *leader, levels *out) {
    static const uint32_t orders[2][3] = {{UIR_CONTRACTION_BATCH, UIR_CONTRACTION_N, UIR_CONTRACTION_M},
                                          {UIR_CONTRACTION_M, UIR_CONTRACTION_BATCH, UIR_CONTRACTION_N}};
    const uint32_t *classes = orders[count == 1 && shares_rows(&leader->c)];
    uir_dims *dims = leader->f->dims;
    uint32_t taken = leader->sides[UIR_CONTRACTION_M].split + leader->sides[UIR_CONTRACTION_N].split;
    for (uint32_t i = 0; i < 3; i++) {
        const uir_contraction_side *side = &leader->sides[classes[i]];
        for (uint32_t place = 0;; place++) {
            level l = {.class = classes[i], .place = place};
            for (uint32_t k = 0; k < count; k++) {
                uint32_t axis = axis_of_level(&products[k], products, &l);
                if (axis == NONE) continue;
                uir_dim extent = products[k].p->c.axes[axis].extent;
                l.extent = l.extent.id ? uir_dim_max(dims, l.extent, extent) : extent;
            }
            if (!l.extent.id) break;
            if (out->count == MAX_LOOPS) return uir_contraction_refuse(&leader->c, "too many axes");
            l.serial = taken++ >= MAX_PARALLEL;
            out->data[out->count++] = l;
        }
        if (classes[i] == UIR_CONTRACTION_BATCH || !side->split || side->axis == NONE) continue;
        if (out->count == MAX_LOOPS) return uir_contraction_refuse(&leader->c, "too many axes");
        out->data[out->count++] =
            (level){.class = classes[i], .tiles = true, .extent = uir_dim_ceildiv(dims, side->extent, side->tile)};
    }
    return UIR_STATUS_OK;
}

/* The product's loop of a level, as long as all of them: its own one, or one that turns once. */
static uir_status open_level(steps *t, const steps *first, const level *l, const tiled *sides, uint32_t *out_loop) {
    const uir_contraction_block *anchor = &t->p->c.after[0];
    if (l->tiles) {
        *out_loop = sides[l->class].outer;
    } else {
        uint32_t axis = axis_of_level(t, first, l);
        *out_loop = axis == NONE ? NONE : loop_of_iter(t, anchor->id, iter_of_axis(t, anchor, axis));
    }
    if (*out_loop == NONE) {
        uint32_t loops[MAX_LOOPS];
        if (!uir_schedule_loops(t->s, anchor->id, loops, MAX_LOOPS))
            return uir_contraction_refuse(&t->p->c, "no axis is tiled");
        UIR_TRY(uir_schedule_add_unit_loop(t->s, loops[0], out_loop));
    }
    if (uir_dim_equal(STATEMENT(t->f, *out_loop)->extent, l->extent)) return UIR_STATUS_OK;
    return uir_schedule_extend(t->s, *out_loop, l->extent);
}

/* Outer loops, the shared ones first; then a tile. */
static uir_status tile_anchor(steps *t, const steps *first, const levels *shared) {
    const uir_contraction_plan *p = t->p;
    tiled sides[4];
    uint32_t all[MAX_LOOPS + 2], count = 0;
    for (uint32_t class = UIR_CONTRACTION_M; class <= UIR_CONTRACTION_N; class ++)
        UIR_TRY(tile_side(t, class, &sides[class]));
    for (uint32_t serial = 0; serial < 2; serial++)
        for (uint32_t i = 0; i < shared->count; i++)
            if (shared->data[i].serial == serial)
                UIR_TRY(open_level(t, first, &shared->data[i], sides, &t->outer[t->outer_count++]));
    for (uint32_t i = 0; i < t->outer_count; i++) all[count++] = t->outer[i];
    t->unit = count ? all[count - 1] : NONE;
    for (uint32_t class = UIR_CONTRACTION_M; class <= UIR_CONTRACTION_N; class ++)
        if (sides[class].inner != NONE) all[count++] = sides[class].inner;
    t->row = p->by_tiles || sides[UIR_CONTRACTION_M].inner == NONE || sides[UIR_CONTRACTION_N].inner == NONE
                 ? t->unit
                 : sides[UIR_CONTRACTION_M].inner;
    return uir_contraction_order(t, all, count);
}

/* ---- the sums ---- */
uir_status uir_contraction_place_sums(steps *t) {
    const uir_contraction *c = &t->p->c;
    const uir_contraction_side *k = &t->p->sides[UIR_CONTRACTION_K];
    uint32_t update = c->update, loops[MAX_LOOPS], count = 0, inner = NONE;
    if (EXPRESSION(t->f, STATEMENT(t->f, c->sum)->values[0])->arguments[0] != c->factors[0])
        UIR_TRY(uir_schedule_exchange(t->s, update));
    if (t->unit != NONE) UIR_TRY(uir_schedule_compute_at(t->s, update, t->unit));
    t->inside = t->unit;
    for (uint32_t a = 0; a < c->axis_count; a++) { /* what is summed and not tiled */
        if (c->axes[a].class != UIR_CONTRACTION_K || k->axis == a) continue;
        uint32_t loop = uir_contraction_loop_below(t, update, t->unit, a);
        if (loop != NONE) t->inside = loops[count++] = loop;
    }
    if (k->axis != NONE) inner = uir_contraction_loop_below(t, update, t->unit, k->axis);
    if (inner != NONE && !uir_dim_equal(k->tile, k->extent)) {
        UIR_TRY(uir_schedule_split(t->s, inner, k->tile, &t->inside, &inner));
        loops[count++] = t->inside;
    }
    memcpy(t->deep, loops, count * sizeof *loops);
    t->deep_count = count;
    for (uint32_t class = UIR_CONTRACTION_M; class <= UIR_CONTRACTION_N; class ++) {
        uint32_t axis = t->p->sides[class].axis;
        uint32_t loop = axis == NONE ? NONE : uir_contraction_loop_below(t, update, t->unit, axis);
        if (loop != NONE) loops[count++] = loop;
    }
    if (inner != NONE) loops[count++] = inner;
    return uir_contraction_order(t, loops, count);
}

/* ---- side by side ---- */
static uir_status merge_all(steps *into, uint32_t *loops, const uint32_t *with, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        UIR_TRY(uir_schedule_merge_loops(into->s, with[i], loops[i]));
        loops[i] = with[i];
    }
    return UIR_STATUS_OK;
}

/* All products in the first one's loops: sums begin, then go along the depth together, then come the anchors. */
static uir_status join(steps *products, uint32_t count) {
    steps *first = &products[0];
    for (uint32_t i = 1; i < count; i++) {
        steps *t = &products[i];
        UIR_TRY(merge_all(t, t->outer, first->outer, t->outer_count));
        t->row = t->row == t->unit ? first->unit : t->row;
        t->inside = t->inside == t->unit ? first->unit : t->inside;
        t->unit = first->unit;
    }
    for (uint32_t i = 1; i < count; i++) {
        steps *t = &products[i];
        UIR_TRY(uir_schedule_move_before(t->s, t->p->c.init, first->p->c.update));
        UIR_TRY(uir_schedule_move_before(t->s, t->p->c.update, first->p->c.after[0].id));
        if (t->deep_count != first->deep_count)
            return uir_contraction_refuse(&t->p->c, "the products have different reduction axes");
        UIR_TRY(merge_all(t, t->deep, first->deep, t->deep_count));
        t->inside = first->inside;
    }
    return UIR_STATUS_OK;
}

/* ---- the factors ---- */
typedef struct axis_search {
    const steps *t;
    uint32_t axes; /* bits */
} axis_search;

static void note_axis(void *user, uir_symbol symbol) {
    axis_search *s = user;
    const uir_loop_statement *update = STATEMENT(s->t->f, s->t->p->c.update);
    for (uint32_t i = 0; i < update->iter_count; i++)
        if (update->iters[i].symbol.id == symbol.id) s->axes |= 1u << i;
}

static void find_axes(axis_search *s, uint32_t id) {
    const uir_loop_function *f = s->t->f;
    const uir_loop_expression *e = EXPRESSION(f, id);
    if (e->kind == UIR_LOOP_INDEX) uir_dim_visit_symbols(f->dims, e->index, note_axis, s);
    for (uint32_t d = 0; e->kind == UIR_LOOP_LOAD && d < f->tensors.data[e->load.tensor].rank; d++)
        uir_dim_visit_symbols(f->dims, e->load.indices[d], note_axis, s);
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++) find_axes(s, e->arguments[i]);
}

static const uint32_t operand_sides[2][2] = {{UIR_CONTRACTION_M, UIR_CONTRACTION_K},
                                             {UIR_CONTRACTION_K, UIR_CONTRACTION_N}};

static uint32_t place_of(const steps *t, uint32_t which) {
    return t->places[which] == NONE ? t->inside : t->places[which];
}

/* A factor's block of its own: over the axes that it has, the two that are tiled last. The first factor is that of the
 * product `rows_of`, which copies it for all. */
uir_status uir_contraction_copy_factor(steps *t, uint32_t which, const steps *rows_of) {
    static const char *const names[] = {"rows", "columns"};
    static const uint32_t roles[] = {UIR_SPACE_LEFT, UIR_SPACE_RIGHT};
    uir_contraction_plan *p = t->p;
    uint32_t iters[UIR_LOOP_MAX_ITERS], count = 0;
    axis_search search = {t, 0};
    const char *space = uir_lower_space(p->machine, roles[which]);
    if (!space) return uir_contraction_refuse(&p->c, "the device has no on-chip space for a tile");
    find_axes(&search, p->raw[which]);
    for (uint32_t a = 0; a < p->c.axis_count; a++) /* what moves there, though it is not tiled */
        if ((search.axes >> a & 1) && a != p->sides[operand_sides[which][0]].axis &&
            a != p->sides[operand_sides[which][1]].axis &&
            uir_contraction_loop_below(t, p->c.update, place_of(t, which), a) != NONE)
            iters[count++] = a;
    for (uint32_t i = 0; i < 2; i++)
        if (p->sides[operand_sides[which][i]].axis != NONE) iters[count++] = p->sides[operand_sides[which][i]].axis;
    uir_schedule_operand operand = {
        .which = which, .under_cast = p->raw[which] != p->c.factors[which], .guarded = which && p->products > 1};
    if (!which && rows_of != t) {
        p->copies[0] = rows_of->p->copies[0];
        return uir_schedule_take_operand(t->s, p->c.update, &operand, iters, count, p->copies[0]);
    }
    operand.name = names[which];
    return uir_schedule_cache_operand(t->s, p->c.update, &operand, iters, count, place_of(t, which), space,
                                      &p->copies[which], &t->copies[which]);
}

/* ---- what follows ---- */
/* The output that a block stores to goes out across: it is made on chip, and copied by a block that becomes the plan's.
 */
static uir_status cross_output(steps *t, uir_contraction_block *b, uir_contraction_block *out_copy) {
    const uir_loop_statement *block = STATEMENT(t->f, b->id);
    const uir_loop_access *target = &STATEMENT(t->f, block->first_child)->targets[0];
    uint32_t rank = t->f->tensors.data[target->tensor].rank;
    const char *space = uir_lower_space(t->p->machine, UIR_SPACE_SCRATCH);
    if (!space) return uir_contraction_refuse(&t->p->c, "the device has no on-chip space for a tile");
    for (uint32_t d = 0; d < rank; d++) {
        out_copy->axes[d] = NONE;
        for (uint32_t i = 0; i < block->iter_count; i++)
            if (uir_dim_mentions(t->f->dims, target->indices[d], block->iters[i].symbol))
                out_copy->axes[d] = b->axes[i];
    }
    return uir_schedule_cache_write(t->s, target->tensor, space, NULL, &out_copy->id);
}

uir_status uir_contraction_place_after(steps *t) {
    uir_contraction_plan *p = t->p;
    uint32_t count = p->c.after_count;
    for (uint32_t i = 0; i < count; i++) {
        uir_contraction_block *b = &p->c.after[i];
        const uir_loop_statement *store = STATEMENT(t->f, uir_contraction_plan_statement_of(t->f, b->id));
        const uir_loop_expression *value = EXPRESSION(t->f, store->values[0]);
        bool out = t->f->tensors.data[store->targets[0].tensor].role == UIR_LOOP_ROLE_OUT;
        bool crosses = p->by_tiles && out && uir_contraction_plan_last_axis(p, b) == p->sides[UIR_CONTRACTION_M].axis;
        bool made = value->kind == UIR_LOOP_LOAD && t->f->tensors.data[value->load.tensor].role == UIR_LOOP_ROLE_TEMP;
        if (!crosses || made) continue;
        if (p->c.after_count == UIR_CONTRACTION_MAX_BLOCKS) return uir_contraction_refuse(&p->c, "too many blocks");
        UIR_TRY(cross_output(t, b, &p->c.after[p->c.after_count]));
        p->c.after_count++;
    }
    for (uint32_t i = 1; i < p->c.after_count && t->row != NONE; i++)
        UIR_TRY(uir_schedule_reverse_compute_at(t->s, p->c.after[i].id, t->row));
    for (uint32_t i = 1; i < p->c.after_count && p->by_tiles; i++) { /* rows, then columns */
        uint32_t loops[2], found = 0;
        for (uint32_t class = UIR_CONTRACTION_M; class <= UIR_CONTRACTION_N; class ++) {
            uint32_t iter = iter_of_axis(t, &p->c.after[i], p->sides[class].axis);
            uint32_t loop = iter == NONE ? NONE : uir_contraction_loop_below(t, p->c.after[i].id, t->row, iter);
            if (loop != NONE) loops[found++] = loop;
        }
        UIR_TRY(uir_contraction_order(t, loops, found));
    }
    return UIR_STATUS_OK;
}

/* ---- what is on chip ---- */
/* The dim of a tensor that a block stores to along an axis; NONE. */
static uint32_t dim_along(const steps *t, const uir_contraction_block *b, const uir_loop_access *access,
                          uint32_t axis) {
    const uir_loop_statement *block = STATEMENT(t->f, b->id);
    uint32_t iter = iter_of_axis(t, b, axis);
    for (uint32_t d = 0; iter != NONE && d < t->f->tensors.data[access->tensor].rank; d++)
        if (uir_dim_mentions(t->f->dims, access->indices[d], block->iters[iter].symbol)) return d;
    return NONE;
}

uir_status uir_contraction_keep_alive(steps *t, uint32_t tensor, const char *space) {
    if (!space) return uir_contraction_refuse(&t->p->c, "the device has no on-chip space for a tile");
    const char *now = t->f->tensors.data[tensor].space;
    if (!now || strcmp(now, space)) UIR_TRY(uir_schedule_set_scope(t->s, tensor, space));
    uir_schedule_mode mode = uir_schedule_set_mode(t->s, UIR_SCHEDULE_QUIET); /* nothing may be smaller */
    uir_status shrunk = uir_schedule_shrink(t->s, tensor);
    uir_schedule_set_mode(t->s, mode);
    return shrunk == UIR_STATUS_UNSUPPORTED ? UIR_STATUS_OK : shrunk;
}

uir_status uir_contraction_fit_tile(steps *t, uint32_t tensor, const uir_contraction_tile_dims *of) {
    bool same = of->count == t->f->tensors.data[tensor].rank;
    for (uint32_t i = 0; i < of->count; i++) same = same && of->dims[i] == i;
    if (!same) UIR_TRY(uir_schedule_arrange(t->s, tensor, of->dims, of->count));
    for (uint32_t i = 0; i < of->count; i++) {
        uir_dim tile = t->p->sides[of->sides[i]].tile;
        if (of->dims[i] != NONE && !uir_dim_equal(t->f->tensors.data[tensor].extents[i], tile))
            UIR_TRY(uir_schedule_pad(t->s, tensor, i, tile));
    }
    return UIR_STATUS_OK;
}

/* A tile of the tensor, as alive as it is. */
static uir_status keep_tile(steps *t, uint32_t tensor, const char *space, const uir_contraction_tile_dims *of) {
    UIR_TRY(uir_contraction_keep_alive(t, tensor, space));
    return uir_contraction_fit_tile(t, tensor, of);
}

uir_status uir_contraction_keep_sums(steps *t) {
    uir_contraction_plan *p = t->p;
    uir_contraction_tile_dims tile = {{NONE, NONE}, {UIR_CONTRACTION_M, UIR_CONTRACTION_N}, 2};
    for (uint32_t d = 0; d < t->f->tensors.data[p->c.tensor].rank; d++)
        for (uint32_t i = 0; i < tile.count; i++)
            if (p->c.tensor_axes[d] == p->sides[tile.sides[i]].axis) tile.dims[i] = d;
    p->sums = p->c.tensor;
    return keep_tile(t, p->sums, uir_lower_space(p->machine, UIR_SPACE_ACCUMULATORS), &tile);
}

uir_status uir_contraction_keep_copy(steps *t, uint32_t which) {
    uir_contraction_plan *p = t->p;
    uint32_t tensor = p->copies[which], rank = t->f->tensors.data[tensor].rank;
    uir_contraction_tile_dims tile = {{NONE, NONE}, {operand_sides[which][0], operand_sides[which][1]}, 2};
    for (uint32_t i = 2; i > 0; i--)
        if (p->sides[tile.sides[i - 1]].axis != NONE) tile.dims[i - 1] = --rank;
    return keep_tile(t, tensor, t->f->tensors.data[tensor].space, &tile);
}

/* Does a block that follows another product read it? */
static bool is_read_beside(const steps *products, uint32_t count, const steps *t, uint32_t tensor) {
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; &products[i] != t && k < products[i].p->c.after_count; k++)
            if (uir_loop_block_reads(t->f, products[i].p->c.after[k].id, tensor)) return true;
    return false;
}

/* What is computed after the sums: rows of a tile, or all of it. */
uir_status uir_contraction_keep_values(const steps *products, uint32_t count, steps *t) {
    uir_contraction_plan *p = t->p;
    const char *space = uir_lower_space(p->machine, UIR_SPACE_SCRATCH);
    for (uint32_t i = 0; i < p->c.after_count; i++) {
        const uir_contraction_block *b = &p->c.after[i];
        const uir_loop_access *target = &STATEMENT(t->f, uir_contraction_plan_statement_of(t->f, b->id))->targets[0];
        uint32_t tensor = target->tensor;
        uir_contraction_tile_dims tile = {.count = 0};
        if (t->f->tensors.data[tensor].role != UIR_LOOP_ROLE_TEMP) continue;
        bool rows = !p->by_tiles && t->row != t->unit && !is_read_beside(products, count, t, tensor);
        for (uint32_t class = UIR_CONTRACTION_M; class <= UIR_CONTRACTION_N; class ++) {
            uint32_t dim = dim_along(t, b, target, p->sides[class].axis);
            if (dim == NONE || (rows && class == UIR_CONTRACTION_M)) continue;
            tile.dims[tile.count] = dim;
            tile.sides[tile.count++] = class;
        }
        UIR_TRY(keep_tile(t, tensor, space, &tile));
    }
    return UIR_STATUS_OK;
}

/* ---- layouts ---- */
/* How many neighbours along what is summed over lie together, as the device's instruction takes constants of 8 bits;
 * the tiles along it must be whole groups. */
static uint32_t group_of(const steps *t, uint32_t tensor) {
    const uir_contraction_side *depth = &t->p->sides[UIR_CONTRACTION_K];
    uint32_t group = t->p->machine->byte_group;
    int64_t tile;
    if (t->p->copied[1] || uir_dtype_bits(t->f->tensors.data[tensor].dtype) != 8 || group < 2) return 1;
    if (depth->split && (!uir_dim_is_const(t->f->dims, depth->tile, &tile) || tile % group != 0)) return 1;
    return group;
}

uir_status uir_contraction_lay_out(steps *t) {
    uir_contraction_plan *p = t->p;
    uir_layout layout;
    if (t->copies[0] != NONE) {
        uir_contraction_make_apart(t->f, p->copies[0], 1, &layout);
        UIR_TRY(uir_schedule_set_layout(t->s, p->copies[0], &layout));
    }
    uint32_t call = STATEMENT(t->f, p->c.sum)->values[0], factor = EXPRESSION(t->f, call)->arguments[1];
    if (EXPRESSION(t->f, factor)->kind == UIR_LOOP_CALL) factor = EXPRESSION(t->f, factor)->arguments[0];
    uir_loop_access access = EXPRESSION(t->f, factor)->load;
    uint32_t column = p->copied[1] ? 1 : uir_contraction_plan_dim_of(p, p->raw[1], p->sides[UIR_CONTRACTION_N].axis);
    if (!p->copied[1] && !uir_contraction_is_constant(&p->c, access.tensor)) return UIR_STATUS_OK;
    uir_contraction_make_panels(t->f, access.tensor, p->machine->mma_n, group_of(t, access.tensor), &access, column,
                                STATEMENT(t->f, p->c.update), &layout);
    return uir_schedule_set_layout(t->s, access.tensor, &layout);
}

/* ---- kinds ---- */
uir_status uir_contraction_vectorise(steps *t, uint32_t block, uint32_t under) {
    uint32_t loops[MAX_LOOPS], count = uir_contraction_loops_below(t, block, under, loops);
    for (uint32_t i = 0; i < count; i++) UIR_TRY(uir_schedule_set_kind(t->s, loops[i], UIR_LOOP_VECTORISED, NULL));
    return UIR_STATUS_OK;
}

uir_status uir_contraction_mark(steps *t) {
    uir_contraction_plan *p = t->p;
    UIR_TRY(uir_contraction_vectorise(t, p->c.init, t->unit));
    for (uint32_t which = 0; which < 2; which++)
        if (t->copies[which] != NONE) UIR_TRY(uir_contraction_vectorise(t, t->copies[which], place_of(t, which)));
    UIR_TRY(uir_contraction_vectorise(t, p->c.update, t->inside));
    for (uint32_t i = 0; i < p->c.after_count; i++) UIR_TRY(uir_contraction_vectorise(t, p->c.after[i].id, t->row));
    return uir_schedule_set_use(t->s, p->c.update, UIR_LOOP_USE_MMA);
}

void uir_contraction_steps_init(uir_contraction_steps *t, uir_contraction_plan *p, const uir_contraction_plan *leader,
                                uir_schedule *s) {
    *t = (steps){.p = p, .leader = leader, .s = s, .f = p->f, .copies = {NONE, NONE}, .places = {NONE, NONE}};
}

uir_status uir_contraction_tile(uir_contraction_steps *products, uint32_t count) {
    levels shared = {.count = 0};
    for (uint32_t i = 0; i < count; i++)
        if (!products[i].p->c.after_count)
            return uir_contraction_refuse(&products[i].p->c, "no epilogue stores the accumulator of a product");
    UIR_TRY(find_levels(products, count, products->leader, &shared));
    for (uint32_t i = 0; i < shared.count; i++) products->parallel += !shared.data[i].serial;
    for (uint32_t i = 0; i < count; i++) {
        UIR_TRY(tile_anchor(&products[i], products, &shared));
        UIR_TRY(uir_contraction_place_sums(&products[i]));
    }
    return UIR_STATUS_OK;
}

uir_status uir_contraction_share_out(uir_contraction_steps *t) {
    for (uint32_t i = 0; i < t->parallel; i++)
        UIR_TRY(uir_schedule_set_kind(t->s, t->outer[i], UIR_LOOP_PARALLEL, NULL));
    return UIR_STATUS_OK;
}

uir_status uir_contraction_plans_apply(uir_contraction_plans *all, uir_schedule *s) {
    steps products[UIR_CONTRACTION_MAX_PRODUCTS];
    for (uint32_t i = 0; i < all->count; i++)
        uir_contraction_steps_init(&products[i], &all->plans[i], &all->plans[all->leader], s);
    UIR_TRY(uir_contraction_tile(products, all->count));
    UIR_TRY(join(products, all->count));
    for (uint32_t i = 0; i < all->count; i++)
        for (uint32_t which = 0; which < 2; which++)
            if (all->plans[i].copied[which]) UIR_TRY(uir_contraction_copy_factor(&products[i], which, products));
    for (uint32_t i = 0; i < all->count; i++) UIR_TRY(uir_contraction_place_after(&products[i]));
    for (uint32_t i = 0; i < all->count; i++) {
        UIR_TRY(uir_contraction_keep_sums(&products[i]));
        for (uint32_t which = 0; which < 2; which++)
            if (products[i].copies[which] != NONE) UIR_TRY(uir_contraction_keep_copy(&products[i], which));
        UIR_TRY(uir_contraction_keep_values(products, all->count, &products[i]));
        UIR_TRY(uir_contraction_lay_out(&products[i]));
    }
    UIR_TRY(uir_contraction_share_out(products));
    for (uint32_t i = 0; i < all->count; i++) UIR_TRY(uir_contraction_mark(&products[i]));
    return UIR_STATUS_OK;
}
