/* The null device's side of the compiler.
 *
 * In: the device's parameter, which may name a chip, and the host's machine. Out: the machine with the instructions
 * that the chip has. */
#ifndef UIR_BACKENDS_NULL_TARGET_TARGET_H
#define UIR_BACKENDS_NULL_TARGET_TARGET_H

#include "backends/source/target.h"

extern const uir_target uir_null_target;

#endif
