/* The tactic of convolutions. */
#include "lower/convolution.h"
#include "lower/contraction_plan.h"

#include <stdio.h>
#include <string.h>

#define STATEMENT(f, id)  (&(f)->statements.data[id])
#define EXPRESSION(f, id) (&(f)->expressions.data[id])
#define NONE              UIR_LOOP_NONE

enum {
    WORKERS = 4,
    BLOCK = 32,
    PAD = 16,
    DEPTH = 256,
    CHANNELS = 128,
    MAX_DEPTHS = 4,
    MAX_PARALLEL = 4,
    SAME_SET = 2048
};
/* Multiplications that starting a unit costs as much as. */
#define UNIT_COST 131072

/* An axis that is tiled. */
typedef struct span {
    uint32_t axis; /* NONE: there is none */
    uir_dim extent, tile;
    bool split, guarded;
    uir_dim outer, inner;
    const char *loop, *local;
} span;

typedef struct convolution {
    uir_contraction_plan p;
    uir_loop_function *f;
    bool whole;                   /* whole lines */
    span channels, lines, pixels; /* of the result */
    span depths[MAX_DEPTHS];      /* what is summed over, in the order of the update; at most the first is split */
    uint32_t depth_count;
    int64_t depth; /* elements of the kernel in a tile of channels of the image */
    bool copies_weights, lays_apart;
    uint32_t sums, columns, weights; /* tensors on chip */
} convolution;

static uir_dim number(const convolution *v, int64_t value) {
    return uir_dim_const(v->f->dims, value);
}

static bool known(const convolution *v, uir_dim dim, int64_t *out) {
    return uir_dim_is_const(v->f->dims, dim, out);
}

/* ---- is it one ---- */
static bool mentions_iter(const convolution *v, uir_dim index, uint32_t axis);

typedef struct symbol_search {
    uir_symbol symbol;
    bool found;
} symbol_search;

static void compare_symbol(void *user, uir_symbol symbol) {
    symbol_search *s = user;
    s->found |= s->symbol.id == symbol.id;
}

static bool mentions_iter(const convolution *v, uir_dim index, uint32_t axis) {
    symbol_search s = {STATEMENT(v->f, v->p.c.update)->iters[axis].symbol, false};
    uir_dim_visit_symbols(v->f->dims, index, compare_symbol, &s);
    return s.found;
}

/* The load in an expression of one operand after the other; NULL. */
static const uir_loop_expression *load_in(const convolution *v, uint32_t expression) {
    const uir_loop_expression *e = EXPRESSION(v->f, expression);
    while (e->kind == UIR_LOOP_CALL && e->argument_count == 1) e = EXPRESSION(v->f, e->arguments[0]);
    return e->kind == UIR_LOOP_LOAD ? e : NULL;
}

/* Does the image's index along some dim depend on a pixel in another way than being it? */
static bool reads_windows(const convolution *v) {
    const uir_contraction *c = &v->p.c;
    const uir_loop_expression *image = load_in(v, c->factors[0]);
    for (uint32_t d = 0; image && d < v->f->tensors.data[image->load.tensor].rank; d++) {
        for (uint32_t a = 0; a < c->axis_count; a++) {
            uir_symbol symbol;
            if (c->axes[a].class != UIR_CONTRACTION_M || !mentions_iter(v, image->load.indices[d], a)) continue;
            if (!uir_dim_is_symbol(v->f->dims, image->load.indices[d], &symbol)) return true;
        }
    }
    return false;
}

/* The axis at a place of the result's dims, counted from the last. */
static uint32_t axis_from_end(const convolution *v, uint32_t from_end) {
    const uir_contraction *c = &v->p.c;
    for (uint32_t i = 0; i < c->after_count; i++) {
        const uir_loop_access *to =
            &STATEMENT(v->f, uir_contraction_plan_statement_of(v->f, c->after[i].id))->targets[0];
        const uir_loop_tensor *t = &v->f->tensors.data[to->tensor];
        if (t->role != UIR_LOOP_ROLE_OUT || t->rank <= from_end) continue;
        for (uint32_t a = 0; a < c->axis_count; a++)
            if (c->axes[a].place == (int32_t)(t->rank - 1 - from_end)) return a;
        return NONE;
    }
    return NONE;
}

static uir_status begin_span(convolution *v, span *s, uint32_t axis, const char *loop, const char *local) {
    *s = (span){.axis = axis};
    if (axis == NONE) {
        s->extent = s->tile = number(v, 1);
        return UIR_STATUS_OK;
    }
    s->extent = s->tile = v->p.c.axes[axis].extent;
    UIR_TRY(uir_contraction_plan_fresh_name(v->f, loop, &s->loop));
    return uir_contraction_plan_fresh_name(v->f, local, &s->local);
}

