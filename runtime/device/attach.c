/* A package on its device, and the constants that its kernels read there. */
#include "runtime/internal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- memory ---- */
bool uir_rt_device_allocate(uir_package *p, uir_rt_buffer *buffer) {
    const uir_rt_device *d = &p->device;
    return d->driver->allocate(d->device, UIR_MEMORY_DEVICE, buffer->capacity, NULL, &buffer->device, &buffer->data) ==
           UIR_STATUS_OK;
}

void uir_rt_device_release(uir_package *p, uir_rt_buffer *buffer) {
    p->device.driver->release(p->device.device, buffer->device);
}

/* Any failure is as good as none: ordinary memory takes its place, and a device that is lost refuses the next request.
 */
bool uir_rt_device_lock(uir_runtime *r, uir_rt_buffer *buffer) {
    const uir_rt_device *d = &r->package->device;
    uir_budget *budget = uir_budget_of(&r->allocator);
    if (!r->plan->devices_count || d->facts->shares_memory || d->facts->copies_from_any ||
        uir_budget_get_left(budget) < buffer->capacity || !uir_budget_map(budget, buffer->capacity))
        return false;
    if (d->driver->allocate(d->device, UIR_MEMORY_STAGING, buffer->capacity, NULL, &buffer->locked, &buffer->data) ==
        UIR_STATUS_OK)
        return true;
    buffer->locked = NULL;
    buffer->data = NULL;
    uir_budget_unmap(budget, buffer->capacity);
    return false;
}

void uir_rt_device_unlock(uir_runtime *r, uir_rt_buffer *buffer) {
    r->package->device.driver->release(r->package->device.device, buffer->locked);
    uir_budget_unmap(uir_budget_of(&r->allocator), buffer->capacity);
}

uir_status uir_rt_device_take(uir_runtime *r, uint64_t bytes, const char *purpose) {
    uir_budget *budget = uir_budget_of(&r->allocator);
    uint64_t needed = r->device_used + bytes;
    if (needed > uir_budget_get_limit(budget, UIR_LIMIT_DEVICE_MEMORY))
        return uir_budget_refuse_for(budget, UIR_LIMIT_DEVICE_MEMORY, needed, purpose, r->diagnostics);
    r->device_used = needed;
    if (r->device_peak < needed) r->device_peak = needed;
    return UIR_STATUS_OK;
}

void uir_rt_device_give(uir_runtime *r, uint64_t bytes) {
    r->device_used -= bytes;
}

/* ---- constants ---- */
static void want_constant(uir_package *p, uint32_t constant) {
    uir_rt_device *d = &p->device;
    if (d->offsets[constant] != UINT64_MAX) return;
    d->offsets[constant] = uir_rt_align_to(d->weights_size, d->alignment);
    d->weights_size = d->offsets[constant] + p->plan.constants[constant].size;
}

static uir_status find_constants(uir_package *p) {
    uir_rt_device *d = &p->device;
    UIR_TRY_ALLOCATE(d->offsets,
                     uir_arena_allocate_array(&p->arena, (size_t)p->plan.constants_count + 1, sizeof *d->offsets));
    for (uint32_t i = 0; i < p->plan.constants_count; i++) d->offsets[i] = UINT64_MAX;
    for (uint32_t t = 0; t < p->plan.tensors_count; t++)
        if (p->plan.tensors[t].storage == UIR_PLAN_STORAGE_CONSTANT &&
            uir_plan_get_domain(&p->plan, t) == UIR_PLAN_ON_DEVICE)
            want_constant(p, p->plan.tensors[t].index);
    for (uint32_t i = 0; i < p->plan.steps_count; i++) {
        if (uir_plan_get_queue(&p->plan, i) == UIR_PLAN_QUEUE_HOST || p->plan.steps[i].kind != UIR_PLAN_STEP_LAUNCH)
            continue;
        uir_plan_list constants = p->plan.steps[i].constants;
        for (uint32_t k = 0; k < constants.count; k++) want_constant(p, uir_plan_get_word(&p->plan, constants, k));
    }
    return UIR_STATUS_OK;
}

static const char weights_name[] = "the model's weights";

static uint64_t get_weights_capacity(const uir_rt_device *d) {
    return uir_rt_align(d->weights_size ? d->weights_size : 1);
}

