/* PNG, by libpng. Alpha is left out, not blended. */
#include "base/sanitize.h"
#include "image/internal.h"

#ifdef UIR_HAVE_PNG
#include <png.h>

#include <string.h>

/* Bits of a pixel, as the first chunk has them: 24 bytes on, depth and colour. */
static uint64_t bits_of_pixel(const uir_image_source *source) {
    static const uint8_t channels[] = {1, 0, 3, 1, 2, 0, 4};
    return source->data[24] * (uint64_t)channels[source->data[25] % sizeof channels];
}

uir_status uir_image_read_png(uir_image_source *source) {
    png_image image;
    memset(&image, 0, sizeof image);
    image.version = PNG_IMAGE_VERSION;
    uir_status status = UIR_STATUS_BAD_DATA;
    source->problem = "the PNG picture is damaged";
    if (png_image_begin_read_from_memory(&image, source->data, source->size)) {
        bool alpha = image.format & PNG_FORMAT_FLAG_ALPHA;
        source->gray = !(image.format & PNG_FORMAT_FLAG_COLOR);
        uint8_t *four = NULL;
        size_t count = (size_t)image.width * image.height, size = count * 4;
        image.format = alpha ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
        /* Deflate makes 258 bytes of two bits at most. */
        uint64_t row = (image.width * bits_of_pixel(source) + 7) / 8;
        status = uir_image_allocate(source, image.width, image.height, row * image.height / 1032);
        if (status == UIR_STATUS_OK && alpha && !(four = uir_allocate(source->allocator, size)))
            status = UIR_STATUS_OUT_OF_MEMORY;
        uint8_t *target = alpha ? four : source->pixels.data;
        if (status == UIR_STATUS_OK && !png_image_finish_read(&image, NULL, target, 0, NULL))
            status = UIR_STATUS_BAD_DATA;
        if (status == UIR_STATUS_OK) UIR_WRITTEN_ELSEWHERE(target, count * (alpha ? 4 : 3));
        for (size_t i = 0; status == UIR_STATUS_OK && alpha && i < count; i++)
            memcpy(source->pixels.data + 3 * i, four + 4 * i, 3);
        if (four) uir_release(source->allocator, four, size);
    }
    png_image_free(&image);
    return status;
}

#else

uir_status uir_image_read_png(uir_image_source *source) {
    return uir_image_fail(source, UIR_STATUS_UNSUPPORTED, "this build has no libpng: PNG cannot be decoded");
}

#endif
