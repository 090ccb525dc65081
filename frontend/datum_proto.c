/* Value files: TensorProto, and SequenceProto and OptionalProto of onnx-data.proto.
 *
 * The latter two are not in onnx.proto; their few fields are read from the wire here, and each tensor in them is
 * unpacked as any other. Nesting is bounded by the depth that is passed along. */
#include "frontend/frontend.h"
#include "frontend/tensor_proto.h"
#include "frontend/wire.h"

#include <string.h>

enum { MAX_NESTING = 32 };

/* Field numbers and DataType of both messages. */
enum {
    FIELD_NAME = 1,
    FIELD_ELEM_TYPE = 2,
    FIELD_TENSOR = 3,
    FIELD_SPARSE = 4,
    FIELD_SEQUENCE = 5,
    FIELD_MAP = 6,
    FIELD_OPTIONAL = 7
};
enum { ELEMENT_TENSOR = 1, ELEMENT_SEQUENCE = 3, ELEMENT_OPTIONAL = 5 };

typedef struct reader {
    const uir_allocator *allocator;
    uir_diagnostics *diagnostics;
    const char *file;
    const uint8_t *base;
    uir_arena *arena;
} reader;

static uir_status read_error(const reader *reader, uir_status status, const uint8_t *at, const char *what) {
    uir_location place = {.file = reader->file, .offset = (uint64_t)(at - reader->base), .has_offset = true};
    return uir_error(reader->diagnostics, status, &place, "%s", what);
}

static uir_status copy_name(uir_arena *arena, uir_bytes name, const char **out_name) {
    /* A name with a zero byte ends there: it is only a label. */
    UIR_TRY_ALLOCATE(*out_name, uir_arena_copy_string(arena, name.data, name.length));
    return UIR_STATUS_OK;
}

static uir_status read_tensor(const reader *reader, const uint8_t *data, uint64_t size, const char **out_name,
                              uir_datum **out_datum) {
    uir_arena scratch;
    uir_arena_init(&scratch, reader->allocator);
    ProtobufCMessage *message;
    uir_location place = {.file = reader->file};
    uir_status status = uir_proto_unpack(&uir_onnx__tensor_proto__descriptor, data, size, reader->file,
                                         reader->allocator, reader->diagnostics, &scratch, &message);
    if (status == UIR_STATUS_OK) {
        const UirOnnx__TensorProto *proto = (const UirOnnx__TensorProto *)message;
        uir_tensor_source source = {
            .allocator = reader->allocator, .diagnostics = reader->diagnostics, .data = data, .size = size};
        uir_tensor *tensor = NULL;
        status = uir_tensor_from_proto(&source, &place, proto, &tensor);
        if (status == UIR_STATUS_OK && out_name) {
            status = copy_name(reader->arena, UIR_PROTO_BYTES(proto, name), out_name);
        }
        if (status == UIR_STATUS_OK) status = uir_datum_create_tensor(reader->allocator, tensor, out_datum);
        if (status != UIR_STATUS_OK) uir_tensor_release(tensor);
    }
    uir_arena_deinit(&scratch);
    return status;
}

static uir_status read_list(const reader *reader, const uint8_t *data, uint64_t size, uir_value_kind kind, int depth,
                            const char **out_name, uir_datum **out_datum);

/* One element of a list, by its field. */
static uir_status read_element(const reader *reader, const uir_wire_field *field, int depth, uir_datum **out_element) {
    *out_element = NULL;
    if (field->type != UIR_WIRE_BYTES)
        return read_error(reader, UIR_STATUS_BAD_FILE, field->start, "an element is not a message");
    switch (field->number) {
    case FIELD_TENSOR:
        return read_tensor(reader, field->data, field->length, NULL, out_element);
    case FIELD_SEQUENCE:
        return read_list(reader, field->data, field->length, UIR_VALUE_SEQUENCE, depth + 1, NULL, out_element);
    case FIELD_OPTIONAL:
        return read_list(reader, field->data, field->length, UIR_VALUE_OPTIONAL, depth + 1, NULL, out_element);
    default:
        return read_error(reader, UIR_STATUS_UNSUPPORTED, field->start,
                          "maps and sparse tensors in value files are not supported");
    }
}

static uir_status fill_list(const reader *reader, const uint8_t *data, uint64_t size, uir_value_kind kind, int depth,
                            const char **out_name, uir_datum *list) {
    if (depth > MAX_NESTING) return read_error(reader, UIR_STATUS_LIMIT, data, "values are nested too deep");
    uir_wire_reader wire = {data, data + size};
    while (wire.at != wire.end) {
        uir_wire_field field;
        const char *wrong = uir_wire_next(&wire, &field);
        if (wrong) return read_error(reader, UIR_STATUS_BAD_FILE, field.start, wrong);
        if (field.number == FIELD_NAME && field.type == UIR_WIRE_BYTES) {
            if (out_name) {
                UIR_TRY(
                    copy_name(reader->arena, (uir_bytes){(const char *)field.data, (size_t)field.length}, out_name));
            }
        } else if (field.number >= FIELD_TENSOR && field.number <= FIELD_OPTIONAL) {
            uir_datum *element;
            UIR_TRY(read_element(reader, &field, depth, &element));
            if (list->dtype == UIR_DTYPE_NONE) list->dtype = element->dtype;
            uir_status status = kind == UIR_VALUE_OPTIONAL && list->count
                                    ? read_error(reader, UIR_STATUS_BAD_FILE, field.start, "an optional has two values")
                                    : uir_datum_append(list, element);
            if (status != UIR_STATUS_OK) {
                uir_datum_release(element);
                return status;
            }
        } else if (field.number != FIELD_ELEM_TYPE || field.type != UIR_WIRE_VARINT) {
            /* A tensor's file read as a list would else pass for an empty one. */
            return read_error(reader, UIR_STATUS_BAD_FILE, field.start,
                              kind == UIR_VALUE_SEQUENCE ? "the file does not hold a sequence"
                                                         : "the file does not hold an optional");
        }
    }
    return UIR_STATUS_OK;
}

