/* Element types: the table, packing, and every conversion of the small formats against a search of their values.
 *
 * The expected values come from a description of each format of its own, as fractions, and a linear search for the
 * nearest: nothing of the code under test. */
#include "support.h"

#include "base/dtype.h"

#include <math.h>
#include <string.h>

/* ---- table ------------------------------------------------------------------------------------------------------- */

static void test_table(void **state) {
    (void)state;
    assert_false(uir_dtype_is_valid(0));
    assert_false(uir_dtype_is_valid(-1));
    assert_false(uir_dtype_is_valid(UIR_DTYPE_COUNT));
    assert_string_equal(uir_dtype_name(UIR_DTYPE_NONE), "?");
    assert_string_equal(uir_dtype_get_name(UIR_DTYPE_BF16), "bf16");
    for (int i = 1; i < UIR_DTYPE_COUNT; i++) {
        uir_dtype found, dtype = (uir_dtype)i;
        const char *name = uir_dtype_name(dtype);
        assert_true(uir_dtype_is_valid(i));
        assert_true(uir_dtype_from_name(name, strlen(name), &found));
        assert_int_equal(found, dtype);
        assert_true(uir_dtype_bits(dtype) > 0);
        assert_int_not_equal(uir_dtype_get_class(dtype), UIR_DTYPE_CLASS_NONE);
    }
    uir_dtype found;
    assert_false(uir_dtype_from_name("f3", 2, &found));
    assert_false(uir_dtype_from_name("f321", 4, &found));
    assert_true(uir_dtype_is_float(UIR_DTYPE_F8E8M0));
    assert_true(uir_dtype_is_integer(UIR_DTYPE_U2));
    assert_false(uir_dtype_is_integer(UIR_DTYPE_BOOL));
    assert_int_equal(uir_dtype_integer_min(UIR_DTYPE_I4), -8);
    assert_int_equal(uir_dtype_integer_max(UIR_DTYPE_I4), 7);
    assert_int_equal(uir_dtype_integer_min(UIR_DTYPE_I2), -2);
    assert_int_equal(uir_dtype_integer_max(UIR_DTYPE_U2), 3);
    assert_int_equal(uir_dtype_integer_min(UIR_DTYPE_U8), 0);
    assert_int_equal(uir_dtype_integer_max(UIR_DTYPE_U8), 255);
    assert_true(uir_dtype_integer_min(UIR_DTYPE_I64) == INT64_MIN);
    assert_true(uir_dtype_integer_max(UIR_DTYPE_I64) == INT64_MAX);
    assert_true(uir_dtype_integer_max(UIR_DTYPE_U64) == UINT64_MAX);
}

static void test_storage_size(void **state) {
    (void)state;
    size_t size;
    assert_true(uir_dtype_storage_size(UIR_DTYPE_F32, 5, &size));
    assert_int_equal(size, 20);
    assert_true(uir_dtype_storage_size(UIR_DTYPE_I4, 5, &size));
    assert_int_equal(size, 3);
    assert_true(uir_dtype_storage_size(UIR_DTYPE_U2, 5, &size));
    assert_int_equal(size, 2);
    assert_true(uir_dtype_storage_size(UIR_DTYPE_U2, 0, &size));
    assert_int_equal(size, 0);
    assert_true(uir_dtype_storage_size(UIR_DTYPE_STRING, 2, &size));
    assert_int_equal(size, 2 * sizeof(uir_string_view));
    assert_false(uir_dtype_storage_size(UIR_DTYPE_F64, UINT64_MAX / 8 + 1, &size));
    assert_false(uir_dtype_storage_size(UIR_DTYPE_U8, UINT64_MAX, &size));
    assert_false(uir_dtype_storage_size(UIR_DTYPE_NONE, 1, &size));
}

/* ---- packing ----------------------------------------------------------------------------------------------------- */

