/* Runs this program on a model as a separate process, which may crash, hang or exhaust memory.
 *
 * In: a model's file, a data set, options. Out: how the process ended, and its first error. */
#ifndef UIR_TOOLS_RUN_TRIAL_H
#define UIR_TOOLS_RUN_TRIAL_H

#include "options.h"

typedef enum trial_end {
    TRIAL_FINE,
    TRIAL_DIFFERS, /* outputs, or with --check a stage */
    TRIAL_FAILS,   /* `code` is not 0 */
    TRIAL_CRASHES, /* killed by signal `code` */
    TRIAL_HANGS,   /* killed after the time limit */
    TRIAL_STOPPED, /* by `cancel` */
    TRIAL_NOT_RUN  /* the process could not be started */
} trial_end;

enum { TRIAL_TEXT = 600 };
typedef struct trial_result {
    trial_end end;
    int code;
    double seconds;
    char text[TRIAL_TEXT]; /* its first error, without the program's name; "" */
} trial_result;

typedef struct trial {
    const run_options *options; /* device, threads, restrictions, --check */
    const uir_tolerance *tolerance;
    const char *check;   /* NULL: that of the options; else the value of --check */
    const char *scratch; /* an existing folder */
    double limit_s;
    const volatile bool *cancel;
} trial;

trial_result trial_run(const trial *trial, const char *model, const char *data);
/* Prints the options of such a run, for a shell: " --device cpu --no-vm". */
void trial_print_options(const trial *trial, FILE *stream);
/* Whether two results show the same fault; names, numbers and paths may differ. */
bool trial_same(const trial_result *a, const trial_result *b);

#endif
