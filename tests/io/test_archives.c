/* Archives of arrays: what they may have, how each number in them is checked, and that nothing besides them is read. */
#define UIR_TEST_ENDING "npz"
#include "io/full/formats.h"
#include "tests/io/files.h"

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
    for (unsigned wide = 0; wide < 16; wide++) {
        write_file(bytes, make_archive(bytes, "some.npy", array, size, wide >= 8, wide % 8));
        uir_value *value = load(*state, NULL);
        assert_true(uir_value_get_double(value, 2) == 7);
        uir_value_destroy(value);
    }
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
        {28, 31, 2, false, "the directory is cut off"}, /* a byte behind the file */
        {30, 23, 2, false, "the directory is cut off"},
        {32, 23, 2, false, "the directory is cut off"},
        {42, 5, 4, false, "a member's header is missing"},
        {42, 5000, 4, false, "a member's header is missing"},
        {EXTRA + 2, 30000, 2, true, "an extra field is damaged"},
        {EXTRA + 2, 4, 2, true, "an extra field is damaged"},
        {EXTRA + 2, 7, 2, true, "an extra field is damaged"},
        {EXTRA + 2, 9, 2, true, "an extra field is damaged"},
        {EXTRA, 0x7777, 2, true, "a member's size is wrong"}, /* another field */
        {END, 7, 4, false, "the directory's end is missing"},
        {END + 10, 2, 2, false, "the directory is cut off"},
        {END + 16, 5000, 4, false, "the directory is cut off"},
    };
    uint8_t array[200], bytes[600];
    size_t size = make_npy(array, 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\n", "\5\6\7", 3);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t length = make_archive(bytes, "some.npy", array, size, false, cases[i].wide);
        const uint8_t *offset = bytes + length - 6;
        size_t entry = (size_t)offset[0] | (size_t)offset[1] << 8;
        uint8_t *at = cases[i].at < END ? bytes + entry + cases[i].at : bytes + length - 22 + cases[i].at - END;
        uir_value *value;
        put(&at, cases[i].value, cases[i].bytes);
        write_file(bytes, length);
        assert_int_equal(uir_value_load_file(*state, path, NULL, UIR_VALUE_TENSOR, &value), UIR_STATUS_BAD_FILE);
        const char *said = uir_context_get_message_text(*state, uir_context_message_count(*state) - 1);
        if (!strstr(said, cases[i].message)) fail_msg("'%s' does not say '%s'", said, cases[i].message);
    }
}

static void members_are_found_by_their_whole_name(void **state) {
    uint8_t array[200], bytes[600];
    size_t size = make_npy(array, 1, "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\n", "\5\6\7", 3);
    write_file(bytes, make_archive(bytes, "some.npy", array, size, false, 0));
    static const char *const wrong[] = {"som",   "some.", "some.np",  "some.npyx", "ome",
                                        "some2", "tome",  "tome.npy", "some.npz",  "some.npy.npy"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        uir_value *value;
        assert_int_equal(uir_value_load_file(*state, path, wrong[i], UIR_VALUE_TENSOR, &value), UIR_STATUS_NOT_FOUND);
    }
    uir_value_destroy(load(*state, "some"));
    uir_value_destroy(load(*state, "some.npy"));
    write_file(bytes, make_archive(bytes, "ab.npy", array, size, false, 0));
    uir_value *value;
    assert_int_equal(uir_value_load_file(*state, path, "a", UIR_VALUE_TENSOR, &value), UIR_STATUS_NOT_FOUND);
    static const char *const others[] = {"ab", "a.np", "a.txt", "a.npyx", "a.npz"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        write_file(bytes, make_archive(bytes, others[i], array, size, false, 0));
        assert_int_equal(uir_value_load_file(*state, path, "a", UIR_VALUE_TENSOR, &value), UIR_STATUS_NOT_FOUND);
        uir_value_destroy(load(*state, others[i]));
    }
}

/* What an archive may have besides its members' contents; lengths in bytes. */
typedef struct trimmings {
    size_t local_extra, extra, comment; /* of each member */
    size_t last_comment;                /* of the file */
    bool wide_end;                      /* the directory's number and offset are in its 64-bit end */
    bool alike;                         /* both members have the first one's name */
} trimmings;

