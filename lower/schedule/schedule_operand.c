/* What a sum of products takes: an operand computed ahead, the operands' order, what the block is to later stages. */
#include "lower/schedule/contraction_classify.h"
#include "lower/schedule/schedule_internal.h"

#include <stdio.h>
#include <string.h>

static uir_status need_block(uir_schedule *s, uint32_t block) {
    if (uir_tree_reachable(s, block, UIR_LOOP_STATEMENT_BLOCK)) return UIR_STATUS_OK;
    return uir_step_refuse(s, "statement %u is not a block", block);
}

/* The call whose value a block's only statement takes. */
static uir_status find_call(uir_schedule *s, uint32_t block, uint32_t *out_statement, uint32_t *out_call) {
    UIR_TRY(need_block(s, block));
    *out_statement = uir_block_only_statement(s, block);
    if (*out_statement == UIR_LOOP_NONE || UIR_SCHEDULE_AT(s, *out_statement)->value_count != 1)
        return uir_step_refuse(s, "%s has more than one statement or value", UIR_SCHEDULE_AT(s, block)->name);
    *out_call = UIR_SCHEDULE_AT(s, *out_statement)->values[0];
    if (s->function->expressions.data[*out_call].kind != UIR_LOOP_CALL)
        return uir_step_refuse(s, "%s has no operands", UIR_SCHEDULE_AT(s, block)->name);
    return UIR_STATUS_OK;
}

/* ---- an operand computed ahead ---- */
typedef struct ahead {
    uir_schedule *s;
    uint32_t block;
    uint32_t under; /* the loop that the operand is computed in; NONE: outside of all */
    uint32_t iters[UIR_LOOP_MAX_ITERS];
    uint32_t iter_count; /* the tensor's dims */
    uint32_t used_count; /* those, then variables that stand still in the loop */
} ahead;

typedef struct use_search {
    ahead *a;
    uint32_t strange; /* an iteration variable that is not listed and does not stand still; NONE */
} use_search;

/* Do the loops between the block and the one that the operand is computed in leave the variable alone? */
static bool stands_still(const ahead *a, uint32_t iter) {
    uint32_t path[UIR_SCHEDULE_MAX_DEPTH], count = uir_tree_path(a->s, a->block, path), first = 0;
    const uir_loop_iter *of = &UIR_SCHEDULE_AT(a->s, a->block)->iters[iter];
    if (a->under == UIR_LOOP_NONE || of->data) return false;
    while (first < count && path[first] != a->under) first++;
    for (uint32_t i = first + 1; i < count; i++)
        if (UIR_SCHEDULE_AT(a->s, path[i])->kind == UIR_LOOP_STATEMENT_FOR &&
            uir_dim_uses(a->s, of->value, UIR_SCHEDULE_AT(a->s, path[i])->symbol))
            return false;
    return true;
}

static void note_symbol(void *user, uir_symbol symbol) {
    use_search *u = user;
    const uir_loop_statement *b = UIR_SCHEDULE_AT(u->a->s, u->a->block);
    for (uint32_t i = 0; i < b->iter_count; i++) {
        if (b->iters[i].symbol.id != symbol.id) continue;
        bool listed = false;
        for (uint32_t k = 0; k < u->a->used_count; k++) listed |= u->a->iters[k] == i;
        if (listed) continue;
        if (stands_still(u->a, i))
            u->a->iters[u->a->used_count++] = i;
        else
            u->strange = i;
    }
}

/* A place before which something is to be complete: the top of a nest; or a statement of `under`'s list, and then what
 * is written before it in the same iteration of the loops around is complete as well. */
typedef struct deadline {
    uint32_t root, under, before;
} deadline;

static deadline deadline_of(uir_schedule *s, uint32_t block, uint32_t under) {
    deadline d = {uir_tree_root(s, block), under, block};
    while (under != UIR_LOOP_NONE && uir_schedule_parent(s, d.before) != under)
        d.before = uir_schedule_parent(s, d.before);
    return d;
}

