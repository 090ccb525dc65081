/* roll: a reduction over all keys, of which what is summed depends, becomes a running one in the loop over the keys.
 *
 * Sums of exp(x - m) for the greatest m of all x have to wait for m. In the loop that sums, m may grow instead: what
 * was summed with the old m is what would have been summed with the new one, but for a factor, by which the sums are
 * multiplied (the online softmax of Milakov and Gimelshein; Neptune's rolling update). A row of the table says for
 * which functions of m there is such a factor, and which. */
#include "lower/schedule/schedule_internal.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

#define EXPRESSION(s, id) (&(s)->function->expressions.data[id])
#define NONE              UIR_LOOP_NONE

enum { MAX_SCALED = 16 };

/* exp(a - b) of which one operand is the running state: exp(x - new) = exp(x - old) * exp(old - new), the other way
 * round exp(new - x) = exp(old - x) * exp(new - old). The state begins at a finite number, so that no key before it is
 * worth NaN: no key is worth more than the greatest, and none of them is. */
typedef struct repair {
    uir_op reduction;
    uint32_t place; /* of the state among the operands of the subtraction */
    double begins;  /* in units of the greatest finite number */
} repair;

static const repair repairs[] = {{UIR_OP_MAX, 1, -1}, {UIR_OP_MIN, 0, 1}};

/* A tensor whose elements are of the state as it is in the iteration: per dim of the state its dim of the tensor. */
typedef struct scaled {
    uint32_t tensor, writer, dims[UIR_LOOP_MAX_RANK];
} scaled;

typedef struct rolling {
    uir_schedule *s;
    const repair *repair;
    uint32_t block, loop, init;
    uint32_t statement, state;           /* the block's; the tensor that it updates */
    uint32_t spatial[UIR_LOOP_MAX_RANK]; /* the block's variables: per dim of the state */
    uint32_t reduced;                    /* the one that runs along the loop */
    uint32_t before;                     /* the loop's child with the first reader */
    scaled current[MAX_SCALED], sums[MAX_SCALED];
    uint32_t current_count, sum_count;
    uir_sites sites;
    uint32_t old, scale; /* tensors */
} rolling;

/* ---- what is rolled ---- */
static uint32_t top_of(const uir_schedule *s, uint32_t statement, uint32_t list) {
    while (statement != NONE && uir_schedule_parent(s, statement) != list)
        statement = uir_schedule_parent(s, statement);
    return statement;
}

static const uir_loop_monoid *monoid_of(const uir_schedule *s, uint32_t statement) {
    return &s->function->monoids.data[UIR_SCHEDULE_AT(s, statement)->monoid];
}

static bool updates(const uir_schedule *s, uint32_t statement, uir_op op) {
    uir_loop_statement_kind kind = UIR_SCHEDULE_AT(s, statement)->kind;
    if (kind != UIR_LOOP_STATEMENT_UPDATE && kind != UIR_LOOP_STATEMENT_COMBINE) return false;
    const uir_loop_monoid *m = monoid_of(s, statement);
    const uir_loop_expression *step = EXPRESSION(s, m->update[0]);
    return m->state_count == 1 && m->element_count == 1 && step->kind == UIR_LOOP_CALL && step->op == op;
}

/* A condition that says no more than the domain of a variable. */
static bool is_domain(const uir_schedule *s, const uir_loop_statement *b, const uir_condition *c) {
    for (uint32_t i = 0; i < b->iter_count; i++)
        if (uir_dim_equal(c->left, b->iters[i].value) &&
            ((c->relation == UIR_RELATION_LT && uir_dim_equal(c->right, b->iters[i].extent)) ||
             (c->relation == UIR_RELATION_GE && uir_dim_equal(c->right, uir_dim_const(s->function->dims, 0)))))
            return true;
    return false;
}

