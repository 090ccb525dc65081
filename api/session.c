/* Sessions: created and destroyed, runs, outputs. */
#include "api/internal.h"

#include <string.h>
#include <time.h>

double uir_api_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* The model's own device, or the interpreter. */
static bool is_known_device(const uir_model *model, const char *device) {
    return (model->table->interpret && strcmp(device, UIR_INTERPRETER_NAME) == 0) ||
           (model->package && strcmp(device, model->info.device) == 0);
}

static uir_status unknown_device(uir_call *call, const uir_model *model, const char *device) {
    if (!model->table->interpret && strcmp(device, UIR_INTERPRETER_NAME) == 0)
        return uir_error_hint(&call->diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "load the model it was made from",
                              "a package has no graph that the interpreter could run");
    return uir_error_hint(&call->diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                          "load it for that device, or leave the session's device out",
                          "the model was not loaded for the device '%s'", device);
}

static uir_status allocate_parts(uir_session *session) {
    const uir_allocator *allocator = &session->allocator;
    uint32_t inputs = session->model->input_count, outputs = session->model->output_count;
    UIR_TRY_ALLOCATE(session->inputs, uir_allocate_zeroed(allocator, inputs * sizeof *session->inputs));
    UIR_TRY_ALLOCATE(session->outputs, uir_allocate_zeroed(allocator, outputs * sizeof *session->outputs));
    UIR_TRY_ALLOCATE(session->datums,
                     uir_allocate_zeroed(allocator, ((size_t)inputs + outputs) * sizeof *session->datums));
    UIR_TRY_ALLOCATE(session->bound, uir_allocate_zeroed(allocator, outputs * sizeof *session->bound));
    UIR_TRY_ALLOCATE(session->held, uir_allocate_zeroed(allocator, inputs * sizeof *session->held));
    UIR_TRY_ALLOCATE(session->times, uir_allocate_zeroed(allocator, session->time_count * sizeof *session->times));
    return UIR_STATUS_OK;
}

