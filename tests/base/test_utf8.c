/* UTF-8 and case: every code point there and back, what is no code point, cases that are each other's. */
#include "support.h"

#include "base/utf8.h"

static void test_every_code_point(void **state) {
    (void)state;
    for (uint32_t c = 0; c <= 0x10ffff; c++) {
        char text[4];
        size_t count = uir_utf8_encode(c, text), length = 0;
        assert_int_equal(count, c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4);
        bool surrogate = c >= 0xd800 && c < 0xe000;
        assert_int_equal(uir_utf8_decode(text, count, &length), surrogate ? UIR_UTF8_INVALID : c);
        assert_int_equal(length, surrogate ? 1 : count);
        for (size_t cut = 1; cut < count; cut++) {
            assert_int_equal(uir_utf8_decode(text, cut, &length), UIR_UTF8_INVALID);
            assert_int_equal(length, 1);
        }
    }
}

static void test_what_is_none(void **state) {
    static const char *const rows[] = {
        "\x80", /* goes on with what did not begin */
        "\xbf\xbf",
        "\xc0\x80", /* zero, too long */
        "\xc1\xbf",
        "\xe0\x80\x80",
        "\xe0\x9f\xbf",
        "\xf0\x80\x80\x80",
        "\xf0\x8f\xbf\xbf",
        "\xed\xa0\x80", /* a surrogate */
        "\xed\xbf\xbf",
        "\xf4\x90\x80\x80", /* beyond the last */
        "\xf8\x88\x80\x80\x80",
        "\xfe",
        "\xff",
        "\xc3q",
        "\xe2\x82q",
        "\xe2q\xac",
        "\xf0\x9f\x98q",
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t length = 0, size = strlen(rows[i]);
        char *copy = malloc(size); /* of its very size */
        assert_non_null(copy);
        memcpy(copy, rows[i], size);
        assert_int_equal(uir_utf8_decode(copy, size, &length), UIR_UTF8_INVALID);
        assert_int_equal(length, 1);
        free(copy);
    }
}

static void test_case(void **state) {
    static const struct {
        uint32_t upper, lower;
    } pairs[] = {{'A', 'a'},     {'Z', 'z'},     {0xc4, 0xe4},     {0xd8, 0xf8},     {0x178, 0xff},     {0x100, 0x101},
                 {0x139, 0x13a}, {0x391, 0x3b1}, {0x3a3, 0x3c3},   {0x386, 0x3ac},   {0x38c, 0x3cc},    {0x416, 0x436},
                 {0x401, 0x451}, {0x531, 0x561}, {0x1e00, 0x1e01}, {0xff21, 0xff41}, {0x10400, 0x10428}};
    static const uint32_t caseless[] = {0, '@', '[', '`', '{', '1', 0xd7, 0xf7, 0xdf, 0x3a2, 0x4e00, 0x10ffff};
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_int_equal(uir_code_point_to_lower(pairs[i].upper), pairs[i].lower);
        assert_int_equal(uir_code_point_to_upper(pairs[i].lower), pairs[i].upper);
    }
    for (size_t i = 0; i < sizeof caseless / sizeof *caseless; i++) {
        assert_int_equal(uir_code_point_to_lower(caseless[i]), caseless[i]);
        assert_int_equal(uir_code_point_to_upper(caseless[i]), caseless[i]);
    }
    uint32_t changed = 0;
    for (uint32_t c = 0; c <= 0x10ffff; c++) {
        uint32_t lower = uir_code_point_to_lower(c), upper = uir_code_point_to_upper(c);
        assert_true(lower <= 0x10ffff && upper <= 0x10ffff);
        assert_true(lower == c || upper == c); /* no letter is both */
        assert_int_equal(uir_code_point_to_lower(lower), lower);
        assert_int_equal(uir_code_point_to_upper(upper), upper);
        if (lower != c) assert_int_equal(uir_code_point_to_upper(lower), c);
        if (upper != c) assert_int_equal(uir_code_point_to_lower(upper), c);
        changed += lower != c;
    }
    assert_in_range(changed, 500, 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_point),
        cmocka_unit_test(test_what_is_none),
        cmocka_unit_test(test_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
