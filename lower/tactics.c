/* The tactics: what is done to a group's naive loops before they become a kernel, each step a schedule primitive.
 *
 * In the order align, tile, inline, two-step reduce, compute-at, bind. One nest, the anchor's, is tiled over what is
 * not reduced: its outer loops are shared among the units, its last one becomes a slice. Everything else is inlined, or
 * computed at the tile in memory on the chip. Reductions get two variants: rows kept on the chip, and, for rows of any
 * length, blocks of rows that are computed again in each pass. */
#include "lower/tactics.h"

#include <stdio.h>
#include <string.h>

enum {
    MOST_BLOCKS = UIR_TACTIC_MOST_BLOCKS,
    MOST_LOOPS = UIR_LOOP_MAX_ITERS,
    LANES = 4096, /* elements of a slice, at most */
    TILE = 16384, /* elements of an index of the parallel axis, at least */
    ROWS = 64,    /* rows of an index of the parallel axis, at most */
    SHARING = 32, /* and at least, where all rows read something alike: what it costs to read is little beside them */
    TRANSPOSED = 32, /* side of a tile that is transposed */
    TWO_STEP = 32,   /* partial states of a reduction that the machine has no instruction for */
    COLUMN = 256,    /* columns reduced at once */
    PLACES = 32,     /* of a window whose loops are written out, at most */
    CHEAP = 3,       /* instructions that are computed again rather than kept */
};

/* A refusal of a primitive is an answer; all else ends the tactic. */
static uir_status asked(uir_status status, bool *out_done) {
    *out_done = status == UIR_STATUS_OK;
    return status == UIR_STATUS_UNSUPPORTED ? UIR_STATUS_OK : status;
}

/* ---- inline ---- */
/* What is used once goes into its user; so does what is cheaper to compute again than to keep. */
static bool wants_inline(const uir_tactic *t, uint32_t block) {
    const uir_loop_statement *s = uir_tactic_only_statement(t, block);
    bool as_index;
    if (!s || s->target_count != 1 || !uir_tactic_is_temp(t, s->targets[0].tensor)) return false;
    if (s->kind != UIR_LOOP_STATEMENT_STORE && s->kind != UIR_LOOP_STATEMENT_FINISH) return false;
    uint32_t uses = uir_tactic_count_uses(t, s->targets[0].tensor, &as_index);
    if (as_index) return false;
    if (uses <= 1 || s->kind == UIR_LOOP_STATEMENT_FINISH) return true;
    uir_tactic_cost c = {0};
    for (uint32_t v = 0; v < s->value_count; v++) uir_tactic_add_cost(t->f, s->values[v], &c);
    if (t->stream) return c.instructions <= 40;
    return !c.heavy && c.instructions <= CHEAP && c.loads <= 2;
}

static uir_status inline_all(uir_tactic *t) {
    for (bool again = true; again;) {
        uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
        again = false;
        for (uint32_t i = 0; i < count && i < MOST_BLOCKS && !again; i++) {
            if (!wants_inline(t, blocks[i])) continue;
            UIR_TRY(asked(uir_schedule_inline(t->s, blocks[i]), &again));
        }
    }
    return UIR_STATUS_OK;
}

/* ---- two-step reduce ---- */
static bool is_simple(const uir_loop_function *f, const uir_loop_monoid *m) {
    const uir_loop_expression *u = &f->expressions.data[m->update[0]];
    return m->state_count == 1 && u->kind == UIR_LOOP_CALL && u->argument_count == 2;
}

static uint32_t innermost_reduce_loop(const uir_tactic *t, uint32_t block) {
    uint32_t loops[MOST_LOOPS], count = uir_schedule_loops(t->s, block, loops, MOST_LOOPS);
    for (uint32_t i = count; i > 0; i--)
        if (uir_schedule_is_reduce(t->s, loops[i - 1])) return loops[i - 1];
    return UIR_LOOP_NONE;
}

/* A monoid that is no single instruction: partial states side by side, combined at the end. */
static uir_status two_step(uir_tactic *t) {
    uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++) {
        if (!uir_tactic_has_kind(t, blocks[i], UIR_LOOP_STATEMENT_UPDATE)) continue;
        const uir_loop_statement *s = uir_tactic_only_statement(t, blocks[i]);
        uint32_t loop = innermost_reduce_loop(t, blocks[i]);
        bool done;
        if (!s || loop == UIR_LOOP_NONE || is_simple(t->f, &t->f->monoids.data[s->monoid])) continue;
        uir_dim factor = uir_dim_const(t->f->dims, TWO_STEP);
        UIR_TRY(asked(uir_schedule_factorise_reduction(t->s, blocks[i], loop, factor, NULL, NULL, NULL), &done));
    }
    return UIR_STATUS_OK;
}

/* ---- the anchor and its tiles ---- */
/* The block whose nest is tiled: the last one that writes an output, of those with the most loops. */
static uint32_t find_anchor(const uir_tactic *t) {
    uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS), best = 0;
    uint32_t anchor = UIR_LOOP_NONE;
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++) {
        uint32_t loops[MOST_LOOPS], depth = uir_schedule_loops(t->s, blocks[i], loops, MOST_LOOPS);
        const uir_loop_statement *s = uir_tactic_at(t, uir_tactic_at(t, blocks[i])->first_child);
        if (uir_tactic_is_temp(t, s->targets[0].tensor)) continue;
        if (anchor != UIR_LOOP_NONE && depth < best) continue;
        anchor = blocks[i];
        best = depth;
    }
    return anchor;
}

