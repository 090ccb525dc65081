/* The progress of an operation of several stages, as one number that never falls, and its caller's request to stop.
 *
 * In: the caller's function and flag, and from each stage its own progress. Out: at most UIR_PROGRESS_MOST_CALLS calls
 * of the function; CANCELLED for the stages. All on one thread. */
#ifndef UIR_BASE_PROGRESS_H
#define UIR_BASE_PROGRESS_H

#include "base/status.h"

enum { UIR_PROGRESS_MOST_CALLS = 100 }; /* per operation */

typedef struct uir_operation {
    bool (*tell)(void *user, const char *stage, double fraction); /* true: stop; NULL: no callback */
    void *user;
    const volatile bool *cancel; /* set to request a stop; NULL: none */
    uir_budget *budget;          /* receives the stages, and is asked whether to stop; NULL: none */
    /* State so far; zero at first. */
    const char *stage;
    double fraction;
    uint32_t changes; /* calls for a new stage without growth */
    bool stopped;
} uir_operation;

/* A part of an operation, from one fraction of the whole to another. All zero: no operation, no calls. */
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
/* CANCELLED once the operation has to stop. `stage` must live as long as the operation; `fraction` is that of this
 * part. */
uir_status uir_progress_tell(uir_progress progress, const char *stage, double fraction);
/* Makes the last call, of fraction 1. CANCELLED, without the call, if a stop was requested before. */
uir_status uir_operation_finish(uir_operation *operation);

#endif
