/* Which buffers come to lie in one place: "a>b" is %a over %b. What is shared is a kernel still, on which the verifier
 * looks anew. */
#include "ir/kernel/igraph_places.h"
#include "tests/ir/kernel/parts/support.h"

#define HEAD                                                                                                           \
    "igraph @k on cpu {\n  dim M in 1..64, N in 1..64\n  ptr %x : dram f32 [M, N] in 0\n"                              \
    "  ptr %y : dram f32 [M, N] out 0\n  ptr %i : dram i32 [N] in 1\n  ptr %a, %b, %c : sram f32 [1, N]\n"
#define ROW   "%x[0:1, 0:N]"
#define PHASE "  phase {\n    parallel q : M group\n    move.f32 %y[q:1, 0:N], %x[q:1, 0:N]\n  }\n  phase {\n"

/* Written by one reduction, so that each is a step of its own. */
#define COLUMNS(to, from) "    reduce.add.col.unit.f32 " to ", " from "\n"
#define OUT(from)         "    reduce.add.col.unit.f32 %y[0:1, 0:N], " from "\n"

static const struct {
    const char *name, *body, *places;
} cases[] = {
    {"one after the other", PHASE COLUMNS("%a", ROW) OUT("%a") COLUMNS("%b", ROW) OUT("%b"), "b>a"},
    {"read in the instruction that writes the other", PHASE COLUMNS("%a", ROW) COLUMNS("%b", "%a") OUT("%b"), ""},
    {"three in a row", PHASE COLUMNS("%a", ROW) COLUMNS("%b", "%a") COLUMNS("%c", "%b") OUT("%c"), "c>a"},
    {"in one run",
     PHASE "    unary.neg.f32 %a, " ROW "\n    unary.exp.f32 %y[0:1, 0:N], %a\n    unary.neg.f32 %b, " ROW
           "\n    unary.exp.f32 %y[0:1, 0:N], %b\n",
     ""},
    {"in two runs",
     PHASE "    unary.neg.f32 %a, " ROW "\n    unary.exp.f32 %y[0:1, 0:N], %a\n" COLUMNS("%c", ROW)
         OUT("%c") "    unary.neg.f32 %b, " ROW "\n    unary.exp.f32 %y[0:1, 0:N], %b\n",
     "b>a c>a"},
    {"of different phases", "  phase {\n" COLUMNS("%a", ROW) OUT("%a") "  }\n" PHASE COLUMNS("%b", ROW) OUT("%b"),
     "b>a"},
    {"anew in each iteration",
     PHASE "    loop l : M {\n" COLUMNS("%a", ROW) OUT("%a") COLUMNS("%b", ROW) OUT("%b") "    }\n", "b>a"},
    {"carried by the loop",
     PHASE COLUMNS("%a", ROW) "    loop l : M {\n" OUT("%a") COLUMNS("%b", ROW) OUT("%b") "    }\n", ""},
    {"written at first alone",
     PHASE "    loop l : M {\n    fill.f32 %a, 0 when first(l)\n" COLUMNS("%b", ROW) OUT("%b") OUT("%a") "    }\n", ""},
    {"written where a condition holds",
     PHASE "    loop l : M {\n    if l < 1 {\n    fill.f32 %a, 0\n    }\n" OUT("%a") COLUMNS("%b", ROW)
         OUT("%b") "    }\n",
     ""},
    {"written anew in part, read whole",
     "  ptr %w : sram f32 [1, 8]\n  ptr %t : sram f32 [1, 8]\n" PHASE
     "    loop l : M {\n    fill.f32 %w, 0 when first(l)\n    fill.f32 %w[0:1, 0:4], 1\n"
     "    reduce.add.row.unit.f32 %y[0:1, 0:1], %w\n"
     "    fill.f32 %t, 2\n    reduce.add.row.unit.f32 %y[0:1, 0:1], %t\n    }\n",
     ""},
    {"written anew in part, of which a part is read",
     "  ptr %w : sram f32 [1, 8]\n  ptr %t : sram f32 [1, 8]\n" PHASE
     "    loop l : M {\n    fill.f32 %w, 0 when first(l)\n    fill.f32 %w[0:1, 0:4], 1\n"
     "    reduce.add.row.unit.f32 %y[0:1, 0:1], %w[0:1, 1:2]\n"
     "    fill.f32 %t, 2\n    reduce.add.row.unit.f32 %y[0:1, 0:1], %t\n    }\n",
     "t>w"},
    {"gathered by the loop",
     PHASE "    loop l : N {\n" COLUMNS("%b[0:1, 0:1]", "%x[0:1, l:1]") "    move.f32 %a[0:1, l:1], %b[0:1, 0:1]\n"
                                                                        "    }\n" OUT("%a"),
     ""},
    {"accumulated by the loop",
     PHASE "    fill.f32 %a, 0\n    loop l : M {\n" COLUMNS(
         "%b", ROW) "    reduce.add.col.unit.f32 %a, %b acc\n    }\n" OUT("%a"),
     ""},
    {"what an inner loop reads lives through it",
     PHASE "    loop l : M {\n" COLUMNS("%a", ROW) "    loop k : M {\n" OUT("%a") COLUMNS("%b", ROW)
         OUT("%b") "    }\n    }\n",
     ""},
    {"the larger one is the place",
     "  ptr %w : sram f64 [1, N]\n  ptr %t : sram u8 [1, N]\n" PHASE COLUMNS("%a", ROW)
         OUT("%a") "    fill.f64 %w, 0\n    cast.f64.u8 %t, %w\n",
     "a>w"},
    {"sizes that cannot be told apart",
     "  ptr %w : sram f32 [1, M]\n" PHASE COLUMNS("%a", ROW) OUT("%a") "    fill.f32 %w, 0\n", ""},
    {"numbers are registers",
     "  ptr %n, %m : sram f32 [1, 1]\n" PHASE "    fill.f32 %n, 0\n    move.f32 %y[0:1, 0:1], %n\n    fill.f32 %m, 0\n"
     "    move.f32 %y[0:1, 0:1], %m\n",
     ""},
    {"several instances take a place together",
     "  ptr %w : sram f32 [1, N] x2 by l\n" PHASE COLUMNS("%a", ROW)
         OUT("%a") "    loop l : M {\n    fill.f32 %w, 0\n    }\n",
     "a>w"},
    {"several instances live through their loop",
     "  ptr %w : sram f32 [1, N] x2 by l\n" PHASE "    loop l : M {\n" COLUMNS("%w", ROW) OUT("%w") COLUMNS("%a", ROW)
         OUT("%a") "    }\n",
     ""},
    {"instances of two loops",
     "  ptr %w : sram f32 [1, N] x2 by l\n  ptr %t : sram f32 [1, N] x2 by k\n" PHASE "    loop l : M {\n" COLUMNS(
         "%w", ROW) OUT("%w") "    }\n    loop k : M {\n" COLUMNS("%t", ROW) OUT("%t") "    }\n",
     "t>w"},
    {"an index is read",
     "  ptr %k : sram i32 [2]\n  ptr %w : sram i32 [2]\n" PHASE "    move.i32 %k, %i[0:2] fill 0\n    fill.i32 %w, 0\n"
     "    index j = %k[0] in 0..N-1 clamp\n    move.f32 %y[0:1, j:1], %x[0:1, j:1]\n",
     ""},
};

