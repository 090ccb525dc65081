#include "api/compile_kept.h"

#include "compile/identity.h"

static bool find(void *user, uint32_t file, const void *material, size_t size, const void **out_bytes,
                 size_t *out_size) {
    uir_kept_files *f = user;
    f->material.length = f->identity;
    uir_text_append(&f->material, material, size);
    if (file >= UIR_TARGET_FILES_MAX || uir_text_status(&f->material) != UIR_STATUS_OK) return false;
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
    if (file < UIR_TARGET_FILES_MAX && f->asked[file])
        (void)!uir_cache_store(f->cache, f->keys[file], bytes, size, NULL);
}

static void remove_files(uir_kept_files *files) {
    for (uint32_t i = 0; i < UIR_TARGET_FILES_MAX; i++)
        if (files->asked[i]) (void)!uir_cache_remove(files->cache, files->keys[i], NULL);
}

static void forget(void *user) {
    remove_files(user);
}

static void keep_sources(void *user, const void *sources, size_t size) {
    const uir_kept_files *f = user;
    uir_model_cached_keep_sources(f->model, f->native, sources, size);
}

uir_status uir_kept_files_init(uir_kept_files *files, uir_model *model, uir_cache_key native) {
    uir_model_code *code = uir_model_get_source(model)->code;
    *files = (uir_kept_files){.model = model,
                              .native = native,
                              .cache = code->cache,
                              .keeper = {find, keep, forget, keep_sources, files},
                              .diagnostics = &code->said};
    uir_text_init(&files->material, &model->allocator);
    uir_status status = uir_identity_build(&files->material);
    if (status == UIR_STATUS_OK) uir_text_append_string(&files->material, "a file of\n");
    if (status == UIR_STATUS_OK) status = uir_text_status(&files->material);
    files->identity = files->material.length;
    if (status != UIR_STATUS_OK) uir_text_deinit(&files->material);
    return status;
}

void uir_kept_files_remove(uir_kept_files *files) {
    remove_files(files);
    uir_model_cached_remove_sources(files->model);
}

void uir_kept_files_deinit(uir_kept_files *files) {
    uir_cache_entry_release(&files->entry);
    uir_text_deinit(&files->material);
}
