#include "compile/device_kernel.h"

#include "compile/targets.h"
#include "package/plan.h"

#include <string.h>

enum { POINTS = 1 };

struct uir_device_kernel {
    uir_allocator allocator;
    uir_arena arena;
    const uir_driver *driver;
    const uir_driver_facts *facts;
    uir_driver_device *device;
    uir_driver_code *code;
    uir_driver_queue *queue;
    const uir_igraph *igraph;
    const volatile bool *cancel;
    uir_text bytecode;
    uir_target_object program; /* without symbols: the kernel is bytecode */
    uir_dim scratch;           /* with a program: bytes of scratch of a unit */
    uir_driver_launch launch;
    bool *is_written; /* by pointer in device memory */
    size_t state_size;
};

/* ---- opening ---- */
static uir_status load(uir_device_kernel *k, const uir_driver_image *image, uir_diagnostics *diagnostics) {
    const uir_igraph *g = k->igraph;
    uint32_t count = 0;
    UIR_TRY_ALLOCATE(k->is_written,
                     uir_arena_allocate_array(&k->arena, (size_t)g->pointers.count + 1, sizeof *k->is_written));
    for (uint32_t i = 0; i < g->pointers.count; i++) {
        uint32_t role = g->pointers.data[i].role;
        if (role != UIR_IPOINTER_LOCAL) k->is_written[count++] = role == UIR_IPOINTER_OUT || role == UIR_IPOINTER_WORK;
    }
    k->launch = (uir_driver_launch){.dim_count = uir_igraph_count_symbols(g, UIR_ISYMBOL_DIM),
                                    .tile_count = uir_igraph_count_symbols(g, UIR_ISYMBOL_TILE),
                                    .pointer_count = count,
                                    .phase_count = g->phases.count,
                                    .cancel = k->cancel};
    const uir_kernel_entry entry = {.symbol = k->program.symbols ? k->program.symbols[0] : g->name,
                                    .size = image->size,
                                    .dim_count = k->launch.dim_count,
                                    .tile_count = k->launch.tile_count,
                                    .pointer_count = count,
                                    .phase_count = k->launch.phase_count,
                                    .writable = k->is_written};
    UIR_TRY(k->driver->load(k->device, image, diagnostics, &k->code));
    UIR_TRY(k->driver->find(k->code, &entry, diagnostics, &k->launch.kernel));
    k->state_size = k->driver->state_size(k->launch.kernel);
    UIR_TRY_ALLOCATE(k->launch.state, uir_allocate_zeroed(&k->allocator, k->state_size));
    return k->driver->create_queue(k->device, POINTS, NULL, diagnostics, &k->queue);
}

/* A program of this kernel alone, which the driver compiles. */
static uir_status load_program(uir_device_kernel *k, const uir_target *target, uir_diagnostics *diagnostics) {
    static const uir_target_build_options plain;
    const uir_machine *machine = k->igraph->machine;
    const uir_target_build_input input = {.variant = machine->chip, .igraphs = &k->igraph, .count = 1};
    bool is_other = strcmp(machine->chip, k->facts->chip) != 0;
    if (strcmp(machine->name, target->name) != 0 || (is_other && !k->driver->check_chip))
        return uir_error(diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                         "kernel @%s is for %s:%s, and the device runs kernels for %s:%s", k->igraph->name,
                         machine->name, machine->chip, target->name, k->facts->chip);
    if (is_other) UIR_TRY(k->driver->check_chip(k->device, machine->chip, diagnostics));
    UIR_TRY(target->build(&k->allocator, &plain, &input, diagnostics, &k->program));
    k->scratch = target->scratch_bytes(k->igraph);
    if (!k->scratch.id) return UIR_STATUS_OUT_OF_MEMORY; /* kernels fit their device: sizes overflow nothing */
    return load(k, &(uir_driver_image){target->program, k->program.bytes, k->program.size}, diagnostics);
}

static uir_status open_device(uir_device_kernel *k, const uir_device_row *row, const char *parameter,
                              uir_diagnostics *diagnostics) {
    const uir_target *target = uir_target_of(row);
    const uir_driver_options options = {.allocator = &k->allocator,
                                        .parameter = parameter,
                                        .formats = row->formats,
                                        .format_count = uir_device_count_formats(row)};
    UIR_TRY(k->driver->open(&options, diagnostics, &k->device));
    k->facts = k->driver->get_facts(k->device);
    if (target->program && k->driver->rank(k->device, target->program)) return load_program(k, target, diagnostics);
    if (!target->encode || !k->driver->rank(k->device, UIR_PLAN_BYTECODE))
        return uir_error(diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                         "device %s runs no bytecode: its kernels cannot be run one by one", row->name);
    UIR_TRY(target->encode(k->igraph, diagnostics, &k->bytecode));
    return load(k, &(uir_driver_image){UIR_PLAN_BYTECODE, k->bytecode.data, k->bytecode.length}, diagnostics);
}

