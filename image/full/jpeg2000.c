/* JPEG 2000, by OpenJPEG: files (JP2) and bare codestreams. The codestream's own headers are read first: sizes, tiles,
 * precincts and layers decide what the library allocates. */
#include "image/full/all.h"
#include "image/full/library.h"

#ifdef UIR_HAVE_JPEG2000
#include <string.h>

#include <openjpeg.h>

/* clang-format off */
#define FUNCTIONS(FUNCTION) \
    FUNCTION(opj_create_decompress) FUNCTION(opj_decode) FUNCTION(opj_destroy_codec) FUNCTION(opj_image_destroy) \
    FUNCTION(opj_read_header) FUNCTION(opj_set_default_decoder_parameters) FUNCTION(opj_setup_decoder) \
    FUNCTION(opj_stream_create) FUNCTION(opj_stream_destroy) FUNCTION(opj_stream_set_read_function) \
    FUNCTION(opj_stream_set_seek_function) FUNCTION(opj_stream_set_skip_function) FUNCTION(opj_stream_set_user_data) \
    FUNCTION(opj_stream_set_user_data_length)
/* clang-format on */
UIR_IMAGE_LIBRARY(openjpeg, "libopenjp2.so.7", "libopenjp2-7", "JPEG 2000", FUNCTIONS)

enum {
    FREE_PIXELS = 1 << 18,
    MOST_COMPONENTS = 4,
    MOST_LAYERS = 256,
    LEAST_PRECINCT = 4, /* 2^4 along a side */
    LEAST_TILE_PART = 14
};

/* Markers of a codestream (ISO/IEC 15444-1, annex A). */
enum { SIZ = 0xff51, COD = 0xff52, COC = 0xff53, SOT = 0xff90, SOD = 0xff93, EOC = 0xffd9 };

/* ---- headers ---- */

typedef struct codestream {
    const uint8_t *data;
    size_t size;
    uint32_t components;
} codestream;

static uint32_t get(const uint8_t *data, uint32_t bytes) {
    uint32_t value = 0;
    for (uint32_t i = 0; i < bytes; i++) value = value << 8 | data[i];
    return value;
}

/* Of a file the box that holds it; 0 bytes when there is none. */
static codestream find_codestream(const uir_image_source *source) {
    const uint8_t *data = source->data;
    size_t size = source->size;
    if (size >= 4 && get(data, 4) == 0xff4fff51) return (codestream){data, size, 0};
    for (size_t at = 0; size - at >= 8;) {
        uint64_t length = get(data + at, 4), header = 8;
        if (length == 1 && size - at >= 16) {
            length = (uint64_t)get(data + at + 8, 4) << 32 | get(data + at + 12, 4);
            header = 16;
        }
        if (!length) length = size - at;
        if (length < header || length > size - at) break;
        if (!memcmp(data + at + 4, "jp2c", 4)) return (codestream){data + at + header, (size_t)(length - header), 0};
        at += (size_t)length;
    }
    return (codestream){data, 0, 0};
}

/* SIZ: the picture and its tiles. `at`: behind the segment's length. */
static const char *check_sizes(codestream *c, const uint8_t *at, uint32_t length) {
    if (length < 36) return "the JPEG 2000 picture is damaged";
    uint64_t right = get(at + 2, 4), bottom = get(at + 6, 4), tile_width = get(at + 18, 4),
             tile_height = get(at + 22, 4);
    uint64_t left = get(at + 26, 4), top = get(at + 30, 4);
    c->components = get(at + 34, 2);
    if (!tile_width || !tile_height || left >= right || top >= bottom) return "the JPEG 2000 picture is damaged";
    uint64_t columns = (right - left + tile_width - 1) / tile_width,
             rows = (bottom - top + tile_height - 1) / tile_height;
    if (!c->components || c->components > MOST_COMPONENTS) return "the JPEG 2000 picture has more than 4 components";
    if (columns > 65535 || rows > 65535 || columns * rows > c->size / LEAST_TILE_PART + 1)
        return "the JPEG 2000 picture is cut off: its header declares more tiles than its bytes can hold";
    return NULL;
}

