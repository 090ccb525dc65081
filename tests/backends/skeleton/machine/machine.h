/* The machine that does not exist, simulated: what a kernel that backends/skeleton/target emits includes.
 *
 * A machine's own header stands in its place. Groups of units are threads that meet where the kernel says so. */
#ifndef NULL_MACHINE_H
#define NULL_MACHINE_H

#include "tests/backends/skeleton/machine/instructions.h"

#include <pthread.h>

#define UIR_LET const int64_t __attribute__((unused))

/* ---- arithmetic of sizes. A division that has no result makes `uir_undefined` true. ---- */
static _Thread_local int uir_undefined __attribute__((unused));
MACHINE int64_t uir_floordiv(int64_t a, int64_t b) {
    if (b < 1) return uir_undefined = 1, 0;
    return a / b - (a % b < 0);
}
MACHINE int64_t uir_ceildiv(int64_t a, int64_t b) {
    if (b < 1) return uir_undefined = 1, 0;
    return a / b + (a % b > 0);
}
MACHINE int64_t uir_mod(int64_t a, int64_t b) {
    return a - uir_floordiv(a, b) * b;
}
MACHINE int64_t uir_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}
MACHINE int64_t uir_max(int64_t a, int64_t b) {
    return a > b ? a : b;
}
/* What units of work take when workers share them. */
MACHINE int64_t uir_shared_cost(int64_t cost, int64_t units, int64_t workers) {
    int64_t turns = uir_ceildiv(units, uir_max(workers, 1)), result;
    if (turns <= 0) return 0;
    return __builtin_mul_overflow(cost, turns, &result) ? INT64_MAX : result;
}
/* Where a buffer ends that begins at `at`: elements of so many bits (of all instances), rounded up. */
#define PLACED(at, elements, bits, alignment)                                                                          \
    ((at) + ((elements) * (bits) + 8 * (alignment)-1) / (8 * (alignment)) * (alignment))

/* ---- units, groups, launches ---- */
enum { SPACES = 8, KINDS = 4 };
typedef struct group {
    pthread_barrier_t meet;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int units, of_kind[KINDS], raised[KINDS][KINDS];
    number **shown; /* per unit */
} group;
typedef struct unit {
    group *group;
    int number, kind, taken[KINDS];
    int64_t in_group, of_groups, copy; /* values of the parallel axes, as one number each */
    char *memory[SPACES];
    const int64_t *sizes;
    void *const *arguments;
    void (*run)(struct unit *);
} unit;
typedef struct body {
    void (*run)(unit *);
    int kind;
    int64_t copies;
} body;
/* Of a space: what each unit needs, or all of a group together. */
typedef struct room {
    int64_t bytes;
    int shared;
} room;

/* Pipes run in order here: there is nothing to wait for. */
MACHINE void wait_pipe(unit *u, int from, int to, int distance) {
    (void)u, (void)from, (void)to, (void)distance;
}
/* A unit's threads go through an instruction one after the other, all of them before the next. */
MACHINE void wait_threads(unit *u) {
    (void)u;
}
MACHINE void wait_group(unit *u) {
    if (u->group->units > 1) pthread_barrier_wait(&u->group->meet);
}
/* Each unit of the kind `from` says that it is here; one of the kind `to` waits for all of them. */
MACHINE void wait_kind(unit *u, int from, int to) {
    group *g = u->group;
    pthread_mutex_lock(&g->lock);
    if (u->kind == from) {
        g->raised[from][to]++;
        pthread_cond_broadcast(&g->changed);
    } else if (u->kind == to) {
        int needed = (u->taken[from] + 1) * (g->of_kind[from] ? g->of_kind[from] : 1);
        while (g->raised[from][to] < needed) pthread_cond_wait(&g->changed, &g->lock);
        u->taken[from]++;
    }
    pthread_mutex_unlock(&g->lock);
}
/* Into the first unit's result, unit by unit; of all units each its own. */
MACHINE void reduce_group(unit *u, operation *f, int identity, type t, int axis, view to, view from, int goes_on) {
    group *g = u->group;
    number *old = goes_on && u->number == 0 ? gather(&to) : NULL;
    g->shown[u->number] = reduce_lines(f, identity, t, axis, &from, old, total_of(&to));
    free(old);
    wait_group(u);
    if (u->number == 0) {
        for (int k = 1; k < g->units; k++)
            for (int64_t e = 0; e < total_of(&to); e++) g->shown[0][e] = with(f, t, g->shown[0][e], g->shown[k][e]);
        scatter(&to, g->shown[0]);
    }
    wait_group(u);
    if (u->number) free(g->shown[u->number]);
}
MACHINE void broadcast_group(unit *u, type t, view to, view from) {
    group *g = u->group;
    if (u->number == 0) g->shown[0] = gather(&from);
    wait_group(u);
    number *all = make_numbers(total_of(&to));
    for (int64_t e = 0; e < total_of(&to); e++) all[e] = same_of(t, &g->shown[0][element_of(&from, &to, e)]);
    scatter(&to, all);
    wait_group(u);
    if (u->number == 0) free(g->shown[0]);
}

