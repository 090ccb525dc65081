/* Run-time values: a counted tensor, or a counted list of values. */
#include "base/datum.h"
#include <string.h>

static uir_status create(const uir_allocator *allocator, uir_value_kind kind, uir_dtype dtype, uir_datum **out_datum) {
    uir_datum *datum;
    UIR_TRY_ALLOCATE(datum, uir_allocate_zeroed(allocator, sizeof *datum));
    datum->kind = kind;
    datum->references = 1;
    datum->allocator = allocator;
    datum->dtype = dtype;
    *out_datum = datum;
    return UIR_STATUS_OK;
}

uir_status uir_datum_create_tensor(const uir_allocator *allocator, uir_tensor *tensor, uir_datum **out_datum) {
    UIR_TRY(create(allocator, UIR_VALUE_TENSOR, tensor->dtype, out_datum));
    (*out_datum)->tensor = tensor;
    return UIR_STATUS_OK;
}

uir_status uir_datum_create_list(const uir_allocator *allocator, uir_value_kind kind, uir_dtype dtype,
                                 uir_datum **out_datum) {
    if (kind == UIR_VALUE_TENSOR) return UIR_STATUS_INVALID_ARGUMENT;
    return create(allocator, kind, dtype, out_datum);
}

uir_status uir_datum_append(uir_datum *list, uir_datum *element) {
    if (list->kind == UIR_VALUE_TENSOR || (list->kind == UIR_VALUE_OPTIONAL && list->count == 1))
        return UIR_STATUS_INVALID_ARGUMENT;
    if (list->count == list->capacity) {
        if (list->capacity > UINT32_MAX / 4) return UIR_STATUS_LIMIT;
        uint32_t capacity = list->capacity ? list->capacity * 2 : 4;
        uir_datum **elements;
        UIR_TRY_ALLOCATE(elements, uir_reallocate(list->allocator, list->elements, list->capacity * sizeof(uir_datum *),
                                                  capacity * sizeof(uir_datum *)));
        list->elements = elements;
        list->capacity = capacity;
    }
    list->elements[list->count++] = element;
    return UIR_STATUS_OK;
}

/* Counted atomically, as tensors are: a value may be bound to sessions on several threads. */
void uir_datum_retain(uir_datum *datum) {
    __atomic_add_fetch(&datum->references, 1, __ATOMIC_RELAXED);
}

void uir_datum_release(uir_datum *datum) {
    if (!datum || __atomic_sub_fetch(&datum->references, 1, __ATOMIC_ACQ_REL) != 0) return;
    uir_tensor_release(datum->tensor);
    for (uint32_t i = 0; i < datum->count; i++) uir_datum_release(datum->elements[i]);
    if (datum->capacity) uir_release(datum->allocator, datum->elements, datum->capacity * sizeof(uir_datum *));
    uir_release(datum->allocator, datum, sizeof *datum);
}
