/* Reports of uir-run for programs: --json, --can-run --json, --trace. */
#include "json.h"
#include "printable.h"
#include "query.h"
#include "report.h"

#include <math.h>
#include <stdlib.h>

void report_add_text(json *object, const char *key, const char *text) {
    char buffer[1024]; /* json writes bytes through: only valid text goes in */
    json_put_string(object, key, printable(text, buffer, sizeof buffer));
}

void report_add_number(json *object, const char *key, double value) {
    if (isfinite(value)) {
        json_put_number(object, key, value);
    } else {
        json_put_null(object, key);
    }
}

/* ---- --trace ---- */

static void name_thread(json *events, uint32_t thread) {
    json *event = json_object(), *arguments = json_object();
    char name[32];
    snprintf(name, sizeof name, thread ? "thread %u" : "caller", thread);
    json_put_string(event, "name", "thread_name");
    json_put_string(event, "ph", "M");
    json_put_number(event, "pid", 1);
    json_put_number(event, "tid", thread);
    json_put_string(arguments, "name", name);
    json_put(event, "args", arguments);
    json_append(events, event);
}

bool report_trace(FILE *stream, const uir_session *session) {
    json *root = json_object(), *events = json_put_array(root, "traceEvents");
    uir_trace_slice slice;
    uint32_t threads = (uint32_t)query_statistics(session).threads;
    for (uint32_t t = 0; t < threads; t++) name_thread(events, t);
    for (size_t i = 0; query_slice(session, i, &slice); i++) {
        json *event = json_object(), *arguments = json_object();
        report_add_text(event, "name", *slice.kernel ? slice.kernel : *slice.op ? slice.op : slice.by);
        report_add_text(event, "cat", slice.by);
        json_put_string(event, "ph", "X");
        json_put_number(event, "pid", 1);
        json_put_number(event, "tid", slice.thread);
        report_add_number(event, "ts", slice.begin_ms * 1e3); /* microseconds */
        report_add_number(event, "dur", slice.ms * 1e3);
        report_add_text(arguments, "node", slice.name);
        report_add_text(arguments, "op", slice.op);
        json_put_number(arguments, "phase", slice.phase);
        json_put_number(arguments, "indices", (double)slice.indices);
        json_put(event, "args", arguments);
        json_append(events, event);
    }
    json_put_string(root, "displayTimeUnit", "ms");
    char *text = json_print(root);
    bool written = text && fputs(text, stream) >= 0 && fputc('\n', stream) != EOF;
    free(text);
    json_destroy(root);
    return written;
}

/* ---- --json ---- */
static void add_count(json *object, const char *key, const uir_comparison *d, uint64_t count) {
    report_add_number(object, key, d ? (double)count : NAN);
}

/* Null where nothing was expected. */
static void add_comparison(json *o, const uir_comparison *d) {
    report_add_number(o, "max_abs", d ? d->max_abs : NAN);
    report_add_number(o, "max_rel", d ? d->max_rel : NAN);
    if (d)
        json_put_bool(o, "agree", d->agree);
    else
        json_put_null(o, "agree");
    add_count(o, "count", d, d ? d->count : 0);
    add_count(o, "differing", d, d ? d->differing : 0);
    report_add_number(o, "cosine", d ? d->cosine : NAN);
    report_add_number(o, "rtol", d ? d->rtol : NAN);
    report_add_number(o, "atol", d ? d->atol : NAN);
}

static void add_outputs(json *root, uir_model *model, uir_session *session, const case_result *result) {
    json *outputs = json_put_array(root, "outputs");
    for (size_t i = 0; i < uir_model_output_count(model); i++) {
        uir_value *value = NULL;
        if (uir_session_get_output(session, i, &value) != UIR_STATUS_OK || !value) continue;
        json *o = json_object();
        report_add_text(o, "name", uir_model_get_output_name(model, i));
        report_add_text(o, "dtype", uir_dtype_get_name(uir_value_get_dtype(value)));
        json *shape = json_put_array(o, "shape");
        for (uint32_t d = 0; d < uir_value_get_rank(value); d++)
            json_append(shape, json_number((double)uir_value_get_shape(value)[d]));
        add_comparison(o, result->compared[i] ? &result->comparisons[i] : NULL);
        json_append(outputs, o);
    }
}

static void add_nodes(json *root, uir_session *session, const case_result *result) {
    json *nodes = json_put_array(root, "nodes");
    uir_node_statistics node;
    char why[1300];
    for (size_t i = 0; query_node(session, i, &node); i++) {
        json *n = json_object();
        report_add_text(n, "name", node.name);
        report_add_text(n, "op", node.op);
        report_add_text(n, "by", node.by);
        report_add_text(n, "kernel", node.kernel);
        report_add_text(n, "why", report_why(&node, why, sizeof why));
        report_add_number(n, "ms", i < result->node_count ? result->node_ms[i] : node.ms);
        json_put_number(n, "calls", (double)node.calls);
        json_put_number(n, "dram_bytes", (double)node.dram_bytes);
        json_put_number(n, "flops", (double)node.flops);
        json_append(nodes, n);
    }
}

