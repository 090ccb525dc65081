/* Movement primitives: each is one strided copy or a few. */
#include "ir/graph/interpret/interpret.h"
#include "ir/graph/infer/infer.h"
#include <string.h>

/* The result of a movement op that reads operand 0: both opened. */
typedef struct movement {
    const uir_tensor *operand;
    uir_tensor *result;
    uir_elements from, to;
} movement;

static uir_status open_movement(uir_call *call, uint32_t rank, const int64_t *shape, movement *out_movement) {
    movement *m = out_movement;
    *m = (movement){.operand = uir_call_tensor(call, 0)};
    UIR_TRY(uir_call_create(call, 0, m->operand->dtype, rank, shape, &m->result));
    UIR_TRY(uir_elements_open(call, m->operand, &m->from));
    uir_status status = uir_elements_open_result(call, m->result, false, &m->to);
    if (status != UIR_STATUS_OK) uir_elements_close(call, &m->from);
    return status;
}

static uir_status close_movement(uir_call *call, movement *m) {
    uir_elements_close(call, &m->from);
    return uir_elements_close_result(call, m->result, &m->to);
}

/* ---- views of one operand ---- */

/* The whole result is read from operand 0 at `offset` with `strides`. */
static uir_status copy_view(uir_call *call, uint32_t rank, const int64_t *shape, int64_t offset,
                            const int64_t *strides) {
    movement m;
    UIR_TRY(open_movement(call, rank, shape, &m));
    int64_t to[UIR_MAX_RANK];
    uir_shape_strides(shape, rank, to);
    if (m.result->element_count)
        uir_copy_strided(call, m.to.data, to, m.from.data + offset * (int64_t)m.from.size, strides, shape, rank,
                         m.from.size);
    return close_movement(call, &m);
}

/* Extents that broadcast to those of `shape`, from the right. */
static void broadcast_strides(const int64_t *from, uint32_t from_rank, const int64_t *shape, uint32_t rank,
                              int64_t *out_strides) {
    int64_t own[UIR_MAX_RANK];
    uir_shape_strides(from, from_rank, own);
    memset(out_strides, 0, rank * sizeof *out_strides);
    for (uint32_t d = 0; d < from_rank; d++)
        if (from[d] == shape[d + rank - from_rank] && from[d] != 1) out_strides[d + rank - from_rank] = own[d];
}

static void transpose_strides(const int64_t *from, uint32_t rank, const int64_t *perm, int64_t *out_strides) {
    int64_t own[UIR_MAX_RANK];
    uir_shape_strides(from, rank, own);
    for (uint32_t d = 0; d < rank; d++) out_strides[d] = own[perm[d]];
}

bool uir_movement_strides(const uir_module *module, const uir_node_info *node, const int64_t *from, uint32_t from_rank,
                          const int64_t *shape, uint32_t rank, int64_t *out_strides) {
    uint32_t count;
    if (node->op == UIR_OP_BROADCAST && rank >= from_rank) {
        broadcast_strides(from, from_rank, shape, rank, out_strides);
        return true;
    }
    if (node->op != UIR_OP_TRANSPOSE || rank != from_rank) return false;
    const int64_t *perm = uir_node_ints(module, node, "perm", &count);
    if (count != rank) return false;
    transpose_strides(from, rank, perm, out_strides);
    return true;
}

uir_status uir_interpret_broadcast(uir_call *call) {
    const uir_tensor *a = uir_call_tensor(call, 0);
    int64_t shape[UIR_MAX_RANK], strides[UIR_MAX_RANK];
    uint32_t rank;
    UIR_TRY(uir_call_dims(call, "dims", shape, &rank));
    if (rank < a->rank)
        return uir_call_fail(call, UIR_STATUS_INTERNAL, "rank %u does not broadcast to %u", a->rank, rank);
    for (uint32_t d = 0; d < a->rank; d++) {
        uint32_t at = d + rank - a->rank;
        if (a->shape[d] != 1 && a->shape[d] != shape[at])
            return uir_call_fail(call, UIR_STATUS_BAD_DATA, "extent %lld does not broadcast to %lld",
                                 (long long)a->shape[d], (long long)shape[at]);
    }
    broadcast_strides(a->shape, a->rank, shape, rank, strides);
    if (rank == a->rank && !memcmp(shape, a->shape, rank * sizeof *shape)) {
        uir_datum_retain(call->inputs[0]);
        return uir_call_set(call, 0, call->inputs[0]);
    }
    return copy_view(call, rank, shape, 0, strides);
}

