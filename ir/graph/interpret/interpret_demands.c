/* What a node demands of sizes, asked before it runs. */
#include "ir/graph/demands.h"
#include "ir/graph/interpret/interpret.h"

/* False where a size has no value here: what the primitive itself finds is said then. */
static bool weigh(const uir_call *call, const uir_demand_term *term, int64_t *out_value) {
    int64_t value = term->times, extent;
    for (uint32_t i = 0; i < term->count; i++)
        if (!uir_call_knows(call, term->dims[i], &extent) || __builtin_mul_overflow(value, extent, &value))
            return false;
    *out_value = value;
    return true;
}

static uir_status refuse(uir_call *call, const uir_demand *demand, int64_t left, int64_t right) {
    static const int64_t one = 1;
    uir_text texts[2];
    char message[512];
    for (int i = 0; i < 2; i++) {
        uir_text_init(&texts[i], call->allocator);
        uir_demand_print(call->module, i ? &demand->right : &demand->left, &texts[i]);
    }
    uir_demand_describe((uir_demand_side){demand->left.name, texts[0].data ? texts[0].data : "", left},
                        demand->relation, demand->or_one ? &one : NULL,
                        (uir_demand_side){demand->right.name, texts[1].data ? texts[1].data : "", right}, message,
                        sizeof message);
    for (int i = 0; i < 2; i++) uir_text_deinit(&texts[i]);
    return uir_call_fail(call, UIR_STATUS_BAD_DATA, "%s", message);
}

static uir_status check_demand(void *user, const uir_demand *demand) {
    uir_call *call = user;
    int64_t left, right;
    if (!weigh(call, &demand->left, &left) || !weigh(call, &demand->right, &right)) return UIR_STATUS_OK;
    if ((demand->or_one && left == 1) || uir_relation_holds(demand->relation, left, right)) return UIR_STATUS_OK;
    return refuse(call, demand, left, right);
}

/* It is nothing but what it demands. */
uir_status uir_interpret_check_sizes(uir_call *call) {
    (void)call;
    return UIR_STATUS_OK;
}

/* A group that its kernel runs: what each node of its body demands, since no kernel asks. */
static uir_status check_body(const uir_call *group) {
    const uir_attribute *body = uir_node_find_attribute(group->module, group->node, "body");
    const uir_graph_info *graph = body ? uir_graph_get(group->module, body->value.graph) : NULL;
    for (uint32_t n = 0; graph && n < graph->nodes.count; n++) {
        uir_call inner = *group;
        inner.node_id = graph->nodes.data[n];
        inner.node = uir_node_get(group->module, inner.node_id);
        UIR_TRY(uir_demands_of(inner.module, inner.node, check_demand, &inner));
    }
    return UIR_STATUS_OK;
}

uir_status uir_call_check_demands(uir_call *call) {
    if (call->node->op == UIR_OP_GROUP && call->interpreter->options.run_group) return check_body(call);
    return uir_demands_of(call->module, call->node, check_demand, call);
}
