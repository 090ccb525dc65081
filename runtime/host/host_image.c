/* The host operator of pictures. */
#include "image/decode.h"
#include "runtime/internal.h"

#include <string.h>

static bool stops(const void *user) {
    return uir_rt_cancelled(user);
}

uir_status uir_rt_image_decode(uir_runtime *r, uint32_t step) {
    uint32_t bytes;
    char *data, *result;
    uir_pixels pixels;
    const char *problem;
    const uir_plan_attribute *format = uir_rt_find_attribute(r, step, "format");
    UIR_TRY(uir_rt_host_operand(r, step, 0, &bytes, &data));
    const char *name = format && format->kind == UIR_PLAN_TEXT ? uir_plan_get_text(r->plan, format->first) : "";
    if (!uir_image_has_format(name)) return uir_rt_fail_step(r, step, UIR_STATUS_BAD_FILE, "unknown picture format");
    const uir_image_options options = {.format = name, .stops = stops, .user = r, .extras = r->package->pictures};
    uir_status status = uir_image_decode(&r->allocator, (const uint8_t *)data, (size_t)uir_rt_shape(r, bytes)[0],
                                         &options, &pixels, &problem);
    if (status == UIR_STATUS_CANCELLED) return status;
    if (status != UIR_STATUS_OK) return uir_rt_fail_step(r, step, status, "%s", problem);
    const int64_t shape[3] = {pixels.height, pixels.width, pixels.channels};
    status = uir_rt_give_host_output(r, step, 0, shape, &result);
    if (status == UIR_STATUS_OK) memcpy(result, pixels.data, pixels.size);
    uir_pixels_release(&r->allocator, &pixels);
    return status;
}
