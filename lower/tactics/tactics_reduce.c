/* Reductions with what comes before and after them: a unit has rows, or columns side by side. */
#include "lower/tactics/tactics.h"

#include <string.h>

enum {
    MOST_BLOCKS = UIR_TACTIC_MOST_BLOCKS,
    MOST_LOOPS = UIR_LOOP_MAX_ITERS,
    TWO_STEP = 32, /* partial states of a reduction that the machine has no instruction for */
    PLACES = 32,   /* of a window whose loops are written out, at most */
    PIXELS = 32,   /* windows of a line that a unit has at once */
};

/* ---- two-step reduce ---- */
static uint32_t innermost_reduce_loop(const uir_tactic *t, uint32_t block) {
    uint32_t loops[MOST_LOOPS], count = uir_schedule_loops(t->s, block, loops, MOST_LOOPS);
    for (uint32_t i = count; i > 0; i--)
        if (uir_schedule_is_reduce(t->s, loops[i - 1])) return loops[i - 1];
    return UIR_LOOP_NONE;
}

/* Are there columns, as many as make a vector? Their states are side by side as they are. */
static bool is_side_by_side(const uir_tactic *t, uint32_t block) {
    uint32_t loops[MOST_LOOPS], count = uir_schedule_loops(t->s, block, loops, MOST_LOOPS);
    bool columns;
    if (!uir_tactic_has_columns(t, block, &columns) || !columns) return false;
    for (uint32_t i = count; i > 0; i--)
        if (!uir_schedule_is_reduce(t->s, loops[i - 1]))
            return !uir_tactic_is_short(t, uir_tactic_at(t, loops[i - 1])->extent, TWO_STEP);
    return false;
}

/* A monoid that is no single instruction: partial states side by side, combined at the end. */
static uir_status two_step(uir_tactic *t) {
    uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++) {
        if (!uir_tactic_has_kind(t, blocks[i], UIR_LOOP_STATEMENT_UPDATE) || uir_tactic_is_left(t, blocks[i])) continue;
        const uir_loop_statement *s = uir_tactic_only_statement(t, blocks[i]);
        uint32_t loop = innermost_reduce_loop(t, blocks[i]);
        bool done;
        if (!s || loop == UIR_LOOP_NONE || uir_tactic_is_simple(t->f, &t->f->monoids.data[s->monoid])) continue;
        if (is_side_by_side(t, blocks[i])) continue;
        uir_dim factor = uir_dim_const(t->f->dims, TWO_STEP);
        UIR_TRY(
            uir_tactic_asked(uir_schedule_factorise_reduction(t->s, blocks[i], loop, factor, NULL, NULL, NULL), &done));
    }
    return UIR_STATUS_OK;
}

/* ---- rows and columns ---- */
/* The block whose nest is tiled: the last one that writes an output, of those with the most loops. */
static uint32_t find_anchor(const uir_tactic *t) {
    uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS), best = 0;
    uint32_t anchor = UIR_LOOP_NONE;
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++) {
        uint32_t loops[MOST_LOOPS], depth = uir_schedule_loops(t->s, blocks[i], loops, MOST_LOOPS);
        const uir_loop_statement *s = uir_tactic_at(t, uir_tactic_at(t, blocks[i])->first_child);
        if (uir_tactic_is_left(t, blocks[i]) || !uir_tactic_leaves(t, s->targets[0].tensor)) continue;
        if (anchor != UIR_LOOP_NONE && depth < best) continue;
        anchor = blocks[i];
        best = depth;
    }
    return anchor;
}

/* The places of a small window are written out: what is taken in stays in registers. */
static uir_status unroll_window(uir_tactic *t, uint32_t block, const uint32_t *own, uint32_t count) {
    int64_t places = 1, value;
    const uir_loop_statement *s = uir_tactic_at(t, uir_tactic_at(t, block)->first_child);
    bool done;
    if (s->kind != UIR_LOOP_STATEMENT_UPDATE || !uir_tactic_is_simple(t->f, &t->f->monoids.data[s->monoid]))
        return UIR_STATUS_OK;
    if (!count || uir_schedule_is_reduce(t->s, own[count - 1])) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < count; i++) {
        if (!uir_schedule_is_reduce(t->s, own[i])) continue;
        if (!uir_dim_is_const(t->f->dims, uir_tactic_at(t, own[i])->extent, &value) || value > PLACES)
            return UIR_STATUS_OK;
        places *= value;
    }
    for (uint32_t i = 0; i < count && places <= PLACES; i++)
        if (uir_schedule_is_reduce(t->s, own[i]))
            UIR_TRY(uir_tactic_asked(uir_schedule_set_kind(t->s, own[i], UIR_LOOP_UNROLLED, NULL), &done));
    return UIR_STATUS_OK;
}

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

