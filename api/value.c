/* Values: tensors, sequences, optionals as the caller sees them. */
#include "api/internal.h"

#include <string.h>

static void destroy_elements(uir_value *value) {
    if (!value->elements) return;
    for (uint32_t i = 0; i < value->element_count; i++) uir_value_destroy(value->elements[i]);
    uir_release(&value->context->allocator, value->elements, value->element_count * sizeof *value->elements);
}

static uir_status wrap_elements(uir_value *value) {
    const uir_datum *datum = value->datum;
    if (datum->kind == UIR_VALUE_TENSOR || datum->count == 0) return UIR_STATUS_OK;
    size_t size = datum->count * sizeof *value->elements;
    UIR_TRY_ALLOCATE(value->elements, uir_allocate_zeroed(&value->context->allocator, size));
    value->element_count = datum->count;
    for (uint32_t i = 0; i < datum->count; i++) {
        UIR_TRY(uir_value_wrap(value->context, datum->elements[i], NULL, &value->elements[i]));
        uir_datum_retain(datum->elements[i]);
    }
    return UIR_STATUS_OK;
}

uir_status uir_value_wrap(uir_context *context, uir_datum *datum, const char *name, uir_value **out_value) {
    uir_value *value;
    UIR_TRY_ALLOCATE(value, uir_allocate_zeroed(&context->allocator, sizeof *value));
    value->context = context;
    value->datum = datum;
    uir_status status = wrap_elements(value);
    if (status == UIR_STATUS_OK && name && *name) {
        size_t size = strlen(name) + 1;
        value->name = uir_allocate(&context->allocator, size);
        if (value->name) {
            memcpy(value->name, name, size);
        } else {
            status = UIR_STATUS_OUT_OF_MEMORY;
        }
    }
    if (status != UIR_STATUS_OK) {
        value->datum = NULL; /* stays the caller's */
        uir_value_destroy(value);
        return status;
    }
    *out_value = value;
    return UIR_STATUS_OK;
}

uir_status uir_value_wrap_tensor(uir_context *context, uir_tensor *tensor, uir_value **out_value) {
    uir_datum *datum;
    UIR_TRY(uir_datum_create_tensor(&context->allocator, tensor, &datum));
    uir_status status = uir_value_wrap(context, datum, NULL, out_value);
    if (status != UIR_STATUS_OK) {
        datum->tensor = NULL;
        uir_datum_release(datum);
    }
    return status;
}

void uir_value_destroy(uir_value *value) {
    if (!value) return;
    destroy_elements(value);
    uir_datum_release(value->datum);
    uir_api_release_memory(value->memory);
    const uir_allocator *allocator = &value->context->allocator;
    if (value->name) uir_release(allocator, value->name, strlen(value->name) + 1);
    uir_release(allocator, value, sizeof *value);
}

static uir_status finish_tensor(uir_context *context, uir_status status, uir_tensor *tensor, uir_value **out_value) {
    if (status == UIR_STATUS_OK) status = uir_value_wrap_tensor(context, tensor, out_value);
    if (status != UIR_STATUS_OK) uir_tensor_release(tensor);
    return status;
}

uir_status uir_value_check_shape(uir_call *call, uir_dtype dtype, uint32_t rank, const int64_t *shape,
                                 size_t *out_size) {
    uint64_t count;
    if (!uir_dtype_is_valid((int)dtype)) {
        return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "%d is not an element type",
                         (int)dtype);
    }
    if (!uir_shape_element_count(shape, rank, &count) || !uir_dtype_storage_size(dtype, count, out_size)) {
        return uir_error(&call->diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "the shape of rank %u is too large, has a negative extent or exceeds rank %d", (unsigned)rank,
                         UIR_MAX_RANK);
    }
    return UIR_STATUS_OK;
}

uir_status uir_value_create_tensor(uir_context *context, uir_dtype dtype, uint32_t rank, const int64_t *shape,
                                   uir_value **out_value) {
    uir_call call;
    uir_tensor *tensor = NULL;
    size_t size;
    *out_value = NULL;
    uir_call_begin(&call, context);
    uir_status status = uir_value_check_shape(&call, dtype, rank, shape, &size);
    if (status == UIR_STATUS_OK) status = uir_tensor_create(&context->value_allocator, dtype, rank, shape, &tensor);
    status = uir_budget_tell(&context->values, "a tensor", status, &call.diagnostics, NULL);
    if (status == UIR_STATUS_OUT_OF_MEMORY)
        status = uir_error(&call.diagnostics, status, NULL, "a tensor of %zu bytes cannot be allocated", size);
    status = finish_tensor(context, status, tensor, out_value);
    return uir_call_end(&call, status, "creating a tensor");
}

uir_status uir_value_create_tensor_borrowed(uir_context *context, uir_dtype dtype, uint32_t rank, const int64_t *shape,
                                            const void *data, size_t size, uir_value **out_value) {
    uir_call call;
    uir_tensor *tensor = NULL;
    size_t expected;
    *out_value = NULL;
    uir_call_begin(&call, context);
    uir_status status = uir_value_check_shape(&call, dtype, rank, shape, &expected);
    if (status == UIR_STATUS_OK && (size != expected || (size && !data))) {
        status = uir_error(&call.diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                           "the buffer has %zu bytes, and the tensor requires %zu", data ? size : (size_t)0, expected);
    }
    if (status == UIR_STATUS_OK) {
        status = uir_tensor_create_borrowed(&context->allocator, dtype, rank, shape, data, &tensor);
    }
    status = finish_tensor(context, status, tensor, out_value);
    return uir_call_end(&call, status, "borrowing a tensor");
}

