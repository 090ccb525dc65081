/* Sessions: inputs bound, a run, outputs and statistics. */
#include "api/internal.h"

#include <string.h>
#include <time.h>

typedef struct node_time {
    double ms;
    uint64_t calls;
} node_time;

struct uir_session {
    uir_model *model;
    uint32_t threads;
    uir_runtime *runtime; /* NULL: the interpreter runs it */
    uir_call call;        /* of the runtime, whose messages go on to the context */
    volatile bool cancel;
    uir_value **inputs;  /* borrowed; NULL until bound */
    uir_value **outputs; /* owned; NULL until a run has made them */
    uir_datum **datums;  /* scratch for a run: inputs, then outputs */
    node_time *times;    /* by node of the module */
    uint32_t time_count;
    uir_run_statistics statistics;
};

static const char interpreter_name[] = "interpreter";

/* The model's own device, or the interpreter. */
static bool is_known_device(const uir_model *model, const char *device) {
    return strcmp(device, interpreter_name) == 0 || (model->code && strcmp(device, model->info.device) == 0);
}

static uir_status allocate_parts(uir_session *session) {
    const uir_allocator *allocator = &session->model->context->allocator;
    uint32_t inputs = session->model->input_count, outputs = session->model->output_count;
    session->time_count = session->model->module->nodes.count;
    UIR_TRY_ALLOCATE(session->inputs, uir_allocate_zeroed(allocator, inputs * sizeof *session->inputs));
    UIR_TRY_ALLOCATE(session->outputs, uir_allocate_zeroed(allocator, outputs * sizeof *session->outputs));
    UIR_TRY_ALLOCATE(session->datums,
                     uir_allocate_zeroed(allocator, ((size_t)inputs + outputs) * sizeof *session->datums));
    UIR_TRY_ALLOCATE(session->times, uir_allocate_zeroed(allocator, session->time_count * sizeof *session->times));
    return UIR_STATUS_OK;
}

static uir_status create(uir_call *call, uir_model *model, const uir_session_options *options,
                         uir_session **out_session) {
    if (options && options->struct_size < sizeof *options) {
        return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "uir_session_options.struct_size is not set");
    }
    if (options && options->device && !is_known_device(model, options->device)) {
        return uir_error_hint(&call->diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                              "load it for that device, or leave the session's device out",
                              "the model was not loaded for the device '%s'", options->device);
    }
    uir_session *session;
    UIR_TRY_ALLOCATE(session, uir_allocate_zeroed(&model->context->allocator, sizeof *session));
    session->model = model;
    session->threads = options && options->threads ? options->threads : uir_core_count();
    session->statistics.ran_on = interpreter_name;
    uir_status status = allocate_parts(session);
    bool interpreted = !model->code || (options && options->device && !strcmp(options->device, interpreter_name));
    uir_call_begin(&session->call, model->context);
    if (status == UIR_STATUS_OK && !interpreted) {
        uir_runtime_options runtime = {.threads = session->threads, .measure = true};
        session->statistics.ran_on = model->info.device;
        status = uir_runtime_create(model->code->package, &runtime, &model->context->allocator,
                                    &session->call.diagnostics, &session->runtime);
    }
    if (status != UIR_STATUS_OK) {
        uir_session_destroy(session);
        return status;
    }
    *out_session = session;
    return UIR_STATUS_OK;
}

uir_status uir_session_create(uir_model *model, const uir_session_options *options, uir_session **out_session) {
    uir_call call;
    *out_session = NULL;
    uir_call_begin(&call, model->context);
    uir_status status = create(&call, model, options, out_session);
    return uir_call_end(&call, status, "creating a session");
}

static void drop_outputs(uir_session *session) {
    for (uint32_t i = 0; session->outputs && i < session->model->output_count; i++) {
        uir_value_destroy(session->outputs[i]);
        session->outputs[i] = NULL;
    }
}

void uir_session_destroy(uir_session *session) {
    if (!session) return;
    const uir_allocator *allocator = &session->model->context->allocator;
    uint32_t inputs = session->model->input_count, outputs = session->model->output_count;
    drop_outputs(session);
    uir_runtime_destroy(session->runtime);
    if (session->call.context) uir_call_end(&session->call, UIR_STATUS_OK, "a session");
    if (session->inputs) uir_release(allocator, session->inputs, inputs * sizeof *session->inputs);
    if (session->outputs) uir_release(allocator, session->outputs, outputs * sizeof *session->outputs);
    if (session->datums) {
        uir_release(allocator, session->datums, ((size_t)inputs + outputs) * sizeof *session->datums);
    }
    if (session->times) uir_release(allocator, session->times, session->time_count * sizeof *session->times);
    uir_release(allocator, session, sizeof *session);
}

/* ---- inputs ---- */

