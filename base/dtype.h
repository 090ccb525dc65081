/* Element types: sizes, packing, names, exact conversion.
 *
 * In: raw little-endian element storage. Out: values as double, int64 or uint64, and back with exact rounding. All
 * conversions between dtypes in the project use these functions. */
#ifndef UIR_BASE_DTYPE_H
#define UIR_BASE_DTYPE_H

#include "base/status.h"

/* uir_dtype itself (UIR_DTYPE_NONE = 0, then ONNX's numbers) is in uir.h; dtype.def holds its properties. */
typedef enum uir_dtype_class {
    UIR_DTYPE_CLASS_NONE,
    UIR_DTYPE_CLASS_BOOL,
    UIR_DTYPE_CLASS_SIGNED,
    UIR_DTYPE_CLASS_UNSIGNED,
    UIR_DTYPE_CLASS_FLOAT,
    UIR_DTYPE_CLASS_COMPLEX,
    UIR_DTYPE_CLASS_STRING
} uir_dtype_class;

bool uir_dtype_is_valid(int dtype);
const char *uir_dtype_name(uir_dtype dtype); /* "f32"; "?" when invalid */
bool uir_dtype_from_name(const char *name, size_t length, uir_dtype *out_dtype);
uint32_t uir_dtype_bits(uir_dtype dtype);
uir_dtype_class uir_dtype_get_class(uir_dtype dtype);
static inline bool uir_dtype_is_float(uir_dtype dtype) {
    return uir_dtype_get_class(dtype) == UIR_DTYPE_CLASS_FLOAT;
}
static inline bool uir_dtype_is_integer(uir_dtype dtype) {
    uir_dtype_class c = uir_dtype_get_class(dtype);
    return c == UIR_DTYPE_CLASS_SIGNED || c == UIR_DTYPE_CLASS_UNSIGNED;
}
/* Least and greatest value of an integer dtype. */
int64_t uir_dtype_integer_min(uir_dtype dtype);
uint64_t uir_dtype_integer_max(uir_dtype dtype);

/* Bytes of `count` elements, packing included; false on overflow. */
bool uir_dtype_storage_size(uir_dtype dtype, uint64_t count, size_t *out_size);

/* How a conversion treats values that the target cannot hold: a set of bits. */
typedef enum uir_rounding {
    UIR_ROUND_NEAREST_EVEN = 0, /* overflow results in infinity; NaN if the format lacks infinity; the largest value if
                                   it lacks both. E8M0: away from zero (ONNX Cast's round_mode "up"), zero is NaN */
    UIR_ROUND_SATURATE = 1,     /* ONNX Cast's saturate=1: 8-bit floats take their largest finite value instead, from
                                   infinities too; E8M0 takes its least for zero */
    UIR_ROUND_E8M0_DOWN = 2,    /* ONNX Cast's round_mode "down": E8M0 toward zero */
    UIR_ROUND_E8M0_NEAREST = 4  /* ONNX Cast's round_mode "nearest": E8M0 to nearest, ties up */
} uir_rounding;

/* Element access by index (packed types included). Floats of any width as double (exact); bool as 0 or 1. Integers
 * convert exactly to double only up to 2^53, so that they have functions of their own. Strings and complex are not
 * supported. */
double uir_dtype_load_double(uir_dtype dtype, const void *data, uint64_t index);
int64_t uir_dtype_load_integer(uir_dtype dtype, const void *data, uint64_t index); /* u64 as the same bits */
/* Storing rounds once, directly from the double, to nearest even. A float becomes an integer by rounding toward zero.
 * NaN becomes 0. A value out of range is saturated to int64 (u64 from a positive value: to uint64) and then wrapped
 * modulo 2^bits. E8M0 of a negative value is NaN; F4E2M1 of NaN, which it lacks, is -0, as in ONNX's reference. */
void uir_dtype_store_double(uir_dtype dtype, void *data, uint64_t index, double value, uir_rounding rounding);
/* Integers wrap modulo 2^bits; bool is value != 0; a float is rounded once from the integer. `is_unsigned`: value is
 * u64 bits. */
void uir_dtype_store_integer(uir_dtype dtype, void *data, uint64_t index, int64_t value, bool is_unsigned,
                             uir_rounding rounding);

/* Converts `count` elements; the arrays do not overlap. Float, integer and bool classes only. */
uir_status uir_dtype_convert(uir_dtype from, const void *source, uir_dtype to, void *target, uint64_t count,
                             uir_rounding rounding);

/* Conversions of single values, by selects instead of branches. */
float uir_f16_to_f32(uint16_t bits);
uint16_t uir_f32_to_f16(float value);
float uir_bf16_to_f32(uint16_t bits);
uint16_t uir_f32_to_bf16(float value);

#endif
