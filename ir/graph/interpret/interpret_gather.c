/* Gather and scatter. Every index is checked against the data's extent. */
#include "base/dims/demand.h"
#include "ir/graph/interpret/interpret.h"
#include <string.h>

static uir_status check_index(uir_call *call, int64_t index, int64_t extent) {
    if (index >= 0 && index < extent) return UIR_STATUS_OK;
    return uir_call_fail(call, UIR_STATUS_BAD_DATA, "index %lld is outside 0..%lld", (long long)index,
                         (long long)extent - 1);
}

static int64_t load_index(const uir_tensor *indices, uint64_t i) {
    return indices->dtype == UIR_DTYPE_I64 ? ((const int64_t *)indices->data)[i] : ((const int32_t *)indices->data)[i];
}

static uir_status check_all(uir_call *call, const uir_tensor *indices, int64_t extent) {
    uint64_t walked = 0;
    for (uint64_t i = 0; i < indices->element_count; i++) {
        if (uir_call_stops(call, &walked, 1)) return UIR_STATUS_CANCELLED;
        UIR_TRY(check_index(call, load_index(indices, i), extent));
    }
    return UIR_STATUS_OK;
}

static int64_t product(const int64_t *shape, uint32_t from, uint32_t to) {
    int64_t result = 1;
    for (uint32_t d = from; d < to; d++) result *= shape[d];
    return result;
}

uir_status uir_interpret_check_indices(uir_call *call) {
    const uir_tensor *a = uir_call_tensor(call, 0);
    uint32_t count;
    uint64_t at;
    int64_t lows[UIR_MAX_RANK], highs[UIR_MAX_RANK];
    char message[512];
    UIR_TRY(uir_call_dims(call, "low", lows, &count));
    UIR_TRY(uir_call_dims(call, "high", highs, &count));
    uir_index_demand demand = {.dtype = a->dtype,
                               .data = a->data,
                               .rank = a->rank,
                               .shape = a->shape,
                               .low = lows,
                               .high = highs,
                               .bounds = count,
                               .name = uir_node_string(call->module, call->node, "of", ""),
                               .ends = uir_node_int(call->module, call->node, "ends", 0) != 0};
    if (uir_indices_hold(&demand, &at)) return UIR_STATUS_OK;
    uir_index_describe(&demand, at, message, sizeof message);
    return uir_call_fail(call, UIR_STATUS_BAD_DATA, "%s", message);
}

/* ---- gather ---- */

uir_status uir_interpret_gather(uir_call *call) {
    const uir_tensor *data = uir_call_tensor(call, 0), *indices = uir_call_tensor(call, 1);
    uint32_t axis = (uint32_t)uir_call_int(call, "axis", 0), rank = data->rank - 1 + indices->rank;
    int64_t shape[2 * UIR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++)
        shape[d] = d < axis                   ? data->shape[d]
                   : d < axis + indices->rank ? indices->shape[d - axis]
                                              : data->shape[d - indices->rank + 1];
    int64_t extent = data->shape[axis];
    UIR_TRY(check_all(call, indices, extent));
    uir_tensor *result;
    uir_elements from, to;
    UIR_TRY(uir_call_create(call, 0, data->dtype, rank, shape, &result));
    UIR_TRY(uir_elements_open(call, data, &from));
    uir_status status = uir_elements_open_result(call, result, false, &to);
    if (status == UIR_STATUS_OK) {
        int64_t outer = product(data->shape, 0, axis);
        size_t row = (size_t)product(data->shape, axis + 1, data->rank) * from.size;
        uint8_t *target = to.data;
        uint64_t walked = 0;
        for (int64_t o = 0; row && o < outer; o++)
            for (uint64_t i = 0; i < indices->element_count && status == UIR_STATUS_OK; i++, target += row) {
                if (uir_call_stops(call, &walked, row)) status = UIR_STATUS_CANCELLED;
                memcpy(target, from.data + (size_t)(o * extent + load_index(indices, i)) * row, row);
            }
        uir_status closed = uir_elements_close_result(call, result, &to);
        if (status == UIR_STATUS_OK) status = closed;
    }
    uir_elements_close(call, &from);
    return status;
}

