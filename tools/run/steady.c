#define _POSIX_C_SOURCE 200809L
#include "steady.h"
#include "clock.h"
#include "printable.h"
#include "query.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PROFILE_LEAST = 5, PROFILE_MOST = 101 };

/* ---- numbers that are gathered ---- */

typedef struct samples {
    double *items;
    size_t count;
} samples;

static bool add_sample(samples *s, double item) {
    if (!(s->count & (s->count - 1))) {
        double *grown = realloc(s->items, (s->count ? 2 * s->count : 1) * sizeof *grown);
        if (!grown) return false;
        s->items = grown;
    }
    s->items[s->count++] = item;
    return true;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void take_percentiles(samples *s, run_times *times) {
    if (!s->count) return;
    qsort(s->items, s->count, sizeof *s->items, compare_doubles);
    times->count = s->count;
    times->p50_ms = s->items[(s->count - 1) / 2];
    times->p90_ms = s->items[(s->count - 1) * 9 / 10];
    times->p99_ms = s->items[(s->count - 1) * 99 / 100];
}

/* ---- when it is enough ---- */

typedef struct limits {
    double end_ms;
    size_t least, most;
} limits;

static limits limits_of(const run_options *o) {
    limits l = {.most = SIZE_MAX, .least = 1};
    double seconds = o->has_seconds ? o->seconds : o->has_iterations ? 1e9 : o->bench ? 2 : 1;
    l.end_ms = now_ms() + seconds * 1e3;
    if (o->has_iterations) l.most = (size_t)o->iterations;
    if (!o->bench && !o->has_iterations) {
        l.most = PROFILE_MOST;
        l.least = o->has_seconds ? 1 : PROFILE_LEAST;
    }
    return l;
}

static bool is_enough(const limits *l, size_t count) {
    return count >= l->most || (count >= l->least && now_ms() >= l->end_ms);
}

static int64_t warmups(const run_options *o) {
    return o->has_warmup ? o->warmup : 1;
}

/* ---- times of nodes ---- */

/* By run, then by node: the same nodes each time. */
typedef struct node_samples {
    samples all;
    size_t nodes, runs;
} node_samples;

static bool add_nodes(node_samples *n, const uir_session *session) {
    uir_node_statistics node;
    size_t count = 0;
    if (n->runs == PROFILE_MOST) return true;
    for (; query_node(session, count, &node); count++)
        if (!add_sample(&n->all, node.ms)) return false;
    if (n->runs && count != n->nodes) { /* other branches, other nodes: from here on */
        memmove(n->all.items, n->all.items + n->all.count - count, count * sizeof *n->all.items);
        n->all.count = count;
        n->runs = 0;
    }
    n->nodes = count;
    n->runs++;
    return true;
}

static uir_status take_medians(const node_samples *n, case_result *result) {
    double *column = malloc((n->runs + 1) * sizeof *column);
    result->node_ms = malloc((n->nodes + 1) * sizeof *result->node_ms);
    if (column && result->node_ms) {
        for (size_t i = 0; i < n->nodes; i++) {
            for (size_t k = 0; k < n->runs; k++) column[k] = n->all.items[k * n->nodes + i];
            qsort(column, n->runs, sizeof *column, compare_doubles);
            result->node_ms[i] = column[(n->runs - 1) / 2];
        }
        result->node_count = n->nodes;
        result->profiled_runs = n->runs;
    }
    bool good = column && result->node_ms;
    free(column);
    return good ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
}

/* ---- one session ---- */

uir_status steady_measure(uir_session *session, const run_options *options, run_function *run, case_result *result) {
    samples times = {0};
    node_samples nodes = {0};
    double ms;
    uir_status status = UIR_STATUS_OK;
    for (int64_t i = 0; i < warmups(options) && status == UIR_STATUS_OK; i++) status = run(session, 0, &ms);
    limits l = limits_of(options);
    double busy_ms = 0;
    while (status == UIR_STATUS_OK && !is_enough(&l, times.count)) {
        status = run(session, 0, &ms);
        if (status != UIR_STATUS_OK) break;
        busy_ms += ms;
        if (!add_sample(&times, ms) || (options->profile && !add_nodes(&nodes, session)))
            status = UIR_STATUS_OUT_OF_MEMORY;
    }
    if (options->bench) {
        take_percentiles(&times, &result->times);
        if (busy_ms > 0) result->times.runs_per_second = (double)times.count / busy_ms * 1e3;
    }
    if (status == UIR_STATUS_OK && nodes.runs) status = take_medians(&nodes, result);
    free(times.items);
    free(nodes.all.items);
    return status;
}

/* ---- several at once ---- */

typedef struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    size_t waiting, count; /* who is ready, who is expected */
    limits limits;
    const run_options *options;
} gate;

