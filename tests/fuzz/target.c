#include "tests/fuzz/target.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MEMORY = 192 << 20, MILLISECONDS = 300, MOST_ELEMENTS = 1 << 14 };

void fuzz_require(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "fuzz target: %s\n", what);
    abort();
}

/* ---- counts ---- */
static struct counts {
    pthread_once_t once;
    uint64_t cases, good;
} counts = {.once = PTHREAD_ONCE_INIT};

static void tell_counts(void) {
    fprintf(stderr, "fuzz target: %llu of %llu inputs were well formed\n", (unsigned long long)counts.good,
            (unsigned long long)counts.cases);
}

static void count_at_exit(void) {
    atexit(tell_counts);
}

void fuzz_count(bool good) {
    pthread_once(&counts.once, count_at_exit);
    counts.cases++;
    counts.good += good;
}

/* ---- the deadline: one thread for the whole process ---- */
static struct watch {
    pthread_once_t once;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    void (*call)(void *user);
    void *user;
    struct timespec end;
} watch = {.once = PTHREAD_ONCE_INIT, .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *keep_watch(void *unused) {
    (void)unused;
    pthread_mutex_lock(&watch.mutex);
    for (;;) {
        struct timespec now, end = watch.end;
        clock_gettime(CLOCK_REALTIME, &now);
        if (!watch.call) {
            pthread_cond_wait(&watch.changed, &watch.mutex);
        } else if (now.tv_sec > end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec >= end.tv_nsec)) {
            watch.call(watch.user);
            watch.call = NULL;
        } else {
            pthread_cond_timedwait(&watch.changed, &watch.mutex, &end);
        }
    }
    return NULL;
}

static void start_watch(void) {
    pthread_t thread;
    fuzz_require(pthread_create(&thread, NULL, keep_watch, NULL) == 0, "there is no thread to keep watch");
    pthread_detach(thread);
}

void fuzz_watch_begin(void (*call)(void *user), void *user) {
    pthread_once(&watch.once, start_watch);
    pthread_mutex_lock(&watch.mutex);
    clock_gettime(CLOCK_REALTIME, &watch.end);
    watch.end.tv_nsec += MILLISECONDS * 1000000L;
    watch.end.tv_sec += watch.end.tv_nsec / 1000000000L;
    watch.end.tv_nsec %= 1000000000L;
    watch.call = call;
    watch.user = user;
    pthread_cond_signal(&watch.changed);
    pthread_mutex_unlock(&watch.mutex);
}

void fuzz_watch_end(void) {
    pthread_mutex_lock(&watch.mutex);
    watch.call = NULL;
    pthread_mutex_unlock(&watch.mutex);
}

/* ---- a case ---- */
static void *limited_resize(void *user, void *pointer, size_t old_size, size_t new_size) {
    fuzz_case *c = user;
    uir_allocator system = uir_allocator_system();
    size_t old = pointer ? old_size : 0;
    if (new_size > MEMORY || __atomic_load_n(&c->used, __ATOMIC_RELAXED) - old + new_size > MEMORY) return NULL;
    void *result = system.resize(system.user, pointer, old_size, new_size);
    if (result || !new_size) __atomic_add_fetch(&c->used, new_size - old, __ATOMIC_RELAXED);
    return result;
}

static void set_cancel(void *user) {
    ((fuzz_case *)user)->cancel = true;
}

void fuzz_begin(fuzz_case *c) {
    *c = (fuzz_case){.allocator = {limited_resize, c}};
    uir_diagnostics_init(&c->diagnostics, &c->allocator);
    fuzz_watch_begin(set_cancel, c);
}

void fuzz_end(fuzz_case *c) {
    fuzz_watch_end();
    uir_diagnostics_deinit(&c->diagnostics);
    fuzz_require(c->used == 0, "memory was not given back");
}

void fuzz_require_told(const fuzz_case *c, uir_status status) {
    fuzz_require(status == UIR_STATUS_OK || status == UIR_STATUS_OUT_OF_MEMORY || status == UIR_STATUS_CANCELLED ||
                     c->diagnostics.error_count > 0,
                 "a failure without a message");
}

/* ---- data ---- */
void fuzz_fill(uir_dtype dtype, uint64_t count, uint64_t seed, void *out_data) {
    size_t size, width;
    if (!count || !uir_dtype_storage_size(dtype, count, &size)) return;
    width = size / count; /* 0 where bytes are shared: these stay zeros */
    for (uint64_t i = 0; i < count; i++) {
        char *at = (char *)out_data + i * width;
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint64_t small = dtype == UIR_DTYPE_BOOL ? seed >> 63 : seed >> 61;
        float f = (float)small / 4 - 1;
        double d = f;
        if (dtype == UIR_DTYPE_F32)
            memcpy(at, &f, sizeof f);
        else if (dtype == UIR_DTYPE_F64)
            memcpy(at, &d, sizeof d);
        else
            memcpy(at, &small, width < sizeof small ? width : sizeof small);
    }
}

uir_tensor *fuzz_make_tensor(const fuzz_case *c, uir_dtype dtype, uint32_t rank, const int64_t *shape, uint64_t seed) {
    uint64_t count;
    uir_tensor *tensor;
    if (!uir_shape_element_count(shape, rank, &count) || count > MOST_ELEMENTS) return NULL;
    if (uir_tensor_create(&c->allocator, dtype, rank, shape, &tensor) != UIR_STATUS_OK) return NULL;
    if (dtype != UIR_DTYPE_STRING) fuzz_fill(dtype, count, seed, tensor->data);
    return tensor;
}

/* ---- texts ---- */
void fuzz_require_same_text(fuzz_case *c, const uir_text *printed, fuzz_reread *read, void *user) {
    uir_text again;
    if (uir_text_status(printed) != UIR_STATUS_OK) return;
    uir_text_init(&again, &c->allocator);
    uir_status status = read(user, c, printed->data ? printed->data : "", printed->length, &again);
    if (status != UIR_STATUS_OUT_OF_MEMORY && uir_text_status(&again) == UIR_STATUS_OK) {
        bool same = status == UIR_STATUS_OK && again.length == printed->length &&
                    (!again.length || !memcmp(again.data, printed->data, again.length));
        if (!same)
            fprintf(stderr, "---- printed\n%.*s\n---- read again\n%.*s\n", (int)printed->length,
                    printed->data ? printed->data : "", (int)again.length, again.data ? again.data : "");
        fuzz_require(same, "what was printed is read as something else");
    }
    uir_text_deinit(&again);
}
