/* The tactic of convolutions, by schedule primitives. */
#include "lower/tactics/windows.h"

#include "lower/tactics/products/contraction_steps.h"
#include "lower/internal.h"

#include <stdio.h>
#include <string.h>

#define STATEMENT(f, id)  (&(f)->statements.data[id])
#define EXPRESSION(f, id) (&(f)->expressions.data[id])
#define NONE              UIR_LOOP_NONE

enum {
    MAX_LOOPS = UIR_CONTRACTION_MAX_LOOPS,
    MAX_PARALLEL = 4,
    PANELS = 2,         /* columns of a tile, in panels */
    CHANNELS = 256,     /* of a tile, where they are apart */
    MOST_TAPS = 64,     /* that are unrolled */
    MOST_ACROSS = 1024, /* where pixels lie together */
    MOST_PIXELS = 64,   /* of a line in a tile */
    MOST_ROWS = 256,    /* pixels of a tile */
    SHORT = 16,         /* pixels of a line of which rows are made */
    UNIT_CYCLES = 4096, /* that beginning a unit costs, where the description does not say */
    MADE_ROWS = 128,    /* that are made on the chip for a tile */
    MADE_COPIES = 3,    /* of these, while they are made */
};

/* An axis of the result that is tiled. */
typedef struct span {
    uint32_t axis; /* of the contraction; NONE: there is none */
    uir_dim extent, tile;
    bool split;
    uint32_t outer, inner; /* loops; NONE: there is none */
} span;

typedef struct windows {
    uir_contraction_plan p;
    uir_contraction_steps t;
    span lines, pixels, columns;
    bool joined; /* lines are short: those of a tile are rows of one product */
    bool apart;  /* tap after tap, by vectors: every channel has its own channel of the image, and columns are channels;
                    or */
    bool across; /* pixels lie together in the result, and columns are these: few channels */
    bool made; /* no convolution: rows are made on the chip, of windows, and columns are multiplied with them in turn */
    uint32_t made_at; /* the loop that they are made in */
} windows;

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

static span span_of(const uir_contraction *c, uint32_t axis) {
    return (span){.axis = axis,
                  .extent = axis == NONE ? uir_dim_const(c->f->dims, 1) : c->axes[axis].extent,
                  .tile = axis == NONE ? uir_dim_const(c->f->dims, 1) : c->axes[axis].extent,
                  .outer = NONE,
                  .inner = NONE};
}

/* Are columns neighbours in memory? */
static bool columns_lie_together(const windows *w, const uir_loop_access *access) {
    const uir_loop_function *f = w->p.f;
    const uir_loop_tensor *t = &f->tensors.data[access->tensor];
    uir_symbol column = STATEMENT(f, w->p.c.update)->iters[w->columns.axis].symbol;
    uint32_t last = t->rank - 1;
    return t->rank && uir_dim_mentions(f->dims, access->indices[last], column);
}

/* Does mma read the factor where it lies: an operand of the kernel? */
static bool is_direct(const windows *w, uint32_t which) {
    const uir_loop_expression *e = EXPRESSION(w->p.f, w->p.raw[which]);
    if (e->kind != UIR_LOOP_LOAD || w->p.f->tensors.data[e->load.tensor].role != UIR_LOOP_ROLE_IN) return false;
    if (!which) return !e->has_fill || e->fill == 0;
    return !e->has_fill && (uir_contraction_is_constant(&w->p.c, e->load.tensor) || columns_lie_together(w, &e->load));
}