/* Which axis is what; false where it is no convolution of this kind. */
static uir_status recognise(convolution *v, bool *out_is) {
    const uir_contraction *c = &v->p.c;
    uint32_t pixels = axis_from_end(v, 0), lines = axis_from_end(v, 1), channels = NONE;
    char loop[24], local[24];
    *out_is = v->f->tensors.data[c->tensor].role == UIR_LOOP_ROLE_TEMP && reads_windows(v) && pixels != NONE &&
              c->axes[pixels].class == UIR_CONTRACTION_M;
    if (!*out_is) return UIR_STATUS_OK;
    const uir_loop_expression *image = load_in(v, c->factors[0]);
    if (lines != NONE && c->axes[lines].class != UIR_CONTRACTION_M) lines = NONE;
    for (uint32_t d = 0; lines != NONE && d < v->f->tensors.data[image->load.tensor].rank; d++)
        if (mentions_iter(v, image->load.indices[d], lines) && mentions_iter(v, image->load.indices[d], pixels))
            lines = NONE;
    for (uint32_t a = 0; a < c->axis_count; a++) {
        int64_t most = 0, here = 0;
        if (c->axes[a].class == UIR_CONTRACTION_N) {
            if (channels != NONE) (void)known(v, c->axes[channels].extent, &most);
            if (channels == NONE || (known(v, c->axes[a].extent, &here) && here > most)) channels = a;
        }
        if (c->axes[a].class != UIR_CONTRACTION_K) continue;
        if (v->depth_count == MAX_DEPTHS) {
            *out_is = false;
            return UIR_STATUS_OK;
        }
        snprintf(loop, sizeof loop, "ik%u", v->depth_count);
        snprintf(local, sizeof local, "lk%u", v->depth_count);
        UIR_TRY(begin_span(v, &v->depths[v->depth_count], a, loop, local));
        v->depth_count++;
    }
    UIR_TRY(begin_span(v, &v->channels, channels, "im", "lm"));
    UIR_TRY(begin_span(v, &v->lines, lines, "ih", "lh"));
    return begin_span(v, &v->pixels, pixels, "iw", "lw");
}

static span *span_of(convolution *v, uint32_t axis) {
    if (axis == v->channels.axis) return &v->channels;
    if (axis == v->lines.axis) return &v->lines;
    if (axis == v->pixels.axis) return &v->pixels;
    for (uint32_t i = 0; i < v->depth_count; i++)
        if (axis == v->depths[i].axis) return &v->depths[i];
    return NULL;
}

/* ---- tiles ---- */
/* Parts of about one size, none over `most`. */
static void even_tile(const convolution *v, span *s, int64_t most) {
    int64_t extent, parts;
    bool fixed = known(v, s->extent, &extent);
    if (fixed && extent >= 1 && extent <= most) return;
    if (fixed && extent < 1) {
        s->tile = number(v, 1);
        s->guarded = true;
        return;
    }
    parts = fixed ? (extent + most - 1) / most : 1;
    s->tile = number(v, fixed ? (extent + parts - 1) / parts : most);
    s->split = true;
    s->guarded = !fixed || extent % parts != 0 || extent / parts != (extent + parts - 1) / parts;
}

/* Channels of the image whose windows lie on chip at once. */
static bool choose_depth(convolution *v) {
    int64_t others = 1, extent, tile = 1;
    const uir_loop_expression *image = load_in(v, v->p.c.factors[0]);
    bool plain = v->depth_count > 0;
    for (uint32_t i = 1; i < v->depth_count; i++) {
        if (!known(v, v->depths[i].extent, &extent) || extent < 1 || extent > 4096) return false;
        others *= extent;
        if (others > 4096) return false;
    }
    /* Only what is not a place in the window is split. */
    for (uint32_t d = 0; plain && d < v->f->tensors.data[image->load.tensor].rank; d++)
        for (uint32_t a = 0; a < v->p.c.axis_count; a++)
            plain =
                plain && !(v->p.c.axes[a].class == UIR_CONTRACTION_M && mentions_iter(v, image->load.indices[d], a) &&
                           mentions_iter(v, image->load.indices[d], v->depths[0].axis));
    if (plain) {
        even_tile(v, &v->depths[0], DEPTH / others > 0 ? DEPTH / others : 1);
        if (!known(v, v->depths[0].tile, &tile)) return false;
    } else if (v->depth_count && (!known(v, v->depths[0].extent, &tile) || tile < 1 || tile > 4096)) {
        return false;
    }
    v->depth = others * tile;
    return v->depth <= 4096;
}

/* Are the weights read where they lie: all that is summed over side by side in their last dims? Rows should not meet in
 * the same places of a cache: those of constants are laid apart. */
