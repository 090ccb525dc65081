/* What compile.c and launch.c share: a loaded object. Private to this folder. */
#ifndef UIR_BACKENDS_CPU_TARGET_COMPILE_H
#define UIR_BACKENDS_CPU_TARGET_COMPILE_H

#include "backends/cpu/target/cpu.h"

typedef void (*uir_cpu_phase_function)(const int64_t *symbols, void *const *pointers, void *scratch, int64_t begin,
                                       int64_t end);

struct uir_cpu_module {
    uir_allocator allocator;
    void *handle;
};

/* NULL when the object has no such phase. */
uir_cpu_phase_function uir_cpu_module_find(const uir_cpu_module *module, const char *symbol, uint32_t phase);

#endif
