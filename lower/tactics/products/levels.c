/* Products on a machine whose multiplier takes its operands from spaces of its own, several moves away from memory.
 *
 * Each product is a nest by itself: tiles of its sums, or rows or columns of such tiles, are what units share out
 * (stationary.h); a tile of sums stays where the machine sums, and for each step along the depth a tile of both factors
 * goes from space to space, in each in the blocks that the description wants there, unless it is there already.
 * Finished sums go to the device's memory. What comes before and after is other nests,
 * which other units may do, with what passes between them in memory; a phase for each. All by schedule primitives. */
#include "lower/tactics/products/contraction_internal.h"
#include "lower/tactics/products/stationary.h"
#include "lower/tactics/tactics.h"

#include <stdio.h>
#include <string.h>

#define NONE UIR_LOOP_NONE

enum { MOST_BLOCKS = UIR_TACTIC_MOST_BLOCKS, MOST_LOOPS = 2 * UIR_LOOP_MAX_ITERS };
enum { ROWS = UIR_SIDE_ROWS, COLUMNS = UIR_SIDE_COLUMNS, DEPTH = UIR_SIDE_DEPTH, SIDES = UIR_SIDES };

/* One of m, n, k: the iteration variable that is tiled. */
typedef struct side {
    uint32_t iter; /* of the update; NONE: there is none, and it is one element */
    uir_dim extent;
    int64_t tile;
    bool split;
} side;

typedef struct product {
    uir_tactic *t;
    uint32_t update, init, copy; /* blocks; the copy brings finished sums to memory */
    uint32_t sums;               /* tensor */
    uint32_t passed[UIR_MACHINE_MAX_SPACES], passing[UIR_MACHINE_MAX_SPACES]; /* tensors, blocks: on the way there */
    uir_loop_access factors[2];                                               /* as the update reads them */
    uir_dtype dtypes[2], sum_dtype;
    side sides[SIDES];
    uir_product_problem problem;
    uir_product_choice choice;
    /* The loops around what stays of a factor (NONE: nothing does), a tile of sums, and a step along the depth. */
    uint32_t around, unit, inside;
} product;

static const uint32_t *const sum_sides = uir_tile_sides[UIR_TILE_SUMS];

/* ---- what is a product for the machine ---- */
static const uir_loop_expression *expression(const uir_tactic *t, uint32_t id) {
    return &t->f->expressions.data[id];
}

/* The dim of the access that the iteration variable moves along, the last of several; NONE: there is none. */
static uint32_t dim_of_iter(const uir_tactic *t, const uir_loop_access *a, const uir_loop_iter *iter) {
    for (uint32_t d = t->f->tensors.data[a->tensor].rank; d > 0; d--)
        if (uir_dim_mentions(t->f->dims, a->indices[d - 1], iter->symbol)) return d - 1;
    return NONE;
}

/* A factor whose elements lie in memory as they are multiplied, but for those outside. */
static bool is_stored_factor(product *p, uint32_t which, uint32_t id) {
    const uir_loop_expression *e = expression(p->t, id);
    if (e->kind == UIR_LOOP_CALL && e->op == UIR_OP_CAST) e = expression(p->t, e->arguments[0]);
    if (e->kind != UIR_LOOP_LOAD) return false;
    p->factors[which] = e->load;
    p->dtypes[which] = e->dtype;
    return uir_machine_multiplies(p->t->machine, p->sum_dtype, e->dtype, which);
}

/* What an axis is taken to be where only the run knows: when axes are chosen, and when tiles are; rows that are few are
 * at most so many. Below FEW channels a convolution is none for the multiplier. */
enum { UNKNOWN_AXIS = 16, UNKNOWN = 1024, FEW_ROWS = 64, FEW = 2 };

static int64_t guess(const product *p, uir_dim extent, int64_t unknown) {
    int64_t low, high;
    uir_dim_bounds(p->t->f->dims, extent, &low, &high);
    return low == high ? low : high < unknown ? high : unknown;
}

/* The longest of a class is tiled; of equal ones the last. */
static void choose_iter(product *p, uint32_t which, uint32_t iter) {
    side *s = &p->sides[which];
    uir_dim extent = uir_tactic_at(p->t, p->update)->iters[iter].extent;
    if (s->iter != NONE && guess(p, s->extent, UNKNOWN_AXIS) > guess(p, extent, UNKNOWN_AXIS)) return;
    s->iter = iter;
    s->extent = extent;
}

