#include "ir/graph/demands.h"

#include <stdio.h>
#include <string.h>

typedef struct asking {
    const uir_module *module;
    const uir_node_info *node;
    uir_demand_visit *visit;
    void *user;
} asking;

static const uir_type *type_of(const asking *a, uint32_t operand) {
    return uir_value_type(a->module, a->node->inputs[operand]);
}

static uir_demand_term number(int64_t value) {
    return (uir_demand_term){.times = value};
}

static uir_demand_term dim_of(const uir_type *type, uint32_t d, const char *of, uint32_t index) {
    uir_demand_term term = {.dims = &type->dims[d], .count = 1, .times = 1};
    snprintf(term.name, sizeof term.name, *of ? "dim %u of %s %u" : "dim %u of the result", d, of, index);
    return term;
}

static uir_demand_term operand_dim(const asking *a, uint32_t operand, uint32_t d) {
    return dim_of(type_of(a, operand), d, "operand", operand);
}

static uir_demand_term elements_of(const uir_type *type, const char *of) {
    uir_demand_term term = {.dims = type->dims, .count = type->rank, .times = 1};
    snprintf(term.name, sizeof term.name, "the number of elements of %s", of);
    return term;
}

static uir_status demand(const asking *a, uir_demand_term left, uir_relation relation, uir_demand_term right) {
    return a->visit(a->user, &(uir_demand){left, right, relation, false});
}

/* Dims of two operands from one on, axis by axis. */
static uir_status demand_equal(const asking *a, uint32_t operand, uint32_t d, uint32_t as, uint32_t as_d) {
    uir_dim x = type_of(a, operand)->dims[d], y = type_of(a, as)->dims[as_d];
    if (uir_dim_equal(x, y)) return UIR_STATUS_OK;
    return demand(a, operand_dim(a, operand, d), UIR_RELATION_EQ, operand_dim(a, as, as_d));
}

/* ---- primitives ---- */
static uir_status of_concat(const asking *a) {
    uint32_t axis = (uint32_t)uir_node_int(a->module, a->node, "axis", 0);
    for (uint32_t i = 1; i < a->node->input_count; i++)
        for (uint32_t d = 0; d < type_of(a, 0)->rank; d++)
            if (d != axis) UIR_TRY(demand_equal(a, i, d, 0, d));
    return UIR_STATUS_OK;
}

static uir_status of_matmul(const asking *a) {
    uint32_t rank = type_of(a, 0)->rank;
    return demand_equal(a, 1, rank - 2, 0, rank - 1);
}

static uir_status of_conv(const asking *a) {
    uir_demand_term channels = operand_dim(a, 1, 1);
    channels.times = uir_node_int(a->module, a->node, "groups", 1);
    if (channels.times != 1)
        snprintf(channels.name, sizeof channels.name, "dim 1 of operand 1 in %lld groups", (long long)channels.times);
    return demand(a, operand_dim(a, 0, 1), UIR_RELATION_EQ, channels);
}

static uir_status of_broadcast(const asking *a) {
    const uir_type *from = type_of(a, 0), *to = uir_value_type(a->module, a->node->outputs[0]);
    for (uint32_t d = 0; d < from->rank; d++) {
        uint32_t at = d + to->rank - from->rank;
        if (uir_dim_equal(from->dims[d], to->dims[at])) continue;
        uir_demand one = {operand_dim(a, 0, d), dim_of(to, at, "", 0), UIR_RELATION_EQ, true};
        snprintf(one.right.name, sizeof one.right.name, "axis %u", at);
        UIR_TRY(a->visit(a->user, &one));
    }
    return UIR_STATUS_OK;
}

static uir_status of_reshape(const asking *a) {
    return demand(a, elements_of(type_of(a, 0), "operand 0"), UIR_RELATION_EQ,
                  elements_of(uir_value_type(a->module, a->node->outputs[0]), "the result"));
}

static uir_status of_gather_nd(const asking *a) {
    uint32_t batch = (uint32_t)uir_node_int(a->module, a->node, "batch", 0);
    for (uint32_t d = 0; d < batch; d++) UIR_TRY(demand_equal(a, 1, d, 0, d));
    return UIR_STATUS_OK;
}

/* Indices are no longer than the data along the axes that are not picked from. */
static uir_status of_gather_elements(const asking *a) {
    uint32_t axis = (uint32_t)uir_node_int(a->module, a->node, "axis", 0);
    for (uint32_t d = 0; d < type_of(a, 1)->rank; d++) {
        if (d == axis || uir_dim_equal(type_of(a, 1)->dims[d], type_of(a, 0)->dims[d])) continue;
        UIR_TRY(demand(a, operand_dim(a, 1, d), UIR_RELATION_LE, operand_dim(a, 0, d)));
    }
    return UIR_STATUS_OK;
}

static uir_status of_arg(const asking *a) {
    uint32_t axis = (uint32_t)uir_node_int(a->module, a->node, "axis", 0);
    return demand(a, operand_dim(a, 0, axis), UIR_RELATION_GE, number(1));
}

