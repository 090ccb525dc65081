/* The CPU's kernel format: functions that load native code, a shared object, and run its kernels.
 *
 * In: the bytes of a shared object. Its kernels have phases `void <symbol>_phase<k>(const int64_t *symbols, void *const
 * *pointers, void *scratch, int64_t begin, int64_t end, const volatile _Bool *cancel)` (backends/cpu/target/cpu.h).
 * Out: a table of functions that loads the object from memory. Load trusted objects only: their code runs in this
 * process. */
#ifndef UIR_BACKENDS_CPU_DRIVER_DRIVER_H
#define UIR_BACKENDS_CPU_DRIVER_DRIVER_H

#include "runtime/format.h"

extern const uir_kernel_format uir_cpu_format;

#endif
