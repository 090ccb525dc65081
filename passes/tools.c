/* The table of clean-up passes and their shared tools. */
#include "passes/tools.h"
#include "ir/graph/origins.h"
#include "passes/passes.h"
#include <string.h>

#define UIR_PASS(name, function, purpose) {name, function, purpose},
const uir_pass uir_cleanup_passes[] = {
#include "passes/cleanup.def"
};
#undef UIR_PASS
const size_t uir_cleanup_pass_count = sizeof uir_cleanup_passes / sizeof *uir_cleanup_passes;

#define FILE_BYTES (4u << 20) /* a constant of this size lies in a file */

void uir_put_aside(uir_tensor *constant) {
    if (constant && constant->byte_size >= FILE_BYTES) (void)uir_tensor_move_to_file(constant);
}

uir_status uir_replacement_init(uir_replacement *replacement, uir_module *module, uir_arena *scratch) {
    replacement->module = module;
    replacement->count = module->values.count;
    UIR_TRY_ALLOCATE(replacement->to,
                     uir_arena_allocate_array(scratch, replacement->count + 1u, sizeof *replacement->to));
    return UIR_STATUS_OK;
}

static uir_value_id replacement_get(const uir_replacement *replacement, uir_value_id value) {
    while (value.id < replacement->count && replacement->to[value.id].id) value = replacement->to[value.id];
    return value;
}

void uir_replacement_set(uir_replacement *replacement, uir_value_id from, uir_value_id to) {
    to = replacement_get(replacement, to);
    if (from.id >= replacement->count || from.id == to.id) return;
    replacement->to[from.id] = to;
    uir_origins_note_replaced(replacement->module, from, to);
    const uir_layout *was = uir_value_info_get(replacement->module, from)->layout;
    uir_value_info *stays = uir_value_info_get(replacement->module, to);
    if (stays->layout && (!was || !uir_layout_is_same(was, stays->layout, stays->type.rank))) stays->layout = NULL;
}

uir_status uir_replacement_apply_node(const uir_replacement *replacement, uir_module *module, uir_node_id id) {
    uir_node_info *node = uir_node_get(module, id);
    uir_value_id *inputs = NULL;
    for (uint32_t i = 0; i < node->input_count; i++) {
        uir_value_id value = replacement_get(replacement, node->inputs[i]);
        if (value.id == node->inputs[i].id) continue;
        if (!inputs)
            UIR_TRY_ALLOCATE(inputs, uir_arena_copy(&module->arena, node->inputs, node->input_count * sizeof *inputs));
        inputs[i] = value;
    }
    if (inputs) node->inputs = inputs;
    return UIR_STATUS_OK;
}

uir_status uir_replacement_apply(const uir_replacement *replacement, uir_module *module) {
    for (uint32_t g = 1; g < module->graphs.count; g++) {
        uir_graph_info *graph = &module->graphs.data[g];
        for (uint32_t n = 0; n < graph->nodes.count; n++)
            UIR_TRY(uir_replacement_apply_node(replacement, module, graph->nodes.data[n]));
        for (uint32_t i = 0; i < graph->outputs.count; i++)
            graph->outputs.data[i] = replacement_get(replacement, graph->outputs.data[i]);
    }
    return UIR_STATUS_OK;
}

bool uir_types_interchangeable(const uir_module *module, const uir_type *a, const uir_type *b) {
    if (a->kind != b->kind || a->dtype != b->dtype || a->rank_known != b->rank_known) return false;
    if (!a->rank_known) return true;
    if (a->rank != b->rank) return false;
    for (uint32_t d = 0; d < a->rank; d++)
        if (uir_dim_compare(module->dims, a->dims[d], UIR_RELATION_EQ, b->dims[d]) != UIR_TRUE) return false;
    return true;
}

void uir_graph_keep_nodes(uir_module *module, uir_graph_id graph, const bool *keep) {
    uir_graph_info *info = uir_graph_get(module, graph);
    uint32_t kept = 0;
    for (uint32_t n = 0; n < info->nodes.count; n++)
        if (keep[info->nodes.data[n].id]) info->nodes.data[kept++] = info->nodes.data[n];
    info->nodes.count = kept;
}

/* A builder whose nodes carry the name and origin of the node they are built for. */
static uir_builder builder_for(uir_module *module, const uir_node_info *node) {
    uir_builder builder;
    uir_builder_init(&builder, module, node->graph);
    uir_builder_stand_for(&builder, node);
    return builder;
}

