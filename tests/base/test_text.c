/* Text buffer, numbers as text. */
#include "support.h"

#include "base/number.h"
#include "base/text.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

static double double_of_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

static void expect_double(double value, const char *expected) {
    char text[UIR_NUMBER_TEXT_SIZE];
    assert_int_equal(uir_double_to_text(value, text), strlen(expected));
    assert_string_equal(text, expected);
}

static void expect_float(float value, const char *expected) {
    char text[UIR_NUMBER_TEXT_SIZE];
    assert_int_equal(uir_float_to_text(value, text), strlen(expected));
    assert_string_equal(text, expected);
}

static void test_known_numbers(void **state) {
    (void)state;
    expect_double(0, "0");
    expect_double(-0.0, "-0");
    expect_double(1, "1");
    expect_double(-1.5, "-1.5");
    expect_double(0.1, "0.1");
    expect_double(1.0 / 3, "0.3333333333333333");
    expect_double(100, "100");
    expect_double(1e16, "10000000000000000");
    expect_double(1e17, "1e17");
    expect_double(1e22, "1e22");
    expect_double(1e23, "1e23");
    expect_double(0.00001, "0.00001");
    expect_double(0.000001, "1e-6");
    expect_double(1.25e-7, "1.25e-7");
    expect_double(5e-324, "5e-324");
    expect_double(2.2250738585072014e-308, "2.2250738585072014e-308");
    expect_double(1.7976931348623157e308, "1.7976931348623157e308");
    expect_double(9007199254740993.0, "9007199254740992");
    expect_double(4.35, "4.35");
    expect_double(INFINITY, "inf");
    expect_double(-INFINITY, "-inf");
    expect_double(NAN, "nan");
    expect_float(0.1f, "0.1");
    expect_float(16777216.0f, "16777216");
    expect_float(3.4028235e38f, "3.4028235e38");
    expect_float(1e-45f, "1e-45");
    expect_float(1.17549435e-38f, "1.1754944e-38");
    expect_float(8.5899346e9f, "8589935000");
    expect_float(-0.0f, "-0");
}

static int significant_digits(const char *text) {
    int digits = 0, zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9') continue;
        if (*text != '0' || digits) digits++;
        zeros = *text == '0' ? zeros + 1 : 0;
    }
    return digits > zeros ? digits - zeros : 1;
}

/* Against the C library, which is correctly rounded: reads back, and no shorter text does. */
static void test_random_numbers(void **state) {
    (void)state;
    random_state random = {fuzz_seed()};
    uint64_t total = fuzz_iterations(20000);
    char text[UIR_NUMBER_TEXT_SIZE], other[80];
    for (uint64_t i = 0; i < total; i++) {
        uint64_t bits = random_next(&random);
        double value = double_of_bits(i % 3 ? bits : (bits & ~(0x7ffull << 52)) | ((bits >> 52) % 80 + 983) << 52),
               back;
        if (value != value || value - value != 0) continue;
        size_t length = uir_double_to_text(value, text);
        assert_true(uir_double_from_text(text, length, &back));
        assert_true(back == value && strtod(text, NULL) == value);
        int digits = significant_digits(text);
        if (digits > 1) {
            snprintf(other, sizeof other, "%.*e", digits - 2, value);
            assert_true(strtod(other, NULL) != value);
        }
        float narrow = float_of_bits((uint32_t)random_next(&random));
        if (narrow == narrow && narrow - narrow == 0) {
            length = uir_float_to_text(narrow, text);
            assert_true(uir_double_from_text(text, length, &back));
            assert_true((float)back == narrow);
            digits = significant_digits(text);
            if (digits > 1 && digits <= 9) {
                snprintf(other, sizeof other, "%.*e", digits - 2, (double)narrow);
                assert_true(strtof(other, NULL) != narrow);
            }
        }
    }
}

static void expect_read(const char *text, double expected) {
    double value;
    assert_true(uir_double_from_text(text, strlen(text), &value));
    if (expected != expected) {
        assert_true(value != value);
    } else {
        assert_true(value == expected);
        assert_int_equal(signbit(value), signbit(expected));
    }
}

