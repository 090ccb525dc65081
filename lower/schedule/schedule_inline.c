/* inline and reverse_inline: a producer's value goes into its consumers, or a consumer's into its producer. */
#include "lower/schedule/schedule_internal.h"

#include <string.h>

static uir_status add_expression(uir_schedule *s, const uir_loop_expression *e, uint32_t *out_id) {
    uir_loop_expression copy = *e;
    *out_id = s->function->expressions.count;
    return uir_vector_push(&s->function->arena, &s->function->expressions, copy);
}

/* A monoid's finish with its parameters replaced by expressions. */
static uir_status apply_parameters(uir_schedule *s, uint32_t id, const uint32_t *values, uint32_t *out_id) {
    uir_loop_expression e = s->function->expressions.data[id];
    *out_id = id;
    if (e.kind == UIR_LOOP_PARAMETER) *out_id = values[e.integer];
    if (e.kind != UIR_LOOP_CALL) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < e.argument_count; i++)
        UIR_TRY(apply_parameters(s, e.arguments[i], values, &e.arguments[i]));
    return add_expression(s, &e, out_id);
}

/* What a block's only statement, a store or a finish of one result, stores. */
static uir_status find_value(uir_schedule *s, uint32_t block, uint32_t *out_statement, uint32_t *out_value) {
    *out_statement = uir_block_only_statement(s, block);
    const char *name = UIR_SCHEDULE_AT(s, block)->name;
    if (*out_statement == UIR_LOOP_NONE) return uir_step_refuse(s, "%s has several statements", name);
    const uir_loop_statement *st = UIR_SCHEDULE_AT(s, *out_statement);
    if (st->kind == UIR_LOOP_STATEMENT_STORE) {
        *out_value = st->values[0];
        return UIR_STATUS_OK;
    }
    if (st->kind != UIR_LOOP_STATEMENT_FINISH || st->target_count != 1)
        return uir_step_refuse(s, "%s is the %s of a reduction", name, uir_loop_statement_get_row(st->kind)->word);
    return apply_parameters(s, s->function->monoids.data[st->monoid].finish[0], st->values, out_value);
}

/* ---- loads replaced ---- */
typedef struct replacement {
    uir_schedule *s;
    uint32_t tensor, value; /* expression over the producer's variables */
    uint32_t producer;
    uint32_t iters[UIR_LOOP_MAX_RANK]; /* of the producer, per dim of the tensor; NONE: a dim of one element */
    uint32_t consumer;
    bool literal; /* the value takes the load's place as it is */
    uint32_t replaced;
} replacement;

/* The loads of an expression get fills, so that they may be evaluated where the whole is not wanted. */
static uir_status fill_loads(uir_schedule *s, uint32_t id, uint32_t *out_id) {
    uir_loop_expression e = s->function->expressions.data[id];
    *out_id = id;
    if (e.kind == UIR_LOOP_LOAD && !e.has_fill) {
        e.has_fill = true;
        e.fill = 0;
        return add_expression(s, &e, out_id);
    }
    if (e.kind != UIR_LOOP_CALL) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < e.argument_count; i++) UIR_TRY(fill_loads(s, e.arguments[i], &e.arguments[i]));
    return add_expression(s, &e, out_id);
}

static uir_status add_call(uir_schedule *s, uir_op op, uir_dtype dtype, uint32_t a, uint32_t b, uint32_t c,
                           uint32_t *out) {
    uir_loop_expression e = {.kind = UIR_LOOP_CALL, .op = op, .dtype = dtype, .arguments = {a, b, c}};
    e.argument_count = c == UIR_LOOP_NONE ? 2 : 3;
    return add_expression(s, &e, out);
}

