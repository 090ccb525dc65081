/* Values in a device's memory; bytes copied from and to values. */
#include "api/internal.h"

#include <string.h>

/* ---- life ---- */
uir_status uir_value_wrap_memory(uir_device_memory *memory, uir_dtype dtype, uint32_t rank, const int64_t *shape,
                                 uir_value **out_value) {
    uir_context *context = memory->device->context;
    uir_tensor *tensor;
    UIR_TRY(uir_tensor_create_borrowed(&context->allocator, dtype, rank, shape, memory->host, &tensor));
    uir_status status = uir_value_wrap_tensor(context, tensor, out_value);
    if (status != UIR_STATUS_OK) {
        uir_tensor_release(tensor);
        return status;
    }
    (*out_value)->memory = uir_api_retain_memory(memory);
    return UIR_STATUS_OK;
}

/* A tensor of this shape, whose bytes are counted. */
static uir_status check_tensor(uir_call *call, uir_dtype dtype, uint32_t rank, const int64_t *shape, size_t *out_size) {
    UIR_TRY(uir_value_check_shape(call, dtype, rank, shape, out_size));
    if (dtype != UIR_DTYPE_STRING) return UIR_STATUS_OK;
    return uir_error(&call->diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "a tensor of strings cannot be on a device");
}

uir_status uir_value_create_on_device(uir_device *device, uir_dtype dtype, uint32_t rank, const int64_t *shape,
                                      uir_value **out_value) {
    uir_call call;
    size_t size = 0;
    uir_device_memory *memory = NULL;
    *out_value = NULL;
    uir_call_begin(&call, device->context);
    uir_status status = check_tensor(&call, dtype, rank, shape, &size);
    if (status == UIR_STATUS_OK) status = uir_api_create_memory(device, size, NULL, &call.diagnostics, &memory);
    if (status == UIR_STATUS_OK) status = uir_api_zero_memory(memory, &call.diagnostics);
    if (status == UIR_STATUS_OK) status = uir_value_wrap_memory(memory, dtype, rank, shape, out_value);
    uir_api_release_memory(memory);
    return uir_call_end(&call, status, "creating a tensor on a device");
}

static uir_status check_import(uir_call *call, const uir_device *device, const void *native, uint64_t size,
                               size_t needed) {
    if (!native)
        return uir_error_hint(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                              "pass the handle of an allocation of the vendor's library; of the host, an address",
                              "device %s: the handle of the memory is NULL", device->name);
    if (size >= needed) return UIR_STATUS_OK;
    return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                     "the memory has %llu bytes, and the tensor requires %zu", (unsigned long long)size, needed);
}

uir_status uir_value_import(uir_device *device, uir_dtype dtype, uint32_t rank, const int64_t *shape, void *native,
                            uint64_t size, uir_value **out_value) {
    uir_call call;
    size_t needed = 0;
    uir_device_memory *memory = NULL;
    *out_value = NULL;
    uir_call_begin(&call, device->context);
    uir_status status = check_tensor(&call, dtype, rank, shape, &needed);
    if (status == UIR_STATUS_OK) status = check_import(&call, device, native, size, needed);
    if (status == UIR_STATUS_OK) status = uir_api_create_memory(device, size, native, &call.diagnostics, &memory);
    if (status == UIR_STATUS_OK) status = uir_value_wrap_memory(memory, dtype, rank, shape, out_value);
    uir_api_release_memory(memory);
    return uir_call_end(&call, status, "importing a device's memory");
}

uir_device *uir_value_get_device(const uir_value *value) {
    return value->memory ? value->memory->device : NULL;
}

void *uir_value_get_native(const uir_value *value) {
    return value->memory ? uir_api_get_native(value->memory) : NULL;
}

/* ---- on the host ---- */
uir_status uir_value_check_on_host(uir_call *call, const uir_value *value, const char *what) {
    if (!uir_api_is_away(value->memory)) return UIR_STATUS_OK;
    return uir_error_hint(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                          "copy it with uir_value_read to a value of the host", "%s is in the memory of device %s",
                          what, value->memory->device->name);
}

/* ---- bytes ---- */
static uir_status check_bytes(uir_call *call, const uir_value *value, uint64_t offset, uint64_t size) {
    const uir_tensor *tensor = value->datum->tensor;
    if (!tensor || tensor->dtype == UIR_DTYPE_STRING)
        return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "the value is not a tensor of fixed-size elements: it has no bytes to copy");
    if (offset <= tensor->byte_size && size <= tensor->byte_size - offset) return UIR_STATUS_OK;
    return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                     "%llu bytes from byte %llu on are not all in a tensor of %zu bytes", (unsigned long long)size,
                     (unsigned long long)offset, tensor->byte_size);
}

static uir_status move_bytes(uir_call *call, const uir_value *value, uint64_t offset, void *data, uint64_t size,
                             bool to_value) {
    UIR_TRY(check_bytes(call, value, offset, size));
    if (to_value && !value->memory && !value->datum->tensor->owned)
        return uir_error_hint(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "write to that memory itself",
                              "the value borrows its data, which is not the value's to write");
    if (value->memory) return uir_api_copy_memory(value->memory, offset, data, size, to_value, &call->diagnostics);
    char *at = (char *)value->datum->tensor->data + offset;
    if (size) memmove(to_value ? at : data, to_value ? data : at, (size_t)size);
    return UIR_STATUS_OK;
}

uir_status uir_value_write(uir_value *value, uint64_t offset, const void *data, uint64_t size) {
    uir_call call;
    uir_call_begin(&call, value->context);
    return uir_call_end(&call, move_bytes(&call, value, offset, (void *)(uintptr_t)data, size, true),
                        "writing a value");
}

uir_status uir_value_read(const uir_value *value, uint64_t offset, void *data, uint64_t size) {
    uir_call call;
    uir_call_begin(&call, value->context);
    return uir_call_end(&call, move_bytes(&call, value, offset, data, size, false), "reading a value");
}
