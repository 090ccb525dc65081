/* Two products with work on the rows between them, by schedule primitives.
 *
 * The second product is shaped as any: a tile of rows, its keys walked by tiles. What divides its weights divides its
 * sums. The first product and all between the two are computed for the tile of keys in work. A reduction over the keys
 * goes along: partial results of a tile, combined as the tiles are walked; one that weights depend on is rolled. What
 * works on rows shares one loop over the rows of the tile. */
#include "lower/tactics/attention.h"
#include "lower/tactics/products/contraction_steps.h"
#include "lower/internal.h"

#include <string.h>

#define STATEMENT(f, id)  (&(f)->statements.data[id])
#define EXPRESSION(f, id) (&(f)->expressions.data[id])
#define NONE              UIR_LOOP_NONE

enum { MAX_BETWEEN = 64, MAX_CHILDREN = 96 };

typedef struct chain {
    uir_contraction_plan *first, *second;
    uir_contraction_steps products[2];
    uir_schedule *s;
    uir_loop_function *f;
    uint32_t blocks[MAX_BETWEEN], count; /* between the products */
    uint32_t rows, keys;                 /* axes, as iteration variables are said to run along them */
    uint32_t unit, loop, row;            /* loops: a unit's work, the tiles of keys (or that), the rows in work */
} chain;

static uint32_t statement_of(const chain *c, uint32_t block) {
    return uir_contraction_plan_statement_of(c->f, block);
}

static uint32_t target_of(const chain *c, uint32_t block) {
    return STATEMENT(c->f, statement_of(c, block))->targets[0].tensor;
}

static bool is_update(const chain *c, uint32_t block) {
    return STATEMENT(c->f, statement_of(c, block))->kind == UIR_LOOP_STATEMENT_UPDATE;
}

static bool is_product(const chain *c, uint32_t block) {
    return uir_loop_is_used_as(c->f, block, UIR_LOOP_USE_CONTRACTION);
}

/* ---- what stands in the function ---- */
typedef struct reading {
    const uir_loop_function *f;
    bool *follows; /* per tensor: it depends on the first product's sums */
    uint32_t products;
    bool chained; /* the second product does */
} reading;

static void read_list(reading *r, uint32_t id) {
    for (; id != NONE; id = STATEMENT(r->f, id)->next) {
        const uir_loop_statement *s = STATEMENT(r->f, id);
        if (s->kind != UIR_LOOP_STATEMENT_BLOCK) {
            read_list(r, s->first_child);
            continue;
        }
        bool product = uir_loop_is_used_as(r->f, id, UIR_LOOP_USE_CONTRACTION), follows = product && !r->products;
        for (uint32_t t = 0; t < r->f->tensors.count && !follows; t++)
            follows = r->follows[t] && uir_loop_block_reads(r->f, id, t);
        r->chained |= product && r->products && follows;
        r->products += product;
        for (uint32_t k = s->first_child; k != NONE && follows; k = STATEMENT(r->f, k)->next)
            for (uint32_t i = 0; i < STATEMENT(r->f, k)->target_count; i++)
                r->follows[STATEMENT(r->f, k)->targets[i].tensor] = true;
    }
}

bool uir_attention_matches(const uir_loop_function *function) {
    uir_arena arena;
    uir_arena_init(&arena, &function->allocator);
    reading r = {function, uir_arena_allocate_array(&arena, function->tensors.count + 1, sizeof(bool)), 0, false};
    if (r.follows) read_list(&r, function->first);
    uir_arena_deinit(&arena);
    return r.products == 2 && r.chained;
}

/* ---- what is between ---- */
/* Blocks that depend on the first product's sums and that the second product waits for, or that reduce; in the order of
 * the text. The second product's own and what reads its sums are not. */
