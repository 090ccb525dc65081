/* Prints kernels whose unit is many threads: a work-group, a thread block.
 *
 * In: a verified kernel with its barriers (`synchronised`), and what the printed language has of its own. Out: a
 * function for each phase, which every thread of a unit executes. Which thread computes which element is the kernel's
 * meaning (docs/igraph.md, "Threads"); threads meet where the kernel has a sync.unit, and between the steps of a row
 * reduction's tree. A thread has its elements of a register buffer in an array, whose indices are constant once loops
 * are unrolled. Elementwise functions are those of a prelude whose vectors have one lane. */
#ifndef UIR_BACKENDS_SOURCE_THREADS_EMIT_H
#define UIR_BACKENDS_SOURCE_THREADS_EMIT_H

#include "backends/source/vector/emit.h"

typedef struct uir_threads_dialect {
    uir_vector_dialect vector; /* its words for memory of the device, and its frame of a phase */
    const char *shared;        /* in front of the type that a pointer to a unit's shared memory points to */
    const char *thread;        /* the thread's number in its unit, an int */
    const char *barrier;       /* a statement: all threads of the unit meet, and see what each has written */
} uir_threads_dialect;

/* Bytes of shared memory of a unit; NONE if the expression cannot be made. It begins with UIR_THREADS_REDUCTION_BYTES
 * for each thread, which the frame declares as `uir_lanes`, and UIR_THREADS_FRAME_BYTES that the frame may use. */
uir_dim uir_threads_shared_bytes(const uir_igraph *igraph);
enum { UIR_THREADS_REDUCTION_BYTES = 8, UIR_THREADS_FRAME_BYTES = 16 };

/* Appends one kernel; its functions are named after uir_c_symbol. UNSUPPORTED: the kernel has no barriers yet, or an
 * index that one thread has. */
uir_status uir_threads_emit(const uir_igraph *igraph, const uir_threads_dialect *dialect, uint32_t index,
                            uir_text *text, uir_diagnostics *diagnostics);

#endif
