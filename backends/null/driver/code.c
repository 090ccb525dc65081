/* The null device: kernels in a format that runs on the host, and their launches. */
#include "backends/null/driver/internal.h"

#include <stdio.h>
#include <string.h>

static size_t round_up(size_t size) {
    return (size + 63) / 64 * 64;
}

static const null_kernel *kernel_of(const uir_driver_kernel *kernel) {
    return (const null_kernel *)(const void *)kernel;
}

/* ---- loading ---- */
static const uir_kernel_format *find_format(const uir_driver_device *device, const char *name) {
    for (uint32_t i = 0; i < device->format_count; i++)
        if (!strcmp(device->formats[i]->name, name)) return device->formats[i];
    return NULL;
}

uint32_t uir_null_rank(const uir_driver_device *device, const char *format) {
    return find_format(device, format) != NULL;
}

uir_status uir_null_load(uir_driver_device *device, const uir_driver_image *image, uir_diagnostics *diagnostics,
                         uir_driver_code **out_code) {
    const uir_kernel_format *format = find_format(device, image->format);
    uir_driver_code *code;
    *out_code = NULL;
    if (!format)
        return uir_error(diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "device null cannot load code of format '%s'",
                         image->format);
    UIR_TRY_ALLOCATE(code, uir_allocate_zeroed(&device->allocator, sizeof *code));
    code->device = device;
    code->format = format;
    uir_kernel_image bytecode = {NULL, image->bytes, image->size};
    uir_status status = format->load(&device->allocator, &bytecode, diagnostics, &code->module);
    if (status != UIR_STATUS_OK) {
        uir_release(&device->allocator, code, sizeof *code);
        return status;
    }
    *out_code = code;
    return UIR_STATUS_OK;
}

void uir_null_unload(uir_driver_device *device, uir_driver_code *code) {
    if (!code) return;
    while (code->kernels) {
        null_kernel *kernel = code->kernels;
        code->kernels = kernel->next;
        uir_release(&device->allocator, kernel, sizeof *kernel);
    }
    code->format->unload(code->module);
    uir_release(&device->allocator, code, sizeof *code);
}

uir_status uir_null_find(uir_driver_code *code, const uir_kernel_entry *entry, uir_diagnostics *diagnostics,
                         const uir_driver_kernel **out_kernel) {
    const uir_loaded_kernel *loaded;
    null_kernel *kernel;
    *out_kernel = NULL;
    UIR_TRY(code->format->find(code->module, entry, diagnostics, &loaded));
    UIR_TRY_ALLOCATE(kernel, uir_allocate_zeroed(&code->device->allocator, sizeof *kernel));
    *kernel = (null_kernel){.base = {.device = code->device,
                                     .dim_count = entry->dim_count,
                                     .tile_count = entry->tile_count,
                                     .pointer_count = entry->pointer_count,
                                     .phase_count = entry->phase_count},
                            .next = code->kernels,
                            .format = code->format,
                            .kernel = loaded};
    code->kernels = kernel;
    *out_kernel = &kernel->base;
    return UIR_STATUS_OK;
}

/* ---- launches ---- */
size_t uir_null_state_size(const uir_driver_kernel *kernel) {
    const null_kernel *k = kernel_of(kernel);
    return round_up(sizeof(null_prepared)) + 2 * round_up(k->base.pointer_count * sizeof(void *)) +
           k->format->state_size(k->kernel);
}

static null_prepared *prepared_of(const uir_driver_launch *launch) {
    return launch->state;
}

static uir_status grow_scratch(uir_driver_device *device, size_t size) {
    uir_kernel_scratch *scratch = &device->scratch;
    if (scratch->wanted > size) size = scratch->wanted;
    if (size <= scratch->size) return UIR_STATUS_OK;
    void *data;
    UIR_TRY_ALLOCATE(data, uir_allocate(&device->allocator, size));
    if (scratch->data) uir_release(&device->allocator, scratch->data, scratch->size);
    scratch->data = data;
    scratch->size = size;
    return UIR_STATUS_OK;
}

