#include "api/records.h"

#include <string.h>

/* A record belongs to a kernel and a device, not to a build of the library as what a build has made does: it is read
 * with the same care as one from anywhere. */
static uir_status make_key(const uir_digest *kernel, const uir_allocator *allocator, uir_cache_key *out_key) {
    uir_text text;
    char digits[UIR_DIGEST_TEXT_SIZE];
    uir_digest_print(kernel, digits);
    uir_text_init(&text, allocator);
    uir_text_append_format(&text, "tuned %s\n", digits);
    uir_status status = uir_text_status(&text);
    if (status == UIR_STATUS_OK) *out_key = uir_cache_make_key(text.data, text.length);
    uir_text_deinit(&text);
    return status;
}

/* What lies in the cache may be anything. */
static uir_status read_entry(const uir_cache_entry *entry, const uir_digest *kernel, const char *name,
                             const uir_allocator *allocator, uir_diagnostics *diagnostics, uir_parameters *out) {
    uir_arena arena;
    uir_records records;
    uir_diagnostics said;
    uir_arena_init(&arena, allocator);
    uir_diagnostics_init(&said, allocator);
    uir_status status = uir_records_parse(entry->bytes, entry->size, "the cache", &arena, &said, &records);
    const uir_parameters *found = status == UIR_STATUS_OK ? uir_records_find(&records, kernel) : NULL;
    if (found) *out = *found;
    const char *why = said.first ? said.first->message : "it belongs to another kernel";
    bool broken = !found && status != UIR_STATUS_OUT_OF_MEMORY && status != UIR_STATUS_CANCELLED;
    if (broken) uir_warning(diagnostics, NULL, "the cache's tuning record for kernel %s is ignored: %s", name, why);
    uir_diagnostics_deinit(&said);
    uir_arena_deinit(&arena);
    return found ? UIR_STATUS_OK : broken ? UIR_STATUS_NOT_FOUND : status;
}

static uir_status find(void *user, const uir_digest *kernel, const char *name, uir_diagnostics *diagnostics,
                       uir_parameters *out) {
    uir_api_records *r = user;
    uir_cache_key key;
    uir_cache_entry entry;
    if (r->given) {
        const uir_parameters *found = uir_records_find(&r->records, kernel);
        if (!found) return UIR_STATUS_NOT_FOUND;
        *out = *found;
        r->found++;
        return UIR_STATUS_OK;
    }
    if (!r->cache) return UIR_STATUS_NOT_FOUND;
    UIR_TRY(make_key(kernel, &r->arena.allocator, &key));
    uir_status status = uir_cache_load(r->cache, key, diagnostics, &entry);
    if (status != UIR_STATUS_OK)
        return status == UIR_STATUS_OUT_OF_MEMORY || status == UIR_STATUS_CANCELLED ? status : UIR_STATUS_NOT_FOUND;
    status = read_entry(&entry, kernel, name, &r->arena.allocator, diagnostics, out);
    uir_cache_entry_release(&entry);
    if (status == UIR_STATUS_OK) r->found++;
    return status;
}

uir_status uir_api_records_init(uir_api_records *r, const char *text, uir_cache *cache, const uir_allocator *allocator,
                                uir_diagnostics *diagnostics) {
    *r = (uir_api_records){.source = {find, r}, .given = text != NULL, .cache = cache};
    uir_arena_init(&r->arena, allocator);
    return text ? uir_records_parse(text, strlen(text), "the records", &r->arena, diagnostics, &r->records)
                : UIR_STATUS_OK;
}

void uir_api_records_deinit(uir_api_records *r) {
    uir_arena_deinit(&r->arena);
}

uir_status uir_api_records_store(uir_cache *cache, const uir_records *records, const uir_allocator *allocator,
                                 uir_diagnostics *diagnostics) {
    for (uint32_t i = 0; i < records->items.count; i++) {
        uir_records one = {.items = {.data = &records->items.data[i], .count = 1}};
        uir_cache_key key;
        uir_text text;
        UIR_TRY(make_key(&records->items.data[i].kernel, allocator, &key));
        uir_text_init(&text, allocator);
        uir_records_print(&one, &text);
        uir_status status = uir_text_status(&text);
        if (status == UIR_STATUS_OK) status = uir_cache_store(cache, key, text.data, text.length, diagnostics);
        uir_text_deinit(&text);
        UIR_TRY(status);
    }
    return UIR_STATUS_OK;
}