/* One variable that is reduced over, along a loop of the range that the reduction is to be rolled along. */
static uir_status check_range(rolling *r) {
    uir_schedule *s = r->s;
    const uir_loop_statement *b = UIR_SCHEDULE_AT(s, r->block), *at = UIR_SCHEDULE_AT(s, r->loop);
    uint32_t path[UIR_SCHEDULE_MAX_DEPTH], count = uir_tree_path(s, r->block, path), along = NONE;
    r->reduced = NONE;
    for (uint32_t i = 0; i < b->iter_count; i++) {
        if (b->iters[i].data) return uir_step_refuse(s, "%s reads an index from data", b->name);
        if (!b->iters[i].reduce) continue;
        if (r->reduced != NONE) return uir_step_refuse(s, "%s reduces over more than one variable", b->name);
        r->reduced = i;
    }
    if (r->reduced == NONE) return uir_step_refuse(s, "%s reduces over no variable", b->name);
    const uir_loop_iter *iter = &b->iters[r->reduced];
    for (uint32_t k = 0; k < count; k++)
        if (UIR_SCHEDULE_AT(s, path[k])->kind == UIR_LOOP_STATEMENT_FOR &&
            uir_dim_equal(iter->value, uir_dim_symbol(s->function->dims, UIR_SCHEDULE_AT(s, path[k])->symbol)))
            along = path[k];
    uir_conditions given = {0};
    UIR_TRY(uir_order_given(s, r->loop, &given));
    if (along == NONE || !uir_order_proved(s, &given, UIR_SCHEDULE_AT(s, along)->min, UIR_RELATION_EQ, at->min) ||
        !uir_order_proved(s, &given, UIR_SCHEDULE_AT(s, along)->extent, UIR_RELATION_EQ, at->extent) ||
        !uir_order_proved(s, &given, iter->extent, UIR_RELATION_EQ, at->extent))
        return uir_step_refuse(s, "%s does not reduce over the range of %s", b->name, at->name);
    for (uint32_t i = 0; i < b->condition_count; i++)
        if (!is_domain(s, b, &b->conditions[i]))
            return uir_step_refuse(s, "%s does not reduce over its whole range", b->name);
    return UIR_STATUS_OK;
}

static uir_status find_init(rolling *r) {
    uir_schedule *s = r->s;
    const char *state = UIR_SCHEDULE_TENSOR(s, r->state)->name;
    r->init = NONE;
    UIR_SITES_OF_TENSOR(&r->sites, r->state, k) {
        const uir_site *site = &r->sites.data[k];
        if (!site->write || site->block == r->block) continue;
        if (UIR_SCHEDULE_AT(s, site->statement)->kind != UIR_LOOP_STATEMENT_INIT)
            return uir_step_refuse(s, "%s also writes %s", UIR_SCHEDULE_AT(s, site->block)->name, state);
        r->init = site->block;
    }
    uint32_t list = uir_schedule_parent(s, r->loop);
    uint32_t own = top_of(s, r->block, list), begins = r->init == NONE ? NONE : top_of(s, r->init, list);
    if (own == NONE || begins == NONE || own == r->loop || begins == r->loop ||
        s->places.data[own] > s->places.data[r->loop])
        return uir_step_refuse(s, "%s and its init are not before %s in one list", UIR_SCHEDULE_AT(s, r->block)->name,
                               UIR_SCHEDULE_AT(s, r->loop)->name);
    return UIR_STATUS_OK;
}

static uir_status find_reduction(rolling *r) {
    uir_schedule *s = r->s;
    uint32_t spatial = 0;
    if (!uir_tree_reachable(s, r->block, UIR_LOOP_STATEMENT_BLOCK))
        return uir_step_refuse(s, "statement %u is not a block", r->block);
    if (!uir_tree_reachable(s, r->loop, UIR_LOOP_STATEMENT_FOR))
        return uir_step_refuse(s, "statement %u is not a loop", r->loop);
    const uir_loop_statement *b = UIR_SCHEDULE_AT(s, r->block);
    r->statement = uir_block_only_statement(s, r->block);
    for (size_t i = 0; r->statement != NONE && i < sizeof repairs / sizeof *repairs; i++)
        if (updates(s, r->statement, repairs[i].reduction)) r->repair = &repairs[i];
    if (!r->repair) return uir_step_refuse(s, "%s is neither a maximum nor a minimum, and cannot be rescaled", b->name);
    const uir_loop_access *target = &UIR_SCHEDULE_AT(s, r->statement)->targets[0];
    const uir_loop_tensor *t = UIR_SCHEDULE_TENSOR(s, r->state = target->tensor);
    if (t->role != UIR_LOOP_ROLE_TEMP)
        return uir_step_refuse(s, "%s writes %s, whose elements are all needed outside the kernel", b->name, t->name);
    if (t->dtype != UIR_DTYPE_F32 && t->dtype != UIR_DTYPE_F64)
        return uir_step_refuse(s, "%s holds %s: exponentials of that dtype are not rescaled", t->name,
                               uir_dtype_name(t->dtype));
    UIR_TRY(check_range(r));
    b = UIR_SCHEDULE_AT(s, r->block);
    for (uint32_t i = 0; i < b->iter_count; i++) spatial += !b->iters[i].reduce;
    if (!uir_access_is_plain(s, b, target, r->spatial) || spatial != t->rank)
        return uir_step_refuse(s, "%s does not store %s at its iteration variables, one per dim", b->name, t->name);
    UIR_TRY(uir_sites_collect_all(s, NONE, &r->sites));
    return find_init(r);
}

