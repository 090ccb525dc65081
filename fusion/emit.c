/* Clusters become group nodes: bodies are built, and the graph's list is put in an order in which all is made before it
 * is used. */
#include "fusion/clusters.h"
#include "ir/graph/origins.h"

#include <stdio.h>
#include <string.h>

typedef uir_vector(uir_value_id) value_list;

typedef struct emitting {
    uir_clusters *c;
    uir_diagnostics *diagnostics;
    uir_value_id *inside; /* by value: what stands for it in the body being built; none outside of one */
    bool *is_emitted;     /* by place: a body holds it */
    double *work;         /* by origin: of the group being named; zeros outside of that */
} emitting;

static bool is_grouped(const uir_clusters *c, uint32_t cluster) {
    return !c->clusters.data[cluster].is_plain && c->clusters.data[cluster].places.count;
}

/* ---- bodies ---- */
static uir_status add_body_value(emitting *e, uir_value_id from, uir_value_id *out_value) {
    uir_value_info info = *uir_value_info_get(e->c->module, from);
    UIR_TRY(uir_module_add_value(e->c->module, "", info.type, out_value));
    uir_value_info *made = uir_value_info_get(e->c->module, *out_value);
    made->elements = info.elements;
    made->element_count = info.element_count;
    made->elements_known = info.elements_known;
    made->layout = info.layout;
    e->inside[from.id] = *out_value;
    return UIR_STATUS_OK;
}

static uir_status add_operands(emitting *e, uir_graph_id body, const uir_cluster *cluster, value_list *operands) {
    for (uint32_t i = 0; i < cluster->places.count; i++) {
        const uir_node_info *node = uir_clusters_node(e->c, cluster->places.data[i]);
        for (uint32_t k = 0; k < node->input_count; k++) {
            uir_value_id value = node->inputs[k], made;
            uint32_t maker = uir_clusters_maker(e->c, value);
            if (e->inside[value.id].id || (maker != UIR_FUSION_NONE && uir_node_set_has(&cluster->places, maker)))
                continue;
            bool is_index = e->c->items[cluster->places.data[i]].class == UIR_FUSION_CLASS_GATHER; /* lies in memory */
            if (uir_fusion_is_scalar_constant(e->c->module, value) && !is_index) continue;
            UIR_TRY(add_body_value(e, value, &made));
            UIR_TRY(uir_graph_add_input(e->c->module, body, made));
            UIR_TRY(uir_vector_push(e->c->arena, operands, value));
        }
    }
    return UIR_STATUS_OK;
}

static uir_status add_body_node(emitting *e, uir_graph_id body, uint32_t place) {
    uir_module *module = e->c->module;
    uir_node_info node = *uir_clusters_node(e->c, place);
    uir_value_id *inputs, *outputs;
    UIR_TRY_ALLOCATE(inputs, uir_arena_allocate_array(e->c->arena, node.input_count + 1u, sizeof *inputs));
    UIR_TRY_ALLOCATE(outputs, uir_arena_allocate_array(e->c->arena, node.output_count + 1u, sizeof *outputs));
    for (uint32_t i = 0; i < node.input_count; i++)
        inputs[i] = e->inside[node.inputs[i].id].id ? e->inside[node.inputs[i].id] : node.inputs[i];
    for (uint32_t i = 0; i < node.output_count; i++) UIR_TRY(add_body_value(e, node.outputs[i], &outputs[i]));
    node.inputs = inputs;
    node.outputs = outputs;
    node.is_again |= e->is_emitted[place];
    e->is_emitted[place] = true;
    uir_node_id made;
    return uir_graph_add_node(module, body, &node, &made);
}

static uir_status add_results(emitting *e, uir_graph_id body, uint32_t index, value_list *results) {
    const uir_cluster *cluster = &e->c->clusters.data[index];
    const uir_candidate as_it_is = {cluster->places, {&index, 1, 1}};
    for (uint32_t i = 0; i < cluster->places.count; i++) {
        uint32_t place = cluster->places.data[i];
        if (!uir_candidate_gives(e->c, &as_it_is, place)) continue;
        uir_value_id value = uir_clusters_node(e->c, place)->outputs[0];
        UIR_TRY(uir_graph_add_output(e->c->module, body, e->inside[value.id]));
        UIR_TRY(uir_vector_push(e->c->arena, results, value));
    }
    return UIR_STATUS_OK;
}

