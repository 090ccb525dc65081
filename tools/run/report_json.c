/* Reports of uir-run for programs: --json, --can-run --json, --trace. */
#include "json.h"
#include "nodes.h"
#include "printable.h"
#include "query.h"
#include "report.h"

#include <math.h>
#include <stdlib.h>

void report_add_text(cJSON *object, const char *key, const char *text) {
    char buffer[1024]; /* cJSON writes bytes through: only valid text goes in */
    cJSON_AddStringToObject(object, key, printable(text, buffer, sizeof buffer));
}

void report_add_number(cJSON *object, const char *key, double value) {
    if (isfinite(value)) {
        cJSON_AddNumberToObject(object, key, value);
    } else {
        cJSON_AddNullToObject(object, key);
    }
}

/* ---- --trace ---- */

enum { HOST, DEVICE }; /* the processes of a trace: the host's threads, and the queues of a device */

static void add_name(cJSON *events, const char *key, int process, uint32_t track, const char *name) {
    cJSON *event = cJSON_CreateObject(), *arguments = cJSON_CreateObject();
    cJSON_AddStringToObject(event, "name", key);
    cJSON_AddStringToObject(event, "ph", "M");
    cJSON_AddNumberToObject(event, "pid", process + 1);
    cJSON_AddNumberToObject(event, "tid", track);
    cJSON_AddStringToObject(arguments, "name", name);
    cJSON_AddItemToObject(event, "args", arguments);
    cJSON_AddItemToArray(events, event);
}

static void name_thread(cJSON *events, uint32_t thread) {
    char name[32];
    snprintf(name, sizeof name, thread ? "thread %u" : "caller", thread);
    add_name(events, "thread_name", HOST, thread, name);
}

/* The tracks of a device's queues, by name. */
typedef struct queue_tracks {
    const char *names[8];
    uint32_t count;
} queue_tracks;

/* A queue's track, which is named when it is first met. */
static uint32_t find_track(queue_tracks *tracks, cJSON *events, const uir_trace_slice *slice, const char *device) {
    char name[120];
    uint32_t track = 0;
    while (track < tracks->count && strcmp(tracks->names[track], slice->queue) != 0) track++;
    if (track < tracks->count || track == sizeof tracks->names / sizeof *tracks->names) return track;
    snprintf(name, sizeof name, "device %s%s", device, slice->is_modelled ? ", times modelled" : ", by its clock");
    if (!tracks->count) add_name(events, "process_name", DEVICE, 0, name);
    add_name(events, "thread_name", DEVICE, track, slice->queue);
    tracks->names[tracks->count++] = slice->queue;
    return track;
}

bool report_trace(FILE *stream, const uir_model *model, const uir_session *session) {
    cJSON *root = cJSON_CreateObject(), *events = cJSON_AddArrayToObject(root, "traceEvents");
    uir_trace_slice slice;
    const uir_run_statistics statistics = query_statistics(session);
    queue_tracks tracks = {.count = 0};
    uint32_t threads = (uint32_t)statistics.threads;
    for (uint32_t t = 0; t < threads; t++) name_thread(events, t);
    for (size_t i = 0; query_slice(session, i, &slice); i++) {
        cJSON *event = cJSON_CreateObject(), *arguments = cJSON_CreateObject();
        report_add_text(event, "name", *slice.kernel ? slice.kernel : *slice.op ? slice.op : slice.by);
        report_add_text(event, "cat", slice.by);
        cJSON_AddStringToObject(event, "ph", "X");
        cJSON_AddNumberToObject(event, "pid", (*slice.queue ? DEVICE : HOST) + 1);
        cJSON_AddNumberToObject(event, "tid",
                                *slice.queue ? find_track(&tracks, events, &slice, statistics.ran_on) : slice.thread);
        report_add_number(event, "ts", slice.begin_ms * 1e3); /* microseconds */
        report_add_number(event, "dur", slice.ms * 1e3);
        report_add_text(arguments, "node", slice.name);
        report_add_text(arguments, "op", slice.op);
        cJSON_AddNumberToObject(arguments, "phase", slice.phase);
        cJSON_AddNumberToObject(arguments, "indices", (double)slice.indices);
        if (*slice.queue) cJSON_AddNumberToObject(arguments, "bytes", (double)slice.bytes);
        nodes_add_slice(arguments, session, i);
        cJSON_AddItemToObject(event, "args", arguments);
        cJSON_AddItemToArray(events, event);
    }
    cJSON_AddStringToObject(root, "displayTimeUnit", "ms");
    (void)nodes_add_elsewhere(cJSON_AddObjectToObject(root, "otherData"), model, session);
    char *text = cJSON_Print(root);
    bool written = text && fputs(text, stream) >= 0 && fputc('\n', stream) != EOF;
    free(text);
    cJSON_Delete(root);
    return written;
}

