/* Source to a shared object: a private folder, the system's C compiler without a shell. */
#include "backends/cpu/target/compile.h"
#include "backends/cpu/target/build.h"
#include "backends/cpu/target/jobs.h"
#include "base/file.h"
#include "cache/digest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX ((off_t)1 << 30)

static const char *const variant_flags[] = {
#define UIR_CPU_VARIANT(constant, name, architecture, flags, ...) flags,
#include "backends/cpu/target/variants.def"
};
/* Rounding is what the source says: no contraction, no fast math; signed integers wrap. */
static const char *const common_flags = "-std=gnu11 -fPIC -ffp-contract=off -fno-math-errno -fno-trapping-math -fwrapv "
                                        "-fno-strict-aliasing -fvisibility=default -Wall -Wextra -Wno-psabi";

typedef uir_cpu_words words;

bool uir_cpu_words_add(uir_cpu_words *w, const char *word, size_t length) {
    if (length == 0) return true;
    if (w->count == UIR_CPU_WORDS_MAX || w->used + length + 1 > sizeof w->text) return false;
    w->argv[w->count++] = memcpy(w->text + w->used, word, length);
    w->text[w->used + length] = 0;
    w->used += length + 1;
    w->argv[w->count] = NULL;
    return true;
}

/* Blanks separate; there is no quoting, and nothing is expanded. */
bool uir_cpu_words_add_all(uir_cpu_words *w, const char *text) {
    while (text && *text) {
        size_t length = strcspn(text, " \t");
        if (!uir_cpu_words_add(w, text, length)) return false;
        text += length + strspn(text + length, " \t");
    }
    return true;
}

/* Compilers run in a folder of their own: a path from here must be found from there. */
static bool add_compiler(words *w, const char *text) {
    char place[PATH_MAX];
    if (!uir_cpu_words_add_all(w, text)) return false;
    if (w->count == 0 || w->argv[0][0] == '/' || !strchr(w->argv[0], '/') || !realpath(w->argv[0], place)) return true;
    if (!uir_cpu_words_add(w, place, strlen(place))) return false;
    w->argv[0] = w->argv[--w->count];
    w->argv[w->count] = NULL;
    return true;
}

bool uir_cpu_find_program(const char *program, char *place, size_t capacity) {
    const char *path = getenv("PATH");
    if (strchr(program, '/'))
        return (size_t)snprintf(place, capacity, "%s", program) < capacity && access(place, X_OK) == 0;
    while (path && *path) {
        size_t length = strcspn(path, ":");
        if (length && (size_t)snprintf(place, capacity, "%.*s/%s", (int)length, path, program) < capacity &&
            access(place, X_OK) == 0)
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

static const char *cpu_find_compiler(const uir_cpu_compile_options *options) {
    static const char *const names[] = {"cc", "gcc", "clang"};
    const char *environment = getenv("CC");
    char place[1024];
    if (options->compiler && *options->compiler) return options->compiler;
    if (options->variant == UIR_CPU_AARCH64 && !uir_cpu_variant_runs_here(UIR_CPU_AARCH64))
        return "aarch64-linux-gnu-gcc";
    if (environment && *environment) return environment;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (uir_cpu_find_program(names[i], place, sizeof place)) return names[i];
    }
    return "cc";
}

const char *uir_cpu_compiler_hint(const uir_cpu_compile_options *options) {
    if (options->variant == UIR_CPU_AARCH64 && !uir_cpu_variant_runs_here(UIR_CPU_AARCH64))
        return "install the cross compiler: on Debian and Ubuntu the package gcc-aarch64-linux-gnu";
    return "install gcc or clang, or name a C compiler in the environment variable CC";
}

uir_status uir_cpu_check_compiler(const uir_cpu_compile_options *options, uir_diagnostics *diagnostics) {
    words w = {.used = 0};
    char place[PATH_MAX];
    if (!add_compiler(&w, cpu_find_compiler(options)) || !w.count ||
        uir_cpu_find_program(w.argv[0], place, sizeof place))
        return UIR_STATUS_OK; /* what is wrong with its words is told by whoever starts it */
    return uir_error_hint(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, uir_cpu_compiler_hint(options),
                          "the C compiler '%s' cannot be started: %s", w.argv[0], strerror(ENOENT));
}

uir_status uir_cpu_write_file(const char *path, const char *data, size_t length, uir_diagnostics *diagnostics) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int error = fd < 0 || !uir_file_write_all(fd, data, length) ? errno : 0;
    if (fd >= 0 && close(fd) != 0 && !error) error = errno;
    if (error) return uir_error(diagnostics, UIR_STATUS_IO_FAILED, NULL, "%s: %s", path, strerror(error));
    return UIR_STATUS_OK;
}

