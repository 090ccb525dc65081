/* Nodes that are built by their dims, not by axes: each is the only one of its group. Those whose dims have no axes in
 * common, and those of which one element depends on another of the same axis: scans, scatters. */
#include "lower/internal.h"

#include <stdio.h>
#include <string.h>

typedef struct alone_tensor {
    uint32_t tensor, rank;
    uir_dim extents[UIR_LOOP_MAX_RANK];
    uint32_t order[UIR_MAX_RANK]; /* its dims as they lie, slowest first */
    uir_dtype dtype;
} alone_tensor;

static uir_status take_extents(uir_lower_builder *b, uint32_t node, uir_value_id value, alone_tensor *out) {
    const uir_type *type = uir_value_type(b->module, value);
    if (type->rank > UIR_LOOP_MAX_RANK) return uir_lower_refuse(b, node, "more than %d dims", UIR_LOOP_MAX_RANK);
    out->rank = type->rank;
    out->dtype = type->dtype;
    for (uint32_t d = 0; d < type->rank; d++) UIR_TRY(uir_lower_extent(b, type->dims[d], &out->extents[d]));
    uir_axes_order_dims(b->module, value, out->order);
    return UIR_STATUS_OK;
}

/* Of all that follow: places by dims, as the loop tensor has them. */
static void put_in_order(const alone_tensor *of, const uir_dim *places, uir_dim *out_places) {
    for (uint32_t d = 0; d < of->rank; d++) out_places[d] = places[of->order[d]];
}

static uir_status add_tensor(uir_lower_builder *b, const char *name, uir_loop_role role, uint32_t index,
                             alone_tensor *of) {
    uir_dim extents[UIR_LOOP_MAX_RANK];
    put_in_order(of, of->extents, extents);
    return uir_loop_add_tensor(b->f, name, of->dtype, role, index, extents, of->rank, &of->tensor);
}

/* An operand by its own dims; one that is there already is the same tensor. */
static uir_status take_operand(uir_lower_builder *b, uint32_t node, uint32_t index, alone_tensor *out) {
    uir_value_id value = uir_lower_node_info(b, node)->inputs[index];
    uint32_t input = uir_lower_input_index(b, value);
    char name[16];
    if (input == UIR_LOWER_NONE) return uir_lower_refuse(b, node, "operand %u is not an operand of the group", index);
    UIR_TRY(take_extents(b, node, value, out));
    for (out->tensor = 0; out->tensor < b->f->tensors.count; out->tensor++) {
        const uir_loop_tensor *t = &b->f->tensors.data[out->tensor];
        if (t->role == UIR_LOOP_ROLE_IN && t->index == input) return UIR_STATUS_OK;
    }
    snprintf(name, sizeof name, "x%u", input);
    return add_tensor(b, name, UIR_LOOP_ROLE_IN, input, out);
}

static uir_status take_result(uir_lower_builder *b, uint32_t node, alone_tensor *out) {
    UIR_TRY(take_extents(b, node, uir_lower_node_info(b, node)->outputs[0], out));
    return add_tensor(b, "y0", UIR_LOOP_ROLE_OUT, 0, out);
}

static uir_status begin(uir_lower_builder *b, uir_nest *nest, const alone_tensor *over, uir_dim *out_coords) {
    char name[16];
    const char *copy;
    snprintf(name, sizeof name, "b%u", b->names++);
    UIR_TRY_ALLOCATE(copy, uir_arena_copy_string(b->arena, name, strlen(name)));
    uir_nest_begin(nest, b->f, b->arena, copy);
    for (uint32_t i = 0; i < over->rank; i++) {
        uint32_t d = over->order[i];
        snprintf(name, sizeof name, "v%u", d);
        UIR_TRY(uir_nest_add_iter(nest, name, d + 1, over->extents[d], false, &out_coords[d]));
    }
    return UIR_STATUS_OK;
}

