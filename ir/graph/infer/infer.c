/* Type inference: the entry, its helpers, and the elementwise, reduction and run-time dim ops. */
#include "ir/graph/infer/infer.h"
#include <stdio.h>
#include <string.h>

typedef uir_status (*infer_function)(uir_inference *inference);
static const infer_function functions[UIR_OP_COUNT] = {
#define UIR_PRIMITIVE(constant, name, min_inputs, max_inputs, outputs, traits, dtypes, attributes, infer, run)         \
    [UIR_OP_##constant] = uir_infer_##infer,
#include "ir/graph/ops.def"
};

uir_status uir_infer_fail(uir_inference *inference, const char *format, ...) {
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return uir_error(inference->diagnostics, UIR_STATUS_BAD_FILE, &inference->location, "%s: %s", inference->row->name,
                     message);
}

const uir_type *uir_infer_operand(const uir_inference *inference, uint32_t index) {
    return uir_value_type(inference->module, inference->node->inputs[index]);
}

bool uir_infer_has(const uir_inference *inference, uint32_t index) {
    return index < inference->node->input_count && inference->node->inputs[index].id;
}

uir_dim *uir_infer_result(uir_inference *inference, uint32_t index, uir_dtype dtype, uint32_t rank) {
    uir_dim *dims = uir_arena_allocate_array(inference->arena, rank + 1, sizeof *dims);
    if (dims && index < inference->node->output_count)
        inference->types[index] = (uir_type){UIR_VALUE_TENSOR, dtype, true, rank, dims};
    return dims;
}

uir_status uir_infer_result_dims(uir_inference *inference, uint32_t index, uir_dtype dtype, const uir_dim *dims,
                                 uint32_t rank) {
    uir_dim *copy;
    UIR_TRY_ALLOCATE(copy, uir_infer_result(inference, index, dtype, rank));
    if (rank) memcpy(copy, dims, rank * sizeof *dims);
    return UIR_STATUS_OK;
}

uir_status uir_infer_check_made(uir_inference *inference, const uir_dim *dims, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (!dims[i].id) return uir_infer_fail(inference, "dim %u of the result overflows", i);
    return UIR_STATUS_OK;
}

bool uir_infer_equal(const uir_inference *inference, uir_dim a, uir_dim b) {
    return uir_dim_equal(a, b) || uir_dim_compare(inference->dims, a, UIR_RELATION_EQ, b) == UIR_TRUE;
}

bool uir_infer_unequal(const uir_inference *inference, uir_dim a, uir_dim b) {
    return !uir_dim_equal(a, b) && uir_dim_compare(inference->dims, a, UIR_RELATION_EQ, b) == UIR_FALSE;
}

uir_dim uir_infer_sharper(const uir_inference *inference, uir_dim a, uir_dim b) {
    return uir_dim_is_const(inference->dims, b, NULL) ? b : a;
}

uir_status uir_infer_axis(uir_inference *inference, const char *name, uint32_t rank, uint32_t *out_axis) {
    int64_t axis = uir_node_int(inference->module, inference->node, name, -1);
    if (axis < 0 || axis >= rank)
        return uir_infer_fail(inference, "%s %lld is outside 0..%d", name, (long long)axis, (int)rank - 1);
    *out_axis = (uint32_t)axis;
    return UIR_STATUS_OK;
}

uir_status uir_infer_ints(uir_inference *inference, const char *name, uint32_t count, const int64_t **out_values) {
    uint32_t given;
    *out_values = uir_node_ints(inference->module, inference->node, name, &given);
    if (given != count) return uir_infer_fail(inference, "%s has %u elements instead of %u", name, given, count);
    return UIR_STATUS_OK;
}

uir_status uir_infer_dims(uir_inference *inference, const char *name, uint32_t count, const uir_dim **out_values) {
    uint32_t given;
    *out_values = uir_node_dims(inference->module, inference->node, name, &given);
    if (given != count) return uir_infer_fail(inference, "%s has %u elements instead of %u", name, given, count);
    return UIR_STATUS_OK;
}

uir_status uir_infer_check_tensor(uir_inference *inference, uint32_t index, uint32_t classes) {
    if (!uir_infer_has(inference, index)) return uir_infer_fail(inference, "operand %u is missing", index);
    const uir_type *type = uir_infer_operand(inference, index);
    if (type->kind != UIR_VALUE_TENSOR) return uir_infer_fail(inference, "operand %u is not a tensor", index);
    if (type->dtype == UIR_DTYPE_NONE || !type->rank_known)
        return uir_error_hint(inference->diagnostics, UIR_STATUS_UNSUPPORTED, &inference->location,
                              "export the model with shape information, or give the input a fixed rank",
                              "%s: the %s of operand %u is not known", inference->row->name,
                              type->rank_known ? "element type" : "rank", index);
    if (!(classes >> uir_dtype_get_class(type->dtype) & 1))
        return uir_infer_fail(inference, "operand %u has element type %s, which the op does not support", index,
                              uir_dtype_name(type->dtype));
    return UIR_STATUS_OK;
}

uir_status uir_infer_check_scalar(uir_inference *inference, uint32_t index, uir_dtype dtype) {
    if (!uir_infer_has(inference, index)) return UIR_STATUS_OK;
    UIR_TRY(uir_infer_check_tensor(inference, index, UIR_DTYPES_ANY));
    const uir_type *type = uir_infer_operand(inference, index);
    if (type->dtype != dtype || type->rank)
        return uir_infer_fail(inference, "operand %u must be %s of rank 0, not %s of rank %u", index,
                              uir_dtype_name(dtype), uir_dtype_name(type->dtype), type->rank);
    return UIR_STATUS_OK;
}

/* Arity, attributes and data operands against the op's row. */
static uir_status check_row(uir_inference *inference) {
    const uir_node_info *node = inference->node;
    const uir_op_row *row = inference->row;
    int inputs = (int)node->input_count, outputs = (int)node->output_count;
    if (inputs < row->min_inputs || (row->max_inputs >= 0 && inputs > row->max_inputs))
        return uir_infer_fail(inference, "%d operands instead of %d to %d", inputs, row->min_inputs, row->max_inputs);
    if (row->max_outputs >= 0 && (outputs > row->max_outputs || outputs < (row->max_outputs > 0)))
        return uir_infer_fail(inference, "%d results instead of %d", outputs, row->max_outputs);
    uir_attribute_spec spec;
    for (uint32_t i = 0; uir_op_get_attribute_spec(node->op, i, &spec); i++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)spec.length, spec.name);
        const uir_attribute *attribute = uir_node_find_attribute(inference->module, node, name);
        if (!attribute && !spec.optional) return uir_infer_fail(inference, "attribute %s is missing", name);
        if (attribute && attribute->kind != spec.kind)
            return uir_infer_fail(inference, "attribute %s is of kind %s instead of %s", name,
                                  uir_attribute_kind_name(attribute->kind), uir_attribute_kind_name(spec.kind));
        for (uint32_t d = 0; attribute && spec.kind == UIR_ATTRIBUTE_DIMS && d < attribute->count; d++)
            if (!attribute->value.dims[d].id) return uir_infer_fail(inference, "element %u of %s is missing", d, name);
    }
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const char *name = uir_string_text(&inference->module->strings, node->attributes[i].name);
        if (!uir_op_find_attribute_spec(node->op, name, strlen(name), &spec))
            return uir_infer_fail(inference, "unknown attribute %s", name);
    }
    for (uint32_t i = 0; row->dtypes && i < node->input_count; i++)
        UIR_TRY(uir_infer_check_tensor(inference, i, row->dtypes));
    return UIR_STATUS_OK;
}

