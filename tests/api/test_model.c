/* Models and sessions of the public API, on small models made here. */
#include "tests/api/sequences.h"
#include "tests/api/small.h"
#include "tools/run/query.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static uir_model *load_small_for(uir_context *context, const char *device) {
    uir_model *model;
    blob bytes = small_model();
    uir_model_options options = {.struct_size = sizeof options, .device = device, .no_cache = true};
    uir_status status = uir_model_load_memory(context, bytes.data, bytes.length, NULL, &options, &model);
    blob_free(&bytes); /* before it is used: what is needed was copied */
    for (size_t i = 0; status != UIR_STATUS_OK && i < uir_context_message_count(context); i++) {
        print_message("%s\n", uir_context_get_message_text(context, i));
    }
    assert_int_equal(status, UIR_STATUS_OK);
    return model;
}

static uir_model *load_small(uir_context *context) {
    return load_small_for(context, "interpreter");
}

static int make_context(void **state) {
    uir_context *context;
    uir_status status = uir_context_create(NULL, &context);
    *state = context;
    return status;
}

static int destroy_context(void **state) {
    uir_context_destroy(*state);
    return 0;
}

static void ports_show_names_and_dims(void **state) {
    uir_context *context = *state;
    uir_model *model = load_small(context);
    assert_int_equal(uir_model_input_count(model), 1);
    assert_int_equal(uir_model_output_count(model), 2);
    uir_port x = query_input(model, 0), y = query_output(model, 0);
    assert_string_equal(x.name, "x");
    assert_int_equal(x.dtype, UIR_DTYPE_F32);
    assert_true(x.rank_known && x.rank == 2);
    assert_true(x.dims[0] == -1 && x.dims[1] == 3);
    assert_string_equal(x.dim_names[0], "batch");
    assert_string_equal(x.dim_names[1], "");
    assert_string_equal(y.name, "y");
    assert_true(y.rank == 2 && y.dims[1] == 3); /* inferred */
    assert_string_equal(y.dim_names[0], "batch");
    assert_string_equal(uir_model_get_output_name(model, 1), "z");
    size_t index = 9;
    assert_true(uir_model_find_input(model, "x", &index) == UIR_STATUS_OK && index == 0);
    assert_true(uir_model_find_output(model, "z", &index) == UIR_STATUS_OK && index == 1);
    assert_true(uir_model_find_output(model, "zz", &index) == UIR_STATUS_NOT_FOUND && index == 1);
    assert_true(has_message(context, "the model has no output 'zz'; it has 'y', 'z'; did you mean 'z'?"));
    assert_int_equal(uir_model_find_input(model, "something else", &index), UIR_STATUS_NOT_FOUND);
    assert_true(has_message(context, "the model has no input 'something else'; it has 'x'"));
    assert_int_equal(uir_model_find_input(model, NULL, &index), UIR_STATUS_INVALID_ARGUMENT);
    assert_string_equal(uir_model_get_metadata(model, "author"), "nobody");
    assert_null(uir_model_get_metadata(model, "title"));
    assert_int_equal(query_info(model).opset, 20);
    assert_int_equal(query_info(model).onnx_node_count, 3);
    assert_true(query_info(model).primitive_count >= 3);
    uir_model_destroy(model);
}

