/* Ops that read, make or change shapes and make tensors from them. Meaning: the operator documents of ONNX. */
#include "decompose/math/rules_math.h"
#include <stdio.h>

uir_status uir_rule_shape(uir_rule_context *context) {
    uir_value_id x = uir_rule_input(context, 0);
    int64_t rank = uir_rule_rank(context, x);
    const uir_dim *extents = uir_rule_extents(context, x);
    if (!extents) return context->builder.status;
    int64_t start = uir_rule_int(context, "start", 0), end = uir_rule_int(context, "end", rank);
    if (start < 0) start += rank;
    if (end < 0) end += rank;
    start = start < 0 ? 0 : start > rank ? rank : start;
    end = end < start ? start : end > rank ? rank : end;
    context->outputs[0] =
        uir_build_dim_values(&context->builder, extents + start, (uint32_t)(end - start), false, UIR_DTYPE_I64);
    return context->builder.status;
}

uir_status uir_rule_size(uir_rule_context *context) {
    uir_value_id x = uir_rule_input(context, 0);
    uint32_t rank = uir_rule_rank(context, x);
    const uir_dim *extents = uir_rule_extents(context, x);
    if (!extents) return context->builder.status;
    uir_dim size = uir_rule_product(context, extents, rank);
    context->outputs[0] = uir_build_dim_values(&context->builder, &size, 1, true, UIR_DTYPE_I64);
    return context->builder.status;
}

uir_status uir_rule_identity(uir_rule_context *context) {
    context->outputs[0] = uir_rule_input(context, 0);
    return context->builder.status;
}

/* ---- reshape ---- */

typedef struct factors {
    uir_dim items[8 * UIR_MAX_RANK];
    uint32_t count;
} factors;

/* Adds the factors of a dim; false when there are too many to keep. */
static bool add_factors(uir_rule_context *context, factors *list, uir_dim dim) {
    const uir_dim_node *node = uir_dim_get(context->builder.module->dims, dim);
    uint32_t count = node->kind == UIR_DIM_MUL ? node->count : 1;
    if (list->count + count > sizeof list->items / sizeof *list->items) return false;
    for (uint32_t i = 0; i < count; i++)
        list->items[list->count++] = node->kind == UIR_DIM_MUL ? node->operands[i] : dim;
    return true;
}

/* all / some, where common factors cancel so that a size of zero among them divides nothing. */
static uir_dim divide(uir_rule_context *context, const uir_dim *all, uint32_t all_count, const uir_dim *some,
                      uint32_t some_count) {
    uir_dims *dims = context->builder.module->dims;
    factors above = {.count = 0}, below = {.count = 0};
    bool kept = true;
    for (uint32_t i = 0; i < all_count && kept; i++) kept = add_factors(context, &above, all[i]);
    for (uint32_t i = 0; i < some_count && kept; i++) kept = add_factors(context, &below, some[i]);
    if (!kept)
        return uir_dim_floordiv(dims, uir_rule_product(context, all, all_count),
                                uir_rule_product(context, some, some_count));
    for (uint32_t i = 0; i < below.count;) {
        uint32_t at = 0;
        while (at < above.count && !uir_dim_equal(above.items[at], below.items[i])) at++;
        if (at == above.count) {
            i++;
            continue;
        }
        above.items[at] = above.items[--above.count];
        below.items[i] = below.items[--below.count];
    }
    uir_dim product = uir_rule_product(context, above.items, above.count);
    if (!below.count) return product;
    return uir_dim_floordiv(dims, product, uir_rule_product(context, below.items, below.count));
}

