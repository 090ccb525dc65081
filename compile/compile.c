#include "compile/compile.h"
#include "compile/launch.h"
#include "compile/stages.h"
#include "passes/tools.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- the table ---- */
static const uir_stage_row rows[UIR_STAGE_COUNT] = {
#define UIR_STAGE(symbol, name, purpose, doing, share, run, each, print, read, checked, held, launch, runner, key)     \
    {name, purpose, doing, share, {0}, run, each, print, read, checked, UIR_##held, launch, runner, key},
#define UIR_STAGE_PASS(name, function, purpose, doing, share, checked, held)                                           \
    {name,                                                                                                             \
     purpose,                                                                                                          \
     doing,                                                                                                            \
     share,                                                                                                            \
     {name, function, purpose},                                                                                        \
     uir_compile_run_pass,                                                                                             \
     NULL,                                                                                                             \
     uir_compile_print_primitives,                                                                                     \
     uir_compile_read_primitives,                                                                                      \
     checked,                                                                                                          \
     UIR_##held,                                                                                                       \
     NULL,                                                                                                             \
     NULL,                                                                                                             \
     NULL},
#include "compile/stages.def"
#undef UIR_STAGE_PASS
#undef UIR_STAGE
};

const uir_stage_row *uir_stage_get(uir_stage stage) {
    return &rows[stage];
}

bool uir_stage_find(const char *name, uir_stage *out_stage) {
    for (uir_stage stage = 0; stage < UIR_STAGE_COUNT; stage++) {
        if (strcmp(rows[stage].name, name) != 0) continue;
        *out_stage = stage;
        return true;
    }
    return false;
}

/* ---- a model on its way ---- */
void uir_compile_init(uir_compile *c, const uir_onnx_source *source, const uir_compile_options *options,
                      const uir_allocator *allocator, uir_arena *arena) {
    *c = (uir_compile){.allocator = *allocator, .arena = arena};
    if (source) c->source = *source;
    if (options) c->options = *options;
}

uir_status uir_compile_read(uir_compile *c, uir_stage stage, const uir_compile_text *text,
                            uir_diagnostics *diagnostics) {
    if (!rows[stage].read)
        return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "compilation cannot continue from a text of stage '%s'", rows[stage].name);
    c->is_text = true;
    UIR_TRY(rows[stage].read(c, stage, text, diagnostics));
    c->next = stage + 1;
    return UIR_STATUS_OK;
}

void uir_compile_drop_onnx(uir_compile *c) {
    uir_module_destroy(c->onnx);
    c->onnx = NULL;
}

uir_status uir_compile_keep(uir_compile *c) {
    uir_compile_drop_kept(c);
    return uir_module_clone(c->primitives, &c->allocator, &c->kept);
}

void uir_compile_drop_kept(uir_compile *c) {
    uir_module_destroy(c->kept);
    c->kept = NULL;
}

/* Releases the results of the stages behind CLEANED. */
static void drop_kernels(uir_compile *c) {
    if (c->names.symbols) uir_target_object_deinit(&c->names);
    if (c->program.symbols) uir_target_object_deinit(&c->program);
    if (c->igraphs) uir_release(&c->allocator, (void *)c->igraphs, ((size_t)c->igraph_count + 1) * sizeof *c->igraphs);
    uir_lowering_deinit(&c->lowering);
    c->igraphs = NULL;
    c->igraph_count = 0;
}

void uir_compile_restore(uir_compile *c) {
    drop_kernels(c);
    uir_module_take_storage(c->kept, c->primitives);
    uir_module_destroy(c->primitives);
    *c = (uir_compile){.allocator = c->allocator,
                       .arena = c->arena,
                       .next = UIR_STAGE_PRECISION,
                       .onnx = c->onnx,
                       .primitives = c->kept,
                       .info = c->info,
                       .load_ms = c->load_ms,
                       .compile_ms = c->compile_ms};
}

void uir_compile_deinit(uir_compile *c) {
    drop_kernels(c);
    uir_compile_drop_kept(c);
    /* A file's constants lie in what the primitives own; a text's own theirs. */
    uir_module_destroy(c->is_text ? c->primitives : c->onnx);
    uir_module_destroy(c->is_text ? c->onnx : c->primitives);
    *c = (uir_compile){0};
}

