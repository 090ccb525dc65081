/* Pieces that the math rules share; see rules_math.h. */
#include "decompose/math/rules_math.h"

uir_value_id uir_math_with(uir_rule_context *context, uir_op op, uir_value_id a, int64_t value) {
    uir_builder *b = &context->builder;
    return uir_build_binary(b, op, a, uir_build_integer_scalar(b, UIR_DTYPE_I64, value));
}

uir_value_id uir_math_iota(uir_rule_context *context, uir_dim extent) {
    return uir_build_iota(&context->builder, UIR_DTYPE_I64, &extent, 1, 0);
}

uir_value_id uir_math_shape(uir_rule_context *context, uir_value_id value) {
    uint32_t rank = uir_rule_rank(context, value);
    const uir_dim *extents = uir_rule_extents(context, value);
    return uir_build_dim_values(&context->builder, extents, rank, false, UIR_DTYPE_I64);
}

uir_value_id uir_math_vector(uir_rule_context *context, uir_value_id value) {
    uir_builder *b = &context->builder;
    uint32_t rank = uir_rule_rank(context, value);
    if (b->status != UIR_STATUS_OK) return (uir_value_id){0};
    if (rank > 1) {
        uir_builder_fail(b, UIR_STATUS_BAD_FILE, "an operand that must be a list has rank %u", rank);
        return (uir_value_id){0};
    }
    uir_dim one = uir_rule_dim(context, 1);
    if (!rank) value = uir_build_reshape(b, value, &one, 1);
    return uir_build_cast(b, value, UIR_DTYPE_I64);
}

uir_value_id uir_math_along(uir_rule_context *context, uir_value_id vector, uint32_t axis, uint32_t rank) {
    int64_t axes[UIR_MAX_RANK];
    uint32_t count = 0;
    for (uint32_t d = 0; d < rank && d < UIR_MAX_RANK; d++)
        if (d != axis) axes[count++] = d;
    return uir_build_unsqueeze(&context->builder, vector, axes, count);
}

bool uir_math_known(uir_rule_context *context, uir_value_id value) {
    if (!value.id || context->builder.status != UIR_STATUS_OK) return false;
    return uir_rule_constant(context, value) || uir_value_info_get(context->builder.module, value)->elements_known;
}

int64_t uir_math_count(uir_rule_context *context, uir_value_id value) {
    uint32_t rank = uir_rule_rank(context, value);
    const uir_dim *extents = uir_rule_extents(context, value);
    int64_t count = -1;
    if (!extents || rank > 1) return -1;
    if (!rank) return 1;
    return uir_dim_is_const(context->builder.module->dims, extents[0], &count) ? count : -1;
}

uir_value_id uir_math_reshape_to(uir_rule_context *context, uir_value_id value, uir_value_id shape) {
    uint32_t rank;
    const uir_dim *dims = uir_rule_dims(context, shape, 0, &rank);
    return uir_build_reshape(&context->builder, value, dims, rank);
}

/* bool [axes, rank]: which axis each entry names. */
static uir_value_id axis_matches(uir_rule_context *context, uir_value_id axes, uint32_t rank) {
    uir_builder *b = &context->builder;
    axes = uir_rule_indices(context, uir_math_vector(context, axes), uir_rule_dim(context, rank));
    uir_value_id all = uir_math_iota(context, uir_rule_dim(context, rank));
    return uir_build_binary(b, UIR_OP_EQ, uir_math_along(context, axes, 0, 2), all);
}

uir_value_id uir_math_axis_mask(uir_rule_context *context, uir_value_id axes, uint32_t rank) {
    int64_t axis = 0;
    return uir_build_reduce(&context->builder, UIR_OP_REDUCE_MAX, axis_matches(context, axes, rank), &axis, 1, false);
}

uir_value_id uir_math_per_axis(uir_rule_context *context, uir_value_id axes, uir_value_id values, uir_value_id fallback,
                               uint32_t rank) {
    uir_builder *b = &context->builder;
    uir_value_id column = uir_math_along(context, uir_math_vector(context, values), 0, 2);
    uir_value_id zero = uir_build_integer_scalar(b, UIR_DTYPE_I64, 0);
    uir_value_id placed = uir_build_select(b, axis_matches(context, axes, rank), column, zero);
    int64_t axis = 0;
    placed = uir_build_reduce(b, UIR_OP_REDUCE_SUM, placed, &axis, 1, false);
    return uir_build_select(b, uir_math_axis_mask(context, axes, rank), placed, fallback);
}

