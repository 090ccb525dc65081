/* Regions: what a block touches while some loops stand still; whether what is read was written in the same iteration.
 */
#include "lower/schedule/schedule_internal.h"

typedef struct size_search {
    const uir_schedule *s;
    bool others;
} size_search;

static void see_size(void *user, uir_symbol symbol) {
    size_search *search = user;
    const uir_loop_function *f = search->s->function;
    for (uint32_t i = 0; i < f->sizes.count; i++)
        if (f->sizes.data[i].symbol.id == symbol.id) return;
    for (uint32_t i = 0; i < f->tiles.count; i++)
        if (f->tiles.data[i].symbol.id == symbol.id) return;
    search->others = true;
}

bool uir_dim_is_of_sizes(const uir_schedule *s, uir_dim dim) {
    size_search search = {s, false};
    uir_dim_visit_symbols(s->function->dims, dim, see_size, &search);
    return !search.others;
}

/* ---- boxes ---- */
static uir_status replace_symbol(uir_schedule *s, uir_dim dim, uir_symbol symbol, uir_dim value, uir_dim *out) {
    uir_substitution one = {0};
    UIR_TRY(uir_substitution_set(s, &one, symbol, value));
    *out = uir_substitute(s, &one, dim);
    return out->id ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
}

/* The least (or greatest) value of *dim over a loop that moves; *out_known false when the dim is not monotone in it. */
static uir_status find_end(uir_schedule *s, const uir_conditions *given, const uir_loop_statement *loop, bool greatest,
                           uir_dim *dim, bool *out_known) {
    uir_dims *dims = s->function->dims;
    uir_dim variable = uir_dim_symbol(dims, loop->symbol), one = uir_dim_const(dims, 1), zero = uir_dim_const(dims, 0);
    uir_dim last = uir_dim_sub(dims, uir_dim_add(dims, loop->min, loop->extent), one), next;
    *out_known = true;
    if (!uir_dim_uses(s, *dim, loop->symbol)) return UIR_STATUS_OK;
    UIR_TRY(replace_symbol(s, *dim, loop->symbol, uir_dim_add(dims, variable, one), &next));
    uir_dim step = uir_dim_sub(dims, next, *dim);
    bool rises = uir_order_proved(s, given, step, UIR_RELATION_GE, zero);
    if (!rises && !uir_order_proved(s, given, step, UIR_RELATION_LE, zero)) {
        *out_known = false;
        return UIR_STATUS_OK;
    }
    return replace_symbol(s, *dim, loop->symbol, rises == greatest ? last : loop->min, dim);
}

static bool uses_data(uir_schedule *s, const uir_loop_statement *block, uir_dim dim) {
    for (uint32_t i = 0; i < block->iter_count; i++)
        if (block->iters[i].data && uir_dim_uses(s, dim, block->iters[i].symbol)) return true;
    return false;
}

uir_status uir_region_join(uir_schedule *s, const uir_site *site, uint32_t loop, uir_region *region) {
    uir_dims *dims = s->function->dims;
    const uir_loop_tensor *t = UIR_SCHEDULE_TENSOR(s, site->tensor);
    uint32_t path[UIR_SCHEDULE_MAX_DEPTH], count = uir_tree_path(s, site->block, path), first = 0;
    uir_conditions given = {0};
    UIR_TRY(uir_order_given(s, site->block, &given));
    for (uint32_t k = 0; k < count; k++)
        if (path[k] == loop) first = k + 1;
    for (uint32_t d = 0; d < t->rank; d++) {
        uir_dim low = site->at[d], high = site->at[d];
        bool known = !uses_data(s, UIR_SCHEDULE_AT(s, site->block), low);
        for (uint32_t k = count; known && k-- > first;) {
            bool also = true;
            if (UIR_SCHEDULE_AT(s, path[k])->kind != UIR_LOOP_STATEMENT_FOR) continue;
            UIR_TRY(find_end(s, &given, UIR_SCHEDULE_AT(s, path[k]), false, &low, &known));
            if (known) UIR_TRY(find_end(s, &given, UIR_SCHEDULE_AT(s, path[k]), true, &high, &also));
            known = known && also;
        }
        if (!known) {
            low = uir_dim_const(dims, 0);
            high = uir_dim_sub(dims, t->extents[d], uir_dim_const(dims, 1));
        }
        if (!region->empty) {
            low = uir_dim_min(dims, low, region->low[d]);
            high = uir_dim_max(dims, high, region->high[d]);
        }
        if (!low.id || !high.id) return UIR_STATUS_OUT_OF_MEMORY;
        region->low[d] = low;
        region->high[d] = high;
    }
    region->rank = t->rank;
    region->empty = false;
    return UIR_STATUS_OK;
}

