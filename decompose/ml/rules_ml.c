/* What the rules of ai.onnx.ml share. */
#include "decompose/ml/rules_ml.h"

#include <string.h>

const double *uir_ml_reals(uir_rule_context *context, const char *name, const char *tensor, uint32_t *out_count) {
    const uir_attribute *a = uir_rule_attribute(context, name),
                        *t = tensor ? uir_rule_attribute(context, tensor) : NULL;
    *out_count = 0;
    if (a && a->kind == UIR_ATTRIBUTE_FLOATS && a->count) {
        *out_count = a->count;
        return a->value.reals;
    }
    if (!t || t->kind != UIR_ATTRIBUTE_TENSOR) return NULL;
    const uir_tensor *from = t->value.tensor;
    if (!uir_dtype_is_float(from->dtype) || from->element_count > INT32_MAX) {
        uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "attribute %s is not a list of floats", tensor);
        return NULL;
    }
    double *values = uir_rule_allocate(context, from->element_count + 1, sizeof *values);
    for (uint64_t i = 0; values && i < from->element_count; i++)
        values[i] = uir_dtype_load_double(from->dtype, from->data, i);
    *out_count = values ? (uint32_t)from->element_count : 0;
    return values;
}

bool uir_ml_is_double(const uir_rule_context *context, const char *tensor) {
    const uir_attribute *a = uir_rule_attribute(context, tensor);
    return a && a->kind == UIR_ATTRIBUTE_TENSOR && a->value.tensor->dtype == UIR_DTYPE_F64;
}

bool uir_ml_same_length(uir_rule_context *context, const char *a, uint32_t a_count, const char *b, uint32_t b_count) {
    if (context->builder.status != UIR_STATUS_OK) return false;
    if (a_count == b_count) return true;
    uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "attribute %s has %u elements and %s has %u", a, a_count,
                     b, b_count);
    return false;
}

uir_value_id uir_ml_table(uir_rule_context *context, uir_dtype dtype, const double *values, const int64_t *shape,
                          uint32_t rank) {
    uir_builder *b = &context->builder;
    uir_tensor *tensor;
    if (b->status == UIR_STATUS_OK) b->status = uir_tensor_create(b->module->allocator, dtype, rank, shape, &tensor);
    if (b->status != UIR_STATUS_OK) return (uir_value_id){0};
    for (uint64_t i = 0; i < tensor->element_count; i++)
        uir_dtype_store_double(dtype, tensor->data, i, values[i], UIR_ROUND_NEAREST_EVEN);
    return uir_build_constant(b, tensor);
}

uir_value_id uir_ml_rows(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    uir_shape shape = uir_network_shape_between(context, x, "X", 1, 2);
    if (b->status != UIR_STATUS_OK) return x;
    uir_dtype dtype = dtype_of(b, x);
    if (!uir_dtype_is_float(dtype) && !uir_dtype_is_integer(dtype)) {
        uir_builder_fail(b, UIR_STATUS_UNSUPPORTED, "input X of %s is not supported", uir_dtype_name(dtype));
        return x;
    }
    const int64_t first = 0;
    if (shape.rank == 1) x = uir_build_unsqueeze(b, x, &first, 1);
    return uir_build_cast(b, x, dtype == UIR_DTYPE_F64 ? dtype : UIR_DTYPE_F32);
}

/* ---- scores ---- */

/* The inverse of the normal distribution, by the approximation of the inverse of erf that ONNX Runtime has (Winitzki
 * 2008). */
static uir_value_id probit(uir_builder *b, uir_value_id p) {
    const double a = 0.147, pi = 3.14159265358979323846;
    uir_value_id x = add_scalar(b, multiply_scalar(b, p, 2), -1), one = scalar_like(b, x, 1);
    uir_value_id log = logarithm(b, multiply(b, subtract(b, one, x), add(b, one, x)));
    uir_value_id v = add_scalar(b, multiply_scalar(b, log, 0.5), 2 / (pi * a));
    uir_value_id root = square_root(b, subtract(b, square(b, v), multiply_scalar(b, log, 1 / a)));
    uir_value_id size = square_root(b, subtract(b, root, v));
    uir_value_id sign = uir_build_select(b, less(b, x, scalar_like(b, x, 0)), scalar_like(b, x, -1), one);
    return multiply_scalar(b, multiply(b, sign, size), 1.41421356);
}

