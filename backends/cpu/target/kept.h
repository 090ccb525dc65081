/* Compiled files that outlive an interrupted build. Private to this folder.
 *
 * In: a compile's command in the build's folder, and a keeper. Out: the compiled file, if the same compiler made it
 * earlier from the same arguments and source; after a compile, the keeper receives the file. */
#ifndef UIR_BACKENDS_CPU_TARGET_KEPT_H
#define UIR_BACKENDS_CPU_TARGET_KEPT_H

#include "backends/cpu/target/jobs.h"

typedef struct uir_cpu_kept {
    const uir_allocator *allocator;
    const char *folder;
    const uir_target_keeper *keeper;
} uir_cpu_kept;

/* Name of the compiled file of a source file. */
#define UIR_CPU_OBJECT_NAME 48
void uir_cpu_object_name(const char *source, char out[UIR_CPU_OBJECT_NAME]);

/* `out_taken`: the file was found, the command need not run. */
uir_status uir_cpu_kept_take(const uir_cpu_kept *kept, const uir_cpu_job *job, uir_diagnostics *diagnostics,
                             bool *out_taken);
/* uir_cpu_jobs::finished, for a job that did run; `user` is the uir_cpu_kept. Failures are silent. */
void uir_cpu_kept_add(void *user, const uir_cpu_job *job);

#endif