/* ---- what depends on it ---- */
static bool is_current(const rolling *r, uint32_t tensor) {
    for (uint32_t i = 0; i < r->current_count; i++)
        if (r->current[i].tensor == tensor) return true;
    return tensor == r->state;
}

static bool is_free(const rolling *r, uint32_t id) {
    const uir_loop_expression *e = EXPRESSION(r->s, id);
    bool free = e->kind != UIR_LOOP_LOAD || !is_current(r, e->load.tensor);
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++)
        free = free && is_free(r, e->arguments[i]);
    return free;
}

/* The load of the tensor by whose factor the whole is larger; NONE. */
static uint32_t find_linear(const rolling *r, uint32_t id, uint32_t tensor) {
    const uir_loop_expression *e = EXPRESSION(r->s, id);
    if (e->kind == UIR_LOOP_LOAD) return e->load.tensor == tensor && !e->has_fill ? id : NONE;
    if (e->kind != UIR_LOOP_CALL || (e->op != UIR_OP_MUL && e->op != UIR_OP_DIV)) return NONE;
    if (is_free(r, e->arguments[1])) return find_linear(r, e->arguments[0], tensor);
    return e->op == UIR_OP_MUL && is_free(r, e->arguments[0]) ? find_linear(r, e->arguments[1], tensor) : NONE;
}

/* Of a load at plain variables: per dim of the state the dim of the target that runs along it. `dims`: per dim of the
 * state its index of the load. */
static bool follow_dims(const rolling *r, const uir_loop_statement *b, const uir_loop_access *load,
                        const uint32_t *dims, const uint32_t *target_iters, uint32_t target_rank, uint32_t *out_dims) {
    const uir_loop_function *f = r->s->function;
    for (uint32_t d = 0; d < f->tensors.data[r->state].rank; d++) {
        uir_symbol symbol;
        out_dims[d] = NONE;
        if (!uir_dim_is_symbol(f->dims, load->indices[dims[d]], &symbol)) return false;
        for (uint32_t k = 0; k < target_rank; k++)
            if (b->iters[target_iters[k]].symbol.id == symbol.id) out_dims[d] = k;
        if (out_dims[d] == NONE) return false;
    }
    return true;
}

static const uir_site *find_site(const rolling *r, uint32_t block, uint32_t tensor, bool write) {
    UIR_SITES_OF_TENSOR(&r->sites, tensor, k)
    if (r->sites.data[k].block == block && r->sites.data[k].write == write) return &r->sites.data[k];
    return NULL;
}

static uir_status add_scaled(rolling *r, scaled *list, uint32_t *count, const scaled *one) {
    for (uint32_t i = 0; i < *count; i++)
        if (list[i].tensor == one->tensor)
            return uir_step_refuse(r->s, "%s is written by several blocks",
                                   UIR_SCHEDULE_TENSOR(r->s, one->tensor)->name);
    if (*count == MAX_SCALED) return uir_step_refuse(r->s, "too many tensors depend on the reduction");
    list[(*count)++] = *one;
    return UIR_STATUS_OK;
}

/* What a block under the loop stores, by `load` of a current tensor with these dims. */
static uir_status find_target(rolling *r, uint32_t block, const uir_loop_access *load, const uint32_t *dims,
                              scaled *out) {
    uir_schedule *s = r->s;
    const uir_loop_statement *b = UIR_SCHEDULE_AT(s, block);
    const uir_loop_access *target = &UIR_SCHEDULE_AT(s, uir_block_only_statement(s, block))->targets[0];
    const uir_loop_tensor *t = UIR_SCHEDULE_TENSOR(s, target->tensor);
    uint32_t iters[UIR_LOOP_MAX_RANK];
    *out = (scaled){.tensor = target->tensor, .writer = block};
    if (t->role != UIR_LOOP_ROLE_TEMP || t->dtype != UIR_SCHEDULE_TENSOR(s, r->state)->dtype)
        return uir_step_refuse(s, "%s is not a temporary tensor of the dtype of %s", t->name,
                               UIR_SCHEDULE_TENSOR(s, r->state)->name);
    if (!uir_access_is_plain(s, b, target, iters) || !follow_dims(r, b, load, dims, iters, t->rank, out->dims))
        return uir_step_refuse(s, "%s does not store %s along the variables of %s", b->name, t->name,
                               UIR_SCHEDULE_TENSOR(s, r->state)->name);
    return UIR_STATUS_OK;
}

