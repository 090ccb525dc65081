/* Runs a loaded model on each of its data sets: compares, saves and shows the outputs, and explains a failure. */
#define _POSIX_C_SOURCE 200809L
#include "cases.h"
#include "accuracy.h"
#include "json.h"
#include "load.h"
#include "printable.h"
#include "progress.h"
#include "query.h"
#include "report.h"
#include "saved.h"
#include "signals.h"
#include "steady.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uir_status compare_outputs(uir_session *session, const run_case *c, case_result *result) {
    result->agree = true;
    result->comparisons = calloc(c->output_count + 1, sizeof *result->comparisons);
    result->compared = calloc(c->output_count + 1, sizeof *result->compared);
    if (!result->comparisons || !result->compared) return UIR_STATUS_OUT_OF_MEMORY;
    for (size_t i = 0; i < c->output_count; i++) {
        uir_value *value = NULL;
        if (!c->expected[i]) continue;
        uir_status status = uir_session_get_output(session, i, &value);
        if (status != UIR_STATUS_OK) return status;
        result->comparisons[i] = query_comparison(value, c->expected[i], c->tolerance);
        result->compared[i] = true;
        result->agree &= result->comparisons[i].agree;
    }
    return UIR_STATUS_OK;
}

/* The first node that no kernel of the device computed, and why; NULL: none. */
static const char *explain_fallback(const uir_session *session, char *buffer, size_t capacity) {
    uir_node_statistics node;
    for (size_t i = 0; query_node(session, i, &node); i++) {
        if (!node.is_fallback) continue;
        snprintf(buffer, capacity, "node '%s' (%s): %s", node.name, node.op, node.why);
        return buffer;
    }
    return NULL;
}

/* What the options forbid. */
static uir_status check_calls(const run_options *options, uir_model *model, const uir_session *session,
                              const uir_run_statistics *statistics) {
    const uir_model_info info = query_info(model);
    const char *why = info.why;
    if (options->no_fallback && info.fault_count) {
        complain("report this fault; leave out --no-fallback to run the model",
                 "--no-fallback: the compiler refused %u of its own kernels", info.fault_count);
        return UIR_STATUS_INTERNAL;
    }
    char text[800];
    const char *first = options->no_fallback ? explain_fallback(session, text, sizeof text) : NULL;
    if (options->no_fallback && (first || (statistics->interpreter_calls && *why))) {
        complain(*why ? why : first, "--no-fallback: %llu nodes ran without a kernel",
                 (unsigned long long)(statistics->host_calls + statistics->interpreter_calls));
        return UIR_STATUS_UNSUPPORTED;
    }
    if (options->no_vm && statistics->vm_calls) {
        complain(options->trusted || options->trust.count || !load_is_package(options->model)
                     ? NULL
                     : "give --trusted to run the package's native code",
                 "--no-vm: %llu kernels ran on the VM", (unsigned long long)statistics->vm_calls);
        return UIR_STATUS_DEVICE_FAILED;
    }
    return UIR_STATUS_OK;
}

static uir_status save_trace(const uir_model *model, const uir_session *session, const char *path) {
    FILE *file = fopen(path, "w");
    bool written = file && report_trace(file, model, session);
    if (file && fclose(file) != 0) written = false;
    if (written) return UIR_STATUS_OK;
    complain(NULL, "--trace '%s': cannot write it: %s", path, strerror(errno));
    return UIR_STATUS_IO_FAILED;
}

static uir_status make_output_folder(const run_options *options, char *const *folders, size_t count, size_t at,
                                     char *buffer, size_t capacity) {
    uir_status status = saved_folder("--save", options->save, folders, count, at, buffer, capacity);
    if (status == UIR_STATUS_OK) status = saved_make_folder("--save", options->save);
    return status == UIR_STATUS_OK && count > 1 ? saved_make_folder("--save", buffer) : status;
}

