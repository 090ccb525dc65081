/* Compiled files that outlive a build that was broken off. Private to this folder.
 *
 * In: a compile's command in the build's folder, and who keeps files. Out: the compiled file there, as the same
 * compiler made it of the same words and source before; or, after the compile, handed over to be kept. */
#ifndef UIR_BACKENDS_CPU_TARGET_KEPT_H
#define UIR_BACKENDS_CPU_TARGET_KEPT_H

#include "backends/cpu/target/jobs.h"

typedef struct uir_cpu_kept {
    const uir_allocator *allocator;
    const char *folder;
    const uir_cpu_keeper *keeper;
} uir_cpu_kept;

/* What a source file's compiled one is called. */
#define UIR_CPU_OBJECT_NAME 48
void uir_cpu_object_name(const char *source, char out[UIR_CPU_OBJECT_NAME]);

/* `out_taken`: the command need not run. */
uir_status uir_cpu_kept_take(const uir_cpu_kept *kept, const uir_cpu_job *job, uir_diagnostics *diagnostics,
                             bool *out_taken);
/* uir_cpu_jobs::finished, for a job that was not taken; `user` is the uir_cpu_kept. Silent
 * where it cannot be kept. */
void uir_cpu_kept_add(void *user, const uir_cpu_job *job);

#endif
