/* Copies of kernels, and kernels that are built in memory. */
#include "tests/ir/kernel/parts/support.h"

#include "ir/kernel/igraph_build.h"

static void wants_text(const uir_igraph *igraph, const char *wanted) {
    uir_text text;
    uir_text_init(&text, &igraph->allocator);
    uir_igraph_print(igraph, &text);
    assert_string_equal(text.data, wanted);
    uir_text_deinit(&text);
}

/* The text of a kernel that says all that there is to be said. */
static void copies_say_the_same(void **state) {
    (void)state;
    static const char text[] = "igraph @k on cpu {\n"
                               "  dim   N in 1..64 mult 4\n"
                               "  dim   R in 3..\n"
                               "  tile  t in 1..8\n"
                               "  dim   F = 7\n"
                               "  let   B = ceildiv(N, t)\n"
                               "  require N*4 <= sram\n"
                               "  candidate t = 4 when N >= 4 and R < cores cost B units N\n"
                               "  candidate t = 1\n"
                               "  ptr %x : dram f32 [R, N]:(1, R) in 0\n"
                               "  ptr %i : dram i64 [R, 1] in 1\n"
                               "  ptr %w : dram f32 [R, N]:(R, (4, ceildiv(N, 4))):(4, (1, R*4)) const 2\n"
                               "  ptr %y : dram f32 [R, N] out 0\n"
                               "  ptr %b : sram f32 [1, t] x2 by l\n"
                               "  ptr %s : reg f32 [1, 1]\n"
                               "  phase {\n"
                               "    parallel p : R group\n"
                               "    let q = R - p - 1\n"
                               "    index g = %i[q:1, 0:1] in 0..R - 1 clamp\n"
                               "    loop l : B when N > F {\n"
                               "      run dead %s {\n"
                               "        move.f32 %b[0:1, 0:t], %x[g, l*t + v ; u<1, v<t] fill -1.5\n"
                               "        fill.f32 %s, 2\n"
                               "      }\n"
                               "      if first(l) and N != 8 {\n"
                               "        reduce.add.row.unit.f32 %s, %b[0:1, 0:t] acc\n"
                               "      }\n"
                               "      binary.mul.f32 %y[q:1, l*t:t], %b[0:1, 0:t], 3 stream when not last(l)\n"
                               "    }\n"
                               "  }\n"
                               "}\n";
    kernel k;
    uir_igraph *copy = NULL;
    kernel_open(&k, text);
    uir_text first;
    uir_text_init(&first, &k.allocator);
    uir_igraph_print(k.igraph, &first);
    assert_int_equal(uir_igraph_clone(k.igraph, &k.allocator, &copy), UIR_STATUS_OK);
    wants_text(copy, first.data);
    assert_int_equal(copy->symbols.count, k.igraph->symbols.count);
    for (uint32_t i = 0; i < copy->symbols.count; i++) {
        assert_string_equal(copy->symbols.data[i].name, k.igraph->symbols.data[i].name);
        assert_int_equal(copy->symbols.data[i].kind, k.igraph->symbols.data[i].kind);
    }
    kernel_close(&k); /* nothing of it is left in the copy */
    wants_text(copy, first.data);
    uir_text_deinit(&first);
    uir_igraph_destroy(copy);
}

#define ROWS "igraph @rows on cpu {\n  dim   N\n  ptr   %x : dram f32 [1, N] in 0\n  ptr   %y : dram f32 [1, N] out 0\n"

/* A kernel of one loop, whose symbols are made in another order than that of its text; returns the loop's symbol. */
static uint32_t build(kernel *k, uir_ibuilder *b) {
    uint32_t loop, size, unused;
    uir_igraph *g;
    kernel_open(k, "igraph @rows on cpu {\n}\n");
    g = k->igraph;
    assert_int_equal(uir_igraph_add_symbol(g, "w", 1, UIR_ISYMBOL_AXIS, NULL, uir_dim_const(g->dims, 2), &unused),
                     UIR_STATUS_OK);
    assert_int_equal(uir_igraph_add_symbol(g, "N", 1, UIR_ISYMBOL_DIM, NULL, UIR_DIM_NONE, &size), UIR_STATUS_OK);
    uir_dim one = uir_dim_const(g->dims, 1), n = uir_igraph_symbol_dim(g, size);
    assert_int_equal(uir_igraph_add_symbol(g, "l", 1, UIR_ISYMBOL_LOOP, NULL, n, &loop), UIR_STATUS_OK);
    uir_ipointer pointer = {.dtype = UIR_DTYPE_F32, .rank = 2, .extents = {one, n}, .instances = 1};
    pointer.by_loop = pointer.tied = pointer.over = UINT32_MAX;
    for (int i = 0; i < 2; i++) {
        pointer.name = i ? "y" : "x";
        pointer.role = i ? UIR_IPOINTER_OUT : UIR_IPOINTER_IN;
        assert_int_equal(uir_igraph_finish_pointer(g, &pointer), UIR_STATUS_OK);
        assert_int_equal(uir_vector_push(&g->arena, &g->pointers, pointer), UIR_STATUS_OK);
    }
    uir_ibuilder_init(b, g);
    assert_int_equal(uir_ibuilder_begin_phase(b, NULL, 0, 0), UIR_STATUS_OK);
    uir_iitem item = {.kind = UIR_IITEM_LOOP, .symbol = loop, .extent = n};
    assert_int_equal(uir_ibuilder_begin(b, &item), UIR_STATUS_OK);
    return loop;
}

