/* factor out: what divides every element that is summed divides the sum instead. */
#include "lower/schedule/schedule_internal.h"

#include <stdio.h>
#include <string.h>

#define EXPRESSION(s, id) (&(s)->function->expressions.data[id])
#define NONE              UIR_LOOP_NONE

typedef struct factoring {
    uir_schedule *s;
    uint32_t block, statement, sums; /* the sum of products; the tensor of its sums */
    uint32_t factor, writer;         /* the load of what is divided, and the block that stores it */
    uint32_t dividend, divisor;      /* in the writer's variables */
    bool replaces;                   /* quotients that are NaN are 0 */
    uir_substitution values;         /* of the writer's variables, in the block's */
} factoring;

static bool is_same(const uir_schedule *s, uint32_t x, uint32_t y) {
    const uir_loop_expression *a = EXPRESSION(s, x), *b = EXPRESSION(s, y);
    if (x == y) return true;
    if (a->kind != b->kind || a->dtype != b->dtype || a->argument_count != b->argument_count) return false;
    if (a->kind == UIR_LOOP_LOAD) {
        bool same = a->load.tensor == b->load.tensor && !a->has_fill && !b->has_fill;
        for (uint32_t d = 0; same && d < UIR_SCHEDULE_TENSOR(s, a->load.tensor)->rank; d++)
            same = uir_dim_equal(a->load.indices[d], b->load.indices[d]);
        return same;
    }
    if (a->kind != UIR_LOOP_CALL || a->op != b->op || a->overflows != b->overflows) return false;
    for (uint32_t i = 0; i < a->argument_count; i++)
        if (!is_same(s, a->arguments[i], b->arguments[i])) return false;
    return true;
}

static bool is_call(const uir_schedule *s, uint32_t id, uir_op op) {
    return EXPRESSION(s, id)->kind == UIR_LOOP_CALL && EXPRESSION(s, id)->op == op;
}

static uint32_t only_writer(const uir_schedule *s, uint32_t tensor, uir_loop_statement_kind kind) {
    uint32_t blocks[4], count = uir_schedule_writers(s, tensor, blocks, 4), found = NONE;
    for (uint32_t i = 0; i < count && i < 4; i++) {
        uint32_t statement = uir_block_only_statement(s, blocks[i]);
        if (statement == NONE || UIR_SCHEDULE_AT(s, statement)->kind != kind) continue;
        if (found != NONE) return NONE;
        found = blocks[i];
    }
    return count <= 4 ? found : NONE;
}

/* The divisor is the sum of the dividends, exponentials: a quotient is NaN where the sum is 0 or NaN, and there all of
 * a row are. */
static bool is_sum_of_powers(const factoring *f) {
    const uir_schedule *s = f->s;
    const uir_loop_expression *sum = EXPRESSION(s, f->divisor), *power = EXPRESSION(s, f->dividend);
    if (sum->kind != UIR_LOOP_LOAD || power->kind != UIR_LOOP_LOAD) return false;
    uint32_t update = only_writer(s, sum->load.tensor, UIR_LOOP_STATEMENT_UPDATE),
             store = only_writer(s, power->load.tensor, UIR_LOOP_STATEMENT_STORE);
    if (update == NONE || store == NONE) return false;
    const uir_loop_statement *u = UIR_SCHEDULE_AT(s, uir_block_only_statement(s, update));
    const uir_loop_monoid *m = &s->function->monoids.data[u->monoid];
    const uir_loop_expression *added = EXPRESSION(s, u->values[0]);
    return m->state_count == 1 && is_call(s, m->update[0], UIR_OP_ADD) && added->kind == UIR_LOOP_LOAD &&
           added->load.tensor == power->load.tensor &&
           is_call(s, UIR_SCHEDULE_AT(s, uir_block_only_statement(s, store))->values[0], UIR_OP_EXP);
}

/* What the writer stores: a quotient, or one of which what is NaN is replaced by 0. */
static uir_status find_quotient(factoring *f) {
    uir_schedule *s = f->s;
    const char *name = UIR_SCHEDULE_AT(s, f->writer)->name;
    uint32_t value = UIR_SCHEDULE_AT(s, uir_block_only_statement(s, f->writer))->values[0];
    if (is_call(s, value, UIR_OP_SELECT)) {
        const uir_loop_expression *e = EXPRESSION(s, value), *zero = EXPRESSION(s, e->arguments[1]);
        uint32_t condition = e->arguments[0];
        f->replaces = zero->kind == UIR_LOOP_CONSTANT && zero->real == 0 && is_call(s, condition, UIR_OP_IS_NAN) &&
                      is_same(s, EXPRESSION(s, condition)->arguments[0], e->arguments[2]);
        if (f->replaces) value = e->arguments[2];
    }
    if (!is_call(s, value, UIR_OP_DIV)) return uir_step_refuse(s, "%s does not store a quotient", name);
    f->dividend = EXPRESSION(s, value)->arguments[0];
    f->divisor = EXPRESSION(s, value)->arguments[1];
    if (f->replaces && !is_sum_of_powers(f))
        return uir_step_refuse(s, "a NaN quotient of %s does not make its row NaN", name);
    return UIR_STATUS_OK;
}

