/* The solver of tiles: what it lists fits and is whole blocks; that what it keeps is the best of a class of sizes; that
 * its costs follow the description's rates. */
#include "tests/base/support.h"

#include "backends/cpu/target/cpu.h"
#include "base/dims/dim.h"
#include "lower/tactics/products/tiles.h"

#include <stdlib.h>

enum { ROOM = 768 << 10 };

static int64_t bytes(void *user, int64_t rows, int64_t columns, int64_t chunk) {
    const uir_tile_problem *p = user;
    return rows * columns * p->sum_bytes + (p->copied[0] ? rows * chunk * p->factor_bytes[0] : 0) +
           (p->copied[1] ? columns * chunk * p->factor_bytes[1] : 0);
}

static uir_machine describe(const char *variant) {
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics d;
    uir_cpu_device cpu;
    uir_diagnostics_init(&d, &allocator);
    assert_int_equal(uir_cpu_describe(variant, &d, &cpu), UIR_STATUS_OK);
    uir_diagnostics_deinit(&d);
    cpu.machine.spaces[1].working_set = 1 << 20;
    return cpu.machine;
}

static uir_tile_problem product(const uir_machine *machine, int64_t rows, int64_t columns, int64_t depth) {
    return (uir_tile_problem){.machine = machine,
                              .rows = rows,
                              .columns = columns,
                              .depth = depth,
                              .others = 1,
                              .cut = true,
                              .factor_bytes = {4, 4},
                              .sum_bytes = 4,
                              .bytes = bytes};
}

static uint32_t solve(uir_tile_problem *p, int64_t chunk, bool every,
                      uir_parameter_tile out[UIR_PARAMETERS_MAX_TILES]) {
    int64_t score;
    p->user = p;
    return uir_tiles_solve(p, chunk, ROOM, every, out, &score);
}

static void tiles_fit_and_are_whole_panels(void **state) {
    static const char *const variants[] = {"generic", "avx2", "avx512", "aarch64"};
    static const int64_t sizes[][3] = {{0, 0, 0}, {0, 300, 64}, {197, 768, 768}, {1, 4096, 4096}, {64, 0, 2048}};
    (void)state;
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (uint32_t how = 0; how < 8; how++) {
                uir_machine machine = describe(variants[v]);
                uir_tile_problem p = product(&machine, sizes[s][0], sizes[s][1], sizes[s][2]);
                uir_parameter_tile tiles[UIR_PARAMETERS_MAX_TILES];
                p.copied[0] = how & 1, p.copied[1] = how & 2;
                uint32_t count = solve(&p, 256, how & 4, tiles);
                assert_in_range(count, 1, UIR_PARAMETERS_MAX_TILES);
                for (uint32_t i = 0; i < count; i++) {
                    assert_true(bytes(&p, tiles[i].rows, tiles[i].columns, 256) <= ROOM);
                    assert_true(tiles[i].rows >= 1 && tiles[i].cost >= 1);
                    assert_int_equal(tiles[i].columns % machine.mma_n, 0);
                    if (!p.rows) assert_int_equal(tiles[i].rows % machine.mma_m, 0);
                    assert_int_equal(tiles[i].cost, uir_tile_cycles(&p, &tiles[i], 256));
                    for (uint32_t k = 0; k < i; k++)
                        assert_false(tiles[k].rows == tiles[i].rows && tiles[k].columns == tiles[i].columns);
                }
            }
}

/* Among all legal tiles none is better for a known product and some number of threads than the best that was kept. */
static void what_is_kept_is_the_best(void **state) {
    static const int64_t sizes[][3] = {{197, 768, 768}, {1024, 1024, 1024}, {17, 768, 768}, {3136, 96, 384}};
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        uir_machine machine = describe("avx512");
        uir_tile_problem p = product(&machine, sizes[s][0], sizes[s][1], sizes[s][2]);
        uir_parameter_tile kept[UIR_PARAMETERS_MAX_TILES], all[UIR_PARAMETERS_MAX_TILES];
        uint32_t kept_count = solve(&p, 0, false, kept), all_count = solve(&p, 0, true, all);
        assert_true(kept_count <= 7); /* numbers of threads */
        assert_true(all_count > kept_count);
        for (int64_t workers = 1; workers <= 64; workers *= 2) {
            int64_t best[2] = {INT64_MAX, INT64_MAX};
            for (uint32_t i = 0; i < kept_count + all_count; i++) {
                const uir_parameter_tile *t = i < kept_count ? &kept[i] : &all[i - kept_count];
                int64_t units = ((p.rows + t->rows - 1) / t->rows) * ((p.columns + t->columns - 1) / t->columns);
                int64_t cost = uir_shared_cost(t->cost, units, workers);
                if (cost < best[i >= kept_count]) best[i >= kept_count] = cost;
            }
            assert_int_equal(best[0], best[1]);
        }
    }
}

