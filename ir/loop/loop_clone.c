/* Copies of loop functions: what the top list reaches, every symbol declared anew in the order in which a reader of the
 * text meets it. */
#include "ir/loop/loop.h"

#include <string.h>

typedef struct cloner {
    const uir_loop_function *from;
    uir_loop_function *to;
    uir_dim *dims; /* by symbol of `from`: what stands for it; NONE: not declared yet */
    uint32_t symbol_count;
    uint32_t *expressions; /* by expression of `from`: its copy + 1 */
    uir_status status;     /* the first failure; everything after it does nothing */
} cloner;

static void fail(cloner *c, uir_status status) {
    if (c->status == UIR_STATUS_OK) c->status = status;
}

static const char *copy_name(cloner *c, const char *name) {
    if (!name || c->status != UIR_STATUS_OK) return NULL;
    const char *copy = uir_arena_copy_string(&c->to->arena, name, strlen(name));
    if (!copy) fail(c, UIR_STATUS_OUT_OF_MEMORY);
    return copy;
}

static void meet_symbol(void *user, uir_symbol symbol) {
    cloner *c = user;
    if (symbol.id >= c->symbol_count || !c->dims[symbol.id].id) fail(c, UIR_STATUS_INTERNAL);
}

static uir_dim copy_dim(cloner *c, uir_dim dim) {
    if (!dim.id || c->status != UIR_STATUS_OK) return UIR_DIM_NONE;
    uir_dim_visit_symbols(c->from->dims, dim, meet_symbol, c);
    if (c->status != UIR_STATUS_OK) return UIR_DIM_NONE;
    uir_dim copy = uir_dim_copy(c->from->dims, dim, c->to->dims, c->dims, c->symbol_count);
    if (!copy.id) fail(c, UIR_STATUS_OUT_OF_MEMORY);
    return copy;
}

static uir_symbol declare(cloner *c, uir_symbol symbol, const char *name, uir_symbol_facts facts) {
    uir_symbol copy = {0};
    if (c->status != UIR_STATUS_OK) return copy;
    c->status = uir_dims_add_symbol(c->to->dims, name, strlen(name), facts, &copy);
    if (c->status != UIR_STATUS_OK) return copy;
    c->dims[symbol.id] = uir_dim_symbol(c->to->dims, copy);
    if (!c->dims[symbol.id].id) fail(c, UIR_STATUS_OUT_OF_MEMORY);
    return copy;
}

static uir_condition copy_condition(cloner *c, uir_condition condition) {
    uir_dim left = copy_dim(c, condition.left);
    return (uir_condition){condition.relation, left, copy_dim(c, condition.right)};
}

static void copy_access(cloner *c, const uir_loop_access *access, uir_loop_access *copy) {
    copy->tensor = access->tensor;
    for (uint32_t d = 0; d < c->from->tensors.data[access->tensor].rank; d++)
        copy->indices[d] = copy_dim(c, access->indices[d]);
}

static const uir_loop_access *copy_from(cloner *c, const uir_loop_access *from) {
    uir_loop_access copy = {0};
    copy_access(c, from, &copy);
    const uir_loop_access *kept = uir_arena_copy(&c->to->arena, &copy, sizeof copy);
    if (!kept) fail(c, UIR_STATUS_OUT_OF_MEMORY);
    return kept;
}

static uint32_t copy_expression(cloner *c, uint32_t id) {
    uir_loop_expression copy = c->from->expressions.data[id];
    if (c->status != UIR_STATUS_OK) return UIR_LOOP_NONE;
    if (c->expressions[id]) return c->expressions[id] - 1;
    if (copy.kind == UIR_LOOP_LOAD) copy_access(c, &c->from->expressions.data[id].load, &copy.load);
    for (uint32_t i = 0; copy.kind == UIR_LOOP_CALL && i < copy.argument_count; i++)
        copy.arguments[i] = copy_expression(c, copy.arguments[i]);
    copy.index = copy_dim(c, copy.index);
    if (c->status == UIR_STATUS_OK) c->status = uir_vector_push(&c->to->arena, &c->to->expressions, copy);
    c->expressions[id] = c->to->expressions.count;
    return c->to->expressions.count - 1;
}

static void copy_expressions(cloner *c, uint32_t *ids, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) ids[i] = copy_expression(c, ids[i]);
}

/* ---- the header ---- */
static void copy_size(cloner *c, const uir_loop_size *size, bool tile) {
    uir_symbol_facts facts = uir_dims_symbol_facts(c->from->dims, size->symbol);
    uir_loop_size copy = {copy_name(c, size->name), declare(c, size->symbol, size->name, facts)};
    if (c->status != UIR_STATUS_OK) return;
    c->status = tile ? uir_vector_push(&c->to->arena, &c->to->tiles, copy)
                     : uir_vector_push(&c->to->arena, &c->to->sizes, copy);
}

