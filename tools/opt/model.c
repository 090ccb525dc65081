/* A model, or the text of one after some stage: on to another stage, whose text is printed. */
#define _XOPEN_SOURCE 700
#include "opt.h"
#include "pipeline.h"
#include "pipeline_kernel.h"
#include "pipeline_lower.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first line of a text that names constants by hash says where they lie. */
static const char home_word[] = "# constants: ";

typedef struct model_work {
    const opt_options *options;
    const uir_allocator *allocator;
    uir_diagnostics *diagnostics;
    uir_arena arena;
    uir_compiled compiled;
    uir_module *module;  /* what is worked on: the compiled primitives, or what the text held */
    uir_module *parsed;  /* owned: a text's */
    char home[PATH_MAX]; /* the model whose constants these are; "" when it is not known */
    uir_middle middle;
    uir_middle_options middle_options;
    bool is_middle, emit; /* what is asked for lies beyond the clean-up; is source */
} model_work;

/* Small models are written out whole; of large ones the large constants by hash. */
static size_t inline_limit(const uir_module *module) {
    enum { MOST = 1 << 20 };
    uint64_t elements = 0;
    for (uint32_t i = 1; i < module->values.count; i++)
        if (module->values.data[i].constant) elements += module->values.data[i].constant->element_count;
    return elements <= MOST ? SIZE_MAX : 64;
}

static bool has_hashes(const uir_module *module) {
    for (uint32_t i = 1; i < module->values.count; i++) {
        const uir_tensor *constant = module->values.data[i].constant;
        if (constant && constant->element_count > inline_limit(module)) return true;
    }
    return false;
}

static bool is_middle_stage(const char *name, uir_middle_stage *out_stage) {
    return name && uir_middle_stage_find(name, out_stage);
}

/* What --after asks for. */
static void take_target(model_work *w) {
    const char *after = w->options->after;
    w->emit = after && !strcmp(after, "emit");
    w->middle_options.last = UIR_MIDDLE_RUNS;
    w->is_middle = w->emit || is_middle_stage(after, &w->middle_options.last);
}

static uir_status compile_model(model_work *w, const char *path, const char *stop) {
    uir_onnx_source source = {.path = path, .external_data = w->options->external_data};
    uir_pipeline_options options = {.stop = stop, .check_text = true};
    return uir_pipeline_compile(&source, w->allocator, w->diagnostics, &w->arena, &options, &w->compiled);
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
    const char *after = w->options->after;
    bool onnx = after && !strcmp(after, "onnx");
    UIR_TRY(compile_model(w, w->options->file, onnx ? "primitives" : w->is_middle ? NULL : after));
    w->module = onnx ? w->compiled.onnx : w->compiled.primitives;
    take_path(w->options->file, w->home);
    if (!w->is_middle) return UIR_STATUS_OK;
    return uir_middle_run(w->module, &w->middle_options, w->allocator, w->diagnostics, &w->middle);
}

static uir_status from_primitives(model_work *w, const char *text, size_t length) {
    UIR_TRY(uir_module_parse(w->allocator, w->diagnostics, text, length, w->options->file, w->compiled.primitives,
                             &w->parsed));
    w->module = w->parsed;
    UIR_TRY(uir_module_verify(w->module, w->diagnostics));
    UIR_TRY(
        uir_pipeline_continue(w->module, w->options->from, w->is_middle ? NULL : w->options->after, w->diagnostics));
    if (!w->is_middle) return UIR_STATUS_OK;
    return uir_middle_run(w->module, &w->middle_options, w->allocator, w->diagnostics, &w->middle);
}

static uir_status from_middle(model_work *w, uir_middle_stage from, const char *text, size_t length) {
    if (!w->is_middle || from > w->middle_options.last)
        return uir_error(w->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "stage '%s' does not come after '%s'",
                         w->options->after ? w->options->after : "drop-dead", w->options->from);
    UIR_TRY(uir_middle_continue(text, length, w->options->file, from, w->compiled.primitives, &w->middle_options,
                                w->allocator, w->diagnostics, &w->parsed, &w->middle));
    w->module = w->parsed;
    return UIR_STATUS_OK;
}

