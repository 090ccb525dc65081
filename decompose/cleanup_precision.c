/* Half precision kept wide: f16 and bf16 are how values are stored, not how they are computed.
 *
 * Every computing primitive with a half result is done in f32 from operands that were never rounded in between; the
 * rounded value is still made for whoever needs the half type (an output, a loop's carried value, a host op), and
 * dropped as dead code otherwise. Movements follow their operand. Rounding that the model itself asks for by Cast
 * stays. Deep networks with half weights need this: rounding every intermediate costs them percents. */
#include "decompose/cleanup.h"
#include <string.h>

typedef struct widener {
    uir_module *module;
    uir_pass_context *context;
    uir_value_id *wide; /* by value: the f32 value that it is the rounding of, or none */
    uint32_t count;
} widener;

static bool is_half(uir_dtype dtype) {
    return dtype == UIR_DTYPE_F16 || dtype == UIR_DTYPE_BF16;
}

static uir_dtype dtype_of(const widener *w, uir_value_id value) {
    return value.id ? uir_value_type(w->module, value)->dtype : UIR_DTYPE_NONE;
}

static uir_value_id wide_of(const widener *w, uir_value_id value) {
    return value.id < w->count ? w->wide[value.id] : (uir_value_id){0};
}

static bool any_wide(const widener *w, const uir_node_info *node) {
    for (uint32_t i = 0; i < node->input_count; i++)
        if (wide_of(w, node->inputs[i]).id) return true;
    return false;
}

static bool any_half(const widener *w, const uir_node_info *node) {
    for (uint32_t i = 0; i < node->input_count; i++)
        if (is_half(dtype_of(w, node->inputs[i]))) return true;
    return false;
}

/* Whether the node's half result is worth computing in f32. */
static bool computes(const widener *w, const uir_node_info *node) {
    if (node->output_count != 1 || node->op == UIR_OP_CAST || node->op == UIR_OP_BIT_CAST) return false;
    if (!is_half(dtype_of(w, node->outputs[0]))) return false;
    uint32_t traits = uir_op_get_row(node->op)->traits;
    if (traits & (UIR_TRAIT_ELEMENTWISE | UIR_TRAIT_REDUCTION | UIR_TRAIT_CONTRACTION)) return any_half(w, node);
    return (traits & UIR_TRAIT_MOVEMENT) && any_wide(w, node);
}

/* A rounding that no Cast of the model asked for. */
static bool is_implicit_rounding(const widener *w, const uir_node_info *node) {
    return node->op == UIR_OP_CAST && node->origin != UIR_OP_ONNX_CAST && node->origin != UIR_OP_ONNX_CAST_LIKE &&
           is_half(dtype_of(w, node->outputs[0])) && dtype_of(w, node->inputs[0]) == UIR_DTYPE_F32;
}

/* The node's operands with the half ones in f32; casts are built where there is no wide value. In the module's arena.
 */
static uir_status widen_operands(widener *w, uir_builder *b, const uir_node_info *node, uir_value_id **out_inputs) {
    uir_value_id *inputs;
    UIR_TRY_ALLOCATE(inputs, uir_arena_allocate_array(&w->module->arena, node->input_count + 1u, sizeof *inputs));
    for (uint32_t i = 0; i < node->input_count; i++) {
        uir_value_id wide = wide_of(w, node->inputs[i]);
        inputs[i] = wide.id ? wide : node->inputs[i];
        if (is_half(dtype_of(w, inputs[i]))) inputs[i] = uir_build_cast(b, inputs[i], UIR_DTYPE_F32);
    }
    *out_inputs = inputs;
    return b->status;
}

/* The attributes with a half result type turned into f32. */
static uir_status widen_attributes(widener *w, const uir_node_info *node, const uir_attribute **out_attributes) {
    *out_attributes = node->attributes;
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const uir_attribute *a = &node->attributes[i];
        if (a->kind != UIR_ATTRIBUTE_DTYPE || !is_half(a->value.dtype)) continue;
        uir_attribute *copy;
        UIR_TRY_ALLOCATE(copy,
                         uir_arena_copy(&w->module->arena, node->attributes, node->attribute_count * sizeof *copy));
        copy[i].value.dtype = UIR_DTYPE_F32;
        *out_attributes = copy;
        return UIR_STATUS_OK;
    }
    return UIR_STATUS_OK;
}

