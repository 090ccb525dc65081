/* The parts that the cache's sources share: the open cache, the format of an entry's file, the stamps of verified
 * files. */
#ifndef UIR_CACHE_INTERNAL_H
#define UIR_CACHE_INTERNAL_H

#include "cache/cache.h"

struct uir_cache {
    uir_allocator allocator;
    int folder; /* open; every file is named relative to it */
    uint64_t limit;
    bool copy;
    char path[1024]; /* for messages */
};

#define UIR_CACHE_NAME_SIZE (UIR_DIGEST_TEXT_SIZE + 8)
#define UIR_CACHE_TEMPORARY "tmp-" /* an entry being written */
#define UIR_CACHE_USE       ".use" /* beside an entry: its time is that of the last use, its contents a stamp */
void uir_cache_name(uir_cache_key key, const char *suffix, char out_name[UIR_CACHE_NAME_SIZE]);

/* An entry's file: a header of one page, then the entry's bytes, which are thus page-aligned when mapped. */
#define UIR_CACHE_PAGE 4096
typedef struct uir_cache_header {
    char magic[8];
    uint32_t version, order; /* `order` is 0x01020304 in the machine's byte order */
    uint64_t size;
    uir_cache_key key;
    uint64_t hash[2]; /* of the bytes: low, high. xxh3 detects damage; the private folder prevents forgery */
    uint64_t check;   /* of all above */
} uir_cache_header;
void uir_cache_header_fill(uir_cache_header *header, uir_cache_key key, uint64_t size, const uint64_t hash[2]);

/* Identifies a verified file, by metadata that the operating system changes on every write. A large file with the same
 * stamp is not hashed again: hashing takes longer than a start may. */
typedef struct uir_cache_stamp {
    uint64_t device, inode, size;
    int64_t changed_s, changed_ns, modified_s, modified_ns;
    uint64_t check;
} uir_cache_stamp;
struct stat;
/* Maps the file behind the descriptor, or reads it, as an entry. False with errno set on failure. */
bool uir_cache_map(const uir_cache *cache, int fd, const struct stat *about, uir_cache_key key,
                   uir_cache_entry *out_entry);

/* folder.c */
uir_status uir_cache_open_folder(uir_cache *cache, const char *folder, uir_diagnostics *diagnostics);
/* Removes least recently used entries, except `kept`, until the limit holds; also files of dead processes. */
void uir_cache_prune(uir_cache *cache, uir_cache_key kept);

#endif