/* What each iteration variable is to the two factors. */
static bool classify(product *p) {
    const uir_loop_statement *b = uir_tactic_at(p->t, p->update);
    for (uint32_t i = 0; i < b->iter_count; i++) {
        uint32_t dims[2];
        if (b->iters[i].data) return false;
        for (uint32_t k = 0; k < 2; k++) dims[k] = dim_of_iter(p->t, &p->factors[k], &b->iters[i]);
        if (dims[0] == NONE && dims[1] == NONE) return false;
        if (b->iters[i].reduce && (dims[0] == NONE || dims[1] == NONE)) return false;
        if (b->iters[i].reduce)
            choose_iter(p, DEPTH, i);
        else if (dims[1] == NONE)
            choose_iter(p, ROWS, i);
        else if (dims[0] == NONE)
            choose_iter(p, COLUMNS, i);
    }
    if (p->sides[DEPTH].iter == NONE) return false;
    if (!(b->uses >> UIR_LOOP_USE_CONVOLUTION & 1)) return true;
    /* Windows with few channels, in or out, are little to multiply. */
    for (uint32_t i = 0; i < SIDES; i++)
        if (p->sides[i].iter == NONE || (i != ROWS && guess(p, p->sides[i].extent, UNKNOWN_AXIS) < FEW)) return false;
    return true;
}

/* The spaces from one to the other, the last one `to`; false: no moves lead there. */
static bool find_way(const uir_machine *machine, uir_dtype dtype, int from, int to, uir_tile_way *out) {
    out->count = uir_machine_find_path(machine, dtype, from, to, out->spaces);
    return out->count > 0;
}

static uint32_t role_of(uint32_t which) {
    return which ? UIR_SPACE_RIGHT : UIR_SPACE_LEFT;
}

/* The ways of all three tiles. */
static bool find_ways(product *p) {
    const uir_machine *d = p->t->machine;
    int memory = uir_machine_find_role(d, UIR_SPACE_MEMORY), sums = uir_machine_find_role(d, UIR_SPACE_ACCUMULATORS);
    uir_tile_way *way = p->problem.ways, out;
    for (uint32_t k = 0; k < 2; k++)
        if (!find_way(d, p->dtypes[k], memory, uir_machine_find_role(d, role_of(k)), &way[k])) return false;
    if (!find_way(d, p->sum_dtype, sums, memory, &out)) return false;
    way[UIR_TILE_SUMS] = (uir_tile_way){.spaces = {sums}, .count = out.count}; /* memory itself is not kept */
    for (int i = 1; i < out.count; i++) way[UIR_TILE_SUMS].spaces[i] = out.spaces[i - 1];
    return true;
}

/* Is it a sum of products that the machine multiplies? */
static bool find_product(uir_tactic *t, uint32_t block, product *out) {
    const uir_loop_expression *product = uir_tactic_find_product(t, block);
    *out = (struct product){.t = t, .update = block};
    for (uint32_t i = 0; i < SIDES; i++) out->sides[i] = (side){NONE, uir_tactic_number(t, 1), 1, false};
    if (!product) return false;
    out->sums = uir_tactic_only_statement(t, block)->targets[0].tensor;
    out->sum_dtype = t->f->tensors.data[out->sums].dtype;
    for (uint32_t k = 0; k < 2; k++)
        if (!is_stored_factor(out, k, product->arguments[k])) return false;
    if (!uir_machine_multiplies_pair(t->machine, out->sum_dtype, out->dtypes[0], out->dtypes[1])) return false;
    if (uir_contraction_multiplies(t->machine, out->sum_dtype, out->dtypes[0], false) &&
        uir_contraction_multiplies(t->machine, out->sum_dtype, out->dtypes[1], true))
        return false; /* that has a tactic of its own */
    return classify(out) && find_ways(out);
}

