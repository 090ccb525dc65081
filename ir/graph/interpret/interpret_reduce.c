/* Reductions, argmax and argmin, scans.
 *
 * Reduced axes are brought innermost first (a strided copy when they are not), so that every reduction is of rows.
 * Floats are accumulated in f64, in an order that only depends on the row's length, and rounded once. */
#include "ir/graph/interpret/interpret.h"
#include <math.h>
#include <string.h>

/* ---- rows ---- */

typedef struct row_reduction {
    uir_op op;
    const uint8_t *source; /* rows of the compute type */
    uint8_t *target;       /* one element of the result dtype per row */
    uir_dtype compute, dtype;
    int64_t rows, length, rows_per_job;
} row_reduction;

enum { LANES = 8 };

/* Sums and products run in LANES chains that are joined at the end. */
#define FOLD_ROW(name, type, wide, start, combine)                                                                     \
    static wide name(const type *xs, int64_t length) {                                                                 \
        wide lanes[LANES];                                                                                             \
        for (int l = 0; l < LANES; l++) lanes[l] = start;                                                              \
        int64_t i = 0;                                                                                                 \
        for (; i + LANES <= length; i += LANES)                                                                        \
            for (int l = 0; l < LANES; l++) {                                                                          \
                wide a = lanes[l], b = (wide)xs[i + l];                                                                \
                lanes[l] = combine;                                                                                    \
            }                                                                                                          \
        for (int l = 0; i < length; i++, l++) {                                                                        \
            wide a = lanes[l], b = (wide)xs[i];                                                                        \
            lanes[l] = combine;                                                                                        \
        }                                                                                                              \
        for (int half = LANES / 2; half; half /= 2)                                                                    \
            for (int l = 0; l < half; l++) {                                                                           \
                wide a = lanes[l], b = lanes[l + half];                                                                \
                lanes[l] = combine;                                                                                    \
            }                                                                                                          \
        return lanes[0];                                                                                               \
    }
#define REAL_MAX (a != a || b != b ? a + b : a > b ? a : b)
#define REAL_MIN (a != a || b != b ? a + b : a < b ? a : b)
/* -0 is what adding changes nothing of: a sum of one element is that element. */
FOLD_ROW(sum_f32, float, double, -0.0, a + b)
FOLD_ROW(prod_f32, float, double, 1, a *b)
FOLD_ROW(max_f32, float, float, -INFINITY, REAL_MAX)
FOLD_ROW(min_f32, float, float, INFINITY, REAL_MIN)
FOLD_ROW(sum_f64, double, double, -0.0, a + b)
FOLD_ROW(prod_f64, double, double, 1, a *b)
FOLD_ROW(max_f64, double, double, -INFINITY, REAL_MAX)
FOLD_ROW(min_f64, double, double, INFINITY, REAL_MIN)
FOLD_ROW(sum_u64, uint64_t, uint64_t, 0, a + b) /* of signed ones too: modulo 2^64 */
FOLD_ROW(prod_u64, uint64_t, uint64_t, 1, a *b)
FOLD_ROW(max_u64, uint64_t, uint64_t, 0, a > b ? a : b)
FOLD_ROW(min_u64, uint64_t, uint64_t, UINT64_MAX, a < b ? a : b)
FOLD_ROW(max_i64, int64_t, int64_t, INT64_MIN, a > b ? a : b)
FOLD_ROW(min_i64, int64_t, int64_t, INT64_MAX, a < b ? a : b)

static double fold_f32(uir_op op, const float *xs, int64_t length) {
    switch (op) {
    case UIR_OP_REDUCE_SUM:
        return length ? sum_f32(xs, length) : 0;
    case UIR_OP_REDUCE_PROD:
        return prod_f32(xs, length);
    case UIR_OP_REDUCE_MAX:
        return max_f32(xs, length);
    default:
        return min_f32(xs, length);
    }
}

static double fold_f64(uir_op op, const double *xs, int64_t length) {
    switch (op) {
    case UIR_OP_REDUCE_SUM:
        return length ? sum_f64(xs, length) : 0;
    case UIR_OP_REDUCE_PROD:
        return prod_f64(xs, length);
    case UIR_OP_REDUCE_MAX:
        return max_f64(xs, length);
    default:
        return min_f64(xs, length);
    }
}

