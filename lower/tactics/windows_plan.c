/* The plan of convolutions: whether a function is one and of which form, its tiles, and what it requires. */
#include "lower/tactics/windows_plan.h"

#include <string.h>

#define STATEMENT(f, id)  (&(f)->statements.data[id])
#define EXPRESSION(f, id) (&(f)->expressions.data[id])
#define NONE              UIR_LOOP_NONE

enum {
    PANELS = 2,         /* columns of a tile, in panels */
    CHANNELS = 256,     /* of a tile, where they are apart */
    MOST_ACROSS = 1024, /* where pixels lie together */
    MOST_PIXELS = 64,   /* of a line in a tile */
    MOST_ROWS = 256,    /* pixels of a tile */
    SHORT = 16,         /* pixels of a line of which rows are made */
    UNIT_CYCLES = 4096, /* that beginning a unit costs, where the description does not say */
    MADE_ROWS = 128,    /* that are made on the chip for a tile */
    MADE_COPIES = 3,    /* of these, while they are made */
};

/* ---- is it one ---- */
/* The axis along the last of the sums' first dims of which there is a class; NONE. `out_dim`: that dim. */
static uint32_t find_inner(const uir_contraction *c, uint32_t class, uint32_t dims, uint32_t *out_dim) {
    for (uint32_t d = dims; d-- > 0;) {
        uint32_t axis = c->tensor_axes[d];
        if (axis >= c->axis_count || c->axes[axis].class != class) continue;
        *out_dim = d;
        return axis;
    }
    return NONE;
}

static uir_windows_span span_of(const uir_contraction *c, uint32_t axis) {
    return (uir_windows_span){.axis = axis,
                              .extent = axis == NONE ? uir_dim_const(c->f->dims, 1) : c->axes[axis].extent,
                              .tile = axis == NONE ? uir_dim_const(c->f->dims, 1) : c->axes[axis].extent,
                              .outer = NONE,
                              .inner = NONE};
}

/* Are columns neighbours in memory? */
static bool columns_lie_together(const uir_windows *w, const uir_loop_access *access) {
    const uir_loop_function *f = w->p.f;
    const uir_loop_tensor *t = &f->tensors.data[access->tensor];
    uir_symbol column = STATEMENT(f, w->p.c.update)->iters[w->columns.axis].symbol;
    uint32_t last = t->rank - 1;
    return t->rank && uir_dim_mentions(f->dims, access->indices[last], column);
}

/* Does mma read the factor where it lies: an operand of the kernel? */
static bool is_direct(const uir_windows *w, uint32_t which) {
    const uir_loop_expression *e = EXPRESSION(w->p.f, w->p.raw[which]);
    if (e->kind != UIR_LOOP_LOAD || w->p.f->tensors.data[e->load.tensor].role != UIR_LOOP_ROLE_IN) return false;
    if (!which) return !e->has_fill || e->fill == 0;
    return !e->has_fill && (uir_contraction_is_constant(&w->p.c, e->load.tensor) || columns_lie_together(w, &e->load));
}

/* Do the windows overlap, or go outside? Else it is a product like any. */
static bool has_windows(const uir_windows *w) {
    const uir_loop_function *f = w->p.f;
    const uir_loop_expression *e = EXPRESSION(f, w->p.raw[0]);
    const uir_loop_statement *update = STATEMENT(f, w->p.c.update);
    if (e->has_fill) return true;
    for (uint32_t d = 0; d < f->tensors.data[e->load.tensor].rank; d++) {
        uir_symbol symbol;
        bool moves = false;
        for (uint32_t i = 0; i < update->iter_count; i++)
            moves = moves || uir_dim_mentions(f->dims, e->load.indices[d], update->iters[i].symbol);
        if (moves && !uir_dim_is_symbol(f->dims, e->load.indices[d], &symbol)) return true;
    }
    return false;
}

bool uir_windows_known(const uir_windows *w, uir_dim dim, int64_t *out) {
    return uir_dim_is_const(w->p.f->dims, dim, out);
}

static uir_dim number(const uir_windows *w, int64_t value) {
    return uir_dim_const(w->p.f->dims, value);
}

