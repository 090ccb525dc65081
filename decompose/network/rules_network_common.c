/* Helpers of the network rules: types, shapes, movement, constants, attributes. See rules_network.h. */
#include "decompose/network/rules_network.h"

#include <string.h>

uir_dtype uir_network_working_dtype(uir_dtype dtype) {
    return uir_dtype_is_float(dtype) && uir_dtype_bits(dtype) < 32 ? UIR_DTYPE_F32 : dtype;
}

uir_value_id uir_network_widen(uir_builder *b, uir_value_id x) {
    return uir_build_cast(b, x, uir_network_working_dtype(dtype_of(b, x)));
}

uir_shape uir_network_shape(uir_rule_context *context, uir_value_id value) {
    uir_shape shape = {0};
    uint32_t rank = uir_rule_rank(context, value);
    if (context->builder.status != UIR_STATUS_OK) return shape;
    if (rank > UIR_MAX_RANK) {
        (void)uir_builder_fail(&context->builder, UIR_STATUS_UNSUPPORTED,
                               "a tensor has rank %u; at most %d is supported", rank, UIR_MAX_RANK);
        return shape;
    }
    shape.rank = rank;
    if (rank > 0) memcpy(shape.dims, uir_rule_type(context, value)->dims, rank * sizeof shape.dims[0]);
    return shape;
}

uir_shape uir_network_shape_between(uir_rule_context *context, uir_value_id value, const char *name, uint32_t least,
                                    uint32_t most) {
    uir_shape shape = {0};
    if (context->builder.status != UIR_STATUS_OK) return shape;
    if (is_none(value)) {
        (void)uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "input %s is absent but required", name);
        return shape;
    }
    shape = uir_network_shape(context, value);
    if (context->builder.status == UIR_STATUS_OK && (shape.rank < least || shape.rank > most)) {
        if (least == most)
            (void)uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE,
                                   "input %s has rank %u; the op requires rank %u", name, shape.rank, least);
        else
            (void)uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE,
                                   "input %s has rank %u; the op requires a rank from %u to %u", name, shape.rank,
                                   least, most);
    }
    return shape;
}

bool uir_network_same_extent(uir_rule_context *context, uir_dim a, const char *a_text, uir_dim b, const char *b_text) {
    uir_builder *builder = &context->builder;
    if (builder->status != UIR_STATUS_OK) return false;
    uir_dims *dims = builder->module->dims;
    if (uir_dim_compare(dims, a, UIR_RELATION_NE, b) != UIR_TRUE) return true;
    int64_t a_value, b_value;
    if (uir_dim_is_const(dims, a, &a_value) && uir_dim_is_const(dims, b, &b_value))
        (void)uir_builder_fail(builder, UIR_STATUS_BAD_FILE, "%s (%lld) must equal %s (%lld)", a_text,
                               (long long)a_value, b_text, (long long)b_value);
    else
        (void)uir_builder_fail(builder, UIR_STATUS_BAD_FILE, "%s must equal %s, but never can", a_text, b_text);
    return false;
}

uir_value_id uir_network_reshape(uir_builder *b, uir_value_id x, const uir_shape *shape) {
    return uir_build_reshape(b, x, shape->dims, shape->rank);
}

uir_value_id uir_network_broadcast(uir_builder *b, uir_value_id x, const uir_shape *shape) {
    return uir_build_broadcast(b, x, shape->dims, shape->rank);
}

uir_value_id uir_network_full(uir_builder *b, uir_dtype dtype, double value, const uir_shape *shape) {
    return uir_network_broadcast(b, uir_build_scalar(b, dtype, value), shape);
}

uir_dim uir_network_dim_product(const uir_builder *b, const uir_shape *shape, uint32_t first, uint32_t last) {
    uir_dim product = dim_int(b, 1);
    for (uint32_t i = first; i < last; i++) product = dim_mul(b, product, shape->dims[i]);
    return product;
}

