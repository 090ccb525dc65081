/* A model taken apart at its nodes: what each reads and makes, subgraphs and initializers of every kind included, and
 * the models that some of the nodes make. tests/api/test_parts.c runs such models. */
#include "frontend/extractor.h"
#include "tests/frontend/make.h"

#include <stdio.h>

/* ---- the model ----
 * s = Shape(x); q = [x, x]; t = If(cond) with subgraphs that read x, sp, k and far; w = Expand(k, s); v = q[zero].
 * k is an input with a default, far lies in another file, sp is sparse. */
static blob make_branch(const char *op, const char *inputs, const char *output) {
    blob graph = blob_new();
    put_text(&graph, GRAPH_NAME, "branch");
    put_message(&graph, GRAPH_NODE, make_node(op, "", inputs, output));
    put_message(&graph, GRAPH_OUTPUT, make_value(output, UIR_DTYPE_F32, NULL));
    return graph;
}

static blob make_if(const char *name, const char *condition, const char *output, blob then_branch, blob else_branch) {
    blob node = make_node("If", name, condition, output);
    put_message(&node, NODE_ATTRIBUTE, make_graph_attribute("then_branch", then_branch));
    put_message(&node, NODE_ATTRIBUTE, make_graph_attribute("else_branch", else_branch));
    return node;
}

static blob make_mixed(int64_t ir_version) {
    static const int64_t three[] = {3}, one[] = {1};
    static const float numbers[] = {1, 2, 3};
    static const int64_t zero[] = {0}, place[] = {2};
    blob graph = blob_new(), model = blob_new();
    put_text(&graph, GRAPH_NAME, "mixed");
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F32, "batch,3"));
    put_message(&graph, GRAPH_INPUT, make_value("k", UIR_DTYPE_F32, "3"));
    put_message(&graph, GRAPH_INPUT, make_value("cond", UIR_DTYPE_BOOL, ""));
    put_message(&graph, GRAPH_NODE, make_node("Shape", "shape", "x", "s"));
    put_message(&graph, GRAPH_NODE, make_node("SequenceConstruct", "", "x,x", "q"));
    blob nested = blob_new();
    put_text(&nested, GRAPH_NAME, "nested");
    put_message(
        &nested, GRAPH_NODE,
        make_if("deep", "cond", "inner", make_branch("Identity", "k", "a"), make_branch("Identity", "far", "b")));
    put_message(&nested, GRAPH_OUTPUT, make_value("inner", UIR_DTYPE_F32, NULL));
    put_message(&graph, GRAPH_NODE, make_if("if", "cond", "t", make_branch("Add", "x,sp", "c"), nested));
    put_message(&graph, GRAPH_NODE, make_node("Expand", "expand", "k,s", "w"));
    put_message(&graph, GRAPH_NODE, make_node("SequenceAt", "at", "q,zero", "v,-"));
    blob tensor = make_tensor("k", UIR_DTYPE_F32, 1, three);
    put_bytes(&tensor, TENSOR_RAW, numbers, sizeof numbers);
    put_message(&graph, GRAPH_INITIALIZER, tensor);
    tensor = make_tensor("zero", UIR_DTYPE_I64, 0, NULL);
    put_bytes(&tensor, TENSOR_RAW, zero, sizeof zero);
    put_message(&graph, GRAPH_INITIALIZER, tensor);
    tensor = make_tensor("far", UIR_DTYPE_F32, 1, three);
    put_int(&tensor, TENSOR_LOCATION, 1);
    put_message(&tensor, TENSOR_EXTERNAL, make_pair("location", "elsewhere.bin"));
    put_message(&graph, GRAPH_INITIALIZER, tensor);
    blob sparse = blob_new(), values = make_tensor("sp", UIR_DTYPE_F32, 1, one), indices;
    put_bytes(&values, TENSOR_RAW, numbers, 4);
    indices = make_tensor("", UIR_DTYPE_I64, 1, one);
    put_bytes(&indices, TENSOR_RAW, place, sizeof place);
    put_message(&sparse, 1, values);
    put_message(&sparse, 2, indices);
    put_int(&sparse, 3, three[0]);
    put_message(&graph, GRAPH_SPARSE, sparse);
    put_message(&graph, GRAPH_OUTPUT, make_value("w", UIR_DTYPE_F32, NULL));
    put_message(&graph, GRAPH_OUTPUT, make_value("v", UIR_DTYPE_F32, NULL));
    put_message(&graph, GRAPH_OUTPUT, make_value("t", UIR_DTYPE_F32, NULL));
    put_int(&model, MODEL_IR_VERSION, ir_version);
    put_message(&model, MODEL_OPSET, make_opset("", 20));
    put_message(&model, MODEL_METADATA, make_pair("kept", "as it is"));
    put_message(&model, MODEL_GRAPH, graph);
    return model;
}