/* Dims, tiles and tensors share one space of names in the text. */
static bool is_taken(const uir_tactic *t, const char *name) {
    for (uint32_t i = 0; i < t->f->sizes.count; i++)
        if (!strcmp(t->f->sizes.data[i].name, name)) return true;
    for (uint32_t i = 0; i < t->f->tiles.count; i++)
        if (!strcmp(t->f->tiles.data[i].name, name)) return true;
    for (uint32_t i = 0; i < t->f->tensors.count; i++)
        if (!strcmp(t->f->tensors.data[i].name, name)) return true;
    return false;
}

/* A tile size of the function. */
static uir_status add_tile(uir_tactic *t, int64_t most, uir_dim *out_dim, uint32_t *out_index) {
    char name[16];
    uir_loop_size tile;
    uir_symbol_facts facts = {1, most, 1, {0}};
    do snprintf(name, sizeof name, "t%u", t->names++);
    while (is_taken(t, name));
    UIR_TRY_ALLOCATE(tile.name, uir_arena_copy_string(&t->f->arena, name, strlen(name)));
    UIR_TRY(uir_dims_add_symbol(t->f->dims, tile.name, strlen(tile.name), facts, &tile.symbol));
    *out_index = t->f->tiles.count;
    UIR_TRY(uir_vector_push(&t->f->arena, &t->f->tiles, tile));
    *out_dim = uir_dim_symbol(t->f->dims, tile.symbol);
    return out_dim->id ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
}

/* The tiling function's only row so far gives the tile this value. */
static uir_status add_candidate(uir_tactic *t, uint32_t tile, uir_dim value) {
    uir_icandidate *row;
    if (!value.id) return UIR_STATUS_OUT_OF_MEMORY;
    if (!t->f->candidates.count) {
        uir_icandidate empty = {0};
        UIR_TRY_ALLOCATE(empty.tiles, uir_arena_allocate_array(&t->f->arena, 8, sizeof *empty.tiles));
        UIR_TRY(uir_vector_push(&t->f->arena, &t->f->candidates, empty));
    }
    row = &t->f->candidates.data[0];
    row->tiles[tile] = value;
    return UIR_STATUS_OK;
}

static uir_dim number(const uir_tactic *t, int64_t value) {
    return uir_dim_const(t->f->dims, value);
}

/* Rows of an index of the parallel axis: so many that there is enough to do, and not so many that units are idle. */
static uir_status row_tile(uir_tactic *t, uir_dim row_elements, uir_dim *out_factor) {
    uir_dims *dims = t->f->dims;
    int64_t value;
    uint32_t tile;
    int64_t least_rows = t->shares ? SHARING : 1;
    if (uir_dim_is_const(dims, row_elements, &value)) {
        int64_t rows = value >= TILE ? 1 : TILE / (value < 1 ? 1 : value);
        rows = rows < least_rows ? least_rows : rows;
        *out_factor = number(t, rows > ROWS ? ROWS : rows);
        return UIR_STATUS_OK;
    }
    for (uint32_t i = 0; i < t->tile_count; i++) {
        *out_factor = t->tile[i];
        if (uir_dim_equal(t->tile_of[i], row_elements)) return UIR_STATUS_OK;
    }
    if (t->tile_count == 8) return UIR_STATUS_UNSUPPORTED;
    UIR_TRY(add_tile(t, ROWS, out_factor, &tile));
    t->tile_of[t->tile_count] = row_elements;
    t->tile[t->tile_count++] = *out_factor;
    uir_dim least = uir_dim_max(dims, row_elements, number(t, TILE / ROWS));
    return add_candidate(t, tile,
                         uir_dim_max(dims, number(t, least_rows), uir_dim_floordiv(dims, number(t, TILE), least)));
}

static bool is_short(const uir_tactic *t, uir_dim extent, int64_t most) {
    int64_t low, high;
    uir_dim_bounds(t->f->dims, extent, &low, &high);
    return high <= most;
}

static uir_dim product_of(const uir_tactic *t, const uint32_t *loops, uint32_t count) {
    uir_dim product = number(t, 1);
    for (uint32_t i = 0; i < count; i++) product = uir_dim_mul(t->f->dims, product, uir_tactic_at(t, loops[i])->extent);
    return product;
}

/* Outer loops become the parallel axes, as many as there may be; the last of them by tiles of `rows`. Gives the loop
 * that everything else is computed under. */
static uir_status bind_outer(uir_tactic *t, const uint32_t *loops, uint32_t count, uir_dim elements, uint32_t *out_at) {
    uint32_t last = count - 1, inner = loops[last], parallel = count > 4 ? 4 : count;
    bool done;
    *out_at = loops[last];
    if (count <= 4) {
        uir_dim factor;
        UIR_TRY(row_tile(t, elements, &factor));
        int64_t value, rows = 0;
        bool whole = uir_dim_is_const(t->f->dims, uir_tactic_at(t, loops[last])->extent, &rows) && rows <= ROWS;
        if (uir_dim_is_const(t->f->dims, factor, &value)) whole = whole && rows <= value;
        if (whole && !(t->shares && count == 1)) {
            parallel--; /* all of them at once */
        } else if (!uir_dim_is_const(t->f->dims, factor, &value) || value > 1) {
            UIR_TRY(uir_schedule_split(t->s, loops[last], factor, NULL, &inner));
            *out_at = inner;
        }
    }
    for (uint32_t i = 0; i < parallel; i++) {
        UIR_TRY(asked(uir_schedule_set_kind(t->s, loops[i], UIR_LOOP_PARALLEL, NULL), &done));
        if (!done) break;
    }
    return UIR_STATUS_OK;
}

