/* The CPU's row of backends.def.
 *
 * In: nothing. Out: the compiler's interface. */
#ifndef UIR_BACKENDS_CPU_TARGET_TARGET_H
#define UIR_BACKENDS_CPU_TARGET_TARGET_H

#include "backends/source/target.h"

extern const uir_target uir_cpu_target;

#endif
