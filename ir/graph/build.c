/* Building primitives: nodes, attributes, constants, dims. build_ops.c has the ops themselves. */
#include "ir/graph/build.h"
#include "ir/graph/infer/infer.h"
#include <stdio.h>
#include <string.h>

void uir_builder_init(uir_builder *builder, uir_module *module, uir_graph_id graph) {
    *builder = (uir_builder){.module = module, .graph = graph, .status = UIR_STATUS_OK};
}

void uir_builder_stand_for(uir_builder *builder, const uir_node_info *node) {
    builder->node_name = node->name;
    builder->origin = node->origin;
    builder->source = node->source;
}

static uir_location location_of(const uir_builder *builder) {
    const char *name = uir_string_text(&builder->module->strings, builder->node_name);
    return (uir_location){.node = *name ? name : NULL,
                          .op = builder->origin != UIR_OP_NONE ? uir_op_name(builder->origin) : NULL};
}

uir_status uir_builder_fail(uir_builder *builder, uir_status status, const char *format, ...) {
    if (builder->status != UIR_STATUS_OK) return builder->status;
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    uir_location location = location_of(builder);
    builder->status = uir_error(builder->module->diagnostics, status, &location, "%s", message);
    return builder->status;
}

/* Keeps the first failure. */
static bool check(uir_builder *builder, uir_status status) {
    if (builder->status == UIR_STATUS_OK) builder->status = status;
    return builder->status == UIR_STATUS_OK;
}

/* Makes the output values of a node whose types are inferred: a none dim becomes a fresh symbol. */
static uir_status make_outputs(uir_module *module, uir_type *types, uint32_t count, uir_value_id *outputs) {
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t d = 0; types[i].rank_known && d < types[i].rank; d++) {
            uir_dim *dim = (uir_dim *)&types[i].dims[d]; /* inference made the array for us */
            if (dim->id) continue;
            char name[32];
            int length = snprintf(name, sizeof name, "d%u", uir_dims_symbol_count(module->dims));
            uir_symbol symbol;
            UIR_TRY(uir_dims_add_symbol(module->dims, name, (size_t)length, UIR_SYMBOL_FACTS_SIZE, &symbol));
            *dim = uir_dim_symbol(module->dims, symbol);
            if (!dim->id) return UIR_STATUS_OUT_OF_MEMORY;
        }
        UIR_TRY(uir_module_add_value(module, "", types[i], &outputs[i]));
    }
    return UIR_STATUS_OK;
}

static uir_status add_node(uir_builder *builder, uir_node_info *node, uir_value_id *outputs, uir_type *types) {
    uir_module *module = builder->module;
    uir_location location = location_of(builder);
    UIR_TRY(uir_infer_node(module, &module->arena, module->diagnostics, &location, node, types));
    UIR_TRY(make_outputs(module, types, node->output_count, outputs));
    uir_node_id id;
    UIR_TRY(uir_graph_add_node(module, builder->graph, node, &id));
    return uir_infer_elements(module, id);
}

void uir_build_node(uir_builder *builder, uir_op op, const uir_value_id *inputs, uint32_t input_count,
                    const uir_attribute *attributes, uint32_t attribute_count, uir_value_id *out_outputs,
                    uint32_t output_count) {
    for (uint32_t i = 0; i < output_count; i++) out_outputs[i].id = 0;
    if (builder->status != UIR_STATUS_OK) return;
    uir_type *types = uir_arena_allocate_array(&builder->module->arena, output_count + 1, sizeof *types);
    if (!types) {
        builder->status = UIR_STATUS_OUT_OF_MEMORY;
        return;
    }
    uir_node_info node = {
        .op = op,
        .name = builder->node_name,
        .origin = builder->origin,
        .source = builder->source,
        .inputs = inputs,
        .input_count = input_count,
        .outputs = out_outputs,
        .output_count = output_count,
        .attributes = attributes,
        .attribute_count = attribute_count,
    };
    if (!check(builder, add_node(builder, &node, out_outputs, types)))
        for (uint32_t i = 0; i < output_count; i++) out_outputs[i].id = 0;
}

/* ---- attributes ---- */

static uir_attribute make_attribute(uir_builder *builder, const char *name, uir_attribute_kind kind) {
    uir_attribute attribute = {.kind = kind};
    check(builder, uir_strings_intern(&builder->module->strings, name, strlen(name), &attribute.name));
    return attribute;
}

uir_attribute uir_attribute_int(uir_builder *builder, const char *name, int64_t value) {
    uir_attribute attribute = make_attribute(builder, name, UIR_ATTRIBUTE_INT);
    attribute.value.integer = value;
    return attribute;
}