/* `value` where the load is inside the tensor, its fill elsewhere. */
static uir_status choose_inside(uir_schedule *s, const uir_loop_expression *load, uint32_t value, uint32_t *out_id) {
    uir_dims *dims = s->function->dims;
    const uir_loop_tensor *t = UIR_SCHEDULE_TENSOR(s, load->load.tensor);
    uint32_t condition = UIR_LOOP_NONE, fill, zero;
    uir_loop_expression constant = {
        .kind = UIR_LOOP_CONSTANT, .dtype = t->dtype, .real = load->fill, .integer = (int64_t)load->fill};
    uir_loop_expression nothing = {.kind = UIR_LOOP_CONSTANT, .dtype = UIR_DTYPE_I64};
    uint32_t rank = t->rank;
    UIR_TRY(add_expression(s, &constant, &fill));
    UIR_TRY(add_expression(s, &nothing, &zero));
    for (uint32_t d = 0; d < rank; d++) {
        uir_loop_expression at = {.kind = UIR_LOOP_INDEX, .dtype = UIR_DTYPE_I64, .index = load->load.indices[d]};
        uir_loop_expression left = {
            .kind = UIR_LOOP_INDEX,
            .dtype = UIR_DTYPE_I64,
            .index = uir_dim_sub(dims, UIR_SCHEDULE_TENSOR(s, load->load.tensor)->extents[d], load->load.indices[d])};
        uint32_t index, room, least, most;
        if (!left.index.id) return UIR_STATUS_OUT_OF_MEMORY;
        UIR_TRY(add_expression(s, &at, &index));
        UIR_TRY(add_expression(s, &left, &room));
        UIR_TRY(add_call(s, UIR_OP_GE, UIR_DTYPE_BOOL, index, zero, UIR_LOOP_NONE, &least));
        UIR_TRY(add_call(s, UIR_OP_GT, UIR_DTYPE_BOOL, room, zero, UIR_LOOP_NONE, &most));
        UIR_TRY(add_call(s, UIR_OP_AND, UIR_DTYPE_BOOL, least, most, UIR_LOOP_NONE, &most));
        if (condition == UIR_LOOP_NONE)
            condition = most;
        else
            UIR_TRY(add_call(s, UIR_OP_AND, UIR_DTYPE_BOOL, condition, most, UIR_LOOP_NONE, &condition));
    }
    *out_id = value;
    if (condition == UIR_LOOP_NONE) return UIR_STATUS_OK;
    return add_call(s, UIR_OP_SELECT, s->function->expressions.data[value].dtype, condition, value, fill, out_id);
}

/* Is the value what the load's fill is where the load is outside: an element of a tensor of the same extents at the
 * same place, cast or not, with 0 outside? */
static bool is_filled(uir_schedule *s, const uir_loop_expression *load, uint32_t value) {
    const uir_loop_expression *e = &s->function->expressions.data[value];
    if (e->kind == UIR_LOOP_CALL && e->op == UIR_OP_CAST) e = &s->function->expressions.data[e->arguments[0]];
    if (e->kind != UIR_LOOP_LOAD || !e->has_fill || e->fill != 0 || load->fill != 0) return false;
    const uir_loop_tensor *a = UIR_SCHEDULE_TENSOR(s, load->load.tensor), *b = UIR_SCHEDULE_TENSOR(s, e->load.tensor);
    bool same = a->rank == b->rank;
    for (uint32_t d = 0; same && d < a->rank; d++)
        same = uir_dim_equal(a->extents[d], b->extents[d]) && uir_dim_equal(load->load.indices[d], e->load.indices[d]);
    return same;
}

