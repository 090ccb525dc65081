/* Values from and to files. */
#include "api/internal.h"

#include <string.h>

uir_status uir_value_load_as(uir_context *context, const char *path, const char *member, uir_value_kind expected_kind,
                             const uir_io_formats *formats, uir_value **out_value) {
    uir_call call;
    uir_file file = {.data = ""};
    *out_value = NULL;
    uir_call_begin(&call, context);
    uir_io_reading reading = {.allocator = &context->value_allocator,
                              .diagnostics = &call.diagnostics,
                              .path = path,
                              .member = member,
                              .kind = expected_kind,
                              .name = ""};
    uir_arena_init(&reading.arena, &context->value_allocator);
    uir_status status = uir_io_open_file(path, &context->value_allocator, &call.diagnostics, &file);
    if (status == UIR_STATUS_OK) {
        reading.data = file.data;
        reading.size = file.size;
        status = uir_io_read(formats, &reading);
    }
    if (status == UIR_STATUS_OK) {
        status = uir_value_wrap(context, reading.datum, reading.name, out_value);
        if (status != UIR_STATUS_OK) uir_datum_release(reading.datum);
    }
    uir_arena_deinit(&reading.arena);
    uir_file_release(&file, &context->value_allocator);
    status =
        uir_budget_tell(&context->values, "reading a value", status, &call.diagnostics, &(uir_location){.file = path});
    return uir_call_end(&call, status, "loading a value");
}

uir_status uir_value_load_raw(uir_context *context, const char *path, uir_dtype dtype, uint32_t rank,
                              const int64_t *shape, uir_value **out_value) {
    uir_call call;
    uir_file file = {.data = ""};
    uir_status status = uir_value_create_tensor(context, dtype, rank, shape, out_value);
    if (status != UIR_STATUS_OK) return status;
    uir_call_begin(&call, context);
    uir_location place = {.file = path};
    uir_tensor *tensor = (*out_value)->datum->tensor;
    if (dtype == UIR_DTYPE_STRING) {
        status = uir_error(&call.diagnostics, UIR_STATUS_INVALID_ARGUMENT, &place, "strings have no raw form");
    }
    if (status == UIR_STATUS_OK) status = uir_io_open_file(path, &context->value_allocator, &call.diagnostics, &file);
    if (status == UIR_STATUS_OK && file.size != tensor->byte_size) {
        status =
            uir_error(&call.diagnostics, UIR_STATUS_BAD_DATA, &place, "the file has %llu bytes where %zu are needed",
                      (unsigned long long)file.size, tensor->byte_size);
    }
    if (status == UIR_STATUS_OK && tensor->byte_size) {
        memcpy(tensor->data, file.data, tensor->byte_size);
        for (uint64_t i = 0; dtype == UIR_DTYPE_BOOL && i < tensor->element_count; i++) {
            ((uint8_t *)tensor->data)[i] = ((uint8_t *)tensor->data)[i] != 0;
        }
    }
    uir_file_release(&file, &context->value_allocator);
    if (status != UIR_STATUS_OK) {
        uir_value_destroy(*out_value);
        *out_value = NULL;
    }
    status = uir_budget_tell(&context->values, "reading a value", status, &call.diagnostics, &place);
    return uir_call_end(&call, status, "loading raw bytes");
}

/* ---- saving ---- */

uir_status uir_value_save_as(uir_context *context, const uir_value *value, const char *path, const char *name,
                             const uir_io_formats *formats) {
    uir_call call;
    uir_text bytes;
    uir_call_begin(&call, context);
    uir_text_init(&bytes, &context->allocator);
    const uir_io_writing writing = {value->datum, name, path, &call.diagnostics, &bytes};
    uir_status status = uir_value_check_on_host(&call, value, "the value to save");
    if (status == UIR_STATUS_OK) status = uir_io_write(formats, &writing);
    if (status == UIR_STATUS_OK)
        status = uir_io_write_file(path, bytes.data ? bytes.data : "", bytes.length, &call.diagnostics);
    uir_text_deinit(&bytes);
    return uir_call_end(&call, status, "saving a value");
}
