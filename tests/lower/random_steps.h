/* Schedule steps taken at random on the loop AST of a group.
 *
 * In: a naive function, a seed. Out: a copy of it after steps that were not refused, each of which leaves it verified;
 * its trace. What it computes must be the same. */
#ifndef UIR_TESTS_LOWER_RANDOM_STEPS_H
#define UIR_TESTS_LOWER_RANDOM_STEPS_H

#include "lower/schedule.h"

/* NULL, with a message in the diagnostics, when a step broke the function. */
uir_loop_function *random_steps(const uir_loop_function *naive, const uir_device *device, uint64_t seed,
                                uir_diagnostics *diagnostics, uir_text *trace);

#endif