/* What a model answers of its file; structures of another size are filled as far as they go. */
static void a_file_is_described(void **state) {
    uir_context *context = *state;
    blob bytes = small_model();
    const char *names[] = {"the addition"};
    uir_model_options options = {
        .struct_size = sizeof options, .device = "vm", .no_cache = true, .keep = names, .keep_count = 1};
    uir_model *model;
    assert_int_equal(uir_model_load_memory(context, bytes.data, bytes.length, NULL, &options, &model), UIR_STATUS_OK);
    uir_opset opset = {.struct_size = sizeof opset};
    assert_true(uir_model_get_opset(model, 0, &opset) == UIR_STATUS_OK);
    assert_true(opset.version == 20 && !*opset.domain && uir_model_get_opset(model, 1, &opset) != UIR_STATUS_OK);
    uir_op_count op = {.struct_size = sizeof op};
    uint64_t nodes = 0;
    for (size_t i = 0; uir_model_get_op_count(model, i, &op) == UIR_STATUS_OK; i++) nodes += op.count;
    assert_int_equal(nodes, 3);
    uir_metadata pair = {.struct_size = sizeof pair};
    assert_true(uir_model_get_metadata_at(model, 0, &pair) == UIR_STATUS_OK);
    assert_string_equal(pair.key, "author");
    assert_string_equal(pair.value, "nobody");
    assert_false(uir_model_get_metadata_at(model, 1, &pair) == UIR_STATUS_OK);
    uir_model_contents contents = {.struct_size = sizeof contents};
    (void)!uir_model_get_contents(model, &contents);
    assert_string_equal(contents.graph, "small");
    assert_true(contents.parameter_count == 3 && contents.weight_bytes == 12 && contents.package_version == 0);
    assert_int_equal(uir_model_output_count(model), 3);
    uir_output_maker maker = {.struct_size = sizeof maker};
    assert_int_equal(uir_model_get_output_maker(model, 2, &maker), UIR_STATUS_OK);
    assert_string_equal(maker.node, "the addition");
    assert_string_equal(maker.op, "Add");
    assert_true(maker.is_kept && maker.place == 1);
    assert_true(uir_model_get_output_maker(model, 0, &maker) == UIR_STATUS_OK && !maker.is_kept && maker.place == 2);
    assert_int_equal(uir_model_get_output_maker(model, 3, &maker), UIR_STATUS_NOT_FOUND);
    assert_int_equal(uir_model_get_native_code(model, 0, &(uir_native_code){.struct_size = sizeof(uir_native_code)}),
                     UIR_STATUS_NOT_FOUND);
    /* An older caller's, of two members. */
    opset = (uir_opset){.struct_size = offsetof(uir_opset, version), .version = -1};
    assert_true(uir_model_get_opset(model, 0, &opset) == UIR_STATUS_OK && !*opset.domain && opset.version == -1);
    /* A newer one's, with a member that is not known here. */
    struct {
        uir_opset known;
        int64_t later;
    } newer = {{.struct_size = sizeof newer}, -1};
    assert_true(uir_model_get_opset(model, 0, &newer.known) == UIR_STATUS_OK && newer.known.version == 20 &&
                newer.later == 0);
    uir_model_destroy(model);
    names[0] = "the adition";
    assert_int_equal(uir_model_load_memory(context, bytes.data, bytes.length, NULL, &options, &model),
                     UIR_STATUS_INVALID_ARGUMENT);
    assert_true(has_message(context, "did you mean 'the addition'"));
    blob_free(&bytes);
}

/* Of x and w, where w has a default: y = max(x + w, 0). */
static float run_with(uir_model *model, float x, const float *w) {
    uir_session *session;
    uir_value *inputs[2] = {NULL, NULL}, *y;
    uir_session_options options = {.struct_size = sizeof options, .threads = 1};
    uir_context *context;
    assert_int_equal(uir_context_create(NULL, &context), UIR_STATUS_OK);
    assert_int_equal(uir_session_create(model, &options, &session), UIR_STATUS_OK);
    assert_int_equal(uir_value_create_tensor(context, UIR_DTYPE_F32, 2, (int64_t[]){1, 3}, &inputs[0]), UIR_STATUS_OK);
    assert_int_equal(uir_value_create_tensor(context, UIR_DTYPE_F32, 1, (int64_t[]){3}, &inputs[1]), UIR_STATUS_OK);
    for (size_t i = 0; i < 3; i++) {
        ((float *)uir_value_get_data(inputs[0]))[i] = x;
        ((float *)uir_value_get_data(inputs[1]))[i] = w ? *w : 0;
    }
    assert_int_equal(uir_model_input_count(model), w ? 2 : 1);
    for (size_t i = 0; i < (w ? 2u : 1u); i++)
        assert_int_equal(uir_session_set_input(session, i, inputs[i]), UIR_STATUS_OK);
    assert_int_equal(uir_session_run(session), UIR_STATUS_OK);
    assert_int_equal(uir_session_get_output(session, 0, &y), UIR_STATUS_OK);
    float last = (float)uir_value_get_double(y, 2);
    uir_session_destroy(session);
    uir_value_destroy(inputs[0]);
    uir_value_destroy(inputs[1]);
    uir_context_destroy(context);
    return last;
}