/* Two stored members. Where `out_wide_end` is given: the place of the 64-bit end's own offset. */
static size_t make_pair(uint8_t *out, const trimmings *t, size_t *out_wide_end) {
    const char *const names[] = {"first.npy", t->alike ? "first.npy" : "second.npy"};
    uint8_t array[200], *at = out;
    uint64_t offsets[2];
    for (int i = 0; i < 2; i++) {
        size_t size = make_npy(array, 1, DICT("|u1", "False", "(1,)"), i ? "\2" : "\1", 1), length = strlen(names[i]);
        offsets[i] = (uint64_t)(at - out);
        put(&at, 0x04034b50, 4);
        put(&at, 20, 2), put(&at, 0, 12), put(&at, size, 4), put(&at, size, 4);
        put(&at, length, 2), put(&at, t->local_extra, 2);
        memcpy(at, names[i], length), at += length;
        memset(at, 0xee, t->local_extra), at += t->local_extra;
        memcpy(at, array, size), at += size;
    }
    uint64_t directory = (uint64_t)(at - out);
    for (int i = 0; i < 2; i++) {
        size_t size = make_npy(array, 1, DICT("|u1", "False", "(1,)"), i ? "\2" : "\1", 1), length = strlen(names[i]);
        put(&at, 0x02014b50, 4);
        put(&at, 20, 2), put(&at, 20, 2), put(&at, 0, 8);
        put(&at, checksum(array, size), 4), put(&at, size, 4), put(&at, size, 4);
        put(&at, length, 2), put(&at, t->extra, 2), put(&at, t->comment, 2), put(&at, 0, 8);
        put(&at, offsets[i], 4);
        memcpy(at, names[i], length), at += length;
        uint8_t *extra = at;
        memset(at, 0xee, t->extra), at += t->extra;
        if (t->extra >= 4) put(&extra, 0x7777, 2), put(&extra, t->extra - 4, 2);
        memset(at, 0xee, t->comment), at += t->comment;
    }
    uint64_t end = (uint64_t)(at - out);
    if (t->wide_end) {
        put(&at, 0x06064b50, 4);
        put(&at, 44, 8), put(&at, 45, 2), put(&at, 45, 2), put(&at, 0, 8);
        put(&at, 2, 8), put(&at, 2, 8), put(&at, end - directory, 8), put(&at, directory, 8);
        put(&at, 0x07064b50, 4), put(&at, 0, 4);
        if (out_wide_end) *out_wide_end = (size_t)(at - out);
        put(&at, end, 8), put(&at, 1, 4);
    }
    put(&at, 0x06054b50, 4), put(&at, 0, 4);
    put(&at, t->wide_end ? 0xffff : 2, 2), put(&at, t->wide_end ? 0xffff : 2, 2);
    put(&at, end - directory, 4), put(&at, t->wide_end ? UINT32_MAX : directory, 4);
    put(&at, t->last_comment & 0xffff, 2);
    memset(at, 'c', t->last_comment), at += t->last_comment;
    return (size_t)(at - out);
}

static void archives_have_more_than_their_members(void **state) {
    static const struct {
        trimmings trimmings;
        bool good;
    } cases[] = {
        {{0, 0, 0, 0, false, false}, true},      {{5, 0, 0, 0, false, false}, true},
        {{300, 0, 0, 0, false, false}, true},    {{0, 4, 0, 0, false, false}, true},
        {{0, 20, 0, 0, false, false}, true},     {{0, 3, 0, 0, false, false}, true},
        {{0, 300, 0, 0, false, false}, true},    {{0, 0, 7, 0, false, false}, true},
        {{0, 0, 400, 0, false, false}, true},    {{1, 9, 3, 20, false, false}, true},
        {{0, 0, 0, 1, false, false}, true},      {{0, 0, 0, 65535, false, false}, true},
        {{0, 0, 0, 65536, false, false}, false}, {{0, 0, 0, 0, true, false}, true},
        {{2, 8, 3, 40, true, false}, true},      {{0, 0, 0, 65535, true, false}, true},
    };
    static uint8_t bytes[70000];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file(bytes, make_pair(bytes, &cases[i].trimmings, NULL));
        for (int member = 0; member < 2; member++) {
            uir_value *value = NULL;
            uir_status status =
                uir_value_load_file(*state, path, member ? "second" : "first", UIR_VALUE_TENSOR, &value);
            assert_int_equal(status, cases[i].good ? UIR_STATUS_OK : UIR_STATUS_BAD_FILE);
            if (cases[i].good) assert_true(uir_value_get_double(value, 0) == member + 1);
            uir_value_destroy(value);
        }
    }
}

