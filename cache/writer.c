/* Entries as they are written: to a temporary file that nobody else has, renamed when it is whole. */
#include "cache/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

enum { BUFFER_SIZE = 1 << 16 };

struct uir_cache_writer {
    uir_cache *cache;
    uir_cache_key key;
    uir_diagnostics *diagnostics;
    XXH3_state_t hash; /* of what follows the first page */
    int fd;
    int error; /* of the first write that went wrong */
    char temporary[UIR_CACHE_NAME_SIZE];
    uint64_t size;              /* appended */
    uint64_t written;           /* of it, in the file, the first page counted */
    char first[UIR_CACHE_PAGE]; /* may be patched until it is written at the end */
    char buffer[BUFFER_SIZE];   /* what is not in the file yet */
};

/* A new file of a name that no other thread or process has. */
static int create_temporary(const uir_cache *cache, char name[UIR_CACHE_NAME_SIZE]) {
    for (uint64_t attempt = 0; attempt < 100; attempt++) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        uint64_t parts[] = {(uint64_t)getpid(), (uint64_t)(uintptr_t)name, (uint64_t)now.tv_sec, (uint64_t)now.tv_nsec,
                            attempt};
        snprintf(name, UIR_CACHE_NAME_SIZE, "%s%016llx", UIR_CACHE_TEMPORARY,
                 (unsigned long long)XXH3_64bits(parts, sizeof parts));
        int fd = openat(cache->folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

static int write_at(int fd, const void *data, size_t size, uint64_t at) {
    const char *bytes = data;
    size_t done = 0;
    while (done < size) {
        size_t part = size - done > ((size_t)1 << 30) ? (size_t)1 << 30 : size - done;
        ssize_t wrote = pwrite(fd, bytes + done, part, (off_t)(at + done));
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return errno;
        if (wrote == 0) return EIO;
        done += (size_t)wrote;
    }
    return 0;
}

static uir_status not_stored(const uir_cache *cache, uir_diagnostics *diagnostics, int error) {
    uir_warning(diagnostics, NULL, "compiled kernels are not cached: %s: %s", cache->path, strerror(error));
    return UIR_STATUS_IO_FAILED;
}

uir_status uir_cache_writer_create(uir_cache *cache, uir_cache_key key, uir_diagnostics *diagnostics,
                                   uir_cache_writer **out_writer) {
    uir_cache_writer *w;
    *out_writer = NULL;
    UIR_TRY_ALLOCATE(w, uir_allocate_zeroed(&cache->allocator, sizeof *w));
    w->cache = cache;
    w->key = key;
    w->diagnostics = diagnostics;
    w->written = UIR_CACHE_PAGE;
    XXH3_128bits_reset(&w->hash);
    w->fd = create_temporary(cache, w->temporary);
    if (w->fd < 0) {
        int error = errno;
        uir_release(&cache->allocator, w, sizeof *w);
        return not_stored(cache, diagnostics, error);
    }
    *out_writer = w;
    return UIR_STATUS_OK;
}

void uir_cache_writer_abandon(uir_cache_writer *w) {
    if (!w) return;
    uir_allocator allocator = w->cache->allocator;
    if (w->fd >= 0) close(w->fd);
    if (w->temporary[0]) unlinkat(w->cache->folder, w->temporary, 0);
    uir_release(&allocator, w, sizeof *w);
}

static uir_status fail(uir_cache_writer *w, int error) {
    if (!w->error) (void)!not_stored(w->cache, w->diagnostics, error);
    w->error = error;
    return UIR_STATUS_IO_FAILED;
}

static uir_status flush(uir_cache_writer *w) {
    if (w->size <= w->written) return UIR_STATUS_OK;
    size_t pending = (size_t)(w->size - w->written);
    XXH3_128bits_update(&w->hash, w->buffer, pending);
    int error = write_at(w->fd, w->buffer, pending, UIR_CACHE_PAGE + w->written);
    if (error) return fail(w, error);
    w->written = w->size;
    return UIR_STATUS_OK;
}

uir_status uir_cache_writer_append(uir_cache_writer *w, const void *data, size_t size) {
    const char *bytes = data;
    if (w->error) return UIR_STATUS_IO_FAILED;
    if (size > w->cache->limit || w->size + size + UIR_CACHE_PAGE > w->cache->limit) {
        if (!w->error)
            uir_warning(w->diagnostics, NULL,
                        "compiled kernels are not cached: %llu bytes are more than the cache's limit",
                        (unsigned long long)(w->size + size));
        w->error = EFBIG;
        return UIR_STATUS_LIMIT;
    }
    if (w->size < UIR_CACHE_PAGE) {
        size_t part = UIR_CACHE_PAGE - (size_t)w->size;
        if (part > size) part = size;
        if (part) memcpy(w->first + w->size, bytes, part);
        w->size += part, bytes += part, size -= part;
    }
    if (!size) return UIR_STATUS_OK;
    if (w->size - w->written + size <= sizeof w->buffer) {
        memcpy(w->buffer + (w->size - w->written), bytes, size);
        w->size += size;
        return UIR_STATUS_OK;
    }
    UIR_TRY(flush(w));
    XXH3_128bits_update(&w->hash, bytes, size);
    int error = write_at(w->fd, bytes, size, UIR_CACHE_PAGE + w->written);
    if (error) return fail(w, error);
    w->size = w->written += size;
    return UIR_STATUS_OK;
}

uir_status uir_cache_writer_patch(uir_cache_writer *w, const void *data, size_t size) {
    if (size > sizeof w->first || size > w->size) return UIR_STATUS_INVALID_ARGUMENT;
    memcpy(w->first, data, size);
    return UIR_STATUS_OK;
}

bool uir_cache_writer_equals(uir_cache_writer *w, uint64_t offset, const void *data, size_t size) {
    const char *bytes = data;
    char part[16384];
    if (offset > w->size || size > w->size - offset || flush(w) != UIR_STATUS_OK) return false;
    for (size_t done = 0, length; done < size; done += length) {
        length = size - done < sizeof part ? size - done : sizeof part;
        if (offset + done < UIR_CACHE_PAGE) {
            if (length > UIR_CACHE_PAGE - (offset + done)) length = (size_t)(UIR_CACHE_PAGE - (offset + done));
            memcpy(part, w->first + offset + done, length);
        } else {
            ssize_t got = pread(w->fd, part, length, (off_t)(UIR_CACHE_PAGE + offset + done));
            if (got <= 0) return false;
            length = (size_t)got;
        }
        if (memcmp(part, bytes + done, length) != 0) return false;
    }
    return true;
}

/* The first page and the header before it. */
static int write_head(uir_cache_writer *w) {
    _Alignas(16) char page[UIR_CACHE_PAGE];
    char material[UIR_CACHE_PAGE + sizeof(XXH128_canonical_t)];
    XXH128_canonical_t rest;
    uir_cache_header h;
    size_t first = w->size < UIR_CACHE_PAGE ? (size_t)w->size : UIR_CACHE_PAGE;
    XXH128_canonicalFromHash(&rest, XXH3_128bits_digest(&w->hash));
    memcpy(material, w->first, first);
    memcpy(material + first, &rest, sizeof rest);
    XXH128_hash_t hash = XXH3_128bits(material, first + sizeof rest);
    uir_cache_header_fill(&h, w->key, w->size, (uint64_t[]){hash.low64, hash.high64});
    memset(page, 0, sizeof page);
    memcpy(page, &h, sizeof h);
    int error = write_at(w->fd, page, sizeof page, 0);
    return error ? error : write_at(w->fd, w->first, first, UIR_CACHE_PAGE);
}

static uir_status finish(uir_cache_writer *w, uir_cache_entry *out_entry) {
    char name[UIR_CACHE_NAME_SIZE];
    struct stat about;
    if (w->error) return UIR_STATUS_IO_FAILED;
    UIR_TRY(flush(w));
    int error = write_head(w);
    uir_cache_name(w->key, "", name);
    if (!error && renameat(w->cache->folder, w->temporary, w->cache->folder, name) != 0) error = errno;
    if (error) return fail(w, error);
    w->temporary[0] = 0;
    if (fstat(w->fd, &about) != 0 || !uir_cache_map(w->cache, w->fd, &about, w->key, out_entry)) return fail(w, errno);
    uir_cache_prune(w->cache, w->key);
    return UIR_STATUS_OK;
}

uir_status uir_cache_writer_finish(uir_cache_writer *w, uir_cache_entry *out_entry) {
    *out_entry = (uir_cache_entry){0};
    uir_status status = finish(w, out_entry);
    uir_cache_writer_abandon(w);
    return status;
}

uir_status uir_cache_store(uir_cache *cache, uir_cache_key key, const void *bytes, size_t size,
                           uir_diagnostics *diagnostics) {
    uir_cache_writer *w;
    uir_cache_entry entry;
    UIR_TRY(uir_cache_writer_create(cache, key, diagnostics, &w));
    uir_status status = uir_cache_writer_append(w, bytes, size);
    if (status != UIR_STATUS_OK) {
        uir_cache_writer_abandon(w);
        return status;
    }
    status = uir_cache_writer_finish(w, &entry);
    uir_cache_entry_release(&entry);
    return status;
}
