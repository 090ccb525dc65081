/* A model's kernels to one shared object: equal kernels found, source cut into files of about equal cost, compiled side
 * by side, linked, read back. */
#include "backends/cpu/target/build.h"

#include "backends/cpu/target/compile.h"
#include "backends/cpu/target/jobs.h"
#include "backends/cpu/target/kept.h"
#include "backends/cpu/target/sources.h"
#include "base/intern.h"
#include "cache/digest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Beside what decides a result: nothing but speed of the compiler and fewer bytes. */
#define BUILD_FLAGS  "-pipe -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-stack-protector -fno-ident"
#define LINK_FLAGS   UIR_CPU_LINK_SHARED " -Wl,--build-id=none -Wl,-s"
#define OBJECT_NAME  "kernels.so"
#define MARK_NAME    "kernels.txt"
#define SCRIPT_NAME  "build.sh"
#define FILE_WORD    "file "
#define FILE_COST    600 /* a file's share, in units of about a millisecond of compiling */
#define BYTES_PER_MS 180 /* of a kernel's text, roughly */

/* What kernels share, defined in one of the files, by what they call of it; the cost as above. */
static const struct shared_part {
    const char *name, *functions[2];
    uint32_t cost;
} shared_parts[] = {
    {"uir_products_f32", {"uir_mma_f32_f32_f32", "uir_mma_window_f32"}, 1000},
    {"uir_products_f16", {"uir_mma_f32_f32_f16", "uir_mma_window_f16"}, 1000},
    {"uir_products_bf16", {"uir_mma_f32_f32_bf16", "uir_mma_window_bf16"}, 1000},
    {"uir_dot", {"uir_mma_dot", "uir_mma_dot_window"}, 600},
    {"uir_mma_f64_f64_f64", {"uir_mma_f64_f64_f64"}, 80},
    {"uir_transpose_32", {"uir_transpose_32"}, 30},
};
enum { SHARED_COUNT = sizeof shared_parts / sizeof shared_parts[0] };

typedef struct item {     /* a kernel, or a shared part */
    uint32_t shared;      /* its row; UINT32_MAX: a kernel */
    size_t begin, length; /* of the kernel's text in `builder.kernels` */
    uint32_t cost, file;
} item;

typedef struct builder {
    const uir_allocator *allocator;
    const uir_cpu_build_options *options;
    uir_diagnostics *diagnostics;
    uir_arena arena;
    uir_text prelude, kernels, sources;
    item *items;
    uint32_t item_count, file_count;
    const uir_igraph *const *marked; /* what a folder of sources is of; NULL: it is read */
    uint32_t marked_count;
    char folder[512];
} builder;

typedef uir_cpu_source_name file_name;

/* ---- kernels ---- */
/* Some names begin as others do. */
static bool calls(const char *text, const char *name) {
    size_t length = strlen(name);
    for (const char *at = strstr(text, name); at; at = strstr(at + length, name))
        if (at[length] == '(') return true;
    return false;
}

static uir_status emit_all(builder *b, const uir_igraph *const *igraphs, const uint32_t *first, uint32_t count) {
    bool used[SHARED_COUNT] = {false};
    UIR_TRY_ALLOCATE(b->items, uir_arena_allocate_array(&b->arena, count + SHARED_COUNT, sizeof *b->items));
    UIR_TRY(uir_cpu_emit_prelude(&b->prelude));
    for (uint32_t i = 0; i < count; i++) {
        if (first[i] != i) continue;
        item *k = &b->items[b->item_count++];
        k->begin = b->kernels.length;
        UIR_TRY(uir_cpu_emit_kernel(igraphs[i], i, &b->kernels, b->diagnostics));
        k->length = b->kernels.length - k->begin;
        k->shared = UINT32_MAX;
        k->cost = (uint32_t)(k->length / BYTES_PER_MS) + 1;
        for (uint32_t s = 0; s < SHARED_COUNT; s++)
            for (uint32_t f = 0; f < 2 && shared_parts[s].functions[f]; f++)
                used[s] |= calls(b->kernels.data + k->begin, shared_parts[s].functions[f]);
    }
    for (uint32_t s = 0; s < SHARED_COUNT; s++) {
        if (used[s]) b->items[b->item_count++] = (item){.shared = s, .cost = shared_parts[s].cost};
    }
    return UIR_STATUS_OK;
}

