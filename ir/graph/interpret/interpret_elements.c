/* Elements as bytes, strided copies, conversions: what the interpreter's ops share. */
#include "ir/graph/interpret/interpret.h"
#include <string.h>

uir_dtype uir_compute_dtype(uir_dtype dtype) {
    switch (uir_dtype_get_class(dtype)) {
    case UIR_DTYPE_CLASS_SIGNED:
        return UIR_DTYPE_I64;
    case UIR_DTYPE_CLASS_UNSIGNED:
        return UIR_DTYPE_U64;
    case UIR_DTYPE_CLASS_FLOAT:
        return dtype == UIR_DTYPE_F64 ? UIR_DTYPE_F64 : UIR_DTYPE_F32;
    default:
        return dtype;
    }
}

void uir_call_release(uir_call *call, void *temporary, size_t size) {
    if (temporary) uir_release(call->allocator, temporary, size);
}

uir_status uir_call_convert(uir_call *call, const uir_tensor *tensor, uir_dtype to, const void **out_data,
                            void **out_temporary, size_t *out_size) {
    *out_temporary = NULL;
    *out_size = 0;
    *out_data = tensor->data;
    if (tensor->dtype == to) return UIR_STATUS_OK;
    if (!uir_dtype_storage_size(to, tensor->element_count, out_size)) return UIR_STATUS_LIMIT;
    UIR_TRY_ALLOCATE(*out_temporary, uir_allocate(call->allocator, *out_size));
    *out_data = *out_temporary;
    uir_status status = uir_dtype_convert(tensor->dtype, tensor->data, to, *out_temporary, tensor->element_count,
                                          UIR_ROUND_NEAREST_EVEN);
    if (status != UIR_STATUS_OK) {
        uir_call_release(call, *out_temporary, *out_size);
        *out_temporary = NULL;
    }
    return status;
}

/* ---- elements ---- */

/* Reads or writes the bits of one packed element. */
static uint8_t get_bits(const uint8_t *data, uint64_t index, uint32_t bits) {
    uint64_t at = index * bits;
    return (uint8_t)(data[at / 8] >> (at % 8) & ((1u << bits) - 1));
}

static void set_bits(uint8_t *data, uint64_t index, uint32_t bits, uint8_t value) {
    uint64_t at = index * bits;
    uint32_t shift = (uint32_t)(at % 8), mask = ((1u << bits) - 1) << shift;
    data[at / 8] = (uint8_t)((data[at / 8] & ~mask) | ((uint32_t)value << shift & mask));
}

static uir_status allocate_elements(uir_call *call, uint64_t count, size_t size, uir_elements *out_elements) {
    if (count > SIZE_MAX / size) return UIR_STATUS_LIMIT;
    out_elements->size = size;
    out_elements->temporary_size = count * size;
    UIR_TRY_ALLOCATE(out_elements->temporary, uir_allocate_zeroed(call->allocator, count * size));
    out_elements->data = out_elements->temporary;
    return UIR_STATUS_OK;
}

uir_status uir_elements_open(uir_call *call, const uir_tensor *tensor, uir_elements *out_elements) {
    uint32_t bits = uir_dtype_bits(tensor->dtype);
    *out_elements = (uir_elements){.data = tensor->data, .size = bits / 8};
    if (bits >= 8) return UIR_STATUS_OK;
    UIR_TRY(allocate_elements(call, tensor->element_count, 1, out_elements));
    for (uint64_t i = 0; i < tensor->element_count; i++) out_elements->data[i] = get_bits(tensor->data, i, bits);
    return UIR_STATUS_OK;
}

uir_status uir_elements_open_result(uir_call *call, uir_tensor *tensor, bool fill, uir_elements *out_elements) {
    if (fill && tensor->dtype != UIR_DTYPE_STRING) return uir_elements_open(call, tensor, out_elements);
    uint32_t bits = uir_dtype_bits(tensor->dtype);
    *out_elements = (uir_elements){.data = tensor->data, .size = bits / 8};
    if (bits >= 8 && tensor->dtype != UIR_DTYPE_STRING) return UIR_STATUS_OK;
    return allocate_elements(call, tensor->element_count, bits < 8 ? 1 : bits / 8, out_elements);
}

uir_status uir_elements_close_result(uir_call *call, uir_tensor *tensor, uir_elements *elements) {
    uir_status status = UIR_STATUS_OK;
    uint32_t bits = uir_dtype_bits(tensor->dtype);
    for (uint64_t i = 0; bits < 8 && i < tensor->element_count; i++) set_bits(tensor->data, i, bits, elements->data[i]);
    for (uint64_t i = 0; tensor->dtype == UIR_DTYPE_STRING && i < tensor->element_count && status == UIR_STATUS_OK;
         i++) {
        uir_string_view view;
        memcpy(&view, elements->data + i * sizeof view, sizeof view);
        status = uir_tensor_set_string(tensor, i, view.text ? view.text : "", view.length);
    }
    uir_elements_close(call, elements);
    return status;
}

void uir_elements_close(uir_call *call, uir_elements *elements) {
    uir_call_release(call, elements->temporary, elements->temporary_size);
    elements->temporary = NULL;
}

/* ---- strided copies ---- */

