/* Values of the public API: tensors, files of numpy and of ONNX, pictures, comparison. */
#include "tests/base/support.h"
#include "tools/run/query.h"
#include "uir/uir.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char folder[64];
static const char *in_folder(const char *name) {
    static char path[2][256];
    static int which;
    which = !which;
    snprintf(path[which], sizeof path[which], "%s/%s", folder, name);
    return path[which];
}

static int make_folder(void **state) {
    uir_context *context;
    snprintf(folder, sizeof folder, "/tmp/uir_values_XXXXXX");
    if (!mkdtemp(folder) || uir_context_create(NULL, &context) != UIR_STATUS_OK) return -1;
    *state = context;
    return 0;
}

static int remove_folder(void **state) {
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    uir_context_destroy(*state);
    return system(command);
}

static void write_bytes(const char *name, const void *data, size_t size) {
    FILE *file = fopen(in_folder(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    fclose(file);
}

static uir_value *make_tensor(uir_context *context, uir_dtype dtype, int64_t rows, int64_t columns) {
    uir_value *value;
    assert_int_equal(uir_value_create_tensor(context, dtype, 2, (int64_t[]){rows, columns}, &value), UIR_STATUS_OK);
    return value;
}

static const uir_tolerance exactly = {.struct_size = sizeof exactly};

static void expect_last_message(uir_context *context, const char *text) {
    size_t count = uir_context_message_count(context);
    assert_true(count > 0);
    const char *said = uir_context_get_message_text(context, count - 1);
    if (!strstr(said, text)) fail_msg("'%s' does not say '%s'", said, text);
}

static void tensors_are_zeroed_and_checked(void **state) {
    uir_context *context = *state;
    uir_value *value;
    int64_t negative[] = {-1}, huge[] = {INT64_MAX, 4}, fine[] = {2, 0, 3};
    float data[6] = {0};
    assert_int_equal(uir_value_create_tensor(context, UIR_DTYPE_F32, 1, negative, &value), UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_value_create_tensor(context, UIR_DTYPE_F32, 2, huge, &value), UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_value_create_tensor(context, (uir_dtype)99, 0, NULL, &value), UIR_STATUS_INVALID_ARGUMENT);
    assert_null(value);
    assert_int_equal(uir_value_create_tensor(context, UIR_DTYPE_F32, 3, fine, &value), UIR_STATUS_OK);
    assert_int_equal(uir_value_get_element_count(value), 0);
    uir_value_destroy(value);
    assert_int_equal(uir_value_create_tensor_borrowed(context, UIR_DTYPE_F32, 1, (int64_t[]){6}, data, 23, &value),
                     UIR_STATUS_INVALID_ARGUMENT);
    expect_last_message(context, "the buffer has 23 bytes, and the tensor requires 24");
    assert_int_equal(uir_value_create_tensor_borrowed(context, UIR_DTYPE_F32, 1, (int64_t[]){5}, data, 24, &value),
                     UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_value_create_tensor_borrowed(context, UIR_DTYPE_F32, 1, (int64_t[]){6}, NULL, 24, &value),
                     UIR_STATUS_INVALID_ARGUMENT);
    expect_last_message(context, "the buffer has 0 bytes, and the tensor requires 24");
    assert_int_equal(uir_value_create_tensor_borrowed(context, UIR_DTYPE_F32, 1, (int64_t[]){0}, NULL, 0, &value),
                     UIR_STATUS_OK);
    uir_value_destroy(value);
    assert_int_equal(uir_value_create_tensor_borrowed(context, UIR_DTYPE_F32, 1, (int64_t[]){6}, data, 24, &value),
                     UIR_STATUS_OK);
    assert_ptr_equal(uir_value_get_data(value), data);
    assert_int_equal(uir_value_fill_random(value, 1, 1, 2), UIR_STATUS_INVALID_ARGUMENT); /* it is not its own */
    assert_true(data[0] == 0 && uir_value_get_double(value, 5) == 0);
    assert_int_equal(uir_value_set_string(value, 0, "a", 1), UIR_STATUS_INVALID_ARGUMENT);
    uir_value_destroy(value);
    data[1] = 3; /* behind what the tensor borrows */
    assert_int_equal(uir_value_create_tensor_borrowed(context, UIR_DTYPE_F32, 1, (int64_t[]){1}, data, 4, &value),
                     UIR_STATUS_OK);
    assert_true(uir_value_get_double(value, 1) == 0);
    uir_value_destroy(value);
    assert_int_equal(uir_value_create_tensor(context, UIR_DTYPE_STRING, 1, (int64_t[]){2}, &value), UIR_STATUS_OK);
    assert_int_equal(uir_value_set_string(value, 1, "a", 1), UIR_STATUS_OK);
    assert_int_equal(uir_value_set_string(value, 2, "a", 1), UIR_STATUS_INVALID_ARGUMENT);
    expect_last_message(context, "not a string tensor with an element 2");
    uir_value_destroy(value);
}

static void random_values_depend_on_the_seed_alone(void **state) {
    uir_context *context = *state;
    for (int dtype = 1; dtype < UIR_DTYPE_COUNT; dtype++) {
        uir_value *a = make_tensor(context, (uir_dtype)dtype, 7, 9), *b = make_tensor(context, (uir_dtype)dtype, 7, 9);
        bool numbers = dtype != UIR_DTYPE_STRING && dtype != UIR_DTYPE_C64 && dtype != UIR_DTYPE_C128;
        uir_status status = uir_value_fill_random(a, 5, 0, 1);
        assert_int_equal(status, numbers ? UIR_STATUS_OK : UIR_STATUS_INVALID_ARGUMENT);
        if (numbers) {
            assert_int_equal(uir_value_fill_random(b, 5, 0, 1), UIR_STATUS_OK);
            assert_true(query_comparison(a, b, exactly).agree);
            for (uint64_t i = 0; i < 63; i++) {
                double element = uir_value_get_double(a, i);
                if (dtype != UIR_DTYPE_F8E8M0) assert_true(element >= 0 && element <= 1);
            }
        }
        uir_value_destroy(a);
        uir_value_destroy(b);
    }
    uir_value *value = make_tensor(context, UIR_DTYPE_I32, 100, 100);
    assert_int_equal(uir_value_fill_random(value, 1, -3, 4), UIR_STATUS_OK);
    double least = 9, greatest = -9;
    for (uint64_t i = 0; i < 10000; i++) {
        least = fmin(least, uir_value_get_double(value, i));
        greatest = fmax(greatest, uir_value_get_double(value, i));
    }
    assert_true(least == -3 && greatest == 4);
    uir_value_destroy(value);
    value = make_tensor(context, UIR_DTYPE_U8, 100, 10); /* of a range that it has not all of, what it has */
    assert_int_equal(uir_value_fill_random(value, 1, -1000, 3), UIR_STATUS_OK);
    for (uint64_t i = 0; i < 1000; i++) assert_in_range(uir_value_get_double(value, i), 0, 3);
    assert_int_equal(uir_value_fill_random(value, 1, 250, 1000), UIR_STATUS_OK);
    for (uint64_t i = 0; i < 1000; i++) assert_in_range(uir_value_get_double(value, i), 250, 255);
    assert_int_equal(uir_value_fill_random(value, 1, 2, 1), UIR_STATUS_INVALID_ARGUMENT);
    uir_value_destroy(value);
}

/* The numbers of splitmix64, on every machine: whoever names a seed means these. */
static void random_values_are_these(void **state) {
    uir_context *context = *state;
    static const double floats[] = {0x1.775cc898bfadap+1,  -0x1.b880e6626cc88p+0, -0x1.8ad98a8ecf068p-1,
                                    -0x1.f8c7803c6d480p-3, -0x1.590e9e976edf8p+1, 0x1.f910c7e8f2036p+1};
    static const double integers[] = {3, -2, -1, 0, -3, 4}, booleans[] = {1, 0, 0, 0, 0, 1};
    static const struct {
        uir_dtype dtype;
        double low, high;
        const double *numbers;
    } rows[] = {{UIR_DTYPE_F64, -3, 5, floats}, {UIR_DTYPE_I64, -3, 5, integers}, {UIR_DTYPE_BOOL, 0, 1, booleans}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        uir_value *value = make_tensor(context, rows[r].dtype, 2, 3);
        assert_int_equal(uir_value_fill_random(value, 42, rows[r].low, rows[r].high), UIR_STATUS_OK);
        for (uint64_t i = 0; i < 6; i++) assert_true(uir_value_get_double(value, i) == rows[r].numbers[i]);
        uir_value_destroy(value);
    }
    uir_value *value = make_tensor(context, UIR_DTYPE_F32, 2, 3);
    assert_int_equal(uir_value_fill_random(value, 42, 7, 7), UIR_STATUS_OK);
    for (uint64_t i = 0; i < 6; i++) assert_true(uir_value_get_double(value, i) == 7);
    assert_int_equal(uir_value_fill_random(value, 42, NAN, 7), UIR_STATUS_INVALID_ARGUMENT);
    uir_value_destroy(value);
}

static void files_give_back_what_was_written(void **state) {
    uir_context *context = *state;
    for (int dtype = 1; dtype < UIR_DTYPE_COUNT; dtype++) {
        uir_value *value = make_tensor(context, (uir_dtype)dtype, 3, 5), *read;
        if (dtype == UIR_DTYPE_STRING) {
            assert_int_equal(uir_value_set_string(value, 4, "a\0b", 3), UIR_STATUS_OK);
        } else if (dtype != UIR_DTYPE_C64 && dtype != UIR_DTYPE_C128) {
            assert_int_equal(uir_value_fill_random(value, (uint64_t)dtype, -2, 2), UIR_STATUS_OK);
        }
        assert_int_equal(uir_value_save_file(context, value, in_folder("v.pb"), "its name"), UIR_STATUS_OK);
        assert_int_equal(uir_value_load_file(context, in_folder("v.pb"), NULL, UIR_VALUE_TENSOR, &read), UIR_STATUS_OK);
        assert_string_equal(uir_value_get_name(read), "its name");
        assert_true(query_comparison(read, value, exactly).agree);
        uir_value_destroy(read);
        uir_status status = uir_value_save_file(context, value, in_folder("v.npy"), "");
        assert_int_equal(status, dtype == UIR_DTYPE_STRING ? UIR_STATUS_UNSUPPORTED : UIR_STATUS_OK);
        if (status == UIR_STATUS_OK) {
            assert_int_equal(uir_value_load_file(context, in_folder("v.npy"), NULL, UIR_VALUE_TENSOR, &read),
                             UIR_STATUS_OK);
            for (uint64_t i = 0; i < 15; i++) {
                double a = uir_value_get_double(read, i), b = uir_value_get_double(value, i);
                assert_true(a == b || (isnan(a) && isnan(b)));
            }
            uir_value_destroy(read);
        }
        uir_value_destroy(value);
    }
}

/* An .npy file of format 1. */
static size_t make_npy(uint8_t *out, const char *dict, const void *data, size_t size) {
    size_t length = strlen(dict);
    memcpy(out, "\x93NUMPY\1\0", 8);
    out[8] = (uint8_t)length;
    out[9] = (uint8_t)(length >> 8);
    memcpy(out + 10, dict, length);
    memcpy(out + 10 + length, data, size);
    return 10 + length + size;
}

static void npy_files_of_others_are_read(void **state) {
    uir_context *context = *state;
    static const struct {
        const char *dict;
        const char *data;
        size_t size;
        uir_dtype dtype;
        double first, last;
    } cases[] = {
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }\n", "\1\0\2\0\3\0\4\0\5\0\6\0", 12, UIR_DTYPE_I16,
         1, 6},
        {"{'descr': '>i2', 'fortran_order': False, 'shape': (2, 3), }\n", "\0\1\0\2\0\3\0\4\0\5\0\6", 12, UIR_DTYPE_I16,
         1, 6},
        {"{'shape': (2L, 3L), 'fortran_order': True, 'descr': '|u1'}", "\1\4\2\5\3\6", 6, UIR_DTYPE_U8, 1, 6},
        {"{'descr': '|b1', 'fortran_order': False, 'shape': ()}", "\7", 1, UIR_DTYPE_BOOL, 1, 1},
        {"{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (1,)}", "\0\0\xc0\x3f", 4, UIR_DTYPE_F32, 1.5, 1.5},
    };
    uint8_t bytes[300];
    uir_value *value;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size = make_npy(bytes, cases[i].dict, cases[i].data, cases[i].size);
        for (int extra = -1; extra <= 1; extra++) {
            write_bytes("v.npy", bytes, (size_t)((int)size + extra));
            uir_status status = uir_value_load_file(context, in_folder("v.npy"), NULL, UIR_VALUE_TENSOR, &value);
            assert_int_equal(status, extra ? UIR_STATUS_BAD_FILE : UIR_STATUS_OK);
            if (extra) continue;
            assert_int_equal(uir_value_get_dtype(value), cases[i].dtype);
            uint64_t count = uir_value_get_element_count(value);
            assert_true(uir_value_get_double(value, 0) == cases[i].first);
            assert_true(uir_value_get_double(value, count - 1) == cases[i].last);
            if (count == 6) assert_true(uir_value_get_double(value, 1) == 2);
            uir_value_destroy(value);
        }
    }
    /* The strings "a", "" and an e with an accent, as numpy's unicode. */
    static const char unicode[] = "a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xe9\0\0\0b\0\0\0";
    size_t size = make_npy(bytes, "{'descr': '<U2', 'fortran_order': False, 'shape': (3,)}", unicode, 24);
    write_bytes("v.npy", bytes, size);
    assert_int_equal(uir_value_load_file(context, in_folder("v.npy"), NULL, UIR_VALUE_TENSOR, &value), UIR_STATUS_OK);
    const uir_string_view *strings = uir_value_get_data(value);
    assert_int_equal(strings[0].length, 1);
    assert_int_equal(strings[1].length, 0);
    assert_int_equal(strings[2].length, 3);
    assert_memory_equal(strings[2].text,
                        "\xc3\xa9"
                        "b",
                        3);
    uir_value_destroy(value);
}

