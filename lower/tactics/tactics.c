/* The tactics: what is done to a group's naive loops before they become a kernel, each step a schedule primitive.
 *
 * In the order align, tile, inline, two-step reduce, compute-at, bind. One nest, the anchor's, is tiled over what is
 * not reduced: its outer loops are shared among the units, its last one becomes a slice. Everything else is inlined, or
 * computed at the tile in memory on the chip. Reductions get two variants: rows kept on the chip, and, for rows of any
 * length, blocks of rows that are computed again in each pass. */
#include "lower/select/kernel.h"
#include "lower/tactics/tactics.h"

#include <string.h>

enum {
    MOST_BLOCKS = UIR_TACTIC_MOST_BLOCKS,
    MOST_LOOPS = UIR_LOOP_MAX_ITERS,
    TRANSPOSED = 32, /* side of a tile that is transposed, at most */
};

/* ---- trivial groups ---- */
/* Several short rows are one slice where units bring them to a memory of their own: what each instruction takes until
 * it is done is shared by all of them. */
static uir_status take_rows(uir_tactic *t, uint32_t block, uir_dim extent, uint32_t *outer, uint32_t outers,
                            uint32_t *inner, uint32_t *inners) {
    int64_t low, high, all, units = uir_tactic_count_units_apart(t->machine);
    uir_dim_bounds(t->f->dims, extent, &low, &high);
    if (!units || high < 1 || high > t->lanes / 2) return UIR_STATUS_OK;
    int64_t rows = t->lanes / high;
    if (uir_dim_is_const(t->f->dims, uir_tactic_product_of(t, outer, outers), &all) && rows > (all - 1) / units + 1)
        rows = (all - 1) / units + 1; /* each unit has some */
    uint32_t *loop = &outer[outers - 1];
    if (rows < 2 || uir_tactic_is_short(t, uir_tactic_at(t, *loop)->extent, rows) ||
        uir_tactic_decides_position(t, block, *loop))
        return UIR_STATUS_OK;
    return uir_schedule_split(t->s, *loop, uir_tactic_number(t, rows), loop, &inner[(*inners)++]);
}

