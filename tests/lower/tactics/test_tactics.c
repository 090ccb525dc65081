/* What the tactics decide, and why: groups in text, parts of the steps and kernels that come of them, in order, and
 * parts that must not.
 *
 *   test_tactics [NAME]      with a name, shows what comes of that case */
#include "backends/cpu/target/cpu.h"
#include "fusion/fusion.h"
#include "tests/lower/harness.h"

#include <stdio.h>
#include <string.h>

typedef struct decision {
    const char *name, *sizes, *body;
    uint32_t variants;  /* 0: any number */
    const char *has[6]; /* after one another: in the steps, then in the kernels */
    const char *lacks[2];
} decision;

#define SOFTMAX(n)                                                                                                     \
    "(%x: f32[M, " n "]) {\n %m: f32[M, 1] = reduce_max(%x) {axes = [1], keep = 1}\n"                                  \
    " %mb: f32[M, " n "] = broadcast(%m) {dims = [M, " n "]}\n %d: f32[M, " n "] = sub(%x, %mb)\n"                     \
    " %e: f32[M, " n "] = exp(%d)\n %s: f32[M, 1] = reduce_sum(%e) {axes = [1], keep = 1}\n"                           \
    " %sb: f32[M, " n "] = broadcast(%s) {dims = [M, " n "]}\n %y: f32[M, " n "] = div(%e, %sb)\n return %y\n}"
#define USED_TWICE(value)                                                                                              \
    "(%x: f32[M, N], %z: f32[M, N], %w: f32[M, N]) {\n" value                                                          \
    " %a: f32[M, N] = add(%t, %z)\n %b: f32[M, N] = mul(%t, %z)\n return %a, %b\n}"