static void describe_value(const uir_datum *datum, char *buffer, size_t capacity) {
    static const char *const kinds[] = {
        [UIR_VALUE_TENSOR] = "tensor", [UIR_VALUE_SEQUENCE] = "sequence", [UIR_VALUE_OPTIONAL] = "optional"};
    if (datum->kind == UIR_VALUE_TENSOR) {
        uir_tensor_describe(datum->tensor, buffer, capacity);
        return;
    }
    const char *parts[] = {kinds[datum->kind], " of ", uir_dtype_name(datum->dtype)};
    size_t at = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        for (const char *c = parts[i]; *c && at + 1 < capacity; c++) buffer[at++] = *c;
    }
    buffer[at] = 0;
}

static bool fits(const uir_port *port, const uir_datum *datum) {
    if (datum->kind != port->kind) return false;
    bool dtype_known = datum->dtype != UIR_DTYPE_NONE && port->dtype != UIR_DTYPE_NONE;
    if (dtype_known && datum->dtype != port->dtype) return false;
    if (datum->kind != UIR_VALUE_TENSOR || !port->rank_known) return true;
    if (datum->tensor->rank != port->rank) return false;
    for (uint32_t i = 0; i < port->rank; i++) {
        if (port->dims[i] >= 0 && port->dims[i] != datum->tensor->shape[i]) return false;
    }
    return true;
}

static uir_status misfit(uir_call *call, const uir_session *session, size_t index, const uir_datum *datum) {
    char given[160];
    uir_text expected;
    const uir_module *module = session->model->module;
    const uir_graph_info *main = uir_graph_get(module, module->main);
    describe_value(datum, given, sizeof given);
    uir_text_init(&expected, &session->model->context->allocator);
    uir_type_print(module, uir_value_type(module, main->inputs.data[index]), &expected);
    uir_status status = uir_text_status(&expected);
    if (status == UIR_STATUS_OK) {
        status = uir_error(&call->diagnostics, UIR_STATUS_BAD_DATA, NULL, "input '%s' is %s, but the model wants %s",
                           session->model->inputs[index].port.name, given, expected.data);
    }
    uir_text_deinit(&expected);
    return status;
}

uir_status uir_session_set_input(uir_session *session, size_t index, uir_value *value) {
    uir_call call;
    uir_status status = UIR_STATUS_OK;
    uir_call_begin(&call, session->model->context);
    if (index >= session->model->input_count) {
        status = uir_error(&call.diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "the model has no input %zu", index);
    } else if (!value) {
        status = uir_error(&call.diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "no value is given for input '%s'",
                           session->model->inputs[index].port.name);
    } else if (!fits(&session->model->inputs[index].port, value->datum)) {
        status = misfit(&call, session, index, value->datum);
    } else {
        session->inputs[index] = value;
    }
    return uir_call_end(&call, status, "binding an input");
}

/* ---- runs ---- */

static void after_node(void *user, const uir_module *module, uir_node_id node, double ms) {
    uir_session *session = user;
    (void)module;
    if (node.id >= session->time_count) return;
    session->times[node.id].ms += ms;
    session->times[node.id].calls++;
    session->statistics.interpreter_calls++;
}

static uir_status take_inputs(uir_call *call, uir_session *session) {
    uint32_t missing = 0;
    for (uint32_t i = 0; i < session->model->input_count; i++) {
        if (session->inputs[i]) {
            session->datums[i] = session->inputs[i]->datum;
            continue;
        }
        missing++;
        uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "no value is bound to input '%s'",
                  session->model->inputs[i].port.name);
    }
    return missing ? UIR_STATUS_INVALID_ARGUMENT : UIR_STATUS_OK;
}

/* Wraps the run's results. Datums that could not be wrapped are released. */
static uir_status take_outputs(uir_session *session, uir_datum **results) {
    uir_status status = UIR_STATUS_OK;
    for (uint32_t i = 0; i < session->model->output_count; i++) {
        if (status == UIR_STATUS_OK) {
            status = uir_value_wrap(session->model->context, results[i], session->model->outputs[i].port.name,
                                    &session->outputs[i]);
        }
        if (status != UIR_STATUS_OK) uir_datum_release(results[i]);
        results[i] = NULL;
    }
    if (status != UIR_STATUS_OK) drop_outputs(session);
    return status;
}

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static uir_status run_on_device(uir_call *call, uir_session *session) {
    const uir_model *model = session->model;
    UIR_TRY(take_inputs(call, session));
    for (uint32_t i = 0; i < model->input_count; i++) {
        const uir_datum *datum = session->inputs[i]->datum;
        const uir_tensor *tensor = datum->tensor;
        if (datum->kind != UIR_VALUE_TENSOR)
            return uir_error(&call->diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "input '%s' is not a tensor",
                             model->inputs[i].port.name);
        UIR_TRY(uir_runtime_set_input(session->runtime, i, tensor->dtype, tensor->rank, tensor->shape, tensor->data));
    }
    drop_outputs(session);
    UIR_TRY(uir_runtime_run(session->runtime));
    uir_runtime_statistics s = uir_runtime_get_statistics(session->runtime);
    session->statistics = (uir_run_statistics){.ran_on = s.native_calls ? "cpu" : "vm",
                                               .run_ms = s.run_ms,
                                               .peak_bytes = s.arena_bytes + s.scratch_bytes,
                                               .native_calls = s.native_calls,
                                               .vm_calls = s.vm_calls,
                                               .vendor_calls = s.vendor_calls,
                                               .host_calls = s.host_calls,
                                               .groups = s.kernels,
                                               .kernels = model->info.kernel_count,
                                               .phases = s.phases,
                                               .dram_bytes = s.dram_bytes};
    return UIR_STATUS_OK;
}