uir_attribute uir_attribute_ints(uir_builder *builder, const char *name, const int64_t *values, uint32_t count) {
    uir_attribute attribute = make_attribute(builder, name, UIR_ATTRIBUTE_INTS);
    attribute.value.integers = values;
    attribute.count = count;
    return attribute;
}

uir_attribute uir_attribute_float(uir_builder *builder, const char *name, double value) {
    uir_attribute attribute = make_attribute(builder, name, UIR_ATTRIBUTE_FLOAT);
    attribute.value.real = value;
    return attribute;
}

uir_attribute uir_attribute_string(uir_builder *builder, const char *name, const char *value) {
    uir_attribute attribute = make_attribute(builder, name, UIR_ATTRIBUTE_STRING);
    check(builder, uir_strings_intern(&builder->module->strings, value, strlen(value), &attribute.value.string));
    return attribute;
}

uir_attribute uir_attribute_dims(uir_builder *builder, const char *name, const uir_dim *values, uint32_t count) {
    uir_attribute attribute = make_attribute(builder, name, UIR_ATTRIBUTE_DIMS);
    attribute.value.dims = values;
    attribute.count = count;
    for (uint32_t i = 0; i < count; i++)
        if (!values[i].id) uir_builder_fail(builder, UIR_STATUS_BAD_FILE, "a dim overflows 64 bits (%s)", name);
    return attribute;
}

uir_attribute uir_attribute_dtype(uir_builder *builder, const char *name, uir_dtype value) {
    uir_attribute attribute = make_attribute(builder, name, UIR_ATTRIBUTE_DTYPE);
    attribute.value.dtype = value;
    return attribute;
}

uir_attribute uir_attribute_graph(uir_builder *builder, const char *name, uir_graph_id value) {
    uir_attribute attribute = make_attribute(builder, name, UIR_ATTRIBUTE_GRAPH);
    attribute.value.graph = value;
    return attribute;
}

/* ---- constants ---- */

uir_value_id uir_build_constant(uir_builder *builder, uir_tensor *tensor) {
    uir_value_id value = {0};
    if (builder->status == UIR_STATUS_OK) check(builder, uir_module_add_constant(builder->module, "", tensor, &value));
    if (builder->status == UIR_STATUS_OK) return value;
    uir_tensor_release(tensor);
    return (uir_value_id){0};
}

static uir_tensor *make_tensor(uir_builder *builder, uir_dtype dtype, uint32_t rank, int64_t count) {
    uir_tensor *tensor = NULL;
    if (builder->status == UIR_STATUS_OK && !uir_dtype_is_float(dtype) && !uir_dtype_is_integer(dtype) &&
        dtype != UIR_DTYPE_BOOL)
        uir_builder_fail(builder, UIR_STATUS_UNSUPPORTED, "element type %s is not numeric", uir_dtype_name(dtype));
    if (builder->status != UIR_STATUS_OK ||
        !check(builder, uir_tensor_create(builder->module->allocator, dtype, rank, &count, &tensor)))
        return NULL;
    return tensor;
}

uir_value_id uir_build_scalar(uir_builder *builder, uir_dtype dtype, double value) {
    uir_tensor *tensor = make_tensor(builder, dtype, 0, 1);
    if (!tensor) return (uir_value_id){0};
    uir_dtype_store_double(dtype, tensor->data, 0, value, UIR_ROUND_NEAREST_EVEN);
    return uir_build_constant(builder, tensor);
}

uir_value_id uir_build_integer_scalar(uir_builder *builder, uir_dtype dtype, int64_t value) {
    uir_tensor *tensor = make_tensor(builder, dtype, 0, 1);
    if (!tensor) return (uir_value_id){0};
    uir_dtype_store_integer(dtype, tensor->data, 0, value, false, UIR_ROUND_NEAREST_EVEN);
    return uir_build_constant(builder, tensor);
}

uir_value_id uir_build_integers(uir_builder *builder, uir_dtype dtype, const int64_t *values, uint32_t count) {
    uir_tensor *tensor = make_tensor(builder, dtype, 1, count);
    if (!tensor) return (uir_value_id){0};
    for (uint32_t i = 0; i < count; i++)
        uir_dtype_store_integer(dtype, tensor->data, i, values[i], false, UIR_ROUND_NEAREST_EVEN);
    return uir_build_constant(builder, tensor);
}

uir_tensor *uir_build_constant_of(uir_builder *builder, uir_value_id a) {
    return a.id ? uir_value_info_get(builder->module, a)->constant : NULL;
}

/* ---- dims and values ---- */

