/* Steps that must be refused, and why: each is legal but for one check, which nothing else stands in for. Beside some
 * of them what is just legal. */
#include "lower/schedule.h"

#include <stdio.h>
#include <string.h>

typedef struct refusal {
    const char *name, *program, *steps, *why; /* why NULL: they are taken */
} refusal;

static const refusal refusals[] = {
    {"merge: ranges",
     "tensor A : i64 [M] in 0 tensor Y : i64 [M] out 0 tensor Z : i64 [N] out 1 tensor B : i64 [N] in 1"
     " serial for (i, 0, M) { ScheduleBlock(Y) { v = axis.bind(i) : M Y[v] = A[v] } }"
     " serial for (j, 0, N) { ScheduleBlock(Z) { v = axis.bind(j) : N Z[v] = B[v] } }",
     "merge i of Y, j of Z", "are not proved equal"},
    {"merge: what never runs, before what makes its operand",
     "tensor A : i64 [0] in 0 tensor T : i64 [0] temp sram tensor Y : i64 [0] out 0 tensor Z : i64 [0] out 1"
     " serial for (h, 0, 0) { ScheduleBlock(Z) { v = axis.bind(h) : 0 Z[v] = A[v] } }"
     " serial for (i, 0, 0) { ScheduleBlock(T) { v = axis.bind(i) : 0 T[v] = A[v] } }"
     " serial for (j, 0, 0) { ScheduleBlock(Y) { v = axis.bind(j) : 0 Y[v] = T[v] } }",
     "merge h of Z, j of Y", NULL},
    {"fuse: ranges",
     "tensor A : i64 [M, M] in 0 tensor Y : i64 [M, M] out 0"
     " serial for (i, 0, M) { serial for (j, 0, i + 1) {"
     " ScheduleBlock(Y) { v, w = axis.bind(i, j) : M, M Y[v, w] = A[v, w] } } }",
     "fuse i of Y, j of Y: i_j", "depends on"},
    {"shrink: freshness",
     "tensor A : i64 [M] in 0 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) {"
     " ScheduleBlock(T) { v = axis.bind(i) : M where i < 1 T[0] = A[v] }"
     " ScheduleBlock(Y) { v = axis.bind(i) : M Y[v] = T[0] } }",
     "shrink T", "not proved to be written in the same iteration"},
    {"reverse compute at: a reduction",
     "tensor A : i64 [M, N] in 0 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0"
     " serial for (k, 0, N) { serial for (i, 0, M) {"
     " ScheduleBlock(T) { v, r = axis.bind(i, k) : M, N T[v] = A[v, r] } } }"
     " serial for (j, 0, M) { ScheduleBlock(Y) { v = axis.bind(j) : M Y[v] = T[v] } }",
     "reverse compute Y at k of T", "becomes complete under"},
    {"reverse compute at: other variables",
     "tensor A : i64 [M] in 0 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { ScheduleBlock(T) { v = axis.bind(i) : M T[v] = A[v] } }"
     " serial for (j, 0, M) { ScheduleBlock(Y) { v = axis.bind(j) : M Y[v] = T[M - 1 - v] } }",
     "reverse compute Y at i of T", "becomes complete under"},
    {"reverse compute at: what it reads besides",
     "tensor A : i64 [M] in 0 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { ScheduleBlock(T) { v = axis.bind(i) : M T[v] = A[v] } }"
     " serial for (j, 0, M) { ScheduleBlock(Y) { v = axis.bind(j) : M Y[v] = add(T[v], T[M - 1 - v]) } }",
     "reverse compute Y at i of T", "order is"},
    {"compute at: readers elsewhere",
     "tensor A : i64 [M] in 0 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0 tensor Z : i64 [M] out 1"
     " serial for (i, 0, M) { ScheduleBlock(T) { v = axis.bind(i) : M T[v] = A[v] } }"
     " serial for (j, 0, M) { ScheduleBlock(Y) { v = axis.bind(j) : M Y[v] = T[v] } }"
     " serial for (k, 0, M) { ScheduleBlock(Z) { v = axis.bind(k) : M Z[v] = T[v] } }",
     "compute T at j of Y", "outside"},
    {"compute at: what is not written there",
     "tensor A : i64 [8] in 0 tensor T : i64 [8] temp sram tensor Y : i64 [M, 8] out 0"
     " serial for (i, 0, 8) { ScheduleBlock(T) { v = axis.bind(i) : 8 T[v] = A[v] } }"
     " serial for (m, 0, M) { serial for (j, 0, 4) {"
     " ScheduleBlock(Y) { v, w = axis.bind(m, j) : M, 4 where j < 2 Y[v, w] = T[3*w - w*w] } } }",
     "compute T at m of Y", "not proved to be all that"},
    {"compute at: read backwards",
     "tensor A : i64 [8] in 0 tensor T : i64 [8] temp sram tensor Y : i64 [M, 4] out 0"
     " serial for (i, 0, 8) { ScheduleBlock(T) { v = axis.bind(i) : 8 T[v] = A[v] } }"
     " serial for (m, 0, M) { serial for (j, 0, 4) {"
     " ScheduleBlock(Y) { v, w = axis.bind(m, j) : M, 4 Y[v, w] = T[5 - w] } } }",
     "compute T at m of Y", NULL},
    {"reverse compute at: a part of what is read",
     "tensor A : i64 [8] in 0 tensor T : i64 [8] temp sram tensor Y : i64 [8] out 0"
     " serial for (h, 0, 8) { ScheduleBlock(U) { v = axis.bind(h) : 8 T[v] = A[v] } }"
     " serial for (i, 0, 4) { ScheduleBlock(T) { v = axis.bind(i) : 4 T[v] = A[7 - v] } }"
     " serial for (j, 0, 8) { ScheduleBlock(Y) { v = axis.bind(j) : 8 Y[v] = T[v] } }",
     "reverse compute Y at i of T", "becomes complete under"},
    {"shrink: written before in the block",
     "tensor A : i64 [M] in 0 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { ScheduleBlock(Y) { v = axis.bind(i) : M T[v] = A[v] Y[v] = T[v] } }",
     "shrink T", NULL},
    {"shrink: written after in the block",
     "tensor A : i64 [M] in 0 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { ScheduleBlock(T) { v = axis.bind(i) : M where i < 1 T[0] = A[v] }"
     " ScheduleBlock(Y) { v = axis.bind(i) : M Y[v] = T[v] T[v] = A[v] } }",
     "shrink T", "not proved to be written in the same iteration"},
    {"shrink: written in a loop that may be empty",
     "tensor A : i64 [M] in 0 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { serial for (k, 0, N - 1) {"
     " ScheduleBlock(T) { v, w = axis.bind(i, k) : M, N T[v] = A[v] } }"
     " ScheduleBlock(Y) { v = axis.bind(i) : M Y[v] = T[v] } }",
     "shrink T", "not proved to be written in the same iteration"},
    {"shrink: written in a loop that is not empty",
     "tensor A : i64 [M] in 0 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { serial for (k, 0, N) {"
     " ScheduleBlock(T) { v, w = axis.bind(i, k) : M, N T[v] = A[v] } }"
     " ScheduleBlock(Y) { v = axis.bind(i) : M Y[v] = T[v] } }",
     "shrink T", NULL},
    {"mark: kept from another iteration",
     "tensor A : i64 [M] in 0 tensor T : i64 [1] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) {"
     " ScheduleBlock(T) { v = axis.bind(i) : M where i < 1 T[0] = A[v] }"
     " ScheduleBlock(Y) { v = axis.bind(i) : M Y[v] = T[0] } }",
     "mark i of T as parallel", "share elements of T"},
    {"mark: written anew in each iteration",
     "tensor A : i64 [M] in 0 tensor T : i64 [1] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) {"
     " ScheduleBlock(T) { v = axis.bind(i) : M T[0] = A[v] }"
     " ScheduleBlock(Y) { v = axis.bind(i) : M Y[v] = T[0] } }",
     "mark i of T as parallel", NULL},
    {"inline after shrink: shared elements",
     "tensor A : i64 [M] in 0 tensor T : i64 [M] temp sram tensor U : i64 [M] temp sram tensor Y : i64 [M] out 0"
     " serial for (h, 0, M) { ScheduleBlock(U) { v = axis.bind(h) : M U[v] = A[v] } }"
     " serial for (i, 0, M) {"
     " ScheduleBlock(T) { v = axis.bind(i) : M T[v] = U[v] }"
     " ScheduleBlock(Y) { v = axis.bind(i) : M Y[v] = T[v] } }",
     "shrink T\nreverse inline T", "whole iteration space"},
};

