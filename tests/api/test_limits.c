/* Each limit is met: its status and message, nothing left behind, and the next call works. */
#include "tests/api/counted.h"
#include "tests/api/small.h"
#include "tests/backends/cpu/here.h"
#include "uir/tools.h"

#include <stdlib.h>
#include <unistd.h>

/* ---- models ---- */

/* A product and a curve after the other, no two of one size. */
static blob chain_model(int count) {
    blob graph = blob_new();
    char text[64], last[16];
    put_text(&graph, GRAPH_NAME, "chain");
    put_message(&graph, GRAPH_INPUT, make_value("v0", UIR_DTYPE_F32, "batch,3"));
    for (int i = 0; i < count; i++) {
        const int64_t dims[2] = {3 + i, 4 + i};
        size_t size = (size_t)(dims[0] * dims[1]) * sizeof(float);
        void *weights = calloc(1, size);
        snprintf(text, sizeof text, "w%d", i);
        blob tensor = make_tensor(text, UIR_DTYPE_F32, 2, dims);
        put_bytes(&tensor, TENSOR_RAW, weights, size);
        free(weights);
        put_message(&graph, GRAPH_INITIALIZER, tensor);
        snprintf(text, sizeof text, "v%d,w%d", i, i);
        snprintf(last, sizeof last, "p%d", i);
        put_message(&graph, GRAPH_NODE, make_node("MatMul", last, text, last));
        snprintf(text, sizeof text, "v%d", i + 1);
        put_message(&graph, GRAPH_NODE, make_node("Tanh", text, last, text));
    }
    snprintf(last, sizeof last, "v%d", count);
    put_message(&graph, GRAPH_OUTPUT, make_value(last, UIR_DTYPE_F32, NULL));
    return make_model(graph);
}

/* Ifs in Ifs, `depth` of them; the condition is an input. */
static blob nested_graph(int depth, const char *branch) {
    blob graph = blob_new();
    char name[32];
    snprintf(name, sizeof name, "%s%d", branch, depth);
    put_text(&graph, GRAPH_NAME, "nested");
    put_message(&graph, GRAPH_OUTPUT, make_value(name, UIR_DTYPE_F32, NULL));
    if (!depth) {
        put_message(&graph, GRAPH_NODE, make_node("Neg", "inmost", "x", name));
        return graph;
    }
    blob node = make_node("If", "choice", "c", name);
    snprintf(name, sizeof name, "then%d_", depth);
    put_message(&node, NODE_ATTRIBUTE, make_graph_attribute("then_branch", nested_graph(depth - 1, name)));
    snprintf(name, sizeof name, "else%d_", depth);
    put_message(&node, NODE_ATTRIBUTE, make_graph_attribute("else_branch", nested_graph(0, name)));
    put_message(&graph, GRAPH_NODE, node);
    return graph;
}

static blob nested_model(void) {
    blob graph = nested_graph(3, "y");
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F32, "3"));
    put_message(&graph, GRAPH_INPUT, make_value("c", UIR_DTYPE_BOOL, ""));
    return make_model(graph);
}

/* y = x + a * b, of matrices of 32 x 32: 32768 products that are done once (and looked at twice). */
static blob foldable_model(void) {
    static const float zeros[32 * 32];
    static const int64_t dims[] = {32, 32};
    blob graph = blob_new();
    put_text(&graph, GRAPH_NAME, "foldable");
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F32, "32,32"));
    put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_F32, NULL));
    for (int i = 0; i < 2; i++) {
        blob tensor = make_tensor(i ? "b" : "a", UIR_DTYPE_F32, 2, dims);
        put_bytes(&tensor, TENSOR_RAW, zeros, sizeof zeros);
        put_message(&graph, GRAPH_INITIALIZER, tensor);
    }
    put_message(&graph, GRAPH_NODE, make_node("MatMul", "product", "a,b", "p"));
    put_message(&graph, GRAPH_NODE, make_node("Add", "sum", "x,p", "y"));
    return make_model(graph);
}

