/* Reads and writes value files; the ending of the name selects the format.
 *
 * In: a path, the formats of a library. Out: a datum and the name stored with it; and the reverse. The size of a file
 * bounds the memory and work that reading it takes. */
#ifndef UIR_IO_IO_H
#define UIR_IO_IO_H

#include "base/datum.h"
#include "base/file.h"
#include "base/text.h"

/* Arguments and results of a reader. */
typedef struct uir_io_reading {
    const uir_allocator *allocator;
    uir_diagnostics *diagnostics;
    const char *path, *member; /* `member`: of an archive; NULL: the only one */
    const uint8_t *data;       /* the whole file */
    size_t size;
    uir_value_kind kind; /* expected kind; used if the file does not tell */
    uir_arena arena;     /* for the name */
    const char *name;
    uir_datum *datum;
} uir_io_reading;
/* Makes the datum from the tensor, or releases the tensor on failure. */
uir_status uir_io_take_tensor(uir_io_reading *reading, uir_tensor *tensor);

/* Arguments of a writer. */
typedef struct uir_io_writing {
    const uir_datum *datum;
    const char *name, *path;
    uir_diagnostics *diagnostics;
    uir_text *bytes; /* appended to */
} uir_io_writing;

typedef struct uir_io_format {
    const char *ending;
    uir_status (*read)(uir_io_reading *reading);
    uir_status (*write)(const uir_io_writing *writing); /* NULL: read only */
} uir_io_format;
typedef struct uir_io_formats {
    const uir_io_format *rows;
    size_t count;
    const char *hint; /* lists the endings */
} uir_io_formats;

/* By the path's ending; INVALID_ARGUMENT with a message for an unknown one. */
uir_status uir_io_read(const uir_io_formats *formats, uir_io_reading *reading);
uir_status uir_io_write(const uir_io_formats *formats, const uir_io_writing *writing);

/* Reads a file. `*out_file` may be released in any case. */
uir_status uir_io_open_file(const char *path, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                            uir_file *out_file);
/* Writes a whole file, overwriting an old one. */
uir_status uir_io_write_file(const char *path, const void *bytes, size_t size, uir_diagnostics *diagnostics);

/* npy.c: numpy's arrays. Types that numpy lacks are widened without loss. */
uir_status uir_npy_read(const uir_allocator *allocator, uir_diagnostics *diagnostics, const char *file,
                        const uint8_t *data, size_t size, uir_tensor **out_tensor);
uir_status uir_npy_write(const uir_tensor *tensor, uir_diagnostics *diagnostics, const char *file, uir_text *out);
uir_status uir_io_read_npy(uir_io_reading *reading);
uir_status uir_io_write_npy(const uir_io_writing *writing);

#endif
