/* Random loop functions for tests of schedules: in: a random state. Out: a text and sizes that provoke known faults:
 * extents 0, 1, primes and tile +- 1, equal sizes of different axes, several consumers, overwriting, scans, gathers. */
#ifndef UIR_TESTS_LOWER_SCHEDULE_PROGRAMS_H
#define UIR_TESTS_LOWER_SCHEDULE_PROGRAMS_H

#include "ir/loop/loop.h"

typedef struct random_state {
    uint64_t bits;
} random_state;
uint32_t random_below(random_state *random, uint32_t limit);

/* Appends a function of all-integer tensors to `text`; `sizes` has room for 3. */
void make_program(random_state *random, uir_text *text, int64_t *sizes);

#endif
