/* The iGraph campaigns. Every one is seeded and repeatable.
 *
 *   campaign random COUNT [FIRST]         random kernels: accepted, and the same bits on every engine
 *   campaign zoo SIZES FILE...            the kernels of files at SIZES sizes each, likewise
 *   campaign edits COUNT SIZES COMPILED FILE...   edited texts of files: what the verifier accepts runs clean in the
 * interpreter at SIZES sizes, COMPILED of them also compiled with the address sanitizer campaign text COUNT FILE...
 * damaged texts through parser and verifier campaign bytecode COUNT FILE...       damaged bytecode through the
 * validator, and run where it is accepted
 *
 * Engines: the VM in every instruction set of this machine, the C compilers gcc and clang (UIR_CAMPAIGN_COMPILERS names
 * others) in every variant. Ends with "N passed, M failed, S skipped". */
#define _POSIX_C_SOURCE 200809L
#include "generate.h"
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCH = 40 };

typedef struct totals {
    uint64_t passed, failed, skipped;
} totals;

static void fail(totals *t, const char *format, ...) UIR_PRINTF(2, 3);
static void fail(totals *t, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (t->failed < 30) {
        fputs("FAILED: ", stderr);
        vfprintf(stderr, format, arguments);
        fputc('\n', stderr);
    }
    va_end(arguments);
    t->failed++;
}

/* ---- engines ---- */
typedef struct engine {
    char name[64];
    const char *isa;        /* VM */
    uir_cpu_module *module; /* compiled: of the batch */
    const char *compiler;
    uir_cpu_variant variant;
} engine;

typedef struct engines {
    engine list[24];
    uint32_t count;
} engines;

static void add_engines(engines *e) {
    const char *isa, *compilers = getenv("UIR_CAMPAIGN_COMPILERS");
    static char names[256];
    for (size_t i = 0; uir_vm_isa(i, &isa); i++) {
        engine *x = &e->list[e->count++];
        x->isa = isa;
        snprintf(x->name, sizeof x->name, "vm:%s", isa);
    }
    snprintf(names, sizeof names, "%s", compilers ? compilers : "gcc clang");
    for (char *name = strtok(names, " ,"); name; name = strtok(NULL, " ,")) {
        for (int v = 0; v < UIR_CPU_VARIANT_COUNT && e->count < 24; v++) {
            if (!uir_cpu_variant_runs_here((uir_cpu_variant)v)) continue;
            engine *x = &e->list[e->count++];
            x->compiler = name;
            x->variant = (uir_cpu_variant)v;
            snprintf(x->name, sizeof x->name, "%s:%s", name, uir_cpu_variant_name((uir_cpu_variant)v));
        }
    }
}

static bool compile_engines(harness *h, engines *e, const uir_igraph *const *kernels, uint32_t count, totals *t) {
    uir_text source;
    uir_text_init(&source, &h->allocator);
    bool fine = uir_cpu_emit(kernels, count, &source, &h->diagnostics) == UIR_STATUS_OK;
    if (!fine) fail(t, "emit of %s and %u more", kernels[0]->name, count - 1);
    for (uint32_t i = 0; i < e->count && fine; i++) {
        uir_cpu_compile_options options = {.variant = e->list[i].variant, .compiler = e->list[i].compiler};
        if (!e->list[i].compiler) continue;
        if (uir_cpu_compile(&h->allocator, &options, source.data, source.length, &h->diagnostics, &e->list[i].module) !=
            UIR_STATUS_OK) {
            fail(t, "%s does not compile %s and %u more", e->list[i].name, kernels[0]->name, count - 1);
        }
    }
    harness_say(h, "compile");
    uir_text_deinit(&source);
    return fine;
}

static void drop_modules(engines *e) {
    for (uint32_t i = 0; i < e->count; i++) {
        uir_cpu_module_destroy(e->list[i].module);
        e->list[i].module = NULL;
    }
}

