/* Runs after the first: how long they take, in one session or in several at once, and what each node takes of them. */
#ifndef UIR_TOOLS_RUN_STEADY_H
#define UIR_TOOLS_RUN_STEADY_H

#include "data.h"
#include "report.h"

/* Runs a session in place `slot`, below STEADY_MAX_SESSIONS, of those that a signal stops. */
enum { STEADY_MAX_SESSIONS = 256 };
typedef uir_status run_function(uir_session *session, size_t slot, double *out_ms);

/* Runs the session as --bench and --profile ask, with --profile keeps the median of each node's times. */
uir_status steady_measure(uir_session *session, const run_options *options, run_function *run, case_result *result);
/* --sessions: as many more over the same model, each on a thread of its own, on the inputs of the case. */
uir_status steady_measure_sessions(uir_model *model, const run_options *options, const run_case *c, run_function *run,
                                   case_result *result);

#endif