/* Positions of the elements of a box inside a larger one (extents at most its), row-major, one after the other. */
typedef struct box_walk {
    uint32_t rank;
    const int64_t *shape;
    int64_t position[UIR_MAX_RANK], strides[UIR_MAX_RANK];
} box_walk;

static void step(box_walk *walk) {
    for (uint32_t d = walk->rank; d-- > 0;) {
        if (++walk->position[d] < walk->shape[d]) return;
        walk->position[d] = 0;
    }
}

/* Where in the data the walk's element lies when coordinate `axis` is `index`. */
static int64_t place(const box_walk *walk, uint32_t axis, int64_t index) {
    int64_t at = index * walk->strides[axis];
    for (uint32_t d = 0; d < walk->rank; d++)
        if (d != axis) at += walk->position[d] * walk->strides[d];
    return at;
}

/* The indices' box lies inside the data on every axis but the indexed one. */
static uir_status open_walk(uir_call *call, const uir_tensor *data, const uir_tensor *indices, uint32_t axis,
                            box_walk *out_walk) {
    *out_walk = (box_walk){.rank = data->rank, .shape = indices->shape};
    uir_shape_strides(data->shape, data->rank, out_walk->strides);
    for (uint32_t d = 0; d < data->rank; d++)
        if (d != axis && indices->element_count && indices->shape[d] > data->shape[d])
            return uir_call_fail(call, UIR_STATUS_BAD_DATA, "axis %u of the indices is longer than the data's", d);
    return UIR_STATUS_OK;
}

uir_status uir_interpret_gather_elements(uir_call *call) {
    const uir_tensor *data = uir_call_tensor(call, 0), *indices = uir_call_tensor(call, 1);
    uint32_t axis = (uint32_t)uir_call_int(call, "axis", 0);
    box_walk walk;
    UIR_TRY(open_walk(call, data, indices, axis, &walk));
    UIR_TRY(check_all(call, indices, data->shape[axis]));
    uir_tensor *result;
    uir_elements from, to;
    UIR_TRY(uir_call_create(call, 0, data->dtype, indices->rank, indices->shape, &result));
    UIR_TRY(uir_elements_open(call, data, &from));
    uir_status status = uir_elements_open_result(call, result, false, &to);
    if (status == UIR_STATUS_OK) {
        uint64_t walked = 0;
        for (uint64_t i = 0; i < indices->element_count && status == UIR_STATUS_OK; i++, step(&walk)) {
            if (uir_call_stops(call, &walked, 1)) status = UIR_STATUS_CANCELLED;
            memcpy(to.data + i * to.size, from.data + (size_t)place(&walk, axis, load_index(indices, i)) * to.size,
                   to.size);
        }
        uir_status closed = uir_elements_close_result(call, result, &to);
        if (status == UIR_STATUS_OK) status = closed;
    }
    uir_elements_close(call, &from);
    return status;
}

/* Offset, in rows, of the row that coordinates i of an _ND op name: they follow `batch` shared axes of the data. */
static uir_status find_row(uir_call *call, const uir_tensor *data, const uir_tensor *indices, uint32_t batch,
                           uint64_t i, uint64_t per_batch, int64_t *out_row) {
    int64_t depth = indices->shape[indices->rank - 1], row = per_batch ? (int64_t)(i / per_batch) : 0;
    for (int64_t k = 0; k < depth; k++) {
        int64_t index = load_index(indices, i * (uint64_t)depth + (uint64_t)k), extent = data->shape[batch + k];
        UIR_TRY(check_index(call, index, extent));
        row = row * extent + index;
    }
    *out_row = row;
    return UIR_STATUS_OK;
}

