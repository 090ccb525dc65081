/* The tactic of contractions: tile m, n and k; keep a block of sums on chip; copy the factors' blocks; do what follows
 * row by row on the finished block. */
#include "lower/contraction_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define STATEMENT(f, id)  (&(f)->statements.data[id])
#define EXPRESSION(f, id) (&(f)->expressions.data[id])
#define NONE              UIR_LOOP_NONE

enum { WORKERS = 4, PANEL = 32, ROW_PAD = 16, MAX_PARALLEL = 4, SAME_SET = 2048, LINE = 16, UNKNOWN = 8 };

/* One of m, n, k: the axis that is tiled. */
typedef struct side {
    uint32_t axis; /* NONE: the contraction has no such axis */
    uir_dim extent, tile;
    bool split;           /* extent goes beyond one tile */
    bool guarded;         /* the last tile may be in part */
    uir_dim outer, inner; /* loop variables of now */
    const char *loop_name, *tile_name, *local_name;
} side;

typedef struct planner {
    uir_contraction c;
    uir_loop_function *f;
    const uir_device *device;
    uir_text *steps;
    side sides[4];                  /* by class; [BATCH] unused */
    uir_dim at[UIR_LOOP_MAX_ITERS]; /* per axis that is not tiled: its loop's variable */
    bool few;
    bool by_tiles; /* what follows works on whole tiles: an output has its columns along the rows */
    bool copied[2];
    uint32_t raw[2];     /* factors without the cast that mma makes itself */
    uir_dtype dtypes[2]; /* of the factors as mma reads them */
    uint32_t copies[2];  /* tensors */
    uint32_t sums;       /* tensor on chip */
    uint32_t *local;     /* per tensor: its tensor on chip, or NONE */
    uint32_t local_count;
    uint32_t first_row; /* local tensors from here on hold one row */
} planner;

static void say(planner *p, const char *format, ...) UIR_PRINTF(2, 3);
static void say(planner *p, const char *format, ...) {
    char text[256];
    va_list arguments;
    if (!p->steps) return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    uir_text_append_format(p->steps, "%s\n", text);
}

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

static uir_status fresh_name(uir_loop_function *f, const char *base, const char **out) {
    char name[128];
    snprintf(name, sizeof name, "%.100s", base);
    for (uint32_t i = 2; name_taken(f, name); i++) snprintf(name, sizeof name, "%.100s_%u", base, i);
    UIR_TRY_ALLOCATE(*out, uir_arena_copy_string(&f->arena, name, strlen(name)));
    return UIR_STATUS_OK;
}

static uir_status add_statement(uir_loop_function *f, const uir_loop_statement *s, uint32_t *out) {
    *out = f->statements.count;
    return uir_vector_push(&f->arena, &f->statements, *s);
}

static void append(uir_loop_function *f, uint32_t under, uint32_t id) {
    uint32_t *slot = under == NONE ? &f->first : &STATEMENT(f, under)->first_child;
    while (*slot != NONE) slot = &STATEMENT(f, *slot)->next;
    *slot = id;
    STATEMENT(f, id)->next = NONE;
}

/* A loop 0..extent-1 at the end of a list. */
static uir_status add_loop(uir_loop_function *f, const char *name, uir_loop_kind kind, uir_dim extent, uint32_t under,
                           uint32_t *out, uir_dim *out_value) {
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
    UIR_TRY(add_statement(f, &s, out));
    append(f, under, *out);
    return out_value->id ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
}

static uir_status add_tensor(uir_loop_function *f, const char *base, uir_dtype dtype, const uir_dim *extents,
                             uint32_t rank, uint32_t *out) {
    uir_loop_tensor t = {.dtype = dtype, .rank = rank, .role = UIR_LOOP_ROLE_TEMP, .space = "sram"};
    UIR_TRY(fresh_name(f, base, &t.name));
    for (uint32_t d = 0; d < rank; d++) t.extents[d] = extents[d];
    *out = f->tensors.count;
    return uir_vector_push(&f->arena, &f->tensors, t);
}

static uir_status add_iter(uir_loop_function *f, uir_loop_statement *block, const char *name, uir_dim extent,
                           bool reduce, uir_dim value, uir_dim *out) {
    uir_loop_iter iter = {.name = name, .reduce = reduce, .extent = extent, .value = value};
    uir_symbol_facts facts = {0, UIR_DIM_UNBOUNDED, 1, extent};
    if (block->iter_count == UIR_LOOP_MAX_ITERS) return UIR_STATUS_UNSUPPORTED;
    UIR_TRY(uir_dims_add_symbol(f->dims, name, strlen(name), facts, &iter.symbol));
    block->iters[block->iter_count++] = iter;
    *out = uir_dim_symbol(f->dims, iter.symbol);
    return out->id && value.id ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
}

static bool is_const(planner *p, uir_dim dim, int64_t *out) {
    return uir_dim_is_const(p->f->dims, dim, out);
}

static uir_dim number(planner *p, int64_t value) {
    return uir_dim_const(p->f->dims, value);
}

/* ---- a block's place: iteration variables follow axes, and tiles are addressed by local ones ---- */
/* Where along an axis the block works. */
static uir_dim coordinate(planner *p, uint32_t axis) {
    uir_dims *dims = p->f->dims;
    side *s = &p->sides[p->c.axes[axis].class];
    if (p->c.axes[axis].class == UIR_CONTRACTION_BATCH || s->axis != axis) return p->at[axis];
    return s->split ? uir_dim_add(dims, uir_dim_mul(dims, s->outer, s->tile), s->inner) : s->inner;
}

static uir_status guard(planner *p, uir_loop_statement *block, uint32_t class) {
    side *s = &p->sides[class];
    uir_condition *conditions;
    if (s->axis == NONE || !s->guarded) return UIR_STATUS_OK;
    UIR_TRY_ALLOCATE(conditions,
                     uir_arena_allocate_array(&p->f->arena, block->condition_count + 1, sizeof *conditions));
    for (uint32_t i = 0; i < block->condition_count; i++) conditions[i] = block->conditions[i];
    conditions[block->condition_count++] = (uir_condition){UIR_RELATION_LT, coordinate(p, s->axis), s->extent};
    block->conditions = conditions;
    return UIR_STATUS_OK;
}

