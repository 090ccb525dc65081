/* What is decided for a contraction: which axes are tiled, by how much, and which factors are copied. */
#include "lower/tactics/products/contraction_plan.h"
#include "lower/tactics/products/tiles.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define STATEMENT(f, id)  (&(f)->statements.data[id])
#define EXPRESSION(f, id) (&(f)->expressions.data[id])
#define NONE              UIR_LOOP_NONE

enum { UNKNOWN = 8 };

/* ---- choices ---- */
static int64_t guess(uir_contraction_plan *p, uir_dim extent) {
    int64_t low, high;
    if (uir_contraction_plan_is_const(p, extent, &low)) return low;
    uir_dim_bounds(p->f->dims, extent, &low, &high);
    return high < UNKNOWN ? high : UNKNOWN;
}

/* Is one axis to be tiled rather than another of its class? Columns lie together in memory: the last in the output.
 * Else one of both factors, then the longer one. */
static bool is_better(uir_contraction_plan *p, const uir_contraction_axis *axis, const uir_contraction_axis *than) {
    int64_t here = guess(p, axis->extent), there = guess(p, than->extent);
    if (axis->shared != than->shared) return axis->shared;
    if (axis->class != UIR_CONTRACTION_N && here != there) return here > there;
    return axis->place >= than->place;
}

void uir_contraction_plan_choose_axes(uir_contraction_plan *p) {
    for (uint32_t class = UIR_CONTRACTION_M; class <= UIR_CONTRACTION_K; class ++) {
        uir_contraction_side *s = &p->sides[class];
        s->axis = NONE;
        for (uint32_t i = 0; i < p->c.axis_count; i++) {
            const uir_contraction_axis *axis = &p->c.axes[i];
            if (axis->class != class || (s->axis != NONE && !is_better(p, axis, &p->c.axes[s->axis]))) continue;
            s->axis = i, s->extent = axis->extent;
        }
        if (s->axis == NONE) s->extent = uir_contraction_plan_number(p, 1);
    }
}

uint32_t uir_contraction_plan_axis_like(const uir_contraction_plan *p, uint32_t class, const uir_loop_iter *like) {
    const uir_loop_statement *update = STATEMENT(p->f, p->c.update);
    for (uint32_t i = 0; i < p->c.axis_count; i++)
        if (p->c.axes[i].class == class && uir_loop_iter_is_same(&update->iters[i], like)) return i;
    return NONE;
}

void uir_contraction_plan_follow_axes(uir_contraction_plan *p, const uir_contraction_plan *leader) {
    const uir_loop_statement *update = STATEMENT(p->f, leader->c.update);
    for (uint32_t class = UIR_CONTRACTION_M; class <= UIR_CONTRACTION_K; class ++) {
        uir_contraction_side *s = &p->sides[class];
        const uir_contraction_side *like = &leader->sides[class];
        uint32_t same =
            like->axis == NONE ? NONE : uir_contraction_plan_axis_like(p, class, &update->iters[like->axis]);
        if (same == NONE) continue;
        s->axis = same;
        s->extent = p->c.axes[same].extent;
    }
}

void uir_contraction_plan_follow_tiles(uir_contraction_plan *p, const uir_contraction_plan *leader) {
    for (uint32_t class = UIR_CONTRACTION_M; class <= UIR_CONTRACTION_K; class ++) {
        uir_contraction_side *s = &p->sides[class];
        const uir_contraction_side *like = &leader->sides[class];
        s->tile = like->tile;
        s->split = like->split;
        s->guarded = like->guarded || !uir_dim_equal(s->extent, like->extent);
    }
}

/* Columns are the second factor's; where it has none, the first one's rows. */
void uir_contraction_plan_choose_sides(uir_contraction_plan *p) {
    uir_contraction *c = &p->c;
    for (uint32_t i = 0; i < c->axis_count; i++)
        if (c->axes[i].class == UIR_CONTRACTION_N) return;
    uir_contraction_exchange(c);
    uir_contraction_plan_say(p, "exchange operands A and B of %s: operand B has no columns",
                             c->f->tensors.data[c->tensor].name);
}

