/* The loop AST: text both ways, what the verifier rejects and says, and what programs compute. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ir/loop/loop.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD                                                                                                           \
    "func @f {\n  dim M, N in 0..64\n  tensor X : f32 [M, N] in 0\n  tensor Y : f32 [M, N] out 0\n  tensor S : f32 "   \
    "[M] temp sram\n"                                                                                                  \
    "  monoid sum (a : f32) {\n    identity f32(0)\n    update (x : f32) add(a, x)\n    combine (b : f32) add(a, "     \
    "b)\n    finish a\n  }\n"
#define COPY_BLOCK(body) HEAD "  serial for (i, 0, M) {\n    serial for (j, 0, N) {\n" body "    }\n  }\n}\n"
#define COPY                                                                                                           \
    COPY_BLOCK(                                                                                                        \
        "      ScheduleBlock(B) {\n        vi, vj = axis.bind(i, j) : M, N\n        Y[vi, vj] = X[vi, vj]\n      }\n")

typedef struct fixture {
    uir_allocator allocator;
    uir_diagnostics diagnostics;
} fixture;

static fixture *begin(void) {
    fixture *f = calloc(1, sizeof *f);
    f->allocator = uir_allocator_system();
    uir_diagnostics_init(&f->diagnostics, &f->allocator);
    return f;
}

static void end(fixture *f) {
    uir_diagnostics_deinit(&f->diagnostics);
    free(f);
}

static bool said(const fixture *f, const char *part) {
    for (const uir_diagnostic *d = f->diagnostics.first; d; d = d->next) {
        if (strstr(d->message, part)) return true;
    }
    return false;
}

static void show(const fixture *f) {
    for (const uir_diagnostic *d = f->diagnostics.first; d; d = d->next) print_message("  said: %s\n", d->message);
}

static uir_loop_function *read_text(fixture *f, const char *text) {
    uir_loop_function *function = NULL;
    uir_status status = uir_loop_parse(&f->allocator, text, strlen(text), "test", &f->diagnostics, &function);
    if (status != UIR_STATUS_OK) show(f);
    assert_int_equal(status, UIR_STATUS_OK);
    return function;
}

static char *print_function(fixture *f, const uir_loop_function *function) {
    uir_text text;
    uir_text_init(&text, &f->allocator);
    uir_loop_print(function, &text);
    assert_int_equal(uir_text_status(&text), UIR_STATUS_OK);
    char *copy = strdup(text.data);
    uir_text_deinit(&text);
    return copy;
}

/* Parse, print, parse, print: the texts are equal, and that of a copy; and the program verifies. */
static uir_loop_function *read_and_check(fixture *f, const char *text) {
    uir_loop_function *first = read_text(f, text);
    char *printed = print_function(f, first);
    uir_loop_function *second = read_text(f, printed);
    char *again = print_function(f, second);
    assert_string_equal(printed, again);
    uir_loop_function *copy = NULL;
    assert_int_equal(uir_loop_clone(first, &copy), UIR_STATUS_OK);
    char *copied = print_function(f, copy);
    assert_string_equal(printed, copied);
    free(copied);
    uir_loop_function_destroy(copy);
    uir_status status = uir_loop_verify(second, &f->diagnostics);
    if (status != UIR_STATUS_OK) show(f);
    assert_int_equal(status, UIR_STATUS_OK);
    free(printed);
    free(again);
    uir_loop_function_destroy(first);
    return second;
}

static void text_is_canonical(void **state) {
    (void)state;
    fixture *f = begin();
    uir_loop_function *function = read_text(f, COPY);
    char *printed = print_function(f, function);
    assert_non_null(strstr(printed, "  dim M in 0..64\n  dim N in 0..64\n"));
    assert_non_null(strstr(printed, "        vi, vj = axis.bind(i, j) : M, N\n        Y[vi, vj] = X[vi, vj]\n"));
    free(printed);
    uir_loop_function_destroy(function);
    end(f);
}

