/* Windows: the geometry shared with convolution, sums and maxima over windows. */
#include "ir/graph/interpret/windows.h"
#include <math.h>
#include <string.h>

uir_status uir_window_map_init(uir_call *call, const uir_tensor *x, const int64_t *window, window_map *out_map) {
    window_map *map = out_map;
    uint32_t count;
    int64_t high[UIR_MAX_RANK];
    *map = (window_map){.rank = x->rank - 2, .channels = 1, .image_size = 1, .window_size = 1, .rows = 1};
    const int64_t *strides = uir_node_ints(call->module, call->node, "strides", &count);
    const int64_t *dilations = uir_node_ints(call->module, call->node, "dilations", &count);
    UIR_TRY(uir_call_dims(call, "low", map->low, &count));
    UIR_TRY(uir_call_dims(call, "high", high, &count));
    if (count != map->rank) return uir_call_fail(call, UIR_STATUS_INTERNAL, "rank %u", x->rank);
    const int64_t far = INT32_MAX; /* keeps every product and sum below in 64 bits */
    for (uint32_t d = 0; d < map->rank; d++) {
        map->in[d] = x->shape[d + 2];
        map->window[d] = window[d];
        map->strides[d] = strides[d];
        map->dilations[d] = dilations[d];
        if (map->low[d] > far || map->low[d] < -far || high[d] > far || high[d] < -far || window[d] > far ||
            strides[d] > far || dilations[d] > far || map->in[d] > far)
            return uir_call_fail(call, UIR_STATUS_LIMIT,
                                 "a stride, dilation, padding or extent of axis %u is too large", d);
        int64_t room = map->in[d] + map->low[d] + high[d] - (window[d] - 1) * dilations[d] - 1;
        map->out[d] = (room < 0 ? -((-room + strides[d] - 1) / strides[d]) : room / strides[d]) + 1;
        if (map->out[d] < 0 || window[d] < 0)
            return uir_call_fail(call, UIR_STATUS_BAD_DATA, "the window is larger than axis %u with its padding",
                                 d + 2);
        map->image_size *= map->in[d]; /* part of a tensor's element count */
        if (__builtin_mul_overflow(map->window_size, window[d], &map->window_size))
            return uir_call_fail(call, UIR_STATUS_LIMIT, "the window is too large");
        if (d + 1 < map->rank && __builtin_mul_overflow(map->rows, map->out[d], &map->rows))
            return uir_call_fail(call, UIR_STATUS_LIMIT, "the result is too large");
    }
    map->row_length = map->out[map->rank - 1];
    map->row_stride = map->strides[map->rank - 1];
    uir_shape_strides(map->in, map->rank, map->in_strides);
    return UIR_STATUS_OK;
}

/* Results of one channel of one image; x in the compute type. */
enum { POLL_MASK = 255 }; /* windows' elements between looks at whether the run is still wanted */
typedef struct pooling {
    const uir_call *call;
    const window_map *map;
    const void *x;
    void *result;  /* of the accumulator's type */
    int64_t least; /* of a signed dtype */
    void (*run)(const struct pooling *p, int64_t channel);
} pooling;

#define POOL(name, type, wide, start, combine)                                                                         \
    static void name(const pooling *p, int64_t channel) {                                                              \
        const window_map *map = p->map;                                                                                \
        const type *image = (const type *)p->x + channel * map->image_size;                                            \
        wide *target = (wide *)p->result + channel * map->rows * map->row_length;                                      \
        for (int64_t row = 0; row < map->rows; row++, target += map->row_length) {                                     \
            for (int64_t i = 0; i < map->row_length; i++) target[i] = start;                                           \
            for (int64_t w = 0; w < map->window_size; w++) {                                                           \
                row_view view;                                                                                         \
                if (!(w & POLL_MASK) && uir_call_cancelled(p->call)) return;                                           \
                if (!view_row(map, row, w, 0, map->row_length, &view)) continue;                                       \
                const type *source = image + view.source;                                                              \
                wide *sums = target + view.first;                                                                      \
                for (int64_t i = 0; i < view.count; i++) {                                                             \
                    wide a = sums[i], b = (wide)source[i * map->row_stride];                                           \
                    sums[i] = combine;                                                                                 \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }
POOL(sum_f32, float, double, 0, a + b)
POOL(sum_f64, double, double, 0, a + b)
POOL(sum_u64, uint64_t, uint64_t, 0, a + b)
POOL(max_f32, float, float, -INFINITY, (a != a || b != b ? a + b : a > b ? a : b))
POOL(max_f64, double, double, -INFINITY, (a != a || b != b ? a + b : a > b ? a : b))
POOL(max_i64, int64_t, int64_t, p->least, a > b ? a : b)
POOL(max_u64, uint64_t, uint64_t, 0, a > b ? a : b)

static void run_channel(void *user, uint64_t job, uint32_t worker) {
    (void)worker;
    const pooling *p = user;
    p->run(p, (int64_t)job);
}

/* What op and compute dtype need. */
static uir_dtype choose(uir_op op, uir_dtype compute, pooling *p) {
    if (op == UIR_OP_WINDOW_SUM) {
        p->run = compute == UIR_DTYPE_F32 ? sum_f32 : compute == UIR_DTYPE_F64 ? sum_f64 : sum_u64;
        return compute == UIR_DTYPE_F32 ? UIR_DTYPE_F64 : compute;
    }
    p->run = compute == UIR_DTYPE_F32   ? max_f32
             : compute == UIR_DTYPE_F64 ? max_f64
             : compute == UIR_DTYPE_I64 ? max_i64
                                        : max_u64;
    return compute;
}

uir_status uir_interpret_window(uir_call *call) {
    const uir_tensor *x = uir_call_tensor(call, 0);
    int64_t window[UIR_MAX_RANK], shape[UIR_MAX_RANK];
    uint32_t count;
    window_map map;
    UIR_TRY(uir_call_dims(call, "window", window, &count));
    UIR_TRY(uir_window_map_init(call, x, window, &map));
    memcpy(shape, x->shape, 2 * sizeof *shape);
    for (uint32_t d = 0; d < map.rank; d++) shape[d + 2] = map.out[d];
    uir_tensor *result, *sums = NULL;
    UIR_TRY(uir_call_create(call, 0, x->dtype, x->rank, shape, &result));
    if (!result->element_count) return UIR_STATUS_OK;
    uir_dtype compute = uir_compute_dtype(x->dtype);
    pooling p = {.call = call, .map = &map};
    if (compute == UIR_DTYPE_I64) p.least = uir_dtype_integer_min(x->dtype);
    uir_dtype wide = choose(call->node->op, compute, &p);
    if (wide != x->dtype) UIR_TRY(uir_tensor_create(call->allocator, wide, x->rank, shape, &sums));
    void *temporary;
    size_t size;
    uir_status status = uir_call_convert(call, x, compute, &p.x, &temporary, &size);
    if (status == UIR_STATUS_OK) {
        p.result = sums ? sums->data : result->data;
        uint64_t cost = result->element_count * (uint64_t)(map.window_size + 1);
        uir_call_parallel(call, (uint64_t)(shape[0] * shape[1]), cost, run_channel, &p);
        if (sums)
            status = uir_dtype_convert(wide, sums->data, x->dtype, result->data, result->element_count,
                                       UIR_ROUND_NEAREST_EVEN);
        uir_call_release(call, temporary, size);
    }
    uir_tensor_release(sums);
    return status;
}
