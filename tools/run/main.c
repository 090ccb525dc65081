/* uir-run: loads a model, runs it on inputs, shows and compares the outputs. Uses the public API alone. */
#define _DEFAULT_SOURCE
#include "accuracy.h"
#include "debug.h"
#include "clock.h"
#include "info.h"
#include "json.h"
#include "output.h"
#include "printable.h"
#include "progress.h"
#include "reduce.h"
#include "report.h"
#include "query.h"
#include "saved.h"
#include "steady.h"
#include "text_file.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* What a signal needs: the sessions to stop, and which signal came. */
static uir_session *volatile running_sessions[STEADY_MAX_SESSIONS];
static volatile sig_atomic_t caught_signal;

static volatile bool cancelled; /* loads, waits, checks */

static void on_signal(int number) {
    if (caught_signal) _exit(128 + number); /* again: at once */
    caught_signal = number;
    cancelled = true;
    for (size_t i = 0; i < STEADY_MAX_SESSIONS; i++) {
        uir_session *session = running_sessions[i];
        if (session) uir_session_cancel(session);
    }
}

/* The answer is there and only the compile of kernels holds the process: so long it may still take to end as a whole.
 */
#define LINGER_US 500000
static volatile sig_atomic_t lingered, compiled_some;

/* The compile is broken off once something of it is done, which is kept: each start gets further. */
static void on_alarm(int number) {
    (void)number;
    lingered = 1;
    if (compiled_some) cancelled = true;
}

static bool show_progress(void *user, const char *stage, double fraction) {
    debug_stage(user, stage);
    progress_set_part(stage, fraction);
    compiled_some = fraction > 0;
    return lingered && compiled_some;
}

/* ---- one case ---- */
static uir_status run_once(uir_session *session, size_t slot, double *out_ms) {
    double start = now_ms();
    running_sessions[slot] = session;
    uir_status status = uir_session_run(session);
    running_sessions[slot] = NULL;
    *out_ms = now_ms() - start;
    /* A signal that came just before the run began was not seen by it. */
    return status == UIR_STATUS_OK && caught_signal ? UIR_STATUS_CANCELLED : status;
}

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

/* By what the file begins with, whatever its name. */
static bool is_package(const char *path) {
    static const char magic[] = UIR_PACKAGE_MAGIC;
    char start[sizeof magic - 1] = {0};
    struct stat s;
    FILE *file = stat(path, &s) == 0 && S_ISREG(s.st_mode) ? fopen(path, "rb") : NULL;
    bool same = file && fread(start, 1, sizeof start, file) == sizeof start && !memcmp(start, magic, sizeof start);
    if (file) fclose(file);
    return same;
}

/* The first node that no kernel computed, and why. */
static const char *explain_fallback(const uir_session *session, char *buffer, size_t capacity) {
    uir_node_statistics node;
    for (size_t i = 0; query_node(session, i, &node); i++) {
        if (strcmp(node.by, "host") != 0) continue;
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
        complain("please report it; without --no-fallback the model runs",
                 "--no-fallback: the compiler refused %u of its own kernels", info.fault_count);
        return UIR_STATUS_INTERNAL;
    }
    if (options->no_fallback && (statistics->host_calls || (statistics->interpreter_calls && *why))) {
        char first[800];
        complain(*why ? why : explain_fallback(session, first, sizeof first),
                 "--no-fallback: %llu nodes ran without a kernel",
                 (unsigned long long)(statistics->host_calls + statistics->interpreter_calls));
        return UIR_STATUS_UNSUPPORTED;
    }
    if (options->no_vm && statistics->vm_calls) {
        complain(options->trusted || options->trust.count || !is_package(options->model)
                     ? NULL
                     : "give --trusted to run the package's native code",
                 "--no-vm: %llu kernels ran on the VM", (unsigned long long)statistics->vm_calls);
        return UIR_STATUS_DEVICE_FAILED;
    }
    return UIR_STATUS_OK;
}

static void show_check(void *user, const uir_check_line *line) {
    const run_options *options = user;
    progress_hide();
    if (!line->agrees) {
        complain(NULL, "stage %s differs%s%s%s%s%s: %s", line->stage, *line->kernel ? ", kernel " : "", line->kernel,
                 *line->node ? ", node '" : "", line->node, *line->node ? "'" : "", line->text);
    } else if (!options->quiet && !options->json) {
        printf("check %-9s %6llu agree", line->stage, (unsigned long long)line->checked);
        if (line->skipped) printf(", %llu too large (--check=all)", (unsigned long long)line->skipped);
        putchar('\n');
    }
}