/* What --constants or the text's first line names. */
static void take_home(model_work *w, const char *text, size_t length) {
    const size_t word = sizeof home_word - 1;
    const char *end = memchr(text, '\n', length);
    if (w->options->constants)
        snprintf(w->home, sizeof w->home, "%s", w->options->constants);
    else if (end && (size_t)(end - text) > word && (size_t)(end - text) - word < sizeof w->home &&
             !memcmp(text, home_word, word))
        snprintf(w->home, sizeof w->home, "%.*s", (int)((size_t)(end - text) - word), text + word);
}

static uir_status from_text(model_work *w, const char *text, size_t length) {
    uir_middle_stage from;
    bool middle = is_middle_stage(w->options->from, &from);
    take_home(w, text, length);
    if (*w->home) UIR_TRY(compile_model(w, w->home, middle ? NULL : w->options->from));
    return middle ? from_middle(w, from, text, length) : from_primitives(w, text, length);
}

/* ---- the way out ---- */
static uir_status emit(const model_work *w, uir_text *text) {
    for (uint32_t k = 0; k < w->middle.kernels.count; k++) {
        const uir_igraph_list *variants = &w->middle.kernels.data[k].lowered.igraphs;
        for (uint32_t v = 0; v < variants->count; v++)
            UIR_TRY(uir_pipeline_emit_kernel(variants->igraphs[v], text, w->diagnostics));
    }
    return uir_text_status(text);
}

static uir_status print(const model_work *w, uir_text *text) {
    if (w->emit) return emit(w, text);
    if (*w->home && !strchr(w->home, '\n') && has_hashes(w->module)) {
        uir_text_append_string(text, home_word);
        uir_text_append_string(text, w->home);
        uir_text_append_string(text, "\n");
    }
    if (w->is_middle) return uir_middle_print(&w->middle, inline_limit(w->module), text);
    return uir_module_print(w->module, inline_limit(w->module), text);
}

static void warn_refusals(const model_work *w) {
    for (uint32_t i = 0; i < w->middle.refusals.count; i++) {
        const uir_middle_refusal *refusal = &w->middle.refusals.data[i];
        const uir_node_info *group = uir_node_get(w->module, refusal->group);
        fprintf(stderr, "uir-opt: note: the group of '%s' has no kernel: %s\n",
                uir_string_text(&w->module->strings, group->name), refusal->why);
    }
}

uir_status opt_run_module(const opt_options *options, const char *text, size_t length, const uir_allocator *allocator,
                          uir_diagnostics *diagnostics) {
    model_work w = {.options = options, .allocator = allocator, .diagnostics = diagnostics};
    uir_pipeline_devices *devices = NULL;
    uir_text output;
    const char *device = options->device ? options->device : "",
               *variant = strncmp(device, "cpu:", 4) ? NULL : device + 4;
    uir_arena_init(&w.arena, allocator);
    uir_text_init(&output, allocator);
    uir_status status = uir_pipeline_devices_create(allocator, variant, diagnostics, &devices);
    if (status == UIR_STATUS_NOT_FOUND) status = UIR_STATUS_INVALID_ARGUMENT;
    if (status == UIR_STATUS_OK) {
        w.middle_options.device = uir_pipeline_devices_get(devices)->devices[0];
        take_target(&w);
        status = text ? from_text(&w, text, length) : from_model(&w);
    }
    if (status == UIR_STATUS_OK) status = print(&w, &output);
    if (status == UIR_STATUS_OK) status = uir_text_status(&output);
    if (status == UIR_STATUS_OK) status = opt_write_output(options, output.data ? output.data : "", output.length);
    if (w.module) warn_refusals(&w);
    uir_text_deinit(&output);
    uir_middle_deinit(&w.middle);
    uir_module_destroy(w.parsed);
    uir_compiled_deinit(&w.compiled);
    uir_arena_deinit(&w.arena);
    uir_pipeline_devices_destroy(devices);
    return status;
}
