/* Host operators: what no kernel computes, because the size or order of the result depends on the data. */
#include "runtime/internal.h"

#include <string.h>

const uir_plan_attribute *uir_rt_find_attribute(const uir_runtime *r, uint32_t step, const char *name) {
    const uir_plan_step *s = &r->plan->steps[step];
    for (uint32_t i = 0; i < s->attribute_count; i++) {
        const uir_plan_attribute *a = &r->plan->attributes[s->first_attribute + i];
        if (!strcmp(uir_plan_get_text(r->plan, a->name), name)) return a;
    }
    return NULL;
}

int64_t uir_rt_attribute_int(const uir_runtime *r, uint32_t step, const char *name, int64_t fallback) {
    const uir_plan_attribute *a = uir_rt_find_attribute(r, step, name);
    int64_t value;
    if (!a || a->count == 0) return fallback;
    if (a->kind == UIR_PLAN_INTEGERS) return r->plan->integers[a->first].value;
    if (a->kind != UIR_PLAN_SIZES) return fallback;
    return uir_plan_evaluate(r->plan, r->plan->words[a->first].value, r->values, r->bound, &value) ? value : fallback;
}

uir_status uir_rt_host_operand(uir_runtime *r, uint32_t step, uint32_t k, uint32_t *out_tensor, char **out_data) {
    *out_tensor = uir_plan_get_word(r->plan, r->plan->steps[step].inputs, k);
    return uir_rt_locate_host(r, *out_tensor, out_data);
}

/* ---- non_zero ---- */
static bool is_set(uir_dtype dtype, const char *data, uint64_t i) {
    if (uir_dtype_is_float(dtype)) return uir_dtype_load_double(dtype, data, i) != 0;
    return uir_dtype_load_integer(dtype, data, i) != 0;
}

/* Long work asks now and then whether it is still wanted. */
static bool is_cancelled(const uir_runtime *r, uint64_t i) {
    return i % RT_POLL == 0 && uir_rt_cancelled(r);
}

static uir_status non_zero(uir_runtime *r, uint32_t step) {
    uint32_t x;
    char *data, *result;
    UIR_TRY(uir_rt_host_operand(r, step, 0, &x, &data));
    uir_dtype dtype = (uir_dtype)r->plan->tensors[x].dtype;
    uint32_t rank = uir_rt_rank(r, x), rows = rank ? rank : 1;
    const int64_t *shape = uir_rt_shape(r, x);
    uint64_t count = 1;
    int64_t found = 0;
    (void)uir_shape_element_count(shape, rank, &count);
    for (uint64_t i = 0; i < count; i++) {
        if (is_cancelled(r, i)) return UIR_STATUS_CANCELLED;
        found += is_set(dtype, data, i);
    }
    int64_t result_shape[2] = {rows, found};
    UIR_TRY(uir_rt_give_host_output(r, step, 0, result_shape, &result));
    int64_t *out = (int64_t *)(void *)result, n = 0;
    for (uint64_t i = 0; i < count && n < found; i++) {
        if (is_cancelled(r, i)) return UIR_STATUS_CANCELLED;
        if (!is_set(dtype, data, i)) continue;
        uint64_t rest = i;
        for (uint32_t d = rows; d-- > 0;) {
            uint64_t extent = rank ? (uint64_t)shape[d] : 1;
            out[(int64_t)d * found + n] = (int64_t)(rest % extent);
            rest /= extent;
        }
        n++;
    }
    return UIR_STATUS_OK;
}

/* ---- top_k ---- */
enum { AT_ONCE = 1 << 16 /* elements between looks at the wish to stop */ };

typedef struct line {
    const uir_runtime *r;
    uir_dtype dtype;
    const char *data;
    int64_t first, stride; /* in elements */
    bool largest, by_index;
} line;