/* Index of a tile along a class: its local variable, added to the block; 0 where there is no such axis. */
static uir_status local_index(planner *p, uir_loop_statement *block, uint32_t class, bool reduce, uir_dim *out) {
    side *s = &p->sides[class];
    *out = number(p, 0);
    if (s->axis == NONE) return UIR_STATUS_OK;
    return add_iter(p->f, block, s->local_name, s->tile, reduce, s->inner, out);
}

/* Loads of tensors that have a tile on chip read the tile. */
static uir_status use_tiles(planner *p, uint32_t id, uir_dim row, uir_dim column, uint32_t *out) {
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
        bool tile = p->local[e.load.tensor] == p->sums || p->by_tiles;
        e.load.tensor = p->local[e.load.tensor];
        e.load.indices[0] = tile ? row : column;
        e.load.indices[1] = p->sides[UIR_CONTRACTION_N].axis == NONE ? number(p, 0) : column;
        changed = true;
    }
    if (!changed) return UIR_STATUS_OK;
    *out = f->expressions.count;
    return uir_vector_push(&f->arena, &f->expressions, e);
}

/* Values of the block's own iteration variables. */
static void bind_axes(planner *p, uir_loop_statement *block, const uint32_t *axes) {
    for (uint32_t i = 0; i < block->iter_count; i++) block->iters[i].value = coordinate(p, axes[i]);
}

/* Vectorised loops over tiles around what comes next. */
static uir_status open_tiles(planner *p, const uint32_t *classes, uint32_t count, uint32_t *under) {
    for (uint32_t i = 0; i < count; i++) {
        side *s = &p->sides[classes[i]];
        if (s->axis == NONE) continue;
        UIR_TRY(add_loop(p->f, s->loop_name, UIR_LOOP_VECTORISED, s->tile, *under, under, &s->inner));
    }
    return UIR_STATUS_OK;
}

static uint32_t statement_of(const uir_loop_function *f, uint32_t block) {
    return STATEMENT(f, block)->first_child;
}

/* ---- the parts ---- */
static uir_status place_init(planner *p, uint32_t under) {
    static const uint32_t classes[] = {UIR_CONTRACTION_M, UIR_CONTRACTION_N};
    uir_loop_function *f = p->f;
    uir_dim row, column;
    uint32_t axes[UIR_LOOP_MAX_ITERS];
    UIR_TRY(open_tiles(p, classes, 2, &under));
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
    UIR_TRY(local_index(p, &block, UIR_CONTRACTION_M, false, &row));
    UIR_TRY(local_index(p, &block, UIR_CONTRACTION_N, false, &column));
    UIR_TRY(guard(p, &block, UIR_CONTRACTION_M));
    UIR_TRY(guard(p, &block, UIR_CONTRACTION_N));
    *target = (uir_loop_access){.tensor = p->sums, .indices = {row, column}};
    *STATEMENT(f, p->c.init) = block;
    append(f, under, p->c.init);
    return UIR_STATUS_OK;
}

/* A factor's block, copied or computed into its tile. */
static uir_status place_copy(planner *p, uint32_t which, uint32_t under) {
    const uint32_t of_a[] = {UIR_CONTRACTION_M, UIR_CONTRACTION_K}, of_b[] = {UIR_CONTRACTION_K, UIR_CONTRACTION_N};
    const uint32_t *classes = which ? of_b : of_a;
    uir_loop_function *f = p->f;
    const uir_loop_statement *update = STATEMENT(f, p->c.update);
    uir_loop_statement block = {.kind = UIR_LOOP_STATEMENT_BLOCK, .first_child = NONE, .next = NONE};
    uir_loop_statement store = {
        .kind = UIR_LOOP_STATEMENT_STORE, .first_child = NONE, .next = NONE, .target_count = 1, .value_count = 1};
    uint32_t count = uir_dims_symbol_count(f->dims), id, store_id;
    uir_dim *replacements, row, column;
    UIR_TRY(open_tiles(p, classes, 2, &under));
    UIR_TRY_ALLOCATE(replacements, uir_arena_allocate_array(p->c.arena, count + 1, sizeof *replacements));
    for (uint32_t i = 0; i < p->c.axis_count; i++) {
        uint32_t class = p->c.axes[i].class;
        if (class != UIR_CONTRACTION_BATCH && class != classes[0] && class != classes[1]) continue;
        UIR_TRY(add_iter(f, &block, update->iters[i].name, update->iters[i].extent, false, coordinate(p, i),
                         &replacements[update->iters[i].symbol.id]));
    }
    UIR_TRY(local_index(p, &block, classes[0], false, &row));
    UIR_TRY(local_index(p, &block, classes[1], false, &column));
    UIR_TRY(guard(p, &block, classes[0]));
    UIR_TRY(guard(p, &block, classes[1]));
    UIR_TRY(uir_loop_substitute(f, p->raw[which], replacements, count, &store.values[0]));
    store.targets[0] = (uir_loop_access){.tensor = p->copies[which], .indices = {row, column}};
    UIR_TRY(add_statement(f, &store, &store_id));
    block.first_child = store_id;
    UIR_TRY(fresh_name(f, f->tensors.data[p->copies[which]].name, &block.name));
    /* A tensor and its block may have one name. */
    block.name = f->tensors.data[p->copies[which]].name;
    UIR_TRY(add_statement(f, &block, &id));
    append(f, under, id);
    return UIR_STATUS_OK;
}

