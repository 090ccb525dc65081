/* Finds the targets of backends.def, for the compiler. In: a device, or a name. Out: a row of a table. */
#ifndef UIR_COMPILE_TARGETS_H
#define UIR_COMPILE_TARGETS_H

#include "backends/devices/devices.h"
#include "backends/source/target.h"

/* Whether the device runs the host's code, of which its machine may lack instructions. */
bool uir_target_is_narrowed(const uir_device_row *row);
/* The chips of such a device, by index; NULL past the end, and for other devices. */
const char *uir_target_get_chip(const uir_device_row *row, size_t index);
/* The target that makes the kernels of a device. */
const uir_target *uir_target_of(const uir_device_row *row);
/* Whether the name of a device leaves its chip to the device that the driver opens. */
bool uir_target_leaves_chip(const uir_device_row *row, const char *variant);
/* The machine of a device: `variant` is the text behind its name's colon, or NULL. Of a device with a driver it is the
 * driver's parameter, which may name a chip. A chip that is left to the device is asked of the driver; where there is
 * none, it is the target's own choice. */
uir_status uir_target_describe(const uir_device_row *row, const char *variant, uir_arena *arena,
                               uir_diagnostics *diagnostics, uir_target_machine *out_machine);
/* Appends the facts of the device's machine that its kernels and plans depend on. */
void uir_target_describe_key(const uir_device_row *row, const uir_target_machine *machine, uir_text *text);
/* The targets that make kernels, each once; NULL past the end. */
const uir_target *uir_target_get(size_t index);
/* NULL for an unknown name. */
const uir_target *uir_target_find(const char *name);

#endif
