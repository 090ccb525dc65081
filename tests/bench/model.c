/* uir-bench-model MODEL CACHE THREADS [cpu] [on DEVICE]: one open model that is told what to do line by line, so that
 * no start of a process is in a time.
 *
 * In, on standard input, and what each is answered with on standard output:
 *
 * - data DIR: binds input_N.pb, runs once; ok MILLISECONDS NATIVE_CALLS OTHER_CALLS
 *
 * - place DIR: as data, with the inputs and the results in the memory of the model's device, where it has one
 *
 * - count: what the kernels of a run compute; ok FLOPS
 *
 * - save DIR: writes output_N.pb of the last run; ok
 *
 * - run SECONDS: runs for that long, at least once; ok and each run's milliseconds
 *
 * - limit KIND WORK SECONDS: as run, but what the machine can do at best (limits.h): `multiply` of WORK flops, `read`
 * or `copy` of WORK bytes; the way of doing so that is fastest in the middle. With more than one of THREADS they share
 * the work, and the time is the wall's from before the first begins until the last is done
 *
 * Before the first, when the model is open: ok MILLISECONDS. "error TEXT" where something failed. With `cpu` the runs'
 * times are of the processor time of the whole process instead of the wall's. DEVICE is as of uir-run, else the CPU.
 * Uses the public API alone. */
#define _POSIX_C_SOURCE 200809L
#include "backends/cpu/driver/limits.h"
#include "tools/run/query.h"
#include <uir/device.h>
#include <uir/uir.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_RUNS = 1 << 16, MOST_INPUTS = 256, MOST_THREADS = 64, BYTES_SHARE = 256 << 10, FLOPS_SHARE = 4 << 20 };

static uir_context *context;
static uir_model *model;
static uir_session *session;
static uir_value *inputs[MOST_INPUTS];
static double times[MOST_RUNS];
static clockid_t run_clock = CLOCK_MONOTONIC;
static uint32_t thread_count = 1;

