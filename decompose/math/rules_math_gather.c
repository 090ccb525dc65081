/* Ops that pick, place and rearrange elements. Indices of primitives are never negative, those of ONNX may be: they are
 * normalised here. Meaning: the operator documents of ONNX. */
#include "decompose/math/rules_math.h"
#include <string.h>

uir_status uir_rule_transpose(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    uint32_t rank = uir_rule_rank(context, x);
    const int64_t *given;
    int64_t count = uir_rule_ints(context, "perm", &given);
    if (b->status != UIR_STATUS_OK) return b->status;
    if (count > 0 && count != rank)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "perm has %lld elements for rank %u", (long long)count, rank);
    int64_t perm[UIR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++) perm[d] = count > 0 ? uir_rule_axis(context, given[d], rank) : rank - 1 - d;
    context->outputs[0] = uir_build_transpose(b, x, perm);
    return b->status;
}

/* ---- gather ---- */

uir_status uir_rule_gather(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    uint32_t rank = uir_rule_rank(context, x);
    const uir_dim *extents = uir_rule_extents(context, x);
    int64_t axis = uir_rule_axis(context, uir_rule_int(context, "axis", 0), rank);
    if (b->status != UIR_STATUS_OK) return b->status;
    uir_value_id indices = uir_rule_checked_indices(context, uir_rule_input(context, 1), extents[axis]);
    if (context->op == UIR_OP_ONNX_GATHER) {
        context->outputs[0] = uir_build_gather(b, x, indices, axis);
    } else {
        uir_value_id pair[] = {x, indices};
        uir_attribute attribute = uir_attribute_int(b, "axis", axis);
        uir_build_node(b, UIR_OP_GATHER_ELEMENTS, pair, 2, &attribute, 1, context->outputs, 1);
    }
    return b->status;
}

/* Index tuples [.., k] over the axes of x from `first` on: each component is normalised by its own axis. */
static uir_value_id normal_tuples(uir_rule_context *context, uir_value_id x, uir_value_id indices, uint32_t first) {
    uir_builder *b = &context->builder;
    uint32_t rank = uir_rule_rank(context, x), index_rank = uir_rule_rank(context, indices);
    const uir_dim *extents = uir_rule_extents(context, x), *index_extents = uir_rule_extents(context, indices);
    int64_t k = 0;
    if (b->status != UIR_STATUS_OK) return indices;
    bool known = !index_rank || uir_dim_is_const(b->module->dims, index_extents[index_rank - 1], &k);
    if (!index_rank || !known || k + first > rank) {
        uir_builder_fail(b, known ? UIR_STATUS_BAD_FILE : UIR_STATUS_UNSUPPORTED,
                         "the last extent of the indices must be fixed and at most %u", rank - first);
        return indices;
    }
    uir_dim low[UIR_MAX_RANK], zero = uir_rule_dim(context, 0);
    for (int64_t d = 0; d < k; d++) low[d] = uir_dim_sub(b->module->dims, zero, extents[first + d]);
    uir_rule_check_indices(context, indices, indices, low, extents + first, (uint32_t)k);
    uir_value_id wide = uir_build_cast(b, indices, UIR_DTYPE_I64);
    uir_value_id bounds = uir_build_dim_values(b, extents + first, (uint32_t)k, false, UIR_DTYPE_I64);
    uir_value_id negative = uir_math_with(context, UIR_OP_LT, wide, 0);
    return uir_build_select(b, negative, uir_build_binary(b, UIR_OP_ADD, wide, bounds), wide);
}

uir_status uir_rule_gather_nd(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    int64_t batch = uir_rule_int(context, "batch_dims", 0);
    if (batch < 0 || batch > (int64_t)uir_rule_rank(context, x))
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "batch_dims is %lld", (long long)batch);
    uir_value_id pair[] = {x, normal_tuples(context, x, uir_rule_input(context, 1), (uint32_t)batch)};
    for (uint32_t d = 0; d < batch && d + 1 < uir_rule_rank(context, pair[1]); d++)
        pair[1] = uir_build_expect(b, pair[1], d, uir_build_extent(b, x, d));
    uir_attribute attribute = uir_attribute_int(b, "batch", batch);
    uir_build_node(b, UIR_OP_GATHER_ND, pair, 2, &attribute, 1, context->outputs, 1);
    return b->status;
}