/* Tiles the nest of an elementwise block. */
static uir_status tile_trivial(uir_tactic *t, uint32_t block, uint32_t *out_at, uint32_t *out_lanes,
                               uint32_t *out_count) {
    uint32_t loops[MOST_LOOPS], count = uir_schedule_loops(t->s, block, loops, MOST_LOOPS), lane = UIR_LOOP_NONE;
    *out_at = UIR_LOOP_NONE;
    *out_count = 0;
    if (!count) return UIR_STATUS_OK;
    for (uint32_t i = count; i > 0 && lane == UIR_LOOP_NONE; i--)
        if (!uir_tactic_decides_position(t, block, loops[i - 1])) lane = i - 1;
    if (lane == UIR_LOOP_NONE) return uir_tactic_bind_outer(t, loops, count, uir_tactic_number(t, 8), out_at);
    uint32_t crossed = lane == count - 1 ? uir_tactic_crossed_loop(t, block, loops, count) : UIR_LOOP_NONE;
    uint32_t outer[MOST_LOOPS + 2], outers = 0, inner[2], inners = 0;
    uir_dim elements = uir_tactic_number(t, 1);
    int64_t side = t->lanes < TRANSPOSED ? t->lanes : TRANSPOSED;
    if (crossed != UIR_LOOP_NONE) {
        uint32_t pair[2] = {loops[crossed], loops[lane]};
        for (uint32_t i = 0; i < count; i++)
            if (i != crossed && i != lane) outer[outers++] = loops[i];
        for (int p = 0; p < 2; p++) {
            if (uir_tactic_is_short(t, uir_tactic_at(t, pair[p])->extent, 2 * side)) {
                inner[inners++] = pair[p];
                elements = uir_dim_mul(t->f->dims, elements, uir_tactic_at(t, pair[p])->extent);
                continue;
            }
            UIR_TRY(uir_schedule_split(t->s, pair[p], uir_tactic_number(t, side), &outer[outers], &inner[inners]));
            outers++, inners++;
            elements = uir_dim_mul(t->f->dims, elements, uir_tactic_number(t, side));
        }
    } else {
        uint32_t last = loops[lane];
        uir_dim extent = uir_tactic_at(t, last)->extent;
        for (uint32_t i = 0; i < count; i++)
            if (i != lane) outer[outers++] = loops[i];
        elements = extent;
        if (outers == 0) {
            uir_dim factor = uir_tactic_number(t, t->lanes);
            if (!uir_tactic_is_short(t, extent, t->lanes)) {
                UIR_TRY(uir_schedule_split(t->s, last, factor, &outer[outers], &inner[0]));
                outers++, inners = 1;
                elements = uir_tactic_number(t, UIR_TACTIC_TILE);
            } else {
                inner[inners++] = last;
            }
        } else if (uir_tactic_is_short(t, extent, t->lanes)) {
            UIR_TRY(take_rows(t, block, extent, outer, outers, inner, &inners));
            inner[inners++] = last;
        } else {
            uint32_t step;
            UIR_TRY(uir_schedule_split(t->s, last, uir_tactic_number(t, t->lanes), &step, &inner[0]));
            inners = 1;
            /* rows, then steps along the row */
            uint32_t order[MOST_LOOPS + 4], n = 0;
            for (uint32_t i = 0; i < outers; i++) order[n++] = outer[i];
            order[n++] = step;
            order[n++] = inner[0];
            UIR_TRY(uir_schedule_reorder(t->s, order, n));
            UIR_TRY(uir_tactic_bind_outer(t, outer, outers, elements, out_at));
            *out_at = step;
            out_lanes[0] = inner[0];
            *out_count = 1;
            return UIR_STATUS_OK;
        }
    }
    uint32_t order[MOST_LOOPS + 4], n = 0;
    for (uint32_t i = 0; i < outers; i++) order[n++] = outer[i];
    for (uint32_t i = 0; i < inners; i++) order[n++] = inner[i];
    if (n > 1) UIR_TRY(uir_schedule_reorder(t->s, order, n));
    if (outers && inners == 1) uir_tactic_find_sharing(t, outer[outers - 1]);
    if (outers) UIR_TRY(uir_tactic_bind_outer(t, outer, outers, elements, out_at));
    for (uint32_t i = 0; i < inners; i++) out_lanes[i] = inner[i];
    *out_count = inners;
    return UIR_STATUS_OK;
}

/* Nests over equal outer loops become one: pieces of a concatenation, outputs side by side. */
static uir_status merge_list(uir_tactic *t, uint32_t first) {
    while (first != UIR_LOOP_NONE && uir_tactic_at(t, first)->next != UIR_LOOP_NONE) {
        uint32_t next = uir_tactic_at(t, first)->next;
        bool done = false;
        bool apart = uir_tactic_is_complete(t, first) || uir_tactic_is_complete(t, next);
        bool loops = !apart && uir_tactic_at(t, first)->kind == UIR_LOOP_STATEMENT_FOR &&
                     uir_tactic_at(t, next)->kind == UIR_LOOP_STATEMENT_FOR &&
                     uir_tactic_at(t, first)->loop_kind != UIR_LOOP_VECTORISED;
        if (loops) UIR_TRY(uir_tactic_asked(uir_schedule_merge_loops(t->s, first, next), &done));
        if (!done) {
            if (uir_tactic_at(t, first)->kind == UIR_LOOP_STATEMENT_FOR && !uir_tactic_is_complete(t, first))
                UIR_TRY(merge_list(t, uir_tactic_at(t, first)->first_child));
            first = next;
        }
    }
    if (first != UIR_LOOP_NONE && uir_tactic_at(t, first)->kind == UIR_LOOP_STATEMENT_FOR &&
        !uir_tactic_is_complete(t, first))
        return merge_list(t, uir_tactic_at(t, first)->first_child);
    return UIR_STATUS_OK;
}

