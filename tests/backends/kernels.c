#define _DEFAULT_SOURCE
#include "tests/backends/kernels.h"

#include "ir/kernel/igraph_synchronise.h"
#include "tests/ir/kernel/campaign/generate.h"
#include "tests/ir/kernel/campaign/single.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SINGLES = 4000, SINGLES = 16 };

void kernel_tests_fail(kernel_tests *t, const char *format, ...) {
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
/* Whether the machine has its types, and the harness room for it. */
static bool is_for_machine(const kernel_tests *t, const uir_igraph *g) {
    uint32_t buffers = 0;
    for (uint32_t i = 0; i < g->pointers.count; i++) {
        if (!t->has_type(g->pointers.data[i].dtype)) return false;
        buffers += g->pointers.data[i].role != UIR_IPOINTER_LOCAL;
    }
    return buffers <= KERNEL_TESTS_MAX_BUFFERS &&
           uir_igraph_count_symbols(g, UIR_ISYMBOL_DIM) <= KERNEL_TESTS_MAX_DIMS &&
           uir_igraph_count_symbols(g, UIR_ISYMBOL_TILE) <= KERNEL_TESTS_MAX_DIMS;
}

/* A kernel in program order, of a machine whose units have threads, with its barriers. */
static uir_igraph *synchronise(kernel_tests *t, const char *text, size_t length, const char *file) {
    uir_igraph *igraph = NULL;
    uir_diagnostics *diagnostics = &t->h.diagnostics;
    uir_status status = uir_igraph_parse(&t->h.allocator, uir_compile_machines_get(t->h.devices), text, length, file,
                                         diagnostics, &igraph);
    if (status == UIR_STATUS_OK) status = uir_igraph_verify(igraph, diagnostics);
    if (status == UIR_STATUS_OK) status = uir_igraph_synchronise(igraph);
    if (status == UIR_STATUS_OK) status = uir_igraph_verify(igraph, diagnostics);
    if (status == UIR_STATUS_OK) status = uir_igraph_form_runs(igraph, diagnostics);
    if (status == UIR_STATUS_OK) return igraph;
    uir_igraph_destroy(igraph);
    return NULL;
}

static void take_kernel(kernel_tests *t, const char *text, size_t length, const char *file, bool is_synchronised) {
    uir_igraph *igraph = is_synchronised ? harness_read(&t->h, text, length, file) : synchronise(t, text, length, file);
    if (!igraph) {
        kernel_tests_fail(t, "%s: a kernel is refused", file);
    } else if (!is_for_machine(t, igraph) || t->count == KERNEL_TESTS_MAX) {
        t->skipped++;
        uir_igraph_destroy(igraph);
    } else {
        t->kernels[t->count++] = igraph;
    }
}

static void read_file(kernel_tests *t, const char *path) {
    FILE *file = fopen(path, "rb");
    size_t length = 0, capacity = 64u << 20;
    char *text = malloc(capacity);
    if (file && text) length = fread(text, 1, capacity - 1, file);
    if (!file || !length) kernel_tests_fail(t, "cannot read %s", path);
    if (text) text[length] = 0;
    /* A kernel begins at a line "igraph @" and ends with a line "}". */
    for (char *at = text; length && at;) {
        char *begin = !strncmp(at, "igraph @", 8) ? at : strstr(at, "\nigraph @"), *end;
        if (!begin) break;
        begin += *begin == '\n';
        end = strstr(begin, "\n}");
        if (!end) break;
        take_kernel(t, begin, (size_t)(end + 2 - begin), path, true);
        at = end + 2;
    }
    if (file) fclose(file);
    free(text);
}

static int compare_names(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void read_path(kernel_tests *t, const char *path) {
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

/* The tested machine; NULL: none is named, or it is unknown. */
static const uir_machine *find_machine(kernel_tests *t) {
    const uir_machine *machine = NULL;
    if (t->machine && uir_compile_machines_find(t->h.devices, t->machine, &t->h.diagnostics, &machine) != UIR_STATUS_OK)
        kernel_tests_fail(t, "there is no machine %s", t->machine);
    return machine;
}

/* A text whose kernels are on the CPU becomes one of the tested machine's. */
static void take_generated(kernel_tests *t, const uir_text *made, const char *file) {
    static const char cpu[] = " on cpu {";
    const uir_machine *machine = find_machine(t);
    const char *at = machine ? strstr(made->data, cpu) : NULL;
    uir_text text;
    if (!at) {
        take_kernel(t, made->data, made->length, file, true);
        return;
    }
    uir_text_init(&text, &t->h.allocator);
    uir_text_append_format(&text, "%.*s on %s \"%s\" {%s", (int)(at - made->data), made->data, machine->name,
                           machine->chip, at + strlen(cpu));
    take_kernel(t, text.data, text.length, file, !uir_igraph_needs_syncs(machine));
    uir_text_deinit(&text);
}

static void take_random(kernel_tests *t, uint64_t first, uint64_t count) {
    for (uint64_t seed = first; seed < first + count; seed++) {
        uir_text text;
        uir_text_init(&text, &t->h.allocator);
        if (!generate_igraph(seed, false, &text)) take_generated(t, &text, "a random kernel");
        uir_text_deinit(&text);
    }
}

/* The instructions of the tested machine, or the CPU's, of its types. */
static uint32_t list_instructions(kernel_tests *t, single *out) {
    uir_cpu_device cpu;
    const uir_machine *machine = find_machine(t);
    if (!machine && uir_cpu_describe(NULL, NULL, &cpu) == UIR_STATUS_OK) machine = &cpu.machine;
    uint32_t kept = 0, count = machine ? single_list(machine, out, MAX_SINGLES) : 0;
    if (!count || count > MAX_SINGLES) kernel_tests_fail(t, "%u instructions", count);
    for (uint32_t i = 0; i < count && count <= MAX_SINGLES; i++) {
        const uir_dtype dtypes[] = {out[i].dtype, out[i].dtype_b, out[i].dtype_c};
        bool has = true;
        for (int k = 0; k < 3; k++) has &= dtypes[k] == UIR_DTYPE_NONE || t->has_type(dtypes[k]);
        if (has) out[kept++] = out[i];
    }
    return kept;
}

/* Some instructions a kernel; the forms of their operands change from one to the next. */
static void take_instructions(kernel_tests *t) {
    static single singles[MAX_SINGLES];
    uint32_t count = list_instructions(t, singles);
    for (uint32_t at = 0; at < count;) {
        single_kernel kernel;
        uir_text text;
        uir_text_init(&text, &t->h.allocator);
        single_begin(&kernel, &t->h.allocator);
        for (uint32_t k = 0; k < SINGLES && at < count && kernel.pointer_count < KERNEL_TESTS_MAX_BUFFERS - 2;
             k++, at++)
            if (!single_add(&kernel, &singles[at], (single_form)(at % SINGLE_FORM_COUNT)))
                (void)single_add(&kernel, &singles[at], SINGLE_PLAIN);
        single_end(&kernel, "instructions", 6, 150, &text);
        take_generated(t, &text, "kernels of single instructions");
        uir_text_deinit(&text);
    }
}

/* ---- options ---- */
static void add_devices(kernel_tests *t, const char *path) {
    static char text[1 << 16];
    const uir_machine *first;
    FILE *file = fopen(path, "rb");
    size_t length = file ? fread(text, 1, sizeof text, file) : 0;
    if (uir_compile_machines_add(t->h.devices, text, length, path, &t->h.diagnostics, &first) != UIR_STATUS_OK)
        kernel_tests_fail(t, "no devices in %s", path);
    if (file) fclose(file);
}

bool kernel_tests_read(kernel_tests *t, int argc, char **argv) {
    if (argc < 3) return false;
    harness_init(&t->h, getenv("UIR_SEED") ? strtoull(getenv("UIR_SEED"), NULL, 0) : 1);
    uint64_t first = 1;
    t->sizes = (uint32_t)atoi(argv[1]);
    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[i], "--device-file") && i + 1 < argc)
            add_devices(t, argv[++i]);
        else if (!strcmp(argv[i], "--random") && i + 1 < argc)
            take_random(t, first, strtoull(argv[++i], NULL, 0));
        else if (!strcmp(argv[i], "--from") && i + 1 < argc)
            first = strtoull(argv[++i], NULL, 0);
        else if (!strcmp(argv[i], "--instructions"))
            take_instructions(t);
        else
            read_path(t, argv[i]);
    }
    return true;
}

