/* The prelude's types, literals of them, and elementwise functions. */
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

/* What a cast is called after: bytes that are floats by their format. */
static const char *cast_type(uir_dtype dtype) {
    return uir_dtype_is_float(dtype) ? uir_dtype_name(dtype) : uir_c_type(dtype);
}

static const char *compute_cast(emitter *e, const uir_iinstruction *in, const char *x) {
    const char *from = uir_c_type(in->dtype), *to = uir_c_type(in->dtype_b);
    if (in->code == UIR_IOP_BITS)
        return e->dialect->casts_bits ? uir_c_format(&e->c, "(v_%s)(%s)", to, x)
                                      : uir_c_format(&e->c, "v_bits_%s_%s(%s)", from, to, x);
    bool small = uir_dtype_is_float(in->dtype_b) && uir_dtype_bits(in->dtype_b) == 8,
         clamps = small || (uir_dtype_is_integer(in->dtype_b) && in->dtype != UIR_DTYPE_BOOL);
    return uir_c_format(&e->c, "v_%s_%s_%s(%s)", in->saturate && clamps ? "saturate" : "cast", cast_type(in->dtype),
                        cast_type(in->dtype_b), x);
}

const char *uir_emit_compute(emitter *e, const uir_iinstruction *in, const char *const x[3], const char *row,
                             const char *column) {
    const uir_iop_row *op = uir_iop_get_row(in->code);
    const char *type = uir_c_type(in->dtype), *name = uir_c_operation(in->code);
    switch (op->family) {
    case UIR_IOP_FAMILY_MOVE:
    case UIR_IOP_FAMILY_BROADCAST:
        return x[0];
    case UIR_IOP_FAMILY_FILL:
        return uir_c_format(&e->c, "v_set_%s(%s)", type, uir_c_literal(e, in->dtype, in->immediate));
    case UIR_IOP_FAMILY_IOTA: {
        bool of_rows = in->axis == UIR_IAXIS_COL;
        return uir_c_format(&e->c, "v_iota_%s(%s, %d)", type,
                            uir_c_sum(&e->c, uir_c_dim(&e->c, in->start), of_rows ? row : column), of_rows ? 0 : 1);
    }
    case UIR_IOP_FAMILY_CAST:
        return compute_cast(e, in, x[0]);
    default:
        break;
    }
    if (op->operands == 1) return uir_c_format(&e->c, "v_%s_%s(%s)", name, type, x[0]);
    if (op->operands == 2) return uir_c_format(&e->c, "v_%s_%s(%s, %s)", name, type, x[0], x[1]);
    return uir_c_format(&e->c, "v_%s_%s(%s, %s, %s)", name, type, x[0], x[1], x[2]);
}