/* Layouts, constants, axes, uses and marks are read, printed and copied as they are said. */
static void what_is_said_of_parts_is_kept(void **state) {
    (void)state;
    static const char text[] = "func @f {\n"
                               "  dim M in 1..64\n"
                               "  tensor X : f32 [M, 8]:(M, (4, 2)):(4, (1, M*4)) in 0 constant\n"
                               "  tensor Y : f32 [M, 8]:(1, M) out 0\n"
                               "  tensor S : f32 [M] temp memory\n"
                               "  tensor T : f32 [8] temp near\n"
                               "  parallel for (i, 0, M) {\n"
                               "    vectorised for (j, 0, 8) {\n"
                               "      ScheduleBlock(B) {\n"
                               "        vi, vj = axis.bind(i, j) : M along 2, 8\n"
                               "        as contraction\n"
                               "        as mma\n"
                               "        annotate \"mine\"\n"
                               "        Y[vi, vj] = X[vi, vj]\n"
                               "      }\n"
                               "    }\n"
                               "  }\n"
                               "}\n";
    fixture *f = begin();
    uir_loop_function *function = read_and_check(f, text);
    char *printed = print_function(f, function);
    assert_string_equal(printed, text);
    assert_true(function->tensors.data[0].constant && !function->tensors.data[1].constant);
    assert_null(function->tensors.data[2].space);
    assert_string_equal(function->tensors.data[3].space, "near");
    free(printed);
    uir_loop_function_destroy(function);
    end(f);
}

/* A product with the classes of its axes: `vi`, `vj`, `vk`. */
#define PRODUCT(i, j, k, use)                                                                                          \
    "func @f {\n"                                                                                                      \
    "  tensor A : f32 [4, 6] in 0\n"                                                                                   \
    "  tensor B : f32 [6, 8] in 1\n"                                                                                   \
    "  tensor Y : f32 [4, 8] out 0\n"                                                                                  \
    "  monoid sum (a : f32) commutative {\n"                                                                           \
    "    identity f32(0)\n"                                                                                            \
    "    update (x : f32) add(a, x)\n"                                                                                 \
    "    combine (b : f32) add(a, b)\n"                                                                                \
    "    finish a\n"                                                                                                   \
    "  }\n"                                                                                                            \
    "  serial for (i, 0, 4) {\n"                                                                                       \
    "    serial for (j, 0, 8) {\n"                                                                                     \
    "      ScheduleBlock(B0) {\n"                                                                                      \
    "        vi, vj = axis.bind(i, j) : 4 along 1, 8 along 2\n"                                                        \
    "        init sum (Y[vi, vj])\n"                                                                                   \
    "      }\n"                                                                                                        \
    "      serial for (k, 0, 6) {\n"                                                                                   \
    "        ScheduleBlock(B1) {\n"                                                                                    \
    "          vi, vj, vk = axis.bind(i, j, k) : 4 along 1" i ", 8" j ", reduce 6 along 3" k "\n" use                  \
    "          update sum (Y[vi, vj]) with (mul(A[vi, vk], B[vk, vj]))\n"                                              \
    "        }\n"                                                                                                      \
    "      }\n"                                                                                                        \
    "    }\n"                                                                                                          \
    "  }\n"                                                                                                            \
    "}\n"
#define CONTRACTION "          as contraction\n"

static void what_axes_are_to_a_contraction_is_kept(void **state) {
    (void)state;
    static const char *const texts[] = {PRODUCT(" is m", " is n", " is k", CONTRACTION),
                                        PRODUCT(" is batch", " is n", " is k", CONTRACTION),
                                        PRODUCT(" is m", " is n", " is k", CONTRACTION "          as fma\n")};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fixture *f = begin();
        uir_loop_function *function = read_and_check(f, texts[i]), *copy;
        assert_int_equal(uir_loop_clone(function, &copy), UIR_STATUS_OK);
        char *printed = print_function(f, function), *copied = print_function(f, copy);
        assert_string_equal(printed, texts[i]);
        assert_string_equal(copied, texts[i]);
        free(printed);
        free(copied);
        uir_loop_function_destroy(copy);
        uir_loop_function_destroy(function);
        end(f);
    }
}

/* ---- what is rejected ---- */
typedef struct rejection {
    const char *text, *message;
} rejection;

