/* ONNX's value files without the frontend: tensors whose elements lie as raw bytes or are strings, which is what
 * exporters write. */
#include "io/small/formats.h"
#include "frontend/wire.h"

#include <string.h>

/* ---- value files ---- */

/* The fields of TensorProto, by their numbers in onnx.proto. */
enum { DIMS = 1, DATA_TYPE = 2, STRING_DATA = 6, NAME = 8, RAW_DATA = 9, DATA_LOCATION = 14 };

typedef struct proto {
    const char *file;
    uir_diagnostics *diagnostics;
    int64_t shape[UIR_MAX_RANK];
    uint32_t rank;
    uint64_t data_type, string_count;
    const uint8_t *raw, *name;
    uint64_t raw_length, name_length;
} proto;

static uir_status wrong(const proto *p, uir_status status, const char *what) {
    return uir_error(p->diagnostics, status, &(uir_location){.file = p->file}, "%s", what);
}

static uir_status add_dim(proto *p, uint64_t value) {
    if (p->rank == UIR_MAX_RANK) return wrong(p, UIR_STATUS_UNSUPPORTED, "the tensor has too many dims");
    p->shape[p->rank++] = (int64_t)value;
    return UIR_STATUS_OK;
}

static uir_status read_dims(proto *p, const uir_wire_field *field) {
    if (field->type == UIR_WIRE_VARINT) return add_dim(p, field->value);
    uir_wire_reader packed = {field->data, field->data + field->length};
    while (field->type == UIR_WIRE_BYTES && packed.at != packed.end) {
        uint64_t value;
        if (!uir_wire_read_varint(&packed, &value))
            return wrong(p, UIR_STATUS_BAD_FILE, "the tensor's dims are cut off");
        UIR_TRY(add_dim(p, value));
    }
    return UIR_STATUS_OK;
}

static uir_status read_field(proto *p, const uir_wire_field *field) {
    switch (field->number) {
    case DIMS:
        return read_dims(p, field);
    case DATA_TYPE:
        p->data_type = field->value;
        return UIR_STATUS_OK;
    case STRING_DATA:
        p->string_count++;
        return UIR_STATUS_OK;
    case NAME:
        p->name = field->data, p->name_length = field->length;
        return UIR_STATUS_OK;
    case RAW_DATA:
        p->raw = field->data, p->raw_length = field->length;
        return field->type == UIR_WIRE_BYTES ? UIR_STATUS_OK
                                             : wrong(p, UIR_STATUS_BAD_FILE, "the tensor's raw data are not bytes");
    case DATA_LOCATION:
        return field->value ? wrong(p, UIR_STATUS_UNSUPPORTED, "external data is not allowed here") : UIR_STATUS_OK;
    default:
        return field->number >= 3 && field->number <= 11
                   ? wrong(p, UIR_STATUS_UNSUPPORTED, "this library reads only tensors of raw bytes and of strings")
                   : UIR_STATUS_OK;
    }
}

static uir_status read_fields(proto *p, const uint8_t *data, size_t size) {
    uir_wire_reader wire = {data, data + size};
    while (wire.at != wire.end) {
        uir_wire_field field;
        const char *problem = uir_wire_next(&wire, &field);
        if (problem) return wrong(p, UIR_STATUS_BAD_FILE, problem);
        UIR_TRY(read_field(p, &field));
    }
    return UIR_STATUS_OK;
}

static uir_status fill_strings(uir_tensor *tensor, const uint8_t *data, size_t size) {
    uir_wire_reader wire = {data, data + size};
    for (uint64_t i = 0; wire.at != wire.end;) {
        uir_wire_field field;
        if (uir_wire_next(&wire, &field)) return UIR_STATUS_BAD_FILE;
        if (field.number == STRING_DATA && field.type == UIR_WIRE_BYTES)
            UIR_TRY(uir_tensor_set_string(tensor, i++, (const char *)field.data, (size_t)field.length));
    }
    return UIR_STATUS_OK;
}

