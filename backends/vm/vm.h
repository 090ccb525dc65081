/* The VM: runs an iGraph as bytecode, with a vectorised routine per instruction. It needs no compiler, is portable, and
 * computes the same bits as native code.
 *
 * In: untrusted bytes (load validates them; encode/ makes them). Out: a kernel that runs on a caller's buffers and
 * accesses nothing beyond them, whatever the bytes. Routines are built for several instruction sets and selected at run
 * time. Kernels whose groups have more than one unit are for other machines and are refused. */
#ifndef UIR_BACKENDS_VM_VM_H
#define UIR_BACKENDS_VM_VM_H

#include "base/text.h"
#include "ir/machine/iops.h"
#include "runtime/format.h"

typedef struct uir_vm_kernel uir_vm_kernel;

/* Decodes and validates; the bytes are not kept. BAD_FILE with a message if anything is invalid. */
uir_status uir_vm_load(const uir_allocator *allocator, const void *bytes, size_t size, uir_diagnostics *diagnostics,
                       uir_vm_kernel **out_kernel);
void uir_vm_destroy(uir_vm_kernel *kernel);

/* Whether these numbers of dims, tiles and pointers suffice to run it: for callers that did not make the bytes. */
bool uir_vm_needs(const uir_vm_kernel *kernel, uint32_t dims, uint32_t tiles, uint32_t pointers);

typedef struct uir_vm_options {
    const char *isa;             /* "generic", "avx2", "avx512"; NULL: the best this machine has */
    uint64_t step_limit;         /* instructions and loop iterations of the whole run; 0: none */
    uint64_t scratch_limit;      /* bytes of on-chip storage; 0: 256 MiB */
    const volatile bool *cancel; /* may be NULL */
} uir_vm_options;

/* Runs all phases. `sizes[i]` is the size in bytes of `arguments->pointers[i]`; a buffer that is too small is an error
 * before anything runs. `options` may be NULL. */
uir_status uir_vm_run(const uir_vm_kernel *kernel, const uir_kernel_arguments *arguments, const size_t *sizes,
                      const uir_vm_options *options, uir_diagnostics *diagnostics);

/* The same in parts, for a caller with its own threads and memory. A state is a kernel bound to sizes. Any number of
 * threads may run ranges of it at once, each with its own scratch. Neither call allocates, unless an instruction needs
 * more than the rest of the scratch: see uir_kernel_scratch. */
size_t uir_vm_state_size(const uir_vm_kernel *kernel);
/* `arguments->pointers` is not read. `out_scratch`: least bytes of scratch per thread. */
uir_status uir_vm_prepare(const uir_vm_kernel *kernel, const uir_kernel_arguments *arguments, const size_t *sizes,
                          const uir_vm_options *options, uir_diagnostics *diagnostics, void *state,
                          size_t *out_scratch);
/* Number of flat indices of a phase of a prepared state. */
int64_t uir_vm_indices(const void *state, uint32_t phase);
uir_status uir_vm_run_range(const void *state, void *const *pointers, uint32_t phase, int64_t begin, int64_t end,
                            const volatile bool *cancel, uir_kernel_scratch *scratch, uir_diagnostics *diagnostics);

/* Bytes of device memory that the slices of all phases touch, and element operations (NULL: not counted), without
 * computing: data indices count as inside. `begins`: the first flat index of each phase; NULL: 0. */
uir_status uir_vm_count_traffic(const void *state, uir_kernel_scratch *scratch, const int64_t *begins,
                                const volatile bool *cancel, uir_diagnostics *diagnostics, uint64_t *out_bytes,
                                uint64_t *out_flops);

/* The format of bytecode for the runtime. */
extern const uir_kernel_format uir_vm_format;

/* Instruction sets of this build that this machine can run; false past the end. */
bool uir_vm_isa(size_t index, const char **out_name);

#endif
