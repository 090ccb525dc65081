/* Features of ai.onnx.ml: scaled, filled in, encoded, picked, put together. */
#include "decompose/ml/rules_ml.h"

#include <math.h>
#include <string.h>

/* ---- numbers ---- */

/* The floats of an attribute against the columns of `like`: one for all, or one each. */
static uir_value_id columns(uir_rule_context *context, const char *name, uir_value_id like, double fallback) {
    uir_builder *b = &context->builder;
    uint32_t count;
    const double *values = uir_ml_reals(context, name, NULL, &count);
    const int64_t shape = count;
    int64_t extent;
    if (b->status != UIR_STATUS_OK) return like;
    if (count < 2) return scalar_like(b, like, count ? values[0] : fallback);
    uir_dim last = uir_build_extent(b, like, rank_of(b, like) - 1);
    if (uir_dim_is_const(b->module->dims, last, &extent) && extent != shape)
        uir_builder_fail(b, UIR_STATUS_BAD_FILE, "attribute %s has %u elements for %lld features", name, count,
                         (long long)extent);
    return uir_ml_table(context, dtype_of(b, like), values, &shape, 1);
}

/* Input 0 of rank 1 or 2 as floats; a rank of 0 is told. */
static uir_value_id features(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    (void)uir_network_shape_between(context, x, "X", 1, UIR_MAX_RANK);
    if (b->status != UIR_STATUS_OK) return x;
    return uir_build_cast(b, x, dtype_of(b, x) == UIR_DTYPE_F64 ? UIR_DTYPE_F64 : UIR_DTYPE_F32);
}

uir_status uir_rule_scaler(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = features(context);
    if (b->status != UIR_STATUS_OK) return b->status;
    uir_value_id offset = columns(context, "offset", x, 0), scale = columns(context, "scale", x, 1);
    context->outputs[0] = uir_build_cast(b, multiply(b, subtract(b, x, offset), scale), UIR_DTYPE_F32);
    return b->status;
}

uir_status uir_rule_normalizer(uir_rule_context *context) {
    static const char *const norms[] = {"MAX", "L1", "L2", NULL};
    uir_builder *b = &context->builder;
    uir_value_id x = features(context), norm;
    uint32_t kind = uir_network_choice(context, "norm", "MAX", norms);
    if (b->status != UIR_STATUS_OK) return b->status;
    const int64_t last = (int64_t)rank_of(b, x) - 1;
    if (kind == 2)
        norm = square_root(b, uir_build_reduce(b, UIR_OP_REDUCE_SUM, square(b, x), &last, 1, true));
    else if (kind == 1)
        norm = uir_build_reduce(b, UIR_OP_REDUCE_SUM, absolute(b, x), &last, 1, true);
    else
        norm = uir_build_reduce(b, UIR_OP_REDUCE_MAX, x, &last, 1, true);
    /* A row of zeros stays. */
    norm = uir_build_select(b, equal(b, norm, scalar_like(b, norm, 0)), scalar_like(b, norm, 1), norm);
    context->outputs[0] = uir_build_cast(b, divide(b, x, norm), UIR_DTYPE_F32);
    return b->status;
}

uir_status uir_rule_binarizer(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    uir_value_id above = uir_rule_binary_number(context, UIR_OP_GT, x, uir_rule_float(context, "threshold", 0));
    context->outputs[0] = uir_build_cast(b, above, uir_rule_dtype(context, x));
    return b->status;
}

uir_status uir_rule_imputer(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), filled, missing;
    const int64_t *integers;
    int64_t count = uir_rule_ints(context, "imputed_value_int64s", &integers);
    (void)uir_network_shape_between(context, x, "X", 1, UIR_MAX_RANK);
    if (b->status != UIR_STATUS_OK) return b->status;
    bool real = uir_dtype_is_float(dtype_of(b, x));
    const uir_attribute *reals = uir_rule_attribute(context, "imputed_value_floats");
    if (real ? !reals || !reals->count : count < 1)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "attribute %s is missing for an input of %s",
                                real ? "imputed_value_floats" : "imputed_value_int64s", uir_dtype_name(dtype_of(b, x)));
    if (real) {
        double replaced = uir_rule_float(context, "replaced_value_float", 0);
        filled = columns(context, "imputed_value_floats", x, 0);
        missing = isnan(replaced) ? uir_build_unary(b, UIR_OP_IS_NAN, x) : equal(b, x, scalar_like(b, x, replaced));
    } else {
        int64_t replaced = uir_rule_int(context, "replaced_value_int64", 0);
        filled = count == 1 ? uir_build_integer_scalar(b, dtype_of(b, x), integers[0])
                            : uir_build_integers(b, dtype_of(b, x), integers, (uint32_t)count);
        missing = equal(b, x, uir_build_integer_scalar(b, dtype_of(b, x), replaced));
    }
    context->outputs[0] = uir_build_select(b, missing, filled, x);
    return b->status;
}