static void forget_inside(emitting *e, const uir_cluster *cluster) {
    for (uint32_t i = 0; i < cluster->places.count; i++) {
        const uir_node_info *node = uir_clusters_node(e->c, cluster->places.data[i]);
        for (uint32_t k = 0; k < node->input_count; k++) e->inside[node->inputs[k].id].id = 0;
        for (uint32_t k = 0; k < node->output_count; k++) e->inside[node->outputs[k].id].id = 0;
    }
}

static uir_status intern(uir_module *module, const char *text, uir_string *out_string) {
    return uir_strings_intern(&module->strings, text, strlen(text), out_string);
}

static uir_status make_attributes(emitting *e, uir_graph_id body, const uir_cluster *cluster, uir_attribute *attributes,
                                  uint32_t *out_count) {
    uir_module *module = e->c->module;
    attributes[0] = (uir_attribute){.kind = UIR_ATTRIBUTE_GRAPH, .value.graph = body};
    UIR_TRY(intern(module, "body", &attributes[0].name));
    *out_count = 1;
    if (!cluster->trace.count) return UIR_STATUS_OK;
    uir_string *lines;
    UIR_TRY_ALLOCATE(lines, uir_arena_allocate_array(e->c->arena, cluster->trace.count, sizeof *lines));
    for (uint32_t i = 0; i < cluster->trace.count; i++) UIR_TRY(intern(module, cluster->trace.data[i], &lines[i]));
    attributes[1] =
        (uir_attribute){.kind = UIR_ATTRIBUTE_STRINGS, .count = cluster->trace.count, .value.strings = lines};
    UIR_TRY(intern(module, "trace", &attributes[1].name));
    *out_count = 2;
    return UIR_STATUS_OK;
}

/* The group is known by the node of the file that most of its work is for; of equal ones by the last. */
static void name_group(emitting *e, const uir_cluster *cluster, uir_node_info *group) {
    const uir_clusters *c = e->c;
    double most = -1;
    for (uint32_t i = 0; i < cluster->places.count; i++) {
        const uir_node_info *node = uir_clusters_node(c, cluster->places.data[i]);
        if (!uir_string_length(&c->module->strings, node->name) && node->origin == UIR_OP_NONE) continue;
        double own = uir_nominal_work(c->module, c->nominal, c->symbol_count, node);
        if (node->source) own = e->work[node->source] += own;
        if (own < most) continue;
        most = own;
        group->name = node->name;
        group->origin = node->origin;
        group->source = node->source;
    }
    for (uint32_t i = 0; i < cluster->places.count; i++)
        e->work[uir_clusters_node(c, cluster->places.data[i])->source] = 0;
}

static uir_status emit_group(emitting *e, uint32_t index) {
    uir_clusters *c = e->c;
    const uir_cluster *cluster = &c->clusters.data[index];
    value_list operands = {0}, results = {0};
    uir_graph_id body;
    char name[32];
    snprintf(name, sizeof name, "group_%u", c->module->graphs.count);
    UIR_TRY(uir_module_add_graph(c->module, c->graph, name, &body));
    UIR_TRY(add_operands(e, body, cluster, &operands));
    for (uint32_t i = 0; i < cluster->places.count; i++) UIR_TRY(add_body_node(e, body, cluster->places.data[i]));
    UIR_TRY(add_results(e, body, index, &results));
    forget_inside(e, cluster);
    uir_attribute attributes[2];
    uir_node_info group = {.op = UIR_OP_GROUP,
                           .inputs = operands.data,
                           .input_count = operands.count,
                           .outputs = results.data,
                           .output_count = results.count,
                           .attributes = attributes};
    UIR_TRY(make_attributes(e, body, cluster, attributes, &group.attribute_count));
    name_group(e, cluster, &group);
    uir_node_id made;
    return uir_graph_add_node(c->module, c->graph, &group, &made);
}

