/* Devices: counted, opened and described; the device of a model; their memory, and copies between it and the host's. */
#include "api/internal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- names ---- */
static uir_status refuse_name(uir_context *context, uir_diagnostics *diagnostics, const char *name) {
    uir_text names;
    uir_text_init(&names, &context->allocator);
    for (size_t i = 0; uir_device_get(i); i++)
        uir_text_append_format(&names, "%s%s", i ? ", " : "", uir_device_get(i)->name);
    uir_status status = uir_text_status(&names);
    if (status == UIR_STATUS_OK)
        status = uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                           "device '%s' is unknown in this build, which has %s", name ? name : "NULL", names.data);
    uir_text_deinit(&names);
    return status;
}

static uir_driver_options describe_options(const uir_device_row *row, const uir_device_options *options,
                                           const char *parameter, const uir_allocator *allocator) {
    return (uir_driver_options){.allocator = allocator,
                                .ordinal = options->index,
                                .parameter = parameter,
                                .library = options->library,
                                .native = options->native,
                                .formats = row->formats,
                                .format_count = uir_device_count_formats(row)};
}

static uir_status find_row(uir_context *context, uir_diagnostics *diagnostics, const char *name,
                           const uir_device_row **out_row, const char **out_parameter) {
    *out_row = name ? uir_device_find(name, out_parameter) : NULL;
    return *out_row ? UIR_STATUS_OK : refuse_name(context, diagnostics, name);
}

/* ---- life ---- */
/* The host: there is one, which executes the instruction set of its parameter, or else its best. */
static uir_status open_host(uir_device *device, const char *parameter, uint32_t index, uir_diagnostics *diagnostics) {
    enum { ALIGNMENT = 64 }; /* of blocks of an allocator (base/allocator.h) */
    const char *isa = device->row->formats[0]->find_isa(parameter);
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (index)
        return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "device %s has number 0 only, not %u",
                         device->row->name, index);
    if (!isa)
        return uir_error_hint(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "run uir-run --list-devices",
                              "device %s: this machine does not execute '%s'", device->row->name, parameter);
    snprintf(device->description, sizeof device->description, "%s, %s", device->row->name, isa);
    device->facts = (uir_driver_facts){.name = device->description,
                                       .chip = isa,
                                       .memory = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0,
                                       .alignment = ALIGNMENT,
                                       .queue_count = 1,
                                       .shares_memory = true,
                                       .is_harmful = uir_device_is_native(device->row)};
    return UIR_STATUS_OK;
}

static uir_status open_driver(uir_device *device, const char *parameter, const uir_device_options *options,
                              uir_diagnostics *diagnostics) {
    const uir_driver *driver = device->row->driver;
    const uir_driver_options taken = describe_options(device->row, options, parameter, &device->context->allocator);
    UIR_TRY(driver->open(&taken, diagnostics, &device->opened));
    device->driver = driver;
    device->facts = *driver->get_facts(device->opened);
    return UIR_STATUS_OK;
}

static uir_status open_device(uir_context *context, uir_diagnostics *diagnostics, const char *name,
                              const uir_device_options *options, uir_device **out_device) {
    const uir_device_row *row;
    const char *parameter;
    uir_device *device;
    size_t size = strlen(name) + 1;
    UIR_TRY(find_row(context, diagnostics, name, &row, &parameter));
    UIR_TRY_ALLOCATE(device, uir_allocate_zeroed(&context->allocator, sizeof *device + size));
    device->context = context;
    device->row = row;
    device->references = 1;
    device->name = memcpy((char *)(device + 1), name, size);
    bool has_lock = pthread_mutex_init(&device->lock, NULL) == 0;
    uir_status status = !has_lock                    ? UIR_STATUS_OUT_OF_MEMORY
                        : uir_device_has_driver(row) ? open_driver(device, parameter, options, diagnostics)
                                                     : open_host(device, parameter, options->index, diagnostics);
    if (status != UIR_STATUS_OK) {
        if (has_lock) pthread_mutex_destroy(&device->lock);
        uir_release(&context->allocator, device, sizeof *device + size);
        return status;
    }
    *out_device = device;
    return UIR_STATUS_OK;
}

