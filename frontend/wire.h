/* Reads the protobuf wire format without a schema, and writes some messages.
 *
 * In: untrusted bytes. Out: one field after the other, each within its message's bounds. */
#ifndef UIR_FRONTEND_WIRE_H
#define UIR_FRONTEND_WIRE_H

#include "base/text.h"

typedef enum uir_wire_type {
    UIR_WIRE_VARINT = 0,
    UIR_WIRE_64 = 1,
    UIR_WIRE_BYTES = 2,
    UIR_WIRE_32 = 5 /* 3 and 4 (groups) do not occur in ONNX and are errors */
} uir_wire_type;

typedef struct uir_wire_reader {
    const uint8_t *at, *end;
} uir_wire_reader;

typedef struct uir_wire_field {
    uint32_t number;
    uir_wire_type type;
    uint64_t value;       /* VARINT */
    const uint8_t *start; /* of the field's key */
    const uint8_t *data;  /* BYTES: contents; 32 and 64: the bytes; VARINT: the varint */
    uint64_t length;      /* of data */
} uir_wire_field;

/* Reads one field; the reader must not be at its end. Returns NULL, or the problem if it is malformed. */
const char *uir_wire_next(uir_wire_reader *reader, uir_wire_field *out_field);
bool uir_wire_read_varint(uir_wire_reader *reader, uint64_t *out_value);

void uir_wire_write_varint(uir_text *out, uint64_t value);
void uir_wire_write_key(uir_text *out, uint32_t number, uir_wire_type type);
void uir_wire_write_integer(uir_text *out, uint32_t number, int64_t value);
void uir_wire_write_bytes(uir_text *out, uint32_t number, const void *data, uint64_t length);
/* Size of the varint of `value`, in bytes. */
uint32_t uir_wire_varint_size(uint64_t value);

#endif
