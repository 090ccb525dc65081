/* Which model a file is: what tells it from any other that the cache may hold.
 *
 * In: a path, and the names of the files of external data beside it. Out: two descriptions. By `stamp`: device, inode,
 * size and times, which takes no reading, and is worth something only once the last change is older than the clock of
 * the file system is coarse. By `content`: a hash of all bytes, which survives copying. */
#ifndef UIR_API_IDENTITY_H
#define UIR_API_IDENTITY_H

#include "base/text.h"

typedef struct uir_identity {
    uir_allocator allocator;
    const char *path; /* borrowed */
    int folder;       /* of the external data; -1: none */
    int64_t began_s;  /* when the looking began */
} uir_identity;

/* NOT_FOUND when there is no folder. To be deinitialised in any case. */
uir_status uir_identity_init(uir_identity *identity, const uir_allocator *allocator, const char *path);
void uir_identity_deinit(uir_identity *identity);

/* Appends a line about the model's file (`name` NULL) or one beside it. NOT_FOUND: the file cannot be told in that way:
 * it is not there, no regular file, changed a moment ago (stamp), or its name has a line's end. */
uir_status uir_identity_stamp(const uir_identity *identity, const char *name, uir_text *text);
uir_status uir_identity_content(const uir_identity *identity, const char *name, uir_text *text);
/* The same of bytes that were read already. */
uir_status uir_identity_content_of(const char *name, const void *data, uint64_t size, uir_text *text);

typedef uir_status uir_identity_describe(const uir_identity *identity, const char *name, uir_text *text);
/* Whether each line of `lines`, as one of the functions above wrote it, is what it would write now. */
bool uir_identity_holds(const uir_identity *identity, uir_identity_describe *describe, const char *lines, size_t size);

/* Appends what tells this build of the library from others: its version, and the file that its code was loaded from.
 * What a build made is for that build alone: every key of the cache holds this. NOT_FOUND when it cannot be told; then
 * nothing is kept. */
uir_status uir_identity_build(uir_text *text);

#endif