static void test_reading(void **state) {
    (void)state;
    expect_read("1", 1);
    expect_read("+1.5e3", 1500);
    expect_read("-0", -0.0);
    expect_read("1e400", INFINITY);
    expect_read("-1e999999999999", -INFINITY);
    expect_read("1e-999999999999", 0);
    expect_read("0e999999999999", 0);
    expect_read("inf", INFINITY);
    expect_read("-Inf", -INFINITY);
    expect_read("NaN", NAN);
    expect_read("0x1.8p3", 12);
    expect_read("0X1p-1074", 5e-324);
    expect_read("0x1p-1075", 0);
    expect_read("0x1.000000000000080000000000001p0", 0x1.0000000000001p0);
    expect_read("0xABCDEFp0", 0xabcdef);
    expect_read("0xabcdefP-4", 0xabcdefp-4);
    expect_read("0x123456789abcdef01p0", 0x123456789abcdef01p0); /* more digits than a mantissa keeps */
    expect_read("0x80000000000004000000000001", 0x8000000000000800p40);
    expect_read("0x8000000000000400.0000001p0", 0x8000000000000800p0);
    expect_read("1.7976931348623159e308", INFINITY);
    expect_read("1.79769313486231580793e308", 1.7976931348623157e308);
    /* Ties between doubles, exact and just beyond. */
    expect_read("9007199254740993", 9007199254740992.0);
    expect_read("9007199254740993.0000000000000000000000000000000000001", 9007199254740994.0);
    expect_read("9007199254740995", 9007199254740996.0);
    expect_read("2.4703282292062327208299439634110764e-324", 0);
    expect_read("2.4703282292062328e-324", 5e-324);
    char digits[3000];
    memset(digits, '0', sizeof digits);
    memcpy(digits, "9007199254740993.", 17);
    strcpy(digits + sizeof digits - 10, "1e0");
    expect_read(digits, 9007199254740994.0);
    const char *const bad[] = {"",    "+",    "-",   ".",   "e5",    "1e",    "1e+",      "1.5x",
                               "0x",  "0xp1", "1 ",  " 1",  "1..2",  "--1",   "infinity", "1,5",
                               "nax", "ina",  "1e/", "1e:", "0x1p/", "0xgp0", "0xGp0",    "0x1p"};
    double value;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(uir_double_from_text(bad[i], strlen(bad[i]), &value));
    random_state random = {fuzz_seed()};
    for (uint64_t i = 0; i < fuzz_iterations(20000) / 4; i++) {
        char text[100];
        snprintf(text, sizeof text, "%llu.%llue%d", (unsigned long long)(random_next(&random) >> (i % 64)),
                 (unsigned long long)random_next(&random), (int)(random_next(&random) % 700) - 360);
        expect_read(text, strtod(text, NULL));
        snprintf(text, sizeof text, "0x%llx.%llxp%d", (unsigned long long)(random_next(&random) >> (i % 64)),
                 (unsigned long long)random_next(&random), (int)(random_next(&random) % 2400) - 1200);
        expect_read(text, strtod(text, NULL));
    }
}

static void test_integers(void **state) {
    (void)state;
    int64_t value;
    assert_true(uir_integer_from_text("-9223372036854775808", 20, &value));
    assert_true(value == INT64_MIN);
    assert_true(uir_integer_from_text("9223372036854775807", 19, &value));
    assert_true(value == INT64_MAX);
    assert_true(uir_integer_from_text("+12", 3, &value));
    assert_int_equal(value, 12);
    assert_false(uir_integer_from_text("9223372036854775808", 19, &value));
    assert_false(uir_integer_from_text("-9223372036854775809", 20, &value));
    assert_false(uir_integer_from_text("", 0, &value));
    assert_false(uir_integer_from_text("-", 1, &value));
    assert_false(uir_integer_from_text("1x", 2, &value));
}

/* ---- text buffer ------------------------------------------------------------------------------------------------- */

static void test_text_buffer(void **state) {
    (void)state;
    uir_allocator allocator = uir_allocator_system();
    uir_text text;
    uir_text_init(&text, &allocator);
    uir_text_append_string(&text, "abc");
    uir_text_append(&text, "d\0e", 3);
    assert_int_equal(text.length, 6);
    assert_memory_equal(text.data, "abcd\0e\0", 7);
    char wide[1000];
    memset(wide, 'w', sizeof wide - 1);
    wide[sizeof wide - 1] = 0;
    uir_text_append_format(&text, "%d%s", 7, wide);
    assert_int_equal(text.length, 6 + 1 + 999);
    assert_int_equal(text.data[6], '7');
    assert_string_equal(text.data + 7, wide);
    assert_int_equal(uir_text_status(&text), UIR_STATUS_OK);
    uir_text_deinit(&text);
    uir_text_append_quoted(&text, "a\"b\\c\nd\re\tf\0\x80", 13);
    assert_string_equal(text.data, "\"a\\\"b\\\\c\\nd\\re\\tf\\x00\\x80\"");
    uir_text_deinit(&text);
    uir_text_append_double(&text, 0.5);
    uir_text_append_string(&text, " ");
    uir_text_append_float(&text, 0.1f);
    assert_string_equal(text.data, "0.5 0.1");
    uir_text_deinit(&text);
}

static void test_text_until(void **state) {
    (void)state;
    uir_allocator allocator = uir_allocator_system();
    for (size_t length = 0; length < 20; length++) {
        for (size_t more = 0; more < 20; more++) {
            uir_text text;
            uir_text_init(&text, &allocator);
            for (size_t i = 0; i < length; i++) uir_text_append(&text, "x", 1);
            uir_text_append_until(&text, more, 8, '-');
            assert_int_equal((text.length + more) % 8, 0);
            assert_true(text.length >= length && text.length < length + 8);
            for (size_t i = 0; i <= text.length; i++)
                assert_int_equal(text.data[i], i == text.length ? 0 : i < length ? 'x' : '-');
            uir_text_deinit(&text);
        }
    }
}

