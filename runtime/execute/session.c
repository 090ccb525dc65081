/* A runtime: its life, what is bound to it, a run, what it says of it. */
#include "base/dims/demand.h"
#include "runtime/internal.h"

#include <stdio.h>
#include <string.h>

/* ---- life ---- */
static uir_status make_epoch(uir_runtime *r, uint32_t id) {
    const uir_rt_epoch_info *info = &r->analysis->epochs.data[id];
    uir_rt_epoch *epoch = &r->epochs[id];
    size_t places = info->tensors.count;
    for (uint32_t i = 0; i < info->launches.count; i++)
        places += r->analysis->kernels[r->plan->steps[info->launches.data[i]].target].works;
    if (places > UINT32_MAX / 4) return UIR_STATUS_LIMIT;
    UIR_TRY_ALLOCATE(epoch->snapshot,
                     uir_arena_allocate_array(&r->arena, (size_t)info->symbols.count + 1, sizeof *epoch->snapshot));
    UIR_TRY_ALLOCATE(epoch->places, uir_arena_allocate_array(&r->arena, places + 1, sizeof *epoch->places));
    UIR_TRY_ALLOCATE(epoch->order, uir_arena_allocate_array(&r->arena, 3 * places + 1, sizeof *epoch->order));
    return UIR_STATUS_OK;
}

static uir_status make_parts(uir_runtime *r) {
    const uir_plan *p = r->plan;
    size_t environment = 1;
    for (uint32_t i = 0; i < p->variants_count; i++) {
        if (environment < p->variants[i].symbol_count) environment = p->variants[i].symbol_count;
    }
#define MAKE(field, count)                                                                                             \
    UIR_TRY_ALLOCATE(r->field, uir_arena_allocate_array(&r->arena, (size_t)(count) + 1, sizeof *r->field))
    MAKE(scratch, r->threads);
    MAKE(tracks, r->threads);
    MAKE(shares, r->threads);
    MAKE(values, p->symbols_count);
    MAKE(bound, p->symbols_count);
    MAKE(shapes, r->analysis->shape_count);
    MAKE(actual, r->analysis->shape_count);
    MAKE(environment, environment);
    MAKE(environment_bound, environment);
    MAKE(tensors, p->tensors_count);
    MAKE(epochs, r->analysis->epochs.count);
    MAKE(launches, r->analysis->launch_count);
    MAKE(loops, r->analysis->loop_count);
    MAKE(owned, p->tensors_count);
    MAKE(results, p->outputs_count);
    MAKE(bound_outputs, p->outputs_count);
    MAKE(copied_out, p->outputs_count);
    MAKE(inputs, p->inputs_count);
    MAKE(bound_inputs, p->inputs_count);
    MAKE(staged, p->inputs_count);
    MAKE(device_inputs, p->inputs_count);
    MAKE(device_results, p->outputs_count);
    MAKE(input_sizes, p->inputs_count);
    MAKE(input_shapes, (size_t)p->inputs_count * UIR_PLAN_MAX_RANK);
    MAKE(input_set, p->inputs_count);
    MAKE(steps, p->steps_count);
#undef MAKE
    for (uint32_t t = 0; t < r->threads; t++) r->scratch[t].allocator = &r->allocator;
    UIR_TRY(uir_rt_queues_create(r));
    for (uint32_t i = 0; i < r->analysis->epochs.count; i++) UIR_TRY(make_epoch(r, i));
    for (uint32_t i = 0; i < p->steps_count; i++) {
        if (p->steps[i].kind == UIR_PLAN_STEP_LAUNCH) UIR_TRY(uir_rt_launch_create(r, i));
        if (p->steps[i].kind != UIR_PLAN_STEP_LOOP) continue;
        uir_rt_loop *loop = &r->loops[r->analysis->steps[i].index];
        UIR_TRY_ALLOCATE(loop->carried, uir_arena_allocate_array(&r->arena, (size_t)p->steps[i].inputs.count + 1,
                                                                 sizeof *loop->carried));
    }
    return r->threads > 1 && !r->options.parallel ? uir_rt_pool_create(&r->allocator, r->threads - 1, &r->pool)
                                                  : UIR_STATUS_OK;
}

uir_status uir_runtime_create(uir_package *package, const uir_runtime_options *options, const uir_allocator *allocator,
                              uir_diagnostics *diagnostics, uir_runtime **out_runtime) {
    uir_runtime *r;
    *out_runtime = NULL;
    UIR_TRY_ALLOCATE(r, uir_allocate_zeroed(allocator, sizeof *r));
    r->allocator = *allocator;
    uir_arena_init(&r->arena, &r->allocator);
    r->package = package;
    r->plan = &package->plan;
    r->analysis = &package->analysis;
    r->diagnostics = diagnostics;
    if (options) r->options = *options;
    r->threads = r->options.threads ? r->options.threads : uir_core_count();
    if (r->threads > 1024) r->threads = 1024;
    uir_status status = make_parts(r);
    if (status != UIR_STATUS_OK) {
        uir_runtime_destroy(r);
        return status;
    }
    *out_runtime = r;
    return UIR_STATUS_OK;
}