/* Another shape over the same elements: the tensor itself when it dies here, a view of a constant, else a copy. */
uir_status uir_interpret_reshape(uir_call *call) {
    const uir_tensor *a = uir_call_tensor(call, 0);
    int64_t shape[UIR_MAX_RANK];
    uint32_t rank;
    uint64_t count;
    UIR_TRY(uir_call_dims(call, "dims", shape, &rank));
    if (!uir_shape_element_count(shape, rank, &count) || count != a->element_count) {
        char from[200];
        uir_tensor_describe(a, from, sizeof from);
        return uir_call_fail(call, UIR_STATUS_BAD_DATA, "%s does not have the %llu elements of the new shape", from,
                             (unsigned long long)count);
    }
    uir_tensor *taken = uir_call_take(call, 0), *result;
    bool same = rank == a->rank && !memcmp(shape, a->shape, rank * sizeof *shape);
    if (taken || same) {
        if (taken) {
            taken->rank = rank;
            memcpy(taken->shape, shape, rank * sizeof *shape);
        }
        uir_datum_retain(call->inputs[0]);
        return uir_call_set(call, 0, call->inputs[0]);
    }
    if (uir_value_info_get(call->module, call->node->inputs[0])->constant && a->dtype != UIR_DTYPE_STRING) {
        UIR_TRY(uir_tensor_create_borrowed(call->allocator, a->dtype, rank, shape, a->data, &result));
        uir_datum *datum;
        uir_status status = uir_datum_create_tensor(call->allocator, result, &datum);
        if (status != UIR_STATUS_OK) {
            uir_tensor_release(result);
            return status;
        }
        return uir_call_set(call, 0, datum);
    }
    int64_t strides[UIR_MAX_RANK];
    uir_shape_strides(shape, rank, strides);
    return copy_view(call, rank, shape, 0, strides);
}

uir_status uir_interpret_transpose(uir_call *call) {
    const uir_tensor *a = uir_call_tensor(call, 0);
    int64_t shape[UIR_MAX_RANK], strides[UIR_MAX_RANK];
    uint32_t rank;
    const int64_t *perm = uir_node_ints(call->module, call->node, "perm", &rank);
    if (rank != a->rank) return uir_call_fail(call, UIR_STATUS_INTERNAL, "rank %u", a->rank);
    for (uint32_t d = 0; d < rank; d++) shape[d] = a->shape[perm[d]];
    transpose_strides(a->shape, rank, perm, strides);
    return copy_view(call, rank, shape, 0, strides);
}

uir_status uir_interpret_slice(uir_call *call) {
    const uir_tensor *a = uir_call_tensor(call, 0);
    int64_t starts[UIR_MAX_RANK], sizes[UIR_MAX_RANK], own[UIR_MAX_RANK], strides[UIR_MAX_RANK], offset = 0;
    uint32_t rank;
    UIR_TRY(uir_call_dims(call, "starts", starts, &rank));
    UIR_TRY(uir_call_dims(call, "sizes", sizes, &rank));
    const int64_t *steps = uir_node_ints(call->module, call->node, "steps", &rank);
    if (rank != a->rank) return uir_call_fail(call, UIR_STATUS_INTERNAL, "rank %u", a->rank);
    uir_shape_strides(a->shape, rank, own);
    for (uint32_t d = 0; d < rank; d++) {
        if (!uir_slice_fits(starts[d], sizes[d], steps[d], a->shape[d]))
            return uir_call_fail(
                call, UIR_STATUS_BAD_DATA, "start %lld, size %lld, step %lld exceed axis %u, which has %lld elements",
                (long long)starts[d], (long long)sizes[d], (long long)steps[d], d, (long long)a->shape[d]);
        /* An axis of one element may have a step of any size, which is never taken. */
        strides[d] = sizes[d] > 1 ? own[d] * steps[d] : 0;
        if (sizes[d] > 0) offset += starts[d] * own[d];
    }
    return copy_view(call, rank, sizes, offset, strides);
}