static void defaults_are_overridden(void **state) {
    uir_context *context = *state;
    blob bytes = small_model();
    static const char *const engines[] = {"interpreter", "vm"};
    const char *names[] = {"w", "x"};
    const float given = 10;
    for (size_t i = 0; i < 2; i++) {
        uir_model_options options = {.struct_size = sizeof options, .device = engines[i], .no_cache = true};
        uir_default d = {.struct_size = sizeof d};
        uir_model *model;
        assert_int_equal(uir_model_load_memory(context, bytes.data, bytes.length, NULL, &options, &model),
                         UIR_STATUS_OK);
        assert_int_equal(uir_model_get_default(model, 0, &d), UIR_STATUS_OK);
        assert_string_equal(d.name, "w");
        assert_true(d.place == 1 && !d.is_overridden);
        assert_int_equal(uir_model_get_default(model, 1, &d), UIR_STATUS_NOT_FOUND);
        assert_true(run_with(model, 2, NULL) == 3);
        uir_model_destroy(model);
        options.overrides = names;
        options.override_count = 2; /* x is an input anyway */
        assert_int_equal(uir_model_load_memory(context, bytes.data, bytes.length, NULL, &options, &model),
                         UIR_STATUS_OK);
        assert_int_equal(uir_model_get_default(model, 0, &d), UIR_STATUS_OK);
        assert_true(d.place == 1 && d.is_overridden);
        assert_true(run_with(model, 2, &given) == 12);
        uir_model_destroy(model);
        const char *wrong = "y";
        options.overrides = &wrong;
        options.override_count = 1;
        assert_int_equal(uir_model_load_memory(context, bytes.data, bytes.length, NULL, &options, &model),
                         UIR_STATUS_INVALID_ARGUMENT);
        bool told = false;
        for (size_t k = 0; k < uir_context_message_count(context); k++)
            told |= strstr(uir_context_get_message_text(context, k), "'y' cannot be overridden") != NULL;
        assert_true(told);
        uir_context_clear_messages(context);
    }
    blob_free(&bytes);
}

/* Not supported, but asked about. */
static void an_unsupported_model_is_described(void **state) {
    uir_context *context = *state;
    blob graph = blob_new();
    put_text(&graph, GRAPH_NAME, "strange");
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F32, "batch,3"));
    put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_F32, NULL));
    put_message(&graph, GRAPH_NODE, make_node("Frobnicate", "first", "x", "y"));
    blob bytes = make_model(graph);
    uir_model_options options = {.struct_size = sizeof options, .device = "interpreter"};
    uir_model *model;
    uir_session *session;
    int64_t dims[2];
    assert_int_equal(uir_model_load_memory(context, bytes.data, bytes.length, NULL, &options, &model),
                     UIR_STATUS_UNSUPPORTED);
    options.describe = true;
    assert_int_equal(uir_model_load_memory(context, bytes.data, bytes.length, NULL, &options, &model), UIR_STATUS_OK);
    assert_true(has_message(context, "Frobnicate"));
    assert_int_equal(uir_model_input_count(model), 1);
    assert_string_equal(query_input(model, 0).dim_names[0], "batch");
    assert_int_equal(uir_model_get_input_shape(model, 0, NULL, 0, dims), UIR_STATUS_UNSUPPORTED);
    assert_int_equal(uir_session_create(model, NULL, &session), UIR_STATUS_UNSUPPORTED);
    assert_int_equal(uir_model_wait(model), UIR_STATUS_OK);
    uir_model_destroy(model);
    blob_free(&bytes);
}