/* The innermost loop that steps around all that read a tensor; NONE. */
static uint32_t loop_of_readers(const uir_tactic *t, uint32_t tensor) {
    uint32_t readers[MOST_BLOCKS], count = uir_schedule_readers(t->s, tensor, readers, MOST_BLOCKS);
    if (!count || count > MOST_BLOCKS) return UIR_LOOP_NONE;
    for (uint32_t p = uir_schedule_parent(t->s, readers[0]); p != UIR_LOOP_NONE; p = uir_schedule_parent(t->s, p)) {
        bool all = uir_tactic_at(t, p)->kind == UIR_LOOP_STATEMENT_FOR &&
                   uir_tactic_at(t, p)->loop_kind != UIR_LOOP_VECTORISED;
        for (uint32_t i = 1; i < count && all; i++) all = uir_tactic_is_under(t, readers[i], p);
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
            uint32_t loop = !uir_tactic_leaves(t, tensor) ? loop_of_readers(t, tensor) : UIR_LOOP_NONE;
            if (loop == UIR_LOOP_NONE || uir_tactic_is_under(t, b, loop) || uir_tactic_is_of_parts(t, b)) continue;
            UIR_TRY(uir_tactic_asked(uir_schedule_compute_at(t->s, b, loop), &again));
            if (again) UIR_TRY(uir_tactic_vectorise_block(t, b, loop));
        }
    }
    return UIR_STATUS_OK;
}

uir_status uir_tactic_schedule_elementwise(uir_tactic *t, uint32_t block) {
    uint32_t blocks[MOST_BLOCKS], lanes[2], lane_count, at;
    UIR_TRY(tile_trivial(t, block, &at, lanes, &lane_count));
    if (at != UIR_LOOP_NONE) UIR_TRY(uir_tactic_compute_producers(t, at));
    for (uint32_t i = 0; i < lane_count; i++) UIR_TRY(uir_tactic_vectorise(t, lanes[i]));
    if (at == UIR_LOOP_NONE) return UIR_STATUS_OK;
    uint32_t count = uir_schedule_blocks(t->s, at, blocks, MOST_BLOCKS);
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++)
        if (blocks[i] != block) UIR_TRY(uir_tactic_vectorise_block(t, blocks[i], at));
    bool one = lane_count == 1;
    return one || uir_tactic_count_units_apart(t->machine) ? uir_tactic_cache_operands(t, at, one) : UIR_STATUS_OK;
}

static uir_status schedule_trivial(uir_tactic *t) {
    uint32_t tiled[MOST_BLOCKS], tiled_count = 0;
    UIR_TRY(uir_tactic_inline_all(t));
    while (tiled_count < MOST_BLOCKS) {
        uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
        uint32_t anchor = UIR_LOOP_NONE;
        /* The next output whose nest is as it was made. */
        for (uint32_t i = 0; i < count && i < MOST_BLOCKS && anchor == UIR_LOOP_NONE; i++) {
            const uir_loop_statement *s = uir_tactic_at(t, uir_tactic_at(t, blocks[i])->first_child);
            uint32_t loops[MOST_LOOPS], depth = uir_schedule_loops(t->s, blocks[i], loops, MOST_LOOPS);
            bool untouched = true;
            for (uint32_t k = 0; k < depth; k++)
                untouched = untouched && uir_tactic_at(t, loops[k])->loop_kind == UIR_LOOP_SERIAL;
            if (depth && untouched && !uir_tactic_is_of_parts(t, blocks[i]) &&
                uir_tactic_leaves(t, s->targets[0].tensor) && !uir_tactic_is_in(tiled, tiled_count, blocks[i]))
                anchor = blocks[i];
        }
        if (anchor == UIR_LOOP_NONE) break;
        tiled[tiled_count++] = anchor; /* where no loop may be shared or vectorised, its nest looks as it did */
        UIR_TRY(uir_tactic_schedule_elementwise(t, anchor));
    }
    uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++)
        if (!t->products || !uir_tactic_is_of_parts(t, blocks[i]))
            UIR_TRY(uir_tactic_vectorise_block(t, blocks[i], UIR_LOOP_NONE));
    UIR_TRY(merge_list(t, t->f->first));
    UIR_TRY(compute_shared(t));
    UIR_TRY(uir_tactic_bind_strays(t));
    return uir_tactic_place_temps(t);
}

