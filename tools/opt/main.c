/* uir-opt: prints an IR after a stage, goes on from a text, runs models, their texts and kernels. */
#define _POSIX_C_SOURCE 200809L
#include "opt.h"
#include "base/file.h"
#include "base/target_name.h"
#include "tools/run/printable.h"
#include "ir/loop/loop.h"
#include "compile/kernel.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- signals ---- */
opt_signals opt_stop;
static volatile sig_atomic_t caught_signal;

static void on_signal(int number) {
    if (caught_signal || !opt_stop.polled) _exit(128 + number); /* again, or nothing to stop: at once */
    caught_signal = number;
    opt_stop.cancel = true;
}

/* Before any work. */
static uir_status check_output(const opt_options *options) {
    const char *refusal = options->output ? uir_file_refuse_place(options->output) : NULL;
    if (!refusal) return UIR_STATUS_OK;
    complain(NULL, "'%s' cannot be written: %s", options->output, refusal);
    return UIR_STATUS_IO_FAILED;
}

/* ---- shared with the other files ---- */
void opt_report_text(const char *text) {
    fputs("uir-opt: ", stderr);
    fputs(text, stderr);
    fputc('\n', stderr);
}

void opt_report(uir_diagnostics *diagnostics) {
    for (const uir_diagnostic *d = diagnostics->first; d; d = d->next) {
        size_t length = uir_diagnostic_format(d, NULL, 0);
        char *text = malloc(length + 1);
        if (!text) break;
        uir_diagnostic_format(d, text, length + 1);
        opt_report_text(text);
        free(text);
    }
    uir_diagnostics_clear(diagnostics);
}

uir_status opt_read_file(const char *path, char **out_text, size_t *out_length) {
    enum { LONGEST = 256 << 20 };
    FILE *file = fopen(path, "rb");
    size_t length = 0, capacity = 1 << 16;
    char *text = file ? malloc(capacity) : NULL;
    while (text) {
        length += fread(text + length, 1, capacity - length - 1, file);
        if (length + 1 < capacity || capacity > LONGEST) break;
        char *grown = realloc(text, capacity *= 2);
        if (!grown) free(text);
        text = grown;
    }
    bool failed = !text || ferror(file) || capacity > LONGEST;
    if (file) fclose(file);
    if (failed) {
        complain(NULL, "cannot read '%s': %s", path, errno ? strerror(errno) : "too large");
        free(text);
        return UIR_STATUS_NOT_FOUND;
    }
    text[length] = 0;
    *out_text = text;
    *out_length = length;
    return UIR_STATUS_OK;
}

uir_status opt_write_output(const opt_options *options, const char *text, size_t length) {
    FILE *file = options->output ? fopen(options->output, "wb") : stdout;
    bool fine = file && fwrite(text, 1, length, file) == length && fflush(file) == 0;
    if (file && file != stdout) fine &= fclose(file) == 0;
    if (fine || (file == stdout && errno == EPIPE)) return UIR_STATUS_OK; /* a reader that has enough is no failure */
    complain(NULL, "'%s' cannot be written: %s", options->output ? options->output : "standard output",
             strerror(errno));
    return UIR_STATUS_IO_FAILED;
}

uir_status opt_make_folder(const char *path) {
    struct stat there;
    if (mkdir(path, 0777) == 0 || (errno == EEXIST && stat(path, &there) == 0 && S_ISDIR(there.st_mode)))
        return UIR_STATUS_OK;
    complain(NULL, "cannot make the folder '%s': %s", path,
             errno == EEXIST ? "a file of that name exists" : strerror(errno));
    return UIR_STATUS_IO_FAILED;
}

uir_status opt_check_emitter(const opt_options *options, bool emits) {
    const char *name = options->emitter;
    if (!name) return UIR_STATUS_OK;
    if (!emits) return opt_usage("--emitter is for --after emit", NULL);
    for (size_t i = 0; uir_compile_emitter_name(i); i++)
        if (!strcmp(uir_compile_emitter_name(i), name)) return UIR_STATUS_OK;
    return opt_usage("--emitter (uir-opt --list names them): unknown emitter", name);
}

static uir_status add_file(const opt_options *options, uir_compile_machines *devices, uir_diagnostics *diagnostics,
                           const uir_machine **out_device) {
    char *text = NULL;
    size_t length;
    uir_status status = opt_read_file(options->device_file, &text, &length);
    if (status == UIR_STATUS_OK)
        status = uir_compile_machines_add(devices, text, length, options->device_file, diagnostics, out_device);
    free(text);
    return status;
}

