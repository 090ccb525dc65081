/* Comparison of values: where the bound lies, what is measured, and every kind of value. */
#include "tests/api/sequences.h"
#include "tests/frontend/make.h"
#include "uir/uir.h"
#include "tools/run/query.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

static const uir_tolerance exactly = {.struct_size = sizeof exactly};

static int make_context(void **state) {
    uir_context *context;
    uir_status status = uir_context_create(NULL, &context);
    *state = context;
    return status;
}

static int destroy_context(void **state) {
    uir_context_destroy(*state);
    return 0;
}

static uir_value *doubles(uir_context *context, int64_t count, const double *numbers) {
    uir_value *value;
    assert_int_equal(uir_value_create_tensor(context, UIR_DTYPE_F64, 1, &count, &value), UIR_STATUS_OK);
    memcpy(uir_value_get_data(value), numbers, (size_t)count * sizeof *numbers);
    return value;
}

static uir_comparison compare(uir_context *context, int64_t count, const double *actual, const double *expected,
                              uir_tolerance tolerance) {
    uir_value *a = doubles(context, count, actual), *e = doubles(context, count, expected);
    uir_comparison result = query_comparison(a, e, tolerance);
    uir_value_destroy(a);
    uir_value_destroy(e);
    return result;
}

static bool agree(uir_context *context, double actual, double expected, uir_tolerance tolerance) {
    return compare(context, 1, &actual, &expected, tolerance).agree;
}

/* |actual - expected| <= atol + rtol * |expected|, the bound itself included; powers of two, so that all is exact. */
static void bounds_are_of_the_expected_value(void **state) {
    uir_context *context = *state;
    assert_true(agree(context, 1.25, 1.0, (uir_tolerance){.atol = 0.25}));
    assert_false(agree(context, 1.25 + 1e-12, 1.0, (uir_tolerance){.atol = 0.25}));
    assert_true(agree(context, 3.0, 2.0, (uir_tolerance){.rtol = 0.5}));
    assert_false(agree(context, 2.0, 4.0 + 1e-9, (uir_tolerance){.rtol = 0.5}));
    assert_false(agree(context, 3.5, 2.0, (uir_tolerance){.rtol = 0.5})); /* within half of 3.5, not of 2 */
    assert_false(agree(context, -2.0, 2.0, (uir_tolerance){.rtol = 1}));
    assert_true(agree(context, 3.25, 2.0, (uir_tolerance){.rtol = 0.5, .atol = 0.25}));
}

