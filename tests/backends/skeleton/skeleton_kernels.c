/* The skeleton backend's kernels, run: `uir-skeleton-kernels SIZES [--device-file F] [--random N] [--instructions]
 * FILE...`.
 *
 * Every kernel of the files, N random ones, and those of every instruction that the CPU has, is emitted as C on
 * machine.h, compiled by the system's compiler, and run (tests/backends/kernels.h); the emitted tiling function chooses
 * what the kernel's own does. Kernels of any device: they print alike. Ends with "N passed, M failed, S skipped". */
#define _DEFAULT_SOURCE
#include "backends/skeleton/target/skeleton.h"
#include "backends/source/source.h"
#include "tests/backends/kernels.h"
#include "tests/ir/kernel/campaign/generate.h"

#include <dlfcn.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
enum { BATCH = 64 };

typedef void kernel_function(const int64_t *sizes, void *const *arguments);
typedef int choose_function(const int64_t *sizes, int64_t workers, int64_t *tiles);

typedef struct skeleton_tests {
    char folder[200];
    uint64_t listed;
    kernel_function *kernel;
    choose_function *choose;
} skeleton_tests;

static skeleton_tests *skeleton_of(const kernel_tests *t) {
    return t->user;
}

/* Whether machine.h has such a type. */
static bool is_type(uir_dtype dtype) {
    return uir_dtype_bits(dtype) >= (uir_dtype_is_float(dtype) ? 16 : 8);
}

/* ---- compiling ---- */
static bool compile(kernel_tests *t, const char *source, const char *object) {
    const char *compiler = getenv("CC") ? getenv("CC") : "cc";
    char *const words[] = {(char *)(uintptr_t)compiler,
                           "-std=gnu11",
                           "-O1",
                           "-ffp-contract=off",
                           "-Wall",
                           "-Wextra",
                           "-Werror",
                           "-shared",
                           "-fPIC",
                           "-I.",
                           "-Itests/backends/skeleton/machine",
                           "-o",
                           (char *)(uintptr_t)object,
                           (char *)(uintptr_t)source,
                           "-lm",
                           "-lpthread",
                           NULL};
    pid_t child;
    int ended = 1;
    if (posix_spawnp(&child, compiler, NULL, NULL, words, environ) != 0 || waitpid(child, &ended, 0) < 0 || ended) {
        kernel_tests_fail(t, "%s does not compile", source);
        return false;
    }
    return true;
}

/* The emitted kernels, loaded; NULL where that failed. */
static void *load(kernel_tests *t, uir_igraph *const *kernels, uint32_t count) {
    char source[260], object[260];
    uir_text text;
    void *library = NULL;
    snprintf(source, sizeof source, "%s/kernels.c", skeleton_of(t)->folder);
    snprintf(object, sizeof object, "%s/kernels%u.so", skeleton_of(t)->folder, (unsigned)(t->passed + t->failed));
    uir_text_init(&text, &t->h.allocator);
    for (uint32_t i = 0; i < count; i++)
        if (uir_skeleton_emit(kernels[i], i, &text, &t->h.diagnostics) != UIR_STATUS_OK)
            kernel_tests_fail(t, "@%s is not emitted", kernels[i]->name);
    for (const char *at = text.data; at && (at = strstr(at, "make_list")) != NULL; at++) skeleton_of(t)->listed++;
    FILE *file = fopen(source, "wb");
    bool written = file && fwrite(text.data, 1, text.length, file) == text.length;
    if (file) written &= fclose(file) == 0;
    if (!written)
        kernel_tests_fail(t, "cannot write %s", source);
    else if (compile(t, source, object) && !(library = dlopen(object, RTLD_NOW | RTLD_LOCAL)))
        kernel_tests_fail(t, "%s", dlerror());
    uir_text_deinit(&text);
    unlink(object);
    if (library) unlink(source);
    return library;
}

/* A function of the kernel, by what follows its name. */
static void *find(kernel_tests *t, void *library, const uir_igraph *igraph, uint32_t index, const char *ending) {
    char symbol[UIR_C_SYMBOL_SIZE], name[UIR_C_SYMBOL_SIZE + 20];
    uir_c_symbol(igraph, index, symbol);
    snprintf(name, sizeof name, "%s%s", symbol, ending);
    void *found = dlsym(library, name);
    if (!found) kernel_tests_fail(t, "@%s: there is no %s", igraph->name, name);
    return found;
}