/* `exact`: the model in f32, to measure its accuracy by, or NULL. */
static uir_status run_case_in(uir_context *context, uir_model *model, uir_model *exact,
                              const uir_session_options *session_options, uir_session *session,
                              const run_options *options, run_case *c, const char *output_folder,
                              const char *other_folder, case_result *result) {
    uir_status status = UIR_STATUS_OK;
    result->folder = c->folder;
    for (size_t i = 0; i < c->input_count && status == UIR_STATUS_OK; i++)
        status = uir_session_set_input(session, i, c->inputs[i]);
    if (status == UIR_STATUS_OK && options->check) status = load_check_case(context, options, c);
    if (status == UIR_STATUS_OK) status = signals_run_once(session, 0, &result->times.first_ms);
    if (status != UIR_STATUS_OK) return status;
    result->statistics = query_statistics(session);
    bool several = options->bench && options->sessions > 1;
    bool profiled = options->profile && !options->interpret;
    if (profiled || (options->bench && !several)) status = steady_measure(session, options, signals_run_once, result);
    if (status == UIR_STATUS_OK && several)
        status = steady_measure_sessions(model, options, c, signals_run_once, result);
    if (status != UIR_STATUS_OK) return status;
    result->statistics = query_statistics(session);
    if (profiled && status == UIR_STATUS_OK) {
        progress_set("measuring the machine's limits");
        UIR_INIT(&result->limits);
        status = uir_session_measure_roofline(session, &result->limits);
        if (status != UIR_STATUS_OK) return status;
    }
    if ((options->json || options->profile) && result->statistics.native_calls + result->statistics.vm_calls) {
        status = uir_session_count_traffic(session); /* of slices; until then, of tensors */
        if (status != UIR_STATUS_OK) return status;
        result->statistics = query_statistics(session);
    }
    status = check_calls(options, model, session, &result->statistics);
    if (status == UIR_STATUS_OK) status = compare_outputs(session, c, result);
    if (status == UIR_STATUS_OK)
        status = accuracy_measure(exact, session_options, signals_run_once, session, c, result);
    if (status == UIR_STATUS_OK && options->save)
        status =
            saved_write(context, model, session, options->format && !strcmp(options->format, "npy"), output_folder);
    if (status == UIR_STATUS_OK && options->compare_with) {
        status = saved_compare(context, model, session, &c->tolerance, other_folder, &result->saved);
        result->agree &= !result->saved.differing;
    }
    if (status == UIR_STATUS_OK && options->trace) status = save_trace(model, session, options->trace);
    return status;
}

static void show_case(uir_model *model, uir_session *session, const run_options *options, const run_case *c,
                      const case_result *result, double wait_ms) {
    if (options->quiet || options->json) return;
    if (options->plan) {
        (void)report_machine(session, result->statistics.ran_on);
        return;
    }
    report_inputs(model, c);
    report_outputs(model, session, c, result);
    accuracy_report(model, result);
    report_times(model, result, wait_ms);
    if (options->explain) report_nodes(model, session), report_layouts(model);
    if (options->profile && options->interpret)
        (void)report_machine(session, result->statistics.ran_on);
    else if (options->profile)
        report_profile(model, session, result);
}

/* Whether a message is about the input: it has its name in quotes. */
static bool names_input(const uir_context *context, const uir_model *model, size_t index) {
    char quoted[300];
    snprintf(quoted, sizeof quoted, "'%s'", uir_model_get_input_name(model, index));
    for (size_t i = 0; i < uir_context_message_count(context); i++)
        if (strstr(uir_context_get_message_text(context, i), quoted)) return true;
    return false;
}

/* The cause, and behind it what the messages do not know: where the inputs came from. What was made up is told where
 * the cause may lie in it: not where the messages name inputs and none of them was. */