/* Integers may be as far apart as is said, and no bound for floats is one for them; booleans never. */
static void integers_have_a_bound_of_their_own(void **state) {
    static const struct {
        uir_dtype dtype;
        double bound;
        bool agrees;
    } rows[] = {{UIR_DTYPE_I32, 0, false},  {UIR_DTYPE_I32, 1, false}, {UIR_DTYPE_I32, 2, true},
                {UIR_DTYPE_U8, 1.5, false}, {UIR_DTYPE_U8, 2, true},   {UIR_DTYPE_BOOL, 2, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uir_value *a, *b;
        int64_t shape[] = {1};
        bool boolean = rows[i].dtype == UIR_DTYPE_BOOL;
        assert_int_equal(uir_value_create_tensor(*state, rows[i].dtype, 1, shape, &a), UIR_STATUS_OK);
        assert_int_equal(uir_value_create_tensor(*state, rows[i].dtype, 1, shape, &b), UIR_STATUS_OK);
        *(char *)uir_value_get_data(a) = 3 - 2 * boolean;
        *(char *)uir_value_get_data(b) = 5 - 5 * boolean;
        uir_comparison result =
            query_comparison(a, b, (uir_tolerance){.rtol = 9, .atol = 9, .integers = rows[i].bound});
        assert_int_equal(result.agree, rows[i].agrees);
        assert_true(result.max_abs == 2 - boolean);
        uir_value_destroy(a);
        uir_value_destroy(b);
    }
}

/* The widest integers: how far apart they are needs all 64 bits. */
static void wide_integers_are_far_apart(void **state) {
    static const struct {
        uir_dtype dtype;
        uint64_t a, b;
        bool agrees; /* within 5 */
    } rows[] = {
        {UIR_DTYPE_U64, UINT64_MAX, 1, false},
        {UIR_DTYPE_U64, 1, UINT64_MAX, false},
        {UIR_DTYPE_U64, UINT64_MAX, UINT64_MAX - 5, true},
        {UIR_DTYPE_U64, UINT64_MAX, UINT64_MAX - 6, false},
        {UIR_DTYPE_I64, UINT64_MAX, 1, true},
        /* -1 */ {UIR_DTYPE_I64, 1, UINT64_MAX, true},
        {UIR_DTYPE_I64, INT64_MAX, UINT64_C(1) << 63, false},
        {UIR_DTYPE_I64, UINT64_C(1) << 63, INT64_MAX, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uir_value *a, *b;
        int64_t shape[] = {1};
        assert_int_equal(uir_value_create_tensor(*state, rows[i].dtype, 1, shape, &a), UIR_STATUS_OK);
        assert_int_equal(uir_value_create_tensor(*state, rows[i].dtype, 1, shape, &b), UIR_STATUS_OK);
        *(uint64_t *)uir_value_get_data(a) = rows[i].a;
        *(uint64_t *)uir_value_get_data(b) = rows[i].b;
        assert_int_equal(query_comparison(a, b, (uir_tolerance){.integers = 5}).agree, rows[i].agrees);
        uir_value_destroy(a);
        uir_value_destroy(b);
    }
}

/* An infinity among the expected numbers does not widen the bound of the others, nor is one near a number. */
static void infinities_agree_with_themselves_alone(void **state) {
    uir_context *context = *state;
    const double expected[] = {INFINITY, 1, 4}, near[] = {INFINITY, 1.5, 4}, far[] = {INFINITY, 3, 4};
    const uir_tolerance of_greatest = {.atol_relative_to_max = 0.25};
    assert_true(compare(context, 3, near, expected, of_greatest).agree);
    assert_false(compare(context, 3, far, expected, of_greatest).agree);
    assert_false(agree(context, INFINITY, 1, (uir_tolerance){.rtol = INFINITY, .atol = INFINITY}));
    assert_false(agree(context, 1, INFINITY, (uir_tolerance){.rtol = INFINITY, .atol = INFINITY}));
    assert_false(agree(context, -INFINITY, INFINITY, (uir_tolerance){.rtol = INFINITY, .atol = INFINITY}));
    assert_true(compare(context, 3, far, expected, exactly).max_abs == 2);
    assert_true(compare(context, 3, (double[]){1, 3, NAN}, expected, exactly).max_abs == 2);
}

static void the_greatest_differences_are_told(void **state) {
    uir_context *context = *state;
    const double expected[] = {4, 0, -8, 1}, actual[] = {5, 0.5, -6, 1};
    uir_comparison result = compare(context, 4, actual, expected, (uir_tolerance){.atol = 1});
    assert_false(result.agree);
    assert_true(result.max_abs == 2);
    assert_true(result.max_rel == 0.25); /* 1 of 4 and 2 of 8; what is expected to be 0 has no share */
    assert_int_equal(result.differing, 1);
    assert_int_equal(result.first_index, 2);
    assert_string_equal(result.text, "element 2 is -6, expected -8");
    result = compare(context, 4, actual, expected, exactly);
    assert_int_equal(result.differing, 3);
    assert_int_equal(result.first_index, 0);
    result = compare(context, 4, actual, expected, (uir_tolerance){.atol = 2});
    assert_true(result.agree && result.max_abs == 2 && result.differing == 0);
    assert_string_equal(result.text, "");
    const double wanted[] = {2, 4}, got[] = {3, 2.5}; /* shares of what is expected: 1/2 and 3/8 */
    assert_true(compare(context, 2, got, wanted, (uir_tolerance){.atol = 2}).max_rel == 0.5);
}

static void complex_numbers_have_two_parts(void **state) {
    uir_context *context = *state;
    static const uir_dtype dtypes[] = {UIR_DTYPE_C64, UIR_DTYPE_C128};
    for (int d = 0; d < 2; d++) {
        uir_value *values[2];
        for (int i = 0; i < 2; i++)
            assert_int_equal(uir_value_create_tensor(context, dtypes[d], 1, (int64_t[]){3}, &values[i]), UIR_STATUS_OK);
        for (int part = 0; part < 6; part++) {
            assert_true(query_comparison(values[0], values[1], exactly).agree);
            size_t width = uir_value_get_byte_size(values[0]) / 6;
            double one = 1;
            float half = 1;
            memcpy((char *)uir_value_get_data(values[0]) + (size_t)part * width,
                   width == 8 ? (void *)&one : (void *)&half, width);
            assert_false(query_comparison(values[0], values[1], exactly).agree);
            memcpy((char *)uir_value_get_data(values[1]) + (size_t)part * width,
                   width == 8 ? (void *)&one : (void *)&half, width);
        }
        uir_value_destroy(values[0]);
        uir_value_destroy(values[1]);
    }
}

static void strings_are_equal_byte_for_byte(void **state) {
    uir_context *context = *state;
    static const char *const texts[] = {"", "a", "ab", "abc", "abd", "b"};
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j < 6; j++) {
            uir_value *a, *b;
            assert_int_equal(uir_value_create_tensor(context, UIR_DTYPE_STRING, 1, (int64_t[]){2}, &a), UIR_STATUS_OK);
            assert_int_equal(uir_value_create_tensor(context, UIR_DTYPE_STRING, 1, (int64_t[]){2}, &b), UIR_STATUS_OK);
            assert_int_equal(uir_value_set_string(a, 1, texts[i], strlen(texts[i])), UIR_STATUS_OK);
            assert_int_equal(uir_value_set_string(b, 1, texts[j], strlen(texts[j])), UIR_STATUS_OK);
            uir_comparison result = query_comparison(a, b, exactly);
            assert_int_equal(result.agree, i == j);
            assert_int_equal(result.differing, i != j);
            if (i != j) assert_int_equal(result.first_index, 1);
            uir_value_destroy(a);
            uir_value_destroy(b);
        }
    }
}