static uir_status check_weights(const uir_package *p, uir_diagnostics *diagnostics) {
    uir_budget *budget = uir_budget_of(&p->allocator);
    uint64_t size = get_weights_capacity(&p->device);
    if (size <= uir_budget_get_limit(budget, UIR_LIMIT_DEVICE_MEMORY)) return UIR_STATUS_OK;
    return uir_budget_refuse_for(budget, UIR_LIMIT_DEVICE_MEMORY, size, weights_name, diagnostics);
}

uir_region uir_rt_constant_region(const uir_package *p, uint32_t constant, uir_plan_domain domain) {
    const uir_plan_constant *c = &p->plan.constants[constant];
    return domain == UIR_PLAN_ON_DEVICE ? uir_rt_in_buffer(&p->device.weights, p->device.offsets[constant], c->size)
                                        : uir_rt_on_host(p->weights + c->offset, (size_t)c->size);
}

/* ---- load and unload ---- */
static uir_status check_chip(const uir_package *p, uir_diagnostics *diagnostics) {
    const uir_rt_device *d = &p->device;
    const char *chip = uir_plan_get_text(&p->plan, p->plan.devices[0].chip);
    if (!*chip || !strcmp(chip, d->facts->chip)) return UIR_STATUS_OK;
    if (d->driver->check_chip) return d->driver->check_chip(d->device, chip, diagnostics);
    return uir_error_hint(
        diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, "name the package's chip, or pack the model for this one",
        "the package is for chip %s of device %s, which has chip %s", chip, d->driver->name, d->facts->chip);
}

uir_status uir_rt_device_load(uir_package *p, uir_diagnostics *diagnostics) {
    uir_rt_device *d = &p->device;
    if (!p->plan.devices_count) return UIR_STATUS_OK;
    if (!d->driver || strcmp(d->driver->name, uir_plan_get_text(&p->plan, p->plan.devices[0].name)))
        return uir_error_hint(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL,
                              "name the package's device, or pack the model for another one",
                              "the package is for device %s, which is not the one that it is opened for",
                              uir_plan_get_text(&p->plan, p->plan.devices[0].name));
    if (d->driver->version != UIR_DRIVER_VERSION)
        return uir_error(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL,
                         "the driver of device %s has version %u; this runtime needs %d",
                         uir_plan_get_text(&p->plan, p->plan.devices[0].name), d->driver->version, UIR_DRIVER_VERSION);
    d->facts = d->driver->get_facts(d->device);
    UIR_TRY(check_chip(p, diagnostics));
    d->alignment = d->facts->alignment > RT_ALIGN ? d->facts->alignment : RT_ALIGN;
    if (d->facts->is_harmful && !p->trusted)
        return uir_error_hint(
            diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, "open the package as trusted if you know who made it",
            "code for device %s can reach memory that is not its own; the package is not trusted", d->facts->name);
    if (pthread_mutex_init(&d->lock, NULL)) return UIR_STATUS_OUT_OF_MEMORY;
    d->has_lock = true;
    UIR_TRY(find_constants(p));
    UIR_TRY(check_weights(p, diagnostics));
    UIR_TRY_ALLOCATE(d->kernels,
                     uir_arena_allocate_array(&p->arena, (size_t)p->plan.variants_count + 1, sizeof *d->kernels));
    return uir_rt_device_load_code(p, diagnostics);
}

void uir_rt_device_unload(uir_package *p) {
    uir_rt_device *d = &p->device;
    if (d->weights.device) uir_rt_device_release(p, &d->weights);
    if (d->code) d->driver->unload(d->device, d->code);
    if (d->has_lock) pthread_mutex_destroy(&d->lock);
}

/* ---- the constants' copy ---- */
/* The pages of the host are not needed any more, in this process and in the system's cache of files; a mapped file
 * gives them again. Bytes of the opener's, as an entry of the compile cache, may be of any memory, whose contents stay.
 */
static void rest_weights(const uir_package *p) {
    const uir_package_section *weights = uir_rt_find_section(p, UIR_PACKAGE_WEIGHTS, 0);
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), file = (uintptr_t)p->file.data;
    if (!weights) return;
    uintptr_t begin = ((uintptr_t)weights->data + page - 1) / page * page,
              end = ((uintptr_t)weights->data + weights->size) / page * page;
    if (begin >= end) return;
    if (p->file.mapped) {
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
        (void)posix_fadvise(p->descriptor, (off_t)(begin - file), (off_t)(end - begin), POSIX_FADV_DONTNEED);
        return;
    }
#ifdef MADV_PAGEOUT
    (void)madvise((void *)begin, end - begin, MADV_PAGEOUT);
