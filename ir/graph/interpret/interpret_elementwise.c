/* Elementwise primitives: a loop per formula of formulas.def and compute type; other dtypes are converted in blocks. */
#include "ir/graph/interpret/interpret.h"
#include <math.h>
#include <string.h>

/* In place the result is an operand: equal addresses are no hazard, which the compiler cannot know. */
#if defined(__GNUC__) && !defined(__clang__)
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#endif

/* ---- what the formulas call ---- */

static float sigmoid_f32(float x) {
    float e = expf(-fabsf(x)); /* at most 1: nothing overflows */
    return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

static double sigmoid_f64(double x) {
    double e = exp(-fabs(x));
    return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

/* The remainder with the sign of the divisor. */
static double modulo_f64(double a, double b) {
    double r = fmod(a, b);
    if (r == 0) return copysign(0.0, b);
    return (r < 0) != (b < 0) ? r + b : r;
}

static float modulo_f32(float a, float b) {
    float r = fmodf(a, b);
    if (r == 0) return copysignf(0.0f, b);
    return (r < 0) != (b < 0) ? r + b : r;
}

static int64_t remainder_i64(int64_t a, int64_t b) {
    return b == 0 || b == -1 ? 0 : a % b;
}
static uint64_t remainder_u64(uint64_t a, uint64_t b) {
    return b == 0 ? 0 : a % b;
}
static int64_t modulo_i64(int64_t a, int64_t b) {
    int64_t r = remainder_i64(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
static uint64_t modulo_u64(uint64_t a, uint64_t b) {
    return remainder_u64(a, b);
}

static uint64_t power_u64(uint64_t a, uint64_t b) {
    uint64_t result = 1;
    for (; b; b >>= 1, a *= a)
        if (b & 1) result *= a;
    return result;
}
/* A negative exponent: 1/a^n toward zero; of 0 it is defined as 0. */
static int64_t power_i64(int64_t a, int64_t b) {
    if (b >= 0) return (int64_t)power_u64((uint64_t)a, (uint64_t)b);
    return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
}

/* By the width or more, or by less than 0: all bits are the sign's. */
static int64_t shift_right_i64(int64_t a, int64_t b) {
    int64_t shift = b < 0 || b > 63 ? 63 : b;
    return a >= 0 ? a >> shift : ~(~a >> shift);
}
static uint64_t shift_right_u64(uint64_t a, uint64_t b) {
    return b > 63 ? 0 : a >> b;
}

/* ---- kernels ---- */

/* Operands and result are arrays of the compute type (a bool result: of bytes). */
typedef void (*kernel)(const void *const *operands, void *result, int64_t count, const bool *flags);

#define KERNEL_UNARY(name, type, result_type, formula)                                                                 \
    static void name(const void *const *operands, void *result, int64_t count, const bool *flags) {                    \
        typedef type T;                                                                                                \
        const T *xs = operands[0];                                                                                     \
        result_type *rs = result;                                                                                      \
        (void)flags;                                                                                                   \
        INDEPENDENT for (int64_t i = 0; i < count; i++) {                                                              \
            T x = xs[i];                                                                                               \
            rs[i] = (result_type)(formula);                                                                            \
        }                                                                                                              \
    }
#define KERNEL_BINARY(name, type, result_type, formula)                                                                \
    static void name(const void *const *operands, void *result, int64_t count, const bool *flags) {                    \
        typedef type T;                                                                                                \
        const T *as = operands[0], *bs = operands[1];                                                                  \
        result_type *rs = result;                                                                                      \
        (void)flags;                                                                                                   \
        INDEPENDENT for (int64_t i = 0; i < count; i++) {                                                              \
            T a = as[i], b = bs[i];                                                                                    \
            rs[i] = (result_type)(formula);                                                                            \
        }                                                                                                              \
    }

/* F(name) is the function of that name for the compute type: C's own float ones end in f, ours in the dtype. */
#define fabs_f32 fabsf
#define fabs_f64 fabs
#define F32_MATH(name)                                                                                                 \
    static inline float name##_f32(float x) {                                                                          \
        return name##f(x);                                                                                             \
    }                                                                                                                  \
    static inline double name##_f64(double x) {                                                                        \
        return name(x);                                                                                                \
    }
F32_MATH(floor)
F32_MATH(ceil)
F32_MATH(nearbyint)
F32_MATH(trunc)
F32_MATH(sqrt)
F32_MATH(exp)
F32_MATH(log)
F32_MATH(log1p)
F32_MATH(erf)
F32_MATH(tanh)
F32_MATH(sin)
F32_MATH(cos)
F32_MATH(tan)
F32_MATH(asin)
F32_MATH(acos)
F32_MATH(atan)
F32_MATH(sinh)
F32_MATH(cosh)
F32_MATH(asinh)
F32_MATH(acosh)
F32_MATH(atanh)
static inline float fmod_f32(float a, float b) {
    return fmodf(a, b);
}
static inline double fmod_f64(double a, double b) {
    return fmod(a, b);
}
/* 1^y and x^0 are 1 for a signalling NaN too, of which a library makes a NaN. */
static inline float pow_f32(float a, float b) {
    return a == 1 || b == 0 ? 1 : powf(a, b);
}
static inline double pow_f64(double a, double b) {
    return a == 1 || b == 0 ? 1 : pow(a, b);
}

#define U(x) ((uint64_t)(x))

#define F(name)                        name##_f32
#define UIR_FLOAT_UNARY(op, formula)   KERNEL_UNARY(f32_##op, float, float, formula)
#define UIR_FLOAT_TEST(op, formula)    KERNEL_UNARY(f32_##op, float, uint8_t, formula)
#define UIR_FLOAT_BINARY(op, formula)  KERNEL_BINARY(f32_##op, float, float, formula)
#define UIR_FLOAT_COMPARE(op, formula) KERNEL_BINARY(f32_##op, float, uint8_t, formula)
#include "ir/graph/interpret/formulas.def"
#undef F
#define F(name)                        name##_f64
#define UIR_FLOAT_UNARY(op, formula)   KERNEL_UNARY(f64_##op, double, double, formula)
#define UIR_FLOAT_TEST(op, formula)    KERNEL_UNARY(f64_##op, double, uint8_t, formula)
#define UIR_FLOAT_BINARY(op, formula)  KERNEL_BINARY(f64_##op, double, double, formula)
#define UIR_FLOAT_COMPARE(op, formula) KERNEL_BINARY(f64_##op, double, uint8_t, formula)
#include "ir/graph/interpret/formulas.def"
#undef F
#define F(name)                          name##_i64
#define UIR_INTEGER_UNARY(op, formula)   KERNEL_UNARY(i64_##op, int64_t, int64_t, formula)
#define UIR_INTEGER_BINARY(op, formula)  KERNEL_BINARY(i64_##op, int64_t, int64_t, formula)
#define UIR_INTEGER_COMPARE(op, formula) KERNEL_BINARY(i64_##op, int64_t, uint8_t, formula)
#include "ir/graph/interpret/formulas.def"
#undef F
/* The same formulas on unsigned numbers: that nothing is below 0 is no news there. */
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtype-limits"
#endif
#define F(name)                          name##_u64
#define UIR_INTEGER_UNARY(op, formula)   KERNEL_UNARY(u64_##op, uint64_t, uint64_t, formula)
#define UIR_INTEGER_BINARY(op, formula)  KERNEL_BINARY(u64_##op, uint64_t, uint64_t, formula)
#define UIR_INTEGER_COMPARE(op, formula) KERNEL_BINARY(u64_##op, uint64_t, uint8_t, formula)
#include "ir/graph/interpret/formulas.def"
#undef F
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
#define UIR_BOOL_UNARY(op, formula)  KERNEL_UNARY(bool_##op, uint8_t, uint8_t, formula)
#define UIR_BOOL_BINARY(op, formula) KERNEL_BINARY(bool_##op, uint8_t, uint8_t, formula)
#include "ir/graph/interpret/formulas.def"

static const kernel float_kernels[UIR_OP_COUNT] = {
#define UIR_FLOAT_UNARY(op, formula)   [UIR_OP_##op] = f32_##op,
#define UIR_FLOAT_TEST(op, formula)    [UIR_OP_##op] = f32_##op,
#define UIR_FLOAT_BINARY(op, formula)  [UIR_OP_##op] = f32_##op,
#define UIR_FLOAT_COMPARE(op, formula) [UIR_OP_##op] = f32_##op,
#include "ir/graph/interpret/formulas.def"
};
static const kernel double_kernels[UIR_OP_COUNT] = {
#define UIR_FLOAT_UNARY(op, formula)   [UIR_OP_##op] = f64_##op,
#define UIR_FLOAT_TEST(op, formula)    [UIR_OP_##op] = f64_##op,
#define UIR_FLOAT_BINARY(op, formula)  [UIR_OP_##op] = f64_##op,
#define UIR_FLOAT_COMPARE(op, formula) [UIR_OP_##op] = f64_##op,
#include "ir/graph/interpret/formulas.def"
};
static const kernel signed_kernels[UIR_OP_COUNT] = {
#define UIR_INTEGER_UNARY(op, formula)   [UIR_OP_##op] = i64_##op,
#define UIR_INTEGER_BINARY(op, formula)  [UIR_OP_##op] = i64_##op,
#define UIR_INTEGER_COMPARE(op, formula) [UIR_OP_##op] = i64_##op,
#include "ir/graph/interpret/formulas.def"
};
static const kernel unsigned_kernels[UIR_OP_COUNT] = {
#define UIR_INTEGER_UNARY(op, formula)   [UIR_OP_##op] = u64_##op,
#define UIR_INTEGER_BINARY(op, formula)  [UIR_OP_##op] = u64_##op,
#define UIR_INTEGER_COMPARE(op, formula) [UIR_OP_##op] = u64_##op,
#include "ir/graph/interpret/formulas.def"
};
static const kernel bool_kernels[UIR_OP_COUNT] = {
#define UIR_BOOL_UNARY(op, formula)  [UIR_OP_##op] = bool_##op,
#define UIR_BOOL_BINARY(op, formula) [UIR_OP_##op] = bool_##op,
#include "ir/graph/interpret/formulas.def"
};

static kernel find_kernel(uir_op op, uir_dtype compute) {
    switch (compute) {
    case UIR_DTYPE_F32:
        return float_kernels[op];
    case UIR_DTYPE_F64:
        return double_kernels[op];
    case UIR_DTYPE_I64:
        return signed_kernels[op];
    case UIR_DTYPE_U64:
        return unsigned_kernels[op];
    case UIR_DTYPE_BOOL:
        return bool_kernels[op];
    default:
        return NULL;
    }
}

/* ---- running a kernel over tensors ---- */

/* Elements of a block; a multiple of 8, so that blocks of packed elements begin at a byte. */
enum { BLOCK = 1024, BLOCKS_PER_JOB = 16 };

typedef struct elementwise {
    kernel run;
    uint32_t operand_count;
    const uint8_t *operands[2];
    uint8_t *result;
    uir_dtype dtype, compute, result_dtype; /* result_dtype: dtype, or bool */
    int64_t count;
    bool flags[2];
} elementwise;

static size_t byte_offset(uir_dtype dtype, int64_t index) {
    return (size_t)index / 8 * uir_dtype_bits(dtype); /* index is a multiple of 8 */
}

static void run_block(const elementwise *e, int64_t start, int64_t count) {
    uint64_t buffers[3][BLOCK];
    const void *operands[2];
    for (uint32_t i = 0; i < e->operand_count; i++) {
        operands[i] = e->operands[i] + byte_offset(e->dtype, start);
        if (e->dtype == e->compute) continue;
        /* Numbers convert; the status is only about dtypes that are none. */
        (void)!uir_dtype_convert(e->dtype, operands[i], e->compute, buffers[i], (uint64_t)count,
                                 UIR_ROUND_NEAREST_EVEN);
        operands[i] = buffers[i];
    }
    uint8_t *result = e->result + byte_offset(e->result_dtype, start);
    bool direct = e->dtype == e->compute || e->result_dtype != e->dtype;
    e->run(operands, direct ? (void *)result : buffers[2], count, e->flags);
    if (!direct)
        (void)!uir_dtype_convert(e->compute, buffers[2], e->dtype, result, (uint64_t)count, UIR_ROUND_NEAREST_EVEN);
}

static void run_job(void *user, uint64_t job, uint32_t worker) {
    (void)worker;
    const elementwise *e = user;
    int64_t start = (int64_t)job * BLOCK * BLOCKS_PER_JOB, end = start + BLOCK * BLOCKS_PER_JOB;
    if (end > e->count) end = e->count;
    if (e->dtype == e->compute) {
        run_block(e, start, end - start);
        return;
    }
    for (; start < end; start += BLOCK) run_block(e, start, end - start < BLOCK ? end - start : BLOCK);
}

/* Creates the result like operand 0 in shape, or takes over an operand that dies here. */
static uir_status make_result(uir_call *call, uir_dtype dtype, uir_tensor **out_tensor) {
    for (uint32_t i = 0; i < call->node->input_count; i++) {
        uir_tensor *taken = uir_call_take(call, i);
        if (!taken || taken->dtype != dtype || dtype == UIR_DTYPE_STRING) continue;
        uir_datum_retain(call->inputs[i]);
        *out_tensor = taken;
        return uir_call_set(call, 0, call->inputs[i]);
    }
    const uir_tensor *a = uir_call_tensor(call, 0);
    return uir_call_create(call, 0, dtype, a->rank, a->shape, out_tensor);
}

/* Operands of equal shape; what differs is a size that the module took to be equal. */
static uir_status check_shapes(uir_call *call) {
    const uir_tensor *a = uir_call_tensor(call, 0);
    for (uint32_t i = 1; i < call->node->input_count; i++) {
        const uir_tensor *b = uir_call_tensor(call, i);
        if (b->rank != a->rank || memcmp(b->shape, a->shape, a->rank * sizeof *a->shape)) {
            char left[200], right[200];
            uir_tensor_describe(a, left, sizeof left);
            uir_tensor_describe(b, right, sizeof right);
            return uir_call_fail(call, UIR_STATUS_BAD_DATA, "operands %s and %s do not match", left, right);
        }
    }
    return UIR_STATUS_OK;
}

static bool equal_views(const uir_string_view *a, const uir_string_view *b) {
    return a->length == b->length && (!a->length || !memcmp(a->text, b->text, a->length));
}

static uir_status compare_strings(uir_call *call) {
    const uir_tensor *a = uir_call_tensor(call, 0), *b = uir_call_tensor(call, 1);
    const uir_string_view *as = a->data, *bs = b->data;
    uir_tensor *result;
    UIR_TRY(uir_call_create(call, 0, UIR_DTYPE_BOOL, a->rank, a->shape, &result));
    uint8_t *rs = result->data;
    for (uint64_t i = 0; i < a->element_count; i++)
        rs[i] = equal_views(&as[i], &bs[i]) == (call->node->op == UIR_OP_EQ);
    return UIR_STATUS_OK;
}

static uir_status run_elementwise(uir_call *call) {
    UIR_TRY(check_shapes(call));
    const uir_tensor *a = uir_call_tensor(call, 0), *b = uir_call_tensor(call, 1);
    bool comparison = uir_op_get_row(call->node->op)->traits & UIR_TRAIT_COMPARISON;
    if (a->dtype == UIR_DTYPE_STRING) return compare_strings(call);
    elementwise e = {
        .operand_count = call->node->input_count,
        .operands = {a->data, b ? b->data : NULL},
        .dtype = a->dtype,
        .compute = uir_compute_dtype(a->dtype),
        .result_dtype = comparison ? UIR_DTYPE_BOOL : a->dtype,
        .count = (int64_t)a->element_count,
        .flags = {uir_call_int(call, "positive", 1) != 0, uir_call_int(call, "negative", 1) != 0},
    };
    e.run = find_kernel(call->node->op, e.compute);
    if (!e.run)
        return uir_call_fail(call, UIR_STATUS_UNSUPPORTED, "element type %s is not supported",
                             uir_dtype_name(a->dtype));
    uir_tensor *result;
    UIR_TRY(make_result(call, e.result_dtype, &result));
    e.result = result->data;
    uint64_t jobs = (uint64_t)(e.count + BLOCK * BLOCKS_PER_JOB - 1) / (BLOCK * BLOCKS_PER_JOB);
    uir_call_parallel(call, jobs, (uint64_t)e.count * 2, run_job, &e);
    return UIR_STATUS_OK;
}

uir_status uir_interpret_unary(uir_call *call) {
    return run_elementwise(call);
}
uir_status uir_interpret_binary(uir_call *call) {
    return run_elementwise(call);
}

/* ---- select ---- */

#define SELECT_LOOP(type)                                                                                              \
    static void select_##type(const uint8_t *c, const void *a, const void *b, void *r, uint64_t count) {               \
        const type *as = a, *bs = b;                                                                                   \
        type *rs = r;                                                                                                  \
        INDEPENDENT for (uint64_t i = 0; i < count; i++) rs[i] = c[i] ? as[i] : bs[i];                                 \
    }
SELECT_LOOP(uint8_t)
SELECT_LOOP(uint16_t)
SELECT_LOOP(uint32_t)
SELECT_LOOP(uint64_t)

uir_status uir_interpret_select(uir_call *call) {
    UIR_TRY(check_shapes(call));
    const uir_tensor *c = uir_call_tensor(call, 0), *a = uir_call_tensor(call, 1), *b = uir_call_tensor(call, 2);
    uir_elements as = {0}, bs = {0}, rs = {0};
    uir_tensor *result;
    UIR_TRY(uir_call_create(call, 0, a->dtype, a->rank, a->shape, &result));
    uir_status status = uir_elements_open(call, a, &as);
    if (status == UIR_STATUS_OK) status = uir_elements_open(call, b, &bs);
    if (status == UIR_STATUS_OK) status = uir_elements_open_result(call, result, false, &rs);
    if (status == UIR_STATUS_OK) {
        const uint8_t *cs = c->data;
        uint64_t count = c->element_count;
        size_t size = rs.size ? rs.size : 1;
        if (size == 1)
            select_uint8_t(cs, as.data, bs.data, rs.data, count);
        else if (size == 2)
            select_uint16_t(cs, as.data, bs.data, rs.data, count);
        else if (size == 4)
            select_uint32_t(cs, as.data, bs.data, rs.data, count);
        else if (size == 8)
            select_uint64_t(cs, as.data, bs.data, rs.data, count);
        else
            for (uint64_t i = 0; i < count; i++)
                memcpy(rs.data + i * size, (cs[i] ? as.data : bs.data) + i * size, size);
        status = uir_elements_close_result(call, result, &rs);
    }
    uir_elements_close(call, &as);
    uir_elements_close(call, &bs);
    return status;
}

/* ---- casts ---- */

typedef struct cast_job {
    const uint8_t *source;
    uint8_t *target;
    uir_dtype from, to;
    int64_t count;
    uir_rounding rounding;
} cast_job;

static void run_cast(void *user, uint64_t job, uint32_t worker) {
    (void)worker;
    const cast_job *c = user;
    int64_t start = (int64_t)job * BLOCK * BLOCKS_PER_JOB, count = c->count - start;
    if (count > BLOCK * BLOCKS_PER_JOB) count = BLOCK * BLOCKS_PER_JOB;
    (void)!uir_dtype_convert(c->from, c->source + byte_offset(c->from, start), c->to,
                             c->target + byte_offset(c->to, start), (uint64_t)count, c->rounding);
}

uir_status uir_interpret_cast(uir_call *call) {
    const uir_tensor *a = uir_call_tensor(call, 0);
    uir_dtype to = uir_node_dtype(call->module, call->node, "to", UIR_DTYPE_NONE);
    if (a->dtype == to) { /* the same value */
        uir_datum_retain(call->inputs[0]);
        return uir_call_set(call, 0, call->inputs[0]);
    }
    if (a->dtype == UIR_DTYPE_STRING || to == UIR_DTYPE_STRING) return uir_interpret_cast_string(call, to);
    uir_tensor *result;
    UIR_TRY(uir_call_create(call, 0, to, a->rank, a->shape, &result));
    const char *mode = uir_node_string(call->module, call->node, "round_mode", "up");
    int rounding = uir_call_int(call, "saturate", 1) ? UIR_ROUND_SATURATE : UIR_ROUND_NEAREST_EVEN;
    if (!strcmp(mode, "down")) rounding |= UIR_ROUND_E8M0_DOWN;
    if (!strcmp(mode, "nearest")) rounding |= UIR_ROUND_E8M0_NEAREST;
    cast_job c = {a->data, result->data, a->dtype, to, (int64_t)a->element_count, (uir_rounding)rounding};
    uint64_t jobs = (a->element_count + BLOCK * BLOCKS_PER_JOB - 1) / (BLOCK * BLOCKS_PER_JOB);
    uir_call_parallel(call, jobs, a->element_count * 2, run_cast, &c);
    return UIR_STATUS_OK;
}

uir_status uir_interpret_bit_cast(uir_call *call) {
    const uir_tensor *a = uir_call_tensor(call, 0);
    uir_tensor *result;
    UIR_TRY(uir_call_create(call, 0, uir_node_dtype(call->module, call->node, "to", UIR_DTYPE_NONE), a->rank, a->shape,
                            &result));
    if (a->byte_size) memcpy(result->data, a->data, a->byte_size);
    return UIR_STATUS_OK;
}

/* ---- for other interpreters ---- */

bool uir_elementwise_apply(uir_op op, uir_dtype dtype, const void *const *operands, void *result, int64_t count) {
    const uir_op_row *row = uir_op_get_row(op);
    elementwise e = {
        .run = find_kernel(op, uir_compute_dtype(dtype)),
        .operand_count = row->traits & UIR_TRAIT_UNARY ? 1 : 2,
        .operands = {operands[0], row->traits & UIR_TRAIT_UNARY ? NULL : operands[1]},
        .result = result,
        .dtype = dtype,
        .compute = uir_compute_dtype(dtype),
        .result_dtype = row->traits & UIR_TRAIT_COMPARISON ? UIR_DTYPE_BOOL : dtype,
        .flags = {true, true},
    };
    if (!e.run) return false;
    for (int64_t start = 0; start < count; start += BLOCK)
        run_block(&e, start, count - start < BLOCK ? count - start : BLOCK);
    return true;
}
