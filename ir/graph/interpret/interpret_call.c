/* Operands, results, sizes and messages of one run of a primitive, for the functions that compute it. */
#include "ir/graph/interpret/interpret.h"
#include <stdio.h>

uir_status uir_call_fail(uir_call *call, uir_status status, const char *format, ...) {
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    uir_location location = uir_node_location(call->module, call->node);
    const char *op = uir_op_said_name(call->node->op);
    return uir_error(call->interpreter->diagnostics, status, &location, "%s%s%s", op, *op ? ": " : "", message);
}

bool uir_interpreter_evaluate(const uir_interpreter *interpreter, uir_dim dim, int64_t *out_value) {
    return uir_dim_evaluate(interpreter->module->dims, dim, interpreter->symbol_values, interpreter->symbol_bound,
                            interpreter->symbol_count, out_value) == UIR_DIM_EVALUATED;
}

/* The dim as a person reads it, into a caller's buffer. */
const char *uir_interpreter_dim_text(const uir_interpreter *interpreter, uir_dim dim, char *buffer, size_t capacity) {
    uir_text text;
    uir_text_init(&text, interpreter->counter.inner);
    uir_dim_print(interpreter->module->dims, dim, &text);
    snprintf(buffer, capacity, "%s", text.data ? text.data : "?");
    uir_text_deinit(&text);
    return buffer;
}

const uir_tensor *uir_call_tensor(const uir_call *call, uint32_t index) {
    return index < call->node->input_count && call->inputs[index] ? call->inputs[index]->tensor : NULL;
}

int64_t uir_call_int(const uir_call *call, const char *name, int64_t fallback) {
    return uir_node_int(call->module, call->node, name, fallback);
}

int64_t uir_call_scalar(const uir_call *call, uint32_t index, int64_t fallback) {
    const uir_tensor *tensor = uir_call_tensor(call, index);
    return tensor && tensor->element_count ? uir_dtype_load_integer(tensor->dtype, tensor->data, 0) : fallback;
}

bool uir_call_knows(const uir_call *call, uir_dim dim, int64_t *out_value) {
    return uir_interpreter_evaluate(call->interpreter, dim, out_value);
}

uir_status uir_call_evaluate(uir_call *call, uir_dim dim, int64_t *out_value) {
    char text[128];
    if (uir_interpreter_evaluate(call->interpreter, dim, out_value)) return UIR_STATUS_OK;
    return uir_call_fail(call, UIR_STATUS_BAD_DATA, "size %s has no value here",
                         uir_interpreter_dim_text(call->interpreter, dim, text, sizeof text));
}

uir_status uir_call_dims(uir_call *call, const char *name, int64_t *out_values, uint32_t *out_count) {
    const uir_dim *dims = uir_node_dims(call->module, call->node, name, out_count);
    if (*out_count > UIR_MAX_RANK) return uir_call_fail(call, UIR_STATUS_UNSUPPORTED, "rank %u", *out_count);
    for (uint32_t i = 0; i < *out_count; i++) UIR_TRY(uir_call_evaluate(call, dims[i], &out_values[i]));
    return UIR_STATUS_OK;
}

uir_status uir_call_set(uir_call *call, uint32_t index, uir_datum *datum) {
    if (index >= call->node->output_count) {
        uir_datum_release(datum);
        return UIR_STATUS_OK;
    }
    uir_datum_release(call->outputs[index]);
    call->outputs[index] = datum;
    return UIR_STATUS_OK;
}

uir_status uir_call_create(uir_call *call, uint32_t index, uir_dtype dtype, uint32_t rank, const int64_t *shape,
                           uir_tensor **out_tensor) {
    for (uint32_t d = 0; d < rank; d++)
        if (shape[d] < 0)
            return uir_call_fail(call, UIR_STATUS_BAD_DATA, "dim %u of the result is %lld", d, (long long)shape[d]);
    uint64_t count;
    if (!uir_shape_element_count(shape, rank, &count))
        return uir_call_fail(call, UIR_STATUS_LIMIT, "the result has too many elements");
    UIR_TRY(uir_budget_check_elements(call->interpreter->arena.budget, count, call->interpreter->diagnostics));
    uir_tensor *tensor;
    uir_status status = uir_tensor_create(call->allocator, dtype, rank, shape, &tensor);
    size_t bytes;
    if (status == UIR_STATUS_OUT_OF_MEMORY && uir_dtype_storage_size(dtype, count, &bytes))
        return uir_call_fail(call, status, "out of memory: the result needs %zu bytes", bytes);
    UIR_TRY(status);
    uir_datum *datum;
    status = uir_datum_create_tensor(call->allocator, tensor, &datum);
    if (status != UIR_STATUS_OK) {
        uir_tensor_release(tensor);
        return status;
    }
    *out_tensor = tensor;
    return uir_call_set(call, index, datum);
}

uir_tensor *uir_call_take(uir_call *call, uint32_t index) {
    uir_datum *datum = call->inputs[index];
    if (!call->last_use || !call->last_use[index] || !datum || !datum->tensor) return NULL;
    uir_tensor *tensor = datum->tensor;
    /* One reference each: the slot's. A borrowed buffer belongs to someone else. */
    return datum->references == 1 && tensor->references == 1 && tensor->owned ? tensor : NULL;
}

uir_status uir_call_with_arena(uir_call *call, uir_status (*run)(uir_call *call, uir_arena *arena)) {
    uir_arena arena;
    uir_arena_init(&arena, call->allocator);
    uir_status status = run(call, &arena);
    uir_arena_deinit(&arena);
    return status;
}

uir_status uir_interpreter_next_draw(uir_call *call, uint64_t *out_draw) {
    uir_interpreter *in = call->interpreter;
    if (!in->draws)
        UIR_TRY_ALLOCATE(in->draws, uir_arena_allocate_array(&in->arena, call->module->nodes.count, sizeof *in->draws));
    *out_draw = in->options.turn + in->draws[call->node_id.id]++;
    return UIR_STATUS_OK;
}
