/* Carrying out what was decided for a contraction: loops over tiles, blocks at their places in them, tiles on chip. */
#include "lower/contraction_plan.h"
#include "lower/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define STATEMENT(f, id)  (&(f)->statements.data[id])
#define EXPRESSION(f, id) (&(f)->expressions.data[id])
#define NONE              UIR_LOOP_NONE

/* ---- small pieces ---- */
static bool name_taken(const uir_loop_function *f, const char *name) {
    for (uint32_t i = 0; i < f->sizes.count; i++)
        if (!strcmp(f->sizes.data[i].name, name)) return true;
    for (uint32_t i = 0; i < f->tiles.count; i++)
        if (!strcmp(f->tiles.data[i].name, name)) return true;
    for (uint32_t i = 0; i < f->tensors.count; i++)
        if (!strcmp(f->tensors.data[i].name, name)) return true;
    for (uint32_t i = 0; i < f->statements.count; i++) {
        const uir_loop_statement *s = STATEMENT(f, i);
        if (s->name && !strcmp(s->name, name)) return true;
        for (uint32_t k = 0; s->kind == UIR_LOOP_STATEMENT_BLOCK && k < s->iter_count; k++)
            if (!strcmp(s->iters[k].name, name)) return true;
    }
    return false;
}

uir_status uir_contraction_plan_fresh_name(uir_loop_function *f, const char *base, const char **out) {
    char name[128];
    snprintf(name, sizeof name, "%.100s", base);
    for (uint32_t i = 2; name_taken(f, name); i++) snprintf(name, sizeof name, "%.100s_%u", base, i);
    UIR_TRY_ALLOCATE(*out, uir_arena_copy_string(&f->arena, name, strlen(name)));
    return UIR_STATUS_OK;
}

uir_status uir_contraction_plan_add_statement(uir_loop_function *f, const uir_loop_statement *s, uint32_t *out) {
    *out = f->statements.count;
    return uir_vector_push(&f->arena, &f->statements, *s);
}

void uir_contraction_plan_append(uir_loop_function *f, uint32_t under, uint32_t id) {
    uint32_t *slot = under == NONE ? &f->first : &STATEMENT(f, under)->first_child;
    while (*slot != NONE) slot = &STATEMENT(f, *slot)->next;
    *slot = id;
    STATEMENT(f, id)->next = NONE;
}

/* A loop 0..extent-1 at the end of a list. */
uir_status uir_contraction_plan_add_loop(uir_loop_function *f, const char *name, uir_loop_kind kind, uir_dim extent,
                                         uint32_t under, uint32_t *out, uir_dim *out_value) {
    uir_loop_statement s = {.kind = UIR_LOOP_STATEMENT_FOR,
                            .first_child = NONE,
                            .next = NONE,
                            .name = name,
                            .loop_kind = kind,
                            .min = uir_dim_const(f->dims, 0),
                            .extent = extent};
    uir_symbol_facts facts = {0, UIR_DIM_UNBOUNDED, 1, extent};
    if (!extent.id || !s.min.id) return UIR_STATUS_OUT_OF_MEMORY;
    UIR_TRY(uir_dims_add_symbol(f->dims, name, strlen(name), facts, &s.symbol));
    *out_value = uir_dim_symbol(f->dims, s.symbol);
    UIR_TRY(uir_contraction_plan_add_statement(f, &s, out));
    uir_contraction_plan_append(f, under, *out);
    return out_value->id ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
}

uir_status uir_contraction_plan_add_tensor(uir_contraction_plan *p, uint32_t role, const char *base, uir_dtype dtype,
                                           const uir_dim *extents, uint32_t rank, uint32_t *out) {
    uir_loop_function *f = p->f;
    uir_loop_tensor t = {.dtype = dtype, .rank = rank, .role = UIR_LOOP_ROLE_TEMP};
    t.space = uir_lower_space(p->device, role);
    if (!t.space) return uir_contraction_refuse(&p->c, "the device has no space for what a tile keeps on the chip");
    UIR_TRY(uir_contraction_plan_fresh_name(f, base, &t.name));
    for (uint32_t d = 0; d < rank; d++) t.extents[d] = extents[d];
    *out = f->tensors.count;
    return uir_vector_push(&f->arena, &f->tensors, t);
}

