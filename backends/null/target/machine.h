/* The machine that does not exist, simulated: what an emitted kernel includes.
 *
 * A machine's own header stands in its place, whose instructions are the machine's: this one has them as C functions on
 * views, an element after the other. Groups of units are threads that meet where the kernel says so. Arithmetic is that
 * of ir/iops.def, in its order, so that results can be held to the interpreter's bit by bit.
 *
 * In: an array's place, type, and where its elements lie. Out: what the instruction stores. */
#ifndef NULL_MACHINE_H
#define NULL_MACHINE_H

#include "ir/kernel_math.h"

#include <pthread.h>
#include <stdlib.h>

#define MACHINE static __attribute__((unused))
#define UIR_LET const int64_t __attribute__((unused))

/* ---- the host's arithmetic of sizes. A division that has no result makes `uir_undefined` true. ---- */
static _Thread_local int uir_undefined __attribute__((unused));
MACHINE int64_t uir_floordiv(int64_t a, int64_t b) {
    if (b < 1) return uir_undefined = 1, 0;
    return a / b - (a % b < 0);
}
MACHINE int64_t uir_ceildiv(int64_t a, int64_t b) {
    if (b < 1) return uir_undefined = 1, 0;
    return a / b + (a % b > 0);
}
MACHINE int64_t uir_mod(int64_t a, int64_t b) {
    return a - uir_floordiv(a, b) * b;
}
MACHINE int64_t uir_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}
MACHINE int64_t uir_max(int64_t a, int64_t b) {
    return a > b ? a : b;
}
/* What units of work take when workers share them. */
MACHINE int64_t uir_shared_cost(int64_t cost, int64_t units, int64_t workers) {
    int64_t turns = uir_ceildiv(units, uir_max(workers, 1)), result;
    if (turns <= 0) return 0;
    return __builtin_mul_overflow(cost, turns, &result) ? INT64_MAX : result;
}

/* ---- types ---- */
typedef enum type { t_f32, t_f64, t_f16, t_bf16, t_bool, t_i8, t_u8, t_i16, t_u16, t_i32, t_u32, t_i64, t_u64 } type;
static const int type_bytes[] = {4, 8, 2, 2, 1, 1, 1, 2, 2, 4, 4, 8, 8};
__extension__ typedef _Float16 half;

/* A number of any type: of floats `real`, of others `whole` (of u64 its bits). */
typedef struct number {
    double real;
    int64_t whole;
} number;

MACHINE int is_real(type t) {
    return t <= t_bf16;
}
MACHINE int is_unsigned(type t) {
    return t == t_u8 || t == t_u16 || t == t_u32 || t == t_u64 || t == t_bool;
}
MACHINE int less(type t, int64_t a, int64_t b) {
    return is_unsigned(t) ? (uint64_t)a < (uint64_t)b : a < b;
}

