/* The iGraph campaigns. Every one is seeded (UIR_SEED) and repeatable.
 *
 *   random COUNT [SIZES [FIRST]]  every instruction of the device's table, then COUNT random kernels: accepted, and the
 *                                 same bits on every engine at SIZES sizes; ends with the table of what occurred
 *   in-place COUNT [SIZES [FIRST]]  COUNT random kernels that read and write one pointer, likewise
 *   zoo SIZES FILE...             the kernels of files, likewise; those of other devices are interpreted
 *   edits COUNT SIZES COMPILED FILE...  edited texts of files: what the verifier accepts runs clean in the interpreter
 * at SIZES sizes, COMPILED of them also compiled with the sanitizers text COUNT FILE...            damaged texts
 * through parser and verifier bytecode COUNT FILE...        damaged bytecode through the validator, and run where it is
 * accepted
 *
 * FILE may be a folder: its .igraph files. The engines are those of engines.h. Ends with "N passed, M failed, S
 * skipped". */
#define _DEFAULT_SOURCE
#include "campaign.h"
#include "engines.h"
#include "generate.h"
#include "single.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BATCH = 40, SINGLES = 16, MAX_SINGLES = 4000, DEFAULT_SIZES = 8 };

/* One case on the interpreter and on every engine. */
static void compare_case(harness *h, engines *e, uint32_t index, harness_case *c, const uir_vm_kernel *vm,
                         job_totals *t) {
    char what[200];
    size_t size;
    uint32_t failed = 0;
    harness_describe(c, t->where, sizeof t->where);
    harness_reset(c);
    uir_kernel_arguments arguments = harness_arguments(c);
    if (uir_igraph_interpret(c->igraph, &arguments, NULL, &h->diagnostics) != UIR_STATUS_OK) {
        job_fail(t, "%s: the interpreter refuses", t->where);
        harness_say(h, "interpreter");
        return;
    }
    void *expected = harness_outputs(h, c, &size);
    for (uint32_t i = 0; i < e->count; i++) {
        if (!engine_is_ready(&e->list[i])) continue;
        if (engine_run(e, &e->list[i], h, index, c, vm) != UIR_STATUS_OK) {
            job_fail(t, "%s: %s refuses", t->where, e->list[i].name);
            harness_say(h, e->list[i].name);
            failed++;
            continue;
        }
        void *actual = harness_outputs(h, c, &size);
        const char *difference = harness_differ(c, expected, actual, what, sizeof what);
        if (difference) {
            job_fail(t, "%s on %s: %s", t->where, e->list[i].name, difference);
            failed++;
        }
        uir_release(&h->allocator, actual, size);
    }
    uir_release(&h->allocator, expected, size);
    t->passed += failed == 0;
}

static uir_vm_kernel *load_vm(harness *h, const uir_igraph *igraph, job_totals *t) {
    uir_text bytes;
    uir_vm_kernel *vm = NULL;
    uir_text_init(&bytes, &h->allocator);
    if (uir_vm_encode(igraph, &h->diagnostics, &bytes) != UIR_STATUS_OK ||
        uir_vm_load(&h->allocator, bytes.data, bytes.length, &h->diagnostics, &vm) != UIR_STATUS_OK) {
        job_fail(t, "@%s: no bytecode", igraph->name);
        harness_say(h, "vm");
    }
    uir_text_deinit(&bytes);
    return vm;
}

static void show(const uir_igraph *igraph) {
    uir_text text;
    uir_text_init(&text, &igraph->allocator);
    uir_igraph_print(igraph, &text);
    if (text.data) fprintf(stderr, "%s\n", text.data);
    uir_text_deinit(&text);
}

static void run_kernel(harness *h, engines *e, uint32_t index, uir_igraph *igraph, uint32_t sizes, job_totals *t) {
    uir_vm_kernel *vm = load_vm(h, igraph, t);
    uint32_t ran = 0;
    uint64_t failed = t->failed;
    for (uint32_t round = 0; round < sizes && vm && t->failed < failed + 4; round++) {
        harness_case c;
        if (!harness_bind(h, igraph, round, &c)) continue;
        compare_case(h, e, index, &c, vm, t);
        harness_free(h, &c);
        ran++;
    }
    if (!ran && vm) job_fail(t, "@%s: no sizes satisfy its declarations", igraph->name);
    if (t->failed > failed && failed < 3) show(igraph);
    uir_vm_destroy(vm);
}