/* The shape given as dims: 0 copies (unless allowzero), -1 is what is left over. */
static void reshape_known(uir_rule_context *context, uir_value_id x, const uir_dim *given, uint32_t count) {
    uir_builder *b = &context->builder;
    uint32_t rank = uir_rule_rank(context, x), others = 0, unknown = UIR_MAX_RANK;
    const uir_dim *extents = uir_rule_extents(context, x);
    bool allow_zero = uir_rule_int(context, "allowzero", 0) != 0;
    uir_dim dims[UIR_MAX_RANK], rest[UIR_MAX_RANK];
    if (count > UIR_MAX_RANK)
        uir_builder_fail(b, UIR_STATUS_UNSUPPORTED, "the result has rank %u; at most %d is supported", count,
                         UIR_MAX_RANK);
    for (uint32_t i = 0; i < count && b->status == UIR_STATUS_OK; i++) {
        int64_t value = 1;
        bool constant = uir_dim_is_const(b->module->dims, given[i], &value);
        dims[i] = given[i];
        if (constant && value == 0 && !allow_zero) {
            if (i >= rank)
                uir_builder_fail(b, UIR_STATUS_BAD_FILE, "element %u of the shape is 0, but the input has rank %u", i,
                                 rank);
            else
                dims[i] = extents[i];
        } else if (constant && value == -1 && unknown == UIR_MAX_RANK) {
            unknown = i;
            continue;
        } else if (constant && value < 0) {
            uir_builder_fail(b, UIR_STATUS_BAD_FILE, "element %u of the shape is %lld", i, (long long)value);
        }
        rest[others++] = dims[i];
    }
    if (b->status != UIR_STATUS_OK) return;
    if (unknown != UIR_MAX_RANK) {
        for (uint32_t i = 0; i < others; i++)
            if (uir_math_is(context, rest[i], 0)) {
                uir_builder_fail(b, UIR_STATUS_BAD_FILE, "the shape has both 0 and -1: the size is undetermined");
                return;
            }
        dims[unknown] = divide(context, extents, rank, rest, others);
    }
    context->outputs[0] = uir_build_reshape(b, x, dims, count);
}

/* The same as arithmetic on data. */
static void reshape_unknown(uir_rule_context *context, uir_value_id x, uir_value_id shape, uint32_t count) {
    uir_builder *b = &context->builder;
    uint32_t rank = uir_rule_rank(context, x);
    const uir_dim *extents = uir_rule_extents(context, x);
    if (count > UIR_MAX_RANK) {
        uir_builder_fail(b, UIR_STATUS_UNSUPPORTED, "the result has rank %u; at most %d is supported", count,
                         UIR_MAX_RANK);
        return;
    }
    uir_dim copied[UIR_MAX_RANK], size = uir_rule_product(context, extents, rank);
    for (uint32_t i = 0; i < count; i++) copied[i] = extents && i < rank ? extents[i] : uir_rule_dim(context, 1);
    shape = uir_math_vector(context, shape);
    if (!uir_rule_int(context, "allowzero", 0)) {
        uir_value_id zero = uir_math_with(context, UIR_OP_EQ, shape, 0);
        shape = uir_build_select(b, zero, uir_build_dim_values(b, copied, count, false, UIR_DTYPE_I64), shape);
    }
    uir_value_id unknown = uir_math_with(context, UIR_OP_EQ, shape, -1);
    uir_value_id one = uir_build_integer_scalar(b, UIR_DTYPE_I64, 1);
    int64_t axis = 0;
    uir_value_id rest =
        uir_build_reduce(b, UIR_OP_REDUCE_PROD, uir_build_select(b, unknown, one, shape), &axis, 1, false);
    uir_value_id left = uir_build_binary(b, UIR_OP_DIV, uir_build_dim_values(b, &size, 1, true, UIR_DTYPE_I64), rest);
    context->outputs[0] = uir_math_reshape_to(context, x, uir_build_select(b, unknown, left, shape));
}