/* The style of coding, of all components or of one: `at` has levels, block sizes, style, transformation, precincts. */
static const char *check_style(const uint8_t *at, uint32_t length, bool has_precincts) {
    if (length < 5) return "the JPEG 2000 picture is damaged";
    uint32_t levels = at[0];
    if (!has_precincts) return NULL;
    if (levels > 32 || length < 6 + levels) return "the JPEG 2000 picture is damaged";
    for (uint32_t i = 0; i <= levels; i++)
        if ((at[5 + i] & 15) < LEAST_PRECINCT || at[5 + i] >> 4 < LEAST_PRECINCT)
            return "the JPEG 2000 picture has precincts of fewer than 16 pixels along a side";
    return NULL;
}

static const char *check_segment(codestream *c, uint32_t marker, const uint8_t *at, uint32_t length) {
    if (marker == SIZ) return check_sizes(c, at, length);
    if (marker == COD && length >= 5) {
        if (get(at + 2, 2) > MOST_LAYERS) return "the JPEG 2000 picture has more than 256 layers";
        return check_style(at + 5, length - 5, at[0] & 1);
    }
    if (marker == COC && length >= 2) return check_style(at + 2, length - 2, at[1] & 1);
    return marker == COD || marker == COC ? "the JPEG 2000 picture is damaged" : NULL;
}

/* Goes along the headers of the picture and of all parts of tiles. What comes after a part that has no length is data.
 */
static const char *check_headers(codestream *c) {
    size_t at = 2, next_part = 0;
    for (;;) {
        if (c->size < 4 || at > c->size - 4) return c->components ? NULL : "the JPEG 2000 picture is cut off";
        uint32_t marker = get(c->data + at, 2), length = get(c->data + at + 2, 2);
        if (marker == EOC) return NULL;
        if (marker == SOD) {
            if (next_part <= at) return NULL;
            at = next_part;
            continue;
        }
        if (marker < 0xff00 || length < 2) return "the JPEG 2000 picture is damaged";
        if (length > c->size - at - 2) return "the JPEG 2000 picture is cut off";
        if (marker == SOT) {
            uint64_t part = length >= 10 ? get(c->data + at + 6, 4) : 0;
            next_part = part && part < c->size - at ? at + (size_t)part : 0;
        }
        const char *problem = check_segment(c, marker, c->data + at + 4, length - 2);
        if (problem) return problem;
        at += 2 + length;
    }
}

/* ---- the bytes as a stream ---- */

typedef struct jp2_stream {
    const uir_image_source *source;
    size_t at;
} jp2_stream;

static OPJ_SIZE_T read_bytes(void *buffer, OPJ_SIZE_T size, void *user) {
    jp2_stream *stream = user;
    size_t left = stream->source->size - stream->at;
    if (!left || uir_image_stops(stream->source)) return (OPJ_SIZE_T)-1;
    if (size > left) size = left;
    memcpy(buffer, stream->source->data + stream->at, size);
    stream->at += size;
    return size;
}

static OPJ_OFF_T skip_bytes(OPJ_OFF_T count, void *user) {
    jp2_stream *stream = user;
    size_t left = stream->source->size - stream->at;
    if (count < 0) return -1;
    if ((uint64_t)count > left) count = (OPJ_OFF_T)left;
    stream->at += (size_t)count;
    return count;
}

static OPJ_BOOL seek_bytes(OPJ_OFF_T offset, void *user) {
    jp2_stream *stream = user;
    if (offset < 0 || (uint64_t)offset > stream->source->size) return OPJ_FALSE;
    stream->at = (size_t)offset;
    return OPJ_TRUE;
}

/* ---- the pixels ---- */

/* A component's sample as one of 8 bits. */
static uint8_t sample(const opj_image_comp_t *c, int64_t x, int64_t y) {
    int64_t value = c->data[(size_t)(y / c->dy) * c->w + (size_t)(x / c->dx)];
    if (c->sgnd) value += (int64_t)1 << (c->prec - 1);
    value = c->prec > 8 ? value >> (c->prec - 8) : c->prec == 8 ? value : value * 255 / (((int64_t)1 << c->prec) - 1);
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static uint8_t to_byte(double value) {
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value + 0.5);
}

/* Luma and two differences to colours (ITU-R 601). */
static void to_rgb(uint8_t *rgb) {
    double y = rgb[0], blue = rgb[1] - 128.0, red = rgb[2] - 128.0;
    rgb[0] = to_byte(y + 1.402 * red);
    rgb[1] = to_byte(y - 0.344136 * blue - 0.714136 * red);
    rgb[2] = to_byte(y + 1.772 * blue);
}