/* ---- --json ---- */
static void add_count(cJSON *object, const char *key, const uir_comparison *d, uint64_t count) {
    report_add_number(object, key, d ? (double)count : NAN);
}

/* Null where nothing was expected. */
static void add_comparison(cJSON *o, const uir_comparison *d) {
    report_add_number(o, "max_abs", d ? d->max_abs : NAN);
    report_add_number(o, "max_rel", d ? d->max_rel : NAN);
    if (d)
        cJSON_AddBoolToObject(o, "agree", d->agree);
    else
        cJSON_AddNullToObject(o, "agree");
    add_count(o, "count", d, d ? d->count : 0);
    add_count(o, "differing", d, d ? d->differing : 0);
    report_add_number(o, "cosine", d ? d->cosine : NAN);
    report_add_number(o, "rtol", d ? d->rtol : NAN);
    report_add_number(o, "atol", d ? d->atol : NAN);
}

static void add_outputs(cJSON *root, uir_model *model, uir_session *session, const case_result *result) {
    cJSON *outputs = cJSON_AddArrayToObject(root, "outputs");
    for (size_t i = 0; i < uir_model_output_count(model); i++) {
        uir_value *value = NULL;
        if (uir_session_get_output(session, i, &value) != UIR_STATUS_OK || !value) continue;
        cJSON *o = cJSON_CreateObject();
        report_add_text(o, "name", uir_model_get_output_name(model, i));
        report_add_text(o, "dtype", uir_dtype_get_name(uir_value_get_dtype(value)));
        cJSON *shape = cJSON_AddArrayToObject(o, "shape");
        for (uint32_t d = 0; d < uir_value_get_rank(value); d++)
            cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)uir_value_get_shape(value)[d]));
        add_comparison(o, result->compared[i] ? &result->comparisons[i] : NULL);
        cJSON_AddItemToArray(outputs, o);
    }
}

static void add_choice(cJSON *n, const uir_node_statistics *node) {
    if (!node->variant) return;
    cJSON *choice = cJSON_AddObjectToObject(n, "choice");
    cJSON_AddNumberToObject(choice, "variant", node->variant);
    cJSON_AddNumberToObject(choice, "variants", node->variant_count);
    if (!node->candidate) return;
    cJSON *tiles = cJSON_AddArrayToObject(choice, "tiles");
    for (size_t i = 0; i < node->tile_count; i++)
        cJSON_AddItemToArray(tiles, cJSON_CreateNumber((double)node->tiles[i]));
    cJSON_AddNumberToObject(choice, "row", node->candidate);
    cJSON_AddNumberToObject(choice, "rows", node->candidate_count);
    cJSON_AddNumberToObject(choice, "units", (double)node->units);
    cJSON_AddNumberToObject(choice, "unit_cost", (double)node->unit_cost);
}

static void add_nodes(cJSON *root, uir_session *session, const case_result *result) {
    cJSON *nodes = cJSON_AddArrayToObject(root, "nodes");
    uir_node_statistics node;
    char why[1300];
    for (size_t i = 0; query_node(session, i, &node); i++) {
        cJSON *n = cJSON_CreateObject();
        report_add_text(n, "name", node.name);
        report_add_text(n, "op", node.op);
        report_add_text(n, "by", node.by);
        report_add_text(n, "kernel", node.kernel);
        report_add_text(n, "why", report_why(&node, why, sizeof why));
        cJSON_AddBoolToObject(n, "fallback", node.is_fallback);
        cJSON_AddNumberToObject(n, "bus_bytes", (double)node.bus_bytes);
        report_add_number(n, "ms", i < result->node_count ? result->node_ms[i] : node.ms);
        cJSON_AddNumberToObject(n, "calls", (double)node.calls);
        cJSON_AddNumberToObject(n, "dram_bytes", (double)node.dram_bytes);
        cJSON_AddNumberToObject(n, "flops", (double)node.flops);
        add_choice(n, &node);
        nodes_add_row(n, session, i);
        cJSON_AddItemToArray(nodes, n);
    }
}

static bool is_written;

bool report_has_json(void) {
    return is_written;
}

/* Takes over `root`. */
bool report_write_json(FILE *stream, cJSON *root) {
    char *text = cJSON_Print(root);
    cJSON_Delete(root);
    if (!text) return false;
    is_written = true;
    fprintf(stream, "%s\n", text);
    cJSON_free(text);
    return true;
}

