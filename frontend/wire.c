#include "frontend/wire.h"

bool uir_wire_read_varint(uir_wire_reader *reader, uint64_t *out_value) {
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 70; shift += 7) {
        if (reader->at == reader->end) return false;
        uint8_t byte = *reader->at++;
        if (shift == 63 && byte > 1) return false; /* more than 64 bits */
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *out_value = value;
            return true;
        }
    }
    return false;
}

const char *uir_wire_next(uir_wire_reader *reader, uir_wire_field *out_field) {
    uint64_t key;
    *out_field = (uir_wire_field){.start = reader->at};
    if (!uir_wire_read_varint(reader, &key)) return "the field's key is cut off or too long";
    if (key >> 3 == 0 || key >> 3 > 536870911) return "the field's number is out of range";
    out_field->number = (uint32_t)(key >> 3);
    out_field->type = (uir_wire_type)(key & 7);
    out_field->data = reader->at;
    uint64_t left = (uint64_t)(reader->end - reader->at);
    switch (key & 7) {
    case UIR_WIRE_VARINT:
        if (!uir_wire_read_varint(reader, &out_field->value)) return "the number is cut off or too long";
        out_field->length = (uint64_t)(reader->at - out_field->data);
        return NULL;
    case UIR_WIRE_64:
    case UIR_WIRE_32:
        out_field->length = (key & 7) == UIR_WIRE_64 ? 8 : 4;
        if (out_field->length > left) return "the number is cut off";
        reader->at += out_field->length;
        return NULL;
    case UIR_WIRE_BYTES:
        if (!uir_wire_read_varint(reader, &out_field->length)) return "the length is cut off or too long";
        out_field->data = reader->at;
        if (out_field->length > (uint64_t)(reader->end - reader->at)) return "the length is past the end";
        reader->at += out_field->length;
        return NULL;
    default:
        return "the field has a wire type that ONNX does not use";
    }
}

uint32_t uir_wire_varint_size(uint64_t value) {
    uint32_t size = 1;
    while (value >>= 7) size++;
    return size;
}

void uir_wire_write_varint(uir_text *out, uint64_t value) {
    char bytes[10];
    size_t count = 0;
    do {
        bytes[count++] = (char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value);
    uir_text_append(out, bytes, count);
}

void uir_wire_write_key(uir_text *out, uint32_t number, uir_wire_type type) {
    uir_wire_write_varint(out, (uint64_t)number << 3 | (uint64_t)type);
}

void uir_wire_write_integer(uir_text *out, uint32_t number, int64_t value) {
    uir_wire_write_key(out, number, UIR_WIRE_VARINT);
    uir_wire_write_varint(out, (uint64_t)value);
}

void uir_wire_write_bytes(uir_text *out, uint32_t number, const void *data, uint64_t length) {
    uir_wire_write_key(out, number, UIR_WIRE_BYTES);
    uir_wire_write_varint(out, length);
    if (length) uir_text_append(out, data, length);
}