void uir_runtime_destroy(uir_runtime *r) {
    if (!r) return;
    const uir_plan *p = r->plan;
    uir_rt_pool_destroy(r->pool);
    if (p->devices_count) uir_rt_queues_destroy(r);
    for (uint32_t t = 0; r->scratch && t < r->threads; t++) {
        if (r->scratch[t].data) uir_release(&r->allocator, r->scratch[t].data, r->scratch[t].size);
    }
    for (uint32_t t = 0; r->tracks && t < r->threads; t++) {
        uir_rt_track *track = &r->tracks[t];
        if (track->slices) uir_release(&r->allocator, track->slices, track->capacity * sizeof *track->slices);
    }
    for (uint32_t i = 0; r->epochs && i < r->analysis->epochs.count; i++)
        for (uint32_t d = 0; d < UIR_PLAN_DOMAIN_COUNT; d++) uir_rt_buffer_release(r, &r->epochs[i].blocks[d]);
    for (uint32_t i = 0; r->launches && i < r->analysis->launch_count; i++) {
        uir_rt_launch *l = &r->launches[i];
        if (l->base.state) uir_release(&r->allocator, l->base.state, l->state_capacity);
        if (l->on_device) uir_rt_device_launch_destroy(r, l);
    }
    for (uint32_t i = 0; r->loops && i < p->steps_count; i++) {
        if (p->steps[i].kind != UIR_PLAN_STEP_LOOP) continue;
        uir_rt_loop *loop = &r->loops[r->analysis->steps[i].index];
        for (uint32_t k = 0; loop->carried && k < 2 * p->steps[i].inputs.count; k++)
            uir_rt_buffer_release(r, &loop->carried[k / 2].slots[k % 2]);
        uir_rt_buffer_release(r, &loop->kept);
    }
    uir_rt_buffer_release(r, &r->host);
    uir_rt_buffer_release(r, &r->by_host);
    for (uint32_t i = 0; r->owned && i < p->tensors_count; i++) uir_rt_buffer_release(r, &r->owned[i]);
    for (uint32_t i = 0; r->results && i < p->outputs_count; i++) uir_rt_buffer_release(r, &r->results[i]);
    for (uint32_t i = 0; r->staged && i < p->inputs_count; i++) uir_rt_buffer_release(r, &r->staged[i]);
    for (uint32_t i = 0; r->device_inputs && i < p->inputs_count; i++) uir_rt_buffer_release(r, &r->device_inputs[i]);
    for (uint32_t i = 0; r->device_results && i < p->outputs_count; i++)
        uir_rt_buffer_release(r, &r->device_results[i]);
    uir_allocator allocator = r->allocator;
    uir_arena_deinit(&r->arena);
    uir_release(&allocator, r, sizeof *r);
}

/* ---- what is bound ---- */
/* Strides are positive multiples of whole bytes; NULL: packed. */
static uir_status bind(uir_runtime *r, const uir_package_port *port, const char *what, const int64_t *strides,
                       const uir_region *at, uir_rt_binding *out) {
    *out = (uir_rt_binding){.at = *at};
    if (!uir_rt_is_placed(at)) out->at.size = 0;
    if (!strides || !uir_rt_is_placed(at)) return UIR_STATUS_OK;
    if (uir_dtype_bits(port->dtype) < 8)
        return uir_error(r->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "%s '%s': elements of less than a byte have no strides", what, port->name);
    for (uint32_t d = 0; d < port->rank; d++) {
        if (strides[d] < 0)
            return uir_error(r->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                             "%s '%s': stride %lld of axis %u is negative", what, port->name, (long long)strides[d], d);
        out->strides[d] = strides[d];
    }
    out->strided = port->rank > 0;
    return UIR_STATUS_OK;
}

uir_status uir_runtime_set_input(uir_runtime *r, uint32_t index, uir_dtype dtype, uint32_t rank, const int64_t *shape,
                                 const void *data) {
    return uir_runtime_set_input_strided(r, index, dtype, rank, shape, NULL, data, SIZE_MAX);
}

uir_status uir_runtime_set_input_strided(uir_runtime *r, uint32_t index, uir_dtype dtype, uint32_t rank,
                                         const int64_t *shape, const int64_t *strides, const void *data,
                                         size_t capacity) {
    const uir_region at = uir_rt_on_host(data, capacity);
    return uir_runtime_set_input_region(r, index, dtype, rank, shape, strides, &at);
}

