/* uir-opt: prints an IR after a stage, goes on from a text, runs kernels. */
#define _POSIX_C_SOURCE 200809L
#include "opt.h"
#include "ir/loop.h"
#include "pipeline.h"
#include "pipeline_kernel.h"
#include "pipeline_lower.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- signals ---- */
opt_signals opt_stop;
static volatile sig_atomic_t caught_signal;

static void on_signal(int number) {
    if (caught_signal || !opt_stop.polled) _exit(128 + number); /* again, or nothing to stop: at once */
    caught_signal = number;
    opt_stop.cancel = true;
}

/* ---- options ---- */
static const char help_text[] =
    "uir-opt FILE [OPTION...]\n"
    "Works on the IRs: FILE is a model (.onnx) or the text of a graph, a loop function or iGraphs.\n\n"
    "  --after STAGE        prints the IR after a stage (--list names them; default: the last)\n"
    "  --from STAGE         the text is what this stage printed\n"
    "  -o FILE              writes there instead of standard output\n"
    "  --constants M.onnx   where the constants lie that a model's text names by hash (those of over a million "
    "elements in all;\n"
    "                       default: the model that the text's first line names)\n"
    "  --external-data DIR  where the model's data files lie, besides the folder of its path and of its real path\n"
    "  --run                runs a kernel, on given or random data\n"
    "  --device NAME        interpreter (default), vm[:isa], cpu[:variant]; with --after: the variant that `cpu` "
    "means\n"
    "  --kernel NAME        of several kernels in the file, this one (default: the first)\n"
    "  --dim M=4  --tile tr=8   sizes; other dims take the least that is legal, other tiles the tiling function's "
    "choice\n"
    "  --input x=FILE.npy   data of a pointer; others are seeded random\n"
    "  --random SEED        the seed (default 0)\n"
    "  --save DIR           writes the outputs as NAME.npy\n"
    "  --check              compares every bit with the interpreter\n"
    "  --time [--seconds S] medians over S seconds (default 1)\n"
    "  --threads N          for the cpu (default 1)\n"
    "  --list               stages and devices\n\n"
    "Exit codes: 0 fine, 1 results differ, 2 usage, 3 bad file, 4 unsupported, 5 device failed.\n";

typedef enum value_kind { TEXT_VALUE, LIST_VALUE, COUNT_VALUE, REAL_VALUE, NO_VALUE } value_kind;
typedef struct option_row {
    const char *name;
    value_kind kind;
    size_t offset;
} option_row;
static const option_row rows[] = {
    {"--after", TEXT_VALUE, offsetof(opt_options, after)},
    {"--from", TEXT_VALUE, offsetof(opt_options, from)},
    {"-o", TEXT_VALUE, offsetof(opt_options, output)},
    {"--device", TEXT_VALUE, offsetof(opt_options, device)},
    {"--kernel", TEXT_VALUE, offsetof(opt_options, kernel)},
    {"--constants", TEXT_VALUE, offsetof(opt_options, constants)},
    {"--external-data", TEXT_VALUE, offsetof(opt_options, external_data)},
    {"--save", TEXT_VALUE, offsetof(opt_options, save)},
    {"--dim", LIST_VALUE, offsetof(opt_options, dims)},
    {"--tile", LIST_VALUE, offsetof(opt_options, tiles)},
    {"--input", LIST_VALUE, offsetof(opt_options, inputs)},
    {"--random", COUNT_VALUE, offsetof(opt_options, random)},
    {"--threads", COUNT_VALUE, offsetof(opt_options, threads)},
    {"--seconds", REAL_VALUE, offsetof(opt_options, seconds)},
    {"--run", NO_VALUE, offsetof(opt_options, run)},
    {"--check", NO_VALUE, offsetof(opt_options, check)},
    {"--time", NO_VALUE, offsetof(opt_options, time)},
    {"--list", NO_VALUE, offsetof(opt_options, list)},
    {"--help", NO_VALUE, offsetof(opt_options, help)},
};
enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