/* Does some operand lie in the same place for every round of the loop? */
static void find_sharing(uir_tactic *t, uint32_t loop) {
    for (uint32_t i = 0; i < t->f->tensors.count; i++) {
        uir_tactic_reading r = uir_tactic_find_reading(t, i, loop);
        t->shares = t->shares || (t->f->tensors.data[i].role == UIR_LOOP_ROLE_IN && r.spans && !r.moves);
    }
}

/* ---- trivial groups ---- */
typedef struct place {
    uint32_t loop; /* others are computed under it; NONE: there is none */
} place;

static uir_status vectorise(uir_tactic *t, uint32_t loop) {
    return uir_schedule_set_kind(t->s, loop, UIR_LOOP_VECTORISED, NULL);
}

/* Tiles the nest of an elementwise block. */
static uir_status tile_trivial(uir_tactic *t, uint32_t block, place *out_place, uint32_t *out_lanes,
                               uint32_t *out_count) {
    uint32_t loops[MOST_LOOPS], count = uir_schedule_loops(t->s, block, loops, MOST_LOOPS), lane = UIR_LOOP_NONE;
    out_place->loop = UIR_LOOP_NONE;
    *out_count = 0;
    if (!count) return UIR_STATUS_OK;
    for (uint32_t i = count; i > 0 && lane == UIR_LOOP_NONE; i--)
        if (!uir_tactic_decides_position(t, block, loops[i - 1])) lane = i - 1;
    if (lane == UIR_LOOP_NONE) return bind_outer(t, loops, count, number(t, 8), &out_place->loop);
    uint32_t crossed = lane == count - 1 ? uir_tactic_crossed_loop(t, block, loops, count) : UIR_LOOP_NONE;
    uint32_t outer[MOST_LOOPS + 2], outers = 0, inner[2], inners = 0;
    uir_dim elements = number(t, 1);
    if (crossed != UIR_LOOP_NONE) {
        uint32_t pair[2] = {loops[crossed], loops[lane]};
        for (uint32_t i = 0; i < count; i++)
            if (i != crossed && i != lane) outer[outers++] = loops[i];
        for (int p = 0; p < 2; p++) {
            if (is_short(t, uir_tactic_at(t, pair[p])->extent, 2 * TRANSPOSED)) {
                inner[inners++] = pair[p];
                elements = uir_dim_mul(t->f->dims, elements, uir_tactic_at(t, pair[p])->extent);
                continue;
            }
            UIR_TRY(uir_schedule_split(t->s, pair[p], number(t, TRANSPOSED), &outer[outers], &inner[inners]));
            outers++, inners++;
            elements = uir_dim_mul(t->f->dims, elements, number(t, TRANSPOSED));
        }
    } else {
        uint32_t last = loops[lane];
        uir_dim extent = uir_tactic_at(t, last)->extent;
        for (uint32_t i = 0; i < count; i++)
            if (i != lane) outer[outers++] = loops[i];
        elements = extent;
        if (outers == 0) {
            uir_dim factor = number(t, LANES);
            if (!is_short(t, extent, LANES)) {
                UIR_TRY(uir_schedule_split(t->s, last, factor, &outer[outers], &inner[0]));
                outers++, inners = 1;
                elements = number(t, TILE);
            } else {
                inner[inners++] = last;
            }
        } else if (is_short(t, extent, LANES)) {
            inner[inners++] = last;
        } else {
            uint32_t step;
            UIR_TRY(uir_schedule_split(t->s, last, number(t, LANES), &step, &inner[0]));
            inners = 1;
            /* rows, then steps along the row */
            uint32_t order[MOST_LOOPS + 4], n = 0;
            for (uint32_t i = 0; i < outers; i++) order[n++] = outer[i];
            order[n++] = step;
            order[n++] = inner[0];
            UIR_TRY(uir_schedule_reorder(t->s, order, n));
            UIR_TRY(bind_outer(t, outer, outers, elements, &out_place->loop));
            out_place->loop = step;
            out_lanes[0] = inner[0];
            *out_count = 1;
            return UIR_STATUS_OK;
        }
    }
    uint32_t order[MOST_LOOPS + 4], n = 0;
    for (uint32_t i = 0; i < outers; i++) order[n++] = outer[i];
    for (uint32_t i = 0; i < inners; i++) order[n++] = inner[i];
    if (n > 1) UIR_TRY(uir_schedule_reorder(t->s, order, n));
    if (outers && inners == 1) find_sharing(t, outer[outers - 1]);
    if (outers) UIR_TRY(bind_outer(t, outer, outers, elements, &out_place->loop));
    for (uint32_t i = 0; i < inners; i++) out_lanes[i] = inner[i];
    *out_count = inners;
    return UIR_STATUS_OK;
}

static bool is_under(const uir_tactic *t, uint32_t statement, uint32_t loop) {
    for (uint32_t p = uir_schedule_parent(t->s, statement); p != UIR_LOOP_NONE; p = uir_schedule_parent(t->s, p))
        if (p == loop) return true;
    return false;
}