/* Device memory is the runtime's own device's. */
static uir_status check_device(uir_runtime *r, const char *what, const char *name, const uir_region *at) {
    const uir_rt_device *d = &r->package->device;
    if (!at->buffer) return UIR_STATUS_OK;
    if (!r->plan->devices_count || at->buffer->device != d->device)
        return uir_error(r->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "%s '%s': the buffer is of another device than the model's", what, name);
    if (at->offset % d->facts->alignment)
        return uir_error(r->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "%s '%s': byte %llu of the buffer is not a multiple of %u", what, name,
                         (unsigned long long)at->offset, d->facts->alignment);
    return uir_driver_check_region(d->device, at, "the buffer", r->diagnostics);
}

uir_status uir_runtime_set_input_region(uir_runtime *r, uint32_t index, uir_dtype dtype, uint32_t rank,
                                        const int64_t *shape, const int64_t *strides, const uir_region *at) {
    uir_rt_binding binding;
    size_t needed;
    uint64_t count;
    size_t bytes;
    if (index >= r->plan->inputs_count)
        return uir_error(r->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "the model has no input %u: it has %u, counted from 0", index, r->plan->inputs_count);
    uir_package_port port = uir_package_get_input(r->package, index);
    if (dtype != port.dtype || rank != port.rank)
        return uir_error(r->diagnostics, UIR_STATUS_BAD_DATA, NULL,
                         "input '%s': %s of rank %u was given, but it is %s of rank %u", port.name,
                         uir_dtype_name(dtype), rank, uir_dtype_name(port.dtype), port.rank);
    for (uint32_t d = 0; d < rank; d++) {
        char message[320];
        if (shape[d] >= 0 && (port.dims[d] < 0 || shape[d] == port.dims[d])) continue;
        uir_extent_describe(d, "", shape[d], port.dims[d] < 0 ? 0 : port.dims[d], message, sizeof message);
        return uir_error(r->diagnostics, UIR_STATUS_BAD_DATA, NULL, "input '%s': %s", port.name, message);
    }
    if (!uir_shape_element_count(shape, rank, &count) || !uir_dtype_storage_size(dtype, count, &bytes))
        return uir_error(r->diagnostics, UIR_STATUS_BAD_DATA, NULL, "input '%s' is too large", port.name);
    UIR_TRY(check_device(r, "input", port.name, at));
    UIR_TRY(bind(r, &port, "input", strides, at, &binding));
    needed = bytes;
    if (binding.strided && !uir_rt_footprint(&binding, dtype, rank, shape, &needed))
        return uir_error(r->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "input '%s': its strides are too large",
                         port.name);
    if (uir_rt_is_placed(at) && needed > at->size)
        return uir_error(r->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "input '%s': the buffer holds %zu bytes, %zu are needed", port.name, (size_t)at->size, needed);
    if (rank) memcpy(r->input_shapes + (size_t)index * UIR_PLAN_MAX_RANK, shape, rank * sizeof *shape);
    r->bound_inputs[index] = binding;
    r->inputs[index] = *at;
    r->input_sizes[index] = bytes;
    r->input_set[index] = true;
    return UIR_STATUS_OK;
}

uir_status uir_runtime_bind_output(uir_runtime *r, uint32_t index, void *data, size_t capacity) {
    return uir_runtime_bind_output_strided(r, index, NULL, data, capacity);
}

uir_status uir_runtime_bind_output_strided(uir_runtime *r, uint32_t index, const int64_t *strides, void *data,
                                           size_t capacity) {
    const uir_region at = uir_rt_on_host(data, capacity);
    return uir_runtime_bind_output_region(r, index, strides, &at);
}

uir_status uir_runtime_bind_output_region(uir_runtime *r, uint32_t index, const int64_t *strides,
                                          const uir_region *at) {
    if (index >= r->plan->outputs_count)
        return uir_error(r->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "the model has no output %u; it has %u",
                         index, r->plan->outputs_count);
    uir_package_port port = uir_package_get_output(r->package, index);
    UIR_TRY(check_device(r, "output", port.name, at));
    return bind(r, &port, "output", strides, at, &r->bound_outputs[index]);
}

