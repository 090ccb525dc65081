/* Type inference of control flow, host ops, sequences and optionals. */
#include "ir/graph/infer/infer.h"
#include <string.h>

/* ---- dims that leave a body ---- */

/* A set of symbols: those that get their value inside a body and mean nothing outside. */
typedef struct symbol_set {
    const uir_dims *dims;
    bool *member; /* by symbol id */
    bool hit;     /* result of a visit */
} symbol_set;

static void add_plain(symbol_set *set, uir_dim dim) {
    uir_symbol symbol;
    if (uir_dim_is_symbol(set->dims, dim, &symbol)) set->member[symbol.id] = true;
}

static void visit_member(void *user, uir_symbol symbol) {
    symbol_set *set = user;
    set->hit |= set->member[symbol.id];
}

/* Adds what nodes of the graph bind. */
static uir_status add_bound_inside(uir_inference *inference, uir_graph_id graph, symbol_set *set) {
    const uir_module *module = inference->module;
    set->dims = module->dims;
    if (!set->member)
        UIR_TRY_ALLOCATE(set->member, uir_arena_allocate_array(inference->arena,
                                                               uir_dims_symbol_count(module->dims) + 1, sizeof(bool)));
    const uir_graph_info *info = uir_graph_get(module, graph);
    for (uint32_t n = 0; n < info->nodes.count; n++) {
        const uir_node_info *node = uir_node_get(module, info->nodes.data[n]);
        if (!(uir_op_get_row(node->op)->traits & UIR_TRAIT_EFFECT)) continue;
        uint32_t count;
        const uir_dim *dims = uir_node_dims(module, node, "dims", &count);
        for (uint32_t i = 0; i < count; i++) add_plain(set, dims[i]);
        for (uint32_t i = 0; i < node->output_count; i++) {
            const uir_type *type = uir_value_type(module, node->outputs[i]);
            for (uint32_t d = 0; type->rank_known && d < type->rank; d++) add_plain(set, type->dims[d]);
        }
    }
    return UIR_STATUS_OK;
}

/* The dim when it means the same outside the body, else none. */
static uir_dim leave(symbol_set *set, uir_dim dim) {
    set->hit = false;
    if (dim.id) uir_dim_visit_symbols(set->dims, dim, visit_member, set);
    return set->hit ? UIR_DIM_NONE : dim;
}

static const uir_graph_info *body_of(uir_inference *inference, const char *name, uir_graph_id *out_graph) {
    const uir_attribute *attribute = uir_node_find_attribute(inference->module, inference->node, name);
    uint32_t id = attribute->value.graph.id;
    if (!id || id >= inference->module->graphs.count) return NULL;
    *out_graph = attribute->value.graph;
    return uir_graph_get(inference->module, attribute->value.graph);
}

/* The type of something that is one of two types: what they share. */
static uir_status join_types(uir_inference *inference, uint32_t index, const uir_type *a, const uir_type *b,
                             symbol_set *set) {
    uir_type *type = &inference->types[index];
    if (a->kind == UIR_VALUE_OPTIONAL && b->kind != a->kind) { /* a plain value stands for a full optional */
        *type = (uir_type){.kind = b->kind, .dtype = b->dtype};
        return UIR_STATUS_OK;
    }
    if (a->kind != b->kind || (a->dtype && b->dtype && a->dtype != b->dtype))
        return uir_infer_fail(inference, "result %u is %s in one place and %s in another", index,
                              uir_dtype_name(a->dtype), uir_dtype_name(b->dtype));
    *type = (uir_type){.kind = a->kind, .dtype = a->dtype ? a->dtype : b->dtype};
    if (!a->rank_known || !b->rank_known || a->rank != b->rank) return UIR_STATUS_OK;
    uir_dim *dims;
    UIR_TRY_ALLOCATE(dims, uir_arena_allocate_array(inference->arena, a->rank + 1, sizeof *dims));
    for (uint32_t d = 0; d < a->rank; d++)
        if (uir_infer_equal(inference, a->dims[d], b->dims[d])) dims[d] = leave(set, a->dims[d]);
    *type = (uir_type){a->kind, type->dtype, true, a->rank, dims};
    return UIR_STATUS_OK;
}