static bool weights_are_direct(convolution *v) {
    const uir_loop_expression *e = EXPRESSION(v->f, v->p.raw[1]);
    if (e->kind != UIR_LOOP_LOAD || e->has_fill) return false;
    const uir_loop_tensor *t = &v->f->tensors.data[e->load.tensor];
    int64_t bytes = (int64_t)uir_dtype_bits(t->dtype) / 8, extent;
    if (t->role != UIR_LOOP_ROLE_IN || t->rank < v->depth_count) return false;
    for (uint32_t i = 0; i < v->depth_count; i++) {
        uint32_t d = t->rank - v->depth_count + i;
        uir_symbol symbol;
        if (!uir_dim_is_symbol(v->f->dims, e->load.indices[d], &symbol) ||
            symbol.id != STATEMENT(v->f, v->p.c.update)->iters[v->depths[i].axis].symbol.id ||
            !uir_dim_equal(t->extents[d], v->depths[i].extent) || !known(v, t->extents[d], &extent))
            return false;
        bytes *= extent;
    }
    for (uint32_t d = 0; d + v->depth_count < t->rank; d++)
        for (uint32_t i = 0; i < v->depth_count; i++)
            if (mentions_iter(v, e->load.indices[d], v->depths[i].axis)) return false;
    v->lays_apart = v->channels.axis != NONE && bytes >= SAME_SET && bytes % SAME_SET == 0;
    return !v->lays_apart || uir_contraction_is_constant(&v->p.c, e->load.tensor);
}

/* Bytes on chip: for each pixel of a unit, and besides. */
typedef struct footprint {
    int64_t pixel, fixed;
} footprint;

static footprint footprint_of(const convolution *v) {
    int64_t state = (int64_t)uir_dtype_bits(v->f->tensors.data[v->p.c.tensor].dtype) / 8, channels = 1;
    int64_t image = (int64_t)uir_dtype_bits(v->p.dtypes[0]) / 8, weights = (int64_t)uir_dtype_bits(v->p.dtypes[1]) / 8;
    int64_t after = v->p.c.after_count;
    (void)known(v, v->channels.tile, &channels);
    if (EXPRESSION(v->f, v->p.raw[0])->kind != UIR_LOOP_LOAD) image *= 4; /* what leads to it */
    if (EXPRESSION(v->f, v->p.raw[1])->kind != UIR_LOOP_LOAD) weights *= 4;
    footprint r = {.pixel = state * channels + image * v->depth + 8 * after, .fixed = image * v->depth * PAD};
    if (v->copies_weights) r.fixed += weights * channels * (v->depth + PAD);
    r.fixed += 64 * (2 * after + 8);
    return r;
}

static uir_status choose_tiles(convolution *v, bool *out_fits) {
    static const int64_t heights[] = {64, 32, 16, 8, 4, 2, 1}, widths[] = {256, 128, 64, 32, 16};
    uir_loop_function *f = v->f;
    uir_dims *dims = f->dims;
    footprint bytes = footprint_of(v);
    int64_t capacity = 0, width, height, channels = 1;
    for (uint32_t s = 0; s < v->p.device->space_count; s++)
        if (!strcmp(v->p.device->spaces[s].name, "sram")) capacity = (int64_t)v->p.device->spaces[s].capacity / 4 * 3;
    int64_t most = (capacity - bytes.fixed) / bytes.pixel;
    bool fixed = known(v, v->pixels.extent, &width);
    *out_fits = false;
    if (!v->whole) {
        v->lines.tile = number(v, 1);
        v->lines.split = v->lines.axis != NONE;
        for (size_t i = 0; i < sizeof widths / sizeof widths[0] && !*out_fits; i++) {
            if (widths[i] > most) continue;
            v->pixels.tile = number(v, widths[i]);
            v->pixels.split = true;
            v->pixels.guarded = !fixed || width % widths[i] != 0;
            *out_fits = true;
        }
        return UIR_STATUS_OK;
    }
    if (fixed && (width > most || width < 1)) return UIR_STATUS_OK;
    *out_fits = true;
    uir_dim pixels = v->pixels.extent;
    if (!fixed) {
        uir_condition any = {UIR_RELATION_GE, pixels, number(v, 1)};
        UIR_TRY(uir_vector_push(&f->arena, &f->requires_, any));
    }
    if (v->lines.axis == NONE) return UIR_STATUS_OK;
    int64_t limit = heights[0];
    uir_loop_size tile;
    bool high = known(v, v->lines.extent, &height);
    while (limit > 1 && ((high && limit / 2 >= height) || (fixed && limit * width > most))) limit /= 2;
    uir_symbol_facts facts = {1, limit, 1, {0}};
    UIR_TRY(uir_contraction_plan_fresh_name(f, "th", &tile.name));
    UIR_TRY(uir_dims_add_symbol(dims, tile.name, strlen(tile.name), facts, &tile.symbol));
    UIR_TRY(uir_vector_push(&f->arena, &f->tiles, tile));
    v->lines.tile = uir_dim_symbol(dims, tile.symbol);
    v->lines.split = v->lines.guarded = true;
    (void)known(v, v->channels.tile, &channels);
    uir_dim units = uir_dim_ceildiv(dims, v->channels.extent, v->channels.tile);
    for (uint32_t a = 0; a < v->p.c.axis_count; a++)
        if (v->p.c.axes[a].class != UIR_CONTRACTION_K && !span_of(v, a))
            units = uir_dim_mul(dims, units, v->p.c.axes[a].extent);
    for (size_t i = 0; i < sizeof heights / sizeof heights[0]; i++) {
        if (heights[i] > limit) continue;
        uir_icandidate row = {0};
        uir_dim all = uir_dim_mul(dims, units, uir_dim_ceildiv(dims, v->lines.extent, number(v, heights[i])));
        uir_dim unit = uir_dim_align(dims, uir_dim_mul(dims, pixels, number(v, heights[i])), number(v, BLOCK));
        unit = uir_dim_add(dims, uir_dim_mul(dims, unit, number(v, channels + 12)),
                           number(v, UNIT_COST / (v->depth < 1 ? 1 : v->depth)));
        row.cost = uir_dim_mul(dims, uir_dim_ceildiv(dims, all, number(v, WORKERS)), unit);
        UIR_TRY_ALLOCATE(row.tiles, uir_arena_allocate_array(&f->arena, 1, sizeof *row.tiles));
        row.tiles[0] = number(v, heights[i]);
        if (!fixed) {
            uir_iatom fits = {.kind = UIR_IATOM_RELATION,
                              .condition = {UIR_RELATION_LE, pixels, number(v, most / heights[i])}};
            UIR_TRY_ALLOCATE(row.guard.atoms, uir_arena_copy(&f->arena, &fits, sizeof fits));
            row.guard.count = 1;
        }
        if (!row.cost.id) return UIR_STATUS_OUT_OF_MEMORY;
        UIR_TRY(uir_vector_push(&f->arena, &f->candidates, row));
    }
    return UIR_STATUS_OK;
}

