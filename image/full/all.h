/* Formats of pictures that libuir decodes and libuir_rt does not: TIFF, WebP, JPEG 2000.
 *
 * In and out: as of image/decode.h, whose options take the table. What a file may make its library do is bounded before
 * that is asked: by the bytes that are there, as in image/. */
#ifndef UIR_IMAGE_FULL_ALL_H
#define UIR_IMAGE_FULL_ALL_H

#include "image/internal.h"

extern const uir_image_extras uir_image_all;

uir_status uir_image_read_tiff(uir_image_source *source);
uir_status uir_image_read_webp(uir_image_source *source);
uir_status uir_image_read_jpeg2000(uir_image_source *source);

/* What `pixels` of three bytes must take encoded where the format can tell of an even surface in next to no bytes: so
 * many are free, the others are 1032 bytes of one at most, as in PNG. */
static inline uint64_t uir_image_least_bytes(uint64_t width, uint64_t height, uint64_t free_pixels) {
    uint64_t pixels = width * height;
    return pixels > free_pixels ? (pixels - free_pixels) * 3 / 1032 : 0;
}

#endif
