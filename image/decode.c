/* Which format bytes are of, and the channels in the order asked for. */
#include "image/internal.h"

#include <string.h>

/* The first bytes of each format, at an offset; what reads it, or which of the extras. */
static const struct {
    const char *magic;
    size_t length, offset;
    uir_status (*read)(uir_image_source *source);
    uir_image_extra extra;
} formats[] = {{"\xff\xd8\xff", 3, 0, uir_image_read_jpeg, 0},
               {"\x89PNG\r\n\x1a\n", 8, 0, uir_image_read_png, 0},
               {"BM", 2, 0, uir_image_read_bmp, 0},
               {"P2", 2, 0, uir_image_read_pnm, 0},
               {"P3", 2, 0, uir_image_read_pnm, 0},
               {"P5", 2, 0, uir_image_read_pnm, 0},
               {"P6", 2, 0, uir_image_read_pnm, 0},
               {"II*\0", 4, 0, NULL, UIR_IMAGE_TIFF},
               {"MM\0*", 4, 0, NULL, UIR_IMAGE_TIFF},
               {"II+\0", 4, 0, NULL, UIR_IMAGE_TIFF},
               {"MM\0+", 4, 0, NULL, UIR_IMAGE_TIFF},
               {"WEBP", 4, 8, NULL, UIR_IMAGE_WEBP},
               {"jP  ", 4, 4, NULL, UIR_IMAGE_JPEG2000},
               {"\xff\x4f\xff\x51", 4, 0, NULL, UIR_IMAGE_JPEG2000}};

static uir_status read_extra(uir_image_source *source, uir_image_extra extra) {
#define UIR_IMAGE_EXTRA_ROW(constant, name)                                                                            \
    "the picture is " name ", which only libuir decodes; this runtime library decodes JPEG, PNG, BMP and PNM",
    static const char *const problems[] = {UIR_IMAGE_EXTRAS(UIR_IMAGE_EXTRA_ROW)};
#undef UIR_IMAGE_EXTRA_ROW
    if (source->options->extras) return source->options->extras->read[extra](source);
    return uir_image_fail(source, UIR_STATUS_UNSUPPORTED, problems[extra]);
}

uir_status uir_image_allocate(uir_image_source *source, uint64_t width, uint64_t height, uint64_t least_bytes) {
    if (!width || !height || width > UIR_IMAGE_MOST || height > UIR_IMAGE_MOST)
        return uir_image_fail(source, UIR_STATUS_BAD_DATA, "a side of the picture has no pixels or over 65536");
    if (least_bytes > source->size)
        return uir_image_fail(source, UIR_STATUS_BAD_DATA,
                              "the picture is cut off: its header declares more pixels than its bytes can hold");
    uir_pixels *p = &source->pixels;
    *p = (uir_pixels){(int64_t)height, (int64_t)width, 3, (size_t)(width * height * 3), NULL};
    UIR_TRY_ALLOCATE(p->data, uir_allocate(source->allocator, p->size));
    return UIR_STATUS_OK;
}

static void swap_channels(uir_pixels *p) {
    for (size_t i = 0; i + 2 < p->size; i += 3) {
        uint8_t red = p->data[i];
        p->data[i] = p->data[i + 2];
        p->data[i + 2] = red;
    }
}

/* One channel: the luma of ITU-R 601 in 16 bits of fraction, rounded. Three that are the same are their luma. */
static uir_status make_gray(uir_image_source *source) {
    uir_pixels *p = &source->pixels, gray = *p;
    gray.channels = 1;
    gray.size = p->size / 3;
    UIR_TRY_ALLOCATE(gray.data, uir_allocate(source->allocator, gray.size));
    for (size_t i = 0; i < gray.size; i++) {
        const uint8_t *rgb = p->data + 3 * i;
        gray.data[i] = (uint8_t)((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 0x8000u) >> 16);
    }
    uir_pixels_release(source->allocator, p);
    *p = gray;
    return UIR_STATUS_OK;
}

bool uir_image_has_format(const char *format) {
    return !strcmp(format, "RGB") || !strcmp(format, "BGR") || !strcmp(format, "Grayscale");
}

static uir_status read(uir_image_source *source) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        size_t end = formats[i].offset + formats[i].length;
        if (source->size >= end && !memcmp(source->data + formats[i].offset, formats[i].magic, formats[i].length))
            return formats[i].read ? formats[i].read(source) : read_extra(source, formats[i].extra);
    }
    return uir_image_fail(source, UIR_STATUS_BAD_DATA, "the bytes are not in a known picture format");
}

uir_status uir_image_decode(const uir_allocator *allocator, const uint8_t *data, size_t size,
                            const uir_image_options *options, uir_pixels *out_pixels, const char **out_problem) {
    uir_image_source source = {.allocator = allocator, .options = options, .data = data, .size = size};
    const char *format = options->format;
    uir_status status = read(&source);
    if (uir_image_stops(&source)) status = UIR_STATUS_CANCELLED, source.problem = NULL;
    bool gray = format ? !strcmp(format, "Grayscale") : source.gray;
    if (status == UIR_STATUS_OK && format && !strcmp(format, "BGR")) swap_channels(&source.pixels);
    if (status == UIR_STATUS_OK && gray) status = make_gray(&source);
    if (status != UIR_STATUS_OK) uir_pixels_release(allocator, &source.pixels);
    *out_pixels = source.pixels;
    *out_problem = source.problem ? source.problem : uir_status_text(status);
    return status;
}

void uir_pixels_release(const uir_allocator *allocator, uir_pixels *pixels) {
    if (pixels->data) uir_release(allocator, pixels->data, pixels->size);
    *pixels = (uir_pixels){0};
}
