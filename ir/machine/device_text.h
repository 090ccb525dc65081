/* Descriptions of devices as text: docs/devices.md has the grammar.
 *
 * In: a text, which may be hostile. Out: a device for each chip that it describes, in an arena, checked: what an
 * uir_device promises its readers holds. Printing gives a text of one chip that reads back to the same device. */
#ifndef UIR_IR_DEVICE_TEXT_H
#define UIR_IR_DEVICE_TEXT_H

#include "base/text.h"
#include "base/vector.h"
#include "ir/machine/device.h"

#define UIR_DEVICE_MAX_CHIPS      64
#define UIR_DEVICE_MAX_LEGAL      4096
#define UIR_DEVICE_MAX_NAME       32
#define UIR_DEVICE_MAX_TEXT_BYTES (1u << 20)

typedef uir_vector(const uir_device *) uir_device_vector;

/* Appends the text's chips, in its order; of each name (after `on`) the first one is what the name alone means.
 * BAD_FILE with the line for what is no description. Everything lies in `arena`. */
uir_status uir_device_parse(const char *text, size_t length, const char *file, uir_arena *arena,
                            uir_diagnostics *diagnostics, uir_device_vector *devices);
/* The whole of it: what differs in any field differs in its text, so that a digest of the text tells devices apart. */
void uir_device_print(const uir_device *device, uir_text *text);

#endif
