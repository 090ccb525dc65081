#include "compile/check.h"

#include "compile/launch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct checker {
    const uir_check_options *options;
    const uir_allocator *allocator;
    uir_diagnostics *diagnostics;
    uir_arena arena;
    bool native;
    const char *on_device; /* the device with memory of its own that runs each kernel last; NULL: native code does */
    uir_launcher *launcher;
    uir_target_object object; /* of the sources */
    uir_kernel_code code;
    uint64_t checked[UIR_STAGE_COUNT], skipped[UIR_STAGE_COUNT];
    bool differs;
    uint32_t groups, launched; /* of the main graph; launches so far */
    double loosened;           /* what more than the options may differ, relative and of the greatest; 0: no more */
} checker;

/* What is broken off is no difference. */
static bool is_cancelled(const checker *c) {
    return c->options->cancel && __atomic_load_n(c->options->cancel, __ATOMIC_RELAXED);
}

/* What each step takes of the whole, by where it ends. */
typedef enum check_step {
    READ,
    READ_AGAIN,
    REFERENCE,
    CLEANED_RUN,
    PRECISION_RUN,
    WINOGRAD_RUN,
    LOWER,
    LAUNCHES,
    STEP_COUNT
} check_step;
static const double step_ends[STEP_COUNT] = {0.02, 0.05, 0.1, 0.14, 0.17, 0.2, 0.35, 1};
static uir_progress part_of(const checker *c, check_step step) {
    return uir_progress_part(c->options->progress, step ? step_ends[step - 1] : 0, step_ends[step]);
}

/* Whether --check runs the kernels that the stage has made. */
static bool is_looked_at(const checker *c, uir_stage stage) {
    const uir_stage_row *row = uir_stage_get(stage);
    return (row->launch || row->runner) && (stage != UIR_STAGE_NATIVE || c->native || c->on_device);
}

/* A launch goes through the stages again. */
static uir_status advance_launch(const checker *c) {
    return uir_progress_tell(part_of(c, LAUNCHES), "running the kernels",
                             c->groups ? (double)c->launched / c->groups : 0);
}

/* The last stage is the device's. */
static const char *name_stage(const checker *c, uir_stage stage) {
    return stage == UIR_STAGE_NATIVE && c->on_device ? c->on_device : uir_stage_get(stage)->checked;
}

static uir_status launch_stage(const checker *c, uir_stage stage, const uir_launch *at, void *const *outputs,
                               uir_diagnostics *said) {
    const uir_stage_row *row = uir_stage_get(stage);
    const char *runner = stage == UIR_STAGE_NATIVE && c->on_device ? c->on_device : row->runner;
    return runner ? uir_launch_igraph(at, runner, outputs, said) : row->launch(at, outputs, said);
}

static void say(checker *c, uir_stage stage, const char *kernel, const char *node, const char *text) {
    uir_check_report report = {name_stage(c, stage), kernel, node, !*text, c->checked[stage], c->skipped[stage], text};
    if (*text) c->differs = true;
    if (c->options->report) c->options->report(c->options->user, &report);
}

/* ---- comparing ---- */
static bool same_bits(const uir_tensor *like, const void *a, const void *b, uint64_t i) {
    size_t size = uir_dtype_bits(like->dtype) / 8;
    if (!memcmp((const char *)a + i * size, (const char *)b + i * size, size)) return true;
    return uir_dtype_is_float(like->dtype) && isnan(uir_dtype_load_double(like->dtype, a, i)) &&
           isnan(uir_dtype_load_double(like->dtype, b, i));
}

static double magnitude(const uir_tensor *like, const void *data) {
    double most = 0;
    for (uint64_t i = 0; i < like->element_count; i++) {
        double x = fabs(uir_dtype_load_double(like->dtype, data, i));
        if (isfinite(x) && x > most) most = x;
    }
    return most;
}