static void shapes_follow_bound_dims(void **state) {
    uir_context *context = *state;
    uir_model *model = load_small(context);
    int64_t dims[2];
    assert_int_equal(uir_model_get_input_shape(model, 0, NULL, 0, dims), UIR_STATUS_OK);
    assert_true(dims[0] == 1 && dims[1] == 3);
    assert_int_equal(uir_model_get_input_shape(model, 0, &(uir_dim_binding){"batch", 0}, 1, dims), UIR_STATUS_OK);
    assert_true(dims[0] == 0 && dims[1] == 3);
    assert_int_equal(uir_model_get_input_shape(model, 0, &(uir_dim_binding){"bach", 2}, 1, dims), UIR_STATUS_NOT_FOUND);
    assert_true(has_message(context, "'bach'"));
    assert_int_equal(uir_model_get_input_shape(model, 0, &(uir_dim_binding){"batch", -2}, 1, dims),
                     UIR_STATUS_INVALID_ARGUMENT);
    assert_true(has_message(context, "the dim 'batch' cannot be -2"));
    assert_int_equal(uir_model_get_input_shape(model, 1, NULL, 0, dims), UIR_STATUS_INVALID_ARGUMENT);
    uir_model_destroy(model);
}

/* An input x of a dim whose name is no word, an input of no rank, one of rank 0; each goes through Neg. */
static void dims_are_called_what_they_are(void **state) {
    uir_context *context = *state;
    uir_model_options options = {.struct_size = sizeof options, .device = "interpreter"};
    blob graph = blob_new(), free_rank = blob_new(), type = blob_new(), tensor = blob_new();
    uir_model *model;
    put_int(&tensor, 1, UIR_DTYPE_F32);
    put_message(&type, 1, tensor);
    put_text(&free_rank, VALUE_NAME, "any");
    put_message(&free_rank, VALUE_TYPE, type);
    put_text(&graph, GRAPH_NAME, "dims");
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F32, "batch size,3,batch size,other"));
    put_message(&graph, GRAPH_INPUT, free_rank);
    put_message(&graph, GRAPH_INPUT, make_value("one", UIR_DTYPE_F32, ""));
    put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_F32, NULL));
    put_message(&graph, GRAPH_NODE, make_node("Neg", "first", "x", "y"));
    blob bytes = make_model(graph);
    assert_int_equal(uir_model_load_memory(context, bytes.data, bytes.length, NULL, &options, &model), UIR_STATUS_OK);
    blob_free(&bytes);
    uir_port x = query_input(model, 0), any = query_input(model, 1), one = query_input(model, 2);
    assert_true(x.rank_known && x.rank == 4 && x.dims[1] == 3 && x.dims[0] == -1 && x.dims[3] == -1);
    assert_string_equal(x.dim_names[0], "batch size");
    assert_string_equal(x.dim_names[2], "batch size");
    assert_string_equal(x.dim_names[3], "other");
    assert_true(!any.rank_known && any.rank == 0);
    assert_int_equal(query_info(model).primitive_count, 1);
    assert_true(one.rank_known && one.rank == 0);
    int64_t dims[4] = {7, 7, 7, 7};
    for (size_t i = 1; i < 3; i++) assert_int_equal(uir_model_get_input_shape(model, i, NULL, 0, dims), UIR_STATUS_OK);
    assert_true(dims[0] == 7); /* there is nothing to say */
    const uir_dim_binding bindings[] = {{"batch size", 5}, {"other", 2}};
    assert_int_equal(uir_model_get_input_shape(model, 0, bindings, 2, dims), UIR_STATUS_OK);
    assert_true(dims[0] == 5 && dims[1] == 3 && dims[2] == 5 && dims[3] == 2);
    uir_model_destroy(model);
}

static uir_value *make_input(uir_context *context, int64_t rows) {
    uir_value *value;
    assert_int_equal(uir_value_create_tensor(context, UIR_DTYPE_F32, 2, (int64_t[]){rows, 3}, &value), UIR_STATUS_OK);
    for (int64_t i = 0; i < rows * 3; i++) ((float *)uir_value_get_data(value))[i] = (float)(i - 3);
    return value;
}

static void check_output(uir_session *session, int64_t rows) {
    uir_value *y;
    assert_int_equal(uir_session_get_output(session, 0, &y), UIR_STATUS_OK);
    assert_true(uir_value_get_rank(y) == 2 && uir_value_get_shape(y)[0] == rows);
    for (int64_t i = 0; i < rows * 3; i++) {
        double sum = (double)(i - 3) + (double)(i % 3 - 1);
        assert_true(uir_value_get_double(y, (uint64_t)i) == (sum > 0 ? sum : 0));
    }
}