/* ---- scatter ---- */

static const char *reduction_of(uir_rule_context *context) {
    static const char *const names[] = {"none", "add", "mul", "min", "max"};
    const char *given = uir_rule_string(context, "reduction", "none");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(given, names[i]) == 0) return names[i];
    uir_builder_fail(&context->builder, UIR_STATUS_UNSUPPORTED, "reduction '%s' is not supported", given);
    return names[0];
}

static uir_value_id scatter_elements(uir_rule_context *context, uir_value_id x, uir_value_id indices,
                                     uir_value_id updates, int64_t axis, const char *reduction) {
    uir_builder *b = &context->builder;
    for (uint32_t d = 0; d < uir_rule_rank(context, indices); d++)
        updates = uir_build_expect(b, updates, d, uir_build_extent(b, indices, d));
    uir_value_id operands[] = {x, indices, updates}, result;
    uir_attribute attributes[] = {uir_attribute_int(b, "axis", axis), uir_attribute_string(b, "reduction", reduction)};
    uir_build_node(b, UIR_OP_SCATTER_ELEMENTS, operands, 3, attributes, 2, &result, 1);
    return result;
}

uir_status uir_rule_scatter(uir_rule_context *context) {
    uir_value_id x = uir_rule_input(context, 0);
    uint32_t rank = uir_rule_rank(context, x);
    const uir_dim *extents = uir_rule_extents(context, x);
    int64_t axis = uir_rule_axis(context, uir_rule_int(context, "axis", 0), rank);
    if (context->builder.status != UIR_STATUS_OK) return context->builder.status;
    uir_value_id indices = uir_rule_checked_indices(context, uir_rule_input(context, 1), extents[axis]);
    context->outputs[0] =
        scatter_elements(context, x, indices, uir_rule_input(context, 2), axis, reduction_of(context));
    return context->builder.status;
}

uir_status uir_rule_scatter_nd(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    uir_value_id operands[] = {x, normal_tuples(context, x, uir_rule_input(context, 1), 0), uir_rule_input(context, 2)};
    uint32_t lead = uir_rule_rank(context, operands[1]) - 1, rank = uir_rule_rank(context, operands[2]),
             data = uir_rule_rank(context, x);
    for (uint32_t d = 0; b->status == UIR_STATUS_OK && d < rank && rank <= lead + data; d++)
        operands[2] = uir_build_expect(
            b, operands[2], d, d < lead ? uir_build_extent(b, operands[1], d) : uir_build_extent(b, x, d + data - rank));
    uir_attribute attribute = uir_attribute_string(b, "reduction", reduction_of(context));
    uir_build_node(b, UIR_OP_SCATTER_ND, operands, 3, &attribute, 1, context->outputs, 1);
    return b->status;
}

/* Row s of the update goes to row start[b] + s of the cache, modulo its extent in circular mode. */
uir_status uir_rule_tensor_scatter(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id cache = uir_rule_input(context, 0), update = uir_rule_input(context, 1);
    uir_value_id start = uir_rule_input(context, 2);
    uint32_t rank = uir_rule_rank(context, cache), update_rank = uir_rule_rank(context, update);
    const uir_dim *extents = uir_rule_extents(context, cache), *update_extents = uir_rule_extents(context, update);
    int64_t axis = uir_rule_axis(context, uir_rule_int(context, "axis", -2), rank);
    if (b->status != UIR_STATUS_OK) return b->status;
    if (rank != update_rank)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "the update has rank %u, the cache %u", update_rank, rank);
    bool circular = uir_rule_string_is(context, "mode", "linear", "circular");
    uir_value_id rows = uir_math_along(context, uir_math_iota(context, update_extents[axis]), (uint32_t)axis, rank);
    if (start.id) {
        uir_dim room = uir_dim_sub(b->module->dims, extents[axis], update_extents[axis]);
        if (!circular) uir_rule_check_below(context, start, start, uir_dim_add(b->module->dims, room, uir_rule_dim(context, 1)));
        start = uir_math_along(context, uir_math_vector(context, start), 0, rank);
        rows = uir_build_binary(b, UIR_OP_ADD, rows, start);
    }
    if (circular)
        rows = uir_build_binary(b, UIR_OP_MOD, rows, uir_build_dim_values(b, &extents[axis], 1, true, UIR_DTYPE_I64));
    rows = uir_build_broadcast(b, rows, update_extents, rank);
    context->outputs[0] = scatter_elements(context, cache, rows, update, axis, "none");
    return b->status;
}