/* Rounds once: to a float of which one more rounding gives the upper half's nearest. */
MACHINE uint16_t to_bf16(double value) {
    float f = (float)value;
    uint32_t bits = (uint32_t)uir_math_bits(f);
    if (value != value) return 0x7fc0;
    if ((double)f != value && f - f == 0) bits = (bits - (fabs((double)f) > fabs(value))) | 1;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#define TYPES(row)                                                                                                     \
    row(t_bool, uint8_t) row(t_i8, int8_t) row(t_u8, uint8_t) row(t_i16, int16_t) row(t_u16, uint16_t)                 \
        row(t_i32, int32_t) row(t_u32, uint32_t) row(t_i64, int64_t) row(t_u64, uint64_t)
MACHINE number load(type t, const char *p) {
    switch (t) {
    case t_f32:
        return (number){*(const float *)(const void *)p, 0};
    case t_f64:
        return (number){*(const double *)(const void *)p, 0};
    case t_f16:
        return (number){(double)*(const half *)(const void *)p, 0};
    case t_bf16:
        return (number){uir_math_value((int32_t)((uint32_t) * (const uint16_t *)(const void *)p << 16)), 0};
#define LOAD(t, c)                                                                                                     \
    case t:                                                                                                            \
        return (number){0, (int64_t) * (const c *)(const void *)p};
        TYPES(LOAD)
    }
    return (number){0, 0};
}
MACHINE void store(type t, char *p, number n) {
    switch (t) {
    case t_f32:
        *(float *)(void *)p = (float)n.real;
        break;
    case t_f64:
        *(double *)(void *)p = n.real;
        break;
    case t_f16:
        *(half *)(void *)p = (half)n.real;
        break;
    case t_bf16:
        *(uint16_t *)(void *)p = to_bf16(n.real);
        break;
    case t_bool:
        *(uint8_t *)p = n.whole != 0;
        break;
#define STORE(t, c)                                                                                                    \
    case t:                                                                                                            \
        *(c *)(void *)p = (c)n.whole;                                                                                  \
        break;
        STORE(t_i8, int8_t)
        STORE(t_u8, uint8_t)
        STORE(t_i16, int16_t) STORE(t_u16, uint16_t) STORE(t_i32, int32_t) STORE(t_u32, uint32_t) STORE(t_i64, int64_t)
            STORE(t_u64, uint64_t)
    }
}
/* As the type holds it; what is narrower than f32 was computed in f32. */
MACHINE number rounded(type t, number n) {
    char bytes[8];
    if (is_real(t) && t != t_f64) n.real = (float)n.real;
    store(t, bytes, n);
    return load(t, bytes);
}

/* ---- operands ---- */
typedef struct array {
    type type;
    char *data;
} array;
#define ARRAY const array __attribute__((unused))
typedef struct mode {
    int64_t size, stride;
} mode;
/* A dim of a view: how many, which of them are there, and how the address moves, innermost first: index i is i0 +
 * size0*(i1 + ...), whose ik move it by stride k. */
typedef struct dim {
    int64_t count, from, until;
    int modes;
    mode mode[8];
} dim;
typedef struct view {
    array of;
    int64_t first; /* address of element 0, in elements */
    int rank;
    dim dims[8];
    const int64_t *list; /* the elements' addresses, row-major, OUTSIDE for none; NULL: as the dims say */
    int filled, absent, repeats;
    double fill;
} view;
enum { OUTSIDE = -1 };

#define ALONG(count, stride)                                                                                           \
    {                                                                                                                  \
        count, 0, INT64_MAX, 1, {                                                                                      \
            { 1, stride }                                                                                              \
        }                                                                                                              \
    }
#define PART(count, stride, from, until)                                                                               \
    {                                                                                                                  \
        count, from, until, 1, {                                                                                       \
            { 1, stride }                                                                                              \
        }                                                                                                              \
    }
#define SPLIT(count, ...)                                                                                              \
    {                                                                                                                  \
        count, 0, INT64_MAX, sizeof((mode[]){__VA_ARGS__}) / sizeof(mode), {                                           \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
#define VIEW(array, first, list, ...)                                                                                  \
    ((view){array, first, sizeof((dim[]){__VA_ARGS__}) / sizeof(dim), {__VA_ARGS__}, list, 0, 0, 0, 0})
#define AT(array, first, ...)           VIEW(array, first, NULL, __VA_ARGS__)
#define LISTED(array, first, list, ...) VIEW(array, first, list, __VA_ARGS__)
#define SWIZZLE(at, bits, base, shift)  ((at) ^ ((at) >> (shift) & ((((int64_t)1 << (bits)) - 1) << (base))))
#define NUMBER(t, value)                AT(((array){t, number_bytes(t, value, (char[8]){0})}), 0, ALONG(1, 0))
MACHINE view FILLED(double value, view v) {
    return v.filled = 1, v.fill = value, v;
}
MACHINE view ONLY_IF(int there, view v) {
    return v.absent = !there, v;
}
MACHINE view REPEATED(view v) {
    return v.repeats = 1, v;
}
MACHINE char *number_bytes(type t, double value, char *bytes) {
    store(t, bytes, rounded(t, (number){value, is_real(t) ? 0 : (int64_t)value}));
    return bytes;
}
MACHINE int64_t *make_list(int64_t count) {
    return malloc((size_t)(count > 0 ? count : 0) * sizeof(int64_t) + 1);
}

MACHINE int64_t count_of(const view *v, int d) {
    return v->dims[d].count < 0 ? 0 : v->dims[d].count;
}
MACHINE int64_t total_of(const view *v) {
    int64_t total = 1;
    for (int d = 0; d < v->rank; d++) total *= count_of(v, d);
    return total;
}
MACHINE int64_t address_of(const view *v, int64_t element) {
    int64_t at = v->first;
    if (v->absent) return OUTSIDE;
    if (v->list) return v->list[element] < 0 ? OUTSIDE : at + v->list[element];
    for (int d = v->rank; d-- > 0;) {
        const dim *x = &v->dims[d];
        int64_t rest = element % count_of(v, d);
        element /= count_of(v, d);
        if (rest < x->from || rest >= x->until) return OUTSIDE;
        for (int m = 0; m < x->modes; m++) {
            at += (m + 1 < x->modes ? rest % x->mode[m].size : rest) * x->mode[m].stride;
            if (m + 1 < x->modes) rest /= x->mode[m].size;
        }
    }
    return at;
}
/* All elements, row-major; the caller frees. */
MACHINE number *gather(const view *v) {
    int64_t total = total_of(v);
    number *all = calloc((size_t)total + 1, sizeof *all);
    for (int64_t e = 0; e < total; e++) {
        int64_t at = address_of(v, e);
        if (at >= 0)
            all[e] = load(v->of.type, v->of.data + at * type_bytes[v->of.type]);
        else if (v->filled)
            all[e] = rounded(v->of.type, (number){v->fill, is_real(v->of.type) ? 0 : (int64_t)v->fill});
    }
    return all;
}
/* Frees them. */
MACHINE void scatter(const view *v, number *all) {
    for (int64_t e = 0; e < total_of(v); e++) {
        int64_t at = address_of(v, e);
        if (at >= 0) store(v->of.type, v->of.data + at * type_bytes[v->of.type], all[e]);
    }
    free(all);
}
MACHINE int64_t read_index(view v) {
    number *n = gather(&v);
    int64_t index = n->whole;
    free(n);
    return index;
}

/* ---- element by element: shapes align at their last dims, 1 broadcasts ---- */
typedef number operation(type t, const number *x);

MACHINE int64_t element_of(const view *operand, const view *to, int64_t element) {
    int64_t at = 0, step = 1;
    for (int d = operand->rank - 1, k = to->rank - 1; d >= 0; d--, k--) {
        int64_t count = count_of(operand, d), digit = k < 0 ? 0 : element % count_of(to, k);
        if (k >= 0) element /= count_of(to, k);
        at += step * (operand->repeats && d == operand->rank - 1 ? digit % count : count == 1 ? 0 : digit);
        step *= count;
    }
    return at;
}
MACHINE void apply(operation *f, type t, view to, int operands, const view *from) {
    number *x[3], *all = calloc((size_t)total_of(&to) + 1, sizeof *all), each[3] = {{0, 0}};
    for (int k = 0; k < operands; k++) x[k] = gather(&from[k]);
    for (int64_t e = 0; e < total_of(&to); e++) {
        for (int k = 0; k < operands; k++) each[k] = x[k][element_of(&from[k], &to, e)];
        all[e] = f(t, each);
    }
    for (int k = 0; k < operands; k++) free(x[k]);
    scatter(&to, all);
}

/* In terms of floats x, y, z or of integers a, b, which wrap when they are stored. */
#define OPERATION(name, reals, wholes)                                                                                 \
    MACHINE number name##_of(type t, const number *o) {                                                                \
        double x = o[0].real, y = o[1].real;                                                                           \
        int64_t a = o[0].whole, b = o[1].whole;                                                                        \
        (void)x, (void)y, (void)a, (void)b;                                                                            \
        return rounded(t, is_real(t) ? (number){(double)(reals), 0} : (number){0, (int64_t)(wholes)});                 \
    }
#define UNARY(name, reals, wholes)                                                                                     \
    OPERATION(name, reals, wholes)                                                                                     \
    MACHINE void unary_##name(type t, view to, view a) {                                                               \
        apply(name##_of, t, to, 1, &a);                                                                                \
    }
#define BINARY(name, reals, wholes)                                                                                    \
    OPERATION(name, reals, wholes)                                                                                     \
    MACHINE void binary_##name(type t, view to, view a, view b) {                                                      \
        apply(name##_of, t, to, 2, (view[]){a, b});                                                                    \
    }
#define COMPARE(name, reals, wholes)                                                                                   \
    MACHINE number name##_of(type t, const number *o) {                                                                \
        return (number){0, is_real(t) ? o[0].real reals o[1].real : (wholes)};                                         \
    }                                                                                                                  \
    MACHINE void compare_##name(type t, view to, view a, view b) {                                                     \
        apply(name##_of, t, to, 2, (view[]){a, b});                                                                    \
    }
#define KERNEL_MATH(name) UNARY(name, uir_math_##name((float)x), 0)

MACHINE int64_t divide(type t, int64_t a, int64_t b) {
    if (b == 0) return 0;
    if (is_unsigned(t)) return (int64_t)((uint64_t)a / (uint64_t)b);
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}
MACHINE int64_t modulo(type t, int64_t a, int64_t b) {
    if (b == 0 || (b == -1 && !is_unsigned(t))) return 0;
    if (is_unsigned(t)) return (int64_t)((uint64_t)a % (uint64_t)b);
    return a % b + (a % b && (a % b < 0) != (b < 0) ? b : 0);
}
MACHINE int64_t shift(type t, int64_t a, int64_t b, int left) {
    int far = (uint64_t)b >= 8 * (uint64_t)type_bytes[t];
    if (left) return far ? 0 : (int64_t)((uint64_t)a << b);
    if (far) return !is_unsigned(t) && a < 0 ? -1 : 0;
    return is_unsigned(t) ? (int64_t)((uint64_t)a >> b) : a >> b;
}

UNARY(neg, -x, 0 - (uint64_t)a)
UNARY(abs, fabs(x), is_unsigned(t) || a >= 0 ? (uint64_t)a : 0 - (uint64_t)a)
UNARY(sign, x > 0 ? 1 : x < 0 ? -1 : x, is_unsigned(t) ? a != 0 : (a > 0) - (a < 0))
UNARY(sqrt, sqrt(x), 0)
UNARY(reciprocal, 1 / x, 0)
UNARY(rsqrt, 1 / (t == t_f64 ? sqrt(x) : (double)(float)sqrt(x)), 0)
UNARY(floor, floor(x), 0)
UNARY(ceil, ceil(x), 0)
UNARY(round, rint(x), 0)
UNARY(trunc, trunc(x), 0)
UNARY(not, 0, t == t_bool ? !a : ~a)
KERNEL_MATH(exp)
KERNEL_MATH(exp2)
KERNEL_MATH(log) KERNEL_MATH(tanh) KERNEL_MATH(erf) KERNEL_MATH(sigmoid) KERNEL_MATH(sin) KERNEL_MATH(cos)
    BINARY(add, x + y, (uint64_t)a + (uint64_t)b) BINARY(sub, x - y, (uint64_t)a - (uint64_t)b)
        BINARY(mul, x *y, (uint64_t)a *(uint64_t)b) BINARY(div, x / y, divide(t, a, b)) BINARY(mod, 0, modulo(t, a, b))
            BINARY(fmod, fmod(x, y), 0) BINARY(min, x < y || x != x ? x : y, less(t, a, b) ? a : b)
                BINARY(max, x > y || x != x ? x : y, less(t, b, a) ? a : b) BINARY(maxnum, y > x || x != x ? y : x, 0)
                    BINARY(and, 0, a &b) BINARY(or, 0, a | b) BINARY(xor, 0, a ^ b)
                        BINARY(shift_left, 0, shift(t, a, b, 1)) BINARY(shift_right, 0, shift(t, a, b, 0))
                            COMPARE(eq, ==, o[0].whole == o[1].whole) COMPARE(ne, !=, o[0].whole != o[1].whole)
                                COMPARE(lt, <, less(t, o[0].whole, o[1].whole))
                                    COMPARE(le, <=, !less(t, o[1].whole, o[0].whole))
                                        COMPARE(gt, >, less(t, o[1].whole, o[0].whole))
                                            COMPARE(ge, >=, !less(t, o[0].whole, o[1].whole))

                                                MACHINE number multiply_add(type t, number a, number b, number c) {
    if (!is_real(t)) return (number){0, (int64_t)((uint64_t)a.whole * (uint64_t)b.whole + (uint64_t)c.whole)};
    if (t == t_f64) return (number){fma(a.real, b.real, c.real), 0};
    return (number){fmaf((float)a.real, (float)b.real, (float)c.real), 0};
}
MACHINE number fma_of(type t, const number *o) {
    return rounded(t, multiply_add(t, o[0], o[1], o[2]));
}
MACHINE void ternary_fma(type t, view to, view a, view b, view c) {
    apply(fma_of, t, to, 3, (view[]){a, b, c});
}
MACHINE number select_of(type t, const number *o) {
    (void)t;
    return o[0].whole ? o[1] : o[2];
}
MACHINE void ternary_select(type t, view to, view condition, view a, view b) {
    apply(select_of, t, to, 3, (view[]){condition, a, b});
}
MACHINE number same_of(type t, const number *o) {
    (void)t;
    return o[0];
}

/* ---- moves, casts ---- */
MACHINE void move(type t, view to, view from) {
    if (total_of(&to) == total_of(&from))
        scatter(&to, gather(&from));
    else
        apply(same_of, t, to, 1, &from);
}
MACHINE void fill(type t, view to, double value) {
    move(t, to, NUMBER(t, value));
}
MACHINE void iota(type t, view to, int axis, int64_t start) {
    int64_t total = total_of(&to), inner = axis == 2 ? count_of(&to, to.rank - 1) : 1;
    number *all = calloc((size_t)total + 1, sizeof *all);
    for (int64_t e = 0; e < total; e++) {
        int64_t value = start + (axis <= to.rank ? e / inner % count_of(&to, to.rank - axis) : 0);
        all[e] = rounded(t, (number){(double)value, value});
    }
    scatter(&to, all);
}
MACHINE number converted(type from, type to, number n, int saturates) {
    int bits = 8 * type_bytes[to];
    if (is_real(from) && is_real(to)) return n;
    if (is_real(to)) return (number){is_unsigned(from) ? (double)(uint64_t)n.whole : (double)n.whole, 0};
    if (to == t_bool) return (number){0, is_real(from) ? n.real != 0 : n.whole != 0};
    uint64_t most = UINT64_MAX >> (64 - bits) >> !is_unsigned(to);
    int64_t least = is_unsigned(to) ? 0 : -(int64_t)most - 1;
    if (is_real(from)) {
        double x = n.real;
        if (saturates && x >= (double)most) return (number){0, (int64_t)most};
        if (saturates && x < (double)least) return (number){0, least};
        if (x != x) return (number){0, 0};
        if (x < -0x1p63) return (number){0, INT64_MIN};
        if (x < 0x1p63) return (number){0, (int64_t)x};
        return (number){0, to != t_u64 ? INT64_MAX : x < 0x1p64 ? (int64_t)(uint64_t)x : -1};
    }
    int negative = !is_unsigned(from) && n.whole < 0;
    if (saturates && negative && n.whole < least) return (number){0, least};
    if (saturates && !negative && (uint64_t)n.whole > most) return (number){0, (int64_t)most};
    return n;
}
MACHINE void cast(type from, type t, view to, view x, int saturates) {
    number *all = calloc((size_t)total_of(&to) + 1, sizeof *all), *old = gather(&x);
    for (int64_t e = 0; e < total_of(&to); e++) all[e] = converted(from, t, old[element_of(&x, &to, e)], saturates);
    if (t == t_f32 && !is_real(from)) /* once, from the integer */
        for (int64_t e = 0; e < total_of(&to); e++) {
            int64_t n = old[element_of(&x, &to, e)].whole;
            all[e].real = is_unsigned(from) ? (float)(uint64_t)n : (float)n;
        }
    free(old);
    scatter(&to, all);
}
MACHINE void bits(type from, type t, view to, view x, int saturates) {
    number *all = calloc((size_t)total_of(&to) + 1, sizeof *all), *old = gather(&x);
    (void)saturates;
    for (int64_t e = 0; e < total_of(&to); e++) {
        char bytes[8];
        store(from, bytes, old[element_of(&x, &to, e)]);
        all[e] = load(t, bytes);
    }
    free(old);
    scatter(&to, all);
}

/* ---- reductions, scans, products ---- */
enum { ROW = 1, COL = 2, LANES = 32 };
enum { ZERO, ONE, LEAST, GREATEST }; /* what a reduction begins with */
typedef struct lines {               /* of a view along an axis: how many, of how many elements how far apart */
    int64_t lines, count, inner;
} lines;
MACHINE lines lines_of(const view *v, int axis, int64_t wanted) {
    int64_t count = count_of(v, v->rank - axis), inner = axis == COL ? count_of(v, v->rank - 1) : 1;
    return (lines){count ? total_of(v) / count : wanted, count, inner};
}
MACHINE number with(operation *f, type t, number a, number b) {
    return f(t, (number[]){a, b});
}
MACHINE number identity_of(int which, type t) {
    uint64_t most = UINT64_MAX >> (64 - 8 * type_bytes[t]) >> !is_unsigned(t);
    if (which == LEAST) return (number){-INFINITY, is_unsigned(t) ? 0 : -(int64_t)most - 1};
    if (which == GREATEST) return (number){INFINITY, (int64_t)most};
    return (number){which == ONE, which == ONE};
}
/* A row by 32 lanes, then by halves; a column in order. */
MACHINE number *reduce_lines(operation *f, int identity, type t, int axis, const view *from, number *old,
                             int64_t wanted) {
    lines l = lines_of(from, axis, wanted);
    number *x = gather(from), *all = calloc((size_t)l.lines + 1, sizeof *all), lane[LANES];
    for (int64_t i = 0; i < l.lines; i++) {
        int64_t first = l.inner ? i / l.inner * (l.inner * l.count) + i % l.inner : 0;
        for (int k = 0; k < LANES; k++) lane[k] = identity_of(identity, t);
        if (axis == COL && old) lane[0] = old[i];
        for (int64_t e = 0; e < l.count; e++) {
            number *to = &lane[axis == ROW ? e % LANES : 0];
            *to = with(f, t, *to, x[first + e * l.inner]);
        }
        for (int half = LANES / 2; axis == ROW && half; half /= 2)
            for (int k = 0; k < half; k++) lane[k] = with(f, t, lane[k], lane[k + half]);
        all[i] = axis == ROW && old ? with(f, t, old[i], lane[0]) : lane[0];
    }
    free(x);
    return all;
}
MACHINE void reduce(operation *f, int identity, type t, int axis, view to, view from, int goes_on) {
    number *old = goes_on ? gather(&to) : NULL;
    scatter(&to, reduce_lines(f, identity, t, axis, &from, old, total_of(&to)));
    free(old);
}
MACHINE void scan(operation *f, type t, int axis, view to, view from, view carry, int excludes) {
    lines l = lines_of(&from, axis, total_of(&carry));
    number *x = gather(&from), *sums = gather(&carry), *all = calloc((size_t)total_of(&to) + 1, sizeof *all);
    for (int64_t i = 0; i < l.lines; i++)
        for (int64_t e = 0; e < l.count; e++) {
            int64_t at = i / l.inner * (l.inner * l.count) + i % l.inner + e * l.inner;
            number next = with(f, t, sums[i], x[at]);
            all[at] = excludes ? sums[i] : next;
            sums[i] = next;
        }
    free(x);
    scatter(&to, all);
    scatter(&carry, sums);
}
MACHINE void mma(type t, view c, view a, view b) {
    int64_t m = count_of(&c, c.rank - 2), n = count_of(&c, c.rank - 1), k = count_of(&a, a.rank - 1);
    number *sums = gather(&c), *x = gather(&a), *y = gather(&b);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            number sum = sums[i * n + j];
            for (int64_t p = 0; p < k; p++) sum = multiply_add(t, x[i * k + p], y[p * n + j], sum);
            sums[i * n + j] = rounded(t, sum);
        }
    free(x), free(y);
    scatter(&c, sums);
}

