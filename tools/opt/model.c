/* A model, or the text of one after some stage: on to another stage, whose text is printed, or which is run. */
#define _XOPEN_SOURCE 700
#include "opt.h"
#include "decompose/decompose.h"
#include "ir/graph_text.h"
#include "compile/kernel.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first lines of a text say after which stage it is, and where the constants lie that it names by hash. */
static const char stage_word[] = "# stage: ", home_word[] = "# constants: ";

/* Constants of more elements are elided where a model at hand has them. */
enum { INLINE_LIMIT = 16 };

typedef struct hash_list {
    uint64_t *hashes; /* ascending */
    size_t count, capacity;
    bool failed;
} hash_list;

typedef struct model_work {
    const opt_options *options;
    const uir_allocator *allocator;
    uir_diagnostics *diagnostics;
    uir_arena arena;
    uir_compiled compiled;
    uir_module *module;        /* what is worked on */
    uir_module *parsed, *made; /* owned: a text's; the primitives of an ONNX one */
    char stage[64];            /* the text's own word for where it is; "" none */
    char home[PATH_MAX];       /* the model whose constants these are; "" when it is not known */
    hash_list known;           /* constants that a reader of the text will find there */
    uir_middle middle;
    uir_middle_options middle_options;
    const char *from, *after;
    bool is_middle, emit, inlined; /* what is asked for lies beyond the clean-up; is source; has all numbers */
} model_work;

/* ---- which constants are where ---- */
static void add_hash(hash_list *list, const uir_tensor *tensor) {
    if (tensor->element_count <= INLINE_LIMIT || list->failed) return;
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 256;
        uint64_t *grown = realloc(list->hashes, capacity * sizeof *grown);
        list->failed = !grown;
        if (!grown) return;
        list->hashes = grown;
        list->capacity = capacity;
    }
    list->hashes[list->count++] = uir_tensor_hash(tensor);
}