static uir_status run_engine(harness *h, const engine *e, uint32_t index, harness_case *c, const uir_vm_kernel *vm) {
    uir_kernel_arguments arguments = harness_arguments(c);
    uir_vm_options options = {.isa = e->isa};
    harness_reset(c);
    if (e->isa) return uir_vm_run(vm, &arguments, c->size, &options, &h->diagnostics);
    return uir_cpu_run(e->module, c->igraph, index, &arguments, 1 + random_below(&h->random, 2), &h->diagnostics);
}

/* One case on the interpreter and on every engine. */
static void compare_case(harness *h, const engines *e, uint32_t index, harness_case *c, const uir_vm_kernel *vm,
                         totals *t) {
    char where[400], what[200];
    size_t size;
    uint32_t failed = 0;
    harness_describe(c, where, sizeof where);
    harness_reset(c);
    uir_kernel_arguments arguments = harness_arguments(c);
    if (uir_igraph_interpret(c->igraph, &arguments, &h->diagnostics) != UIR_STATUS_OK) {
        fail(t, "%s: the interpreter refuses", where);
        harness_say(h, "interpreter");
        return;
    }
    void *expected = harness_outputs(h, c, &size);
    for (uint32_t i = 0; i < e->count; i++) {
        if (e->list[i].compiler && !e->list[i].module) continue;
        if (run_engine(h, &e->list[i], index, c, vm) != UIR_STATUS_OK) {
            fail(t, "%s: %s refuses", where, e->list[i].name);
            harness_say(h, e->list[i].name);
            failed++;
            continue;
        }
        void *actual = harness_outputs(h, c, &size);
        const char *difference = harness_differ(c, expected, actual, what, sizeof what);
        if (difference) {
            fail(t, "%s on %s: %s", where, e->list[i].name, difference);
            failed++;
        }
        uir_release(&h->allocator, actual, size);
    }
    uir_release(&h->allocator, expected, size);
    t->passed += failed == 0;
}

static uir_vm_kernel *load_vm(harness *h, const uir_igraph *igraph, totals *t) {
    uir_text bytes;
    uir_vm_kernel *vm = NULL;
    uir_text_init(&bytes, &h->allocator);
    if (uir_vm_encode(igraph, &h->diagnostics, &bytes) != UIR_STATUS_OK ||
        uir_vm_load(&h->allocator, bytes.data, bytes.length, &h->diagnostics, &vm) != UIR_STATUS_OK) {
        fail(t, "@%s: no bytecode", igraph->name);
        harness_say(h, "vm");
    }
    uir_text_deinit(&bytes);
    return vm;
}

static void run_batch(harness *h, engines *e, uir_igraph **kernels, uint32_t count, uint32_t sizes, totals *t) {
    if (count == 0) return;
    if (compile_engines(h, e, (const uir_igraph *const *)kernels, count, t)) {
        for (uint32_t i = 0; i < count; i++) {
            uir_vm_kernel *vm = load_vm(h, kernels[i], t);
            for (uint32_t round = 0; round < sizes && vm && t->failed < 100; round++) {
                harness_case c;
                if (!harness_bind(h, kernels[i], round, &c)) {
                    t->skipped++;
                    continue;
                }
                compare_case(h, e, i, &c, vm, t);
                harness_free(h, &c);
            }
            uir_vm_destroy(vm);
        }
    }
    drop_modules(e);
    for (uint32_t i = 0; i < count; i++) uir_igraph_destroy(kernels[i]);
}

static void campaign_random(harness *h, uint64_t count, uint64_t first, totals *t) {
    engines e = {0};
    uir_igraph *batch[BATCH];
    uint32_t n = 0;
    add_engines(&e);
    for (uint64_t seed = first; seed < first + count; seed++) {
        uir_text text;
        uir_text_init(&text, &h->allocator);
        generate_igraph(seed, &text);
        batch[n] = harness_read(h, text.data, text.length, "generated");
        if (batch[n]) {
            n++;
        } else {
            fail(t, "kernel %llu is refused", (unsigned long long)seed);
            harness_say(h, "generated");
            if (t->failed <= 3) fputs(text.data, stderr);
        }
        uir_text_deinit(&text);
        if (n == BATCH || seed + 1 == first + count) {
            run_batch(h, &e, batch, n, 4, t);
            n = 0;
        }
    }
}

