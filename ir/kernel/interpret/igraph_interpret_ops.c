/* One instruction of the iGraph's interpreter, element by element. The scalar functions here and in kernel_math*.inc
 * are the definition of every instruction's arithmetic. */
#include "ir/kernel/interpret/igraph_machine.h"
#include "ir/kernel/interpret/kernel_math.h"

#include <math.h>
#include <string.h>

typedef struct scalar_type {
    uir_dtype dtype;
    bool is_float, is_unsigned, is_double;
    uint32_t bits;
} scalar_type;

static scalar_type type_of(uir_dtype dtype) {
    uir_dtype_class class = uir_dtype_get_class(dtype);
    return (scalar_type){dtype, class == UIR_DTYPE_CLASS_FLOAT, class != UIR_DTYPE_CLASS_SIGNED, dtype == UIR_DTYPE_F64,
                         uir_dtype_bits(dtype)};
}

/* Wraps an integer to its width; bool stays 0 or 1. */
static int64_t wrap(scalar_type t, uint64_t v) {
    if (uir_dtype_get_class(t.dtype) == UIR_DTYPE_CLASS_BOOL) return v != 0;
    if (t.bits >= 64) return (int64_t)v;
    uint64_t mask = ((uint64_t)1 << t.bits) - 1;
    v &= mask;
    if (!t.is_unsigned && v >> (t.bits - 1)) v |= ~mask;
    return (int64_t)v;
}

/* Rounds a double that holds an f32 result to the instruction's dtype (narrower floats round once more: they computed
 * in f32). */
static double narrow(scalar_type t, double v) {
    if (t.is_double || t.dtype == UIR_DTYPE_F32) return v;
    uint64_t storage = 0;
    uir_dtype_store_double(t.dtype, &storage, 0, v, UIR_ROUND_NEAREST_EVEN);
    return uir_dtype_load_double(t.dtype, &storage, 0);
}

/* ---- floats. f32 has all transcendentals, f64 those of kernel_math_f64.inc ---- */
static double sign_of(double x) {
    return isnan(x) ? x : x > 0 ? 1 : x < 0 ? -1 : x;
}

static bool float_unary(uir_iop_code code, bool is_double, double x, double *out) {
    float f = (float)x;
    switch (code) {
    case UIR_IOP_NEG:
        *out = -x;
        return true;
    case UIR_IOP_ABS:
        *out = fabs(x);
        return true;
    case UIR_IOP_SIGN:
        *out = sign_of(x);
        return true;
    case UIR_IOP_SQRT:
        *out = is_double ? sqrt(x) : (double)sqrtf(f);
        return true;
    case UIR_IOP_RECIPROCAL:
        *out = is_double ? 1 / x : (double)(1 / f);
        return true;
    case UIR_IOP_RSQRT:
        *out = is_double ? 1 / sqrt(x) : (double)(1 / sqrtf(f));
        return true;
    case UIR_IOP_FLOOR:
        *out = floor(x);
        return true;
    case UIR_IOP_CEIL:
        *out = ceil(x);
        return true;
    case UIR_IOP_ROUND:
        *out = rint(x);
        return true;
    case UIR_IOP_TRUNC:
        *out = trunc(x);
        return true;
    default:
        break;
    }
    switch (is_double ? UIR_IOP_COUNT : (int)code) {
#define UIR_KERNEL_MATH(constant, name, ulp)                                                                           \
    case UIR_IOP_##constant:                                                                                           \
        *out = (double)uir_math_##name(f);                                                                             \
        return true;
#include "ir/kernel/interpret/kernel_math.def"
    default:
        break;
    }
    switch (is_double ? (int)code : UIR_IOP_COUNT) {
#define UIR_KERNEL_MATH_LARGE_F64(constant, name, ulp)                                                                 \
    case UIR_IOP_##constant:                                                                                           \
        *out = uir_math_##name##_f64(x);                                                                               \
        return true;
#include "ir/kernel/interpret/kernel_math.def"
    default:
        return false;
    }
}

