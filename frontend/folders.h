/* The folders that a model's external data may lie in, and how a file in them is reached without leaving them.
 *
 * In: a model's path, folders that the caller names. Out: descriptors of files of which each lies, when all symbolic
 * links have been followed, below one of the folders: those that the caller named, the folder of the model's path, and
 * the folder of its real path. So a model of a cache that keeps files under their hashes and links to them by name is
 * read where it lies, and a link to anywhere else is not followed. */
#ifndef UIR_FRONTEND_FOLDERS_H
#define UIR_FRONTEND_FOLDERS_H

#include "base/status.h"

enum { UIR_FOLDERS_MAX = 4 };

typedef struct uir_folder {
    int descriptor;
    const char *path, *real; /* as it was named, and with links followed; NULL when that could not be told */
} uir_folder;

typedef struct uir_folders {
    uir_folder rows[UIR_FOLDERS_MAX]; /* in the order in which a file is looked for */
    uint32_t count;
} uir_folders;

typedef struct uir_folders_source {
    const char *external_data; /* a folder that comes first; NULL: none */
    const char *folder;        /* one in place of those of the model's path; NULL: none */
    const char *model;         /* path of the model's file; NULL: it is not from a file */
} uir_folders_source;

/* Folders that cannot be opened are left out; but for `external_data`, which gives NOT_FOUND. Texts live in `arena`. To
 * be closed in any case. */
uir_status uir_folders_open(uir_folders *folders, const uir_folders_source *source, uir_arena *arena);
void uir_folders_close(uir_folders *folders);

/* Opens the file for reading that `name`, a relative path, names in the first folder that has it. Returns a descriptor
 * or -errno: ENOLINK for a symbolic link to what is not there, EXDEV for one that leads out, EMLINK for a file of
 * several names (hard links) in a folder that is not the caller's. What is no regular file may be opened too, and
 * nothing waits for it. */
int uir_folders_open_file(const uir_folders *folders, const char *name);

/* Opens `path` below the folder `directory` for reading without following any link. Returns a descriptor or -errno. The
 * first asks the kernel (Linux 5.6's openat2; -ENOSYS where there is none); the second walks component by component. */
int uir_confined_open_kernel(int directory, const char *path);
int uir_confined_open_walk(int directory, const char *path);

#endif
