/* The null device: its life and its memory. */
#include "backends/null/chips.h"
#include "backends/null/driver/internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- life ---- */
static uir_status count(const uir_driver_options *options, uir_diagnostics *diagnostics, uint32_t *out_count) {
    (void)options;
    (void)diagnostics;
    *out_count = 1;
    return UIR_STATUS_OK;
}

static bool parse_seed(const char *text, uint64_t *out_seed) {
    char *end = NULL;
    if (!text) return true;
    errno = 0;
    *out_seed = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && !errno;
}

/* Each pattern is an unlikely number of every dtype: a NaN, all ones, a large float. */
static void draw_device(uir_driver_device *device, uir_null_chip chip, uint64_t seed) {
    static const unsigned char patterns[] = {0xff, 0x7f, 0xab, 0xfe};
    device->random = seed * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u;
    for (int i = 0; i < 4; i++) (void)null_draw(device);
    device->is_lazy = seed % 4 == 0;
    device->eagerness = (uint32_t)(seed / 2 % 4);
    device->pattern = patterns[null_draw(device) % sizeof patterns];
    snprintf(device->name, sizeof device->name, "null%s%s, seed %llu", chip ? ":" : "",
             chip ? uir_null_chip_name(chip) : "", (unsigned long long)seed);
    device->facts = (uir_driver_facts){.name = device->name,
                                       .chip = uir_null_chip_name(chip),
                                       .memory = 1ull << 40,
                                       .alignment = NULL_ALIGNMENT,
                                       .read_behind = NULL_READ_BEHIND,
                                       .queue_count = 3,
                                       .joins_phases = null_draw(device) % 2,
                                       .is_simulated = true};
}

static uir_status open_device(const uir_driver_options *options, uir_diagnostics *diagnostics,
                              uir_driver_device **out_device) {
    uir_driver_device *device;
    uint64_t seed = 0;
    *out_device = NULL;
    if (options->ordinal)
        return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "device null has number 0 only, not %u",
                         options->ordinal);
    const char *text;
    uir_null_chip chip = uir_null_find_chip(options->parameter, &text);
    if (!parse_seed(text, &seed))
        return uir_error_hint(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                              "use a number, as null:7, behind the chip if there is one, as null:f32:7",
                              "device null: '%s' is not a seed", text);
    UIR_TRY_ALLOCATE(device, uir_allocate_zeroed(options->allocator, sizeof *device));
    device->allocator = *options->allocator;
    device->scratch.allocator = &device->allocator;
    for (uint32_t i = 0; i < options->format_count && device->format_count < NULL_FORMATS; i++)
        if (!options->formats[i]->native) device->formats[device->format_count++] = options->formats[i];
    draw_device(device, chip, seed);
    pthread_mutex_init(&device->lock, NULL);
    *out_device = device;
    return UIR_STATUS_OK;
}

static void close_device(uir_driver_device *device) {
    if (!device) return;
    uir_allocator allocator = device->allocator;
    if (device->scratch.data) uir_release(&allocator, device->scratch.data, device->scratch.size);
    pthread_mutex_destroy(&device->lock);
    uir_release(&allocator, device, sizeof *device);
}

static const uir_driver_facts *get_facts(const uir_driver_device *device) {
    return &device->facts;
}

/* The device executes nothing any more; the first reason is kept. */
static void lose(uir_driver_device *device, const char *format, ...) UIR_PRINTF(2, 3);
static void lose(uir_driver_device *device, const char *format, ...) {
    va_list arguments;
    if (device->is_lost) return;
    device->is_lost = true;
    va_start(arguments, format);
    vsnprintf(device->why_lost, sizeof device->why_lost, format, arguments);
    va_end(arguments);
}

/* ---- memory ---- */
static uir_status make_buffer(uir_driver_device *device, null_storage *storage, uint64_t size,
                              uir_driver_buffer **out_buffer) {
    null_buffer *buffer;
    UIR_TRY_ALLOCATE(buffer, uir_allocate_zeroed(&device->allocator, sizeof *buffer));
    buffer->base = (uir_driver_buffer){device, size};
    buffer->storage = storage;
    storage->buffers++;
    *out_buffer = &buffer->base;
    return UIR_STATUS_OK;
}

static void release_storage(uir_driver_device *device, null_storage *storage) {
    null_storage **link = &device->storages;
    while (*link != storage) link = &(*link)->next;
    *link = storage->next;
    memset(storage->data, device->pattern, (size_t)storage->allocated);
    munmap(storage->handle, (size_t)storage->allocated);
    uir_release(&device->allocator, storage->data, (size_t)storage->allocated);
    uir_release(&device->allocator, storage, sizeof *storage);
}

