/* Decodes pictures to pixels.
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

/* Formats that only libuir decodes (image/full), and their readers. */
#define UIR_IMAGE_EXTRAS(row) row(TIFF, "TIFF") row(WEBP, "WebP") row(JPEG2000, "JPEG 2000")
typedef enum uir_image_extra {
#define UIR_IMAGE_EXTRA_ROW(constant, name) UIR_IMAGE_##constant,
    UIR_IMAGE_EXTRAS(UIR_IMAGE_EXTRA_ROW)
#undef UIR_IMAGE_EXTRA_ROW
        UIR_IMAGE_EXTRA_COUNT
} uir_image_extra;
struct uir_image_source;
typedef struct uir_image_extras {
    uir_status (*read[UIR_IMAGE_EXTRA_COUNT])(struct uir_image_source *source);
} uir_image_extras;

typedef struct uir_image_options {
    const char *format;              /* "RGB", "BGR" or "Grayscale"; NULL: one channel for a gray picture, else RGB */
    bool (*stops)(const void *user); /* polled: whether to stop; NULL: never */
    const void *user;
    const uir_image_extras *extras; /* NULL: these formats are UNSUPPORTED, with a problem */
} uir_image_options;

/* Decodes; alpha is dropped. BAD_DATA or UNSUPPORTED with the problem in *out_problem; OUT_OF_MEMORY; CANCELLED. */
uir_status uir_image_decode(const uir_allocator *allocator, const uint8_t *data, size_t size,
                            const uir_image_options *options, uir_pixels *out_pixels, const char **out_problem);
bool uir_image_has_format(const char *format);
void uir_pixels_release(const uir_allocator *allocator, uir_pixels *pixels);

#endif