uir_status uir_device_kernel_open(const uir_allocator *allocator, const uir_device_row *row, const char *parameter,
                                  const uir_igraph *igraph, const volatile bool *cancel, uir_diagnostics *diagnostics,
                                  uir_device_kernel **out_kernel) {
    uir_device_kernel *k;
    *out_kernel = NULL;
    UIR_TRY_ALLOCATE(k, uir_allocate_zeroed(allocator, sizeof *k));
    *k = (uir_device_kernel){.allocator = *allocator, .driver = row->driver, .igraph = igraph, .cancel = cancel};
    uir_arena_init(&k->arena, allocator);
    uir_text_init(&k->bytecode, allocator);
    uir_status status = open_device(k, row, parameter, diagnostics);
    if (status != UIR_STATUS_OK) {
        uir_device_kernel_close(k);
        return status;
    }
    *out_kernel = k;
    return UIR_STATUS_OK;
}

void uir_device_kernel_close(uir_device_kernel *k) {
    if (!k) return;
    const uir_allocator allocator = k->allocator;
    if (k->queue) k->driver->destroy_queue(k->queue);
    if (k->launch.state) uir_release(&allocator, k->launch.state, k->state_size);
    if (k->code) k->driver->unload(k->device, k->code);
    if (k->device) k->driver->close(k->device);
    uir_text_deinit(&k->bytecode);
    if (k->program.symbols) uir_target_object_deinit(&k->program);
    uir_arena_deinit(&k->arena);
    uir_release(&allocator, k, sizeof *k);
}

/* ---- a run ---- */
typedef struct kernel_run {
    uir_device_kernel *kernel;
    uir_arena arena;
    uir_region *pointers;
    uint64_t *needed;
    int64_t *symbols, *indices, *begins, scratch_size;
    uir_diagnostics *diagnostics;
} kernel_run;

/* The dims and tiles, how many parallel indices each phase has, and the scratch of a unit. */
static uir_status find_sizes(kernel_run *run, const uir_kernel_arguments *arguments) {
    const uir_igraph *g = run->kernel->igraph;
    const uir_driver_launch *l = &run->kernel->launch;
    size_t count = (size_t)uir_dims_symbol_count(g->dims) + 1;
    int64_t *values, extent;
    bool *bound;
    UIR_TRY_ALLOCATE(values, uir_arena_allocate_array(&run->arena, count, sizeof *values));
    UIR_TRY_ALLOCATE(bound, uir_arena_allocate_array(&run->arena, count, sizeof *bound));
    for (uint32_t i = 0; i < l->dim_count; i++) run->symbols[i] = arguments->dim_values[i];
    for (uint32_t i = 0; i < l->tile_count; i++) run->symbols[l->dim_count + i] = arguments->tile_values[i];
    UIR_TRY(uir_igraph_bind(g, arguments->dim_values, arguments->tile_values, values, bound, run->diagnostics));
    for (uint32_t f = 0; f < g->phases.count; f++) {
        const uir_iphase *phase = &g->phases.data[f];
        run->indices[f] = 1;
        for (uint32_t p = 0; p < phase->parallel_count; p++) {
            if (uir_dim_evaluate(g->dims, phase->parallel[p].extent, values, bound, (uint32_t)count - 1, &extent) !=
                UIR_DIM_EVALUATED)
                return uir_error(run->diagnostics, UIR_STATUS_BAD_DATA, NULL,
                                 "phase %u of kernel @%s has no size for these dims", f, g->name);
            run->indices[f] *= extent;
        }
    }
    if (run->kernel->scratch.id && uir_dim_evaluate(g->dims, run->kernel->scratch, values, bound, (uint32_t)count - 1,
                                                    &run->scratch_size) != UIR_DIM_EVALUATED)
        return uir_error(run->diagnostics, UIR_STATUS_BAD_DATA, NULL,
                         "the scratch of kernel @%s has no size for these dims", g->name);
    return UIR_STATUS_OK;
}

static uir_status allocate(kernel_run *run, uint64_t size, uir_region *out_region) {
    const uir_device_kernel *k = run->kernel;
    uir_driver_buffer *buffer;
    char *host;
    UIR_TRY(k->driver->allocate(k->device, UIR_MEMORY_DEVICE, size + k->facts->read_behind + 1, run->diagnostics,
                                &buffer, &host));
    *out_region = (uir_region){.buffer = buffer, .size = size, .host = host};
    return UIR_STATUS_OK;
}

static uir_status move(kernel_run *run, uint32_t pointer, void *memory, bool to_device) {
    const uir_device_kernel *k = run->kernel;
    uint64_t size = run->needed[pointer];
    const uir_region host = {.size = size, .host = memory}, device = run->pointers[pointer];
    const uir_driver_copy copy = {
        to_device ? host : device, to_device ? device : host, 1, size, size, size, UINT32_MAX};
    return size ? k->driver->copy(k->queue, &copy, run->diagnostics) : UIR_STATUS_OK;
}

