/* The device descriptions in this build: the files *.device in the target folders of backends/, embedded unchanged.
 *
 * In: nothing. Out: their texts, and the devices described. A new machine is one more such file. */
#ifndef UIR_BACKENDS_DESCRIPTIONS_H
#define UIR_BACKENDS_DESCRIPTIONS_H

#include "ir/machine/device_text.h"

extern const char *const uir_description_names[]; /* "ascend/target/ascend.device" */
extern const char *const uir_description_parts[];
extern const size_t uir_description_sizes[];
extern const uint32_t uir_description_count;

/* Appends the chips of all files, allocated from `arena`. */
uir_status uir_descriptions_read(uir_arena *arena, uir_diagnostics *diagnostics, uir_machine_vector *devices);
/* Finds a chip, allocated from `arena`, among the files in the folder of its device. INVALID_ARGUMENT for an unknown
 * one. */
uir_status uir_descriptions_find(const char *device, const char *chip, uir_arena *arena, uir_diagnostics *diagnostics,
                                 const uir_machine **out_machine);

#endif
