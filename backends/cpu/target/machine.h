/* The machine that this process runs on. In: /sys and the environment variable UIR_CPU. Out: a variant and sizes of caches. Private to this folder. */
#ifndef UIR_BACKENDS_CPU_TARGET_MACHINE_H
#define UIR_BACKENDS_CPU_TARGET_MACHINE_H

#include "backends/cpu/target/cpu.h"

typedef struct uir_cpu_machine {
    const char *variant;     /* that UIR_CPU names; NULL: the best one that runs here */
    uint64_t cache_bytes[3]; /* first, second, third level; 0: not known */
    bool given[3];           /* by UIR_CPU: that holds for whatever kernels are made for */
} uir_cpu_machine;

/* INVALID_ARGUMENT with a message when the variable holds anything else than the words that there are. */
uir_status uir_cpu_read_machine(uir_diagnostics *diagnostics, uir_cpu_machine *out_machine);

#endif