/* ---- coverage ---- */
/* The loop of `write` inside `first` that index d alone decides: at[d] = variable + rest. */
static bool find_decided(uir_schedule *s, const uir_site *write, const uint32_t *path, uint32_t first, uint32_t count,
                         uint32_t k, uint32_t *out_d, uir_dim *out_rest) {
    uir_dims *dims = s->function->dims;
    const uir_loop_statement *loop = UIR_SCHEDULE_AT(s, path[k]);
    for (uint32_t d = 0; d < UIR_SCHEDULE_TENSOR(s, write->tensor)->rank; d++) {
        uir_dim rest = uir_dim_sub(dims, write->at[d], uir_dim_symbol(dims, loop->symbol));
        bool free = rest.id != 0;
        for (uint32_t i = first; free && i < count; i++)
            if (UIR_SCHEDULE_AT(s, path[i])->kind == UIR_LOOP_STATEMENT_FOR)
                free = !uir_dim_uses(s, rest, UIR_SCHEDULE_AT(s, path[i])->symbol);
        if (!free || uses_data(s, UIR_SCHEDULE_AT(s, write->block), rest)) continue;
        *out_d = d;
        *out_rest = rest;
        return true;
    }
    return false;
}

/* Two loops of `write` inside `first` that one index decides together, as a split leaves them: at[d] = c * outer +
 * inner
 * + rest, inner from 0 to c - 1. */
typedef struct loop_pair {
    uint32_t outer, inner, d; /* places on the path; of the index */
    int64_t steps;
    uir_dim rest;
} loop_pair;

static bool find_pair(uir_schedule *s, const uir_site *write, const uint32_t *path, uint32_t first, uint32_t count,
                      uint32_t k, loop_pair *out) {
    uir_dims *dims = s->function->dims;
    const uir_loop_statement *outer = UIR_SCHEDULE_AT(s, path[k]);
    for (uint32_t i = k + 1; i < count; i++) {
        const uir_loop_statement *inner = UIR_SCHEDULE_AT(s, path[i]);
        int64_t min, steps;
        if (inner->kind != UIR_LOOP_STATEMENT_FOR || !uir_dim_is_const(dims, inner->extent, &steps) || steps < 1 ||
            !uir_dim_is_const(dims, inner->min, &min) || min)
            continue;
        uir_dim both =
            uir_dim_add(dims, uir_dim_mul(dims, uir_dim_symbol(dims, outer->symbol), uir_dim_const(dims, steps)),
                        uir_dim_symbol(dims, inner->symbol));
        for (uint32_t d = 0; d < UIR_SCHEDULE_TENSOR(s, write->tensor)->rank; d++) {
            uir_dim rest = uir_dim_sub(dims, write->at[d], both);
            bool free = rest.id && !uses_data(s, UIR_SCHEDULE_AT(s, write->block), rest);
            for (uint32_t n = first; free && n < count; n++)
                if (UIR_SCHEDULE_AT(s, path[n])->kind == UIR_LOOP_STATEMENT_FOR)
                    free = !uir_dim_uses(s, rest, UIR_SCHEDULE_AT(s, path[n])->symbol);
            if (!free) continue;
            *out = (loop_pair){k, i, d, steps, rest};
            return true;
        }
    }
    return false;
}