uir_status uir_rule_reshape(uir_rule_context *context) {
    uir_value_id x = uir_rule_input(context, 0), shape = uir_rule_input(context, 1);
    uint32_t count;
    if (context->since_version < 5) {
        const int64_t *integers;
        int64_t given = uir_rule_ints(context, "shape", &integers);
        uir_dim *dims = given < 0 ? NULL : uir_rule_allocate(context, (size_t)given + 1, sizeof *dims);
        for (int64_t i = 0; dims && i < given; i++) dims[i] = uir_rule_dim(context, integers[i]);
        if (given < 0) return uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "attribute shape is missing");
        if (dims) reshape_known(context, x, dims, (uint32_t)given);
        return context->builder.status;
    }
    if (!shape.id) return uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "input shape is missing");
    int64_t elements = uir_math_count(context, shape);
    if (context->builder.status != UIR_STATUS_OK) return context->builder.status;
    if (uir_math_known(context, shape)) {
        const uir_dim *given = uir_rule_dims(context, shape, -1, &count);
        if (given) reshape_known(context, x, given, count);
    } else if (elements < 0) {
        return uir_builder_fail(&context->builder, UIR_STATUS_UNSUPPORTED,
                                "the rank of the result is only known when the model runs");
    } else {
        reshape_unknown(context, x, shape, (uint32_t)elements);
    }
    return context->builder.status;
}

uir_status uir_rule_flatten(uir_rule_context *context) {
    uir_value_id x = uir_rule_input(context, 0);
    int64_t rank = uir_rule_rank(context, x), axis = uir_rule_int(context, "axis", 1);
    const uir_dim *extents = uir_rule_extents(context, x);
    if (!extents) return context->builder.status;
    if (axis < 0) axis += rank;
    if (axis < 0 || axis > rank)
        return uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "axis is outside -%lld..%lld", (long long)rank,
                                (long long)rank);
    uir_dim dims[] = {uir_rule_product(context, extents, (uint32_t)axis),
                      uir_rule_product(context, extents + axis, (uint32_t)(rank - axis))};
    context->outputs[0] = uir_build_reshape(&context->builder, x, dims, 2);
    return context->builder.status;
}

/* ---- extent-1 axes ---- */

uir_status uir_rule_squeeze(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), data_axes = uir_rule_input(context, 1);
    uint32_t rank = uir_rule_rank(context, x), count = 0;
    const uir_dim *extents = uir_rule_extents(context, x);
    if (!extents) return b->status;
    if (data_axes.id && !uir_rule_constant(context, data_axes)) {
        int64_t removed = uir_math_count(context, data_axes);
        if (removed < 0)
            return uir_builder_fail(b, UIR_STATUS_UNSUPPORTED,
                                    "the rank of the result is only known when the model runs");
        uir_value_id mask = uir_math_axis_mask(context, data_axes, rank);
        context->outputs[0] = uir_math_drop_masked(context, x, mask, (uint32_t)removed);
        return b->status;
    }
    const int64_t *axes;
    int64_t ones[UIR_MAX_RANK];
    if (!uir_rule_axes(context, "axes", 1, rank, &axes, &count)) {
        for (uint32_t d = 0; d < rank; d++)
            if (uir_math_is(context, extents[d], 1)) ones[count++] = d;
        axes = ones;
    }
    if (b->status == UIR_STATUS_OK) context->outputs[0] = uir_build_squeeze(b, x, axes, count);
    return b->status;
}