uir_status uir_null_prepare(uir_driver_device *device, uir_driver_launch *launch, uir_diagnostics *diagnostics) {
    null_prepared *p = prepared_of(launch);
    launch->is_prepared = false;
    UIR_TRY(uir_driver_check_preparation(device, launch, diagnostics));
    pthread_mutex_lock(&device->lock);
    if (device->most_pointers < launch->pointer_count) device->most_pointers = launch->pointer_count;
    if (device->most_phases < launch->phase_count) device->most_phases = launch->phase_count;
    pthread_mutex_unlock(&device->lock);
    size_t arrays = round_up(launch->pointer_count * sizeof(void *));
    char *at = (char *)launch->state + round_up(sizeof *p);
    p->pointers = (void **)(void *)at;
    p->sizes = (size_t *)(void *)(at + arrays);
    for (uint32_t i = 0; i < launch->pointer_count; i++) p->sizes[i] = (size_t)launch->needed[i];
    p->base = (uir_kernel_launch){.kernel = kernel_of(launch->kernel)->kernel,
                                  .symbols = launch->symbols,
                                  .dim_count = launch->dim_count,
                                  .tile_count = launch->tile_count,
                                  .pointer_count = launch->pointer_count,
                                  .phase_count = launch->phase_count,
                                  .pointers = p->pointers,
                                  .sizes = p->sizes,
                                  .indices = launch->indices,
                                  .state = at + 2 * arrays,
                                  .cancel = launch->cancel};
    UIR_TRY(kernel_of(launch->kernel)->format->prepare(&p->base, diagnostics));
    launch->workspace_size = launch->phase_count > 1 ? NULL_WORKSPACE_BYTES : 0;
    launch->workspace_zeroed = true;
    pthread_mutex_lock(&device->lock);
    uir_status status = grow_scratch(device, p->base.scratch_size);
    pthread_mutex_unlock(&device->lock);
    launch->is_prepared = status == UIR_STATUS_OK;
    return status;
}

void uir_null_retire(uir_driver_device *device, uir_driver_launch *launch) {
    (void)device;
    launch->is_prepared = false;
}

/* ---- executing ---- */
/* The counters of a barrier between phases: they are 0 before, and 0 again after. */
static bool is_zero(const char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        if (bytes[i]) return false;
    return true;
}

uir_status uir_null_execute(uir_driver_device *device, const null_request *request, char *failure, size_t capacity) {
    const uir_driver_launch *launch = request->launch;
    const uir_kernel_format *format = kernel_of(launch->kernel)->format;
    null_prepared *p = prepared_of(launch);
    char *workspace = launch->workspace_size ? uir_null_address(&request->workspace) : NULL;
    uir_status status = grow_scratch(device, p->base.scratch_size);
    if (workspace && !is_zero(workspace, (size_t)launch->workspace_size)) {
        snprintf(failure, capacity, "its workspace is not zero");
        return UIR_STATUS_DEVICE_FAILED;
    }
    for (uint32_t i = 0; i < launch->pointer_count; i++) p->pointers[i] = uir_null_address(&request->pointers[i]);
    if (workspace) memset(workspace, 1, (size_t)launch->workspace_size);
    for (uint32_t i = 0; i < request->phase_count && status == UIR_STATUS_OK; i++) {
        uint32_t phase = request->phase + i;
        int64_t begin = request->begins[i], end = launch->indices[phase];
        device->scratch.failure[0] = 0;
        if (begin < end) status = format->run(&p->base, phase, &device->scratch, begin, end);
    }
    if (workspace) memset(workspace, 0, (size_t)launch->workspace_size);
    if (status == UIR_STATUS_OK) return status;
    snprintf(failure, capacity, "%s", device->scratch.failure[0] ? device->scratch.failure : uir_status_text(status));
    return status;
}

/* As if what the kernel accesses of each region were read or written once. */
uint64_t uir_null_launch_bytes(const null_request *request) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < request->launch->pointer_count; i++) bytes += request->launch->needed[i];
    return bytes;
}