static const rejection parse_rejections[] = {
    {"proc @f {}", "expected"},
    {"func @f {\n  tensor X : f33 [4] in 0\n}\n", "dtype"},
    {HEAD "  tensor X : f32 [M] temp sram\n}\n", "taken"},
    {COPY_BLOCK(
         "      ScheduleBlock(B) {\n        vi, vj = axis.bind(i, j) : M, N\n        Y[i, vj] = X[vi, vj]\n      }\n"),
     "i"},
    {COPY_BLOCK(
         "      ScheduleBlock(B) {\n        vi, vj = axis.bind(i, j) : M, N\n        Y[vi] = X[vi, vj]\n      }\n"),
     "2 dims, 1 indices"},
    {COPY_BLOCK(
         "      ScheduleBlock(B) {\n        vi, vj = axis.bind(i, j) : M, N\n        Y[vi, vj] = Z[vi, vj]\n      }\n"),
     "no tensor 'Z'"},
    {COPY_BLOCK("      ScheduleBlock(B) {\n        vi, vj = axis.bind(i, j) : M, N\n        Y[vi, vj] = frob(X[vi, "
                "vj])\n      }\n"),
     "'frob'"},
    {COPY_BLOCK("      ScheduleBlock(B) {\n        vi, vj = axis.bind(i, j) : M, N\n        Y[vi, vj] = add(X[vi, "
                "vj])\n      }\n"),
     "expects 2 arguments"},
    {COPY_BLOCK("      ScheduleBlock(B) {\n        vi, vj = axis.bind(i, j) : M, N\n        Y[vi, vj] = add(X[vi, vj], "
                "i64(1))\n      }\n"),
     "cast one of them"},
    {COPY_BLOCK(
         "      ScheduleBlock(B) {\n        vi, vi = axis.bind(i, j) : M, N\n        Y[vi, vi] = X[vi, vi]\n      }\n"),
     "two iteration variables"},
    {COPY_BLOCK("      ScheduleBlock(B) {\n        vi, vj = axis.bind(i, j) : M, N\n      }\n"), "does nothing"},
    {COPY_BLOCK("      serial for (i, 0, N) {\n      }\n"), "an enclosing loop is also named"},
    {HEAD "  tensor L : f32 [M, N]:(1, 2):(1) temp near\n}\n", "expected"},
    {HEAD "  tensor L : f32 [M, N]:(M, (4, 2)):(4, 1) temp near\n}\n", "its sizes and strides differ in number"},
    {HEAD "  tensor L : f32 [M, N] out 1 constant\n}\n", "expected"},
    {COPY_BLOCK("      ScheduleBlock(B) {\n        vi, vj = axis.bind(i, j) : M along 0, N\n        Y[vi, vj] = X[vi, "
                "vj]\n      }\n"),
     "axes are numbered from 1"},
    {COPY_BLOCK("      ScheduleBlock(B) {\n        vi, vj = axis.bind(i, j) : M, N\n        as such\n        Y[vi, vj] "
                "= X[vi, vj]\n      }\n"),
     "expected a use of a block: contraction"},
    {PRODUCT(" is rows", " is n", " is k", CONTRACTION), "expected the class of a contraction's axis"},
    {HEAD "  monoid bad (a : f32) {\n    identity i64(0)\n", "the state is f32"},
    {HEAD "  monoid bad (a : f32) {\n    identity f32(0)\n    update (x : f32) X[0, 0]\n", "not tensors"},
};