/* ---- data-dependent picking ---- */

uir_status uir_rule_non_zero(uir_rule_context *context) {
    uir_value_id x = uir_rule_input(context, 0);
    uir_build_node(&context->builder, UIR_OP_NON_ZERO, &x, 1, NULL, 0, context->outputs, 1);
    return context->builder.status;
}

uir_status uir_rule_compress(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), condition = uir_rule_input(context, 1), found;
    uint32_t rank = uir_rule_rank(context, x);
    const uir_dim *extents = uir_rule_extents(context, x);
    if (!extents) return b->status;
    int64_t axis = 0;
    if (uir_rule_attribute(context, "axis")) {
        axis = uir_rule_axis(context, uir_rule_int(context, "axis", 0), rank);
    } else {
        uir_dim size = uir_rule_product(context, extents, rank);
        x = uir_build_reshape(b, x, &size, 1);
    }
    uir_build_node(b, UIR_OP_NON_ZERO, &condition, 1, NULL, 0, &found, 1);
    const uir_dim *found_extents = uir_rule_extents(context, found);
    if (!found_extents) return b->status;
    found = uir_build_reshape(b, found, &found_extents[1], 1);
    const uir_dim *picked = uir_rule_extents(context, x);
    if (picked) uir_rule_check_below(context, found, found, picked[axis]);
    context->outputs[0] = uir_build_gather(b, x, found, axis);
    return b->status;
}

enum { MOST_RANKED = 256 };

static bool can_rank(uir_rule_context *context, uir_value_id x, int64_t axis, uir_dim k) {
    const uir_type *type = uir_value_type(context->builder.module, x);
    int64_t extent, wanted;
    return uir_dim_is_const(context->builder.module->dims, type->dims[axis], &extent) && extent <= MOST_RANKED &&
           uir_dim_is_const(context->builder.module->dims, k, &wanted) && wanted >= 0 && wanted <= extent &&
           type->rank < UIR_MAX_RANK && !(uir_dtype_is_float(type->dtype) && uir_dtype_bits(type->dtype) < 16);
}

/* bool: whether element j goes before element i of the axis, laid along two axes as [.., i, j, ..]. A NaN is the
 * greatest, of equal ones the first goes before. */
static uir_value_id goes_before(uir_rule_context *context, uir_value_id x, uint32_t axis, bool largest) {
    uir_builder *b = &context->builder;
    uint32_t rank = uir_rule_rank(context, x);
    uir_value_id i = uir_math_insert_axis(context, x, axis + 1), j = uir_math_insert_axis(context, x, axis),
                 places = uir_math_iota(context, uir_build_extent(b, x, axis)),
                 earlier = uir_build_binary(b, UIR_OP_LT, uir_math_along(context, places, axis + 1, rank + 1),
                                            uir_math_along(context, places, axis, rank + 1)),
                 before = uir_build_binary(b, largest ? UIR_OP_GT : UIR_OP_LT, j, i),
                 same = uir_build_binary(b, UIR_OP_EQ, j, i);
    if (b->status == UIR_STATUS_OK && uir_dtype_is_float(uir_value_type(b->module, x)->dtype)) {
        uir_value_id nan_i = uir_build_unary(b, UIR_OP_IS_NAN, i), nan_j = uir_build_unary(b, UIR_OP_IS_NAN, j),
                     first = largest ? nan_j : nan_i, second = largest ? nan_i : nan_j;
        second = uir_build_unary(b, UIR_OP_NOT, second);
        before = uir_build_binary(b, UIR_OP_OR, before, uir_build_binary(b, UIR_OP_AND, first, second));
        same = uir_build_binary(b, UIR_OP_OR, same, uir_build_binary(b, UIR_OP_AND, nan_i, nan_j));
    }
    return uir_build_binary(b, UIR_OP_OR, before, uir_build_binary(b, UIR_OP_AND, same, earlier));
}

/* Few elements, as the experts that a router chooses from, are compared each with each: an element's place is the
 * number of those that go before it. More are the host's to sort. */