static uir_status place_update(planner *p, uint32_t under) {
    static const uint32_t classes[] = {UIR_CONTRACTION_M, UIR_CONTRACTION_N, UIR_CONTRACTION_K};
    uir_loop_function *f = p->f;
    uint32_t axes[UIR_LOOP_MAX_ITERS], product[2];
    uir_dim local[4];
    UIR_TRY(open_tiles(p, classes, 3, &under));
    uir_loop_statement block = *STATEMENT(f, p->c.update);
    for (uint32_t i = 0; i < block.iter_count; i++) axes[i] = i;
    bind_axes(p, &block, axes);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t class = classes[i];
        bool needed = class != UIR_CONTRACTION_K || p->copied[0] || p->copied[1];
        if (needed) UIR_TRY(local_index(p, &block, class, class == UIR_CONTRACTION_K, &local[class]));
        UIR_TRY(guard(p, &block, class));
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
    append(f, under, p->c.update);
    UIR_TRY(uir_loop_add_mark(f, p->c.update, UIR_CONTRACTION_MMA));
    if (p->copied[0]) UIR_TRY(uir_loop_add_mark(f, p->c.update, "pad %s", f->tensors.data[p->copies[0]].name));
    uint32_t panel = p->copied[1] ? p->copies[1] : EXPRESSION(f, p->raw[1])->load.tensor;
    if (p->copied[1] || uir_contraction_is_constant(&p->c, panel))
        UIR_TRY(uir_loop_add_mark(f, p->c.update, "panel %s", f->tensors.data[panel].name));
    return UIR_STATUS_OK;
}

/* What follows, a row at a time; or by tiles. */
static uir_status open_rows(planner *p, uint32_t *under) {
    uir_loop_function *f = p->f;
    side *m = &p->sides[UIR_CONTRACTION_M];
    const char *name;
    UIR_TRY(fresh_name(f, "row", &name));
    UIR_TRY(add_loop(f, name, UIR_LOOP_SERIAL, m->tile, *under, under, &m->inner));
    if (!m->guarded) return UIR_STATUS_OK;
    uir_loop_statement holder = {0};
    uint32_t id;
    UIR_TRY(guard(p, &holder, UIR_CONTRACTION_M));
    uir_loop_statement branch = {.kind = UIR_LOOP_STATEMENT_IF,
                                 .first_child = NONE,
                                 .next = NONE,
                                 .conditions = holder.conditions,
                                 .condition_count = holder.condition_count};
    UIR_TRY(add_statement(f, &branch, &id));
    append(f, *under, id);
    *under = id;
    return UIR_STATUS_OK;
}

static uir_status place_after(planner *p, uint32_t under) {
    static const uint32_t classes[] = {UIR_CONTRACTION_M, UIR_CONTRACTION_N};
    uir_loop_function *f = p->f;
    bool columns = p->sides[UIR_CONTRACTION_N].axis != NONE;
    bool by_rows = columns && !p->by_tiles;
    if (by_rows && p->sides[UIR_CONTRACTION_M].axis != NONE) UIR_TRY(open_rows(p, &under));
    for (uint32_t i = 0; i < p->c.after_count; i++) {
        uint32_t inside = under, id = p->c.after[i].id;
        uir_dim row, column;
        UIR_TRY(open_tiles(p, by_rows ? classes + 1 : classes, by_rows ? 1 : columns ? 2 : 1, &inside));
        uir_loop_statement block = *STATEMENT(f, id);
        bind_axes(p, &block, p->c.after[i].axes);
        UIR_TRY(local_index(p, &block, UIR_CONTRACTION_M, false, &row));
        UIR_TRY(local_index(p, &block, UIR_CONTRACTION_N, false, &column));
        if (!by_rows) UIR_TRY(guard(p, &block, UIR_CONTRACTION_M));
        UIR_TRY(guard(p, &block, UIR_CONTRACTION_N));
        uir_loop_statement *s = STATEMENT(f, statement_of(f, id));
        uint32_t value;
        if (!columns) column = row; /* values lie along the rows */
        UIR_TRY(use_tiles(p, s->values[0], row, column, &value));
        s = STATEMENT(f, statement_of(f, id));
        s->values[0] = value;
        uint32_t target = s->targets[0].tensor;
        if (p->local[target] != NONE)
            s->targets[0] =
                (uir_loop_access){.tensor = p->local[target], .indices = {p->by_tiles ? row : column, column}};
        *STATEMENT(f, id) = block;
        append(f, inside, id);
    }
    return UIR_STATUS_OK;
}

/* ---- choices ---- */
static int64_t guess(planner *p, uir_dim extent) {
    int64_t low, high;
    if (is_const(p, extent, &low)) return low;
    uir_dim_bounds(p->f->dims, extent, &low, &high);
    return high < UNKNOWN ? high : UNKNOWN;
}

/* Of each class the longest axis, the last in the output of those that are equal. */
static void choose_axes(planner *p) {
    for (uint32_t class = UIR_CONTRACTION_M; class <= UIR_CONTRACTION_K; class ++) {
        side *s = &p->sides[class];
        int32_t place = -2;
        s->axis = NONE;
        for (uint32_t i = 0; i < p->c.axis_count; i++) {
            const uir_contraction_axis *axis = &p->c.axes[i];
            if (axis->class != class) continue;
            int64_t here = guess(p, axis->extent), best = s->axis == NONE ? -1 : guess(p, s->extent);
            bool last = class == UIR_CONTRACTION_N && s->axis != NONE; /* columns lie together in memory */
            if (last ? axis->place < place : here < best || (here == best && axis->place < place)) continue;
            s->axis = i, s->extent = axis->extent, place = axis->place;
        }
        if (s->axis == NONE) s->extent = number(p, 1);
    }
}

/* Columns are the second factor's; where it has none, the first one's rows. */
static void choose_sides(planner *p) {
    uir_contraction *c = &p->c;
    for (uint32_t i = 0; i < c->axis_count; i++)
        if (c->axes[i].class == UIR_CONTRACTION_N) return;
    for (uint32_t i = 0; i < c->axis_count; i++)
        if (c->axes[i].class == UIR_CONTRACTION_M) c->axes[i].class = UIR_CONTRACTION_N;
    uint32_t factor = c->factors[0];
    c->factors[0] = c->factors[1];
    c->factors[1] = factor;
    say(p, "exchange the factors of %s: its columns are the first one's rows", c->f->tensors.data[c->tensor].name);
}

