/* The elements that a thread of a unit computes, and where it has them: the part of the emitter that knows who owns
 * what (docs/igraph.md, "Threads"). */
#ifndef UIR_BACKENDS_SOURCE_THREADS_ELEMENTS_H
#define UIR_BACKENDS_SOURCE_THREADS_ELEMENTS_H

#include "backends/source/threads/emit.h"

typedef struct threads_emitter {
    emitter e; /* first: functions of accesses take it */
    const uir_threads_dialect *dialect;
    uint32_t threads;
    uir_status status; /* UNSUPPORTED once an instruction has no text */
} threads_emitter;

/* How the threads share the elements of a result (docs/igraph.md, "Threads"). */
typedef enum sharing {
    EACH,     /* every thread computes the one element */
    IN_TURN,  /* element e in row-major order is thread e mod T's */
    BY_PLACE, /* as the elements of a slice in registers: a thread looks at all its places of the buffer */
    BY_OWNER, /* as the elements of a box in shared memory: every T-th of the buffer */
    BY_SEARCH /* as the elements of a slice that is partly outside: a thread looks at all, and takes its own */
} sharing;

typedef struct elements {
    sharing sharing;
    const uir_islice *frame; /* BY_PLACE, BY_OWNER, BY_SEARCH: whose owners compute the elements */
    const uir_dim *shape;
    uint32_t rank;
    const char *loops[INDEX_MAX + 1]; /* the element's index per dim */
    uint32_t opened;
} elements;

bool uir_threads_is_register(const uir_igraph *igraph, uint32_t pointer);
/* Whether each thread has the pointer, one element, and computes it for itself. */
bool uir_threads_is_number(const uir_igraph *igraph, uint32_t pointer);
/* Elements of a register buffer that one thread has: every T-th of its storage. */
int64_t uir_threads_count_places(const threads_emitter *t, uint32_t pointer);

elements uir_threads_find_elements(threads_emitter *t, const uir_iinstruction *in);
/* Opens a loop over a thread's numbers below a limit; two braces. */
void uir_threads_open_loop(threads_emitter *t, const char *name, const char *limit);
/* Opens a loop over the thread's elements, and names their indices in `loops`. */
void uir_threads_open_elements(threads_emitter *t, elements *x);
void uir_threads_close_elements(threads_emitter *t, elements *x);

/* The element of slice `k`, in registers or memory, at an index per dim of the slice; `x`: the loop around, or NULL. */
const char *uir_threads_read(threads_emitter *t, const uir_iinstruction *in, uint32_t k, const char *const *index,
                             const elements *x);
void uir_threads_write(threads_emitter *t, const uir_iinstruction *in, uint32_t k, const char *const *index,
                       const elements *x, const char *value);
/* Likewise at the loops' index of the shape; the written one is the result. */
const char *uir_threads_read_aligned(threads_emitter *t, const uir_iinstruction *in, uint32_t k, const elements *x);
void uir_threads_write_aligned(threads_emitter *t, const uir_iinstruction *in, const elements *x, const char *value);

#endif
