/* compute_at and reverse_compute_at: a block moves under a loop, for the region that is needed or complete there. */
#include "lower/schedule/schedule_internal.h"

#include <stdio.h>
#include <string.h>

uint32_t uir_block_only_statement(const uir_schedule *s, uint32_t block) {
    uint32_t id = UIR_SCHEDULE_AT(s, block)->first_child;
    return id != UIR_LOOP_NONE && UIR_SCHEDULE_AT(s, id)->next == UIR_LOOP_NONE ? id : UIR_LOOP_NONE;
}

bool uir_access_is_plain(const uir_schedule *s, const uir_loop_statement *block, const uir_loop_access *access,
                         uint32_t *out_iters) {
    for (uint32_t d = 0; d < UIR_SCHEDULE_TENSOR(s, access->tensor)->rank; d++) {
        const uir_dim_node *node = uir_dim_get(s->function->dims, access->indices[d]);
        uint32_t i = 0;
        while (i < block->iter_count &&
               (node->kind != UIR_DIM_SYMBOL || node->value != block->iters[i].symbol.id || block->iters[i].data))
            i++;
        if (i == block->iter_count) return false;
        for (uint32_t before = 0; before < d; before++)
            if (out_iters[before] == i) return false;
        out_iters[d] = i;
    }
    return true;
}

/* Where the loop that decides an iteration variable stands: its place in the text, for the order of new loops. */
static uint32_t decided_at(uir_schedule *s, uint32_t block, const uir_loop_iter *iter) {
    uint32_t path[UIR_SCHEDULE_MAX_DEPTH], count = uir_tree_path(s, block, path);
    for (uint32_t k = 0; k < count; k++)
        if (UIR_SCHEDULE_AT(s, path[k])->kind == UIR_LOOP_STATEMENT_FOR &&
            uir_dim_uses(s, iter->value, UIR_SCHEDULE_AT(s, path[k])->symbol))
            return k;
    return UINT32_MAX;
}

uir_status uir_move_build_nest(uir_schedule *s, uint32_t block, uint32_t place, const uir_dim *low,
                               const uir_dim *extent, uint32_t *out_top) {
    uir_dims *dims = s->function->dims;
    uint32_t count = UIR_SCHEDULE_AT(s, block)->iter_count, last = UIR_LOOP_NONE;
    uint32_t order[UIR_LOOP_MAX_ITERS], depth[UIR_LOOP_MAX_ITERS], used = 0;
    *out_top = block;
    for (uint32_t i = 0; i < count; i++) { /* sorted by where they were decided, so that reductions keep their order */
        const uir_loop_iter *iter = &UIR_SCHEDULE_AT(s, block)->iters[i];
        if (iter->data) continue;
        uint32_t at = decided_at(s, block, iter), k = used++;
        for (; k > 0 && depth[k - 1] > at; k--) {
            order[k] = order[k - 1];
            depth[k] = depth[k - 1];
        }
        order[k] = i;
        depth[k] = at;
    }
    UIR_SCHEDULE_AT(s, block)->conditions = NULL;
    UIR_SCHEDULE_AT(s, block)->condition_count = 0;
    for (uint32_t k = 0; k < used; k++) {
        uint32_t i = order[k], loop;
        uir_dim value = low[i];
        int64_t steps;
        if (!low[i].id || !extent[i].id) return UIR_STATUS_OUT_OF_MEMORY;
        if (!uir_dim_is_const(dims, extent[i], &steps) || steps != 1) {
            const char *name = UIR_SCHEDULE_AT(s, block)->iters[i].name;
            char base[160];
            snprintf(base, sizeof base, "%.100s_%.40s", UIR_SCHEDULE_AT(s, block)->name, name);
            UIR_TRY(uir_tree_loop_name(s, base, place, &name));
            UIR_TRY(uir_tree_add_loop(s, name, uir_dim_const(dims, 0), extent[i], &loop));
            if (last == UIR_LOOP_NONE)
                *out_top = loop;
            else
                UIR_SCHEDULE_AT(s, last)->first_child = loop;
            last = loop;
            value = uir_dim_add(dims, value, uir_dim_symbol(dims, UIR_SCHEDULE_AT(s, loop)->symbol));
        }
        if (!value.id) return UIR_STATUS_OUT_OF_MEMORY;
        UIR_SCHEDULE_AT(s, block)->iters[i].value = value;
    }
    if (last != UIR_LOOP_NONE) UIR_SCHEDULE_AT(s, last)->first_child = block;
    return UIR_STATUS_OK;
}