static void put_places(const uir_igraph *g, uir_text *text) {
    for (uint32_t i = 0; i < g->pointers.count; i++)
        if (g->pointers.data[i].over != UINT32_MAX)
            uir_text_append_format(text, "%s%s>%s", text->length ? " " : "", g->pointers.data[i].name,
                                   g->pointers.data[g->pointers.data[i].over].name);
}

static void buffers_share_places(void **state) {
    (void)state;
    uint32_t wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kernel k;
        uir_text text;
        kernel_open_body(&k, HEAD, cases[i].body, "  }\n}\n");
        uir_text_init(&text, &k.allocator);
        if (uir_igraph_verify(k.igraph, &k.diagnostics) != UIR_STATUS_OK)
            fail_msg("%s: %s", cases[i].name, k.diagnostics.first->message);
        assert_int_equal(uir_igraph_share_places(k.igraph), UIR_STATUS_OK);
        put_places(k.igraph, &text);
        if (uir_igraph_verify(k.igraph, &k.diagnostics) != UIR_STATUS_OK)
            fail_msg("%s, shared: %s", cases[i].name, k.diagnostics.first->message);
        wrong += kernel_end_case(&k, cases[i].name, &text, cases[i].places);
    }
    assert_int_equal(wrong, 0);
}

/* Runs keep apart what lies in one place, whoever put it there. */
static void runs_do_not_share(void **state) {
    (void)state;
    kernel k;
    kernel_open_body(&k, HEAD,
                     "  ptr %o : sram f32 [1, N] over %a\n" PHASE "    unary.neg.f32 %a, " ROW
                     "\n    unary.exp.f32 %y[0:1, 0:N], %a\n    unary.neg.f32 %o, " ROW
                     "\n    unary.exp.f32 %y[0:1, 0:N], %o\n",
                     "  }\n}\n");
    assert_int_equal(uir_igraph_verify(k.igraph, &k.diagnostics), UIR_STATUS_OK);
    assert_int_equal(uir_igraph_form_runs(k.igraph, &k.diagnostics), UIR_STATUS_OK);
    uint32_t runs = 0;
    for (uint32_t n = k.igraph->phases.data[1].bodies[0].first_item; n != UINT32_MAX; n = k.igraph->items.data[n].next)
        runs++;
    assert_int_equal(runs, 2);
    kernel_close(&k);
}

/* A run is one step: what it reads and what it writes are live together. */
static void runs_are_steps(void **state) {
    (void)state;
    kernel k;
    uir_text text;
    kernel_open_body(&k, HEAD,
                     PHASE "    unary.neg.f32 %a, " ROW "\n    unary.exp.f32 %b, %a\n" OUT("%b") COLUMNS("%c", ROW)
                         OUT("%c"),
                     "  }\n}\n");
    uir_text_init(&text, &k.allocator);
    assert_int_equal(uir_igraph_verify(k.igraph, &k.diagnostics), UIR_STATUS_OK);
    assert_int_equal(uir_igraph_form_runs(k.igraph, &k.diagnostics), UIR_STATUS_OK);
    assert_int_equal(uir_igraph_share_places(k.igraph), UIR_STATUS_OK);
    put_places(k.igraph, &text);
    assert_int_equal(kernel_end_case(&k, "runs", &text, "c>a"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(buffers_share_places), cmocka_unit_test(runs_do_not_share),
                                       cmocka_unit_test(runs_are_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
