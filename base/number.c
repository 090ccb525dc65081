#include "base/number.h"

#include <string.h>

/* ---- big integers: little-endian words, no leading zero words ---------------------------------------------------- */

enum {
    BIG_WORDS = 160,    /* 5120 bits; the largest need is the divisor 10^1145, shifted by 66 bits */
    DIGITS_MAX = 800,   /* an exact tie between doubles has at most 767 digits; what follows only breaks ties */
    DECIMAL_MAX = 310,  /* 10^310 is infinity */
    DECIMAL_MIN = -345, /* 10^-345 is zero */
    EXPONENT_CLAMP = 100000000
};

typedef struct big {
    uint32_t count;
    uint32_t words[BIG_WORDS];
} big;

static void big_set(big *a, uint64_t value) {
    a->count = 0;
    for (; value; value >>= 32) a->words[a->count++] = (uint32_t)value;
}

static void big_multiply_add(big *a, uint32_t factor, uint32_t addend) {
    uint64_t carry = addend;
    for (uint32_t i = 0; i < a->count; i++) {
        carry += (uint64_t)a->words[i] * factor;
        a->words[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry && a->count < BIG_WORDS) a->words[a->count++] = (uint32_t)carry;
}

static void big_multiply_power_of_ten(big *a, uint32_t power) {
    for (; power >= 9; power -= 9) big_multiply_add(a, 1000000000u, 0);
    for (; power; power--) big_multiply_add(a, 10, 0);
}

static void big_shift_left(big *a, uint32_t bits) {
    uint32_t words = bits / 32, rest = bits % 32;
    if (a->count == 0 || bits == 0) return;
    if (a->count + words + 1 > BIG_WORDS) return; /* cannot be reached within the limits above */
    uint32_t top = rest ? a->words[a->count - 1] >> (32 - rest) : 0;
    for (uint32_t i = a->count; i-- > 0;) {
        uint32_t low = rest && i ? a->words[i - 1] >> (32 - rest) : 0;
        a->words[i + words] = (rest ? a->words[i] << rest : a->words[i]) | low;
    }
    memset(a->words, 0, words * sizeof *a->words);
    a->count += words;
    if (top) a->words[a->count++] = top;
}

static uint32_t big_bits(const big *a) {
    return a->count ? a->count * 32 - (uint32_t)__builtin_clz(a->words[a->count - 1]) : 0;
}

static int big_compare(const big *a, const big *b) {
    if (a->count != b->count) return a->count < b->count ? -1 : 1;
    for (uint32_t i = a->count; i-- > 0;)
        if (a->words[i] != b->words[i]) return a->words[i] < b->words[i] ? -1 : 1;
    return 0;
}

/* a -= b, where a >= b. */
static void big_subtract(big *a, const big *b) {
    int64_t borrow = 0;
    for (uint32_t i = 0; i < a->count; i++) {
        borrow += (int64_t)a->words[i] - (i < b->count ? b->words[i] : 0);
        a->words[i] = (uint32_t)borrow;
        borrow = borrow < 0 ? -1 : 0;
    }
    while (a->count && a->words[a->count - 1] == 0) a->count--;
}

static void big_add(big *a, const big *b) {
    uint64_t carry = 0;
    uint32_t count = a->count > b->count ? a->count : b->count;
    for (uint32_t i = 0; i < count; i++) {
        carry += (uint64_t)(i < a->count ? a->words[i] : 0) + (i < b->count ? b->words[i] : 0);
        a->words[i] = (uint32_t)carry;
        carry >>= 32;
    }
    a->count = count;
    if (carry) a->words[a->count++] = (uint32_t)carry;
}

/* Compares a + b with c. */
static int big_compare_sum(const big *a, const big *b, const big *c) {
    big sum;
    sum.count = a->count;
    memcpy(sum.words, a->words, a->count * sizeof *a->words);
    big_add(&sum, b);
    return big_compare(&sum, c);
}

/* ---- printing --------------------------------------------------------------------------------------------------- */

static const double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                       1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
enum { EXACT_POWER = 22 };               /* the largest power of ten that is a double */
#define EXACT_INTEGER 9007199254740992.0 /* 2^53 */

typedef struct decimal {
    char digits[20];
    uint32_t count;
    int point; /* value = 0.digits * 10^point */
} decimal;

/* Decimals of at most 15 digits: n / 10^places with both exact is the double nearest to that decimal, so if it is the
 * value, the decimal reads back. The least number of places is the shortest text, but for floats above 2^24, whose
 * neighbours are more than 1 apart. Most numbers people write are here. */
static bool short_decimal(double value, bool is_float, decimal *out) {
    if (is_float && value > 16777216.0) return false;
    for (int places = 0; places <= EXACT_POWER; places++) {
        double scaled = value * powers_of_ten[places];
        if (scaled >= 1e15) return false;
        uint64_t n = (uint64_t)(scaled + 0.5);
        double back = (double)n / powers_of_ten[places];
        if (n == 0 || (is_float ? (double)(float)back != value : back != value)) continue;
        char reversed[20];
        uint32_t count = 0;
        for (; n; n /= 10) reversed[count++] = (char)('0' + n % 10);
        for (uint32_t i = 0; i < count; i++) out->digits[i] = reversed[count - 1 - i];
        out->point = (int)count - places;
        out->count = count;
        while (out->count > 1 && out->digits[out->count - 1] == '0') out->count--;
        return true;
    }
    return false;
}

/* Free-format printing after Steele and White, "How to print floating-point numbers accurately" (1990), with the
 * scaling of Burger and Dybvig (1996). The value is mantissa * 2^exponent; its neighbours lie half an ulp away on both
 * sides, a quarter below when the mantissa is the least of its binade (`narrow_below`). */
static void shortest_decimal(uint64_t mantissa, int exponent, bool narrow_below, decimal *out) {
    big r, s, above, below;
    bool inclusive = (mantissa & 1) == 0; /* a tie reads back to the even mantissa */
    uint32_t extra = narrow_below ? 2 : 1;
    big_set(&r, mantissa);
    big_set(&s, 1);
    big_set(&above, narrow_below ? 2 : 1);
    big_set(&below, 1);
    big_shift_left(&r, extra);
    big_shift_left(&s, extra);
    if (exponent >= 0) {
        big_shift_left(&r, (uint32_t)exponent);
        big_shift_left(&above, (uint32_t)exponent);
        big_shift_left(&below, (uint32_t)exponent);
    } else {
        big_shift_left(&s, (uint32_t)-exponent);
    }
    /* An estimate of ceil(log10(value)) that is right or one too small: log10(2) from below. */
    int bits = 64 - __builtin_clzll(mantissa) + exponent - 1;
    int point = (int)(bits * 0.30102999566398114 - (bits < 0 ? 1 : 0));
    if (point >= 0) {
        big_multiply_power_of_ten(&s, (uint32_t)point);
    } else {
        big_multiply_power_of_ten(&r, (uint32_t)-point);
        big_multiply_power_of_ten(&above, (uint32_t)-point);
        big_multiply_power_of_ten(&below, (uint32_t)-point);
    }
    for (;;) {
        int order = big_compare_sum(&r, &above, &s);
        if (inclusive ? order < 0 : order <= 0) break;
        big_multiply_add(&s, 10, 0);
        point++;
    }
    out->count = 0;
    out->point = point;
    for (;;) {
        big_multiply_add(&r, 10, 0);
        big_multiply_add(&above, 10, 0);
        big_multiply_add(&below, 10, 0);
        uint32_t digit = 0;
        for (; big_compare(&r, &s) >= 0; digit++) big_subtract(&r, &s);
        int low_order = big_compare(&r, &below), high_order = big_compare_sum(&r, &above, &s);
        bool low = inclusive ? low_order <= 0 : low_order < 0;
        bool high = inclusive ? high_order >= 0 : high_order > 0;
        if (low && high) digit += big_compare_sum(&r, &r, &s) >= 0;
        if (high && !low) digit++;
        out->digits[out->count++] = (char)('0' + digit);
        if (low || high || out->count == sizeof out->digits) return;
    }
}

static size_t write_decimal(const decimal *d, bool negative, char *text) {
    size_t length = 0;
    int exponent = d->point - 1, count = (int)d->count;
    if (negative) text[length++] = '-';
    if (exponent >= -5 && exponent < 17) {
        if (d->point <= 0) {
            text[length++] = '0';
            text[length++] = '.';
            for (int i = d->point; i < 0; i++) text[length++] = '0';
        }
        for (int i = 0; i < count; i++) {
            if (i == d->point && i > 0) text[length++] = '.';
            text[length++] = d->digits[i];
        }
        for (int i = count; i < d->point; i++) text[length++] = '0';
    } else {
        text[length++] = d->digits[0];
        if (count > 1) text[length++] = '.';
        for (int i = 1; i < count; i++) text[length++] = d->digits[i];
        text[length++] = 'e';
        if (exponent < 0) text[length++] = '-';
        unsigned magnitude = (unsigned)(exponent < 0 ? -exponent : exponent);
        if (magnitude >= 100) text[length++] = (char)('0' + magnitude / 100);
        if (magnitude >= 10) text[length++] = (char)('0' + magnitude / 10 % 10);
        text[length++] = (char)('0' + magnitude % 10);
    }
    text[length] = 0;
    return length;
}

static size_t write_word(const char *word, char *text) {
    size_t length = strlen(word);
    memcpy(text, word, length + 1);
    return length;
}

static bool write_special(double value, char *text, size_t *out_length) {
    bool negative = __builtin_signbit(value) != 0;
    if (value != value)
        *out_length = write_word("nan", text);
    else if (value == 0)
        *out_length = write_word(negative ? "-0" : "0", text);
    else if (value - value != 0)
        *out_length = write_word(negative ? "-inf" : "inf", text);
    else
        return false;
    return true;
}

size_t uir_double_to_text(double value, char text[UIR_NUMBER_TEXT_SIZE]) {
    size_t length;
    decimal d;
    if (write_special(value, text, &length)) return length;
    bool negative = value < 0;
    double magnitude = negative ? -value : value;
    if (!short_decimal(magnitude, false, &d)) {
        uint64_t bits;
        memcpy(&bits, &magnitude, sizeof bits);
        uint64_t mantissa = bits & (((uint64_t)1 << 52) - 1);
        int exponent = (int)(bits >> 52);
        bool narrow_below = mantissa == 0 && exponent > 1;
        if (exponent) mantissa |= (uint64_t)1 << 52;
        shortest_decimal(mantissa, (exponent ? exponent : 1) - 1075, narrow_below, &d);
    }
    return write_decimal(&d, negative, text);
}

size_t uir_float_to_text(float value, char text[UIR_NUMBER_TEXT_SIZE]) {
    size_t length;
    decimal d;
    if (write_special((double)value, text, &length)) return length;
    bool negative = value < 0;
    float magnitude = negative ? -value : value;
    if (!short_decimal((double)magnitude, true, &d)) {
        uint32_t bits;
        memcpy(&bits, &magnitude, sizeof bits);
        uint32_t mantissa = bits & ((1u << 23) - 1);
        int exponent = (int)(bits >> 23);
        bool narrow_below = mantissa == 0 && exponent > 1;
        if (exponent) mantissa |= 1u << 23;
        shortest_decimal(mantissa, (exponent ? exponent : 1) - 150, narrow_below, &d);
    }
    length = write_decimal(&d, negative, text);
    /* Reading rounds twice, to double and then to float; where that misses, more digits are needed. */
    double back;
    if (uir_double_from_text(text, length, &back) && (float)back == value) return length;
    return uir_double_to_text((double)value, text);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* mantissa * 2^exponent, `sticky` when something non-zero lies below the mantissa, to the nearest double. */
static double round_to_double(uint64_t mantissa, int exponent, bool sticky) {
    if (mantissa == 0) return 0;
    int shift = __builtin_clzll(mantissa);
    mantissa = mantissa << shift;
    exponent -= shift;
    int value_exponent = exponent + 63, kept = 53;
    if (value_exponent < -1022) kept -= -1022 - value_exponent;
    if (kept < 0) return 0;
    uint64_t quotient = kept ? mantissa >> (64 - kept) : 0, rest = mantissa << kept, half = (uint64_t)1 << 63;
    if (rest > half || (rest == half && (sticky || (quotient & 1)))) quotient++;
    uint64_t bits = quotient;
    if (value_exponent >= -1022) {
        if (value_exponent > 1023) return (double)__builtin_inf();
        bits += (uint64_t)(value_exponent + 1022) << 52;
    }
    double value; /* a carry at the top gives infinity's pattern, which is right */
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* digits * 10^exponent, rounded once. */
static double read_decimal(const char *digits, uint32_t count, int exponent, bool sticky) {
    big numerator, denominator;
    big_set(&numerator, 0);
    for (uint32_t i = 0; i < count; i++) big_multiply_add(&numerator, 10, (uint32_t)(digits[i] - '0'));
    big_set(&denominator, 1);
    if (exponent >= 0)
        big_multiply_power_of_ten(&numerator, (uint32_t)exponent);
    else
        big_multiply_power_of_ten(&denominator, (uint32_t)-exponent);

    /* Scaled so that the quotient has 64 or 65 bits, then divided bit by bit. */
    int scale = (int)big_bits(&denominator) + 64 - (int)big_bits(&numerator);
    if (scale >= 0)
        big_shift_left(&numerator, (uint32_t)scale);
    else
        big_shift_left(&denominator, (uint32_t)-scale);
    big_shift_left(&denominator, 64);
    uint64_t quotient = 0;
    bool carry = false;
    for (int bit = 64; bit >= 0; bit--) {
        if (quotient >> 63) carry = true;
        quotient <<= 1;
        if (big_compare(&numerator, &denominator) >= 0) {
            big_subtract(&numerator, &denominator);
            quotient |= 1;
        }
        big_shift_left(&numerator, 1);
    }
    sticky = sticky || numerator.count != 0;
    if (carry) {
        sticky = sticky || (quotient & 1);
        quotient = quotient >> 1 | (uint64_t)1 << 63;
        scale--;
    }
    return round_to_double(quotient, -scale, sticky);
}

static int digit_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return 99;
}

static bool is_word(const char *text, size_t length, const char *word) {
    if (length != strlen(word)) return false;
    for (size_t i = 0; i < length; i++)
        if ((text[i] | 0x20) != word[i]) return false;
    return true;
}

/* [+-]digits at `at`, clamped; false when there is no digit or something follows. */
static bool read_exponent(const char *at, const char *end, int *out_exponent) {
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) at++;
    if (at == end) return false;
    int exponent = 0;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9') return false;
        if (exponent < EXPONENT_CLAMP) exponent = exponent * 10 + (*at - '0');
    }
    *out_exponent = negative ? -exponent : exponent;
    return true;
}