uir_status uir_contraction_plan_add_iter(uir_loop_function *f, uir_loop_statement *block, const char *name,
                                         uir_dim extent, bool reduce, uir_dim value, uir_dim *out) {
    uir_loop_iter iter = {.name = name, .reduce = reduce, .extent = extent, .value = value};
    uir_symbol_facts facts = {0, UIR_DIM_UNBOUNDED, 1, extent};
    if (block->iter_count == UIR_LOOP_MAX_ITERS) return UIR_STATUS_UNSUPPORTED;
    UIR_TRY(uir_dims_add_symbol(f->dims, name, strlen(name), facts, &iter.symbol));
    block->iters[block->iter_count++] = iter;
    *out = uir_dim_symbol(f->dims, iter.symbol);
    return out->id && value.id ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
}

bool uir_contraction_plan_is_const(uir_contraction_plan *p, uir_dim dim, int64_t *out) {
    return uir_dim_is_const(p->f->dims, dim, out);
}

uir_dim uir_contraction_plan_number(uir_contraction_plan *p, int64_t value) {
    return uir_dim_const(p->f->dims, value);
}

/* ---- a block's place: iteration variables follow axes, and tiles are addressed by local ones ---- */
/* Where along an axis the block works. */
static uir_dim coordinate(uir_contraction_plan *p, uint32_t axis) {
    uir_dims *dims = p->f->dims;
    uir_contraction_side *s = &p->sides[p->c.axes[axis].class];
    if (p->c.axes[axis].class == UIR_CONTRACTION_BATCH || s->axis != axis) return p->at[axis];
    return s->split ? uir_dim_add(dims, uir_dim_mul(dims, s->outer, s->tile), s->inner) : s->inner;
}

uir_status uir_contraction_plan_add_bound(uir_loop_function *f, uir_loop_statement *block, uir_dim at, uir_dim extent) {
    uir_condition *conditions;
    UIR_TRY_ALLOCATE(conditions, uir_arena_allocate_array(&f->arena, block->condition_count + 1, sizeof *conditions));
    for (uint32_t i = 0; i < block->condition_count; i++) conditions[i] = block->conditions[i];
    conditions[block->condition_count++] = (uir_condition){UIR_RELATION_LT, at, extent};
    block->conditions = conditions;
    return UIR_STATUS_OK;
}

uir_status uir_contraction_plan_guard(uir_contraction_plan *p, uir_loop_statement *block, uint32_t class) {
    uir_contraction_side *s = &p->sides[class];
    if (s->axis == NONE || !s->guarded) return UIR_STATUS_OK;
    return uir_contraction_plan_add_bound(p->f, block, coordinate(p, s->axis), s->extent);
}

/* Index of a tile along a class: its local variable, added to the block; 0 where there is no such axis. */
uir_status uir_contraction_plan_local_index(uir_contraction_plan *p, uir_loop_statement *block, uint32_t class,
                                            bool reduce, uir_dim *out) {
    uir_contraction_side *s = &p->sides[class];
    *out = uir_contraction_plan_number(p, 0);
    if (s->axis == NONE) return UIR_STATUS_OK;
    return uir_contraction_plan_add_iter(p->f, block, s->local_name, s->tile, reduce, s->inner, out);
}

