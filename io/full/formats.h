/* Value formats of libuir: ONNX's own (by the frontend), numpy's, zip archives of them, pictures. */
#ifndef UIR_IO_FULL_FORMATS_H
#define UIR_IO_FULL_FORMATS_H

#include "io/io.h"

extern const uir_io_formats uir_io_full_formats;

/* zip.c: reads the bytes of a member; the caller releases them with uir_release(allocator, data, size). `member` NULL:
 * the only one. */
uir_status uir_zip_read(const uir_allocator *allocator, uir_diagnostics *diagnostics, const char *file,
                        const uint8_t *data, size_t size, const char *member, uint8_t **out_data, size_t *out_size);
/* picture.c: u8 [height, width, channels]. */
uir_status uir_picture_read(const uir_allocator *allocator, uir_diagnostics *diagnostics, const char *file,
                            const uint8_t *data, size_t size, uir_tensor **out_tensor);

#endif
