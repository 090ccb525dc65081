/* Random schedules of random programs: each step keeps the function verifiable and its results, every bit.
 *
 *   test_schedule_random [COUNT [FIRST_SEED]]     prints how often each primitive was tried and taken
 *
 * Beside the results: a refused or only asked step changes nothing, texts read back, a trace replays to the same text,
 * and loops marked parallel give the same results when they run backwards. */
#include "lower/schedule/schedule_internal.h"
#include "schedule_programs.h"
#include "tests/lower/schedule/random_steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STEPS = 14, MOST_ELEMENTS = 16 * 16 * 16, MOST_ARGUMENTS = 40, LEAST_TAKEN = 50 };

typedef struct trial {
    uint64_t seed;
    random_state random;
    uir_allocator allocator;
    uir_diagnostics diagnostics;
    uir_text program;
    int64_t sizes[3];
    uir_loop_function *function;
    uir_schedule *schedule;
    int64_t *data[2][MOST_ARGUMENTS]; /* before, after */
    const char *step;
} trial;

static void show(const trial *t, const char *what) {
    char line[1200];
    printf("seed %llu: %s (%s)\n", (unsigned long long)t->seed, what, t->step ? t->step : "no step");
    for (const uir_diagnostic *d = t->diagnostics.first; d; d = d->next) {
        uir_diagnostic_format(d, line, sizeof line);
        printf("  %s\n", line);
    }
    printf("sizes %lld %lld %lld\n%s", (long long)t->sizes[0], (long long)t->sizes[1], (long long)t->sizes[2],
           t->program.data);
    if (t->schedule && uir_schedule_trace(t->schedule)->data)
        printf("trace:\n%s", uir_schedule_trace(t->schedule)->data);
    if (t->function) {
        uir_text now;
        uir_text_init(&now, &t->allocator);
        uir_loop_print(t->function, &now);
        printf("%s", now.data ? now.data : "");
        uir_text_deinit(&now);
    }
}

static bool fault(const trial *t, const char *what) {
    show(t, what);
    return false;
}

static bool parse(trial *t, const char *text, uir_loop_function **out) {
    return uir_loop_parse(&t->allocator, text, strlen(text), "random", &t->diagnostics, out) == UIR_STATUS_OK;
}

static bool run(trial *t, const uir_loop_function *f, int which, const int64_t *tile) {
    void *tensors[MOST_ARGUMENTS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->tensors.count; i++) {
        const uir_loop_tensor *tensor = &f->tensors.data[i];
        if (tensor->role == UIR_LOOP_ROLE_TEMP) continue;
        int64_t *data = t->data[tensor->role == UIR_LOOP_ROLE_OUT ? which : 0][count];
        if (tensor->role == UIR_LOOP_ROLE_OUT) memset(data, which ? 0x5a : 0, MOST_ELEMENTS * sizeof *data);
        tensors[count++] = data;
    }
    return uir_loop_interpret_tiled(f, t->sizes, tile, tensors, NULL, &t->diagnostics) == UIR_STATUS_OK;
}

static bool same_results(trial *t, const uir_loop_function *f) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->tensors.count; i++) {
        const uir_loop_tensor *tensor = &f->tensors.data[i];
        uint64_t elements = 1;
        if (tensor->role == UIR_LOOP_ROLE_TEMP) continue;
        for (uint32_t d = 0; d < tensor->rank; d++)
            for (uint32_t k = 0; k < 3; k++)
                if (uir_dim_equal(tensor->extents[d], uir_dim_symbol(f->dims, f->sizes.data[k].symbol)))
                    elements *= (uint64_t)t->sizes[k];
        if (tensor->role == UIR_LOOP_ROLE_OUT && memcmp(t->data[0][count], t->data[1][count], elements * 8))
            return false;
        count++;
    }
    return true;
}

static bool check_results(trial *t, const uir_loop_function *f) {
    int64_t tile = 1 + random_below(&t->random, 8);
    if (!run(t, f, 1, &tile)) return fault(t, "the scheduled program does not run");
    return same_results(t, f) || fault(t, "results differ");
}

/* ---- steps ---- */
static uint64_t tried[RANDOM_STEPS], taken[RANDOM_STEPS];

