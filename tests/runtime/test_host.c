/* What a run computes by itself: sizes, the shapes that inputs have, host operators, nodes that its opener computes. */
#include "tests/runtime/support.h"

#include "base/dims/dim.h"
#include "package/plan.h"

#include <math.h>
#include <string.h>

/* ---- sizes ---- */
static bool by_hand(uint32_t kind, int64_t a, int64_t b, int64_t *out) {
    bool divides = kind == UIR_DIM_FLOORDIV || kind == UIR_DIM_CEILDIV || kind == UIR_DIM_MOD;
    double quotient = divides && b > 0 ? (double)a / (double)b : 0;
    *out = kind == UIR_DIM_ADD        ? a + b
           : kind == UIR_DIM_MUL      ? a * b
           : kind == UIR_DIM_MIN      ? (a < b ? a : b)
           : kind == UIR_DIM_MAX      ? (a > b ? a : b)
           : kind == UIR_DIM_FLOORDIV ? (int64_t)floor(quotient)
           : kind == UIR_DIM_CEILDIV  ? (int64_t)ceil(quotient)
                                      : a - (int64_t)floor(quotient) * b;
    return !divides || b > 0;
}

static void test_expressions(void **state) {
    (void)state;
    static const uint32_t kinds[] = {UIR_DIM_ADD,      UIR_DIM_MUL,     UIR_DIM_MIN, UIR_DIM_MAX,
                                     UIR_DIM_FLOORDIV, UIR_DIM_CEILDIV, UIR_DIM_MOD};
    uir_plan_operation operations[] = {
        {.kind = UIR_DIM_SYMBOL, .value = 0}, {.kind = UIR_DIM_SYMBOL, .value = 1}, {.kind = UIR_DIM_ADD}};
    uir_plan_expression expressions[] = {{0, 3}, {1, 1}};
    uir_plan plan = {
        .operations = operations, .operations_count = 3, .expressions = expressions, .expressions_count = 2};
    bool bound[2] = {true, true};
    int64_t got, wanted, values[2];
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        operations[2].kind = kinds[k];
        for (values[0] = -9; values[0] <= 9; values[0]++) {
            for (values[1] = -2; values[1] <= 5; values[1]++) {
                bool defined = by_hand(kinds[k], values[0], values[1], &wanted);
                assert_int_equal(uir_plan_evaluate(&plan, 0, values, bound, &got), defined);
                if (defined) assert_true(got == wanted);
            }
        }
    }
    for (uint32_t i = 0; i < 2; i++) { /* what is too large has no value, nor has what a symbol without one is in */
        operations[2].kind = i ? UIR_DIM_MUL : UIR_DIM_ADD;
        values[0] = values[1] = INT64_MAX / 2 + 1;
        assert_false(uir_plan_evaluate(&plan, 0, values, NULL, &got));
        values[0] = values[1] = 1;
        bound[i] = false;
        assert_false(uir_plan_evaluate(&plan, 0, values, bound, &got));
        assert_true(uir_plan_evaluate(&plan, 0, values, NULL, &got));
        bound[i] = true;
    }
    assert_int_equal(uir_plan_plain_symbol(&plan, 0), UIR_PLAN_NONE);
    assert_int_equal(uir_plan_plain_symbol(&plan, 1), 1);
    operations[1].kind = UIR_DIM_CONST;
    assert_int_equal(uir_plan_plain_symbol(&plan, 1), UIR_PLAN_NONE);
}

/* ---- a package ---- */
static const char *const kernels = "igraph @none on cpu {\n"
                                   "  ptr %x : dram f32 [1] in 0\n"
                                   "  ptr %y : dram f32 [1] out 0\n"
                                   "  phase {\n"
                                   "    move.f32 %y[0:1], %x[0:1]\n"
                                   "  }\n"
                                   "}\n";

static void begin(session *s, const char *text) {
    session_begin(s, text, kernels, &(uir_runtime_options){.threads = 1});
}