static void damaged_npy_files_are_refused(void **state) {
    uir_context *context = *state;
    static const char not_understood[] = "the header is not understood", no_size[] = "the data's size does not match",
                      cut_off[] = "the header is cut off";
    static const struct {
        const char *dict, *message;
        int more; /* bytes that the header is said to have more than it has */
    } files[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", not_understood, 0},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551617,)}", not_understood, 0},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", "the shape is too large", 0},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", not_understood, 0},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", no_size, 0},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, "
         "1, "
         "1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)}",
         not_understood, 0},
        {"{'descr': '<f4x', 'fortran_order': False, 'shape': (1,)}", not_understood, 0},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}", not_understood, 0},
        {"{'descr': '<f4', 'shape': (1,)}", not_understood, 0},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", not_understood, 0},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", not_understood, 0},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}", not_understood, 0},
        {"{'descr': '<S99999999999', 'fortran_order': False, 'shape': (1,)}", no_size, 0},
        {"{'descr': '<U0', 'fortran_order': False, 'shape': (999999999999,)}", no_size, 0},
        {"{'descr': '<U0', 'fortran_order': False, 'shape': (2000000,)}", no_size, 0},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", cut_off, 5},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", cut_off, 100},
        {"{", not_understood, 0},
        {"", not_understood, 0},
    };
    uint8_t bytes[300];
    uir_value *value;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        size_t size = make_npy(bytes, files[i].dict, "\0\0\0\0", 4);
        bytes[8] = (uint8_t)(bytes[8] + files[i].more);
        write_bytes("v.npy", bytes, size);
        assert_int_equal(uir_value_load_file(context, in_folder("v.npy"), NULL, UIR_VALUE_TENSOR, &value),
                         UIR_STATUS_BAD_FILE);
        expect_last_message(context, files[i].message);
    }
    write_bytes("v.npy", bytes,
                make_npy(bytes, "{'descr': '<U0', 'fortran_order': False, 'shape': (2000000,)}", "", 0));
    assert_int_equal(uir_value_load_file(context, in_folder("v.npy"), NULL, UIR_VALUE_TENSOR, &value),
                     UIR_STATUS_LIMIT);
    write_bytes("v.npy", bytes, make_npy(bytes, "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "", 0));
    assert_int_equal(uir_value_load_file(context, in_folder("v.npy"), NULL, UIR_VALUE_TENSOR, &value),
                     UIR_STATUS_BAD_FILE);
    write_bytes("v.npy", bytes,
                make_npy(bytes, "{'descr': '<M8', 'fortran_order': False, 'shape': (1,)}", "12345678", 8));
    assert_int_equal(uir_value_load_file(context, in_folder("v.npy"), NULL, UIR_VALUE_TENSOR, &value),
                     UIR_STATUS_UNSUPPORTED);
}

/* numpy.savez_compressed(f, first=np.arange(6, dtype='u1').reshape(2, 3), second=np.float32([1.5])), and the same
 * stored. */
static const char deflated_npz[] =
#include "tests/api/deflated_npz.inc"
    ;
static const char stored_npz[] =
#include "tests/api/stored_npz.inc"
    ;

static void npz_members_are_read(void **state) {
    uir_context *context = *state;
    const struct {
        const char *bytes;
        size_t size;
    } files[] = {{deflated_npz, sizeof deflated_npz - 1}, {stored_npz, sizeof stored_npz - 1}};
    uir_value *value;
    for (size_t i = 0; i < 2; i++) {
        write_bytes("v.npz", files[i].bytes, files[i].size);
        assert_int_equal(uir_value_load_file(context, in_folder("v.npz"), "first", UIR_VALUE_TENSOR, &value),
                         UIR_STATUS_OK);
        assert_int_equal(uir_value_get_element_count(value), 6);
        assert_true(uir_value_get_double(value, 5) == 5);
        uir_value_destroy(value);
        assert_int_equal(uir_value_load_file(context, in_folder("v.npz"), "second.npy", UIR_VALUE_TENSOR, &value),
                         UIR_STATUS_OK);
        assert_true(uir_value_get_double(value, 0) == 1.5);
        uir_value_destroy(value);
        assert_int_equal(uir_value_load_file(context, in_folder("v.npz"), "third", UIR_VALUE_TENSOR, &value),
                         UIR_STATUS_NOT_FOUND);
        assert_int_equal(uir_value_load_file(context, in_folder("v.npz"), NULL, UIR_VALUE_TENSOR, &value),
                         UIR_STATUS_INVALID_ARGUMENT);
        /* Damaged anywhere: refused, or read as it was when the byte does not matter. */
        for (size_t at = 0; at < files[i].size; at++) {
            uint8_t copy[2000];
            assert_true(files[i].size <= sizeof copy);
            memcpy(copy, files[i].bytes, files[i].size);
            copy[at] ^= 0x55;
            write_bytes("d.npz", copy, files[i].size);
            if (uir_value_load_file(context, in_folder("d.npz"), "first", UIR_VALUE_TENSOR, &value) == UIR_STATUS_OK) {
                assert_true(uir_value_get_double(value, 5) == 5);
                uir_value_destroy(value);
            }
            write_bytes("d.npz", files[i].bytes, at);
            assert_int_not_equal(uir_value_load_file(context, in_folder("d.npz"), "first", UIR_VALUE_TENSOR, &value),
                                 UIR_STATUS_OK);
        }
    }
}

static void pictures_become_bytes(void **state) {
    uir_context *context = *state;
    uir_value *value;
    write_bytes("v.ppm", "P6 2 1 255\n\1\2\3\4\5\6", 17);
    assert_int_equal(uir_value_load_file(context, in_folder("v.ppm"), NULL, UIR_VALUE_TENSOR, &value), UIR_STATUS_OK);
    assert_int_equal(uir_value_get_dtype(value), UIR_DTYPE_U8);
    assert_int_equal(uir_value_get_shape(value)[0], 1);
    assert_int_equal(uir_value_get_shape(value)[1], 2);
    assert_int_equal(uir_value_get_shape(value)[2], 3);
    assert_true(uir_value_get_double(value, 5) == 6);
    uir_value_destroy(value);
    write_bytes("v.png", "P6 2", 4);
    assert_int_equal(uir_value_load_file(context, in_folder("v.png"), NULL, UIR_VALUE_TENSOR, &value),
                     UIR_STATUS_BAD_FILE);
}

static void what_cannot_be_read_is_said(void **state) {
    uir_context *context = *state;
    uir_value *value = make_tensor(context, UIR_DTYPE_F32, 1, 1), *read;
    assert_int_equal(uir_value_load_file(context, in_folder("missing.pb"), NULL, UIR_VALUE_TENSOR, &read),
                     UIR_STATUS_NOT_FOUND);
    expect_last_message(context, "missing.pb");
    write_bytes("v.txt", "1 2 3", 5);
    assert_int_equal(uir_value_load_file(context, in_folder("v.txt"), NULL, UIR_VALUE_TENSOR, &read),
                     UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_value_load_file(context, folder, NULL, UIR_VALUE_TENSOR, &read), UIR_STATUS_BAD_FILE);
    assert_int_equal(uir_value_load_raw(context, in_folder("v.txt"), UIR_DTYPE_U8, 1, (int64_t[]){4}, &read),
                     UIR_STATUS_BAD_DATA);
    expect_last_message(context, "5 bytes where 4 are needed");
    assert_int_equal(uir_value_load_raw(context, in_folder("v.txt"), UIR_DTYPE_U8, 1, (int64_t[]){5}, &read),
                     UIR_STATUS_OK);
    assert_true(uir_value_get_double(read, 2) == '2');
    uir_value_destroy(read);
    assert_int_equal(uir_value_save_file(context, value, in_folder("v.NPY"), ""), UIR_STATUS_OK);
    assert_int_equal(uir_value_load_file(context, in_folder("v.NPY"), NULL, UIR_VALUE_TENSOR, &read), UIR_STATUS_OK);
    assert_int_equal(uir_value_get_element_count(read), 1);
    uir_value_destroy(read);
    assert_int_equal(uir_value_save_file(context, value, "/nonexistent folder/v.pb", ""), UIR_STATUS_IO_FAILED);
    expect_last_message(context, "/nonexistent folder/v.pb");
    assert_int_equal(uir_value_save_file(context, value, in_folder("v.txt"), ""), UIR_STATUS_INVALID_ARGUMENT);
    uir_value_destroy(value);
}

static uir_comparison compare(uir_context *context, double actual, double expected, uir_tolerance tolerance) {
    uir_value *a = make_tensor(context, UIR_DTYPE_F64, 1, 2), *e = make_tensor(context, UIR_DTYPE_F64, 1, 2);
    ((double *)uir_value_get_data(a))[0] = actual;
    ((double *)uir_value_get_data(e))[0] = expected;
    ((double *)uir_value_get_data(a))[1] = ((double *)uir_value_get_data(e))[1] = 100;
    uir_comparison result = query_comparison(a, e, tolerance);
    uir_value_destroy(a);
    uir_value_destroy(e);
    return result;
}

static void comparison_is_elementwise(void **state) {
    uir_context *context = *state;
    assert_true(compare(context, 1.0, 1.0, exactly).agree);
    assert_false(compare(context, 1.0, 1.0 + 1e-15, exactly).agree);
    assert_true(compare(context, NAN, NAN, exactly).agree);
    assert_false(compare(context, NAN, 1, (uir_tolerance){.rtol = 1, .atol = 1, .atol_relative_to_max = 1}).agree);
    assert_false(compare(context, 1, NAN, (uir_tolerance){.rtol = 1, .atol = 1, .atol_relative_to_max = 1}).agree);
    assert_true(compare(context, INFINITY, INFINITY, exactly).agree);
    assert_false(
        compare(context, INFINITY, -INFINITY, (uir_tolerance){.rtol = 1, .atol = 1, .atol_relative_to_max = 1}).agree);
    assert_false(compare(context, 1, INFINITY, (uir_tolerance){.rtol = 1, .atol = 1, .atol_relative_to_max = 1}).agree);
    assert_false(compare(context, INFINITY, 1, (uir_tolerance){.rtol = 1, .atol = 1, .atol_relative_to_max = 1}).agree);
    assert_true(compare(context, 1.1, 1.0, (uir_tolerance){.rtol = 0.11}).agree);
    assert_false(compare(context, 1.1, 1.0, (uir_tolerance){.rtol = 0.09}).agree);
    assert_true(
        compare(context, 0.9, 0.0, (uir_tolerance){.atol_relative_to_max = 0.01}).agree); /* of the greatest, 100 */
    uir_comparison result = compare(context, 3.0, 2.0, exactly);
    assert_true(result.max_abs == 1.0 && result.max_rel == 0.5 && result.differing == 1 && result.first_index == 0);
    assert_string_equal(result.text, "element 0 is 3, expected 2");
    uir_value *a = make_tensor(context, UIR_DTYPE_I64, 2, 3), *b = make_tensor(context, UIR_DTYPE_I64, 3, 2);
    assert_false(query_comparison(a, b, (uir_tolerance){.rtol = 1, .atol = 1, .atol_relative_to_max = 1}).agree);
    ((int64_t *)uir_value_get_data(a))[0] = ((int64_t)1 << 60) + 1; /* differ only beyond a double */
    uir_value *c = make_tensor(context, UIR_DTYPE_I64, 2, 3);
    ((int64_t *)uir_value_get_data(c))[0] = (int64_t)1 << 60;
    assert_false(query_comparison(a, c, (uir_tolerance){.rtol = 1, .atol = 1, .atol_relative_to_max = 1}).agree);
    uir_value_destroy(a);
    uir_value_destroy(b);
    uir_value_destroy(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_zeroed_and_checked),
        cmocka_unit_test(random_values_are_these),
        cmocka_unit_test(random_values_depend_on_the_seed_alone),
        cmocka_unit_test(files_give_back_what_was_written),
        cmocka_unit_test(npy_files_of_others_are_read),
        cmocka_unit_test(damaged_npy_files_are_refused),
        cmocka_unit_test(npz_members_are_read),
        cmocka_unit_test(pictures_become_bytes),
        cmocka_unit_test(what_cannot_be_read_is_said),
        cmocka_unit_test(comparison_is_elementwise),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