static uir_status make_storage(uir_driver_device *device, uir_memory_kind kind, uint64_t size,
                               null_storage **out_storage) {
    uint64_t allocated = size + (kind == UIR_MEMORY_STAGING ? 0 : NULL_READ_BEHIND);
    null_storage *storage;
    if (size > SIZE_MAX / 4) return UIR_STATUS_OUT_OF_MEMORY;
    UIR_TRY_ALLOCATE(storage, uir_allocate_zeroed(&device->allocator, sizeof *storage));
    /* Addresses that nobody can follow. */
    void *handle = mmap(NULL, (size_t)allocated, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (handle != MAP_FAILED) storage->data = uir_allocate(&device->allocator, (size_t)allocated);
    if (!storage->data) {
        if (handle != MAP_FAILED) munmap(handle, (size_t)allocated);
        uir_release(&device->allocator, storage, sizeof *storage);
        return UIR_STATUS_OUT_OF_MEMORY;
    }
    memset(storage->data, device->pattern, (size_t)allocated);
    storage->kind = kind;
    storage->size = size;
    storage->allocated = allocated;
    storage->handle = handle;
    storage->next = device->storages;
    device->storages = storage;
    *out_storage = storage;
    return UIR_STATUS_OK;
}

static uir_status allocate(uir_driver_device *device, uir_memory_kind kind, uint64_t size, uir_diagnostics *diagnostics,
                           uir_driver_buffer **out_buffer, char **out_host) {
    null_storage *storage = NULL;
    *out_buffer = NULL;
    *out_host = NULL;
    pthread_mutex_lock(&device->lock);
    uir_status status = make_storage(device, kind, size, &storage);
    if (status == UIR_STATUS_OK) {
        status = make_buffer(device, storage, size, out_buffer);
        if (status != UIR_STATUS_OK) release_storage(device, storage);
    }
    pthread_mutex_unlock(&device->lock);
    if (status != UIR_STATUS_OK)
        return uir_error(diagnostics, status, NULL, "device null cannot allocate %llu bytes", (unsigned long long)size);
    if (kind != UIR_MEMORY_DEVICE) *out_host = storage->data;
    return UIR_STATUS_OK;
}

static void release(uir_driver_device *device, uir_driver_buffer *base) {
    null_buffer *buffer = (null_buffer *)(void *)base;
    if (!buffer) return;
    pthread_mutex_lock(&device->lock);
    uint32_t pending = buffer->pending + (buffer->storage->buffers == 1 ? buffer->storage->pending : 0);
    if (pending) lose(device, "a buffer was released while %u requests used it", pending);
    if (--buffer->storage->buffers == 0) {
        if (buffer->storage->pending) uir_null_forget_locked(device, buffer->storage);
        release_storage(device, buffer->storage);
    }
    uir_release(&device->allocator, buffer, sizeof *buffer);
    pthread_mutex_unlock(&device->lock);
}

static uir_status import(uir_driver_device *device, void *native, uint64_t size, uir_diagnostics *diagnostics,
                         uir_driver_buffer **out_buffer) {
    uir_status status = UIR_STATUS_INVALID_ARGUMENT;
    *out_buffer = NULL;
    pthread_mutex_lock(&device->lock);
    null_storage *storage = device->storages;
    while (storage && (!native || storage->handle != native)) storage = storage->next;
    if (storage && size <= storage->size) status = make_buffer(device, storage, size, out_buffer);
    pthread_mutex_unlock(&device->lock);
    if (status == UIR_STATUS_INVALID_ARGUMENT)
        return uir_error(diagnostics, status, NULL, "device null has no memory of %llu bytes with this handle",
                         (unsigned long long)size);
    return status;
}

static void *get_native(const uir_driver_buffer *buffer) {
    return ((const null_buffer *)(const void *)buffer)->storage->handle;
}

char *uir_null_address(const uir_region *region) {
    return region->buffer ? null_buffer_of(region)->storage->data + region->offset : region->host;
}

null_storage *uir_null_find_locked(const uir_driver_device *device, const uir_region *region) {
    uintptr_t at = (uintptr_t)region->host;
    null_storage *s = region->buffer ? NULL : device->storages;
    while (s && (s->kind != UIR_MEMORY_STAGING || at < (uintptr_t)s->data || at - (uintptr_t)s->data >= s->size))
        s = s->next;
    return s;
}

uir_null_copies uir_null_count_copies(uir_driver_device *device) {
    pthread_mutex_lock(&device->lock);
    const uir_null_copies copies = device->copies;
    pthread_mutex_unlock(&device->lock);
    return copies;
}

static void give_up(uir_driver_device *device) {
    pthread_mutex_lock(&device->lock);
    lose(device, "the device was given up");
    pthread_mutex_unlock(&device->lock);
}

const uir_driver uir_null_driver = {
    .version = UIR_DRIVER_VERSION,
    .name = "null",
    .count = count,
    .open = open_device,
    .close = close_device,
    .get_facts = get_facts,
    .allocate = allocate,
    .release = release,
    .import = import,
    .get_native = get_native,
    .rank = uir_null_rank,
    .load = uir_null_load,
    .unload = uir_null_unload,
    .find = uir_null_find,
    .state_size = uir_null_state_size,
    .prepare = uir_null_prepare,
    .retire = uir_null_retire,
    .create_queue = uir_null_create_queue,
    .destroy_queue = uir_null_destroy_queue,
    .launch = uir_null_launch,
    .copy = uir_null_copy,
    .fill = uir_null_fill,
    .mark = uir_null_mark,
    .follow = uir_null_follow,
    .wait = uir_null_wait,
    .give_up = give_up,
    .get_time = uir_null_get_time,
};
