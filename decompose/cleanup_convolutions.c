/* Convolutions as products where a window is one element:
 *
 *   conv(x [N, C, s..], w [O, C, 1..])  ->  matmul(w [O, C], x [N, C, s]) [N, O, s..]
 *
 * without padding, strides or groups. Pixels become one axis, so that a product's columns are as many as they can be.
 */
#include "decompose/cleanup.h"

static bool all_are(const uir_module *module, const uir_dim *dims, uint32_t count, int64_t wanted) {
    int64_t value;
    for (uint32_t i = 0; i < count; i++)
        if (!uir_dim_is_const(module->dims, dims[i], &value) || value != wanted) return false;
    return true;
}

static uir_value_id as_product(void *user, uir_builder *b, const uir_node_info *node) {
    uir_module *module = user;
    const uir_value_id none = {0};
    uint32_t count, spatial;
    uir_dim dims[UIR_MAX_RANK];
    if (node->op != UIR_OP_CONV || uir_node_int(module, node, "groups", 1) != 1) return none;
    const uir_type x = *uir_value_type(module, node->inputs[0]), w = *uir_value_type(module, node->inputs[1]);
    const uir_type y = *uir_value_type(module, node->outputs[0]);
    const int64_t *strides = uir_node_ints(module, node, "strides", &spatial);
    const uir_dim *low = uir_node_dims(module, node, "low", &count),
                  *high = uir_node_dims(module, node, "high", &count);
    if (!all_are(module, w.dims + 2, spatial, 1) || !all_are(module, low, spatial, 0) ||
        !all_are(module, high, spatial, 0))
        return none;
    for (uint32_t i = 0; i < spatial; i++)
        if (strides[i] != 1) return none;
    uir_value_id image = node->inputs[0], weights = node->inputs[1];
    dims[0] = x.dims[0], dims[1] = x.dims[1], dims[2] = uir_dim_const(module->dims, 1);
    for (uint32_t i = 0; i < spatial; i++) dims[2] = uir_dim_mul(module->dims, dims[2], x.dims[i + 2]);
    image = uir_build_reshape(b, image, dims, 3);
    weights = uir_build_reshape(b, weights, w.dims, 2);
    weights = uir_build_broadcast(b, weights, (uir_dim[]){x.dims[0], w.dims[0], w.dims[1]}, 3);
    return uir_build_reshape(b, uir_build_matmul(b, weights, image, y.dtype), y.dims, y.rank);
}

uir_status uir_cleanup_shape_convolutions(uir_module *module, uir_pass_context *context) {
    uir_rewriter rewriter = {.rewrite = as_product, .user = module};
    return uir_rewrite_nodes(module, context, &rewriter);
}