/* Bits that mean nothing are zeros, and a boolean is 0 or 1. */
static void fill_bytes(const proto *p, uir_tensor *tensor) {
    uint8_t *to = tensor->data;
    uint32_t used = (uint32_t)(tensor->element_count * uir_dtype_bits(tensor->dtype) % 8);
    if (tensor->byte_size) memcpy(to, p->raw, tensor->byte_size);
    for (size_t i = 0; tensor->dtype == UIR_DTYPE_BOOL && i < tensor->byte_size; i++) to[i] = to[i] != 0;
    if (used && tensor->byte_size) to[tensor->byte_size - 1] &= (uint8_t)((1u << used) - 1);
}

static uir_status make_tensor(const proto *p, const uir_allocator *allocator, const uint8_t *data, size_t size,
                              uir_tensor **out_tensor) {
    uint64_t count;
    size_t bytes;
    bool strings = p->data_type == UIR_DTYPE_STRING;
    if (p->data_type > INT32_MAX || !uir_dtype_is_valid((int)p->data_type))
        return wrong(p, UIR_STATUS_BAD_FILE, "the tensor's element type is unknown");
    if (!uir_shape_element_count(p->shape, p->rank, &count) ||
        !uir_dtype_storage_size((uir_dtype)p->data_type, count, &bytes) ||
        (strings ? p->string_count != count || p->raw_length : p->raw_length != bytes || p->string_count))
        return wrong(p, UIR_STATUS_BAD_FILE, "the tensor's data does not match its type and dims");
    UIR_TRY(uir_tensor_create(allocator, (uir_dtype)p->data_type, p->rank, p->shape, out_tensor));
    uir_status status = UIR_STATUS_OK;
    if (strings)
        status = fill_strings(*out_tensor, data, size);
    else
        fill_bytes(p, *out_tensor);
    if (status != UIR_STATUS_OK) uir_tensor_release(*out_tensor);
    return status;
}

static uir_status read_pb(uir_io_reading *reading) {
    proto p = {.file = reading->path, .diagnostics = reading->diagnostics};
    uir_tensor *tensor;
    if (reading->kind != UIR_VALUE_TENSOR)
        return wrong(&p, UIR_STATUS_UNSUPPORTED, "this library reads only tensors from .pb files");
    UIR_TRY(read_fields(&p, reading->data, reading->size));
    UIR_TRY_ALLOCATE(reading->name,
                     uir_arena_copy_string(&reading->arena, p.name ? (const char *)p.name : "", (size_t)p.name_length));
    UIR_TRY(make_tensor(&p, reading->allocator, reading->data, reading->size, &tensor));
    return uir_io_take_tensor(reading, tensor);
}

static uir_status write_pb(const uir_io_writing *writing) {
    if (writing->datum->kind != UIR_VALUE_TENSOR)
        return uir_error(writing->diagnostics, UIR_STATUS_UNSUPPORTED, &(uir_location){.file = writing->path},
                         "this library writes only tensors to .pb files");
    const uir_tensor *tensor = writing->datum->tensor;
    const char *name = writing->name;
    uir_text *out = writing->bytes;
    for (uint32_t i = 0; i < tensor->rank; i++) uir_wire_write_integer(out, DIMS, tensor->shape[i]);
    uir_wire_write_integer(out, DATA_TYPE, (int64_t)tensor->dtype);
    const uir_string_view *strings = tensor->data;
    for (uint64_t i = 0; tensor->dtype == UIR_DTYPE_STRING && i < tensor->element_count; i++)
        uir_wire_write_bytes(out, STRING_DATA, strings[i].text, strings[i].length);
    if (name && *name) uir_wire_write_bytes(out, NAME, name, strlen(name));
    if (tensor->dtype != UIR_DTYPE_STRING) uir_wire_write_bytes(out, RAW_DATA, tensor->data, tensor->byte_size);
    return uir_text_status(out);
}

static const uir_io_format rows[] = {{".pb", read_pb, write_pb}, {".npy", uir_io_read_npy, uir_io_write_npy}};

const uir_io_formats uir_io_small_formats = {
    .rows = rows,
    .count = sizeof rows / sizeof *rows,
    .hint = "this library reads .pb and .npy; raw bytes need a type and a shape",
};
