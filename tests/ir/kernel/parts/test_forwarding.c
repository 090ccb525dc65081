/* Which local pointers mirror an argument: "r" where %r does, "r,q" where both do, "" where none. */
#include "ir/kernel/igraph_forwarding.h"
#include "tests/ir/kernel/parts/support.h"

#define HEAD                                                                                                           \
    "igraph @k on cpu {\n  dim N in 1..64\n  ptr %x : dram f32 [4, N] in 0\n  ptr %i : dram i32 [4] in 1\n"            \
    "  ptr %z : dram f32 [4, N] in 2\n  ptr %t : dram f32 [4, N]:(2*N, 2) in 3\n  ptr %y : dram f32 [4, N] out 0\n"    \
    "  ptr %w : dram f32 [4, N] out 1 tied %z\n  ptr %r, %q : sram f32 [1, N]\n  ptr %k : sram i32 [1]\n"              \
    "  ptr %s : reg f32 [1, 1]\n  ptr %h : sram f32 [2, N]\n  phase {\n"
#define TAIL "  }\n}\n"
#define COPY "    move.f32 %r[0:1, 0:N], %x[0:1, 0:N]\n"
#define READ "    unary.neg.f32 %y[0:1, 0:N], %r[0:1, 0:N]\n"

static const struct {
    const char *name, *body, *forwarded;
} cases[] = {
    {"a row that is read", COPY READ, "r"},
    {"read before", READ COPY, ""},
    {"filled twice", COPY COPY READ, ""},
    {"overwritten", COPY READ "    unary.neg.f32 %r[0:1, 0:N], %x[1:1, 0:N]\n", ""},
    {"another part is read", "    move.f32 %h[0:2, 0:N], %x[0:2, 0:N]\n    unary.neg.f32 %y[0:1, 0:N], %h[1:1, 0:N]\n",
     ""},
    {"a row of each turn",
     "    loop l : 4 {\n      move.f32 %r[0:1, 0:N], %x[l:1, 0:N]\n"
     "      unary.neg.f32 %y[l:1, 0:N], %r[0:1, 0:N]\n    }\n",
     "r"},
    {"the turn before's",
     "    loop l : 4 {\n      unary.neg.f32 %y[l:1, 0:N], %r[0:1, 0:N]\n"
     "      move.f32 %r[0:1, 0:N], %x[l:1, 0:N]\n    }\n",
     ""},
    {"read deeper", COPY "    loop l : 4 {\n      unary.neg.f32 %y[l:1, 0:N], %r[0:1, 0:N]\n    }\n", "r"},
    {"read further out", "    loop l : 4 {\n      move.f32 %r[0:1, 0:N], %x[l:1, 0:N]\n    }\n" READ, ""},
    {"under a condition", "    move.f32 %r[0:1, 0:N], %x[0:1, 0:N] when N >= 2\n" READ, ""},
    {"read under one", COPY "    if N >= 2 {\n  " READ "    }\n", "r"},
    {"filled under one", "    if N >= 2 {\n  " COPY "    }\n" READ, ""},
    {"partly outside", "    move.f32 %r[0:1, 0:N], %x[0:1, 1:N] fill 0\n" READ, ""},
    {"not row by row", "    move.f32 %r[0:1, 0:N], %t[0:1, 0:N]\n" READ, ""},
    {"what a result goes on from", "    move.f32 %r[0:1, 0:N], %z[0:1, 0:N]\n" READ, ""},
    {"what a result holds",
     "    unary.neg.f32 %y[1:1, 0:N], %x[1:1, 0:N]\n    move.f32 %r[0:1, 0:N], %y[1:1, 0:N]\n" READ, ""},
    {"an index is read",
     "    move.i32 %k, %i[0:1]\n    index j = %k[0] in 0..3 clamp\n    move.f32 %y[0:1, 0:N], %x[j:1, 0:N]\n", ""},
    {"a sum that goes on", COPY "    reduce.add.row.unit.f32 %s, %r[0:1, 0:N]\n" READ, "r"},
    {"a mirror of a mirror",
     COPY "    move.f32 %q[0:1, 0:N], %r[0:1, 0:N]\n    unary.neg.f32 %y[0:1, 0:N], %q[0:1, 0:N]\n", "r"},
    {"two",
     COPY "    move.f32 %q[0:1, 0:N], %x[1:1, 0:N]\n    binary.add.f32 %y[0:1, 0:N], %r[0:1, 0:N], %q[0:1, 0:N]\n",
     "r,q"},
    {"a product reads it",
     "    move.f32 %h[0:2, 0:N], %x[0:2, 0:N]\n    mma %y[0:2, 0:2], %h[0:2, 0:N], %x[0:N, 0:2]\n", ""},
};

static void test_cases(void **state) {
    (void)state;
    uint32_t wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int runs = 0; runs < 2; runs++) { /* the same once steps are gathered in runs */
            kernel k;
            uir_text text;
            const uir_iinstruction *forwarded[16];
            kernel_open_body(&k, HEAD, cases[i].body, TAIL);
            for (uint32_t n = 0; n < k.igraph->instructions.count; n++) { /* as the verifier leaves it */
                uir_iinstruction *in = &k.igraph->instructions.data[n];
                for (uint32_t s = 0; s < in->slice_count; s++)
                    if (!in->slices[s].has_fill) in->unguarded |= 1u << s;
            }
            uir_text_init(&text, &k.allocator);
            if (runs) assert_int_equal(uir_igraph_form_runs(k.igraph, &k.diagnostics), UIR_STATUS_OK);
            assert_true(k.igraph->pointers.count <= sizeof forwarded / sizeof *forwarded);
            assert_int_equal(uir_igraph_find_forwarded(k.igraph, forwarded), UIR_STATUS_OK);
            for (uint32_t p = 0; p < k.igraph->pointers.count; p++)
                if (forwarded[p])
                    uir_text_append_format(&text, "%s%s", text.length ? "," : "", k.igraph->pointers.data[p].name);
            wrong += kernel_end_case(&k, cases[i].name, &text, cases[i].forwarded);
        }
    }
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