static void add_times(cJSON *object, const run_times *times) {
    bool measured = times->count > 0;
    report_add_number(object, "first_ms", times->first_ms);
    cJSON *steady = cJSON_AddObjectToObject(object, "steady_ms");
    report_add_number(steady, "p50", measured ? times->p50_ms : NAN);
    report_add_number(steady, "p90", measured ? times->p90_ms : NAN);
    report_add_number(steady, "p99", measured ? times->p99_ms : NAN);
    cJSON_AddNumberToObject(steady, "n", (double)times->count);
    report_add_number(object, "runs_per_second", measured ? times->runs_per_second : NAN);
}

static void add_tolerance(cJSON *object, const run_case *c) {
    const uir_tolerance *t = &c->tolerance;
    cJSON *tolerance = cJSON_AddObjectToObject(object, "tolerance");
    report_add_text(tolerance, "source", c->tolerance_source);
    report_add_number(tolerance, "rtol", t->rtol < 0 ? NAN : t->rtol);
    report_add_number(tolerance, "atol", t->atol);
    report_add_number(tolerance, "atol_relative_to_max", t->atol_relative_to_max < 0 ? NAN : t->atol_relative_to_max);
    report_add_number(tolerance, "integers", t->integers);
}

/* Null where the outputs were compared with nothing. */
static void add_accuracy(cJSON *set, const run_accuracy *accuracy) {
    if (!accuracy->against) {
        cJSON_AddNullToObject(set, "accuracy");
        return;
    }
    cJSON *object = cJSON_AddObjectToObject(set, "accuracy");
    report_add_text(object, "against", accuracy->against);
    report_add_number(object, "max_abs", accuracy->max_abs);
    report_add_number(object, "max_rel", accuracy->max_rel);
    cJSON_AddBoolToObject(object, "agrees", accuracy->agrees);
}

void report_add_case(cJSON *cases, uir_model *model, uir_session *session, const run_case *c,
                     const case_result *result) {
    cJSON *set = cJSON_CreateObject();
    if (c->folder)
        report_add_text(set, "data", c->folder);
    else
        cJSON_AddNullToObject(set, "data");
    cJSON_AddBoolToObject(set, "agree", result->agree);
    add_times(set, &result->times);
    add_accuracy(set, &result->accuracy);
    cJSON_AddNumberToObject(set, "peak_bytes", (double)result->statistics.peak_bytes);
    add_outputs(set, model, session, result);
    cJSON_AddItemToArray(cases, set);
}

static void add_layouts(cJSON *root, const uir_model_info *info) {
    cJSON *layouts = cJSON_AddObjectToObject(root, "layouts");
    cJSON_AddNumberToObject(layouts, "values", info->laid_out_count);
    cJSON_AddNumberToObject(layouts, "conversions", info->conversion_count);
    cJSON_AddNumberToObject(layouts, "winograd", info->winograd_count);
}

static void add_precision(cJSON *root, const uir_model_info *info) {
    report_add_text(root, "precision", info->precision);
    cJSON *products = cJSON_AddObjectToObject(root, "products");
    cJSON_AddNumberToObject(products, "all", info->product_count);
    cJSON_AddNumberToObject(products, "f16", info->f16_count);
    cJSON_AddNumberToObject(products, "bf16", info->bf16_count);
    cJSON_AddNumberToObject(products, "out_of_range", info->out_of_range_count);
}

static void add_calls(cJSON *root, uir_session *session, const uir_run_statistics *statistics) {
    cJSON *calls = cJSON_AddObjectToObject(root, "calls");
    cJSON_AddNumberToObject(calls, "native", (double)statistics->native_calls);
    cJSON_AddNumberToObject(calls, "vm", (double)statistics->vm_calls);
    cJSON_AddNumberToObject(calls, "vendor", (double)statistics->vendor_calls);
    cJSON_AddNumberToObject(calls, "host", (double)statistics->host_calls);
    cJSON_AddNumberToObject(calls, "interpreter", (double)statistics->interpreter_calls);
    cJSON_AddNumberToObject(calls, "device", (double)statistics->device_calls);
    report_add_bus(root, session, statistics);
    cJSON_AddNumberToObject(root, "groups", (double)statistics->groups);
    cJSON_AddNumberToObject(root, "kernels", (double)statistics->kernels);
    cJSON_AddNumberToObject(root, "phases", (double)statistics->phases);
    cJSON_AddNumberToObject(root, "dram_bytes", (double)statistics->dram_bytes);
}