/* ---- units, groups, launches ---- */
enum { SPACES = 8, KINDS = 4 };
typedef struct group {
    pthread_barrier_t meet;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int units, of_kind[KINDS], raised[KINDS][KINDS];
    number **shown; /* per unit */
    char *memory[SPACES];
} group;
typedef struct unit {
    group *group;
    int number, kind, taken[KINDS];
    int64_t in_group, of_groups, copy; /* values of the parallel axes, as one number each */
    char *memory[SPACES];
    const int64_t *sizes;
    void *const *arguments;
    void (*run)(struct unit *);
} unit;
typedef struct body {
    void (*run)(unit *);
    int kind;
    int64_t copies;
} body;

/* Pipes run in order here: there is nothing to wait for. */
MACHINE void wait_pipe(unit *u, int from, int to, int distance) {
    (void)u, (void)from, (void)to, (void)distance;
}
MACHINE void wait_group(unit *u) {
    if (u->group->units > 1) pthread_barrier_wait(&u->group->meet);
}
/* Each unit of the kind `from` says that it is here; one of the kind `to` waits for all of them. */
MACHINE void wait_kind(unit *u, int from, int to) {
    group *g = u->group;
    pthread_mutex_lock(&g->lock);
    if (u->kind == from) {
        g->raised[from][to]++;
        pthread_cond_broadcast(&g->changed);
    } else if (u->kind == to) {
        int needed = (u->taken[from] + 1) * (g->of_kind[from] ? g->of_kind[from] : 1);
        while (g->raised[from][to] < needed) pthread_cond_wait(&g->changed, &g->lock);
        u->taken[from]++;
    }
    pthread_mutex_unlock(&g->lock);
}
/* Into the first unit's result, unit by unit; of all units each its own. */
MACHINE void reduce_group(unit *u, operation *f, int identity, type t, int axis, view to, view from, int goes_on) {
    group *g = u->group;
    number *old = goes_on && u->number == 0 ? gather(&to) : NULL;
    g->shown[u->number] = reduce_lines(f, identity, t, axis, &from, old, total_of(&to));
    free(old);
    wait_group(u);
    if (u->number == 0) {
        for (int k = 1; k < g->units; k++)
            for (int64_t e = 0; e < total_of(&to); e++) g->shown[0][e] = with(f, t, g->shown[0][e], g->shown[k][e]);
        scatter(&to, g->shown[0]);
    }
    wait_group(u);
    if (u->number) free(g->shown[u->number]);
}
MACHINE void broadcast_group(unit *u, type t, view to, view from) {
    group *g = u->group;
    if (u->number == 0) g->shown[0] = gather(&from);
    wait_group(u);
    number *all = calloc((size_t)total_of(&to) + 1, sizeof *all);
    for (int64_t e = 0; e < total_of(&to); e++) all[e] = same_of(t, &g->shown[0][element_of(&from, &to, e)]);
    scatter(&to, all);
    wait_group(u);
    if (u->number == 0) free(g->shown[0]);
}