/* Does anything at or after the place write the tensor? */
static bool written_later(uir_schedule *s, const deadline *d, uint32_t tensor) {
    uint32_t count = uir_schedule_writers(s, tensor, NULL, 0), *blocks;
    blocks = uir_arena_allocate_array(&s->scratch, count + 1, sizeof *blocks);
    if (!blocks) return true;
    uir_schedule_writers(s, tensor, blocks, count);
    for (uint32_t i = 0; i < count; i++) {
        bool here = d->under != UIR_LOOP_NONE && s->places.data[blocks[i]] < s->places.data[d->before];
        if (!here && s->places.data[blocks[i]] >= s->places.data[d->root]) return true;
    }
    return false;
}

/* What the expression loads is written before the statement, and not by it. */
static uir_status check_complete(uir_schedule *s, uint32_t block, const deadline *d, uint32_t id) {
    const uir_loop_expression *e = &s->function->expressions.data[id];
    if (e->kind == UIR_LOOP_LOAD && written_later(s, d, e->load.tensor))
        return uir_step_refuse(s, "%s is not complete before %s", UIR_SCHEDULE_TENSOR(s, e->load.tensor)->name,
                               UIR_SCHEDULE_AT(s, block)->name);
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++)
        UIR_TRY(check_complete(s, block, d, e->arguments[i]));
    return UIR_STATUS_OK;
}

static uir_status check_operand(use_search *u, uint32_t id) {
    uir_schedule *s = u->a->s;
    const uir_loop_function *f = s->function;
    const uir_loop_expression *e = &f->expressions.data[id];
    if (e->kind == UIR_LOOP_INDEX) uir_dim_visit_symbols(f->dims, e->index, note_symbol, u);
    for (uint32_t d = 0; e->kind == UIR_LOOP_LOAD && d < f->tensors.data[e->load.tensor].rank; d++)
        uir_dim_visit_symbols(f->dims, e->load.indices[d], note_symbol, u);
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++)
        UIR_TRY(check_operand(u, e->arguments[i]));
    if (u->strange != UIR_LOOP_NONE)
        return uir_step_refuse(s, "the operand of %s depends on %s", UIR_SCHEDULE_AT(s, u->a->block)->name,
                               UIR_SCHEDULE_AT(s, u->a->block)->iters[u->strange].name);
    return UIR_STATUS_OK;
}

/* Where the variables begin and how far they run: all of the domain, or what is needed in the loop. */
static uir_status find_ranges(const ahead *a, uint32_t tensor, uir_dim *low, uir_dim *extent) {
    uir_schedule *s = a->s;
    uir_dims *dims = s->function->dims;
    uir_site site = {.tensor = tensor, .block = a->block};
    uir_region region = {.empty = true};
    uir_dim zero = uir_dim_const(dims, 0), one = uir_dim_const(dims, 1);
    for (uint32_t i = 0; i < a->used_count; i++) {
        const uir_loop_iter *of = &UIR_SCHEDULE_AT(s, a->block)->iters[a->iters[i]];
        low[i] = a->under == UIR_LOOP_NONE ? zero : of->value;
        extent[i] = a->under == UIR_LOOP_NONE ? of->extent : one;
        if (i < a->iter_count) site.at[i] = of->value;
    }
    if (a->under == UIR_LOOP_NONE) return UIR_STATUS_OK;
    UIR_TRY(uir_region_join(s, &site, a->under, &region));
    for (uint32_t i = 0; i < a->iter_count; i++) {
        low[i] = region.low[i];
        extent[i] = uir_dim_add(dims, uir_dim_sub(dims, region.high[i], region.low[i]), one);
    }
    return UIR_STATUS_OK;
}

