/* The loop AST's interpreter: every block instance in order, every element with a mark that says whether it was
 * written.
 *
 * It defines the order of sums that a kernel keeps to: a block used as `mma` multiplies and adds in one rounding, in
 * the order of its loops; a row, the innermost vectorised loop of those around a block that reduces along it by a
 * monoid of one state, is taken in UIR_REDUCE_LANES lanes, which a tree joins, and then joined to the state as it was.
 */
#include "base/dims/demand.h"
#include "ir/graph/interpret/interpret.h"
#include "ir/loop/loop.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* An element of any dtype, stored as the dtype's bytes (packed dtypes: element 0 of a byte). */
typedef union cell {
    uint64_t bits;
    uint8_t bytes[16];
} cell;

typedef struct storage {
    uint8_t *data;
    uint8_t *written; /* NULL: an input, all written */
    int64_t extents[UIR_LOOP_MAX_RANK];
    uint64_t count;
} storage;

typedef struct machine {
    const uir_loop_function *function;
    uir_diagnostics *diagnostics;
    uir_arena arena;
    storage *tensors;
    int64_t *values; /* per symbol */
    bool *bound;
    bool *skipped; /* per symbol: read from data and outside; whatever uses it is outside */
    bool any_skipped;
    uint32_t symbol_count;
    const uir_loop_statement *block;
    const cell *parameters; /* of the monoid that is being computed */
    const volatile bool *cancel;
} machine;

