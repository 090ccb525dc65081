/* Encoded pictures. */
#include "image/decode.h"
#include "image/full/all.h"
#include "ir/graph/interpret/interpret.h"

#include <string.h>

static bool stops(const void *user) {
    return uir_call_cancelled(user);
}

uir_status uir_interpret_image_decode(uir_call *call) {
    const uir_tensor *a = uir_call_tensor(call, 0);
    uir_pixels pixels;
    const char *problem;
    const uir_image_options options = {.format = uir_node_string(call->module, call->node, "format", "RGB"),
                                       .stops = stops,
                                       .user = call,
                                       .extras = &uir_image_all};
    uir_status status = uir_image_decode(call->allocator, a->data, a->byte_size, &options, &pixels, &problem);
    if (status == UIR_STATUS_CANCELLED) return status;
    if (status != UIR_STATUS_OK) return uir_call_fail(call, status, "%s", problem);
    const int64_t shape[3] = {pixels.height, pixels.width, pixels.channels};
    uir_tensor *result;
    status = uir_call_create(call, 0, UIR_DTYPE_U8, 3, shape, &result);
    if (status == UIR_STATUS_OK) memcpy(result->data, pixels.data, pixels.size);
    uir_pixels_release(call->allocator, &pixels);
    return status;
}
