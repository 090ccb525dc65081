/* Runs single kernels on a device with memory of its own, for --check.
 *
 * In: a verified iGraph, a row of backends.def with a driver, the text behind the colon of the device's name. Out: runs
 * of the kernel on copies of the caller's buffers in the device's memory. */
#ifndef UIR_COMPILE_DEVICE_KERNEL_H
#define UIR_COMPILE_DEVICE_KERNEL_H

#include "backends/devices/devices.h"
#include "ir/kernel/igraph.h"

typedef struct uir_device_kernel uir_device_kernel;
/* Opens the device and loads the kernel there, as bytecode or as a program of one kernel. UNSUPPORTED if the device
 * runs neither, or if its program is for kernels of another machine; the iGraph must outlive the kernel. */
uir_status uir_device_kernel_open(const uir_allocator *allocator, const uir_device_row *row, const char *parameter,
                                  const uir_igraph *igraph, const volatile bool *cancel, uir_diagnostics *diagnostics,
                                  uir_device_kernel **out_kernel);
void uir_device_kernel_close(uir_device_kernel *kernel); /* NULL is fine */
/* `sizes[i]`: bytes of `arguments->pointers[i]`, which are copied to the device before the run and back after it. */
uir_status uir_device_kernel_run(uir_device_kernel *kernel, const uir_kernel_arguments *arguments, const size_t *sizes,
                                 uir_diagnostics *diagnostics);

#endif
