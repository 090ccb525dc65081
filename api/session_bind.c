/* Sessions: values and buffers of the caller bound to inputs and outputs. */
#include "api/internal.h"

#include <string.h>

bool uir_session_measure_footprint(uir_dtype dtype, uint32_t rank, const int64_t *shape, const int64_t *strides,
                                   size_t *out_bytes) {
    uint64_t count = 1;
    if (!uir_shape_element_count(shape, rank, &count)) return false;
    if (strides && count) {
        count = 1;
        for (uint32_t d = 0; d < rank; d++) {
            uint64_t last;
            if (__builtin_mul_overflow((uint64_t)(shape[d] - 1), (uint64_t)strides[d], &last) ||
                __builtin_add_overflow(count, last, &count))
                return false;
        }
    }
    return uir_dtype_storage_size(dtype, count, out_bytes);
}

/* ---- inputs ---- */

static void describe_value(const uir_datum *datum, char *buffer, size_t capacity) {
    static const char *const kinds[] = {
        [UIR_VALUE_TENSOR] = "tensor", [UIR_VALUE_SEQUENCE] = "sequence", [UIR_VALUE_OPTIONAL] = "optional"};
    if (datum->kind == UIR_VALUE_TENSOR) {
        uir_tensor_describe(datum->tensor, buffer, capacity);
        return;
    }
    const char *parts[] = {kinds[datum->kind], " of ", uir_dtype_name(datum->dtype)};
    size_t at = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        for (const char *c = parts[i]; *c && at + 1 < capacity; c++) buffer[at++] = *c;
    }
    buffer[at] = 0;
}

static bool fits(const uir_port *port, const uir_datum *datum) {
    if (datum->kind != port->kind) return false;
    bool dtype_known = datum->dtype != UIR_DTYPE_NONE && port->dtype != UIR_DTYPE_NONE;
    if (dtype_known && datum->dtype != port->dtype) return false;
    if (datum->kind != UIR_VALUE_TENSOR || !port->rank_known) return true;
    if (datum->tensor->rank != port->rank) return false;
    for (uint32_t i = 0; i < port->rank; i++) {
        if (port->dims[i] >= 0 && port->dims[i] != datum->tensor->shape[i]) return false;
    }
    return true;
}

/* "f32[batch, 3]" */
static void describe_port(const uir_port *port, uir_text *text) {
    bool wrapped = port->kind != UIR_VALUE_TENSOR;
    if (wrapped) uir_text_append_string(text, port->kind == UIR_VALUE_SEQUENCE ? "seq(" : "opt(");
    uir_text_append_string(text, port->dtype == UIR_DTYPE_NONE ? "?" : uir_dtype_name(port->dtype));
    uir_text_append_string(text, port->rank_known ? "[" : "[*");
    for (uint32_t i = 0; i < port->rank; i++) {
        if (i) uir_text_append_string(text, ", ");
        if (port->dims[i] >= 0)
            uir_text_append_format(text, "%lld", (long long)port->dims[i]);
        else
            uir_text_append_string(text, port->dim_names[i]);
    }
    uir_text_append_string(text, wrapped ? "])" : "]");
}

static uir_status misfit(uir_call *call, const uir_session *session, size_t index, const uir_datum *datum) {
    char given[160];
    uir_text expected;
    const uir_port *port = &session->model->inputs[index].port;
    describe_value(datum, given, sizeof given);
    uir_text_init(&expected, &session->allocator);
    describe_port(port, &expected);
    uir_status status = uir_text_status(&expected);
    if (status == UIR_STATUS_OK) {
        status = uir_error(&call->diagnostics, UIR_STATUS_BAD_DATA, NULL, "input '%s' is %s, but the model requires %s",
                           port->name, given, expected.data);
    }
    uir_text_deinit(&expected);
    return status;
}

uir_status uir_session_check_input(uir_call *call, const uir_session *session, size_t index, const uir_datum *datum) {
    return fits(&session->model->inputs[index].port, datum) ? UIR_STATUS_OK : misfit(call, session, index, datum);
}

/* ---- memory of devices ---- */
/* Whether the session can use the value where it is. */
static uir_status check_place(uir_call *call, const uir_session *session, const char *what, const char *name,
                              const uir_value *value) {
    const uir_device *device = session->runtime ? session->model->device : NULL;
    if (!uir_api_is_away(value->memory) || value->memory->device == device) return UIR_STATUS_OK;
    return uir_error_hint(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                          device ? "load the model with this device as `opened`, or copy the value with uir_value_read"
                                 : "copy it with uir_value_read to a value of the host",
                          "%s '%s': the value is in the memory of device %s, and the session runs on %s%s", what, name,
                          value->memory->device->name, device ? "another device, " : "the host",
                          device ? device->name : "");
}

static void take_input(uir_session *session, size_t index, uir_value *value, const uir_bound_input *held) {
    uir_device_memory *former = session->held[index].memory;
    uir_api_retain_memory(held->memory);
    session->held[index] = *held;
    session->inputs[index] = value;
    uir_api_release_memory(former);
}