static int64_t fold_integer(uir_op op, const void *xs, int64_t length, bool is_unsigned) {
    switch (op) {
    case UIR_OP_REDUCE_SUM:
        return (int64_t)sum_u64(xs, length);
    case UIR_OP_REDUCE_PROD:
        return (int64_t)prod_u64(xs, length);
    case UIR_OP_REDUCE_MAX:
        return is_unsigned ? (int64_t)max_u64(xs, length) : max_i64(xs, length);
    default:
        return is_unsigned ? (int64_t)min_u64(xs, length) : min_i64(xs, length);
    }
}

/* The result of reducing nothing with max or min: the dtype's least or greatest. */
static void store_empty_extreme(uir_dtype dtype, void *target, int64_t index, bool least) {
    if (uir_dtype_is_float(dtype)) {
        uir_dtype_store_double(dtype, target, (uint64_t)index, least ? -INFINITY : INFINITY, UIR_ROUND_NEAREST_EVEN);
        return;
    }
    int64_t value = dtype == UIR_DTYPE_BOOL ? !least
                    : least                 ? uir_dtype_integer_min(dtype)
                                            : (int64_t)uir_dtype_integer_max(dtype);
    uir_dtype_store_integer(dtype, target, (uint64_t)index, value, false, UIR_ROUND_NEAREST_EVEN);
}

static void reduce_row(const row_reduction *r, int64_t row) {
    const uint8_t *xs = r->source + (size_t)(row * r->length) * (uir_dtype_bits(r->compute) / 8);
    bool extreme = r->op == UIR_OP_REDUCE_MAX || r->op == UIR_OP_REDUCE_MIN;
    if (extreme && !r->length) {
        store_empty_extreme(r->dtype, r->target, row, r->op == UIR_OP_REDUCE_MAX);
    } else if (r->compute == UIR_DTYPE_F32 || r->compute == UIR_DTYPE_F64) {
        double value = r->compute == UIR_DTYPE_F32 ? fold_f32(r->op, (const float *)(const void *)xs, r->length)
                                                   : fold_f64(r->op, (const double *)(const void *)xs, r->length);
        uir_dtype_store_double(r->dtype, r->target, (uint64_t)row, value, UIR_ROUND_NEAREST_EVEN);
    } else {
        bool is_unsigned = r->compute == UIR_DTYPE_U64;
        int64_t value = fold_integer(r->op, xs, r->length, is_unsigned);
        uir_dtype_store_integer(r->dtype, r->target, (uint64_t)row, value, is_unsigned, UIR_ROUND_NEAREST_EVEN);
    }
}

static void reduce_rows(void *user, uint64_t job, uint32_t worker) {
    (void)worker;
    const row_reduction *r = user;
    int64_t row = (int64_t)job * r->rows_per_job, end = row + r->rows_per_job;
    for (; row < end && row < r->rows; row++) reduce_row(r, row);
}

/* ---- rows out of a tensor ---- */

/* The operand's elements in the compute dtype, `reduced` axes innermost. */
typedef struct rows {
    const void *data;
    void *converted, *moved;
    size_t converted_size, moved_size;
    uir_dtype compute;
    int64_t count, length;
} rows;

static void close_rows(uir_call *call, rows *r) {
    uir_call_release(call, r->converted, r->converted_size);
    uir_call_release(call, r->moved, r->moved_size);
}