static uir_status make_branch(uir_rule_context *context, uir_value_id value, uint32_t axis,
                              uir_value_id (*step)(uir_rule_context *, uir_value_id, uint32_t),
                              uir_graph_id *out_graph) {
    uir_builder saved;
    UIR_TRY(uir_math_begin_body(context, NULL, 0, out_graph, &saved));
    uir_value_id result = step ? step(context, value, axis) : value;
    return uir_math_end_body(context, saved, &result, 1);
}

uir_value_id uir_math_where_masked(uir_rule_context *context, uir_value_id value, uir_value_id mask, uint32_t rank,
                                   uir_value_id (*step)(uir_rule_context *context, uir_value_id value, uint32_t axis)) {
    uir_builder *b = &context->builder;
    for (uint32_t axis = 0; axis < rank && b->status == UIR_STATUS_OK; axis++) {
        uir_value_id index = uir_build_integer_scalar(b, UIR_DTYPE_I64, axis);
        uir_value_id named = uir_build_gather(b, mask, index, 0);
        uir_graph_id branches[2] = {{0}, {0}};
        uir_status status = make_branch(context, value, axis, step, &branches[0]);
        if (status == UIR_STATUS_OK) status = make_branch(context, value, axis, NULL, &branches[1]);
        if (status != UIR_STATUS_OK) b->status = status;
        uir_attribute attributes[] = {uir_attribute_graph(b, "then", branches[0]),
                                      uir_attribute_graph(b, "else", branches[1])};
        uir_build_node(b, UIR_OP_IF, &named, 1, attributes, 2, &value, 1);
    }
    return value;
}

uir_value_id uir_math_take(uir_rule_context *context, uir_value_id value, uir_value_id indices, uint32_t axis) {
    return uir_build_gather(&context->builder, value, indices, axis);
}

uir_value_id uir_math_cut(uir_rule_context *context, uir_value_id value, uint32_t axis, uir_dim start, uir_dim size) {
    uint32_t rank = uir_rule_rank(context, value);
    const uir_dim *extents = uir_rule_extents(context, value);
    uir_dim starts[UIR_MAX_RANK], sizes[UIR_MAX_RANK];
    int64_t steps[UIR_MAX_RANK];
    for (uint32_t d = 0; extents && d < rank; d++) {
        starts[d] = d == axis ? start : uir_rule_dim(context, 0);
        sizes[d] = d == axis ? size : extents[d];
        steps[d] = 1;
    }
    return uir_build_slice(&context->builder, value, starts, sizes, steps);
}

uir_value_id uir_math_insert_axis(uir_rule_context *context, uir_value_id value, uint32_t axis) {
    int64_t place = axis;
    return uir_build_unsqueeze(&context->builder, value, &place, 1);
}

/* Extent j of the result is that of the j-th axis that stays: the one whose count of staying axes before it is j. */
uir_value_id uir_math_drop_masked(uir_rule_context *context, uir_value_id value, uir_value_id mask, uint32_t removed) {
    uir_builder *b = &context->builder;
    uint32_t rank = uir_rule_rank(context, value);
    if (removed > rank) {
        uir_builder_fail(b, UIR_STATUS_BAD_FILE, "%u axes cannot be removed from rank %u", removed, rank);
        return (uir_value_id){0};
    }
    uir_value_id stays = uir_build_unary(b, UIR_OP_NOT, mask);
    uir_value_id ones = uir_build_cast(b, stays, UIR_DTYPE_I64), before;
    uir_attribute attributes[] = {uir_attribute_int(b, "axis", 0), uir_attribute_int(b, "exclusive", 1),
                                  uir_attribute_int(b, "reverse", 0)};
    uir_build_node(b, UIR_OP_SCAN_SUM, &ones, 1, attributes, 3, &before, 1);
    uir_value_id rows = uir_math_along(context, uir_math_iota(context, uir_rule_dim(context, rank - removed)), 0, 2);
    uir_value_id match = uir_build_binary(b, UIR_OP_AND, uir_build_binary(b, UIR_OP_EQ, rows, before), stays);
    uir_value_id zero = uir_build_integer_scalar(b, UIR_DTYPE_I64, 0);
    uir_value_id picked = uir_build_select(b, match, uir_math_shape(context, value), zero);
    int64_t axis = 1;
    return uir_math_reshape_to(context, value, uir_build_reduce(b, UIR_OP_REDUCE_SUM, picked, &axis, 1, false));
}
