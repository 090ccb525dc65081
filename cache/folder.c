/* The cache's folder: found, made, trusted or not, kept under its limit, emptied. */
#include "cache/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TEMPORARY_LIFE 3600 /* seconds after which what is being written is taken for left behind */

/* `*out_base`: so much of it, from the beginning, is the caller's to make: a home, or what a cache's home lies in. */
static bool default_folder(char *out, size_t size, size_t *out_base) {
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int used = -1;
    if (base && base[0] == '/') { /* the XDG specification: a relative one counts as none */
        used = snprintf(out, size, "%s/uir", base);
        size_t length = strlen(base);
        while (length && base[length - 1] == '/') length--;
        while (length && base[length - 1] != '/') length--;
        *out_base = length ? length - 1 : 0;
    } else if (home && home[0] == '/') {
        used = snprintf(out, size, "%s/.cache/uir", home);
        *out_base = strlen(home);
    }
    return used > 0 && (size_t)used < size;
}

/* Makes the folder and those above it that are missing, for the owner alone; the first `base` bytes of it must be
 * there.
 */
static int make_folders(const char *path, size_t base) {
    char part[sizeof((uir_cache *)0)->path];
    size_t length = strlen(path);
    for (size_t i = base ? base : 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != 0) continue;
        memcpy(part, path, i);
        part[i] = 0;
        if (i == base) {
            struct stat about;
            if (stat(part, &about) != 0) return errno;
            continue;
        }
        if (mkdir(part, 0700) != 0 && errno != EEXIST) {
            int error = errno;
            struct stat about;
            if (stat(part, &about) != 0 || !S_ISDIR(about.st_mode)) return error;
        }
    }
    return 0;
}

static uir_status refuse(uir_cache *cache, uir_diagnostics *diagnostics, const char *why) {
    uir_warning(diagnostics, NULL, "compiled kernels are not cached: %s: %s", cache->path, why);
    return UIR_STATUS_IO_FAILED;
}

