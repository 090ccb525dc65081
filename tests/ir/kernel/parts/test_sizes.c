/* The sizes of a kernel: what binding accepts, which candidate the tiling function takes, and layouts both ways. */
#include "tests/ir/kernel/parts/support.h"

#define BODY                                                                                                           \
    "  ptr %x : dram f32 [N] in 0\n  ptr %y : dram f32 [N] out 0\n  phase {\n    move.f32 %y[0:N], %x[0:N]\n  }\n}\n"

/* ---- binding ---- */

static void dims_keep_their_facts(void **state) {
    (void)state;
    kernel k;
    int64_t values[64];
    bool bound[64];
    kernel_open(&k, "igraph @k on cpu {\n  dim N in 4..16 mult 4\n" BODY);
    for (int64_t n = 0; n < 24; n++) {
        bool fits = n >= 4 && n <= 16 && n % 4 == 0;
        assert_int_equal(uir_igraph_bind(k.igraph, &n, NULL, values, bound, &k.diagnostics),
                         fits ? UIR_STATUS_OK : UIR_STATUS_INVALID_ARGUMENT);
    }
    assert_true(kernel_said(&k, "N = 17 is outside its range 4..16"));
    assert_true(kernel_said(&k, "N = 6 is not a multiple of 4"));
    kernel_close(&k);
}

/* Every requirement counts, wherever it stands. */
static void all_requirements_hold(void **state) {
    (void)state;
    kernel k;
    int64_t values[64];
    bool bound[64];
    kernel_open(&k, "igraph @k on cpu {\n  dim N, M\n  require N >= M\n  require N <= 2*M\n  require M != 3\n" BODY);
    for (int64_t n = 0; n < 12; n++) {
        for (int64_t m = 0; m < 12; m++) {
            const int64_t dims[] = {n, m};
            bool fits = n >= m && n <= 2 * m && m != 3;
            assert_int_equal(uir_igraph_bind(k.igraph, dims, NULL, values, bound, NULL),
                             fits ? UIR_STATUS_OK : UIR_STATUS_INVALID_ARGUMENT);
        }
    }
    kernel_close(&k);
}

static void names_have_their_values(void **state) {
    (void)state;
    kernel k;
    int64_t values[64];
    bool bound[64];
    const int64_t dims[] = {10}, tiles[] = {3};
    kernel_open(&k,
                "igraph @k on cpu {\n  dim N\n  tile t in 1..8\n  candidate t = 4\n  let B = ceildiv(N, t)\n  let R = "
                "N - (B-1)*t\n" BODY);
    assert_int_equal(uir_igraph_bind(k.igraph, dims, tiles, values, bound, &k.diagnostics), UIR_STATUS_OK);
    static const struct {
        const char *name;
        int64_t value;
    } expected[] = {{"N", 10}, {"t", 3}, {"B", 4}, {"R", 1}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        uint32_t symbol = uir_igraph_find_symbol(k.igraph, expected[i].name, strlen(expected[i].name));
        assert_true(symbol != UINT32_MAX && bound[symbol]);
        assert_int_equal(values[symbol], expected[i].value);
    }
    kernel_close(&k);
}

/* ---- the tiling function ---- */

static int64_t chosen(kernel *k, int64_t n) {
    int64_t tile = -1;
    uir_status status = uir_igraph_choose_tiles(k->igraph, &n, 1, &tile, &k->diagnostics);
    assert_true(status == UIR_STATUS_OK || status == UIR_STATUS_NOT_FOUND);
    return status == UIR_STATUS_OK ? tile : -1;
}

/* The cheapest; of equal ones the first. */
static void the_cheapest_candidate_is_taken(void **state) {
    (void)state;
    kernel k;
    kernel_open(
        &k, "igraph @k on cpu {\n  dim N\n  tile t in 1..64\n  candidate t = 8 cost 10 + N\n  candidate t = 16 cost "
            "20\n  candidate t = 32 cost 20\n  candidate t = 4 cost 3*N\n" BODY);
    assert_int_equal(chosen(&k, 1), 4);
    assert_int_equal(chosen(&k, 5), 8); /* 15, 20, 20, 15: the first of the two */
    assert_int_equal(chosen(&k, 9), 8);
    assert_int_equal(chosen(&k, 10), 8);
    assert_int_equal(chosen(&k, 11), 16);
    assert_int_equal(chosen(&k, 100), 16);
    kernel_close(&k);
}

