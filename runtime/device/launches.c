/* Launches of a device: kernels bound to sizes, with workspaces that launches of one queue share. */
#include "runtime/internal.h"

uir_status uir_rt_device_launch_create(uir_runtime *r, uir_rt_launch *l, const uir_rt_kernel_info *most) {
    uir_rt_device_launch *d;
    UIR_TRY_ALLOCATE(d, uir_arena_allocate_array(&r->arena, 1, sizeof *d));
    UIR_TRY_ALLOCATE(d->pointers, uir_arena_allocate_array(&r->arena, (size_t)most->pointers + 1, sizeof *d->pointers));
    UIR_TRY_ALLOCATE(d->needed, uir_arena_allocate_array(&r->arena, (size_t)most->pointers + 1, sizeof *d->needed));
    d->base = (uir_driver_launch){.symbols = l->symbols,
                                  .needed = d->needed,
                                  .indices = l->indices,
                                  .pointers = d->pointers,
                                  .begins = l->begins,
                                  .cancel = &r->cancel};
    l->on_device = d;
    return UIR_STATUS_OK;
}

static void retire(uir_runtime *r, uir_rt_device_launch *d) {
    const uir_rt_device *device = &r->package->device;
    if (d->base.is_prepared) device->driver->retire(device->device, &d->base);
}

void uir_rt_device_launch_destroy(uir_runtime *r, uir_rt_launch *l) {
    uir_rt_device_launch *d = l->on_device;
    retire(r, d);
    if (d->base.state) uir_release(&r->allocator, d->base.state, d->state_capacity);
}

uir_status uir_rt_device_prepare(uir_runtime *r, uint32_t step, uir_rt_launch *l) {
    const uir_rt_device *device = &r->package->device;
    const uir_plan_kernel *k = &r->plan->kernels[r->plan->steps[step].target];
    uir_rt_device_launch *d = l->on_device;
    const uir_driver_kernel *kernel = device->kernels[k->first_variant + l->variant_index];
    retire(r, d);
    UIR_TRY(uir_rt_grow_state(r, &d->base.state, &d->state_capacity, device->driver->state_size(kernel)));
    d->base.kernel = kernel;
    d->base.dim_count = l->base.dim_count;
    d->base.tile_count = l->base.tile_count;
    d->base.pointer_count = l->base.pointer_count;
    d->base.phase_count = l->base.phase_count;
    d->base.step = step;
    uir_status status = device->driver->prepare(device->device, &d->base, r->diagnostics);
    if (status != UIR_STATUS_OK)
        return uir_rt_fail_step(r, step, status, "kernel @%s cannot be launched with these sizes",
                                uir_plan_get_text(r->plan, k->name));
    uint64_t *needed = &r->queues.workspace_sizes[d->base.workspace_zeroed];
    if (*needed < d->base.workspace_size) *needed = d->base.workspace_size;
    return UIR_STATUS_OK;
}

static uir_status find_workspace(uir_runtime *r, uir_rt_device_launch *d) {
    bool zeroed = d->base.workspace_zeroed;
    uir_rt_buffer *w = &r->queues.workspaces[zeroed];
    uint64_t needed = r->queues.workspace_sizes[zeroed];
    d->base.workspace = (uir_region){0};
    if (!d->base.workspace_size) return UIR_STATUS_OK;
    if (!w->device || w->capacity < needed) r->queues.is_zero &= !zeroed;
    UIR_TRY(uir_rt_buffer_grow(r, w, UIR_PLAN_ON_DEVICE, needed, UIR_PLAN_NONE));
    d->base.workspace = uir_rt_in_buffer(w, 0, w->capacity);
    if (r->queues.is_zero || !zeroed) return UIR_STATUS_OK;
    UIR_TRY(r->package->device.driver->fill(r->queues.queues[UIR_PLAN_QUEUE_COMPUTE], &d->base.workspace, 0,
                                            r->diagnostics));
    r->queues.is_zero = true;
    return UIR_STATUS_OK;
}

uir_status uir_rt_device_launch_run(uir_runtime *r, uint32_t step, const uir_rt_launch *l) {
    const uir_rt_device *device = &r->package->device;
    uir_driver_queue *queue = r->queues.queues[UIR_PLAN_QUEUE_COMPUTE];
    uir_rt_device_launch *d = l->on_device;
    uint32_t joined = device->facts->joins_phases ? l->variant->phase_count : 1;
    uint64_t point;
    UIR_TRY(find_workspace(r, d));
    UIR_TRY(uir_rt_times_begin(r, UIR_PLAN_QUEUE_COMPUTE, &point));
    for (uint32_t phase = 0; phase < l->variant->phase_count; phase += joined) {
        uir_status status = device->driver->launch(queue, &d->base, phase, joined, r->diagnostics);
        if (status == UIR_STATUS_OK) continue;
        const uir_plan_kernel *k = &r->plan->kernels[r->plan->steps[step].target];
        return uir_rt_fail_step(r, step, status, "kernel @%s was not launched", uir_plan_get_text(r->plan, k->name));
    }
    r->queues.last_step = step;
    uir_rt_note_request(r, UIR_PLAN_QUEUE_COMPUTE);
    return uir_rt_times_end(r, (uir_rt_request){UIR_PLAN_QUEUE_COMPUTE, step, point, 0, 0});
}
