/* Stationary tiles of products: kernels load what the formulas of lower/tactics/products/stationary.h give, counted
 * from their slices; the solver's tiles move as little as an exhaustive search's; a tuning record is followed, or
 * refused. */
#include "tests/base/support.h"

#include "backends/descriptions/descriptions.h"
#include "base/arena.h"
#include "fusion/fusion.h"
#include "ir/kernel/igraph_estimate.h"
#include "lower/tactics/products/stationary.h"
#include "tests/lower/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uir_arena arena;
static uir_machine_vector devices;

static const uir_machine *find_device(const char *name, const char *chip) {
    for (uint32_t i = 0; i < devices.count; i++)
        if (!strcmp(devices.data[i]->name, name) && !strcmp(devices.data[i]->chip, chip)) return devices.data[i];
    fail_msg("%s %s is not described", name, chip);
    return NULL;
}

/* Elements that are loaded, as the seed counts them: rows M, depth N, columns K in tiles m, n, k. */
static double formula(uir_stationary stationary, const int64_t whole[UIR_SIDES], const int64_t tile[UIR_SIDES]) {
    double M = (double)whole[UIR_SIDE_ROWS], N = (double)whole[UIR_SIDE_DEPTH], K = (double)whole[UIR_SIDE_COLUMNS],
           m = (double)tile[UIR_SIDE_ROWS], k = (double)tile[UIR_SIDE_COLUMNS];
    switch (stationary) {
    case UIR_STATIONARY_LEFT:
        return M * N + M * N * K / m;
    case UIR_STATIONARY_RIGHT:
        return K * N + M * N * K / k;
    case UIR_STATIONARY_SUMS:
        break;
    }
    return M * N * K * (m + k) / (m * k);
}

/* ---- kernels ---- */
typedef struct made {
    uir_module *module;
    lower_check check;
    uir_diagnostics diagnostics;
} made;

/* The kernel of a product of f32, by a record. */
static void make_product(made *p, const uir_machine *machine, const int64_t sizes[UIR_SIDES],
                         const uir_parameters *given) {
    static uir_allocator allocator;
    char text[400];
    allocator = uir_allocator_system();
    snprintf(text, sizeof text,
             "module opset 20\ngraph \"g\" (%%a: f32[%lld, %lld], %%b: f32[%lld, %lld]) {\n  %%y: f32[%lld, %lld] = "
             "matmul(%%a, %%b) {to = f32}\n  return %%y\n}\n",
             (long long)sizes[UIR_SIDE_ROWS], (long long)sizes[UIR_SIDE_DEPTH], (long long)sizes[UIR_SIDE_DEPTH],
             (long long)sizes[UIR_SIDE_COLUMNS], (long long)sizes[UIR_SIDE_ROWS], (long long)sizes[UIR_SIDE_COLUMNS]);
    *p = (made){.check = {.machine = machine, .allocator = &allocator}};
    if (given) p->check.given = *given;
    uir_diagnostics_init(&p->diagnostics, &allocator);
    assert_int_equal(uir_module_parse(&allocator, &p->diagnostics, text, strlen(text), "product", NULL, &p->module),
                     UIR_STATUS_OK);
    assert_int_equal(uir_fuse(p->module, NULL, &p->diagnostics), UIR_STATUS_OK);
    lower_prepare(&p->check, p->module, uir_graph_get(p->module, p->module->main)->nodes.data[0]);
}

static void unmake(made *p) {
    lower_finish(&p->check);
    uir_module_destroy(p->module);
    uir_diagnostics_deinit(&p->diagnostics);
}

/* Bytes that its moves bring from the device's memory. */
static uint64_t count_loads(const made *p) {
    const uir_machine *d = p->check.machine;
    uir_estimate e;
    uint64_t bytes = 0;
    int memory = uir_machine_find_role(d, UIR_SPACE_MEMORY);
    int64_t none = 0;
    assert_int_equal(p->check.lowered.igraphs.count, 1);
    assert_int_equal(uir_igraph_estimate(p->check.lowered.igraphs.igraphs[0], &none, &none, NULL, NULL, &e),
                     UIR_STATUS_OK);
    for (uint32_t to = 0; to < d->space_count; to++) bytes += e.moved[memory][to];
    return bytes;
}