/* ---- places ---- */
static uir_dim coordinate(convolution *v, uint32_t axis) {
    const span *s = span_of(v, axis);
    uir_dims *dims = v->f->dims;
    if (!s) return v->p.at[axis];
    return s->split ? uir_dim_add(dims, uir_dim_mul(dims, s->outer, s->tile), s->inner) : s->inner;
}

static uir_status guard(convolution *v, uir_loop_statement *block, const span *s) {
    uir_condition *conditions;
    if (s->axis == NONE || !s->guarded) return UIR_STATUS_OK;
    UIR_TRY_ALLOCATE(conditions,
                     uir_arena_allocate_array(&v->f->arena, block->condition_count + 1, sizeof *conditions));
    for (uint32_t i = 0; i < block->condition_count; i++) conditions[i] = block->conditions[i];
    conditions[block->condition_count++] = (uir_condition){UIR_RELATION_LT, coordinate(v, s->axis), s->extent};
    block->conditions = conditions;
    return UIR_STATUS_OK;
}

/* A vectorised loop over a tile around what comes next. */
static uir_status open_tile(convolution *v, span *s, uint32_t *under) {
    if (s->axis == NONE) return UIR_STATUS_OK;
    return uir_contraction_plan_add_loop(v->f, s->loop, UIR_LOOP_VECTORISED, s->tile, *under, under, &s->inner);
}

/* The place in a tile: a variable of the block; its bounds go to the block's conditions. */
static uir_status local_place(convolution *v, uir_loop_statement *block, const span *s, bool reduce, uir_dim *out) {
    *out = number(v, 0);
    if (s->axis == NONE) return UIR_STATUS_OK;
    UIR_TRY(uir_contraction_plan_add_iter(v->f, block, s->local, s->tile, reduce, s->inner, out));
    return guard(v, block, s);
}

static void bind_axes(convolution *v, uir_loop_statement *block, const uint32_t *axes) {
    for (uint32_t i = 0; i < block->iter_count; i++) block->iters[i].value = coordinate(v, axes[i]);
}

/* ---- parts ---- */
static uir_status place_init(convolution *v, uint32_t under) {
    uir_loop_function *f = v->f;
    const uir_contraction *c = &v->p.c;
    uint32_t axes[UIR_LOOP_MAX_ITERS] = {0};
    uir_dim at[3];
    UIR_TRY(open_tile(v, &v->channels, &under));
    UIR_TRY(open_tile(v, &v->lines, &under));
    UIR_TRY(open_tile(v, &v->pixels, &under));
    uir_loop_statement block = *STATEMENT(f, c->init);
    uir_loop_access *target = &STATEMENT(f, block.first_child)->targets[0];
    for (uint32_t i = 0; i < block.iter_count; i++) {
        for (uint32_t d = 0; d < f->tensors.data[c->tensor].rank; d++) {
            uir_symbol symbol;
            if (uir_dim_is_symbol(f->dims, target->indices[d], &symbol) && symbol.id == block.iters[i].symbol.id)
                axes[i] = c->tensor_axes[d];
        }
    }
    bind_axes(v, &block, axes);
    UIR_TRY(local_place(v, &block, &v->channels, false, &at[0]));
    UIR_TRY(local_place(v, &block, &v->lines, false, &at[1]));
    UIR_TRY(local_place(v, &block, &v->pixels, false, &at[2]));
    *target = (uir_loop_access){.tensor = v->sums, .indices = {at[0], at[1], at[2]}};
    *STATEMENT(f, c->init) = block;
    uir_contraction_plan_append(f, under, c->init);
    return UIR_STATUS_OK;
}