static uir_status open_rows(uir_call *call, uint32_t reduced, rows *out_rows) {
    const uir_tensor *a = uir_call_tensor(call, 0);
    *out_rows = (rows){.count = 1, .length = 1};
    out_rows->compute = a->dtype == UIR_DTYPE_BOOL ? UIR_DTYPE_U64 : uir_compute_dtype(a->dtype);
    int64_t own[UIR_MAX_RANK], shape[UIR_MAX_RANK], from[UIR_MAX_RANK], to[UIR_MAX_RANK];
    uint32_t at = 0;
    uir_shape_strides(a->shape, a->rank, own);
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t d = 0; d < a->rank; d++) {
            if ((reduced >> d & 1) != (uint32_t)pass) continue;
            shape[at] = a->shape[d];
            from[at++] = own[d];
            *(pass ? &out_rows->length : &out_rows->count) *= a->shape[d];
        }
    UIR_TRY(
        uir_call_convert(call, a, out_rows->compute, &out_rows->data, &out_rows->converted, &out_rows->converted_size));
    uir_shape_strides(shape, a->rank, to);
    bool in_place = true; /* axes of one element may lie anywhere */
    for (uint32_t d = 0; d < a->rank; d++) in_place = in_place && (shape[d] == 1 || from[d] == to[d]);
    if (in_place || !a->element_count) return UIR_STATUS_OK;
    size_t size = uir_dtype_bits(out_rows->compute) / 8;
    out_rows->moved_size = a->element_count * size;
    out_rows->moved = uir_allocate(call->allocator, out_rows->moved_size);
    if (!out_rows->moved) {
        close_rows(call, out_rows);
        return UIR_STATUS_OUT_OF_MEMORY;
    }
    uir_copy_strided(call, out_rows->moved, to, out_rows->data, from, shape, a->rank, size);
    out_rows->data = out_rows->moved;
    return UIR_STATUS_OK;
}

/* The shape with the marked axes removed, or of extent 1 when kept. */
static uint32_t reduced_shape(const uir_tensor *a, uint32_t reduced, bool keep, int64_t *out_shape) {
    uint32_t rank = 0;
    for (uint32_t d = 0; d < a->rank; d++) {
        if (!(reduced >> d & 1))
            out_shape[rank++] = a->shape[d];
        else if (keep)
            out_shape[rank++] = 1;
    }
    return rank;
}

uir_status uir_interpret_reduce(uir_call *call) {
    const uir_tensor *a = uir_call_tensor(call, 0);
    uint32_t count, reduced = 0;
    const int64_t *axes = uir_node_ints(call->module, call->node, "axes", &count);
    for (uint32_t i = 0; i < count; i++) reduced |= 1u << axes[i];
    int64_t shape[UIR_MAX_RANK];
    uint32_t rank = reduced_shape(a, reduced, uir_call_int(call, "keep", 0) != 0, shape);
    uir_tensor *result;
    UIR_TRY(uir_call_create(call, 0, a->dtype, rank, shape, &result));
    rows r;
    UIR_TRY(open_rows(call, reduced, &r));
    row_reduction reduction = {call->node->op, r.data, result->data, r.compute, a->dtype, r.count, r.length, 0};
    /* A multiple of 8 rows, so that packed results of two jobs share no byte. */
    reduction.rows_per_job = (1 + (int64_t)(32768 / ((uint64_t)r.length + 1)) + 7) / 8 * 8;
    uint64_t jobs = (uint64_t)((r.count + reduction.rows_per_job - 1) / reduction.rows_per_job);
    uir_call_parallel(call, jobs, (uint64_t)r.count * ((uint64_t)r.length + 1), reduce_rows, &reduction);
    close_rows(call, &r);
    return UIR_STATUS_OK;
}

/* ---- argmax, argmin ---- */

/* Whether b beats a: NaN beats every number and no NaN. */
#define ARG_ROW(name, type, beats)                                                                                     \
    static int64_t name(const type *xs, int64_t length, bool greatest, bool last) {                                    \
        int64_t best = 0;                                                                                              \
        for (int64_t i = 1; i < length; i++) {                                                                         \
            type a = xs[best], b = xs[i];                                                                              \
            bool wins = beats, tie = a == b || (a != a && b != b);                                                     \
            if (wins || (last && tie)) best = i;                                                                       \
        }                                                                                                              \
        return best;                                                                                                   \
    }
#define REAL_BEATS    (a != a ? false : b != b ? true : greatest ? b > a : b < a)
#define INTEGER_BEATS (greatest ? b > a : b < a)
ARG_ROW(arg_f32, float, REAL_BEATS)
ARG_ROW(arg_f64, double, REAL_BEATS)
ARG_ROW(arg_i64, int64_t, INTEGER_BEATS)
ARG_ROW(arg_u64, uint64_t, INTEGER_BEATS)