uir_status uir_interpret_gather_nd(uir_call *call) {
    const uir_tensor *data = uir_call_tensor(call, 0), *indices = uir_call_tensor(call, 1);
    uint32_t batch = (uint32_t)uir_call_int(call, "batch", 0), lead = indices->rank - 1;
    uint32_t depth = (uint32_t)indices->shape[lead], taken = batch + depth, rank = lead + data->rank - taken;
    int64_t shape[2 * UIR_MAX_RANK];
    for (uint32_t d = 0; d < batch; d++)
        if (data->shape[d] != indices->shape[d])
            return uir_call_fail(call, UIR_STATUS_BAD_DATA, "batch axis %u has extents %lld and %lld", d,
                                 (long long)data->shape[d], (long long)indices->shape[d]);
    for (uint32_t d = 0; d < rank; d++) shape[d] = d < lead ? indices->shape[d] : data->shape[d - lead + taken];
    uir_tensor *result;
    uir_elements from, to;
    UIR_TRY(uir_call_create(call, 0, data->dtype, rank, shape, &result));
    UIR_TRY(uir_elements_open(call, data, &from));
    uir_status status = uir_elements_open_result(call, result, false, &to);
    if (status == UIR_STATUS_OK) {
        uint64_t count = (uint64_t)product(indices->shape, 0, lead);
        uint64_t per_batch = (uint64_t)product(indices->shape, batch, lead);
        size_t row = (size_t)product(data->shape, taken, data->rank) * from.size;
        uint64_t walked = 0;
        for (uint64_t i = 0; i < count && status == UIR_STATUS_OK; i++) {
            int64_t at;
            if (uir_call_stops(call, &walked, row + 1)) status = UIR_STATUS_CANCELLED;
            if (status == UIR_STATUS_OK) status = find_row(call, data, indices, batch, i, per_batch, &at);
            if (status == UIR_STATUS_OK && row) memcpy(to.data + i * row, from.data + (size_t)at * row, row);
        }
        uir_status closed = uir_elements_close_result(call, result, &to);
        if (status == UIR_STATUS_OK) status = closed;
    }
    uir_elements_close(call, &from);
    return status;
}

/* ---- scatter ---- */

typedef enum combine { COMBINE_NONE, COMBINE_ADD, COMBINE_MUL, COMBINE_MIN, COMBINE_MAX } combine;

static combine find_combine(const uir_call *call) {
    static const char *const names[] = {"none", "add", "mul", "min", "max"};
    const char *name = uir_node_string(call->module, call->node, "reduction", "none");
    for (int i = 0; i < 5; i++)
        if (!strcmp(name, names[i])) return (combine)i;
    return COMBINE_NONE;
}

/* The operands of one dtype narrower than f64 are exact in a double and so are their sum and product up to one
 * rounding. */
static double combine_reals(combine how, double a, double b) {
    if (how == COMBINE_ADD) return a + b;
    if (how == COMBINE_MUL) return a * b;
    if (a != a || b != b) return a + b;
    return how == COMBINE_MIN ? (a < b ? a : b) : (a > b ? a : b);
}

static int64_t combine_integers(combine how, int64_t a, int64_t b, bool is_unsigned) {
    if (how == COMBINE_ADD) return (int64_t)((uint64_t)a + (uint64_t)b);
    if (how == COMBINE_MUL) return (int64_t)((uint64_t)a * (uint64_t)b);
    bool less = is_unsigned ? (uint64_t)a < (uint64_t)b : a < b;
    return less == (how == COMBINE_MIN) ? a : b;
}

static void combine_element(combine how, uir_dtype dtype, void *target, uint64_t at, const void *updates, uint64_t i) {
    if (uir_dtype_is_float(dtype)) {
        double a = uir_dtype_load_double(dtype, target, at), b = uir_dtype_load_double(dtype, updates, i);
        uir_dtype_store_double(dtype, target, at, combine_reals(how, a, b), UIR_ROUND_NEAREST_EVEN);
    } else {
        bool is_unsigned = uir_dtype_get_class(dtype) == UIR_DTYPE_CLASS_UNSIGNED;
        int64_t a = uir_dtype_load_integer(dtype, target, at), b = uir_dtype_load_integer(dtype, updates, i);
        uir_dtype_store_integer(dtype, target, at, combine_integers(how, a, b, is_unsigned), is_unsigned,
                                UIR_ROUND_NEAREST_EVEN);
    }
}

/* The data's copy, or the data itself when it dies here. */
static uir_status copy_data(uir_call *call, uir_tensor **out_result) {
    uir_tensor *taken = uir_call_take(call, 0);
    const uir_tensor *data = uir_call_tensor(call, 0);
    /* Operands may be one value: then it must not change under the others. */
    bool shared = call->inputs[0] == call->inputs[1] || call->inputs[0] == call->inputs[2];
    if (taken && !shared && data->dtype != UIR_DTYPE_STRING) {
        uir_datum_retain(call->inputs[0]);
        *out_result = taken;
        return uir_call_set(call, 0, call->inputs[0]);
    }
    UIR_TRY(uir_call_create(call, 0, data->dtype, data->rank, data->shape, out_result));
    const uir_string_view *views = data->data;
    if (data->dtype != UIR_DTYPE_STRING && data->byte_size) memcpy((*out_result)->data, data->data, data->byte_size);
    for (uint64_t i = 0; data->dtype == UIR_DTYPE_STRING && i < data->element_count; i++)
        UIR_TRY(uir_tensor_set_string(*out_result, i, views[i].text, views[i].length));
    return UIR_STATUS_OK;
}

