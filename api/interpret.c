/* Sessions on the interpreters: of primitives, or of the kernels of a machine that need not be there. */
#include "api/compiled.h"
#include "api/facts_onnx.h"
#include "compile/launch.h"
#include "ir/graph/origins.h"
#include "planner/planner.h"

#include <stdio.h>
#include <string.h>

/* ---- kernels of a described machine ---- */
uir_status uir_model_choose_described(uir_call *call, uir_model *model, const uir_model_options *options,
                                      const uir_machine **out_device) {
    uir_model_source *from = uir_model_get_source(model);
    char text[160];
    UIR_TRY(uir_compile_machines_create(&model->allocator, NULL, &call->diagnostics, &from->devices));
    *out_device = uir_compile_machines_get(from->devices)->devices[0];
    if (options->device_text) {
        const char *name = options->device_text_name ? options->device_text_name : "device text";
        UIR_TRY(uir_compile_machines_add(from->devices, options->device_text, strlen(options->device_text), name,
                                         &call->diagnostics, out_device));
    }
    if (options->device)
        UIR_TRY(uir_compile_machines_find(from->devices, options->device, &call->diagnostics, out_device));
    int length = snprintf(text, sizeof text, "interpreter of %.100s kernels", (*out_device)->name);
    UIR_TRY_ALLOCATE(from->ran_on, uir_arena_copy_string(&model->arena, text, (size_t)length));
    return UIR_STATUS_OK;
}

uir_status uir_model_compile_described(uir_call *call, uir_model *model, uir_progress progress) {
    uir_model_source *from = uir_model_get_source(model);
    const uir_compile_call lower = {.diagnostics = &call->diagnostics, .progress = progress};
    double start = uir_api_now_ms();
    UIR_TRY(uir_compile_run(&from->compile, UIR_STAGE_IGRAPH, &lower));
    uir_facts_take_kernels(&from->compile, &model->facts);
    uir_facts_tell_kernels(&model->facts, &model->info);
    uir_facts_warn_faults(&model->facts, &call->diagnostics);
    model->info.kernel_count = from->compile.lowering.kernels.count;
    model->info.device = from->ran_on;
    model->info.compile_ms += uir_api_now_ms() - start;
    return UIR_STATUS_OK;
}

/* One run. */
typedef struct kernel_run {
    uir_session *session;
    uir_call *call;
    uir_launcher *launcher; /* NULL: there are no kernels */
} kernel_run;

static bool has_kernel(const uir_model *model, const uir_node_info *node) {
    return uir_model_get_source(model)->ran_on && node->kernel;
}

/* By its bytecode, which gives the same bits in a fraction of the time, where the kernel has one. NOT_FOUND: it is for
 * other sizes than these, for which there is no room on the chip. */
static uir_status interpret(kernel_run *run, const uir_launch *launch, void *const *outputs) {
    uir_diagnostics said, *to = &run->call->diagnostics;
    uir_diagnostics_init(&said, &run->session->allocator);
    uir_status status = uir_launch_igraph(launch, "vm", outputs, &said);
    if (status == UIR_STATUS_UNSUPPORTED) {
        uir_diagnostics_deinit(&said);
        uir_diagnostics_init(&said, &run->session->allocator);
        status = uir_launch_igraph(launch, UIR_INTERPRETER_NAME, outputs, &said);
    }
    for (const uir_diagnostic *d = said.first; d; d = d->next) {
        if (status == UIR_STATUS_NOT_FOUND)
            uir_warning(to, &d->location, "%s; the node is computed on the host", d->message);
        else if (d->severity == UIR_SEVERITY_ERROR)
            uir_error_hint(to, d->status, &d->location, d->hint, "%s", d->message);
    }
    uir_diagnostics_deinit(&said);
    return status;
}

/* Who does a node's work. */
static const char *name_maker(const uir_model *model, const uir_node_info *node) {
    const uir_model_source *from = uir_model_get_source(model);
    if (!from->ran_on) return UIR_INTERPRETER_NAME;
    switch (uir_plan_find_maker(node)) {
    case UIR_PLAN_BY_KERNEL:
        return from->ran_on;
    case UIR_PLAN_BY_STEPS:
        return "plan";
    case UIR_PLAN_BY_HOST:
        return "host";
    case UIR_PLAN_BY_OPENER:
        break;
    }
    return UIR_INTERPRETER_NAME;
}

