#include "frontend/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define MAX_LOCATION 4096
#define MAX_FILES    4096 /* of one model; each costs the process a mapping */

typedef struct mapping {
    struct mapping *next;
    const char *location; /* of a file below the folders; NULL: `path` is what it is */
    size_t length;        /* of the location */
    const char *path;     /* as the caller named it */
    uir_file file;
    bool known, is_short; /* it was tried; a tensor was to lie past its end */
    uir_status status;    /* of the try */
} mapping;

struct uir_storage {
    uir_allocator allocator;
    uir_arena arena;
    bool copy;
    mapping *first;
    uint32_t count;
    uir_folders folders;
};

uir_status uir_storage_create(const uir_allocator *allocator, bool copy, uir_storage **out_storage) {
    uir_storage *storage;
    UIR_TRY_ALLOCATE(storage, uir_allocate_zeroed(allocator, sizeof *storage));
    storage->allocator = *allocator;
    storage->copy = copy;
    uir_arena_init(&storage->arena, &storage->allocator);
    *out_storage = storage;
    return UIR_STATUS_OK;
}

void uir_storage_destroy(void *pointer) {
    uir_storage *storage = pointer;
    if (!storage) return;
    for (mapping *mapping = storage->first; mapping; mapping = mapping->next) {
        uir_file_release(&mapping->file, &storage->allocator);
    }
    uir_folders_close(&storage->folders);
    uir_arena_deinit(&storage->arena);
    uir_allocator allocator = storage->allocator;
    uir_release(&allocator, storage, sizeof *storage);
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
    case EMLINK:
    case EXDEV:
    case ENAMETOOLONG:
        return UIR_STATUS_BAD_FILE;
    default:
        return UIR_STATUS_IO_FAILED;
    }
}

/* Takes the bytes of the regular file behind `descriptor` and closes it. */
static uir_status take_file(uir_storage *storage, uir_diagnostics *diagnostics, const uir_location *place,
                            int descriptor, const char *owner, const char *name, uir_file *out_file) {
    const char *why;
    uir_status status = uir_file_take(descriptor, storage->copy, &storage->allocator, out_file, &why);
    close(descriptor);
    if (status == UIR_STATUS_OK || status == UIR_STATUS_OUT_OF_MEMORY) return status;
    return uir_error(diagnostics, status, place, "%scannot read '%s': %s", owner, name, why);
}

static void add(uir_storage *storage, mapping *mapping) {
    mapping->next = storage->first;
    storage->first = mapping;
    storage->count++;
}

uir_status uir_storage_map_path(uir_storage *storage, uir_diagnostics *diagnostics, const char *path,
                                uir_file *out_file) {
    uir_location place = {.file = path};
    /* Not blocking: opening a pipe would otherwise wait for a writer. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) {
        int number = errno;
        return uir_error(diagnostics, errno_status(number), &place, "cannot open the file: %s",
                         uir_file_explain(number));
    }
    mapping *file = uir_arena_allocate(&storage->arena, sizeof *file);
    char *copy = uir_arena_copy_string(&storage->arena, path, strlen(path));
    if (!file || !copy) {
        close(descriptor);
        return UIR_STATUS_OUT_OF_MEMORY;
    }
    *file = (mapping){.path = copy, .known = true};
    UIR_TRY(take_file(storage, diagnostics, &place, descriptor, "", path, &file->file));
    add(storage, file);
    *out_file = file->file;
    return UIR_STATUS_OK;
}

uir_status uir_storage_open_folders(uir_storage *storage, uir_diagnostics *diagnostics,
                                    const uir_folders_source *source) {
    uir_status status = uir_folders_open(&storage->folders, source, &storage->arena);
    if (status != UIR_STATUS_NOT_FOUND) return status; /* others are reported by whatever wants something in them */
    return uir_error_hint(diagnostics, status, &(uir_location){.file = source->external_data},
                          "name the folder that holds the model's data files",
                          "the folder for external data cannot be opened: %s", uir_file_explain(errno));
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
        "put the file, a regular one, beside the model or its real path, or name its folder with --external-data "
        "(`external_data`)";
    const char *name = file->location;
    if (file->length == 0 || file->length > MAX_LOCATION || strlen(name) != file->length) {
        return uir_error_hint(diagnostics, UIR_STATUS_BAD_FILE, place, hint,
                              "%sthe location of external data is empty, too long or holds a zero byte", owner);
    }
    if (storage->count == MAX_FILES) {
        return uir_error(diagnostics, UIR_STATUS_LIMIT, place, "%sexternal data is in more than %d files", owner,
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
                              "%sexternal data '%s' is required, but no folder is given", owner, name);
    }
    int descriptor = uir_folders_open_file(&storage->folders, name);
    if (descriptor < 0) {
        return uir_error_hint(diagnostics, errno_status(-descriptor), place, hint,
                              "%scannot open external data '%s': %s", owner, name, uir_file_explain(-descriptor));
    }
    return take_file(storage, diagnostics, place, descriptor, owner, name, &file->file);
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
    if (offset <= file->file.size && length <= file->file.size - offset) {
        *out_data = (const uint8_t *)file->file.data + offset;
        return UIR_STATUS_OK;
    }
    if (file->is_short) return UIR_STATUS_BAD_FILE;
    file->is_short = true;
    return uir_error_hint(diagnostics, UIR_STATUS_BAD_FILE, place,
                          "check that the file was copied whole: other tensors may also be past its end",
                          "%sbytes %llu to %llu of external data '%s', which has %llu bytes", owner,
                          (unsigned long long)offset, (unsigned long long)offset + (unsigned long long)length,
                          file->location, (unsigned long long)file->file.size);
}

bool uir_storage_get_file(const uir_storage *storage, uint32_t index, const char **out_location, uir_file *out_file) {
    for (const mapping *mapping = storage->first; mapping; mapping = mapping->next) {
        if (!mapping->location || mapping->status != UIR_STATUS_OK || index-- > 0) continue;
        *out_location = mapping->location;
        *out_file = mapping->file;
        return true;
    }
    return false;
}

uir_status uir_storage_check(const uir_storage *storage, uir_diagnostics *diagnostics) {
    for (const mapping *mapping = storage->first; mapping; mapping = mapping->next) {
        if (!mapping->file.mapped) continue;
        int descriptor = mapping->location ? uir_folders_open_file(&storage->folders, mapping->location)
                                           : open(mapping->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (descriptor < 0) continue; /* the name is gone, and nobody writes by it */
        bool unchanged = uir_file_is_unchanged(&mapping->file, descriptor);
        close(descriptor);
        if (!unchanged)
            return uir_error_hint(diagnostics, UIR_STATUS_BAD_FILE,
                                  &(uir_location){.file = mapping->location ? mapping->location : mapping->path},
                                  "load the model again, with --no-map (`no_map`) if its files keep changing",
                                  "the file has changed since the model was loaded");
    }
    return UIR_STATUS_OK;
}
