/* The VM: an iGraph as bytecode, run by a vectorised routine per instruction. No compiler, portable, the same bits as
 * compiled code.
 *
 * In: bytes from anywhere (load validates them as hostile input; encode/ makes them). Out: a kernel that
 * runs on a caller's buffers and touches nothing beyond them, whatever the bytes said. Routines are built for several
 * instruction sets and chosen at run time. Kernels whose groups have more than one unit belong to other machines and
 * are refused. */
#ifndef UIR_BACKENDS_VM_VM_H
#define UIR_BACKENDS_VM_VM_H

#include "base/text.h"
#include "ir/machine/iops.h"
#include "runtime/device.h"

typedef struct uir_vm_kernel uir_vm_kernel;

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

/* The same in parts, for a caller with threads and memory of its own. A state holds a kernel bound to sizes; any number
 * of threads may run ranges of it at once, each with a scratch. Neither call allocates, unless an instruction needs
 * more than the scratch has left over: see uir_driver_scratch. */
size_t uir_vm_state_size(const uir_vm_kernel *kernel);
/* `arguments->pointers` is not read. `out_scratch`: bytes that a thread needs at least. */
uir_status uir_vm_prepare(const uir_vm_kernel *kernel, const uir_kernel_arguments *arguments, const size_t *sizes,
                          const uir_vm_options *options, uir_diagnostics *diagnostics, void *state,
                          size_t *out_scratch);
/* Of a prepared state: how many flat indices the phase has. */
int64_t uir_vm_indices(const void *state, uint32_t phase);
uir_status uir_vm_run_range(const void *state, void *const *pointers, uint32_t phase, int64_t begin, int64_t end,
                            const volatile bool *cancel, uir_driver_scratch *scratch, uir_diagnostics *diagnostics);

/* Bytes of device memory that all phases' slices touch and operations on elements that they do (NULL: not asked),
 * nothing computed: what an index picks is taken to be inside. `begins`: the first flat index of each phase; NULL: 0.
 */
uir_status uir_vm_count_traffic(const void *state, uir_driver_scratch *scratch, const int64_t *begins,
                                const volatile bool *cancel, uir_diagnostics *diagnostics, uint64_t *out_bytes,
                                uint64_t *out_flops);

/* The driver of bytecode for the runtime. */
extern const uir_driver uir_vm_driver;

/* Instruction sets of this build that this machine can run; false past the end. */
bool uir_vm_isa(size_t index, const char **out_name);

#endif