static void test_packing(void **state) {
    (void)state;
    unsigned char bytes[4] = {0};
    /* The first element lies in the low bits. */
    for (int i = 0; i < 4; i++) uir_dtype_store_integer(UIR_DTYPE_U4, bytes, (uint64_t)i, i + 1, false, 0);
    assert_int_equal(bytes[0], 0x21);
    assert_int_equal(bytes[1], 0x43);
    memset(bytes, 0xff, sizeof bytes);
    uir_dtype_store_integer(UIR_DTYPE_I2, bytes, 1, -2, false, 0);
    assert_int_equal(bytes[0], 0xfb);
    static const uir_dtype small[] = {UIR_DTYPE_U4, UIR_DTYPE_I4, UIR_DTYPE_U2, UIR_DTYPE_I2};
    random_state random = {fuzz_seed()};
    for (size_t t = 0; t < 4; t++) {
        int64_t expected[37];
        unsigned char data[37];
        memset(data, 0, sizeof data);
        int64_t low = uir_dtype_integer_min(small[t]), high = (int64_t)uir_dtype_integer_max(small[t]);
        for (int round = 0; round < 500; round++) {
            uint64_t at = (uint64_t)(round < 37 ? round : random_between(&random, 0, 36));
            expected[at] = random_between(&random, low, high);
            uir_dtype_store_integer(small[t], data, at, expected[at], false, 0);
            for (uint64_t i = 0; i < 37 && round >= 36; i++) {
                assert_int_equal(uir_dtype_load_integer(small[t], data, i), expected[i]);
                assert_true(uir_dtype_load_double(small[t], data, i) == (double)expected[i]);
            }
        }
    }
    /* A converted array's last byte is padded with zeros. */
    int32_t source[3] = {-1, -1, -1};
    unsigned char packed[2] = {0xff, 0xff};
    assert_int_equal(uir_dtype_convert(UIR_DTYPE_I32, source, UIR_DTYPE_I4, packed, 3, 0), UIR_STATUS_OK);
    assert_int_equal(packed[1], 0x0f);
    unsigned char again[2] = {0, 0};
    packed[1] = 0xff;
    assert_int_equal(uir_dtype_convert(UIR_DTYPE_I4, packed, UIR_DTYPE_I4, again, 3, 0), UIR_STATUS_OK);
    assert_int_equal(again[1], 0x0f);
}

/* ---- formats ----------------------------------------------------------------------------------------------------- */

typedef struct format {
    uir_dtype dtype;
    int bits, mantissa_bits, bias;
    double largest;
    bool infinity, nan;
} format;

static const format formats[] = {
    {UIR_DTYPE_F16, 16, 10, 15, 65504, true, true},  {UIR_DTYPE_BF16, 16, 7, 127, 0x1.fep127, true, true},
    {UIR_DTYPE_F8E4M3FN, 8, 3, 7, 448, false, true}, {UIR_DTYPE_F8E4M3FNUZ, 8, 3, 8, 240, false, true},
    {UIR_DTYPE_F8E5M2, 8, 2, 15, 57344, true, true}, {UIR_DTYPE_F8E5M2FNUZ, 8, 2, 16, 57344, false, true},
    {UIR_DTYPE_F4E2M1, 4, 1, 1, 6, false, false},
};

static bool is_fnuz(uir_dtype dtype) {
    return dtype == UIR_DTYPE_F8E4M3FNUZ || dtype == UIR_DTYPE_F8E5M2FNUZ;
}

static uint64_t load_pattern(const format *f, const void *data) {
    uint16_t wide;
    unsigned char byte;
    memcpy(&byte, data, 1);
    if (f->bits <= 8) return byte & ((1u << f->bits) - 1);
    memcpy(&wide, data, 2);
    return wide;
}

static double decode(const format *f, unsigned pattern) {
    unsigned char data[2] = {(unsigned char)pattern, (unsigned char)(pattern >> 8)};
    return uir_dtype_load_double(f->dtype, data, 0);
}

static unsigned encode(const format *f, double value, uir_rounding rounding) {
    unsigned char data[2] = {0, 0};
    uir_dtype_store_double(f->dtype, data, 0, value, rounding);
    return (unsigned)load_pattern(f, data);
}

static bool same(double a, double b) {
    return (a != a && b != b) || (a == b && signbit(a) == signbit(b));
}

/* The value of a pattern by the format's definition. */
static double defined_value(const format *f, unsigned pattern) {
    int exponent_bits = f->bits - 1 - f->mantissa_bits;
    int sign = (int)(pattern >> (f->bits - 1)),
        exponent = (int)(pattern >> f->mantissa_bits) & ((1 << exponent_bits) - 1);
    int mantissa = (int)(pattern & ((1u << f->mantissa_bits) - 1));
    double magnitude = exponent ? ldexp(1 + ldexp(mantissa, -f->mantissa_bits), exponent - f->bias)
                                : ldexp(mantissa, 1 - f->bias - f->mantissa_bits);
    if (is_fnuz(f->dtype)) return sign && !exponent && !mantissa ? NAN : sign ? -magnitude : magnitude;
    if (magnitude > f->largest) magnitude = f->infinity && mantissa == 0 ? INFINITY : NAN;
    return sign ? -magnitude : magnitude;
}