/* ---- picked and put together ---- */

uir_status uir_rule_array_feature_extractor(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), at = uir_rule_input(context, 1);
    uint32_t rank = uir_rule_rank(context, x), own = uir_rule_rank(context, at);
    const uir_dim *extents = uir_rule_extents(context, at);
    if (b->status != UIR_STATUS_OK) return b->status;
    if (!rank) return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "input X is a scalar");
    uir_dim count = uir_rule_product(context, extents, own);
    at = uir_build_cast(b, uir_build_reshape(b, at, &count, 1), UIR_DTYPE_I64);
    const int64_t first = 0;
    if (rank == 1) x = uir_build_unsqueeze(b, x, &first, 1);
    uir_rule_check_below(context, at, uir_rule_input(context, 1), uir_build_extent(b, x, rank == 1 ? 1 : rank - 1));
    context->outputs[0] = uir_build_gather(b, x, at, rank == 1 ? 1 : rank - 1);
    return b->status;
}

/* Each input cut or padded with zeros to its number of columns. */
uir_status uir_rule_feature_vectorizer(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id *parts = uir_rule_allocate(context, context->input_count + 1u, sizeof *parts);
    const int64_t *given, second = 1, interior[2] = {0, 0};
    int64_t count = uir_rule_ints(context, "inputdimensions", &given);
    if (!parts) return b->status;
    if (count >= 0 &&
        !uir_ml_same_length(context, "inputdimensions", (uint32_t)count, "the node", context->input_count))
        return b->status;
    for (uint32_t i = 0; i < context->input_count && b->status == UIR_STATUS_OK; i++) {
        uir_value_id x = uir_rule_input(context, i);
        uir_shape shape = uir_network_shape_between(context, x, "X", 1, 2);
        if (b->status != UIR_STATUS_OK) return b->status;
        if (shape.rank == 1) x = uir_build_unsqueeze(b, x, &second, 1);
        x = uir_build_cast(b, x, UIR_DTYPE_F32);
        uir_dim low[2] = {dim_int(b, 0), dim_int(b, 0)}, high[2] = {dim_int(b, 0), dim_int(b, 0)};
        if (count >= 0) high[1] = dim_sub(b, dim_int(b, given[i]), uir_build_extent(b, x, 1));
        parts[i] = uir_build_pad(b, x, scalar_like(b, x, 0), low, high, interior);
    }
    context->outputs[0] = uir_build_concat(b, parts, context->input_count, 1);
    return b->status;
}

/* A list of maps, one a row, each of all keys, is the rows and the keys once: the values are the input's, and the keys
 * are told of the model's output (api/facts_onnx.c). */
uir_status uir_rule_zip_map(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    const uir_attribute *strings = uir_rule_attribute(context, "classlabels_strings"),
                        *integers = uir_rule_attribute(context, "classlabels_int64s");
    const uir_attribute *keys = strings && strings->count ? strings : integers;
    uir_value_id rows = uir_ml_rows(context);
    int64_t columns;
    if (b->status != UIR_STATUS_OK) return b->status;
    if (!keys || !keys->count)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE,
                                "attribute classlabels_strings or classlabels_int64s is missing");
    if (uir_dim_is_const(b->module->dims, uir_build_extent(b, rows, 1), &columns) && columns != keys->count)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "%u keys for %lld columns", keys->count, (long long)columns);
    context->outputs[0] = uir_build_expect(b, rows, 1, dim_int(b, keys->count));
    return b->status;
}

/* ---- encoders ---- */

/* What of each element is among the keys [k]: the index of the last such key, or -1. NaN is equal to NaN from version 4
 * on. */