/* The block that stores the operand to `tensor`, with a nest of its own before the block that takes it. */
static uir_status add_block(const ahead *a, uint32_t tensor, uint32_t operand, uint32_t *out_block) {
    uir_schedule *s = a->s;
    uir_loop_function *f = s->function;
    uir_loop_statement block = {.kind = UIR_LOOP_STATEMENT_BLOCK, .first_child = UIR_LOOP_NONE, .next = UIR_LOOP_NONE};
    uir_loop_statement store = {.kind = UIR_LOOP_STATEMENT_STORE, .first_child = UIR_LOOP_NONE, .next = UIR_LOOP_NONE};
    uir_dim low[UIR_LOOP_MAX_ITERS], extent[UIR_LOOP_MAX_ITERS];
    uir_substitution values = {0};
    uint32_t top, before = a->block;
    UIR_TRY(find_ranges(a, tensor, low, extent));
    UIR_TRY(uir_tree_block_name(s, UIR_SCHEDULE_TENSOR(s, tensor)->name, &block.name));
    for (uint32_t i = 0; i < a->used_count; i++) {
        const uir_loop_iter *of = &UIR_SCHEDULE_AT(s, a->block)->iters[a->iters[i]];
        uir_loop_iter iter = {.name = of->name, .axis = of->axis, .extent = of->extent};
        uir_symbol_facts facts = {0, UIR_DIM_UNBOUNDED, 1, of->extent};
        UIR_TRY(uir_dims_add_symbol(f->dims, of->name, strlen(of->name), facts, &iter.symbol));
        iter.value = low[i];
        block.iters[block.iter_count++] = iter;
        uir_dim variable = uir_dim_symbol(f->dims, iter.symbol);
        if (i < a->iter_count) store.targets[0].indices[i] = variable;
        UIR_TRY(uir_substitution_set(s, &values, of->symbol, variable));
    }
    store.targets[0].tensor = tensor;
    store.target_count = store.value_count = 1;
    UIR_TRY(uir_expression_substitute(s, operand, &values, &store.values[0]));
    UIR_TRY(uir_tree_add(s, &store, &block.first_child));
    UIR_TRY(uir_tree_add(s, &block, out_block));
    while (uir_schedule_parent(s, before) != a->under) before = uir_schedule_parent(s, before);
    UIR_TRY(uir_move_build_nest(s, *out_block, before, low, extent, &top));
    s->full.data[*out_block] = a->under == UIR_LOOP_NONE;
    uir_tree_insert_before(s, before, top);
    return uir_move_guard_domain(s, *out_block);
}

static uir_status check_iters(const ahead *a) {
    const uir_loop_statement *b = UIR_SCHEDULE_AT(a->s, a->block);
    if (a->under != UIR_LOOP_NONE &&
        (!uir_tree_reachable(a->s, a->under, UIR_LOOP_STATEMENT_FOR) || !uir_tree_holds(a->s, a->under, a->block)))
        return uir_step_refuse(a->s, "%s is not in that loop", b->name);
    for (uint32_t i = 0; i < a->iter_count; i++) {
        bool twice = false;
        for (uint32_t k = 0; k < i; k++) twice |= a->iters[k] == a->iters[i];
        if (twice || a->iters[i] >= b->iter_count || b->iters[a->iters[i]].data)
            return uir_step_refuse(a->s, "an operand of %s must be computed over variables of loops, each named once",
                                   b->name);
    }
    return UIR_STATUS_OK;
}

/* The place of the operand in the call: itself, or what a cast of it takes. */
static uir_status find_operand(uir_schedule *s, uint32_t block, uint32_t call, uint32_t which, bool under_cast,
                               uint32_t *out_operand) {
    const uir_loop_expression *e = &s->function->expressions.data[call];
    if (which >= e->argument_count)
        return uir_step_refuse(s, "%s has no operand %u", UIR_SCHEDULE_AT(s, block)->name, which);
    *out_operand = e->arguments[which];
    if (!under_cast) return UIR_STATUS_OK;
    const uir_loop_expression *cast = &s->function->expressions.data[*out_operand];
    if (cast->kind != UIR_LOOP_CALL || cast->op != UIR_OP_CAST)
        return uir_step_refuse(s, "operand %u of %s is not a cast", which, UIR_SCHEDULE_AT(s, block)->name);
    *out_operand = cast->arguments[0];
    return UIR_STATUS_OK;
}