/* ---- what a machine would take ---- */
_Static_assert((int)UIR_API_MAX_SPACES >= (int)UIR_MACHINE_MAX_SPACES, "each space of a device has room");

static uir_status keep_estimate(kernel_run *run, const uir_launch *launch) {
    uir_session *session = run->session;
    uir_session_estimate made = {.node = launch->values->node.id}, *sum = NULL;
    uir_estimate one;
    UIR_TRY(uir_launch_estimate(launch, &run->call->diagnostics, &made.machine, &one));
    for (uint32_t i = 0; i < session->estimates.count && !sum; i++)
        if (session->estimates.data[i].node == made.node) sum = &session->estimates.data[i];
    if (!sum) {
        UIR_TRY(uir_vector_push(&session->slice_arena, &session->estimates, made));
        sum = &session->estimates.data[session->estimates.count - 1];
    }
    for (uint32_t i = 0; i < made.machine->space_count; i++) {
        sum->read[i] += one.read[i];
        sum->written[i] += one.written[i];
    }
    sum->cycles += one.cycles;
    if (one.most_units > sum->units) sum->units = one.most_units;
    sum->launches++;
    return UIR_STATUS_OK;
}

bool uir_session_find_estimate(const uir_session *session, size_t index, uir_machine_estimate *out_estimate) {
    if (index >= session->estimates.count) return false;
    const uir_session_estimate *e = &session->estimates.data[index];
    const uir_module *module = uir_model_get_source(session->model)->compile.primitives;
    const uir_node_info *node = uir_node_get(module, (uir_node_id){e->node});
    double clock = e->machine->cycles_per_second;
    *out_estimate = (uir_machine_estimate){.kernel = uir_node_string(module, node, "kernel", ""),
                                           .name = uir_string_text(&module->strings, node->name),
                                           .op = uir_op_get_row(node->origin)->name,
                                           .launches = e->launches,
                                           .cycles = e->cycles,
                                           .ms = clock > 0 ? 1e3 * e->cycles / clock : 0,
                                           .units = e->units};
    return true;
}

bool uir_session_find_space_estimate(const uir_session *session, size_t index, size_t space,
                                     uir_space_estimate *out_estimate) {
    if (index >= session->estimates.count) return false;
    const uir_session_estimate *e = &session->estimates.data[index];
    if (space >= e->machine->space_count) return false;
    *out_estimate = (uir_space_estimate){
        .space = e->machine->spaces[space].name, .read = e->read[space], .written = e->written[space]};
    return true;
}

static uir_status run_group(void *user, const uir_node_values *values, bool *out_ran) {
    kernel_run *run = user;
    uir_session *session = run->session;
    uir_launch launch;
    void **outputs;
    *out_ran = uir_launch_find(run->launcher, values, &launch);
    if (!*out_ran) return UIR_STATUS_OK;
    size_t size = ((size_t)launch.node->output_count + 1) * sizeof *outputs;
    UIR_TRY_ALLOCATE(outputs, uir_allocate_zeroed(&session->allocator, size));
    for (uint32_t i = 0; i < launch.node->output_count; i++) outputs[i] = values->outputs[i]->tensor->data;
    uir_status status = interpret(run, &launch, outputs);
    if (status == UIR_STATUS_OK && session->estimate) status = keep_estimate(run, &launch);
    uir_release(&session->allocator, outputs, size);
    if (status == UIR_STATUS_NOT_FOUND) {
        session->statistics.interpreter_calls++;
        *out_ran = false;
        return UIR_STATUS_OK;
    }
    session->statistics.groups++;
    return status;
}

/* ---- runs ---- */

