/* The nodes of the model's file: which of them each step stands for, and what became of the others. */
#include "ir/graph/origins.h"
#include "planner/internal.h"

#include <string.h>

typedef uir_vector(uint32_t) word_list;

/* Once a step; again only where every primitive of it is computed elsewhere as well. */
static uir_status add_origin(planner *p, word_list *words, uint32_t origin, bool again) {
    if (!origin || origin >= p->module->origins.count) return UIR_STATUS_OK;
    p->stands[origin] = true;
    uint32_t *at = &p->listed_at[origin];
    if (*at < words->count && words->data[*at] / 2 == origin - 1) {
        if (!again) words->data[*at] &= ~1u;
        return UIR_STATUS_OK;
    }
    *at = words->count;
    return uir_vector_push(&p->arena, words, 2 * (origin - 1) + again);
}

/* What the plan makes steps of by itself stands there. */
static bool is_planned_inside(const uir_node_info *node) {
    return (node->op == UIR_OP_IF || node->op == UIR_OP_LOOP) && uir_plan_find_maker(node) == UIR_PLAN_BY_STEPS;
}

static uir_status add_inside(planner *p, word_list *words, uir_graph_id graph) {
    const uir_graph_info *info = uir_graph_get(p->module, graph);
    for (uint32_t n = 0; n < info->nodes.count; n++) {
        const uir_node_info *node = uir_node_get(p->module, info->nodes.data[n]);
        if (uir_origins_count(p->module, node)) UIR_TRY(add_origin(p, words, node->source, node->is_again));
        for (uint32_t a = 0; a < node->attribute_count; a++)
            if (node->attributes[a].kind == UIR_ATTRIBUTE_GRAPH)
                UIR_TRY(add_inside(p, words, node->attributes[a].value.graph));
    }
    return UIR_STATUS_OK;
}

uir_status uir_pl_list_nodes(planner *p, const uir_node_info *node, uir_plan_list *out_list) {
    word_list words = {0};
    bool group = node->op == UIR_OP_GROUP;
    UIR_TRY(add_origin(p, &words, node->source, group)); /* a group is headed by one of its nodes */
    for (uint32_t a = 0; a < node->attribute_count; a++)
        if (node->attributes[a].kind == UIR_ATTRIBUTE_GRAPH && !is_planned_inside(node))
            UIR_TRY(add_inside(p, &words, node->attributes[a].value.graph));
    return uir_pl_add_list(p, words.data, words.count, out_list);
}

/* How much of a name it is likely to have in common with others: up to the last of what parts its words. */
static size_t place_length(const char *name, size_t length) {
    while (length && !strchr("/.:_", name[length - 1])) length--;
    return length;
}

uir_status uir_pl_add_nodes(planner *p) {
    const uir_module *m = p->module;
    uir_settled_origin *settled;
    UIR_TRY(uir_origins_settle(m, p->stands, &p->arena, &settled));
    for (uint32_t i = 1; i < m->origins.count; i++) {
        const uir_origin *o = &m->origins.data[i];
        uir_plan_node node = {.became = settled[i].into * UIR_PLAN_FATES + settled[i].fate};
        const char *name = uir_string_text(&m->strings, o->name);
        size_t length = strlen(name), place = place_length(name, length);
        if (m->origins.count > UIR_PLAN_MAX_RECORDS) return UIR_STATUS_LIMIT;
        UIR_TRY(uir_pl_add_text(p, name, place, &node.place));
        UIR_TRY(uir_pl_add_text(p, name + place, length - place, &node.name));
        UIR_TRY(
            uir_pl_add_text(p, uir_string_text(&m->strings, o->op), uir_string_length(&m->strings, o->op), &node.op));
        UIR_TRY(uir_vector_push(&p->arena, &p->nodes, node));
    }
    return UIR_STATUS_OK;
}