static void test_input_shapes(void **state) {
    (void)state;
    static const struct {
        uint32_t index;
        uir_package_dim dims[2];
        size_t count;
        uir_status status;
        int64_t shape[2];
        const char *message;
    } cases[] = {
        {0, {{"N", 7}, {"M", 4}}, 2, UIR_STATUS_OK, {7, 3}, NULL},
        {1, {{"N", 7}}, 1, UIR_STATUS_OK, {1, 3}, NULL},
        {0, {{"N", 0}}, 1, UIR_STATUS_OK, {0, 0}, NULL},
        {1, {{"M", 2}, {"K", 4}}, 2, UIR_STATUS_NOT_FOUND, {0}, "no input has a dim 'K'"},
        {1, {{"M", -2}}, 1, UIR_STATUS_INVALID_ARGUMENT, {0}, "the dim 'M' cannot be -2"},
        {0, {{"M", 0}}, 1, UIR_STATUS_INVALID_ARGUMENT, {0}, "dim 1 of input 'x' has no value for these dims"},
        {2, {{"M", 2}}, 1, UIR_STATUS_INVALID_ARGUMENT, {0}, "the model has no input 2"},
    };
    session s;
    begin(&s, "module opset 17\nsize N\nsize M\ngraph \"main\" (%x: f32[N, M - 1], %y: f32[M, 3]) {\n"
              "    return %x, %y\n}\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t shape[2] = {-1, -1};
        assert_int_equal(uir_package_get_input_shape(s.package, cases[i].index, cases[i].dims, cases[i].count,
                                                     &s.f.allocator, &s.f.diagnostics, shape),
                         cases[i].status);
        if (cases[i].status == UIR_STATUS_OK) assert_memory_equal(shape, cases[i].shape, sizeof shape);
        if (cases[i].message) check_message(&s.f, cases[i].message);
    }
    session_end(&s);
}

/* ---- host operators ---- */
#define TOP_K(dtype, attributes)                                                                                       \
    "module opset 17\ngraph \"main\" (%x: " dtype "[8]) {\n"                                                           \
    "    %v: " dtype "[4], %i: i64[4] = top_k(%x) {axis = 0, k = [4], " attributes "}\n    return %v, %i\n}\n"

/* Equal elements by their indices, NaN as the greatest, unsigned numbers as such, in order or as they lie. */
static void test_order(void **state) {
    (void)state;
    static const float reals[8] = {2, NAN, -1, 2, -0.0f, NAN, INFINITY, 0};
    static const uint64_t wide[8] = {3, UINT64_MAX, 0, UINT64_C(1) << 63, 3, 1, 2, UINT64_MAX - 1};
    static const int64_t whole[8] = {3, -1, 0, INT64_MIN, 3, INT64_MAX, 2, -1};
    static const struct {
        const char *text;
        uir_dtype dtype;
        const void *data;
    } cases[] = {
        {TOP_K("f32", "largest = 1, sorted = 1"), UIR_DTYPE_F32, reals},
        {TOP_K("f32", "largest = 0, sorted = 1"), UIR_DTYPE_F32, reals},
        {TOP_K("u64", "largest = 1, sorted = 1"), UIR_DTYPE_U64, wide},
        {TOP_K("u64", "largest = 0, sorted = 1"), UIR_DTYPE_U64, wide},
        {TOP_K("i64", "largest = 1, sorted = 1"), UIR_DTYPE_I64, whole},
        {TOP_K("i64", "largest = 0, sorted = 1"), UIR_DTYPE_I64, whole},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        session s;
        begin(&s, cases[i].text);
        array x = {cases[i].dtype, 1, {8}, cases[i].data};
        compare_with_interpreter(&s.f, s.r, &x, 1);
        session_end(&s);
    }
    /* No order is asked for: that of the indices. */
    session s;
    int64_t count = 8;
    uir_runtime_output out;
    begin(&s, TOP_K("i64", "largest = 1, sorted = 0"));
    check_ok(&s.f, uir_runtime_set_input(s.r, 0, UIR_DTYPE_I64, 1, &count, whole));
    check_ok(&s.f, uir_runtime_run(s.r));
    check_ok(&s.f, uir_runtime_get_output(s.r, 1, &out));
    assert_memory_equal(out.data, ((int64_t[]){0, 4, 5, 6}), out.size);
    session_end(&s);
}

