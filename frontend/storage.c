#include "frontend/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_LOCATION 4096
#define MAX_FILES    4096 /* of one model; each costs the process a mapping */

typedef struct mapping {
    struct mapping *next;
    const char *location; /* NULL: the model's own file */
    size_t length;        /* of the location */
    uir_mapped mapped;
    bool known, is_short; /* it was tried; a tensor was to lie past its end */
    uir_status status;    /* of the try */
} mapping;

struct uir_storage {
    uir_allocator allocator;
    uir_arena arena;
    mapping *first;
    uint32_t count;
    uir_folders folders;
};

uir_status uir_storage_create(const uir_allocator *allocator, uir_storage **out_storage) {
    uir_storage *storage;
    UIR_TRY_ALLOCATE(storage, uir_allocate_zeroed(allocator, sizeof *storage));
    storage->allocator = *allocator;
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
    uir_folders_close(&storage->folders);
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
        return "its symbolic links lead in a circle";
    case ENOLINK:
        return "it is or goes through a symbolic link to what is not there";
    case EXDEV:
        return "it is or goes through a symbolic link that leads out of the model's folder";
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
    case ENOLINK:
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
static uir_status map_descriptor(uir_diagnostics *diagnostics, const uir_location *place, int descriptor,
                                 const char *owner, const char *name, uir_mapped *out_mapped) {
    struct stat info = {0};
    uir_status status = UIR_STATUS_OK;
    uir_mapped mapped = {.data = (const uint8_t *)""};
    if (fstat(descriptor, &info) != 0) {
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
            mapped.data = data;
            mapped.size = (uint64_t)info.st_size;
        }
    }
    mapped.device = (uint64_t)info.st_dev;
    mapped.inode = (uint64_t)info.st_ino;
    close(descriptor);
    if (status == UIR_STATUS_OK) *out_mapped = mapped;
    return status;
}

static void add(uir_storage *storage, mapping *mapping) {
    mapping->next = storage->first;
    storage->first = mapping;
    storage->count++;
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
    mapping *file = uir_arena_allocate(&storage->arena, sizeof *file);
    if (!file) {
        close(descriptor);
        return UIR_STATUS_OUT_OF_MEMORY;
    }
    *file = (mapping){.known = true};
    UIR_TRY(map_descriptor(diagnostics, &place, descriptor, "", path, &file->mapped));
    add(storage, file);
    *out_mapped = file->mapped;
    return UIR_STATUS_OK;
}

uir_status uir_storage_open_folders(uir_storage *storage, uir_diagnostics *diagnostics,
                                    const uir_folders_source *source) {
    uir_status status = uir_folders_open(&storage->folders, source, &storage->arena);
    if (status != UIR_STATUS_NOT_FOUND) return status; /* others are reported by whatever wants something in them */
    return uir_error_hint(diagnostics, status, &(uir_location){.file = source->external_data},
                          "name the folder that holds the model's data files",
                          "the folder for external data cannot be opened: %s", errno_text(errno));
}

/* The file's record, made when it is first asked for; NULL: without memory. */
static mapping *find_file(uir_storage *storage, const char *location, size_t length) {
    for (mapping *mapping = storage->first; mapping; mapping = mapping->next) {
        if (mapping->location && mapping->length == length && memcmp(mapping->location, location, length) == 0)
            return mapping;
    }
    mapping *made = uir_arena_allocate(&storage->arena, sizeof *made);
    char *copy = uir_arena_copy_string(&storage->arena, location, length);
    if (!made || !copy) return NULL;
    *made = (mapping){.location = copy, .length = length};
    return made;
}

static uir_status open_file(uir_storage *storage, uir_diagnostics *diagnostics, const uir_location *place,
                            const char *owner, mapping *file) {
    static const char hint[] =
        "external data is a regular file in the folder of the model's path or of its real path, or below the folder "
        "given for external data";
    const char *name = file->location;
    if (file->length == 0 || file->length > MAX_LOCATION || strlen(name) != file->length) {
        return uir_error_hint(diagnostics, UIR_STATUS_BAD_FILE, place, hint,
                              "%sthe location of external data is empty, too long or holds a zero byte", owner);
    }
    if (storage->count == MAX_FILES) {
        return uir_error(diagnostics, UIR_STATUS_LIMIT, place, "%sexternal data in more than %d files", owner,
                         MAX_FILES);
    }
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
    if (storage->folders.count == 0) {
        return uir_error_hint(diagnostics, UIR_STATUS_NOT_FOUND, place,
                              "load the model from its file, or name the folder that holds its data",
                              "%sexternal data '%s' is needed, and there is no folder to look in", owner, name);
    }
    int descriptor = uir_folders_open_file(&storage->folders, name);
    if (descriptor < 0) {
        return uir_error_hint(diagnostics, errno_status(-descriptor), place, hint,
                              "%scannot open external data '%s': %s", owner, name, errno_text(-descriptor));
    }
    return map_descriptor(diagnostics, place, descriptor, owner, name, &file->mapped);
}

uir_status uir_storage_map_below(uir_storage *storage, uir_diagnostics *diagnostics, const uir_location *place,
                                 const char *owner, const char *location, size_t location_length, uint64_t offset,
                                 uint64_t length, const uint8_t **out_data) {
    if (storage->count > MAX_FILES) return UIR_STATUS_LIMIT; /* which was said */
    mapping *file = find_file(storage, location, location_length);
    if (!file) return UIR_STATUS_OUT_OF_MEMORY;
    if (!file->known) {
        file->status = open_file(storage, diagnostics, place, owner, file);
        if (file->status == UIR_STATUS_OUT_OF_MEMORY) return file->status;
        file->known = true;
        add(storage, file);
    }
    if (file->status != UIR_STATUS_OK) return file->status; /* said where it was first met */
    if (offset <= file->mapped.size && length <= file->mapped.size - offset) {
        *out_data = file->mapped.data + offset;
        return UIR_STATUS_OK;
    }
    if (file->is_short) return UIR_STATUS_BAD_FILE;
    file->is_short = true;
    return uir_error_hint(diagnostics, UIR_STATUS_BAD_FILE, place,
                          "the file is shorter than the model says: was it copied whole? Other tensors may lie past "
                          "its end as well",
                          "%sbytes %llu to %llu of external data '%s', which has %llu bytes", owner,
                          (unsigned long long)offset, (unsigned long long)offset + (unsigned long long)length,
                          file->location, (unsigned long long)file->mapped.size);
}

bool uir_storage_get_file(const uir_storage *storage, uint32_t index, const char **out_location,
                          uir_mapped *out_mapped) {
    for (const mapping *mapping = storage->first; mapping; mapping = mapping->next) {
        if (!mapping->location || mapping->status != UIR_STATUS_OK || index-- > 0) continue;
        *out_location = mapping->location;
        *out_mapped = mapping->mapped;
        return true;
    }
    return false;
}
