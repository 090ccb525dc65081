/* Which instructions become one run, and which local pointers die in it: "3:a" is a run of three that nobody else reads
 * %a of; "-" an instruction by itself. */
#include "tests/ir/kernel/parts/support.h"

#define HEAD                                                                                                           \
    "igraph @k on cpu {\n  dim N in 1..64\n  ptr %x : dram f32 [2, N] in 0\n  ptr %i : dram i32 [N] in 1\n"            \
    "  ptr %y : dram f32 [2, N] out 0\n  ptr %a, %b : sram f32 [2, N]\n  ptr %s, %m : sram f32 [1, 1]\n"               \
    "  ptr %k : sram i32 [1]\n  phase {\n"
#define TAIL "  }\n}\n"

static const struct {
    const char *name, *body, *runs;
} cases[] = {
    {"a chain over one shape",
     "    unary.neg.f32 %a[0:1, 0:N], %x[0:1, 0:N]\n    unary.exp.f32 %y[0:1, 0:N], %a[0:1, 0:N]\n", "2:a"},
    {"another shape", "    unary.neg.f32 %a[0:1, 0:N], %x[0:1, 0:N]\n    unary.neg.f32 %y, %x\n", "1:a 1"},
    {"what a later run reads lives",
     "    unary.neg.f32 %a[0:1, 0:N], %x[0:1, 0:N]\n    unary.neg.f32 %b, %x\n"
     "    unary.exp.f32 %y[0:1, 0:N], %a[0:1, 0:N]\n",
     "1 1:b 1"},
    {"written after it is read",
     "    unary.exp.f32 %y[0:1, 0:N], %a[0:1, 0:N]\n    unary.neg.f32 %a[0:1, 0:N], %x[0:1, 0:N]\n", "2"},
    {"a reduction ends a run",
     "    unary.neg.f32 %a[0:1, 0:N], %x[0:1, 0:N]\n    reduce.add.row.unit.f32 %s, %a[0:1, 0:N]\n"
     "    unary.exp.f32 %y[0:1, 0:N], %x[0:1, 0:N]\n",
     "2:a,s 1"},
    {"reductions of one value go together",
     "    unary.neg.f32 %a[0:1, 0:N], %x[0:1, 0:N]\n"
     "    reduce.add.row.unit.f32 %s, %a[0:1, 0:N]\n    reduce.max.row.unit.f32 %m, %a[0:1, 0:N]\n",
     "3:a,s,m"},
    {"a reduction of a reduction does not",
     "    reduce.add.row.unit.f32 %s, %x[0:1, 0:1]\n"
     "    reduce.max.row.unit.f32 %m, %s\n",
     "1 1:m"},
    {"two into one state do not",
     "    reduce.add.row.unit.f32 %s, %x[0:1, 0:N]\n"
     "    reduce.add.row.unit.f32 %s, %x[1:1, 0:N] acc\n",
     "1 1"},
    {"what a reduction goes on from lives", "    fill.f32 %s, 0\n    reduce.add.row.unit.f32 %s, %x[0:1, 0:N] acc\n",
     "1 1"},
    {"what is read elsewhere is not written",
     "    binary.add.f32 %b[0:1, 0:N], %a[0:1, 0:N], 1\n"
     "    unary.neg.f32 %a[1:1, 0:N], %x[0:1, 0:N]\n",
     "1:b 1"},
    {"what is written elsewhere is not read",
     "    unary.neg.f32 %a[1:1, 0:N], %x[0:1, 0:N]\n"
     "    binary.add.f32 %b[0:1, 0:N], %a[0:1, 0:N], 1\n",
     "1 1:b"},
    {"nor in one instruction",
     "    unary.neg.f32 %a[1:1, 0:N], %x[0:1, 0:N]\n"
     "    binary.add.f32 %a[0:1, 0:N], %a[1:1, 0:N], 1\n",
     "1 -"},
    {"an index is read",
     "    move.i32 %k, %i[0:1]\n    index j = %k[0] in 0..N-1 clamp\n"
     "    move.f32 %y[0:1, j:1], %x[0:1, j:1]\n",
     "1 - 1"},
};

static void put_item(const uir_igraph *g, const uir_iitem *item, uir_text *text) {
    if (text->length) uir_text_append_string(text, " ");
    if (item->kind != UIR_IITEM_RUN) {
        uir_text_append_string(text, "-");
        return;
    }
    uint32_t members = 0;
    for (uint32_t c = item->first_child; c != UINT32_MAX; c = g->items.data[c].next) members++;
    uir_text_append_format(text, "%u", members);
    for (uint32_t d = 0; d < item->dead_count; d++)
        uir_text_append_format(text, "%c%s", d ? ',' : ':', g->pointers.data[item->dead[d]].name);
}

static void test_cases(void **state) {
    (void)state;
    uint32_t wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kernel k;
        uir_text text;
        kernel_open_body(&k, HEAD, cases[i].body, TAIL);
        uir_text_init(&text, &k.allocator);
        assert_int_equal(uir_igraph_form_runs(k.igraph, &k.diagnostics), UIR_STATUS_OK);
        for (uint32_t n = k.igraph->phases.data[0].bodies[0].first_item; n != UINT32_MAX;
             n = k.igraph->items.data[n].next)
            put_item(k.igraph, &k.igraph->items.data[n], &text);
        wrong += kernel_end_case(&k, cases[i].name, &text, cases[i].runs);
    }
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
