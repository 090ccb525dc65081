/* What rules ask of their node, of its operands and of the builder. */
#include "decompose/decomposer.h"
#include "ir/graph/bounds.h"
#include <string.h>

uir_value_id uir_rule_input(const uir_rule_context *context, uint32_t index) {
    return index < context->input_count ? context->inputs[index] : (uir_value_id){0};
}

bool uir_rule_has_input(const uir_rule_context *context, uint32_t index) {
    return uir_rule_input(context, index).id != 0;
}

bool uir_rule_has_output(const uir_rule_context *context, uint32_t index) {
    return index < context->output_count && context->node->outputs[index].id != 0;
}

const uir_type *uir_rule_type(const uir_rule_context *context, uir_value_id value) {
    return uir_value_type(context->builder.module, value);
}

uir_dtype uir_rule_dtype(const uir_rule_context *context, uir_value_id value) {
    return value.id ? uir_rule_type(context, value)->dtype : UIR_DTYPE_NONE;
}

uint32_t uir_rule_rank(uir_rule_context *context, uir_value_id value) {
    if (context->builder.status != UIR_STATUS_OK) return 0;
    const uir_type *type = uir_rule_type(context, value);
    if (!value.id) {
        uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "a required operand is absent");
        return 0;
    }
    if (type->rank_known && type->kind == UIR_VALUE_TENSOR) {
        if (type->rank <= UIR_MAX_RANK) return type->rank;
        uir_builder_fail(&context->builder, UIR_STATUS_UNSUPPORTED, "an operand has rank %u; at most %d is supported",
                         type->rank, UIR_MAX_RANK);
        return 0;
    }
    uir_builder_fail(&context->builder, UIR_STATUS_UNSUPPORTED,
                     type->kind == UIR_VALUE_TENSOR ? "the rank of an operand is unknown"
                                                    : "an operand is a sequence or optional; a tensor is required");
    return 0;
}

const uir_dim *uir_rule_extents(uir_rule_context *context, uir_value_id value) {
    static const uir_dim none[1];
    uint32_t rank = uir_rule_rank(context, value);
    if (context->builder.status != UIR_STATUS_OK) return NULL;
    return rank ? uir_rule_type(context, value)->dims : none;
}

/* ---- attributes ---- */

const uir_attribute *uir_rule_attribute(const uir_rule_context *context, const char *name) {
    return uir_node_find_attribute(context->source, context->node, name);
}

int64_t uir_rule_int(const uir_rule_context *context, const char *name, int64_t fallback) {
    return uir_node_int(context->source, context->node, name, fallback);
}

double uir_rule_float(const uir_rule_context *context, const char *name, double fallback) {
    return uir_node_float(context->source, context->node, name, fallback);
}

const char *uir_rule_string(const uir_rule_context *context, const char *name, const char *fallback) {
    return uir_node_string(context->source, context->node, name, fallback);
}

bool uir_rule_string_is(const uir_rule_context *context, const char *name, const char *fallback, const char *text) {
    return strcmp(uir_rule_string(context, name, fallback), text) == 0;
}

int64_t uir_rule_ints(const uir_rule_context *context, const char *name, const int64_t **out_values) {
    const uir_attribute *attribute = uir_rule_attribute(context, name);
    *out_values = NULL;
    if (!attribute || attribute->kind != UIR_ATTRIBUTE_INTS) return -1;
    *out_values = attribute->value.integers;
    return attribute->count;
}

int64_t uir_rule_axis(uir_rule_context *context, int64_t axis, uint32_t rank) {
    int64_t normal = axis < 0 ? axis + (int64_t)rank : axis;
    if (axis >= -(int64_t)rank && normal >= 0 && normal < (int64_t)rank) return normal;
    uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "axis %lld is out of range for a tensor of rank %u",
                     (long long)axis, rank);
    return 0;
}

/* ---- operands that decide the structure ---- */

uir_tensor *uir_rule_constant(uir_rule_context *context, uir_value_id value) {
    uir_tensor *tensor = NULL;
    if (!value.id || context->builder.status != UIR_STATUS_OK) return NULL;
    uir_status status = uir_evaluate_pending(context->decomposer);
    if (status == UIR_STATUS_OK) status = uir_evaluate_constant(context->decomposer, value, &tensor);
    if (status != UIR_STATUS_OK) context->builder.status = status;
    return tensor;
}

static bool is_whole(uir_dtype dtype) {
    return uir_dtype_is_integer(dtype) || dtype == UIR_DTYPE_BOOL;
}