static bool float_binary(uir_iop_code code, bool is_double, double a, double b, double *out) {
    float x = (float)a, y = (float)b;
    switch (code) {
    case UIR_IOP_ADD:
        *out = is_double ? a + b : (double)(x + y);
        return true;
    case UIR_IOP_SUB:
        *out = is_double ? a - b : (double)(x - y);
        return true;
    case UIR_IOP_MUL:
        *out = is_double ? a * b : (double)(x * y);
        return true;
    case UIR_IOP_DIV:
        *out = is_double ? a / b : (double)(x / y);
        return true;
    case UIR_IOP_FMOD:
        *out = is_double ? fmod(a, b) : (double)fmodf(x, y);
        return true;
    case UIR_IOP_MIN:
        *out = a < b || isnan(a) ? a : b;
        return true;
    case UIR_IOP_MAX:
        *out = a > b || isnan(a) ? a : b;
        return true;
    case UIR_IOP_MAXNUM:
        *out = b > a || isnan(a) ? b : a;
        return true;
    default:
        break;
    }
    switch (is_double ? UIR_IOP_COUNT : (int)code) {
#define UIR_KERNEL_MATH_BINARY(constant, name, ulp)                                                                    \
    case UIR_IOP_##constant:                                                                                           \
        *out = (double)uir_math_##name(x, y);                                                                          \
        return true;
#include "ir/kernel/interpret/kernel_math.def"
    default:
        break;
    }
    switch (is_double ? (int)code : UIR_IOP_COUNT) {
#define UIR_KERNEL_MATH_BINARY_F64(constant, name, ulp)                                                                \
    case UIR_IOP_##constant:                                                                                           \
        *out = uir_math_##name##_f64(a, b);                                                                            \
        return true;
#include "ir/kernel/interpret/kernel_math.def"
    default:
        return false;
    }
}

/* ---- integers ---- */
static bool integer_unary(uir_iop_code code, scalar_type t, int64_t x, int64_t *out) {
    bool is_bool = uir_dtype_get_class(t.dtype) == UIR_DTYPE_CLASS_BOOL;
    switch (code) {
    case UIR_IOP_NEG:
        *out = wrap(t, 0 - (uint64_t)x);
        return true;
    case UIR_IOP_ABS:
        *out = t.is_unsigned || x >= 0 ? x : wrap(t, 0 - (uint64_t)x);
        return true;
    case UIR_IOP_SIGN:
        *out = t.is_unsigned ? x != 0 : (x > 0) - (x < 0);
        return true;
    case UIR_IOP_NOT:
        *out = is_bool ? !x : wrap(t, ~(uint64_t)x);
        return true;
    default:
        return false;
    }
}

static int64_t divide(scalar_type t, int64_t a, int64_t b) {
    if (b == 0) return 0;
    if (t.is_unsigned) return (int64_t)((uint64_t)a / (uint64_t)b);
    return b == -1 ? wrap(t, 0 - (uint64_t)a) : a / b;
}