/* ---- files ---- */
/* The most costly first, each to the file with the least work; nothing here knows of the machine. */
static uir_status share_out(builder *b) {
    uint64_t total = 0, *load;
    bool *placed;
    for (uint32_t i = 0; i < b->item_count; i++) total += b->items[i].cost;
    uint64_t files = (total + FILE_COST - 1) / FILE_COST;
    if (files > UIR_TARGET_FILES_MAX) files = UIR_TARGET_FILES_MAX;
    if (files > b->item_count) files = b->item_count;
    b->file_count = files ? (uint32_t)files : 1;
    UIR_TRY_ALLOCATE(load, uir_arena_allocate_array(&b->arena, b->file_count, sizeof *load));
    UIR_TRY_ALLOCATE(placed, uir_arena_allocate_array(&b->arena, b->item_count + 1, sizeof *placed));
    for (uint32_t n = 0; n < b->item_count; n++) {
        uint32_t most = UINT32_MAX, least = 0;
        for (uint32_t i = 0; i < b->item_count; i++) {
            if (!placed[i] && (most == UINT32_MAX || b->items[i].cost > b->items[most].cost)) most = i;
        }
        for (uint32_t f = 1; f < b->file_count; f++) {
            if (load[f] < load[least]) least = f;
        }
        placed[most] = true;
        b->items[most].file = least;
        load[least] += b->items[most].cost;
    }
    return UIR_STATUS_OK;
}

static void print_file(const builder *b, uint32_t f, uir_text *head, uir_text *own) {
    head->length = own->length = 0;
    uir_text_append_format(head, "/* Kernels for a CPU, written by uir: file %u of %u of one object. */\n", f + 1,
                           b->file_count);
    uir_text_append_string(head, "#define UIR_SHARDED 1\n");
    for (uint32_t i = 0; i < b->item_count; i++) {
        if (b->items[i].file == f && b->items[i].shared != UINT32_MAX)
            uir_text_append_format(head, "#define UIR_WITH_%s 1\n", shared_parts[b->items[i].shared].name);
    }
    for (uint32_t i = 0; i < b->item_count; i++) {
        if (b->items[i].file == f && b->items[i].shared == UINT32_MAX)
            uir_text_append(own, b->kernels.data + b->items[i].begin, b->items[i].length);
    }
}

/* Files are numbered from the most costly on, as `share_out` fills them: the longest compile starts first. */
static uir_status print_sources(builder *b) {
    uir_text head, own;
    uir_text_init(&head, b->allocator);
    uir_text_init(&own, b->allocator);
    uir_status status = UIR_STATUS_OK;
    uir_cpu_sources_begin(&b->sources, b->file_count, &b->prelude);
    for (uint32_t f = 0; f < b->file_count && status == UIR_STATUS_OK; f++) {
        print_file(b, f, &head, &own);
        status = uir_text_status(&head) == UIR_STATUS_OK ? uir_text_status(&own) : UIR_STATUS_OUT_OF_MEMORY;
        if (status == UIR_STATUS_OK) uir_cpu_sources_add(&b->sources, &head, &own);
    }
    uir_text_deinit(&head);
    uir_text_deinit(&own);
    uir_text_deinit(&b->kernels); /* they are in the files now */
    uir_text_init(&b->kernels, b->allocator);
    return status == UIR_STATUS_OK ? uir_text_status(&b->sources) : status;
}

static uir_status write_files(builder *b, const char *folder, file_name *names) {
    return uir_cpu_sources_write(b->allocator, b->sources.data, b->sources.length, folder, b->diagnostics, names,
                                 &b->file_count);
}

