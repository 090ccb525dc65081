/* Building the primitives that rules use most; trivial ones (a reshape to the same dims) give back their operand. */
#include "ir/graph/build.h"
#include "base/dims/demand.h"
#include "ir/graph/infer/infer.h"
#include <stdio.h>
#include <string.h>

static bool failed(const uir_builder *builder) {
    return builder->status != UIR_STATUS_OK;
}

static const uir_type *type_of(const uir_builder *builder, uir_value_id a) {
    return uir_value_type(builder->module, a);
}

static uir_value_id build(uir_builder *builder, uir_op op, const uir_value_id *inputs, uint32_t input_count,
                          const uir_attribute *attributes, uint32_t attribute_count) {
    uir_value_id result = {0};
    uir_build_node(builder, op, inputs, input_count, attributes, attribute_count, &result, 1);
    return result;
}

/* ---- broadcasting ---- */

static bool equal(uir_builder *builder, uir_dim a, uir_dim b) {
    return uir_dim_equal(a, b) || uir_dim_compare(builder->module->dims, a, UIR_RELATION_EQ, b) == UIR_TRUE;
}

uir_dim uir_build_broadcast_extent(uir_builder *builder, uir_dim a, uir_dim b) {
    uir_dims *dims = builder->module->dims;
    int64_t x = -1, y = -1;
    if (failed(builder)) return UIR_DIM_NONE;
    bool a_const = uir_dim_is_const(dims, a, &x), b_const = uir_dim_is_const(dims, b, &y);
    if (equal(builder, a, b) || (b_const && y == 1)) return a;
    if (a_const && x == 1) return b;
    if (a_const && b_const) {
        uir_builder_fail(builder, UIR_STATUS_BAD_FILE, "extents %lld and %lld do not broadcast", (long long)x,
                         (long long)y);
        return UIR_DIM_NONE;
    }
    if (a_const) return a;
    if (b_const) return b;
    return uir_dim_broadcast(dims, a, b);
}

/* The dims that the operands broadcast to together. */
static uint32_t broadcast_dims(uir_builder *builder, const uir_value_id *values, uint32_t count, uint32_t skip_last,
                               uir_dim *out_dims) {
    uint32_t rank = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uir_type *type = type_of(builder, values[i]);
        if (!type->rank_known) {
            uir_builder_fail(builder, UIR_STATUS_UNSUPPORTED, "the rank of operand %u is not known", i);
            return 0;
        }
        if (type->rank < skip_last) {
            uir_builder_fail(builder, UIR_STATUS_BAD_FILE, "operand %u has rank %u", i, type->rank);
            return 0;
        }
        if (type->rank - skip_last > rank) rank = type->rank - skip_last;
    }
    for (uint32_t d = 0; d < rank; d++) {
        uir_dim dim = uir_dim_const(builder->module->dims, 1);
        for (uint32_t i = 0; i < count; i++) {
            const uir_type *type = type_of(builder, values[i]);
            uint32_t missing = rank - (type->rank - skip_last);
            if (d >= missing) dim = uir_build_broadcast_extent(builder, dim, type->dims[d - missing]);
        }
        out_dims[d] = dim;
    }
    return rank;
}

/* A result that is known to be empty is nothing to compute, and is left out with what it demands: that is asked apart.
 */
static void demand_empty(uir_builder *builder, const uir_type *from, const uir_dim *dims, uint32_t rank) {
    const uir_dim *own = from->dims;
    uint32_t own_rank = from->rank_known ? from->rank : 0; /* building moves the array that it lies in */
    char name[32];
    for (uint32_t d = 0; own_rank <= rank && d < own_rank; d++) {
        int64_t extent;
        uir_dim to = dims[rank - own_rank + d];
        if (!uir_dim_is_const(builder->module->dims, to, &extent) || extent) continue;
        snprintf(name, sizeof name, "dim %u of operand 0", d);
        uir_build_check(builder, name, own[d], UIR_RELATION_EQ, true, "that of the result", to);
    }
}

