/* Demands on sizes that only a run's can break: to the plan, with what its message says. */
#include "ir/graph/demands.h"
#include "planner/internal.h"

#include <string.h>

typedef struct checking {
    planner *p;
    const uir_node_info *node;
    uint32_t block;
} checking;

static uir_dim multiply(planner *p, const uir_demand_term *term) {
    uir_dim product = uir_dim_const(p->module->dims, term->times);
    for (uint32_t i = 0; i < term->count; i++) product = uir_dim_mul(p->module->dims, product, term->dims[i]);
    return product;
}

static uir_status add_word(planner *p, const char *word, uint32_t *out_text) {
    return uir_pl_add_text(p, word, strlen(word), out_text);
}

static uir_status add_dims(planner *p, const uir_demand_term *term, uint32_t *out_text) {
    uir_text text;
    uir_text_init(&text, &p->allocator);
    uir_demand_print(p->module, term, &text);
    uir_status status = uir_text_status(&text);
    if (status == UIR_STATUS_OK) status = uir_pl_add_text(p, text.data ? text.data : "", text.length, out_text);
    uir_text_deinit(&text);
    return status;
}

/* Asked already, by another node that runs before: the first that asks is the first that would fail. */
static bool is_asked(const planner *p, const uir_plan_check *check) {
    for (uint32_t i = 0; i < p->checks.count; i++) {
        const uir_plan_check *k = &p->checks.data[i];
        if ((k->block == 0 || k->block == check->block) && k->relation == check->relation && k->left == check->left &&
            k->right == check->right && k->or_one <= check->or_one)
            return true;
    }
    return false;
}

static uir_status add_check(void *user, const uir_demand *demand) {
    const checking *c = user;
    planner *p = c->p;
    uir_dims *dims = p->module->dims;
    uir_dim left = multiply(p, &demand->left), right = multiply(p, &demand->right);
    uir_plan_check check = {.relation = demand->relation, .or_one = demand->or_one, .block = c->block};
    if (!left.id || !right.id) return UIR_STATUS_OK; /* too large for any run */
    if (uir_dim_compare(dims, left, demand->relation, right) == UIR_TRUE) return UIR_STATUS_OK;
    if (demand->or_one && uir_dim_compare(dims, left, UIR_RELATION_EQ, uir_dim_const(dims, 1)) == UIR_TRUE)
        return UIR_STATUS_OK;
    UIR_TRY(uir_pl_add_expression(p, &p->scope, left, &check.left));
    UIR_TRY(uir_pl_add_expression(p, &p->scope, right, &check.right));
    if (is_asked(p, &check)) return UIR_STATUS_OK;
    uir_location where = uir_node_location(p->module, c->node);
    UIR_TRY(add_word(p, where.node ? where.node : "", &check.node));
    UIR_TRY(add_word(p, where.op ? where.op : "", &check.op));
    UIR_TRY(add_word(p, uir_op_said_name(c->node->op), &check.primitive));
    UIR_TRY(add_word(p, demand->left.name, &check.left_name));
    UIR_TRY(add_word(p, demand->right.name, &check.right_name));
    UIR_TRY(add_dims(p, &demand->left, &check.left_dims));
    UIR_TRY(add_dims(p, &demand->right, &check.right_dims));
    return uir_vector_push(&p->arena, &p->checks, check);
}

uir_status uir_pl_add_checks(planner *p, const uir_node_info *node, uint32_t block) {
    const uir_attribute *body = node->op == UIR_OP_GROUP ? uir_node_find_attribute(p->module, node, "body") : NULL;
    if (!body) return uir_demands_of(p->module, node, add_check, &(checking){p, node, block});
    const uir_graph_info *graph = uir_graph_get(p->module, body->value.graph);
    for (uint32_t n = 0; n < graph->nodes.count; n++) {
        const uir_node_info *inner = uir_node_get(p->module, graph->nodes.data[n]);
        UIR_TRY(uir_demands_of(p->module, inner, add_check, &(checking){p, inner, block}));
    }
    return UIR_STATUS_OK;
}