static uir_status launch_phases(kernel_run *run) {
    const uir_device_kernel *k = run->kernel;
    const uir_driver_launch *l = &k->launch;
    uint32_t joined = k->facts->joins_phases ? l->phase_count : 1;
    if (l->workspace_size && l->workspace_zeroed)
        UIR_TRY(k->driver->fill(k->queue, &l->workspace, 0, run->diagnostics));
    for (uint32_t phase = 0; phase < l->phase_count; phase += joined)
        UIR_TRY(k->driver->launch(k->queue, l, phase, joined, run->diagnostics));
    return UIR_STATUS_OK;
}

static uir_status wait_for_all(const kernel_run *run) {
    const uir_device_kernel *k = run->kernel;
    uir_driver_failure failure;
    uint64_t point;
    UIR_TRY(k->driver->mark(k->queue, run->diagnostics, &point));
    uir_status status = k->driver->wait(k->queue, point, k->cancel, &failure);
    return status == UIR_STATUS_DEVICE_FAILED
               ? uir_error(run->diagnostics, status, NULL, "device %s: %s", k->facts->name, failure.text)
               : status;
}

static uir_status make_arrays(kernel_run *run, const size_t *sizes) {
    const uir_driver_launch *l = &run->kernel->launch;
#define MAKE(field, count)                                                                                             \
    UIR_TRY_ALLOCATE(run->field, uir_arena_allocate_array(&run->arena, (size_t)(count) + 1, sizeof *run->field))
    MAKE(pointers, l->pointer_count);
    MAKE(needed, l->pointer_count);
    MAKE(symbols, l->dim_count + l->tile_count);
    MAKE(indices, l->phase_count);
    MAKE(begins, l->phase_count);
#undef MAKE
    for (uint32_t i = 0; i < l->pointer_count; i++) run->needed[i] = sizes[i];
    return UIR_STATUS_OK;
}

static uir_status run_prepared(kernel_run *run, const uir_kernel_arguments *arguments) {
    uir_device_kernel *k = run->kernel;
    uir_driver_launch *l = &k->launch;
    if (l->workspace_size) UIR_TRY(allocate(run, l->workspace_size, &l->workspace));
    for (uint32_t i = 0; i < l->pointer_count; i++) {
        UIR_TRY(allocate(run, run->needed[i], &run->pointers[i]));
        UIR_TRY(move(run, i, arguments->pointers[i], true));
    }
    UIR_TRY(launch_phases(run));
    for (uint32_t i = 0; i < l->pointer_count; i++)
        if (k->is_written[i]) UIR_TRY(move(run, i, arguments->pointers[i], false));
    return wait_for_all(run);
}

static void release(kernel_run *run, uir_region *region) {
    if (region->buffer) run->kernel->driver->release(run->kernel->device, region->buffer);
    *region = (uir_region){.buffer = NULL};
}

/* A failed queue is given back with its requests, before the memory that they use. */
static void end_run(kernel_run *run, uir_status status) {
    uir_device_kernel *k = run->kernel;
    if (status != UIR_STATUS_OK) {
        k->driver->destroy_queue(k->queue);
        k->queue = NULL;
    }
    if (k->launch.is_prepared) k->driver->retire(k->device, &k->launch);
    for (uint32_t i = 0; run->pointers && i < k->launch.pointer_count; i++) release(run, &run->pointers[i]);
    release(run, &k->launch.workspace);
    uir_arena_deinit(&run->arena);
}

uir_status uir_device_kernel_run(uir_device_kernel *k, const uir_kernel_arguments *arguments, const size_t *sizes,
                                 uir_diagnostics *diagnostics) {
    kernel_run run = {.kernel = k, .diagnostics = diagnostics};
    uir_status status = UIR_STATUS_OK;
    uir_arena_init(&run.arena, &k->allocator);
    if (!k->queue) status = k->driver->create_queue(k->device, POINTS, NULL, diagnostics, &k->queue);
    if (status == UIR_STATUS_OK) status = make_arrays(&run, sizes);
    if (status == UIR_STATUS_OK) status = find_sizes(&run, arguments);
    if (status == UIR_STATUS_OK) {
        k->launch.symbols = run.symbols;
        k->launch.needed = run.needed;
        k->launch.indices = run.indices;
        k->launch.pointers = run.pointers;
        k->launch.begins = run.begins;
        k->launch.scratch_size = run.scratch_size > 0 ? (uint64_t)run.scratch_size : 0;
        status = k->driver->prepare(k->device, &k->launch, diagnostics);
    }
    if (status == UIR_STATUS_OK) status = run_prepared(&run, arguments);
    end_run(&run, status);
    return status;
}