static void after_node(void *user, const uir_module *module, uir_node_id node, double ms) {
    uir_session *session = ((kernel_run *)user)->session;
    if (node.id >= session->time_count) return;
    session->times[node.id].ms += ms;
    session->times[node.id].calls++;
    uir_plan_maker maker = UIR_PLAN_BY_OPENER; /* on the interpreter of primitives all work is its own */
    if (uir_model_get_source(session->model)->ran_on) maker = uir_plan_find_maker(uir_node_get(module, node));
    if (maker == UIR_PLAN_BY_HOST) session->statistics.host_calls++;
    if (maker == UIR_PLAN_BY_OPENER) session->statistics.interpreter_calls++;
    if (!session->trace) return;
    uir_session_slice slice = {node.id, uir_api_now_ms() - session->began_ms - ms, ms};
    (void)!uir_vector_push(&session->slice_arena, &session->slices, slice);
}

uir_status uir_session_interpret(uir_call *call, uir_session *session) {
    const uir_model *model = session->model;
    uir_datum **results = session->datums + model->input_count;
    const uir_model_source *from = uir_model_get_source(model);
    kernel_run run = {.session = session, .call = call};
    uir_interpreter_options options = {
        .cancel = &session->cancel, .after_node = after_node, .user = &run, .threads = session->threads};
    memset(session->times, 0, session->time_count * sizeof *session->times);
    session->statistics = (uir_run_statistics){.ran_on = from->ran_on ? from->ran_on : UIR_INTERPRETER_NAME,
                                               .threads = session->threads,
                                               .kernels = from->ran_on ? from->compile.lowering.kernels.count : 0};
    UIR_TRY(uir_session_take_inputs(call, session));
    uir_arena_reset(&session->slice_arena);
    memset(&session->slices, 0, sizeof session->slices);
    memset(&session->estimates, 0, sizeof session->estimates);
    double start = session->began_ms = uir_api_now_ms();
    if (from->ran_on) {
        UIR_TRY(uir_launcher_create(&from->compile.lowering, &session->cancel, session->threads, &session->allocator,
                                    &run.launcher));
        options.run_group = run_group;
    }
    uir_status status = uir_module_interpret(from->compile.primitives, &session->allocator, &call->diagnostics,
                                             &options, session->datums, model->input_count, results,
                                             model->output_count, &session->statistics.peak_bytes);
    uir_launcher_destroy(run.launcher);
    UIR_TRY(status);
    session->statistics.run_ms = uir_api_now_ms() - start;
    return uir_session_take_outputs(call, session);
}

uir_status uir_model_find_interpreted_shape(uir_call *call, const uir_model *model, uir_datum *const *inputs,
                                            uint32_t output, int64_t *out_dims) {
    return uir_module_find_shape(uir_model_get_source(model)->compile.primitives, &model->allocator, &call->diagnostics,
                                 inputs, model->input_count, output, out_dims);
}

bool uir_session_get_interpreted(const uir_session *session, size_t index, uir_node_statistics *out_node) {
    const uir_module *module = uir_model_get_source(session->model)->compile.primitives;
    for (uint32_t i = 1; i < session->time_count; i++) {
        if (session->times[i].calls == 0 || index-- > 0) continue;
        const uir_node_info *node = uir_node_get(module, (uir_node_id){i});
        bool kernel = has_kernel(session->model, node);
        const char *by = name_maker(session->model, node);
        *out_node = (uir_node_statistics){.name = uir_string_text(&module->strings, node->name),
                                          .op = uir_op_get_row(node->origin)->name,
                                          .kernel = kernel ? uir_node_string(module, node, "kernel", "")
                                                           : uir_op_get_row(node->op)->name,
                                          .by = by,
                                          .why = session->model->info.why,
                                          .joined = "",
                                          .ms = session->times[i].ms,
                                          .calls = session->times[i].calls};
        return true;
    }
    return false;
}

bool uir_session_get_interpreted_slice(const uir_session *session, size_t index, uir_trace_slice *out_slice) {
    const uir_module *module = uir_model_get_source(session->model)->compile.primitives;
    if (index >= session->slices.count) return false;
    const uir_session_slice *slice = &session->slices.data[index];
    const uir_node_info *node = uir_node_get(module, (uir_node_id){slice->node});
    *out_slice = (uir_trace_slice){.name = uir_string_text(&module->strings, node->name),
                                   .op = uir_op_get_row(node->origin)->name,
                                   .kernel = uir_op_get_row(node->op)->name,
                                   .by = UIR_INTERPRETER_NAME,
                                   .begin_ms = slice->begin_ms > 0 ? slice->begin_ms : 0,
                                   .ms = slice->ms,
                                   .queue = ""};
    return true;
}

