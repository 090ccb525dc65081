/* The cache: what is stored is found, what is damaged is not, and no state of a disk is an error of the caller's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "cache/internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#define HEADER 4096

typedef struct fixture {
    uir_allocator allocator;
    uir_diagnostics diagnostics;
    char base[128], folder[256];
    uir_cache *cache;
} fixture;

static bool said(const fixture *f, const char *text) {
    for (const uir_diagnostic *d = f->diagnostics.first; d; d = d->next) {
        assert_int_equal(d->severity, UIR_SEVERITY_WARNING); /* never an error */
        if (strstr(d->message, text)) return true;
    }
    return false;
}

static uir_status open_folder(fixture *f, const char *folder, uint64_t limit, uir_cache **out) {
    uir_cache_options options = {.folder = folder, .limit = limit};
    return uir_cache_open(&f->allocator, &options, &f->diagnostics, out);
}

static int set_up(void **state) {
    static fixture f;
    const char *base = getenv("TMPDIR");
    memset(&f, 0, sizeof f);
    f.allocator = uir_allocator_system();
    uir_diagnostics_init(&f.diagnostics, &f.allocator);
    snprintf(f.base, sizeof f.base, "%s/uir-cache-XXXXXX", base && *base ? base : "/tmp");
    assert_non_null(mkdtemp(f.base));
    snprintf(f.folder, sizeof f.folder, "%s/a/b", f.base);
    assert_int_equal(open_folder(&f, f.folder, 0, &f.cache), UIR_STATUS_OK);
    *state = &f;
    return 0;
}

static int count_files(const char *folder, const char *with) {
    int count = 0;
    DIR *directory = opendir(folder);
    assert_non_null(directory);
    for (struct dirent *e; (e = readdir(directory)) != NULL;)
        count += e->d_name[0] != '.' && (!with || strstr(e->d_name, with));
    closedir(directory);
    return count;
}

static void remove_all(const char *folder) {
    DIR *directory = opendir(folder);
    if (!directory) return;
    for (struct dirent *e; (e = readdir(directory)) != NULL;) {
        char path[600];
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (unlink(path) != 0) remove_all(path);
    }
    closedir(directory);
    rmdir(folder);
}

static int tear_down(void **state) {
    fixture *f = *state;
    uir_cache_close(f->cache);
    chmod(f->folder, 0700);
    remove_all(f->base);
    assert_int_not_equal(access(f->base, F_OK), 0);
    uir_diagnostics_deinit(&f->diagnostics);
    return 0;
}

static uir_cache_key key_of(uint32_t n) {
    return uir_cache_make_key(&n, sizeof n);
}

static void fill(unsigned char *bytes, size_t size, uint32_t seed) {
    for (size_t i = 0; i < size; i++) bytes[i] = (unsigned char)((seed = seed * 1664525u + 1013904223u) >> 24);
}

static void path_of(const fixture *f, uir_cache_key key, const char *suffix, char path[400]) {
    char digits[UIR_DIGEST_TEXT_SIZE];
    uir_digest_print(&key, digits);
    snprintf(path, 400, "%s/%s%s", f->folder, digits, suffix);
}

static void store(fixture *f, uint32_t n, size_t size) {
    unsigned char *bytes = malloc(size + 1);
    assert_non_null(bytes);
    fill(bytes, size, n);
    assert_int_equal(uir_cache_store(f->cache, key_of(n), bytes, size, &f->diagnostics), UIR_STATUS_OK);
    free(bytes);
}

/* What is found is what `store` stored. */
static uir_status load(fixture *f, uint32_t n, size_t size) {
    uir_cache_entry entry;
    uir_status status = uir_cache_load(f->cache, key_of(n), &f->diagnostics, &entry);
    if (status != UIR_STATUS_OK) return status;
    unsigned char *bytes = malloc(size + 1);
    assert_non_null(bytes);
    fill(bytes, size, n);
    assert_int_equal(entry.size, size);
    assert_int_equal((uintptr_t)entry.bytes % 4096, 0);
    assert_memory_equal(entry.bytes, bytes, size);
    uir_cache_entry_release(&entry);
    free(bytes);
    return UIR_STATUS_OK;
}