uir_status uir_interpret_arg(uir_call *call) {
    const uir_tensor *a = uir_call_tensor(call, 0);
    uint32_t axis = (uint32_t)uir_call_int(call, "axis", 0);
    bool greatest = call->node->op == UIR_OP_ARG_MAX, last = uir_call_int(call, "last", 0) != 0;
    int64_t shape[UIR_MAX_RANK];
    uint32_t rank = reduced_shape(a, 1u << axis, uir_call_int(call, "keep", 0) != 0, shape);
    uir_tensor *result;
    UIR_TRY(uir_call_create(call, 0, UIR_DTYPE_I64, rank, shape, &result));
    if (!result->element_count) return UIR_STATUS_OK;
    if (!a->shape[axis]) return uir_call_fail(call, UIR_STATUS_BAD_DATA, "axis %u has no elements", axis);
    rows r;
    UIR_TRY(open_rows(call, 1u << axis, &r));
    int64_t *indices = result->data;
    for (int64_t row = 0; row < r.count; row++) {
        int64_t at = row * r.length;
        indices[row] = r.compute == UIR_DTYPE_F32   ? arg_f32((const float *)r.data + at, r.length, greatest, last)
                       : r.compute == UIR_DTYPE_F64 ? arg_f64((const double *)r.data + at, r.length, greatest, last)
                       : r.compute == UIR_DTYPE_I64 ? arg_i64((const int64_t *)r.data + at, r.length, greatest, last)
                                                    : arg_u64((const uint64_t *)r.data + at, r.length, greatest, last);
    }
    close_rows(call, &r);
    return UIR_STATUS_OK;
}

/* ---- scans ---- */

/* One line of elements `stride` apart. What has been accumulated is rounded for each result, never for the next step.
 */
static void scan_line(uir_dtype dtype, bool product, const void *source, void *target, int64_t start, int64_t stride,
                      int64_t length, bool exclusive) {
    bool real = uir_dtype_is_float(dtype), is_unsigned = uir_dtype_get_class(dtype) == UIR_DTYPE_CLASS_UNSIGNED;
    double sum = product ? 1 : 0;
    uint64_t integer = product ? 1 : 0;
    for (int64_t i = 0; i < length; i++) {
        uint64_t at = (uint64_t)(start + i * stride);
        double x = real ? uir_dtype_load_double(dtype, source, at) : 0;
        uint64_t n = real ? 0 : (uint64_t)uir_dtype_load_integer(dtype, source, at);
        double next = product ? sum * x : sum + x;
        uint64_t next_integer = product ? integer * n : integer + n;
        if (real)
            uir_dtype_store_double(dtype, target, at, exclusive ? sum : next, UIR_ROUND_NEAREST_EVEN);
        else
            uir_dtype_store_integer(dtype, target, at, (int64_t)(exclusive ? integer : next_integer), is_unsigned,
                                    UIR_ROUND_NEAREST_EVEN);
        sum = next;
        integer = next_integer;
    }
}

uir_status uir_interpret_scan(uir_call *call) {
    const uir_tensor *a = uir_call_tensor(call, 0);
    uint32_t axis = (uint32_t)uir_call_int(call, "axis", 0);
    bool exclusive = uir_call_int(call, "exclusive", 0) != 0, reverse = uir_call_int(call, "reverse", 0) != 0;
    uir_tensor *result;
    UIR_TRY(uir_call_create(call, 0, a->dtype, a->rank, a->shape, &result));
    int64_t strides[UIR_MAX_RANK], length = a->shape[axis];
    uir_shape_strides(a->shape, a->rank, strides);
    if (!a->element_count) return UIR_STATUS_OK;
    int64_t stride = strides[axis], lines = (int64_t)a->element_count / length;
    for (int64_t line = 0; line < lines; line++) {
        int64_t start = line / stride * stride * length + line % stride;
        if (reverse) start += (length - 1) * stride;
        scan_line(a->dtype, call->node->op == UIR_OP_SCAN_PROD, a->data, result->data, start,
                  reverse ? -stride : stride, length, exclusive);
        if (uir_call_cancelled(call)) return UIR_STATUS_CANCELLED;
    }
    return UIR_STATUS_OK;
}