/* The axis along which the last dim of what a block stores to runs; NONE. */
static uint32_t last_axis(const planner *p, const uir_contraction_block *b) {
    const uir_loop_statement *block = STATEMENT(p->f, b->id);
    const uir_loop_access *target = &STATEMENT(p->f, block->first_child)->targets[0];
    uint32_t rank = p->f->tensors.data[target->tensor].rank;
    uir_symbol symbol;
    if (!rank || !uir_dim_is_symbol(p->f->dims, target->indices[rank - 1], &symbol)) return NONE;
    for (uint32_t i = 0; i < block->iter_count; i++)
        if (block->iters[i].symbol.id == symbol.id) return b->axes[i];
    return NONE;
}

/* What mma can read: the factor itself, or what is cast to i32 in it. */
static uir_status choose_dtypes(planner *p) {
    uir_loop_function *f = p->f;
    uir_dtype state = f->tensors.data[p->c.tensor].dtype;
    for (uint32_t k = 0; k < 2; k++) {
        const uir_loop_expression *e = EXPRESSION(f, p->c.factors[k]);
        p->raw[k] = p->c.factors[k];
        if (e->kind == UIR_LOOP_CALL && e->op == UIR_OP_CAST && uir_dtype_bits(e->dtype) == 32 &&
            !uir_dtype_is_float(e->dtype) && uir_dtype_bits(EXPRESSION(f, e->arguments[0])->dtype) == 8)
            p->raw[k] = e->arguments[0];
        p->dtypes[k] = EXPRESSION(f, p->raw[k])->dtype;
        bool same = p->dtypes[k] == state;
        if (uir_device_find_legal(p->device, "mma", state, p->dtypes[k], 0, 1, 0) < 0 ||
            (uir_dtype_is_float(state) && !same))
            return uir_contraction_refuse(&p->c, "the device multiplies no matrices of these dtypes");
    }
    return UIR_STATUS_OK;
}

typedef struct variable_count {
    const uir_loop_statement *block;
    uint32_t count;
    uir_symbol last;
} variable_count;

static void count_variable(void *user, uir_symbol symbol) {
    variable_count *v = user;
    for (uint32_t i = 0; i < v->block->iter_count; i++)
        if (v->block->iters[i].symbol.id == symbol.id) v->count++, v->last = symbol;
}

/* Every index is a start plus at most one iteration variable, each used once: the slice is a box. */
static bool is_box(planner *p, uint32_t expression) {
    const uir_loop_expression *e = EXPRESSION(p->f, expression);
    uir_dims *dims = p->f->dims;
    uir_symbol used[UIR_LOOP_MAX_RANK];
    uint32_t count = 0;
    if (e->kind != UIR_LOOP_LOAD || e->has_fill) return false;
    for (uint32_t d = 0; d < p->f->tensors.data[e->load.tensor].rank; d++) {
        variable_count v = {STATEMENT(p->f, p->c.update), 0, {0}};
        uir_dim_visit_symbols(dims, e->load.indices[d], count_variable, &v);
        if (!v.count) continue;
        uir_dim start = uir_dim_sub(dims, e->load.indices[d], uir_dim_symbol(dims, v.last));
        variable_count rest = {v.block, 0, {0}};
        if (v.count > 1 || !start.id) return false;
        uir_dim_visit_symbols(dims, start, count_variable, &rest);
        for (uint32_t i = 0; i < count; i++)
            if (used[i].id == v.last.id) return false;
        if (rest.count) return false;
        used[count++] = v.last;
    }
    return true;
}

/* Dim of a tensor that an axis of the update addresses in a box; NONE. */
static uint32_t dim_of(planner *p, uint32_t expression, uint32_t axis) {
    const uir_loop_expression *e = EXPRESSION(p->f, expression);
    for (uint32_t d = 0; axis != NONE && d < p->f->tensors.data[e->load.tensor].rank; d++) {
        variable_count v = {STATEMENT(p->f, p->c.update), 0, {0}};
        uir_dim_visit_symbols(p->f->dims, e->load.indices[d], count_variable, &v);
        if (v.count && v.last.id == v.block->iters[axis].symbol.id) return d;
    }
    return NONE;
}

/* Are the first factor's rows read where they lie? Few may be; many, when they are known not to meet in the same places
 * of a cache: as far apart as a multiple of half its ways' size, they would. */
static bool is_direct_a(planner *p) {
    if (!is_box(p, p->raw[0])) return false;
    const uir_loop_tensor *t = &p->f->tensors.data[EXPRESSION(p->f, p->raw[0])->load.tensor];
    uint32_t row = dim_of(p, p->raw[0], p->sides[UIR_CONTRACTION_M].axis);
    int64_t distance = (int64_t)uir_dtype_bits(t->dtype) / 8, extent;
    if (t->role != UIR_LOOP_ROLE_IN) return false;
    if (p->few || row == NONE) return true;
    for (uint32_t d = row + 1; d < t->rank; d++) {
        if (!is_const(p, t->extents[d], &extent) || extent < 1 || extent > 1 << 20) return false;
        distance *= extent;
    }
    return distance < SAME_SET || distance % SAME_SET != 0;
}

/* Is the second factor read where it lies? Constants are in panels already; else its rows must follow each other. */
static bool is_direct_b(planner *p) {
    if (!is_box(p, p->raw[1])) return false;
    const uir_loop_tensor *t = &p->f->tensors.data[EXPRESSION(p->f, p->raw[1])->load.tensor];
    uint32_t row = dim_of(p, p->raw[1], p->sides[UIR_CONTRACTION_K].axis),
             column = dim_of(p, p->raw[1], p->sides[UIR_CONTRACTION_N].axis);
    int64_t width;
    if (t->role != UIR_LOOP_ROLE_IN) return false;
    if (uir_contraction_is_constant(&p->c, EXPRESSION(p->f, p->raw[1])->load.tensor)) return column != NONE;
    if (column == NONE || column + 1 != t->rank) return false;
    if (p->few) return true;
    return row != NONE && row + 1 == column && is_const(p, t->extents[column], &width) && width <= 128;
}

typedef struct tile_choice {
    int64_t m, n, k;
} tile_choice;