static int64_t modulo(scalar_type t, int64_t a, int64_t b) {
    if (b == 0) return 0;
    if (t.is_unsigned) return (int64_t)((uint64_t)a % (uint64_t)b);
    if (b == -1) return 0;
    int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static bool less(scalar_type t, int64_t a, int64_t b) {
    return t.is_unsigned ? (uint64_t)a < (uint64_t)b : a < b;
}

static bool integer_binary(uir_iop_code code, scalar_type t, int64_t a, int64_t b, int64_t *out) {
    bool too_far = (t.is_unsigned ? (uint64_t)b >= t.bits : b < 0 || b >= (int64_t)t.bits);
    switch (code) {
    case UIR_IOP_ADD:
        *out = wrap(t, (uint64_t)a + (uint64_t)b);
        return true;
    case UIR_IOP_SUB:
        *out = wrap(t, (uint64_t)a - (uint64_t)b);
        return true;
    case UIR_IOP_MUL:
        *out = wrap(t, (uint64_t)a * (uint64_t)b);
        return true;
    case UIR_IOP_DIV:
        *out = wrap(t, (uint64_t)divide(t, a, b));
        return true;
    case UIR_IOP_MOD:
        *out = wrap(t, (uint64_t)modulo(t, a, b));
        return true;
    case UIR_IOP_MIN:
        *out = less(t, a, b) ? a : b;
        return true;
    case UIR_IOP_MAX:
        *out = less(t, b, a) ? a : b;
        return true;
    case UIR_IOP_AND:
        *out = a & b;
        return true;
    case UIR_IOP_OR:
        *out = a | b;
        return true;
    case UIR_IOP_XOR:
        *out = wrap(t, (uint64_t)(a ^ b));
        return true;
    case UIR_IOP_SHIFT_LEFT:
        *out = too_far ? 0 : wrap(t, (uint64_t)a << b);
        return true;
    case UIR_IOP_SHIFT_RIGHT:
        if (too_far)
            *out = !t.is_unsigned && a < 0 ? -1 : 0;
        else
            *out = t.is_unsigned ? (int64_t)((uint64_t)a >> b) : a >> b;
        return true;
    default:
        return false;
    }
}

static bool compare(uir_iop_code code, scalar_type t, icell a, icell b, int64_t *out) {
    bool lt = t.is_float ? a.real < b.real : less(t, a.integer, b.integer);
    bool gt = t.is_float ? a.real > b.real : less(t, b.integer, a.integer);
    bool eq = t.is_float ? a.real == b.real : a.integer == b.integer;
    switch (code) {
    case UIR_IOP_EQ:
        *out = eq;
        return true;
    case UIR_IOP_NE:
        *out = !eq;
        return true;
    case UIR_IOP_LT:
        *out = lt;
        return true;
    case UIR_IOP_LE:
        *out = lt || eq;
        return true;
    case UIR_IOP_GT:
        *out = gt;
        return true;
    case UIR_IOP_GE:
        *out = gt || eq;
        return true;
    default:
        return false;
    }
}

/* ---- cast ---- */
/* What is read as `to` where the element was stored as `stored`. */
static icell through_memory(uir_dtype stored, scalar_type from, scalar_type to, icell x, uir_rounding rounding) {
    icell out = {.defined = x.defined};
    uint64_t storage[2] = {0, 0};
    if (from.is_float)
        uir_dtype_store_double(stored, storage, 0, x.real, rounding);
    else
        uir_dtype_store_integer(stored, storage, 0, x.integer, from.is_unsigned, rounding);
    if (to.is_float)
        out.real = uir_dtype_load_double(to.dtype, storage, 0);
    else
        out.integer = uir_dtype_load_integer(to.dtype, storage, 0);
    return out;
}

static icell cast(scalar_type from, scalar_type to, icell x, bool saturate) {
    icell out = {.defined = x.defined};
    if (saturate && !to.is_float && uir_dtype_get_class(to.dtype) != UIR_DTYPE_CLASS_BOOL) {
        double low = (double)uir_dtype_integer_min(to.dtype), high = (double)uir_dtype_integer_max(to.dtype);
        if (from.is_float) {
            if (x.real < low) return out.integer = uir_dtype_integer_min(to.dtype), out;
            if (x.real >= high) return out.integer = (int64_t)uir_dtype_integer_max(to.dtype), out;
        } else {
            if (less(from, x.integer, 0) && to.is_unsigned) return out;
            bool over =
                from.is_unsigned || x.integer >= 0 ? (uint64_t)x.integer > uir_dtype_integer_max(to.dtype) : false;
            if (over) return out.integer = (int64_t)uir_dtype_integer_max(to.dtype), out;
            if (!from.is_unsigned && x.integer < uir_dtype_integer_min(to.dtype))
                return out.integer = uir_dtype_integer_min(to.dtype), out;
        }
    }
    return through_memory(to.dtype, from, to, x, saturate ? UIR_ROUND_SATURATE : UIR_ROUND_NEAREST_EVEN);
}

/* The element of another dtype that is stored alike. */
static icell same_bits(scalar_type from, scalar_type to, icell x) {
    return through_memory(from.dtype, from, to, x, UIR_ROUND_NEAREST_EVEN);
}

/* ---- elementwise ---- */
/* The element of an operand that goes with element `index` (row-major digits over the result's counts); trailing dims
 * align. */
static uir_status operand_position(imachine *machine, const iview *operand, const iview *result, const int64_t *digits,
                                   int64_t *out) {
    int64_t at = 0;
    for (uint32_t d = 0; d < operand->rank; d++) {
        int64_t count = operand->counts[d], digit = 0;
        uint32_t from_end = operand->rank - d;
        if (from_end <= result->rank) digit = digits[result->rank - from_end];
        int64_t wanted = from_end <= result->rank ? result->counts[result->rank - from_end] : 1;
        bool repeats = operand->block && from_end == 1 && count > 0;
        if (count != 1 && count != wanted && !repeats) {
            return uir_imachine_fail(machine, "an operand of %lld elements along a dim of %lld does not broadcast",
                                     (long long)count, (long long)wanted);
        }
        at = at * count + (count == 1 ? 0 : repeats ? digit % count : digit);
    }
    *out = at;
    return UIR_STATUS_OK;
}

static icell immediate_cell(scalar_type t, double value) {
    icell cell = {.defined = true, .real = value};
    if (!t.is_float)
        cell.integer = (int64_t)value;
    else if (!t.is_double)
        cell.real = narrow(t, (double)(float)value);
    return cell;
}

static uir_status apply(imachine *machine, const uir_iinstruction *in, scalar_type t, const icell *x, icell *out) {
    const uir_iop_row *row = uir_iop_get_row(in->code);
    bool known = true;
    *out =
        (icell){.defined = x[0].defined && (row->operands < 2 || x[1].defined) && (row->operands < 3 || x[2].defined)};
    switch (row->family) {
    case UIR_IOP_FAMILY_MOVE:
    case UIR_IOP_FAMILY_BROADCAST:
        *out = x[0];
        return UIR_STATUS_OK;
    case UIR_IOP_FAMILY_UNARY:
        known = t.is_float ? float_unary(in->code, t.is_double, x[0].real, &out->real)
                           : integer_unary(in->code, t, x[0].integer, &out->integer);
        break;
    case UIR_IOP_FAMILY_BINARY:
        known = t.is_float ? float_binary(in->code, t.is_double, x[0].real, x[1].real, &out->real)
                           : integer_binary(in->code, t, x[0].integer, x[1].integer, &out->integer);
        break;
    case UIR_IOP_FAMILY_COMPARE:
        known = compare(in->code, t, x[0], x[1], &out->integer);
        return known ? UIR_STATUS_OK : uir_imachine_fail(machine, "unknown comparison");
    case UIR_IOP_FAMILY_TERNARY:
        if (in->code == UIR_IOP_SELECT) {
            bool defined = x[0].defined;
            *out = x[0].integer ? x[1] : x[2];
            out->defined &= defined;
            return UIR_STATUS_OK;
        }
        out->real = t.is_double ? fma(x[0].real, x[1].real, x[2].real)
                                : (double)fmaf((float)x[0].real, (float)x[1].real, (float)x[2].real);
        break;
    case UIR_IOP_FAMILY_CAST:
        *out = in->code == UIR_IOP_BITS ? same_bits(t, type_of(in->dtype_b), x[0])
                                        : cast(t, type_of(in->dtype_b), x[0], in->saturate);
        return UIR_STATUS_OK;
    default:
        known = false;
    }
    if (!known) return uir_imachine_fail(machine, "%s is not defined for %s", row->name, uir_dtype_name(t.dtype));
    if (t.is_float) out->real = narrow(t, out->real);
    return UIR_STATUS_OK;
}

static void advance(int64_t *digits, const iview *view) {
    for (uint32_t d = view->rank; d-- > 0;) {
        if (++digits[d] < view->counts[d]) return;
        digits[d] = 0;
    }
}

/* What follows is done by the thread of an element. */
static void run_as(imachine *machine, const uint32_t *threads, int64_t element) {
    machine->thread = threads ? threads[element] : 0;
}

/* All operands are read before the result is written: an instruction in place, shifted or not, means the old values. */
static uir_status elementwise(imachine *machine, iunit *unit, const uir_iinstruction *in) {
    const uir_iop_row *row = uir_iop_get_row(in->code);
    iview views[UIR_IOP_MAX_SLICES];
    scalar_type t = type_of(in->dtype);
    for (uint32_t i = 0; i < in->slice_count; i++) UIR_TRY(uir_imachine_view(machine, unit, &in->slices[i], &views[i]));
    const iview *result = &views[0];
    icell *cells;
    UIR_TRY_ALLOCATE(cells, uir_arena_allocate_array(&machine->scratch, (size_t)result->total + 1, sizeof *cells));
    int64_t digits[UIR_IGRAPH_MAX_RANK] = {0};
    const uint32_t *threads;
    UIR_TRY(uir_imachine_find_threads(machine, unit, in, result, &threads));
    for (int64_t e = 0; e < result->total; e++, advance(digits, result)) {
        run_as(machine, threads, e);
        icell x[3];
        memset(x, 0, sizeof x);
        uint32_t slice = 1;
        for (uint32_t k = 0; k < row->operands; k++) {
            if (in->immediate_mask >> k & 1) {
                x[k] = immediate_cell(type_of(uir_iop_operand_dtype(in->code, in->dtype, k)), in->immediates[k]);
                continue;
            }
            const iview *operand = &views[slice++];
            int64_t at;
            UIR_TRY(operand_position(machine, operand, result, digits, &at));
            UIR_TRY(uir_imachine_load(machine, unit, operand, operand->offsets[at], &x[k]));
        }
        UIR_TRY(apply(machine, in, t, x, &cells[e]));
    }
    for (int64_t e = 0; e < result->total; e++) {
        run_as(machine, threads, e);
        UIR_TRY(uir_imachine_store(machine, unit, result, result->offsets[e], cells[e]));
    }
    return UIR_STATUS_OK;
}

static uir_status move(imachine *machine, iunit *unit, const uir_iinstruction *in) {
    iview to, from;
    UIR_TRY(uir_imachine_view(machine, unit, &in->slices[0], &to));
    UIR_TRY(uir_imachine_view(machine, unit, &in->slices[1], &from));
    if (to.total != from.total && from.total != 1) return elementwise(machine, unit, in);
    icell *cells;
    UIR_TRY_ALLOCATE(cells, uir_arena_allocate_array(&machine->scratch, (size_t)to.total + 1, sizeof *cells));
    const uint32_t *threads;
    UIR_TRY(uir_imachine_find_threads(machine, unit, in, &to, &threads));
    for (int64_t e = 0; e < to.total; e++) {
        run_as(machine, threads, e);
        UIR_TRY(uir_imachine_load(machine, unit, &from, from.offsets[from.total == 1 ? 0 : e], &cells[e]));
    }
    for (int64_t e = 0; e < to.total; e++) {
        run_as(machine, threads, e);
        UIR_TRY(uir_imachine_store(machine, unit, &to, to.offsets[e], cells[e]));
    }
    return UIR_STATUS_OK;
}

static uir_status fill(imachine *machine, iunit *unit, const uir_iinstruction *in) {
    iview to;
    UIR_TRY(uir_imachine_view(machine, unit, &in->slices[0], &to));
    icell cell = immediate_cell(type_of(in->dtype), in->immediate);
    const uint32_t *threads;
    UIR_TRY(uir_imachine_find_threads(machine, unit, in, &to, &threads));
    for (int64_t e = 0; e < to.total; e++) {
        run_as(machine, threads, e);
        UIR_TRY(uir_imachine_store(machine, unit, &to, to.offsets[e], cell));
    }
    return UIR_STATUS_OK;
}

static uir_status iota(imachine *machine, iunit *unit, const uir_iinstruction *in) {
    iview to;
    int64_t start;
    scalar_type t = type_of(in->dtype);
    UIR_TRY(uir_imachine_view(machine, unit, &in->slices[0], &to));
    UIR_TRY(uir_imachine_evaluate(machine, unit, in->start, &start));
    int64_t digits[UIR_IGRAPH_MAX_RANK] = {0};
    uint32_t axis = in->axis == UIR_IAXIS_COL ? 2 : 1;
    const uint32_t *threads;
    UIR_TRY(uir_imachine_find_threads(machine, unit, in, &to, &threads));
    for (int64_t e = 0; e < to.total; e++, advance(digits, &to)) {
        run_as(machine, threads, e);
        int64_t value = start + (axis <= to.rank ? digits[to.rank - axis] : 0);
        icell cell = {.defined = true,
                      .real = narrow(t, t.is_double ? (double)value : (double)(float)value),
                      .integer = wrap(t, (uint64_t)value)};
        UIR_TRY(uir_imachine_store(machine, unit, &to, to.offsets[e], cell));
    }
    return UIR_STATUS_OK;
}

/* ---- reductions ---- */
static icell identity_of(uir_iop_code code, scalar_type t) {
    uir_iop_identity identity = uir_iop_get_monoid(code).identity;
    if (t.is_float) return (icell){.defined = true, .real = uir_iop_identity_real(identity)};
    return (icell){.defined = true, .integer = uir_iop_identity_integer(identity, t.dtype)};
}

static icell combine(uir_iop_code code, scalar_type t, icell a, icell b) {
    icell out = {.defined = a.defined && b.defined};
    if (t.is_float) {
        (void)float_binary(uir_iop_get_monoid(code).operation, t.is_double, a.real, b.real, &out.real);
        out.real = narrow(t, out.real);
    } else {
        (void)integer_binary(uir_iop_get_monoid(code).operation, t, a.integer, b.integer, &out.integer);
    }
    return out;
}

/* `count` elements at `first`, `step` apart: 32 lanes and a tree along a row, in order along a column. */
static uir_status reduce_line(imachine *machine, const iunit *unit, const uir_iinstruction *in, scalar_type t,
                              const iview *from, int64_t first, int64_t step, int64_t count, const uint32_t *threads,
                              bool has_old, icell old, icell *out) {
    icell lanes[UIR_REDUCE_LANES], x;
    bool row = in->axis != UIR_IAXIS_COL;
    for (int l = 0; l < UIR_REDUCE_LANES; l++) lanes[l] = identity_of(in->code, t);
    if (!row && has_old) lanes[0] = old;
    for (int64_t i = 0; i < count; i++) {
        icell *lane = &lanes[row ? i % UIR_REDUCE_LANES : 0];
        if (row) run_as(machine, threads, i % UIR_REDUCE_LANES);
        UIR_TRY(uir_imachine_load(machine, unit, from, from->offsets[first + i * step], &x));
        *lane = combine(in->code, t, *lane, x);
    }
    for (int s = UIR_REDUCE_LANES / 2; row && s > 0; s /= 2) {
        for (int l = 0; l < s; l++) lanes[l] = combine(in->code, t, lanes[l], lanes[l + s]);
    }
    *out = row && has_old ? combine(in->code, t, old, lanes[0]) : lanes[0];
    return UIR_STATUS_OK;
}

/* Splits the operand's elements into lines; line i gives element i of the result. */
static uir_status line_geometry(imachine *machine, const iview *to, const iview *from, uir_iaxis axis, int64_t *lines,
                                int64_t *count, int64_t *inner) {
    uint32_t dim = axis == UIR_IAXIS_COL ? 2 : 1;
    if (from->rank < dim) return uir_imachine_fail(machine, "a reduction along a dim that the slice does not have");
    *count = from->counts[from->rank - dim];
    *inner = dim == 2 ? from->counts[from->rank - 1] : 1;
    *lines = *count ? from->total / *count : 0;
    if (*count == 0) { /* nothing along the axis: as many lines as the result has */
        *lines = to->total;
    }
    if (to->total != *lines)
        return uir_imachine_fail(machine, "a reduction of %lld lines into %lld elements", (long long)*lines,
                                 (long long)to->total);
    return UIR_STATUS_OK;
}

static uir_status reduce(imachine *machine, iunit *unit, const uir_iinstruction *in) {
    iview to, from;
    int64_t lines = 0, count = 0, inner = 0;
    scalar_type t = type_of(in->dtype);
    UIR_TRY(uir_imachine_view(machine, unit, &in->slices[0], &to));
    UIR_TRY(uir_imachine_view(machine, unit, &in->slices[1], &from));
    UIR_TRY(line_geometry(machine, &to, &from, in->axis, &lines, &count, &inner));
    icell *cells;
    UIR_TRY_ALLOCATE(cells, uir_arena_allocate_array(&machine->scratch, (size_t)lines + 1, sizeof *cells));
    bool row = in->axis != UIR_IAXIS_COL;
    const uint32_t *threads, *lanes = NULL;
    UIR_TRY(uir_imachine_find_threads(machine, unit, in, &to, &threads));
    for (int64_t i = 0; i < lines; i++) {
        icell old = {0};
        int64_t first = inner ? i / inner * (inner * count) + i % inner : 0;
        run_as(machine, threads, row ? i * UIR_REDUCE_LANES : i);
        if (threads && row) lanes = threads + i * UIR_REDUCE_LANES;
        if (in->accumulate) UIR_TRY(uir_imachine_load(machine, unit, &to, to.offsets[i], &old));
        UIR_TRY(reduce_line(machine, unit, in, t, &from, first, inner, count, lanes, in->accumulate, old, &cells[i]));
    }
    for (int64_t i = 0; i < lines; i++) {
        run_as(machine, threads, row ? i * UIR_REDUCE_LANES : i);
        UIR_TRY(uir_imachine_store(machine, unit, &to, to.offsets[i], cells[i]));
    }
    return UIR_STATUS_OK;
}

static uir_status scan(imachine *machine, iunit *unit, const uir_iinstruction *in) {
    iview to, from, carry;
    int64_t lines = 0, count = 0, inner = 0;
    scalar_type t = type_of(in->dtype);
    UIR_TRY(uir_imachine_view(machine, unit, &in->slices[0], &to));
    UIR_TRY(uir_imachine_view(machine, unit, &in->slices[1], &from));
    UIR_TRY(uir_imachine_view(machine, unit, &in->slices[2], &carry));
    if (to.total != from.total)
        return uir_imachine_fail(machine, "a scan of %lld elements into %lld", (long long)from.total,
                                 (long long)to.total);
    UIR_TRY(line_geometry(machine, &carry, &from, in->axis, &lines, &count, &inner));
    const uint32_t *threads;
    UIR_TRY(uir_imachine_find_threads(machine, unit, in, &carry, &threads));
    for (int64_t i = 0; i < lines; i++) {
        icell sum, x;
        run_as(machine, threads, i);
        UIR_TRY(uir_imachine_load(machine, unit, &carry, carry.offsets[i], &sum));
        for (int64_t j = 0; j < count; j++) {
            int64_t at = i / inner * (inner * count) + i % inner + j * inner;
            UIR_TRY(uir_imachine_load(machine, unit, &from, from.offsets[at], &x));
            icell next = combine(in->code, t, sum, x);
            UIR_TRY(uir_imachine_store(machine, unit, &to, to.offsets[at], in->exclusive ? sum : next));
            sum = next;
        }
        UIR_TRY(uir_imachine_store(machine, unit, &carry, carry.offsets[i], sum));
    }
    return UIR_STATUS_OK;
}

/* ---- mma ---- */
/* Leading dims of extent 1 do not count: two remain. */
static uir_status matrix_of(imachine *machine, const iview *view, int64_t *rows, int64_t *columns) {
    if (view->rank < 2) return uir_imachine_fail(machine, "mma's operands must be matrices");
    for (uint32_t d = 0; d + 2 < view->rank; d++) {
        if (view->counts[d] != 1)
            return uir_imachine_fail(machine, "mma's operands must be matrices: leading dims need extent 1");
    }
    *rows = view->counts[view->rank - 2];
    *columns = view->counts[view->rank - 1];
    return UIR_STATUS_OK;
}

static uir_status mma(imachine *machine, iunit *unit, const uir_iinstruction *in) {
    iview c, a, b;
    int64_t m = 0, n = 0, k = 0, am = 0, bn = 0, bk = 0;
    scalar_type t = type_of(in->dtype);
    UIR_TRY(uir_imachine_view(machine, unit, &in->slices[0], &c));
    UIR_TRY(uir_imachine_view(machine, unit, &in->slices[1], &a));
    UIR_TRY(uir_imachine_view(machine, unit, &in->slices[2], &b));
    UIR_TRY(matrix_of(machine, &c, &m, &n));
    UIR_TRY(matrix_of(machine, &a, &am, &k));
    UIR_TRY(matrix_of(machine, &b, &bk, &bn));
    if (am != m || bn != n || bk != k) {
        return uir_imachine_fail(machine, "mma of [%lld,%lld] and [%lld,%lld] into [%lld,%lld]", (long long)am,
                                 (long long)k, (long long)bk, (long long)bn, (long long)m, (long long)n);
    }
    const uint32_t *threads;
    UIR_TRY(uir_imachine_find_threads(machine, unit, in, &c, &threads));
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            icell sum, x, y;
            run_as(machine, threads, i * n + j);
            UIR_TRY(uir_imachine_load(machine, unit, &c, c.offsets[i * n + j], &sum));
            for (int64_t p = 0; p < k; p++) {
                UIR_TRY(uir_imachine_load(machine, unit, &a, a.offsets[i * k + p], &x));
                UIR_TRY(uir_imachine_load(machine, unit, &b, b.offsets[p * n + j], &y));
                sum.defined &= x.defined && y.defined;
                if (!t.is_float)
                    sum.integer = wrap(t, (uint64_t)sum.integer + (uint64_t)x.integer * (uint64_t)y.integer);
                else if (t.is_double)
                    sum.real = fma(x.real, y.real, sum.real);
                else
                    sum.real = (double)fmaf((float)x.real, (float)y.real, (float)sum.real);
            }
            if (t.is_float) sum.real = narrow(t, sum.real);
            UIR_TRY(uir_imachine_store(machine, unit, &c, c.offsets[i * n + j], sum));
        }
    }
    return UIR_STATUS_OK;
}