/* ---- variants ---- */
/* Is something reduced, but for the sums of complete products? */
static bool has_reduction(const uir_tactic *t) {
    uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS);
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++)
        if (uir_tactic_has_kind(t, blocks[i], UIR_LOOP_STATEMENT_UPDATE) && !uir_tactic_is_of_parts(t, blocks[i]))
            return true;
    return false;
}

/* What stands between complete products, a segment after the other; some may be empty. */
static uir_status schedule_segments(uir_tactic *t, bool *out_reduces) {
    uint32_t blocks[MOST_BLOCKS];
    *out_reduces = false;
    UIR_TRY(uir_tactic_inline_all(t));
    for (t->segment = 0; t->segment <= t->store_count; t->segment++) {
        uint32_t count = uir_schedule_blocks(t->s, UIR_LOOP_NONE, blocks, MOST_BLOCKS), own = 0;
        for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++) own += !uir_tactic_is_of_parts(t, blocks[i]);
        t->reduces = has_reduction(t);
        *out_reduces = *out_reduces || t->reduces;
        if (own) UIR_TRY(t->reduces ? uir_tactic_schedule_reduction(t) : schedule_trivial(t));
    }
    t->segment = UIR_LOOP_NONE;
    return UIR_STATUS_OK;
}

/* One variant to make. */
typedef struct variant {
    const uir_loop_function *naive;
    const uir_machine *machine;
    uir_parameter_choice *choice; /* NULL: nothing is given, and nobody asks */
    bool stream, reduces, fits;   /* fits: it has room on the chip at some sizes, `always` at all of them */
    bool always;
    bool plain, apart, follows, products, few, unknown_rows; /* as of uir_tactic */
    int64_t lanes;
} variant;

static uir_status schedule_variant(variant *v, uir_diagnostics *diagnostics, uir_loop_list *out) {
    uir_loop_function *f = NULL;
    UIR_TRY(uir_loop_clone(v->naive, &f));
    uir_tactic t = {.f = f,
                    .machine = v->machine,
                    .choice = v->choice,
                    .diagnostics = diagnostics,
                    .stream = v->stream,
                    .plain = v->plain,
                    .apart = v->apart,
                    .few = v->few,
                    .lanes = v->lanes,
                    .column = v->lanes < UIR_TACTIC_COLUMN ? v->lanes : UIR_TACTIC_COLUMN,
                    .segment = UIR_LOOP_NONE};
    uir_status status = uir_schedule_create(f, v->machine, diagnostics, &t.s);
    if (status == UIR_STATUS_OK) {
        uir_schedule_set_mode(t.s, UIR_SCHEDULE_QUIET);
        status = uir_tactic_inline_widenings(&t);
        if (status == UIR_STATUS_OK) status = uir_tactic_schedule_products(&t);
        v->products = t.products;
        v->follows = t.follows;
        v->unknown_rows = t.unknown_rows;
        v->reduces = t.reduces = has_reduction(&t);
        if (status == UIR_STATUS_OK)
            status = t.products  ? schedule_segments(&t, &v->reduces)
                     : t.reduces ? uir_tactic_schedule_reduction(&t)
                                 : schedule_trivial(&t);
        if (status == UIR_STATUS_OK) status = uir_tactic_pack_constants(&t);
        if (status == UIR_STATUS_UNSUPPORTED)
            status = uir_error(diagnostics, status, NULL, "@%s: a step of the schedule is refused: %s", f->name,
                               uir_schedule_why(t.s));
    }
    if (status == UIR_STATUS_OK)
        status = uir_loop_list_add(out, f, uir_schedule_trace(t.s));
    else
        uir_loop_function_destroy(f);
    uir_schedule_destroy(t.s);
    return status;
}

/* Are there slices that may be longer than what is on the chip? */
static bool has_long_rows(const uir_loop_function *f, int64_t lanes) {
    for (uint32_t i = 0; i < f->statements.count; i++) {
        const uir_loop_statement *s = &f->statements.data[i];
        int64_t low, high;
        if (s->kind != UIR_LOOP_STATEMENT_FOR || s->loop_kind != UIR_LOOP_VECTORISED) continue;
        uir_dim_bounds(f->dims, s->extent, &low, &high);
        if (high > lanes) return true;
    }
    return false;
}