#endif
}

/* The constants pass through page-locked memory, whose halves are filled and copied in turn; few bytes need one. */
enum { HALF = 1 << 20, HALVES = 2 };

typedef struct upload {
    uir_runtime *r;
    uir_rt_buffer memory;    /* empty: the copies are from the package's own */
    size_t half, used;       /* bytes of a half, and of the one that is filled */
    uint32_t turn, count;    /* which; of how many */
    uint64_t points[HALVES]; /* behind the copies from each; 0: none */
} upload;

static void begin_upload(upload *u, uint64_t size) {
    u->half = size < HALF ? (size_t)uir_rt_align(size) : HALF;
    u->count = size <= HALF ? 1 : HALVES;
    u->memory.capacity = u->count * u->half;
    if (!uir_rt_device_lock(u->r, &u->memory)) u->memory = (uir_rt_buffer){0};
}

static uir_status turn_over(upload *u) {
    UIR_TRY(uir_rt_mark(u->r, UIR_PLAN_QUEUE_UPLOAD, &u->points[u->turn]));
    u->turn = (u->turn + 1) % u->count;
    u->used = 0;
    return uir_rt_wait(u->r, UIR_PLAN_QUEUE_UPLOAD, u->points[u->turn]);
}

static uir_status copy_constant(upload *u, uir_region to, const unsigned char *from, uint64_t size) {
    while (u->memory.data && size) {
        if (u->used == u->half) UIR_TRY(turn_over(u));
        size_t part = size < u->half - u->used ? (size_t)size : u->half - u->used;
        char *at = u->memory.data + u->turn * u->half + u->used;
        const uir_region staged = uir_rt_on_host(memcpy(at, from, part), part);
        UIR_TRY(uir_rt_copy(u->r, UIR_PLAN_NONE, UIR_PLAN_QUEUE_UPLOAD, &to, &staged, part));
        u->used += (size_t)uir_rt_align(part);
        to.offset += part;
        to.size -= part;
        from += part;
        size -= part;
    }
    const uir_region all = uir_rt_on_host(from, (size_t)size);
    return uir_rt_copy(u->r, UIR_PLAN_NONE, UIR_PLAN_QUEUE_UPLOAD, &to, &all, size);
}

static uir_status end_upload(upload *u, uir_status status) {
    if (status == UIR_STATUS_OK) status = uir_rt_drain(u->r);
    if (status != UIR_STATUS_OK) uir_rt_queues_close(u->r);
    uir_rt_buffer_release(u->r, &u->memory);
    return status;
}

static uir_status copy_weights(uir_runtime *r) {
    uir_rt_device *d = &r->package->device;
    upload u = {.r = r};
    uir_status status = UIR_STATUS_OK;
    d->weights.capacity = (size_t)get_weights_capacity(d);
    if (!d->weights.device && !uir_rt_device_allocate(r->package, &d->weights))
        return uir_error(r->diagnostics, UIR_STATUS_OUT_OF_MEMORY, NULL,
                         "%zu bytes of the device cannot be allocated: %s", d->weights.capacity, weights_name);
    begin_upload(&u, d->weights_size);
    for (uint32_t i = 0; i < r->plan->constants_count && status == UIR_STATUS_OK; i++) {
        const uir_plan_constant *c = &r->plan->constants[i];
        if (d->offsets[i] == UINT64_MAX) continue;
        status = copy_constant(&u, uir_rt_in_buffer(&d->weights, d->offsets[i], c->size),
                               r->package->weights + c->offset, c->size);
    }
    return end_upload(&u, status);
}

uir_status uir_rt_device_need_weights(uir_runtime *r) {
    uir_rt_device *d = &r->package->device;
    uir_status status = UIR_STATUS_OK;
    UIR_TRY(uir_rt_device_take(r, get_weights_capacity(d), weights_name));
    if (atomic_load_explicit(&d->has_weights, memory_order_acquire)) return UIR_STATUS_OK;
    pthread_mutex_lock(&d->lock);
    if (!atomic_load_explicit(&d->has_weights, memory_order_relaxed)) {
        status = copy_weights(r);
        if (status == UIR_STATUS_OK) {
            rest_weights(r->package);
            atomic_store_explicit(&d->has_weights, true, memory_order_release);
        }
    }
    pthread_mutex_unlock(&d->lock);
    if (status != UIR_STATUS_OK) uir_rt_device_give(r, get_weights_capacity(d));
    return status;
}