static uir_value_id find_key(uir_rule_context *context, uir_value_id x, uir_value_id keys) {
    uir_builder *b = &context->builder;
    uir_value_id result = {0};
    if (b->status != UIR_STATUS_OK) return x;
    uir_dtype dtype = dtype_of(b, x);
    if (dtype == UIR_DTYPE_STRING || dtype_of(b, keys) == UIR_DTYPE_STRING) {
        uir_build_node(b, UIR_OP_STRING_FIND, (uir_value_id[]){x, keys}, 2, NULL, 0, &result, 1);
        return result;
    }
    const int64_t last = rank_of(b, x);
    uir_value_id own = uir_build_unsqueeze(b, x, &last, 1), other = uir_build_cast(b, keys, dtype);
    uir_value_id same = equal(b, own, other);
    if (uir_dtype_is_float(dtype) && context->since_version >= 4)
        same =
            either(b, same, both(b, uir_build_unary(b, UIR_OP_IS_NAN, own), uir_build_unary(b, UIR_OP_IS_NAN, other)));
    uir_dim count = uir_build_extent(b, keys, 0);
    uir_value_id index = uir_build_iota(b, UIR_DTYPE_I64, &count, 1, 0);
    uir_value_id found = uir_build_select(b, same, index, uir_build_integer_scalar(b, UIR_DTYPE_I64, -1));
    return uir_build_reduce(b, UIR_OP_REDUCE_MAX, found, &last, 1, false);
}

/* The first of the attributes that is there and not empty. */
static const uir_attribute *first_of(const uir_rule_context *context, const char *const *names, uint32_t *out_which) {
    for (*out_which = 0; names[*out_which]; ++*out_which) {
        const uir_attribute *a = uir_rule_attribute(context, names[*out_which]);
        if (a && (a->kind == UIR_ATTRIBUTE_TENSOR || a->count)) return a;
    }
    return NULL;
}

/* values[index], or the default where the index is -1. */
static uir_value_id look_up(uir_rule_context *context, uir_value_id index, uir_value_id values, uir_value_id fallback) {
    uir_builder *b = &context->builder;
    uir_value_id zero = uir_build_integer_scalar(b, UIR_DTYPE_I64, 0);
    uir_value_id found = uir_build_gather(b, values, maximum(b, index, zero), 0);
    return uir_build_select(b, less(b, index, zero), fallback, found);
}

static uir_value_id text_constant(uir_rule_context *context, const char *text) {
    uir_builder *b = &context->builder;
    uir_tensor *tensor;
    if (b->status == UIR_STATUS_OK)
        b->status = uir_tensor_create(b->module->allocator, UIR_DTYPE_STRING, 0, NULL, &tensor);
    if (b->status == UIR_STATUS_OK) b->status = uir_tensor_set_string(tensor, 0, text, strlen(text));
    return b->status == UIR_STATUS_OK ? uir_build_constant(b, tensor) : (uir_value_id){0};
}

/* The default for what has no value, of the values' dtype. */
static uir_value_id default_value(uir_rule_context *context, uir_dtype dtype) {
    uir_builder *b = &context->builder;
    const uir_attribute *tensor = uir_rule_attribute(context, "default_tensor");
    if (tensor && tensor->kind == UIR_ATTRIBUTE_TENSOR) {
        if (tensor->value.tensor->dtype == dtype && tensor->value.tensor->element_count == 1)
            return uir_rule_scalar(context, uir_math_constant_of(context, tensor));
        uir_builder_fail(b, UIR_STATUS_BAD_FILE, "default_tensor is not one element of %s", uir_dtype_name(dtype));
        return (uir_value_id){0};
    }
    if (dtype == UIR_DTYPE_STRING) return text_constant(context, uir_rule_string(context, "default_string", "_Unused"));
    if (uir_dtype_is_float(dtype)) return uir_build_scalar(b, dtype, uir_rule_float(context, "default_float", -0.0));
    return uir_build_integer_scalar(b, dtype, uir_rule_int(context, "default_int64", -1));
}

/* A constant list of one or more keys or values, of rank 1. */
static uir_value_id list_of(uir_rule_context *context, const uir_attribute *attribute) {
    uir_builder *b = &context->builder;
    uir_value_id list = uir_math_constant_of(context, attribute);
    if (b->status != UIR_STATUS_OK) return list;
    uir_dim count = uir_rule_product(context, uir_rule_extents(context, list), rank_of(b, list));
    if (uir_dim_equal(count, dim_int(b, 0))) uir_builder_fail(b, UIR_STATUS_BAD_FILE, "a list of keys is empty");
    return uir_build_reshape(b, list, &count, 1);
}

