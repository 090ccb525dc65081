/* What the parser reads, and what it says of text that it does not. */
#include "tests/ir/kernel/support.h"

static void wants(const char *text, uint32_t line, uint32_t column, const char *message) {
    zoo z;
    uir_igraph *igraph = NULL;
    zoo_open(&z);
    uir_status status = uir_igraph_parse(&z.allocator, &z.list, text, strlen(text), "text", &z.diagnostics, &igraph);
    assert_int_equal(status, UIR_STATUS_BAD_FILE);
    assert_null(igraph);
    if (!zoo_said(&z, message)) {
        zoo_print_messages(&z);
        fail_msg("no message with '%s' for\n%s", message, text);
    }
    const uir_diagnostic *first = z.diagnostics.first;
    if (line) assert_int_equal(first->location.line, line);
    if (column) assert_int_equal(first->location.column, column);
    if (line) assert_non_null(first->location.line_text);
    zoo_close(&z);
}

#define HEAD        "igraph @k on cpu {\n  dim M, N\n  ptr %x : dram f32 [M,N] in 0\n  ptr %y : dram f32 [M,N] out 0\n"
#define BODY(items) HEAD "  phase {\n    parallel p : M group\n    " items "\n  }\n}\n"

/* "cpu, ascend": of every machine that this build describes. */
static const char *machine_names(void) {
    static char names[512];
    zoo z;
    size_t used = 0;
    zoo_open(&z);
    for (uint32_t i = 0; i < z.list.count; i++)
        if (z.list.devices[i]->is_first_chip)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", z.list.devices[i]->name);
    zoo_close(&z);
    return names;
}

static void header_errors(void **state) {
    (void)state;
    char unknown[600];
    snprintf(unknown, sizeof unknown, "unknown device; known are: %s", machine_names());
    wants("graph @k on cpu {}", 1, 1, "expected 'igraph', found 'graph'");
    wants("igraph k on cpu {}", 1, 8, "expected @name");
    wants("igraph @k on ascend \"910C\" {}", 1, 21, "unknown chip; known are: 910B1, 910B3, 910A, 310P3");
    wants("igraph @k on cpv {}", 1, 14, unknown);
    wants("igraph @k on cpu {\n  dim M, M\n}", 2, 10, "the name 'M' is already used here");
    wants("igraph @k on cpu {\n  dim M in 4..2\n}", 3, 1, "allow no size");
    wants("igraph @k on cpu {\n  tile t in 0..2\n}", 3, 1, "a tile is at least 1");
    wants("igraph @k on cpu {\n  dim Rows\n  ptr %x : dram f32 [Rws] in 0\n}", 3, 0, "did you mean 'Rows'?");
    wants("igraph @k on cpu {\n  ptr %x : vram f32 [4] in 0\n}", 2, 12,
          "'vram' is not a memory space of cpu; did you mean dram?; known are: dram, sram, reg");
    wants("igraph @k on ascend {\n  ptr %x : gm f32 [4] in 0\n}", 2, 12, "known are: dram, ub, l1, l0a, l0b, l0c");
    wants("igraph @k on cpu {\n  phase { on cone { } }\n}", 2, 14,
          "'cone' is not a kind of unit of cpu; did you mean core?; known is: core");
    wants("igraph @k on cpu {\n  dim N\n  let q = N modd 3\n}", 3, 0, "expected dim, tile");
    wants("igraph @k on cpu {\n  dim N\n  let q = N mod\n}", 4, 1, "expected a size");
    wants("igraph @k on cpu {\n  ptr %x : dram f31 [4] in 0\n}", 2, 17, "expected a dtype");
    wants("igraph @k on cpu {\n  ptr %x : dram f32 [4] in 0\n  ptr %x : dram f32 [4] out 0\n}", 3, 7,
          "%x is declared twice");
    wants("igraph @k on cpu {\n  ptr %x : sram f32 [8,8]:((2,4),8):(1,(2,8)) \n}", 0, 0,
          "its sizes and strides differ in number");
    wants("igraph @k on cpu {\n  ptr %x : sram f32 [4] x2 by l\n}", 2, 31, "unknown loop 'l'");
    wants("igraph @k on cpu {\n  tile t, s\n  candidate t = 1\n}", 0, 0, "a candidate sets every tile");
    wants(HEAD "  let q = 9223372036854775807 * M * 9223372036854775807\n}", 0, 0, "overflows");
    wants(HEAD "  ghost\n}", 5, 3, "expected dim, tile, let");
    wants("igraph @a on cpu {\n}\nigraph @b on cpu {\n}\n", 0, 0, "the text holds 2 kernels");
}

