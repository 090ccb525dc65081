#include "base/watch.h"

#include <signal.h>
#include <string.h>
#include <time.h>

enum { STACK_BYTES = 256 << 10 };

static bool is_due(const struct timespec *at) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > at->tv_sec || (now.tv_sec == at->tv_sec && now.tv_nsec >= at->tv_nsec);
}

static void *watch_time(void *user) {
    uir_watch *watch = user;
    pthread_mutex_lock(&watch->mutex);
    while (!watch->ends) {
        if (!watch->runs) {
            pthread_cond_wait(&watch->changed, &watch->mutex);
        } else if (is_due(&watch->at)) {
            watch->runs = false;
            watch->ring(watch->user);
        } else {
            pthread_cond_timedwait(&watch->changed, &watch->mutex, &watch->at);
        }
    }
    pthread_mutex_unlock(&watch->mutex);
    return NULL;
}

static bool init_lock(uir_watch *watch) {
    pthread_condattr_t attributes;
    if (pthread_mutex_init(&watch->mutex, NULL) != 0) return false;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    bool good = pthread_cond_init(&watch->changed, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    if (!good) pthread_mutex_destroy(&watch->mutex);
    return good;
}

/* Signals are the program's own threads'. */
static bool start_thread(uir_watch *watch) {
    sigset_t all, before;
    pthread_attr_t attributes;
    if (!init_lock(watch)) return false;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    watch->has_thread = pthread_create(&watch->thread, &attributes, watch_time, watch) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (watch->has_thread) return true;
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->mutex);
    return false;
}

uir_status uir_watch_start(uir_watch *watch, uint64_t milliseconds, void (*ring)(void *user), void *user) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    uint64_t nanoseconds = (uint64_t)at.tv_nsec + milliseconds % 1000 * 1000000;
    at.tv_sec += (time_t)(milliseconds / 1000 + nanoseconds / 1000000000);
    at.tv_nsec = (long)(nanoseconds % 1000000000);
    if (!watch->has_thread && !start_thread(watch)) return UIR_STATUS_OUT_OF_MEMORY;
    pthread_mutex_lock(&watch->mutex);
    watch->at = at;
    watch->ring = ring;
    watch->user = user;
    watch->runs = true;
    pthread_cond_signal(&watch->changed);
    pthread_mutex_unlock(&watch->mutex);
    return UIR_STATUS_OK;
}

void uir_watch_stop(uir_watch *watch) {
    if (!watch->has_thread) return;
    pthread_mutex_lock(&watch->mutex);
    watch->runs = false;
    pthread_mutex_unlock(&watch->mutex);
}

void uir_watch_deinit(uir_watch *watch) {
    if (!watch->has_thread) return;
    pthread_mutex_lock(&watch->mutex);
    watch->ends = true;
    pthread_cond_signal(&watch->changed);
    pthread_mutex_unlock(&watch->mutex);
    pthread_join(watch->thread, NULL);
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->mutex);
    memset(watch, 0, sizeof *watch);
}
