/* Sessions: the cost of a run before it, and statistics, traces and estimates after it. */
#include "api/internal.h"
#include "backends/devices/devices.h"

#include <string.h>

/* ---- cost ---- */
static void run_nothing(void *user, uint32_t count, void (*task)(void *context, uint32_t i), void *context) {
    (void)user, (void)count, (void)task, (void)context;
}

/* With outputs bound as the session's are. */
static uir_status prepare_costing(uir_session *session) {
    const uir_runtime_options options = {.threads = session->threads, .parallel = run_nothing};
    if (!session->costing)
        UIR_TRY(uir_runtime_create(session->model->package, &options, &session->allocator, &session->call.diagnostics,
                                   &session->costing));
    for (uint32_t i = 0; i < session->model->output_count; i++) {
        const uir_bound_output *bound = &session->bound[i];
        const uir_region at = uir_session_get_output_region(bound);
        UIR_TRY(uir_runtime_bind_output_region(session->costing, i, bound->strided ? bound->strides : NULL, &at));
    }
    return UIR_STATUS_OK;
}

static uir_status get_cost(uir_session *session, const uir_dim_binding *bindings, size_t count, uir_cost *out) {
    const uir_model *model = session->model;
    int64_t shape[UIR_API_MAX_RANK];
    uir_runtime_cost cost;
    *out = (uir_cost){0};
    UIR_TRY(prepare_costing(session));
    for (uint32_t i = 0; i < model->input_count; i++) {
        const uir_port *port = &model->inputs[i].port;
        if (port->kind != UIR_VALUE_TENSOR || !port->rank_known || port->rank > UIR_API_MAX_RANK)
            return uir_error(&session->call.diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                             "input '%s' is not a tensor of known rank", port->name);
        UIR_TRY(model->table->get_input_shape(&session->call, model, i, bindings, count, shape));
        UIR_TRY(uir_runtime_set_input(session->costing, i, port->dtype, port->rank, shape, NULL));
    }
    UIR_TRY(uir_runtime_plan(session->costing, &out->tensor_bytes));
    UIR_TRY(uir_runtime_count_cost(session->costing, &cost));
    out->scratch_bytes = cost.scratch_bytes;
    out->weight_bytes = uir_package_get_facts(model->package).weight_bytes;
    out->dram_bytes = cost.dram_bytes;
    out->flops = cost.flops;
    out->launches = cost.launches;
    return UIR_STATUS_OK;
}

uir_status uir_session_get_cost(uir_session *session, const uir_dim_binding *bindings, size_t binding_count,
                                uir_cost *out_cost) {
    uir_call call;
    uir_cost cost = {0};
    UIR_TRY(uir_session_check_idle(session, "getting a run's cost"));
    if (session->runtime) {
        uir_status status = UIR_STRUCT_GIVE(&session->call.diagnostics, uir_cost, &cost, out_cost);
        if (status == UIR_STATUS_OK) status = get_cost(session, bindings, binding_count, &cost);
        if (status == UIR_STATUS_OK) status = UIR_STRUCT_GIVE(&session->call.diagnostics, uir_cost, &cost, out_cost);
        return uir_call_flush(&session->call, status, "getting a run's cost");
    }
    uir_call_begin(&call, session->model->context);
    uir_status status = uir_error(&call.diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                                  "the interpreter runs this session: without a plan its cost is unknown");
    return uir_call_end(&call, status, "getting a run's cost");
}

uir_status uir_session_get_launch_cost(const uir_session *session, size_t index, uir_launch_cost *out_cost) {
    uir_call call;
    uir_runtime_launch_cost cost;
    if (!session->costing || index > UINT32_MAX ||
        !uir_runtime_get_launch_cost(session->costing, (uint32_t)index, &cost))
        return UIR_STATUS_NOT_FOUND;
    uir_launch_cost known = {.kernel = cost.kernel,
                             .name = cost.node,
                             .op = cost.op,
                             .tensor_bytes = cost.tensor_bytes,
                             .dram_bytes = cost.dram_bytes,
                             .flops = cost.flops};
    uir_call_begin(&call, session->model->context);
    return uir_call_end(&call, UIR_STRUCT_GIVE(&call.diagnostics, uir_launch_cost, &known, out_cost),
                        "getting a launch's cost");
}

static uir_status get_bus_cost(uir_session *session, bool of_run, uir_bus_cost *out) {
    uir_runtime *runtime = of_run ? session->runtime : session->costing;
    uir_runtime_bus bus;
    if (!runtime)
        return uir_error_hint(&session->call.diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                              "call uir_session_get_cost before", "no run was planned: its copies cannot be counted");
    UIR_TRY(uir_runtime_count_bus(runtime, of_run, &bus));
    *out = (uir_bus_cost){.waits = bus.waits,
                          .bytes_to_device = bus.bytes_to_device,
                          .bytes_from_device = bus.bytes_from_device,
                          .unknown_sizes = bus.unknown_sizes,
                          .unknown_turns = bus.unknown_turns,
                          .unknown_branches = bus.unknown_branches};
    return UIR_STATUS_OK;
}