/* The old node becomes the rounding of the wide result: its value, and all that refers to it, stays. */
static uir_status become_rounding(widener *w, uir_builder *b, uir_node_id id, uir_value_id wide) {
    uir_node_info *node = uir_node_get(w->module, id);
    uir_attribute to = uir_attribute_dtype(b, "to", dtype_of(w, node->outputs[0]));
    UIR_TRY(b->status);
    uir_attribute *attributes;
    uir_value_id *inputs;
    UIR_TRY_ALLOCATE(attributes, uir_arena_copy(&w->module->arena, &to, sizeof to));
    UIR_TRY_ALLOCATE(inputs, uir_arena_copy(&w->module->arena, &wide, sizeof wide));
    node->op = UIR_OP_CAST;
    node->inputs = inputs;
    node->input_count = 1;
    node->attributes = attributes;
    node->attribute_count = 1;
    w->wide[node->outputs[0].id] = wide;
    w->context->changes++;
    return UIR_STATUS_OK;
}

static uir_status widen_node(widener *w, uir_node_id id) {
    uir_builder builder;
    uir_builder_init_for(&builder, w->module, id);
    uir_node_info node = *uir_node_get(w->module, id); /* a copy: building may move the array */
    const uir_attribute *attributes;
    uir_value_id *inputs, result = {0};
    UIR_TRY(widen_operands(w, &builder, &node, &inputs));
    UIR_TRY(widen_attributes(w, &node, &attributes));
    uir_build_node(&builder, node.op, inputs, node.input_count, attributes, node.attribute_count, &result, 1);
    UIR_TRY(builder.status);
    return become_rounding(w, &builder, id, result);
}

/* A cast or comparison reads the wide operands where there are some; its result's type stays. */
static uir_status read_wide(widener *w, uir_node_id id) {
    uir_builder builder;
    uir_builder_init_for(&builder, w->module, id);
    uir_node_info node = *uir_node_get(w->module, id);
    uir_value_id *inputs;
    UIR_TRY(widen_operands(w, &builder, &node, &inputs));
    uir_node_get(w->module, id)->inputs = inputs;
    w->context->changes++;
    return UIR_STATUS_OK;
}

static uir_status widen_graph(widener *w, uir_graph_id graph);

static uir_status widen_bodies(widener *w, uir_node_id id) {
    uir_node_info node = *uir_node_get(w->module, id);
    for (uint32_t i = 0; i < node.attribute_count; i++)
        if (node.attributes[i].kind == UIR_ATTRIBUTE_GRAPH) UIR_TRY(widen_graph(w, node.attributes[i].value.graph));
    return UIR_STATUS_OK;
}

static uir_status visit(widener *w, uir_node_id id) {
    const uir_node_info *node = uir_node_get(w->module, id);
    uint32_t traits = uir_op_get_row(node->op)->traits;
    if (traits & UIR_TRAIT_CONTROL) return widen_bodies(w, id);
    if (is_implicit_rounding(w, node)) {
        w->wide[node->outputs[0].id] = node->inputs[0];
        return UIR_STATUS_OK;
    }
    if (computes(w, node)) return widen_node(w, id);
    bool reads = node->op == UIR_OP_CAST || (traits & UIR_TRAIT_COMPARISON);
    return reads && any_wide(w, node) ? read_wide(w, id) : UIR_STATUS_OK;
}

/* Rebuilds the node list in order, so that what a node needs comes right before it. */
static uir_status widen_graph(widener *w, uir_graph_id graph) {
    uint32_t count = uir_graph_get(w->module, graph)->nodes.count;
    uir_node_id *old;
    UIR_TRY_ALLOCATE(old, uir_arena_allocate_array(w->context->scratch, count + 1u, sizeof *old));
    if (count > 0) memcpy(old, uir_graph_get(w->module, graph)->nodes.data, count * sizeof *old);
    uir_graph_get(w->module, graph)->nodes.count = 0;
    for (uint32_t i = 0; i < count; i++) {
        UIR_TRY(visit(w, old[i]));
        uir_graph_info *info = uir_graph_get(w->module, graph);
        UIR_TRY(uir_vector_push(&w->module->arena, &info->nodes, old[i]));
    }
    return UIR_STATUS_OK;
}

uir_status uir_cleanup_keep_precision(uir_module *module, uir_pass_context *context) {
    widener w = {.module = module, .context = context, .count = module->values.count};
    UIR_TRY_ALLOCATE(w.wide, uir_arena_allocate_array(context->scratch, w.count + 1u, sizeof *w.wide));
    return widen_graph(&w, module->main);
}