uir_value_id uir_network_dim_value(uir_builder *b, uir_dim dim, uir_dtype dtype) {
    int64_t value;
    if (uir_dim_is_const(b->module->dims, dim, &value)) {
        if (uir_dtype_is_integer(dtype)) return uir_build_integer_scalar(b, dtype, value);
        return uir_build_scalar(b, dtype, (double)value);
    }
    if (uir_dtype_is_integer(dtype)) return uir_build_dim_values(b, &dim, 1, true, dtype);
    return uir_build_cast(b, uir_build_dim_values(b, &dim, 1, true, UIR_DTYPE_I64), dtype);
}

/* ---- movement ---- */

uir_value_id uir_network_along(uir_builder *b, uir_value_id vector, uint32_t axis, uint32_t rank) {
    uint32_t own = rank_of(b, vector);
    if (is_none(vector) || own == 0 || axis + 1 >= rank) return vector;
    int64_t axes[UIR_NETWORK_AXES];
    uint32_t count = rank - axis - 1;
    for (uint32_t i = 0; i < count; i++) axes[i] = own + i;
    return uir_build_unsqueeze(b, vector, axes, count);
}

uir_value_id uir_network_slice(uir_builder *b, uir_value_id x, uint32_t axis, uir_dim start, uir_dim size,
                               int64_t step) {
    uir_dim starts[UIR_NETWORK_AXES], sizes[UIR_NETWORK_AXES];
    int64_t steps[UIR_NETWORK_AXES];
    uint32_t rank = rank_of(b, x);
    for (uint32_t i = 0; i < rank; i++) {
        starts[i] = i == axis ? start : dim_int(b, 0);
        sizes[i] = i == axis ? size : uir_build_extent(b, x, i);
        steps[i] = i == axis ? step : 1;
    }
    return uir_build_slice(b, x, starts, sizes, steps);
}

uir_value_id uir_network_flip(uir_builder *b, uir_value_id x, uint32_t axis) {
    int64_t extent_value;
    uir_dim extent = uir_build_extent(b, x, axis);
    if (uir_dim_is_const(b->module->dims, extent, &extent_value) && extent_value <= 1) return x;
    return uir_network_slice(b, x, axis, dim_plus(b, extent, -1), extent, -1);
}

uir_value_id uir_network_swap(uir_builder *b, uir_value_id x, uint32_t axis, uint32_t other) {
    int64_t perm[UIR_NETWORK_AXES];
    uint32_t rank = rank_of(b, x);
    if (axis == other) return x;
    for (uint32_t i = 0; i < rank; i++) perm[i] = i;
    perm[axis] = other;
    perm[other] = axis;
    return uir_build_transpose(b, x, perm);
}

uir_value_id uir_network_move_axis(uir_builder *b, uir_value_id x, uint32_t from, uint32_t to) {
    int64_t perm[UIR_NETWORK_AXES];
    uint32_t rank = rank_of(b, x), at = 0;
    if (from == to) return x;
    for (uint32_t i = 0; i < rank; i++) {
        if (i == to) {
            perm[i] = from;
            continue;
        }
        if (at == from) at++;
        perm[i] = at++;
    }
    return uir_build_transpose(b, x, perm);
}

uir_value_id uir_network_repeat(uir_rule_context *context, uir_value_id x, uint32_t axis, uir_dim times) {
    uir_builder *b = &context->builder;
    uir_shape shape = uir_network_shape(context, x), wide = shape;
    if (b->status != UIR_STATUS_OK) return (uir_value_id){0};
    int64_t inserted = axis + 1;
    wide.rank = shape.rank + 1;
    for (uint32_t i = shape.rank; i > axis + 1; i--) wide.dims[i] = shape.dims[i - 1];
    wide.dims[axis + 1] = times;
    shape.dims[axis] = dim_mul(b, shape.dims[axis], times);
    return uir_network_reshape(b, uir_network_broadcast(b, uir_build_unsqueeze(b, x, &inserted, 1), &wide), &shape);
}

uir_value_id uir_network_as_scalar(uir_rule_context *context, uir_value_id value, const char *name) {
    if (is_none(value)) return value;
    uir_shape shape = uir_network_shape_between(context, value, name, 0, 1);
    return shape.rank == 0 ? value : uir_build_reshape(&context->builder, value, NULL, 0);
}