static bool equal_texts(const uir_text *a, const uir_text *b) {
    return a->length == b->length && !memcmp(a->data, b->data, a->length);
}

/* One step, first asked and then taken: the answers agree, and a refusal changes nothing. */
static bool take_step(trial *t, bool *out_taken) {
    random_walk walk = {t->function, t->schedule, &t->random.bits, "reg"};
    uint32_t row = random_step_choose(&walk);
    const random_step *p = &random_step_rows[row];
    uir_text before, after;
    uir_text_init(&before, &t->allocator);
    uir_text_init(&after, &t->allocator);
    uir_loop_print(t->function, &before);
    random_state again = t->random;
    t->step = p->name;
    uir_schedule_set_mode(t->schedule, UIR_SCHEDULE_ASK);
    uir_status asked = p->attempt(&walk);
    uir_schedule_set_mode(t->schedule, UIR_SCHEDULE_QUIET);
    uir_loop_print(t->function, &after);
    bool fine = equal_texts(&before, &after) || fault(t, "asking changed the function");
    t->random = again;
    uir_status status = p->attempt(&walk);
    tried[row]++;
    *out_taken = status == UIR_STATUS_OK;
    taken[row] += *out_taken;
    if (fine && status != asked) fine = fault(t, "the answer was another when asked");
    if (fine && status != UIR_STATUS_OK) {
        uir_text_deinit(&after);
        uir_text_init(&after, &t->allocator);
        uir_loop_print(t->function, &after);
        fine = equal_texts(&before, &after) || fault(t, "a refused step changed the function");
        if (status != UIR_STATUS_UNSUPPORTED) fine = fault(t, "a step failed");
    }
    if (fine && *out_taken && uir_loop_verify(t->function, &t->diagnostics) != UIR_STATUS_OK)
        fine = fault(t, "the scheduled program does not verify");
    uir_text_deinit(&before);
    uir_text_deinit(&after);
    return fine;
}

/* ---- after the steps ---- */
static bool check_clone(trial *t, const uir_text *printed) {
    uir_text copied;
    uir_loop_function *copy = NULL;
    uir_text_init(&copied, &t->allocator);
    bool same = uir_loop_clone(t->function, &copy) == UIR_STATUS_OK;
    if (same) uir_loop_print(copy, &copied);
    same = same && equal_texts(printed, &copied);
    uir_loop_function_destroy(copy);
    uir_text_deinit(&copied);
    return same || fault(t, "the copy is another function");
}

static bool check_texts(trial *t) {
    uir_text printed, again, replayed;
    uir_loop_function *second = NULL, *third = NULL;
    uir_schedule *schedule = NULL;
    uir_text_init(&printed, &t->allocator);
    uir_text_init(&again, &t->allocator);
    uir_text_init(&replayed, &t->allocator);
    uir_loop_print(t->function, &printed);
    bool fine = parse(t, printed.data, &second);
    if (fine) uir_loop_print(second, &again);
    fine = fine && equal_texts(&printed, &again) && uir_loop_verify(second, &t->diagnostics) == UIR_STATUS_OK;
    if (!fine) fine = fault(t, "the text does not read back");
    if (fine) fine = check_clone(t, &printed);
    if (fine) fine = check_results(t, second);
    const uir_text *trace = uir_schedule_trace(t->schedule);
    if (fine && parse(t, t->program.data, &third) &&
        uir_schedule_create(third, NULL, &t->diagnostics, &schedule) == UIR_STATUS_OK &&
        (!trace->data || uir_schedule_replay(schedule, trace->data, trace->length) == UIR_STATUS_OK))
        uir_loop_print(third, &replayed);
    if (fine && !(replayed.data && equal_texts(&printed, &replayed))) fine = fault(t, "the trace does not replay");
    uir_schedule_destroy(schedule);
    uir_loop_function_destroy(second);
    uir_loop_function_destroy(third);
    uir_text_deinit(&printed);
    uir_text_deinit(&again);
    uir_text_deinit(&replayed);
    return fine;
}