/* What is cheapest where workers share the units of each; without units there is one. */
static void workers_share_the_units_of_candidates(void **state) {
    (void)state;
    static const struct {
        int64_t n, workers, tile;
    } cases[] = {{0, 1, 8}, {1, 1, 8}, {2, 1, 8}, {3, 1, 4}, {8, 1, 4}, {8, 2, 4}, {8, 4, 8}, {9, 4, 4}, {9, 1, 16}};
    kernel k;
    kernel_open(&k, "igraph @k on cpu {\n  dim N\n  tile t in 1..64\n  candidate t = 8 cost 10 units N\n"
                    "  candidate t = 4 cost 25 units ceildiv(N, 8)\n  candidate t = 16 cost 26\n" BODY);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t tile = -1;
        assert_int_equal(uir_igraph_choose_tiles(k.igraph, &cases[i].n, cases[i].workers, &tile, &k.diagnostics),
                         UIR_STATUS_OK);
        if (tile != cases[i].tile) fail_msg("case %zu: %lld", i, (long long)tile);
    }
    kernel_close(&k);
}

/* A candidate counts where all of its guard holds, its tile is allowed, and so are all requirements with it. */
static void candidates_must_be_valid(void **state) {
    (void)state;
    kernel k;
    kernel_open(
        &k, "igraph @k on cpu {\n  dim N\n  tile t in 1..64\n  require t <= N\n  candidate t = 64 when N >= 8 and N < "
            "100\n  candidate t = 128\n  candidate t = 16 when N < 50\n  candidate t = 2\n" BODY);
    assert_int_equal(chosen(&k, 1), -1);
    assert_true(kernel_said(&k, "no candidate"));
    assert_int_equal(chosen(&k, 2), 2);
    assert_int_equal(chosen(&k, 15), 2);
    assert_int_equal(chosen(&k, 16), 16);
    assert_int_equal(chosen(&k, 49), 16);
    assert_int_equal(chosen(&k, 63), 2);
    assert_int_equal(chosen(&k, 64), 64);
    assert_int_equal(chosen(&k, 99), 64);
    assert_int_equal(chosen(&k, 100), 2);
    kernel_close(&k);
}

/* ---- layouts ---- */

/* [10, 7] in modes of 2, 3, 2 rows and of 2, 2, 2 columns: every level is walked, and what no element fills is zero. */
static void layouts_of_several_modes_pack_and_unpack(void **state) {
    (void)state;
    enum { ROWS = 10, COLUMNS = 7, SPAN = 96 };
    kernel k;
    int64_t values[64], span;
    bool bound[64];
    const int64_t dims[] = {ROWS, COLUMNS};
    kernel_open(&k, "igraph @k on cpu {\n  dim M, N\n"
                    "  ptr %x : dram i32 [M, N]:((2, 3, 2), (2, 2, 2)):((1, 8, 48), (2, 4, 24)) in 0\n"
                    "  ptr %y : dram i32 [M, N] out 0\n  phase {\n    move.i32 %y[0:M, 0:N], %x[0:M, 0:N]\n  }\n}\n");
    assert_int_equal(uir_igraph_bind(k.igraph, dims, NULL, values, bound, &k.diagnostics), UIR_STATUS_OK);
    assert_int_equal(
        uir_dim_evaluate(k.igraph->dims, k.igraph->pointers.data[0].element_span, values, bound, 64, &span),
        UIR_DIM_EVALUATED);
    assert_true(span <= SPAN);
    int32_t rows[ROWS * COLUMNS], packed[SPAN], again[ROWS * COLUMNS], expected[SPAN] = {0};
    memset(packed, 0x5a, sizeof packed);
    for (int m = 0; m < ROWS; m++) {
        for (int n = 0; n < COLUMNS; n++) {
            int at = m % 2 + m / 2 % 3 * 8 + m / 6 * 48 + n % 2 * 2 + n / 2 % 2 * 4 + n / 4 * 24;
            assert_int_equal(expected[at], 0);
            expected[at] = rows[m * COLUMNS + n] = m * COLUMNS + n + 1;
        }
    }
    assert_int_equal(uir_igraph_pack(k.igraph, 0, values, rows, packed), UIR_STATUS_OK);
    assert_memory_equal(packed, expected, (size_t)span * sizeof *packed);
    assert_int_equal(uir_igraph_unpack(k.igraph, 0, values, packed, again), UIR_STATUS_OK);
    assert_memory_equal(again, rows, sizeof rows);
    kernel_close(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dims_keep_their_facts),
        cmocka_unit_test(all_requirements_hold),
        cmocka_unit_test(names_have_their_values),
        cmocka_unit_test(the_cheapest_candidate_is_taken),
        cmocka_unit_test(workers_share_the_units_of_candidates),
        cmocka_unit_test(candidates_must_be_valid),
        cmocka_unit_test(layouts_of_several_modes_pack_and_unpack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
