/* Tensors where the caller holds them: packed, or with strides. Strides that are those of a packed tensor but for room
 * behind each stretch of one axis are the port's slack, which kernels know; all others are copied. */
#include "runtime/internal.h"

#include <string.h>

static void pack_strides(uint32_t rank, const int64_t *shape, uint32_t slack_axis, int64_t slack, int64_t *strides) {
    int64_t stride = 1;
    for (uint32_t d = rank; d-- > 0;) {
        strides[d] = stride;
        if (__builtin_mul_overflow(stride, shape[d] + (d == slack_axis ? slack : 0), &stride)) stride = INT64_MAX;
    }
}

/* Equal where they matter: an axis of one element has any stride. */
static bool same_strides(uint32_t rank, const int64_t *shape, const int64_t *a, const int64_t *b) {
    for (uint32_t d = 0; d < rank; d++) {
        if (shape[d] > 1 && a[d] != b[d]) return false;
    }
    return true;
}

/* The slack that the strides tell: from the innermost axis before `axis` that has more than one index. */
static int64_t find_slack(uint32_t rank, const int64_t *shape, uint32_t axis, const int64_t *strides) {
    int64_t inner = 1;
    for (uint32_t d = rank; d-- > axis + 1;) {
        if (shape[d] == 0 || __builtin_mul_overflow(inner, shape[d], &inner)) return 0;
    }
    for (uint32_t d = axis; d-- > 0;) {
        if (shape[d] > 1) return strides[d] % inner ? 0 : strides[d] / inner - shape[axis];
    }
    return 0;
}

uir_status uir_rt_bind_slack(uir_runtime *r, const uir_plan_port *port, const int64_t *shape, uir_rt_binding *binding) {
    uint32_t rank = uir_rt_rank(r, port->tensor), axis = port->slack_axis;
    int64_t slack = 0, strides[UIR_PLAN_MAX_RANK];
    binding->in_place = true;
    if (binding->strided) {
        bool known = port->slack != UIR_PLAN_NONE && axis != UIR_PLAN_NONE && shape;
        if (known) slack = find_slack(rank, shape, axis, binding->strides);
        if (slack < 0) slack = 0;
        if (shape) pack_strides(rank, shape, axis, slack, strides);
        binding->in_place = shape && same_strides(rank, shape, binding->strides, strides);
        if (!binding->in_place) slack = 0;
    }
    return port->slack == UIR_PLAN_NONE ? UIR_STATUS_OK : uir_rt_bind_symbol(r, port->slack, slack);
}

bool uir_rt_footprint(const uir_rt_binding *binding, uir_dtype dtype, uint32_t rank, const int64_t *shape,
                      size_t *out) {
    int64_t last = 1, extent;
    for (uint32_t d = 0; d < rank; d++) {
        if (shape[d] == 0) return *out = 0, true;
    }
    for (uint32_t d = 0; d < rank; d++) {
        if (__builtin_mul_overflow(shape[d] - 1, binding->strides[d], &extent) ||
            __builtin_add_overflow(last, extent, &last))
            return false;
    }
    return uir_dtype_storage_size(dtype, (uint64_t)last, out);
}

/* Rows of the last axis, which are copied at once where both sides have them packed. */
static void copy_elements(uint32_t rank, const int64_t *shape, size_t size, char *to, const int64_t *to_strides,
                          const char *from, const int64_t *from_strides) {
    int64_t index[UIR_PLAN_MAX_RANK] = {0};
    uint32_t outer = rank ? rank - 1 : 0;
    bool rows = rank && (shape[outer] == 1 || (to_strides[outer] == 1 && from_strides[outer] == 1));
    for (uint32_t d = 0; d < rank; d++) {
        if (shape[d] == 0) return;
    }
    for (;;) {
        char *t = to;
        const char *f = from;
        for (uint32_t d = 0; d < outer; d++) {
            t += (ptrdiff_t)(index[d] * to_strides[d]) * (ptrdiff_t)size;
            f += (ptrdiff_t)(index[d] * from_strides[d]) * (ptrdiff_t)size;
        }
        if (rows || !rank) {
            memmove(t, f, (rank ? (size_t)shape[outer] : 1) * size);
        } else {
            for (int64_t i = 0; i < shape[outer]; i++)
                memcpy(t + (ptrdiff_t)(i * to_strides[outer]) * (ptrdiff_t)size,
                       f + (ptrdiff_t)(i * from_strides[outer]) * (ptrdiff_t)size, size);
        }
        uint32_t d = outer;
        while (d > 0 && ++index[d - 1] == shape[d - 1]) index[--d] = 0;
        if (d == 0) return;
    }
}

void uir_rt_gather(const uir_rt_binding *binding, uir_dtype dtype, uint32_t rank, const int64_t *shape, void *to) {
    int64_t packed[UIR_PLAN_MAX_RANK];
    pack_strides(rank, shape, UIR_PLAN_NONE, 0, packed);
    copy_elements(rank, shape, (size_t)uir_dtype_bits(dtype) / 8, to, packed, binding->at.host, binding->strides);
}

void uir_rt_scatter(const uir_rt_binding *binding, uir_dtype dtype, uint32_t rank, const int64_t *shape,
                    uint32_t slack_axis, int64_t slack, const void *from) {
    int64_t strides[UIR_PLAN_MAX_RANK];
    pack_strides(rank, shape, slack_axis, slack, strides);
    copy_elements(rank, shape, (size_t)uir_dtype_bits(dtype) / 8, binding->at.host, binding->strides, from, strides);
}
