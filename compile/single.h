/* Runs single kernels as runs of packages do: by a kernel format on the host, or by the driver of a device with memory
 * of its own.
 *
 * In: a verified iGraph, and its kernel in a module that a format has loaded, or an image for a device. Out: runs
 * on the caller's buffers. */
#ifndef UIR_COMPILE_SINGLE_H
#define UIR_COMPILE_SINGLE_H

#include "backends/devices/devices.h"
#include "ir/kernel/igraph.h"

/* What is to run. */
typedef struct uir_single_kernel {
    const uir_igraph *igraph;    /* outlives the runs */
    const char *symbol;          /* of native code or a program: phase k is <symbol>_phase<k>; NULL: bytecode */
    uir_dim scratch;             /* with a symbol: bytes that a thread or unit needs, over the kernel's symbols */
    size_t size;                 /* of the image, where it is bytecode or a program */
    const volatile bool *cancel; /* polled in runs: CANCELLED; may be NULL */
} uir_single_kernel;

typedef struct uir_single uir_single;
/* The module outlives it. NOT_FOUND if the module lacks the kernel. */
uir_status uir_single_find(const uir_allocator *allocator, const uir_single_kernel *kernel,
                           const uir_kernel_format *format, uir_loaded_module *module, uir_diagnostics *diagnostics,
                           uir_single **out_single);
/* Opens the device and loads the image there, which outlives it: bytecode, or a program of this kernel. UNSUPPORTED if
 * the device runs no such image, or no kernels for that chip. */
uir_status uir_single_open(const uir_allocator *allocator, const uir_single_kernel *kernel, const uir_device_row *row,
                           const char *parameter, const uir_driver_image *image, uir_diagnostics *diagnostics,
                           uir_single **out_single);
void uir_single_destroy(uir_single *single); /* NULL is fine */

/* Prepares runs on `arguments->pointers`, of `sizes[i]` bytes. Threads share each phase's indices; 0 and 1: the
 * caller's alone. A device executes on copies; DEVICE_FAILED for a kernel that has written beside them.
 * INVALID_ARGUMENT for sizes or buffers that do not fit the kernel. */
uir_status uir_single_bind(uir_single *single, const uir_kernel_arguments *arguments, const size_t *sizes,
                           uint32_t threads, uir_diagnostics *diagnostics);
/* Runs all phases of a bound kernel. On the host, one thread allocates nothing. */
uir_status uir_single_run(uir_single *single, uir_diagnostics *diagnostics);
/* Both; keeps no memory for the sizes. */
uir_status uir_single_run_once(uir_single *single, const uir_kernel_arguments *arguments, const size_t *sizes,
                               uint32_t threads, uir_diagnostics *diagnostics);

#endif
