/* --reduce: finds the smallest part of a model that still fails, as a model of its own.
 *
 * In: a model and its data. Out: OUT.onnx, OUT_data with its inputs and expected outputs, and a report.
 *
 * The model runs once on the interpreter, which records every value. Then parts of the model run as separate processes,
 * on the recorded inputs, and their outputs are compared with recorded ones: differing results, refusals, crashes and
 * hangs of the compiler or of kernels are detected alike. Delta debugging over the nodes in file order selects the
 * parts: halves first, then finer parts and their complements, until no single node can be removed. The same model and
 * fault lead to the same result, unless time runs out. */
#ifndef UIR_TOOLS_RUN_REDUCE_H
#define UIR_TOOLS_RUN_REDUCE_H

#include "data.h"

/* `model` was loaded for the interpreter, `c` is its data. OK: no failure; else the status of the failure, with OUT
 * written. */
uir_status reduce_case(uir_context *context, uir_model *model, const run_options *options, const run_case *c,
                       const volatile bool *cancel);

#endif