/* Is an axis of what is summed over a place in the window? */
static bool is_tap(const uir_windows *w, uint32_t axis) {
    const uir_loop_function *f = w->p.f;
    const uir_loop_statement *update = STATEMENT(f, w->p.c.update);
    const uir_loop_access *image = &EXPRESSION(f, w->p.raw[0])->load;
    for (uint32_t d = 0; d < f->tensors.data[image->tensor].rank; d++) {
        uir_symbol symbol;
        if (uir_dim_mentions(f->dims, image->indices[d], update->iters[axis].symbol))
            return !uir_dim_is_symbol(f->dims, image->indices[d], &symbol);
    }
    return true;
}

/* An index where all iteration variables are 0, but `axis`, if it is one, which is 1. */
static uir_dim index_at(const uir_windows *w, uir_dim index, uint32_t axis) {
    const uir_loop_statement *update = STATEMENT(w->p.f, w->p.c.update);
    uir_dim_replacement at[UIR_LOOP_MAX_ITERS];
    for (uint32_t i = 0; i < update->iter_count; i++)
        at[i] = (uir_dim_replacement){update->iters[i].symbol, number(w, i == axis)};
    return uir_dim_replace(w->p.f->dims, index, at, update->iter_count);
}

static uir_dim step_along(const uir_windows *w, uir_dim index, uint32_t axis) {
    return uir_dim_sub(w->p.f->dims, index_at(w, index, axis), index_at(w, index, NONE));
}

/* What a factor reads, and one operand after the other makes into it; NULL. */
const uir_loop_expression *uir_windows_read_by(const uir_windows *w, uint32_t which) {
    const uir_loop_function *f = w->p.f;
    const uir_loop_expression *e = EXPRESSION(f, w->p.c.factors[which]);
    while (e->kind == UIR_LOOP_CALL && e->argument_count == 1) e = EXPRESSION(f, e->arguments[0]);
    return e->kind == UIR_LOOP_LOAD ? e : NULL;
}

/* Where the image is read; NULL. */
const uir_loop_expression *uir_windows_image_of(const uir_windows *w) {
    return uir_windows_read_by(w, 0);
}

/* Is every place in the image a sum of multiples of iteration variables? */
static bool is_linear(const uir_windows *w) {
    uir_dims *dims = w->p.f->dims;
    const uir_loop_statement *update = STATEMENT(w->p.f, w->p.c.update);
    const uir_loop_expression *e = uir_windows_image_of(w);
    for (uint32_t d = 0; e && d < w->p.f->tensors.data[e->load.tensor].rank; d++) {
        uir_dim index = e->load.indices[d], sum = index_at(w, index, NONE);
        for (uint32_t i = 0; i < update->iter_count; i++)
            sum = uir_dim_add(
                dims, sum, uir_dim_mul(dims, step_along(w, index, i), uir_dim_symbol(dims, update->iters[i].symbol)));
        if (!sum.id || !uir_dim_equal(sum, index)) return false;
    }
    return e != NULL;
}

/* Is it not known that neighbouring pixels lie in different places of a cache? */
static bool pixels_meet(const uir_windows *w) {
    const uir_loop_access *image = &uir_windows_image_of(w)->load;
    const uir_loop_tensor *t = &w->p.f->tensors.data[image->tensor];
    int64_t same_place = 2 * (int64_t)w->p.machine->conflict_bytes, distance = 0, inner = uir_dtype_bits(t->dtype) / 8;
    for (uint32_t d = t->rank; same_place && d-- > 0;) {
        int64_t step, extent;
        if (!uir_windows_known(w, step_along(w, image->indices[d], w->pixels.axis), &step)) return true;
        distance = (distance + step % same_place * inner) % same_place;
        if (distance && step) return false;
        if (!uir_windows_known(w, t->extents[d], &extent)) return true;
        inner = inner * (extent % same_place) % same_place;
    }
    return same_place != 0;
}

/* Few taps, each of a channel by itself, or of few channels. */
static bool has_few_taps(const uir_windows *w) {
    const uir_contraction *c = &w->p.c;
    int64_t taps = 1, extent, most = w->across ? MOST_ACROSS : UIR_WINDOWS_MOST_TAPS;
    for (uint32_t a = 0; a < c->axis_count; a++) {
        if (c->axes[a].class == UIR_CONTRACTION_N && !w->across) return false;
        if (c->axes[a].class != UIR_CONTRACTION_K) continue;
        if (!(is_tap(w, a) || w->across) || !uir_windows_known(w, c->axes[a].extent, &extent) || extent > most)
            return false;
        taps *= extent;
    }
    return taps <= most;
}

