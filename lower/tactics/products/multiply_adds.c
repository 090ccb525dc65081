/* Products where no multiplier takes them, by multiply-adds of vectors that work in a memory of their own.
 *
 * The anchor's nest is cut into tiles of some rows by some columns, which units share out; a tile's sums stay on the
 * chip until what follows them has been computed. For each step along the depth both factors' tiles come on the chip,
 * with all that is computed for them, and serve a multiply-add of the whole tile for each of their elements along it.
 * All by schedule primitives. */
#include "lower/tactics/tactics.h"

#include <math.h>
#include <string.h>

#define NONE UIR_LOOP_NONE

enum { ROWS, COLUMNS, DEPTH, SIDES };
enum {
    MOST_BLOCKS = UIR_TACTIC_MOST_BLOCKS,
    MOST_LOOPS = UIR_LOOP_MAX_ITERS,
    SHARED = 4, /* loops that units share out, at most */
    LEAST = 8,  /* columns of a tile, and steps, at least where there is room */
    MOST_ROWS = 64,
    MOST_STEPS = 64,
    WRITTEN_OUT = 2, /* cycles, about, that a row's element takes to be written out along it */
    UNKNOWN = 1024,  /* what an extent is taken for where only the run knows */
    FEW = 8,         /* and rows, once as few */
    MANY = 256,      /* and once as many */
};

typedef struct product {
    uir_tactic *t;
    uint32_t anchor, update; /* blocks: what stores the finished sums or what follows of them; the sum of products */
    uint32_t sums;           /* tensor */
    uir_dtype dtype;         /* of what is summed */
    uint32_t iters[SIDES];   /* of the update: what is a tile's rows, its columns, and what is summed over; or NONE */
    bool is_right[2];        /* the factor has columns */
    int64_t tile[SIDES];
} product;

static const uir_loop_expression *expression(const product *p, uint32_t id) {
    return &p->t->f->expressions.data[id];
}

/* ---- what is a product for vectors ---- */
/* What an expression reads along an iteration variable, and whether some load has it last. */
typedef struct dependence {
    bool depends, last, constant;
} dependence;

static void find_dependence(const product *p, uint32_t id, uir_symbol symbol, dependence *out) {
    const uir_loop_expression *e = expression(p, id);
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++)
        find_dependence(p, e->arguments[i], symbol, out);
    if (e->kind != UIR_LOOP_LOAD) return;
    const uir_loop_tensor *tensor = &p->t->f->tensors.data[e->load.tensor];
    for (uint32_t d = 0; d < tensor->rank; d++) {
        if (!uir_tactic_mentions(p->t, e->load.indices[d], symbol)) continue;
        out->depends = true;
        out->last = out->last || d + 1 == tensor->rank;
        out->constant = out->constant || tensor->constant;
    }
}

static dependence factor_depends(const product *p, uint32_t which, uint32_t iter) {
    const uir_loop_statement *s = uir_tactic_only_statement(p->t, p->update);
    dependence out = {0};
    find_dependence(p, expression(p, s->values[0])->arguments[which],
                    uir_tactic_at(p->t, p->update)->iters[iter].symbol, &out);
    return out;
}

/* How long it is, at most `unknown` where only the run knows. */
static int64_t length_of(const product *p, uir_dim extent, int64_t unknown) {
    int64_t low, high;
    uir_dim_bounds(p->t->f->dims, extent, &low, &high);
    return low == high || high < unknown ? high : unknown;
}

/* The only update of the nests that are to be scheduled; NONE: there are several, or none. */
static uint32_t only_update(const uir_tactic *t) {
    uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, NONE, blocks, MOST_BLOCKS), update = NONE;
    if (count > MOST_BLOCKS) return NONE;
    for (uint32_t i = 0; i < count; i++) {
        if (uir_tactic_is_left(t, blocks[i]) || !uir_tactic_has_kind(t, blocks[i], UIR_LOOP_STATEMENT_UPDATE)) continue;
        if (update != NONE) return NONE;
        update = blocks[i];
    }
    return update;
}

