/* roll: functions in text whose sums depend on a reduction, made running ones; and what it must refuse.
 *
 *   test_schedule_roll [-v]     prints each function after its steps
 *
 * Results agree with those of the function as it was, within rounding, also where whole tiles are worth -inf; the trace
 * replays to the same text. */
#include "lower/schedule/schedule.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 40, TENSORS = 4 };

typedef struct program {
    const char *name, *text, *steps, *why; /* why NULL: the steps are taken */
} program;

#define SUM                                                                                                            \
    " monoid sum (a : f32) commutative { identity f32(0) update (x : f32) add(a, x) combine (b : f32) add(a, b)"       \
    " finish a }"
#define MAX                                                                                                            \
    " monoid max (a : f32) commutative { identity f32(-inf) update (x : f32) max(a, x) combine (b : f32) max(a, b)"    \
    " finish a }"
#define MIN                                                                                                            \
    " monoid min (a : f32) commutative { identity f32(inf) update (x : f32) min(a, x) combine (b : f32) min(a, b)"     \
    " finish a }"
#define TENSORS_OF(more)                                                                                               \
    " tensor X : f32 [M, N] in 0 tensor V : f32 [N, D] in 1 tensor Y : f32 [M, D] out 0 tensor m : f32 [M] temp sram"  \
    " tensor E : f32 [M, N] temp sram tensor l : f32 [M] temp sram tensor O : f32 [M, D] temp sram" more
/* The greatest (least) of a row, exponentials of the difference, their sum, and their sum of products. */
#define EXTREME(monoid)                                                                                                \
    " serial for (i, 0, M) { ScheduleBlock(m_init) { v = axis.bind(i) : M init " monoid " (m[v]) } }"                  \
    " serial for (i, 0, M) { serial for (k, 0, N) { ScheduleBlock(m) { v, r = axis.bind(i, k) : M, reduce N "          \
    "update " monoid " (m[v]) with (X[v, r]) } } }"
#define EXPONENTIAL(value)                                                                                             \
    " serial for (i, 0, M) { serial for (k, 0, N) { ScheduleBlock(E) { v, w = axis.bind(i, k) : M, N E[v, w] = " value \
    " } } }"
#define TOTAL                                                                                                          \
    " serial for (i, 0, M) { ScheduleBlock(l_init) { v = axis.bind(i) : M init sum (l[v]) } }"                         \
    " serial for (i, 0, M) { serial for (k, 0, N) { ScheduleBlock(l) { v, r = axis.bind(i, k) : M, reduce N update "   \
    "sum (l[v]) with (E[v, r]) } } }"
#define PRODUCT(value)                                                                                                 \
    " serial for (i, 0, M) { serial for (j, 0, D) { ScheduleBlock(O_init) { v, w = axis.bind(i, j) : M, D init sum"    \
    " (O[v, w]) } } }"                                                                                                 \
    " serial for (i, 0, M) { serial for (j, 0, D) { serial for (k, 0, N) { ScheduleBlock(O) { v, w, r = "              \
    "axis.bind(i, j, k) : M, D, reduce N update sum (O[v, w]) with (" value ") } } } }"
#define RESULT(value)                                                                                                  \
    " serial for (i, 0, M) { serial for (j, 0, D) { ScheduleBlock(Y) { v, w = axis.bind(i, j) : M, D Y[v, w] = " value \
    " } } }"

#define SOFTMAX                                                                                                        \
    SUM MAX TENSORS_OF("") EXTREME("max") EXPONENTIAL("exp(sub(X[v, w], m[v]))")                                       \
        TOTAL PRODUCT("mul(E[v, r], V[r, w])") RESULT("div(O[v, w], l[v])")

/* The keys of the product by tiles of 4, all before them along these. */
#define TILES "split k of O by 4: k_o, k_i\nreorder k_o of O, i of O, j of O, k_i of O\n"
#define TOTAL_BY_TILES                                                                                                 \
    "split k of l by 4: k_o, k_i\nreorder k_o of l, i of l, k_i of l\nrfactor l at k_o of l: l_part\n"                 \
    "reorder k_o_2 of l_combine, i_2 of l_combine\nmerge k_o_2 of l_combine into k_o of O\n"                           \
    "merge k_o of l into k_o of O\nreorder k_o_2 of l_part_init, i_2 of l_part_init\n"                                 \
    "merge k_o_2 of l_part_init into k_o of O\n"