/* The producer's variables read from data become the consumer's. */
static uir_status take_data(replacement *r, uir_substitution *values) {
    uir_schedule *s = r->s;
    for (uint32_t i = 0; i < UIR_SCHEDULE_AT(s, r->producer)->iter_count; i++) {
        uir_loop_iter iter = UIR_SCHEDULE_AT(s, r->producer)->iters[i];
        uir_loop_statement *c = UIR_SCHEDULE_AT(s, r->consumer);
        if (!iter.data) continue;
        uir_loop_access from = *iter.from;
        uint32_t rank = UIR_SCHEDULE_TENSOR(s, from.tensor)->rank;
        for (uint32_t d = 0; d < rank; d++) from.indices[d] = uir_substitute(s, values, from.indices[d]);
        UIR_TRY_ALLOCATE(iter.from, uir_arena_copy(&s->function->arena, &from, sizeof from));
        uint32_t same = 0;
        for (; same < c->iter_count; same++) {
            const uir_loop_iter *other = &c->iters[same];
            bool equal = other->data && other->mode == iter.mode && other->from->tensor == from.tensor &&
                         uir_dim_equal(other->extent, iter.extent);
            for (uint32_t d = 0; equal && d < rank; d++)
                equal = uir_dim_equal(other->from->indices[d], from.indices[d]);
            if (equal) break;
        }
        if (same == c->iter_count) {
            if (c->iter_count == UIR_LOOP_MAX_ITERS)
                return uir_step_refuse(s, "%s cannot have more variables", c->name);
            uir_symbol_facts facts = {0, UIR_DIM_UNBOUNDED, 1, iter.extent};
            uir_symbol before = iter.symbol;
            char name[160];
            uint32_t number = 2, clash;
            size_t kept = strlen(iter.name) < 120 ? strlen(iter.name) : 120;
            memcpy(name, iter.name, kept);
            name[kept] = 0;
            do {
                clash = 0;
                for (uint32_t k = 0; k < c->iter_count; k++) clash |= !strcmp(c->iters[k].name, name);
                for (uint32_t k = 0; k < s->function->sizes.count; k++)
                    clash |= !strcmp(s->function->sizes.data[k].name, name);
                if (clash) {
                    name[kept] = '_';
                    uint32_t digits = number++, at = (uint32_t)kept + 1;
                    if (digits >= 10) name[at++] = (char)('0' + digits / 10 % 10);
                    name[at++] = (char)('0' + digits % 10);
                    name[at] = 0;
                }
            } while (clash);
            UIR_TRY_ALLOCATE(iter.name, uir_arena_copy_string(&s->function->arena, name, strlen(name)));
            UIR_TRY(uir_dims_add_symbol(s->function->dims, iter.name, strlen(iter.name), facts, &iter.symbol));
            c->iters[c->iter_count++] = iter;
            UIR_TRY(uir_substitution_set(s, values, before, uir_dim_symbol(s->function->dims, iter.symbol)));
        } else {
            UIR_TRY(
                uir_substitution_set(s, values, iter.symbol, uir_dim_symbol(s->function->dims, c->iters[same].symbol)));
        }
    }
    return UIR_STATUS_OK;
}

static bool is_inside(uir_schedule *s, uint32_t consumer, const uir_loop_access *access) {
    uir_dims *dims = s->function->dims;
    const uir_loop_statement *b = UIR_SCHEDULE_AT(s, consumer);
    uir_dim zero = uir_dim_const(dims, 0);
    for (uint32_t d = 0; d < UIR_SCHEDULE_TENSOR(s, access->tensor)->rank; d++) {
        if (uir_dim_compare(dims, access->indices[d], UIR_RELATION_GE, zero) != UIR_TRUE ||
            uir_dim_compare(dims, access->indices[d], UIR_RELATION_LT,
                            UIR_SCHEDULE_TENSOR(s, access->tensor)->extents[d]) != UIR_TRUE)
            return false;
        for (uint32_t i = 0; i < b->iter_count; i++) /* a skipped variable is outside whatever its value is */
            if (b->iters[i].data && uir_dim_uses(s, access->indices[d], b->iters[i].symbol)) return false;
    }
    return true;
}