/* Does its kernel have room on the chip, as far as sizes are known? */
static uir_status find_room(variant *v, const uir_loop_function *f) {
    uir_diagnostics said;
    uir_igraph *igraph = NULL;
    v->fits = v->always = true;
    if (uir_machine_find_scratch(v->machine) < 0) return UIR_STATUS_OK;
    uir_diagnostics_init(&said, &f->allocator);
    uir_status status = uir_lower_kernel_build(f, v->machine, UIR_DOUBLE_SCRATCH, &f->allocator, &said, &igraph);
    if (status == UIR_STATUS_UNSUPPORTED && v->lanes <= UIR_TACTIC_FEWEST)
        status = uir_lower_kernel_build(f, v->machine, UIR_DOUBLE_NONE, &f->allocator, &said, &igraph);
    uir_diagnostics_deinit(&said);
    v->always = igraph && igraph->requires_.count == f->requires_.count;
    uir_igraph_destroy(igraph);
    v->fits = status != UIR_STATUS_UNSUPPORTED;
    return v->fits ? status : UIR_STATUS_OK;
}

/* By the longest slices that there is room for. */
static uir_status schedule_fitting(variant *v, uir_diagnostics *diagnostics, uir_loop_list *out) {
    for (v->lanes = UIR_TACTIC_LANES;; v->lanes /= 2) {
        UIR_TRY(schedule_variant(v, diagnostics, out));
        UIR_TRY(find_room(v, out->variants[out->count - 1].function));
        if (v->fits || v->lanes <= UIR_TACTIC_LEAST) return UIR_STATUS_OK;
        uir_loop_list_truncate(out, out->count - 1);
    }
}

/* Before the variants from `first` on, one whose products have few rows. */
static uir_status schedule_few(variant few, uint32_t first, uir_diagnostics *diagnostics, uir_loop_list *out) {
    few.few = true;
    few.choice = NULL;
    UIR_TRY(schedule_fitting(&few, diagnostics, out));
    uir_loop_variant made = out->variants[out->count - 1];
    memmove(&out->variants[first + 1], &out->variants[first], (out->count - 1 - first) * sizeof made);
    out->variants[first] = made;
    return UIR_STATUS_OK;
}

/* The variants of one way to take products: `rows`, as it came out, and others. `out_fits`: some has room on the chip.
 */
static uir_status schedule_way(variant *rows, uint32_t first, uir_diagnostics *diagnostics, uir_loop_list *out,
                               bool *out_fits) {
    variant stream = *rows;
    stream.stream = true;
    UIR_TRY(schedule_fitting(rows, diagnostics, out));
    *out_fits = rows->fits;
    bool whole =
        !rows->reduces || (rows->fits && rows->always && !has_long_rows(out->variants[first].function, rows->lanes));
    if (!whole) {
        if (!rows->fits) uir_loop_list_truncate(out, first); /* whatever the sizes, rows are too long for the chip */
        UIR_TRY(schedule_fitting(&stream, diagnostics, out));
        *out_fits = *out_fits || stream.fits;
    }
    return rows->fits && rows->unknown_rows ? schedule_few(*rows, first, diagnostics, out) : UIR_STATUS_OK;
}

uir_status uir_nest_schedule(const uir_loop_function *f, const uir_machine *machine, uir_parameter_choice *choice,
                             uir_diagnostics *diagnostics, uir_loop_list *out) {
    variant rows = {.naive = f, .machine = machine, .choice = choice};
    uint32_t first = out->count;
    bool fits;
    UIR_TRY(schedule_way(&rows, first, diagnostics, out, &fits));
    if (!fits && rows.follows) { /* beside what follows them the tiles of products have no room */
        uir_loop_list_truncate(out, first);
        rows.apart = true;
        UIR_TRY(schedule_way(&rows, first, diagnostics, out, &fits));
    }
    if (fits || !rows.products || uir_lower_count_updates(f) > 1)
        return UIR_STATUS_OK;           /* smaller groups may have room */
    uir_loop_list_truncate(out, first); /* nor beside what else they keep */
    rows.plain = true;
    return schedule_way(&rows, first, diagnostics, out, &fits);
}
