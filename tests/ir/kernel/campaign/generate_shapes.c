/* Random kernels whose interest is in slices and in control: products, windows, gathers, layouts, ranks, nested loops.
 */
#include "generate_internal.h"

/* ---- products ---- */
void generate_product(generator *g) {
    static const struct {
        const char *c, *a, *b;
    } types[] = {{"f32", "f32", "f32"}, {"f32", "f32", "f32"}, {"i32", "u8", "i8"}, {"i32", "i8", "i8"}};
    uint32_t t = below(g, 4), mr = 1 + below(g, 14), nr = chance(g, 70) ? 32 : 16 + 16 * below(g, 3);
    bool panel = chance(g, 70), pack = chance(g, 50);
    const char *c = types[t].c;
    PUT(g, "  dim M in 0..60, K in 0..70, N in 0..100\n  tile tk in 1..64\n  candidate tk = %u\n", 1 + below(g, 64));
    PUT(g, "  ptr %%x : dram %s [M, K] in 0\n", types[t].a);
    if (panel)
        PUT(g, "  ptr %%w : dram %s [K, N]:(K, (%u, ceildiv(N, %u))):(%u, (1, %u*K)) const 0\n", types[t].b, nr, nr, nr,
            nr);
    else
        PUT(g, "  ptr %%w : dram %s [K, N] const 0\n", types[t].b);
    PUT(g, "  ptr %%b : dram %s [1, N] const 1\n  ptr %%y : dram %s [M, N] out 0\n  ptr %%acc : dram %s [M, N] work\n",
        c, c, c);
    if (pack) PUT(g, "  ptr %%a : sram %s [%u, tk]:(%u, tk):(1, %u)\n", types[t].a, mr, mr, mr);
    PUT(g,
        "  ptr %%c : reg %s [%u, %u]\n  phase {\n    parallel pm : ceildiv(M, %u), pn : ceildiv(N, %u) group\n    loop "
        "kk : ceildiv(K, tk) {\n      let kt = min(tk, K-kk*tk)\n",
        c, mr, nr, mr, nr);
    if (pack) PUT(g, "      move %%a[0:%u, 0:kt], %%x[pm*%u:%u, kk*tk:kt]\n", mr, mr, mr);
    PUT(g, "      fill.%s %%c, 0 when first(kk)\n      move %%c, %%acc[pm*%u:%u, pn*%u:%u] when not first(kk)\n", c, mr,
        mr, nr, nr);
    if (pack)
        PUT(g, "      mma.%s.%s.%s %%c, %%a[0:%u, 0:kt], %%w[kk*tk:kt, pn*%u:%u]\n", c, types[t].a, types[t].b, mr, nr,
            nr);
    else
        PUT(g, "      mma.%s.%s.%s %%c, %%x[pm*%u:%u, kk*tk:kt], %%w[kk*tk:kt, pn*%u:%u]\n", c, types[t].a, types[t].b,
            mr, mr, nr, nr);
    PUT(g, "      move %%acc[pm*%u:%u, pn*%u:%u], %%c when not last(kk)\n      if last(kk) {\n", mr, mr, nr, nr);
    if (chance(g, 70)) PUT(g, "        binary.add.%s %%c, %%c, %%b[0:1, pn*%u:%u]\n", c, nr, nr);
    if (chance(g, 40)) PUT(g, "        binary.max.%s %%c, %%c, 0\n", c);
    PUT(g, "        move %%y[pm*%u:%u, pn*%u:%u], %%c\n      }\n    }\n  }\n", mr, mr, nr, nr);
}

