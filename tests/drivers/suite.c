#include "tests/drivers/suite.h"

#include "base/allocator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- kernels ---- */
typedef struct kernel_row {
    const char *name;
    uint32_t dims, tiles, inputs, outputs, works, phases;
} kernel_row;
static const kernel_row rows[DRIVER_KERNELS] = {
#define UIR_DRIVER_KERNEL(name, dims, tiles, inputs, outputs, works, phases)                                           \
    {#name, dims, tiles, inputs, outputs, works, phases},
#include "tests/drivers/kernels.def"
#undef UIR_DRIVER_KERNEL
};

void describe_kernels(uir_kernel_entry *entries) {
    static bool writable[DRIVER_KERNELS][12];
    for (int k = 0; k < DRIVER_KERNELS; k++) {
        const kernel_row *row = &rows[k];
        for (uint32_t i = 0; i < row->outputs + row->works; i++) writable[k][row->inputs + i] = true;
        entries[k].symbol = row->name;
        entries[k].dim_count = row->dims;
        entries[k].tile_count = row->tiles;
        entries[k].pointer_count = row->inputs + row->outputs + row->works;
        entries[k].phase_count = row->phases;
        entries[k].writable = writable[k];
    }
}

static int64_t count_indices(driver_kernel kernel, uint32_t phase, const int64_t *symbols) {
    switch (kernel) {
    case KERNEL_add:
    case KERNEL_twice_and_one:
    case KERNEL_copy_bytes:
        return (symbols[0] + 63) / 64;
    case KERNEL_sum_in_phases:
        return phase == 0 ? (symbols[0] + 63) / 64 : 1;
    case KERNEL_transpose:
        return symbols[1];
    case KERNEL_gather:
        return symbols[0];
    case KERNEL_halves:
        return 2;
    default:
        return 1;
    }
}

/* ---- life ---- */
static void *counted_resize(void *user, void *pointer, size_t old_size, size_t new_size) {
    counted *counts = user;
    uir_allocator system = uir_allocator_system();
    if (pointer && !new_size) memset(pointer, 0xdd, old_size); /* so that a use of it shows */
    void *result = system.resize(system.user, pointer, old_size, new_size);
    if (new_size) __atomic_add_fetch(&counts->allocations, 1, __ATOMIC_RELAXED);
    if (result || !new_size)
        __atomic_add_fetch(&counts->bytes, (int64_t)new_size - (pointer ? (int64_t)old_size : 0), __ATOMIC_RELAXED);
    return result;
}

uir_allocator count_memory(counted *counts) {
    *counts = (counted){0};
    return (uir_allocator){counted_resize, counts};
}

void check_status(bench *b, uir_status status, uir_status expected) {
    uir_status said = b->diagnostics.first ? b->diagnostics.first->status : UIR_STATUS_OK;
    if (status != expected) {
        for (const uir_diagnostic *d = b->diagnostics.first; d; d = d->next) print_error("%s\n", d->message);
        fail_msg("%s, not %s", uir_status_text(status), uir_status_text(expected));
    }
    if (status != UIR_STATUS_OK) { /* the message is of this status */
        assert_non_null(b->diagnostics.first);
        assert_int_equal(said, status);
        assert_true(*b->diagnostics.first->message != 0);
    }
    uir_diagnostics_clear(&b->diagnostics);
}

void bench_begin(bench *b, void **state) {
    *b = (bench){.subject = *state, .random = 0x9e3779b97f4a7c15u};
    b->driver = b->subject->driver;
    for (const char *c = b->subject->parameter; c && *c; c++) b->random = b->random * 31 + (unsigned char)*c;
    b->allocator = count_memory(&b->memory);
    uir_allocator system = uir_allocator_system();
    uir_diagnostics_init(&b->diagnostics, &system);
    uir_driver_options options = {.allocator = &b->allocator,
                                  .parameter = b->subject->parameter,
                                  .library = b->subject->library,
                                  .formats = b->subject->formats,
                                  .format_count = b->subject->format_count};
    check_ok(b, b->driver->open(&options, &b->diagnostics, &b->device));
    b->facts = b->driver->get_facts(b->device);
    check_ok(b, b->driver->load(b->device, &b->subject->image, &b->diagnostics, &b->code));
    for (int k = 0; k < DRIVER_KERNELS; k++)
        check_ok(b, b->driver->find(b->code, &b->subject->entries[k], &b->diagnostics, &b->kernels[k]));
    for (uint32_t q = 0; q < 3; q++)
        check_ok(b, b->driver->create_queue(b->device, 8, NULL, &b->diagnostics, &b->queues[q]));
}

void bench_end(bench *b) {
    for (uint32_t q = 0; q < 3; q++) b->driver->destroy_queue(b->queues[q]);
    for (uint32_t i = 0; i < b->buffer_count; i++) b->driver->release(b->device, b->buffers[i]);
    b->driver->unload(b->device, b->code);
    b->driver->close(b->device);
    uir_diagnostics_deinit(&b->diagnostics);
    assert_int_equal(b->memory.bytes, 0);
}

uint64_t draw(bench *b, uint64_t limit) {
    b->random ^= b->random >> 12;
    b->random ^= b->random << 25;
    b->random ^= b->random >> 27;
    return (b->random * 0x2545f4914f6cdd1du >> 16) % limit;
}

/* ---- memory ---- */
uir_region allocate(bench *b, uint64_t size) {
    uir_driver_buffer *buffer;
    char *host;
    assert_true(b->buffer_count < sizeof b->buffers / sizeof *b->buffers);
    check_ok(b, b->driver->allocate(b->device, UIR_MEMORY_DEVICE, size, &b->diagnostics, &buffer, &host));
    b->buffers[b->buffer_count++] = buffer;
    return (uir_region){.buffer = buffer, .size = size, .host = host};
}

uir_region part_of(uir_region region, uint64_t offset, uint64_t size) {
    assert_true(offset + size <= region.size);
    return (uir_region){.buffer = region.buffer,
                        .offset = region.offset + offset,
                        .size = size,
                        .host = region.host ? region.host + offset : NULL};
}

uir_region host_region(const void *data, uint64_t size) {
    return (uir_region){.size = size, .host = (char *)(uintptr_t)data};
}

void copy(bench *b, uint32_t queue, uir_region to, uir_region from) {
    uint64_t size = to.size < from.size ? to.size : from.size;
    uir_driver_copy request = {
        .from = from, .to = to, .rows = 1, .row_bytes = size, .from_pitch = size, .to_pitch = size};
    check_ok(b, b->driver->copy(b->queues[queue], &request, &b->diagnostics));
}

void put(bench *b, uint32_t queue, uir_region to, const void *data) {
    copy(b, queue, to, host_region(data, to.size));
}

void get(bench *b, uint32_t queue, uir_region from, void *data) {
    copy(b, queue, host_region(data, from.size), from);
    finish(b, queue);
}

uint64_t mark(bench *b, uint32_t queue) {
    uint64_t point;
    check_ok(b, b->driver->mark(b->queues[queue], &b->diagnostics, &point));
    return point;
}

void follow(bench *b, uint32_t queue, uint32_t other, uint64_t point) {
    check_ok(b, b->driver->follow(b->queues[queue], b->queues[other], point, &b->diagnostics));
}

void finish(bench *b, uint32_t queue) {
    uir_driver_failure failure;
    uir_status status = b->driver->wait(b->queues[queue], mark(b, queue), NULL, &failure);
    if (status != UIR_STATUS_OK) fail_msg("%s: %s", uir_status_text(status), failure.text);
}

/* ---- launches ---- */
void call_prepare(bench *b, call *c) {
    const kernel_row *row = &rows[c->kernel];
    for (uint32_t i = 0; i < c->launch.pointer_count; i++) c->needed[i] = c->pointers[i].size;
    for (uint32_t p = 0; p < row->phases; p++) c->indices[p] = count_indices(c->kernel, p, c->symbols);
    check_ok(b, b->driver->prepare(b->device, &c->launch, &b->diagnostics));
    if (!c->launch.workspace_size || c->launch.workspace.size >= c->launch.workspace_size) return;
    c->launch.workspace = allocate(b, c->launch.workspace_size);
    unsigned char value = c->launch.workspace_zeroed ? 0 : 0xee;
    check_ok(b, b->driver->fill(b->queues[0], &c->launch.workspace, value, &b->diagnostics));
    finish(b, 0);
}

void call_begin(bench *b, call *c, driver_kernel kernel, const int64_t *symbols, const uir_region *pointers) {
    const kernel_row *row = &rows[kernel];
    *c = (call){.kernel = kernel};
    c->launch = (uir_driver_launch){.kernel = b->kernels[kernel],
                                    .symbols = c->symbols,
                                    .dim_count = row->dims,
                                    .tile_count = row->tiles,
                                    .pointer_count = row->inputs + row->outputs + row->works,
                                    .phase_count = row->phases,
                                    .needed = c->needed,
                                    .pointers = c->pointers,
                                    .indices = c->indices,
                                    .begins = c->begins,
                                    .step = 7};
    memcpy(c->symbols, symbols, (row->dims + row->tiles) * sizeof *symbols);
    memcpy(c->pointers, pointers, c->launch.pointer_count * sizeof *pointers);
    c->state_size = b->driver->state_size(c->launch.kernel);
    c->launch.state = uir_allocate_zeroed(&b->allocator, c->state_size);
    assert_non_null(c->launch.state);
    call_prepare(b, c);
}

void call_submit(bench *b, uint32_t queue, call *c) {
    uint32_t at_once = b->facts->joins_phases ? c->launch.phase_count : 1;
    for (uint32_t p = 0; p < c->launch.phase_count; p += at_once)
        check_ok(b, b->driver->launch(b->queues[queue], &c->launch, p, at_once, &b->diagnostics));
}

void call_end(bench *b, call *c) {
    b->driver->retire(b->device, &c->launch);
    uir_release(&b->allocator, c->launch.state, c->state_size);
}

void call_once(bench *b, uint32_t queue, driver_kernel kernel, const int64_t *symbols, const uir_region *pointers) {
    call c;
    call_begin(b, &c, kernel, symbols, pointers);
    call_submit(b, queue, &c);
    finish(b, queue);
    call_end(b, &c);
}

/* ---- all of it ---- */
static int run_area(driver_subject *subject, const char *area, const struct CMUnitTest *tests, size_t count) {
    struct CMUnitTest with[64];
    char name[160];
    assert_true(count <= sizeof with / sizeof *with);
    for (size_t i = 0; i < count; i++) {
        with[i] = tests[i];
        with[i].initial_state = subject;
    }
    snprintf(name, sizeof name, "%s%s%s: %s", subject->driver->name, subject->parameter ? ":" : "",
             subject->parameter ? subject->parameter : "", area);
    return _cmocka_run_group_tests(name, with, count, NULL, NULL);
}

int run_driver_suite(driver_subject *subject) {
    return run_area(subject, "open", open_tests, open_test_count) +
           run_area(subject, "memory", memory_tests, memory_test_count) +
           run_area(subject, "order", order_tests, order_test_count) +
           run_area(subject, "launches", launch_tests, launch_test_count) +
           run_area(subject, "faults", fault_tests, fault_test_count) +
           run_area(subject, "random", random_tests, random_test_count);
}