/* All blocks but those under the loop, last first: what makes something for those comes under it as well. */
static uir_status compute_producers(uir_tactic *t, uint32_t loop) {
    uir_tactic_touched there = {0}, own = {0};
    for (bool again = true; again;) {
        uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
        again = false;
        UIR_TRY(uir_tactic_find_touched(t, loop, &there));
        for (uint32_t i = count < MOST_BLOCKS ? count : MOST_BLOCKS; i > 0 && !again; i--) {
            uint32_t b = blocks[i - 1];
            const uir_loop_statement *s = uir_tactic_at(t, uir_tactic_at(t, b)->first_child);
            if (is_under(t, b, loop) || s->kind == UIR_LOOP_STATEMENT_INIT) continue;
            bool made = uir_tactic_is_temp(t, s->targets[0].tensor);
            UIR_TRY(uir_tactic_find_touched(t, b, &own));
            if (made && uir_tactic_feeds(t, &own, &there))
                UIR_TRY(asked(uir_schedule_compute_at(t->s, b, loop), &again));
            else if (!made && uir_tactic_feeds(t, &there, &own))
                UIR_TRY(asked(uir_schedule_reverse_compute_at(t->s, b, loop), &again));
        }
    }
    return UIR_STATUS_OK;
}

/* The loops of a block that are not around `loop`. */
static uint32_t own_loops(const uir_tactic *t, uint32_t block, uint32_t loop, uint32_t *out_loops) {
    uint32_t loops[MOST_LOOPS], count = uir_schedule_loops(t->s, block, loops, MOST_LOOPS), own = 0;
    uint32_t from = 0;
    for (uint32_t i = 0; i < count; i++)
        if (loops[i] == loop) from = i + 1;
    for (uint32_t i = from; i < count; i++) out_loops[own++] = loops[i];
    return own;
}

/* The places of a small window are written out: what is taken in stays in registers. */
static uir_status unroll_window(uir_tactic *t, uint32_t block, const uint32_t *own, uint32_t count) {
    int64_t places = 1, value;
    const uir_loop_statement *s = uir_tactic_at(t, uir_tactic_at(t, block)->first_child);
    bool done;
    if (s->kind != UIR_LOOP_STATEMENT_UPDATE || !is_simple(t->f, &t->f->monoids.data[s->monoid])) return UIR_STATUS_OK;
    if (!count || uir_schedule_is_reduce(t->s, own[count - 1])) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < count; i++) {
        if (!uir_schedule_is_reduce(t->s, own[i])) continue;
        if (!uir_dim_is_const(t->f->dims, uir_tactic_at(t, own[i])->extent, &value) || value > PLACES)
            return UIR_STATUS_OK;
        places *= value;
    }
    for (uint32_t i = 0; i < count && places <= PLACES; i++)
        if (uir_schedule_is_reduce(t->s, own[i]))
            UIR_TRY(asked(uir_schedule_set_kind(t->s, own[i], UIR_LOOP_UNROLLED, NULL), &done));
    return UIR_STATUS_OK;
}

/* Vectorises what a block computes at the tile: its last loop, and the one before it as well where two are. */
static uir_status vectorise_block(uir_tactic *t, uint32_t block, uint32_t loop) {
    uint32_t own[MOST_LOOPS], count = own_loops(t, block, loop, own);
    for (uint32_t i = 0; i < count; i++)
        if (uir_tactic_at(t, own[i])->loop_kind == UIR_LOOP_VECTORISED) return UIR_STATUS_OK;
    if (!count) return UIR_STATUS_OK;
    bool done;
    uint32_t last = own[count - 1], others[2];
    if (uir_schedule_blocks(t->s, last, others, 2) > 1 || uir_tactic_decides_position(t, block, last))
        return UIR_STATUS_OK;
    const uir_loop_statement *first = uir_tactic_at(t, uir_tactic_at(t, block)->first_child);
    if (uir_schedule_is_reduce(t->s, last) && !is_simple(t->f, &t->f->monoids.data[first->monoid]))
        return UIR_STATUS_OK; /* step by step: what is left of a two-step reduction */
    if ((t->stream || !t->reduces) && !is_short(t, uir_tactic_at(t, last)->extent, LANES)) {
        uint32_t inner;
        UIR_TRY(asked(uir_schedule_split(t->s, last, number(t, LANES), NULL, &inner), &done));
        if (done) last = inner;
    }
    return asked(vectorise(t, last), &done);
}

static uint32_t top_of(const uir_tactic *t, uint32_t statement) {
    for (uint32_t p = uir_schedule_parent(t->s, statement); p != UIR_LOOP_NONE; p = uir_schedule_parent(t->s, p))
        statement = p;
    return statement;
}

/* Is it made in one nest and read in another, with one that units share out among them or between? Then it lies in the
 * device's memory: what is on the chip ends with the phase. */
static bool goes_between(const uir_tactic *t, uint32_t tensor) {
    uint32_t blocks[2 * MOST_BLOCKS], count = uir_schedule_writers(t->s, tensor, blocks, MOST_BLOCKS);
    if (count > MOST_BLOCKS) count = MOST_BLOCKS;
    uint32_t readers = uir_schedule_readers(t->s, tensor, blocks + count, MOST_BLOCKS);
    count += readers > MOST_BLOCKS ? MOST_BLOCKS : readers;
    bool parallel = false;
    uint32_t touched = 0, seen = 0;
    for (uint32_t top = t->f->first; top != UIR_LOOP_NONE && seen < count; top = uir_tactic_at(t, top)->next) {
        uint32_t before = seen;
        for (uint32_t i = 0; i < count; i++) seen += top_of(t, blocks[i]) == top;
        touched += seen > before;
        parallel = parallel || (seen && uir_tactic_at(t, top)->kind == UIR_LOOP_STATEMENT_FOR &&
                                uir_tactic_at(t, top)->loop_kind == UIR_LOOP_PARALLEL);
    }
    return parallel && touched > 1;
}