static uir_status find_between(chain *c, uint32_t sums, uint32_t last_sums) {
    uint32_t count = uir_schedule_blocks(c->s, NONE, NULL, 0), *all;
    bool *follows, *after;
    UIR_TRY_ALLOCATE(all, uir_arena_allocate_array(c->first->c.arena, count + 1, sizeof *all));
    UIR_TRY_ALLOCATE(follows, uir_arena_allocate_array(c->first->c.arena, c->f->tensors.count + 1, sizeof *follows));
    UIR_TRY_ALLOCATE(after, uir_arena_allocate_array(c->first->c.arena, c->f->tensors.count + 1, sizeof *after));
    uir_schedule_blocks(c->s, NONE, all, count);
    follows[sums] = after[last_sums] = true;
    c->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool between = false, behind = false;
        for (uint32_t t = 0; t < c->f->tensors.count; t++) {
            bool reads = uir_loop_block_reads(c->f, all[i], t);
            between |= follows[t] && reads;
            behind |= after[t] && reads;
        }
        if (is_product(c, all[i]) || (!between && !behind)) continue;
        (behind ? after : follows)[target_of(c, all[i])] = true;
        if (behind) continue;
        if (c->count == MAX_BETWEEN)
            return uir_contraction_refuse(&c->first->c, "too many blocks between two products");
        c->blocks[c->count++] = all[i];
    }
    return UIR_STATUS_OK;
}

static void forget(chain *c, uint32_t at) {
    c->count--;
    memmove(&c->blocks[at], &c->blocks[at + 1], (c->count - at) * sizeof *c->blocks);
}

/* Does the block go into all that read it, none of them a product: because it ends a reduction, is no more than a copy,
 * or has one reader? */
static bool goes_into_readers(const chain *c, uint32_t block) {
    const uir_loop_statement *st = STATEMENT(c->f, statement_of(c, block));
    uint32_t readers[MAX_BETWEEN], count = uir_schedule_readers(c->s, st->targets[0].tensor, readers, MAX_BETWEEN);
    if (c->f->tensors.data[st->targets[0].tensor].role != UIR_LOOP_ROLE_TEMP || count > MAX_BETWEEN) return false;
    if (st->kind == UIR_LOOP_STATEMENT_FINISH) return true;
    for (uint32_t i = 0; i < count; i++)
        if (is_product(c, readers[i])) return false;
    const uir_loop_expression *value = EXPRESSION(c->f, st->values[0]);
    return st->kind == UIR_LOOP_STATEMENT_STORE && (count == 1 || (value->kind == UIR_LOOP_LOAD && !value->has_fill));
}

static uir_status inline_between(chain *c) {
    for (uint32_t i = c->count; i-- > 0;) {
        if (!goes_into_readers(c, c->blocks[i])) continue;
        UIR_TRY(uir_schedule_inline(c->s, c->blocks[i]));
        forget(c, i);
        i = c->count;
    }
    return UIR_STATUS_OK;
}

/* A refusal is a no: quiet. */
static uir_status factor_out(chain *c, uint32_t update) {
    uir_schedule_mode mode = uir_schedule_set_mode(c->s, UIR_SCHEDULE_QUIET);
    uir_status status = uir_schedule_factor_out(c->s, update, NULL, NULL);
    uir_schedule_set_mode(c->s, mode);
    return status == UIR_STATUS_UNSUPPORTED ? UIR_STATUS_OK : status;
}

/* Weights that are what another block stores are read there. */
static uir_status inline_weights(chain *c, uint32_t update, uint32_t sums) {
    for (uint32_t i = 0; i < c->count; i++) {
        const uir_loop_statement *st = STATEMENT(c->f, statement_of(c, c->blocks[i]));
        uint32_t reader, count = uir_schedule_readers(c->s, st->targets[0].tensor, &reader, 1);
        if (count != 1 || reader != update || st->kind != UIR_LOOP_STATEMENT_STORE) continue;
        const uir_loop_expression *e = EXPRESSION(c->f, st->values[0]);
        if (e->kind != UIR_LOOP_LOAD || e->has_fill || e->load.tensor == sums ||
            c->f->tensors.data[e->load.tensor].role != UIR_LOOP_ROLE_TEMP)
            continue;
        UIR_TRY(uir_schedule_inline(c->s, c->blocks[i]));
        forget(c, i--);
    }
    return UIR_STATUS_OK;
}

/* ---- rows and keys ---- */
static const uir_loop_iter *iter_of(const uir_contraction *c, uint32_t axis) {
    return &STATEMENT(c->f, c->update)->iters[axis];
}

static uint32_t count_class(const uir_contraction *c, uir_contraction_class class) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->axis_count; i++) count += c->axes[i].class == class;
    return count;
}

