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

uir_status uir_session_set_input(uir_session *session, size_t index, uir_value *value) {
    uir_call call;
    uir_status status = UIR_STATUS_OK;
    uir_call_begin(&call, session->model->context);
    if (index >= session->model->input_count) {
        status = uir_error(&call.diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                           "the model has no input %zu: it has %u, counted from 0", index, session->model->input_count);
    } else if (!value) {
        status = uir_error(&call.diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "no value is given for input '%s'",
                           session->model->inputs[index].port.name);
    } else {
        status = uir_session_check_input(&call, session, index, value->datum);
        if (status == UIR_STATUS_OK) {
            session->inputs[index] = value;
            session->held[index].bound = false;
        }
    }
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
    if (needed > held->capacity || (needed && !held->data))
        return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "input '%s' requires %zu bytes, but the buffer bound to it has %zu", port->name, needed,
                         held->data ? held->capacity : 0);
    held->bound = true;
    session->held[index] = *held;
    session->inputs[index] = NULL;
    return UIR_STATUS_OK;
}

uir_status uir_session_bind_input(uir_session *session, size_t index, uint32_t rank, const int64_t *shape,
                                  const int64_t *strides, const void *data, size_t capacity) {
    uir_call call;
    uir_status status;
    uir_call_begin(&call, session->model->context);
    if (index >= session->model->input_count) {
        status = uir_error(&call.diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                           "the model has no input %zu: it has %u, counted from 0", index, session->model->input_count);
    } else {
        status = check_strides(&call, &session->model->inputs[index].port, "input", rank, strides);
    }
    if (status == UIR_STATUS_OK) {
        uir_bound_input held = {.data = data, .capacity = capacity, .rank = rank, .strided = strides && rank};
        if (rank) memcpy(held.shape, shape, rank * sizeof *shape);
        if (held.strided) memcpy(held.strides, strides, rank * sizeof *strides);
        status = hold_input(&call, session, index, &held);
    }
    return uir_call_end(&call, status, "binding an input");
}

/* ---- outputs that the caller holds ---- */

uir_status uir_session_bind_output(uir_session *session, size_t index, void *data, size_t capacity) {
    uir_call call;
    uir_status status = UIR_STATUS_OK;
    uir_call_begin(&call, session->model->context);
    if (index >= session->model->output_count) {
        status = uir_error(&call.diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "the model has no output %zu", index);
    } else {
        session->bound[index] = (uir_bound_output){.data = data, .capacity = data ? capacity : 0};
        if (session->runtime)
            status = uir_runtime_bind_output(session->runtime, (uint32_t)index, data, data ? capacity : 0);
    }
    return uir_call_end(&call, status, "binding an output");
}

uir_status uir_session_bind_output_strided(uir_session *session, size_t index, uint32_t rank, const int64_t *strides,
                                           void *data, size_t capacity) {
    uir_call call;
    uir_status status = UIR_STATUS_OK;
    if (!strides || !data || !rank || index >= session->model->output_count)
        return uir_session_bind_output(session, index, data, capacity);
    const uir_port *port = &session->model->outputs[index].port;
    uir_call_begin(&call, session->model->context);
    if (port->rank_known && port->rank != rank)
        status = uir_error(&call.diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                           "output '%s' has rank %u, and %u strides are given", port->name, port->rank, rank);
    if (status == UIR_STATUS_OK) status = check_strides(&call, port, "output", rank, strides);
    if (status == UIR_STATUS_OK) {
        uir_bound_output *bound = &session->bound[index];
        *bound = (uir_bound_output){.data = data, .capacity = capacity, .strided = true};
        memcpy(bound->strides, strides, rank * sizeof *strides);
        if (session->runtime)
            status = uir_runtime_bind_output_strided(session->runtime, (uint32_t)index, strides, data, capacity);
    }
    return uir_call_end(&call, status, "binding an output");
}