/* The dim of the sums that the update's iteration variable runs along; NONE. */
static uint32_t dim_of(const product *p, uint32_t iter) {
    const uir_loop_access *stored = uir_tactic_find_access(p->t, p->update, p->sums);
    for (uint32_t d = 0; d < p->t->f->tensors.data[p->sums].rank; d++)
        if (uir_tactic_mentions(p->t, stored->indices[d], uir_tactic_at(p->t, p->update)->iters[iter].symbol)) return d;
    return NONE;
}

/* A block's iteration variable that is the update's: by the dim of the sums, else by the axis; NONE. */
static uint32_t iter_like(const product *p, uint32_t block, uint32_t iter) {
    const uir_loop_statement *b = uir_tactic_at(p->t, block);
    if (iter == NONE || block == p->update) return iter;
    const uir_loop_access *access = uir_tactic_find_access(p->t, block, p->sums);
    uint32_t axis = uir_tactic_at(p->t, p->update)->iters[iter].axis, dim = access ? dim_of(p, iter) : NONE;
    for (uint32_t i = 0; i < b->iter_count; i++) {
        if (dim != NONE && uir_tactic_mentions(p->t, access->indices[dim], b->iters[i].symbol)) return i;
        if (!access && axis && b->iters[i].axis == axis && !b->iters[i].reduce) return i;
    }
    return NONE;
}

/* Of some loops of a block the innermost that moves what is the update's iteration variable; NONE. */
static uint32_t loop_along(const product *p, uint32_t block, const uint32_t *loops, uint32_t count, uint32_t iter) {
    uint32_t own = iter_like(p, block, iter);
    for (uint32_t i = count; own != NONE && i > 0; i--)
        if (uir_tactic_mentions(p->t, uir_tactic_at(p->t, block)->iters[own].value,
                                uir_tactic_at(p->t, loops[i - 1])->symbol))
            return loops[i - 1];
    return NONE;
}

/* Columns are what the anchor stores side by side, rows the last other axis that only the other factor has. */
static bool classify(product *p) {
    uir_tactic *t = p->t;
    const uir_loop_statement *u = uir_tactic_at(t, p->update);
    uint32_t loops[MOST_LOOPS], count = uir_schedule_loops(t->s, p->anchor, loops, MOST_LOOPS), place = 0;
    if (!count || count > MOST_LOOPS || uir_tactic_decides_position(t, p->anchor, loops[count - 1])) return false;
    for (uint32_t i = 0; i < u->iter_count; i++) {
        if (u->iters[i].data) return false;
        uint32_t *depth = &p->iters[DEPTH];
        if (!u->iters[i].reduce) {
            if (loop_along(p, p->anchor, loops, count, i) == loops[count - 1]) p->iters[COLUMNS] = i;
        } else if (*depth == NONE ||
                   length_of(p, u->iters[i].extent, UNKNOWN) >= length_of(p, u->iters[*depth].extent, UNKNOWN)) {
            *depth = i;
        }
    }
    if (p->iters[COLUMNS] == NONE || p->iters[DEPTH] == NONE) return false;
    bool wants_rows = uir_machine_wants_rows(t->machine, uir_machine_find_role(t->machine, UIR_SPACE_SCRATCH));
    for (uint32_t k = 0; k < 2; k++) {
        dependence on_columns = factor_depends(p, k, p->iters[COLUMNS]);
        p->is_right[k] = on_columns.depends;
        if (on_columns.depends && wants_rows && !on_columns.last && !on_columns.constant) return false;
    }
    if (p->is_right[0] == p->is_right[1]) return false;
    for (uint32_t i = 0; i < u->iter_count; i++) {
        bool left = factor_depends(p, p->is_right[0], i).depends, right = factor_depends(p, p->is_right[1], i).depends;
        if (!left && !right) return false;
        if (u->iters[i].reduce || right) continue;
        uint32_t loop = loop_along(p, p->anchor, loops, count, i);
        for (uint32_t k = place; k + 1 < count && loop != NONE; k++)
            if (loops[k] == loop) p->iters[ROWS] = i, place = k;
    }
    /* Sums that lie the other way are arranged, where the anchor alone reads them. */
    return p->iters[ROWS] == NONE || dim_of(p, p->iters[ROWS]) < dim_of(p, p->iters[COLUMNS]) ||
           uir_schedule_readers(t->s, p->sums, loops, MOST_LOOPS) <= 2;
}

