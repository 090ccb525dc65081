/* rfactor: a reduction becomes partial states along a loop, and a combination of these. */
#include "lower/internal.h"
#include "lower/schedule/schedule_internal.h"

#include <stdio.h>
#include <string.h>

typedef struct factoring {
    uir_schedule *s;
    uint32_t block, update, loop; /* the block, its update statement, the loop of the partial states */
    uint32_t top;                 /* outermost loop around the block alone */
    uint32_t loops[UIR_SCHEDULE_MAX_DEPTH];
    uint32_t loop_count; /* from top down to the block */
    uint32_t states[UIR_LOOP_MAX_STATE];
    const char *part; /* name of the variable that says which partial state: the block has none of that name */
} factoring;

static bool decides(uir_schedule *s, uint32_t block, uint32_t loop, bool reduce) {
    const uir_loop_statement *b = UIR_SCHEDULE_AT(s, block);
    for (uint32_t i = 0; i < b->iter_count; i++)
        if (b->iters[i].reduce == reduce && !b->iters[i].data &&
            uir_dim_uses(s, b->iters[i].value, UIR_SCHEDULE_AT(s, loop)->symbol))
            return true;
    return false;
}

static uir_status check(factoring *f, uint32_t block, uint32_t loop) {
    uir_schedule *s = f->s;
    uint32_t path[UIR_SCHEDULE_MAX_DEPTH], count;
    if (!uir_tree_reachable(s, block, UIR_LOOP_STATEMENT_BLOCK))
        return uir_step_refuse(s, "statement %u is not a block", block);
    const uir_loop_statement *b = UIR_SCHEDULE_AT(s, block);
    f->update = uir_block_only_statement(s, block);
    if (f->update == UIR_LOOP_NONE || UIR_SCHEDULE_AT(s, f->update)->kind != UIR_LOOP_STATEMENT_UPDATE)
        return uir_step_refuse(s, "%s is not the update of a reduction", b->name);
    if (!uir_tree_reachable(s, loop, UIR_LOOP_STATEMENT_FOR) || !uir_tree_holds(s, loop, block))
        return uir_step_refuse(s, "the loop is not around %s", b->name);
    if (b->iter_count == UIR_LOOP_MAX_ITERS) return uir_step_refuse(s, "%s cannot have more variables", b->name);
    for (uint32_t i = 0; i < b->iter_count; i++)
        if (b->iters[i].data) return uir_step_refuse(s, "%s reads an index from data", b->name);
    if (!decides(s, block, loop, true) || decides(s, block, loop, false))
        return uir_step_refuse(s, "%s is not only a reduction loop of %s", UIR_SCHEDULE_AT(s, loop)->name, b->name);
    if (!uir_dim_is_of_sizes(s, UIR_SCHEDULE_AT(s, loop)->extent) ||
        !uir_dim_is_of_sizes(s, UIR_SCHEDULE_AT(s, loop)->min))
        return uir_step_refuse(s, "the range of %s is not made of sizes only", UIR_SCHEDULE_AT(s, loop)->name);
    const uir_loop_statement *st = UIR_SCHEDULE_AT(s, f->update);
    for (uint32_t i = 0; i < st->target_count; i++)
        if (UIR_SCHEDULE_TENSOR(s, st->targets[i].tensor)->rank == UIR_LOOP_MAX_RANK)
            return uir_step_refuse(s, "%s cannot have more axes", UIR_SCHEDULE_TENSOR(s, st->targets[i].tensor)->name);
    /* Each state is one instance's of the spatial variables: a combination must not be made twice. */
    uint32_t iters[UIR_LOOP_MAX_RANK], spatial = 0;
    for (uint32_t i = 0; i < b->iter_count; i++) spatial += !b->iters[i].reduce;
    for (uint32_t i = 0; i < st->target_count; i++) {
        const uir_loop_tensor *t = UIR_SCHEDULE_TENSOR(s, st->targets[i].tensor);
        if (!uir_access_is_plain(s, b, &st->targets[i], iters) || spatial != t->rank)
            return uir_step_refuse(s, "%s does not store %s at its iteration variables, one per dim", b->name, t->name);
    }
    uir_sites sites = {0};
    UIR_TRY(uir_sites_collect(s, block, &sites));
    for (uint32_t i = 0; i < sites.count; i++)
        for (uint32_t k = 0; k < st->target_count; k++)
            if (!sites.data[i].reduction && !sites.data[i].write && sites.data[i].tensor == st->targets[k].tensor)
                return uir_step_refuse(s, "%s reads what it updates", b->name);
    count = uir_tree_path(s, block, path);
    f->block = block;
    f->loop = loop;
    f->top = UIR_LOOP_NONE;
    for (uint32_t k = 0; k < count; k++) {
        if (f->top == UIR_LOOP_NONE) {
            if (uir_schedule_blocks(s, path[k], NULL, 0) != 1) continue;
            f->top = path[k];
        }
        if (UIR_SCHEDULE_AT(s, path[k])->kind != UIR_LOOP_STATEMENT_FOR)
            return uir_step_refuse(s, "an if is around %s", b->name);
        f->loops[f->loop_count++] = path[k];
    }
    bool inside = false;
    for (uint32_t k = 0; k < f->loop_count; k++) {
        inside |= f->loops[k] == loop;
        if (decides(s, block, f->loops[k], true) && decides(s, block, f->loops[k], false))
            return uir_step_refuse(s, "%s is both a spatial loop and a reduction loop of %s",
                                   UIR_SCHEDULE_AT(s, f->loops[k])->name, b->name);
    }
    if (!inside)
        return uir_step_refuse(s, "other blocks than %s are under %s", b->name, UIR_SCHEDULE_AT(s, loop)->name);
    bool outermost = true;
    for (uint32_t k = 0; k < count && path[k] != loop; k++)
        outermost &= UIR_SCHEDULE_AT(s, path[k])->kind != UIR_LOOP_STATEMENT_FOR || !decides(s, block, path[k], true);
    const uir_loop_monoid *m = &s->function->monoids.data[st->monoid];
    if (!outermost && !m->commutative)
        return uir_step_refuse(s, "%s is not the outermost loop of the reduction, and %s is not commutative",
                               UIR_SCHEDULE_AT(s, loop)->name, m->name);
    return UIR_STATUS_OK;
}