/* ---- windows: a convolution over one or two axes, and a pooling sum ---- */
void generate_window(generator *g) {
    uint32_t mr = 1 + below(g, 14), kh = 1 + below(g, 3), kw = 1 + below(g, 3), sh = 1 + below(g, 2),
             sw = 1 + below(g, 2), dh = 1 + below(g, 2), dw = 1 + below(g, 2);
    uint32_t ph = below(g, kh * dh), pw = below(g, kw * dw);
    uint32_t needs_h = dh * (kh - 1) + 1, needs_w = dw * (kw - 1) + 1;
    const char *activation = PICK(g, "", "unary.tanh.f32", "unary.sigmoid.f32", "unary.abs.f32");
    PUT(g, "  dim B in 0..2, H in %u..14, W in %u..20, C in 1..6, O in 1..40\n", needs_h > 1 ? needs_h : 1,
        needs_w > 1 ? needs_w : 1);
    PUT(g, "  let OH = floordiv(H + %u - %u, %u) + 1\n  let OW = floordiv(W + %u - %u, %u) + 1\n", 2 * ph, needs_h, sh,
        2 * pw, needs_w, sw);
    PUT(g,
        "  ptr %%x : dram f32 [B, H, W, C] in 0\n  ptr %%w : dram f32 [%u*C, O]:(%u*C, (32, ceildiv(O, 32))):(32, (1, "
        "%u*C)) const 0\n",
        kh * kw, kh * kw, 32 * kh * kw);
    PUT(g,
        "  ptr %%b : dram f32 [1, O] const 1\n  ptr %%y : dram f32 [B, OH, OW, O] out 0\n  ptr %%c : reg f32 [%u, "
        "32]\n",
        mr);
    PUT(g,
        "  phase {\n    parallel n : B, ho : OH, pw : ceildiv(OW, %u), po : ceildiv(O, 32) group\n    fill.f32 %%c, "
        "0\n",
        mr);
    PUT(g,
        "    mma.f32.f32.f32 %%c, %%x[n, ho*%u-%u+kh*%u, (pw*%u+wo)*%u-%u+kw*%u, c ; wo<%u, (kh<%u, kw<%u, c<C)] fill "
        "0, %%w[0:%u*C, po*32:32]\n",
        sh, ph, dh, mr, sw, pw, dw, mr, kh, kw, kh * kw);
    if (chance(g, 70)) PUT(g, "    binary.add.f32 %%c, %%c, %%b[0:1, po*32:32]\n");
    if (*activation) PUT(g, "    %s %%c, %%c\n", activation);
    PUT(g, "    move %%y[n:1, ho:1, pw*%u:%u, po*32:32], %%c\n  }\n", mr, mr);
}

/* ---- gathers, transposes, columns, two phases ---- */
void generate_gather(generator *g) {
    const char *dtype = PICK(g, "f32", "i64", "u8", "f16"), *mode = PICK(g, "clamp", "wrap", "skip"),
               *index = PICK(g, "i64", "i32");
    PUT(g, "  dim M in 0..30, V in 0..20, D in 0..70\n  tile tr in 1..8\n  candidate tr = %u\n", 1 + below(g, 5));
    PUT(g, "  ptr %%i : dram %s [M] in 0\n  ptr %%t : dram %s [V, D] in 1\n  ptr %%y : dram %s [M, D] out 0\n", index,
        dtype, dtype);
    PUT(g,
        "  phase {\n    parallel p : ceildiv(M, tr) group\n    loop r : tr when p*tr+r < M {\n      index i = "
        "%%i[p*tr+r] in 0..V-1 %s\n",
        mode);
    PUT(g, "      move %%y[p*tr+r:1, 0:D], %%t[i:1, 0:D] fill 3\n    }\n  }\n");
}

void generate_transpose(generator *g) {
    const char *dtype = PICK(g, "f32", "i64", "u8", "i16");
    PUT(g, "  dim A in 0..5, M in 0..70, N in 0..70\n  tile tm in 1..32, tn in 1..32\n  candidate tm = %u, tn = %u\n",
        1 + below(g, 32), 1 + below(g, 32));
    PUT(g, "  ptr %%x : dram %s [A, M, N] in 0\n  ptr %%y : dram %s [A, N, M] out 0\n", dtype, dtype);
    PUT(g, "  phase {\n    parallel a : A, pm : ceildiv(M, tm), pn : ceildiv(N, tn) group\n");
    PUT(g, "    let mb = min(tm, M-pm*tm)\n    let nb = min(tn, N-pn*tn)\n");
    PUT(g, "    move %%y[a:1, pn*tn:nb, pm*tm:mb], %%x[a, pm*tm+i, pn*tn+j ; (j<nb), (i<mb)]\n  }\n");
}