bool uir_tactic_has_columns(const uir_tactic *t, uint32_t block, bool *out_columns) {
    const uir_loop_statement *b = uir_tactic_at(t, block);
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
        *out_columns = across;
        if (along || across) return true;
    }
    return false;
}

/* Has it been shaped, for another anchor? */
static bool is_shaped(const uir_tactic *t, uint32_t block) {
    uint32_t loops[MOST_LOOPS], depth = uir_schedule_loops(t->s, block, loops, MOST_LOOPS);
    for (uint32_t i = 0; i < depth && i < MOST_LOOPS; i++)
        if (uir_tactic_at(t, loops[i])->loop_kind != UIR_LOOP_SERIAL) return true;
    return false;
}

/* Are columns reduced side by side? */
static bool reduces_columns(const uir_tactic *t) {
    uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
    bool columns;
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++)
        if (uir_tactic_has_kind(t, blocks[i], UIR_LOOP_STATEMENT_UPDATE) && !uir_tactic_is_of_parts(t, blocks[i]) &&
            !(t->products && is_shaped(t, blocks[i])) && uir_tactic_has_columns(t, blocks[i], &columns))
            return columns;
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
            if (uir_tactic_is_left(t, blocks[k])) continue;
            const uir_loop_statement *b = uir_tactic_at(t, blocks[k]);
            for (uint32_t n = 0; n < b->iter_count; n++)
                if (b->iters[n].reduce && b->iters[n].axis && b->iters[n].axis == a->iters[iter].axis) reduced = true;
        }
        if (!reduced) out_loops[spatial++] = loops[i];
    }
    return spatial;
}

/* The axis that a loop of the block runs along; 0: none. */
static uint32_t axis_of_loop(const uir_tactic *t, uint32_t block, uint32_t loop) {
    uint32_t iter = uir_tactic_iter_of_loop(t, block, loop);
    return iter == UIR_LOOP_NONE ? 0 : uir_tactic_at(t, block)->iters[iter].axis;
}

/* Which of a block's own loops goes along the columns: by its axis, else the first that is not reduced. */
static uint32_t find_column(const uir_tactic *t, uint32_t block, const uint32_t *own, uint32_t count, uint32_t axis) {
    uint32_t column = UIR_LOOP_NONE;
    for (uint32_t i = count; i > 0; i--) {
        if (uir_schedule_is_reduce(t->s, own[i - 1])) continue;
        column = own[i - 1];
        if (axis && axis_of_loop(t, block, column) == axis) return column;
    }
    return column;
}

/* Does some load go along a window: by this iteration variable and by one that is reduced, in one dim? */
static bool reads_window(const uir_tactic *t, const uir_loop_statement *b, uint32_t expression, uint32_t iter) {
    const uir_loop_expression *e = &t->f->expressions.data[expression];
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++)
        if (reads_window(t, b, e->arguments[i], iter)) return true;
    for (uint32_t d = 0; e->kind == UIR_LOOP_LOAD && d < t->f->tensors.data[e->load.tensor].rank; d++) {
        if (!uir_tactic_mentions(t, e->load.indices[d], b->iters[iter].symbol)) continue;
        for (uint32_t k = 0; k < b->iter_count; k++)
            if (b->iters[k].reduce && uir_tactic_mentions(t, e->load.indices[d], b->iters[k].symbol)) return true;
    }
    return false;
}