static uir_status store(uir_nest *nest, const alone_tensor *to, const uir_dim *at, uint32_t expression) {
    uir_loop_access target = {.tensor = to->tensor};
    put_in_order(to, at, target.indices);
    UIR_TRY(uir_nest_add_statement(nest, UIR_LOOP_STATEMENT_STORE, 0, &target, 1, &expression, 1));
    return uir_nest_end(nest, UIR_LOOP_NONE, NULL);
}

/* A load of what may lie outside its extents, as far as can be proved. */
static uir_status load(uir_lower_builder *b, const alone_tensor *from, const uir_dim *at, double fill,
                       uint32_t *out_expression) {
    uir_dim indices[UIR_LOOP_MAX_RANK];
    for (uint32_t d = 0; d < from->rank; d++)
        if (!at[d].id) return UIR_STATUS_OUT_OF_MEMORY;
    put_in_order(from, at, indices);
    UIR_TRY(uir_loop_add_load(b->f, from->tensor, indices, out_expression));
    b->f->expressions.data[*out_expression].has_fill = true;
    b->f->expressions.data[*out_expression].fill = fill;
    return UIR_STATUS_OK;
}

static uir_status copy_whole(uir_lower_builder *b, const alone_tensor *from, const alone_tensor *to) {
    uir_nest nest;
    uir_dim coords[UIR_LOOP_MAX_RANK];
    uint32_t expression;
    UIR_TRY(begin(b, &nest, to, coords));
    UIR_TRY(uir_loop_add_load(b->f, from->tensor, coords, &expression));
    return store(&nest, to, coords, expression);
}

/* A broadcast that only the run decides: a dim of one element is read at 0, which a size of 0 or 1 says. */
static uir_status build_broadcast(uir_lower_builder *b, uint32_t node) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    const uir_type *from = uir_value_type(b->module, info->inputs[0]),
                   *to = uir_value_type(b->module, info->outputs[0]);
    uir_dims *outside = b->module->dims;
    uir_dim one = uir_dim_const(outside, 1), coords[UIR_LOOP_MAX_RANK], at[UIR_LOOP_MAX_RANK];
    alone_tensor x, y;
    uint32_t expression;
    uir_nest nest;
    UIR_TRY(take_operand(b, node, 0, &x));
    UIR_TRY(take_result(b, node, &y));
    UIR_TRY(begin(b, &nest, &y, coords));
    for (uint32_t d = 0; d < from->rank; d++) {
        uint32_t of = d + to->rank - from->rank;
        at[d] = coords[of];
        if (uir_dim_compare(outside, from->dims[d], UIR_RELATION_EQ, to->dims[of]) == UIR_TRUE) continue;
        uir_dim less = uir_dim_sub(outside, from->dims[d], one),
                moves = uir_dim_max(outside, uir_dim_const(outside, 0), uir_dim_min(outside, one, less));
        /* It is 1, or what the result's is. */
        UIR_TRY(
            uir_lower_demand_zero(b, uir_dim_mul(outside, less, uir_dim_sub(outside, from->dims[d], to->dims[of]))));
        UIR_TRY(uir_lower_dim(b, moves, &moves));
        at[d] = uir_dim_mul(b->f->dims, coords[of], moves);
    }
    UIR_TRY(load(b, &x, at, 0, &expression));
    return store(&nest, &y, coords, expression);
}