/* ---- which kernels a folder is of ---- */
/* Their number, the variant and a hash of their texts: code for others has other symbols, or takes other sizes. */
static uir_status print_mark(builder *b, const uir_igraph *const *igraphs, uint32_t count, uir_text *mark) {
    uir_text texts;
    uir_text_init(&texts, b->allocator);
    for (uint32_t i = 0; i < count; i++) uir_igraph_print(igraphs[i], &texts);
    uir_status status = uir_text_status(&texts);
    uir_text_append_format(mark, "variant %s\nkernels %u, hash %016llx\n",
                           uir_cpu_variant_name(b->options->compile.variant), (unsigned)count,
                           (unsigned long long)uir_hash(texts.data ? texts.data : "", texts.length, 0));
    uir_text_deinit(&texts);
    return status == UIR_STATUS_OK ? uir_text_status(mark) : status;
}

static uir_status place_mark(const builder *b, const char *folder, char *path, size_t capacity) {
    if ((size_t)snprintf(path, capacity, "%s/" MARK_NAME, folder) < capacity) return UIR_STATUS_OK;
    return uir_error(b->diagnostics, UIR_STATUS_IO_FAILED, NULL, "the folder's path is too long: %s", folder);
}

static uir_status hash_file(builder *b, const char *folder, const char *name, uint64_t *out_hash) {
    char path[600];
    void *bytes;
    size_t size;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path) return UIR_STATUS_IO_FAILED;
    UIR_TRY(uir_cpu_read_file(b->allocator, path, b->diagnostics, &bytes, &size));
    *out_hash = uir_hash(bytes, size, 0);
    uir_release(b->allocator, bytes, size);
    return UIR_STATUS_OK;
}

/* Which kernels, and each file's hash as it was written: what differs later was edited. */
static uir_status write_mark(builder *b, const char *folder, file_name *names) {
    char path[600];
    uir_text mark;
    UIR_TRY(place_mark(b, folder, path, sizeof path));
    uir_text_init(&mark, b->allocator);
    uir_status status = print_mark(b, b->marked, b->marked_count, &mark);
    for (uint32_t f = 0; f <= b->file_count && status == UIR_STATUS_OK; f++) {
        const char *name = f < b->file_count ? names[f] : SCRIPT_NAME;
        uint64_t hash;
        status = hash_file(b, folder, name, &hash);
        if (status == UIR_STATUS_OK)
            uir_text_append_format(&mark, FILE_WORD "%s %016llx\n", name, (unsigned long long)hash);
    }
    if (status == UIR_STATUS_OK) status = uir_text_status(&mark);
    if (status == UIR_STATUS_OK) status = uir_cpu_write_file(path, mark.data, mark.length, b->diagnostics);
    uir_text_deinit(&mark);
    return status;
}

static uir_status refuse_edited(builder *b, const char *folder, const char *name) {
    return uir_error_hint(b->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                          "choose another folder to keep it, or overwrite it with --force",
                          "%s/%s was edited, or written by something else", folder, name);
}

/* What would be written over is as it was written; files that are gone are not missed. */
static uir_status check_unedited(builder *b, const char *folder, file_name *names) {
    char path[600];
    void *mark = NULL;
    size_t size = 0;
    uir_status status = UIR_STATUS_OK;
    UIR_TRY(place_mark(b, folder, path, sizeof path));
    if (access(path, F_OK) == 0) UIR_TRY(uir_cpu_read_file(b->allocator, path, b->diagnostics, &mark, &size));
    for (uint32_t f = 0; f <= b->file_count && status == UIR_STATUS_OK; f++) {
        const char *name = f < b->file_count ? names[f] : SCRIPT_NAME;
        char line[160];
        uint64_t hash = 0;
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path || access(path, F_OK) != 0)
            continue;
        status = hash_file(b, folder, name, &hash);
        int length = snprintf(line, sizeof line, "\n" FILE_WORD "%s %016llx\n", name, (unsigned long long)hash);
        if (status == UIR_STATUS_OK && (!mark || !memmem(mark, size, line, (size_t)length)))
            status = refuse_edited(b, folder, name);
    }
    if (mark) uir_release(b->allocator, mark, size);
    return status;
}