/* Windows (0) or weights (1), copied or computed into their tile. */
static uir_status place_copy(convolution *v, uint32_t which, uint32_t under) {
    uir_loop_function *f = v->f;
    const uir_contraction *c = &v->p.c;
    const uir_loop_statement *update = STATEMENT(f, c->update);
    uir_loop_statement block = {.kind = UIR_LOOP_STATEMENT_BLOCK, .first_child = NONE, .next = NONE};
    uir_loop_statement store = {
        .kind = UIR_LOOP_STATEMENT_STORE, .first_child = NONE, .next = NONE, .target_count = 1, .value_count = 1};
    uint32_t count = uir_dims_symbol_count(f->dims), id, rank = 0;
    uir_dim *replacements;
    if (which) UIR_TRY(open_tile(v, &v->channels, &under));
    for (uint32_t i = 0; i < v->depth_count; i++) UIR_TRY(open_tile(v, &v->depths[i], &under));
    if (!which) UIR_TRY(open_tile(v, &v->lines, &under));
    if (!which) UIR_TRY(open_tile(v, &v->pixels, &under));
    UIR_TRY_ALLOCATE(replacements, uir_arena_allocate_array(c->arena, count + 1, sizeof *replacements));
    for (uint32_t a = 0; a < c->axis_count; a++) {
        if (c->axes[a].class == (which ? UIR_CONTRACTION_M : UIR_CONTRACTION_N)) continue;
        UIR_TRY(uir_contraction_plan_add_iter(f, &block, update->iters[a].name, update->iters[a].extent, false,
                                              coordinate(v, a), &replacements[update->iters[a].symbol.id]));
        update = STATEMENT(f, c->update);
    }
    store.targets[0].tensor = which ? v->weights : v->columns;
    if (which) UIR_TRY(local_place(v, &block, &v->channels, false, &store.targets[0].indices[rank++]));
    for (uint32_t i = 0; i < v->depth_count; i++)
        UIR_TRY(local_place(v, &block, &v->depths[i], false, &store.targets[0].indices[rank++]));
    if (!which) UIR_TRY(local_place(v, &block, &v->lines, false, &store.targets[0].indices[rank++]));
    if (!which) UIR_TRY(local_place(v, &block, &v->pixels, false, &store.targets[0].indices[rank++]));
    UIR_TRY(uir_loop_substitute(f, v->p.raw[which], replacements, count, &store.values[0]));
    UIR_TRY(uir_contraction_plan_add_statement(f, &store, &block.first_child));
    block.name = f->tensors.data[store.targets[0].tensor].name;
    UIR_TRY(uir_contraction_plan_add_statement(f, &block, &id));
    uir_contraction_plan_append(f, under, id);
    return UIR_STATUS_OK;
}

/* A tile as mma reads it: under the cast to the sums' dtype that mma makes itself. */
static uir_status load_tile(convolution *v, uint32_t which, const uir_loop_access *access, uint32_t *out) {
    uir_loop_function *f = v->f;
    uir_loop_expression load = {.kind = UIR_LOOP_LOAD, .dtype = v->p.dtypes[which], .load = *access};
    *out = f->expressions.count;
    UIR_TRY(uir_vector_push(&f->arena, &f->expressions, load));
    if (v->p.raw[which] == v->p.c.factors[which]) return UIR_STATUS_OK;
    uir_loop_expression cast = *EXPRESSION(f, v->p.c.factors[which]);
    cast.arguments[0] = *out;
    *out = f->expressions.count;
    return uir_vector_push(&f->arena, &f->expressions, cast);
}

