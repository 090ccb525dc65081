/* Caches the object files of a build of native code, and the sources of all of them, until the linked object is cached.
 * An interrupted build resumes at the next start, without lowering the kernels again. In: the model and the key of its
 * native code. Out: the `keeper` that the build asks for files. */
#ifndef UIR_API_COMPILE_KEPT_H
#define UIR_API_COMPILE_KEPT_H

#include "api/compiled.h"

typedef struct uir_kept_files {
    uir_model *model;
    uir_cache_key native; /* of the linked object */
    uir_cache *cache;
    uir_text material;     /* identity of the build, then that of a file */
    size_t identity;       /* bytes of it */
    uir_cache_entry entry; /* the last one handed out */
    uir_target_keeper keeper;
    uir_cache_key keys[UIR_TARGET_FILES_MAX];
    bool asked[UIR_TARGET_FILES_MAX];
    uir_diagnostics *diagnostics;
} uir_kept_files;

/* `keeper` is passed to the build; the struct must not move. To be deinitialised if this succeeds. */
uir_status uir_kept_files_init(uir_kept_files *files, uir_model *model, uir_cache_key native);
/* Removes the files and the sources from the cache. */
void uir_kept_files_remove(uir_kept_files *files);
void uir_kept_files_deinit(uir_kept_files *files);

#endif