static void test_kept_and_found(void **state) {
    fixture *f = *state;
    struct stat about;
    static const size_t sizes[] = {0, 1, 4095, 4096, 100000, (5 << 20) + 3};
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(load(f, i, sizes[i]), UIR_STATUS_NOT_FOUND);
        store(f, i, sizes[i]);
        for (int k = 0; k < 3; k++) assert_int_equal(load(f, i, sizes[i]), UIR_STATUS_OK);
    }
    store(f, 3, sizes[3]); /* again */
    for (uint32_t i = 0; i < 6; i++) assert_int_equal(load(f, i, sizes[i]), UIR_STATUS_OK);
    assert_null(f->diagnostics.first);
    assert_int_equal(stat(f->folder, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0700);
    assert_int_equal(count_files(f->folder, NULL), 12); /* an entry and its use each; nothing temporary */
    assert_int_equal(uir_cache_remove(f->cache, key_of(2), &f->diagnostics), UIR_STATUS_OK);
    assert_int_equal(load(f, 2, sizes[2]), UIR_STATUS_NOT_FOUND);
    uint64_t removed;
    assert_int_equal(uir_cache_clear(f->cache, &f->diagnostics, &removed), UIR_STATUS_OK);
    assert_true(removed >= sizes[5] + sizes[4]);
    assert_int_equal(count_files(f->folder, NULL), 0);
}

/* Keys are hashes: no name that a model brings is ever a part of a path. */
static void test_names_are_in_no_path(void **state) {
    fixture *f = *state;
    static const char *const names[] = {"../../../etc/passwd", "a/b", "", "\n", "%s%n", "-rf"};
    for (size_t i = 0; i < 6; i++) {
        uir_cache_key key = uir_cache_make_key(names[i], strlen(names[i]));
        assert_int_equal(uir_cache_store(f->cache, key, names[i], strlen(names[i]), &f->diagnostics), UIR_STATUS_OK);
    }
    DIR *directory = opendir(f->folder);
    assert_non_null(directory);
    int count = 0;
    for (struct dirent *e; (e = readdir(directory)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        assert_int_equal(strspn(e->d_name, "0123456789abcdef"), 64);
        assert_int_equal(e->d_name[64], 0);
        count++;
    }
    closedir(directory);
    assert_int_equal(count, 6);
}

/* ---- damage ---- */
static void test_any_byte_changed(void **state) {
    fixture *f = *state;
    char path[400];
    uint32_t random = 1;
    enum { SIZE = 3000 };
    for (uint32_t i = 0; i < 1500; i++) {
        random = random * 1664525u + 1013904223u;
        off_t at = (off_t)(i < 200 ? i : (random >> 8) % (HEADER + SIZE));
        unsigned char byte;
        store(f, 7, SIZE);
        path_of(f, key_of(7), "", path);
        int fd = open(path, O_RDWR);
        assert_true(fd >= 0);
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= (unsigned char)(1u << (random >> 5 & 7));
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        close(fd);
        assert_int_equal(load(f, 7, SIZE), UIR_STATUS_NOT_FOUND);
        assert_int_not_equal(access(path, F_OK), 0); /* removed */
        if (i % 100 == 0) {
            assert_true(said(f, "is not used"));
            uir_diagnostics_clear(&f->diagnostics);
        }
    }
}

static void test_other_lengths_and_things(void **state) {
    fixture *f = *state;
    char path[400], other[400];
    static const off_t lengths[] = {0, 1, 71, 72, 4095, 4096, 4097, 7095, 7097, 100000};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        store(f, 8, 3000);
        path_of(f, key_of(8), "", path);
        assert_int_equal(truncate(path, lengths[i]), 0);
        assert_int_equal(load(f, 8, 3000), UIR_STATUS_NOT_FOUND);
        assert_int_not_equal(access(path, F_OK), 0);
    }
    /* Another key's entry under this name. */
    store(f, 9, 3000);
    path_of(f, key_of(9), "", other);
    assert_int_equal(rename(other, path), 0);
    assert_int_equal(load(f, 8, 3000), UIR_STATUS_NOT_FOUND);
    assert_int_not_equal(access(path, F_OK), 0);
    /* Of a key that is the same but for a bit. */
    uir_cache_key near = key_of(8);
    near.bytes[UIR_DIGEST_SIZE - 1] ^= 1;
    assert_int_equal(uir_cache_store(f->cache, near, "bytes", 5, &f->diagnostics), UIR_STATUS_OK);
    path_of(f, near, "", other);
    assert_int_equal(rename(other, path), 0);
    assert_int_equal(load(f, 8, 5), UIR_STATUS_NOT_FOUND);
    /* A link to a whole entry elsewhere, and a pipe, which must not block. */
    store(f, 8, 3000);
    snprintf(other, sizeof other, "%s/elsewhere", f->base);
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(symlink(other, path), 0);
    assert_int_equal(load(f, 8, 3000), UIR_STATUS_NOT_FOUND);
    assert_int_equal(access(other, F_OK), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(load(f, 8, 3000), UIR_STATUS_NOT_FOUND);
    store(f, 8, 3000);
    assert_int_equal(load(f, 8, 3000), UIR_STATUS_OK);
}

/* Entries of an earlier and of a later version, whole in themselves. */
static void test_other_versions(void **state) {
    fixture *f = *state;
    for (int step = -1; step <= 1; step += 2) {
        char path[400];
        uir_cache_header h;
        store(f, 8, 3000);
        path_of(f, key_of(8), "", path);
        int fd = open(path, O_RDWR);
        assert_int_equal(pread(fd, &h, sizeof h, 0), sizeof h);
        h.version += (uint32_t)step;
        h.check = XXH3_64bits(&h, offsetof(uir_cache_header, check));
        assert_int_equal(pwrite(fd, &h, sizeof h, 0), sizeof h);
        close(fd);
        assert_int_equal(load(f, 8, 3000), UIR_STATUS_NOT_FOUND);
        assert_true(said(f, "another version"));
        uir_diagnostics_clear(&f->diagnostics);
        assert_int_not_equal(access(path, F_OK), 0);
    }
}

/* A large entry that was found whole is not read again, unless anything about the file is different. */
static void test_large_entries_are_known(void **state) {
    fixture *f = *state;
    char path[400], use[400];
    struct stat about;
    enum { SIZE = 6 << 20 };
    store(f, 10, SIZE);
    assert_int_equal(load(f, 10, SIZE), UIR_STATUS_OK);
    path_of(f, key_of(10), "", path);
    path_of(f, key_of(10), ".use", use);
    assert_int_equal(stat(use, &about), 0);
    assert_int_equal(about.st_size, 0); /* too young to be told from a later one */
    sleep(3);
    assert_int_equal(load(f, 10, SIZE), UIR_STATUS_OK);
    assert_int_equal(stat(use, &about), 0);
    assert_true(about.st_size > 0);
    assert_int_equal(load(f, 10, SIZE), UIR_STATUS_OK);
    /* A changed byte, with the time of modification put back. */
    assert_int_equal(stat(path, &about), 0);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "?!", 2, HEADER + SIZE / 2), 2);
    struct timespec times[2] = {about.st_atim, about.st_mtim};
    assert_int_equal(futimens(fd, times), 0);
    close(fd);
    assert_int_equal(load(f, 10, SIZE), UIR_STATUS_NOT_FOUND);
    assert_int_not_equal(access(path, F_OK), 0);
    /* A use file of nonsense is no stamp. */
    store(f, 10, SIZE);
    fd = open(use, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    for (int i = 0; i < 100; i++) assert_int_equal(write(fd, "nonsense", 8), 8);
    close(fd);
    assert_int_equal(load(f, 10, SIZE), UIR_STATUS_OK);
}

