/* Schedule steps taken at random: on the programs of test_schedule_random, on the loop ASTs of groups.
 *
 * In: a function under a schedule, the state of a random sequence. A step may be refused; which primitive it tries, on
 * what, depends on the function and the state alone. */
#ifndef UIR_TESTS_LOWER_RANDOM_STEPS_H
#define UIR_TESTS_LOWER_RANDOM_STEPS_H

#include "lower/schedule/schedule.h"

typedef struct random_walk {
    uir_loop_function *function;
    uir_schedule *schedule;
    uint64_t *state;
    const char *space; /* where caches go, and what is not in device memory */
} random_walk;

/* A primitive; `weight`: how often it is chosen beside the others. */
typedef struct random_step {
    const char *name;
    uir_status (*attempt)(random_walk *walk);
    uint32_t weight;
} random_step;
enum { RANDOM_STEPS = 26 };
extern const random_step random_step_rows[RANDOM_STEPS];

/* Index of a row. */
uint32_t random_step_choose(random_walk *walk);

/* A copy of a naive function after steps that were not refused, each of which leaves it verified, and its trace. What
 * it computes must be the same. NULL, with a message in the diagnostics, when a step broke the function. */
uir_loop_function *random_steps(const uir_loop_function *naive, const uir_machine *machine, uint64_t seed,
                                uir_diagnostics *diagnostics, uir_text *trace);

#endif