static uir_status encode(uir_rule_context *context, uir_value_id keys, uir_value_id values) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    if (b->status != UIR_STATUS_OK) return b->status;
    (void)uir_rule_rank(context, x);
    if (!uir_dim_equal(uir_build_extent(b, keys, 0), uir_build_extent(b, values, 0)))
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "the numbers of keys and values differ");
    if (dtype_of(b, x) != dtype_of(b, keys))
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "keys of %s for an input of %s",
                                uir_dtype_name(dtype_of(b, keys)), uir_dtype_name(dtype_of(b, x)));
    context->outputs[0] =
        look_up(context, find_key(context, x, keys), values, default_value(context, dtype_of(b, values)));
    return b->status;
}

/* Texts to their index or back: LabelEncoder-1 and CategoryMapper. */
static uir_status encode_classes(uir_rule_context *context, const uir_attribute *texts, const uir_attribute *numbers) {
    uir_builder *b = &context->builder;
    if (!texts || !texts->count || (numbers && numbers->count != texts->count))
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE,
                                "the classes are missing, or the counts of texts and numbers differ");
    uir_value_id names = list_of(context, texts), indices;
    uir_dim count = dim_int(b, texts->count);
    indices = numbers ? list_of(context, numbers) : uir_build_iota(b, UIR_DTYPE_I64, &count, 1, 0);
    bool text = uir_rule_dtype(context, uir_rule_input(context, 0)) == UIR_DTYPE_STRING;
    return encode(context, text ? names : indices, text ? indices : names);
}

uir_status uir_rule_label_encoder(uir_rule_context *context) {
    static const char *const keys[] = {"keys_tensor", "keys_strings", "keys_int64s", "keys_floats", NULL};
    static const char *const values[] = {"values_tensor", "values_strings", "values_int64s", "values_floats", NULL};
    uint32_t which;
    if (context->since_version < 2)
        return encode_classes(context, uir_rule_attribute(context, "classes_strings"), NULL);
    const uir_attribute *from = first_of(context, keys, &which), *to = first_of(context, values, &which);
    if (!from || !to)
        return uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "attribute keys_* or values_* is missing");
    return encode(context, list_of(context, from), list_of(context, to));
}

uir_status uir_rule_category_mapper(uir_rule_context *context) {
    return encode_classes(context, uir_rule_attribute(context, "cats_strings"),
                          uir_rule_attribute(context, "cats_int64s"));
}

uir_status uir_rule_one_hot_encoder(uir_rule_context *context) {
    static const char *const names[] = {"cats_int64s", "cats_strings", NULL};
    uir_builder *b = &context->builder;
    uint32_t which;
    uir_value_id x = uir_rule_input(context, 0);
    const uir_attribute *categories = first_of(context, names, &which);
    uint32_t rank = uir_rule_rank(context, x);
    if (b->status != UIR_STATUS_OK) return b->status;
    bool text = dtype_of(b, x) == UIR_DTYPE_STRING;
    if (!categories || text != (which == 1))
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "no categories for an input of %s",
                                uir_dtype_name(dtype_of(b, x)));
    if (!text) x = uir_build_cast(b, x, UIR_DTYPE_I64);
    uir_value_id keys = list_of(context, categories), index = find_key(context, x, keys);
    if (!uir_rule_int(context, "zeros", 1) && b->status == UIR_STATUS_OK) {
        /* An element of no category ends the run. */
        int64_t axes[UIR_MAX_RANK];
        for (uint32_t d = 0; d < rank; d++) axes[d] = d;
        uir_value_id zero = uir_build_integer_scalar(b, UIR_DTYPE_I64, 0);
        uir_value_id unknown = uir_build_cast(b, less(b, index, zero), UIR_DTYPE_I64);
        static const char what[] = "elements that are of no category";
        uir_build_demand(b, uir_build_reduce(b, UIR_OP_REDUCE_SUM, unknown, axes, rank, false), 0, what,
                         sizeof what - 1);
    }
    const int64_t last = rank;
    uir_dim count = uir_build_extent(b, keys, 0);
    uir_value_id place = uir_build_iota(b, UIR_DTYPE_I64, &count, 1, 0);
    context->outputs[0] = uir_build_cast(b, equal(b, uir_build_unsqueeze(b, index, &last, 1), place), UIR_DTYPE_F32);
    return b->status;
}
