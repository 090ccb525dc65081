/* What every driver checks before it accepts a request. */
#include "runtime/driver.h"

#include <stdio.h>

static uir_status refuse(uir_diagnostics *diagnostics, const char *format, ...) UIR_PRINTF(2, 3);
static uir_status refuse(uir_diagnostics *diagnostics, const char *format, ...) {
    char message[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "%s", message);
}

uir_status uir_driver_check_region(const uir_driver_device *device, const uir_region *region, const char *what,
                                   uir_diagnostics *diagnostics) {
    const uir_driver_buffer *buffer = region->buffer;
    unsigned long long offset = region->offset, size = region->size;
    if (!buffer)
        return region->host || !size ? UIR_STATUS_OK
                                     : refuse(diagnostics, "%s has %llu bytes, but no memory", what, size);
    if (buffer->device != device) return refuse(diagnostics, "%s is in memory of another device", what);
    if (offset <= buffer->size && size <= buffer->size - offset) return UIR_STATUS_OK;
    return refuse(diagnostics, "%s has %llu bytes from byte %llu on, in a buffer of %llu bytes", what, size, offset,
                  (unsigned long long)buffer->size);
}

/* Whether rows at a pitch are inside a region. */
static bool holds(const uir_region *region, const uir_driver_copy *copy, uint64_t pitch) {
    uint64_t last, end;
    if (!copy->rows || !copy->row_bytes) return true;
    return !__builtin_mul_overflow(copy->rows - 1, pitch, &last) &&
           !__builtin_add_overflow(last, copy->row_bytes, &end) && end <= region->size;
}

uir_status uir_driver_check_copy(const uir_driver_device *device, const uir_driver_copy *copy,
                                 uir_diagnostics *diagnostics) {
    UIR_TRY(uir_driver_check_region(device, &copy->from, "the source of a copy", diagnostics));
    UIR_TRY(uir_driver_check_region(device, &copy->to, "the destination of a copy", diagnostics));
    if (holds(&copy->from, copy, copy->from_pitch) && holds(&copy->to, copy, copy->to_pitch)) return UIR_STATUS_OK;
    return refuse(diagnostics, "a copy of %llu rows of %llu bytes is larger than its regions of %llu and %llu bytes",
                  (unsigned long long)copy->rows, (unsigned long long)copy->row_bytes,
                  (unsigned long long)copy->from.size, (unsigned long long)copy->to.size);
}

uir_status uir_driver_check_follow(const uir_driver_device *device, const uir_driver_device *other_device,
                                   uint64_t point, uint64_t marked, uir_diagnostics *diagnostics) {
    if (other_device != device) return refuse(diagnostics, "a queue cannot follow a queue of another device");
    if (point <= marked) return UIR_STATUS_OK;
    return refuse(diagnostics, "a queue cannot follow point %llu of a queue that has marked %llu",
                  (unsigned long long)point, (unsigned long long)marked);
}

uir_status uir_driver_check_preparation(const uir_driver_device *device, const uir_driver_launch *launch,
                                        uir_diagnostics *diagnostics) {
    const uir_driver_kernel *k = launch->kernel;
    if (k->device != device) return refuse(diagnostics, "the kernel is on another device");
    if (launch->dim_count == k->dim_count && launch->tile_count == k->tile_count &&
        launch->pointer_count == k->pointer_count && launch->phase_count == k->phase_count)
        return UIR_STATUS_OK;
    return refuse(diagnostics,
                  "the kernel has %u dims, %u tiles, %u pointers and %u phases; the launch has %u, %u, %u and %u",
                  k->dim_count, k->tile_count, k->pointer_count, k->phase_count, launch->dim_count, launch->tile_count,
                  launch->pointer_count, launch->phase_count);
}

/* A region that a kernel accesses. */
static uir_status check_access(const uir_driver_device *device, const uir_driver_facts *facts, const uir_region *region,
                               uint64_t needed, const char *what, uir_diagnostics *diagnostics) {
    UIR_TRY(uir_driver_check_region(device, region, what, diagnostics));
    if (region->size < needed)
        return refuse(diagnostics, "%s has %llu bytes, but the kernel needs %llu", what,
                      (unsigned long long)region->size, (unsigned long long)needed);
    if (!region->buffer && region->size && !facts->shares_memory)
        return refuse(diagnostics, "%s is in the host's memory", what);
    if (region->buffer && region->offset % facts->alignment)
        return refuse(diagnostics, "%s is at byte %llu, not at a multiple of %u", what,
                      (unsigned long long)region->offset, facts->alignment);
    return UIR_STATUS_OK;
}

uir_status uir_driver_check_launch(const uir_driver_device *device, const uir_driver_facts *facts,
                                   const uir_driver_launch *launch, uint32_t phase, uint32_t phase_count,
                                   uir_diagnostics *diagnostics) {
    if (!launch->is_prepared) return refuse(diagnostics, "a launch was not prepared");
    if (phase >= launch->phase_count || phase_count > launch->phase_count - phase ||
        (phase_count > 1 && !facts->joins_phases))
        return refuse(diagnostics, "%u phases from phase %u on cannot be one launch of a kernel of %u phases",
                      phase_count, phase, launch->phase_count);
    for (uint32_t i = 0; i < launch->pointer_count; i++) {
        char what[48];
        snprintf(what, sizeof what, "pointer %u of a kernel", i);
        UIR_TRY(check_access(device, facts, &launch->pointers[i], launch->needed[i], what, diagnostics));
    }
    return check_access(device, facts, &launch->workspace, launch->workspace_size, "the workspace of a kernel",
                        diagnostics);
}