/* Does an expression read windows: several iteration variables along one dim? */
static bool reads_windows(const uir_windows *w, uint32_t id) {
    const uir_loop_function *f = w->p.f;
    const uir_loop_expression *e = EXPRESSION(f, id);
    const uir_loop_statement *update = STATEMENT(f, w->p.c.update);
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++)
        if (reads_windows(w, e->arguments[i])) return true;
    for (uint32_t d = 0; e->kind == UIR_LOOP_LOAD && d < f->tensors.data[e->load.tensor].rank; d++) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < update->iter_count; i++)
            count += uir_dim_mentions(f->dims, e->load.indices[d], update->iters[i].symbol);
        if (count > 1) return true;
    }
    return false;
}

static int64_t columns_of_tile(const uir_windows *w, int64_t columns) {
    int64_t most = PANELS * (int64_t)w->p.machine->mma_n;
    return columns > most ? most : columns;
}

/* Rows that are made for a tile, of so many elements each; 0: there is no room for any. */
static int64_t most_made_rows(const uir_windows *w, int64_t depth, int64_t columns) {
    int64_t each = 4 * (MADE_COPIES * (depth + UIR_CONTRACTION_PAD) + columns_of_tile(w, columns));
    int64_t rows = uir_contraction_plan_room(&w->p).near / each;
    return rows > MADE_ROWS ? MADE_ROWS : rows;
}

/* Lines of windows of which sums and differences are multiplied: together they are more rows than one is. */
static bool is_made(const uir_windows *w) {
    const uir_contraction *c = &w->p.c;
    int64_t depth = 0, columns, pixels = SHORT;
    for (uint32_t a = 0; a < c->axis_count; a++) {
        if (c->axes[a].class != UIR_CONTRACTION_K) continue;
        if (depth || !uir_windows_known(w, c->axes[a].extent, &depth)) return false;
    }
    (void)uir_windows_known(w, w->pixels.extent, &pixels);
    return depth && w->lines.axis != NONE && uir_windows_known(w, w->columns.extent, &columns) &&
           w->p.raw[0] == c->factors[0] && reads_windows(w, c->factors[0]) &&
           EXPRESSION(w->p.f, c->factors[0])->kind == UIR_LOOP_CALL && is_direct(w, 1) && pixels <= SHORT &&
           pixels > 0 && most_made_rows(w, depth, columns) >= pixels;
}

/* Pixels lie together in the result: they are the columns, and the rows of a run are channels, or lines. */
static bool goes_across(uir_windows *w) {
    const uir_contraction *c = &w->p.c;
    uint32_t rank = w->p.f->tensors.data[c->tensor].rank, dim = 0, other;
    w->apart = w->across = true;
    w->columns = span_of(c, find_inner(c, UIR_CONTRACTION_M, rank, &dim));
    if (w->columns.axis == NONE || dim + 1 != rank) return false;
    w->lines = span_of(c, find_inner(c, UIR_CONTRACTION_M, dim, &other));
    w->pixels = span_of(c, find_inner(c, UIR_CONTRACTION_N, dim, &other));
    if (w->pixels.axis == NONE) {
        w->pixels = w->lines;
        w->lines = span_of(c, NONE);
    } else if (w->lines.axis == NONE) { /* a unit has some channels of a line */
        w->lines = w->pixels;
        w->pixels = span_of(c, NONE);
    }
    return (w->pixels.axis != NONE || w->lines.axis != NONE) && is_linear(w) && has_few_taps(w);
}

/* Columns lie together in the result, and pixels before them. */
bool uir_windows_recognise(uir_windows *w) {
    const uir_contraction *c = &w->p.c;
    uint32_t rank = w->p.f->tensors.data[c->tensor].rank, dim = 0;
    w->made = !uir_loop_is_used_as(w->p.f, c->update, UIR_LOOP_USE_CONVOLUTION);
    w->columns = span_of(c, find_inner(c, UIR_CONTRACTION_N, rank, &dim));
    if (w->made && w->columns.axis == NONE) return false;
    if (w->columns.axis == NONE) {
        w->apart = true;
        w->columns = span_of(c, find_inner(c, UIR_CONTRACTION_BATCH, rank, &dim));
    }
    if (w->columns.axis == NONE || dim + 1 != rank) return !w->made && goes_across(w);
    w->pixels = span_of(c, find_inner(c, UIR_CONTRACTION_M, dim, &dim));
    if (w->pixels.axis == NONE) return false;
    w->lines = span_of(c, find_inner(c, UIR_CONTRACTION_M, dim, &dim));
    if (w->made) return uir_contraction_plan_choose_dtypes(&w->p) == UIR_STATUS_OK && is_made(w);
    if (!is_linear(w)) return false;
    if (w->apart) return has_few_taps(w);
    return uir_contraction_plan_choose_dtypes(&w->p) == UIR_STATUS_OK && is_direct(w, 0) && is_direct(w, 1) &&
           has_windows(w);
}