uir_status uir_move_guard_domain(uir_schedule *s, uint32_t block) {
    uir_dims *dims = s->function->dims;
    uir_dim zero = uir_dim_const(dims, 0);
    uir_conditions given = {0};
    UIR_TRY(uir_order_given(s, block, &given));
    for (uint32_t i = 0; i < UIR_SCHEDULE_AT(s, block)->iter_count; i++) {
        uir_loop_iter iter = UIR_SCHEDULE_AT(s, block)->iters[i];
        if (iter.data) continue;
        if (!uir_order_proved(s, &given, iter.value, UIR_RELATION_GE, zero))
            UIR_TRY(uir_tree_add_condition(s, block, UIR_RELATION_GE, iter.value, zero));
        if (!uir_order_proved(s, &given, iter.value, UIR_RELATION_LT, iter.extent))
            UIR_TRY(uir_tree_add_condition(s, block, UIR_RELATION_LT, iter.value, iter.extent));
    }
    return UIR_STATUS_OK;
}

/* Is the dim made of sizes and the variables of these loops alone? */
static uir_status is_of_loops(uir_schedule *s, uir_dim dim, const uint32_t *loops, uint32_t count, bool *out) {
    uir_substitution values = {0};
    uir_dim zero = uir_dim_const(s->function->dims, 0);
    for (uint32_t i = 0; i < count; i++)
        if (UIR_SCHEDULE_AT(s, loops[i])->kind == UIR_LOOP_STATEMENT_FOR)
            UIR_TRY(uir_substitution_set(s, &values, UIR_SCHEDULE_AT(s, loops[i])->symbol, zero));
    uir_dim rest = uir_substitute(s, &values, dim);
    *out = rest.id && uir_dim_is_of_sizes(s, rest);
    return rest.id ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
}

static bool asks(const uir_schedule *s, uint32_t block, const uir_condition *c) {
    const uir_loop_statement *b = UIR_SCHEDULE_AT(s, block);
    for (uint32_t i = 0; i < b->condition_count; i++)
        if (b->conditions[i].relation == c->relation && uir_dim_equal(b->conditions[i].left, c->left) &&
            uir_dim_equal(b->conditions[i].right, c->right))
            return true;
    return false;
}

uir_status uir_move_carry_conditions(uir_schedule *s, uint32_t block, uint32_t loop, const uint32_t *others,
                                     uint32_t count) {
    uint32_t path[UIR_SCHEDULE_MAX_DEPTH + 1], depth = 0;
    uir_conditions given = {0};
    if (!count) return UIR_STATUS_OK;
    if (loop != UIR_LOOP_NONE) {
        depth = uir_tree_path(s, loop, path);
        path[depth++] = loop;
    }
    UIR_TRY(uir_order_given(s, block, &given));
    for (uint32_t i = 0; i < UIR_SCHEDULE_AT(s, others[0])->condition_count; i++) {
        uir_condition c = UIR_SCHEDULE_AT(s, others[0])->conditions[i];
        bool all, right;
        UIR_TRY(is_of_loops(s, c.left, path, depth, &all));
        UIR_TRY(is_of_loops(s, c.right, path, depth, &right));
        all &= right;
        for (uint32_t k = 1; k < count && all; k++) all = asks(s, others[k], &c);
        if (all && !uir_order_proved(s, &given, c.left, c.relation, c.right))
            UIR_TRY(uir_tree_add_condition(s, block, c.relation, c.left, c.right));
    }
    return UIR_STATUS_OK;
}

uir_status uir_move_nest(uir_schedule *s, uint32_t block, uint32_t before, uint32_t after, const uir_dim *low,
                         const uir_dim *extent) {
    uint32_t parent = uir_schedule_parent(s, block), next = UIR_SCHEDULE_AT(s, block)->next, top;
    UIR_TRY(uir_move_build_nest(s, block, before != UIR_LOOP_NONE ? before : after, low, extent, &top));
    *uir_tree_link(s, block) = next;
    UIR_SCHEDULE_AT(s, block)->next = UIR_LOOP_NONE;
    if (before != UIR_LOOP_NONE)
        uir_tree_insert_before(s, before, top);
    else
        uir_tree_insert_after(s, after, top);
    if (parent != UIR_LOOP_NONE && UIR_SCHEDULE_AT(s, parent)->first_child == UIR_LOOP_NONE) uir_tree_unlink(s, parent);
    return UIR_STATUS_OK;
}

