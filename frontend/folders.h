/* The folders of a model's external data, and access to files in them only.
 *
 * In: a model's path, folders named by the caller. Out: descriptors of files. With all symbolic links followed, each
 * file is below one of these folders: those named by the caller, the folder of the model's path, the folder of its real
 * path. Thus a model of a cache that stores files by hash, with links as names, can be read in place; links to anywhere
 * else are not followed. */
#ifndef UIR_FRONTEND_FOLDERS_H
#define UIR_FRONTEND_FOLDERS_H

#include "base/status.h"

enum { UIR_FOLDERS_MAX = 4 };

typedef struct uir_folder {
    int descriptor;
    const char *path, *real; /* as named, and with links followed; NULL if unknown */
} uir_folder;

typedef struct uir_folders {
    uir_folder rows[UIR_FOLDERS_MAX]; /* in search order */
    uint32_t count;
} uir_folders;

typedef struct uir_folders_source {
    const char *external_data; /* a folder searched first; NULL: none */
    const char *folder;        /* replaces the folders of the model's path; NULL: none */
    const char *model;         /* path of the model's file; NULL: not from a file */
} uir_folders_source;

/* Opens the folders. Those that cannot be opened are left out, except `external_data`: NOT_FOUND. Texts live in
 * `arena`. To be closed in any case. */
uir_status uir_folders_open(uir_folders *folders, const uir_folders_source *source, uir_arena *arena);
void uir_folders_close(uir_folders *folders);

/* Opens the file `name`, a relative path, for reading in the first folder that has it. Returns a descriptor or -errno:
 * ENOLINK for a dangling symbolic link, EXDEV for one that leads out, EMLINK for a file with several hard links in a
 * folder of another user. May return other than regular files; does not block. */
int uir_folders_open_file(const uir_folders *folders, const char *name);

/* Opens `path` below the folder `directory` for reading, following no link. Returns a descriptor or -errno. The first
 * uses the kernel (Linux 5.6's openat2; -ENOSYS without it); the second walks component by component. */
int uir_confined_open_kernel(int directory, const char *path);
int uir_confined_open_walk(int directory, const char *path);

#endif