static blob endless_model(void) {
    return loop_model("batch,3", NULL);
}
static blob long_chain(void) {
    return chain_model(30);
}
static blob short_chain(void) {
    return chain_model(3);
}

static uir_status load(uir_context *context, blob (*make)(void), const char *device, const uir_limits *limits,
                       uir_model **out_model) {
    blob bytes = make();
    uir_model_options options = {
        .struct_size = sizeof options, .device = device, .no_cache = true, .wait = true, .limits = limits};
    uir_status status = uir_model_load_memory(context, bytes.data, bytes.length, NULL, &options, out_model);
    blob_free(&bytes);
    return status;
}

/* ---- loads ---- */
static const struct {
    const char *name;
    blob (*make)(void);
    const char *device;
    uir_limits limits;
    const char *said[2];
} loads[] = {
    {"time",
     long_chain,
     "cpu",
     {.milliseconds = 1},
     {"more than 0.001 seconds", "--limit-seconds or uir_limits.milliseconds"}},
    {"memory",
     small_model,
     "vm",
     {.memory = 65536},
     {"more than 65536 bytes of memory", "--limit-memory or uir_limits.memory"}},
    {"files",
     small_model,
     "vm",
     {.file_bytes = 10},
     {"more than 10 bytes of files", "--limit-file-bytes or uir_limits.file_bytes"}},
    {"nodes",
     small_model,
     "interpreter",
     {.nodes = 2},
     {"node 'the other' (Neg): loading the model (reading) takes more than 2 nodes",
      "--limit-nodes or uir_limits.nodes"}},
    {"depth",
     nested_model,
     "interpreter",
     {.depth = 2},
     {"more than 2 levels of nested graphs", "--limit-depth or uir_limits.depth"}},
    {"kernels",
     short_chain,
     "vm",
     {.kernels = 1},
     {"more than 1 different kernels", "--limit-kernels or uir_limits.kernels"}},
    {"work",
     short_chain,
     "vm",
     {.work = 1000},
     {"more than 1000 steps of the compiler", "--limit-work or uir_limits.work"}},
    {"elements",
     small_model,
     "vm",
     {.elements = 2},
     {"more than 2 elements of a value: 3 requested", "--limit-elements or uir_limits.elements"}},
};

static void each_limit_ends_a_load(void **state) {
    uir_context *context = *state;
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        uir_limits limits = loads[i].limits;
        uir_model *model;
        limits.struct_size = sizeof limits;
        uir_status status = load(context, loads[i].make, loads[i].device, &limits, &model);
        if (status != UIR_STATUS_LIMIT) fail_msg("%s: %s", loads[i].name, uir_status_text(status));
        assert_null(model);
        assert_int_equal(uir_context_message_count(context), 1);
        for (int k = 0; k < 2; k++)
            if (!has_message(context, loads[i].said[k]))
                fail_msg("%s: %s", loads[i].name, uir_context_get_message_text(context, 0));
        uir_context_clear_messages(context);
        if (load(context, loads[i].make, loads[i].device, NULL, &model) != UIR_STATUS_OK)
            fail_msg("%s: %s", loads[i].name, uir_context_get_message_text(context, 0));
        uir_model_destroy(model);
        uir_context_clear_messages(context);
    }
}

static uint32_t count_primitives(uir_context *context, const uir_limits *limits) {
    uir_model *model;
    uir_model_info info = {.struct_size = sizeof info};
    assert_int_equal(load(context, foldable_model, "interpreter", limits, &model), UIR_STATUS_OK);
    assert_int_equal(uir_model_get_info(model, &info), UIR_STATUS_OK);
    uir_model_destroy(model);
    return info.primitive_count;
}

/* What may not be folded is left to the runs, and no error. */
static void what_is_beyond_is_not_folded(void **state) {
    const uir_limits work = {.struct_size = sizeof work, .fold_work = 30000},
                     bytes = {.struct_size = sizeof bytes, .fold_bytes = 4000},
                     enough = {.struct_size = sizeof enough, .fold_work = 80000, .fold_bytes = 8192};
    assert_int_equal(count_primitives(*state, NULL), 1);
    assert_int_equal(count_primitives(*state, &enough), 1);
    assert_int_equal(count_primitives(*state, &work), 2);
    assert_int_equal(count_primitives(*state, &bytes), 2);
}