static void rank_elements(uir_rule_context *context, uir_value_id x, uint32_t axis, uir_dim k, bool largest) {
    uir_builder *b = &context->builder;
    uint32_t rank = uir_rule_rank(context, x);
    const int64_t second = axis + 1;
    uir_value_id before = uir_build_cast(b, goes_before(context, x, axis, largest), UIR_DTYPE_I32),
                 place = uir_build_reduce(b, UIR_OP_REDUCE_SUM, before, &second, 1, true),
                 index =
                     uir_math_along(context, uir_math_iota(context, uir_build_extent(b, x, axis)), axis + 1, rank + 1),
                 wanted = uir_math_along(context, uir_math_iota(context, k), axis, rank + 1), indices;
    if (b->status != UIR_STATUS_OK) return;
    place = uir_math_insert_axis(context, uir_build_squeeze(b, place, &second, 1), axis);
    uir_value_id met = uir_build_binary(b, UIR_OP_EQ, place, uir_build_cast(b, wanted, UIR_DTYPE_I32));
    indices = uir_build_select(b, met, index, uir_build_integer_scalar(b, UIR_DTYPE_I64, 0));
    indices = uir_build_reduce(b, UIR_OP_REDUCE_SUM, indices, &second, 1, false);
    uir_attribute attribute = uir_attribute_int(b, "axis", axis);
    uir_build_node(b, UIR_OP_GATHER_ELEMENTS, (uir_value_id[]){x, indices}, 2, &attribute, 1, context->outputs, 1);
    context->outputs[1] = indices;
}

uir_status uir_rule_top_k(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    uint32_t rank = uir_rule_rank(context, x), count = 1;
    int64_t axis = uir_rule_axis(context, uir_rule_int(context, "axis", -1), rank);
    uir_dim attribute_k = uir_rule_dim(context, uir_rule_int(context, "k", 0));
    const uir_dim *k = &attribute_k;
    if (context->since_version >= 10) k = uir_rule_dims(context, uir_rule_input(context, 1), 0, &count);
    if (b->status != UIR_STATUS_OK) return b->status;
    if (count != 1) return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "k has %u elements instead of 1", count);
    bool largest = uir_rule_int(context, "largest", 1) != 0, sorted = uir_rule_int(context, "sorted", 1) != 0;
    if (sorted && can_rank(context, x, axis, *k)) {
        rank_elements(context, x, (uint32_t)axis, *k, largest);
        return b->status;
    }
    uir_attribute attributes[] = {uir_attribute_int(b, "axis", axis), uir_attribute_dims(b, "k", k, 1),
                                  uir_attribute_int(b, "largest", largest), uir_attribute_int(b, "sorted", sorted)};
    uir_build_node(b, UIR_OP_TOP_K, &x, 1, attributes, 4, context->outputs, 2);
    return b->status;
}

uir_status uir_rule_unique(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), results[4];
    uir_attribute attributes[2] = {uir_attribute_int(b, "sorted", uir_rule_int(context, "sorted", 1) != 0)};
    uint32_t count = 1;
    if (uir_rule_attribute(context, "axis")) {
        int64_t axis = uir_rule_axis(context, uir_rule_int(context, "axis", 0), uir_rule_rank(context, x));
        attributes[count++] = uir_attribute_int(b, "axis", axis);
    }
    uir_build_node(b, UIR_OP_UNIQUE, &x, 1, attributes, count, results, 4);
    for (uint32_t i = 0; i < context->output_count && i < 4; i++) context->outputs[i] = results[i];
    return b->status;
}

/* A scalar operand, or the default where it is absent. */
static uir_value_id scalar_or(uir_rule_context *context, uint32_t input, uir_dtype dtype) {
    uir_builder *b = &context->builder;
    uir_value_id value = uir_rule_input(context, input);
    return value.id ? uir_build_cast(b, uir_rule_scalar(context, value), dtype) : uir_build_scalar(b, dtype, 0);
}

uir_status uir_rule_non_max_suppression(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id operands[5] = {uir_rule_input(context, 0), uir_rule_input(context, 1),
                                scalar_or(context, 2, UIR_DTYPE_I64), scalar_or(context, 3, UIR_DTYPE_F32)};
    if (uir_rule_has_input(context, 4)) operands[4] = scalar_or(context, 4, UIR_DTYPE_F32);
    uir_attribute attribute = uir_attribute_int(b, "center", uir_rule_int(context, "center_point_box", 0) != 0);
    uir_build_node(b, UIR_OP_NON_MAX_SUPPRESSION, operands, operands[4].id ? 5 : 4, &attribute, 1, context->outputs, 1);
    return b->status;
}