uir_status uir_infer_if(uir_inference *inference) {
    UIR_TRY(uir_infer_check_scalar(inference, 0, UIR_DTYPE_BOOL));
    if (!uir_infer_has(inference, 0)) return uir_infer_fail(inference, "the condition is missing");
    const char *names[2] = {"then", "else"};
    const uir_graph_info *bodies[2];
    symbol_set set = {0};
    for (int i = 0; i < 2; i++) {
        uir_graph_id graph;
        bodies[i] = body_of(inference, names[i], &graph);
        if (!bodies[i]) return uir_infer_fail(inference, "graph %s is missing", names[i]);
        if (bodies[i]->inputs.count) return uir_infer_fail(inference, "graph %s has inputs", names[i]);
        if (bodies[i]->outputs.count != inference->node->output_count)
            return uir_infer_fail(inference, "%u results, but graph %s returns %u", inference->node->output_count,
                                  names[i], bodies[i]->outputs.count);
        UIR_TRY(add_bound_inside(inference, graph, &set));
    }
    for (uint32_t i = 0; i < inference->node->output_count; i++)
        UIR_TRY(join_types(inference, i, uir_value_type(inference->module, bodies[0]->outputs.data[i]),
                           uir_value_type(inference->module, bodies[1]->outputs.data[i]), &set));
    return UIR_STATUS_OK;
}

/* Checks one carried value: what goes in at first, what the body takes, what it gives back. */
static uir_status check_carried(uir_inference *inference, uint32_t index, const uir_type *start, const uir_type *input,
                                const uir_type *output, symbol_set *set) {
    const uir_type *types[3] = {start, input, output};
    for (int i = 1; i < 3; i++) {
        if (types[i]->kind != start->kind || (types[i]->dtype && start->dtype && types[i]->dtype != start->dtype))
            return uir_infer_fail(inference, "carried value %u is %s at first and %s in the body", index,
                                  uir_dtype_name(start->dtype), uir_dtype_name(types[i]->dtype));
        if (input->rank_known && start->kind == UIR_VALUE_TENSOR && types[i]->rank_known && start->rank_known &&
            start->rank != input->rank)
            return uir_infer_fail(inference, "carried value %u has rank %u, the body expects rank %u", index,
                                  start->rank, input->rank);
    }
    UIR_TRY(join_types(inference, index, start, output, set));
    /* A dim that the body takes as a symbol of its own and gives back unchanged is always the first one's. */
    uir_type *type = &inference->types[index];
    if (!type->rank_known || !input->rank_known || input->rank != type->rank) return UIR_STATUS_OK;
    uir_dim *dims = (uir_dim *)type->dims; /* made by join_types */
    for (uint32_t d = 0; d < type->rank; d++)
        if (uir_infer_equal(inference, input->dims[d], output->dims[d]) && !leave(set, input->dims[d]).id)
            dims[d] = start->dims[d];
    return UIR_STATUS_OK;
}

