/* Makers of control flow: ops whose bodies the other makers fill. */
#include "tests/ir/graph/random_graph_pool.h"

/* A boolean scalar out of any number. */
static uir_value_id make_condition(generator *g) {
    uir_value_id a = any_of(g, UIR_DTYPES_BOOL);
    uir_builder *b = &g->f->builder;
    if (!a.id) {
        a = any_of(g, UIR_DTYPES_NUMBER);
        if (!a.id) return a;
        a = uir_build_cast(b, a, UIR_DTYPE_BOOL);
    }
    int64_t axes[UIR_MAX_RANK];
    uint32_t rank = g->f->builder.status == UIR_STATUS_OK ? type_of(g, a)->rank : 0;
    for (uint32_t d = 0; d < rank; d++) axes[d] = d;
    return uir_build_reduce(b, UIR_OP_REDUCE_MAX, a, axes, rank, false);
}

static uir_builder enter_body(generator *g, uir_graph_id *out_graph) {
    uir_builder outer = g->f->builder;
    assert_int_equal(uir_module_add_graph(module_of(g), outer.graph, "body", out_graph), UIR_STATUS_OK);
    uir_builder_init(&g->f->builder, module_of(g), *out_graph);
    g->depth++;
    return outer;
}

static void leave_body(generator *g, uir_builder outer, uint32_t pool_count) {
    uir_status status = g->f->builder.status;
    g->f->builder = outer;
    g->f->builder.status = status;
    g->pool_count = pool_count;
    g->depth--;
}

static void give_out(generator *g, uir_graph_id graph, uir_value_id value) {
    if (g->f->builder.status == UIR_STATUS_OK)
        assert_int_equal(uir_graph_add_output(module_of(g), graph, value), UIR_STATUS_OK);
}

void make_if(generator *g) {
    if (g->depth >= 2) return;
    uir_value_id condition = make_condition(g), result;
    if (!condition.id) return;
    uint32_t mark = g->pool_count;
    uir_graph_id bodies[2];
    uir_dtype dtype = UIR_DTYPE_NONE;
    for (int i = 0; i < 2; i++) {
        uir_builder outer = enter_body(g, &bodies[i]);
        for (int64_t n = pick(g, 0, 4); n > 0 && g->f->builder.status == UIR_STATUS_OK; n--) make_one(g);
        uir_value_id value = any(g);
        if (dtype && type_of(g, value)->dtype != dtype) { /* both must give one element type */
            int64_t none = 0;
            value =
                uir_build_constant(&g->f->builder, random_tensor(&g->random, module_of(g)->allocator, dtype, 0, &none));
        }
        if (value.id) dtype = type_of(g, value)->dtype;
        give_out(g, bodies[i], value);
        leave_body(g, outer, mark);
        if (g->f->builder.status != UIR_STATUS_OK) return;
    }
    uir_builder *b = &g->f->builder;
    uir_attribute attributes[] = {uir_attribute_graph(b, "then", bodies[0]), uir_attribute_graph(b, "else", bodies[1])};
    uir_build_node(b, UIR_OP_IF, &condition, 1, attributes, 2, &result, 1);
    add(g, result);
}

static uir_value_id body_input(generator *g, uir_graph_id graph, uir_type type) {
    uir_value_id value;
    assert_int_equal(uir_module_add_value(module_of(g), "", type, &value), UIR_STATUS_OK);
    assert_int_equal(uir_graph_add_input(module_of(g), graph, value), UIR_STATUS_OK);
    return value;
}

/* A loop that carries one value of fixed shape and collects another. */
void make_loop(generator *g) {
    if (g->depth >= 2) return;
    uir_value_id start = any_of(g, UIR_DTYPES_NUMBER), results[2];
    if (!start.id) return;
    uir_builder *b = &g->f->builder;
    int64_t trips = pick(g, 0, 3);
    uir_value_id inputs[3] = {uir_build_integer_scalar(b, UIR_DTYPE_I64, trips), {0}, start};
    if (chance(g, 30)) inputs[1] = make_condition(g);
    uint32_t mark = g->pool_count;
    uir_graph_id body;
    uir_builder outer = enter_body(g, &body);
    uir_type scalar = {UIR_VALUE_TENSOR, UIR_DTYPE_I64, true, 0, NULL};
    uir_value_id step = body_input(g, body, scalar);
    scalar.dtype = UIR_DTYPE_BOOL;
    uir_value_id condition = body_input(g, body, scalar);
    uir_value_id carried = body_input(g, body, *type_of(g, start));
    add(g, step);
    add(g, carried);
    for (int64_t n = pick(g, 0, 3); n > 0 && b->status == UIR_STATUS_OK; n--) make_one(g);
    uir_value_id next = uir_build_binary(b, UIR_OP_ADD, carried, uir_build_cast(b, step, type_of(g, start)->dtype));
    uir_value_id row = any(g);
    give_out(g, body,
             chance(g, 70) ? condition
                           : uir_build_binary(b, UIR_OP_LT, step, uir_build_integer_scalar(b, UIR_DTYPE_I64, 1)));
    give_out(g, body, next);
    give_out(g, body, row);
    leave_body(g, outer, mark);
    if (b->status != UIR_STATUS_OK) return;
    uir_attribute attribute = uir_attribute_graph(b, "body", body);
    uir_build_node(b, UIR_OP_LOOP, inputs, 3, &attribute, 1, results, 2);
    add(g, results[0]);
    add(g, results[1]);
}
