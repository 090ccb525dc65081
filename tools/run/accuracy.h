/* How far results are from those in f32, where products multiply halves: `--precision`, `--accuracy`. */
#ifndef UIR_TOOLS_RUN_ACCURACY_H
#define UIR_TOOLS_RUN_ACCURACY_H

#include "report.h"
#include "steady.h"

/* Whether products of the model multiply halves since that was asked for. */
bool accuracy_is_lowered(const uir_model_info *info);
/* The type that its results may differ by: the coarsest that products multiply; f32: none does. */
uir_dtype accuracy_of(const uir_model_info *info);
/* The case's greatest differences: to a run of `exact`, the same model in f32, else (NULL) to what was expected; left
 * as it is where there is neither. */
uir_status accuracy_measure(uir_model *exact, const uir_session_options *options, run_function *run,
                            uir_session *session, const run_case *c, case_result *result);
/* The precision and its accuracy in two lines, where a precision was asked for. */
void accuracy_report(const uir_model *model, const case_result *result);

#endif
