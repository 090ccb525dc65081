/* The verifier's prover against plain evaluation: what it claims to hold for all sizes holds at random ones; and it
 * proves what tilings need. */
#include "tests/ir/kernel/support.h"

#include "ir/kernel/verify/igraph_term.h"

static uint64_t seed = 88172645463325252u;
static uint32_t below(uint32_t limit) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 33) % limit;
}

typedef struct bench {
    zoo z;
    uir_igraph *igraph;
    uir_arena arena;
    uir_terms terms;
} bench;

static void bench_open(bench *b, const char *text) {
    zoo_open(&b->z);
    assert_int_equal(
        uir_igraph_parse(&b->z.allocator, &b->z.list, text, strlen(text), "text", &b->z.diagnostics, &b->igraph),
        UIR_STATUS_OK);
    uir_arena_init(&b->arena, &b->z.allocator);
    assert_int_equal(uir_terms_init(&b->terms, &b->arena, b->igraph), UIR_STATUS_OK);
}

static void bench_close(bench *b) {
    uir_arena_deinit(&b->arena);
    uir_igraph_destroy(b->igraph);
    zoo_close(&b->z);
}

enum { DIMS = 5 };
static const char header[] =
    "igraph @k on cpu {\n  dim A in 0..40, B in 1..9, C in 0..7\n  tile s in 1..6, t mult 4\n}\n";

static uir_dim random_dim(uir_igraph *g, uint32_t depth) {
    uir_dims *dims = g->dims;
    if (depth == 0 || below(4) == 0)
        return below(3) == 0 ? uir_dim_const(dims, (int64_t)below(9) - 3) : uir_igraph_symbol_dim(g, below(DIMS));
    uir_dim a = random_dim(g, depth - 1), b = random_dim(g, depth - 1);
    uir_dim divisor = below(2) ? uir_igraph_symbol_dim(g, 1 + below(2) * 2) : uir_dim_const(dims, 1 + below(6));
    switch (below(8)) {
    case 0:
        return uir_dim_add(dims, a, b);
    case 1:
        return uir_dim_sub(dims, a, b);
    case 2:
        return uir_dim_mul(dims, a, b);
    case 3:
        return uir_dim_floordiv(dims, a, divisor);
    case 4:
        return uir_dim_ceildiv(dims, a, divisor);
    case 5:
        return uir_dim_mod(dims, a, divisor);
    case 6:
        return uir_dim_min(dims, a, b);
    default:
        return uir_dim_max(dims, a, b);
    }
}

static void claims_hold(void **state) {
    (void)state;
    uint32_t proved = 0;
    for (uint32_t round = 0; round < 400; round++) {
        bench b;
        bench_open(&b, header);
        uir_dim left = random_dim(b.igraph, 3), right = random_dim(b.igraph, 2), low = random_dim(b.igraph, 1);
        uir_term goal = uir_term_sub(&b.terms, uir_term_of_dim(&b.terms, left), uir_term_of_dim(&b.terms, right));
        uir_term_assume(&b.terms, uir_term_of_dim(&b.terms, low));
        bool claim = uir_term_prove(&b.terms, goal);
        proved += claim;
        for (uint32_t point = 0; point < 300 && claim; point++) {
            int64_t values[DIMS] = {below(41), 1 + below(9), below(8), 1 + below(6), 4 + 4 * below(5)}, l, r, a;
            if (uir_dim_evaluate(b.igraph->dims, low, values, NULL, DIMS, &a) != UIR_DIM_EVALUATED || a < 0) continue;
            if (uir_dim_evaluate(b.igraph->dims, left, values, NULL, DIMS, &l) != UIR_DIM_EVALUATED ||
                uir_dim_evaluate(b.igraph->dims, right, values, NULL, DIMS, &r) != UIR_DIM_EVALUATED)
                continue;
            if (l < r)
                fail_msg("round %u: claimed, but %lld < %lld at %lld %lld %lld %lld %lld", round, (long long)l,
                         (long long)r, (long long)values[0], (long long)values[1], (long long)values[2],
                         (long long)values[3], (long long)values[4]);
        }
        bench_close(&b);
    }
    assert_true(proved > 20);
}