/* A concatenation of operands whose other dims are equal when it runs. */
static uir_status build_concat(uir_lower_builder *b, uint32_t node) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    uint32_t axis = (uint32_t)uir_node_int(b->module, info, "axis", 0), count = info->input_count;
    const uir_type *to = uir_value_type(b->module, info->outputs[0]);
    uir_dims *outside = b->module->dims;
    alone_tensor *pieces, y;
    UIR_TRY_ALLOCATE(pieces, uir_arena_allocate_array(b->arena, count, sizeof *pieces));
    uir_dim whole = uir_dim_const(b->f->dims, 0), offset = whole;
    for (uint32_t i = 0; i < count; i++) {
        const uir_type *from = uir_value_type(b->module, uir_lower_node_info(b, node)->inputs[i]);
        UIR_TRY(take_operand(b, node, i, &pieces[i]));
        whole = uir_dim_add(b->f->dims, whole, pieces[i].extents[axis]);
        for (uint32_t d = 0; d < to->rank; d++)
            if (d != axis && uir_dim_compare(outside, from->dims[d], UIR_RELATION_EQ, to->dims[d]) != UIR_TRUE)
                UIR_TRY(uir_lower_demand_zero(b, uir_dim_sub(outside, from->dims[d], to->dims[d])));
    }
    UIR_TRY(take_extents(b, node, info->outputs[0], &y));
    y.extents[axis] = whole; /* as long as its pieces together, whatever its extent is called */
    UIR_TRY(add_tensor(b, "y0", UIR_LOOP_ROLE_OUT, 0, &y));
    for (uint32_t i = 0; i < count; i++) {
        uir_dim coords[UIR_LOOP_MAX_RANK], at[UIR_LOOP_MAX_RANK];
        alone_tensor over = y;
        uir_nest nest;
        uint32_t expression;
        over.extents[axis] = pieces[i].extents[axis];
        UIR_TRY(begin(b, &nest, &over, coords));
        memcpy(at, coords, sizeof at);
        at[axis] = uir_dim_add(b->f->dims, offset, coords[axis]);
        UIR_TRY(load(b, &pieces[i], coords, 0, &expression));
        UIR_TRY(store(&nest, &y, at, expression));
        offset = uir_dim_add(b->f->dims, offset, pieces[i].extents[axis]);
    }
    return UIR_STATUS_OK;
}

/* The pad value everywhere, then the elements at their places: with others between them no coordinate of the result
 * says by sums and products alone which element it is. */
static uir_status build_pad(uir_lower_builder *b, uint32_t node) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    const uir_value_info *value = uir_value_info_get(b->module, info->inputs[1]);
    uir_dims *outside = b->module->dims;
    uint32_t rank, count, expression;
    const uir_dim *low = uir_node_dims(b->module, info, "low", &rank),
                  *high = uir_node_dims(b->module, info, "high", &rank);
    const int64_t *interior = uir_node_ints(b->module, info, "interior", &count);
    alone_tensor x, y;
    uir_nest nest;
    uir_dim coords[UIR_LOOP_MAX_RANK], none = uir_dim_const(outside, 0);
    if (!value->constant || value->constant->element_count != 1)
        return uir_lower_refuse(b, node, "the pad value is not a known constant");
    for (uint32_t d = 0; d < rank; d++)
        if (uir_dim_compare(outside, low[d], UIR_RELATION_GE, none) != UIR_TRUE ||
            uir_dim_compare(outside, high[d], UIR_RELATION_GE, none) != UIR_TRUE)
            return uir_lower_refuse(b, node, "the pad has padding between elements and may cut some off");
    UIR_TRY(take_operand(b, node, 0, &x));
    UIR_TRY(take_extents(b, node, info->outputs[0], &y));
    for (uint32_t d = 0; d < rank; d++) {
        /* In the words of the places, that all of them be seen to lie inside. */
        uir_dims *dims = b->f->dims;
        uir_dim before, after, least = uir_dim_sub(dims, x.extents[d], uir_dim_const(dims, 1));
        UIR_TRY(uir_lower_extent(b, low[d], &before));
        UIR_TRY(uir_lower_extent(b, high[d], &after));
        uir_dim between =
            uir_dim_mul(dims, uir_dim_max(dims, least, uir_dim_const(dims, 0)), uir_dim_const(dims, interior[d]));
        y.extents[d] = uir_dim_add(dims, uir_dim_add(dims, before, x.extents[d]), uir_dim_add(dims, between, after));
    }
    UIR_TRY(uir_loop_add_tensor(b->f, "y0", y.dtype, UIR_LOOP_ROLE_OUT, 0, y.extents, y.rank, &y.tensor));
    UIR_TRY(begin(b, &nest, &y, coords));
    UIR_TRY(uir_lower_constant(b, value->constant, &expression));
    UIR_TRY(store(&nest, &y, coords, expression));
    UIR_TRY(begin(b, &nest, &x, coords));
    UIR_TRY(uir_loop_add_load(b->f, x.tensor, coords, &expression));
    for (uint32_t d = 0; d < rank; d++) {
        uir_dim start, step = uir_dim_const(b->f->dims, interior[d] + 1);
        UIR_TRY(uir_lower_extent(b, low[d], &start));
        coords[d] = uir_dim_add(b->f->dims, start, uir_dim_mul(b->f->dims, coords[d], step));
        if (!coords[d].id) return UIR_STATUS_OUT_OF_MEMORY;
    }
    return store(&nest, &y, coords, expression);
}