/* Nests that could not be brought under the anchor's: shared among the units by themselves. */
static uir_status bind_strays(uir_tactic *t) {
    bool done;
    for (uint32_t id = t->f->first; id != UIR_LOOP_NONE; id = uir_tactic_at(t, id)->next) {
        if (uir_tactic_at(t, id)->kind != UIR_LOOP_STATEMENT_FOR || uir_tactic_at(t, id)->loop_kind != UIR_LOOP_SERIAL)
            continue;
        uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, id, blocks, MOST_BLOCKS);
        UIR_TRY(asked(uir_schedule_set_kind(t->s, id, UIR_LOOP_PARALLEL, NULL), &done));
        for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++)
            if (uir_tactic_at(t, id)->first_child != blocks[i]) UIR_TRY(vectorise_block(t, blocks[i], id));
    }
    return UIR_STATUS_OK;
}

/* What is on the chip, and where. */
static uir_status place_temps(uir_tactic *t) {
    const char *scratch = uir_lower_space(t->device, UIR_SPACE_SCRATCH);
    const char *registers = uir_lower_space(t->device, UIR_SPACE_REGISTERS);
    for (uint32_t i = 0; i < t->f->tensors.count; i++) {
        uint32_t blocks[MOST_BLOCKS];
        bool done;
        if (!uir_tactic_is_temp(t, i) || !uir_schedule_writers(t->s, i, blocks, MOST_BLOCKS) || goes_between(t, i))
            continue;
        if (scratch) UIR_TRY(asked(uir_schedule_set_scope(t->s, i, scratch), &done));
        UIR_TRY(asked(uir_schedule_shrink(t->s, i), &done));
        bool single = true;
        for (uint32_t d = 0; d < t->f->tensors.data[i].rank; d++) {
            int64_t value;
            single = single && uir_dim_is_const(t->f->dims, t->f->tensors.data[i].extents[d], &value) && value == 1;
        }
        if (single && registers) UIR_TRY(asked(uir_schedule_set_scope(t->s, i, registers), &done));
    }
    return UIR_STATUS_OK;
}

/* Nests over equal outer loops become one: pieces of a concatenation, outputs side by side. */
static uir_status merge_list(uir_tactic *t, uint32_t first) {
    while (first != UIR_LOOP_NONE && uir_tactic_at(t, first)->next != UIR_LOOP_NONE) {
        uint32_t next = uir_tactic_at(t, first)->next;
        bool done = false;
        bool loops = uir_tactic_at(t, first)->kind == UIR_LOOP_STATEMENT_FOR &&
                     uir_tactic_at(t, next)->kind == UIR_LOOP_STATEMENT_FOR &&
                     uir_tactic_at(t, first)->loop_kind != UIR_LOOP_VECTORISED;
        if (loops) UIR_TRY(asked(uir_schedule_merge_loops(t->s, first, next), &done));
        if (!done) {
            if (uir_tactic_at(t, first)->kind == UIR_LOOP_STATEMENT_FOR)
                UIR_TRY(merge_list(t, uir_tactic_at(t, first)->first_child));
            first = next;
        }
    }
    if (first != UIR_LOOP_NONE && uir_tactic_at(t, first)->kind == UIR_LOOP_STATEMENT_FOR)
        return merge_list(t, uir_tactic_at(t, first)->first_child);
    return UIR_STATUS_OK;
}

static bool is_in(const uint32_t *list, uint32_t count, uint32_t id) {
    for (uint32_t i = 0; i < count; i++)
        if (list[i] == id) return true;
    return false;
}

/* Operands that are read more than once come on the chip: rows that several passes read, for the row; what every row
 * reads alike, for the tile of rows. */
static uir_status cache_operands(uir_tactic *t, uint32_t loop) {
    uint32_t count = t->f->tensors.count, tile = uir_schedule_parent(t->s, loop);
    bool tiled = uir_tactic_at(t, loop)->loop_kind == UIR_LOOP_SERIAL && tile != UIR_LOOP_NONE &&
                 uir_tactic_at(t, tile)->kind == UIR_LOOP_STATEMENT_FOR;
    const char *scratch = uir_lower_space(t->device, UIR_SPACE_SCRATCH);
    for (uint32_t i = 0; i < count && scratch; i++) {
        uint32_t copy;
        bool done;
        if (t->f->tensors.data[i].role != UIR_LOOP_ROLE_IN) continue;
        uir_tactic_reading r = uir_tactic_find_reading(t, i, loop);
        bool for_tile = tiled && !r.moves;
        if (!r.spans || r.irregular || (r.loads < 2 && !for_tile)) continue;
        UIR_TRY(asked(uir_schedule_cache_read(t->s, i, UIR_LOOP_NONE, scratch, NULL, &copy), &done));
        if (!done) continue;
        UIR_TRY(asked(uir_schedule_compute_at(t->s, copy, for_tile ? tile : loop), &done));
        if (done)
            UIR_TRY(vectorise_block(t, copy, for_tile ? tile : loop));
        else
            UIR_TRY(uir_schedule_inline(t->s, copy));
    }
    return UIR_STATUS_OK;
}