/* The last child of the loop that holds one of the blocks / the first. */
static uint32_t child_with(uir_schedule *s, uint32_t loop, const uint32_t *blocks, uint32_t count, bool last) {
    uint32_t found = UIR_LOOP_NONE;
    for (uint32_t id = UIR_SCHEDULE_AT(s, loop)->first_child; id != UIR_LOOP_NONE; id = UIR_SCHEDULE_AT(s, id)->next) {
        for (uint32_t i = 0; i < count; i++) {
            if (!uir_tree_holds(s, id, blocks[i])) continue;
            if (!last) return id;
            found = id;
        }
    }
    return found;
}

static uir_status list_blocks(uir_schedule *s, uint32_t tensor, bool writers, uint32_t **out, uint32_t *out_count) {
    uint32_t (*list)(const uir_schedule *, uint32_t, uint32_t *, uint32_t) =
        writers ? uir_schedule_writers : uir_schedule_readers;
    *out_count = list(s, tensor, NULL, 0);
    UIR_TRY_ALLOCATE(*out, uir_arena_allocate_array(&s->scratch, *out_count + 1, sizeof **out));
    list(s, tensor, *out, *out_count);
    return UIR_STATUS_OK;
}

/* A block that passes elements to itself would have them in another order. */
static uir_status check_own_reads(uir_schedule *s, uint32_t block) {
    uir_sites sites = {0};
    UIR_TRY(uir_sites_collect(s, block, &sites));
    for (uint32_t i = 0; i < sites.count; i++)
        for (uint32_t k = 0; k < sites.count; k++)
            if (sites.data[i].tensor == sites.data[k].tensor && sites.data[i].write && !sites.data[k].write &&
                !sites.data[k].reduction)
                return uir_step_refuse(s, "%s reads what it writes", UIR_SCHEDULE_AT(s, block)->name);
    return UIR_STATUS_OK;
}

/* ---- compute_at ---- */
typedef struct producer {
    uint32_t block, init; /* init: NONE for a store */
    uint32_t statement;
    const char *loop_text;
} producer;

static uir_status check_targets(uir_schedule *s, uint32_t block, uint32_t statement, uint32_t *iters) {
    const uir_loop_statement *b = UIR_SCHEDULE_AT(s, block), *st = UIR_SCHEDULE_AT(s, statement);
    uint32_t other[UIR_LOOP_MAX_RANK], rank = UIR_SCHEDULE_TENSOR(s, st->targets[0].tensor)->rank, spatial = 0;
    for (uint32_t i = 0; i < st->target_count; i++) {
        const uir_loop_tensor *t = UIR_SCHEDULE_TENSOR(s, st->targets[i].tensor);
        if (t->role != UIR_LOOP_ROLE_TEMP)
            return uir_step_refuse(s, "%s writes %s, whose elements are all needed outside the kernel", b->name,
                                   t->name);
        if (!uir_access_is_plain(s, b, &st->targets[i], i ? other : iters) || t->rank != rank ||
            (i && memcmp(iters, other, rank * sizeof *iters)))
            return uir_step_refuse(s, "%s does not store %s at its iteration variables, one per dim", b->name, t->name);
    }
    for (uint32_t i = 0; i < b->iter_count; i++) spatial += !b->iters[i].reduce && !b->iters[i].data;
    if (spatial != rank) return uir_step_refuse(s, "%s has iteration variables that do not index its results", b->name);
    return UIR_STATUS_OK;
}

/* A reduction's order over several loops must be told from where they stand, unless order does not matter. */
static uir_status check_reduction(uir_schedule *s, uint32_t block, const uir_loop_statement *st) {
    const uir_loop_statement *b = UIR_SCHEDULE_AT(s, block);
    if (s->function->monoids.data[st->monoid].commutative) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < b->iter_count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (b->iters[i].reduce && b->iters[k].reduce &&
                decided_at(s, block, &b->iters[i]) == decided_at(s, block, &b->iters[k]))
                return uir_step_refuse(
                    s, "%s: two of its reduce variables share a loop, and its monoid is not commutative", b->name);
    return UIR_STATUS_OK;
}

