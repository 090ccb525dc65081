/* Texts of iGraphs: parsed, verified, printed, read again; what the VM can encode it loads, and runs to the same bits
 * as the interpreter where that takes few steps. */
#include "tests/fuzz/target.h"
#include "tests/ir/kernel/campaign/harness.h"

#include <string.h>

enum { MOST_STEPS = 1000, MOST_SCRATCH = 1 << 20, MOST_BYTES = 1 << 15, ROUNDS = 2 };

static void run(harness *h, const uir_igraph *igraph, const uir_vm_kernel *vm, uint32_t round) {
    harness_case k;
    char what[200];
    size_t size;
    if (!harness_bind(h, igraph, round, &k)) return;
    size_t bytes = 0;
    for (uint32_t i = 0; i < k.count; i++) bytes += k.size[i];
    uir_vm_options options = {.step_limit = MOST_STEPS, .scratch_limit = MOST_SCRATCH};
    uir_kernel_arguments arguments = harness_arguments(&k);
    harness_reset(&k);
    if (bytes <= MOST_BYTES && uir_vm_run(vm, &arguments, k.size, &options, &h->diagnostics) == UIR_STATUS_OK) {
        void *actual = harness_outputs(h, &k, &size);
        harness_reset(&k);
        arguments = harness_arguments(&k);
        uir_status status = uir_igraph_interpret(igraph, &arguments, NULL, &h->diagnostics);
        fuzz_require(status == UIR_STATUS_OK || status == UIR_STATUS_OUT_OF_MEMORY,
                     "the interpreter refuses what verifier and VM accept");
        if (status == UIR_STATUS_OK) {
            void *expected = harness_outputs(h, &k, &size);
            fuzz_require(!harness_differ(&k, expected, actual, what, sizeof what), "VM and interpreter differ");
            uir_release(&h->allocator, expected, size);
        }
        uir_release(&h->allocator, actual, size);
    }
    harness_free(h, &k);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static harness h;
    if (!h.devices) harness_init(&h, 1);
    h.random = 1;
    uir_igraph *igraph = harness_read(&h, (const char *)data, size, "fuzz");
    fuzz_require(h.failures == 0, "what was printed is read as something else");
    fuzz_require(igraph || h.diagnostics.error_count > 0, "a failure without a message");
    fuzz_count(igraph != NULL);
    if (igraph) {
        uir_text bytes;
        uir_vm_kernel *vm = NULL;
        uir_text_init(&bytes, &h.allocator);
        if (uir_vm_encode(igraph, &h.diagnostics, &bytes) == UIR_STATUS_OK) {
            uir_status status = uir_vm_load(&h.allocator, bytes.data, bytes.length, &h.diagnostics, &vm);
            if (status != UIR_STATUS_OK) harness_say(&h, "load");
            fuzz_require(status == UIR_STATUS_OK || strcmp(igraph->machine->name, "cpu"),
                         "the VM refuses its own bytecode");
            for (uint32_t round = 0; vm && round < ROUNDS; round++) run(&h, igraph, vm, round);
        }
        uir_vm_destroy(vm);
        uir_text_deinit(&bytes);
        uir_igraph_destroy(igraph);
    }
    uir_diagnostics_clear(&h.diagnostics);
    return 0;
}
