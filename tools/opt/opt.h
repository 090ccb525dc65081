/* Declarations of uir-opt, which prints and runs the IRs. options.c parses the command line and checks combinations;
 * main.c moves between stages; model.c continues from a model or its text; run.c runs one on data; loop.c runs a loop
 * function, kernel.c iGraphs; data.c reads and compares their inputs and outputs. */
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
    uint64_t given; /* a bit for each row of the table: given on the command line */
} opt_options;

/* Uses of a call: each option is for some of them. */
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

/* INVALID_ARGUMENT with a message. opt_options_free releases the options, also after a failure. */
uir_status opt_options_parse(int argc, char **argv, opt_options *out_options);
void opt_options_free(opt_options *options);
void opt_options_help(void);
/* Checks that all options given are for one of these uses; else the message names their uses. */
uir_status opt_options_check(const opt_options *options, uint32_t uses);
/* A word NAME=NUMBER of --dim or --tile; the last '=' ends the name. */
typedef struct opt_size {
    const char *name; /* in the word: `length` bytes */
    size_t length;
    int64_t value;
} opt_size;
/* False for another word, or a number below 0. */
bool opt_read_size(const char *word, opt_size *out_size);
bool opt_size_is_of(const opt_size *size, const char *name);
/* Value of a size of a loop function, a model or a kernel that was not given: the least of at least 1 that its facts
 * allow. */
int64_t opt_free_size(const uir_dims *dims, uir_symbol symbol);
/* Reports a usage error about `word` (or NULL); INVALID_ARGUMENT. */
uir_status opt_usage(const char *what, const char *word);

/* Set by SIGINT and SIGTERM, which end the program at once while nothing polls `cancel`. */
typedef struct opt_signals {
    volatile bool polled, cancel;
} opt_signals;
extern opt_signals opt_stop;

/* Prints one message of the library, made safe. */
void opt_report_text(const char *text);
/* Prints and clears the messages. */
void opt_report(uir_diagnostics *diagnostics);
/* Reads a file, zero terminated; the caller frees. */
uir_status opt_read_file(const char *path, char **out_text, size_t *out_length);

/* Writes to the file of the options, or to standard output. */
uir_status opt_write_output(const opt_options *options, const char *text, size_t length);
/* Creates the folder of --save unless it exists. */
uir_status opt_make_folder(const char *path);
/* The devices that kernel texts may name, with those of --device-file; and the device to compile for: that of --device,
 * else the file's first one, else this machine's CPU. An unknown one is an error that lists the devices. */
uir_status opt_make_devices(const opt_options *options, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                            uir_compile_machines **out_devices, const uir_machine **out_device);

/* Checks that --emitter, if given, exists, and that sources are printed. */
uir_status opt_check_emitter(const opt_options *options, bool emits);

/* Compiles the options' model (`text` NULL), or a text of one after the stage `from`, up to the stage `after`. Then
 * prints its text, or runs it. */
uir_status opt_run_module(const opt_options *options, const char *text, size_t length, const uir_allocator *allocator,
                          uir_diagnostics *diagnostics);

/* The program of opt_run_values. */
typedef struct opt_program {
    const uir_module *module;     /* of primitives */
    const uir_lowering *lowering; /* its kernels, from FUSION on */
    uir_stage stage;              /* the last stage done */
    const char *runner;           /* of iGraphs; NULL: loops by their interpreter, groups by that of graphs */
    const char *home;             /* path of its model; "" if unknown */
} opt_program;
/* Runs a model on given or random data, shows its outputs and compares them with expected ones. */
uir_status opt_run_values(const opt_options *options, const opt_program *program, const uir_allocator *allocator,
                          uir_diagnostics *diagnostics);

/* Runs one loop function on given or random data; compares with the outputs of --data. */
uir_status opt_run_function(const opt_options *options, const uir_loop_function *function,
                            uir_diagnostics *diagnostics);

/* ---- data (data.c) ---- */
/* For values read and made, within the limits of the options. */
uir_status opt_create_context(const opt_options *options, uir_context **out_context);
void opt_report_context(uir_context *context); /* prints and clears its messages */
/* "FOLDER/WORD_INDEX.pb", or .npy; false if neither exists. */
bool opt_find_file(const char *folder, const char *word, uint32_t index, char *out_path, size_t capacity);
const char *opt_given_file(const opt_options *options, const char *name); /* of --input; NULL: none */
void opt_show_tensor(const char *name, const uir_tensor *tensor);
/* Handling of results: written for --save, and compared with those of --data, with the tolerance beside `home` (path of
 * their model; "" if unknown) or that of their dtype. */
typedef struct opt_results {
    const opt_options *options;
    uir_context *context;
    const char *home;
} opt_results;
bool opt_has_expected(const opt_results *results, uint32_t index);
uir_status opt_take_result(const opt_results *results, uint32_t index, const char *name, const uir_tensor *tensor,
                           bool *differs);

/* Runs one of the kernels on given or random data: the first for the sizes among those of the name, or among all. They
 * are verified and have their runs. --check also compares with `loops`, which a given schedule made them from (NULL:
 * none). */
uir_status opt_run_kernel(const opt_options *options, const uir_igraph_list *list, const uir_loop_function *loops,
                          uir_diagnostics *diagnostics);

#endif