/* The axis along which the last dim of what a block stores to runs; NONE. */
uint32_t uir_contraction_plan_last_axis(const uir_contraction_plan *p, const uir_contraction_block *b) {
    const uir_loop_statement *block = STATEMENT(p->f, b->id);
    const uir_loop_access *target = &STATEMENT(p->f, block->first_child)->targets[0];
    uint32_t rank = p->f->tensors.data[target->tensor].rank;
    uir_symbol symbol;
    if (!rank || !uir_dim_is_symbol(p->f->dims, target->indices[rank - 1], &symbol)) return NONE;
    for (uint32_t i = 0; i < block->iter_count; i++)
        if (block->iters[i].symbol.id == symbol.id) return b->axes[i];
    return NONE;
}

static bool has_mma(const uir_contraction_plan *p, uir_dtype dtype, uint32_t factor) {
    uir_dtype state = p->f->tensors.data[p->c.tensor].dtype;
    return uir_contraction_multiplies(p->machine, state, dtype, factor);
}

/* What mma can read: the factor itself, or what is cast in it when the device multiplies that. */
uir_status uir_contraction_plan_choose_dtypes(uir_contraction_plan *p) {
    uir_loop_function *f = p->f;
    for (uint32_t k = 0; k < 2; k++) {
        const uir_loop_expression *e = EXPRESSION(f, p->c.factors[k]);
        p->raw[k] = p->c.factors[k];
        if (e->kind == UIR_LOOP_CALL && e->op == UIR_OP_CAST && has_mma(p, EXPRESSION(f, e->arguments[0])->dtype, k))
            p->raw[k] = e->arguments[0];
        p->dtypes[k] = EXPRESSION(f, p->raw[k])->dtype;
        if (!has_mma(p, p->dtypes[k], k))
            return uir_contraction_refuse(&p->c, "the device cannot multiply matrices of these dtypes");
    }
    return UIR_STATUS_OK;
}

/* Every index is a start plus at most one iteration variable, each used once: the slice is a box. */
static bool is_box(uir_contraction_plan *p, uint32_t expression) {
    const uir_loop_expression *e = EXPRESSION(p->f, expression);
    const uir_loop_statement *update = STATEMENT(p->f, p->c.update);
    uir_dims *dims = p->f->dims;
    bool used[UIR_LOOP_MAX_ITERS] = {false};
    if (e->kind != UIR_LOOP_LOAD || e->has_fill) return false;
    for (uint32_t d = 0; d < p->f->tensors.data[e->load.tensor].rank; d++) {
        for (uint32_t i = 0; i < update->iter_count; i++) {
            if (!uir_dim_mentions(dims, e->load.indices[d], update->iters[i].symbol)) continue;
            uir_dim start = uir_dim_sub(dims, e->load.indices[d], uir_dim_symbol(dims, update->iters[i].symbol));
            if (used[i] || !start.id) return false;
            for (uint32_t k = 0; k < update->iter_count; k++)
                if (uir_dim_mentions(dims, start, update->iters[k].symbol)) return false;
            used[i] = true;
        }
    }
    return true;
}

/* Dim of a tensor that an axis of the update addresses in a box; NONE. */
uint32_t uir_contraction_plan_dim_of(uir_contraction_plan *p, uint32_t expression, uint32_t axis) {
    const uir_loop_expression *e = EXPRESSION(p->f, expression);
    const uir_loop_statement *update = STATEMENT(p->f, p->c.update);
    for (uint32_t d = 0; axis != NONE && d < p->f->tensors.data[e->load.tensor].rank; d++)
        if (uir_dim_mentions(p->f->dims, e->load.indices[d], update->iters[axis].symbol)) return d;
    return NONE;
}

static bool is_at_most(uir_contraction_plan *p, uint32_t class, int64_t most) {
    int64_t extent;
    return uir_contraction_plan_is_const(p, p->sides[class].extent, &extent) && extent <= most;
}

/* Are the first factor's rows read where they lie? Few may be, and half a panel of them that meets half of columns,
 * each once; many, when they are known not to meet in the same places of a cache: as far apart as a multiple of half
 * its ways' size, they would. */
