#include "base/tensor.h"

#include <stdio.h>
#include <string.h>

bool uir_shape_element_count(const int64_t *shape, uint32_t rank, uint64_t *out_count) {
    if (rank > UIR_MAX_RANK) return false;
    bool zero = false;
    for (uint32_t i = 0; i < rank; i++) {
        if (shape[i] < 0) return false;
        zero = zero || shape[i] == 0;
    }
    int64_t count = zero ? 0 : 1;
    for (uint32_t i = 0; i < rank; i++)
        if (__builtin_mul_overflow(count, shape[i], &count)) return false;
    *out_count = (uint64_t)count;
    return true;
}

static uir_status create(const uir_allocator *allocator, uir_dtype dtype, uint32_t rank, const int64_t *shape,
                         uir_tensor **out_tensor) {
    uint64_t count;
    size_t size;
    *out_tensor = NULL;
    if (!uir_dtype_is_valid(dtype) || !uir_shape_element_count(shape, rank, &count)) return UIR_STATUS_INVALID_ARGUMENT;
    /* A size that no address space holds is out of memory, not a bad argument. */
    if (!uir_dtype_storage_size(dtype, count, &size)) return UIR_STATUS_OUT_OF_MEMORY;
    UIR_TRY(uir_budget_check_elements(uir_budget_of(allocator), count, NULL));
    uir_tensor *tensor;
    UIR_TRY_ALLOCATE(tensor, uir_allocate_zeroed(allocator, sizeof *tensor));
    tensor->dtype = dtype;
    tensor->rank = rank;
    if (rank) memcpy(tensor->shape, shape, rank * sizeof *shape);
    tensor->element_count = count;
    tensor->byte_size = size;
    tensor->allocator = *allocator;
    tensor->references = 1;
    *out_tensor = tensor;
    return UIR_STATUS_OK;
}

uir_status uir_tensor_create(const uir_allocator *allocator, uir_dtype dtype, uint32_t rank, const int64_t *shape,
                             uir_tensor **out_tensor) {
    uir_tensor *tensor;
    *out_tensor = NULL;
    UIR_TRY(create(allocator, dtype, rank, shape, &tensor));
    tensor->owned = true;
    if (tensor->byte_size) {
        tensor->data = uir_allocate_zeroed(allocator, tensor->byte_size);
        if (!tensor->data) {
            uir_release(allocator, tensor, sizeof *tensor);
            return UIR_STATUS_OUT_OF_MEMORY;
        }
    }
    *out_tensor = tensor;
    return UIR_STATUS_OK;
}

uir_status uir_tensor_create_borrowed(const uir_allocator *allocator, uir_dtype dtype, uint32_t rank,
                                      const int64_t *shape, const void *data, uir_tensor **out_tensor) {
    UIR_TRY(create(allocator, dtype, rank, shape, out_tensor));
    (*out_tensor)->data = (void *)(uintptr_t)data;
    return UIR_STATUS_OK;
}

/* Counted atomically: sessions on several threads share a model's constants. */
void uir_tensor_retain(uir_tensor *tensor) {
    __atomic_add_fetch(&tensor->references, 1, __ATOMIC_RELAXED);
}

static void release_string(const uir_allocator *allocator, const uir_string_view *string) {
    uir_release(allocator, (void *)(uintptr_t)string->text, string->length);
}

void uir_tensor_release(uir_tensor *tensor) {
    if (!tensor || __atomic_sub_fetch(&tensor->references, 1, __ATOMIC_ACQ_REL) != 0) return;
    const uir_allocator allocator = tensor->allocator;
    if (tensor->owned) {
        const uir_string_view *strings = tensor->data;
        for (uint64_t i = 0; tensor->dtype == UIR_DTYPE_STRING && i < tensor->element_count; i++)
            release_string(&allocator, &strings[i]);
        if (tensor->mapped)
            uir_tensor_unmap(tensor);
        else
            uir_release(&allocator, tensor->data, tensor->byte_size);
    }
    uir_release(&allocator, tensor, sizeof *tensor);
}

uir_status uir_tensor_set_string(uir_tensor *tensor, uint64_t index, const char *text, size_t length) {
    if (tensor->dtype != UIR_DTYPE_STRING || !tensor->owned || index >= tensor->element_count)
        return UIR_STATUS_INVALID_ARGUMENT;
    char *copy;
    UIR_TRY_ALLOCATE(copy, uir_allocate(&tensor->allocator, length));
    if (length) memcpy(copy, text, length);
    uir_string_view *string = (uir_string_view *)tensor->data + index;
    release_string(&tensor->allocator, string);
    *string = (uir_string_view){copy, length};
    return UIR_STATUS_OK;
}

void uir_tensor_describe(const uir_tensor *tensor, char *buffer, size_t capacity) {
    size_t length = 0;
    for (uint32_t i = 0; i <= tensor->rank && length < capacity; i++) {
        int written;
        if (i == 0)
            written = snprintf(buffer, capacity, "%s[%s", uir_dtype_name(tensor->dtype), tensor->rank ? "" : "]");
        else
            written = snprintf(buffer + length, capacity - length, "%lld%s", (long long)tensor->shape[i - 1],
                               i == tensor->rank ? "]" : ",");
        if (written > 0) length += (size_t)written;
    }
}
