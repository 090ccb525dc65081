/* Files mapped into memory, and how a model's external data is reached without leaving the model's folder.
 *
 * In: paths. Out: read-only bytes that live as long as the storage, which a module takes over (uir_module.storage).
 *
 * Mapped bytes are those of the file: cutting the file short while a model is loaded kills the process with SIGBUS, as
 * with every mapped file. Replacing the file (write elsewhere, rename) is safe. */
#ifndef UIR_FRONTEND_STORAGE_H
#define UIR_FRONTEND_STORAGE_H

#include "base/status.h"

typedef struct uir_storage uir_storage;

typedef struct uir_mapped {
    const uint8_t *data;
    uint64_t size;
} uir_mapped;

uir_status uir_storage_create(const uir_allocator *allocator, uir_storage **out_storage);
void uir_storage_destroy(void *storage); /* a uir_storage; NULL is fine */

/* Maps a whole regular file named by the caller. Follows links: the caller's word is trusted. */
uir_status uir_storage_map_path(uir_storage *storage, uir_diagnostics *diagnostics, const char *path,
                                uir_mapped *out_mapped);

/* The folder that a path names a file in: `*out_length` characters of the path or, where it has none, of ".". */
const char *uir_storage_folder_of(const char *path, size_t *out_length);
/* Where external data lies: a folder, opened once. `folder` NULL or "": external data is refused. */
uir_status uir_storage_open_folder(uir_storage *storage, const char *folder);

/* Maps the regular file at `location` (relative, from the model's file) below the folder; a file already mapped is
 * shared. Absolute paths, "..", symbolic links, devices and pipes are errors. `place` says where in the model, `owner`
 * whose data it is: messages begin with it. */
uir_status uir_storage_map_below(uir_storage *storage, uir_diagnostics *diagnostics, const uir_location *place,
                                 const char *owner, const char *location, size_t length, uir_mapped *out_mapped);

/* Opens `path` below the folder `directory` for reading without following any link. Returns a descriptor or -errno. The
 * first asks the kernel (Linux 5.6's openat2; -ENOSYS where there is none); the second walks component by component. */
int uir_confined_open_kernel(int directory, const char *path);
int uir_confined_open_walk(int directory, const char *path);

/* What was mapped below the folder, by index in any order that stays; false past the last. */
bool uir_storage_get_file(const uir_storage *storage, uint32_t index, const char **out_location,
                          uir_mapped *out_mapped);

#endif
