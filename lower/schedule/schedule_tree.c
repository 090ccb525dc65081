/* The tree of statements: where things are, taking out and putting in, names, substitution. */
#include "lower/schedule/schedule_internal.h"

#include <stdio.h>
#include <string.h>

/* ---- where ---- */
static void index_list(uir_schedule *s, uint32_t id, uint32_t above, uint32_t *place) {
    for (; id != UIR_LOOP_NONE; id = UIR_SCHEDULE_AT(s, id)->next) {
        s->parents.data[id] = above;
        s->places.data[id] = ++*place;
        if (UIR_SCHEDULE_AT(s, id)->kind != UIR_LOOP_STATEMENT_BLOCK)
            index_list(s, UIR_SCHEDULE_AT(s, id)->first_child, id, place);
    }
}

uir_status uir_tree_index(uir_schedule *s) {
    uint32_t count = s->function->statements.count, place = 0;
    if (s->indexed && s->parents.count == count) return UIR_STATUS_OK;
    while (s->parents.count < count) UIR_TRY(uir_vector_push(&s->arena, &s->parents, UIR_LOOP_NONE));
    while (s->places.count < count) UIR_TRY(uir_vector_push(&s->arena, &s->places, 0));
    s->parents.count = s->places.count = count;
    memset(s->places.data, 0, count * sizeof *s->places.data);
    index_list(s, s->function->first, UIR_LOOP_NONE, &place);
    s->indexed = true;
    return UIR_STATUS_OK;
}

bool uir_tree_reachable(uir_schedule *s, uint32_t id, uir_loop_statement_kind kind) {
    return id < s->function->statements.count && uir_tree_index(s) == UIR_STATUS_OK && s->places.data[id] &&
           UIR_SCHEDULE_AT(s, id)->kind == kind;
}

uint32_t uir_tree_path(uir_schedule *s, uint32_t id, uint32_t *out_path) {
    uint32_t count = 0;
    if (uir_tree_index(s) != UIR_STATUS_OK) return 0;
    for (uint32_t at = s->parents.data[id]; at != UIR_LOOP_NONE; at = s->parents.data[at]) count++;
    uint32_t kept = count < UIR_SCHEDULE_MAX_DEPTH ? count : UIR_SCHEDULE_MAX_DEPTH, k = count;
    for (uint32_t at = s->parents.data[id]; at != UIR_LOOP_NONE; at = s->parents.data[at])
        if (--k < kept) out_path[k] = at;
    return kept;
}

bool uir_tree_holds(uir_schedule *s, uint32_t ancestor, uint32_t id) {
    if (uir_tree_index(s) != UIR_STATUS_OK) return false;
    for (; id != UIR_LOOP_NONE; id = s->parents.data[id])
        if (id == ancestor) return true;
    return false;
}

uint32_t uir_tree_root(const uir_schedule *s, uint32_t id) {
    for (uint32_t parent; (parent = uir_schedule_parent(s, id)) != UIR_LOOP_NONE;) id = parent;
    return id;
}

uint32_t uir_tree_first_block(const uir_schedule *s, uint32_t id) {
    uint32_t block = UIR_LOOP_NONE;
    uir_schedule_blocks(s, id, &block, 1);
    return block;
}

/* ---- taking out and putting in ---- */
static uint32_t *find_link(uir_schedule *s, uint32_t *link, uint32_t id) {
    for (; *link != UIR_LOOP_NONE; link = &UIR_SCHEDULE_AT(s, *link)->next) {
        if (*link == id) return link;
        if (UIR_SCHEDULE_AT(s, *link)->kind == UIR_LOOP_STATEMENT_BLOCK) continue;
        uint32_t *found = find_link(s, &UIR_SCHEDULE_AT(s, *link)->first_child, id);
        if (found) return found;
    }
    return NULL;
}

uint32_t *uir_tree_link(uir_schedule *s, uint32_t id) {
    return find_link(s, &s->function->first, id);
}