static uint32_t find_axis(const uir_contraction *c, uint32_t axis) {
    for (uint32_t i = 0; axis && i < c->axis_count; i++)
        if (iter_of(c, i)->axis == axis) return i;
    return NONE;
}

/* Does a block run along rows or keys at most once each, and else along what the products are batched over? */
static bool keeps_to_axes(const chain *c, uint32_t block) {
    const uir_loop_statement *b = STATEMENT(c->f, block);
    for (uint32_t i = 0; i < b->iter_count; i++) {
        uint32_t axis = b->iters[i].axis, at = find_axis(&c->first->c, axis);
        if (b->iters[i].data || at == NONE || c->first->c.axes[at].class == UIR_CONTRACTION_K) return false;
        if (b->iters[i].reduce && axis != c->keys) return false;
        for (uint32_t k = 0; k < i; k++)
            if (b->iters[k].axis == axis) return false;
    }
    return true;
}

static uir_status check_axes(chain *c) {
    uir_contraction_plan *p = c->first, *q = c->second;
    uir_contraction_side *outer = &q->sides[UIR_CONTRACTION_M];
    uint32_t keys = p->sides[UIR_CONTRACTION_N].axis, summed = q->sides[UIR_CONTRACTION_K].axis,
             rows = p->sides[UIR_CONTRACTION_M].axis;
    bool fine = count_class(&p->c, UIR_CONTRACTION_N) == 1 && count_class(&p->c, UIR_CONTRACTION_K) <= 1 &&
                count_class(&q->c, UIR_CONTRACTION_N) == 1 && count_class(&q->c, UIR_CONTRACTION_K) == 1 &&
                keys != NONE && summed != NONE && rows != NONE;
    if (fine) {
        c->rows = iter_of(&p->c, rows)->axis;
        c->keys = iter_of(&p->c, keys)->axis;
        uint32_t same = find_axis(&q->c, c->rows); /* rows are the first product's, whatever is the longest */
        fine = c->keys && c->keys == iter_of(&q->c, summed)->axis && same != NONE &&
               q->c.axes[same].class == UIR_CONTRACTION_M;
        outer->axis = same;
        if (fine) outer->extent = q->c.axes[same].extent;
    }
    for (uint32_t k = 0; k < 2; k++) {
        const uir_contraction *one = k ? &q->c : &p->c, *other = k ? &p->c : &q->c;
        for (uint32_t i = 0; fine && i < one->axis_count; i++)
            if (one->axes[i].class == UIR_CONTRACTION_BATCH || one->axes[i].class == UIR_CONTRACTION_M)
                fine = find_axis(other, iter_of(one, i)->axis) != NONE;
    }
    for (uint32_t i = 0; fine && i < c->count; i++) fine = keeps_to_axes(c, c->blocks[i]);
    return fine ? UIR_STATUS_OK : uir_contraction_refuse(&p->c, "the rows or keys of the two products do not match");
}

/* ---- placing ---- */
static uint32_t loop_along(const chain *c, uint32_t block, uint32_t under, uint32_t axis) {
    const uir_loop_statement *b = STATEMENT(c->f, block);
    for (uint32_t i = 0; i < b->iter_count; i++)
        if (b->iters[i].axis == axis) return uir_contraction_loop_below(&c->products[0], block, under, i);
    return NONE;
}

/* The loops of a block below the unit, that along the tiles of keys outermost. */
static uir_status put_outermost(chain *c, uint32_t block, uint32_t loop) {
    uint32_t loops[UIR_CONTRACTION_MAX_LOOPS], order[UIR_CONTRACTION_MAX_LOOPS + 1];
    uint32_t count = uir_contraction_loops_below(&c->products[0], block, c->unit, loops), used = 1;
    order[0] = loop;
    for (uint32_t i = 0; i < count; i++)
        if (loops[i] != loop) order[used++] = loops[i];
    return uir_contraction_order(&c->products[0], order, used);
}

/* Is what the block reduces to read by blocks between the products? */
static bool is_waited_for(const chain *c, uint32_t block) {
    for (uint32_t i = 0; i < c->count; i++)
        if (c->blocks[i] != block && uir_loop_block_reads(c->f, c->blocks[i], target_of(c, block))) return true;
    return false;
}

