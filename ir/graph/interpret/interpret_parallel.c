/* Jobs over threads. A run of the interpreter is not where speed matters most, so threads are made for a big op and
 * joined at its end; there is no pool to keep and nothing spins. */
#include "ir/graph/interpret/interpret.h"
#include <pthread.h>
#include <stdatomic.h>

enum { MAX_WORKERS = 64 };
/* Making and joining a thread costs about as much as this many elementary steps. */
static const uint64_t worth_a_thread = 400000;

typedef struct job_list {
    const uir_call *call;
    void (*job)(void *user, uint64_t index, uint32_t worker);
    void *user;
    uint64_t count;
    _Atomic uint64_t next;
} job_list;

typedef struct worker {
    job_list *list;
    uint32_t index;
    pthread_t thread;
} worker;

uint32_t uir_call_threads(const uir_call *call) {
    uint32_t threads = call->interpreter->options.threads;
    return threads ? threads : 1;
}

uir_budget *uir_call_budget(const uir_call *call) {
    return call->interpreter->arena.budget;
}

bool uir_call_cancelled(const uir_call *call) {
    const volatile bool *cancel = call->interpreter->options.cancel;
    return (cancel && __atomic_load_n(cancel, __ATOMIC_RELAXED)) || uir_budget_is_over(uir_call_budget(call));
}

bool uir_call_stops(const uir_call *call, uint64_t *walked, uint64_t steps) {
    enum { OFTEN = 1 << 16 };
    *walked += steps;
    if (*walked < OFTEN) return false;
    *walked = 0;
    return uir_call_cancelled(call);
}

static void *work(void *argument) {
    worker *self = argument;
    job_list *list = self->list;
    for (;;) {
        uint64_t index = atomic_fetch_add_explicit(&list->next, 1, memory_order_relaxed);
        if (index >= list->count || uir_call_cancelled(list->call)) return NULL;
        list->job(list->user, index, self->index);
    }
}

uint32_t uir_call_workers(const uir_call *call, uint64_t count, uint64_t cost) {
    uint64_t workers = uir_call_threads(call);
    if (workers > MAX_WORKERS) workers = MAX_WORKERS;
    if (workers > count) workers = count;
    if (workers > 1 + cost / worth_a_thread) workers = 1 + cost / worth_a_thread;
    return workers ? (uint32_t)workers : 1;
}

void uir_call_parallel(uir_call *call, uint64_t count, uint64_t cost,
                       void (*job)(void *user, uint64_t index, uint32_t worker), void *user) {
    job_list list = {call, job, user, count, 0};
    worker workers[MAX_WORKERS];
    uint32_t wanted = uir_call_workers(call, count, cost), started = 1;
    for (uint32_t i = 0; i < wanted; i++) workers[i] = (worker){.list = &list, .index = i};
    /* A thread that cannot be had is done without. */
    while (started < wanted && !pthread_create(&workers[started].thread, NULL, work, &workers[started])) started++;
    work(&workers[0]);
    for (uint32_t i = 1; i < started; i++) pthread_join(workers[i].thread, NULL);
}