static uir_status replace_loads(replacement *r, uint32_t id, uint32_t *out_id) {
    uir_schedule *s = r->s;
    uir_loop_expression e = s->function->expressions.data[id];
    *out_id = id;
    if (e.kind == UIR_LOOP_CALL) {
        bool changed = false;
        for (uint32_t i = 0; i < e.argument_count; i++) {
            uint32_t argument;
            UIR_TRY(replace_loads(r, e.arguments[i], &argument));
            changed |= argument != e.arguments[i];
            e.arguments[i] = argument;
        }
        return changed ? add_expression(s, &e, out_id) : UIR_STATUS_OK;
    }
    if (e.kind != UIR_LOOP_LOAD || e.load.tensor != r->tensor) return UIR_STATUS_OK;
    r->replaced++;
    if (r->literal) {
        *out_id = r->value;
        return UIR_STATUS_OK;
    }
    bool inside = !e.has_fill || is_inside(s, r->consumer, &e.load), has_data = false;
    uir_substitution values = {0};
    const uir_loop_statement *p = UIR_SCHEDULE_AT(s, r->producer), *c = UIR_SCHEDULE_AT(s, r->consumer);
    for (uint32_t i = 0; i < p->iter_count; i++) has_data |= p->iters[i].data;
    for (uint32_t i = 0; i < c->iter_count; i++)
        for (uint32_t d = 0; c->iters[i].data && d < UIR_SCHEDULE_TENSOR(s, r->tensor)->rank; d++)
            has_data |= !inside && uir_dim_uses(s, e.load.indices[d], c->iters[i].symbol);
    if (!inside && has_data)
        return uir_step_refuse(s, "%s may read %s out of bounds, at an index that is read from data", c->name,
                               UIR_SCHEDULE_TENSOR(s, r->tensor)->name);
    for (uint32_t d = 0; d < UIR_SCHEDULE_TENSOR(s, r->tensor)->rank; d++)
        if (r->iters[d] != UIR_LOOP_NONE)
            UIR_TRY(uir_substitution_set(s, &values, p->iters[r->iters[d]].symbol, e.load.indices[d]));
    UIR_TRY(take_data(r, &values));
    UIR_TRY(uir_expression_substitute(s, r->value, &values, out_id));
    if (inside) return UIR_STATUS_OK;
    UIR_TRY(fill_loads(s, *out_id, out_id));
    if (is_filled(s, &e, *out_id)) return UIR_STATUS_OK;
    return choose_inside(s, &e, *out_id, out_id);
}

static uir_status replace_in_block(replacement *r, uint32_t block) {
    uir_schedule *s = r->s;
    r->consumer = block;
    for (uint32_t i = 0; i < UIR_SCHEDULE_AT(s, block)->iter_count; i++)
        if (UIR_SCHEDULE_AT(s, block)->iters[i].data && UIR_SCHEDULE_AT(s, block)->iters[i].from->tensor == r->tensor)
            return uir_step_refuse(s, "%s reads an index from %s", UIR_SCHEDULE_AT(s, block)->name,
                                   UIR_SCHEDULE_TENSOR(s, r->tensor)->name);
    for (uint32_t id = UIR_SCHEDULE_AT(s, block)->first_child; id != UIR_LOOP_NONE; id = UIR_SCHEDULE_AT(s, id)->next) {
        for (uint32_t i = 0; i < UIR_SCHEDULE_AT(s, id)->value_count; i++) {
            uint32_t value;
            UIR_TRY(replace_loads(r, UIR_SCHEDULE_AT(s, id)->values[i], &value));
            UIR_SCHEDULE_AT(s, id)->values[i] = value;
        }
        for (uint32_t i = 0; i < UIR_SCHEDULE_AT(s, id)->target_count; i++)
            if (UIR_SCHEDULE_AT(s, id)->targets[i].tensor == r->tensor)
                return uir_step_refuse(s, "%s also writes %s", UIR_SCHEDULE_AT(s, block)->name,
                                       UIR_SCHEDULE_TENSOR(s, r->tensor)->name);
    }
    return UIR_STATUS_OK;
}

/* ---- order of what the value reads ---- */

/* Before: each write of what the block reads is before the read. After: so it is at the reads' new places. */
static uir_status check_reads(uir_schedule *s, uint32_t block, const bool *tensors) {
    uir_sites sites = {0};
    UIR_TRY(uir_sites_collect_all(s, UIR_LOOP_NONE, &sites));
    for (uint32_t i = sites.of_block[block]; i < sites.count && sites.data[i].block == block; i++) {
        const uir_site *read = &sites.data[i];
        if (read->write || !tensors[read->tensor]) continue;
        UIR_SITES_OF_TENSOR(&sites, read->tensor, k) {
            const uir_site *write = &sites.data[k];
            uir_order order;
            if (!write->write) continue;
            UIR_TRY(uir_order_find(s, write, read, UIR_LOOP_NONE, false, &order));
            if (order == UIR_ORDER_BEFORE || order == UIR_ORDER_NEVER) continue;
            UIR_TRY(uir_order_find(s, write, read, UIR_LOOP_NONE, true, &order));
            if (order == UIR_ORDER_BEFORE || order == UIR_ORDER_NEVER) continue;
            return uir_step_refuse(s, "%s is not proved to be complete in %s where %s reads it",
                                   UIR_SCHEDULE_TENSOR(s, read->tensor)->name, UIR_SCHEDULE_AT(s, write->block)->name,
                                   UIR_SCHEDULE_AT(s, block)->name);
        }
    }
    return UIR_STATUS_OK;
}

