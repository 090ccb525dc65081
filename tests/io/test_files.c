/* Details of value files that other programs write and read: every byte order, format 2 of .npy, headers. */
#define UIR_TEST_ENDING "npy"
#include "io/full/formats.h"
#include "tests/io/files.h"

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
               make_npy(bytes, 1, "{'descr': '|b1', 'fortran_order': False, 'shape': (4,), }\n", "\2\0\1\xff", 4));
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

/* ---- arrays as others write them ---- */

/* The numbers of an array by their place, whatever their bytes and the array's order in the file. */
static void arrays_in_every_order(void **state) {
    static const struct {
        const char *dict, *data;
        size_t size;
        uir_dtype dtype;
        uint32_t rank;
        double numbers[12];
    } cases[] = {
        {DICT("<u4", "False", "(2,)"), "\1\0\0\0\0\1\0\0", 8, UIR_DTYPE_U32, 1, {1, 256}},
        {DICT(">u4", "False", "(2,)"), "\0\0\0\1\0\0\1\0", 8, UIR_DTYPE_U32, 1, {1, 256}},
        {DICT("=u2", "False", "(2,)"), "\1\0\0\1", 4, UIR_DTYPE_U16, 1, {1, 256}},
        {DICT("|i1", "False", "(2,)"), "\1\xff", 2, UIR_DTYPE_I8, 1, {1, -1}},
        {DICT(">f8", "False", "()"), "\x3f\xf8\0\0\0\0\0\0", 8, UIR_DTYPE_F64, 0, {1.5}},
        {DICT("<f2", "False", "(1,)"), "\0\x3e", 2, UIR_DTYPE_F16, 1, {1.5}},
        {DICT("<i8", "False", "(1,)"), "\xfe\xff\xff\xff\xff\xff\xff\xff", 8, UIR_DTYPE_I64, 1, {-2}},
        {DICT("<u8", "False", "(1,)"), "\2\0\0\0\0\0\0\0", 8, UIR_DTYPE_U64, 1, {2}},
        {DICT("<i4", "False", "(1, 0, 2)"), "", 0, UIR_DTYPE_I32, 3, {0}},
        {DICT("<i4", "True", "(2, 0)"), "", 0, UIR_DTYPE_I32, 2, {0}},
        {DICT("|u1", "True", "(2, 3, 2)"),
         "\0\6\2\10\4\12\1\7\3\11\5\13",
         12,
         UIR_DTYPE_U8,
         3,
         {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
        {DICT(">i2", "True", "(2, 3)"), "\0\1\0\4\0\2\0\5\0\3\0\6", 12, UIR_DTYPE_I16, 2, {1, 2, 3, 4, 5, 6}},
        {DICT("|b1", "True", "(2, 2)"), "\0\2\1\0", 4, UIR_DTYPE_BOOL, 2, {0, 1, 1, 0}},
        {DICT("|u1", "False", "(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)"), "\7", 1, UIR_DTYPE_U8, 16, {7}},
        {"{'descr' : '|u1' ,\t'fortran_order' :False\n,'shape':\n( 2\t, )\n}\n", "\1\2", 2, UIR_DTYPE_U8, 1, {1, 2}},
        {"{'shape':(2 L, 1L),\"descr\":\"|u1\",'fortran_order':True,}", "\1\2", 2, UIR_DTYPE_U8, 2, {1, 2}},
        {DICT("|u1", "False", "(2)"), "\1\2", 2, UIR_DTYPE_U8, 1, {1, 2}},
    };
    uint8_t bytes[300];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file(bytes, make_npy(bytes, 1, cases[i].dict, cases[i].data, cases[i].size));
        uir_value *value = load(*state, NULL);
        assert_int_equal(uir_value_get_dtype(value), cases[i].dtype);
        assert_int_equal(uir_value_get_rank(value), cases[i].rank);
        assert_int_equal(uir_value_get_byte_size(value), cases[i].size);
        for (uint64_t at = 0; at < uir_value_get_element_count(value); at++)
            assert_true(uir_value_get_double(value, at) == cases[i].numbers[at]);
        uir_value_destroy(value);
    }
}

/* Code points become UTF-8; zeros behind a string are padding, others belong to it. */
static void strings_of_others(void **state) {
    static const struct {
        const char *dict, *data;
        size_t size;
        const char *texts[3];
        size_t lengths[3], count;
    } cases[] = {
        {DICT("|S3", "False", "(3,)"), "abca\0b\0\0\0", 9, {"abc", "a\0b", ""}, {3, 3, 0}, 3},
        {DICT("|S2", "True", "(1, 2)"), "abc\0", 4, {"ab", "c"}, {2, 1}, 2},
        {DICT("|S1", "True", "(3, 1)"), "abc", 3, {"a", "b", "c"}, {1, 1, 1}, 3},
        {DICT("<U1", "False", "(3,)"),
         "\x7f\0\0\0\x80\0\0\0\xff\7\0\0",
         12,
         {"\x7f", "\xc2\x80", "\xdf\xbf"},
         {1, 2, 2},
         3},
        {DICT("<U1", "False", "(2,)"), "\0\10\0\0\xff\xff\0\0", 8, {"\xe0\xa0\x80", "\xef\xbf\xbf"}, {3, 3}, 2},
        {DICT("<U1", "False", "(2,)"),
         "\0\0\1\0\xff\xff\x10\0",
         8,
         {"\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"},
         {4, 4},
         2},
        {DICT("<U2", "False", "(1,)"), "\x96\xf3\1\0\x45\x23\1\0", 8, {"\xf0\x9f\x8e\x96\xf0\x92\x8d\x85"}, {8}, 1},
        {DICT(">U3", "False", "(1,)"), "\0\0\0a\0\0\0\0\0\0 \xac", 12, {"a\0\xe2\x82\xac"}, {5}, 1},
        {DICT("<U1", "False", "(1,)"), "\0\0\5\0", 4, {"\xf1\x90\x80\x80"}, {4}, 1},
        {DICT("|S1", "False", "(3,)"), "\0\0\0", 3, {"", "", ""}, {0, 0, 0}, 3},
        {DICT("<U0", "False", "(2,)"), "", 0, {"", ""}, {0, 0}, 2},
        {DICT("|S0", "False", "(0,)"), "", 0, {NULL}, {0}, 0},
        {DICT("<U5", "False", "(0,)"), "", 0, {NULL}, {0}, 0},
        {DICT("|S7", "False", "(3, 0)"), "", 0, {NULL}, {0}, 0},
    };
    uint8_t bytes[300];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file(bytes, make_npy(bytes, 1, cases[i].dict, cases[i].data, cases[i].size));
        uir_value *value = load(*state, NULL);
        const uir_string_view *strings = uir_value_get_data(value);
        assert_int_equal(uir_value_get_dtype(value), UIR_DTYPE_STRING);
        assert_int_equal(uir_value_get_element_count(value), cases[i].count);
        for (size_t at = 0; at < cases[i].count; at++) {
            assert_int_equal(strings[at].length, cases[i].lengths[at]);
            if (strings[at].length) assert_memory_equal(strings[at].text, cases[i].texts[at], strings[at].length);
        }
        uir_value_destroy(value);
    }
}