static uir_status usage(const char *what, const char *word) {
    fprintf(stderr, "uir-opt: error: %s '%s'\n  try: uir-opt --help\n", what, word);
    return UIR_STATUS_INVALID_ARGUMENT;
}

static uir_status set_option(opt_options *options, const option_row *row, const char *value) {
    char *field = (char *)options + row->offset, *end;
    switch (row->kind) {
    case NO_VALUE:
        *(bool *)(void *)field = true;
        return UIR_STATUS_OK;
    case TEXT_VALUE:
        *(const char **)(void *)field = value;
        return UIR_STATUS_OK;
    case LIST_VALUE: {
        opt_list *list = (opt_list *)(void *)field;
        const char **items = realloc(list->items, (list->count + 1) * sizeof *items);
        if (!items) return UIR_STATUS_OUT_OF_MEMORY;
        items[list->count++] = value;
        list->items = items;
        return UIR_STATUS_OK;
    }
    case COUNT_VALUE:
        *(int64_t *)(void *)field = strtoll(value, &end, 10);
        return *value >= '0' && *value <= '9' && !*end ? UIR_STATUS_OK : usage("expected a number, not", value);
    case REAL_VALUE:
        *(double *)(void *)field = strtod(value, &end);
        return end != value && !*end && *(double *)(void *)field >= 0 ? UIR_STATUS_OK
                                                                      : usage("expected a number, not", value);
    }
    return UIR_STATUS_OK;
}

static uir_status parse_options(int argc, char **argv, opt_options *options) {
    *options = (opt_options){.threads = 1, .seconds = 1};
    for (int i = 1; i < argc; i++) {
        size_t r = 0;
        while (r < ROW_COUNT && strcmp(rows[r].name, argv[i])) r++;
        if (r == ROW_COUNT && argv[i][0] == '-' && argv[i][1]) {
            const char *meant = NULL;
            uint32_t best = 3;
            for (size_t k = 0; k < ROW_COUNT; k++) {
                uint32_t d = uir_edit_distance(argv[i], rows[k].name);
                if (d < best) best = d, meant = rows[k].name;
            }
            fprintf(stderr, "uir-opt: error: unknown option '%s'%s%s%s\n  try: uir-opt --help\n", argv[i],
                    meant ? "; did you mean " : "", meant ? meant : "", meant ? "?" : "");
            return UIR_STATUS_INVALID_ARGUMENT;
        }
        if (r == ROW_COUNT) {
            if (options->file) return usage("one file at a time; unexpected", argv[i]);
            options->file = argv[i];
            continue;
        }
        if (rows[r].kind != NO_VALUE && i + 1 == argc) return usage("a value is missing after", argv[i]);
        uir_status status = set_option(options, &rows[r], rows[r].kind == NO_VALUE ? NULL : argv[++i]);
        if (status != UIR_STATUS_OK) return status;
    }
    return UIR_STATUS_OK;
}

