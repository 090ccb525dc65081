/* The slack of inputs and outputs: the symbols that count it, and whether their tensors are packed all the same. */
#include "planner/internal.h"

uir_value_id uir_pl_find_source(const uir_module *m, uir_value_id value) {
    for (;;) {
        uir_node_id producer = uir_value_info_get(m, value)->producer;
        if (!producer.id || uir_node_get(m, producer)->op != UIR_OP_RESHAPE) return value;
        value = uir_node_get(m, producer)->inputs[0];
    }
}

static uir_plan_port *find_port(planner *p, uir_value_id value) {
    const uir_graph_info *main = uir_graph_get(p->module, p->module->main);
    for (uint32_t i = 0; i < main->inputs.count; i++)
        if (main->inputs.data[i].id == value.id) return &p->inputs.data[i];
    for (uint32_t i = 0; i < main->outputs.count; i++)
        if (main->outputs.data[i].id == value.id) return &p->outputs.data[i];
    return NULL;
}

uir_status uir_pl_add_port_slack(planner *p, const uir_node_info *node, int64_t k, int64_t axis, uint32_t *out) {
    uir_value_id value = {0};
    if (k >= 0 && k < node->input_count) value = uir_pl_find_source(p->module, node->inputs[k]);
    if (k >= node->input_count && k - node->input_count < node->output_count)
        value = node->outputs[k - node->input_count];
    uir_plan_port *port = value.id ? find_port(p, value) : NULL;
    if (!port || axis < 0 || axis >= (int64_t)uir_value_type(p->module, value)->rank)
        return uir_pl_fail(p, node, UIR_STATUS_BAD_FILE, "its slack belongs to no input or output");
    if (port->slack == UIR_PLAN_NONE) {
        UIR_TRY(uir_pl_add_fresh_dim(p, out));
        port->slack = *out;
        port->slack_axis = (uint32_t)axis;
    }
    *out = port->slack;
    return UIR_STATUS_OK;
}

/* Marks the tensor that `t` stands for. `root` has for each tensor itself or one that it stands for: what is passed on
 * the way points at the end from then on. */
static void mark_root(uint32_t *root, bool *packed, uint32_t t) {
    uint32_t end = t;
    if (t == UIR_PLAN_NONE) return;
    while (root[end] != end) end = root[end];
    packed[end] = true;
    for (uint32_t next; t != end; t = next) {
        next = root[t];
        root[t] = end;
    }
}

/* Which tensors are taken as packed: what another step than a launch touches, and what a body gives. */
static void find_packed(planner *p, uint32_t *root, bool *packed) {
    for (uint32_t t = 0; t < p->tensors.count; t++)
        root[t] = p->tensors.data[t].storage == UIR_PLAN_STORAGE_ALIAS ? p->tensors.data[t].index : t;
    for (uint32_t b = 0; b < p->bodies.count; b++) {
        const uir_pl_block *body = &p->bodies.data[b];
        for (uint32_t i = 0; i < body->outputs.count; i++) mark_root(root, packed, body->outputs.data[i]);
        for (uint32_t i = 0; i < body->steps.count; i++) {
            const uir_plan_step *s = &body->steps.data[i];
            if (s->kind == UIR_PLAN_STEP_LAUNCH) continue;
            for (uint32_t k = 0; k < s->inputs.count; k++)
                mark_root(root, packed, p->words.data[s->inputs.first + k].value);
            for (uint32_t k = 0; k < s->outputs.count; k++)
                mark_root(root, packed, p->words.data[s->outputs.first + k].value);
        }
    }
}

static void finish_port_slack(const planner *p, const bool *packed, uir_plan_port *port) {
    if (port->slack == UIR_PLAN_NONE) return;
    port->slack = (uint32_t)p->operations.data[p->expressions.data[port->slack].first].value;
    if (packed[port->tensor]) port->slack_axis = UIR_PLAN_NONE;
}

uir_status uir_pl_finish_slack(planner *p) {
    uint32_t *root;
    bool *packed;
    UIR_TRY_ALLOCATE(root, uir_arena_allocate_array(&p->arena, (size_t)p->tensors.count + 1, sizeof *root));
    UIR_TRY_ALLOCATE(packed, uir_arena_allocate_array(&p->arena, (size_t)p->tensors.count + 1, sizeof *packed));
    find_packed(p, root, packed);
    for (uint32_t i = 0; i < p->inputs.count; i++) finish_port_slack(p, packed, &p->inputs.data[i]);
    for (uint32_t i = 0; i < p->outputs.count; i++) finish_port_slack(p, packed, &p->outputs.data[i]);
    return UIR_STATUS_OK;
}