/* Takes the kernels. */
static void run_batch(harness *h, uir_igraph **kernels, uint32_t count, uint32_t sizes, uint64_t turn,
                      const char *flags, job_totals *t) {
    engines e;
    char failed[300];
    if (count == 0) return;
    engines_open(&e, false);
    if (!flags) engines_take_turns(&e, turn); /* what the flags make quick to compile goes to all */
    snprintf(t->where, sizeof t->where, "compiling @%s and %u more", kernels[0]->name, count - 1);
    if (!engines_compile(&e, h, (const uir_igraph *const *)kernels, count, flags, failed, sizeof failed))
        job_fail(t, "@%s and %u more do not compile cleanly by %s", kernels[0]->name, count - 1, failed);
    harness_say(h, "compile");
    for (uint32_t i = 0; i < count; i++) {
        run_kernel(h, &e, i, kernels[i], sizes, t);
        coverage_add(&t->coverage, kernels[i]);
        uir_igraph_destroy(kernels[i]);
    }
    engines_close(&e);
}

/* ---- random ---- */
typedef struct random_campaign {
    uint64_t count, first;
    uint32_t sizes, single_count, single_chunks;
    bool in_place;
    single *singles;
} random_campaign;

/* Kernels whose slices are drawn freely: how many there were, and how many were refused. */
enum { FREE_DRAWN, FREE_REFUSED };

static bool only_overlaps(const harness *h) {
    const uir_diagnostic *d = h->diagnostics.first;
    bool overlaps = d != NULL;
    for (; d; d = d->next) overlaps &= d->severity != UIR_SEVERITY_ERROR || strstr(d->message, "overlaps the result");
    return overlaps;
}

static void take(harness *h, const uir_text *text, const char *name, bool free, uir_igraph **batch, uint32_t *n,
                 job_totals *t) {
    snprintf(t->where, sizeof t->where, "reading %s", name);
    batch[*n] = harness_read(h, text->data, text->length, name);
    t->counts[FREE_DRAWN] += free;
    if (batch[*n]) {
        ++*n;
        return;
    }
    if (free && only_overlaps(h)) {
        t->counts[FREE_REFUSED]++;
        uir_diagnostics_clear(&h->diagnostics);
        return;
    }
    job_fail(t, "kernel %s is refused", name);
    harness_say(h, name);
    if (t->failed <= 3) fprintf(stderr, "%.*s\n", (int)text->length, text->data);
}

/* Kernels of SINGLES instructions each; the forms change from one to the next. */
static void make_singles(harness *h, const random_campaign *r, uint64_t chunk, uir_igraph **batch, uint32_t *n,
                         job_totals *t) {
    uint64_t begin = r->single_count * chunk / r->single_chunks, end = r->single_count * (chunk + 1) / r->single_chunks;
    for (uint64_t at = begin; at < end && *n < BATCH;) {
        single_kernel kernel;
        uir_text text;
        char name[40];
        single_begin(&kernel, &h->allocator);
        uir_text_init(&text, &h->allocator);
        snprintf(name, sizeof name, "singles%llu", (unsigned long long)at);
        for (uint32_t k = 0; k < SINGLES && at < end && kernel.pointer_count < 58; k++, at++) {
            single_form form = (single_form)((at + h->random) % SINGLE_FORM_COUNT);
            if (!single_add(&kernel, &r->singles[at], form)) (void)single_add(&kernel, &r->singles[at], SINGLE_PLAIN);
        }
        single_end(&kernel, name, 6, 150, &text);
        take(h, &text, name, false, batch, n, t);
        uir_text_deinit(&text);
    }
}

static void random_chunk(harness *h, uint64_t chunk, void *user, job_totals *t) {
    const random_campaign *r = user;
    uir_igraph *batch[BATCH];
    uint32_t n = 0;
    if (chunk < r->single_chunks) {
        make_singles(h, r, chunk, batch, &n, t);
    } else {
        uint64_t begin = (chunk - r->single_chunks) * BATCH, end = begin + BATCH < r->count ? begin + BATCH : r->count;
        for (uint64_t k = begin; k < end; k++) {
            uir_text text;
            char name[40];
            uir_text_init(&text, &h->allocator);
            snprintf(name, sizeof name, "k%llu", (unsigned long long)(r->first + k));
            bool free = generate_igraph(r->first + k, r->in_place, &text);
            take(h, &text, name, free, batch, &n, t);
            uir_text_deinit(&text);
        }
    }
    /* Nearly a thousand instructions for every engine: what matters here is what the source says, so compile fast. */
    run_batch(h, batch, n, r->sizes, chunk, chunk < r->single_chunks ? "-O0" : NULL, t);
}