static uir_status find_producer(uir_schedule *s, uint32_t block, producer *p) {
    uint32_t iters[UIR_LOOP_MAX_RANK], init_iters[UIR_LOOP_MAX_RANK];
    if (!uir_tree_reachable(s, block, UIR_LOOP_STATEMENT_BLOCK))
        return uir_step_refuse(s, "statement %u is not a block", block);
    const char *name = UIR_SCHEDULE_AT(s, block)->name;
    *p = (producer){.block = block, .init = UIR_LOOP_NONE, .statement = uir_block_only_statement(s, block)};
    if (p->statement == UIR_LOOP_NONE) return uir_step_refuse(s, "%s has several statements", name);
    if (!s->full.data[block]) return uir_step_refuse(s, "%s does not run over its whole iteration space", name);
    const uir_loop_statement *st = UIR_SCHEDULE_AT(s, p->statement);
    UIR_TRY(check_own_reads(s, block));
    UIR_TRY(check_targets(s, block, p->statement, iters));
    bool reduction = st->kind == UIR_LOOP_STATEMENT_UPDATE || st->kind == UIR_LOOP_STATEMENT_COMBINE;
    if (reduction) UIR_TRY(check_reduction(s, block, st));
    for (uint32_t i = 0; i < st->target_count; i++) {
        uint32_t *writers, count;
        UIR_TRY(list_blocks(s, st->targets[i].tensor, true, &writers, &count));
        for (uint32_t k = 0; k < count; k++) {
            if (writers[k] == block) continue;
            uint32_t other = uir_block_only_statement(s, writers[k]);
            bool is_init = reduction && other != UIR_LOOP_NONE &&
                           UIR_SCHEDULE_AT(s, other)->kind == UIR_LOOP_STATEMENT_INIT &&
                           (p->init == UIR_LOOP_NONE || p->init == writers[k]) && s->full.data[writers[k]] &&
                           UIR_SCHEDULE_AT(s, other)->target_count == st->target_count;
            for (uint32_t t = 0; is_init && t < st->target_count; t++)
                is_init = UIR_SCHEDULE_AT(s, other)->targets[t].tensor == st->targets[t].tensor;
            if (!is_init)
                return uir_step_refuse(s, "%s also writes %s", UIR_SCHEDULE_AT(s, writers[k])->name,
                                       UIR_SCHEDULE_TENSOR(s, st->targets[i].tensor)->name);
            UIR_TRY(check_targets(s, writers[k], other, init_iters));
            p->init = writers[k];
        }
    }
    if (reduction && p->init == UIR_LOOP_NONE) return uir_step_refuse(s, "no init of the tensor that %s updates", name);
    return UIR_STATUS_OK;
}

/* Who reads under a loop, and the statement there that holds the first of them. */
typedef struct needs {
    uint32_t *readers, count, before;
} needs;

/* The region of the producer's targets that is read under the loop; every reader must be there. */
static uir_status find_needed(uir_schedule *s, const producer *p, uint32_t loop, const bool *own, uir_region *region,
                              needs *out) {
    uir_sites sites = {0};
    uint32_t *readers, count = 0;
    UIR_TRY(uir_sites_collect_all(s, UIR_LOOP_NONE, &sites));
    UIR_TRY_ALLOCATE(readers, uir_arena_allocate_array(&s->scratch, sites.count + 1, sizeof *readers));
    region->empty = true;
    for (uint32_t i = 0; i < sites.count; i++) {
        const uir_site *site = &sites.data[i];
        if (!own[site->tensor] || site->write || site->block == p->block || site->block == p->init) continue;
        if (!uir_tree_holds(s, loop, site->block))
            return uir_step_refuse(s, "%s reads %s outside %s", UIR_SCHEDULE_AT(s, site->block)->name,
                                   UIR_SCHEDULE_TENSOR(s, site->tensor)->name, UIR_SCHEDULE_AT(s, loop)->name);
        readers[count++] = site->block;
        UIR_TRY(uir_region_join(s, site, loop, region));
    }
    if (!count)
        return uir_step_refuse(s, "no block under %s reads the results of %s", UIR_SCHEDULE_AT(s, loop)->name,
                               UIR_SCHEDULE_AT(s, p->block)->name);
    *out = (needs){readers, count, child_with(s, loop, readers, count, false)};
    return UIR_STATUS_OK;
}

