#include "base/dtype.h"

#include <string.h>

typedef struct dtype_row {
    const char *name;
    uint32_t bits;
    uir_dtype_class dtype_class;
} dtype_row;

#define UIR_DTYPE(constant, name, number, bits, dtype_class)                                                           \
    [UIR_DTYPE_##constant] = {name, bits, UIR_DTYPE_CLASS_##dtype_class},
static const dtype_row rows[UIR_DTYPE_COUNT] = {
#include "base/dtype.def"
};
#undef UIR_DTYPE
#define UIR_DTYPE(constant, name, number, bits, dtype_class)                                                           \
    _Static_assert(UIR_DTYPE_##constant == (number), "uir.h and dtype.def disagree on " name);
#include "base/dtype.def"
#undef UIR_DTYPE

/* What the bit patterns at the top of a float format mean. */
typedef enum specials {
    SPECIALS_IEEE,   /* exponent all ones: infinity, or NaN */
    SPECIALS_FN,     /* all ones is NaN, no infinity */
    SPECIALS_FNUZ,   /* the pattern of -0 is the one NaN, no infinity, no -0 */
    SPECIALS_FINITE, /* neither */
    SPECIALS_SCALE   /* a bare exponent: no sign, no zero, all ones is NaN */
} specials;

typedef struct float_format {
    uint8_t exponent_bits, mantissa_bits;
    int16_t bias;
    specials specials;
} float_format;

/* Sources: IEEE 754; onnx.ai/onnx/technical/float8.html, float4.html; OCP Microscaling Formats 1.0 (E8M0). */
static const float_format formats[UIR_DTYPE_COUNT] = {
    [UIR_DTYPE_F16] = {5, 10, 15, SPECIALS_IEEE},      [UIR_DTYPE_BF16] = {8, 7, 127, SPECIALS_IEEE},
    [UIR_DTYPE_F8E5M2] = {5, 2, 15, SPECIALS_IEEE},    [UIR_DTYPE_F8E4M3FN] = {4, 3, 7, SPECIALS_FN},
    [UIR_DTYPE_F8E4M3FNUZ] = {4, 3, 8, SPECIALS_FNUZ}, [UIR_DTYPE_F8E5M2FNUZ] = {5, 2, 16, SPECIALS_FNUZ},
    [UIR_DTYPE_F4E2M1] = {2, 1, 1, SPECIALS_FINITE},   [UIR_DTYPE_F8E8M0] = {8, 0, 127, SPECIALS_SCALE},
};

bool uir_dtype_is_valid(int dtype) {
    return dtype > UIR_DTYPE_NONE && dtype < UIR_DTYPE_COUNT;
}

const char *uir_dtype_name(uir_dtype dtype) {
    return uir_dtype_is_valid((int)dtype) ? rows[dtype].name : "?";
}

const char *uir_dtype_get_name(uir_dtype dtype) {
    return uir_dtype_name(dtype);
}

bool uir_dtype_from_name(const char *name, size_t length, uir_dtype *out_dtype) {
    for (int i = UIR_DTYPE_NONE + 1; i < UIR_DTYPE_COUNT; i++) {
        if (strlen(rows[i].name) == length && memcmp(rows[i].name, name, length) == 0) {
            *out_dtype = (uir_dtype)i;
            return true;
        }
    }
    return false;
}

uint32_t uir_dtype_bits(uir_dtype dtype) {
    return uir_dtype_is_valid((int)dtype) ? rows[dtype].bits : 0;
}

uir_dtype_class uir_dtype_get_class(uir_dtype dtype) {
    return uir_dtype_is_valid((int)dtype) ? rows[dtype].dtype_class : UIR_DTYPE_CLASS_NONE;
}

int64_t uir_dtype_integer_min(uir_dtype dtype) {
    return rows[dtype].dtype_class == UIR_DTYPE_CLASS_SIGNED ? INT64_MIN >> (64 - rows[dtype].bits) : 0;
}

uint64_t uir_dtype_integer_max(uir_dtype dtype) {
    if (rows[dtype].dtype_class == UIR_DTYPE_CLASS_BOOL) return 1;
    return UINT64_MAX >> (64 - rows[dtype].bits + (rows[dtype].dtype_class == UIR_DTYPE_CLASS_SIGNED));
}

bool uir_dtype_storage_size(uir_dtype dtype, uint64_t count, size_t *out_size) {
    uint64_t bits = uir_dtype_bits(dtype), size;
    if (bits >= 8) {
        if (__builtin_mul_overflow(count, bits / 8, &size)) return false;
    } else {
        if (bits == 0) return false;
        uint64_t per_byte = 8 / bits;
        size = count / per_byte + (count % per_byte != 0);
    }
    if (size > PTRDIFF_MAX) return false;
    *out_size = (size_t)size;
    return true;
}

/* ---- bit patterns ---------------------------------------------------------------------------------------------- */

static inline uint64_t load_bits(uint32_t bits, const void *data, uint64_t index) {
    const unsigned char *bytes = data;
    if (bits == 8) return bytes[index];
    if (bits == 16) {
        uint16_t value;
        memcpy(&value, bytes + index * 2, sizeof value);
        return value;
    }
    if (bits == 32) {
        uint32_t value;
        memcpy(&value, bytes + index * 4, sizeof value);
        return value;
    }
    if (bits == 64) {
        uint64_t value;
        memcpy(&value, bytes + index * 8, sizeof value);
        return value;
    }
    uint64_t bit = index * bits; /* 2 or 4: low bits of a byte first */
    return (uint64_t)(bytes[bit / 8] >> (bit % 8)) & ((1u << bits) - 1);
}

static inline void store_bits(uint32_t bits, void *data, uint64_t index, uint64_t pattern) {
    unsigned char *bytes = data;
    if (bits == 8) {
        bytes[index] = (unsigned char)pattern;
    } else if (bits == 16) {
        uint16_t value = (uint16_t)pattern;
        memcpy(bytes + index * 2, &value, sizeof value);
    } else if (bits == 32) {
        uint32_t value = (uint32_t)pattern;
        memcpy(bytes + index * 4, &value, sizeof value);
    } else if (bits == 64) {
        memcpy(bytes + index * 8, &pattern, sizeof pattern);
    } else {
        uint64_t bit = index * bits;
        unsigned mask = ((1u << bits) - 1) << (bit % 8);
        bytes[bit / 8] = (unsigned char)((bytes[bit / 8] & ~mask) | (((unsigned)pattern << (bit % 8)) & mask));
    }
}

static inline double double_from_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t double_to_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t float_to_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

enum { DOUBLE_MANTISSA = 52, DOUBLE_BIAS = 1023, DOUBLE_EXPONENT_MAX = 2047 };
#define DOUBLE_INFINITY_BITS ((uint64_t)DOUBLE_EXPONENT_MAX << DOUBLE_MANTISSA)
#define DOUBLE_QUIET_BITS    (DOUBLE_INFINITY_BITS | (uint64_t)1 << (DOUBLE_MANTISSA - 1))

/* 2^exponent, for exponents of normal doubles. */
static inline double power_of_two(int exponent) {
    return double_from_bits((uint64_t)(exponent + DOUBLE_BIAS) << DOUBLE_MANTISSA);
}

/* Of a format narrower than a double, which holds all of its values exactly. */
static double decode(const float_format *format, uint64_t pattern) {
    uint32_t mantissa_bits = format->mantissa_bits;
    uint64_t exponent_ones = ((uint64_t)1 << format->exponent_bits) - 1;
    uint64_t magnitude = pattern & (((uint64_t)1 << (format->exponent_bits + mantissa_bits)) - 1);
    uint64_t sign = (pattern >> (format->exponent_bits + mantissa_bits)) & 1;
    uint64_t mantissa = magnitude & (((uint64_t)1 << mantissa_bits) - 1);
    uint64_t exponent = magnitude >> mantissa_bits;
    uint64_t ones = (exponent_ones << mantissa_bits) | (((uint64_t)1 << mantissa_bits) - 1);
    uint64_t sign_bit = sign << 63;

    if (format->specials == SPECIALS_IEEE && exponent == exponent_ones) {
        uint64_t payload = mantissa << (DOUBLE_MANTISSA - mantissa_bits);
        return double_from_bits(sign_bit | (mantissa ? DOUBLE_QUIET_BITS | payload : DOUBLE_INFINITY_BITS));
    }
    if ((format->specials == SPECIALS_FN || format->specials == SPECIALS_SCALE) && magnitude == ones)
        return double_from_bits(sign_bit | DOUBLE_QUIET_BITS);
    if (format->specials == SPECIALS_FNUZ && sign && magnitude == 0) return double_from_bits(DOUBLE_QUIET_BITS);

    if (exponent == 0 && format->specials != SPECIALS_SCALE) {
        double value = (double)mantissa * power_of_two(1 - format->bias - (int)mantissa_bits);
        return sign ? -value : value;
    }
    uint64_t biased = exponent + (uint64_t)(DOUBLE_BIAS - format->bias);
    return double_from_bits(sign_bit | biased << DOUBLE_MANTISSA | mantissa << (DOUBLE_MANTISSA - mantissa_bits));
}

static uint64_t largest_finite(const float_format *format) {
    uint64_t all = (uint64_t)1 << (format->exponent_bits + format->mantissa_bits);
    switch (format->specials) {
    case SPECIALS_IEEE:
        return all - ((uint64_t)1 << format->mantissa_bits) - 1;
    case SPECIALS_FN:
    case SPECIALS_SCALE:
        return all - 2;
    case SPECIALS_FNUZ:
    case SPECIALS_FINITE:
        break;
    }
    return all - 1;
}

static uint64_t encode_nan(const float_format *format, bool sign, uint64_t double_mantissa) {
    uint64_t sign_bit = (uint64_t)sign << (format->exponent_bits + format->mantissa_bits);
    switch (format->specials) {
    case SPECIALS_IEEE: /* quiet, with the part of the payload that fits */
        return sign_bit | ((((uint64_t)1 << format->exponent_bits) - 1) << format->mantissa_bits) |
               (uint64_t)1 << (format->mantissa_bits - 1) |
               double_mantissa >> (DOUBLE_MANTISSA - format->mantissa_bits);
    case SPECIALS_FN:
        return sign_bit | (largest_finite(format) + 1);
    case SPECIALS_FNUZ:
        return (uint64_t)1 << (format->exponent_bits + format->mantissa_bits);
    case SPECIALS_SCALE:
        return largest_finite(format) + 1;
    case SPECIALS_FINITE:
        break;
    }
    /* F4E2M1 has no NaN. onnx.ai's page says 6, ONNX's reference and its test data give the zero of the other sign. */
    return (uint64_t)!sign << (format->exponent_bits + format->mantissa_bits);
}

static bool is_saturating(const float_format *format, uir_rounding rounding) {
    bool eight_bits = format->exponent_bits + format->mantissa_bits <= 8 && format->specials != SPECIALS_FINITE;
    return eight_bits && (rounding & UIR_ROUND_SATURATE);
}

static uint64_t encode_overflow(const float_format *format, bool sign, uir_rounding rounding) {
    uint64_t sign_bit = (uint64_t)sign << (format->exponent_bits + format->mantissa_bits);
    if (format->specials == SPECIALS_FINITE || is_saturating(format, rounding))
        return sign_bit | largest_finite(format);
    if (format->specials == SPECIALS_IEEE) return sign_bit | (largest_finite(format) + 1);
    return encode_nan(format, sign, 0);
}

/* E8M0 of mantissa * 2^exponent, the mantissa's top bit being 63. */
static uint64_t encode_scale(const float_format *format, uint64_t mantissa, int exponent, uir_rounding rounding) {
    uint64_t fraction = mantissa << 1;
    bool up = rounding & UIR_ROUND_E8M0_DOWN      ? false
              : rounding & UIR_ROUND_E8M0_NEAREST ? fraction >> 63 != 0
                                                  : fraction != 0;
    int biased = exponent + 63 + format->bias;
    /* Below the least value "up" reaches it; the other modes have nothing to round to. */
    if (biased < 0)
        return is_saturating(format, rounding) || !(rounding & (UIR_ROUND_E8M0_DOWN | UIR_ROUND_E8M0_NEAREST))
                   ? 0
                   : encode_nan(format, false, 0);
    biased += up;
    if ((uint64_t)biased > largest_finite(format)) return encode_overflow(format, false, rounding);
    return (uint64_t)biased;
}

/* The pattern nearest to (-1)^sign * mantissa * 2^exponent; one rounding, ties to even. */
static uint64_t encode(const float_format *format, bool sign, uint64_t mantissa, int exponent, uir_rounding rounding) {
    uint32_t mantissa_bits = format->mantissa_bits;
    uint64_t sign_bit = (uint64_t)sign << (format->exponent_bits + mantissa_bits);
    if (format->specials == SPECIALS_SCALE && (mantissa == 0 || sign))
        return mantissa == 0 && is_saturating(format, rounding) ? 0 : encode_nan(format, sign, 0);
    if (mantissa == 0) return format->specials == SPECIALS_FNUZ ? 0 : sign_bit;
    int shift = __builtin_clzll(mantissa);
    mantissa <<= shift;
    exponent -= shift;
    if (format->specials == SPECIALS_SCALE) return encode_scale(format, mantissa, exponent, rounding);

    int value_exponent = exponent + 63, least = 1 - format->bias;
    int kept = (int)mantissa_bits + 1;
    if (value_exponent < least) kept -= least - value_exponent;
    if (kept < 0) return format->specials == SPECIALS_FNUZ ? 0 : sign_bit; /* below half the least subnormal */
    uint64_t quotient = kept ? mantissa >> (64 - kept) : 0;
    uint64_t rest = mantissa << kept, half = (uint64_t)1 << 63;
    if (rest > half || (rest == half && (quotient & 1))) quotient++;

    /* A carry out of the mantissa is the next exponent, which is what adding the fields does. */
    uint64_t pattern = quotient;
    if (value_exponent >= least) pattern += ((uint64_t)(value_exponent - least)) << mantissa_bits;
    if (pattern > largest_finite(format)) return encode_overflow(format, sign, rounding);
    if (pattern == 0 && format->specials == SPECIALS_FNUZ) return 0;
    return pattern | sign_bit;
}

static uint64_t encode_double(const float_format *format, double value, uir_rounding rounding) {
    uint64_t bits = double_to_bits(value), mantissa = bits & (((uint64_t)1 << DOUBLE_MANTISSA) - 1);
    int exponent = (int)((bits >> DOUBLE_MANTISSA) & DOUBLE_EXPONENT_MAX);
    bool sign = bits >> 63;
    if (exponent == DOUBLE_EXPONENT_MAX && mantissa) return encode_nan(format, sign, mantissa);
    if (exponent == DOUBLE_EXPONENT_MAX)
        return format->specials == SPECIALS_SCALE && sign ? encode_nan(format, sign, 0)
                                                          : encode_overflow(format, sign, rounding);
    if (exponent) mantissa |= (uint64_t)1 << DOUBLE_MANTISSA;
    return encode(format, sign, mantissa, (exponent ? exponent : 1) - DOUBLE_BIAS - DOUBLE_MANTISSA, rounding);
}

static uint64_t encode_integer(const float_format *format, int64_t value, bool is_unsigned, uir_rounding rounding) {
    bool sign = !is_unsigned && value < 0;
    return encode(format, sign, sign ? 0 - (uint64_t)value : (uint64_t)value, 0, rounding);
}

/* ---- elements -------------------------------------------------------------------------------------------------- */

static inline int64_t load_integer(dtype_row row, const void *data, uint64_t index) {
    uint64_t pattern = load_bits(row.bits, data, index);
    if (row.dtype_class == UIR_DTYPE_CLASS_BOOL) return pattern != 0;
    if (row.dtype_class == UIR_DTYPE_CLASS_SIGNED) {
        /* Sign extension without a shift of a negative value. */
        uint64_t sign_bit = (uint64_t)1 << (row.bits - 1);
        return (int64_t)((pattern ^ sign_bit) - sign_bit);
    }
    return (int64_t)pattern;
}

/* Toward zero; see dtype.h for what is out of range. */
static inline int64_t double_to_integer(double value, bool is_u64) {
    if (value != value) return 0;
    if (value < -0x1p63) return INT64_MIN;
    if (value < 0x1p63) return (int64_t)value;
    if (is_u64) return value < 0x1p64 ? (int64_t)(uint64_t)value : -1;
    return INT64_MAX;
}

static inline double load_double(dtype_row row, const float_format *format, const void *data, uint64_t index) {
    if (row.dtype_class != UIR_DTYPE_CLASS_FLOAT) {
        int64_t value = load_integer(row, data, index);
        bool is_u64 = row.dtype_class == UIR_DTYPE_CLASS_UNSIGNED && row.bits == 64;
        return is_u64 ? (double)(uint64_t)value : (double)value;
    }
    if (row.bits == 32) return (double)float_from_bits((uint32_t)load_bits(32, data, index));
    if (row.bits == 64) return double_from_bits(load_bits(64, data, index));
    return decode(format, load_bits(row.bits, data, index));
}

/* The two wide formats are the machine's own, whose conversions round once to nearest even as well. */
static inline void store_double(dtype_row row, const float_format *format, void *data, uint64_t index, double value,
                                uir_rounding rounding) {
    uint64_t pattern;
    if (row.dtype_class == UIR_DTYPE_CLASS_BOOL)
        pattern = value != 0;
    else if (row.dtype_class != UIR_DTYPE_CLASS_FLOAT)
        pattern = (uint64_t)double_to_integer(value, row.dtype_class == UIR_DTYPE_CLASS_UNSIGNED && row.bits == 64);
    else if (row.bits == 32)
        pattern = float_to_bits((float)value);
    else if (row.bits == 64)
        pattern = double_to_bits(value);
    else
        pattern = encode_double(format, value, rounding);
    store_bits(row.bits, data, index, pattern);
}

static inline void store_integer(dtype_row row, const float_format *format, void *data, uint64_t index, int64_t value,
                                 bool is_unsigned, uir_rounding rounding) {
    uint64_t pattern = (uint64_t)value;
    if (row.dtype_class == UIR_DTYPE_CLASS_BOOL)
        pattern = value != 0;
    else if (row.dtype_class == UIR_DTYPE_CLASS_FLOAT && row.bits == 32)
        pattern = float_to_bits(is_unsigned ? (float)(uint64_t)value : (float)value);
    else if (row.dtype_class == UIR_DTYPE_CLASS_FLOAT && row.bits == 64)
        pattern = double_to_bits(is_unsigned ? (double)(uint64_t)value : (double)value);
    else if (row.dtype_class == UIR_DTYPE_CLASS_FLOAT)
        pattern = encode_integer(format, value, is_unsigned, rounding);
    store_bits(row.bits, data, index, pattern);
}

double uir_dtype_load_double(uir_dtype dtype, const void *data, uint64_t index) {
    return load_double(rows[dtype], &formats[dtype], data, index);
}

int64_t uir_dtype_load_integer(uir_dtype dtype, const void *data, uint64_t index) {
    if (rows[dtype].dtype_class == UIR_DTYPE_CLASS_FLOAT)
        return double_to_integer(load_double(rows[dtype], &formats[dtype], data, index), false);
    return load_integer(rows[dtype], data, index);
}

void uir_dtype_store_double(uir_dtype dtype, void *data, uint64_t index, double value, uir_rounding rounding) {
    store_double(rows[dtype], &formats[dtype], data, index, value, rounding);
}

void uir_dtype_store_integer(uir_dtype dtype, void *data, uint64_t index, int64_t value, bool is_unsigned,
                             uir_rounding rounding) {
    store_integer(rows[dtype], &formats[dtype], data, index, value, is_unsigned, rounding);
}

/* ---- arrays ---------------------------------------------------------------------------------------------------- */

static bool is_convertible(uir_dtype_class dtype_class) {
    return dtype_class == UIR_DTYPE_CLASS_BOOL || dtype_class == UIR_DTYPE_CLASS_SIGNED ||
           dtype_class == UIR_DTYPE_CLASS_UNSIGNED || dtype_class == UIR_DTYPE_CLASS_FLOAT;
}

uir_status uir_dtype_convert(uir_dtype from, const void *source, uir_dtype to, void *target, uint64_t count,
                             uir_rounding rounding) {
    uir_dtype_class from_class = uir_dtype_get_class(from), to_class = uir_dtype_get_class(to);
    size_t size;
    if (!is_convertible(from_class) || !is_convertible(to_class)) return UIR_STATUS_INVALID_ARGUMENT;
    if (!uir_dtype_storage_size(from, count, &size) || !uir_dtype_storage_size(to, count, &size))
        return UIR_STATUS_INVALID_ARGUMENT;
    if (count == 0) return UIR_STATUS_OK;
    dtype_row from_row = rows[from], to_row = rows[to];
    const float_format *from_format = &formats[from], *to_format = &formats[to];

    /* Padding bits of the last byte are zero whatever the source's are. */
    if (to_row.bits < 8) ((unsigned char *)target)[size - 1] = 0;
    if (from == to && from_class != UIR_DTYPE_CLASS_BOOL && to_row.bits >= 8) {
        memcpy(target, source, size);
    } else if (from_class != UIR_DTYPE_CLASS_FLOAT) {
        bool is_unsigned = from_class != UIR_DTYPE_CLASS_SIGNED;
        for (uint64_t i = 0; i < count; i++)
            store_integer(to_row, to_format, target, i, load_integer(from_row, source, i), is_unsigned, rounding);
    } else if (from == UIR_DTYPE_F16 && to == UIR_DTYPE_F32) {
        for (uint64_t i = 0; i < count; i++)
            store_bits(32, target, i, float_to_bits(uir_f16_to_f32((uint16_t)load_bits(16, source, i))));
    } else if (from == UIR_DTYPE_F32 && to == UIR_DTYPE_F16) {
        for (uint64_t i = 0; i < count; i++)
            store_bits(16, target, i, uir_f32_to_f16(float_from_bits((uint32_t)load_bits(32, source, i))));
    } else if (from == UIR_DTYPE_BF16 && to == UIR_DTYPE_F32) {
        for (uint64_t i = 0; i < count; i++)
            store_bits(32, target, i, float_to_bits(uir_bf16_to_f32((uint16_t)load_bits(16, source, i))));
    } else if (from == UIR_DTYPE_F32 && to == UIR_DTYPE_BF16) {
        for (uint64_t i = 0; i < count; i++)
            store_bits(16, target, i, uir_f32_to_bf16(float_from_bits((uint32_t)load_bits(32, source, i))));
    } else {
        for (uint64_t i = 0; i < count; i++)
            store_double(to_row, to_format, target, i, load_double(from_row, from_format, source, i), rounding);
    }
    return UIR_STATUS_OK;
}

/* ---- single values --------------------------------------------------------------------------------------------- */

float uir_f16_to_f32(uint16_t bits) {
    uint32_t magnitude = bits & 0x7fffu, sign = (uint32_t)(bits & 0x8000u) << 16;
    const uint32_t rebias = (127u - 15u) << 23;
    uint32_t normal = (magnitude << 13) + rebias;
    uint32_t special = (normal + rebias) | (magnitude > 0x7c00u ? 0x00400000u : 0); /* NaNs become quiet */
    uint32_t subnormal = float_to_bits((float)magnitude * 0x1p-24f);
    uint32_t result = magnitude >= 0x7c00u ? special : magnitude >= 0x0400u ? normal : subnormal;
    return float_from_bits(result | sign);
}

uint16_t uir_f32_to_f16(float value) {
    uint32_t bits = float_to_bits(value), magnitude = bits & 0x7fffffffu, sign = (bits >> 16) & 0x8000u;
    /* Below the least normal f16, 2^-14: adding 1/2 leaves the f16 subnormal in the low bits, rounded by the addition.
     */
    uint32_t small = magnitude < 0x38800000u ? magnitude : 0;
    uint32_t subnormal = float_to_bits(float_from_bits(small) + 0.5f) - 0x3f000000u;
    uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1)) >> 13;
    normal -= (127u - 15u) << 10;
    uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
    uint32_t result = magnitude > 0x7f800000u    ? nan
                      : magnitude >= 0x47800000u ? 0x7c00u
                      : magnitude >= 0x38800000u ? normal
                                                 : subnormal;
    return (uint16_t)(result | sign);
}

float uir_bf16_to_f32(uint16_t bits) {
    uint32_t wide = (uint32_t)bits << 16;
    return float_from_bits((bits & 0x7fffu) > 0x7f80u ? wide | 0x00400000u : wide);
}

uint16_t uir_f32_to_bf16(float value) {
    uint32_t bits = float_to_bits(value);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded);
}