/* Loads of tensors that have a tile on chip read the tile. */
static uir_status use_tiles(uir_contraction_plan *p, uint32_t id, uir_dim row, uir_dim column, uint32_t *out) {
    uir_loop_function *f = p->f;
    uir_loop_expression e = *EXPRESSION(f, id);
    bool changed = false;
    *out = id;
    for (uint32_t i = 0; e.kind == UIR_LOOP_CALL && i < e.argument_count; i++) {
        uint32_t argument = e.arguments[i];
        UIR_TRY(use_tiles(p, argument, row, column, &e.arguments[i]));
        changed |= argument != e.arguments[i];
    }
    if (e.kind == UIR_LOOP_LOAD && e.load.tensor < p->local_count && p->local[e.load.tensor] != NONE) {
        bool tile = p->wide[e.load.tensor];
        e.load.tensor = p->local[e.load.tensor];
        e.load.indices[0] = tile ? row : column;
        e.load.indices[1] = p->sides[UIR_CONTRACTION_N].axis == NONE ? uir_contraction_plan_number(p, 0) : column;
        changed = true;
    }
    if (!changed) return UIR_STATUS_OK;
    *out = f->expressions.count;
    return uir_vector_push(&f->arena, &f->expressions, e);
}

/* Values of the block's own iteration variables. */
static void bind_axes(uir_contraction_plan *p, uir_loop_statement *block, const uint32_t *axes) {
    for (uint32_t i = 0; i < block->iter_count; i++) block->iters[i].value = coordinate(p, axes[i]);
}

/* Vectorised loops over tiles around what comes next. */
uir_status uir_contraction_plan_open_tiles(uir_contraction_plan *p, const uint32_t *classes, uint32_t count,
                                           uint32_t *under) {
    for (uint32_t i = 0; i < count; i++) {
        uir_contraction_side *s = &p->sides[classes[i]];
        if (s->axis == NONE) continue;
        UIR_TRY(
            uir_contraction_plan_add_loop(p->f, s->loop_name, UIR_LOOP_VECTORISED, s->tile, *under, under, &s->inner));
    }
    return UIR_STATUS_OK;
}

uint32_t uir_contraction_plan_statement_of(const uir_loop_function *f, uint32_t block) {
    return STATEMENT(f, block)->first_child;
}

/* ---- the parts ---- */
uir_status uir_contraction_plan_place_init(uir_contraction_plan *p, uint32_t under) {
    static const uint32_t classes[] = {UIR_CONTRACTION_M, UIR_CONTRACTION_N};
    uir_loop_function *f = p->f;
    uir_dim row, column;
    uint32_t axes[UIR_LOOP_MAX_ITERS];
    UIR_TRY(uir_contraction_plan_open_tiles(p, classes, 2, &under));
    uir_loop_statement block = *STATEMENT(f, p->c.init);
    uir_loop_access *target = &STATEMENT(f, block.first_child)->targets[0];
    /* The init's own variables are the result's, in the order of its dims. */
    for (uint32_t i = 0; i < block.iter_count; i++) {
        for (uint32_t d = 0; d < f->tensors.data[p->c.tensor].rank; d++) {
            uir_symbol symbol;
            if (uir_dim_is_symbol(f->dims, target->indices[d], &symbol) && symbol.id == block.iters[i].symbol.id)
                axes[i] = p->c.tensor_axes[d];
        }
    }
    bind_axes(p, &block, axes);
    UIR_TRY(uir_contraction_plan_local_index(p, &block, UIR_CONTRACTION_M, false, &row));
    UIR_TRY(uir_contraction_plan_local_index(p, &block, UIR_CONTRACTION_N, false, &column));
    UIR_TRY(uir_contraction_plan_guard(p, &block, UIR_CONTRACTION_M));
    UIR_TRY(uir_contraction_plan_guard(p, &block, UIR_CONTRACTION_N));
    *target = (uir_loop_access){.tensor = p->sums, .indices = {row, column}};
    *STATEMENT(f, p->c.init) = block;
    uir_contraction_plan_append(f, under, p->c.init);
    return UIR_STATUS_OK;
}