uir_status opt_make_devices(const opt_options *options, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                            uir_compile_machines **out_devices, const uir_machine **out_device) {
    const char *device = options->device;
    uir_status status = uir_compile_machines_create(allocator, device, diagnostics, out_devices);
    if (status == UIR_STATUS_NOT_FOUND) status = UIR_STATUS_INVALID_ARGUMENT; /* --device names what is not there */
    if (status != UIR_STATUS_OK) return status;
    *out_device = uir_compile_machines_get(*out_devices)->devices[0];
    if (options->device_file) UIR_TRY(add_file(options, *out_devices, diagnostics, out_device));
    return device && !options->run ? uir_compile_machines_find(*out_devices, device, diagnostics, out_device)
                                   : UIR_STATUS_OK;
}

/* ---- the stages ---- */
typedef struct work {
    const opt_options *options;
    const uir_allocator *allocator;
    uir_diagnostics *diagnostics;
    char *text;
    size_t length;
} work;

static uir_status run_loop(work *w) {
    uir_loop_function *function = NULL;
    uir_text text;
    uir_text_init(&text, w->allocator);
    uir_status status = uir_loop_parse(w->allocator, w->text, w->length, w->options->file, w->diagnostics, &function);
    if (status == UIR_STATUS_OK) status = uir_loop_verify(function, w->diagnostics);
    if (status == UIR_STATUS_OK && w->options->run) {
        status = opt_run_function(w->options, function, w->diagnostics);
    } else if (status == UIR_STATUS_OK) {
        uir_loop_print(function, &text);
        status = uir_text_status(&text);
        if (status == UIR_STATUS_OK) status = opt_write_output(w->options, text.data ? text.data : "", text.length);
    }
    uir_text_deinit(&text);
    uir_loop_function_destroy(function);
    return status;
}

/* The stages of a kernel, each from the state the one before left. */
typedef struct kernel_stage {
    const char *name;
    uir_status (*run)(uir_igraph *igraph, uir_diagnostics *diagnostics);
    /* `index`: of the kernel in its file */
    uir_status (*print)(const work *w, const uir_igraph *igraph, uint32_t index, uir_text *text);
} kernel_stage;

static uir_status keep(uir_igraph *igraph, uir_diagnostics *diagnostics) {
    (void)igraph, (void)diagnostics;
    return UIR_STATUS_OK;
}

static uir_status print_kernel(const work *w, const uir_igraph *igraph, uint32_t index, uir_text *text) {
    (void)w, (void)index;
    uir_igraph_print(igraph, text);
    return UIR_STATUS_OK;
}

static uir_status print_source(const work *w, const uir_igraph *igraph, uint32_t index, uir_text *text) {
    return uir_compile_emit_kernel(igraph, w->options->emitter, index, text, w->diagnostics);
}

static const kernel_stage kernel_stages[] = {
    {"igraph", keep, print_kernel},
    {"verify", uir_igraph_verify, print_kernel},
    {"runs", uir_igraph_form_runs, print_kernel},
    {"emit", keep, print_source},
};
enum { KERNEL_STAGE_COUNT = sizeof kernel_stages / sizeof kernel_stages[0] };

static size_t find_kernel_stage(const char *name) {
    size_t i = 0;
    while (i < KERNEL_STAGE_COUNT && strcmp(kernel_stages[i].name, name)) i++;
    return i;
}

static uir_status print_kernel_stage(work *w, uir_igraph *igraph, uint32_t index, uir_text *text) {
    size_t from = w->options->from ? find_kernel_stage(w->options->from) + 1 : 0,
           after = w->options->after ? find_kernel_stage(w->options->after) : 1;
    if (from > KERNEL_STAGE_COUNT) return opt_usage("--from: unknown stage of a kernel", w->options->from);
    if (after == KERNEL_STAGE_COUNT) return opt_usage("--after: unknown stage of a kernel", w->options->after);
    UIR_TRY(opt_check_emitter(w->options, after == find_kernel_stage("emit")));
    if (from > after + 1)
        return opt_usage("--after: the stage does not come after that of --from:", kernel_stages[after].name);
    for (size_t i = from; i <= after; i++) {
        uir_status status = kernel_stages[i].run(igraph, w->diagnostics);
        if (status != UIR_STATUS_OK) return status;
    }
    return kernel_stages[after].print(w, igraph, index, text);
}

/* --run: verified, runs formed, then on the device. All variants of the kernel that is wanted, or of the first. */
static uir_status run_list(work *w, const uir_igraph_list *list) {
    const char *wanted = w->options->kernel ? w->options->kernel : list->igraphs[0]->name;
    for (uint32_t i = 0; i < list->count; i++) {
        if (strcmp(list->igraphs[i]->name, wanted)) continue;
        UIR_TRY(uir_igraph_verify(list->igraphs[i], w->diagnostics));
        UIR_TRY(uir_igraph_form_runs(list->igraphs[i], w->diagnostics));
    }
    return opt_run_kernel(w->options, list, NULL, w->diagnostics);
}