void uir_tree_unlink(uir_schedule *s, uint32_t id) {
    uint32_t parent = uir_schedule_parent(s, id);
    uint32_t *link = uir_tree_link(s, id);
    if (!link) return;
    *link = UIR_SCHEDULE_AT(s, id)->next;
    UIR_SCHEDULE_AT(s, id)->next = UIR_LOOP_NONE;
    s->indexed = false;
    if (parent != UIR_LOOP_NONE && UIR_SCHEDULE_AT(s, parent)->first_child == UIR_LOOP_NONE) uir_tree_unlink(s, parent);
}

void uir_tree_insert_before(uir_schedule *s, uint32_t place, uint32_t id) {
    uint32_t *link = uir_tree_link(s, place);
    UIR_SCHEDULE_AT(s, id)->next = place;
    if (link) *link = id;
    s->indexed = false;
}

void uir_tree_insert_after(uir_schedule *s, uint32_t place, uint32_t id) {
    UIR_SCHEDULE_AT(s, id)->next = UIR_SCHEDULE_AT(s, place)->next;
    UIR_SCHEDULE_AT(s, place)->next = id;
    s->indexed = false;
}

uir_status uir_tree_add(uir_schedule *s, const uir_loop_statement *statement, uint32_t *out_id) {
    uir_loop_statement copy = *statement; /* it may lie in the vector that grows */
    *out_id = s->function->statements.count;
    UIR_TRY(uir_vector_push(&s->function->arena, &s->function->statements, copy));
    while (s->full.count < s->function->statements.count) UIR_TRY(uir_vector_push(&s->arena, &s->full, false));
    s->indexed = false;
    return UIR_STATUS_OK;
}

uir_status uir_tree_add_loop(uir_schedule *s, const char *name, uir_dim min, uir_dim extent, uint32_t *out_id) {
    uir_dims *dims = s->function->dims;
    uir_loop_statement loop = {.kind = UIR_LOOP_STATEMENT_FOR,
                               .first_child = UIR_LOOP_NONE,
                               .next = UIR_LOOP_NONE,
                               .name = name,
                               .loop_kind = UIR_LOOP_SERIAL,
                               .min = min,
                               .extent = extent};
    int64_t least, greatest;
    if (!min.id || !extent.id) return UIR_STATUS_OUT_OF_MEMORY;
    uir_dim_bounds(dims, min, &least, &greatest);
    uir_symbol_facts facts = {least, UIR_DIM_UNBOUNDED, 1, uir_dim_add(dims, min, extent)};
    UIR_TRY(uir_dims_add_symbol(dims, name, strlen(name), facts, &loop.symbol));
    return uir_tree_add(s, &loop, out_id);
}

/* ---- names ---- */
static bool is_declared(const uir_schedule *s, const char *name) {
    const uir_loop_function *f = s->function;
    uir_dtype dtype;
    bool taken = uir_dtype_from_name(name, strlen(name), &dtype);
    for (uint32_t i = 0; i < f->sizes.count; i++) taken |= !strcmp(f->sizes.data[i].name, name);
    for (uint32_t i = 0; i < f->tiles.count; i++) taken |= !strcmp(f->tiles.data[i].name, name);
    for (uint32_t i = 0; i < f->tensors.count; i++) taken |= !strcmp(f->tensors.data[i].name, name);
    for (uint32_t i = 0; i < f->monoids.count; i++) taken |= !strcmp(f->monoids.data[i].name, name);
    return taken;
}

static bool loop_below(const uir_schedule *s, uint32_t id, const char *name) {
    for (; id != UIR_LOOP_NONE; id = UIR_SCHEDULE_AT(s, id)->next) {
        const uir_loop_statement *statement = UIR_SCHEDULE_AT(s, id);
        if (statement->kind == UIR_LOOP_STATEMENT_BLOCK) continue;
        if (statement->kind == UIR_LOOP_STATEMENT_FOR && !strcmp(statement->name, name)) return true;
        if (loop_below(s, statement->first_child, name)) return true;
    }
    return false;
}

static bool loop_name_taken(const uir_schedule *s, const char *name, uint32_t place) {
    if (is_declared(s, name)) return true;
    for (uint32_t at = place; at != UIR_LOOP_NONE; at = uir_schedule_parent(s, at)) {
        const uir_loop_statement *statement = UIR_SCHEDULE_AT(s, at);
        if (statement->kind == UIR_LOOP_STATEMENT_FOR && !strcmp(statement->name, name)) return true;
    }
    if (place == UIR_LOOP_NONE) return loop_below(s, s->function->first, name);
    return UIR_SCHEDULE_AT(s, place)->kind != UIR_LOOP_STATEMENT_BLOCK &&
           loop_below(s, UIR_SCHEDULE_AT(s, place)->first_child, name);
}

