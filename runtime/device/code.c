/* The code of a package on its device: the image that the device ranks highest, its kernels, and what the driver made
 * of a program, kept for later processes. */
#include "runtime/internal.h"

#include <stdio.h>
#include <string.h>

/* ---- kernels ---- */
static bool has_kernel(void *user, uint32_t variant) {
    return ((uir_rt_device *)user)->kernels[variant] != NULL;
}

static uir_status find_kernel(void *user, uint32_t variant, uint32_t same, const uir_kernel_entry *entry,
                              uir_diagnostics *diagnostics) {
    uir_rt_device *d = user;
    if (d->loaded) UIR_TRY(d->loaded(d->loaded_user, (double)variant / d->variant_count));
    if (same == UIR_PLAN_NONE) return d->driver->find(d->code, entry, diagnostics, &d->kernels[variant]);
    d->kernels[variant] = d->kernels[same];
    return UIR_STATUS_OK;
}

/* The image that the device ranks highest: the bytecode, or a native object. */
static uir_status choose_image(const uir_package *p, uir_diagnostics *diagnostics, uir_driver_image *out_image,
                               uint32_t *out_native) {
    const uir_rt_device *d = &p->device;
    const uir_package_section *code = uir_rt_find_section(p, UIR_PACKAGE_CODE, 0);
    uint32_t best = code ? d->driver->rank(d->device, UIR_PLAN_BYTECODE) : 0;
    *out_native = UIR_PLAN_NONE;
    if (best) *out_image = (uir_driver_image){UIR_PLAN_BYTECODE, code->data, (size_t)code->size};
    for (uint32_t i = 0; i < p->plan.natives_count && p->trusted; i++) {
        const uir_plan_native *n = &p->plan.natives[i];
        const char *format = uir_plan_get_text(&p->plan, n->isa);
        const uir_package_section *s =
            n->section == UIR_PLAN_NONE ? NULL : uir_rt_find_section(p, UIR_PACKAGE_NATIVE, n->section);
        uint32_t rank = s ? d->driver->rank(d->device, format) : 0;
        if (rank <= best) continue;
        best = rank;
        *out_native = i;
        *out_image = (uir_driver_image){format, s->data, (size_t)s->size};
    }
    return best ? UIR_STATUS_OK
                : uir_error_hint(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, "pack the model again for this device",
                                 "the package has no code that device %s can run", d->facts->name);
}

static uir_status check_kernels(const uir_package *p, uir_diagnostics *diagnostics) {
    for (uint32_t k = 0; k < p->plan.kernels_count; k++) {
        for (uint32_t v = 0; v < p->plan.kernels[k].variant_count && p->analysis.kernels[k].on_device; v++)
            if (!p->device.kernels[p->plan.kernels[k].first_variant + v] &&
                uir_plan_variant_runs(&p->plan, p->plan.kernels[k].first_variant + v, UIR_PLAN_ON_DEVICE))
                return uir_error(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL,
                                 "the package's code for device %s lacks kernel @%s", p->device.facts->name,
                                 uir_plan_get_text(&p->plan, p->plan.kernels[k].name));
    }
    return UIR_STATUS_OK;
}

/* ---- loading ---- */
static void unload(uir_package *p) {
    uir_rt_device *d = &p->device;
    if (d->code) d->driver->unload(d->device, d->code);
    d->code = NULL;
    memset(d->kernels, 0, ((size_t)p->plan.variants_count + 1) * sizeof *d->kernels);
}

static uir_status load(uir_package *p, const uir_driver_image *image, uint32_t native, uir_diagnostics *diagnostics) {
    uir_rt_device *d = &p->device;
    UIR_TRY(d->driver->load(d->device, image, diagnostics, &d->code));
    const uir_rt_search what = {find_kernel, has_kernel, d, UIR_PLAN_ON_DEVICE, native, NULL, image->size};
    UIR_TRY(uir_rt_find_kernels(p, &what, diagnostics));
    return check_kernels(p, diagnostics);
}

/* What an earlier process has saved of this program. NOT_FOUND: there is none, or it does not load, which is noted. */
static uir_status load_saved(uir_package *p, const uir_driver_image *program, uint32_t native) {
    uir_rt_device *d = &p->device;
    uir_driver_image saved = {.format = d->facts->saved_format};
    uir_diagnostics said;
    if (!d->keeper.find(d->keeper.user, saved.format, program->bytes, program->size, &saved.bytes, &saved.size) ||
        d->driver->rank(d->device, saved.format) <= d->driver->rank(d->device, program->format))
        return UIR_STATUS_NOT_FOUND;
    uir_diagnostics_init(&said, &p->allocator);
    uir_status status = load(p, &saved, native, &said);
    if (status == UIR_STATUS_OK)
        snprintf(d->origin, sizeof d->origin, "the cache");
    else
        snprintf(d->origin, sizeof d->origin, "its source, since what the cache holds does not load: %s",
                 said.first ? said.first->message : uir_status_text(status));
    uir_diagnostics_deinit(&said);
    if (status == UIR_STATUS_OK) return status;
    unload(p);
    return UIR_STATUS_NOT_FOUND;
}

uir_status uir_rt_device_load_code(uir_package *p, uir_diagnostics *diagnostics) {
    uir_rt_device *d = &p->device;
    uint32_t native;
    d->variant_count = p->plan.variants_count;
    UIR_TRY(choose_image(p, diagnostics, &d->image, &native));
    bool is_program = native != UIR_PLAN_NONE && d->facts->saved_format && d->driver->save;
    if (is_program && d->keeper.find) {
        uir_status status = load_saved(p, &d->image, native);
        if (status != UIR_STATUS_NOT_FOUND) return status;
    }
    UIR_TRY(load(p, &d->image, native, diagnostics));
    if (is_program && !*d->origin) snprintf(d->origin, sizeof d->origin, "its source");
    atomic_store(&d->is_unsaved, is_program && d->keeper.keep);
    return UIR_STATUS_OK;
}

const char *uir_package_get_code_origin(const uir_package *p) {
    return p->device.origin;
}

/* ---- saving ---- */
/* Drivers compile the rest of a program when its kernels are launched first. Whatever is in the way, the next process
 * compiles again. */
void uir_rt_device_save_code(uir_package *p) {
    uir_rt_device *d = &p->device;
    uir_text bytes, format;
    if (!p->plan.devices_count || !atomic_exchange(&d->is_unsaved, false)) return;
    uir_text_init(&bytes, &p->allocator);
    uir_text_init(&format, &p->allocator);
    if (d->driver->save(d->code, NULL, &bytes, &format) == UIR_STATUS_OK)
        d->keeper.keep(d->keeper.user, format.data, d->image.bytes, d->image.size, bytes.data, bytes.length);
    uir_text_deinit(&bytes);
    uir_text_deinit(&format);
}
