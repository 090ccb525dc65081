/* Sound models: what becomes of graphs, names, types, initializers, functions; and models that are wrong in what they
 * say. */
#include "tests/frontend/make.h"

#include <stdio.h>

static void a_model_becomes_a_module(void **state) {
    (void)state;
    loaded l;
    blob graph = make_graph_of(make_node("Relu", "the node", "x", "y"));
    load_model(&l, make_model(graph), NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    assert_int_equal(main_graph(&l)->inputs.count, 1);
    assert_int_equal(main_graph(&l)->outputs.count, 1);
    assert_int_equal(main_node(&l, 0)->op, UIR_OP_ONNX_RELU);
    assert_int_equal(main_node(&l, 0)->since_version, 14);
    assert_string_equal(uir_string_text(&l.module->strings, main_node(&l, 0)->name), "the node");
    assert_string_equal(l.info.input_names[0], "x");
    assert_string_equal(l.info.output_names[0], "y");
    assert_int_equal(l.module->opset, 20);
    unload(&l);
}

static void versions_outside_the_range_are_refused(void **state) {
    (void)state;
    for (int ir = 0; ir <= 14; ir++) {
        blob model = blob_new();
        put_int(&model, MODEL_IR_VERSION, ir);
        put_message(&model, MODEL_OPSET, make_opset("", 20));
        put_message(&model, MODEL_GRAPH, make_graph_of(make_node("Relu", "n", "x", "y")));
        loaded l;
        load_model(&l, model, NULL);
        assert_int_equal(l.status, ir >= 3 && ir <= 13 ? UIR_STATUS_OK : UIR_STATUS_UNSUPPORTED);
        unload(&l);
    }
    static const struct {
        const char *op;
        int64_t opset;
        uir_status status;
    } cases[] = {{"Relu", 7, UIR_STATUS_OK},           {"Relu", 27, UIR_STATUS_OK},
                 {"Relu", 28, UIR_STATUS_UNSUPPORTED}, {"Relu", 6, UIR_STATUS_OK},
                 {"Tanh", 0, UIR_STATUS_UNSUPPORTED},  {"Relu", 1, UIR_STATUS_OK},
                 {"Relu", -5, UIR_STATUS_UNSUPPORTED}, {"Mish", 17, UIR_STATUS_BAD_FILE},
                 {"Mish", 18, UIR_STATUS_OK},          {"Relu", INT64_MAX, UIR_STATUS_UNSUPPORTED}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        blob model = blob_new();
        put_int(&model, MODEL_IR_VERSION, 8);
        put_message(&model, MODEL_OPSET, make_opset("ai.onnx", cases[i].opset));
        put_message(&model, MODEL_OPSET, make_opset("pkg.unused", 1));
        put_message(&model, MODEL_GRAPH, make_graph_of(make_node(cases[i].op, "n", "x", "y")));
        loaded l;
        load_model(&l, model, NULL);
        if (l.status != cases[i].status) fail_msg("%s in opset %d", cases[i].op, (int)cases[i].opset);
        unload(&l);
    }
}

static void all_problems_are_in_one_report(void **state) {
    (void)state;
    blob graph = make_graph_of(make_node("Relu", "n", "q", "y"));
    put_message(&graph, GRAPH_NODE, make_node("Foo", "first foo", "x", "a"));
    put_message(&graph, GRAPH_NODE, make_node("Foo", "second foo", "a", "b"));
    put_message(&graph, GRAPH_NODE, make_node("Bar", "bar", "b", "q"));
    put_message(&graph, GRAPH_NODE, make_node("Relu", "undefined", "nowhere", "r"));
    loaded l;
    load_model(&l, make_model(graph), NULL);
    assert_int_equal(l.status, UIR_STATUS_BAD_FILE);
    assert_true(said(&l, "'Foo'") && said(&l, "2 nodes"));
    assert_true(said(&l, "'Bar'"));
    assert_true(said(&l, "'nowhere' is undefined"));
    assert_int_equal(l.diagnostics.error_count, 3);
    unload(&l);

    graph = make_graph_of(make_node("Foo", "first foo", "x", "y"));
    load_model(&l, make_model(graph), NULL);
    assert_int_equal(l.status, UIR_STATUS_UNSUPPORTED);
    assert_string_equal(l.diagnostics.first->location.node, "first foo");
    assert_non_null(strstr(l.diagnostics.first->message, "version 20"));
    unload(&l);
}

static bool never_supported(uir_op op) {
    (void)op;
    return false;
}

static void ops_without_a_rule_join_the_report(void **state) {
    (void)state;
    uir_allocator system = uir_allocator_system();
    blob model = make_model(make_graph_of(make_node("Relu", "n", "x", "y")));
    uir_diagnostics diagnostics;
    uir_diagnostics_init(&diagnostics, &system);
    uir_arena arena;
    uir_arena_init(&arena, &system);
    uir_onnx_info info;
    uir_module *module;
    uir_onnx_source source = {.data = model.data, .size = model.length, .is_supported = never_supported};
    assert_int_equal(uir_onnx_load(&source, &system, &diagnostics, &arena, &info, &module), UIR_STATUS_UNSUPPORTED);
    assert_non_null(strstr(diagnostics.first->message, "'Relu', version 14, is not supported"));
    uir_arena_deinit(&arena);
    uir_diagnostics_deinit(&diagnostics);
    blob_free(&model);
}

static void nodes_in_any_order_are_sorted(void **state) {
    (void)state;
    blob graph = make_graph_of(make_node("Neg", "last", "b", "y"));
    put_message(&graph, GRAPH_NODE, make_node("Abs", "second", "a", "b"));
    put_message(&graph, GRAPH_NODE, make_node("Relu", "first", "x", "a"));
    loaded l;
    load_model(&l, make_model(graph), NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    assert_int_equal(main_node(&l, 0)->op, UIR_OP_ONNX_RELU);
    assert_int_equal(main_node(&l, 1)->op, UIR_OP_ONNX_ABS);
    assert_int_equal(main_node(&l, 2)->op, UIR_OP_ONNX_NEG);
    unload(&l);

    /* What a branch gives as it is, or reads, counts too. */
    for (int reads = 0; reads < 2; reads++) {
        blob choice = make_node("If", "choice", "c", "y");
        for (int i = 0; i < 2; i++) {
            blob body = blob_new();
            if (reads) put_message(&body, GRAPH_NODE, make_node("Neg", "inner", "a", "r"));
            put_message(&body, GRAPH_OUTPUT, make_value(reads ? "r" : "a", UIR_DTYPE_F32, "n"));
            put_message(&choice, NODE_ATTRIBUTE, make_graph_attribute(i ? "then_branch" : "else_branch", body));
        }
        graph = make_graph_of(choice);
        put_message(&graph, GRAPH_INPUT, make_value("c", UIR_DTYPE_BOOL, ""));
        put_message(&graph, GRAPH_NODE, make_node("Relu", "first", "x", "a"));
        load_model(&l, make_model(graph), NULL);
        assert_int_equal(l.status, UIR_STATUS_OK);
        assert_int_equal(main_node(&l, 0)->op, UIR_OP_ONNX_RELU);
        unload(&l);
    }

    graph = make_graph_of(make_node("Neg", "n", "a", "y"));
    put_message(&graph, GRAPH_NODE, make_node("Add", "in the circle", "x,b", "a"));
    put_message(&graph, GRAPH_NODE, make_node("Relu", "m", "a", "b"));
    expect_failure(make_model(graph), UIR_STATUS_BAD_FILE, "depends on its own output");
    expect_failure(make_model(make_graph_of(make_node("Relu", "n", "y", "y"))), UIR_STATUS_BAD_FILE,
                   "depends on its own output");
}

static void a_long_chain_backwards_is_sorted(void **state) {
    (void)state;
    enum { COUNT = 50000 };
    blob graph = make_graph_of(make_node("Relu", "n", "v0", "y"));
    for (int i = 0; i < COUNT; i++) {
        char in[20], out[20];
        snprintf(in, sizeof in, "v%d", i + 1);
        snprintf(out, sizeof out, "v%d", i);
        put_message(&graph, GRAPH_NODE, make_node("Relu", "n", i + 1 == COUNT ? "x" : in, out));
    }
    loaded l;
    load_model(&l, make_model(graph), NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    assert_int_equal(l.info.node_count, COUNT + 1);
    unload(&l);
}

static void names_are_given_once(void **state) {
    (void)state;
    blob graph = make_graph_of(make_node("Relu", "n", "x", "y"));
    put_message(&graph, GRAPH_NODE, make_node("Abs", "m", "x", "y"));
    expect_failure(make_model(graph), UIR_STATUS_BAD_FILE, "two values");
    graph = make_graph_of(make_node("Relu", "n", "x", "y"));
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F32, "1"));
    expect_failure(make_model(graph), UIR_STATUS_BAD_FILE, "two values");
}

static void arity_is_checked(void **state) {
    (void)state;
    expect_failure(make_model(make_graph_of(make_node("Relu", "n", "x,x", "y"))), UIR_STATUS_BAD_FILE, "at most 1");
    expect_failure(make_model(make_graph_of(make_node("Add", "n", "x", "y"))), UIR_STATUS_BAD_FILE, "at least 2");
    expect_failure(make_model(make_graph_of(make_node("Relu", "n", "x", "y,z"))), UIR_STATUS_BAD_FILE, "at most 1");
    loaded l; /* trailing empty names are as good as none, others keep their place */
    load_model(&l, make_model(make_graph_of(make_node("Clip", "n", "x,-,x,-,-", "y,-"))), NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    assert_int_equal(main_node(&l, 0)->input_count, 3);
    assert_int_equal(main_node(&l, 0)->inputs[1].id, 0);
    unload(&l);
}

static blob node_with(const char *op, blob attribute) {
    blob node = make_node(op, "n", "x", "y");
    put_message(&node, NODE_ATTRIBUTE, attribute);
    return node;
}

static void attributes_are_checked(void **state) {
    (void)state;
    loaded l;
    load_model(&l, make_model(make_graph_of(node_with("Softmax", make_int_attribute("axis", -2)))), NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    assert_int_equal(uir_node_int(l.module, main_node(&l, 0), "axis", 0), -2);
    unload(&l);

    blob text = make_attribute("axis", KIND_STRING);
    put_text(&text, ATTRIBUTE_S, "one");
    expect_failure(make_model(make_graph_of(node_with("Softmax", text))), UIR_STATUS_BAD_FILE,
                   "must be INT, not STRING");
    blob liar = make_attribute("axis", KIND_INT);
    put_text(&liar, ATTRIBUTE_S, "one");
    expect_failure(make_model(make_graph_of(node_with("Softmax", liar))), UIR_STATUS_BAD_FILE, "holds something else");
    expect_failure(make_model(make_graph_of(node_with("Softmax", make_attribute("axis", 99)))), UIR_STATUS_UNSUPPORTED,
                   "unknown kind");
    expect_failure(make_model(make_graph_of(node_with("Softmax", make_int_attribute("axes", 1)))),
                   UIR_STATUS_UNSUPPORTED, "no attribute 'axes'");
    expect_failure(make_model(make_graph_of(make_node("Cast", "n", "x", "y"))), UIR_STATUS_BAD_FILE, "'to' is missing");
    blob twice = node_with("Softmax", make_int_attribute("axis", 1));
    put_message(&twice, NODE_ATTRIBUTE, make_int_attribute("axis", 0));
    expect_failure(make_model(make_graph_of(twice)), UIR_STATUS_BAD_FILE, "given twice");
    /* Squeeze-13 takes its axes as an input: the attribute would be passed over. */
    blob axes = make_attribute("axes", KIND_INTS);
    put_int(&axes, ATTRIBUTE_INTS, 0);
    expect_failure(make_model(make_graph_of(node_with("Squeeze", axes))), UIR_STATUS_UNSUPPORTED,
                   "no attribute 'axes'");
    expect_failure(make_model(make_graph_of(node_with("Softmax", make_reference("axis", KIND_INT, "a")))),
                   UIR_STATUS_BAD_FILE, "outside any function");
}

static void dims_are_shared_by_name(void **state) {
    (void)state;
    blob graph = make_graph_of(make_node("Relu", "n", "x", "y"));
    put_message(&graph, GRAPH_INPUT, make_value("a", UIR_DTYPE_F32, "past+sequence,?,7,p2o.Dim.0"));
    put_message(&graph, GRAPH_INPUT, make_value("b", UIR_DTYPE_F32, "past,sequence,p2o.Dim.0,?"));
    put_message(&graph, GRAPH_INPUT, make_value("c", UIR_DTYPE_F32, "sequence + past"));
    loaded l;
    load_model(&l, make_model(graph), NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    const uir_type *a = uir_value_type(l.module, main_graph(&l)->inputs.data[1]);
    const uir_type *b = uir_value_type(l.module, main_graph(&l)->inputs.data[2]);
    const uir_type *c = uir_value_type(l.module, main_graph(&l)->inputs.data[3]);
    uir_dims *dims = l.module->dims;
    assert_true(uir_dim_equal(a->dims[0], uir_dim_add(dims, b->dims[0], b->dims[1])));
    assert_true(uir_dim_equal(a->dims[0], c->dims[0]));
    assert_true(uir_dim_equal(a->dims[3], b->dims[2]));
    assert_false(uir_dim_equal(a->dims[1], b->dims[3]));
    int64_t seven;
    assert_true(uir_dim_is_const(dims, a->dims[2], &seven) && seven == 7);
    unload(&l);
}

/* Exporters write "?" or "*" for every dim that they do not know: those need not be equal. An odd name is a name all
 * the same. */
static void texts_without_a_letter_or_digit_name_nothing(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool is_name;
    } cases[] = {{"*", false},   {"-", false},  {"\"", false},   {"rows*cols", true},
                 {"a + ", true}, {"a b", true}, {"$(ls)", true}, {"d\"quoted\" 3", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char dims[64];
        loaded l;
        snprintf(dims, sizeof dims, "n,%s,%s", cases[i].text, cases[i].text);
        blob graph = make_graph_of(make_node("Relu", "n", "x", "y"));
        put_message(&graph, GRAPH_INPUT, make_value("a", UIR_DTYPE_F32, dims));
        put_message(&graph, GRAPH_INPUT, make_value("b", UIR_DTYPE_F32, dims));
        load_model(&l, make_model(graph), NULL);
        assert_int_equal(l.status, UIR_STATUS_OK);
        const uir_type *a = uir_value_type(l.module, main_graph(&l)->inputs.data[1]);
        const uir_type *b = uir_value_type(l.module, main_graph(&l)->inputs.data[2]);
        assert_true(uir_dim_equal(a->dims[0], b->dims[0]));
        assert_int_equal(uir_dim_equal(a->dims[1], a->dims[2]), cases[i].is_name);
        assert_int_equal(uir_dim_equal(a->dims[1], b->dims[1]), cases[i].is_name);
        uir_symbol symbol; /* the text stays the name by which a caller binds it */
        assert_true(uir_dim_is_symbol(l.module->dims, a->dims[1], &symbol));
        assert_string_equal(uir_dims_symbol_name(l.module->dims, symbol), cases[i].text);
        unload(&l);
    }
}

/* A dim without a name is called after its value and axis, unless the file calls one so, before or after. */
static void names_made_here_are_no_names_of_the_file(void **state) {
    (void)state;
    loaded l;
    blob graph = make_graph_of(make_node("Relu", "n", "x", "y")), tensor = blob_new(), type = blob_new();
    blob shape = blob_new(), dim = blob_new();
    put_text(&dim, 2, "");
    put_message(&shape, 1, dim);
    put_int(&tensor, 1, UIR_DTYPE_F32);
    put_message(&tensor, 2, shape);
    put_message(&type, 1, tensor);
    blob value = blob_new();
    put_text(&value, 1, "a");
    put_message(&value, 2, type);
    put_message(&graph, GRAPH_INPUT, value);
    put_message(&graph, GRAPH_INPUT, make_value("b", UIR_DTYPE_F32, "a_0,a_0_2,?"));
    load_model(&l, make_model(graph), NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    static const char *const names[] = {"a_0_3", "a_0", "a_0_2", "b_2"}; /* the last is unset */
    for (int i = 0; i < 4; i++) {
        const uir_type *t = uir_value_type(l.module, main_graph(&l)->inputs.data[i ? 2 : 1]);
        uir_symbol symbol;
        assert_true(uir_dim_is_symbol(l.module->dims, t->dims[i ? i - 1 : 0], &symbol));
        assert_string_equal(uir_dims_symbol_name(l.module->dims, symbol), names[i]);
    }
    unload(&l);
}

static blob small_constant(const char *name, float value) {
    blob tensor = make_tensor(name, UIR_DTYPE_F32, 0, NULL);
    put_bytes(&tensor, TENSOR_RAW, &value, sizeof value);
    return tensor;
}

static void initializers_are_constants_even_as_inputs(void **state) {
    (void)state;
    blob graph = make_graph_of(make_node("Add", "n", "x,w", "y"));
    put_message(&graph, GRAPH_INPUT, make_value("w", UIR_DTYPE_F32, ""));
    put_message(&graph, GRAPH_INITIALIZER, small_constant("w", 2.5f));
    loaded l;
    load_model(&l, make_model(graph), NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    assert_int_equal(main_graph(&l)->inputs.count, 1);
    const uir_tensor *constant = uir_value_info_get(l.module, main_node(&l, 0)->inputs[1])->constant;
    assert_non_null(constant);
    assert_true(*(const float *)constant->data == 2.5f);
    unload(&l);
    graph = make_graph_of(make_node("Add", "n", "x,w", "y"));
    put_message(&graph, GRAPH_INPUT, make_value("w", UIR_DTYPE_I32, ""));
    put_message(&graph, GRAPH_INITIALIZER, small_constant("w", 2.5f));
    expect_failure(make_model(graph), UIR_STATUS_BAD_FILE, "but its initializer is f32");
}

static blob branch(const char *op, const char *input) {
    blob graph = blob_new();
    put_message(&graph, GRAPH_NODE, make_node(op, "inner", input, "r"));
    put_message(&graph, GRAPH_OUTPUT, make_value("r", UIR_DTYPE_F32, NULL));
    return graph;
}

static blob if_node(const char *condition, blob then_graph, blob else_graph) {
    blob node = make_node("If", "choice", condition, "y");
    put_message(&node, NODE_ATTRIBUTE, make_graph_attribute("then_branch", then_graph));
    put_message(&node, NODE_ATTRIBUTE, make_graph_attribute("else_branch", else_graph));
    return node;
}

static void subgraphs_see_outer_names_made_later_in_the_file(void **state) {
    (void)state;
    blob graph = make_graph_of(if_node("c", branch("Relu", "late"), branch("Abs", "x")));
    put_message(&graph, GRAPH_INPUT, make_value("c", UIR_DTYPE_BOOL, ""));
    put_message(&graph, GRAPH_NODE, make_node("Neg", "late node", "x", "late"));
    loaded l;
    load_model(&l, make_model(graph), NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    assert_int_equal(main_node(&l, 0)->op, UIR_OP_ONNX_NEG);
    const uir_attribute *then_branch = uir_node_find_attribute(l.module, main_node(&l, 1), "then_branch");
    const uir_graph_info *body = uir_graph_get(l.module, then_branch->value.graph);
    assert_int_equal(body->parent.id, l.module->main.id);
    assert_int_equal(uir_node_get(l.module, body->nodes.data[0])->inputs[0].id, main_node(&l, 0)->outputs[0].id);
    unload(&l);
    /* Nothing inside is seen outside. */
    graph = make_graph_of(if_node("c", branch("Relu", "x"), branch("Abs", "x")));
    put_message(&graph, GRAPH_INPUT, make_value("c", UIR_DTYPE_BOOL, ""));
    put_message(&graph, GRAPH_NODE, make_node("Neg", "n", "r", "z"));
    expect_failure(make_model(graph), UIR_STATUS_BAD_FILE, "'r' is undefined");
}

static void metadata_is_kept(void **state) {
    (void)state;
    blob model = make_model(make_graph_of(make_node("Relu", "n", "x", "y")));
    put_message(&model, MODEL_METADATA, make_pair("character", "a\nb"));
    put_message(&model, MODEL_METADATA, make_pair("character", "second"));
    put_message(&model, MODEL_METADATA, make_pair("", ""));
    put_message(&model, MODEL_METADATA, make_pair("x", "a name of the graph as well"));
    loaded l;
    load_model(&l, model, NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    assert_int_equal(l.info.metadata_count, 3);
    assert_string_equal(l.info.metadata[0].value, "a\nb");
    assert_true(said(&l, "occurs twice"));
    unload(&l);
}

static void any_bytes_may_be_names(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
    } names[] = {{"\"quoted\"", 8}, {"*/ int x; /*", 12}, {"a\nb\r\n", 5},  {"?\?/", 3},   {"back\\slash\\", 11},
                 {"zero\0byte", 9}, {"\xff\xfe\x80", 3},  {"$(ls) `x`", 9}, {"%s%n%d", 6}, {"zero\\x00byte", 12}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (int bad = 0; bad < 2; bad++) {
            blob graph = blob_new(), node = blob_new();
            put_bytes(&graph, GRAPH_NAME, names[i].bytes, names[i].length);
            blob input = make_value("", UIR_DTYPE_F32, "2");
            put_bytes(&input, VALUE_NAME, names[i].bytes, names[i].length);
            put_message(&graph, GRAPH_INPUT, input);
            put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_F32, NULL));
            put_bytes(&node, NODE_INPUT, names[i].bytes, names[i].length);
            put_text(&node, NODE_OUTPUT, "y");
            put_bytes(&node, NODE_NAME, names[i].bytes, names[i].length);
            if (bad) {
                put_bytes(&node, NODE_OP, names[i].bytes, names[i].length);
            } else {
                put_text(&node, NODE_OP, "Relu");
            }
            put_message(&graph, GRAPH_NODE, node);
            loaded l;
            load_model(&l, make_model(graph), NULL);
            assert_int_equal(l.status, bad ? UIR_STATUS_UNSUPPORTED : UIR_STATUS_OK);
            for (const uir_diagnostic *d = l.diagnostics.first; d; d = d->next) {
                char text[2000];
                assert_true(uir_diagnostic_format(d, text, sizeof text) < sizeof text);
                for (const char *at = text; *at; at++) {
                    if (*at != '\n' && ((unsigned char)*at < 32 || (unsigned char)*at == 127))
                        fail_msg("raw control character");
                }
            }
            unload(&l);
        }
    }
}

static void names_that_differ_by_a_zero_byte_differ(void **state) {
    (void)state;
    blob graph = make_graph_of(make_node("Add", "n", "x,w", "y"));
    blob tensor = small_constant("", 1);
    put_bytes(&tensor, TENSOR_NAME, "w\0tail", 6);
    put_message(&graph, GRAPH_INITIALIZER, tensor);
    expect_failure(make_model(graph), UIR_STATUS_BAD_FILE, "'w' is undefined");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_becomes_a_module),
        cmocka_unit_test(versions_outside_the_range_are_refused),
        cmocka_unit_test(all_problems_are_in_one_report),
        cmocka_unit_test(ops_without_a_rule_join_the_report),
        cmocka_unit_test(nodes_in_any_order_are_sorted),
        cmocka_unit_test(a_long_chain_backwards_is_sorted),
        cmocka_unit_test(names_are_given_once),
        cmocka_unit_test(arity_is_checked),
        cmocka_unit_test(attributes_are_checked),
        cmocka_unit_test(dims_are_shared_by_name),
        cmocka_unit_test(names_made_here_are_no_names_of_the_file),
        cmocka_unit_test(texts_without_a_letter_or_digit_name_nothing),
        cmocka_unit_test(initializers_are_constants_even_as_inputs),
        cmocka_unit_test(subgraphs_see_outer_names_made_later_in_the_file),
        cmocka_unit_test(metadata_is_kept),
        cmocka_unit_test(any_bytes_may_be_names),
        cmocka_unit_test(names_that_differ_by_a_zero_byte_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
