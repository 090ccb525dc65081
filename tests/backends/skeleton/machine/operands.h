/* Of the machine that does not exist: numbers of every type, arrays, and operands, which name some of an array's
 * elements. */
#ifndef NULL_OPERANDS_H
#define NULL_OPERANDS_H

#include "ir/kernel/interpret/kernel_math.h"

#include <stdlib.h>

#define MACHINE static __attribute__((unused))

/* ---- types ---- */
__extension__ typedef _Float16 half;
typedef struct bf16 {
    uint16_t bits;
} bf16;
/* Those of which a number is `real`, then those of which it is `whole`. */
#define REAL_TYPES(row) row(f32, float) row(f64, double) row(f16, half)
#define WHOLE_TYPES(row)                                                                                               \
    row(bool, uint8_t) row(i8, int8_t) row(u8, uint8_t) row(i16, int16_t) row(u16, uint16_t) row(i32, int32_t)         \
        row(u32, uint32_t) row(i64, int64_t) row(u64, uint64_t)
#define TYPE_NAME(t, c)  t_##t,
#define TYPE_BYTES(t, c) sizeof(c),
typedef enum type { REAL_TYPES(TYPE_NAME) t_bf16, WHOLE_TYPES(TYPE_NAME) } type;
static const int type_bytes[] = {REAL_TYPES(TYPE_BYTES) sizeof(bf16), WHOLE_TYPES(TYPE_BYTES)};

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
MACHINE bf16 to_bf16(double value) {
    float f = (float)value;
    uint32_t bits = (uint32_t)uir_math_bits(f);
    if (value != value) return (bf16){0x7fc0};
    if ((double)f != value && f - f == 0) bits = (bits - (fabs((double)f) > fabs(value))) | 1;
    return (bf16){(uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
MACHINE double from_bf16(bf16 value) {
    return (double)uir_math_value((int32_t)((uint32_t)value.bits << 16));
}

MACHINE number load(type t, const void *p) {
#define LOAD_REAL(t, c)                                                                                                \
    case t_##t:                                                                                                        \
        return (number){(double)*(const c *)p, 0};
#define LOAD_WHOLE(t, c)                                                                                               \
    case t_##t:                                                                                                        \
        return (number){0, (int64_t) * (const c *)p};
    switch (t) {
        REAL_TYPES(LOAD_REAL)
        WHOLE_TYPES(LOAD_WHOLE)
    case t_bf16:
        return (number){from_bf16(*(const bf16 *)p), 0};
    }
    return (number){0, 0};
}
MACHINE void store(type t, void *p, number n) {
#define STORE_REAL(t, c)                                                                                               \
    case t_##t:                                                                                                        \
        *(c *)p = (c)n.real;                                                                                           \
        break;
#define STORE_WHOLE(t, c)                                                                                              \
    case t_##t:                                                                                                        \
        *(c *)p = (c)n.whole;                                                                                          \
        break;
    if (t == t_bool) n.whole = n.whole != 0;
    switch (t) {
        REAL_TYPES(STORE_REAL)
        WHOLE_TYPES(STORE_WHOLE)
    case t_bf16:
        *(bf16 *)p = to_bf16(n.real);
    }
}
/* As the type holds it; what is narrower than f32 was computed in f32. */
MACHINE number rounded(type t, number n) {
    int64_t bytes;
    if (is_real(t) && t != t_f64) n.real = (float)n.real;
    store(t, &bytes, n);
    return load(t, &bytes);
}
MACHINE number number_of(type t, double value) {
    return rounded(t, (number){value, is_real(t) ? 0 : (int64_t)value});
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
    int64_t first;       /* address of element 0, in elements */
    const int64_t *list; /* the elements' addresses, row-major, OUTSIDE for none; NULL: as the dims say */
    int rank;
    dim dims[8];
    int filled, absent, repeats;
    double fill;
} view;
enum { OUTSIDE = -1 };

#define ALL               0, INT64_MAX
#define PART(from, until) from, until
#define MODES(...)                                                                                                     \
    sizeof((mode[]){__VA_ARGS__}) / sizeof(mode), {                                                                    \
        __VA_ARGS__                                                                                                    \
    }
#define DIM(count, there, ...)                                                                                         \
    { count, there, MODES(__VA_ARGS__) }
#define VIEW(array, first, list, ...)                                                                                  \
    ((view){array, first, list, sizeof((dim[]){__VA_ARGS__}) / sizeof(dim), {__VA_ARGS__}, 0, 0, 0, 0})
#define SWIZZLE(at, bits, base, shift) ((at) ^ ((at) >> (shift) & ((((int64_t)1 << (bits)) - 1) << (base))))
#define NUMBER(t, value)               VIEW(((array){t, number_bytes(t, value, (int64_t[1]){0})}), 0, NULL, DIM(1, ALL, {1, 0}))
MACHINE view FILLED(double value, view v) {
    return v.filled = 1, v.fill = value, v;
}
MACHINE view ONLY_IF(int there, view v) {
    return v.absent = !there, v;
}
MACHINE view REPEATED(view v) {
    return v.repeats = 1, v;
}
MACHINE char *number_bytes(type t, double value, int64_t *bytes) {
    store(t, bytes, number_of(t, value));
    return (char *)bytes;
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
MACHINE number *make_numbers(int64_t count) {
    return calloc((size_t)count + 1, sizeof(number));
}
/* All elements, row-major; the caller frees. */
MACHINE number *gather(const view *v) {
    int64_t total = total_of(v);
    number *all = make_numbers(total);
    for (int64_t e = 0; e < total; e++) {
        int64_t at = address_of(v, e);
        if (at >= 0)
            all[e] = load(v->of.type, v->of.data + at * type_bytes[v->of.type]);
        else if (v->filled)
            all[e] = number_of(v->of.type, v->fill);
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
/* Which element of an operand goes with an element of the result: shapes align at their last dims, 1 broadcasts. */
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

#endif
