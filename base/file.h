/* The bytes of a file that stay what they are.
 *
 * In: an open regular file. Out: its bytes, mapped where nobody but the caller can change them (the file is his and
 * others may not write to it), else copied. Of a mapped file that its owner cuts short the rest is gone: whoever reads
 * there gets SIGBUS. So it can be asked, before the bytes are used, whether the file is what it was; and who cannot
 * keep from it has them copied. */
#ifndef UIR_BASE_FILE_H
#define UIR_BASE_FILE_H

#include "base/status.h"

typedef struct uir_file {
    const void *data; /* aligned to 64 bytes; of an empty file to nothing */
    uint64_t size;
    uint64_t device, inode; /* which file it is */
    int64_t modified_s, modified_ns;
    bool mapped; /* else copied */
} uir_file;

/* BAD_FILE for what is no regular file; IO_FAILED; OUT_OF_MEMORY; `*out_why` says it, and lives as long as the program.
 * The descriptor stays open, and is not needed any more but to ask below. */
uir_status uir_file_take(int descriptor, bool copy, const uir_allocator *allocator, uir_file *out_file,
                         const char **out_why);
void uir_file_release(uir_file *file, const uir_allocator *allocator); /* all zero is fine */

/* Whether the file behind the descriptor, if it is still the same one, has the size that it had and was not written to.
 * True of what was copied. */
bool uir_file_is_unchanged(const uir_file *file, int descriptor);

/* Whether a file of that path could be made: NULL where its folder is there and may be written to, else why not. Asked
 * before work whose result is to lie there. */
const char *uir_file_refuse_place(const char *path);

/* Writes all of it at the descriptor's place; false, and errno says why, where that cannot be. */
bool uir_file_write_all(int descriptor, const void *data, size_t size);

/* What an errno value means, without strerror's locale and static buffer. */
const char *uir_file_explain(int number);

#endif