/* The 64-bit end lies where the locator says, whole and with its signature. */
static void wide_ends_are_checked(void **state) {
    uint8_t bytes[1000];
    size_t place, size = make_pair(bytes, &(trimmings){.wide_end = true}, &place), end = place - 64;
    const uint64_t offsets[] = {
        end - 1, end + 1, size, size - 55, UINT64_MAX, end + (UINT64_C(1) << 32), end + (UINT64_C(1) << 40)};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        uir_value *value;
        uint8_t *at = bytes + place;
        put(&at, offsets[i], 8);
        write_file(bytes, size);
        assert_int_equal(uir_value_load_file(*state, path, "first", UIR_VALUE_TENSOR, &value), UIR_STATUS_BAD_FILE);
        const char *said = uir_context_get_message_text(*state, uir_context_message_count(*state) - 1);
        assert_non_null(strstr(said, "the 64-bit directory end is missing"));
    }
}

/* An archive of nothing is sound; what is shorter is none. */
static void archives_may_be_empty(void **state) {
    uint8_t bytes[22], *at = bytes;
    uir_value *value;
    put(&at, 0x06054b50, 4), put(&at, 0, 18);
    write_file(bytes, sizeof bytes);
    assert_int_equal(uir_value_load_file(*state, path, NULL, UIR_VALUE_TENSOR, &value), UIR_STATUS_NOT_FOUND);
    write_file(bytes, sizeof bytes - 1);
    assert_int_equal(uir_value_load_file(*state, path, NULL, UIR_VALUE_TENSOR, &value), UIR_STATUS_BAD_FILE);
    uint8_t located[42] = {0};
    at = located;
    put(&at, 0x07064b50, 4), put(&at, 0, 16), put(&at, 0x06054b50, 4);
    write_file(located, sizeof located); /* a locator of nothing */
    assert_int_equal(uir_value_load_file(*state, path, NULL, UIR_VALUE_TENSOR, &value), UIR_STATUS_BAD_FILE);
}

/* One of several members must be named; of those with one name it is the first. */
static void members_are_named_or_alone(void **state) {
    uint8_t bytes[1000];
    uir_value *value;
    write_file(bytes, make_pair(bytes, &(trimmings){.extra = 4}, NULL));
    assert_int_equal(uir_value_load_file(*state, path, NULL, UIR_VALUE_TENSOR, &value), UIR_STATUS_INVALID_ARGUMENT);
    const char *said = uir_context_get_message_text(*state, uir_context_message_count(*state) - 1);
    assert_non_null(strstr(said, "the file holds 2 arrays"));
    write_file(bytes, make_pair(bytes, &(trimmings){.alike = true}, NULL));
    value = load(*state, "first");
    assert_true(uir_value_get_double(value, 0) == 1);
    uir_value_destroy(value);
}

/* What is packed cannot be more than 1032 times larger; that claim is not worth its memory. */
static void packed_sizes_are_plausible(void **state) {
    uint8_t array[200], bytes[600];
    size_t size = make_npy(array, 1, DICT("|u1", "False", "(3,)"), "\5\6\7", 3), packed = size + 5;
    for (int i = 0; i < 2; i++) {
        size_t length = make_archive(bytes, "some.npy", array, size, true, 0);
        uint8_t *claim = bytes + length - 22 - 54 + 24;
        uir_value *value;
        put(&claim, 1032 * (packed + 2) - 1 + (uint64_t)i, 4);
        write_file(bytes, length);
        assert_int_equal(uir_value_load_file(*state, path, NULL, UIR_VALUE_TENSOR, &value), UIR_STATUS_BAD_FILE);
        const char *said = uir_context_get_message_text(*state, uir_context_message_count(*state) - 1);
        assert_non_null(strstr(said, i ? "a member's size is wrong" : "a member's contents are damaged"));
    }
}