static uir_status add_tile(planner *p, side *s, int64_t most, int64_t multiple, uint32_t *count) {
    uir_loop_size tile;
    uir_symbol_facts facts = {multiple, most, multiple, {0}};
    UIR_TRY(fresh_name(p->f, s->tile_name, &tile.name));
    UIR_TRY(uir_dims_add_symbol(p->f->dims, tile.name, strlen(tile.name), facts, &tile.symbol));
    UIR_TRY(uir_vector_push(&p->f->arena, &p->f->tiles, tile));
    s->tile = uir_dim_symbol(p->f->dims, tile.symbol);
    s->split = true;
    ++*count;
    return s->tile.id ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
}

/* A tile of a constant: all of it where that fits. */
static void fixed_tile(planner *p, side *s, int64_t size) {
    int64_t extent;
    bool known = is_const(p, s->extent, &extent);
    if (known && extent <= size) {
        s->tile = number(p, extent < 1 ? 1 : extent);
        s->split = s->guarded = false;
        s->guarded = extent < 1;
    } else {
        s->tile = number(p, size);
        s->split = true;
        s->guarded = !known || extent % size != 0;
    }
}

/* Columns of a known small number: rows of the tile are whole lines of a cache. */
static void column_tile(planner *p, side *n) {
    int64_t extent;
    fixed_tile(p, n, 128);
    if (n->split || !is_const(p, n->extent, &extent) || extent <= 1 || extent % LINE == 0) return;
    n->tile = number(p, (extent + LINE - 1) / LINE * LINE);
    n->guarded = true;
}

/* Bytes on chip, as numbers that tiles' sizes are multiplied with. */
typedef struct footprint {
    int64_t mn, mk, kn, n, fixed;
} footprint;

static footprint footprint_of(planner *p) {
    footprint f = {.mn = (int64_t)uir_dtype_bits(p->f->tensors.data[p->c.tensor].dtype) / 8};
    int64_t after = 8 * (int64_t)p->c.after_count;
    for (uint32_t k = 0; k < 2; k++) {
        int64_t bytes = p->copied[k] ? (int64_t)uir_dtype_bits(p->dtypes[k]) / 8 : 0;
        if (p->copied[k] && EXPRESSION(p->f, p->raw[k])->kind != UIR_LOOP_LOAD) bytes *= 4; /* what leads to it */
        *(k ? &f.kn : &f.mk) = bytes;
    }
    *(p->by_tiles || p->sides[UIR_CONTRACTION_N].axis == NONE ? &f.mn : &f.n) += after;
    f.fixed = 64 * ((int64_t)p->c.after_count * 2 + 8);
    return f;
}

static int64_t byte_count(planner *p, tile_choice t) {
    footprint f = footprint_of(p);
    int64_t panels = (t.n + PANEL - 1) / PANEL * PANEL;
    return t.m * t.n * f.mn + t.m * (t.k + ROW_PAD) * f.mk + panels * t.k * f.kn + t.n * f.n + f.fixed;
}

/* The same over the tiles, as a condition of the kernel. */
static uir_status require_capacity(planner *p, int64_t capacity) {
    uir_dims *dims = p->f->dims;
    footprint f = footprint_of(p);
    uir_dim m = p->sides[UIR_CONTRACTION_M].tile, n = p->sides[UIR_CONTRACTION_N].tile,
            k = p->sides[UIR_CONTRACTION_K].tile;
    int64_t known;
    uir_dim bytes = uir_dim_mul(dims, uir_dim_mul(dims, m, n), number(p, f.mn));
    uir_dim panels = uir_dim_align(dims, n, number(p, PANEL));
    uir_dim rows = uir_dim_mul(dims, m, uir_dim_add(dims, k, number(p, ROW_PAD)));
    if (f.mk) bytes = uir_dim_add(dims, bytes, uir_dim_mul(dims, rows, number(p, f.mk)));
    if (f.kn) bytes = uir_dim_add(dims, bytes, uir_dim_mul(dims, uir_dim_mul(dims, panels, k), number(p, f.kn)));
    bytes = uir_dim_add(dims, bytes, uir_dim_mul(dims, n, number(p, f.n)));
    bytes = uir_dim_add(dims, bytes, number(p, f.fixed));
    if (!bytes.id) return UIR_STATUS_OUT_OF_MEMORY;
    if (uir_dim_is_const(dims, bytes, &known)) return UIR_STATUS_OK;
    uir_condition fits = {UIR_RELATION_LE, bytes, number(p, capacity)};
    return uir_vector_push(&p->f->arena, &p->f->requires_, fits);
}

/* Units of work times what one does, when WORKERS share them: multiplications, and what it takes to fetch the blocks.
 */
static uir_dim cost_of(planner *p, tile_choice t) {
    uir_dims *dims = p->f->dims;
    uir_dim units = uir_dim_mul(dims, uir_dim_ceildiv(dims, p->sides[UIR_CONTRACTION_M].extent, number(p, t.m)),
                                uir_dim_ceildiv(dims, p->sides[UIR_CONTRACTION_N].extent, number(p, t.n)));
    for (uint32_t i = 0; i < p->c.axis_count; i++) {
        uint32_t class = p->c.axes[i].class;
        if (class != UIR_CONTRACTION_K && (class == UIR_CONTRACTION_BATCH || p->sides[class].axis != i))
            units = uir_dim_mul(dims, units, p->c.axes[i].extent);
    }
    int64_t unit = t.m * t.n + (p->copied[0] ? 8 : 2) * t.m + (p->copied[1] ? 32 : 8) * t.n;
    return uir_dim_mul(dims, uir_dim_ceildiv(dims, units, number(p, WORKERS)), number(p, unit));
}

/* A tile is at most what some candidate makes it. */
static void narrow_tile(planner *p, const side *s, int64_t most) {
    uir_symbol symbol;
    if (!uir_dim_is_symbol(p->f->dims, s->tile, &symbol)) return;
    uir_symbol_facts facts = uir_dims_symbol_facts(p->f->dims, symbol);
    if (most < facts.max && most >= facts.min) facts.max = most;
    uir_dims_set_symbol_facts(p->f->dims, symbol, facts);
}

