/* What outputs may differ by: as a model's file beside it, its package or the command line states it, else by their
 * dtype. */
#ifndef UIR_TOOLS_RUN_TOLERANCE_H
#define UIR_TOOLS_RUN_TOLERANCE_H

#include "options.h"

/* What info.json or data.json beside the model states, as ONNX's larger test models do; the file's name, or NULL where
 * nothing is stated. What one of them leaves out is the dtype's own: a negative number. */
const char *tolerance_find_beside(const char *model_path, uir_tolerance *out_tolerance);

#endif
