/* Contractions: both are c[b] = a[b] * b[b] over packed panels of the right operand. For a convolution `a` are the
 * filters of a group and the panels are gathered from the windows, a block of output positions at a time; nothing of
 * the size of all windows is ever made. */
#include "ir/graph/interpret/interpret.h"
#include "ir/graph/interpret/windows.h"
#include <string.h>

enum {
    ROWS = 4,           /* of a register block */
    DEPTH = 256,        /* summed in one go: partial sums keep f32 accurate, a panel's part stays in the first cache */
    MOST_JOB = 1 << 29, /* multiply-adds of a job */
    DIRECT_COLUMNS = 512, /* of a block without packing */
    PANEL_BYTES = 1 << 19 /* packed at a time, for the second cache */
};

typedef struct contraction {
    int64_t batches, m, n, k;
    const void *a, *b;
    void *c;
    int64_t a_stride, a_batches, b_stride, c_stride; /* of a batch, in elements; `a` repeats after a_batches */
    const window_map *map;                           /* of a convolution */
    bool direct;                                     /* few rows: packing would cost more than it saves */
    int64_t column_block, row_block, column_blocks, row_blocks;
    uint8_t *scratch; /* of scratch_size for each worker */
    size_t scratch_size;
    void (*run)(const struct contraction *t, int64_t batch, int64_t m0, int64_t m1, int64_t j0, int64_t columns,
                void *scratch);
} contraction;

#define T           float
#define TYPED(name) name##_f32
#define WIDTH       8
#include "ir/graph/interpret/contract_kernel.h"
#define T           double
#define TYPED(name) name##_f64
#define WIDTH       4
#include "ir/graph/interpret/contract_kernel.h"
#define T           uint32_t
#define TYPED(name) name##_u32
#define WIDTH       8
#include "ir/graph/interpret/contract_kernel.h"
#define T           uint64_t
#define TYPED(name) name##_u64
#define WIDTH       4
#include "ir/graph/interpret/contract_kernel.h"

/* What elements are multiplied and summed in. */
typedef struct contraction_type {
    uir_dtype dtype;
    int64_t width;
    void (*run)(const contraction *t, int64_t batch, int64_t m0, int64_t m1, int64_t j0, int64_t columns,
                void *scratch);
} contraction_type;

static contraction_type choose_type(uir_dtype a, uir_dtype b, uir_dtype to) {
    if (uir_dtype_is_float(a))
        return a == UIR_DTYPE_F64 || to == UIR_DTYPE_F64 ? (contraction_type){UIR_DTYPE_F64, 4, run_f64}
                                                         : (contraction_type){UIR_DTYPE_F32, 8, run_f32};
    /* Modulo 2^32 is enough for a result of 32 bits. */
    (void)b;
    return uir_dtype_bits(to) <= 32 ? (contraction_type){UIR_DTYPE_I32, 8, run_u32}
                                    : (contraction_type){UIR_DTYPE_I64, 4, run_u64};
}

static void run_job(void *user, uint64_t job, uint32_t worker) {
    const contraction *t = user;
    int64_t rows = (int64_t)job % t->row_blocks, rest = (int64_t)job / t->row_blocks;
    int64_t j0 = rest % t->column_blocks * t->column_block, batch = rest / t->column_blocks;
    int64_t m0 = rows * t->row_block, m1 = m0 + t->row_block < t->m ? m0 + t->row_block : t->m;
    int64_t columns = t->n - j0 < t->column_block ? t->n - j0 : t->column_block;
    t->run(t, batch, m0, m1, j0, columns, t->scratch + worker * t->scratch_size);
}

/* Cuts the work into jobs and runs them. The result is zeroed beforehand. */
static uir_status run_contraction(uir_call *call, contraction *t, const contraction_type *type) {
    if (!t->batches || !t->m || !t->n || !t->k) return UIR_STATUS_OK; /* sums of nothing */
    size_t size = uir_dtype_bits(type->dtype) / 8;
    t->run = type->run;
    t->direct = t->m < ROWS;
    t->column_block = DIRECT_COLUMNS;
    if (!t->direct) {
        int64_t block = PANEL_BYTES / (t->k * (int64_t)size) / type->width * type->width;
        t->column_block = block < type->width ? type->width : block > DIRECT_COLUMNS ? DIRECT_COLUMNS : block;
    }
    t->column_blocks = (t->n + t->column_block - 1) / t->column_block;
    t->row_block = t->m;
    uint64_t threads = uir_call_threads(call), jobs = (uint64_t)(t->batches * t->column_blocks);
    /* Too few blocks of columns for the threads: cut the rows too, which packs a block more than once. */
    if (jobs < 2 * threads && threads > 1 && t->m >= 8 * ROWS) {
        int64_t parts = (int64_t)((2 * threads + jobs - 1) / jobs);
        t->row_block = ((t->m + parts - 1) / parts + ROWS - 1) / ROWS * ROWS;
    }
    /* No job so large that a wish to stop waits for it. */
    int64_t most = MOST_JOB / t->k / (t->n < t->column_block ? t->n : t->column_block) / ROWS * ROWS;
    if (most < ROWS) most = ROWS;
    if (t->row_block > most) t->row_block = most;
    t->row_blocks = (t->m + t->row_block - 1) / t->row_block;
    jobs *= (uint64_t)t->row_blocks;
    uint64_t cost = (uint64_t)(t->batches * t->n) * (uint64_t)t->m * (uint64_t)t->k;
    uint32_t workers = uir_call_workers(call, jobs, cost);
    size_t total = 0;
    if (!t->direct) {
        if ((uint64_t)t->k > SIZE_MAX / 64 / workers / (uint64_t)(t->column_block + 1) / size) return UIR_STATUS_LIMIT;
        t->scratch_size = ((size_t)(t->k * (t->column_block + type->width)) * size + 63) / 64 * 64;
        total = t->scratch_size * workers;
        UIR_TRY_ALLOCATE(t->scratch, uir_allocate(call->allocator, total));
    }
    uir_call_parallel(call, jobs, cost, run_job, t);
    if (t->scratch) uir_release(call->allocator, t->scratch, total);
    return UIR_STATUS_OK;
}

