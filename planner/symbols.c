/* The symbols that a node mentions, and whether the sizes of an output are known when its source is computed. */
#include "planner/internal.h"

#include <string.h>

typedef struct symbol_list {
    planner *p;
    uir_vector(uir_plan_integer) ids;
    uir_vector(uir_dim) dims;
    bool *seen; /* by symbol */
    uir_status status;
} symbol_list;

static void note_symbol(void *user, uir_symbol symbol) {
    symbol_list *list = user;
    if (list->seen[symbol.id] || list->status != UIR_STATUS_OK) return;
    list->seen[symbol.id] = true;
    list->status = uir_vector_push(&list->p->arena, &list->ids, ((uir_plan_integer){symbol.id}));
    uir_dim dim = uir_dim_symbol(list->p->module->dims, symbol);
    if (list->status == UIR_STATUS_OK) list->status = uir_vector_push(&list->p->arena, &list->dims, dim);
}

static void note_value(symbol_list *list, uir_value_id value) {
    if (!value.id) return;
    const uir_type *type = uir_value_type(list->p->module, value);
    for (uint32_t d = 0; type->rank_known && d < type->rank; d++)
        uir_dim_visit_symbols(list->p->module->dims, type->dims[d], note_symbol, list);
}

static void note_node(symbol_list *list, const uir_node_info *node) {
    const uir_module *module = list->p->module;
    for (uint32_t i = 0; i < node->input_count; i++) note_value(list, node->inputs[i]);
    for (uint32_t i = 0; i < node->output_count; i++) note_value(list, node->outputs[i]);
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        const uir_attribute *a = &node->attributes[i];
        for (uint32_t d = 0; a->kind == UIR_ATTRIBUTE_DIMS && d < a->count; d++)
            uir_dim_visit_symbols(module->dims, a->value.dims[d], note_symbol, list);
        if (a->kind != UIR_ATTRIBUTE_GRAPH) continue;
        const uir_graph_info *body = uir_graph_get(module, a->value.graph);
        for (uint32_t k = 0; k < body->inputs.count; k++) note_value(list, body->inputs.data[k]);
        for (uint32_t n = 0; n < body->nodes.count; n++) note_node(list, uir_node_get(module, body->nodes.data[n]));
    }
}

uir_status uir_pl_add_symbols(planner *p, const uir_node_info *node) {
    symbol_list list = {.p = p};
    UIR_TRY_ALLOCATE(list.seen, uir_arena_allocate_array(&p->arena, (size_t)uir_dims_symbol_count(p->module->dims) + 1,
                                                         sizeof *list.seen));
    note_node(&list, node);
    UIR_TRY(list.status);
    uir_plan_attribute ids = {0, UIR_PLAN_INTEGERS, p->integers.count, list.ids.count},
                       values = {0, UIR_PLAN_SIZES, 0, list.dims.count};
    for (uint32_t i = 0; i < list.ids.count; i++) UIR_TRY(uir_vector_push(&p->arena, &p->integers, list.ids.data[i]));
    uir_plan_list expressions;
    UIR_TRY(uir_pl_add_expressions(p, &p->scope, list.dims.data, list.dims.count, &expressions));
    values.first = expressions.first;
    UIR_TRY(uir_pl_add_text(p, "symbols", strlen("symbols"), &ids.name));
    UIR_TRY(uir_pl_add_text(p, "values", strlen("values"), &values.name));
    UIR_TRY(uir_vector_push(&p->arena, &p->attributes, ids));
    return uir_vector_push(&p->arena, &p->attributes, values);
}

uir_status uir_pl_is_sized(planner *p, uir_value_id value, uir_value_id source, bool *out_sized) {
    const uir_module *m = p->module;
    const uir_graph_info *main = uir_graph_get(m, m->main);
    uir_node_id producer = uir_value_info_get(m, source)->producer;
    symbol_list list = {.p = p};
    uint32_t known;
    *out_sized = true;
    if (value.id == source.id) return UIR_STATUS_OK;
    UIR_TRY_ALLOCATE(
        list.seen, uir_arena_allocate_array(&p->arena, (size_t)uir_dims_symbol_count(m->dims) + 1, sizeof *list.seen));
    for (uint32_t i = 0; i < main->inputs.count; i++) note_value(&list, main->inputs.data[i]);
    for (uint32_t i = 0; i < main->nodes.count; i++) {
        const uir_node_info *node = uir_node_get(m, main->nodes.data[i]);
        uint32_t count = 0;
        const uir_dim *dims = node->op == UIR_OP_BIND_DIMS ? uir_node_dims(m, node, "dims", &count) : NULL;
        for (uint32_t d = 0; d < count; d++) uir_dim_visit_symbols(m->dims, dims[d], note_symbol, &list);
        for (uint32_t k = 0; k < node->output_count; k++) note_value(&list, node->outputs[k]);
        if (main->nodes.data[i].id == producer.id) break;
    }
    known = list.ids.count;
    note_value(&list, value);
    *out_sized = list.ids.count == known;
    return list.status;
}