/* ---- limits ---- */
static void test_least_recently_used_go(void **state) {
    fixture *f = *state;
    uir_cache *small;
    enum { SIZE = 10000 };
    assert_int_equal(open_folder(f, f->folder, 3 * (SIZE + HEADER) + 100, &small), UIR_STATUS_OK);
    uir_cache_close(f->cache);
    f->cache = small;
    for (uint32_t n = 0; n < 3; n++) {
        store(f, n, SIZE);
        usleep(20000);
    }
    assert_int_equal(load(f, 0, SIZE), UIR_STATUS_OK); /* 1 is now the one that was not used for longest */
    usleep(20000);
    store(f, 3, SIZE);
    assert_int_equal(load(f, 1, SIZE), UIR_STATUS_NOT_FOUND);
    assert_int_equal(load(f, 0, SIZE), UIR_STATUS_OK);
    assert_int_equal(load(f, 2, SIZE), UIR_STATUS_OK);
    assert_int_equal(load(f, 3, SIZE), UIR_STATUS_OK);
    assert_null(f->diagnostics.first);
    store(f, 4, 3 * SIZE); /* all others go for it */
    assert_int_equal(load(f, 4, 3 * SIZE), UIR_STATUS_OK);
    assert_int_equal(load(f, 3, SIZE), UIR_STATUS_NOT_FOUND);
    unsigned char *bytes = calloc(4, SIZE);
    assert_non_null(bytes);
    assert_int_equal(uir_cache_store(small, key_of(5), bytes, 4 * SIZE + HEADER, &f->diagnostics), UIR_STATUS_LIMIT);
    free(bytes);
    assert_true(said(f, "limit"));
    assert_int_equal(load(f, 4, 3 * SIZE), UIR_STATUS_OK);
    assert_int_equal(count_files(f->folder, "tmp-"), 0);
}

