#include "frontend/scan.h"
#include "frontend/wire.h"

#include <limits.h>
#include <string.h>

enum {
    RAW_DATA_FIELD = 9,  /* TensorProto.raw_data */
    LENGTH_RESERVED = 5, /* a submessage's length is written once it is known, padded to this many varint bytes */
};

typedef struct scan {
    const uint8_t *base;
    const char *file;
    uir_diagnostics *diagnostics;
    uir_text *shadow;
} scan;

typedef struct level {
    const ProtobufCMessageDescriptor *descriptor;
    const uint8_t *end;
    size_t length_at; /* in the shadow: where the reserved length bytes are */
} level;

static uir_status scan_error(const scan *scan, uir_status status, const ProtobufCMessageDescriptor *descriptor,
                             const uint8_t *at, const char *field, const char *what) {
    uir_location location = {.file = scan->file, .offset = (uint64_t)(at - scan->base), .has_offset = true};
    return uir_error_hint(scan->diagnostics, status, &location,
                          "the file is damaged or not an ONNX file; fetch or export it again", "%s%s%s: %s",
                          descriptor->short_name, field ? "." : "", field ? field : "", what);
}

/* The wire type that a field's values have when not packed. */
static uir_wire_type field_wire_type(const ProtobufCFieldDescriptor *field) {
    switch (field->type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return UIR_WIRE_32;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return UIR_WIRE_64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return UIR_WIRE_BYTES;
    default:
        return UIR_WIRE_VARINT;
    }
}

static bool wire_type_fits(const ProtobufCFieldDescriptor *field, uir_wire_type type) {
    uir_wire_type expected = field_wire_type(field);
    bool packed = field->label == PROTOBUF_C_LABEL_REPEATED && expected != UIR_WIRE_BYTES && type == UIR_WIRE_BYTES;
    return type == expected || packed;
}

/* Fills in the length of the submessage that ends here. */
static uir_status close_level(const scan *scan, const level *level) {
    uint64_t length = scan->shadow->length - level->length_at - LENGTH_RESERVED;
    if (length > INT_MAX) return scan_error(scan, UIR_STATUS_LIMIT, level->descriptor, level->end, NULL, "over 2 GiB");
    char *at = scan->shadow->data + level->length_at;
    for (int i = 0; i < LENGTH_RESERVED; i++, length >>= 7) {
        at[i] = (char)((length & 0x7f) | (i + 1 < LENGTH_RESERVED ? 0x80 : 0));
    }
    return UIR_STATUS_OK;
}

uir_status uir_proto_scan(const ProtobufCMessageDescriptor *descriptor, const uint8_t *data, uint64_t size,
                          const char *file, uir_diagnostics *diagnostics, uir_text *shadow) {
    scan scan = {data, file, diagnostics, shadow};
    level levels[UIR_PROTO_MAX_DEPTH];
    uint32_t depth = 0;
    levels[depth++] = (level){descriptor, data + size, 0};
    uir_wire_reader reader = {data, data + size};
    for (;;) {
        const level *level = &levels[depth - 1];
        if (reader.at == level->end) {
            if (--depth == 0) break;
            UIR_TRY(uir_text_status(shadow));
            UIR_TRY(close_level(&scan, level));
            reader.end = levels[depth - 1].end;
            continue;
        }
        uir_wire_field field;
        const char *wrong = uir_wire_next(&reader, &field);
        if (wrong) return scan_error(&scan, UIR_STATUS_BAD_FILE, level->descriptor, field.start, NULL, wrong);
        const ProtobufCFieldDescriptor *known =
            protobuf_c_message_descriptor_get_field(level->descriptor, field.number);
        if (!known) continue;
        if (!wire_type_fits(known, field.type)) {
            return scan_error(&scan, UIR_STATUS_BAD_FILE, level->descriptor, field.start, known->name,
                              "the value has the wrong type for this field");
        }
        if (known->type == PROTOBUF_C_TYPE_MESSAGE) {
            if (depth == UIR_PROTO_MAX_DEPTH) {
                return scan_error(&scan, UIR_STATUS_LIMIT, level->descriptor, field.start, known->name,
                                  "messages are nested too deep");
            }
            uir_wire_write_key(shadow, field.number, UIR_WIRE_BYTES);
            levels[depth++] = (struct level){known->descriptor, field.data + field.length, shadow->length};
            uir_text_append(shadow, "\0\0\0\0\0", LENGTH_RESERVED);
            reader = (uir_wire_reader){field.data, field.data + field.length};
        } else if (level->descriptor == &uir_onnx__tensor_proto__descriptor && field.number == RAW_DATA_FIELD) {
            uir_raw_span span = {(uint64_t)(field.data - data), field.length};
            uir_wire_write_bytes(shadow, RAW_DATA_FIELD, &span, sizeof span);
        } else {
            if (field.type == UIR_WIRE_BYTES && field.length > INT_MAX) {
                return scan_error(&scan, UIR_STATUS_LIMIT, level->descriptor, field.start, known->name, "over 2 GiB");
            }
            uir_text_append(shadow, (const char *)field.start, (size_t)(reader.at - field.start));
        }
        if (shadow->failed) return UIR_STATUS_OUT_OF_MEMORY;
    }
    return uir_text_status(shadow);
}
