/* JPEG, by libjpeg-turbo. Its errors come back by longjmp; nothing is printed. */
#include "base/sanitize.h"
#include "image/internal.h"

#ifdef UIR_HAVE_JPEG
#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

#include <jerror.h>

typedef struct jpeg_reader {
    struct jpeg_decompress_struct decoder;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf back;
    const uir_image_source *source;
    const char *problem;
} jpeg_reader;

static void leave(j_common_ptr decoder) {
    jpeg_reader *reader = decoder->client_data;
    longjmp(reader->back, 1);
}

static void stay_silent(j_common_ptr decoder) {
    (void)decoder;
}

/* The library goes on in gray where the bytes end. */
static void hear_message(j_common_ptr decoder, int level) {
    jpeg_reader *reader = decoder->client_data;
    if (level >= 0 || decoder->err->msg_code != JWRN_JPEG_EOF) return;
    reader->problem = "the JPEG picture is cut off";
    longjmp(reader->back, 1);
}

/* A scan of a few bytes costs a pass over the whole picture: a thousand of them a thousand. Encoders write about ten.
 */
enum { MOST_SCANS = 100 };

static void watch_progress(j_common_ptr decoder) {
    jpeg_reader *reader = decoder->client_data;
    if (uir_image_stops(reader->source)) longjmp(reader->back, 1);
    if (reader->decoder.input_scan_number <= MOST_SCANS) return;
    reader->problem = "the JPEG picture has more than 100 scans";
    longjmp(reader->back, 1);
}

static uir_status decode(uir_image_source *source, jpeg_reader *reader) {
    struct jpeg_decompress_struct *d = &reader->decoder;
    jpeg_mem_src(d, source->data, source->size);
    jpeg_read_header(d, TRUE);
    source->gray = d->num_components == 1;
    d->out_color_space = JCS_RGB;
    if (d->arith_code)
        return uir_image_fail(source, UIR_STATUS_UNSUPPORTED, "the JPEG picture is coded arithmetically");
    /* Each block of 8 x 8 of the component that is sampled most takes a bit at least, also when progressive; the
     * decoder allocates by the header too. */
    uint64_t blocks = ((uint64_t)d->image_width + 7) / 8 * (((uint64_t)d->image_height + 7) / 8);
    jpeg_calc_output_dimensions(d);
    UIR_TRY(uir_image_allocate(source, d->output_width, d->output_height, blocks / 8));
    jpeg_start_decompress(d);
    while (d->output_scanline < d->output_height) {
        JSAMPROW row = source->pixels.data + (size_t)d->output_scanline * d->output_width * 3;
        if (jpeg_read_scanlines(d, &row, 1) != 1) break;
        UIR_WRITTEN_ELSEWHERE(row, (size_t)d->output_width * 3);
    }
    return UIR_STATUS_OK;
}

uir_status uir_image_read_jpeg(uir_image_source *source) {
    jpeg_reader *reader;
    volatile uir_status status = UIR_STATUS_BAD_DATA;
    UIR_TRY_ALLOCATE(reader, uir_allocate_zeroed(source->allocator, sizeof *reader));
    reader->source = source;
    reader->decoder.err = jpeg_std_error(&reader->errors);
    reader->errors.error_exit = leave;
    reader->errors.output_message = stay_silent;
    reader->errors.emit_message = hear_message;
    reader->decoder.client_data = reader;
    reader->problem = "the JPEG picture is damaged, or has colours that cannot be shown as RGB";
    if (!setjmp(reader->back)) {
        jpeg_create_decompress(&reader->decoder);
        reader->decoder.client_data = reader;
        reader->progress.progress_monitor = watch_progress;
        reader->decoder.progress = &reader->progress;
        status = decode(source, reader);
    }
    if (status != UIR_STATUS_OK && !source->problem) source->problem = reader->problem;
    jpeg_destroy_decompress(&reader->decoder);
    uir_release(source->allocator, reader, sizeof *reader);
    return status;
}

#else

uir_status uir_image_read_jpeg(uir_image_source *source) {
    return uir_image_fail(source, UIR_STATUS_UNSUPPORTED, "this build has no libjpeg-turbo: JPEG cannot be decoded");
}

#endif