static uir_status of_check_sizes(const asking *a) {
    uint32_t count;
    uir_demand_term left = {.dims = uir_node_dims(a->module, a->node, "left", &count), .count = 1, .times = 1},
                    right = {.dims = uir_node_dims(a->module, a->node, "right", &count), .count = 1, .times = 1};
    snprintf(left.name, sizeof left.name, "%s", uir_node_string(a->module, a->node, "of", ""));
    snprintf(right.name, sizeof right.name, "%s", uir_node_string(a->module, a->node, "as", ""));
    uir_relation relation = UIR_RELATION_EQ;
    (void)uir_relation_find(uir_node_string(a->module, a->node, "relation", "=="), &relation);
    bool or_one = uir_node_int(a->module, a->node, "or_one", 0) != 0;
    return a->visit(a->user, &(uir_demand){left, right, relation, or_one});
}

bool uir_is_equality(const uir_module *module, const uir_node_info *node) {
    return node->op == UIR_OP_CHECK_SIZES && !uir_node_find_attribute(module, node, "relation") &&
           !uir_node_int(module, node, "or_one", 0);
}

static uir_status of_scatter_elements(const asking *a) {
    UIR_TRY(of_gather_elements(a));
    for (uint32_t d = 0; d < type_of(a, 1)->rank; d++) UIR_TRY(demand_equal(a, 2, d, 1, d));
    return UIR_STATUS_OK;
}

static uir_status of_scatter_nd(const asking *a) {
    uint32_t lead = type_of(a, 1)->rank - 1, rank = type_of(a, 2)->rank, data = type_of(a, 0)->rank;
    for (uint32_t d = 0; d < rank; d++)
        UIR_TRY(d < lead ? demand_equal(a, 2, d, 1, d) : demand_equal(a, 2, d, 0, d + data - rank));
    return UIR_STATUS_OK;
}

/* A size that must be one number, which the model says by binding it: what a product sums over, channels. */
static uir_status of_bind_dims(const asking *a) {
    const uir_value_info *value = uir_value_info_get(a->module, a->node->inputs[0]);
    uint32_t count;
    const uir_dim *dims = uir_node_dims(a->module, a->node, "dims", &count);
    for (uint32_t i = 0; i < count && value->elements_known && value->element_count == count; i++) {
        uir_symbol symbol;
        if (!uir_dim_is_symbol(a->module->dims, dims[i], &symbol) || !value->elements[i].id) continue;
        uir_symbol_facts facts = uir_dims_symbol_facts(a->module->dims, symbol);
        uir_demand_term term = {.dims = &value->elements[i], .count = 1, .times = 1};
        if (facts.min != facts.max) continue;
        snprintf(term.name, sizeof term.name, "%s", uir_dims_symbol_name(a->module->dims, symbol));
        UIR_TRY(demand(a, term, UIR_RELATION_EQ, number(facts.min)));
    }
    return UIR_STATUS_OK;
}

static const struct {
    uir_op op;
    uir_status (*of)(const asking *a);
} rows[] = {
    {UIR_OP_CONCAT, of_concat},
    {UIR_OP_MATMUL, of_matmul},
    {UIR_OP_CONV, of_conv},
    {UIR_OP_BIND_DIMS, of_bind_dims},
    {UIR_OP_BROADCAST, of_broadcast},
    {UIR_OP_RESHAPE, of_reshape},
    {UIR_OP_GATHER_ND, of_gather_nd},
    {UIR_OP_GATHER_ELEMENTS, of_gather_elements},
    {UIR_OP_SCATTER_ELEMENTS, of_scatter_elements},
    {UIR_OP_ARG_MAX, of_arg},
    {UIR_OP_ARG_MIN, of_arg},
    {UIR_OP_CHECK_SIZES, of_check_sizes},
    {UIR_OP_SCATTER_ND, of_scatter_nd},
};

/* Whatever a primitive makes has no extent below 0: paddings, slices and windows may ask for one. */
static uir_status of_results(const asking *a) {
    if (uir_op_get_row(a->node->op)->traits & UIR_TRAIT_EFFECT) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < a->node->output_count; i++) {
        if (!a->node->outputs[i].id) continue;
        const uir_type *type = uir_value_type(a->module, a->node->outputs[i]);
        if (type->kind != UIR_VALUE_TENSOR || !type->rank_known) continue;
        for (uint32_t d = 0; d < type->rank; d++) {
            uir_symbol symbol; /* which was checked when it was bound */
            if (uir_dim_is_const(a->module->dims, type->dims[d], NULL) ||
                uir_dim_is_symbol(a->module->dims, type->dims[d], &symbol))
                continue;
            UIR_TRY(demand(a, dim_of(type, d, "", 0), UIR_RELATION_GE, number(0)));
        }
    }
    return UIR_STATUS_OK;
}

uir_status uir_demands_of(const uir_module *module, const uir_node_info *node, uir_demand_visit *visit, void *user) {
    asking a = {module, node, visit, user};
    if (uir_op_get_row(node->op)->section != UIR_SECTION_PRIMITIVE || node->op == UIR_OP_GROUP)
        return UIR_STATUS_OK; /* a group's are those of its body */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].op == node->op) UIR_TRY(rows[i].of(&a));
    return of_results(&a);
}

void uir_demand_print(const uir_module *module, const uir_demand_term *term, uir_text *text) {
    if (!term->count || term->times != 1) uir_text_append_format(text, "%lld", (long long)term->times);
    for (uint32_t i = 0; i < term->count; i++) {
        if (i || term->times != 1) uir_text_append_string(text, " * ");
        uir_dim_print(module->dims, term->dims[i], text);
    }
}