static uir_status fail(machine *m, const char *format, ...) UIR_PRINTF(2, 3);
static uir_status fail(machine *m, const char *format, ...) {
    char message[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    uir_location location = {.file = m->function->file, .line = m->block ? m->block->line : 0};
    return uir_error(m->diagnostics, UIR_STATUS_BAD_DATA, &location, "@%s: %s%s%s", m->function->name,
                     m->block ? m->block->name : "", m->block ? ": " : "", message);
}

static uir_status evaluate(machine *m, uir_dim dim, int64_t *out) {
    uir_dim_result result = uir_dim_evaluate(m->function->dims, dim, m->values, m->bound, m->symbol_count, out);
    if (result == UIR_DIM_EVALUATED) return UIR_STATUS_OK;
    return fail(m, result == UIR_DIM_UNBOUND    ? "a variable has no value here"
                   : result == UIR_DIM_OVERFLOW ? "an index overflows"
                                                : "a division by a value that is not positive");
}

typedef struct skip_search {
    const machine *machine;
    bool found;
} skip_search;

static void find_skipped(void *user, uir_symbol symbol) {
    skip_search *s = user;
    s->found |= s->machine->skipped[symbol.id];
}

/* Where an access is; *out_outside: beyond the extents, or at a skipped index. */
static uir_status find(machine *m, const uir_loop_access *access, uint64_t *out_index, bool *out_skipped,
                       uint32_t *out_outside, int64_t *out_at) {
    const uir_loop_tensor *t = &m->function->tensors.data[access->tensor];
    const storage *s = &m->tensors[access->tensor];
    skip_search search = {m, false};
    *out_index = 0;
    *out_outside = UIR_LOOP_NONE;
    for (uint32_t d = 0; d < t->rank; d++) {
        int64_t index;
        if (m->any_skipped) uir_dim_visit_symbols(m->function->dims, access->indices[d], find_skipped, &search);
        UIR_TRY(evaluate(m, access->indices[d], &index));
        if ((index < 0 || index >= s->extents[d]) && *out_outside == UIR_LOOP_NONE) {
            *out_outside = d;
            *out_at = index;
        }
        if (*out_outside == UIR_LOOP_NONE) *out_index = *out_index * (uint64_t)s->extents[d] + (uint64_t)index;
    }
    *out_skipped = search.found;
    return UIR_STATUS_OK;
}

/* *out_inside false: the read has a fill, or a store is dropped. */
static uir_status locate(machine *m, const uir_loop_access *access, bool may_leave, bool store, uint64_t *out_index,
                         bool *out_inside) {
    const uir_loop_tensor *t = &m->function->tensors.data[access->tensor];
    uint32_t outside;
    bool skipped;
    int64_t at = 0;
    UIR_TRY(find(m, access, out_index, &skipped, &outside, &at));
    *out_inside = !skipped && outside == UIR_LOOP_NONE;
    if (*out_inside || may_leave || (store && skipped)) return UIR_STATUS_OK;
    if (skipped) return fail(m, "'%s' is read at a skipped index and has no fill", t->name);
    return fail(m, "index %lld of '%s', dim %u, is outside 0..%lld", (long long)at, t->name, outside,
                (long long)m->tensors[access->tensor].extents[outside] - 1);
}

static void copy_element(uir_dtype dtype, void *to, uint64_t to_index, const void *from, uint64_t from_index) {
    size_t size = uir_dtype_bits(dtype) / 8;
    if (size) {
        memcpy((uint8_t *)to + to_index * size, (const uint8_t *)from + from_index * size, size);
    } else {
        uir_dtype_store_integer(dtype, to, to_index, uir_dtype_load_integer(dtype, from, from_index), false,
                                UIR_ROUND_NEAREST_EVEN);
    }
}

static void put_number(uir_dtype dtype, double real, int64_t integer, cell *out) {
    if (uir_dtype_is_float(dtype))
        uir_dtype_store_double(dtype, out->bytes, 0, real, UIR_ROUND_NEAREST_EVEN);
    else
        uir_dtype_store_integer(dtype, out->bytes, 0, integer, false, UIR_ROUND_NEAREST_EVEN);
}

static uir_status load(machine *m, const uir_loop_access *access, const double *fill, cell *out) {
    uint64_t index;
    bool inside;
    const uir_loop_tensor *t = &m->function->tensors.data[access->tensor];
    UIR_TRY(locate(m, access, fill != NULL, false, &index, &inside));
    if (!inside) {
        put_number(t->dtype, *fill, (int64_t)*fill, out);
        return UIR_STATUS_OK;
    }
    if (m->tensors[access->tensor].written && !m->tensors[access->tensor].written[index]) {
        return fail(m, "element %llu of '%s' is read before it is written", (unsigned long long)index, t->name);
    }
    copy_element(t->dtype, out->bytes, 0, m->tensors[access->tensor].data, index);
    return UIR_STATUS_OK;
}

static uir_status store(machine *m, const uir_loop_access *access, const cell *value) {
    uint64_t index;
    storage *s = &m->tensors[access->tensor];
    bool inside;
    UIR_TRY(locate(m, access, false, true, &index, &inside));
    if (!inside) return UIR_STATUS_OK;
    if (!s->written)
        return fail(m, "'%s' is an input: nothing may be stored to it", m->function->tensors.data[access->tensor].name);
    copy_element(m->function->tensors.data[access->tensor].dtype, s->data, index, value->bytes, 0);
    s->written[index] = 1;
    return UIR_STATUS_OK;
}

/* ---- expressions ---- */
static uir_status compute(machine *m, uint32_t id, cell *out);

static uir_status call(machine *m, const uir_loop_expression *e, cell *out) {
    cell arguments[3] = {{0}};
    const void *operands[2] = {arguments[0].bytes, arguments[1].bytes};
    for (uint32_t i = 0; i < e->argument_count; i++) UIR_TRY(compute(m, e->arguments[i], &arguments[i]));
    uir_dtype dtype = m->function->expressions.data[e->arguments[0]].dtype;
    if (e->op == UIR_OP_SELECT) {
        *out = arguments[arguments[0].bytes[0] ? 1 : 2];
        return UIR_STATUS_OK;
    }
    if (e->op == UIR_OP_CAST)
        return uir_dtype_convert(dtype, arguments[0].bytes, e->dtype, out->bytes, 1,
                                 e->overflows ? UIR_ROUND_NEAREST_EVEN : UIR_ROUND_SATURATE);
    if (e->op == UIR_OP_BIT_CAST) {
        memcpy(out->bytes, arguments[0].bytes, uir_dtype_bits(dtype) / 8);
        return UIR_STATUS_OK;
    }
    if (uir_elementwise_apply(e->op, dtype, operands, out->bytes, 1)) return UIR_STATUS_OK;
    return fail(m, "%s is not defined for %s", uir_op_get_row(e->op)->name, uir_dtype_name(dtype));
}

static uir_status compute(machine *m, uint32_t id, cell *out) {
    const uir_loop_expression *e = &m->function->expressions.data[id];
    memset(out, 0, sizeof *out);
    switch (e->kind) {
    case UIR_LOOP_CONSTANT:
        put_number(e->dtype, e->real, e->integer, out);
        return UIR_STATUS_OK;
    case UIR_LOOP_INDEX: {
        int64_t value;
        UIR_TRY(evaluate(m, e->index, &value));
        memcpy(out->bytes, &value, sizeof value);
        return UIR_STATUS_OK;
    }
    case UIR_LOOP_LOAD:
        return load(m, &e->load, e->has_fill ? &e->fill : NULL, out);
    case UIR_LOOP_PARAMETER:
        *out = m->parameters[e->integer];
        return UIR_STATUS_OK;
    case UIR_LOOP_CALL:
        return call(m, e, out);
    }
    return UIR_STATUS_OK;
}

/* ---- statements ---- */
/* The uses whose products are added with one rounding. */
static const uint32_t multiplies = 1u << UIR_LOOP_USE_MMA | 1u << UIR_LOOP_USE_FMA;

/* A product of floats that a block used as mma or fma adds to its sums: one rounding, of `sum` with it. */
static uir_status multiply_add(machine *m, const uir_loop_expression *product, cell *sum) {
    cell a, b;
    UIR_TRY(compute(m, product->arguments[0], &a));
    UIR_TRY(compute(m, product->arguments[1], &b));
    double x = uir_dtype_load_double(product->dtype, a.bytes, 0), y = uir_dtype_load_double(product->dtype, b.bytes, 0),
           old = uir_dtype_load_double(product->dtype, sum->bytes, 0);
    double result = product->dtype == UIR_DTYPE_F64 ? fma(x, y, old) : (double)fmaf((float)x, (float)y, (float)old);
    put_number(product->dtype, result, 0, sum);
    return UIR_STATUS_OK;
}

/* The product, where the statement is the sum of one in a block used as mma or fma; NULL otherwise. */
static const uir_loop_expression *find_product(const machine *m, const uir_loop_statement *s) {
    if (!(m->block->uses & multiplies) || s->kind != UIR_LOOP_STATEMENT_UPDATE || s->value_count != 1) return NULL;
    const uir_loop_expression *e = &m->function->expressions.data[s->values[0]];
    bool is_product = e->kind == UIR_LOOP_CALL && e->op == UIR_OP_MUL && uir_dtype_is_float(e->dtype);
    return is_product && m->function->tensors.data[s->targets[0].tensor].dtype == e->dtype ? e : NULL;
}

/* Which of a monoid's expressions a statement computes, and whether it reads the state from its targets first. */
static uir_status run_monoid(machine *m, const uir_loop_statement *s) {
    const uir_loop_monoid *monoid = &m->function->monoids.data[s->monoid];
    cell parameters[2 * UIR_LOOP_MAX_STATE], results[UIR_LOOP_MAX_STATE];
    bool finish = s->kind == UIR_LOOP_STATEMENT_FINISH, init = s->kind == UIR_LOOP_STATEMENT_INIT;
    const uint32_t *expressions = init                                   ? monoid->identity
                                  : finish                               ? monoid->finish
                                  : s->kind == UIR_LOOP_STATEMENT_UPDATE ? monoid->update
                                                                         : monoid->combine;
    uint32_t state = init || finish ? 0 : monoid->state_count;
    /* A skipped target is no place: nothing is read there, and what is computed is dropped. */
    static const double nothing = 0;
    for (uint32_t i = 0; i < state; i++)
        UIR_TRY(load(m, &s->targets[i], m->any_skipped ? &nothing : NULL, &parameters[i]));
    const uir_loop_expression *product = find_product(m, s);
    if (product) {
        UIR_TRY(multiply_add(m, product, &parameters[0]));
        return store(m, &s->targets[0], &parameters[0]);
    }
    for (uint32_t i = 0; i < s->value_count; i++) UIR_TRY(compute(m, s->values[i], &parameters[state + i]));
    m->parameters = parameters;
    for (uint32_t i = 0; i < s->target_count; i++) UIR_TRY(compute(m, expressions[i], &results[i]));
    m->parameters = NULL;
    for (uint32_t i = 0; i < s->target_count; i++) UIR_TRY(store(m, &s->targets[i], &results[i]));
    return UIR_STATUS_OK;
}

static uir_status holds(machine *m, const uir_loop_statement *s, bool *out) {
    *out = true;
    for (uint32_t i = 0; i < s->condition_count && *out; i++) {
        int64_t left, right;
        UIR_TRY(evaluate(m, s->conditions[i].left, &left));
        UIR_TRY(evaluate(m, s->conditions[i].right, &right));
        *out = uir_relation_holds(s->conditions[i].relation, left, right);
    }
    return UIR_STATUS_OK;
}

static uir_status read_iter(machine *m, const uir_loop_iter *iter) {
    cell element = {0};
    const uir_loop_tensor *t = &m->function->tensors.data[iter->from->tensor];
    int64_t extent;
    UIR_TRY(load(m, iter->from, NULL, &element));
    UIR_TRY(evaluate(m, iter->extent, &extent));
    int64_t value = uir_dtype_load_integer(t->dtype, element.bytes, 0);
    bool inside = value >= 0 && value < extent, skipped = extent < 1 || (!inside && iter->mode == UIR_INDEX_SKIP);
    if (skipped) {
        value = 0;
    } else if (!inside && iter->mode == UIR_INDEX_WRAP) {
        value %= extent;
        if (value < 0) value += extent;
    } else if (!inside) {
        value = value < 0 ? 0 : extent - 1;
    }
    m->values[iter->symbol.id] = value;
    m->bound[iter->symbol.id] = true;
    m->skipped[iter->symbol.id] = skipped;
    m->any_skipped |= skipped;
    return UIR_STATUS_OK;
}

/* Binds a block's iteration variables; leave_block unbinds them. */
static uir_status enter_block(machine *m, const uir_loop_statement *s) {
    int64_t values[UIR_LOOP_MAX_ITERS], extent;
    m->block = s;
    for (uint32_t i = 0; i < s->iter_count; i++) {
        if (s->iters[i].data) continue;
        UIR_TRY(evaluate(m, s->iters[i].value, &values[i]));
        UIR_TRY(evaluate(m, s->iters[i].extent, &extent));
        if (values[i] < 0 || values[i] >= extent)
            return fail(m, "%s = %lld is outside 0..%lld", s->iters[i].name, (long long)values[i],
                        (long long)extent - 1);
    }
    for (uint32_t i = 0; i < s->iter_count; i++) {
        if (s->iters[i].data) continue;
        m->values[s->iters[i].symbol.id] = values[i];
        m->bound[s->iters[i].symbol.id] = true;
    }
    for (uint32_t i = 0; i < s->iter_count; i++)
        if (s->iters[i].data) UIR_TRY(read_iter(m, &s->iters[i]));
    return UIR_STATUS_OK;
}

static void leave_block(machine *m, const uir_loop_statement *s) {
    for (uint32_t i = 0; i < s->iter_count; i++) {
        m->bound[s->iters[i].symbol.id] = false;
        m->skipped[s->iters[i].symbol.id] = false;
    }
    m->any_skipped = false;
    m->block = NULL;
}

static uir_status run_block(machine *m, const uir_loop_statement *s) {
    UIR_TRY(enter_block(m, s));
    for (uint32_t id = s->first_child; id != UIR_LOOP_NONE; id = m->function->statements.data[id].next) {
        const uir_loop_statement *child = &m->function->statements.data[id];
        cell value;
        if (child->kind == UIR_LOOP_STATEMENT_STORE) {
            UIR_TRY(compute(m, child->values[0], &value));
            UIR_TRY(store(m, &child->targets[0], &value));
        } else {
            UIR_TRY(run_monoid(m, child));
        }
    }
    leave_block(m, s);
    return UIR_STATUS_OK;
}

/* ---- rows ---- */
static bool turns_once(const machine *m, const uir_loop_statement *loop) {
    int64_t turns;
    return uir_dim_is_const(m->function->dims, loop->extent, &turns) && turns == 1;
}

/* Does the place of an access move with the loop? */
static bool moves(const machine *m, const uir_loop_statement *block, const uir_loop_access *access, uir_symbol loop) {
    const uir_loop_function *f = m->function;
    for (uint32_t d = 0; d < f->tensors.data[access->tensor].rank; d++)
        for (uint32_t i = 0; i < block->iter_count; i++)
            if (!block->iters[i].data && uir_dim_mentions(f->dims, access->indices[d], block->iters[i].symbol) &&
                uir_dim_mentions(f->dims, block->iters[i].value, loop))
                return true;
    return false;
}

/* The block that takes a row along this loop; NULL when it is no row: see the head of the file. */
static const uir_loop_statement *find_row(const machine *m, const uir_loop_statement *loop) {
    const uir_loop_function *f = m->function;
    if (loop->loop_kind != UIR_LOOP_VECTORISED || turns_once(m, loop)) return NULL;
    const uir_loop_statement *s = loop;
    while (s->kind == UIR_LOOP_STATEMENT_FOR &&
           (s == loop || (s->loop_kind == UIR_LOOP_VECTORISED && turns_once(m, s)))) {
        if (s->first_child == UIR_LOOP_NONE) return NULL;
        s = &f->statements.data[s->first_child];
        if (s->next != UIR_LOOP_NONE) return NULL;
    }
    if (s->kind != UIR_LOOP_STATEMENT_BLOCK || s->uses & multiplies) return NULL;
    for (uint32_t i = 0; i < s->iter_count; i++)
        if (s->iters[i].data) return NULL;
    const uir_loop_statement *step = &f->statements.data[s->first_child];
    if (step->next != UIR_LOOP_NONE ||
        (step->kind != UIR_LOOP_STATEMENT_UPDATE && step->kind != UIR_LOOP_STATEMENT_COMBINE))
        return NULL;
    const uir_loop_monoid *monoid = &f->monoids.data[step->monoid];
    if (monoid->state_count != 1 || monoid->element_count != 1 || step->value_count != 1) return NULL;
    return moves(m, s, &step->targets[0], loop->symbol) ? NULL : s;
}

/* state = op(state, value) by a statement's monoid. */
static uir_status step_state(machine *m, const uir_loop_statement *s, cell *state, const cell *value) {
    const uir_loop_monoid *monoid = &m->function->monoids.data[s->monoid];
    cell parameters[2] = {*state, *value};
    m->parameters = parameters;
    uir_status status =
        compute(m, s->kind == UIR_LOOP_STATEMENT_UPDATE ? monoid->update[0] : monoid->combine[0], state);
    m->parameters = NULL;
    return status;
}

/* Binds the loop at a turn and the loops of one turn inside it; whether the block's conditions hold there. */
static uir_status turn_row(machine *m, const uir_loop_statement *loop, const uir_loop_statement *block, int64_t at,
                           bool *out_holds) {
    const uir_loop_statement *statements = m->function->statements.data;
    m->values[loop->symbol.id] = at;
    m->bound[loop->symbol.id] = true;
    for (const uir_loop_statement *s = &statements[loop->first_child]; s != block; s = &statements[s->first_child]) {
        UIR_TRY(evaluate(m, s->min, &m->values[s->symbol.id]));
        m->bound[s->symbol.id] = true;
    }
    return holds(m, block, out_holds);
}

static uir_status run_row(machine *m, const uir_loop_statement *loop, const uir_loop_statement *block, int64_t min,
                          int64_t extent) {
    const uir_loop_statement *s = &m->function->statements.data[block->first_child];
    cell lanes[UIR_REDUCE_LANES], value;
    int64_t last = -1;
    bool runs;
    for (uint32_t l = 0; l < UIR_REDUCE_LANES; l++)
        UIR_TRY(compute(m, m->function->monoids.data[s->monoid].identity[0], &lanes[l]));
    for (int64_t i = 0; i < extent; i++) {
        if (m->cancel && __atomic_load_n(m->cancel, __ATOMIC_RELAXED)) return UIR_STATUS_CANCELLED;
        UIR_TRY(turn_row(m, loop, block, min + i, &runs));
        if (!runs) continue;
        UIR_TRY(enter_block(m, block));
        UIR_TRY(compute(m, s->values[0], &value));
        UIR_TRY(step_state(m, s, &lanes[i % UIR_REDUCE_LANES], &value));
        leave_block(m, block);
        last = i;
    }
    for (uint32_t half = UIR_REDUCE_LANES / 2; half > 0; half /= 2)
        for (uint32_t l = 0; l < half; l++) UIR_TRY(step_state(m, s, &lanes[l], &lanes[l + half]));
    if (last >= 0) { /* the state's place is that of any turn */
        UIR_TRY(turn_row(m, loop, block, min + last, &runs));
        UIR_TRY(enter_block(m, block));
        UIR_TRY(load(m, &s->targets[0], NULL, &value));
        UIR_TRY(step_state(m, s, &value, &lanes[0]));
        UIR_TRY(store(m, &s->targets[0], &value));
        leave_block(m, block);
    }
    m->bound[loop->symbol.id] = false;
    return UIR_STATUS_OK;
}

static uir_status run_list(machine *m, uint32_t id);

static uir_status run_statement(machine *m, const uir_loop_statement *s) {
    bool runs;
    if (m->cancel && __atomic_load_n(m->cancel, __ATOMIC_RELAXED)) return UIR_STATUS_CANCELLED;
    UIR_TRY(holds(m, s, &runs));
    if (!runs) return UIR_STATUS_OK;
    if (s->kind == UIR_LOOP_STATEMENT_BLOCK) return run_block(m, s);
    if (s->kind == UIR_LOOP_STATEMENT_IF) return run_list(m, s->first_child);
    int64_t min, extent;
    UIR_TRY(evaluate(m, s->min, &min));
    UIR_TRY(evaluate(m, s->extent, &extent));
    const uir_loop_statement *row = find_row(m, s);
    if (row) return run_row(m, s, row, min, extent);
    for (int64_t i = 0; i < extent; i++) {
        m->values[s->symbol.id] = min + i;
        m->bound[s->symbol.id] = true;
        UIR_TRY(run_list(m, s->first_child));
    }
    m->bound[s->symbol.id] = false;
    return UIR_STATUS_OK;
}

static uir_status run_list(machine *m, uint32_t id) {
    for (; id != UIR_LOOP_NONE; id = m->function->statements.data[id].next)
        UIR_TRY(run_statement(m, &m->function->statements.data[id]));
    return UIR_STATUS_OK;
}

static uir_status make_room(machine *m) {
    m->symbol_count = uir_dims_symbol_count(m->function->dims);
    UIR_TRY_ALLOCATE(m->values, uir_arena_allocate_array(&m->arena, m->symbol_count + 1, sizeof *m->values));
    UIR_TRY_ALLOCATE(m->bound, uir_arena_allocate_array(&m->arena, m->symbol_count + 1, sizeof *m->bound));
    UIR_TRY_ALLOCATE(m->skipped, uir_arena_allocate_array(&m->arena, m->symbol_count + 1, sizeof *m->skipped));
    return UIR_STATUS_OK;
}

static uir_status set_size(machine *m, const uir_loop_size *size, int64_t value) {
    uir_symbol_facts facts = uir_dims_symbol_facts(m->function->dims, size->symbol);
    if (!uir_facts_hold(facts, value)) return fail(m, "%s = %lld breaks its declaration", size->name, (long long)value);
    m->values[size->symbol.id] = value;
    m->bound[size->symbol.id] = true;
    return UIR_STATUS_OK;
}

static uir_status bind(machine *m, const int64_t *sizes, const int64_t *tiles, void *const *tensors) {
    const uir_loop_function *f = m->function;
    uint32_t argument = 0;
    UIR_TRY(make_room(m));
    UIR_TRY_ALLOCATE(m->tensors, uir_arena_allocate_array(&m->arena, f->tensors.count + 1, sizeof *m->tensors));
    for (uint32_t i = 0; i < f->sizes.count; i++) UIR_TRY(set_size(m, &f->sizes.data[i], sizes[i]));
    for (uint32_t i = 0; i < f->tiles.count; i++) UIR_TRY(set_size(m, &f->tiles.data[i], tiles[i]));
    for (uint32_t i = 0; i < f->tensors.count; i++) {
        const uir_loop_tensor *t = &f->tensors.data[i];
        storage *s = &m->tensors[i];
        size_t bytes;
        for (uint32_t d = 0; d < t->rank; d++) UIR_TRY(evaluate(m, t->extents[d], &s->extents[d]));
        if (!uir_shape_element_count(s->extents, t->rank, &s->count) ||
            !uir_dtype_storage_size(t->dtype, s->count, &bytes))
            return fail(m, "'%s' is too large", t->name);
        if (t->role != UIR_LOOP_ROLE_IN) UIR_TRY_ALLOCATE(s->written, uir_arena_allocate(&m->arena, s->count + 1));
        if (t->role != UIR_LOOP_ROLE_TEMP)
            s->data = tensors[argument++];
        else
            UIR_TRY_ALLOCATE(s->data, uir_arena_allocate(&m->arena, bytes + 16));
    }
    return UIR_STATUS_OK;
}

static uir_status run(machine *m, const int64_t *sizes, const int64_t *tiles, void *const *tensors) {
    UIR_TRY(bind(m, sizes, tiles, tensors));
    UIR_TRY(run_list(m, m->function->first));
    for (uint32_t i = 0; i < m->function->tensors.count; i++) {
        if (m->function->tensors.data[i].role != UIR_LOOP_ROLE_OUT) continue;
        for (uint64_t e = 0; e < m->tensors[i].count; e++) {
            if (!m->tensors[i].written[e])
                return fail(m, "element %llu of the output '%s' was never written", (unsigned long long)e,
                            m->function->tensors.data[i].name);
        }
    }
    return UIR_STATUS_OK;
}

/* ---- the tiling function ---- */
static uir_status condition_holds(machine *m, const uir_condition *c, bool *holds) {
    int64_t left, right;
    UIR_TRY(evaluate(m, c->left, &left));
    UIR_TRY(evaluate(m, c->right, &right));
    *holds = *holds && uir_relation_holds(c->relation, left, right);
    return UIR_STATUS_OK;
}

/* One candidate (NULL: a function without tiles): does it fit, and what does it cost. Tiles are bound by it. */
static uir_status try_candidate(machine *m, const uir_icandidate *c, bool *out_fits, int64_t *out_cost) {
    const uir_loop_function *f = m->function;
    *out_fits = true;
    *out_cost = 0;
    for (uint32_t i = 0; i < f->tiles.count; i++) m->bound[f->tiles.data[i].symbol.id] = false;
    for (uint32_t i = 0; i < f->tiles.count; i++) {
        int64_t value;
        UIR_TRY(evaluate(m, c->tiles[i], &value));
        uir_symbol_facts facts = uir_dims_symbol_facts(f->dims, f->tiles.data[i].symbol);
        *out_fits &= uir_facts_hold(facts, value);
        m->values[f->tiles.data[i].symbol.id] = value;
    }
    if (!*out_fits) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < f->tiles.count; i++) m->bound[f->tiles.data[i].symbol.id] = true;
    for (uint32_t i = 0; c && i < c->guard.count && *out_fits; i++)
        UIR_TRY(condition_holds(m, &c->guard.atoms[i].condition, out_fits));
    for (uint32_t i = 0; i < f->requires_.count && *out_fits; i++)
        UIR_TRY(condition_holds(m, &f->requires_.data[i], out_fits));
    if (!*out_fits || !c) return UIR_STATUS_OK;
    int64_t cost = 0, units = 1;
    if (c->cost.id) UIR_TRY(evaluate(m, c->cost, &cost));
    if (c->units.id) UIR_TRY(evaluate(m, c->units, &units));
    *out_cost = uir_shared_cost(cost, units, 1);
    return UIR_STATUS_OK;
}

