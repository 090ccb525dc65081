/* Unpacks untrusted protobuf bytes to protobuf-c's structs.
 *
 * In: the bytes of a ModelProto or a TensorProto. Out: the unpacked message in a caller's arena. Before protobuf-c
 * runs, the bytes are checked against the schema with a bound on nesting (protobuf-c recurses without one), and copied
 * into a "shadow". The shadow lacks fields unknown to the schema, and has a uir_raw_span instead of the contents of
 * each TensorProto.raw_data: weights are not copied. */
#ifndef UIR_FRONTEND_PROTO_H
#define UIR_FRONTEND_PROTO_H

#include "base/status.h"
#include "onnx.pb-c.h"

/* Message levels, the outermost being 1; a level of If or Loop takes three. Other readers of the format stop at 100. */
#define UIR_PROTO_MAX_DEPTH 100

/* Contents of raw_data after unpacking: the position of the bytes in the file. */
typedef struct uir_raw_span {
    uint64_t offset, length;
} uir_raw_span;

typedef struct uir_bytes {
    const char *data; /* not zero terminated, zeros allowed */
    size_t length;
} uir_bytes;

/* Unpacks; `file` names the source in messages. The message and all its parts live in `arena`. */
uir_status uir_proto_unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *data, uint64_t size,
                            const char *file, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                            uir_arena *arena, ProtobufCMessage **out_message);

/* The span of a tensor whose has_raw_data is set. */
uir_raw_span uir_proto_raw_span(const UirOnnx__TensorProto *tensor);

static inline uir_bytes uir_proto_bytes(bool has, ProtobufCBinaryData data) {
    return has && data.len ? (uir_bytes){(const char *)data.data, data.len} : (uir_bytes){"", 0};
}
/* An optional string field or "". */
#define UIR_PROTO_BYTES(message, field) uir_proto_bytes((message)->has_##field, (message)->field)

bool uir_bytes_equal(uir_bytes a, uir_bytes b);

#endif