bool uir_contraction_plan_is_direct_a(uir_contraction_plan *p) {
    if (!is_box(p, p->raw[0])) return false;
    const uir_loop_tensor *t = &p->f->tensors.data[EXPRESSION(p->f, p->raw[0])->load.tensor];
    uint32_t row = uir_contraction_plan_dim_of(p, p->raw[0], p->sides[UIR_CONTRACTION_M].axis);
    int64_t distance = (int64_t)uir_dtype_bits(t->dtype) / 8, same_place = p->machine->conflict_bytes, extent;
    if (t->role != UIR_LOOP_ROLE_IN) return false;
    if (p->few || !same_place) return true;
    if (is_at_most(p, UIR_CONTRACTION_M, p->machine->mma_n / 2) &&
        is_at_most(p, UIR_CONTRACTION_N, p->machine->mma_n / 2))
        return true;
    for (uint32_t d = row + 1; d < t->rank; d++) {
        if (!uir_contraction_plan_is_const(p, t->extents[d], &extent)) return false;
        distance = distance * (extent % same_place) % same_place;
    }
    return distance != 0;
}

/* Is the second factor read where it lies? Constants are in panels already; else its rows must follow each other. */
bool uir_contraction_plan_is_direct_b(uir_contraction_plan *p) {
    if (!is_box(p, p->raw[1])) return false;
    const uir_loop_tensor *t = &p->f->tensors.data[EXPRESSION(p->f, p->raw[1])->load.tensor];
    uint32_t row = uir_contraction_plan_dim_of(p, p->raw[1], p->sides[UIR_CONTRACTION_K].axis),
             column = uir_contraction_plan_dim_of(p, p->raw[1], p->sides[UIR_CONTRACTION_N].axis);
    int64_t width;
    if (t->role != UIR_LOOP_ROLE_IN) return false;
    if (uir_contraction_is_constant(&p->c, EXPRESSION(p->f, p->raw[1])->load.tensor)) return column != NONE;
    if (column == NONE || column + 1 != t->rank) return false;
    if (p->few) return true;
    return row != NONE && row + 1 == column && uir_contraction_plan_is_const(p, t->extents[column], &width) &&
           width <= 128;
}

typedef struct tile_choice {
    int64_t m, n, k;
} tile_choice;

static uir_status add_tile(uir_contraction_plan *p, uir_contraction_side *s, int64_t most, int64_t multiple,
                           uint32_t *count) {
    uir_loop_size tile;
    uir_symbol_facts facts = {multiple, most, multiple, {0}};
    UIR_TRY(uir_contraction_plan_fresh_name(p->f, s->tile_name, &tile.name));
    UIR_TRY(uir_dims_add_symbol(p->f->dims, tile.name, strlen(tile.name), facts, &tile.symbol));
    UIR_TRY(uir_vector_push(&p->f->arena, &p->f->tiles, tile));
    s->tile = uir_dim_symbol(p->f->dims, tile.symbol);
    s->split = true;
    ++*count;
    return s->tile.id ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
}

/* A tile of a constant: all of it where that fits. (Guards that always hold cost nothing: the kernel is proved not to
 * need them.) */
static void fixed_tile(uir_contraction_plan *p, uir_contraction_side *s, int64_t size) {
    int64_t extent;
    s->split = s->guarded = !uir_contraction_plan_is_const(p, s->extent, &extent) || extent > size;
    s->tile = s->split ? uir_contraction_plan_number(p, size) : s->extent;
}

/* Elements of four bytes that what is on chip begins anew with. */
static int64_t line_of(const uir_contraction_plan *p) {
    int scratch = uir_machine_find_role(p->machine, UIR_SPACE_SCRATCH);
    return scratch < 0 || p->machine->spaces[scratch].alignment < 4 ? 1 : p->machine->spaces[scratch].alignment / 4;
}

enum { COLUMNS = 128 }; /* that are not cut where there are no more: panels that one row is multiplied with at once */

/* Columns of a known small number: rows of the tile are whole lines of a cache. */
static void column_tile(uir_contraction_plan *p, uir_contraction_side *n) {
    fixed_tile(p, n, COLUMNS);
    if (n->split || n->axis == NONE) return;
    n->tile = uir_dim_align(p->f->dims, n->extent, uir_contraction_plan_number(p, line_of(p)));
    n->guarded = true;
}

/* Bytes on chip, as numbers that tiles' sizes are multiplied with. */
typedef struct footprint {
    int64_t mn, mk, kn, n, fixed;
} footprint;