/* ---- files ---- */
typedef struct text_file {
    const char *path;
    char *text;
    size_t length;
} text_file;

static text_file read_text(const char *path) {
    text_file f = {path, NULL, 0};
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "campaign: cannot read '%s'\n", path);
        exit(2);
    }
    f.text = calloc(1, 1 << 20);
    f.length = fread(f.text, 1, (1 << 20) - 1, file);
    fclose(file);
    return f;
}

static void campaign_zoo(harness *h, uint32_t sizes, int count, char **paths, totals *t) {
    engines e = {0};
    uir_igraph *batch[BATCH];
    uint32_t n = 0;
    add_engines(&e);
    for (int i = 0; i < count; i++) {
        text_file f = read_text(paths[i]);
        uir_igraph_list list = {0};
        if (uir_igraph_parse_list(&h->allocator, uir_pipeline_devices_get(h->devices), f.text, f.length, f.path,
                                  &h->diagnostics, &list) != UIR_STATUS_OK) {
            fail(t, "%s does not parse", f.path);
            harness_say(h, f.path);
        }
        for (uint32_t k = 0; k < list.count; k++) {
            uir_text text;
            uir_text_init(&text, &h->allocator);
            uir_igraph_print(list.igraphs[k], &text);
            uir_igraph *igraph = harness_read(h, text.data, text.length, f.path);
            uir_text_deinit(&text);
            if (!igraph) {
                fail(t, "%s: @%s is refused", f.path, list.igraphs[k]->name);
                harness_say(h, f.path);
            } else if (strcmp(igraph->device->name, "cpu")) { /* others are verified and interpreted */
                for (uint32_t round = 0; round < sizes; round++) {
                    harness_case c;
                    char where[400];
                    if (!harness_bind(h, igraph, round, &c)) continue;
                    uir_kernel_arguments arguments = harness_arguments(&c);
                    harness_reset(&c);
                    harness_describe(&c, where, sizeof where);
                    if (uir_igraph_interpret(igraph, &arguments, &h->diagnostics) == UIR_STATUS_OK)
                        t->passed++;
                    else
                        fail(t, "%s on %s: the interpreter refuses", where, igraph->device->name);
                    harness_say(h, f.path);
                    harness_free(h, &c);
                }
                uir_igraph_destroy(igraph);
            } else {
                batch[n++] = igraph;
            }
            if (n == BATCH) {
                run_batch(h, &e, batch, n, sizes, t);
                n = 0;
            }
        }
        uir_igraph_list_deinit(&list);
        free(f.text);
    }
    run_batch(h, &e, batch, n, sizes, t);
}

/* ---- edits ---- */
typedef struct word {
    const char *at;
    size_t length;
} word;

static bool is_word_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '%' ||
           c == '.';
}

static uint32_t split_words(const char *text, size_t length, word *out, uint32_t most) {
    uint32_t count = 0;
    for (size_t i = 0; i < length && count < most;) {
        if (text[i] == '#') {
            while (i < length && text[i] != '\n') i++;
            continue;
        }
        size_t start = i;
        while (i < length && is_word_character(text[i])) i++;
        if (i == start) {
            if (text[i] == ' ' || text[i] == '\n') {
                i++;
                continue;
            }
            i++;
        }
        out[count++] = (word){text + start, i - start};
    }
    return count;
}

/* One to three edits: a word replaced by another of the text, a number changed, a line dropped, doubled or swapped with
 * the next. */
