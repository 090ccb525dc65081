/* Reads a file's bytes so that they cannot change, or a change can be detected.
 *
 * In: an open regular file. Out: its bytes, mapped if no other user can write to it (the caller owns it, without write
 * permission for others), else copied. If the owner truncates a mapped file, reads beyond its new end raise SIGBUS.
 * Before using the bytes, check uir_file_is_unchanged; where truncation cannot be excluded, copy. */
#ifndef UIR_BASE_FILE_H
#define UIR_BASE_FILE_H

#include "base/status.h"

typedef struct uir_file {
    const void *data; /* 64-byte aligned; unaligned for an empty file */
    uint64_t size;
    uint64_t device, inode; /* which file it is */
    int64_t modified_s, modified_ns;
    bool mapped; /* else copied */
} uir_file;

/* Reads a file, as a copy if `copy`. BAD_FILE if it is not regular; IO_FAILED; LIMIT; OUT_OF_MEMORY; CANCELLED while
 * copying. `*out_why` says why, and lives as long as the program. The descriptor stays open; only uir_file_is_unchanged
 * needs it. */
uir_status uir_file_take(int descriptor, bool copy, const uir_allocator *allocator, uir_file *out_file,
                         const char **out_why);
void uir_file_release(uir_file *file, const uir_allocator *allocator); /* all zero is fine */

/* Whether the file behind the descriptor, if it is still the same one, has its old size and was not written to. True
 * for a copy and for another file. */
bool uir_file_is_unchanged(const uir_file *file, int descriptor);

/* Why no file can be made at the path; NULL if its folder exists and is writable. To be called before long work whose
 * result is a file. */
const char *uir_file_refuse_place(const char *path);

/* Writes all bytes at the descriptor's position; false with errno set on failure. */
bool uir_file_write_all(int descriptor, const void *data, size_t size);

/* Text of an errno value, without strerror's locale and static buffer. */
const char *uir_file_explain(int number);

#endif