uir_status uir_infer_loop(uir_inference *inference) {
    const uir_module *module = inference->module;
    const uir_node_info *node = inference->node;
    UIR_TRY(uir_infer_check_scalar(inference, 0, UIR_DTYPE_I64));
    UIR_TRY(uir_infer_check_scalar(inference, 1, UIR_DTYPE_BOOL));
    uir_graph_id graph;
    const uir_graph_info *body = body_of(inference, "body", &graph);
    if (!body) return uir_infer_fail(inference, "graph body is missing");
    uint32_t carried = node->input_count - 2;
    if (body->inputs.count != node->input_count)
        return uir_infer_fail(inference, "%u operands, but the body expects %u", node->input_count, body->inputs.count);
    if (body->outputs.count < 1 + carried || body->outputs.count - 1 != node->output_count)
        return uir_infer_fail(inference, "%u results and %u carried values, but the body returns %u",
                              node->output_count, carried, body->outputs.count);
    const uir_type *step = uir_value_type(module, body->inputs.data[0]);
    if (step->dtype != UIR_DTYPE_I64 || !step->rank_known || step->rank)
        return uir_infer_fail(inference, "the body's iteration number is not i64 of rank 0");
    const uir_value_id conditions[2] = {body->inputs.data[1], body->outputs.data[0]};
    for (int i = 0; i < 2; i++) {
        const uir_type *type = uir_value_type(module, conditions[i]);
        if (type->kind != UIR_VALUE_TENSOR || type->dtype != UIR_DTYPE_BOOL || !type->rank_known || type->rank)
            return uir_infer_fail(inference, "the body's condition is not bool of rank 0");
    }
    symbol_set set = {0};
    UIR_TRY(add_bound_inside(inference, graph, &set));
    for (uint32_t i = 0; i < carried; i++) {
        if (!node->inputs[i + 2].id) return uir_infer_fail(inference, "carried value %u is missing", i);
        const uir_type *start = uir_infer_operand(inference, i + 2);
        const uir_type *input = uir_value_type(module, body->inputs.data[i + 2]);
        for (uint32_t d = 0; input->rank_known && d < input->rank; d++)
            if (!start->rank_known || d >= start->rank || !uir_dim_equal(start->dims[d], input->dims[d]))
                add_plain(&set, input->dims[d]);
    }
    for (uint32_t i = 0; i < carried; i++)
        UIR_TRY(check_carried(inference, i, uir_infer_operand(inference, i + 2),
                              uir_value_type(module, body->inputs.data[i + 2]),
                              uir_value_type(module, body->outputs.data[i + 1]), &set));
    for (uint32_t i = carried; i < node->output_count; i++) {
        const uir_type *row = uir_value_type(module, body->outputs.data[i + 1]);
        if (row->kind != UIR_VALUE_TENSOR) return uir_infer_fail(inference, "scanned result %u is not a tensor", i);
        if (!row->rank_known) {
            inference->types[i] = (uir_type){.kind = UIR_VALUE_TENSOR, .dtype = row->dtype};
            continue;
        }
        uir_dim *dims; /* dims[0], the number of iterations, stays none */
        UIR_TRY_ALLOCATE(dims, uir_infer_result(inference, i, row->dtype, row->rank + 1));
        for (uint32_t d = 0; d < row->rank; d++) dims[d + 1] = leave(&set, row->dims[d]);
    }
    return UIR_STATUS_OK;
}

/* ---- fused groups ---- */

static uir_status check_group_body(uir_inference *inference, const uir_graph_info *body) {
    for (uint32_t n = 0; n < body->nodes.count; n++) {
        const uir_node_info *node = uir_node_get(inference->module, body->nodes.data[n]);
        if (uir_op_get_row(node->op)->traits & (UIR_TRAIT_EFFECT | UIR_TRAIT_CONTROL | UIR_TRAIT_RANDOM | UIR_TRAIT_CHECK))
            return uir_infer_fail(inference, "the body must not contain %s", uir_op_name(node->op));
    }
    return UIR_STATUS_OK;
}

uir_status uir_infer_group(uir_inference *inference) {
    const uir_module *module = inference->module;
    const uir_node_info *node = inference->node;
    uir_graph_id graph;
    const uir_graph_info *body = body_of(inference, "body", &graph);
    if (!body) return uir_infer_fail(inference, "graph body is missing");
    if (body->inputs.count != node->input_count)
        return uir_infer_fail(inference, "%u operands, but the body expects %u", node->input_count, body->inputs.count);
    if (body->outputs.count != node->output_count)
        return uir_infer_fail(inference, "%u results, but the body returns %u", node->output_count,
                              body->outputs.count);
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!uir_infer_has(inference, i)) return uir_infer_fail(inference, "operand %u is missing", i);
        const uir_type *outside = uir_infer_operand(inference, i),
                       *inside = uir_value_type(module, body->inputs.data[i]);
        bool fits = outside->kind == UIR_VALUE_TENSOR && inside->kind == UIR_VALUE_TENSOR && outside->rank_known &&
                    inside->rank_known && outside->dtype == inside->dtype && outside->rank == inside->rank;
        for (uint32_t d = 0; fits && d < inside->rank; d++)
            fits = uir_infer_equal(inference, outside->dims[d], inside->dims[d]);
        if (!fits) return uir_infer_fail(inference, "operand %u does not have the type that the body expects", i);
    }
    UIR_TRY(check_group_body(inference, body));
    for (uint32_t i = 0; i < node->output_count; i++) {
        const uir_type *type = uir_value_type(module, body->outputs.data[i]);
        if (type->kind != UIR_VALUE_TENSOR || !type->rank_known)
            return uir_infer_fail(inference, "result %u is not a tensor of known rank", i);
        UIR_TRY(uir_infer_result_dims(inference, i, type->dtype, type->dims, type->rank));
    }
    return UIR_STATUS_OK;
}

