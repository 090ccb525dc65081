/* Local functions: inlined with their attributes; cycles, depth and blow-up stopped. */
#include "tests/frontend/make.h"

#include <stdio.h>

static blob make_function(const char *name, const char *inputs, const char *outputs) {
    blob function = blob_new();
    put_text(&function, FUNCTION_NAME, name);
    put_text(&function, FUNCTION_DOMAIN, "local");
    put_names(&function, FUNCTION_INPUT, inputs);
    put_names(&function, FUNCTION_OUTPUT, outputs);
    put_message(&function, FUNCTION_OPSET, make_opset("", 13));
    put_message(&function, FUNCTION_OPSET, make_opset("local", 1));
    return function;
}

static blob make_call(const char *function, const char *inputs, const char *outputs) {
    blob node = make_node(function, "call", inputs, outputs);
    put_text(&node, NODE_DOMAIN, "local");
    return node;
}

static void calls_are_inlined(void **state) {
    (void)state;
    blob graph = make_graph_of(make_call("Twice", "x", "t"));
    put_message(&graph, GRAPH_NODE, make_call("Twice", "t", "y"));
    blob model = make_model(graph), function = make_function("Twice", "a", "b");
    put_message(&function, FUNCTION_NODE, make_node("Relu", "f1", "a", "m"));
    put_message(&function, FUNCTION_NODE, make_node("Neg", "f2", "m", "b"));
    put_message(&model, MODEL_FUNCTION, function);
    loaded l;
    load_model(&l, model, NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    assert_int_equal(main_graph(&l)->nodes.count, 4);
    assert_int_equal(main_node(&l, 3)->op, UIR_OP_ONNX_NEG);
    assert_int_equal(main_node(&l, 0)->since_version, 13); /* by the function's own opset */
    assert_int_equal(main_node(&l, 2)->inputs[0].id, main_node(&l, 1)->outputs[0].id);
    /* A call's outputs are called as the caller calls them; the function's own names stay unique. */
    assert_string_equal(value_name(&l, main_node(&l, 1)->outputs[0]), "t");
    assert_string_equal(value_name(&l, main_node(&l, 3)->outputs[0]), "y");
    assert_string_not_equal(value_name(&l, main_node(&l, 0)->outputs[0]), value_name(&l, main_node(&l, 2)->outputs[0]));
    unload(&l);
}

static void function_outer_names_are_not_seen(void **state) {
    (void)state;
    blob model = make_model(make_graph_of(make_call("F", "x", "y"))), function = make_function("F", "a", "b");
    put_message(&function, FUNCTION_NODE, make_node("Relu", "f", "x", "b"));
    put_message(&model, MODEL_FUNCTION, function);
    expect_failure(model, UIR_STATUS_BAD_FILE, "'x' is undefined");
}

/* An output keeps the outermost caller's name through calls within calls, also where others are left out. */
static void outputs_keep_the_callers_names(void **state) {
    (void)state;
    blob outer = make_function("Outer", "a", "b,c"), inner = make_function("Inner", "a", "b,c");
    put_message(&outer, FUNCTION_NODE, make_call("Inner", "a", "b,c"));
    put_message(&inner, FUNCTION_NODE, make_node("Relu", "f", "a", "b"));
    put_message(&inner, FUNCTION_NODE, make_node("Neg", "g", "a", "c"));
    blob model = make_model(make_graph_of(make_call("Outer", "x", "-,y")));
    put_message(&model, MODEL_FUNCTION, outer);
    put_message(&model, MODEL_FUNCTION, inner);
    loaded l;
    load_model(&l, model, NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    assert_int_equal(main_node(&l, 1)->op, UIR_OP_ONNX_NEG);
    assert_string_equal(value_name(&l, main_node(&l, 1)->outputs[0]), "y");
    assert_int_equal(main_graph(&l)->outputs.data[0].id, main_node(&l, 1)->outputs[0].id);
    unload(&l);
}

/* Calls 64 deep, 256 attributes, 4096 domains: and one more of each. */
static void limits_are_where_they_are(void **state) {
    (void)state;
    for (int over = 0; over < 2; over++) {
        blob model = make_model(make_graph_of(make_call("F0", "x", "y")));
        for (int i = 0; i < 64 + over; i++) {
            char name[16], next[16];
            snprintf(name, sizeof name, "F%d", i);
            snprintf(next, sizeof next, "F%d", i + 1);
            blob function = make_function(name, "a", "b");
            put_message(&function, FUNCTION_NODE,
                        i + 1 < 64 + over ? make_call(next, "a", "b") : make_node("Relu", "f", "a", "b"));
            put_message(&model, MODEL_FUNCTION, function);
        }
        loaded l;
        load_model(&l, model, NULL);
        assert_int_equal(l.status, over ? UIR_STATUS_LIMIT : UIR_STATUS_OK);
        unload(&l);

        for (int defaults = 0; defaults < 2; defaults++) {
            blob call = make_call("F", "x", "y"), function = make_function("F", "a", "b");
            for (int i = 0; i < 256 + over; i++) {
                char name[16];
                snprintf(name, sizeof name, "a%d", i);
                if (defaults)
                    put_message(&function, FUNCTION_DEFAULT, make_int_attribute(name, i));
                else
                    put_message(&call, NODE_ATTRIBUTE, make_int_attribute(name, i));
            }
            put_message(&function, FUNCTION_NODE, make_node("Relu", "f", "a", "b"));
            model = make_model(make_graph_of(call));
            put_message(&model, MODEL_FUNCTION, function);
            load_model(&l, model, NULL);
            assert_int_equal(l.status, over ? UIR_STATUS_LIMIT : UIR_STATUS_OK);
            unload(&l);
        }

        model = make_model(make_graph_of(make_node("Relu", "n", "x", "y")));
        for (int i = 0; i < 4095 + over; i++) {
            char domain[16];
            snprintf(domain, sizeof domain, "d%d", i);
            put_message(&model, MODEL_OPSET, make_opset(domain, 1000 * i)); /* their versions are their own */
        }
        load_model(&l, model, NULL);
        assert_int_equal(l.status, over ? UIR_STATUS_LIMIT : UIR_STATUS_OK);
        unload(&l);
    }
}

/* y = Outer(x), which passes its attribute on to Inner, whose Softmax takes it. */
static blob attribute_model(const int64_t *given) {
    blob call = make_call("Outer", "x", "y");
    if (given) put_message(&call, NODE_ATTRIBUTE, make_int_attribute("outer_axis", *given));
    blob model = make_model(make_graph_of(call));
    blob outer = make_function("Outer", "a", "b"), inner = make_function("Inner", "a", "b");
    blob inner_call = make_call("Inner", "a", "b");
    put_message(&inner_call, NODE_ATTRIBUTE, make_reference("inner_axis", KIND_INT, "outer_axis"));
    put_message(&outer, FUNCTION_NODE, inner_call);
    put_text(&outer, FUNCTION_ATTRIBUTE, "outer_axis");
    blob softmax = make_node("Softmax", "s", "a", "b");
    put_message(&softmax, NODE_ATTRIBUTE, make_reference("axis", KIND_INT, "inner_axis"));
    put_message(&inner, FUNCTION_NODE, softmax);
    put_message(&inner, FUNCTION_DEFAULT, make_int_attribute("inner_axis", 5));
    put_message(&model, MODEL_FUNCTION, outer);
    put_message(&model, MODEL_FUNCTION, inner);
    return model;
}

static void attributes_pass_through_calls(void **state) {
    (void)state;
    loaded l;
    int64_t given = -1;
    load_model(&l, attribute_model(&given), NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    assert_int_equal(uir_node_int(l.module, main_node(&l, 0), "axis", 99), -1);
    unload(&l);
    load_model(&l, attribute_model(NULL), NULL); /* not given: the inner default */
    assert_int_equal(l.status, UIR_STATUS_OK);
    assert_int_equal(uir_node_int(l.module, main_node(&l, 0), "axis", 99), 5);
    unload(&l);
}

static void missing_inputs_are_absent(void **state) {
    (void)state;
    blob model = make_model(make_graph_of(make_call("F", "x", "y"))), function = make_function("F", "a,low", "b");
    put_message(&function, FUNCTION_NODE, make_node("Clip", "f", "a,low,a", "b"));
    put_message(&model, MODEL_FUNCTION, function);
    loaded l;
    load_model(&l, model, NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    assert_int_equal(main_node(&l, 0)->inputs[1].id, 0);
    unload(&l);
}

static void overloads_are_told_apart(void **state) {
    (void)state;
    blob call = make_call("F", "x", "y");
    put_text(&call, NODE_OVERLOAD, "two");
    blob model = make_model(make_graph_of(call));
    for (int i = 0; i < 2; i++) {
        blob function = make_function("F", "a", "b");
        put_message(&function, FUNCTION_NODE, make_node(i ? "Neg" : "Relu", "f", "a", "b"));
        put_text(&function, FUNCTION_OVERLOAD, i ? "two" : "one");
        put_message(&model, MODEL_FUNCTION, function);
    }
    loaded l;
    load_model(&l, model, NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    assert_int_equal(main_node(&l, 0)->op, UIR_OP_ONNX_NEG);
    unload(&l);
}

static void two_functions_of_one_name_are_refused(void **state) {
    (void)state;
    blob model = make_model(make_graph_of(make_call("F", "x", "y")));
    for (int i = 0; i < 2; i++) {
        blob function = make_function("F", "a", "b");
        put_message(&function, FUNCTION_NODE, make_node("Relu", "f", "a", "b"));
        put_message(&model, MODEL_FUNCTION, function);
    }
    expect_failure(model, UIR_STATUS_BAD_FILE, "two functions are called 'F'");
}

static void cycles_are_found(void **state) {
    (void)state;
    blob model = make_model(make_graph_of(make_call("F", "x", "y")));
    blob f = make_function("F", "a", "b"), g = make_function("G", "a", "b");
    put_message(&f, FUNCTION_NODE, make_call("G", "a", "b"));
    put_message(&g, FUNCTION_NODE, make_call("F", "a", "b"));
    put_message(&model, MODEL_FUNCTION, f);
    put_message(&model, MODEL_FUNCTION, g);
    expect_failure(model, UIR_STATUS_BAD_FILE, "calls itself");
}

static void cycles_through_subgraphs_are_found(void **state) {
    (void)state;
    blob model = make_model(make_graph_of(make_call("F", "x", "y")));
    blob f = make_function("F", "a", "b"), node = make_node("If", "choice", "c", "b");
    static const char *const branches[] = {"then_branch", "else_branch"};
    for (int i = 0; i < 2; i++) {
        blob body = blob_new();
        put_message(&body, GRAPH_NODE, make_call("F", "a", "r"));
        put_message(&body, GRAPH_OUTPUT, make_value("r", UIR_DTYPE_F32, NULL));
        put_message(&node, NODE_ATTRIBUTE, make_graph_attribute(branches[i], body));
    }
    put_message(&f, FUNCTION_NODE, make_node("Cast", "n", "a", "c"));
    put_message(&f, FUNCTION_NODE, node);
    put_message(&model, MODEL_FUNCTION, f);
    expect_failure(model, UIR_STATUS_BAD_FILE, "calls itself");
}

static void references_inside_subgraphs_are_resolved(void **state) {
    (void)state;
    blob call = make_call("F", "x,c", "y");
    put_message(&call, NODE_ATTRIBUTE, make_int_attribute("which", 1));
    blob graph = make_graph_of(call);
    put_message(&graph, GRAPH_INPUT, make_value("c", UIR_DTYPE_BOOL, ""));
    blob model = make_model(graph), f = make_function("F", "a,c", "b"), node = make_node("If", "choice", "c", "b");
    static const char *const branches[] = {"then_branch", "else_branch"};
    for (int i = 0; i < 2; i++) {
        blob body = blob_new(), softmax = make_node("Softmax", "s", "a", "r");
        put_message(&softmax, NODE_ATTRIBUTE, make_reference("axis", KIND_INT, "which"));
        put_message(&body, GRAPH_NODE, softmax);
        put_message(&body, GRAPH_OUTPUT, make_value("r", UIR_DTYPE_F32, NULL));
        put_message(&node, NODE_ATTRIBUTE, make_graph_attribute(branches[i], body));
    }
    put_message(&f, FUNCTION_NODE, node);
    put_message(&model, MODEL_FUNCTION, f);
    loaded l;
    load_model(&l, model, NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    const uir_attribute *body = uir_node_find_attribute(l.module, main_node(&l, 0), "else_branch");
    uir_node_id inner = uir_graph_get(l.module, body->value.graph)->nodes.data[0];
    assert_int_equal(uir_node_int(l.module, uir_node_get(l.module, inner), "axis", 99), 1);
    unload(&l);
}

/* Each function calls the next `calls` times: calls^levels nodes in all. */
static blob chain_model(int levels, int calls) {
    char name[20], next[20], in[20], out[20];
    blob model = make_model(make_graph_of(make_call("F0", "x", "y")));
    for (int level = 0; level < levels; level++) {
        snprintf(name, sizeof name, "F%d", level);
        snprintf(next, sizeof next, "F%d", level + 1);
        blob f = make_function(name, "v0", "last");
        for (int i = 0; i < calls; i++) {
            snprintf(in, sizeof in, "v%d", i);
            snprintf(out, sizeof out, "v%d", i + 1);
            const char *output = i + 1 == calls ? "last" : out;
            put_message(&f, FUNCTION_NODE,
                        level + 1 == levels ? make_node("Relu", "n", in, output) : make_call(next, in, output));
        }
        put_message(&model, MODEL_FUNCTION, f);
    }
    return model;
}

static void blow_up_is_stopped(void **state) {
    (void)state;
    loaded l;
    load_model(&l, chain_model(10, 2), NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    assert_int_equal(l.info.node_count, 1024);
    unload(&l);
    expect_failure(chain_model(60, 2), UIR_STATUS_LIMIT, "the graph is too large");
    expect_failure(chain_model(5000, 1), UIR_STATUS_LIMIT, "deep");
}

static void too_many_operands_are_refused(void **state) {
    (void)state;
    blob model = make_model(make_graph_of(make_call("F", "x,x", "y"))), f = make_function("F", "a", "b");
    put_message(&f, FUNCTION_NODE, make_node("Relu", "n", "a", "b"));
    put_message(&model, MODEL_FUNCTION, f);
    expect_failure(model, UIR_STATUS_BAD_FILE, "2 inputs and 1 outputs for a function that has 1 and 1");
}

static void an_output_nobody_makes_is_a_problem(void **state) {
    (void)state;
    blob model = make_model(make_graph_of(make_call("F", "x", "y"))), f = make_function("F", "a", "b");
    put_message(&f, FUNCTION_NODE, make_node("Relu", "n", "a", "c"));
    put_message(&model, MODEL_FUNCTION, f);
    expect_failure(model, UIR_STATUS_BAD_FILE, "output 'b' is undefined");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_inlined),
        cmocka_unit_test(outputs_keep_the_callers_names),
        cmocka_unit_test(limits_are_where_they_are),
        cmocka_unit_test(function_outer_names_are_not_seen),
        cmocka_unit_test(attributes_pass_through_calls),
        cmocka_unit_test(missing_inputs_are_absent),
        cmocka_unit_test(overloads_are_told_apart),
        cmocka_unit_test(two_functions_of_one_name_are_refused),
        cmocka_unit_test(cycles_are_found),
        cmocka_unit_test(cycles_through_subgraphs_are_found),
        cmocka_unit_test(references_inside_subgraphs_are_resolved),
        cmocka_unit_test(blow_up_is_stopped),
        cmocka_unit_test(too_many_operands_are_refused),
        cmocka_unit_test(an_output_nobody_makes_is_a_problem),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