/* The call with its operand loaded from the tensor. */
static uir_status take_from(const ahead *a, uint32_t statement, uint32_t which, bool under_cast, uint32_t tensor) {
    uir_schedule *s = a->s;
    uir_loop_function *f = s->function;
    uir_loop_expression load = {.kind = UIR_LOOP_LOAD, .dtype = UIR_SCHEDULE_TENSOR(s, tensor)->dtype};
    uir_loop_expression call = f->expressions.data[UIR_SCHEDULE_AT(s, statement)->values[0]];
    load.load.tensor = tensor;
    for (uint32_t i = 0; i < a->iter_count; i++)
        load.load.indices[i] = uir_dim_symbol(f->dims, UIR_SCHEDULE_AT(s, a->block)->iters[a->iters[i]].symbol);
    uint32_t at = f->expressions.count;
    UIR_TRY(uir_vector_push(&f->arena, &f->expressions, load));
    if (under_cast) {
        uir_loop_expression cast = f->expressions.data[call.arguments[which]];
        cast.arguments[0] = at;
        at = f->expressions.count;
        UIR_TRY(uir_vector_push(&f->arena, &f->expressions, cast));
    }
    call.arguments[which] = at;
    UIR_SCHEDULE_AT(s, statement)->values[0] = f->expressions.count;
    return uir_vector_push(&f->arena, &f->expressions, call);
}

/* " over m, k"; "" of none. */
static void list_iters(const ahead *a, char *text, size_t size) {
    size_t length = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < a->iter_count && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%.40s", i ? ", " : " over ",
                                   UIR_SCHEDULE_AT(a->s, a->block)->iters[a->iters[i]].name);
}

static uir_status cache_operand(ahead *a, const uir_schedule_operand *operand, const char *space, uint32_t *out_tensor,
                                uint32_t *out_copy) {
    uir_schedule *s = a->s;
    uint32_t statement, call, expression = UIR_LOOP_NONE;
    use_search search = {a, UIR_LOOP_NONE};
    char list[400];
    UIR_TRY(find_call(s, a->block, &statement, &call));
    UIR_TRY(find_operand(s, a->block, call, operand->which, operand->under_cast, &expression));
    UIR_TRY(check_iters(a));
    const deadline now = deadline_of(s, a->block, a->under);
    UIR_TRY(check_complete(s, a->block, &now, expression));
    UIR_TRY(check_operand(&search, expression));
    const char *loop = a->under == UIR_LOOP_NONE ? "" : uir_step_loop_text(s, a->under);
    uir_loop_tensor t = {.dtype = s->function->expressions.data[expression].dtype, .role = UIR_LOOP_ROLE_TEMP};
    t.rank = a->iter_count;
    for (uint32_t i = 0; i < a->iter_count; i++) t.extents[i] = UIR_SCHEDULE_AT(s, a->block)->iters[a->iters[i]].extent;
    list_iters(a, list, sizeof list);
    UIR_TRY(uir_tree_tensor_name(s, operand->name, &t.name));
    UIR_TRY_ALLOCATE(t.space, uir_arena_copy_string(&s->function->arena, space, strlen(space)));
    *out_tensor = s->function->tensors.count;
    UIR_TRY(uir_vector_push(&s->function->arena, &s->function->tensors, t));
    UIR_TRY(add_block(a, *out_tensor, expression, out_copy));
    UIR_TRY(take_from(a, statement, operand->which, operand->under_cast, *out_tensor));
    UIR_TRY(uir_tree_index(s));
    if (operand->guarded) UIR_TRY(uir_move_carry_conditions(s, *out_copy, a->under, &a->block, 1));
    UIR_TRY(uir_region_check_accesses(s, *out_copy));
    uir_step_moved(s, UIR_LOOP_NONE);
    uir_step_say(s, "cache operand %u of %s%s%s%s%s%s in %s as %s", operand->which, UIR_SCHEDULE_AT(s, a->block)->name,
                 operand->under_cast ? " under its cast" : "", operand->guarded ? " guarded" : "", list,
                 *loop ? " at " : "", loop, space, t.name);
    return UIR_STATUS_OK;
}

