/* A thread that calls a function when a time has passed. In: milliseconds. Out: one call, unless it is stopped before.
 * There is no thread before the first start; it waits for the next one until the watch ends. */
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

/* Zero is a watch. `ring` is called with the watch's lock held: it sets flags. OUT_OF_MEMORY: there is no thread. */
uir_status uir_watch_start(uir_watch *watch, uint64_t milliseconds, void (*ring)(void *user), void *user);
/* After it `ring` is not called. */
void uir_watch_stop(uir_watch *watch);
void uir_watch_deinit(uir_watch *watch);

#endif
