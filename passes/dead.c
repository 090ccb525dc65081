/* Dead code: what neither an output nor a needed run-time dim depends on is dropped.
 *
 * A dim is needed when it occurs in an attribute or type of a node that stays; what binds it then stays too. A body's
 * nodes are needed as far as its outputs are. */
#include "passes/tools.h"
#include "ir/graph/bounds.h"

typedef struct marking {
    uir_module *module;
    uir_arena *scratch;
    bool *needed;        /* by node */
    bool *symbol_needed; /* by symbol */
    uint32_t symbol_count;
    uir_vector(uir_node_id) work;
    uir_status status; /* of callbacks */
    bool grew;         /* a symbol became needed */
} marking;

static uir_status need_node(marking *m, uir_node_id node) {
    if (!node.id || m->needed[node.id]) return UIR_STATUS_OK;
    m->needed[node.id] = true;
    return uir_vector_push(m->scratch, &m->work, node);
}

static uir_status need_value(marking *m, uir_value_id value) {
    return value.id ? need_node(m, uir_value_info_get(m->module, value)->producer) : UIR_STATUS_OK;
}

static void need_symbol(void *user, uir_symbol symbol) {
    marking *m = user;
    if (symbol.id >= m->symbol_count || m->symbol_needed[symbol.id]) return;
    m->symbol_needed[symbol.id] = true;
    m->grew = true;
}

static void need_dims(marking *m, const uir_dim *dims, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (dims[i].id) uir_dim_visit_symbols(m->module->dims, dims[i], need_symbol, m);
}

static void need_type(marking *m, uir_value_id value) {
    const uir_type *type = uir_value_type(m->module, value);
    if (value.id && type->rank_known) need_dims(m, type->dims, type->rank);
}

/* What may fail the run stays: a check that nothing proves, and a bind of a symbol that can have but one value. */
static bool is_check(const marking *m, const uir_node_info *node) {
    uint32_t count;
    if (node->op == UIR_OP_CHECK_SIZES) return true;
    if (node->op == UIR_OP_CHECK_INDICES) {
        const uir_dim *low = uir_node_dims(m->module, node, "low", &count),
                      *high = uir_node_dims(m->module, node, "high", &count);
        return !uir_indices_are_inside(m->module, node->inputs[0], low, high, count);
    }
    const uir_dim *dims = uir_node_dims(m->module, node, "dims", &count);
    for (uint32_t i = 0; i < count; i++) {
        uir_symbol symbol;
        if (node->op != UIR_OP_BIND_DIMS || !uir_dim_is_symbol(m->module->dims, dims[i], &symbol)) continue;
        uir_symbol_facts facts = uir_dims_symbol_facts(m->module->dims, symbol);
        if (facts.min == facts.max) return true;
    }
    return false;
}

static uir_status need_outputs(marking *m, uir_graph_id graph) {
    const uir_graph_info *info = uir_graph_get(m->module, graph);
    for (uint32_t n = 0; n < info->nodes.count; n++)
        if (is_check(m, uir_node_get(m->module, info->nodes.data[n]))) UIR_TRY(need_node(m, info->nodes.data[n]));
    for (uint32_t i = 0; i < info->outputs.count; i++) {
        UIR_TRY(need_value(m, info->outputs.data[i]));
        need_type(m, info->outputs.data[i]);
    }
    for (uint32_t i = 0; i < info->inputs.count; i++) need_type(m, info->inputs.data[i]);
    return UIR_STATUS_OK;
}

static uir_status visit(marking *m, uir_node_id id) {
    const uir_node_info *node = uir_node_get(m->module, id);
    for (uint32_t i = 0; i < node->input_count; i++) UIR_TRY(need_value(m, node->inputs[i]));
    for (uint32_t i = 0; i < node->output_count; i++) need_type(m, node->outputs[i]);
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const uir_attribute *a = &node->attributes[i];
        if (a->kind == UIR_ATTRIBUTE_DIMS) need_dims(m, a->value.dims, a->count);
        if (a->kind == UIR_ATTRIBUTE_GRAPH) UIR_TRY(need_outputs(m, a->value.graph));
    }
    return UIR_STATUS_OK;
}

