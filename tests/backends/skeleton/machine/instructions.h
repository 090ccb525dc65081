/* Of the machine that does not exist: its instructions, an element after the other. Arithmetic is that of
 * ir/machine/iops.def, in its order, so that results can be held to the interpreter's bit by bit. */
#ifndef NULL_INSTRUCTIONS_H
#define NULL_INSTRUCTIONS_H

#include "tests/backends/skeleton/machine/operands.h"

/* ---- element by element ---- */
typedef number operation(type t, const number *x);

MACHINE void apply(operation *f, type t, view to, int operands, const view *from) {
    number *x[3], *all = make_numbers(total_of(&to)), each[3] = {{0, 0}};
    for (int k = 0; k < operands; k++) x[k] = gather(&from[k]);
    for (int64_t e = 0; e < total_of(&to); e++) {
        for (int k = 0; k < operands; k++) each[k] = x[k][element_of(&from[k], &to, e)];
        all[e] = f(t, each);
    }
    for (int k = 0; k < operands; k++) free(x[k]);
    scatter(&to, all);
}

/* In terms of floats x, y or of integers a, b, which wrap when they are stored. */
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
#define COMPARE(name, sign, wholes)                                                                                    \
    MACHINE number name##_of(type t, const number *o) {                                                                \
        int64_t a = o[0].whole, b = o[1].whole;                                                                        \
        return (number){0, is_real(t) ? o[0].real sign o[1].real : (wholes)};                                          \
    }                                                                                                                  \
    MACHINE void compare_##name(type t, view to, view a, view b) {                                                     \
        apply(name##_of, t, to, 2, (view[]){a, b});                                                                    \
    }
#define KERNEL_MATH(name)      UNARY(name, uir_math_##name((float)x), 0)
#define KERNEL_MATH_WIDE(name) UNARY(name, t == t_f64 ? uir_math_##name##_f64(x) : (double)uir_math_##name((float)x), 0)

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
MACHINE double root(type t, double x) {
    return t == t_f64 ? sqrt(x) : (double)(float)sqrt(x);
}

UNARY(neg, -x, 0 - (uint64_t)a)
UNARY(abs, fabs(x), is_unsigned(t) || a >= 0 ? (uint64_t)a : 0 - (uint64_t)a)
UNARY(sign, x > 0 ? 1 : x < 0 ? -1 : x, is_unsigned(t) ? a != 0 : (a > 0) - (a < 0))
UNARY(sqrt, sqrt(x), 0)
UNARY(reciprocal, 1 / x, 0)
UNARY(rsqrt, 1 / root(t, x), 0)
UNARY(floor, floor(x), 0)
UNARY(ceil, ceil(x), 0)
UNARY(round, rint(x), 0)
UNARY(trunc, trunc(x), 0)
UNARY(not, 0, t == t_bool ? !a : ~a)
KERNEL_MATH(exp)
KERNEL_MATH(exp2)
KERNEL_MATH(log)
KERNEL_MATH(tanh)
KERNEL_MATH(erf)
KERNEL_MATH(sigmoid)
KERNEL_MATH_WIDE(sin)
KERNEL_MATH_WIDE(cos)
KERNEL_MATH_WIDE(tan)
BINARY(add, x + y, (uint64_t)a + (uint64_t)b)
BINARY(sub, x - y, (uint64_t)a - (uint64_t)b)
BINARY(mul, x *y, (uint64_t)a *(uint64_t)b)
BINARY(div, x / y, divide(t, a, b))
BINARY(mod, 0, modulo(t, a, b))
BINARY(fmod, fmod(x, y), 0)
BINARY(pow, t == t_f64 ? uir_math_pow_f64(x, y) : (double)uir_math_pow((float)x, (float)y), 0)
BINARY(min, x < y || x != x ? x : y, less(t, a, b) ? a : b)
BINARY(max, x > y || x != x ? x : y, less(t, b, a) ? a : b)
BINARY(maxnum, y > x || x != x ? y : x, 0)
BINARY(and, 0, a &b)
BINARY(or, 0, a | b)
BINARY(xor, 0, a ^ b)
BINARY(shift_left, 0, shift(t, a, b, 1))
BINARY(shift_right, 0, shift(t, a, b, 0))
COMPARE(eq, ==, a == b)
COMPARE(ne, !=, a != b)
COMPARE(lt, <, less(t, a, b))
COMPARE(le, <=, !less(t, b, a))
COMPARE(gt, >, less(t, b, a))
COMPARE(ge, >=, !less(t, a, b))

