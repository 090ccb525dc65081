/* Waits and copies taken out of a package's plan: `uir-waits [--seeds N] [--dim N | --data FOLDER] PACKAGE...`.
 *
 * In: packages for the null device. Each wait of the plan, and each copy between domains, is taken out in turn. Out: a
 * line per package: how many the verifier refuses; which waits it does not miss, since others imply them; and of the
 * refused waits how many change a result, or end the run, by one of N seeds when the package is opened without that
 * proof. Then `N passed, M failed, S skipped`: the verifier refuses all copies, and all waits but the implied ones, of
 * which there are at most 5 %; with seeds, 90 % of all refused waits are seen. */
#include "tests/devices/support.h"

#include "package/order.h"
#include "package/package.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 5, TURNS = 3 };

/* ---- without the proof ---- */
static bool blind;

uir_status __real_uir_plan_walk_order(uir_arena *arena, const uir_plan *plan, uir_plan_order *order);
uir_status __wrap_uir_plan_walk_order(uir_arena *arena, const uir_plan *plan, uir_plan_order *order);
uir_status __wrap_uir_plan_walk_order(uir_arena *arena, const uir_plan *plan, uir_plan_order *order) {
    if (blind) order->adds = true; /* the walk goes on as if nothing were missing; the plan stays as it is */
    return __real_uir_plan_walk_order(arena, plan, order);
}

/* ---- packages ---- */
typedef struct packed {
    uir_arena arena;
    uir_allocator allocator;
    unsigned char *bytes;
    size_t size;
    uir_package_section sections[UIR_PACKAGE_MAX_SECTIONS];
    uint32_t count;
    uir_plan plan;
} packed;

static bool read_package(packed *p, const char *path) {
    uir_diagnostics said;
    memset(p, 0, sizeof *p);
    p->allocator = uir_allocator_system();
    uir_arena_init(&p->arena, &p->allocator);
    uir_diagnostics_init(&said, &p->allocator);
    p->bytes = devices_read_file(path, &p->size);
    uir_status status = uir_package_read(p->bytes, p->size, &said, p->sections, &p->count);
    for (uint32_t i = 0; i < p->count && status == UIR_STATUS_OK; i++) {
        if (p->sections[i].kind != UIR_PACKAGE_PLAN) continue;
        uint64_t code = 0, weights = 0;
        for (uint32_t k = 0; k < p->count; k++) {
            if (p->sections[k].kind == UIR_PACKAGE_CODE) code = p->sections[k].size;
            if (p->sections[k].kind == UIR_PACKAGE_WEIGHTS) weights = p->sections[k].size;
        }
        status = uir_plan_read(&p->arena, p->sections[i].data, (size_t)p->sections[i].size, code, weights, 0, &said,
                               &p->plan);
    }
    if (status != UIR_STATUS_OK) fprintf(stderr, "uir-waits: %s: %s\n", path, said.first ? said.first->message : "");
    uir_diagnostics_deinit(&said);
    return status == UIR_STATUS_OK && p->plan.devices_count;
}

/* The package with another plan, in memory that is aligned as packages are. */
static void *write_package(const packed *p, const uir_plan *plan, size_t *out_size) {
    uir_text bytes, whole;
    uir_package_section sections[UIR_PACKAGE_MAX_SECTIONS];
    uir_text_init(&bytes, &p->allocator);
    uir_text_init(&whole, &p->allocator);
    uir_plan_write(plan, &bytes);
    memcpy(sections, p->sections, sizeof sections);
    for (uint32_t i = 0; i < p->count; i++) {
        if (sections[i].kind != UIR_PACKAGE_PLAN) continue;
        sections[i].data = (const unsigned char *)bytes.data;
        sections[i].size = bytes.length;
    }
    if (uir_package_write(sections, p->count, &whole) != UIR_STATUS_OK) exit(2);
    void *copy = aligned_alloc(64, (whole.length + 63) / 64 * 64);
    if (!copy) exit(2);
    memcpy(copy, whole.data, whole.length);
    *out_size = whole.length;
    uir_text_deinit(&bytes);
    uir_text_deinit(&whole);
    return copy;
}