uir_value_id uir_build_broadcast(uir_builder *builder, uir_value_id a, const uir_dim *dims, uint32_t rank) {
    if (failed(builder)) return (uir_value_id){0};
    const uir_type *type = type_of(builder, a);
    bool same = type->rank_known && type->rank <= rank;
    for (uint32_t d = 0; same && d < type->rank; d++) same = equal(builder, type->dims[d], dims[rank - type->rank + d]);
    if (same && type->rank == rank) return a;
    for (uint32_t d = 0; same && d < rank - type->rank; d++) {
        int64_t extent;
        same = uir_dim_is_const(builder->module->dims, dims[d], &extent) && extent == 1;
    }
    if (same) return uir_build_reshape(builder, a, dims, rank); /* only extents of 1 are added */
    demand_empty(builder, type, dims, rank);
    uir_attribute attribute = uir_attribute_dims(builder, "dims", dims, rank);
    return build(builder, UIR_OP_BROADCAST, &a, 1, &attribute, 1);
}

/* ---- elementwise ---- */

uir_value_id uir_build_unary(uir_builder *builder, uir_op op, uir_value_id a) {
    return build(builder, op, &a, 1, NULL, 0);
}

static uir_value_id build_broadcasted(uir_builder *builder, uir_op op, uir_value_id *inputs, uint32_t count) {
    if (failed(builder)) return (uir_value_id){0};
    uir_dim dims[UIR_MAX_RANK];
    uint32_t rank = broadcast_dims(builder, inputs, count, 0, dims);
    for (uint32_t i = 0; i < count; i++) inputs[i] = uir_build_broadcast(builder, inputs[i], dims, rank);
    return build(builder, op, inputs, count, NULL, 0);
}

uir_value_id uir_build_binary(uir_builder *builder, uir_op op, uir_value_id a, uir_value_id b) {
    return build_broadcasted(builder, op, (uir_value_id[]){a, b}, 2);
}

uir_value_id uir_build_select(uir_builder *builder, uir_value_id condition, uir_value_id a, uir_value_id b) {
    return build_broadcasted(builder, UIR_OP_SELECT, (uir_value_id[]){condition, a, b}, 3);
}

uir_value_id uir_build_cast(uir_builder *builder, uir_value_id a, uir_dtype to) {
    if (failed(builder)) return (uir_value_id){0};
    if (type_of(builder, a)->dtype == to) return a;
    uir_attribute attribute = uir_attribute_dtype(builder, "to", to);
    return build(builder, UIR_OP_CAST, &a, 1, &attribute, 1);
}

/* ---- reductions ---- */

uir_value_id uir_build_reduce(uir_builder *builder, uir_op op, uir_value_id a, const int64_t *axes, uint32_t axis_count,
                              bool keep) {
    uir_attribute attributes[] = {uir_attribute_ints(builder, "axes", axes, axis_count),
                                  uir_attribute_int(builder, "keep", keep)};
    return build(builder, op, &a, 1, attributes, 2);
}

/* ---- movement ---- */

uir_value_id uir_build_reshape(uir_builder *builder, uir_value_id a, const uir_dim *dims, uint32_t rank) {
    if (failed(builder)) return (uir_value_id){0};
    const uir_type *type = type_of(builder, a);
    bool same = type->rank_known && type->rank == rank;
    for (uint32_t d = 0; same && d < rank; d++) same = uir_dim_equal(type->dims[d], dims[d]);
    if (same) return a;
    uir_attribute attribute = uir_attribute_dims(builder, "dims", dims, rank);
    return build(builder, UIR_OP_RESHAPE, &a, 1, &attribute, 1);
}

uir_value_id uir_build_transpose(uir_builder *builder, uir_value_id a, const int64_t *perm) {
    if (failed(builder)) return (uir_value_id){0};
    uint32_t rank = type_of(builder, a)->rank;
    bool same = type_of(builder, a)->rank_known;
    for (uint32_t d = 0; same && d < rank; d++) same = perm[d] == d;
    if (same) return a;
    uir_attribute attribute = uir_attribute_ints(builder, "perm", perm, rank);
    return build(builder, UIR_OP_TRANSPOSE, &a, 1, &attribute, 1);
}