uir_status uir_rule_unsqueeze(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), data_axes = uir_rule_input(context, 1);
    uint32_t rank = uir_rule_rank(context, x), count;
    const int64_t *axes;
    int64_t inserted = data_axes.id ? uir_math_count(context, data_axes) : uir_rule_ints(context, "axes", &axes);
    if (b->status != UIR_STATUS_OK) return b->status;
    if (inserted < 0 || inserted + rank > UIR_MAX_RANK)
        return uir_builder_fail(b, UIR_STATUS_UNSUPPORTED,
                                inserted < 0 ? "the number of inserted axes is only known when the model runs"
                                             : "the result has too many axes");
    uint32_t result_rank = rank + (uint32_t)inserted;
    if (!data_axes.id || uir_rule_constant(context, data_axes)) {
        if (!uir_rule_axes(context, "axes", 1, result_rank, &axes, &count)) return b->status;
        if (count != inserted) return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "an axis is named twice");
        context->outputs[0] = uir_build_unsqueeze(b, x, axes, count);
        return b->status;
    }
    /* Extent j is 1 where an axis is new, else that of the next axis of the input. */
    uir_value_id mask = uir_math_axis_mask(context, data_axes, result_rank);
    uir_value_id old = uir_build_cast(b, uir_build_unary(b, UIR_OP_NOT, mask), UIR_DTYPE_I64), before;
    uir_attribute attributes[] = {uir_attribute_int(b, "axis", 0), uir_attribute_int(b, "exclusive", 1),
                                  uir_attribute_int(b, "reverse", 0)};
    uir_build_node(b, UIR_OP_SCAN_SUM, &old, 1, attributes, 3, &before, 1);
    uir_value_id one = uir_build_integer_scalar(b, UIR_DTYPE_I64, 1), shape = one;
    if (rank) {
        before = uir_math_with(context, UIR_OP_MIN, before, (int64_t)rank - 1);
        shape = uir_build_gather(b, uir_math_shape(context, x), before, 0);
    }
    context->outputs[0] = uir_math_reshape_to(context, x, uir_build_select(b, mask, one, shape));
    return b->status;
}

/* ---- repetition ---- */

/* The extent that x's extent and the wanted one broadcast to: 1 gives way, a constant decides, else it is found at run
 * time. */
static uir_dim expanded(uir_rule_context *context, uir_dim own, uint32_t axis, uir_dim wanted, uint32_t place) {
    uir_dims *dims = context->builder.module->dims;
    char size[40], extent[40];
    if (uir_math_is(context, own, 1)) return wanted;
    if (uir_math_is(context, wanted, 1) || uir_dim_compare(dims, own, UIR_RELATION_EQ, wanted) == UIR_TRUE) return own;
    uir_dim result = uir_dim_broadcast(dims, own, wanted);
    snprintf(size, sizeof size, "size %u of the shape", place);
    snprintf(extent, sizeof extent, "dim %u of operand 0", axis);
    uir_build_check(&context->builder, size, wanted, UIR_RELATION_EQ, true,
                    uir_dim_is_const(dims, own, NULL) ? extent : "the broadcast size", result);
    return result;
}

/* A shape of a length that is not declared: that of the declared rank of the result, else x's rank, and no longer when
 * it runs. The ones that it lacks are put before it. */
static uir_value_id shape_of_some_length(uir_rule_context *context, uir_value_id shape, uint32_t rank) {
    uir_builder *b = &context->builder;
    const uir_type *declared = uir_value_type(context->source, context->node->outputs[0]);
    uir_dim most = uir_rule_dim(context, declared->rank_known && declared->rank > rank ? declared->rank : rank);
    uir_dim length = uir_build_extent(b, shape, 0);
    if (!declared->rank_known || declared->rank <= rank) {
        uir_value_id one = uir_build_integer_scalar(b, uir_rule_dtype(context, shape), 1);
        uir_value_id parts[2] = {uir_build_broadcast(b, one, &most, 1), shape};
        uir_build_equal_sizes(b, uir_dim_max(b->module->dims, length, most), most);
        return uir_math_cut(context, uir_build_concat(b, parts, 2, 0), 0, length, most);
    }
    return uir_build_expect(b, shape, 0, most);
}