/* Every component has a sample for each pixel. */
static bool covers(const opj_image_t *image, const uir_pixels *p) {
    for (uint32_t i = 0; i < image->numcomps; i++) {
        const opj_image_comp_t *c = &image->comps[i];
        if (!c->data || !c->dx || !c->dy || !c->prec || c->prec > 16) return false;
        if ((p->width - 1) / c->dx >= c->w || (p->height - 1) / c->dy >= c->h) return false;
    }
    return image->numcomps > 0;
}

static uir_status take_pixels(uir_image_source *source, const opj_image_t *image) {
    uir_pixels *p = &source->pixels;
    if (!covers(image, p))
        return uir_image_fail(source, UIR_STATUS_UNSUPPORTED,
                              "the JPEG 2000 picture's components differ in size, or have more than 16 bits");
    const opj_image_comp_t *c = image->comps;
    source->gray = image->numcomps < 3;
    bool coarse = !source->gray && c[0].dx == 1 && c[1].dx > 1;
    bool differences = !source->gray && (image->color_space == OPJ_CLRSPC_SYCC || coarse);
    for (int64_t y = 0; y < p->height; y++) {
        uint8_t *rgb = p->data + y * p->width * 3;
        for (int64_t x = 0; x < p->width; x++, rgb += 3) {
            for (uint32_t i = 0; i < 3; i++) rgb[i] = source->gray && i ? rgb[0] : sample(&c[i], x, y);
            if (differences) to_rgb(rgb);
        }
    }
    return UIR_STATUS_OK;
}

static uir_status decode(const openjpeg *l, uir_image_source *source, opj_codec_t *codec, opj_stream_t *stream,
                         opj_image_t **image) {
    opj_dparameters_t parameters;
    l->opj_set_default_decoder_parameters(&parameters);
    source->problem = "the JPEG 2000 picture is damaged or cut off";
    if (!l->opj_setup_decoder(codec, &parameters) || !l->opj_read_header(stream, codec, image))
        return UIR_STATUS_BAD_DATA;
    const opj_image_t *i = *image;
    if (i->x1 <= i->x0 || i->y1 <= i->y0) return UIR_STATUS_BAD_DATA;
    uint64_t width = i->x1 - i->x0, height = i->y1 - i->y0;
    source->problem = NULL;
    UIR_TRY(uir_image_allocate(source, width, height, uir_image_least_bytes(width, height, FREE_PIXELS)));
    if (!l->opj_decode(codec, stream, *image))
        return uir_image_fail(source, UIR_STATUS_BAD_DATA, "the JPEG 2000 picture is damaged or cut off");
    return take_pixels(source, *image);
}

uir_status uir_image_read_jpeg2000(uir_image_source *source) {
    openjpeg library;
    UIR_TRY(open_openjpeg(source, &library));
    codestream bytes = find_codestream(source);
    const char *problem = check_headers(&bytes);
    if (problem) return uir_image_fail(source, UIR_STATUS_BAD_DATA, problem);
    jp2_stream user = {.source = source};
    opj_image_t *image = NULL;
    bool bare = bytes.data == source->data;
    opj_codec_t *codec = library.opj_create_decompress(bare ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
    opj_stream_t *stream = library.opj_stream_create(1 << 16, OPJ_TRUE);
    uir_status status = codec && stream ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
    if (status == UIR_STATUS_OK) {
        library.opj_stream_set_user_data(stream, &user, NULL);
        library.opj_stream_set_user_data_length(stream, source->size);
        library.opj_stream_set_read_function(stream, read_bytes);
        library.opj_stream_set_skip_function(stream, skip_bytes);
        library.opj_stream_set_seek_function(stream, seek_bytes);
        status = decode(&library, source, codec, stream, &image);
    }
    library.opj_image_destroy(image);
    library.opj_stream_destroy(stream);
    library.opj_destroy_codec(codec);
    return status;
}

#else

uir_status uir_image_read_jpeg2000(uir_image_source *source) {
    return uir_image_fail(source, UIR_STATUS_UNSUPPORTED, "this build has no OpenJPEG: JPEG 2000 cannot be decoded");
}

#endif