uir_status uir_infer_node(const uir_module *module, uir_arena *arena, uir_diagnostics *diagnostics,
                          const uir_location *location, const uir_node_info *node, uir_type *out_types) {
    uir_inference inference = {module,   module->dims, arena, diagnostics, *location, node, uir_op_get_row(node->op),
                               out_types};
    for (uint32_t i = 0; i < node->output_count; i++) out_types[i] = (uir_type){0};
    if (inference.row->section != UIR_SECTION_PRIMITIVE)
        return uir_error(diagnostics, UIR_STATUS_INTERNAL, location, "%s is not a primitive", inference.row->name);
    UIR_TRY(check_row(&inference));
    UIR_TRY(functions[node->op](&inference));
    for (uint32_t i = 0; i < node->output_count; i++) {
        const uir_type *type = &out_types[i];
        if (!type->rank_known) continue;
        if (type->rank > UIR_MAX_RANK)
            return uir_error(diagnostics, UIR_STATUS_UNSUPPORTED, location,
                             "%s: the result has rank %u; the maximum is %d", inference.row->name, type->rank,
                             UIR_MAX_RANK);
        int64_t extent;
        for (uint32_t d = 0; d < type->rank; d++)
            if (type->dims[d].id && uir_dim_is_const(module->dims, type->dims[d], &extent) && extent < 0)
                return uir_infer_fail(&inference, "dim %u of the result is %lld", d, (long long)extent);
    }
    return UIR_STATUS_OK;
}