static void no_limit_is_none(void **state) {
    uir_limits limits = {.struct_size = sizeof limits};
    uir_model *model;
#define NONE(constant, field, option, scale, base, per_byte, what, help) limits.field = UIR_NO_LIMIT;
    UIR_LIMIT_TABLE(NONE)
#undef NONE
    assert_int_equal(load(*state, small_model, "cpu", &limits, &model), UIR_STATUS_OK);
    uir_model_destroy(model);
    limits.struct_size = 0;
    assert_int_equal(load(*state, small_model, "cpu", &limits, &model), UIR_STATUS_INVALID_ARGUMENT);
    assert_true(has_message(*state, "uir_limits.struct_size"));
    uir_context_clear_messages(*state);
}

/* ---- runs ---- */
static const struct {
    const char *name;
    blob (*make)(void);
    const char *device;
    int64_t rows; /* of x */
    uir_limits limits;
    const char *said[2];
} runs[] = {
    {"time",
     endless_model,
     "interpreter",
     2,
     {.milliseconds = 60},
     {"running the model takes more than 0.06 seconds", "--limit-seconds"}},
    {"time of kernels",
     endless_model,
     "vm",
     2,
     {.milliseconds = 60},
     {"running the model takes more than 0.06 seconds", "--limit-seconds"}},
    {"memory",
     small_model,
     "interpreter",
     100000,
     {.memory = 200000},
     {"more than 200000 bytes of memory: 1200000 requested", "--limit-memory"}},
    {"memory of kernels",
     small_model,
     "vm",
     100000,
     {.memory = 200000},
     {"more than 200000 bytes of memory", "--limit-memory"}},
    {"elements",
     small_model,
     "interpreter",
     2,
     {.elements = 5},
     {"more than 5 elements of a value: 6 requested", "--limit-elements"}},
    {"elements of kernels",
     small_model,
     "vm",
     2,
     {.elements = 5},
     {"more than 5 elements of a value: 6 requested", "--limit-elements"}},
};

static uir_status run(uir_model *model, uir_value *x, const uir_limits *limits) {
    const uir_session_options options = {.struct_size = sizeof options, .limits = limits};
    uir_session *session;
    uir_status status = uir_session_create(model, &options, &session);
    if (status == UIR_STATUS_OK) status = uir_session_set_input(session, 0, x);
    if (status == UIR_STATUS_OK) status = uir_session_run(session);
    /* The session is as good as before. */
    if (session && status == UIR_STATUS_LIMIT) assert_int_equal(uir_session_run(session), UIR_STATUS_LIMIT);
    uir_session_destroy(session);
    return status;
}

static void each_limit_ends_a_run(void **state) {
    uir_context *context = *state;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        uir_limits limits = runs[i].limits;
        uir_model *model;
        uir_value *x;
        limits.struct_size = sizeof limits;
        assert_int_equal(load(context, runs[i].make, runs[i].device, NULL, &model), UIR_STATUS_OK);
        assert_int_equal(uir_value_create_tensor(context, UIR_DTYPE_F32, 2, (int64_t[]){runs[i].rows, 3}, &x),
                         UIR_STATUS_OK);
        uir_status status = run(model, x, &limits);
        if (status != UIR_STATUS_LIMIT) fail_msg("%s: %s", runs[i].name, uir_status_text(status));
        for (int k = 0; k < 2; k++)
            if (!has_message(context, runs[i].said[k]))
                fail_msg("%s: %s", runs[i].name, uir_context_get_message_text(context, 0));
        uir_context_clear_messages(context);
        if (runs[i].make != endless_model) assert_int_equal(run(model, x, NULL), UIR_STATUS_OK);
        uir_value_destroy(x);
        uir_model_destroy(model);
    }
}