enum { SHAPE, CONSTRUCT, IF, EXPAND, AT, PARTS };

/* ---- taking apart ---- */
typedef struct apart {
    uir_allocator allocator;
    uir_diagnostics diagnostics;
    uir_onnx_extractor parts;
    blob bytes;
    uir_status status;
} apart;

static void take_apart(apart *a, blob bytes) {
    *a = (apart){.allocator = uir_allocator_system(), .bytes = bytes};
    uir_diagnostics_init(&a->diagnostics, &a->allocator);
    a->status = uir_onnx_extractor_init(bytes.data, bytes.length, "m.onnx", &a->allocator, &a->diagnostics, &a->parts);
}

static void put_away(apart *a) {
    for (uint32_t i = 0; i < a->parts.values.count; i++)
        uir_datum_release((uir_datum *)(uintptr_t)a->parts.values.data[i].datum);
    uir_onnx_extractor_deinit(&a->parts);
    uir_diagnostics_deinit(&a->diagnostics);
    blob_free(&a->bytes);
}

static void add_name(char *list, const char *name) {
    if (*list) strcat(list, ",");
    strcat(list, name);
}

static void expect_names(const apart *a, const uint32_t *values, uint32_t count, const char *expected) {
    char text[256] = "";
    for (uint32_t i = 0; i < count; i++) add_name(text, uir_onnx_extractor_name(&a->parts, values[i]));
    assert_string_equal(text, expected);
}
#define EXPECT_NAMES(a, list, expected) expect_names(a, (list).data, (list).count, expected)

static uir_onnx_part_value *value_of(apart *a, const char *name) {
    for (uint32_t i = 1; i < a->parts.values.count; i++)
        if (!strcmp(uir_onnx_extractor_name(&a->parts, i), name)) return &a->parts.values.data[i];
    fail_msg("no value is called '%s'", name);
    return NULL;
}

static void every_node_says_what_it_reads_and_makes(void **state) {
    (void)state;
    static const struct {
        const char *name, *op, *reads, *makes;
    } expected[PARTS] = {{"shape", "Shape", "x", "s"},
                         {"q", "SequenceConstruct", "x,x", "q"},
                         {"if", "If", "cond,x,sp,c,cond,k,a,far,b,inner", "t"},
                         {"expand", "Expand", "k,s", "w"},
                         {"at", "SequenceAt", "q,zero", "v"}};
    apart a;
    take_apart(&a, make_mixed(10));
    assert_int_equal(a.status, UIR_STATUS_OK);
    assert_int_equal(a.parts.parts.count, PARTS);
    for (int i = 0; i < PARTS; i++) {
        const uir_onnx_part *part = &a.parts.parts.data[i];
        assert_string_equal(part->name, expected[i].name);
        assert_string_equal(part->op, expected[i].op);
        EXPECT_NAMES(&a, part->reads, expected[i].reads);
        EXPECT_NAMES(&a, part->makes, expected[i].makes);
        for (uint32_t k = 0; k < part->makes.count; k++)
            assert_int_equal(a.parts.values.data[part->makes.data[k]].maker, i + 1);
    }
    EXPECT_NAMES(&a, a.parts.inputs, "x,cond");
    EXPECT_NAMES(&a, a.parts.outputs, "w,v,t");
    EXPECT_NAMES(&a, a.parts.recorded, "s,q,t,w,v,far");
    assert_int_equal(a.parts.ir_version, 10);
    static const char *const constants[] = {"k", "zero", "far", "sp"}, *const inside[] = {"a", "b", "c", "inner"};
    for (int i = 0; i < 4; i++) {
        const uir_onnx_part_value *v = value_of(&a, constants[i]);
        assert_true(v->known && v->initializer.data && !v->input.data && !v->maker && !v->is_output);
        assert_int_equal(v->external, i == 2);
        assert_false(value_of(&a, inside[i])->known);
    }
    assert_true(value_of(&a, "x")->known && value_of(&a, "x")->input.data && !value_of(&a, "x")->initializer.data);
    assert_true(value_of(&a, "w")->is_output && value_of(&a, "w")->known && !value_of(&a, "s")->is_output);
    put_away(&a);
}

