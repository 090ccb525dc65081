#include "io/full/formats.h"
#include "frontend/frontend.h"

static uir_status read_pb(uir_io_reading *reading) {
    return uir_onnx_read_datum(reading->allocator, reading->diagnostics, reading->path, reading->data, reading->size,
                               reading->kind, &reading->arena, &reading->name, &reading->datum);
}

static uir_status write_pb(const uir_io_writing *writing) {
    return uir_onnx_write_datum(writing->datum, writing->name, writing->bytes);
}

static uir_status read_npz(uir_io_reading *reading) {
    const uir_allocator *allocator = reading->allocator;
    uint8_t *data;
    size_t size;
    uir_tensor *tensor;
    UIR_TRY(uir_zip_read(allocator, reading->diagnostics, reading->path, reading->data, reading->size, reading->member,
                         &data, &size));
    uir_status status = uir_npy_read(allocator, reading->diagnostics, reading->path, data, size, &tensor);
    uir_release(allocator, data, size);
    UIR_TRY(status);
    return uir_io_take_tensor(reading, tensor);
}

static uir_status read_picture(uir_io_reading *reading) {
    uir_tensor *tensor;
    UIR_TRY(uir_picture_read(reading->allocator, reading->diagnostics, reading->path, reading->data, reading->size,
                             &tensor));
    return uir_io_take_tensor(reading, tensor);
}

static const uir_io_format rows[] = {
    {".pb", read_pb, write_pb},   {".npy", uir_io_read_npy, uir_io_write_npy},
    {".npz", read_npz, NULL},     {".png", read_picture, NULL},
    {".jpg", read_picture, NULL}, {".jpeg", read_picture, NULL},
    {".ppm", read_picture, NULL}, {".pgm", read_picture, NULL},
    {".bmp", read_picture, NULL}, {".tif", read_picture, NULL},
    {".tiff", read_picture, NULL}, {".webp", read_picture, NULL},
    {".jp2", read_picture, NULL}, {".j2k", read_picture, NULL},
};

const uir_io_formats uir_io_full_formats = {
    .rows = rows,
    .count = sizeof rows / sizeof *rows,
    .hint = "the ending must be .pb .npy .npz .png .jpg .ppm .bmp .tif .webp .jp2; raw bytes need a type and a shape",
};