/* ---- rearrangement ---- */

uir_status uir_rule_depth_to_space(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    uint32_t rank = uir_rule_rank(context, x);
    const uir_dim *n = uir_rule_extents(context, x);
    int64_t size = uir_rule_int(context, "blocksize", 0);
    if (!n) return b->status;
    if (rank != 4 || size < 1 || size > INT32_MAX)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "rank %u and blocksize %lld; 4 and at least 1 are required",
                                rank, (long long)size);
    uir_dim s = uir_rule_dim(context, size);
    uir_dim depth = uir_dim_floordiv(b->module->dims, n[1], uir_rule_dim(context, size * size));
    if (uir_rule_string_is(context, "mode", "DCR", "CRD")) {
        uir_dim apart[] = {n[0], depth, s, s, n[2], n[3]};
        x = uir_build_transpose(b, uir_build_reshape(b, x, apart, 6), (int64_t[]){0, 1, 4, 2, 5, 3});
    } else {
        uir_dim apart[] = {n[0], s, s, depth, n[2], n[3]};
        x = uir_build_transpose(b, uir_build_reshape(b, x, apart, 6), (int64_t[]){0, 3, 4, 1, 5, 2});
    }
    uir_dim joined[] = {n[0], depth, uir_math_mul(context, n[2], s), uir_math_mul(context, n[3], s)};
    context->outputs[0] = uir_build_reshape(b, x, joined, 4);
    return b->status;
}

uir_status uir_rule_space_to_depth(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    uint32_t rank = uir_rule_rank(context, x);
    const uir_dim *n = uir_rule_extents(context, x);
    int64_t size = uir_rule_int(context, "blocksize", 0);
    if (!n) return b->status;
    if (rank != 4 || size < 1 || size > INT32_MAX)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "rank %u and blocksize %lld; 4 and at least 1 are required",
                                rank, (long long)size);
    uir_dim s = uir_rule_dim(context, size);
    uir_dim height = uir_dim_floordiv(b->module->dims, n[2], s), width = uir_dim_floordiv(b->module->dims, n[3], s);
    uir_dim apart[] = {n[0], n[1], height, s, width, s};
    x = uir_build_transpose(b, uir_build_reshape(b, x, apart, 6), (int64_t[]){0, 3, 5, 1, 2, 4});
    uir_dim joined[] = {n[0], uir_math_mul(context, n[1], uir_rule_dim(context, size * size)), height, width};
    context->outputs[0] = uir_build_reshape(b, x, joined, 4);
    return b->status;
}

/* The first len[b] steps of each batch entry come in reverse, the others stay. */
uir_status uir_rule_reverse_sequence(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    uint32_t rank = uir_rule_rank(context, x);
    const uir_dim *extents = uir_rule_extents(context, x);
    int64_t batch = uir_rule_axis(context, uir_rule_int(context, "batch_axis", 1), rank);
    int64_t time = uir_rule_axis(context, uir_rule_int(context, "time_axis", 0), rank);
    if (b->status != UIR_STATUS_OK) return b->status;
    if (batch == time)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "batch_axis and time_axis are both %lld", (long long)time);
    uir_rule_check_below(context, uir_rule_input(context, 1), uir_rule_input(context, 1),
                         uir_dim_add(b->module->dims, extents[time], uir_rule_dim(context, 1)));
    uir_value_id length =
        uir_math_along(context, uir_math_vector(context, uir_rule_input(context, 1)), (uint32_t)batch, rank);
    uir_value_id step = uir_math_along(context, uir_math_iota(context, extents[time]), (uint32_t)time, rank);
    uir_value_id reversed = uir_math_with(context, UIR_OP_SUB, uir_build_binary(b, UIR_OP_SUB, length, step), 1);
    uir_value_id index = uir_build_select(b, uir_build_binary(b, UIR_OP_LT, step, length), reversed, step);
    uir_value_id pair[] = {x, uir_build_broadcast(b, index, extents, rank)};
    uir_attribute attribute = uir_attribute_int(b, "axis", time);
    uir_build_node(b, UIR_OP_GATHER_ELEMENTS, pair, 2, &attribute, 1, context->outputs, 1);
    return b->status;
}