#define EXPONENTIAL_BY_TILES "compute E at k_o of O\n"
#define EXTREME_BY_TILES                                                                                               \
    "split k of m by 4: k_o, k_i\nreorder k_o of m, i of m, k_i of m\nrfactor m at k_o of m: m_part\n"
#define ROLL "roll m_combine at k_o of O: m_old, m_scale\n"
#define EXTREME_IN_LOOP                                                                                                \
    "merge k_o of m into k_o of O\nreorder k_o_2 of m_part_init, i_2 of m_part_init\n"                                 \
    "merge k_o_2 of m_part_init into k_o of O\n"

/* The same with the loop over keys around exponentials and product already. */
#define INITS                                                                                                          \
    " serial for (i, 0, M) { serial for (j, 0, D) { ScheduleBlock(O_init) { v, w = axis.bind(i, j) : M, D init sum"    \
    " (O[v, w]) } } }"
#define E_ROWS(value) " serial for (i, 0, M) { ScheduleBlock(E) { v, w = axis.bind(i, k) : M, N E[v, w] = " value " } }"
#define O_ROWS(value)                                                                                                  \
    " serial for (i, 0, M) { serial for (j, 0, D) { ScheduleBlock(O) { v, w, r = axis.bind(i, j, k) : M, D, reduce N"  \
    " update sum (O[v, w]) with (" value ") } } }"
#define KEYS(body) INITS " serial for (k, 0, N) {" body " }"
#define DIFFERENCE "exp(sub(X[v, w], m[v]))"
#define WEIGHTED   "mul(E[v, r], V[r, w])"
#define ROLLED     "roll m at k of O: m_old, m_scale"
#define BASE(extreme, exponential, product)                                                                            \
    SUM MAX TENSORS_OF("") extreme KEYS(E_ROWS(exponential) O_ROWS(product)) RESULT("O[v, w]")

/* Weights of their own, and their products. */
#define WEIGHTS(value)                                                                                                 \
    SUM MAX TENSORS_OF(" tensor W : f32 [M, N] temp sram") EXTREME("max") EXPONENTIAL(DIFFERENCE) TOTAL                \
        " serial for (i, 0, M) { serial for (k, 0, N) { ScheduleBlock(W) { v, w = axis.bind(i, k) : M, N"              \
        " W[v, w] = " value " } } }" PRODUCT("mul(W[v, r], V[r, w])") RESULT("O[v, w]")

