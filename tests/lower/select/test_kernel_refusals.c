/* Scheduled loops of which no kernel can be made, and why: beside them what is just possible, and what it becomes. */
#include "backends/cpu/target/cpu.h"
#include "lower/lower.h"

#include <stdio.h>
#include <string.h>

typedef struct refusal {
    const char *name, *program;
    const char *why;    /* NULL: there is a kernel */
    const char *has[2]; /* in the kernel */
} refusal;

/* T[v, w] += A[...] over k, under three loops. */
#define SUMS(rows, columns, depth, read, loops)                                                                        \
    "func @f { tensor A : f32 [4, 8, 16] in 0 tensor T : f32 [" rows ", " columns "] temp sram tensor Y : f32 [" rows  \
    ", " columns "] out 0 monoid sum (s : f32) commutative { identity f32(0) update (x : f32) add(s, x)"               \
    " combine (b : f32) add(s, b) finish s }"                                                                          \
    " vectorised for (i, 0, " rows ") { vectorised for (j, 0, " columns ") {"                                          \
    " ScheduleBlock(init) { v, w = axis.bind(i, j) : " rows ", " columns " init sum (T[v, w]) } } } " loops            \
    " ScheduleBlock(u) { v, w, k = axis.bind(v0, w0, k0) : " rows ", " columns ", reduce " depth                       \
    " update sum (T[v, w]) with (A[" read "]) } } } }"                                                                 \
    " vectorised for (c, 0, " rows ") { vectorised for (d, 0, " columns ") {"                                          \
    " ScheduleBlock(Y) { v, w = axis.bind(c, d) : " rows ", " columns " finish sum (Y[v, w]) with (T[v, w]) } } } }"
#define FOR(kind, name, count) kind " for (" name ", 0, " count ") { "

#define MAP(where, value)                                                                                              \
    "func @f { dim M tensor A : f32 [M] in 0 tensor Y : f32 [M] out 0 serial for (i, 0, ceildiv(M, 8)) {"              \
    " vectorised for (j, 0, 8) { ScheduleBlock(Y) { v = axis.bind(i*8 + j) : M " where " Y[v] = " value " } } } }"

static const refusal refusals[] = {
    {"the middle of three dims is summed",
     SUMS("4", "16", "8", "v, k, w",
          FOR("vectorised", "v0", "4") FOR("vectorised", "k0", "8") FOR("vectorised", "w0", "16")),
     NULL,
     {"reduce.add.col"}},
    {"the first of three dims is summed",
     SUMS("8", "16", "4", "k, v, w",
          FOR("vectorised", "k0", "4") FOR("vectorised", "v0", "8") FOR("vectorised", "w0", "16")),
     "a reduction over more than one dim of a slice",
     {NULL}},
    {"the first of three dims is a loop",
     SUMS("8", "16", "4", "k, v, w",
          FOR("serial", "k0", "4") FOR("vectorised", "v0", "8") FOR("vectorised", "w0", "16")),
     NULL,
     {"binary.add.f32"}},
    {"two dims are summed at once",
     "func @f { tensor A : f32 [4, 8, 16] in 0 tensor T : f32 [4] temp sram tensor Y : f32 [4] out 0"
     " monoid sum (s : f32) commutative { identity f32(0) update (x : f32) add(s, x) combine (b : f32) add(s, b)"
     " finish s } vectorised for (i, 0, 4) { ScheduleBlock(init) { v = axis.bind(i) : 4 init sum (T[v]) } }"
     " vectorised for (j, 0, 4) { vectorised for (k, 0, 8) { vectorised for (l, 0, 16) { ScheduleBlock(u) {"
     " v, p, q = axis.bind(j, k, l) : 4, reduce 8, reduce 16 update sum (T[v]) with (A[v, p, q]) } } } }"
     " vectorised for (c, 0, 4) { ScheduleBlock(Y) { v = axis.bind(c) : 4 finish sum (Y[v]) with (T[v]) } } }",
     "a reduction over more than one dim of a slice",
     {NULL}},
    {"a loop in what is vectorised",
     SUMS("8", "16", "4", "k, v, w",
          FOR("vectorised", "v0", "8") FOR("serial", "k0", "4") FOR("vectorised", "w0", "16")),
     "a loop is inside a vectorised loop",
     {NULL}},
    {"a bound below", MAP("where i*8 + j < M", "A[v]"), NULL, {"min("}},
    {"a bound at", MAP("where i*8 + j <= M - 1", "A[v]"), NULL, {"min("}},
    {"a bound from below",
     MAP("where i*8 + j < M and j >= 2", "A[v]"),
     "a condition on a vectorised loop is not a bound",
     {NULL}},
};

static bool check(const uir_machine *machine, const refusal *r) {
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_loop_function *f = NULL;
    uir_igraph_list list = {.allocator = allocator};
    uir_text text;
    bool good = false;
    uir_diagnostics_init(&diagnostics, &allocator);
    uir_text_init(&text, &allocator);
    uir_status status = uir_loop_parse(&allocator, r->program, strlen(r->program), r->name, &diagnostics, &f);
    if (status == UIR_STATUS_OK) status = uir_loop_verify(f, &diagnostics);
    if (status != UIR_STATUS_OK) {
        printf("%s: %s\n", r->name, diagnostics.first->message);
    } else {
        status = uir_lower_kernel(f, machine, &allocator, &diagnostics, &list);
        for (uint32_t i = 0; i < list.count; i++) uir_igraph_print(list.igraphs[i], &text);
        const char *said = diagnostics.first ? diagnostics.first->message : "";
        good = r->why ? status == UIR_STATUS_UNSUPPORTED && strstr(said, r->why) : status == UIR_STATUS_OK;
        for (int i = 0; i < 2 && r->has[i]; i++) good = good && text.data && strstr(text.data, r->has[i]);
        if (!good) printf("%s: %s: %s\n%s\n", r->name, uir_status_text(status), said, text.data ? text.data : "");
    }
    uir_text_deinit(&text);
    uir_igraph_list_deinit(&list);
    if (f) uir_loop_function_destroy(f);
    uir_diagnostics_deinit(&diagnostics);
    return good;
}

int main(void) {
    static uir_cpu_device cpu;
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics d;
    uint32_t passed = 0, failed = 0;
    uir_diagnostics_init(&d, &allocator);
    if (uir_cpu_describe("generic", &d, &cpu) != UIR_STATUS_OK) return 2;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        if (check(&cpu.machine, &refusals[i]))
            passed++;
        else
            failed++;
    }
    printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