/* ---- a run ---- */
/* Where the input is read: its slack is bound, or it is copied together. */
static uir_status epoch_input(uir_runtime *r, uint32_t i) {
    const uir_plan_port *port = &r->plan->inputs[i];
    const int64_t *shape = r->input_shapes + (size_t)i * UIR_PLAN_MAX_RANK;
    uir_rt_binding *binding = &r->bound_inputs[i];
    uint32_t rank = uir_rt_rank(r, port->tensor);
    size_t available = r->input_sizes[i];
    UIR_TRY(uir_rt_bind_slack(r, port, shape, binding));
    r->inputs[i] = binding->at;
    if (binding->strided && binding->in_place) { /* the last stretch's slack as well, or none */
        size_t stretch = uir_dtype_bits((uir_dtype)r->plan->tensors[port->tensor].dtype) / 8, span = 0;
        int64_t slack = port->slack == UIR_PLAN_NONE ? 0 : r->values[port->slack];
        bool fits = true;
        for (uint32_t d = 0; d < rank; d++)
            fits &= !__builtin_mul_overflow(stretch, (size_t)(shape[d] + (slack && d == port->slack_axis ? slack : 0)),
                                            &stretch);
        span = stretch;
        if (fits && span <= binding->at.size)
            available = span;
        else
            binding->in_place = false;
        if (!binding->in_place && port->slack != UIR_PLAN_NONE) r->values[port->slack] = 0;
    }
    if (binding->strided && !binding->in_place && binding->at.buffer)
        return uir_error_hint(r->diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                              "copy it to packed memory of the device first",
                              "input '%s': no kernel reads a buffer of the device with these strides",
                              uir_plan_get_text(r->plan, port->name));
    if (binding->strided && !binding->in_place && binding->at.host) {
        UIR_TRY(uir_rt_buffer_grow(r, &r->staged[i], UIR_PLAN_ON_HOST, r->input_sizes[i], port->tensor));
        uir_rt_gather(binding, (uir_dtype)r->plan->tensors[port->tensor].dtype, rank, shape, r->staged[i].data);
        r->inputs[i].host = r->staged[i].data;
    }
    r->inputs[i].size = available;
    if (r->inputs[i].buffer && r->analysis->is_host_input[i]) {
        UIR_TRY(uir_rt_buffer_grow(r, &r->staged[i], UIR_PLAN_ON_HOST, available, port->tensor));
        uir_rt_place_tensor(r, port->tensor, uir_rt_on_host(r->staged[i].data, available));
        return UIR_STATUS_OK;
    }
    uir_rt_place_tensor(r, port->tensor, r->inputs[i].buffer ? uir_rt_on_host(NULL, 0) : r->inputs[i]);
    return UIR_STATUS_OK;
}

/* An output's slack needs its extents; where they are learned in the run it has none. */
static uir_status bind_outputs(uir_runtime *r) {
    for (uint32_t k = 0; k < r->plan->outputs_count; k++) {
        const uir_plan_port *port = &r->plan->outputs[k];
        uir_plan_list extents = r->plan->tensors[port->tensor].extents;
        int64_t shape[UIR_PLAN_MAX_RANK];
        bool known = true;
        for (uint32_t d = 0; d < extents.count && known; d++)
            known =
                uir_plan_evaluate(r->plan, uir_plan_get_word(r->plan, extents, d), r->values, r->bound, &shape[d]) &&
                shape[d] >= 0;
        UIR_TRY(uir_rt_bind_slack(r, port, known ? shape : NULL, &r->bound_outputs[k]));
    }
    return UIR_STATUS_OK;
}

static uir_status fail_input(uir_runtime *r, uint32_t index, uir_status status) {
    return uir_error(r->diagnostics, status, NULL, "input '%s' has a shape that the model excludes",
                     uir_plan_get_text(r->plan, r->plan->inputs[index].name));
}

static uir_status bind_inputs(uir_runtime *r, bool with_data) {
    const uir_plan *p = r->plan;
    memset(r->bound, 0, p->symbols_count * sizeof *r->bound);
    for (uint32_t b = 0; b < p->blocks_count; b++) uir_rt_forget_block(r, b);
    for (uint32_t i = 0; i < p->outputs_count; i++)
        uir_rt_place_tensor(r, p->outputs[i].tensor, uir_rt_on_host(NULL, 0));
    for (uint32_t i = 0; i < p->inputs_count; i++) {
        const char *name = uir_plan_get_text(p, p->inputs[i].name);
        if (!r->input_set[i] || (with_data && !uir_rt_is_placed(&r->bound_inputs[i].at) && r->input_sizes[i]))
            return uir_error(r->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "input '%s' is not set", name);
        UIR_TRY(epoch_input(r, i));
        uir_status status = uir_rt_learn_shape(r, p->inputs[i].tensor, r->input_shapes + (size_t)i * UIR_PLAN_MAX_RANK);
        if (status != UIR_STATUS_OK) return fail_input(r, i, status);
    }
    return bind_outputs(r);
}

