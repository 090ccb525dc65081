/* One statement of a block as instructions: stores, and the init, update, combine and finish of monoids. */
#include "lower/select/kernel.h"

/* The primitive that a monoid is, where the machine reduces by it; NONE when it is more. */
uir_op uir_kernel_simple_monoid(const uir_kernel *k, const uir_loop_monoid *m) {
    static const uir_op ops[] = {UIR_OP_ADD, UIR_OP_MUL, UIR_OP_MAX, UIR_OP_MIN, UIR_OP_OR, UIR_OP_AND};
    uir_op op = uir_loop_monoid_get_op(k->f, m);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (ops[i] == op) return op;
    return UIR_OP_NONE;
}

static const struct {
    uir_op op;
    uir_iop_code reduce;
} reduce_rows[] = {{UIR_OP_ADD, UIR_IOP_REDUCE_ADD}, {UIR_OP_MUL, UIR_IOP_REDUCE_MUL},
                   {UIR_OP_MAX, UIR_IOP_REDUCE_MAX}, {UIR_OP_MIN, UIR_IOP_REDUCE_MIN},
                   {UIR_OP_OR, UIR_IOP_REDUCE_MAX},  {UIR_OP_AND, UIR_IOP_REDUCE_MIN}};

/* One state taken over a lane by the machine's reduction. */
static void reduce_lanes(uir_kernel *k, const uir_loop_statement *s, uir_op op, uint32_t value, uint32_t lanes,
                         bool fresh) {
    uint32_t all = (1u << k->lane_count) - 1, reduced = all & ~lanes, lane = 0;
    const uir_islice *target = uir_kernel_slice(k, &s->targets[0], false, 0, &(uint32_t){0});
    uir_dtype dtype = k->f->tensors.data[s->targets[0].tensor].dtype;
    while (!(reduced >> lane & 1)) lane++;
    if (reduced != 1u << lane || lane + 2 < k->lane_count) {
        uir_kernel_refuse(k, "a reduction over more than one dim of a slice");
        return;
    }
    uir_kernel_operation reduce = {.code = UIR_IOP_REDUCE_ADD, .dtype = dtype};
    for (size_t i = 0; i < sizeof reduce_rows / sizeof *reduce_rows; i++)
        if (reduce_rows[i].op == op) reduce.code = reduce_rows[i].reduce;
    reduce.axis = lane + 1 == k->lane_count ? UIR_IAXIS_ROW : UIR_IAXIS_COL;
    bool wide = k->pointers[s->targets[0].tensor].rank > (k->lane_count < 2 ? 2 : k->lane_count);
    if (dtype != UIR_DTYPE_BOOL && !wide) {
        value = uir_kernel_materialise(k, value, all);
        reduce.accumulate = !fresh;
        uir_kernel_instruct_to(k, &reduce, target, lanes, &value, 1);
        return;
    }
    /* By way of a state that has the row's dims; a bool's as bytes. */
    reduce.dtype = dtype == UIR_DTYPE_BOOL ? UIR_DTYPE_U8 : dtype;
    value = uir_kernel_materialise(k, dtype == UIR_DTYPE_BOOL ? uir_kernel_cast(k, value, UIR_DTYPE_U8) : value, all);
    value = uir_kernel_instruct(k, &reduce, reduce.dtype, lanes, &value, 1);
    if (dtype == UIR_DTYPE_BOOL) value = uir_kernel_cast(k, value, UIR_DTYPE_BOOL);
    if (!fresh) {
        uint32_t old = uir_kernel_slice_value(k, dtype, lanes, target);
        value = uir_kernel_call(k, op, dtype, (uint32_t[]){old, value}, 2);
    }
    uir_kernel_store(k, target, lanes, dtype, value);
}

/* An output that the kernel does not read itself. */
static bool leaves(const uir_loop_function *f, uint32_t tensor) {
    return f->tensors.data[tensor].role == UIR_LOOP_ROLE_OUT && !uir_loop_list_reads(f, f->first, tensor);
}

static void store_all(uir_kernel *k, const uir_loop_statement *s, const uint32_t *values) {
    for (uint32_t t = 0; t < s->target_count; t++) {
        uint32_t lanes;
        const uir_islice *target = uir_kernel_slice(k, &s->targets[t], false, 0, &lanes);
        uir_dtype dtype = k->f->tensors.data[s->targets[t].tensor].dtype;
        if (k->status != UIR_STATUS_OK) return;
        if (k->values.data[values[t]].lanes & ~lanes) {
            uir_kernel_refuse(k, "several elements are stored to one address");
            return;
        }
        uir_kernel_store(k, target, lanes, dtype, values[t]);
        if (k->status == UIR_STATUS_OK && leaves(k->f, s->targets[t].tensor))
            k->instructions.data[k->instructions.count - 1].stream = true;
    }
}

