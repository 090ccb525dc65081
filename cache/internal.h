/* What the cache's files share. Private to this folder. */
#ifndef UIR_CACHE_INTERNAL_H
#define UIR_CACHE_INTERNAL_H

#include "cache/cache.h"

struct uir_cache {
    uir_allocator allocator;
    int folder; /* open; every file is named relative to it */
    uint64_t limit;
    char path[1024]; /* for messages */
};

#define UIR_CACHE_NAME_SIZE 48
#define UIR_CACHE_TEMPORARY "tmp-" /* an entry that is being written */
#define UIR_CACHE_USE       ".use" /* beside an entry: its time is the last use, its contents a stamp */
void uir_cache_name(uir_cache_key key, const char *suffix, char out_name[UIR_CACHE_NAME_SIZE]);

/* folder.c */
uir_status uir_cache_open_folder(uir_cache *cache, const char *folder, uir_diagnostics *diagnostics);
/* Removes least recently used entries until the limit holds, `kept` never; and what dead processes left. */
void uir_cache_prune(uir_cache *cache, uir_cache_key kept);

#endif