static void copy_candidate(cloner *c, const uir_icandidate *candidate) {
    uir_icandidate copy = *candidate;
    uint32_t tiles = c->from->tiles.count;
    uir_iatom *atoms = uir_arena_allocate_array(&c->to->arena, candidate->guard.count + 1, sizeof *atoms);
    copy.tiles = uir_arena_allocate_array(&c->to->arena, tiles + 1, sizeof *copy.tiles);
    if (!copy.tiles || !atoms) fail(c, UIR_STATUS_OUT_OF_MEMORY);
    for (uint32_t t = 0; t < tiles && c->status == UIR_STATUS_OK; t++) copy.tiles[t] = copy_dim(c, candidate->tiles[t]);
    for (uint32_t a = 0; a < candidate->guard.count && c->status == UIR_STATUS_OK; a++) {
        atoms[a] = candidate->guard.atoms[a];
        atoms[a].condition = copy_condition(c, atoms[a].condition);
    }
    copy.guard.atoms = atoms;
    copy.cost = copy_dim(c, candidate->cost);
    copy.units = copy_dim(c, candidate->units);
    if (c->status == UIR_STATUS_OK) c->status = uir_vector_push(&c->to->arena, &c->to->candidates, copy);
}

static uir_dim copy_layout_dim(void *user, uir_dim dim) {
    return copy_dim(user, dim);
}

static void copy_tensor(cloner *c, const uir_loop_tensor *tensor) {
    uir_loop_tensor copy = *tensor;
    copy.name = copy_name(c, tensor->name);
    copy.space = copy_name(c, tensor->space);
    for (uint32_t d = 0; d < tensor->rank; d++) copy.extents[d] = copy_dim(c, tensor->extents[d]);
    if (tensor->layout && c->status == UIR_STATUS_OK) {
        uir_layout *layout = uir_arena_allocate(&c->to->arena, sizeof *layout);
        if (layout)
            uir_layout_copy(tensor->layout, tensor->rank, copy_layout_dim, c, layout);
        else
            fail(c, UIR_STATUS_OUT_OF_MEMORY);
        copy.layout = layout;
    }
    if (c->status == UIR_STATUS_OK) c->status = uir_vector_push(&c->to->arena, &c->to->tensors, copy);
}

static void copy_monoid(cloner *c, const uir_loop_monoid *monoid) {
    uir_loop_monoid copy = *monoid;
    copy.name = copy_name(c, monoid->name);
    for (uint32_t i = 0; i < monoid->state_count; i++) {
        copy.state_names[i] = copy_name(c, monoid->state_names[i]);
        copy.other_names[i] = copy_name(c, monoid->other_names[i]);
    }
    for (uint32_t i = 0; i < monoid->element_count; i++) copy.element_names[i] = copy_name(c, monoid->element_names[i]);
    copy_expressions(c, copy.identity, monoid->state_count);
    copy_expressions(c, copy.update, monoid->state_count);
    copy_expressions(c, copy.combine, monoid->state_count);
    copy_expressions(c, copy.finish, monoid->finish_count);
    if (c->status == UIR_STATUS_OK) c->status = uir_vector_push(&c->to->arena, &c->to->monoids, copy);
}

/* ---- statements ---- */
static void copy_iters(cloner *c, const uir_loop_statement *block, uir_loop_statement *copy) {
    for (uint32_t i = 0; i < block->iter_count; i++) copy->iters[i].value = copy_dim(c, block->iters[i].value);
    for (uint32_t i = 0; i < block->iter_count; i++) {
        uir_loop_iter *iter = &copy->iters[i];
        iter->name = copy_name(c, block->iters[i].name);
        if (iter->data) iter->from = copy_from(c, block->iters[i].from);
        iter->extent = copy_dim(c, block->iters[i].extent);
        uir_symbol_facts facts = {0, UIR_DIM_UNBOUNDED, 1, iter->extent};
        iter->symbol = declare(c, block->iters[i].symbol, block->iters[i].name, facts);
    }
}

static void copy_conditions(cloner *c, const uir_loop_statement *s, uir_loop_statement *copy) {
    if (!s->condition_count || c->status != UIR_STATUS_OK) return;
    uir_condition *conditions = uir_arena_allocate_array(&c->to->arena, s->condition_count, sizeof *conditions);
    if (!conditions) fail(c, UIR_STATUS_OUT_OF_MEMORY);
    for (uint32_t i = 0; i < s->condition_count && c->status == UIR_STATUS_OK; i++)
        conditions[i] = copy_condition(c, s->conditions[i]);
    copy->conditions = conditions;
}

static void copy_annotations(cloner *c, const uir_loop_statement *s, uir_loop_statement *copy) {
    if (!s->annotation_count || c->status != UIR_STATUS_OK) return;
    const char **annotations = uir_arena_allocate_array(&c->to->arena, s->annotation_count, sizeof *annotations);
    if (!annotations) fail(c, UIR_STATUS_OUT_OF_MEMORY);
    for (uint32_t i = 0; i < s->annotation_count && c->status == UIR_STATUS_OK; i++)
        annotations[i] = copy_name(c, s->annotations[i]);
    copy->annotations = annotations;
}

static uint32_t copy_list(cloner *c, uint32_t first);