/* ---- host ops ---- */

uir_status uir_infer_top_k(uir_inference *inference) {
    const uir_type *a = uir_infer_operand(inference, 0);
    uint32_t axis;
    UIR_TRY(uir_infer_axis(inference, "axis", a->rank, &axis));
    const uir_dim *k;
    UIR_TRY(uir_infer_dims(inference, "k", 1, &k));
    if (uir_dim_compare(inference->dims, k[0], UIR_RELATION_GT, a->dims[axis]) == UIR_TRUE)
        return uir_infer_fail(inference, "k exceeds the extent of axis %u", axis);
    for (uint32_t i = 0; i < 2; i++) {
        uir_dim *dims;
        UIR_TRY_ALLOCATE(dims, uir_infer_result(inference, i, i ? UIR_DTYPE_I64 : a->dtype, a->rank));
        memcpy(dims, a->dims, a->rank * sizeof *dims);
        dims[axis] = k[0];
    }
    return UIR_STATUS_OK;
}

uir_status uir_infer_non_zero(uir_inference *inference) {
    const uir_type *a = uir_infer_operand(inference, 0);
    uir_dim *dims;
    UIR_TRY_ALLOCATE(dims, uir_infer_result(inference, 0, UIR_DTYPE_I64, 2));
    dims[0] = uir_dim_const(inference->dims, a->rank ? a->rank : 1); /* a scalar counts as one element of an axis */
    return uir_infer_check_made(inference, dims, 1);
}

uir_status uir_infer_non_max_suppression(uir_inference *inference) {
    for (uint32_t i = 0; i < 2; i++) {
        UIR_TRY(uir_infer_check_tensor(inference, i, UIR_DTYPES_FLOAT));
        const uir_type *type = uir_infer_operand(inference, i);
        if (type->rank != 3 || type->dtype != UIR_DTYPE_F32)
            return uir_infer_fail(inference, "operand %u is not f32 of rank 3", i);
    }
    const uir_type *boxes = uir_infer_operand(inference, 0), *scores = uir_infer_operand(inference, 1);
    uir_dim four = uir_dim_const(inference->dims, 4);
    UIR_TRY(uir_infer_check_made(inference, &four, 1));
    if (uir_infer_unequal(inference, boxes->dims[2], four) ||
        uir_infer_unequal(inference, boxes->dims[0], scores->dims[0]) ||
        uir_infer_unequal(inference, boxes->dims[1], scores->dims[2]))
        return uir_infer_fail(inference, "boxes are not [batch, n, 4] for scores [batch, classes, n]");
    UIR_TRY(uir_infer_check_scalar(inference, 2, UIR_DTYPE_I64));
    UIR_TRY(uir_infer_check_scalar(inference, 3, UIR_DTYPE_F32));
    UIR_TRY(uir_infer_check_scalar(inference, 4, UIR_DTYPE_F32));
    uir_dim *dims;
    UIR_TRY_ALLOCATE(dims, uir_infer_result(inference, 0, UIR_DTYPE_I64, 2));
    dims[1] = uir_dim_const(inference->dims, 3);
    return uir_infer_check_made(inference, dims + 1, 1);
}

