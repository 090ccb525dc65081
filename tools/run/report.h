/* Reports of uir-run: text for people, one JSON object (schema 1) for programs. */
#ifndef UIR_TOOLS_RUN_REPORT_H
#define UIR_TOOLS_RUN_REPORT_H

#include "data.h"
#include "saved.h"

typedef struct run_times {
    double first_ms;
    double p50_ms, p90_ms, p99_ms;
    size_t count; /* steady runs measured; 0 without --bench */
    double runs_per_second;
    size_t sessions; /* of --sessions; 0: the session of the outputs */
    uint32_t session_threads;
} run_times;

/* The greatest differences over all outputs; relative ones where the expected value is not 0. */
typedef struct run_accuracy {
    const char *against; /* the reference of the comparison; NULL: none */
    double max_abs, max_rel;
    bool agrees; /* within the tolerance */
} run_accuracy;

/* Result of one case, kept after its values are released (comparisons NULL without expected outputs). */
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
    double *node_ms;     /* with --profile: the median time of each node; to be freed */
    size_t node_count, profiled_runs;
} case_result;

/* Prints the context's messages to standard error, one line each, and clears them. */
void report_messages(uir_context *context, bool quiet);
void report_inputs(uir_model *model, const run_case *c);
void report_outputs(uir_model *model, uir_session *session, const run_case *c, const case_result *result);
/* The difference of two values in a line: number of elements beyond the tolerance, greatest difference, cosine, first
 * difference. */
void report_describe(const uir_comparison *comparison, char *buffer, size_t capacity);
/* `wait_ms`: time waited for the kernels before the first run. */
void report_times(uir_model *model, const case_result *result, double wait_ms);
/* Prints where each node ran and why, in order, and nodes of the file without a row. */
void report_nodes(const uir_model *model, const uir_session *session);
/* Prints a line about layouts of values between kernels; nothing if all are row-major. */
void report_layouts(const uir_model *model);
/* Prints nodes by time, then kernels, with traffic, operations and their fraction of the machine's limits. */
void report_profile(const uir_model *model, uir_session *session, const case_result *result);
/* Prints traffic of kernels by memory space of a described machine, and modelled times, longest first. False out of
 * memory. */
bool report_machine(const uir_session *session, const char *ran_on);
/* Prints the last cost query: sums, what it asks of a device's bus, and its launches by kernel; text, or one JSON
 * object.
 */
bool report_cost(FILE *stream, const uir_session *session, const uir_cost *cost, const uir_bus_cost *bus,
                 const uir_roofline *limits, bool json);
/* Prints waits and bytes over the bus of a planned run, and what only the run knows; nothing on other devices. */
void report_bus_cost(const uir_session *session, const uir_bus_cost *cost);
/* Writes the threads' work in the last run, which was traced, as a Chrome trace: its slices as complete events, and the
 * threads' names. False out of memory or if writing fails. */
bool report_trace(FILE *stream, const uir_model *model, const uir_session *session);
/* Members of the object that do not depend on a case. */
typedef struct report_facts {
    const char *model, *device; /* as named on the command line */
    double wait_ms;
    size_t cases;
    bool agree; /* all of them */
} report_facts;
struct cJSON;
/* Adds the case to the array of cases. */
void report_add_case(struct cJSON *cases, uir_model *model, uir_session *session, const run_case *c,
                     const case_result *result);
/* Writes the object: the last case, and the array of cases, whose ownership it takes. */
bool report_json(FILE *stream, const report_facts *facts, uir_model *model, uir_session *session, const run_case *c,
                 const case_result *result, struct cJSON *cases);
/* --can-run as an object: whether the model is supported, and all problems in the context. `model` NULL:
 * unsupported. */
void report_support(FILE *stream, uir_context *context, uir_model *model);

/* ---- for the files of the report ---- */
/* The reason for the engine that ran the node, and the nodes fused into its kernel, in the buffer. */
const char *report_why(const uir_node_statistics *node, char *buffer, size_t capacity);
/* Adds text, made printable since cJSON writes bytes unchanged. */
void report_add_text(struct cJSON *object, const char *key, const char *text);
void report_add_number(struct cJSON *object, const char *key, double value); /* null for infinities and NaN */
/* Prints what the queues of a device executed in the last run, with times by its clock; nothing without queues. */
void report_queues(const uir_session *session);
/* Adds the same to --profile, as the members `queues`, `bus_bytes`, `hidden_bytes`. False out of memory. */
bool report_add_queues(struct cJSON *profile, const uir_session *session);
/* Adds --profile as the member `profile`, null without it. */
bool report_add_profile(struct cJSON *root, uir_session *session, const case_result *result);
/* Adds report_bus_cost as the member `bus`. */
void report_add_bus_cost(struct cJSON *root, const uir_session *session, const uir_bus_cost *cost);
/* Adds what the run asked of the bus as the member `bus`, with what its plan says of it. */
void report_add_bus(struct cJSON *root, uir_session *session, const uir_run_statistics *statistics);
/* Adds the facts of report_machine as the member `machine`, null if unknown. */
bool report_add_machine(struct cJSON *root, const uir_session *session);
/* Writes and releases `root`. */
bool report_write_json(FILE *stream, struct cJSON *root);
/* Whether report_write_json has written anything. */
bool report_has_json(void);

/* ---- reports without a model ---- */
/* Reports a failure of the program for --json, with the first error. */
void report_error(FILE *stream, uir_status status);
/* Lists, and the version, as text or one JSON object. False out of memory. */
bool report_ops(FILE *stream, bool json);
/* The devices that run models, by name, with their chips; then those that are not there, and why. */
bool report_devices(FILE *stream, const uir_device_list *list, bool json);
bool report_version(FILE *stream, bool json);

#endif
