/* TIFF, by libtiff: the first picture of the file. Its errors are heard by handle; nothing is printed. Alpha is left
 * out, not blended. */
#include "base/sanitize.h"
#include "image/full/all.h"
#include "image/full/library.h"

#ifdef UIR_HAVE_TIFF
#include <string.h>

#include <tiffio.h>

/* clang-format off */
#define FUNCTIONS(FUNCTION) \
    FUNCTION(TIFFClientOpenExt) FUNCTION(TIFFClose) FUNCTION(TIFFGetField) FUNCTION(TIFFGetFieldDefaulted) \
    FUNCTION(TIFFGetStrileByteCount) FUNCTION(TIFFIsTiled) FUNCTION(TIFFNumberOfStrips) FUNCTION(TIFFNumberOfTiles) \
    FUNCTION(TIFFOpenOptionsAlloc) FUNCTION(TIFFOpenOptionsFree) FUNCTION(TIFFOpenOptionsSetErrorHandlerExtR) \
    FUNCTION(TIFFOpenOptionsSetMaxSingleMemAlloc) FUNCTION(TIFFOpenOptionsSetWarningHandlerExtR) \
    FUNCTION(TIFFRGBAImageOK) FUNCTION(TIFFReadRGBAImageOriented) FUNCTION(TIFFSetField)
/* clang-format on */
UIR_IMAGE_LIBRARY(libtiff, "libtiff.so.6", "libtiff6", "TIFF", FUNCTIONS)

typedef struct tiff_stream {
    uir_image_source *source;
    uint64_t at;
} tiff_stream;

/* ---- the bytes as a file ---- */

/* Never -1: what libtiff 4.5 clears behind the bytes that it got begins that many before its buffer. */
static tmsize_t read_bytes(thandle_t handle, void *buffer, tmsize_t size) {
    tiff_stream *stream = handle;
    if (size < 0 || stream->at > stream->source->size || uir_image_stops(stream->source)) return 0;
    uint64_t left = stream->source->size - stream->at, given = (uint64_t)size < left ? (uint64_t)size : left;
    memcpy(buffer, stream->source->data + stream->at, given);
    stream->at += given;
    return (tmsize_t)given;
}

static tmsize_t write_bytes(thandle_t handle, void *buffer, tmsize_t size) {
    (void)handle, (void)buffer, (void)size;
    return -1;
}

static toff_t seek(thandle_t handle, toff_t offset, int whence) {
    tiff_stream *stream = handle;
    uint64_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? stream->at : stream->source->size;
    return stream->at = base + offset;
}

static int close_file(thandle_t handle) {
    (void)handle;
    return 0;
}

static toff_t find_size(thandle_t handle) {
    const tiff_stream *stream = handle;
    return stream->source->size;
}

static int stay_silent(TIFF *tiff, void *user, const char *module, const char *format, va_list arguments) {
    (void)tiff, (void)user, (void)module, (void)format, (void)arguments;
    return 1;
}

/* ---- what there may be ---- */

enum { FAX_FREE_PIXELS = 1 << 25 };

/* The bytes that pixels of so many bits take encoded, at least. */
static uint64_t of_one(uint64_t width, uint64_t height, uint64_t bits) {
    return (width * bits + 7) / 8 * height;
}
static uint64_t of_runs(uint64_t width, uint64_t height, uint64_t bits) {
    return of_one(width, height, bits) / 64; /* 128 bytes of two */
}
static uint64_t of_words(uint64_t width, uint64_t height, uint64_t bits) {
    return of_one(width, height, bits) / 2731; /* 4096 bytes of 12 bits */
}
static uint64_t of_deflate(uint64_t width, uint64_t height, uint64_t bits) {
    return of_one(width, height, bits) / 1032;
}
static uint64_t of_fax(uint64_t width, uint64_t height, uint64_t bits) {
    uint64_t pixels = width * height;
    (void)bits;
    /* A bit a line; of more pixels than a large empty page has, a byte for as many as deflate makes of one. */
    return height / 8 + (pixels > FAX_FREE_PIXELS ? (pixels - FAX_FREE_PIXELS) / (8 * 1032) : 0);
}
static uint64_t of_jpeg(uint64_t width, uint64_t height, uint64_t bits) {
    (void)bits;
    return (width + 7) / 8 * ((height + 7) / 8) / 8; /* a bit for each block of 8 x 8 */
}