static uir_status choose(machine *m, const int64_t *sizes, int64_t *out_tiles) {
    const uir_loop_function *f = m->function;
    int64_t best = 0, cost;
    bool found = false, fits;
    UIR_TRY(make_room(m));
    for (uint32_t i = 0; i < f->sizes.count; i++) UIR_TRY(set_size(m, &f->sizes.data[i], sizes[i]));
    for (uint32_t k = 0; k < f->candidates.count || (k == 0 && !f->tiles.count); k++) {
        UIR_TRY(try_candidate(m, f->candidates.count ? &f->candidates.data[k] : NULL, &fits, &cost));
        if (!fits || (found && cost >= best)) continue;
        for (uint32_t i = 0; i < f->tiles.count; i++) out_tiles[i] = m->values[f->tiles.data[i].symbol.id];
        found = true;
        best = cost;
    }
    if (found) return UIR_STATUS_OK;
    uir_location location = {.file = f->file};
    return uir_error(m->diagnostics, UIR_STATUS_NOT_FOUND, &location, "@%s: no candidate fits these sizes", f->name);
}

uir_status uir_loop_choose_tiles(const uir_loop_function *function, const int64_t *sizes, int64_t *out_tiles,
                                 uir_diagnostics *diagnostics) {
    machine m = {.function = function, .diagnostics = diagnostics};
    uir_arena_init(&m.arena, &function->allocator);
    uir_status status = choose(&m, sizes, out_tiles);
    uir_arena_deinit(&m.arena);
    return status;
}

uir_status uir_loop_interpret_tiled(const uir_loop_function *function, const int64_t *sizes, const int64_t *tiles,
                                    void *const *tensors, const volatile bool *cancel, uir_diagnostics *diagnostics) {
    machine m = {.function = function, .diagnostics = diagnostics, .cancel = cancel};
    uir_arena_init(&m.arena, &function->allocator);
    uir_status status = run(&m, sizes, tiles, tensors);
    uir_arena_deinit(&m.arena);
    return status;
}

uir_status uir_loop_interpret(const uir_loop_function *function, const int64_t *sizes, void *const *tensors,
                              const volatile bool *cancel, uir_diagnostics *diagnostics) {
    uir_arena arena;
    uir_arena_init(&arena, &function->allocator);
    int64_t *tiles = uir_arena_allocate_array(&arena, function->tiles.count + 1, sizeof *tiles);
    uir_status status = tiles ? uir_loop_choose_tiles(function, sizes, tiles, diagnostics) : UIR_STATUS_OUT_OF_MEMORY;
    if (status == UIR_STATUS_OK)
        status = uir_loop_interpret_tiled(function, sizes, tiles, tensors, cancel, diagnostics);
    uir_arena_deinit(&arena);
    return status;
}