static uir_status choose_tiles(planner *p) {
    static const int64_t rows[] = {96, 48, 24, 192, 384}, columns[] = {256, 128, 64, 32};
    side *m = &p->sides[UIR_CONTRACTION_M], *n = &p->sides[UIR_CONTRACTION_N], *k = &p->sides[UIR_CONTRACTION_K];
    int64_t capacity = 0, extent, few = p->device->mma_m ? p->device->mma_m : 1;
    uint32_t count = 0;
    uir_loop_function *f = p->f;
    for (uint32_t s = 0; s < p->device->space_count; s++)
        if (!strcmp(p->device->spaces[s].name, "sram")) capacity = (int64_t)p->device->spaces[s].capacity / 4 * 3;
    /* k: a block that stays in the first cache for the rows in work; all of it where nothing is copied. */
    bool copies = p->copied[0] || p->copied[1];
    if (copies) {
        int64_t most = p->copied[1] ? 256 : 1024;
        while (most > 64 && byte_count(p, (tile_choice){48, 64, most}) > capacity) most /= 2;
        fixed_tile(p, k, most);
    } else {
        k->tile = k->extent;
        k->split = k->guarded = false;
    }
    int64_t depth = 0;
    if (copies) (void)is_const(p, k->tile, &depth);
    if (p->few || (is_const(p, m->extent, &extent) && extent <= few)) {
        m->tile = number(p, is_const(p, m->extent, &extent) && extent >= 1 ? extent : few);
        m->split = false;
        m->guarded = !is_const(p, m->extent, &extent) || extent < 1;
        column_tile(p, n);
        return require_capacity(p, capacity);
    }
    int64_t width = 0;
    int64_t most_rows = 1, most_columns = 1;
    bool narrow = is_const(p, n->extent, &width) && width <= 128;
    if (narrow)
        column_tile(p, n);
    else
        UIR_TRY(add_tile(p, n, columns[0], PANEL, &count));
    UIR_TRY(add_tile(p, m, rows[4], 1, &count));
    m->guarded = true;
    n->guarded |= !narrow;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (size_t j = 0; j < sizeof columns / sizeof columns[0]; j++) {
            tile_choice t = {rows[i], narrow ? (width < 1 ? 1 : width) : columns[j], depth};
            if ((narrow && j) || byte_count(p, t) > capacity || (t.m > 96 && !p->copied[1])) continue;
            uir_icandidate row = {.cost = cost_of(p, t)};
            UIR_TRY_ALLOCATE(row.tiles, uir_arena_allocate_array(&f->arena, count, sizeof *row.tiles));
            if (!narrow) row.tiles[0] = number(p, t.n);
            row.tiles[count - 1] = number(p, t.m);
            most_rows = t.m > most_rows ? t.m : most_rows;
            most_columns = t.n > most_columns ? t.n : most_columns;
            if (!row.cost.id) return UIR_STATUS_OUT_OF_MEMORY;
            UIR_TRY(uir_vector_push(&f->arena, &f->candidates, row));
        }
    }
    narrow_tile(p, m, most_rows);
    if (!narrow) narrow_tile(p, n, most_columns);
    if (!f->candidates.count) return uir_contraction_refuse(&p->c, "no tile fits the device's memory");
    return require_capacity(p, capacity);
}

/* ---- the whole ---- */
/* A block after all others that copies `from` to where `access` says; over the variables of `like`. */
static uir_status add_copy(planner *p, uint32_t from, const uir_loop_access *access, const uir_loop_statement *like,
                           const uint32_t *axes) {
    uir_contraction *c = &p->c;
    uir_loop_function *f = p->f;
    uir_loop_statement block = {.kind = UIR_LOOP_STATEMENT_BLOCK, .first_child = NONE, .next = NONE};
    uir_loop_statement store = {
        .kind = UIR_LOOP_STATEMENT_STORE, .first_child = NONE, .next = NONE, .target_count = 1, .value_count = 1};
    uir_loop_expression load = {.kind = UIR_LOOP_LOAD, .dtype = f->tensors.data[from].dtype};
    uir_contraction_block *b = &c->after[c->after_count];
    uint32_t count = uir_dims_symbol_count(f->dims);
    uir_dim *replacements;
    char name[112];
    if (c->after_count == UIR_CONTRACTION_MAX_BLOCKS) return uir_contraction_refuse(c, "too many blocks");
    UIR_TRY_ALLOCATE(replacements, uir_arena_allocate_array(c->arena, count + 1, sizeof *replacements));
    for (uint32_t i = 0; i < like->iter_count; i++) {
        b->axes[i] = axes[i];
        UIR_TRY(add_iter(f, &block, like->iters[i].name, like->iters[i].extent, false, number(p, 0),
                         &replacements[like->iters[i].symbol.id]));
    }
    store.targets[0].tensor = access->tensor;
    load.load.tensor = from;
    for (uint32_t d = 0; d < f->tensors.data[access->tensor].rank; d++) {
        store.targets[0].indices[d] = uir_dim_substitute(f->dims, access->indices[d], replacements, count);
        if (!store.targets[0].indices[d].id) return UIR_STATUS_OUT_OF_MEMORY;
    }
    store.values[0] = f->expressions.count;
    UIR_TRY(uir_vector_push(&f->arena, &f->expressions, load));
    UIR_TRY(add_statement(f, &store, &block.first_child));
    snprintf(name, sizeof name, "%.100s_out", f->tensors.data[access->tensor].name);
    UIR_TRY(fresh_name(f, name, &block.name));
    UIR_TRY(add_statement(f, &block, &b->id));
    c->after_count++;
    return UIR_STATUS_OK;
}

