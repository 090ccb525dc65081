/* Child processes of a build, several at once, without a shell. Private to this folder.
 *
 * In: commands, each a list of words, that are run in one folder. Out: all of them succeeded, or the first failure in
 * words, with every other child and its own children ended and waited for. */
#ifndef UIR_BACKENDS_CPU_TARGET_JOBS_H
#define UIR_BACKENDS_CPU_TARGET_JOBS_H

#include "backends/cpu/target/build.h"

typedef struct uir_cpu_job {
    char *const *argv;
    const char *about; /* the file it works on, for messages */
    uint32_t file;     /* its number, for `finished` */
} uir_cpu_job;

typedef struct uir_cpu_jobs {
    const uir_allocator *allocator;
    const char *folder; /* where they run, and their TMPDIR */
    const uir_cpu_build_options *options;
    uint32_t at_once;
    uint64_t memory; /* set by the run: bytes that each may take; UIR_NO_LIMIT: what it likes */
    uint64_t timeout_ms;  /* of processor time, for each with what it starts; UIR_NO_LIMIT: as long as it likes */
    uint32_t idle_ms;     /* killed when none of them has used the processor for so long */
    int64_t looked, busy; /* set by the run: when that was looked at last, and found last */
    uint64_t used;        /* set by the run: what all had used then */
    uint32_t done, total; /* for the progress callback; `done` counts on */
    /* A job has succeeded; may be NULL. */
    void (*finished)(void *user, const uir_cpu_job *job);
    void *finished_user;
} uir_cpu_jobs;

/* `total`: commands, for progress. */
uir_cpu_jobs uir_cpu_jobs_begin(const uir_allocator *allocator, const char *folder,
                                const uir_cpu_build_options *options, uint32_t at_once, uint32_t total);
/* DEVICE_FAILED with a compiler's first lines, CANCELLED without a word, OUT_OF_MEMORY. Jobs start in their order. */
uir_status uir_cpu_jobs_run(uir_cpu_jobs *jobs, const uir_cpu_job *commands, uint32_t count,
                            uir_diagnostics *diagnostics);

#endif
