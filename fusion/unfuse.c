/* Groups taken apart again: their nodes stand in the graph as they did, and become groups by narrower rules. */
#include "fusion/clusters.h"

#include <string.h>

typedef struct opening {
    uir_module *module;
    bool *is_open;       /* by node: a group that is taken apart */
    uir_value_id *outer; /* by value of a body: what it is outside */
    uint32_t node_count, value_count;
    uir_arena *arena;
} opening;

static const uir_graph_info *body_of(const uir_module *module, uir_node_id group) {
    const uir_attribute *body = uir_node_find_attribute(module, uir_node_get(module, group), "body");
    return uir_graph_get(module, body->value.graph);
}

/* What a body gives is made in it, once each: fusion's own are so, a text's need not be. */
bool uir_can_unfuse(const uir_module *module, uir_node_id group) {
    const uir_graph_info *body = body_of(module, group);
    if (body->nodes.count < 2) return false;
    for (uint32_t i = 0; i < body->outputs.count; i++) {
        if (!uir_value_info_get(module, body->outputs.data[i])->producer.id) return false;
        for (uint32_t k = 0; k < i; k++)
            if (body->outputs.data[k].id == body->outputs.data[i].id) return false;
    }
    return true;
}

static uir_status add_outer_value(opening *o, uir_value_id from) {
    uir_value_info info = *uir_value_info_get(o->module, from);
    if (o->outer[from.id].id) return UIR_STATUS_OK;
    UIR_TRY(uir_module_add_value(o->module, "", info.type, &o->outer[from.id]));
    uir_value_info *made = uir_value_info_get(o->module, o->outer[from.id]);
    made->elements = info.elements;
    made->element_count = info.element_count;
    made->elements_known = info.elements_known;
    made->layout = info.layout;
    return UIR_STATUS_OK;
}

static uir_status open_node(opening *o, uir_graph_id graph, uir_node_id id) {
    uir_node_info node = *uir_node_get(o->module, id);
    uir_value_id *inputs, *outputs;
    UIR_TRY_ALLOCATE(inputs, uir_arena_allocate_array(o->arena, node.input_count + 1u, sizeof *inputs));
    UIR_TRY_ALLOCATE(outputs, uir_arena_allocate_array(o->arena, node.output_count + 1u, sizeof *outputs));
    for (uint32_t i = 0; i < node.input_count; i++)
        inputs[i] = o->outer[node.inputs[i].id].id ? o->outer[node.inputs[i].id] : node.inputs[i];
    for (uint32_t i = 0; i < node.output_count; i++) {
        if (!node.outputs[i].id) continue;
        UIR_TRY(add_outer_value(o, node.outputs[i]));
        outputs[i] = o->outer[node.outputs[i].id];
    }
    node.inputs = inputs;
    node.outputs = outputs;
    uir_node_id made;
    return uir_graph_add_node(o->module, graph, &node, &made);
}

static uir_status open_group(opening *o, uir_graph_id graph, uir_node_id id) {
    const uir_node_info *group = uir_node_get(o->module, id);
    uir_graph_info body = *body_of(o->module, id);
    for (uint32_t i = 0; i < group->input_count; i++) o->outer[body.inputs.data[i].id] = group->inputs[i];
    for (uint32_t i = 0; i < group->output_count; i++) o->outer[body.outputs.data[i].id] = group->outputs[i];
    for (uint32_t n = 0; n < body.nodes.count; n++) UIR_TRY(open_node(o, graph, body.nodes.data[n]));
    return UIR_STATUS_OK;
}