/* ---- nodes of the model's file ---- */
static void mark_standing(const uir_module *module, uir_graph_id graph, bool *stands) {
    const uir_graph_info *info = uir_graph_get(module, graph);
    for (uint32_t n = 0; n < info->nodes.count; n++) {
        const uir_node_info *node = uir_node_get(module, info->nodes.data[n]);
        if (uir_origins_count(module, node) || graph.id == module->main.id) stands[node->source] = true;
        for (uint32_t a = 0; a < node->attribute_count; a++)
            if (node->attributes[a].kind == UIR_ATTRIBUTE_GRAPH)
                mark_standing(module, node->attributes[a].value.graph, stands);
    }
}

uir_status uir_model_settle_nodes(uir_model *model) {
    uir_model_source *from = uir_model_get_source(model);
    const uir_module *module = from->compile.primitives;
    UIR_TRY_ALLOCATE(from->stands,
                     uir_arena_allocate_array(&model->arena, (size_t)module->origins.count + 1, sizeof *from->stands));
    mark_standing(module, module->main, from->stands);
    return uir_origins_settle(module, from->stands, &model->arena, &from->settled);
}

bool uir_model_find_node(const uir_model *model, size_t index, uir_model_node *out_node) {
    const uir_model_source *from = uir_model_get_source(model);
    const uir_module *module = from->compile.primitives;
    if (!from->settled || index + 1 >= module->origins.count) return false;
    const uir_settled_origin *settled = &from->settled[index + 1];
    *out_node = (uir_model_node){.name = uir_string_text(&module->strings, module->origins.data[index + 1].name),
                                 .op = uir_string_text(&module->strings, module->origins.data[index + 1].op),
                                 .step = from->stands[index + 1] ? UIR_INTERPRETER_NAME : "",
                                 .into = settled->into ? settled->into - 1 : UINT32_MAX};
    out_node->fate = uir_api_explain_fate(settled->fate, &out_node->why);
    return true;
}

/* Node `index` of those that a node of the run stands for: itself, or of a group's body, each once. */
static bool find_node_of(const uir_module *module, uir_node_id id, size_t index, uint32_t *out_node, bool *out_again) {
    const uir_node_info *node = uir_node_get(module, id);
    const uir_attribute *body = node->op == UIR_OP_GROUP ? uir_node_find_attribute(module, node, "body") : NULL;
    const uir_graph_info *graph = body ? uir_graph_get(module, body->value.graph) : NULL;
    uint32_t origin = node->source;
    *out_again = false;
    for (uint32_t n = 0; graph && index && n < graph->nodes.count; n++) {
        const uir_node_info *inner = uir_node_get(module, graph->nodes.data[n]);
        uint32_t other = inner->source;
        bool met = other == node->source || !uir_origins_count(module, inner);
        for (uint32_t k = 0; k < n && !met; k++) met = uir_node_get(module, graph->nodes.data[k])->source == other;
        if (!met && --index == 0) origin = other;
    }
    if (index || !origin) return false;
    for (uint32_t n = 0; graph && n < graph->nodes.count; n++) {
        const uir_node_info *inner = uir_node_get(module, graph->nodes.data[n]);
        if (inner->source == origin) *out_again = inner->is_again;
    }
    *out_node = origin - 1;
    return true;
}

bool uir_session_find_row_node(const uir_session *session, size_t row, size_t index, uint32_t *out_node,
                               bool *out_again) {
    const uir_module *module = uir_model_get_source(session->model)->compile.primitives;
    for (uint32_t i = 1; i < session->time_count; i++) {
        if (session->times[i].calls == 0 || row-- > 0) continue;
        return find_node_of(module, (uir_node_id){i}, index, out_node, out_again);
    }
    return false;
}

bool uir_session_find_slice_node(const uir_session *session, size_t slice, size_t index, uint32_t *out_node,
                                 bool *out_again) {
    const uir_module *module = uir_model_get_source(session->model)->compile.primitives;
    if (slice >= session->slices.count) return false;
    return find_node_of(module, (uir_node_id){session->slices.data[slice].node}, index, out_node, out_again);
}
