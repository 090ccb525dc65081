/* Details of value files that other programs write and read: every byte order, format 2 of .npy, headers, archives. */
#include "tests/base/support.h"
#include "uir/uir.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char path[64];

static int begin(void **state) {
    uir_context *context;
    uir_status status = uir_context_create(NULL, &context);
    snprintf(path, sizeof path, "/tmp/uir_files_%ld.npy", (long)getpid());
    *state = context;
    return status;
}

static int end(void **state) {
    unlink(path);
    uir_context_destroy(*state);
    return 0;
}

static void write_file(const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    fclose(file);
}

/* An .npy file whose header is of format `version`: a length of two bytes in the first, of four after it. */
static size_t make_npy(uint8_t *out, int version, const char *dict, const void *data, size_t size) {
    size_t length = strlen(dict), start = version == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (uint8_t)version;
    out[7] = 0;
    for (size_t i = 8; i < start; i++) out[i] = (uint8_t)(length >> 8 * (i - 8));
    memcpy(out + start, dict, length);
    memcpy(out + start + length, data, size);
    return start + length + size;
}

static uir_value *load(uir_context *context, const char *member) {
    uir_value *value;
    assert_int_equal(uir_value_load_file(context, path, member, UIR_VALUE_TENSOR, &value), UIR_STATUS_OK);
    return value;
}

static void later_formats_have_longer_lengths(void **state) {
    uint8_t bytes[300];
    static const int16_t numbers[] = {1, -2, 300};
    for (int version = 1; version <= 3; version++) {
        write_file(bytes, make_npy(bytes, version, "{'descr': '<i2', 'fortran_order': False, 'shape': (3,), }\n",
                                   numbers, sizeof numbers));
        uir_value *value = load(*state, NULL);
        for (uint64_t i = 0; i < 3; i++) assert_true(uir_value_get_double(value, i) == numbers[i]);
        uir_value_destroy(value);
    }
}

/* Each part of a complex number is turned by itself. */
static void complex_numbers_of_the_other_byte_order(void **state) {
    uint8_t bytes[300];
    static const uint8_t numbers[] = {0x3f, 0x80, 0, 0, 0x40, 0, 0, 0, 0xc0, 0x40, 0, 0, 0x3e, 0x80, 0, 0};
    static const float expected[] = {1, 2, -3, 0.25f};
    write_file(bytes, make_npy(bytes, 1, "{'descr': '>c8', 'fortran_order': False, 'shape': (2,), }\n", numbers,
                               sizeof numbers));
    uir_value *value = load(*state, NULL);
    assert_int_equal(uir_value_get_dtype(value), UIR_DTYPE_C64);
    assert_memory_equal(uir_value_get_data(value), expected, sizeof expected);
    uir_value_destroy(value);
}

static void booleans_become_one(void **state) {
    uint8_t bytes[300];
    static const uint8_t expected[] = {1, 0, 1, 1};
    write_file(bytes,
               make_npy(bytes, 1, "{'descr': '|b1', 'fortran_order': False, 'shape': (4,), }\n", "\1\0\2\xff", 4));
    uir_value *value = load(*state, NULL);
    assert_memory_equal(uir_value_get_data(value), expected, 4);
    uir_value_destroy(value);
}

/* As the format asks: the data begins at a multiple of 64, whatever the shape, so that it can be mapped. */
static void written_data_is_aligned(void **state) {
    uint8_t bytes[4096];
    for (uint32_t rank = 0; rank <= 8; rank++) {
        uir_value *value;
        int64_t shape[8];
        for (uint32_t i = 0; i < rank; i++) shape[i] = i % 2 ? 1 : 2;
        assert_int_equal(uir_value_create_tensor(*state, UIR_DTYPE_F32, rank, shape, &value), UIR_STATUS_OK);
        assert_int_equal(uir_value_save_file(*state, value, path, ""), UIR_STATUS_OK);
        FILE *file = fopen(path, "rb");
        size_t size = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        size_t start = 10 + bytes[8] + 256u * bytes[9];
        assert_int_equal(start % 64, 0);
        assert_int_equal(size - start, uir_value_get_byte_size(value));
        assert_int_equal(bytes[start - 1], '\n');
        uir_value_destroy(value);
    }
}

