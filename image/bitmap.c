/* BMP (1, 4, 8, 24 and 32 bits a pixel, not compressed) and PNM (gray and colour, text and binary). */
#include "image/internal.h"

/* ---- BMP ---- */

static uint32_t little(const uint8_t *at, int bytes) {
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++) value |= (uint32_t)at[i] << (8 * i);
    return value;
}

typedef struct bitmap {
    uint32_t start, width, height, bits, palette, colours;
    bool downward;
} bitmap;

static void read_bmp_row(const uir_image_source *source, const bitmap *b, const uint8_t *row, uint8_t *target) {
    for (uint32_t x = 0; x < b->width; x++) {
        const uint8_t *pixel = row + (size_t)x * b->bits / 8;
        if (b->bits <= 8) {
            uint32_t shift = 8 - b->bits - x * b->bits % 8, index = pixel[0] >> shift & ((1u << b->bits) - 1);
            pixel = source->data + b->palette + 4 * (size_t)(index < b->colours ? index : 0);
        }
        for (int c = 0; c < 3; c++) target[3 * (size_t)x + c] = pixel[2 - c];
    }
}

uir_status uir_image_read_bmp(uir_image_source *source) {
    const uint8_t *d = source->data;
    if (source->size < 54 || little(d + 14, 4) < 40)
        return uir_image_fail(source, UIR_STATUS_BAD_DATA, "the BMP picture's header is too short");
    bitmap b = {.start = little(d + 10, 4), .width = little(d + 18, 4), .height = little(d + 22, 4)};
    b.bits = little(d + 28, 2);
    b.downward = b.height >> 31;
    if (b.downward) b.height = 0 - b.height;
    uint32_t compression = little(d + 30, 4);
    b.palette = 14 + little(d + 14, 4);
    b.colours = little(d + 46, 4);
    if (b.bits <= 8 && (!b.colours || b.colours > 1u << b.bits)) b.colours = 1u << b.bits;
    if (b.bits > 8) b.colours = 0;
    if (compression || (b.bits != 1 && b.bits != 4 && b.bits != 8 && b.bits != 24 && b.bits != 32))
        return uir_image_fail(source, UIR_STATUS_UNSUPPORTED, "the BMP picture is compressed, or has 16 bits a pixel");
    size_t stride = ((size_t)b.width * b.bits + 31) / 32 * 4;
    UIR_TRY(uir_image_allocate(source, b.width, b.height, (uint64_t)stride * b.height));
    if (b.start > source->size || (source->size - b.start) / stride < b.height || b.palette > source->size ||
        (source->size - b.palette) / 4 < b.colours)
        return uir_image_fail(source, UIR_STATUS_BAD_DATA, "the BMP picture is cut off");
    for (uint32_t y = 0; y < b.height; y++) {
        uint32_t line = b.downward ? y : b.height - 1 - y;
        read_bmp_row(source, &b, d + b.start + line * stride, source->pixels.data + (size_t)y * b.width * 3);
    }
    return UIR_STATUS_OK;
}

/* ---- PNM ---- */

/* The next number of the text; comments run from # to the line's end. */
static bool next_number(const uir_image_source *source, size_t *at, uint32_t *out_number) {
    const uint8_t *d = source->data;
    while (*at < source->size && (d[*at] == ' ' || (d[*at] >= '\t' && d[*at] <= '\r') || d[*at] == '#')) {
        bool comment = d[(*at)++] == '#';
        while (comment && *at < source->size && d[*at] != '\n') ++*at;
    }
    size_t begin = *at;
    for (*out_number = 0; *at < source->size && d[*at] >= '0' && d[*at] <= '9' && *out_number < 1000000; ++*at)
        *out_number = *out_number * 10 + d[*at] - '0';
    return *at > begin;
}

static bool next_sample(const uir_image_source *source, bool text, uint32_t greatest, size_t *at, uint32_t *out) {
    if (text) return next_number(source, at, out);
    size_t bytes = greatest > 255 ? 2 : 1;
    if (source->size - *at < bytes) return false;
    *out = bytes == 2 ? (uint32_t)source->data[*at] << 8 | source->data[*at + 1] : source->data[*at];
    *at += bytes;
    return true;
}

uir_status uir_image_read_pnm(uir_image_source *source) {
    size_t at = 2;
    uint32_t width, height, greatest, sample = 0;
    bool text = source->data[1] < '4', colour = source->data[1] == '3' || source->data[1] == '6';
    if (!next_number(source, &at, &width) || !next_number(source, &at, &height) ||
        !next_number(source, &at, &greatest) || !greatest || greatest > 65535)
        return uir_image_fail(source, UIR_STATUS_BAD_DATA, "the PNM picture's header is invalid");
    source->gray = !colour;
    at++; /* one blank */
    UIR_TRY(uir_image_allocate(source, width, height, at + (uint64_t)width * height * (colour ? 3 : 1)));
    for (size_t i = 0; i < source->pixels.size; i++) {
        if ((colour || i % 3 == 0) && !next_sample(source, text, greatest, &at, &sample))
            return uir_image_fail(source, UIR_STATUS_BAD_DATA, "the PNM picture is cut off");
        if (sample > greatest) return uir_image_fail(source, UIR_STATUS_BAD_DATA, "a sample exceeds the maximum");
        source->pixels.data[i] = (uint8_t)((sample * 255 + greatest / 2) / greatest);
    }
    return UIR_STATUS_OK;
}