uir_status uir_rule_expand(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), wanted_shape = uir_rule_input(context, 1);
    uint32_t rank = uir_rule_rank(context, x), count;
    const uir_dim *extents = uir_rule_extents(context, x);
    if (extents && uir_math_count(context, wanted_shape) < 0 && uir_rule_rank(context, wanted_shape) == 1)
        wanted_shape = shape_of_some_length(context, wanted_shape, rank);
    const uir_dim *shape = uir_rule_dims(context, wanted_shape, 0, &count);
    uint32_t result_rank = rank > count ? rank : count;
    if (b->status != UIR_STATUS_OK) return b->status;
    if (result_rank > UIR_MAX_RANK)
        return uir_builder_fail(b, UIR_STATUS_UNSUPPORTED, "the result has rank %u; at most %d is supported",
                                result_rank, UIR_MAX_RANK);
    uir_dim dims[UIR_MAX_RANK];
    for (uint32_t d = 0; d < result_rank; d++) {
        int64_t own = (int64_t)d - (result_rank - rank), wanted = (int64_t)d - (result_rank - count);
        if (own < 0)
            dims[d] = shape[wanted];
        else if (wanted < 0)
            dims[d] = extents[own];
        else
            dims[d] = expanded(context, extents[own], (uint32_t)own, shape[wanted], (uint32_t)wanted);
    }
    context->outputs[0] = uir_build_broadcast(b, x, dims, result_rank);
    return b->status;
}

/* Of opset 1: so many times along one axis; both are numbers of any type, for the run to tell or constant. */
static uir_value_id repeats_along_axis(uir_rule_context *context, uint32_t rank) {
    uir_builder *b = &context->builder;
    uir_value_id tiles = uir_rule_input(context, 1), axis = uir_rule_input(context, 2);
    if (!tiles.id || !axis.id) {
        uir_builder_fail(b, UIR_STATUS_BAD_FILE, "Tile of version 1 needs the inputs tiles and axis");
        return tiles;
    }
    tiles = uir_build_cast(b, uir_rule_scalar(context, tiles), UIR_DTYPE_I64);
    axis = uir_build_cast(b, uir_rule_scalar(context, axis), UIR_DTYPE_I64);
    axis = uir_rule_checked_indices(context, axis, uir_rule_dim(context, rank));
    uir_value_id chosen = uir_build_binary(b, UIR_OP_EQ, uir_math_iota(context, uir_rule_dim(context, rank)), axis);
    return uir_build_select(b, chosen, tiles, uir_build_integer_scalar(b, UIR_DTYPE_I64, 1));
}

uir_status uir_rule_tile(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), times = uir_rule_input(context, 1);
    uint32_t rank = uir_rule_rank(context, x), count;
    const uir_dim *extents = uir_rule_extents(context, x);
    if (context->since_version < 6) times = repeats_along_axis(context, rank);
    const uir_dim *repeats = uir_rule_dims(context, times, 0, &count);
    if (b->status != UIR_STATUS_OK) return b->status;
    if (context->since_version >= 6 && uir_rule_has_input(context, 2))
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "3 inputs; version %d of the op has 2", context->since_version);
    if (count != rank)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "%u repeats for a tensor of rank %u", count, rank);
    uir_value_id result = x;
    /* One axis at a time keeps the rank within the limit: [.., 1, d, ..] -> [.., r, d, ..] -> [.., r*d, ..]. */
    for (uint32_t d = 0; d < rank; d++) {
        if (uir_math_is(context, repeats[d], 1)) continue;
        const uir_dim *now = uir_rule_extents(context, result);
        if (!now) return b->status;
        uir_dim apart[3] = {uir_rule_product(context, now, d), uir_rule_dim(context, 1),
                            uir_rule_product(context, now + d, rank - d)};
        uir_dim joined[UIR_MAX_RANK];
        for (uint32_t k = 0; k < rank; k++) joined[k] = now[k];
        joined[d] = uir_math_mul(context, extents[d], repeats[d]);
        result = uir_build_reshape(b, result, apart, 3);
        apart[1] = repeats[d];
        result = uir_build_reshape(b, uir_build_broadcast(b, result, apart, 3), joined, rank);
    }
    context->outputs[0] = result;
    return b->status;
}