/* The divisor in the block's variables, none of which is summed over. */
static uir_status check_divisor(factoring *f, uint32_t id) {
    uir_schedule *s = f->s;
    const uir_loop_statement *b = UIR_SCHEDULE_AT(s, f->block);
    const uir_loop_expression *e = EXPRESSION(s, id);
    uint32_t root = f->block;
    while (uir_schedule_parent(s, root) != NONE) root = uir_schedule_parent(s, root);
    if (e->kind == UIR_LOOP_INDEX)
        return uir_step_refuse(s, "the divisor of %s is an index", UIR_SCHEDULE_AT(s, f->writer)->name);
    for (uint32_t d = 0; e->kind == UIR_LOOP_LOAD && d < UIR_SCHEDULE_TENSOR(s, e->load.tensor)->rank; d++) {
        uir_dim index = uir_substitute(s, &f->values, e->load.indices[d]);
        for (uint32_t i = 0; i < b->iter_count; i++)
            if (b->iters[i].reduce && uir_dim_uses(s, index, b->iters[i].symbol))
                return uir_step_refuse(s, "the divisor of %s depends on %s, a reduction axis of %s",
                                       UIR_SCHEDULE_AT(s, f->writer)->name, b->iters[i].name, b->name);
    }
    if (e->kind == UIR_LOOP_LOAD) {
        uint32_t blocks[8], count = uir_schedule_writers(s, e->load.tensor, blocks, 8);
        for (uint32_t i = 0; i < count; i++)
            if (i >= 8 || s->places.data[blocks[i]] >= s->places.data[root])
                return uir_step_refuse(s, "%s is not complete before %s", UIR_SCHEDULE_TENSOR(s, e->load.tensor)->name,
                                       b->name);
    }
    for (uint32_t i = 0; e->kind == UIR_LOOP_CALL && i < e->argument_count; i++) {
        UIR_TRY(check_divisor(f, e->arguments[i]));
        e = EXPRESSION(s, id);
    }
    return UIR_STATUS_OK;
}

/* One operand of the product is stored by a block of its own, for this sum alone. */
static uir_status find_factor(factoring *f) {
    uir_schedule *s = f->s;
    const uir_loop_statement *b = UIR_SCHEDULE_AT(s, f->block);
    const uir_loop_statement *st = f->statement == NONE ? NULL : UIR_SCHEDULE_AT(s, f->statement);
    uint32_t product = st && st->kind == UIR_LOOP_STATEMENT_UPDATE ? st->values[0] : NONE, iters[UIR_LOOP_MAX_RANK];
    bool sums = product != NONE && is_call(s, product, UIR_OP_MUL);
    const uir_loop_monoid *m = sums ? &s->function->monoids.data[st->monoid] : NULL;
    if (!sums || m->state_count != 1 || !is_call(s, m->update[0], UIR_OP_ADD))
        return uir_step_refuse(s, "%s is not a sum of products", b->name);
    if (!s->full.data[f->block]) return uir_step_refuse(s, "%s does not run over its whole iteration space", b->name);
    f->sums = st->targets[0].tensor;
    if (UIR_SCHEDULE_TENSOR(s, f->sums)->role != UIR_LOOP_ROLE_TEMP ||
        !uir_access_is_plain(s, b, &st->targets[0], iters))
        return uir_step_refuse(s, "the accumulator of %s is itself a result", b->name);
    f->writer = NONE;
    for (uint32_t k = 0; k < 2 && f->writer == NONE; k++) {
        const uir_loop_expression *load = EXPRESSION(s, EXPRESSION(s, product)->arguments[k]);
        if (load->kind != UIR_LOOP_LOAD || load->has_fill ||
            UIR_SCHEDULE_TENSOR(s, load->load.tensor)->role != UIR_LOOP_ROLE_TEMP ||
            uir_schedule_writers(s, load->load.tensor, NULL, 0) != 1 ||
            uir_schedule_readers(s, load->load.tensor, NULL, 0) != 1)
            continue;
        f->writer = only_writer(s, load->load.tensor, UIR_LOOP_STATEMENT_STORE);
        f->factor = EXPRESSION(s, product)->arguments[k];
    }
    if (f->writer == NONE) return uir_step_refuse(s, "no operand of %s is stored for it only", b->name);
    const uir_loop_statement *w = UIR_SCHEDULE_AT(s, f->writer);
    const uir_loop_access *target = &UIR_SCHEDULE_AT(s, uir_block_only_statement(s, f->writer))->targets[0];
    uint32_t rank = UIR_SCHEDULE_TENSOR(s, target->tensor)->rank;
    if (!uir_access_is_plain(s, w, target, iters) || w->iter_count != rank)
        return uir_step_refuse(s, "%s does not store %s at its iteration variables, one per dim", w->name,
                               UIR_SCHEDULE_TENSOR(s, target->tensor)->name);
    for (uint32_t d = 0; d < rank; d++)
        UIR_TRY(
            uir_substitution_set(s, &f->values, w->iters[iters[d]].symbol, EXPRESSION(s, f->factor)->load.indices[d]));
    UIR_TRY(find_quotient(f));
    return check_divisor(f, f->divisor);
}