static footprint footprint_of(uir_contraction_plan *p) {
    footprint f = {.mn = (int64_t)uir_dtype_bits(p->f->tensors.data[p->c.tensor].dtype) / 8};
    int64_t after = 8 * (int64_t)(p->c.after_count + p->crossed);
    for (uint32_t k = 0; k < 2; k++) {
        int64_t bytes = p->copied[k] ? (int64_t)uir_dtype_bits(p->dtypes[k]) / 8 : 0;
        if (EXPRESSION(p->f, p->raw[k])->kind != UIR_LOOP_LOAD) bytes *= 4; /* what leads to it */
        *(k ? &f.kn : &f.mk) = bytes;
    }
    *(p->by_tiles ? &f.mn : &f.n) += after;
    /* Beside others: the sums of each, and a tile of what the others read of it. */
    f.mn *= p->products > 1 ? 2 * (int64_t)p->products : 1;
    f.kn *= p->products;
    f.n *= p->products;
    f.fixed = 64 * ((int64_t)(p->c.after_count + p->crossed) * 2 + 8) * p->products;
    return f;
}

static uir_dim bytes_of(uir_contraction_plan *p, uir_dim m, uir_dim n, uir_dim k) {
    uir_dims *dims = p->f->dims;
    footprint f = footprint_of(p);
    uir_dim panels = uir_dim_align(dims, n, uir_contraction_plan_number(p, p->machine->mma_n));
    uir_dim rows = uir_dim_mul(dims, m, uir_dim_add(dims, k, uir_contraction_plan_number(p, UIR_CONTRACTION_PAD)));
    const uir_dim parts[] = {uir_dim_mul(dims, m, n), rows, uir_dim_mul(dims, panels, k), n};
    const int64_t each[] = {f.mn, f.mk, f.kn, f.n};
    uir_dim bytes = uir_contraction_plan_number(p, f.fixed);
    for (uint32_t i = 0; i < 4; i++)
        bytes = uir_dim_add(dims, bytes, uir_dim_mul(dims, parts[i], uir_contraction_plan_number(p, each[i])));
    return bytes;
}

/* The same for tiles of known size. */
static int64_t byte_count(uir_contraction_plan *p, tile_choice t) {
    int64_t bytes = INT64_MAX;
    (void)uir_contraction_plan_is_const(p,
                                        bytes_of(p, uir_contraction_plan_number(p, t.m),
                                                 uir_contraction_plan_number(p, t.n),
                                                 uir_contraction_plan_number(p, t.k)),
                                        &bytes);
    return bytes;
}

uir_contraction_room uir_contraction_plan_room(const uir_contraction_plan *p) {
    int scratch = uir_machine_find_role(p->machine, UIR_SPACE_SCRATCH);
    if (scratch < 0) return (uir_contraction_room){0, 0};
    int64_t near = (int64_t)uir_machine_working_set(p->machine, scratch) / 4 * 3,
            most = (int64_t)p->machine->spaces[scratch].capacity / 4 * 3;
    return (uir_contraction_room){near < most ? near : most, most};
}

/* How many bytes a tile may take where the least one takes so many; 0: none fits. */
static int64_t contraction_room_for(uir_contraction_room room, int64_t least) {
    return least <= room.near ? room.near : least <= room.most ? least : 0;
}

/* That it fits, as a condition of the kernel. */
static uir_status require_capacity(uir_contraction_plan *p, int64_t capacity) {
    int64_t known;
    uir_dim bytes = bytes_of(p, p->sides[UIR_CONTRACTION_M].tile, p->sides[UIR_CONTRACTION_N].tile,
                             p->sides[UIR_CONTRACTION_K].tile);
    if (!bytes.id) return UIR_STATUS_OUT_OF_MEMORY;
    if (uir_contraction_plan_is_const(p, bytes, &known)) return UIR_STATUS_OK;
    uir_condition fits = {UIR_RELATION_LE, bytes, uir_contraction_plan_number(p, capacity)};
    return uir_vector_push(&p->f->arena, &p->f->requires_, fits);
}

/* Of work: tiles of rows and columns (0: not cut), and what lies beside them. */
static uir_dim units_of(uir_contraction_plan *p, const uir_parameter_tile *tile) {
    uir_dims *dims = p->f->dims;
    const uir_contraction_side *m = &p->sides[UIR_CONTRACTION_M], *n = &p->sides[UIR_CONTRACTION_N];
    uir_dim units = uir_dim_ceildiv(dims, m->extent, uir_contraction_plan_number(p, tile->rows));
    if (tile->columns)
        units =
            uir_dim_mul(dims, units, uir_dim_ceildiv(dims, n->extent, uir_contraction_plan_number(p, tile->columns)));
    for (uint32_t i = 0; i < p->c.axis_count; i++) {
        uint32_t class = p->c.axes[i].class;
        if (class != UIR_CONTRACTION_K && p->sides[class].axis != i)
            units = uir_dim_mul(dims, units, p->c.axes[i].extent);
    }
    return units;
}