/* ---- tiles ---- */
/* Parts of about one size, none over `most`, each a multiple of `step`. */
static int64_t even_part(int64_t extent, int64_t most, int64_t step) {
    int64_t parts = (extent + most - 1) / most, part = (extent + parts - 1) / (parts ? parts : 1);
    part = (part + step - 1) / step * step;
    return part < 1 ? 1 : part;
}

/* The most of a known number of channels that divide it, in whole vectors; else even parts. */
static int64_t channel_part(const uir_windows *w, int64_t channels, int64_t most, int64_t panel) {
    int64_t lanes = uir_machine_lanes(w->p.machine);
    for (int64_t part = w->apart ? most : 0; part >= most / 4 && part >= lanes; part--)
        if (channels % part == 0 && part % lanes == 0) return part;
    return even_part(channels, most, panel);
}

static uir_status add_tile(uir_windows *w, uir_windows_span *s, const char *name, int64_t most) {
    uir_loop_function *f = w->p.f;
    uir_loop_size tile;
    uir_symbol_facts facts = {1, most, 1, {0}};
    UIR_TRY(uir_contraction_plan_fresh_name(f, name, &tile.name));
    UIR_TRY(uir_dims_add_symbol(f->dims, tile.name, strlen(tile.name), facts, &tile.symbol));
    UIR_TRY(uir_vector_push(&f->arena, &f->tiles, tile));
    s->tile = uir_dim_symbol(f->dims, tile.symbol);
    s->split = true;
    return s->tile.id ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
}

/* Rows of a product are taken by blocks: by each line's, or by those of all lines together. */
static int64_t blocks_of(const uir_windows *w, int64_t lines, int64_t pixels) {
    int64_t block = w->p.machine->mma_m ? w->p.machine->mma_m : 1;
    if (w->joined) return (lines * pixels + block - 1) / block;
    return lines * ((pixels + block - 1) / block);
}

/* Is some of what is read for a line outside, as far as is known? */
static bool lines_go_outside(const uir_windows *w) {
    uir_loop_function *f = w->p.f;
    const uir_loop_statement *update = STATEMENT(f, w->p.c.update);
    const uir_loop_access *image = &uir_windows_image_of(w)->load;
    for (uint32_t d = 0; w->lines.axis != NONE && d < f->tensors.data[image->tensor].rank; d++) {
        uir_dim index = image->indices[d], last = index_at(w, index, NONE), zero = number(w, 0);
        if (!uir_dim_mentions(f->dims, index, update->iters[w->lines.axis].symbol)) continue;
        if (uir_dim_compare(f->dims, last, UIR_RELATION_LT, zero) == UIR_TRUE) return true;
        for (uint32_t i = 0; i < update->iter_count; i++)
            last = uir_dim_add(f->dims, last,
                               uir_dim_mul(f->dims, step_along(w, index, i),
                                           uir_dim_sub(f->dims, update->iters[i].extent, number(w, 1))));
        return uir_dim_compare(f->dims, last, UIR_RELATION_LT, f->tensors.data[image->tensor].extents[d]) != UIR_TRUE;
    }
    return false;
}

/* Are lines so short that blocks of rows are fuller across them? Many rows had better not meet in a cache; of lines by
 * themselves what is outside is left out. */
static bool join_pays(uir_windows *w, int64_t lines, int64_t pixels) {
    int64_t apart = blocks_of(w, lines, pixels);
    if (pixels_meet(w) || lines_go_outside(w)) return false;
    w->joined = true;
    int64_t together = blocks_of(w, lines, pixels);
    w->joined = false;
    return together * 8 <= apart * 7;
}

/* How many products an element is the sum of, about. */
static int64_t depth_of(const uir_windows *w) {
    int64_t depth = 1, extent;
    for (uint32_t a = 0; a < w->p.c.axis_count; a++)
        if (w->p.c.axes[a].class == UIR_CONTRACTION_K)
            depth *= uir_windows_known(w, w->p.c.axes[a].extent, &extent) ? extent : 8;
    return depth;
}