static uir_status place_update(convolution *v, uint32_t under) {
    uir_loop_function *f = v->f;
    const uir_contraction *c = &v->p.c;
    uint32_t axes[UIR_LOOP_MAX_ITERS];
    uir_loop_access windows = {.tensor = v->columns}, weights = {.tensor = v->weights}, sums = {.tensor = v->sums};
    UIR_TRY(open_tile(v, &v->channels, &under));
    for (uint32_t i = 0; i < v->depth_count; i++) UIR_TRY(open_tile(v, &v->depths[i], &under));
    UIR_TRY(open_tile(v, &v->lines, &under));
    UIR_TRY(open_tile(v, &v->pixels, &under));
    uir_loop_statement block = *STATEMENT(f, c->update);
    for (uint32_t i = 0; i < block.iter_count; i++) axes[i] = i;
    bind_axes(v, &block, axes);
    UIR_TRY(local_place(v, &block, &v->channels, false, &sums.indices[0]));
    UIR_TRY(local_place(v, &block, &v->lines, false, &sums.indices[1]));
    UIR_TRY(local_place(v, &block, &v->pixels, false, &sums.indices[2]));
    weights.indices[0] = sums.indices[0];
    for (uint32_t i = 0; i < v->depth_count; i++) {
        UIR_TRY(local_place(v, &block, &v->depths[i], true, &windows.indices[i]));
        weights.indices[i + 1] = windows.indices[i];
    }
    windows.indices[v->depth_count] = sums.indices[1];
    windows.indices[v->depth_count + 1] = sums.indices[2];
    uint32_t left = c->factors[1], right;
    UIR_TRY(load_tile(v, 0, &windows, &right));
    if (v->copies_weights) UIR_TRY(load_tile(v, 1, &weights, &left));
    uir_loop_statement *sum = STATEMENT(f, c->sum);
    uir_loop_expression mul = *EXPRESSION(f, sum->values[0]);
    mul.arguments[0] = left, mul.arguments[1] = right;
    sum->values[0] = f->expressions.count;
    UIR_TRY(uir_vector_push(&f->arena, &f->expressions, mul));
    sum->targets[0] = sums;
    *STATEMENT(f, c->update) = block;
    uir_contraction_plan_append(f, under, c->update);
    UIR_TRY(uir_loop_add_mark(f, c->update, UIR_CONTRACTION_MMA));
    UIR_TRY(uir_loop_add_mark(f, c->update, "apart %s", f->tensors.data[v->columns].name));
    uint32_t rows = v->copies_weights ? v->weights : load_in(v, left)->load.tensor;
    if (v->copies_weights || v->lays_apart)
        UIR_TRY(uir_loop_add_mark(f, c->update, "apart %s", f->tensors.data[rows].name));
    return UIR_STATUS_OK;
}

/* Loads of what is on chip: the sums of the channel in work, a line of what was made of them. */
static uir_status use_tiles(convolution *v, uint32_t id, const uir_dim *at, uint32_t *out) {
    uir_loop_function *f = v->f;
    uir_loop_expression e = *EXPRESSION(f, id);
    bool changed = false;
    *out = id;
    for (uint32_t i = 0; e.kind == UIR_LOOP_CALL && i < e.argument_count; i++) {
        uint32_t argument = e.arguments[i];
        UIR_TRY(use_tiles(v, argument, at, &e.arguments[i]));
        changed |= argument != e.arguments[i];
    }
    if (e.kind == UIR_LOOP_LOAD && e.load.tensor < v->p.local_count && v->p.local[e.load.tensor] != NONE) {
        bool sums = e.load.tensor == v->p.c.tensor;
        e.load.tensor = v->p.local[e.load.tensor];
        for (uint32_t d = 0; d < 3; d++) e.load.indices[d] = sums ? at[d] : d < 2 ? at[d + 1] : e.load.indices[d];
        changed = true;
    }
    if (!changed) return UIR_STATUS_OK;
    *out = f->expressions.count;
    return uir_vector_push(&f->arena, &f->expressions, e);
}

static uir_status place_after(convolution *v, uint32_t under) {
    uir_loop_function *f = v->f;
    const uir_contraction *c = &v->p.c;
    if (v->channels.axis != NONE) {
        const char *name;
        UIR_TRY(uir_contraction_plan_fresh_name(f, "row", &name));
        UIR_TRY(uir_contraction_plan_add_loop(f, name, UIR_LOOP_SERIAL, v->channels.tile, under, &under,
                                              &v->channels.inner));
        uir_loop_statement holder = {0};
        UIR_TRY(guard(v, &holder, &v->channels));
        if (holder.condition_count) {
            uint32_t id;
            uir_loop_statement branch = {.kind = UIR_LOOP_STATEMENT_IF,
                                         .first_child = NONE,
                                         .next = NONE,
                                         .conditions = holder.conditions,
                                         .condition_count = holder.condition_count};
            UIR_TRY(uir_contraction_plan_add_statement(f, &branch, &id));
            uir_contraction_plan_append(f, under, id);
            under = id;
        }
    }
    for (uint32_t i = 0; i < c->after_count; i++) {
        uint32_t inside = under, id = c->after[i].id, value;
        uir_dim at[3];
        UIR_TRY(open_tile(v, &v->lines, &inside));
        UIR_TRY(open_tile(v, &v->pixels, &inside));
        uir_loop_statement block = *STATEMENT(f, id);
        bind_axes(v, &block, c->after[i].axes);
        at[0] = number(v, 0);
        if (v->channels.axis != NONE)
            UIR_TRY(uir_contraction_plan_add_iter(f, &block, v->channels.local, v->channels.tile, false,
                                                  v->channels.inner, &at[0]));
        UIR_TRY(local_place(v, &block, &v->lines, false, &at[1]));
        UIR_TRY(local_place(v, &block, &v->pixels, false, &at[2]));
        uir_loop_statement *s = STATEMENT(f, uir_contraction_plan_statement_of(f, id));
        UIR_TRY(use_tiles(v, s->values[0], at, &value));
        s->values[0] = value;
        uint32_t target = s->targets[0].tensor;
        if (v->p.local[target] != NONE)
            s->targets[0] = (uir_loop_access){.tensor = v->p.local[target], .indices = {at[1], at[2]}};
        *STATEMENT(f, id) = block;
        uir_contraction_plan_append(f, inside, id);
    }
    return UIR_STATUS_OK;
}

