#include "ir/graph/constants.h"

bool uir_node_is_pure(const uir_module *module, const uir_node_info *node) {
    uint32_t traits = uir_op_get_row(node->op)->traits;
    if (traits & (UIR_TRAIT_EFFECT | UIR_TRAIT_RANDOM | UIR_TRAIT_CONTROL)) return false;
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const uir_attribute *attribute = &node->attributes[i];
        if (attribute->kind != UIR_ATTRIBUTE_DIMS) continue;
        for (uint32_t k = 0; k < attribute->count; k++)
            if (!uir_dim_is_const(module->dims, attribute->value.dims[k], NULL)) return false;
    }
    return true;
}

bool uir_type_find_shape(const uir_module *module, const uir_type *type, int64_t *out_shape, uint64_t *out_count) {
    uint64_t count = 1;
    if (type->kind != UIR_VALUE_TENSOR || !type->rank_known) return false;
    for (uint32_t i = 0; i < type->rank; i++) {
        int64_t extent;
        if (!uir_dim_is_const(module->dims, type->dims[i], &extent) || extent < 0) return false;
        if (extent && count > (uint64_t)INT64_MAX / (uint64_t)extent) return false;
        count *= (uint64_t)extent;
        if (out_shape) out_shape[i] = extent;
    }
    *out_count = count;
    return true;
}

bool uir_type_element_count(const uir_module *module, const uir_type *type, uint64_t *out_count) {
    return uir_type_find_shape(module, type, NULL, out_count);
}

/* Of a node whose dims are all constant; what decides structure is so small that it is always worth it. */
static void count_work(const uir_module *module, const uir_node_info *node, uir_tensor *const *inputs,
                       uint64_t *out_work, uint64_t *out_bytes) {
    enum { ALWAYS = 4096 };
    const uir_op_row *row = uir_op_get_row(node->op);
    uint64_t made = 0, read = 0, each = 1, count;
    *out_bytes = 0;
    for (uint32_t i = 0; i < node->output_count; i++) {
        const uir_type *type = uir_value_type(module, node->outputs[i]);
        size_t size;
        if (!uir_type_element_count(module, type, &count)) continue;
        made += count;
        if (uir_dtype_storage_size(type->dtype, count, &size)) *out_bytes += size;
    }
    for (uint32_t i = 0; i < node->input_count; i++) read += inputs[i] ? inputs[i]->element_count : 0;
    if ((row->traits & UIR_TRAIT_CONTRACTION) && inputs[0]->rank && inputs[1]->rank && inputs[1]->element_count) {
        /* Each element of the result is a sum over the right operand without its own axis. */
        uint32_t axis = node->op == UIR_OP_MATMUL ? inputs[0]->rank - 1 : 0;
        each = node->op == UIR_OP_MATMUL ? (uint64_t)inputs[0]->shape[axis]
                                         : inputs[1]->element_count / (uint64_t)inputs[1]->shape[axis];
    }
    const uir_attribute *window = uir_node_find_attribute(module, node, "window");
    for (uint32_t i = 0; window && i < window->count; i++) {
        int64_t extent = 1;
        if (uir_dim_is_const(module->dims, window->value.dims[i], &extent) && extent > 0 &&
            __builtin_mul_overflow(each, (uint64_t)extent, &each))
            each = UINT64_MAX;
    }
    if (__builtin_mul_overflow(made, each, out_work) || *out_work > UINT64_MAX - read) *out_work = UINT64_MAX - read;
    *out_work += read;
    if (*out_work <= ALWAYS) *out_work = *out_bytes = 0;
}

bool uir_node_take_fold(const uir_module *module, const uir_allocator *allocator, uir_node_id id,
                        uir_tensor *const *inputs) {
    const uir_node_info *node = uir_node_get(module, id);
    uint64_t work, bytes;
    uir_budget_at(module->arena.budget, uir_string_text(&module->strings, node->name), uir_op_said_name(node->op));
    count_work(module, node, inputs, &work, &bytes);
    return uir_budget_take_fold(uir_budget_of(allocator), work, bytes);
}

uir_status uir_node_run_on_constants(const uir_module *module, const uir_allocator *allocator, uir_node_id id,
                                     uir_tensor *const *inputs, uir_arena *scratch, uir_tensor **out_outputs) {
    const uir_node_info *node = uir_node_get(module, id);
    uir_datum **operands, **results;
    if (!uir_node_take_fold(module, allocator, id, inputs)) return UIR_STATUS_OK;
    UIR_TRY_ALLOCATE(operands, uir_arena_allocate_array(scratch, node->input_count + 1u, sizeof *operands));
    UIR_TRY_ALLOCATE(results, uir_arena_allocate_array(scratch, node->output_count + 1u, sizeof *results));
    uir_status status = UIR_STATUS_OK;
    for (uint32_t i = 0; i < node->input_count && status == UIR_STATUS_OK; i++) {
        if (!node->inputs[i].id) continue;
        uir_tensor_retain(inputs[i]);
        status = uir_datum_create_tensor(allocator, inputs[i], &operands[i]);
        if (status != UIR_STATUS_OK) uir_tensor_release(inputs[i]);
    }
    if (status == UIR_STATUS_OK) {
        status = uir_node_interpret(module, allocator, NULL, id, operands, results);
        if (status != UIR_STATUS_OUT_OF_MEMORY && status != UIR_STATUS_CANCELLED) status = UIR_STATUS_OK;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!results[i]) continue;
        if (status == UIR_STATUS_OK && results[i]->kind == UIR_VALUE_TENSOR) {
            out_outputs[i] = results[i]->tensor;
            uir_tensor_retain(out_outputs[i]);
        }
        uir_datum_release(results[i]);
    }
    for (uint32_t i = 0; i < node->input_count; i++) uir_datum_release(operands[i]);
    return status;
}
