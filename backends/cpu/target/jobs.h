/* Runs child processes of a build in parallel, without a shell. Private to this folder.
 *
 * In: commands, each a list of words, for one folder. Out: success of all, or a message about the first failure, after
 * killing and reaping all other children and their descendants. */
#ifndef UIR_BACKENDS_CPU_TARGET_JOBS_H
#define UIR_BACKENDS_CPU_TARGET_JOBS_H

#include "backends/cpu/target/build.h"

typedef struct uir_cpu_job {
    char *const *argv;
    const char *about; /* file in messages */
    uint32_t file;     /* its number, for `finished` */
} uir_cpu_job;

typedef struct uir_cpu_jobs {
    const uir_allocator *allocator;
    const char *folder; /* working directory, and their TMPDIR */
    const uir_cpu_build_options *options;
    uint32_t at_once;
    uint64_t memory;      /* set by the run: memory limit of each in bytes; UIR_NO_LIMIT: none */
    uint64_t timeout_ms;  /* processor time of each with its descendants; UIR_NO_LIMIT: no limit */
    uint32_t idle_ms;     /* killed when all of them use no processor time for this long */
    int64_t looked, busy; /* set by the run: time of the last check; last time with progress */
    uint64_t used;        /* set by the run: processor time of all at the last check */
    uint32_t done, total; /* for the progress callback; `done` counts on */
    /* Called when a job has succeeded; may be NULL. */
    void (*finished)(void *user, const uir_cpu_job *job);
    void *finished_user;
} uir_cpu_jobs;

/* `total`: commands, for progress. */
uir_cpu_jobs uir_cpu_jobs_begin(const uir_allocator *allocator, const char *folder,
                                const uir_cpu_build_options *options, uint32_t at_once, uint32_t total);
/* Starts jobs in order. DEVICE_FAILED with a compiler's first lines, CANCELLED without a message, OUT_OF_MEMORY. */
uir_status uir_cpu_jobs_run(uir_cpu_jobs *jobs, const uir_cpu_job *commands, uint32_t count,
                            uir_diagnostics *diagnostics);

#endif