/* ---- running ---- */
static bool run(kernel_tests *t, uint32_t index, harness_case *c) {
    int64_t sizes[2 * KERNEL_TESTS_MAX_DIMS];
    uint32_t dims = uir_igraph_count_symbols(c->igraph, UIR_ISYMBOL_DIM),
             tiles = uir_igraph_count_symbols(c->igraph, UIR_ISYMBOL_TILE);
    (void)index;
    memcpy(sizes, c->dims, dims * sizeof *sizes);
    memcpy(sizes + dims, c->tiles, tiles * sizeof *sizes);
    skeleton_of(t)->kernel(sizes, c->buffer);
    return true;
}

/* The emitted tiling function and the kernel's own give the same tiles, or neither gives any. */
static void compare_choice(kernel_tests *t, uint32_t index, const harness_case *c) {
    choose_function *choose = skeleton_of(t)->choose;
    int64_t mine[KERNEL_TESTS_MAX_DIMS] = {0}, theirs[KERNEL_TESTS_MAX_DIMS] = {0}, dims[KERNEL_TESTS_MAX_DIMS];
    uint32_t count = uir_igraph_count_symbols(c->igraph, UIR_ISYMBOL_DIM);
    (void)index;
    memcpy(dims, c->dims, sizeof dims);
    for (int64_t workers = 1; workers < 40; workers += 3) {
        bool is_for = uir_igraph_choose_tiles(c->igraph, dims, workers, mine, NULL) == UIR_STATUS_OK;
        bool same = choose(dims, workers, theirs) == is_for && (!is_for || !memcmp(mine, theirs, sizeof mine));
        if (!same)
            kernel_tests_fail(t, "@%s: another choice of tiles for %lld workers", c->igraph->name, (long long)workers);
        t->passed += same;
        for (uint32_t d = 0; d < count; d++)
            if (!random_below(&t->h.random, 3)) dims[d] = (int64_t)random_below(&t->h.random, 2000);
    }
}

static void run_kernel(kernel_tests *t, void *library, const uir_igraph *igraph, uint32_t index) {
    skeleton_tests *s = skeleton_of(t);
    *(void **)&s->kernel = find(t, library, igraph, index, "");
    *(void **)&s->choose = find(t, library, igraph, index, "_choose");
    if (s->kernel && s->choose) kernel_tests_run(t, igraph, index);
}

static void run_all(kernel_tests *t) {
    for (uint32_t first = 0; first < t->count; first += BATCH) {
        uint32_t count = t->count - first < BATCH ? t->count - first : BATCH;
        void *library = load(t, t->kernels + first, count);
        for (uint32_t i = 0; i < count && library; i++) run_kernel(t, library, t->kernels[first + i], i);
        if (library) dlclose(library);
        for (uint32_t i = 0; i < count; i++) uir_igraph_destroy(t->kernels[first + i]);
    }
}

int main(int argc, char **argv) {
    static skeleton_tests own;
    static kernel_tests t = {.has_type = is_type, .run = run, .also = compare_choice, .user = &own};
    const char *temporary = getenv("TMPDIR");
    snprintf(own.folder, sizeof own.folder, "%s/uir-skeleton-XXXXXX", temporary ? temporary : "/tmp");
    if (!kernel_tests_read(&t, argc, argv)) {
        fputs("uir-skeleton-kernels SIZES [--device-file F] [--random N] [--instructions] FILE...\n", stderr);
        return 2;
    }
    if (!mkdtemp(own.folder)) {
        perror(own.folder);
        return 1;
    }
    run_all(&t);
    printf("%u kernels, %llu operands by lists\n", t.count, (unsigned long long)own.listed);
    printf("%llu passed, %llu failed, %llu skipped\n", (unsigned long long)t.passed, (unsigned long long)t.failed,
           (unsigned long long)t.skipped);
    harness_deinit(&t.h);
    if (!t.failed) rmdir(own.folder);
    return t.failed != 0 || t.passed == 0;
}