/* One element of no dims, beside a tensor of none. */
static void test_no_dims(void **state) {
    (void)state;
    session s;
    static const float numbers[] = {0, -0.0f, 3, NAN};
    begin(&s, "module opset 17\nsize F\nsize N\ngraph \"main\" (%x: f32[], %z: f32[N]) {\n"
              "    %i: i64[1, F] = non_zero(%x)\n    return %i, %z\n}\n");
    for (int i = 0; i < 4; i++)
        compare_with_interpreter(&s.f, s.r,
                                 (array[]){{UIR_DTYPE_F32, 0, {0}, &numbers[i]}, {UIR_DTYPE_F32, 1, {0}, numbers}}, 2);
    session_end(&s);
}

static void test_how_many(void **state) {
    (void)state;
    static const float x[3] = {1, 3, 2};
    session s;
    int64_t three = 3, one = 1;
    begin(&s, "module opset 17\nsize N\nsize K\ngraph \"main\" (%x: f32[N], %k: i64[1]) {\n"
              "    bind_dims(%k) {dims = [K]}\n"
              "    %v: f32[K], %i: i64[K] = top_k(%x) {axis = 0, k = [K], largest = 1, sorted = 1}\n"
              "    return %v, %i\n}\n");
    check_ok(&s.f, uir_runtime_set_input(s.r, 0, UIR_DTYPE_F32, 1, &three, x));
    for (int64_t k = 0; k <= 4; k++) {
        check_ok(&s.f, uir_runtime_set_input(s.r, 1, UIR_DTYPE_I64, 1, &one, &k));
        assert_int_equal(uir_runtime_run(s.r), k <= 3 ? UIR_STATUS_OK : UIR_STATUS_BAD_DATA);
    }
    check_message(&s.f, "top_k: k is 4, axis 0 has 3 elements");
    session_end(&s);
}

/* ---- no elements, no work ---- */
/* However large the other extents are; and no product of them is one that a number cannot hold. */
static void test_empty(void **state) {
    (void)state;
    static const char *const text =
        "module opset 17\nsize N\nsize M\nsize F\nsize U\n"
        "graph \"main\" (%x: f32[N, M, 2], %b: f32[N, M, 4], %s: f32[N, N, M]) {\n"
        "    %v: f32[N, M, 1], %i: i64[N, M, 1] = top_k(%x) {axis = 2, k = [1], largest = 1, sorted = 1}\n"
        "    %w: f32[N, M, 2], %j: i64[N, M, 2] = top_k(%x) {axis = 1, k = [M], largest = 1, sorted = 0}\n"
        "    %z: i64[3, F] = non_zero(%x)\n"
        "    %n: i64[U, 3] = non_max_suppression(%b, %s, none, none, none) {center = 0}\n"
        "    return %v, %i, %w, %j, %z, %n\n}\n";
    static const int64_t extents[][2] = {{INT64_C(1) << 40, 0}, {INT64_C(1) << 62, 0}, {0, INT64_C(1) << 40}};
    session s;
    begin(&s, text);
    for (size_t c = 0; c < sizeof extents / sizeof *extents; c++) {
        int64_t n = extents[c][0], m = extents[c][1];
        uir_runtime_output out;
        check_ok(&s.f, uir_runtime_set_input(s.r, 0, UIR_DTYPE_F32, 3, (int64_t[]){n, m, 2}, NULL));
        check_ok(&s.f, uir_runtime_set_input(s.r, 1, UIR_DTYPE_F32, 3, (int64_t[]){n, m, 4}, NULL));
        check_ok(&s.f, uir_runtime_set_input(s.r, 2, UIR_DTYPE_F32, 3, (int64_t[]){n, n, m}, NULL));
        check_ok(&s.f, uir_runtime_run(s.r));
        for (uint32_t i = 0; i < 6; i++) {
            check_ok(&s.f, uir_runtime_get_output(s.r, i, &out));
            assert_int_equal(out.size, 0);
        }
        assert_int_equal(out.shape[0], 0);
    }
    session_end(&s);
}