static uir_status find_read_tensors(uir_schedule *s, uint32_t block, uint32_t except, bool **out) {
    uir_sites sites = {0};
    UIR_TRY_ALLOCATE(*out, uir_arena_allocate_array(&s->scratch, s->function->tensors.count + 1, sizeof **out));
    UIR_TRY(uir_sites_collect(s, block, &sites));
    for (uint32_t i = 0; i < sites.count; i++)
        if (!sites.data[i].write && sites.data[i].tensor != except) (*out)[sites.data[i].tensor] = true;
    return UIR_STATUS_OK;
}

/* Per index of what is stored the iteration variable that it is; a dim of one element needs none. */
static bool find_iters(const uir_schedule *s, const uir_loop_statement *block, const uir_loop_access *target,
                       uint32_t *out_iters, uint32_t *out_count) {
    const uir_loop_tensor *t = UIR_SCHEDULE_TENSOR(s, target->tensor);
    *out_count = 0;
    for (uint32_t d = 0; d < t->rank; d++) {
        int64_t extent, index;
        uir_symbol symbol;
        out_iters[d] = UIR_LOOP_NONE;
        if (uir_dim_is_const(s->function->dims, t->extents[d], &extent) && extent == 1 &&
            uir_dim_is_const(s->function->dims, target->indices[d], &index) && index == 0)
            continue;
        if (!uir_dim_is_symbol(s->function->dims, target->indices[d], &symbol)) return false;
        for (uint32_t i = 0; i < block->iter_count; i++)
            if (block->iters[i].symbol.id == symbol.id && !block->iters[i].data) out_iters[d] = i;
        if (out_iters[d] == UIR_LOOP_NONE) return false;
        for (uint32_t before = 0; before < d; before++)
            if (out_iters[before] == out_iters[d]) return false;
        ++*out_count;
    }
    return true;
}

/* ---- inline ---- */
static uir_status inline_block(uir_schedule *s, uint32_t block) {
    uint32_t statement, count, *readers;
    bool *reads;
    if (!uir_tree_reachable(s, block, UIR_LOOP_STATEMENT_BLOCK))
        return uir_step_refuse(s, "statement %u is not a block", block);
    const char *name = UIR_SCHEDULE_AT(s, block)->name;
    replacement r = {.s = s, .producer = block};
    UIR_TRY(find_value(s, block, &statement, &r.value));
    const uir_loop_statement *b = UIR_SCHEDULE_AT(s, block);
    const uir_loop_access *target = &UIR_SCHEDULE_AT(s, statement)->targets[0];
    r.tensor = target->tensor;
    const uir_loop_tensor *t = UIR_SCHEDULE_TENSOR(s, r.tensor);
    if (t->role != UIR_LOOP_ROLE_TEMP)
        return uir_step_refuse(s, "%s writes %s, which is needed outside the kernel", name, t->name);
    if (!s->full.data[block]) return uir_step_refuse(s, "%s does not run over its whole iteration space", name);
    uint32_t bound = 0, found;
    if (!find_iters(s, b, target, r.iters, &found))
        return uir_step_refuse(s, "%s does not store %s at its iteration variables, one per dim", name, t->name);
    for (uint32_t i = 0; i < b->iter_count; i++) bound += !b->iters[i].data;
    if (bound != found) return uir_step_refuse(s, "%s has iteration variables that do not index %s", name, t->name);
    if (uir_schedule_writers(s, r.tensor, NULL, 0) != 1) return uir_step_refuse(s, "%s has other writers", t->name);
    count = uir_schedule_readers(s, r.tensor, NULL, 0);
    UIR_TRY_ALLOCATE(readers, uir_arena_allocate_array(&s->scratch, count + 1, sizeof *readers));
    uir_schedule_readers(s, r.tensor, readers, count);
    UIR_TRY(find_read_tensors(s, block, UIR_LOOP_NONE, &reads));
    if (reads[r.tensor]) return uir_step_refuse(s, "%s reads what it writes", name);
    UIR_TRY(check_reads(s, block, reads));
    for (uint32_t i = 0; i < count; i++) UIR_TRY(replace_in_block(&r, readers[i]));
    uir_tree_unlink(s, block);
    for (uint32_t i = 0; i < count; i++) {
        UIR_TRY(check_reads(s, readers[i], reads));
        UIR_TRY(uir_region_check_accesses(s, readers[i]));
    }
    uir_step_moved(s, UIR_LOOP_NONE);
    uir_step_say(s, "inline %s", name);
    return UIR_STATUS_OK;
}