/* A sequence of `count` tensors f32 [1], the last one holding `last`, by way of a file. */
static uir_value *sequence(uir_context *context, int count, float last) {
    blob bytes = blob_new();
    put_int(&bytes, SEQUENCE_ELEMENT_TYPE, SEQUENCE_OF_TENSORS);
    for (int i = 0; i < count; i++) {
        float number = i + 1 == count ? last : 0;
        blob tensor = make_tensor("", UIR_DTYPE_F32, 1, (int64_t[]){1});
        put_bytes(&tensor, TENSOR_RAW, &number, sizeof number);
        put_message(&bytes, SEQUENCE_TENSOR, tensor);
    }
    uir_value *value;
    assert_int_equal(sequence_of(context, bytes, &value), UIR_STATUS_OK);
    return value;
}

static void sequences_are_compared_element_by_element(void **state) {
    uir_context *context = *state;
    const double zero = 0;
    uir_value *two = sequence(context, 2, 1), *three = sequence(context, 3, 1), *other = sequence(context, 3, 2);
    uir_value *tensor = doubles(context, 1, &zero);
    assert_int_equal(uir_value_get_count(three), 3);
    assert_true(query_comparison(three, three, exactly).agree);
    assert_false(query_comparison(two, three, exactly).agree);
    assert_false(query_comparison(three, two, exactly).agree);
    assert_string_equal(query_comparison(two, three, exactly).text, "2 elements, expected 3");
    assert_false(query_comparison(three, other, exactly).agree);
    assert_true(query_comparison(three, other, (uir_tolerance){.atol = 1}).agree);
    assert_string_equal(query_comparison(tensor, two, exactly).text, "a tensor, expected a sequence");
    uir_value *one = sequence(context, 1, 1), *like = sequence(context, 1, 1), *unlike = sequence(context, 1, 2);
    assert_true(query_comparison(one, like, exactly).agree);
    assert_int_equal(uir_value_get_count(one), 1);
    assert_true(uir_value_get_double(uir_value_get_element(unlike, 0), 0) == 2);
    assert_string_equal(query_comparison(one, unlike, exactly).text, "element 0 is 1, expected 2");
    uir_value_destroy(one);
    uir_value_destroy(like);
    uir_value_destroy(unlike);
    uir_value_destroy(two);
    uir_value_destroy(three);
    uir_value_destroy(other);
    uir_value_destroy(tensor);
}