/* Compressions whose work and memory follow from the bytes that are there. */
static const struct {
    uint16_t compression;
    uint64_t (*find_least)(uint64_t width, uint64_t height, uint64_t bits);
} compressions[] = {
    {COMPRESSION_NONE, of_one},        {COMPRESSION_PACKBITS, of_runs},
    {COMPRESSION_LZW, of_words},       {COMPRESSION_ADOBE_DEFLATE, of_deflate},
    {COMPRESSION_DEFLATE, of_deflate}, {COMPRESSION_CCITTRLE, of_fax},
    {COMPRESSION_CCITTFAX3, of_fax},   {COMPRESSION_CCITTFAX4, of_fax},
    {COMPRESSION_JPEG, of_jpeg},
};

/* Scans of JPEG: a pass over all pixels each, however few bytes it has. */
static bool has_few_scans(const uir_image_source *source, uint64_t most) {
    uint64_t scans = 0;
    for (size_t i = 0; i + 1 < source->size; i++) scans += source->data[i] == 0xff && source->data[i + 1] == 0xda;
    return scans <= most;
}

/* Pieces do not share bytes: each byte is decoded once. */
static uir_status check_pieces(const libtiff *l, uir_image_source *source, TIFF *tiff, uint16_t compression) {
    bool tiled = l->TIFFIsTiled(tiff);
    uint32_t count = tiled ? l->TIFFNumberOfTiles(tiff) : l->TIFFNumberOfStrips(tiff);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count && sum <= source->size; i++) sum += l->TIFFGetStrileByteCount(tiff, i);
    if (sum > source->size)
        return uir_image_fail(source, UIR_STATUS_BAD_DATA,
                              "the TIFF picture is cut off: its parts have more bytes than the file");
    if (compression == COMPRESSION_JPEG && !has_few_scans(source, 100 + 4 * (uint64_t)count))
        return uir_image_fail(source, UIR_STATUS_BAD_DATA, "the TIFF picture's JPEG data have too many scans");
    return UIR_STATUS_OK;
}

/* Tiles are decoded whole, also where most of them is beyond the picture. */
static bool has_sane_pieces(const libtiff *l, TIFF *tiff, uint32_t width, uint32_t height) {
    uint32_t tile_width = width, tile_height = height;
    if (l->TIFFIsTiled(tiff)) {
        l->TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &tile_width);
        l->TIFFGetField(tiff, TIFFTAG_TILELENGTH, &tile_height);
    }
    return tile_width && tile_height && tile_width < width + 1024u && tile_height < height + 1024u;
}

static uir_status allocate(const libtiff *l, uir_image_source *source, TIFF *tiff) {
    uint32_t width = 0, height = 0;
    uint16_t bits = 1, samples = 1, compression = COMPRESSION_NONE;
    l->TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
    l->TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
    l->TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &bits);
    l->TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &samples);
    l->TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &compression);
    for (size_t i = 0; i < sizeof compressions / sizeof *compressions; i++) {
        if (compressions[i].compression != compression) continue;
        if (bits > 16 || samples > 8 || !has_sane_pieces(l, tiff, width, height))
            return uir_image_fail(source, UIR_STATUS_UNSUPPORTED,
                                  "the TIFF picture has more than 16 bits a channel or 8 channels, or larger tiles");
        uint64_t least = compressions[i].find_least(width, height, (uint64_t)bits * samples);
        UIR_TRY(uir_image_allocate(source, width, height, least));
        return check_pieces(l, source, tiff, compression);
    }
    return uir_image_fail(source, UIR_STATUS_UNSUPPORTED,
                          "the TIFF picture's compression is none of LZW, deflate, PackBits, CCITT and JPEG");
}

/* ---- the pixels ---- */

