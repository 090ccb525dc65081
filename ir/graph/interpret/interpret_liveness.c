/* Liveness: the last node that uses each value, which then frees it. */
#include "ir/graph/interpret/interpret.h"

/* Records node `node` as a user of `value`: in the graph that owns the value, the last such node frees it. */
static void note_use(uir_interpreter *interpreter, const uint32_t *owner, const uint32_t *user_of_graph,
                     uint32_t *last_use, uir_value_id value, uint32_t node) {
    const uir_module *module = interpreter->module;
    if (!value.id || !owner[value.id]) return;
    for (uint32_t depth = 0; node && depth < module->graphs.count; depth++) {
        uint32_t graph = uir_node_get(module, (uir_node_id){node})->graph.id;
        if (graph == owner[value.id]) {
            last_use[value.id] = node; /* graphs are walked in order, so the last note stays */
            return;
        }
        node = user_of_graph[graph];
    }
}

/* The graphs that node `n` runs. */
static void note_bodies(const uir_module *module, uint32_t n, uint32_t *user_of_graph) {
    const uir_node_info *node = &module->nodes.data[n];
    for (uint32_t a = 0; a < node->attribute_count; a++)
        if (node->attributes[a].kind == UIR_ATTRIBUTE_GRAPH) user_of_graph[node->attributes[a].value.graph.id] = n;
}

/* Walks a graph and the bodies in it in the order they run. */
static void note_graph(uir_interpreter *interpreter, uir_graph_id graph, const uint32_t *owner,
                       const uint32_t *user_of_graph, uint32_t *last_use, bool *kept) {
    const uir_module *module = interpreter->module;
    const uir_graph_info *info = uir_graph_get(module, graph);
    for (uint32_t n = 0; n < info->nodes.count; n++) {
        const uir_node_info *node = uir_node_get(module, info->nodes.data[n]);
        for (uint32_t i = 0; i < node->input_count; i++)
            note_use(interpreter, owner, user_of_graph, last_use, node->inputs[i], info->nodes.data[n].id);
        /* A result that nobody uses dies with its maker. */
        for (uint32_t i = 0; i < node->output_count; i++)
            note_use(interpreter, owner, user_of_graph, last_use, node->outputs[i], info->nodes.data[n].id);
        for (uint32_t a = 0; a < node->attribute_count; a++)
            if (node->attributes[a].kind == UIR_ATTRIBUTE_GRAPH)
                note_graph(interpreter, node->attributes[a].value.graph, owner, user_of_graph, last_use, kept);
    }
    for (uint32_t i = 0; i < info->outputs.count; i++) {
        uint32_t value = info->outputs.data[i].id;
        if (owner[value] == graph.id)
            kept[value] = true;
        else if (user_of_graph[graph.id])
            note_use(interpreter, owner, user_of_graph, last_use, info->outputs.data[i], user_of_graph[graph.id]);
    }
}

uir_status uir_interpreter_find_last_uses(uir_interpreter *interpreter) {
    const uir_module *module = interpreter->module;
    uir_arena *arena = &interpreter->arena;
    uint32_t values = module->values.count, nodes = module->nodes.count;
    uint32_t *owner, *user_of_graph, *last_use;
    bool *kept;
    UIR_TRY_ALLOCATE(owner, uir_arena_allocate_array(arena, values, sizeof *owner));
    UIR_TRY_ALLOCATE(user_of_graph, uir_arena_allocate_array(arena, module->graphs.count, sizeof *user_of_graph));
    UIR_TRY_ALLOCATE(last_use, uir_arena_allocate_array(arena, values, sizeof *last_use));
    UIR_TRY_ALLOCATE(kept, uir_arena_allocate_array(arena, values, sizeof *kept));
    UIR_TRY_ALLOCATE(interpreter->freed, uir_arena_allocate_array(arena, nodes, sizeof(uint32_t)));
    UIR_TRY_ALLOCATE(interpreter->next, uir_arena_allocate_array(arena, values, sizeof(uint32_t)));
    for (uint32_t g = 1; g < module->graphs.count; g++) {
        const uir_graph_info *graph = &module->graphs.data[g];
        for (uint32_t i = 0; i < graph->inputs.count; i++) owner[graph->inputs.data[i].id] = g;
        for (uint32_t n = 0; n < graph->nodes.count; n++) {
            const uir_node_info *node = uir_node_get(module, graph->nodes.data[n]);
            for (uint32_t i = 0; i < node->output_count; i++) owner[node->outputs[i].id] = g;
            note_bodies(module, graph->nodes.data[n].id, user_of_graph);
        }
    }
    owner[0] = 0;
    note_graph(interpreter, module->main, owner, user_of_graph, last_use, kept);
    for (uint32_t v = 1; v < values; v++) {
        if (kept[v] || !last_use[v]) continue;
        interpreter->next[v] = interpreter->freed[last_use[v]];
        interpreter->freed[last_use[v]] = v;
    }
    return UIR_STATUS_OK;
}
