/* WebP, by libwebp, in pieces, so that there are moments at which to stop. Alpha is left out, not blended. */
#include "base/sanitize.h"
#include "image/full/all.h"
#include "image/full/library.h"

#ifdef UIR_HAVE_WEBP
#include <webp/decode.h>

/* clang-format off */
#define FUNCTIONS(FUNCTION) \
    FUNCTION(WebPGetFeaturesInternal) FUNCTION(WebPIDecode) FUNCTION(WebPIDelete) FUNCTION(WebPIUpdate) \
    FUNCTION(WebPInitDecoderConfigInternal)
/* clang-format on */
UIR_IMAGE_LIBRARY(libwebp, "libwebp.so.7", "libwebp7", "WebP", FUNCTIONS)

enum { FREE_PIXELS = 1 << 22, PIECES = 16, LEAST_PIECE = 4096 };

static uir_status decode(const libwebp *l, uir_image_source *source, WebPDecoderConfig *config) {
    config->output.colorspace = MODE_RGB;
    config->output.is_external_memory = 1;
    config->output.u.RGBA.rgba = source->pixels.data;
    config->output.u.RGBA.stride = (int)(source->pixels.width * 3);
    config->output.u.RGBA.size = source->pixels.size;
    WebPIDecoder *decoder = l->WebPIDecode(NULL, 0, config);
    if (!decoder) return UIR_STATUS_OUT_OF_MEMORY;
    VP8StatusCode code = VP8_STATUS_SUSPENDED;
    size_t piece = source->size / PIECES > LEAST_PIECE ? source->size / PIECES : LEAST_PIECE;
    for (size_t used = 0; code == VP8_STATUS_SUSPENDED && used < source->size && !uir_image_stops(source);) {
        used = source->size - used > piece ? used + piece : source->size;
        code = l->WebPIUpdate(decoder, source->data, used);
    }
    l->WebPIDelete(decoder);
    if (code == VP8_STATUS_OUT_OF_MEMORY) return UIR_STATUS_OUT_OF_MEMORY;
    if (code == VP8_STATUS_SUSPENDED) return uir_image_fail(source, UIR_STATUS_BAD_DATA, "the WebP picture is cut off");
    if (code != VP8_STATUS_OK) return uir_image_fail(source, UIR_STATUS_BAD_DATA, "the WebP picture is damaged");
    UIR_WRITTEN_ELSEWHERE(source->pixels.data, source->pixels.size);
    return UIR_STATUS_OK;
}

uir_status uir_image_read_webp(uir_image_source *source) {
    libwebp library;
    UIR_TRY(open_libwebp(source, &library));
    WebPDecoderConfig config;
    if (!library.WebPInitDecoderConfigInternal(&config, WEBP_DECODER_ABI_VERSION))
        return uir_image_fail(source, UIR_STATUS_UNSUPPORTED, "the installed libwebp has an incompatible version");
    VP8StatusCode code =
        library.WebPGetFeaturesInternal(source->data, source->size, &config.input, WEBP_DECODER_ABI_VERSION);
    if (code == VP8_STATUS_NOT_ENOUGH_DATA)
        return uir_image_fail(source, UIR_STATUS_BAD_DATA, "the WebP picture is cut off");
    if (code != VP8_STATUS_OK) return uir_image_fail(source, UIR_STATUS_BAD_DATA, "the WebP picture is damaged");
    if (config.input.has_animation)
        return uir_image_fail(source, UIR_STATUS_UNSUPPORTED, "the WebP picture is animated");
    uint64_t width = (uint64_t)config.input.width, height = (uint64_t)config.input.height;
    UIR_TRY(uir_image_allocate(source, width, height, uir_image_least_bytes(width, height, FREE_PIXELS)));
    return decode(&library, source, &config);
}

#else

uir_status uir_image_read_webp(uir_image_source *source) {
    return uir_image_fail(source, UIR_STATUS_UNSUPPORTED, "this build has no libwebp: WebP cannot be decoded");
}

#endif