static const rejection verify_rejections[] = {
    {PRODUCT(" is n", " is n", " is k", CONTRACTION), "vi is n, but operand A depends on it"},
    {PRODUCT(" is m", " is m", " is k", CONTRACTION), "vj is m, but operand B depends on it"},
    {PRODUCT(" is m", " is n", " is batch", CONTRACTION), "vk is batch, but a reduction axis"},
    {PRODUCT(" is k", " is n", " is k", CONTRACTION), "vi is k, but not a reduction axis"},
    {PRODUCT(" is m", " is n", " is k", ""), "classes of a contraction, but the block is not a contraction"},
    {COPY_BLOCK("      ScheduleBlock(B) {\n        vi, vj = axis.bind(i, j) : M, reduce N\n        as fma\n        "
                "update sum (S[vi]) with (X[vi, vj])\n      }\n"),
     "declared `as fma`, but does not sum products of floats"},
    {COPY_BLOCK("      ScheduleBlock(B) {\n        vi, vj = axis.bind(i, j) : M, N\n        Y[vi, vj] = X[vi, vj + "
                "1]\n      }\n"),
     "not proved to be below N"},
    {COPY_BLOCK("      ScheduleBlock(B) {\n        vi, vj = axis.bind(i, j) : M, N\n        Y[vi, vj] = X[vi, vj - "
                "1]\n      }\n"),
     "at least 0"},
    {COPY_BLOCK("      ScheduleBlock(B) {\n        vi, vj = axis.bind(i, j*2) : M, N\n        Y[vi, vj] = X[vi, vj]\n  "
                "    }\n"),
     "add a `where`"},
    {COPY_BLOCK("      ScheduleBlock(B) {\n        vi, vj = axis.bind(i, j) : M, N\n        X[vi, vj] = f32(1)\n       "
                " Y[vi, vj] = f32(1)\n      }\n"),
     "is an input"},
    {COPY_BLOCK("      ScheduleBlock(B) {\n        vi, vj = axis.bind(i, j) : M, reduce N\n        Y[vi, vj] = X[vi, "
                "vj]\n      }\n"),
     "reduce iteration variable vj"},
    {COPY_BLOCK(
         "      ScheduleBlock(B) {\n        vi, vj = axis.bind(i, j) : M, N\n        Y[vi, vj] = S[vi]\n      }\n"),
     "read before"},
    {COPY_BLOCK(
         "      ScheduleBlock(B) {\n        vi, vj = axis.bind(i, j) : M, N\n        S[vi] = X[vi, vj]\n      }\n"),
     "output 'Y' is never stored"},
    {COPY_BLOCK(
         "      ScheduleBlock(B) {\n        vi, vj = axis.bind(i, j) : M, N\n        Y[vi, vj] = index(vi)\n      }\n"),
     "i64 is stored"},
    {COPY_BLOCK("      ScheduleBlock(B) {\n        vi, vj = axis.bind(i, j) : M, N\n        update sum (S[vi]) with "
                "(X[vi, vj])\n        Y[vi, vj] = X[vi, vj]\n      }\n"),
     "before init"},
    {COPY_BLOCK("      ScheduleBlock(B) {\n        vi, vj = axis.bind(i, j) : M, N\n        init sum (S[vi], S[vi])\n  "
                "      Y[vi, vj] = X[vi, vj]\n      }\n"),
     "has 2 targets, needs 1"},
    {COPY_BLOCK("      ScheduleBlock(B) {\n        vi, vj = axis.bind(i, j) : M, N\n        init sum (S[vi])\n        "
                "update sum (S[vi]) with (index(vi))\n        Y[vi, vj] = X[vi, vj]\n      }\n"),
     "value 0 is i64, needs f32"},
    {COPY_BLOCK(
         "      ScheduleBlock(B) {\n        vi, vj = axis.bind(i, j) : M, N\n        Y[vi, vj] = X[vi, vj]\n      }\n  "
         "    ScheduleBlock(B) {\n        vi, vj = axis.bind(i, j) : M, N\n        Y[vi, vj] = X[vi, vj]\n      }\n"),
     "two blocks"},
    {"func @f {\n  dim M\n  tensor X : f32 [M] in 0\n  tensor Z : f32 [M + 1] in 0\n  tensor Y : f32 [M - 1] out 0\n  "
     "serial for (i, 0, M) {\n    ScheduleBlock(B) {\n      vi = axis.bind(i) : M\n      Y[vi] = X[vi]\n    }\n  "
     "}\n}\n",
     "same argument, but not of one dtype and size"},
    {"func @f {\n  dim M\n  tensor X : f32 [M] in 0\n  tensor Y : f32 [M] out 0\n  tensor Z : f32 [M] out 0\n  "
     "serial for (i, 0, M) {\n    ScheduleBlock(B) {\n      vi = axis.bind(i) : M\n      Y[vi] = X[vi]\n    }\n  "
     "}\n}\n",
     "same result"},
    {"func @f {\n  dim M\n  tensor X : f32 [M] in 0\n  tensor Y : f32 [M - 1] out 0\n  serial for (i, 0, M) {\n    "
     "ScheduleBlock(B) {\n      vi = axis.bind(i) : M\n      Y[vi] = X[vi]\n    }\n  }\n}\n",
     "may be negative"},
};

static void parser_rejects(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof parse_rejections / sizeof *parse_rejections; i++) {
        fixture *f = begin();
        uir_loop_function *function = NULL;
        const rejection *r = &parse_rejections[i];
        assert_int_equal(uir_loop_parse(&f->allocator, r->text, strlen(r->text), "test", &f->diagnostics, &function),
                         UIR_STATUS_BAD_FILE);
        assert_null(function);
        if (!said(f, r->message)) {
            show(f);
            fail_msg("case %zu: nothing says '%s'", i, r->message);
        }
        end(f);
    }
}

static void verifier_rejects(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof verify_rejections / sizeof *verify_rejections; i++) {
        fixture *f = begin();
        const rejection *r = &verify_rejections[i];
        uir_loop_function *function = read_text(f, r->text);
        assert_int_equal(uir_loop_verify(function, &f->diagnostics), UIR_STATUS_BAD_FILE);
        if (!said(f, r->message)) {
            show(f);
            fail_msg("case %zu: nothing says '%s'", i, r->message);
        }
        uir_loop_function_destroy(function);
        end(f);
    }
}