/* Row-major data of one type against another's; what differs goes to `text`. `bits`: exactly. */
static bool same(const checker *c, const uir_tensor *like, const void *got, const void *wanted, bool bits, char *text,
                 size_t capacity) {
    bool real = uir_dtype_is_float(like->dtype), packed = uir_dtype_bits(like->dtype) % 8 != 0;
    double rtol = fmax(c->options->rtol > 0 ? c->options->rtol : 1e-3, c->loosened),
           atol = fmax(c->options->atol_relative > 0 ? c->options->atol_relative : 1e-4, c->loosened) *
                  (real && !bits ? magnitude(like, wanted) : 0);
    *text = 0;
    for (uint64_t i = 0; i < like->element_count; i++) {
        if (packed || bits || !real) {
            bool equal =
                packed ? uir_dtype_load_double(like->dtype, got, i) == uir_dtype_load_double(like->dtype, wanted, i)
                       : same_bits(like, got, wanted, i);
            if (equal) continue;
        } else {
            double x = uir_dtype_load_double(like->dtype, got, i), y = uir_dtype_load_double(like->dtype, wanted, i);
            if (x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= atol + rtol * fabs(y)) continue;
        }
        snprintf(text, capacity, "element %llu of %llu is %.9g, should be %.9g", (unsigned long long)i,
                 (unsigned long long)like->element_count,
                 real ? uir_dtype_load_double(like->dtype, got, i)
                      : (double)uir_dtype_load_integer(like->dtype, got, i),
                 real ? uir_dtype_load_double(like->dtype, wanted, i)
                      : (double)uir_dtype_load_integer(like->dtype, wanted, i));
        return false;
    }
    return true;
}

static bool comparable(const uir_datum *datum) {
    return datum && datum->kind == UIR_VALUE_TENSOR && datum->tensor->dtype != UIR_DTYPE_STRING &&
           uir_dtype_get_class(datum->tensor->dtype) != UIR_DTYPE_CLASS_COMPLEX;
}

static void compare_outputs(checker *c, uir_stage stage, uir_datum *const *got, uir_datum *const *wanted,
                            uint32_t count) {
    bool bits = uir_stage_get(stage)->held == UIR_BY_BITS;
    for (uint32_t i = 0; i < count; i++) {
        char what[200], text[240];
        if (!comparable(got[i]) || !comparable(wanted[i])) continue;
        c->checked[stage]++;
        if (got[i]->tensor->byte_size != wanted[i]->tensor->byte_size)
            snprintf(text, sizeof text, "the shape of output %u differs", i);
        else if (same(c, wanted[i]->tensor, got[i]->tensor->data, wanted[i]->tensor->data, bits, what, sizeof what))
            continue;
        else
            snprintf(text, sizeof text, "output %u: %s", i, what);
        say(c, stage, "", "", text);
        return;
    }
    say(c, stage, "", "", "");
}

/* ---- one launch ---- */
typedef struct launch {
    checker *c;
    uir_launch at;
    uint32_t output_count;
    uir_arena arena;
} launch;

static bool evaluate(const launch *l, uir_dim dim, int64_t *out) {
    const uir_node_values *values = l->at.values;
    return uir_dim_evaluate(values->module->dims, dim, values->symbol_values, values->symbol_bound,
                            values->symbol_count, out) == UIR_DIM_EVALUATED;
}

/* Multiplications and other element operations of the body, about. */
static uint64_t count_operations(const launch *l) {
    const uir_module *m = l->at.values->module;
    const uir_graph_info *body = uir_graph_get(m, uir_node_find_attribute(m, l->at.node, "body")->value.graph);
    double total = 0;
    for (uint32_t n = 0; n < body->nodes.count; n++) {
        const uir_node_info *node = uir_node_get(m, body->nodes.data[n]);
        double most = 0;
        for (uint32_t k = 0; k < node->input_count + node->output_count; k++) {
            const uir_type *type =
                uir_value_type(m, k < node->input_count ? node->inputs[k] : node->outputs[k - node->input_count]);
            double elements = 1;
            int64_t extent;
            for (uint32_t d = 0; d < type->rank; d++)
                elements *= evaluate(l, type->dims[d], &extent) ? (double)extent : 1;
            if (elements > most) most = elements;
        }
        if (uir_op_get_row(node->op)->traits & UIR_TRAIT_CONTRACTION) {
            const uir_type *w = uir_value_type(m, node->inputs[1]), *y = uir_value_type(m, node->outputs[0]);
            int64_t extent;
            most = 1;
            for (uint32_t d = 0; d < y->rank; d++) most *= evaluate(l, y->dims[d], &extent) ? (double)extent : 1;
            for (uint32_t d = node->op == UIR_OP_MATMUL ? w->rank - 2 : 1; d < w->rank; d++)
                if (node->op != UIR_OP_MATMUL || d == w->rank - 2)
                    most *= evaluate(l, w->dims[d], &extent) ? (double)extent : 1;
        }
        total += most;
    }
    return total < 1e18 ? (uint64_t)total : UINT64_MAX;
}