/* A member that is said to reach to the file's end, or nearly: what is behind it is not read where it is not there. */
static void members_may_reach_to_the_end(void **state) {
    uint8_t array[200], bytes[600];
    size_t size = make_npy(array, 1, DICT("|u1", "False", "(3,)"), "\5\6\7", 3);
    size_t length = make_archive(bytes, "some.npy", array, size, true, 0), start = 30 + 8;
    guard g = {0};
    uir_allocator allocator = {resize_fenced, &g};
    uir_diagnostics diagnostics;
    edge e = edge_new(sizeof bytes);
    (void)state;
    uir_diagnostics_init(&diagnostics, &allocator);
    for (size_t behind = 0; behind < 20; behind++) {
        uint8_t *at = bytes + length - 22 - 54 + 20, *out;
        size_t out_size;
        put(&at, length - start - behind, 4);
        assert_int_equal(
            uir_zip_read(&allocator, &diagnostics, "f", edge_put(e, bytes, length), length, "some", &out, &out_size),
            UIR_STATUS_OK);
        assert_int_equal(out_size, size);
        assert_memory_equal(out, array, size);
        uir_release(&allocator, out, out_size);
    }
    uint8_t *at = bytes + length - 22 - 54 + 20, *out;
    size_t out_size;
    put(&at, length - start + 1, 4);
    assert_int_equal(
        uir_zip_read(&allocator, &diagnostics, "f", edge_put(e, bytes, length), length, "some", &out, &out_size),
        UIR_STATUS_BAD_FILE);
    uir_diagnostics_deinit(&diagnostics);
    assert_int_equal(g.live, 0);
    edge_free(e);
}

/* Every beginning of an archive, and each of it with a byte that is another. */
static void archives_are_read_within_their_bytes(void **state) {
    static uint8_t files[6][1000];
    uint8_t array[200];
    size_t sizes[6];
    size_t size = make_npy(array, 1, DICT("|u1", "False", "(3,)"), "\5\6\7", 3);
    sizes[0] = make_archive(files[0], "some.npy", array, size, false, 0);
    sizes[1] = make_archive(files[1], "some.npy", array, size, true, 0);
    sizes[2] = make_archive(files[2], "some.npy", array, size, true, 7);
    sizes[3] = make_pair(files[3], &(trimmings){2, 9, 3, 5, false, false}, NULL);
    sizes[4] = make_pair(files[4], &(trimmings){0, 0, 0, 0, true, false}, NULL);
    sizes[5] = make_pair(files[5], &(trimmings){0, 4, 0, 0, true, false}, NULL);
    guard g = {0};
    uir_allocator allocator = {resize_fenced, &g};
    uir_diagnostics diagnostics;
    edge e = edge_new(sizeof files[0]);
    (void)state;
    uir_diagnostics_init(&diagnostics, &allocator);
    for (int i = 0; i < 6; i++) {
        const char *const members[] = {i < 3 ? "some" : "second", NULL};
        for (size_t at = 0; at <= 3 * sizes[i]; at++) {
            static const uint8_t changes[] = {0xff, 1};
            size_t length = at <= sizes[i] ? at : sizes[i], changed = (at - length) / 2;
            if (at > sizes[i]) files[i][changed] ^= changes[at % 2];
            for (int member = 0; member < 2; member++) {
                uint8_t *out;
                size_t out_size;
                if (uir_zip_read(&allocator, &diagnostics, "f", edge_put(e, files[i], length), length, members[member],
                                 &out, &out_size) == UIR_STATUS_OK)
                    uir_release(&allocator, out, out_size);
            }
            if (at > sizes[i]) files[i][changed] ^= changes[at % 2];
            uir_diagnostics_clear(&diagnostics);
        }
    }
    uir_diagnostics_deinit(&diagnostics);
    assert_int_equal(g.live, 0);
    edge_free(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(archives_may_have_wide_sizes),
        cmocka_unit_test(archives_are_checked),
        cmocka_unit_test(members_are_found_by_their_whole_name),
        cmocka_unit_test(archives_have_more_than_their_members),
        cmocka_unit_test(wide_ends_are_checked),
        cmocka_unit_test(archives_may_be_empty),
        cmocka_unit_test(members_are_named_or_alone),
        cmocka_unit_test(packed_sizes_are_plausible),
        cmocka_unit_test(members_may_reach_to_the_end),
        cmocka_unit_test(archives_are_read_within_their_bytes),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