uir_status uir_cpu_read_file(const uir_allocator *allocator, const char *path, uir_diagnostics *diagnostics,
                             void **out_bytes, size_t *out_size) {
    struct stat about;
    size_t done = 0;
    char *bytes = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC), error = 0;
    if (fd < 0 || fstat(fd, &about) != 0) error = errno;
    if (!error && (!S_ISREG(about.st_mode) || about.st_size > FILE_MAX)) error = EFBIG;
    if (!error && !(bytes = uir_allocate(allocator, (size_t)about.st_size))) error = ENOMEM;
    while (!error && done < (size_t)about.st_size) {
        ssize_t got = read(fd, bytes + done, (size_t)about.st_size - done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            error = got < 0 ? errno : EIO;
        else
            done += (size_t)got;
    }
    if (fd >= 0) close(fd);
    if (error) {
        if (bytes) uir_release(allocator, bytes, (size_t)about.st_size);
        if (error == ENOMEM) return UIR_STATUS_OUT_OF_MEMORY;
        return uir_error(diagnostics, UIR_STATUS_IO_FAILED, NULL, "%s: %s", path, strerror(error));
    }
    *out_bytes = bytes;
    *out_size = done;
    return UIR_STATUS_OK;
}

bool uir_cpu_words_begin(uir_cpu_words *w, const uir_cpu_compile_options *options) {
    return add_compiler(w, cpu_find_compiler(options)) && uir_cpu_words_add_all(w, options->debug ? "-O1 -g" : "-O2") &&
           uir_cpu_words_add_all(w, common_flags) && uir_cpu_words_add_all(w, variant_flags[options->variant]) &&
           uir_cpu_words_add_all(w, options->extra_flags);
}

bool uir_cpu_words_mark(uir_cpu_words *link, const uir_text *material, char out_mark[UIR_CPU_MARK_SIZE]) {
    char digits[UIR_DIGEST_TEXT_SIZE], word[UIR_CPU_MARK_SIZE + 32];
    uir_digest digest = uir_digest_make(material->data, material->length);
    _Static_assert(sizeof digits == UIR_CPU_MARK_DIGITS + 1, "a mark holds a digest");
    uir_digest_print(&digest, digits);
    snprintf(out_mark, UIR_CPU_MARK_SIZE, UIR_CPU_MARK "%s", digits);
    /* An address that is no object's; none is ever 0, which would read as no symbol. */
    int length = snprintf(word, sizeof word, "-Wl,--defsym=%s=1", out_mark);
    return uir_cpu_words_add(link, word, (size_t)length);
}

static uir_status run_compiler(const uir_allocator *allocator, const uir_cpu_compile_options *options,
                               const char *folder, char *const *argv, uir_diagnostics *diagnostics) {
    const uir_cpu_build_options build = {.compile = *options, .build = {.cancel = options->cancel}};
    uir_cpu_jobs jobs = uir_cpu_jobs_begin(allocator, folder, &build, 1, 1);
    return uir_cpu_jobs_run(&jobs, &(uir_cpu_job){argv, "kernels.c", 0}, 1, diagnostics);
}

