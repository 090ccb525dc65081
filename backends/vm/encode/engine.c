/* Runs single kernels as bytecode: encoded, loaded, run. */
#include "backends/source/target.h"
#include "backends/vm/encode/encode.h"
#include "backends/vm/vm.h"

#include <stdio.h>

extern const uir_target_engine uir_vm_engine; /* backends.def names it */

typedef struct bytecode_kernel {
    uir_allocator allocator;
    uir_vm_kernel *kernel;
    const volatile bool *cancel;
    char isa[32]; /* "": the best of this machine */
} bytecode_kernel;

static void close_kernel(void *state) {
    bytecode_kernel *k = state;
    if (!k) return;
    uir_allocator allocator = k->allocator;
    uir_vm_destroy(k->kernel);
    uir_release(&allocator, k, sizeof *k);
}

static uir_status open_kernel(const uir_allocator *allocator, const uir_igraph *igraph, const char *variant,
                              const volatile bool *cancel, uir_diagnostics *diagnostics, void **out_state) {
    bytecode_kernel *k;
    uir_text bytes;
    UIR_TRY_ALLOCATE(k, uir_allocate_zeroed(allocator, sizeof *k));
    *k = (bytecode_kernel){.allocator = *allocator, .cancel = cancel};
    snprintf(k->isa, sizeof k->isa, "%s", variant ? variant : "");
    uir_text_init(&bytes, allocator);
    uir_status status = uir_vm_encode(igraph, diagnostics, &bytes);
    if (status == UIR_STATUS_OK) status = uir_vm_load(allocator, bytes.data, bytes.length, diagnostics, &k->kernel);
    uir_text_deinit(&bytes);
    *out_state = k;
    if (status == UIR_STATUS_OK) return status;
    close_kernel(k);
    return status;
}

static uir_status run_kernel(void *state, const uir_kernel_arguments *arguments, const size_t *sizes, uint32_t threads,
                             uir_diagnostics *diagnostics) {
    const bytecode_kernel *k = state;
    const uir_vm_options options = {.isa = k->isa[0] ? k->isa : NULL, .cancel = k->cancel};
    (void)threads;
    return uir_vm_run(k->kernel, arguments, sizes, &options, diagnostics);
}

static const char *get_variant(size_t index) {
    const char *name;
    return uir_vm_isa(index, &name) ? name : NULL;
}

const uir_target_engine uir_vm_engine = {
    .name = "vm", .open = open_kernel, .close = close_kernel, .run = run_kernel, .get_variant = get_variant};