void uir_shape_strides(const int64_t *shape, uint32_t rank, int64_t *out_strides) {
    uint64_t stride = 1; /* wraps only where another extent is 0 and no stride is used */
    for (uint32_t d = rank; d-- > 0;) {
        out_strides[d] = (int64_t)stride;
        stride *= (uint64_t)shape[d];
    }
}

/* A box to copy, its axes merged as far as both layouts allow. */
typedef struct copy_box {
    uint8_t *target;
    const uint8_t *source;
    uint32_t rank; /* without the innermost axis */
    int64_t shape[UIR_MAX_RANK], target_strides[UIR_MAX_RANK], source_strides[UIR_MAX_RANK];
    int64_t count, target_stride, source_stride; /* innermost */
    size_t size;
    int64_t rows, rows_per_job;
} copy_box;

#define COPY_ROW(type)                                                                                                 \
    static void copy_row_##type(uint8_t *target, int64_t target_stride, const uint8_t *source, int64_t source_stride,  \
                                int64_t count) {                                                                       \
        type *t = (type *)(void *)target;                                                                              \
        const type *s = (const type *)(const void *)source;                                                            \
        if (target_stride == 1 && source_stride == 0) {                                                                \
            type value = *s;                                                                                           \
            for (int64_t i = 0; i < count; i++) t[i] = value;                                                          \
        } else {                                                                                                       \
            for (int64_t i = 0; i < count; i++) t[i * target_stride] = s[i * source_stride];                           \
        }                                                                                                              \
    }
COPY_ROW(uint8_t)
COPY_ROW(uint16_t)
COPY_ROW(uint32_t)
COPY_ROW(uint64_t)

static void copy_row(const copy_box *box, uint8_t *target, const uint8_t *source) {
    if (box->target_stride == 1 && box->source_stride == 1) {
        memcpy(target, source, (size_t)box->count * box->size);
        return;
    }
    switch (box->size) {
    case 1:
        copy_row_uint8_t(target, box->target_stride, source, box->source_stride, box->count);
        return;
    case 2:
        copy_row_uint16_t(target, box->target_stride, source, box->source_stride, box->count);
        return;
    case 4:
        copy_row_uint32_t(target, box->target_stride, source, box->source_stride, box->count);
        return;
    case 8:
        copy_row_uint64_t(target, box->target_stride, source, box->source_stride, box->count);
        return;
    default:
        for (int64_t i = 0; i < box->count; i++)
            memcpy(target + i * box->target_stride * (int64_t)box->size,
                   source + i * box->source_stride * (int64_t)box->size, box->size);
    }
}

static void copy_rows(void *user, uint64_t job, uint32_t worker) {
    (void)worker;
    const copy_box *box = user;
    int64_t row = (int64_t)job * box->rows_per_job, end = row + box->rows_per_job;
    if (end > box->rows) end = box->rows;
    int64_t position[UIR_MAX_RANK], left = row, target = 0, source = 0;
    for (uint32_t d = box->rank; d-- > 0;) {
        position[d] = left % box->shape[d];
        left /= box->shape[d];
        target += position[d] * box->target_strides[d];
        source += position[d] * box->source_strides[d];
    }
    for (; row < end; row++) {
        copy_row(box, box->target + target * (int64_t)box->size, box->source + source * (int64_t)box->size);
        for (uint32_t d = box->rank; d-- > 0;) {
            target += box->target_strides[d];
            source += box->source_strides[d];
            if (++position[d] < box->shape[d]) break;
            target -= box->target_strides[d] * box->shape[d];
            source -= box->source_strides[d] * box->shape[d];
            position[d] = 0;
        }
    }
}

void uir_copy_strided(uir_call *call, uint8_t *target, const int64_t *target_strides, const uint8_t *source,
                      const int64_t *source_strides, const int64_t *shape, uint32_t rank, size_t size) {
    copy_box box = {.target = target, .source = source, .size = size};
    uint32_t n = 0;
    for (uint32_t d = 0; d < rank; d++) {
        if (shape[d] == 0) return;
        if (shape[d] == 1) continue;
        if (n && box.target_strides[n - 1] == target_strides[d] * shape[d] &&
            box.source_strides[n - 1] == source_strides[d] * shape[d]) {
            box.shape[n - 1] *= shape[d];
        } else {
            box.shape[n++] = shape[d];
        }
        box.target_strides[n - 1] = target_strides[d];
        box.source_strides[n - 1] = source_strides[d];
    }
    box.count = box.target_stride = box.source_stride = 1;
    if (n) {
        n--;
        box.count = box.shape[n];
        box.target_stride = box.target_strides[n];
        box.source_stride = box.source_strides[n];
    }
    box.rank = n;
    box.rows = 1;
    for (uint32_t d = 0; d < n; d++) box.rows *= box.shape[d];
    box.rows_per_job = 1 + 65536 / box.count;
    uint64_t jobs = (uint64_t)((box.rows + box.rows_per_job - 1) / box.rows_per_job);
    if (call) {
        uir_call_parallel(call, jobs, (uint64_t)box.rows * (uint64_t)box.count, copy_rows, &box);
        return;
    }
    for (uint64_t job = 0; job < jobs; job++) copy_rows(&box, job, 0);
}