static uir_status make_room(launch *l, void ***out_room) {
    UIR_TRY_ALLOCATE(*out_room, uir_arena_allocate_array(&l->arena, (size_t)l->output_count + 1, sizeof(void *)));
    for (uint32_t k = 0; k < l->output_count; k++) {
        size_t size = l->at.values->outputs[k]->tensor->byte_size;
        UIR_TRY_ALLOCATE((*out_room)[k], uir_arena_allocate(&l->arena, size + 64));
        memset((*out_room)[k], 0x5a, size); /* what no kernel would write */
    }
    return UIR_STATUS_OK;
}

static void fail_launch(launch *l, uir_stage stage, const char *text) {
    say(l->c, stage, l->at.kernel->name, l->at.name, *text ? text : "it failed");
}

static bool compare_launch(launch *l, uir_stage stage, void *const *got, void *const *wanted, bool bits) {
    for (uint32_t k = 0; k < l->output_count; k++) {
        char what[200], text[240];
        if (same(l->c, l->at.values->outputs[k]->tensor, got[k], wanted[k], bits, what, sizeof what)) continue;
        snprintf(text, sizeof text, "result %u: %s", k, what);
        fail_launch(l, stage, text);
        return false;
    }
    l->c->checked[stage]++;
    return true;
}

/* Told as a difference unless the caller stops the check: `*out_fine` false. */
static uir_status judge(launch *l, uir_stage stage, uir_status status, const uir_diagnostics *said, bool *out_fine) {
    *out_fine = status == UIR_STATUS_OK;
    if (*out_fine) return UIR_STATUS_OK;
    if (is_cancelled(l->c) || status == UIR_STATUS_CANCELLED) return UIR_STATUS_CANCELLED;
    if (status == UIR_STATUS_OUT_OF_MEMORY) return status;
    fail_launch(l, stage, said->first ? said->first->message : "");
    return UIR_STATUS_OK;
}

/* Runs the kernel as a stage left it and holds that to what was wanted; `*out_fine`: it agrees. */
static uir_status check_stage(launch *l, uir_stage stage, void *const *outputs, void *const *wanted, bool bits,
                              bool *out_fine) {
    uir_diagnostics said;
    UIR_TRY(advance_launch(l->c));
    uir_diagnostics_init(&said, l->c->allocator);
    uir_status status = judge(l, stage, launch_stage(l->c, stage, &l->at, outputs, &said), &said, out_fine);
    uir_diagnostics_deinit(&said);
    if (*out_fine) *out_fine = compare_launch(l, stage, outputs, wanted, bits);
    return status;
}

/* Each stage is held to the one before that ran, bit by bit only to one that adds in the same order. */
static uir_status check_stages(launch *l) {
    void **before, **outputs;
    uint64_t limit = l->c->options->limit ? l->c->options->limit : 4000000;
    bool small = count_operations(l) <= limit, fine = true, ran = true;
    UIR_TRY_ALLOCATE(before, uir_arena_allocate_array(&l->arena, (size_t)l->output_count + 1, sizeof *before));
    for (uint32_t k = 0; k < l->output_count; k++) before[k] = l->at.values->outputs[k]->tensor->data;
    for (uir_stage stage = UIR_STAGE_LOOP; stage < UIR_STAGE_COUNT && fine; stage++) {
        const uir_stage_row *row = uir_stage_get(stage);
        if (!is_looked_at(l->c, stage)) continue;
        if (!small && row->held != UIR_BY_BITS_AT_ANY_SIZE) {
            l->c->skipped[stage]++;
            ran = false;
            continue;
        }
        UIR_TRY(make_room(l, &outputs));
        UIR_TRY(check_stage(l, stage, outputs, before, ran && row->held != UIR_BY_TOLERANCE, &fine));
        before = outputs;
        ran = true;
    }
    return UIR_STATUS_OK;
}

