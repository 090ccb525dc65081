/* Source to a loaded shared object: a private folder, the system's C compiler without a shell, dlopen. */
#include "backends/cpu/target/compile.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define MAX_WORDS    64
#define MAX_MESSAGES 2000 /* bytes of the compiler's words that are kept */

static const char *const variant_flags[] = {
#define UIR_CPU_VARIANT(constant, name, architecture, lanes, flags) flags,
#include "backends/cpu/target/variants.def"
};
/* Rounding is what the source says: no contraction, no fast math; signed integers wrap. */
static const char *const common_flags = "-std=gnu11 -fPIC -ffp-contract=off -fno-math-errno -fno-trapping-math -fwrapv "
                                        "-fno-strict-aliasing -fvisibility=default -Wall -Wextra -Wno-psabi";

typedef struct words {
    char text[4096]; /* the words, each ending in 0 */
    size_t used;
    char *argv[MAX_WORDS + 1];
    uint32_t count;
} words;

static bool add_word(words *w, const char *word, size_t length) {
    if (length == 0) return true;
    if (w->count == MAX_WORDS || w->used + length + 1 > sizeof w->text) return false;
    w->argv[w->count++] = memcpy(w->text + w->used, word, length);
    w->text[w->used + length] = 0;
    w->used += length + 1;
    w->argv[w->count] = NULL;
    return true;
}

/* Blanks separate; there is no quoting, and nothing is expanded. */
static bool add_words(words *w, const char *text) {
    while (text && *text) {
        size_t length = strcspn(text, " \t");
        if (!add_word(w, text, length)) return false;
        text += length + strspn(text + length, " \t");
    }
    return true;
}

static bool is_on_path(const char *program) {
    const char *path = getenv("PATH");
    if (strchr(program, '/')) return access(program, X_OK) == 0;
    while (path && *path) {
        char candidate[1024];
        size_t length = strcspn(path, ":");
        if (length &&
            (size_t)snprintf(candidate, sizeof candidate, "%.*s/%s", (int)length, path, program) < sizeof candidate &&
            access(candidate, X_OK) == 0)
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

static const char *find_compiler(const uir_cpu_compile_options *options) {
    static const char *const names[] = {"cc", "gcc", "clang"};
    const char *environment = getenv("CC");
    if (options->compiler && *options->compiler) return options->compiler;
    if (options->variant == UIR_CPU_AARCH64 && !uir_cpu_variant_runs_here(UIR_CPU_AARCH64))
        return "aarch64-linux-gnu-gcc";
    if (environment && *environment) return environment;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (is_on_path(names[i])) return names[i];
    }
    return "cc";
}

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Reads the child's words until it closes them or the time is over; keeps the first MAX_MESSAGES bytes. */
static bool listen_to(int fd, int64_t deadline, char *messages) {
    size_t used = 0;
    char buffer[4096];
    for (;;) {
        int64_t left = deadline - now_ms();
        struct pollfd p = {fd, POLLIN, 0};
        int ready = left > 0 ? poll(&p, 1, left > 1000 ? 1000 : (int)left) : 0;
        if (left <= 0) break;
        if (ready < 0 && errno != EINTR) break;
        if (ready <= 0) continue;
        ssize_t got = read(fd, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            messages[used] = 0;
            return true;
        }
        size_t keep = MAX_MESSAGES - used < (size_t)got ? MAX_MESSAGES - used : (size_t)got;
        memcpy(messages + used, buffer, keep);
        used += keep;
    }
    messages[used] = 0;
    return false;
}

static int reap(pid_t child, int64_t deadline) {
    for (;;) {
        int state;
        pid_t got = waitpid(child, &state, WNOHANG);
        if (got == child) return state;
        if (got < 0 && errno != EINTR) return -1;
        if (now_ms() > deadline) kill(child, SIGKILL);
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
    }
}

static uir_status run_compiler(char *const *argv, uint32_t timeout_ms, uir_diagnostics *diagnostics) {
    int ends[2];
    char messages[MAX_MESSAGES + 1];
    pid_t child;
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return uir_error(diagnostics, UIR_STATUS_IO_FAILED, NULL, "no pipe to the compiler: %s", strerror(errno));
    int64_t deadline = now_ms() + (timeout_ms ? timeout_ms : 300000);
    int error = posix_spawn_file_actions_init(&actions);
    if (!error) error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!error) error = posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    if (!error) error = posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    if (!error) error = posix_spawnp(&child, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (error) {
        close(ends[0]);
        return uir_error_hint(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL,
                              "install gcc or clang, or name a C compiler in the environment variable CC",
                              "the C compiler '%s' cannot be started: %s", argv[0], strerror(error));
    }
    bool ended = listen_to(ends[0], deadline, messages);
    close(ends[0]);
    if (!ended) kill(child, SIGTERM);
    int state = reap(child, ended ? deadline : now_ms() + 2000);
    if (!ended)
        return uir_error(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, "the C compiler '%s' took longer than %u ms",
                         argv[0], timeout_ms ? timeout_ms : 300000);
    if (state == -1 || !WIFEXITED(state) || WEXITSTATUS(state) != 0)
        return uir_error(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, "the C compiler '%s' failed: %s", argv[0],
                         messages[0] ? messages : "it said nothing");
    if (messages[0]) uir_warning(diagnostics, NULL, "the C compiler '%s' says: %s", argv[0], messages);
    return UIR_STATUS_OK;
}

static uir_status write_file(const char *path, const char *data, size_t length, uir_diagnostics *diagnostics) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_t done = 0;
    int error = fd < 0 ? errno : 0;
    while (!error && done < length) {
        ssize_t wrote = write(fd, data + done, length - done);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0)
            error = wrote < 0 ? errno : EIO;
        else
            done += (size_t)wrote;
    }
    if (fd >= 0 && close(fd) != 0 && !error) error = errno;
    if (error) return uir_error(diagnostics, UIR_STATUS_IO_FAILED, NULL, "%s: %s", path, strerror(error));
    return UIR_STATUS_OK;
}