/* ---- elementwise ---- */

static uir_status result_like(uir_inference *inference, const uir_type *type, uir_dtype dtype) {
    return uir_infer_result_dims(inference, 0, dtype, type->dims, type->rank);
}

uir_status uir_infer_unary(uir_inference *inference) {
    const uir_type *a = uir_infer_operand(inference, 0);
    return result_like(inference, a, inference->row->traits & UIR_TRAIT_COMPARISON ? UIR_DTYPE_BOOL : a->dtype);
}

uir_status uir_infer_cast(uir_inference *inference) {
    uir_dtype to = uir_node_dtype(inference->module, inference->node, "to", UIR_DTYPE_NONE);
    if (!(inference->row->dtypes >> uir_dtype_get_class(to) & 1))
        return uir_infer_fail(inference, "cannot cast to %s", uir_dtype_name(to));
    return result_like(inference, uir_infer_operand(inference, 0), to);
}

uir_status uir_infer_bit_cast(uir_inference *inference) {
    const uir_type *a = uir_infer_operand(inference, 0);
    uir_dtype to = uir_node_dtype(inference->module, inference->node, "to", UIR_DTYPE_NONE);
    if (!(inference->row->dtypes >> uir_dtype_get_class(to) & 1) || uir_dtype_bits(to) != uir_dtype_bits(a->dtype))
        return uir_infer_fail(inference, "%s and %s have different widths", uir_dtype_name(a->dtype),
                              uir_dtype_name(to));
    return result_like(inference, a, to);
}

/* Operands `first` and up have provably equal dims. */
static uir_status check_equal_dims(uir_inference *inference, uint32_t first) {
    const uir_type *a = uir_infer_operand(inference, first);
    for (uint32_t i = first + 1; i < inference->node->input_count; i++) {
        const uir_type *b = uir_infer_operand(inference, i);
        if (a->rank != b->rank) return uir_infer_fail(inference, "the operands have ranks %u and %u", a->rank, b->rank);
        for (uint32_t d = 0; d < a->rank; d++)
            if (!uir_infer_equal(inference, a->dims[d], b->dims[d]))
                return uir_infer_fail(inference, "dim %u of operand %u is not provably that of operand %u", d, i,
                                      first);
    }
    return UIR_STATUS_OK;
}

static uir_status check_equal_dtypes(uir_inference *inference, uint32_t first) {
    const uir_type *a = uir_infer_operand(inference, first);
    for (uint32_t i = first + 1; i < inference->node->input_count; i++) {
        const uir_type *b = uir_infer_operand(inference, i);
        if (a->dtype != b->dtype)
            return uir_infer_fail(inference, "the operands have element types %s and %s", uir_dtype_name(a->dtype),
                                  uir_dtype_name(b->dtype));
    }
    return UIR_STATUS_OK;
}

uir_status uir_infer_binary(uir_inference *inference) {
    UIR_TRY(check_equal_dtypes(inference, 0));
    UIR_TRY(check_equal_dims(inference, 0));
    return uir_infer_unary(inference);
}

uir_status uir_infer_select(uir_inference *inference) {
    UIR_TRY(uir_infer_check_tensor(inference, 0, UIR_DTYPES_BOOL));
    UIR_TRY(uir_infer_check_tensor(inference, 1, UIR_DTYPES_ANY));
    UIR_TRY(uir_infer_check_tensor(inference, 2, UIR_DTYPES_ANY));
    UIR_TRY(check_equal_dtypes(inference, 1));
    UIR_TRY(check_equal_dims(inference, 0));
    return result_like(inference, uir_infer_operand(inference, 1), uir_infer_operand(inference, 1)->dtype);
}

/* ---- reductions and scans ---- */

static uir_status reduce_result(uir_inference *inference, uir_dtype dtype, const int64_t *axes, uint32_t axis_count) {
    const uir_type *a = uir_infer_operand(inference, 0);
    bool keep = uir_node_int(inference->module, inference->node, "keep", 0) != 0;
    for (uint32_t i = 0; i < axis_count; i++) {
        if (axes[i] < 0 || axes[i] >= a->rank)
            return uir_infer_fail(inference, "axis %lld is outside 0..%d", (long long)axes[i], (int)a->rank - 1);
        if (i && axes[i] <= axes[i - 1]) return uir_infer_fail(inference, "the axes are not sorted");
    }
    uir_dim *dims;
    UIR_TRY_ALLOCATE(dims, uir_infer_result(inference, 0, dtype, keep ? a->rank : a->rank - axis_count));
    uint32_t next = 0, at = 0;
    for (uint32_t d = 0; d < a->rank; d++) {
        bool reduced = next < axis_count && axes[next] == d;
        if (reduced) next++;
        if (!reduced)
            dims[at++] = a->dims[d];
        else if (keep)
            dims[at++] = uir_dim_const(inference->dims, 1);
    }
    return uir_infer_check_made(inference, dims, at);
}