static bool is_for(const uir_igraph *igraph, const char *device) {
    return uir_target_name_is(uir_target_name_split(device), igraph->machine->name);
}

static uir_status print_list(work *w, const uir_igraph_list *list, uir_text *text) {
    bool any = false;
    for (uint32_t i = 0; i < list->count; i++) {
        if (w->options->kernel && strcmp(list->igraphs[i]->name, w->options->kernel)) continue;
        if (w->options->device && !is_for(list->igraphs[i], w->options->device)) {
            complain("leave out --device", "kernel @%s is for device '%s', not for --device %s", list->igraphs[i]->name,
                     list->igraphs[i]->machine->name, w->options->device);
            return UIR_STATUS_INVALID_ARGUMENT;
        }
        any = true;
        UIR_TRY(print_kernel_stage(w, list->igraphs[i], i, text));
    }
    if (!any) return opt_usage("the file has no kernel", w->options->kernel);
    UIR_TRY(uir_text_status(text));
    return opt_write_output(w->options, text->data ? text->data : "", text->length);
}

static uir_status run_kernels(work *w) {
    uir_compile_machines *devices = NULL;
    uir_igraph_list list = {0};
    uir_text text;
    const uir_machine *machine;
    uir_text_init(&text, w->allocator);
    uir_status status = opt_make_devices(w->options, w->allocator, w->diagnostics, &devices, &machine);
    if (status == UIR_STATUS_OK)
        status = uir_igraph_parse_list(w->allocator, uir_compile_machines_get(devices), w->text, w->length,
                                       w->options->file, w->diagnostics, &list);
    if (status == UIR_STATUS_OK) status = w->options->run ? run_list(w, &list) : print_list(w, &list, &text);
    uir_text_deinit(&text);
    uir_igraph_list_deinit(&list);
    uir_compile_machines_destroy(devices);
    return status;
}

/* The first word of a text says which IR it is. */
static uir_status run_text(work *w) {
    const char *s = w->text;
    bool runs = w->options->run;
    while (*s == ' ' || *s == '\n' || *s == '\t' || *s == '\r' || *s == '#') {
        if (*s == '#')
            s += strcspn(s, "\n");
        else
            s++;
    }
    if (!strncmp(s, "igraph", 6)) {
        UIR_TRY(opt_options_check(w->options, runs ? OPT_RUN_KERNEL : OPT_PRINT_KERNELS));
        return run_kernels(w);
    }
    if (!strncmp(s, "func", 4)) {
        uir_stage from;
        UIR_TRY(opt_options_check(w->options, runs ? OPT_RUN_LOOP : OPT_PRINT_LOOP));
        if (w->options->from &&
            (!uir_stage_find(w->options->from, &from) || (from != UIR_STAGE_LOOP && from != UIR_STAGE_SCHEDULE)))
            return opt_usage("--from: a loop function is a text after loop or schedule, not after", w->options->from);
        return run_loop(w);
    }
    UIR_TRY(opt_options_check(w->options, (runs ? OPT_RUN_TEXT : OPT_PRINT_TEXT) |
                                              (runs && w->options->kernel ? OPT_RUN_KERNEL : 0)));
    return opt_run_module(w->options, w->text, w->length, w->allocator, w->diagnostics);
}

static void print_names(const char *const *names, uint32_t count, const char *end) {
    for (uint32_t i = 0; i < count; i++) print_safely(stdout, "%s%s", i ? " " : "", names[i]);
    fputs(end, stdout);
}

static void list_machines(const uir_machine_list *list) {
    puts("machines, for --device: their spaces | kinds of unit | pipes");
    for (uint32_t i = 0; i < list->count; i++) {
        const uir_machine *d = list->devices[i];
        const char *spaces[UIR_MACHINE_MAX_SPACES];
        char name[80];
        for (uint32_t s = 0; s < d->space_count; s++) spaces[s] = d->spaces[s].name;
        snprintf(name, sizeof name, "%s:%s", d->name, d->chip);
        print_safely(stdout, "  %-17s ", name);
        print_names(spaces, d->space_count, " | ");
        print_names(d->unit_kinds, d->unit_kind_count, d->pipe_count ? " | " : "\n");
        if (d->pipe_count) print_names(d->pipes, d->pipe_count, "\n");
    }
}