/* A tile that is a symbol is at most what some candidate makes it. */
static void narrow_tile(uir_contraction_plan *p, const uir_contraction_side *s, int64_t most) {
    uir_symbol symbol;
    if (!uir_dim_is_symbol(p->f->dims, s->tile, &symbol)) return;
    uir_symbol_facts facts = uir_dims_symbol_facts(p->f->dims, symbol);
    facts.max = most;
    uir_dims_set_symbol_facts(p->f->dims, symbol, facts);
}

/* ---- the table of tiles: the record's, or the tactic's ---- */
static const uir_parameters *given_to(const uir_contraction_plan *p) {
    static const uir_parameters none = {0};
    return p->choice ? &p->choice->given : &none;
}

static uir_status misfit(const uir_contraction_plan *p, const char *format, ...) UIR_PRINTF(2, 3);
static uir_status misfit(const uir_contraction_plan *p, const char *format, ...) {
    char why[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    return uir_error(p->c.diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "@%s: tuning record: %s", p->f->name, why);
}

/* A row of the tiling function and of the record. `tile->cost` 0: what the tactic thinks. */
static uir_status add_candidate(uir_contraction_plan *p, const uir_parameter_tile *tile, uint32_t count,
                                uir_icandidate row, uir_parameters *chosen) {
    uir_loop_function *f = p->f;
    uir_parameter_tile *kept = &chosen->tiles[chosen->tile_count];
    *kept = *tile;
    if (tile->cost) row.cost = uir_contraction_plan_number(p, tile->cost);
    UIR_TRY_ALLOCATE(row.tiles, uir_arena_allocate_array(&f->arena, count, sizeof *row.tiles));
    if (tile->columns) row.tiles[0] = uir_contraction_plan_number(p, tile->columns);
    row.tiles[count - 1] = uir_contraction_plan_number(p, tile->rows);
    if (!row.cost.id || !row.units.id || !row.tiles[count - 1].id) return UIR_STATUS_OUT_OF_MEMORY;
    (void)uir_contraction_plan_is_const(p, row.cost, &kept->cost);
    chosen->tile_count++;
    return uir_vector_push(&f->arena, &f->candidates, row);
}

/* ---- what the solver is told ---- */
typedef struct solving {
    uir_tile_problem problem;
    uir_contraction_plan *plan;
    int64_t *values; /* of the function's symbols, for the bytes of a tile */
    uint32_t value_count;
    int64_t chunk; /* that these are the bytes for */
    uir_dim bytes;
} solving;

static int64_t tile_bytes(void *user, int64_t rows, int64_t columns, int64_t chunk) {
    solving *s = user;
    uir_contraction_plan *p = s->plan;
    const uir_contraction_side *m = &p->sides[UIR_CONTRACTION_M], *n = &p->sides[UIR_CONTRACTION_N];
    const uir_dim tiles[] = {m->tile, n->tile};
    const int64_t sizes[] = {rows, columns};
    int64_t bytes;
    if (!s->bytes.id || s->chunk != chunk) {
        s->bytes = bytes_of(p, m->tile, n->tile, uir_contraction_plan_number(p, chunk));
        s->chunk = chunk;
    }
    for (uint32_t i = 0; i < 2; i++) {
        uir_symbol symbol;
        if (uir_dim_is_symbol(p->f->dims, tiles[i], &symbol)) s->values[symbol.id] = sizes[i];
    }
    return uir_dim_evaluate(p->f->dims, s->bytes, s->values, NULL, s->value_count, &bytes) == UIR_DIM_EVALUATED
               ? bytes
               : INT64_MAX;
}

/* 0: any number. */
static int64_t known_extent(uir_contraction_plan *p, uir_dim extent) {
    int64_t value;
    return uir_contraction_plan_is_const(p, extent, &value) ? value : 0;
}

static uir_status begin_solving(uir_contraction_plan *p, bool cut, solving *s) {
    *s = (solving){.plan = p, .value_count = uir_dims_symbol_count(p->f->dims)};
    s->problem = (uir_tile_problem){.machine = p->machine,
                                    .rows = known_extent(p, p->sides[UIR_CONTRACTION_M].extent),
                                    .columns = known_extent(p, p->sides[UIR_CONTRACTION_N].extent),
                                    .depth = known_extent(p, p->sides[UIR_CONTRACTION_K].extent),
                                    .others = 1,
                                    .cut = cut,
                                    .copied = {p->copied[0], p->copied[1]},
                                    .sum_bytes = (int64_t)uir_dtype_bits(p->f->tensors.data[p->c.tensor].dtype) / 8,
                                    .user = s,
                                    .bytes = tile_bytes};
    for (uint32_t k = 0; k < 2; k++) s->problem.factor_bytes[k] = (int64_t)uir_dtype_bits(p->dtypes[k]) / 8;
    for (uint32_t i = 0; i < p->c.axis_count; i++) {
        uint32_t class = p->c.axes[i].class;
        int64_t extent =
            class == UIR_CONTRACTION_K || p->sides[class].axis == i ? 1 : known_extent(p, p->c.axes[i].extent);
        if (extent && extent < UIR_PARAMETERS_MAX_SIZE && s->problem.others < UIR_PARAMETERS_MAX_SIZE)
            s->problem.others *= extent;
    }
    UIR_TRY_ALLOCATE(s->values, uir_arena_allocate_array(p->c.arena, s->value_count + 1u, sizeof *s->values));
    return UIR_STATUS_OK;
}

/* k: a chunk of it lies on the chip at once; all of it is summed where nothing is copied. */
static uir_status choose_depth(uir_contraction_plan *p, const solving *s, int64_t room, const uir_parameters *given,
                               int64_t *out_depth) {
    uir_contraction_side *k = &p->sides[UIR_CONTRACTION_K];
    *out_depth = 0;
    if (!p->copied[0] && !p->copied[1]) {
        k->tile = k->extent;
        return given->depth ? misfit(p, "no operand is copied along the depth") : UIR_STATUS_OK;
    }
    int64_t chunk = given->depth ? given->depth : uir_tiles_choose_chunk(&s->problem, room);
    if (!chunk) return uir_contraction_refuse(&p->c, "no tile fits the device's memory");
    fixed_tile(p, k, chunk);
    (void)uir_contraction_plan_is_const(p, k->tile, out_depth);
    return UIR_STATUS_OK;
}

static uir_status check_tile(const uir_contraction_plan *p, const uir_parameter_tile *tile, bool narrow) {
    if (narrow && tile->columns) return misfit(p, "the columns are not tiled: a tile has rows only");
    if (!narrow && tile->columns % p->machine->mma_n)
        return misfit(p, "the columns of a tile must be a multiple of %u", p->machine->mma_n);
    if (!narrow && !tile->columns) return misfit(p, "a tile must be rows x columns");
    return UIR_STATUS_OK;
}

/* Tiles that are symbols: of rows, and of columns where these are cut. */
static uir_status add_tiles(uir_contraction_plan *p, bool cut, uint32_t *out_count) {
    uir_contraction_side *m = &p->sides[UIR_CONTRACTION_M], *n = &p->sides[UIR_CONTRACTION_N];
    *out_count = 0;
    if (cut) UIR_TRY(add_tile(p, n, UIR_PARAMETERS_MAX_SIZE, p->machine->mma_n, out_count));
    UIR_TRY(add_tile(p, m, UIR_PARAMETERS_MAX_SIZE, 1, out_count));
    m->guarded = true;
    n->guarded |= cut;
    return UIR_STATUS_OK;
}

/* The table of the tiling function: the record's tiles, else those that the solver keeps. */
static uir_status choose_table(uir_contraction_plan *p, solving *s, const uir_parameters *given, int64_t limit,
                               uint32_t count, uir_parameters *chosen) {
    uir_parameter_tile tiles[UIR_PARAMETERS_MAX_TILES];
    bool cut = s->problem.cut;
    uint32_t tile_count = given->tile_count;
    int64_t most_rows = 1, most_columns = 1, most_bytes = 0, score, most = uir_contraction_plan_room(p).most;
    int64_t allowed = tile_count || given->every ? most : limit;
    memcpy(tiles, given->tiles, sizeof tiles);
    if (!tile_count) tile_count = uir_tiles_solve(&s->problem, chosen->depth, allowed, given->every, tiles, &score);
    for (uint32_t i = 0; i < tile_count; i++) {
        UIR_TRY(check_tile(p, &tiles[i], !cut));
        int64_t bytes = tile_bytes(s, tiles[i].rows, tiles[i].columns, chosen->depth);
        if (bytes > allowed)
            return misfit(p, "a tile of %lld x %lld needs %lld bytes on the chip; %lld are available",
                          (long long)tiles[i].rows, (long long)tiles[i].columns, (long long)bytes, (long long)allowed);
        if (!tiles[i].cost) tiles[i].cost = uir_tile_cycles(&s->problem, &tiles[i], chosen->depth);
        UIR_TRY(add_candidate(p, &tiles[i], count, (uir_icandidate){.units = units_of(p, &tiles[i])}, chosen));
        most_bytes = bytes > most_bytes ? bytes : most_bytes;
        most_rows = tiles[i].rows > most_rows ? tiles[i].rows : most_rows;
        most_columns = tiles[i].columns > most_columns ? tiles[i].columns : most_columns;
    }
    if (!chosen->tile_count && (given->every || given->depth))
        return misfit(p, "with a depth of %lld no tile fits on the chip", (long long)chosen->depth);
    if (!chosen->tile_count) return uir_contraction_refuse(&p->c, "no tile fits the device's memory");
    narrow_tile(p, &p->sides[UIR_CONTRACTION_M], most_rows);
    narrow_tile(p, &p->sides[UIR_CONTRACTION_N], most_columns);
    return require_capacity(p, most_bytes > limit ? most_bytes : limit);
}

/* Few rows are one block; their columns are cut alike everywhere, as it is the second factor's way from memory that
 * such a product takes its time for. */
static uir_status choose_few(uir_contraction_plan *p) {
    static const uir_parameters none = {0};
    uir_contraction_side *m = &p->sides[UIR_CONTRACTION_M];
    uir_contraction_room room = uir_contraction_plan_room(p);
    solving s;
    int64_t extent, depth;
    m->guarded = !uir_contraction_plan_is_const(p, m->extent, &extent);
    m->tile = m->guarded ? uir_contraction_plan_number(p, p->machine->mma_m ? p->machine->mma_m : 1) : m->extent;
    column_tile(p, &p->sides[UIR_CONTRACTION_N]);
    UIR_TRY(begin_solving(p, false, &s));
    if (!s.problem.rows) s.problem.rows = p->machine->mma_m;
    if (!s.problem.columns || s.problem.columns > COLUMNS) s.problem.columns = COLUMNS;
    UIR_TRY(choose_depth(p, &s, room.most, &none, &depth));
    return require_capacity(p, room.most);
}

uir_status uir_contraction_plan_choose_tiles(uir_contraction_plan *p) {
    const uir_parameters *given = given_to(p);
    uir_contraction_side *n = &p->sides[UIR_CONTRACTION_N];
    uir_contraction_room room = uir_contraction_plan_room(p);
    uir_parameters chosen = {0};
    int64_t depth, width;
    uint32_t count;
    solving s;
    if (p->few) return choose_few(p);
    bool cut = !uir_contraction_plan_is_const(p, n->extent, &width) || width > COLUMNS;
    if (!cut) column_tile(p, n);
    UIR_TRY(add_tiles(p, cut, &count));
    UIR_TRY(begin_solving(p, cut, &s));
    /* Tiles keep to what stays near where the least of them does. */
    int64_t least = uir_tiles_least_bytes(&s.problem, p->copied[0] || p->copied[1] ? UIR_TILES_LEAST_CHUNK : 0);
    int64_t limit = contraction_room_for(room, least);
    UIR_TRY(choose_depth(p, &s, limit, given, &depth));
    chosen.depth = depth;
    UIR_TRY(choose_table(p, &s, given, limit, count, &chosen));
    if (p->choice) p->choice->chosen = chosen;
    return UIR_STATUS_OK;
}

/* ---- two products in a row ---- */
enum { KEYS = 256, MOST_KEYS = 256 };

/* Keys: all of them where they are known to be few. */
static void key_tile(uir_contraction_plan *p, uir_contraction_side *n) {
    int64_t extent, line = line_of(p);
    bool known = uir_contraction_plan_is_const(p, n->extent, &extent);
    int64_t size = known && extent <= MOST_KEYS ? (extent + line - 1) / line * line : KEYS;
    n->tile = uir_contraction_plan_number(p, size);
    n->split = !known || extent > size;
    n->guarded = !known || extent % size != 0;
}

static int64_t chain_bytes(uir_contraction_plan *first, uir_contraction_plan *second, int64_t rows, int64_t keys,
                           int64_t depth, int64_t width) {
    return byte_count(first, (tile_choice){rows, keys, depth}) + byte_count(second, (tile_choice){rows, width, keys}) +
           rows * 256;
}

static uint32_t list_row_tiles(const uir_parameters *given, uir_parameter_tile *out) {
    static const int64_t rows[] = {96, 48, 24, 12, 6, 1}, more[] = {384, 192, 144};
    uint32_t count = 0;
    for (; count < given->tile_count; count++) out[count] = given->tiles[count];
    if (count) return count;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) out[count++].rows = rows[i];
    for (size_t i = 0; given->every && i < sizeof more / sizeof *more; i++) out[count++].rows = more[i];
    for (uint32_t i = 0; i < count; i++) out[i].columns = out[i].cost = 0;
    return count;
}