/* ---- long work is broken off ---- */
/* Asks for the end once the operator has taken memory for its result, in the middle of its work. */
typedef struct breaking {
    uir_allocator under;
    uir_runtime *r;
    size_t size;
} breaking;
static void *breaking_resize(void *user, void *pointer, size_t old_size, size_t new_size) {
    breaking *b = user;
    if (b->r && new_size >= b->size) uir_runtime_cancel(b->r);
    return b->under.resize(b->under.user, pointer, old_size, new_size);
}

/* The results of top_k are the step's to make room for. */
static void make_own(void *user, uir_plan *p) {
    (void)user;
    for (uint32_t i = 1; i < p->outputs_count; i++) {
        uir_plan_tensor *t = &p->tensors[p->outputs[i].tensor];
        if (t->storage != UIR_PLAN_STORAGE_OUTPUT) continue;
        t->storage = UIR_PLAN_STORAGE_OWN;
        t->index = 0;
    }
    p->outputs_count = 1;
}

static void test_broken_off(void **state) {
    (void)state;
    enum { COUNT = 4096 };
    static const float numbers[4 * COUNT] = {[7] = 1};
    static const char *const texts[] = {
        "module opset 17\ngraph \"main\" (%x: f32[1, 4096]) {\n    %v: f32[1, 4096], %i: i64[1, 4096] = top_k(%x) "
        "{axis = 1, k = [4096], largest = 1, sorted = 1}\n    return %x, %v, %i\n}\n",
        "module opset 17\nsize F\ngraph \"main\" (%x: f32[1, 4096]) {\n    %z: i64[2, F] = non_zero(%x)\n    return "
        "%x, "
        "%z\n}\n",
        "module opset 17\nsize U\ngraph \"main\" (%x: f32[1, 4096, 4], %s: f32[1, 1, 4096]) {\n    %n: i64[U, 3] = "
        "non_max_suppression(%x, %s, none, none, none) {center = 0}\n    return %x, %n\n}\n"};
    for (size_t c = 0; c < sizeof texts / sizeof *texts; c++) {
        breaking b = {.under = uir_allocator_system(), .size = c == 1 ? 1 : 4 * COUNT};
        uir_allocator allocator = {breaking_resize, &b};
        session s;
        session_begin_forged(&s, texts[c], kernels, c == 0 ? make_own : NULL, &(uir_runtime_options){.threads = 1},
                             &allocator);
        const int64_t shape[3] = {1, COUNT, 4}, line[3] = {1, 1, COUNT};
        check_ok(&s.f, uir_runtime_set_input(s.r, 0, UIR_DTYPE_F32, c == 2 ? 3 : 2, shape, numbers));
        if (c == 2) check_ok(&s.f, uir_runtime_set_input(s.r, 1, UIR_DTYPE_F32, 3, line, numbers));
        uint64_t bytes;
        check_ok(&s.f, uir_runtime_plan(s.r, &bytes)); /* what is laid out is not asked for again */
        b.r = s.r;
        assert_int_equal(uir_runtime_run(s.r), UIR_STATUS_CANCELLED);
        assert_int_equal(uir_runtime_get_statistics(s.r).host_calls, 0);
        b.r = NULL;
        check_ok(&s.f, uir_runtime_run(s.r));
        session_end(&s);
    }
}