/* Element `at` of the result becomes, or is combined with, update `i`. */
static uir_status put(combine how, uir_tensor *result, uint64_t at, const uir_tensor *updates, uint64_t i) {
    uint32_t bits = uir_dtype_bits(result->dtype);
    if (result->dtype == UIR_DTYPE_STRING) {
        const uir_string_view *view = (const uir_string_view *)updates->data + i;
        return uir_tensor_set_string(result, at, view->text ? view->text : "", view->length);
    }
    if (how != COMBINE_NONE) {
        combine_element(how, result->dtype, result->data, at, updates->data, i);
    } else if (bits >= 8) {
        size_t size = bits / 8;
        memcpy((uint8_t *)result->data + at * size, (const uint8_t *)updates->data + i * size, size);
    } else {
        double value = uir_dtype_load_double(result->dtype, updates->data, i); /* a packed value is exact in it */
        uir_dtype_store_double(result->dtype, result->data, at, value, UIR_ROUND_NEAREST_EVEN);
    }
    return UIR_STATUS_OK;
}

uir_status uir_interpret_scatter_elements(uir_call *call) {
    const uir_tensor *data = uir_call_tensor(call, 0), *indices = uir_call_tensor(call, 1);
    const uir_tensor *updates = uir_call_tensor(call, 2);
    uint32_t axis = (uint32_t)uir_call_int(call, "axis", 0);
    if (memcmp(updates->shape, indices->shape, indices->rank * sizeof *indices->shape))
        return uir_call_fail(call, UIR_STATUS_BAD_DATA, "the updates do not have the shape of the indices");
    box_walk walk;
    UIR_TRY(open_walk(call, data, indices, axis, &walk));
    UIR_TRY(check_all(call, indices, data->shape[axis]));
    combine how = find_combine(call);
    uir_tensor *result;
    UIR_TRY(copy_data(call, &result));
    uint64_t walked = 0;
    for (uint64_t i = 0; i < indices->element_count; i++, step(&walk)) {
        if (uir_call_stops(call, &walked, 1)) return UIR_STATUS_CANCELLED;
        UIR_TRY(put(how, result, (uint64_t)place(&walk, axis, load_index(indices, i)), updates, i));
    }
    return UIR_STATUS_OK;
}

uir_status uir_interpret_scatter_nd(uir_call *call) {
    const uir_tensor *data = uir_call_tensor(call, 0), *indices = uir_call_tensor(call, 1);
    const uir_tensor *updates = uir_call_tensor(call, 2);
    uint32_t lead = indices->rank - 1, depth = (uint32_t)indices->shape[lead];
    for (uint32_t d = 0; d < updates->rank; d++)
        if (updates->shape[d] != (d < lead ? indices->shape[d] : data->shape[d - lead + depth]))
            return uir_call_fail(call, UIR_STATUS_BAD_DATA, "the updates do not fit the indices");
    combine how = find_combine(call);
    uint64_t count = (uint64_t)product(indices->shape, 0, lead),
             row = (uint64_t)product(data->shape, depth, data->rank);
    int64_t at;
    uint64_t walked = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (uir_call_stops(call, &walked, 1)) return UIR_STATUS_CANCELLED;
        UIR_TRY(find_row(call, data, indices, 0, i, 0, &at));
    }
    uir_tensor *result;
    UIR_TRY(copy_data(call, &result));
    for (uint64_t i = 0; i < count; i++) {
        UIR_TRY(find_row(call, data, indices, 0, i, 0, &at));
        for (uint64_t k = 0; k < row; k++) {
            if (uir_call_stops(call, &walked, 1)) return UIR_STATUS_CANCELLED;
            UIR_TRY(put(how, result, (uint64_t)at * row + k, updates, i * row + k));
        }
    }
    return UIR_STATUS_OK;
}
