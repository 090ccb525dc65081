/* Steps that must be refused, and why: each is legal but for one check, which nothing else stands in for. Beside some
 * of them what is just legal, and what must stand in which order afterwards. */
#include "lower/schedule/schedule.h"

#include <stdio.h>
#include <string.h>

typedef struct refusal {
    const char *name, *program, *steps, *why; /* why NULL: they are taken */
} refusal;

#define SUM                                                                                                            \
    " monoid sum (a : i64) commutative { identity i64(0) update (x : i64) add(a, x) combine (b : i64) add(a, b)"       \
    " finish a }"
#define MAPS                                                                                                           \
    " monoid maps (q : i64, p : i64) { identity i64(0), i64(1) update (x : i64) add(mul(q, i64(3)), x), mul(p, "       \
    "i64(3))"                                                                                                          \
    " combine (q2 : i64, p2 : i64) add(mul(q, p2), q2), mul(p, p2) finish q }"

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
    {"reverse compute at: after what it overwrites in its iteration or a later one",
     "tensor A : i64 [M] in 0 tensor B : i64 [M] in 1 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0"
     " tensor Z : i64 [M] out 1"
     " serial for (h, 0, M) { ScheduleBlock(Y) { v = axis.bind(h) : M Y[v] = B[v] } }"
     " serial for (i, 0, M) {"
     " ScheduleBlock(T) { v = axis.bind(i) : M T[v] = A[v] }"
     " ScheduleBlock(Z) { v = axis.bind(i) : M Z[v] = Y[2*v] fill 0 } }"
     " serial for (j, 0, M) { ScheduleBlock(X) { v = axis.bind(j) : M Y[v] = T[v] } }",
     "reverse compute X at i of T", "their order is"},
    {"mark: a state that goes on from another iteration",
     SUM " tensor A : i64 [M, N] in 0 tensor T : i64 [1] temp sram tensor Y : i64 [M] out 0"
         " serial for (i, 0, M) {"
         " ScheduleBlock(I) { v = axis.bind(i) : M where i < 1 init sum (T[0]) }"
         " serial for (k, 0, N) {"
         " ScheduleBlock(T) { v, r = axis.bind(i, k) : M, reduce N update sum (T[0]) with (A[v, r]) } }"
         " ScheduleBlock(Y) { v = axis.bind(i) : M Y[v] = T[0] } }",
     "mark i of Y as parallel", "share elements of T"},
    {"mark: the other's inner loop ends by its own outer one",
     "tensor A : i64 [M] in 0 tensor B : i64 [M] in 1 tensor T : i64 [M] temp memory tensor Z : i64 [M, M] out 0"
     " serial for (h, 0, M) { ScheduleBlock(T) { v = axis.bind(h) : M T[v] = B[v] } }"
     " serial for (i, 0, M) { serial for (k, 0, M - i) {"
     " ScheduleBlock(Z) { v, w = axis.bind(i, k) : M, M Z[v, w] = T[M - w] fill 0 } }"
     " ScheduleBlock(V) { v = axis.bind(i) : M T[v] = A[v] } }",
     "mark i of Z as parallel", "share elements of T"},
    {"merge: quotients and remainders of one divisor",
     "tensor A : i64 [M] in 0 tensor T : i64 [M, 2] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { ScheduleBlock(T) { v = axis.bind(i) : M T[floordiv(v, 2), mod(v, 2)] = A[v] } }"
     " serial for (j, 0, M) { ScheduleBlock(Y) { v = axis.bind(j) : M Y[v] = T[floordiv(v, 2), mod(v, 2)] } }",
     "merge i of T, j of Y", NULL},
    {"merge: quotients and remainders of two divisors",
     "tensor A : i64 [M] in 0 tensor T : i64 [M, 3] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { ScheduleBlock(T) { v = axis.bind(i) : M T[floordiv(v, 2), mod(v, 2)] = A[v] } }"
     " serial for (j, 0, M) { ScheduleBlock(Y) { v = axis.bind(j) : M Y[v] = T[floordiv(v, 3), mod(v, 3)] } }",
     "merge i of T, j of Y", "their order is"},
    {"merge: read at the quotient of one number, the remainder of another",
     "tensor A : i64 [M] in 0 tensor T : i64 [M, 2] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { ScheduleBlock(T) { v = axis.bind(i) : M T[floordiv(v, 2), mod(v, 2)] = A[v] } }"
     " serial for (j, 0, M) { ScheduleBlock(Y) { v = axis.bind(j) : M Y[v] = T[floordiv(v, 2), mod(v + 1, 2)] } }",
     "merge i of T, j of Y", "their order is"},
    {"merge: written at the quotient of one number, the remainder of another",
     "tensor A : i64 [M] in 0 tensor T : i64 [M, 2] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { ScheduleBlock(T) { v = axis.bind(i) : M T[floordiv(v, 2), mod(v + 1, 2)] = A[v] } }"
     " serial for (j, 0, M) { ScheduleBlock(Y) { v = axis.bind(j) : M Y[v] = T[floordiv(v, 2), mod(v, 2)] } }",
     "merge i of T, j of Y", "their order is"},
    {"merge: ranges that are equal under a condition",
     "tensor A : i64 [M] in 0 tensor B : i64 [N] in 1 tensor Y : i64 [M] out 0 tensor Z : i64 [N] out 1"
     " if M == N {"
     " serial for (i, 0, M) { ScheduleBlock(Y) { v = axis.bind(i) : M Y[v] = A[v] } }"
     " serial for (j, 0, N) { ScheduleBlock(Z) { v = axis.bind(j) : N Z[v] = B[v] } } }",
     "merge i of Y, j of Z", NULL},
    {"merge: ranges that are required to be equal",
     "require M == N tensor A : i64 [M] in 0 tensor B : i64 [N] in 1 tensor Y : i64 [M] out 0 tensor Z : i64 [N] out 1"
     " serial for (i, 0, M) { ScheduleBlock(Y) { v = axis.bind(i) : M Y[v] = A[v] } }"
     " serial for (j, 0, N) { ScheduleBlock(Z) { v = axis.bind(j) : N Z[v] = B[v] } }",
     "merge i of Y, j of Z", NULL},
    {"merge: past a loop that begins behind what is read",
     "tensor A : i64 [2*N] in 0 tensor T : i64 [2*N] temp sram tensor Y : i64 [N] out 0"
     " serial for (h, 0, N) { ScheduleBlock(T) { v = axis.bind(h) : N T[v] = A[v] } }"
     " serial for (i, N, N) { ScheduleBlock(U) { v = axis.bind(i) : 2*N T[v] = A[v] } }"
     " serial for (j, 0, N) { ScheduleBlock(Y) { v = axis.bind(j) : N Y[v] = T[v] } }",
     "merge h of T, j of Y", NULL},
    {"cache read: what is computed in part",
     "tensor A : i64 [M, 8] in 0 tensor T : i64 [M, 8] temp sram tensor Y : i64 [M, 8] out 0 serial for (i, 0, M) { "
     "serial for (k, 0, 7) { ScheduleBlock(T) { v, w = axis.bind(i, k) : M, 8 T[v, w] = A[v, w] } } } serial for (x, "
     "0, M) { serial for (y, 0, 8) { ScheduleBlock(U) { v, w = axis.bind(x, y) : M, 8 Y[v, w] = T[v, w - 1] fill 3 } "
     "} }",
     "cache read of T for U in reg: T_reg", "not every element of T"},
    {"merge: past a loop that ends before it begins",
     "tensor A : i64 [2*N] in 0 tensor T : i64 [2*N] temp sram tensor Y : i64 [N] out 0 tensor Z "
     ": i64 [2*N] out 1 serial for (h, 0, 2*N) { ScheduleBlock(T) { v = axis.bind(h) : 2*N T[v] "
     "= A[v] } } serial for (g, N, N) { ScheduleBlock(Z) { v = axis.bind(g) : 2*N Z[v] = A[v] } "
     "} serial for (i, 0, N) { ScheduleBlock(Y) { v = axis.bind(i) : N Y[v] = T[v] } } serial "
     "for (j, N, N) { ScheduleBlock(U) { v = axis.bind(j) : 2*N T[v] = A[v] } }",
     "merge g of Z, j of U", NULL},
    {"merge: an order that was not known",
     "tensor A : i64 [M] in 0 tensor S : i64 [M] temp sram tensor Y : i64 [M] out 0 serial for "
     "(o, 0, N) { serial for (h, 0, M) { ScheduleBlock(S) { v = axis.bind(h) : M S[M - 1 - v] = "
     "A[v] } } serial for (i, 0, M) { ScheduleBlock(Y) { v = axis.bind(i) : M Y[v] = S[v] } } }",
     "merge h of S, i of Y", "not proved to stay"},
    {"merge: what is moved together stays in order",
     "tensor A : i64 [M] in 0 tensor B : i64 [M] in 1 tensor G : i64 [M] in 2 tensor S : i64 [M] "
     "temp sram tensor Y : i64 [M] out 0 tensor Z : i64 [M] out 1 serial for (h, 0, M) { "
     "ScheduleBlock(Z) { v = axis.bind(h) : M Z[v] = A[v] } } serial for (j, 0, M) { "
     "ScheduleBlock(S) { v = axis.bind(j) : M g = axis.read(G[v]) : M clamp S[g] = A[v] } "
     "ScheduleBlock(Y) { v = axis.bind(j) : M Y[v] = S[v] } }",
     "merge h of Z, j of Y", NULL},
    {"mark: places that data move",
     "tensor A : i64 [M] in 0 tensor G : i64 [M] in 1 tensor Y : i64 [2*M] out 0 serial for (i, "
     "0, M) { ScheduleBlock(Y) { v = axis.bind(i) : M g = axis.read(G[v]) : M clamp Y[g + v] = "
     "A[v] } }",
     "mark i of Y as parallel", "share elements of Y"},
    {"pad: what is read outside",
     "tensor A : i64 [M] in 0 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { ScheduleBlock(T) { v = axis.bind(i) : M T[v] = A[v] } }"
     " serial for (j, 0, M) { ScheduleBlock(Y) { v = axis.bind(j) : M Y[v] = T[v + 1] fill 0 } }",
     "pad dim 0 of T to M + 1", "is read out of bounds"},
    {"pad: what is read inside",
     "tensor A : i64 [M] in 0 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { ScheduleBlock(T) { v = axis.bind(i) : M T[v] = A[v] } }"
     " serial for (j, 0, M) { ScheduleBlock(Y) { v = axis.bind(j) : M Y[v] = T[v] } }",
     "pad dim 0 of T to M + 1", NULL},
    {"pad: shorter",
     "tensor A : i64 [M] in 0 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { ScheduleBlock(T) { v = axis.bind(i) : M T[v] = A[v] } }"
     " serial for (j, 0, M) { ScheduleBlock(Y) { v = axis.bind(j) : M Y[v] = T[v] } }",
     "pad dim 0 of T to 7", "is not proved to hold"},
    {"pad: of a layout",
     "tensor A : i64 [M] in 0 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { ScheduleBlock(T) { v = axis.bind(i) : M T[v] = A[v] } }"
     " serial for (j, 0, M) { ScheduleBlock(Y) { v = axis.bind(j) : M Y[v] = T[v] } }",
     "set layout of T to :(2)\npad dim 0 of T to M + 1", "already has a layout"},
    {"shrink: of a layout",
     "tensor A : i64 [M] in 0 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { ScheduleBlock(T) { v = axis.bind(i) : M T[v] = A[v] }"
     " ScheduleBlock(Y) { v = axis.bind(i) : M Y[v] = T[v] } }",
     "set layout of T to :(2)\nshrink T", "already has a layout"},
    {"arrange: of a layout",
     "tensor A : i64 [M] in 0 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { ScheduleBlock(T) { v = axis.bind(i) : M T[v] = A[v] } }"
     " serial for (j, 0, M) { ScheduleBlock(Y) { v = axis.bind(j) : M Y[v] = T[v] } }",
     "set layout of T to :(2)\narrange T by 0", "already has a layout"},
    {"arrange: a dim of several elements",
     "tensor A : i64 [M] in 0 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { ScheduleBlock(T) { v = axis.bind(i) : M T[v] = A[v] } }"
     " serial for (j, 0, M) { ScheduleBlock(Y) { v = axis.bind(j) : M Y[v] = T[v] } }",
     "arrange T by one", "has more than one element"},
    {"arrange: nothing left",
     "tensor A : i64 [1] in 0 tensor T : i64 [1] temp sram tensor Y : i64 [1] out 0"
     " serial for (i, 0, 1) { ScheduleBlock(T) { v = axis.bind(i) : 1 T[v] = A[v] } }"
     " serial for (j, 0, 1) { ScheduleBlock(Y) { v = axis.bind(j) : 1 Y[v] = T[v] } }",
     "arrange T by nothing", NULL},
    {"layout: elements in one place",
     "tensor A : i64 [M] in 0 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { ScheduleBlock(T) { v = axis.bind(i) : M T[v] = A[v] } }"
     " serial for (j, 0, M) { ScheduleBlock(Y) { v = axis.bind(j) : M Y[v] = T[v] } }",
     "set layout of T to :(0)", "cannot be proved to have different addresses"},
    {"layout: of a result",
     "tensor A : i64 [M] in 0 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { ScheduleBlock(T) { v = axis.bind(i) : M T[v] = A[v] } }"
     " serial for (j, 0, M) { ScheduleBlock(Y) { v = axis.bind(j) : M Y[v] = T[v] } }",
     "set layout of Y to :(2)", "is the caller's"},
    {"extend: shorter",
     "tensor A : i64 [M] in 0 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { ScheduleBlock(T) { v = axis.bind(i) : M T[v] = A[v] } }"
     " serial for (j, 0, M) { ScheduleBlock(Y) { v = axis.bind(j) : M Y[v] = T[v] } }",
     "extend i of T to 7: i_e", "is not proved to be at least as long"},
    {"extend: both blocks of the loop",
     "tensor A : i64 [M] in 0 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { ScheduleBlock(T) { v = axis.bind(i) : M T[v] = A[v] }"
     " ScheduleBlock(Y) { v = axis.bind(i) : M Y[v] = T[v] } }",
     "extend i of T to M + 3: i_e\nsplit i_e of Y by 4: i_e_o, i_e_i", NULL},
    {"exchange: an order that matters",
     "tensor A : i64 [M] in 0 tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { ScheduleBlock(Y) { v = axis.bind(i) : M Y[v] = sub(A[v], i64(1)) } }",
     "exchange operands of Y", "the operands of Y cannot be exchanged"},
    {"leave out: where it lies is read from data",
     SUM " tensor C : i64 [M] in 3 tensor G : i64 [M] in 2 tensor Y : i64 [M] out 0 serial for (h, 0, M) { "
         "ScheduleBlock(Z) { v = axis.bind(h) : M init sum (Y[v]) } } serial for (i, 0, M) { serial for (k, 0, N) { "
         "ScheduleBlock(Y) { v, r = axis.bind(i, k) : M, reduce N g = axis.read(G[v]) : M clamp update sum (Y[v]) with "
         "(mul(C[g - 1] fill 0, C[v])) } } }",
     "leave out operand 0 of Y outside along 0", "is read from data"},
    {"leave out: no sum of products",
     "tensor A : i64 [M] in 0 tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { ScheduleBlock(Y) { v = axis.bind(i) : M Y[v] = mul(A[v], A[v]) } }",
     "leave out operand 0 of Y outside along 0", "Y is not a sum of products"},
    {"classify: not first",
     "tensor A : i64 [M] in 0 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { ScheduleBlock(T) { v = axis.bind(i) : M T[v] = A[v] } }"
     " serial for (j, 0, M) { ScheduleBlock(Y) { v = axis.bind(j) : M Y[v] = T[v] } }",
     "split i of T by 4: i_o, i_i\nclassify", "must be the first step"},
    {"use: whatever a block may be used as",
     "tensor A : i64 [M] in 0 tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { ScheduleBlock(Y) { v = axis.bind(i) : M Y[v] = A[v] } }",
     "use Y as contraction\nuse Y as convolution\nuse Y as mma", NULL},
    {"map: no contraction",
     "tensor A : i64 [M] in 0 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0"
     " serial for (i, 0, M) { ScheduleBlock(T) { v = axis.bind(i) : M T[v] = A[v] } }"
     " serial for (j, 0, M) { ScheduleBlock(Y) { v = axis.bind(j) : M Y[v] = T[v] } }",
     "map T to m", "is not a contraction"},
    {"reorder: each iteration has a place for itself",
     "tensor A : i64 [M, N] in 0 tensor T : i64 [1] temp sram tensor Y : i64 [M, N] out 0"
     " serial for (i, 0, M) { serial for (j, 0, N) {"
     " ScheduleBlock(T) { v, w = axis.bind(i, j) : M, N T[0] = A[v, w] }"
     " ScheduleBlock(Y) { v, w = axis.bind(i, j) : M, N Y[v, w] = T[0] } } }",
     "reorder j of T, i of T", NULL},
    {"reorder: the place goes on to the next iteration",
     "tensor A : i64 [M, N] in 0 tensor T : i64 [1] temp sram tensor Y : i64 [M, N] out 0"
     " serial for (i, 0, M) { serial for (j, 0, N) {"
     " ScheduleBlock(T) { v, w = axis.bind(i, j) : M, N where j < 1 T[0] = A[v, w] }"
     " ScheduleBlock(Y) { v, w = axis.bind(i, j) : M, N Y[v, w] = T[0] } } }",
     "reorder j of T, i of T", "pass elements of T"},
    {"cache operand: what it depends on",
     SUM " tensor A : i64 [M, M] in 0 tensor B : i64 [M, N] in 1 tensor T : i64 [M, N] temp sram tensor Y : i64 [M, N] "
         "out 0"
         " serial for (i, 0, M) { serial for (j, 0, N) { ScheduleBlock(T_init) { v, w = axis.bind(i, j) : M, N"
         " init sum (T[v, w]) } } }"
         " serial for (h, 0, M) { serial for (g, 0, N) { serial for (k, 0, M) {"
         " ScheduleBlock(T) { v, w, r = axis.bind(h, g, k) : M, N, reduce M update sum (T[v, w]) with (mul(A[v, r], "
         "B[r, w]))"
         " } } } }"
         " serial for (p, 0, M) { serial for (q, 0, N) { ScheduleBlock(Y) { v, w = axis.bind(p, q) : M, N"
         " finish sum (Y[v, w]) with (T[v, w]) } } }",
     "cache operand 0 of T over v in sram as ahead", "depends on r"},
    {"cache operand: all that it depends on",
     SUM " tensor A : i64 [M, M] in 0 tensor B : i64 [M, N] in 1 tensor T : i64 [M, N] temp sram tensor Y : i64 [M, N] "
         "out 0"
         " serial for (i, 0, M) { serial for (j, 0, N) { ScheduleBlock(T_init) { v, w = axis.bind(i, j) : M, N"
         " init sum (T[v, w]) } } }"
         " serial for (h, 0, M) { serial for (g, 0, N) { serial for (k, 0, M) {"
         " ScheduleBlock(T) { v, w, r = axis.bind(h, g, k) : M, N, reduce M update sum (T[v, w]) with (mul(A[v, r], "
         "B[r, w]))"
         " } } } }"
         " serial for (p, 0, M) { serial for (q, 0, N) { ScheduleBlock(Y) { v, w = axis.bind(p, q) : M, N"
         " finish sum (Y[v, w]) with (T[v, w]) } } }",
     "cache operand 0 of T over r, v in sram as ahead", NULL},
