/* The skeleton backend's kernels, run: `uir-skeleton-kernels SIZES [--device-file F] [--random N] [--instructions]
 * FILE...`.
 *
 * Every kernel of the files (texts in which some stand, or folders of .igraph files), N random ones, and those of every
 * instruction that the CPU has, is emitted as C on machine.h, compiled by the system's compiler, and run at up to SIZES
 * sizes, primes first; results are the interpreter's in every bit, and the emitted tiling function chooses what the
 * kernel's own does. Kernels of any device: they print alike. Ends with "N passed, M failed, S skipped". */
#define _DEFAULT_SOURCE
#include "backends/skeleton/target/skeleton.h"
#include "backends/source/source.h"
#include "tests/ir/kernel/campaign/generate.h"
#include "tests/ir/kernel/campaign/harness.h"
#include "tests/ir/kernel/campaign/single.h"

#include <dirent.h>
#include <dlfcn.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
enum { MAX_KERNELS = 4096, BATCH = 64, MAX_BUFFERS = 60, MAX_DIMS = 30, MAX_SINGLES = 4000, SINGLES = 16 };

typedef void kernel_function(const int64_t *sizes, void *const *arguments);
typedef int choose_function(const int64_t *sizes, int64_t workers, int64_t *tiles);

typedef struct tests {
    harness h;
    uint32_t sizes, count;
    uir_igraph *kernels[MAX_KERNELS];
    uint64_t passed, failed, skipped, listed;
    char folder[200];
} tests;

static void fail(tests *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (t->failed++ < 20) {
        fputs("FAILED ", stdout);
        vprintf(format, arguments);
        putchar('\n');
    }
    va_end(arguments);
    harness_say(&t->h, "said");
}

/* ---- reading ---- */
/* Whether machine.h has such a type. */
static bool is_type(uir_dtype dtype) {
    return uir_dtype_bits(dtype) >= (uir_dtype_is_float(dtype) ? 16 : 8);
}

/* Whether the machine has its types, and the harness room for it. */
static bool is_for_machine(const uir_igraph *g) {
    uint32_t buffers = 0;
    for (uint32_t i = 0; i < g->pointers.count; i++) {
        if (!is_type(g->pointers.data[i].dtype)) return false;
        buffers += g->pointers.data[i].role != UIR_IPOINTER_LOCAL;
    }
    return buffers <= MAX_BUFFERS && uir_igraph_count_symbols(g, UIR_ISYMBOL_DIM) <= MAX_DIMS &&
           uir_igraph_count_symbols(g, UIR_ISYMBOL_TILE) <= MAX_DIMS;
}

static void take_kernel(tests *t, const char *text, size_t length, const char *file) {
    uir_igraph *igraph = harness_read(&t->h, text, length, file);
    if (!igraph) {
        fail(t, "%s: a kernel is refused", file);
    } else if (!is_for_machine(igraph) || t->count == MAX_KERNELS) {
        t->skipped++;
        uir_igraph_destroy(igraph);
    } else {
        t->kernels[t->count++] = igraph;
    }
}

static void read_file(tests *t, const char *path) {
    FILE *file = fopen(path, "rb");
    size_t length = 0, capacity = 64u << 20;
    char *text = malloc(capacity);
    if (file && text) length = fread(text, 1, capacity - 1, file);
    if (!file || !length) fail(t, "cannot read %s", path);
    if (text) text[length] = 0;
    /* A kernel begins at a line "igraph @" and ends with a line "}". */
    for (char *at = text; length && at;) {
        char *begin = !strncmp(at, "igraph @", 8) ? at : strstr(at, "\nigraph @"), *end;
        if (!begin) break;
        begin += *begin == '\n';
        end = strstr(begin, "\n}");
        if (!end) break;
        take_kernel(t, begin, (size_t)(end + 2 - begin), path);
        at = end + 2;
    }
    if (file) fclose(file);
    free(text);
}

static int compare_names(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void read_path(tests *t, const char *path) {
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, compare_names);
    if (count < 0) read_file(t, path);
    for (int i = 0; i < count; i++) {
        char name[600];
        const char *dot = strrchr(entries[i]->d_name, '.');
        snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        if (dot && !strcmp(dot, ".igraph")) read_file(t, name);
        free(entries[i]);
    }
    if (count >= 0) free(entries);
}

static void take_random(tests *t, uint64_t count) {
    for (uint64_t seed = 1; seed <= count; seed++) {
        uir_text text;
        uir_text_init(&text, &t->h.allocator);
        if (!generate_igraph(seed, false, &text)) take_kernel(t, text.data, text.length, "a random kernel");
        uir_text_deinit(&text);
    }
}