/* update and combine: the state as it is, and what is taken in. */
static void step_monoid(uir_kernel *k, const uir_loop_statement *s, const uint32_t *expressions, const uint32_t *taken,
                        uint32_t taken_count) {
    const uir_loop_monoid *m = &k->f->monoids.data[s->monoid];
    uint32_t parameters[2 * UIR_LOOP_MAX_STATE], results[UIR_LOOP_MAX_STATE];
    for (uint32_t i = 0; i < m->state_count; i++) {
        uint32_t lanes;
        const uir_islice *slice = uir_kernel_slice(k, &s->targets[i], false, 0, &lanes);
        parameters[i] = uir_kernel_slice_value(k, m->state_dtypes[i], lanes, slice);
    }
    for (uint32_t i = 0; i < taken_count; i++) parameters[m->state_count + i] = taken[i];
    k->parameters = parameters;
    for (uint32_t i = 0; i < m->state_count; i++) results[i] = uir_kernel_expression(k, expressions[i]);
    k->parameters = NULL;
    store_all(k, s, results);
}

/* The sum and the product of a block used as fma: one instruction. */
static void multiply_and_add(uir_kernel *k, const uir_loop_statement *s) {
    const uir_loop_expression *product = &k->f->expressions.data[s->values[0]];
    uint32_t lanes, operands[3];
    const uir_islice *target = uir_kernel_slice(k, &s->targets[0], false, 0, &lanes);
    if (k->status == UIR_STATUS_OK && lanes != (1u << k->lane_count) - 1)
        uir_kernel_refuse(k, "a block used as fma requires a sum of its own for each element");
    if (k->status != UIR_STATUS_OK) return;
    for (uint32_t i = 0; i < 2; i++) operands[i] = uir_kernel_expression(k, product->arguments[i]);
    operands[2] = uir_kernel_slice_value(k, product->dtype, lanes, target);
    uir_kernel_operation operation = {.code = UIR_IOP_FMA, .dtype = product->dtype};
    uir_kernel_instruct_to(k, &operation, target, lanes, operands, 3);
}

void uir_kernel_emit_statement(uir_kernel *k, const uir_loop_statement *block, const uir_loop_statement *s,
                               bool fresh) {
    const uir_loop_monoid *m = s->kind == UIR_LOOP_STATEMENT_STORE ? NULL : &k->f->monoids.data[s->monoid];
    uint32_t values[UIR_LOOP_MAX_STATE] = {0}, lanes;
    uir_kernel_begin_block(k);
    if (block->uses >> UIR_LOOP_USE_FMA & 1 && s->kind == UIR_LOOP_STATEMENT_UPDATE) {
        multiply_and_add(k, s);
        uir_kernel_end_block(k);
        return;
    }
    for (uint32_t i = 0; i < s->value_count; i++) values[i] = uir_kernel_expression(k, s->values[i]);
    if (k->status != UIR_STATUS_OK) return;
    switch (s->kind) {
    case UIR_LOOP_STATEMENT_STORE:
        store_all(k, s, values);
        break;
    case UIR_LOOP_STATEMENT_INIT:
        for (uint32_t i = 0; i < m->state_count; i++) values[i] = uir_kernel_expression(k, m->identity[i]);
        store_all(k, s, values);
        break;
    case UIR_LOOP_STATEMENT_FINISH:
        k->parameters = values;
        uint32_t results[UIR_LOOP_MAX_STATE];
        for (uint32_t i = 0; i < m->finish_count; i++) results[i] = uir_kernel_expression(k, m->finish[i]);
        k->parameters = NULL;
        store_all(k, s, results);
        break;
    default:
        uir_kernel_slice(k, &s->targets[0], false, 0, &lanes);
        uir_op op = uir_kernel_simple_monoid(k, m);
        if (lanes != (1u << k->lane_count) - 1 && op != UIR_OP_NONE)
            reduce_lanes(k, s, op, values[0], lanes, fresh);
        else if (lanes != (1u << k->lane_count) - 1)
            uir_kernel_refuse(k, "the device has no reduction for monoid %s", m->name);
        else
            step_monoid(k, s, s->kind == UIR_LOOP_STATEMENT_UPDATE ? m->update : m->combine, values, s->value_count);
    }
    uir_kernel_end_block(k);
}
