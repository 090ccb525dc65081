/* A model, or the text of one after some stage: on to another stage, whose text is printed, or which is run. */
#define _XOPEN_SOURCE 700
#include "opt.h"
#include "tools/run/printable.h"
#include "ir/graph/graph_text.h"
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
    uir_compile compile; /* what is worked on */
    uir_compile model;   /* of a text: the model that it came from, whose constants it names */
    char stage[64];      /* the text's own word for where it is; "" none */
    char home[PATH_MAX]; /* the model whose constants these are; "" when it is not known */
    hash_list known;     /* constants that a reader of the text will find there */
    uir_compile_options compile_options;
    uir_compile_schedule_text schedule; /* of --schedule; no kernel: none */
    char *steps;
    uir_stage from, after;
    bool inlined; /* all numbers are in the text */
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
/* --run on a device runs the kernels that all stages have made; by interpreter, the IR as the stage has it. */
static bool on_device(const model_work *w) {
    return w->options->run && (w->options->kernel || (w->options->device && strcmp(w->options->device, "interpreter")));
}

static uir_status no_stage(const char *option, const char *name) {
    complain(NULL, "%s: unknown stage '%s'; uir-opt --list names the stages", option, name);
    return UIR_STATUS_INVALID_ARGUMENT;
}

/* Stages without a text are none here. */
static uir_status find_stage(const char *option, const char *name, uir_stage *out_stage) {
    bool found = uir_stage_find(name, out_stage) && uir_stage_get(*out_stage)->print;
    return found ? UIR_STATUS_OK : no_stage(option, name);
}

static uir_status take_from(model_work *w) {
    const char *name = w->options->from ? w->options->from : w->stage;
    w->from = UIR_STAGE_PRIMITIVES;
    if (*name) UIR_TRY(find_stage("--from", name, &w->from));
    return uir_stage_get(w->from)->read ? UIR_STATUS_OK : opt_usage("--from: no stage continues from a text of", name);
}

/* What is left out goes to the end of the clean-up, or as far as the text is; --run leaves the text as it is. */
static uir_status take_after(model_work *w, bool is_text) {
    const opt_options *options = w->options;
    bool stays = is_text && (w->from > UIR_STAGE_CLEANED || (options->run && (options->from || *w->stage)));
    w->after = stays ? w->from : UIR_STAGE_CLEANED;
    if (options->after) UIR_TRY(find_stage("--after", options->after, &w->after));
    if (options->run && w->after == UIR_STAGE_EMIT) return no_stage("--after", options->after);
    if (!on_device(w)) return UIR_STATUS_OK;
    if (options->after && w->after != UIR_STAGE_RUNS)
        return opt_usage("--run on a device runs every stage; give --device interpreter to run the IR after",
                         options->after);
    w->after = UIR_STAGE_RUNS;
    return UIR_STATUS_OK;
}

/* Steps are for a kernel that this call schedules. */
static uir_status take_schedule(model_work *w) {
    const opt_options *options = w->options;
    uir_schedule_text *text = &w->schedule.text;
    if (!options->schedule) return UIR_STATUS_OK;
    if (!options->kernel) return opt_usage("--schedule is for one kernel: give --kernel NAME", NULL);
    if (w->after < UIR_STAGE_SCHEDULE)
        return opt_usage("--schedule: no schedule yet after", uir_stage_get(w->after)->name);
    if (w->from >= UIR_STAGE_SCHEDULE)
        return opt_usage("--schedule: give the model or a text of it before the schedule; this one is after",
                         uir_stage_get(w->from)->name);
    UIR_TRY(opt_read_file(options->schedule, &w->steps, &text->length));
    text->data = w->steps;
    text->file = options->schedule;
    w->schedule.kernel = options->kernel;
    return UIR_STATUS_OK;
}

static uir_status take_layouts(model_work *w) {
    for (size_t i = 0; i < w->options->no_layouts.count; i++) {
        const char *wanted = w->options->no_layouts.items[i];
        uint32_t rule = 0;
        while (rule < UIR_LAYOUT_RULE_COUNT && strcmp(uir_layout_rule_name((uir_layout_rule)rule), wanted)) rule++;
        if (rule == UIR_LAYOUT_RULE_COUNT) return opt_usage("--no-layout: unknown layout rule", wanted);
        w->compile_options.layouts_left_out |= 1u << rule;
    }
    return UIR_STATUS_OK;
}