static const program programs[] = {
    {"softmax", SOFTMAX, TILES TOTAL_BY_TILES EXPONENTIAL_BY_TILES EXTREME_BY_TILES ROLL EXTREME_IN_LOOP, NULL},
    {"the least",
     SUM MIN TENSORS_OF("") EXTREME("min") EXPONENTIAL("exp(sub(m[v], X[v, w]))") TOTAL PRODUCT(WEIGHTED)
         RESULT("div(O[v, w], l[v])"),
     TILES TOTAL_BY_TILES EXPONENTIAL_BY_TILES EXTREME_BY_TILES ROLL EXTREME_IN_LOOP, NULL},
    {"key by key", BASE(EXTREME("max"), DIFFERENCE, WEIGHTED), ROLLED, NULL},
    {"a quotient of what depends on it", BASE(EXTREME("max"), DIFFERENCE, "div(mul(V[r, w], E[v, r]), f32(3))"), ROLLED,
     NULL},
    {"a multiple that is stored",
     SUM MAX TENSORS_OF(" tensor F : f32 [M, N] temp sram") EXTREME("max")
         KEYS(E_ROWS(DIFFERENCE) " serial for (i, 0, M) { ScheduleBlock(F) { v, w = axis.bind(i, k) : M, N F[v, w] ="
                                 " mul(E[v, w], X[v, w]) } }" O_ROWS("mul(F[v, r], V[r, w])")) RESULT("O[v, w]"),
     ROLLED, NULL},
    {"a sum", SOFTMAX, "roll l at k of O: m_old, m_scale", "neither a maximum nor a minimum"},
    {"another range", SOFTMAX, TILES "roll m at k_o of O: m_old, m_scale", "does not reduce over the range of"},
    {"a reader before the loop", SOFTMAX, "reorder k of O, i of O, j of O\n" ROLLED, "reads m outside"},
    {"not before the loop", SOFTMAX, "roll m at i of m: m_old, m_scale", "does not reduce over the range of"},
    {"in the loop", BASE(EXTREME("max"), DIFFERENCE, WEIGHTED), "roll m at k of m: m_old, m_scale", "are not before"},
    {"another function", BASE(EXTREME("max"), "sub(X[v, w], m[v])", WEIGHTED), ROLLED, "cannot be rescaled"},
    {"the difference the other way round", BASE(EXTREME("max"), "exp(sub(m[v], X[v, w]))", WEIGHTED), ROLLED,
     "cannot be rescaled"},
    {"a difference that depends on it twice", BASE(EXTREME("max"), "exp(sub(mul(X[v, w], m[v]), m[v]))", WEIGHTED),
     ROLLED, "cannot be rescaled"},
    {"a sum of something else besides", BASE(EXTREME("max"), DIFFERENCE, "add(E[v, r], V[r, w])"), ROLLED,
     "neither a multiple of E"},
    {"a square", BASE(EXTREME("max"), DIFFERENCE, "mul(E[v, r], E[v, r])"), ROLLED, "neither a multiple of E"},
    {"the keys themselves", BASE(EXTREME("max"), DIFFERENCE, "mul(X[v, r], V[r, w])"), ROLLED, "no sum along"},
    {"a part of the keys",
     BASE(" serial for (i, 0, M) { ScheduleBlock(m_init) { v = axis.bind(i) : M init max (m[v]) } }"
          " serial for (i, 0, M) { serial for (k, 0, N) { ScheduleBlock(m) { v, r = axis.bind(i, k) : M, reduce N"
          " where k < 3 update max (m[v]) with (X[v, r]) } } }",
          DIFFERENCE, WEIGHTED),
     ROLLED, "does not reduce over its whole range"},
    {"another row's greatest", BASE(EXTREME("max"), "exp(sub(X[v, w], m[M - 1 - v]))", WEIGHTED), ROLLED,
     "along the variables of m"},
    {"what is wanted outside",
     SUM MAX TENSORS_OF(" tensor Z : f32 [M, N] out 1") EXTREME("max")
         KEYS(" serial for (i, 0, M) { ScheduleBlock(E) { v, w = axis.bind(i, k) : M, N Z[v, w] = exp(sub(X[v, w],"
              " m[v])) } }" O_ROWS("mul(X[v, r], V[r, w])")) RESULT("O[v, w]"),
     ROLLED, "is not a temporary tensor"},
    {"sums that are read on the way",
     SUM MAX TENSORS_OF(" tensor Z : f32 [M, N, D] out 1") EXTREME("max") KEYS(E_ROWS(DIFFERENCE) O_ROWS(
         WEIGHTED) " serial for (i, 0, M) { serial for (j, 0, D) { ScheduleBlock(Z) { v, w, r = axis.bind(i, j, k) : M,"
                   " D, N Z[v, r, w] = O[v, w] } } }") RESULT("O[v, w]"),
     ROLLED, "reads incomplete sums"},
    {"exponentials of an iteration before",
     SUM MAX TENSORS_OF("") EXTREME("max") KEYS(O_ROWS("mul(E[v, r], V[r, w])") E_ROWS(DIFFERENCE)) RESULT("O[v, w]"),
     ROLLED, "not proved to be written in the same iteration"},
    {"exponentials of an iteration before, where others were before the loop",
     SUM MAX TENSORS_OF("") EXTREME("max") " serial for (i, 0, M) { serial for (k, 0, N) { ScheduleBlock(E_first) { v, "
                                           "w = axis.bind(i, k) : M, N E[v, w]"
                                           " = f32(1) } } }" KEYS(O_ROWS("mul(E[v, r], V[r, w])") E_ROWS(DIFFERENCE))
                                               RESULT("O[v, w]"),
     ROLLED, "not proved to be written in the same iteration"},
    {"exponentials that are written over",
     SUM MAX TENSORS_OF("") EXTREME("max")
         KEYS(E_ROWS(DIFFERENCE) " serial for (i, 0, M) { ScheduleBlock(E_over) { v, w = axis.bind(i, k) : M, N E[v, "
                                 "w] = f32(1) } }" O_ROWS("mul(E[v, r], V[r, w])")) RESULT("O[v, w]"),
     ROLLED, "E_over also writes E"},
    {"begun anew at other numbers",
     SUM MAX TENSORS_OF("") EXTREME("max") " serial for (i, 0, M) { ScheduleBlock(again) { v = axis.bind(i) : M m[v] = "
                                           "X[v, 0] fill 0 } }" KEYS(E_ROWS(DIFFERENCE) O_ROWS(WEIGHTED))
                                               RESULT("O[v, w]"),
     ROLLED, "also writes m"},
    {"sums begun at other numbers",
     SUM MAX TENSORS_OF("") EXTREME("max") " serial for (i, 0, M) { serial for (j, 0, D) { ScheduleBlock(O_first) { v, "
                                           "w = axis.bind(i, j) : M, D O[v, w]"
                                           " = f32(1) } } }" KEYS(E_ROWS(DIFFERENCE) O_ROWS(WEIGHTED))
                                               RESULT("O[v, w]"),
     ROLLED, "also writes O"},
    {"factor out", WEIGHTS("div(E[v, w], l[v])"), "factor out of O: O_quotient", NULL},
    {"factor out: NaN is nothing", WEIGHTS("select(is_nan(div(E[v, w], l[v])), f32(0), div(E[v, w], l[v]))"),
     "factor out of O: O_quotient", NULL},
    {"factor out: other sums", WEIGHTS("div(X[v, w], l[v])"), "factor out of O: O_quotient", NULL},
    {"factor out: NaN of other sums", WEIGHTS("select(is_nan(div(X[v, w], l[v])), f32(0), div(X[v, w], l[v]))"),
     "factor out of O: O_quotient", "does not make its row NaN"},
    {"factor out: NaN is something", WEIGHTS("select(is_nan(div(E[v, w], l[v])), f32(1), div(E[v, w], l[v]))"),
     "factor out of O: O_quotient", "does not store a quotient"},
    {"factor out: by what is summed over", WEIGHTS("div(E[v, w], X[v, w])"), "factor out of O: O_quotient",
     "a reduction axis of"},
    {"factor out: a product", WEIGHTS("mul(E[v, w], l[v])"), "factor out of O: O_quotient",
     "does not store a quotient"},
    {"factor out: no sum of products", WEIGHTS("div(E[v, w], l[v])"), "factor out of l: Q", "not a sum of products"},
    {"factor out: nothing stored", SOFTMAX, "factor out of O: O_quotient", "for it only"},
    {"factor out: late", WEIGHTS("div(E[v, w], l[v])"), TILES "compute O at i of Y\nfactor out of O: O_quotient",
     "whole iteration space"},
    {"merge into: what stands between needs it",
     SUM MAX TENSORS_OF("") EXTREME("max") EXPONENTIAL(DIFFERENCE) TOTAL PRODUCT(WEIGHTED) RESULT("div(O[v, w], l[v])"),
     "merge i of E into i of O", "order is reversed"},
};

