/* Which model a file is: what tells it from any other that the cache may hold.
 *
 * In: a path, and the names of the files of external data in its folders, links followed as the loader does. Out: two
 * descriptions. By `stamp`: device, inode, size and times, which takes no reading, and is worth something only once the
 * last change is older than the clock of the file system is coarse. By `content`: a hash of all bytes, which survives
 * copying; who may write one model's file cannot make it another's (cache/digest.h). */
#ifndef UIR_COMPILE_IDENTITY_H
#define UIR_COMPILE_IDENTITY_H

#include "base/text.h"
#include "base/vector.h"
#include "frontend/folders.h"

/* Which file a name meant when its bytes were read. */
typedef struct uir_identity_read {
    const char *name;
    uint64_t device, inode;
} uir_identity_read;

typedef struct uir_identity {
    uir_allocator allocator;
    uir_arena arena;
    const char *path;            /* borrowed */
    uir_folders folders;         /* of the external data */
    int64_t began_s;             /* when the looking began */
    const volatile bool *cancel; /* asked while bytes are hashed; NULL: nobody asks */
    uir_vector(uir_identity_read) reads;
} uir_identity;

/* `external_data`: the folder named for it; NULL: none. NOT_FOUND when there is no folder. To be deinitialised in any
 * case. */
uir_status uir_identity_init(uir_identity *identity, const uir_allocator *allocator, const char *path,
                             const char *external_data);
void uir_identity_deinit(uir_identity *identity);

/* Appends a line about the model's file (`name` NULL) or one of external data. NOT_FOUND: the file cannot be told in
 * that way: it is not there, no regular file, changed a moment ago (stamp), another one than when its bytes were read,
 * for a link may have been turned since (stamp), or its name has a line's end. */
uir_status uir_identity_stamp(uir_identity *identity, const char *name, uir_text *text);
/* CANCELLED when the flag was set. */
uir_status uir_identity_content(uir_identity *identity, const char *name, uir_text *text);
/* Of bytes that were read already. */
uir_status uir_identity_content_of(uir_identity *identity, const char *name, const void *data, uint64_t size,
                                   uir_text *text);

/* Notes which file they were read from. */
uir_status uir_identity_note_read(uir_identity *identity, const char *name, uint64_t device, uint64_t inode);

typedef uir_status uir_identity_describe(uir_identity *identity, const char *name, uir_text *text);
/* Whether each line of `lines`, as one of the functions above wrote it, is what it would write now. */
bool uir_identity_holds(uir_identity *identity, uir_identity_describe *describe, const char *lines, size_t size);

/* Appends what tells this build of the library from others: its version, and the file that its code was loaded from.
 * What a build made is for that build alone: every key of the cache but those of records of
 * parameters, which nothing takes on trust, holds this. NOT_FOUND when it cannot be told; then
 * nothing is kept. */
uir_status uir_identity_build(uir_text *text);

#endif
