/* Edges of what a file may say: numbers that just fit their type, dims that are not known, opsets given twice. */
#include "tests/frontend/make.h"

#include <stdio.h>

/* A model y = Identity(w) with w of one element, stored as an int32. */
static uir_status load_stored(uir_dtype dtype, int64_t number) {
    blob packed = blob_new(), tensor = make_tensor("w", (int32_t)dtype, 1, (int64_t[]){1});
    uir_wire_write_varint(&packed, (uint64_t)number);
    put_message(&tensor, TENSOR_INT32S, packed);
    blob graph = make_graph_of(make_node("Relu", "n", "x", "y"));
    put_message(&graph, GRAPH_INITIALIZER, tensor);
    loaded l;
    load_model(&l, make_model(graph), NULL);
    uir_status status = l.status;
    unload(&l);
    return status;
}

/* A type of N bits may be written signed or as bits: -2^(N-1) up to 2^N - 1. */
static void stored_numbers_fit_their_type(void **state) {
    (void)state;
    static const struct {
        uir_dtype dtype;
        int bits;
    } types[] = {{UIR_DTYPE_I8, 8}, {UIR_DTYPE_U8, 8}, {UIR_DTYPE_I16, 16}, {UIR_DTYPE_U16, 16}, {UIR_DTYPE_F16, 16}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        int64_t least = -((int64_t)1 << (types[i].bits - 1)), above = (int64_t)1 << types[i].bits;
        assert_int_equal(load_stored(types[i].dtype, least), UIR_STATUS_OK);
        assert_int_equal(load_stored(types[i].dtype, above - 1), UIR_STATUS_OK);
        assert_int_equal(load_stored(types[i].dtype, least - 1), UIR_STATUS_BAD_FILE);
        assert_int_equal(load_stored(types[i].dtype, above), UIR_STATUS_BAD_FILE);
    }
}

/* y = Relu(x), x f32[dim]. */
static blob model_of_dim(int64_t dim) {
    blob extent = blob_new(), shape = blob_new(), tensor = blob_new(), type = blob_new(), value = blob_new(),
         graph = blob_new();
    put_int(&extent, 1, dim);
    put_message(&shape, 1, extent);
    put_int(&tensor, 1, UIR_DTYPE_F32);
    put_message(&tensor, 2, shape);
    put_message(&type, 1, tensor);
    put_text(&value, VALUE_NAME, "x");
    put_message(&value, VALUE_TYPE, type);
    put_text(&graph, GRAPH_NAME, "g");
    put_message(&graph, GRAPH_NODE, make_node("Relu", "n", "x", "y"));
    put_message(&graph, GRAPH_INPUT, value);
    put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_F32, "?"));
    return make_model(graph);
}

/* Exporters write -1 for a size that is not known; no other negative number means anything. */
static void minus_one_is_any_size(void **state) {
    (void)state;
    loaded l;
    load_model(&l, model_of_dim(-1), NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    const uir_type *type = uir_value_type(l.module, main_graph(&l)->inputs.data[0]);
    assert_int_equal(type->rank, 1);
    assert_false(uir_dim_is_const(l.module->dims, type->dims[0], NULL));
    unload(&l);
    expect_failure(model_of_dim(-2), UIR_STATUS_BAD_FILE, "a declared dim is negative: -2");
    expect_failure(model_of_dim(INT64_MIN), UIR_STATUS_BAD_FILE, "a declared dim is negative");
}

/* An input f32[text], the text being a dim_param. */
static blob make_sized(const char *name, const char *text, size_t length) {
    blob extent = blob_new(), shape = blob_new(), tensor = blob_new(), type = blob_new(), value = blob_new();
    put_bytes(&extent, 2, text, length);
    put_message(&shape, 1, extent);
    put_int(&tensor, 1, UIR_DTYPE_F32);
    put_message(&tensor, 2, shape);
    put_message(&type, 1, tensor);
    put_text(&value, VALUE_NAME, name);
    put_message(&value, VALUE_TYPE, type);
    return value;
}

/* Inputs x f32[first] and w f32[second]; the dims they get, and those two as text. */
typedef struct two_dims {
    bool same;
    char first[300], second[300];
} two_dims;

static two_dims dims_of(const char *first, const char *second) {
    two_dims found = {false, "", ""};
    blob graph = blob_new();
    put_text(&graph, GRAPH_NAME, "g");
    put_message(&graph, GRAPH_NODE, make_node("Relu", "n", "x", "y"));
    put_message(&graph, GRAPH_INPUT, make_sized("x", first, strlen(first)));
    put_message(&graph, GRAPH_INPUT, make_sized("w", second, strlen(second)));
    put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_F32, "?"));
    loaded l;
    load_model(&l, make_model(graph), NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    uir_dim dims[2];
    for (int i = 0; i < 2; i++) {
        const uir_type *type = uir_value_type(l.module, main_graph(&l)->inputs.data[i]);
        assert_int_equal(type->rank, 1);
        dims[i] = type->dims[0];
        uir_text text;
        uir_text_init(&text, &l.allocator);
        uir_dim_print(l.module->dims, dims[i], &text);
        snprintf(i ? found.second : found.first, sizeof found.first, "%s", text.data);
        uir_text_deinit(&text);
    }
    found.same = uir_dim_equal(dims[0], dims[1]);
    unload(&l);
    return found;
}