/* What is nearly an array: one thing in it is wrong. */
static void arrays_are_checked(void **state) {
    static const char dict[] = "the header is not understood", data[] = "the data's size does not match the shape",
                      type[] = "are not supported", large[] = "the shape is too large";
    static const struct {
        const char *dict;
        size_t size;
        const char *message;
    } cases[] = {
        {DICT("<i2", "False", "(2,)"), 3, data},
        {DICT("<i2", "False", "(2,)"), 5, data},
        {DICT("<i2", "False", "(0,)"), 1, data},
        {DICT("|S2", "False", "(2,)"), 3, data},
        {DICT("|S2", "False", "(2,)"), 5, data},
        {DICT("|S4", "False", "(1,)"), 3, data},
        {DICT("|S4", "False", "(0,)"), 4, data},
        {DICT("|S0", "False", "(1,)"), 1, data},
        {DICT("<U2", "False", "(1,)"), 4, data},
        {DICT("<U1", "False", "(1,)"), 5, data},
        {DICT("<U1", "False", "(1,)"), 7, data},
        {DICT("<i3", "False", "(1,)"), 3, type},
        {DICT("<f16", "False", "(1,)"), 16, type},
        {DICT("<c4", "False", "(1,)"), 4, type},
        {DICT("<x4", "False", "(1,)"), 4, type},
        {DICT("<i", "False", "(1,)"), 4, dict},
        {DICT("<i4 ", "False", "(1,)"), 4, dict},
        {DICT("<ii4", "False", "(1,)"), 4, dict},
        {DICT("<i4", "false", "(1,)"), 4, dict},
        {DICT("<i4", "False", "1"), 4, dict},
        {DICT("<i4", "False", "(1 1)"), 4, dict},
        {DICT("<i4", "False", "(,)"), 4, dict},
        {DICT("<i4", "False", "(1"), 4, dict},
        {DICT("<i4", "False", "(1,), 'shape': (1,)"), 4, dict},
        {DICT("<i4", "False", "(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)"), 4, dict},
        {DICT("|u1", "False", "(9223372036854775800,)"), 1, dict},
        {DICT("|u1", "False", "(9223372036854775799,)"), 1, data},
        {DICT("|u1", "False", "(9223372036854775799, 2)"), 1, large},
        {"{'descr': '<i4', 'fortran_order': False}", 4, dict},
        {"{'fortran_order': False, 'shape': (1,)}", 4, dict},
        {"{'descr' '<i4', 'fortran_order': False, 'shape': (1,)}", 4, dict},
        {"{'descr\": '<i4', 'fortran_order': False, 'shape': (1,)}", 4, dict},
        {"{descr: '<i4', 'fortran_order': False, 'shape': (1,)}", 4, dict},
        {"{'descR': '<i4', 'fortran_order': False, 'shape': (1,)}", 4, dict},
        {"{'descr': '<i4', 'fortran_ordeR': False, 'shape': (1,)}", 4, dict},
        {"{'descr': '<i4', 'fortran_order': False, 'shapE': (1,)}", 4, dict},
        {"'descr': '<i4', 'fortran_order': False, 'shape': (1,)}", 4, dict},
        {DICT("|S3", "False", "(2,)"), 0, data},
        {DICT("<U4611686018427387904", "False", "(1,)"), 4, data},
        {DICT("<", "False", "(1,)"), 4, dict},
        {DICT("", "False", "(1,)"), 4, dict},
        {"{`descr`: '<i4', 'fortran_order': False, 'shape': (1,)}", 4, dict},
        {"{'descr_': '<i4', 'fortran_order': False, 'shape': (1,)}", 4, dict},
        {"{'descr': '<i4', 'fortran_order_': False, 'shape': (1,)}", 4, dict},
        {"{'descr': '<i4', 'fortran_order': False, 'shape_': (1,)}", 4, dict},
        {"{'descr': 'i', 'descr': '<i4', 'fortran_order': False, 'shape': (1,)}", 4, dict},
        {"{'descr': '<i4', 'fortran_order': , 'fortran_order': False, 'shape': (1,)}", 4, dict},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': , 'shape': (1,)}", 4, dict},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': }", 4, dict},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (}", 4, dict},
        {"{'descr': '<i4", 4, dict},
        {"{'descr", 4, dict},
    };
    static const char zeros[16];
    uint8_t bytes[300];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uir_value *value;
        write_file(bytes, make_npy(bytes, 1, cases[i].dict, zeros, cases[i].size));
        uir_status status = uir_value_load_file(*state, path, NULL, UIR_VALUE_TENSOR, &value);
        if (status == UIR_STATUS_OK) fail_msg("%s is read", cases[i].dict);
        assert_int_equal(status, cases[i].message == type ? UIR_STATUS_UNSUPPORTED : UIR_STATUS_BAD_FILE);
        const char *said = uir_context_get_message_text(*state, uir_context_message_count(*state) - 1);
        if (!strstr(said, cases[i].message)) fail_msg("%s: '%s'", cases[i].dict, said);
    }
}

