/* Entries as they are read: their header, and their bytes against the hash in it. */
#include "cache/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#define ALWAYS_HASHED ((size_t)1 << 22)
enum { VERSION = 3, ORDER = 0x01020304 };

static const char magic[8] = {'u', 'i', 'r', 'c', 'a', 'c', 'h', 'e'};

uir_cache_key uir_cache_make_key(const void *material, size_t size) {
    return uir_digest_make(material, size);
}

void uir_cache_name(uir_cache_key key, const char *suffix, char out[UIR_CACHE_NAME_SIZE]) {
    char digits[UIR_DIGEST_TEXT_SIZE];
    uir_digest_print(&key, digits);
    snprintf(out, UIR_CACHE_NAME_SIZE, "%s%s", digits, suffix);
}

uir_status uir_cache_open(const uir_allocator *allocator, const uir_cache_options *options,
                          uir_diagnostics *diagnostics, uir_cache **out_cache) {
    uir_cache *cache;
    *out_cache = NULL;
    UIR_TRY_ALLOCATE(cache, uir_allocate_zeroed(allocator, sizeof *cache));
    cache->allocator = *allocator;
    cache->folder = -1;
    cache->copy = options && options->copy;
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
static uir_cache_stamp cache_stamp_make(const struct stat *about) {
    uir_cache_stamp s;
    memset(&s, 0, sizeof s);
    s.device = (uint64_t)about->st_dev;
    s.inode = (uint64_t)about->st_ino;
    s.size = (uint64_t)about->st_size;
    s.changed_s = about->st_ctim.tv_sec, s.changed_ns = about->st_ctim.tv_nsec;
    s.modified_s = about->st_mtim.tv_sec, s.modified_ns = about->st_mtim.tv_nsec;
    s.check = XXH3_64bits(&s, offsetof(uir_cache_stamp, check));
    return s;
}

static bool is_known(const uir_cache *cache, uir_cache_key key, const uir_cache_stamp *now) {
    char name[UIR_CACHE_NAME_SIZE];
    uir_cache_stamp kept;
    uir_cache_name(key, UIR_CACHE_USE, name);
    int fd = openat(cache->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return false;
    bool same = read(fd, &kept, sizeof kept) == (ssize_t)sizeof kept && memcmp(&kept, now, sizeof kept) == 0;
    close(fd);
    return same;
}

/* Notes the use, and the stamp of a file whose last change is long enough ago for a later one to be told from it. What
 * cannot be noted is not missed. */
static void note_use(const uir_cache *cache, uir_cache_key key, const uir_cache_stamp *now, bool known) {
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

void uir_cache_header_fill(uir_cache_header *h, uir_cache_key key, uint64_t size, const uint64_t hash[2]) {
    memset(h, 0, sizeof *h);
    memcpy(h->magic, magic, sizeof magic);
    h->version = VERSION;
    h->order = ORDER;
    h->size = size;
    h->key = key;
    memcpy(h->hash, hash, sizeof h->hash);
    h->check = XXH3_64bits(h, offsetof(uir_cache_header, check));
}

/* Of what follows the first page, then of that page and the hash: the page may be written last. */
static void cache_hash(const char *bytes, uint64_t size, uint64_t out_hash[2]) {
    uint64_t first = size < UIR_CACHE_PAGE ? size : UIR_CACHE_PAGE;
    char page[UIR_CACHE_PAGE + sizeof(XXH128_canonical_t)];
    XXH128_canonical_t rest;
    XXH128_canonicalFromHash(&rest, XXH3_128bits(bytes + first, (size_t)(size - first)));
    memcpy(page, bytes, (size_t)first);
    memcpy(page + first, &rest, sizeof rest);
    XXH128_hash_t hash = XXH3_128bits(page, (size_t)first + sizeof rest);
    out_hash[0] = hash.low64, out_hash[1] = hash.high64;
}

static const char *find_damage(const uir_cache *cache, const uir_cache_entry *entry, bool *out_known) {
    const char *map = entry->map;
    uir_cache_header h;
    uir_cache_stamp now;
    uint64_t hash[2];
    memcpy(&h, map, sizeof h);
    memcpy(&now, entry->stamp, sizeof now);
    if (memcmp(h.magic, magic, sizeof magic) != 0 || h.order != ORDER) return "not an entry";
    if (h.version != VERSION) return "another version made it";
    if (h.check != XXH3_64bits(&h, offsetof(uir_cache_header, check))) return "its header is damaged";
    if (memcmp(&h.key, &entry->key, sizeof h.key) != 0) return "its key does not match";
    if (h.size != entry->size) return "its size has changed";
    *out_known = h.size > ALWAYS_HASHED && is_known(cache, entry->key, &now);
    if (*out_known) return NULL;
    for (size_t i = sizeof h; i < UIR_CACHE_PAGE; i++) {
        if (map[i]) return "its header is damaged";
    }
    cache_hash(entry->bytes, h.size, hash);
    return memcmp(hash, h.hash, sizeof hash) == 0 ? NULL : "its bytes are damaged";
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
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || about.st_uid != geteuid() ||
        about.st_size < UIR_CACHE_PAGE || (uint64_t)about.st_size > SIZE_MAX / 2) {
        close(fd);
        return drop(cache, key, diagnostics, name, "not an entry");
    }
    bool mapped = uir_cache_map(cache, fd, &about, key, out_entry);
    int error = errno;
    close(fd);
    if (!mapped) {
        uir_warning(diagnostics, NULL, "the cache's entry %s/%s cannot be mapped: %s", cache->path, name,
                    strerror(error));
        return UIR_STATUS_NOT_FOUND;
    }
    const char *damage = find_damage(cache, out_entry, &known);
    if (damage) {
        uir_cache_entry_release(out_entry);
        return drop(cache, key, diagnostics, name, damage);
    }
    uir_cache_stamp now = cache_stamp_make(&about);
    note_use(cache, key, &now, known);
    return UIR_STATUS_OK;
}

/* Memory of the process's own with the file's bytes in it, so that it is released as a map of the file is. */
static void *read_into_map(int fd, size_t size) {
    char *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t done = 0; map != MAP_FAILED && done < size;) {
        size_t part = size - done > (size_t)1 << 30 ? (size_t)1 << 30 : size - done;
        ssize_t got = pread(fd, map + done, part, (off_t)done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            int error = got ? errno : EIO;
            munmap(map, size);
            errno = error;
            return MAP_FAILED;
        }
        done += (size_t)got;
    }
    return map;
}

bool uir_cache_map(const uir_cache *cache, int fd, const struct stat *about, uir_cache_key key,
                   uir_cache_entry *out_entry) {
    size_t size = (size_t)about->st_size;
    uir_cache_stamp stamp = cache_stamp_make(about);
    uir_budget *budget = uir_budget_of(&cache->allocator);
    uir_budget_grow(budget, size);
    errno = ENOMEM;
    if (!uir_budget_map(budget, size)) return false;
    void *map = cache->copy ? read_into_map(fd, size) : mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) {
        uir_budget_unmap(budget, size);
        return false;
    }
    *out_entry = (uir_cache_entry){.bytes = (const char *)map + UIR_CACHE_PAGE,
                                   .size = size - UIR_CACHE_PAGE,
                                   .map = map,
                                   .map_size = size,
                                   .budget = budget,
                                   .key = key};
    _Static_assert(sizeof out_entry->stamp == sizeof stamp, "an entry holds a stamp");
    memcpy(out_entry->stamp, &stamp, sizeof stamp);
    return true;
}

