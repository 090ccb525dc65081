/* The command line of uir-opt: one table of options, each with what it is for. */
#include "opt.h"
#include "tools/run/printable.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum value_kind { TEXT_VALUE, LIST_VALUE, COUNT_VALUE, REAL_VALUE, LIMIT_VALUE, NO_VALUE } value_kind;

typedef struct option_row {
    const char *name;
    value_kind kind;
    size_t offset;
    uint32_t uses;
    const char *argument, *help; /* lines of the help; NULL: under the row before */
} option_row;

enum { MODELS = OPT_PRINT_MODEL | OPT_PRINT_TEXT, RUN_MODELS = OPT_RUN_MODEL | OPT_RUN_TEXT };

static const option_row rows[] = {
    {"--after", TEXT_VALUE, offsetof(opt_options, after), MODELS | OPT_PRINT_KERNELS | RUN_MODELS, "STAGE",
     "prints or runs the IR after a stage (--list names the stages; default: the last)"},
    {"--from", TEXT_VALUE, offsetof(opt_options, from),
     OPT_PRINT_TEXT | OPT_PRINT_KERNELS | OPT_RUN_TEXT | OPT_RUN_LOOP, "STAGE",
     "the stage that printed FILE (default: the one in its first lines)"},
    {"-o", TEXT_VALUE, offsetof(opt_options, output), OPT_PRINT, "FILE", "writes to FILE instead of standard output"},
    {"--constants", TEXT_VALUE, offsetof(opt_options, constants), MODELS | OPT_RUN_TEXT, "WHAT",
     "inline: prints every number. M.onnx: the model of the constants that a text names by hash (default: the model in "
     "its first lines)"},
    {"--external-data", TEXT_VALUE, offsetof(opt_options, external_data), MODELS | RUN_MODELS, "DIR",
     "folder of the model's data files, searched before the folders of its path and its real path"},
    {"--no-map", NO_VALUE, offsetof(opt_options, no_map), MODELS | RUN_MODELS, NULL,
     "copies the model's files instead of mapping them, so that truncating one meanwhile does no harm"},
    {"--exact", NO_VALUE, offsetof(opt_options, exact), MODELS | RUN_MODELS, NULL,
     "uses no Winograd convolution: rounding then matches the formula that defines the operator"},
    {"--strict", NO_VALUE, offsetof(opt_options, strict), MODELS | RUN_MODELS, NULL,
     "contradictions of declared shapes are errors"},
    {"--precision", TEXT_VALUE, offsetof(opt_options, precision), MODELS | RUN_MODELS, "WORD",
     "f32 (default); f16 or bf16: rounds operands of products to this type where the device multiplies it; auto: f16 "
     "or bf16 if the device multiplies it faster than f32"},
    {"--no-layout", LIST_VALUE, offsetof(opt_options, no_layouts), MODELS | RUN_MODELS, "RULE",
     "leaves out a rule that makes images channels-last (--list names the rules), to compare with"},
    {"--run", NO_VALUE, offsetof(opt_options, run), OPT_RUN | OPT_RUN_LOOP, NULL,
     "runs a model, its text, a loop function or a kernel, on given or random data"},
    {"--device", TEXT_VALUE, offsetof(opt_options, device), MODELS | OPT_PRINT_KERNELS | OPT_RUN, "NAME",
     "--run: interpreter (default: that of the stage's IR), vm[:isa], cpu[:variant]; else the device to make kernels "
     "for: cpu[:variant], or a described machine, NAME[:CHIP]"},
    {"--device-file", TEXT_VALUE, offsetof(opt_options, device_file), MODELS | OPT_PRINT_KERNELS | OPT_RUN, "FILE",
     "describes further machines (docs/devices.md); the default of --device is then the first chip of FILE"},
    {"--emitter", TEXT_VALUE, offsetof(opt_options, emitter), MODELS | OPT_PRINT_KERNELS, "NAME",
     "--after emit: the emitter to use (--list names the emitters; default: the device's own)"},
    {"--kernel", TEXT_VALUE, offsetof(opt_options, kernel), MODELS | OPT_PRINT_KERNELS | OPT_RUN, "NAME",
     "selects one of several kernels (--run: runs this kernel)"},
    {"--schedule", TEXT_VALUE, offsetof(opt_options, schedule), MODELS | RUN_MODELS, "STEPS",
     "schedules the kernel of --kernel by the steps in this file, edited or not; --after schedule prints them; --check "
     "then compares it with its loops before any step, too"},
    {"--dim", LIST_VALUE, offsetof(opt_options, dims), OPT_RUN | OPT_RUN_LOOP, "M=4",
     "a size; other dims are the least legal size (kernels) or 1 (models)"},
    {"--tile", LIST_VALUE, offsetof(opt_options, tiles), OPT_RUN_KERNEL, "tr=8",
     "a tile size; other tiles are chosen by the tiling function"},
    {"--data", TEXT_VALUE, offsetof(opt_options, data), RUN_MODELS | OPT_RUN_LOOP, "DIR",
     "reads input_N.pb (.npy) for every input; compares the outputs with output_N"},
    {"--input", LIST_VALUE, offsetof(opt_options, inputs), OPT_RUN | OPT_RUN_LOOP, "x=FILE.npy",
     "data of an input, or of a kernel's pointer; others are seeded random"},
    {"--random", COUNT_VALUE, offsetof(opt_options, random), OPT_RUN | OPT_RUN_LOOP, "SEED", "the seed (default 0)"},
    {"--save", TEXT_VALUE, offsetof(opt_options, save), OPT_RUN | OPT_RUN_LOOP, "DIR",
     "writes the outputs as NAME.npy"},
    {"--check", NO_VALUE, offsetof(opt_options, check), OPT_RUN, NULL,
     "compares every bit with the kernels' interpreter"},
    {"--time", NO_VALUE, offsetof(opt_options, time), OPT_RUN_KERNEL, NULL,
     "measures the median and the least time of a kernel's runs"},
    {"--estimate", NO_VALUE, offsetof(opt_options, estimate), OPT_RUN_KERNEL, NULL,
     "estimates, without running it, a kernel's bytes by memory space, and its cycles by the device's description"},
    {"--seconds", REAL_VALUE, offsetof(opt_options, seconds), OPT_RUN_KERNEL, "S",
     "with --time: time to measure (default 1)"},
    {"--threads", COUNT_VALUE, offsetof(opt_options, threads), OPT_RUN, "N", "threads of a device (default 1)"},
#define LIMIT_ROW(constant, field, option, scale, base, per_byte, what, help)                                          \
    {"--limit-" option, LIMIT_VALUE, offsetof(opt_options, limits.field), UINT32_MAX, "N|none", help},
    UIR_LIMIT_TABLE(LIMIT_ROW)
#undef LIMIT_ROW
        {"--list", NO_VALUE, offsetof(opt_options, list), 0, NULL, "lists stages and devices"},
    {"--version", NO_VALUE, offsetof(opt_options, version), 0, NULL, "prints the version"},
    {"--help", NO_VALUE, offsetof(opt_options, help), 0, NULL, "prints this help"},
};
enum { ROW_COUNT = sizeof rows / sizeof rows[0], HELP_COLUMN = 22, HELP_WIDTH = 112 };