static void the_whole_gives_all_that_is_made(void **state) {
    (void)state;
    for (int64_t version = 3; version <= 5; version++) {
        apart a, b;
        blob text = blob_new();
        take_apart(&a, make_mixed(version));
        assert_int_equal(uir_onnx_extractor_print_all(&a.parts, &text), UIR_STATUS_OK);
        take_apart(&b, text);
        assert_int_equal(b.status, UIR_STATUS_OK);
        assert_int_equal(b.parts.parts.count, PARTS);
        EXPECT_NAMES(&b, b.parts.inputs, "x,cond");
        EXPECT_NAMES(&b, b.parts.outputs, "s,q,t,w,v,far");
        assert_int_equal(b.parts.ir_version, version < 4 ? 4 : version); /* from which initializers are no inputs */
        assert_int_equal(b.parts.head.count, a.parts.head.count);
        for (uint32_t i = 0; i < a.parts.head.count; i++) {
            assert_int_equal(b.parts.head.data[i].length, a.parts.head.data[i].length);
            assert_memory_equal(b.parts.head.data[i].data, a.parts.head.data[i].data, a.parts.head.data[i].length);
        }
        static const char *const constants[] = {"k", "zero", "far", "sp"};
        for (int i = 0; i < 4; i++) assert_non_null(value_of(&b, constants[i])->initializer.data);
        put_away(&a);
        put_away(&b);
    }
}

/* ---- some of the parts ---- */
static uir_datum *make_datum(apart *a, uir_dtype dtype, uint32_t rank, const int64_t *shape, int64_t first) {
    uir_tensor *tensor;
    uir_datum *datum;
    assert_int_equal(uir_tensor_create(&a->allocator, dtype, rank, shape, &tensor), UIR_STATUS_OK);
    if (tensor->byte_size) memset(tensor->data, 0, tensor->byte_size);
    for (uint64_t i = 0; i < tensor->element_count && uir_dtype_is_integer(dtype); i++)
        uir_dtype_store_integer(dtype, tensor->data, i, first + (int64_t)i, false, UIR_ROUND_NEAREST_EVEN);
    assert_int_equal(uir_datum_create_tensor(&a->allocator, tensor, &datum), UIR_STATUS_OK);
    return datum;
}

static void set_datum(apart *a, const char *name, uir_datum *datum) {
    uir_onnx_part_value *v = value_of(a, name);
    uir_datum_release((uir_datum *)(uintptr_t)v->datum);
    v->datum = datum;
}

static uir_datum *make_list(apart *a, uir_value_kind kind, uir_datum *element, int count) {
    uir_datum *list;
    assert_int_equal(uir_datum_create_list(&a->allocator, kind, UIR_DTYPE_F32, &list), UIR_STATUS_OK);
    for (int i = 0; i < count; i++) {
        if (i) uir_datum_retain(element);
        assert_int_equal(uir_datum_append(list, element), UIR_STATUS_OK);
    }
    return list;
}

static void open_run(apart *a) {
    static const int64_t rows[] = {2, 3}, two[] = {2}, three[] = {3};
    take_apart(a, make_mixed(10));
    assert_int_equal(a->status, UIR_STATUS_OK);
    set_datum(a, "x", make_datum(a, UIR_DTYPE_F32, 2, rows, 0));
    set_datum(a, "cond", make_datum(a, UIR_DTYPE_BOOL, 0, NULL, 0));
    set_datum(a, "s", make_datum(a, UIR_DTYPE_I64, 1, two, 2));
    set_datum(a, "q", make_list(a, UIR_VALUE_SEQUENCE, make_datum(a, UIR_DTYPE_F32, 2, rows, 0), 2));
    set_datum(a, "far", make_datum(a, UIR_DTYPE_F32, 1, three, 0));
    static const char *const made[] = {"w", "v", "t"};
    for (int i = 0; i < 3; i++) set_datum(a, made[i], make_datum(a, UIR_DTYPE_F32, 2, rows, 0));
}