uir_status uir_schedule_inline(uir_schedule *schedule, uint32_t block) {
    UIR_TRY(uir_step_begin(schedule));
    return uir_step_end(schedule, inline_block(schedule, block));
}

/* ---- reverse inline ---- */
static uir_status find_epilogue_read(uir_schedule *s, uint32_t id, uint32_t tensor, uir_loop_access *access,
                                     bool *found) {
    uir_loop_expression e = s->function->expressions.data[id];
    if (e.kind == UIR_LOOP_LOAD && e.load.tensor == tensor) {
        if (e.has_fill)
            return uir_step_refuse(s, "the epilogue may read %s out of bounds", UIR_SCHEDULE_TENSOR(s, tensor)->name);
        for (uint32_t d = 0; *found && d < UIR_SCHEDULE_TENSOR(s, tensor)->rank; d++)
            if (!uir_dim_equal(access->indices[d], e.load.indices[d]))
                return uir_step_refuse(s, "the epilogue reads several elements of %s",
                                       UIR_SCHEDULE_TENSOR(s, tensor)->name);
        *access = e.load;
        *found = true;
    }
    for (uint32_t i = 0; e.kind == UIR_LOOP_CALL && i < e.argument_count; i++)
        UIR_TRY(find_epilogue_read(s, e.arguments[i], tensor, access, found));
    return UIR_STATUS_OK;
}

/* The TEMP of which the block is the only reader and that has one writer, a store or finish. */
static uint32_t find_epilogue_tensor(uir_schedule *s, uint32_t block, uint32_t *out_producer) {
    for (uint32_t t = 0; t < s->function->tensors.count; t++) {
        uint32_t readers[2], writers[2];
        if (UIR_SCHEDULE_TENSOR(s, t)->role != UIR_LOOP_ROLE_TEMP) continue;
        if (uir_schedule_readers(s, t, readers, 2) != 1 || readers[0] != block) continue;
        if (uir_schedule_writers(s, t, writers, 2) != 1 || writers[0] == block) continue;
        uint32_t statement = uir_block_only_statement(s, writers[0]);
        if (statement == UIR_LOOP_NONE) continue;
        const uir_loop_statement *st = UIR_SCHEDULE_AT(s, statement);
        if (st->kind != UIR_LOOP_STATEMENT_STORE && (st->kind != UIR_LOOP_STATEMENT_FINISH || st->target_count != 1))
            continue;
        *out_producer = writers[0];
        return t;
    }
    return UIR_LOOP_NONE;
}

static uir_status check_bijection(uir_schedule *s, uint32_t block, const uir_loop_access *read, uint32_t *iters) {
    const uir_loop_statement *c = UIR_SCHEDULE_AT(s, block);
    const uir_loop_tensor *t = UIR_SCHEDULE_TENSOR(s, read->tensor);
    if (!uir_access_is_plain(s, c, read, iters) || c->iter_count != t->rank)
        return uir_step_refuse(s, "%s does not read %s at its iteration variables, one per dim", c->name, t->name);
    for (uint32_t d = 0; d < t->rank; d++)
        if (uir_dim_compare(s->function->dims, c->iters[iters[d]].extent, UIR_RELATION_EQ, t->extents[d]) != UIR_TRUE)
            return uir_step_refuse(s, "%s reads only a part of %s", c->name, t->name);
    return UIR_STATUS_OK;
}

