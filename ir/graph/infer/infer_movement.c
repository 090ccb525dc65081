/* Type inference of movement ops, contractions and windows. */
#include "ir/graph/infer/infer.h"
#include <string.h>

static uir_dim constant(uir_inference *inference, int64_t value) {
    return uir_dim_const(inference->dims, value);
}

uir_status uir_infer_broadcast(uir_inference *inference) {
    const uir_type *a = uir_infer_operand(inference, 0);
    uint32_t rank;
    const uir_dim *dims = uir_node_dims(inference->module, inference->node, "dims", &rank);
    if (rank < a->rank) return uir_infer_fail(inference, "rank %u does not broadcast to %u", a->rank, rank);
    uir_dim one = constant(inference, 1);
    for (uint32_t d = 0; d < a->rank; d++) {
        uir_dim from = a->dims[d], to = dims[d + rank - a->rank];
        if (uir_infer_unequal(inference, from, one) && uir_infer_unequal(inference, from, to))
            return uir_infer_fail(inference, "dim %u of the operand does not broadcast", d);
    }
    return uir_infer_result_dims(inference, 0, a->dtype, dims, rank);
}

static uir_dim product(uir_inference *inference, const uir_dim *dims, uint32_t rank) {
    uir_dim result = constant(inference, 1);
    for (uint32_t d = 0; d < rank; d++) result = uir_dim_mul(inference->dims, result, dims[d]);
    return result;
}

uir_status uir_infer_reshape(uir_inference *inference) {
    const uir_type *a = uir_infer_operand(inference, 0);
    uint32_t rank;
    const uir_dim *dims = uir_node_dims(inference->module, inference->node, "dims", &rank);
    uir_dim from = product(inference, a->dims, a->rank), to = product(inference, dims, rank);
    if (!from.id || !to.id) return uir_infer_fail(inference, "the number of elements overflows");
    if (uir_infer_unequal(inference, from, to))
        return uir_infer_fail(inference, "the operand and the result have different numbers of elements");
    return uir_infer_result_dims(inference, 0, a->dtype, dims, rank);
}

uir_status uir_infer_transpose(uir_inference *inference) {
    const uir_type *a = uir_infer_operand(inference, 0);
    const int64_t *perm;
    UIR_TRY(uir_infer_ints(inference, "perm", a->rank, &perm));
    uir_dim *dims;
    UIR_TRY_ALLOCATE(dims, uir_infer_result(inference, 0, a->dtype, a->rank));
    uint32_t seen = 0; /* a bit per axis; ranks are at most UIR_MAX_RANK */
    for (uint32_t d = 0; d < a->rank; d++) {
        if (perm[d] < 0 || perm[d] >= a->rank || seen >> perm[d] & 1)
            return uir_infer_fail(inference, "perm is not a permutation");
        seen |= 1u << perm[d];
        dims[d] = a->dims[perm[d]];
    }
    return UIR_STATUS_OK;
}

uir_status uir_infer_slice(uir_inference *inference) {
    const uir_type *a = uir_infer_operand(inference, 0);
    const uir_dim *starts, *sizes;
    const int64_t *steps;
    UIR_TRY(uir_infer_dims(inference, "starts", a->rank, &starts));
    UIR_TRY(uir_infer_dims(inference, "sizes", a->rank, &sizes));
    UIR_TRY(uir_infer_ints(inference, "steps", a->rank, &steps));
    for (uint32_t d = 0; d < a->rank; d++) {
        if (!steps[d] || steps[d] == INT64_MIN)
            return uir_infer_fail(inference, "step %u is %lld", d, (long long)steps[d]);
        int64_t start, size, extent;
        if (!uir_dim_is_const(inference->dims, starts[d], &start) ||
            !uir_dim_is_const(inference->dims, sizes[d], &size) ||
            !uir_dim_is_const(inference->dims, a->dims[d], &extent))
            continue;
        if (!uir_slice_fits(start, size, steps[d], extent))
            return uir_infer_fail(inference, "start %lld, size %lld, step %lld exceed axis %u, which has %lld elements",
                                  (long long)start, (long long)size, (long long)steps[d], d, (long long)extent);
    }
    return uir_infer_result_dims(inference, 0, a->dtype, sizes, a->rank);
}