static uir_status add_block(chain *c, uint32_t block) {
    if (c->count == MAX_BETWEEN) return uir_contraction_refuse(&c->first->c, "too many blocks between two products");
    c->blocks[c->count++] = block;
    return UIR_STATUS_OK;
}

static uint32_t writer_but(const chain *c, uint32_t tensor, uint32_t block) {
    uint32_t writers[2] = {NONE, NONE}, count = uir_schedule_writers(c->s, tensor, writers, 2);
    return count == 2 ? writers[writers[0] == block] : NONE;
}

/* A reduction over the keys goes by their tiles. */
static uir_status place_reduction(chain *c, uint32_t block, bool waited) {
    const uir_contraction_side *n = &c->first->sides[UIR_CONTRACTION_N];
    uint32_t outer, inner, init, combine, part, last;
    UIR_TRY(uir_schedule_compute_at(c->s, block, c->unit));
    UIR_TRY(add_block(c, writer_but(c, target_of(c, block), block)));
    uint32_t keys = loop_along(c, block, c->unit, c->keys);
    if (c->loop == c->unit || keys == NONE) return UIR_STATUS_OK;
    UIR_TRY(uir_schedule_split(c->s, keys, n->tile, &outer, &inner));
    UIR_TRY(put_outermost(c, block, outer));
    UIR_TRY(uir_schedule_rfactor(c->s, block, outer, &init, &combine, &part));
    UIR_TRY(add_block(c, init));
    UIR_TRY(add_block(c, combine));
    uint32_t ends[2] = {init, combine}, parts[2];
    for (uint32_t i = 0; i < 2; i++) {
        last = STATEMENT(c->f, ends[i])->iter_count - 1; /* which partial state */
        parts[i] = uir_contraction_loop_below(&c->products[0], ends[i], c->unit, last);
        UIR_TRY(put_outermost(c, ends[i], parts[i]));
        /* The nest's first statement stays on top. */
        parts[i] = uir_contraction_loop_below(&c->products[0], ends[i], c->unit, last);
    }
    outer = uir_contraction_loop_below(&c->products[0], block, c->unit, STATEMENT(c->f, block)->iter_count - 1);
    if (waited) {
        UIR_TRY(uir_schedule_roll(c->s, combine, c->loop, NULL, NULL));
        UIR_TRY(uir_schedule_merge_into(c->s, outer, c->loop));
        return uir_schedule_merge_into(c->s, parts[0], c->loop);
    }
    UIR_TRY(uir_schedule_merge_into(c->s, c->loop, parts[0]));
    c->loop = parts[0];
    UIR_TRY(uir_schedule_merge_loops(c->s, c->loop, outer));
    return uir_schedule_merge_loops(c->s, c->loop, parts[1]);
}

/* From the last to the first: what reads a block stands in its place already. Reductions that nothing between waits for
 * come first: their loop over tiles stands behind what they begin with. */
static uir_status place_between(chain *c) {
    uint32_t count = c->count, blocks[MAX_BETWEEN];
    bool waited[MAX_BETWEEN];
    memcpy(blocks, c->blocks, sizeof blocks);
    for (uint32_t i = 0; i < count; i++) waited[i] = is_waited_for(c, blocks[i]);
    for (uint32_t i = count; i-- > 0;)
        if (is_update(c, blocks[i]) && !waited[i]) UIR_TRY(place_reduction(c, blocks[i], false));
    for (uint32_t i = count; i-- > 0;) {
        if (!is_update(c, blocks[i]))
            UIR_TRY(uir_schedule_compute_at(c->s, blocks[i], c->loop));
        else if (waited[i])
            UIR_TRY(place_reduction(c, blocks[i], true));
    }
    return UIR_STATUS_OK;
}

/* ---- one loop over rows ---- */
/* The loop over rows that a statement is; NONE. */
static uint32_t as_row_loop(const chain *c, uint32_t statement) {
    uint32_t block;
    const uir_loop_statement *at = STATEMENT(c->f, statement);
    if (at->kind != UIR_LOOP_STATEMENT_FOR || !uir_schedule_blocks(c->s, statement, &block, 1)) return NONE;
    const uir_loop_statement *b = STATEMENT(c->f, block);
    if (is_product(c, block) || block == c->first->c.init || block == c->second->c.init) return NONE;
    for (uint32_t i = 0; i < b->iter_count; i++)
        if (b->iters[i].axis == c->rows && uir_dim_mentions(c->f->dims, b->iters[i].value, at->symbol))
            return statement;
    return NONE;
}

