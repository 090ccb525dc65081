/* Internal declarations of picture formats: each decodes to RGB pixels, and tells whether the picture is gray. */
#ifndef UIR_IMAGE_INTERNAL_H
#define UIR_IMAGE_INTERNAL_H

#include "image/decode.h"

enum { UIR_IMAGE_MOST = 1 << 16 }; /* most pixels along a side */

typedef struct uir_image_source {
    const uir_allocator *allocator;
    const uir_image_options *options;
    const uint8_t *data;
    size_t size;
    uir_pixels pixels;
    bool gray; /* all channels are equal: the picture has one */
    const char *problem;
} uir_image_source;

/* Allocates the pixels. BAD_DATA for a side of 0 or too many pixels, and if the input is shorter than `least_bytes`,
 * the least encoded size of the pixels: whatever a header says, the input bounds the memory. */
uir_status uir_image_allocate(uir_image_source *source, uint64_t width, uint64_t height, uint64_t least_bytes);
static inline uir_status uir_image_fail(uir_image_source *source, uir_status status, const char *problem) {
    source->problem = problem;
    return status;
}

static inline bool uir_image_stops(const uir_image_source *source) {
    return source->options->stops && source->options->stops(source->options->user);
}

uir_status uir_image_read_jpeg(uir_image_source *source);
uir_status uir_image_read_png(uir_image_source *source);
uir_status uir_image_read_bmp(uir_image_source *source);
uir_status uir_image_read_pnm(uir_image_source *source);

#endif
