/* The tactic of convolutions. */
#include "lower/convolution.h"
#include "lower/convolution_plan.h"

#include <stdio.h>
#include <string.h>

#define STATEMENT(f, id)  (&(f)->statements.data[id])
#define EXPRESSION(f, id) (&(f)->expressions.data[id])
#define NONE              UIR_LOOP_NONE

enum { BLOCK = 32, PAD = 16, DEPTH = 256, MOST_DEPTH = 4096, CHANNELS = 128, SAME_SET = 2048, MOST_TAPS = 64 };
/* Multiplications that starting a unit costs as much as. */
#define UNIT_COST    131072
#define UNIT_VECTORS 256 /* by taps: operations on vectors */

uir_dim uir_convolution_number(const uir_convolution *v, int64_t value) {
    return uir_dim_const(v->f->dims, value);
}

static bool convolution_known(const uir_convolution *v, uir_dim dim, int64_t *out) {
    return uir_dim_is_const(v->f->dims, dim, out);
}

/* ---- is it one ---- */
static bool mentions_iter(const uir_convolution *v, uir_dim index, uint32_t axis) {
    return uir_dim_mentions(v->f->dims, index, STATEMENT(v->f, v->p.c.update)->iters[axis].symbol);
}

/* The load in an expression of one operand after the other; NULL. */
const uir_loop_expression *uir_convolution_load_in(const uir_convolution *v, uint32_t expression) {
    const uir_loop_expression *e = EXPRESSION(v->f, expression);
    while (e->kind == UIR_LOOP_CALL && e->argument_count == 1) e = EXPRESSION(v->f, e->arguments[0]);
    return e->kind == UIR_LOOP_LOAD ? e : NULL;
}

/* The axis of pixels along the last of the image's dims before `before` that has just one; how far it is from the
 * first. */
static uint32_t pixels_before(const uir_convolution *v, uint32_t before, uint32_t *out_dim) {
    const uir_contraction *c = &v->p.c;
    const uir_loop_expression *image = uir_convolution_load_in(v, c->factors[0]);
    for (uint32_t d = before; d > 0; d--) {
        uint32_t found = NONE, count = 0;
        for (uint32_t a = 0; a < c->axis_count; a++) {
            if (c->axes[a].class != UIR_CONTRACTION_M || !mentions_iter(v, image->load.indices[d - 1], a)) continue;
            found = a;
            count++;
        }
        if (count != 1) continue;
        *out_dim = d - 1;
        return found;
    }
    return NONE;
}

/* Does the result's last dim run along channels, many enough for vectors? Then they are better the columns. */
static bool channels_are_last(const uir_convolution *v) {
    const uir_contraction *c = &v->p.c;
    const uir_contraction_axis *last = &c->axes[0];
    int64_t extent;
    for (uint32_t a = 1; a < c->axis_count; a++)
        if (c->axes[a].place > last->place) last = &c->axes[a];
    return last->class == UIR_CONTRACTION_N && (!convolution_known(v, last->extent, &extent) || extent >= BLOCK / 2);
}

static uir_status begin_span(uir_convolution *v, uir_convolution_span *s, uint32_t axis, const char *loop,
                             const char *local) {
    *s = (uir_convolution_span){.axis = axis};
    if (axis == NONE) {
        s->extent = s->tile = uir_convolution_number(v, 1);
        return UIR_STATUS_OK;
    }
    s->extent = s->tile = v->p.c.axes[axis].extent;
    UIR_TRY(uir_contraction_plan_fresh_name(v->f, loop, &s->loop));
    return uir_contraction_plan_fresh_name(v->f, local, &s->local);
}