#include "tests/lower/schedule/inline_refusals.def"
#include "tests/lower/schedule/rfactor_refusals.def"
#include "tests/lower/operand_refusals.def"
};

/* Steps that are taken, and parts of the text of what they leave, in this order. */
typedef struct result {
    const char *name, *program, *steps, *then[3];
} result;

static const result results[] = {
    {"inline: an index read in another mode",
     "tensor A : i64 [M] in 0 tensor B : i64 [M] in 1 tensor G : i64 [M] in 2 tensor H : i64 [M] "
     "in 3 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0 serial for (i, 0, M) { "
     "ScheduleBlock(T) { v = axis.bind(i) : M h = axis.read(G[v]) : M wrap T[v] = B[h] } } "
     "serial for (j, 0, M) { ScheduleBlock(Y) { v = axis.bind(j) : M g = axis.read(G[v]) : M "
     "clamp Y[v] = add(T[v], B[g]) } }",
     "inline T",
     {"clamp", "wrap"}},
    {"inline: an index read from another tensor",
     "tensor A : i64 [M] in 0 tensor B : i64 [M] in 1 tensor G : i64 [M] in 2 tensor H : i64 [M] "
     "in 3 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0 serial for (i, 0, M) { "
     "ScheduleBlock(T) { v = axis.bind(i) : M h = axis.read(H[v]) : M clamp T[v] = B[h] } } "
     "serial for (j, 0, M) { ScheduleBlock(Y) { v = axis.bind(j) : M g = axis.read(G[v]) : M "
     "clamp Y[v] = add(T[v], B[g]) } }",
     "inline T",
     {"read(G", "read(H"}},
    {"inline: an index read at another place",
     "tensor A : i64 [M] in 0 tensor B : i64 [M] in 1 tensor G : i64 [M] in 2 tensor H : i64 [M] "
     "in 3 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0 serial for (i, 0, M) { "
     "ScheduleBlock(T) { v = axis.bind(i) : M h = axis.read(G[M - 1 - v]) : M clamp T[v] = B[h] "
     "} } serial for (j, 0, M) { ScheduleBlock(Y) { v = axis.bind(j) : M g = axis.read(G[v]) : M "
     "clamp Y[v] = add(T[v], B[g]) } }",
     "inline T",
     {"read(G[v])", "read(G["}},
    {"inline: an index of another range",
     "tensor G : i64 [M] in 0 tensor B : i64 [8] in 1 tensor C : i64 [4] in 2 tensor T : i64 [M] "
     "temp sram tensor Y : i64 [M] out 0 serial for (i, 0, M) { ScheduleBlock(T) { v = "
     "axis.bind(i) : M h = axis.read(G[v]) : 4 clamp T[v] = C[h] } } serial for (j, 0, M) { "
     "ScheduleBlock(Y) { v = axis.bind(j) : M g = axis.read(G[v]) : 8 clamp Y[v] = add(T[v], "
     "B[g]) } }",
     "inline T",
     {": 8 clamp", ": 4 clamp"}},
    {"inline: an index of a name that is taken",
     "tensor A : i64 [M] in 0 tensor B : i64 [M] in 1 tensor G : i64 [M] in 2 tensor H : i64 [M] "
     "in 3 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0 serial for (i, 0, M) { "
     "ScheduleBlock(T) { v = axis.bind(i) : M g = axis.read(H[v]) : M clamp T[v] = B[g] } } "
     "serial for (j, 0, M) { ScheduleBlock(Y) { v = axis.bind(j) : M g = axis.read(G[v]) : M "
     "clamp Y[v] = add(T[v], B[g]) } }",
     "inline T",
     {"g = axis.read(G", "g_2 = axis.read(H"}},
    {"inline: a fill of its own",
     "tensor A : i64 [M] in 0 tensor B : i64 [M] in 1 tensor G : i64 [M] in 2 tensor T : i64 [M] "
     "temp sram tensor Y : i64 [M] out 0 serial for (i, 0, M) { ScheduleBlock(T) { v = "
     "axis.bind(i) : M T[v] = A[v + 1] fill 3 } } serial for (j, 0, M) { ScheduleBlock(Y) { v = "
     "axis.bind(j) : M Y[v] = T[v + 1] fill 5 } }",
     "inline T",
     {"Y[v] =", "fill 3"}},
    {"rfactor: without a device the states of what goes out are in memory",
     SUM " tensor C : i64 [M, N] in 0 tensor Y : i64 [M] out 0"
         " serial for (h, 0, M) { ScheduleBlock(Z) { v = axis.bind(h) : M init sum (Y[v]) } }"
         " serial for (i, 0, M) { serial for (k, 0, N) {"
         " ScheduleBlock(Y) { v, r = axis.bind(i, k) : M, reduce N update sum (Y[v]) with (C[v, r]) } } }",
     "rfactor Y at k of Y: P",
     {"Y_part : i64 [M, N] temp memory"}},
    {"compute at: what is reduced stays in order",
     MAPS " tensor A : i64 [M, N, N] in 0 tensor Q : i64 [M] temp sram tensor P : i64 [M] temp sram"
          " tensor Y : i64 [M] out 0"
          " serial for (h, 0, M) { ScheduleBlock(I) { v = axis.bind(h) : M init maps (Q[v], P[v]) } }"
          " serial for (i, 0, M) { serial for (k, 0, N) { serial for (l, 0, N) {"
          " ScheduleBlock(Q) { v, r, s = axis.bind(i, k, l) : M, reduce N, reduce N"
          " update maps (Q[v], P[v]) with (A[v, r, s]) } } } }"
          " serial for (j, 0, M) { ScheduleBlock(Y) { v = axis.bind(j) : M Y[v] = Q[v] } }",
     "compute Q at j of Y",
     {"for (j", "for (Q_r", "for (Q_s"}},
    {"add unit loop: what stands beside stays there",
     "tensor A : i64 [M] in 0 tensor Y : i64 [M] out 0 tensor Z : i64 [M] out 1 serial for (i, 0, M) { "
     "ScheduleBlock(Y) { v = axis.bind(i) : M Y[v] = A[v] } } serial for (j, 0, M) { ScheduleBlock(Z) { v = "
     "axis.bind(j) : M Z[v] = A[v] } }",
     "add unit loop around i of Y: i_u",
     {"for (i_u, 0, 1)", "for (i, 0, M)", "\n  serial for (j"}},
    {"add unit loop: one iteration of several, marked parallel",
     "tensor A : i64 [M] in 0 tensor Y : i64 [M] out 0 tensor Z : i64 [M] out 1 serial for (i, 0, M) { "
     "ScheduleBlock(Y) { v = axis.bind(i) : M Y[v] = A[v] } } serial for (j, 0, M) { ScheduleBlock(Z) { v = "
     "axis.bind(j) : M Z[v] = A[v] } }",
     "add unit loop around i of Y: i_u extend i_u of Y to 3: i_u_e mark i_u_e of Y as parallel",
     {"for (i_u_e, 0, 3)", "where i_u_e < 1"}},
    {"extend: all that stands in the loop",
     "tensor A : i64 [M, N] in 0 tensor Y : i64 [M] out 0 tensor Z : i64 [M, N] out 1 serial for (i, 0, M) { "
     "ScheduleBlock(Y) { v = axis.bind(i) : M Y[v] = A[v, 0] } serial for (j, 0, N) { ScheduleBlock(Z) { v, w = "
     "axis.bind(i, j) : M, N Z[v, w] = A[v, w] } } }",
     "extend i of Y to M + 1: i_e",
     {"axis.bind(i_e)", "axis.bind(i_e, j)"}},
    {"move: past what it has nothing to do with",
     "tensor A : i64 [M] in 0 tensor Y : i64 [M] out 0 tensor Z : i64 [M] out 1 serial for (i, 0, M) { "
     "ScheduleBlock(Y) { v = axis.bind(i) : M Y[v] = A[v] } } serial for (j, 0, M) { ScheduleBlock(Z) { v = "
     "axis.bind(j) : M Z[v] = A[v] } }",
     "move Z before Y",
     {"ScheduleBlock(Z)", "ScheduleBlock(Y)"}},
    {"take operand: from where it is kept",
     "tensor A : i64 [M, N] in 0 tensor B : i64 [N] in 1 tensor C : i64 [M, N] in 2 tensor R : i64 [M, N] temp sram  "
     "tensor Z : i64 [M, N] out 0 serial for (i, 0, M) { serial for (j, 0, N) { ScheduleBlock(R) { v, w = axis.bind(i, "
     "j) : M, N R[v, w] = A[v, w] } } serial for (l, 0, N) { ScheduleBlock(Z) { v, w = axis.bind(i, l) : M, N Z[v, w] "
     "= mul(A[v, w], B[w]) } } }",
     "take operand 0 of Z over v, w from R",
     {"ScheduleBlock(Z)", "mul(R[v, w], B[w])"}},
    {"compute at: only where all that read it are",
     "tensor A : i64 [M] in 0 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0 serial for (i, 0, M) { "
     "ScheduleBlock(T) { v = axis.bind(i) : M T[v] = A[v] } } serial for (j, 0, M) { ScheduleBlock(Y) { v = "
     "axis.bind(j) : M Y[v] = T[v] } }",
     "add unit loop around j of Y: j_u extend j_u of Y to 3: j_u_e compute T at j_u_e of Y",
     {"ScheduleBlock(T)", "where j_u_e < 1", "ScheduleBlock(Y)"}},
    {"compute at: where one that reads it is",
     "tensor A : i64 [M] in 0 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0 tensor Z : i64 [3, M] out 1 serial "
     "for (i, 0, M) { ScheduleBlock(T) { v = axis.bind(i) : M T[v] = A[v] } } serial for (h, 0, 3) { serial for (j, 0, "
     "M) { ScheduleBlock(Y) { v = axis.bind(j) : M where h < 1 Y[v] = T[v] } } serial for (k, 0, M) { ScheduleBlock(Z) "
     "{ u, v = axis.bind(h, k) : 3, M Z[u, v] = T[v] } } }",
     "compute T at h of Y",
     {"ScheduleBlock(T)", " : M\n        T[v] =", "where h < 1"}},
    {"reverse compute at: only where the writer is",
     "tensor A : i64 [M] in 0 tensor T : i64 [M] temp sram tensor Y : i64 [M] out 0 serial for (i, 0, M) { "
     "ScheduleBlock(T) { v = axis.bind(i) : M T[v] = A[v] } } serial for (j, 0, M) { ScheduleBlock(Y) { v = "
     "axis.bind(j) : M Y[v] = T[v] } }",
     "add unit loop around i of T: i_u extend i_u of T to 3: i_u_e reverse compute Y at i_u_e of T",
     {"ScheduleBlock(T)", "ScheduleBlock(Y)", "where i_u_e < 1"}},
    {"cache operand: guarded, only where the block is",
     "tensor A : i64 [M] in 0 tensor B : i64 [M] in 1 tensor Y : i64 [M] out 0 serial for (j, 0, M) { ScheduleBlock(Y) "
     "{ v = axis.bind(j) : M Y[v] = mul(A[v], B[v]) } }",
     "add unit loop around j of Y: j_u extend j_u of Y to 3: j_u_e cache operand 0 of Y guarded over v at j_u_e of Y "
     "in sram as K",
     {"ScheduleBlock(K)", "where j_u_e < 1", "ScheduleBlock(Y)"}},
    {"cache operand: in every iteration",
     "tensor A : i64 [M] in 0 tensor B : i64 [M] in 1 tensor Y : i64 [M] out 0 serial for (j, 0, M) { ScheduleBlock(Y) "
     "{ v = axis.bind(j) : M Y[v] = mul(A[v], B[v]) } }",
     "add unit loop around j of Y: j_u extend j_u of Y to 3: j_u_e cache operand 0 of Y over v at j_u_e of Y in sram "
     "as K",
     {"ScheduleBlock(K)", " : M\n        K[v] =", "where j_u_e < 1"}},
};

