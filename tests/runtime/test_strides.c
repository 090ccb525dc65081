/* Tensors that the caller holds: what their strides say, what is moved along them, and what values a symbol takes. */
#include "runtime/internal.h"
#include "tests/base/support.h"

#include <string.h>

/* ---- how far the elements reach ---- */
static void test_footprint(void **state) {
    (void)state;
    static const struct {
        uir_dtype dtype;
        uint32_t rank;
        int64_t shape[3], strides[3];
        bool good;
        size_t bytes;
    } cases[] = {
        {UIR_DTYPE_F32, 0, {0}, {0}, true, 4},
        {UIR_DTYPE_F32, 1, {3}, {1}, true, 12},
        {UIR_DTYPE_F64, 1, {3}, {5}, true, 88},
        {UIR_DTYPE_I8, 2, {2, 3}, {10, 2}, true, 15},
        {UIR_DTYPE_I8, 3, {2, 1, 3}, {10, 1000, 2}, true, 15},
        {UIR_DTYPE_F32, 2, {2, 0}, {5, 5}, true, 0},
        {UIR_DTYPE_F32, 2, {0, 3}, {INT64_MAX, INT64_MAX}, true, 0},
        {UIR_DTYPE_F32, 2, {3, 0}, {INT64_MAX, INT64_MAX}, true, 0},
        {UIR_DTYPE_F32, 2, {3, 2}, {INT64_MAX, 1}, false, 0},
        {UIR_DTYPE_F32, 2, {2, 2}, {INT64_MAX, 1}, false, 0},
        {UIR_DTYPE_F32, 1, {2}, {INT64_MAX - 1}, false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uir_rt_binding binding = {.strided = true};
        size_t bytes = 99;
        memcpy(binding.strides, cases[i].strides, sizeof cases[i].strides);
        bool good = uir_rt_footprint(&binding, cases[i].dtype, cases[i].rank, cases[i].shape, &bytes);
        assert_int_equal(good, cases[i].good);
        if (good) assert_int_equal(bytes, cases[i].bytes);
    }
}

/* ---- moving ---- */
enum { ROOM = 400 };

static int64_t place(uint32_t rank, const int64_t *index, const int64_t *strides) {
    int64_t at = 0;
    for (uint32_t d = 0; d < rank; d++) at += index[d] * strides[d];
    return at;
}

/* Element by element, and nothing between them. */
static void check_moves(uint32_t rank, const int64_t *shape, const int64_t *strides, uint32_t slack_axis,
                        int64_t slack) {
    int64_t outside[ROOM], inside[ROOM], wanted[ROOM];
    int64_t index[3] = {0}, packed[3] = {0}, roomy[3] = {0}, count = 1;
    uir_rt_binding binding = {.at = uir_rt_on_host(outside, sizeof outside), .strided = true};
    if (rank) memcpy(binding.strides, strides, rank * sizeof *strides);
    int64_t stride = 1;
    for (uint32_t d = rank; d-- > 0; count *= shape[d]) {
        packed[d] = count;
        roomy[d] = stride;
        stride *= shape[d] + (d == slack_axis ? slack : 0);
    }
    for (int way = 0; way < 2; way++) {
        for (int i = 0; i < ROOM; i++) outside[i] = 1000 + i, inside[i] = 2000 + i;
        memcpy(wanted, way ? outside : inside, sizeof wanted);
        for (int64_t i = 0; i < count; i++) {
            int64_t rest = i;
            for (uint32_t d = rank; d-- > 0; rest /= shape[d]) index[d] = rest % shape[d];
            if (way)
                wanted[place(rank, index, strides)] = inside[place(rank, index, roomy)];
            else
                wanted[place(rank, index, packed)] = outside[place(rank, index, strides)];
        }
        if (way)
            uir_rt_scatter(&binding, UIR_DTYPE_I64, rank, shape, slack_axis, slack, inside);
        else
            uir_rt_gather(&binding, UIR_DTYPE_I64, rank, shape, inside);
        assert_memory_equal(way ? outside : inside, wanted, sizeof wanted);
    }
}

static void test_moves(void **state) {
    (void)state;
    static const struct {
        uint32_t rank;
        int64_t shape[3], strides[3];
    } cases[] = {
        {0, {0}, {0}},
        {1, {5}, {1}},
        {1, {5}, {3}},
        {1, {1}, {7}},
        {1, {0}, {1}},
        {2, {2, 3}, {3, 1}},
        {2, {2, 3}, {1, 2}},
        {2, {2, 3}, {7, 2}},
        {2, {3, 1}, {4, 9}},
        {2, {3, 2}, {9, 4}},
        {2, {1, 3}, {99, 2}},
        {2, {0, 3}, {3, 1}},
        {2, {3, 0}, {3, 1}},
        {3, {2, 3, 4}, {12, 4, 1}},
        {3, {2, 3, 4}, {60, 5, 1}},
        {3, {2, 3, 4}, {1, 2, 6}},
        {3, {4, 3, 2}, {2, 20, 1}},
        {3, {2, 1, 3}, {50, 9, 3}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint32_t axis = 0; axis <= cases[i].rank; axis++)
            for (int64_t slack = 0; slack < 3; slack++)
                check_moves(cases[i].rank, cases[i].shape, cases[i].strides,
                            axis < cases[i].rank ? axis : UIR_PLAN_NONE, slack);
}

/* ---- a runtime of one tensor and one symbol ---- */
typedef struct world {
    uir_allocator allocator;
    uir_diagnostics diagnostics;
    uir_plan_text text;
    uir_plan_symbol symbol;
    uir_plan_tensor tensor;
    uir_plan plan;
    int64_t value;
    bool bound;
    uir_runtime runtime;
} world;

static void open_world(world *w, int64_t min, int64_t max, int64_t multiple_of) {
    static char name[] = "N";
    memset(w, 0, sizeof *w);
    w->allocator = uir_allocator_system();
    uir_diagnostics_init(&w->diagnostics, &w->allocator);
    w->text = (uir_plan_text){0, 1};
    w->symbol = (uir_plan_symbol){.name = 0, .min = min, .max = max, .multiple_of = multiple_of};
    w->plan.characters = name;
    w->plan.characters_count = sizeof name;
    w->plan.texts = &w->text, w->plan.texts_count = 1;
    w->plan.symbols = &w->symbol, w->plan.symbols_count = 1;
    w->plan.tensors = &w->tensor, w->plan.tensors_count = 1;
    w->value = -1;
    w->runtime.plan = &w->plan;
    w->runtime.diagnostics = &w->diagnostics;
    w->runtime.values = &w->value;
    w->runtime.bound = &w->bound;
}

/* Strides as of a packed tensor with room behind an axis are that room; others are copied. */
static void test_slack(void **state) {
    (void)state;
    enum { NONE = -1 };
    static const struct {
        uint32_t rank;
        int64_t shape[4];
        int axis; /* NONE: there may be no room */
        int64_t strides[4];
        int64_t slack;
        bool in_place;
    } cases[] = {
        {3, {2, 3, 4}, 1, {12, 4, 1}, 0, true},
        {3, {2, 3, 4}, 1, {20, 4, 1}, 2, true},
        {3, {2, 3, 4}, 1, {16, 4, 1}, 1, true},
        {3, {2, 3, 4}, 1, {22, 4, 1}, 0, false},
        {3, {2, 3, 4}, 1, {8, 4, 1}, 0, false},
        {3, {2, 3, 4}, 1, {20, 5, 1}, 0, false},
        {3, {2, 3, 4}, 1, {20, 4, 2}, 0, false},
        {3, {2, 3, 4}, NONE, {12, 4, 1}, 0, true},
        {3, {2, 3, 4}, NONE, {20, 4, 1}, 0, false},
        {3, {2, 3, 4}, 0, {12, 4, 1}, 0, true},
        {3, {2, 3, 4}, 2, {18, 6, 1}, 2, true},
        {3, {2, 3, 4}, 2, {19, 6, 1}, 0, false},
        {3, {1, 3, 4}, 1, {99, 4, 1}, 0, true},
        {3, {2, 1, 4}, 1, {12, 99, 1}, 2, true},
        {3, {2, 3, 1}, 1, {5, 1, 99}, 2, true},
        {4, {2, 1, 3, 4}, 2, {20, 99, 4, 1}, 2, true},
        {4, {2, 2, 3, 4}, 2, {40, 20, 4, 1}, 2, true},
        {4, {2, 2, 3, 4}, 2, {41, 20, 4, 1}, 0, false},
        {4, {2, 2, 3, 4}, 1, {60, 12, 4, 1}, 3, true},
        {3, {2, 0, 4}, 1, {8, 4, 1}, 2, true},
        {3, {2, 3, 0}, 1, {0, 0, 1}, 0, true},
        {4, {2, 0, (int64_t)1 << 40, (int64_t)1 << 40}, 1, {5, 5, (int64_t)1 << 40, 1}, 0, false},
        {1, {5}, 0, {1}, 0, true},
        {1, {5}, 0, {2}, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world w;
        uir_rt_binding binding = {.strided = true};
        open_world(&w, 0, INT64_MAX, 1);
        w.tensor.extents.count = cases[i].rank;
        memcpy(binding.strides, cases[i].strides, sizeof cases[i].strides);
        uir_plan_port port = {.slack = cases[i].axis == NONE ? UIR_PLAN_NONE : 0,
                              .slack_axis = cases[i].axis == NONE ? UIR_PLAN_NONE : (uint32_t)cases[i].axis};
        assert_int_equal(uir_rt_bind_slack(&w.runtime, &port, cases[i].shape, &binding), UIR_STATUS_OK);
        if (binding.in_place != cases[i].in_place) fail_msg("case %zu", i);
        assert_int_equal(w.bound, cases[i].axis != NONE);
        if (w.bound) assert_int_equal(w.value, cases[i].slack);
    }
    /* A port that is packed, or whose shape is not known yet, or with a symbol that belongs to no axis. */
    const int64_t shape[] = {2, 3, 4};
    for (int kind = 0; kind < 3; kind++) {
        world w;
        uir_rt_binding binding = {.strided = kind > 0, .strides = {20, 4, 1}};
        uir_plan_port port = {.slack = 0, .slack_axis = kind == 2 ? UIR_PLAN_NONE : 1};
        open_world(&w, 0, INT64_MAX, 1);
        w.tensor.extents.count = 3;
        assert_int_equal(uir_rt_bind_slack(&w.runtime, &port, kind == 1 ? NULL : shape, &binding), UIR_STATUS_OK);
        assert_int_equal(binding.in_place, kind == 0);
        assert_true(w.bound && w.value == 0);
    }
}

static void test_symbols(void **state) {
    (void)state;
    static const struct {
        int64_t min, max, multiple_of, value;
        const char *message; /* NULL: it is taken */
    } cases[] = {
        {0, INT64_MAX, 1, 0, NULL},
        {3, INT64_MAX, 1, 3, NULL},
        {3, INT64_MAX, 1, 2, "dim N is 2 and must be at least 3"},
        {3, 7, 1, 3, NULL},
        {3, 7, 1, 7, NULL},
        {3, 7, 1, 8, "dim N is 8 and must be in 3..7"},
        {3, 7, 1, 2, "dim N is 2 and must be in 3..7"},
        {5, 5, 1, 5, NULL},
        {5, 5, 1, 6, "dim N is 6 and must be 5"},
        {5, 5, 1, 4, "dim N is 4 and must be 5"},
        {0, 100, 4, 8, NULL},
        {0, 100, 4, 10, "dim N is 10 and must be a multiple of 4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world w;
        open_world(&w, cases[i].min, cases[i].max, cases[i].multiple_of);
        uir_status status = uir_rt_bind_symbol(&w.runtime, 0, cases[i].value);
        assert_int_equal(status, cases[i].message ? UIR_STATUS_BAD_DATA : UIR_STATUS_OK);
        assert_int_equal(w.bound, !cases[i].message);
        if (cases[i].message) {
            assert_string_equal(w.diagnostics.first->message, cases[i].message);
        } else {
            assert_int_equal(w.value, cases[i].value);
            assert_int_equal(uir_rt_bind_symbol(&w.runtime, 0, cases[i].value), UIR_STATUS_OK);
            assert_int_equal(uir_rt_bind_symbol(&w.runtime, 0, cases[i].value + 1), UIR_STATUS_BAD_DATA);
            assert_non_null(strstr(w.diagnostics.first->message, "in one place and"));
            assert_int_equal(w.value, cases[i].value);
        }
        uir_diagnostics_deinit(&w.diagnostics);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_footprint), cmocka_unit_test(test_moves),
                                       cmocka_unit_test(test_slack), cmocka_unit_test(test_symbols)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
