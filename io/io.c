#include "io/io.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* ---- files ---- */
uir_status uir_io_open_file(const char *path, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                            uir_file *out_file) {
    uir_location place = {.file = path};
    const char *why;
    /* Not blocking: opening a pipe would otherwise wait for a writer. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    *out_file = (uir_file){.data = ""};
    if (descriptor < 0)
        return uir_error(diagnostics, errno == ENOENT || errno == ENOTDIR ? UIR_STATUS_NOT_FOUND : UIR_STATUS_IO_FAILED,
                         &place, "cannot open the file: %s", uir_file_explain(errno));
    uir_status status = uir_file_take(descriptor, false, allocator, out_file, &why);
    close(descriptor);
    if (status == UIR_STATUS_OK || status == UIR_STATUS_OUT_OF_MEMORY) return status;
    return uir_error(diagnostics, status, &place, "cannot read '%s': %s", path, why);
}

uir_status uir_io_write_file(const char *path, const void *bytes, size_t size, uir_diagnostics *diagnostics) {
    uir_location place = {.file = path};
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor < 0) {
        return uir_error_hint(diagnostics, UIR_STATUS_IO_FAILED, &place, "check that the folder exists and is writable",
                              "the file cannot be written");
    }
    bool good = uir_file_write_all(descriptor, bytes, size);
    good = close(descriptor) == 0 && good;
    return good ? UIR_STATUS_OK
                : uir_error_hint(diagnostics, UIR_STATUS_IO_FAILED, &place, "check that the disk is not full",
                                 "the file could not be written completely");
}

/* ---- formats ---- */
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

static const uir_io_format *find_format(const uir_io_formats *formats, const char *path) {
    for (size_t i = 0; i < formats->count; i++)
        if (has_ending(path, formats->rows[i].ending)) return &formats->rows[i];
    return NULL;
}

uir_status uir_io_read(const uir_io_formats *formats, uir_io_reading *reading) {
    const uir_io_format *format = find_format(formats, reading->path);
    if (format) return format->read(reading);
    return uir_error_hint(reading->diagnostics, UIR_STATUS_INVALID_ARGUMENT, &(uir_location){.file = reading->path},
                          formats->hint, "the file's ending does not tell its format");
}

uir_status uir_io_write(const uir_io_formats *formats, const uir_io_writing *writing) {
    const uir_io_format *format = find_format(formats, writing->path);
    if (format && format->write) return format->write(writing);
    return uir_error(writing->diagnostics, UIR_STATUS_INVALID_ARGUMENT, &(uir_location){.file = writing->path},
                     "the ending must be .pb or .npy");
}

uir_status uir_io_take_tensor(uir_io_reading *reading, uir_tensor *tensor) {
    uir_status status = uir_datum_create_tensor(reading->allocator, tensor, &reading->datum);
    if (status != UIR_STATUS_OK) uir_tensor_release(tensor);
    return status;
}

uir_status uir_io_read_npy(uir_io_reading *reading) {
    uir_tensor *tensor;
    UIR_TRY(
        uir_npy_read(reading->allocator, reading->diagnostics, reading->path, reading->data, reading->size, &tensor));
    return uir_io_take_tensor(reading, tensor);
}

uir_status uir_io_write_npy(const uir_io_writing *writing) {
    if (writing->datum->tensor)
        return uir_npy_write(writing->datum->tensor, writing->diagnostics, writing->path, writing->bytes);
    return uir_error(writing->diagnostics, UIR_STATUS_UNSUPPORTED, &(uir_location){.file = writing->path},
                     "only tensors can be written to an .npy file; use .pb");
}