uir_dim uir_build_extent(uir_builder *builder, uir_value_id a, uint32_t axis) {
    if (builder->status != UIR_STATUS_OK) return UIR_DIM_NONE;
    const uir_type *type = uir_value_type(builder->module, a);
    if (!type->rank_known || axis >= type->rank) {
        uir_builder_fail(builder, UIR_STATUS_BAD_FILE, "a tensor of rank %u has no axis %u", type->rank, axis);
        return UIR_DIM_NONE;
    }
    return type->dims[axis];
}

uir_value_id uir_build_dim_values(uir_builder *builder, const uir_dim *dims, uint32_t count, bool scalar,
                                  uir_dtype dtype) {
    uir_attribute attributes[] = {uir_attribute_dims(builder, "dims", dims, count),
                                  uir_attribute_int(builder, "scalar", scalar),
                                  uir_attribute_dtype(builder, "dtype", dtype)};
    uir_value_id result = {0};
    uir_build_node(builder, UIR_OP_DIM_VALUES, NULL, 0, attributes, 3, &result, 1);
    return result;
}

/* Elements known as symbols that were bound with weaker facts than `min` do not serve. */
static bool elements_serve(uir_builder *builder, const uir_value_info *value, int64_t min) {
    if (!value->elements_known) return false;
    for (uint32_t i = 0; i < value->element_count; i++) {
        uir_symbol symbol;
        if (uir_dim_is_symbol(builder->module->dims, value->elements[i], &symbol) &&
            uir_dims_symbol_facts(builder->module->dims, symbol).min < min)
            return false;
    }
    return true;
}

/* Whether the value is made in the graph that is being built (and not in one around it). */
static bool is_local(const uir_builder *builder, uir_value_id a) {
    const uir_value_info *value = uir_value_info_get(builder->module, a);
    if (value->producer.id) return uir_node_get(builder->module, value->producer)->graph.id == builder->graph.id;
    const uir_graph_info *graph = uir_graph_get(builder->module, builder->graph);
    for (uint32_t i = 0; i < graph->inputs.count; i++)
        if (graph->inputs.data[i].id == a.id) return true;
    return false;
}

const uir_dim *uir_build_value_as_dims(uir_builder *builder, uir_value_id a, int64_t min, uint32_t *out_count) {
    *out_count = 0;
    if (builder->status != UIR_STATUS_OK) return NULL;
    uir_module *module = builder->module;
    const uir_value_info *value = uir_value_info_get(module, a);
    const uir_type *type = &value->type;
    if (elements_serve(builder, value, min)) {
        *out_count = value->element_count;
        return value->elements;
    }
    int64_t count = 1;
    if (!type->rank_known || type->rank > 1 || !uir_dtype_is_integer(type->dtype)) {
        uir_builder_fail(builder, UIR_STATUS_BAD_FILE, "sizes must be an integer tensor of rank 0 or 1");
        return NULL;
    }
    if (type->rank && (!uir_dim_is_const(module->dims, type->dims[0], &count) || count > UINT16_MAX)) {
        uir_builder_fail(builder, UIR_STATUS_UNSUPPORTED,
                         "the number of sizes is only known at run time; declare the list's length");
        return NULL;
    }
    uir_dim *dims = uir_arena_allocate_array(&module->arena, (size_t)count + 1, sizeof *dims);
    if (!dims) check(builder, UIR_STATUS_OUT_OF_MEMORY);
    uir_symbol_facts facts = UIR_SYMBOL_FACTS_SIZE;
    facts.min = min;
    for (int64_t i = 0; i < count && builder->status == UIR_STATUS_OK; i++) {
        char name[32];
        int length = snprintf(name, sizeof name, "r%u", uir_dims_symbol_count(module->dims));
        uir_symbol symbol;
        if (!check(builder, uir_dims_add_symbol(module->dims, name, (size_t)length, facts, &symbol))) break;
        dims[i] = uir_dim_symbol(module->dims, symbol);
        if (!dims[i].id) check(builder, UIR_STATUS_OUT_OF_MEMORY);
    }
    if (builder->status != UIR_STATUS_OK) return NULL;
    uir_attribute attribute = uir_attribute_dims(builder, "dims", dims, (uint32_t)count);
    uir_build_node(builder, UIR_OP_BIND_DIMS, &a, 1, &attribute, 1, NULL, 0);
    if (builder->status != UIR_STATUS_OK) return NULL;
    uir_value_info *bound = uir_value_info_get(module, a);
    if (!bound->elements_known && is_local(builder, a)) {
        bound->elements = dims;
        bound->element_count = (uint32_t)count;
        bound->elements_known = true;
    }
    *out_count = (uint32_t)count;
    return dims;
}