/* Do the texts stand in the function's, each after the one before? */
static bool holds_in_order(const uir_loop_function *f, const char *const *texts) {
    uir_text text;
    uir_text_init(&text, &f->allocator);
    uir_loop_print(f, &text);
    const char *at = text.data;
    for (uint32_t i = 0; at && i < 3 && texts[i]; i++)
        if ((at = strstr(at, texts[i]))) at += strlen(texts[i]);
    if (!at) printf("%s", text.data ? text.data : "");
    uir_text_deinit(&text);
    return at != NULL;
}

static bool check(const char *name, const char *program, const char *steps, const char *wanted,
                  const char *const *then) {
    char source[2000];
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics d;
    uir_loop_function *f = NULL;
    uir_schedule *s = NULL;
    uir_diagnostics_init(&d, &allocator);
    snprintf(source, sizeof source, "func @f { dim M in 1..64 dim N in 1..64 %s }", program);
    uir_status status = uir_loop_parse(&allocator, source, strlen(source), name, &d, &f);
    if (status == UIR_STATUS_OK) status = uir_schedule_create(f, NULL, &d, &s);
    bool made = status == UIR_STATUS_OK;
    if (made) status = uir_schedule_replay(s, steps, strlen(steps));
    const char *why = made ? uir_schedule_why(s) : "";
    if (made && status == UIR_STATUS_OK) status = uir_loop_verify(f, &d);
    bool good = made && (wanted ? status == UIR_STATUS_UNSUPPORTED && strstr(why, wanted) : status == UIR_STATUS_OK);
    if (good && then) good = holds_in_order(f, then);
    if (!good)
        printf("%s: %s instead of '%s'\n", name,
               d.first                   ? d.first->message
               : status == UIR_STATUS_OK ? "taken"
                                         : why,
               wanted ? wanted : "taken");
    uir_schedule_destroy(s);
    uir_loop_function_destroy(f);
    uir_diagnostics_deinit(&d);
    return good;
}

int main(void) {
    uint32_t failed = 0, refused = sizeof refusals / sizeof *refusals, taken = sizeof results / sizeof *results;
    for (uint32_t i = 0; i < refused; i++)
        failed += !check(refusals[i].name, refusals[i].program, refusals[i].steps, refusals[i].why, NULL);
    for (uint32_t i = 0; i < taken; i++)
        failed += !check(results[i].name, results[i].program, results[i].steps, NULL, results[i].then);
    printf("%u passed, %u failed, 0 skipped\n", refused + taken - failed, failed);
    return failed != 0;
}