/* Folders under the names of entries: nothing removes them, and the entries behind them go. */
static void test_what_cannot_be_removed(void **state) {
    fixture *f = *state;
    uir_cache *small;
    enum { SIZE = 10000, FOLDERS = 3 };
    char path[400];
    struct stat about;
    uint64_t folders = 0;
    store(f, 0, SIZE);
    for (uint32_t n = 1; n <= FOLDERS; n++) {
        path_of(f, key_of(n), "", path);
        assert_int_equal(mkdir(path, 0700), 0);
        assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){{n % 2, 0}, {n % 2, 0}}, 0), 0);
        assert_int_equal(stat(path, &about), 0);
        folders += (uint64_t)about.st_size;
    }
    assert_int_equal(open_folder(f, f->folder, folders + SIZE + HEADER + 100, &small), UIR_STATUS_OK);
    uir_cache_close(f->cache);
    f->cache = small;
    alarm(60); /* an endless walk fails */
    store(f, 10, SIZE);
    alarm(0);
    assert_int_equal(load(f, 0, SIZE), UIR_STATUS_NOT_FOUND);
    assert_int_equal(load(f, 10, SIZE), UIR_STATUS_OK);
    for (uint32_t n = 1; n <= FOLDERS; n++) {
        path_of(f, key_of(n), "", path);
        assert_int_equal(rmdir(path), 0);
    }
}

/* ---- folders ---- */
static void test_folders_that_are_refused(void **state) {
    fixture *f = *state;
    uir_cache *cache;
    char path[400];
    static const mode_t open_to_others[] = {0770, 0720, 0707, 0702};
    for (size_t i = 0; i < sizeof open_to_others / sizeof *open_to_others; i++) {
        assert_int_equal(chmod(f->folder, open_to_others[i]), 0);
        assert_int_equal(open_folder(f, f->folder, 0, &cache), UIR_STATUS_IO_FAILED);
        assert_null(cache);
        assert_true(said(f, "other users can write"));
        uir_diagnostics_clear(&f->diagnostics);
    }
    assert_int_equal(chmod(f->folder, 0755), 0); /* others may read */
    assert_int_equal(open_folder(f, f->folder, 0, &cache), UIR_STATUS_OK);
    uir_cache_close(cache);
    snprintf(path, sizeof path, "%s/link", f->base);
    assert_int_equal(symlink(f->folder, path), 0);
    assert_int_equal(open_folder(f, path, 0, &cache), UIR_STATUS_IO_FAILED);
    assert_true(said(f, "not a folder"));
    assert_int_equal(open_folder(f, "/proc/no/such", 0, &cache), UIR_STATUS_IO_FAILED);
    assert_int_equal(open_folder(f, "", 0, &cache), UIR_STATUS_IO_FAILED);
    assert_int_equal(open_folder(f, "/dev/null", 0, &cache), UIR_STATUS_IO_FAILED);
    if (geteuid() == 0) {
        assert_int_equal(chown(f->folder, 12345, (gid_t)-1), 0);
        assert_int_equal(open_folder(f, f->folder, 0, &cache), UIR_STATUS_IO_FAILED);
        assert_true(said(f, "another user"));
        assert_int_equal(chown(f->folder, 0, (gid_t)-1), 0);
        /* An entry that another one put there. */
        store(f, 1, 100);
        path_of(f, key_of(1), "", path);
        assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
        assert_int_equal(load(f, 1, 100), UIR_STATUS_NOT_FOUND);
    } else {
        assert_int_equal(open_folder(f, "/", 0, &cache), UIR_STATUS_IO_FAILED);
    }
}

