/* The progress of an operation of several stages, as one number that never falls, and its caller's request to stop.
 *
 * In: the caller's function and flag, and from each stage how far it is by itself. Out: calls of the function, few of
 * them however many steps there are; CANCELLED for who tells. All of it on one thread. */
#ifndef UIR_BASE_PROGRESS_H
#define UIR_BASE_PROGRESS_H

#include "base/status.h"

enum { UIR_PROGRESS_MOST_CALLS = 100 }; /* of one operation */

typedef struct uir_operation {
    bool (*tell)(void *user, const char *stage, double fraction); /* true: stop; NULL: nobody listens */
    void *user;
    const volatile bool *cancel; /* set by whoever wants it to stop; NULL: nobody does */
    uir_budget *budget;          /* told of the stages, and asked; NULL: none */
    /* What was told; zero at first. */
    const char *stage;
    double fraction;
    uint32_t changes; /* of the stage alone */
    bool stopped;
} uir_operation;

/* A part of an operation, from one fraction of the whole to another. All zero: of none. */
typedef struct uir_progress {
    uir_operation *operation;
    double begin, end;
} uir_progress;

static inline uir_progress uir_operation_whole(uir_operation *operation) {
    return (uir_progress){operation, 0, 1};
}
static inline uir_progress uir_progress_part(uir_progress whole, double begin, double end) {
    double size = whole.end - whole.begin;
    return (uir_progress){whole.operation, whole.begin + begin * size, whole.begin + end * size};
}
/* CANCELLED once the operation is to stop. `stage` lives as long as the operation; `fraction` is of this part. */
uir_status uir_progress_tell(uir_progress progress, const char *stage, double fraction);
/* All is done: the last call, of 1. CANCELLED, without it, where it was to stop before. */
uir_status uir_operation_finish(uir_operation *operation);

#endif