typedef struct lane {
    gate *gate;
    uir_session *session;
    run_function *run;
    size_t slot;
    pthread_t thread;
    bool started;
    samples times;
    double begin_ms, end_ms;
    uir_status status;
} lane;

/* Measuring begins when all are warm: the last to come sets the time. */
static void wait_for_all(gate *g) {
    pthread_mutex_lock(&g->mutex);
    if (++g->waiting >= g->count) {
        g->limits = limits_of(g->options);
        pthread_cond_broadcast(&g->changed);
    }
    while (g->waiting < g->count) pthread_cond_wait(&g->changed, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
}

static void *run_lane(void *context) {
    lane *l = context;
    double ms;
    for (int64_t i = 0; i < 1 + warmups(l->gate->options) && l->status == UIR_STATUS_OK; i++)
        l->status = l->run(l->session, l->slot, &ms);
    wait_for_all(l->gate);
    limits enough = l->gate->limits;
    l->begin_ms = now_ms();
    while (l->status == UIR_STATUS_OK && !is_enough(&enough, l->times.count)) {
        l->status = l->run(l->session, l->slot, &ms);
        if (l->status == UIR_STATUS_OK && !add_sample(&l->times, ms)) l->status = UIR_STATUS_OUT_OF_MEMORY;
    }
    l->end_ms = now_ms();
    return NULL;
}

static void leave_out(gate *g) {
    pthread_mutex_lock(&g->mutex);
    g->count--;
    if (g->waiting >= g->count) {
        g->limits = limits_of(g->options);
        pthread_cond_broadcast(&g->changed);
    }
    pthread_mutex_unlock(&g->mutex);
}

static uir_status gather(const lane *lanes, size_t count, run_times *times) {
    samples all = {0};
    double begin_ms = 0, end_ms = 0;
    uir_status status = UIR_STATUS_OK;
    for (size_t i = 0; i < count && status == UIR_STATUS_OK; i++) {
        const lane *l = &lanes[i];
        status = l->status;
        if (!i || l->begin_ms < begin_ms) begin_ms = l->begin_ms;
        if (!i || l->end_ms > end_ms) end_ms = l->end_ms;
        for (size_t k = 0; k < l->times.count; k++)
            if (!add_sample(&all, l->times.items[k])) status = UIR_STATUS_OUT_OF_MEMORY;
    }
    if (status == UIR_STATUS_OK) {
        take_percentiles(&all, times);
        if (end_ms > begin_ms) times->runs_per_second = (double)all.count / (end_ms - begin_ms) * 1e3;
    }
    free(all.items);
    return status;
}

uir_status steady_measure_sessions(uir_model *model, const run_options *options, const run_case *c, run_function *run,
                                   case_result *result) {
    size_t count = (size_t)options->sessions;
    uint32_t cores = (uint32_t)(result->statistics.threads / count);
    uint32_t threads = options->threads ? (uint32_t)result->statistics.threads : cores ? cores : 1;
    uir_session_options session_options = {
        .struct_size = sizeof session_options, .threads = threads, .limits = &options->limits};
    gate g = {
        .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .count = count, .options = options};
    lane *lanes = calloc(count, sizeof *lanes);
    uir_status status = lanes ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
    for (size_t i = 0; i < count && status == UIR_STATUS_OK; i++) {
        lanes[i] = (lane){.gate = &g, .run = run, .slot = i};
        status = uir_session_create(model, &session_options, &lanes[i].session);
        for (size_t k = 0; k < c->input_count && status == UIR_STATUS_OK; k++)
            status = uir_session_set_input(lanes[i].session, k, c->inputs[k]);
    }
    for (size_t i = 0; i < count && status == UIR_STATUS_OK; i++) {
        lanes[i].started = pthread_create(&lanes[i].thread, NULL, run_lane, &lanes[i]) == 0;
        if (lanes[i].started) continue;
        complain("give fewer sessions", "--sessions: the system cannot start more than %zu threads", i);
        lanes[i].status = UIR_STATUS_DEVICE_FAILED;
        leave_out(&g);
    }
    for (size_t i = 0; lanes && i < count; i++)
        if (lanes[i].started) pthread_join(lanes[i].thread, NULL);
    if (status == UIR_STATUS_OK) status = gather(lanes, count, &result->times);
    result->times.sessions = count;
    result->times.session_threads = threads;
    for (size_t i = 0; lanes && i < count; i++) {
        uir_session_destroy(lanes[i].session);
        free(lanes[i].times.items);
    }
    free(lanes);
    return status;
}
