/* Convolutions whose windows are one element have pixels along one axis:
 *
 *   conv(x [N, C, s..], w [O, C, 1..])  ->  conv(x [N, C, prod s], w [O, C, 1]) [N, O, s..]
 *
 * without padding, strides or groups. What follows tiles one axis better than several short ones. */
#include "decompose/cleanup.h"

static bool all_are(const uir_module *module, const uir_dim *dims, uint32_t count, int64_t wanted) {
    int64_t value;
    for (uint32_t i = 0; i < count; i++)
        if (!uir_dim_is_const(module->dims, dims[i], &value) || value != wanted) return false;
    return true;
}

static uir_value_id join_pixels(void *user, uir_builder *b, const uir_node_info *node) {
    uir_module *module = user;
    const uir_value_id none = {0};
    uint32_t count, spatial;
    uir_dim dims[UIR_MAX_RANK];
    if (node->op != UIR_OP_CONV || uir_value_type(module, node->inputs[0])->rank < 4 ||
        uir_node_int(module, node, "groups", 1) != 1)
        return none;
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
    weights = uir_build_reshape(b, weights, w.dims, 3);
    const int64_t one = 1;
    const uir_dim zero = uir_dim_const(module->dims, 0);
    uir_value_id inputs[2] = {image, weights}, result = none;
    uir_attribute attributes[6] = {
        uir_attribute_int(b, "groups", 1),           uir_attribute_ints(b, "strides", &one, 1),
        uir_attribute_ints(b, "dilations", &one, 1), uir_attribute_dims(b, "low", &zero, 1),
        uir_attribute_dims(b, "high", &zero, 1),     uir_attribute_dtype(b, "to", y.dtype)};
    uir_build_node(b, UIR_OP_CONV, inputs, 2, attributes, 6, &result, 1);
    return uir_build_reshape(b, result, y.dims, y.rank);
}

uir_status uir_cleanup_shape_convolutions(uir_module *module, uir_pass_context *context) {
    uir_rewriter rewriter = {.rewrite = join_pixels, .user = module};
    return uir_rewrite_nodes(module, context, &rewriter);
}