uir_status uir_infer_windows(uir_inference *inference) {
    const uir_type *a = uir_infer_operand(inference, 0);
    const uir_dim *starts, *sizes;
    const int64_t *steps, *window, *axes, *dilations;
    uint32_t count;
    uir_node_ints(inference->module, inference->node, "window", &count);
    UIR_TRY(uir_infer_dims(inference, "starts", a->rank, &starts));
    UIR_TRY(uir_infer_dims(inference, "sizes", a->rank, &sizes));
    UIR_TRY(uir_infer_ints(inference, "steps", a->rank, &steps));
    UIR_TRY(uir_infer_ints(inference, "window", count, &window));
    UIR_TRY(uir_infer_ints(inference, "axes", count, &axes));
    UIR_TRY(uir_infer_ints(inference, "dilations", count, &dilations));
    if (count > UIR_MAX_RANK - a->rank)
        return uir_infer_fail(inference, "rank %u and %u windows exceed the maximum rank", a->rank, count);
    uir_dim *dims;
    UIR_TRY_ALLOCATE(dims, uir_infer_result(inference, 0, a->dtype, a->rank + count));
    for (uint32_t d = 0; d < a->rank; d++) {
        if (steps[d] < 1 || steps[d] > INT32_MAX)
            return uir_infer_fail(inference, "step %u is %lld", d, (long long)steps[d]);
        dims[d] = sizes[d];
    }
    for (uint32_t j = 0; j < count; j++) {
        if (axes[j] < 0 || axes[j] >= a->rank)
            return uir_infer_fail(inference, "axis %lld is out of range", (long long)axes[j]);
        if (window[j] < 0 || window[j] > INT32_MAX || dilations[j] > INT32_MAX || dilations[j] < -INT32_MAX)
            return uir_infer_fail(inference, "window %lld or dilation %lld is out of range", (long long)window[j],
                                  (long long)dilations[j]);
        dims[a->rank + j] = constant(inference, window[j]);
    }
    return uir_infer_check_made(inference, dims, a->rank + count);
}

uir_status uir_infer_pad(uir_inference *inference) {
    UIR_TRY(uir_infer_check_tensor(inference, 0, UIR_DTYPES_ANY));
    const uir_type *a = uir_infer_operand(inference, 0);
    UIR_TRY(uir_infer_check_scalar(inference, 1, a->dtype));
    const uir_dim *low, *high;
    const int64_t *interior;
    UIR_TRY(uir_infer_dims(inference, "low", a->rank, &low));
    UIR_TRY(uir_infer_dims(inference, "high", a->rank, &high));
    UIR_TRY(uir_infer_ints(inference, "interior", a->rank, &interior));
    uir_dim *dims;
    UIR_TRY_ALLOCATE(dims, uir_infer_result(inference, 0, a->dtype, a->rank));
    uir_dims *context = inference->dims;
    for (uint32_t d = 0; d < a->rank; d++) {
        if (interior[d] < 0)
            return uir_infer_fail(inference, "interior padding %lld is negative", (long long)interior[d]);
        dims[d] = uir_dim_add(context, uir_dim_add(context, a->dims[d], low[d]), high[d]);
        if (interior[d]) {
            uir_dim gaps = uir_dim_sub(context, a->dims[d], constant(inference, 1));
            gaps = uir_dim_max(context, gaps, constant(inference, 0));
            dims[d] = uir_dim_add(context, dims[d], uir_dim_mul(context, gaps, constant(inference, interior[d])));
        }
        int64_t extent;
        if (uir_dim_is_const(context, dims[d], &extent) && extent < 0)
            return uir_infer_fail(inference, "negative padding exceeds the extent of axis %u", d);
    }
    return uir_infer_check_made(inference, dims, a->rank);
}

