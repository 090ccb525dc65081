/* One run of this program on a model, as a process of its own: it may crash, hang or use up memory.
 *
 * In: a model's file, a data set, options. Out: how it ended and what it said first. */
#ifndef UIR_TOOLS_RUN_TRIAL_H
#define UIR_TOOLS_RUN_TRIAL_H

#include "options.h"

typedef enum trial_end {
    TRIAL_FINE,
    TRIAL_DIFFERS, /* outputs, or with --check a stage */
    TRIAL_FAILS,   /* `code` is not 0 */
    TRIAL_CRASHES, /* by the signal `code` */
    TRIAL_HANGS,   /* it was ended */
    TRIAL_STOPPED, /* as `cancel` said */
    TRIAL_NOT_RUN  /* the process could not be started */
} trial_end;

enum { TRIAL_TEXT = 600 };
typedef struct trial_result {
    trial_end end;
    int code;
    double seconds;
    char text[TRIAL_TEXT]; /* the first error that it told, without who speaks; "" none */
} trial_result;

typedef struct trial {
    const run_options *options; /* device, threads, what is forbidden, --check */
    const uir_tolerance *tolerance;
    const char *check;   /* NULL: as the options say; else the value of --check */
    const char *scratch; /* an existing folder */
    double limit_s;
    const volatile bool *cancel;
} trial;

trial_result trial_run(const trial *trial, const char *model, const char *data);
/* The options that such a run has, for a shell: " --device cpu --no-vm". */
void trial_print_options(const trial *trial, FILE *stream);
/* Whether two ends are the same fault: names, numbers and paths may differ. */
bool trial_same(const trial_result *a, const trial_result *b);

#endif
