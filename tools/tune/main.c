/* uir-tune: measures other tiles for a model's heaviest kernels, and keeps the best. Uses the public API alone. */
#define _POSIX_C_SOURCE 200809L
#include "tools/run/data.h"
#include "tools/run/output.h"
#include "tools/run/printable.h"
#include "tools/run/progress.h"
#include "tools/run/query.h"
#include "tools/run/text_file.h"
#include "tools/run/units.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t caught_signal;
static volatile bool cancelled;

static void on_signal(int number) {
    if (caught_signal) _exit(128 + number);
    caught_signal = number;
    cancelled = true;
}

/* What the library's calls back work on. */
typedef struct tuning {
    uir_context *context;
    const run_options *options;
    run_case inputs;
    bool has_inputs, saved;
} tuning;

static bool show_progress(void *user, const char *stage, double fraction) {
    (void)user;
    progress_set_part(stage, fraction);
    return false;
}

static uir_status load_inputs(tuning *t, uir_model *model) {
    char **folders = NULL;
    size_t count = 0;
    uir_status status = case_folders(t->options, model, &folders, &count);
    if (status == UIR_STATUS_OK)
        status = case_load(t->context, model, t->options, count ? folders[0] : NULL, &t->inputs);
    for (size_t i = 0; i < count; i++) free(folders[i]);
    free(folders);
    return status;
}

/* The same values for every session. */
static uir_status bind(void *user, uir_model *model, uir_session *session) {
    tuning *t = user;
    uir_status status = UIR_STATUS_OK;
    if (!t->has_inputs) status = load_inputs(t, model);
    t->has_inputs = true;
    for (size_t i = 0; i < t->inputs.input_count && status == UIR_STATUS_OK; i++)
        status = uir_session_set_input(session, i, t->inputs.inputs[i]);
    return status;
}

static void show(void *user, const uir_tune_line *line) {
    const tuning *t = user;
    char name[100];
    if (t->options->quiet) return;
    progress_hide();
    char before[UNITS_ROOM], after[UNITS_ROOM];
    printf("  %-24s %9s", printable(line->kernel, name, sizeof name),
           units_time(line->before_ms, before, sizeof before));
    if (line->kept)
        printf(" to %9s, %.2f times as fast", units_time(line->after_ms, after, sizeof after),
               line->before_ms / line->after_ms);
    else
        printf(", unchanged");
    printf(" (%llu tiles measured)\n", (unsigned long long)line->tried);
}

static void keep(void *user, const char *records, size_t length) {
    tuning *t = user;
    const char *path = t->options->save;
    if (!path) return;
    FILE *file = fopen(path, "w");
    bool written = file && fwrite(records, 1, length, file) == length;
    if (file && fclose(file) != 0) written = false;
    if (written)
        t->saved = true;
    else
        complain(NULL, "--save '%s': cannot write it: %s", path, strerror(errno));
}

static void show_result(const run_options *options, const uir_tune_result *result) {
    if (options->quiet) return;
    if (!result->kernel_count) {
        puts("nothing to tune: no slow kernel of this model has other tile sizes to choose from");
        return;
    }
    char before[UNITS_ROOM], after[UNITS_ROOM];
    printf("a run: %s to %s, %.2f times as fast; %llu tiles of %u kernels measured, %u kernels changed%s\n",
           units_time(result->before_ms, before, sizeof before), units_time(result->after_ms, after, sizeof after),
           result->before_ms / result->after_ms, (unsigned long long)result->tried,
           result->kernel_count, result->kept_count,
           result->kept_count && !options->no_cache ? ", kept in the cache" : "");
}

static void show_messages(uir_context *context, bool quiet) {
    for (size_t i = 0; i < uir_context_message_count(context); i++) {
        uir_message m = query_message(context, i);
        if (!quiet || m.severity == UIR_SEVERITY_ERROR) fprintf(stderr, PROGRAM ": %s\n", m.text);
    }
}

static uir_status tune(const run_options *options) {
    uir_status placed = output_check_place("--save", options->save);
    if (placed != UIR_STATUS_OK) return placed;
    tuning t = {.options = options};
    uir_tune_result result = {.struct_size = sizeof result};
    uir_model_tune_options tune = {.struct_size = sizeof tune,
                                   .device = options->device,
                                   .threads = (uint32_t)(options->threads < 1024 ? options->threads : 1024),
                                   .seconds = options->seconds,
                                   .cache = options->cache,
                                   .cache_limit = (uint64_t)options->cache_limit,
                                   .no_cache = options->no_cache,
                                   .bind = bind,
                                   .report = show,
                                   .keep = keep,
                                   .progress = show_progress,
                                   .cancel = &cancelled,
                                   .user = &t,
                                   .external_data = options->external_data,
                                   .no_map = options->no_map,
                                   .limits = &options->limits,
                                   .exact = options->exact,
                                   .precision = options->precision};
    if (!options->model) {
        complain("try: " PROGRAM " --help", "no model given");
        return UIR_STATUS_INVALID_ARGUMENT;
    }
    char *records = NULL;
    uir_status status = options->records ? text_file_read("--records", options->records, &records) : UIR_STATUS_OK;
    tune.records = records;
    if (status == UIR_STATUS_OK) status = uir_context_create(NULL, &t.context);
    if (status == UIR_STATUS_OK) {
        if (!options->quiet) progress_start();
        status = uir_model_tune_file(t.context, options->model, &tune, &result);
        progress_stop();
        if (!caught_signal) show_messages(t.context, options->quiet); /* who sent it knows */
    }
    if (status == UIR_STATUS_OK) show_result(options, &result);
    if (status == UIR_STATUS_OK && options->save && !t.saved) status = UIR_STATUS_IO_FAILED;
    case_free(&t.inputs);
    uir_context_destroy(t.context);
    free(records);
    return status;
}

int main(int argc, char **argv) {
    run_options options;
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    uir_status status = options_parse(argc, argv, &options);
    if (status == UIR_STATUS_OK) {
        if (options.help)
            options_print_help(stdout, terminal_width(STDOUT_FILENO));
        else if (options.version)
            printf("uir %s\n", uir_version());
        else
            status = tune(&options);
    }
    options_free(&options);
    return output_end(status, caught_signal);
}