uir_value_id uir_build_slice(uir_builder *builder, uir_value_id a, const uir_dim *starts, const uir_dim *sizes,
                             const int64_t *steps) {
    if (failed(builder)) return (uir_value_id){0};
    const uir_type *type = type_of(builder, a);
    bool same = type->rank_known;
    for (uint32_t d = 0; same && d < type->rank; d++) {
        int64_t start;
        same = steps[d] == 1 && uir_dim_is_const(builder->module->dims, starts[d], &start) && start == 0 &&
               uir_dim_equal(sizes[d], type->dims[d]);
    }
    if (same) return a;
    uir_attribute attributes[] = {uir_attribute_dims(builder, "starts", starts, type->rank),
                                  uir_attribute_dims(builder, "sizes", sizes, type->rank),
                                  uir_attribute_ints(builder, "steps", steps, type->rank)};
    return build(builder, UIR_OP_SLICE, &a, 1, attributes, 3);
}

uir_value_id uir_build_windows(uir_builder *builder, uir_value_id a, const uir_dim *starts, const uir_dim *sizes,
                               const int64_t *steps, const int64_t *axes, const int64_t *window,
                               const int64_t *dilations, uint32_t count) {
    if (failed(builder)) return (uir_value_id){0};
    uint32_t rank = type_of(builder, a)->rank;
    uir_attribute attributes[] = {uir_attribute_dims(builder, "starts", starts, rank),
                                  uir_attribute_dims(builder, "sizes", sizes, rank),
                                  uir_attribute_ints(builder, "steps", steps, rank),
                                  uir_attribute_ints(builder, "window", window, count),
                                  uir_attribute_ints(builder, "axes", axes, count),
                                  uir_attribute_ints(builder, "dilations", dilations, count)};
    return build(builder, UIR_OP_WINDOWS, &a, 1, attributes, 6);
}

uir_value_id uir_build_pad(uir_builder *builder, uir_value_id a, uir_value_id pad_value, const uir_dim *low,
                           const uir_dim *high, const int64_t *interior) {
    if (failed(builder)) return (uir_value_id){0};
    const uir_type *type = type_of(builder, a);
    uir_dim zero = uir_dim_const(builder->module->dims, 0);
    bool same = type->rank_known;
    for (uint32_t d = 0; same && d < type->rank; d++)
        same = !interior[d] && uir_dim_equal(low[d], zero) && uir_dim_equal(high[d], zero);
    if (same) return a;
    uir_attribute attributes[] = {uir_attribute_dims(builder, "low", low, type->rank),
                                  uir_attribute_dims(builder, "high", high, type->rank),
                                  uir_attribute_ints(builder, "interior", interior, type->rank)};
    return build(builder, UIR_OP_PAD, (uir_value_id[]){a, pad_value}, 2, attributes, 3);
}

uir_value_id uir_build_concat(uir_builder *builder, const uir_value_id *values, uint32_t count, int64_t axis) {
    if (failed(builder)) return (uir_value_id){0};
    if (count == 1) return values[0];
    uir_attribute attribute = uir_attribute_int(builder, "axis", axis);
    return build(builder, UIR_OP_CONCAT, values, count, &attribute, 1);
}

uir_value_id uir_build_gather(uir_builder *builder, uir_value_id data, uir_value_id indices, int64_t axis) {
    uir_attribute attribute = uir_attribute_int(builder, "axis", axis);
    return build(builder, UIR_OP_GATHER, (uir_value_id[]){data, indices}, 2, &attribute, 1);
}

uir_value_id uir_build_iota(uir_builder *builder, uir_dtype dtype, const uir_dim *dims, uint32_t rank, int64_t axis) {
    uir_attribute attributes[] = {uir_attribute_dims(builder, "dims", dims, rank),
                                  uir_attribute_int(builder, "axis", axis),
                                  uir_attribute_dtype(builder, "dtype", dtype)};
    return build(builder, UIR_OP_IOTA, NULL, 0, attributes, 3);
}

/* ---- what must be equal when the model runs ---- */

void uir_build_demand(uir_builder *builder, uir_value_id number, int64_t value, const char *name, size_t length) {
    uir_symbol symbol;
    uir_symbol_facts facts = {.min = value, .max = value, .multiple_of = 1};
    if (failed(builder)) return;
    builder->status = uir_dims_add_symbol(builder->module->dims, name, length, facts, &symbol);
    if (failed(builder)) return;
    uir_dim dim = uir_dim_symbol(builder->module->dims, symbol);
    uir_attribute attribute = uir_attribute_dims(builder, "dims", &dim, 1);
    uir_build_node(builder, UIR_OP_BIND_DIMS, &number, 1, &attribute, 1, NULL, 0);
}