static uir_status create(uir_call *call, uir_model *model, const uir_session_options *options, const uir_limits *limits,
                         uir_session **out_session) {
    if (options->device && !is_known_device(model, options->device))
        return unknown_device(call, model, options->device);
    if (model->is_description)
        return uir_error(&call->diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                         "the model is not supported: it was loaded only to be described");
    uir_session *session;
    UIR_TRY_ALLOCATE(session, uir_allocate_zeroed(&model->context->allocator, sizeof *session));
    session->model = model;
    session->threads = options->threads ? options->threads : uir_core_count();
    session->trace = options->trace;
    session->estimate = options->estimate;
    uir_budget_init(&session->budget, &model->context->allocator, limits);
    session->allocator = uir_budget_allocator(&session->budget);
    uir_arena_init(&session->slice_arena, &session->allocator);
    session->statistics.ran_on = UIR_INTERPRETER_NAME;
    bool interpreted = !model->package || (options->device && !strcmp(options->device, UIR_INTERPRETER_NAME));
    uir_status status = UIR_STATUS_OK;
    if (interpreted && model->table->prepare_interpreter) status = model->table->prepare_interpreter(call, model);
    if (interpreted && status == UIR_STATUS_OK) session->time_count = model->node_count;
    if (status == UIR_STATUS_OK) status = allocate_parts(session);
    uir_call_begin(&session->call, model->context);
    if (status == UIR_STATUS_OK && !interpreted) {
        uir_runtime_options runtime = {.threads = session->threads,
                                       .measure = true,
                                       .trace = session->trace,
                                       .queue_times = session->trace || options->queue_times,
                                       .parallel = options->parallel,
                                       .parallel_user = options->parallel_user};
        session->statistics.ran_on = model->info.device;
        status = uir_runtime_create(model->package, &runtime, &session->allocator, &session->call.diagnostics,
                                    &session->runtime);
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
    uir_session_options taken;
    uir_limits limits;
    *out_session = NULL;
    uir_call_begin(&call, model->context);
    uir_status status = UIR_STRUCT_TAKE(&call.diagnostics, uir_session_options, options, &taken);
    if (status == UIR_STATUS_OK) status = uir_api_take_limits(&call.diagnostics, taken.limits, &limits);
    if (status == UIR_STATUS_OK && !limits.memory) limits.memory = UIR_NO_LIMIT;
    if (status == UIR_STATUS_OK) status = create(&call, model, &taken, &limits, out_session);
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
    uir_session_end_worker(session);
    const uir_allocator *allocator = &session->allocator;
    uint32_t inputs = session->model->input_count, outputs = session->model->output_count;
    drop_outputs(session);
    uir_runtime_destroy(session->runtime);
    uir_runtime_destroy(session->costing);
    uir_session_release_bindings(session);
    if (session->call.context) uir_call_end(&session->call, UIR_STATUS_OK, "a session");
    if (session->inputs) uir_release(allocator, session->inputs, inputs * sizeof *session->inputs);
    if (session->outputs) uir_release(allocator, session->outputs, outputs * sizeof *session->outputs);
    if (session->datums) {
        uir_release(allocator, session->datums, ((size_t)inputs + outputs) * sizeof *session->datums);
    }
    if (session->bound) uir_release(allocator, session->bound, outputs * sizeof *session->bound);
    if (session->held) uir_release(allocator, session->held, inputs * sizeof *session->held);
    if (session->times) uir_release(allocator, session->times, session->time_count * sizeof *session->times);
    uir_arena_deinit(&session->slice_arena);
    uir_budget_deinit(&session->budget);
    uir_release(&session->model->context->allocator, session, sizeof *session);
}

/* ---- runs ---- */

uir_status uir_session_take_inputs(uir_call *call, uir_session *session) {
    uint32_t missing = 0;
    for (uint32_t i = 0; i < session->model->input_count; i++) {
        session->datums[i] = session->inputs[i] ? session->inputs[i]->datum : NULL;
        if (session->inputs[i] || session->held[i].bound) continue;
        missing++;
        uir_error_hint(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "bind a value with uir_session_set_input",
                       "input '%s' is not bound to a value", session->model->inputs[i].port.name);
    }
    return missing ? UIR_STATUS_INVALID_ARGUMENT : UIR_STATUS_OK;
}

typedef struct element_walk {
    uint32_t rank;
    const int64_t *shape, *strides;
    size_t size;
} element_walk;

/* Between packed elements and ones with strides. */
static void copy_strided(const element_walk *w, char *packed, char *strided, bool gather) {
    int64_t index[UIR_API_MAX_RANK] = {0};
    for (uint32_t d = 0; d < w->rank; d++) {
        if (w->shape[d] == 0) return;
    }
    for (;;) {
        ptrdiff_t at = 0;
        for (uint32_t d = 0; d < w->rank; d++) at += (ptrdiff_t)(index[d] * w->strides[d]) * (ptrdiff_t)w->size;
        memcpy(gather ? packed : strided + at, gather ? strided + at : packed, w->size);
        packed += w->size;
        uint32_t d = w->rank;
        while (d > 0 && ++index[d - 1] == w->shape[d - 1]) index[--d] = 0;
        if (d == 0) return;
    }
}

/* Into the buffer that the caller bound, which the value then borrows. */
static uir_status place_output(uir_call *call, uir_session *session, uint32_t index, uir_datum **datum) {
    const uir_bound_output *bound = &session->bound[index];
    const uir_tensor *from = (*datum)->tensor;
    const char *name = session->model->outputs[index].port.name;
    uir_tensor *tensor;
    uir_datum *placed;
    if ((*datum)->kind != UIR_VALUE_TENSOR || from->dtype == UIR_DTYPE_STRING)
        return uir_error(&call->diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                         "output '%s' cannot be bound to a buffer: the size of its elements varies", name);
    if (bound->strided) {
        size_t needed;
        element_walk w = {from->rank, from->shape, bound->strides, (size_t)uir_dtype_bits(from->dtype) / 8};
        if (!uir_session_measure_footprint(from->dtype, from->rank, from->shape, bound->strides, &needed) ||
            needed > bound->capacity)
            return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                             "output '%s' does not fit the %zu bytes bound to it", name, bound->capacity);
        copy_strided(&w, from->data, bound->data, false);
        return UIR_STATUS_OK; /* its value stays what it was made as */
    }
    if (from->byte_size > bound->capacity)
        return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "output '%s' requires %zu bytes, but the buffer bound to it has %zu", name, from->byte_size,
                         bound->capacity);
    if (from->byte_size) memmove(bound->data, from->data, from->byte_size);
    UIR_TRY(
        uir_tensor_create_borrowed(&session->allocator, from->dtype, from->rank, from->shape, bound->data, &tensor));
    uir_status status = uir_datum_create_tensor(&session->allocator, tensor, &placed);
    if (status != UIR_STATUS_OK) {
        uir_tensor_release(tensor);
        return status;
    }
    uir_datum_release(*datum);
    *datum = placed;
    return UIR_STATUS_OK;
}

