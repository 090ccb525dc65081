/* The VM: an iGraph as bytecode, run by a vectorised routine per instruction. No compiler, portable, the same bits as
 * compiled code.
 *
 * In: a verified iGraph (encode), or bytes from anywhere (load validates them as hostile input). Out: a kernel that
 * runs on a caller's buffers and touches nothing beyond them, whatever the bytes said. Routines are built for several
 * instruction sets and chosen at run time. Kernels whose groups have more than one unit belong to other machines and
 * are refused. */
#ifndef UIR_BACKENDS_VM_VM_H
#define UIR_BACKENDS_VM_VM_H

#include "ir/igraph.h"

typedef struct uir_vm_kernel uir_vm_kernel;

/* Appends the bytecode to `bytes`. UNSUPPORTED when the kernel needs what the VM has not. */
uir_status uir_vm_encode(const uir_igraph *igraph, uir_diagnostics *diagnostics, uir_text *bytes);

/* Decodes and validates. The bytes are not kept. BAD_FILE with a message when anything is out of order. */
uir_status uir_vm_load(const uir_allocator *allocator, const void *bytes, size_t size, uir_diagnostics *diagnostics,
                       uir_vm_kernel **out_kernel);
void uir_vm_destroy(uir_vm_kernel *kernel);

/* Whether so many dim values, tile values and pointers are enough to run it: for callers that did not make the bytes.
 */
bool uir_vm_needs(const uir_vm_kernel *kernel, uint32_t dims, uint32_t tiles, uint32_t pointers);

typedef struct uir_vm_options {
    const char *isa;             /* "generic", "avx2", "avx512"; NULL: the best this machine has */
    uint64_t step_limit;         /* instructions and loop iterations of the whole run; 0: none */
    uint64_t scratch_limit;      /* bytes of on-chip storage; 0: 256 MiB */
    const volatile bool *cancel; /* may be NULL */
} uir_vm_options;

/* Runs all phases. `sizes[i]` is the size in bytes of `arguments->pointers[i]`; too small a buffer is an error before
 * anything runs. `options` may be NULL. */
uir_status uir_vm_run(const uir_vm_kernel *kernel, const uir_kernel_arguments *arguments, const size_t *sizes,
                      const uir_vm_options *options, uir_diagnostics *diagnostics);

/* Instruction sets of this build that this machine can run; false past the end. */
bool uir_vm_isa(size_t index, const char **out_name);

#endif