/* `mark`: the shared object's; NULL: it is a program. */
static uir_status build(const uir_allocator *allocator, const uir_cpu_compile_options *options, const char *source,
                        size_t length, const char *folder, const char *output, char *mark,
                        uir_diagnostics *diagnostics) {
    words w = {.used = 0};
    char path[1024];
    if ((size_t)snprintf(path, sizeof path, "%s/kernels.c", folder) >= sizeof path)
        return uir_error(diagnostics, UIR_STATUS_IO_FAILED, NULL, "the temporary folder's path is too long");
    UIR_TRY(uir_cpu_write_file(path, source, length, diagnostics));
    if (options->keep_source) UIR_TRY(uir_cpu_write_file(options->keep_source, source, length, diagnostics));
    bool foreign = !uir_cpu_variant_runs_here(options->variant); /* an emulator has no libraries of that machine */
    uir_text text = {.data = (char *)(uintptr_t)source, .length = length};
    bool fits = uir_cpu_words_begin(&w, options) &&
                uir_cpu_words_add_all(&w, mark      ? UIR_CPU_LINK_SHARED
                                          : foreign ? "-static"
                                                    : NULL) &&
                (!mark || uir_cpu_words_mark(&w, &text, mark)) && uir_cpu_words_add(&w, "-o", 2) &&
                uir_cpu_words_add(&w, output, strlen(output)) && uir_cpu_words_add(&w, path, strlen(path)) &&
                uir_cpu_words_add_all(&w, "-lm");
    if (!fits) return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "too many flags for the C compiler");
    return run_compiler(allocator, options, folder, w.argv, diagnostics);
}

uir_status uir_cpu_make_folder(char folder[512], uir_diagnostics *diagnostics) {
    const char *base = getenv("TMPDIR");
    if (!base || !*base) base = "/tmp";
    if ((size_t)snprintf(folder, 512, "%s/uir-XXXXXX", base) >= 512 || !mkdtemp(folder))
        return uir_error_hint(diagnostics, UIR_STATUS_IO_FAILED, NULL, "set TMPDIR to a folder that can be written",
                              "no temporary folder in %s: %s", base, strerror(errno));
    return UIR_STATUS_OK;
}

void uir_cpu_remove_folder(const char *folder) {
    DIR *directory = opendir(folder);
    for (struct dirent *e; directory && (e = readdir(directory)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) unlinkat(dirfd(directory), e->d_name, 0);
    if (directory) closedir(directory);
    rmdir(folder);
}

uir_status uir_cpu_compile(const uir_allocator *allocator, const uir_cpu_compile_options *options, const char *source,
                           size_t length, uir_diagnostics *diagnostics, void **out_bytes, size_t *out_size) {
    char folder[512], output[600], mark[UIR_CPU_MARK_SIZE];
    UIR_TRY(uir_cpu_make_folder(folder, diagnostics));
    snprintf(output, sizeof output, "%s/kernels.so", folder);
    uir_status status = build(allocator, options, source, length, folder, output, mark, diagnostics);
    if (status == UIR_STATUS_OK && access(output, R_OK) != 0)
        status = uir_error(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL,
                           "the C compiler '%s' reported success but wrote nothing", cpu_find_compiler(options));
    if (status == UIR_STATUS_OK) status = uir_cpu_read_file(allocator, output, diagnostics, out_bytes, out_size);
    uir_cpu_remove_folder(folder);
    return status;
}

uir_status uir_cpu_compile_program(const uir_allocator *allocator, const uir_cpu_compile_options *options,
                                   const char *source, size_t length, const char *path, uir_diagnostics *diagnostics) {
    char folder[512];
    UIR_TRY(uir_cpu_make_folder(folder, diagnostics));
    uir_status status = build(allocator, options, source, length, folder, path, NULL, diagnostics);
    uir_cpu_remove_folder(folder);
    return status;
}
