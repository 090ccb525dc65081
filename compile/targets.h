/* Finds the targets and engines of backends.def, for the compiler. In: a device, or a name. Out: a row of a table. */
#ifndef UIR_COMPILE_TARGETS_H
#define UIR_COMPILE_TARGETS_H

#include "backends/devices/devices.h"
#include "backends/source/target.h"

/* The target that makes the kernels of a device. */
const uir_target *uir_target_of(const uir_device_row *row);
/* The machine of a device: `variant` is the text behind its name's colon, or NULL; it is the parameter of the driver,
 * if there is one, and not a variant of the machine. */
uir_status uir_target_describe(const uir_device_row *row, const char *variant, uir_diagnostics *diagnostics,
                               uir_target_machine *out_machine);
/* The targets, each once; NULL past the end. */
const uir_target *uir_target_get(size_t index);
/* NULL for an unknown name. */
const uir_target *uir_target_find(const char *name);
/* The engines for single kernels, the interpreter first; NULL past the end. */
const uir_target_engine *uir_engine_get(size_t index);

#endif