static void edit_text(harness *h, const text_file *f, uir_text *out) {
    enum { MOST = 4000 };
    static word words[MOST];
    char *text = malloc(f->length * 2 + 256);
    size_t length = f->length;
    memcpy(text, f->text, length);
    uint32_t edits = 1 + (random_below(&h->random, 4) == 0) + (random_below(&h->random, 8) == 0);
    for (uint32_t k = 0; k < edits; k++) {
        uint32_t count = split_words(text, length, words, MOST), kind = random_below(&h->random, 10);
        if (count < 20) break;
        uint32_t target = 6 + random_below(&h->random, count - 6);
        word w = words[target];
        char replacement[128];
        size_t size = 0;
        if (kind < 5) {
            word other = words[random_below(&h->random, count)];
            for (int tries = 0; tries < 20; tries++) { /* a number for a number, a name for a name, mostly */
                bool digit = *w.at >= '0' && *w.at <= '9', percent = *w.at == '%', plain = is_word_character(*w.at);
                if ((*other.at >= '0' && *other.at <= '9') == digit && (*other.at == '%') == percent &&
                    is_word_character(*other.at) == plain)
                    break;
                other = words[random_below(&h->random, count)];
            }
            size = other.length < sizeof replacement ? other.length : sizeof replacement;
            memcpy(replacement, other.at, size);
        } else if (kind < 8) {
            for (uint32_t i = 0; i < count && !(*w.at >= '0' && *w.at <= '9'); i++)
                w = words[target = 6 + random_below(&h->random, count - 6)];
            static const char *const numbers[] = {"0",  "1",  "2",  "3",  "4",  "7",   "8",
                                                  "16", "31", "32", "33", "64", "128", "1000"};
            size = (size_t)snprintf(replacement, sizeof replacement, "%s",
                                    numbers[random_below(&h->random, sizeof numbers / sizeof *numbers)]);
        } else { /* a line goes */
            const char *begin = w.at, *end = w.at;
            while (begin > text && begin[-1] != '\n') begin--;
            while (end < text + length && *end != '\n') end++;
            if (kind == 8) {
                w = (word){begin, (size_t)(end - begin)};
            } else {
                size_t line = (size_t)(end - begin);
                if (line >= sizeof replacement - 1) continue;
                memcpy(replacement, begin, line);
                replacement[line] = '\n';
                size = line + 1;
                w = (word){begin, 0};
            }
        }
        size_t at = (size_t)(w.at - text);
        if (length + size >= f->length * 2 + 200) break;
        memmove(text + at + size, text + at + w.length, length - at - w.length);
        memcpy(text + at, replacement, size);
        length = length - w.length + size;
    }
    uir_text_append(out, text, length);
    free(text);
}

/* In a child process: a crash of code compiled with the sanitizer is a failed case, not the campaign's end. */
static bool run_sanitized(harness *h, const uir_igraph *igraph, uint32_t sizes) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        uir_text source;
        uir_cpu_module *module = NULL;
        uir_cpu_compile_options options = {.variant = UIR_CPU_GENERIC,
                                           .compiler = "gcc",
                                           .extra_flags = "-fsanitize=address,undefined -fno-sanitize-recover=all",
                                           .debug = true};
        bool fine = true;
        uir_text_init(&source, &h->allocator);
        fine = uir_cpu_emit(&igraph, 1, &source, &h->diagnostics) == UIR_STATUS_OK;
        fine = fine && uir_cpu_compile(&h->allocator, &options, source.data, source.length, &h->diagnostics, &module) ==
                           UIR_STATUS_OK;
        for (uint32_t round = 0; round < sizes && fine; round++) {
            harness_case c;
            if (!harness_bind(h, igraph, round, &c)) continue;
            uir_kernel_arguments arguments = harness_arguments(&c);
            harness_reset(&c);
            fine = uir_cpu_run(module, igraph, 0, &arguments, 1, &h->diagnostics) == UIR_STATUS_OK;
            harness_free(h, &c);
        }
        if (!fine) harness_say(h, "sanitized");
        _exit(fine ? 0 : 1);
    }
    int status = 1;
    if (child < 0 || waitpid(child, &status, 0) != child) return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void campaign_edits(harness *h, uint64_t count, uint32_t sizes, uint64_t compiled, int files, char **paths,
                           totals *t) {
    text_file *texts = calloc((size_t)files + 1, sizeof *texts);
    uint64_t accepted = 0, every;
    for (int i = 0; i < files; i++) texts[i] = read_text(paths[i]);
    every = compiled ? count / (4 * compiled) + 1 : 0;
    for (uint64_t k = 0; k < count && t->failed < 100; k++) {
        uir_text text;
        uir_text_init(&text, &h->allocator);
        edit_text(h, &texts[random_below(&h->random, (uint32_t)files)], &text);
        uir_igraph *igraph = harness_read(h, text.data, text.length, "edited");
        uir_diagnostics_clear(&h->diagnostics);
        uint64_t failed = t->failed;
        accepted += igraph != NULL;
        for (uint32_t round = 0; round < sizes && igraph && t->failed == failed; round++) {
            harness_case c;
            if (!harness_bind(h, igraph, round, &c)) continue;
            char where[400];
            uir_kernel_arguments arguments = harness_arguments(&c);
            harness_reset(&c);
            harness_describe(&c, where, sizeof where);
            if (uir_igraph_interpret(igraph, &arguments, &h->diagnostics) != UIR_STATUS_OK) {
                fail(t, "edit %llu, accepted, does not run: %s", (unsigned long long)k, where);
                harness_say(h, "interpreter");
                if (t->failed <= 3) fprintf(stderr, "%.*s\n", (int)text.length, text.data);
            }
            harness_free(h, &c);
        }
        bool on_cpu = igraph && !strcmp(igraph->device->name, "cpu");
        if (on_cpu && every && compiled && accepted % every == 0 && t->failed == failed) {
            compiled--;
            if (!run_sanitized(h, igraph, 4)) fail(t, "edit %llu fails under the sanitizer", (unsigned long long)k);
        }
        t->passed += t->failed == failed;
        uir_igraph_destroy(igraph);
        uir_text_deinit(&text);
    }
    printf("edits accepted: %llu of %llu\n", (unsigned long long)accepted, (unsigned long long)count);
    if (accepted * 5 < count) fail(t, "fewer than a fifth of the edits were accepted");
    for (int i = 0; i < files; i++) free(texts[i].text);
    free(texts);
}

