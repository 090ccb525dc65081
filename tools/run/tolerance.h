/* Tolerances of outputs: from a file beside the model, its package or the command line, else by dtype. */
#ifndef UIR_TOOLS_RUN_TOLERANCE_H
#define UIR_TOOLS_RUN_TOLERANCE_H

#include "options.h"

/* Tolerance in info.json or data.json beside the model, as in ONNX's larger test models; returns the file's name, or
 * NULL. Missing members are negative: those of the dtype. */
const char *tolerance_find_beside(const char *model_path, uir_tolerance *out_tolerance);

#endif