/* ---- tiles ---- */
static int64_t least_multiple(int64_t a, int64_t b) {
    int64_t x = a, y = b;
    while (y) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

/* Whether the machine multiplies fewer rows than a block at a part of its cost. */
static bool takes_few_rows(const product *p) {
    const uir_legal_row *row = uir_machine_find_mma(p->t->machine, p->sum_dtype, p->dtypes[0]);
    return row && row->constraints & UIR_LEGAL_FEW_ROWS;
}

/* Rows that are few where only the run knows how many there are. */
static int64_t most_few_rows(const product *p) {
    return takes_few_rows(p) && p->t->machine->mma_m ? p->t->machine->mma_m : FEW_ROWS;
}

/* Of what a tile of a side is a multiple: the machine's block, and the blocks of every space that the tile comes to. */
static int64_t block_of(const product *p, uint32_t which) {
    const uir_machine *d = p->t->machine;
    int64_t block = which == ROWS ? d->mma_m : which == COLUMNS ? d->mma_n : d->mma_k;
    block = block > 0 ? block : 1;
    while (which == ROWS && takes_few_rows(p) && block % 2 == 0 && block / 2 >= p->problem.extents[ROWS]) block /= 2;
    for (uint32_t k = 0; k < UIR_TILES; k++)
        for (int i = 0; i < p->problem.ways[k].count; i++) {
            int64_t size[2];
            const uir_space *space = &d->spaces[p->problem.ways[k].spaces[i]];
            if (!uir_space_get_block(space, p->problem.dtypes[k], &size[0], &size[1])) continue;
            for (uint32_t n = 0; n < 2; n++)
                if (uir_tile_sides[k][n] == which) block = least_multiple(block, size[n]);
        }
    return block;
}

/* Units that multiply, as many as the machine has at once. */
static int64_t count_units(const uir_machine *d, uir_dtype sums, uir_dtype factor) {
    const uir_legal_row *row = uir_machine_find_mma(d, sums, factor);
    int64_t units = 0;
    for (uint32_t kind = 0; row && kind < d->unit_kind_count; kind++)
        if (row->unit_kinds >> kind & 1) units += uir_machine_count_units(d, kind);
    return units > 0 ? units : 1;
}

/* Products that are alike: of the axes that are not tiled, but for those that are summed over. */
static int64_t count_others(const product *p) {
    const uir_loop_statement *b = uir_tactic_at(p->t, p->update);
    int64_t others = 1;
    for (uint32_t i = 0; i < b->iter_count; i++)
        if (!b->iters[i].reduce && i != p->sides[ROWS].iter && i != p->sides[COLUMNS].iter &&
            __builtin_mul_overflow(others, guess(p, b->iters[i].extent, UNKNOWN_AXIS), &others))
            return INT64_MAX >> 16;
    return others > 0 ? others : 1;
}

/* A factor stays where nothing else moves it: a product of known depth, which is the only axis that is summed over. */
static bool may_stay(const product *p, uint32_t which) {
    const uir_loop_statement *b = uir_tactic_at(p->t, p->update);
    int64_t depth;
    for (uint32_t i = 0; i < b->iter_count; i++)
        if (b->iters[i].reduce && i != p->sides[DEPTH].iter) return false;
    return uir_dim_is_const(p->t->f->dims, p->sides[DEPTH].extent, &depth) &&
           p->sides[which ? COLUMNS : ROWS].iter != NONE && p->sides[which ? ROWS : COLUMNS].iter != NONE;
}

/* The product in numbers. */
static void pose(product *p) {
    const uir_machine *d = p->t->machine;
    uir_product_problem *q = &p->problem;
    q->machine = d;
    q->dtypes[UIR_TILE_LEFT] = p->dtypes[0], q->dtypes[UIR_TILE_RIGHT] = p->dtypes[1];
    q->dtypes[UIR_TILE_SUMS] = p->sum_dtype;
    for (uint32_t i = 0; i < SIDES; i++) {
        int64_t extent = guess(p, p->sides[i].extent, i == ROWS && p->t->few ? most_few_rows(p) : UNKNOWN);
        q->extents[i] = extent > 0 ? extent : 1;
        q->blocks[i] = block_of(p, i);
    }
    q->others = count_others(p);
    for (uint32_t k = 0; k < 2; k++) q->may_stay[k] = may_stay(p, k);
    q->units = count_units(d, p->sum_dtype, p->dtypes[0]);
    q->instances = d->pipe_count > 1 ? 2 : 1;
    int scratch = uir_machine_find_role(d, UIR_SPACE_SCRATCH);
    for (uint32_t i = 0; i < d->space_count; i++) {
        int64_t room = (int64_t)d->spaces[i].capacity, near = (int64_t)uir_machine_working_set(d, (int)i);
        if ((int)i == scratch) room /= 2; /* other phases keep what they have there */
        q->room[i] = near && near < room ? near : room;
    }
}

/* The choice that the tuning record gives. */
static uir_status take_given(product *p, const uir_parameters *given) {
    const char *why = NULL;
    const uir_parameter_tile *tile = &given->tiles[0];
    uir_product_choice *c = &p->choice;
    *c = (uir_product_choice){
        .stationary = given->stationary, .tiles = {tile->rows, tile->columns, given->depth}, .held = (int)given->held};
    int factor = c->stationary == UIR_STATIONARY_LEFT ? 0 : c->stationary == UIR_STATIONARY_RIGHT ? 1 : -1;
    if (!given->has_stationary || given->tile_count != 1 || !given->depth || !tile->columns)
        why = "`stationary`, `depth` and one `tile` of rows x columns are required";
    for (uint32_t i = 0; !why && i < SIDES; i++)
        if (c->tiles[i] % p->problem.blocks[i]) why = "the tile is not a multiple of the block";
    if (!why && factor >= 0 && (!p->problem.may_stay[factor] || c->held > p->problem.ways[factor].count))
        why = "the operand cannot be stationary, or not in so many spaces";
    if (!why && !uir_product_fits(&p->problem, c)) why = "the tiles do not fit on the chip";
    if (!why) return UIR_STATUS_OK;
    return uir_error(p->t->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "@%s: tuning record: %s", p->t->f->name,
                     why);
}

static void say_chosen(const product *p, uir_parameters *out) {
    const uir_product_choice *c = &p->choice;
    double cycles = uir_product_cycles(&p->problem, c);
    *out = (uir_parameters){.depth = c->tiles[DEPTH],
                            .has_stationary = true,
                            .stationary = c->stationary,
                            .held = c->held,
                            .tile_count = 1,
                            .tiles = {{c->tiles[ROWS], c->tiles[COLUMNS], cycles < 1e18 ? (int64_t)cycles : 0}}};
}

/* Tiles for few rows are no good for many: where only the run knows there are two variants. */
static uir_status tell_few(product *p) {
    uir_tactic *t = p->t;
    int64_t low, high, most = most_few_rows(p);
    uir_dim_bounds(t->f->dims, p->sides[ROWS].extent, &low, &high);
    if (low == high || high <= most || low > most ||
        uir_dim_multiple(t->f->dims, p->sides[ROWS].extent) > most) /* none, or more */
        return UIR_STATUS_OK;
    t->unknown_rows = true;
    if (!t->few) return UIR_STATUS_OK;
    uir_condition is_few = {UIR_RELATION_LE, p->sides[ROWS].extent, uir_tactic_number(t, most)};
    for (uint32_t i = 0; i < t->f->requires_.count; i++) { /* of another product of these rows */
        const uir_condition *c = &t->f->requires_.data[i];
        if (c->relation == is_few.relation && uir_dim_equal(c->left, is_few.left) &&
            uir_dim_equal(c->right, is_few.right))
            return UIR_STATUS_OK;
    }
    return uir_vector_push(&t->f->arena, &t->f->requires_, is_few);
}

/* By the record where the function has one product and that is given; else by the solver. `out_fits`: something fits.
 */
static uir_status choose_tiles(product *p, uir_parameter_choice *choice, bool *out_fits) {
    pose(p);
    bool is_given = choice && (choice->given.has_stationary || choice->given.depth || choice->given.tile_count);
    if (is_given) UIR_TRY(take_given(p, &choice->given));
    *out_fits = is_given || uir_product_solve(&p->problem, &p->choice);
    if (!*out_fits) return UIR_STATUS_OK;
    UIR_TRY(tell_few(p));
    if (choice) say_chosen(p, &choice->chosen);
    for (uint32_t i = 0; i < SIDES; i++) {
        side *s = &p->sides[i];
        int64_t low, high;
        s->tile = p->choice.tiles[i];
        uir_dim_bounds(p->t->f->dims, s->extent, &low, &high);
        s->split = s->iter != NONE && high > s->tile;
    }
    return UIR_STATUS_OK;
}

/* ---- loops ---- */
/* Of the loops of a block below another (NONE: all), the one that its iteration variable moves with; NONE. */
static uint32_t loop_of(const product *p, uint32_t block, uint32_t under, uint32_t iter) {
    uint32_t loops[MOST_LOOPS], count = uir_tactic_own_loops(p->t, block, under, loops);
    for (uint32_t i = count; iter != NONE && i > 0; i--)
        if (uir_tactic_mentions(p->t, uir_tactic_at(p->t, block)->iters[iter].value,
                                uir_tactic_at(p->t, loops[i - 1])->symbol))
            return loops[i - 1];
    return NONE;
}

/* The iteration variable of the copy that is the update's: by the dim of the sums along which both go. */
static uint32_t iter_of_copy(const product *p, uint32_t iter) {
    const uir_loop_statement *update = uir_tactic_only_statement(p->t, p->update);
    const uir_loop_statement *u = uir_tactic_at(p->t, p->update), *c = uir_tactic_at(p->t, p->copy);
    if (iter == NONE) return NONE;
    uint32_t dim = dim_of_iter(p->t, &update->targets[0], &u->iters[iter]);
    int last = p->problem.ways[UIR_TILE_SUMS].count - 1;
    const uir_loop_access *load = uir_tactic_find_access(p->t, p->copy, last > 0 ? p->passed[last] : p->sums);
    for (uint32_t i = 0; i < c->iter_count && dim != NONE && load; i++)
        if (uir_dim_mentions(p->t->f->dims, load->indices[dim], c->iters[i].symbol)) return i;
    return NONE;
}

uir_status uir_tactic_find_sums(uir_tactic *t, uint32_t sums, uint32_t update, uint32_t *out_block) {
    uint32_t readers[MOST_BLOCKS], count = uir_schedule_readers(t->s, sums, readers, MOST_BLOCKS), reader = NONE;
    for (uint32_t i = 0; i < count && i < MOST_BLOCKS; i++) {
        if (readers[i] == update) continue;
        if (reader != NONE) return UIR_STATUS_UNSUPPORTED;
        reader = readers[i];
    }
    if (reader == NONE) return UIR_STATUS_UNSUPPORTED;
    const uir_loop_statement *s = uir_tactic_only_statement(t, reader);
    *out_block = reader;
    if (s && s->kind == UIR_LOOP_STATEMENT_STORE && expression(t, s->values[0])->kind == UIR_LOOP_LOAD)
        return UIR_STATUS_OK;
    return uir_schedule_cache_read(t->s, sums, reader, uir_lower_space(t->machine, UIR_SPACE_MEMORY), NULL, out_block);
}

static const uir_space *format_of(const product *p, uint32_t which, int place);

/* Can units that multiply go on with finished sums where those come to lie, in the order of their rows? */
static bool go_on(const product *p) {
    const uir_machine *d = p->t->machine;
    const uir_tile_way *way = &p->problem.ways[UIR_TILE_SUMS];
    const uir_legal_row *mma = uir_machine_find_pair(d, p->sum_dtype, p->dtypes[0], p->dtypes[1]);
    int last = way->spaces[way->count - 1], scratch = uir_machine_find_role(d, UIR_SPACE_SCRATCH);
    int64_t rows, columns;
    if (scratch < 0 || !mma ||
        uir_space_get_block(format_of(p, UIR_TILE_SUMS, way->count - 1), p->sum_dtype, &rows, &columns))
        return false;
    uint32_t operands = 1u << last | 1u << scratch;
    for (uint32_t kind = 0; kind < d->unit_kind_count; kind++)
        if (mma->unit_kinds >> kind & 1 && uir_machine_find_legal(d, "binary.add", p->sum_dtype, UIR_DTYPE_NONE,
                                                                  (uint32_t)scratch, operands, kind, 0) >= 0)
            return true;
    return false;
}

/* The only block that reads a tensor, beside one that makes it, where it stores one value; NONE. */
static uint32_t only_reader(const uir_tactic *t, uint32_t tensor, uint32_t maker) {
    uint32_t readers[3], count = uir_schedule_readers(t->s, tensor, readers, 3), reader = NONE;
    for (uint32_t i = 0; i < count; i++) {
        if (readers[i] == maker) continue;
        if (count > 2 || reader != NONE) return NONE;
        reader = readers[i];
    }
    const uir_loop_statement *s = reader == NONE ? NULL : uir_tactic_only_statement(t, reader);
    return s && s->kind == UIR_LOOP_STATEMENT_STORE ? reader : NONE;
}

/* Are all loads of the sums at this place? */
static bool reads_alike(const product *p, uint32_t id, const uir_dim *indices, uint32_t rank) {
    const uir_loop_expression *e = expression(p->t, id);
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++)
        if (!reads_alike(p, e->arguments[i], indices, rank)) return false;
    for (uint32_t d = 0; e->kind == UIR_LOOP_LOAD && e->load.tensor == p->sums && d < rank; d++)
        if (e->has_fill || !uir_dim_equal(e->load.indices[d], indices[d])) return false;
    return true;
}