/* A block may be factored more than once. */
static uir_status name_part(factoring *f) {
    const uir_loop_statement *b = UIR_SCHEDULE_AT(f->s, f->block);
    char name[16] = "part";
    for (uint32_t i = 0, n = 2; i < b->iter_count; i++) {
        if (strcmp(b->iters[i].name, name) != 0) continue;
        snprintf(name, sizeof name, "part%u", n++);
        i = UINT32_MAX; /* from the first again */
    }
    UIR_TRY_ALLOCATE(f->part, uir_arena_copy_string(&f->s->function->arena, name, strlen(name)));
    return UIR_STATUS_OK;
}

static uir_status add_states(factoring *f) {
    uir_schedule *s = f->s;
    for (uint32_t i = 0; i < UIR_SCHEDULE_AT(s, f->update)->target_count; i++) {
        uir_loop_tensor t = *UIR_SCHEDULE_TENSOR(s, UIR_SCHEDULE_AT(s, f->update)->targets[i].tensor);
        t.layout = NULL;
        char base[160];
        snprintf(base, sizeof base, "%.150s_part", t.name);
        if (t.role == UIR_LOOP_ROLE_OUT) t.space = uir_lower_space(s->machine, UIR_SPACE_SCRATCH);
        t.role = UIR_LOOP_ROLE_TEMP;
        t.layout = NULL;
        UIR_TRY(uir_tree_tensor_name(s, base, &t.name));
        t.extents[t.rank++] = UIR_SCHEDULE_AT(s, f->loop)->extent;
        f->states[i] = s->function->tensors.count;
        UIR_TRY(uir_vector_push(&s->function->arena, &s->function->tensors, t));
    }
    return UIR_STATUS_OK;
}

/* A block over the spatial variables and one for the partial states, in copies of the loops that decide them. `reduce`:
 * the state's variable is reduced over, and its loop is the innermost. */
