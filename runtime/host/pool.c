/* A few threads that share a task.
 *
 * Workers sleep between runs. Within a run they look for the next task for some tens of microseconds before they sleep,
 * so that kernels that follow one another closely start without a system call. A task is open to whoever comes: when
 * the caller has nothing left to do it is closed, and only those who have begun are waited for. So a worker that the
 * machine has no time for holds nothing up. */
#include "runtime/internal.h"

#include <pthread.h>
#include <time.h>

enum { SPIN_NANOSECONDS = 40000, SPIN_CHECK = 64 };

typedef struct worker {
    uir_rt_pool *pool;
    pthread_t thread;
    uint32_t index;
} worker;

/* The state of the task: how many are at it, whether it is closed, and its number. */
#define STATE_ACTIVE UINT64_C(0xffff)
#define STATE_CLOSED UINT64_C(0x10000)
enum { STATE_NUMBER_SHIFT = 32 };

struct uir_rt_pool {
    uir_allocator allocator;
    pthread_mutex_t mutex;
    pthread_cond_t wake, finished;
    _Atomic(uint64_t) state;
    atomic_uint sleepers; /* workers that wait for `wake`, or are about to */
    atomic_bool awake;    /* a run is on */
    atomic_bool caller_sleeps;
    bool stop;
    uir_rt_task *task; /* written while nobody is at it */
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

static uint32_t number_of(uint64_t state) {
    return (uint32_t)(state >> STATE_NUMBER_SHIFT);
}

static bool has_other(const uir_rt_pool *pool, uint32_t seen) {
    return number_of(atomic_load_explicit(&pool->state, memory_order_acquire)) != seen;
}

static bool has_nobody(const uir_rt_pool *pool, uint32_t unused) {
    (void)unused;
    return (atomic_load(&pool->state) & STATE_ACTIVE) == 0;
}

/* Waits awake until the condition holds; false when time is up. */
static bool spin(const uir_rt_pool *pool, bool (*holds)(const uir_rt_pool *, uint32_t), uint32_t number) {
    uint64_t end = 0;
    for (uint32_t i = 1;; i++) {
        if (holds(pool, number)) return true;
        relax();
        if (i % SPIN_CHECK) continue;
        uint64_t now = uir_rt_now();
        if (!end) end = now + SPIN_NANOSECONDS;
        if (now > end) return false;
    }
}

/* Joins the task unless it is closed. */
static void join_task(worker *w, uint64_t state) {
    uir_rt_pool *pool = w->pool;
    uint32_t number = number_of(state);
    while (!(state & STATE_CLOSED) && number_of(state) == number) {
        if (!atomic_compare_exchange_weak(&pool->state, &state, state + 1)) continue;
        if (w->index < pool->threads) pool->task(pool->context, w->index);
        state = atomic_fetch_sub(&pool->state, 1);
        if ((state & STATE_ACTIVE) == 1 && atomic_load(&pool->caller_sleeps)) {
            pthread_mutex_lock(&pool->mutex);
            pthread_cond_signal(&pool->finished);
            pthread_mutex_unlock(&pool->mutex);
        }
        return;
    }
}

/* Until there is another task than `seen`; false when the pool ends. */
static bool sleep_for_task(uir_rt_pool *pool, uint32_t seen) {
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&pool->sleepers, 1);
    while (!pool->stop && number_of(atomic_load(&pool->state)) == seen) pthread_cond_wait(&pool->wake, &pool->mutex);
    atomic_fetch_sub(&pool->sleepers, 1);
    bool stop = pool->stop;
    pthread_mutex_unlock(&pool->mutex);
    return !stop;
}

static void *work(void *argument) {
    worker *w = argument;
    uir_rt_pool *pool = w->pool;
    uint32_t seen = 0;
    for (;;) {
        if ((!atomic_load_explicit(&pool->awake, memory_order_relaxed) || !spin(pool, has_other, seen)) &&
            !sleep_for_task(pool, seen))
            return NULL;
        uint64_t state = atomic_load(&pool->state);
        seen = number_of(state);
        join_task(w, state);
    }
}

uir_status uir_rt_pool_create(const uir_allocator *allocator, uint32_t workers, uir_rt_pool **out_pool) {
    uir_rt_pool *pool;
    size_t size = sizeof *pool + workers * sizeof(worker);
    UIR_TRY_ALLOCATE(pool, uir_allocate_zeroed(allocator, size));
    pool->allocator = *allocator;
    pool->count = workers;
    atomic_store(&pool->state, STATE_CLOSED);
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
    atomic_store_explicit(&pool->awake, true, memory_order_relaxed);
}

void uir_rt_pool_end(uir_rt_pool *pool) {
    atomic_store_explicit(&pool->awake, false, memory_order_relaxed);
}

void uir_rt_pool_run(uir_rt_pool *pool, uint32_t threads, uir_rt_task *task, void *context) {
    if (pool->started == 0 || threads < 2) {
        task(context, 0);
        return;
    }
    pool->task = task;
    pool->context = context;
    pool->threads = threads;
    uint64_t number = number_of(atomic_load(&pool->state)) + UINT64_C(1);
    atomic_store(&pool->state, (number & UINT32_MAX) << STATE_NUMBER_SHIFT);
    if (atomic_load(&pool->sleepers)) {
        pthread_mutex_lock(&pool->mutex);
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->mutex);
    }
    task(context, 0);
    if (!(atomic_fetch_or(&pool->state, STATE_CLOSED) & STATE_ACTIVE) || spin(pool, has_nobody, 0)) return;
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->caller_sleeps, true);
    while (!has_nobody(pool, 0)) pthread_cond_wait(&pool->finished, &pool->mutex);
    atomic_store(&pool->caller_sleeps, false);
    pthread_mutex_unlock(&pool->mutex);
}