bool uir_rule_constant_integers(uir_rule_context *context, uir_value_id value, const int64_t **out_values,
                                uint32_t *out_count) {
    const uir_tensor *tensor = uir_rule_constant(context, value);
    if (!tensor || tensor->rank > 1 || !is_whole(tensor->dtype) || tensor->element_count > UINT32_MAX) return false;
    int64_t *values = uir_rule_allocate(context, tensor->element_count + 1, sizeof *values);
    if (!values) return false;
    for (uint64_t i = 0; i < tensor->element_count; i++)
        values[i] = uir_dtype_load_integer(tensor->dtype, tensor->data, i);
    *out_values = values;
    *out_count = (uint32_t)tensor->element_count;
    return true;
}

bool uir_rule_constant_number(uir_rule_context *context, uir_value_id value, double *out_value) {
    const uir_tensor *tensor = uir_rule_constant(context, value);
    if (!tensor || tensor->element_count != 1) return false;
    if (!is_whole(tensor->dtype) && !uir_dtype_is_float(tensor->dtype)) return false;
    *out_value = is_whole(tensor->dtype) ? (double)uir_dtype_load_integer(tensor->dtype, tensor->data, 0)
                                         : uir_dtype_load_double(tensor->dtype, tensor->data, 0);
    return true;
}

const uir_dim *uir_rule_dims(uir_rule_context *context, uir_value_id value, int64_t min, uint32_t *out_count) {
    *out_count = 0;
    if (context->builder.status != UIR_STATUS_OK) return NULL;
    const int64_t *integers;
    uint32_t count;
    if (uir_rule_constant_integers(context, value, &integers, &count)) {
        uir_dim *dims = uir_rule_allocate(context, count + 1u, sizeof *dims);
        for (uint32_t i = 0; dims && i < count; i++) dims[i] = uir_rule_dim(context, integers[i]);
        *out_count = count;
        return context->builder.status == UIR_STATUS_OK ? dims : NULL;
    }
    if (context->builder.status != UIR_STATUS_OK) return NULL;
    return uir_build_value_as_dims(&context->builder, value, min, out_count);
}

bool uir_rule_integers(uir_rule_context *context, const char *attribute, uint32_t input, const int64_t **out_values,
                       uint32_t *out_count) {
    uir_value_id value = uir_rule_input(context, input);
    *out_count = 0;
    if (!value.id) {
        int64_t count = attribute ? uir_rule_ints(context, attribute, out_values) : -1;
        *out_count = count < 0 ? 0 : (uint32_t)count;
        return count >= 0;
    }
    if (uir_rule_constant_integers(context, value, out_values, out_count)) return true;
    uir_builder_fail(&context->builder, UIR_STATUS_UNSUPPORTED,
                     "input %u must be constant: it decides the structure of the result", input);
    return false;
}

bool uir_rule_axes(uir_rule_context *context, const char *attribute, uint32_t input, uint32_t rank,
                   const int64_t **out_axes, uint32_t *out_count) {
    const int64_t *given;
    uint32_t count;
    *out_count = 0;
    if (!uir_rule_integers(context, attribute, input, &given, &count)) return false;
    bool seen[UIR_MAX_RANK] = {false};
    for (uint32_t i = 0; i < count && context->builder.status == UIR_STATUS_OK; i++)
        seen[uir_rule_axis(context, given[i], rank)] = rank != 0;
    int64_t *axes = uir_rule_allocate(context, UIR_MAX_RANK, sizeof *axes);
    if (!axes || context->builder.status != UIR_STATUS_OK) return false;
    for (uint32_t i = 0; i < rank; i++)
        if (seen[i]) axes[(*out_count)++] = i;
    *out_axes = axes;
    return true;
}

/* ---- small pieces of arithmetic ---- */

void *uir_rule_allocate(uir_rule_context *context, size_t count, size_t element_size) {
    void *memory = uir_arena_allocate_array(&context->builder.module->arena, count, element_size);
    if (!memory && context->builder.status == UIR_STATUS_OK) context->builder.status = UIR_STATUS_OUT_OF_MEMORY;
    return memory;
}

uir_dim uir_rule_dim(uir_rule_context *context, int64_t value) {
    uir_dim dim = uir_dim_const(context->builder.module->dims, value);
    if (!dim.id && context->builder.status == UIR_STATUS_OK) context->builder.status = UIR_STATUS_OUT_OF_MEMORY;
    return dim;
}

uir_dim uir_rule_product(uir_rule_context *context, const uir_dim *dims, uint32_t count) {
    uir_dim product = uir_rule_dim(context, 1);
    for (uint32_t i = 0; i < count; i++) product = uir_dim_mul(context->builder.module->dims, product, dims[i]);
    return product;
}

uir_value_id uir_rule_number(uir_rule_context *context, uir_value_id like, double value) {
    return uir_build_scalar(&context->builder, uir_rule_dtype(context, like), value);
}

