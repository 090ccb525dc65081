/* Values from and to files. */
#include "api/internal.h"
#include "frontend/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* A whole file, mapped for the time of one call. */
typedef struct file {
    uir_storage *storage;
    uir_mapped mapped;
} file;

static uir_status open_file(uir_call *call, const char *path, file *out_file) {
    UIR_TRY(uir_storage_create(&call->context->allocator, &out_file->storage));
    return uir_storage_map_path(out_file->storage, &call->diagnostics, path, &out_file->mapped);
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

/* What a reader is given, and gives back: a datum, and the name stored with it. */
typedef struct reading {
    uir_call *call;
    const char *path, *member;
    const uint8_t *data;
    size_t size;
    uir_value_kind kind;
    uir_arena arena; /* of the name */
    const char *name;
    uir_datum *datum;
} reading;

static uir_status wrap_tensor(reading *reading, uir_tensor *tensor) {
    uir_status status = uir_datum_create_tensor(&reading->call->context->allocator, tensor, &reading->datum);
    if (status != UIR_STATUS_OK) uir_tensor_release(tensor);
    return status;
}

static uir_status read_pb(reading *reading) {
    return uir_onnx_read_datum(&reading->call->context->allocator, &reading->call->diagnostics, reading->path,
                               reading->data, reading->size, reading->kind, &reading->arena, &reading->name,
                               &reading->datum);
}

static uir_status read_npy(reading *reading) {
    uir_tensor *tensor;
    UIR_TRY(uir_npy_read(&reading->call->context->allocator, &reading->call->diagnostics, reading->path, reading->data,
                         reading->size, &tensor));
    return wrap_tensor(reading, tensor);
}

static uir_status read_npz(reading *reading) {
    const uir_allocator *allocator = &reading->call->context->allocator;
    uint8_t *data;
    size_t size;
    uir_tensor *tensor;
    UIR_TRY(uir_zip_read(allocator, &reading->call->diagnostics, reading->path, reading->data, reading->size,
                         reading->member, &data, &size));
    uir_status status = uir_npy_read(allocator, &reading->call->diagnostics, reading->path, data, size, &tensor);
    uir_release(allocator, data, size);
    UIR_TRY(status);
    return wrap_tensor(reading, tensor);
}

static uir_status read_image(reading *reading) {
    uir_tensor *tensor;
    UIR_TRY(uir_image_read(&reading->call->context->allocator, &reading->call->diagnostics, reading->path,
                           reading->data, reading->size, &tensor));
    return wrap_tensor(reading, tensor);
}

/* The formats by the path's ending. */
static const struct format {
    const char *ending;
    uir_status (*read)(reading *reading);
} formats[] = {{".pb", read_pb},     {".npy", read_npy},   {".npz", read_npz},
               {".png", read_image}, {".jpg", read_image}, {".jpeg", read_image},
               {".ppm", read_image}, {".pgm", read_image}, {".bmp", read_image}};

static uir_status load(reading *reading) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (has_ending(reading->path, formats[i].ending)) return formats[i].read(reading);
    }
    return uir_error_hint(&reading->call->diagnostics, UIR_STATUS_INVALID_ARGUMENT,
                          &(uir_location){.file = reading->path},
                          "the ending must be .pb .npy .npz .png .jpg .ppm .bmp; raw bytes need a type and a shape",
                          "the file's ending does not tell its format");
}

uir_status uir_value_load_file(uir_context *context, const char *path, const char *member, uir_value_kind expected_kind,
                               uir_value **out_value) {
    uir_call call;
    file file = {0};
    *out_value = NULL;
    uir_call_begin(&call, context);
    reading reading = {.call = &call, .path = path, .member = member, .kind = expected_kind, .name = ""};
    uir_arena_init(&reading.arena, &context->allocator);
    uir_status status = open_file(&call, path, &file);
    if (status == UIR_STATUS_OK) {
        reading.data = file.mapped.data;
        reading.size = (size_t)file.mapped.size;
        status = load(&reading);
    }
    if (status == UIR_STATUS_OK) {
        status = uir_value_wrap(context, reading.datum, reading.name, out_value);
        if (status != UIR_STATUS_OK) uir_datum_release(reading.datum);
    }
    uir_arena_deinit(&reading.arena);
    uir_storage_destroy(file.storage);
    return uir_call_end(&call, status, "loading a value");
}

uir_status uir_value_load_raw(uir_context *context, const char *path, uir_dtype dtype, uint32_t rank,
                              const int64_t *shape, uir_value **out_value) {
    uir_call call;
    file file = {0};
    uir_status status = uir_value_create_tensor(context, dtype, rank, shape, out_value);
    if (status != UIR_STATUS_OK) return status;
    uir_call_begin(&call, context);
    uir_location place = {.file = path};
    uir_tensor *tensor = (*out_value)->datum->tensor;
    if (dtype == UIR_DTYPE_STRING) {
        status = uir_error(&call.diagnostics, UIR_STATUS_INVALID_ARGUMENT, &place, "strings have no raw form");
    }
    if (status == UIR_STATUS_OK) status = open_file(&call, path, &file);
    if (status == UIR_STATUS_OK && file.mapped.size != tensor->byte_size) {
        status =
            uir_error(&call.diagnostics, UIR_STATUS_BAD_DATA, &place, "the file has %llu bytes where %zu are needed",
                      (unsigned long long)file.mapped.size, tensor->byte_size);
    }
    if (status == UIR_STATUS_OK && tensor->byte_size) {
        memcpy(tensor->data, file.mapped.data, tensor->byte_size);
        for (uint64_t i = 0; dtype == UIR_DTYPE_BOOL && i < tensor->element_count; i++) {
            ((uint8_t *)tensor->data)[i] = ((uint8_t *)tensor->data)[i] != 0;
        }
    }
    uir_storage_destroy(file.storage);
    if (status != UIR_STATUS_OK) {
        uir_value_destroy(*out_value);
        *out_value = NULL;
    }
    return uir_call_end(&call, status, "loading raw bytes");
}

/* ---- saving ---- */

static uir_status write_all(uir_call *call, const char *path, const char *data, size_t size) {
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

uir_status uir_value_save_file(uir_context *context, const uir_value *value, const char *path, const char *name) {
    uir_call call;
    uir_text bytes;
    uir_status status;
    uir_call_begin(&call, context);
    uir_text_init(&bytes, &context->allocator);
    uir_location place = {.file = path};
    if (has_ending(path, ".pb")) {
        status = uir_onnx_write_datum(value->datum, name, &bytes);
    } else if (has_ending(path, ".npy")) {
        status = value->datum->tensor ? uir_npy_write(value->datum->tensor, &call.diagnostics, path, &bytes)
                                      : uir_error(&call.diagnostics, UIR_STATUS_UNSUPPORTED, &place,
                                                  "only tensors can be written to an .npy file; use .pb");
    } else {
        status = uir_error(&call.diagnostics, UIR_STATUS_INVALID_ARGUMENT, &place, "the ending must be .pb or .npy");
    }
    if (status == UIR_STATUS_OK) status = write_all(&call, path, bytes.data ? bytes.data : "", bytes.length);
    uir_text_deinit(&bytes);
    return uir_call_end(&call, status, "saving a value");
}