static void take_output(uir_session *session, size_t index, const uir_bound_output *bound) {
    uir_device_memory *former = session->bound[index].memory;
    uir_api_retain_memory(bound->memory);
    session->bound[index] = *bound;
    session->bound[index].is_moved = former || bound->memory;
    uir_api_release_memory(former);
}

void uir_session_release_bindings(uir_session *session) {
    for (uint32_t i = 0; session->held && i < session->model->input_count; i++)
        uir_api_release_memory(session->held[i].memory);
    for (uint32_t i = 0; session->bound && i < session->model->output_count; i++)
        uir_api_release_memory(session->bound[i].memory);
}

uir_region uir_session_get_input_region(const uir_bound_input *held) {
    return (uir_region){.buffer = held->memory ? held->memory->buffer : NULL,
                        .size = held->capacity,
                        .host = (char *)(uintptr_t)held->data};
}

uir_region uir_session_get_output_region(const uir_bound_output *bound) {
    return (uir_region){
        .buffer = bound->memory ? bound->memory->buffer : NULL, .size = bound->capacity, .host = bound->data};
}

/* ---- values ---- */
static uir_status set_input(uir_call *call, uir_session *session, size_t index, uir_value *value) {
    const char *name = session->model->inputs[index].port.name;
    uir_bound_input held = {.bound = false};
    if (!value)
        return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "no value is given for input '%s'",
                         name);
    UIR_TRY(check_place(call, session, "input", name, value));
    UIR_TRY(uir_session_check_input(call, session, index, value->datum));
    if (value->memory) {
        const uir_tensor *tensor = value->datum->tensor;
        held = (uir_bound_input){.data = tensor->data,
                                 .memory = value->memory,
                                 .capacity = tensor->byte_size,
                                 .rank = tensor->rank,
                                 .bound = true};
        memcpy(held.shape, tensor->shape, tensor->rank * sizeof *held.shape);
    }
    take_input(session, index, value->memory ? NULL : value, &held);
    return UIR_STATUS_OK;
}

/* An input, or output, of that index; else a message. */
static uir_status check_index(uir_call *call, size_t index, uint32_t count, const char *what) {
    if (index < count) return UIR_STATUS_OK;
    return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                     "the model has no %s %zu: it has %u, counted from 0", what, index, count);
}

uir_status uir_session_set_input(uir_session *session, size_t index, uir_value *value) {
    uir_call call;
    UIR_TRY(uir_session_check_idle(session, "binding an input"));
    uir_call_begin(&call, session->model->context);
    uir_status status = check_index(&call, index, session->model->input_count, "input");
    if (status == UIR_STATUS_OK) status = set_input(&call, session, index, value);
    return uir_call_end(&call, status, "binding an input");
}

static uir_status check_strides(uir_call *call, const uir_port *port, const char *what, uint32_t rank,
                                const int64_t *strides) {
    if (port->kind != UIR_VALUE_TENSOR || port->dtype == UIR_DTYPE_STRING || port->dtype == UIR_DTYPE_NONE ||
        rank > UIR_API_MAX_RANK || (strides && uir_dtype_bits(port->dtype) < 8))
        return uir_error(&call->diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                         "%s '%s' cannot be bound to a buffer: its elements have no fixed size in bytes", what,
                         port->name);
    for (uint32_t d = 0; strides && d < rank; d++) {
        if (strides[d] < 0)
            return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                             "%s '%s': stride %lld of axis %u is negative", what, port->name, (long long)strides[d], d);
    }
    return UIR_STATUS_OK;
}

static uir_status hold_input(uir_call *call, uir_session *session, size_t index, uir_bound_input *held) {
    const uir_port *port = &session->model->inputs[index].port;
    const int64_t *strides = held->strided ? held->strides : NULL;
    size_t needed;
    bool fits = !port->rank_known || port->rank == held->rank;
    for (uint32_t d = 0; d < held->rank && fits; d++)
        fits = held->shape[d] >= 0 && (!port->rank_known || port->dims[d] < 0 || port->dims[d] == held->shape[d]);
    if (!fits)
        return uir_error_hint(&call->diagnostics, UIR_STATUS_BAD_DATA, NULL,
                              "bind the rank and extents of uir_model_get_input",
                              "input '%s': the bound shape differs from the declared one", port->name);
    if (!uir_session_measure_footprint(port->dtype, held->rank, held->shape, strides, &needed))
        return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "input '%s' is too large", port->name);
    bool is_there = held->data || held->memory;
    if (needed > held->capacity || (needed && !is_there))
        return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "input '%s' requires %zu bytes, but the buffer bound to it has %zu", port->name, needed,
                         is_there ? held->capacity : 0);
    held->bound = true;
    take_input(session, index, NULL, held);
    return UIR_STATUS_OK;
}

/* `held`: where the elements are. */
static uir_status bind_input(uir_call *call, uir_session *session, size_t index, uint32_t rank, const int64_t *shape,
                             const int64_t *strides, uir_bound_input held) {
    UIR_TRY(check_strides(call, &session->model->inputs[index].port, "input", rank, strides));
    held.rank = rank;
    held.strided = strides && rank;
    if (rank) memcpy(held.shape, shape, rank * sizeof *shape);
    if (held.strided) memcpy(held.strides, strides, rank * sizeof *strides);
    return hold_input(call, session, index, &held);
}