/* ---- results put together ---- */

/* What part of an axis of `extent` elements, spread `stride` apart from `low` on, lands in 0..size-1: first element and
 * number. */
static void clip_axis(int64_t extent, int64_t stride, int64_t low, int64_t size, int64_t *out_first,
                      int64_t *out_count) {
    int64_t first = low < 0 ? (-low + stride - 1) / stride : 0;
    int64_t end = size <= low ? 0 : (size - low + stride - 1) / stride;
    if (end > extent) end = extent;
    *out_first = first;
    *out_count = end > first ? end - first : 0;
}

uir_status uir_interpret_pad(uir_call *call) {
    const uir_tensor *a = uir_call_tensor(call, 0), *value = uir_call_tensor(call, 1);
    int64_t low[UIR_MAX_RANK], high[UIR_MAX_RANK], shape[UIR_MAX_RANK], count[UIR_MAX_RANK];
    uint32_t rank;
    UIR_TRY(uir_call_dims(call, "low", low, &rank));
    UIR_TRY(uir_call_dims(call, "high", high, &rank));
    const int64_t *interior = uir_node_ints(call->module, call->node, "interior", &rank);
    if (rank != a->rank) return uir_call_fail(call, UIR_STATUS_INTERNAL, "rank %u", a->rank);
    for (uint32_t d = 0; d < rank; d++) {
        const int64_t far = INT64_MAX / 8; /* so that sums of these do not overflow */
        int64_t gaps;
        if (interior[d] > far || low[d] > far || low[d] < -far || high[d] > far || high[d] < -far ||
            __builtin_mul_overflow(a->shape[d] ? a->shape[d] - 1 : 0, interior[d], &gaps) ||
            __builtin_add_overflow(a->shape[d] + low[d] + high[d], gaps, &shape[d]))
            return uir_call_fail(call, UIR_STATUS_LIMIT, "axis %u overflows", d);
    }
    movement m;
    UIR_TRY(open_movement(call, rank, shape, &m));
    uir_elements fill;
    uir_status status = uir_elements_open(call, value, &fill);
    if (status == UIR_STATUS_OK) {
        int64_t to[UIR_MAX_RANK], from[UIR_MAX_RANK], none[UIR_MAX_RANK] = {0}, target = 0, source = 0;
        uir_shape_strides(shape, rank, to);
        uir_shape_strides(a->shape, rank, from);
        if (m.result->element_count) uir_copy_strided(call, m.to.data, to, fill.data, none, shape, rank, m.to.size);
        bool any = m.result->element_count > 0;
        for (uint32_t d = 0; d < rank && any; d++) {
            int64_t stride = interior[d] + 1, first;
            clip_axis(a->shape[d], stride, low[d], shape[d], &first, &count[d]);
            any = count[d] > 0;
            if (!any) break;
            target += (low[d] + first * stride) * to[d];
            source += first * from[d];
            to[d] *= count[d] > 1 ? stride : 0;
        }
        if (any)
            uir_copy_strided(call, m.to.data + target * (int64_t)m.to.size, to,
                             m.from.data + source * (int64_t)m.from.size, from, count, rank, m.to.size);
        uir_elements_close(call, &fill);
    }
    uir_status closed = close_movement(call, &m);
    return status == UIR_STATUS_OK ? closed : status;
}

