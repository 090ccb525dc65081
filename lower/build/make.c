/* Making loop ASTs: tensors, expressions, nests. */
#include "lower/internal.h"

#include <stdio.h>
#include <string.h>

const char *uir_lower_space(const uir_machine *machine, uint32_t role) {
    int space = machine ? uir_machine_find_role(machine, role) : -1;
    return space < 0 ? NULL : machine->spaces[space].name;
}

uir_status uir_loop_add_tensor(uir_loop_function *f, const char *name, uir_dtype dtype, uir_loop_role role,
                               uint32_t index, const uir_dim *extents, uint32_t rank, uint32_t *out_tensor) {
    uir_loop_tensor t = {.dtype = dtype, .rank = rank, .role = role, .index = index};
    if (rank > UIR_LOOP_MAX_RANK) return UIR_STATUS_UNSUPPORTED;
    UIR_TRY_ALLOCATE(t.name, uir_arena_copy_string(&f->arena, name, strlen(name)));
    for (uint32_t d = 0; d < rank; d++) {
        if (!extents[d].id) return UIR_STATUS_OUT_OF_MEMORY;
        t.extents[d] = extents[d];
    }
    *out_tensor = f->tensors.count;
    return uir_vector_push(&f->arena, &f->tensors, t);
}

uir_status uir_loop_add_expression(uir_loop_function *f, uir_loop_expression e, uint32_t *out_expression) {
    *out_expression = f->expressions.count;
    return uir_vector_push(&f->arena, &f->expressions, e);
}

uir_status uir_loop_add_call(uir_loop_function *f, uir_op op, uir_dtype dtype, const uint32_t *arguments,
                             uint32_t count, uint32_t *out_expression) {
    uir_loop_expression e = {.kind = UIR_LOOP_CALL, .dtype = dtype, .op = op, .argument_count = count};
    for (uint32_t i = 0; i < count; i++) e.arguments[i] = arguments[i];
    return uir_loop_add_expression(f, e, out_expression);
}

uir_status uir_loop_add_number(uir_loop_function *f, uir_dtype dtype, double real, int64_t integer,
                               uint32_t *out_expression) {
    uir_loop_expression e = {.kind = UIR_LOOP_CONSTANT, .dtype = dtype};
    if (uir_dtype_is_float(dtype))
        e.real = real;
    else
        e.integer = integer;
    return uir_loop_add_expression(f, e, out_expression);
}

uir_status uir_loop_add_load(uir_loop_function *f, uint32_t tensor, const uir_dim *indices, uint32_t *out_expression) {
    uir_loop_expression e = {.kind = UIR_LOOP_LOAD, .dtype = f->tensors.data[tensor].dtype};
    e.load.tensor = tensor;
    for (uint32_t d = 0; d < f->tensors.data[tensor].rank; d++) e.load.indices[d] = indices[d];
    return uir_loop_add_expression(f, e, out_expression);
}

uir_status uir_loop_add_cast(uir_loop_function *f, uint32_t expression, uir_dtype to, uint32_t *out_expression) {
    *out_expression = expression;
    if (f->expressions.data[expression].dtype == to) return UIR_STATUS_OK;
    return uir_loop_add_call(f, UIR_OP_CAST, to, &expression, 1, out_expression);
}

void uir_nest_begin(uir_nest *nest, uir_loop_function *f, uir_arena *arena, const char *name) {
    *nest = (uir_nest){.f = f, .arena = arena, .name = name};
    nest->first_statement = nest->last_statement = UIR_LOOP_NONE;
    nest->block =
        (uir_loop_statement){.kind = UIR_LOOP_STATEMENT_BLOCK, .first_child = UIR_LOOP_NONE, .next = UIR_LOOP_NONE};
}

static uir_status add_iter(uir_nest *nest, const char *name, uir_loop_iter iter, uir_dim *out_value) {
    uir_loop_function *f = nest->f;
    if (nest->block.iter_count == UIR_LOOP_MAX_ITERS) return UIR_STATUS_UNSUPPORTED;
    UIR_TRY_ALLOCATE(iter.name, uir_arena_copy_string(&f->arena, name, strlen(name)));
    uir_symbol_facts facts = {0, UIR_DIM_UNBOUNDED, 1, iter.extent};
    UIR_TRY(uir_dims_add_symbol(f->dims, iter.name, strlen(iter.name), facts, &iter.symbol));
    nest->block.iters[nest->block.iter_count++] = iter;
    *out_value = uir_dim_symbol(f->dims, iter.symbol);
    return out_value->id ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
}