void uir_cache_settle(uir_cache *cache, const uir_cache_entry *entry) {
    char name[UIR_CACHE_NAME_SIZE];
    struct stat about;
    uir_cache_name(entry->key, "", name);
    if (fstatat(cache->folder, name, &about, AT_SYMLINK_NOFOLLOW) != 0) return;
    uir_cache_stamp now = cache_stamp_make(&about);
    if (memcmp(&now, entry->stamp, sizeof now) == 0)
        note_use(cache, entry->key, &now, is_known(cache, entry->key, &now));
}

bool uir_cache_entry_is_unchanged(const uir_cache *cache, const uir_cache_entry *entry) {
    char name[UIR_CACHE_NAME_SIZE];
    struct stat about;
    uir_cache_stamp then;
    uir_cache_name(entry->key, "", name);
    if (cache->copy || fstatat(cache->folder, name, &about, AT_SYMLINK_NOFOLLOW) != 0) return true;
    uir_cache_stamp now = cache_stamp_make(&about);
    memcpy(&then, entry->stamp, sizeof then);
    if (now.device != then.device || now.inode != then.inode) return true; /* another one's name */
    return now.size == then.size && now.modified_s == then.modified_s && now.modified_ns == then.modified_ns;
}

void uir_cache_entry_release(uir_cache_entry *entry) {
    if (entry->map) {
        munmap(entry->map, entry->map_size);
        uir_budget_unmap(entry->budget, entry->map_size);
    }
    *entry = (uir_cache_entry){0};
}