static uir_status place_block(uir_schedule *s, uint32_t block, uint32_t statement, const uir_region *region,
                              uint32_t before, uint32_t after) {
    uir_dims *dims = s->function->dims;
    uint32_t iters[UIR_LOOP_MAX_RANK];
    uir_dim low[UIR_LOOP_MAX_ITERS], extent[UIR_LOOP_MAX_ITERS];
    const uir_loop_statement *b = UIR_SCHEDULE_AT(s, block);
    for (uint32_t i = 0; i < b->iter_count; i++) {
        low[i] = uir_dim_const(dims, 0);
        extent[i] = b->iters[i].extent;
    }
    if (!uir_access_is_plain(s, b, &UIR_SCHEDULE_AT(s, statement)->targets[0], iters)) return UIR_STATUS_INTERNAL;
    for (uint32_t d = 0; d < region->rank; d++) {
        low[iters[d]] = region->low[d];
        extent[iters[d]] =
            uir_dim_add(dims, uir_dim_sub(dims, region->high[d], region->low[d]), uir_dim_const(dims, 1));
    }
    UIR_TRY(uir_move_nest(s, block, before, after, low, extent));
    s->full.data[block] = false;
    return uir_move_guard_domain(s, block);
}

/* All that is read of the tensors is written in the same iteration, by the init (or store) and by the update. */
static uir_status check_covered(uir_schedule *s, const producer *p, const bool *own) {
    uir_sites sites = {0};
    UIR_TRY(uir_sites_collect_all(s, UIR_LOOP_NONE, &sites));
    for (uint32_t i = 0; i < sites.count; i++) {
        const uir_site *read = &sites.data[i];
        if (!own[read->tensor] || read->write || read->block == p->init) continue;
        UIR_SITES_OF_TENSOR(&sites, read->tensor, k) {
            const uir_site *write = &sites.data[k];
            bool covers = false;
            if (!write->write || (write->block == p->block && read->block == p->block)) continue;
            UIR_TRY(uir_region_covers(s, write, read, &covers));
            if (!covers)
                return uir_step_refuse(s, "the results of %s there are not proved to be all that %s reads of %s",
                                       UIR_SCHEDULE_AT(s, write->block)->name, UIR_SCHEDULE_AT(s, read->block)->name,
                                       UIR_SCHEDULE_TENSOR(s, read->tensor)->name);
        }
    }
    return UIR_STATUS_OK;
}

static uir_status compute_at(uir_schedule *s, uint32_t block, uint32_t loop) {
    producer p = {0};
    uir_region region = {0};
    uir_orders orders = {.within = UIR_LOOP_NONE};
    needs needed = {0};
    uint32_t moved[2], moved_count = 0;
    bool *own;
    UIR_TRY(find_producer(s, block, &p));
    if (!uir_tree_reachable(s, loop, UIR_LOOP_STATEMENT_FOR))
        return uir_step_refuse(s, "statement %u is not a loop", loop);
    if (uir_tree_holds(s, loop, block) || (p.init != UIR_LOOP_NONE && uir_tree_holds(s, loop, p.init)))
        return uir_step_refuse(s, "%s is already under %s", UIR_SCHEDULE_AT(s, block)->name,
                               UIR_SCHEDULE_AT(s, loop)->name);
    const char *text = uir_step_loop_text(s, loop);
    UIR_TRY_ALLOCATE(own, uir_arena_allocate_array(&s->scratch, s->function->tensors.count + 1, sizeof *own));
    for (uint32_t i = 0; i < UIR_SCHEDULE_AT(s, p.statement)->target_count; i++)
        own[UIR_SCHEDULE_AT(s, p.statement)->targets[i].tensor] = true;
    UIR_TRY(find_needed(s, &p, loop, own, &region, &needed));
    if (p.init != UIR_LOOP_NONE) moved[moved_count++] = p.init;
    moved[moved_count++] = block;
    orders.except = own;
    UIR_TRY(uir_orders_take(s, moved, moved_count, &orders));
    for (uint32_t i = 0; i < moved_count; i++) {
        uint32_t statement = uir_block_only_statement(s, moved[i]);
        UIR_TRY(place_block(s, moved[i], statement, &region, needed.before, UIR_LOOP_NONE));
    }
    UIR_TRY(uir_tree_index(s));
    for (uint32_t i = 0; i < moved_count; i++)
        UIR_TRY(uir_move_carry_conditions(s, moved[i], loop, needed.readers, needed.count));
    UIR_TRY(uir_orders_check(s, &orders));
    UIR_TRY(check_covered(s, &p, own));
    for (uint32_t i = 0; i < moved_count; i++) UIR_TRY(uir_region_check_binds(s, moved[i]));
    uir_step_moved(s, UIR_LOOP_NONE);
    uir_step_say(s, "compute %s at %s", UIR_SCHEDULE_AT(s, block)->name, text);
    return UIR_STATUS_OK;
}