static uir_status check_inputs(uir_runtime *r) {
    char what[160];
    for (uint32_t i = 0; i < r->plan->inputs_count; i++) {
        snprintf(what, sizeof what, "input '%.120s'", uir_plan_get_text(r->plan, r->plan->inputs[i].name));
        UIR_TRY(uir_rt_check_shape(r, r->plan->inputs[i].tensor, r->input_shapes + (size_t)i * UIR_PLAN_MAX_RANK, what,
                                   &r->plan->inputs[i]));
    }
    return UIR_STATUS_OK;
}

/* Drivers may have been given kernels since the last run: those are prepared anew. */
static void see_kernels(uir_runtime *r) {
    bool changed = false;
    for (uint32_t i = 0; i < r->package->format_count; i++) {
        const uir_rt_kernels *kernels = atomic_load_explicit(&r->package->kernels[i], memory_order_acquire);
        changed |= kernels != r->kernels[i];
        r->kernels[i] = kernels;
    }
    for (uint32_t i = 0; changed && i < r->analysis->epochs.count; i++) r->epochs[i].valid = false;
}

typedef struct verify_job {
    uir_runtime *r;
    atomic_uint next, failed;
} verify_job;

static void verify_part(void *context, uint32_t thread) {
    verify_job *job = context;
    (void)thread;
    for (;;) {
        uint32_t i = atomic_fetch_add(&job->next, 1);
        if (i >= job->r->plan->constants_count) return;
        if (uir_rt_verify_constant(job->r->package, i, NULL) != UIR_STATUS_OK) atomic_store(&job->failed, i + 1);
    }
}

/* Once a package. */
static uir_status verify_constants(uir_runtime *r) {
    verify_job job = {.r = r};
    if (atomic_load_explicit(&r->package->all_verified, memory_order_acquire)) return UIR_STATUS_OK;
    if (r->pool)
        uir_rt_pool_run(r->pool, r->threads, verify_part, &job);
    else
        verify_part(&job, 0);
    uint32_t failed = atomic_load(&job.failed);
    if (failed) return uir_rt_verify_constant(r->package, failed - 1, r->diagnostics);
    atomic_store_explicit(&r->package->all_verified, true, memory_order_release);
    return UIR_STATUS_OK;
}

/* Results that the plan wrote elsewhere, to the caller's buffers. */
static uir_status copy_outputs(uir_runtime *r) {
    for (uint32_t k = 0; k < r->plan->outputs_count; k++) {
        uint32_t tensor = r->plan->outputs[k].tensor;
        const uir_rt_binding *given = &r->bound_outputs[k];
        const uir_rt_tensor_info *info = &r->analysis->tensors[tensor];
        if (!r->copied_out[k] || !r->tensors[tensor].bytes || given->at.buffer) continue;
        if (given->strided)
            uir_rt_scatter(given, (uir_dtype)r->plan->tensors[tensor].dtype, uir_rt_rank(r, tensor),
                           uir_rt_shape(r, tensor), info->slack_axis,
                           info->slack == UIR_PLAN_NONE ? 0 : r->values[info->slack], r->tensors[tensor].at.host);
        else
            memmove(given->at.host, r->tensors[tensor].at.host, r->tensors[tensor].bytes);
    }
    return UIR_STATUS_OK;
}

static uir_status run_steps(uir_runtime *r) {
    UIR_TRY(uir_rt_enter_epoch(r, 0));
    UIR_TRY(check_inputs(r));
    return uir_rt_run_block(r, 0);
}

static uir_status run_all(uir_runtime *r) {
    UIR_TRY(verify_constants(r));
    UIR_TRY(uir_rt_ensure_scratch(r)); /* what the last run wanted */
    UIR_TRY(bind_inputs(r, true));
    if (!r->plan->devices_count) {
        UIR_TRY(run_steps(r));
    } else {
        UIR_TRY(uir_rt_queues_begin(r));
        UIR_TRY(uir_rt_queues_end(r, run_steps(r)));
    }
    return copy_outputs(r);
}

static void sum_memory(uir_runtime *r) {
    r->statistics.threads = r->threads;
    for (uint32_t i = 0; i < r->analysis->epochs.count; i++)
        r->statistics.arena_bytes += r->epochs[i].blocks[UIR_PLAN_ON_HOST].capacity;
    for (uint32_t i = 0; i < r->plan->tensors_count; i++)
        if (!r->owned[i].device) r->statistics.arena_bytes += r->owned[i].capacity;
    r->statistics.device_bytes = r->device_peak;
    for (uint32_t t = 0; t < r->threads; t++) r->statistics.scratch_bytes += r->scratch[t].size;
    r->statistics.scratch_bytes += r->host.capacity;
}

/* Whether a run that was asked to stop ended so. A kernel that the device has interrupted fails its queue, which then
 * takes no more requests. */
