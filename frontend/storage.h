/* Owns the bytes of a model's files, including external data in the model's folders (folders.h).
 *
 * In: paths. Out: read-only bytes that live as long as the storage, which a module takes over (uir_module.storage).
 *
 * Mapped bytes are those of the file (base/file.h): if its owner truncates it during a run, the process ends with
 * SIGBUS. uir_storage_check detects changes before a run. Replacing the file (write elsewhere, rename) is safe. */
#ifndef UIR_FRONTEND_STORAGE_H
#define UIR_FRONTEND_STORAGE_H

#include "base/file.h"
#include "frontend/folders.h"

typedef struct uir_storage uir_storage;

/* `copy`: maps nothing. */
uir_status uir_storage_create(const uir_allocator *allocator, bool copy, uir_storage **out_storage);
void uir_storage_destroy(void *storage); /* a uir_storage; NULL is fine */

/* Reads a regular file named by the caller; follows links, since the caller is trusted. */
uir_status uir_storage_map_path(uir_storage *storage, uir_diagnostics *diagnostics, const char *path,
                                uir_file *out_file);

/* Opens the folders of external data; without folders it is refused. NOT_FOUND, with a message, if the folder given for
 * it cannot be opened. */
uir_status uir_storage_open_folders(uir_storage *storage, uir_diagnostics *diagnostics,
                                    const uir_folders_source *source);

/* `length` bytes from `offset` of the regular file `location` (a relative path) in one of the folders; a file already
 * read is shared. Absolute paths, "..", symbolic links that leave the folders, devices and pipes are errors. `place` is
 * the location in the model, and messages begin with `owner`, the owner of the data. A file's problem is reported once;
 * later calls return only the status. */
uir_status uir_storage_map_below(uir_storage *storage, uir_diagnostics *diagnostics, const uir_location *place,
                                 const char *owner, const char *location, size_t location_length, uint64_t offset,
                                 uint64_t length, const uint8_t **out_data);

/* Files read below the folders, by index in a stable order; false past the last. */
bool uir_storage_get_file(const uir_storage *storage, uint32_t index, const char **out_location, uir_file *out_file);

/* BAD_FILE with a message if a mapped file has changed. Any thread. */
uir_status uir_storage_check(const uir_storage *storage, uir_diagnostics *diagnostics);

#endif
