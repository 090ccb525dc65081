/* Scalar versions of the functions of kernel_math.inc and kernel_math_f64.inc.
 *
 * In: a float, or a double. Out: the same bits as the vector code of every machine. Functions are named uir_math_<name>
 * after the rows of kernel_math.def, as uir_math_exp; functions of a double end in _f64. The functions sin_of, cos_of
 * and tan_of have a second argument, `large`: 0 if the first argument is known to be below 2^17, else 1. */
#ifndef UIR_IR_KERNEL_MATH_H
#define UIR_IR_KERNEL_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline int32_t uir_math_bits(float value) {
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float uir_math_value(int32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float uir_math_clamp(float value, float low, float high) {
    return value < low ? low : value > high ? high : value;
}

static inline int64_t uir_math_bits_f64(double value) {
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double uir_math_value_f64(int64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline double uir_math_clamp_f64(double value, double low, double high) {
    return value < low ? low : value > high ? high : value;
}

#define UIR_MATH_REDUCE_FUNCTION static inline
#include "ir/kernel/interpret/kernel_math_reduce.inc"
#undef UIR_MATH_REDUCE_FUNCTION

#define UIR_MATH_FUNCTION        static inline
#define UIR_MATH_SELECT(m, a, b) ((m) ? (a) : (b))

#define UIR_MATH(name)            uir_math_##name
#define UIR_MATH_F                float
#define UIR_MATH_I                int32_t
#define UIR_MATH_SET(c)           ((float)(c))
#define UIR_MATH_SETI(c)          ((int32_t)(c))
#define UIR_MATH_FMA(a, b, c)     fmaf(a, b, c)
#define UIR_MATH_SHIFT(i, k)      ((int32_t)((uint32_t)(i) << (k)))
#define UIR_MATH_BITS(f)          uir_math_bits(f)
#define UIR_MATH_VALUE(i)         uir_math_value(i)
#define UIR_MATH_LESS(a, b)       (-(int32_t)((a) < (b)))
#define UIR_MATH_CLAMP(x, lo, hi) uir_math_clamp(x, lo, hi)
#define UIR_MATH_REDUCE(a, limit, r, q)                                                                                \
    if (!((a) < (limit))) uir_math_reduce_f32(a, &(r), &(q))
#include "ir/kernel/interpret/kernel_math.inc"
#undef UIR_MATH
#undef UIR_MATH_F
#undef UIR_MATH_I
#undef UIR_MATH_SET
#undef UIR_MATH_SETI
#undef UIR_MATH_FMA
#undef UIR_MATH_SHIFT
#undef UIR_MATH_BITS
#undef UIR_MATH_VALUE
#undef UIR_MATH_LESS
#undef UIR_MATH_CLAMP
#undef UIR_MATH_REDUCE
#undef UIR_MATH_SCALE
#undef UIR_MATH_FLOOR

#define UIR_MATH(name)            uir_math_##name##_f64
#define UIR_MATH_F                double
#define UIR_MATH_I                int64_t
#define UIR_MATH_SET(c)           ((double)(c))
#define UIR_MATH_SETI(c)          ((int64_t)(c))
#define UIR_MATH_FMA(a, b, c)     fma(a, b, c)
#define UIR_MATH_SHIFT(i, k)      ((int64_t)((uint64_t)(i) << (k)))
#define UIR_MATH_BITS(f)          uir_math_bits_f64(f)
#define UIR_MATH_VALUE(i)         uir_math_value_f64(i)
#define UIR_MATH_LESS(a, b)       (-(int64_t)((a) < (b)))
#define UIR_MATH_CLAMP(x, lo, hi) uir_math_clamp_f64(x, lo, hi)
#define UIR_MATH_REDUCE(a, limit, r, q)                                                                                \
    if (!((a) < (limit))) uir_math_reduce_f64(a, &(r), &(q))
#include "ir/kernel/interpret/kernel_math_f64.inc"
#undef UIR_MATH
#undef UIR_MATH_FUNCTION
#undef UIR_MATH_F
#undef UIR_MATH_I
#undef UIR_MATH_SET
#undef UIR_MATH_SETI
#undef UIR_MATH_FMA
#undef UIR_MATH_SHIFT
#undef UIR_MATH_BITS
#undef UIR_MATH_VALUE
#undef UIR_MATH_LESS
#undef UIR_MATH_SELECT
#undef UIR_MATH_CLAMP
#undef UIR_MATH_REDUCE

#endif
