#include "api/identity.h"
#include "frontend/storage.h"

#include "uir/uir.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

enum { SETTLED_S = 2 }; /* coarser than the times of any file system */

uir_status uir_identity_init(uir_identity *identity, const uir_allocator *allocator, const char *path) {
    struct timespec now;
    uir_text folder;
    size_t length;
    const char *named = uir_storage_folder_of(path, &length);
    clock_gettime(CLOCK_REALTIME, &now);
    *identity = (uir_identity){.allocator = *allocator, .path = path, .folder = -1, .began_s = now.tv_sec};
    uir_text_init(&folder, allocator);
    uir_text_append(&folder, named, length);
    uir_status status = uir_text_status(&folder);
    if (status == UIR_STATUS_OK) {
        identity->folder = open(folder.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (identity->folder < 0) status = UIR_STATUS_NOT_FOUND;
    }
    uir_text_deinit(&folder);
    return status;
}

void uir_identity_deinit(uir_identity *identity) {
    if (identity->folder >= 0) close(identity->folder);
    identity->folder = -1;
}

/* ---- files ---- */
static bool is_settled(const uir_identity *identity, const struct stat *about) {
    return about->st_mtim.tv_sec + SETTLED_S <= identity->began_s &&
           about->st_ctim.tv_sec + SETTLED_S <= identity->began_s;
}

static void append_stamp(const struct stat *about, const char *name, uir_text *text) {
    uir_text_append_format(text, "%llx %llx %llx %llx.%lx %llx.%lx %s\n", (unsigned long long)about->st_dev,
                           (unsigned long long)about->st_ino, (unsigned long long)about->st_size,
                           (unsigned long long)about->st_mtim.tv_sec, (unsigned long)about->st_mtim.tv_nsec,
                           (unsigned long long)about->st_ctim.tv_sec, (unsigned long)about->st_ctim.tv_nsec, name);
}

uir_status uir_identity_stamp(const uir_identity *identity, const char *name, uir_text *text) {
    struct stat about;
    int failed = name ? fstatat(identity->folder, name, &about, AT_SYMLINK_NOFOLLOW) : stat(identity->path, &about);
    if (failed || !S_ISREG(about.st_mode) || !is_settled(identity, &about) || (name && strchr(name, '\n')))
        return UIR_STATUS_NOT_FOUND;
    append_stamp(&about, name ? name : "", text);
    return uir_text_status(text);
}

uir_status uir_identity_content_of(const char *name, const void *data, uint64_t size, uir_text *text) {
    if (name && strchr(name, '\n')) return UIR_STATUS_NOT_FOUND;
    XXH128_hash_t hash = XXH3_128bits(size ? data : "", (size_t)size);
    uir_text_append_format(text, "%llx %016llx%016llx %s\n", (unsigned long long)size, (unsigned long long)hash.high64,
                           (unsigned long long)hash.low64, name ? name : "");
    return uir_text_status(text);
}

uir_status uir_identity_content(const uir_identity *identity, const char *name, uir_text *text) {
    struct stat about;
    uir_status status = UIR_STATUS_NOT_FOUND;
    int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    int fd = name ? openat(identity->folder, name, flags | O_NOFOLLOW) : open(identity->path, flags);
    if (fd < 0) return status;
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0 &&
        (uint64_t)about.st_size <= SIZE_MAX / 2) {
        void *map = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map != MAP_FAILED) {
            status = uir_identity_content_of(name, map, (uint64_t)about.st_size, text);
            munmap(map, (size_t)about.st_size);
        }
    }
    close(fd);
    return status;
}

/* ---- lines ---- */
/* The name is what follows the line's last field; fields have no spaces, names may. */
static const char *skip_fields(const char *line, const char *end, int count) {
    for (; count > 0 && line < end; count--) {
        const char *space = memchr(line, ' ', (size_t)(end - line));
        line = space ? space + 1 : end;
    }
    return line;
}

bool uir_identity_holds(const uir_identity *identity, uir_identity_describe *describe, const char *lines, size_t size) {
    const char *at = lines, *end = lines + size;
    uir_text now, name;
    bool holds = true;
    uir_text_init(&now, &identity->allocator);
    uir_text_init(&name, &identity->allocator);
    while (at < end && holds) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        holds = stop != NULL;
        if (!holds) break;
        const char *from = skip_fields(at, stop, describe == uir_identity_stamp ? 5 : 2);
        now.length = name.length = 0;
        uir_text_append(&name, from, (size_t)(stop - from));
        holds = uir_text_status(&name) == UIR_STATUS_OK && name.length &&
                describe(identity, name.data, &now) == UIR_STATUS_OK && now.length == (size_t)(stop + 1 - at) &&
                memcmp(now.data, at, now.length) == 0;
        at = stop + 1;
    }
    uir_text_deinit(&name);
    uir_text_deinit(&now);
    return holds;
}

/* ---- the build ---- */
typedef struct search {
    uintptr_t address;
    const char *found; /* "" for the program itself */
} search;

static int look_at(struct dl_phdr_info *info, size_t size, void *user) {
    search *s = user;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t from = (uintptr_t)info->dlpi_addr + (uintptr_t)info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type != PT_LOAD || s->address < from ||
            s->address - from >= info->dlpi_phdr[i].p_memsz)
            continue;
        s->found = info->dlpi_name ? info->dlpi_name : "";
        return 1;
    }
    return 0;
}

uir_status uir_identity_build(uir_text *text) {
    struct stat about;
    search s = {(uintptr_t)look_at, NULL};
    dl_iterate_phdr(look_at, &s);
    if (!s.found || stat(*s.found ? s.found : "/proc/self/exe", &about) != 0) return UIR_STATUS_NOT_FOUND;
    uir_text_append_format(text, "uir %s ", uir_version());
    append_stamp(&about, "", text);
    return uir_text_status(text);
}
