/* Tensors and run-time values: shapes, ownership, strings. */
#include "support.h"

#include "base/datum.h"

#include <string.h>

static void test_element_count(void **state) {
    (void)state;
    uint64_t count = 9;
    assert_true(uir_shape_element_count(NULL, 0, &count));
    assert_int_equal(count, 1);
    assert_true(uir_shape_element_count((int64_t[]){2, 3, 4}, 3, &count));
    assert_int_equal(count, 24);
    /* A zero makes the rest irrelevant. */
    assert_true(uir_shape_element_count((int64_t[]){INT64_MAX, INT64_MAX, 0}, 3, &count));
    assert_int_equal(count, 0);
    count = 9;
    assert_true(uir_shape_element_count((int64_t[]){0, INT64_MAX, INT64_MAX}, 3, &count));
    assert_int_equal(count, 0);
    count = 9;
    assert_true(uir_shape_element_count((int64_t[]){INT64_MAX, INT64_MAX, 0, 5}, 4, &count));
    assert_int_equal(count, 0);
    assert_true(uir_shape_element_count((int64_t[]){INT64_MAX}, 1, &count));
    assert_false(uir_shape_element_count((int64_t[]){INT64_MAX, 2}, 2, &count));
    assert_false(uir_shape_element_count((int64_t[]){0, -1}, 2, &count));
    int64_t ones[UIR_MAX_RANK + 1];
    for (int i = 0; i <= UIR_MAX_RANK; i++) ones[i] = 1;
    assert_true(uir_shape_element_count(ones, UIR_MAX_RANK, &count));
    assert_false(uir_shape_element_count(ones, UIR_MAX_RANK + 1, &count));
}

static void test_owned_and_borrowed(void **state) {
    (void)state;
    failing_memory memory = {0};
    uir_allocator allocator = failing_allocator(&memory);
    uir_tensor *tensor;
    assert_int_equal(uir_tensor_create(&allocator, UIR_DTYPE_F32, 2, (int64_t[]){2, 3}, &tensor), UIR_STATUS_OK);
    assert_int_equal(tensor->byte_size, 24);
    assert_int_equal((uintptr_t)tensor->data % 64, 0);
    for (int i = 0; i < 6; i++) assert_true(((float *)tensor->data)[i] == 0);
    char text[64];
    uir_tensor_describe(tensor, text, sizeof text);
    assert_string_equal(text, "f32[2,3]");
    /* Cut anywhere, and nothing written past what was given. */
    for (size_t capacity = 0; capacity < 12; capacity++) {
        memset(text, 'z', sizeof text);
        uir_tensor_describe(tensor, text, capacity);
        assert_int_equal(text[capacity], 'z');
        if (capacity) assert_memory_equal(text, "f32[2,3]", capacity < 9 ? capacity - 1 : 9);
        if (capacity) assert_int_equal(text[capacity < 9 ? capacity - 1 : 8], 0);
    }
    assert_int_equal(uir_tensor_set_string(tensor, 0, "x", 1), UIR_STATUS_INVALID_ARGUMENT);
    uir_tensor_retain(tensor);
    uir_tensor_release(tensor);
    assert_true(memory.live_bytes > 0);
    uir_tensor_release(tensor);
    assert_int_equal(memory.live_bytes, 0);

    static const float values[] = {1, 2};
    assert_int_equal(uir_tensor_create_borrowed(&allocator, UIR_DTYPE_F32, 1, (int64_t[]){2}, values, &tensor),
                     UIR_STATUS_OK);
    assert_ptr_equal(tensor->data, values);
    uir_tensor_release(tensor);

    static const int64_t shape[] = {1, 2, 3, 4, 5};
    assert_int_equal(uir_tensor_create(&allocator, UIR_DTYPE_F16, 5, shape, &tensor), UIR_STATUS_OK);
    assert_int_equal(tensor->rank, 5);
    assert_memory_equal(tensor->shape, shape, sizeof shape);
    assert_int_equal(tensor->element_count, 120);
    uir_tensor_describe(tensor, text, sizeof text);
    assert_string_equal(text, "f16[1,2,3,4,5]");
    uir_tensor_release(tensor);

    assert_int_equal(uir_tensor_create(&allocator, UIR_DTYPE_I4, 0, NULL, &tensor), UIR_STATUS_OK);
    assert_int_equal(tensor->byte_size, 1);
    uir_tensor_describe(tensor, text, sizeof text);
    assert_string_equal(text, "i4[]");
    uir_tensor_release(tensor);
    assert_int_equal(uir_tensor_create(&allocator, UIR_DTYPE_F32, 1, (int64_t[]){0}, &tensor), UIR_STATUS_OK);
    assert_null(tensor->data);
    uir_tensor_release(tensor);
    uir_tensor_release(NULL);

    assert_int_equal(uir_tensor_create(&allocator, UIR_DTYPE_NONE, 0, NULL, &tensor), UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_tensor_create(&allocator, UIR_DTYPE_F32, 1, (int64_t[]){-1}, &tensor),
                     UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_tensor_create(&allocator, UIR_DTYPE_F32, 1, (int64_t[]){INT64_MAX}, &tensor),
                     UIR_STATUS_OUT_OF_MEMORY);
    assert_null(tensor);
    assert_int_equal(memory.live_bytes, 0);
}