static uir_parameters record(uir_stationary stationary, int held, const int64_t tile[UIR_SIDES]) {
    return (uir_parameters){.has_stationary = true,
                            .stationary = stationary,
                            .held = held,
                            .depth = tile[UIR_SIDE_DEPTH],
                            .tile_count = 1,
                            .tiles = {{tile[UIR_SIDE_ROWS], tile[UIR_SIDE_COLUMNS], 0}}};
}

/* A factor that stays does so in every space of its way, or in those nearest to memory. */
static void kernels_load_what_the_formulas_say(void **state) {
    static const struct {
        uir_stationary stationary;
        int held;
        int64_t sizes[UIR_SIDES], tile[UIR_SIDES]; /* rows, columns, depth */
    } cases[] = {
        {UIR_STATIONARY_SUMS, 0, {128, 192, 256}, {32, 64, 64}},
        {UIR_STATIONARY_SUMS, 0, {256, 96, 64}, {64, 48, 64}},
        {UIR_STATIONARY_SUMS, 0, {16, 16, 16}, {16, 16, 16}},
        {UIR_STATIONARY_SUMS, 0, {512, 768, 768}, {128, 192, 32}},
        {UIR_STATIONARY_LEFT, 2, {128, 192, 256}, {32, 16, 256}},
        {UIR_STATIONARY_LEFT, 2, {96, 64, 64}, {48, 32, 64}},
        {UIR_STATIONARY_LEFT, 1, {128, 192, 256}, {32, 64, 64}},
        {UIR_STATIONARY_LEFT, 1, {512, 768, 768}, {128, 128, 48}},
        {UIR_STATIONARY_LEFT, 1, {64, 128, 64}, {64, 64, 32}}, /* one row of tiles */
        {UIR_STATIONARY_RIGHT, 2, {128, 192, 256}, {16, 32, 256}},
        {UIR_STATIONARY_RIGHT, 2, {96, 64, 64}, {16, 32, 64}},
        {UIR_STATIONARY_RIGHT, 1, {128, 192, 256}, {64, 48, 64}},
        {UIR_STATIONARY_RIGHT, 1, {512, 768, 768}, {128, 128, 48}},
        {UIR_STATIONARY_RIGHT, 1, {128, 64, 64}, {64, 64, 32}}, /* one column of tiles */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uir_parameters given = record(cases[i].stationary, cases[i].held, cases[i].tile);
        made p;
        make_product(&p, find_device("ascend", "910B1"), cases[i].sizes, &given);
        if (p.check.stage != LOWER_FINE) fail_msg("case %zu: %s", i, p.check.message);
        double wanted = 4 * formula(cases[i].stationary, cases[i].sizes, cases[i].tile);
        if ((double)count_loads(&p) != wanted)
            fail_msg("case %zu: loads %llu bytes, not %.0f", i, (unsigned long long)count_loads(&p), wanted);
        int64_t symbols[1] = {0};
        if (i % 4 == 1 &&
            (!lower_run(&p.check, p.module, uir_graph_get(p.module, p.module->main)->nodes.data[0], symbols, 7) ||
             p.check.stage != LOWER_FINE))
            fail_msg("case %zu: %s: %s", i, lower_stage_name(p.check.stage), p.check.message);
        unmake(&p);
    }
}

/* What the solver chooses, given as a record, makes the same kernel, and loads what it said. */
static void what_was_chosen_makes_the_same_kernel(void **state) {
    static const int64_t sizes[][UIR_SIDES] = {{128, 128, 128}, {512, 768, 768}, {64, 4096, 256}, {48, 80, 1024}};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        made first, second;
        uir_text texts[2];
        uir_allocator allocator = uir_allocator_system();
        make_product(&first, find_device("ascend", "910B1"), sizes[i], NULL);
        assert_int_equal(first.check.stage, LOWER_FINE);
        const uir_parameters *chosen = &first.check.lowered.choice.chosen;
        assert_true(chosen->has_stationary && chosen->tile_count == 1);
        make_product(&second, find_device("ascend", "910B1"), sizes[i], chosen);
        assert_int_equal(second.check.stage, LOWER_FINE);
        for (uint32_t k = 0; k < 2; k++) {
            uir_text_init(&texts[k], &allocator);
            uir_igraph_print((k ? &second : &first)->check.lowered.igraphs.igraphs[0], &texts[k]);
        }
        assert_string_equal(texts[0].data, texts[1].data);
        for (uint32_t k = 0; k < 2; k++) uir_text_deinit(&texts[k]);
        unmake(&second);
        unmake(&first);
    }
}