/* ---- messages ---- */
static const char help_hint[] = "try: uir-opt --help";

uir_status opt_usage(const char *what, const char *word) {
    complain(help_hint, "%s%s%s%s", what, word ? " '" : "", word ? word : "", word ? "'" : "");
    return UIR_STATUS_INVALID_ARGUMENT;
}

/* ---- sizes ---- */
bool opt_read_size(const char *word, opt_size *out_size) {
    const char *equals = strrchr(word, '=');
    char *end = NULL;
    if (!equals) return false;
    *out_size = (opt_size){word, (size_t)(equals - word), strtoll(equals + 1, &end, 10)};
    return end != equals + 1 && !*end && out_size->value >= 0;
}

bool opt_size_is_of(const opt_size *size, const char *name) {
    return strlen(name) == size->length && !memcmp(name, size->name, size->length);
}

int64_t opt_free_size(const uir_dims *dims, uir_symbol symbol) {
    uir_symbol_facts facts = uir_dims_symbol_facts(dims, symbol);
    int64_t value = facts.min > 1 ? facts.min : 1;
    if (value % facts.multiple_of) value += facts.multiple_of - value % facts.multiple_of;
    return value <= facts.max ? value : facts.max;
}

/* ---- help ---- */
static void print_wrapped(const char *text) {
    int column = HELP_COLUMN;
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (column > HELP_COLUMN && column + 1 + length > HELP_WIDTH) {
            putchar('\n');
            print_safely(stdout, "%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        }
        column += print_safely(stdout, "%s%.*s", column > HELP_COLUMN ? " " : "", length, text);
        text += length + (text[length] == ' ');
    }
    putchar('\n');
}

void opt_options_help(void) {
    puts("uir-opt FILE [OPTION...]\n"
         "Prints and runs the IRs: FILE is a model (.onnx), or the text of a model after a stage, of a loop function "
         "or of iGraphs.\n");
    for (size_t r = 0; r < ROW_COUNT; r++) {
        int column = print_safely(stdout, "  %s%s%s", rows[r].name, rows[r].argument ? " " : "",
                                  rows[r].argument ? rows[r].argument : "");
        print_safely(stdout, "%*s", column < HELP_COLUMN ? HELP_COLUMN - column : 1, "");
        print_wrapped(rows[r].help);
    }
    puts("\nWeights shown as a hash are not in the text: running the text requires the model of these weights.\n"
         "Exit codes: 0 fine, 1 results differ, 2 usage, 3 bad file, 4 unsupported, 5 device failed.");
}

/* ---- parsing ---- */
static uir_status expected_number(const char *option, const char *value) {
    complain(help_hint, "%s is a number, not '%s'", option, value);
    return UIR_STATUS_INVALID_ARGUMENT;
}

/* "none", "1.5", "500M": powers of 1024. */
static bool read_limit(const char *name, const char *value, uint64_t *out) {
    static const char units[] = "KMGT";
    char *end;
    double number = strtod(value, &end), scale = 1;
    *out = UIR_NO_LIMIT;
    if (!strcmp(value, "none")) return true;
    const char *unit = *end ? strchr(units, *end) : NULL;
    for (uint32_t i = 0; i < UIR_LIMIT_COUNT; i++)
        if (!strcmp(name + sizeof "--limit-" - 1, uir_limit_get_row((uir_limit)i)->option))
            scale = (double)uir_limit_get_row((uir_limit)i)->scale;
    if (unit) {
        for (const char *u = units; u <= unit; u++) scale *= 1024;
        end++;
    }
    if (end == value || *end || !(number > 0) || number * scale > 1e18) return false;
    *out = number * scale < 1 ? 1 : (uint64_t)(number * scale);
    return true;
}

static uir_status set_option(opt_options *options, size_t r, const char *value) {
    const option_row *row = &rows[r];
    char *field = (char *)options + row->offset, *end;
    if ((options->given >> r & 1) && row->kind != LIST_VALUE && row->kind != NO_VALUE)
        return opt_usage("given twice:", row->name);
    options->given |= (uint64_t)1 << r;
    errno = 0;
    switch (row->kind) {
    case NO_VALUE:
        *(bool *)(void *)field = true;
        return UIR_STATUS_OK;
    case TEXT_VALUE:
        *(const char **)(void *)field = value;
        return *value ? UIR_STATUS_OK : opt_usage("an empty value for", row->name);
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
        return *value >= '0' && *value <= '9' && !*end && !errno ? UIR_STATUS_OK : expected_number(row->name, value);
    case LIMIT_VALUE:
        return read_limit(row->name, value, (uint64_t *)(void *)field) ? UIR_STATUS_OK
                                                                       : expected_number(row->name, value);
    case REAL_VALUE:
        *(double *)(void *)field = strtod(value, &end);
        return end != value && !*end && *(double *)(void *)field >= 0 ? UIR_STATUS_OK
                                                                      : expected_number(row->name, value);
    }
    return UIR_STATUS_OK;
}

static uir_status unknown_option(const char *name) {
    const char *meant = NULL;
    uint32_t best = 3;
    for (size_t k = 0; k < ROW_COUNT; k++) {
        uint32_t d = uir_edit_distance(name, rows[k].name);
        if (d < best) best = d, meant = rows[k].name;
    }
    complain(help_hint, "unknown option '%s'%s%s%s", name, meant ? "; did you mean " : "", meant ? meant : "",
             meant ? "?" : "");
    return UIR_STATUS_INVALID_ARGUMENT;
}

uir_status opt_options_parse(int argc, char **argv, opt_options *options) {
    *options = (opt_options){.threads = 1, .seconds = 1};
    UIR_INIT(&options->limits);
    for (int i = 1; i < argc; i++) {
        const char *word = strcmp(argv[i], "-h") ? argv[i] : "--help";
        size_t r = 0, length = strlen(word);
        const char *equals = word[0] == '-' && word[1] == '-' ? strchr(word, '=') : NULL;
        if (equals) length = (size_t)(equals - word);
        while (r < ROW_COUNT && (strlen(rows[r].name) != length || memcmp(rows[r].name, word, length))) r++;
        if (r == ROW_COUNT && word[0] == '-' && word[1]) return unknown_option(word);
        if (r == ROW_COUNT) {
            if (options->file) return opt_usage("one file at a time; unexpected", word);
            options->file = word;
            continue;
        }
        const char *value = equals ? equals + 1 : NULL;
        if (rows[r].kind == NO_VALUE && value) return opt_usage("takes no value:", word);
        if (rows[r].kind != NO_VALUE && !value) {
            if (i + 1 == argc) return opt_usage("a value is missing after", word);
            value = argv[++i];
        }
        UIR_TRY(set_option(options, r, value));
    }
    return UIR_STATUS_OK;
}

void opt_options_free(opt_options *options) {
    for (size_t r = 0; r < ROW_COUNT; r++)
        if (rows[r].kind == LIST_VALUE) free(((opt_list *)(void *)((char *)options + rows[r].offset))->items);
}

/* ---- what goes with what ---- */
static const struct {
    uint32_t use;
    const char *name;
} use_names[] = {
    {OPT_PRINT_MODEL, "printing a model's stage"},
    {OPT_PRINT_TEXT, "printing a stage of a model's text"},
    {OPT_PRINT_KERNELS, "printing kernels"},
    {OPT_PRINT_LOOP, "printing a loop function"},
    {OPT_RUN_MODEL, "running a model (--run)"},
    {OPT_RUN_TEXT, "running a model's text (--run)"},
    {OPT_RUN_KERNEL, "running one kernel (--run, of a model with --kernel)"},
    {OPT_RUN_LOOP, "running a loop function (--run)"},
};

static void print_uses(uint32_t uses) {
    bool first = true;
    for (size_t i = 0; i < sizeof use_names / sizeof *use_names; i++) {
        if (!(use_names[i].use & uses)) continue;
        print_safely(stderr, "%s%s", first ? "" : ", ", use_names[i].name);
        first = false;
    }
}

uir_status opt_options_check(const opt_options *options, uint32_t uses) {
    for (size_t r = 0; r < ROW_COUNT; r++) {
        if (!(options->given >> r & 1) || (rows[r].uses & uses)) continue;
        print_safely(stderr, "uir-opt: error: %s is not for ", rows[r].name);
        print_uses(uses);
        fputs(rows[r].uses ? "; it is for " : "; give it without other arguments", stderr);
        print_uses(rows[r].uses);
        fputs("\n  try: uir-opt --help\n", stderr);
        return UIR_STATUS_INVALID_ARGUMENT;
    }
    bool inlined = options->constants && !strcmp(options->constants, "inline");
    const char *device = options->device ? options->device : "interpreter";
    if (inlined && (uses & OPT_RUN)) return opt_usage("--constants inline prints; --run prints no text", NULL);
    if (options->constants && !inlined && (uses & OPT_PRINT_MODEL))
        return opt_usage("--constants: for a model the only value is inline, not", options->constants);
    if ((uses & OPT_RUN) && options->threads < 1) return opt_usage("--threads is at least 1", NULL);
    if ((uses & OPT_RUN) && options->threads > 1024) return opt_usage("--threads is at most 1024", NULL);
    if ((uses & OPT_RUN) && options->threads > 1 && !uir_kernel_runner_is_threaded(device))
        return opt_usage("--threads: kernels run on one thread with --device", device);
    if (options->data && options->dims.count) return opt_usage("--data sets every size: leave out --dim", NULL);
    return UIR_STATUS_OK;
}