static void run_several_shapes(uir_context *context, uir_session *session) {
    uir_value *output;
    assert_int_equal(uir_session_get_output(session, 0, &output), UIR_STATUS_INVALID_ARGUMENT);
    for (int64_t rows = 0; rows < 4; rows++) {
        uir_value *input = make_input(context, rows);
        assert_int_equal(uir_session_set_input(session, 0, input), UIR_STATUS_OK);
        assert_int_equal(uir_session_run(session), UIR_STATUS_OK);
        check_output(session, rows);
        uir_value_destroy(input);
    }
    assert_int_equal(uir_session_get_output(session, 2, &output), UIR_STATUS_INVALID_ARGUMENT);
}

/* How many nodes say that they were run by it. */
static uint64_t count_by(const uir_session *session, const char *by) {
    uir_node_statistics node;
    uint64_t count = 0;
    for (size_t i = 0; query_node(session, i, &node); i++) count += !strcmp(node.by, by);
    return count;
}

static void a_session_runs_with_several_shapes(void **state) {
    static const char *const devices[] = {"interpreter", "vm", NULL};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        uir_context *context = *state;
        uir_model *model = load_small_for(context, devices[i]);
        uir_session *session;
        assert_int_equal(uir_session_create(model, NULL, &session), UIR_STATUS_OK);
        run_several_shapes(context, session);
        uir_run_statistics statistics = query_statistics(session);
        if (devices[i]) {
            assert_string_equal(statistics.ran_on, devices[i]);
            assert_true(count_by(session, devices[i]) > 0);
        }
        assert_true(i == 0 ? statistics.interpreter_calls >= 3 : statistics.interpreter_calls == 0);
        assert_int_equal(statistics.host_calls, 0);
        assert_true(i == 0 || statistics.vm_calls + statistics.native_calls > 0);
        uir_session_destroy(session);
        uir_model_destroy(model);
    }
}

static void nodes_are_told_by_their_names(void **state) {
    uir_context *context = *state;
    uir_model *model = load_small(context);
    uir_session *session;
    uir_value *input = make_input(context, 2);
    assert_int_equal(uir_session_create(model, NULL, &session), UIR_STATUS_OK);
    assert_int_equal(uir_session_set_input(session, 0, input), UIR_STATUS_OK);
    assert_int_equal(uir_session_run(session), UIR_STATUS_OK);
    uir_node_statistics node;
    bool found = false;
    for (size_t i = 0; query_node(session, i, &node); i++)
        found = found || (!strcmp(node.name, "the other") && !strcmp(node.op, "Neg") && !strcmp(node.kernel, "neg"));
    assert_true(found);
    uir_value_destroy(input);
    uir_session_destroy(session);
    uir_model_destroy(model);
}

