#include "frontend/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#if defined(SYS_openat2)
#include <linux/openat2.h>
#define UIR_HAVE_OPENAT2 1
#endif
#endif

#define MAX_LOCATION 4096
#define MAX_FILES    4096 /* of one model; each costs the process a mapping */

typedef struct mapping {
    struct mapping *next;
    const char *location; /* NULL: the model's own file */
    uir_mapped mapped;
} mapping;

struct uir_storage {
    uir_allocator allocator;
    uir_arena arena;
    mapping *first;
    uint32_t count;
    int folder; /* descriptor or -1 */
};

uir_status uir_storage_create(const uir_allocator *allocator, uir_storage **out_storage) {
    uir_storage *storage;
    UIR_TRY_ALLOCATE(storage, uir_allocate_zeroed(allocator, sizeof *storage));
    storage->allocator = *allocator;
    storage->folder = -1;
    uir_arena_init(&storage->arena, &storage->allocator);
    *out_storage = storage;
    return UIR_STATUS_OK;
}

void uir_storage_destroy(void *pointer) {
    uir_storage *storage = pointer;
    if (!storage) return;
    for (mapping *mapping = storage->first; mapping; mapping = mapping->next) {
        if (mapping->mapped.size) munmap((void *)(uintptr_t)mapping->mapped.data, (size_t)mapping->mapped.size);
    }
    if (storage->folder >= 0) close(storage->folder);
    uir_arena_deinit(&storage->arena);
    uir_allocator allocator = storage->allocator;
    uir_release(&allocator, storage, sizeof *storage);
}

/* A message for an errno value, without strerror's locale and static buffer. */
static const char *errno_text(int number) {
    switch (number) {
    case ENOENT:
        return "there is no such file";
    case ENOTDIR:
        return "a part of the path is not a folder";
    case EACCES:
    case EPERM:
        return "permission denied";
    case EISDIR:
        return "it is a folder";
    case ELOOP:
        return "it is or goes through a symbolic link";
    case EXDEV:
        return "it leads out of the folder";
    case EMFILE:
    case ENFILE:
        return "too many files are open";
    case ENAMETOOLONG:
        return "the path is too long";
    case ENOMEM:
        return "out of memory";
    default:
        return "the system refused";
    }
}

static uir_status errno_status(int number) {
    switch (number) {
    case ENOENT:
    case ENOTDIR:
        return UIR_STATUS_NOT_FOUND;
    case ENOMEM:
        return UIR_STATUS_OUT_OF_MEMORY;
    case EISDIR:
    case ELOOP:
    case EXDEV:
    case ENAMETOOLONG:
        return UIR_STATUS_BAD_FILE;
    default:
        return UIR_STATUS_IO_FAILED;
    }
}

/* Maps the regular file behind `descriptor` and closes it. */
static uir_status map_descriptor(uir_storage *storage, uir_diagnostics *diagnostics, const uir_location *place,
                                 int descriptor, const char *owner, const char *name, const char *location,
                                 uir_mapped *out_mapped) {
    struct stat info;
    uir_status status = UIR_STATUS_OK;
    uir_mapped mapped = {(const uint8_t *)"", 0};
    mapping *mapping = uir_arena_allocate(&storage->arena, sizeof *mapping);
    if (!mapping) {
        status = UIR_STATUS_OUT_OF_MEMORY;
    } else if (fstat(descriptor, &info) != 0) {
        status = uir_error(diagnostics, UIR_STATUS_IO_FAILED, place, "%scannot read '%s': %s", owner, name,
                           errno_text(errno));
    } else if (!S_ISREG(info.st_mode)) {
        status = uir_error(diagnostics, UIR_STATUS_BAD_FILE, place, "%s'%s' is not a regular file", owner, name);
    } else if (info.st_size > 0) {
        void *data = (uint64_t)info.st_size > SIZE_MAX
                         ? MAP_FAILED
                         : mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (data == MAP_FAILED) {
            status = uir_error(diagnostics, UIR_STATUS_IO_FAILED, place, "%scannot map '%s': %s", owner, name,
                               errno_text(errno));
        } else {
            mapped = (uir_mapped){data, (uint64_t)info.st_size};
        }
    }
    close(descriptor);
    if (status != UIR_STATUS_OK) return status;
    mapping->location = location;
    mapping->mapped = mapped;
    mapping->next = storage->first;
    storage->first = mapping;
    storage->count++;
    *out_mapped = mapped;
    return UIR_STATUS_OK;
}