static uir_status open_in_graph(opening *o, uir_graph_id graph, bool *out_opened) {
    uir_graph_info *info = uir_graph_get(o->module, graph);
    uint32_t count = info->nodes.count;
    uir_node_id *nodes;
    *out_opened = false;
    for (uint32_t n = 0; n < count; n++) *out_opened |= o->is_open[info->nodes.data[n].id];
    if (!*out_opened) return UIR_STATUS_OK;
    UIR_TRY_ALLOCATE(nodes, uir_arena_copy(o->arena, info->nodes.data, count * sizeof *nodes));
    info->nodes.count = 0;
    for (uint32_t n = 0; n < count; n++)
        UIR_TRY(o->is_open[nodes[n].id]
                    ? open_group(o, graph, nodes[n])
                    : uir_vector_push(&o->module->arena, &uir_graph_get(o->module, graph)->nodes, nodes[n]));
    return UIR_STATUS_OK;
}

static uir_status unfuse_refused(opening *o, const uir_node_id *groups, uint32_t count,
                                 const uir_fusion_options *options, uir_diagnostics *diagnostics) {
    uir_module *module = o->module;
    uint32_t graphs = module->graphs.count;
    UIR_TRY_ALLOCATE(o->is_open, uir_arena_allocate_array(o->arena, module->nodes.count + 1u, sizeof *o->is_open));
    UIR_TRY_ALLOCATE(o->outer, uir_arena_allocate_array(o->arena, module->values.count + 1u, sizeof *o->outer));
    for (uint32_t i = 0; i < count; i++) o->is_open[groups[i].id] = uir_can_unfuse(module, groups[i]);
    for (uint32_t g = 1; g < graphs; g++) {
        bool opened;
        UIR_TRY(open_in_graph(o, (uir_graph_id){g}, &opened));
        if (opened) UIR_TRY(uir_fuse_graph(module, (uir_graph_id){g}, options, diagnostics, o->arena));
    }
    /* The old bodies are nobody's. */
    for (uint32_t i = 0; i < count; i++) {
        if (!o->is_open[groups[i].id]) continue;
        uir_graph_info *body = uir_graph_get(
            module, uir_node_find_attribute(module, uir_node_get(module, groups[i]), "body")->value.graph);
        body->nodes.count = body->inputs.count = body->outputs.count = 0;
    }
    return UIR_STATUS_OK;
}

uir_status uir_unfuse(uir_module *module, const uir_node_id *groups, uint32_t count, const uir_fusion_options *options,
                      uir_diagnostics *diagnostics) {
    uir_arena arena;
    uir_arena_init(&arena, module->allocator);
    opening o = {.module = module, .arena = &arena};
    uir_status status = unfuse_refused(&o, groups, count, options, diagnostics);
    uir_arena_deinit(&arena);
    return status;
}

/* ---- groups that no kernel computes, beside values with layouts ---- */
/* The value's other self, row-major where the value has a layout. */
static uir_status add_row_major(uir_module *module, uir_value_id value, uir_value_id *out_value) {
    const uir_value_info info = *uir_value_info_get(module, value);
    return uir_module_add_value(module, "", info.type, out_value);
}

/* `to` is `from` by another layout: a reshape to the dims that it has. */
static uir_status add_conversion(uir_module *module, uir_graph_id graph, uir_value_id from, uir_value_id to) {
    const uir_type type = *uir_value_type(module, from);
    uir_attribute dims = {.kind = UIR_ATTRIBUTE_DIMS, .count = type.rank, .value.dims = type.dims};
    UIR_TRY(uir_strings_intern(&module->strings, "dims", strlen("dims"), &dims.name));
    uir_node_info node = {.op = UIR_OP_RESHAPE,
                          .inputs = &from,
                          .input_count = 1,
                          .outputs = &to,
                          .output_count = 1,
                          .attributes = &dims,
                          .attribute_count = 1};
    uir_node_id made;
    return uir_graph_add_node(module, graph, &node, &made);
}