/* ---- what programs compute ---- */
static const char softmax[] =
    "func @softmax {\n  dim M, N\n  tensor X : f32 [M, N] in 0\n  tensor Y : f32 [M, N] out 0\n"
    "  tensor m : f32 [M] temp sram\n  tensor s : f32 [M] temp sram\n"
    "  monoid online (top : f32, total : f32) {\n    identity f32(-inf), f32(0)\n"
    "    update (x : f32) max(top, x), add(mul(total, exp(sub(top, max(top, x)))), exp(sub(x, max(top, x))))\n"
    "    combine (other : f32, more : f32) max(top, other), add(mul(total, exp(sub(top, max(top, other)))), mul(more, "
    "exp(sub(other, max(top, other)))))\n"
    "    finish top, total\n  }\n"
    "  parallel for (i, 0, M) {\n"
    "    ScheduleBlock(start) { vi = axis.bind(i) : M  init online (m[vi], s[vi]) }\n"
    "    serial for (k0, 0, ceildiv(N, 5)) { unrolled for (k1, 0, 5) {\n"
    "      ScheduleBlock(reduce) { vi, vk = axis.bind(i, k0*5 + k1) : M, reduce N  where k0*5 + k1 < N  update online "
    "(m[vi], s[vi]) with (X[vi, vk]) }\n"
    "    } }\n"
    "    vectorised for (j, 0, N) {\n"
    "      ScheduleBlock(scale) { vi, vj = axis.bind(i, j) : M, N  Y[vi, vj] = div(exp(sub(X[vi, vj], m[vi])), s[vi]) "
    "}\n"
    "    }\n  }\n}\n";

static void softmax_is_softmax(void **state) {
    (void)state;
    fixture *f = begin();
    uir_loop_function *function = read_and_check(f, softmax);
    static const int64_t sizes[][2] = {{0, 3}, {3, 0}, {1, 1}, {4, 7}, {2, 5}, {3, 13}};
    for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++) {
        int64_t m = sizes[c][0], n = sizes[c][1];
        float x[64], y[64];
        for (int i = 0; i < 64; i++) x[i] = (float)((i * 37) % 17) * 0.5f - 4;
        void *tensors[] = {x, y};
        assert_int_equal(uir_loop_interpret(function, sizes[c], tensors, NULL, &f->diagnostics), UIR_STATUS_OK);
        for (int64_t i = 0; i < m; i++) {
            double top = -INFINITY, total = 0;
            for (int64_t j = 0; j < n; j++) top = fmax(top, (double)x[i * n + j]);
            for (int64_t j = 0; j < n; j++) total += exp((double)x[i * n + j] - top);
            for (int64_t j = 0; j < n; j++)
                assert_true(fabs((double)y[i * n + j] - exp((double)x[i * n + j] - top) / total) < 1e-6);
        }
    }
    uir_loop_function_destroy(function);
    end(f);
}

/* Two steps: partial states per part of the row, then combined; the first of equal values wins in both. */
static const char argmax[] =
    "func @argmax {\n  dim N\n  tensor X : f32 [N] in 0\n  tensor Y : i64 [] out 0\n"
    "  tensor pv : f32 [4] temp sram\n  tensor pi : i64 [4] temp sram\n  tensor v : f32 [] temp reg\n  tensor at : i64 "
    "[] temp reg\n"
    "  monoid first_max (value : f32, index : i64) {\n    identity f32(-inf), i64(9223372036854775807)\n"
    "    update (x : f32, i : i64) max(value, x), select(gt(x, value), i, select(eq(x, value), min(index, i), index))\n"
    "    combine (x : f32, i : i64) max(value, x), select(gt(x, value), i, select(eq(x, value), min(index, i), "
    "index))\n"
    "    finish index\n  }\n"
    "  parallel for (p, 0, 4) {\n"
    "    ScheduleBlock(start) { vp = axis.bind(p) : 4  init first_max (pv[vp], pi[vp]) }\n"
    "    serial for (k, 0, ceildiv(N, 4)) {\n"
    "      ScheduleBlock(part) { vp, vk = axis.bind(p, p*ceildiv(N, 4) + k) : 4, reduce N  where p*ceildiv(N, 4) + k < "
    "N  update first_max (pv[vp], pi[vp]) with (X[vk], index(vk)) }\n"
    "    }\n  }\n"
    "  ScheduleBlock(begin) { init first_max (v[], at[]) }\n"
    "  serial for (q, 0, 4) {\n    ScheduleBlock(join) { vq = axis.bind(q) : reduce 4  combine first_max (v[], at[]) "
    "with (pv[vq], pi[vq]) }\n  }\n"
    "  ScheduleBlock(result) { finish first_max (Y[]) with (v[], at[]) }\n}\n";