uir_value_id uir_rule_widen(uir_rule_context *context, uir_value_id value) {
    uir_dtype dtype = uir_rule_dtype(context, value);
    bool narrow = uir_dtype_is_float(dtype) && uir_dtype_bits(dtype) < 32;
    return narrow ? uir_build_cast(&context->builder, value, UIR_DTYPE_F32) : value;
}

uir_value_id uir_rule_binary_number(uir_rule_context *context, uir_op op, uir_value_id a, double value) {
    return uir_build_binary(&context->builder, op, a, uir_rule_number(context, a, value));
}

uir_value_id uir_rule_scalar(uir_rule_context *context, uir_value_id value) {
    uint32_t rank = uir_rule_rank(context, value);
    if (!rank || context->builder.status != UIR_STATUS_OK) return value;
    return uir_build_reshape(&context->builder, value, NULL, 0);
}

/* Whether every index is known to be one of 0..extent-1's side of zero: then nothing need be added. */
static bool never_negative(uir_rule_context *context, uir_value_id indices) {
    const uir_tensor *tensor = uir_rule_constant(context, indices);
    if (tensor) {
        for (uint64_t i = 0; i < tensor->element_count; i++)
            if (uir_dtype_load_integer(tensor->dtype, tensor->data, i) < 0) return false;
        return true;
    }
    const uir_value_info *info = uir_value_info_get(context->builder.module, indices);
    if (!info->elements_known) return false;
    for (uint32_t i = 0; i < info->element_count; i++) {
        int64_t min, max;
        uir_dim_bounds(context->builder.module->dims, info->elements[i], &min, &max);
        if (min < 0) return false;
    }
    return true;
}

uir_value_id uir_rule_indices(uir_rule_context *context, uir_value_id indices, uir_dim extent) {
    uir_builder *b = &context->builder;
    uir_dtype_class class = uir_dtype_get_class(uir_rule_dtype(context, indices));
    uir_value_id wide = uir_build_cast(b, indices, UIR_DTYPE_I64);
    if (class == UIR_DTYPE_CLASS_UNSIGNED || class == UIR_DTYPE_CLASS_BOOL || never_negative(context, indices))
        return wide;
    uir_value_id bound = uir_build_dim_values(b, &extent, 1, true, UIR_DTYPE_I64);
    uir_value_id negative = uir_build_binary(b, UIR_OP_LT, wide, uir_build_integer_scalar(b, UIR_DTYPE_I64, 0));
    return uir_build_select(b, negative, uir_build_binary(b, UIR_OP_ADD, wide, bound), wide);
}

uir_value_id uir_rule_checked_indices(uir_rule_context *context, uir_value_id indices, uir_dim extent) {
    uir_dims *dims = context->builder.module->dims;
    uir_dim low = uir_dim_sub(dims, uir_dim_const(dims, 0), extent);
    uir_rule_check_indices(context, indices, indices, &low, &extent, 1);
    return uir_rule_indices(context, indices, extent);
}

/* ---- checks of indices ---- */
/* Whether the node gives the numbers that its operand holds, in the order in which they lie. */
static bool keeps_numbers(const uir_module *module, const uir_node_info *node) {
    if (node->op == UIR_OP_RESHAPE) return true;
    if (node->op != UIR_OP_CAST) return false;
    uir_dtype from = uir_value_type(module, node->inputs[0])->dtype,
              to = uir_value_type(module, node->outputs[0])->dtype;
    return uir_dtype_is_integer(from) && uir_dtype_get_class(from) == uir_dtype_get_class(to) &&
           uir_dtype_bits(from) <= uir_dtype_bits(to) && uir_dtype_bits(from) >= 8;
}

/* The indices as what made them has them: nothing is computed for the sake of a look at it. A bound of their own for
 * each along the last axis asks for that axis. */
static uir_value_id find_numbers(const uir_module *module, uir_value_id indices, bool whole) {
    for (;;) {
        const uir_value_info *info = uir_value_info_get(module, indices);
        const uir_node_info *node = info->producer.id ? uir_node_get(module, info->producer) : NULL;
        if (info->constant || !node || !keeps_numbers(module, node) || (whole && node->op == UIR_OP_RESHAPE))
            return indices;
        indices = node->inputs[0];
    }
}

/* The number, or 0 where the value has no elements. */
static uir_dim zero_if_empty(uir_builder *b, uir_value_id value, uir_dim number) {
    uir_dims *dims = b->module->dims;
    const uir_type *type = uir_value_type(b->module, value);
    for (uint32_t d = 0; d < type->rank; d++)
        number = uir_dim_mul(dims, number, uir_dim_min(dims, type->dims[d], uir_dim_const(dims, 1)));
    return number;
}