/* A name is known to an expression that comes before it, whatever letters it is made of. */
static void sizes_may_be_expressions(void **state) {
    (void)state;
    static const char *const names[] = {"a", "z", "A", "Z", "_", "a0", "a9", "Z_z", "__9"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char expression[20], expected[20];
        snprintf(expression, sizeof expression, "%s + 1", names[i]);
        two_dims found = dims_of(expression, names[i]);
        assert_string_equal(found.first, expression);
        assert_string_equal(found.second, names[i]);
        snprintf(expression, sizeof expression, "2*%s", names[i]);
        snprintf(expected, sizeof expected, "%s*2", names[i]);
        found = dims_of(expression, names[i]);
        assert_string_equal(found.first, expected);
        /* Meaning the same, though not the same text. */
        snprintf(expression, sizeof expression, "%s*1", names[i]);
        assert_true(dims_of(expression, names[i]).same);
        assert_true(dims_of(names[i], names[i]).same);
    }
    /* What is no expression to its end, or has no name that is a dim's, is a name: of numbers alone as well. */
    static const char *const odd[] = {"a b",      "a +",      "a.1", "a:1", "a # 1",        "1 a",      "3",
                                      "12 - 9",   "3*4",      "007", "b+c", "04079647/335", "min(2,3)", "min(b,c)",
                                      "floor(a)", "max(a,b)", "a+b", "-1",  "0x10",         "1e3"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        two_dims found = dims_of(odd[i], odd[i]);
        assert_true(found.same);
        assert_false(dims_of(odd[i], "a").same);
        char quoted[30];
        snprintf(quoted, sizeof quoted, "\"%s\"", odd[i]);
        assert_string_equal(found.first, quoted);
    }
    /* Up to 200 characters. */
    for (int length = 199; length <= 202; length++) {
        char text[210];
        snprintf(text, sizeof text, "a%*s+ 1", length - 4, "");
        assert_int_equal(strlen(text), length);
        two_dims found = dims_of(text, "a");
        assert_int_equal(strcmp(found.first, "a + 1") == 0, length <= 200);
    }
}

/* A letter, a digit or a byte beyond ASCII makes a text a name, which means one dim; other signs mean "some size". */
static void signs_name_nothing(void **state) {
    (void)state;
    for (int c = 1; c < 256; c++) {
        const char text[] = {'?', (char)c, '?', 0};
        bool named = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c >= 0x80;
        assert_int_equal(dims_of(text, text).same, named);
    }
}

/* A TypeProto of f32[rank ones], or of whatever element type, within others: "so" is a sequence of optionals. */
static blob make_type(int32_t dtype, uint32_t rank, const char *around) {
    blob type = blob_new(), tensor = blob_new(), shape = blob_new();
    for (uint32_t i = 0; i < rank; i++) {
        blob extent = blob_new();
        put_int(&extent, 1, 1);
        put_message(&shape, 1, extent);
    }
    put_int(&tensor, 1, dtype);
    put_message(&tensor, 2, shape);
    put_message(&type, 1, tensor);
    for (size_t i = strlen(around); i-- > 0;) {
        blob inner = blob_new(), outer = blob_new();
        put_message(&inner, 1, type);
        put_message(&outer, around[i] == 's' ? 4 : 9, inner);
        type = outer;
    }
    return type;
}