/* Pairs of the epilogue's other accesses with all other blocks: their order where the epilogue is, by ordinal. */
static uir_status reverse_inline(uir_schedule *s, uint32_t block) {
    uir_loop_function *f = s->function;
    uint32_t statement, value, producer = UIR_LOOP_NONE, producer_statement, iters[UIR_LOOP_MAX_RANK];
    uir_loop_access read = {0};
    bool found = false, *reads;
    if (!uir_tree_reachable(s, block, UIR_LOOP_STATEMENT_BLOCK))
        return uir_step_refuse(s, "statement %u is not a block", block);
    const char *name = UIR_SCHEDULE_AT(s, block)->name;
    replacement r = {.s = s, .literal = true, .consumer = block};
    UIR_TRY(find_value(s, block, &statement, &value));
    if (!s->full.data[block]) return uir_step_refuse(s, "%s does not run over its whole iteration space", name);
    r.tensor = find_epilogue_tensor(s, block, &producer);
    if (r.tensor == UIR_LOOP_NONE)
        return uir_step_refuse(s, "%s does not read a tensor that one store writes for it only", name);
    UIR_TRY(find_epilogue_read(s, value, r.tensor, &read, &found));
    if (!found) return uir_step_refuse(s, "%s reads %s as an index", name, UIR_SCHEDULE_TENSOR(s, r.tensor)->name);
    UIR_TRY(check_bijection(s, block, &read, iters));
    uir_loop_access target = UIR_SCHEDULE_AT(s, statement)->targets[0];
    if (uir_schedule_writers(s, target.tensor, NULL, 0) != 1)
        return uir_step_refuse(s, "%s has other writers", UIR_SCHEDULE_TENSOR(s, target.tensor)->name);
    UIR_TRY(find_read_tensors(s, block, r.tensor, &reads));
    if (reads[target.tensor]) return uir_step_refuse(s, "%s reads what it writes", name);
    UIR_TRY(check_reads(s, block, reads));
    UIR_TRY(find_value(s, producer, &producer_statement, &r.value));
    uir_loop_access stored = UIR_SCHEDULE_AT(s, producer_statement)->targets[0];
    uir_substitution values = {0};
    for (uint32_t d = 0; d < UIR_SCHEDULE_TENSOR(s, r.tensor)->rank; d++)
        UIR_TRY(uir_substitution_set(s, &values, UIR_SCHEDULE_AT(s, block)->iters[iters[d]].symbol, stored.indices[d]));
    /* First the epilogue's own indices become the producer's, then the producer's value takes the load's place. */
    UIR_TRY(uir_expression_substitute(s, value, &values, &value));
    UIR_TRY(replace_loads(&r, value, &value));
    for (uint32_t d = 0; d < UIR_SCHEDULE_TENSOR(s, target.tensor)->rank; d++)
        target.indices[d] = uir_substitute(s, &values, target.indices[d]);
    uir_loop_statement *st = UIR_SCHEDULE_AT(s, producer_statement);
    st->kind = UIR_LOOP_STATEMENT_STORE;
    st->targets[0] = target;
    st->target_count = st->value_count = 1;
    st->values[0] = value;
    uint32_t *readers, count = uir_schedule_readers(s, target.tensor, NULL, 0);
    uir_tree_unlink(s, block);
    UIR_TRY(check_reads(s, producer, reads));
    UIR_TRY(uir_region_check_accesses(s, producer));
    bool *wrote;
    UIR_TRY_ALLOCATE(wrote, uir_arena_allocate_array(&s->scratch, f->tensors.count + 1, sizeof *wrote));
    UIR_TRY_ALLOCATE(readers, uir_arena_allocate_array(&s->scratch, count + 1, sizeof *readers));
    wrote[target.tensor] = true;
    uir_schedule_readers(s, target.tensor, readers, count);
    for (uint32_t i = 0; i < count; i++) UIR_TRY(check_reads(s, readers[i], wrote));
    uir_step_moved(s, UIR_LOOP_NONE);
    uir_step_say(s, "reverse inline %s", name);
    return UIR_STATUS_OK;
}

uir_status uir_schedule_reverse_inline(uir_schedule *schedule, uint32_t block) {
    UIR_TRY(uir_step_begin(schedule));
    return uir_step_end(schedule, reverse_inline(schedule, block));
}
