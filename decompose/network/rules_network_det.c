/* Det: elimination with the greatest of a column as pivot, all matrices abreast; a turn of a loop for each column. */
#include "decompose/math/rules_math.h"
#include "decompose/network/rules_network.h"

/* `places` [B, n] of rows: the matrices [B, n, n] with their rows in that order. */
static uir_value_id take_rows(uir_builder *b, uir_value_id matrices, uir_value_id places, const uir_dim *dims) {
    const int64_t column = 2;
    const uir_attribute axis = uir_attribute_int(b, "axis", 1);
    uir_value_id result = {0}, at = uir_build_broadcast(b, uir_build_unsqueeze(b, places, &column, 1), dims, 3);
    uir_build_node(b, UIR_OP_GATHER_ELEMENTS, (uir_value_id[]){matrices, at}, 2, &axis, 1, &result, 1);
    return result;
}

/* Column k: the row of its greatest element from k on comes to row k, and is taken off those below. */
static uir_status make_column_body(uir_rule_context *context, void *user, const uir_type *types, uint32_t type_count,
                                   uir_graph_id *out_graph) {
    const uir_dim *dims = user; /* [B, n, n] */
    uir_builder saved, *b = &context->builder;
    UIR_TRY(uir_math_begin_body(context, types, type_count, out_graph, &saved));
    const uir_value_id *inputs = uir_graph_get(b->module, *out_graph)->inputs.data;
    uir_value_id k = inputs[0], condition = inputs[1], matrices = inputs[2], determinant = inputs[3];
    const int64_t row = 1, column = 2;
    uir_value_id number = uir_build_iota(b, UIR_DTYPE_I64, &dims[1], 1, 0), pivot_row = {0};
    uir_value_id size = absolute(b, uir_build_gather(b, matrices, k, 2));
    size = uir_build_select(b, less(b, number, k), scalar_like(b, size, -1), size);
    uir_attribute attributes[] = {uir_attribute_int(b, "axis", 1), uir_attribute_int(b, "keep", 1),
                                  uir_attribute_int(b, "last", 0)};
    uir_build_node(b, UIR_OP_ARG_MAX, &size, 1, attributes, 3, &pivot_row, 1); /* [B, 1] */
    uir_value_id places = uir_build_select(b, equal(b, number, pivot_row), k, number);
    places = uir_build_select(b, equal(b, number, k), pivot_row, places);
    matrices = take_rows(b, matrices, places, dims);
    uir_value_id top = uir_build_gather(b, matrices, k, 1), left = uir_build_gather(b, matrices, k, 2); /* [B, n] */
    uir_value_id pivot = uir_build_gather(b, top, k, 1), one = scalar_like(b, pivot, 1);
    uir_value_id stays = equal(b, uir_build_squeeze(b, pivot_row, &row, 1), k);
    determinant = multiply(b, determinant, uir_build_select(b, stays, pivot, negate(b, pivot)));
    uir_value_id none = equal(b, pivot, scalar_like(b, pivot, 0)); /* then the determinant is 0 */
    uir_value_id divisor = uir_build_unsqueeze(b, uir_build_select(b, none, one, pivot), &row, 1);
    uir_value_id factor = uir_build_select(b, greater(b, number, k), divide(b, left, divisor), scalar_like(b, left, 0));
    matrices = subtract(b, matrices,
                        multiply(b, uir_build_unsqueeze(b, factor, &column, 1), uir_build_unsqueeze(b, top, &row, 1)));
    const uir_value_id outputs[3] = {condition, matrices, determinant};
    return uir_math_end_body(context, saved, outputs, 3);
}

uir_status uir_rule_det(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), results[2];
    uir_shape shape = uir_network_shape_between(context, x, "X", 2, UIR_MAX_RANK);
    if (b->status != UIR_STATUS_OK) return b->status;
    uint32_t outer = shape.rank - 2;
    if (!uir_network_same_extent(context, shape.dims[outer], "the rows", shape.dims[outer + 1], "the columns"))
        return b->status;
    uir_dim dims[3] = {uir_rule_product(context, shape.dims, outer), shape.dims[outer], shape.dims[outer]};
    uir_value_id wide = uir_build_reshape(b, uir_network_widen(b, x), dims, 3);
    uir_value_id initial[2] = {wide, uir_build_broadcast(b, scalar_like(b, wide, 1), dims, 1)};
    uir_value_id turns = uir_build_dim_values(b, &dims[1], 1, true, UIR_DTYPE_I64);
    UIR_TRY(uir_math_loop(context, turns, (uir_value_id){0}, initial, 2, make_column_body, dims, results, 2));
    uir_value_id result = uir_build_reshape(b, results[1], shape.dims, outer);
    context->outputs[0] = uir_build_cast(b, result, dtype_of(b, x));
    return b->status;
}