static uir_status add_block(factoring *f, const char *suffix, bool reduce, uir_loop_statement *statement,
                            uint32_t *out_top, uint32_t *out_block) {
    uir_schedule *s = f->s;
    uir_dims *dims = s->function->dims;
    uir_loop_statement block = {.kind = UIR_LOOP_STATEMENT_BLOCK, .first_child = UIR_LOOP_NONE, .next = UIR_LOOP_NONE};
    uir_loop_statement old = *UIR_SCHEDULE_AT(s, f->block);
    uir_substitution variables = {0}, loops = {0};
    char base[200];
    uint32_t last = UIR_LOOP_NONE, order[UIR_SCHEDULE_MAX_DEPTH], order_count = 0;
    snprintf(base, sizeof base, "%.150s%s", old.name, suffix);
    UIR_TRY(uir_tree_block_name(s, base, &block.name));
    for (uint32_t k = 0; k < f->loop_count; k++)
        if (f->loops[k] != f->loop && decides(s, f->block, f->loops[k], false)) order[order_count++] = f->loops[k];
    order[order_count++] = f->loop;
    *out_top = UIR_LOOP_NONE;
    for (uint32_t k = 0; k < order_count; k++) {
        uir_loop_statement from = *UIR_SCHEDULE_AT(s, order[k]);
        uint32_t loop;
        const char *name;
        UIR_TRY(uir_tree_loop_name(s, from.name, f->top, &name));
        bool state = order[k] == f->loop;
        uir_dim min = state ? uir_dim_const(dims, 0) : uir_substitute(s, &loops, from.min);
        UIR_TRY(uir_tree_add_loop(s, name, min, uir_substitute(s, &loops, from.extent), &loop));
        UIR_TRY(uir_substitution_set(s, &loops, from.symbol, uir_dim_symbol(dims, UIR_SCHEDULE_AT(s, loop)->symbol)));
        if (last == UIR_LOOP_NONE)
            *out_top = loop;
        else
            UIR_SCHEDULE_AT(s, last)->first_child = loop;
        last = loop;
    }
    for (uint32_t i = 0; i < old.iter_count; i++) {
        if (old.iters[i].reduce) continue;
        uir_loop_iter iter = old.iters[i];
        uir_symbol_facts facts = {0, UIR_DIM_UNBOUNDED, 1, iter.extent};
        UIR_TRY(uir_dims_add_symbol(dims, iter.name, strlen(iter.name), facts, &iter.symbol));
        UIR_TRY(uir_substitution_set(s, &variables, old.iters[i].symbol, uir_dim_symbol(dims, iter.symbol)));
        iter.value = uir_substitute(s, &loops, iter.value);
        block.iters[block.iter_count++] = iter;
    }
    uir_dim extent = UIR_SCHEDULE_AT(s, f->loop)->extent;
    uir_loop_iter part = {.name = f->part, .reduce = reduce, .extent = extent};
    uir_symbol_facts facts = {0, UIR_DIM_UNBOUNDED, 1, extent};
    UIR_TRY(uir_dims_add_symbol(dims, part.name, strlen(part.name), facts, &part.symbol));
    part.value = uir_dim_symbol(dims, UIR_SCHEDULE_AT(s, last)->symbol);
    block.iters[block.iter_count++] = part;
    uir_dim part_index = uir_dim_symbol(dims, part.symbol);
    /* Guards of the spatial variables stay; those of the reduction's loops are the update's. */
    for (uint32_t i = 0; i < old.condition_count; i++) {
        bool reduces = false, spatial = false;
        for (uint32_t k = 0; k < f->loop_count; k++) {
            uir_symbol symbol = UIR_SCHEDULE_AT(s, f->loops[k])->symbol;
            if (!uir_dim_uses(s, old.conditions[i].left, symbol) && !uir_dim_uses(s, old.conditions[i].right, symbol))
                continue;
            reduces |= !decides(s, f->block, f->loops[k], false);
            spatial |= decides(s, f->block, f->loops[k], false);
        }
        if (reduces && spatial)
            return uir_step_refuse(s, "a guard of %s mixes spatial and reduction variables", old.name);
        if (reduces) continue;
        uir_condition *list;
        UIR_TRY_ALLOCATE(list, uir_arena_allocate_array(&s->function->arena, block.condition_count + 1, sizeof *list));
        if (block.condition_count) memcpy(list, block.conditions, block.condition_count * sizeof *list);
        list[block.condition_count++] =
            (uir_condition){old.conditions[i].relation, uir_substitute(s, &loops, old.conditions[i].left),
                            uir_substitute(s, &loops, old.conditions[i].right)};
        block.conditions = list;
    }
    for (uint32_t i = 0; i < statement->target_count; i++) {
        uir_loop_access state = {.tensor = f->states[i]};
        uint32_t rank = UIR_SCHEDULE_TENSOR(s, f->states[i])->rank - 1;
        for (uint32_t d = 0; d < rank; d++)
            state.indices[d] = statement->targets[i].indices[d] =
                uir_substitute(s, &variables, statement->targets[i].indices[d]);
        state.indices[rank] = part_index;
        if (!reduce) {
            statement->targets[i] = state;
            continue;
        }
        uir_loop_expression load = {.kind = UIR_LOOP_LOAD, .load = state};
        load.dtype = UIR_SCHEDULE_TENSOR(s, f->states[i])->dtype;
        statement->values[i] = s->function->expressions.count;
        UIR_TRY(uir_vector_push(&s->function->arena, &s->function->expressions, load));
    }
    statement->value_count = reduce ? statement->target_count : 0;
    statement->next = statement->first_child = UIR_LOOP_NONE;
    UIR_TRY(uir_tree_add(s, statement, &block.first_child));
    UIR_TRY(uir_tree_add(s, &block, out_block));
    UIR_SCHEDULE_AT(s, last)->first_child = *out_block;
    s->full.data[*out_block] = s->full.data[f->block];
    return UIR_STATUS_OK;
}

