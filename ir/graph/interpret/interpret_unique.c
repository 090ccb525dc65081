/* Unique elements, or unique slices along an axis (ONNX Unique): values, first positions, which one each was, counts.
 */
#include "ir/graph/interpret/interpret.h"
#include "ir/graph/interpret/sort.h"
#include <string.h>

/* Slice s of the operand: elements outer * slices * inner + s * inner + i. */
typedef struct slices {
    const uir_tensor *tensor;
    int64_t outer, count, inner;
} slices;

static int compare_elements(const uir_tensor *t, uint64_t a, uint64_t b) {
    if (t->dtype == UIR_DTYPE_STRING) {
        const uir_string_view *x = (const uir_string_view *)t->data + a, *y = (const uir_string_view *)t->data + b;
        size_t shorter = x->length < y->length ? x->length : y->length;
        int order = shorter ? memcmp(x->text, y->text, shorter) : 0;
        return order ? order : (x->length > y->length) - (x->length < y->length);
    }
    if (uir_dtype_is_float(t->dtype)) { /* NaN last */
        double x = uir_dtype_load_double(t->dtype, t->data, a), y = uir_dtype_load_double(t->dtype, t->data, b);
        return x != x || y != y ? (x != x) - (y != y) : (x > y) - (x < y);
    }
    int64_t x = uir_dtype_load_integer(t->dtype, t->data, a), y = uir_dtype_load_integer(t->dtype, t->data, b);
    if (uir_dtype_get_class(t->dtype) == UIR_DTYPE_CLASS_UNSIGNED)
        return ((uint64_t)x > (uint64_t)y) - ((uint64_t)x < (uint64_t)y);
    return (x > y) - (x < y);
}

static int compare_slices(const void *user, int64_t a, int64_t b) {
    const slices *s = user;
    for (int64_t o = 0; o < s->outer; o++)
        for (int64_t i = 0; i < s->inner; i++) {
            int64_t base = o * s->count * s->inner + i;
            int order = compare_elements(s->tensor, (uint64_t)(base + a * s->inner), (uint64_t)(base + b * s->inner));
            if (order) return order;
        }
    return 0;
}

static int compare_first(const void *user, int64_t a, int64_t b) {
    const int64_t *first = user;
    return (first[a] > first[b]) - (first[a] < first[b]);
}

/* Arrays of `count` for the work. */
typedef struct work {
    int64_t *order, *scratch; /* slices in order */
    int64_t *group;           /* of each slice */
    int64_t *first, *size;    /* of each group: its first slice, how many */
    int64_t *place;           /* of each group: where it is written */
    int64_t *by_place;
} work;

enum { WORK_ARRAYS = 7 };

/* Groups equal slices, and tells how many there are. */
static uir_status group_slices(uir_call *call, const slices *s, bool sorted, work *w, int64_t *out_groups) {
    int64_t groups = 0;
    for (int64_t i = 0; i < s->count; i++) w->order[i] = i;
    UIR_TRY(uir_sort(w->order, w->scratch, s->count, compare_slices, s, uir_call_budget(call)));
    uint64_t walked = 0, slice_size = (uint64_t)(s->outer * s->inner);
    for (int64_t i = 0; i < s->count; i++) {
        if (uir_call_stops(call, &walked, slice_size)) return UIR_STATUS_CANCELLED;
        int64_t slice = w->order[i];
        if (!i || compare_slices(s, w->order[i - 1], slice)) {
            w->first[groups] = slice; /* the sort is stable: the lowest of its equals */
            w->size[groups++] = 0;
        }
        w->group[slice] = groups - 1;
        w->size[groups - 1]++;
    }
    for (int64_t g = 0; g < groups; g++) w->by_place[g] = g;
    if (!sorted) UIR_TRY(uir_sort(w->by_place, w->scratch, groups, compare_first, w->first, uir_call_budget(call)));
    for (int64_t p = 0; p < groups; p++) w->place[w->by_place[p]] = p;
    *out_groups = groups;
    return UIR_STATUS_OK;
}

static uir_status write_values(uir_call *call, const slices *s, const work *w, int64_t groups, uir_tensor *result) {
    uir_elements from, to;
    UIR_TRY(uir_elements_open(call, s->tensor, &from));
    uir_status status = uir_elements_open_result(call, result, false, &to);
    if (status == UIR_STATUS_OK) {
        size_t row = (size_t)s->inner * from.size;
        uint64_t walked = 0;
        for (int64_t o = 0; o < s->outer && row; o++)
            for (int64_t p = 0; p < groups && status == UIR_STATUS_OK; p++) {
                if (uir_call_stops(call, &walked, row)) status = UIR_STATUS_CANCELLED;
                memcpy(to.data + (size_t)(o * groups + p) * row,
                       from.data + (size_t)(o * s->count + w->first[w->by_place[p]]) * row, row);
            }
        uir_status closed = uir_elements_close_result(call, result, &to);
        if (status == UIR_STATUS_OK) status = closed;
    }
    uir_elements_close(call, &from);
    return status;
}

static uir_status write_results(uir_call *call, const slices *s, const work *w, int64_t groups, uint32_t axis,
                                bool flat) {
    const uir_tensor *a = s->tensor;
    int64_t shape[UIR_MAX_RANK];
    memcpy(shape, a->shape, sizeof shape);
    shape[axis] = groups;
    uir_tensor *values, *indices;
    UIR_TRY(uir_call_create(call, 0, a->dtype, flat ? 1 : a->rank, shape, &values));
    UIR_TRY(write_values(call, s, w, groups, values));
    for (uint32_t output = 1; output < call->node->output_count; output++) {
        int64_t count = output == 2 ? s->count : groups;
        UIR_TRY(uir_call_create(call, output, UIR_DTYPE_I64, 1, &count, &indices));
        int64_t *target = indices->data;
        for (int64_t i = 0; i < count; i++)
            target[i] = output == 1   ? w->first[w->by_place[i]]
                        : output == 2 ? w->place[w->group[i]]
                                      : w->size[w->by_place[i]];
    }
    return UIR_STATUS_OK;
}

uir_status uir_interpret_unique(uir_call *call) {
    const uir_tensor *a = uir_call_tensor(call, 0);
    bool flat = !uir_node_find_attribute(call->module, call->node, "axis");
    uint32_t axis = flat ? 0 : (uint32_t)uir_call_int(call, "axis", 0);
    slices s = {a, 1, (int64_t)a->element_count, 1};
    if (!flat) {
        s.count = a->shape[axis];
        for (uint32_t d = 0; d < axis; d++) s.outer *= a->shape[d];
        for (uint32_t d = axis + 1; d < a->rank; d++) s.inner *= a->shape[d];
    }
    size_t length = (size_t)s.count + 1, bytes;
    if (__builtin_mul_overflow(length, WORK_ARRAYS * sizeof(int64_t), &bytes)) return UIR_STATUS_LIMIT;
    int64_t *block;
    UIR_TRY_ALLOCATE(block, uir_allocate(call->allocator, bytes));
    work w = {block,
              block + length,
              block + 2 * length,
              block + 3 * length,
              block + 4 * length,
              block + 5 * length,
              block + 6 * length};
    int64_t groups;
    uir_status status = group_slices(call, &s, uir_call_int(call, "sorted", 1) != 0, &w, &groups);
    if (status == UIR_STATUS_OK) status = write_results(call, &s, &w, groups, axis, flat);
    uir_release(call->allocator, block, bytes);
    return status;
}