static uir_status check_mark(builder *b, const char *folder, const uir_igraph *const *igraphs, uint32_t count) {
    static const char hint[] = "write the folder anew: uir-run MODEL --dump-source DIR, with the same device";
    char path[600];
    void *found = NULL;
    size_t size = 0;
    uir_text mark;
    UIR_TRY(place_mark(b, folder, path, sizeof path));
    if (access(folder, F_OK) == 0 && access(path, F_OK) != 0)
        return uir_error_hint(b->diagnostics, UIR_STATUS_NOT_FOUND, NULL, hint,
                              "%s holds no " MARK_NAME ": it is not a folder of kernel sources", folder);
    UIR_TRY(uir_cpu_read_file(b->allocator, path, b->diagnostics, &found, &size));
    uir_text_init(&mark, b->allocator);
    uir_status status = print_mark(b, igraphs, count, &mark);
    const char *end = memchr(found, '\n', size);
    bool whole = mark.length <= size && !memcmp(mark.data, found, mark.length); /* then come its files */
    bool variant = end && mark.length > (size_t)(end - (char *)found) &&
                   !memcmp(mark.data, found, (size_t)(end - (char *)found) + 1);
    if (status == UIR_STATUS_OK && !whole)
        status = uir_error_hint(b->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, hint,
                                variant ? "%s holds the kernels of another model, or of another version of this program"
                                        : "%s holds kernels for another variant of the CPU",
                                folder);
    uir_text_deinit(&mark);
    uir_release(b->allocator, found, size);
    return status;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(a, b);
}

static bool is_source(const char *name, file_name out) {
    size_t length = strlen(name);
    return length > 2 && !strcmp(name + length - 2, ".c") && name[0] != '-' && name[0] != '.' &&
           (size_t)snprintf(out, sizeof(file_name), "%s", name) < sizeof(file_name);
}

/* Copies a folder's .c files, in the order of their names. */
static uir_status copy_files(builder *b, const char *folder, file_name *names) {
    DIR *directory = opendir(folder);
    void *text = NULL;
    if (!directory) return uir_error(b->diagnostics, UIR_STATUS_IO_FAILED, NULL, "%s: %s", folder, strerror(errno));
    b->file_count = 0;
    for (struct dirent *e; (e = readdir(directory)) != NULL && b->file_count < UIR_TARGET_FILES_MAX;)
        b->file_count += is_source(e->d_name, names[b->file_count]);
    closedir(directory);
    if (!b->file_count) return uir_error(b->diagnostics, UIR_STATUS_NOT_FOUND, NULL, "%s holds no .c files", folder);
    qsort(names, b->file_count, sizeof *names, compare_names);
    for (uint32_t f = 0; f < b->file_count; f++) {
        char path[600];
        size_t size;
        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, names[f]) >= sizeof path)
            return uir_error(b->diagnostics, UIR_STATUS_IO_FAILED, NULL, "the folder's path is too long: %s", folder);
        UIR_TRY(uir_cpu_read_file(b->allocator, path, b->diagnostics, &text, &size));
        snprintf(path, sizeof path, "%s/%s", b->folder, names[f]);
        uir_status status = uir_cpu_write_file(path, text, size, b->diagnostics);
        uir_release(b->allocator, text, size);
        UIR_TRY(status);
    }
    return UIR_STATUS_OK;
}

/* ---- compilers ---- */
static uint32_t count_cores(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    int count = CPU_COUNT(&set);
    return count > 0 ? (uint32_t)count : 1;
}

static uir_status begin_words(builder *b, uir_cpu_words **out_words, bool *out_fits) {
    UIR_TRY_ALLOCATE(*out_words, uir_arena_allocate(&b->arena, sizeof **out_words));
    *out_fits = uir_cpu_words_begin(*out_words, &b->options->compile);
    return UIR_STATUS_OK;
}