uir_status uir_cache_open_folder(uir_cache *cache, const char *folder, uir_diagnostics *diagnostics) {
    struct stat about;
    size_t base = 0;
    if (folder ? (size_t)snprintf(cache->path, sizeof cache->path, "%s", folder) >= sizeof cache->path || !*folder
               : !default_folder(cache->path, sizeof cache->path, &base)) {
        snprintf(cache->path, sizeof cache->path, "%s", "the cache's folder");
        return refuse(cache, diagnostics, "no usable path; set XDG_CACHE_HOME or HOME, or use --cache");
    }
    int error = make_folders(cache->path, base);
    if (error) return refuse(cache, diagnostics, strerror(error));
    cache->folder = open(cache->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (cache->folder < 0)
        return refuse(cache, diagnostics,
                      errno == ELOOP || errno == ENOTDIR ? "it is a symbolic link or not a folder" : strerror(errno));
    if (fstat(cache->folder, &about) != 0) return refuse(cache, diagnostics, strerror(errno));
    if (about.st_uid != geteuid()) return refuse(cache, diagnostics, "it belongs to another user");
    if (about.st_mode & (S_IWGRP | S_IWOTH))
        return refuse(cache, diagnostics, "other users can write to it; run chmod 700 on it");
    return UIR_STATUS_OK;
}

/* ---- files ---- */
/* Entries of versions before the digest had names of half as many digits: nobody finds them, but they take room until
 * they are pruned. */
enum { KEY_DIGITS = 2 * UIR_DIGEST_SIZE, OLDER_DIGITS = 32 };

/* Of the key that the name begins with; 0: none. */
static size_t count_digits(const char *name) {
    size_t count = strspn(name, "0123456789abcdef");
    return count == KEY_DIGITS || count == OLDER_DIGITS ? count : 0;
}

static bool is_entry(const char *name) {
    size_t count = count_digits(name);
    return count && name[count] == 0;
}

static bool is_use(const char *name) {
    size_t count = count_digits(name);
    return count && strcmp(name + count, UIR_CACHE_USE) == 0;
}

static bool is_temporary(const char *name) {
    return strncmp(name, UIR_CACHE_TEMPORARY, strlen(UIR_CACHE_TEMPORARY)) == 0;
}

/* A second look at the folder, so that two walks do not share a position. */
static DIR *open_again(const uir_cache *cache) {
    int fd = openat(cache->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !directory) close(fd);
    return directory;
}

static void remove_entry(const uir_cache *cache, const char *name) {
    char use[UIR_CACHE_NAME_SIZE];
    snprintf(use, sizeof use, "%.*s%s", KEY_DIGITS, name, UIR_CACHE_USE);
    unlinkat(cache->folder, name, 0);
    unlinkat(cache->folder, use, 0);
}

/* An entry's place among those that are pruned. */
typedef struct use {
    struct timespec time;
    char name[UIR_CACHE_NAME_SIZE]; /* "": none */
} use;

static bool is_before(const use *a, const use *b) {
    if (a->time.tv_sec != b->time.tv_sec) return a->time.tv_sec < b->time.tv_sec;
    if (a->time.tv_nsec != b->time.tv_nsec) return a->time.tv_nsec < b->time.tv_nsec;
    return strcmp(a->name, b->name) < 0;
}

/* Of the entries used after `last`, the one used first, and the bytes of all entries; `kept` is counted and never
 * chosen. */
static uint64_t find_next(const uir_cache *cache, const char *kept, const use *last, use *out_next) {
    uint64_t total = 0;
    DIR *directory = open_again(cache);
    *out_next = (use){.name = ""};
    if (!directory) return 0;
    for (struct dirent *e; (e = readdir(directory)) != NULL;) {
        struct stat about, noted;
        char use_name[UIR_CACHE_NAME_SIZE];
        if (is_temporary(e->d_name)) {
            if (fstatat(cache->folder, e->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
                about.st_mtime + TEMPORARY_LIFE < time(NULL))
                unlinkat(cache->folder, e->d_name, 0);
            continue;
        }
        if (is_use(e->d_name)) { /* of an entry that another process removed meanwhile */
            char entry[UIR_CACHE_NAME_SIZE];
            snprintf(entry, sizeof entry, "%.*s", (int)count_digits(e->d_name), e->d_name);
            if (faccessat(cache->folder, entry, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
                unlinkat(cache->folder, e->d_name, 0);
            continue;
        }
        if (!is_entry(e->d_name) || fstatat(cache->folder, e->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0) continue;
        total += (uint64_t)about.st_size;
        snprintf(use_name, sizeof use_name, "%.*s%s", KEY_DIGITS, e->d_name, UIR_CACHE_USE);
        use written = {.time = about.st_mtim}, used = {.time = about.st_mtim};
        if (fstatat(cache->folder, use_name, &noted, AT_SYMLINK_NOFOLLOW) == 0) used.time = noted.st_mtim;
        if (is_before(&used, &written)) used = written;
        snprintf(used.name, sizeof used.name, "%.*s", KEY_DIGITS, e->d_name);
        if (strcmp(e->d_name, kept) == 0 || (last->name[0] && !is_before(last, &used))) continue;
        if (!out_next->name[0] || is_before(&used, out_next)) *out_next = used;
    }
    closedir(directory);
    return total;
}

/* Each entry is tried once: one that cannot be removed leaves the limit to the next. */
void uir_cache_prune(uir_cache *cache, uir_cache_key kept) {
    char kept_name[UIR_CACHE_NAME_SIZE];
    use next = {.name = ""}, last;
    uir_cache_name(kept, "", kept_name);
    do {
        last = next;
        if (find_next(cache, kept_name, &last, &next) <= cache->limit || !next.name[0]) return;
        remove_entry(cache, next.name);
    } while (true);
}

uir_status uir_cache_remove(uir_cache *cache, uir_cache_key key, uir_diagnostics *diagnostics) {
    char name[UIR_CACHE_NAME_SIZE];
    uir_cache_name(key, "", name);
    remove_entry(cache, name);
    if (faccessat(cache->folder, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0) return UIR_STATUS_OK;
    uir_warning(diagnostics, NULL, "the cache's entry %s/%s cannot be removed", cache->path, name);
    return UIR_STATUS_IO_FAILED;
}

uir_status uir_cache_clear(uir_cache *cache, uir_diagnostics *diagnostics, uint64_t *out_bytes) {
    uint64_t removed = 0;
    int error = 0;
    DIR *directory = open_again(cache);
    if (!directory) return refuse(cache, diagnostics, strerror(errno));
    for (struct dirent *e; (e = readdir(directory)) != NULL;) {
        struct stat about;
        if (!is_entry(e->d_name) && !is_use(e->d_name) && !is_temporary(e->d_name)) continue;
        if (fstatat(cache->folder, e->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (unlinkat(cache->folder, e->d_name, 0) == 0)
            removed += (uint64_t)about.st_size;
        else if (errno != ENOENT)
            error = errno;
    }
    closedir(directory);
    if (out_bytes) *out_bytes = removed;
    if (!error) return UIR_STATUS_OK;
    uir_warning(diagnostics, NULL, "the cache %s cannot be emptied: %s", cache->path, strerror(error));
    return UIR_STATUS_IO_FAILED;
}