/* The CPU's instructions of the machine's types. */
static uint32_t list_instructions(tests *t, single *out) {
    uir_cpu_device device;
    uint32_t kept = 0, count = uir_cpu_describe(NULL, NULL, &device) == UIR_STATUS_OK
                                   ? single_list(&device.machine, out, MAX_SINGLES)
                                   : 0;
    if (!count || count > MAX_SINGLES) fail(t, "%u instructions", count);
    for (uint32_t i = 0; i < count && count <= MAX_SINGLES; i++) {
        const uir_dtype dtypes[] = {out[i].dtype, out[i].dtype_b, out[i].dtype_c};
        bool has = true;
        for (int k = 0; k < 3; k++) has &= dtypes[k] == UIR_DTYPE_NONE || is_type(dtypes[k]);
        if (has) out[kept++] = out[i];
    }
    return kept;
}

/* Some instructions a kernel; the forms of their operands change from one to the next. */
static void take_instructions(tests *t) {
    static single singles[MAX_SINGLES];
    uint32_t count = list_instructions(t, singles);
    for (uint32_t at = 0; at < count;) {
        single_kernel kernel;
        uir_text text;
        uir_text_init(&text, &t->h.allocator);
        single_begin(&kernel, &t->h.allocator);
        for (uint32_t k = 0; k < SINGLES && at < count && kernel.pointer_count < MAX_BUFFERS - 2; k++, at++)
            if (!single_add(&kernel, &singles[at], (single_form)(at % SINGLE_FORM_COUNT)))
                (void)single_add(&kernel, &singles[at], SINGLE_PLAIN);
        single_end(&kernel, "instructions", 6, 150, &text);
        take_kernel(t, text.data, text.length, "kernels of single instructions");
        uir_text_deinit(&text);
    }
}

/* ---- compiling ---- */
static bool compile(tests *t, const char *source, const char *object) {
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
        fail(t, "%s does not compile", source);
        return false;
    }
    return true;
}

/* The emitted kernels, loaded; NULL where that failed. */
static void *load(tests *t, uir_igraph *const *kernels, uint32_t count) {
    char source[260], object[260];
    uir_text text;
    void *library = NULL;
    snprintf(source, sizeof source, "%s/kernels.c", t->folder);
    snprintf(object, sizeof object, "%s/kernels%u.so", t->folder, (unsigned)(t->passed + t->failed));
    uir_text_init(&text, &t->h.allocator);
    for (uint32_t i = 0; i < count; i++)
        if (uir_skeleton_emit(kernels[i], i, &text, &t->h.diagnostics) != UIR_STATUS_OK)
            fail(t, "@%s is not emitted", kernels[i]->name);
    for (const char *at = text.data; at && (at = strstr(at, "make_list")) != NULL; at++) t->listed++;
    FILE *file = fopen(source, "wb");
    bool written = file && fwrite(text.data, 1, text.length, file) == text.length;
    if (file) written &= fclose(file) == 0;
    if (!written)
        fail(t, "cannot write %s", source);
    else if (compile(t, source, object) && !(library = dlopen(object, RTLD_NOW | RTLD_LOCAL)))
        fail(t, "%s", dlerror());
    uir_text_deinit(&text);
    unlink(object);
    if (library) unlink(source);
    return library;
}

/* A function of the kernel, by what follows its name. */
static void *find(tests *t, void *library, const uir_igraph *igraph, uint32_t index, const char *ending) {
    char symbol[UIR_C_SYMBOL_SIZE], name[UIR_C_SYMBOL_SIZE + 20];
    uir_c_symbol(igraph, index, symbol);
    snprintf(name, sizeof name, "%s%s", symbol, ending);
    void *found = dlsym(library, name);
    if (!found) fail(t, "@%s: there is no %s", igraph->name, name);
    return found;
}

/* ---- running ---- */
static void run_case(tests *t, harness_case *c, kernel_function *kernel) {
    char where[300], what[300];
    size_t size;
    harness_describe(c, where, sizeof where);
    harness_reset(c);
    uir_kernel_arguments arguments = harness_arguments(c);
    if (uir_igraph_interpret(c->igraph, &arguments, NULL, &t->h.diagnostics) != UIR_STATUS_OK) {
        fail(t, "%s: the interpreter refuses", where);
        return;
    }
    void *expected = harness_outputs(&t->h, c, &size);
    int64_t sizes[2 * MAX_DIMS];
    uint32_t dims = uir_igraph_count_symbols(c->igraph, UIR_ISYMBOL_DIM),
             tiles = uir_igraph_count_symbols(c->igraph, UIR_ISYMBOL_TILE);
    memcpy(sizes, c->dims, dims * sizeof *sizes);
    memcpy(sizes + dims, c->tiles, tiles * sizeof *sizes);
    harness_reset(c);
    kernel(sizes, c->buffer);
    void *actual = harness_outputs(&t->h, c, &size);
    const char *difference = harness_differ(c, expected, actual, what, sizeof what);
    if (difference)
        fail(t, "%s: %s", where, difference);
    else
        t->passed++;
    uir_release(&t->h.allocator, expected, size);
    uir_release(&t->h.allocator, actual, size);
}