static uir_status take_pixels(const libtiff *l, uir_image_source *source, TIFF *tiff, uint32_t *raster) {
    uir_pixels *p = &source->pixels;
    char message[1024];
    uint16_t photometric = PHOTOMETRIC_MINISBLACK, extra_count = 0, *extras = NULL;
    l->TIFFGetFieldDefaulted(tiff, TIFFTAG_PHOTOMETRIC, &photometric);
    source->gray = photometric == PHOTOMETRIC_MINISBLACK || photometric == PHOTOMETRIC_MINISWHITE;
    l->TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &extra_count, &extras);
    /* Colours come as they lie there: what is said to be multiplied by its alpha already is left alone. */
    uint16_t alone[8] = {EXTRASAMPLE_ASSOCALPHA};
    if (extra_count && extra_count <= 8) l->TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, extra_count, alone);
    if (!l->TIFFRGBAImageOK(tiff, message))
        return uir_image_fail(source, UIR_STATUS_UNSUPPORTED,
                              "the TIFF picture has colours that cannot be shown as RGB");
    if (!l->TIFFReadRGBAImageOriented(tiff, (uint32_t)p->width, (uint32_t)p->height, raster, ORIENTATION_TOPLEFT, 1))
        return uir_image_fail(source, UIR_STATUS_BAD_DATA, "the TIFF picture is damaged or cut off");
    size_t count = p->size / 3;
    UIR_WRITTEN_ELSEWHERE(raster, count * sizeof *raster);
    for (size_t i = 0; i < count; i++) {
        p->data[3 * i] = (uint8_t)TIFFGetR(raster[i]);
        p->data[3 * i + 1] = (uint8_t)TIFFGetG(raster[i]);
        p->data[3 * i + 2] = (uint8_t)TIFFGetB(raster[i]);
    }
    return UIR_STATUS_OK;
}

static uir_status decode(const libtiff *l, uir_image_source *source, TIFF *tiff) {
    UIR_TRY(allocate(l, source, tiff));
    size_t size = source->pixels.size / 3 * sizeof(uint32_t);
    uint32_t *raster = uir_allocate_zeroed(source->allocator, size);
    if (!raster) return UIR_STATUS_OUT_OF_MEMORY;
    uir_status status = take_pixels(l, source, tiff, raster);
    uir_release(source->allocator, raster, size);
    return status;
}

/* A piece that is the whole picture, of 8 channels of 16 bits, and somewhat more around it. */
static tmsize_t bound_allocation(const uir_image_source *source) {
    uint64_t most = (uint64_t)1 << 28, bytes = (uint64_t)source->size * 4096 + (1 << 24);
    return (tmsize_t)(bytes < most ? bytes : most);
}

uir_status uir_image_read_tiff(uir_image_source *source) {
    libtiff library;
    UIR_TRY(open_libtiff(source, &library));
    tiff_stream stream = {.source = source};
    TIFFOpenOptions *options = library.TIFFOpenOptionsAlloc();
    if (!options) return UIR_STATUS_OUT_OF_MEMORY;
    library.TIFFOpenOptionsSetMaxSingleMemAlloc(options, bound_allocation(source));
    library.TIFFOpenOptionsSetErrorHandlerExtR(options, stay_silent, NULL);
    library.TIFFOpenOptionsSetWarningHandlerExtR(options, stay_silent, NULL);
    TIFF *tiff = library.TIFFClientOpenExt("picture", "rm", &stream, read_bytes, write_bytes, seek, close_file,
                                           find_size, NULL, NULL, options);
    library.TIFFOpenOptionsFree(options);
    if (!tiff) return uir_image_fail(source, UIR_STATUS_BAD_DATA, "the TIFF picture is damaged or cut off");
    uir_status status = decode(&library, source, tiff);
    library.TIFFClose(tiff);
    return status;
}

#else

uir_status uir_image_read_tiff(uir_image_source *source) {
    return uir_image_fail(source, UIR_STATUS_UNSUPPORTED, "this build has no libtiff: TIFF cannot be decoded");
}

#endif