static void argmax_takes_the_first(void **state) {
    (void)state;
    fixture *f = begin();
    uir_loop_function *function = read_and_check(f, argmax);
    for (int64_t n = 1; n < 20; n++) {
        float x[20];
        int64_t got = -1, want = 0;
        for (int64_t i = 0; i < n; i++) x[i] = (float)((i * 7 + n) % 5);
        for (int64_t i = 1; i < n; i++) want = x[i] > x[want] ? i : want;
        void *tensors[] = {x, &got};
        assert_int_equal(uir_loop_interpret(function, &n, tensors, NULL, &f->diagnostics), UIR_STATUS_OK);
        assert_int_equal(got, want);
    }
    uir_loop_function_destroy(function);
    end(f);
}

static void interpreter_finds_faults(void **state) {
    (void)state;
    static const rejection faults[] = {
        {"func @f {\n  dim N in 1..8\n  tensor X : f32 [N] in 0\n  tensor Y : f32 [N] out 0\n  serial for (i, 0, N) "
         "{\n    ScheduleBlock(B) {\n      vi = axis.bind(i) : N\n      Y[vi] = X[vi + 1]\n    }\n  }\n}\n",
         "is outside"},
        {"func @f {\n  dim N in 1..8\n  tensor X : f32 [N] in 0\n  tensor Y : f32 [N] out 0\n  serial for (i, 1, N - "
         "1) {\n    ScheduleBlock(B) {\n      vi = axis.bind(i) : N\n      Y[vi] = X[vi]\n    }\n  }\n}\n",
         "never written"},
        {"func @f {\n  dim N in 1..8\n  tensor X : f32 [N] in 0\n  tensor Y : f32 [N] out 0\n  serial for (i, 0, N) "
         "{\n    ScheduleBlock(B) {\n      vi = axis.bind(i) : N\n      Y[vi] = add(Y[vi], X[vi])\n    }\n  }\n}\n",
         "read before it is written"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        fixture *f = begin();
        uir_loop_function *function = read_text(f, faults[i].text);
        float x[8] = {0}, y[8];
        int64_t n = 5;
        void *tensors[] = {x, y};
        assert_int_equal(uir_loop_interpret(function, &n, tensors, NULL, &f->diagnostics), UIR_STATUS_BAD_DATA);
        assert_true(said(f, faults[i].message));
        uir_loop_function_destroy(function);
        end(f);
    }
}

/* Every prefix of a program, and every program with one byte changed, ends in a status: nothing crashes or hangs. */
static void damaged_text_is_harmless(void **state) {
    (void)state;
    static const char *const programs[] = {softmax, argmax, COPY};
    static const char bytes[] = "{}()[],.:=0axi\"%@\n \x01\xff";
    for (size_t p = 0; p < 3; p++) {
        size_t n = strlen(programs[p]);
        char *text = strdup(programs[p]);
        for (size_t i = 0; i < n; i++) {
            fixture *f = begin();
            uir_loop_function *function = NULL;
            char kept = text[i];
            text[i] = bytes[i % (sizeof bytes - 1)];
            if (uir_loop_parse(&f->allocator, text, i % 2 ? n : i + 1, "test", &f->diagnostics, &function) ==
                UIR_STATUS_OK) {
                (void)!uir_loop_verify(function, &f->diagnostics);
            }
            uir_loop_function_destroy(function);
            text[i] = kept;
            end(f);
        }
        free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_canonical),
        cmocka_unit_test(what_is_said_of_parts_is_kept),
        cmocka_unit_test(what_axes_are_to_a_contraction_is_kept),
        cmocka_unit_test(parser_rejects),
        cmocka_unit_test(verifier_rejects),
        cmocka_unit_test(softmax_is_softmax),
        cmocka_unit_test(argmax_takes_the_first),
        cmocka_unit_test(interpreter_finds_faults),
        cmocka_unit_test(damaged_text_is_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
