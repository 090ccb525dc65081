#include "compile/identity.h"

#include "cache/digest.h"
#include "runtime/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SETTLED_S = 2 }; /* coarser than the times of any file system */

uir_status uir_identity_init(uir_identity *identity, const uir_allocator *allocator, const char *path,
                             const char *external_data) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *identity = (uir_identity){.allocator = *allocator, .path = path, .began_s = now.tv_sec};
    uir_arena_init(&identity->arena, &identity->allocator);
    uir_folders_source source = {.external_data = external_data, .model = path};
    UIR_TRY(uir_folders_open(&identity->folders, &source, &identity->arena));
    return identity->folders.count ? UIR_STATUS_OK : UIR_STATUS_NOT_FOUND;
}

void uir_identity_deinit(uir_identity *identity) {
    uir_folders_close(&identity->folders);
    uir_arena_deinit(&identity->arena);
}

uir_status uir_identity_note_read(uir_identity *identity, const char *name, uint64_t device, uint64_t inode) {
    uir_identity_read read = {.device = device, .inode = inode};
    UIR_TRY_ALLOCATE(read.name, uir_arena_copy_string(&identity->arena, name, strlen(name)));
    return uir_vector_push(&identity->arena, &identity->reads, read);
}

/* Whether the bytes that were read under the name, if any, were this file's. */
static bool is_as_read(const uir_identity *identity, const char *name, const struct stat *about) {
    for (uint32_t i = identity->reads.count; i-- > 0;) {
        const uir_identity_read *read = &identity->reads.data[i];
        if (strcmp(read->name, name) == 0)
            return read->device == (uint64_t)about->st_dev && read->inode == (uint64_t)about->st_ino;
    }
    return true;
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

uir_status uir_identity_stamp(uir_identity *identity, const char *name, uir_text *text) {
    struct stat about;
    int fd = name ? uir_folders_open_file(&identity->folders, name) : -1;
    if (name && (fd < 0 || strchr(name, '\n'))) {
        if (fd >= 0) close(fd);
        return UIR_STATUS_NOT_FOUND;
    }
    int failed = name ? fstat(fd, &about) : stat(identity->path, &about);
    if (name) close(fd);
    if (failed || !S_ISREG(about.st_mode) || !is_settled(identity, &about) ||
        (name && !is_as_read(identity, name, &about)))
        return UIR_STATUS_NOT_FOUND;
    append_stamp(&about, name ? name : "", text);
    return uir_text_status(text);
}

static uir_digest_options how_to_hash(const uir_identity *identity) {
    return (uir_digest_options){.threads = uir_core_count(), .cancel = identity->cancel};
}

static uir_status append_content(const uir_digest *digest, uint64_t size, const char *name, uir_text *text) {
    char digits[UIR_DIGEST_TEXT_SIZE];
    uir_digest_print(digest, digits);
    uir_text_append_format(text, "%llx %s %s\n", (unsigned long long)size, digits, name ? name : "");
    return uir_text_status(text);
}

uir_status uir_identity_content_of(uir_identity *identity, const char *name, const void *data, uint64_t size,
                                   uir_text *text) {
    uir_digest digest;
    uir_digest_options how = how_to_hash(identity);
    if (name && strchr(name, '\n')) return UIR_STATUS_NOT_FOUND;
    UIR_TRY(uir_digest_of_memory(data, size, &how, &identity->allocator, &digest));
    return append_content(&digest, size, name, text);
}

uir_status uir_identity_content(uir_identity *identity, const char *name, uir_text *text) {
    struct stat about;
    uir_digest digest;
    uir_digest_options how = how_to_hash(identity);
    uir_status status = UIR_STATUS_NOT_FOUND;
    if (name && strchr(name, '\n')) return status;
    int fd = name ? uir_folders_open_file(&identity->folders, name)
                  : open(identity->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return status;
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0 &&
        (uint64_t)about.st_size <= SIZE_MAX / 2)
        status = uir_digest_of_file(fd, (uint64_t)about.st_size, &how, &identity->allocator, &digest);
    close(fd);
    if (status == UIR_STATUS_IO_FAILED) return UIR_STATUS_NOT_FOUND; /* cut short meanwhile */
    if (status == UIR_STATUS_OK) status = append_content(&digest, (uint64_t)about.st_size, name, text);
    if (status == UIR_STATUS_OK && name)
        status = uir_identity_note_read(identity, name, (uint64_t)about.st_dev, (uint64_t)about.st_ino);
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

bool uir_identity_holds(uir_identity *identity, uir_identity_describe *describe, const char *lines, size_t size) {
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
