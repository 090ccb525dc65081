/* Sizes that only some values of can run are said to have no others.
 *
 * A broadcast from min(S, 512) to S needs the two equal or the first 1, so that no S above 512 gets through: S has the
 * fact max 512 from here on, min(S, 512) is S, and the broadcast is none. What ran before runs as before; what would
 * have failed at the broadcast fails when the input comes in. Only broadcasts of the main graph, which every run meets,
 * and only sizes that inputs have. */
#include "passes/tools.h"

#include <string.h>

typedef struct narrowing {
    uir_module *module;
    uir_arena *scratch;
    bool *is_input; /* by symbol: some input's dim is nothing but it */
    bool *narrowed;
    uint32_t symbol_count;
    uint32_t changes;
} narrowing;

static uir_status find_input_sizes(narrowing *n) {
    const uir_graph_info *graph = uir_graph_get(n->module, n->module->main);
    n->symbol_count = uir_dims_symbol_count(n->module->dims);
    UIR_TRY_ALLOCATE(n->is_input, uir_arena_allocate_array(n->scratch, n->symbol_count + 1u, 1));
    UIR_TRY_ALLOCATE(n->narrowed, uir_arena_allocate_array(n->scratch, n->symbol_count + 1u, 1));
    for (uint32_t i = 0; i < graph->inputs.count; i++) {
        const uir_type *type = uir_value_type(n->module, graph->inputs.data[i]);
        for (uint32_t d = 0; type->kind == UIR_VALUE_TENSOR && type->rank_known && d < type->rank; d++) {
            uir_symbol symbol;
            if (uir_dim_is_symbol(n->module->dims, type->dims[d], &symbol)) n->is_input[symbol.id] = true;
        }
    }
    return UIR_STATUS_OK;
}

/* Whether a size above `most` makes the two extents neither equal nor the first 1. */
static uir_status rules_out(narrowing *n, uir_symbol symbol, int64_t most, uir_dim from, uir_dim to, bool *out_rules) {
    uir_dims *dims = n->module->dims;
    uir_symbol_facts facts = uir_dims_symbol_facts(dims, symbol);
    uir_symbol above;
    uir_dim *replacements;
    facts.min = most + 1;
    UIR_TRY(uir_dims_add_symbol(dims, "above", 5, facts, &above));
    UIR_TRY_ALLOCATE(replacements, uir_arena_allocate_array(n->scratch, symbol.id + 1u, sizeof *replacements));
    replacements[symbol.id] = uir_dim_symbol(dims, above);
    from = uir_dim_substitute(dims, from, replacements, symbol.id + 1);
    to = uir_dim_substitute(dims, to, replacements, symbol.id + 1);
    if (!from.id || !to.id) return UIR_STATUS_OUT_OF_MEMORY;
    *out_rules = uir_dim_compare(dims, from, UIR_RELATION_EQ, to) == UIR_FALSE &&
                 uir_dim_compare(dims, from, UIR_RELATION_EQ, uir_dim_const(dims, 1)) == UIR_FALSE;
    return UIR_STATUS_OK;
}

static uir_status try_bound(narrowing *n, uir_symbol symbol, int64_t most, uir_dim from, uir_dim to) {
    if (symbol.id >= n->symbol_count || !n->is_input[symbol.id]) return UIR_STATUS_OK;
    uir_symbol_facts facts = uir_dims_symbol_facts(n->module->dims, symbol);
    bool rules = false;
    if (most >= facts.max || most < facts.min || most < 1) return UIR_STATUS_OK;
    UIR_TRY(rules_out(n, symbol, most, from, to, &rules));
    if (!rules) return UIR_STATUS_OK;
    facts.max = most;
    uir_dims_set_symbol_facts(n->module->dims, symbol, facts);
    n->narrowed[symbol.id] = true;
    n->changes++;
    return UIR_STATUS_OK;
}

