/* Sessions: the shapes of outputs by those of inputs, without a run. */
#include "api/internal.h"

/* An input of that shape and without data; checked as one that is bound. */
static uir_status take_shape(uir_call *call, const uir_session *session, size_t index, const uir_input_shape *shape,
                             uir_datum **out_datum) {
    const uir_allocator *allocator = &session->allocator;
    const uir_port *port = &session->model->inputs[index].port;
    uint64_t count;
    size_t bytes;
    uir_tensor *tensor;
    if (port->kind != UIR_VALUE_TENSOR || port->dtype == UIR_DTYPE_NONE)
        return uir_error(&call->diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "input '%s' is not a tensor of known type",
                         port->name);
    if (shape->rank > UIR_API_MAX_RANK || (shape->rank && !shape->dims))
        return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "input '%s': %s", port->name,
                         shape->dims ? "the shape given has too many extents" : "the shape given has no extents");
    for (uint32_t d = 0; d < shape->rank; d++) {
        if (shape->dims[d] < 0)
            return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                             "input '%s': extent %lld of axis %u is negative", port->name, (long long)shape->dims[d],
                             d);
    }
    if (!uir_shape_element_count(shape->dims, shape->rank, &count) ||
        !uir_dtype_storage_size(port->dtype, count, &bytes))
        return uir_error(&call->diagnostics, UIR_STATUS_BAD_DATA, NULL, "input '%s' is too large", port->name);
    UIR_TRY(uir_tensor_create_borrowed(allocator, port->dtype, shape->rank, shape->dims, NULL, &tensor));
    uir_status status = uir_datum_create_tensor(allocator, tensor, out_datum);
    if (status != UIR_STATUS_OK) {
        uir_tensor_release(tensor);
        return status;
    }
    return uir_session_check_input(call, session, index, *out_datum);
}

/* `datums` and `dims`: room for each input. */
static uir_status find_shape(uir_call *call, uir_session *session, const uir_input_shape *shapes, uint32_t output,
                             uir_datum **datums, const int64_t **dims, int64_t *out_dims) {
    const uir_model *model = session->model;
    for (uint32_t i = 0; i < model->input_count; i++) {
        UIR_TRY(take_shape(call, session, i, &shapes[i], &datums[i]));
        dims[i] = shapes[i].dims;
    }
    return session->runtime ? uir_runtime_find_shape(session->runtime, dims, output, out_dims)
                            : model->table->find_shape(call, model, datums, output, out_dims);
}

static uir_status get_output_shape(uir_call *call, uir_session *session, const uir_input_shape *shapes, size_t count,
                                   size_t index, int64_t *out_dims) {
    const uir_model *model = session->model;
    uir_arena scratch;
    if (count != model->input_count || (count && !shapes))
        return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "the shapes of %zu inputs are given, and the model has %u", shapes ? count : 0,
                         model->input_count);
    if (index >= model->output_count)
        return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "the model has no output %zu: it has %u, counted from 0", index, model->output_count);
    const uir_port *port = &model->outputs[index].port;
    if (port->kind != UIR_VALUE_TENSOR || !port->rank_known)
        return uir_error(&call->diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                         "output '%s' is not a tensor whose rank is known before a run", port->name);
    uir_arena_init(&scratch, &session->allocator);
    uir_datum **datums = uir_arena_allocate_array(&scratch, count + 1, sizeof(uir_datum *));
    const int64_t **dims = uir_arena_allocate_array(&scratch, count + 1, sizeof(int64_t *));
    uir_status status = datums && dims ? find_shape(call, session, shapes, (uint32_t)index, datums, dims, out_dims)
                                       : UIR_STATUS_OUT_OF_MEMORY;
    for (size_t i = 0; datums && i < count; i++) uir_datum_release(datums[i]);
    uir_arena_deinit(&scratch);
    return status;
}

uir_status uir_session_get_output_shape(uir_session *session, const uir_input_shape *input_shapes, size_t input_count,
                                        size_t index, int64_t *out_dims) {
    static const char *const what = "getting an output's shape";
    uir_call call;
    UIR_TRY(uir_session_check_idle(session, what));
    if (session->runtime) /* it says what is wrong to the session's own sink */
        return uir_call_flush(&session->call,
                              get_output_shape(&session->call, session, input_shapes, input_count, index, out_dims),
                              what);
    uir_call_begin(&call, session->model->context);
    return uir_call_end(&call, get_output_shape(&call, session, input_shapes, input_count, index, out_dims), what);
}