/* ---- the change ---- */
static uir_status add(uir_schedule *s, const uir_loop_expression *e, uint32_t *out) {
    uir_loop_expression copy = *e;
    *out = s->function->expressions.count;
    return uir_vector_push(&s->function->arena, &s->function->expressions, copy);
}

static uir_status add_call(uir_schedule *s, uir_op op, uir_dtype dtype, const uint32_t *arguments, uint32_t count,
                           uint32_t *out) {
    uir_loop_expression e = {.kind = UIR_LOOP_CALL, .op = op, .dtype = dtype, .argument_count = count};
    memcpy(e.arguments, arguments, count * sizeof *arguments);
    return add(s, &e, out);
}

static uir_status add_number(uir_schedule *s, uir_dtype dtype, double value, uint32_t *out) {
    uir_loop_expression e = {.kind = UIR_LOOP_CONSTANT, .dtype = dtype, .real = value, .integer = (int64_t)value};
    return add(s, &e, out);
}

/* Where nothing is summed, nothing is divided. */
static uir_status guard_empty(factoring *f, uint32_t *divisor) {
    uir_schedule *s = f->s;
    uir_dims *dims = s->function->dims;
    const uir_loop_statement b = *UIR_SCHEDULE_AT(s, f->block);
    uir_dtype dtype = EXPRESSION(s, *divisor)->dtype;
    uir_dim one = uir_dim_const(dims, 1);
    for (uint32_t i = 0; i < b.iter_count; i++) {
        uint32_t pair[2], choice[3] = {0, *divisor, 0};
        if (!b.iters[i].reduce || uir_dim_compare(dims, b.iters[i].extent, UIR_RELATION_GE, one) == UIR_TRUE) continue;
        uir_loop_expression extent = {.kind = UIR_LOOP_INDEX, .dtype = UIR_DTYPE_I64, .index = b.iters[i].extent};
        UIR_TRY(add(s, &extent, &pair[0]));
        UIR_TRY(add_number(s, UIR_DTYPE_I64, 1, &pair[1]));
        UIR_TRY(add_call(s, UIR_OP_GE, UIR_DTYPE_BOOL, pair, 2, &choice[0]));
        UIR_TRY(add_number(s, dtype, 1, &choice[2]));
        UIR_TRY(add_call(s, UIR_OP_SELECT, dtype, choice, 3, divisor));
    }
    return UIR_STATUS_OK;
}

/* The sums, loaded, divided by what divided their elements. */
static uir_status divide(factoring *f, uint32_t sums, uint32_t divisor, uint32_t *out) {
    uir_schedule *s = f->s;
    uir_dtype dtype = EXPRESSION(s, sums)->dtype;
    uint32_t zero, quotient, test;
    UIR_TRY(guard_empty(f, &divisor));
    UIR_TRY(add_call(s, UIR_OP_DIV, dtype, (uint32_t[]){sums, divisor}, 2, &quotient));
    *out = quotient;
    if (!f->replaces) return UIR_STATUS_OK;
    UIR_TRY(add_number(s, dtype, 0, &zero));
    UIR_TRY(add_call(s, UIR_OP_DIV, dtype, (uint32_t[]){zero, divisor}, 2, &test));
    UIR_TRY(add_call(s, UIR_OP_IS_NAN, UIR_DTYPE_BOOL, &test, 1, &test));
    return add_call(s, UIR_OP_SELECT, dtype, (uint32_t[]){test, zero, quotient}, 3, out);
}