/* Cycles of a unit: multiply-adds of whole blocks of rows, or the weights' way from where they are. */
static int64_t unit_cost(const uir_windows *w, int64_t lines, int64_t pixels) {
    const uir_machine *d = w->p.machine;
    int64_t depth = depth_of(w), columns = 32, lanes = uir_machine_lanes(d);
    int64_t each = uir_machine_multiply_adds(d);
    (void)uir_windows_known(w, w->columns.tile, &columns);
    int64_t vectors = (columns + lanes - 1) / lanes, blocks = blocks_of(w, lines, pixels);
    int64_t adds = lines * pixels * vectors * depth / each + blocks * (depth + 64);
    int64_t stream = depth * columns * 4 / 8;
    return (adds > stream ? adds : stream) + (d->unit_cycles ? d->unit_cycles : UNIT_CYCLES);
}

static uir_status add_candidate(uir_windows *w, int64_t lines, int64_t pixels) {
    uir_loop_function *f = w->p.f;
    uir_dims *dims = f->dims;
    uir_icandidate row = {.cost = number(w, unit_cost(w, lines, pixels)), .units = number(w, 1)};
    uint32_t count = 0;
    for (uint32_t a = 0; a < w->p.c.axis_count; a++)
        if (w->p.c.axes[a].class != UIR_CONTRACTION_K && a != w->lines.axis && a != w->pixels.axis &&
            a != w->columns.axis)
            row.units = uir_dim_mul(dims, row.units, w->p.c.axes[a].extent);
    const struct {
        const uir_windows_span *s;
        int64_t tile;
    } parts[] = {{&w->lines, lines}, {&w->pixels, pixels}, {&w->columns, 0}};
    UIR_TRY_ALLOCATE(row.tiles, uir_arena_allocate_array(&f->arena, 2, sizeof *row.tiles));
    for (uint32_t i = 0; i < 3; i++) {
        if (!parts[i].s->split) continue;
        bool chosen = parts[i].tile && !uir_windows_known(w, parts[i].s->tile, NULL);
        uir_dim tile = chosen ? number(w, parts[i].tile) : parts[i].s->tile;
        if (chosen) row.tiles[count++] = tile;
        row.units = uir_dim_mul(dims, row.units, uir_dim_ceildiv(dims, parts[i].s->extent, tile));
    }
    if (!row.units.id || !row.cost.id) return UIR_STATUS_OUT_OF_MEMORY;
    return uir_vector_push(&f->arena, &f->candidates, row);
}

/* Lines and pixels of a tile: known ones in even parts, else by a table for each width of a line. */
uir_status uir_windows_choose_tiles(uir_windows *w) {
    static const int64_t widths[] = {MOST_PIXELS, 28, 14, 7};
    int64_t width = 1, height = 1, columns, most_lines = 1, panel = w->p.machine->mma_n;
    bool wide = uir_windows_known(w, w->pixels.extent, &width), high = uir_windows_known(w, w->lines.extent, &height);
    int64_t most_columns = w->apart ? CHANNELS : PANELS * panel;
    bool fixed = uir_windows_known(w, w->columns.extent, &columns);
    if (!fixed || columns > most_columns) {
        w->columns.tile = number(w, fixed ? channel_part(w, columns, most_columns, panel) : most_columns);
        w->columns.split = true;
    }
    /* Rows of a run that are lines are all that is shared out. */
    bool shares = w->across && w->lines.axis == NONE;
    if (wide && (width > MOST_PIXELS || shares)) {
        w->pixels.tile = number(w, width = even_part(width, shares ? SHORT : MOST_PIXELS, 1));
        w->pixels.split = true;
    }
    if (!wide && w->lines.axis == NONE) {
        w->pixels.tile = number(w, MOST_PIXELS);
        w->pixels.split = true;
        return UIR_STATUS_OK;
    }
    if (w->lines.axis == NONE) return UIR_STATUS_OK;
    most_lines = MOST_ROWS / (wide ? (width ? width : 1) : widths[3]);
    if (high && most_lines > height) most_lines = height ? height : 1;
    w->joined = wide && !w->apart && !w->pixels.split && join_pays(w, most_lines, width);
    UIR_TRY(add_tile(w, &w->lines, "th", most_lines));
    if (!wide) UIR_TRY(add_tile(w, &w->pixels, "tw", MOST_PIXELS));
    for (size_t i = 0; i < (wide ? 1 : sizeof widths / sizeof *widths); i++) {
        int64_t pixels = wide ? width : widths[i], most = MOST_ROWS / (pixels ? pixels : 1), before = 0;
        if (most > most_lines) most = most_lines;
        for (int64_t parts = 1; parts <= 64; parts *= 2) {
            int64_t lines = even_part(high ? height : most, (most + parts - 1) / parts, 1);
            if (lines == before) continue;
            UIR_TRY(add_candidate(w, lines, pixels));
            before = lines;
            if (lines == 1) break;
        }
    }
    return UIR_STATUS_OK;
}