/* Operands 0 and 1 converted, the result made, the product run into it (by way of the accumulator's dtype). `left` and
 * `right` are the operands that are `a` and `b` of the contraction. */
static uir_status contract(uir_call *call, contraction *t, uint32_t left, uint32_t right, uint32_t rank,
                           const int64_t *shape) {
    const uir_tensor *a = uir_call_tensor(call, left), *b = uir_call_tensor(call, right);
    uir_dtype to = uir_node_dtype(call->module, call->node, "to", UIR_DTYPE_NONE);
    contraction_type type = choose_type(a->dtype, b->dtype, to);
    uir_tensor *result, *sums = NULL;
    UIR_TRY(uir_call_create(call, 0, to, rank, shape, &result));
    if (type.dtype != to) UIR_TRY(uir_tensor_create(call->allocator, type.dtype, rank, shape, &sums));
    void *a_temporary = NULL, *b_temporary = NULL;
    size_t a_size = 0, b_size = 0;
    uir_status status = uir_call_convert(call, a, type.dtype, &t->a, &a_temporary, &a_size);
    if (status == UIR_STATUS_OK) status = uir_call_convert(call, b, type.dtype, &t->b, &b_temporary, &b_size);
    t->c = sums ? sums->data : result->data;
    if (status == UIR_STATUS_OK) status = run_contraction(call, t, &type);
    if (status == UIR_STATUS_OK && sums)
        status =
            uir_dtype_convert(type.dtype, sums->data, to, result->data, result->element_count, UIR_ROUND_NEAREST_EVEN);
    uir_call_release(call, a_temporary, a_size);
    uir_call_release(call, b_temporary, b_size);
    uir_tensor_release(sums);
    return status;
}

uir_status uir_interpret_matmul(uir_call *call) {
    const uir_tensor *a = uir_call_tensor(call, 0), *b = uir_call_tensor(call, 1);
    uint32_t rank = a->rank;
    if (a->shape[rank - 1] != b->shape[rank - 2] || memcmp(a->shape, b->shape, (rank - 2) * sizeof *a->shape)) {
        char left[200], right[200];
        uir_tensor_describe(a, left, sizeof left);
        uir_tensor_describe(b, right, sizeof right);
        return uir_call_fail(call, UIR_STATUS_BAD_DATA, "operands %s and %s do not match", left, right);
    }
    int64_t shape[UIR_MAX_RANK], batches = 1;
    memcpy(shape, a->shape, sizeof shape);
    shape[rank - 1] = b->shape[rank - 1];
    for (uint32_t d = 0; d + 2 < rank; d++) batches *= a->shape[d];
    contraction t = {.batches = batches,
                     .m = a->shape[rank - 2],
                     .n = b->shape[rank - 1],
                     .k = a->shape[rank - 1],
                     .a_batches = batches ? batches : 1};
    t.a_stride = t.m * t.k;
    t.b_stride = t.k * t.n;
    t.c_stride = t.m * t.n;
    return contract(call, &t, 0, 1, rank, shape);
}

/* Whether every window is one element and the positions are those of the image. */
static bool is_pointwise(const window_map *map) {
    bool pointwise = map->window_size == 1;
    for (uint32_t d = 0; d < map->rank; d++)
        pointwise = pointwise && map->strides[d] == 1 && map->low[d] == 0 && map->out[d] == map->in[d];
    return pointwise;
}

uir_status uir_interpret_conv(uir_call *call) {
    const uir_tensor *x = uir_call_tensor(call, 0), *w = uir_call_tensor(call, 1);
    int64_t groups = uir_call_int(call, "groups", 1), channels = w->shape[1], filters = w->shape[0];
    if (channels > INT64_MAX / groups || channels * groups != x->shape[1] || filters % groups) {
        char left[200], right[200];
        uir_tensor_describe(x, left, sizeof left);
        uir_tensor_describe(w, right, sizeof right);
        return uir_call_fail(call, UIR_STATUS_BAD_DATA, "operand %s and filters %s in %lld groups do not match", left,
                             right, (long long)groups);
    }
    window_map map;
    UIR_TRY(uir_window_map_init(call, x, w->shape + 2, &map));
    map.channels = channels;
    int64_t shape[UIR_MAX_RANK] = {x->shape[0], filters};
    for (uint32_t d = 0; d < map.rank; d++) shape[d + 2] = map.out[d];
    contraction t = {.batches = x->shape[0] * groups,
                     .m = filters / groups,
                     .n = map.rows * map.row_length,
                     .k = channels * map.window_size,
                     .a_batches = groups,
                     .map = is_pointwise(&map) ? NULL : &map};
    t.a_stride = t.m * t.k;
    t.b_stride = channels * map.image_size;
    t.c_stride = t.m * t.n;
    return contract(call, &t, 1, 0, x->rank, shape);
}
