/* Modules: creating, adding to, looking up attributes. */
#include "ir/graph/graph.h"
#include <string.h>

uir_status uir_module_create(const uir_allocator *allocator, uir_diagnostics *diagnostics, uir_module **out_module) {
    uir_module *module;
    UIR_TRY_ALLOCATE(module, uir_allocate_zeroed(allocator, sizeof *module));
    uir_arena_init(&module->arena, allocator);
    module->allocator = &module->arena.allocator;
    module->diagnostics = diagnostics;
    uir_status status = uir_dims_create(allocator, &module->dims);
    if (status == UIR_STATUS_OK) status = uir_strings_init(&module->strings, &module->arena);
    /* Handle 0 is none. */
    if (status == UIR_STATUS_OK) status = uir_vector_push(&module->arena, &module->graphs, (uir_graph_info){0});
    if (status == UIR_STATUS_OK) status = uir_vector_push(&module->arena, &module->nodes, (uir_node_info){0});
    if (status == UIR_STATUS_OK) status = uir_vector_push(&module->arena, &module->values, (uir_value_info){0});
    if (status != UIR_STATUS_OK) {
        uir_module_destroy(module);
        return status;
    }
    *out_module = module;
    return UIR_STATUS_OK;
}

void uir_module_destroy(uir_module *module) {
    if (!module) return;
    for (uint32_t i = 1; i < module->values.count; i++) uir_tensor_release(module->values.data[i].constant);
    for (uint32_t i = 1; i < module->nodes.count; i++) {
        const uir_node_info *node = &module->nodes.data[i];
        for (uint32_t a = 0; a < node->attribute_count; a++)
            if (node->attributes[a].kind == UIR_ATTRIBUTE_TENSOR) uir_tensor_release(node->attributes[a].value.tensor);
    }
    if (module->release_storage) module->release_storage(module->storage);
    if (module->dims) uir_dims_destroy(module->dims);
    uir_allocator allocator = module->arena.allocator;
    uir_arena_deinit(&module->arena);
    uir_release(&allocator, module, sizeof *module);
}

/* An array copied into the module's arena; NULL is fine for none. */
static uir_status copy_array(uir_module *module, const void *data, uint32_t count, size_t element_size,
                             const void **out_copy) {
    *out_copy = NULL;
    if (!count) return UIR_STATUS_OK;
    void *copy;
    UIR_TRY_ALLOCATE(copy, uir_arena_allocate_array(&module->arena, count, element_size));
    memcpy(copy, data, count * element_size);
    *out_copy = copy;
    return UIR_STATUS_OK;
}

uir_status uir_module_add_graph(uir_module *module, uir_graph_id parent, const char *name, uir_graph_id *out_graph) {
    uir_graph_info graph = {.parent = parent};
    UIR_TRY(uir_strings_intern(&module->strings, name, strlen(name), &graph.name));
    UIR_TRY(uir_vector_push(&module->arena, &module->graphs, graph));
    out_graph->id = module->graphs.count - 1;
    return UIR_STATUS_OK;
}

uir_status uir_module_add_value(uir_module *module, const char *name, uir_type type, uir_value_id *out_value) {
    uir_value_info value = {.type = type};
    UIR_TRY(uir_strings_intern(&module->strings, name, strlen(name), &value.name));
    const void *dims;
    UIR_TRY(copy_array(module, type.dims, type.rank_known ? type.rank : 0, sizeof(uir_dim), &dims));
    value.type.dims = dims;
    UIR_TRY(uir_vector_push(&module->arena, &module->values, value));
    out_value->id = module->values.count - 1;
    return UIR_STATUS_OK;
}

/* Integer constants of rank 0 or 1 up to this many elements know their contents as dims. */
enum { MAX_CONSTANT_ELEMENTS = 256 };

static uir_status set_constant_elements(uir_module *module, uir_value_info *value) {
    const uir_tensor *tensor = value->constant;
    bool integer = uir_dtype_is_integer(tensor->dtype) || tensor->dtype == UIR_DTYPE_BOOL;
    if (!integer || tensor->rank > 1 || tensor->element_count > MAX_CONSTANT_ELEMENTS) return UIR_STATUS_OK;
    uint32_t count = (uint32_t)tensor->element_count;
    uir_dim *elements;
    UIR_TRY_ALLOCATE(elements, uir_arena_allocate_array(&module->arena, count + 1, sizeof *elements));
    for (uint32_t i = 0; i < count; i++) {
        int64_t element = uir_dtype_load_integer(tensor->dtype, tensor->data, i);
        if (tensor->dtype == UIR_DTYPE_U64 && element < 0) return UIR_STATUS_OK; /* no dim holds it */
        elements[i] = uir_dim_const(module->dims, element);
        if (!elements[i].id) return UIR_STATUS_OUT_OF_MEMORY;
    }
    value->elements = elements;
    value->element_count = count;
    value->elements_known = true;
    return UIR_STATUS_OK;
}

