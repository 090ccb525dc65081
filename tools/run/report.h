/* What uir-run tells: text for people, one JSON object (schema 1) for programs. */
#ifndef UIR_TOOLS_RUN_REPORT_H
#define UIR_TOOLS_RUN_REPORT_H

#include "data.h"

typedef struct run_times {
    double first_ms;
    double p50_ms, p90_ms, p99_ms;
    size_t count; /* steady runs measured; 0 without --bench */
} run_times;

/* Result of one case, kept after its values are gone (comparisons NULL where nothing was expected). */
typedef struct case_result {
    const char *folder;
    uir_comparison *comparisons; /* one per output */
    bool *compared;
    bool agree;
    uir_run_statistics statistics;
    run_times times;
} case_result;

/* One line per message of the context, to standard error; clears them. */
void report_messages(uir_context *context, bool quiet);
void report_inputs(uir_model *model, const run_case *c);
void report_outputs(uir_model *model, uir_session *session, const run_case *c, const case_result *result);
void report_times(uir_model *model, const case_result *result);
/* By node in order (explain), or by time and by op (profile). */
/* One number a line, or one JSON object with the names of uir_cost's fields. */
void report_cost(const uir_cost *cost, bool json);
/* The steps of the last run as a Chrome trace: complete events in the order of the plan, each as long as all its calls
 * together, one after the other. False when memory runs out or writing fails. */
bool report_trace(FILE *stream, const uir_session *session);
void report_nodes(uir_session *session, bool profile);
/* Writes the object for the last case; `agree` over all cases. */
bool report_json(FILE *stream, uir_model *model, uir_session *session, const case_result *result, bool agree,
                 size_t cases, const char *device);
/* --can-run as an object: whether the model is supported, and every problem the context holds. `model` NULL: it is not.
 */
void report_support(FILE *stream, uir_context *context, uir_model *model);

#endif
