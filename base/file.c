#include "base/file.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const char *uir_file_refuse_place(const char *path) {
    char folder[4096];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    struct stat about;
    if (length >= sizeof folder) return NULL; /* whoever makes the file says so */
    if (length) memcpy(folder, path, length);
    folder[length] = 0;
    const char *place = length ? folder : slash ? "/" : ".";
    if (stat(place, &about) != 0) return errno == ENOENT ? "no such folder" : uir_file_explain(errno);
    if (!S_ISDIR(about.st_mode)) return "a part of the path is not a folder";
    return access(place, W_OK | X_OK) == 0 ? NULL : uir_file_explain(errno);
}

bool uir_file_write_all(int descriptor, const void *data, size_t size) {
    const char *bytes = data;
    while (size) {
        ssize_t written = write(descriptor, bytes, size);
        if (written < 0 && errno == EINTR) continue;
        if (written == 0) errno = EIO;
        if (written <= 0) return false;
        bytes += written;
        size -= (size_t)written;
    }
    return true;
}

const char *uir_file_explain(int number) {
    switch (number) {
    case ENOENT:
        return "no such file";
    case ENOTDIR:
        return "a part of the path is not a folder";
    case EACCES:
    case EPERM:
        return "permission denied";
    case EISDIR:
        return "it is a folder";
    case ELOOP:
        return "its symbolic links form a loop";
    case ENOLINK:
        return "it is or goes through a symbolic link to a missing file";
    case EXDEV:
        return "it is or goes through a symbolic link that leads out of the model's folder";
    case EMLINK:
        return "it has hard links, and its folder belongs to another user, who may have linked it to a file of yours";
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

/* Nobody but the caller, and who may do anything, can change it. */
static bool is_private(const struct stat *about) {
    return about->st_uid == geteuid() && !(about->st_mode & (S_IWGRP | S_IWOTH));
}

static uir_status copy_bytes(int descriptor, uint64_t size, char *bytes, uir_budget *budget, const char **out_why) {
    enum { PART = 16 << 20 };
    uint64_t done = 0;
    while (done < size) {
        size_t part = size - done > PART ? PART : (size_t)(size - done);
        if (uir_budget_is_over(budget)) return UIR_STATUS_CANCELLED;
        ssize_t got = pread(descriptor, bytes + done, part, (off_t)done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            *out_why = got ? uir_file_explain(errno) : "it became shorter while it was read";
            return UIR_STATUS_IO_FAILED;
        }
        done += (uint64_t)got;
    }
    return UIR_STATUS_OK;
}

static uir_status copy_file(int descriptor, const uir_allocator *allocator, uir_file *file, const char **out_why) {
    char *bytes = uir_allocate(allocator, (size_t)file->size);
    *out_why = "out of memory";
    if (!bytes) return UIR_STATUS_OUT_OF_MEMORY;
    uir_status status = copy_bytes(descriptor, file->size, bytes, uir_budget_of(allocator), out_why);
    file->data = bytes;
    if (status != UIR_STATUS_OK) uir_release(allocator, bytes, (size_t)file->size);
    return status;
}

uir_status uir_file_take(int descriptor, bool copy, const uir_allocator *allocator, uir_file *out_file,
                         const char **out_why) {
    struct stat about;
    *out_file = (uir_file){.data = ""};
    if (fstat(descriptor, &about) != 0) {
        *out_why = uir_file_explain(errno);
        return UIR_STATUS_IO_FAILED;
    }
    *out_why = "it is not a regular file";
    if (!S_ISREG(about.st_mode)) return UIR_STATUS_BAD_FILE;
    uir_file file = {.data = "",
                     .size = (uint64_t)about.st_size,
                     .device = (uint64_t)about.st_dev,
                     .inode = (uint64_t)about.st_ino,
                     .modified_s = about.st_mtim.tv_sec,
                     .modified_ns = about.st_mtim.tv_nsec};
    *out_why = "out of memory";
    if (file.size > SIZE_MAX / 2) return UIR_STATUS_OUT_OF_MEMORY;
    *out_why = "it has more bytes than may be read";
    if (!uir_budget_add_file(uir_budget_of(allocator), file.size)) return UIR_STATUS_LIMIT;
    *out_why = "out of memory";
    if (file.size && !copy && is_private(&about)) {
        if (!uir_budget_map(uir_budget_of(allocator), file.size)) return UIR_STATUS_OUT_OF_MEMORY;
        void *map = mmap(NULL, (size_t)file.size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        file.mapped = map != MAP_FAILED; /* a file system may have no maps */
        if (file.mapped)
            file.data = map;
        else
            uir_budget_unmap(uir_budget_of(allocator), file.size);
    }
    if (file.size && !file.mapped) UIR_TRY(copy_file(descriptor, allocator, &file, out_why));
    *out_file = file;
    return UIR_STATUS_OK;
}

void uir_file_release(uir_file *file, const uir_allocator *allocator) {
    void *data = (void *)(uintptr_t)file->data;
    if (file->size && file->mapped) {
        munmap(data, (size_t)file->size);
        uir_budget_unmap(uir_budget_of(allocator), file->size);
    }
    if (file->size && !file->mapped) uir_release(allocator, data, (size_t)file->size);
    *file = (uir_file){.data = ""};
}

bool uir_file_is_unchanged(const uir_file *file, int descriptor) {
    struct stat now;
    if (!file->mapped) return true;
    if (fstat(descriptor, &now) != 0) return false;
    if ((uint64_t)now.st_dev != file->device || (uint64_t)now.st_ino != file->inode)
        return true; /* another one's name */
    return (uint64_t)now.st_size == file->size && now.st_mtim.tv_sec == file->modified_s &&
           now.st_mtim.tv_nsec == file->modified_ns;
}