void generate_columns(generator *g) {
    const char *dtype = PICK(g, "f32", "f32", "i32", "i64"), *op = PICK(g, "add", "max", "min", "mul");
    PUT(g, "  dim M in 0..50, N in 0..150\n  tile tn in 1..64\n  candidate tn = %u\n", 1 + below(g, 64));
    PUT(g, "  ptr %%x : dram %s [M, N] in 0\n  ptr %%y : dram %s [1, N] out 0\n  ptr %%s : sram %s [1, tn]\n", dtype,
        dtype, dtype);
    PUT(g,
        "  phase {\n    parallel p : ceildiv(N, tn) group\n    let nb = min(tn, N-p*tn)\n    reduce.%s.col.unit.%s "
        "%%s[0:1, 0:nb], %%x[0:M, p*tn:nb]\n",
        op, dtype);
    if (chance(g, 50)) PUT(g, "    unary.neg.%s %%s[0:1, 0:nb], %%s[0:1, 0:nb]\n", dtype);
    PUT(g, "    move %%y[0:1, p*tn:nb], %%s[0:1, 0:nb]\n  }\n");
}

void generate_two_phases(generator *g) {
    const char *op = PICK(g, "add", "max", "min");
    PUT(g, "  dim N in 0..1000\n  tile parts in 1..16\n  candidate parts = %u\n  let share = ceildiv(N, parts)\n",
        1 + below(g, 12));
    PUT(g, "  ptr %%x : dram f32 [1, N] in 0\n  ptr %%y : dram f32 [1, 1] out 0\n  ptr %%part : dram f32 [1, parts] "
           "work\n  ptr %%s : reg f32 [1, 1]\n");
    PUT(g,
        "  phase {\n    parallel p : parts group\n    reduce.%s.row.unit.f32 %%s, %%x[0:1, p*share:max(0, min(share, "
        "N-p*share))]\n    move %%part[0:1, p:1], %%s\n  }\n",
        op);
    PUT(g, "  phase {\n    reduce.%s.row.unit.f32 %%s, %%part[0:1, 0:parts]\n    move %%y, %%s\n  }\n", op);
}

/* ---- layouts and ranks: a tensor of rank 3 or 4 through an on-chip tile into another layout ---- */
static const char *const stored[] = {"f32", "f64", "f16", "bf16", "i8",  "u8",  "i16",
                                     "u16", "i32", "u32", "i64",  "u64", "bool"};

static const char *pick_stored(generator *g) {
    return pick(g, stored, sizeof stored / sizeof *stored);
}

void generate_layout(generator *g) {
    const char *dtype = pick_stored(g);
    uint32_t s = 2 + below(g, 7), r = 2 + below(g, 7);
    bool copies = chance(g, 50);
    PUT(g, "  dim A in 0..4, B in 0..5, C in 0..20, D in 0..33\n");
    if (chance(g, 50))
        PUT(g,
            "  ptr %%x : dram %s [A, B, C, D]:(A, B, C, (%u, ceildiv(D, %u))):(B*C*align(D, %u), C*align(D, %u), %u, "
            "(1, %u*C)) in 0\n",
            dtype, s, s, s, s, s, s);
    else
        PUT(g, "  ptr %%x : dram %s [A, B, C, D] in 0\n", dtype);
    PUT(g,
        "  ptr %%y : dram %s [A, B, C, D]:(A, B, (%u, ceildiv(C, %u)), D):(B*D*align(C, %u), D*align(C, %u), (1, "
        "%u*D), %u) out 0\n",
        dtype, r, r, r, r, r, r);
    PUT(g, "  ptr %%z : dram %s [C, A, D, B] out 1\n", dtype);
    if (copies) PUT(g, "  ptr %%t : sram %s [C, D]:(1, C)\n", dtype);
    PUT(g, "  phase {\n    parallel a : A, b : B group\n");
    if (copies)
        PUT(g, "    move %%t[0:C, 0:D], %%x[a:1, b:1, 0:C, 0:D]\n    move %%y[a:1, b:1, 0:C, 0:D], %%t%s\n",
            chance(g, 50) ? " stream" : "");
    else
        PUT(g, "    move %%y[a:1, b:1, 0:C, 0:D], %%x[a:1, b:1, 0:C, 0:D]\n");
    PUT(g, "    move %%z[0:C, a:1, 0:D, b:1], %%x[a, b, c, d ; c<C, (o<1), d<D, (q<1)]\n  }\n");
}