static double ms_of(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* One line for a status that is not ok, from the messages; they are said once. */
static bool failed(uir_status status) {
    if (status == UIR_STATUS_OK) return false;
    size_t count = uir_context_message_count(context);
    const char *text = count ? uir_context_get_message_text(context, count - 1) : uir_status_text(status);
    fputs("error ", stdout);
    for (; *text; text++) putchar(*text == '\n' ? ' ' : *text);
    putchar('\n');
    uir_context_clear_messages(context);
    return true;
}

/* ---- data ---- */
static uir_value *there[2 * MOST_INPUTS]; /* inputs and results in the memory of the model's device */

static bool bind_inputs(const char *folder) {
    char path[4300];
    size_t count = uir_model_input_count(model);
    if (count > MOST_INPUTS || uir_model_output_count(model) > MOST_INPUTS) {
        puts("error too many inputs or outputs");
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        uir_value *value = NULL;
        snprintf(path, sizeof path, "%s/input_%zu.pb", folder, i);
        if (failed(uir_value_load_file(context, path, NULL, query_input(model, i).kind, &value))) return false;
        uir_status status = uir_session_set_input(session, i, value);
        uir_value_destroy(inputs[i]);
        inputs[i] = value;
        if (failed(status)) return false;
    }
    return true;
}

static void run_once(void) {
    double start = ms_of(CLOCK_MONOTONIC);
    if (failed(uir_session_run(session))) return;
    double ms = ms_of(CLOCK_MONOTONIC) - start;
    uir_run_statistics s = query_statistics(session);
    printf("ok %.6f %llu %llu\n", ms, (unsigned long long)s.native_calls,
           (unsigned long long)(s.vm_calls + s.host_calls + s.interpreter_calls));
}

static void bind_data(const char *folder) {
    if (bind_inputs(folder)) run_once();
}

/* A tensor of the value's type and shape, and with its elements where the host has them. */
static uir_status copy_there(uir_device *device, uir_value *value, uir_value **out_value) {
    const void *data = uir_value_get_data(value);
    uir_status status = uir_value_create_on_device(device, uir_value_get_dtype(value), uir_value_get_rank(value),
                                                   uir_value_get_shape(value), out_value);
    if (status != UIR_STATUS_OK || !data) return status;
    return uir_value_write(*out_value, 0, data, uir_value_get_byte_size(value));
}

/* The results have shapes after a run. */
static void place_data(const char *folder) {
    uir_device *device = uir_model_get_device(model);
    if (!bind_inputs(folder)) return;
    for (size_t i = 0; device && i < uir_model_input_count(model); i++) {
        if (failed(copy_there(device, inputs[i], &there[i]))) return;
        if (failed(uir_session_bind_input_value(session, i, uir_value_get_rank(inputs[i]),
                                                uir_value_get_shape(inputs[i]), NULL, there[i])))
            return;
    }
    if (failed(uir_session_run(session))) return;
    for (size_t i = 0; device && i < uir_model_output_count(model); i++) {
        uir_value *value, **place = &there[MOST_INPUTS + i];
        if (failed(uir_session_get_output(session, i, &value)) || failed(copy_there(device, value, place)) ||
            failed(uir_session_bind_output_value(session, i, 0, NULL, *place)))
            return;
    }
    run_once();
}

/* ---- what is measured ---- */
static void count_flops(void) {
    uint64_t flops = 0;
    uir_node_statistics node;
    if (failed(uir_session_count_traffic(session))) return;
    for (size_t i = 0; query_node(session, i, &node); i++) flops += node.flops;
    printf("ok %llu\n", (unsigned long long)flops);
}

static void save_outputs(const char *folder) {
    char path[4300];
    for (size_t i = 0; i < uir_model_output_count(model); i++) {
        uir_value *value = NULL;
        snprintf(path, sizeof path, "%s/output_%zu.pb", folder, i);
        if (failed(uir_session_get_output(session, i, &value))) return;
        if (failed(uir_value_save_file(context, value, path, uir_model_get_output_name(model, i)))) return;
    }
    puts("ok");
}

static void run_for(double seconds) {
    double end = ms_of(CLOCK_MONOTONIC) + seconds * 1e3;
    size_t count = 0;
    for (;;) {
        double start = ms_of(run_clock);
        if (failed(uir_session_run(session))) return;
        double stop = ms_of(run_clock);
        times[count++] = stop - start;
        if (ms_of(CLOCK_MONOTONIC) >= end || count == MOST_RUNS) break;
    }
    fputs("ok", stdout);
    for (size_t i = 0; i < count; i++) printf(" %.6f", times[i]);
    putchar('\n');
}

/* What the threads of a limit share. They wait awake for the next go, so that no start is in a time. */
typedef struct limit {
    char kind;
    size_t way;
    double work; /* of all threads */
    char *from, *to;
    atomic_size_t next; /* byte or flop that nobody has begun with */
    atomic_uint go, done;
    atomic_bool end;
} limit;

static double do_part(const limit *l, size_t at, size_t amount) {
    return l->kind == 'm'   ? uir_cpu_limit_multiply_add(l->way, (double)amount)
           : l->kind == 'r' ? uir_cpu_limit_read(l->way, l->from + at, amount)
                            : uir_cpu_limit_copy(l->way, l->to + at, l->from + at, amount);
}

/* All of the work, or what this thread can get of it before the others. */
static double limit_part_ms(limit *l) {
    size_t amount = (size_t)l->work, share = l->kind == 'm' ? FLOPS_SHARE : BYTES_SHARE;
    if (thread_count == 1) return do_part(l, 0, amount) * 1e3;
    for (size_t at; (at = atomic_fetch_add(&l->next, share)) < amount;)
        do_part(l, at, amount - at < share ? amount - at : share);
    return 0;
}

static void *serve_limit(void *user) {
    limit *l = user;
    for (unsigned seen = 0;;) {
        while (atomic_load(&l->go) == seen)
            if (atomic_load(&l->end)) return NULL;
        seen++;
        limit_part_ms(l);
        atomic_fetch_add(&l->done, 1);
    }
}

static double limit_ms(limit *l) {
    if (thread_count == 1) return limit_part_ms(l);
    double start = ms_of(CLOCK_MONOTONIC);
    atomic_store(&l->done, 0);
    atomic_store(&l->next, 0);
    atomic_fetch_add(&l->go, 1);
    limit_part_ms(l);
    while (atomic_load(&l->done) + 1 < thread_count) {
    }
    return ms_of(CLOCK_MONOTONIC) - start;
}

static int compare_times(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* All ways in turn; what is answered is the fastest way's median. */
static double measure_ways(limit *l, double seconds) {
    size_t ways = l->kind == 'm'   ? uir_cpu_limit_multiply_add_ways()
                  : l->kind == 'r' ? uir_cpu_limit_read_ways()
                                   : uir_cpu_limit_copy_ways();
    double best = 0;
    for (l->way = 0; l->way < ways; l->way++) {
        double end = ms_of(CLOCK_MONOTONIC) + seconds * 1e3 / (double)ways;
        size_t count = 0;
        do times[count++] = limit_ms(l);
        while (ms_of(CLOCK_MONOTONIC) < end && count < MOST_RUNS);
        qsort(times, count, sizeof *times, compare_times);
        if (!l->way || times[count / 2] < best) best = times[count / 2];
    }
    return best;
}

static void limit_for(const char *arguments) {
    char kind[16];
    double work, seconds;
    if (sscanf(arguments, "%15s %lf %lf", kind, &work, &seconds) != 3 || !strchr("mrc", kind[0]) || work < 64) {
        puts("error: limit multiply|read|copy WORK SECONDS");
        return;
    }
    size_t bytes = kind[0] == 'm' ? 4096 : ((size_t)work + 4095) / 4096 * 4096;
    limit l = {.kind = kind[0], .work = work, .from = aligned_alloc(4096, bytes), .to = aligned_alloc(4096, bytes)};
    pthread_t threads[MOST_THREADS];
    uint32_t started = 1;
    for (; l.from && l.to && started < thread_count; started++)
        if (pthread_create(&threads[started], NULL, serve_limit, &l) != 0) break;
    if (started == thread_count) {
        memset(l.from, 1, bytes);
        memset(l.to, 1, bytes);
        printf("ok %.6f\n", measure_ways(&l, seconds));
    } else {
        puts("error out of memory or threads");
    }
    atomic_store(&l.end, true);
    for (uint32_t i = 1; i < started; i++) pthread_join(threads[i], NULL);
    free(l.from);
    free(l.to);
}

static bool open_model(char **arguments, const char *device) {
    uir_model_options options = {.struct_size = sizeof options, .device = device, .wait = true, .cache = arguments[2]};
    uir_session_options threads = {.struct_size = sizeof threads, .threads = thread_count};
    double start = ms_of(CLOCK_MONOTONIC);
    if (failed(uir_model_load_file(context, arguments[1], &options, &model))) return false;
    if (failed(uir_session_create(model, &threads, &session))) return false;
    printf("ok %.6f\n", ms_of(CLOCK_MONOTONIC) - start);
    return true;
}

int main(int argc, char **argv) {
    char line[4200];
    int taken = 4;
    bool cpu = argc > taken && !strcmp(argv[taken], "cpu");
    taken += cpu;
    const char *device = argc == taken + 2 && !strcmp(argv[taken], "on") ? argv[taken + 1] : NULL;
    if (argc != taken + 2 * (device != NULL)) {
        fputs("usage: uir-bench-model MODEL CACHE THREADS [cpu] [on DEVICE]; tests/bench/models.py runs it\n", stderr);
        return 2;
    }
    if (cpu) run_clock = CLOCK_PROCESS_CPUTIME_ID;
    thread_count = (uint32_t)strtoul(argv[3], NULL, 10);
    if (thread_count < 1 || thread_count > MOST_THREADS) {
        fprintf(stderr, "uir-bench-model: 1 to %d threads\n", MOST_THREADS);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (uir_context_create(NULL, &context) != UIR_STATUS_OK) return 5;
    bool open = open_model(argv, device);
    while (open && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, "data ", 5))
            bind_data(line + 5);
        else if (!strncmp(line, "place ", 6))
            place_data(line + 6);
        else if (!strcmp(line, "count"))
            count_flops();
        else if (!strncmp(line, "save ", 5))
            save_outputs(line + 5);
        else if (!strncmp(line, "run ", 4))
            run_for(strtod(line + 4, NULL));
        else if (!strncmp(line, "limit ", 6))
            limit_for(line + 6);
        else
            puts("error unknown command");
    }
    uir_session_destroy(session);
    for (size_t i = 0; i < MOST_INPUTS; i++) uir_value_destroy(inputs[i]);
    for (size_t i = 0; i < 2 * MOST_INPUTS; i++) uir_value_destroy(there[i]);
    uir_model_destroy(model);
    uir_context_destroy(context);
    return open ? 0 : 1;
}