/* ---- order ---- */
typedef struct visit {
    uint32_t cluster, place, use; /* where its uses have been looked at up to */
} visit;

typedef struct ordering {
    uir_clusters *c;
    uint8_t *state; /* by cluster: 0 not seen, 1 on the stack, 2 done */
    uir_vector(visit) stack;
    uir_node_set order;
} ordering;

/* The next cluster that must come before the one on top; NONE when all have. */
static uint32_t next_before(ordering *o, visit *top) {
    const uir_cluster *cluster = &o->c->clusters.data[top->cluster];
    for (; top->place < cluster->places.count; top->place++, top->use = 0) {
        const uir_node_set *uses = &o->c->items[cluster->places.data[top->place]].uses;
        while (top->use < uses->count) {
            uint32_t use = uses->data[top->use++];
            if (!uir_node_set_has(&cluster->places, use)) return o->c->items[use].home;
        }
    }
    return UIR_FUSION_NONE;
}

static uir_status order_from(ordering *o, uint32_t first, uir_diagnostics *diagnostics) {
    if (o->state[first]) return UIR_STATUS_OK;
    o->state[first] = 1;
    UIR_TRY(uir_vector_push(o->c->arena, &o->stack, (visit){first, 0, 0}));
    while (o->stack.count) {
        visit *top = &o->stack.data[o->stack.count - 1];
        uint32_t before = next_before(o, top);
        if (before == UIR_FUSION_NONE) {
            o->state[top->cluster] = 2;
            UIR_TRY(uir_vector_push(o->c->arena, &o->order, top->cluster));
            o->stack.count--;
        } else if (o->state[before] == 1) {
            return uir_error(diagnostics, UIR_STATUS_INTERNAL, NULL, "fusion made groups that depend on each other");
        } else if (!o->state[before]) {
            o->state[before] = 1;
            UIR_TRY(uir_vector_push(o->c->arena, &o->stack, (visit){before, 0, 0}));
        }
    }
    return UIR_STATUS_OK;
}

/* Near the old order: what was last needed first comes first. */
static uir_status order_clusters(uir_clusters *c, uir_diagnostics *diagnostics, uir_node_set *out_order) {
    ordering o = {.c = c};
    UIR_TRY_ALLOCATE(o.state, uir_arena_allocate_array(c->arena, c->clusters.count + 1u, 1));
    for (uint32_t p = 0; p < c->count; p++) {
        uint32_t home = c->items[p].home;
        if (home == UIR_FUSION_NONE) continue;
        const uir_node_set *places = &c->clusters.data[home].places;
        if (places->count && places->data[places->count - 1] == p) UIR_TRY(order_from(&o, home, diagnostics));
    }
    *out_order = o.order;
    return UIR_STATUS_OK;
}

uir_status uir_clusters_emit(uir_clusters *c, uir_diagnostics *diagnostics) {
    emitting e = {.c = c, .diagnostics = diagnostics};
    uir_node_set order = {0};
    UIR_TRY_ALLOCATE(e.inside, uir_arena_allocate_array(c->arena, c->value_count + 1u, sizeof *e.inside));
    UIR_TRY_ALLOCATE(e.is_emitted, uir_arena_allocate_array(c->arena, c->count + 1u, sizeof *e.is_emitted));
    UIR_TRY_ALLOCATE(e.work, uir_arena_allocate_array(c->arena, c->module->origins.count + 1u, sizeof *e.work));
    UIR_TRY(order_clusters(c, diagnostics, &order));
    uir_graph_get(c->module, c->graph)->nodes.count = 0;
    for (uint32_t i = 0; i < order.count; i++) {
        const uir_cluster *cluster = &c->clusters.data[order.data[i]];
        if (is_grouped(c, order.data[i])) {
            UIR_TRY(emit_group(&e, order.data[i]));
            continue;
        }
        for (uint32_t k = 0; k < cluster->places.count; k++)
            UIR_TRY(uir_vector_push(&c->module->arena, &uir_graph_get(c->module, c->graph)->nodes,
                                    c->items[cluster->places.data[k]].node));
    }
    return UIR_STATUS_OK;
}
