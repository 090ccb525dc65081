/* A thread of its own shows the time that goes by: a run reports nothing until it has ended. */
#define _DEFAULT_SOURCE
#include "progress.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { FIRST_MS = 1000, EVERY_MS = 500 };

static struct {
    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    bool running, ending, shown;
    char what[64];
    struct timespec since;
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER};

int terminal_width(int descriptor) {
    struct winsize size;
    if (isatty(descriptor) && ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    const char *columns = getenv("COLUMNS");
    long width = columns ? strtol(columns, NULL, 10) : 0;
    return width >= 20 && width <= 1000 ? (int)width : 80;
}

static double milliseconds_since(struct timespec start) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start.tv_sec) * 1e3 + (double)(now.tv_nsec - start.tv_nsec) * 1e-6;
}

static void clear_line(void) {
    if (!state.shown) return;
    fprintf(stderr, "\r%*s\r", terminal_width(STDERR_FILENO) - 1, "");
    fflush(stderr);
    state.shown = false;
}

static void show_line(void) {
    char line[128];
    double elapsed = milliseconds_since(state.since);
    if (!state.what[0] || elapsed < FIRST_MS) return;
    int width = terminal_width(STDERR_FILENO) - 1;
    snprintf(line, sizeof line, "%.0f s  %s", elapsed / 1e3, state.what);
    fprintf(stderr, "\r%-*.*s", width < 100 ? width : 100, width < 100 ? width : 100, line);
    fflush(stderr);
    state.shown = true;
}

static void *show(void *unused) {
    (void)unused;
    pthread_mutex_lock(&state.mutex);
    while (!state.ending) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += EVERY_MS * 1000000L;
        if (until.tv_nsec >= 1000000000L) until.tv_sec++, until.tv_nsec -= 1000000000L;
        pthread_cond_timedwait(&state.changed, &state.mutex, &until);
        if (!state.ending) show_line();
    }
    pthread_mutex_unlock(&state.mutex);
    return NULL;
}

void progress_start(void) {
    pthread_condattr_t clock;
    sigset_t all, before;
    if (!isatty(STDERR_FILENO) || pthread_condattr_init(&clock) != 0) return;
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    bool made = pthread_cond_init(&state.changed, &clock) == 0;
    pthread_condattr_destroy(&clock);
    if (!made) return;
    /* Signals go to the thread that computes: they may end a run, and this thread may hold the lock. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    state.running = pthread_create(&state.thread, NULL, show, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void progress_set(const char *what) {
    if (!state.running) return;
    pthread_mutex_lock(&state.mutex);
    if (strcmp(state.what, what) != 0) {
        if (!state.what[0]) clock_gettime(CLOCK_MONOTONIC, &state.since);
        snprintf(state.what, sizeof state.what, "%s", what);
    }
    pthread_mutex_unlock(&state.mutex);
}

void progress_set_part(const char *what, double fraction) {
    char line[sizeof state.what];
    snprintf(line, sizeof line, "%.*s, %.0f %%", (int)sizeof line - 10, what, fraction * 100);
    progress_set(line);
}

void progress_hide(void) {
    if (!state.running) return;
    pthread_mutex_lock(&state.mutex);
    clear_line();
    state.what[0] = 0;
    pthread_mutex_unlock(&state.mutex);
}

void progress_stop(void) {
    if (!state.running) return;
    progress_hide();
    pthread_mutex_lock(&state.mutex);
    state.ending = true;
    pthread_cond_signal(&state.changed);
    pthread_mutex_unlock(&state.mutex);
    pthread_join(state.thread, NULL);
    pthread_cond_destroy(&state.changed);
    state.running = false;
}