/* A factor's block, copied or computed into its tile. */
uir_status uir_contraction_plan_place_copy(uir_contraction_plan *p, uint32_t which, uint32_t under) {
    const uint32_t of_a[] = {UIR_CONTRACTION_M, UIR_CONTRACTION_K}, of_b[] = {UIR_CONTRACTION_K, UIR_CONTRACTION_N};
    const uint32_t *classes = which ? of_b : of_a;
    uir_loop_function *f = p->f;
    const uir_loop_statement *update = STATEMENT(f, p->c.update);
    uir_loop_statement block = {.kind = UIR_LOOP_STATEMENT_BLOCK, .first_child = NONE, .next = NONE};
    uir_loop_statement store = {
        .kind = UIR_LOOP_STATEMENT_STORE, .first_child = NONE, .next = NONE, .target_count = 1, .value_count = 1};
    uint32_t count = uir_dims_symbol_count(f->dims), id, store_id;
    uir_dim *replacements, row, column;
    UIR_TRY(uir_contraction_plan_open_tiles(p, classes, 2, &under));
    UIR_TRY_ALLOCATE(replacements, uir_arena_allocate_array(p->c.arena, count + 1, sizeof *replacements));
    for (uint32_t i = 0; i < p->c.axis_count; i++) {
        uint32_t class = p->c.axes[i].class;
        if (class != UIR_CONTRACTION_BATCH && class != classes[0] && class != classes[1]) continue;
        UIR_TRY(uir_contraction_plan_add_iter(f, &block, update->iters[i].name, update->iters[i].extent, false,
                                              coordinate(p, i), &replacements[update->iters[i].symbol.id]));
    }
    UIR_TRY(uir_contraction_plan_local_index(p, &block, classes[0], false, &row));
    UIR_TRY(uir_contraction_plan_local_index(p, &block, classes[1], false, &column));
    UIR_TRY(uir_contraction_plan_guard(p, &block, classes[0]));
    UIR_TRY(uir_contraction_plan_guard(p, &block, classes[1]));
    UIR_TRY(uir_loop_substitute(f, p->raw[which], replacements, count, &store.values[0]));
    store.targets[0] = (uir_loop_access){.tensor = p->copies[which], .indices = {row, column}};
    UIR_TRY(uir_contraction_plan_add_statement(f, &store, &store_id));
    block.first_child = store_id;
    /* A tensor and its block may have one name. */
    block.name = f->tensors.data[p->copies[which]].name;
    UIR_TRY(uir_contraction_plan_add_statement(f, &block, &id));
    uir_contraction_plan_append(f, under, id);
    return UIR_STATUS_OK;
}

/* The second factor lies in panels of columns where that is decided here: a copy, or a constant. */
static uir_status lay_columns(uir_contraction_plan *p, const uir_loop_statement *block, const uir_dim *local) {
    uir_loop_function *f = p->f;
    if (p->copied[1]) {
        uir_loop_access access = {p->copies[1], {local[UIR_CONTRACTION_K], local[UIR_CONTRACTION_N]}};
        return uir_contraction_set_panels(f, access.tensor, p->device->mma_n, &access, 1, block);
    }
    uir_loop_access access = EXPRESSION(f, p->raw[1])->load;
    if (!uir_contraction_is_constant(&p->c, access.tensor)) return UIR_STATUS_OK;
    uint32_t column = uir_contraction_plan_dim_of(p, p->raw[1], p->sides[UIR_CONTRACTION_N].axis);
    return uir_contraction_set_panels(f, access.tensor, p->device->mma_n, &access, column, block);
}