/* ---- scans and scatters ---- */
/* Each element from the one before it, in order, from the end for a reverse scan; before the first there is what all of
 * the result begins as. Floats narrower than f32 have their chain in f32. */
static uir_status build_scan(uir_lower_builder *b, uint32_t node) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    uint32_t axis = (uint32_t)uir_node_int(b->module, info, "axis", 0), values[2];
    bool exclusive = uir_node_int(b->module, info, "exclusive", 0) != 0,
         reverse = uir_node_int(b->module, info, "reverse", 0) != 0;
    uir_op op = info->op == UIR_OP_SCAN_SUM ? UIR_OP_ADD : UIR_OP_MUL;
    uir_dims *dims = b->f->dims;
    uir_dim coords[UIR_LOOP_MAX_RANK], before[UIR_LOOP_MAX_RANK], one = uir_dim_const(dims, 1);
    double identity = op == UIR_OP_ADD ? 0 : 1;
    alone_tensor x, y, chain;
    uir_nest nest;
    UIR_TRY(take_operand(b, node, 0, &x));
    UIR_TRY(take_result(b, node, &y));
    chain = y;
    if (uir_dtype_is_float(y.dtype) && uir_dtype_bits(y.dtype) < 32) {
        chain.dtype = UIR_DTYPE_F32;
        UIR_TRY(uir_loop_add_tensor(b->f, "s0", chain.dtype, UIR_LOOP_ROLE_TEMP, 0, y.extents, y.rank, &chain.tensor));
    }
    UIR_TRY(begin(b, &nest, &y, coords));
    UIR_TRY(uir_loop_add_number(b->f, chain.dtype, identity, (int64_t)identity, &values[0]));
    UIR_TRY(store(&nest, &chain, coords, values[0]));
    UIR_TRY(begin(b, &nest, &y, coords));
    if (reverse) coords[axis] = uir_dim_sub(dims, uir_dim_sub(dims, y.extents[axis], one), coords[axis]);
    memcpy(before, coords, sizeof before);
    before[axis] = reverse ? uir_dim_add(dims, coords[axis], one) : uir_dim_sub(dims, coords[axis], one);
    UIR_TRY(load(b, &chain, before, identity, &values[0]));
    UIR_TRY(load(b, &x, exclusive ? before : coords, identity, &values[1]));
    UIR_TRY(uir_loop_add_cast(b->f, values[1], chain.dtype, &values[1]));
    UIR_TRY(uir_loop_add_call(b->f, op, chain.dtype, values, 2, &values[0]));
    UIR_TRY(store(&nest, &chain, coords, values[0]));
    if (chain.tensor == y.tensor) return UIR_STATUS_OK;
    UIR_TRY(begin(b, &nest, &y, coords));
    UIR_TRY(uir_loop_add_load(b->f, chain.tensor, coords, &values[0]));
    UIR_TRY(uir_loop_add_cast(b->f, values[0], y.dtype, &values[0]));
    return store(&nest, &y, coords, values[0]);
}

/* What a scatter does with the element that is there and the update. Of bools, sums and maxima are or, the others and.
 */
static const struct {
    const char *name;
    uir_op op, of_bools;
} reductions[] = {{"add", UIR_OP_ADD, UIR_OP_OR},
                  {"mul", UIR_OP_MUL, UIR_OP_AND},
                  {"max", UIR_OP_MAX, UIR_OP_OR},
                  {"min", UIR_OP_MIN, UIR_OP_AND}};

