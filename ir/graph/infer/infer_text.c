/* Types of what the primitives of text and pictures give. */
#include "ir/graph/infer/infer.h"

#include <string.h>

enum { TEXT = 1u << UIR_DTYPE_CLASS_STRING };

/* Operand `index`, text of rank `rank`, where it is there. */
static uir_status check_text(uir_inference *inference, uint32_t index, uint32_t rank) {
    if (!uir_infer_has(inference, index)) return UIR_STATUS_OK;
    UIR_TRY(uir_infer_check_tensor(inference, index, TEXT));
    if (uir_infer_operand(inference, index)->rank == rank) return UIR_STATUS_OK;
    return uir_infer_fail(inference, "operand %u has rank %u instead of %u", index,
                          uir_infer_operand(inference, index)->rank, rank);
}

uir_status uir_infer_string_concat(uir_inference *inference) {
    for (uint32_t i = 0; i < 2; i++) UIR_TRY(uir_infer_check_tensor(inference, i, TEXT));
    const uir_type *a = uir_infer_operand(inference, 0), *b = uir_infer_operand(inference, 1);
    if (a->rank != b->rank) return uir_infer_fail(inference, "the operands have ranks %u and %u", a->rank, b->rank);
    for (uint32_t d = 0; d < a->rank; d++)
        if (!uir_infer_equal(inference, a->dims[d], b->dims[d]))
            return uir_infer_fail(inference, "the operands differ in dim %u", d);
    return uir_infer_result_dims(inference, 0, UIR_DTYPE_STRING, a->dims, a->rank);
}

uir_status uir_infer_string_split(uir_inference *inference) {
    const uir_type *a = uir_infer_operand(inference, 0);
    uir_dim *dims;
    UIR_TRY(check_text(inference, 1, 0));
    if (a->rank >= UIR_MAX_RANK)
        return uir_infer_fail(inference, "the result has rank %u, above the maximum", a->rank + 1);
    UIR_TRY_ALLOCATE(dims, uir_infer_result(inference, 0, UIR_DTYPE_STRING, a->rank + 1));
    if (a->rank) memcpy(dims, a->dims, a->rank * sizeof *dims);
    dims[a->rank] = UIR_DIM_NONE;
    return uir_infer_result_dims(inference, 1, UIR_DTYPE_I64, a->dims, a->rank);
}

uir_status uir_infer_string_normalize(uir_inference *inference) {
    const uir_type *a = uir_infer_operand(inference, 0);
    uir_dim *dims;
    UIR_TRY(check_text(inference, 1, 1));
    if (a->rank != 1 && a->rank != 2) return uir_infer_fail(inference, "the texts have rank %u, not 1 or 2", a->rank);
    UIR_TRY_ALLOCATE(dims, uir_infer_result(inference, 0, UIR_DTYPE_STRING, a->rank));
    dims[a->rank - 1] = UIR_DIM_NONE;
    if (a->rank == 1) return UIR_STATUS_OK;
    dims[0] = uir_dim_const(inference->dims, 1);
    if (uir_infer_unequal(inference, a->dims[0], dims[0]))
        return uir_infer_fail(inference, "texts of rank 2 must be one row");
    return uir_infer_check_made(inference, dims, 1);
}

uir_status uir_infer_string_find(uir_inference *inference) {
    const uir_type *a = uir_infer_operand(inference, 0);
    UIR_TRY(check_text(inference, 1, 1));
    return uir_infer_result_dims(inference, 0, UIR_DTYPE_I64, a->dims, a->rank);
}

uir_status uir_infer_regex_match(uir_inference *inference) {
    const uir_type *a = uir_infer_operand(inference, 0);
    UIR_TRY(check_text(inference, 1, 0));
    return uir_infer_result_dims(inference, 0, UIR_DTYPE_BOOL, a->dims, a->rank);
}

uir_status uir_infer_tf_idf(uir_inference *inference) {
    const uir_type *a = uir_infer_operand(inference, 0);
    UIR_TRY(uir_infer_check_tensor(inference, 0, TEXT | 1u << UIR_DTYPE_CLASS_SIGNED));
    if (a->dtype != UIR_DTYPE_STRING && a->dtype != UIR_DTYPE_I64)
        return uir_infer_fail(inference, "words are strings or i64, not %s", uir_dtype_name(a->dtype));
    if (a->rank != 1 && a->rank != 2) return uir_infer_fail(inference, "the words have rank %u, not 1 or 2", a->rank);
    static const uir_dtype dtypes[] = {UIR_DTYPE_NONE, UIR_DTYPE_NONE, UIR_DTYPE_I64, UIR_DTYPE_I64, UIR_DTYPE_F32};
    for (uint32_t i = 1; i < 5; i++) {
        if (!uir_infer_has(inference, i)) continue;
        const uir_type *b = uir_infer_operand(inference, i);
        uir_dtype wanted = i == 1 ? a->dtype : dtypes[i];
        if (b->kind != UIR_VALUE_TENSOR || b->dtype != wanted || !b->rank_known || b->rank != 1)
            return uir_infer_fail(inference, "operand %u is not %s of rank 1", i, uir_dtype_name(wanted));
    }
    int64_t columns = uir_node_int(inference->module, inference->node, "columns", 0);
    uir_dim *dims;
    if (columns < 0) return uir_infer_fail(inference, "columns is %lld, less than 0", (long long)columns);
    UIR_TRY_ALLOCATE(dims, uir_infer_result(inference, 0, UIR_DTYPE_F32, a->rank));
    dims[0] = a->dims[0];
    dims[a->rank - 1] = uir_dim_const(inference->dims, columns);
    return uir_infer_check_made(inference, dims, a->rank);
}

uir_status uir_infer_image_decode(uir_inference *inference) {
    const uir_type *a = uir_infer_operand(inference, 0);
    uir_dim *dims;
    if (a->rank != 1 || a->dtype != UIR_DTYPE_U8) return uir_infer_fail(inference, "the operand is not u8 of rank 1");
    UIR_TRY_ALLOCATE(dims, uir_infer_result(inference, 0, UIR_DTYPE_U8, 3));
    const char *format = uir_node_string(inference->module, inference->node, "format", "RGB");
    dims[2] = uir_dim_const(inference->dims, format[0] == 'G' ? 1 : 3);
    return uir_infer_check_made(inference, dims + 2, 1);
}