/* ---- control: nested loops whose first and last indices begin and end sums, if blocks, let ---- */
void generate_nested(generator *g) {
    const char *dtype = PICK(g, "f32", "i32", "u16", "i64", "f64", "u8");
    uint32_t step = 1 + below(g, 3);
    PUT(g, "  dim M in 0..9, A in 0..6, B in 0..7, N in 0..70\n  tile ta in 1..4\n  candidate ta = %u\n",
        1 + below(g, 4));
    PUT(g,
        "  ptr %%x : dram %s [M, A, B, N] in 0\n  ptr %%y : dram %s [M, N] out 0\n  ptr %%z : dram %s [M, A, N] out "
        "1\n",
        dtype, dtype, dtype);
    PUT(g, "  ptr %%s : sram %s [1, N]\n  ptr %%r : sram %s [1, N]\n", dtype, dtype);
    PUT(g,
        "  phase {\n    parallel m : M group\n    loop a : A {\n      fill.%s %%s, 0 when first(a)\n      loop b : B "
        "{\n",
        dtype);
    PUT(g, "        fill.%s %%r, %u when first(b)\n", dtype, below(g, 4));
    PUT(g, "        binary.%s.%s %%r, %%r, %%x[m:1, a:1, b:1, 0:N] fill 0\n", PICK(g, "add", "max", "sub"), dtype);
    PUT(g, "        if last(b) {\n          binary.add.%s %%s, %%s, %%r\n", dtype);
    PUT(g, "          move %%z[m:1, a:1, 0:N], %%r\n        }\n      }\n");
    PUT(g, "      let twice = %u*a\n      if twice >= %u {\n        binary.mul.%s %%s, %%s, 3\n      }\n", 1 + step,
        2 + below(g, 3), dtype);
    PUT(g, "      move %%y[m:1, 0:N], %%s when last(a)\n    }\n  }\n");
}

/* ---- rank 0 and rank 1: a number that scales a vector, and its sum ---- */
void generate_scalar(generator *g) {
    const char *dtype = PICK(g, "f32", "f64", "i32", "i16");
    PUT(g, "  dim N in 0..300\n  ptr %%a : dram %s [] in 0\n  ptr %%x : dram %s [N] in 1\n", dtype, dtype);
    PUT(g, "  ptr %%y : dram %s [N] out 0\n  ptr %%z : dram %s [1] out 1\n  ptr %%w : dram %s [] out 2\n", dtype, dtype,
        dtype);
    PUT(g, "  ptr %%s : reg %s [1]\n  phase {\n", dtype);
    PUT(g, "    binary.%s.%s %%y, %%x, %%a\n    reduce.%s.row.unit.%s %%s, %%x\n    move %%z, %%s\n",
        PICK(g, "mul", "add", "max"), dtype, PICK(g, "add", "max", "min"), dtype);
    PUT(g, "    %s.%s %%w, %%a\n  }\n", PICK(g, "unary.neg", "unary.abs", "unary.sign", "move"), dtype);
}