static bool check(const refusal *r) {
    char source[2000];
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics d;
    uir_loop_function *f = NULL;
    uir_schedule *s = NULL;
    uir_diagnostics_init(&d, &allocator);
    snprintf(source, sizeof source, "func @f { dim M in 1..64 dim N in 1..64 %s }", r->program);
    uir_status status = uir_loop_parse(&allocator, source, strlen(source), r->name, &d, &f);
    if (status == UIR_STATUS_OK) status = uir_schedule_create(f, NULL, &d, &s);
    bool made = status == UIR_STATUS_OK;
    if (made) status = uir_schedule_replay(s, r->steps, strlen(r->steps));
    const char *why = made ? uir_schedule_why(s) : d.first ? d.first->message : "?";
    if (made && status == UIR_STATUS_OK) status = uir_loop_verify(f, &d);
    bool good = made && (r->why ? status == UIR_STATUS_UNSUPPORTED && strstr(why, r->why) : status == UIR_STATUS_OK);
    if (!good)
        printf("%s: %s instead of '%s'\n", r->name, made && status == UIR_STATUS_OK ? "taken" : why,
               r->why ? r->why : "taken");
    uir_schedule_destroy(s);
    uir_loop_function_destroy(f);
    uir_diagnostics_deinit(&d);
    return good;
}

int main(void) {
    uint32_t failed = 0, count = sizeof refusals / sizeof *refusals;
    for (uint32_t i = 0; i < count; i++) failed += !check(&refusals[i]);
    printf("%u passed, %u failed, 0 skipped\n", count - failed, failed);
    return failed != 0;
}