/* ---- a plan that was made by somebody else ---- */
#define HOST step_of(p, UIR_PLAN_STEP_HOST)
static uir_plan_integer *integer_of(uir_plan *p, const char *name) {
    const uir_plan_step *s = HOST;
    for (uint32_t i = 0; i < s->attribute_count; i++) {
        const uir_plan_attribute *a = &p->attributes[s->first_attribute + i];
        if (!strcmp(uir_plan_get_text(p, a->name), name)) return &p->integers[a->first];
    }
    fail_msg("no attribute %s", name);
    return NULL;
}
static uir_plan_tensor *result_of(uir_plan *p, uint32_t k) {
    return &p->tensors[uir_plan_get_word(p, HOST->outputs, k)];
}

#define OF_KIND " has the wrong dtype or rank"
#define EDITS(E)                                                                                                       \
    E("axis below", "top_k: its axis or dtype is not supported", integer_of(p, "axis")->value = -1)                    \
    E("axis beyond", "top_k: its axis or dtype is not supported", integer_of(p, "axis")->value = 2)                    \
    E("no operand", "operand 0 is absent", HOST->inputs.count = 0)                                                     \
    E("operand left out", "operand 0 is absent", p->words[HOST->inputs.first].value = UIR_PLAN_NONE)                   \
    E("no result", "result 1 is absent", HOST->outputs.count = 1)                                                      \
    E("result left out", "result 0 is absent", p->words[HOST->outputs.first].value = UIR_PLAN_NONE)                    \
    E("dtype of the result", "result 0" OF_KIND, result_of(p, 0)->dtype = UIR_DTYPE_F64)                               \
    E("rank of the result", "result 1" OF_KIND, result_of(p, 1)->extents = p->tensors[p->outputs[1].tensor].extents)   \
    E("operand too many", "operand 1 is one too many", HOST->inputs.count = 2)                                         \
    E("result too many", "result 2 is one too many", HOST->outputs.count = 3)

typedef struct edit {
    uint32_t which;
    const char *message; /* NULL: there is no such edit */
} edit;

static void make_edit(void *user, uir_plan *p) {
    edit *e = user;
    uint32_t at = 0;
#define EDIT(name, words, change)                                                                                      \
    if (e->which == at++) {                                                                                            \
        change;                                                                                                        \
        e->message = words;                                                                                            \
    }
    EDITS(EDIT)
#undef EDIT
}

static void test_forged(void **state) {
    (void)state;
    static const float x[6] = {1, 2, 3, 4, 5, 6};
    fixture f;
    fixture_init(&f);
    check_ok(&f, fixture_build(&f,
                               "module opset 17\ngraph \"main\" (%x: f32[2, 3]) {\n    %v: f32[2, 2], %i: i64[2, 2] = "
                               "top_k(%x) {axis = 1, k = [2], largest = 1, sorted = 1}\n"
                               "    %j: i64[4] = reshape(%i) {dims = [4]}\n    return %v, %j\n}\n",
                               kernels));
    for (uint32_t i = 0;; i++) {
        edit e = {i, NULL};
        uir_package *package = NULL;
        uir_runtime *r = NULL;
        uir_status status = fixture_open_forged(&f, &open_by_vm, make_edit, &e, &package);
        if (status == UIR_STATUS_OK) {
            check_ok(&f, uir_runtime_create(package, &(uir_runtime_options){.threads = 1}, &f.allocator, &f.diagnostics,
                                            &r));
            check_ok(&f, uir_runtime_set_input(r, 0, UIR_DTYPE_F32, 2, (int64_t[]){2, 3}, x));
            status = uir_runtime_run(r);
        }
        assert_int_equal(status, e.message ? UIR_STATUS_BAD_FILE : UIR_STATUS_OK);
        if (e.message) check_message(&f, e.message);
        uir_diagnostics_clear(&f.diagnostics);
        uir_runtime_destroy(r);
        uir_package_close(package);
        if (!e.message) break;
    }
    fixture_deinit(&f);
}

