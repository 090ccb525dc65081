#include "api/compile_kept.h"

#include "compile/identity.h"

static bool find(void *user, uint32_t file, const void *material, size_t size, const void **out_bytes,
                 size_t *out_size) {
    uir_kept_files *f = user;
    f->material.length = f->identity;
    uir_text_append(&f->material, material, size);
    if (file >= UIR_CPU_FILES_MAX || uir_text_status(&f->material) != UIR_STATUS_OK) return false;
    f->keys[file] = uir_cache_make_key(f->material.data, f->material.length);
    f->asked[file] = true;
    uir_cache_entry_release(&f->entry);
    if (uir_cache_load(f->cache, f->keys[file], f->diagnostics, &f->entry) != UIR_STATUS_OK) return false;
    *out_bytes = f->entry.bytes;
    *out_size = f->entry.size;
    return true;
}

/* What goes wrong is told once, when the whole is stored. */
static void keep(void *user, uint32_t file, const void *bytes, size_t size) {
    uir_kept_files *f = user;
    if (file < UIR_CPU_FILES_MAX && f->asked[file]) (void)!uir_cache_store(f->cache, f->keys[file], bytes, size, NULL);
}

static void forget(void *user) {
    uir_kept_files_remove(user);
}

uir_status uir_kept_files_init(uir_kept_files *files, uir_cache *cache, const uir_allocator *allocator,
                               uir_diagnostics *diagnostics) {
    *files = (uir_kept_files){.cache = cache, .keeper = {find, keep, forget, files}, .diagnostics = diagnostics};
    uir_text_init(&files->material, allocator);
    uir_status status = uir_identity_build(&files->material);
    if (status == UIR_STATUS_OK) uir_text_append_string(&files->material, "a file of\n");
    if (status == UIR_STATUS_OK) status = uir_text_status(&files->material);
    files->identity = files->material.length;
    if (status != UIR_STATUS_OK) uir_text_deinit(&files->material);
    return status;
}

void uir_kept_files_remove(uir_kept_files *files) {
    for (uint32_t i = 0; i < UIR_CPU_FILES_MAX; i++)
        if (files->asked[i]) (void)!uir_cache_remove(files->cache, files->keys[i], NULL);
}

void uir_kept_files_deinit(uir_kept_files *files) {
    uir_cache_entry_release(&files->entry);
    uir_text_deinit(&files->material);
}
