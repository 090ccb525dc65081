/* The driver of the CPU: runs kernels compiled to a shared object.
 *
 * In: the bytes of a shared object whose kernels have phases `void <symbol>_phase<k>(const int64_t *symbols, void
 * *const *pointers, void *scratch, int64_t begin, int64_t end, const volatile _Bool *cancel)`. Out: a driver that loads
 * it from memory and runs them. Only for trusted objects: their code runs in this process. */
#ifndef UIR_BACKENDS_CPU_DRIVER_DRIVER_H
#define UIR_BACKENDS_CPU_DRIVER_DRIVER_H

#include "runtime/format.h"

extern const uir_kernel_format uir_cpu_format;

#endif