uir_status uir_infer_concat(uir_inference *inference) {
    const uir_type *a = uir_infer_operand(inference, 0);
    uint32_t axis;
    UIR_TRY(uir_infer_axis(inference, "axis", a->rank, &axis));
    uir_dim *dims;
    UIR_TRY_ALLOCATE(dims, uir_infer_result(inference, 0, a->dtype, a->rank));
    if (a->rank) memcpy(dims, a->dims, a->rank * sizeof *dims);
    for (uint32_t i = 1; i < inference->node->input_count; i++) {
        const uir_type *b = uir_infer_operand(inference, i);
        if (b->rank != a->rank || b->dtype != a->dtype)
            return uir_infer_fail(inference, "operand %u is %s of rank %u, the first %s of rank %u", i,
                                  uir_dtype_name(b->dtype), b->rank, uir_dtype_name(a->dtype), a->rank);
        for (uint32_t d = 0; d < a->rank; d++) {
            if (d == axis) {
                dims[d] = uir_dim_add(inference->dims, dims[d], b->dims[d]);
            } else {
                if (uir_infer_unequal(inference, dims[d], b->dims[d]))
                    return uir_infer_fail(inference, "dim %u of operand %u differs from the first's", d, i);
                dims[d] = uir_infer_sharper(inference, dims[d], b->dims[d]);
            }
        }
    }
    return uir_infer_check_made(inference, dims, a->rank);
}

/* ---- gather and scatter ---- */

static uir_status check_indices(uir_inference *inference) {
    UIR_TRY(uir_infer_check_tensor(inference, 0, UIR_DTYPES_ANY));
    UIR_TRY(uir_infer_check_tensor(inference, 1, UIR_DTYPES_INTEGER));
    uir_dtype dtype = uir_infer_operand(inference, 1)->dtype;
    if (dtype != UIR_DTYPE_I64 && dtype != UIR_DTYPE_I32)
        return uir_infer_fail(inference, "the indices are %s instead of i32 or i64", uir_dtype_name(dtype));
    return UIR_STATUS_OK;
}

uir_status uir_infer_gather(uir_inference *inference) {
    UIR_TRY(check_indices(inference));
    const uir_type *data = uir_infer_operand(inference, 0), *indices = uir_infer_operand(inference, 1);
    uint32_t axis;
    UIR_TRY(uir_infer_axis(inference, "axis", data->rank, &axis));
    uint32_t rank = data->rank - 1 + indices->rank;
    uir_dim *dims;
    UIR_TRY_ALLOCATE(dims, uir_infer_result(inference, 0, data->dtype, rank));
    for (uint32_t d = 0; d < rank; d++)
        dims[d] = d < axis                   ? data->dims[d]
                  : d < axis + indices->rank ? indices->dims[d - axis]
                                             : data->dims[d - indices->rank + 1];
    return UIR_STATUS_OK;
}

uir_status uir_infer_gather_elements(uir_inference *inference) {
    UIR_TRY(check_indices(inference));
    const uir_type *data = uir_infer_operand(inference, 0), *indices = uir_infer_operand(inference, 1);
    uint32_t axis;
    UIR_TRY(uir_infer_axis(inference, "axis", data->rank, &axis));
    if (data->rank != indices->rank)
        return uir_infer_fail(inference, "data of rank %u, indices of rank %u", data->rank, indices->rank);
    return uir_infer_result_dims(inference, 0, data->dtype, indices->dims, indices->rank);
}