typedef bool (*name_test)(const uir_schedule *s, const char *name, uint32_t place);

static uir_status find_name(uir_schedule *s, const char *base, uint32_t place, name_test taken, const char **out_name) {
    char name[200];
    size_t kept = strlen(base) < 150 ? strlen(base) : 150;
    snprintf(name, sizeof name, "%.*s", (int)kept, base);
    for (uint32_t k = 2; taken(s, name, place); k++) snprintf(name, sizeof name, "%.*s_%u", (int)kept, base, k);
    UIR_TRY_ALLOCATE(*out_name, uir_arena_copy_string(&s->function->arena, name, strlen(name)));
    return UIR_STATUS_OK;
}

uir_status uir_tree_loop_name(uir_schedule *s, const char *base, uint32_t place, const char **out_name) {
    return find_name(s, base, place, loop_name_taken, out_name);
}

static bool tensor_name_taken(const uir_schedule *s, const char *name, uint32_t place) {
    (void)place;
    return is_declared(s, name) || loop_below(s, s->function->first, name);
}

uir_status uir_tree_tensor_name(uir_schedule *s, const char *base, const char **out_name) {
    return find_name(s, base, UIR_LOOP_NONE, tensor_name_taken, out_name);
}

static bool block_name_taken(const uir_schedule *s, const char *name, uint32_t place) {
    (void)place;
    return uir_schedule_find_block(s, name) != UIR_LOOP_NONE;
}

uir_status uir_tree_block_name(uir_schedule *s, const char *base, const char **out_name) {
    return find_name(s, base, UIR_LOOP_NONE, block_name_taken, out_name);
}

/* ---- conditions ---- */
uir_status uir_tree_add_condition(uir_schedule *s, uint32_t block, uir_relation relation, uir_dim left, uir_dim right) {
    uir_loop_statement *b = UIR_SCHEDULE_AT(s, block);
    uir_condition *list;
    if (!left.id || !right.id) return UIR_STATUS_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < b->condition_count; i++) {
        const uir_condition *c = &b->conditions[i];
        if (c->relation == relation && uir_dim_equal(c->left, left) && uir_dim_equal(c->right, right))
            return UIR_STATUS_OK;
    }
    UIR_TRY_ALLOCATE(list, uir_arena_allocate_array(&s->function->arena, b->condition_count + 1, sizeof *list));
    if (b->condition_count) memcpy(list, b->conditions, b->condition_count * sizeof *list);
    list[b->condition_count] = (uir_condition){relation, left, right};
    b->conditions = list;
    b->condition_count++;
    return UIR_STATUS_OK;
}

/* ---- substitution ---- */
uir_status uir_substitution_set(uir_schedule *s, uir_substitution *substitution, uir_symbol symbol, uir_dim value) {
    if (!value.id) return UIR_STATUS_OUT_OF_MEMORY;
    return uir_vector_push(&s->scratch, substitution, ((uir_dim_replacement){symbol, value}));
}

uir_dim uir_substitute(uir_schedule *s, const uir_substitution *substitution, uir_dim dim) {
    return uir_dim_replace(s->function->dims, dim, substitution->data, substitution->count);
}

static uir_status substitute_conditions(uir_schedule *s, uir_loop_statement *statement,
                                        const uir_substitution *substitution) {
    uir_condition *list;
    if (!statement->condition_count) return UIR_STATUS_OK;
    UIR_TRY_ALLOCATE(
        list, uir_arena_copy(&s->function->arena, statement->conditions, statement->condition_count * sizeof *list));
    for (uint32_t i = 0; i < statement->condition_count; i++) {
        list[i].left = uir_substitute(s, substitution, list[i].left);
        list[i].right = uir_substitute(s, substitution, list[i].right);
        if (!list[i].left.id || !list[i].right.id) return UIR_STATUS_OUT_OF_MEMORY;
    }
    statement->conditions = list;
    return UIR_STATUS_OK;
}