static uir_status update(uir_lower_builder *b, uint32_t node, uir_nest *nest, const alone_tensor *y, const uir_dim *at,
                         uint32_t expression) {
    const char *name = uir_node_string(b->module, uir_lower_node_info(b, node), "reduction", "none");
    uint32_t values[2] = {0, expression};
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++) {
        if (strcmp(reductions[i].name, name)) continue;
        uir_op op = y->dtype == UIR_DTYPE_BOOL ? reductions[i].of_bools : reductions[i].op;
        UIR_TRY(load(b, y, at, 0, &values[0])); /* outside at an index that is not there, where nothing is stored */
        UIR_TRY(uir_loop_add_call(b->f, op, y->dtype, values, 2, &expression));
    }
    return store(nest, y, at, expression);
}

/* The data, then the updates in their order, each at the place that its index names. */
static uir_status build_scatter_elements(uir_lower_builder *b, uint32_t node) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    uint32_t axis = (uint32_t)uir_node_int(b->module, info, "axis", 0), expression;
    uir_dim coords[UIR_LOOP_MAX_RANK];
    alone_tensor data, indices, updates, y;
    uir_nest nest;
    UIR_TRY(take_operand(b, node, 0, &data));
    UIR_TRY(take_operand(b, node, 1, &indices));
    UIR_TRY(take_operand(b, node, 2, &updates));
    UIR_TRY(take_result(b, node, &y));
    if (!y.rank) return uir_lower_refuse(b, node, "the target of the scatter is a scalar");
    UIR_TRY(copy_whole(b, &data, &y));
    UIR_TRY(begin(b, &nest, &updates, coords));
    UIR_TRY(uir_loop_add_load(b->f, updates.tensor, coords, &expression));
    uir_loop_access from = {.tensor = indices.tensor};
    for (uint32_t d = 0; d < indices.rank; d++) from.indices[d] = coords[d];
    UIR_TRY(uir_nest_add_read(&nest, "g", y.extents[axis], &from, UIR_INDEX_SKIP, &coords[axis]));
    return update(b, node, &nest, &y, coords, expression);
}

static uir_status build_scatter_nd(uir_lower_builder *b, uint32_t node) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    const uir_type *type = uir_value_type(b->module, info->inputs[1]);
    uir_dim coords[UIR_LOOP_MAX_RANK], at[UIR_LOOP_MAX_RANK];
    alone_tensor data, indices, updates, y;
    uint32_t expression;
    int64_t depth;
    uir_nest nest;
    if (!type->rank || !uir_dim_is_const(b->module->dims, type->dims[type->rank - 1], &depth))
        return uir_lower_refuse(b, node, "the number of coordinates of an index is unknown");
    UIR_TRY(take_operand(b, node, 0, &data));
    UIR_TRY(take_operand(b, node, 1, &indices));
    UIR_TRY(take_operand(b, node, 2, &updates));
    UIR_TRY(take_result(b, node, &y));
    UIR_TRY(copy_whole(b, &data, &y));
    UIR_TRY(begin(b, &nest, &updates, coords));
    UIR_TRY(uir_loop_add_load(b->f, updates.tensor, coords, &expression));
    for (uint32_t d = 0; d < y.rank; d++) {
        char name[16];
        uir_loop_access from = {.tensor = indices.tensor};
        if ((int64_t)d >= depth) {
            at[d] = coords[indices.rank - 1 + d - (uint32_t)depth];
            continue;
        }
        for (uint32_t k = 0; k + 1 < indices.rank; k++) from.indices[k] = coords[k];
        from.indices[indices.rank - 1] = uir_dim_const(b->f->dims, d);
        snprintf(name, sizeof name, "g%u", d);
        UIR_TRY(uir_nest_add_read(&nest, name, y.extents[d], &from, UIR_INDEX_SKIP, &at[d]));
    }
    return update(b, node, &nest, &y, at, expression);
}

/* ---- elements of less than a byte ---- */
static uir_status call(uir_lower_builder *b, uir_op op, uir_dtype dtype, uint32_t x, uint32_t y, uint32_t *out) {
    return uir_loop_add_call(b->f, op, dtype, (uint32_t[]){x, y}, 2, out);
}

