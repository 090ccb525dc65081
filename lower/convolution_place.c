/* Carrying out what was decided for a convolution: loops over tiles, blocks at their places, what is on chip. */
#include "lower/convolution_plan.h"

#include <stdio.h>
#include <string.h>

#define STATEMENT(f, id)  (&(f)->statements.data[id])
#define EXPRESSION(f, id) (&(f)->expressions.data[id])
#define NONE              UIR_LOOP_NONE

enum { MAX_PARALLEL = 4 };

/* ---- places ---- */
static uir_dim coordinate(uir_convolution *v, uint32_t axis) {
    const uir_convolution_span *s = uir_convolution_span_of(v, axis);
    uir_dims *dims = v->f->dims;
    if (!s) return v->p.at[axis];
    return s->split ? uir_dim_add(dims, uir_dim_mul(dims, s->outer, s->tile), s->inner) : s->inner;
}

static uir_status guard(uir_convolution *v, uir_loop_statement *block, const uir_convolution_span *s) {
    if (!s->guarded) return UIR_STATUS_OK;
    return uir_contraction_plan_add_bound(v->f, block, coordinate(v, s->axis), s->extent);
}

/* A vectorised loop over a tile around what comes next. */
static uir_status open_tile(uir_convolution *v, uir_convolution_span *s, uint32_t *under) {
    if (s->axis == NONE) return UIR_STATUS_OK;
    return uir_contraction_plan_add_loop(v->f, s->loop, UIR_LOOP_VECTORISED, s->tile, *under, under, &s->inner);
}

/* The place in a tile: a variable of the block; its bounds go to the block's conditions. */
static uir_status local_place(uir_convolution *v, uir_loop_statement *block, const uir_convolution_span *s, bool reduce,
                              uir_dim *out) {
    *out = uir_convolution_number(v, 0);
    if (s->axis == NONE) return UIR_STATUS_OK;
    UIR_TRY(uir_contraction_plan_add_iter(v->f, block, s->local, s->tile, reduce, s->inner, out));
    return guard(v, block, s);
}

static void bind_axes(uir_convolution *v, uir_loop_statement *block, const uint32_t *axes) {
    for (uint32_t i = 0; i < block->iter_count; i++) block->iters[i].value = coordinate(v, axes[i]);
}