/* What a block stores in the loop, no other there writes: it would be no multiple any more. */
static uir_status check_only_writer(const rolling *r, const scaled *stored) {
    uir_schedule *s = r->s;
    UIR_SITES_OF_TENSOR(&r->sites, stored->tensor, k) {
        const uir_site *site = &r->sites.data[k];
        if (site->write && site->block != stored->writer && uir_tree_holds(s, r->loop, site->block))
            return uir_step_refuse(s, "%s also writes %s", UIR_SCHEDULE_AT(s, site->block)->name,
                                   UIR_SCHEDULE_TENSOR(s, stored->tensor)->name);
    }
    return UIR_STATUS_OK;
}

/* Readers of the state: blocks in the loop that store exp of a difference. */
static uir_status see_exponential(rolling *r, uint32_t block) {
    uir_schedule *s = r->s;
    const char *name = UIR_SCHEDULE_AT(s, block)->name, *state = UIR_SCHEDULE_TENSOR(s, r->state)->name;
    uint32_t statement = uir_block_only_statement(s, block), identity[UIR_LOOP_MAX_RANK];
    if (!uir_tree_holds(s, r->loop, block))
        return uir_step_refuse(s, "%s reads %s outside %s", name, state, UIR_SCHEDULE_AT(s, r->loop)->name);
    const uir_loop_statement *st = statement == NONE ? NULL : UIR_SCHEDULE_AT(s, statement);
    const uir_loop_expression *e = st && st->kind == UIR_LOOP_STATEMENT_STORE ? EXPRESSION(s, st->values[0]) : NULL;
    const uir_loop_expression *of =
        e && e->kind == UIR_LOOP_CALL && e->op == UIR_OP_EXP ? EXPRESSION(s, e->arguments[0]) : NULL;
    bool known = of && of->kind == UIR_LOOP_CALL && of->op == UIR_OP_SUB;
    const uir_loop_expression *load = known ? EXPRESSION(s, of->arguments[r->repair->place]) : NULL;
    known = known && load->kind == UIR_LOOP_LOAD && load->load.tensor == r->state && !load->has_fill &&
            is_free(r, of->arguments[1 - r->repair->place]);
    if (!known) return uir_step_refuse(s, "%s depends on %s in a way that cannot be rescaled", name, state);
    scaled one;
    for (uint32_t d = 0; d < UIR_LOOP_MAX_RANK; d++) identity[d] = d;
    UIR_TRY(find_target(r, block, &load->load, identity, &one));
    UIR_TRY(check_only_writer(r, &one));
    return add_scaled(r, r->current, &r->current_count, &one);
}

/* The init of what a block sums: in the loop, where the sums are the iteration's own, or before it. */
static uir_status find_sums_init(rolling *r, const scaled *sums, bool *out_inside) {
    uir_schedule *s = r->s;
    const char *name = UIR_SCHEDULE_TENSOR(s, sums->tensor)->name;
    uint32_t init = NONE;
    UIR_SITES_OF_TENSOR(&r->sites, sums->tensor, k) {
        const uir_site *site = &r->sites.data[k];
        if (!site->write || site->block == sums->writer) continue;
        if (init != NONE || UIR_SCHEDULE_AT(s, site->statement)->kind != UIR_LOOP_STATEMENT_INIT)
            return uir_step_refuse(s, "%s also writes %s", UIR_SCHEDULE_AT(s, site->block)->name, name);
        init = site->block;
    }
    if (init == NONE) return uir_step_refuse(s, "%s has no init", name);
    *out_inside = uir_tree_holds(s, r->loop, init);
    if (*out_inside) return UIR_STATUS_OK;
    UIR_SITES_OF_TENSOR(&r->sites, sums->tensor, k) {
        const uir_site *site = &r->sites.data[k];
        if (!site->write && site->block != sums->writer && uir_tree_holds(s, r->loop, site->block))
            return uir_step_refuse(s, "%s reads incomplete sums of %s", UIR_SCHEDULE_AT(s, site->block)->name, name);
    }
    uir_region region = {.empty = true};
    UIR_TRY(uir_region_join(s, find_site(r, sums->writer, sums->tensor, true), r->loop, &region));
    for (uint32_t d = 0; d < region.rank; d++)
        if (uir_dim_uses(s, region.low[d], UIR_SCHEDULE_AT(s, r->loop)->symbol) ||
            uir_dim_uses(s, region.high[d], UIR_SCHEDULE_AT(s, r->loop)->symbol))
            return uir_step_refuse(s, "%s is not summed along %s only", name, UIR_SCHEDULE_AT(s, r->loop)->name);
    return UIR_STATUS_OK;
}