/* The turns of both loops that write `value` of the index; false: it may be outside of them. */
static uir_status take_pair(uir_schedule *s, const loop_pair *pair, const uint32_t *path, const uir_conditions *given,
                            uir_dim at, uir_substitution *instance, bool *out_taken) {
    uir_dims *dims = s->function->dims;
    const uir_loop_statement *outer = UIR_SCHEDULE_AT(s, path[pair->outer]);
    uir_dim steps = uir_dim_const(dims, pair->steps), value = uir_dim_sub(dims, at, pair->rest);
    uir_dim first = uir_dim_mul(dims, uir_substitute(s, instance, outer->min), steps);
    uir_dim end = uir_dim_add(dims, first, uir_dim_mul(dims, uir_substitute(s, instance, outer->extent), steps));
    uir_dim turn = uir_dim_floordiv(dims, value, steps);
    *out_taken = uir_order_proved(s, given, value, UIR_RELATION_GE, first) &&
                 uir_order_proved(s, given, value, UIR_RELATION_LT, end);
    UIR_TRY(uir_substitution_set(s, instance, outer->symbol, turn));
    return uir_substitution_set(s, instance, UIR_SCHEDULE_AT(s, path[pair->inner])->symbol,
                                uir_dim_sub(dims, value, uir_dim_mul(dims, turn, steps)));
}

/* `free`: loops that an update goes through in full; they may end early (the where of a split). */
static bool conditions_hold(uir_schedule *s, const uir_loop_statement *statement, const uir_substitution *instance,
                            const uir_conditions *given, const uint32_t *free, uint32_t free_count) {
    for (uint32_t i = 0; i < statement->condition_count; i++) {
        const uir_condition *c = &statement->conditions[i];
        bool uses_free = false;
        for (uint32_t k = 0; k < free_count; k++) {
            uir_symbol symbol = UIR_SCHEDULE_AT(s, free[k])->symbol;
            uses_free |= uir_dim_uses(s, c->left, symbol) || uir_dim_uses(s, c->right, symbol);
        }
        if (uses_free) continue;
        if (!uir_order_proved(s, given, uir_substitute(s, instance, c->left), c->relation,
                              uir_substitute(s, instance, c->right)))
            return false;
    }
    return true;
}

/* What is known where the read happens: also that the element exists. */
static uir_status know_read(uir_schedule *s, const uir_site *read, uir_conditions *given) {
    uir_dims *dims = s->function->dims;
    const uir_loop_tensor *t = UIR_SCHEDULE_TENSOR(s, read->tensor);
    UIR_TRY(uir_order_given(s, read->block, given));
    for (uint32_t d = 0; d < t->rank; d++) {
        uir_condition least = {UIR_RELATION_GE, read->at[d], uir_dim_const(dims, 0)};
        uir_condition most = {UIR_RELATION_LT, read->at[d], t->extents[d]};
        UIR_TRY(uir_vector_push(&s->scratch, given, least));
        UIR_TRY(uir_vector_push(&s->scratch, given, most));
    }
    return UIR_STATUS_OK;
}

