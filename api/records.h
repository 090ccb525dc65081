/* Tuning records for a load or a package: the caller's, or those that uir-tune left in the cache. */
#ifndef UIR_API_RECORDS_H
#define UIR_API_RECORDS_H

#include "cache/cache.h"
#include "compile/records.h"

typedef struct uir_api_records {
    uir_record_source source; /* of these */
    uir_arena arena;
    bool given;
    uir_records records; /* the caller's */
    uir_cache *cache;    /* borrowed; NULL: none */
    uint32_t found;
} uir_api_records;

/* `text`: the caller's records, used instead of the cache; BAD_FILE if malformed. NULL: the cache's. To be
 * deinitialised in any case. */
uir_status uir_api_records_init(uir_api_records *records, const char *text, uir_cache *cache,
                                const uir_allocator *allocator, uir_diagnostics *diagnostics);
void uir_api_records_deinit(uir_api_records *records);
/* Stores records in the cache, for later compiles. */
uir_status uir_api_records_store(uir_cache *cache, const uir_records *records, const uir_allocator *allocator,
                                 uir_diagnostics *diagnostics);

#endif