static int compare_hashes(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static uir_status list_constants(model_work *w, const uir_module *module) {
    for (uint32_t v = 1; v < module->values.count; v++)
        if (module->values.data[v].constant) add_hash(&w->known, module->values.data[v].constant);
    for (uint32_t n = 1; n < module->nodes.count; n++)
        for (uint32_t a = 0; a < module->nodes.data[n].attribute_count; a++)
            if (module->nodes.data[n].attributes[a].kind == UIR_ATTRIBUTE_TENSOR)
                add_hash(&w->known, module->nodes.data[n].attributes[a].value.tensor);
    if (w->known.count) qsort(w->known.hashes, w->known.count, sizeof *w->known.hashes, compare_hashes);
    return w->known.failed ? UIR_STATUS_OUT_OF_MEMORY : UIR_STATUS_OK;
}

static bool elide(void *user, const uir_tensor *constant) {
    const model_work *w = user;
    uint64_t hash = uir_tensor_hash(constant);
    return w->known.count && bsearch(&hash, w->known.hashes, w->known.count, sizeof hash, compare_hashes) != NULL;
}

/* ---- where it goes ---- */
static bool is_middle_stage(const char *name, uir_middle_stage *out_stage) {
    return name && uir_middle_stage_find(name, out_stage);
}

static bool is_onnx(const char *name) {
    return name && !strcmp(name, "onnx");
}

static bool is_pass(const char *name) {
    if (!strcmp(name, "primitives")) return true;
    for (size_t i = 0; uir_compile_pass(i); i++)
        if (!strcmp(uir_compile_pass(i)->name, name)) return true;
    return false;
}

static const char *last_pass(void) {
    size_t count = 0;
    while (uir_compile_pass(count)) count++;
    return count ? uir_compile_pass(count - 1)->name : "primitives";
}

/* --run on a device runs the kernels that all stages have made; by interpreter, the IR as the stage has it. */
static bool on_device(const model_work *w) {
    return w->options->run && (w->options->kernel || (w->options->device && strcmp(w->options->device, "interpreter")));
}

static uir_status check_stage(const char *option, const char *name, bool emit) {
    uir_middle_stage stage;
    if (!name || is_onnx(name) || is_pass(name) || is_middle_stage(name, &stage) || (emit && !strcmp(name, "emit")))
        return UIR_STATUS_OK;
    fprintf(stderr, "uir-opt: error: %s: there is no stage '%s'; uir-opt --list names them\n", option, name);
    return UIR_STATUS_INVALID_ARGUMENT;
}

static uir_status take_target(model_work *w) {
    const opt_options *options = w->options;
    uir_middle_stage stage;
    w->from = options->from ? options->from : *w->stage ? w->stage : NULL;
    w->after = options->after;
    UIR_TRY(check_stage("--from", w->from, false));
    UIR_TRY(check_stage("--after", w->after, !options->run));
    if (on_device(w)) {
        const char *last = uir_middle_stage_name(UIR_MIDDLE_RUNS);
        if (w->after && strcmp(w->after, last))
            return opt_usage("--run on a device takes every stage; by --device interpreter it runs what is left after",
                             w->after);
        w->after = last;
    }
    if (options->run && !w->after) w->after = w->from ? w->from : last_pass();
    if (options->kernel && !on_device(w) &&
        !(w->after && (!strcmp(w->after, "emit") || (is_middle_stage(w->after, &stage) && stage > UIR_MIDDLE_FUSION))))
        return opt_usage("--kernel: there are kernels after loop, schedule, igraph, runs and emit; give --after one",
                         NULL);
    w->emit = w->after && !strcmp(w->after, "emit");
    w->inlined = options->constants && !strcmp(options->constants, "inline");
    w->middle_options.last = UIR_MIDDLE_RUNS;
    w->is_middle = w->emit || is_middle_stage(w->after, &w->middle_options.last);
    return UIR_STATUS_OK;
}

static uir_status compile_model(model_work *w, const char *path, const char *stop) {
    uir_onnx_source source = {.path = path, .external_data = w->options->external_data, .no_map = w->options->no_map};
    uir_compile_options options = {.stop = is_onnx(stop) ? "primitives" : stop, .check_text = true};
    return uir_compile_compile(&source, w->allocator, w->diagnostics, &w->arena, &options, &w->compiled);
}

/* The absolute path, in which the file keeps its name: a link to it lies beside its data, which its target may not. */
static void take_path(const char *path, char *out_home) {
    char folder[PATH_MAX], real[PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    *out_home = 0;
    if (!realpath(folder, real)) return;
    int length = snprintf(out_home, PATH_MAX, "%s/%s", strcmp(real, "/") ? real : "", name);
    if (length < 0 || length >= PATH_MAX) *out_home = 0;
}

/* ---- the three ways in ---- */
static uir_status from_model(model_work *w) {
    const uir_compiled *compiled = &w->compiled;
    UIR_TRY(compile_model(w, w->options->file, w->is_middle ? NULL : w->after));
    bool onnx = is_onnx(w->after) && !w->options->run;
    w->module = onnx ? compiled->onnx : compiled->primitives;
    take_path(w->options->file, w->home);
    UIR_TRY(list_constants(w, w->module));
    if (!w->is_middle) return UIR_STATUS_OK;
    return uir_middle_run(w->module, &w->middle_options, w->allocator, w->diagnostics, &w->middle);
}

static uir_status from_module(model_work *w, const char *text, size_t length) {
    bool onnx = is_onnx(w->from);
    const uir_module *constants = onnx ? w->compiled.onnx : w->compiled.primitives;
    UIR_TRY(uir_module_parse(w->allocator, w->diagnostics, text, length, w->options->file, constants, &w->parsed));
    w->module = w->parsed;
    UIR_TRY(uir_module_verify(w->module, w->diagnostics));
    if (!onnx && is_onnx(w->after))
        return uir_error(w->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "stage 'onnx' does not come after '%s'",
                         w->from ? w->from : "primitives");
    if (onnx && is_onnx(w->after) && !w->options->run) return UIR_STATUS_OK;
    if (onnx) {
        UIR_TRY(uir_decompose(w->parsed, w->allocator, w->diagnostics, &w->made));
        w->module = w->made;
    }
    const char *last = w->is_middle ? NULL : is_onnx(w->after) ? "primitives" : w->after;
    UIR_TRY(uir_compile_continue(w->module, onnx ? NULL : w->from, last, w->diagnostics));
    if (!w->is_middle) return UIR_STATUS_OK;
    return uir_middle_run(w->module, &w->middle_options, w->allocator, w->diagnostics, &w->middle);
}

static uir_status from_middle(model_work *w, uir_middle_stage from, const char *text, size_t length) {
    if (!w->after) w->after = uir_middle_stage_name(from), w->is_middle = true, w->middle_options.last = from;
    if (!w->is_middle || from > w->middle_options.last)
        return uir_error(w->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "stage '%s' does not come after '%s'",
                         w->after, w->from);
    UIR_TRY(uir_middle_continue(text, length, w->options->file, from, w->compiled.primitives, &w->middle_options,
                                w->allocator, w->diagnostics, &w->parsed, &w->middle));
    w->module = w->parsed;
    return UIR_STATUS_OK;
}

/* The value of a line "# word: value" among the first, or false. */
static bool take_line(const char *text, size_t length, const char *word, char *out, size_t capacity) {
    const char *at = text, *end = text + length;
    size_t word_length = strlen(word);
    while (at < end && *at == '#') {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        if (!line) return false;
        size_t size = (size_t)(line - at);
        if (size > word_length && size - word_length < capacity && !memcmp(at, word, word_length)) {
            snprintf(out, capacity, "%.*s", (int)(size - word_length), at + word_length);
            return true;
        }
        at = line + 1;
    }
    return false;
}

/* What a reader of what is printed will find: the constants of the model after that stage. */
static uir_status list_home(model_work *w) {
    const char *reads = w->is_middle ? NULL : w->after;
    uir_compiled kept = w->compiled;
    uir_middle_stage stage;
    bool same = (w->is_middle && is_middle_stage(w->from, &stage)) || (reads && w->from && !strcmp(reads, w->from));
    if (!*w->home || w->inlined || w->options->run || w->emit || !kept.onnx) return UIR_STATUS_OK;
    if (!same) UIR_TRY(compile_model(w, w->home, reads));
    uir_status status = list_constants(w, is_onnx(reads) ? w->compiled.onnx : w->compiled.primitives);
    if (!same) {
        uir_compiled_deinit(&w->compiled);
        w->compiled = kept;
    }
    return status;
}

static uir_status from_text(model_work *w, const char *text, size_t length) {
    uir_middle_stage from;
    bool middle = is_middle_stage(w->from, &from);
    if (w->options->constants && !w->inlined)
        snprintf(w->home, sizeof w->home, "%s", w->options->constants);
    else if (!take_line(text, length, home_word, w->home, sizeof w->home) || access(w->home, R_OK) != 0)
        *w->home = 0; /* what is named by hash is refused where it stands */
    if (!*w->home && w->options->external_data)
        return opt_usage("--external-data is the model's, and the text names none: give --constants M.onnx", NULL);
    if (*w->home) UIR_TRY(compile_model(w, w->home, middle ? NULL : w->from ? w->from : "primitives"));
    UIR_TRY(middle ? from_middle(w, from, text, length) : from_module(w, text, length));
    return list_home(w);
}

/* ---- the way out ---- */
static uir_status emit(const model_work *w, uir_text *text) {
    for (uint32_t k = 0; k < w->middle.kernels.count; k++) {
        const uir_igraph_list *variants = &w->middle.kernels.data[k].lowered.igraphs;
        if (w->options->kernel && strcmp(w->middle.kernels.data[k].name, w->options->kernel)) continue;
        for (uint32_t v = 0; v < variants->count; v++)
            UIR_TRY(uir_compile_emit_kernel(variants->igraphs[v], text, w->diagnostics));
    }
    return uir_text_status(text);
}

static const uir_middle_kernel *find_kernel(const model_work *w) {
    for (uint32_t k = 0; k < w->middle.kernels.count; k++)
        if (!strcmp(w->middle.kernels.data[k].name, w->options->kernel)) return &w->middle.kernels.data[k];
    fprintf(stderr, "uir-opt: error: --kernel: the model has no kernel '%s'; there are:", w->options->kernel);
    for (uint32_t k = 0; k < w->middle.kernels.count; k++)
        fprintf(stderr, "%s %s", k ? "," : "", w->middle.kernels.data[k].name);
    fputc('\n', stderr);
    return NULL;
}

static uir_status print(model_work *w, uir_text *text) {
    if (w->options->kernel && !find_kernel(w)) return UIR_STATUS_INVALID_ARGUMENT;
    if (w->emit) return emit(w, text);
    if (w->options->kernel) return uir_middle_print_kernel(&w->middle, w->options->kernel, text);
    uir_print_options options = {.inline_limit = w->inlined ? SIZE_MAX : INLINE_LIMIT, .elide = elide, .user = w};
    uir_text_append_format(text, "%s%s\n", stage_word, w->after ? w->after : last_pass());
    size_t begin = text->length;
    UIR_TRY(w->is_middle ? uir_middle_print(&w->middle, &options, text)
                         : uir_module_print_with(w->module, &options, text));
    if (!*w->home || w->inlined || !strstr(text->data + begin, "hash \"")) return UIR_STATUS_OK;
    if (strchr(w->home, '\n')) return UIR_STATUS_OK; /* --constants will have to name it */
    uir_text whole;
    uir_text_init(&whole, w->allocator);
    uir_text_append(&whole, text->data, begin);
    uir_text_append_format(&whole, "%s%s\n", home_word, w->home);
    uir_text_append(&whole, text->data + begin, text->length - begin);
    uir_text_deinit(text);
    *text = whole;
    return uir_text_status(text);
}

static uir_status print_out(model_work *w) {
    uir_text output;
    uir_text_init(&output, w->allocator);
    uir_status status = print(w, &output);
    if (status == UIR_STATUS_OK) status = uir_text_status(&output);
    if (status == UIR_STATUS_OK) status = opt_write_output(w->options, output.data ? output.data : "", output.length);
    uir_text_deinit(&output);
    return status;
}

static uir_status run(model_work *w) {
    if (w->options->kernel) {
        const uir_middle_kernel *kernel = find_kernel(w);
        return kernel ? opt_run_kernel(w->options, &kernel->lowered.igraphs, w->diagnostics)
                      : UIR_STATUS_INVALID_ARGUMENT;
    }
    const char *device = w->options->device ? w->options->device : "interpreter";
    opt_program program = {.module = w->module,
                           .middle = w->is_middle ? &w->middle : NULL,
                           .runner = w->is_middle && w->middle.stage >= UIR_MIDDLE_IGRAPH ? device : NULL,
                           .home = *w->home ? w->home : ""};
    return opt_run_values(w->options, &program, w->allocator, w->diagnostics);
}

static void warn_refusals(const model_work *w) {
    for (uint32_t i = 0; i < w->middle.refusals.count; i++) {
        const uir_middle_refusal *refusal = &w->middle.refusals.data[i];
        const uir_node_info *group = uir_node_get(w->module, refusal->group);
        fprintf(stderr, "uir-opt: note: the group of '%s' has no kernel: %s\n",
                uir_string_text(&w->module->strings, group->name), refusal->why);
    }
}

/* The variant of the CPU that kernels are made for. */
static uir_status make_devices(model_work *w, uir_compile_devices **out_devices) {
    const char *variant = NULL, *device = w->options->device;
    if (!w->options->run)
        UIR_TRY(opt_cpu_variant(w->options, &variant));
    else if (device && !strncmp(device, "cpu:", 4))
        variant = device + 4;
    uir_status status = uir_compile_devices_create(w->allocator, variant, w->diagnostics, out_devices);
    if (status == UIR_STATUS_OK && w->options->run && device) status = uir_kernel_runner_check(device, w->diagnostics);
    return status == UIR_STATUS_NOT_FOUND ? UIR_STATUS_INVALID_ARGUMENT : status;
}

uir_status opt_run_module(const opt_options *options, const char *text, size_t length, const uir_allocator *allocator,
                          uir_diagnostics *diagnostics) {
    model_work w = {.options = options, .allocator = allocator, .diagnostics = diagnostics};
    uir_compile_devices *devices = NULL;
    uir_arena_init(&w.arena, allocator);
    if (text) (void)take_line(text, length, stage_word, w.stage, sizeof w.stage);
    uir_status status = take_target(&w);
    if (status == UIR_STATUS_OK) status = make_devices(&w, &devices);
    if (status == UIR_STATUS_OK) {
        w.middle_options.device = uir_compile_devices_get(devices)->devices[0];
        status = text ? from_text(&w, text, length) : from_model(&w);
    }
    if (status == UIR_STATUS_OK) status = options->run ? run(&w) : print_out(&w);
    if (w.module) warn_refusals(&w);
    uir_middle_deinit(&w.middle);
    uir_module_destroy(w.made);
    uir_module_destroy(w.parsed);
    uir_compiled_deinit(&w.compiled);
    uir_arena_deinit(&w.arena);
    uir_compile_devices_destroy(devices);
    free(w.known.hashes);
    return status;
}