/* ---- the opener's nodes ---- */
/* Negates; there is one result, and no other may be given. */
static uir_status negate(void *user, const uir_custom_call *call) {
    void *data;
    const float *x = call->inputs[0].data;
    ++*(uint32_t *)user;
    assert_int_equal(call->input_count, 1);
    assert_int_equal(call->output_count, 1);
    assert_int_equal(call->symbol_count, 1);
    assert_int_equal(call->symbols[0].value, call->inputs[0].shape[0]);
    assert_int_equal(uir_custom_call_give(call, 1, call->inputs[0].shape, &data), UIR_STATUS_INVALID_ARGUMENT);
    UIR_TRY(uir_custom_call_give(call, 0, call->inputs[0].shape, &data));
    for (int64_t i = 0; i < call->inputs[0].shape[0]; i++) ((float *)data)[i] = -x[i];
    return UIR_STATUS_OK;
}

static void lose_dims(void *user, uir_plan *p) {
    const uir_plan_step *s = HOST;
    (void)user;
    for (uint32_t i = 0; i < s->attribute_count; i++) {
        uir_plan_attribute *a = &p->attributes[s->first_attribute + i];
        if (!strcmp(uir_plan_get_text(p, a->name), "values")) a->count = 0;
    }
}

static void test_custom(void **state) {
    (void)state;
    static const float x[3] = {1, 2, 3};
    int64_t three = 3;
    uint32_t calls = 0;
    fixture f;
    uir_package *package;
    uir_package_options options = open_by_vm;
    fixture_init(&f);
    assert_int_equal(fixture_build(&f,
                                   "module opset 17\nsize N\ngraph \"main\" (%x: f32[N]) {\n"
                                   "    %y: f32[N] = neg(%x) name \"minus\"\n    return %y\n}\n",
                                   kernels),
                     UIR_STATUS_UNSUPPORTED);
    uir_text_deinit(&f.package);
    check_ok(&f, fixture_plan(&f, &(uir_plan_options){.custom = true}, &f.allocator, &f.package));
    assert_int_equal(fixture_open(&f, &f.allocator, &package), UIR_STATUS_UNSUPPORTED);
    check_message(&f, "node 'minus', which has no kernel");
    fixture_forge(&f, lose_dims, NULL);
    options.custom = negate;
    options.custom_user = &calls;
    for (int forged = 0; forged < 2; forged++) {
        const uir_text *bytes = forged ? &f.forged : &f.package;
        uir_runtime *r;
        uir_runtime_output out;
        check_ok(&f, uir_package_open(bytes->data, bytes->length, &options, &f.allocator, &f.diagnostics, &package));
        check_ok(&f, uir_runtime_create(package, NULL, &f.allocator, &f.diagnostics, &r));
        check_ok(&f, uir_runtime_set_input(r, 0, UIR_DTYPE_F32, 1, &three, x));
        assert_int_equal(uir_runtime_run(r), forged ? UIR_STATUS_BAD_FILE : UIR_STATUS_OK);
        if (forged) check_message(&f, "its dims are not listed");
        if (!forged) check_ok(&f, uir_runtime_get_output(r, 0, &out));
        if (!forged) assert_memory_equal(out.data, ((float[]){-1, -2, -3}), sizeof x);
        uir_runtime_destroy(r);
        uir_package_close(package);
    }
    assert_int_equal(calls, 1);
    fixture_deinit(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_expressions), cmocka_unit_test(test_input_shapes), cmocka_unit_test(test_order),
        cmocka_unit_test(test_no_dims),     cmocka_unit_test(test_how_many),     cmocka_unit_test(test_forged),
        cmocka_unit_test(test_empty),       cmocka_unit_test(test_broken_off),   cmocka_unit_test(test_custom),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
