/* A campaign's work cut into chunks that several processes take one after the other.
 *
 * In: a number of chunks and what to do for one. Out: sums. Every chunk has a seed of its own, so that the outcome does
 * not depend on who takes it; a process that crashes is a failure that names the case it was in. */
#ifndef UIR_TESTS_IGRAPH_JOBS_H
#define UIR_TESTS_IGRAPH_JOBS_H

#include "coverage.h"
#include "harness.h"

typedef struct job_totals {
    uint64_t passed, failed, skipped, counts[4]; /* counts: a campaign's own */
    coverage coverage;
    char where[400]; /* the case at hand */
} job_totals;

/* Counts a failure and prints it; the first ones only. */
void job_fail(job_totals *t, const char *format, ...) UIR_PRINTF(2, 3);

typedef void (*job_function)(harness *h, uint64_t chunk, void *user, job_totals *t);
/* UIR_CAMPAIGN_JOBS processes, else one per processor up to 8; one job stays in this process. */
void jobs_run(uint64_t seed, uint64_t chunks, job_function function, void *user, job_totals *totals);

#endif