static bool is_stop(const uir_runtime *r, uir_status status) {
    return status == UIR_STATUS_CANCELLED ||
           (status == UIR_STATUS_DEVICE_FAILED && r->plan->devices_count && !r->queues.is_lost);
}

uir_status uir_runtime_run(uir_runtime *r) {
    uint64_t start = uir_rt_now();
    r->ran = false;
    r->began = start;
    for (uint32_t t = 0; t < r->threads; t++) r->tracks[t].count = 0;
    r->statistics = (uir_runtime_statistics){0};
    memset(r->steps, 0, r->plan->steps_count * sizeof *r->steps);
    for (uint32_t t = 0; t < r->threads; t++) r->scratch[t].failure[0] = 0;
    see_kernels(r);
    if (r->pool) uir_rt_pool_begin(r->pool);
    uir_status status = run_all(r);
    if (r->pool) uir_rt_pool_end(r->pool);
    bool cancelled = __atomic_exchange_n(&r->cancel, false, __ATOMIC_RELAXED);
    if (cancelled && is_stop(r, status)) {
        if (r->diagnostics) uir_diagnostics_clear(r->diagnostics);
        return uir_error(r->diagnostics, UIR_STATUS_CANCELLED, NULL, "the run was cancelled");
    }
    UIR_TRY(status);
    sum_memory(r);
    r->statistics.run_ms = (double)(uir_rt_now() - start) * 1e-6;
    r->ran = true;
    uir_rt_device_save_code(r->package);
    return UIR_STATUS_OK;
}

void uir_runtime_cancel(uir_runtime *r) {
    __atomic_store_n(&r->cancel, true, __ATOMIC_RELAXED);
}

volatile bool *uir_runtime_get_cancel(uir_runtime *r) {
    return &r->cancel;
}

void uir_runtime_forget_cancel(uir_runtime *r) {
    __atomic_store_n(&r->cancel, false, __ATOMIC_RELAXED);
}

uir_status uir_runtime_get_output(const uir_runtime *r, uint32_t index, uir_runtime_output *out_output) {
    if (index >= r->plan->outputs_count || !r->ran)
        return uir_error(r->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         r->ran ? "no such output" : "outputs exist only after a successful run");
    uint32_t tensor = r->plan->outputs[index].tensor;
    *out_output =
        (uir_runtime_output){(uir_dtype)r->plan->tensors[tensor].dtype,
                             uir_rt_rank(r, tensor),
                             uir_rt_shape(r, tensor),
                             r->copied_out[index] ? r->bound_outputs[index].at.host : uir_rt_address(r, tensor),
                             r->tensors[tensor].bytes,
                             r->bound_outputs[index].strided ? r->bound_outputs[index].strides : NULL};
    return UIR_STATUS_OK;
}

static uir_status plan_all(uir_runtime *r) {
    UIR_TRY(bind_inputs(r, false));
    UIR_TRY(uir_rt_enter_epoch(r, 0));
    return check_inputs(r);
}

uir_status uir_runtime_plan(uir_runtime *r, uint64_t *out_bytes) {
    r->ran = false;
    see_kernels(r);
    uir_status status = plan_all(r);
    if (status == UIR_STATUS_CANCELLED && __atomic_exchange_n(&r->cancel, false, __ATOMIC_RELAXED))
        return uir_error(r->diagnostics, status, NULL, "planning the run was cancelled");
    *out_bytes = r->epochs[0].block_sizes[UIR_PLAN_ON_HOST];
    return status;
}

static uir_status find_shape(uir_runtime *r, const int64_t *const *input_shapes, uint32_t index, int64_t *out_dims) {
    const uir_plan *p = r->plan;
    int64_t extent;
    memset(r->bound, 0, p->symbols_count * sizeof *r->bound);
    for (uint32_t i = 0; i < p->inputs_count; i++) {
        uir_status status = uir_rt_learn_shape(r, p->inputs[i].tensor, input_shapes[i]);
        if (status != UIR_STATUS_OK) return fail_input(r, i, status);
    }
    UIR_TRY(uir_rt_check_epoch(r, 0));
    for (uint32_t i = 0; i < p->inputs_count; i++) {
        uir_plan_list extents = p->tensors[p->inputs[i].tensor].extents;
        for (uint32_t d = 0; d < extents.count; d++) {
            bool known = uir_plan_evaluate(p, uir_plan_get_word(p, extents, d), r->values, r->bound, &extent);
            char message[320];
            if (!known || extent == input_shapes[i][d]) continue;
            uir_extent_describe(d, uir_plan_get_text(p, uir_plan_get_word(p, p->inputs[i].dim_names, d)),
                                input_shapes[i][d], extent, message, sizeof message);
            return uir_error(r->diagnostics, UIR_STATUS_BAD_DATA, NULL, "input '%.120s': %s",
                             uir_plan_get_text(p, p->inputs[i].name), message);
        }
    }
    uir_plan_list extents = p->tensors[p->outputs[index].tensor].extents;
    for (uint32_t d = 0; d < extents.count; d++)
        if (!uir_plan_evaluate(p, uir_plan_get_word(p, extents, d), r->values, r->bound, &out_dims[d]))
            out_dims[d] = -1;
    return UIR_STATUS_OK;
}

