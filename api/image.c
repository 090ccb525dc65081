/* Pictures, and the inflating of .npz members: both from stb_image, but for JPEG, which is libjpeg-turbo's.
 *
 * stb's own allocations come from the C library: its hooks carry no context through which a uir_allocator could be
 * reached. */
#include "api/internal.h"
#include "image/decode.h"

#include <limits.h>
#include <string.h>

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_ONLY_BMP
#define STBI_ONLY_PNM
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_NO_HDR
#define STBI_NO_FAILURE_STRINGS /* they would be kept in a static variable */
#define STBI_NO_THREAD_LOCALS   /* its per-thread settings are not used */
#define STBI_MAX_DIMENSIONS     16384
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function" /* stb declares what is left out here; told at the file's end */
#endif
#include <stb/stb_image.h>

/* Whether the picture has one component, as the header of its frame has it. */
static bool is_gray_jpeg(const uint8_t *data, size_t size) {
    for (size_t at = 2; at + 10 <= size && data[at] == 0xff;) {
        uint8_t marker = data[at + 1];
        if (marker == 0xff) {
            at++; /* a filling byte */
            continue;
        }
        if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc)
            return data[at + 9] == 1;
        at += 2 + ((size_t)data[at + 2] << 8 | data[at + 3]);
    }
    return false;
}

static uir_status read_jpeg(const uir_allocator *allocator, uir_diagnostics *diagnostics, const char *file,
                            const uint8_t *data, size_t size, uir_tensor **out_tensor) {
    uir_pixels pixels;
    const char *problem;
    uir_status status =
        uir_image_decode(allocator, data, size, is_gray_jpeg(data, size) ? "Grayscale" : "RGB", &pixels, &problem);
    if (status == UIR_STATUS_OUT_OF_MEMORY) return status;
    if (status != UIR_STATUS_OK)
        return uir_error(diagnostics, status == UIR_STATUS_BAD_DATA ? UIR_STATUS_BAD_FILE : status,
                         &(uir_location){.file = file}, "%s", problem);
    status = uir_tensor_create(allocator, UIR_DTYPE_U8, 3, (int64_t[]){pixels.height, pixels.width, pixels.channels},
                               out_tensor);
    if (status == UIR_STATUS_OK) memcpy((*out_tensor)->data, pixels.data, pixels.size);
    uir_pixels_release(allocator, &pixels);
    return status;
}

uir_status uir_image_read(const uir_allocator *allocator, uir_diagnostics *diagnostics, const char *file,
                          const uint8_t *data, size_t size, uir_tensor **out_tensor) {
    uir_location place = {.file = file};
    int width, height, channels;
    if (size >= 3 && !memcmp(data, "\xff\xd8\xff", 3))
        return read_jpeg(allocator, diagnostics, file, data, size, out_tensor);
    unsigned char *pixels =
        size > INT_MAX ? NULL : stbi_load_from_memory(data, (int)size, &width, &height, &channels, 0);
    if (!pixels || width < 1 || height < 1) {
        stbi_image_free(pixels);
        return uir_error_hint(diagnostics, UIR_STATUS_BAD_FILE, &place,
                              "PNG, JPEG, BMP and binary PPM pictures of up to 16384 by 16384 can be read",
                              "the file is no picture that can be read");
    }
    int64_t shape[3] = {height, width, channels};
    uir_status status = uir_tensor_create(allocator, UIR_DTYPE_U8, 3, shape, out_tensor);
    if (status == UIR_STATUS_OK) memcpy((*out_tensor)->data, pixels, (*out_tensor)->byte_size);
    stbi_image_free(pixels);
    return status;
}

bool uir_inflate(const uint8_t *data, size_t size, uint8_t *target, size_t target_size) {
    if (size > INT_MAX || target_size > INT_MAX) return false;
    return stbi_zlib_decode_noheader_buffer((char *)target, (int)target_size, (const char *)data, (int)size) ==
           (int)target_size;
}