static void expect_names_of(const loaded *l, const uir_value_id *values, uint32_t count, const char *expected) {
    char text[256] = "";
    for (uint32_t i = 0; i < count; i++) add_name(text, value_name(l, values[i]));
    assert_string_equal(text, expected);
}

/* The model of one part; what it reads and makes are the names expected. */
static blob print_cut(apart *a, int part, bool fixed, const char *inputs, const char *outputs) {
    bool kept[PARTS] = {false};
    uir_onnx_cut cut = {.kept = kept, .fixed = fixed};
    blob text = blob_new();
    kept[part] = true;
    assert_int_equal(uir_onnx_extractor_print(&a->parts, &cut, &text), UIR_STATUS_OK);
    EXPECT_NAMES(a, cut.inputs, inputs);
    EXPECT_NAMES(a, cut.outputs, outputs);
    return text;
}

/* The same, loaded. */
static void expect_cut(apart *a, int part, bool fixed, const char *inputs, const char *outputs, loaded *l) {
    load_model(l, print_cut(a, part, fixed, inputs, outputs), NULL);
    if (l->status != UIR_STATUS_OK) fail_msg("%s", l->diagnostics.first->message);
    expect_names_of(l, main_graph(l)->inputs.data, main_graph(l)->inputs.count, inputs);
    expect_names_of(l, main_graph(l)->outputs.data, main_graph(l)->outputs.count, outputs);
}

static const uir_value_info *input_of(const loaded *l, uint32_t index) {
    return uir_value_info_get(l->module, main_graph(l)->inputs.data[index]);
}

static void cuts_have_what_they_read(void **state) {
    (void)state;
    apart a;
    loaded l;
    open_run(&a);
    for (int fixed = 0; fixed < 2; fixed++) {
        expect_cut(&a, SHAPE, fixed, "x", "s", &l);
        int64_t extent;
        const uir_type *type = &input_of(&l, 0)->type;
        assert_int_equal(type->rank, 2);
        assert_int_equal(uir_dim_is_const(l.module->dims, type->dims[0], &extent), fixed);
        unload(&l);
        expect_cut(&a, EXPAND, fixed, "", "w", &l); /* a shape is a constant */
        const uir_tensor *s = uir_value_info_get(l.module, main_node(&l, 0)->inputs[1])->constant;
        assert_non_null(s);
        assert_memory_equal(s->data, ((int64_t[]){2, 3}), 16);
        unload(&l);
        expect_cut(&a, AT, fixed, "q", "v", &l);
        assert_int_equal(input_of(&l, 0)->type.kind, UIR_VALUE_SEQUENCE);
        assert_int_equal(input_of(&l, 0)->type.dtype, UIR_DTYPE_F32);
        unload(&l);
        expect_cut(&a, IF, fixed, "x,cond", "t", &l); /* what lies in another file comes along */
        unload(&l);
    }
    /* As long as the caller tells nothing of what is read, there is no such model. */
    bool kept[PARTS] = {[EXPAND] = true}, left_out[64] = {false};
    uir_onnx_cut cut = {.kept = kept};
    blob text = blob_new();
    set_datum(&a, "s", NULL);
    assert_int_equal(uir_onnx_extractor_print(&a.parts, &cut, &text), UIR_STATUS_BAD_DATA);
    kept[EXPAND] = false, kept[SHAPE] = true;
    cut.left_out = left_out;
    assert_true(a.parts.values.count < 64);
    assert_int_equal(uir_onnx_extractor_print(&a.parts, &cut, &text), UIR_STATUS_OK);
    EXPECT_NAMES(&a, cut.outputs, "s");
    left_out[value_of(&a, "s") - a.parts.values.data] = true;
    assert_int_equal(uir_onnx_extractor_print(&a.parts, &cut, &text), UIR_STATUS_OK);
    EXPECT_NAMES(&a, cut.outputs, "");
    blob_free(&text);
    put_away(&a);
}

