/* Entries: a page of header, then the bytes. Written to a temporary file and renamed, checked against their hash when
 * they are read. */
#include "cache/internal.h"

#define XXH_INLINE_ALL
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#define HEADER_SIZE   4096 /* so that what follows is page-aligned where it is mapped */
#define ALWAYS_HASHED ((size_t)1 << 22)

typedef struct header {
    char magic[8];
    uint32_t version, order; /* `order` is 0x01020304 on a machine of the same byte order */
    uint64_t size;
    uir_cache_key key;
    XXH128_hash_t hash; /* of the bytes */
    uint64_t check;     /* of all above */
} header;

static const char magic[8] = {'u', 'i', 'r', 'c', 'a', 'c', 'h', 'e'};

/* Hashing hundreds of megabytes takes longer than a start may. A file that was found whole is known by what the kernel
 * changes with every write to it; as long as all of that is the same, a large one is not read again. */
typedef struct stamp {
    uint64_t device, inode, size;
    int64_t changed_s, changed_ns, modified_s, modified_ns;
    uint64_t check;
} stamp;

uir_cache_key uir_cache_make_key(const void *material, size_t size) {
    XXH128_hash_t hash = XXH3_128bits(material, size);
    return (uir_cache_key){hash.low64, hash.high64};
}

void uir_cache_name(uir_cache_key key, const char *suffix, char out[UIR_CACHE_NAME_SIZE]) {
    snprintf(out, UIR_CACHE_NAME_SIZE, "%016llx%016llx%s", (unsigned long long)key.high, (unsigned long long)key.low,
             suffix);
}

uir_status uir_cache_open(const uir_allocator *allocator, const uir_cache_options *options,
                          uir_diagnostics *diagnostics, uir_cache **out_cache) {
    uir_cache *cache;
    *out_cache = NULL;
    UIR_TRY_ALLOCATE(cache, uir_allocate_zeroed(allocator, sizeof *cache));
    cache->allocator = *allocator;
    cache->folder = -1;
    cache->limit = options && options->limit ? options->limit : UIR_CACHE_LIMIT_DEFAULT;
    uir_status status = uir_cache_open_folder(cache, options ? options->folder : NULL, diagnostics);
    if (status != UIR_STATUS_OK) {
        uir_cache_close(cache);
        return status;
    }
    *out_cache = cache;
    return UIR_STATUS_OK;
}

void uir_cache_close(uir_cache *cache) {
    if (!cache) return;
    uir_allocator allocator = cache->allocator;
    if (cache->folder >= 0) close(cache->folder);
    uir_release(&allocator, cache, sizeof *cache);
}

/* ---- load ---- */
static stamp make_stamp(const struct stat *about) {
    stamp s;
    memset(&s, 0, sizeof s);
    s.device = (uint64_t)about->st_dev;
    s.inode = (uint64_t)about->st_ino;
    s.size = (uint64_t)about->st_size;
    s.changed_s = about->st_ctim.tv_sec, s.changed_ns = about->st_ctim.tv_nsec;
    s.modified_s = about->st_mtim.tv_sec, s.modified_ns = about->st_mtim.tv_nsec;
    s.check = XXH3_64bits(&s, offsetof(stamp, check));
    return s;
}

