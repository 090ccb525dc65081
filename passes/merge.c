/* Common subexpressions: a node equal to an earlier visible one (same primitive, operands, attributes) is not computed
 * again; equal small constants become one. Random and effect nodes, and control flow, stay as they are. */
#include "passes/tools.h"
#include "ir/graph/origins.h"
#include <string.h>

#define SMALL_CONSTANT 1024 /* bytes; larger equal ones are rare and dear to compare */

/* What can be seen at a place: chained tables, one per graph on the way to the outermost. */
typedef struct scope {
    const struct scope *outer;
    uint32_t *slots; /* node + 1; 0: free */
    uint32_t mask;
} scope;

typedef struct merging {
    uir_module *module;
    uir_pass_context *context;
    uir_replacement replacement;
    bool *keep;
} merging;

static bool bytes_equal(const void *a, const void *b, size_t size) {
    return !size || memcmp(a, b, size) == 0;
}

/* The bytes that an attribute's value is: of the value itself, or of the list it points at. */
static const void *payload(const uir_attribute *a, size_t *out_size) {
    static const size_t list_sizes[UIR_ATTRIBUTE_KIND_COUNT] = {[UIR_ATTRIBUTE_INTS] = sizeof(int64_t),
                                                                [UIR_ATTRIBUTE_FLOATS] = sizeof(double),
                                                                [UIR_ATTRIBUTE_STRINGS] = sizeof(uir_string),
                                                                [UIR_ATTRIBUTE_DIMS] = sizeof(uir_dim)};
    static const size_t sizes[UIR_ATTRIBUTE_KIND_COUNT] = {
        [UIR_ATTRIBUTE_INT] = sizeof(int64_t),        [UIR_ATTRIBUTE_FLOAT] = sizeof(double),
        [UIR_ATTRIBUTE_STRING] = sizeof(uir_string),  [UIR_ATTRIBUTE_DTYPE] = sizeof(uir_dtype),
        [UIR_ATTRIBUTE_GRAPH] = sizeof(uir_graph_id), [UIR_ATTRIBUTE_TENSOR] = sizeof(uir_tensor *)};
    *out_size = list_sizes[a->kind] ? list_sizes[a->kind] * a->count : sizes[a->kind];
    return list_sizes[a->kind] ? (const void *)a->value.integers : (const void *)&a->value;
}

static uint64_t hash_attribute(const uir_attribute *a, uint64_t seed) {
    size_t size;
    const void *bytes = payload(a, &size);
    return uir_hash(bytes, size, uir_hash(&a->name, sizeof a->name, seed));
}

static bool attributes_equal(const uir_attribute *a, const uir_attribute *b) {
    if (a->name.id != b->name.id || a->kind != b->kind) return false;
    size_t a_size, b_size;
    const void *a_bytes = payload(a, &a_size), *b_bytes = payload(b, &b_size);
    return a_size == b_size && bytes_equal(a_bytes, b_bytes, a_size);
}

static uint64_t hash_node(const uir_node_info *node) {
    uint64_t hash = uir_hash(&node->op, sizeof node->op, 1);
    hash = uir_hash(node->inputs, node->input_count * sizeof *node->inputs, hash);
    for (uint32_t i = 0; i < node->attribute_count; i++) hash = hash_attribute(&node->attributes[i], hash);
    return hash;
}

static bool nodes_equal(const uir_module *module, const uir_node_info *a, const uir_node_info *b) {
    if (a->op != b->op || a->input_count != b->input_count || a->output_count != b->output_count ||
        a->attribute_count != b->attribute_count)
        return false;
    if (!bytes_equal(a->inputs, b->inputs, a->input_count * sizeof *a->inputs)) return false;
    for (uint32_t i = 0; i < a->attribute_count; i++)
        if (!attributes_equal(&a->attributes[i], &b->attributes[i])) return false;
    for (uint32_t i = 0; i < a->output_count; i++)
        if (!uir_types_interchangeable(module, uir_value_type(module, a->outputs[i]),
                                       uir_value_type(module, b->outputs[i])))
            return false;
    return true;
}

/* The equal node in one table; none, with *out_slot a free one. */
static uir_node_id look_up(const uir_module *module, const scope *s, const uir_node_info *node, uint64_t hash,
                           uint32_t *out_slot) {
    uint32_t slot = (uint32_t)hash & s->mask;
    for (; s->slots[slot]; slot = (slot + 1) & s->mask)
        if (nodes_equal(module, uir_node_get(module, (uir_node_id){s->slots[slot]}), node))
            return (uir_node_id){s->slots[slot]};
    *out_slot = slot;
    return (uir_node_id){0};
}

static uir_status merge_graph(merging *m, uir_graph_id graph, const scope *outer);