/* ---- parts ---- */
static uir_status place_init(uir_convolution *v, uint32_t under) {
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
static uir_status place_copy(uir_convolution *v, uint32_t which, uint32_t under) {
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
static uir_status load_tile(uir_convolution *v, uint32_t which, const uir_loop_access *access, uint32_t *out) {
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

static uir_status place_update(uir_convolution *v, uint32_t under) {
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
    STATEMENT(f, c->update)->uses |= 1u << UIR_LOOP_USE_MMA;
    UIR_TRY(uir_contraction_set_apart(f, v->columns, 2));
    uint32_t summed = 0;
    for (uint32_t i = 0; i < v->depth_count; i++) summed += v->depths[i].axis != NONE;
    if (v->copies_weights) return uir_contraction_set_apart(f, v->weights, v->depth_count);
    if (!v->lays_apart) return UIR_STATUS_OK;
    return uir_contraction_set_apart(f, uir_convolution_load_in(v, left)->load.tensor, summed ? summed : 1);
}

/* ---- by taps ---- */
/* Lines of the image as far as the taps reach, zeros outside. Places in a line that lie a stride apart lie together. */
static uir_status place_lines(uir_convolution *v, uint32_t under) {
    uir_loop_function *f = v->f;
    uir_dims *dims = f->dims;
    const uir_contraction *c = &v->p.c;
    const uir_loop_tensor *lines = &f->tensors.data[v->columns];
    static const char *const names[2][3] = {{"ir", "ip", "ic"}, {"lr", "lp", "lc"}};
    uir_loop_statement block = {.kind = UIR_LOOP_STATEMENT_BLOCK, .first_child = NONE, .next = NONE};
    uir_loop_statement store = {
        .kind = UIR_LOOP_STATEMENT_STORE, .first_child = NONE, .next = NONE, .target_count = 1, .value_count = 1};
    uint32_t count = uir_dims_symbol_count(dims), id;
    uir_dim *replacements, loops[3], start;
    UIR_TRY_ALLOCATE(replacements, uir_arena_allocate_array(c->arena, count + 1, sizeof *replacements));
    for (uint32_t a = 0; a < c->axis_count; a++) {
        const uir_loop_iter iter = STATEMENT(f, c->update)->iters[a];
        uir_convolution_span *s = uir_convolution_span_of(v, a);
        uir_dim *to = &replacements[iter.symbol.id];
        *to = uir_convolution_number(v, 0);
        if (!s) {
            UIR_TRY(uir_contraction_plan_add_iter(f, &block, iter.name, iter.extent, false, v->p.at[a], to));
        } else if (s->split) {
            UIR_TRY(uir_contraction_plan_add_iter(f, &block, iter.name, uir_dim_ceildiv(dims, s->extent, s->tile),
                                                  false, s->outer, &start));
            *to = uir_dim_mul(dims, start, s->tile);
        }
    }
    store.targets[0].tensor = v->columns;
    uir_dim extents[3] = {lines->extents[0], lines->extents[1], lines->extents[2]};
    for (uint32_t d = 0; d < 3; d++) {
        UIR_TRY(
            uir_contraction_plan_add_loop(f, names[0][d], UIR_LOOP_VECTORISED, extents[d], under, &under, &loops[d]));
        UIR_TRY(uir_contraction_plan_add_iter(f, &block, names[1][d], extents[d], false, loops[d],
                                              &store.targets[0].indices[d]));
    }
    UIR_TRY(uir_loop_substitute(f, c->factors[0], replacements, count, &store.values[0]));
    uir_loop_expression load = *EXPRESSION(f, store.values[0]);
    const uir_dim *at = store.targets[0].indices;
    uir_dim place = uir_dim_add(dims, uir_dim_mul(dims, at[2], uir_convolution_number(v, v->across.stride)), at[1]);
    load.load.indices[v->across.dim] = uir_dim_add(dims, load.load.indices[v->across.dim], place);
    if (v->down.dim != NONE) load.load.indices[v->down.dim] = uir_dim_add(dims, load.load.indices[v->down.dim], at[0]);
    load.has_fill = true; /* zeros */
    store.values[0] = f->expressions.count;
    UIR_TRY(uir_vector_push(&f->arena, &f->expressions, load));
    UIR_TRY(uir_contraction_plan_add_statement(f, &store, &block.first_child));
    block.name = f->tensors.data[v->columns].name;
    UIR_TRY(uir_contraction_plan_add_statement(f, &block, &id));
    uir_contraction_plan_append(f, under, id);
    return UIR_STATUS_OK;
}

/* Tap after tap, each over all pixels. */
static uir_status place_taps(uir_convolution *v, uint32_t under) {
    uir_loop_function *f = v->f;
    uir_dims *dims = f->dims;
    const uir_contraction *c = &v->p.c;
    uint32_t axes[UIR_LOOP_MAX_ITERS];
    uir_loop_access lines = {.tensor = v->columns}, sums = {.tensor = v->sums};
    uir_dim taps[2] = {uir_convolution_number(v, 0), uir_convolution_number(v, 0)};
    for (uint32_t i = 0; i < v->depth_count; i++) {
        uir_convolution_span *s = &v->depths[i];
        UIR_TRY(uir_contraction_plan_add_loop(f, s->loop, UIR_LOOP_UNROLLED, s->extent, under, &under, &s->inner));
    }
    UIR_TRY(open_tile(v, &v->lines, &under));
    UIR_TRY(open_tile(v, &v->pixels, &under));
    uir_loop_statement block = *STATEMENT(f, c->update);
    for (uint32_t i = 0; i < block.iter_count; i++) axes[i] = i;
    bind_axes(v, &block, axes);
    block.uses = 0;
    sums.indices[0] = uir_convolution_number(v, 0);
    UIR_TRY(local_place(v, &block, &v->lines, false, &sums.indices[1]));
    UIR_TRY(local_place(v, &block, &v->pixels, false, &sums.indices[2]));
    for (uint32_t i = 0; i < 2; i++) {
        const uir_convolution_taps *t = i ? &v->across : &v->down;
        if (t->axis != NONE)
            taps[i] = uir_dim_mul(dims, uir_dim_symbol(dims, block.iters[t->axis].symbol),
                                  uir_convolution_number(v, t->dilation));
    }
    uir_dim stride = uir_convolution_number(v, v->across.stride);
    lines.indices[0] =
        uir_dim_add(dims, uir_dim_mul(dims, sums.indices[1], uir_convolution_number(v, v->down.stride)), taps[0]);
    lines.indices[1] = uir_dim_mod(dims, taps[1], stride);
    lines.indices[2] = uir_dim_add(dims, sums.indices[2], uir_dim_floordiv(dims, taps[1], stride));
    uir_loop_expression load = {.kind = UIR_LOOP_LOAD, .dtype = f->tensors.data[v->columns].dtype, .load = lines};
    uint32_t right = f->expressions.count;
    UIR_TRY(uir_vector_push(&f->arena, &f->expressions, load));
    uir_loop_statement *sum = STATEMENT(f, c->sum);
    uir_loop_expression mul = *EXPRESSION(f, sum->values[0]);
    mul.arguments[0] = right, mul.arguments[1] = c->factors[1];
    sum->values[0] = f->expressions.count;
    UIR_TRY(uir_vector_push(&f->arena, &f->expressions, mul));
    sum->targets[0] = sums;
    *STATEMENT(f, c->update) = block;
    uir_contraction_plan_append(f, under, c->update);
    return UIR_STATUS_OK;
}

/* Loads of what is on chip: the sums of the channel in work, a line of what was made of them. */
static uir_status use_tiles(uir_convolution *v, uint32_t id, const uir_dim *at, uint32_t *out) {
    uir_loop_function *f = v->f;
    uir_loop_expression e = *EXPRESSION(f, id);
    bool changed = false;
    *out = id;
    for (uint32_t i = 0; e.kind == UIR_LOOP_CALL && i < e.argument_count; i++) {
        uint32_t argument = e.arguments[i];
        UIR_TRY(use_tiles(v, argument, at, &e.arguments[i]));
        changed |= argument != e.arguments[i];
    }
    if (e.kind == UIR_LOOP_LOAD && v->p.local[e.load.tensor] != NONE) {
        const uir_dim *first = e.load.tensor == v->p.c.tensor ? at : at + 1;
        e.load = (uir_loop_access){.tensor = v->p.local[e.load.tensor], .indices = {first[0], first[1], at[2]}};
        changed = true;
    }
    if (!changed) return UIR_STATUS_OK;
    *out = f->expressions.count;
    return uir_vector_push(&f->arena, &f->expressions, e);
}

static uir_status place_after(uir_convolution *v, uint32_t under) {
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
        at[0] = uir_convolution_number(v, 0);
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
static uir_status make_tiles(uir_convolution *v) {
    uir_loop_function *f = v->f;
    uir_contraction_plan *p = &v->p;
    uint32_t rank = 0;
    uir_dim columns[UIR_CONVOLUTION_MAX_DEPTHS + 2], weights[UIR_CONVOLUTION_MAX_DEPTHS + 1];
    p->local_count = f->tensors.count;
    UIR_TRY_ALLOCATE(p->local, uir_arena_allocate_array(p->c.arena, p->local_count + 1, sizeof *p->local));
    for (uint32_t i = 0; i < p->local_count; i++) p->local[i] = NONE;
    UIR_TRY(uir_contraction_plan_add_tensor(p, UIR_SPACE_ACCUMULATORS, "sums", f->tensors.data[p->c.tensor].dtype,
                                            (uir_dim[]){v->channels.tile, v->lines.tile, v->pixels.tile}, 3, &v->sums));
    p->local[p->c.tensor] = v->sums;
    weights[0] = v->channels.tile;
    for (; rank < v->depth_count; rank++) weights[rank + 1] = columns[rank] = v->depths[rank].tile;
    columns[rank++] = v->lines.tile;
    columns[rank++] = v->pixels.tile;
    if (v->by_taps) {
        uir_dims *dims = f->dims;
        uir_dim down = uir_dim_mul(dims, v->lines.tile, uir_convolution_number(v, v->down.stride));
        down = uir_dim_add(dims, down, uir_convolution_number(v, uir_convolution_reach(&v->down) - v->down.stride));
        uir_dim across = uir_convolution_number(v, (uir_convolution_reach(&v->across) - 1) / v->across.stride);
        uir_dim lines[] = {down, uir_convolution_number(v, v->across.stride),
                           uir_dim_add(dims, v->pixels.tile, across)};
        UIR_TRY(uir_contraction_plan_add_tensor(p, UIR_SPACE_RIGHT, "lines", p->dtypes[0], lines, 3, &v->columns));
    } else {
        UIR_TRY(
            uir_contraction_plan_add_tensor(p, UIR_SPACE_RIGHT, "windows", p->dtypes[0], columns, rank, &v->columns));
    }
    if (v->copies_weights)
        UIR_TRY(uir_contraction_plan_add_tensor(p, UIR_SPACE_LEFT, "weights", p->dtypes[1], weights, rank - 1,
                                                &v->weights));
    for (uint32_t i = 0; i < p->c.after_count; i++) {
        uint32_t target = STATEMENT(f, uir_contraction_plan_statement_of(f, p->c.after[i].id))->targets[0].tensor;
        uir_loop_tensor t = f->tensors.data[target];
        if (t.role != UIR_LOOP_ROLE_TEMP) continue;
        UIR_TRY(uir_contraction_plan_add_tensor(p, UIR_SPACE_SCRATCH, t.name, t.dtype,
                                                (uir_dim[]){v->lines.tile, v->pixels.tile}, 2, &p->local[target]));
    }
    return UIR_STATUS_OK;
}

static uir_status open_tiles_of(uir_convolution *v, uir_convolution_span *s, const char *name, uint32_t *under) {
    if (!s->split) return UIR_STATUS_OK;
    UIR_TRY(uir_contraction_plan_fresh_name(v->f, name, &name));
    return uir_contraction_plan_add_loop(v->f, name, UIR_LOOP_PARALLEL, uir_dim_ceildiv(v->f->dims, s->extent, s->tile),
                                         *under, under, &s->outer);
}

static uir_status open_outer(uir_convolution *v, uint32_t *under) {
    const uir_contraction *c = &v->p.c;
    uint32_t tiled = (uint32_t)v->channels.split + v->lines.split + v->pixels.split;
    for (uint32_t pass = 0; pass < 2; pass++) { /* parallel ones, then those for which no place was left */
        uint32_t taken = 0;
        for (uint32_t a = 0; a < c->axis_count; a++) {
            const char *name;
            if (c->axes[a].class == UIR_CONTRACTION_K || uir_convolution_span_of(v, a)) continue;
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

static void describe(uir_convolution *v) {
    static const char *const words[] = {"channels", "lines", "pixels", "depth"};
    const uir_convolution_span *spans[] = {&v->channels, &v->lines, &v->pixels, &v->depths[0]};
    const char *name = v->f->tensors.data[v->p.c.tensor].name;
    uir_text text;
    uir_text_init(&text, &v->f->allocator);
    for (uint32_t i = 0; i < 4; i++) {
        if (!spans[i]->split) continue;
        uir_text_append_format(&text, "split %s of %s, the %s, by ",
                               STATEMENT(v->f, v->p.c.update)->iters[spans[i]->axis].name, name, words[i]);
        uir_dim_print(v->f->dims, spans[i]->tile, &text);
        uir_text_append_string(&text, "; ");
    }
    uir_contraction_plan_say(&v->p, "%s", v->whole ? "for whole lines:" : "for parts of a line:");
    uir_contraction_plan_say(&v->p, "%s: %skeep its sums on the chip", name, text.data ? text.data : "");
    uir_text_deinit(&text);
    if (v->by_taps)
        uir_contraction_plan_say(&v->p, "%s: read the image through lines on the chip, unroll the taps", name);
    else
        uir_contraction_plan_say(&v->p, "%s: read the image through windows on the chip, a column a pixel; mma", name);
    if (v->copies_weights) uir_contraction_plan_say(&v->p, "%s: read the weights through rows on the chip", name);
    uir_contraction_plan_say(&v->p, "%s: %u blocks after it are computed at the channels of its tile", name,
                             v->p.c.after_count);
}

uir_status uir_convolution_place(uir_convolution *v) {
    uir_loop_function *f = v->f;
    uint32_t unit = NONE, inside;
    UIR_TRY(make_tiles(v));
    describe(v);
    f->first = NONE;
    UIR_TRY(open_outer(v, &unit));
    if (!v->by_taps) UIR_TRY(place_init(v, unit));
    inside = unit;
    if (v->depth_count && v->depths[0].split) {
        const char *name;
        UIR_TRY(uir_contraction_plan_fresh_name(f, "ko", &name));
        UIR_TRY(uir_contraction_plan_add_loop(f, name, UIR_LOOP_SERIAL,
                                              uir_dim_ceildiv(f->dims, v->depths[0].extent, v->depths[0].tile), inside,
                                              &inside, &v->depths[0].outer));
    }
    if (v->by_taps) {
        UIR_TRY(place_lines(v, inside));
        UIR_TRY(place_init(v, inside));
        UIR_TRY(place_taps(v, inside));
    } else {
        UIR_TRY(place_copy(v, 0, inside));
        if (v->copies_weights) UIR_TRY(place_copy(v, 1, inside));
        UIR_TRY(place_update(v, inside));
    }
    UIR_TRY(place_after(v, unit));
    return uir_contraction_plan_drop_tensors(&v->p);
}