static bool is_known(const uir_cache *cache, uir_cache_key key, const stamp *now) {
    char name[UIR_CACHE_NAME_SIZE];
    stamp kept;
    uir_cache_name(key, UIR_CACHE_USE, name);
    int fd = openat(cache->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    bool same = read(fd, &kept, sizeof kept) == (ssize_t)sizeof kept && memcmp(&kept, now, sizeof kept) == 0;
    close(fd);
    return same;
}

/* Notes the use, and the stamp of a file whose last change is long enough ago for a later one to be told from it. What
 * cannot be noted is not missed. */
static void note_use(const uir_cache *cache, uir_cache_key key, const stamp *now, bool known) {
    char name[UIR_CACHE_NAME_SIZE];
    struct timespec clock;
    uir_cache_name(key, UIR_CACHE_USE, name);
    if (known) {
        utimensat(cache->folder, name, NULL, AT_SYMLINK_NOFOLLOW);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &clock);
    bool settled = clock.tv_sec > now->changed_s + 1;
    int fd = openat(cache->folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd < 0) return;
    if (settled && write(fd, now, sizeof *now) != (ssize_t)sizeof *now && ftruncate(fd, 0) != 0)
        unlinkat(cache->folder, name, 0);
    close(fd);
    utimensat(cache->folder, name, NULL, AT_SYMLINK_NOFOLLOW);
}

static const char *find_damage(const uir_cache *cache, const char *map, const struct stat *about, uir_cache_key key,
                               bool *out_known) {
    header h;
    memcpy(&h, map, sizeof h);
    stamp now = make_stamp(about);
    if (memcmp(h.magic, magic, sizeof magic) != 0 || h.order != 0x01020304 || h.version != 1) return "not an entry";
    if (h.check != XXH3_64bits(&h, offsetof(header, check))) return "its header is damaged";
    if (h.key.low != key.low || h.key.high != key.high) return "it is another's entry";
    if (h.size != (uint64_t)about->st_size - HEADER_SIZE) return "its size is not what it was";
    *out_known = h.size > ALWAYS_HASHED && is_known(cache, key, &now);
    if (*out_known) return NULL;
    for (size_t i = sizeof h; i < HEADER_SIZE; i++) {
        if (map[i]) return "its header is damaged";
    }
    XXH128_hash_t hash = XXH3_128bits(map + HEADER_SIZE, (size_t)h.size);
    return XXH128_isEqual(hash, h.hash) ? NULL : "its bytes are damaged";
}

static uir_status drop(uir_cache *cache, uir_cache_key key, uir_diagnostics *diagnostics, const char *name,
                       const char *why) {
    uir_warning(diagnostics, NULL, "the cache's entry %s/%s is not used: %s", cache->path, name, why);
    uir_cache_remove(cache, key, NULL);
    return UIR_STATUS_NOT_FOUND;
}

uir_status uir_cache_load(uir_cache *cache, uir_cache_key key, uir_diagnostics *diagnostics,
                          uir_cache_entry *out_entry) {
    char name[UIR_CACHE_NAME_SIZE];
    struct stat about;
    bool known = false;
    *out_entry = (uir_cache_entry){0};
    uir_cache_name(key, "", name);
    int fd = openat(cache->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return errno == ENOENT ? UIR_STATUS_NOT_FOUND : drop(cache, key, diagnostics, name, strerror(errno));
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || about.st_uid != geteuid() || about.st_size < HEADER_SIZE ||
        (uint64_t)about.st_size > SIZE_MAX / 2) {
        close(fd);
        return drop(cache, key, diagnostics, name, "not an entry");
    }
    void *map = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (map == MAP_FAILED) {
        uir_warning(diagnostics, NULL, "the cache's entry %s/%s cannot be mapped: %s", cache->path, name,
                    strerror(errno));
        return UIR_STATUS_NOT_FOUND;
    }
    const char *damage = find_damage(cache, map, &about, key, &known);
    if (damage) {
        munmap(map, (size_t)about.st_size);
        return drop(cache, key, diagnostics, name, damage);
    }
    stamp now = make_stamp(&about);
    note_use(cache, key, &now, known);
    *out_entry = (uir_cache_entry){(const char *)map + HEADER_SIZE, (size_t)about.st_size - HEADER_SIZE, map,
                                   (size_t)about.st_size};
    return UIR_STATUS_OK;
}

void uir_cache_entry_release(uir_cache_entry *entry) {
    if (entry->map) munmap(entry->map, entry->map_size);
    *entry = (uir_cache_entry){0};
}

/* ---- store ---- */
/* A new file of a name that no other thread or process has. */
static int create_temporary(const uir_cache *cache, char name[UIR_CACHE_NAME_SIZE]) {
    for (uint64_t attempt = 0; attempt < 100; attempt++) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        uint64_t parts[] = {(uint64_t)getpid(), (uint64_t)(uintptr_t)name, (uint64_t)now.tv_sec, (uint64_t)now.tv_nsec,
                            attempt};
        snprintf(name, UIR_CACHE_NAME_SIZE, "%s%016llx", UIR_CACHE_TEMPORARY,
                 (unsigned long long)XXH3_64bits(parts, sizeof parts));
        int fd = openat(cache->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

static int write_all(int fd, const void *data, size_t size) {
    const char *bytes = data;
    size_t done = 0;
    while (done < size) {
        size_t part = size - done > ((size_t)1 << 30) ? (size_t)1 << 30 : size - done;
        ssize_t wrote = write(fd, bytes + done, part);
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

uir_status uir_cache_store(uir_cache *cache, uir_cache_key key, const void *bytes, size_t size,
                           uir_diagnostics *diagnostics) {
    char name[UIR_CACHE_NAME_SIZE], temporary[UIR_CACHE_NAME_SIZE];
    _Alignas(16) char first[HEADER_SIZE];
    header h;
    if (size > SIZE_MAX / 2 - HEADER_SIZE || size + HEADER_SIZE > cache->limit) {
        uir_warning(diagnostics, NULL, "compiled kernels are not cached: %llu bytes are more than the cache's limit",
                    (unsigned long long)size);
        return UIR_STATUS_LIMIT;
    }
    memset(&h, 0, sizeof h);
    memset(first, 0, sizeof first);
    memcpy(h.magic, magic, sizeof magic);
    h.version = 1;
    h.order = 0x01020304;
    h.size = size;
    h.key = key;
    h.hash = XXH3_128bits(bytes, size);
    h.check = XXH3_64bits(&h, offsetof(header, check));
    memcpy(first, &h, sizeof h);
    int fd = create_temporary(cache, temporary);
    if (fd < 0) return not_stored(cache, diagnostics, errno);
    int error = write_all(fd, first, sizeof first);
    if (!error) error = write_all(fd, bytes, size);
    if (close(fd) != 0 && !error) error = errno;
    uir_cache_name(key, "", name);
    if (!error && renameat(cache->folder, temporary, cache->folder, name) != 0) error = errno;
    if (error) {
        unlinkat(cache->folder, temporary, 0);
        return not_stored(cache, diagnostics, error);
    }
    uir_cache_prune(cache, key);
    return UIR_STATUS_OK;
}