uir_status uir_region_covers(uir_schedule *s, const uir_site *write, const uir_site *read, bool *out_covers) {
    uir_dims *dims = s->function->dims;
    uint32_t pw[UIR_SCHEDULE_MAX_DEPTH], pr[UIR_SCHEDULE_MAX_DEPTH];
    uint32_t nw = uir_tree_path(s, write->block, pw), nr = uir_tree_path(s, read->block, pr), first = 0;
    uint32_t free[UIR_SCHEDULE_MAX_DEPTH], free_count = 0;
    uir_conditions given = {0};
    uir_substitution instance = {0};
    loop_pair pair = {.inner = UIR_LOOP_NONE};
    *out_covers = false;
    UIR_TRY(know_read(s, read, &given));
    while (first < nw && first < nr && pw[first] == pr[first]) first++;
    if (s->places.data[write->block] > s->places.data[read->block] ||
        (write->block == read->block && write->ordinal >= read->ordinal))
        return UIR_STATUS_OK;
    for (uint32_t k = first; k < nw; k++) {
        const uir_loop_statement *loop = UIR_SCHEDULE_AT(s, pw[k]);
        uint32_t d;
        uir_dim rest, value;
        bool taken;
        if (loop->kind != UIR_LOOP_STATEMENT_FOR || k == pair.inner) continue;
        uir_dim min = uir_substitute(s, &instance, loop->min), extent = uir_substitute(s, &instance, loop->extent);
        uir_dim end = uir_dim_add(dims, min, extent);
        if (find_decided(s, write, pw, first, nw, k, &d, &rest)) {
            value = uir_dim_sub(dims, read->at[d], rest);
            if (!uir_order_proved(s, &given, value, UIR_RELATION_GE, min) ||
                !uir_order_proved(s, &given, value, UIR_RELATION_LT, end))
                return UIR_STATUS_OK;
        } else if (pair.inner == UIR_LOOP_NONE && find_pair(s, write, pw, first, nw, k, &pair)) {
            UIR_TRY(take_pair(s, &pair, pw, &given, read->at[pair.d], &instance, &taken));
            if (!taken) return UIR_STATUS_OK;
            continue;
        } else { /* any iteration writes it, if there is one; an update may have none */
            value = min;
            if (write->reduction) free[free_count++] = pw[k];
            if (!write->reduction && !uir_order_proved(s, &given, extent, UIR_RELATION_GE, uir_dim_const(dims, 1)))
                return UIR_STATUS_OK;
        }
        UIR_TRY(uir_substitution_set(s, &instance, loop->symbol, value));
    }
    for (uint32_t d = 0; d < UIR_SCHEDULE_TENSOR(s, read->tensor)->rank; d++)
        if (!uir_order_proved(s, &given, uir_substitute(s, &instance, write->at[d]), UIR_RELATION_EQ, read->at[d]))
            return UIR_STATUS_OK;
    if (!conditions_hold(s, UIR_SCHEDULE_AT(s, write->block), &instance, &given, free, free_count))
        return UIR_STATUS_OK;
    for (uint32_t k = first; k < nw; k++)
        if (!conditions_hold(s, UIR_SCHEDULE_AT(s, pw[k]), &instance, &given, free, free_count)) return UIR_STATUS_OK;
    *out_covers = true;
    return UIR_STATUS_OK;
}

/* ---- domains ---- */
static uir_status assume(uir_schedule *s, uir_conditions *given, uir_dim left, uir_relation relation, uir_dim right) {
    uir_condition condition = {relation, left, right};
    return uir_vector_push(&s->scratch, given, condition);
}

/* What the verifier knows in a block, in its order: the prover is a search, and what is proved here must be proved
 * there.
 */
static uir_status know_block(uir_schedule *s, uint32_t block, uir_conditions *given) {
    uir_dims *dims = s->function->dims;
    uint32_t path[UIR_SCHEDULE_MAX_DEPTH], count = uir_tree_path(s, block, path);
    for (uint32_t i = 0; i < s->function->requires_.count; i++)
        UIR_TRY(uir_vector_push(&s->scratch, given, s->function->requires_.data[i]));
    for (uint32_t k = 0; k <= count; k++) {
        const uir_loop_statement *at = UIR_SCHEDULE_AT(s, k < count ? path[k] : block);
        for (uint32_t i = 0; i < at->condition_count; i++)
            UIR_TRY(uir_vector_push(&s->scratch, given, at->conditions[i]));
        if (at->kind != UIR_LOOP_STATEMENT_FOR) continue;
        uir_dim variable = uir_dim_symbol(dims, at->symbol);
        UIR_TRY(assume(s, given, variable, UIR_RELATION_GE, at->min));
        UIR_TRY(assume(s, given, variable, UIR_RELATION_LT, uir_dim_add(dims, at->min, at->extent)));
    }
    return UIR_STATUS_OK;
}