static void list_stages(void) {
    puts("stages of a model:");
    for (uir_stage stage = 0; uir_stage_get(stage)->print; stage++)
        print_safely(stdout, "  %-20s %s\n", uir_stage_get(stage)->name, uir_stage_get(stage)->purpose);
    fputs("stages of a kernel:", stdout);
    for (size_t i = 0; i < KERNEL_STAGE_COUNT; i++) print_safely(stdout, " %s", kernel_stages[i].name);
    fputs("\nemitters, for --emitter:", stdout);
    for (size_t i = 0; uir_compile_emitter_name(i); i++) print_safely(stdout, " %s", uir_compile_emitter_name(i));
    fputs("\nrules of layouts, for --no-layout:", stdout);
    for (uint32_t rule = 0; rule < UIR_LAYOUT_RULE_COUNT; rule++)
        print_safely(stdout, " %s", uir_layout_rule_name((uir_layout_rule)rule));
    fputs("\ndevices for --run: ", stdout);
    for (size_t i = 0; uir_kernel_runner_name(i); i++) {
        const char *variant = uir_kernel_runner_variant(i, 0);
        print_safely(stdout, " %s%s", uir_kernel_runner_name(i), variant ? "[:" : "");
        for (size_t k = 0; variant; k++) {
            print_safely(stdout, "%s%s", k ? "|" : "", variant);
            variant = uir_kernel_runner_variant(i, k + 1);
            if (!variant) putchar(']');
        }
    }
    putchar('\n');
}

static uir_status list_all(void) {
    uir_allocator system = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_compile_machines *devices;
    uir_diagnostics_init(&diagnostics, &system);
    list_stages();
    uir_status status = uir_compile_machines_create(&system, NULL, &diagnostics, &devices);
    if (status == UIR_STATUS_OK) list_machines(uir_compile_machines_get(devices));
    uir_compile_machines_destroy(devices);
    opt_report(&diagnostics);
    uir_diagnostics_deinit(&diagnostics);
    return status;
}

static uir_status run(const opt_options *options) {
    uir_allocator system = uir_allocator_system();
    uir_budget budget;
    uir_diagnostics diagnostics;
    uir_budget_init(&budget, &system, &options->limits);
    uir_allocator allocator = uir_budget_allocator(&budget);
    work w = {options, &allocator, &diagnostics, NULL, 0};
    size_t n = strlen(options->file);
    uir_diagnostics_init(&diagnostics, &system);
    uir_status status = uir_budget_begin(&budget, "working on the file", NULL, &opt_stop.cancel);
    if (status != UIR_STATUS_OK) {
        /* There is no thread to watch the time. */
    } else if (n > 5 && !strcmp(options->file + n - 5, ".onnx")) {
        status = opt_options_check(options, (options->run ? OPT_RUN_MODEL : OPT_PRINT_MODEL) |
                                                (options->run && options->kernel ? OPT_RUN_KERNEL : 0));
        if (status == UIR_STATUS_OK) status = opt_run_module(options, NULL, 0, &allocator, &diagnostics);
    } else {
        status = opt_read_file(options->file, &w.text, &w.length);
        if (status == UIR_STATUS_OK) status = run_text(&w);
    }
    status = uir_budget_end(&budget, status, &diagnostics);
    if (status != UIR_STATUS_OK && !caught_signal && !diagnostics.count && status != UIR_STATUS_INVALID_ARGUMENT &&
        status != UIR_STATUS_DIFFERENT && status != UIR_STATUS_NOT_FOUND && status != UIR_STATUS_BAD_DATA &&
        status != UIR_STATUS_IO_FAILED) {
        complain(NULL, "%s", uir_status_text(status));
    }
    opt_report(&diagnostics);
    free(w.text);
    uir_diagnostics_deinit(&diagnostics);
    uir_budget_deinit(&budget);
    return status;
}

int main(int argc, char **argv) {
    opt_options options;
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    uir_status status = opt_options_parse(argc, argv, &options);
    bool alone = options.help || options.version || options.list;
    if (status == UIR_STATUS_OK && alone && argc > 2)
        status = opt_usage("no other argument is allowed with", options.help      ? "--help"
                                                                : options.version ? "--version"
                                                                                  : "--list");
    else if (status == UIR_STATUS_OK && options.help)
        opt_options_help();
    else if (status == UIR_STATUS_OK && options.version)
        print_safely(stdout, "uir %s\n", uir_version());
    else if (status == UIR_STATUS_OK && options.list)
        status = list_all();
    else if (status == UIR_STATUS_OK && !options.file)
        status = opt_usage("no file given", NULL);
    else if (status == UIR_STATUS_OK)
        status = check_output(&options) == UIR_STATUS_OK ? run(&options) : UIR_STATUS_IO_FAILED;
    opt_options_free(&options);
    return caught_signal ? 128 + caught_signal : uir_status_exit_code(status);
}