static void test_decoding_every_pattern(void **state) {
    (void)state;
    for (size_t t = 0; t < sizeof formats / sizeof *formats; t++) {
        const format *f = &formats[t];
        double largest = 0;
        for (unsigned pattern = 0; pattern < 1u << f->bits; pattern++) {
            double value = decode(f, pattern);
            assert_true(same(value, defined_value(f, pattern)));
            assert_true(f->nan || value == value);
            if (value - value == 0 && value > largest) largest = value;
        }
        assert_true(largest == f->largest);
    }
    for (unsigned pattern = 0; pattern < 256; pattern++) {
        unsigned char byte = (unsigned char)pattern;
        double value = uir_dtype_load_double(UIR_DTYPE_F8E8M0, &byte, 0);
        assert_true(same(value, pattern == 255 ? NAN : ldexp(1, (int)pattern - 127)));
    }
}

static void test_round_trip_of_every_pattern(void **state) {
    (void)state;
    for (size_t t = 0; t < sizeof formats / sizeof *formats; t++) {
        const format *f = &formats[t];
        for (unsigned pattern = 0; pattern < 1u << f->bits; pattern++) {
            double value = decode(f, pattern);
            unsigned back = encode(f, value, UIR_ROUND_NEAREST_EVEN);
            if (value == value)
                assert_int_equal(back, pattern);
            else
                assert_true(decode(f, back) != decode(f, back));
        }
    }
    for (unsigned pattern = 0; pattern < 256; pattern++) {
        unsigned char byte = (unsigned char)pattern, back = 0;
        static const uir_rounding modes[] = {0, UIR_ROUND_E8M0_DOWN, UIR_ROUND_E8M0_NEAREST};
        for (size_t i = 0; i < 3; i++) {
            uir_dtype_store_double(UIR_DTYPE_F8E8M0, &back, 0, uir_dtype_load_double(UIR_DTYPE_F8E8M0, &byte, 0),
                                   modes[i]);
            assert_int_equal(back, pattern);
        }
    }
}

/* The non-negative finite values in order; entry i has pattern i in all these formats. */
static unsigned finite_values(const format *f, double *values) {
    unsigned count = 0;
    while (count < 1u << (f->bits - 1)) {
        double value = decode(f, count);
        if (value != value || value - value != 0) break;
        values[count++] = value;
    }
    return count;
}

static void expect_encoded(const format *f, double value, uir_rounding rounding, double expected) {
    assert_true(same(decode(f, encode(f, value, rounding)), expected));
    double negated = expected == 0 && is_fnuz(f->dtype) ? 0 : -expected;
    assert_true(same(decode(f, encode(f, -value, rounding)), negated));
}

/* Between every two neighbours: the middle goes to the even one, and the least step off the middle to the nearer. */
static void test_every_midpoint(void **state) {
    (void)state;
    static double values[1 << 15];
    for (size_t t = 0; t < sizeof formats / sizeof *formats; t++) {
        const format *f = &formats[t];
        unsigned count = finite_values(f, values);
        for (unsigned i = 0; i + 1 < count; i++) {
            double low = values[i], high = values[i + 1], middle = low + (high - low) / 2; /* exact in a double */
            assert_true(low < middle && middle < high);
            expect_encoded(f, middle, 0, i % 2 ? high : low);
            expect_encoded(f, nextafter(middle, 0), 0, low);
            expect_encoded(f, nextafter(middle, INFINITY), 0, high);
            expect_encoded(f, nextafter(low, INFINITY), 0, low);
            expect_encoded(f, nextafter(high, 0), 0, high);
            expect_encoded(f, middle, UIR_ROUND_SATURATE, i % 2 ? high : low);
        }
    }
}