/* ---- the whole ---- */
static uir_status make_tiles(convolution *v) {
    uir_loop_function *f = v->f;
    uir_contraction_plan *p = &v->p;
    uint32_t rank = 0;
    uir_dim columns[MAX_DEPTHS + 2], weights[MAX_DEPTHS + 1];
    p->local_count = f->tensors.count;
    UIR_TRY_ALLOCATE(p->local, uir_arena_allocate_array(p->c.arena, p->local_count + 1, sizeof *p->local));
    for (uint32_t i = 0; i < p->local_count; i++) p->local[i] = NONE;
    UIR_TRY(uir_contraction_plan_add_tensor(f, "sums", f->tensors.data[p->c.tensor].dtype,
                                            (uir_dim[]){v->channels.tile, v->lines.tile, v->pixels.tile}, 3, &v->sums));
    p->local[p->c.tensor] = v->sums;
    weights[0] = v->channels.tile;
    for (; rank < v->depth_count; rank++) weights[rank + 1] = columns[rank] = v->depths[rank].tile;
    columns[rank++] = v->lines.tile;
    columns[rank++] = v->pixels.tile;
    UIR_TRY(uir_contraction_plan_add_tensor(f, "windows", p->dtypes[0], columns, rank, &v->columns));
    if (v->copies_weights)
        UIR_TRY(uir_contraction_plan_add_tensor(f, "weights", p->dtypes[1], weights, rank - 1, &v->weights));
    for (uint32_t i = 0; i < p->c.after_count; i++) {
        uint32_t target = STATEMENT(f, uir_contraction_plan_statement_of(f, p->c.after[i].id))->targets[0].tensor;
        uir_loop_tensor t = f->tensors.data[target];
        if (t.role != UIR_LOOP_ROLE_TEMP) continue;
        UIR_TRY(uir_contraction_plan_add_tensor(f, t.name, t.dtype, (uir_dim[]){v->lines.tile, v->pixels.tile}, 2,
                                                &p->local[target]));
    }
    return UIR_STATUS_OK;
}

static uir_status open_tiles_of(convolution *v, span *s, const char *name, uint32_t *under) {
    if (!s->split) return UIR_STATUS_OK;
    UIR_TRY(uir_contraction_plan_fresh_name(v->f, name, &name));
    return uir_contraction_plan_add_loop(v->f, name, UIR_LOOP_PARALLEL, uir_dim_ceildiv(v->f->dims, s->extent, s->tile),
                                         *under, under, &s->outer);
}

static uir_status open_outer(convolution *v, uint32_t *under) {
    const uir_contraction *c = &v->p.c;
    uint32_t tiled = (uint32_t)v->channels.split + v->lines.split + v->pixels.split;
    for (uint32_t pass = 0; pass < 2; pass++) { /* parallel ones, then those for which no place was left */
        uint32_t taken = 0;
        for (uint32_t a = 0; a < c->axis_count; a++) {
            const char *name;
            if (c->axes[a].class == UIR_CONTRACTION_K || span_of(v, a)) continue;
            bool parallel = taken++ < MAX_PARALLEL - tiled;
            if (parallel != (pass == 0)) continue;
            UIR_TRY(uir_contraction_plan_fresh_name(v->f, "b", &name));
            UIR_TRY(uir_contraction_plan_add_loop(v->f, name, parallel ? UIR_LOOP_PARALLEL : UIR_LOOP_SERIAL,
                                                  c->axes[a].extent, *under, under, &v->p.at[a]));
        }
        if (pass) break;
        UIR_TRY(open_tiles_of(v, &v->channels, "mo", under));
        UIR_TRY(open_tiles_of(v, &v->lines, "ho", under));
        UIR_TRY(open_tiles_of(v, &v->pixels, "wo", under));
    }
    return UIR_STATUS_OK;
}