/* Copies what an axis's positions 0..size-1 see of it at `start` + i*`step`. */
static bool clip_windows(int64_t extent, int64_t start, int64_t step, int64_t size, int64_t *out_first,
                         int64_t *out_count) {
    int64_t first = start < 0 ? (-start + step - 1) / step : 0;
    int64_t end = extent <= start ? 0 : (extent - start + step - 1) / step;
    if (end > size) end = size;
    *out_first = first;
    *out_count = end - first;
    return end > first;
}

uir_status uir_interpret_windows(uir_call *call) {
    const uir_tensor *a = uir_call_tensor(call, 0);
    int64_t starts[UIR_MAX_RANK], shape[UIR_MAX_RANK], at[UIR_MAX_RANK] = {0}, to[UIR_MAX_RANK], from[UIR_MAX_RANK];
    const int64_t far = INT64_MAX / 8; /* so that sums of these do not overflow */
    uint32_t rank, count;
    UIR_TRY(uir_call_dims(call, "starts", starts, &rank));
    UIR_TRY(uir_call_dims(call, "sizes", shape, &rank));
    const int64_t *steps = uir_node_ints(call->module, call->node, "steps", &count);
    const int64_t *window = uir_node_ints(call->module, call->node, "window", &count);
    const int64_t *axes = uir_node_ints(call->module, call->node, "axes", &count);
    const int64_t *dilations = uir_node_ints(call->module, call->node, "dilations", &count);
    if (rank != a->rank) return uir_call_fail(call, UIR_STATUS_INTERNAL, "rank %u", a->rank);
    for (uint32_t d = 0; d < rank; d++)
        if (shape[d] < 0 || shape[d] > INT32_MAX || starts[d] > far || starts[d] < -far)
            return uir_call_fail(call, UIR_STATUS_LIMIT, "a start or size of axis %u is too large", d);
    if (count) memcpy(shape + rank, window, count * sizeof *shape);
    movement m;
    UIR_TRY(open_movement(call, rank + count, shape, &m));
    uir_shape_strides(shape, rank + count, to);
    uir_shape_strides(a->shape, rank, from);
    bool more = m.result->element_count > 0;
    if (more) memset(m.to.data, 0, m.result->element_count * m.to.size);
    while (more) { /* each place of the window */
        int64_t first[UIR_MAX_RANK], box[UIR_MAX_RANK], strides[UIR_MAX_RANK], target = 0, source = 0;
        bool any = true;
        for (uint32_t j = 0; j < count; j++) target += at[j] * to[rank + j];
        for (uint32_t d = 0; d < rank && any; d++) {
            int64_t start = starts[d];
            for (uint32_t j = 0; j < count; j++)
                if (axes[j] == d) start += at[j] * dilations[j];
            any = clip_windows(a->shape[d], start, steps[d], shape[d], &first[d], &box[d]);
            target += first[d] * to[d];
            source += (start + first[d] * steps[d]) * from[d];
            strides[d] = box[d] > 1 ? from[d] * steps[d] : 0;
        }
        if (any)
            uir_copy_strided(call, m.to.data + target * (int64_t)m.to.size, to,
                             m.from.data + source * (int64_t)m.from.size, strides, box, rank, m.to.size);
        more = false;
        for (uint32_t j = count; j-- > 0 && !more;) {
            more = ++at[j] < window[j];
            if (!more) at[j] = 0;
        }
    }
    return close_movement(call, &m);
}