uir_status uir_session_get_bus_cost(uir_session *session, bool of_run, uir_bus_cost *out_cost) {
    static const char *const what = "counting a run's copies";
    uir_diagnostics *diagnostics = &session->call.diagnostics;
    uir_bus_cost cost = {0};
    uir_call call;
    if (session->runtime) {
        uir_status status = UIR_STRUCT_GIVE(diagnostics, uir_bus_cost, &cost, out_cost);
        if (status == UIR_STATUS_OK) status = get_bus_cost(session, of_run, &cost);
        if (status == UIR_STATUS_OK) status = UIR_STRUCT_GIVE(diagnostics, uir_bus_cost, &cost, out_cost);
        return uir_call_flush(&session->call, status, what);
    }
    uir_call_begin(&call, session->model->context);
    uir_status status = uir_error(&call.diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                                  "the interpreter runs this session: it has no plan whose copies could be counted");
    return uir_call_end(&call, status, what);
}

uir_status uir_session_get_loop_cost(const uir_session *session, size_t index, uir_loop_cost *out_cost) {
    uir_call call;
    uir_loop_cost known = {0};
    uir_runtime_bus turn;
    if (!session->costing || index > UINT32_MAX ||
        !uir_runtime_get_turn_bus(session->costing, (uint32_t)index, &known.name, &known.op, &turn))
        return UIR_STATUS_NOT_FOUND;
    known.waits = turn.waits;
    known.bytes_to_device = turn.bytes_to_device;
    known.bytes_from_device = turn.bytes_from_device;
    uir_call_begin(&call, session->model->context);
    return uir_call_end(&call, UIR_STRUCT_GIVE(&call.diagnostics, uir_loop_cost, &known, out_cost),
                        "getting a loop's cost");
}

uir_status uir_session_measure_roofline(uir_session *session, uir_roofline *out_roofline) {
    uir_call call;
    uir_roofline roofline = {0};
    uir_call_begin(&call, session->model->context);
    uir_status status = UIR_STRUCT_GIVE(&call.diagnostics, uir_roofline, &roofline, out_roofline);
    roofline.threads = session->threads;
    if (status == UIR_STATUS_OK)
        status = uir_device_find(NULL, NULL)
                     ->formats[0]
                     ->measure_limits(&session->allocator, session->threads, &roofline.flops_per_second,
                                      &roofline.bytes_per_second);
    if (status == UIR_STATUS_OK) status = UIR_STRUCT_GIVE(&call.diagnostics, uir_roofline, &roofline, out_roofline);
    return uir_call_end(&call, status, "measuring the machine");
}

double uir_roofline_get_ms(const uir_roofline *roofline, uint64_t bytes, uint64_t flops) {
    uir_roofline r;
    if (UIR_STRUCT_TAKE(NULL, uir_roofline, roofline, &r) != UIR_STATUS_OK) return 0;
    double moving = r.bytes_per_second > 0 ? (double)bytes / r.bytes_per_second : 0,
           computing = r.flops_per_second > 0 ? (double)flops / r.flops_per_second : 0;
    return 1e3 * (moving > computing ? moving : computing);
}

uir_status uir_session_count_traffic(uir_session *session) {
    uir_call call;
    UIR_TRY(uir_session_check_idle(session, "counting a run's traffic"));
    if (session->runtime) {
        uir_status status = uir_runtime_count_traffic(session->runtime);
        if (status == UIR_STATUS_OK)
            session->statistics.dram_bytes = uir_runtime_get_statistics(session->runtime).dram_bytes;
        return uir_call_flush(&session->call, status, "counting a run's traffic");
    }
    uir_call_begin(&call, session->model->context);
    uir_status status =
        uir_error_hint(&call.diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "load the model on a device with kernels",
                       "the traffic of a session on the interpreter cannot be counted");
    return uir_call_end(&call, status, "counting a run's traffic");
}

/* ---- statistics ---- */

uir_status uir_session_get_statistics(const uir_session *session, uir_run_statistics *out_statistics) {
    uir_call call;
    UIR_TRY(uir_session_check_idle(session, "querying a run"));
    uir_call_begin(&call, session->model->context);
    return uir_call_end(&call,
                        UIR_STRUCT_GIVE(&call.diagnostics, uir_run_statistics, &session->statistics, out_statistics),
                        "querying a run");
}

/* Of a device with memory of its own: why the host executed the step. */
static void explain_host(const uir_driver *driver, const uir_runtime_step *step, uir_node_statistics *node) {
    node->is_fallback = step->why != NULL;
    node->bus_bytes = step->bus_bytes;
    if (step->why)
        node->why = step->why;
    else if (strcmp(step->by, driver->name) && !*node->why)
        node->why = "the host reads its results, as sizes, conditions or operands";
}