/* The sums may be an output themselves: they get a tensor of their own and a copy after. */
static uir_status split_output(planner *p) {
    uir_contraction *c = &p->c;
    uir_loop_function *f = p->f;
    if (f->tensors.data[c->tensor].role != UIR_LOOP_ROLE_OUT) return UIR_STATUS_OK;
    uir_loop_statement like = {.iter_count = f->tensors.data[c->tensor].rank};
    uir_loop_access access = {.tensor = c->tensor};
    for (uint32_t d = 0; d < like.iter_count; d++) {
        like.iters[d] = STATEMENT(f, c->update)->iters[c->tensor_axes[d]];
        access.indices[d] = uir_dim_symbol(f->dims, like.iters[d].symbol);
    }
    return add_copy(p, c->tensor, &access, &like, c->tensor_axes);
}

/* Outputs along whose last dim the rows run: what follows is done on whole tiles, and copied out across at the end. */
static uir_status find_crossed_outputs(planner *p) {
    uir_contraction *c = &p->c;
    uir_loop_function *f = p->f;
    uint32_t count = c->after_count;
    uint32_t m = p->sides[UIR_CONTRACTION_M].axis;
    if (m == NONE || p->sides[UIR_CONTRACTION_N].axis == NONE) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t store = statement_of(f, c->after[i].id);
        uir_loop_access target = STATEMENT(f, store)->targets[0];
        const uir_loop_tensor *t = &f->tensors.data[target.tensor];
        if (t->role != UIR_LOOP_ROLE_OUT || last_axis(p, &c->after[i]) != m) continue;
        p->by_tiles = true;
        const uir_loop_expression *value = EXPRESSION(f, STATEMENT(f, store)->values[0]);
        if (value->kind == UIR_LOOP_LOAD && f->tensors.data[value->load.tensor].role == UIR_LOOP_ROLE_TEMP) continue;
        uint32_t made;
        char name[112];
        uir_loop_statement like = *STATEMENT(f, c->after[i].id);
        uir_loop_access to = {0};
        uir_loop_tensor tensor = *t;
        snprintf(name, sizeof name, "%.100s_tile", t->name);
        UIR_TRY(add_tensor(f, name, tensor.dtype, tensor.extents, 0, &made));
        f->tensors.data[made].rank = like.iter_count;
        to.tensor = made;
        for (uint32_t d = 0; d < like.iter_count; d++) {
            f->tensors.data[made].extents[d] = like.iters[d].extent;
            to.indices[d] = uir_dim_symbol(f->dims, like.iters[d].symbol);
        }
        STATEMENT(f, store)->targets[0] = to;
        UIR_TRY(add_copy(p, made, &target, &like, c->after[i].axes));
    }
    return UIR_STATUS_OK;
}

/* Tensors on chip: the tile of sums, the copies, a row of every value that follows. */
static uir_status make_tiles(planner *p) {
    uir_loop_function *f = p->f;
    uir_dim m = p->sides[UIR_CONTRACTION_M].tile, n = p->sides[UIR_CONTRACTION_N].tile,
            k = p->sides[UIR_CONTRACTION_K].tile;
    p->local_count = f->tensors.count;
    UIR_TRY_ALLOCATE(p->local, uir_arena_allocate_array(p->c.arena, p->local_count + 1, sizeof *p->local));
    for (uint32_t i = 0; i < p->local_count; i++) p->local[i] = NONE;
    UIR_TRY(add_tensor(f, "sums", f->tensors.data[p->c.tensor].dtype, (uir_dim[]){m, n}, 2, &p->sums));
    p->local[p->c.tensor] = p->sums;
    if (p->copied[0]) UIR_TRY(add_tensor(f, "rows", p->dtypes[0], (uir_dim[]){m, k}, 2, &p->copies[0]));
    if (p->copied[1]) UIR_TRY(add_tensor(f, "columns", p->dtypes[1], (uir_dim[]){k, n}, 2, &p->copies[1]));
    for (uint32_t i = 0; i < p->c.after_count; i++) {
        uint32_t target = STATEMENT(f, statement_of(f, p->c.after[i].id))->targets[0].tensor;
        const uir_loop_tensor *t = &f->tensors.data[target];
        if (t->role != UIR_LOOP_ROLE_TEMP) continue;
        bool columns = p->sides[UIR_CONTRACTION_N].axis != NONE;
        uir_dim extents[] = {p->by_tiles || !columns ? m : n, n};
        UIR_TRY(add_tensor(f, t->name, t->dtype, extents, p->by_tiles ? 2 : 1, &p->local[target]));
    }
    return UIR_STATUS_OK;
}

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