/* ---- packages ---- */
static void limits_of_packages(void **state) {
    uir_context *context = *state;
    char folder[] = "/tmp/uir-limits-XXXXXX", onnx[64], package[64];
    uir_limits limits = {.struct_size = sizeof limits, .nodes = 2};
    uir_package_write_options write = {.struct_size = sizeof write, .no_native = true, .limits = &limits};
    uir_package_open_options open = {.struct_size = sizeof open, .limits = &limits};
    uir_model *model;
    assert_non_null(mkdtemp(folder));
    snprintf(onnx, sizeof onnx, "%s/model.onnx", folder);
    snprintf(package, sizeof package, "%s/model.uir", folder);
    write_bytes(onnx, small_model());
    assert_int_equal(uir_package_write_file(context, onnx, package, &write, NULL), UIR_STATUS_LIMIT);
    assert_true(has_message(context, "writing the package (reading) takes more than 2 nodes"));
    assert_int_not_equal(access(package, F_OK), 0);
    limits = (uir_limits){.struct_size = sizeof limits};
    assert_int_equal(uir_package_write_file(context, onnx, package, &write, NULL), UIR_STATUS_OK);
    limits.memory = 2000;
    assert_int_equal(uir_model_open_package_file(context, package, &open, &model), UIR_STATUS_LIMIT);
    assert_true(has_message(context, "opening a package takes more than 2000 bytes of memory"));
    limits.memory = 0;
    assert_int_equal(uir_model_open_package_file(context, package, &open, &model), UIR_STATUS_OK);
    uir_model_destroy(model);
    uir_context_clear_messages(context);
    unlink(onnx);
    unlink(package);
    rmdir(folder);
}

/* ---- values ---- */
static void values_have_limits(void **state) {
    static const struct {
        uir_limits limits;
        const char *said;
    } cases[] = {
        {{.memory = 10000}, "reading a value takes more than 10000 bytes of memory"},
        {{.elements = 2999}, "reading a value takes more than 2999 elements of a value: 3000 requested"},
        {{.file_bytes = 12000}, "reading a value takes more than 12000 bytes of files"},
    };
    (void)state;
    char folder[] = "/tmp/uir-limits-XXXXXX", npy[64];
    uir_context *context;
    uir_value *x, *again;
    assert_non_null(mkdtemp(folder));
    snprintf(npy, sizeof npy, "%s/x.npy", folder);
    const int64_t shape[2] = {1000, 3};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uir_limits limits = cases[i].limits;
        limits.struct_size = sizeof limits;
        assert_int_equal(uir_context_create(NULL, &context), UIR_STATUS_OK);
        assert_int_equal(uir_value_create_tensor(context, UIR_DTYPE_F32, 2, shape, &x), UIR_STATUS_OK);
        assert_int_equal(uir_value_save_file(context, x, npy, NULL), UIR_STATUS_OK);
        assert_int_equal(uir_context_set_value_limits(context, &limits), UIR_STATUS_INVALID_ARGUMENT);
        assert_true(has_message(context, "before the context has values"));
        uir_value_destroy(x);
        uir_context_clear_messages(context);
        assert_int_equal(uir_context_set_value_limits(context, &limits), UIR_STATUS_OK);
        for (int turn = 0; turn < 2; turn++) {
            assert_int_equal(uir_value_load_file(context, npy, NULL, UIR_VALUE_TENSOR, &x), UIR_STATUS_LIMIT);
            assert_null(x);
            assert_int_equal(uir_context_message_count(context), 1);
            if (!has_message(context, cases[i].said) || !has_message(context, npy))
                fail_msg("%s", uir_context_get_message_text(context, 0));
            uir_context_clear_messages(context);
        }
        /* Released values leave room for others. */
        limits = (uir_limits){.struct_size = sizeof limits, .memory = 40000};
        assert_int_equal(uir_context_set_value_limits(context, &limits), UIR_STATUS_OK);
        for (int turn = 0; turn < 20; turn++) {
            assert_int_equal(uir_value_load_file(context, npy, NULL, UIR_VALUE_TENSOR, &x), UIR_STATUS_OK);
            uir_value_destroy(x);
        }
        assert_int_equal(uir_value_load_file(context, npy, NULL, UIR_VALUE_TENSOR, &x), UIR_STATUS_OK);
        assert_int_equal(uir_value_create_tensor(context, UIR_DTYPE_F32, 2, (int64_t[]){9000, 1}, &again),
                         UIR_STATUS_LIMIT);
        assert_true(has_message(context, "more than 40000 bytes of memory: 36"));
        uir_value_destroy(x);
        uir_context_destroy(context);
    }
    unlink(npy);
    rmdir(folder);
}