/* A sum of products of which the anchor stores what comes of it. */
static bool find_product(uir_tactic *t, uint32_t update, product *out) {
    *out = (product){.t = t, .update = update, .iters = {NONE, NONE, NONE}};
    if (t->plain || uir_machine_find_scratch(t->machine) < 0 || update == NONE) return false;
    const uir_loop_expression *call = uir_tactic_find_product(t, update);
    if (!call) return false;
    out->sums = uir_tactic_only_statement(t, update)->targets[0].tensor;
    out->dtype = call->dtype;
    return true;
}

/* ---- tiles ---- */
/* Tiles as many as of this length, of much the same: none is cut off where they divide. */
static int64_t even_tile(const product *p, uir_dim extent, int64_t tile) {
    int64_t length;
    if (!uir_dim_is_const(p->t->f->dims, extent, &length) || length <= tile) return tile;
    int64_t count = (length - 1) / tile + 1, even = (length - 1) / count + 1,
            whole = (even + LEAST - 1) / LEAST * LEAST;
    return whole < tile ? whole : tile;
}

static uir_dim extent_of(const product *p, uint32_t side) {
    return p->iters[side] == NONE ? uir_tactic_number(p->t, 1)
                                  : uir_tactic_at(p->t, p->update)->iters[p->iters[side]].extent;
}

/* Tiles that there are beside those of one matrix. */
static int64_t count_others(const product *p) {
    const uir_loop_statement *u = uir_tactic_at(p->t, p->update);
    int64_t others = 1;
    for (uint32_t i = 0; i < u->iter_count; i++)
        if (!u->iters[i].reduce && i != p->iters[ROWS] && i != p->iters[COLUMNS] &&
            __builtin_mul_overflow(others, length_of(p, u->iters[i].extent, FEW), &others))
            return INT32_MAX;
    return others > 0 ? others : 1;
}

/* Cycles for a vector where the description says nothing else: 1; 0: no unit does the instruction on the chip. */
static uint32_t cycles_of(const product *p, const char *iop) {
    const uir_machine *d = p->t->machine;
    const uir_legal_row *row = uir_machine_find_within(d, iop, p->dtype, uir_machine_find_scratch(d));
    return !row ? 0 : row->cycles ? row->cycles : 1;
}

/* Product and sum are one instruction where that is no slower than two. */
static bool multiplies_as_one(const product *p) {
    uint32_t one = uir_iop_is_defined_for(UIR_IOP_FMA, p->dtype) ? cycles_of(p, "ternary.fma") : 0;
    return one && one <= cycles_of(p, "binary.mul") + cycles_of(p, "binary.add");
}

/* A machine by the figures of its description, and what it is given: cycles for a vector, and for a row of a tile
 * besides, in each step. */
typedef struct machine {
    double units, lanes, vector, row, latency;
    double bytes_per_cycle; /* of memory; 0: not known */
    double others, bytes;   /* tiles beside those of one matrix; of an element */
} machine;

static machine find_machine(const product *p) {
    const uir_machine *d = p->t->machine;
    int scratch = uir_machine_find_scratch(d);
    int64_t apart = uir_tactic_count_units_apart(d), all = apart ? apart : uir_machine_count_units(d, 0);
    const uir_legal_row *add = uir_machine_find_within(d, "binary.add", p->dtype, scratch);
    machine m = {.units = all > 0 ? (double)all : 1,
                 .lanes = (double)uir_machine_lanes(d),
                 .vector = multiplies_as_one(p) ? cycles_of(p, "ternary.fma")
                                                : cycles_of(p, "binary.mul") + cycles_of(p, "binary.add"),
                 .row = uir_machine_wants_rows(d, scratch) ? WRITTEN_OUT : 0,
                 .latency = add && add->latency ? add->latency : 1,
                 .others = (double)count_others(p),
                 .bytes = uir_dtype_bits(p->dtype) / 8.0};
    double hertz = d->cycles_per_second > 0 ? d->cycles_per_second : d->peak_flops / (2 * m.lanes * m.units);
    m.bytes_per_cycle = hertz > 0 ? d->peak_bytes_per_second / hertz : 0;
    return m;
}

