/* Contractions against plain loops, at sizes around the blocks of the fast ones: products, convolutions of every
 * geometry, windows. Values are small integers, so that every order of summing gives the same number. */
#include "tests/ir/graph/support.h"

static random_state randomness = {0x1234567};
static int64_t pick(int64_t low, int64_t high) {
    return random_between(&randomness, low, high);
}

static uir_tensor *small_integers(const uir_allocator *allocator, uir_dtype dtype, uint32_t rank,
                                  const int64_t *shape) {
    uir_tensor *tensor;
    assert_int_equal(uir_tensor_create(allocator, dtype, rank, shape, &tensor), UIR_STATUS_OK);
    for (uint64_t i = 0; i < tensor->element_count; i++)
        uir_dtype_store_integer(dtype, tensor->data, i, pick(0, 6) - (dtype == UIR_DTYPE_U8 ? 0 : 3), false,
                                UIR_ROUND_NEAREST_EVEN);
    return tensor;
}

static double at(const uir_tensor *t, int64_t index) {
    return uir_dtype_is_float(t->dtype) ? uir_dtype_load_double(t->dtype, t->data, (uint64_t)index)
                                        : (double)uir_dtype_load_integer(t->dtype, t->data, (uint64_t)index);
}

static uir_value_id constant_input(fixture *f, const char *name, const uir_tensor *tensor) {
    uir_dim dims[UIR_MAX_RANK];
    for (uint32_t d = 0; d < tensor->rank; d++) dims[d] = number(f, tensor->shape[d]);
    return add_input(f, name, tensor->dtype, dims, tensor->rank);
}

/* Runs on 1 and on 3 threads; both must give the same bytes. */
static uir_tensor *run_both(fixture *f, uir_tensor **inputs, uint32_t count, uir_datum **out_datum) {
    uir_datum *datums[2], *again;
    for (uint32_t i = 0; i < count; i++) datums[i] = make_datum(&f->allocator, inputs[i]);
    uir_interpreter_options options = {.threads = 3};
    assert_int_equal(uir_module_verify(f->module, &f->diagnostics), UIR_STATUS_OK);
    uir_status status =
        uir_module_interpret(f->module, &f->allocator, &f->diagnostics, NULL, datums, count, out_datum, 1, NULL);
    if (status != UIR_STATUS_OK) print_messages(&f->diagnostics);
    assert_int_equal(status, UIR_STATUS_OK);
    assert_int_equal(
        uir_module_interpret(f->module, &f->allocator, &f->diagnostics, &options, datums, count, &again, 1, NULL),
        UIR_STATUS_OK);
    const uir_tensor *a = (*out_datum)->tensor, *b = again->tensor;
    assert_int_equal(a->byte_size, b->byte_size);
    if (a->byte_size) assert_memory_equal(a->data, b->data, a->byte_size);
    uir_datum_release(again);
    for (uint32_t i = 0; i < count; i++) datums[i]->tensor = NULL; /* the caller keeps the tensors */
    for (uint32_t i = 0; i < count; i++) uir_datum_release(datums[i]);
    return (*out_datum)->tensor;
}

typedef struct dtypes {
    uir_dtype a, b, to;
} dtypes;
static const dtypes combinations[] = {
    {UIR_DTYPE_F32, UIR_DTYPE_F32, UIR_DTYPE_F32}, {UIR_DTYPE_F64, UIR_DTYPE_F64, UIR_DTYPE_F64},
    {UIR_DTYPE_F16, UIR_DTYPE_F16, UIR_DTYPE_F32}, {UIR_DTYPE_U8, UIR_DTYPE_I8, UIR_DTYPE_I32},
    {UIR_DTYPE_I32, UIR_DTYPE_I32, UIR_DTYPE_I64}, {UIR_DTYPE_I8, UIR_DTYPE_I8, UIR_DTYPE_I32},
    {UIR_DTYPE_I64, UIR_DTYPE_I64, UIR_DTYPE_I64},
};

static void check_matmul(int64_t batches, int64_t m, int64_t k, int64_t n, dtypes types) {
    fixture f;
    fixture_open(&f);
    uir_tensor *inputs[2] = {small_integers(&f.allocator, types.a, 3, (int64_t[]){batches, m, k}),
                             small_integers(&f.allocator, types.b, 3, (int64_t[]){batches, k, n})};
    uir_value_id a = constant_input(&f, "a", inputs[0]), b = constant_input(&f, "b", inputs[1]);
    add_output(&f, uir_build_matmul(&f.builder, a, b, types.to));
    uir_datum *datum;
    const uir_tensor *c = run_both(&f, inputs, 2, &datum);
    for (int64_t i = 0; i < batches * m * n; i++) {
        double sum = 0;
        for (int64_t p = 0; p < k; p++)
            sum += at(inputs[0], i / n * k + p) * at(inputs[1], (i / n / m * k + p) * n + i % n);
        if (at(c, i) != sum)
            fail_msg("%dx%dx%dx%d %s: element %d is %g, not %g", (int)batches, (int)m, (int)k, (int)n,
                     uir_dtype_name(types.a), (int)i, at(c, i), sum);
    }
    uir_datum_release(datum);
    uir_tensor_release(inputs[0]);
    uir_tensor_release(inputs[1]);
    fixture_close(&f);
}