static uir_status call_number(uir_lower_builder *b, uir_op op, uir_dtype dtype, uint32_t x, double y, uint32_t *out) {
    uint32_t number;
    UIR_TRY(uir_loop_add_number(b->f, b->f->expressions.data[x].dtype, y, (int64_t)y, &number));
    return call(b, op, dtype, x, number, out);
}

/* The integer, or float, whose bits are the low ones of `x`, a u8 that has no others. */
static uir_status decode(uir_lower_builder *b, uir_dtype dtype, uint32_t x, uint32_t *out) {
    uint32_t size, tail, high, shift, positive, negative, sign;
    int64_t bits = uir_dtype_bits(dtype), half = (int64_t)1 << (bits - 1);
    if (dtype != UIR_DTYPE_F4E2M1) {
        bool is_signed = uir_dtype_get_class(dtype) == UIR_DTYPE_CLASS_SIGNED;
        *out = x;
        if (!is_signed) return UIR_STATUS_OK;
        UIR_TRY(call_number(b, UIR_OP_BIT_XOR, UIR_DTYPE_U8, x, (double)half, &x));
        UIR_TRY(uir_loop_add_cast(b->f, x, UIR_DTYPE_I8, &x));
        return call_number(b, UIR_OP_SUB, UIR_DTYPE_I8, x, (double)half, out);
    }
    /* Twice the size: 0 1 2 3, then 2 or 3, of the lowest bit, times 2 to the power of the other two less 1. */
    UIR_TRY(call_number(b, UIR_OP_BIT_AND, UIR_DTYPE_U8, x, 7, &size));
    UIR_TRY(call_number(b, UIR_OP_BIT_AND, UIR_DTYPE_U8, x, 1, &tail));
    UIR_TRY(call_number(b, UIR_OP_ADD, UIR_DTYPE_U8, tail, 2, &tail));
    UIR_TRY(call_number(b, UIR_OP_MAX, UIR_DTYPE_U8, size, 2, &shift));
    UIR_TRY(call_number(b, UIR_OP_SHIFT_RIGHT, UIR_DTYPE_U8, shift, 1, &shift));
    UIR_TRY(call_number(b, UIR_OP_SUB, UIR_DTYPE_U8, shift, 1, &shift));
    UIR_TRY(call(b, UIR_OP_SHIFT_LEFT, UIR_DTYPE_U8, tail, shift, &high));
    UIR_TRY(call_number(b, UIR_OP_LT, UIR_DTYPE_BOOL, size, 2, &sign));
    UIR_TRY(uir_loop_add_call(b->f, UIR_OP_SELECT, UIR_DTYPE_U8, (uint32_t[]){sign, size, high}, 3, &size));
    UIR_TRY(uir_loop_add_cast(b->f, size, UIR_DTYPE_F32, &positive));
    UIR_TRY(call_number(b, UIR_OP_MUL, UIR_DTYPE_F32, positive, 0.5, &positive));
    UIR_TRY(uir_loop_add_call(b->f, UIR_OP_NEG, UIR_DTYPE_F32, &positive, 1, &negative));
    UIR_TRY(call_number(b, UIR_OP_GE, UIR_DTYPE_BOOL, x, 8, &sign));
    return uir_loop_add_call(b->f, UIR_OP_SELECT, UIR_DTYPE_F32, (uint32_t[]){sign, negative, positive}, 3, out);
}