static blob model_of_type(blob type) {
    blob value = blob_new(), graph = make_graph_of(make_node("Relu", "n", "x", "y"));
    put_text(&value, VALUE_NAME, "v");
    put_message(&value, VALUE_TYPE, type);
    put_message(&graph, GRAPH_INPUT, value);
    return make_model(graph);
}

/* The outermost container says what a value is, the innermost tensor of what. */
static void values_are_of_their_type(void **state) {
    (void)state;
    static const struct {
        const char *around, *text; /* the text as an op's attribute has it */
        uir_value_kind kind;
    } rows[] = {{"", "tensor(i64)", UIR_VALUE_TENSOR},
                {"s", "seq(tensor(i64))", UIR_VALUE_SEQUENCE},
                {"o", "optional(tensor(i64))", UIR_VALUE_OPTIONAL},
                {"os", "optional(seq(tensor(i64)))", UIR_VALUE_OPTIONAL},
                {"so", "seq(optional(tensor(i64)))", UIR_VALUE_SEQUENCE},
                {"ss", "seq(seq(tensor(i64)))", UIR_VALUE_SEQUENCE}};
    loaded l;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        load_model(&l, model_of_type(make_type(UIR_DTYPE_I64, 2, rows[i].around)), NULL);
        assert_int_equal(l.status, UIR_STATUS_OK);
        const uir_type *type = uir_value_type(l.module, main_graph(&l)->inputs.data[1]);
        assert_int_equal(type->kind, rows[i].kind);
        assert_int_equal(type->dtype, UIR_DTYPE_I64);
        assert_int_equal(type->rank, 2);
        unload(&l);
        blob node = make_node("Optional", "n", "", "o"), attribute = make_attribute("type", 13);
        put_message(&attribute, 14, make_type(UIR_DTYPE_I64, 0, rows[i].around));
        put_message(&node, NODE_ATTRIBUTE, attribute);
        blob graph = make_graph_of(make_node("Relu", "m", "x", "y"));
        put_message(&graph, GRAPH_NODE, node);
        load_model(&l, make_model(graph), NULL);
        assert_int_equal(l.status, UIR_STATUS_OK);
        assert_string_equal(uir_node_string(l.module, main_node(&l, 1), "type", ""), rows[i].text);
        unload(&l);
    }
    expect_failure(model_of_type(make_type(0, 1, "")), UIR_STATUS_BAD_FILE, "'v' has no element type");
    load_model(&l, model_of_type(make_type(UIR_DTYPE_F32, UIR_MAX_RANK, "")), NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    assert_int_equal(uir_value_type(l.module, main_graph(&l)->inputs.data[1])->rank, UIR_MAX_RANK);
    unload(&l);
    expect_failure(model_of_type(make_type(UIR_DTYPE_F32, UIR_MAX_RANK + 1, "")), UIR_STATUS_UNSUPPORTED,
                   "a declared rank of 17; at most 16 is supported");
    expect_failure(model_of_type(make_type(99, 1, "")), UIR_STATUS_UNSUPPORTED, "element type number 99 is unknown");
    expect_failure(model_of_type(make_type(-1, 1, "o")), UIR_STATUS_UNSUPPORTED, "element type number -1 is unknown");
    blob map = blob_new();
    put_message(&map, 5, blob_new());
    expect_failure(model_of_type(map), UIR_STATUS_UNSUPPORTED, "'v' is a map, sparse or opaque");
}

static blob choice_of(const char *first, const char *second) {
    blob node = make_node("If", "choice", "c", "b");
    for (int i = 0; i < 2; i++) {
        blob body = blob_new();
        put_message(&body, GRAPH_NODE, make_node("Neg", "inner", "x", i ? second : first));
        put_message(&body, GRAPH_OUTPUT, make_value(i ? second : first, UIR_DTYPE_F32, NULL));
        put_message(&node, NODE_ATTRIBUTE, make_graph_attribute(i ? "else_branch" : "then_branch", body));
    }
    return node;
}