static bool holds_between(const chain *c, uint32_t loop) {
    uint32_t blocks[MAX_BETWEEN], count = uir_schedule_blocks(c->s, loop, blocks, MAX_BETWEEN);
    for (uint32_t i = 0; i < count && i < MAX_BETWEEN; i++)
        for (uint32_t k = 0; k < c->count; k++)
            if (c->blocks[k] == blocks[i]) return true;
    return false;
}

static uir_status share_rows(chain *c) {
    uint32_t children[MAX_CHILDREN], count = 0;
    uint32_t id = c->loop == NONE ? c->f->first : STATEMENT(c->f, c->loop)->first_child;
    for (; id != NONE && count < MAX_CHILDREN; id = STATEMENT(c->f, id)->next)
        if (as_row_loop(c, id) != NONE && (c->loop != c->unit || holds_between(c, id))) children[count++] = id;
    c->row = count ? children[0] : NONE;
    for (uint32_t i = 1; i < count; i++) UIR_TRY(uir_schedule_merge_loops(c->s, c->row, children[i]));
    return UIR_STATUS_OK;
}

/* ---- what is on chip ---- */
static bool is_one(const chain *c, uir_dim extent) {
    int64_t known;
    return uir_dim_is_const(c->f->dims, extent, &known) && known == 1;
}

/* A value between the products is as large as it is alive: rows, keys, or both. */
static uir_status keep(chain *c, uint32_t block) {
    uint32_t tensor = target_of(c, block), dim_axes[UIR_LOOP_MAX_RANK] = {0};
    const uir_loop_statement *b = STATEMENT(c->f, block), *st = STATEMENT(c->f, statement_of(c, block));
    uint32_t rank = c->f->tensors.data[tensor].rank, readers[8];
    uir_contraction_tile_dims tile = {.count = 0};
    if (tensor == c->second->c.tensor || c->f->tensors.data[tensor].role != UIR_LOOP_ROLE_TEMP) return UIR_STATUS_OK;
    for (uint32_t d = 0; d < rank; d++)
        for (uint32_t i = 0; i < b->iter_count; i++)
            if (uir_dim_mentions(c->f->dims, st->targets[0].indices[d], b->iters[i].symbol))
                dim_axes[d] = b->iters[i].axis;
    uint32_t count = uir_schedule_readers(c->s, tensor, readers, 8);
    bool operand = false;
    for (uint32_t i = 0; i < count && i < 8; i++) operand |= readers[i] == c->second->c.update;
    const char *space = uir_lower_space(c->first->machine, operand ? UIR_SPACE_LEFT : UIR_SPACE_SCRATCH);
    UIR_TRY(uir_contraction_keep_alive(&c->products[0], tensor, space));
    for (uint32_t d = 0; d < rank; d++) {
        bool rows = dim_axes[d] == c->rows, keys = dim_axes[d] == c->keys;
        if ((!rows && !keys) || (!operand && is_one(c, c->f->tensors.data[tensor].extents[d]))) continue;
        tile.dims[tile.count] = d;
        tile.sides[tile.count++] = rows ? UIR_CONTRACTION_M : UIR_CONTRACTION_N;
        if (tile.count == 2 && tile.sides[0] == UIR_CONTRACTION_N) { /* rows first */
            uint32_t other = tile.dims[0];
            tile.dims[0] = tile.dims[1], tile.dims[1] = other;
            tile.sides[0] = UIR_CONTRACTION_M, tile.sides[1] = UIR_CONTRACTION_N;
        }
    }
    if (!tile.count) tile = (uir_contraction_tile_dims){{NONE}, {0}, 1}; /* one element */
    return uir_contraction_fit_tile(&c->products[0], tensor, &tile);
}

