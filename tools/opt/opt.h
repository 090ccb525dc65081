/* uir-opt: the IRs from outside. options.c reads the command line and says what goes with what; main.c moves between
 * stages; model.c takes a model or its text on; run.c runs one on data; loop.c runs a loop function, kernel.c iGraphs;
 * data.c reads and compares what they take and give. */
#ifndef UIR_TOOLS_OPT_OPT_H
#define UIR_TOOLS_OPT_OPT_H

#include "base/datum.h"
#include "ir/kernel/igraph.h"
#include "ir/loop/loop.h"
#include "compile/compile.h"
#include "compile/kernel.h"
#include "passes/layouts.h"

typedef struct opt_list {
    const char **items;
    size_t count;
} opt_list;

typedef struct opt_options {
    const char *file;
    const char *after, *from, *output, *device, *device_file, *emitter, *kernel, *schedule, *constants, *external_data,
        *data, *precision;
    opt_list dims, tiles, inputs, no_layouts;
    const char *save;
    int64_t random, threads;
    double seconds;
    bool run, check, time, estimate, no_map, exact, strict, list, version, help;
    uir_limits limits;
    uint64_t given; /* a bit for each row of the table that was on the command line */
} opt_options;

/* What a call does, and to what: each option is for some of these. */
typedef enum opt_use {
    OPT_PRINT_MODEL = 1 << 0,
    OPT_PRINT_TEXT = 1 << 1, /* of a model, after a stage */
    OPT_PRINT_KERNELS = 1 << 2,
    OPT_PRINT_LOOP = 1 << 3,
    OPT_RUN_MODEL = 1 << 4,
    OPT_RUN_TEXT = 1 << 5,
    OPT_RUN_KERNEL = 1 << 6,
    OPT_RUN_LOOP = 1 << 7,
    OPT_PRINT = OPT_PRINT_MODEL | OPT_PRINT_TEXT | OPT_PRINT_KERNELS | OPT_PRINT_LOOP,
    OPT_RUN = OPT_RUN_MODEL | OPT_RUN_TEXT | OPT_RUN_KERNEL,
} opt_use;

/* INVALID_ARGUMENT with a message. What was allocated is opt_options_free's, also after a failure. */
uir_status opt_options_parse(int argc, char **argv, opt_options *out_options);
void opt_options_free(opt_options *options);
void opt_options_help(void);
/* Every option that was given is for one of these uses: else what it is for. */
uir_status opt_options_check(const opt_options *options, uint32_t uses);
/* A word NAME=NUMBER of --dim or --tile; what stands before the last '=' is the name. */
typedef struct opt_size {
    const char *name; /* in the word: `length` bytes */
    size_t length;
    int64_t value;
} opt_size;
/* False: it is no such word, or the number is below 0. */
bool opt_read_size(const char *word, opt_size *out_size);
bool opt_size_is_of(const opt_size *size, const char *name);
/* What a size of a loop function, a model or a kernel that was not given is: the least that facts allow and is at
 * least 1. */
int64_t opt_free_size(const uir_dims *dims, uir_symbol symbol);
/* Says what is wrong with `word`, or with nothing in particular (NULL); INVALID_ARGUMENT. */
uir_status opt_usage(const char *what, const char *word);

/* What SIGINT and SIGTERM set. While nothing polls `cancel` they end the program at once. */
typedef struct opt_signals {
    volatile bool polled, cancel;
} opt_signals;
extern opt_signals opt_stop;

/* One message of the library's, whose lines are safe to show. */
void opt_report_text(const char *text);
/* Prints and clears what was said. */
void opt_report(uir_diagnostics *diagnostics);
/* A file's bytes, zero terminated; the caller frees. */
uir_status opt_read_file(const char *path, char **out_text, size_t *out_length);

/* To the file that the options name, or standard output. */
uir_status opt_write_output(const opt_options *options, const char *text, size_t length);
/* The folder of --save, made where it is not there. */
uir_status opt_make_folder(const char *path);
/* The devices that kernel texts may name, those of --device-file among them, and the one that kernels are made for:
 * that of --device, or the file's first one, else this machine's CPU. What is none is an error that says what there is.
 */
uir_status opt_make_devices(const opt_options *options, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                            uir_compile_devices **out_devices, const uir_device **out_device);

/* That --emitter, where it is given, is one, and that sources are what is printed. */
uir_status opt_check_emitter(const opt_options *options, bool emits);

/* Takes the options' model (`text` NULL), or the text of one after the stage `from`, on to the stage `after` and prints
 * its text, or runs it. */
uir_status opt_run_module(const opt_options *options, const char *text, size_t length, const uir_allocator *allocator,
                          uir_diagnostics *diagnostics);

/* What opt_run_values runs. */
typedef struct opt_program {
    const uir_module *module;     /* of primitives */
    const uir_lowering *lowering; /* its kernels, from FUSION on */
    uir_stage stage;              /* the last that is done */
    const char *runner;           /* of iGraphs; NULL: loops by their interpreter, groups by the graph's */
    const char *home;             /* the model that it came from; "" unknown */
} opt_program;
/* Runs a model on given or random data, shows its outputs and compares them with what the data expects. */
uir_status opt_run_values(const opt_options *options, const opt_program *program, const uir_allocator *allocator,
                          uir_diagnostics *diagnostics);

/* Runs one loop function, on given or random data, as the options say; compares with what --data expects. */
uir_status opt_run_function(const opt_options *options, const uir_loop_function *function,
                            uir_diagnostics *diagnostics);

/* ---- data (data.c) ---- */
/* For values that are read and made: within the limits of the options. */
uir_status opt_create_context(const opt_options *options, uir_context **out_context);
void opt_report_context(uir_context *context); /* prints and clears its messages */
/* "FOLDER/WORD_INDEX.pb", or .npy; false when there is neither. */
bool opt_find_file(const char *folder, const char *word, uint32_t index, char *out_path, size_t capacity);
const char *opt_given_file(const opt_options *options, const char *name); /* of --input; NULL: none */
void opt_show_tensor(const char *name, const uir_tensor *tensor);
/* Where results go: as the options say to --save, and beside --data's, within what is stated beside `home` (the model
 * that they came from; "" unknown) or what their dtype has. */
typedef struct opt_results {
    const opt_options *options;
    uir_context *context;
    const char *home;
} opt_results;
bool opt_has_expected(const opt_results *results, uint32_t index);
uir_status opt_take_result(const opt_results *results, uint32_t index, const char *name, const uir_tensor *tensor,
                           bool *differs);

/* Runs one of the kernels (the first that is for the sizes among those of the name, or of all), on given or random
 * data, as the options say. They are verified and have their runs. --check holds them to `loops` too, which they were
 * made of by a schedule that was given (NULL: by none). */
uir_status opt_run_kernel(const opt_options *options, const uir_igraph_list *list, const uir_loop_function *loops,
                          uir_diagnostics *diagnostics);

#endif