static void body_errors(void **state) {
    (void)state;
    wants(BODY("move.f32 %y[p, 0:N], %z[p, 0:N]"), 7, 26, "unknown pointer %z; did you mean %x?");
    wants(BODY("move.f32 %y[p, 0:N], %x[p]"), 7, 30, "%x has 2 dims: expected as many ranges");
    wants(BODY("unary.exq.f32 %y[p, 0:N], %x[p, 0:N]"), 7, 5,
          "unknown instruction 'unary.exq'; did you mean unary.exp?; known in 'unary': neg, abs, sign, sqrt, ");
    wants(BODY("binary.plus.f32 %y[p, 0:N], %x[p, 0:N], 1"), 7, 5,
          "known in 'binary': add, sub, mul, div, mod, fmod, min, ");
    wants(
        BODY("copy.f32 %y[p, 0:N], %x[p, 0:N]"), 7, 5,
        "known are: move, fill, iota, unary, binary, compare, ternary, cast, bits, broadcast, reduce, scan, mma, sync");
    wants(BODY("binary.add.f32 %y[p, 0:N], %x[p, 0:N]"), 0, 0, "binary.add expects 1 result and 2 operands");
    wants(BODY("binary.add.f32 %y[p, 0:N], 1, 2"), 7, 5, "at least one operand must be a slice");
    wants(BODY("unary.exp.row.f32 %y[p, 0:N], %x[p, 0:N]"), 7, 15, "'row' does not belong in the name of unary.exp");
    wants(BODY("reduce.add.f32 %y[p, 0:1], %x[p, 0:N]"), 7, 5, "reduce.add needs .row or .col");
    wants(BODY("move.sram.dram.f32 %y[p, 0:N], %x[p, 0:N]"), 7, 5,
          "this move's operand is in dram and its result in dram");
    wants(BODY("mma.f32.f32 %y, %x, %x"), 7, 5, "mma expects 3 dtypes or none");
    wants(BODY("loop l : N { fill.f32 %y[p, l], 0 } loop l : N { }"), 7, 46, "names of loops are unique");
    wants(BODY("fill.f32 %y[p, l], 0 loop l : N { }"), 7, 0, "'l'");
    wants(BODY("fill.f32 %y[p, 0:N], 0 when not p < 3"), 0, 0, "'not' is only allowed before first() or last()");
    wants(BODY("fill.f32 %y[p, 0:N], 0 when first(p)"), 0, 0, "expect the name of an enclosing loop");
    wants(BODY("if p 3 { }"), 0, 0, "expected a relation");
    wants(BODY("index i = %x[p, 0] in 1..N clamp"), 0, 0, "an index is in 0..LAST");
    wants(BODY("index i = %x[p, 0] in 0..N-1 bounce"), 0, 0, "expected clamp, wrap or skip");
    wants(BODY("move.f32 %y[p, c ; c<N, c<N], %x[p, 0:N]"), 0, 0, "axis 'c' is given twice");
    wants(BODY("sync.warp.core"), 7, 5,
          "expected sync.group, or sync.A.B of two pipes or two kinds of unit of cpu; kinds: core");
    wants(HEAD "  phase {\n    parallel p : M\n  }\n}", 0, 0, "expected 'group' or 'unit'");
    wants(HEAD "  phase {\n    parallel p : M group\n    on gpu { }\n  }\n}", 7, 8,
          "'gpu' is not a kind of unit of cpu; known is: core");
}

/* Spellings that mean the same print the same. */
static void same_text(const char *a, const char *b) {
    zoo z;
    uir_text texts[2];
    zoo_open(&z);
    for (int i = 0; i < 2; i++) {
        const char *text = i ? b : a;
        uir_igraph *igraph = NULL;
        uir_text_init(&texts[i], &z.allocator);
        uir_status status =
            uir_igraph_parse(&z.allocator, &z.list, text, strlen(text), "text", &z.diagnostics, &igraph);
        if (status != UIR_STATUS_OK) zoo_print_messages(&z);
        assert_int_equal(status, UIR_STATUS_OK);
        uir_igraph_print(igraph, &texts[i]);
        uir_igraph_destroy(igraph);
    }
    assert_string_equal(texts[0].data, texts[1].data);
    uir_text_deinit(&texts[0]);
    uir_text_deinit(&texts[1]);
    zoo_close(&z);
}

static void spellings(void **state) {
    (void)state;
    same_text(BODY("move.dram.dram.f32 %y[p:1, 0:N], %x[p:1, 0:N]"), BODY("move %y[p, 0:N], %x[p, 0:N]"));
    same_text(BODY("fill.f32 %y[p, 0:N], 0 fill.f32 %y[p, 0:N], -inf"),
              BODY("fill %y[p, 0:N], 0\n fill %y[p, 0:N], -inf"));
    same_text(BODY("let n = N  # a comment\n fill.f32 %y[p, 0:n], 0x1p-1"), BODY("let n = N fill.f32 %y[p, 0:n], 0.5"));
    same_text(BODY("reduce.max.row.f32 %y[p, 0:1], %x[p, 0:N] acc stream"),
              BODY("reduce.max.row.unit.f32 %y[p, 0], %x[p, 0:N] acc stream"));
    same_text(BODY("move %y[p, 0:N], %x[p, n ; (n<N)]"), BODY("move %y[p, 0:N], %x[p, n ; n<N]"));
    same_text("igraph @k on cpu { dim A in 2..9 mult 3 dim B in 2..9 mult 3 dim C dim D = 4 dim E dim F in 1..5 }",
              "igraph @k on cpu { dim A, B in 2..9 mult 3, C, D = 4, E in 0.., F in 1..5 }");
    same_text("igraph @k on cpu { tile s in 1..8 tile t in 1..8 tile u mult 4 tile v mult 4 }",
              "igraph @k on cpu { tile s, t in 1..8, u, v mult 4 }");
    same_text(BODY("let q = mod(N, 12) + floordiv(N, 12)*M*12 + ceildiv(mod(N*2, 5), 3)"),
              BODY("let q = N mod 12 * 1 + N floordiv 12 * 12*M + N * 2 mod 5 ceildiv 3"));
    same_text(HEAD "}",
              "igraph @k on cpu { dim M dim N ptr %x : dram f32 [M, N] in 0 ptr %y : dram f32 [M, N] out 0 }");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(header_errors), cmocka_unit_test(body_errors),
                                       cmocka_unit_test(spellings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