typedef struct trial {
    const program *of;
    uir_allocator allocator;
    uir_diagnostics diagnostics;
    float data[TENSORS][MOST * MOST * MOST];
} trial;

static bool fault(const trial *t, const char *what, const uir_loop_function *f) {
    printf("%s: %s\n", t->of->name, what);
    for (const uir_diagnostic *d = t->diagnostics.first; d; d = d->next) printf("  %s\n", d->message);
    if (f) {
        uir_text text;
        uir_text_init(&text, &t->allocator);
        uir_loop_print(f, &text);
        printf("%s\n", text.data ? text.data : "");
        uir_text_deinit(&text);
    }
    return false;
}

static uir_loop_function *parse(trial *t) {
    uir_loop_function *f = NULL;
    char text[8000];
    snprintf(text, sizeof text, "func @k { dim M in 0..%d dim N in 0..%d dim D in 0..%d %s }", MOST, MOST, MOST,
             t->of->text);
    (void)uir_loop_parse(&t->allocator, text, strlen(text), t->of->name, &t->diagnostics, &f);
    return f;
}

/* Numbers, and where `masked` rows of which the first tiles, or (where sums are divided by a sum that is 0 then) all
 * keys, are worth -inf. */
static void fill(trial *t, const int64_t *sizes, bool masked) {
    uint64_t bits = 88172645463325252u;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < MOST * MOST; i++) {
            bits = bits * 6364136223846793005u + 1442695040888963407u;
            t->data[k][i] = (float)(bits >> 40) / (float)(1 << 21) - 4.0f;
        }
    bool divided = strstr(t->of->text, ", l[v])");
    for (int64_t i = 0; masked && i < sizes[0]; i++)
        for (int64_t k = 0; k < sizes[1]; k++)
            if (i % 3 && (k < 6 ? k < sizes[1] - 1 || divided : i % 3 == 2 && divided))
                t->data[0][i * sizes[1] + k] = -INFINITY;
}