static void test_matmul(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 17};
    for (int i = 0; i < 300; i++)
        check_matmul(pick(0, 3), sizes[pick(0, 9)], sizes[pick(0, 9)], sizes[pick(0, 9)], combinations[pick(0, 6)]);
    check_matmul(1, 5, 600, 700, combinations[0]);
    check_matmul(1, 64, 257, 129, combinations[0]);
    check_matmul(1, 2, 513, 1100, combinations[0]);
    check_matmul(1, 33, 700, 9, combinations[1]);
    check_matmul(2, 33, 300, 40, combinations[3]);
}

typedef struct geometry {
    uint32_t rank;                            /* spatial */
    int64_t batch, groups, channels, filters; /* channels and filters of a group */
    int64_t in[3], window[3], strides[3], dilations[3], low[3], high[3], out[3];
} geometry;

static geometry random_geometry(void) {
    geometry g = {.rank = (uint32_t)pick(1, 3), .batch = pick(0, 2), .groups = pick(1, 3), .channels = pick(1, 5)};
    g.filters = pick(0, 3) ? pick(1, 9) : 1;
    for (uint32_t d = 0; d < g.rank; d++) {
        g.in[d] = pick(0, d + 1 == g.rank ? 19 : 6);
        g.window[d] = pick(1, 3);
        g.strides[d] = pick(1, 3);
        g.dilations[d] = pick(1, 2);
        int64_t reach = (g.window[d] - 1) * g.dilations[d] + 1;
        g.low[d] = pick(g.in[d] > 1 ? -1 : 0, 3);
        g.high[d] = pick(0, 3);
        if (g.in[d] + g.low[d] + g.high[d] < reach) g.high[d] = reach - g.in[d] - g.low[d];
        g.out[d] = (g.in[d] + g.low[d] + g.high[d] - reach) / g.strides[d] + 1;
    }
    for (uint32_t d = g.rank; d < 3; d++) g.in[d] = g.out[d] = g.window[d] = g.strides[d] = g.dilations[d] = 1;
    return g;
}

static void attributes_of(fixture *f, const geometry *g, uir_attribute *out) {
    static uir_dim low[3], high[3], window[3];
    for (uint32_t d = 0; d < g->rank; d++) {
        low[d] = number(f, g->low[d]);
        high[d] = number(f, g->high[d]);
        window[d] = number(f, g->window[d]);
    }
    out[0] = uir_attribute_ints(&f->builder, "strides", g->strides, g->rank);
    out[1] = uir_attribute_ints(&f->builder, "dilations", g->dilations, g->rank);
    out[2] = uir_attribute_dims(&f->builder, "low", low, g->rank);
    out[3] = uir_attribute_dims(&f->builder, "high", high, g->rank);
    out[4] = uir_attribute_dims(&f->builder, "window", window, g->rank);
}

/* What image position window position `w` at output position `o` is, -1 outside. Positions count the three axes. */
static int64_t image_at(const geometry *g, const int64_t *o, const int64_t *w) {
    int64_t index = 0;
    for (int d = 0; d < 3; d++) {
        int64_t i = o[d] * g->strides[d] - g->low[d] + w[d] * g->dilations[d];
        if (i < 0 || i >= g->in[d]) return -1;
        index = index * g->in[d] + i;
    }
    return index;
}

#define FOR_BOX(position, box)                                                                                         \
    for (position[0] = 0; position[0] < box[0]; position[0]++)                                                         \
        for (position[1] = 0; position[1] < box[1]; position[1]++)                                                     \
            for (position[2] = 0; position[2] < box[2]; position[2]++)