static void set(const char *name, const char *value) {
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void test_where_it_is(void **state) {
    fixture *f = *state;
    const char *names[] = {"XDG_CACHE_HOME", "HOME"};
    char kept[2][256], path[400];
    bool had[2];
    uir_cache *cache;
    for (int i = 0; i < 2; i++) {
        had[i] = getenv(names[i]) != NULL;
        snprintf(kept[i], sizeof kept[i], "%s", had[i] ? getenv(names[i]) : "");
    }
    snprintf(path, sizeof path, "%s/xdg", f->base);
    set("XDG_CACHE_HOME", path);
    assert_int_equal(uir_cache_open(&f->allocator, NULL, &f->diagnostics, &cache), UIR_STATUS_OK);
    uir_cache_close(cache);
    snprintf(path, sizeof path, "%s/xdg/uir", f->base);
    assert_int_equal(access(path, F_OK), 0);
    set("XDG_CACHE_HOME", "relative"); /* counts as none */
    set("HOME", f->base);
    assert_int_equal(uir_cache_open(&f->allocator, NULL, &f->diagnostics, &cache), UIR_STATUS_OK);
    uir_cache_close(cache);
    snprintf(path, sizeof path, "%s/.cache/uir", f->base);
    assert_int_equal(access(path, F_OK), 0);
    set("XDG_CACHE_HOME", NULL);
    set("HOME", NULL);
    assert_int_equal(uir_cache_open(&f->allocator, NULL, &f->diagnostics, &cache), UIR_STATUS_IO_FAILED);
    assert_true(said(f, "HOME"));
    for (int i = 0; i < 2; i++) set(names[i], had[i] ? kept[i] : NULL);
}

/* As somebody who is not root: root may write everywhere. */
static int in_child(fixture *f, int (*what)(fixture *f)) {
    int state;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(what(f));
    assert_int_equal(waitpid(child, &state, 0), child);
    return WIFEXITED(state) ? WEXITSTATUS(state) : 200;
}

static int use_read_only(fixture *f) {
    uir_cache *cache;
    uir_cache_entry entry;
    if (geteuid() == 0 && setuid(12345) != 0) return 10;
    if (open_folder(f, f->folder, 0, &cache) != UIR_STATUS_OK) return 1;
    if (uir_cache_load(cache, key_of(1), &f->diagnostics, &entry) != UIR_STATUS_OK || entry.size != 100) return 2;
    if (uir_cache_store(cache, key_of(2), "x", 1, &f->diagnostics) != UIR_STATUS_IO_FAILED) return 3;
    if (uir_cache_load(cache, key_of(2), &f->diagnostics, &entry) != UIR_STATUS_NOT_FOUND) return 4;
    if (uir_cache_clear(cache, &f->diagnostics, NULL) != UIR_STATUS_IO_FAILED) return 5;
    return 0;
}

static void test_read_only_folder(void **state) {
    fixture *f = *state;
    char path[400];
    store(f, 1, 100);
    if (geteuid() == 0) {
        path_of(f, key_of(1), "", path);
        assert_int_equal(chmod(f->base, 0755), 0);
        snprintf(path, sizeof path, "%s/a", f->base);
        assert_int_equal(chmod(path, 0755), 0);
        path_of(f, key_of(1), "", path);
        assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
        assert_int_equal(chown(f->folder, 12345, (gid_t)-1), 0);
    }
    assert_int_equal(chmod(f->folder, 0500), 0);
    int result = in_child(f, use_read_only);
    if (geteuid() == 0) assert_int_equal(chown(f->folder, 0, (gid_t)-1), 0);
    assert_int_equal(result, 0);
}

/* ---- full disks ---- */
static int use_limited(fixture *f) {
    struct rlimit limit = {50000, 50000};
    static char bytes[200000];
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    if (uir_cache_store(f->cache, key_of(1), bytes, sizeof bytes, &f->diagnostics) != UIR_STATUS_IO_FAILED) return 2;
    if (!said(f, "not cached")) return 3;
    if (uir_cache_store(f->cache, key_of(2), bytes, 100, &f->diagnostics) != UIR_STATUS_OK) return 4;
    return count_files(f->folder, NULL) == 1 ? 0 : 5;
}

static int use_full_disk(fixture *f) {
    static char bytes[1 << 20];
    char path[300];
    uir_cache *cache;
    uir_cache_entry entry;
    snprintf(path, sizeof path, "%s/disk", f->base);
    if (mkdir(path, 0700) != 0) return 1;
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", path, "tmpfs", 0, "size=256k,mode=0700") != 0)
        return 100; /* not permitted here */
    if (open_folder(f, path, 0, &cache) != UIR_STATUS_OK) return 2;
    if (uir_cache_store(cache, key_of(1), bytes, sizeof bytes, &f->diagnostics) != UIR_STATUS_IO_FAILED) return 3;
    if (!said(f, "No space left")) return 4;
    if (count_files(path, NULL) != 0) return 5;
    if (uir_cache_store(cache, key_of(2), bytes, 50000, &f->diagnostics) != UIR_STATUS_OK) return 6;
    if (uir_cache_load(cache, key_of(2), &f->diagnostics, &entry) != UIR_STATUS_OK) return 7;
    uir_cache_entry_release(&entry);
    /* The same disk, read only. */
    if (mount(NULL, path, NULL, MS_REMOUNT | MS_RDONLY, NULL) != 0) return 101;
    if (uir_cache_store(cache, key_of(3), bytes, 10, &f->diagnostics) != UIR_STATUS_IO_FAILED) return 8;
    if (!said(f, "Read-only")) return 9;
    if (uir_cache_load(cache, key_of(2), &f->diagnostics, &entry) != UIR_STATUS_OK) return 10;
    return 0;
}

static void test_full_disk(void **state) {
    fixture *f = *state;
    assert_int_equal(in_child(f, use_limited), 0);
    int result = in_child(f, use_full_disk);
    if (result >= 100) {
        print_message("skip: no small disk can be mounted here\n");
        return;
    }
    assert_int_equal(result, 0);
}

/* ---- processes ---- */
static int race(fixture *f) {
    uir_cache *cache;
    uir_cache_entry entry;
    enum { SIZE = 300000 };
    unsigned char *bytes = malloc(SIZE);
    if (!bytes || open_folder(f, f->folder, 3 * SIZE, &cache) != UIR_STATUS_OK) return 1;
    for (uint32_t i = 0; i < 60; i++) {
        uint32_t n = i % 4;
        fill(bytes, SIZE, n);
        if (uir_cache_store(cache, key_of(n), bytes, SIZE, &f->diagnostics) != UIR_STATUS_OK) return 2;
        n = (i + 1) % 4;
        uir_status status = uir_cache_load(cache, key_of(n), &f->diagnostics, &entry);
        if (status == UIR_STATUS_NOT_FOUND) continue; /* removed by the limit */
        fill(bytes, SIZE, n);
        if (status != UIR_STATUS_OK || entry.size != SIZE || memcmp(entry.bytes, bytes, SIZE) != 0) return 3;
        uir_cache_entry_release(&entry);
    }
    return f->diagnostics.first ? 4 : 0; /* nothing was ever seen half written */
}

static void test_processes_at_once(void **state) {
    fixture *f = *state;
    enum { COUNT = 4 };
    pid_t children[COUNT];
    fflush(NULL);
    for (int i = 0; i < COUNT; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) _exit(race(f));
    }
    for (int i = 0; i < COUNT; i++) {
        int result;
        assert_int_equal(waitpid(children[i], &result, 0), children[i]);
        assert_true(WIFEXITED(result));
        assert_int_equal(WEXITSTATUS(result), 0);
    }
    assert_int_equal(count_files(f->folder, "tmp-"), 0);
}