/* Under the assumptions, each of `count` texts names a dim of the header that must be at least 0. */
static void proves(const char *text, const char *wanted) {
    bench b;
    bench_open(&b, text);
    uint32_t symbol = uir_igraph_find_symbol(b.igraph, wanted, strlen(wanted));
    assert_true(symbol != UINT32_MAX);
    for (uint32_t i = 0; i < b.igraph->requires_.count; i++) {
        const uir_condition *c = &b.igraph->requires_.data[i];
        assert_int_equal(c->relation, UIR_RELATION_LT);
        uir_term one = uir_term_const(&b.terms, 1);
        uir_term_assume(&b.terms, uir_term_sub(&b.terms,
                                               uir_term_sub(&b.terms, uir_term_of_dim(&b.terms, c->right),
                                                            uir_term_of_dim(&b.terms, c->left)),
                                               one));
    }
    if (!uir_term_prove(&b.terms, uir_term_of_dim(&b.terms, uir_igraph_symbol_dim(b.igraph, symbol))))
        fail_msg("not proved: %s", text);
    bench_close(&b);
}

static void tilings_are_proved(void **state) {
    (void)state;
    proves("igraph @k on cpu { dim M, x tile t require x < M let goal = ceildiv(M,t) - 1 - floordiv(x,t) }", "goal");
    proves("igraph @k on cpu { dim M, x tile t, c require x < M let goal = ceildiv(ceildiv(M,t),c) - 1 - "
           "floordiv(x,t*c) }",
           "goal");
    proves("igraph @k on cpu { dim p, q, r tile t require p < q require r < t let goal = q*t - p*t - r - 1 }", "goal");
    proves("igraph @k on cpu { dim c, d, l, m tile n, t require c < n require d < n require l < m let goal = (m*n+d)*t "
           "- (l*n+c)*t - t }",
           "goal");
    proves("igraph @k on cpu { dim K, k tile t require k < ceildiv(K,t) let goal = min(t, K-k*t) - 1 }", "goal");
    proves("igraph @k on cpu { dim i tile t mult 12 require i < t/12 let goal = t - i*12 - 12 }", "goal");
    proves("igraph @k on cpu { dim N tile r let goal = r*align(N,8) - (r-1)*align(N,8) - N }", "goal");
    proves("igraph @k on cpu { tile a in 1..8, b in 1..16 let goal = 128 - a*b }", "goal");
}

/* Assumptions that contradict one another do so wherever they stand among others, which may share no variable with
 * them, or have none. */
static void contradictions_are_found(void **state) {
    (void)state;
    for (uint32_t first = 0; first < 4; first++) {
        for (uint32_t kept = 0; kept < 2; kept++) {
            bench b;
            bench_open(&b, header);
            uir_terms *t = &b.terms;
            uir_term a = uir_term_of_dim(t, uir_igraph_symbol_dim(b.igraph, 0)),
                     c = uir_term_of_dim(t, uir_igraph_symbol_dim(b.igraph, 2)), five = uir_term_const(t, 5);
            uir_term all[4] = {uir_term_sub(t, a, five), /* A >= 5 */
                               uir_term_sub(t, uir_term_const(t, kept ? 5 : 4), a), uir_term_sub(t, five, c),
                               uir_term_const(t, 0)};
            for (uint32_t i = 0; i < 4; i++) uir_term_assume(t, all[(first + i) % 4]);
            assert_int_equal(uir_term_prove_unreachable(t), !kept);
            bench_close(&b);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(claims_hold), cmocka_unit_test(tilings_are_proved),
                                       cmocka_unit_test(contradictions_are_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
