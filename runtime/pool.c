/* A few threads that run one task together.
 *
 * Workers sleep between runs. Within a run they look for the next task for some tens of microseconds before they sleep,
 * so that kernels that follow one another closely start without a system call. */
#include "runtime/internal.h"

#include <pthread.h>
#include <time.h>

enum { SPIN_NANOSECONDS = 40000, SPIN_CHECK = 64 };

typedef struct worker {
    uir_rt_pool *pool;
    pthread_t thread;
    uint32_t index;
} worker;

struct uir_rt_pool {
    uir_allocator allocator;
    pthread_mutex_t mutex;
    pthread_cond_t wake, finished;
    atomic_uint generation; /* of the task */
    atomic_uint running;    /* workers that have not finished it */
    atomic_bool active;     /* a run is on */
    atomic_bool caller_sleeps;
    bool stop;
    uir_rt_task *task;
    void *context;
    uint32_t threads;
    uint32_t count, started;
    worker workers[];
};

uint64_t uir_rt_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* Waits awake until the counter is no longer `old` (or, with `zero`, until it is 0); false when time is up. */
static bool spin(const atomic_uint *counter, unsigned old, bool zero) {
    uint64_t end = uir_rt_now() + SPIN_NANOSECONDS;
    for (uint32_t i = 1;; i++) {
        unsigned now = atomic_load_explicit(counter, memory_order_acquire);
        if (zero ? now == 0 : now != old) return true;
        relax();
        if (i % SPIN_CHECK == 0 && uir_rt_now() > end) return false;
    }
}

static void *work(void *argument) {
    worker *w = argument;
    uir_rt_pool *pool = w->pool;
    unsigned seen = 0;
    for (;;) {
        if (!atomic_load_explicit(&pool->active, memory_order_relaxed) || !spin(&pool->generation, seen, false)) {
            pthread_mutex_lock(&pool->mutex);
            while (!pool->stop && atomic_load_explicit(&pool->generation, memory_order_acquire) == seen)
                pthread_cond_wait(&pool->wake, &pool->mutex);
            bool stop = pool->stop;
            pthread_mutex_unlock(&pool->mutex);
            if (stop) return NULL;
        }
        seen = atomic_load_explicit(&pool->generation, memory_order_acquire);
        if (w->index < pool->threads) pool->task(pool->context, w->index);
        if (atomic_fetch_sub_explicit(&pool->running, 1, memory_order_seq_cst) == 1 &&
            atomic_load_explicit(&pool->caller_sleeps, memory_order_seq_cst)) {
            pthread_mutex_lock(&pool->mutex);
            pthread_cond_signal(&pool->finished);
            pthread_mutex_unlock(&pool->mutex);
        }
    }
}

uir_status uir_rt_pool_create(const uir_allocator *allocator, uint32_t workers, uir_rt_pool **out_pool) {
    uir_rt_pool *pool;
    size_t size = sizeof *pool + workers * sizeof(worker);
    UIR_TRY_ALLOCATE(pool, uir_allocate_zeroed(allocator, size));
    pool->allocator = *allocator;
    pool->count = workers;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->finished, NULL);
    for (uint32_t i = 0; i < workers; i++) {
        worker *w = &pool->workers[i];
        w->pool = pool;
        w->index = i + 1;
        if (pthread_create(&w->thread, NULL, work, w) != 0) break;
        pool->started++;
    }
    *out_pool = pool;
    return UIR_STATUS_OK;
}

void uir_rt_pool_destroy(uir_rt_pool *pool) {
    if (!pool) return;
    pthread_mutex_lock(&pool->mutex);
    pool->stop = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
    for (uint32_t i = 0; i < pool->started; i++) pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_cond_destroy(&pool->finished);
    pthread_mutex_destroy(&pool->mutex);
    uir_allocator allocator = pool->allocator;
    uir_release(&allocator, pool, sizeof *pool + pool->count * sizeof(worker));
}

void uir_rt_pool_begin(uir_rt_pool *pool) {
    atomic_store_explicit(&pool->active, true, memory_order_relaxed);
}

void uir_rt_pool_end(uir_rt_pool *pool) {
    atomic_store_explicit(&pool->active, false, memory_order_relaxed);
}

void uir_rt_pool_run(uir_rt_pool *pool, uint32_t threads, uir_rt_task *task, void *context) {
    if (pool->started == 0 || threads < 2) {
        for (uint32_t i = 0; i < threads; i++) task(context, i);
        return;
    }
    pthread_mutex_lock(&pool->mutex); /* orders the fields below for a worker that is about to sleep */
    pool->task = task;
    pool->context = context;
    pool->threads = threads;
    atomic_store_explicit(&pool->caller_sleeps, false, memory_order_relaxed);
    atomic_store_explicit(&pool->running, pool->started, memory_order_relaxed);
    atomic_fetch_add_explicit(&pool->generation, 1, memory_order_release);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
    task(context, 0);
    for (uint32_t i = pool->started + 1; i < threads; i++) task(context, i); /* threads that could not be made */
    if (spin(&pool->running, 0, true)) return;
    pthread_mutex_lock(&pool->mutex);
    atomic_store_explicit(&pool->caller_sleeps, true, memory_order_seq_cst);
    while (atomic_load_explicit(&pool->running, memory_order_seq_cst) != 0)
        pthread_cond_wait(&pool->finished, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
}