/* A reader of a tensor that is of the state as it is: its multiple, or a sum of multiples. */
static uir_status see_reader(rolling *r, const scaled *of, uint32_t block) {
    uir_schedule *s = r->s;
    const char *name = UIR_SCHEDULE_AT(s, block)->name, *tensor = UIR_SCHEDULE_TENSOR(s, of->tensor)->name;
    uint32_t statement = uir_block_only_statement(s, block), load;
    bool inside = true;
    scaled one;
    if (!uir_tree_holds(s, r->loop, block))
        return uir_step_refuse(s, "%s reads %s outside %s", name, tensor, UIR_SCHEDULE_AT(s, r->loop)->name);
    if (statement == NONE) return uir_step_refuse(s, "%s has several statements", name);
    const uir_loop_statement *st = UIR_SCHEDULE_AT(s, statement);
    bool sums = updates(s, statement, UIR_OP_ADD);
    if ((!sums && st->kind != UIR_LOOP_STATEMENT_STORE) || (load = find_linear(r, st->values[0], of->tensor)) == NONE)
        return uir_step_refuse(s, "%s is neither a multiple of %s nor a sum of multiples", name, tensor);
    UIR_TRY(find_target(r, block, &EXPRESSION(s, load)->load, of->dims, &one));
    UIR_TRY(sums ? find_sums_init(r, &one, &inside) : check_only_writer(r, &one));
    return inside ? add_scaled(r, r->current, &r->current_count, &one) : add_scaled(r, r->sums, &r->sum_count, &one);
}

/* What is read of a current tensor was written in the same iteration: by its init or store. */
static uir_status check_current(const rolling *r, const scaled *of, const uir_site *read) {
    uir_schedule *s = r->s;
    bool covers = false;
    UIR_SITES_OF_TENSOR(&r->sites, of->tensor, k) {
        const uir_site *write = &r->sites.data[k];
        if (!covers && write->write && !write->reduction && uir_tree_holds(s, r->loop, write->block))
            UIR_TRY(uir_region_covers(s, write, read, &covers));
    }
    if (covers) return UIR_STATUS_OK;
    return uir_step_refuse(s, "%s reads elements of %s that are not proved to be written in the same iteration of %s",
                           UIR_SCHEDULE_AT(s, read->block)->name, UIR_SCHEDULE_TENSOR(s, of->tensor)->name,
                           UIR_SCHEDULE_AT(s, r->loop)->name);
}

static uir_status find_dependents(rolling *r) {
    uir_schedule *s = r->s;
    UIR_SITES_OF_TENSOR(&r->sites, r->state, k) {
        const uir_site *site = &r->sites.data[k];
        if (!site->write && site->block != r->block) UIR_TRY(see_exponential(r, site->block));
    }
    for (uint32_t i = 0; i < r->current_count; i++) {
        scaled of = r->current[i];
        UIR_SITES_OF_TENSOR(&r->sites, of.tensor, k) {
            const uir_site *site = &r->sites.data[k];
            if (site->write || site->block == of.writer) continue;
            UIR_TRY(see_reader(r, &of, site->block));
            UIR_TRY(check_current(r, &of, site));
        }
    }
    if (!r->sum_count)
        return uir_step_refuse(s, "no sum along %s depends on %s", UIR_SCHEDULE_AT(s, r->loop)->name,
                               UIR_SCHEDULE_TENSOR(s, r->state)->name);
    r->before = NONE;
    for (uint32_t id = UIR_SCHEDULE_AT(s, r->loop)->first_child; id != NONE && r->before == NONE;
         id = UIR_SCHEDULE_AT(s, id)->next)
        for (uint32_t i = 0; i < r->current_count; i++)
            if (uir_tree_holds(s, id, r->current[i].writer) && r->before == NONE) r->before = id;
    return UIR_STATUS_OK;
}