/* Moves the nodes appended since the graph had `old_count` of them to right before position `position`. */
static uir_status place_new_nodes(uir_module *module, uir_graph_id graph, uint32_t old_count, uint32_t position,
                                  uir_arena *scratch) {
    uir_graph_info *info = uir_graph_get(module, graph);
    uint32_t added = info->nodes.count - old_count;
    if (!added) return UIR_STATUS_OK;
    uir_node_id *list = info->nodes.data, *fresh;
    UIR_TRY_ALLOCATE(fresh, uir_arena_copy(scratch, list + old_count, added * sizeof *list));
    memmove(list + position + added, list + position, (old_count - position) * sizeof *list);
    memcpy(list + position, fresh, added * sizeof *list);
    return UIR_STATUS_OK;
}

/* Nodes whose one result was replaced have no readers left. */
static void drop_replaced(uir_module *module, const uir_replacement *replacement, uir_graph_id graph) {
    uir_graph_info *info = uir_graph_get(module, graph);
    uint32_t kept = 0;
    for (uint32_t n = 0; n < info->nodes.count; n++) {
        const uir_node_info *node = uir_node_get(module, info->nodes.data[n]);
        uir_value_id result = node->output_count == 1 ? node->outputs[0] : (uir_value_id){0};
        if (replacement_get(replacement, result).id == result.id) info->nodes.data[kept++] = info->nodes.data[n];
    }
    info->nodes.count = kept;
}

static uir_status rewrite_graph(uir_module *module, uir_pass_context *context, const uir_rewriter *rewriter,
                                uir_replacement *replacement, uir_graph_id graph) {
    for (uint32_t n = 0; n < uir_graph_get(module, graph)->nodes.count; n++) {
        uir_node_id id = uir_graph_get(module, graph)->nodes.data[n];
        UIR_TRY(uir_replacement_apply_node(replacement, module, id));
        uir_node_info node = *uir_node_get(module, id); /* a copy: building may move the array */
        if (node.output_count != 1 || !node.outputs[0].id) continue;
        uint32_t count = uir_graph_get(module, graph)->nodes.count;
        uir_builder builder = builder_for(module, &node);
        uir_value_id value = rewriter->rewrite(rewriter->user, &builder, &node);
        UIR_TRY(builder.status);
        UIR_TRY(place_new_nodes(module, graph, count, n, context->scratch));
        n += uir_graph_get(module, graph)->nodes.count - count;
        if (!value.id || value.id == node.outputs[0].id ||
            !uir_types_interchangeable(module, uir_value_type(module, value), uir_value_type(module, node.outputs[0])))
            continue;
        if (rewriter->taken) UIR_TRY(rewriter->taken(rewriter->user, node.outputs[0], value));
        uir_replacement_set(replacement, node.outputs[0], value);
        context->changes++;
    }
    drop_replaced(module, replacement, graph);
    return UIR_STATUS_OK;
}

uir_status uir_rewrite_nodes(uir_module *module, uir_pass_context *context, const uir_rewriter *rewriter) {
    uir_replacement replacement;
    UIR_TRY(uir_replacement_init(&replacement, module, context->scratch));
    for (uint32_t g = 1; g < module->graphs.count; g++)
        UIR_TRY(rewrite_graph(module, context, rewriter, &replacement, (uir_graph_id){g}));
    return uir_replacement_apply(&replacement, module);
}

uir_status uir_count_uses(const uir_module *module, uir_arena *scratch, uint32_t **out_uses) {
    uint32_t *uses;
    UIR_TRY_ALLOCATE(uses, uir_arena_allocate_array(scratch, module->values.count + 1u, sizeof *uses));
    for (uint32_t g = 1; g < module->graphs.count; g++) {
        const uir_graph_info *graph = &module->graphs.data[g];
        for (uint32_t n = 0; n < graph->nodes.count; n++) {
            const uir_node_info *node = uir_node_get(module, graph->nodes.data[n]);
            for (uint32_t i = 0; i < node->input_count; i++) uses[node->inputs[i].id]++;
        }
        for (uint32_t i = 0; i < graph->outputs.count; i++) uses[graph->outputs.data[i].id]++;
    }
    *out_uses = uses;
    return UIR_STATUS_OK;
}

const uir_node_info *uir_value_made_by(const uir_module *module, uir_value_id value, uir_op op) {
    uir_node_id producer = uir_value_info_get(module, value)->producer;
    if (!producer.id) return NULL;
    const uir_node_info *node = uir_node_get(module, producer);
    return node->op == op ? node : NULL;
}