static uir_status take_target(model_work *w, bool is_text) {
    const opt_options *options = w->options;
    UIR_TRY(take_from(w));
    UIR_TRY(take_after(w, is_text));
    if (options->kernel && !on_device(w) && (!options->after || w->after <= UIR_STAGE_FUSION))
        return opt_usage("--kernel: give --after loop, schedule, igraph, runs or emit; earlier stages have no kernels",
                         NULL);
    w->inlined = options->constants && !strcmp(options->constants, "inline");
    w->compile_options.check_text = true;
    w->compile_options.exact = w->options->exact;
    w->compile_options.strict = w->options->strict;
    if (options->precision && is_text && w->from >= UIR_STAGE_PRECISION)
        return opt_usage("--precision: operand types are fixed in a text after", uir_stage_get(w->from)->name);
    UIR_TRY(uir_precision_find(w->options->precision, w->diagnostics, &w->compile_options.precision));
    w->compile_options.emitter = options->emitter;
    UIR_TRY(opt_check_emitter(options, w->after == UIR_STAGE_EMIT));
    UIR_TRY(take_layouts(w));
    return take_schedule(w);
}

/* The stage whose text is wanted is done, or the one that completes it: ONNX ops have types once these are primitives.
 */
static uir_stage last_to_run(uir_stage after) {
    return after < UIR_STAGE_PRIMITIVES ? UIR_STAGE_PRIMITIVES : after;
}

static uir_compile_call call_of(const model_work *w) {
    return (uir_compile_call){.diagnostics = w->diagnostics, .schedule = w->schedule.kernel ? &w->schedule : NULL};
}

static uir_status compile_model(model_work *w, const char *path, uir_stage last, uir_compile *out_compile) {
    uir_onnx_source source = {.path = path, .external_data = w->options->external_data, .no_map = w->options->no_map};
    const uir_compile_call call = call_of(w);
    uir_compile_init(out_compile, &source, &w->compile_options, w->allocator, &w->arena);
    return uir_compile_run(out_compile, last_to_run(last), &call);
}