uir_status uir_session_bind_input(uir_session *session, size_t index, uint32_t rank, const int64_t *shape,
                                  const int64_t *strides, const void *data, size_t capacity) {
    uir_call call;
    UIR_TRY(uir_session_check_idle(session, "binding an input"));
    uir_call_begin(&call, session->model->context);
    uir_status status = check_index(&call, index, session->model->input_count, "input");
    if (status == UIR_STATUS_OK)
        status = bind_input(&call, session, index, rank, shape, strides,
                            (uir_bound_input){.data = data, .capacity = capacity});
    return uir_call_end(&call, status, "binding an input");
}

/* Whether the value is a tensor of the port's dtype that the session can use. */
static uir_status check_value(uir_call *call, const uir_session *session, const uir_port *port, const char *what,
                              const uir_value *value) {
    const uir_tensor *tensor = value->datum->tensor;
    if (!tensor || (port->dtype != UIR_DTYPE_NONE && tensor->dtype != port->dtype))
        return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "%s '%s' is a tensor of %s, not of %s",
                         what, port->name, uir_dtype_name(port->dtype), uir_dtype_name(value->datum->dtype));
    return check_place(call, session, what, port->name, value);
}

uir_status uir_session_bind_input_value(uir_session *session, size_t index, uint32_t rank, const int64_t *shape,
                                        const int64_t *strides, uir_value *value) {
    uir_call call;
    UIR_TRY(uir_session_check_idle(session, "binding an input"));
    uir_call_begin(&call, session->model->context);
    uir_status status = check_index(&call, index, session->model->input_count, "input");
    if (status == UIR_STATUS_OK && !value)
        status = uir_error(&call.diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "no value is given for input '%s'",
                           session->model->inputs[index].port.name);
    if (status == UIR_STATUS_OK)
        status = check_value(&call, session, &session->model->inputs[index].port, "input", value);
    if (status == UIR_STATUS_OK)
        status = bind_input(&call, session, index, rank, shape, strides,
                            (uir_bound_input){.data = value->datum->tensor->data,
                                              .memory = value->memory,
                                              .capacity = value->datum->tensor->byte_size});
    return uir_call_end(&call, status, "binding an input");
}

/* ---- outputs that the caller holds ---- */
static uir_status bind_output(uir_call *call, uir_session *session, size_t index, uint32_t rank, const int64_t *strides,
                              uir_bound_output bound) {
    const uir_port *port = &session->model->outputs[index].port;
    if (strides && port->rank_known && port->rank != rank)
        return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "output '%s' has rank %u, and %u strides are given", port->name, port->rank, rank);
    if (strides) UIR_TRY(check_strides(call, port, "output", rank, strides));
    bound.strided = strides != NULL;
    if (strides) memcpy(bound.strides, strides, rank * sizeof *strides);
    const uir_region at = uir_session_get_output_region(&bound);
    if (session->runtime) {
        uir_status status = uir_runtime_bind_output_region(session->runtime, (uint32_t)index, strides, &at);
        if (status != UIR_STATUS_OK) return uir_call_flush(&session->call, status, "binding an output");
    }
    take_output(session, index, &bound);
    return UIR_STATUS_OK;
}

uir_status uir_session_bind_output(uir_session *session, size_t index, void *data, size_t capacity) {
    return uir_session_bind_output_strided(session, index, 0, NULL, data, capacity);
}

uir_status uir_session_bind_output_strided(uir_session *session, size_t index, uint32_t rank, const int64_t *strides,
                                           void *data, size_t capacity) {
    uir_call call;
    UIR_TRY(uir_session_check_idle(session, "binding an output"));
    uir_call_begin(&call, session->model->context);
    uir_status status = check_index(&call, index, session->model->output_count, "output");
    if (status == UIR_STATUS_OK)
        status = bind_output(&call, session, index, rank, rank && data ? strides : NULL,
                             (uir_bound_output){.data = data, .capacity = data ? capacity : 0});
    return uir_call_end(&call, status, "binding an output");
}

uir_status uir_session_bind_output_value(uir_session *session, size_t index, uint32_t rank, const int64_t *strides,
                                         uir_value *value) {
    uir_call call;
    if (!value) return uir_session_bind_output(session, index, NULL, 0);
    UIR_TRY(uir_session_check_idle(session, "binding an output"));
    uir_call_begin(&call, session->model->context);
    uir_status status = check_index(&call, index, session->model->output_count, "output");
    if (status == UIR_STATUS_OK)
        status = check_value(&call, session, &session->model->outputs[index].port, "output", value);
    if (status == UIR_STATUS_OK)
        status = bind_output(&call, session, index, rank, rank ? strides : NULL,
                             (uir_bound_output){.data = value->datum->tensor->data,
                                                .memory = value->memory,
                                                .capacity = value->datum->tensor->byte_size});
    return uir_call_end(&call, status, "binding an output");
}