/* The old update goes into its partial state: one more variable, the loop's. */
static uir_status turn_update(factoring *f) {
    uir_schedule *s = f->s;
    uir_dims *dims = s->function->dims;
    uir_loop_statement *b = UIR_SCHEDULE_AT(s, f->block), *st = UIR_SCHEDULE_AT(s, f->update);
    const uir_loop_statement *loop = UIR_SCHEDULE_AT(s, f->loop);
    uir_loop_iter part = {.name = f->part, .extent = loop->extent};
    uir_symbol_facts facts = {0, UIR_DIM_UNBOUNDED, 1, loop->extent};
    UIR_TRY(uir_dims_add_symbol(dims, part.name, strlen(part.name), facts, &part.symbol));
    part.value = uir_dim_sub(dims, uir_dim_symbol(dims, loop->symbol), loop->min);
    if (!part.value.id) return UIR_STATUS_OUT_OF_MEMORY;
    b->iters[b->iter_count++] = part;
    for (uint32_t i = 0; i < st->target_count; i++) {
        st->targets[i].tensor = f->states[i];
        st->targets[i].indices[UIR_SCHEDULE_TENSOR(s, f->states[i])->rank - 1] = uir_dim_symbol(dims, part.symbol);
    }
    s->full.data[f->block] = false;
    return UIR_STATUS_OK;
}

static uir_status rfactor(uir_schedule *s, uint32_t block, uint32_t loop, uint32_t *out_init, uint32_t *out_combine,
                          uint32_t *out_tensor) {
    factoring f = {.s = s};
    uint32_t init_top, combine_top;
    UIR_TRY(check(&f, block, loop));
    UIR_TRY(name_part(&f));
    const char *text = uir_step_loop_text(s, loop), *name = UIR_SCHEDULE_AT(s, block)->name;
    uir_loop_statement init = *UIR_SCHEDULE_AT(s, f.update), combine = init;
    init.kind = UIR_LOOP_STATEMENT_INIT;
    combine.kind = UIR_LOOP_STATEMENT_COMBINE;
    UIR_TRY(add_states(&f));
    UIR_TRY(add_block(&f, "_part_init", false, &init, &init_top, out_init));
    UIR_TRY(add_block(&f, "_combine", true, &combine, &combine_top, out_combine));
    UIR_TRY(turn_update(&f));
    uir_tree_insert_after(s, f.top, combine_top);
    uir_tree_insert_before(s, f.top, init_top);
    UIR_TRY(uir_tree_index(s));
    UIR_TRY(uir_region_check_binds(s, init_top));
    UIR_TRY(uir_region_check_binds(s, combine_top));
    UIR_TRY(uir_region_check_binds(s, f.top));
    *out_tensor = f.states[0];
    uir_step_moved(s, UIR_LOOP_NONE);
    uir_step_say(s, "rfactor %s at %s: %s", name, text, UIR_SCHEDULE_TENSOR(s, f.states[0])->name);
    return UIR_STATUS_OK;
}

uir_status uir_schedule_rfactor(uir_schedule *schedule, uint32_t block, uint32_t loop, uint32_t *out_init,
                                uint32_t *out_combine, uint32_t *out_tensor) {
    uint32_t init = UIR_LOOP_NONE, combine = UIR_LOOP_NONE, tensor = UIR_LOOP_NONE;
    UIR_TRY(uir_step_begin(schedule));
    UIR_TRY(uir_step_end(schedule, rfactor(schedule, block, loop, &init, &combine, &tensor)));
    uir_step_give(schedule, out_init, init);
    uir_step_give(schedule, out_combine, combine);
    uir_step_give(schedule, out_tensor, tensor);
    return UIR_STATUS_OK;
}

uir_status uir_schedule_factorise_reduction(uir_schedule *schedule, uint32_t block, uint32_t loop, uir_dim factor,
                                            uint32_t *out_init, uint32_t *out_combine, uint32_t *out_tensor) {
    uint32_t inner = UIR_LOOP_NONE, init = UIR_LOOP_NONE, combine = UIR_LOOP_NONE, tensor = UIR_LOOP_NONE;
    UIR_TRY(uir_step_begin(schedule));
    uir_status status = uir_schedule_split(schedule, loop, factor, NULL, &inner);
    if (status == UIR_STATUS_OK) status = uir_schedule_rfactor(schedule, block, inner, &init, &combine, &tensor);
    UIR_TRY(uir_step_end(schedule, status));
    uir_step_give(schedule, out_init, init);
    uir_step_give(schedule, out_combine, combine);
    uir_step_give(schedule, out_tensor, tensor);
    return UIR_STATUS_OK;
}