static bool show_check_progress(void *user, const char *stage, double fraction) {
    char what[64];
    (void)user;
    snprintf(what, sizeof what, "checking: %s", stage);
    progress_set_part(what, fraction);
    return false;
}

enum { MOST_OVERRIDES = 1024 };
/* Names of inputs with a default that this run has as inputs; they are the options' and `storage`'s. */
static struct {
    const char *names[MOST_OVERRIDES];
    size_t count;
    char *storage[MOST_OVERRIDES];
} overridden;

static uir_status check_case(uir_context *context, const run_options *options, const run_case *c) {
    uir_model_check_options check = {.struct_size = sizeof check,
                                     .device = options->device,
                                     .all = !strcmp(options->check, "all"),
                                     .rtol = options->has_rtol ? options->rtol : 0,
                                     .atol_relative = options->has_atol_relative ? options->atol_relative : 0,
                                     .cancel = &cancelled,
                                     .report = show_check,
                                     .progress = show_check_progress,
                                     .user = (void *)(uintptr_t)options,
                                     .external_data = options->external_data,
                                     .no_map = options->no_map,
                                     .limits = &options->limits,
                                     .exact = options->exact,
                                     .precision = options->precision,
                                     .strict = options->strict,
                                     .overrides = overridden.names,
                                     .override_count = overridden.count};
    progress_set("checking");
    return uir_model_check_file(context, options->model, c->inputs, c->input_count, &check);
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
    if (status == UIR_STATUS_OK && options->check) status = check_case(context, options, c);
    if (status == UIR_STATUS_OK) status = run_once(session, 0, &result->times.first_ms);
    if (status != UIR_STATUS_OK) return status;
    result->statistics = query_statistics(session);
    bool several = options->bench && options->sessions > 1;
    bool profiled = options->profile && !options->interpret;
    if (profiled || (options->bench && !several)) status = steady_measure(session, options, run_once, result);
    if (status == UIR_STATUS_OK && several) status = steady_measure_sessions(model, options, c, run_once, result);
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
    if (status == UIR_STATUS_OK) status = accuracy_measure(exact, session_options, run_once, session, c, result);
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

static uir_status run_cases(uir_context *context, uir_model *model, uir_model *exact, const run_options *options,
                            double wait_ms) {
    char **folders = NULL;
    size_t count = 0;
    uir_session *session = NULL;
    cJSON *sets = options->json ? cJSON_CreateArray() : NULL;
    report_facts facts = {options->model, options->device ? options->device : "cpu", wait_ms, 0, true};
    uir_session_options session_options = {.struct_size = sizeof session_options,
                                           .threads = (uint32_t)(options->threads < 1024 ? options->threads : 1024),
                                           .trace = options->trace != NULL,
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

/* Each data set until one shows a fault. */
static uir_status reduce(uir_context *context, uir_model *model, const run_options *options) {
    char **folders = NULL;
    size_t count = 0;
    uir_status status = case_folders(options, model, &folders, &count);
    for (size_t i = 0; i < (count ? count : 1) && status == UIR_STATUS_OK; i++) {
        run_case c = {0};
        status = case_load(context, model, options, count ? folders[i] : NULL, &c);
        if (status == UIR_STATUS_OK) status = reduce_case(context, model, options, &c, &cancelled);
        progress_hide();
        case_free(&c);
    }
    for (size_t i = 0; i < count; i++) free(folders[i]);
    free(folders);
    return status;
}

/* ---- actions without a run ---- */
static uir_status show_plan(uir_context *context, uir_model *model, const run_options *options) {
    uir_session *session = NULL;
    uir_cost cost = {.struct_size = sizeof cost};
    uir_roofline limits = {.struct_size = sizeof limits};
    uir_session_options session_options = {.struct_size = sizeof session_options,
                                           .threads = (uint32_t)(options->threads < 1024 ? options->threads : 1024),
                                           .limits = &options->limits};
    uir_status status = uir_session_create(model, &session_options, &session);
    if (status == UIR_STATUS_OK) status = case_cost(context, model, session, options, &cost);
    if (status == UIR_STATUS_OK) status = uir_session_measure_roofline(session, &limits);
    if (status == UIR_STATUS_OK && !options->quiet && !report_cost(stdout, session, &cost, &limits, options->json))
        status = UIR_STATUS_OUT_OF_MEMORY;
    uir_session_destroy(session);
    return status;
}

static uir_status clear_cache(const run_options *options) {
    uir_context *context = NULL;
    uint64_t bytes = 0;
    uir_status status = uir_context_create(NULL, &context);
    if (status == UIR_STATUS_OK) status = uir_context_clear_cache(context, options->cache, &bytes);
    if (status == UIR_STATUS_OK && !options->quiet) printf("freed %llu bytes\n", (unsigned long long)bytes);
    if (context) report_messages(context, options->quiet);
    uir_context_destroy(context);
    return status;
}

static uir_status check_options(const run_options *options) {
    const char *wrong = NULL, *word = "";
    if (!options->model)
        wrong = "no model given";
    else if (options->check && *options->check && strcmp(options->check, "all"))
        wrong = "--check accepts only the value all, not ", word = options->check;
    else if (options->reduce && (options->dump_source || options->source))
        wrong = "--reduce cannot be combined with --", word = options->source ? "source" : "dump-source";
    else if (options->force && !options->dump_source)
        wrong = "--force is for --dump-source: give both";
    else if (options->dump_source && options->source)
        wrong = "--dump-source cannot be combined with --source: give one of them";
    else if (options->reduce && (options->keep.count || options->compare_with))
        wrong = "--reduce cannot be combined with --", word = options->keep.count ? "keep" : "compare-with";
    else if ((options->reduce || options->check) && options->no_fusion)
        wrong = "--no-fusion cannot be combined with --check or --reduce";
    else if (options->format && strcmp(options->format, "npy") && strcmp(options->format, "pb"))
        wrong = "--format is npy or pb, not ", word = options->format;
    else if (options->has_iterations && !options->bench && !options->profile)
        wrong = "--iterations is for --bench or --profile: give one of them";
    else if (options->has_iterations && options->iterations == 0)
        wrong = "--iterations is at least 1";
    else if (options->has_sessions && !options->bench)
        wrong = "--sessions is for --bench: give both";
    else if (options->device_file && !options->interpret)
        wrong = "--device-file is for --interpret: give both";
    else if (options->interpret &&
             (options->no_vm || options->source || options->dump_source || options->check || options->reduce))
        wrong = "--interpret cannot be combined with --no-vm, --source, --dump-source, --check or --reduce";
    else if (options->accuracy && !options->precision)
        wrong = "--accuracy is for --precision: give both";
    else if (options->has_sessions && (options->sessions == 0 || options->sessions > STEADY_MAX_SESSIONS))
        wrong = "--sessions is 1 to 256";
    if (!wrong) return UIR_STATUS_OK;
    complain("try: " PROGRAM " --help", "%s%s", wrong, word);
    return UIR_STATUS_INVALID_ARGUMENT;
}

static void forget_overridden(void) {
    for (size_t i = 0; i < overridden.count; i++) free(overridden.storage[i]);
    overridden.count = 0;
}

/* The model once more, when the data turn out to be for more than its inputs. */
static uir_status load_overridden(uir_context *context, const run_options *options, uir_model_options *model_options,
                                  uir_model **out_model) {
    const char *found[MOST_OVERRIDES];
    for (size_t i = 0; i < options->overrides.count && i < MOST_OVERRIDES; i++)
        overridden.names[overridden.count++] = options->overrides.items[i];
    model_options->overrides = overridden.names;
    model_options->override_count = overridden.count;
    uir_status status = uir_model_load_file(context, options->model, model_options, out_model);
    if (status != UIR_STATUS_OK || options->info) return status;
    size_t count = case_find_overrides(*out_model, options, found, MOST_OVERRIDES - overridden.count);
    if (!count) return status;
    for (size_t i = 0; i < count; i++) {
        char *copy = strdup(found[i]);
        if (!copy) return UIR_STATUS_OUT_OF_MEMORY;
        overridden.storage[overridden.count] = copy;
        overridden.names[overridden.count++] = copy;
    }
    uir_model_destroy(*out_model);
    *out_model = NULL;
    model_options->override_count = overridden.count;
    return uir_model_load_file(context, options->model, model_options, out_model);
}

static uir_status load(uir_context *context, const run_options *options, bool package, uir_model_options *model_options,
                       uir_model **out_model) {
    uir_package_open_options open_options = {.struct_size = sizeof open_options,
                                             .trusted = options->trusted,
                                             .device = options->device,
                                             .no_map = options->no_map,
                                             .limits = &options->limits,
                                             .cancel = &cancelled,
                                             .trust = options->trust.items,
                                             .trust_count = options->trust.count};
    if (package && options->reduce) {
        complain("reduce the model it was made from", "--reduce: a package has no nodes to leave out");
        return UIR_STATUS_UNSUPPORTED;
    }
    if (package && options->interpret) {
        complain("give the model it was made from", "--interpret: a package has no kernels for other devices");
        return UIR_STATUS_UNSUPPORTED;
    }
    if (package && options->check) {
        complain("check the model it was made from", "--check: a package has no stages to compare");
        return UIR_STATUS_UNSUPPORTED;
    }
    if (package && (options->keep.count || options->no_fusion || options->exact || options->precision ||
                    options->overrides.count)) {
        complain("give the model it was made from", "%s: the kernels of a package are fixed when it is made",
                 options->exact             ? "--exact"
                 : options->overrides.count ? "--override"
                 : options->precision       ? "--precision"
                 : options->no_fusion       ? "--no-fusion"
                                            : "--keep");
        return UIR_STATUS_UNSUPPORTED;
    }
    if (package && (options->dump_source || options->source)) {
        complain("give the model it was made from", "%s: a package has no sources to compile",
                 options->source ? "--source" : "--dump-source");
        return UIR_STATUS_UNSUPPORTED;
    }
    if (package && model_options->debug->dump) {
        complain("give the model it was made from", "UIR_DUMP, UIR_DEBUG: a package has no stages to print");
        return UIR_STATUS_UNSUPPORTED;
    }
    if (package && options->external_data) {
        complain("leave it out", "--external-data: a package holds all of its model's data");
        return UIR_STATUS_INVALID_ARGUMENT;
    }
    if (!package && options->trust.count) {
        complain("give a signed package, or leave out --trust",
                 "--trust: the file is not a package, and only packages are signed");
        return UIR_STATUS_BAD_FILE;
    }
    if (package) return uir_model_open_package_file(context, options->model, &open_options, out_model);
    return load_overridden(context, options, model_options, out_model);
}

/* Said once: much faster is possible, at the price of trust. */
static void advise_trust(const uir_model *model, const run_options *options) {
    uir_native_code code = {.struct_size = sizeof code};
    if (options->trusted || options->trust.count || options->quiet) return;
    for (size_t i = 0; uir_model_get_native_code(model, i, &code) == UIR_STATUS_OK; i++) {
        if (!code.runs_here) continue;
        fprintf(stderr, PROGRAM ": note: the VM runs the package, many times slower than its native code\n"
                                "  give --trusted if you trust the builder of the package\n");
        return;
    }
}

enum { WAITED_MS = 50 }; /* loading from the cache takes less */

/* By the first of the context's messages, which are forgotten. Where the load has said it, it is not said again. */
static void warn_of_vm(uir_context *context, const uir_model *model, const run_options *options) {
    const char *why = uir_context_message_count(context) ? uir_context_get_message_text(context, 0) : "";
    bool said = *query_info(model).native_why != 0;
    if (!said) progress_hide();
    if (!said && !options->quiet)
        fprintf(stderr,
                PROGRAM ": warning: the VM ran the model because its kernels could not be compiled and loaded: %s\n",
                why);
    uir_context_clear_messages(context);
}

/* What is measured is what all later runs will be. Returns how long the kernels were waited for, here or by the load
 * that began at `start`; 0 where they were there. */
static double wait_for_kernels(uir_context *context, uir_model *model, const run_options *options, double start) {
    uir_model_info info = query_info(model);
    if (!options->bench && !options->profile && !options->no_vm) return 0;
    report_messages(context, options->quiet);
    progress_set("compiling the kernels");
    if (uir_model_wait(model) != UIR_STATUS_OK && !caught_signal) warn_of_vm(context, model, options);
    progress_hide();
    double waited = now_ms() - start - info.load_ms - info.compile_ms;
    return info.compiled_kernels < query_info(model).compiled_kernels || waited > WAITED_MS ? waited : 0;
}

/* The VM has answered; the next start finds the kernels compiled, or as many of them as there was time for. */
static void finish_compiling(uir_context *context, uir_model *model, const run_options *options) {
    (void)output_flush();
    report_messages(context, options->quiet);
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = LINGER_US}, NULL);
    compiled_some = 0; /* what the load told was of the load */
    uir_status status = uir_model_wait(model);
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = 0}, NULL);
    if (status == UIR_STATUS_OK || caught_signal) return;
    if (status != UIR_STATUS_CANCELLED || *query_info(model).native_why) {
        warn_of_vm(context, model, options);
        return;
    }
    progress_hide();
    uir_context_clear_messages(context);
    if (!options->quiet)
        fprintf(stderr, PROGRAM ": note: the VM ran the model, and not all of its kernels are compiled yet: the next "
                                "start continues the compile\n  give --no-vm to wait for the kernels\n");
}