static uir_status build(const uir_cpu_compile_options *options, const char *source, size_t length, const char *folder,
                        const char *output, bool program, uir_diagnostics *diagnostics) {
    words w = {.used = 0};
    char path[1024];
    if ((size_t)snprintf(path, sizeof path, "%s/kernels.c", folder) >= sizeof path)
        return uir_error(diagnostics, UIR_STATUS_IO_FAILED, NULL, "the temporary folder's path is too long");
    UIR_TRY(write_file(path, source, length, diagnostics));
    if (options->keep_source) UIR_TRY(write_file(options->keep_source, source, length, diagnostics));
    bool foreign = !uir_cpu_variant_runs_here(options->variant); /* an emulator has no libraries of that machine */
    bool fits = add_words(&w, find_compiler(options)) && add_words(&w, options->debug ? "-O1 -g" : "-O2") &&
                add_words(&w, common_flags) && add_words(&w, variant_flags[options->variant]) &&
                add_words(&w, options->extra_flags) && add_words(&w, !program ? "-shared" : foreign ? "-static" : NULL) &&
                add_word(&w, "-o", 2) && add_word(&w, output, strlen(output)) && add_word(&w, path, strlen(path)) &&
                add_words(&w, "-lm");
    uir_status status =
        fits ? run_compiler(w.argv, options->timeout_ms, diagnostics)
             : uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "too many flags for the C compiler");
    unlink(path);
    return status;
}

static uir_status make_folder(char folder[512], uir_diagnostics *diagnostics) {
    const char *base = getenv("TMPDIR");
    if (!base || !*base) base = "/tmp";
    if ((size_t)snprintf(folder, 512, "%s/uir-XXXXXX", base) >= 512 || !mkdtemp(folder))
        return uir_error_hint(diagnostics, UIR_STATUS_IO_FAILED, NULL, "set TMPDIR to a folder that can be written",
                              "no temporary folder in %s: %s", base, strerror(errno));
    return UIR_STATUS_OK;
}

uir_status uir_cpu_compile(const uir_allocator *allocator, const uir_cpu_compile_options *options, const char *source,
                           size_t length, uir_diagnostics *diagnostics, uir_cpu_module **out_module) {
    char folder[512], output[600];
    uir_cpu_module *module;
    UIR_TRY_ALLOCATE(module, uir_allocate_zeroed(allocator, sizeof *module));
    module->allocator = *allocator;
    uir_status status = make_folder(folder, diagnostics);
    if (status != UIR_STATUS_OK) {
        uir_release(allocator, module, sizeof *module);
        return status;
    }
    snprintf(output, sizeof output, "%s/kernels.so", folder);
    status = build(options, source, length, folder, output, false, diagnostics);
    if (status == UIR_STATUS_OK) {
        module->handle = dlopen(output, RTLD_NOW | RTLD_LOCAL);
        if (!module->handle)
            status = uir_error(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, "compiled kernels cannot be loaded: %s",
                               dlerror());
    }
    unlink(output);
    rmdir(folder);
    if (status != UIR_STATUS_OK) {
        uir_release(allocator, module, sizeof *module);
        return status;
    }
    *out_module = module;
    return UIR_STATUS_OK;
}

void uir_cpu_module_destroy(uir_cpu_module *module) {
    if (!module) return;
    uir_allocator allocator = module->allocator;
    if (module->handle) dlclose(module->handle);
    uir_release(&allocator, module, sizeof *module);
}

uir_cpu_phase_function uir_cpu_module_find(const uir_cpu_module *module, const char *symbol, uint32_t phase) {
    char name[120];
    uir_cpu_phase_function function = NULL;
    snprintf(name, sizeof name, "%s_phase%u", symbol, phase);
    void *address = dlsym(module->handle, name);
    memcpy(&function, &address, sizeof function); /* POSIX: the same size and meaning */
    return function;
}

uir_status uir_cpu_compile_program(const uir_allocator *allocator, const uir_cpu_compile_options *options,
                                   const char *source, size_t length, const char *path, uir_diagnostics *diagnostics) {
    char folder[512];
    (void)allocator;
    UIR_TRY(make_folder(folder, diagnostics));
    uir_status status = build(options, source, length, folder, path, true, diagnostics);
    rmdir(folder);
    return status;
}