/* The bits of a number, as a u8 with no others. */
static uir_status encode(uir_lower_builder *b, uir_dtype dtype, uint32_t x, uint32_t *out) {
    /* Sizes between which a float of 4 bits goes up, of two as far the even one: at these it stays, or goes. */
    static const struct {
        double size;
        uir_op op;
    } steps[] = {{0.25, UIR_OP_GT}, {0.75, UIR_OP_GE}, {1.25, UIR_OP_GT}, {1.75, UIR_OP_GE},
                 {2.5, UIR_OP_GT},  {3.5, UIR_OP_GE},  {5, UIR_OP_GT}};
    uint32_t size, one, inverse, sign;
    if (dtype != UIR_DTYPE_F4E2M1) {
        UIR_TRY(uir_loop_add_cast(b->f, x, UIR_DTYPE_U8, &x));
        return call_number(b, UIR_OP_BIT_AND, UIR_DTYPE_U8, x, (double)((1 << uir_dtype_bits(dtype)) - 1), out);
    }
    UIR_TRY(uir_loop_add_cast(b->f, x, UIR_DTYPE_F32, &x));
    UIR_TRY(uir_loop_add_call(b->f, UIR_OP_ABS, UIR_DTYPE_F32, &x, 1, &size));
    UIR_TRY(uir_loop_add_number(b->f, UIR_DTYPE_F32, 1, 0, &one));
    UIR_TRY(call(b, UIR_OP_DIV, UIR_DTYPE_F32, one, x, &inverse)); /* of -0 it says the sign */
    UIR_TRY(call_number(b, UIR_OP_LT, UIR_DTYPE_BOOL, x, 0, &sign));
    UIR_TRY(call_number(b, UIR_OP_LT, UIR_DTYPE_BOOL, inverse, 0, &inverse));
    UIR_TRY(call(b, UIR_OP_OR, UIR_DTYPE_BOOL, sign, inverse, &sign));
    UIR_TRY(uir_loop_add_cast(b->f, sign, UIR_DTYPE_U8, &sign));
    UIR_TRY(call_number(b, UIR_OP_SHIFT_LEFT, UIR_DTYPE_U8, sign, 3, out));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        uint32_t step;
        UIR_TRY(call_number(b, steps[i].op, UIR_DTYPE_BOOL, size, steps[i].size, &step));
        UIR_TRY(uir_loop_add_cast(b->f, step, UIR_DTYPE_U8, &step));
        UIR_TRY(call(b, UIR_OP_ADD, UIR_DTYPE_U8, *out, step, out));
    }
    return UIR_STATUS_OK;
}

/* All elements in their order; of those that share a byte, the bytes. */
static uir_status take_flat(uir_lower_builder *b, uint32_t node, uir_value_id value, bool result, alone_tensor *out,
                            uir_dim *out_count, uint32_t *out_share) {
    const uir_type *type = uir_value_type(b->module, value);
    uir_dims *outside = b->module->dims, *dims = b->f->dims;
    uir_dim count = uir_dim_const(outside, 1);
    uint32_t bits = uir_dtype_bits(type->dtype);
    uir_loop_role role = result ? UIR_LOOP_ROLE_OUT : UIR_LOOP_ROLE_IN;
    uint32_t index = result ? 0 : uir_lower_input_index(b, value);
    if (index == UIR_LOWER_NONE) return uir_lower_refuse(b, node, "the operand is not an operand of the group");
    for (uint32_t d = 0; d < type->rank; d++) count = uir_dim_mul(outside, count, type->dims[d]);
    UIR_TRY(uir_lower_extent(b, count, out_count));
    *out_share = bits < 8 ? 8 / bits : 1;
    *out = (alone_tensor){.rank = 1, .dtype = bits < 8 ? UIR_DTYPE_U8 : type->dtype, .extents = {*out_count}};
    if (bits < 8) out->extents[0] = uir_dim_ceildiv(dims, *out_count, uir_dim_const(dims, *out_share));
    return uir_loop_add_tensor(b->f, result ? "y0" : "x0", out->dtype, role, index, out->extents, 1, &out->tensor);
}