uir_status uir_schedule_cache_operand(uir_schedule *schedule, uint32_t block, const uir_schedule_operand *operand,
                                      const uint32_t *iters, uint32_t count, uint32_t loop, const char *space,
                                      uint32_t *out_tensor, uint32_t *out_copy) {
    ahead a = {.s = schedule, .block = block, .under = loop, .iter_count = count, .used_count = count};
    uint32_t made = UIR_LOOP_NONE, copy = UIR_LOOP_NONE;
    UIR_TRY(uir_step_begin(schedule));
    if (count > UIR_LOOP_MAX_RANK)
        return uir_step_end(schedule, uir_step_refuse(schedule, "a tensor has at most %d dims", UIR_LOOP_MAX_RANK));
    for (uint32_t i = 0; i < count; i++) a.iters[i] = iters[i];
    UIR_TRY(uir_step_end(schedule, cache_operand(&a, operand, space, &made, &copy)));
    uir_step_give(schedule, out_tensor, made);
    uir_step_give(schedule, out_copy, copy);
    return UIR_STATUS_OK;
}

/* ---- an operand that is there ---- */
static bool is_same_expression(const uir_loop_function *f, uint32_t a, uint32_t b) {
    const uir_loop_expression *x = &f->expressions.data[a], *y = &f->expressions.data[b];
    if (a == b) return true;
    if (x->kind != y->kind || x->dtype != y->dtype) return false;
    switch (x->kind) {
    case UIR_LOOP_CALL:
        if (x->op != y->op || x->argument_count != y->argument_count || x->overflows != y->overflows) return false;
        for (uint32_t i = 0; i < x->argument_count; i++)
            if (!is_same_expression(f, x->arguments[i], y->arguments[i])) return false;
        return true;
    case UIR_LOOP_LOAD:
        if (x->load.tensor != y->load.tensor || x->has_fill != y->has_fill ||
            (x->has_fill && memcmp(&x->fill, &y->fill, sizeof x->fill) != 0))
            return false;
        for (uint32_t d = 0; d < f->tensors.data[x->load.tensor].rank; d++)
            if (!uir_dim_equal(x->load.indices[d], y->load.indices[d])) return false;
        return true;
    case UIR_LOOP_INDEX:
        return uir_dim_equal(x->index, y->index);
    case UIR_LOOP_CONSTANT:
        return x->integer == y->integer && !memcmp(&x->real, &y->real, sizeof x->real);
    default:
        return false;
    }
}

/* The one block that stores the tensor, each element once it has an index. */
static uir_status find_keeper(const ahead *a, uint32_t tensor, uint32_t *out_block, uint32_t *iters) {
    uir_schedule *s = a->s;
    uint32_t writers = uir_schedule_writers(s, tensor, out_block, 1);
    const char *name = UIR_SCHEDULE_TENSOR(s, tensor)->name;
    if (UIR_SCHEDULE_TENSOR(s, tensor)->role != UIR_LOOP_ROLE_TEMP || writers != 1)
        return uir_step_refuse(s, "%s is not a temporary tensor that one block stores", name);
    const uir_loop_statement *keeper = UIR_SCHEDULE_AT(s, *out_block);
    uint32_t statement = uir_block_only_statement(s, *out_block);
    bool plain = statement != UIR_LOOP_NONE && UIR_SCHEDULE_AT(s, statement)->kind == UIR_LOOP_STATEMENT_STORE &&
                 uir_access_is_plain(s, keeper, &UIR_SCHEDULE_AT(s, statement)->targets[0], iters);
    for (uint32_t i = 0; i < keeper->iter_count; i++) plain &= !keeper->iters[i].data;
    if (!plain || a->iter_count != UIR_SCHEDULE_TENSOR(s, tensor)->rank)
        return uir_step_refuse(s, "%s is not stored at iteration variables of %s, one per dim", name, keeper->name);
    return UIR_STATUS_OK;
}