/* The block that stores the quotients, after the sums. */
static uir_status add_block(factoring *f, uint32_t tensor, uint32_t *out_block) {
    uir_schedule *s = f->s;
    uir_dims *dims = s->function->dims;
    uir_loop_statement block = {.kind = UIR_LOOP_STATEMENT_BLOCK, .first_child = NONE, .next = NONE}, store = block;
    const uir_loop_statement b = *UIR_SCHEDULE_AT(s, f->block);
    const uir_loop_access target = UIR_SCHEDULE_AT(s, f->statement)->targets[0];
    uint32_t iters[UIR_LOOP_MAX_RANK], divisor, sums, top, root = f->block;
    uint32_t rank = UIR_SCHEDULE_TENSOR(s, tensor)->rank;
    uir_dim low[UIR_LOOP_MAX_ITERS], extent[UIR_LOOP_MAX_ITERS];
    uir_substitution own = {0};
    if (!uir_access_is_plain(s, &b, &target, iters)) return UIR_STATUS_INTERNAL;
    UIR_TRY(uir_tree_block_name(s, UIR_SCHEDULE_TENSOR(s, tensor)->name, &block.name));
    store.kind = UIR_LOOP_STATEMENT_STORE;
    store.target_count = store.value_count = 1;
    store.targets[0].tensor = tensor;
    uir_loop_expression load = {.kind = UIR_LOOP_LOAD, .dtype = UIR_SCHEDULE_TENSOR(s, tensor)->dtype};
    load.load.tensor = f->sums;
    for (uint32_t d = 0; d < rank; d++) {
        const uir_loop_iter *of = &b.iters[iters[d]];
        uir_loop_iter iter = {.name = of->name, .axis = of->axis, .extent = of->extent};
        uir_symbol_facts facts = {0, UIR_DIM_UNBOUNDED, 1, of->extent};
        UIR_TRY(uir_dims_add_symbol(dims, of->name, strlen(of->name), facts, &iter.symbol));
        iter.value = low[d] = uir_dim_const(dims, 0);
        extent[d] = of->extent;
        block.iters[block.iter_count++] = iter;
        store.targets[0].indices[d] = load.load.indices[d] = uir_dim_symbol(dims, iter.symbol);
        UIR_TRY(uir_substitution_set(s, &own, of->symbol, load.load.indices[d]));
    }
    UIR_TRY(uir_expression_substitute(s, f->divisor, &f->values, &divisor));
    UIR_TRY(uir_expression_substitute(s, divisor, &own, &divisor));
    UIR_TRY(add(s, &load, &sums));
    UIR_TRY(divide(f, sums, divisor, &store.values[0]));
    UIR_TRY(uir_tree_add(s, &store, &block.first_child));
    UIR_TRY(uir_tree_add(s, &block, out_block));
    while (uir_schedule_parent(s, root) != NONE) root = uir_schedule_parent(s, root);
    UIR_TRY(uir_move_build_nest(s, *out_block, root, low, extent, &top));
    s->full.data[*out_block] = true;
    uir_tree_insert_after(s, root, top);
    return UIR_STATUS_OK;
}

static uir_status factor_out(factoring *f, uint32_t *out_tensor, uint32_t *out_block) {
    uir_schedule *s = f->s;
    char base[160];
    if (!uir_tree_reachable(s, f->block, UIR_LOOP_STATEMENT_BLOCK))
        return uir_step_refuse(s, "statement %u is not a block", f->block);
    f->statement = uir_block_only_statement(s, f->block);
    UIR_TRY(find_factor(f));
    uint32_t count = uir_schedule_readers(s, f->sums, NULL, 0), *readers;
    UIR_TRY_ALLOCATE(readers, uir_arena_allocate_array(&s->scratch, count + 1, sizeof *readers));
    uir_schedule_readers(s, f->sums, readers, count);
    uir_loop_tensor t = *UIR_SCHEDULE_TENSOR(s, f->sums);
    snprintf(base, sizeof base, "%.120s_quotient", t.name);
    UIR_TRY(uir_tree_tensor_name(s, base, &t.name));
    *out_tensor = s->function->tensors.count;
    UIR_TRY(uir_vector_push(&s->function->arena, &s->function->tensors, t));
    for (uint32_t i = 0; i < count; i++)
        if (readers[i] != f->block) UIR_TRY(uir_block_redirect(s, readers[i], f->sums, *out_tensor));
    UIR_TRY(add_block(f, *out_tensor, out_block));
    UIR_SCHEDULE_AT(s, uir_block_only_statement(s, f->writer))->values[0] = f->dividend;
    UIR_TRY(uir_tree_index(s));
    UIR_TRY(uir_region_check_accesses(s, *out_block));
    uir_step_moved(s, NONE);
    uir_step_say(s, "factor out of %s: %s", UIR_SCHEDULE_AT(s, f->block)->name, t.name);
    return UIR_STATUS_OK;
}

uir_status uir_schedule_factor_out(uir_schedule *schedule, uint32_t block, uint32_t *out_tensor, uint32_t *out_block) {
    factoring f = {.s = schedule, .block = block};
    uint32_t tensor = NONE, made = NONE;
    UIR_TRY(uir_step_begin(schedule));
    UIR_TRY(uir_step_end(schedule, factor_out(&f, &tensor, &made)));
    uir_step_give(schedule, out_tensor, tensor);
    uir_step_give(schedule, out_block, made);
    return UIR_STATUS_OK;
}