static bool get_step(const uir_session *session, size_t index, uir_node_statistics *out_node) {
    uir_runtime_step step;
    for (uint32_t i = 0; uir_runtime_get_step(session->runtime, i, &step); i++) {
        if (!step.calls || !*step.by || index-- > 0) continue;
        *out_node = (uir_node_statistics){.name = step.node,
                                          .op = step.op,
                                          .kernel = step.kernel,
                                          .by = step.by,
                                          .why = "",
                                          .joined = "",
                                          .ms = step.ms,
                                          .calls = step.calls,
                                          .phases = step.phases,
                                          .tensor_bytes = step.tensor_bytes,
                                          .dram_bytes = step.dram_bytes,
                                          .flops = step.flops};
        uir_runtime_choice choice;
        if (uir_runtime_get_choice(session->runtime, i, &choice)) {
            out_node->variant = choice.variant + 1;
            out_node->variant_count = choice.variant_count;
            out_node->candidate = choice.candidate_count ? choice.candidate + 1 : 0;
            out_node->candidate_count = choice.candidate_count;
            out_node->tiles = choice.tiles;
            out_node->tile_count = choice.tile_count;
            out_node->units = (uint64_t)choice.units;
            out_node->unit_cost = (uint64_t)choice.cost;
        }
        out_node->is_fallback = !strcmp(step.by, "host");
        if (out_node->is_fallback)
            out_node->why = step.remark;
        else
            out_node->joined = step.remark;
        if (session->model->device && session->model->device->driver)
            explain_host(session->model->device->driver, &step, out_node);
        else if (!strcmp(step.by, "vm"))
            out_node->why = session->model->table->explain_vm(session->model);
        return true;
    }
    return false;
}

uir_status uir_session_get_node_statistics(const uir_session *session, size_t index, uir_node_statistics *out_node) {
    uir_call call;
    uir_node_statistics node;
    UIR_TRY(uir_session_check_idle(session, "querying a run"));
    bool found = session->runtime ? get_step(session, index, &node)
                                  : session->model->table->get_node_statistics(session, index, &node);
    if (!found) return UIR_STATUS_NOT_FOUND;
    uir_call_begin(&call, session->model->context);
    return uir_call_end(&call, UIR_STRUCT_GIVE(&call.diagnostics, uir_node_statistics, &node, out_node),
                        "querying a run");
}

static bool get_runtime_slice(const uir_session *session, size_t index, uir_trace_slice *out_slice) {
    uir_runtime_slice slice;
    uir_runtime_step step = {.kind = "copy", .by = "", .kernel = "", .node = "", .op = ""}; /* of no step */
    if (!uir_runtime_get_slice(session->runtime, index, &slice) ||
        (slice.step != UINT32_MAX && !uir_runtime_get_step(session->runtime, slice.step, &step)))
        return false;
    *out_slice = (uir_trace_slice){.name = step.node,
                                   .op = step.op,
                                   .kernel = step.kernel,
                                   .by = *step.by ? step.by : step.kind,
                                   .thread = slice.thread,
                                   .phase = slice.phase,
                                   .indices = slice.indices,
                                   .begin_ms = slice.begin_ms,
                                   .ms = slice.end_ms - slice.begin_ms,
                                   .queue = slice.queue ? slice.queue : "",
                                   .bytes = slice.bytes,
                                   .is_modelled = slice.is_modelled};
    return true;
}

uir_status uir_session_get_trace_slice(const uir_session *session, size_t index, uir_trace_slice *out_slice) {
    uir_call call;
    uir_trace_slice slice;
    UIR_TRY(uir_session_check_idle(session, "querying a run"));
    bool found = session->runtime ? get_runtime_slice(session, index, &slice)
                                  : session->model->table->get_slice(session, index, &slice);
    if (!found) return UIR_STATUS_NOT_FOUND;
    uir_call_begin(&call, session->model->context);
    return uir_call_end(&call, UIR_STRUCT_GIVE(&call.diagnostics, uir_trace_slice, &slice, out_slice),
                        "querying a run");
}

uir_status uir_session_get_estimate(const uir_session *session, size_t index, uir_machine_estimate *out_estimate) {
    const uir_model_table *table = session->model->table;
    uir_machine_estimate known;
    uir_call call;
    if (!table->get_estimate || !table->get_estimate(session, index, &known)) return UIR_STATUS_NOT_FOUND;
    uir_call_begin(&call, session->model->context);
    return uir_call_end(&call, UIR_STRUCT_GIVE(&call.diagnostics, uir_machine_estimate, &known, out_estimate),
                        "estimating a machine's time");
}

uir_status uir_session_get_space_estimate(const uir_session *session, size_t index, size_t space,
                                          uir_space_estimate *out_estimate) {
    const uir_model_table *table = session->model->table;
    uir_space_estimate known;
    uir_call call;
    if (!table->get_space_estimate || !table->get_space_estimate(session, index, space, &known))
        return UIR_STATUS_NOT_FOUND;
    uir_call_begin(&call, session->model->context);
    return uir_call_end(&call, UIR_STRUCT_GIVE(&call.diagnostics, uir_space_estimate, &known, out_estimate),
                        "estimating a machine's time");
}