/* ---- the change ---- */
/* A block being made: its variables are like others. */
typedef struct making {
    uir_loop_statement block;
    uir_dim at[UIR_LOOP_MAX_RANK];
} making;

static uir_status begin(uir_schedule *s, const char *name, const uir_loop_iter *const *like, uint32_t count,
                        making *out) {
    uir_dims *dims = s->function->dims;
    *out = (making){.block = {.kind = UIR_LOOP_STATEMENT_BLOCK, .first_child = NONE, .next = NONE}};
    UIR_TRY(uir_tree_block_name(s, name, &out->block.name));
    for (uint32_t i = 0; i < count; i++) {
        uir_loop_iter iter = {.name = like[i]->name, .axis = like[i]->axis, .extent = like[i]->extent};
        uir_symbol_facts facts = {0, UIR_DIM_UNBOUNDED, 1, iter.extent};
        iter.value = uir_dim_const(dims, 0);
        UIR_TRY(uir_dims_add_symbol(dims, iter.name, strlen(iter.name), facts, &iter.symbol));
        out->block.iters[out->block.iter_count++] = iter;
        out->at[i] = uir_dim_symbol(dims, iter.symbol);
    }
    return UIR_STATUS_OK;
}

static uir_status add_load(uir_schedule *s, uint32_t tensor, const uir_dim *at, uint32_t *out) {
    uir_loop_expression e = {.kind = UIR_LOOP_LOAD, .dtype = UIR_SCHEDULE_TENSOR(s, tensor)->dtype};
    e.load.tensor = tensor;
    for (uint32_t d = 0; d < UIR_SCHEDULE_TENSOR(s, tensor)->rank; d++) e.load.indices[d] = at[d];
    *out = s->function->expressions.count;
    return uir_vector_push(&s->function->arena, &s->function->expressions, e);
}

static uir_status add_call(uir_schedule *s, uir_op op, const uint32_t *arguments, uint32_t count, uint32_t *out) {
    uir_loop_expression e = {.kind = UIR_LOOP_CALL, .op = op, .argument_count = count};
    e.dtype = EXPRESSION(s, arguments[0])->dtype;
    memcpy(e.arguments, arguments, count * sizeof *arguments);
    *out = s->function->expressions.count;
    return uir_vector_push(&s->function->arena, &s->function->expressions, e);
}

/* The block stores the value at its variables, for the region, before `place` in the loop. */
static uir_status finish(uir_schedule *s, making *m, uint32_t tensor, uint32_t value, const uir_region *region,
                         uint32_t place, uint32_t *out_block) {
    uir_dims *dims = s->function->dims;
    uir_loop_statement store = {.kind = UIR_LOOP_STATEMENT_STORE, .first_child = NONE, .next = NONE};
    uir_dim extent[UIR_LOOP_MAX_RANK];
    uint32_t top;
    store.target_count = store.value_count = 1;
    store.targets[0].tensor = tensor;
    store.values[0] = value;
    for (uint32_t d = 0; d < region->rank; d++) {
        store.targets[0].indices[d] = m->at[d];
        extent[d] = uir_dim_add(dims, uir_dim_sub(dims, region->high[d], region->low[d]), uir_dim_const(dims, 1));
    }
    UIR_TRY(uir_tree_add(s, &store, &m->block.first_child));
    UIR_TRY(uir_tree_add(s, &m->block, out_block));
    UIR_TRY(uir_move_build_nest(s, *out_block, place, region->low, extent, &top));
    uir_tree_insert_before(s, place, top);
    return uir_move_guard_domain(s, *out_block);
}

static uir_status add_tensor(rolling *r, const char *suffix, uint32_t *out) {
    uir_schedule *s = r->s;
    uir_loop_tensor t = *UIR_SCHEDULE_TENSOR(s, r->state);
    char base[160];
    t.layout = NULL;
    snprintf(base, sizeof base, "%.120s_%.30s", t.name, suffix);
    UIR_TRY(uir_tree_tensor_name(s, base, &t.name));
    *out = s->function->tensors.count;
    return uir_vector_push(&s->function->arena, &s->function->tensors, t);
}

