/* What uir-run tells: text for people, one JSON object (schema 1) for programs. */
#ifndef UIR_TOOLS_RUN_REPORT_H
#define UIR_TOOLS_RUN_REPORT_H

#include "data.h"
#include "saved.h"

typedef struct run_times {
    double first_ms;
    double p50_ms, p90_ms, p99_ms;
    size_t count; /* steady runs measured; 0 without --bench */
    double runs_per_second;
    size_t sessions; /* of --sessions; 0: the one that gave the outputs */
    uint32_t session_threads;
} run_times;

/* The greatest differences of all outputs, relative ones where something else than 0 was wanted. */
typedef struct run_accuracy {
    const char *against; /* what the outputs were compared with; NULL: with nothing */
    double max_abs, max_rel;
    bool agrees; /* within the tolerance */
} run_accuracy;

/* Result of one case, kept after its values are gone (comparisons NULL where nothing was expected). */
typedef struct case_result {
    const char *folder;
    uir_comparison *comparisons; /* one per output */
    bool *compared;
    bool agree;
    uir_run_statistics statistics;
    run_times times;
    saved_comparison saved;
    run_accuracy accuracy;
    uir_roofline limits; /* of the machine, with --profile */
    double *node_ms;     /* with --profile: the median of each node's times; to be freed */
    size_t node_count, profiled_runs;
} case_result;

/* One line per message of the context, to standard error; clears them. */
void report_messages(uir_context *context, bool quiet);
void report_inputs(uir_model *model, const run_case *c);
void report_outputs(uir_model *model, uir_session *session, const run_case *c, const case_result *result);
/* How far two values are apart, in a line: how many elements are out of tolerance, the greatest difference, the cosine,
 * the first that differs. */
void report_describe(const uir_comparison *comparison, char *buffer, size_t capacity);
/* `wait_ms`: how long the kernels were waited for before the first run. */
void report_times(uir_model *model, const case_result *result, double wait_ms);
/* Where each node ran and why, in order; which nodes of the file no row has. */
void report_nodes(const uir_model *model, const uir_session *session);
/* How values between kernels lie, in a line; nothing where all lie as their dims. */
void report_layouts(const uir_model *model);
/* Nodes by time, then kernels, with what they move and compute and how much of the machine's limits that is. */
void report_profile(const uir_model *model, uir_session *session, const case_result *result);
/* What kernels of a described machine moved in its spaces, and its modelled time, the longest first. False when memory
 * runs out. */
bool report_machine(const uir_session *session, const char *ran_on);
/* The cost that was asked last: sums, and its launches by kernel; text, or one JSON object. */
bool report_cost(FILE *stream, const uir_session *session, const uir_cost *cost, const uir_roofline *limits, bool json);
/* What each thread did in the last run, which was traced, as a Chrome trace: its slices as complete events, and the
 * threads' names. False when memory runs out or writing fails. */
bool report_trace(FILE *stream, const uir_model *model, const uir_session *session);
/* What of the object is not the last case's. */
typedef struct report_facts {
    const char *model, *device; /* as the command line names them */
    double wait_ms;
    size_t cases;
    bool agree; /* all of them */
} report_facts;
struct cJSON;
/* Adds the case to the array of all. */
void report_add_case(struct cJSON *cases, uir_model *model, uir_session *session, const run_case *c,
                     const case_result *result);
/* Writes the object: of the last case, with all of them, which are taken over. */
bool report_json(FILE *stream, const report_facts *facts, uir_model *model, uir_session *session, const run_case *c,
                 const case_result *result, struct cJSON *cases);
/* --can-run as an object: whether the model is supported, and every problem the context holds. `model` NULL: it is not.
 */
void report_support(FILE *stream, uir_context *context, uir_model *model);

/* ---- for the files of the report ---- */
/* Why another ran it than the fastest, and what was joined in its kernel, in the buffer. */
const char *report_why(const uir_node_statistics *node, char *buffer, size_t capacity);
/* Made printable first: cJSON writes bytes through. */
void report_add_text(struct cJSON *object, const char *key, const char *text);
void report_add_number(struct cJSON *object, const char *key, double value); /* null when it is no number */
/* --profile as the member `profile`, null without it. */
bool report_add_profile(struct cJSON *root, uir_session *session, const case_result *result);
/* What report_machine tells as the member `machine`, null where nothing is known. */
bool report_add_machine(struct cJSON *root, const uir_session *session);
/* Takes over `root`. */
bool report_write_json(FILE *stream, struct cJSON *root);
/* Whether anything was written so. */
bool report_has_json(void);

/* ---- what needs no model ---- */
/* Why the program ends with the status, for --json, by what was told first. */
void report_error(FILE *stream, uir_status status);
/* Lists, and the version, as text or one JSON object. False when memory runs out. */
bool report_ops(FILE *stream, bool json);
bool report_devices(FILE *stream, bool json);
bool report_version(FILE *stream, bool json);

#endif
