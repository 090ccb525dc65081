/* uir-run: loads a model, runs it on inputs, shows and compares the outputs. Uses the public API alone. */
#define _DEFAULT_SOURCE
#include "cases.h"
#include "clock.h"
#include "debug.h"
#include "info.h"
#include "json.h"
#include "load.h"
#include "output.h"
#include "printable.h"
#include "progress.h"
#include "reduce.h"
#include "report.h"
#include "query.h"
#include "saved.h"
#include "signals.h"
#include "steady.h"
#include "text_file.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* The answer is there and only the compile of kernels holds the process: so long it may still take to end as a whole.
 */
#define LINGER_US 500000
static volatile sig_atomic_t lingered, compiled_some;

/* The compile is broken off once something of it is done, which is kept: each start gets further. */
static void on_alarm(int number) {
    (void)number;
    lingered = 1;
    if (compiled_some) signals_cancelled = true;
}

static bool show_progress(void *user, const char *stage, double fraction) {
    debug_stage(user, stage);
    progress_set_part(stage, fraction);
    compiled_some = fraction > 0;
    return lingered && compiled_some;
}

/* Each data set until one shows a fault. */
static uir_status reduce(uir_context *context, uir_model *model, const run_options *options) {
    char **folders = NULL;
    size_t count = 0;
    uir_status status = case_folders(options, model, &folders, &count);
    for (size_t i = 0; i < (count ? count : 1) && status == UIR_STATUS_OK; i++) {
        run_case c = {0};
        status = case_load(context, model, options, count ? folders[i] : NULL, &c);
        if (status == UIR_STATUS_OK) status = reduce_case(context, model, options, &c, &signals_cancelled);
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
    uir_bus_cost bus = {.struct_size = sizeof bus};
    uir_roofline limits = {.struct_size = sizeof limits};
    uir_session_options session_options = {.struct_size = sizeof session_options,
                                           .threads = (uint32_t)(options->threads < 1024 ? options->threads : 1024),
                                           .limits = &options->limits};
    uir_status status = uir_session_create(model, &session_options, &session);
    if (status == UIR_STATUS_OK) status = case_cost(context, model, session, options, &cost);
    if (status == UIR_STATUS_OK) status = uir_session_get_bus_cost(session, false, &bus);
    if (status == UIR_STATUS_OK) status = uir_session_measure_roofline(session, &limits);
    if (status == UIR_STATUS_OK && !options->quiet &&
        !report_cost(stdout, session, &cost, &bus, &limits, options->json))
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

static uir_status list_devices(const run_options *options) {
    uir_context *context = NULL;
    uir_device_list *list = NULL;
    uir_status status = uir_context_create(NULL, &context);
    if (status == UIR_STATUS_OK) status = uir_device_list_create(context, &list);
    if (status == UIR_STATUS_OK && !report_devices(stdout, list, options->json)) status = UIR_STATUS_OUT_OF_MEMORY;
    if (context) report_messages(context, options->quiet);
    uir_device_list_destroy(list);
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
    if (uir_model_wait(model) != UIR_STATUS_OK && !signals_caught) warn_of_vm(context, model, options);
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
    if (status == UIR_STATUS_OK || signals_caught) return;
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
                                       .cancel = &signals_cancelled,
                                       .limits = &options->limits};
    model_options.describe = options->info;
    model_options.device = options->can_run || options->reduce || options->info ? "interpreter" : options->device;
    model_options.interpret = options->interpret && !options->can_run && !options->info;
    model_options.device_text = described;
    model_options.device_text_name = options->device_file;
    model_options.no_fallback = options->no_fallback;
    model_options.wait = options->no_vm;
    model_options.cache = options->cache;
    model_options.no_cache = options->no_cache;
    model_options.external_data = options->external_data;
    model_options.no_map = options->no_map;
    model_options.no_fusion = options->no_fusion;
    model_options.exact = options->exact;
    model_options.strict = options->strict;
    model_options.precision = options->can_run || options->reduce || options->info ? NULL : options->precision;
    if (status == UIR_STATUS_OK) status = load_take_keep(options, &model_options);
    model_options.cache_limit = (uint64_t)options->cache_limit;
    if (status == UIR_STATUS_OK) status = debug_init(&debug, &debugged);
    bool package = load_is_package(options->model), waited = false;
    double start = now_ms();
    if (status == UIR_STATUS_OK && options->dump_source && !package)
        status = saved_make_folder("--dump-source", options->dump_source);
    if (status == UIR_STATUS_OK) status = load_model(context, options, package, &model_options, &model);
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
        if (signals_caught) status = UIR_STATUS_CANCELLED;
    } else if (status == UIR_STATUS_OK && options->plan && !options->interpret) {
        status = show_plan(context, model, options);
    } else if (status == UIR_STATUS_OK) {
        report_messages(context, options->quiet); /* of the load: making data clears others */
        advise_trust(model, options);
        double wait_ms = wait_for_kernels(context, model, options, start);
        waited = options->bench || options->profile;
        status = load_exact(context, options, model, &model_options, &exact);
        progress_hide();
        if (signals_caught) status = UIR_STATUS_CANCELLED;
        if (status == UIR_STATUS_OK) status = cases_run(context, model, exact, options, wait_ms);
        bool answered = (status == UIR_STATUS_OK || status == UIR_STATUS_DIFFERENT) && !signals_caught;
        if (answered && !options->no_cache && !waited) finish_compiling(context, model, options);
        if (signals_caught) status = UIR_STATUS_CANCELLED;
    }
    progress_stop();
    if (signals_caught) uir_context_clear_messages(context); /* who sent it knows */
    bool said = uir_context_message_count(context) > 0 || *first_error();
    report_messages(context, options->quiet);
    if (status != UIR_STATUS_OK && !said && !options->reduce && !signals_caught)
        complain(NULL, "%s", uir_status_text(status));
    uir_model_destroy(exact);
    uir_model_destroy(model);
    uir_context_destroy(context);
    load_forget_overridden();
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
    struct sigaction action = {.sa_handler = signals_on_signal};
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
            status = list_devices(&options);
        } else if (options.cache_clear) {
            status = clear_cache(&options);
        } else if (options.list_ops) {
            if (!report_ops(stdout, options.json)) status = UIR_STATUS_OUT_OF_MEMORY;
        } else {
            status = run(&options);
        }
    }
    bool wants_json = JSON_IS_THERE && (options.json || (status != UIR_STATUS_OK && has_word(argc, argv, "--json")));
    if (wants_json && status != UIR_STATUS_OK && !report_has_json() && !signals_caught) report_error(stdout, status);
    options_free(&options);
    return output_end(status, signals_caught);
}
