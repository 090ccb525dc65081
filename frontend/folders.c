#include "frontend/folders.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#if defined(SYS_openat2)
#include <linux/openat2.h>
#define UIR_HAVE_OPENAT2 1
#endif
#endif

/* The folder that a path names a file in: `*out_length` characters of the path or, where it has none, of ".". */
static const char *folder_of(const char *path, size_t *out_length) {
    const char *slash = strrchr(path, '/');
    *out_length = slash && slash != path ? (size_t)(slash - path) : 1;
    return slash ? path : ".";
}

/* ---- the folders ---- */

static bool is_known(const uir_folders *folders, int descriptor) {
    struct stat a, b;
    for (uint32_t i = 0; i < folders->count; i++) {
        if (fstat(descriptor, &a) == 0 && fstat(folders->rows[i].descriptor, &b) == 0 && a.st_dev == b.st_dev &&
            a.st_ino == b.st_ino)
            return true;
    }
    return false;
}

static uir_status add_folder(uir_folders *folders, uir_arena *arena, const char *path, size_t length) {
    char real[PATH_MAX];
    uir_folder row = {0};
    UIR_TRY_ALLOCATE(row.path, uir_arena_copy_string(arena, path, length));
    row.descriptor = open(row.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (row.descriptor < 0) return UIR_STATUS_NOT_FOUND;
    if (is_known(folders, row.descriptor) || folders->count == UIR_FOLDERS_MAX) {
        close(row.descriptor);
        return UIR_STATUS_OK;
    }
    folders->rows[folders->count++] = row; /* from now on it is closed with the others */
    if (!realpath(row.path, real)) return UIR_STATUS_OK;
    UIR_TRY_ALLOCATE(folders->rows[folders->count - 1].real, uir_arena_copy_string(arena, real, strlen(real)));
    return UIR_STATUS_OK;
}

static uir_status add_folder_of(uir_folders *folders, uir_arena *arena, const char *path) {
    size_t length;
    const char *folder = folder_of(path, &length);
    uir_status status = add_folder(folders, arena, folder, length);
    return status == UIR_STATUS_NOT_FOUND ? UIR_STATUS_OK : status;
}

uir_status uir_folders_open(uir_folders *folders, const uir_folders_source *source, uir_arena *arena) {
    char real[PATH_MAX];
    *folders = (uir_folders){.count = 0};
    if (source->external_data)
        UIR_TRY(add_folder(folders, arena, source->external_data, strlen(source->external_data)));
    if (source->folder) {
        uir_status status = add_folder(folders, arena, source->folder, strlen(source->folder));
        return status == UIR_STATUS_NOT_FOUND ? UIR_STATUS_OK : status;
    }
    if (!source->model) return UIR_STATUS_OK;
    UIR_TRY(add_folder_of(folders, arena, source->model));
    return realpath(source->model, real) ? add_folder_of(folders, arena, real) : UIR_STATUS_OK;
}

void uir_folders_close(uir_folders *folders) {
    for (uint32_t i = 0; i < folders->count; i++) close(folders->rows[i].descriptor);
    folders->count = 0;
}

/* ---- files ---- */

int uir_confined_open_kernel(int directory, const char *path) {
#if defined(UIR_HAVE_OPENAT2)
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    long descriptor = syscall(SYS_openat2, directory, path, &how, sizeof how);
    return descriptor >= 0 ? (int)descriptor : -errno;
#else
    (void)directory;
    (void)path;
    return -ENOSYS;
#endif
}

int uir_confined_open_walk(int directory, const char *path) {
    char component[256];
    int at = directory;
    if (*path == '/') return -EXDEV;
    for (;;) {
        size_t length = strcspn(path, "/");
        const char *rest = path + length;
        while (*rest == '/') rest++;
        int result;
        if (length >= sizeof component) {
            result = -ENAMETOOLONG;
        } else {
            memcpy(component, path, length);
            component[length] = 0;
            if (strcmp(component, "..") == 0) {
                result = -EXDEV;
            } else {
                int flags = path[length] ? O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
                                         : O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
                struct stat about;
                result = openat(at, component, flags);
                if (result < 0) result = -errno;
                /* What is told of a link in a folder's place is that it is no folder. */
                if (result == -ENOTDIR && fstatat(at, component, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
                    S_ISLNK(about.st_mode))
                    result = -ELOOP;
            }
        }
        if (at != directory) close(at);
        if (result < 0 || !*rest) return result;
        at = result;
        path = rest;
    }
}

static int open_below(int directory, const char *path) {
    int descriptor = uir_confined_open_kernel(directory, path);
    /* An old kernel, or a sandbox that knows no openat2. */
    return descriptor == -ENOSYS || descriptor == -EPERM ? uir_confined_open_walk(directory, path) : descriptor;
}

/* Whoever may write to a folder can give a file of somebody else's a name there, as he can a link; what has no other
 * name is of the folder, and in a folder of the caller's own nobody else gives names. */
static bool is_borrowed(int folder, int descriptor) {
    struct stat file, about;
    if (fstat(descriptor, &file) != 0 || !S_ISREG(file.st_mode) || file.st_nlink <= 1) return false;
    return fstat(folder, &about) != 0 || about.st_uid != geteuid();
}

/* The folder is opened before the file, and that below it: what is asked of it is asked of the one that the file has
 * its name in. */
static int open_confined(int directory, const char *path) {
    char above[PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t length = slash ? (size_t)(slash - path) : 0;
    int folder = directory;
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return open_below(directory, path);
    if (length >= sizeof above) return -ENAMETOOLONG;
    if (length) {
        memcpy(above, path, length);
        above[length] = 0;
        folder = open_below(directory, above);
        if (folder < 0) return folder;
    }
    int descriptor = slash == path ? -EXDEV : open_below(folder, name);
    if (descriptor >= 0 && is_borrowed(folder, descriptor)) {
        close(descriptor);
        descriptor = -EMLINK;
    }
    if (folder != directory) close(folder);
    return descriptor;
}

/* What follows the folder in the path; NULL: the path is not below it. */
static const char *find_below(const char *folder, const char *path) {
    size_t length = strlen(folder);
    while (length && folder[length - 1] == '/') length--; /* the root alone ends so */
    return strncmp(folder, path, length) == 0 && path[length] == '/' ? path + length + 1 : NULL;
}

/* Where the links lead is asked first, and what is there is opened below one of the folders without following any: what
 * changes in between cannot lead elsewhere. */
static int open_linked(const uir_folders *folders, const uir_folder *folder, const char *name) {
    char path[PATH_MAX], real[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", folder->real ? folder->real : folder->path, name);
    if (length < 0 || (size_t)length >= sizeof path) return -ENAMETOOLONG;
    if (!realpath(path, real)) return errno == ENOENT ? -ENOLINK : -errno;
    for (uint32_t i = 0; i < folders->count; i++) {
        const char *below = folders->rows[i].real ? find_below(folders->rows[i].real, real) : NULL;
        if (!below) continue;
        int descriptor = open_confined(folders->rows[i].descriptor, below);
        if (descriptor >= 0) return descriptor;
    }
    return -EXDEV;
}

int uir_folders_open_file(const uir_folders *folders, const char *name) {
    int failure = -ENOENT;
    for (uint32_t i = 0; i < folders->count; i++) {
        int descriptor = open_confined(folders->rows[i].descriptor, name);
        if (descriptor == -ELOOP) descriptor = open_linked(folders, &folders->rows[i], name);
        if (descriptor >= 0) return descriptor;
        if (failure == -ENOENT) failure = descriptor; /* what more than absence is in the way is told */
    }
    return failure;
}