/* One that dies in the middle leaves a temporary file; it is never taken for an entry, and goes in time. */
static void test_left_behind(void **state) {
    fixture *f = *state;
    char path[400];
    struct timespec old[2] = {{1000000, 0}, {1000000, 0}}, minutes[2] = {{time(NULL) - 600, 0}, {time(NULL) - 600, 0}};
    snprintf(path, sizeof path, "%s/tmp-0123456789abcdef", f->folder);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    store(f, 1, 10);
    assert_int_equal(access(path, F_OK), 0); /* it may still be written */
    assert_int_equal(futimens(fd, minutes), 0);
    store(f, 3, 10);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(futimens(fd, old), 0);
    close(fd);
    store(f, 2, 10);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(load(f, 1, 10), UIR_STATUS_OK);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_kept_and_found),
        TEST(test_names_are_in_no_path),
        TEST(test_any_byte_changed),
        TEST(test_other_lengths_and_things),
        TEST(test_large_entries_are_known),
        TEST(test_least_recently_used_go),
        TEST(test_what_cannot_be_removed),
        TEST(test_folders_that_are_refused),
        TEST(test_where_it_is),
        TEST(test_read_only_folder),
        TEST(test_full_disk),
        TEST(test_processes_at_once),
        TEST(test_left_behind),
        TEST(test_other_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
