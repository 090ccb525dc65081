/* The value files that libuir knows: the frontend reads and writes ONNX's own. */
#include "api/compiled.h"

static uir_status read_pb(uir_value_reading *reading) {
    return uir_onnx_read_datum(reading->allocator, reading->diagnostics, reading->path, reading->data, reading->size,
                               reading->kind, &reading->arena, &reading->name, &reading->datum);
}

static uir_status write_pb(const uir_datum *datum, const char *name, uir_diagnostics *diagnostics, const char *file,
                           uir_text *out) {
    (void)diagnostics, (void)file; /* every value has such a form */
    return uir_onnx_write_datum(datum, name, out);
}

static uir_status read_npz(uir_value_reading *reading) {
    const uir_allocator *allocator = reading->allocator;
    uint8_t *data;
    size_t size;
    uir_tensor *tensor;
    UIR_TRY(uir_zip_read(allocator, reading->diagnostics, reading->path, reading->data, reading->size, reading->member,
                         &data, &size));
    uir_status status = uir_npy_read(allocator, reading->diagnostics, reading->path, data, size, &tensor);
    uir_release(allocator, data, size);
    UIR_TRY(status);
    return uir_value_reading_take(reading, tensor);
}

static uir_status read_image(uir_value_reading *reading) {
    uir_tensor *tensor;
    UIR_TRY(
        uir_image_read(reading->allocator, reading->diagnostics, reading->path, reading->data, reading->size, &tensor));
    return uir_value_reading_take(reading, tensor);
}

static const uir_value_format rows[] = {
    {".pb", read_pb},     {".npy", uir_value_read_npy}, {".npz", read_npz},
    {".png", read_image}, {".jpg", read_image},         {".jpeg", read_image},
    {".ppm", read_image}, {".pgm", read_image},         {".bmp", read_image},
};

static const uir_value_formats formats = {
    .rows = rows,
    .count = sizeof rows / sizeof *rows,
    .hint = "the ending must be .pb .npy .npz .png .jpg .ppm .bmp; raw bytes need a type and a shape",
    .write_proto = write_pb,
};

#include "api/value_files.inc"