/* Which axis is what; false where it is no convolution of this kind. */
static uir_status recognise(uir_convolution *v, bool *out_is) {
    const uir_contraction *c = &v->p.c;
    uint32_t pixels = NONE, lines = NONE, channels = NONE, dim = 0;
    char loop[24], local[24];
    const uir_loop_expression *image = uir_convolution_load_in(v, c->factors[0]);
    *out_is = image && !channels_are_last(v) && uir_loop_is_used_as(v->f, c->update, UIR_LOOP_USE_CONVOLUTION);
    if (*out_is) pixels = pixels_before(v, v->f->tensors.data[image->load.tensor].rank, &dim);
    if (pixels != NONE) lines = pixels_before(v, dim, &dim);
    *out_is = pixels != NONE;
    if (!*out_is) return UIR_STATUS_OK;
    for (uint32_t a = 0; a < c->axis_count; a++) {
        int64_t most = 0, here = 0;
        if (c->axes[a].class == UIR_CONTRACTION_N) {
            if (channels != NONE) (void)convolution_known(v, c->axes[channels].extent, &most);
            if (channels == NONE || (convolution_known(v, c->axes[a].extent, &here) && here > most)) channels = a;
        }
        if (c->axes[a].class != UIR_CONTRACTION_K) continue;
        if (v->depth_count == UIR_CONVOLUTION_MAX_DEPTHS) {
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

uir_convolution_span *uir_convolution_span_of(uir_convolution *v, uint32_t axis) {
    if (axis == v->channels.axis) return &v->channels;
    if (axis == v->lines.axis) return &v->lines;
    if (axis == v->pixels.axis) return &v->pixels;
    for (uint32_t i = 0; i < v->depth_count; i++)
        if (axis == v->depths[i].axis) return &v->depths[i];
    return NULL;
}

/* ---- by taps ---- */
int64_t uir_convolution_reach(const uir_convolution_taps *taps) {
    return (taps->count - 1) * taps->dilation + 1;
}

/* How far an index moves with an axis, when that is one number. */
static bool step_along(const uir_convolution *v, uir_dim index, uint32_t axis, int64_t *out) {
    uir_dims *dims = v->f->dims;
    uir_symbol symbol = STATEMENT(v->f, v->p.c.update)->iters[axis].symbol;
    uir_dim at[2], *replacements, variable = uir_dim_symbol(dims, symbol);
    uint32_t count = uir_dims_symbol_count(dims);
    if (!(replacements = uir_arena_allocate_array(v->p.c.arena, count + 1, sizeof *replacements))) return false;
    for (uint32_t i = 0; i < 2; i++) {
        replacements[symbol.id] = uir_convolution_number(v, i);
        at[i] = uir_dim_substitute(dims, index, replacements, count);
    }
    uir_dim step = uir_dim_sub(dims, at[1], at[0]), sum = uir_dim_add(dims, at[0], uir_dim_mul(dims, step, variable));
    return sum.id && convolution_known(v, step, out) && *out >= 1 && uir_dim_equal(sum, index);
}

/* The dim along which the image is read for a span, and the taps there. */
static bool find_taps(const uir_convolution *v, const uir_convolution_span *s, uir_convolution_taps *out) {
    const uir_loop_access *image = &EXPRESSION(v->f, v->p.c.factors[0])->load;
    *out = (uir_convolution_taps){.dim = NONE, .axis = NONE, .count = 1, .stride = 1, .dilation = 1};
    for (uint32_t d = 0; s->axis != NONE && d < v->f->tensors.data[image->tensor].rank; d++) {
        if (!mentions_iter(v, image->indices[d], s->axis)) continue;
        if (out->dim != NONE || !step_along(v, image->indices[d], s->axis, &out->stride)) return false;
        out->dim = d;
        for (uint32_t i = 0; i < v->depth_count; i++) {
            if (!mentions_iter(v, image->indices[d], v->depths[i].axis)) continue;
            if (out->axis != NONE || !step_along(v, image->indices[d], v->depths[i].axis, &out->dilation) ||
                !convolution_known(v, v->depths[i].extent, &out->count))
                return false;
            out->axis = v->depths[i].axis;
        }
    }
    return true;
}

/* Every channel of the result has its own channel of the image, and the kernel few taps. */
static bool goes_by_taps(uir_convolution *v) {
    const uir_loop_expression *image = EXPRESSION(v->f, v->p.c.factors[0]);
    uir_dtype dtype = v->f->tensors.data[v->p.c.tensor].dtype;
    if (v->channels.axis != NONE || image->kind != UIR_LOOP_LOAD || image->dtype != dtype ||
        !uir_dtype_is_float(dtype) || image->fill != 0)
        return false;
    if (!find_taps(v, &v->lines, &v->down) || !find_taps(v, &v->pixels, &v->across) ||
        v->down.count * v->across.count > MOST_TAPS)
        return false;
    for (uint32_t i = 0; i < v->depth_count; i++)
        if (v->depths[i].axis != v->down.axis && v->depths[i].axis != v->across.axis) return false;
    return true;
}

/* ---- tiles ---- */
/* Parts of about one size, none over `most`. */
static void even_tile(const uir_convolution *v, uir_convolution_span *s, int64_t most) {
    int64_t extent, parts;
    bool fixed = convolution_known(v, s->extent, &extent);
    if (fixed && extent <= most) return;
    parts = fixed ? (extent + most - 1) / most : 1;
    s->tile = uir_convolution_number(v, fixed ? (extent + parts - 1) / parts : most);
    s->split = true;
    s->guarded = !fixed || extent % parts != 0;
}

/* Channels of the image whose windows lie on chip at once. */
static bool choose_depth(uir_convolution *v) {
    int64_t others = 1, extent, tile = 1;
    const uir_loop_expression *image = uir_convolution_load_in(v, v->p.c.factors[0]);
    bool plain = v->depth_count > 0;
    for (uint32_t i = 1; i < v->depth_count; i++) {
        if (!convolution_known(v, v->depths[i].extent, &extent) || extent > MOST_DEPTH / others) return false;
        others *= extent;
    }
    /* Only what is not a place in the window is split. */
    for (uint32_t d = 0; plain && d < v->f->tensors.data[image->load.tensor].rank; d++)
        for (uint32_t a = 0; a < v->p.c.axis_count; a++)
            plain =
                plain && !(v->p.c.axes[a].class == UIR_CONTRACTION_M && mentions_iter(v, image->load.indices[d], a) &&
                           mentions_iter(v, image->load.indices[d], v->depths[0].axis));
    if (plain) {
        even_tile(v, &v->depths[0], DEPTH / others > 0 ? DEPTH / others : 1);
        (void)convolution_known(v, v->depths[0].tile, &tile);
    } else if (v->depth_count && (!convolution_known(v, v->depths[0].extent, &tile) || tile > MOST_DEPTH / others)) {
        return false;
    }
    v->depth = others * tile;
    return true;
}

/* Are the weights read where they lie: all that is summed over side by side in their last dims? Rows should not meet in
 * the same places of a cache: those of constants are laid apart. */
static bool weights_are_direct(uir_convolution *v) {
    const uir_loop_expression *e = EXPRESSION(v->f, v->p.raw[1]);
    if (e->kind != UIR_LOOP_LOAD || e->has_fill) return false;
    const uir_loop_tensor *t = &v->f->tensors.data[e->load.tensor];
    int64_t bytes = (int64_t)uir_dtype_bits(t->dtype) / 8, extent;
    if (t->rank < v->depth_count) return false;
    for (uint32_t i = 0; i < v->depth_count; i++) {
        uint32_t d = t->rank - v->depth_count + i;
        uir_symbol symbol;
        if (!uir_dim_is_symbol(v->f->dims, e->load.indices[d], &symbol) ||
            symbol.id != STATEMENT(v->f, v->p.c.update)->iters[v->depths[i].axis].symbol.id ||
            !uir_dim_equal(t->extents[d], v->depths[i].extent) || !convolution_known(v, t->extents[d], &extent))
            return false;
        bytes *= extent;
    }
    for (uint32_t d = 0; d + v->depth_count < t->rank; d++)
        for (uint32_t i = 0; i < v->depth_count; i++)
            if (mentions_iter(v, e->load.indices[d], v->depths[i].axis)) return false;
    v->lays_apart = v->channels.axis != NONE && bytes % SAME_SET == 0;
    return !v->lays_apart || uir_contraction_is_constant(&v->p.c, e->load.tensor);
}

/* How wide lines may be of which so many lie in so many bytes on chip. */
static int64_t widest(const uir_convolution *v, int64_t height, int64_t room) {
    const uir_contraction_plan *p = &v->p;
    int64_t state = (int64_t)uir_dtype_bits(v->f->tensors.data[p->c.tensor].dtype) / 8, channels = 1;
    int64_t image = (int64_t)uir_dtype_bits(p->dtypes[0]) / 8, weights = (int64_t)uir_dtype_bits(p->dtypes[1]) / 8;
    int64_t after = p->c.after_count, pixel, fixed = 64 * (2 * after + 8);
    if (v->by_taps) {
        int64_t rows = (height - 1) * v->down.stride + uir_convolution_reach(&v->down);
        int64_t more = (uir_convolution_reach(&v->across) - 1) / v->across.stride;
        pixel = rows * v->across.stride * image + height * (2 * state + 8 * after);
        return (room - fixed - rows * v->across.stride * more * image) / pixel;
    }
    (void)convolution_known(v, v->channels.tile, &channels);
    if (EXPRESSION(v->f, p->raw[0])->kind != UIR_LOOP_LOAD) image *= 4; /* what leads to it */
    if (EXPRESSION(v->f, p->raw[1])->kind != UIR_LOOP_LOAD) weights *= 4;
    pixel = state * channels + image * v->depth + 8 * after;
    fixed += image * v->depth * PAD;
    if (v->copies_weights) fixed += weights * channels * (v->depth + PAD);
    return (room - fixed) / (pixel * height);
}

/* What a unit costs, in multiplications by a block's row: those that it makes, what it copies, its start. */
static uir_dim cost_of_unit(const uir_convolution *v, int64_t height) {
    uir_dims *dims = v->f->dims;
    int64_t channels = 1, rows = (height - 1) * v->down.stride + uir_convolution_reach(&v->down);
    if (v->by_taps) {
        uir_dim vectors = uir_dim_ceildiv(dims, v->pixels.extent, uir_convolution_number(v, BLOCK / 2));
        int64_t each = 2 * height * v->down.count * v->across.count + 4 * v->across.stride * rows;
        return uir_dim_add(dims, uir_dim_mul(dims, vectors, uir_convolution_number(v, each)),
                           uir_convolution_number(v, UNIT_VECTORS));
    }
    (void)convolution_known(v, v->channels.tile, &channels);
    uir_dim pixels = uir_dim_mul(dims, v->pixels.extent, uir_convolution_number(v, height));
    pixels = uir_dim_align(dims, pixels, uir_convolution_number(v, BLOCK));
    return uir_dim_add(dims, uir_dim_mul(dims, pixels, uir_convolution_number(v, channels + 12)),
                       uir_convolution_number(v, UNIT_COST / v->depth));
}

static uir_status choose_tiles(uir_convolution *v, bool *out_fits) {
    static const int64_t heights[] = {64, 32, 16, 8, 4, 2, 1}, widths[] = {256, 128, 64, 32, 16};
    uir_loop_function *f = v->f;
    uir_dims *dims = f->dims;
    int64_t width, height;
    bool fixed = convolution_known(v, v->pixels.extent, &width);
    uir_contraction_room room = uir_contraction_plan_room(&v->p);
    *out_fits = false;
    if (!v->whole) {
        v->lines.tile = uir_convolution_number(v, 1);
        v->lines.split = v->lines.axis != NONE;
        for (size_t i = 0; i < sizeof widths / sizeof widths[0] && !*out_fits; i++) {
            bool last = i + 1 == sizeof widths / sizeof widths[0];
            if (widths[i] > widest(v, 1, last ? room.most : room.near)) continue;
            v->pixels.tile = uir_convolution_number(v, widths[i]);
            v->pixels.split = v->pixels.guarded = true;
            *out_fits = true;
        }
        return UIR_STATUS_OK;
    }
    if (fixed && width > widest(v, 1, room.near)) return UIR_STATUS_OK;
    *out_fits = true;
    if (!fixed) {
        uir_condition any = {UIR_RELATION_GE, v->pixels.extent, uir_convolution_number(v, 1)};
        UIR_TRY(uir_vector_push(&f->arena, &f->requires_, any));
    }
    if (v->lines.axis == NONE) return UIR_STATUS_OK;
    int64_t limit = heights[0];
    uir_loop_size tile;
    bool high = convolution_known(v, v->lines.extent, &height);
    while ((high && limit / 2 >= height) || (fixed && width > widest(v, limit, room.near))) limit /= 2;
    uir_symbol_facts facts = {1, limit, 1, {0}};
    UIR_TRY(uir_contraction_plan_fresh_name(f, "th", &tile.name));
    UIR_TRY(uir_dims_add_symbol(dims, tile.name, strlen(tile.name), facts, &tile.symbol));
    UIR_TRY(uir_vector_push(&f->arena, &f->tiles, tile));
    v->lines.tile = uir_dim_symbol(dims, tile.symbol);
    v->lines.split = v->lines.guarded = true;
    uir_dim units = uir_dim_ceildiv(dims, v->channels.extent, v->channels.tile);
    for (uint32_t a = 0; a < v->p.c.axis_count; a++)
        if (!uir_convolution_span_of(v, a)) units = uir_dim_mul(dims, units, v->p.c.axes[a].extent);
    for (size_t i = 0; i < sizeof heights / sizeof heights[0]; i++) {
        if (heights[i] > limit) continue;
        uir_dim tiles = uir_dim_ceildiv(dims, v->lines.extent, uir_convolution_number(v, heights[i]));
        uir_icandidate row = {.cost = cost_of_unit(v, heights[i]), .units = uir_dim_mul(dims, units, tiles)};
        UIR_TRY_ALLOCATE(row.tiles, uir_arena_allocate_array(&f->arena, 1, sizeof *row.tiles));
        row.tiles[0] = uir_convolution_number(v, heights[i]);
        if (!fixed) {
            uir_iatom fits = {.kind = UIR_IATOM_RELATION,
                              .condition = {UIR_RELATION_LE, v->pixels.extent,
                                            uir_convolution_number(v, widest(v, heights[i], room.near))}};
            UIR_TRY_ALLOCATE(row.guard.atoms, uir_arena_copy(&f->arena, &fits, sizeof fits));
            row.guard.count = 1;
        }
        if (!row.cost.id || !row.units.id) return UIR_STATUS_OUT_OF_MEMORY;
        UIR_TRY(uir_vector_push(&f->arena, &f->candidates, row));
    }
    return UIR_STATUS_OK;
}

/* Weights are rows here: mma's first factor, which may be of fewer dtypes than its second. */
static void weigh_rows(uir_convolution *v) {
    uir_contraction_plan *p = &v->p;
    if (uir_contraction_multiplies(p->device, v->f->tensors.data[p->c.tensor].dtype, p->dtypes[1], false)) return;
    p->raw[1] = p->c.factors[1];
    p->dtypes[1] = EXPRESSION(v->f, p->raw[1])->dtype;
}

/* Windows without an outside may be read past it where the last tile is in part: those pixels are not computed. */
static uir_status shape(uir_convolution *v, uir_arena *arena, bool *out_is, bool *out_fits) {
    if (uir_contraction_find(v->f, 0, NULL, arena, NULL, &v->p.c) != UIR_STATUS_OK) return UIR_STATUS_OK;
    UIR_TRY(recognise(v, out_is));
    if (!*out_is) return UIR_STATUS_OK;
    *out_is = choose_depth(v) && uir_contraction_plan_choose_dtypes(&v->p) == UIR_STATUS_OK;
    if (*out_is) weigh_rows(v);
    if (!*out_is) return UIR_STATUS_OK;
    v->by_taps = goes_by_taps(v);
    v->copies_weights = !v->by_taps && !weights_are_direct(v);
    even_tile(v, &v->channels, CHANNELS);
    UIR_TRY(choose_tiles(v, out_fits));
    if (!*out_fits) return UIR_STATUS_OK;
    return uir_convolution_place(v);
}

static uir_status build(const uir_loop_function *naive, const uir_device *device, bool whole, uir_text *steps,
                        uir_diagnostics *diagnostics, uir_loop_list *out, bool *out_is, bool *out_fits) {
    uir_arena arena;
    uir_convolution v = {.whole = whole, .p = {.device = device, .steps = steps, .products = 1}};
    *out_is = *out_fits = false;
    UIR_TRY(uir_loop_clone(naive, &v.f));
    uir_arena_init(&arena, &naive->allocator);
    v.p.f = v.f;
    uir_status status = shape(&v, &arena, out_is, out_fits);
    uir_arena_deinit(&arena);
    if (status == UIR_STATUS_OK && *out_is && *out_fits) status = uir_loop_verify(v.f, diagnostics);
    if (status == UIR_STATUS_OK && *out_is && *out_fits) return uir_loop_list_add(out, v.f, NULL);
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
    if (!*out_taken || (fits && !out->variants[out->count - 1].function->requires_.count)) return UIR_STATUS_OK;
    return build(function, device, false, steps, diagnostics, out, &is, out_taken);
}