uir_value_id uir_network_range(uir_builder *b, uir_dtype dtype, uir_dim extent) {
    /* Counted in i64 and cast, so that long ranges of narrow floats are exact as far as the dtype goes. */
    return uir_build_cast(b, uir_build_iota(b, UIR_DTYPE_I64, &extent, 1, 0), dtype);
}

/* ---- arithmetic ---- */

uir_value_id uir_network_mean(uir_rule_context *context, uir_value_id x, const int64_t *axes, uint32_t count) {
    uir_builder *b = &context->builder;
    uir_shape shape = uir_network_shape(context, x);
    uir_dim product = dim_int(b, 1);
    for (uint32_t i = 0; i < count && shape.rank > 0; i++) product = dim_mul(b, product, shape.dims[axes[i]]);
    return divide(b, reduce_sum(b, x, axes, count), uir_network_dim_value(b, product, dtype_of(b, x)));
}

void uir_network_moments(uir_rule_context *context, uir_value_id x, const int64_t *axes, uint32_t count,
                         uir_value_id *out_difference, uir_value_id *out_mean, uir_value_id *out_variance) {
    uir_builder *b = &context->builder;
    uir_value_id mean = uir_network_mean(context, x, axes, count);
    uir_value_id difference = subtract(b, x, mean);
    *out_variance = uir_network_mean(context, square(b, difference), axes, count);
    *out_difference = difference;
    if (out_mean) *out_mean = mean;
}

uir_value_id uir_network_softmax(uir_builder *b, uir_value_id x, const int64_t *axes, uint32_t count) {
    uir_value_id e = exponential(b, subtract(b, x, reduce_max(b, x, axes, count)));
    return divide(b, e, reduce_sum(b, e, axes, count));
}

uir_value_id uir_network_log_softmax(uir_builder *b, uir_value_id x, const int64_t *axes, uint32_t count) {
    uir_value_id shifted = subtract(b, x, reduce_max(b, x, axes, count));
    return subtract(b, shifted, logarithm(b, reduce_sum(b, exponential(b, shifted), axes, count)));
}

uir_value_id uir_network_reciprocal(uir_builder *b, uir_value_id x) {
    return divide(b, scalar_like(b, x, 1.0), x);
}

uir_value_id uir_network_clamp(uir_builder *b, uir_value_id x, double low, double high) {
    return minimum(b, maximum(b, x, scalar_like(b, x, low)), scalar_like(b, x, high));
}

/* ---- constants and attributes ---- */

bool uir_network_constant_number(uir_rule_context *context, uir_value_id value, uint64_t index, double *out_value) {
    if (is_none(value) || context->builder.status != UIR_STATUS_OK) return false;
    const uir_tensor *tensor = uir_rule_constant(context, value);
    if (!tensor || index >= tensor->element_count) return false;
    if (uir_dtype_is_float(tensor->dtype))
        *out_value = uir_dtype_load_double(tensor->dtype, tensor->data, index);
    else if (uir_dtype_is_integer(tensor->dtype))
        *out_value = (double)uir_dtype_load_integer(tensor->dtype, tensor->data, index);
    else
        return false;
    return true;
}

bool uir_network_is_zero(uir_rule_context *context, uir_value_id value) {
    if (is_none(value) || context->builder.status != UIR_STATUS_OK) return false;
    const uir_tensor *tensor = uir_rule_constant(context, value);
    if (!tensor || tensor->dtype == UIR_DTYPE_STRING) return false;
    const unsigned char *bytes = tensor->data;
    for (size_t i = 0; i < tensor->byte_size; i++)
        if (bytes[i] != 0) return false;
    return true;
}

uir_dtype uir_network_dtype_attribute(uir_rule_context *context, const char *name, uir_dtype fallback) {
    /* Kept by the loader as ONNX's number, which is the enum's. */
    const uir_attribute *attribute = uir_node_find_attribute(context->source, context->node, name);
    if (!attribute) return fallback;
    int64_t number = attribute->kind == UIR_ATTRIBUTE_DTYPE ? (int64_t)attribute->value.dtype
                     : attribute->kind == UIR_ATTRIBUTE_INT ? attribute->value.integer
                                                            : -1;
    if (number == 0) return fallback;
    if (number < 0 || number >= UIR_DTYPE_COUNT || !uir_dtype_is_valid((int)number)) {
        (void)uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "attribute %s is not an element type of ONNX",
                               name);
        return UIR_DTYPE_NONE;
    }
    return (uir_dtype)number;
}

