#include "compile/primitives.h"
#include "decompose/decompose.h"
#include "passes/passes.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static uir_status dump(const uir_compile_options *options, const uir_allocator *allocator, const char *stage,
                       const uir_module *module) {
    if (!options->dump || !options->dump_text) return UIR_STATUS_OK;
    if (strcmp(options->dump, stage) != 0 && strcmp(options->dump, "all") != 0) return UIR_STATUS_OK;
    uir_text text;
    uir_text_init(&text, allocator);
    uir_status status = uir_module_print(module, options->inline_limit ? options->inline_limit : 16, &text);
    if (status == UIR_STATUS_OK) status = uir_text_status(&text);
    if (status == UIR_STATUS_OK) options->dump_text(options->dump_user, stage, text.data ? text.data : "", text.length);
    uir_text_deinit(&text);
    return status;
}

/* How many passes lie at or before the named stage; passes + 1 for a name that is none. */
static size_t passes_done(const char *name) {
    if (strcmp(name, "primitives") == 0) return 0;
    for (size_t i = 0; i < uir_cleanup_pass_count; i++) {
        if (strcmp(uir_cleanup_passes[i].name, name) == 0) return i + 1;
    }
    return uir_cleanup_pass_count + 1;
}

static uir_status no_stage(uir_diagnostics *diagnostics, const char *name) {
    char names[400] = "onnx, primitives";
    for (size_t i = 0; i < uir_cleanup_pass_count; i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, ", %s", uir_cleanup_passes[i].name);
    }
    return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                     "there is no stage '%s' here; there are %s (uir-opt prints the later ones)", name, names);
}

/* A stage whose text is wanted is one, or all. */
static uir_status check_dump(const uir_compile_options *options, uir_diagnostics *diagnostics) {
    const char *name = options->dump;
    if (!name || !strcmp(name, "all") || !strcmp(name, "onnx") || passes_done(name) <= uir_cleanup_pass_count)
        return UIR_STATUS_OK;
    return no_stage(diagnostics, name);
}

/* What no kernel makes would leave the whole model to the interpreter. */
static uir_status drop_kept(uir_compiled *out, uir_diagnostics *diagnostics) {
    uint32_t dropped;
    UIR_TRY(uir_onnx_drop_kept(out->primitives, &out->info, &dropped));
    if (dropped)
        uir_warning(diagnostics, NULL,
                    "%u values are strings, sequences or optionals, which are kept only when they are named", dropped);
    return UIR_STATUS_OK;
}

static uir_status compile(const uir_onnx_source *source, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                          uir_arena *arena, const uir_compile_options *options, uir_compiled *out) {
    uir_pass_options passes = {.check_text = options->check_text,
                               .progress = uir_progress_part(options->progress, 0.3, 1),
                               .stage = "cleaning up",
                               .inline_limit = options->inline_limit,
                               .dump = options->dump,
                               .dump_text = options->dump_text,
                               .user = options->dump_user};
    double start = now_ms();
    UIR_TRY(check_dump(options, diagnostics));
    UIR_TRY(uir_progress_tell(options->progress, "reading", 0));
    UIR_TRY(uir_onnx_load(source, allocator, diagnostics, arena, &out->info, &out->onnx));
    out->load_ms = now_ms() - start;

    start = now_ms();
    UIR_TRY(uir_progress_tell(options->progress, "decomposing", 0.2));
    UIR_TRY(uir_decompose(out->onnx, allocator, diagnostics, &out->primitives));
    if (source->keep && source->keep->all) UIR_TRY(drop_kept(out, diagnostics));
    UIR_TRY(dump(options, allocator, "onnx", out->onnx));
    UIR_TRY(dump(options, allocator, "primitives", out->primitives));

    size_t count = options->stop ? passes_done(options->stop) : uir_cleanup_pass_count;
    if (count > uir_cleanup_pass_count) return no_stage(diagnostics, options->stop);
    UIR_TRY(uir_passes_run(out->primitives, uir_cleanup_passes, count, &passes));
    UIR_TRY(uir_module_verify(out->primitives, diagnostics));
    out->compile_ms = now_ms() - start;
    return UIR_STATUS_OK;
}

uir_status uir_compile_compile(const uir_onnx_source *source, const uir_allocator *allocator,
                                uir_diagnostics *diagnostics, uir_arena *arena, const uir_compile_options *options,
                                uir_compiled *out_compiled) {
    uir_onnx_source supported = *source;
    supported.is_supported = uir_decompose_has_rule;
    *out_compiled = (uir_compiled){0};
    uir_status status = compile(&supported, allocator, diagnostics, arena,
                                options ? options : &(uir_compile_options){0}, out_compiled);
    if (status != UIR_STATUS_OK) {
        uir_onnx_info info = out_compiled->info;
        uir_compiled_deinit(out_compiled);
        out_compiled->info = info;
    }
    return status;
}

void uir_compiled_deinit(uir_compiled *compiled) {
    /* The source first: its constants may lie in what the primitives own. */
    uir_module_destroy(compiled->onnx);
    uir_module_destroy(compiled->primitives);
    *compiled = (uir_compiled){0};
}

const uir_pass *uir_compile_pass(size_t index) {
    return index < uir_cleanup_pass_count ? &uir_cleanup_passes[index] : NULL;
}

uir_status uir_compile_continue(uir_module *module, const char *from, const char *after,
                                 uir_diagnostics *diagnostics) {
    size_t first = from ? passes_done(from) : 0, last = after ? passes_done(after) : uir_cleanup_pass_count;
    if (first > uir_cleanup_pass_count) return no_stage(diagnostics, from);
    if (last > uir_cleanup_pass_count) return no_stage(diagnostics, after);
    if (first > last) {
        return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "stage '%s' comes after '%s'", from, after);
    }
    uir_pass_options passes = {.check_text = true};
    UIR_TRY(uir_passes_run(module, uir_cleanup_passes + first, last - first, &passes));
    return uir_module_verify(module, diagnostics);
}