/* ONNX Cast's two tables: onnx.ai/onnx/operators/onnx__Cast.html. */
static void test_overflow(void **state) {
    (void)state;
    static double values[1 << 15];
    for (size_t t = 0; t < sizeof formats / sizeof *formats; t++) {
        const format *f = &formats[t];
        unsigned count = finite_values(f, values);
        double largest = values[count - 1], step = largest - values[count - 2], limit = largest + step / 2;
        /* What would be the next value is even when the largest has an odd pattern, and takes the tie. */
        double over = f->infinity ? INFINITY : f->nan ? NAN : largest;
        expect_encoded(f, nextafter(limit, 0), 0, largest);
        expect_encoded(f, limit, 0, (count - 1) % 2 ? over : largest);
        expect_encoded(f, nextafter(limit, INFINITY), 0, over);
        expect_encoded(f, 1e300, 0, over);
        expect_encoded(f, INFINITY, 0, over);
        bool saturates = f->bits <= 8;
        double saturated = saturates ? largest : over;
        expect_encoded(f, nextafter(limit, INFINITY), UIR_ROUND_SATURATE, saturated);
        expect_encoded(f, 1e300, UIR_ROUND_SATURATE, saturated);
        expect_encoded(f, INFINITY, UIR_ROUND_SATURATE, saturated);
        if (f->nan) {
            assert_true(decode(f, encode(f, NAN, 0)) != decode(f, encode(f, NAN, 0)));
            double kept = decode(f, encode(f, NAN, UIR_ROUND_SATURATE));
            assert_true(kept != kept);
        } else {
            assert_true(same(decode(f, encode(f, NAN, 0)), -0.0));
        }
        expect_encoded(f, 0x1p-1074, 0, 0);
        expect_encoded(f, 0, 0, 0);
    }
}

static unsigned encode_scale(double value, uir_rounding rounding) {
    unsigned char byte = 0;
    uir_dtype_store_double(UIR_DTYPE_F8E8M0, &byte, 0, value, rounding);
    return byte;
}

static void test_scale_rounding(void **state) {
    (void)state;
    for (int e = -127; e < 127; e++) {
        double value = ldexp(1, e), above = nextafter(value, INFINITY), half = value * 1.5;
        unsigned pattern = (unsigned)(e + 127);
        assert_int_equal(encode_scale(above, 0), pattern + 1);
        assert_int_equal(encode_scale(half, 0), pattern + 1);
        assert_int_equal(encode_scale(nextafter(value * 2, 0), UIR_ROUND_E8M0_DOWN), pattern);
        assert_int_equal(encode_scale(half, UIR_ROUND_E8M0_NEAREST), pattern + 1);
        assert_int_equal(encode_scale(nextafter(half, 0), UIR_ROUND_E8M0_NEAREST), pattern);
        assert_int_equal(encode_scale(above, UIR_ROUND_E8M0_NEAREST), pattern);
    }
    assert_int_equal(encode_scale(0x1.8p127, 0), 255);
    assert_int_equal(encode_scale(0x1.8p127, UIR_ROUND_SATURATE), 254);
    assert_int_equal(encode_scale(0x1.8p127, UIR_ROUND_E8M0_DOWN), 254);
    assert_int_equal(encode_scale(1e300, UIR_ROUND_SATURATE), 254);
    assert_int_equal(encode_scale(INFINITY, UIR_ROUND_SATURATE), 254);
    assert_int_equal(encode_scale(INFINITY, 0), 255);
    assert_int_equal(encode_scale(0, UIR_ROUND_SATURATE), 0);
    assert_int_equal(encode_scale(0, 0), 255);
    assert_int_equal(encode_scale(1e-300, 0), 0);
    assert_int_equal(encode_scale(1e-300, UIR_ROUND_E8M0_NEAREST), 255);
    assert_int_equal(encode_scale(1e-300, UIR_ROUND_E8M0_NEAREST | UIR_ROUND_SATURATE), 0);
    assert_int_equal(encode_scale(NAN, UIR_ROUND_SATURATE), 255);
    assert_int_equal(encode_scale(-1, UIR_ROUND_SATURATE), 255);
    assert_int_equal(encode_scale(-INFINITY, UIR_ROUND_SATURATE), 255);
}

/* F32 from double: the hardware's conversion is the reference. */
static void test_f32_and_f64(void **state) {
    (void)state;
    random_state random = {fuzz_seed()};
    for (uint64_t i = 0; i < fuzz_iterations(20000) * 5; i++) {
        uint64_t bits = random_next(&random);
        if (i % 2) bits = (bits & ~(0x7ffull << 52)) | ((bits >> 52) % 300 + 870) << 52; /* in f32's range mostly */
        if (i % 8 == 1) bits &= ~((1ull << 28) - 1);                                     /* ties */
        double value, back;
        memcpy(&value, &bits, sizeof value);
        float stored, expected = (float)value;
        uir_dtype_store_double(UIR_DTYPE_F32, &stored, 0, value, 0);
        assert_true(same((double)stored, (double)expected));
        uir_dtype_store_double(UIR_DTYPE_F64, &back, 0, value, 0);
        assert_memory_equal(&back, &value, sizeof value);
        assert_true(same(uir_dtype_load_double(UIR_DTYPE_F32, &stored, 0), (double)expected));
    }
}