/* ---- archives ---- */

static void put(uint8_t **at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) *(*at)++ = i < 8 ? (uint8_t)(value >> 8 * i) : 0;
}

static uint32_t checksum(const uint8_t *data, size_t size) {
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size * 8; i++) {
        if (i % 8 == 0) crc ^= data[i / 8];
        crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

/* An archive of one member, stored or as one stored block of deflate; `wide`: which of unpacked size, packed size and
 * offset stand in the 64-bit field. */
static size_t make_archive(uint8_t *out, const char *name, const uint8_t *data, size_t size, bool deflate,
                           unsigned wide) {
    uint8_t *at = out;
    size_t length = strlen(name), packed = size + (deflate ? 5 : 0);
    int method = deflate ? 8 : 0;
    uint32_t crc = checksum(data, size);
    const uint64_t fields[] = {size, packed, 0};
    put(&at, 0x04034b50, 4);
    put(&at, 20, 2), put(&at, 0, 2), put(&at, (uint64_t)method, 2), put(&at, 0, 4);
    put(&at, crc, 4), put(&at, packed, 4), put(&at, size, 4);
    put(&at, length, 2), put(&at, 0, 2);
    memcpy(at, name, length), at += length;
    if (deflate) put(&at, 1, 1), put(&at, size, 2), put(&at, ~size, 2);
    memcpy(at, data, size), at += size;
    uint64_t directory = (uint64_t)(at - out);
    unsigned count = (wide & 1) + (wide >> 1 & 1) + (wide >> 2 & 1);
    put(&at, 0x02014b50, 4);
    put(&at, 20, 2), put(&at, 20, 2), put(&at, 0, 2), put(&at, (uint64_t)method, 2), put(&at, 0, 4);
    put(&at, crc, 4);
    put(&at, wide & 2 ? UINT32_MAX : packed,
        4); /* packed, then unpacked; the wide field has them the other way round */
    put(&at, wide & 1 ? UINT32_MAX : size, 4);
    put(&at, length, 2), put(&at, count ? 4 + 8 * count : 0, 2), put(&at, 0, 10);
    put(&at, wide & 4 ? UINT32_MAX : 0, 4);
    memcpy(at, name, length), at += length;
    if (count) put(&at, 1, 2), put(&at, 8 * count, 2);
    for (int i = 0; i < 3; i++)
        if (wide >> i & 1) put(&at, fields[i], 8);
    uint64_t end = (uint64_t)(at - out);
    put(&at, 0x06054b50, 4);
    put(&at, 0, 4), put(&at, 1, 2), put(&at, 1, 2);
    put(&at, end - directory, 4), put(&at, directory, 4), put(&at, 0, 2);
    return (size_t)(at - out);
}

static void archives_may_have_wide_sizes(void **state) {
    uint8_t array[200], bytes[600];
    size_t size = make_npy(array, 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\n", "\5\6\7", 3);
    strcpy(strrchr(path, '.'), ".npz");
    for (unsigned wide = 0; wide < 16; wide++) {
        write_file(bytes, make_archive(bytes, "some.npy", array, size, wide >= 8, wide % 8));
        uir_value *value = load(*state, NULL);
        assert_true(uir_value_get_double(value, 2) == 7);
        uir_value_destroy(value);
    }
    unlink(path);
    strcpy(strrchr(path, '.'), ".npy");
}

/* One number of the directory's entry, or of its end, is another. */
static void archives_are_checked(void **state) {
    enum { EXTRA = 46 + 8, END = 1000 }; /* behind the name "some.npy" */
    static const struct {
        size_t at; /* in the entry; from END on in the directory's end */
        uint64_t value;
        int bytes;
        bool wide; /* the entry has the 64-bit field */
        const char *message;
    } cases[] = {
        {0, 7, 4, false, "a directory entry is damaged"},
        {8, 1, 2, false, "a member is encrypted"},
        {10, 9, 2, false, "a member's compression is unknown"},
        {16, 1, 4, false, "a member's contents are damaged"},
        {20, 5000, 4, false, "a member is cut off"},
        {20, 1, 4, false, "a member's size is wrong"},
        {24, 5000, 4, false, "a member's size is wrong"},
        {28, 60000, 2, false, "the directory is cut off"},
        {42, 5, 4, false, "a member's header is missing"},
        {42, 5000, 4, false, "a member's header is missing"},
        {EXTRA + 2, 30000, 2, true, "an extra field is damaged"},
        {EXTRA + 2, 4, 2, true, "an extra field is damaged"},
        {END, 7, 4, false, "the directory's end is missing"},
        {END + 10, 2, 2, false, "the directory is cut off"},
        {END + 16, 5000, 4, false, "the directory is cut off"},
    };
    uint8_t array[200], bytes[600];
    size_t size = make_npy(array, 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\n", "\5\6\7", 3);
    strcpy(strrchr(path, '.'), ".npz");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t length = make_archive(bytes, "some.npy", array, size, false, cases[i].wide);
        const uint8_t *offset = bytes + length - 6;
        size_t entry = (size_t)offset[0] | (size_t)offset[1] << 8;
        uint8_t *at = cases[i].at < END ? bytes + entry + cases[i].at : bytes + length - 22 + cases[i].at - END;
        uir_value *value;
        put(&at, cases[i].value, cases[i].bytes);
        write_file(bytes, length);
        assert_int_equal(uir_value_load_file(*state, path, NULL, UIR_VALUE_TENSOR, &value), UIR_STATUS_BAD_FILE);
        const char *said = uir_context_get_message(*state, uir_context_message_count(*state) - 1).text;
        if (!strstr(said, cases[i].message)) fail_msg("'%s' does not say '%s'", said, cases[i].message);
    }
    unlink(path);
    strcpy(strrchr(path, '.'), ".npy");
}

static void members_are_found_by_their_whole_name(void **state) {
    uint8_t array[200], bytes[600];
    size_t size = make_npy(array, 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\n", "\5\6\7", 3);
    strcpy(strrchr(path, '.'), ".npz");
    write_file(bytes, make_archive(bytes, "some.npy", array, size, false, 0));
    static const char *const wrong[] = {"som", "some.", "some.np", "some.npyx", "ome", "some2", "some.npy.npy"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uir_value *value;
        assert_int_equal(uir_value_load_file(*state, path, wrong[i], UIR_VALUE_TENSOR, &value), UIR_STATUS_NOT_FOUND);
    }
    uir_value_destroy(load(*state, "some"));
    uir_value_destroy(load(*state, "some.npy"));
    write_file(bytes, make_archive(bytes, "ab.npy", array, size, false, 0));
    uir_value *value;
    assert_int_equal(uir_value_load_file(*state, path, "a", UIR_VALUE_TENSOR, &value), UIR_STATUS_NOT_FOUND);
    write_file(bytes, make_archive(bytes, "ab", array, size, false, 0));
    assert_int_equal(uir_value_load_file(*state, path, "a", UIR_VALUE_TENSOR, &value), UIR_STATUS_NOT_FOUND);
    unlink(path);
    strcpy(strrchr(path, '.'), ".npy");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(later_formats_have_longer_lengths),
        cmocka_unit_test(complex_numbers_of_the_other_byte_order),
        cmocka_unit_test(booleans_become_one),
        cmocka_unit_test(written_data_is_aligned),
        cmocka_unit_test(archives_may_have_wide_sizes),
        cmocka_unit_test(archives_are_checked),
        cmocka_unit_test(members_are_found_by_their_whole_name),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