/* The innermost loop that steps around all that read a tensor; NONE. */
static uint32_t loop_of_readers(const uir_tactic *t, uint32_t tensor) {
    uint32_t readers[MOST_BLOCKS], count = uir_schedule_readers(t->s, tensor, readers, MOST_BLOCKS);
    if (!count || count > MOST_BLOCKS) return UIR_LOOP_NONE;
    for (uint32_t p = uir_schedule_parent(t->s, readers[0]); p != UIR_LOOP_NONE; p = uir_schedule_parent(t->s, p)) {
        bool all = uir_tactic_at(t, p)->kind == UIR_LOOP_STATEMENT_FOR &&
                   uir_tactic_at(t, p)->loop_kind != UIR_LOOP_VECTORISED;
        for (uint32_t i = 1; i < count && all; i++) all = is_under(t, readers[i], p);
        if (all) return p;
    }
    return UIR_LOOP_NONE;
}

/* What several outputs read is computed for all of them where their nests have become one. */
static uir_status compute_shared(uir_tactic *t) {
    for (bool again = true; again;) {
        uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
        again = false;
        for (uint32_t i = count < MOST_BLOCKS ? count : MOST_BLOCKS; i > 0 && !again; i--) {
            uint32_t b = blocks[i - 1], tensor = uir_tactic_at(t, uir_tactic_at(t, b)->first_child)->targets[0].tensor;
            uint32_t loop = uir_tactic_is_temp(t, tensor) ? loop_of_readers(t, tensor) : UIR_LOOP_NONE;
            if (loop == UIR_LOOP_NONE || is_under(t, b, loop)) continue;
            UIR_TRY(asked(uir_schedule_compute_at(t->s, b, loop), &again));
            if (again) UIR_TRY(vectorise_block(t, b, loop));
        }
    }
    return UIR_STATUS_OK;
}

static uir_status schedule_trivial(uir_tactic *t) {
    uint32_t tiled[MOST_BLOCKS], tiled_count = 0;
    UIR_TRY(inline_all(t));
    while (tiled_count < MOST_BLOCKS) {
        uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
        uint32_t anchor = UIR_LOOP_NONE, lanes[2], lane_count;
        place where;
        /* The next output whose nest is as it was made. */
        for (uint32_t i = 0; i < count && i < MOST_BLOCKS && anchor == UIR_LOOP_NONE; i++) {
            const uir_loop_statement *s = uir_tactic_at(t, uir_tactic_at(t, blocks[i])->first_child);
            uint32_t loops[MOST_LOOPS], depth = uir_schedule_loops(t->s, blocks[i], loops, MOST_LOOPS);
            bool untouched = true;
            for (uint32_t k = 0; k < depth; k++)
                untouched = untouched && uir_tactic_at(t, loops[k])->loop_kind == UIR_LOOP_SERIAL;
            if (depth && untouched && !uir_tactic_is_temp(t, s->targets[0].tensor) &&
                !is_in(tiled, tiled_count, blocks[i]))
                anchor = blocks[i];
        }
        if (anchor == UIR_LOOP_NONE) break;
        tiled[tiled_count++] = anchor; /* where no loop may be shared or vectorised, its nest looks as it did */
        UIR_TRY(tile_trivial(t, anchor, &where, lanes, &lane_count));
        if (where.loop != UIR_LOOP_NONE) {
            UIR_TRY(compute_producers(t, where.loop));
        }
        for (uint32_t i = 0; i < lane_count; i++) UIR_TRY(vectorise(t, lanes[i]));
        if (!lane_count && where.loop == UIR_LOOP_NONE) break;
        if (where.loop != UIR_LOOP_NONE) {
            count = uir_schedule_blocks(t->s, where.loop, blocks, MOST_BLOCKS);
            for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++)
                if (blocks[i] != anchor) UIR_TRY(vectorise_block(t, blocks[i], where.loop));
            if (lane_count == 1) UIR_TRY(cache_operands(t, where.loop));
        }
    }
    uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++) UIR_TRY(vectorise_block(t, blocks[i], UIR_LOOP_NONE));
    UIR_TRY(merge_list(t, t->f->first));
    UIR_TRY(compute_shared(t));
    UIR_TRY(bind_strays(t));
    return place_temps(t);
}

/* ---- reduce groups ---- */
/* How many of a block's iteration variables say where something lies. */
static uint32_t count_variables(const uir_tactic *t, const uir_loop_statement *block, const uir_loop_access *access) {
    uint32_t count = 0, rank = t->f->tensors.data[access->tensor].rank;
    for (uint32_t k = 0; k < block->iter_count; k++) {
        bool found = false;
        for (uint32_t d = 0; d < rank; d++)
            found = found || uir_tactic_mentions(t, access->indices[d], block->iters[k].symbol);
        count += found;
    }
    return count;
}

/* Does the reduction run along the last index of what it reads, of those that change? Columns are reduced side by side.
 */