/* A NaN agrees with a NaN, and with nothing else. */
static void no_numbers_agree_with_themselves_alone(void **state) {
    uir_context *context = *state;
    const uir_tolerance wide = {.rtol = INFINITY, .atol = INFINITY, .atol_relative_to_max = 1};
    for (int i = 0; i < 2; i++) {
        uir_tolerance tolerance = i ? wide : exactly;
        assert_true(agree(context, NAN, NAN, tolerance));
        assert_true(agree(context, -NAN, NAN, tolerance));
        assert_false(agree(context, NAN, 1, tolerance));
        assert_false(agree(context, 1, NAN, tolerance));
        assert_false(agree(context, INFINITY, NAN, tolerance));
        assert_true(agree(context, INFINITY, INFINITY, tolerance));
    }
}

/* The greatest of the expected numbers, wherever it stands and however small. */
static void bounds_are_of_the_greatest_number(void **state) {
    uir_context *context = *state;
    const uir_tolerance half = {.atol_relative_to_max = 0.5};
    const double numbers[] = {-8, 1, 0.25, 2};
    for (int turn = 0; turn < 4; turn++) {
        double expected[4], near[4], far[4];
        for (int i = 0; i < 4; i++) {
            expected[i] = numbers[(i + turn) % 4];
            near[i] = expected[i] + 4;
            far[i] = expected[i] + 4.25;
        }
        assert_true(compare(context, 4, near, expected, half).agree);
        assert_int_equal(compare(context, 4, far, expected, half).differing, 4);
    }
    assert_true(agree(context, 0.375, 0.25, half));
    assert_false(agree(context, 0.5, 0.25, half));
}

