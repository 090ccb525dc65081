/* The prelude's types, and literals of them. */
#include "backends/source/vector/emit.h"

#include "base/number.h"

#include <math.h>
#include <string.h>

const char *uir_c_type(uir_dtype dtype) {
    /* Floats of 8 bits are bytes that only casts look into; `bool` is a keyword of newer C. */
    if (uir_dtype_is_float(dtype) && uir_dtype_bits(dtype) == 8) return "u8";
    return dtype == UIR_DTYPE_BOOL ? "boolean" : uir_dtype_name(dtype);
}

const char *uir_c_literal(emitter *e, uir_dtype dtype, double value) {
    if (uir_dtype_is_float(dtype) && dtype != UIR_DTYPE_F32 && dtype != UIR_DTYPE_F64) {
        uint64_t bits = 0;
        uir_dtype_store_double(dtype, &bits, 0, (double)(float)value, UIR_ROUND_NEAREST_EVEN);
        return uir_c_format(&e->c, "(%s)%u", uir_c_type(dtype), (unsigned)bits);
    }
    if (uir_dtype_is_float(dtype)) {
        if (isnan(value)) return uir_c_format(&e->c, "(%s)UIR_NAN", uir_c_type(dtype));
        if (isinf(value) || (dtype == UIR_DTYPE_F32 && isinf((float)value)))
            return uir_c_format(&e->c, "(%s)%sUIR_INFINITY", uir_c_type(dtype), value < 0 ? "-" : "");
        char text[UIR_NUMBER_TEXT_SIZE];
        bool single = dtype == UIR_DTYPE_F32;
        (void)(single ? uir_float_to_text((float)value, text) : uir_double_to_text(value, text));
        return uir_c_format(&e->c, "%s%s%s", text, strpbrk(text, ".e") ? "" : ".0", single ? "f" : "");
    }
    if (dtype == UIR_DTYPE_BOOL) return value != 0 ? "1" : "0";
    int64_t integer = value >= 9223372036854775807.0    ? INT64_MAX
                      : value <= -9223372036854775808.0 ? INT64_MIN
                                                        : (int64_t)value;
    return uir_c_format(&e->c, "(%s)%s", uir_c_type(dtype), uir_c_integer(&e->c, integer));
}