/* Are windows along the axis reduced? Those of neighbours have elements in common. */
static bool has_windows_along(const uir_tactic *t, uint32_t axis) {
    uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
    for (uint32_t i = 0; axis && i < count && i < MOST_BLOCKS; i++) {
        const uir_loop_statement *b = uir_tactic_at(t, blocks[i]);
        if (!uir_tactic_has_kind(t, blocks[i], UIR_LOOP_STATEMENT_UPDATE)) continue;
        for (uint32_t k = 0; k < b->iter_count; k++)
            if (b->iters[k].axis == axis && !b->iters[k].reduce &&
                reads_window(t, b, uir_tactic_at(t, b->first_child)->values[0], k))
                return true;
    }
    return false;
}

/* Does a nest under the loop read what the block reduces? The states of all its rows are kept then, and a row is none
 * of their dims. */
static bool keeps_states(const uir_tactic *t, uint32_t block, uint32_t loop) {
    uint32_t readers[MOST_BLOCKS], tensor = uir_tactic_at(t, uir_tactic_at(t, block)->first_child)->targets[0].tensor;
    uint32_t count = uir_schedule_readers(t->s, tensor, readers, MOST_BLOCKS);
    if (!uir_tactic_has_kind(t, block, UIR_LOOP_STATEMENT_UPDATE)) return false;
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++)
        if (uir_tactic_is_under(t, readers[i], loop)) return true;
    return count > MOST_BLOCKS;
}

/* Nests beside the anchor's, under loops that they have in common. */
static uir_status vectorise_beside(uir_tactic *t, uint32_t loop) {
    uint32_t top = uir_tactic_top_of(t, loop), blocks[MOST_BLOCKS];
    uint32_t count = top == loop ? 0 : uir_schedule_blocks(t->s, top, blocks, MOST_BLOCKS);
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++)
        if (!uir_tactic_is_under(t, blocks[i], loop) && !keeps_states(t, blocks[i], loop))
            UIR_TRY(uir_tactic_vectorise_block(t, blocks[i], loop));
    return UIR_STATUS_OK;
}

static uir_status schedule_rows(uir_tactic *t, uint32_t anchor) {
    uint32_t loops[MOST_LOOPS], all = uir_schedule_loops(t->s, anchor, loops, MOST_LOOPS), spatial[MOST_LOOPS];
    uint32_t count = spatial_loops(t, anchor, spatial), loop = UIR_LOOP_NONE, lane = UIR_LOOP_NONE;
    uir_dim elements = uir_tactic_number(t, t->lanes < 8 ? 1 : t->lanes / 8);
    uint32_t columns = 0, pixels = 0, pixel = UIR_LOOP_NONE; /* their axes; a loop over some of the windows of a line */
    if (reduces_columns(t) && count) {                       /* columns side by side */
        uint32_t outer;
        lane = spatial[count - 1];
        columns = axis_of_loop(t, anchor, lane);
        if (!uir_tactic_is_short(t, uir_tactic_at(t, lane)->extent, t->column)) {
            UIR_TRY(uir_schedule_split(t->s, lane, uir_tactic_number(t, t->column), &outer, &lane));
            spatial[count - 1] = outer;
        } else {
            count--;
        }
    }
    if (lane != UIR_LOOP_NONE && count) pixels = axis_of_loop(t, anchor, spatial[count - 1]);
    if (!has_windows_along(t, pixels)) {
        pixels = 0;
    } else {
        UIR_TRY(
            uir_schedule_split(t->s, spatial[count - 1], uir_tactic_number(t, PIXELS), &spatial[count - 1], &pixel));
        all = uir_schedule_loops(t->s, anchor, loops, MOST_LOOPS);
    }
    uint32_t order[MOST_LOOPS + 2], n = 0;
    for (uint32_t i = 0; i < count; i++) order[n++] = spatial[i];
    uint32_t rest = 0;
    for (uint32_t i = 0; i < all; i++)
        if (loops[i] != lane && loops[i] != pixel && !uir_tactic_is_in(spatial, count, loops[i]))
            order[n++] = loops[i], rest++;
    if (pixel != UIR_LOOP_NONE) order[n++] = pixel;
    if (lane != UIR_LOOP_NONE) order[n++] = lane;
    if (n > 1 && memcmp(order, loops, n * sizeof *order)) UIR_TRY(uir_schedule_reorder(t->s, order, n));
    if (rest) elements = uir_tactic_product_of(t, order + count, rest);
    if (lane != UIR_LOOP_NONE) elements = uir_tactic_number(t, UIR_TACTIC_TILE);
    if (count && lane == UIR_LOOP_NONE && !t->stream) uir_tactic_find_sharing(t, spatial[count - 1]);
    if (count) UIR_TRY(uir_tactic_bind_outer(t, spatial, count, elements, &loop));
    if (loop != UIR_LOOP_NONE) UIR_TRY(uir_tactic_compute_producers(t, loop));
    uint32_t blocks[MOST_BLOCKS], block_count = uir_schedule_blocks(t->s, loop, blocks, MOST_BLOCKS);
    for (uint32_t i = 0; i < block_count && i < MOST_BLOCKS; i++) {
        uint32_t own[MOST_LOOPS], own_count = uir_tactic_own_loops(t, blocks[i], loop, own);
        uint32_t along = UIR_LOOP_NONE; /* the windows of a line */
        bool done;
        if (lane != UIR_LOOP_NONE && own_count > 1) { /* the column's loop last, what is reduced around it */
            uint32_t turned[MOST_LOOPS], m = 0, column = UIR_LOOP_NONE;
            if (blocks[i] != anchor) column = find_column(t, blocks[i], own, own_count, columns);
            for (uint32_t k = 0; k < own_count && pixels; k++)
                if (own[k] != column && axis_of_loop(t, blocks[i], own[k]) == pixels) along = own[k];
            for (uint32_t k = 0; k < own_count; k++)
                if (own[k] != column && own[k] != along) turned[m++] = own[k];
            if (along != UIR_LOOP_NONE) turned[m++] = along;
            if (column != UIR_LOOP_NONE) {
                turned[m++] = column;
                UIR_TRY(uir_tactic_asked(uir_schedule_reorder(t->s, turned, m), &done));
                if (done) UIR_TRY(unroll_window(t, blocks[i], turned, m));
            }
        }
        UIR_TRY(uir_tactic_vectorise_block(t, blocks[i], loop));
        if (along != UIR_LOOP_NONE) UIR_TRY(uir_tactic_asked(uir_tactic_vectorise(t, along), &done));
    }
    if (loop != UIR_LOOP_NONE) UIR_TRY(vectorise_beside(t, loop));
    if (loop != UIR_LOOP_NONE && lane == UIR_LOOP_NONE && !t->stream) UIR_TRY(uir_tactic_cache_operands(t, loop, true));
    return UIR_STATUS_OK;
}