static bool binds_needed(const marking *m, const uir_dim *dims, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uir_symbol symbol;
        if (uir_dim_is_symbol(m->module->dims, dims[i], &symbol) && symbol.id < m->symbol_count &&
            m->symbol_needed[symbol.id])
            return true;
    }
    return false;
}

/* Whether the node may give a needed symbol its value. */
static bool binds(const marking *m, const uir_node_info *node) {
    if (!(uir_op_get_row(node->op)->traits & UIR_TRAIT_EFFECT)) return false;
    uint32_t count;
    const uir_dim *dims = uir_node_dims(m->module, node, "dims", &count);
    if (binds_needed(m, dims, count)) return true;
    for (uint32_t i = 0; i < node->output_count; i++) {
        const uir_type *type = uir_value_type(m->module, node->outputs[i]);
        if (type->rank_known && binds_needed(m, type->dims, type->rank)) return true;
    }
    return false;
}

/* Whether the graph is the main one or the body of a node that stays. */
static uir_status mark_reachable(marking *m, bool *reachable, uir_graph_id graph) {
    reachable[graph.id] = true;
    const uir_graph_info *info = uir_graph_get(m->module, graph);
    for (uint32_t n = 0; n < info->nodes.count; n++) {
        const uir_node_info *node = uir_node_get(m->module, info->nodes.data[n]);
        if (!m->needed[info->nodes.data[n].id]) continue;
        for (uint32_t i = 0; i < node->attribute_count; i++)
            if (node->attributes[i].kind == UIR_ATTRIBUTE_GRAPH)
                UIR_TRY(mark_reachable(m, reachable, node->attributes[i].value.graph));
    }
    return UIR_STATUS_OK;
}

static uir_status mark(marking *m) {
    UIR_TRY(need_outputs(m, m->module->main));
    do {
        while (m->work.count) UIR_TRY(visit(m, m->work.data[--m->work.count]));
        if (!m->grew) break;
        m->grew = false;
        for (uint32_t g = 1; g < m->module->graphs.count; g++) {
            const uir_graph_info *graph = &m->module->graphs.data[g];
            for (uint32_t n = 0; n < graph->nodes.count; n++)
                if (binds(m, uir_node_get(m->module, graph->nodes.data[n])))
                    UIR_TRY(need_node(m, graph->nodes.data[n]));
        }
    } while (m->work.count);
    return UIR_STATUS_OK;
}

uir_status uir_cleanup_drop_dead(uir_module *module, uir_pass_context *context) {
    marking m = {.module = module, .scratch = context->scratch, .symbol_count = uir_dims_symbol_count(module->dims)};
    bool *reachable;
    UIR_TRY_ALLOCATE(m.needed, uir_arena_allocate_array(m.scratch, module->nodes.count + 1u, sizeof(bool)));
    UIR_TRY_ALLOCATE(m.symbol_needed, uir_arena_allocate_array(m.scratch, m.symbol_count + 1u, sizeof(bool)));
    UIR_TRY_ALLOCATE(reachable, uir_arena_allocate_array(m.scratch, module->graphs.count + 1u, sizeof(bool)));
    UIR_TRY(mark(&m));
    UIR_TRY(mark_reachable(&m, reachable, module->main));
    for (uint32_t g = 1; g < module->graphs.count; g++) {
        uir_graph_info *graph = &module->graphs.data[g];
        uint32_t before = graph->nodes.count;
        if (reachable[g])
            uir_graph_keep_nodes(module, (uir_graph_id){g}, m.needed);
        else
            graph->nodes.count = graph->inputs.count = graph->outputs.count = 0; /* a body nobody runs */
        context->changes += before - graph->nodes.count;
    }
    return UIR_STATUS_OK;
}