static uir_status run(uir_call *call, uir_session *session) {
    const uir_model *model = session->model;
    uir_datum **results = session->datums + model->input_count;
    uir_interpreter_options options = {
        .cancel = &session->cancel, .after_node = after_node, .user = session, .threads = session->threads};
    drop_outputs(session);
    memset(session->times, 0, session->time_count * sizeof *session->times);
    session->statistics = (uir_run_statistics){.ran_on = interpreter_name};
    UIR_TRY(take_inputs(call, session));
    double start = now_ms();
    UIR_TRY(uir_module_interpret(model->module, &model->context->allocator, &call->diagnostics, &options,
                                 session->datums, model->input_count, results, model->output_count,
                                 &session->statistics.peak_bytes));
    session->statistics.run_ms = now_ms() - start;
    return take_outputs(session, results);
}

uir_status uir_session_run(uir_session *session) {
    uir_call call;
    if (session->runtime)
        return uir_call_flush(&session->call, run_on_device(&session->call, session), "running the model");
    session->cancel = false;
    uir_call_begin(&call, session->model->context);
    return uir_call_end(&call, run(&call, session), "running the model");
}

void uir_session_cancel(uir_session *session) {
    if (session->runtime)
        uir_runtime_cancel(session->runtime);
    else
        session->cancel = true;
}

/* What the runtime holds, as a value that borrows it. */
static uir_status wrap_output(uir_session *session, uint32_t index) {
    uir_runtime_output output;
    uir_tensor *tensor;
    UIR_TRY(uir_runtime_get_output(session->runtime, index, &output));
    UIR_TRY(uir_tensor_create_borrowed(&session->model->context->allocator, output.dtype, output.rank, output.shape,
                                       output.data, &tensor));
    uir_status status = uir_value_wrap_tensor(session->model->context, tensor, &session->outputs[index]);
    if (status != UIR_STATUS_OK) uir_tensor_release(tensor);
    return status;
}

uir_status uir_session_get_output(uir_session *session, size_t index, uir_value **out_value) {
    uir_call call;
    *out_value = NULL;
    if (session->runtime && index < session->model->output_count && !session->outputs[index]) {
        uir_status status = wrap_output(session, (uint32_t)index);
        if (status != UIR_STATUS_OK) return uir_call_flush(&session->call, status, "asking for an output");
    }
    if (index < session->model->output_count && session->outputs[index]) {
        *out_value = session->outputs[index];
        return UIR_STATUS_OK;
    }
    uir_call_begin(&call, session->model->context);
    uir_status status = uir_error(&call.diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                                  "there is no output %zu; outputs exist after a run that went well", index);
    return uir_call_end(&call, status, "asking for an output");
}

/* ---- statistics ---- */

uir_run_statistics uir_session_get_statistics(const uir_session *session) {
    return session->statistics;
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
                                          .ms = step.ms,
                                          .calls = step.calls};
        return true;
    }
    return false;
}

bool uir_session_get_node_statistics(const uir_session *session, size_t index, uir_node_statistics *out_node) {
    if (session->runtime) return get_step(session, index, out_node);
    const uir_module *module = session->model->module;
    for (uint32_t i = 1; i < session->time_count; i++) {
        if (session->times[i].calls == 0 || index-- > 0) continue;
        const uir_node_info *node = uir_node_get(module, (uir_node_id){i});
        *out_node = (uir_node_statistics){.name = uir_string_text(&module->strings, node->name),
                                          .op = uir_op_get_row(node->origin)->name,
                                          .kernel = uir_op_get_row(node->op)->name,
                                          .by = interpreter_name,
                                          .why = session->model->info.why,
                                          .ms = session->times[i].ms,
                                          .calls = session->times[i].calls};
        return true;
    }
    return false;
}