/* The state begins at a finite number. */
static uir_status begin_state(rolling *r) {
    uir_schedule *s = r->s;
    uir_loop_statement *init = UIR_SCHEDULE_AT(s, uir_block_only_statement(s, r->init));
    uir_dtype dtype = UIR_SCHEDULE_TENSOR(s, r->state)->dtype;
    uir_loop_expression e = {.kind = UIR_LOOP_CONSTANT, .dtype = dtype};
    e.real = r->repair->begins * (dtype == UIR_DTYPE_F32 ? (double)FLT_MAX : DBL_MAX);
    init->kind = UIR_LOOP_STATEMENT_STORE;
    init->monoid = 0;
    init->value_count = 1;
    init->values[0] = s->function->expressions.count;
    return uir_vector_push(&s->function->arena, &s->function->expressions, e);
}

/* In the loop: the old state, the block, the factor. */
static uir_status place_state(rolling *r, uint32_t *out_old, uint32_t *out_scale) {
    uir_schedule *s = r->s;
    uir_dims *dims = s->function->dims;
    const uir_loop_iter *like[UIR_LOOP_MAX_RANK];
    uint32_t rank = UIR_SCHEDULE_TENSOR(s, r->state)->rank, value, pair[2];
    uir_dim low[UIR_LOOP_MAX_ITERS], extent[UIR_LOOP_MAX_ITERS], one = uir_dim_const(dims, 1);
    uir_region region = {.empty = true};
    uir_loop_statement block = *UIR_SCHEDULE_AT(s, r->block); /* statements move as more are added */
    making m;
    UIR_SITES_OF_TENSOR(&r->sites, r->state, k)
    if (!r->sites.data[k].write && r->sites.data[k].block != r->block)
        UIR_TRY(uir_region_join(s, &r->sites.data[k], r->loop, &region));
    for (uint32_t d = 0; d < rank; d++) like[d] = &block.iters[r->spatial[d]];
    UIR_TRY(begin(s, UIR_SCHEDULE_TENSOR(s, r->old)->name, like, rank, &m));
    UIR_TRY(add_load(s, r->state, m.at, &value));
    UIR_TRY(finish(s, &m, r->old, value, &region, r->before, out_old));
    low[r->reduced] = uir_dim_symbol(dims, UIR_SCHEDULE_AT(s, r->loop)->symbol);
    extent[r->reduced] = one;
    for (uint32_t d = 0; d < rank; d++) {
        low[r->spatial[d]] = region.low[d];
        extent[r->spatial[d]] = uir_dim_add(dims, uir_dim_sub(dims, region.high[d], region.low[d]), one);
    }
    UIR_TRY(uir_move_nest(s, r->block, r->before, NONE, low, extent));
    UIR_TRY(uir_move_guard_domain(s, r->block));
    s->full.data[r->block] = false;
    UIR_TRY(begin(s, UIR_SCHEDULE_TENSOR(s, r->scale)->name, like, rank, &m));
    UIR_TRY(add_load(s, r->state, m.at, &pair[r->repair->place]));
    UIR_TRY(add_load(s, r->old, m.at, &pair[1 - r->repair->place]));
    UIR_TRY(add_call(s, UIR_OP_SUB, pair, 2, &value));
    UIR_TRY(add_call(s, UIR_OP_EXP, &value, 1, &value));
    return finish(s, &m, r->scale, value, &region, r->before, out_scale);
}

/* What was summed so far, times the factor. */
static uir_status rescale(rolling *r, const scaled *sums, uint32_t *out_block) {
    uir_schedule *s = r->s;
    const uir_loop_iter *like[UIR_LOOP_MAX_RANK];
    uir_loop_statement writer = *UIR_SCHEDULE_AT(s, sums->writer);
    const uir_loop_access *target = &UIR_SCHEDULE_AT(s, writer.first_child)->targets[0];
    uint32_t rank = UIR_SCHEDULE_TENSOR(s, sums->tensor)->rank, iters[UIR_LOOP_MAX_RANK], pair[2], value;
    uir_dim at[UIR_LOOP_MAX_RANK];
    uir_region region = {.empty = true};
    char name[160];
    making m;
    if (!uir_access_is_plain(s, &writer, target, iters)) return UIR_STATUS_INTERNAL;
    UIR_TRY(uir_region_join(s, find_site(r, sums->writer, sums->tensor, true), r->loop, &region));
    snprintf(name, sizeof name, "%.120s_rescale", UIR_SCHEDULE_TENSOR(s, sums->tensor)->name);
    for (uint32_t d = 0; d < rank; d++) like[d] = &writer.iters[iters[d]];
    UIR_TRY(begin(s, name, like, rank, &m));
    for (uint32_t d = 0; d < UIR_SCHEDULE_TENSOR(s, r->state)->rank; d++) at[d] = m.at[sums->dims[d]];
    UIR_TRY(add_load(s, sums->tensor, m.at, &pair[0]));
    UIR_TRY(add_load(s, r->scale, at, &pair[1]));
    UIR_TRY(add_call(s, UIR_OP_MUL, pair, 2, &value));
    return finish(s, &m, sums->tensor, value, &region, r->before, out_block);
}

