/* Values from and to files. */
#include "api/internal.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static uir_status open_file(uir_call *call, const char *path, uir_file *out_file) {
    uir_location place = {.file = path};
    const char *why;
    /* Not blocking: opening a pipe would otherwise wait for a writer. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    *out_file = (uir_file){.data = ""};
    if (descriptor < 0)
        return uir_error(&call->diagnostics,
                         errno == ENOENT || errno == ENOTDIR ? UIR_STATUS_NOT_FOUND : UIR_STATUS_IO_FAILED, &place,
                         "cannot open the file: %s", uir_file_explain(errno));
    uir_status status = uir_file_take(descriptor, false, &call->context->value_allocator, out_file, &why);
    close(descriptor);
    if (status == UIR_STATUS_OK || status == UIR_STATUS_OUT_OF_MEMORY) return status;
    return uir_error(&call->diagnostics, status, &place, "cannot read '%s': %s", path, why);
}

static bool has_ending(const char *path, const char *ending) {
    size_t length = strlen(path), ending_length = strlen(ending);
    if (length < ending_length) return false;
    for (size_t i = 0; i < ending_length; i++) {
        char c = path[length - ending_length + i];
        if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
        if (c != ending[i]) return false;
    }
    return true;
}

uir_status uir_value_reading_take(uir_value_reading *reading, uir_tensor *tensor) {
    uir_status status = uir_datum_create_tensor(reading->allocator, tensor, &reading->datum);
    if (status != UIR_STATUS_OK) uir_tensor_release(tensor);
    return status;
}

uir_status uir_value_read_npy(uir_value_reading *reading) {
    uir_tensor *tensor;
    UIR_TRY(
        uir_npy_read(reading->allocator, reading->diagnostics, reading->path, reading->data, reading->size, &tensor));
    return uir_value_reading_take(reading, tensor);
}

static uir_status read_as(uir_value_reading *reading, const uir_value_formats *formats) {
    for (size_t i = 0; i < formats->count; i++) {
        if (has_ending(reading->path, formats->rows[i].ending)) return formats->rows[i].read(reading);
    }
    return uir_error_hint(reading->diagnostics, UIR_STATUS_INVALID_ARGUMENT, &(uir_location){.file = reading->path},
                          formats->hint, "the file's ending does not tell its format");
}

uir_status uir_value_load_as(uir_context *context, const char *path, const char *member, uir_value_kind expected_kind,
                             const uir_value_formats *formats, uir_value **out_value) {
    uir_call call;
    uir_file file = {.data = ""};
    *out_value = NULL;
    uir_call_begin(&call, context);
    uir_value_reading reading = {.allocator = &context->value_allocator,
                                 .diagnostics = &call.diagnostics,
                                 .path = path,
                                 .member = member,
                                 .kind = expected_kind,
                                 .name = ""};
    uir_arena_init(&reading.arena, &context->value_allocator);
    uir_status status = open_file(&call, path, &file);
    if (status == UIR_STATUS_OK) {
        reading.data = file.data;
        reading.size = file.size;
        status = read_as(&reading, formats);
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
    if (status == UIR_STATUS_OK) status = open_file(&call, path, &file);
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

uir_status uir_api_write_file(uir_call *call, const char *path, const void *bytes, size_t size) {
    const char *data = bytes;
    uir_location place = {.file = path};
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor < 0) {
        return uir_error_hint(&call->diagnostics, UIR_STATUS_IO_FAILED, &place, "is the folder there and writable?",
                              "cannot write the file");
    }
    bool good = true;
    while (size && good) {
        ssize_t written = write(descriptor, data, size);
        if (written < 0 && errno == EINTR) continue;
        good = written > 0;
        if (good) {
            data += written;
            size -= (size_t)written;
        }
    }
    good = close(descriptor) == 0 && good;
    return good ? UIR_STATUS_OK
                : uir_error_hint(&call->diagnostics, UIR_STATUS_IO_FAILED, &place, "is the disk full?",
                                 "the file could not be written whole");
}

uir_status uir_value_save_as(uir_context *context, const uir_value *value, const char *path, const char *name,
                             const uir_value_formats *formats) {
    uir_call call;
    uir_text bytes;
    uir_status status;
    uir_call_begin(&call, context);
    uir_text_init(&bytes, &context->allocator);
    uir_location place = {.file = path};
    if (has_ending(path, ".pb")) {
        status = formats->write_proto(value->datum, name, &call.diagnostics, path, &bytes);
    } else if (has_ending(path, ".npy")) {
        status = value->datum->tensor ? uir_npy_write(value->datum->tensor, &call.diagnostics, path, &bytes)
                                      : uir_error(&call.diagnostics, UIR_STATUS_UNSUPPORTED, &place,
                                                  "only tensors can be written to an .npy file; use .pb");
    } else {
        status = uir_error(&call.diagnostics, UIR_STATUS_INVALID_ARGUMENT, &place, "the ending must be .pb or .npy");
    }
    if (status == UIR_STATUS_OK) status = uir_api_write_file(&call, path, bytes.data ? bytes.data : "", bytes.length);
    uir_text_deinit(&bytes);
    return uir_call_end(&call, status, "saving a value");
}