const char *uir_network_string_at(const uir_rule_context *context, const char *name, uint32_t index) {
    const uir_attribute *attribute = uir_node_find_attribute(context->source, context->node, name);
    if (!attribute || attribute->kind != UIR_ATTRIBUTE_STRINGS || index >= attribute->count) return NULL;
    return uir_string_text(&context->source->strings, attribute->value.strings[index]);
}

bool uir_network_float_at(const uir_rule_context *context, const char *name, uint32_t index, double *out_value) {
    const uir_attribute *attribute = uir_node_find_attribute(context->source, context->node, name);
    if (!attribute || attribute->kind != UIR_ATTRIBUTE_FLOATS || index >= attribute->count) return false;
    *out_value = attribute->value.reals[index];
    return true;
}

uint32_t uir_network_choice(uir_rule_context *context, const char *name, const char *fallback,
                            const char *const *choices) {
    const char *text = uir_rule_string(context, name, fallback);
    for (uint32_t i = 0; choices[i]; i++)
        if (strcmp(choices[i], text) == 0) return i;
    (void)uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "attribute %s is '%s', which is unknown to the op",
                           name, text);
    return 0;
}

const uir_dim *uir_network_input_dims(uir_rule_context *context, uir_value_id value, const char *name, uint32_t count) {
    uint32_t found = 0;
    const uir_dim *dims = uir_rule_dims(context, value, 0, &found);
    if (context->builder.status != UIR_STATUS_OK) return NULL;
    if (found != count) {
        (void)uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "input %s has %u elements; %u are required",
                               name, found, count);
        return NULL;
    }
    return dims;
}

bool uir_network_int_list(uir_rule_context *context, const char *name, uint32_t count, int64_t least, int64_t fallback,
                          int64_t *out_values) {
    const int64_t *values = NULL;
    int64_t found = uir_rule_ints(context, name, &values);
    for (uint32_t i = 0; i < count; i++) out_values[i] = fallback;
    if (found <= 0) return context->builder.status == UIR_STATUS_OK;
    if (found != count) {
        (void)uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE,
                               "attribute %s has %lld elements; the input's shape requires %u", name, (long long)found,
                               count);
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (values[i] < least || values[i] > INT32_MAX) {
            (void)uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE,
                                   "attribute %s holds %lld; values from %lld to %d are allowed", name,
                                   (long long)values[i], (long long)least, INT32_MAX);
            return false;
        }
        out_values[i] = values[i];
    }
    return context->builder.status == UIR_STATUS_OK;
}

/* ---- bodies of loops ---- */

bool uir_network_body(uir_builder *b, const char *name, uir_builder *out_body) {
    if (b->status != UIR_STATUS_OK) return false;
    uir_graph_id graph;
    uir_status status = uir_module_add_graph(b->module, b->graph, name, &graph);
    if (status != UIR_STATUS_OK) {
        (void)uir_builder_fail(b, status, "a loop's body cannot be allocated");
        return false;
    }
    uir_builder_init(out_body, b->module, graph);
    out_body->node_name = b->node_name;
    out_body->origin = b->origin;
    out_body->source = b->source;
    return true;
}

static uir_value_id network_body_input(uir_builder *body, uir_dtype dtype, const uir_shape *shape) {
    uir_value_id value = {0};
    if (body->status != UIR_STATUS_OK) return value;
    uir_type type = {UIR_VALUE_TENSOR, dtype, true, shape->rank, shape->dims};
    uir_status status = uir_module_add_value(body->module, "", type, &value);
    if (status == UIR_STATUS_OK) status = uir_graph_add_input(body->module, body->graph, value);
    if (status != UIR_STATUS_OK) (void)uir_builder_fail(body, status, "a loop's body cannot be allocated");
    return value;
}