static bool add_compile_words(const builder *b, uir_cpu_words *w, const char *source, const char *output) {
    return uir_cpu_words_add_all(w, b->options->compile.debug ? NULL : BUILD_FLAGS) &&
           uir_cpu_words_add_all(w, b->options->build.warnings ? NULL : "-w") && uir_cpu_words_add_all(w, "-c -o") &&
           uir_cpu_words_add(w, output, strlen(output)) && uir_cpu_words_add(w, source, strlen(source));
}

/* What tells a file's code from another's: the words of its compile but the compiler, and its source's digest. */
static uir_status describe_source(builder *b, const uir_cpu_job *job, uir_text *material) {
    char path[600], digits[UIR_DIGEST_TEXT_SIZE];
    void *source;
    size_t size;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", b->folder, job->about) >= sizeof path) return UIR_STATUS_IO_FAILED;
    UIR_TRY(uir_cpu_read_file(b->allocator, path, b->diagnostics, &source, &size));
    uir_digest digest = uir_digest_make(source, size);
    uir_release(b->allocator, source, size);
    uir_digest_print(&digest, digits);
    for (char *const *word = job->argv + 1; *word; word++) uir_text_append_format(material, "%s ", *word);
    uir_text_append_format(material, "%s\n", digits);
    return uir_text_status(material);
}

/* The link's words with the object's mark, by the sources in the order of their files. */
static uir_status mark_object(builder *b, uir_cpu_words *link, const uir_cpu_job *commands, bool *out_fits) {
    char mark[UIR_CPU_MARK_SIZE];
    uir_text material;
    uir_status status = UIR_STATUS_OK;
    uir_text_init(&material, b->allocator);
    for (uint32_t f = 0; f < b->file_count && status == UIR_STATUS_OK; f++)
        status = describe_source(b, &commands[f], &material);
    if (status == UIR_STATUS_OK) *out_fits = uir_cpu_words_mark(link, &material, mark);
    uir_text_deinit(&material);
    return status;
}

/* The commands: one per file, then the link. */
static uir_status make_commands(builder *b, file_name *names, uir_cpu_job *commands) {
    uir_cpu_words *link;
    bool fits;
    UIR_TRY(begin_words(b, &link, &fits));
    fits = fits && uir_cpu_words_add_all(link, LINK_FLAGS) && uir_cpu_words_add_all(link, "-o " OBJECT_NAME);
    for (uint32_t f = 0; f < b->file_count && fits; f++) {
        uir_cpu_words *w;
        UIR_TRY(begin_words(b, &w, &fits));
        char object[UIR_CPU_OBJECT_NAME];
        uir_cpu_object_name(names[f], object);
        fits = fits && add_compile_words(b, w, names[f], object) && uir_cpu_words_add(link, object, strlen(object));
        if (fits) commands[f] = (uir_cpu_job){w->argv, names[f], f};
    }
    if (fits) UIR_TRY(mark_object(b, link, commands, &fits));
    if (!fits || !uir_cpu_words_add_all(link, "-lm"))
        return uir_error(b->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "too many flags for the C compiler");
    commands[b->file_count] = (uir_cpu_job){link->argv, OBJECT_NAME, b->file_count};
    return UIR_STATUS_OK;
}

/* What a person types to build the folder again. */
static uir_status write_script(builder *b, const char *folder, const uir_cpu_job *commands) {
    uir_text text;
    char path[600];
    uir_text_init(&text, b->allocator);
    uir_text_append_string(&text, "#!/bin/sh\nset -e\ncd \"$(dirname \"$0\")\"\n");
    for (uint32_t i = 0; i <= b->file_count; i++) {
        for (char *const *word = commands[i].argv; *word; word++) {
            uir_text_append_string(&text, word == commands[i].argv ? "'" : " '");
            for (const char *c = *word; *c; c++) uir_text_append(&text, *c == '\'' ? "'\\''" : c, *c == '\'' ? 4 : 1);
            uir_text_append_string(&text, "'");
        }
        uir_text_append_string(&text, "\n");
    }
    uir_status status = uir_text_status(&text);
    if (status == UIR_STATUS_OK && (size_t)snprintf(path, sizeof path, "%s/" SCRIPT_NAME, folder) >= sizeof path)
        status = UIR_STATUS_IO_FAILED;
    if (status == UIR_STATUS_OK) status = uir_cpu_write_file(path, text.data, text.length, b->diagnostics);
    uir_text_deinit(&text);
    return status;
}