/* Does the block read the sums at its own place alone, one for each that it stores? */
static bool follows_sums(const product *p, uint32_t block) {
    const uir_loop_statement *b = uir_tactic_at(p->t, block);
    const uir_loop_access *access = uir_tactic_find_access(p->t, block, p->sums);
    uint32_t rank = p->t->f->tensors.data[p->sums].rank, found = 0;
    uir_symbol symbol;
    if (!access || b->condition_count ||
        !reads_alike(p, uir_tactic_only_statement(p->t, block)->values[0], access->indices, rank))
        return false;
    for (uint32_t i = 0; i < b->iter_count; i++) {
        bool own = false;
        if (b->iters[i].data || b->iters[i].reduce) return false;
        for (uint32_t d = 0; d < rank; d++)
            own = own ||
                  (uir_dim_is_symbol(p->t->f->dims, access->indices[d], &symbol) && symbol.id == b->iters[i].symbol.id);
        found += own;
    }
    return found == b->iter_count && found == rank;
}

/* What leaves a tile: a copy of the finished sums to memory; what is computed of them alone, where that can be done
 * where they lie. */
static uir_status find_copy(product *p) {
    uir_tactic *t = p->t;
    uint32_t reader = NONE;
    for (bool again = !t->apart && go_on(p); again;) {
        reader = only_reader(t, p->sums, p->update);
        again = reader != NONE && uir_tactic_wants_inline(t, reader) &&
                only_reader(t, uir_tactic_only_statement(t, reader)->targets[0].tensor, reader) != NONE;
        if (again) UIR_TRY(uir_tactic_asked(uir_schedule_inline(t->s, reader), &again));
    }
    if (reader != NONE && follows_sums(p, reader)) {
        p->copy = reader;
        t->follows = true;
        return UIR_STATUS_OK;
    }
    return uir_tactic_find_sums(t, p->sums, p->update, &p->copy);
}