static void what_does_not_fit_is_refused(void **state) {
    static const struct {
        uir_parameters given;
        const char *why;
    } bad[] = {
        {{.depth = 64}, "`stationary`, `depth` and one `tile` of rows x columns"},
        {{.depth = 64, .tile_count = 1, .tiles = {{64, 64, 0}}},
         "`stationary`, `depth` and one `tile` of rows x columns"},
        {{.has_stationary = true, .depth = 64, .tile_count = 1, .tiles = {{64, 60, 0}}}, "not a multiple of the block"},
        {{.has_stationary = true, .depth = 512, .tile_count = 1, .tiles = {{512, 512, 0}}}, "do not fit on the chip"},
        {{.has_stationary = true,
          .stationary = UIR_STATIONARY_LEFT,
          .held = 3,
          .depth = 64,
          .tile_count = 1,
          .tiles = {{64, 64, 0}}},
         "the operand cannot be stationary"}};
    static const int64_t sizes[UIR_SIDES] = {512, 768, 768};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        made p;
        make_product(&p, find_device("ascend", "910B1"), sizes, &bad[i].given);
        if (p.check.stage != LOWER_SCHEDULE || !strstr(p.check.message, bad[i].why))
            fail_msg("record %zu: %s, not: %s", i, p.check.message, bad[i].why);
        unmake(&p);
    }
}

/* ---- the solver ---- */
enum { BLOCK = 16 };

/* Factors of f16 and sums of f32, each in the one space where it is multiplied, single-buffered, for one unit. */
static uir_product_problem restrict_to_multiplier(const uir_machine *machine, const int64_t sizes[UIR_SIDES]) {
    static const uint32_t roles[UIR_TILES] = {UIR_SPACE_LEFT, UIR_SPACE_RIGHT, UIR_SPACE_ACCUMULATORS};
    uir_product_problem p = {.machine = machine,
                             .blocks = {BLOCK, BLOCK, BLOCK},
                             .dtypes = {UIR_DTYPE_F16, UIR_DTYPE_F16, UIR_DTYPE_F32},
                             .may_stay = {true, true},
                             .others = 1,
                             .units = 1,
                             .instances = 1};
    for (uint32_t t = 0; t < UIR_TILES; t++) {
        int space = uir_machine_find_role(machine, roles[t]);
        p.ways[t] = (uir_tile_way){.spaces = {space}, .count = 1};
        p.room[space] = (int64_t)machine->spaces[space].capacity;
    }
    for (uint32_t i = 0; i < UIR_SIDES; i++) p.extents[i] = sizes[i];
    return p;
}

/* Elements loaded by tiles that need not divide: what is cut off is not loaded. */
static double count_exactly(uir_stationary s, const int64_t whole[UIR_SIDES], const int64_t tile[UIR_SIDES]) {
    int64_t rows = (whole[0] + tile[0] - 1) / tile[0], columns = (whole[1] + tile[1] - 1) / tile[1];
    double left = (double)whole[0] * (double)whole[2], right = (double)whole[1] * (double)whole[2];
    return left * (s == UIR_STATIONARY_LEFT ? 1 : (double)columns) +
           right * (s == UIR_STATIONARY_RIGHT ? 1 : (double)rows);
}

typedef struct found {
    uir_stationary stationary;
    int64_t tile[UIR_SIDES];
    double loads, full;
} found;