/* A header may have 65536 bytes, and says how many; the file has that many, and a known format's number. */
static void headers_have_their_lengths(void **state) {
    enum { MOST = 65536, START = 12 };
    static const char dict[] = DICT("|u1", "False", "(1,)");
    static const struct {
        size_t length;
        uint32_t said;
        int version;
        bool good;
    } cases[] = {
        {MOST, MOST, 2, true},
        {MOST + 1, MOST + 1, 2, false},
        {300, 300, 3, true},
        {300, 300, 4, false},
        {300, 300, 0, false},
        {300, 301, 2, false},
        {300, 300 + (1 << 24), 2, false},
        {300, 302, 2, false},
    };
    static uint8_t bytes[START + MOST + 2];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uir_value *value = NULL;
        memset(bytes, ' ', sizeof bytes);
        memcpy(bytes, "\x93NUMPY", 6);
        bytes[6] = (uint8_t)cases[i].version, bytes[7] = 0;
        for (int b = 0; b < 4; b++) bytes[8 + b] = (uint8_t)(cases[i].said >> 8 * b);
        memcpy(bytes + START, dict, sizeof dict - 1);
        bytes[START + cases[i].length] = 7;
        write_file(bytes, START + cases[i].length + 1);
        uir_status status = uir_value_load_file(*state, path, NULL, UIR_VALUE_TENSOR, &value);
        assert_int_equal(status, cases[i].good ? UIR_STATUS_OK : UIR_STATUS_BAD_FILE);
        if (cases[i].good) assert_true(uir_value_get_double(value, 0) == 7);
        uir_value_destroy(value);
    }
    /* So short that there is no length: of ten bytes, none is the header's. */
    uir_value *value;
    for (size_t size = 0; size < START; size++) {
        memcpy(bytes, "\x93NUMPY\2\0\0\0\0\0", START);
        write_file(bytes, size);
        assert_int_equal(uir_value_load_file(*state, path, NULL, UIR_VALUE_TENSOR, &value), UIR_STATUS_BAD_FILE);
        const char *said = uir_context_get_message_text(*state, uir_context_message_count(*state) - 1);
        assert_non_null(strstr(said, "not an .npy file"));
    }
    for (int version = 1; version <= 2; version++) { /* a header of no bytes is one */
        write_file(bytes, make_npy(bytes, version, "", "", 0));
        assert_int_equal(uir_value_load_file(*state, path, NULL, UIR_VALUE_TENSOR, &value), UIR_STATUS_BAD_FILE);
        const char *said = uir_context_get_message_text(*state, uir_context_message_count(*state) - 1);
        assert_non_null(strstr(said, "the header is not understood"));
    }
    write_file(bytes, make_npy(bytes, 1, dict, "\7", 1));
    uir_value_destroy(load(*state, NULL));
    for (int i = 0; i < 6; i++) {
        bytes[i] ^= 1;
        write_file(bytes, 10 + sizeof dict);
        assert_int_equal(uir_value_load_file(*state, path, NULL, UIR_VALUE_TENSOR, &value), UIR_STATUS_BAD_FILE);
        bytes[i] ^= 1;
    }
}