/* "all", or names; the list is the options' own. */
static uir_status take_keep(const run_options *options, uir_model_options *model_options) {
    for (size_t i = 0; i < options->keep.count; i++) {
        if (!*options->keep.items[i]) {
            complain(NULL, "--keep needs the name of a node or value, or all");
            return UIR_STATUS_INVALID_ARGUMENT;
        }
        if (!strcmp(options->keep.items[i], "all"))
            model_options->keep_all = true;
        else
            options->keep.items[model_options->keep_count++] = options->keep.items[i];
    }
    model_options->keep = options->keep.items;
    return UIR_STATUS_OK;
}

/* The model in f32, where --accuracy asks how far from it the results are and they are. */
static uir_status load_exact(uir_context *context, const run_options *options, const uir_model *model,
                             const uir_model_options *model_options, uir_model **out_exact) {
    uir_model_options exact = *model_options;
    uir_debug_options debug = *model_options->debug;
    uir_model_info info = query_info(model);
    if (!options->accuracy || !accuracy_is_lowered(&info)) return UIR_STATUS_OK;
    progress_set("loading the model in f32");
    exact.precision = NULL;
    debug.dump_source = debug.source = NULL;
    exact.debug = &debug;
    return uir_model_load_file(context, options->model, &exact, out_exact);
}