uir_status uir_schedule_compute_at(uir_schedule *schedule, uint32_t block, uint32_t loop) {
    UIR_TRY(uir_step_begin(schedule));
    return uir_step_end(schedule, compute_at(schedule, block, loop));
}

/* ---- reverse_compute_at ---- */
/* The loops down to and with `loop` decide nothing but indices of what the writer stores: every region of the tensor is
 * complete in some iteration, whatever the other loops' extents. */
static bool loops_are_indices(uir_schedule *s, uint32_t writer, uint32_t loop, const uint32_t *iters, uint32_t rank) {
    uint32_t path[UIR_SCHEDULE_MAX_DEPTH], count = uir_tree_path(s, writer, path);
    const uir_loop_statement *b = UIR_SCHEDULE_AT(s, writer);
    for (uint32_t k = 0; k < count; k++) {
        const uir_loop_statement *at = UIR_SCHEDULE_AT(s, path[k]);
        if (at->kind != UIR_LOOP_STATEMENT_FOR) return false;
        for (uint32_t i = 0; i < b->iter_count; i++) {
            bool index = false;
            for (uint32_t d = 0; d < rank; d++) index |= iters[d] == i;
            if (!index && !b->iters[i].data && uir_dim_uses(s, b->iters[i].value, at->symbol)) return false;
        }
        if (path[k] == loop) return true;
    }
    return false;
}

static bool covers_tensor(uir_schedule *s, const uir_loop_statement *b, const uint32_t *iters, uint32_t tensor) {
    const uir_loop_tensor *t = UIR_SCHEDULE_TENSOR(s, tensor);
    for (uint32_t d = 0; d < t->rank; d++)
        if (uir_dim_compare(s->function->dims, b->iters[iters[d]].extent, UIR_RELATION_EQ, t->extents[d]) != UIR_TRUE)
            return false;
    return true;
}

/* A read of the consumer of which the region under the loop is known: by a writer that has the whole tensor. */
static uir_status find_complete(uir_schedule *s, uint32_t block, uint32_t loop, const uir_sites *sites,
                                uir_region *region, uint32_t *out_tensor, uint32_t *out_writer, uint32_t *read_iters) {
    *out_tensor = UIR_LOOP_NONE;
    const uir_loop_statement *b = UIR_SCHEDULE_AT(s, block);
    for (uint32_t i = 0; i < sites->count && *out_tensor == UIR_LOOP_NONE; i++) {
        const uir_site *read = &sites->data[i];
        uint32_t *writers, count, full = UIR_LOOP_NONE, iters[UIR_LOOP_MAX_RANK];
        if (read->block != block || read->write || read->filled) continue;
        UIR_TRY(list_blocks(s, read->tensor, true, &writers, &count));
        for (uint32_t k = 0; k < count; k++) {
            uint32_t statement = uir_block_only_statement(s, writers[k]);
            const uir_loop_statement *w = UIR_SCHEDULE_AT(s, writers[k]);
            if (statement == UIR_LOOP_NONE || !s->full.data[writers[k]] || !uir_tree_holds(s, loop, writers[k]))
                continue;
            const uir_loop_access *target = &UIR_SCHEDULE_AT(s, statement)->targets[0];
            if (target->tensor == read->tensor && uir_access_is_plain(s, w, target, iters) &&
                covers_tensor(s, w, iters, read->tensor) &&
                loops_are_indices(s, writers[k], loop, iters, UIR_SCHEDULE_TENSOR(s, read->tensor)->rank))
                full = writers[k];
        }
        if (full == UIR_LOOP_NONE) continue;
        uir_loop_access plain = {.tensor = read->tensor};
        uint32_t rank = UIR_SCHEDULE_TENSOR(s, read->tensor)->rank;
        for (uint32_t d = 0; d < rank; d++) {
            plain.indices[d] = UIR_DIM_NONE;
            for (uint32_t k = 0; k < b->iter_count; k++)
                if (!b->iters[k].data && uir_dim_equal(b->iters[k].value, read->at[d]))
                    plain.indices[d] = uir_dim_symbol(s->function->dims, b->iters[k].symbol);
            if (!plain.indices[d].id) break;
        }
        if ((rank && !plain.indices[rank - 1].id) || !uir_access_is_plain(s, b, &plain, read_iters)) continue;
        region->empty = true;
        for (uint32_t k = 0; k < sites->count; k++)
            if (sites->data[k].block == full && sites->data[k].write && sites->data[k].tensor == read->tensor)
                UIR_TRY(uir_region_join(s, &sites->data[k], loop, region));
        *out_tensor = read->tensor;
        *out_writer = full;
    }
    return UIR_STATUS_OK;
}

