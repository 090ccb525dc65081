/* Pictures as model inputs. In: a u8 value [height, width, channels] and --preprocess. Out: a value of the input's
 * dtype and shape. */
#ifndef UIR_TOOLS_RUN_PICTURE_H
#define UIR_TOOLS_RUN_PICTURE_H

#include "uir/uir.h"

bool picture_is_path(const char *path);
/* Replaces *value. `dims` are the input's extents with free dims 1; free height and width become the picture's. `spec`
 * may be NULL. */
uir_status picture_prepare(uir_context *context, uir_value **value, const uir_port *port, const int64_t *dims,
                           uint32_t rank, const char *spec);

#endif
