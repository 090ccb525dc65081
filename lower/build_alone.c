/* Nodes whose dims have no axes in common: each is a group of its own, built by its dims. */
#include "lower/internal.h"

#include <stdio.h>
#include <string.h>

/* A broadcast that only the run decides: a dim of one element is read at 0, which a size of 0 or 1 says. */
uir_status uir_lower_broadcast_alone(uir_lower_builder *b, uint32_t node) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    const uir_type *from = uir_value_type(b->module, info->inputs[0]),
                   *to = uir_value_type(b->module, info->outputs[0]);
    uir_dims *outside = b->module->dims;
    uir_dim extents[UIR_LOOP_MAX_RANK], result[UIR_LOOP_MAX_RANK], coords[UIR_LOOP_MAX_RANK], at[UIR_LOOP_MAX_RANK];
    uint32_t x, y, expression;
    uir_nest nest;
    uir_loop_access target = {0};
    if (to->rank > UIR_LOOP_MAX_RANK || uir_lower_input_index(b, info->inputs[0]) == UIR_LOWER_NONE)
        return uir_lower_refuse(b, node, "more than %d dims", UIR_LOOP_MAX_RANK);
    for (uint32_t d = 0; d < from->rank; d++) UIR_TRY(uir_lower_extent(b, from->dims[d], &extents[d]));
    for (uint32_t d = 0; d < to->rank; d++) UIR_TRY(uir_lower_extent(b, to->dims[d], &result[d]));
    UIR_TRY(uir_loop_add_tensor(b->f, "x0", from->dtype, UIR_LOOP_ROLE_IN, 0, extents, from->rank, &x));
    UIR_TRY(uir_loop_add_tensor(b->f, "y0", to->dtype, UIR_LOOP_ROLE_OUT, 0, result, to->rank, &y));
    uir_nest_begin(&nest, b->f, b->arena, "b0");
    for (uint32_t d = 0; d < to->rank; d++) {
        char name[16];
        snprintf(name, sizeof name, "v%u", d);
        UIR_TRY(uir_nest_add_iter(&nest, name, result[d], false, &coords[d]));
    }
    for (uint32_t d = 0; d < from->rank; d++) {
        uint32_t of = d + to->rank - from->rank;
        uir_dim one = uir_dim_const(outside, 1), moves;
        at[d] = coords[of];
        if (uir_dim_compare(outside, from->dims[d], UIR_RELATION_EQ, to->dims[of]) == UIR_TRUE) continue;
        moves = uir_dim_max(outside, uir_dim_const(outside, 0),
                            uir_dim_min(outside, one, uir_dim_sub(outside, from->dims[d], one)));
        UIR_TRY(uir_lower_dim(b, moves, &moves));
        at[d] = uir_dim_mul(b->f->dims, coords[of], moves);
        if (!at[d].id) return UIR_STATUS_OUT_OF_MEMORY;
    }
    UIR_TRY(uir_loop_add_load(b->f, x, at, &expression));
    b->f->expressions.data[expression].has_fill = true; /* what the extents say is not proved */
    target.tensor = y;
    for (uint32_t d = 0; d < to->rank; d++) target.indices[d] = coords[d];
    UIR_TRY(uir_nest_add_statement(&nest, UIR_LOOP_STATEMENT_STORE, 0, &target, 1, &expression, 1));
    return uir_nest_end(&nest, UIR_LOOP_NONE, NULL);
}