uir_status uir_infer_unique(uir_inference *inference) {
    const uir_type *a = uir_infer_operand(inference, 0);
    bool flat = !uir_node_find_attribute(inference->module, inference->node, "axis");
    uint32_t axis = 0;
    if (!flat) UIR_TRY(uir_infer_axis(inference, "axis", a->rank, &axis));
    uir_dim *dims;
    UIR_TRY_ALLOCATE(dims, uir_infer_result(inference, 0, a->dtype, flat ? 1 : a->rank));
    if (!flat) memcpy(dims, a->dims, a->rank * sizeof *dims);
    dims[axis] = UIR_DIM_NONE;
    for (uint32_t i = 1; i < 4; i++) UIR_TRY_ALLOCATE(dims, uir_infer_result(inference, i, UIR_DTYPE_I64, 1));
    UIR_TRY_ALLOCATE(dims, uir_infer_result(inference, 2, UIR_DTYPE_I64, 1)); /* one per element or slice */
    dims[0] = uir_dim_const(inference->dims, 1);
    for (uint32_t d = 0; flat && d < a->rank; d++) dims[0] = uir_dim_mul(inference->dims, dims[0], a->dims[d]);
    if (!flat) dims[0] = a->dims[axis];
    return uir_infer_check_made(inference, dims, 1);
}

uir_status uir_infer_random(uir_inference *inference) {
    uint32_t rank;
    const uir_dim *dims = uir_node_dims(inference->module, inference->node, "dims", &rank);
    uir_dtype dtype = uir_node_dtype(inference->module, inference->node, "dtype", UIR_DTYPE_NONE);
    if (!uir_dtype_is_float(dtype))
        return uir_infer_fail(inference, "element type %s is not supported", uir_dtype_name(dtype));
    return uir_infer_result_dims(inference, 0, dtype, dims, rank);
}

/* ---- sequences and optionals ---- */

/* Only constants of an element's dims are certain of one element: the others of a sequence may differ. */
static uir_status element_result(uir_inference *inference, const uir_type *list) {
    uir_type *type = &inference->types[0];
    *type =
        (uir_type){.kind = UIR_VALUE_TENSOR, .dtype = list->dtype, .rank_known = list->rank_known, .rank = list->rank};
    if (!list->rank_known) return UIR_STATUS_OK;
    uir_dim *dims;
    UIR_TRY_ALLOCATE(dims, uir_arena_allocate_array(inference->arena, list->rank + 1, sizeof *dims));
    for (uint32_t d = 0; d < list->rank; d++)
        if (uir_dim_is_const(inference->dims, list->dims[d], NULL)) dims[d] = list->dims[d];
    type->dims = dims;
    return UIR_STATUS_OK;
}

/* Widens result 0, a list, by one more element type. */
static uir_status widen(uir_inference *inference, const uir_type *element) {
    uir_type *list = &inference->types[0];
    if (element->kind != UIR_VALUE_TENSOR) return uir_infer_fail(inference, "an element is not a tensor");
    if (list->dtype && element->dtype && list->dtype != element->dtype)
        return uir_infer_fail(inference, "an element is %s, the others %s", uir_dtype_name(element->dtype),
                              uir_dtype_name(list->dtype));
    if (!list->dtype) list->dtype = element->dtype;
    if (!list->rank_known) return UIR_STATUS_OK;
    list->rank_known = element->rank_known && element->rank == list->rank;
    if (!list->rank_known) return UIR_STATUS_OK;
    uir_dim *dims; /* one in which elements differ stays none */
    UIR_TRY_ALLOCATE(dims, uir_arena_allocate_array(inference->arena, list->rank + 1, sizeof *dims));
    for (uint32_t d = 0; d < list->rank; d++)
        if (list->dims[d].id && uir_infer_equal(inference, list->dims[d], element->dims[d])) dims[d] = list->dims[d];
    list->dims = dims;
    return UIR_STATUS_OK;
}

static uir_status check_list(uir_inference *inference, uir_value_kind kind) {
    if (!uir_infer_has(inference, 0)) return uir_infer_fail(inference, "operand 0 is missing");
    if (uir_infer_operand(inference, 0)->kind != kind)
        return uir_infer_fail(inference, "operand 0 is not a%s",
                              kind == UIR_VALUE_SEQUENCE ? " sequence" : "n optional");
    return UIR_STATUS_OK;
}

/* The position operand: an integer scalar. */
static uir_status check_position(uir_inference *inference, uint32_t index) {
    if (!uir_infer_has(inference, index)) return UIR_STATUS_OK;
    UIR_TRY(uir_infer_check_tensor(inference, index, UIR_DTYPES_INTEGER));
    uint32_t rank = uir_infer_operand(inference, index)->rank;
    return rank ? uir_infer_fail(inference, "the position has rank %u", rank) : UIR_STATUS_OK;
}