/* What the keeper stores where the block reads it: its dims' variables are the block's; others stand where one of the
 * block's stands. */
static uir_status find_kept(const ahead *a, uint32_t keeper, const uint32_t *dims, uint32_t *out_expression) {
    uir_schedule *s = a->s;
    const uir_loop_statement *k = UIR_SCHEDULE_AT(s, keeper), *b = UIR_SCHEDULE_AT(s, a->block);
    uir_substitution values = {0};
    for (uint32_t i = 0; i < k->iter_count; i++) {
        uint32_t as = UIR_LOOP_NONE;
        for (uint32_t u = b->iter_count; u-- > 0;)
            if (!b->iters[u].data && uir_dim_equal(b->iters[u].value, k->iters[i].value)) as = u;
        for (uint32_t d = 0; d < a->iter_count; d++)
            if (dims[d] == i) as = a->iters[d];
        if (as == UIR_LOOP_NONE) continue;
        UIR_TRY(uir_substitution_set(s, &values, k->iters[i].symbol,
                                     uir_dim_symbol(s->function->dims, b->iters[as].symbol)));
    }
    uint32_t statement = uir_block_only_statement(s, keeper);
    return uir_expression_substitute(s, UIR_SCHEDULE_AT(s, statement)->values[0], &values, out_expression);
}

static uir_status check_kept(const ahead *a, uint32_t keeper, uint32_t tensor) {
    uir_schedule *s = a->s;
    uir_sites sites = {0};
    UIR_TRY(uir_sites_collect_all(s, UIR_LOOP_NONE, &sites));
    UIR_SITES_OF_TENSOR(&sites, tensor, i) {
        bool covered = false;
        if (sites.data[i].block != a->block) continue;
        UIR_SITES_OF_TENSOR(&sites, tensor, k)
        if (sites.data[k].write) UIR_TRY(uir_region_covers(s, &sites.data[k], &sites.data[i], &covered));
        if (!covered)
            return uir_step_refuse(s, "the operand of %s is not proved to be written by %s in the same iteration",
                                   UIR_SCHEDULE_AT(s, a->block)->name, UIR_SCHEDULE_AT(s, keeper)->name);
    }
    return UIR_STATUS_OK;
}

static uir_status take_operand(ahead *a, const uir_schedule_operand *operand, uint32_t tensor) {
    uir_schedule *s = a->s;
    uint32_t statement, call, expression = UIR_LOOP_NONE, keeper = UIR_LOOP_NONE, dims[UIR_LOOP_MAX_RANK], kept;
    char list[400];
    UIR_TRY(find_call(s, a->block, &statement, &call));
    UIR_TRY(find_operand(s, a->block, call, operand->which, operand->under_cast, &expression));
    UIR_TRY(check_iters(a));
    if (tensor >= s->function->tensors.count) return uir_step_refuse(s, "unknown tensor %u", tensor);
    UIR_TRY(find_keeper(a, tensor, &keeper, dims));
    const deadline of_keeper = deadline_of(s, keeper, UIR_LOOP_NONE);
    UIR_TRY(check_complete(s, a->block, &of_keeper, expression));
    UIR_TRY(find_kept(a, keeper, dims, &kept));
    if (!is_same_expression(s->function, kept, expression))
        return uir_step_refuse(s, "%s is not proved to hold the operand of %s", UIR_SCHEDULE_TENSOR(s, tensor)->name,
                               UIR_SCHEDULE_AT(s, a->block)->name);
    UIR_TRY(take_from(a, statement, operand->which, operand->under_cast, tensor));
    UIR_TRY(check_kept(a, keeper, tensor));
    UIR_TRY(uir_region_check_accesses(s, a->block));
    list_iters(a, list, sizeof list);
    uir_step_moved(s, UIR_LOOP_NONE);
    uir_step_say(s, "take operand %u of %s%s%s from %s", operand->which, UIR_SCHEDULE_AT(s, a->block)->name,
                 operand->under_cast ? " under its cast" : "", list, UIR_SCHEDULE_TENSOR(s, tensor)->name);
    return UIR_STATUS_OK;
}