/* The dim as a person reads it, in the arena; NULL when there is no memory. */
static const char *spell_dim(uir_builder *builder, uir_dim dim) {
    uir_text text;
    uir_string kept = {0};
    uir_text_init(&text, builder->module->allocator);
    uir_dim_print(builder->module->dims, dim, &text);
    builder->status = uir_text_status(&text);
    if (!failed(builder))
        builder->status = uir_strings_intern(&builder->module->strings, text.data, text.length, &kept);
    uir_text_deinit(&text);
    return failed(builder) ? "" : uir_string_text(&builder->module->strings, kept);
}

/* Of numbers. */
static void refuse_sizes(uir_builder *builder, const char *of, int64_t left, uir_relation relation, bool or_one,
                         const char *as, int64_t right) {
    static const int64_t one = 1;
    char message[512];
    uir_demand_describe((uir_demand_side){of, "", left}, relation, or_one ? &one : NULL,
                        (uir_demand_side){as, "", right}, message, sizeof message);
    uir_builder_fail(builder, UIR_STATUS_BAD_FILE, "%s", message);
}

void uir_build_check(uir_builder *builder, const char *of, uir_dim left, uir_relation relation, bool or_one,
                     const char *as, uir_dim right) {
    int64_t l, r;
    if (failed(builder)) return;
    uir_dims *dims = builder->module->dims;
    bool is_one = or_one && uir_dim_is_const(dims, left, &l) && l == 1;
    if (is_one || uir_dim_compare(dims, left, relation, right) == UIR_TRUE) return;
    if (uir_dim_is_const(dims, left, &l) && uir_dim_is_const(dims, right, &r)) {
        refuse_sizes(builder, of, l, relation, or_one, as, r);
        return;
    }
    uir_attribute attributes[6] = {uir_attribute_dims(builder, "left", &left, 1),
                                   uir_attribute_dims(builder, "right", &right, 1),
                                   uir_attribute_string(builder, "of", of), uir_attribute_string(builder, "as", as)};
    uint32_t count = 4;
    if (relation != UIR_RELATION_EQ)
        attributes[count++] = uir_attribute_string(builder, "relation", uir_relation_text(relation));
    if (or_one) attributes[count++] = uir_attribute_int(builder, "or_one", 1);
    uir_build_node(builder, UIR_OP_CHECK_SIZES, NULL, 0, attributes, count, NULL, 0);
}

void uir_build_equal_sizes(uir_builder *builder, uir_dim a, uir_dim b) {
    if (failed(builder) || equal(builder, a, b)) return;
    bool is_number = uir_dim_is_const(builder->module->dims, b, NULL);
    uir_build_check(builder, spell_dim(builder, a), a, UIR_RELATION_EQ, false, is_number ? "" : spell_dim(builder, b),
                    b);
}

uir_value_id uir_build_expect(uir_builder *builder, uir_value_id a, uint32_t axis, uir_dim extent) {
    uir_dim dims[UIR_MAX_RANK];
    if (failed(builder)) return (uir_value_id){0};
    uir_type type = *type_of(builder, a);
    if (!type.rank_known || axis >= type.rank || !extent.id || equal(builder, type.dims[axis], extent) ||
        uir_dim_compare(builder->module->dims, type.dims[axis], UIR_RELATION_NE, extent) == UIR_TRUE)
        return a;
    memcpy(dims, type.dims, type.rank * sizeof *dims);
    uir_build_equal_sizes(builder, dims[axis], extent);
    dims[axis] = extent;
    return uir_build_reshape(builder, a, dims, type.rank);
}

/* Two operands of a product of which both run over what is summed: a constant says more than an expression. */
static void expect_summed(uir_builder *builder, uir_value_id operands[2]) {
    if (failed(builder)) return;
    const uir_type *a = type_of(builder, operands[0]), *b = type_of(builder, operands[1]);
    if (!a->rank_known || !b->rank_known || a->rank < 2 || b->rank < 2) return;
    uint32_t columns = a->rank - 1, rows = b->rank - 2;
    uir_dim left = a->dims[columns], right = b->dims[rows];
    if (uir_dim_is_const(builder->module->dims, right, NULL))
        operands[0] = uir_build_expect(builder, operands[0], columns, right);
    else
        operands[1] = uir_build_expect(builder, operands[1], rows, left);
}