uir_status uir_infer_reduce(uir_inference *inference) {
    uint32_t count;
    const int64_t *axes = uir_node_ints(inference->module, inference->node, "axes", &count);
    return reduce_result(inference, uir_infer_operand(inference, 0)->dtype, axes, count);
}

uir_status uir_infer_arg(uir_inference *inference) {
    int64_t axis = uir_node_int(inference->module, inference->node, "axis", 0);
    return reduce_result(inference, UIR_DTYPE_I64, &axis, 1);
}

uir_status uir_infer_scan(uir_inference *inference) {
    uint32_t axis;
    UIR_TRY(uir_infer_axis(inference, "axis", uir_infer_operand(inference, 0)->rank, &axis));
    return uir_infer_unary(inference);
}

/* ---- run-time dims ---- */

uir_status uir_infer_dim_values(uir_inference *inference) {
    uint32_t count;
    uir_node_dims(inference->module, inference->node, "dims", &count);
    bool scalar = uir_node_int(inference->module, inference->node, "scalar", 0) != 0;
    uir_dtype dtype = uir_node_dtype(inference->module, inference->node, "dtype", UIR_DTYPE_NONE);
    if (!uir_dtype_is_integer(dtype))
        return uir_infer_fail(inference, "dtype %s is not an integer type", uir_dtype_name(dtype));
    if (scalar && count != 1) return uir_infer_fail(inference, "a scalar cannot hold %u dims", count);
    uir_dim *dims;
    UIR_TRY_ALLOCATE(dims, uir_infer_result(inference, 0, dtype, scalar ? 0 : 1));
    if (scalar) return UIR_STATUS_OK;
    dims[0] = uir_dim_const(inference->dims, count);
    return uir_infer_check_made(inference, dims, 1);
}

uir_status uir_infer_bind_dims(uir_inference *inference) {
    UIR_TRY(uir_infer_check_tensor(inference, 0, UIR_DTYPES_INTEGER));
    const uir_type *a = uir_infer_operand(inference, 0);
    uint32_t count;
    const uir_dim *dims = uir_node_dims(inference->module, inference->node, "dims", &count);
    for (uint32_t i = 0; i < count; i++)
        if (!uir_dim_is_symbol(inference->dims, dims[i], NULL))
            return uir_infer_fail(inference, "element %u of dims is not a plain symbol", i);
    if (a->rank > 1 || (a->rank == 0 && count != 1))
        return uir_infer_fail(inference, "an operand of rank %u cannot bind %u dims", a->rank, count);
    uir_dim expected = uir_dim_const(inference->dims, count);
    UIR_TRY(uir_infer_check_made(inference, &expected, 1));
    if (a->rank == 1 && uir_infer_unequal(inference, a->dims[0], expected))
        return uir_infer_fail(inference, "the operand does not have the %u elements to bind", count);
    return UIR_STATUS_OK;
}

uir_status uir_infer_check_sizes(uir_inference *inference) {
    const uir_dim *ignored;
    uir_relation relation;
    const char *text = uir_node_string(inference->module, inference->node, "relation", NULL);
    if (text && !uir_relation_find(text, &relation)) return uir_infer_fail(inference, "unknown relation '%.16s'", text);
    UIR_TRY(uir_infer_dims(inference, "left", 1, &ignored));
    return uir_infer_dims(inference, "right", 1, &ignored);
}

uir_status uir_infer_check_indices(uir_inference *inference) {
    UIR_TRY(uir_infer_check_tensor(inference, 0, UIR_DTYPES_INTEGER));
    const uir_type *a = uir_infer_operand(inference, 0);
    uint32_t low, high;
    uir_node_dims(inference->module, inference->node, "low", &low);
    uir_node_dims(inference->module, inference->node, "high", &high);
    if (low != high || !low) return uir_infer_fail(inference, "%u lower and %u upper bounds", low, high);
    if (low == 1) return UIR_STATUS_OK;
    if (!a->rank || uir_infer_unequal(inference, a->dims[a->rank - 1], uir_dim_const(inference->dims, low)))
        return uir_infer_fail(inference, "the last axis does not have %u elements, one for each bound", low);
    return UIR_STATUS_OK;
}
