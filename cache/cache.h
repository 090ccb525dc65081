/* The cache of compiled things: blobs on disk by the digest of what decides them, for one owner, shared by his
 * processes.
 *
 * In: key material (whatever decides the bytes: model, options, CPU, compiler, version), bytes to keep. Out: the bytes,
 * mapped or read, page-aligned, when an entry of that key is there and whole. A cache is a convenience: whatever goes
 * wrong with it is a warning and a status on which the caller goes on without. File names are made from keys alone. */
#ifndef UIR_CACHE_CACHE_H
#define UIR_CACHE_CACHE_H

#include "cache/digest.h"

typedef struct uir_cache uir_cache;

typedef uir_digest uir_cache_key;

typedef struct uir_cache_options {
    const char *folder; /* NULL: $XDG_CACHE_HOME/uir, else ~/.cache/uir */
    uint64_t limit;     /* bytes on disk; 0: UIR_CACHE_LIMIT_DEFAULT */
    bool copy;          /* entries are read into memory, and never mapped */
} uir_cache_options;
#define UIR_CACHE_LIMIT_DEFAULT ((uint64_t)8 << 30)

typedef struct uir_cache_entry {
    const void *bytes; /* page-aligned, read only */
    size_t size;
    void *map; /* the whole file; the cache's own, as is what follows */
    size_t map_size;
    struct uir_budget *budget; /* that the map counts in; NULL: none */
    uir_cache_key key;
    uint64_t stamp[8]; /* of the file when its bytes were known to be whole */
} uir_cache_entry;

uir_cache_key uir_cache_make_key(const void *material, size_t size);

/* Opens the folder, made with mode 0700 where it is missing. IO_FAILED with a warning when there is none or it cannot
 * be trusted: not the caller's own, or others may write to it. `options` may be NULL. */
uir_status uir_cache_open(const uir_allocator *allocator, const uir_cache_options *options,
                          uir_diagnostics *diagnostics, uir_cache **out_cache);
void uir_cache_close(uir_cache *cache); /* NULL is fine; entries stay valid */

/* NOT_FOUND, without a message, when there is no such entry. One that is damaged counts as none and is removed, with a
 * warning. An entry is used until released even if another process removes it meanwhile. */
uir_status uir_cache_load(uir_cache *cache, uir_cache_key key, uir_diagnostics *diagnostics,
                          uir_cache_entry *out_entry);
void uir_cache_entry_release(uir_cache_entry *entry);
/* Notes that the entry's file is whole as it lies there, so that a large one need not be read to be sure of it the next
 * time. Does nothing when the file has changed since, or so lately that a change would not show. Entries that were
 * loaded are noted by themselves. */
void uir_cache_settle(uir_cache *cache, const uir_cache_entry *entry);

/* Whether the entry's file, if it is there still, has the bytes that were mapped, as far as its size and the time of
 * its last change tell: it was neither cut short nor written to. */
bool uir_cache_entry_is_unchanged(const uir_cache *cache, const uir_cache_entry *entry);

/* Replaces an entry of that key at once: others see the old one or the new one. Then removes the entries that were not
 * used for longest until the limit holds. LIMIT when the entry alone is larger; IO_FAILED (read only, disk full); both
 * with a warning, and nothing is left of it. */
uir_status uir_cache_store(uir_cache *cache, uir_cache_key key, const void *bytes, size_t size,
                           uir_diagnostics *diagnostics);

/* The same, a part at a time. */
typedef struct uir_cache_writer uir_cache_writer;
uir_status uir_cache_writer_create(uir_cache *cache, uir_cache_key key, uir_diagnostics *diagnostics,
                                   uir_cache_writer **out_writer);
/* LIMIT, IO_FAILED: with a warning, after which nothing but abandoning it makes sense. */
uir_status uir_cache_writer_append(uir_cache_writer *writer, const void *data, size_t size);
/* Over the first bytes of what was appended; of the first 4096 alone. */
uir_status uir_cache_writer_patch(uir_cache_writer *writer, const void *data, size_t size);
/* Whether the `size` bytes appended at `offset` are these. */
bool uir_cache_writer_equals(uir_cache_writer *writer, uint64_t offset, const void *data, size_t size);
/* Makes it an entry, and hands that out without reading it again. Ends the writer in any case. */
uir_status uir_cache_writer_finish(uir_cache_writer *writer, uir_cache_entry *out_entry);
void uir_cache_writer_abandon(uir_cache_writer *writer); /* NULL is fine */

uir_status uir_cache_remove(uir_cache *cache, uir_cache_key key, uir_diagnostics *diagnostics);
/* Removes every entry and what dead processes left. `out_bytes` (may be NULL): how much that was. */
uir_status uir_cache_clear(uir_cache *cache, uir_diagnostics *diagnostics, uint64_t *out_bytes);

#endif
