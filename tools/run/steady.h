/* Measures runs after the first, in one session or in several at once, and the time of each node. */
#ifndef UIR_TOOLS_RUN_STEADY_H
#define UIR_TOOLS_RUN_STEADY_H

#include "data.h"
#include "report.h"

/* Runs a session in slot `slot`, below STEADY_MAX_SESSIONS, which a signal cancels. */
enum { STEADY_MAX_SESSIONS = 256 };
typedef uir_status run_function(uir_session *session, size_t slot, double *out_ms);

/* Runs the session for --bench and --profile; with --profile it keeps the median time of each node. */
uir_status steady_measure(uir_session *session, const run_options *options, run_function *run, case_result *result);
/* --sessions: runs further sessions of the model, each on its own thread, on the inputs of the case. */
uir_status steady_measure_sessions(uir_model *model, const run_options *options, const run_case *c, run_function *run,
                                   case_result *result);

#endif