uir_status uir_contraction_plan_place_update(uir_contraction_plan *p, uint32_t under) {
    static const uint32_t classes[] = {UIR_CONTRACTION_M, UIR_CONTRACTION_N, UIR_CONTRACTION_K};
    uir_loop_function *f = p->f;
    uint32_t axes[UIR_LOOP_MAX_ITERS], product[2];
    uir_dim local[4];
    UIR_TRY(uir_contraction_plan_open_tiles(p, classes, 3, &under));
    uir_loop_statement block = *STATEMENT(f, p->c.update);
    for (uint32_t i = 0; i < block.iter_count; i++) axes[i] = i;
    bind_axes(p, &block, axes);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t class = classes[i];
        bool needed = class != UIR_CONTRACTION_K || p->copied[0] || p->copied[1];
        if (needed)
            UIR_TRY(uir_contraction_plan_local_index(p, &block, class, class == UIR_CONTRACTION_K, &local[class]));
        UIR_TRY(uir_contraction_plan_guard(p, &block, class));
    }
    for (uint32_t k = 0; k < 2; k++) {
        product[k] = p->c.factors[k];
        if (!p->copied[k]) continue;
        uir_loop_expression load = {.kind = UIR_LOOP_LOAD, .dtype = p->dtypes[k]};
        load.load.tensor = p->copies[k];
        load.load.indices[0] = local[k ? UIR_CONTRACTION_K : UIR_CONTRACTION_M];
        load.load.indices[1] = local[k ? UIR_CONTRACTION_N : UIR_CONTRACTION_K];
        product[k] = f->expressions.count;
        UIR_TRY(uir_vector_push(&f->arena, &f->expressions, load));
        if (p->raw[k] != p->c.factors[k]) {
            uir_loop_expression cast = *EXPRESSION(f, p->c.factors[k]);
            cast.arguments[0] = product[k];
            product[k] = f->expressions.count;
            UIR_TRY(uir_vector_push(&f->arena, &f->expressions, cast));
        }
    }
    uir_loop_statement *sum = STATEMENT(f, p->c.sum);
    uir_loop_expression mul = *EXPRESSION(f, sum->values[0]);
    mul.arguments[0] = product[0], mul.arguments[1] = product[1];
    sum->values[0] = f->expressions.count;
    UIR_TRY(uir_vector_push(&f->arena, &f->expressions, mul));
    sum->targets[0] =
        (uir_loop_access){.tensor = p->sums, .indices = {local[UIR_CONTRACTION_M], local[UIR_CONTRACTION_N]}};
    *STATEMENT(f, p->c.update) = block;
    uir_contraction_plan_append(f, under, p->c.update);
    STATEMENT(f, p->c.update)->uses |= 1u << UIR_LOOP_USE_MMA;
    if (p->copied[0] && !p->given) UIR_TRY(uir_contraction_set_apart(f, p->copies[0], 1));
    return lay_columns(p, &block, local);
}

/* What follows, a row at a time; or by tiles. */
uir_status uir_contraction_plan_open_rows(uir_contraction_plan *p, uint32_t *under) {
    uir_loop_function *f = p->f;
    uir_contraction_side *m = &p->sides[UIR_CONTRACTION_M];
    const char *name;
    UIR_TRY(uir_contraction_plan_fresh_name(f, "row", &name));
    UIR_TRY(uir_contraction_plan_add_loop(f, name, UIR_LOOP_SERIAL, m->tile, *under, under, &m->inner));
    if (!m->guarded) return UIR_STATUS_OK;
    uir_loop_statement holder = {0};
    uint32_t id;
    UIR_TRY(uir_contraction_plan_guard(p, &holder, UIR_CONTRACTION_M));
    uir_loop_statement branch = {.kind = UIR_LOOP_STATEMENT_IF,
                                 .first_child = NONE,
                                 .next = NONE,
                                 .conditions = holder.conditions,
                                 .condition_count = holder.condition_count};
    UIR_TRY(uir_contraction_plan_add_statement(f, &branch, &id));
    uir_contraction_plan_append(f, *under, id);
    *under = id;
    return UIR_STATUS_OK;
}

