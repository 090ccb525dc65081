/* --reduce: the smallest part of a model that still goes wrong, as a model of its own.
 *
 * In: a model and its data. Out: OUT.onnx and OUT_data with its inputs and what they should give, and in words what was
 * found.
 *
 * The model runs once on the interpreter, which keeps every value. Then parts of it run as processes of their own, each
 * on the values that the interpreter had at its edges and held to those that it had at its ends: differing results,
 * refusals, crashes and hangs of the compiler or of kernels are all seen the same way. Which nodes are left out next is
 * delta debugging over the nodes in the order of the file: halves first, then finer parts and their complements, until
 * no single node can go. The same model and the same fault give the same result, unless the time is up before. */
#ifndef UIR_TOOLS_RUN_REDUCE_H
#define UIR_TOOLS_RUN_REDUCE_H

#include "data.h"

/* `model` was loaded for the interpreter, `c` is its data. OK: nothing goes wrong; else the status of what does, and
 * OUT is there. */
uir_status reduce_case(uir_context *context, uir_model *model, const run_options *options, const run_case *c,
                       const volatile bool *cancel);

#endif
