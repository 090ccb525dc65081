/* Clones a module: for a second compile, or to go back to the module as it was before a compile. */
#include "ir/graph/graph.h"

#include <string.h>

static uir_status copy(uir_module *to, const void *data, size_t count, size_t size, const void **out_copy) {
    *out_copy = NULL;
    if (count && data) UIR_TRY_ALLOCATE(*out_copy, uir_arena_copy(&to->arena, data, count * size));
    return UIR_STATUS_OK;
}

/* Copies the array that a member points at. */
#define COPY(to, member, count)                                                                                        \
    do {                                                                                                               \
        const void *copied;                                                                                            \
        UIR_TRY(copy(to, member, count, sizeof *(member), &copied));                                                   \
        (member) = (void *)copied;                                                                                     \
    } while (0)

/* Copies a vector's elements, of which it then has no spare room. */
#define COPY_VECTOR(to, vector)                                                                                        \
    do {                                                                                                               \
        COPY(to, (vector)->data, (vector)->count);                                                                     \
        (vector)->capacity = (vector)->count;                                                                          \
    } while (0)

static uir_status copy_type(uir_module *to, uir_type *type) {
    COPY(to, type->dims, type->rank_known ? type->rank : 0);
    return UIR_STATUS_OK;
}

static uir_status copy_node(uir_module *to, uir_node_info *node) {
    uint32_t count = node->attribute_count;
    node->attribute_count = 0; /* counts those whose tensors the clone holds */
    COPY(to, node->inputs, node->input_count);
    COPY(to, node->outputs, node->output_count);
    COPY(to, node->attributes, count);
    for (; node->attribute_count < count; node->attribute_count++) {
        uir_attribute *attribute = (uir_attribute *)&node->attributes[node->attribute_count];
        UIR_TRY(uir_module_copy_attribute(to, attribute));
        if (attribute->kind == UIR_ATTRIBUTE_TENSOR) uir_tensor_retain(attribute->value.tensor);
    }
    return UIR_STATUS_OK;
}

static uir_status copy_value(uir_module *to, uir_value_info *value) {
    UIR_TRY(copy_type(to, &value->type));
    COPY(to, value->elements, value->element_count);
    COPY(to, value->layout, 1);
    return UIR_STATUS_OK;
}

/* Each element is made whole before it is in the clone, which releases the tensors of those that are. */
static uir_status fill(uir_module *to, const uir_module *from) {
    UIR_TRY(uir_strings_clone(&from->strings, &to->arena, &to->strings));
    UIR_TRY(uir_dims_clone(from->dims, to->allocator, &to->dims));
    UIR_TRY(uir_vector_reserve(&to->arena, &to->graphs, from->graphs.count));
    UIR_TRY(uir_vector_reserve(&to->arena, &to->nodes, from->nodes.count));
    UIR_TRY(uir_vector_reserve(&to->arena, &to->values, from->values.count));
    for (uint32_t i = 0; i < from->graphs.count; i++) {
        uir_graph_info graph = from->graphs.data[i];
        COPY_VECTOR(to, &graph.inputs);
        COPY_VECTOR(to, &graph.outputs);
        COPY_VECTOR(to, &graph.nodes);
        UIR_TRY(uir_vector_push(&to->arena, &to->graphs, graph));
    }
    for (uint32_t i = 0; i < from->nodes.count; i++) {
        UIR_TRY(uir_vector_push(&to->arena, &to->nodes, from->nodes.data[i]));
        UIR_TRY(copy_node(to, &to->nodes.data[i]));
    }
    for (uint32_t i = 0; i < from->values.count; i++) {
        uir_value_info value = from->values.data[i];
        UIR_TRY(copy_value(to, &value));
        UIR_TRY(uir_vector_push(&to->arena, &to->values, value));
        if (value.constant) uir_tensor_retain(value.constant);
    }
    to->declared = from->declared;
    to->origins = from->origins;
    to->origin_reads = from->origin_reads;
    COPY_VECTOR(to, &to->declared);
    COPY_VECTOR(to, &to->origins);
    COPY_VECTOR(to, &to->origin_reads);
    for (uint32_t i = 0; i < to->declared.count; i++) UIR_TRY(copy_type(to, &to->declared.data[i].type));
    to->main = from->main;
    to->opset = from->opset;
    if (from->file) UIR_TRY_ALLOCATE(to->file, uir_arena_copy_string(&to->arena, from->file, strlen(from->file)));
    return UIR_STATUS_OK;
}

uir_status uir_module_clone(const uir_module *module, const uir_allocator *allocator, uir_module **out_clone) {
    uir_module *clone;
    *out_clone = NULL;
    UIR_TRY_ALLOCATE(clone, uir_allocate_zeroed(allocator, sizeof *clone));
    uir_arena_init(&clone->arena, allocator);
    clone->allocator = &clone->arena.allocator;
    clone->diagnostics = module->diagnostics;
    uir_status status = fill(clone, module);
    if (status == UIR_STATUS_OK)
        *out_clone = clone;
    else
        uir_module_destroy(clone);
    return status;
}

void uir_module_take_storage(uir_module *module, uir_module *from) {
    module->release_storage = from->release_storage;
    module->storage = from->storage;
    from->release_storage = NULL;
    from->storage = NULL;
}