static bool reduces_columns(const uir_tactic *t) {
    uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++) {
        const uir_loop_statement *b = uir_tactic_at(t, blocks[i]);
        if (!uir_tactic_has_kind(t, blocks[i], UIR_LOOP_STATEMENT_UPDATE)) continue;
        const uir_loop_statement *s = uir_tactic_at(t, b->first_child);
        /* The last index of the load that most variables lead to: it brings the most. */
        uint32_t stack[64], depth = 0, most = 0;
        const uir_loop_access *widest = NULL;
        stack[depth++] = s->values[0];
        while (depth) {
            const uir_loop_expression *e = &t->f->expressions.data[stack[--depth]];
            for (uint32_t k = 0; e->kind == UIR_LOOP_CALL && k < e->argument_count && depth < 64; k++)
                stack[depth++] = e->arguments[k];
            if (e->kind != UIR_LOOP_LOAD) continue;
            uint32_t variables = count_variables(t, b, &e->load);
            if (!widest || variables > most) widest = &e->load, most = variables;
        }
        for (uint32_t d = widest ? t->f->tensors.data[widest->tensor].rank : 0; d > 0; d--) {
            bool along = false, across = false; /* both: windows along a row; what they make is a row as well */
            for (uint32_t k = 0; k < b->iter_count; k++) {
                if (!uir_tactic_mentions(t, widest->indices[d - 1], b->iters[k].symbol)) continue;
                along = along || b->iters[k].reduce;
                across = across || !b->iters[k].reduce;
            }
            if (along || across) return across;
        }
    }
    return false;
}

/* The anchor's loops that are not reduced axes: those that some update block has as well. */
static uint32_t spatial_loops(const uir_tactic *t, uint32_t anchor, uint32_t *out_loops) {
    uint32_t loops[MOST_LOOPS], count = uir_schedule_loops(t->s, anchor, loops, MOST_LOOPS), spatial = 0;
    uint32_t blocks[MOST_BLOCKS], block_count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
    const uir_loop_statement *a = uir_tactic_at(t, anchor);
    for (uint32_t i = 0; i < count; i++) {
        /* By the axis that its iteration variable runs along. */
        uint32_t iter = uir_tactic_iter_of_loop(t, anchor, loops[i]);
        bool reduced = false;
        for (uint32_t k = 0; iter != UIR_LOOP_NONE && k < block_count && k < MOST_BLOCKS; k++) {
            const uir_loop_statement *b = uir_tactic_at(t, blocks[k]);
            for (uint32_t n = 0; n < b->iter_count; n++)
                if (b->iters[n].reduce && b->iters[n].axis && b->iters[n].axis == a->iters[iter].axis) reduced = true;
        }
        if (!reduced) out_loops[spatial++] = loops[i];
    }
    return spatial;
}

static uir_status schedule_rows(uir_tactic *t, uint32_t anchor) {
    uint32_t loops[MOST_LOOPS], all = uir_schedule_loops(t->s, anchor, loops, MOST_LOOPS), spatial[MOST_LOOPS];
    uint32_t count = spatial_loops(t, anchor, spatial), loop = UIR_LOOP_NONE, lane = UIR_LOOP_NONE;
    uir_dim elements = number(t, LANES / 8);
    if (reduces_columns(t) && count) { /* columns side by side */
        uint32_t outer;
        lane = spatial[count - 1];
        if (!is_short(t, uir_tactic_at(t, lane)->extent, COLUMN)) {
            UIR_TRY(uir_schedule_split(t->s, lane, number(t, COLUMN), &outer, &lane));
            spatial[count - 1] = outer;
        } else {
            count--;
        }
    }
    uint32_t order[MOST_LOOPS + 2], n = 0;
    for (uint32_t i = 0; i < count; i++) order[n++] = spatial[i];
    uint32_t rest = 0;
    for (uint32_t i = 0; i < all; i++)
        if (loops[i] != lane && !is_in(spatial, count, loops[i])) order[n++] = loops[i], rest++;
    if (lane != UIR_LOOP_NONE) order[n++] = lane;
    if (n > 1 && memcmp(order, loops, n * sizeof *order)) UIR_TRY(uir_schedule_reorder(t->s, order, n));
    if (rest) elements = product_of(t, order + count, rest);
    if (lane != UIR_LOOP_NONE) elements = number(t, TILE);
    if (count && lane == UIR_LOOP_NONE && !t->stream) find_sharing(t, spatial[count - 1]);
    if (count) UIR_TRY(bind_outer(t, spatial, count, elements, &loop));
    if (loop != UIR_LOOP_NONE) UIR_TRY(compute_producers(t, loop));
    uint32_t blocks[MOST_BLOCKS], block_count = uir_schedule_blocks(t->s, loop, blocks, MOST_BLOCKS);
    for (uint32_t i = 0; i < block_count && i < MOST_BLOCKS; i++) {
        uint32_t own[MOST_LOOPS], own_count = own_loops(t, blocks[i], loop, own);
        if (lane != UIR_LOOP_NONE && own_count > 1) { /* the column's loop last, what is reduced around it */
            uint32_t turned[MOST_LOOPS], m = 0, column = UIR_LOOP_NONE;
            bool done;
            for (uint32_t k = 0; k < own_count; k++) {
                if (!uir_schedule_is_reduce(t->s, own[k]) && column == UIR_LOOP_NONE && blocks[i] != anchor)
                    column = own[k];
                else
                    turned[m++] = own[k];
            }
            if (column != UIR_LOOP_NONE) {
                turned[m++] = column;
                UIR_TRY(asked(uir_schedule_reorder(t->s, turned, m), &done));
                if (done) UIR_TRY(unroll_window(t, blocks[i], turned, m));
            }
        }
        UIR_TRY(vectorise_block(t, blocks[i], loop));
    }
    if (loop != UIR_LOOP_NONE && lane == UIR_LOOP_NONE && !t->stream) UIR_TRY(cache_operands(t, loop));
    UIR_TRY(bind_strays(t));
    return place_temps(t);
}