uir_status uir_schedule_take_operand(uir_schedule *schedule, uint32_t block, const uir_schedule_operand *operand,
                                     const uint32_t *iters, uint32_t count, uint32_t tensor) {
    ahead a = {.s = schedule, .block = block, .under = UIR_LOOP_NONE, .iter_count = count, .used_count = count};
    UIR_TRY(uir_step_begin(schedule));
    if (count > UIR_LOOP_MAX_RANK)
        return uir_step_end(schedule, uir_step_refuse(schedule, "a tensor has at most %d dims", UIR_LOOP_MAX_RANK));
    for (uint32_t i = 0; i < count; i++) a.iters[i] = iters[i];
    return uir_step_end(schedule, take_operand(&a, operand, tensor));
}

/* ---- the operands' order ---- */
static uir_status exchange(uir_schedule *s, uint32_t block) {
    uint32_t statement, call;
    UIR_TRY(find_call(s, block, &statement, &call));
    uir_loop_expression e = s->function->expressions.data[call];
    if (e.op != UIR_OP_MUL && e.op != UIR_OP_ADD)
        return uir_step_refuse(s, "the operands of %s cannot be exchanged", UIR_SCHEDULE_AT(s, block)->name);
    uint32_t first = e.arguments[0];
    e.arguments[0] = e.arguments[1];
    e.arguments[1] = first;
    UIR_SCHEDULE_AT(s, statement)->values[0] = s->function->expressions.count;
    UIR_TRY(uir_vector_push(&s->function->arena, &s->function->expressions, e));
    uir_step_say(s, "exchange operands of %s", UIR_SCHEDULE_AT(s, block)->name);
    return UIR_STATUS_OK;
}

uir_status uir_schedule_exchange(uir_schedule *schedule, uint32_t block) {
    UIR_TRY(uir_step_begin(schedule));
    return uir_step_end(schedule, exchange(schedule, block));
}

/* ---- what is outside ---- */
static uir_status leave_out(uir_schedule *s, uint32_t block, uint32_t which, uint32_t dim) {
    uir_loop_function *f = s->function;
    uir_substitution at = {0};
    uir_conditions given = {0};
    uint32_t statement, call, operand;
    UIR_TRY(find_call(s, block, &statement, &call));
    UIR_TRY(find_operand(s, block, call, which, false, &operand));
    const uir_loop_statement *update = UIR_SCHEDULE_AT(s, statement);
    const char *name = UIR_SCHEDULE_AT(s, block)->name;
    if (update->kind != UIR_LOOP_STATEMENT_UPDATE || f->expressions.data[call].op != UIR_OP_MUL ||
        uir_loop_monoid_get_op(f, &f->monoids.data[update->monoid]) != UIR_OP_ADD)
        return uir_step_refuse(s, "%s is not a sum of products", name);
    const uir_loop_expression *e = &f->expressions.data[operand];
    while (e->kind == UIR_LOOP_CALL && e->op == UIR_OP_CAST) e = &f->expressions.data[e->arguments[0]];
    if (e->kind != UIR_LOOP_LOAD || !e->has_fill || e->fill != 0)
        return uir_step_refuse(s, "operand %u of %s is not 0 out of bounds", which, name);
    const uir_loop_tensor *tensor = UIR_SCHEDULE_TENSOR(s, e->load.tensor);
    if (dim >= tensor->rank) return uir_step_refuse(s, "%s has no dim %u", tensor->name, dim);
    for (uint32_t i = 0; i < UIR_SCHEDULE_AT(s, block)->iter_count; i++) {
        const uir_loop_iter *iter = &UIR_SCHEDULE_AT(s, block)->iters[i];
        if (!iter->data)
            UIR_TRY(uir_substitution_set(s, &at, iter->symbol, iter->value));
        else if (uir_dim_mentions(f->dims, e->load.indices[dim], iter->symbol))
            return uir_step_refuse(s, "the index of operand %u of %s is read from data", which, name);
    }
    uir_dim index = uir_substitute(s, &at, e->load.indices[dim]), zero = uir_dim_const(f->dims, 0);
    UIR_TRY(uir_order_given(s, block, &given));
    if (!uir_order_proved(s, &given, index, UIR_RELATION_LT, tensor->extents[dim]))
        UIR_TRY(uir_tree_add_condition(s, block, UIR_RELATION_LT, index, tensor->extents[dim]));
    if (!uir_order_proved(s, &given, index, UIR_RELATION_GE, zero))
        UIR_TRY(uir_tree_add_condition(s, block, UIR_RELATION_LE, zero, index));
    s->full.data[block] = false;
    uir_step_say(s, "leave out operand %u of %s outside along %u", which, name, dim);
    return UIR_STATUS_OK;
}

