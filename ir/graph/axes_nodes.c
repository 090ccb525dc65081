/* Properties of single nodes that decide which of their dims are axes, or whether they have axes at all. */
#include "ir/graph/axes.h"

bool uir_axes_slice_keeps(const uir_module *module, const uir_node_info *node, uint32_t dim) {
    uint32_t count;
    uir_dim start = uir_node_dims(module, node, "starts", &count)[dim], zero = uir_dim_const(module->dims, 0);
    uir_dim size = uir_node_dims(module, node, "sizes", &count)[dim];
    uir_dim whole = uir_value_type(module, node->inputs[0])->dims[dim];
    return uir_dim_equal(start, zero) && uir_node_ints(module, node, "steps", &count)[dim] == 1 &&
           uir_dim_compare(module->dims, size, UIR_RELATION_EQ, whole) == UIR_TRUE;
}

bool uir_axes_pad_keeps(const uir_module *module, const uir_node_info *node, uint32_t dim) {
    uint32_t count;
    uir_dim zero = uir_dim_const(module->dims, 0);
    return uir_dim_equal(uir_node_dims(module, node, "low", &count)[dim], zero) &&
           uir_dim_equal(uir_node_dims(module, node, "high", &count)[dim], zero) &&
           !uir_node_ints(module, node, "interior", &count)[dim];
}

bool uir_axes_windows_repeat(const uir_module *module, const uir_node_info *node) {
    uint32_t count;
    const int64_t *dilations = uir_node_ints(module, node, "dilations", &count);
    for (uint32_t d = 0; d < count; d++)
        if (dilations[d]) return false;
    return count > 0;
}

bool uir_axes_windows_keep(const uir_module *module, const uir_node_info *node, uint32_t dim) {
    uint32_t count;
    const int64_t *axes = uir_node_ints(module, node, "axes", &count);
    for (uint32_t j = 0; j < count; j++)
        if (axes[j] == dim) return false;
    return uir_axes_slice_keeps(module, node, dim);
}

bool uir_axes_splits_channels(const uir_module *module, const uir_node_info *node) {
    const uir_type *w = uir_value_type(module, node->inputs[1]);
    int64_t groups = uir_node_int(module, node, "groups", 1), filters, channels;
    return groups > 1 && w->rank <= 4 && uir_dim_is_const(module->dims, w->dims[0], &filters) &&
           uir_dim_is_const(module->dims, w->dims[1], &channels) && filters > groups && filters % groups == 0 &&
           channels > 1;
}

bool uir_axes_pads_apart(const uir_module *module, const uir_node_info *node) {
    uint32_t count;
    const uir_type *from = uir_value_type(module, node->inputs[0]), *to = uir_value_type(module, node->outputs[0]);
    const int64_t *interior = uir_node_ints(module, node, "interior", &count);
    for (uint32_t d = 0; d < count; d++) {
        int64_t one;
        if (interior[d]) return true;
        if (uir_dim_is_const(module->dims, from->dims[d], &one) && one == 1 &&
            !uir_dim_equal(from->dims[d], to->dims[d]))
            return true;
    }
    return false;
}

bool uir_axes_shares_bytes(const uir_module *module, const uir_node_info *node) {
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i].id && uir_dtype_bits(uir_value_type(module, node->inputs[i])->dtype) < 8) return true;
    for (uint32_t i = 0; i < node->output_count; i++)
        if (node->outputs[i].id && uir_dtype_bits(uir_value_type(module, node->outputs[i])->dtype) < 8) return true;
    return false;
}