/* All that the new blocks, and what depends on the state, read of these tensors is written in the same iteration. */
static uir_status check_covered(rolling *r, uint32_t tensor, uint32_t writer) {
    uir_schedule *s = r->s;
    const uir_site *write = find_site(r, writer, tensor, true);
    UIR_SITES_OF_TENSOR(&r->sites, tensor, k) {
        const uir_site *read = &r->sites.data[k];
        bool covers = false;
        if (read->write || read->block == writer || s->places.data[read->block] < s->places.data[writer]) continue;
        UIR_TRY(uir_region_covers(s, write, read, &covers));
        if (!covers)
            return uir_step_refuse(s, "the results of %s there are not proved to be all that %s reads of %s",
                                   UIR_SCHEDULE_AT(s, writer)->name, UIR_SCHEDULE_AT(s, read->block)->name,
                                   UIR_SCHEDULE_TENSOR(s, tensor)->name);
    }
    return UIR_STATUS_OK;
}

static uir_status roll(rolling *r) {
    uir_schedule *s = r->s;
    uir_orders orders = {.within = NONE};
    uint32_t old, scale, rescaled[MAX_SCALED];
    bool *except;
    UIR_TRY(find_reduction(r));
    UIR_TRY(find_dependents(r));
    const char *text = uir_step_loop_text(s, r->loop);
    UIR_TRY_ALLOCATE(except, uir_arena_allocate_array(&s->scratch, s->function->tensors.count + 3, sizeof *except));
    except[r->state] = true;
    orders.except = except;
    UIR_TRY(uir_orders_take(s, &r->block, 1, &orders));
    UIR_TRY(add_tensor(r, "old", &r->old));
    UIR_TRY(add_tensor(r, "scale", &r->scale));
    UIR_TRY(begin_state(r));
    UIR_TRY(place_state(r, &old, &scale));
    UIR_TRY(uir_tree_index(s));
    for (uint32_t rank = 0; rank <= UIR_LOOP_MAX_RANK; rank++) /* rows, then tiles */
        for (uint32_t i = 0; i < r->sum_count; i++)
            if (UIR_SCHEDULE_TENSOR(s, r->sums[i].tensor)->rank == rank) UIR_TRY(rescale(r, &r->sums[i], &rescaled[i]));
    UIR_TRY(uir_tree_index(s));
    UIR_TRY(uir_orders_check(s, &orders));
    r->sites = (uir_sites){0};
    UIR_TRY(uir_sites_collect_all(s, NONE, &r->sites));
    UIR_TRY(check_covered(r, r->state, r->block));
    UIR_TRY(check_covered(r, r->old, old));
    UIR_TRY(check_covered(r, r->scale, scale));
    UIR_TRY(uir_region_check_binds(s, r->loop));
    UIR_TRY(uir_region_check_accesses(s, old));
    UIR_TRY(uir_region_check_accesses(s, scale));
    for (uint32_t i = 0; i < r->sum_count; i++) UIR_TRY(uir_region_check_accesses(s, rescaled[i]));
    uir_step_moved(s, NONE);
    uir_step_say(s, "roll %s at %s: %s, %s", UIR_SCHEDULE_AT(s, r->block)->name, text,
                 UIR_SCHEDULE_TENSOR(s, r->old)->name, UIR_SCHEDULE_TENSOR(s, r->scale)->name);
    return UIR_STATUS_OK;
}

uir_status uir_schedule_roll(uir_schedule *schedule, uint32_t block, uint32_t loop, uint32_t *out_old,
                             uint32_t *out_scale) {
    rolling r = {.s = schedule, .block = block, .loop = loop, .old = NONE, .scale = NONE};
    UIR_TRY(uir_step_begin(schedule));
    UIR_TRY(uir_step_end(schedule, roll(&r)));
    uir_step_give(schedule, out_old, r.old);
    uir_step_give(schedule, out_scale, r.scale);
    return UIR_STATUS_OK;
}
