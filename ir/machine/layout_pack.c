/* Layouts at known sizes: tensors copied into them and back. */
#include "ir/machine/layout.h"

#include <string.h>

static bool evaluate(const uir_dims *dims, uir_dim dim, const int64_t *values, const bool *bound, uint32_t count,
                     int64_t *out) {
    return uir_dim_evaluate(dims, dim, values, bound, count, out) == UIR_DIM_EVALUATED;
}

static bool add_reach(int64_t size, int64_t stride, int64_t *span) {
    int64_t reach;
    return !__builtin_mul_overflow(size - 1, stride, &reach) && !__builtin_add_overflow(*span, reach, span);
}

uir_status uir_layout_bind(const uir_layout *layout, const uir_dim *extents, uint32_t rank, const uir_dims *dims,
                           const int64_t *values, const bool *bound, uint32_t count, uir_bound_layout *out) {
    *out = (uir_bound_layout){.rank = rank, .swizzle = layout->swizzle, .elements = 1, .span = 1};
    for (uint32_t d = 0; d < rank; d++) {
        if (!evaluate(dims, extents[d], values, bound, count, &out->extents[d])) return UIR_STATUS_INVALID_ARGUMENT;
        if (out->extents[d] < 0) out->extents[d] = 0;
        if (__builtin_mul_overflow(out->elements, out->extents[d], &out->elements)) return UIR_STATUS_INVALID_ARGUMENT;
        out->mode_count[d] = layout->mode_count[d];
        for (uint32_t m = 0; m < layout->mode_count[d]; m++) {
            int64_t *size = &out->sizes[d][m], *stride = &out->strides[d][m];
            if (!evaluate(dims, layout->modes[d][m].size, values, bound, count, size) ||
                !evaluate(dims, layout->modes[d][m].stride, values, bound, count, stride) ||
                !add_reach(*size, *stride, &out->span))
                return UIR_STATUS_INVALID_ARGUMENT;
        }
    }
    for (uint32_t d = 0; d < rank && out->elements; d++)
        for (uint32_t m = 0; m < out->mode_count[d]; m++)
            if (out->sizes[d][m] < 1) return UIR_STATUS_INVALID_ARGUMENT;
    int64_t block = (int64_t)1 << (out->swizzle.base + out->swizzle.bits);
    if (!out->swizzle.bits || out->span <= 0) return UIR_STATUS_OK;
    if (__builtin_add_overflow(out->span, block - 1, &out->span)) return UIR_STATUS_INVALID_ARGUMENT;
    out->span -= out->span % block;
    return UIR_STATUS_OK;
}

static void copy_element(uir_dtype dtype, void *to, int64_t to_index, const void *from, int64_t from_index) {
    uint32_t bits = uir_dtype_bits(dtype);
    if (bits < 8) {
        uir_dtype_store_integer(dtype, to, (uint64_t)to_index,
                                uir_dtype_load_integer(dtype, from, (uint64_t)from_index), false,
                                UIR_ROUND_NEAREST_EVEN);
    } else {
        size_t size = bits / 8;
        memcpy((char *)to + (size_t)to_index * size, (const char *)from + (size_t)from_index * size, size);
    }
}

/* `count` elements from one place to another, both contiguous. */
static void copy_run(uir_dtype dtype, void *to, int64_t to_index, const void *from, int64_t from_index, int64_t count) {
    uint32_t bits = uir_dtype_bits(dtype);
    if (bits < 8) {
        for (int64_t i = 0; i < count; i++) copy_element(dtype, to, to_index + i, from, from_index + i);
        return;
    }
    size_t size = bits / 8;
    memcpy((char *)to + (size_t)to_index * size, (const char *)from + (size_t)from_index * size, (size_t)count * size);
}

enum { BLOCK_ROWS = 64 }; /* copied together, so that panels of columns are written in long stretches */

/* Rows along the last dim, of which element i of row r is at rows[r] + along[i]: as many at once as lie together. */
static uir_status copy_block(const uir_bound_layout *l, uir_dtype dtype, bool pack, const void *from, void *to,
                             int64_t at, const int64_t *rows, int64_t row_count, const int64_t *along,
                             int64_t columns) {
    for (int64_t i = 0, run; i < columns; i += run) {
        for (run = 1; !l->swizzle.bits && i + run < columns && along[i + run] == along[i] + run;) run++;
        for (int64_t r = 0; r < row_count; r++) {
            int64_t start, dense = at + r * columns + i;
            if (__builtin_add_overflow(rows[r], along[i], &start) || start < 0) return UIR_STATUS_INVALID_ARGUMENT;
            start = uir_layout_swizzle(l->swizzle, start);
            if (start > l->span - run) return UIR_STATUS_INVALID_ARGUMENT;
            if (pack)
                copy_run(dtype, to, start, from, dense, run);
            else
                copy_run(dtype, to, dense, from, start, run);
        }
    }
    return UIR_STATUS_OK;
}

static uir_status copy_rows(const uir_bound_layout *l, uir_dtype dtype, bool pack, const void *from, void *to,
                            const int64_t *along) {
    int64_t index[UIR_LAYOUT_MAX_RANK] = {0}, columns = l->rank ? l->extents[l->rank - 1] : 1, offset = 0;
    int64_t rows[BLOCK_ROWS], count = 0, total = l->elements / columns;
    static const int64_t only[1] = {0};
    if (!l->rank) along = only;
    for (int64_t row = 0; row < total; row++) {
        rows[count++] = offset;
        if (count == BLOCK_ROWS || row + 1 == total) {
            UIR_TRY(copy_block(l, dtype, pack, from, to, (row + 1 - count) * columns, rows, count, along, columns));
            count = 0;
        }
        for (uint32_t d = l->rank ? l->rank - 1 : 0; d-- > 0;) {
            offset -= uir_layout_offset_along(l, d, index[d]);
            index[d] = index[d] + 1 == l->extents[d] ? 0 : index[d] + 1;
            offset += uir_layout_offset_along(l, d, index[d]);
            if (index[d] != 0) break;
        }
    }
    return UIR_STATUS_OK;
}

static uir_status copy_all(const uir_bound_layout *l, uir_dtype dtype, const uir_allocator *allocator, bool pack,
                           const void *from, void *to) {
    int64_t columns = l->rank ? l->extents[l->rank - 1] : 0, *along;
    size_t size;
    if (l->elements == 0) return UIR_STATUS_OK;
    if (__builtin_mul_overflow((size_t)columns, sizeof *along, &size)) return UIR_STATUS_INVALID_ARGUMENT;
    UIR_TRY_ALLOCATE(along, uir_allocate(allocator, size));
    for (int64_t i = 0; i < columns; i++) along[i] = uir_layout_offset_along(l, l->rank - 1, i);
    uir_status status = copy_rows(l, dtype, pack, from, to, along);
    uir_release(allocator, along, size);
    return status;
}

uir_status uir_layout_pack(const uir_bound_layout *layout, uir_dtype dtype, const uir_allocator *allocator,
                           const void *row_major, void *packed) {
    size_t size;
    if (!uir_dtype_storage_size(dtype, layout->span > 0 ? (uint64_t)layout->span : 0, &size))
        return UIR_STATUS_INVALID_ARGUMENT;
    if (size) memset(packed, 0, size);
    return copy_all(layout, dtype, allocator, true, row_major, packed);
}

uir_status uir_layout_unpack(const uir_bound_layout *layout, uir_dtype dtype, const uir_allocator *allocator,
                             const void *packed, void *row_major) {
    return copy_all(layout, dtype, allocator, false, packed, row_major);
}
