/* Validates protobuf bytes before unpacking: see proto.h. */
#ifndef UIR_FRONTEND_SCAN_H
#define UIR_FRONTEND_SCAN_H

#include "base/text.h"
#include "frontend/proto.h"

/* Appends the shadow of the message to `shadow`. An error names the field and the offset. */
uir_status uir_proto_scan(const ProtobufCMessageDescriptor *descriptor, const uint8_t *data, uint64_t size,
                          const char *file, uir_diagnostics *diagnostics, uir_text *shadow);

#endif