MACHINE void *run_unit(void *data) {
    unit *u = data;
    u->run(u);
    return NULL;
}
/* What is not written holds no number that could be right. */
MACHINE void make_memory(char **memory, const int64_t *bytes, int release) {
    for (int s = 0; s < SPACES; s++) {
        if (release)
            free(memory[s]);
        else if ((memory[s] = malloc((size_t)bytes[s] + 64)) != NULL)
            memset(memory[s], 0xa5, (size_t)bytes[s] + 64);
    }
}
MACHINE void run_group(unit *units, group *g) {
    pthread_t *threads = calloc((size_t)g->units, sizeof *threads);
    pthread_barrier_init(&g->meet, NULL, (unsigned)g->units);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->changed, NULL);
    for (int k = 1; k < g->units; k++) pthread_create(&threads[k], NULL, run_unit, &units[k]);
    run_unit(&units[0]);
    for (int k = 1; k < g->units; k++) pthread_join(threads[k], NULL);
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
    pthread_barrier_destroy(&g->meet);
    free(threads);
}
/* A phase: so many groups of so many units of each body, `bytes` of each space for each unit and each group. */
MACHINE void launch(const int64_t *sizes, void *const *arguments, int64_t groups, int64_t in_group,
                    const int64_t *unit_bytes, const int64_t *group_bytes, const body *bodies, int body_count) {
    int count = 0;
    for (int b = 0; b < body_count; b++) count += (int)(in_group * bodies[b].copies);
    for (int64_t at = 0; at < groups && count > 0; at++) {
        group g = {.units = count, .shown = calloc((size_t)count, sizeof *g.shown)};
        unit *units = calloc((size_t)count, sizeof *units);
        int k = 0;
        make_memory(g.memory, group_bytes, 0);
        for (int b = 0; b < body_count; b++)
            for (int64_t c = 0; c < in_group * bodies[b].copies; c++, k++) {
                units[k] = (unit){.group = &g,
                                  .number = k,
                                  .kind = bodies[b].kind,
                                  .in_group = c % in_group,
                                  .of_groups = at,
                                  .copy = c / in_group,
                                  .sizes = sizes,
                                  .arguments = arguments,
                                  .run = bodies[b].run};
                make_memory(units[k].memory, unit_bytes, 0);
                g.of_kind[bodies[b].kind]++;
            }
        run_group(units, &g);
        for (k = 0; k < count; k++) make_memory(units[k].memory, unit_bytes, 1);
        make_memory(g.memory, group_bytes, 1);
        free(g.shown), free(units);
    }
}

#endif