/* The header that numpy would write. */
static void written_headers(void **state) {
    static const struct {
        uir_dtype dtype;
        uint32_t rank;
        int64_t shape[3];
        const char *dict;
    } cases[] = {
        {UIR_DTYPE_U8, 0, {0}, DICT("|u1", "False", "(), ")},
        {UIR_DTYPE_BOOL, 1, {3}, DICT("|b1", "False", "(3,), ")},
        {UIR_DTYPE_I16, 2, {2, 3}, DICT("<i2", "False", "(2, 3), ")},
        {UIR_DTYPE_BF16, 3, {1, 2, 3}, DICT("<f4", "False", "(1, 2, 3), ")},
        {UIR_DTYPE_I4, 1, {4}, DICT("|i1", "False", "(4,), ")},
        {UIR_DTYPE_U4, 1, {4}, DICT("|u1", "False", "(4,), ")},
        {UIR_DTYPE_C128, 1, {1}, DICT("<c16", "False", "(1,), ")},
    };
    uint8_t bytes[1024];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uir_value *value;
        assert_int_equal(uir_value_create_tensor(*state, cases[i].dtype, cases[i].rank, cases[i].shape, &value),
                         UIR_STATUS_OK);
        assert_int_equal(uir_value_save_file(*state, value, path, ""), UIR_STATUS_OK);
        FILE *file = fopen(path, "rb");
        size_t size = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        assert_true(size >= 128);
        assert_memory_equal(bytes, "\x93NUMPY\1\0\x76\0", 10);
        assert_memory_equal(bytes + 10, cases[i].dict, strlen(cases[i].dict));
        uir_value_destroy(value);
    }
    /* Longer than one byte can say. */
    int64_t shape[16] = {0};
    uir_value *value;
    for (int i = 1; i < 16; i++) shape[i] = INT64_C(1000000000000000000) + i;
    assert_int_equal(uir_value_create_tensor(*state, UIR_DTYPE_F32, 16, shape, &value), UIR_STATUS_OK);
    assert_int_equal(uir_value_save_file(*state, value, path, ""), UIR_STATUS_OK);
    uir_value_destroy(value);
    value = load(*state, NULL);
    assert_int_equal(uir_value_get_rank(value), 16);
    assert_memory_equal(uir_value_get_shape(value), shape, sizeof shape);
    uir_value_destroy(value);
}

/* The header ends where it says, though what follows would go on with it. */
static void headers_end_where_they_say(void **state) {
    static const char whole[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (60,) }   }";
    uint8_t bytes[300];
    for (size_t length = 0; length < sizeof whole - 5; length++) {
        uir_value *value;
        char start[sizeof whole] = {0};
        memcpy(start, whole, length);
        size_t size = make_npy(bytes, 1, start, whole + length, sizeof whole - 1 - length);
        memset(bytes + size, ' ', sizeof bytes - size);
        write_file(bytes, 10 + length + 60);
        uir_status status = uir_value_load_file(*state, path, NULL, UIR_VALUE_TENSOR, &value);
        if (status != UIR_STATUS_BAD_FILE) fail_msg("'%s' is read", start);
    }
}

