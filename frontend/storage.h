/* The bytes of files, and a model's external data among them, which lies in folders of the model's
 * (folders.h).
 *
 * In: paths. Out: read-only bytes that live as long as the storage, which a module takes over (uir_module.storage).
 *
 * Mapped bytes are those of the file (base/file.h): its owner who cuts it short during a run ends the process with
 * SIGBUS, as with every mapped file; before a run it is asked. Replacing the file (write elsewhere, rename) is safe. */
#ifndef UIR_FRONTEND_STORAGE_H
#define UIR_FRONTEND_STORAGE_H

#include "base/file.h"
#include "frontend/folders.h"

typedef struct uir_storage uir_storage;

/* `copy`: nothing is mapped. */
uir_status uir_storage_create(const uir_allocator *allocator, bool copy, uir_storage **out_storage);
void uir_storage_destroy(void *storage); /* a uir_storage; NULL is fine */

/* The whole of a regular file named by the caller. Follows links: the caller's word is trusted. */
uir_status uir_storage_map_path(uir_storage *storage, uir_diagnostics *diagnostics, const char *path,
                                uir_file *out_file);

/* Where external data lies; without folders it is refused. NOT_FOUND, with a message, when the folder that is named for
 * it cannot be opened. */
uir_status uir_storage_open_folders(uir_storage *storage, uir_diagnostics *diagnostics,
                                    const uir_folders_source *source);

/* The `length` bytes from `offset` of the regular file at `location` (relative, from the model's file) in one of the
 * folders; a file already taken is shared. Absolute paths, "..", symbolic links that leave the folders, devices and
 * pipes are errors. `place` says where in the model, `owner` whose data it is: messages begin with it. What is wrong
 * with a file is said once, for the first that wants it; later ones get the status alone. */
uir_status uir_storage_map_below(uir_storage *storage, uir_diagnostics *diagnostics, const uir_location *place,
                                 const char *owner, const char *location, size_t location_length, uint64_t offset,
                                 uint64_t length, const uint8_t **out_data);

/* What was taken below the folders, by index in any order that stays; false past the last. */
bool uir_storage_get_file(const uir_storage *storage, uint32_t index, const char **out_location, uir_file *out_file);

/* BAD_FILE with a message when a mapped file is not what it was. Any thread. */
uir_status uir_storage_check(const uir_storage *storage, uir_diagnostics *diagnostics);

#endif