/* ---- what is taken out ---- */
/* The plan without wait `k` of a step; its lists are copies. */
static uir_plan drop_wait(packed *p, uint32_t step, uint32_t k) {
    uir_plan plan = p->plan;
    uir_plan_list waits = plan.schedules[step].waits;
    plan.schedules = uir_arena_allocate_array(&p->arena, plan.schedules_count, sizeof *plan.schedules);
    plan.words = uir_arena_allocate_array(&p->arena, plan.words_count + waits.count, sizeof *plan.words);
    if (!plan.schedules || !plan.words) exit(2);
    memcpy(plan.schedules, p->plan.schedules, plan.schedules_count * sizeof *plan.schedules);
    memcpy(plan.words, p->plan.words, plan.words_count * sizeof *plan.words);
    plan.schedules[step].waits = (uir_plan_list){plan.words_count, waits.count - 1};
    for (uint32_t i = 0; i < waits.count; i++)
        if (i != k) plan.words[plan.words_count++].value = uir_plan_get_word(&p->plan, waits, i);
    return plan;
}

/* The plan without a step: what waited for it waits for the step before it. */
static uir_plan drop_step(packed *p, uint32_t step) {
    uir_plan plan = p->plan;
    uint32_t added = 0;
    for (uint32_t i = 0; i < plan.schedules_count; i++) added += plan.schedules[i].waits.count;
    plan.steps = uir_arena_allocate_array(&p->arena, plan.steps_count, sizeof *plan.steps);
    plan.schedules = uir_arena_allocate_array(&p->arena, plan.schedules_count, sizeof *plan.schedules);
    plan.blocks = uir_arena_allocate_array(&p->arena, plan.blocks_count, sizeof *plan.blocks);
    plan.words = uir_arena_allocate_array(&p->arena, plan.words_count + added, sizeof *plan.words);
    if (!plan.steps || !plan.schedules || !plan.blocks || !plan.words) exit(2);
    memcpy(plan.blocks, p->plan.blocks, plan.blocks_count * sizeof *plan.blocks);
    memcpy(plan.words, p->plan.words, plan.words_count * sizeof *plan.words);
    plan.steps_count = plan.schedules_count = 0;
    for (uint32_t i = 0; i < p->plan.steps_count; i++) {
        uir_plan_list waits = p->plan.schedules[i].waits;
        if (i == step) continue;
        uir_plan_schedule kept = {p->plan.schedules[i].queue, p->plan.schedules[i].why, {plan.words_count, 0}};
        for (uint32_t k = 0; k < waits.count; k++) {
            uint32_t waited = uir_plan_get_word(&p->plan, waits, k);
            if (waited == step) continue;
            plan.words[plan.words_count++].value = waited - (waited > step);
            kept.waits.count++;
        }
        plan.schedules[plan.schedules_count++] = kept;
        plan.steps[plan.steps_count++] = p->plan.steps[i];
    }
    for (uint32_t b = 0; b < plan.blocks_count; b++) {
        uir_plan_block *block = &plan.blocks[b];
        if (block->first_step > step)
            block->first_step--;
        else if (step < block->first_step + block->step_count)
            block->step_count--;
    }
    return plan;
}

/* ---- runs ---- */
typedef struct outcome {
    uir_status opened, ran;
    uint64_t hash; /* of all outputs */
} outcome;

static uir_status run(uir_package *package, const uir_allocator *allocator, const devices_source *source,
                      uir_diagnostics *said, uint64_t *out_hash) {
    const uir_runtime_options options = {.threads = 1};
    uir_runtime *r;
    uir_status status = uir_runtime_create(package, &options, allocator, said, &r);
    for (uint32_t turn = 0; turn < TURNS && status == UIR_STATUS_OK; turn++)
        status = devices_run(r, package, source, turn, out_hash);
    uir_runtime_destroy(r);
    return status;
}

static outcome try_plan(const packed *p, const uir_plan *plan, uint32_t seed, const devices_source *source, bool runs,
                        char *why) {
    outcome o = {UIR_STATUS_OK, UIR_STATUS_OK, 0};
    size_t size;
    void *bytes = write_package(p, plan, &size);
    uir_diagnostics said;
    uir_package *package = NULL;
    uir_diagnostics_init(&said, &p->allocator);
    uir_package_options options = devices_open(&p->allocator, seed);
    o.opened = uir_package_open(bytes, size, &options, &p->allocator, &said, &package);
    if (o.opened == UIR_STATUS_OK && runs) o.ran = run(package, &p->allocator, source, &said, &o.hash);
    if (why) snprintf(why, 300, "%s", said.first ? said.first->message : "");
    uir_package_close(package);
    options.driver->close(options.device);
    uir_diagnostics_deinit(&said);
    free(bytes);
    return o;
}

