/* Files that hold a value: which format one is in is told by its name's ending.
 *
 * In: a path, the formats that a library knows. Out: a datum and the name that is stored with it; and the other way
 * round. What a file may make the process do is bounded by its size. */
#ifndef UIR_IO_IO_H
#define UIR_IO_IO_H

#include "base/datum.h"
#include "base/file.h"
#include "base/text.h"

/* What a reader is given, and gives back. */
typedef struct uir_io_reading {
    const uir_allocator *allocator;
    uir_diagnostics *diagnostics;
    const char *path, *member; /* `member`: of an archive; NULL: its only one */
    const uint8_t *data;       /* the whole file */
    size_t size;
    uir_value_kind kind; /* that is expected; matters where the file does not say */
    uir_arena arena;     /* of the name */
    const char *name;
    uir_datum *datum;
} uir_io_reading;
/* Makes the datum of the tensor, which is released when that fails. */
uir_status uir_io_take_tensor(uir_io_reading *reading, uir_tensor *tensor);

/* What is to be written. */
typedef struct uir_io_writing {
    const uir_datum *datum;
    const char *name, *path;
    uir_diagnostics *diagnostics;
    uir_text *bytes; /* appended to */
} uir_io_writing;

typedef struct uir_io_format {
    const char *ending;
    uir_status (*read)(uir_io_reading *reading);
    uir_status (*write)(const uir_io_writing *writing); /* NULL: it is read only */
} uir_io_format;
typedef struct uir_io_formats {
    const uir_io_format *rows;
    size_t count;
    const char *hint; /* which endings there are */
} uir_io_formats;

/* By the path's ending; INVALID_ARGUMENT with a message where no row has it. */
uir_status uir_io_read(const uir_io_formats *formats, uir_io_reading *reading);
uir_status uir_io_write(const uir_io_formats *formats, const uir_io_writing *writing);

/* A file's bytes. `*out_file` may be released in any case. */
uir_status uir_io_open_file(const char *path, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                            uir_file *out_file);
/* A whole file, in place of what was there. */
uir_status uir_io_write_file(const char *path, const void *bytes, size_t size, uir_diagnostics *diagnostics);

/* npy.c: numpy's arrays. Types that numpy lacks are widened without loss. */
uir_status uir_npy_read(const uir_allocator *allocator, uir_diagnostics *diagnostics, const char *file,
                        const uint8_t *data, size_t size, uir_tensor **out_tensor);
uir_status uir_npy_write(const uir_tensor *tensor, uir_diagnostics *diagnostics, const char *file, uir_text *out);
uir_status uir_io_read_npy(uir_io_reading *reading);
uir_status uir_io_write_npy(const uir_io_writing *writing);

#endif