static void explain_failure(uir_context *context, const uir_model *model, const run_options *options, uir_status status,
                            const run_case *c, bool loaded) {
    bool made_up = false, named = false, named_made_up = false;
    for (size_t i = 0; c->sources && i < c->input_count; i++) {
        bool is_named = names_input(context, model, i);
        made_up |= c->sources[i] == SOURCE_RANDOM;
        named |= is_named;
        named_made_up |= is_named && c->sources[i] == SOURCE_RANDOM;
    }
    /* A file that turns out to be bad in a run is not the data's. */
    if (status != UIR_STATUS_BAD_DATA && (status != UIR_STATUS_BAD_FILE || loaded)) return;
    report_messages(context, options->quiet);
    if (c->folder && loaded) remark(NULL, "the inputs are from '%s'", c->folder);
    if (made_up && (named_made_up || !named))
        remark("choose other sizes by --dim NAME=N or --shape NAME=AxBxC",
               "inputs without a file were made up, with free dims set to 1");
}

static void announce(size_t index, size_t count) {
    char what[64];
    snprintf(what, sizeof what, count > 1 ? "running data set %zu of %zu" : "running", index + 1, count);
    progress_set(what);
}

uir_status cases_run(uir_context *context, uir_model *model, uir_model *exact, const run_options *options,
                     double wait_ms) {
    char **folders = NULL;
    size_t count = 0;
    uir_session *session = NULL;
    cJSON *sets = options->json ? cJSON_CreateArray() : NULL;
    report_facts facts = {options->model, options->device ? options->device : uir_device_name(0), wait_ms, 0, true};
    uir_session_options session_options = {.struct_size = sizeof session_options,
                                           .threads = (uint32_t)(options->threads < 1024 ? options->threads : 1024),
                                           .trace = options->trace != NULL,
                                           .queue_times = options->profile,
                                           .estimate = options->interpret && (options->plan || options->profile),
                                           .limits = &options->limits};
    uir_status status = case_folders(options, model, &folders, &count);
    if (status == UIR_STATUS_OK) status = uir_session_create(model, &session_options, &session);
    size_t cases = facts.cases = count ? count : 1;
    for (size_t i = 0; i < cases && status == UIR_STATUS_OK; i++) {
        run_case c = {0};
        case_result result = {0};
        char output_folder[4096] = "", other_folder[4096] = "";
        status = case_load(context, model, options, count ? folders[i] : NULL, &c);
        bool loaded = status == UIR_STATUS_OK;
        if (status == UIR_STATUS_OK && options->save)
            status = make_output_folder(options, folders, count, i, output_folder, sizeof output_folder);
        if (status == UIR_STATUS_OK && options->compare_with)
            status = saved_folder("--compare-with", options->compare_with, folders, count, i, other_folder,
                                  sizeof other_folder);
        announce(i, cases);
        if (status == UIR_STATUS_OK)
            status = run_case_in(context, model, exact, &session_options, session, options, &c, output_folder,
                                 other_folder, &result);
        progress_hide();
        if (status != UIR_STATUS_OK) explain_failure(context, model, options, status, &c, loaded);
        if (status == UIR_STATUS_OK) {
            facts.agree &= result.agree;
            show_case(model, session, options, &c, &result, i == 0 ? wait_ms : 0);
            if (sets) report_add_case(sets, model, session, &c, &result);
            if (sets && i + 1 == cases) {
                if (!report_json(stdout, &facts, model, session, &c, &result, sets)) status = UIR_STATUS_OUT_OF_MEMORY;
                sets = NULL;
            }
            saved_report(model, &result.saved, options->quiet || options->json);
            if (!result.agree) {
                for (size_t k = 0; k < c.output_count; k++) {
                    if (!result.compared[k] || result.comparisons[k].agree) continue;
                    char text[480];
                    report_describe(&result.comparisons[k], text, sizeof text);
                    complain(NULL, "output '%s' of %s: %s", uir_model_get_output_name(model, k),
                             c.folder ? c.folder : "the run", text);
                }
            }
        }
        free(result.comparisons);
        free(result.compared);
        free(result.node_ms);
        case_free(&c);
    }
    uir_session_destroy(session);
    cJSON_Delete(sets);
    for (size_t i = 0; i < count; i++) free(folders[i]);
    free(folders);
    return status == UIR_STATUS_OK && !facts.agree ? UIR_STATUS_DIFFERENT : status;
}