uir_status uir_runtime_find_shape(uir_runtime *r, const int64_t *const *input_shapes, uint32_t index,
                                  int64_t *out_dims) {
    size_t values_size = ((size_t)r->plan->symbols_count + 1) * sizeof *r->values,
           bound_size = ((size_t)r->plan->symbols_count + 1) * sizeof *r->bound;
    if (index >= r->plan->outputs_count)
        return uir_error(r->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "the model has no output %u; it has %u",
                         index, r->plan->outputs_count);
    int64_t *values = uir_allocate(&r->allocator, values_size);
    bool *bound = uir_allocate(&r->allocator, bound_size);
    uir_status status = UIR_STATUS_OUT_OF_MEMORY;
    if (values && bound) {
        memcpy(values, r->values, r->plan->symbols_count * sizeof *r->values);
        memcpy(bound, r->bound, r->plan->symbols_count * sizeof *r->bound);
        status = find_shape(r, input_shapes, index, out_dims);
        memcpy(r->values, values, r->plan->symbols_count * sizeof *r->values);
        memcpy(r->bound, bound, r->plan->symbols_count * sizeof *r->bound);
    }
    if (values) uir_release(&r->allocator, values, values_size);
    if (bound) uir_release(&r->allocator, bound, bound_size);
    return status;
}

uir_status uir_runtime_count_cost(uir_runtime *r, uir_runtime_cost *out) {
    *out = (uir_runtime_cost){.scratch_bytes = (uint64_t)r->scratch_needed * r->threads};
    if (!r->epochs[0].valid)
        return uir_error(r->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "no run was planned: there is nothing to count");
    memset(r->steps, 0, r->plan->steps_count * sizeof *r->steps);
    for (uint32_t i = 0; i < r->plan->steps_count; i++) {
        const uir_rt_step_info *info = &r->analysis->steps[i];
        if (r->plan->steps[i].kind != UIR_PLAN_STEP_LAUNCH || info->launch_epoch != 0 ||
            r->launches[info->index].invalid || r->launches[info->index].idle)
            continue;
        memset(r->launches[info->index].begins, 0,
               r->launches[info->index].variant->phase_count * sizeof *r->launches[info->index].begins);
        UIR_TRY(uir_rt_launch_count_traffic(r, i, &r->steps[i].traffic, &r->steps[i].flops));
        r->steps[i].planned = true;
        out->dram_bytes += r->steps[i].traffic;
        out->flops += r->steps[i].flops;
        out->launches++;
    }
    return UIR_STATUS_OK;
}

bool uir_runtime_get_launch_cost(const uir_runtime *r, uint32_t index, uir_runtime_launch_cost *out) {
    for (uint32_t i = 0; i < r->plan->steps_count; i++) {
        if (!r->steps[i].planned || index-- > 0) continue;
        const uir_plan_step *s = &r->plan->steps[i];
        *out = (uir_runtime_launch_cost){.kernel = uir_plan_get_text(r->plan, r->plan->kernels[s->target].name),
                                         .node = uir_plan_get_text(r->plan, s->node),
                                         .op = uir_plan_get_text(r->plan, s->op),
                                         .tensor_bytes = r->launches[r->analysis->steps[i].index].bytes,
                                         .dram_bytes = r->steps[i].traffic,
                                         .flops = r->steps[i].flops};
        return true;
    }
    return false;
}

uir_status uir_runtime_count_traffic(uir_runtime *r) {
    uint64_t total = 0;
    if (!r->ran) return uir_error(r->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "no run to count");
    for (uint32_t i = 0; i < r->plan->steps_count; i++) {
        if (r->plan->steps[i].kind != UIR_PLAN_STEP_LAUNCH || !r->steps[i].calls) continue;
        UIR_TRY(uir_rt_launch_count_traffic(r, i, &r->steps[i].traffic, &r->steps[i].flops));
        total += r->steps[i].traffic * r->steps[i].calls;
        r->steps[i].counted = true;
    }
    r->statistics.dram_bytes = total;
    return UIR_STATUS_OK;
}