/* The single-value functions are the same conversions. */
static void test_half_functions(void **state) {
    (void)state;
    for (unsigned pattern = 0; pattern < 1u << 16; pattern++) {
        assert_true(same((double)uir_f16_to_f32((uint16_t)pattern), decode(&formats[0], pattern)));
        assert_true(same((double)uir_bf16_to_f32((uint16_t)pattern), decode(&formats[1], pattern)));
        /* All 16-bit prefixes with trailing bits that matter to rounding. */
        static const uint32_t tails[] = {0, 1, 0x0fff, 0x1000, 0x1001, 0x2000, 0x3000, 0x7fff, 0x8000, 0x8001, 0xffff};
        for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
            uint32_t bits = (uint32_t)pattern << 16 | tails[i];
            float value;
            memcpy(&value, &bits, sizeof value);
            unsigned half = uir_f32_to_f16(value), brain = uir_f32_to_bf16(value);
            assert_true(same(decode(&formats[0], half), decode(&formats[0], encode(&formats[0], (double)value, 0))));
            assert_true(same(decode(&formats[1], brain), decode(&formats[1], encode(&formats[1], (double)value, 0))));
        }
    }
}

/* ---- integers ---------------------------------------------------------------------------------------------------- */

static void test_integers_to_floats_round_once(void **state) {
    (void)state;
    /* 2^62 + 2^54 + 1 lies just above a tie of bf16; through a double it would be the tie. */
    int64_t value = ((int64_t)1 << 62) + ((int64_t)1 << 54) + 1;
    uint16_t bits;
    uir_dtype_store_integer(UIR_DTYPE_BF16, &bits, 0, value, false, 0);
    assert_true(uir_bf16_to_f32(bits) == 0x1.02p62f);
    uir_dtype_store_integer(UIR_DTYPE_BF16, &bits, 0, value - 1, false, 0);
    assert_true(uir_bf16_to_f32(bits) == 0x1p62f);
    uir_dtype_store_integer(UIR_DTYPE_F16, &bits, 0, -65520, false, 0);
    assert_true(uir_f16_to_f32(bits) == -INFINITY);
    uir_dtype_store_integer(UIR_DTYPE_F16, &bits, 0, -65519, false, 0);
    assert_true(uir_f16_to_f32(bits) == -65504);
    random_state random = {fuzz_seed()};
    for (uint64_t i = 0; i < fuzz_iterations(20000); i++) {
        uint64_t number = random_next(&random) >> (random_next(&random) % 64);
        float f32;
        double f64;
        uir_dtype_store_integer(UIR_DTYPE_F32, &f32, 0, (int64_t)number, false, 0);
        assert_true(f32 == (float)(int64_t)number);
        uir_dtype_store_integer(UIR_DTYPE_F32, &f32, 0, (int64_t)number, true, 0);
        assert_true(f32 == (float)number);
        uir_dtype_store_integer(UIR_DTYPE_F64, &f64, 0, (int64_t)number, true, 0);
        assert_true(f64 == (double)number);
        uir_dtype_store_integer(UIR_DTYPE_F64, &f64, 0, (int64_t)number, false, 0);
        assert_true(f64 == (double)(int64_t)number);
    }
}