/* Is something reduced after an output is stored? Neither is computed for the other: no compute-at brings what both
 * read under one loop. */
static bool reduces_after_output(const uir_tactic *t) {
    uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
    bool stored = false;
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++) {
        const uir_loop_statement *s = uir_tactic_at(t, uir_tactic_at(t, blocks[i])->first_child);
        if (uir_tactic_is_left(t, blocks[i])) continue;
        if (stored && s->kind == UIR_LOOP_STATEMENT_UPDATE) return true;
        stored = stored || uir_tactic_leaves(t, s->targets[0].tensor);
    }
    return false;
}

/* The rows' loops of all nests become one, as far as they go together. */
static uir_status merge_rows(uir_tactic *t, uint32_t levels) {
    uint32_t at = t->f->first;
    while (t->products && at != UIR_LOOP_NONE && uir_tactic_is_complete(t, at)) at = uir_tactic_at(t, at)->next;
    for (; levels > 0 && at != UIR_LOOP_NONE; levels--) {
        for (bool done = true; done;) {
            uint32_t next = uir_tactic_at(t, at)->next;
            done = false;
            if (t->products && next != UIR_LOOP_NONE &&
                (uir_tactic_is_complete(t, at) || uir_tactic_is_complete(t, next)))
                break;
            if (next != UIR_LOOP_NONE && uir_tactic_at(t, at)->kind == UIR_LOOP_STATEMENT_FOR &&
                uir_tactic_at(t, next)->kind == UIR_LOOP_STATEMENT_FOR)
                UIR_TRY(uir_tactic_asked(uir_schedule_merge_loops(t->s, at, next), &done));
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
        if (uir_tactic_is_left(t, blocks[b])) continue;
        uint32_t loops[MOST_LOOPS], all = uir_schedule_loops(t->s, blocks[b], loops, MOST_LOOPS);
        uint32_t order[2 * MOST_LOOPS], rows = spatial_loops(t, blocks[b], order), n = rows;
        bool done;
        for (uint32_t i = 0; i < all; i++)
            if (!uir_tactic_is_in(order, rows, loops[i])) order[n++] = loops[i];
        if (n > 1 && memcmp(order, loops, n * sizeof *order))
            UIR_TRY(uir_tactic_asked(uir_schedule_reorder(t->s, order, n), &done));
    }
    return UIR_STATUS_OK;
}

/* Rows that are stored again when they have been reduced had better stay on the chip, where they can. */
static bool stores_rows(const uir_tactic *t) {
    uint32_t anchor = find_anchor(t), loops[MOST_LOOPS];
    return anchor != UIR_LOOP_NONE &&
           spatial_loops(t, anchor, loops) < uir_schedule_loops(t->s, anchor, loops, MOST_LOOPS);
}

/* Is something that was reduced, in nests that are not left as they are, in what the block computes? */
static bool follows_reduction(uir_tactic *t, uint32_t block, uint32_t depth, bool *out) {
    uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
    uir_tactic_touched own = {0}, other = {0};
    *out = *out || uir_tactic_has_kind(t, block, UIR_LOOP_STATEMENT_UPDATE);
    if (*out || depth > 16) return true;
    if (uir_tactic_find_touched(t, block, &own) != UIR_STATUS_OK) return false;
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS && !*out; i++) {
        if (blocks[i] == block || uir_tactic_is_of_parts(t, blocks[i])) continue;
        if (uir_tactic_find_touched(t, blocks[i], &other) != UIR_STATUS_OK) return false;
        if (uir_tactic_feeds(t, &other, &own) && !follows_reduction(t, blocks[i], depth + 1, out)) return false;
    }
    return true;
}