/* A loop whose range changes with the substitution gets a variable of its own, because the old one's facts are of the
 * old range. */
static uir_status substitute_loop(uir_schedule *s, uir_loop_statement *loop, uir_substitution *substitution) {
    uir_dims *dims = s->function->dims;
    uir_dim min = uir_substitute(s, substitution, loop->min), extent = uir_substitute(s, substitution, loop->extent);
    if (!min.id || !extent.id) return UIR_STATUS_OUT_OF_MEMORY;
    if (uir_dim_equal(min, loop->min) && uir_dim_equal(extent, loop->extent)) return UIR_STATUS_OK;
    uir_symbol before = loop->symbol;
    int64_t least, greatest;
    uir_dim_bounds(dims, min, &least, &greatest);
    uir_symbol_facts facts = {least, UIR_DIM_UNBOUNDED, 1, uir_dim_add(dims, min, extent)};
    UIR_TRY(uir_dims_add_symbol(dims, loop->name, strlen(loop->name), facts, &loop->symbol));
    loop->min = min;
    loop->extent = extent;
    return uir_substitution_set(s, substitution, before, uir_dim_symbol(dims, loop->symbol));
}

static uir_status substitute_one(uir_schedule *s, uint32_t id, uir_substitution *substitution) {
    uir_loop_statement *statement = UIR_SCHEDULE_AT(s, id);
    UIR_TRY(substitute_conditions(s, statement, substitution));
    if (statement->kind == UIR_LOOP_STATEMENT_FOR) UIR_TRY(substitute_loop(s, statement, substitution));
    if (statement->kind != UIR_LOOP_STATEMENT_BLOCK) {
        for (uint32_t child = statement->first_child; child != UIR_LOOP_NONE; child = UIR_SCHEDULE_AT(s, child)->next)
            UIR_TRY(substitute_one(s, child, substitution));
        return UIR_STATUS_OK;
    }
    for (uint32_t i = 0; i < statement->iter_count; i++) {
        if (statement->iters[i].data) continue;
        statement->iters[i].value = uir_substitute(s, substitution, statement->iters[i].value);
        if (!statement->iters[i].value.id) return UIR_STATUS_OUT_OF_MEMORY;
    }
    return UIR_STATUS_OK;
}

uir_status uir_tree_substitute(uir_schedule *s, uint32_t id, const uir_substitution *substitution) {
    uir_substitution copy = *substitution;
    return substitute_one(s, id, &copy);
}

bool uir_dim_uses(uir_schedule *s, uir_dim dim, uir_symbol symbol) {
    return uir_dim_mentions(s->function->dims, dim, symbol);
}

uir_status uir_expression_substitute(uir_schedule *s, uint32_t id, const uir_substitution *substitution,
                                     uint32_t *out_id) {
    uir_loop_function *f = s->function;
    uir_loop_expression e = f->expressions.data[id];
    bool changed = false;
    if (e.kind == UIR_LOOP_INDEX) {
        uir_dim index = uir_substitute(s, substitution, e.index);
        if (!index.id) return UIR_STATUS_OUT_OF_MEMORY;
        changed = !uir_dim_equal(index, e.index);
        e.index = index;
    }
    for (uint32_t d = 0; e.kind == UIR_LOOP_LOAD && d < f->tensors.data[e.load.tensor].rank; d++) {
        uir_dim index = uir_substitute(s, substitution, e.load.indices[d]);
        if (!index.id) return UIR_STATUS_OUT_OF_MEMORY;
        changed |= !uir_dim_equal(index, e.load.indices[d]);
        e.load.indices[d] = index;
    }
    for (uint32_t i = 0; e.kind == UIR_LOOP_CALL && i < e.argument_count; i++) {
        uint32_t argument;
        UIR_TRY(uir_expression_substitute(s, e.arguments[i], substitution, &argument));
        changed |= argument != e.arguments[i];
        e.arguments[i] = argument;
    }
    *out_id = id;
    if (!changed) return UIR_STATUS_OK;
    *out_id = f->expressions.count;
    return uir_vector_push(&f->arena, &f->expressions, e);
}