static const decision decisions[] = {
    {"a pool over images with their channels innermost has windows of a line side by side",
     "size H",
     "(%x: f32[1, 64, H, 40]:(2560*H, 1, 2560, 64)) {\n"
     " %w: f32[1, 64, H, 40]:(2560*H, 1, 2560, 64) = window_max(%x) {window = [3, 3], strides = [1, 1],"
     " dilations = [1, 1], low = [1, 1], high = [1, 1]}\n return %w\n}",
     1,
     {"split", "unroll", "binary.max.f32", "p1*32", "fill -inf"},
     {"p1 : 40"}},
    {"a softmax over channels goes along the pixels in each of its passes",
     "size B\nsize N",
     "(%x: f32[B, 5, N]) {\n %m: f32[B, 1, N] = reduce_max(%x) {axes = [1], keep = 1}\n"
     " %mb: f32[B, 5, N] = broadcast(%m) {dims = [B, 5, N]}\n %d: f32[B, 5, N] = sub(%x, %mb)\n"
     " %e: f32[B, 5, N] = exp(%d)\n %s: f32[B, 1, N] = reduce_sum(%e) {axes = [1], keep = 1}\n"
     " %sb: f32[B, 5, N] = broadcast(%s) {dims = [B, 5, N]}\n %y: f32[B, 5, N] = div(%e, %sb)\n return %y\n}",
     1,
     {"binary.max.f32", "loop", "unary.exp2.f32  %t5[l9, 0:min(", "binary.div"},
     {"u<5", "when l"}},
    {"a dear value that two results use is computed once, beside them",
     "size M\nsize N",
     USED_TWICE(" %t: f32[M, N] = exp(%x)\n"),
     1,
     {"phase {\n    parallel", "unary.exp", "binary.add", "binary.mul"},
     {" work", "inline"}},
    {"a cheap value is computed again",
     "size M\nsize N",
     USED_TWICE(" %t: f32[M, N] = neg(%x)\n"),
     1,
     {"inline", "parallel"},
     {" work"}},
    {"what takes more than two operands is not",
     "size M\nsize N",
     USED_TWICE(" %s: f32[M, N] = add(%x, %z)\n %t: f32[M, N] = mul(%s, %w)\n"),
     1,
     {"compute", "parallel"},
     {" work"}},
    {"what takes more than three instructions is not",
     "size M\nsize N",
     USED_TWICE(" %p: f32[M, N] = neg(%x)\n %q: f32[M, N] = mul(%p, %x)\n %r: f32[M, N] = abs(%q)\n"
                " %t: f32[M, N] = add(%r, %x)\n"),
     1,
     {"compute", "parallel"},
     {" work"}},
    {"what several nests read that are no one is shared out as they are",
     "size M\nsize N",
     "(%x: f32[M, N], %z: f32[M, N]) {\n %t: f32[M, N] = exp(%x)\n %a: f32[M, N] = add(%t, %z)\n"
     " %u: f32[N, M] = transpose(%t) {perm = [1, 0]}\n %b: f32[N, M] = neg(%u)\n return %a, %b\n}",
     1,
     {"phase {\n    parallel", "phase {\n    parallel", "phase {\n    parallel"},
     {"require", "phase {\n    loop"}},
    {"nests that units share follow one that they cannot, in phases of their own",
     "size M\nsize N\nsize K max 40",
     "(%x: f16[M, N, K]) {\n %y: f16[M, N, K] = scan_sum(%x) {axis = 0, exclusive = 0, reverse = 0}\n return %y\n}",
     1,
     {"phase {\n    loop", "phase {\n    parallel", "cast.f32.f16"},
     {NULL}},
    {"rows of an index of the parallel axis", "size M", SOFTMAX("384"), 1, {"by 42:"}, {NULL}},
    {"rows of an index of the parallel axis, at most", "size M", SOFTMAX("16"), 1, {"by 64:"}, {NULL}},
    {"rows that read something alike, at least",
     "size M",
     "(%x: f32[M, 4000], %w: f32[4000]) {\n %v: f32[M, 4000] = broadcast(%w) {dims = [M, 4000]}\n"
     " %y: f32[M, 4000] = add(%x, %v)\n return %y\n}",
     1,
     {"by 32:", "cache read"},
     {NULL}},
    {"rows that fit on the chip have one variant", "size M\nsize N min 1 max 4096", SOFTMAX("N"), 1, {"sram"}, {NULL}},
    {"rows that may not have another", "size M\nsize N min 1 max 4097", SOFTMAX("N"), 2, {"by 4096:"}, {NULL}},
    {"what a slice leaves of the last axis is no column",
     "size M\nsize N max 1000",
     "(%x: f32[M, N, 5]) {\n %w: f32[M, N, 1] = slice(%x) {starts = [0, 0, 3], sizes = [M, N, 1], steps = [1, 1, 1]}\n"
     " %y: f32[M] = reduce_sum(%w) {axes = [1, 2], keep = 0}\n return %y\n}",
     1,
     {"reduce.add.row"},
     {NULL}},
    {"the axis before a slice of the last one is a column",
     "size M\nsize N",
     "(%x: f32[M, N, 5]) {\n %w: f32[M, N, 1] = slice(%x) {starts = [0, 0, 3], sizes = [M, N, 1], steps = [1, 1, 1]}\n"
     " %y: f32[N] = reduce_sum(%w) {axes = [0, 2], keep = 0}\n return %y\n}",
     0,
     {"binary.add"},
     {"reduce.add.row"}},
    {"weights along what is summed do not make rows of columns, whatever their rank",
     "size M\nsize N",
     "(%w: f32[M, 8, N], %x: f32[M, N, 32]) {\n"
     " %v: f32[M, 1, N] = slice(%w) {starts = [0, 2, 0], sizes = [M, 1, N], steps = [1, 1, 1]}\n"
     " %r: f32[M, N, 1] = reshape(%v) {dims = [M, N, 1]}\n %b: f32[M, N, 32] = broadcast(%r) {dims = [M, N, 32]}\n"
     " %p: f32[M, N, 32] = mul(%x, %b)\n %y: f32[M, 32] = reduce_sum(%p) {axes = [1], keep = 0}\n return %y\n}",
     1,
     {"binary.mul", "binary.add"},
     {"reduce.add.row"}},
    {"few rows that read something alike have one copy of it",
     "",
     "(%x: f32[20, 4000], %w: f32[4000]) {\n %v: f32[20, 4000] = broadcast(%w) {dims = [20, 4000]}\n"
     " %y: f32[20, 4000] = add(%x, %v)\n return %y\n}",
     1,
     {"by 32:", "cache read"},
     {NULL}},
    {"what the machine reduces by no instruction goes in two steps",
     "size M\nsize N min 1 max 1000",
     "(%x: f32[M, N]) {\n %y: i64[M] = arg_max(%x) {axis = 1, keep = 0, last = 0}\n return %y\n}",
     1,
     {"by 32:", "rfactor"},
     {NULL}},
    {"what it has an instruction for does not",
     "size M\nsize N min 1 max 1000",
     "(%x: f32[M, N]) {\n %y: f32[M] = reduce_sum(%x) {axes = [1], keep = 0}\n return %y\n}",
     1,
     {"reduce.add.row"},
     {"rfactor"}},
    {"a long sum with little beside it goes by parts, across groups, and another phase",
     "",
     "(%x: f32[4, 140000]) {\n %y: f32[4] = reduce_sum(%x) {axes = [1], keep = 0}\n return %y\n}",
     1,
     {"by 65536:", "rfactor", "in dram", "p0 : 4, p1 : 3 group", "reduce.add.row", "phase {\n    loop"},
     {NULL}},
    {"a sum over all does",
     "",
     "(%x: f32[400, 500]) {\n %y: f32[] = reduce_sum(%x) {axes = [0, 1], keep = 0}\n return %y\n}",
     1,
     {"by 65536:", "rfactor", "in dram", "parallel p0 : 4 group", "reduce.add.row", "phase"},
     {NULL}},
    {"columns do, of which parts have slices side by side",
     "",
     "(%x: f32[3000, 300]) {\n %y: f32[300] = reduce_sum(%x) {axes = [0], keep = 0}\n return %y\n}",
     1,
     {"by 256:", "rfactor", "in dram", "p0 : 2, p1 : 12 group", "binary.add", "reduce.add.row"},
     {NULL}},
    {"so do a state of two numbers, and its parts in two steps",
     "",
     "(%x: f32[140000]) {\n %y: i64[] = arg_max(%x) {axis = 0, keep = 0, last = 0}\n return %y\n}",
     1,
     {"by 65536:", "rfactor", "by 32:", "rfactor", "parallel p0 : 3 group", "phase"},
     {NULL}},
    {"what is reduced of a reduction does after it",
     "",
     "(%x: f32[140000], %n: f32[1]) {\n %s: f32[1] = reduce_sum(%x) {axes = [0], keep = 1}\n"
     " %m: f32[1] = div(%s, %n)\n %b: f32[140000] = broadcast(%m) {dims = [140000]}\n %d: f32[140000] = sub(%x, %b)\n"
     " %q: f32[140000] = mul(%d, %d)\n %v: f32[1] = reduce_sum(%q) {axes = [0], keep = 1}\n return %v\n}",
     1,
     {"rfactor", "rfactor", "parallel p0 : 3 group", "reduce.add.row", "parallel p4 : 3 group", "reduce.add.row"},
     {NULL}},
    {"two parts are not worth it where they are short",
     "",
     "(%x: f32[4, 131071]) {\n %y: f32[4] = reduce_sum(%x) {axes = [1], keep = 0}\n return %y\n}",
     0,
     {"reduce.add.row"},
     {"rfactor"}},
    {"nor where there are rows enough",
     "",
     "(%x: f32[64, 140000]) {\n %y: f32[64] = reduce_sum(%x) {axes = [1], keep = 0}\n return %y\n}",
     0,
     {"reduce.add.row"},
     {"rfactor"}},
    {"nor where only a run knows how long it is",
     "size N",
     "(%x: f32[4, N]) {\n %y: f32[4] = reduce_sum(%x) {axes = [1], keep = 0}\n return %y\n}",
     2,
     {"reduce.add.row"},
     {"rfactor"}},
    {"what turns rows and columns goes by squares",
     "size M\nsize N",
     "(%x: f32[M, N]) {\n %t: f32[N, M] = transpose(%x) {perm = [1, 0]}\n %y: f32[N, M] = neg(%t)\n return %y\n}",
     1,
     {"by 32:", "by 32:", "as vectorised", "as vectorised"},
     {NULL}},
    {"what is read twice of a row, and one number of it, stay on the chip",
     "size M\nsize N min 1 max 1000",
     SOFTMAX("N"),
     1,
     {"cache read of x0", "to reg"},
     {" work"}},
    {"what a row is less than its greatest goes through a power of two, its quotients through one reciprocal",
     "size M\nsize N min 1 max 1000",
     SOFTMAX("N"),
     1,
     {"reduce.max.row", "binary.sub", "1.4426950408889634", "unary.exp2", "reduce.add.row", "unary.reciprocal"},
     {"unary.exp.", "binary.div"}},
    {"another difference does not",
     "size M\nsize N",
     "(%x: f32[M, N], %z: f32[M, N]) {\n %d: f32[M, N] = sub(%x, %z)\n %y: f32[M, N] = exp(%d)\n return %y\n}",
     1,
     {"binary.sub", "unary.exp."},
     {"exp2"}},
    {"a row that goes out and is reduced besides is made once",
     "size M\nsize N min 1 max 1000",
     "(%x: f32[M, N]) {\n %m: f32[M, 1] = reduce_max(%x) {axes = [1], keep = 1}\n"
     " %mb: f32[M, N] = broadcast(%m) {dims = [M, N]}\n %d: f32[M, N] = sub(%x, %mb)\n %e: f32[M, N] = exp(%d)\n"
     " %s: f32[M, 1] = reduce_sum(%e) {axes = [1], keep = 1}\n %sb: f32[M, N] = broadcast(%s) {dims = [M, N]}\n"
     " %y: f32[M, N] = div(%e, %sb)\n return %e, %y\n}",
     1,
     {"merge", "reduce.max.row", "unary.exp", "reduce.add.row"},
     {" work"}},
    {"places of a small window are written out",
     "size N max 3\nsize W max 300",
     "(%x: f32[N, 3, W + 2]) {\n %y: f32[N, 3, floordiv(W + 1, 2) + 1] = window_max(%x) {window = [3], strides = [2],"
     " dilations = [1], low = [1], high = [1]}\n return %y\n}",
     0,
     {"as unrolled"},
     {NULL}},
    {"rows that lie a multiple of a cache's half way apart are copied",
     "size M",
     "(%x: f32[M, 512], %w: f32[512, 300]) {\n %y: f32[M, 300] = matmul(%x, %w) {to = f32}\n return %y\n}",
     2,
     {"variant 2:\n", "cache operand 0", "cache operand 1"},
     {NULL}},
    {"other rows are read where they lie",
     "size M",
     "(%x: f32[M, 520], %w: f32[520, 300]) {\n %y: f32[M, 300] = matmul(%x, %w) {to = f32}\n return %y\n}",
     2,
     {"variant 2:\n", "cache operand 1"},
     {"cache operand 0"}},
    {"few columns are whole lines of a cache, and lie where they are",
     "size M",
     "(%x: f32[M, 520], %w: f32[520, 20]) {\n %y: f32[M, 20] = matmul(%x, %w) {to = f32}\n return %y\n}",
     2,
     {"variant 2:\n", "[tm, 32]"},
     {"cache operand 1"}},
    {"columns with others between their rows are copied",
     "size M",
     "(%x: f32[4, M, 40], %w: f32[40, 4, 20]) {\n %v: f32[4, 40, 20] = transpose(%w) {perm = [1, 0, 2]}\n"
     " %y: f32[4, M, 20] = matmul(%x, %v) {to = f32}\n return %y\n}",
     2,
     {"variant 2:\n", "cache operand 1"},
     {NULL}},
    {"a sum of products is a contraction, whatever operators it comes from",
     "size M\nsize N",
     "(%x: f32[M, 64], %w: f32[64, N]) {\n %r: f32[M, 64, 1] = reshape(%x) {dims = [M, 64, 1]}\n"
     " %a: f32[M, 64, N] = broadcast(%r) {dims = [M, 64, N]}\n %b: f32[M, 64, N] = broadcast(%w) {dims = [M, 64, N]}\n"
     " %p: f32[M, 64, N] = mul(%a, %b)\n %s: f32[M, N] = reduce_sum(%p) {axes = [1], keep = 0}\n"
     " %y: f32[M, N] = tanh(%s)\n return %y\n}",
     2,
     {"variant 1:\n", "variant 2:\n", "mma.f32", "unary.tanh"},
     {"reduce.add"}},
    {"what is computed of its factors first is in their tiles",
     "size M\nsize N",
     "(%x: f32[M, 64], %w: f32[64, N]) {\n %e: f32[M, 64] = exp(%x)\n %r: f32[M, 64, 1] = reshape(%e) {dims = [M, 64, "
     "1]}\n %a: f32[M, 64, N] = broadcast(%r) {dims = [M, 64, N]}\n %b: f32[M, 64, N] = broadcast(%w) {dims = [M, 64, "
     "N]}\n %p: f32[M, 64, N] = mul(%a, %b)\n %y: f32[M, N] = reduce_sum(%p) {axes = [1], keep = 0}\n return %y\n}",
     0,
     {"mma.f32"},
     {"reduce.add"}},
    {"of three factors, one without a summed axis is multiplied with the finished sum",
     "size M\nsize N",
     "(%x: f32[M, 64], %w: f32[64, N], %v: f32[N]) {\n %r: f32[M, 64, 1] = reshape(%x) {dims = [M, 64, 1]}\n"
     " %a: f32[M, 64, N] = broadcast(%r) {dims = [M, 64, N]}\n %b: f32[M, 64, N] = broadcast(%w) {dims = [M, 64, N]}\n"
     " %p: f32[M, 64, N] = mul(%a, %b)\n %c: f32[M, 64, N] = broadcast(%v) {dims = [M, 64, N]}\n %q: f32[M, 64, N] = "
     "mul(%p, %c)\n"
     " %y: f32[M, N] = reduce_sum(%q) {axes = [1], keep = 0}\n return %y\n}",
     0,
     {"mma.f32", "binary.mul"},
     {"reduce.add"}},
    {"one along the depth goes into a factor",
     "size M\nsize N",
     "(%x: f32[M, 64], %w: f32[64, N], %v: f32[64, 1]) {\n %r: f32[M, 64, 1] = reshape(%x) {dims = [M, 64, 1]}\n"
     " %a: f32[M, 64, N] = broadcast(%r) {dims = [M, 64, N]}\n %b: f32[M, 64, N] = broadcast(%w) {dims = [M, 64, N]}\n"
     " %p: f32[M, 64, N] = mul(%a, %b)\n %c: f32[M, 64, N] = broadcast(%v) {dims = [M, 64, N]}\n %q: f32[M, 64, N] = "
     "mul(%p, %c)\n"
     " %y: f32[M, N] = reduce_sum(%q) {axes = [1], keep = 0}\n return %y\n}",
     0,
     {"mma.f32", "binary.mul"},
     {"reduce.add"}},
    {"one with rows, columns and depth leaves none that is a contraction",
     "size M\nsize N",
     "(%x: f32[M, 64], %w: f32[64, N], %v: f32[M, 64, N]) {\n %r: f32[M, 64, 1] = reshape(%x) {dims = [M, 64, 1]}\n"
     " %a: f32[M, 64, N] = broadcast(%r) {dims = [M, 64, N]}\n %b: f32[M, 64, N] = broadcast(%w) {dims = [M, 64, N]}\n"
     " %p: f32[M, 64, N] = mul(%a, %b)\n %q: f32[M, 64, N] = mul(%p, %v)\n"
     " %y: f32[M, N] = reduce_sum(%q) {axes = [1], keep = 0}\n return %y\n}",
     0,
     {"binary.mul"},
     {"mma."}},
    {"a factor that is constant is packed ahead",
     "size M\nconstant %w: f32[2, 3] = [1, 2, 3, 4, 5, 6]",
     "(%x: f32[M, 2]) {\n %r: f32[M, 2, 1] = reshape(%x) {dims = [M, 2, 1]}\n"
     " %a: f32[M, 2, 3] = broadcast(%r) {dims = [M, 2, 3]}\n %b: f32[M, 2, 3] = broadcast(%w) {dims = [M, 2, 3]}\n"
     " %p: f32[M, 2, 3] = mul(%a, %b)\n %y: f32[M, 3] = reduce_sum(%p) {axes = [1], keep = 0}\n return %y\n}",
     0,
     {"(16, (1, 32)) const 1", "mma.f32"},
     {"%columns"}},
    {"what is summed along one factor alone is walked around what both are summed along",
     "size M\nsize N\nsize K",
     "(%x: f32[3, 4, K], %w: f32[4, N]) {\n %r: f32[3, 4, K, 1] = reshape(%x) {dims = [3, 4, K, 1]}\n"
     " %s: f32[1, 4, 1, N] = reshape(%w) {dims = [1, 4, 1, N]}\n"
     " %a: f32[3, 4, K, N] = broadcast(%r) {dims = [3, 4, K, N]}\n"
     " %b: f32[3, 4, K, N] = broadcast(%s) {dims = [3, 4, K, N]}\n"
     " %p: f32[3, 4, K, N] = mul(%a, %b)\n %y: f32[3, N] = reduce_sum(%p) {axes = [1, 2], keep = 0}\n return %y\n}",
     0,
     {"mma.f32"},
     {"reduce.add"}},
    {"a matrix times a vector is summed along its rows as they lie",
     "size N",
     "(%x: f32[64, 1], %w: f32[N, 64]) {\n %y: f32[N, 1] = matmul(%w, %x) {to = f32}\n return %y\n}",
     0,
     {"reduce.add.row"},
     {"mma."}},
    {"a vector times a matrix is a product, of which columns lie together",
     "size N",
     "(%x: f32[1, 64], %w: f32[64, N]) {\n %y: f32[1, N] = matmul(%x, %w) {to = f32}\n return %y\n}",
     0,
     {"mma."},
     {"reduce.add", "%columns"}},
    {"a vector times a matrix that is packed ahead is a product, whatever it comes from",
     "constant %w: f32[3, 2] = [1, 2, 3, 4, 5, 6]",
     "(%x: f32[2]) {\n %a: f32[3, 2] = broadcast(%x) {dims = [3, 2]}\n %p: f32[3, 2] = mul(%a, %w)\n"
     " %y: f32[3] = reduce_sum(%p) {axes = [1], keep = 0}\n return %y\n}",
     0,
     {"const 1", "mma."},
     {"reduce.add", "%columns"}},
    {"a dot is a sum of one row",
     "size N",
     "(%x: f32[1, N], %w: f32[N, 1]) {\n %y: f32[1, 1] = matmul(%x, %w) {to = f32}\n return %y\n}",
     0,
     {"reduce.add"},
     {"mma."}},
    {"what is in registers takes nothing of the scratchpad",
     "size N",
     "(%x: f32[1, N], %w: f32[N, 1]) {\n %y: f32[1, 1] = matmul(%x, %w) {to = f32}\n return %y\n}",
     0,
     {"require n0*4 + 64 <= sram", "reg f32 [1, 1]", "sram f32 [1, n0]"},
     {NULL}},
    {"products of rows with rows are summed row by row",
     "size M\nsize N",
     "(%x: f32[M, N], %w: f32[M, N]) {\n %p: f32[M, N] = mul(%x, %w)\n"
     " %y: f32[M] = reduce_sum(%p) {axes = [1], keep = 0}\n return %y\n}",
     0,
     {"reduce.add.row"},
     {"mma."}},
    {"a sum of products over whose terms something else is taken as well stays rows",
     "size M\nsize N",
     "(%x: f32[M, 64], %w: f32[64, N]) {\n %r: f32[M, 64, 1] = reshape(%x) {dims = [M, 64, 1]}\n"
     " %a: f32[M, 64, N] = broadcast(%r) {dims = [M, 64, N]}\n %b: f32[M, 64, N] = broadcast(%w) {dims = [M, 64, N]}\n"
     " %p: f32[M, 64, N] = mul(%a, %b)\n %s: f32[M, N] = reduce_sum(%p) {axes = [1], keep = 0}\n"
     " %g: f32[M, N] = reduce_max(%p) {axes = [1], keep = 0}\n %y: f32[M, N] = add(%s, %g)\n return %y\n}",
     0,
     {"binary.max.f32", "binary.add.f32"},
     {"mma."}},
    {"columns that are rows are copied, for few rows too",
     "size M",
     "(%x: f32[4, M, 40], %w: f32[4, M, 40]) {\n %t: f32[4, 40, M] = transpose(%w) {perm = [0, 2, 1]}\n"
     " %y: f32[4, M, M] = matmul(%x, %t) {to = f32}\n return %y\n}",
     2,
     {"variant 1:\n", "cache operand 1", "variant 2:\n"},
     {NULL}},
};