static uir_status order(product *p, uint32_t block, const uint32_t *loops, uint32_t count) {
    uint32_t now[MOST_LOOPS], all = uir_schedule_loops(p->t->s, block, now, MOST_LOOPS);
    if (count < 2 || (all >= count && !memcmp(now + all - count, loops, count * sizeof *loops))) return UIR_STATUS_OK;
    return uir_schedule_reorder(p->t->s, loops, count);
}

static uir_status split(product *p, uint32_t which, uint32_t loop, uint32_t *out_outer, uint32_t *out_inner) {
    *out_outer = NONE;
    *out_inner = loop;
    if (loop == NONE || !p->sides[which].split) return UIR_STATUS_OK;
    return uir_schedule_split(p->t->s, loop, uir_tactic_number(p->t, p->sides[which].tile), out_outer, out_inner);
}

/* Tiles of the finished sums. Of the loops over tiles units share out those that are not under what stays. */
static uir_status tile_sums(product *p, uint32_t *outer, uint32_t *out_count) {
    uir_tactic *t = p->t;
    uint32_t loops[MOST_LOOPS], all = uir_schedule_loops(t->s, p->copy, loops, MOST_LOOPS);
    uint32_t tiled[2], out[2], in[2], list[MOST_LOOPS + 3], count = 0;
    /* What goes by comes last: rows where the right factor stays, else columns. */
    uint32_t last = p->choice.stationary == UIR_STATIONARY_RIGHT ? 0 : 1;
    for (uint32_t i = 0; i < 2; i++) tiled[i] = loop_of(p, p->copy, NONE, iter_of_copy(p, p->sides[sum_sides[i]].iter));
    for (uint32_t i = 0; i < all; i++)
        if (loops[i] != tiled[0] && loops[i] != tiled[1]) list[count++] = loops[i];
    for (uint32_t i = 0; i < 2; i++) UIR_TRY(split(p, sum_sides[i], tiled[i], &out[i], &in[i]));
    if (out[!last] != NONE) list[count++] = out[!last];
    if (out[last] != NONE) list[count++] = out[last];
    *out_count = count;
    memcpy(outer, list, count * sizeof *list);
    for (uint32_t i = 0; i < 2; i++)
        if (in[i] != NONE) list[count++] = in[i];
    UIR_TRY(order(p, p->copy, list, count));
    if (!*out_count) { /* one tile: a loop of one turn around it */
        if (!count) return UIR_STATUS_UNSUPPORTED;
        UIR_TRY(uir_schedule_add_unit_loop(t->s, list[0], &outer[0]));
        *out_count = 1;
    }
    p->unit = outer[*out_count - 1];
    p->around = NONE;
    if (p->choice.stationary == UIR_STATIONARY_SUMS) return UIR_STATUS_OK;
    if (*out_count == 1) { /* one row of tiles: a loop of one turn around what goes by */
        UIR_TRY(uir_schedule_add_unit_loop(t->s, p->unit, &outer[0]));
        outer[(*out_count)++] = p->unit;
    }
    p->around = outer[*out_count - 2];
    return UIR_STATUS_OK;
}

