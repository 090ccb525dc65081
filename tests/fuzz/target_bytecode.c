/* The VM's bytecode, as hostile input: loaded, and run on small buffers. The last bytes of an input are the kernel's
 * sizes. */
#include "backends/vm/vm.h"
#include "tests/fuzz/target.h"

#include <stdlib.h>
#include <string.h>

enum { SYMBOLS = 32, POINTERS = 64, TRAILER = 16, MOST_STEPS = 20000, MOST_SCRATCH = 1 << 22 };

static void run(fuzz_case *c, const uir_vm_kernel *kernel, const uint8_t *trailer) {
    int64_t dims[SYMBOLS], tiles[SYMBOLS];
    void *pointers[POINTERS];
    size_t sizes[POINTERS];
    uir_kernel_arguments arguments = {dims, tiles, pointers};
    uir_vm_options options = {.step_limit = MOST_STEPS, .scratch_limit = MOST_SCRATCH, .cancel = &c->cancel};
    for (uint32_t i = 0; i < SYMBOLS; i++) {
        dims[i] = trailer[i % (TRAILER / 2)];
        tiles[i] = trailer[TRAILER / 2 + i % (TRAILER / 2)];
    }
    /* Blocks of their own sizes: a sanitizer sees what leaves them. */
    for (uint32_t i = 0; i < POINTERS; i++) {
        sizes[i] = (size_t)1024 << i % 4;
        pointers[i] = uir_allocate(&c->allocator, sizes[i]);
        if (pointers[i])
            memset(pointers[i], 0x3c, sizes[i]);
        else
            sizes[i] = 0;
    }
    fuzz_require_told(c, uir_vm_run(kernel, &arguments, sizes, &options, &c->diagnostics));
    for (uint32_t i = 0; i < POINTERS; i++)
        if (pointers[i]) uir_release(&c->allocator, pointers[i], sizes[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_case c;
    uir_vm_kernel *kernel = NULL;
    if (size < TRAILER) return 0;
    fuzz_begin(&c);
    uir_status status = uir_vm_load(&c.allocator, data, size - TRAILER, &c.diagnostics, &kernel);
    fuzz_require_told(&c, status);
    if (status == UIR_STATUS_OK && uir_vm_needs(kernel, SYMBOLS, SYMBOLS, POINTERS))
        run(&c, kernel, data + size - TRAILER);
    fuzz_count(kernel != NULL);
    uir_vm_destroy(kernel);
    fuzz_end(&c);
    return 0;
}