/* Loops marked parallel or bound run from their last iteration to their first. */
static bool check_backwards(trial *t) {
    uir_loop_function *f = t->function;
    uir_dims *dims = f->dims;
    bool any = false;
    for (uint32_t id = 0; id < f->statements.count; id++) {
        uir_loop_statement *loop = &f->statements.data[id];
        if (!uir_tree_reachable(t->schedule, id, UIR_LOOP_STATEMENT_FOR)) continue;
        if (loop->loop_kind != UIR_LOOP_PARALLEL && loop->loop_kind != UIR_LOOP_BOUND) continue;
        uir_substitution values = {0};
        uir_dim last = uir_dim_add(dims, uir_dim_add(dims, loop->min, loop->min),
                                   uir_dim_sub(dims, loop->extent, uir_dim_const(dims, 1)));
        uir_symbol before = loop->symbol, twin;
        if (uir_dims_add_symbol(dims, loop->name, strlen(loop->name), uir_dims_symbol_facts(dims, before), &twin) !=
            UIR_STATUS_OK)
            return fault(t, "no memory");
        loop->symbol = twin;
        if (uir_substitution_set(t->schedule, &values, before, uir_dim_sub(dims, last, uir_dim_symbol(dims, twin))) !=
            UIR_STATUS_OK)
            return fault(t, "no memory");
        for (uint32_t child = loop->first_child; child != UIR_LOOP_NONE; child = f->statements.data[child].next)
            if (uir_tree_substitute(t->schedule, child, &values) != UIR_STATUS_OK) return fault(t, "no memory");
        any = true;
    }
    t->step = "backwards";
    return !any || check_results(t, f);
}

static bool run_trial(trial *t) {
    int64_t tile = 1;
    make_program(&t->random, &t->program, t->sizes);
    if (!parse(t, t->program.data, &t->function)) return fault(t, "the program does not parse");
    if (uir_loop_verify(t->function, &t->diagnostics) != UIR_STATUS_OK) return fault(t, "the program does not verify");
    uint32_t count = 0;
    for (uint32_t i = 0; i < t->function->tensors.count; i++) {
        if (t->function->tensors.data[i].role == UIR_LOOP_ROLE_TEMP) continue;
        for (int k = 0; k < 2; k++) {
            t->data[k][count] = malloc(MOST_ELEMENTS * sizeof(int64_t));
            for (int e = 0; e < MOST_ELEMENTS; e++) t->data[k][count][e] = (int64_t)random_below(&t->random, 19) - 7;
        }
        count++;
    }
    if (!run(t, t->function, 0, &tile)) return fault(t, "the program does not run");
    if (uir_schedule_create(t->function, NULL, &t->diagnostics, &t->schedule) != UIR_STATUS_OK)
        return fault(t, "no schedule");
    for (uint32_t step = 0, tries = 0; step < MOST_STEPS && tries < 40; tries++) {
        bool done;
        if (!take_step(t, &done)) return false;
        step += done;
        if (done && !check_results(t, t->function)) return false;
    }
    return check_texts(t) && check_backwards(t);
}

int main(int argc, char **argv) {
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 300, first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    uint64_t failed = 0, rare = 0;
    for (uint64_t seed = first; seed < first + count && failed < 3; seed++) {
        trial t = {.seed = seed, .random = {seed * 0x9e3779b97f4a7c15u}, .allocator = uir_allocator_system()};
        uir_diagnostics_init(&t.diagnostics, &t.allocator);
        uir_text_init(&t.program, &t.allocator);
        failed += !run_trial(&t);
        uir_schedule_destroy(t.schedule);
        uir_loop_function_destroy(t.function);
        for (int k = 0; k < MOST_ARGUMENTS; k++) {
            free(t.data[0][k]);
            free(t.data[1][k]);
        }
        uir_text_deinit(&t.program);
        uir_diagnostics_deinit(&t.diagnostics);
    }
    printf("%-20s %10s %10s\n", "primitive", "tried", "taken");
    for (int i = 0; i < RANDOM_STEPS; i++) {
        printf("%-20s %10llu %10llu\n", random_step_rows[i].name, (unsigned long long)tried[i],
               (unsigned long long)taken[i]);
        rare += taken[i] < LEAST_TAKEN;
    }
    if (rare && count >= 300)
        printf("%llu primitives were taken fewer than %d times\n", (unsigned long long)rare, LEAST_TAKEN);
    printf("%llu passed, %llu failed, 0 skipped\n", (unsigned long long)(count - failed), (unsigned long long)failed);
    return failed || (rare && count >= 300) ? 1 : 0;
}