static void test_strings(void **state) {
    (void)state;
    failing_memory memory = {0};
    uir_allocator allocator = failing_allocator(&memory);
    uir_tensor *tensor;
    assert_int_equal(uir_tensor_create(&allocator, UIR_DTYPE_STRING, 1, (int64_t[]){3}, &tensor), UIR_STATUS_OK);
    assert_int_equal(uir_tensor_set_string(tensor, 0, "first", 5), UIR_STATUS_OK);
    assert_int_equal(uir_tensor_set_string(tensor, 0, "again\0!", 7), UIR_STATUS_OK);
    assert_int_equal(uir_tensor_set_string(tensor, 2, "", 0), UIR_STATUS_OK);
    assert_int_equal(uir_tensor_set_string(tensor, 3, "x", 1), UIR_STATUS_INVALID_ARGUMENT);
    const uir_string_view *views = tensor->data;
    assert_int_equal(views[0].length, 7);
    assert_memory_equal(views[0].text, "again\0!", 7);
    assert_int_equal(views[1].length, 0);
    uir_tensor *borrowed; /* whose strings are somebody else's to change */
    assert_int_equal(uir_tensor_create_borrowed(&allocator, UIR_DTYPE_STRING, 1, (int64_t[]){3}, views, &borrowed),
                     UIR_STATUS_OK);
    assert_int_equal(uir_tensor_set_string(borrowed, 0, "x", 1), UIR_STATUS_INVALID_ARGUMENT);
    uir_tensor_release(borrowed);
    assert_int_equal(views[0].length, 7);
    uir_tensor_release(tensor);
    assert_int_equal(memory.live_bytes, 0);
}

static void test_values(void **state) {
    (void)state;
    failing_memory memory = {0};
    uir_allocator allocator = failing_allocator(&memory);
    uir_datum *list, *element, *option;
    uir_tensor *tensor;
    assert_int_equal(uir_datum_create_list(&allocator, UIR_VALUE_SEQUENCE, UIR_DTYPE_F32, &list), UIR_STATUS_OK);
    for (int i = 0; i < 9; i++) {
        assert_int_equal(uir_tensor_create(&allocator, UIR_DTYPE_F32, 0, NULL, &tensor), UIR_STATUS_OK);
        assert_int_equal(uir_datum_create_tensor(&allocator, tensor, &element), UIR_STATUS_OK);
        assert_int_equal(uir_datum_append(list, element), UIR_STATUS_OK);
    }
    assert_int_equal(list->count, 9);
    assert_int_equal(uir_datum_append(element, list), UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_datum_create_list(&allocator, UIR_VALUE_TENSOR, UIR_DTYPE_F32, &option),
                     UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_datum_create_list(&allocator, UIR_VALUE_OPTIONAL, UIR_DTYPE_F32, &option), UIR_STATUS_OK);
    uir_datum_retain(list);
    assert_int_equal(uir_datum_append(option, list), UIR_STATUS_OK);
    assert_int_equal(uir_datum_append(option, list), UIR_STATUS_INVALID_ARGUMENT);
    uir_datum_release(list);
    uir_datum_release(option);
    uir_datum_release(NULL);
    assert_int_equal(memory.live_bytes, 0);
}

static bool make_all(const uir_allocator *allocator) {
    uir_tensor *tensor = NULL, *strings = NULL;
    bool done = uir_tensor_create(allocator, UIR_DTYPE_F32, 1, (int64_t[]){4}, &tensor) == UIR_STATUS_OK &&
                uir_tensor_create(allocator, UIR_DTYPE_STRING, 1, (int64_t[]){4}, &strings) == UIR_STATUS_OK;
    for (uint64_t i = 0; i < 4 && done; i++) done = uir_tensor_set_string(strings, i, "text", 4) == UIR_STATUS_OK;
    uir_tensor_release(tensor);
    uir_tensor_release(strings);
    return done;
}

static void test_every_allocation_may_fail(void **state) {
    (void)state;
    run_with_failures(make_all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_element_count),
        cmocka_unit_test(test_owned_and_borrowed),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