/* a [.., M, K] by one matrix b [K, N]: all rows of `a` are one matrix. */
static uir_value_id matmul_rows(uir_builder *builder, uir_value_id a, uir_value_id b, uir_dtype to) {
    uir_dims *context = builder->module->dims;
    uir_type type = *type_of(builder, a);
    uir_dim dims[UIR_MAX_RANK], flat[2] = {uir_dim_const(context, 1), type.dims[type.rank - 1]};
    for (uint32_t d = 0; d + 1 < type.rank; d++) {
        dims[d] = type.dims[d];
        flat[0] = uir_dim_mul(context, flat[0], dims[d]);
    }
    dims[type.rank - 1] = type_of(builder, b)->dims[1];
    uir_value_id rows[2] = {uir_build_reshape(builder, a, flat, 2), b};
    expect_summed(builder, rows);
    uir_attribute attribute = uir_attribute_dtype(builder, "to", to);
    uir_value_id result = build(builder, UIR_OP_MATMUL, rows, 2, &attribute, 1);
    return uir_build_reshape(builder, result, dims, type.rank);
}

uir_value_id uir_build_matmul(uir_builder *builder, uir_value_id a, uir_value_id b, uir_dtype to) {
    if (failed(builder)) return (uir_value_id){0};
    if (type_of(builder, a)->rank_known && type_of(builder, a)->rank > 2 && type_of(builder, b)->rank_known &&
        type_of(builder, b)->rank == 2)
        return matmul_rows(builder, a, b, to);
    uir_value_id inputs[2] = {a, b};
    uir_dim dims[UIR_MAX_RANK + 2];
    uint32_t rank = broadcast_dims(builder, inputs, 2, 2, dims);
    for (int i = 0; i < 2 && !failed(builder); i++) {
        const uir_type *type = type_of(builder, inputs[i]);
        dims[rank] = type->dims[type->rank - 2];
        dims[rank + 1] = type->dims[type->rank - 1];
        inputs[i] = uir_build_broadcast(builder, inputs[i], dims, rank + 2);
    }
    expect_summed(builder, inputs);
    uir_attribute attribute = uir_attribute_dtype(builder, "to", to);
    return build(builder, UIR_OP_MATMUL, inputs, 2, &attribute, 1);
}

uir_value_id uir_build_unsqueeze(uir_builder *builder, uir_value_id a, const int64_t *axes, uint32_t count) {
    if (failed(builder) || !count) return a;
    const uir_type *type = type_of(builder, a);
    uint32_t rank = type->rank + count, next = 0, from = 0;
    if (rank > UIR_MAX_RANK) {
        uir_builder_fail(builder, UIR_STATUS_UNSUPPORTED, "the result has rank %u; the maximum is %d", rank,
                         UIR_MAX_RANK);
        return (uir_value_id){0};
    }
    uir_dim dims[UIR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++) {
        bool inserted = next < count && axes[next] == d;
        if (!inserted && from == type->rank) break;
        next += inserted;
        dims[d] = inserted ? uir_dim_const(builder->module->dims, 1) : type->dims[from++];
    }
    if (next != count) {
        uir_builder_fail(builder, UIR_STATUS_BAD_FILE, "the inserted axes are not sorted within 0..%u", rank - 1);
        return (uir_value_id){0};
    }
    return uir_build_reshape(builder, a, dims, rank);
}

uir_value_id uir_build_squeeze(uir_builder *builder, uir_value_id a, const int64_t *axes, uint32_t count) {
    if (failed(builder) || !count) return a;
    const uir_type *type = type_of(builder, a);
    uir_dim dims[UIR_MAX_RANK];
    uint32_t rank = 0, next = 0;
    for (uint32_t d = 0; d < type->rank; d++) {
        if (next < count && axes[next] == d)
            next++;
        else
            dims[rank++] = type->dims[d];
    }
    if (next != count) {
        uir_builder_fail(builder, UIR_STATUS_BAD_FILE, "the removed axes are not sorted within rank %u", type->rank);
        return (uir_value_id){0};
    }
    return uir_build_reshape(builder, a, dims, rank);
}