/* What an earlier build has left, and the rest by compilers. */
static uir_status compile_missing(builder *b, uir_cpu_jobs *jobs, const uir_cpu_job *commands,
                                  uir_target_object *object) {
    uir_cpu_kept kept = {b->allocator, b->folder, b->options->build.keeper};
    uir_cpu_job *missing;
    uint32_t count = 0;
    if (!kept.keeper) return uir_cpu_jobs_run(jobs, commands, b->file_count, b->diagnostics);
    UIR_TRY_ALLOCATE(missing, uir_arena_allocate_array(&b->arena, b->file_count + 1, sizeof *missing));
    for (uint32_t f = 0; f < b->file_count; f++) {
        bool taken;
        UIR_TRY(uir_cpu_kept_take(&kept, &commands[f], b->diagnostics, &taken));
        if (!taken) missing[count++] = commands[f];
    }
    object->kept_count = jobs->done = b->file_count - count;
    jobs->finished = uir_cpu_kept_add;
    jobs->finished_user = &kept;
    uir_status status = uir_cpu_jobs_run(jobs, missing, count, b->diagnostics);
    jobs->finished = NULL;
    return status;
}

static uir_status compile_files(builder *b, file_name *names, uir_target_object *object) {
    uint32_t at_once = b->options->build.jobs ? b->options->build.jobs : count_cores();
    uir_cpu_jobs jobs = uir_cpu_jobs_begin(b->allocator, b->folder, b->options, at_once, b->file_count + 1);
    uir_cpu_job *commands;
    char path[600];
    UIR_TRY_ALLOCATE(commands, uir_arena_allocate_array(&b->arena, b->file_count + 1, sizeof *commands));
    UIR_TRY(make_commands(b, names, commands));
    if (b->options->build.source_folder) UIR_TRY(write_script(b, b->options->build.source_folder, commands));
    if (b->options->build.source_folder && b->marked) UIR_TRY(write_mark(b, b->options->build.source_folder, names));
    UIR_TRY(compile_missing(b, &jobs, commands, object));
    uir_status status = uir_cpu_jobs_run(&jobs, commands + b->file_count, 1, b->diagnostics);
    if (status == UIR_STATUS_DEVICE_FAILED && b->options->build.keeper)
        b->options->build.keeper->forget(b->options->build.keeper->user);
    UIR_TRY(status);
    snprintf(path, sizeof path, "%s/%s", b->folder, OBJECT_NAME);
    if (access(path, R_OK) != 0)
        return uir_error(b->diagnostics, UIR_STATUS_DEVICE_FAILED, NULL,
                         "the C compiler '%s' reported success but wrote nothing", commands[0].argv[0]);
    return uir_cpu_read_file(b->allocator, path, b->diagnostics, &object->bytes, &object->size);
}

static uir_status build_in_folder(builder *b, const char *from, const uir_igraph *const *igraphs, const uint32_t *first,
                                  uint32_t count, uir_target_object *object) {
    file_name *names;
    UIR_TRY_ALLOCATE(names, uir_arena_allocate_array(&b->arena, UIR_TARGET_FILES_MAX + 1, sizeof *names));
    if (from) {
        UIR_TRY(check_mark(b, from, igraphs, count));
        UIR_TRY(copy_files(b, from, names));
    } else {
        UIR_TRY(emit_all(b, igraphs, first, count));
        UIR_TRY(share_out(b));
        UIR_TRY(print_sources(b));
        UIR_TRY(write_files(b, b->folder, names));
        if (b->options->build.keeper && b->options->build.keeper->keep_sources)
            b->options->build.keeper->keep_sources(b->options->build.keeper->user, b->sources.data, b->sources.length);
        b->marked = igraphs;
        b->marked_count = count;
        if (b->options->build.source_folder && !b->options->build.overwrite)
            UIR_TRY(check_unedited(b, b->options->build.source_folder, names));
        if (b->options->build.source_folder) UIR_TRY(write_files(b, b->options->build.source_folder, names));
    }
    object->file_count = b->file_count;
    return compile_files(b, names, object);
}