uir_status uir_module_add_constant(uir_module *module, const char *name, uir_tensor *tensor, uir_value_id *out_value) {
    uir_dim dims[UIR_MAX_RANK];
    for (uint32_t i = 0; i < tensor->rank; i++) {
        dims[i] = uir_dim_const(module->dims, tensor->shape[i]);
        if (!dims[i].id) return UIR_STATUS_OUT_OF_MEMORY;
    }
    uir_type type = {UIR_VALUE_TENSOR, tensor->dtype, true, tensor->rank, dims};
    UIR_TRY(uir_module_add_value(module, name, type, out_value));
    uir_value_info *value = uir_value_info_get(module, *out_value);
    value->constant = tensor;
    uir_status status = set_constant_elements(module, value);
    if (status != UIR_STATUS_OK) value->constant = NULL; /* the caller keeps its reference */
    return status;
}

uir_status uir_module_set_layout(uir_module *module, uir_value_id value, const uir_layout *layout) {
    uir_value_info *info = uir_value_info_get(module, value);
    uir_layout *copy;
    info->layout = NULL;
    if (!layout || !layout->given) return UIR_STATUS_OK;
    UIR_TRY_ALLOCATE(copy, uir_arena_copy(&module->arena, layout, sizeof *layout));
    if (!info->type.rank_known || info->type.rank > UIR_LAYOUT_MAX_RANK ||
        !uir_layout_finish(copy, info->type.dims, info->type.rank, module->dims).id)
        return UIR_STATUS_INVALID_ARGUMENT;
    info->layout = copy;
    return UIR_STATUS_OK;
}

uir_status uir_graph_add_input(uir_module *module, uir_graph_id graph, uir_value_id value) {
    return uir_vector_push(&module->arena, &uir_graph_get(module, graph)->inputs, value);
}

uir_status uir_graph_add_output(uir_module *module, uir_graph_id graph, uir_value_id value) {
    return uir_vector_push(&module->arena, &uir_graph_get(module, graph)->outputs, value);
}

uir_status uir_module_copy_attribute(uir_module *module, uir_attribute *attribute) {
    const void *copy;
    switch (attribute->kind) {
    case UIR_ATTRIBUTE_INTS:
        UIR_TRY(copy_array(module, attribute->value.integers, attribute->count, sizeof(int64_t), &copy));
        attribute->value.integers = copy;
        return UIR_STATUS_OK;
    case UIR_ATTRIBUTE_FLOATS:
        UIR_TRY(copy_array(module, attribute->value.reals, attribute->count, sizeof(double), &copy));
        attribute->value.reals = copy;
        return UIR_STATUS_OK;
    case UIR_ATTRIBUTE_STRINGS:
        UIR_TRY(copy_array(module, attribute->value.strings, attribute->count, sizeof(uir_string), &copy));
        attribute->value.strings = copy;
        return UIR_STATUS_OK;
    case UIR_ATTRIBUTE_DIMS:
        UIR_TRY(copy_array(module, attribute->value.dims, attribute->count, sizeof(uir_dim), &copy));
        attribute->value.dims = copy;
        return UIR_STATUS_OK;
    default:
        return UIR_STATUS_OK;
    }
}

uir_status uir_graph_add_node(uir_module *module, uir_graph_id graph, const uir_node_info *node,
                              uir_node_id *out_node) {
    uir_node_info info = *node;
    const void *copy;
    info.graph = graph;
    UIR_TRY(copy_array(module, node->inputs, node->input_count, sizeof(uir_value_id), &copy));
    info.inputs = copy;
    UIR_TRY(copy_array(module, node->outputs, node->output_count, sizeof(uir_value_id), &copy));
    info.outputs = copy;
    uir_attribute *attributes = NULL;
    if (node->attribute_count) {
        UIR_TRY_ALLOCATE(attributes,
                         uir_arena_allocate_array(&module->arena, node->attribute_count, sizeof *attributes));
        memcpy(attributes, node->attributes, node->attribute_count * sizeof *attributes);
        for (uint32_t i = 0; i < node->attribute_count; i++) UIR_TRY(uir_module_copy_attribute(module, &attributes[i]));
    }
    info.attributes = attributes;
    UIR_TRY(uir_vector_reserve(&module->arena, &module->nodes, 1));
    UIR_TRY(uir_vector_push(&module->arena, &uir_graph_get(module, graph)->nodes, (uir_node_id){module->nodes.count}));
    UIR_TRY(uir_vector_push(&module->arena, &module->nodes, info));
    out_node->id = module->nodes.count - 1;
    for (uint32_t i = 0; i < info.output_count; i++) {
        if (!info.outputs[i].id) continue;
        uir_value_info *output = uir_value_info_get(module, info.outputs[i]);
        output->producer = *out_node;
        output->output_index = i;
    }
    return UIR_STATUS_OK;
}