/* ---- looking at values ---- */

uir_value_kind uir_value_get_kind(const uir_value *value) {
    return value->datum->kind;
}
uir_dtype uir_value_get_dtype(const uir_value *value) {
    return value->datum->dtype;
}
const char *uir_value_get_name(const uir_value *value) {
    return value->name ? value->name : "";
}
size_t uir_value_get_count(const uir_value *value) {
    return value->element_count;
}

uir_value *uir_value_get_element(const uir_value *value, size_t index) {
    return index < value->element_count ? value->elements[index] : NULL;
}

uint32_t uir_value_get_rank(const uir_value *value) {
    return value->datum->tensor ? value->datum->tensor->rank : 0;
}

const int64_t *uir_value_get_shape(const uir_value *value) {
    return value->datum->tensor ? value->datum->tensor->shape : NULL;
}

uint64_t uir_value_get_element_count(const uir_value *value) {
    return value->datum->tensor ? value->datum->tensor->element_count : 0;
}

size_t uir_value_get_byte_size(const uir_value *value) {
    return value->datum->tensor ? value->datum->tensor->byte_size : 0;
}

void *uir_value_get_data(uir_value *value) {
    return value->datum->tensor ? value->datum->tensor->data : NULL;
}

double uir_value_get_double(const uir_value *value, uint64_t index) {
    const uir_tensor *tensor = value->datum->tensor;
    if (!tensor || uir_api_is_away(value->memory) || index >= tensor->element_count) return 0;
    switch (uir_dtype_get_class(tensor->dtype)) {
    case UIR_DTYPE_CLASS_STRING:
    case UIR_DTYPE_CLASS_COMPLEX:
        return 0;
    default:
        return uir_dtype_load_double(tensor->dtype, tensor->data, index);
    }
}

uir_status uir_value_set_string(uir_value *value, uint64_t index, const char *text, size_t length) {
    uir_call call;
    uir_tensor *tensor = value->datum->tensor;
    uir_call_begin(&call, value->context);
    uir_status status = UIR_STATUS_OK;
    if (!tensor || tensor->dtype != UIR_DTYPE_STRING || index >= tensor->element_count) {
        status = uir_error(&call.diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                           "the value is not a string tensor with an element %llu", (unsigned long long)index);
    } else {
        status = uir_tensor_set_string(tensor, index, text, length);
    }
    return uir_call_end(&call, status, "setting a string");
}

/* ---- random values ---- */

/* Output `index` of splitmix64 from `seed` (Steele, Lea and Flood 2014): values do not depend on the order of filling.
 */
static uint64_t random_bits(uint64_t seed, uint64_t index) {
    uint64_t x = seed + (index + 1) * UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

static double clamp(double value, double low, double high) {
    return value < low ? low : value > high ? high : value;
}

uir_status uir_value_fill_random(uir_value *value, uint64_t seed, double low, double high) {
    uir_call call;
    uir_tensor *tensor = value->datum->tensor;
    uir_call_begin(&call, value->context);
    uir_status on_host = uir_value_check_on_host(&call, value, "the value");
    if (on_host != UIR_STATUS_OK) return uir_call_end(&call, on_host, "filling a value");
    uir_dtype_class class = tensor ? uir_dtype_get_class(tensor->dtype) : UIR_DTYPE_CLASS_NONE;
    if (!(low <= high) || !tensor || (!tensor->owned && !value->memory) || class == UIR_DTYPE_CLASS_STRING ||
        class == UIR_DTYPE_CLASS_COMPLEX) {
        uir_status status = uir_error_hint(&call.diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                                           "pass a tensor of numbers that owns its data, and low <= high",
                                           "the value cannot be filled with random numbers");
        return uir_call_end(&call, status, "filling a value");
    }
    bool integer = uir_dtype_is_integer(tensor->dtype);
    if (integer) {
        low = clamp(low, (double)uir_dtype_integer_min(tensor->dtype), 9e18);
        high = clamp(high, low, (double)uir_dtype_integer_max(tensor->dtype));
    }
    for (uint64_t i = 0; i < tensor->element_count; i++) {
        uint64_t bits = random_bits(seed, i);
        double unit = (double)(bits >> 11) * 0x1p-53;
        if (class == UIR_DTYPE_CLASS_BOOL) {
            uir_dtype_store_integer(tensor->dtype, tensor->data, i, (int64_t)(bits >> 63), true,
                                    UIR_ROUND_NEAREST_EVEN);
        } else if (integer) {
            /* Truncation is toward zero, so the offset is counted from 0 and added after it. */
            double offset = clamp((double)(uint64_t)(unit * (high - low + 1)), 0, high - low);
            uir_dtype_store_double(tensor->dtype, tensor->data, i, low + offset, UIR_ROUND_NEAREST_EVEN);
        } else {
            uir_dtype_store_double(tensor->dtype, tensor->data, i, low + unit * (high - low), UIR_ROUND_NEAREST_EVEN);
        }
    }
    return uir_call_end(&call, UIR_STATUS_OK, "filling a value");
}