static uir_status keep_between(chain *c) {
    bool *kept;
    UIR_TRY_ALLOCATE(kept, uir_arena_allocate_array(c->first->c.arena, c->f->tensors.count + 1, sizeof *kept));
    uint32_t blocks[MAX_BETWEEN * 2], count = uir_schedule_blocks(c->s, c->unit, blocks, MAX_BETWEEN * 2);
    if (count > MAX_BETWEEN * 2) return uir_contraction_refuse(&c->first->c, "too many blocks between two products");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t tensor = target_of(c, blocks[i]);
        bool follows = tensor == c->first->c.tensor || tensor == c->second->c.tensor;
        for (uint32_t k = 0; k < 2; k++)
            follows |= blocks[i] == c->products[0].copies[k] || blocks[i] == c->products[1].copies[k];
        for (uint32_t k = 0; k < c->second->c.after_count; k++) follows |= c->second->c.after[k].id == blocks[i];
        if (follows || kept[tensor]) continue;
        kept[tensor] = true;
        UIR_TRY(keep(c, blocks[i]));
    }
    return UIR_STATUS_OK;
}

static uir_status mark_between(chain *c) {
    uint32_t blocks[MAX_BETWEEN * 2], count = uir_schedule_blocks(c->s, c->unit, blocks, MAX_BETWEEN * 2);
    for (uint32_t i = 0; i < count && i < MAX_BETWEEN * 2; i++) {
        uint32_t loops[UIR_CONTRACTION_MAX_LOOPS], under = c->unit;
        uint32_t depth = uir_schedule_loops(c->s, blocks[i], loops, UIR_CONTRACTION_MAX_LOOPS);
        bool follows = is_product(c, blocks[i]) || blocks[i] == c->first->c.init || blocks[i] == c->second->c.init;
        for (uint32_t k = 0; k < 2; k++)
            follows |= blocks[i] == c->products[0].copies[k] || blocks[i] == c->products[1].copies[k];
        for (uint32_t k = 0; k < c->second->c.after_count; k++) follows |= c->second->c.after[k].id == blocks[i];
        if (follows) continue;
        for (uint32_t k = 0; k < depth && k < UIR_CONTRACTION_MAX_LOOPS; k++)
            if (loops[k] == c->loop || loops[k] == c->row) under = loops[k];
        UIR_TRY(uir_contraction_vectorise(&c->products[0], blocks[i], under));
    }
    return UIR_STATUS_OK;
}

/* ---- the whole ---- */
static uir_status map_axes(const uir_contraction_plan *p, uir_schedule *s) {
    uir_loop_class classes[UIR_LOOP_MAX_ITERS];
    for (uint32_t a = 0; a < p->c.axis_count; a++) classes[a] = (uir_loop_class)(p->c.axes[a].class + 1);
    return uir_schedule_set_classes(s, p->c.update, classes);
}

static uir_status choose(chain *c, uir_arena *arena, uir_diagnostics *diagnostics) {
    uir_contraction_plan *p = c->first, *q = c->second;
    bool *left_out;
    UIR_TRY(uir_contraction_inline(c->s));
    /* The second product first: its factor says what is between. */
    p->c = (uir_contraction){.f = c->f, .arena = arena, .diagnostics = diagnostics};
    uint32_t products[2], found = 0, count = uir_schedule_blocks(c->s, NONE, NULL, 0), *all;
    UIR_TRY_ALLOCATE(all, uir_arena_allocate_array(arena, count + 1, sizeof *all));
    uir_schedule_blocks(c->s, NONE, all, count);
    for (uint32_t i = 0; i < count; i++)
        if (is_product(c, all[i]) && found < 2) products[found++] = all[i];
    if (found != 2) return uir_contraction_refuse(&p->c, "the function is not a chain of two products");
    uint32_t sums = target_of(c, products[0]), last_sums = target_of(c, products[1]);
    UIR_TRY(find_between(c, sums, last_sums));
    UIR_TRY(inline_between(c));
    UIR_TRY(factor_out(c, products[1]));
    UIR_TRY(inline_weights(c, products[1], sums));
    UIR_TRY(find_between(c, sums, last_sums));
    UIR_TRY_ALLOCATE(left_out, uir_arena_allocate_array(arena, c->f->statements.count + 1, sizeof *left_out));
    for (uint32_t i = 0; i < c->count; i++) left_out[c->blocks[i]] = true;
    UIR_TRY(uir_contraction_plan_choose(q, 1, NULL, arena, diagnostics));
    UIR_TRY(uir_contraction_plan_choose(p, 0, left_out, arena, diagnostics));
    if (!q->c.after_count) return uir_contraction_refuse(&q->c, "nothing reads the second product's sums");
    UIR_TRY(check_axes(c));
    UIR_TRY(map_axes(p, c->s));
    UIR_TRY(map_axes(q, c->s));
    uir_contraction_plan_find_crossed(q);
    p->copied[0] = !uir_contraction_plan_is_direct_a(p);
    p->copied[1] = !uir_contraction_plan_is_direct_b(p);
    q->copied[0] = true; /* by what is between */
    q->copied[1] = !uir_contraction_plan_is_direct_b(q);
    UIR_TRY(uir_contraction_plan_choose_chain(p, q));
    q->copied[0] = false;
    if (!p->sides[UIR_CONTRACTION_N].split) /* all keys at once: nothing goes along */
        q->sides[UIR_CONTRACTION_K].tile = q->sides[UIR_CONTRACTION_K].extent;
    return UIR_STATUS_OK;
}

