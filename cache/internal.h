/* What the cache's files share. Private to this folder. */
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
#define UIR_CACHE_TEMPORARY "tmp-" /* an entry that is being written */
#define UIR_CACHE_USE       ".use" /* beside an entry: its time is the last use, its contents a stamp */
void uir_cache_name(uir_cache_key key, const char *suffix, char out_name[UIR_CACHE_NAME_SIZE]);

/* An entry's file: a page of header, so that what follows is page-aligned where it is mapped, then the bytes. */
#define UIR_CACHE_PAGE 4096
typedef struct uir_cache_header {
    char magic[8];
    uint32_t version, order; /* `order` is 0x01020304 on a machine of the same byte order */
    uint64_t size;
    uir_cache_key key;
    uint64_t hash[2]; /* of the bytes: low, high. xxh3 finds damage; whoever may write here needs to forge nothing */
    uint64_t check;   /* of all above */
} uir_cache_header;
void uir_cache_header_fill(uir_cache_header *header, uir_cache_key key, uint64_t size, const uint64_t hash[2]);

/* Hashing hundreds of megabytes takes longer than a start may. A file that was found whole is known by what the kernel
 * changes with every write to it; as long as all of that is the same, a large one is not read again. */
typedef struct uir_cache_stamp {
    uint64_t device, inode, size;
    int64_t changed_s, changed_ns, modified_s, modified_ns;
    uint64_t check;
} uir_cache_stamp;
struct stat;
/* A map of the file behind the descriptor, or its bytes, as an entry. False: that cannot be; errno says why. */
bool uir_cache_map(const uir_cache *cache, int fd, const struct stat *about, uir_cache_key key,
                   uir_cache_entry *out_entry);

/* folder.c */
uir_status uir_cache_open_folder(uir_cache *cache, const char *folder, uir_diagnostics *diagnostics);
/* Removes least recently used entries until the limit holds, `kept` never; and what dead processes left. */
void uir_cache_prune(uir_cache *cache, uir_cache_key kept);

#endif