/* ---- running ---- */
static void run_case(kernel_tests *t, uint32_t index, harness_case *c) {
    char where[300], what[300];
    size_t size;
    harness_describe(c, where, sizeof where);
    harness_reset(c);
    uir_kernel_arguments arguments = harness_arguments(c);
    if (uir_igraph_interpret(c->igraph, &arguments, NULL, &t->h.diagnostics) != UIR_STATUS_OK) {
        kernel_tests_fail(t, "%s: the interpreter refuses", where);
        return;
    }
    void *expected = harness_outputs(&t->h, c, &size);
    harness_reset(c);
    bool ran = t->run(t, index, c);
    void *actual = harness_outputs(&t->h, c, &size);
    const char *difference = harness_differ(c, expected, actual, what, sizeof what);
    if (!ran || difference)
        kernel_tests_fail(t, "%s: %s", where, ran ? difference : "it does not run");
    else
        t->passed++;
    uir_release(&t->h.allocator, expected, size);
    uir_release(&t->h.allocator, actual, size);
}

void kernel_tests_run(kernel_tests *t, const uir_igraph *igraph, uint32_t index) {
    uint32_t ran = 0;
    for (uint32_t round = 0; round < t->sizes; round++) {
        harness_case c;
        /* Primes first, then what lies around the tiles; the least and ones, of which there is little to see, last. */
        if (!harness_bind(&t->h, igraph, (round + 2) % (t->sizes < 3 ? 3 : t->sizes), &c)) continue;
        run_case(t, index, &c);
        if (t->also) t->also(t, index, &c);
        harness_free(&t->h, &c);
        ran++;
    }
    t->skipped += ran == 0; /* of sizes too large to be interpreted here */
    uir_diagnostics_clear(&t->h.diagnostics);
}