/* Every length up to beyond the formatting buffer and the first blocks, in memory that shows a write past its end. */
static void test_text_of_every_length(void **state) {
    (void)state;
    char bytes[400], expected[4 * sizeof bytes + 3];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)('a' + i % 26);
    for (size_t length = 0; length < sizeof bytes; length++) {
        failing_memory memory = {0};
        uir_allocator allocator = failing_allocator(&memory);
        uir_text text;
        uir_text_init(&text, &allocator);
        uir_text_append_format(&text, "%.*s", (int)length, bytes);
        assert_int_equal(text.length, length);
        assert_memory_equal(text.data, bytes, length);
        assert_int_equal(text.data[length], 0);
        uir_text_append_format(&text, "%.*s", (int)length, bytes);
        assert_memory_equal(text.data + length, bytes, length);
        assert_int_equal(text.length, 2 * length);
        uir_text_deinit(&text);
        /* The longest form: four characters for a byte. */
        char escaped[sizeof bytes];
        memset(escaped, 1, length);
        size_t at = 0;
        expected[at++] = '"';
        for (size_t i = 0; i < length; i++, at += 4) memcpy(expected + at, "\\x01", 4);
        memcpy(expected + at, "\"", 2);
        uir_text_append_quoted(&text, escaped, length);
        assert_string_equal(text.data, expected);
        assert_int_equal(text.length, at + 1);
        assert_int_equal(uir_text_status(&text), UIR_STATUS_OK);
        uir_text_deinit(&text);
        assert_int_equal(memory.live_bytes, 0);
    }
}

/* Byte by byte: room grows from 256 bytes by doubling. */
static void test_text_growth(void **state) {
    (void)state;
    failing_memory memory = {0};
    uir_allocator allocator = failing_allocator(&memory);
    uir_text text;
    uir_text_init(&text, &allocator);
    for (int i = 0; i < 256 * 1024 - 1; i++) uir_text_append(&text, "x", 1);
    assert_int_equal(text.length, 256 * 1024 - 1);
    assert_int_equal(memory.allocations, 11);
    uir_text_deinit(&text);
    assert_int_equal(memory.live_bytes, 0);
}

/* Lengths no memory holds, and what the C library cannot print, are failures that stay. */
static void test_text_failures(void **state) {
    (void)state;
    static const size_t lengths[] = {SIZE_MAX,         SIZE_MAX - 1,     SIZE_MAX - 3, SIZE_MAX / 2,
                                     SIZE_MAX / 4 + 1, SIZE_MAX / 4 - 1, SIZE_MAX / 4};
    for (size_t i = 0; i < 2 * sizeof lengths / sizeof *lengths + 1; i++) {
        failing_memory memory = {0};
        uir_allocator allocator = failing_allocator(&memory);
        uir_text text;
        uir_text_init(&text, &allocator);
        uir_text_append(&text, "abc", 3);
        if (i == 2 * sizeof lengths / sizeof *lengths)
            uir_text_append_format(&text, "%lc", (wint_t)0x20ac); /* no character of the C locale */
        else if (i % 2)
            uir_text_append_quoted(&text, "x", lengths[i / 2]);
        else
            uir_text_append(&text, "x", lengths[i / 2]);
        assert_int_equal(uir_text_status(&text), UIR_STATUS_OUT_OF_MEMORY);
        uir_text_append(&text, "d", 1);
        uir_text_append_format(&text, "%d", 1);
        uir_text_append_quoted(&text, "d", 1);
        assert_string_equal(text.data, "abc");
        assert_int_equal(text.length, 3);
        uir_text_deinit(&text);
        assert_int_equal(memory.live_bytes, 0);
    }
}

static bool print_some(const uir_allocator *allocator) {
    uir_text text;
    uir_text_init(&text, allocator);
    for (int i = 0; i < 100; i++) {
        size_t before = text.length;
        bool failed = text.failed;
        uir_text_append_format(&text, "%0200d", i);
        uir_text_append_quoted(&text, "q", 1);
        uir_text_append_until(&text, 1, 64, ' '); /* ends, and does nothing once memory has run out */
        uir_text_append_double(&text, i);
        if (failed) assert_int_equal(text.length, before);
    }
    bool done = uir_text_status(&text) == UIR_STATUS_OK;
    uir_text_deinit(&text);
    return done;
}

static void test_every_allocation_may_fail(void **state) {
    (void)state;
    run_with_failures(print_some);
}

static void test_no_locale(void **state) {
    (void)state;
    static const char *const locales[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "C.UTF-8"};
    for (size_t i = 0; i < sizeof locales / sizeof *locales; i++) {
        if (!setlocale(LC_ALL, locales[i])) continue;
        expect_double(1.5, "1.5");
        expect_read("1.5", 1.5);
    }
    setlocale(LC_ALL, "C");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_numbers),
        cmocka_unit_test(test_random_numbers),
        cmocka_unit_test(test_reading),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_text_buffer),
        cmocka_unit_test(test_text_until),
        cmocka_unit_test(test_every_allocation_may_fail),
        cmocka_unit_test(test_no_locale),
        cmocka_unit_test(test_text_of_every_length),
        cmocka_unit_test(test_text_growth),
        cmocka_unit_test(test_text_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
