/* Small constants computed while the graph is built: what decides structure (axes, pads, sizes, conditions) is often
 * the result of a few nodes over constants. Each node is looked at once, as it is added, so there is no recursion. */
#include "decompose/decomposer.h"
#include "ir/graph/constants.h"

/* More elements than this decide no structure; the clean-up pass folds them later. */
#define EVALUATION_LIMIT 4096

static uir_status remember(uir_decomposer *d, uir_value_id value, uir_tensor *tensor) {
    while (d->evaluated.count <= value.id) UIR_TRY(uir_vector_push(d->scratch, &d->evaluated, NULL));
    d->evaluated.data[value.id] = tensor;
    return UIR_STATUS_OK;
}

static uir_status tensor_of_elements(uir_decomposer *d, uir_value_id value, uir_tensor **out_tensor) {
    const uir_value_info *info = uir_value_info_get(d->target, value);
    int64_t count = info->element_count, number;
    for (uint32_t i = 0; i < info->element_count; i++)
        if (!uir_dim_is_const(d->target->dims, info->elements[i], &number)) return UIR_STATUS_OK;
    uir_tensor *tensor;
    UIR_TRY(uir_tensor_create(d->target->allocator, info->type.dtype, info->type.rank, &count, &tensor));
    for (uint32_t i = 0; i < info->element_count; i++) {
        uir_dim_is_const(d->target->dims, info->elements[i], &number);
        uir_dtype_store_integer(tensor->dtype, tensor->data, i, number, false, UIR_ROUND_NEAREST_EVEN);
    }
    uir_status status = remember(d, value, tensor);
    if (status != UIR_STATUS_OK) {
        uir_tensor_release(tensor);
        return status;
    }
    *out_tensor = tensor;
    return UIR_STATUS_OK;
}

uir_status uir_evaluate_constant(uir_decomposer *decomposer, uir_value_id value, uir_tensor **out_tensor) {
    const uir_value_info *info = uir_value_info_get(decomposer->target, value);
    *out_tensor = info->constant;
    if (info->constant) return UIR_STATUS_OK;
    if (value.id < decomposer->evaluated.count) *out_tensor = decomposer->evaluated.data[value.id];
    bool whole = info->elements_known && info->type.rank_known && info->type.rank <= 1;
    return *out_tensor || !whole ? UIR_STATUS_OK : tensor_of_elements(decomposer, value, out_tensor);
}

static bool is_small(uir_decomposer *d, const uir_node_info *node) {
    if (!node->output_count) return false;
    for (uint32_t i = 0; i < node->output_count; i++) {
        uint64_t count;
        if (!node->outputs[i].id) return false;
        if (!uir_type_element_count(d->target, uir_value_type(d->target, node->outputs[i]), &count)) return false;
        if (count > EVALUATION_LIMIT) return false;
    }
    return true;
}

static uir_status evaluate_node(uir_decomposer *decomposer, uir_node_id node_id) {
    uir_decomposer *d = decomposer;
    const uir_node_info *node = uir_node_get(d->target, node_id);
    if (!uir_node_is_pure(d->target, node) || !is_small(d, node)) return UIR_STATUS_OK;
    if (uir_value_info_get(d->target, node->outputs[0])->elements_known) return UIR_STATUS_OK;
    uir_tensor **inputs, **outputs;
    UIR_TRY_ALLOCATE(inputs, uir_arena_allocate_array(d->scratch, node->input_count + 1u, sizeof *inputs));
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!node->inputs[i].id) continue;
        UIR_TRY(uir_evaluate_constant(d, node->inputs[i], &inputs[i]));
        if (!inputs[i]) return UIR_STATUS_OK;
    }
    UIR_TRY_ALLOCATE(outputs, uir_arena_allocate_array(d->scratch, node->output_count, sizeof *outputs));
    UIR_TRY(uir_node_run_on_constants(d->target, d->target->allocator, node_id, inputs, d->scratch, outputs));
    uir_status status = UIR_STATUS_OK;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (status == UIR_STATUS_OK && outputs[i]) status = remember(d, node->outputs[i], outputs[i]);
        if (status != UIR_STATUS_OK) uir_tensor_release(outputs[i]);
    }
    return status;
}

uir_status uir_evaluate_pending(uir_decomposer *decomposer) {
    if (!decomposer->evaluated_nodes) decomposer->evaluated_nodes = 1; /* [0] is none */
    for (; decomposer->evaluated_nodes < decomposer->target->nodes.count; decomposer->evaluated_nodes++)
        UIR_TRY(evaluate_node(decomposer, (uir_node_id){decomposer->evaluated_nodes}));
    return UIR_STATUS_OK;
}