/* Takes over `root`. */
bool report_write_json(FILE *stream, json *root) {
    char *text = json_print(root);
    json_destroy(root);
    if (!text) return false;
    fprintf(stream, "%s\n", text);
    free(text);
    return true;
}

static void add_times(json *object, const run_times *times) {
    bool measured = times->count > 0;
    report_add_number(object, "first_ms", times->first_ms);
    json *steady = json_put_object(object, "steady_ms");
    report_add_number(steady, "p50", measured ? times->p50_ms : NAN);
    report_add_number(steady, "p90", measured ? times->p90_ms : NAN);
    report_add_number(steady, "p99", measured ? times->p99_ms : NAN);
    json_put_number(steady, "n", (double)times->count);
    report_add_number(object, "runs_per_second", measured ? times->runs_per_second : NAN);
}

static void add_tolerance(json *object, const run_case *c) {
    const uir_tolerance *t = &c->tolerance;
    json *tolerance = json_put_object(object, "tolerance");
    report_add_text(tolerance, "source", c->tolerance_source);
    report_add_number(tolerance, "rtol", t->rtol < 0 ? NAN : t->rtol);
    report_add_number(tolerance, "atol", t->atol);
    report_add_number(tolerance, "atol_relative_to_max", t->atol_relative_to_max < 0 ? NAN : t->atol_relative_to_max);
    report_add_number(tolerance, "integers", t->integers);
}

void report_add_case(json *cases, uir_model *model, uir_session *session, const run_case *c,
                     const case_result *result) {
    json *set = json_object();
    if (c->folder)
        report_add_text(set, "data", c->folder);
    else
        json_put_null(set, "data");
    json_put_bool(set, "agree", result->agree);
    add_times(set, &result->times);
    json_put_number(set, "peak_bytes", (double)result->statistics.peak_bytes);
    add_outputs(set, model, session, result);
    json_append(cases, set);
}

static void add_calls(json *root, const uir_run_statistics *statistics) {
    json *calls = json_put_object(root, "calls");
    json_put_number(calls, "native", (double)statistics->native_calls);
    json_put_number(calls, "vm", (double)statistics->vm_calls);
    json_put_number(calls, "vendor", (double)statistics->vendor_calls);
    json_put_number(calls, "host", (double)statistics->host_calls);
    json_put_number(calls, "interpreter", (double)statistics->interpreter_calls);
    json_put_number(root, "groups", (double)statistics->groups);
    json_put_number(root, "kernels", (double)statistics->kernels);
    json_put_number(root, "phases", (double)statistics->phases);
    json_put_number(root, "dram_bytes", (double)statistics->dram_bytes);
}

bool report_json(FILE *stream, const report_facts *facts, uir_model *model, uir_session *session, const run_case *c,
                 const case_result *result, json *cases) {
    json *root = json_object();
    uir_model_info info = query_info(model);
    const run_times *times = &result->times;
    json_put_number(root, "version", 1);
    report_add_text(root, "model", facts->model);
    report_add_text(root, "device", facts->device);
    report_add_text(root, "ran_on", result->statistics.ran_on);
    json_put_number(root, "threads", (double)result->statistics.threads);
    json_put_number(root, "compiled", info.compiled_kernels);
    add_calls(root, &result->statistics);
    report_add_number(root, "load_ms", info.load_ms);
    report_add_number(root, "compile_ms", info.compile_ms);
    report_add_number(root, "wait_ms", facts->wait_ms);
    add_times(root, times);
    json *sessions = json_put_object(root, "sessions");
    json_put_number(sessions, "n", times->sessions ? (double)times->sessions : 1);
    json_put_number(sessions, "threads",
                    times->sessions ? (double)times->session_threads : (double)result->statistics.threads);
    json_put_number(root, "peak_bytes", (double)result->statistics.peak_bytes);
    json_put_number(root, "cases", (double)facts->cases);
    json_put_bool(root, "agree", facts->agree);
    add_tolerance(root, c);
    add_outputs(root, model, session, result);
    saved_add_json(root, model, &result->saved);
    add_nodes(root, session, result);
    bool good = report_add_profile(root, session, result);
    json_put(root, "data_sets", cases);
    if (good) return report_write_json(stream, root);
    json_destroy(root);
    return false;
}

void report_support(FILE *stream, uir_context *context, uir_model *model) {
    json *root = json_object();
    json_put_number(root, "version", 1);
    json_put_bool(root, "supported", model != NULL);
    if (model) {
        uir_model_info info = query_info(model);
        json_put_number(root, "opset", (double)info.opset);
        json_put_number(root, "onnx_nodes", info.onnx_node_count);
        json_put_number(root, "primitives", info.primitive_count);
    }
    json *problems = json_put_array(root, "problems");
    for (size_t i = 0; i < uir_context_message_count(context); i++) {
        uir_message m = query_message(context, i);
        if (m.severity != UIR_SEVERITY_ERROR) continue;
        json *problem = json_object();
        report_add_text(problem, "status", uir_status_text(m.status));
        report_add_text(problem, "node", m.node);
        report_add_text(problem, "op", m.op);
        json_put_string(problem, "text", m.text); /* messages are printable as they come */
        json_append(problems, problem);
    }
    (void)!report_write_json(stream, root);
}