static uir_device *retain_device(uir_device *device) {
    if (device) __atomic_add_fetch(&device->references, 1, __ATOMIC_RELAXED);
    return device;
}

void uir_api_release_device(uir_device *device) {
    if (!device || __atomic_sub_fetch(&device->references, 1, __ATOMIC_ACQ_REL)) return;
    if (device->queue) device->driver->destroy_queue(device->queue);
    if (device->driver) device->driver->close(device->opened);
    pthread_mutex_destroy(&device->lock);
    uir_release(&device->context->allocator, device, sizeof *device + strlen(device->name) + 1);
}

/* ---- the caller's ---- */
uir_status uir_device_count(uir_context *context, const char *name, const uir_device_options *options,
                            uint32_t *out_count) {
    uir_call call;
    uir_device_options taken;
    const uir_device_row *row;
    const char *parameter;
    *out_count = 0;
    uir_call_begin(&call, context);
    uir_status status = UIR_STRUCT_TAKE(&call.diagnostics, uir_device_options, options, &taken);
    if (status == UIR_STATUS_OK) status = find_row(context, &call.diagnostics, name, &row, &parameter);
    if (status == UIR_STATUS_OK && !uir_device_has_driver(row)) {
        *out_count = 1;
    } else if (status == UIR_STATUS_OK) {
        const uir_driver_options driver = describe_options(row, &taken, parameter, &context->allocator);
        status = row->driver->count(&driver, &call.diagnostics, out_count);
    }
    return uir_call_end(&call, status, "counting devices");
}

uir_status uir_device_open(uir_context *context, const char *name, const uir_device_options *options,
                           uir_device **out_device) {
    uir_call call;
    uir_device_options taken;
    *out_device = NULL;
    uir_call_begin(&call, context);
    uir_status status = UIR_STRUCT_TAKE(&call.diagnostics, uir_device_options, options, &taken);
    if (status == UIR_STATUS_OK && !name) status = refuse_name(context, &call.diagnostics, NULL);
    if (status == UIR_STATUS_OK) status = open_device(context, &call.diagnostics, name, &taken, out_device);
    return uir_call_end(&call, status, "opening a device");
}

void uir_device_close(uir_device *device) {
    uir_api_release_device(device);
}

uir_status uir_device_get_info(const uir_device *device, uir_device_info *out_info) {
    uir_call call;
    const uir_driver_facts *facts = &device->facts;
    const uir_device_info info = {.name = device->name,
                                  .description = facts->name,
                                  .chip = facts->chip,
                                  .memory = facts->memory,
                                  .alignment = facts->alignment,
                                  .queue_count = facts->queue_count,
                                  .shares_memory = facts->shares_memory,
                                  .is_simulated = facts->is_simulated,
                                  .is_harmful = facts->is_harmful};
    uir_call_begin(&call, device->context);
    return uir_call_end(&call, UIR_STRUCT_GIVE(&call.diagnostics, uir_device_info, &info, out_info),
                        "describing a device");
}

/* ---- a model's device ---- */
uir_status uir_api_take_opened(uir_model *model, uir_diagnostics *diagnostics, uir_device *opened,
                               const char **inout_device) {
    if (!opened) return UIR_STATUS_OK;
    const char *device = *inout_device;
    if (device && strcmp(device, opened->name) && strcmp(device, opened->row->name))
        return uir_error_hint(
            diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "leave `device` out, or name the same one",
            "the model is to be loaded for device %s, and the opened device is %s", device, opened->name);
    *inout_device = opened->name;
    model->device = retain_device(opened);
    return UIR_STATUS_OK;
}