/* Values whose elements agree, and whatever lies behind them does not. */
static void elements_alone_are_compared(void **state) {
    uir_context *context = *state;
    static const struct {
        uir_dtype dtype;
        size_t width;
    } rows[] = {{UIR_DTYPE_F32, 4}, {UIR_DTYPE_F64, 8}, {UIR_DTYPE_C64, 8}, {UIR_DTYPE_C128, 16},
                {UIR_DTYPE_I32, 4}, {UIR_DTYPE_U64, 8}, {UIR_DTYPE_U8, 1},  {UIR_DTYPE_BOOL, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double bytes[2][64];
        uir_value *values[2];
        for (int v = 0; v < 2; v++) {
            memset(bytes[v], v ? 0x11 : 0x44, sizeof bytes[v]);
            memset(bytes[v], 0x01, 6 * rows[i].width);
            assert_int_equal(uir_value_create_tensor_borrowed(context, rows[i].dtype, 2, (int64_t[]){2, 3}, bytes[v],
                                                              6 * rows[i].width, &values[v]),
                             UIR_STATUS_OK);
        }
        uir_comparison result = query_comparison(values[0], values[1], (uir_tolerance){.atol_relative_to_max = 1e-9});
        assert_true(result.agree && result.max_abs == 0 && result.max_rel == 0 && result.differing == 0);
        assert_string_equal(result.text, "");
        memset((char *)bytes[0] + 5 * rows[i].width, 0, rows[i].width);
        result = query_comparison(values[0], values[1], exactly);
        assert_false(result.agree);
        uir_value_destroy(values[0]);
        uir_value_destroy(values[1]);
    }
    const float near[2][6] = {{1, 2, 3, 4, 5, 6}, {1.25f, 2.25f, 3.25f, 4.25f, 5.25f, 6.25f}};
    uir_value *values[2];
    for (int v = 0; v < 2; v++) {
        assert_int_equal(uir_value_create_tensor(context, UIR_DTYPE_F32, 1, (int64_t[]){6}, &values[v]), UIR_STATUS_OK);
        memcpy(uir_value_get_data(values[v]), near[v], sizeof near[v]);
    }
    uir_comparison result = query_comparison(values[0], values[1], (uir_tolerance){.atol = 0.25});
    assert_true(result.agree && result.max_abs == 0.25 && result.differing == 0);
    uir_value_destroy(values[0]);
    uir_value_destroy(values[1]);
}

/* What is not of one type and shape differs as a whole, and both are told. */
static void types_and_shapes_must_be_the_same(void **state) {
    uir_context *context = *state;
    static const struct {
        uir_dtype dtype;
        uint32_t rank;
        int64_t shape[3];
    } rows[] = {{UIR_DTYPE_F32, 2, {2, 3}}, {UIR_DTYPE_I32, 2, {2, 3}},    {UIR_DTYPE_F32, 2, {3, 2}},
                {UIR_DTYPE_F32, 2, {2, 2}}, {UIR_DTYPE_F32, 2, {1, 3}},    {UIR_DTYPE_F32, 1, {6}},
                {UIR_DTYPE_F32, 1, {2}},    {UIR_DTYPE_F32, 3, {2, 3, 1}}, {UIR_DTYPE_F32, 0, {0}}};
    enum { ROWS = sizeof rows / sizeof *rows };
    uir_value *values[ROWS];
    for (int i = 0; i < ROWS; i++)
        assert_int_equal(uir_value_create_tensor(context, rows[i].dtype, rows[i].rank, rows[i].shape, &values[i]),
                         UIR_STATUS_OK);
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < ROWS; j++) {
            uir_comparison result = query_comparison(values[i], values[j], exactly);
            assert_int_equal(result.agree, i == j);
            assert_int_equal(result.text[0] == 0, i == j);
        }
    }
    assert_string_equal(query_comparison(values[0], values[1], exactly).text, "f32[2,3], expected i32[2,3]");
    for (int i = 0; i < ROWS; i++) uir_value_destroy(values[i]);
}

/* Of several differences the first is told; all are counted. */
static void the_first_difference_is_told(void **state) {
    uir_context *context = *state;
    uir_value *values[2];
    for (int v = 0; v < 2; v++) {
        assert_int_equal(uir_value_create_tensor(context, UIR_DTYPE_STRING, 1, (int64_t[]){3}, &values[v]),
                         UIR_STATUS_OK);
        for (uint64_t i = 0; i < 3; i++)
            assert_int_equal(uir_value_set_string(values[v], i,
                                                  v   ? "same"
                                                  : i ? "other"
                                                      : "lame",
                                                  i && !v ? 5 : 4),
                             UIR_STATUS_OK);
    }
    uir_comparison result = query_comparison(values[0], values[1], exactly);
    assert_true(!result.agree && result.differing == 3 && result.first_index == 0);
    assert_string_equal(result.text, "string 0 differs");
    uir_value_destroy(values[0]);
    uir_value_destroy(values[1]);
}