/* What the statement declares is known in what it holds. */
static void copy_statement(cloner *c, const uir_loop_statement *s, uir_loop_statement *copy) {
    copy->name = copy_name(c, s->name);
    copy->bound_to = copy_name(c, s->bound_to);
    if (s->kind == UIR_LOOP_STATEMENT_FOR) {
        int64_t least, greatest;
        copy->min = copy_dim(c, s->min);
        copy->extent = copy_dim(c, s->extent);
        if (c->status != UIR_STATUS_OK) return;
        uir_dim_bounds(c->to->dims, copy->min, &least, &greatest);
        uir_symbol_facts facts = {least, UIR_DIM_UNBOUNDED, 1, uir_dim_add(c->to->dims, copy->min, copy->extent)};
        copy->symbol = declare(c, s->symbol, s->name, facts);
    } else if (s->kind == UIR_LOOP_STATEMENT_BLOCK) {
        copy_iters(c, s, copy);
    }
    copy_conditions(c, s, copy);
    copy_annotations(c, s, copy);
    for (uint32_t i = 0; i < s->target_count; i++) copy_access(c, &s->targets[i], &copy->targets[i]);
    copy_expressions(c, copy->values, s->value_count);
    copy->first_child = uir_loop_statement_get_row(s->kind)->children ? copy_list(c, s->first_child) : UIR_LOOP_NONE;
}

static uint32_t copy_list(cloner *c, uint32_t first) {
    uint32_t result = UIR_LOOP_NONE, before = UIR_LOOP_NONE;
    for (uint32_t at = first; at != UIR_LOOP_NONE && c->status == UIR_STATUS_OK;
         at = c->from->statements.data[at].next) {
        uir_loop_statement copy = c->from->statements.data[at];
        copy.next = UIR_LOOP_NONE;
        copy_statement(c, &c->from->statements.data[at], &copy);
        if (c->status == UIR_STATUS_OK) c->status = uir_vector_push(&c->to->arena, &c->to->statements, copy);
        if (c->status != UIR_STATUS_OK) break;
        uint32_t id = c->to->statements.count - 1;
        if (before == UIR_LOOP_NONE)
            result = id;
        else
            c->to->statements.data[before].next = id;
        before = id;
    }
    return result;
}

/* Vectors of the size that they come to leave nothing behind as they grow. */
static uir_status reserve(cloner *c) {
    const uir_loop_function *f = c->from;
    uir_arena *arena = &c->to->arena;
    UIR_TRY(uir_vector_reserve(arena, &c->to->sizes, f->sizes.count));
    UIR_TRY(uir_vector_reserve(arena, &c->to->tensors, f->tensors.count));
    UIR_TRY(uir_vector_reserve(arena, &c->to->monoids, f->monoids.count));
    UIR_TRY(uir_vector_reserve(arena, &c->to->expressions, f->expressions.count));
    return uir_vector_reserve(arena, &c->to->statements, f->statements.count);
}

static void copy_all(cloner *c) {
    const uir_loop_function *f = c->from;
    uir_status status = reserve(c);
    if (status != UIR_STATUS_OK) fail(c, status);
    c->to->file = copy_name(c, f->file);
    for (uint32_t i = 0; i < f->sizes.count; i++) copy_size(c, &f->sizes.data[i], false);
    for (uint32_t i = 0; i < f->tiles.count; i++) copy_size(c, &f->tiles.data[i], true);
    for (uint32_t i = 0; i < f->requires_.count && c->status == UIR_STATUS_OK; i++) {
        uir_condition copy = copy_condition(c, f->requires_.data[i]);
        if (c->status == UIR_STATUS_OK) c->status = uir_vector_push(&c->to->arena, &c->to->requires_, copy);
    }
    for (uint32_t i = 0; i < f->candidates.count && c->status == UIR_STATUS_OK; i++)
        copy_candidate(c, &f->candidates.data[i]);
    for (uint32_t i = 0; i < f->tensors.count && c->status == UIR_STATUS_OK; i++) copy_tensor(c, &f->tensors.data[i]);
    for (uint32_t i = 0; i < f->monoids.count && c->status == UIR_STATUS_OK; i++) copy_monoid(c, &f->monoids.data[i]);
    c->to->first = copy_list(c, f->first);
}

uir_status uir_loop_clone(const uir_loop_function *function, uir_loop_function **out_function) {
    uir_arena scratch;
    cloner c = {.from = function, .symbol_count = uir_dims_symbol_count(function->dims)};
    *out_function = NULL;
    UIR_TRY(uir_loop_function_create(&function->allocator, function->name, &c.to));
    uir_arena_init(&scratch, &function->allocator);
    c.dims = uir_arena_allocate_array(&scratch, (size_t)c.symbol_count + 1, sizeof *c.dims);
    c.expressions = uir_arena_allocate_array(&scratch, (size_t)function->expressions.count + 1, sizeof *c.expressions);
    if (!c.dims || !c.expressions) fail(&c, UIR_STATUS_OUT_OF_MEMORY);
    if (c.status == UIR_STATUS_OK) copy_all(&c);
    uir_arena_deinit(&scratch);
    if (c.status == UIR_STATUS_OK)
        *out_function = c.to;
    else
        uir_loop_function_destroy(c.to);
    return c.status;
}