uir_status uir_contraction_plan_choose_chain(uir_contraction_plan *first, uir_contraction_plan *second) {
    uir_contraction_side *m = &first->sides[UIR_CONTRACTION_M], *k = &first->sides[UIR_CONTRACTION_K];
    uir_contraction_side *n = &first->sides[UIR_CONTRACTION_N], *out = &second->sides[UIR_CONTRACTION_N];
    const uir_parameters *given = given_to(first);
    uir_parameters chosen = {0};
    int64_t depth = 1, width = 1, keys = 1, most = 1;
    uint32_t count = 0;
    k->tile = k->extent;
    key_tile(first, n);
    column_tile(second, out);
    if (out->split || !uir_contraction_plan_is_const(first, k->extent, &depth) ||
        !uir_contraction_plan_is_const(first, out->tile, &width) ||
        !uir_contraction_plan_is_const(first, n->tile, &keys))
        return uir_contraction_refuse(&first->c, "the head size is unknown or too large");
    if (given->depth) return misfit(first, "no operand is copied along the depth");
    uir_parameter_tile tiles[UIR_PARAMETERS_MAX_TILES];
    uint32_t tile_count = list_row_tiles(given, tiles);
    for (uint32_t i = 0; i < tile_count; i++) most = tiles[i].rows > most ? tiles[i].rows : most;
    UIR_TRY(add_tile(first, m, most, 1, &count));
    m->guarded = true;
    uir_contraction_room room = uir_contraction_plan_room(first);
    int64_t limit = given->tile_count || given->every
                        ? room.most
                        : contraction_room_for(room, chain_bytes(first, second, 1, keys, depth, width));
    most = 1;
    for (uint32_t i = 0; i < tile_count; i++) {
        int64_t rows = tiles[i].rows, bytes = chain_bytes(first, second, rows, keys, depth, width);
        UIR_TRY(check_tile(first, &tiles[i], true));
        if (bytes > limit && given->tile_count)
            return misfit(first, "a tile of %lld rows needs %lld bytes on the chip; %lld are available",
                          (long long)rows, (long long)bytes, (long long)limit);
        if (bytes > limit) continue;
        /* What a unit does for its rows, and for the keys and values that it fetches. */
        uir_icandidate row = {.units = units_of(first, &tiles[i]),
                              .cost = uir_contraction_plan_number(first, rows + 16)};
        UIR_TRY(add_candidate(first, &tiles[i], count, row, &chosen));
        most = rows > most ? rows : most;
    }
    if (!chosen.tile_count) return uir_contraction_refuse(&first->c, "no tile fits the device's memory");
    narrow_tile(first, m, most);
    if (first->choice) first->choice->chosen = chosen;
    second->sides[UIR_CONTRACTION_M].tile = m->tile;
    second->sides[UIR_CONTRACTION_M].split = m->split;
    second->sides[UIR_CONTRACTION_M].guarded = m->guarded;
    second->sides[UIR_CONTRACTION_K].tile = n->tile;
    second->sides[UIR_CONTRACTION_K].split = n->split;
    second->sides[UIR_CONTRACTION_K].guarded = n->guarded;
    return UIR_STATUS_OK;
}