/* What constants of a stage's text are those of. */
static const uir_module *module_of(const uir_compile *compile, uir_stage stage) {
    return stage == UIR_STAGE_ONNX ? compile->onnx : compile->primitives;
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

/* ---- the two ways in ---- */
static uir_status from_model(model_work *w) {
    UIR_TRY(compile_model(w, w->options->file, w->after, &w->compile));
    take_path(w->options->file, w->home);
    return list_constants(w, module_of(&w->compile, w->options->run ? UIR_STAGE_PRIMITIVES : w->after));
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

/* The stage of the model that has the constants of a stage's text: kernels hold those of the last graph before them. */
static uir_stage with_constants(uir_stage stage) {
    return stage > UIR_STAGE_WINOGRAD ? UIR_STAGE_WINOGRAD : stage;
}

/* What a reader of what is printed will find: the constants of the model after that stage. */
static uir_status list_home(model_work *w) {
    uir_stage wanted = with_constants(w->after);
    uir_compile other = {0}, *home = &w->model;
    if (!*w->home || w->inlined || w->options->run || w->after == UIR_STAGE_EMIT) return UIR_STATUS_OK;
    if (wanted != with_constants(w->from)) {
        home = &other;
        UIR_TRY(compile_model(w, w->home, wanted, home));
    }
    uir_status status = list_constants(w, module_of(home, wanted));
    uir_compile_deinit(&other);
    return status;
}

static uir_status from_text(model_work *w, const char *text, size_t length) {
    if (w->options->constants && !w->inlined)
        snprintf(w->home, sizeof w->home, "%s", w->options->constants);
    else if (!take_line(text, length, home_word, w->home, sizeof w->home) || access(w->home, R_OK) != 0)
        *w->home = 0; /* what is named by hash is refused where it stands */
    if (!*w->home && w->options->external_data)
        return opt_usage("--external-data is for a model, and the text names none: give --constants M.onnx", NULL);
    if (w->from > w->after)
        return uir_error(w->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "stage '%s' does not come after '%s'",
                         uir_stage_get(w->after)->name, uir_stage_get(w->from)->name);
    if (*w->home) UIR_TRY(compile_model(w, w->home, with_constants(w->from), &w->model));
    const uir_compile_text read = {text, length, w->options->file, module_of(&w->model, w->from)};
    const uir_compile_call call = call_of(w);
    uir_compile_init(&w->compile, NULL, &w->compile_options, w->allocator, &w->arena);
    UIR_TRY(uir_compile_read(&w->compile, w->from, &read, w->diagnostics));
    uir_stage last = w->options->run ? last_to_run(w->after) : w->after;
    if (last >= w->compile.next) UIR_TRY(uir_compile_run(&w->compile, last, &call));
    return list_home(w);
}

/* ---- the way out ---- */
static const uir_lowering_kernel *find_kernel(const model_work *w) {
    const uir_lowering *lowering = &w->compile.lowering;
    const uir_lowering_kernel *kernel = uir_lowering_find_kernel(lowering, w->options->kernel);
    if (kernel) return kernel;
    print_safely(stderr,
                 "uir-opt: error: --kernel: the model has no kernel '%s'; its kernels are:", w->options->kernel);
    for (uint32_t k = 0; k < lowering->kernels.count; k++)
        print_safely(stderr, "%s %s", k ? "," : "", lowering->kernels.data[k].name);
    fputc('\n', stderr);
    return NULL;
}

static uir_status print(model_work *w, uir_text *text) {
    if (w->options->kernel)
        return find_kernel(w)
                   ? uir_compile_print_kernel(&w->compile, w->after, w->options->kernel, text, w->diagnostics)
                   : UIR_STATUS_INVALID_ARGUMENT;
    uir_print_options options = {.inline_limit = w->inlined ? SIZE_MAX : INLINE_LIMIT, .elide = elide, .user = w};
    if (w->after == UIR_STAGE_EMIT) return uir_compile_print(&w->compile, w->after, &options, text, w->diagnostics);
    uir_text_append_format(text, "%s%s\n", stage_word, uir_stage_get(w->after)->name);
    size_t begin = text->length;
    UIR_TRY(uir_compile_print(&w->compile, w->after, &options, text, w->diagnostics));
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
        const uir_lowering_kernel *kernel = find_kernel(w);
        if (!kernel) return UIR_STATUS_INVALID_ARGUMENT;
        const uir_loop_function *loops = w->schedule.kernel ? kernel->lowered.naive : NULL;
        return opt_run_kernel(w->options, &kernel->lowered.igraphs, loops, w->diagnostics);
    }
    const char *device = w->options->device ? w->options->device : "interpreter";
    opt_program program = {.module = w->compile.primitives,
                           .lowering = &w->compile.lowering,
                           .stage = w->after,
                           .runner = w->after >= UIR_STAGE_IGRAPH ? device : NULL,
                           .home = *w->home ? w->home : ""};
    return opt_run_values(w->options, &program, w->allocator, w->diagnostics);
}

static void warn_refusals(const model_work *w) {
    const uir_module *module = w->compile.primitives;
    for (uint32_t i = 0; i < w->compile.lowering.refusals.count; i++) {
        const uir_lowering_refusal *refusal = &w->compile.lowering.refusals.data[i];
        const uir_node_info *group = uir_node_get(module, refusal->group);
        print_safely(stderr, "uir-opt: note: the group of '%s' has no kernel: %s\n",
                     uir_string_text(&module->strings, group->name), refusal->why);
    }
}

static uir_status make_devices(model_work *w, uir_compile_machines **out_devices) {
    UIR_TRY(opt_make_devices(w->options, w->allocator, w->diagnostics, out_devices, &w->compile_options.description));
    return w->options->run && w->options->device ? uir_kernel_runner_check(w->options->device, w->diagnostics)
                                                 : UIR_STATUS_OK;
}

uir_status opt_run_module(const opt_options *options, const char *text, size_t length, const uir_allocator *allocator,
                          uir_diagnostics *diagnostics) {
    model_work w = {.options = options, .allocator = allocator, .diagnostics = diagnostics};
    uir_compile_machines *devices = NULL;
    uir_arena_init(&w.arena, allocator);
    if (text) (void)take_line(text, length, stage_word, w.stage, sizeof w.stage);
    uir_status status = take_target(&w, text != NULL);
    if (status == UIR_STATUS_OK) status = make_devices(&w, &devices);
    if (status == UIR_STATUS_OK) status = text ? from_text(&w, text, length) : from_model(&w);
    if (status == UIR_STATUS_OK) status = options->run ? run(&w) : print_out(&w);
    warn_refusals(&w);
    uir_compile_deinit(&w.compile);
    uir_compile_deinit(&w.model);
    uir_arena_deinit(&w.arena);
    uir_compile_machines_destroy(devices);
    free(w.known.hashes);
    free(w.steps);
    return status;
}
