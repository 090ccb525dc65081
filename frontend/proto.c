#include "frontend/proto.h"
#include "base/sanitize.h"
#include "frontend/scan.h"

#include <string.h>

/* A file of a few bytes per message unpacks to structs of a few hundred bytes each. Real models stay well under this
 * ratio. */
#define UNPACKED_BASE_BYTES ((size_t)256 << 20)
#define UNPACKED_RATIO      32

typedef struct budget {
    uir_arena *arena;
    size_t left;
    bool spent, failed;
} budget;

static void *budget_allocate(void *user, size_t size) {
    budget *budget = user;
    if (size > budget->left) {
        budget->spent = true;
        return NULL;
    }
    void *block = uir_arena_allocate(budget->arena, size ? size : 1);
    if (block) {
        budget->left -= size;
        UIR_WRITTEN_ELSEWHERE(block, size);
    } else {
        budget->failed = true;
    }
    return block;
}

/* The arena releases everything at once. */
static void budget_free(void *user, void *pointer) {
    (void)user;
    (void)pointer;
}

uir_status uir_proto_unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *data, uint64_t size,
                            const char *file, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                            uir_arena *arena, ProtobufCMessage **out_message) {
    uir_text shadow;
    uir_text_init(&shadow, allocator);
    uir_status status = uir_proto_scan(descriptor, data, size, file, diagnostics, &shadow);
    if (status == UIR_STATUS_OK) {
        size_t limit = shadow.length > (SIZE_MAX - UNPACKED_BASE_BYTES) / UNPACKED_RATIO
                           ? SIZE_MAX
                           : UNPACKED_BASE_BYTES + shadow.length * UNPACKED_RATIO;
        budget budget = {arena, limit, false, false};
        ProtobufCAllocator bridge = {budget_allocate, budget_free, &budget};
        size_t before = arena->used;
        *out_message = protobuf_c_message_unpack(descriptor, &bridge, shadow.length,
                                                 (const uint8_t *)(shadow.data ? shadow.data : ""));
        if (!*out_message) {
            uir_location location = {.file = file};
            if (budget.failed) {
                status = UIR_STATUS_OUT_OF_MEMORY;
            } else if (budget.spent) {
                status = uir_error(diagnostics, UIR_STATUS_LIMIT, &location, "unpacking needs more than %zu MiB",
                                   (arena->used - before) >> 20);
            } else {
                status = uir_error_hint(diagnostics, UIR_STATUS_BAD_FILE, &location,
                                        "the file is damaged or not an ONNX file; fetch or export it again",
                                        "%s: the contents of a field are malformed", descriptor->short_name);
            }
        }
    }
    uir_text_deinit(&shadow);
    return status;
}

uir_raw_span uir_proto_raw_span(const UirOnnx__TensorProto *tensor) {
    uir_raw_span span = {0, 0};
    if (tensor->raw_data.len == sizeof span) memcpy(&span, tensor->raw_data.data, sizeof span);
    return span;
}

bool uir_bytes_equal(uir_bytes a, uir_bytes b) {
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}