/* Do the windows overlap, or go outside? Else it is a product like any. */
static bool has_windows(const windows *w) {
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

static bool known(const windows *w, uir_dim dim, int64_t *out) {
    return uir_dim_is_const(w->p.f->dims, dim, out);
}

static uir_dim number(const windows *w, int64_t value) {
    return uir_dim_const(w->p.f->dims, value);
}

/* Is an axis of what is summed over a place in the window? */
static bool is_tap(const windows *w, uint32_t axis) {
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
static uir_dim index_at(const windows *w, uir_dim index, uint32_t axis) {
    const uir_loop_statement *update = STATEMENT(w->p.f, w->p.c.update);
    uir_dim_replacement at[UIR_LOOP_MAX_ITERS];
    for (uint32_t i = 0; i < update->iter_count; i++)
        at[i] = (uir_dim_replacement){update->iters[i].symbol, number(w, i == axis)};
    return uir_dim_replace(w->p.f->dims, index, at, update->iter_count);
}

static uir_dim step_along(const windows *w, uir_dim index, uint32_t axis) {
    return uir_dim_sub(w->p.f->dims, index_at(w, index, axis), index_at(w, index, NONE));
}

/* What a factor reads, and one operand after the other makes into it; NULL. */
static const uir_loop_expression *read_by(const windows *w, uint32_t which) {
    const uir_loop_function *f = w->p.f;
    const uir_loop_expression *e = EXPRESSION(f, w->p.c.factors[which]);
    while (e->kind == UIR_LOOP_CALL && e->argument_count == 1) e = EXPRESSION(f, e->arguments[0]);
    return e->kind == UIR_LOOP_LOAD ? e : NULL;
}

/* Where the image is read; NULL. */
static const uir_loop_expression *image_of(const windows *w) {
    return read_by(w, 0);
}

/* Is every place in the image a sum of multiples of iteration variables? */
static bool is_linear(const windows *w) {
    uir_dims *dims = w->p.f->dims;
    const uir_loop_statement *update = STATEMENT(w->p.f, w->p.c.update);
    const uir_loop_expression *e = image_of(w);
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
static bool pixels_meet(const windows *w) {
    const uir_loop_access *image = &image_of(w)->load;
    const uir_loop_tensor *t = &w->p.f->tensors.data[image->tensor];
    int64_t same_place = 2 * (int64_t)w->p.device->conflict_bytes, distance = 0, inner = uir_dtype_bits(t->dtype) / 8;
    for (uint32_t d = t->rank; same_place && d-- > 0;) {
        int64_t step, extent;
        if (!known(w, step_along(w, image->indices[d], w->pixels.axis), &step)) return true;
        distance = (distance + step % same_place * inner) % same_place;
        if (distance && step) return false;
        if (!known(w, t->extents[d], &extent)) return true;
        inner = inner * (extent % same_place) % same_place;
    }
    return same_place != 0;
}

/* Few taps, each of a channel by itself, or of few channels. */
static bool has_few_taps(const windows *w) {
    const uir_contraction *c = &w->p.c;
    int64_t taps = 1, extent, most = w->across ? MOST_ACROSS : MOST_TAPS;
    for (uint32_t a = 0; a < c->axis_count; a++) {
        if (c->axes[a].class == UIR_CONTRACTION_N && !w->across) return false;
        if (c->axes[a].class != UIR_CONTRACTION_K) continue;
        if (!(is_tap(w, a) || w->across) || !known(w, c->axes[a].extent, &extent) || extent > most) return false;
        taps *= extent;
    }
    return taps <= most;
}

/* Does an expression read windows: several iteration variables along one dim? */
static bool reads_windows(const windows *w, uint32_t id) {
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

static int64_t columns_of_tile(const windows *w, int64_t columns) {
    int64_t most = PANELS * (int64_t)w->p.device->mma_n;
    return columns > most ? most : columns;
}

/* Rows that are made for a tile, of so many elements each; 0: there is no room for any. */
static int64_t most_made_rows(const windows *w, int64_t depth, int64_t columns) {
    int64_t each = 4 * (MADE_COPIES * (depth + UIR_CONTRACTION_PAD) + columns_of_tile(w, columns));
    int64_t rows = uir_contraction_plan_room(&w->p).near / each;
    return rows > MADE_ROWS ? MADE_ROWS : rows;
}

/* Lines of windows of which sums and differences are multiplied: together they are more rows than one is. */
static bool is_made(const windows *w) {
    const uir_contraction *c = &w->p.c;
    int64_t depth = 0, columns, pixels = SHORT;
    for (uint32_t a = 0; a < c->axis_count; a++) {
        if (c->axes[a].class != UIR_CONTRACTION_K) continue;
        if (depth || !known(w, c->axes[a].extent, &depth)) return false;
    }
    (void)known(w, w->pixels.extent, &pixels);
    return depth && w->lines.axis != NONE && known(w, w->columns.extent, &columns) && w->p.raw[0] == c->factors[0] &&
           reads_windows(w, c->factors[0]) && EXPRESSION(w->p.f, c->factors[0])->kind == UIR_LOOP_CALL &&
           is_direct(w, 1) && pixels <= SHORT && pixels > 0 && most_made_rows(w, depth, columns) >= pixels;
}

/* Pixels lie together in the result: they are the columns, and the rows of a run are channels, or lines. */
static bool goes_across(windows *w) {
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
static bool recognise(windows *w) {
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
static int64_t channel_part(const windows *w, int64_t channels, int64_t most, int64_t panel) {
    int64_t lanes = uir_machine_lanes(w->p.device);
    for (int64_t part = w->apart ? most : 0; part >= most / 4 && part >= lanes; part--)
        if (channels % part == 0 && part % lanes == 0) return part;
    return even_part(channels, most, panel);
}

static uir_status add_tile(windows *w, span *s, const char *name, int64_t most) {
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
static int64_t blocks_of(const windows *w, int64_t lines, int64_t pixels) {
    int64_t block = w->p.device->mma_m ? w->p.device->mma_m : 1;
    if (w->joined) return (lines * pixels + block - 1) / block;
    return lines * ((pixels + block - 1) / block);
}

/* Is some of what is read for a line outside, as far as is known? */
static bool lines_go_outside(const windows *w) {
    uir_loop_function *f = w->p.f;
    const uir_loop_statement *update = STATEMENT(f, w->p.c.update);
    const uir_loop_access *image = &image_of(w)->load;
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
static bool join_pays(windows *w, int64_t lines, int64_t pixels) {
    int64_t apart = blocks_of(w, lines, pixels);
    if (pixels_meet(w) || lines_go_outside(w)) return false;
    w->joined = true;
    int64_t together = blocks_of(w, lines, pixels);
    w->joined = false;
    return together * 8 <= apart * 7;
}

/* How many products an element is the sum of, about. */
static int64_t depth_of(const windows *w) {
    int64_t depth = 1, extent;
    for (uint32_t a = 0; a < w->p.c.axis_count; a++)
        if (w->p.c.axes[a].class == UIR_CONTRACTION_K) depth *= known(w, w->p.c.axes[a].extent, &extent) ? extent : 8;
    return depth;
}

/* Cycles of a unit: multiply-adds of whole blocks of rows, or the weights' way from where they are. */
static int64_t unit_cost(const windows *w, int64_t lines, int64_t pixels) {
    const uir_machine *d = w->p.device;
    int64_t depth = depth_of(w), columns = 32, lanes = uir_machine_lanes(d);
    int64_t each = uir_machine_multiply_adds(d);
    (void)known(w, w->columns.tile, &columns);
    int64_t vectors = (columns + lanes - 1) / lanes, blocks = blocks_of(w, lines, pixels);
    int64_t adds = lines * pixels * vectors * depth / each + blocks * (depth + 64);
    int64_t stream = depth * columns * 4 / 8;
    return (adds > stream ? adds : stream) + (d->unit_cycles ? d->unit_cycles : UNIT_CYCLES);
}

static uir_status add_candidate(windows *w, int64_t lines, int64_t pixels) {
    uir_loop_function *f = w->p.f;
    uir_dims *dims = f->dims;
    uir_icandidate row = {.cost = number(w, unit_cost(w, lines, pixels)), .units = number(w, 1)};
    uint32_t count = 0;
    for (uint32_t a = 0; a < w->p.c.axis_count; a++)
        if (w->p.c.axes[a].class != UIR_CONTRACTION_K && a != w->lines.axis && a != w->pixels.axis &&
            a != w->columns.axis)
            row.units = uir_dim_mul(dims, row.units, w->p.c.axes[a].extent);
    const struct {
        const span *s;
        int64_t tile;
    } parts[] = {{&w->lines, lines}, {&w->pixels, pixels}, {&w->columns, 0}};
    UIR_TRY_ALLOCATE(row.tiles, uir_arena_allocate_array(&f->arena, 2, sizeof *row.tiles));
    for (uint32_t i = 0; i < 3; i++) {
        if (!parts[i].s->split) continue;
        bool chosen = parts[i].tile && !known(w, parts[i].s->tile, NULL);
        uir_dim tile = chosen ? number(w, parts[i].tile) : parts[i].s->tile;
        if (chosen) row.tiles[count++] = tile;
        row.units = uir_dim_mul(dims, row.units, uir_dim_ceildiv(dims, parts[i].s->extent, tile));
    }
    if (!row.units.id || !row.cost.id) return UIR_STATUS_OUT_OF_MEMORY;
    return uir_vector_push(&f->arena, &f->candidates, row);
}

/* Lines and pixels of a tile: known ones in even parts, else by a table for each width of a line. */
static uir_status choose_tiles(windows *w) {
    static const int64_t widths[] = {MOST_PIXELS, 28, 14, 7};
    int64_t width = 1, height = 1, columns, most_lines = 1, panel = w->p.device->mma_n;
    bool wide = known(w, w->pixels.extent, &width), high = known(w, w->lines.extent, &height);
    int64_t most_columns = w->apart ? CHANNELS : PANELS * panel;
    bool fixed = known(w, w->columns.extent, &columns);
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
static uir_status choose_made_tiles(windows *w) {
    uir_loop_function *f = w->p.f;
    const uir_machine *d = w->p.device;
    uir_dims *dims = f->dims;
    int64_t depth = 1, columns = 1, width, height, most, lanes = uir_machine_lanes(d);
    int64_t each = uir_machine_multiply_adds(d), block = d->mma_m ? d->mma_m : 1;
    for (uint32_t a = 0; a < w->p.c.axis_count; a++)
        if (w->p.c.axes[a].class == UIR_CONTRACTION_K) (void)known(w, w->p.c.axes[a].extent, &depth);
    (void)known(w, w->columns.extent, &columns);
    w->columns.split = columns > columns_of_tile(w, columns);
    if (w->columns.split) w->columns.tile = number(w, even_part(columns, columns_of_tile(w, columns), d->mma_n));
    most = most_made_rows(w, depth, columns) / (known(w, w->pixels.extent, &width) ? width : SHORT);
    if (known(w, w->lines.extent, &height) && most > height) most = height ? height : 1;
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

/* ---- steps ---- */
static uint32_t loop_along(const windows *w, uint32_t block, uint32_t under, const uint32_t *axes, uint32_t axis) {
    for (uint32_t i = 0; axis != NONE && i < STATEMENT(w->p.f, block)->iter_count; i++)
        if (axes[i] == axis) return uir_contraction_loop_below(&w->t, block, under, i);
    return NONE;
}

static uir_status split_span(windows *w, span *s) {
    const uir_contraction_block *anchor = &w->p.c.after[0];
    s->inner = loop_along(w, anchor->id, NONE, anchor->axes, s->axis);
    if (s->inner == NONE || !s->split) return UIR_STATUS_OK;
    return uir_schedule_split(w->t.s, s->inner, s->tile, &s->outer, &s->inner);
}

/* What is not tiled, then columns, lines and pixels by tiles; then the tile. */
static uir_status tile_anchor(windows *w) {
    uir_contraction_steps *t = &w->t;
    const uir_contraction *c = &w->p.c;
    const uir_contraction_block *anchor = &c->after[0];
    span *spans[] = {w->made ? &w->lines : &w->columns, w->made ? &w->pixels : &w->lines,
                     w->made ? &w->columns : &w->pixels};
    uint32_t all[MAX_LOOPS + 8], count = 0;
    uint32_t inner_loops[UIR_LOOP_MAX_ITERS], inner_count = 0;
    for (uint32_t a = 0; a < c->axis_count; a++) {
        if (c->axes[a].class == UIR_CONTRACTION_K || a == w->columns.axis || a == w->lines.axis || a == w->pixels.axis)
            continue;
        uint32_t loop = loop_along(w, anchor->id, NONE, anchor->axes, a);
        if (loop == NONE) continue;
        /* Where rows are made, batches are made of the same elements: they are near for all of them. */
        if (w->made && c->axes[a].class == UIR_CONTRACTION_BATCH)
            inner_loops[inner_count++] = loop;
        else
            t->outer[t->outer_count++] = loop;
    }
    for (uint32_t i = 0; i < 3; i++) {
        UIR_TRY(split_span(w, spans[i]));
        for (uint32_t k = 0; spans[i] == &w->columns && k < inner_count; k++)
            t->outer[t->outer_count++] = inner_loops[k];
        if (spans[i]->outer != NONE) t->outer[t->outer_count++] = spans[i]->outer;
    }
    if (!t->outer_count) {
        uint32_t loops[MAX_LOOPS];
        if (!uir_schedule_loops(t->s, anchor->id, loops, MAX_LOOPS))
            return uir_contraction_refuse(c, "no axis is tiled");
        UIR_TRY(uir_schedule_add_unit_loop(t->s, loops[0], &t->outer[t->outer_count++]));
    }
    for (uint32_t i = 0; i < t->outer_count; i++) all[count++] = t->outer[i];
    t->unit = t->inside = all[count - 1];
    span *inner[] = {&w->lines, &w->pixels, &w->columns};
    for (uint32_t i = 0; i < 3; i++)
        if (inner[i]->inner != NONE) all[count++] = inner[i]->inner;
    t->row = w->lines.inner == NONE ? t->unit : w->lines.inner;
    uint32_t shared = t->outer_count - (w->made && w->columns.outer != NONE);
    w->made_at = shared ? t->outer[shared - 1] : t->unit;
    t->parallel = shared < MAX_PARALLEL ? shared : MAX_PARALLEL;
    return uir_contraction_order(t, all, count);
}

/* mma over pixels, of all lines of a tile where they are joined, columns and all that is summed over. */
static uir_status place_sums(windows *w) {
    uir_contraction_steps *t = &w->t;
    const uir_contraction *c = &w->p.c;
    uint32_t loops[MAX_LOOPS], axes[UIR_LOOP_MAX_ITERS], order[UIR_LOOP_MAX_ITERS], count = 0, ordered = 0;
    for (uint32_t i = 0; i < UIR_LOOP_MAX_ITERS; i++) axes[i] = i;
    if (EXPRESSION(w->p.f, STATEMENT(w->p.f, c->sum)->values[0])->arguments[0] != c->factors[0])
        UIR_TRY(uir_schedule_exchange(t->s, c->update));
    t->inside = w->joined ? t->unit : t->row;
    UIR_TRY(uir_schedule_compute_at(t->s, c->update, t->inside));
    if (w->joined) order[ordered++] = w->lines.axis;
    order[ordered++] = w->pixels.axis;
    order[ordered++] = w->columns.axis;
    for (uint32_t a = 0; a < c->axis_count; a++)
        if (c->axes[a].class == UIR_CONTRACTION_K) order[ordered++] = a;
    for (uint32_t i = 0; i < ordered; i++) {
        uint32_t loop = loop_along(w, c->update, t->inside, axes, order[i]);
        if (loop != NONE) loops[count++] = loop;
    }
    return uir_contraction_order(t, loops, count);
}

/* All lines of a tile are rows of one product. */
static uir_status place_made(windows *w) {
    uir_contraction_steps *t = &w->t;
    const uir_contraction *c = &w->p.c;
    uint32_t loops[MAX_LOOPS], axes[UIR_LOOP_MAX_ITERS], iters[UIR_LOOP_MAX_ITERS], count = 0, made = 0;
    for (uint32_t i = 0; i < UIR_LOOP_MAX_ITERS; i++) axes[i] = i;
    if (EXPRESSION(w->p.f, STATEMENT(w->p.f, c->sum)->values[0])->arguments[0] != c->factors[0])
        UIR_TRY(uir_schedule_exchange(t->s, c->update));
    UIR_TRY(uir_schedule_compute_at(t->s, c->update, t->unit));
    uint32_t order[UIR_LOOP_MAX_ITERS] = {w->lines.axis, w->pixels.axis, w->columns.axis};
    uint32_t ordered = 3;
    for (uint32_t a = 0; a < c->axis_count; a++)
        if (c->axes[a].class == UIR_CONTRACTION_K) order[ordered++] = a;
    for (uint32_t i = 0; i < ordered; i++) {
        uint32_t loop = loop_along(w, c->update, t->unit, axes, order[i]);
        if (loop != NONE) loops[count++] = loop;
        if (order[i] != w->columns.axis) iters[made++] = order[i];
    }
    t->inside = t->unit;
    UIR_TRY(uir_contraction_order(t, loops, count));
    const uir_schedule_operand operand = {.name = "rows"};
    const char *space = uir_lower_space(w->p.device, UIR_SPACE_LEFT);
    if (!space) return uir_contraction_refuse(c, "the device has no on-chip space for a tile");
    t->places[0] = w->made_at;
    UIR_TRY(uir_schedule_cache_operand(t->s, c->update, &operand, iters, made, w->made_at, space, &w->p.copies[0],
                                       &t->copies[0]));
    UIR_TRY(uir_contraction_keep_alive(t, w->p.copies[0], space));
    if (uir_dim_equal(w->p.f->tensors.data[w->p.copies[0]].extents[0], w->lines.tile)) return UIR_STATUS_OK;
    return uir_schedule_pad(t->s, w->p.copies[0], 0, w->lines.tile);
}

/* A tensor on chip of these spans, as many elements as their tiles. */
static uir_status fit(windows *w, uint32_t tensor, const span *const *spans, const uint32_t *dims, uint32_t count) {
    uir_schedule *s = w->t.s;
    bool same = count == w->p.f->tensors.data[tensor].rank;
    for (uint32_t i = 0; i < count; i++) same = same && dims[i] == i;
    if (!same) UIR_TRY(uir_schedule_arrange(s, tensor, dims, count));
    for (uint32_t i = 0; i < count; i++)
        if (dims[i] != NONE && !uir_dim_equal(w->p.f->tensors.data[tensor].extents[i], spans[i]->tile))
            UIR_TRY(uir_schedule_pad(s, tensor, i, spans[i]->tile));
    return UIR_STATUS_OK;
}

static uir_status keep_sums(windows *w) {
    const uir_contraction *c = &w->p.c;
    const span *spans[] = {&w->lines, &w->pixels, &w->columns};
    uint32_t dims[3] = {NONE, NONE, NONE};
    for (uint32_t d = 0; d < w->p.f->tensors.data[c->tensor].rank; d++)
        for (uint32_t i = 0; i < 3; i++)
            if (spans[i]->axis != NONE && c->tensor_axes[d] == spans[i]->axis) dims[i] = d;
    UIR_TRY(uir_contraction_keep_alive(&w->t, c->tensor, uir_lower_space(w->p.device, UIR_SPACE_ACCUMULATORS)));
    bool line = w->lines.axis == NONE || w->apart || !(w->joined || w->made); /* without lines */
    return fit(w, c->tensor, spans + line, dims + line, 3 - line);
}

/* What is computed after the sums: a line, or what it has of it. */
static uir_status keep_values(windows *w) {
    const uir_contraction *c = &w->p.c;
    uir_loop_function *f = w->p.f;
    for (uint32_t i = 0; i < c->after_count; i++) {
        const uir_contraction_block *b = &c->after[i];
        const uir_loop_statement *block = STATEMENT(f, b->id);
        const uir_loop_access target = STATEMENT(f, uir_contraction_plan_statement_of(f, b->id))->targets[0];
        const span *all[] = {&w->pixels, &w->columns}, *spans[2];
        uint32_t dims[2], count = 0, tensor = target.tensor;
        if (f->tensors.data[tensor].role != UIR_LOOP_ROLE_TEMP) continue;
        for (uint32_t k = 0; k < 2; k++)
            for (uint32_t d = 0; d < f->tensors.data[tensor].rank; d++)
                for (uint32_t iter = 0; iter < block->iter_count; iter++)
                    if (b->axes[iter] == all[k]->axis &&
                        uir_dim_mentions(f->dims, target.indices[d], block->iters[iter].symbol)) {
                        spans[count] = all[k];
                        dims[count++] = d;
                    }
        UIR_TRY(uir_contraction_keep_alive(&w->t, tensor, uir_lower_space(w->p.device, UIR_SPACE_SCRATCH)));
        UIR_TRY(fit(w, tensor, spans, dims, count));
    }
    return UIR_STATUS_OK;
}

static uir_status map_axes(windows *w) {
    uir_loop_class classes[UIR_LOOP_MAX_ITERS];
    for (uint32_t a = 0; a < w->p.c.axis_count; a++) classes[a] = (uir_loop_class)(w->p.c.axes[a].class + 1);
    return uir_schedule_set_classes(w->t.s, w->p.c.update, classes);
}

/* A line at a time, tap after tap, each over pixels and channels, so that a run keeps the sums in registers. */
static uir_status place_taps(windows *w) {
    uir_contraction_steps *t = &w->t;
    const uir_contraction *c = &w->p.c;
    uint32_t loops[MAX_LOOPS], axes[UIR_LOOP_MAX_ITERS], count = 0;
    for (uint32_t i = 0; i < UIR_LOOP_MAX_ITERS; i++) axes[i] = i;
    UIR_TRY(uir_schedule_compute_at(t->s, c->update, t->row));
    for (uint32_t a = 0; a < c->axis_count; a++) {
        uint32_t loop = c->axes[a].class == UIR_CONTRACTION_K ? loop_along(w, c->update, t->row, axes, a) : NONE;
        if (loop != NONE) loops[count++] = loop;
    }
    uint32_t taps = count;
    const uint32_t last[] = {w->pixels.axis, w->columns.axis};
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t loop = loop_along(w, c->update, t->row, axes, last[i]);
        if (loop != NONE) loops[count++] = loop;
    }
    UIR_TRY(uir_contraction_order(t, loops, count));
    t->inside = taps ? loops[taps - 1] : t->row;
    /* As many as stay in one run; others are the turns of a loop. */
    int64_t unrolled = 1;
    for (uint32_t i = taps; i-- > 0;) {
        int64_t trips = 1;
        (void)known(w, STATEMENT(w->p.f, loops[i])->extent, &trips);
        unrolled *= trips;
        if (unrolled <= MOST_TAPS) UIR_TRY(uir_schedule_set_kind(t->s, loops[i], UIR_LOOP_UNROLLED, NULL));
    }
    return UIR_STATUS_OK;
}

/* The weights of a tap lie together, where they are constant. */
static uir_status lay_out_taps(windows *w) {
    uir_loop_function *f = w->p.f;
    const uir_loop_expression *e = read_by(w, 1);
    if (!e || e->has_fill || !uir_contraction_is_constant(&w->p.c, e->load.tensor)) return UIR_STATUS_OK;
    const uir_loop_tensor *tensor = &f->tensors.data[e->load.tensor];
    uir_symbol channel = STATEMENT(f, w->p.c.update)->iters[w->columns.axis].symbol;
    uint32_t order[UIR_LOOP_MAX_RANK], count = 0, last = NONE;
    for (uint32_t d = 0; d < tensor->rank; d++) {
        if (uir_dim_mentions(f->dims, e->load.indices[d], channel))
            last = d;
        else
            order[count++] = d;
    }
    if (last == NONE || last + 1 == tensor->rank || tensor->rank > UIR_LAYOUT_MAX_RANK) return UIR_STATUS_OK;
    order[count] = last;
    uir_layout layout;
    uir_layout_set_order(&layout, tensor->extents, order, tensor->rank, f->dims);
    return uir_schedule_set_layout(w->t.s, e->load.tensor, &layout);
}

/* One rounding for each product and sum, as mma has it, where the device has an instruction for that. */
static uir_status multiply_and_add(windows *w) {
    uir_loop_function *f = w->p.f;
    const uir_machine *d = w->p.device;
    uir_dtype dtype = EXPRESSION(f, STATEMENT(f, w->p.c.sum)->values[0])->dtype;
    int space = uir_machine_find_role(d, UIR_SPACE_SCRATCH);
    if (!uir_iop_is_defined_for(UIR_IOP_FMA, dtype) || uir_dtype_bits(dtype) < 32 || space < 0 ||
        uir_machine_find_legal(d, uir_iop_get_row(UIR_IOP_FMA)->name, dtype, UIR_DTYPE_NONE, (uint32_t)space,
                               1u << space, 0, 0) < 0)
        return UIR_STATUS_OK;
    return uir_schedule_set_use(w->t.s, w->p.c.update, UIR_LOOP_USE_FMA);
}

static uir_status mark_taps(windows *w) {
    uir_contraction_steps *t = &w->t;
    UIR_TRY(multiply_and_add(w));
    UIR_TRY(uir_contraction_vectorise(t, w->p.c.init, t->row));
    UIR_TRY(uir_contraction_vectorise(t, w->p.c.update, t->inside));
    for (uint32_t i = 0; i < w->p.c.after_count; i++) UIR_TRY(uir_contraction_vectorise(t, w->p.c.after[i].id, t->row));
    return UIR_STATUS_OK;
}

/* Taps that are outside for a whole line, along the outermost of the window's axes: were parts of two left out, weights
 * would not lie as one matrix. */
static uir_status leave_out(windows *w) {
    const uir_loop_function *f = w->p.f;
    const uir_loop_expression *image = image_of(w);
    const uir_loop_statement *update = STATEMENT(f, w->p.c.update);
    if (w->apart || w->made || w->joined || !image->has_fill) return UIR_STATUS_OK;
    uir_symbol pixel = update->iters[w->pixels.axis].symbol;
    for (uint32_t d = 0; d < f->tensors.data[image->load.tensor].rank; d++) {
        bool along = false, across = false; /* a window's: a tap of a line */
        for (uint32_t k = 0; k < update->iter_count; k++) {
            if (!uir_dim_mentions(f->dims, image->load.indices[d], update->iters[k].symbol)) continue;
            *(update->iters[k].reduce ? &along : &across) = true;
        }
        if (along && across && !uir_dim_mentions(f->dims, image->load.indices[d], pixel))
            return uir_schedule_leave_out(w->t.s, w->p.c.update, 0, d);
    }
    return UIR_STATUS_OK;
}

static uir_status carry_out(windows *w) {
    UIR_TRY(tile_anchor(w));
    UIR_TRY(w->made ? place_made(w) : w->apart ? place_taps(w) : place_sums(w));
    UIR_TRY(uir_contraction_place_after(&w->t));
    UIR_TRY(keep_sums(w));
    UIR_TRY(keep_values(w));
    UIR_TRY(w->apart ? lay_out_taps(w) : uir_contraction_lay_out(&w->t));
    UIR_TRY(uir_contraction_share_out(&w->t));
    UIR_TRY(leave_out(w));
    if (w->apart) return mark_taps(w);
    if (!w->joined && !w->made) w->t.unit = w->t.row; /* sums are a line's */
    return uir_contraction_mark(&w->t);
}

/* Rows that are made are those of short lines: where only the run tells, it chooses. */
static uir_status require_short(windows *w, bool *out_unknown) {
    uir_condition is_short = {UIR_RELATION_LE, w->pixels.extent, number(w, SHORT)};
    *out_unknown =
        w->made && uir_dim_compare(w->p.f->dims, is_short.left, is_short.relation, is_short.right) == UIR_UNKNOWN;
    return *out_unknown ? uir_vector_push(&w->p.f->arena, &w->p.f->requires_, is_short) : UIR_STATUS_OK;
}

static uir_status shape(windows *w, uir_schedule *s, uir_arena *arena, uir_diagnostics *diagnostics, bool *out_taken,
                        bool *out_unknown) {
    uir_contraction_plan *p = &w->p;
    uir_diagnostics said;
    uir_diagnostics_init(&said, &p->f->allocator);
    UIR_TRY(uir_contraction_inline(s));
    uir_status status = uir_contraction_find(p->f, 0, NULL, arena, &said, &p->c);
    *out_taken = status == UIR_STATUS_OK && p->c.after_count && recognise(w);
    uir_diagnostics_deinit(&said);
    p->c.diagnostics = diagnostics; /* from here on what goes wrong is said */
    if (status == UIR_STATUS_UNSUPPORTED || !*out_taken) return UIR_STATUS_OK;
    UIR_TRY(status);
    for (uint32_t class = 0; class < 4; class ++) p->sides[class].axis = NONE;
    p->sides[UIR_CONTRACTION_M].axis = w->pixels.axis;
    p->sides[UIR_CONTRACTION_N].axis = w->columns.axis;
    p->sides[UIR_CONTRACTION_K].axis = NONE;
    uir_contraction_steps_init(&w->t, p, p, s);
    if (!w->apart) UIR_TRY(map_axes(w));
    uir_contraction_plan_find_crossed(p);
    UIR_TRY(require_short(w, out_unknown));
    UIR_TRY(w->made ? choose_made_tiles(w) : choose_tiles(w));
    return carry_out(w);
}

uir_status uir_windows_schedule(const uir_loop_function *function, const uir_machine *device, uir_text *steps,
                                uir_diagnostics *diagnostics, uir_loop_list *out, bool *out_taken) {
    uir_arena arena;
    windows w = {.p = {.device = device, .steps = steps, .products = 1, .sides = {{.axis = NONE}}}};
    uir_schedule *s = NULL;
    bool unknown = false;
    *out_taken = false;
    if (uir_loop_count_used_as(function, function->first, UIR_LOOP_USE_CONTRACTION) != 1) return UIR_STATUS_OK;
    UIR_TRY(uir_loop_clone(function, &w.p.f));
    uir_arena_init(&arena, &function->allocator);
    uir_status status = uir_schedule_create(w.p.f, device, diagnostics, &s);
    if (status == UIR_STATUS_OK) status = shape(&w, s, &arena, diagnostics, out_taken, &unknown);
    if (status == UIR_STATUS_OK && *out_taken)
        status = uir_loop_list_add(out, w.p.f, uir_schedule_trace(s));
    else
        uir_loop_function_destroy(w.p.f);
    uir_schedule_destroy(s);
    uir_arena_deinit(&arena);
    *out_taken = *out_taken && !unknown; /* longer lines are products like any */
    return status;
}