/* Each column is a block; blocks that overlap add up. An element of block (k..) at position (l..) lies at l * stride +
 * k * dilation of the padded image, whose border is cut off at the end. */
uir_status uir_rule_col2im(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_dims *dims = b->module->dims;
    uir_value_id x = uir_rule_input(context, 0);
    uint32_t rank = uir_rule_rank(context, x), spatial, block_rank;
    const uir_dim *extents = uir_rule_extents(context, x);
    const uir_dim *image = uir_rule_dims(context, uir_rule_input(context, 1), 1, &spatial);
    const uir_dim *block = uir_rule_dims(context, uir_rule_input(context, 2), 1, &block_rank);
    const int64_t *dilations, *pads, *strides;
    int64_t dilation_count = uir_rule_ints(context, "dilations", &dilations);
    int64_t pad_count = uir_rule_ints(context, "pads", &pads),
            stride_count = uir_rule_ints(context, "strides", &strides);
    if (b->status != UIR_STATUS_OK) return b->status;
    if (rank != 3 || block_rank != spatial || 2 * spatial + 2 > UIR_MAX_RANK ||
        (dilation_count >= 0 && dilation_count != spatial) || (stride_count >= 0 && stride_count != spatial) ||
        (pad_count >= 0 && pad_count != 2 * spatial))
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "the operands and attributes do not describe one image");
    uir_dim padded[UIR_MAX_RANK], positions[UIR_MAX_RANK], one = uir_rule_dim(context, 1);
    uir_value_id index = uir_build_integer_scalar(b, UIR_DTYPE_I64, 0);
    for (uint32_t d = 0; d < spatial; d++) {
        int64_t dilation = dilation_count < 0 ? 1 : dilations[d], stride = stride_count < 0 ? 1 : strides[d];
        int64_t around = pad_count < 0 ? 0 : pads[d] + pads[spatial + d];
        if (dilation < 1 || stride < 1)
            return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "a stride or dilation is below 1");
        padded[d] = uir_math_add(context, image[d], uir_rule_dim(context, around));
        uir_dim span = uir_math_mul(context, uir_math_sub(context, block[d], one), uir_rule_dim(context, dilation));
        uir_dim room = uir_math_sub(context, uir_math_sub(context, padded[d], span), one);
        positions[d] = uir_math_add(context, uir_dim_floordiv(dims, room, uir_rule_dim(context, stride)), one);
        uir_value_id k = uir_math_along(context, uir_math_iota(context, block[d]), d, 2 * spatial);
        uir_value_id l = uir_math_along(context, uir_math_iota(context, positions[d]), spatial + d, 2 * spatial);
        uir_value_id at = uir_build_binary(b, UIR_OP_ADD, uir_math_with(context, UIR_OP_MUL, k, dilation),
                                           uir_math_with(context, UIR_OP_MUL, l, stride));
        index = uir_build_binary(b, UIR_OP_MUL, index, uir_build_dim_values(b, &padded[d], 1, true, UIR_DTYPE_I64));
        index = uir_build_binary(b, UIR_OP_ADD, index, at);
    }
    uir_dim kernel = uir_rule_product(context, block, spatial);
    uir_dim columns = uir_math_mul(context, kernel, uir_rule_product(context, positions, spatial));
    uir_dim flat[] = {extents[0], uir_dim_floordiv(dims, extents[1], kernel), columns};
    uir_value_id updates = uir_build_reshape(b, x, flat, 3);
    index = uir_build_broadcast(b, uir_build_reshape(b, index, &columns, 1), flat, 3);
    flat[2] = uir_rule_product(context, padded, spatial);
    uir_value_id canvas = uir_build_broadcast(b, uir_rule_number(context, x, 0), flat, 3);
    canvas = scatter_elements(context, canvas, index, updates, 2, "add");
    uir_dim shape[UIR_MAX_RANK] = {flat[0], flat[1]};
    for (uint32_t d = 0; d < spatial; d++) shape[2 + d] = padded[d];
    canvas = uir_build_reshape(b, canvas, shape, spatial + 2);
    for (uint32_t d = 0; d < spatial && pad_count >= 0; d++)
        canvas = uir_math_cut(context, canvas, 2 + d, uir_rule_dim(context, pads[d]), image[d]);
    context->outputs[0] = canvas;
    return b->status;
}