uir_status uir_schedule_leave_out(uir_schedule *schedule, uint32_t block, uint32_t which, uint32_t dim) {
    UIR_TRY(uir_step_begin(schedule));
    return uir_step_end(schedule, leave_out(schedule, block, which, dim));
}

/* ---- contractions ---- */
static uir_status classify(uir_schedule *s) {
    uint32_t count;
    if (s->trace.length) return uir_step_refuse(s, "`classify` must be the first step");
    UIR_TRY(uir_contraction_classify(s->function, s->machine, &count));
    s->indexed = false;
    uir_step_say(s, "classify");
    return UIR_STATUS_OK;
}

uir_status uir_schedule_classify(uir_schedule *schedule) {
    UIR_TRY(uir_step_begin(schedule));
    return uir_step_end(schedule, classify(schedule));
}

static uir_status set_classes(uir_schedule *s, uint32_t block, const uir_loop_class *classes) {
    char list[16 * UIR_LOOP_MAX_ITERS] = "";
    UIR_TRY(need_block(s, block));
    uir_loop_statement *b = UIR_SCHEDULE_AT(s, block);
    if (!(b->uses >> UIR_LOOP_USE_CONTRACTION & 1)) return uir_step_refuse(s, "%s is not a contraction", b->name);
    for (uint32_t i = 0; i < b->iter_count; i++) {
        size_t length = strlen(list);
        if ((classes[i] == UIR_LOOP_CLASS_K) != b->iters[i].reduce)
            return uir_step_refuse(s, "%s of %s: a reduction axis, and no other, must be k", b->iters[i].name, b->name);
        b->iters[i].part = classes[i];
        snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "", uir_loop_class_word(classes[i]));
    }
    uir_step_say(s, "map %s to %s", b->name, list);
    return UIR_STATUS_OK;
}

uir_status uir_schedule_set_classes(uir_schedule *schedule, uint32_t block, const uir_loop_class *classes) {
    UIR_TRY(uir_step_begin(schedule));
    return uir_step_end(schedule, set_classes(schedule, block, classes));
}

/* ---- uses ---- */
static uir_status set_use(uir_schedule *s, uint32_t block, uir_loop_use use) {
    UIR_TRY(need_block(s, block));
    UIR_SCHEDULE_AT(s, block)->uses |= 1u << use;
    uir_step_say(s, "use %s as %s", UIR_SCHEDULE_AT(s, block)->name, uir_loop_use_word(use));
    return UIR_STATUS_OK;
}

uir_status uir_schedule_set_use(uir_schedule *schedule, uint32_t block, uir_loop_use use) {
    UIR_TRY(uir_step_begin(schedule));
    return uir_step_end(schedule, set_use(schedule, block, use));
}