static void describe(convolution *v) {
    static const char *const words[] = {"channels", "lines", "pixels", "depth"};
    const span *spans[] = {&v->channels, &v->lines, &v->pixels, &v->depths[0]};
    const char *name = v->f->tensors.data[v->p.c.tensor].name;
    uir_text text;
    uir_text_init(&text, &v->f->allocator);
    for (uint32_t i = 0; i < 4; i++) {
        if (spans[i]->axis == NONE || !spans[i]->split) continue;
        uir_text_append_format(&text, "split %s of %s, the %s, by ",
                               STATEMENT(v->f, v->p.c.update)->iters[spans[i]->axis].name, name, words[i]);
        uir_dim_print(v->f->dims, spans[i]->tile, &text);
        uir_text_append_string(&text, "; ");
    }
    uir_contraction_plan_say(&v->p, "%s", v->whole ? "for whole lines:" : "for parts of a line:");
    uir_contraction_plan_say(&v->p, "%s: %skeep its sums in sram", name, text.data ? text.data : "");
    uir_text_deinit(&text);
    uir_contraction_plan_say(&v->p, "%s: read the image through windows in sram, one column a pixel", name);
    if (v->copies_weights) uir_contraction_plan_say(&v->p, "%s: read the weights through rows in sram", name);
    uir_contraction_plan_say(&v->p, "%s: annotate mma; %u blocks after it are computed at the channels of its tile",
                             name, v->p.c.after_count);
}

static uir_status carry_out(convolution *v) {
    uir_loop_function *f = v->f;
    uint32_t unit = NONE, inside;
    f->first = NONE;
    UIR_TRY(open_outer(v, &unit));
    UIR_TRY(place_init(v, unit));
    inside = unit;
    if (v->depth_count && v->depths[0].split) {
        const char *name;
        UIR_TRY(uir_contraction_plan_fresh_name(f, "ko", &name));
        UIR_TRY(uir_contraction_plan_add_loop(f, name, UIR_LOOP_SERIAL,
                                              uir_dim_ceildiv(f->dims, v->depths[0].extent, v->depths[0].tile), inside,
                                              &inside, &v->depths[0].outer));
    }
    UIR_TRY(place_copy(v, 0, inside));
    if (v->copies_weights) UIR_TRY(place_copy(v, 1, inside));
    UIR_TRY(place_update(v, inside));
    UIR_TRY(place_after(v, unit));
    return uir_contraction_plan_drop_tensors(&v->p);
}

/* Windows without an outside may be read past it where the last tile is in part: those pixels are not computed. */
static uir_status shape(convolution *v, uir_arena *arena, bool *out_is, bool *out_fits) {
    if (uir_contraction_find(v->f, 0, NULL, arena, NULL, &v->p.c) != UIR_STATUS_OK) return UIR_STATUS_OK;
    UIR_TRY(recognise(v, out_is));
    if (!*out_is) return UIR_STATUS_OK;
    *out_is = choose_depth(v) && uir_contraction_plan_choose_dtypes(&v->p) == UIR_STATUS_OK;
    if (!*out_is) return UIR_STATUS_OK;
    v->copies_weights = !weights_are_direct(v);
    if (v->channels.axis != NONE) even_tile(v, &v->channels, CHANNELS);
    UIR_TRY(choose_tiles(v, out_fits));
    if (!*out_fits) return UIR_STATUS_OK;
    UIR_TRY(make_tiles(v));
    describe(v);
    return carry_out(v);
}

static uir_status build(const uir_loop_function *naive, const uir_device *device, bool whole, uir_text *steps,
                        uir_diagnostics *diagnostics, uir_loop_list *out, bool *out_is, bool *out_fits) {
    uir_arena arena;
    convolution v = {.whole = whole, .p = {.device = device, .steps = steps, .products = 1}};
    *out_is = *out_fits = false;
    UIR_TRY(uir_loop_copy(naive, diagnostics, &v.f));
    uir_arena_init(&arena, &naive->allocator);
    v.p.f = v.f;
    uir_status status = shape(&v, &arena, out_is, out_fits);
    uir_arena_deinit(&arena);
    if (status == UIR_STATUS_OK && *out_is && *out_fits) status = uir_loop_verify(v.f, diagnostics);
    if (status == UIR_STATUS_OK && *out_is && *out_fits) return uir_loop_list_add(out, v.f);
    uir_loop_function_destroy(v.f);
    return status;
}

uir_status uir_convolution_schedule(const uir_loop_function *function, const uir_device *device, uir_text *steps,
                                    uir_diagnostics *diagnostics, uir_loop_list *out, bool *out_taken) {
    bool fits, is;
    *out_taken = false;
    if (uir_contraction_count(function) != 1) return UIR_STATUS_OK;
    UIR_TRY(build(function, device, true, steps, diagnostics, out, out_taken, &fits));
    /* Lines of known length that fit need nothing else. */
    if (!*out_taken || (fits && !out->functions[out->count - 1]->requires_.count)) return UIR_STATUS_OK;
    UIR_TRY(build(function, device, false, steps, diagnostics, out, &is, out_taken));
    *out_taken |= fits;
    return UIR_STATUS_OK;
}
