/* Runs of a loaded model on each data set of the command line, compared, saved and shown. */
#ifndef UIR_TOOLS_RUN_CASES_H
#define UIR_TOOLS_RUN_CASES_H

#include "options.h"

/* Runs every case. `exact`: the model in f32, to measure its accuracy by, or NULL. `wait_ms`: time waited for the
 * kernels. DIFFERENT if some outputs differ from the expected ones. */
uir_status cases_run(uir_context *context, uir_model *model, uir_model *exact, const run_options *options,
                     double wait_ms);

#endif