/* ---- tracing ---- */
void uir_rt_trace(uir_runtime *r, uint32_t thread, uir_rt_slice slice) {
    uir_rt_track *track = &r->tracks[thread];
    if (track->count == track->capacity) {
        size_t capacity = track->capacity ? 2 * track->capacity : 256, size = sizeof *track->slices;
        uir_rt_slice *grown = uir_reallocate(&r->allocator, track->slices, track->capacity * size, capacity * size);
        if (!grown) return;
        track->slices = grown;
        track->capacity = capacity;
    }
    track->slices[track->count++] = slice;
}

/* Of a queue of the device. */
static bool get_queue_slice(const uir_runtime *r, size_t index, uir_runtime_slice *out) {
    static const char *const names[] = {
#define UIR_PLAN_QUEUE_NAME(constant, name) [UIR_PLAN_QUEUE_##constant] = name,
        UIR_PLAN_QUEUES(UIR_PLAN_QUEUE_NAME)
#undef UIR_PLAN_QUEUE_NAME
    };
    const uir_rt_queue_slice *s = uir_rt_times_get(r, index);
    if (!s) return false;
    *out = (uir_runtime_slice){.step = s->request.step,
                               .begin_ms = s->begin_ms - r->queues.times.origin,
                               .end_ms = s->end_ms - r->queues.times.origin,
                               .queue = names[s->request.queue],
                               .bytes = s->request.bytes,
                               .is_modelled = r->package->device.facts->is_simulated};
    return true;
}

bool uir_runtime_get_slice(const uir_runtime *r, size_t index, uir_runtime_slice *out) {
    for (uint32_t t = 0; t < r->threads; t++) {
        const uir_rt_track *track = &r->tracks[t];
        if (index >= track->count) {
            index -= track->count;
            continue;
        }
        const uir_rt_slice *s = &track->slices[index];
        *out = (uir_runtime_slice){.thread = t,
                                   .step = s->step,
                                   .phase = s->phase,
                                   .indices = s->indices,
                                   .begin_ms = (double)(s->begin - r->began) * 1e-6,
                                   .end_ms = (double)(s->end - r->began) * 1e-6};
        return true;
    }
    return get_queue_slice(r, index, out);
}

/* ---- what it says ---- */
uir_runtime_statistics uir_runtime_get_statistics(const uir_runtime *r) {
    return r->statistics;
}

bool uir_runtime_get_step_node(const uir_runtime *r, uint32_t step, uint32_t index, uint32_t *out_node,
                               bool *out_again) {
    if (step >= r->plan->steps_count || index >= r->plan->steps[step].nodes.count) return false;
    uint32_t word = uir_plan_get_word(r->plan, r->plan->steps[step].nodes, index);
    *out_node = word / 2;
    *out_again = word % 2;
    return true;
}

bool uir_runtime_get_step(const uir_runtime *r, uint32_t index, uir_runtime_step *out) {
    if (index >= r->plan->steps_count) return false;
    const uir_plan_step *s = &r->plan->steps[index];
    *out = (uir_runtime_step){.kind = uir_plan_get_step_row(s->kind)->name,
                              .by = "",
                              .kernel = "",
                              .node = uir_plan_get_text(r->plan, s->node),
                              .op = uir_plan_get_text(r->plan, s->op),
                              .remark = uir_plan_get_text(r->plan, s->remark),
                              .calls = r->steps[index].calls,
                              .bus_bytes = uir_rt_count_fallback_bytes(r, index),
                              .ms = (double)r->steps[index].nanoseconds * 1e-6};
    if (uir_plan_is_fallback(r->plan, index)) out->why = uir_plan_get_text(r->plan, r->plan->schedules[index].why);
    if (s->kind == UIR_PLAN_STEP_HOST) {
        out->by = "host";
        out->kernel = uir_plan_get_text(r->plan, s->target);
    }
    if (s->kind == UIR_PLAN_STEP_LAUNCH) {
        const uir_rt_launch *l = &r->launches[r->analysis->steps[index].index];
        out->kernel = uir_plan_get_text(r->plan, r->plan->kernels[s->target].name);
        if (l->format || l->on_device) {
            out->by = l->on_device && !l->by_host ? r->package->device.driver->name : l->format->name;
            if (l->by_host) {
                out->why = "no variant of its kernel fits these sizes on the device";
                out->bus_bytes = l->host_bytes * out->calls;
            }
            out->variant = l->variant_index;
            out->phases = l->variant ? l->variant->phase_count : 0;
            out->tensor_bytes = l->bytes * out->calls;
            out->flops = r->steps[index].counted ? r->steps[index].flops * out->calls : 0;
            out->dram_bytes = (r->steps[index].counted ? r->steps[index].traffic : l->bytes) * out->calls;
        }
    }
    return true;
}