/* Strings of no length are limited in number, for they take nothing of the file; others are not. */
static void many_strings(void **state) {
    static const struct {
        const char *dict;
        size_t size;
        uir_status status;
    } cases[] = {
        {DICT("|S0", "False", "(1048576,)"), 0, UIR_STATUS_OK},
        {DICT("|S0", "False", "(1048577,)"), 0, UIR_STATUS_LIMIT},
        {DICT("|S1", "False", "(1048577,)"), 1048577, UIR_STATUS_OK},
    };
    static uint8_t bytes[1048577 + 300], zeros[1048577];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uir_value *value;
        write_file(bytes, make_npy(bytes, 1, cases[i].dict, zeros, cases[i].size));
        assert_int_equal(uir_value_load_file(*state, path, NULL, UIR_VALUE_TENSOR, &value), cases[i].status);
        if (cases[i].status == UIR_STATUS_OK) uir_value_destroy(value);
    }
}

/* Every beginning of a file, and each of it with one bit turned; every allocation fails. */
static void arrays_are_read_within_their_bytes(void **state) {
    static const struct {
        const char *dict, *data;
        size_t size;
    } cases[] = {
        {DICT("<i4", "False", "(2, 1)"), "12345678", 8},
        {DICT(">c8", "True", "(1, 2)"), "1234567812345678", 16},
        {DICT("|S3", "False", "(2,)"), "abcdef", 6},
        {DICT("<U2", "True", "(2, 1)"), "\xff\xff\x10\0\xff\xff\x10\0\xff\xff\x10\0\xff\xff\x10\0", 16},
        {"{'descr':''", "", 0},
        {"{'descr':'<", "", 0},
        {"{'descr':'<i4','fortran_order':False,'shape':(2 ", "", 0},
    };
    guard g = {0};
    uir_allocator allocator = {resize_fenced, &g};
    uir_diagnostics diagnostics;
    uint8_t bytes[300];
    edge e = edge_new(sizeof bytes);
    (void)state;
    uir_diagnostics_init(&diagnostics, &allocator);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int version = 1; version <= 2; version++) {
            size_t whole = make_npy(bytes, version, cases[i].dict, cases[i].data, cases[i].size);
            for (size_t size = 0; size <= whole; size++) {
                uir_tensor *tensor;
                if (uir_npy_read(&allocator, &diagnostics, "f", edge_put(e, bytes, size), size, &tensor) ==
                    UIR_STATUS_OK) {
                    assert_int_equal(size, whole);
                    uir_tensor_release(tensor);
                }
            }
            for (size_t bit = 0; bit < whole * 8; bit++) {
                uir_tensor *tensor;
                bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
                if (uir_npy_read(&allocator, &diagnostics, "f", edge_put(e, bytes, whole), whole, &tensor) ==
                    UIR_STATUS_OK)
                    uir_tensor_release(tensor);
                bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            }
            uir_diagnostics_clear(&diagnostics);
            for (unsigned long at = 1; cases[i].size; at++) {
                uir_tensor *tensor;
                g.asked = 0, g.fail_at = at;
                uir_status status =
                    uir_npy_read(&allocator, &diagnostics, "f", edge_put(e, bytes, whole), whole, &tensor);
                g.fail_at = 0;
                if (status == UIR_STATUS_OK) uir_tensor_release(tensor);
                assert_true(status == UIR_STATUS_OK || status == UIR_STATUS_OUT_OF_MEMORY);
                if (g.asked < at) break;
                assert_int_equal(status, UIR_STATUS_OUT_OF_MEMORY);
            }
        }
    }
    uir_diagnostics_deinit(&diagnostics);
    assert_int_equal(g.live, 0);
    edge_free(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(later_formats_have_longer_lengths),
        cmocka_unit_test(complex_numbers_of_the_other_byte_order),
        cmocka_unit_test(booleans_become_one),
        cmocka_unit_test(written_data_is_aligned),
        cmocka_unit_test(arrays_in_every_order),
        cmocka_unit_test(strings_of_others),
        cmocka_unit_test(arrays_are_checked),
        cmocka_unit_test(headers_have_their_lengths),
        cmocka_unit_test(headers_end_where_they_say),
        cmocka_unit_test(many_strings),
        cmocka_unit_test(arrays_are_read_within_their_bytes),
        cmocka_unit_test(written_headers),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