static void add_move(kernel *k, uir_ibuilder *b, uint32_t loop) {
    uir_dims *dims = k->igraph->dims;
    uir_iinstruction move = {.code = UIR_IOP_MOVE, .dtype = UIR_DTYPE_F32, .slice_count = 2};
    move.sync_pointer = move.legal_row = UINT32_MAX;
    for (uint32_t i = 0; i < 2; i++) {
        uir_islice *s = &move.slices[i];
        *s = (uir_islice){.pointer = 1 - i, .rank = 2};
        s->starts[0] = uir_dim_const(dims, 0);
        s->starts[1] = uir_igraph_symbol_dim(k->igraph, loop);
        s->counts[0] = s->counts[1] = uir_dim_const(dims, 1);
    }
    assert_int_equal(uir_ibuilder_add_instruction(b, &move, NULL), UIR_STATUS_OK);
}

/* Built and copied, it is what its text says, and the symbols are those that a reader would have. */
static void what_is_built_reads_as_text(void **state) {
    (void)state;
    kernel k;
    uir_ibuilder b;
    uir_igraph *copy = NULL;
    uint32_t loop = build(&k, &b);
    add_move(&k, &b, loop);
    uir_ibuilder_end(&b);
    uir_ibuilder_end(&b);
    assert_int_equal(uir_igraph_clone(k.igraph, &k.allocator, &copy), UIR_STATUS_OK);
    wants_text(copy, ROWS "  phase {\n    loop l : N {\n      move.dram.dram.f32  %y[0, l], %x[0, l]\n    }\n  }\n}\n");
    assert_int_equal(copy->symbols.count, 2); /* w is used by nothing */
    assert_string_equal(copy->symbols.data[0].name, "N");
    assert_int_equal(uir_igraph_verify(copy, &k.diagnostics), UIR_STATUS_OK);
    uir_igraph_destroy(copy);
    kernel_close(&k);
}

/* A loop's index behind the loop is nobody's. */
static void a_symbol_is_known_where_it_is_declared(void **state) {
    (void)state;
    kernel k;
    uir_ibuilder b;
    uir_igraph *copy = NULL;
    uint32_t loop = build(&k, &b);
    uir_ibuilder_end(&b);
    add_move(&k, &b, loop);
    assert_int_equal(uir_igraph_clone(k.igraph, &k.allocator, &copy), UIR_STATUS_INTERNAL);
    assert_null(copy);
    kernel_close(&k);
}

/* What no text could hold is not built. */
static void what_is_too_large_is_refused(void **state) {
    (void)state;
    kernel k;
    uir_ibuilder b;
    uir_iitem item = {.kind = UIR_IITEM_IF, .symbol = UINT32_MAX};
    uint32_t deep = 2, loop = build(&k, &b), many = 1;
    while (uir_ibuilder_begin(&b, &item) == UIR_STATUS_OK) deep++;
    assert_int_equal(deep, UIR_IGRAPH_MAX_DEPTH);
    item = (uir_iitem){.kind = UIR_IITEM_LET, .symbol = loop};
    many = k.igraph->items.count;
    while (uir_ibuilder_add(&b, &item) == UIR_STATUS_OK) many++;
    assert_int_equal(many, UIR_IGRAPH_MAX_ITEMS);
    assert_int_equal(uir_ibuilder_add(&b, &item), UIR_STATUS_LIMIT);
    kernel_close(&k);
    build(&k, &b);
    uir_iatom atoms[UIR_IGRAPH_MAX_ATOMS + 1] = {{0}};
    item = (uir_iitem){.kind = UIR_IITEM_IF, .guard = {atoms, UIR_IGRAPH_MAX_ATOMS + 1}, .symbol = UINT32_MAX};
    assert_int_equal(uir_ibuilder_add(&b, &item), UIR_STATUS_LIMIT);
    item.guard.count--;
    assert_int_equal(uir_ibuilder_add(&b, &item), UIR_STATUS_OK);
    uir_iparallel parallel[5] = {{0}};
    assert_int_equal(uir_ibuilder_begin_phase(&b, parallel, 5, 0), UIR_STATUS_LIMIT);
    kernel_close(&k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_say_the_same),
        cmocka_unit_test(what_is_built_reads_as_text),
        cmocka_unit_test(a_symbol_is_known_where_it_is_declared),
        cmocka_unit_test(what_is_too_large_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