/* The sums in a tile's loop, by steps along the depth. */
static uir_status place_sums(product *p) {
    uir_tactic *t = p->t;
    uint32_t writers[MOST_BLOCKS], loops[MOST_LOOPS], list[MOST_LOOPS + 1], count = 0, tiled[SIDES], out, in;
    UIR_TRY(uir_schedule_compute_at(t->s, p->update, p->unit));
    uint32_t all = uir_tactic_own_loops(t, p->update, p->unit, loops);
    for (uint32_t i = 0; i < SIDES; i++) tiled[i] = loop_of(p, p->update, p->unit, p->sides[i].iter);
    for (uint32_t i = 0; i < all; i++)
        if (loops[i] != tiled[ROWS] && loops[i] != tiled[COLUMNS] && loops[i] != tiled[DEPTH]) list[count++] = loops[i];
    UIR_TRY(split(p, DEPTH, tiled[DEPTH], &out, &in));
    if (out != NONE) list[count++] = out;
    p->inside = count ? list[count - 1] : p->unit;
    for (uint32_t i = 0; i < 2; i++)
        if (tiled[i] != NONE) list[count++] = tiled[i];
    if (in != NONE) list[count++] = in;
    UIR_TRY(order(p, p->update, list, count));
    p->init = NONE;
    all = uir_schedule_writers(t->s, p->sums, writers, MOST_BLOCKS);
    for (uint32_t i = 0; i < all && i < MOST_BLOCKS; i++)
        if (uir_tactic_has_kind(t, writers[i], UIR_LOOP_STATEMENT_INIT)) p->init = writers[i];
    return p->init == NONE ? UIR_STATUS_UNSUPPORTED : UIR_STATUS_OK;
}

/* ---- what lies on the chip ---- */
/* The space whose block format the tile uses: its own, else that of the next (or previous) space reached by a move that
 * keeps element order. */
static const uir_space *format_of(const product *p, uint32_t which, int place) {
    const uir_machine *d = p->t->machine;
    const uir_tile_way *w = &p->problem.ways[which];
    const uir_space *own = &d->spaces[w->spaces[place]];
    int64_t rows, columns;
    int other = which == UIR_TILE_SUMS ? place - 1 : place + 1;
    if (uir_space_get_block(own, p->problem.dtypes[which], &rows, &columns) || other < 0 || other >= w->count)
        return own;
    int from = which == UIR_TILE_SUMS ? other : place, to = which == UIR_TILE_SUMS ? place : other;
    const uir_legal_row *move = uir_machine_find_move(d, p->problem.dtypes[which], w->spaces[from], w->spaces[to]);
    return move && move->constraints & UIR_LEGAL_SAME_FORMAT ? format_of(p, which, other) : own;
}

