/* Parser and printer of device descriptions: docs/devices.md has the grammar.
 *
 * In: a text, which may be hostile. Out: a device for each chip in it, in an arena, checked, so that the invariants of
 * uir_machine hold. Printing makes a text of one chip, which reads back as the same device. */
#ifndef UIR_IR_DEVICE_TEXT_H
#define UIR_IR_DEVICE_TEXT_H

#include "base/text.h"
#include "base/vector.h"
#include "ir/machine/device.h"

#define UIR_MACHINE_MAX_CHIPS      64
#define UIR_MACHINE_MAX_LEGAL      4096
#define UIR_MACHINE_MAX_NAME       32
#define UIR_MACHINE_MAX_TEXT_BYTES (1u << 20)

typedef uir_vector(const uir_machine *) uir_machine_vector;

/* Appends the text's chips, in its order; the first of each name (after `on`) is the default of that name. BAD_FILE
 * with the line of an error. Everything is allocated in `arena`. */
uir_status uir_machine_parse(const char *text, size_t length, const char *file, uir_arena *arena,
                             uir_diagnostics *diagnostics, uir_machine_vector *devices);
/* Prints all of a chip but cache_bytes, which have no word in the text. */
void uir_machine_print(const uir_machine *machine, uir_text *text);

#endif