static uir_status build(builder *b, const char *from, const uir_igraph *const *igraphs, uint32_t count,
                        uir_target_object *object) {
    uint32_t *first;
    UIR_TRY_ALLOCATE(first, uir_arena_allocate_array(&b->arena, count + 1, sizeof *first));
    UIR_TRY(uir_target_find_equals(b->allocator, igraphs, count, first));
    UIR_TRY(uir_target_name_first(b->allocator, igraphs, first, count, object));
    UIR_TRY(uir_cpu_make_folder(b->folder, b->diagnostics));
    uir_status status = build_in_folder(b, from, igraphs, first, count, object);
    uir_cpu_remove_folder(b->folder);
    return status;
}

static builder make_builder(const uir_allocator *allocator, const uir_cpu_build_options *options,
                            uir_diagnostics *diagnostics) {
    builder b = {.allocator = allocator, .options = options, .diagnostics = diagnostics};
    uir_arena_init(&b.arena, allocator);
    uir_text_init(&b.prelude, allocator);
    uir_text_init(&b.kernels, allocator);
    uir_text_init(&b.sources, allocator);
    return b;
}

static void destroy_builder(builder *b) {
    uir_text_deinit(&b->sources);
    uir_text_deinit(&b->kernels);
    uir_text_deinit(&b->prelude);
    uir_arena_deinit(&b->arena);
}

uir_status uir_cpu_build_folder(const uir_allocator *allocator, const uir_cpu_build_options *options,
                                const char *folder, const uir_igraph *const *igraphs, uint32_t count,
                                uir_diagnostics *diagnostics, uir_target_object *out_object) {
    builder b = make_builder(allocator, options, diagnostics);
    *out_object = (uir_target_object){.allocator = *allocator};
    uir_status status = build(&b, folder, igraphs, count, out_object);
    destroy_builder(&b);
    if (status != UIR_STATUS_OK) uir_target_object_deinit(out_object);
    return status;
}

static uir_status build_sources(builder *b, const void *sources, size_t size, uir_target_object *object) {
    file_name *names;
    UIR_TRY_ALLOCATE(names, uir_arena_allocate_array(&b->arena, UIR_TARGET_FILES_MAX + 1, sizeof *names));
    UIR_TRY(uir_cpu_sources_write(b->allocator, sources, size, b->folder, b->diagnostics, names, &b->file_count));
    object->file_count = b->file_count;
    return compile_files(b, names, object);
}

uir_status uir_cpu_build_sources(const uir_allocator *allocator, const uir_cpu_build_options *options,
                                 const void *sources, size_t size, uir_diagnostics *diagnostics,
                                 uir_target_object *out_object) {
    builder b = make_builder(allocator, options, diagnostics);
    *out_object = (uir_target_object){.allocator = *allocator};
    uir_status status = uir_cpu_make_folder(b.folder, diagnostics);
    if (status == UIR_STATUS_OK) {
        status = build_sources(&b, sources, size, out_object);
        uir_cpu_remove_folder(b.folder);
    }
    destroy_builder(&b);
    if (status != UIR_STATUS_OK) uir_target_object_deinit(out_object);
    return status;
}

uir_status uir_cpu_build(const uir_allocator *allocator, const uir_cpu_build_options *options,
                         const uir_igraph *const *igraphs, uint32_t count, uir_diagnostics *diagnostics,
                         uir_target_object *out_object) {
    return uir_cpu_build_folder(allocator, options, NULL, igraphs, count, diagnostics, out_object);
}