/* A tile: its tensor has these two dims, so long, in the blocks of this space. */
static uir_status keep_tile(product *p, uint32_t tensor, const uint32_t dims[2], const int64_t sizes[2],
                            const uir_space *space) {
    uir_tactic *t = p->t;
    bool done;
    UIR_TRY(uir_tactic_asked(uir_schedule_shrink(t->s, tensor), &done));
    const uir_loop_tensor *tile = &t->f->tensors.data[tensor];
    if (tile->rank != 2 || dims[0] != 0 || dims[1] != 1) UIR_TRY(uir_schedule_arrange(t->s, tensor, dims, 2));
    for (uint32_t i = 0; i < 2; i++)
        if (!uir_dim_equal(t->f->tensors.data[tensor].extents[i], uir_tactic_number(t, sizes[i])))
            UIR_TRY(uir_schedule_pad(t->s, tensor, i, uir_tactic_number(t, sizes[i])));
    tile = &t->f->tensors.data[tensor];
    int64_t rows, columns;
    uir_layout layout;
    if (!uir_space_get_block(space, tile->dtype, &rows, &columns)) return UIR_STATUS_OK;
    uir_dim extents[2] = {tile->extents[0], tile->extents[1]};
    uir_space_make_layout(space, tile->dtype, extents, t->f->dims, &layout);
    return uir_schedule_set_layout(t->s, tensor, &layout);
}

static uir_status vectorise_own(product *p, uint32_t block, uint32_t under) {
    uint32_t loops[MOST_LOOPS], own = uir_tactic_own_loops(p->t, block, under, loops);
    for (uint32_t k = 0; k < own; k++) UIR_TRY(uir_tactic_vectorise(p->t, loops[k]));
    return UIR_STATUS_OK;
}

/* Spaces of the factor's way in which it lies whole in depth, since it stays. */
static int count_held(const product *p, uint32_t which) {
    uir_stationary stays = which ? UIR_STATIONARY_RIGHT : UIR_STATIONARY_LEFT;
    return p->choice.stationary == stays ? p->choice.held : 0;
}

/* A tile of a factor comes to where it is multiplied, from space to space: what stays once, else in each step. */
static uir_status bring_factor(product *p, uint32_t which) {
    static const char *const names[] = {"rows", "columns"};
    uir_tactic *t = p->t;
    const uir_tile_way *w = &p->problem.ways[which];
    const uint32_t *sides = uir_tile_sides[which];
    int held = count_held(p, which);
    uint32_t iters[2], dims[2], count = 0, tensors[UIR_MACHINE_MAX_SPACES], blocks[UIR_MACHINE_MAX_SPACES];
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t iter = p->sides[sides[i]].iter;
        dims[i] = iter == NONE ? NONE : count;
        if (iter != NONE) iters[count++] = iter;
    }
    const uir_loop_statement *s = uir_tactic_only_statement(t, p->update);
    uint32_t argument = expression(t, s->values[0])->arguments[which];
    uir_schedule_operand operand = {.which = which, .under_cast = expression(t, argument)->kind == UIR_LOOP_CALL};
    for (int i = 0; i < w->count; i++) {
        const char *space = t->machine->spaces[w->spaces[i]].name;
        char name[80];
        snprintf(name, sizeof name, i ? "%s_%.60s" : "%s", names[which], space);
        operand.name = name;
        UIR_TRY(uir_schedule_cache_operand(t->s, p->update, &operand, iters, count, i < held ? p->around : p->inside,
                                           space, &tensors[i], &blocks[i]));
    }
    for (int i = 0; i < w->count; i++) {
        int64_t sizes[2];
        for (uint32_t k = 0; k < 2; k++) {
            const side *of = &p->sides[sides[k]];
            sizes[k] = of->tile;
            if (i < held && sides[k] == DEPTH)
                sizes[k] = (p->problem.extents[DEPTH] + p->problem.blocks[DEPTH] - 1) / p->problem.blocks[DEPTH] *
                           p->problem.blocks[DEPTH];
        }
        UIR_TRY(keep_tile(p, tensors[i], dims, sizes, format_of(p, which, i)));
        UIR_TRY(vectorise_own(p, blocks[i], i < held ? p->around : p->inside));
    }
    return UIR_STATUS_OK;
}

/* Finished sums go to memory through what lies on the way: whole tensors, before they are tiled. */
static uir_status read_through(product *p) {
    const uir_tile_way *w = &p->problem.ways[UIR_TILE_SUMS];
    uint32_t source = p->sums;
    for (int i = 1; i < w->count; i++) {
        const char *space = p->t->machine->spaces[w->spaces[i]].name;
        UIR_TRY(uir_schedule_cache_read(p->t->s, source, p->copy, space, &p->passed[i], &p->passing[i]));
        source = p->passed[i];
    }
    return UIR_STATUS_OK;
}