static uir_status run(const run_options *options) {
    uir_status status = check_options(options);
    if (status != UIR_STATUS_OK) return status;
    uir_context *context = NULL;
    uir_model *model = NULL, *exact = NULL;
    char *records = NULL, *described = NULL;
    status = output_check_place("--save", options->save);
    if (status == UIR_STATUS_OK) status = output_check_place("--trace", options->trace);
    if (status == UIR_STATUS_OK) status = output_check_place("--dump-source", options->dump_source);
    if (status == UIR_STATUS_OK) status = output_check_place("--reduce", options->reduce);
    if (status != UIR_STATUS_OK) return status;
    if (options->records) status = text_file_read("--records", options->records, &records);
    if (status == UIR_STATUS_OK && options->device_file)
        status = text_file_read("--device-file", options->device_file, &described);
    if (status != UIR_STATUS_OK) return status;
    status = uir_context_create(NULL, &context);
    if (status != UIR_STATUS_OK) {
        complain(NULL, "%s", uir_status_text(status));
        return status;
    }
    status = uir_context_set_value_limits(context, &options->limits);
    bool debugging = getenv("UIR_DEBUG") || getenv("UIR_DUMP"); /* which write to the same terminal */
    if (!options->quiet && !debugging) progress_start();
    debug_state debug;
    uir_debug_options debugged = {.struct_size = sizeof debugged,
                                  .dump_source = options->dump_source,
                                  .source = options->source,
                                  .records = records,
                                  .overwrite_source = options->force};
    uir_model_options model_options = {.struct_size = sizeof model_options,
                                       .progress = show_progress,
                                       .progress_user = &debug,
                                       .debug = &debugged,
                                       .cancel = &cancelled,
                                       .limits = &options->limits};
    model_options.describe = options->info;
    model_options.device = options->can_run || options->reduce || options->info ? "interpreter" : options->device;
    model_options.interpret = options->interpret && !options->can_run && !options->info;
    model_options.device_text = described;
    model_options.device_text_name = options->device_file;
    model_options.wait = options->no_vm;
    model_options.cache = options->cache;
    model_options.no_cache = options->no_cache;
    model_options.external_data = options->external_data;
    model_options.no_map = options->no_map;
    model_options.no_fusion = options->no_fusion;
    model_options.exact = options->exact;
    model_options.strict = options->strict;
    model_options.precision = options->can_run || options->reduce || options->info ? NULL : options->precision;
    if (status == UIR_STATUS_OK) status = take_keep(options, &model_options);
    model_options.cache_limit = (uint64_t)options->cache_limit;
    if (status == UIR_STATUS_OK) status = debug_init(&debug, &debugged);
    bool package = is_package(options->model), waited = false;
    double start = now_ms();
    if (status == UIR_STATUS_OK && options->dump_source && !package)
        status = saved_make_folder("--dump-source", options->dump_source);
    if (status == UIR_STATUS_OK) status = load(context, options, package, &model_options, &model);
    progress_hide();
    if (options->info) {
        bool told = status != UIR_STATUS_OK || info_report(context, model, options->model, options->json);
        if (!told) status = UIR_STATUS_OUT_OF_MEMORY;
        if (status == UIR_STATUS_OK) uir_context_clear_messages(context); /* which are told with it */
    } else if (options->can_run && options->json) {
        report_support(stdout, context, status == UIR_STATUS_OK ? model : NULL);
    } else if (status == UIR_STATUS_OK && options->can_run) {
        uir_model_info info = query_info(model);
        if (!options->quiet && package)
            printf("supported: a package of %u kernels, by %s\n", info.kernel_count, info.device);
        else if (!options->quiet)
            printf("supported: %u ONNX nodes, %u primitives, opset %lld\n", info.onnx_node_count, info.primitive_count,
                   (long long)info.opset);
    } else if (status == UIR_STATUS_OK && options->reduce) {
        status = reduce(context, model, options);
        if (caught_signal) status = UIR_STATUS_CANCELLED;
    } else if (status == UIR_STATUS_OK && options->plan && !options->interpret) {
        status = show_plan(context, model, options);
    } else if (status == UIR_STATUS_OK) {
        advise_trust(model, options);
        double wait_ms = wait_for_kernels(context, model, options, start);
        waited = options->bench || options->profile;
        status = load_exact(context, options, model, &model_options, &exact);
        progress_hide();
        if (caught_signal) status = UIR_STATUS_CANCELLED;
        if (status == UIR_STATUS_OK) status = run_cases(context, model, exact, options, wait_ms);
        bool answered = (status == UIR_STATUS_OK || status == UIR_STATUS_DIFFERENT) && !caught_signal;
        if (answered && !options->no_cache && !waited) finish_compiling(context, model, options);
        if (caught_signal) status = UIR_STATUS_CANCELLED;
    }
    progress_stop();
    if (caught_signal) uir_context_clear_messages(context); /* who sent it knows */
    bool said = uir_context_message_count(context) > 0 || *first_error();
    report_messages(context, options->quiet);
    if (status != UIR_STATUS_OK && !said && !options->reduce && !caught_signal)
        complain(NULL, "%s", uir_status_text(status));
    uir_model_destroy(exact);
    uir_model_destroy(model);
    uir_context_destroy(context);
    forget_overridden();
    free(records);
    free(described);
    return status;
}

/* Of a command line that could not be read to its end. */
static bool has_word(int argc, char **argv, const char *word) {
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], word)) return true;
    return false;
}

int main(int argc, char **argv) {
    run_options options;
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    uir_status status = options_parse(argc, argv, &options);
    if (status == UIR_STATUS_OK) {
        if (options.help) {
            options_print_help(stdout, terminal_width(STDOUT_FILENO));
        } else if (options.version) {
            if (!report_version(stdout, options.json)) status = UIR_STATUS_OUT_OF_MEMORY;
        } else if (options.list_devices) {
            if (!report_devices(stdout, options.json)) status = UIR_STATUS_OUT_OF_MEMORY;
        } else if (options.cache_clear) {
            status = clear_cache(&options);
        } else if (options.list_ops) {
            if (!report_ops(stdout, options.json)) status = UIR_STATUS_OUT_OF_MEMORY;
        } else {
            status = run(&options);
        }
    }
    bool wants_json = JSON_IS_THERE && (options.json || (status != UIR_STATUS_OK && has_word(argc, argv, "--json")));
    if (wants_json && status != UIR_STATUS_OK && !report_has_json() && !caught_signal) report_error(stdout, status);
    options_free(&options);
    return output_end(status, caught_signal);
}
