/* Sequences and optionals: lists of values. */
#include "ir/graph/interpret/interpret.h"
#include <string.h>

static uir_status append(uir_datum *list, uir_datum *element) {
    uir_datum_retain(element);
    uir_status status = uir_datum_append(list, element);
    if (status != UIR_STATUS_OK) uir_datum_release(element);
    return status;
}

/* A position of -count..count-1, or ..count when one past the end is meant; `fallback` when the operand is absent. */
static uir_status find_position(uir_call *call, uint32_t index, int64_t count, bool past_end, int64_t fallback,
                                int64_t *out_position) {
    int64_t position = uir_call_scalar(call, index, fallback), end = past_end ? count + 1 : count;
    *out_position = position < 0 ? position + count : position;
    if (*out_position < 0 || *out_position >= end)
        return uir_call_fail(call, UIR_STATUS_BAD_DATA, "position %lld is outside a sequence of %lld",
                             (long long)position, (long long)count);
    return UIR_STATUS_OK;
}

uir_status uir_interpret_sequence_construct(uir_call *call) {
    uir_dtype dtype = uir_value_type(call->module, call->node->outputs[0])->dtype;
    uir_datum *list;
    UIR_TRY(uir_datum_create_list(call->allocator, UIR_VALUE_SEQUENCE, dtype, &list));
    UIR_TRY(uir_call_set(call, 0, list));
    for (uint32_t i = 0; i < call->node->input_count; i++) UIR_TRY(append(list, call->inputs[i]));
    return UIR_STATUS_OK;
}

uir_status uir_interpret_sequence_at(uir_call *call) {
    uir_datum *list = call->inputs[0];
    int64_t position;
    UIR_TRY(find_position(call, 1, list->count, false, 0, &position));
    uir_datum_retain(list->elements[position]);
    return uir_call_set(call, 0, list->elements[position]);
}

uir_status uir_interpret_sequence_insert(uir_call *call) {
    uir_datum *list = call->inputs[0], *longer;
    int64_t position;
    UIR_TRY(find_position(call, 2, list->count, true, list->count, &position));
    uir_dtype dtype = list->dtype ? list->dtype : call->inputs[1]->dtype;
    if (call->last_use && call->last_use[0] && list->references == 1 && position == list->count) {
        uir_datum_retain(list); /* nobody else sees it grow: a loop that collects stays linear */
        UIR_TRY(uir_call_set(call, 0, list));
        return append(list, call->inputs[1]);
    }
    UIR_TRY(uir_datum_create_list(call->allocator, UIR_VALUE_SEQUENCE, dtype, &longer));
    UIR_TRY(uir_call_set(call, 0, longer));
    for (int64_t i = 0; i <= list->count; i++) {
        if (i == position) UIR_TRY(append(longer, call->inputs[1]));
        if (i < list->count) UIR_TRY(append(longer, list->elements[i]));
    }
    return UIR_STATUS_OK;
}

uir_status uir_interpret_sequence_erase(uir_call *call) {
    uir_datum *list = call->inputs[0], *shorter;
    int64_t position;
    UIR_TRY(find_position(call, 1, list->count, false, -1, &position));
    UIR_TRY(uir_datum_create_list(call->allocator, UIR_VALUE_SEQUENCE, list->dtype, &shorter));
    UIR_TRY(uir_call_set(call, 0, shorter));
    for (int64_t i = 0; i < list->count; i++)
        if (i != position) UIR_TRY(append(shorter, list->elements[i]));
    return UIR_STATUS_OK;
}

static uir_status give_scalar(uir_call *call, uir_dtype dtype, int64_t value) {
    uir_tensor *result;
    UIR_TRY(uir_call_create(call, 0, dtype, 0, NULL, &result));
    uir_dtype_store_integer(dtype, result->data, 0, value, false, UIR_ROUND_NEAREST_EVEN);
    return UIR_STATUS_OK;
}

uir_status uir_interpret_sequence_length(uir_call *call) {
    return give_scalar(call, UIR_DTYPE_I64, call->inputs[0]->count);
}

uir_status uir_interpret_optional(uir_call *call) {
    uir_datum *list, *element = call->node->input_count ? call->inputs[0] : NULL;
    uir_dtype dtype = uir_value_type(call->module, call->node->outputs[0])->dtype;
    UIR_TRY(uir_datum_create_list(call->allocator, UIR_VALUE_OPTIONAL, dtype, &list));
    UIR_TRY(uir_call_set(call, 0, list));
    return element ? append(list, element) : UIR_STATUS_OK;
}

uir_status uir_interpret_optional_has_element(uir_call *call) {
    const uir_datum *a = call->node->input_count ? call->inputs[0] : NULL;
    return give_scalar(call, UIR_DTYPE_BOOL, a && (a->kind != UIR_VALUE_OPTIONAL || a->count));
}

uir_status uir_interpret_optional_get_element(uir_call *call) {
    uir_datum *a = call->inputs[0];
    if (a->kind == UIR_VALUE_OPTIONAL) {
        if (!a->count) return uir_call_fail(call, UIR_STATUS_BAD_DATA, "the optional is empty");
        a = a->elements[0];
    }
    uir_datum_retain(a);
    return uir_call_set(call, 0, a);
}