/* Whole lines, as many as there is room for; what a unit costs depends on how long they are. */
uir_status uir_windows_choose_made_tiles(uir_windows *w) {
    uir_loop_function *f = w->p.f;
    const uir_machine *d = w->p.machine;
    uir_dims *dims = f->dims;
    int64_t depth = 1, columns = 1, width, height, most, lanes = uir_machine_lanes(d);
    int64_t each = uir_machine_multiply_adds(d), block = d->mma_m ? d->mma_m : 1;
    for (uint32_t a = 0; a < w->p.c.axis_count; a++)
        if (w->p.c.axes[a].class == UIR_CONTRACTION_K) (void)uir_windows_known(w, w->p.c.axes[a].extent, &depth);
    (void)uir_windows_known(w, w->columns.extent, &columns);
    w->columns.split = columns > columns_of_tile(w, columns);
    if (w->columns.split) w->columns.tile = number(w, even_part(columns, columns_of_tile(w, columns), d->mma_n));
    most = most_made_rows(w, depth, columns) / (uir_windows_known(w, w->pixels.extent, &width) ? width : SHORT);
    if (uir_windows_known(w, w->lines.extent, &height) && most > height) most = height ? height : 1;
    UIR_TRY(add_tile(w, &w->lines, "th", most));
    for (int64_t lines = most, parts = 1; lines > 0; lines = lines > 1 ? (most + parts - 1) / parts : 0) {
        uir_dim rows = uir_dim_mul(dims, w->pixels.extent, number(w, lines));
        uir_dim blocks = uir_dim_ceildiv(dims, rows, number(w, block));
        uir_dim adds = uir_dim_add(
            dims, uir_dim_mul(dims, rows, number(w, (columns + lanes - 1) / lanes * depth / each)),
            uir_dim_mul(dims, blocks, number(w, (columns + d->mma_n - 1) / d->mma_n * (depth / block + 64))));
        uir_icandidate row = {.units = uir_dim_ceildiv(dims, w->lines.extent, number(w, lines)),
                              .cost = uir_dim_max(dims, adds, number(w, depth * columns * 4 / 8))};
        row.cost = uir_dim_add(dims, row.cost, number(w, d->unit_cycles ? d->unit_cycles : UNIT_CYCLES));
        for (uint32_t a = 0; a < w->p.c.axis_count; a++)
            if (w->p.c.axes[a].class != UIR_CONTRACTION_K && a != w->lines.axis && a != w->pixels.axis &&
                a != w->columns.axis)
                row.units = uir_dim_mul(dims, row.units, w->p.c.axes[a].extent);
        UIR_TRY_ALLOCATE(row.tiles, uir_arena_allocate_array(&f->arena, 1, sizeof *row.tiles));
        row.tiles[0] = number(w, lines);
        if (!row.units.id || !row.cost.id) return UIR_STATUS_OUT_OF_MEMORY;
        UIR_TRY(uir_vector_push(&f->arena, &f->candidates, row));
        while (lines > 1 && (most + parts - 1) / parts >= lines) parts++;
    }
    return UIR_STATUS_OK;
}

/* Rows that are made are those of short lines: where only the run tells, it chooses. */
uir_status uir_windows_require_short(uir_windows *w, bool *out_unknown) {
    uir_condition is_short = {UIR_RELATION_LE, w->pixels.extent, number(w, SHORT)};
    *out_unknown =
        w->made && uir_dim_compare(w->p.f->dims, is_short.left, is_short.relation, is_short.right) == UIR_UNKNOWN;
    return *out_unknown ? uir_vector_push(&w->p.f->arena, &w->p.f->requires_, is_short) : UIR_STATUS_OK;
}