static uir_status after_values(void *user, const uir_node_values *values) {
    checker *c = user;
    launch l = {.c = c, .output_count = uir_node_get(values->module, values->node)->output_count};
    if (c->differs || !uir_launch_find(c->launcher, values, &l.at)) return UIR_STATUS_OK;
    uir_arena_init(&l.arena, c->allocator);
    uir_status status = check_stages(&l);
    uir_arena_deinit(&l.arena);
    c->launched++;
    return status;
}

/* ---- the whole ---- */
static void release_all(uir_datum **datums, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) uir_datum_release(datums[i]);
}

static uir_status interpret(checker *c, const uir_module *module, uir_datum *const *inputs, uint32_t input_count,
                            bool hooked, uir_datum ***out_outputs) {
    uint32_t count = uir_graph_get(module, module->main)->outputs.count;
    uir_interpreter_options options = {.cancel = c->options->cancel, .user = c, .threads = 2};
    if (hooked) options.after_values = after_values;
    UIR_TRY_ALLOCATE(*out_outputs, uir_arena_allocate_array(&c->arena, (size_t)count + 1, sizeof **out_outputs));
    return uir_module_interpret(module, c->allocator, c->diagnostics, &options, inputs, input_count, *out_outputs,
                                count, NULL);
}

static uint32_t count_groups(const uir_module *module) {
    const uir_graph_info *main = uir_graph_get(module, module->main);
    uint32_t count = 0;
    for (uint32_t n = 0; n < main->nodes.count; n++)
        count += uir_node_get(module, main->nodes.data[n])->op == UIR_OP_GROUP;
    return count;
}

typedef struct graph_run {
    uir_compile *compile;
    uir_datum *const *inputs;
    uint32_t input_count, output_count;
    uir_datum **outputs; /* of the last stage that ran; NULL: none has */
} graph_run;

static void drop_outputs(graph_run *run) {
    if (run->outputs) release_all(run->outputs, run->output_count);
    run->outputs = NULL;
}

/* The whole graph as a stage leaves it, held to what it gave before. `hooked`: with every launch by itself. */
static uir_status check_graph(checker *c, graph_run *run, uir_stage stage, check_step step, bool hooked) {
    uir_datum **outputs = NULL;
    uir_compile_call call = {.diagnostics = c->diagnostics, .progress = part_of(c, step)};
    UIR_TRY(uir_progress_tell(call.progress, uir_stage_get(stage)->checked, 0));
    if (!hooked) UIR_TRY(uir_compile_run(run->compile, stage, &call));
    uir_status status = interpret(c, run->compile->primitives, run->inputs, run->input_count, hooked, &outputs);
    if (status == UIR_STATUS_OK && !c->differs) compare_outputs(c, stage, outputs, run->outputs, run->output_count);
    drop_outputs(run);
    run->outputs = outputs;
    return status;
}

/* Factors that were rounded may differ by what they were rounded to. */
static uir_status check_precision(checker *c, graph_run *run) {
    const uir_precision_counts *counts = &run->compile->precision;
    uir_compile_call call = {.diagnostics = c->diagnostics, .progress = part_of(c, PRECISION_RUN)};
    UIR_TRY(uir_compile_run(run->compile, UIR_STAGE_PRECISION, &call));
    if (!counts->f16 && !counts->bf16) return UIR_STATUS_OK;
    c->loosened = counts->bf16 ? c->options->bf16_tolerance : c->options->f16_tolerance;
    uir_status status = check_graph(c, run, UIR_STAGE_PRECISION, PRECISION_RUN, false);
    c->loosened = 0;
    return status;
}