/* Cycles of a product by such tiles: the greater of what its busiest unit takes and what memory takes. */
static double cycles_by(const machine *m, const double extents[SIDES], const int64_t tile[2]) {
    double rows = ceil(extents[ROWS] / (double)tile[ROWS]), columns = ceil(extents[COLUMNS] / (double)tile[COLUMNS]);
    double turns = ceil(rows * columns * m->others / m->units);
    double step = (double)tile[ROWS] * (ceil((double)tile[COLUMNS] / m->lanes) * m->vector + m->row) + m->latency;
    double brought = m->others * extents[DEPTH] * m->bytes * (extents[ROWS] * columns + extents[COLUMNS] * rows);
    double busy = turns * extents[DEPTH] * step;
    return m->bytes_per_cycle > 0 && brought / m->bytes_per_cycle > busy ? brought / m->bytes_per_cycle : busy;
}

/* Of all tiles that a slice holds the one by which a product takes the fewest cycles, of equal ones the largest; where
 * only the run knows how many rows there are, for few and for many of them. */
static void choose_tile(product *p) {
    uir_tactic *t = p->t;
    machine m = find_machine(p);
    double extents[2][SIDES], best = 0;
    for (uint32_t i = 0; i < 2 * SIDES; i++) {
        uint32_t side = i / 2, many = i % 2;
        int64_t length = length_of(p, extent_of(p, side), side != ROWS ? UNKNOWN : many ? MANY : FEW);
        extents[many][side] = length > 0 ? (double)length : 1;
    }
    for (int64_t columns = t->lanes < LEAST ? 1 : LEAST; columns <= t->lanes; columns *= 2) {
        for (int64_t rows = 1; rows <= MOST_ROWS && rows * columns <= t->lanes; rows *= 2) {
            int64_t tile[2] = {even_tile(p, extent_of(p, ROWS), rows), even_tile(p, extent_of(p, COLUMNS), columns)};
            double cycles = cycles_by(&m, extents[0], tile) * cycles_by(&m, extents[1], tile);
            if (best > 0 && cycles > best) continue;
            best = cycles;
            memcpy(p->tile, tile, sizeof tile);
            if ((double)rows >= extents[1][ROWS]) break;
        }
        if ((double)columns >= extents[1][COLUMNS]) break;
    }
    int64_t longer = p->tile[ROWS] > p->tile[COLUMNS] ? p->tile[ROWS] : p->tile[COLUMNS], steps = 2 * t->lanes / longer;
    steps = steps < LEAST ? steps : steps < MOST_STEPS ? steps / LEAST * LEAST : MOST_STEPS;
    p->tile[DEPTH] = even_tile(p, extent_of(p, DEPTH), steps);
}

static uir_status cut(product *p, uint32_t side, uint32_t loop, uint32_t *out_outer, uint32_t *out_inner) {
    *out_outer = NONE;
    *out_inner = loop;
    if (loop == NONE || uir_tactic_is_short(p->t, uir_tactic_at(p->t, loop)->extent, p->tile[side]))
        return UIR_STATUS_OK;
    return uir_schedule_split(p->t->s, loop, uir_tactic_number(p->t, p->tile[side]), out_outer, out_inner);
}

/* Of more loops than units can share out the longest. */
static void longest_first(const product *p, uint32_t *loops, uint32_t count) {
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t k = i; k > 0; k--) {
            uint32_t loop = loops[k], before = loops[k - 1];
            if (length_of(p, uir_tactic_at(p->t, loop)->extent, FEW) <=
                length_of(p, uir_tactic_at(p->t, before)->extent, FEW))
                break;
            loops[k] = before;
            loops[k - 1] = loop;
        }
}