static uir_status convert_operands(opening *o, uir_graph_id graph, uir_node_id id) {
    uir_node_info *node = &o->module->nodes.data[id.id];
    uir_value_id *inputs;
    UIR_TRY_ALLOCATE(inputs, uir_arena_allocate_array(&o->module->arena, node->input_count + 1u, sizeof *inputs));
    if (node->input_count) memcpy(inputs, node->inputs, node->input_count * sizeof *inputs);
    for (uint32_t i = 0; i < node->input_count; i++) {
        const uir_value_info *info = uir_value_info_get(o->module, inputs[i]);
        if (!inputs[i].id || !info->layout || info->constant) continue;
        uir_value_id plain;
        UIR_TRY(add_row_major(o->module, inputs[i], &plain));
        UIR_TRY(add_conversion(o->module, graph, inputs[i], plain));
        inputs[i] = plain;
    }
    o->module->nodes.data[id.id].inputs = inputs;
    return UIR_STATUS_OK;
}

static uir_status convert_results(opening *o, uir_graph_id graph, uir_node_id id) {
    const uir_node_info node = o->module->nodes.data[id.id];
    uir_value_id *outputs;
    UIR_TRY_ALLOCATE(outputs, uir_arena_allocate_array(&o->module->arena, node.output_count + 1u, sizeof *outputs));
    if (node.output_count) memcpy(outputs, node.outputs, node.output_count * sizeof *outputs);
    for (uint32_t i = 0; i < node.output_count; i++) {
        uir_value_id value = outputs[i];
        if (!value.id || !uir_value_info_get(o->module, value)->layout) continue;
        UIR_TRY(add_row_major(o->module, value, &outputs[i]));
        uir_value_info_get(o->module, outputs[i])->producer = id;
        UIR_TRY(add_conversion(o->module, graph, outputs[i], value));
    }
    o->module->nodes.data[id.id].outputs = outputs;
    return UIR_STATUS_OK;
}

static uir_status convert_in_graph(opening *o, uir_graph_id graph, bool *out_any) {
    const uir_graph_info *info = uir_graph_get(o->module, graph);
    uint32_t count = info->nodes.count, before = o->module->nodes.count;
    uir_node_id *nodes;
    *out_any = false;
    for (uint32_t n = 0; n < count; n++) *out_any |= o->is_open[info->nodes.data[n].id];
    if (!*out_any) return UIR_STATUS_OK;
    UIR_TRY_ALLOCATE(nodes, uir_arena_copy(o->arena, info->nodes.data, count * sizeof *nodes));
    uir_graph_get(o->module, graph)->nodes.count = 0;
    for (uint32_t n = 0; n < count; n++) {
        bool open = nodes[n].id < o->node_count && o->is_open[nodes[n].id];
        if (open) UIR_TRY(convert_operands(o, graph, nodes[n]));
        UIR_TRY(uir_vector_push(&o->module->arena, &uir_graph_get(o->module, graph)->nodes, nodes[n]));
        if (open) UIR_TRY(convert_results(o, graph, nodes[n]));
    }
    *out_any = o->module->nodes.count > before;
    return UIR_STATUS_OK;
}

uir_status uir_convert_around(uir_module *module, const uir_node_id *groups, uint32_t count,
                              const uir_fusion_options *options, uir_diagnostics *diagnostics) {
    uir_arena arena;
    uir_arena_init(&arena, module->allocator);
    opening o = {.module = module, .arena = &arena, .node_count = module->nodes.count};
    uint32_t graphs = module->graphs.count;
    o.is_open = uir_arena_allocate_array(&arena, module->nodes.count + 1u, sizeof *o.is_open);
    uir_status status = o.is_open ? UIR_STATUS_OK : UIR_STATUS_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < count && status == UIR_STATUS_OK; i++) o.is_open[groups[i].id] = true;
    for (uint32_t g = 1; g < graphs && status == UIR_STATUS_OK; g++) {
        bool any;
        status = convert_in_graph(&o, (uir_graph_id){g}, &any);
        if (status == UIR_STATUS_OK && any)
            status = uir_fuse_graph(module, (uir_graph_id){g}, options, diagnostics, &arena);
    }
    uir_arena_deinit(&arena);
    return status;
}