/* Small integers of rank 0 and 1 become constants, whatever else is made becomes an input; so does an input. */
static void what_shapes_look_like(void **state) {
    (void)state;
    static const struct {
        uir_dtype dtype;
        uint32_t rank;
        int64_t shape[2];
        bool constant;
    } cases[] = {{UIR_DTYPE_I64, 1, {64}, true},  {UIR_DTYPE_I64, 1, {65}, false},   {UIR_DTYPE_I64, 0, {0}, true},
                 {UIR_DTYPE_I32, 1, {2}, true},   {UIR_DTYPE_I64, 2, {1, 2}, false}, {UIR_DTYPE_F32, 1, {2}, false},
                 {UIR_DTYPE_BOOL, 0, {0}, false}, {UIR_DTYPE_I64, 1, {0}, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        apart a;
        open_run(&a);
        set_datum(&a, "s", make_datum(&a, cases[i].dtype, cases[i].rank, cases[i].shape, 0));
        blob text = print_cut(&a, EXPAND, true, cases[i].constant ? "" : "s", "w");
        blob_free(&text);
        put_away(&a);
    }
    apart a;
    static const int64_t two[] = {2};
    open_run(&a);
    set_datum(&a, "x", make_datum(&a, UIR_DTYPE_I64, 1, two, 0));
    blob text = print_cut(&a, SHAPE, true, "x", "s");
    blob_free(&text);
    put_away(&a);
}

/* The types of lists, by their values. */
static void types_of_lists(void **state) {
    (void)state;
    static const int64_t rows[] = {2, 3};
    static const struct {
        int elements;
        bool optional;
    } cases[] = {{1, false}, {0, false}, {1, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        apart a;
        loaded l;
        open_run(&a);
        uir_datum *element = cases[i].elements ? make_datum(&a, UIR_DTYPE_F32, 2, rows, 0) : NULL;
        uir_datum *list = make_list(&a, UIR_VALUE_SEQUENCE, element, cases[i].elements);
        set_datum(&a, "q", cases[i].optional ? make_list(&a, UIR_VALUE_OPTIONAL, list, 1) : list);
        expect_cut(&a, AT, true, "q", "v", &l);
        assert_int_equal(input_of(&l, 0)->type.kind, cases[i].optional ? UIR_VALUE_OPTIONAL : UIR_VALUE_SEQUENCE);
        assert_int_equal(input_of(&l, 0)->type.dtype, UIR_DTYPE_F32);
        unload(&l);
        put_away(&a);
    }
}

/* ---- types by themselves ---- */
static void types_are_printed_with_their_names(void **state) {
    (void)state;
    static const char *const dims[] = {"n,3", "?,4", "", "my dim,2", "n,2 * n"};
    for (int i = 0; i < 5; i++) {
        for (int list = 0; list < 2; list++) {
            loaded l, again;
            blob graph = blob_new(), value = blob_new(), type = blob_new();
            put_text(&graph, GRAPH_NAME, "g");
            put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F16, dims[i]));
            put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_F16, NULL));
            put_message(&graph, GRAPH_NODE, make_node("Identity", "n", "x", "y"));
            load_model(&l, make_model(graph), NULL);
            assert_int_equal(l.status, UIR_STATUS_OK);
            uir_type printed = input_of(&l, 0)->type;
            if (list) printed.kind = UIR_VALUE_SEQUENCE;
            assert_int_equal(uir_onnx_print_type(l.module, &printed, &type), UIR_STATUS_OK);
            put_text(&value, VALUE_NAME, "x");
            put_message(&value, VALUE_TYPE, type);
            graph = blob_new();
            put_text(&graph, GRAPH_NAME, "g");
            put_message(&graph, GRAPH_INPUT, value);
            put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_I64, NULL));
            put_message(&graph, GRAPH_NODE, make_node(list ? "SequenceLength" : "Shape", "n", "x", "y"));
            load_model(&again, make_model(graph), NULL);
            if (again.status != UIR_STATUS_OK) fail_msg("%s", again.diagnostics.first->message);
            const uir_type *got = &input_of(&again, 0)->type;
            assert_int_equal(got->kind, list ? UIR_VALUE_SEQUENCE : UIR_VALUE_TENSOR);
            assert_int_equal(got->dtype, UIR_DTYPE_F16);
            for (uint32_t d = 0; !list && d < printed.rank; d++) {
                blob first = blob_new(), second = blob_new();
                uir_dim_print(l.module->dims, printed.dims[d], &first);
                uir_dim_print(again.module->dims, got->dims[d], &second);
                assert_string_equal(first.data, second.data);
                blob_free(&first);
                blob_free(&second);
            }
            if (!list) assert_int_equal(got->rank, printed.rank);
            unload(&l);
            unload(&again);
        }
    }
}