/* The emitted tiling function and the kernel's own give the same tiles, or neither gives any. */
static void compare_choice(tests *t, const harness_case *c, choose_function *choose) {
    int64_t mine[MAX_DIMS] = {0}, theirs[MAX_DIMS] = {0}, dims[MAX_DIMS];
    uint32_t count = uir_igraph_count_symbols(c->igraph, UIR_ISYMBOL_DIM);
    memcpy(dims, c->dims, sizeof dims);
    for (int64_t workers = 1; workers < 40; workers += 3) {
        bool is_for = uir_igraph_choose_tiles(c->igraph, dims, workers, mine, NULL) == UIR_STATUS_OK;
        bool same = choose(dims, workers, theirs) == is_for && (!is_for || !memcmp(mine, theirs, sizeof mine));
        if (!same) fail(t, "@%s: another choice of tiles for %lld workers", c->igraph->name, (long long)workers);
        t->passed += same;
        for (uint32_t d = 0; d < count; d++)
            if (!random_below(&t->h.random, 3)) dims[d] = (int64_t)random_below(&t->h.random, 2000);
    }
}

static void run_kernel(tests *t, void *library, const uir_igraph *igraph, uint32_t index) {
    kernel_function *kernel;
    choose_function *choose;
    *(void **)&kernel = find(t, library, igraph, index, "");
    *(void **)&choose = find(t, library, igraph, index, "_choose");
    uint32_t ran = 0;
    for (uint32_t round = 0; round < t->sizes && kernel && choose; round++) {
        harness_case c;
        /* Primes first, then what lies around the tiles; the least and ones, of which there is little to see, last. */
        if (!harness_bind(&t->h, igraph, (round + 2) % (t->sizes < 3 ? 3 : t->sizes), &c)) continue;
        run_case(t, &c, kernel);
        compare_choice(t, &c, choose);
        harness_free(&t->h, &c);
        ran++;
    }
    t->skipped += ran == 0; /* of sizes too large to be interpreted here */
    uir_diagnostics_clear(&t->h.diagnostics);
}

static void run_all(tests *t) {
    for (uint32_t first = 0; first < t->count; first += BATCH) {
        uint32_t count = t->count - first < BATCH ? t->count - first : BATCH;
        void *library = load(t, t->kernels + first, count);
        for (uint32_t i = 0; i < count && library; i++) run_kernel(t, library, t->kernels[first + i], i);
        if (library) dlclose(library);
        for (uint32_t i = 0; i < count; i++) uir_igraph_destroy(t->kernels[first + i]);
    }
}

static void add_devices(tests *t, const char *path) {
    static char text[1 << 16];
    const uir_machine *first;
    FILE *file = fopen(path, "rb");
    size_t length = file ? fread(text, 1, sizeof text, file) : 0;
    if (uir_compile_machines_add(t->h.devices, text, length, path, &t->h.diagnostics, &first) != UIR_STATUS_OK)
        fail(t, "no devices in %s", path);
    if (file) fclose(file);
}

int main(int argc, char **argv) {
    static tests t;
    const char *temporary = getenv("TMPDIR");
    if (argc < 3) {
        fputs("uir-skeleton-kernels SIZES [--device-file F] [--random N] [--instructions] FILE...\n", stderr);
        return 2;
    }
    snprintf(t.folder, sizeof t.folder, "%s/uir-skeleton-XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(t.folder)) {
        perror(t.folder);
        return 1;
    }
    harness_init(&t.h, getenv("UIR_SEED") ? strtoull(getenv("UIR_SEED"), NULL, 0) : 1);
    t.sizes = (uint32_t)atoi(argv[1]);
    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[i], "--device-file") && i + 1 < argc)
            add_devices(&t, argv[++i]);
        else if (!strcmp(argv[i], "--random") && i + 1 < argc)
            take_random(&t, strtoull(argv[++i], NULL, 0));
        else if (!strcmp(argv[i], "--instructions"))
            take_instructions(&t);
        else
            read_path(&t, argv[i]);
    }
    run_all(&t);
    printf("%u kernels, %llu operands by lists\n", t.count, (unsigned long long)t.listed);
    printf("%llu passed, %llu failed, %llu skipped\n", (unsigned long long)t.passed, (unsigned long long)t.failed,
           (unsigned long long)t.skipped);
    harness_deinit(&t.h);
    if (!t.failed) rmdir(t.folder);
    return t.failed != 0 || t.passed == 0;
}