/* The least and the greatest of indices that follow from sizes, as a tensor of two, or of two for each coordinate; all
 * 0 where there are no indices. */
static uir_value_id ends_of(uir_builder *b, uir_value_id indices, const uir_bounds *bounds, uint32_t count) {
    uir_dims *dims = b->module->dims;
    uir_dim ends[2 * UIR_MAX_RANK];
    for (uint32_t k = 0; k < count; k++) {
        ends[k] = zero_if_empty(b, indices, bounds[k].low);
        ends[count + k] = zero_if_empty(b, indices, bounds[k].high);
    }
    uir_value_id list = uir_build_dim_values(b, ends, 2 * count, false, UIR_DTYPE_I64);
    const uir_dim shape[] = {uir_dim_const(dims, 2), uir_dim_const(dims, count)};
    return count == 1 ? list : uir_build_reshape(b, list, shape, 2);
}

static bool is_at_least(uir_builder *b, uir_dim dim, int64_t number) {
    return uir_dim_compare(b->module->dims, dim, UIR_RELATION_GE, uir_dim_const(b->module->dims, number)) == UIR_TRUE;
}

/* Whether sizes alone decide each coordinate: the ends are attained, or inside at any size. */
static bool follow_from_sizes(uir_builder *b, const uir_bounds *bounds, const uir_dim *low, const uir_dim *high,
                              uint32_t count) {
    for (uint32_t k = 0; k < count; k++) {
        bool is_known = bounds[k].low.id && bounds[k].high.id &&
                        (bounds[k].attained || uir_bounds_are_inside(b->module, bounds[k], low[k], high[k]));
        uir_dim least = uir_dim_sub(b->module->dims, uir_dim_const(b->module->dims, 0), low[k]);
        if (!is_known || !is_at_least(b, least, 0) || !is_at_least(b, high[k], 0)) return false;
    }
    return true;
}

/* The ends, 0 where there are no indices, must then be inside: also of an axis without elements. */
static uir_dim admit_none(uir_builder *b, uir_value_id indices, uir_dim high) {
    uir_dims *dims = b->module->dims;
    uir_dim one = uir_dim_const(dims, 1);
    return is_at_least(b, high, 1) ? high
                                   : uir_dim_max(dims, high, uir_dim_sub(dims, one, zero_if_empty(b, indices, one)));
}

void uir_rule_check_indices(uir_rule_context *context, uir_value_id indices, uir_value_id from, const uir_dim *low,
                            const uir_dim *high, uint32_t count) {
    uir_builder *b = &context->builder;
    uir_bounds bounds[UIR_MAX_RANK];
    uir_dim highs[UIR_MAX_RANK];
    if (b->status != UIR_STATUS_OK || !indices.id || !count) return;
    const uir_type *type = uir_value_type(b->module, indices);
    if (type->kind != UIR_VALUE_TENSOR || !type->rank_known || !uir_dtype_is_integer(type->dtype)) return;
    if (uir_indices_are_inside(b->module, indices, low, high, count)) return;
    if (count <= UIR_MAX_RANK) uir_index_bounds(b->module, indices, count, bounds);
    uir_value_id looked_at = find_numbers(b->module, indices, count > 1);
    bool ends = count <= UIR_MAX_RANK && !uir_value_info_get(b->module, looked_at)->constant &&
                follow_from_sizes(b, bounds, low, high, count);
    for (uint32_t k = 0; k < count && ends; k++) highs[k] = admit_none(b, indices, high[k]);
    uir_string name = uir_value_info_get(b->module, looked_at)->name;
    if (ends || !uir_string_length(&b->module->strings, name)) name = uir_value_info_get(b->module, indices)->name;
    if (!uir_string_length(&b->module->strings, name)) name = uir_value_info_get(b->module, from)->name;
    uir_attribute attributes[4] = {uir_attribute_dims(b, "low", low, count),
                                   uir_attribute_dims(b, "high", ends ? highs : high, count),
                                   uir_attribute_string(b, "of", uir_string_text(&b->module->strings, name))};
    uint32_t attribute_count = 3;
    if (ends) {
        looked_at = ends_of(b, indices, bounds, count);
        attributes[attribute_count++] = uir_attribute_int(b, "ends", 1);
    }
    uir_build_node(b, UIR_OP_CHECK_INDICES, &looked_at, 1, attributes, attribute_count, NULL, 0);
}

void uir_rule_check_below(uir_rule_context *context, uir_value_id indices, uir_value_id from, uir_dim high) {
    uir_dim low = uir_rule_dim(context, 0);
    uir_rule_check_indices(context, indices, from, &low, &high, 1);
}