uir_status uir_nest_add_iter(uir_nest *nest, const char *name, uint32_t axis, uir_dim extent, bool reduce,
                             uir_dim *out_value) {
    int64_t one;
    if (uir_dim_is_const(nest->f->dims, extent, &one) && one == 1) { /* nothing to iterate over */
        *out_value = uir_dim_const(nest->f->dims, 0);
        return out_value->id ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
    }
    uint32_t data = 0; /* what is bound stands before what is read */
    while (data < nest->block.iter_count && !nest->block.iters[data].data) data++;
    if (data < nest->block.iter_count) return UIR_STATUS_UNSUPPORTED;
    return add_iter(nest, name, (uir_loop_iter){.axis = axis, .extent = extent, .reduce = reduce}, out_value);
}

uir_status uir_nest_add_read(uir_nest *nest, const char *name, uir_dim extent, const uir_loop_access *from,
                             uir_index_mode mode, uir_dim *out_value) {
    const uir_loop_access *kept;
    UIR_TRY_ALLOCATE(kept, uir_arena_copy(&nest->f->arena, from, sizeof *from));
    return add_iter(nest, name, (uir_loop_iter){.extent = extent, .data = true, .from = kept, .mode = mode}, out_value);
}

static uir_status add_statement(uir_nest *nest, uir_loop_statement s, uint32_t *out_id) {
    s.next = UIR_LOOP_NONE;
    *out_id = nest->f->statements.count;
    return uir_vector_push(&nest->f->arena, &nest->f->statements, s);
}

uir_status uir_nest_add_statement(uir_nest *nest, uir_loop_statement_kind kind, uint32_t monoid,
                                  const uir_loop_access *targets, uint32_t target_count, const uint32_t *values,
                                  uint32_t value_count) {
    uir_loop_statement s = {.kind = kind, .first_child = UIR_LOOP_NONE, .monoid = monoid};
    uint32_t id;
    s.target_count = target_count;
    s.value_count = value_count;
    for (uint32_t i = 0; i < target_count; i++) s.targets[i] = targets[i];
    for (uint32_t i = 0; i < value_count; i++) s.values[i] = values[i];
    UIR_TRY(add_statement(nest, s, &id));
    if (nest->last_statement == UIR_LOOP_NONE)
        nest->first_statement = id;
    else
        nest->f->statements.data[nest->last_statement].next = id;
    nest->last_statement = id;
    return UIR_STATUS_OK;
}

static void append_to_list(uir_loop_function *f, uint32_t under, uint32_t id) {
    uint32_t *slot = under == UIR_LOOP_NONE ? &f->first : &f->statements.data[under].first_child;
    while (*slot != UIR_LOOP_NONE) slot = &f->statements.data[*slot].next;
    *slot = id;
}

uir_status uir_nest_end(uir_nest *nest, uint32_t under, uint32_t *out_loops) {
    uir_loop_function *f = nest->f;
    uir_loop_statement *block = &nest->block;
    uint32_t loops[UIR_LOOP_MAX_ITERS], count = 0, id;
    UIR_TRY_ALLOCATE(block->name, uir_arena_copy_string(&f->arena, nest->name, strlen(nest->name)));
    for (uint32_t i = 0; i < block->iter_count; i++) {
        char name[96];
        if (block->iters[i].data) continue;
        snprintf(name, sizeof name, "%s_%s", nest->name, block->iters[i].name);
        uir_loop_statement loop = {.kind = UIR_LOOP_STATEMENT_FOR,
                                   .first_child = UIR_LOOP_NONE,
                                   .loop_kind = UIR_LOOP_SERIAL,
                                   .min = uir_dim_const(f->dims, 0),
                                   .extent = block->iters[i].extent};
        UIR_TRY_ALLOCATE(loop.name, uir_arena_copy_string(&f->arena, name, strlen(name)));
        uir_symbol_facts facts = {0, UIR_DIM_UNBOUNDED, 1, loop.extent};
        UIR_TRY(uir_dims_add_symbol(f->dims, loop.name, strlen(loop.name), facts, &loop.symbol));
        block->iters[i].value = uir_dim_symbol(f->dims, loop.symbol);
        if (!block->iters[i].value.id || !loop.min.id) return UIR_STATUS_OUT_OF_MEMORY;
        UIR_TRY(add_statement(nest, loop, &loops[count]));
        if (out_loops) out_loops[count] = loops[count];
        count++;
    }
    block->first_child = nest->first_statement;
    UIR_TRY(add_statement(nest, *block, &id));
    for (uint32_t i = count; i > 0; i--) {
        f->statements.data[loops[i - 1]].first_child = id;
        id = loops[i - 1];
    }
    append_to_list(f, under, id);
    return UIR_STATUS_OK;
}
