/* Identifies a model's files, as keys of the cache.
 *
 * In: a path, and the names of external data files in its folders, links followed as by the loader. Out: two
 * descriptions. By `stamp`: device, inode, size and times, without reading; valid only if the last change is older than
 * the resolution of file times. By `content`: a hash of all bytes, which survives copying; nobody can make a second
 * file of the same hash (cache/digest.h). */
#ifndef UIR_COMPILE_IDENTITY_H
#define UIR_COMPILE_IDENTITY_H

#include "base/text.h"
#include "base/vector.h"
#include "frontend/folders.h"

/* The file that a name referred to when its bytes were read. */
typedef struct uir_identity_read {
    const char *name;
    uint64_t device, inode;
} uir_identity_read;

typedef struct uir_identity {
    uir_allocator allocator;
    uir_arena arena;
    const char *path;            /* borrowed */
    uir_folders folders;         /* of the external data */
    int64_t began_s;             /* time of uir_identity_init */
    const volatile bool *cancel; /* polled while hashing; NULL: none */
    uir_vector(uir_identity_read) reads;
} uir_identity;

/* `external_data`: the folder given for it; NULL: none. NOT_FOUND if no folder can be opened. To be deinitialised in
 * any case. */
uir_status uir_identity_init(uir_identity *identity, const uir_allocator *allocator, const char *path,
                             const char *external_data);
void uir_identity_deinit(uir_identity *identity);

/* Appends a line about the model's file (`name` NULL) or one of external data. NOT_FOUND: the file cannot be described.
 * It is missing or not regular, or its name contains a newline. For stamps also: it changed a moment ago, or the name
 * now refers to another file than the one read. */
uir_status uir_identity_stamp(uir_identity *identity, const char *name, uir_text *text);
/* The same by content, also NOT_FOUND for an empty file; CANCELLED when the flag is set. */
uir_status uir_identity_content(uir_identity *identity, const char *name, uir_text *text);
/* The same for bytes read already. */
uir_status uir_identity_content_of(uir_identity *identity, const char *name, const void *data, uint64_t size,
                                   uir_text *text);

/* Records the file that the bytes of `name` were read from. */
uir_status uir_identity_note_read(uir_identity *identity, const char *name, uint64_t device, uint64_t inode);

typedef uir_status uir_identity_describe(uir_identity *identity, const char *name, uir_text *text);
/* Whether `describe` would write each of the lines again now. */
bool uir_identity_holds(uir_identity *identity, uir_identity_describe *describe, const char *lines, size_t size);

/* Appends the identity of this build of the library: its version, and the file that its code was loaded from. All cache
 * keys contain this, since an entry is valid for one build only; except those of tuning records, which are checked when
 * read. NOT_FOUND if unknown; then nothing is cached. */
uir_status uir_identity_build(uir_text *text);

#endif