/* The last of the way first: each is placed before the one that reads it. */
static uir_status place_passing(product *p) {
    for (int i = p->problem.ways[UIR_TILE_SUMS].count; i-- > 1;)
        UIR_TRY(uir_schedule_compute_at(p->t->s, p->passing[i], p->unit));
    return UIR_STATUS_OK;
}

/* The sums where the machine sums. */
static uir_status keep_sums(product *p) {
    uir_tactic *t = p->t;
    const uir_loop_statement *s = uir_tactic_only_statement(t, p->update);
    const int64_t sizes[2] = {p->sides[ROWS].tile, p->sides[COLUMNS].tile};
    uint32_t dims[2];
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t iter = p->sides[sum_sides[i]].iter;
        dims[i] = iter == NONE ? NONE : dim_of_iter(t, &s->targets[0], &uir_tactic_at(t, p->update)->iters[iter]);
    }
    for (int i = 1; i < p->problem.ways[UIR_TILE_SUMS].count; i++) {
        UIR_TRY(keep_tile(p, p->passed[i], dims, sizes, format_of(p, UIR_TILE_SUMS, i)));
        UIR_TRY(vectorise_own(p, p->passing[i], p->unit));
    }
    UIR_TRY(uir_schedule_set_scope(t->s, p->sums, uir_lower_space(t->machine, UIR_SPACE_ACCUMULATORS)));
    return keep_tile(p, p->sums, dims, sizes, format_of(p, UIR_TILE_SUMS, 0));
}

static uir_status mark(product *p, const uint32_t *outer, uint32_t outer_count) {
    uir_tactic *t = p->t;
    const uint32_t blocks[3] = {p->init, p->update, p->copy}, under[3] = {p->unit, p->inside, p->unit};
    uir_loop_class classes[UIR_LOOP_MAX_ITERS];
    bool done;
    const uir_loop_statement *u = uir_tactic_at(t, p->update);
    for (uint32_t i = 0; i < u->iter_count; i++)
        classes[i] = i == p->sides[ROWS].iter      ? UIR_LOOP_CLASS_M
                     : i == p->sides[COLUMNS].iter ? UIR_LOOP_CLASS_N
                     : u->iters[i].reduce          ? UIR_LOOP_CLASS_K
                                                   : UIR_LOOP_CLASS_BATCH;
    UIR_TRY(uir_schedule_set_classes(t->s, p->update, classes));
    for (uint32_t i = 0; i < 3; i++) UIR_TRY(vectorise_own(p, blocks[i], under[i]));
    uint32_t shared = p->around == NONE ? outer_count : outer_count - 1; /* the last goes by what stays */
    for (uint32_t i = 0; i < shared && i < 4; i++) {
        UIR_TRY(uir_tactic_asked(uir_schedule_set_kind(t->s, outer[i], UIR_LOOP_PARALLEL, NULL), &done));
        if (!done) break;
    }
    return uir_schedule_set_use(t->s, p->update, UIR_LOOP_USE_MMA);
}

static uir_status schedule_product(product *p) {
    uint32_t outer[MOST_LOOPS + 2], count;
    UIR_TRY(find_copy(p));
    UIR_TRY(read_through(p));
    UIR_TRY(tile_sums(p, outer, &count));
    UIR_TRY(place_passing(p));
    UIR_TRY(place_sums(p));
    for (uint32_t which = 0; which < 2; which++) UIR_TRY(bring_factor(p, which));
    UIR_TRY(keep_sums(p));
    return mark(p, outer, count);
}

uir_status uir_tactic_schedule_products(uir_tactic *t) {
    uint32_t blocks[MOST_BLOCKS], count = uir_schedule_blocks(t->s, NONE, blocks, MOST_BLOCKS), products = 0;
    product p;
    if (t->plain || !t->machine->has_device_barrier || count > MOST_BLOCKS) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < count; i++) products += find_product(t, blocks[i], &p);
    bool several = uir_lower_count_updates(t->f) > 1;
    for (uint32_t i = 0; i < count; i++) {
        bool fits;
        if (!find_product(t, blocks[i], &p)) {
            if (several && t->store_count < UIR_TACTIC_PARTED) UIR_TRY(uir_tactic_schedule_sums(t, blocks[i]));
            continue;
        }
        UIR_TRY(choose_tiles(&p, products == 1 && !t->few ? t->choice : NULL, &fits));
        if (!fits) continue; /* it is a sum like others */
        if (t->store_count == UIR_TACTIC_PARTED) return UIR_STATUS_UNSUPPORTED;
        UIR_TRY(schedule_product(&p));
        t->stores[t->store_count++] = p.copy;
        t->products = true;
    }
    return UIR_STATUS_OK;
}