/* Whether element a comes before b: NaN counts as the greatest, of equal ones the lower index. */
static bool precedes(const line *l, int64_t a, int64_t b) {
    uint64_t i = (uint64_t)(l->first + a * l->stride), j = (uint64_t)(l->first + b * l->stride);
    int order;
    if (l->by_index) return a < b;
    if (uir_dtype_is_float(l->dtype)) {
        const float *floats = l->dtype == UIR_DTYPE_F32 ? (const float *)(const void *)l->data : NULL;
        double x = floats ? floats[i] : uir_dtype_load_double(l->dtype, l->data, i);
        double y = floats ? floats[j] : uir_dtype_load_double(l->dtype, l->data, j);
        order = x != x ? (y != y ? 0 : 1) : y != y ? -1 : (x > y) - (x < y);
    } else {
        int64_t x = uir_dtype_load_integer(l->dtype, l->data, i), y = uir_dtype_load_integer(l->dtype, l->data, j);
        order =
            l->dtype == UIR_DTYPE_U64 ? ((uint64_t)x > (uint64_t)y) - ((uint64_t)x < (uint64_t)y) : (x > y) - (x < y);
    }
    if (order) return l->largest ? order > 0 : order < 0;
    return a < b;
}

/* A heap of indices whose root is the one that goes first when a better comes. */
static void sift_down(const line *l, int64_t *heap, int64_t step, int64_t at, int64_t count) {
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= count) return;
        if (child + 1 < count && precedes(l, heap[child * step], heap[(child + 1) * step])) child++;
        if (!precedes(l, heap[at * step], heap[child * step])) return;
        int64_t swap = heap[at * step];
        heap[at * step] = heap[child * step];
        heap[child * step] = swap;
        at = child;
    }
}

static uir_status make_heap(const line *l, int64_t *heap, int64_t step, int64_t count) {
    for (int64_t i = count / 2; i-- > 0;) {
        if (is_cancelled(l->r, (uint64_t)i)) return UIR_STATUS_CANCELLED;
        sift_down(l, heap, step, i, count);
    }
    return UIR_STATUS_OK;
}

static uir_status sort_heap(const line *l, int64_t *heap, int64_t step, int64_t count) {
    for (int64_t i = count; i-- > 1;) {
        if (is_cancelled(l->r, (uint64_t)i)) return UIR_STATUS_CANCELLED;
        int64_t swap = heap[0];
        heap[0] = heap[i * step];
        heap[i * step] = swap;
        sift_down(l, heap, step, 0, i);
    }
    return UIR_STATUS_OK;
}

/* From `from` on, the first of at most `end` elements that comes before that of index `root`, a lower one; `end`: none
 * does. Most elements of a long line are no better than the worst of those kept: these are passed by whole vectors. */
typedef int64_t passing(const line *l, int64_t from, int64_t end, int64_t root);
#define PASS_BY(count, stride, test)                                                                                   \
    for (; from + (count) <= end; from += (count)) {                                                                   \
        int any = 0;                                                                                                   \
        for (int64_t at = 0; at < (count); at++) {                                                                     \
            value = x[(from + at) * (stride)];                                                                         \
            any |= (test);                                                                                             \
        }                                                                                                              \
        if (any) break;                                                                                                \
    }
#define PASS_ALL(test)                                                                                                 \
    if (l->stride == 1) PASS_BY(32, 1, test)                                                                           \
    PASS_BY(1, l->stride, test)
#define PASSING(name, type)                                                                                            \
    static int64_t name(const line *l, int64_t from, int64_t end, int64_t root) {                                      \
        const type *x = (const type *)(const void *)l->data + l->first;                                                \
        type worst = x[root * l->stride], value;                                                                       \
        if (l->largest) {                                                                                              \
            if (worst != worst) return end;                                                                            \
            PASS_ALL((value > worst) | (value != value))                                                               \
        } else {                                                                                                       \
            PASS_ALL((value < worst) | ((worst != worst) & (value == value)))                                          \
        }                                                                                                              \
        return from;                                                                                                   \
    }
PASSING(pass_f32, float)
PASSING(pass_f64, double)
PASSING(pass_i32, int32_t)
PASSING(pass_i64, int64_t)

static int64_t pass_others(const line *l, int64_t from, int64_t end, int64_t root) {
    while (from < end && !precedes(l, from, root)) from++;
    return from;
}

