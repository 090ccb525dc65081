/* Converts pictures to model inputs. In: a u8 value [height, width, channels] and --preprocess. Out: a value of the
 * input's dtype and shape. */
#ifndef UIR_TOOLS_RUN_PICTURE_H
#define UIR_TOOLS_RUN_PICTURE_H

#include "uir/uir.h"

bool picture_is_path(const char *path);
enum { MADE_ROOM = 48 };
/* Replaces *value; `out_made`: the picture's size, "64x48". `dims` are the input's extents with free dims 1; free
 * height and width become the picture's. `spec` may be NULL. */
uir_status picture_prepare(uir_context *context, uir_value **value, const uir_port *port, const int64_t *dims,
                           uint32_t rank, const char *spec, char out_made[MADE_ROOM]);
enum { PICTURE_TEXT = 1600 };
/* "x: cat.png 64x48 -> f32[1,3,48,64], values 0..255 (no --preprocess)", printable, in the buffer. */
const char *picture_describe(const char *name, const char *path, const char *picture, const uir_value *value,
                             const char *spec, char *buffer, size_t capacity);

#endif