uir_status uir_region_check_binds(uir_schedule *s, uint32_t statement) {
    uir_dims *dims = s->function->dims;
    uint32_t count = uir_schedule_blocks(s, statement, NULL, 0), *blocks;
    UIR_TRY_ALLOCATE(blocks, uir_arena_allocate_array(&s->scratch, count + 1, sizeof *blocks));
    uir_schedule_blocks(s, statement, blocks, count);
    for (uint32_t k = 0; k < count; k++) {
        const uir_loop_statement *b = UIR_SCHEDULE_AT(s, blocks[k]);
        uir_conditions given = {0};
        UIR_TRY(know_block(s, blocks[k], &given));
        for (uint32_t i = 0; i < b->iter_count; i++) {
            const uir_loop_iter *iter = &b->iters[i];
            if (iter->data || (uir_order_proved(s, &given, iter->value, UIR_RELATION_GE, uir_dim_const(dims, 0)) &&
                               uir_order_proved(s, &given, iter->value, UIR_RELATION_LT, iter->extent)))
                continue;
            return uir_step_refuse(s, "%s: %s = %s is not proved to stay in 0..%s-1", b->name, iter->name,
                                   uir_step_dim_text(s, iter->value), uir_step_dim_text(s, iter->extent));
        }
    }
    return UIR_STATUS_OK;
}

typedef struct access_check {
    uir_schedule *s;
    const uir_loop_statement *block;
} access_check;

static uir_status check_access(const access_check *a, const uir_loop_access *access) {
    uir_schedule *s = a->s;
    uir_dims *dims = s->function->dims;
    const uir_loop_tensor *t = UIR_SCHEDULE_TENSOR(s, access->tensor);
    uir_conditions given = {0};
    UIR_TRY(know_block(s, (uint32_t)(a->block - s->function->statements.data), &given));
    for (uint32_t i = 0; i < a->block->iter_count; i++) {
        uir_dim variable = uir_dim_symbol(dims, a->block->iters[i].symbol);
        UIR_TRY(assume(s, &given, variable, UIR_RELATION_GE, uir_dim_const(dims, 0)));
        UIR_TRY(assume(s, &given, variable, UIR_RELATION_LT, a->block->iters[i].extent));
    }
    for (uint32_t d = 0; d < t->rank; d++) {
        if (!uir_order_proved(s, &given, access->indices[d], UIR_RELATION_GE, uir_dim_const(dims, 0)) ||
            !uir_order_proved(s, &given, access->indices[d], UIR_RELATION_LT, t->extents[d]))
            return uir_step_refuse(s, "%s: index %s of %s is not proved to be inside", a->block->name,
                                   uir_step_dim_text(s, access->indices[d]), t->name);
    }
    return UIR_STATUS_OK;
}

static uir_status check_loads(const access_check *a, uint32_t id) {
    const uir_loop_expression *e = &a->s->function->expressions.data[id];
    if (e->kind == UIR_LOOP_LOAD && !e->has_fill) return check_access(a, &e->load);
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++)
        UIR_TRY(check_loads(a, e->arguments[i]));
    return UIR_STATUS_OK;
}

uir_status uir_region_check_accesses(uir_schedule *s, uint32_t block) {
    access_check a = {s, UIR_SCHEDULE_AT(s, block)};
    for (uint32_t i = 0; i < a.block->iter_count; i++)
        if (a.block->iters[i].data) UIR_TRY(check_access(&a, a.block->iters[i].from));
    for (uint32_t id = a.block->first_child; id != UIR_LOOP_NONE; id = UIR_SCHEDULE_AT(s, id)->next) {
        for (uint32_t i = 0; i < UIR_SCHEDULE_AT(s, id)->target_count; i++)
            UIR_TRY(check_access(&a, &UIR_SCHEDULE_AT(s, id)->targets[i]));
        for (uint32_t i = 0; i < UIR_SCHEDULE_AT(s, id)->value_count; i++)
            UIR_TRY(check_loads(&a, UIR_SCHEDULE_AT(s, id)->values[i]));
    }
    return UIR_STATUS_OK;
}