/* A session runs on the device that its model was loaded for, or on the interpreter, and says so. */
static void sessions_are_of_the_models_device(void **state) {
    uir_context *context = *state;
    static const struct {
        const char *model, *session, *ran_on; /* ran_on NULL: refused */
    } cases[] = {
        {"interpreter", "interpreter", "interpreter"}, {"interpreter", "vm", NULL}, {"interpreter", "cpu", NULL},
        {"interpreter", "interprete", NULL},           {"vm", "vm", "vm"},          {"vm", NULL, "vm"},
        {"vm", "interpreter", "interpreter"},          {"vm", "cpu", NULL},         {"vm", "", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uir_model *model = load_small_for(context, cases[i].model);
        uir_session_options options = {.struct_size = sizeof options, .device = cases[i].session, .threads = 2};
        uir_session *session;
        uir_context_clear_messages(context);
        uir_status status = uir_session_create(model, &options, &session);
        assert_int_equal(status, cases[i].ran_on ? UIR_STATUS_OK : UIR_STATUS_UNSUPPORTED);
        if (cases[i].ran_on) {
            run_several_shapes(context, session);
            assert_string_equal(query_statistics(session).ran_on, cases[i].ran_on);
            assert_true(count_by(session, cases[i].ran_on) > 0);
        } else {
            assert_null(session);
            assert_true(has_message(context, "the model was not loaded for the device"));
        }
        uir_session_destroy(session);
        uir_model_destroy(model);
    }
    uir_context_clear_messages(context);
}

/* What a sequence is and is not asked as a tensor is. */
static void sequences_have_elements(void **state) {
    uir_context *context = *state;
    uir_value *value = make_sequence(context, "its name");
    assert_int_equal(uir_value_get_kind(value), UIR_VALUE_SEQUENCE);
    assert_int_equal(uir_value_get_dtype(value), UIR_DTYPE_F32);
    assert_string_equal(uir_value_get_name(value), "its name");
    assert_int_equal(uir_value_get_count(value), 2);
    for (size_t i = 0; i < 2; i++) {
        const uir_value *element = uir_value_get_element(value, i);
        assert_int_equal(uir_value_get_kind(element), UIR_VALUE_TENSOR);
        assert_int_equal(uir_value_get_count(element), 0);
        assert_null(uir_value_get_element(element, 0));
        assert_true(uir_value_get_double(element, 0) == (double)i && uir_value_get_double(element, 1) == 5);
    }
    assert_null(uir_value_get_element(value, 2));
    assert_true(uir_value_get_rank(value) == 0 && uir_value_get_element_count(value) == 0);
    assert_true(uir_value_get_byte_size(value) == 0 && uir_value_get_double(value, 0) == 0);
    assert_null(uir_value_get_data(value));
    assert_null(uir_value_get_shape(value));
    assert_int_equal(uir_value_set_string(value, 0, "a", 1), UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_value_fill_random(value, 1, 0, 1), UIR_STATUS_INVALID_ARGUMENT);
    uir_model *model = load_small(context);
    uir_session *session;
    assert_int_equal(uir_session_create(model, NULL, &session), UIR_STATUS_OK);
    assert_int_equal(uir_session_set_input(session, 0, value), UIR_STATUS_BAD_DATA);
    assert_true(has_message(context, "input 'x' is sequence of f32, but the model requires f32[batch, 3]"));
    uir_session_destroy(session);
    uir_model_destroy(model);
    uir_value_destroy(value);
}

static bool load_sequence(const uir_allocator *allocator) {
    uir_context *context;
    uir_status status = uir_context_create(allocator, &context);
    if (status != UIR_STATUS_OK) return false;
    uir_value *value = make_sequence(context, "a name");
    bool good = value != NULL;
    uir_value_destroy(value);
    uir_context_destroy(context);
    return good;
}

static void memory_may_run_out_for_values(void **state) {
    (void)state;
    run_with_failures(load_sequence);
}

static void inputs_that_do_not_fit_are_refused(void **state) {
    uir_context *context = *state;
    uir_model *model = load_small(context);
    uir_session *session;
    uir_value *value;
    assert_int_equal(uir_session_create(model, NULL, &session), UIR_STATUS_OK);
    assert_int_equal(uir_session_run(session), UIR_STATUS_INVALID_ARGUMENT);
    assert_true(has_message(context, "input 'x' is not bound to a value"));
    static const struct {
        uir_dtype dtype;
        uint32_t rank;
        int64_t shape[3];
    } cases[] = {
        {UIR_DTYPE_F64, 2, {2, 3}}, {UIR_DTYPE_F32, 1, {3}}, {UIR_DTYPE_F32, 2, {2, 4}}, {UIR_DTYPE_F32, 3, {2, 3, 1}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(uir_value_create_tensor(context, cases[i].dtype, cases[i].rank, cases[i].shape, &value),
                         UIR_STATUS_OK);
        uir_context_clear_messages(context);
        assert_int_equal(uir_session_set_input(session, 0, value), UIR_STATUS_BAD_DATA);
        assert_true(has_message(context, "input 'x' is f") && has_message(context, "f32[batch, 3]"));
        uir_value_destroy(value);
    }
    value = make_input(context, 1);
    assert_int_equal(uir_session_set_input(session, 1, value), UIR_STATUS_INVALID_ARGUMENT);
    uir_value_destroy(value);
    uir_session_destroy(session);
    uir_model_destroy(model);
}

static void unknown_devices_are_refused(void **state) {
    uir_context *context = *state;
    uir_model *model = load_small(context);
    uir_session *session;
    uir_session_options options = {.struct_size = sizeof options, .device = "toaster"};
    assert_int_equal(uir_session_create(model, &options, &session), UIR_STATUS_UNSUPPORTED);
    assert_null(session);
    assert_true(has_message(context, "'toaster'"));
    options.struct_size = 0;
    assert_int_equal(uir_session_create(model, &options, &session), UIR_STATUS_INVALID_ARGUMENT);
    uir_model_destroy(model);
    static const char *const unknown[] = {"toaster", "", "cpux", ":", "interpreter:x", "CPU"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        blob bytes = small_model();
        uir_model_options wrong = {.struct_size = sizeof wrong, .device = unknown[i]};
        uir_context_clear_messages(context);
        assert_int_equal(uir_model_load_memory(context, bytes.data, bytes.length, NULL, &wrong, &model),
                         UIR_STATUS_INVALID_ARGUMENT);
        assert_null(model);
        assert_true(has_message(context, "cpu, vm, null, opencl, interpreter"));
        blob_free(&bytes);
    }
}

static bool stop(void *user, const char *stage, double fraction) {
    (void)stage;
    (void)fraction;
    return --*(int *)user < 0;
}

static void loading_can_be_cancelled_at_each_stage(void **state) {
    uir_context *context = *state;
    for (int steps = 0;; steps++) {
        int left = steps;
        uir_model *model;
        blob bytes = small_model();
        uir_model_options options = {.struct_size = sizeof options, .progress = stop, .progress_user = &left};
        uir_status status = uir_model_load_memory(context, bytes.data, bytes.length, NULL, &options, &model);
        blob_free(&bytes);
        if (status == UIR_STATUS_OK) {
            assert_true(steps >= 3);
            uir_model_destroy(model);
            return;
        }
        assert_int_equal(status, UIR_STATUS_CANCELLED);
        assert_null(model);
    }
}

static void messages_name_node_and_op(void **state) {
    uir_context *context = *state;
    uir_model *model;
    blob bytes = make_model(make_graph_of(make_node("Foo", "the \"node\"\n", "x", "y")));
    uir_context_clear_messages(context);
    assert_int_equal(uir_model_load_memory(context, bytes.data, bytes.length, NULL, NULL, &model),
                     UIR_STATUS_UNSUPPORTED);
    blob_free(&bytes);
    assert_int_equal(uir_context_message_count(context), 1);
    uir_message message = query_message(context, 0);
    assert_int_equal(message.status, UIR_STATUS_UNSUPPORTED);
    assert_string_equal(message.op, "Foo");
    assert_non_null(strstr(message.node, "the \"node\""));
    assert_int_equal(uir_model_load_file(context, "/nonexistent.onnx", NULL, &model), UIR_STATUS_NOT_FOUND);
    assert_true(has_message(context, "/nonexistent.onnx"));
    uir_context_clear_messages(context);
    assert_int_equal(uir_context_message_count(context), 0);
    assert_string_equal(uir_context_get_message_text(context, 7), "");
}

static void ops_are_listed(void **state) {
    (void)state;
    uir_op_info info;
    size_t count = 0, supported = 0;
    bool conv = false;
    while (query_op(count, &info)) {
        assert_int_equal(info.supported, strcmp(uir_op_get_engine(count), "not supported") != 0);
        count++;
        supported += info.supported;
        conv = conv || (!strcmp(info.name, "Conv") && !*info.domain && info.since_version == 22);
    }
    assert_null(uir_op_get_engine(count));
    assert_true(conv && count > 200 && supported > 0 && supported <= count);
}

/* ---- threads ---- */

typedef struct worker {
    uir_context *context;
    uir_model *model; /* NULL: loads its own */
    pthread_t thread;
} worker;

static void *work(void *user) {
    worker *w = user;
    uir_model *model = w->model ? w->model : load_small(w->context);
    for (int round = 0; round < 20; round++) {
        uir_session *session;
        uir_value *input = make_input(w->context, round % 5);
        assert_int_equal(uir_session_create(model, NULL, &session), UIR_STATUS_OK);
        assert_int_equal(uir_session_set_input(session, 0, input), UIR_STATUS_OK);
        assert_int_equal(uir_session_run(session), UIR_STATUS_OK);
        check_output(session, round % 5);
        assert_int_equal(uir_session_set_input(session, 9, input), UIR_STATUS_INVALID_ARGUMENT); /* messages too */
        uir_session_destroy(session);
        uir_value_destroy(input);
    }
    if (!w->model) uir_model_destroy(model);
    return NULL;
}

static void threads_share_a_context_and_a_model(void **state) {
    uir_context *context = *state;
    uir_context_clear_messages(context);
    for (int shared = 0; shared < 2; shared++) {
        worker workers[4];
        uir_model *model = shared ? load_small(context) : NULL;
        for (int i = 0; i < 4; i++) {
            workers[i] = (worker){.context = context, .model = model};
            assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
        }
        for (int i = 0; i < 4; i++) pthread_join(workers[i].thread, NULL);
        assert_int_equal(uir_context_message_count(context), 80);
        uir_context_clear_messages(context);
        if (model) uir_model_destroy(model);
    }
}

/* ---- memory ---- */

static bool load_and_run(const uir_allocator *allocator, const char *device) {
    uir_context *context;
    uir_model *model = NULL;
    uir_session *session = NULL;
    uir_value *input = NULL;
    blob bytes = small_model();
    uir_status status = uir_context_create(allocator, &context);
    if (status == UIR_STATUS_OK) {
        /* The compiler's thread allocates too: it is waited for, so that the order of allocations is one. */
        uir_model_options options = {.struct_size = sizeof options, .device = device, .wait = true, .no_cache = true};
        status = uir_model_load_memory(context, bytes.data, bytes.length, NULL, &options, &model);
        uir_session_options session_options = {.struct_size = sizeof session_options, .threads = 1};
        if (status == UIR_STATUS_OK) status = uir_session_create(model, &session_options, &session);
        if (status == UIR_STATUS_OK)
            status = uir_value_create_tensor(context, UIR_DTYPE_F32, 2, (int64_t[]){2, 3}, &input);
        if (status == UIR_STATUS_OK) status = uir_session_set_input(session, 0, input);
        if (status == UIR_STATUS_OK) status = uir_session_run(session);
        uir_value_destroy(input);
        uir_session_destroy(session);
        uir_model_destroy(model);
        if (status != UIR_STATUS_OK && status != UIR_STATUS_OUT_OF_MEMORY && uir_context_message_count(context))
            print_message("%s\n", uir_context_get_message_text(context, 0));
        uir_context_destroy(context);
    }
    blob_free(&bytes);
    if (status != UIR_STATUS_OK) assert_int_equal(status, UIR_STATUS_OUT_OF_MEMORY);
    return status == UIR_STATUS_OK;
}

static bool load_and_interpret(const uir_allocator *allocator) {
    return load_and_run(allocator, "interpreter");
}

static bool load_and_run_on_vm(const uir_allocator *allocator) {
    return load_and_run(allocator, "vm");
}

static void memory_may_run_out_anywhere(void **state) {
    (void)state;
    run_with_failures(load_and_interpret);
}

static void memory_may_run_out_anywhere_on_a_device(void **state) {
    (void)state;
    run_with_failures(load_and_run_on_vm);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ports_show_names_and_dims),
        cmocka_unit_test(a_file_is_described),
        cmocka_unit_test(defaults_are_overridden),
        cmocka_unit_test(an_unsupported_model_is_described),
        cmocka_unit_test(shapes_follow_bound_dims),
        cmocka_unit_test(dims_are_called_what_they_are),
        cmocka_unit_test(a_session_runs_with_several_shapes),
        cmocka_unit_test(sessions_are_of_the_models_device),
        cmocka_unit_test(sequences_have_elements),
        cmocka_unit_test(memory_may_run_out_for_values),
        cmocka_unit_test(inputs_that_do_not_fit_are_refused),
        cmocka_unit_test(unknown_devices_are_refused),
        cmocka_unit_test(loading_can_be_cancelled_at_each_stage),
        cmocka_unit_test(messages_name_node_and_op),
        cmocka_unit_test(ops_are_listed),
        cmocka_unit_test(threads_share_a_context_and_a_model),
        cmocka_unit_test(memory_may_run_out_anywhere),
        cmocka_unit_test(nodes_are_told_by_their_names),
        cmocka_unit_test(memory_may_run_out_anywhere_on_a_device),
    };
    return cmocka_run_group_tests(tests, make_context, destroy_context);
}