MACHINE number multiply_add(type t, number a, number b, number c) {
    if (!is_real(t)) return (number){0, (int64_t)((uint64_t)a.whole * (uint64_t)b.whole + (uint64_t)c.whole)};
    if (t == t_f64) return (number){fma(a.real, b.real, c.real), 0};
    return (number){fmaf((float)a.real, (float)b.real, (float)c.real), 0};
}
MACHINE number fma_of(type t, const number *o) {
    return rounded(t, multiply_add(t, o[0], o[1], o[2]));
}
MACHINE number select_of(type t, const number *o) {
    (void)t;
    return o[0].whole ? o[1] : o[2];
}
MACHINE number same_of(type t, const number *o) {
    (void)t;
    return o[0];
}
MACHINE void ternary_fma(type t, view to, view a, view b, view c) {
    apply(fma_of, t, to, 3, (view[]){a, b, c});
}
MACHINE void ternary_select(type t, view to, view condition, view a, view b) {
    apply(select_of, t, to, 3, (view[]){condition, a, b});
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
enum { ROW = 1, COL = 2 };
MACHINE void iota(type t, view to, int axis, int64_t start) {
    int64_t total = total_of(&to), inner = axis == COL ? count_of(&to, to.rank - 1) : 1;
    number *all = make_numbers(total);
    for (int64_t e = 0; e < total; e++) {
        int64_t value = start + (axis <= to.rank ? e / inner % count_of(&to, to.rank - axis) : 0);
        all[e] = rounded(t, (number){(double)value, value});
    }
    scatter(&to, all);
}
MACHINE int64_t whole_of(double x, type to) {
    if (x != x) return 0;
    if (x < -0x1p63) return INT64_MIN;
    if (x < 0x1p63) return (int64_t)x;
    return to != t_u64 ? INT64_MAX : x < 0x1p64 ? (int64_t)(uint64_t)x : -1;
}
MACHINE uint64_t most_of(type t) {
    return UINT64_MAX >> (64 - 8 * type_bytes[t]) >> !is_unsigned(t);
}
MACHINE int64_t least_of(type t) {
    return is_unsigned(t) ? 0 : -(int64_t)most_of(t) - 1;
}
/* Of an integer to f32 rounded once. */
MACHINE number real_of(type from, type to, int64_t whole) {
    if (to == t_f32) return (number){is_unsigned(from) ? (float)(uint64_t)whole : (float)whole, 0};
    return (number){is_unsigned(from) ? (double)(uint64_t)whole : (double)whole, 0};
}
MACHINE number converted(type from, type to, number n, int saturates) {
    if (is_real(to)) return is_real(from) ? n : real_of(from, to, n.whole);
    if (to == t_bool) return (number){0, is_real(from) ? n.real != 0 : n.whole != 0};
    int negative = is_real(from) ? n.real < 0 : !is_unsigned(from) && n.whole < 0;
    int below = is_real(from) ? n.real < (double)least_of(to) : n.whole < least_of(to);
    int above = is_real(from) ? n.real >= (double)most_of(to) : (uint64_t)n.whole > most_of(to);
    if (saturates && negative && below) return (number){0, least_of(to)};
    if (saturates && !negative && above) return (number){0, (int64_t)most_of(to)};
    return (number){0, is_real(from) ? whole_of(n.real, to) : n.whole};
}
MACHINE void cast(type from, type t, view to, view x, int saturates) {
    number *all = make_numbers(total_of(&to)), *old = gather(&x);
    for (int64_t e = 0; e < total_of(&to); e++) all[e] = converted(from, t, old[element_of(&x, &to, e)], saturates);
    free(old);
    scatter(&to, all);
}
MACHINE void bits(type from, type t, view to, view x, int saturates) {
    number *all = make_numbers(total_of(&to)), *old = gather(&x);
    (void)saturates;
    for (int64_t e = 0; e < total_of(&to); e++) {
        int64_t bytes;
        store(from, &bytes, old[element_of(&x, &to, e)]);
        all[e] = load(t, &bytes);
    }
    free(old);
    scatter(&to, all);
}

/* ---- reductions, scans, products ---- */
enum { LANES = 32 };
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
    if (which == LEAST) return (number){-INFINITY, least_of(t)};
    if (which == GREATEST) return (number){INFINITY, (int64_t)most_of(t)};
    return (number){which == ONE, which == ONE};
}
/* A row by 32 lanes, then by halves; a column in order. */
MACHINE number *reduce_lines(operation *f, int identity, type t, int axis, const view *from, number *old,
                             int64_t wanted) {
    lines l = lines_of(from, axis, wanted);
    number *x = gather(from), *all = make_numbers(l.lines), lane[LANES];
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
    number *x = gather(&from), *sums = gather(&carry), *all = make_numbers(total_of(&to));
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

#endif