uir_status uir_storage_map_path(uir_storage *storage, uir_diagnostics *diagnostics, const char *path,
                                uir_mapped *out_mapped) {
    uir_location place = {.file = path};
    /* Not blocking: opening a pipe would otherwise wait for a writer. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) {
        int number = errno;
        return uir_error(diagnostics, errno_status(number), &place, "cannot open the file: %s", errno_text(number));
    }
    return map_descriptor(storage, diagnostics, &place, descriptor, "", path, NULL, out_mapped);
}

const char *uir_storage_folder_of(const char *path, size_t *out_length) {
    const char *slash = strrchr(path, '/');
    *out_length = slash && slash != path ? (size_t)(slash - path) : 1;
    return slash ? path : ".";
}

uir_status uir_storage_open_folder(uir_storage *storage, const char *folder) {
    if (!folder || !*folder) return UIR_STATUS_OK;
    storage->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return UIR_STATUS_OK; /* a folder that cannot be opened is reported by whatever wants something in it */
}

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
                int flags = *rest ? O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
                                  : O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
                result = openat(at, component, flags);
                if (result < 0) result = -errno;
            }
        }
        if (at != directory) close(at);
        if (result < 0 || !*rest) return result;
        at = result;
        path = rest;
    }
}

uir_status uir_storage_map_below(uir_storage *storage, uir_diagnostics *diagnostics, const uir_location *place,
                                 const char *owner, const char *location, size_t length, uir_mapped *out_mapped) {
    static const char hint[] = "external data must be a regular file inside the model's folder";
    if (length == 0 || length > MAX_LOCATION || memchr(location, 0, length)) {
        return uir_error_hint(diagnostics, UIR_STATUS_BAD_FILE, place, hint,
                              "%sthe location of external data is empty, too long or holds a zero byte", owner);
    }
    for (const mapping *mapping = storage->first; mapping; mapping = mapping->next) {
        if (mapping->location && strlen(mapping->location) == length &&
            memcmp(mapping->location, location, length) == 0) {
            *out_mapped = mapping->mapped;
            return UIR_STATUS_OK;
        }
    }
    if (storage->count >= MAX_FILES) {
        return uir_error(diagnostics, UIR_STATUS_LIMIT, place, "%sexternal data in more than %d files", owner,
                         MAX_FILES);
    }
    char *name;
    UIR_TRY_ALLOCATE(name, uir_arena_copy_string(&storage->arena, location, length));
    if (name[0] == '/') {
        return uir_error_hint(diagnostics, UIR_STATUS_BAD_FILE, place, hint, "%sexternal data '%s' is an absolute path",
                              owner, name);
    }
    for (const char *at = name; *at; at += strcspn(at, "/"), at += strspn(at, "/")) {
        if (strcspn(at, "/") == 2 && memcmp(at, "..", 2) == 0) {
            return uir_error_hint(diagnostics, UIR_STATUS_BAD_FILE, place, hint,
                                  "%sexternal data '%s' leads out of the model's folder", owner, name);
        }
    }
    if (storage->folder < 0) {
        return uir_error_hint(diagnostics, UIR_STATUS_NOT_FOUND, place,
                              "load the model from its file, or name the folder that holds its data",
                              "%sexternal data '%s' is needed, and there is no folder to look in", owner, name);
    }
    int descriptor = uir_confined_open_kernel(storage->folder, name);
    /* An old kernel, or a sandbox that knows no openat2. */
    if (descriptor == -ENOSYS || descriptor == -EPERM) descriptor = uir_confined_open_walk(storage->folder, name);
    if (descriptor < 0) {
        return uir_error_hint(diagnostics, errno_status(-descriptor), place, hint,
                              "%scannot open external data '%s': %s", owner, name, errno_text(-descriptor));
    }
    return map_descriptor(storage, diagnostics, place, descriptor, owner, name, name, out_mapped);
}

bool uir_storage_get_file(const uir_storage *storage, uint32_t index, const char **out_location,
                          uir_mapped *out_mapped) {
    for (const mapping *mapping = storage->first; mapping; mapping = mapping->next) {
        if (!mapping->location || index-- > 0) continue;
        *out_location = mapping->location;
        *out_mapped = mapping->mapped;
        return true;
    }
    return false;
}