uir_status uir_infer_sequence_construct(uir_inference *inference) {
    uir_dtype dtype = uir_node_dtype(inference->module, inference->node, "dtype", UIR_DTYPE_NONE);
    int64_t rank = uir_node_int(inference->module, inference->node, "rank", -1);
    inference->types[0] = (uir_type){.kind = UIR_VALUE_SEQUENCE, .dtype = dtype};
    if (rank > UIR_MAX_RANK)
        return uir_infer_fail(inference, "the elements have rank %lld, above the maximum", (long long)rank);
    if (rank >= 0 && !inference->node->input_count) { /* of an empty one every dim is open */
        uir_dim *dims;
        UIR_TRY_ALLOCATE(dims, uir_arena_allocate_array(inference->arena, (uint32_t)rank + 1, sizeof *dims));
        inference->types[0] = (uir_type){UIR_VALUE_SEQUENCE, dtype, true, (uint32_t)rank, dims};
    }
    for (uint32_t i = 0; i < inference->node->input_count; i++) {
        if (!uir_infer_has(inference, i)) return uir_infer_fail(inference, "operand %u is missing", i);
        const uir_type *element = uir_infer_operand(inference, i);
        if (!i && element->rank_known) {
            inference->types[0] = *element;
            inference->types[0].kind = UIR_VALUE_SEQUENCE;
            if (dtype) inference->types[0].dtype = dtype;
        }
        UIR_TRY(widen(inference, element));
    }
    return UIR_STATUS_OK;
}

uir_status uir_infer_sequence_at(uir_inference *inference) {
    UIR_TRY(check_list(inference, UIR_VALUE_SEQUENCE));
    if (!uir_infer_has(inference, 1)) return uir_infer_fail(inference, "the position is missing");
    UIR_TRY(check_position(inference, 1));
    return element_result(inference, uir_infer_operand(inference, 0));
}

uir_status uir_infer_sequence_insert(uir_inference *inference) {
    UIR_TRY(check_list(inference, UIR_VALUE_SEQUENCE));
    UIR_TRY(check_position(inference, 2));
    if (!uir_infer_has(inference, 1)) return uir_infer_fail(inference, "the element is missing");
    inference->types[0] = *uir_infer_operand(inference, 0);
    return widen(inference, uir_infer_operand(inference, 1));
}

uir_status uir_infer_sequence_erase(uir_inference *inference) {
    UIR_TRY(check_list(inference, UIR_VALUE_SEQUENCE));
    UIR_TRY(check_position(inference, 1));
    inference->types[0] = *uir_infer_operand(inference, 0);
    return UIR_STATUS_OK;
}

uir_status uir_infer_sequence_length(uir_inference *inference) {
    UIR_TRY(check_list(inference, UIR_VALUE_SEQUENCE));
    return uir_infer_result_dims(inference, 0, UIR_DTYPE_I64, NULL, 0);
}

uir_status uir_infer_optional(uir_inference *inference) {
    inference->types[0] = (uir_type){.kind = UIR_VALUE_OPTIONAL};
    if (!uir_infer_has(inference, 0)) return UIR_STATUS_OK;
    inference->types[0] = *uir_infer_operand(inference, 0);
    inference->types[0].kind = UIR_VALUE_OPTIONAL;
    return UIR_STATUS_OK;
}

uir_status uir_infer_optional_has_element(uir_inference *inference) {
    return uir_infer_result_dims(inference, 0, UIR_DTYPE_BOOL, NULL, 0);
}

uir_status uir_infer_optional_get_element(uir_inference *inference) {
    if (!uir_infer_has(inference, 0)) return uir_infer_fail(inference, "operand 0 is missing");
    const uir_type *a = uir_infer_operand(inference, 0);
    if (a->kind != UIR_VALUE_OPTIONAL) { /* ONNX lets a plain value stand for a full optional */
        inference->types[0] = *a;
        return UIR_STATUS_OK;
    }
    UIR_TRY(element_result(inference, a));
    if (uir_node_int(inference->module, inference->node, "sequence", 0)) inference->types[0].kind = UIR_VALUE_SEQUENCE;
    return UIR_STATUS_OK;
}