/* ---- damage ---- */
static void damage(harness *h, char *bytes, size_t *length, bool text) {
    uint32_t times = 1 + random_below(&h->random, 6);
    for (uint32_t k = 0; k<times && * length> 1; k++) {
        size_t at = random_next(&h->random) % *length;
        switch (random_below(&h->random, 5)) {
        case 0:
            bytes[at] ^= (char)(1 << random_below(&h->random, 8));
            break;
        case 1:
            bytes[at] = (char)random_next(&h->random);
            break;
        case 2:
            *length = at;
            break;
        case 3: {
            static const char marks[] = "{}()[]:,;=%@#\"0129 \n";
            bytes[at] = text ? marks[random_below(&h->random, sizeof marks - 1)] : (char)0xff;
            break;
        }
        default: {
            size_t from = random_next(&h->random) % *length, size = random_below(&h->random, 40);
            if (from + size <= *length && at + size <= *length) memmove(bytes + at, bytes + from, size);
        }
        }
    }
}

static void campaign_text(harness *h, uint64_t count, int files, char **paths, totals *t) {
    text_file *texts = calloc((size_t)files + 1, sizeof *texts);
    for (int i = 0; i < files; i++) texts[i] = read_text(paths[i]);
    for (uint64_t k = 0; k < count; k++) {
        const text_file *f = &texts[random_below(&h->random, (uint32_t)files)];
        size_t length = f->length;
        char *bytes = malloc(length + 1);
        memcpy(bytes, f->text, length);
        damage(h, bytes, &length, true);
        uir_igraph *igraph = harness_read(h, bytes, length, "damaged");
        uir_diagnostics_clear(&h->diagnostics);
        uir_igraph_destroy(igraph);
        free(bytes);
        t->passed++;
    }
    for (int i = 0; i < files; i++) free(texts[i].text);
    free(texts);
}