uir_status uir_compile_begin_lowering(uir_compile *c, uir_diagnostics *diagnostics) {
    const uir_machine *machine = c->options.description;
    if (!machine) {
        const char *variant;
        c->row = uir_device_find(c->options.device, &variant);
        if (!c->row)
            return uir_error_hint(diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "choose another device",
                                  "packages cannot be made for the device '%s'", c->options.device);
        c->target = uir_target_of(c->row);
        UIR_TRY(uir_target_describe(c->row, variant, c->arena, diagnostics, &c->machine));
        machine = &c->machine.description;
    }
    uir_lowering_init(&c->lowering, c->primitives, machine, &c->allocator);
    const uir_device_row *host = c->row ? uir_device_find_host(c->row) : NULL;
    if (host) {
        c->host_target = uir_target_of(host);
        UIR_TRY(uir_target_describe(host, NULL, c->arena, diagnostics, &c->host));
        c->lowering.host = &c->host.description;
    }
    c->lowering.isolates_faults = c->options.isolates_faults;
    return UIR_STATUS_OK;
}

/* ---- texts ---- */
uir_status uir_compile_print(const uir_compile *c, uir_stage stage, const uir_print_options *options, uir_text *text,
                             uir_diagnostics *diagnostics) {
    return rows[stage].print(c, stage, options, text, diagnostics);
}

static uir_status dump_stage(const uir_compile *c, uir_stage stage, uir_diagnostics *diagnostics) {
    static const uir_print_options plain = {.inline_limit = 16};
    const uir_compile_options *o = &c->options;
    if (!o->dump || !o->dump_text || stage > UIR_STAGE_CLEANED) return UIR_STATUS_OK;
    if (strcmp(o->dump, rows[stage].name) != 0 && strcmp(o->dump, "all") != 0) return UIR_STATUS_OK;
    uir_text text;
    uir_text_init(&text, &c->allocator);
    uir_status status = uir_compile_print(c, stage, &plain, &text, diagnostics);
    if (status == UIR_STATUS_OK) status = uir_text_status(&text);
    if (status == UIR_STATUS_OK) o->dump_text(o->dump_user, rows[stage].name, text.data ? text.data : "", text.length);
    uir_text_deinit(&text);
    return status;
}

/* The values of ONNX ops have their types once these are primitives. */
static uir_status dump(const uir_compile *c, uir_stage stage, uir_diagnostics *diagnostics) {
    if (stage == UIR_STAGE_ONNX) return UIR_STATUS_OK;
    if (stage == UIR_STAGE_PRIMITIVES) UIR_TRY(dump_stage(c, UIR_STAGE_ONNX, diagnostics));
    return dump_stage(c, stage, diagnostics);
}

/* A stage whose text is wanted is one, or all. */
static uir_status check_dump(const char *name, uir_diagnostics *diagnostics) {
    uir_stage stage;
    char names[400] = "";
    if (!name || !strcmp(name, "all") || (uir_stage_find(name, &stage) && stage <= UIR_STAGE_CLEANED))
        return UIR_STATUS_OK;
    for (stage = 0; stage <= UIR_STAGE_CLEANED; stage++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", rows[stage].name);
    }
    return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                     "no stage '%s' to dump; use one of %s (uir-opt prints the later ones)", name, names);
}

/* ---- running ---- */
static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static double sum_shares(uir_stage first, uir_stage last) {
    double sum = 0;
    for (uir_stage stage = first; stage <= last; stage++) sum += rows[stage].share;
    return sum;
}

/* A stage may have read any of them. */
static void rest_constants(const uir_module *module) {
    for (uint32_t v = 0; module && v < module->values.count; v++) uir_tensor_rest(module->values.data[v].constant);
}

static uir_status run_next(uir_compile *c, const uir_compile_call *call) {
    const uir_stage_row *row = &rows[c->next];
    double start = now_ms();
    UIR_TRY(uir_progress_tell(call->progress, row->doing, 0));
    UIR_TRY(row->run(c, c->next, call));
    rest_constants(c->primitives);
    double *ms = c->next == UIR_STAGE_ONNX ? &c->load_ms : &c->compile_ms;
    if (c->next <= UIR_STAGE_CLEANED) *ms += now_ms() - start;
    return dump(c, c->next++, call->diagnostics);
}

uir_status uir_compile_run(uir_compile *c, uir_stage last, const uir_compile_call *call) {
    uir_stage first = c->next, end = last < UIR_STAGE_RUNS ? last : UIR_STAGE_RUNS;
    double whole = sum_shares(first, end);
    if (first == UIR_STAGE_ONNX) UIR_TRY(check_dump(c->options.dump, call->diagnostics));
    while (c->next <= end) {
        uir_compile_call part = *call;
        double done = sum_shares(first, c->next) - rows[c->next].share;
        part.progress = uir_progress_part(call->progress, done / whole, (done + rows[c->next].share) / whole);
        UIR_TRY(run_next(c, &part));
    }
    return last > UIR_STAGE_RUNS && rows[last].run ? rows[last].run(c, last, call) : UIR_STATUS_OK;
}