/* All tiles of whole blocks that fit: sums never leave the chip, so that a factor stays with its whole depth. */
static found search(const uir_machine *machine, const int64_t whole[UIR_SIDES]) {
    int64_t left = (int64_t)machine->spaces[uir_machine_find_role(machine, UIR_SPACE_LEFT)].capacity / 2,
            right = (int64_t)machine->spaces[uir_machine_find_role(machine, UIR_SPACE_RIGHT)].capacity / 2,
            sums = (int64_t)machine->spaces[uir_machine_find_role(machine, UIR_SPACE_ACCUMULATORS)].capacity / 4;
    found best = {.loads = -1};
    for (int64_t m = BLOCK; m < whole[0] + BLOCK; m += BLOCK)
        for (int64_t k = BLOCK; k < whole[1] + BLOCK && m * k <= sums; k += BLOCK)
            for (int64_t n = BLOCK; n < whole[2] + BLOCK && m * n <= left && n * k <= right; n += BLOCK)
                for (uint32_t s = UIR_STATIONARY_SUMS; s <= UIR_STATIONARY_RIGHT; s++) {
                    const int64_t tile[UIR_SIDES] = {m, k, n};
                    bool all_passes = s == UIR_STATIONARY_LEFT ? k >= whole[1] : m >= whole[0];
                    if (s != UIR_STATIONARY_SUMS && n < whole[2] && !all_passes) continue;
                    double loads = count_exactly((uir_stationary)s, whole, tile);
                    double full = (double)(m * n) / (double)left + (double)(n * k) / (double)right +
                                  (double)(m * k) / (double)sums;
                    if (best.loads >= 0 && (loads > best.loads || (loads == best.loads && full <= best.full))) continue;
                    best = (found){(uir_stationary)s, {m, k, n}, loads, full};
                }
    return best;
}

static double solve(const uir_machine *machine, const int64_t whole[UIR_SIDES], uir_product_choice *out) {
    uir_product_problem p = restrict_to_multiplier(machine, whole);
    if (!uir_product_solve(&p, out)) fail_msg("nothing fits");
    assert_true(uir_product_fits(&p, out));
    return count_exactly(out->stationary, whole, out->tiles);
}

static void the_best_of_the_seed_is_found(void **state) {
    static const int64_t whole[UIR_SIDES] = {512, 768, 768};
    const uir_machine *machine = find_device("ascend", "910A");
    uir_product_choice choice;
    (void)state;
    found best = search(machine, whole);
    assert_int_equal(best.stationary, UIR_STATIONARY_SUMS);
    assert_int_equal(best.tile[UIR_SIDE_ROWS], 256);
    assert_int_equal(best.tile[UIR_SIDE_DEPTH], 128);
    assert_int_equal(best.tile[UIR_SIDE_COLUMNS], 256);
    double loads = solve(machine, whole, &choice);
    if (loads > 1.05 * best.loads) fail_msg("%.0f elements are loaded, %.0f at best", loads, best.loads);
}

static void solved_tiles_move_little_more_than_the_best(void **state) {
    static const char *const chips[] = {"910B1", "910B3", "910A", "310P3"};
    double worst = 1;
    uint32_t seed = 5, stationary[3] = {0};
    (void)state;
    for (uint32_t i = 0; i < 200 / UIR_TEST_SHARE; i++)
        for (size_t c = 0; c < sizeof chips / sizeof *chips; c++) {
            const uir_machine *machine = find_device("ascend", chips[c]);
            int64_t whole[UIR_SIDES];
            uir_product_choice choice;
            for (uint32_t s = 0; s < UIR_SIDES; s++) {
                seed = seed * 1664525u + 1013904223u;
                whole[s] = BLOCK * (1 + (int64_t)(seed >> 16) % (i % 3 ? 16 : 64));
            }
            double best = search(machine, whole).loads, loads = solve(machine, whole, &choice);
            stationary[choice.stationary]++;
            if (loads / best > worst) worst = loads / best;
            if (loads > 1.1 * best)
                fail_msg("%s: %lld x %lld x %lld: %.0f elements are loaded (%s, %lld x %lld x %lld), %.0f at best",
                         chips[c], (long long)whole[0], (long long)whole[1], (long long)whole[2], loads,
                         uir_stationary_name(choice.stationary), (long long)choice.tiles[0], (long long)choice.tiles[1],
                         (long long)choice.tiles[2], best);
        }
    print_message("at most %.3f of the best; stationary: sums %u, left %u, right %u\n", worst, stationary[0],
                  stationary[1], stationary[2]);
    assert_true(stationary[0] && stationary[1] && stationary[2]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_load_what_the_formulas_say),
        cmocka_unit_test(what_was_chosen_makes_the_same_kernel),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(the_best_of_the_seed_is_found),
        cmocka_unit_test(solved_tiles_move_little_more_than_the_best),
    };
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics d;
    uir_arena_init(&arena, &allocator);
    uir_diagnostics_init(&d, &allocator);
    if (uir_descriptions_read(&arena, &d, &devices) != UIR_STATUS_OK) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    uir_diagnostics_deinit(&d);
    uir_arena_deinit(&arena);
    return failed;
}