static void test_floats_to_integers(void **state) {
    (void)state;
    int64_t i64;
    uint64_t u64;
    int32_t i32;
    uint8_t u8;
    uir_dtype_store_double(UIR_DTYPE_I64, &i64, 0, 1e30, 0);
    assert_true(i64 == INT64_MAX);
    uir_dtype_store_double(UIR_DTYPE_I64, &i64, 0, -INFINITY, 0);
    assert_true(i64 == INT64_MIN);
    uir_dtype_store_double(UIR_DTYPE_I64, &i64, 0, NAN, 0);
    assert_true(i64 == 0);
    uir_dtype_store_double(UIR_DTYPE_U64, &u64, 0, 0x1.8p63, 0);
    assert_true(u64 == (uint64_t)3 << 62);
    uir_dtype_store_double(UIR_DTYPE_U64, &u64, 0, INFINITY, 0);
    assert_true(u64 == UINT64_MAX);
    uir_dtype_store_double(UIR_DTYPE_I32, &i32, 0, -2.99, 0);
    assert_int_equal(i32, -2);
    uir_dtype_store_double(UIR_DTYPE_I32, &i32, 0, 4294967297.0, 0);
    assert_int_equal(i32, 1);
    uir_dtype_store_double(UIR_DTYPE_U8, &u8, 0, -1, 0);
    assert_int_equal(u8, 255);
    unsigned char flag = 9;
    uir_dtype_store_double(UIR_DTYPE_BOOL, &flag, 0, -0.0, 0);
    assert_int_equal(flag, 0);
    uir_dtype_store_double(UIR_DTYPE_BOOL, &flag, 0, 0.25, 0);
    assert_int_equal(flag, 1);
    uir_dtype_store_double(UIR_DTYPE_BOOL, &flag, 0, NAN, 0);
    assert_int_equal(flag, 1);
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

/* Whatever path an array takes, each element is what the single functions give. */
static void test_arrays(void **state) {
    (void)state;
    enum { COUNT = 67 };
    random_state random = {fuzz_seed()};
    for (int from = 1; from < UIR_DTYPE_COUNT; from++) {
        for (int to = 1; to < UIR_DTYPE_COUNT; to++) {
            uir_dtype_class a = uir_dtype_get_class((uir_dtype)from), b = uir_dtype_get_class((uir_dtype)to);
            unsigned char source[COUNT * 16], target[COUNT * 16], expected[COUNT * 16];
            for (size_t i = 0; i < sizeof source; i++) source[i] = (unsigned char)random_next(&random);
            memset(expected, 0, sizeof expected);
            memset(target, 0, sizeof target);
            uir_rounding rounding = random_next(&random) % 2 ? UIR_ROUND_SATURATE : UIR_ROUND_NEAREST_EVEN;
            uir_status status = uir_dtype_convert((uir_dtype)from, source, (uir_dtype)to, target, COUNT, rounding);
            bool possible = a != UIR_DTYPE_CLASS_STRING && a != UIR_DTYPE_CLASS_COMPLEX &&
                            b != UIR_DTYPE_CLASS_STRING && b != UIR_DTYPE_CLASS_COMPLEX;
            assert_int_equal(status, possible ? UIR_STATUS_OK : UIR_STATUS_INVALID_ARGUMENT);
            if (!possible) continue;
            for (uint64_t i = 0; i < COUNT; i++) {
                if (a == UIR_DTYPE_CLASS_FLOAT)
                    uir_dtype_store_double((uir_dtype)to, expected, i,
                                           uir_dtype_load_double((uir_dtype)from, source, i), rounding);
                else
                    uir_dtype_store_integer((uir_dtype)to, expected, i,
                                            uir_dtype_load_integer((uir_dtype)from, source, i),
                                            a != UIR_DTYPE_CLASS_SIGNED, rounding);
                bool floats = b == UIR_DTYPE_CLASS_FLOAT;
                if (floats)
                    assert_true(same(uir_dtype_load_double((uir_dtype)to, target, i),
                                     uir_dtype_load_double((uir_dtype)to, expected, i)));
                else
                    assert_true(uir_dtype_load_integer((uir_dtype)to, target, i) ==
                                uir_dtype_load_integer((uir_dtype)to, expected, i));
            }
        }
    }
    assert_int_equal(uir_dtype_convert(UIR_DTYPE_NONE, NULL, UIR_DTYPE_F32, NULL, 0, 0), UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_dtype_convert(UIR_DTYPE_F32, NULL, UIR_DTYPE_I4, NULL, 0, 0), UIR_STATUS_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_storage_size),
        cmocka_unit_test(test_packing),
        cmocka_unit_test(test_decoding_every_pattern),
        cmocka_unit_test(test_round_trip_of_every_pattern),
        cmocka_unit_test(test_every_midpoint),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_scale_rounding),
        cmocka_unit_test(test_f32_and_f64),
        cmocka_unit_test(test_half_functions),
        cmocka_unit_test(test_integers_to_floats_round_once),
        cmocka_unit_test(test_floats_to_integers),
        cmocka_unit_test(test_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