static uir_value_id softmax(uir_rule_context *context, uir_value_id x, bool keep_zeros) {
    uir_builder *b = &context->builder;
    const int64_t last = (int64_t)rank_of(b, x) - 1;
    uir_value_id greatest = uir_build_reduce(b, UIR_OP_REDUCE_MAX, x, &last, 1, true);
    uir_value_id e = exponential(b, subtract(b, x, greatest));
    if (keep_zeros) {
        uir_value_id small = multiply(b, x, exponential(b, negate(b, greatest)));
        e = uir_build_select(b, greater(b, absolute(b, x), scalar_like(b, x, 1e-7)), e, small);
    }
    uir_value_id sum = uir_build_reduce(b, UIR_OP_REDUCE_SUM, e, &last, 1, true);
    uir_value_id result = divide(b, e, sum);
    if (!keep_zeros) return result;
    return uir_build_select(b, equal(b, sum, scalar_like(b, sum, 0)), scalar_like(b, x, 0.5), result);
}

bool uir_ml_transform_is(uir_rule_context *context, const char *name) {
    return uir_rule_string_is(context, "post_transform", "NONE", name);
}

uir_value_id uir_ml_transform(uir_rule_context *context, uir_value_id x, const char *name) {
    uir_builder *b = &context->builder;
    if (b->status != UIR_STATUS_OK || !strcmp(name, "NONE")) return x;
    if (!strcmp(name, "LOGISTIC")) return sigmoid(b, x);
    if (!strcmp(name, "SOFTMAX")) return softmax(context, x, false);
    if (!strcmp(name, "SOFTMAX_ZERO")) return softmax(context, x, true);
    if (!strcmp(name, "PROBIT")) return probit(b, x);
    uir_builder_fail(b, UIR_STATUS_BAD_FILE, "attribute post_transform is '%s', which is unknown", name);
    return x;
}

/* ---- labels ---- */

uir_ml_labels uir_ml_read_labels(uir_rule_context *context, const char *integers) {
    const uir_attribute *a = uir_rule_attribute(context, integers);
    uir_ml_labels labels = {{0}, 0};
    if (!a || !a->count) a = uir_rule_attribute(context, "classlabels_strings");
    if (!a || !a->count) return labels;
    labels.count = a->count;
    labels.values = uir_math_constant_of(context, a);
    return labels;
}

uir_value_id uir_ml_pick_labels(uir_rule_context *context, const uir_ml_labels *labels, uir_value_id indices) {
    return labels->values.id ? uir_build_gather(&context->builder, labels->values, indices, 0) : indices;
}

uir_value_id uir_ml_greatest(uir_rule_context *context, uir_value_id scores) {
    uir_builder *b = &context->builder;
    uir_value_id result = {0};
    uir_attribute attributes[] = {uir_attribute_int(b, "axis", (int64_t)rank_of(b, scores) - 1),
                                  uir_attribute_int(b, "keep", 0), uir_attribute_int(b, "last", 0)};
    uir_build_node(b, UIR_OP_ARG_MAX, &scores, 1, attributes, 3, &result, 1);
    return result;
}

uir_value_id uir_ml_two_columns(uir_rule_context *context, uir_value_id first, uir_value_id second) {
    uir_builder *b = &context->builder;
    const int64_t last = 1;
    uir_value_id columns[2] = {uir_build_unsqueeze(b, first, &last, 1), uir_build_unsqueeze(b, second, &last, 1)};
    return uir_build_concat(b, columns, 2, 1);
}