static void check_conv(geometry g, dtypes types) {
    fixture f;
    fixture_open(&f);
    int64_t x_shape[5] = {g.batch, g.groups * g.channels, g.in[0], g.in[1], g.in[2]};
    int64_t w_shape[5] = {g.groups * g.filters, g.channels, g.window[0], g.window[1], g.window[2]};
    uir_tensor *inputs[2] = {small_integers(&f.allocator, types.a, g.rank + 2, x_shape),
                             small_integers(&f.allocator, types.b, g.rank + 2, w_shape)};
    uir_value_id operands[2] = {constant_input(&f, "x", inputs[0]), constant_input(&f, "w", inputs[1])}, result;
    uir_attribute attributes[7];
    attributes_of(&f, &g, attributes);
    attributes[4] = uir_attribute_int(&f.builder, "groups", g.groups);
    attributes[5] = uir_attribute_dtype(&f.builder, "to", types.to);
    uir_build_node(&f.builder, UIR_OP_CONV, operands, 2, attributes, 6, &result, 1);
    add_output(&f, result);
    uir_datum *datum;
    const uir_tensor *y = run_both(&f, inputs, 2, &datum);
    int64_t image = g.in[0] * g.in[1] * g.in[2], taps = g.window[0] * g.window[1] * g.window[2], index = 0;
    for (int64_t n = 0; n < g.batch; n++)
        for (int64_t filter = 0; filter < g.groups * g.filters; filter++) {
            int64_t o[3], w[3];
            FOR_BOX(o, g.out) {
                double sum = 0;
                for (int64_t c = 0; c < g.channels; c++) {
                    int64_t tap = 0, channel = filter / g.filters * g.channels + c;
                    FOR_BOX(w, g.window) {
                        int64_t i = image_at(&g, o, w);
                        if (i >= 0)
                            sum += at(inputs[0], (n * g.groups * g.channels + channel) * image + i) *
                                   at(inputs[1], (filter * g.channels + c) * taps + tap);
                        tap++;
                    }
                }
                if (at(y, index) != sum) fail_msg("element %d is %g, not %g", (int)index, at(y, index), sum);
                index++;
            }
        }
    assert_int_equal(index, y->element_count);
    uir_datum_release(datum);
    uir_tensor_release(inputs[0]);
    uir_tensor_release(inputs[1]);
    fixture_close(&f);
}

static void test_conv(void **state) {
    (void)state;
    for (int i = 0; i < 400; i++) check_conv(random_geometry(), combinations[pick(0, 6)]);
    /* Several blocks of columns, many filters; pointwise with few filters in groups. */
    check_conv(
        (geometry){2, 1, 1, 16, 33, {40, 41, 1}, {3, 3, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 0}, {1, 1, 0}, {40, 41, 1}},
        combinations[0]);
    check_conv((geometry){2, 3, 4, 2, 2, {9, 8, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, {9, 8, 1}},
               combinations[0]);
    check_conv(
        (geometry){1, 2, 1, 3, 40, {700, 1, 1}, {5, 1, 1}, {2, 1, 1}, {3, 1, 1}, {6, 0, 0}, {6, 0, 0}, {350, 1, 1}},
        combinations[3]);
}

static void check_window(geometry g, uir_op op, uir_dtype dtype) {
    fixture f;
    fixture_open(&f);
    int64_t x_shape[5] = {g.batch, g.channels, g.in[0], g.in[1], g.in[2]};
    uir_tensor *input = small_integers(&f.allocator, dtype, g.rank + 2, x_shape);
    uir_value_id operand = constant_input(&f, "x", input), result;
    uir_attribute attributes[5];
    attributes_of(&f, &g, attributes);
    uir_build_node(&f.builder, op, &operand, 1, attributes, 5, &result, 1);
    add_output(&f, result);
    uir_datum *datum;
    const uir_tensor *y = run_both(&f, &input, 1, &datum);
    int64_t image = g.in[0] * g.in[1] * g.in[2], index = 0, o[3], w[3];
    for (int64_t c = 0; c < g.batch * g.channels; c++) FOR_BOX(o, g.out) {
            bool max = op == UIR_OP_WINDOW_MAX, any = false;
            double value = 0;
            FOR_BOX(w, g.window) {
                int64_t i = image_at(&g, o, w);
                if (i < 0) continue;
                double x = at(input, c * image + i);
                value = !max ? value + x : !any || x > value ? x : value;
                any = true;
            }
            if (max && !any) value = uir_dtype_is_float(dtype) ? -INFINITY : (double)uir_dtype_integer_min(dtype);
            if (at(y, index) != value) fail_msg("element %d is %g, not %g", (int)index, at(y, index), value);
            index++;
        }
    uir_datum_release(datum);
    uir_tensor_release(input);
    fixture_close(&f);
}

static void test_window(void **state) {
    (void)state;
    static const uir_dtype types[] = {UIR_DTYPE_F32, UIR_DTYPE_F16, UIR_DTYPE_I32, UIR_DTYPE_U8, UIR_DTYPE_F64};
    for (int i = 0; i < 400; i++)
        check_window(random_geometry(), pick(0, 1) ? UIR_OP_WINDOW_SUM : UIR_OP_WINDOW_MAX, types[pick(0, 4)]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_matmul), cmocka_unit_test(test_conv),
                                       cmocka_unit_test(test_window)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
