/* The VM as a format of the runtime: all bytecode of a package is one image, a kernel a range of it. */
#include "backends/vm/bytecode.h"
#include "backends/vm/routines.h"

#include <string.h>

struct uir_loaded_module {
    uir_arena arena;
    uir_allocator allocator;
    const unsigned char *bytes;
    size_t size;
    const char *isa;
    uir_vector(uir_vm_kernel *) kernels;
};

static const char *get_isa(size_t index) {
    const char *name;
    return uir_vm_isa(index, &name) ? name : NULL;
}

static void unload(uir_loaded_module *module) {
    if (!module) return;
    uir_allocator allocator = module->allocator;
    for (uint32_t i = 0; i < module->kernels.count; i++) uir_vm_destroy(module->kernels.data[i]);
    uir_arena_deinit(&module->arena);
    uir_release(&allocator, module, sizeof *module);
}

static uir_status load(const uir_allocator *allocator, const uir_kernel_image *image, uir_diagnostics *diagnostics,
                       uir_loaded_module **out_module) {
    uir_loaded_module *module;
    (void)diagnostics;
    UIR_TRY_ALLOCATE(module, uir_allocate_zeroed(allocator, sizeof *module));
    module->allocator = *allocator;
    uir_arena_init(&module->arena, allocator);
    module->bytes = image->bytes;
    module->size = image->size;
    module->isa = image->isa;
    *out_module = module;
    return UIR_STATUS_OK;
}

/* What the bytecode takes and writes is what the plan gives and lets it write. */
static bool fits(const uir_vm_kernel *k, const uir_kernel_entry *entry) {
    uint32_t dims = 0, tiles = 0, pointers = 0;
    for (uint32_t i = 0; i < k->symbols_count; i++) {
        dims += k->symbols[i].kind == UIR_ISYMBOL_DIM;
        tiles += k->symbols[i].kind == UIR_ISYMBOL_TILE;
    }
    for (uint32_t i = 0; i < k->pointers_count; i++) {
        uint32_t role = k->pointers[i].role;
        if (role == UIR_IPOINTER_LOCAL) continue;
        if (pointers >= entry->pointer_count) return false;
        if ((role == UIR_IPOINTER_OUT || role == UIR_IPOINTER_WORK) && !entry->writable[pointers]) return false;
        pointers++;
    }
    return dims == entry->dim_count && tiles == entry->tile_count && pointers == entry->pointer_count &&
           k->phases_count == entry->phase_count;
}

static uir_status find(uir_loaded_module *module, const uir_kernel_entry *entry, uir_diagnostics *diagnostics,
                       const uir_loaded_kernel **out_kernel) {
    uir_vm_kernel *kernel;
    if (entry->offset > module->size || entry->size > module->size - entry->offset || !entry->size)
        return uir_error_hint(diagnostics, UIR_STATUS_BAD_FILE, NULL, "pack the model again",
                              "the bytecode of a kernel is outside its section");
    UIR_TRY(uir_vm_load(&module->allocator, module->bytes + entry->offset, entry->size, diagnostics, &kernel));
    uir_status status = uir_vector_push(&module->arena, &module->kernels, kernel);
    if (status != UIR_STATUS_OK) {
        uir_vm_destroy(kernel);
        return status;
    }
    if (!fits(kernel, entry))
        return uir_error(diagnostics, UIR_STATUS_BAD_FILE, NULL,
                         "VM kernel @%s: its dims, tiles, pointers or phases do not match the plan's", kernel->name);
    kernel->isa = module->isa;
    *out_kernel = (const uir_loaded_kernel *)(const void *)kernel;
    return UIR_STATUS_OK;
}

static const uir_vm_kernel *kernel_of(const uir_loaded_kernel *kernel) {
    return (const uir_vm_kernel *)(const void *)kernel;
}

static size_t state_size(const uir_loaded_kernel *kernel) {
    return uir_vm_state_size(kernel_of(kernel));
}

static uir_status prepare(uir_kernel_launch *launch, uir_diagnostics *diagnostics) {
    const uir_vm_kernel *kernel = kernel_of(launch->kernel);
    uir_kernel_arguments arguments = {launch->symbols, launch->symbols + launch->dim_count, launch->pointers};
    const uir_vm_options options = {.isa = kernel->isa};
    UIR_TRY(
        uir_vm_prepare(kernel, &arguments, launch->sizes, &options, diagnostics, launch->state, &launch->scratch_size));
    for (uint32_t i = 0; i < launch->phase_count; i++) {
        if (uir_vm_indices(launch->state, i) != launch->indices[i])
            return uir_error(diagnostics, UIR_STATUS_BAD_FILE, NULL,
                             "VM kernel @%s: the parallel axes of phase %u do not match the plan's", kernel->name, i);
    }
    return UIR_STATUS_OK;
}

static uir_status run(const uir_kernel_launch *launch, uint32_t phase, uir_kernel_scratch *scratch, int64_t begin,
                      int64_t end) {
    return uir_vm_run_range(launch->state, launch->pointers, phase, begin, end, launch->cancel, scratch, NULL);
}

static uir_status count_traffic(const uir_kernel_launch *launch, uir_kernel_scratch *scratch, uint64_t *out_bytes,
                                uint64_t *out_flops) {
    return uir_vm_count_traffic(launch->state, scratch, launch->begins, launch->cancel, NULL, out_bytes, out_flops);
}

static const char *find_isa(const char *isa) {
    const vm_routines *routines = uir_vm_routines_find(isa);
    return routines ? routines->isa : NULL;
}

const uir_kernel_format uir_vm_format = {
    .name = "vm",
    .get_isa = get_isa,
    .find_isa = find_isa,
    .load = load,
    .unload = unload,
    .find = find,
    .state_size = state_size,
    .prepare = prepare,
    .run = run,
    .count_traffic = count_traffic,
};