uir_status uir_api_open_device(uir_model *model, const uir_device_row *row, const char *name,
                               uir_diagnostics *diagnostics, uir_package_options *package) {
    static const uir_device_options none = {.struct_size = sizeof none};
    package->formats = row->formats;
    package->format_count = uir_device_count_formats(row);
    if (!uir_device_has_driver(row)) return UIR_STATUS_OK;
    if (!model->device)
        UIR_TRY(open_device(model->context, diagnostics, name ? name : row->name, &none, &model->device));
    package->no_fallback = model->no_fallback;
    package->driver = model->device->driver;
    package->device = model->device->opened;
    return UIR_STATUS_OK;
}

uir_device *uir_model_get_device(const uir_model *model) {
    bool is_host = model->device && !model->device->driver;
    return model->package || is_host ? model->device : NULL;
}

/* ---- memory ---- */
/* Counted with the other values of the context. */
static uir_status charge(uir_context *context, uint64_t size, uir_diagnostics *diagnostics) {
    uint64_t used = __atomic_add_fetch(&context->device_used, size, __ATOMIC_RELAXED);
    if (used <= uir_budget_get_limit(&context->values, UIR_LIMIT_DEVICE_MEMORY)) return UIR_STATUS_OK;
    __atomic_sub_fetch(&context->device_used, size, __ATOMIC_RELAXED);
    uir_status status = uir_budget_refuse(&context->values, UIR_LIMIT_DEVICE_MEMORY, used, NULL, NULL);
    return uir_budget_tell(&context->values, "a value on a device", status, diagnostics, NULL);
}

static uir_status refuse_size(const uir_device *device, uint64_t size, uir_diagnostics *diagnostics) {
    return uir_error(diagnostics, UIR_STATUS_OUT_OF_MEMORY, NULL, "device %s cannot allocate %llu bytes for a value",
                     device->name, (unsigned long long)size);
}

/* As a tensor of the host: its bytes are those of the context's values. */
static uir_status allocate_on_host(uir_context *context, uir_device_memory *memory, uir_diagnostics *diagnostics) {
    memory->host = uir_allocate(&context->value_allocator, memory->size);
    if (memory->host) return UIR_STATUS_OK;
    uir_status status = uir_budget_tell(&context->values, "a tensor", UIR_STATUS_OUT_OF_MEMORY, diagnostics, NULL);
    return status == UIR_STATUS_OUT_OF_MEMORY ? refuse_size(memory->device, memory->size, diagnostics) : status;
}

static uir_status allocate_on_device(uir_device_memory *memory, uir_diagnostics *diagnostics) {
    uir_device *device = memory->device;
    uint64_t size = memory->size ? memory->size : 1;
    char *host;
    UIR_TRY(charge(device->context, memory->size, diagnostics));
    uir_status status = device->driver->allocate(device->opened, UIR_MEMORY_DEVICE, size, NULL, &memory->buffer, &host);
    if (status == UIR_STATUS_OK)
        memory->charged = memory->size;
    else
        __atomic_sub_fetch(&device->context->device_used, memory->size, __ATOMIC_RELAXED);
    return status == UIR_STATUS_OUT_OF_MEMORY ? refuse_size(device, memory->size, diagnostics) : status;
}

static uir_status fill_memory(uir_device_memory *memory, void *native, uir_diagnostics *diagnostics) {
    uir_device *device = memory->device;
    if (native && device->driver)
        return device->driver->import(device->opened, native, memory->size, diagnostics, &memory->buffer);
    if (device->driver) return allocate_on_device(memory, diagnostics);
    if (!native) return allocate_on_host(device->context, memory, diagnostics);
    memory->host = native;
    return UIR_STATUS_OK;
}

uir_status uir_api_create_memory(uir_device *device, uint64_t size, void *native, uir_diagnostics *diagnostics,
                                 uir_device_memory **out_memory) {
    const uir_allocator *allocator = &device->context->allocator;
    uir_device_memory *memory;
    UIR_TRY_ALLOCATE(memory, uir_allocate_zeroed(allocator, sizeof *memory));
    *memory = (uir_device_memory){.device = device, .size = size, .is_imported = native != NULL, .references = 1};
    uir_status status = fill_memory(memory, native, diagnostics);
    if (status != UIR_STATUS_OK) {
        uir_release(allocator, memory, sizeof *memory);
        return status;
    }
    retain_device(device);
    *out_memory = memory;
    return UIR_STATUS_OK;
}