/* A subgraph's names are its own, and the graph around it still has each of its names once. */
static void scopes_end_with_their_graph(void **state) {
    (void)state;
    loaded l;
    blob graph = make_graph_of(make_node("Relu", "n", "x", "y"));
    put_message(&graph, GRAPH_INPUT, make_value("c", UIR_DTYPE_BOOL, ""));
    put_message(&graph, GRAPH_NODE, choice_of("r", "r"));
    load_model(&l, make_model(graph), NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    static const char *const names[] = {"r", "r_2"};
    for (int i = 0; i < 2; i++) {
        const uir_attribute *branch =
            uir_node_find_attribute(l.module, main_node(&l, 1), i ? "else_branch" : "then_branch");
        assert_string_equal(value_name(&l, uir_graph_get(l.module, branch->value.graph)->outputs.data[0]), names[i]);
    }
    unload(&l);
    graph = make_graph_of(make_node("Relu", "n", "x", "y"));
    put_message(&graph, GRAPH_INPUT, make_value("c", UIR_DTYPE_BOOL, ""));
    put_message(&graph, GRAPH_NODE, choice_of("r", "s"));
    put_message(&graph, GRAPH_NODE, make_node("Abs", "m", "x", "y"));
    expect_failure(make_model(graph), UIR_STATUS_BAD_FILE, "the name 'y' is given to two values");
}

/* What stands inside hides what stands outside: a body's input is one, though a constant around it has its name. */
static void inputs_of_bodies_hide_constants(void **state) {
    (void)state;
    float one = 1;
    blob constant = make_tensor("w", UIR_DTYPE_F32, 0, NULL), body = blob_new();
    put_bytes(&constant, TENSOR_RAW, &one, sizeof one);
    put_message(&body, GRAPH_INPUT, make_value("i", UIR_DTYPE_I64, ""));
    put_message(&body, GRAPH_INPUT, make_value("go", UIR_DTYPE_BOOL, ""));
    put_message(&body, GRAPH_INPUT, make_value("w", UIR_DTYPE_F32, "2,3"));
    put_message(&body, GRAPH_NODE, make_node("Identity", "again", "go", "go_on"));
    put_message(&body, GRAPH_NODE, make_node("Neg", "inner", "w", "s"));
    put_message(&body, GRAPH_OUTPUT, make_value("go_on", UIR_DTYPE_BOOL, NULL));
    put_message(&body, GRAPH_OUTPUT, make_value("s", UIR_DTYPE_F32, "2,3"));
    blob node = make_node("Loop", "n", "-,c,x", "y");
    put_message(&node, NODE_ATTRIBUTE, make_graph_attribute("body", body));
    blob graph = make_graph_of(node);
    put_message(&graph, GRAPH_INPUT, make_value("c", UIR_DTYPE_BOOL, ""));
    put_message(&graph, GRAPH_INITIALIZER, constant);
    loaded l;
    load_model(&l, make_model(graph), NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    const uir_graph_info *inside =
        uir_graph_get(l.module, uir_node_find_attribute(l.module, main_node(&l, 0), "body")->value.graph);
    assert_int_equal(inside->inputs.count, 3);
    assert_null(uir_value_info_get(l.module, inside->inputs.data[2])->constant);
    assert_int_equal(uir_node_get(l.module, inside->nodes.data[1])->inputs[0].id, inside->inputs.data[2].id);
    unload(&l);
}

/* An output has the type it is declared with, unless something else has said already what it is. */
static void outputs_are_as_declared(void **state) {
    (void)state;
    blob graph = blob_new();
    put_text(&graph, GRAPH_NAME, "g");
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F32, "2,3"));
    put_message(&graph, GRAPH_NODE, make_node("Relu", "n", "x", "y"));
    put_message(&graph, GRAPH_NODE, make_node("Relu", "m", "x", "z"));
    put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_F32, "2,3,4,5,6"));
    put_message(&graph, GRAPH_OUTPUT, make_value("x", UIR_DTYPE_I64, "9"));
    put_message(&graph, GRAPH_OUTPUT, make_value("z", UIR_DTYPE_F16, ""));
    loaded l;
    load_model(&l, make_model(graph), NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    static const struct {
        uir_dtype dtype;
        uint32_t rank;
        int64_t first;
    } expected[] = {{UIR_DTYPE_F32, 5, 2}, {UIR_DTYPE_F32, 2, 2}, {UIR_DTYPE_F16, 0, 0}};
    for (int i = 0; i < 3; i++) {
        const uir_type *type = uir_value_type(l.module, main_graph(&l)->outputs.data[i]);
        assert_int_equal(type->dtype, expected[i].dtype);
        assert_true(type->rank_known);
        assert_int_equal(type->rank, expected[i].rank);
        for (uint32_t d = 0; d < type->rank; d++) {
            int64_t value = 0;
            assert_true(uir_dim_is_const(l.module->dims, type->dims[d], &value));
            assert_int_equal(value, expected[i].first + d);
        }
    }
    unload(&l);
}