static uir_status merge_bodies(merging *m, const uir_node_info *node, const scope *s) {
    for (uint32_t i = 0; i < node->attribute_count; i++)
        if (node->attributes[i].kind == UIR_ATTRIBUTE_GRAPH)
            UIR_TRY(merge_graph(m, node->attributes[i].value.graph, s));
    return UIR_STATUS_OK;
}

static uir_status merge_node(merging *m, uir_node_id id, const scope *s) {
    UIR_TRY(uir_replacement_apply_node(&m->replacement, m->module, id));
    const uir_node_info *node = uir_node_get(m->module, id);
    uint32_t traits = uir_op_get_row(node->op)->traits;
    if (traits & UIR_TRAIT_CONTROL) return merge_bodies(m, node, s);
    if (traits & (UIR_TRAIT_EFFECT | UIR_TRAIT_RANDOM)) return UIR_STATUS_OK;
    uint64_t hash = hash_node(node);
    uint32_t slot, ignored;
    uir_node_id equal = look_up(m->module, s, node, hash, &slot);
    for (const scope *outer = s->outer; outer && !equal.id; outer = outer->outer)
        equal = look_up(m->module, outer, node, hash, &ignored);
    if (!equal.id) {
        s->slots[slot] = id.id;
        return UIR_STATUS_OK;
    }
    for (uint32_t i = 0; i < node->output_count; i++)
        if (node->outputs[i].id)
            uir_replacement_set(&m->replacement, node->outputs[i], uir_node_get(m->module, equal)->outputs[i]);
    uint32_t into = uir_node_get(m->module, equal)->source;
    if (into != node->source) uir_origins_note(m->module, node->source, UIR_FATE_MERGED, into);
    m->keep[id.id] = false;
    m->context->changes++;
    return UIR_STATUS_OK;
}

static uir_status merge_graph(merging *m, uir_graph_id graph, const scope *outer) {
    uint32_t count = uir_graph_get(m->module, graph)->nodes.count, size = 16;
    while (size < 2 * count) size *= 2;
    scope s = {.outer = outer, .mask = size - 1};
    UIR_TRY_ALLOCATE(s.slots, uir_arena_allocate_array(m->context->scratch, size, sizeof *s.slots));
    for (uint32_t n = 0; n < count; n++) UIR_TRY(merge_node(m, uir_graph_get(m->module, graph)->nodes.data[n], &s));
    uir_graph_keep_nodes(m->module, graph, m->keep);
    return UIR_STATUS_OK;
}

static bool small(const uir_tensor *t) {
    return t && t->byte_size <= SMALL_CONSTANT && uir_dtype_get_class(t->dtype) != UIR_DTYPE_CLASS_STRING;
}

static bool tensors_equal(const uir_tensor *a, const uir_tensor *b) {
    return a->dtype == b->dtype && a->rank == b->rank && a->byte_size == b->byte_size &&
           bytes_equal(a->shape, b->shape, a->rank * sizeof *a->shape) && bytes_equal(a->data, b->data, a->byte_size);
}

static uir_status merge_constants(merging *m) {
    uint32_t count = m->module->values.count, size = 16, *slots;
    while (size < 2 * count) size *= 2;
    UIR_TRY_ALLOCATE(slots, uir_arena_allocate_array(m->context->scratch, size, sizeof *slots));
    for (uint32_t v = 1; v < count; v++) {
        const uir_tensor *tensor = m->module->values.data[v].constant;
        if (!small(tensor)) continue;
        uint32_t key[2] = {tensor->dtype, tensor->rank};
        uint64_t hash = uir_hash(key, sizeof key, 1);
        hash = uir_hash(tensor->shape, tensor->rank * sizeof *tensor->shape, hash);
        hash = uir_hash(tensor->data, tensor->byte_size, hash);
        uint32_t slot = (uint32_t)hash & (size - 1);
        while (slots[slot] && !tensors_equal(m->module->values.data[slots[slot]].constant, tensor))
            slot = (slot + 1) & (size - 1);
        if (slots[slot])
            uir_replacement_set(&m->replacement, (uir_value_id){v}, (uir_value_id){slots[slot]});
        else
            slots[slot] = v;
    }
    return UIR_STATUS_OK;
}

uir_status uir_cleanup_merge_equal(uir_module *module, uir_pass_context *context) {
    merging m = {.module = module, .context = context};
    UIR_TRY(uir_replacement_init(&m.replacement, module, context->scratch));
    UIR_TRY_ALLOCATE(m.keep, uir_arena_allocate_array(context->scratch, module->nodes.count + 1u, sizeof *m.keep));
    for (uint32_t n = 0; n < module->nodes.count; n++) m.keep[n] = true;
    UIR_TRY(merge_constants(&m));
    UIR_TRY(merge_graph(&m, module->main, NULL));
    return uir_replacement_apply(&m.replacement, module);
}