static bool read_hexadecimal(const char *at, const char *end, double *out_value) {
    uint64_t mantissa = 0;
    int64_t exponent = 0;
    bool sticky = false, point = false, any = false;
    for (; at < end; at++) {
        if (*at == '.' && !point) {
            point = true;
            continue;
        }
        int digit = digit_value(*at);
        if (digit > 15) break;
        any = true;
        if (mantissa >> 60) {
            sticky = sticky || digit;
            exponent += point ? 0 : 4;
        } else {
            mantissa = mantissa << 4 | (uint64_t)digit;
            exponent -= point ? 4 : 0;
        }
    }
    int written = 0;
    if (!any || (at < end && ((*at | 0x20) != 'p' || !read_exponent(at + 1, end, &written)))) return false;
    exponent += written;
    if (exponent > EXPONENT_CLAMP) exponent = EXPONENT_CLAMP;
    if (exponent < -EXPONENT_CLAMP) exponent = -EXPONENT_CLAMP;
    *out_value = round_to_double(mantissa, (int)exponent, sticky);
    return true;
}

static bool read_unsigned(const char *at, const char *end, double *out_value) {
    if (is_word(at, (size_t)(end - at), "inf")) {
        *out_value = (double)__builtin_inf();
        return true;
    }
    if (is_word(at, (size_t)(end - at), "nan")) {
        *out_value = (double)__builtin_nan("");
        return true;
    }
    if (end - at > 2 && at[0] == '0' && (at[1] | 0x20) == 'x') return read_hexadecimal(at + 2, end, out_value);

    char digits[DIGITS_MAX];
    uint32_t count = 0;
    int64_t exponent = 0;
    bool sticky = false, point = false, any = false;
    for (; at < end; at++) {
        if (*at == '.' && !point) {
            point = true;
            continue;
        }
        if (*at < '0' || *at > '9') break;
        any = true;
        if (count == 0 && *at == '0') { /* leading zeros */
            exponent -= point;
        } else if (count == DIGITS_MAX) {
            sticky = sticky || *at != '0';
            exponent += !point;
        } else {
            digits[count++] = *at;
            exponent -= point;
        }
    }
    int written = 0;
    if (!any || (at < end && ((*at | 0x20) != 'e' || !read_exponent(at + 1, end, &written)))) return false;
    exponent += written;
    while (count && digits[count - 1] == '0') {
        count--;
        exponent++;
    }
    if (count == 0 || exponent + (int64_t)count < DECIMAL_MIN) {
        *out_value = 0;
        return true;
    }
    if (exponent + (int64_t)count > DECIMAL_MAX) {
        *out_value = (double)__builtin_inf();
        return true;
    }
    if (count <= 15 && exponent >= -EXACT_POWER && exponent <= EXACT_POWER) {
        uint64_t n = 0;
        for (uint32_t i = 0; i < count; i++) n = n * 10 + (uint64_t)(digits[i] - '0');
        /* Both operands are exact, so the one operation rounds once. */
        *out_value = exponent < 0 ? (double)n / powers_of_ten[-exponent] : (double)n * powers_of_ten[exponent];
        return true;
    }
    *out_value = read_decimal(digits, count, (int)exponent, sticky);
    return true;
}

bool uir_double_from_text(const char *text, size_t length, double *out_value) {
    const char *at = text, *end = text + length;
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) at++;
    if (at == end || !read_unsigned(at, end, out_value)) return false;
    if (negative) *out_value = -*out_value;
    return true;
}

bool uir_integer_from_text(const char *text, size_t length, int64_t *out_value) {
    const char *at = text, *end = text + length;
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) at++;
    if (at == end) return false;
    int64_t value = 0;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9') return false;
        int digit = negative ? -(*at - '0') : *at - '0';
        if (__builtin_mul_overflow(value, (int64_t)10, &value) || __builtin_add_overflow(value, (int64_t)digit, &value))
            return false;
    }
    *out_value = value;
    return true;
}
