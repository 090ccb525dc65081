/* The CPU's row of backends.def.
 *
 * In: nothing. Out: the compiler's interface, and the engine that runs single kernels as native code. */
#ifndef UIR_BACKENDS_CPU_TARGET_TARGET_H
#define UIR_BACKENDS_CPU_TARGET_TARGET_H

#include "backends/source/target.h"

extern const uir_target uir_cpu_target;
extern const uir_target_engine uir_cpu_engine;

#endif
