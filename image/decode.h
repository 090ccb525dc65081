/* Encoded pictures as pixels.
 *
 * In: the bytes of a picture. Out: rows of pixels, in memory of the allocator. */
#ifndef UIR_IMAGE_DECODE_H
#define UIR_IMAGE_DECODE_H

#include "base/allocator.h"
#include "base/status.h"

typedef struct uir_pixels {
    int64_t height, width, channels; /* channels: 3, or 1 of gray */
    size_t size;
    uint8_t *data;
} uir_pixels;

typedef struct uir_image_options {
    const char *format; /* "RGB", "BGR" or "Grayscale"; NULL: one channel where the picture is gray, else RGB */
    bool (*stops)(const void *user); /* asked now and then whether to stop; NULL: never */
    const void *user;
} uir_image_options;

/* Alpha is left out. BAD_DATA or UNSUPPORTED with *out_problem saying what; CANCELLED. */
uir_status uir_image_decode(const uir_allocator *allocator, const uint8_t *data, size_t size,
                            const uir_image_options *options, uir_pixels *out_pixels, const char **out_problem);
bool uir_image_has_format(const char *format);
void uir_pixels_release(const uir_allocator *allocator, uir_pixels *pixels);

#endif