/* y = x + w, w of 1 MiB. */
static blob wide_model(void) {
    static float weights[1 << 18];
    blob graph = blob_new(), tensor = make_tensor("w", UIR_DTYPE_F32, 1, (int64_t[]){1 << 18});
    put_bytes(&tensor, TENSOR_RAW, weights, sizeof weights);
    put_text(&graph, GRAPH_NAME, "wide");
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F32, "1"));
    put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_F32, NULL));
    put_message(&graph, GRAPH_INITIALIZER, tensor);
    put_message(&graph, GRAPH_NODE, make_node("Add", "sum", "x,w", "y"));
    return make_model(graph);
}

/* Files that are mapped, of a model, a package and the cache, are memory as copies are. */
static void maps_are_memory(void **state) {
    uir_context *context = *state;
    char folder[] = "/tmp/uir-limits-XXXXXX", onnx[64], package[64], cache[64], command[80];
    uir_limits limits = {.struct_size = sizeof limits, .memory = 1 << 20};
    uir_package_write_options write = {.struct_size = sizeof write, .no_native = true};
    uir_package_open_options open = {.struct_size = sizeof open, .limits = &limits};
    uir_model_options options = {.struct_size = sizeof options, .device = "interpreter", .limits = &limits};
    uir_model *model;
    assert_non_null(mkdtemp(folder));
    snprintf(onnx, sizeof onnx, "%s/model.onnx", folder);
    snprintf(package, sizeof package, "%s/model.uir", folder);
    snprintf(cache, sizeof cache, "%s/cache", folder);
    write_bytes(onnx, wide_model());
    assert_int_equal(uir_package_write_file(context, onnx, package, &write, NULL), UIR_STATUS_OK);
    assert_int_equal(uir_model_load_file(context, onnx, &options, &model), UIR_STATUS_LIMIT);
    assert_true(has_message(context, "more than 1048576 bytes of memory: 10"));
    uir_context_clear_messages(context);
    assert_int_equal(uir_model_open_package_file(context, package, &open, &model), UIR_STATUS_LIMIT);
    assert_true(has_message(context, "more than 1048576 bytes of memory: 10"));
    uir_context_clear_messages(context);
    /* Of the cache: what is compiled with room for it, and found there without. */
    options.device = "vm";
    options.cache = cache;
    limits.memory = 64 << 20;
    assert_int_equal(uir_model_load_file(context, onnx, &options, &model), UIR_STATUS_OK);
    uir_model_destroy(model);
    limits.memory = 1 << 20;
    assert_int_equal(uir_model_load_file(context, onnx, &options, &model), UIR_STATUS_LIMIT);
    assert_true(has_message(context, "more than 1048576 bytes of memory: 10"));
    uir_context_clear_messages(context);
    limits.memory = 64 << 20;
    for (int turn = 0; turn < 100; turn++) { /* what is closed is no memory any more */
        assert_int_equal(uir_model_open_package_file(context, package, &open, &model), UIR_STATUS_OK);
        uir_model_destroy(model);
    }
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void) {
    here_keep_what_runs();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_limit_ends_a_load, begin, end),
        cmocka_unit_test_setup_teardown(what_is_beyond_is_not_folded, begin, end),
        cmocka_unit_test_setup_teardown(no_limit_is_none, begin, end),
        cmocka_unit_test_setup_teardown(each_limit_ends_a_run, begin, end),
        cmocka_unit_test_setup_teardown(limits_of_packages, begin, end),
        cmocka_unit_test_setup_teardown(maps_are_memory, begin, end),
        cmocka_unit_test(values_have_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