uir_status uir_imachine_execute(imachine *machine, iunit *unit, const uir_iinstruction *in) {
    switch (uir_iop_get_row(in->code)->family) {
    case UIR_IOP_FAMILY_MOVE:
        return move(machine, unit, in);
    case UIR_IOP_FAMILY_FILL:
        return fill(machine, unit, in);
    case UIR_IOP_FAMILY_IOTA:
        return iota(machine, unit, in);
    case UIR_IOP_FAMILY_REDUCE:
        return reduce(machine, unit, in);
    case UIR_IOP_FAMILY_SCAN:
        return scan(machine, unit, in);
    case UIR_IOP_FAMILY_MMA:
        return mma(machine, unit, in);
    case UIR_IOP_FAMILY_SYNC:
        return UIR_STATUS_OK;
    default:
        return elementwise(machine, unit, in);
    }
}

/* ---- over a group: unit 0's result takes every unit's, in their order; a broadcast gives unit 0's value to all ----
 */
static uir_status reduce_over_group(imachine *machine, const uir_iinstruction *in) {
    igroup *group = &machine->group;
    scalar_type t = type_of(in->dtype);
    iview first;
    icell *sums = NULL;
    for (uint32_t u = 0; u < group->unit_count; u++) {
        iview to, from;
        int64_t lines = 0, count = 0, inner = 0;
        UIR_TRY(uir_imachine_view(machine, &group->units[u], &in->slices[0], &to));
        UIR_TRY(uir_imachine_view(machine, &group->units[u], &in->slices[1], &from));
        UIR_TRY(line_geometry(machine, &to, &from, in->axis, &lines, &count, &inner));
        if (u == 0) {
            first = to;
            UIR_TRY_ALLOCATE(sums, uir_arena_allocate_array(&machine->scratch, (size_t)lines + 1, sizeof *sums));
        }
        if (to.total != first.total) return uir_imachine_fail(machine, "a group's units reduce different shapes");
        for (int64_t i = 0; i < lines; i++) {
            icell mine, old = {0};
            if (u == 0 && in->accumulate)
                UIR_TRY(uir_imachine_load(machine, &group->units[0], &to, to.offsets[i], &old));
            UIR_TRY(reduce_line(machine, &group->units[u], in, t, &from,
                                inner ? i / inner * (inner * count) + i % inner : 0, inner, count, NULL,
                                u == 0 && in->accumulate, old, &mine));
            sums[i] = u == 0 ? mine : combine(in->code, t, sums[i], mine);
        }
    }
    for (int64_t i = 0; sums && i < first.total; i++)
        UIR_TRY(uir_imachine_store(machine, &group->units[0], &first, first.offsets[i], sums[i]));
    return UIR_STATUS_OK;
}