/* A cast from or to elements that share a byte. */
static uir_status build_packed_cast(uir_lower_builder *b, uint32_t node) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    uir_dtype from = uir_value_type(b->module, info->inputs[0])->dtype,
              to = uir_value_type(b->module, info->outputs[0])->dtype;
    uir_dims *dims = b->f->dims;
    uir_dim count, i, at;
    uint32_t share, other, expression, bits;
    alone_tensor x, y;
    uir_nest nest;
    UIR_TRY(take_flat(b, node, info->inputs[0], false, &x, &count, &share));
    UIR_TRY(take_flat(b, node, info->outputs[0], true, &y, &count, &other));
    if (share > 1 && other > 1) return uir_lower_refuse(b, node, "both dtypes of the cast have less than a byte");
    if (share > 1) { /* all are stored once before: that every so many-th are, for each place in a byte, is not seen */
        UIR_TRY(begin(b, &nest, &y, &at));
        UIR_TRY(uir_loop_add_number(b->f, y.dtype, 0, 0, &expression));
        UIR_TRY(store(&nest, &y, &at, expression));
    }
    for (uint32_t p = 0; p < share && share > 1; p++) {
        uir_dim divisor = uir_dim_const(dims, share);
        alone_tensor over = {.rank = 1};
        over.extents[0] = uir_dim_floordiv(dims, uir_dim_add(dims, count, uir_dim_const(dims, share - 1 - p)), divisor);
        UIR_TRY(begin(b, &nest, &over, &i));
        at = uir_dim_add(dims, uir_dim_mul(dims, i, divisor), uir_dim_const(dims, p));
        if (!at.id) return UIR_STATUS_OUT_OF_MEMORY;
        UIR_TRY(load(b, &x, &i, 0, &expression));
        UIR_TRY(call_number(b, UIR_OP_SHIFT_RIGHT, UIR_DTYPE_U8, expression, p * (8 / share), &expression));
        UIR_TRY(call_number(b, UIR_OP_BIT_AND, UIR_DTYPE_U8, expression, (1 << (8 / share)) - 1, &expression));
        UIR_TRY(decode(b, from, expression, &expression));
        UIR_TRY(uir_loop_add_cast(b->f, expression, to, &expression));
        UIR_TRY(store(&nest, &y, &at, expression));
    }
    if (share > 1) return UIR_STATUS_OK;
    UIR_TRY(begin(b, &nest, &y, &i));
    for (uint32_t p = 0; p < other; p++) {
        at = uir_dim_add(dims, uir_dim_mul(dims, i, uir_dim_const(dims, other)), uir_dim_const(dims, p));
        UIR_TRY(load(b, &x, &at, 0, &bits));
        UIR_TRY(encode(b, to, bits, &bits));
        UIR_TRY(call_number(b, UIR_OP_SHIFT_LEFT, UIR_DTYPE_U8, bits, p * (8 / other), &bits));
        if (p) UIR_TRY(call(b, UIR_OP_BIT_OR, UIR_DTYPE_U8, expression, bits, &bits));
        expression = bits;
    }
    return store(&nest, &y, &i, expression);
}

static const struct {
    uir_op op;
    bool always;  /* or where its dims have no axes in common */
    bool ordered; /* its loops go along its dims as they lie; else as they stand */
    uir_status (*build)(uir_lower_builder *b, uint32_t node);
} builders[] = {
    {UIR_OP_BROADCAST, false, true, build_broadcast},
    {UIR_OP_CONCAT, false, true, build_concat},
    {UIR_OP_SCAN_SUM, true, false, build_scan},
    {UIR_OP_SCAN_PROD, true, false, build_scan},
    {UIR_OP_SCATTER_ELEMENTS, true, false, build_scatter_elements},
    {UIR_OP_SCATTER_ND, true, false, build_scatter_nd},
};

uir_lower_alone *uir_lower_find_alone(const uir_module *module, const uir_node_info *node, bool related) {
    if (node->op == UIR_OP_CAST && uir_axes_shares_bytes(module, node)) return build_packed_cast;
    if (node->op == UIR_OP_PAD && uir_axes_pads_apart(module, node)) return build_pad;
    for (size_t i = 0; i < sizeof builders / sizeof *builders; i++)
        if (builders[i].op == node->op && (builders[i].always || !related)) return builders[i].build;
    return NULL;
}

bool uir_lower_is_ordered_alone(uir_lower_alone *alone) {
    for (size_t i = 0; i < sizeof builders / sizeof *builders; i++)
        if (builders[i].build == alone) return builders[i].ordered;
    return false;
}
