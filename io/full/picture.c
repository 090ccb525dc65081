/* Pictures as values: u8 [height, width, channels]. */
#include "io/full/formats.h"
#include "image/decode.h"
#include "image/full/all.h"

#include <string.h>

uir_status uir_picture_read(const uir_allocator *allocator, uir_diagnostics *diagnostics, const char *file,
                            const uint8_t *data, size_t size, uir_tensor **out_tensor) {
    uir_location place = {.file = file};
    uir_pixels pixels;
    const char *problem;
    uir_status status =
        uir_image_decode(allocator, data, size, &(uir_image_options){.extras = &uir_image_all}, &pixels, &problem);
    if (status == UIR_STATUS_OUT_OF_MEMORY) return status;
    if (status != UIR_STATUS_OK)
        return uir_error_hint(
            diagnostics, UIR_STATUS_BAD_FILE, &place,
            "PNG, JPEG, TIFF, WebP, JPEG 2000, BMP and PNM pictures of up to 65536 by 65536 can be read", "%s",
            problem);
    int64_t shape[3] = {pixels.height, pixels.width, pixels.channels};
    status = uir_tensor_create(allocator, UIR_DTYPE_U8, 3, shape, out_tensor);
    if (status == UIR_STATUS_OK) memcpy((*out_tensor)->data, pixels.data, (*out_tensor)->byte_size);
    uir_pixels_release(allocator, &pixels);
    return status;
}