static uir_status check_consumer(uir_schedule *s, uint32_t block) {
    if (!uir_tree_reachable(s, block, UIR_LOOP_STATEMENT_BLOCK))
        return uir_step_refuse(s, "statement %u is not a block", block);
    uint32_t statement = uir_block_only_statement(s, block);
    const uir_loop_statement *b = UIR_SCHEDULE_AT(s, block);
    if (statement == UIR_LOOP_NONE || (UIR_SCHEDULE_AT(s, statement)->kind != UIR_LOOP_STATEMENT_STORE &&
                                       UIR_SCHEDULE_AT(s, statement)->kind != UIR_LOOP_STATEMENT_FINISH))
        return uir_step_refuse(s, "%s does more than one store or finish", b->name);
    if (!s->full.data[block]) return uir_step_refuse(s, "%s does not run over its whole iteration space", b->name);
    for (uint32_t i = 0; i < b->iter_count; i++)
        if (b->iters[i].reduce) return uir_step_refuse(s, "%s reduces", b->name);
    return check_own_reads(s, block);
}

static uir_status reverse_compute_at(uir_schedule *s, uint32_t block, uint32_t loop) {
    uir_dims *dims = s->function->dims;
    uir_sites sites = {0};
    uir_region region = {0};
    uir_orders orders = {.within = UIR_LOOP_NONE};
    uint32_t tensor, writer = UIR_LOOP_NONE, iters[UIR_LOOP_MAX_RANK], *writers, count = 0;
    uir_dim low[UIR_LOOP_MAX_ITERS], extent[UIR_LOOP_MAX_ITERS];
    UIR_TRY(check_consumer(s, block));
    if (!uir_tree_reachable(s, loop, UIR_LOOP_STATEMENT_FOR))
        return uir_step_refuse(s, "statement %u is not a loop", loop);
    const char *text = uir_step_loop_text(s, loop), *name = UIR_SCHEDULE_AT(s, block)->name;
    if (uir_tree_holds(s, loop, block)) return uir_step_refuse(s, "%s is already under %s", name, text);
    UIR_TRY(uir_sites_collect_all(s, UIR_LOOP_NONE, &sites));
    UIR_TRY(find_complete(s, block, loop, &sites, &region, &tensor, &writer, iters));
    if (tensor == UIR_LOOP_NONE)
        return uir_step_refuse(s, "no tensor that %s reads at its own variables becomes complete under %s", name, text);
    UIR_TRY_ALLOCATE(writers, uir_arena_allocate_array(&s->scratch, sites.count + 1, sizeof *writers));
    for (uint32_t i = sites.of_block[block]; i < sites.count && sites.data[i].block == block; i++)
        UIR_SITES_OF_TENSOR(&sites, sites.data[i].tensor, k)
    if (!sites.data[i].write && sites.data[k].write && uir_tree_holds(s, loop, sites.data[k].block) &&
        count < sites.count)
        writers[count++] = sites.data[k].block;
    uint32_t after = child_with(s, loop, writers, count, true);
    UIR_TRY(uir_orders_take(s, &block, 1, &orders));
    for (uint32_t i = 0; i < UIR_SCHEDULE_AT(s, block)->iter_count; i++) {
        low[i] = uir_dim_const(dims, 0);
        extent[i] = UIR_SCHEDULE_AT(s, block)->iters[i].extent;
    }
    for (uint32_t d = 0; d < region.rank; d++) {
        low[iters[d]] = region.low[d];
        extent[iters[d]] = uir_dim_add(dims, uir_dim_sub(dims, region.high[d], region.low[d]), uir_dim_const(dims, 1));
    }
    /* Still full: each region of what it reads is complete in some iteration, and all of them are the whole. */
    UIR_TRY(uir_move_nest(s, block, UIR_LOOP_NONE, after, low, extent));
    UIR_TRY(uir_tree_index(s));
    UIR_TRY(uir_move_guard_domain(s, block));
    UIR_TRY(uir_move_carry_conditions(s, block, loop, &writer, 1));
    UIR_TRY(uir_orders_check(s, &orders));
    UIR_TRY(uir_region_check_binds(s, block));
    uir_step_moved(s, UIR_LOOP_NONE);
    uir_step_say(s, "reverse compute %s at %s", name, text);
    return UIR_STATUS_OK;
}

