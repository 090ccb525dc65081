/* Differences of results from those in f32, for products with half operands: `--precision`, `--accuracy`. */
#ifndef UIR_TOOLS_RUN_ACCURACY_H
#define UIR_TOOLS_RUN_ACCURACY_H

#include "report.h"
#include "steady.h"

/* Whether `--precision` gave some products half operands. */
bool accuracy_is_lowered(const uir_model_info *info);
/* The coarsest operand type of products, which determines the tolerance; f32 without half operands. */
uir_dtype accuracy_of(const uir_model_info *info);
/* Measures the case's greatest differences from a run of `exact`, the same model in f32; if NULL, from expected
 * outputs. Without either, `accuracy` has none. */
uir_status accuracy_measure(uir_model *exact, const uir_session_options *options, run_function *run,
                            uir_session *session, const run_case *c, case_result *result);
/* Prints the precision and its accuracy in two lines, if a precision was requested. */
void accuracy_report(const uir_model *model, const case_result *result);

#endif