uir_device_memory *uir_api_retain_memory(uir_device_memory *memory) {
    if (memory) __atomic_add_fetch(&memory->references, 1, __ATOMIC_RELAXED);
    return memory;
}

void uir_api_release_memory(uir_device_memory *memory) {
    if (!memory || __atomic_sub_fetch(&memory->references, 1, __ATOMIC_ACQ_REL)) return;
    uir_device *device = memory->device;
    uir_context *context = device->context;
    if (memory->buffer) device->driver->release(device->opened, memory->buffer);
    if (memory->host && !memory->is_imported) uir_release(&context->value_allocator, memory->host, memory->size);
    __atomic_sub_fetch(&context->device_used, memory->charged, __ATOMIC_RELAXED);
    uir_release(&context->allocator, memory, sizeof *memory);
    uir_api_release_device(device);
}

void *uir_api_get_native(const uir_device_memory *memory) {
    return memory->buffer ? memory->device->driver->get_native(memory->buffer) : memory->host;
}

/* ---- transfers ---- */
/* Held until end_transfer. */
static uir_status begin_transfer(uir_device *device, uir_diagnostics *diagnostics) {
    enum { POINTS = 2 };
    pthread_mutex_lock(&device->lock);
    if (device->queue) return UIR_STATUS_OK;
    return device->driver->create_queue(device->opened, POINTS, NULL, diagnostics, &device->queue);
}

/* Waits for what was submitted; a queue that failed is given back. */
static uir_status end_transfer(uir_device *device, uir_status status, uir_diagnostics *diagnostics) {
    uir_driver_failure failure = {.step = UINT32_MAX};
    uint64_t point = 0;
    if (status == UIR_STATUS_OK) status = device->driver->mark(device->queue, diagnostics, &point);
    if (status == UIR_STATUS_OK) {
        status = device->driver->wait(device->queue, point, NULL, &failure);
        if (status != UIR_STATUS_OK)
            status = uir_error(diagnostics, status, NULL, "device %s: %s", device->name, failure.text);
    }
    if (status != UIR_STATUS_OK && device->queue) {
        device->driver->destroy_queue(device->queue);
        device->queue = NULL;
    }
    pthread_mutex_unlock(&device->lock);
    return status;
}

uir_status uir_api_copy_memory(const uir_device_memory *memory, uint64_t offset, void *data, uint64_t size,
                               bool to_device, uir_diagnostics *diagnostics) {
    uir_device *device = memory->device;
    const uir_region there = {.buffer = memory->buffer, .offset = offset, .size = size},
                     here = {.size = size, .host = data};
    const uir_driver_copy copy = {to_device ? here : there, to_device ? there : here, 1, size, size, size, UINT32_MAX};
    if (!size) return UIR_STATUS_OK;
    if (memory->host) {
        memmove(to_device ? memory->host + offset : data, to_device ? data : memory->host + offset, (size_t)size);
        return UIR_STATUS_OK;
    }
    uir_status status = begin_transfer(device, diagnostics);
    if (status == UIR_STATUS_OK) status = device->driver->copy(device->queue, &copy, diagnostics);
    return end_transfer(device, status, diagnostics);
}

uir_status uir_api_zero_memory(const uir_device_memory *memory, uir_diagnostics *diagnostics) {
    uir_device *device = memory->device;
    const uir_region all = {.buffer = memory->buffer, .size = memory->size};
    if (!memory->size) return UIR_STATUS_OK;
    if (memory->host) {
        memset(memory->host, 0, (size_t)memory->size);
        return UIR_STATUS_OK;
    }
    uir_status status = begin_transfer(device, diagnostics);
    if (status == UIR_STATUS_OK) status = device->driver->fill(device->queue, &all, 0, diagnostics);
    return end_transfer(device, status, diagnostics);
}