static passing *passing_for(uir_dtype dtype) {
    switch (dtype) {
    case UIR_DTYPE_F32:
        return pass_f32;
    case UIR_DTYPE_F64:
        return pass_f64;
    case UIR_DTYPE_I32:
        return pass_i32;
    case UIR_DTYPE_I64:
        return pass_i64;
    default:
        return pass_others;
    }
}

/* The k first of n, in order, into `out` with the given step; or in the order of their indices. */
static uir_status choose(line *l, int64_t n, int64_t k, bool sorted, int64_t *out, int64_t step) {
    l->by_index = false;
    for (int64_t i = 0; i < k; i++) out[i * step] = i;
    UIR_TRY(make_heap(l, out, step, k));
    passing *pass = passing_for(l->dtype);
    for (int64_t i = k; i < n;) {
        int64_t end = n - i > AT_ONCE ? i + AT_ONCE : n;
        if (is_cancelled(l->r, 0)) return UIR_STATUS_CANCELLED;
        i = pass(l, i, end, out[0]);
        if (i == end) continue;
        out[0] = i++;
        sift_down(l, out, step, 0, k);
    }
    l->by_index = !sorted;
    if (!sorted) UIR_TRY(make_heap(l, out, step, k));
    return sort_heap(l, out, step, k);
}

static uir_status top_k(uir_runtime *r, uint32_t step) {
    uint32_t x;
    char *data, *values, *indices;
    uint64_t count = 0;
    UIR_TRY(uir_rt_host_operand(r, step, 0, &x, &data));
    line l = {.r = r, .dtype = (uir_dtype)r->plan->tensors[x].dtype, .data = data};
    uint32_t rank = uir_rt_rank(r, x);
    int64_t axis = uir_rt_attribute_int(r, step, "axis", 0), k = uir_rt_attribute_int(r, step, "k", -1),
            shape[UIR_PLAN_MAX_RANK];
    bool sorted = uir_rt_attribute_int(r, step, "sorted", 1) != 0;
    uint32_t bits = uir_dtype_bits(l.dtype);
    l.largest = uir_rt_attribute_int(r, step, "largest", 1) != 0;
    if (axis < 0 || axis >= (int64_t)rank || bits < 8 ||
        (!uir_dtype_is_float(l.dtype) && !uir_dtype_is_integer(l.dtype)))
        return uir_rt_fail_step(r, step, UIR_STATUS_BAD_FILE, "top_k: its axis or dtype is not supported");
    memcpy(shape, uir_rt_shape(r, x), rank * sizeof *shape);
    (void)uir_shape_element_count(shape, rank, &count);
    int64_t n = shape[axis], outer = 1, inner = 1;
    if (k < 0 || k > n)
        return uir_rt_fail_step(r, step, UIR_STATUS_BAD_DATA, "top_k: k is %lld, axis %lld has %lld elements",
                                (long long)k, (long long)axis, (long long)n);
    shape[axis] = k;
    UIR_TRY(uir_rt_give_host_output(r, step, 0, shape, &values));
    UIR_TRY(uir_rt_give_host_output(r, step, 1, shape, &indices));
    if (!count || !k) return UIR_STATUS_OK; /* however large the other extents are */
    for (uint32_t d = 0; d < rank; d++) *((int64_t)d < axis ? &outer : &inner) *= (int64_t)d == axis ? 1 : shape[d];
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < inner; i++) {
            int64_t *out = (int64_t *)(void *)indices + o * k * inner + i;
            l.first = o * n * inner + i;
            l.stride = inner;
            UIR_TRY(choose(&l, n, k, sorted, out, inner));
            for (int64_t j = 0; j < k; j++)
                memcpy(values + (size_t)((o * k + j) * inner + i) * (bits / 8),
                       data + (size_t)(l.first + out[j * inner] * inner) * (bits / 8), bits / 8);
        }
    }
    return UIR_STATUS_OK;
}

/* ---- the table ---- */
uir_rt_host_function *uir_rt_host_find(const char *name) {
#define UIR_HOST_OP(text, call, operands, results) call,
    static uir_rt_host_function *const functions[] = {
#include "package/host_ops.def"
    };
    uint32_t op = uir_plan_find_host_op(name);
    return op == UIR_PLAN_NONE ? NULL : functions[op];
}
