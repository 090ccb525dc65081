/* A launch of the device by a variant of the host: of a kernel that has none of the device's for the sizes of a run.
 * The host waits for all queues, copies the operands, runs the kernel, and copies its results. */
#include "runtime/internal.h"

static bool is_argument(const uir_runtime *r, const uir_rt_launch *l, uint32_t pointer) {
    uint32_t role = r->plan->pointers[l->variant->first_pointer + pointer].role;
    return role == UIR_PLAN_IN || role == UIR_PLAN_OUT;
}

/* The first pointer to the same memory. */
static uint32_t find_first(const uir_runtime *r, const uir_rt_launch *l, uint32_t pointer) {
    const uir_region *pointers = l->on_device->pointers;
    for (uint32_t i = 0; i < pointer && is_argument(r, l, pointer); i++)
        if (is_argument(r, l, i) && uir_rt_is_same_place(&pointers[i], &pointers[pointer])) return i;
    return pointer;
}

/* Bytes of staging; constants are on the host already. */
static size_t find_size(const uir_runtime *r, const uir_rt_launch *l, uint32_t pointer) {
    size_t size = 0;
    if (r->plan->pointers[l->variant->first_pointer + pointer].role == UIR_PLAN_CONST) return 0;
    for (uint32_t i = pointer; i < l->variant->pointer_count; i++)
        if (find_first(r, l, i) == pointer && l->sizes[i] > size) size = l->sizes[i];
    return size;
}

/* Sets the pointers that the host's kernel reads and writes. */
static uir_status place(uir_runtime *r, uint32_t step, const uir_rt_launch *l) {
    uint64_t size = 0;
    uint32_t constant = l->first_constant;
    const uir_plan_step *s = &r->plan->steps[step];
    for (uint32_t i = 0; i < l->variant->pointer_count; i++)
        size = uir_rt_align_to(size, RT_ALIGN) + find_size(r, l, i);
    UIR_TRY(uir_rt_buffer_grow(r, &r->by_host, UIR_PLAN_ON_HOST, size, UIR_PLAN_NONE));
    size = 0;
    for (uint32_t i = 0; i < l->variant->pointer_count; i++) {
        uint32_t first = find_first(r, l, i);
        size = uir_rt_align_to(size, RT_ALIGN);
        l->pointers[i] = first < i ? l->pointers[first] : r->by_host.data + size;
        if (first == i) size += find_size(r, l, i);
        if (r->plan->pointers[l->variant->first_pointer + i].role == UIR_PLAN_CONST)
            l->pointers[i] = uir_rt_constant_region(r->package, uir_plan_get_word(r->plan, s->constants, constant++),
                                                    UIR_PLAN_ON_HOST)
                                 .host;
    }
    return UIR_STATUS_OK;
}

/* Results are fetched too: what the kernel leaves between their rows stays. */
static uir_status copy(uir_runtime *r, uint32_t step, uir_rt_launch *l, bool is_back) {
    for (uint32_t i = 0; i < l->variant->pointer_count; i++) {
        bool is_result = r->plan->pointers[l->variant->first_pointer + i].role == UIR_PLAN_OUT;
        const uir_region *at = &l->on_device->pointers[i];
        if (!is_argument(r, l, i) || !at->buffer || (is_back && !is_result)) continue;
        const uir_region host = uir_rt_on_host(l->pointers[i], l->sizes[i]);
        UIR_TRY(uir_rt_copy(r, step, is_back ? UIR_PLAN_QUEUE_UPLOAD : UIR_PLAN_QUEUE_DOWNLOAD, is_back ? at : &host,
                            is_back ? &host : at, l->sizes[i]));
        l->host_bytes += l->sizes[i];
        r->statistics.copies++;
    }
    return uir_rt_drain(r);
}

uir_status uir_rt_launch_by_host(uir_runtime *r, uint32_t step, uir_rt_launch *l) {
    l->host_bytes = 0;
    UIR_TRY(uir_rt_drain(r));
    UIR_TRY(place(r, step, l));
    UIR_TRY(copy(r, step, l, false));
    UIR_TRY(uir_rt_run_phases(r, step, l));
    return copy(r, step, l, true);
}

uir_status uir_rt_judge_by_host(uir_runtime *r, uint32_t step) {
    const uir_plan_step *s = &r->plan->steps[step];
    const char *kernel = uir_plan_get_text(r->plan, r->plan->kernels[s->target].name);
    if (r->package->no_fallback)
        return uir_rt_fail_step(
            r, step, UIR_STATUS_UNSUPPORTED,
            "no variant of kernel @%s fits these sizes on device %s, and the host may not compute it", kernel,
            r->package->device.facts->name);
    if (r->has_host_launches) return UIR_STATUS_OK;
    r->has_host_launches = true;
    uir_location at = uir_plan_get_location(r->plan, s->node, s->op);
    uir_warning(r->diagnostics, &at,
                "the host computes the group, since no variant of kernel @%s fits these sizes on "
                "device %s",
                kernel, r->package->device.facts->name);
    return UIR_STATUS_OK;
}
