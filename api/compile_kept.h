/* The files of a compile in the cache, and the sources of all, until the whole that they are linked to is there: a
 * compile that was broken off goes on at the next start, which makes no kernels for it. In: the model, what tells this
 * build of the library from others. Out: what a build of native code asks for its files. */
#ifndef UIR_API_COMPILE_KEPT_H
#define UIR_API_COMPILE_KEPT_H

#include "api/compiled.h"

typedef struct uir_kept_files {
    uir_model *model;
    uir_cache_key native; /* of the whole */
    uir_cache *cache;
    uir_text material;     /* the build's identity, then a file's own */
    size_t identity;       /* bytes of it */
    uir_cache_entry entry; /* handed out last */
    uir_cpu_keeper keeper;
    uir_cache_key keys[UIR_CPU_FILES_MAX];
    bool asked[UIR_CPU_FILES_MAX];
    uir_diagnostics *diagnostics;
} uir_kept_files;

/* `keeper` is for the build; stays where it is. To be deinitialised when it succeeded. */
uir_status uir_kept_files_init(uir_kept_files *files, uir_model *model, uir_cache_key native);
/* Nobody will ask for them any more, nor for the sources. */
void uir_kept_files_remove(uir_kept_files *files);
void uir_kept_files_deinit(uir_kept_files *files);

#endif