static bool run(trial *t, const uir_loop_function *f, const int64_t *sizes, int output) {
    void *tensors[3] = {t->data[0], t->data[1], t->data[output]};
    return uir_loop_interpret(f, sizes, tensors, NULL, &t->diagnostics) == UIR_STATUS_OK;
}

static bool same(const trial *t, const int64_t *sizes) {
    for (int64_t i = 0; i < sizes[0] * sizes[2]; i++) {
        float x = t->data[2][i], y = t->data[3][i];
        if (isnan(x) || isnan(y) ? !(isnan(x) && isnan(y)) : fabsf(x - y) > 1e-4f * (1 + fabsf(x))) {
            printf("element %lld is %g, should be %g\n", (long long)i, (double)y, (double)x);
            return false;
        }
    }
    return true;
}

static bool replays(trial *t, uir_schedule *schedule, const uir_loop_function *f) {
    uir_loop_function *again = parse(t);
    uir_schedule *other = NULL;
    uir_text texts[2];
    const uir_text *trace = uir_schedule_trace(schedule);
    bool good = uir_schedule_create(again, NULL, &t->diagnostics, &other) == UIR_STATUS_OK &&
                uir_schedule_replay(other, trace->data ? trace->data : "", trace->length) == UIR_STATUS_OK;
    for (int i = 0; i < 2; i++) {
        uir_text_init(&texts[i], &t->allocator);
        uir_loop_print(i ? again : f, &texts[i]);
    }
    good = good && !strcmp(texts[0].data, texts[1].data);
    for (int i = 0; i < 2; i++) uir_text_deinit(&texts[i]);
    uir_schedule_destroy(other);
    uir_loop_function_destroy(again);
    return good;
}

static bool check(trial *t, bool verbose) {
    static const int64_t tried[][3] = {{3, 10, 2}, {1, 1, 1}, {5, 8, 3}, {2, 0, 2}, {0, 3, 1}, {7, 33, 5}, {4, 4, 0}};
    const program *p = t->of;
    uir_loop_function *before = parse(t), *after = parse(t);
    uir_schedule *schedule = NULL;
    if (!before || !after) return fault(t, "does not parse", NULL);
    bool good = uir_schedule_create(after, NULL, &t->diagnostics, &schedule) == UIR_STATUS_OK;
    uir_status status = uir_schedule_replay(schedule, p->steps, strlen(p->steps));
    if (verbose) fault(t, "after its steps:", after);
    if (p->why) {
        if (status != UIR_STATUS_UNSUPPORTED || !strstr(uir_schedule_why(schedule), p->why))
            good = fault(t, status ? uir_schedule_why(schedule) : "is taken", after);
    } else {
        good = good && status == UIR_STATUS_OK && uir_loop_verify(after, &t->diagnostics) == UIR_STATUS_OK;
        if (!good) good = fault(t, "is refused", after);
        for (size_t i = 0; good && i < 2 * sizeof tried / sizeof *tried; i++) {
            fill(t, tried[i / 2], i % 2);
            if (!run(t, before, tried[i / 2], 2) || !run(t, after, tried[i / 2], 3) || !same(t, tried[i / 2]))
                good = fault(t, "has other results", after);
        }
        if (good && !replays(t, schedule, after)) good = fault(t, "its trace does not replay", after);
    }
    uir_schedule_destroy(schedule);
    uir_loop_function_destroy(before);
    uir_loop_function_destroy(after);
    return good;
}

int main(int argc, char **argv) {
    static trial t;
    bool verbose = argc > 1 && !strcmp(argv[1], "-v");
    int wrong = 0;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        t.of = &programs[i];
        t.allocator = uir_allocator_system();
        uir_diagnostics_init(&t.diagnostics, &t.allocator);
        wrong += !check(&t, verbose);
        uir_diagnostics_deinit(&t.diagnostics);
    }
    printf("%zu programs, %d wrong\n", sizeof programs / sizeof *programs, wrong);
    return wrong != 0;
}