/* ---- steps ---- */
/* The loops of a block below `at` take this order: these two last, those that there are. */
static uir_status order(uir_tactic *t, uint32_t block, uint32_t at, const uint32_t last[2]) {
    uint32_t own[MOST_LOOPS], count = uir_tactic_own_loops(t, block, at, own), list[MOST_LOOPS], n = 0;
    for (uint32_t i = 0; i < count; i++)
        if (own[i] != last[0] && own[i] != last[1]) list[n++] = own[i];
    for (uint32_t i = 0; i < 2; i++)
        if (last[i] != NONE) list[n++] = last[i];
    if (n < 2 || !memcmp(own, list, n * sizeof *own)) return UIR_STATUS_OK;
    return uir_schedule_reorder(t->s, list, n);
}

/* Tiles of what the anchor stores: what units share out, and `out_at`, which the rest is computed under. */
static uir_status tile_anchor(product *p, uint32_t *out_at) {
    uir_tactic *t = p->t;
    uint32_t loops[MOST_LOOPS], count = uir_schedule_loops(t->s, p->anchor, loops, MOST_LOOPS);
    uint32_t in[2], out[2], list[MOST_LOOPS + 4], n = 0;
    for (uint32_t i = 0; i < 2; i++) in[i] = loop_along(p, p->anchor, loops, count, p->iters[i]);
    for (uint32_t i = 0; i < count; i++)
        if (loops[i] != in[0] && loops[i] != in[1]) list[n++] = loops[i];
    for (uint32_t i = 0; i < 2; i++) {
        UIR_TRY(cut(p, i, in[i], &out[i], &in[i]));
        if (out[i] != NONE) list[n++] = out[i];
    }
    uint32_t outer = n;
    if (n > SHARED) longest_first(p, list, n);
    for (uint32_t i = 0; i < 2; i++)
        if (in[i] != NONE) list[n++] = in[i];
    if (n > 1) UIR_TRY(uir_schedule_reorder(t->s, list, n));
    if (!outer) { /* one tile: a loop of one turn around it */
        uint32_t top = list[0];
        UIR_TRY(uir_schedule_add_unit_loop(t->s, top, &list[0]));
        outer = 1;
    }
    return uir_tactic_bind_outer(t, list, outer, uir_tactic_number(t, UIR_TACTIC_TILE), out_at);
}

/* Rows and columns of a block below `at` are a slice. */
static uir_status make_slice(product *p, uint32_t block, uint32_t at) {
    uir_tactic *t = p->t;
    uint32_t own[MOST_LOOPS], count = uir_tactic_own_loops(t, block, at, own), last[2];
    bool done;
    for (uint32_t i = 0; i < 2; i++) last[i] = loop_along(p, block, own, count, p->iters[i]);
    if (last[COLUMNS] == NONE) return uir_tactic_vectorise_block(t, block, at);
    UIR_TRY(order(t, block, at, last));
    for (uint32_t i = 0; i < 2; i++)
        if (last[i] != NONE) UIR_TRY(uir_tactic_asked(uir_tactic_vectorise(t, last[i]), &done));
    return UIR_STATUS_OK;
}

/* A factor's tile comes on the chip under the loop, with what is computed for it. What is refused is read where it
 * lies. */
static uir_status bring_factor(product *p, uint32_t which, uint32_t under) {
    static const char *const names[] = {"rows", "columns"};
    uir_tactic *t = p->t;
    uint32_t side = p->iters[p->is_right[which] ? COLUMNS : ROWS], iters[2], count = 0, tensor, copy;
    if (side != NONE && !p->is_right[which]) iters[count++] = side;
    iters[count++] = p->iters[DEPTH];
    if (side != NONE && p->is_right[which]) iters[count++] = side;
    uir_schedule_operand operand = {.which = which, .name = names[p->is_right[which]]};
    bool done;
    UIR_TRY(uir_tactic_asked(uir_schedule_cache_operand(t->s, p->update, &operand, iters, count, under,
                                                        uir_lower_space(t->machine, UIR_SPACE_SCRATCH), &tensor, &copy),
                             &done));
    if (!done) return UIR_STATUS_OK;
    UIR_TRY(uir_tactic_asked(uir_schedule_shrink(t->s, tensor), &done));
    uint32_t own[MOST_LOOPS], loops = uir_tactic_own_loops(t, copy, under, own);
    for (uint32_t i = 0; i < loops; i++) UIR_TRY(uir_tactic_asked(uir_tactic_vectorise(t, own[i]), &done));
    return UIR_STATUS_OK;
}