/* What a segment gives to others, one after the other: rows where something is reduced for it. */
static uir_status schedule_segment(uir_tactic *t) {
    uint32_t done[MOST_BLOCKS], done_count = 0;
    while (done_count < MOST_BLOCKS) {
        uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
        uint32_t anchor = UIR_LOOP_NONE;
        bool reduced = false;
        for (uint32_t i = 0; i < count && i < MOST_BLOCKS && anchor == UIR_LOOP_NONE; i++) {
            const uir_loop_statement *s = uir_tactic_at(t, uir_tactic_at(t, blocks[i])->first_child);
            if (!uir_tactic_is_of_parts(t, blocks[i]) && uir_tactic_leaves(t, s->targets[0].tensor) &&
                !is_shaped(t, blocks[i]) && !uir_tactic_is_in(done, done_count, blocks[i]))
                anchor = blocks[i];
        }
        if (anchor == UIR_LOOP_NONE) break;
        done[done_count++] = anchor;
        if (!follows_reduction(t, anchor, 0, &reduced)) return UIR_STATUS_OUT_OF_MEMORY;
        UIR_TRY(reduced ? schedule_rows(t, anchor) : uir_tactic_schedule_elementwise(t, anchor));
    }
    UIR_TRY(uir_tactic_bind_strays(t));
    return uir_tactic_place_temps(t);
}

uir_status uir_tactic_schedule_reduction(uir_tactic *t) {
    bool parts = !t->products && uir_tactic_wants_parts(t) && (t->stream || !stores_rows(t));
    t->stream = t->stream || parts; /* none of what parts are of is kept */
    UIR_TRY(uir_tactic_inline_all(t));
    if (parts) UIR_TRY(uir_tactic_reduce_by_parts(t));
    UIR_TRY(two_step(t));
    if (t->products) return schedule_segment(t);
    uint32_t anchor = find_anchor(t), spatial[MOST_LOOPS];
    if (anchor == UIR_LOOP_NONE) return UIR_STATUS_UNSUPPORTED;
    if (reduces_after_output(t) && !reduces_columns(t)) {
        UIR_TRY(order_rows(t));
        UIR_TRY(merge_rows(t, spatial_loops(t, anchor, spatial)));
    }
    bool done;
    UIR_TRY(uir_tactic_schedule_multiply_adds(t, anchor, &done));
    if (!done) UIR_TRY(schedule_rows(t, anchor));
    UIR_TRY(uir_tactic_bind_strays(t));
    return uir_tactic_place_temps(t);
}