static int64_t units_of_best(const uir_tile_problem *p, const uir_parameter_tile *tiles, uint32_t count,
                             int64_t workers) {
    int64_t best = INT64_MAX, best_units = 0;
    for (uint32_t i = 0; i < count; i++) {
        int64_t units =
            ((p->rows + tiles[i].rows - 1) / tiles[i].rows) * ((p->columns + tiles[i].columns - 1) / tiles[i].columns);
        int64_t cost = uir_shared_cost(tiles[i].cost, units, workers);
        if (cost >= best) continue;
        best = cost;
        best_units = units;
    }
    return best_units;
}

/* More threads want more units. */
static void tables_serve_few_and_many_threads(void **state) {
    uir_machine machine = describe("avx512");
    uir_tile_problem p = product(&machine, 512, 512, 512);
    uir_parameter_tile tiles[UIR_PARAMETERS_MAX_TILES];
    uint32_t count = solve(&p, 0, false, tiles);
    (void)state;
    assert_true(units_of_best(&p, tiles, count, 1) < 32);
    assert_true(units_of_best(&p, tiles, count, 64) >= 32);
}

/* Each number of the description that the model asks for moves a cost, in its direction. */
static void costs_follow_the_description(void **state) {
    const uir_machine machine = describe("avx512");
    const uir_parameter_tile tile = {112, 256, 0};
    uir_tile_problem p = product(&machine, 0, 0, 1024);
    (void)state;
    p.user = &p;
    p.copied[0] = p.copied[1] = true;
    int64_t before = uir_tile_cycles(&p, &tile, 256);
    assert_true(before >= 112 * 256 * 1024 / 32); /* not under what multiply-adds take */
    assert_true(uir_tile_cycles(&p, &tile, 64) > before);
#define CHANGE(field, value, relation)                                                                                 \
    do {                                                                                                               \
        uir_machine other = machine;                                                                                   \
        other.field = value;                                                                                           \
        p.machine = &other;                                                                                            \
        assert_true(uir_tile_cycles(&p, &tile, 256) relation before);                                                  \
        p.machine = &machine;                                                                                          \
    } while (0)
    CHANGE(multiply_adds_per_cycle, 1, >);
    CHANGE(loads_per_cycle, 1, >);
    CHANGE(multiply_add_latency, 20, >);
    CHANGE(registers, 15, >);
    CHANGE(vector_bytes, 32, >);
    CHANGE(unit_cycles, 100000, >);
    CHANGE(spaces[0].bytes_per_cycle, 4, >);
    CHANGE(spaces[0].bytes_per_cycle, 64, <);
    CHANGE(spaces[1].bytes_per_cycle, 8, >);
    CHANGE(spaces[1].bytes_per_cycle, 128, <);
    /* Rows that do not stay near are read from memory for every panel. */
    p.copied[0] = p.copied[1] = false;
    before = uir_tile_cycles(&p, &tile, 0);
    CHANGE(spaces[1].working_set, 128 << 10, >);
}

/* A chunk of the depth is as long as there is room for good tiles beside it. */
static void chunks_follow_the_room(void **state) {
    const uir_machine machine = describe("avx512");
    uir_tile_problem p = product(&machine, 1024, 1024, 4096);
    (void)state;
    p.user = &p;
    p.copied[0] = p.copied[1] = true;
    int64_t wide = uir_tiles_choose_chunk(&p, 4 << 20), narrow = uir_tiles_choose_chunk(&p, 64 << 10);
    assert_true(narrow >= UIR_TILES_LEAST_CHUNK && narrow < wide);
    assert_int_equal(uir_tiles_choose_chunk(&p, 1 << 10), 0);
}

/* In as much room as the least tile takes there is a tile, and in less there is none, also where the rows that are
 * known are no whole blocks. */
static void the_least_tile_has_room(void **state) {
    const uir_machine machine = describe("avx512");
    (void)state;
    for (int64_t rows = 0; rows < 40; rows++)
        for (uint32_t cut = 0; cut < 2; cut++) {
            uir_tile_problem p = product(&machine, rows, 96, 15);
            uir_parameter_tile tiles[UIR_PARAMETERS_MAX_TILES];
            int64_t score;
            p.user = &p;
            p.copied[1] = true;
            p.cut = cut;
            int64_t least = uir_tiles_least_bytes(&p, UIR_TILES_LEAST_CHUNK);
            assert_true(uir_tiles_solve(&p, UIR_TILES_LEAST_CHUNK, least, false, tiles, &score) > 0);
            assert_int_equal(uir_tiles_solve(&p, UIR_TILES_LEAST_CHUNK, least - 1, false, tiles, &score), 0);
            assert_int_equal(uir_tiles_choose_chunk(&p, least), UIR_TILES_LEAST_CHUNK);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_fit_and_are_whole_panels),
        cmocka_unit_test(what_is_kept_is_the_best),
        cmocka_unit_test(tables_serve_few_and_many_threads),
        cmocka_unit_test(costs_follow_the_description),
        cmocka_unit_test(chunks_follow_the_room),
        cmocka_unit_test(the_least_tile_has_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