/* Datums that could not be wrapped are released. */
uir_status uir_session_take_outputs(uir_call *call, uir_session *session) {
    uir_datum **results = session->datums + session->model->input_count;
    uir_status status = UIR_STATUS_OK;
    for (uint32_t i = 0; i < session->model->output_count; i++) {
        if (status == UIR_STATUS_OK && session->bound[i].data) status = place_output(call, session, i, &results[i]);
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

static uir_status run_on_device(uir_call *call, uir_session *session) {
    const uir_model *model = session->model;
    UIR_TRY(model->table->check_files(call, model, false));
    UIR_TRY(uir_session_take_inputs(call, session));
    for (uint32_t i = 0; i < model->input_count; i++) {
        const uir_bound_input *held = &session->held[i];
        if (held->bound) {
            const uir_region at = uir_session_get_input_region(held);
            UIR_TRY(uir_runtime_set_input_region(session->runtime, i, model->inputs[i].port.dtype, held->rank,
                                                 held->shape, held->strided ? held->strides : NULL, &at));
            continue;
        }
        const uir_datum *datum = session->inputs[i]->datum;
        const uir_tensor *tensor = datum->tensor;
        if (datum->kind != UIR_VALUE_TENSOR)
            return uir_error_hint(&call->diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                                  "bind a tensor, or load the model on the device interpreter",
                                  "input '%s' is not a tensor, which this device requires", model->inputs[i].port.name);
        UIR_TRY(uir_runtime_set_input(session->runtime, i, tensor->dtype, tensor->rank, tensor->shape, tensor->data));
    }
    session->runs++; /* values of outputs are looked at again when they are asked for */
    UIR_TRY(uir_runtime_run(session->runtime));
    for (uint32_t k = 0; k < model->output_count; k++) session->bound[k].is_moved = false;
    uir_runtime_statistics s = uir_runtime_get_statistics(session->runtime);
    session->statistics = (uir_run_statistics){.ran_on = s.device_calls   ? model->device->driver->name
                                                         : s.native_calls ? "cpu"
                                                                          : "vm",
                                               .run_ms = s.run_ms,
                                               .peak_bytes = s.arena_bytes + s.scratch_bytes,
                                               .native_calls = s.native_calls,
                                               .vm_calls = s.vm_calls,
                                               .vendor_calls = s.vendor_calls,
                                               .host_calls = s.host_calls,
                                               .groups = s.kernels,
                                               .kernels = model->info.kernel_count,
                                               .phases = s.phases,
                                               .dram_bytes = s.dram_bytes,
                                               .threads = s.threads,
                                               .device_calls = s.device_calls,
                                               .copies = s.copies,
                                               .waits = s.waits,
                                               .bytes_to_device = s.bytes_to_device,
                                               .bytes_from_device = s.bytes_from_device,
                                               .device_bytes = s.device_bytes};
    return UIR_STATUS_OK;
}

/* ---- what the caller holds, for the interpreter ---- */
static uir_status wrap_held(uir_session *session) {
    const uir_allocator *allocator = &session->allocator;
    for (uint32_t i = 0; i < session->model->input_count; i++) {
        const uir_bound_input *held = &session->held[i];
        uir_dtype dtype = session->model->inputs[i].port.dtype;
        uir_tensor *tensor;
        if (!held->bound) continue;
        if (held->strided) {
            UIR_TRY(uir_tensor_create(allocator, dtype, held->rank, held->shape, &tensor));
            element_walk w = {held->rank, held->shape, held->strides, (size_t)uir_dtype_bits(dtype) / 8};
            copy_strided(&w, tensor->data, (char *)(uintptr_t)held->data, true);
        } else {
            UIR_TRY(uir_tensor_create_borrowed(allocator, dtype, held->rank, held->shape, (void *)(uintptr_t)held->data,
                                               &tensor));
        }
        uir_status status = uir_value_wrap_tensor(session->model->context, tensor, &session->inputs[i]);
        if (status != UIR_STATUS_OK) {
            uir_tensor_release(tensor);
            return status;
        }
    }
    return UIR_STATUS_OK;
}

static void unwrap_held(uir_session *session) {
    for (uint32_t i = 0; i < session->model->input_count; i++) {
        if (!session->held[i].bound) continue;
        uir_value_destroy(session->inputs[i]);
        session->inputs[i] = NULL;
    }
}

static const char running[] = "running the model";

static uir_status interpret(uir_call *call, uir_session *session) {
    const uir_model_table *table = session->model->table;
    drop_outputs(session);
    uir_status status = uir_budget_begin(&session->budget, running, &session->cancel, NULL);
    if (status == UIR_STATUS_OK) status = table->check_files(call, session->model, true);
    if (status == UIR_STATUS_OK) status = wrap_held(session);
    if (status == UIR_STATUS_OK) status = table->interpret(call, session);
    unwrap_held(session);
    status = uir_budget_end(&session->budget, status, &call->diagnostics);
    __atomic_store_n(&session->cancel, false, __ATOMIC_RELAXED);
    return status;
}

uir_status uir_session_execute(uir_session *session) {
    uir_call *call = &session->call;
    uir_budget *budget = &session->budget;
    if (!session->runtime) return interpret(call, session);
    uir_status status = uir_budget_begin(budget, running, NULL, uir_runtime_get_cancel(session->runtime));
    if (status == UIR_STATUS_OK) status = run_on_device(call, session);
    status = uir_budget_end(budget, status, &call->diagnostics);
    if (status == UIR_STATUS_CANCELLED || status == UIR_STATUS_LIMIT) uir_runtime_forget_cancel(session->runtime);
    return status;
}

uir_status uir_session_run(uir_session *session) {
    UIR_TRY(uir_session_check_idle(session, running));
    return uir_call_flush(&session->call, uir_session_execute(session), running);
}

void uir_session_cancel(uir_session *session) {
    if (session->runtime)
        uir_runtime_cancel(session->runtime);
    else
        __atomic_store_n(&session->cancel, true, __ATOMIC_RELAXED);
}

/* Whether the output's value of an earlier run says what this one's would. */
static bool still_holds(const uir_session *session, uint32_t index, const uir_runtime_output *output) {
    if (!session->outputs[index] || output->strides || session->outputs[index]->memory != session->bound[index].memory)
        return false;
    const uir_tensor *t = session->outputs[index]->datum->tensor;
    return t->data == output->data && t->dtype == output->dtype && t->rank == output->rank &&
           (!t->rank || !memcmp(t->shape, output->shape, t->rank * sizeof *t->shape));
}

/* A packed copy of what is bound with strides, which a device's memory is copied to the host for. */
static uir_status pack_output(uir_session *session, uint32_t index, const uir_runtime_output *output,
                              uir_tensor **out_tensor) {
    const uir_device_memory *memory = session->bound[index].memory;
    element_walk w = {output->rank, output->shape, output->strides, (size_t)uir_dtype_bits(output->dtype) / 8};
    size_t size = 0;
    char *fetched = NULL;
    uir_status status = UIR_STATUS_OK;
    if (uir_api_is_away(memory)) {
        if (!uir_session_measure_footprint(output->dtype, output->rank, output->shape, output->strides, &size))
            return UIR_STATUS_INTERNAL;
        UIR_TRY_ALLOCATE(fetched, uir_allocate(&session->allocator, size ? size : 1));
        status = uir_api_copy_memory(memory, 0, fetched, size, false, &session->call.diagnostics);
    }
    if (status == UIR_STATUS_OK)
        status = uir_tensor_create(&session->allocator, output->dtype, output->rank, output->shape, out_tensor);
    if (status == UIR_STATUS_OK)
        copy_strided(&w, (*out_tensor)->data, fetched ? fetched : (char *)(uintptr_t)output->data, true);
    if (fetched) uir_release(&session->allocator, fetched, size ? size : 1);
    return status;
}

/* What the runtime holds, as a value that borrows it. */
static uir_status wrap_output(uir_session *session, uint32_t index) {
    uir_runtime_output output;
    uir_tensor *tensor;
    UIR_TRY(uir_runtime_get_output(session->runtime, index, &output));
    if (session->bound[index].is_moved)
        return uir_error_hint(&session->call.diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "run the session first",
                              "output '%s' was bound to other memory after the last run",
                              session->model->outputs[index].port.name);
    if (still_holds(session, index, &output)) {
        session->bound[index].made = session->runs;
        return UIR_STATUS_OK;
    }
    uir_value_destroy(session->outputs[index]);
    session->outputs[index] = NULL;
    if (!output.strides && session->bound[index].memory) {
        session->bound[index].made = session->runs;
        return uir_value_wrap_memory(session->bound[index].memory, output.dtype, output.rank, output.shape,
                                     &session->outputs[index]);
    }
    if (output.strides) {
        UIR_TRY(pack_output(session, index, &output, &tensor));
    } else {
        UIR_TRY(uir_tensor_create_borrowed(&session->allocator, output.dtype, output.rank, output.shape, output.data,
                                           &tensor));
    }
    uir_status status = uir_value_wrap_tensor(session->model->context, tensor, &session->outputs[index]);
    if (status != UIR_STATUS_OK) uir_tensor_release(tensor);
    session->bound[index].made = session->runs;
    return status;
}

uir_status uir_session_get_output(uir_session *session, size_t index, uir_value **out_value) {
    uir_call call;
    *out_value = NULL;
    UIR_TRY(uir_session_check_idle(session, "getting an output"));
    if (session->runtime && index < session->model->output_count &&
        (!session->outputs[index] || session->bound[index].made != session->runs)) {
        uir_status status = wrap_output(session, (uint32_t)index);
        if (status != UIR_STATUS_OK) return uir_call_flush(&session->call, status, "getting an output");
    }
    if (index < session->model->output_count && session->outputs[index]) {
        *out_value = session->outputs[index];
        return UIR_STATUS_OK;
    }
    uir_call_begin(&call, session->model->context);
    uir_status status = uir_error(&call.diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                                  "no output %zu; outputs exist only after a successful run", index);
    return uir_call_end(&call, status, "getting an output");
}