static void campaign_bytecode(harness *h, uint64_t count, int files, char **paths, totals *t) {
    struct subject {
        uir_igraph *igraph;
        uir_text bytes;
    } *subjects = calloc((size_t)files + 1, sizeof *subjects);
    uint32_t n = 0;
    uint64_t loaded = 0;
    for (int i = 0; i < files; i++) {
        text_file f = read_text(paths[i]);
        uir_text_init(&subjects[n].bytes, &h->allocator);
        subjects[n].igraph = harness_read(h, f.text, f.length, f.path);
        bool fine = subjects[n].igraph &&
                    uir_vm_encode(subjects[n].igraph, &h->diagnostics, &subjects[n].bytes) == UIR_STATUS_OK;
        uir_diagnostics_clear(&h->diagnostics);
        if (fine)
            n++;
        else
            uir_text_deinit(&subjects[n].bytes), uir_igraph_destroy(subjects[n].igraph);
        free(f.text);
    }
    for (uint64_t k = 0; k < count && n; k++) {
        struct subject *s = &subjects[random_below(&h->random, n)];
        size_t length = s->bytes.length;
        char *bytes = malloc(length + 1);
        uir_vm_kernel *vm = NULL;
        harness_case c;
        memcpy(bytes, s->bytes.data, length);
        damage(h, bytes, &length, false);
        if (uir_vm_load(&h->allocator, bytes, length, &h->diagnostics, &vm) == UIR_STATUS_OK &&
            harness_bind(h, s->igraph, (uint32_t)(k % 6), &c)) {
            /* More symbols or pointers than the kernel had are read from these zeros. */
            int64_t sizes[64] = {0};
            void *pointers[64];
            size_t bytes_of[64] = {0};
            uir_vm_options options = {.step_limit = 2000000, .scratch_limit = 64 << 20};
            memcpy(sizes, c.dims, sizeof c.dims);
            for (uint32_t i = 0; i < 64; i++)
                pointers[i] = i < c.count ? c.buffer[i] : NULL, bytes_of[i] = i < c.count ? c.size[i] : 0;
            uir_kernel_arguments arguments = {sizes, c.tiles, pointers};
            harness_reset(&c);
            if (uir_vm_needs(vm, 32, 32, 64)) (void)!uir_vm_run(vm, &arguments, bytes_of, &options, &h->diagnostics);
            harness_free(h, &c);
            loaded++;
        }
        uir_vm_destroy(vm);
        uir_diagnostics_clear(&h->diagnostics);
        free(bytes);
        t->passed++;
    }
    printf("bytecodes accepted and run: %llu of %llu\n", (unsigned long long)loaded, (unsigned long long)count);
    if (!n) fail(t, "no kernel to damage");
    for (uint32_t i = 0; i < n; i++) {
        uir_text_deinit(&subjects[i].bytes);
        uir_igraph_destroy(subjects[i].igraph);
    }
    free(subjects);
}

int main(int argc, char **argv) {
    totals t = {0};
    harness h;
    const char *seed = getenv("UIR_SEED");
    if (argc < 3) {
        fprintf(stderr, "campaign: say random, zoo, edits, text or bytecode, and how many\n");
        return 2;
    }
    harness_init(&h, seed ? strtoull(seed, NULL, 10) : 1);
    uint64_t count = strtoull(argv[2], NULL, 10);
    if (!strcmp(argv[1], "random"))
        campaign_random(&h, count, argc > 3 ? strtoull(argv[3], NULL, 10) : 1, &t);
    else if (!strcmp(argv[1], "zoo"))
        campaign_zoo(&h, (uint32_t)count, argc - 3, argv + 3, &t);
    else if (!strcmp(argv[1], "edits") && argc > 5)
        campaign_edits(&h, count, (uint32_t)atoi(argv[3]), strtoull(argv[4], NULL, 10), argc - 5, argv + 5, &t);
    else if (!strcmp(argv[1], "text"))
        campaign_text(&h, count, argc - 3, argv + 3, &t);
    else if (!strcmp(argv[1], "bytecode"))
        campaign_bytecode(&h, count, argc - 3, argv + 3, &t);
    else
        return 2;
    t.failed += h.failures;
    harness_deinit(&h);
    printf("%llu passed, %llu failed, %llu skipped\n", (unsigned long long)t.passed, (unsigned long long)t.failed,
           (unsigned long long)t.skipped);
    return t.failed ? 1 : 0;
}
