/* One group through lowering, every stage against the one before it.
 *
 * In: a module that holds a group node, values for its symbols, a seed. Out: at which stage it failed, and why: the
 * naive loop AST against the graph's interpreter, each scheduled variant against the naive one, and
 * its text against that which its trace makes again, each iGraph against its
 * variant, the VM against the iGraph bit by bit, and so compiled code where there is some. */
#ifndef UIR_TESTS_LOWER_HARNESS_H
#define UIR_TESTS_LOWER_HARNESS_H

#include "lower/lower.h"

typedef enum lower_stage {
    LOWER_BUILD,
    LOWER_VERIFY_NAIVE,
    LOWER_SCHEDULE,
    LOWER_VERIFY_SCHEDULED,
    LOWER_REPLAY,
    LOWER_KERNEL,
    LOWER_RUN_GRAPH,
    LOWER_RUN_NAIVE,
    LOWER_RUN_SCHEDULED,
    LOWER_CHOOSE,
    LOWER_RUN_IGRAPH,
    LOWER_RUN_VM,
    LOWER_RUN_NATIVE,
    LOWER_FINE
} lower_stage;
const char *lower_stage_name(lower_stage stage);

typedef struct lower_check {
    const uir_machine *machine;
    const uir_allocator *allocator;
    bool show;                /* prints texts on failure */
    bool show_all;            /* always */
    uint64_t most;            /* elements of an operand; 0: three million */
    double most_work;         /* of lower_work; 0: any */
    uir_loop_function *steps; /* the naive function after steps of the caller's choice; runs beside it. NULL: none */
    uir_parameters given;     /* the record of parameters */
    uir_lowered lowered;      /* of lower_prepare */
    uir_text kernel_text;
    struct uir_loaded_module *native; /* NULL, or where the kernels are compiled, the first one by this number */
    uint32_t native_first;
    lower_stage stage; /* the one that failed; FINE */
    uint32_t ran;      /* variants that ran */
    char message[600];
} lower_check;

/* Build, schedule, kernels; sets stage and message. */
void lower_prepare(lower_check *check, uir_module *module, uir_node_id group);
/* The naive function after the steps of a trace; the caller destroys it. UNSUPPORTED: a step is refused. */
uir_status lower_replay(const uir_loop_function *naive, const uir_machine *machine, const char *trace,
                        uir_diagnostics *diagnostics, uir_loop_function **out_function);
/* Runs at these values of the module's symbols (by id). False: the sizes make no sense (an extent below 0, a fault of
 * the graph itself, more elements or work than the check wants). */
bool lower_run(lower_check *check, uir_module *module, uir_node_id group, const int64_t *symbols, uint64_t seed);
/* How often the blocks of a naive function are executed. */
double lower_work(const uir_loop_function *naive, const int64_t *sizes);
void lower_finish(lower_check *check);

#endif