/* ---- each in turn ---- */
static int passed, failed;
static uint32_t all_refused, all_seen;

static void tell(bool fine, const char *format, ...) UIR_PRINTF(2, 3);
static void tell(bool fine, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (!fine) {
        fputs("FAILED: ", stdout);
        vprintf(format, arguments);
        putchar('\n');
    }
    va_end(arguments);
    passed += fine;
    failed += !fine;
}

/* Whether a seed shows that the wait is missing. */
static bool is_seen(const packed *p, const uir_plan *plan, uint32_t seeds, const devices_source *source,
                    const outcome *expected) {
    bool seen = false;
    blind = true;
    for (uint32_t seed = 0; seed < seeds && !seen; seed++) {
        outcome o = try_plan(p, plan, seed, source, true, NULL);
        seen = o.opened != UIR_STATUS_OK || o.ran != expected->ran || o.hash != expected->hash;
    }
    blind = false;
    return seen;
}

static void check(const char *path, uint32_t seeds, const devices_source *source) {
    packed p;
    uint32_t waits = 0, implied = 0, copies = 0, seen = 0;
    char why[300] = "";
    if (!read_package(&p, path)) {
        tell(false, "%s is no package for the null device", path);
        return;
    }
    outcome expected = try_plan(&p, &p.plan, 0, source, seeds > 0, why);
    tell(expected.opened == UIR_STATUS_OK && expected.ran == UIR_STATUS_OK, "%s: %s", path, why);
    for (uint32_t i = 0; i < p.plan.steps_count && expected.ran == UIR_STATUS_OK; i++) {
        const uir_plan_step *s = &p.plan.steps[i];
        for (uint32_t k = 0; k < p.plan.schedules[i].waits.count; k++, waits++) {
            uir_plan without = drop_wait(&p, i, k);
            if (try_plan(&p, &without, 0, source, false, why).opened == UIR_STATUS_OK) {
                if (implied++ < SHOWN) printf("%s: wait %u of step %u is implied by others\n", path, k, i);
                continue;
            }
            tell(strstr(why, "without waiting") != NULL, "%s: wait %u of step %u: %s", path, k, i, why);
            bool is = seeds && is_seen(&p, &without, seeds, source, &expected);
            if (seeds && !is)
                printf("%s: no seed shows wait %u of step %u: it %s\n", path, k, i,
                       strstr(why, ") ") ? strstr(why, ") ") + 2 : why);
            seen += is;
        }
        if (s->kind != UIR_PLAN_STEP_COPY || p.plan.schedules[i].queue < UIR_PLAN_QUEUE_UPLOAD) continue;
        uir_plan without = drop_step(&p, i);
        copies++;
        tell(try_plan(&p, &without, 0, source, false, why).opened == UIR_STATUS_BAD_FILE,
             "%s: copy %u is not missed: %s", path, i, why);
    }
    printf("%s: %u copies; %u waits, %u of them implied; %u of %u seen by %u seeds\n", path, copies, waits, implied,
           seen, waits - implied, seeds);
    tell(implied * 20 <= waits, "%s: %u of %u waits are implied by others", path, implied, waits);
    all_refused += waits - implied;
    all_seen += seen;
    uir_arena_deinit(&p.arena);
    free(p.bytes);
}

int main(int argc, char **argv) {
    uint32_t seeds = 0;
    devices_source source = {.dim = 3};
    for (int i = 1; i < argc; i++) {
        if (i + 1 < argc && !strcmp(argv[i], "--seeds"))
            seeds = (uint32_t)atoi(argv[++i]);
        else if (i + 1 < argc && !strcmp(argv[i], "--dim"))
            source = (devices_source){.dim = atoi(argv[++i])};
        else if (i + 1 < argc && !strcmp(argv[i], "--data"))
            source.folder = argv[++i];
        else
            check(argv[i], seeds, &source);
    }
    if (seeds) tell(all_seen * 10 >= all_refused * 9, "%u of %u refused waits are seen", all_seen, all_refused);
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0 || passed == 0;
}