/* Two dims that are called alike, one by the file, stay two. */
static void dims_of_one_name_are_told_apart(void **state) {
    (void)state;
    loaded l, again;
    blob graph = blob_new(), value = blob_new(), type = blob_new();
    put_text(&graph, GRAPH_NAME, "g");
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F16, "n,n*2"));
    put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_F16, NULL));
    put_message(&graph, GRAPH_NODE, make_node("Identity", "n", "x", "y"));
    load_model(&l, make_model(graph), NULL);
    assert_int_equal(l.status, UIR_STATUS_OK);
    uir_symbol made;
    uir_dims *context = l.module->dims;
    assert_int_equal(uir_dims_add_symbol(context, "n", 1, UIR_SYMBOL_FACTS_SIZE, &made), UIR_STATUS_OK);
    const uir_type *x = &input_of(&l, 0)->type;
    uir_dim other = uir_dim_symbol(context, made), two = uir_dim_const(context, 2);
    uir_dim dims[] = {x->dims[0], other, uir_dim_mul(context, other, two), x->dims[1], other};
    uir_type printed = {UIR_VALUE_TENSOR, UIR_DTYPE_F16, true, 5, dims};
    assert_int_equal(uir_onnx_print_type(l.module, &printed, &type), UIR_STATUS_OK);
    put_text(&value, VALUE_NAME, "x");
    put_message(&value, VALUE_TYPE, type);
    graph = blob_new();
    put_text(&graph, GRAPH_NAME, "g");
    put_message(&graph, GRAPH_INPUT, value);
    put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_I64, NULL));
    put_message(&graph, GRAPH_NODE, make_node("Shape", "n", "x", "y"));
    load_model(&again, make_model(graph), NULL);
    assert_int_equal(again.status, UIR_STATUS_OK);
    const uir_dim *got = input_of(&again, 0)->type.dims;
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 5; k++) assert_int_equal(uir_dim_equal(got[i], got[k]), uir_dim_equal(dims[i], dims[k]));
    unload(&l);
    unload(&again);
}

/* ---- damage ---- */
static void subgraphs_nest_so_far(void **state) {
    (void)state;
    for (int depth = 99; depth <= 101; depth++) {
        apart a;
        blob graph = make_branch("Identity", "x", "z");
        for (int i = 0; i < depth; i++) {
            blob node = make_node("If", "", "c", "z"), outer = blob_new();
            put_message(&node, NODE_ATTRIBUTE, make_graph_attribute("then_branch", graph));
            put_message(&outer, GRAPH_NODE, node);
            graph = outer;
        }
        take_apart(&a, make_model(graph));
        assert_int_equal(a.status, depth <= 100 ? UIR_STATUS_OK : UIR_STATUS_BAD_FILE);
        if (a.status != UIR_STATUS_OK) {
            assert_non_null(strstr(a.diagnostics.first->message, "nested too deep"));
            assert_true(a.diagnostics.first->location.has_offset);
        }
        put_away(&a);
    }
}

static void damaged_bytes_have_a_place(void **state) {
    (void)state;
    blob whole = make_mixed(10);
    for (size_t length = 0; length < whole.length; length++) {
        apart a;
        blob bytes = blob_new();
        uir_text_append(&bytes, whole.data, length);
        take_apart(&a, bytes);
        if (a.status != UIR_STATUS_OK) {
            assert_int_equal(a.status, UIR_STATUS_BAD_FILE);
            assert_true(a.diagnostics.first->location.has_offset && a.diagnostics.first->location.offset <= length);
        }
        put_away(&a);
    }
    blob_free(&whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_node_says_what_it_reads_and_makes),
        cmocka_unit_test(the_whole_gives_all_that_is_made),
        cmocka_unit_test(cuts_have_what_they_read),
        cmocka_unit_test(what_shapes_look_like),
        cmocka_unit_test(types_of_lists),
        cmocka_unit_test(types_are_printed_with_their_names),
        cmocka_unit_test(dims_of_one_name_are_told_apart),
        cmocka_unit_test(subgraphs_nest_so_far),
        cmocka_unit_test(damaged_bytes_have_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