/* The extent of the last axis of the indices of an _ND op: how many axes of the data they index. */
static uir_status index_depth(uir_inference *inference, uint32_t batch, uint32_t *out_depth) {
    const uir_type *data = uir_infer_operand(inference, 0), *indices = uir_infer_operand(inference, 1);
    int64_t depth;
    if (!indices->rank || batch >= indices->rank || batch > data->rank)
        return uir_infer_fail(inference, "data of rank %u, indices of rank %u, batch %u", data->rank, indices->rank,
                              batch);
    if (!uir_dim_is_const(inference->dims, indices->dims[indices->rank - 1], &depth))
        return uir_error(inference->diagnostics, UIR_STATUS_UNSUPPORTED, &inference->location,
                         "%s: the last dim of the indices is not a constant", inference->row->name);
    if (depth < 0 || depth > (int64_t)(data->rank - batch))
        return uir_infer_fail(inference, "indices of %lld coordinates into data of rank %u", (long long)depth,
                              data->rank);
    *out_depth = (uint32_t)depth;
    return UIR_STATUS_OK;
}

uir_status uir_infer_gather_nd(uir_inference *inference) {
    UIR_TRY(check_indices(inference));
    const uir_type *data = uir_infer_operand(inference, 0), *indices = uir_infer_operand(inference, 1);
    int64_t batch = uir_node_int(inference->module, inference->node, "batch", 0);
    if (batch < 0 || batch > UIR_MAX_RANK)
        return uir_infer_fail(inference, "batch %lld is out of range", (long long)batch);
    uint32_t depth;
    UIR_TRY(index_depth(inference, (uint32_t)batch, &depth));
    uint32_t lead = indices->rank - 1, taken = (uint32_t)batch + depth, rank = lead + data->rank - taken;
    uir_dim *dims;
    UIR_TRY_ALLOCATE(dims, uir_infer_result(inference, 0, data->dtype, rank));
    for (uint32_t d = 0; d < rank; d++) {
        dims[d] = d < lead ? indices->dims[d] : data->dims[d - lead + taken];
        if (d < batch) {
            if (uir_infer_unequal(inference, indices->dims[d], data->dims[d]))
                return uir_infer_fail(inference, "batch dim %u of the indices differs from the data's", d);
            dims[d] = uir_infer_sharper(inference, data->dims[d], indices->dims[d]);
        }
    }
    return UIR_STATUS_OK;
}

static uir_status check_updates(uir_inference *inference, const uir_dim *dims, uint32_t rank) {
    UIR_TRY(uir_infer_check_tensor(inference, 2, UIR_DTYPES_ANY));
    const uir_type *data = uir_infer_operand(inference, 0), *updates = uir_infer_operand(inference, 2);
    if (updates->dtype != data->dtype || updates->rank != rank)
        return uir_infer_fail(inference, "updates are %s of rank %u instead of %s of rank %u",
                              uir_dtype_name(updates->dtype), updates->rank, uir_dtype_name(data->dtype), rank);
    for (uint32_t d = 0; d < rank; d++)
        if (uir_infer_unequal(inference, updates->dims[d], dims[d]))
            return uir_infer_fail(inference, "dim %u of the updates does not fit the indices", d);
    const char *reduction = uir_node_string(inference->module, inference->node, "reduction", "");
    bool none = !strcmp(reduction, "none");
    uint32_t classes = none ? UIR_DTYPES_ANY : UIR_DTYPES_REAL;
    if (!none && strcmp(reduction, "min") && strcmp(reduction, "max") && strcmp(reduction, "add") &&
        strcmp(reduction, "mul"))
        return uir_infer_fail(inference, "reduction \"%s\"", reduction);
    return uir_infer_check_tensor(inference, 0, classes);
}