void uir_network_body_output(uir_builder *body, uir_value_id value) {
    if (body->status != UIR_STATUS_OK) return;
    uir_status status = uir_graph_add_output(body->module, body->graph, value);
    if (status != UIR_STATUS_OK) (void)uir_builder_fail(body, status, "a loop's body cannot be allocated");
}

/* Gives a value whose inferred dims are fresh symbols the dims that the caller knows. */
static void network_refine(uir_builder *b, uir_value_id value, const uir_shape *shape) {
    if (b->status != UIR_STATUS_OK) return;
    uir_dim *dims = uir_arena_allocate_array(&b->module->arena, shape->rank + 1, sizeof *dims);
    if (!dims) {
        (void)uir_builder_fail(b, UIR_STATUS_OUT_OF_MEMORY, "a type cannot be allocated");
        return;
    }
    memcpy(dims, shape->dims, shape->rank * sizeof *dims);
    uir_type *type = &uir_value_info_get(b->module, value)->type;
    type->rank_known = true;
    type->rank = shape->rank;
    type->dims = dims;
}

static void shape_of_value(const uir_builder *b, uir_value_id value, uir_shape *out_shape) {
    const uir_type *type = uir_value_type(b->module, value);
    out_shape->rank = type->rank;
    if (type->rank > 0) memcpy(out_shape->dims, type->dims, type->rank * sizeof out_shape->dims[0]);
}

bool uir_network_loop_begin(uir_builder *b, const uir_value_id *initial, uint32_t count, uir_loop *out_loop) {
    if (!uir_network_body(b, "step", &out_loop->body)) return false;
    const uir_shape nothing = {0};
    out_loop->iteration = network_body_input(&out_loop->body, UIR_DTYPE_I64, &nothing);
    uir_value_id condition = network_body_input(&out_loop->body, UIR_DTYPE_BOOL, &nothing);
    uir_network_body_output(&out_loop->body, condition);
    out_loop->carried_count = count;
    for (uint32_t i = 0; i < count; i++) {
        uir_shape shape = {0};
        shape_of_value(b, initial[i], &shape);
        out_loop->carried[i] = network_body_input(&out_loop->body, dtype_of(b, initial[i]), &shape);
    }
    return true;
}

void uir_network_loop_end(uir_builder *b, uir_loop *loop, uir_dim trips, const uir_value_id *initial,
                          const uir_value_id *next, const uir_value_id *scanned, uint32_t scanned_count,
                          uir_value_id *out_outputs) {
    uint32_t count = loop->carried_count;
    uir_value_id inputs[2 + 8] = {0}, outputs[8 + 8] = {0};
    for (uint32_t i = 0; i < count; i++) {
        /* A carried value keeps its type: where inference cannot prove that, the run checks it. */
        uir_shape shape = {0};
        shape_of_value(b, initial[i], &shape);
        uir_network_body_output(&loop->body, uir_network_broadcast(&loop->body, next[i], &shape));
        inputs[2 + i] = initial[i];
    }
    for (uint32_t i = 0; i < scanned_count; i++) uir_network_body_output(&loop->body, scanned[i]);
    if (loop->body.status != UIR_STATUS_OK && b->status == UIR_STATUS_OK) b->status = loop->body.status;
    inputs[0] = uir_network_dim_value(b, trips, UIR_DTYPE_I64);
    uir_attribute body = uir_attribute_graph(b, "body", loop->body.graph);
    uir_build_node(b, UIR_OP_LOOP, inputs, 2 + count, &body, 1, outputs, count + scanned_count);
    for (uint32_t i = 0; i < count + scanned_count && b->status == UIR_STATUS_OK; i++) {
        uir_shape shape = {0};
        if (i < count) {
            shape_of_value(b, initial[i], &shape);
        } else {
            uir_shape step = {0};
            shape_of_value(b, scanned[i - count], &step);
            shape.rank = step.rank + 1;
            shape.dims[0] = trips;
            memcpy(shape.dims + 1, step.dims, step.rank * sizeof step.dims[0]);
        }
        network_refine(b, outputs[i], &shape);
    }
    memcpy(out_outputs, outputs, (count + scanned_count) * sizeof *outputs);
}
