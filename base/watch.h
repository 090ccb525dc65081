/* A timer: calls a function on a thread of its own after a time, unless stopped before. The first start creates the
 * thread, which lasts until uir_watch_deinit. */
#ifndef UIR_BASE_WATCH_H
#define UIR_BASE_WATCH_H

#include "uir/uir.h"
#include <pthread.h>

typedef struct uir_watch {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool has_thread, ends, runs;
    struct timespec at; /* CLOCK_MONOTONIC */
    void (*ring)(void *user);
    void *user;
} uir_watch;

/* A zeroed watch is valid. `ring` is called with the watch's lock held: it may only set flags. OUT_OF_MEMORY: the
 * thread cannot be started. */
uir_status uir_watch_start(uir_watch *watch, uint64_t milliseconds, void (*ring)(void *user), void *user);
/* `ring` is not called after this returns. */
void uir_watch_stop(uir_watch *watch);
void uir_watch_deinit(uir_watch *watch);

#endif