static void campaign_random(uint64_t seed, bool in_place, uint64_t count, uint32_t sizes, uint64_t first,
                            job_totals *t) {
    random_campaign r = {.count = count, .first = first, .sizes = sizes, .in_place = in_place};
    bool all = first == 1 && !in_place; /* every instruction too */
    uir_cpu_device device;
    if (uir_cpu_describe(NULL, NULL, &device) != UIR_STATUS_OK) {
        job_fail(t, "no description of this machine");
        return;
    }
    r.singles = calloc(MAX_SINGLES, sizeof *r.singles);
    r.single_count = all && r.singles ? single_list(&device.machine, r.singles, MAX_SINGLES) : 0;
    r.single_chunks = (r.single_count + SINGLES * 25 - 1) / (SINGLES * 25);
    jobs_run(seed, r.single_chunks + (count + BATCH - 1) / BATCH, random_chunk, &r, t);
    uint32_t missing = in_place ? 0 : coverage_print(&t->coverage, &device.machine);
    printf("%llu of %llu kernels with slices drawn freely were refused, as operands overlapped results\n",
           (unsigned long long)t->counts[FREE_REFUSED], (unsigned long long)t->counts[FREE_DRAWN]);
    if (2 * t->counts[FREE_REFUSED] > t->counts[FREE_DRAWN]) job_fail(t, "more than half of them");
    if (missing && all && count >= 100) job_fail(t, "%u things that the CPU allows never occurred", missing);
    free(r.singles);
}

/* ---- files ---- */
static bool read_text(const char *path, text_file *out) {
    *out = (text_file){{0}, NULL, 0};
    snprintf(out->path, sizeof out->path, "%s", path);
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "campaign: cannot read '%s'\n", path);
        return false;
    }
    out->text = calloc(1, 1 << 20);
    if (out->text) out->length = fread(out->text, 1, (1 << 20) - 1, file);
    fclose(file);
    return out->text != NULL;
}

enum { MAX_FILES = 256 };

