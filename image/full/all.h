/* Picture formats of libuir that libuir_rt lacks: TIFF, WebP, JPEG 2000.
 *
 * In and out: as in image/decode.h, whose options take the table. As in image/, the size of the input bounds memory and
 * work before a decoder library is called. */
#ifndef UIR_IMAGE_FULL_ALL_H
#define UIR_IMAGE_FULL_ALL_H

#include "image/internal.h"

extern const uir_image_extras uir_image_all;

uir_status uir_image_read_tiff(uir_image_source *source);
uir_status uir_image_read_webp(uir_image_source *source);
uir_status uir_image_read_jpeg2000(uir_image_source *source);

/* Lower bound of the encoded size of RGB pixels, for formats that encode flat areas in almost no bytes: `free_pixels`
 * take none, and a byte encodes at most 1032 bytes of the others, as in PNG. */
static inline uint64_t uir_image_least_bytes(uint64_t width, uint64_t height, uint64_t free_pixels) {
    uint64_t pixels = width * height;
    return pixels > free_pixels ? (pixels - free_pixels) * 3 / 1032 : 0;
}

#endif