/* The last stage runs the code of the caller's sources. */
static uir_status take_sources(checker *c, const uir_compile *compile) {
    const uir_igraph **igraphs;
    uint32_t count;
    if (!c->options->source) return UIR_STATUS_OK;
    UIR_TRY(uir_compile_build_folder(compile, c->options->source, c->options->cancel, &c->arena, c->diagnostics,
                                     &c->object, &igraphs, &count));
    c->code = (uir_kernel_code){&c->object, igraphs, count};
    uir_launcher_use(c->launcher, &c->code);
    return UIR_STATUS_OK;
}

static uir_status check_kernels(checker *c, graph_run *run) {
    uir_compile *compile = run->compile;
    uir_compile_call lower = {.diagnostics = c->diagnostics, .progress = part_of(c, LOWER)};
    UIR_TRY(uir_compile_run(compile, UIR_STAGE_RUNS, &lower));
    UIR_TRY(uir_launcher_create(&compile->lowering, c->options->cancel, 1, c->allocator, &c->launcher));
    UIR_TRY(take_sources(c, compile));
    c->groups = count_groups(compile->primitives);
    UIR_TRY(check_graph(c, run, UIR_STAGE_FUSION, LAUNCHES, true));
    for (uir_stage s = UIR_STAGE_LOOP; s < UIR_STAGE_COUNT && !c->differs; s++)
        if (is_looked_at(c, s)) say(c, s, "", "", "");
    return UIR_STATUS_OK;
}

static uir_status check_module(checker *c, const uir_compile *plain, graph_run *run) {
    UIR_TRY(uir_progress_tell(part_of(c, REFERENCE), "interpreter", 0));
    UIR_TRY(interpret(c, plain->primitives, run->inputs, run->input_count, false, &run->outputs));
    UIR_TRY(check_graph(c, run, UIR_STAGE_CLEANED, CLEANED_RUN, false));
    if (!c->differs) UIR_TRY(check_precision(c, run));
    if (!c->differs) UIR_TRY(check_graph(c, run, UIR_STAGE_WINOGRAD, WINOGRAD_RUN, false));
    return c->differs ? UIR_STATUS_OK : check_kernels(c, run);
}

uir_status uir_check(const uir_onnx_source *source, uir_datum *const *inputs, uint32_t input_count,
                     const uir_check_options *options, const uir_allocator *allocator, uir_diagnostics *diagnostics) {
    checker c = {
        .options = options, .allocator = allocator, .diagnostics = diagnostics, .object = {.allocator = *allocator}};
    const uir_compile_options device = {
        .device = options->device, .exact = options->exact, .strict = options->strict, .precision = options->precision};
    uir_compile plain, cleaned;
    uir_compile_call first = {.diagnostics = diagnostics, .progress = part_of(&c, READ)},
                     second = {.diagnostics = diagnostics, .progress = part_of(&c, READ_AGAIN)};
    const uir_device_row *row = uir_device_find(options->device, NULL);
    c.on_device = row && uir_device_has_driver(row) ? options->device : NULL;
    c.native = row && !c.on_device && uir_device_is_native(row);
    uir_arena_init(&c.arena, allocator);
    uir_compile_init(&plain, source, &device, allocator, &c.arena);
    uir_compile_init(&cleaned, source, &device, allocator, &c.arena);
    uir_status status = uir_compile_run(&plain, UIR_STAGE_PRIMITIVES, &first);
    if (status == UIR_STATUS_OK) status = uir_compile_run(&cleaned, UIR_STAGE_CLEANED, &second);
    graph_run run = {.compile = &cleaned, .inputs = inputs, .input_count = input_count};
    if (status == UIR_STATUS_OK)
        run.output_count = uir_graph_get(plain.primitives, plain.primitives->main)->outputs.count;
    if (status == UIR_STATUS_OK) status = check_module(&c, &plain, &run);
    drop_outputs(&run);
    uir_launcher_destroy(c.launcher);
    uir_target_object_deinit(&c.object);
    uir_compile_deinit(&cleaned);
    uir_compile_deinit(&plain);
    uir_arena_deinit(&c.arena);
    return status == UIR_STATUS_OK && c.differs ? UIR_STATUS_DIFFERENT : status;
}