static int compare_paths(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The .igraph files of a folder, by name. */
static bool add_folder(const char *folder, text_files *out) {
    char *paths[MAX_FILES];
    uint32_t count = 0;
    DIR *d = opendir(folder);
    bool fine = d != NULL;
    for (struct dirent *entry; d && (entry = readdir(d)) && count < MAX_FILES;) {
        size_t length = strlen(entry->d_name), size = strlen(folder) + length + 2;
        if (length < 8 || strcmp(entry->d_name + length - 7, ".igraph")) continue;
        paths[count] = malloc(size);
        if (paths[count]) snprintf(paths[count++], size, "%s/%s", folder, entry->d_name);
    }
    if (d) closedir(d);
    qsort(paths, count, sizeof *paths, compare_paths);
    for (uint32_t i = 0; i < count; i++) {
        fine = fine && out->count < MAX_FILES && read_text(paths[i], &out->files[out->count]);
        out->count += fine;
        free(paths[i]);
    }
    return fine;
}

/* Files, and folders that hold them. */
static bool read_texts(char **paths, int count, text_files *out) {
    out->files = calloc(MAX_FILES + 1, sizeof *out->files);
    bool fine = out->files != NULL;
    for (int i = 0; i < count && fine; i++) {
        struct stat about;
        if (stat(paths[i], &about) == 0 && S_ISDIR(about.st_mode)) {
            fine = add_folder(paths[i], out);
        } else {
            fine = out->count < MAX_FILES && read_text(paths[i], &out->files[out->count]);
            out->count += fine;
        }
    }
    return fine && out->count;
}

static void free_texts(text_files *texts) {
    for (uint32_t i = 0; i < texts->count && texts->files; i++) free(texts->files[i].text);
    free(texts->files);
}

typedef struct zoo_campaign {
    const text_files *files;
    uint32_t sizes;
} zoo_campaign;

static void interpret_only(harness *h, const uir_igraph *igraph, uint32_t sizes, job_totals *t) {
    uint32_t ran = 0;
    for (uint32_t round = 0; round < sizes; round++) {
        harness_case c;
        if (!harness_bind(h, igraph, round, &c)) continue;
        uir_kernel_arguments arguments = harness_arguments(&c);
        harness_reset(&c);
        harness_describe(&c, t->where, sizeof t->where);
        if (uir_igraph_interpret(igraph, &arguments, NULL, &h->diagnostics) == UIR_STATUS_OK)
            t->passed++;
        else
            job_fail(t, "%s on %s: the interpreter refuses", t->where, igraph->machine->name);
        harness_say(h, igraph->name);
        harness_free(h, &c);
        ran++;
    }
    if (!ran) job_fail(t, "@%s on %s: no sizes satisfy its declarations", igraph->name, igraph->machine->name);
}

static void zoo_chunk(harness *h, uint64_t chunk, void *user, job_totals *t) {
    const zoo_campaign *zoo = user;
    const text_file *f = &zoo->files->files[chunk];
    uir_igraph_list list = {0};
    uir_igraph *batch[BATCH];
    uint32_t n = 0;
    snprintf(t->where, sizeof t->where, "reading %s", f->path);
    if (uir_igraph_parse_list(&h->allocator, uir_compile_machines_get(h->devices), f->text, f->length, f->path,
                              &h->diagnostics, &list) != UIR_STATUS_OK) {
        job_fail(t, "%s does not parse", f->path);
        harness_say(h, f->path);
    }
    for (uint32_t k = 0; k < list.count && n < BATCH; k++) {
        uir_text text;
        uir_text_init(&text, &h->allocator);
        uir_igraph_print(list.igraphs[k], &text);
        uir_igraph *igraph = harness_read(h, text.data, text.length, f->path);
        uir_text_deinit(&text);
        if (!igraph) {
            job_fail(t, "%s: @%s is refused", f->path, list.igraphs[k]->name);
            harness_say(h, f->path);
        } else if (strcmp(igraph->machine->name, "cpu")) {
            interpret_only(h, igraph, zoo->sizes, t);
            uir_igraph_destroy(igraph);
        } else {
            batch[n++] = igraph;
        }
    }
    uir_igraph_list_deinit(&list);
    run_batch(h, batch, n, zoo->sizes, chunk, NULL, t);
}

/* ---- */
static int say_usage(void) {
    fprintf(
        stderr,
        "campaign: random|in-place COUNT [SIZES [FIRST]] | zoo SIZES FILE... | edits COUNT SIZES COMPILED FILE... | "
        "text COUNT FILE... | bytecode COUNT FILE...\n");
    return 2;
}

int main(int argc, char **argv) {
    static job_totals t;
    const char *seed_text = getenv("UIR_SEED");
    uint64_t seed = seed_text ? strtoull(seed_text, NULL, 10) : 1;
    if (argc < 3) return say_usage();
    uint64_t count = strtoull(argv[2], NULL, 10);
    bool edits = !strcmp(argv[1], "edits"), random = !strcmp(argv[1], "random"), zoo = !strcmp(argv[1], "zoo");
    bool in_place = !strcmp(argv[1], "in-place");
    random |= in_place;
    int first_file = edits ? 5 : 3;
    text_files files = {NULL, 0};
    if (!random && (argc <= first_file || !read_texts(argv + first_file, argc - first_file, &files)))
        return say_usage();
    if (random || zoo) {
        engines e;
        engines_open(&e, true);
        t.skipped += engines_missing(&e);
        engines_close(&e);
    }
    if (random) {
        campaign_random(seed, in_place, count, argc > 3 ? (uint32_t)atoi(argv[3]) : DEFAULT_SIZES,
                        argc > 4 ? strtoull(argv[4], NULL, 10) : 1, &t);
    } else if (zoo) {
        zoo_campaign z = {&files, (uint32_t)count};
        jobs_run(seed, files.count, zoo_chunk, &z, &t);
    } else if (edits) {
        campaign_edits(seed, count, (uint32_t)atoi(argv[3]), strtoull(argv[4], NULL, 10), &files, &t);
    } else if (!strcmp(argv[1], "text")) {
        campaign_text(seed, count, &files, &t);
    } else if (!strcmp(argv[1], "bytecode")) {
        campaign_bytecode(seed, count, &files, &t);
    } else {
        return say_usage();
    }
    free_texts(&files);
    printf("%llu passed, %llu failed, %llu skipped\n", (unsigned long long)t.passed, (unsigned long long)t.failed,
           (unsigned long long)t.skipped);
    return t.failed ? 1 : 0;
}
