/* Describes the machine that this process runs on. In: /sys and the environment variable UIR_CPU. Out: a variant and
 * cache sizes. Private to this folder. */
#ifndef UIR_BACKENDS_CPU_TARGET_MACHINE_H
#define UIR_BACKENDS_CPU_TARGET_MACHINE_H

#include "backends/cpu/target/cpu.h"

typedef struct uir_cpu_machine {
    const char *variant;     /* named by UIR_CPU; NULL: the best one that runs here */
    uint64_t cache_bytes[3]; /* first, second, third level; 0: unknown */
    bool given[3];           /* set by UIR_CPU: applies to every variant that kernels are made for */
} uir_cpu_machine;

/* INVALID_ARGUMENT with a message if the variable has an unknown word. */
uir_status uir_cpu_read_machine(uir_diagnostics *diagnostics, uir_cpu_machine *out_machine);

#endif