/* Is something reduced after an output is stored? Neither is computed for the other: no compute-at brings what both
 * read under one loop. */
static bool reduces_after_output(const uir_tactic *t) {
    uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
    bool stored = false;
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++) {
        const uir_loop_statement *s = uir_tactic_at(t, uir_tactic_at(t, blocks[i])->first_child);
        if (stored && s->kind == UIR_LOOP_STATEMENT_UPDATE) return true;
        stored = stored || !uir_tactic_is_temp(t, s->targets[0].tensor);
    }
    return false;
}

/* The rows' loops of all nests become one, as far as they go together. */
static uir_status merge_rows(uir_tactic *t, uint32_t levels) {
    for (uint32_t at = t->f->first; levels > 0 && at != UIR_LOOP_NONE; levels--) {
        for (bool done = true; done;) {
            uint32_t next = uir_tactic_at(t, at)->next;
            done = false;
            if (next != UIR_LOOP_NONE && uir_tactic_at(t, at)->kind == UIR_LOOP_STATEMENT_FOR &&
                uir_tactic_at(t, next)->kind == UIR_LOOP_STATEMENT_FOR)
                UIR_TRY(asked(uir_schedule_merge_loops(t->s, at, next), &done));
        }
        if (uir_tactic_at(t, at)->kind != UIR_LOOP_STATEMENT_FOR) break;
        at = uir_tactic_at(t, at)->first_child;
    }
    return UIR_STATUS_OK;
}

/* In every nest the rows come outermost, what is reduced inside them: as far as that is allowed. */
static uir_status order_rows(uir_tactic *t) {
    uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
    for (uint32_t b = 0; b < count && b < MOST_BLOCKS; b++) {
        uint32_t loops[MOST_LOOPS], all = uir_schedule_loops(t->s, blocks[b], loops, MOST_LOOPS);
        uint32_t order[2 * MOST_LOOPS], rows = spatial_loops(t, blocks[b], order), n = rows;
        bool done;
        for (uint32_t i = 0; i < all; i++)
            if (!is_in(order, rows, loops[i])) order[n++] = loops[i];
        if (n > 1 && memcmp(order, loops, n * sizeof *order))
            UIR_TRY(asked(uir_schedule_reorder(t->s, order, n), &done));
    }
    return UIR_STATUS_OK;
}

static uir_status schedule_reduce(uir_tactic *t) {
    UIR_TRY(inline_all(t));
    UIR_TRY(two_step(t));
    uint32_t anchor = find_anchor(t), spatial[MOST_LOOPS];
    if (anchor == UIR_LOOP_NONE) return UIR_STATUS_UNSUPPORTED;
    if (reduces_after_output(t) && !reduces_columns(t)) {
        UIR_TRY(order_rows(t));
        UIR_TRY(merge_rows(t, spatial_loops(t, anchor, spatial)));
    }
    return schedule_rows(t, anchor);
}

/* ---- variants ---- */
static bool has_reduction(const uir_loop_function *f) {
    for (uint32_t i = 0; i < f->statements.count; i++)
        if (f->statements.data[i].kind == UIR_LOOP_STATEMENT_UPDATE) return true;
    return false;
}

static uir_status schedule_variant(const uir_loop_function *naive, const uir_device *device, bool stream,
                                   uir_text *steps, uir_diagnostics *diagnostics, uir_loop_list *out) {
    uir_loop_function *f = NULL;
    UIR_TRY(uir_loop_clone(naive, &f));
    uir_tactic t = {.f = f, .device = device, .reduces = has_reduction(f), .stream = stream};
    uir_status status = uir_schedule_create(f, device, diagnostics, &t.s);
    if (status == UIR_STATUS_OK) {
        uir_schedule_set_mode(t.s, UIR_SCHEDULE_QUIET);
        status = t.reduces ? schedule_reduce(&t) : schedule_trivial(&t);
        if (status == UIR_STATUS_UNSUPPORTED)
            status = uir_error(diagnostics, status, NULL, "@%s: a step of its schedule is refused: %s", f->name,
                               uir_schedule_why(t.s));
        if (steps && status == UIR_STATUS_OK) {
            const uir_text *trace = uir_schedule_trace(t.s);
            uir_text_append(steps, trace->data ? trace->data : "", trace->length);
        }
    }
    uir_schedule_destroy(t.s);
    if (status != UIR_STATUS_OK) {
        uir_loop_function_destroy(f);
        return status;
    }
    return uir_loop_list_add(out, f);
}

/* Are there slices that may be longer than what is on the chip? */
static bool has_long_rows(const uir_loop_function *f) {
    for (uint32_t i = 0; i < f->statements.count; i++) {
        const uir_loop_statement *s = &f->statements.data[i];
        int64_t low, high;
        if (s->kind != UIR_LOOP_STATEMENT_FOR || s->loop_kind != UIR_LOOP_VECTORISED) continue;
        uir_dim_bounds(f->dims, s->extent, &low, &high);
        if (high > LANES) return true;
    }
    return false;
}

uir_status uir_nest_schedule(const uir_loop_function *f, const uir_device *device, uir_text *steps,
                             uir_diagnostics *diagnostics, uir_loop_list *out) {
    uint32_t first = out->count;
    UIR_TRY(schedule_variant(f, device, false, steps, diagnostics, out));
    if (!has_reduction(f) || !has_long_rows(out->functions[first])) return UIR_STATUS_OK;
    return schedule_variant(f, device, true, steps, diagnostics, out);
}