/* The update goes by steps along the depth, in which both factors are on the chip. */
static uir_status step_along(product *p, uint32_t at) {
    uir_tactic *t = p->t;
    uint32_t own[MOST_LOOPS], count = uir_tactic_own_loops(t, p->update, at, own), outer, under = at;
    uint32_t last[2] = {loop_along(p, p->update, own, count, p->iters[DEPTH]), NONE};
    if (last[0] == NONE) return make_slice(p, p->update, at);
    UIR_TRY(order(t, p->update, at, last));
    UIR_TRY(cut(p, DEPTH, last[0], &outer, &last[0]));
    UIR_TRY(make_slice(p, p->update, at));
    count = uir_schedule_loops(t->s, p->update, own, MOST_LOOPS);
    for (uint32_t i = 0; i < count && own[i] != last[0]; i++) under = own[i];
    for (uint32_t which = 0; which < 2; which++) UIR_TRY(bring_factor(p, which, under));
    return multiplies_as_one(p) ? uir_schedule_set_use(t->s, p->update, UIR_LOOP_USE_FMA) : UIR_STATUS_OK;
}

/* A tile of sums that is all used in its loop lies on the chip as it is computed, whatever the order of its dims. */
static uir_status keep_sums(product *p, uint32_t at) {
    uir_tactic *t = p->t;
    uint32_t readers[MOST_BLOCKS], dims[2], count = uir_schedule_readers(t->s, p->sums, readers, MOST_BLOCKS);
    bool done;
    for (uint32_t i = 0; i < count; i++)
        if (count > MOST_BLOCKS || !uir_tactic_is_under(t, readers[i], at)) return UIR_STATUS_OK;
    count = 0;
    for (uint32_t i = 0; i < 2; i++)
        if (p->iters[i] != NONE) dims[count++] = dim_of(p, p->iters[i]);
    UIR_TRY(uir_schedule_set_scope(t->s, p->sums, uir_lower_space(t->machine, UIR_SPACE_SCRATCH)));
    UIR_TRY(uir_tactic_asked(uir_schedule_shrink(t->s, p->sums), &done));
    if (count < 2 || dims[0] < dims[1]) return UIR_STATUS_OK;
    return uir_schedule_arrange(t->s, p->sums, dims, count);
}

/* Tiles of the anchor; in their loop the sums, and all else that is made for them where they are not `alone`. */
static uir_status schedule_tiles(product *p, bool alone) {
    uir_tactic *t = p->t;
    uint32_t blocks[MOST_BLOCKS], at;
    choose_tile(p);
    UIR_TRY(tile_anchor(p, &at));
    UIR_TRY(alone ? uir_schedule_compute_at(t->s, p->update, at) : uir_tactic_compute_producers(t, at));
    uint32_t count = uir_schedule_blocks(t->s, at, blocks, MOST_BLOCKS);
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++)
        if (blocks[i] != p->update) UIR_TRY(make_slice(p, blocks[i], at));
    UIR_TRY(step_along(p, at));
    return keep_sums(p, at);
}

uir_status uir_tactic_schedule_multiply_adds(uir_tactic *t, uint32_t anchor, bool *out_done) {
    product p;
    *out_done = find_product(t, only_update(t), &p) && p.update != anchor;
    p.anchor = anchor;
    *out_done = *out_done && classify(&p);
    return *out_done ? schedule_tiles(&p, false) : UIR_STATUS_OK;
}

uir_status uir_tactic_schedule_sums(uir_tactic *t, uint32_t update) {
    bool done;
    product p;
    if (!find_product(t, update, &p)) return UIR_STATUS_OK;
    UIR_TRY(uir_tactic_asked(uir_tactic_find_sums(t, p.sums, update, &p.anchor), &done));
    if (!done || !classify(&p)) return UIR_STATUS_OK;
    UIR_TRY(schedule_tiles(&p, true));
    t->stores[t->store_count++] = p.anchor;
    t->products = true;
    return UIR_STATUS_OK;
}