uir_status uir_interpret_concat(uir_call *call) {
    const uir_tensor *a = uir_call_tensor(call, 0);
    uint32_t axis = (uint32_t)uir_call_int(call, "axis", 0), rank = a->rank;
    int64_t shape[UIR_MAX_RANK], to[UIR_MAX_RANK], from[UIR_MAX_RANK];
    memcpy(shape, a->shape, sizeof shape);
    for (uint32_t i = 1; i < call->node->input_count; i++) {
        const uir_tensor *b = uir_call_tensor(call, i);
        for (uint32_t d = 0; d < rank; d++)
            if (b->rank != rank || (d != axis && b->shape[d] != shape[d]))
                return uir_call_fail(call, UIR_STATUS_BAD_DATA, "the extents of operand %u differ from the first's", i);
        if (__builtin_add_overflow(shape[axis], b->shape[axis], &shape[axis]))
            return uir_call_fail(call, UIR_STATUS_LIMIT, "axis %u overflows", axis);
    }
    uir_tensor *result;
    uir_elements part, whole;
    UIR_TRY(uir_call_create(call, 0, a->dtype, rank, shape, &result));
    UIR_TRY(uir_elements_open_result(call, result, false, &whole));
    uir_shape_strides(shape, rank, to);
    int64_t offset = 0;
    uir_status status = UIR_STATUS_OK;
    for (uint32_t i = 0; i < call->node->input_count && status == UIR_STATUS_OK; i++) {
        const uir_tensor *b = uir_call_tensor(call, i);
        status = uir_elements_open(call, b, &part);
        if (status != UIR_STATUS_OK) break;
        uir_shape_strides(b->shape, rank, from);
        if (b->element_count)
            uir_copy_strided(call, whole.data + offset * to[axis] * (int64_t)whole.size, to, part.data, from, b->shape,
                             rank, whole.size);
        offset += b->shape[axis];
        uir_elements_close(call, &part);
    }
    uir_status closed = uir_elements_close_result(call, result, &whole);
    return status == UIR_STATUS_OK ? closed : status;
}

/* ---- values made from nothing ---- */

uir_status uir_interpret_iota(uir_call *call) {
    int64_t shape[UIR_MAX_RANK];
    uint32_t rank, axis = (uint32_t)uir_call_int(call, "axis", 0);
    UIR_TRY(uir_call_dims(call, "dims", shape, &rank));
    uir_dtype dtype = uir_node_dtype(call->module, call->node, "dtype", UIR_DTYPE_NONE);
    uir_tensor *result;
    UIR_TRY(uir_call_create(call, 0, dtype, rank, shape, &result));
    if (!result->element_count) return UIR_STATUS_OK;
    int64_t strides[UIR_MAX_RANK];
    uir_shape_strides(shape, rank, strides);
    for (uint64_t i = 0; i < result->element_count; i++) {
        int64_t index = (int64_t)i / strides[axis] % shape[axis];
        uir_dtype_store_integer(dtype, result->data, i, index, false, UIR_ROUND_NEAREST_EVEN);
    }
    return UIR_STATUS_OK;
}

uir_status uir_interpret_dim_values(uir_call *call) {
    uint32_t count;
    const uir_dim *dims = uir_node_dims(call->module, call->node, "dims", &count);
    uir_dtype dtype = uir_node_dtype(call->module, call->node, "dtype", UIR_DTYPE_NONE);
    int64_t extent = count;
    uir_tensor *result;
    UIR_TRY(uir_call_create(call, 0, dtype, uir_call_int(call, "scalar", 0) ? 0 : 1, &extent, &result));
    for (uint32_t i = 0; i < count; i++) {
        int64_t value;
        UIR_TRY(uir_call_evaluate(call, dims[i], &value));
        uir_dtype_store_integer(dtype, result->data, i, value, false, UIR_ROUND_NEAREST_EVEN);
    }
    return UIR_STATUS_OK;
}

uir_status uir_interpret_bind_dims(uir_call *call) {
    const uir_tensor *a = uir_call_tensor(call, 0);
    uint32_t count;
    const uir_dim *dims = uir_node_dims(call->module, call->node, "dims", &count);
    if (a->element_count != count)
        return uir_call_fail(call, UIR_STATUS_BAD_DATA, "%llu sizes are given, %u are expected",
                             (unsigned long long)a->element_count, count);
    for (uint32_t i = 0; i < count; i++) {
        uir_symbol symbol;
        if (!uir_dim_is_symbol(call->module->dims, dims[i], &symbol)) return UIR_STATUS_INTERNAL;
        UIR_TRY(uir_interpreter_bind(call, symbol, uir_dtype_load_integer(a->dtype, a->data, i)));
    }
    return UIR_STATUS_OK;
}
