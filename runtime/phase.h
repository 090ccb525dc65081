/* Runs a phase of a prepared launch in slices, on threads: the one way that the host executes kernels, in runs of
 * packages and of single kernels.
 *
 * In: a launch that its format has prepared, scratch memory for each thread. Out: its results, and a status. */
#ifndef UIR_RUNTIME_PHASE_H
#define UIR_RUNTIME_PHASE_H

#include "runtime/format.h"

#include <stdatomic.h>

/* A thread's remaining indices of a phase. Padded against false sharing, also by adjacent-line prefetch. */
typedef struct uir_rt_share {
    _Atomic(int64_t) next;
    int64_t end;
    char apart[128 - 2 * sizeof(int64_t)];
} uir_rt_share;

typedef struct uir_rt_phase {
    const uir_kernel_format *format;
    const uir_kernel_launch *launch;
    uint32_t phase;
    uint32_t threads;            /* at most; one for each index */
    uint64_t bytes;              /* of the launch's tensors: they determine the number of slices */
    uir_kernel_scratch *scratch; /* per thread */
    uir_rt_share *shares;        /* per thread */
    /* Runs task(context, i) for every i < count, on any threads, and returns when all are done. Not called for one
     * thread. */
    void (*parallel)(void *user, uint32_t count, void (*task)(void *context, uint32_t i), void *context);
    /* Called by a thread after its last slice, if it had any, with uir_rt_now() of its begin; NULL: not called. */
    void (*done)(void *user, uint32_t thread, uint64_t begin, uint64_t indices);
    void *user;
    int64_t chunk; /* indices of a slice; this and the status belong to the run */
    atomic_int status;
} uir_rt_phase;

/* CANCELLED once the launch's `cancel` is set, else the first failure of a slice. */
uir_status uir_rt_phase_run(uir_rt_phase *phase);
/* What a failed slice has told of itself; NULL: nothing. */
const char *uir_rt_phase_get_failure(const uir_rt_phase *phase);

#endif
