/* uir-opt: the IRs from outside. main.c reads the command line and moves between stages; kernel.c runs iGraphs. */
#ifndef UIR_TOOLS_OPT_OPT_H
#define UIR_TOOLS_OPT_OPT_H

#include "base/tensor.h"
#include "ir/igraph.h"

typedef struct opt_list {
    const char **items;
    size_t count;
} opt_list;

typedef struct opt_options {
    const char *file;
    const char *after, *from, *output, *device, *kernel, *constants, *external_data;
    opt_list dims, tiles, inputs;
    const char *save;
    int64_t random, threads;
    double seconds;
    bool run, check, time, list, help;
} opt_options;

/* What SIGINT and SIGTERM set. While nothing polls `cancel` they end the program at once. */
typedef struct opt_signals {
    volatile bool polled, cancel;
} opt_signals;
extern opt_signals opt_stop;

/* Prints and clears what was said. */
void opt_report(uir_diagnostics *diagnostics);
/* A file's bytes, zero terminated; the caller frees. */
uir_status opt_read_file(const char *path, char **out_text, size_t *out_length);

/* To the file that the options name, or standard output. */
uir_status opt_write_output(const opt_options *options, const char *text, size_t length);

/* Takes the options' model (`text` NULL), or the text of one after the stage `from`, on to the stage `after` and prints
 * its text. */
uir_status opt_run_module(const opt_options *options, const char *text, size_t length, const uir_allocator *allocator,
                          uir_diagnostics *diagnostics);

/* Runs one kernel on given or random data, as the options say. */
uir_status opt_run_kernel(const opt_options *options, const uir_igraph *igraph, uir_diagnostics *diagnostics);

#endif
