/* The compile cache: blobs on disk under the digest of all that determines them, for one user, shared by their
 * processes.
 *
 * In: key material (all that determines the bytes: model, options, CPU, compiler, version), bytes to keep. Out: the
 * bytes, mapped or read, page-aligned, if there is an intact entry of that key. The cache is optional: each failure is
 * a warning and a status, and the caller goes on without it. File names are made from keys only. */
#ifndef UIR_CACHE_CACHE_H
#define UIR_CACHE_CACHE_H

#include "cache/digest.h"

typedef struct uir_cache uir_cache;

typedef uir_digest uir_cache_key;

typedef struct uir_cache_options {
    const char *folder; /* NULL: $XDG_CACHE_HOME/uir, else ~/.cache/uir */
    uint64_t limit;     /* bytes on disk; 0: UIR_CACHE_LIMIT_DEFAULT */
    bool copy;          /* entries are read into memory, never mapped */
} uir_cache_options;
#define UIR_CACHE_LIMIT_DEFAULT ((uint64_t)8 << 30)

typedef struct uir_cache_entry {
    const void *bytes; /* page-aligned, read only */
    size_t size;
    void *map; /* the whole file; private, like the members below */
    size_t map_size;
    struct uir_budget *budget; /* that counts the map; NULL: none */
    uir_cache_key key;
    uint64_t stamp[8]; /* of the file when its bytes were verified */
} uir_cache_entry;

uir_cache_key uir_cache_make_key(const void *material, size_t size);

/* Opens the folder, created with mode 0700 if missing. IO_FAILED with a warning if there is none, or if it is not
 * trusted: not owned by the caller, or writable by others. `options` may be NULL. */
uir_status uir_cache_open(const uir_allocator *allocator, const uir_cache_options *options,
                          uir_diagnostics *diagnostics, uir_cache **out_cache);
void uir_cache_close(uir_cache *cache); /* NULL is fine; entries stay valid */

/* Loads an entry. NOT_FOUND, without a message, if there is none; a damaged one is removed, with a warning. An entry is
 * valid until released, even if another process removes it. */
uir_status uir_cache_load(uir_cache *cache, uir_cache_key key, uir_diagnostics *diagnostics,
                          uir_cache_entry *out_entry);
void uir_cache_entry_release(uir_cache_entry *entry);
/* Records that the entry's file is intact, so that a large one need not be read for verification the next time. Does
 * nothing if the file has changed since, or so recently that a change might not show. Loading an entry records it
 * too. */
void uir_cache_settle(uir_cache *cache, const uir_cache_entry *entry);

/* Whether the entry's file, if it still exists, is unchanged since it was mapped, by its size and modification time. */
bool uir_cache_entry_is_unchanged(const uir_cache *cache, const uir_cache_entry *entry);

/* Stores an entry atomically: others see the old one or the new one. Then removes the least recently used entries until
 * the limit holds. LIMIT if the entry exceeds the limit; IO_FAILED (read only, disk full); both with a warning, and
 * nothing is stored. */
uir_status uir_cache_store(uir_cache *cache, uir_cache_key key, const void *bytes, size_t size,
                           uir_diagnostics *diagnostics);

/* The same, in parts. */
typedef struct uir_cache_writer uir_cache_writer;
uir_status uir_cache_writer_create(uir_cache *cache, uir_cache_key key, uir_diagnostics *diagnostics,
                                   uir_cache_writer **out_writer);
/* LIMIT, IO_FAILED: with a warning; the writer can then only be abandoned. */
uir_status uir_cache_writer_append(uir_cache_writer *writer, const void *data, size_t size);
/* Overwrites the first bytes appended; within the first 4096. */
uir_status uir_cache_writer_patch(uir_cache_writer *writer, const void *data, size_t size);
/* Whether the `size` bytes appended at `offset` are these. */
bool uir_cache_writer_equals(uir_cache_writer *writer, uint64_t offset, const void *data, size_t size);
/* Makes it an entry, and returns that without reading it again. Ends the writer in any case. */
uir_status uir_cache_writer_finish(uir_cache_writer *writer, uir_cache_entry *out_entry);
void uir_cache_writer_abandon(uir_cache_writer *writer); /* NULL is fine */

uir_status uir_cache_remove(uir_cache *cache, uir_cache_key key, uir_diagnostics *diagnostics);
/* Removes all entries, and files of dead processes. `out_bytes` (may be NULL): the bytes removed. */
uir_status uir_cache_clear(uir_cache *cache, uir_diagnostics *diagnostics, uint64_t *out_bytes);

#endif
