/* PNG, by libpng. Alpha is left out, not blended. */
#include "base/sanitize.h"
#include "image/internal.h"

#ifdef UIR_HAVE_PNG
#include <png.h>

#include <stdio.h>
#include <string.h>

/* Bits of a pixel, as the first chunk has them: 24 bytes on, depth and colour. */
static uint64_t bits_of_pixel(const uir_image_source *source) {
    static const uint8_t channels[] = {1, 0, 3, 1, 2, 0, 4};
    return source->data[24] * (uint64_t)channels[source->data[25] % sizeof channels];
}

/* The bytes by way of a stream: the library asks for some thousands at a time, of which each is at most 1032 of the
 * picture's, and so there is a moment at which to stop. */
typedef struct png_stream {
    const uir_image_source *source;
    size_t used;
} png_stream;

static ssize_t give_bytes(void *user, char *buffer, size_t size) {
    png_stream *stream = user;
    size_t left = stream->source->size - stream->used;
    if (uir_image_stops(stream->source)) return -1;
    if (size > left) size = left;
    memcpy(buffer, stream->source->data + stream->used, size);
    stream->used += size;
    return (ssize_t)size;
}

static uir_status decode(uir_image_source *source, FILE *file) {
    png_image image;
    memset(&image, 0, sizeof image);
    image.version = PNG_IMAGE_VERSION;
    uir_status status = UIR_STATUS_BAD_DATA;
    source->problem = "the PNG picture is damaged";
    if (png_image_begin_read_from_stdio(&image, file)) {
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

uir_status uir_image_read_png(uir_image_source *source) {
    png_stream stream = {.source = source};
    FILE *file = fopencookie(&stream, "rb", (cookie_io_functions_t){.read = give_bytes});
    if (!file) return UIR_STATUS_OUT_OF_MEMORY;
    uir_status status = decode(source, file);
    fclose(file);
    return status;
}

#else

uir_status uir_image_read_png(uir_image_source *source) {
    return uir_image_fail(source, UIR_STATUS_UNSUPPORTED, "this build has no libpng: PNG cannot be decoded");
}

#endif