static uir_status broadcast_over_group(imachine *machine, const uir_iinstruction *in) {
    igroup *group = &machine->group;
    iview source;
    icell *cells;
    UIR_TRY(uir_imachine_view(machine, &group->units[0], &in->slices[1], &source));
    UIR_TRY_ALLOCATE(cells, uir_arena_allocate_array(&machine->scratch, (size_t)source.total + 1, sizeof *cells));
    for (int64_t e = 0; e < source.total; e++)
        UIR_TRY(uir_imachine_load(machine, &group->units[0], &source, source.offsets[e], &cells[e]));
    for (uint32_t u = 0; u < group->unit_count; u++) {
        iview to;
        UIR_TRY(uir_imachine_view(machine, &group->units[u], &in->slices[0], &to));
        int64_t digits[UIR_IGRAPH_MAX_RANK] = {0}, at;
        for (int64_t e = 0; e < to.total; e++, advance(digits, &to)) {
            UIR_TRY(operand_position(machine, &source, &to, digits, &at));
            UIR_TRY(uir_imachine_store(machine, &group->units[u], &to, to.offsets[e], cells[at]));
        }
    }
    return UIR_STATUS_OK;
}

uir_status uir_imachine_execute_group(imachine *machine, const uir_iinstruction *in) {
    return uir_iop_get_row(in->code)->family == UIR_IOP_FAMILY_REDUCE ? reduce_over_group(machine, in)
                                                                      : broadcast_over_group(machine, in);
}