/* A message names the node, or what it makes where it has no name, and the op with its domain unless that is ONNX's. */
static void messages_name_node_and_op(void **state) {
    (void)state;
    static const struct {
        const char *domain, *name, *outputs, *imported, *node, *op, *text;
    } rows[] = {
        {"", "n", "y", "", "n", "Foo", "unknown op 'Foo' of domain 'ai.onnx', version 20"},
        {"ai.onnx", "n", "y", "", "n", "Foo", "unknown op 'Foo' of domain 'ai.onnx', version 20"},
        {"pkg", "n", "y", "", "n", "pkg::Foo", "unknown op 'Foo' of domain 'pkg', and opset_import lacks"},
        {"pkg", "n", "y", "pkg", "n", "pkg::Foo", "unknown op 'Foo' of domain 'pkg', version 3"},
        {"p", "", "-,y,z", "p", "y", "p::Foo", "unknown op 'Foo' of domain 'p', version 3"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        blob node = make_node("Foo", rows[i].name, "x", rows[i].outputs);
        put_text(&node, NODE_DOMAIN, rows[i].domain);
        blob model = make_model(make_graph_of(node));
        if (*rows[i].imported) put_message(&model, MODEL_OPSET, make_opset(rows[i].imported, 3));
        loaded l;
        load_model(&l, model, NULL);
        assert_int_equal(l.status, UIR_STATUS_UNSUPPORTED);
        assert_int_equal(l.diagnostics.error_count, 1);
        assert_true(said(&l, rows[i].text));
        assert_string_equal(l.diagnostics.first->location.node, rows[i].node);
        assert_string_equal(l.diagnostics.first->location.op, rows[i].op);
        unload(&l);
    }
}

/* The hint: the nearest op, in whatever domain; that a function of the model's own may define it. */
static void hints_name_the_nearest_op(void **state) {
    (void)state;
    static const struct {
        const char *domain, *op, *hint;
    } rows[] = {
        {"", "Rleu", "the nearest supported op is Relu; define a function Rleu in the model"},
        {"com.microsoft", "FusedGelu",
         "op is com.microsoft::FastGelu; define a function com.microsoft::FusedGelu in the"},
        {"pkg", "Conv", "the nearest supported op is Conv; define a function pkg::Conv in"},
        {"pkg", "BiasGelu", "the nearest supported op is com.microsoft::BiasGelu; "},
        {"com.microsoft", "Gelo", "the nearest supported op is com.microsoft::Gelu; "},
        {"", "Gelo", "the nearest supported op is Gelu; "},
        {"pkg", "Xyzzy", "define a function pkg::Xyzzy in the model, or list all ops with --list-ops"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        blob node = make_node(rows[i].op, "n", "x", "y");
        put_text(&node, NODE_DOMAIN, rows[i].domain);
        blob model = make_model(make_graph_of(node));
        if (*rows[i].domain) put_message(&model, MODEL_OPSET, make_opset(rows[i].domain, 1));
        loaded l;
        load_model(&l, model, NULL);
        assert_int_equal(l.status, UIR_STATUS_UNSUPPORTED);
        const char *hint = l.diagnostics.first->hint;
        assert_true(hint && strstr(hint, rows[i].hint));
        assert_int_equal(!strstr(hint, "nearest"), !strstr(rows[i].hint, "op is "));
        unload(&l);
    }
}

static blob softmax_with(blob attribute) {
    blob node = make_node("Softmax", "n", "x", "y");
    put_message(&node, NODE_ATTRIBUTE, attribute);
    return make_model(make_graph_of(node));
}

/* Old files do not say what an attribute holds: the one field that is set does. */
static void kinds_may_be_left_out(void **state) {
    (void)state;
    blob number = blob_new(), nothing = blob_new(), both = blob_new(), text = blob_new();
    put_text(&number, ATTRIBUTE_NAME, "axis");
    put_int(&number, ATTRIBUTE_I, -2);
    put_text(&nothing, ATTRIBUTE_NAME, "axis");
    put_text(&both, ATTRIBUTE_NAME, "axis");
    put_int(&both, ATTRIBUTE_I, -2);
    put_text(&both, ATTRIBUTE_S, "two");
    put_text(&text, ATTRIBUTE_NAME, "axis");
    put_text(&text, ATTRIBUTE_S, "two");
    loaded l;
    load_model(&l, softmax_with(number), NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    assert_int_equal(uir_node_int(l.module, main_node(&l, 0), "axis", 0), -2);
    unload(&l);
    expect_failure(softmax_with(nothing), UIR_STATUS_BAD_FILE, "the type of attribute 'axis' is missing");
    expect_failure(softmax_with(both), UIR_STATUS_BAD_FILE, "the type of attribute 'axis' is missing");
    expect_failure(softmax_with(text), UIR_STATUS_BAD_FILE, "must be INT, not STRING");
    expect_failure(softmax_with(make_attribute("axis", -1)), UIR_STATUS_UNSUPPORTED, "unknown kind -1");
}

/* Lists come over whole, however long. */
static void lists_are_whole(void **state) {
    (void)state;
    enum { FLOATS = 7, INTS = 8, STRINGS = 9, KIND_FLOATS = 6, KIND_STRINGS = 8 };
    static const char *const names[] = {"value_ints", "value_floats", "value_strings"};
    static const int kinds[] = {KIND_INTS, KIND_FLOATS, KIND_STRINGS};
    for (int kind = 0; kind < 3; kind++) {
        for (uint32_t count = 1; count <= 300; count *= 7) {
            blob attribute = make_attribute(names[kind], kinds[kind]), node = make_node("Constant", "n", "", "k");
            for (uint32_t i = 0; i < count; i++) {
                char text[12];
                float real = (float)i + 0.5f;
                snprintf(text, sizeof text, "s%u", (unsigned)i);
                if (kind == 0) put_int(&attribute, INTS, i);
                if (kind == 2) put_text(&attribute, STRINGS, text);
                if (kind == 1) put_bytes(&attribute, FLOATS, &real, sizeof real);
            }
            put_message(&node, NODE_ATTRIBUTE, attribute);
            blob graph = make_graph_of(make_node("Relu", "m", "x", "y"));
            put_message(&graph, GRAPH_NODE, node);
            loaded l;
            load_model(&l, make_model(graph), NULL);
            assert_int_equal(l.status, UIR_STATUS_OK);
            const uir_attribute *list = uir_node_find_attribute(l.module, main_node(&l, 1), names[kind]);
            assert_non_null(list);
            assert_int_equal(list->count, count);
            for (uint32_t i = 0; i < count; i++) {
                char text[12];
                snprintf(text, sizeof text, "s%u", (unsigned)i);
                if (kind == 0) assert_int_equal(list->value.integers[i], i);
                if (kind == 1) assert_true(list->value.reals[i] == i + 0.5);
                if (kind == 2) assert_string_equal(uir_string_text(&l.module->strings, list->value.strings[i]), text);
            }
            unload(&l);
        }
    }
}

/* An attribute that came with a later version of its op is none of an earlier one. */
static void attributes_come_with_versions(void **state) {
    (void)state;
    static const int64_t opsets[] = {13, 18, 19, 20};
    for (size_t i = 0; i < sizeof opsets / sizeof *opsets; i++) {
        blob node = make_node("Cast", "n", "x", "y"), model = blob_new();
        put_message(&node, NODE_ATTRIBUTE, make_int_attribute("to", UIR_DTYPE_F16));
        put_message(&node, NODE_ATTRIBUTE, make_int_attribute("saturate", 1));
        put_int(&model, MODEL_IR_VERSION, 8);
        put_message(&model, MODEL_OPSET, make_opset("", opsets[i]));
        put_message(&model, MODEL_GRAPH, make_graph_of(node));
        if (opsets[i] < 19) {
            expect_failure(model, UIR_STATUS_UNSUPPORTED, "no attribute 'saturate'");
            continue;
        }
        loaded l;
        load_model(&l, model, NULL);
        assert_int_equal(l.status, UIR_STATUS_OK);
        unload(&l);
    }
}

/* A name of zero bytes alone is spelled out, all of it. */
static void zeros_are_spelled_out(void **state) {
    (void)state;
    static const char zeros[100] = "";
    char expected[4 * sizeof zeros + 1];
    for (size_t i = 0; i < sizeof zeros; i++) memcpy(expected + 4 * i, "\\x00", 5);
    blob value = make_value("", UIR_DTYPE_F32, "2"), graph = make_graph_of(make_node("Relu", "n", "x", "y"));
    put_bytes(&value, VALUE_NAME, zeros, sizeof zeros);
    put_message(&graph, GRAPH_INPUT, value);
    loaded l;
    load_model(&l, make_model(graph), NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    assert_string_equal(value_name(&l, main_graph(&l)->inputs.data[1]), expected);
    assert_string_equal(l.info.input_names[1], expected);
    unload(&l);
}

/* 256 kinds of gaps are told apart, each once. */
static void gaps_are_told_up_to_a_limit(void **state) {
    (void)state;
    static const int counts[] = {255, 256, 257, 300};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        blob graph = make_graph_of(make_node("Relu", "n", "x", "y"));
        for (int k = 0; k < counts[i]; k++) {
            char op[20], out[20];
            snprintf(op, sizeof op, "Foo%d", k);
            snprintf(out, sizeof out, "v%d", k);
            put_message(&graph, GRAPH_NODE, make_node(op, "", "x", out));
        }
        put_message(&graph, GRAPH_NODE, make_node("Foo7", "", "x", "again"));
        loaded l;
        load_model(&l, make_model(graph), NULL);
        assert_int_equal(l.status, UIR_STATUS_UNSUPPORTED);
        assert_int_equal(l.diagnostics.error_count, counts[i] < 256 ? counts[i] : 256);
        assert_true(said(&l, "(2 nodes; this is the first)"));
        unload(&l);
    }
}

static blob model_of_two_opsets(const char *domain, int64_t first, int64_t second) {
    blob model = blob_new();
    put_int(&model, MODEL_IR_VERSION, 8);
    put_message(&model, MODEL_OPSET, make_opset("", 17));
    put_message(&model, MODEL_OPSET, make_opset(domain, first));
    put_message(&model, MODEL_OPSET, make_opset(domain, second));
    put_message(&model, MODEL_GRAPH, make_graph_of(make_node("Relu", "n", "x", "y")));
    return model;
}

/* The same version twice says nothing new; two versions contradict each other. "ai.onnx" is the empty domain. */
static void a_domain_has_one_version(void **state) {
    (void)state;
    loaded l;
    load_model(&l, model_of_two_opsets("pkg", 2, 2), NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    unload(&l);
    load_model(&l, model_of_two_opsets("ai.onnx", 17, 17), NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    unload(&l);
    expect_failure(model_of_two_opsets("pkg", 1, 2), UIR_STATUS_BAD_FILE, "is imported in two versions");
    expect_failure(model_of_two_opsets("ai.onnx", 17, 18), UIR_STATUS_BAD_FILE, "is imported in two versions");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_numbers_fit_their_type),
        cmocka_unit_test(minus_one_is_any_size),
        cmocka_unit_test(sizes_may_be_expressions),
        cmocka_unit_test(values_are_of_their_type),
        cmocka_unit_test(scopes_end_with_their_graph),
        cmocka_unit_test(zeros_are_spelled_out),
        cmocka_unit_test(kinds_may_be_left_out),
        cmocka_unit_test(attributes_come_with_versions),
        cmocka_unit_test(lists_are_whole),
        cmocka_unit_test(inputs_of_bodies_hide_constants),
        cmocka_unit_test(outputs_are_as_declared),
        cmocka_unit_test(messages_name_node_and_op),
        cmocka_unit_test(hints_name_the_nearest_op),
        cmocka_unit_test(gaps_are_told_up_to_a_limit),
        cmocka_unit_test(signs_name_nothing),
        cmocka_unit_test(a_domain_has_one_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