uir_status uir_infer_scatter_elements(uir_inference *inference) {
    UIR_TRY(check_indices(inference));
    const uir_type *data = uir_infer_operand(inference, 0), *indices = uir_infer_operand(inference, 1);
    uint32_t axis;
    UIR_TRY(uir_infer_axis(inference, "axis", data->rank, &axis));
    if (data->rank != indices->rank)
        return uir_infer_fail(inference, "data of rank %u, indices of rank %u", data->rank, indices->rank);
    UIR_TRY(check_updates(inference, indices->dims, indices->rank));
    return uir_infer_result_dims(inference, 0, data->dtype, data->dims, data->rank);
}

uir_status uir_infer_scatter_nd(uir_inference *inference) {
    UIR_TRY(check_indices(inference));
    const uir_type *data = uir_infer_operand(inference, 0), *indices = uir_infer_operand(inference, 1);
    uint32_t depth;
    UIR_TRY(index_depth(inference, 0, &depth));
    uint32_t lead = indices->rank - 1, rank = lead + data->rank - depth;
    if (rank > UIR_MAX_RANK) return uir_infer_fail(inference, "the updates have rank %u, above the maximum", rank);
    uir_dim dims[UIR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++) dims[d] = d < lead ? indices->dims[d] : data->dims[d - lead + depth];
    UIR_TRY(check_updates(inference, dims, rank));
    return uir_infer_result_dims(inference, 0, data->dtype, data->dims, data->rank);
}

uir_status uir_infer_iota(uir_inference *inference) {
    uint32_t rank, axis;
    const uir_dim *dims = uir_node_dims(inference->module, inference->node, "dims", &rank);
    uir_dtype dtype = uir_node_dtype(inference->module, inference->node, "dtype", UIR_DTYPE_NONE);
    if (!(UIR_DTYPES_NUMBER >> uir_dtype_get_class(dtype) & 1))
        return uir_infer_fail(inference, "element type %s is not supported", uir_dtype_name(dtype));
    UIR_TRY(uir_infer_axis(inference, "axis", rank, &axis));
    return uir_infer_result_dims(inference, 0, dtype, dims, rank);
}

/* ---- contractions and windows ---- */

/* The element type of a contraction's result: a number of its operands' class. */
static uir_status contraction_dtype(uir_inference *inference, uir_dtype *out_dtype) {
    uir_dtype a = uir_infer_operand(inference, 0)->dtype, b = uir_infer_operand(inference, 1)->dtype;
    uir_dtype to = uir_node_dtype(inference->module, inference->node, "to", UIR_DTYPE_NONE);
    bool real = uir_dtype_is_float(a);
    if (real != uir_dtype_is_float(b) || (real && a != b))
        return uir_infer_fail(inference, "the operands have element types %s and %s", uir_dtype_name(a),
                              uir_dtype_name(b));
    if (real ? !uir_dtype_is_float(to) : !uir_dtype_is_integer(to))
        return uir_infer_fail(inference, "%s does not accumulate to %s", uir_dtype_name(a), uir_dtype_name(to));
    *out_dtype = to;
    return UIR_STATUS_OK;
}

uir_status uir_infer_matmul(uir_inference *inference) {
    const uir_type *a = uir_infer_operand(inference, 0), *b = uir_infer_operand(inference, 1);
    uir_dtype to;
    UIR_TRY(contraction_dtype(inference, &to));
    uint32_t rank = a->rank;
    if (rank < 2 || b->rank != rank)
        return uir_infer_fail(inference, "the operands have ranks %u and %u", rank, b->rank);
    for (uint32_t d = 0; d + 2 < rank; d++)
        if (!uir_infer_equal(inference, a->dims[d], b->dims[d]))
            return uir_infer_fail(inference, "batch dim %u is not provably equal", d);
    if (uir_infer_unequal(inference, a->dims[rank - 1], b->dims[rank - 2]))
        return uir_infer_fail(inference, "the reduction axes differ");
    uir_dim *dims;
    UIR_TRY_ALLOCATE(dims, uir_infer_result(inference, 0, to, rank));
    memcpy(dims, a->dims, rank * sizeof *dims);
    dims[rank - 1] = b->dims[rank - 1];
    return UIR_STATUS_OK;
}