/* Looks for min(S, number) in the extent. */
static uir_status look_for_bounds(narrowing *n, uir_dim in, uir_dim from, uir_dim to) {
    uir_dim_node node = *uir_dim_get(n->module->dims, in);
    for (uint32_t i = 0; i < node.count; i++) {
        UIR_TRY(look_for_bounds(n, node.operands[i], from, to));
        for (uint32_t k = 0; node.kind == UIR_DIM_MIN && k < node.count; k++) {
            uir_symbol symbol;
            int64_t most;
            if (uir_dim_is_symbol(n->module->dims, node.operands[i], &symbol) &&
                uir_dim_is_const(n->module->dims, node.operands[k], &most))
                UIR_TRY(try_bound(n, symbol, most, from, to));
        }
    }
    return UIR_STATUS_OK;
}

static uir_status look_at_broadcast(narrowing *n, const uir_node_info *node) {
    const uir_type *from = uir_value_type(n->module, node->inputs[0]),
                   *to = uir_value_type(n->module, node->outputs[0]);
    for (uint32_t d = 0; d < from->rank; d++) {
        uir_dim a = from->dims[d], b = to->dims[d + to->rank - from->rank];
        if (uir_dim_is_const(n->module->dims, a, NULL) || uir_dim_equal(a, b)) continue;
        UIR_TRY(look_for_bounds(n, a, a, b));
    }
    return UIR_STATUS_OK;
}

/* ---- every dim of the module, built again with what is known now ---- */
static uir_status rebuild(narrowing *n, const uir_dim *replacements, const uir_dim **dims, uint32_t count) {
    uir_dim *made = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (!(*dims)[i].id) continue;
        uir_dim dim = uir_dim_substitute(n->module->dims, (*dims)[i], replacements, n->symbol_count);
        if (!dim.id) return UIR_STATUS_OUT_OF_MEMORY;
        if (uir_dim_equal(dim, (*dims)[i])) continue;
        if (!made) UIR_TRY_ALLOCATE(made, uir_arena_copy(&n->module->arena, *dims, count * sizeof *made));
        made[i] = dim;
    }
    if (made) *dims = made;
    return UIR_STATUS_OK;
}

static uir_status rebuild_all(narrowing *n) {
    uir_module *module = n->module;
    uir_dim *replacements;
    UIR_TRY_ALLOCATE(replacements, uir_arena_allocate_array(n->scratch, n->symbol_count + 1u, sizeof *replacements));
    for (uint32_t s = 0; s < n->symbol_count; s++)
        if (n->narrowed[s]) replacements[s] = uir_dim_symbol(module->dims, (uir_symbol){s});
    for (uint32_t v = 1; v < module->values.count; v++) {
        uir_value_info *value = &module->values.data[v];
        if (value->type.rank_known) UIR_TRY(rebuild(n, replacements, &value->type.dims, value->type.rank));
        if (value->elements_known) UIR_TRY(rebuild(n, replacements, &value->elements, value->element_count));
    }
    for (uint32_t i = 1; i < module->nodes.count; i++) {
        const uir_node_info *node = &module->nodes.data[i];
        for (uint32_t k = 0; k < node->attribute_count; k++) {
            uir_attribute *attribute = (uir_attribute *)&node->attributes[k]; /* the module's own copy */
            if (attribute->kind == UIR_ATTRIBUTE_DIMS)
                UIR_TRY(rebuild(n, replacements, &attribute->value.dims, attribute->count));
        }
    }
    return UIR_STATUS_OK;
}

uir_status uir_cleanup_narrow_sizes(uir_module *module, uir_pass_context *context) {
    narrowing n = {.module = module, .scratch = context->scratch};
    const uir_graph_info *graph = uir_graph_get(module, module->main);
    UIR_TRY(find_input_sizes(&n));
    for (uint32_t i = 0; i < graph->nodes.count; i++) {
        const uir_node_info *node = uir_node_get(module, graph->nodes.data[i]);
        if (node->op == UIR_OP_BROADCAST) UIR_TRY(look_at_broadcast(&n, node));
    }
    context->changes += n.changes;
    return n.changes ? rebuild_all(&n) : UIR_STATUS_OK;
}