static uir_status read_list(const reader *reader, const uint8_t *data, uint64_t size, uir_value_kind kind, int depth,
                            const char **out_name, uir_datum **out_datum) {
    uir_datum *list;
    UIR_TRY(uir_datum_create_list(reader->allocator, kind, UIR_DTYPE_NONE, &list));
    uir_status status = fill_list(reader, data, size, kind, depth, out_name, list);
    if (status != UIR_STATUS_OK) {
        uir_datum_release(list);
        return status;
    }
    *out_datum = list;
    return UIR_STATUS_OK;
}

uir_status uir_onnx_read_datum(const uir_allocator *allocator, uir_diagnostics *diagnostics, const char *file,
                               const void *data, size_t size, uir_value_kind kind, uir_arena *arena,
                               const char **out_name, uir_datum **out_datum) {
    reader reader = {allocator, diagnostics, file, data, arena};
    *out_name = "";
    if (kind == UIR_VALUE_TENSOR) {
        /* All fields of a TensorProto are optional: an empty file is one without type, which is an error further down.
         */
        return read_tensor(&reader, size ? data : (const uint8_t *)"", size, out_name, out_datum);
    }
    return read_list(&reader, size ? data : (const uint8_t *)"", size, kind, 0, out_name, out_datum);
}

/* ---- writing ---- */

static void write_tensor(const uir_tensor *tensor, const char *name, uir_text *out) {
    enum { DIMS = 1, DATA_TYPE = 2, STRING_DATA = 6, NAME = 8, RAW_DATA = 9 };
    for (uint32_t i = 0; i < tensor->rank; i++) uir_wire_write_integer(out, DIMS, tensor->shape[i]);
    uir_wire_write_integer(out, DATA_TYPE, (int64_t)tensor->dtype);
    if (tensor->dtype == UIR_DTYPE_STRING) {
        const uir_string_view *strings = tensor->data;
        for (uint64_t i = 0; i < tensor->element_count; i++) {
            uir_wire_write_bytes(out, STRING_DATA, strings[i].text, strings[i].length);
        }
    }
    if (name && *name) uir_wire_write_bytes(out, NAME, name, strlen(name));
    if (tensor->dtype != UIR_DTYPE_STRING) uir_wire_write_bytes(out, RAW_DATA, tensor->data, tensor->byte_size);
}

static uir_status write_list(const uir_datum *datum, const char *name, int depth, uir_text *out) {
    static const uint32_t fields[] = {[UIR_VALUE_TENSOR] = FIELD_TENSOR,
                                      [UIR_VALUE_SEQUENCE] = FIELD_SEQUENCE,
                                      [UIR_VALUE_OPTIONAL] = FIELD_OPTIONAL};
    static const int64_t elements[] = {[UIR_VALUE_TENSOR] = ELEMENT_TENSOR,
                                       [UIR_VALUE_SEQUENCE] = ELEMENT_SEQUENCE,
                                       [UIR_VALUE_OPTIONAL] = ELEMENT_OPTIONAL};
    if (depth > MAX_NESTING) return UIR_STATUS_LIMIT;
    if (name && *name) uir_wire_write_bytes(out, FIELD_NAME, name, strlen(name));
    uir_wire_write_integer(out, FIELD_ELEM_TYPE, datum->count ? elements[datum->elements[0]->kind] : ELEMENT_TENSOR);
    for (uint32_t i = 0; i < datum->count; i++) {
        const uir_datum *element = datum->elements[i];
        uir_text inner;
        uir_text_init(&inner, &out->allocator);
        uir_status status = UIR_STATUS_OK;
        if (element->kind == UIR_VALUE_TENSOR) {
            write_tensor(element->tensor, NULL, &inner);
        } else {
            status = write_list(element, NULL, depth + 1, &inner);
        }
        if (status == UIR_STATUS_OK) status = uir_text_status(&inner);
        if (status == UIR_STATUS_OK) uir_wire_write_bytes(out, fields[element->kind], inner.data, inner.length);
        uir_text_deinit(&inner);
        UIR_TRY(status);
    }
    return uir_text_status(out);
}

uir_status uir_onnx_write_datum(const uir_datum *datum, const char *name, uir_text *out) {
    if (datum->kind != UIR_VALUE_TENSOR) return write_list(datum, name, 0, out);
    write_tensor(datum->tensor, name, out);
    return uir_text_status(out);
}