static void add_texts(const uir_lowered *l, uir_text *out) {
    if (l->steps.data) uir_text_append(out, l->steps.data, l->steps.length);
    for (uint32_t i = 0; i < l->igraphs.count; i++) uir_igraph_print(l->igraphs.igraphs[i], out);
}

static bool says(const decision *d, const uir_lowered *l, const char *text) {
    const char *at = text;
    for (uint32_t i = 0; i < 6 && d->has[i]; i++) {
        at = strstr(at, d->has[i]);
        if (at) at += strlen(d->has[i]);
        if (at) continue;
        printf("%s: lacks '%s'\n%s\n", d->name, d->has[i], text);
        return false;
    }
    for (uint32_t i = 0; i < 2 && d->lacks[i]; i++) {
        if (!strstr(text, d->lacks[i])) continue;
        printf("%s: has '%s'\n%s\n", d->name, d->lacks[i], text);
        return false;
    }
    if (!d->variants || d->variants == l->igraphs.count) return true;
    printf("%s: %u variants in place of %u\n", d->name, l->igraphs.count, d->variants);
    return false;
}

/* The first group of the module. */
static bool check(const decision *d, const uir_machine *machine, bool show) {
    static char source[8000];
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_module *module = NULL;
    uir_text text;
    bool good = false;
    uir_diagnostics_init(&diagnostics, &allocator);
    uir_text_init(&text, &allocator);
    snprintf(source, sizeof source, "module opset 20\n%s\ngraph \"g\" %s\n", d->sizes, d->body);
    uir_status status = uir_module_parse(&allocator, &diagnostics, source, strlen(source), d->name, NULL, &module);
    if (status == UIR_STATUS_OK) status = uir_fuse(module, NULL, &diagnostics);
    if (status != UIR_STATUS_OK) printf("%s: %s\n", d->name, diagnostics.first ? diagnostics.first->message : "?");
    uir_graph_info graph = {0};
    if (status == UIR_STATUS_OK) graph = *uir_graph_get(module, module->main);
    for (uint32_t n = 0; n < graph.nodes.count; n++) {
        uir_node_id node = graph.nodes.data[n];
        if (uir_node_get(module, node)->op != UIR_OP_GROUP) continue;
        lower_check c = {.machine = machine, .allocator = &allocator};
        lower_prepare(&c, module, node);
        add_texts(&c.lowered, &text);
        if (c.stage != LOWER_FINE) printf("%s: %s: %s\n", d->name, lower_stage_name(c.stage), c.message);
        good = c.stage == LOWER_FINE && text.data && says(d, &c.lowered, text.data);
        if (show) printf("%s\n", text.data ? text.data : "");
        lower_finish(&c);
        break;
    }
    uir_text_deinit(&text);
    uir_module_destroy(module);
    uir_diagnostics_deinit(&diagnostics);
    return good;
}

int main(int argc, char **argv) {
    static uir_cpu_device cpu;
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics d;
    uint32_t passed = 0, failed = 0;
    uir_diagnostics_init(&d, &allocator);
    if (uir_cpu_describe("generic", &d, &cpu) != UIR_STATUS_OK) return 2;
    for (size_t i = 0; i < sizeof decisions / sizeof *decisions; i++) {
        if (argc > 1 && strcmp(argv[1], decisions[i].name)) continue;
        if (check(&decisions[i], &cpu.machine, argc > 1))
            passed++;
        else
            failed++;
    }
    printf("%u passed, %u failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