/* The blocks that follow, under loops that are there: a row, or nothing. */
static uir_status place_blocks_after(uir_contraction_plan *p, uint32_t under) {
    static const uint32_t classes[] = {UIR_CONTRACTION_M, UIR_CONTRACTION_N};
    uir_loop_function *f = p->f;
    bool columns = p->sides[UIR_CONTRACTION_N].axis != NONE;
    bool by_rows = columns && !p->by_tiles;
    for (uint32_t i = 0; i < p->c.after_count; i++) {
        uint32_t inside = under, id = p->c.after[i].id;
        uir_dim row, column;
        UIR_TRY(uir_contraction_plan_open_tiles(p, by_rows ? classes + 1 : classes,
                                                by_rows   ? 1
                                                : columns ? 2
                                                          : 1,
                                                &inside));
        uir_loop_statement block = *STATEMENT(f, id);
        bind_axes(p, &block, p->c.after[i].axes);
        UIR_TRY(uir_contraction_plan_local_index(p, &block, UIR_CONTRACTION_M, false, &row));
        UIR_TRY(uir_contraction_plan_local_index(p, &block, UIR_CONTRACTION_N, false, &column));
        if (!by_rows) UIR_TRY(uir_contraction_plan_guard(p, &block, UIR_CONTRACTION_M));
        UIR_TRY(uir_contraction_plan_guard(p, &block, UIR_CONTRACTION_N));
        uir_loop_statement *s = STATEMENT(f, uir_contraction_plan_statement_of(f, id));
        uint32_t value;
        if (!columns) column = row; /* values lie along the rows */
        UIR_TRY(use_tiles(p, s->values[0], row, column, &value));
        s = STATEMENT(f, uir_contraction_plan_statement_of(f, id));
        s->values[0] = value;
        uint32_t target = s->targets[0].tensor;
        if (p->local[target] != NONE)
            s->targets[0] =
                (uir_loop_access){.tensor = p->local[target], .indices = {p->wide[target] ? row : column, column}};
        *STATEMENT(f, id) = block;
        uir_contraction_plan_append(f, inside, id);
    }
    return UIR_STATUS_OK;
}

uir_status uir_contraction_plan_place_after_in_rows(uir_contraction_plan *p, uint32_t *under) {
    UIR_TRY(uir_contraction_plan_open_rows(p, under));
    return place_blocks_after(p, *under);
}

uir_status uir_contraction_plan_place_after(uir_contraction_plan *p, uint32_t under) {
    bool by_rows = p->sides[UIR_CONTRACTION_N].axis != NONE && !p->by_tiles;
    if (by_rows && p->sides[UIR_CONTRACTION_M].axis != NONE) return uir_contraction_plan_place_after_in_rows(p, &under);
    return place_blocks_after(p, under);
}

/* ---- the whole ---- */
/* Tensors that nothing uses any more are gone. */
static void note_tensors(const uir_loop_function *f, uint32_t expression, bool *used) {
    const uir_loop_expression *e = EXPRESSION(f, expression);
    if (e->kind == UIR_LOOP_LOAD) used[e->load.tensor] = true;
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++) note_tensors(f, e->arguments[i], used);
}

static void note_list(const uir_loop_function *f, uint32_t id, bool *used) {
    for (; id != NONE; id = STATEMENT(f, id)->next) {
        const uir_loop_statement *s = STATEMENT(f, id);
        for (uint32_t i = 0; i < s->target_count; i++) used[s->targets[i].tensor] = true;
        for (uint32_t i = 0; i < s->value_count; i++) note_tensors(f, s->values[i], used);
        if (uir_loop_statement_get_row(s->kind)->children) note_list(f, s->first_child, used);
    }
}

uir_status uir_contraction_plan_drop_tensors(uir_contraction_plan *p) {
    uir_loop_function *f = p->f;
    bool *used;
    uint32_t *moved, count = 0;
    UIR_TRY_ALLOCATE(used, uir_arena_allocate_array(p->c.arena, f->tensors.count + 1, sizeof *used));
    UIR_TRY_ALLOCATE(moved, uir_arena_allocate_array(p->c.arena, f->tensors.count + 1, sizeof *moved));
    note_list(f, f->first, used);
    for (uint32_t i = 0; i < f->tensors.count; i++) {
        moved[i] = count;
        if (used[i] || f->tensors.data[i].role != UIR_LOOP_ROLE_TEMP) f->tensors.data[count++] = f->tensors.data[i];
    }
    f->tensors.count = count;
    for (uint32_t i = 0; i < f->expressions.count; i++)
        if (f->expressions.data[i].kind == UIR_LOOP_LOAD)
            f->expressions.data[i].load.tensor = moved[f->expressions.data[i].load.tensor];
    for (uint32_t i = 0; i < f->statements.count; i++)
        for (uint32_t t = 0; t < f->statements.data[i].target_count; t++)
            f->statements.data[i].targets[t].tensor = moved[f->statements.data[i].targets[t].tensor];
    return UIR_STATUS_OK;
}
