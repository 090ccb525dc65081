/* The shapes of a module's outputs by those of its inputs, without a run. */
#include "ir/graph/interpret/interpret.h"

/* What the sizes break, node by node, and what they leave open. */
static uir_status find_shape(uir_interpreter *interpreter, uir_datum *const *inputs, uint32_t input_count,
                             uint32_t output, int64_t *out_dims) {
    const uir_module *module = interpreter->module;
    const uir_graph_info *main = uir_graph_get(module, module->main);
    UIR_TRY_ALLOCATE(interpreter->slots,
                     uir_arena_allocate_array(&interpreter->arena, module->values.count, sizeof(uir_datum *)));
    UIR_TRY(uir_interpreter_bind_inputs(interpreter, inputs, input_count));
    for (uint32_t i = 0; i < main->nodes.count; i++) {
        uir_node_id id = main->nodes.data[i];
        uir_call call = {.interpreter = interpreter,
                         .module = module,
                         .node_id = id,
                         .node = uir_node_get(module, id),
                         .allocator = &interpreter->allocator};
        UIR_TRY(uir_call_check_demands(&call));
    }
    const uir_call knows = {.interpreter = interpreter, .module = module};
    const uir_type *type = uir_value_type(module, main->outputs.data[output]);
    for (uint32_t d = 0; d < type->rank; d++) {
        if (!uir_call_knows(&knows, type->dims[d], &out_dims[d]))
            out_dims[d] = -1;
        else if (out_dims[d] < 0)
            return uir_error(interpreter->diagnostics, UIR_STATUS_BAD_DATA, NULL,
                             "dim %u of output %u would be %lld", d, output, (long long)out_dims[d]);
    }
    return UIR_STATUS_OK;
}

uir_status uir_module_find_shape(const uir_module *module, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                                 uir_datum *const *inputs, uint32_t input_count, uint32_t output, int64_t *out_dims) {
    uir_interpreter interpreter;
    uir_status status = uir_interpreter_init(&interpreter, module, allocator, diagnostics, NULL);
    if (status == UIR_STATUS_OK) status = find_shape(&interpreter, inputs, input_count, output, out_dims);
    for (uint32_t i = 0; interpreter.slots && i < module->values.count; i++) uir_datum_release(interpreter.slots[i]);
    uir_arena_deinit(&interpreter.arena);
    return status;
}