uir_status uir_schedule_reverse_compute_at(uir_schedule *schedule, uint32_t block, uint32_t loop) {
    UIR_TRY(uir_step_begin(schedule));
    return uir_step_end(schedule, reverse_compute_at(schedule, block, loop));
}

/* ---- statements of one list ---- */
/* In the order of the text something is stored to each tensor before it is read, whatever iteration stores the element:
 * that is what a function's reader is told by. */
static uir_status check_stored_first(uir_schedule *s) {
    uir_sites sites = {0};
    UIR_TRY(uir_sites_collect_all(s, UIR_LOOP_NONE, &sites));
    for (uint32_t i = 0; i < sites.count; i++) {
        const uir_site *read = &sites.data[i];
        bool stored = read->write || UIR_SCHEDULE_TENSOR(s, read->tensor)->role == UIR_LOOP_ROLE_IN;
        for (uint32_t k = 0; k < i && !stored; k++)
            stored = sites.data[k].write && sites.data[k].tensor == read->tensor;
        if (!stored)
            return uir_step_refuse(s, "%s would read %s before anything is stored to it",
                                   UIR_SCHEDULE_AT(s, read->block)->name, UIR_SCHEDULE_TENSOR(s, read->tensor)->name);
    }
    return UIR_STATUS_OK;
}

static uir_status move_before(uir_schedule *s, uint32_t block, uint32_t before) {
    uint32_t path[UIR_SCHEDULE_MAX_DEPTH + 1], other[UIR_SCHEDULE_MAX_DEPTH + 1], n, m, k = 0;
    uir_orders orders = {0};
    if (!uir_tree_reachable(s, block, UIR_LOOP_STATEMENT_BLOCK) ||
        !uir_tree_reachable(s, before, UIR_LOOP_STATEMENT_BLOCK))
        return uir_step_refuse(s, "statement %u or %u is not a block", block, before);
    if (block == before) return uir_step_refuse(s, "%s cannot move before itself", UIR_SCHEDULE_AT(s, block)->name);
    n = uir_tree_path(s, block, path);
    m = uir_tree_path(s, before, other);
    path[n] = block;
    other[m] = before;
    while (path[k] == other[k]) k++;
    UIR_TRY(uir_orders_take(s, &path[k], 1, &orders));
    *uir_tree_link(s, path[k]) = UIR_SCHEDULE_AT(s, path[k])->next;
    UIR_SCHEDULE_AT(s, path[k])->next = other[k];
    *uir_tree_link(s, other[k]) = path[k];
    s->indexed = false;
    UIR_TRY(uir_tree_index(s));
    UIR_TRY(uir_orders_check(s, &orders));
    UIR_TRY(check_stored_first(s));
    uir_step_moved(s, UIR_LOOP_NONE);
    uir_step_say(s, "move %s before %s", UIR_SCHEDULE_AT(s, block)->name, UIR_SCHEDULE_AT(s, before)->name);
    return UIR_STATUS_OK;
}

uir_status uir_schedule_move_before(uir_schedule *schedule, uint32_t block, uint32_t before) {
    UIR_TRY(uir_step_begin(schedule));
    return uir_step_end(schedule, move_before(schedule, block, before));
}