/* Sets dims[2..] of a result to the windows' positions: floordiv(extent + low + high - (window - 1) * dilation - 1,
 * stride)
 * + 1. */
static uir_status window_dims(uir_inference *inference, const uir_dim *window, uir_dim *dims) {
    const uir_type *x = uir_infer_operand(inference, 0);
    uint32_t spatial = x->rank - 2;
    const uir_dim *low, *high;
    const int64_t *strides, *dilations;
    UIR_TRY(uir_infer_ints(inference, "strides", spatial, &strides));
    UIR_TRY(uir_infer_ints(inference, "dilations", spatial, &dilations));
    UIR_TRY(uir_infer_dims(inference, "low", spatial, &low));
    UIR_TRY(uir_infer_dims(inference, "high", spatial, &high));
    uir_dims *context = inference->dims;
    for (uint32_t d = 0; d < spatial; d++) {
        if (strides[d] < 1 || dilations[d] < 1)
            return uir_infer_fail(inference, "stride %lld or dilation %lld is less than 1", (long long)strides[d],
                                  (long long)dilations[d]);
        uir_dim one = constant(inference, 1);
        uir_dim reach = uir_dim_mul(context, uir_dim_sub(context, window[d], one), constant(inference, dilations[d]));
        uir_dim padded = uir_dim_add(context, uir_dim_add(context, x->dims[d + 2], low[d]), high[d]);
        uir_dim room = uir_dim_sub(context, uir_dim_sub(context, padded, reach), one);
        dims[d + 2] = uir_dim_add(context, uir_dim_floordiv(context, room, constant(inference, strides[d])), one);
        int64_t extent;
        if (uir_dim_is_const(context, dims[d + 2], &extent) && extent < 0)
            return uir_infer_fail(inference, "the window is larger than padded axis %u", d + 2);
    }
    return uir_infer_check_made(inference, dims, x->rank);
}

uir_status uir_infer_conv(uir_inference *inference) {
    const uir_type *x = uir_infer_operand(inference, 0), *w = uir_infer_operand(inference, 1);
    uir_dtype to;
    UIR_TRY(contraction_dtype(inference, &to));
    if (x->rank < 3 || w->rank != x->rank)
        return uir_infer_fail(inference, "the operands have ranks %u and %u", x->rank, w->rank);
    int64_t groups = uir_node_int(inference->module, inference->node, "groups", 0), filters;
    if (groups < 1) return uir_infer_fail(inference, "groups is %lld, less than 1", (long long)groups);
    uir_dims *context = inference->dims;
    uir_dim channels = uir_dim_mul(context, w->dims[1], constant(inference, groups));
    if (!channels.id || uir_infer_unequal(inference, channels, x->dims[1]))
        return uir_infer_fail(inference, "the channels of the operand are not groups times those of the filters");
    if (uir_dim_is_const(context, w->dims[0], &filters) && filters % groups)
        return uir_infer_fail(inference, "%lld filters do not divide into %lld groups", (long long)filters,
                              (long long)groups);
    uir_dim *dims;
    UIR_TRY_ALLOCATE(dims, uir_infer_result(inference, 0, to, x->rank));
    dims[0] = x->dims[0];
    dims[1] = w->dims[0];
    return window_dims(inference, w->dims + 2, dims);
}

uir_status uir_infer_window(uir_inference *inference) {
    const uir_type *x = uir_infer_operand(inference, 0);
    if (x->rank < 3) return uir_infer_fail(inference, "the operand has rank %u, less than 3", x->rank);
    const uir_dim *window;
    UIR_TRY(uir_infer_dims(inference, "window", x->rank - 2, &window));
    uir_dim *dims;
    UIR_TRY_ALLOCATE(dims, uir_infer_result(inference, 0, x->dtype, x->rank));
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    return window_dims(inference, window, dims);
}