static uir_status drop_tensors(planner *p) {
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

/* Loops over what is not tiled, and over tiles: the first ones parallel. */
static uir_status open_outer(planner *p, uint32_t *under) {
    static const uint32_t order[] = {UIR_CONTRACTION_BATCH, UIR_CONTRACTION_N, UIR_CONTRACTION_M};
    uint32_t parallel = 0, tiled = 0;
    for (uint32_t i = 0; i < 3; i++) tiled += order[i] != UIR_CONTRACTION_BATCH && p->sides[order[i]].split;
    for (uint32_t pass = 0; pass < 2; pass++) { /* parallel ones, then those for which no place was left */
        uint32_t taken = 0;
        for (uint32_t i = 0; i < 3; i++) {
            for (uint32_t a = 0; a < p->c.axis_count; a++) {
                if (p->c.axes[a].class != order[i] || p->sides[order[i]].axis == a) continue;
                bool here = taken++ < MAX_PARALLEL - tiled;
                if (here != (pass == 0)) continue;
                const char *name;
                UIR_TRY(fresh_name(p->f,
                                   order[i] == UIR_CONTRACTION_BATCH ? "b"
                                   : order[i] == UIR_CONTRACTION_M   ? "m"
                                                                     : "n",
                                   &name));
                UIR_TRY(add_loop(p->f, name, here ? UIR_LOOP_PARALLEL : UIR_LOOP_SERIAL, p->c.axes[a].extent, *under,
                                 under, &p->at[a]));
            }
            side *s = &p->sides[order[i]];
            if (pass || i == 0 || !s->split) continue;
            const char *name;
            UIR_TRY(fresh_name(p->f, order[i] == UIR_CONTRACTION_M ? "mo" : "no", &name));
            UIR_TRY(add_loop(p->f, name, UIR_LOOP_PARALLEL, uir_dim_ceildiv(p->f->dims, s->extent, s->tile), *under,
                             under, &s->outer));
            parallel++;
        }
    }
    return UIR_STATUS_OK;
}

static uir_status place_all(planner *p) {
    uir_loop_function *f = p->f;
    side *k = &p->sides[UIR_CONTRACTION_K];
    uint32_t unit = NONE, inside;
    f->first = NONE;
    UIR_TRY(open_outer(p, &unit));
    UIR_TRY(place_init(p, unit));
    inside = unit;
    for (uint32_t a = 0; a < p->c.axis_count; a++) {
        const char *name;
        if (p->c.axes[a].class != UIR_CONTRACTION_K || k->axis == a) continue;
        UIR_TRY(fresh_name(f, "k", &name));
        UIR_TRY(add_loop(f, name, UIR_LOOP_SERIAL, p->c.axes[a].extent, inside, &inside, &p->at[a]));
    }
    if (k->split) {
        const char *name;
        UIR_TRY(fresh_name(f, "ko", &name));
        UIR_TRY(add_loop(f, name, UIR_LOOP_SERIAL, uir_dim_ceildiv(f->dims, k->extent, k->tile), inside, &inside,
                         &k->outer));
    }
    for (uint32_t which = 0; which < 2; which++)
        if (p->copied[which]) UIR_TRY(place_copy(p, which, inside));
    UIR_TRY(place_update(p, inside));
    UIR_TRY(place_after(p, unit));
    return drop_tensors(p);
}

static void describe(planner *p) {
    static const char *const words[] = {"", "rows", "columns", "depth"};
    const char *name = p->f->tensors.data[p->c.tensor].name;
    uir_text text;
    uir_text_init(&text, &p->f->allocator);
    for (uint32_t class = UIR_CONTRACTION_M; class <= UIR_CONTRACTION_K; class ++) {
        side *s = &p->sides[class];
        if (s->axis == NONE || !s->split) continue;
        uir_text_append_format(&text, "split %s of %s, the %s, by ", STATEMENT(p->f, p->c.update)->iters[s->axis].name,
                               name, words[class]);
        uir_dim_print(p->f->dims, s->tile, &text);
        uir_text_append_string(&text, "; ");
    }
    say(p, "%s: %skeep its sums in sram", name, text.data ? text.data : "");
    uir_text_deinit(&text);
    if (p->copied[0])
        say(p, "%s: read the first factor through rows in sram, compute them at the innermost loop", name);
    if (p->copied[1]) say(p, "%s: read the second factor through panels of columns in sram", name);
    say(p, "%s: annotate mma; %u blocks after it are computed at %s", name, p->c.after_count,
        p->by_tiles ? "its tile, which goes out across" : "the rows of its tile");
}

static uir_status build(const uir_loop_function *naive, const uir_device *device, bool few, uir_text *steps,
                        uir_arena *arena, uir_diagnostics *diagnostics, uir_loop_list *out, bool *out_always) {
    planner p = {.device = device, .steps = steps, .few = few, .sides = {{.axis = NONE}}};
    uir_loop_function *f;
    UIR_TRY(uir_loop_copy(naive, diagnostics, &f));
    p.f = f;
    uir_status status = uir_contraction_find(f, arena, diagnostics, &p.c);
    side *m = &p.sides[UIR_CONTRACTION_M];
    int64_t rows, most = device->mma_m ? device->mma_m : 1;
    if (status == UIR_STATUS_OK) status = split_output(&p);
    if (status == UIR_STATUS_OK) {
        static const char *const names[][3] = {{0}, {"im", "tm", "lm"}, {"in", "tn", "ln"}, {"ik", "tk", "lk"}};
        for (uint32_t class = UIR_CONTRACTION_M; class <= UIR_CONTRACTION_K && status == UIR_STATUS_OK; class ++) {
            status = fresh_name(f, names[class][0], &p.sides[class].loop_name);
            if (status == UIR_STATUS_OK) status = fresh_name(f, names[class][2], &p.sides[class].local_name);
            p.sides[class].tile_name = names[class][1];
        }
    }
    if (status == UIR_STATUS_OK) {
        choose_sides(&p);
        choose_axes(&p);
        bool known = is_const(&p, m->extent, &rows);
        *out_always = known && rows <= most;
        if (few && known && rows > most) { /* never few */
            uir_loop_function_destroy(f);
            return UIR_STATUS_OK;
        }
        status = choose_dtypes(&p);
    }
    if (status == UIR_STATUS_OK) status = find_crossed_outputs(&p);
    if (status == UIR_STATUS_OK) {
        p.copied[1] = !is_direct_b(&p);
        p.copied[0] = !is_direct_a(&p);
        status = choose_tiles(&p);
    }
    if (status == UIR_STATUS_OK && few && !*out_always) {
        uir_condition condition = {UIR_RELATION_LE, m->extent, uir_dim_const(f->dims, most)};
        status = uir_vector_push(&f->arena, &f->requires_, condition);
    }
    if (status == UIR_STATUS_OK) status = make_tiles(&p);
    if (status == UIR_STATUS_OK) {
        if (steps) uir_text_append_format(steps, "%s\n", few ? "for few rows:" : "for any number of rows:");
        describe(&p);
        status = place_all(&p);
    }
    if (status == UIR_STATUS_OK) status = uir_loop_verify(f, diagnostics);
    if (status != UIR_STATUS_OK) {
        uir_loop_function_destroy(f);
        return status;
    }
    return uir_loop_list_add(out, f);
}

uir_status uir_contraction_schedule(const uir_loop_function *function, const uir_device *device, uir_text *steps,
                                    uir_diagnostics *diagnostics, uir_loop_list *out) {
    uir_arena arena;
    bool always = false;
    uir_arena_init(&arena, &function->allocator);
    uir_status status = build(function, device, true, steps, &arena, diagnostics, out, &always);
    if (status == UIR_STATUS_OK && !always)
        status = build(function, device, false, steps, &arena, diagnostics, out, &always);
    uir_arena_deinit(&arena);
    return status;
}