/* Where nobody states a tolerance the dtype has one, each part by itself. */
static void dtypes_have_tolerances_of_their_own(void **state) {
    static const struct {
        uir_dtype dtype;
        uint32_t one, near, far; /* bits of 1, of what is within both parts of it, of what is not */
        double rtol, relative;
    } rows[] = {{UIR_DTYPE_F16, 0x3c00, 0x3c07, 0x3c09, 0x1p-8, 0x1p-8},
                {UIR_DTYPE_BF16, 0x3f80, 0x3f87, 0x3f89, 0x1p-5, 0x1p-5},
                {UIR_DTYPE_F32, 0x3f800000, 0x3f802000, 0x3f803000, 1e-3, 1e-4}};
    const uir_tolerance by_dtype = {.rtol = -1, .atol_relative_to_max = -1};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uir_value *values[2];
        size_t bytes = rows[i].dtype == UIR_DTYPE_F32 ? 4 : 2;
        uint32_t tried[] = {rows[i].near, rows[i].far};
        uir_tolerance own = {sizeof own, 9, 9, 9, 9};
        assert_int_equal(uir_dtype_get_tolerance(rows[i].dtype, &own), UIR_STATUS_OK);
        assert_true(own.rtol == rows[i].rtol && own.atol_relative_to_max == rows[i].relative);
        assert_true(own.atol == 0 && own.integers == 0);
        for (int v = 0; v < 2; v++)
            assert_int_equal(uir_value_create_tensor(*state, rows[i].dtype, 1, (int64_t[]){1}, &values[v]), 0);
        memcpy(uir_value_get_data(values[1]), &rows[i].one, bytes);
        for (int k = 0; k < 2; k++) {
            memcpy(uir_value_get_data(values[0]), &tried[k], bytes);
            uir_comparison result = query_comparison(values[0], values[1], by_dtype);
            assert_int_equal(result.agree, k == 0);
            assert_true(result.rtol == own.rtol && result.atol == own.atol_relative_to_max);
            result = query_comparison(values[0], values[1], (uir_tolerance){.rtol = -1, .atol = 9});
            assert_true(result.agree && result.rtol == own.rtol && result.atol == 9);
            assert_false(query_comparison(values[0], values[1], (uir_tolerance){.atol_relative_to_max = -1}).agree &&
                         k == 1);
        }
        uir_value_destroy(values[0]);
        uir_value_destroy(values[1]);
    }
    uir_tolerance none = {sizeof none, 9, 9, 9, 9};
    assert_int_equal(uir_dtype_get_tolerance(UIR_DTYPE_I64, &none), UIR_STATUS_OK);
    assert_true(none.rtol == 0 && none.atol == 0 && none.atol_relative_to_max == 0 && none.integers == 0);
    assert_int_equal(uir_dtype_get_tolerance((uir_dtype)99, &none), UIR_STATUS_OK);
    assert_true(none.rtol == 0);
}

/* The angle counts all pairs of numbers, however large, and no others. */
static void the_cosine_is_of_all_numbers(void **state) {
    const double a[] = {3, 0, INFINITY, NAN}, b[] = {4, 3, INFINITY, NAN}, zeros[4] = {0};
    const double large[] = {3e300, 4e300, 0, 0}, small[] = {3e-300, 4e-300, 0, 0};
    uir_comparison result = compare(*state, 4, a, b, exactly);
    assert_true(result.count == 4 && result.differing == 2 && fabs(result.cosine - 0.8) < 1e-15);
    assert_true(compare(*state, 4, large, small, exactly).cosine == 1);
    assert_true(compare(*state, 4, zeros, zeros, exactly).cosine == 1);
    assert_true(compare(*state, 4, zeros, large, exactly).cosine == 0);
    assert_true(isnan(compare(*state, 2, a + 2, b + 2, exactly).cosine));
    const double minus[] = {-3e300, -4e300, 0, 0};
    assert_true(compare(*state, 4, minus, large, exactly).cosine == -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtypes_have_tolerances_of_their_own),
        cmocka_unit_test(the_cosine_is_of_all_numbers),
        cmocka_unit_test(bounds_are_of_the_expected_value),
        cmocka_unit_test(integers_have_a_bound_of_their_own),
        cmocka_unit_test(wide_integers_are_far_apart),
        cmocka_unit_test(infinities_agree_with_themselves_alone),
        cmocka_unit_test(the_greatest_differences_are_told),
        cmocka_unit_test(complex_numbers_have_two_parts),
        cmocka_unit_test(strings_are_equal_byte_for_byte),
        cmocka_unit_test(sequences_are_compared_element_by_element),
        cmocka_unit_test(no_numbers_agree_with_themselves_alone),
        cmocka_unit_test(bounds_are_of_the_greatest_number),
        cmocka_unit_test(elements_alone_are_compared),
        cmocka_unit_test(types_and_shapes_must_be_the_same),
        cmocka_unit_test(the_first_difference_is_told),
    };
    return cmocka_run_group_tests(tests, make_context, destroy_context);
}