uir_status uir_node_set_attribute(uir_module *module, uir_node_id node_id, const char *name,
                                  const uir_attribute *attribute) {
    uir_attribute made = *attribute, *attributes;
    uir_node_info *node = uir_node_get(module, node_id);
    UIR_TRY(uir_strings_intern(&module->strings, name, strlen(name), &made.name));
    UIR_TRY(uir_module_copy_attribute(module, &made));
    UIR_TRY_ALLOCATE(attributes,
                     uir_arena_allocate_array(&module->arena, node->attribute_count + 1, sizeof *attributes));
    uint32_t count = 0;
    bool replaced = false;
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        bool same = node->attributes[i].name.id == made.name.id;
        attributes[count++] = same ? made : node->attributes[i];
        replaced |= same;
    }
    if (!replaced) attributes[count++] = made;
    node->attributes = attributes;
    node->attribute_count = count;
    return UIR_STATUS_OK;
}

void uir_node_remove_attribute(uir_module *module, uir_node_id node_id, const char *name) {
    uir_node_info *node = uir_node_get(module, node_id);
    uir_attribute *attributes = (uir_attribute *)node->attributes; /* made by the module */
    uint32_t count = 0;
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (strcmp(uir_string_text(&module->strings, attributes[i].name), name) != 0)
            attributes[count++] = attributes[i];
    node->attribute_count = count;
}

const uir_attribute *uir_node_find_attribute(const uir_module *module, const uir_node_info *node, const char *name) {
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (!strcmp(uir_string_text(&module->strings, node->attributes[i].name), name)) return &node->attributes[i];
    return NULL;
}

static const uir_attribute *find_kind(const uir_module *module, const uir_node_info *node, const char *name,
                                      uir_attribute_kind kind) {
    const uir_attribute *attribute = uir_node_find_attribute(module, node, name);
    return attribute && attribute->kind == kind ? attribute : NULL;
}

int64_t uir_node_int(const uir_module *module, const uir_node_info *node, const char *name, int64_t fallback) {
    const uir_attribute *attribute = find_kind(module, node, name, UIR_ATTRIBUTE_INT);
    return attribute ? attribute->value.integer : fallback;
}

double uir_node_float(const uir_module *module, const uir_node_info *node, const char *name, double fallback) {
    const uir_attribute *attribute = find_kind(module, node, name, UIR_ATTRIBUTE_FLOAT);
    return attribute ? attribute->value.real : fallback;
}

const char *uir_node_string(const uir_module *module, const uir_node_info *node, const char *name,
                            const char *fallback) {
    const uir_attribute *attribute = find_kind(module, node, name, UIR_ATTRIBUTE_STRING);
    return attribute ? uir_string_text(&module->strings, attribute->value.string) : fallback;
}

const uir_dim *uir_node_dims(const uir_module *module, const uir_node_info *node, const char *name,
                             uint32_t *out_count) {
    const uir_attribute *attribute = find_kind(module, node, name, UIR_ATTRIBUTE_DIMS);
    *out_count = attribute ? attribute->count : 0;
    return attribute ? attribute->value.dims : NULL;
}

const int64_t *uir_node_ints(const uir_module *module, const uir_node_info *node, const char *name,
                             uint32_t *out_count) {
    const uir_attribute *attribute = find_kind(module, node, name, UIR_ATTRIBUTE_INTS);
    *out_count = attribute ? attribute->count : 0;
    return attribute ? attribute->value.integers : NULL;
}

uir_dtype uir_node_dtype(const uir_module *module, const uir_node_info *node, const char *name, uir_dtype fallback) {
    const uir_attribute *attribute = find_kind(module, node, name, UIR_ATTRIBUTE_DTYPE);
    return attribute ? attribute->value.dtype : fallback;
}

bool uir_dim_is_symbol(const uir_dims *dims, uir_dim dim, uir_symbol *out_symbol) {
    if (!dim.id) return false;
    const uir_dim_node *node = uir_dim_get(dims, dim);
    if (node->kind != UIR_DIM_SYMBOL) return false;
    if (out_symbol) out_symbol->id = (uint32_t)node->value;
    return true;
}

uir_location uir_node_location(const uir_module *module, const uir_node_info *node) {
    uir_op shown = node->origin != UIR_OP_NONE ? node->origin : node->op;
    const char *name = uir_string_text(&module->strings, node->name);
    return (uir_location){.file = node->line ? module->file : NULL,
                          .line = node->line,
                          .node = *name ? name : NULL,
                          .op = uir_op_name(shown)};
}

void uir_type_print(const uir_module *module, const uir_type *type, uir_text *text) {
    if (type->kind != UIR_VALUE_TENSOR)
        uir_text_append_string(text, type->kind == UIR_VALUE_SEQUENCE ? "seq(" : "opt(");
    uir_text_append_string(text, type->dtype == UIR_DTYPE_NONE ? "?" : uir_dtype_name(type->dtype));
    uir_text_append_string(text, type->rank_known ? "[" : "[*");
    for (uint32_t i = 0; type->rank_known && i < type->rank; i++) {
        if (i) uir_text_append_string(text, ", ");
        uir_dim_print(module->dims, type->dims[i], text);
    }
    uir_text_append_string(text, type->kind != UIR_VALUE_TENSOR ? "])" : "]");
}
