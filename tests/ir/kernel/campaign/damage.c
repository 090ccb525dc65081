/* Kernels that were edited or damaged: texts through parser and verifier, what is accepted through the interpreter and
 * the sanitizers, bytecode through the validator. */
#include "campaign.h"
#include "engines.h"
#include "generate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
/* The word of an instruction with another operation of its family: "binary.add.f32" becomes "binary.max.f32". */
static size_t other_operation(harness *h, word w, char *out, size_t capacity) {
    for (int tries = 0; tries < 40; tries++) {
        const char *name = uir_iop_get_row((uir_iop_code)random_below(&h->random, UIR_IOP_COUNT))->name,
                   *dot = strchr(name, '.');
        size_t family = dot ? (size_t)(dot - name) + 1 : 0;
        if (!dot || w.length <= family || memcmp(w.at, name, family)) continue;
        const char *rest = memchr(w.at + family, '.', w.length - family);
        size_t tail = rest ? w.length - (size_t)(rest - w.at) : 0, length = strlen(name);
        if (length + tail >= capacity) continue;
        memcpy(out, name, length);
        if (tail) memcpy(out + length, rest, tail);
        return length + tail;
    }
    return 0;
}

static void edit_text(harness *h, const text_file *f, uir_text *out) {
    enum { MOST = 4000 };
    static word words[MOST];
    char *text = malloc(f->length * 2 + 256);
    size_t length = f->length;
    memcpy(text, f->text, length);
    uint32_t edits = 1 + (random_below(&h->random, 6) == 0) + (random_below(&h->random, 12) == 0);
    for (uint32_t k = 0; k < edits; k++) {
        uint32_t count = split_words(text, length, words, MOST), kind = random_below(&h->random, 17);
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
        } else if (kind > 9) { /* another operation */
            for (uint32_t i = 0; i < count && !size; i++) {
                w = words[6 + random_below(&h->random, count - 6)];
                size = other_operation(h, w, replacement, sizeof replacement);
            }
            if (!size) continue;
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

/* As a program with the sanitizers in a process of its own: what they find ends it. */
static bool run_sanitized(harness *h, const uir_igraph *igraph, uint32_t sizes) {
    static const char flags[] = "-O1 -fsanitize=address,undefined -fno-sanitize-recover=all";
    engines e;
    char failed[100];
    if (!engines_open_program(&e)) return false;
    bool fine = engines_compile(&e, h, &igraph, 1, flags, failed, sizeof failed);
    for (uint32_t round = 0; round < sizes && fine; round++) {
        harness_case c;
        if (!harness_bind(h, igraph, round, &c)) continue;
        fine = engine_run(&e, &e.list[0], h, 0, &c, NULL) == UIR_STATUS_OK;
        harness_free(h, &c);
    }
    if (!fine) harness_say(h, "sanitized");
    uir_diagnostics_clear(&h->diagnostics);
    engines_close(&e);
    return fine;
}

enum { CHUNK = 50, BYTECODE_CHUNK = 1000 };

typedef struct damage_campaign {
    const text_files *files;
    uint64_t count, compiled;
    uint32_t sizes;
} damage_campaign;

static const text_file *pick_file(harness *h, const damage_campaign *d) {
    return &d->files->files[random_below(&h->random, d->files->count)];
}
static uint64_t chunk_count(uint64_t count) {
    return (count + CHUNK - 1) / CHUNK;
}
static uint64_t chunk_end(const damage_campaign *d, uint64_t chunk) {
    return (chunk + 1) * CHUNK < d->count ? (chunk + 1) * CHUNK : d->count;
}

static bool interpret_edit(harness *h, const uir_igraph *igraph, uint32_t sizes, uint64_t edit, job_totals *t) {
    bool fine = true;
    for (uint32_t round = 0; round < sizes && fine; round++) {
        harness_case c;
        if (!harness_bind(h, igraph, round, &c)) continue;
        uir_kernel_arguments arguments = harness_arguments(&c);
        harness_reset(&c);
        harness_describe(&c, t->where, sizeof t->where);
        fine = uir_igraph_interpret(igraph, &arguments, NULL, &h->diagnostics) == UIR_STATUS_OK;
        if (!fine) job_fail(t, "edit %llu, accepted, does not run: %s", (unsigned long long)edit, t->where);
        harness_say(h, "interpreter");
        harness_free(h, &c);
    }
    return fine;
}

/* counts: 0 accepted, 1 compiled. Each chunk compiles its share: the first accepted kernels for the CPU. */
static void edits_chunk(harness *h, uint64_t chunk, void *user, job_totals *t) {
    const damage_campaign *d = user;
    uint64_t chunks = chunk_count(d->count), share = d->compiled * (chunk + 1) / chunks - d->compiled * chunk / chunks;
    for (uint64_t k = chunk * CHUNK; k < chunk_end(d, chunk); k++) {
        uir_text text;
        uint64_t failed = t->failed;
        uir_text_init(&text, &h->allocator);
        edit_text(h, pick_file(h, d), &text);
        snprintf(t->where, sizeof t->where, "edit %llu", (unsigned long long)k);
        uir_igraph *igraph = harness_read(h, text.data, text.length, "edited");
        uir_diagnostics_clear(&h->diagnostics);
        t->counts[0] += igraph != NULL;
        bool fine = igraph && interpret_edit(h, igraph, d->sizes, k, t);
        if (fine && share && !strcmp(igraph->machine->name, "cpu")) {
            share--;
            t->counts[1]++;
            if (!run_sanitized(h, igraph, 4))
                job_fail(t, "edit %llu fails under the sanitizer", (unsigned long long)k), fine = false;
        }
        if (igraph && !fine && t->failed <= 3) fprintf(stderr, "%.*s\n", (int)text.length, text.data);
        t->passed += t->failed == failed;
        uir_igraph_destroy(igraph);
        uir_text_deinit(&text);
    }
}

void campaign_edits(uint64_t seed, uint64_t count, uint32_t sizes, uint64_t compiled, const text_files *files,
                    job_totals *t) {
    damage_campaign d = {files, count, compiled, sizes};
    jobs_run(seed, chunk_count(count), edits_chunk, &d, t);
    printf("edits accepted: %llu of %llu; compiled with the sanitizers: %llu\n", (unsigned long long)t->counts[0],
           (unsigned long long)count, (unsigned long long)t->counts[1]);
    if (t->counts[0] * 5 < count) job_fail(t, "fewer than a fifth of the edits were accepted");
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

/* In a block of just its size: a read beyond the end is seen by the sanitizer. */
static char *damaged_copy(harness *h, const char *from, size_t *length, bool text) {
    char *bytes = malloc(*length + 1);
    memcpy(bytes, from, *length);
    damage(h, bytes, length, text);
    char *exact = realloc(bytes, *length ? *length : 1);
    return exact ? exact : bytes;
}

static void text_chunk(harness *h, uint64_t chunk, void *user, job_totals *t) {
    const damage_campaign *d = user;
    for (uint64_t k = chunk * CHUNK; k < chunk_end(d, chunk); k++) {
        const text_file *f = pick_file(h, d);
        size_t length = f->length;
        char *bytes = damaged_copy(h, f->text, &length, true);
        snprintf(t->where, sizeof t->where, "damaged text %llu of %s", (unsigned long long)k, f->path);
        uir_igraph *igraph = harness_read(h, bytes, length, "damaged");
        uir_diagnostics_clear(&h->diagnostics);
        t->counts[0] += igraph != NULL;
        uir_igraph_destroy(igraph);
        free(bytes);
        t->passed++;
    }
}

void campaign_text(uint64_t seed, uint64_t count, const text_files *files, job_totals *t) {
    damage_campaign d = {files, count, 0, 0};
    jobs_run(seed, chunk_count(count), text_chunk, &d, t);
    printf("damaged texts accepted: %llu of %llu\n", (unsigned long long)t->counts[0], (unsigned long long)count);
}

/* ---- bytecode ---- */
typedef struct subject {
    uir_igraph *igraph;
    uir_text bytes;
} subject;

/* The kernels of all files that the VM can run. */
static uint32_t make_subjects(harness *h, const text_files *files, subject *out, uint32_t most) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < files->count; i++) {
        const text_file *f = &files->files[i];
        uir_igraph_list list = {0};
        (void)!uir_igraph_parse_list(&h->allocator, uir_compile_machines_get(h->devices), f->text, f->length, f->path,
                                     &h->diagnostics, &list);
        for (uint32_t k = 0; k < list.count && n < most; k++) {
            uir_text text;
            uir_text_init(&text, &h->allocator);
            uir_text_init(&out[n].bytes, &h->allocator);
            uir_igraph_print(list.igraphs[k], &text);
            out[n].igraph = harness_read(h, text.data, text.length, f->path);
            if (out[n].igraph && uir_vm_encode(out[n].igraph, &h->diagnostics, &out[n].bytes) == UIR_STATUS_OK) {
                n++;
            } else {
                uir_text_deinit(&out[n].bytes);
                uir_igraph_destroy(out[n].igraph);
            }
            uir_text_deinit(&text);
        }
        uir_igraph_list_deinit(&list);
        uir_diagnostics_clear(&h->diagnostics);
    }
    return n;
}

/* Whatever loads runs on buffers of just the size that the undamaged kernel has; more symbols or pointers than it had
 * are zeros and nothing. */
static void run_damaged(harness *h, const uir_vm_kernel *vm, const uir_igraph *igraph, uint32_t round, job_totals *t) {
    harness_case c;
    if (!harness_bind(h, igraph, round, &c)) return;
    int64_t dims[32] = {0};
    void *pointers[64] = {0};
    size_t sizes[64] = {0};
    uir_vm_options options = {.step_limit = 200000, .scratch_limit = 64 << 20};
    memcpy(dims, c.dims, sizeof c.dims);
    for (uint32_t i = 0; i < c.count; i++) pointers[i] = c.buffer[i], sizes[i] = c.size[i];
    uir_kernel_arguments arguments = {dims, c.tiles, pointers};
    harness_reset(&c);
    harness_describe(&c, t->where, sizeof t->where);
    if (uir_vm_needs(vm, 32, 32, 64)) (void)!uir_vm_run(vm, &arguments, sizes, &options, &h->diagnostics);
    harness_free(h, &c);
    t->counts[0]++;
}

enum { MAX_SUBJECTS = 64 };

static void bytecode_chunk(harness *h, uint64_t chunk, void *user, job_totals *t) {
    const damage_campaign *d = user;
    static subject subjects[MAX_SUBJECTS]; /* of this process */
    uint64_t random = h->random;
    uint32_t n = make_subjects(h, d->files, subjects, MAX_SUBJECTS);
    h->random = random;
    if (!n) job_fail(t, "no kernel to damage");
    for (uint64_t k = chunk * BYTECODE_CHUNK; k < (chunk + 1) * BYTECODE_CHUNK && k < d->count && n; k++) {
        const subject *s = &subjects[random_below(&h->random, n)];
        size_t length = s->bytes.length;
        char *bytes = damaged_copy(h, s->bytes.data, &length, false);
        uir_vm_kernel *vm = NULL;
        snprintf(t->where, sizeof t->where, "damaged bytecode %llu", (unsigned long long)k);
        if (uir_vm_load(&h->allocator, bytes, length, &h->diagnostics, &vm) == UIR_STATUS_OK)
            run_damaged(h, vm, s->igraph, (uint32_t)(k % 6), t);
        uir_vm_destroy(vm);
        uir_diagnostics_clear(&h->diagnostics);
        free(bytes);
        t->passed++;
    }
    for (uint32_t i = 0; i < n; i++) {
        uir_text_deinit(&subjects[i].bytes);
        uir_igraph_destroy(subjects[i].igraph);
    }
}

void campaign_bytecode(uint64_t seed, uint64_t count, const text_files *files, job_totals *t) {
    damage_campaign d = {files, count, 0, 0};
    jobs_run(seed, (count + BYTECODE_CHUNK - 1) / BYTECODE_CHUNK, bytecode_chunk, &d, t);
    printf("bytecodes accepted and run: %llu of %llu\n", (unsigned long long)t->counts[0], (unsigned long long)count);
}