/* ---- shared with kernel.c ---- */
void opt_report(uir_diagnostics *diagnostics) {
    for (const uir_diagnostic *d = diagnostics->first; d; d = d->next) {
        size_t length = uir_diagnostic_format(d, NULL, 0);
        char *text = malloc(length + 1);
        if (!text) break;
        uir_diagnostic_format(d, text, length + 1);
        fprintf(stderr, "uir-opt: %s\n", text);
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
        fprintf(stderr, "uir-opt: error: cannot read '%s': %s\n", path, errno ? strerror(errno) : "too large");
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
    fprintf(stderr, "uir-opt: error: cannot write '%s': %s\n", options->output ? options->output : "standard output",
            strerror(errno));
    return UIR_STATUS_IO_FAILED;
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
    if (status == UIR_STATUS_OK) uir_loop_print(function, &text);
    if (status == UIR_STATUS_OK) status = uir_text_status(&text);
    if (status == UIR_STATUS_OK) status = opt_write_output(w->options, text.data ? text.data : "", text.length);
    uir_text_deinit(&text);
    uir_loop_function_destroy(function);
    return status;
}

/* The stages of a kernel, each from the state the one before left. */
typedef struct kernel_stage {
    const char *name;
    uir_status (*run)(uir_igraph *igraph, uir_diagnostics *diagnostics);
    uir_status (*print)(const uir_igraph *igraph, uir_text *text, uir_diagnostics *diagnostics);
} kernel_stage;

static uir_status keep(uir_igraph *igraph, uir_diagnostics *diagnostics) {
    (void)igraph, (void)diagnostics;
    return UIR_STATUS_OK;
}

static uir_status print_kernel(const uir_igraph *igraph, uir_text *text, uir_diagnostics *diagnostics) {
    (void)diagnostics;
    uir_igraph_print(igraph, text);
    return UIR_STATUS_OK;
}

static const kernel_stage kernel_stages[] = {
    {"igraph", keep, print_kernel},
    {"verify", uir_igraph_verify, print_kernel},
    {"runs", uir_igraph_form_runs, print_kernel},
    {"emit", keep, uir_pipeline_emit_kernel},
};
enum { KERNEL_STAGE_COUNT = sizeof kernel_stages / sizeof kernel_stages[0] };

static size_t find_kernel_stage(const char *name) {
    size_t i = 0;
    while (i < KERNEL_STAGE_COUNT && strcmp(kernel_stages[i].name, name)) i++;
    return i;
}

static uir_status print_kernel_stage(work *w, uir_igraph *igraph, uir_text *text) {
    size_t from = w->options->from ? find_kernel_stage(w->options->from) + 1 : 0,
           after = w->options->after ? find_kernel_stage(w->options->after) : 1;
    if (from > KERNEL_STAGE_COUNT) return usage("a kernel has no stage", w->options->from);
    if (after == KERNEL_STAGE_COUNT) return usage("a kernel has no stage", w->options->after);
    for (size_t i = from; i <= after; i++) {
        uir_status status = kernel_stages[i].run(igraph, w->diagnostics);
        if (status != UIR_STATUS_OK) return status;
    }
    return kernel_stages[after].print(igraph, text, w->diagnostics);
}

/* --run: verified, runs formed, then on the device. */
static uir_status run_one_kernel(work *w, const uir_igraph_list *list) {
    uint32_t at = 0;
    while (w->options->kernel && at < list->count && strcmp(list->igraphs[at]->name, w->options->kernel)) at++;
    if (at >= list->count) return usage("the file has no kernel", w->options->kernel ? w->options->kernel : "");
    uir_igraph *igraph = list->igraphs[at];
    uir_status status = uir_igraph_verify(igraph, w->diagnostics);
    if (status == UIR_STATUS_OK) status = uir_igraph_form_runs(igraph, w->diagnostics);
    return status == UIR_STATUS_OK ? opt_run_kernel(w->options, igraph, w->diagnostics) : status;
}

static uir_status run_kernels(work *w) {
    uir_pipeline_devices *devices = NULL;
    uir_igraph_list list = {0};
    uir_text text;
    const char *device = w->options->device ? w->options->device : "",
               *variant = strncmp(device, "cpu:", 4) ? NULL : device + 4;
    uir_text_init(&text, w->allocator);
    uir_status status = uir_pipeline_devices_create(w->allocator, variant, w->diagnostics, &devices);
    if (status == UIR_STATUS_NOT_FOUND) status = UIR_STATUS_INVALID_ARGUMENT; /* --device names what is not there */
    if (status == UIR_STATUS_OK) {
        status = uir_igraph_parse_list(w->allocator, uir_pipeline_devices_get(devices), w->text, w->length,
                                       w->options->file, w->diagnostics, &list);
    }
    if (status == UIR_STATUS_OK && w->options->run) {
        status = run_one_kernel(w, &list);
    } else if (status == UIR_STATUS_OK) {
        for (uint32_t i = 0; i < list.count && status == UIR_STATUS_OK; i++)
            status = print_kernel_stage(w, list.igraphs[i], &text);
        if (status == UIR_STATUS_OK) status = uir_text_status(&text);
        if (status == UIR_STATUS_OK) status = opt_write_output(w->options, text.data ? text.data : "", text.length);
    }
    uir_text_deinit(&text);
    uir_igraph_list_deinit(&list);
    uir_pipeline_devices_destroy(devices);
    return status;
}

/* The first word of a text says which IR it is. */
static uir_status run_text(work *w) {
    const char *s = w->text;
    while (*s == ' ' || *s == '\n' || *s == '\t' || *s == '\r' || *s == '#') {
        if (*s == '#')
            s += strcspn(s, "\n");
        else
            s++;
    }
    if (!strncmp(s, "igraph", 6)) return run_kernels(w);
    if (w->options->run) return usage("--run is for kernels (igraph @name ...):", w->options->file);
    if (!strncmp(s, "func", 4)) return run_loop(w);
    return opt_run_module(w->options, w->text, w->length, w->allocator, w->diagnostics);
}

static void list_stages(void) {
    puts("stages of a model:  onnx primitives and the clean-up passes:");
    for (size_t i = 0; uir_pipeline_pass(i); i++)
        printf("  %-20s %s\n", uir_pipeline_pass(i)->name, uir_pipeline_pass(i)->purpose);
    fputs("stages after these: ", stdout);
    for (uint32_t i = 0; uir_middle_stage_name(i); i++) printf(" %s", uir_middle_stage_name(i));
    fputs(" emit\nstages of a kernel:", stdout);
    for (size_t i = 0; i < KERNEL_STAGE_COUNT; i++) printf(" %s", kernel_stages[i].name);
    fputs("\ndevices for --run: ", stdout);
    for (size_t i = 0; uir_kernel_runner_name(i); i++) printf(" %s", uir_kernel_runner_name(i));
    putchar('\n');
}

static uir_status run(const opt_options *options) {
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics diagnostics;
    work w = {options, &allocator, &diagnostics, NULL, 0};
    size_t n = strlen(options->file);
    uir_diagnostics_init(&diagnostics, &allocator);
    uir_status status = UIR_STATUS_OK;
    if (n > 5 && !strcmp(options->file + n - 5, ".onnx")) {
        status = opt_run_module(options, NULL, 0, &allocator, &diagnostics);
    } else {
        status = opt_read_file(options->file, &w.text, &w.length);
        if (status == UIR_STATUS_OK) status = run_text(&w);
    }
    if (status != UIR_STATUS_OK && !caught_signal && !diagnostics.count && status != UIR_STATUS_INVALID_ARGUMENT &&
        status != UIR_STATUS_DIFFERENT && status != UIR_STATUS_NOT_FOUND && status != UIR_STATUS_BAD_DATA &&
        status != UIR_STATUS_IO_FAILED) {
        fprintf(stderr, "uir-opt: error: %s\n", uir_status_text(status));
    }
    opt_report(&diagnostics);
    free(w.text);
    uir_diagnostics_deinit(&diagnostics);
    return status;
}

int main(int argc, char **argv) {
    opt_options options;
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    uir_status status = parse_options(argc, argv, &options);
    if (status == UIR_STATUS_OK && options.run && !options.device) options.device = "interpreter";
    if (status == UIR_STATUS_OK && options.help)
        fputs(help_text, stdout);
    else if (status == UIR_STATUS_OK && options.list)
        list_stages();
    else if (status == UIR_STATUS_OK && !options.file)
        status = usage("no file given", "");
    else if (status == UIR_STATUS_OK)
        status = run(&options);
    free(options.dims.items);
    free(options.tiles.items);
    free(options.inputs.items);
    return caught_signal ? 128 + caught_signal : uir_status_exit_code(status);
}