static uir_status apply(uir_contraction_plan *first, uir_contraction_plan *second, uir_schedule *s, uir_arena *arena,
                        uir_diagnostics *diagnostics) {
    uir_loop_function *f = uir_schedule_function(s);
    chain c = {.first = first, .second = second, .s = s, .f = f};
    uir_contraction_steps *p = &c.products[0], *q = &c.products[1];
    uir_contraction_steps_init(p, first, first, s);
    uir_contraction_steps_init(q, second, second, s);
    UIR_TRY(choose(&c, arena, diagnostics));
    UIR_TRY(uir_contraction_tile(q, 1));
    c.unit = q->unit;
    c.loop = q->inside;
    if (c.unit == NONE) return uir_contraction_refuse(&first->c, "no loop over tiles of rows");
    UIR_TRY(place_between(&c));
    UIR_TRY(share_rows(&c));
    q->inside = p->unit = c.loop;
    UIR_TRY(uir_contraction_place_sums(p));
    p->places[0] = c.unit; /* rows are the same for all keys */
    for (uint32_t which = 0; which < 2; which++)
        if (first->copied[which]) UIR_TRY(uir_contraction_copy_factor(p, which, p));
    if (second->copied[1]) UIR_TRY(uir_contraction_copy_factor(q, 1, q));
    UIR_TRY(uir_contraction_place_after(q));
    for (uint32_t k = 0; k < 2; k++) {
        UIR_TRY(uir_contraction_keep_sums(&c.products[k]));
        for (uint32_t which = 0; which < 2; which++)
            if (c.products[k].p->copied[which]) UIR_TRY(uir_contraction_keep_copy(&c.products[k], which));
    }
    UIR_TRY(keep_between(&c));
    UIR_TRY(uir_contraction_keep_values(q, 1, q));
    UIR_TRY(uir_contraction_lay_out(p));
    UIR_TRY(uir_contraction_lay_out(q));
    UIR_TRY(uir_contraction_share_out(q));
    UIR_TRY(uir_contraction_mark(q));
    UIR_TRY(uir_contraction_mark(p));
    return mark_between(&c);
}

uir_status uir_attention_schedule(const uir_loop_function *function, const uir_machine *machine,
                                  uir_parameter_choice *choice, uir_diagnostics *diagnostics, uir_loop_list *out) {
    uir_arena arena;
    uir_loop_function *f;
    uir_schedule *s = NULL;
    UIR_TRY(uir_loop_clone(function, &f));
    uir_arena_init(&arena, &function->allocator);
    uir_contraction_plan plan = {
        .f = f, .machine = machine, .choice = choice, .products = 1, .sides = {{.axis = NONE}}};
    uir_contraction_plan plans[2] = {plan, plan};
    uir_status status = uir_schedule_create(f, machine, diagnostics, &s);
    if (status == UIR_STATUS_OK) status = apply(&plans[0], &plans[1], s, &arena, diagnostics);
    if (status == UIR_STATUS_OK)
        status = uir_loop_list_add(out, f, uir_schedule_trace(s));
    else
        uir_loop_function_destroy(f);
    uir_schedule_destroy(s);
    uir_arena_deinit(&arena);
    return status;
}