bool report_json(FILE *stream, const report_facts *facts, uir_model *model, uir_session *session, const run_case *c,
                 const case_result *result, cJSON *cases) {
    cJSON *root = cJSON_CreateObject();
    uir_model_info info = query_info(model);
    const run_times *times = &result->times;
    cJSON_AddNumberToObject(root, "version", 1);
    report_add_text(root, "model", facts->model);
    report_add_text(root, "device", facts->device);
    report_add_text(root, "ran_on", result->statistics.ran_on);
    cJSON_AddNumberToObject(root, "threads", (double)result->statistics.threads);
    cJSON_AddNumberToObject(root, "compiled", info.compiled_kernels);
    cJSON_AddNumberToObject(root, "faults", info.fault_count);
    add_calls(root, session, &result->statistics);
    add_layouts(root, &info);
    add_precision(root, &info);
    report_add_number(root, "load_ms", info.load_ms);
    report_add_number(root, "compile_ms", info.compile_ms);
    report_add_number(root, "wait_ms", facts->wait_ms);
    add_times(root, times);
    cJSON *sessions = cJSON_AddObjectToObject(root, "sessions");
    cJSON_AddNumberToObject(sessions, "n", times->sessions ? (double)times->sessions : 1);
    cJSON_AddNumberToObject(sessions, "threads",
                            times->sessions ? (double)times->session_threads : (double)result->statistics.threads);
    cJSON_AddNumberToObject(root, "peak_bytes", (double)result->statistics.peak_bytes);
    cJSON_AddNumberToObject(root, "cases", (double)facts->cases);
    cJSON_AddBoolToObject(root, "agree", facts->agree);
    add_tolerance(root, c);
    add_outputs(root, model, session, result);
    saved_add_json(root, model, &result->saved);
    add_nodes(root, session, result);
    bool good = nodes_add_elsewhere(root, model, session) && report_add_profile(root, session, result) &&
                report_add_machine(root, session);
    cJSON_AddItemToObject(root, "data_sets", cases);
    if (good) return report_write_json(stream, root);
    cJSON_Delete(root);
    return false;
}

void report_support(FILE *stream, uir_context *context, uir_model *model) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "version", 1);
    cJSON_AddBoolToObject(root, "supported", model != NULL);
    if (model) {
        uir_model_info info = query_info(model);
        cJSON_AddNumberToObject(root, "opset", (double)info.opset);
        cJSON_AddNumberToObject(root, "onnx_nodes", info.onnx_node_count);
        cJSON_AddNumberToObject(root, "primitives", info.primitive_count);
    }
    cJSON *problems = cJSON_AddArrayToObject(root, "problems");
    for (size_t i = 0; i < uir_context_message_count(context); i++) {
        uir_message m = query_message(context, i);
        if (m.severity != UIR_SEVERITY_ERROR) continue;
        cJSON *problem = cJSON_CreateObject();
        report_add_text(problem, "status", uir_status_text(m.status));
        report_add_text(problem, "node", m.node);
        report_add_text(problem, "op", m.op);
        cJSON_AddStringToObject(problem, "text", m.text); /* messages are printable as they come */
        cJSON_AddItemToArray(problems, problem);
    }
    (void)!report_write_json(stream, root);
}

/* ---- what needs no model ---- */
static cJSON *begin_object(void) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "version", 1);
    return root;
}

void report_error(FILE *stream, uir_status status) {
    cJSON *root = begin_object();
    report_add_text(root, "error", uir_status_text(status));
    cJSON_AddStringToObject(root, "message", *first_error() ? first_error() : uir_status_text(status));
    cJSON_AddStringToObject(root, "hint", first_hint());
    cJSON_AddNumberToObject(root, "code", uir_status_exit_code(status));
    (void)!report_write_json(stream, root);
}

bool report_ops(FILE *stream, bool json) {
    uir_op_info op;
    cJSON *root = json ? begin_object() : NULL, *ops = json ? cJSON_AddArrayToObject(root, "ops") : NULL;
    for (size_t i = 0; query_op(i, &op); i++) {
        if (!json) {
            fprintf(stream, "%s%s%s %d  %s\n", op.domain, *op.domain ? "::" : "", op.name, op.since_version,
                    uir_op_get_engine(i));
            continue;
        }
        cJSON *object = cJSON_CreateObject();
        report_add_text(object, "domain", op.domain);
        report_add_text(object, "name", op.name);
        cJSON_AddNumberToObject(object, "since_version", op.since_version);
        report_add_text(object, "engine", uir_op_get_engine(i));
        cJSON_AddItemToArray(ops, object);
    }
    return !json || report_write_json(stream, root);
}

bool report_version(FILE *stream, bool json) {
    if (!json) return fprintf(stream, "uir %s\n", uir_version()) >= 0;
    cJSON *root = begin_object();
    report_add_text(root, "uir", uir_version());
    return report_write_json(stream, root);
}