/* ---- a buffer's one part moved to another: a queue of the latest columns ---- */
void generate_shift(generator *g) {
    const char *dtype = pick_stored(g);
    uint32_t keep = 1 + below(g, 33);
    PUT(g, "  dim M in 0..9, N in 1..90\n  ptr %%x : dram %s [M, N] in 0\n  ptr %%y : dram %s [M, %u] out 0\n", dtype,
        dtype, 2 * keep);
    PUT(g,
        "  ptr %%t : sram %s [1, %u]\n  phase {\n    parallel m : M group\n    fill.%s %%t, 1\n    loop j : "
        "ceildiv(N, %u) {\n",
        dtype, 2 * keep, dtype, keep);
    PUT(g, "      move %%t[0:1, 0:%u], %%t[0:1, %u:%u]\n      move %%t[0:1, %u:%u], %%x[m:1, j*%u:%u] fill %u\n    }\n",
        keep, keep, keep, keep, keep, keep, keep, below(g, 2));
    PUT(g, "    move %%y[m:1, 0:%u], %%t\n  }\n", 2 * keep);
}

/* ---- windows that begin before the tensor, elementwise: the sum or the greatest of neighbours ---- */
void generate_stencil(generator *g) {
    const char *dtype = PICK(g, "f32", "i32", "u8", "i16", "f64");
    uint32_t k = 2 + below(g, 3), before = below(g, k), stride = 1 + below(g, 2);
    const char *op = PICK(g, "add", "max", "min");
    PUT(g, "  dim M in 0..12, N in 0..80\n  let P = ceildiv(N, %u)\n", stride);
    PUT(g, "  ptr %%x : dram %s [M, N] in 0\n  ptr %%y : dram %s [M, P] out 0\n  ptr %%t : sram %s [1, P]\n", dtype,
        dtype, dtype);
    PUT(g, "  phase {\n    parallel m : M group\n    fill.%s %%t, %u\n    loop k : %u {\n", dtype, below(g, 3), k);
    PUT(g, "      binary.%s.%s %%t, %%t, %%x[m, %u*p+k-%u ; (o<1), p<P] fill %u\n    }\n", op, dtype, stride, before,
        below(g, 4));
    PUT(g, "    move %%y[m:1, 0:P], %%t\n  }\n");
}

/* ---- broadcasts of rows, columns and blocks, counters along both, sums down columns that go on ---- */
void generate_broadcast(generator *g) {
    const char *dtype = PICK(g, "f32", "i32", "u64", "i8", "f64", "u32");
    uint32_t width = 1 + below(g, 12);
    PUT(g,
        "  dim M in 0..9, N in 0..70\n  ptr %%x : dram %s [M, N] in 0\n  ptr %%r : dram %s [M, 1] in 1\n  ptr %%c : "
        "dram "
        "%s [1, N] in 2\n  ptr %%b : dram %s [1, %u] in 3\n",
        dtype, dtype, dtype, dtype, width);
    PUT(g, "  ptr %%y : dram %s [M, N] out 0\n  ptr %%s : dram %s [1, N] out 1 tied %%c\n", dtype, dtype);
    PUT(g, "  ptr %%t : sram %s [M, N]\n  ptr %%u : sram %s [M, N]\n  phase {\n", dtype, dtype);
    bool row = chance(g, 50);
    PUT(g, "    broadcast.%s.unit.%s %%t, %s\n", row ? "row" : "col", dtype, row ? "%r" : "%s");
    PUT(g, "    iota.%s.%s %%u, N - 3\n    binary.%s.%s %%t, %%t, %%u\n", PICK(g, "row", "col"), dtype,
        PICK(g, "add", "sub", "max"), dtype);
    PUT(g, "    binary.%s.%s %%t, %%t, %%b block\n    binary.add.%s %%y, %%t, %%x\n", PICK(g, "mul", "add", "min"),
        dtype, dtype);
    PUT(g, "    reduce.%s.col.unit.%s %%s, %%x acc\n  }\n", PICK(g, "add", "max", "min"), dtype);
}