MACHINE void *run_unit(void *data) {
    unit *u = data;
    u->run(u);
    return NULL;
}
MACHINE void run_group(unit *units, group *g) {
    pthread_t *threads = calloc((size_t)g->units, sizeof *threads);
    pthread_barrier_init(&g->meet, NULL, (unsigned)g->units);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->changed, NULL);
    for (int k = 1; k < g->units; k++) pthread_create(&threads[k], NULL, run_unit, &units[k]);
    run_unit(&units[0]);
    for (int k = 1; k < g->units; k++) pthread_join(threads[k], NULL);
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
    pthread_barrier_destroy(&g->meet);
    free(threads);
}
/* Memory on the chip, a group's in its first unit's hands. What is not written holds no number that could be right. */
MACHINE void make_memory(unit *units, int count, const room *rooms) {
    for (int k = 0; k < count; k++)
        for (int s = 0; s < SPACES; s++) {
            int mine = k == 0 || !rooms[s].shared;
            units[k].memory[s] = mine ? malloc((size_t)rooms[s].bytes + 64) : units[0].memory[s];
            if (mine) memset(units[k].memory[s], 0xa5, (size_t)rooms[s].bytes + 64);
        }
}
MACHINE void free_memory(unit *units, int count, const room *rooms) {
    for (int k = 0; k < count; k++)
        for (int s = 0; s < SPACES; s++)
            if (k == 0 || !rooms[s].shared) free(units[k].memory[s]);
}
/* A phase: so many groups, one after the other, each of so many units of each body. */
MACHINE void launch(const int64_t *sizes, void *const *arguments, int64_t groups, int64_t in_group, const room *rooms,
                    const body *bodies, int body_count) {
    int count = 0;
    for (int b = 0; b < body_count; b++) count += (int)(in_group * bodies[b].copies);
    for (int64_t at = 0; at < groups && count > 0; at++) {
        group g = {.units = count, .shown = calloc((size_t)count, sizeof *g.shown)};
        unit *units = calloc((size_t)count, sizeof *units);
        int k = 0;
        for (int b = 0; b < body_count; b++)
            for (int64_t c = 0; c < in_group * bodies[b].copies; c++, k++) {
                units[k] = (unit){.group = &g,
                                  .number = k,
                                  .kind = bodies[b].kind,
                                  .in_group = c % in_group,
                                  .of_groups = at,
                                  .copy = c / in_group,
                                  .sizes = sizes,
                                  .arguments = arguments,
                                  .run = bodies[b].run};
                g.of_kind[bodies[b].kind]++;
            }
        make_memory(units, count, rooms);
        run_group(units, &g);
        free_memory(units, count, rooms);
        free(g.shown), free(units);
    }
}

#endif
