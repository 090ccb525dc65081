/* The shapes of outputs before a run: those of the run that follows, refused as it is, whatever runs it. */
#include "tests/backends/cpu/here.h"
#include "tests/frontend/make.h"
#include "uir/uir.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* x f32[n, 4] and w f32[m, 4]: all = Concat(x, w), sum = x + w, where = NonZero(x), thirds = Reshape(x,
 * [3, -1]). */
static blob shapes_model(void) {
    static const int64_t wanted[] = {3, -1};
    blob graph = blob_new(), shape = make_tensor("wanted", UIR_DTYPE_I64, 1, (int64_t[]){2});
    put_bytes(&shape, TENSOR_RAW, wanted, sizeof wanted);
    put_text(&graph, GRAPH_NAME, "shapes");
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F32, "n,4"));
    put_message(&graph, GRAPH_INPUT, make_value("w", UIR_DTYPE_F32, "m,4"));
    put_message(&graph, GRAPH_INITIALIZER, shape);
    blob concat = make_node("Concat", "both", "x,w", "all");
    put_message(&concat, NODE_ATTRIBUTE, make_int_attribute("axis", 0));
    put_message(&graph, GRAPH_NODE, concat);
    put_message(&graph, GRAPH_NODE, make_node("Add", "the sum", "x,w", "sum"));
    put_message(&graph, GRAPH_NODE, make_node("NonZero", "the places", "x", "where"));
    put_message(&graph, GRAPH_NODE, make_node("Reshape", "the thirds", "x,wanted", "thirds"));
    static const char *const outputs[] = {"all", "sum", "where", "thirds"};
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        put_message(&graph, GRAPH_OUTPUT, make_value(outputs[i], UIR_DTYPE_F32 + (i == 2) * 6, ""));
    return make_model(graph);
}

typedef struct world {
    uir_context *context;
    uir_model *model;
    uir_session *session;
} world;

static void open_on(world *w, const char *device, bool packed) {
    blob bytes = shapes_model();
    char folder[] = "/tmp/uir-shapes-XXXXXX", path[64], package[64];
    uir_model_options options = {.struct_size = sizeof options, .device = device, .no_cache = true, .wait = true};
    uir_package_open_options opening = {.struct_size = sizeof opening, .trusted = true, .device = device};
    uir_status status;
    assert_int_equal(uir_context_create(NULL, &w->context), UIR_STATUS_OK);
    if (packed) {
        assert_non_null(mkdtemp(folder));
        snprintf(path, sizeof path, "%s/m.onnx", folder);
        snprintf(package, sizeof package, "%s/m.uir", folder);
        FILE *file = fopen(path, "wb");
        assert_int_equal(fwrite(bytes.data, 1, bytes.length, file), bytes.length);
        fclose(file);
        assert_int_equal(uir_package_write_file(w->context, path, package, NULL, NULL), UIR_STATUS_OK);
        status = uir_model_open_package_file(w->context, package, &opening, &w->model);
        unlink(path);
        unlink(package);
        rmdir(folder);
    } else {
        status = uir_model_load_memory(w->context, bytes.data, bytes.length, NULL, &options, &w->model);
    }
    blob_free(&bytes);
    for (size_t i = 0; status != UIR_STATUS_OK && i < uir_context_message_count(w->context); i++)
        print_message("%s\n", uir_context_get_message_text(w->context, i));
    assert_int_equal(status, UIR_STATUS_OK);
    assert_int_equal(uir_session_create(w->model, NULL, &w->session), UIR_STATUS_OK);
}

static void close_all(world *w) {
    uir_session_destroy(w->session);
    uir_model_destroy(w->model);
    uir_context_destroy(w->context);
}

static const char *last_message(const world *w) {
    return uir_context_get_message_text(w->context, uir_context_message_count(w->context) - 1);
}

/* Asks, runs, and compares. */
static void compare_with_run(world *w, int64_t n, int64_t m, uir_status expected) {
    int64_t x_shape[] = {n, 4}, w_shape[] = {m, 4};
    const uir_input_shape shapes[] = {{2, x_shape}, {2, w_shape}};
    uir_value *x, *y, *output;
    int64_t asked[4][2];
    char said[500] = "";
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(uir_session_get_output_shape(w->session, shapes, 2, i, asked[i]), expected);
        if (expected != UIR_STATUS_OK) snprintf(said, sizeof said, "%s", last_message(w));
    }
    assert_int_equal(uir_value_create_tensor(w->context, UIR_DTYPE_F32, 2, x_shape, &x), UIR_STATUS_OK);
    assert_int_equal(uir_value_create_tensor(w->context, UIR_DTYPE_F32, 2, w_shape, &y), UIR_STATUS_OK);
    assert_int_equal(uir_session_set_input(w->session, 0, x), UIR_STATUS_OK);
    assert_int_equal(uir_session_set_input(w->session, 1, y), UIR_STATUS_OK);
    assert_int_equal(uir_session_run(w->session), expected);
    if (expected != UIR_STATUS_OK) assert_string_equal(last_message(w), said);
    for (size_t i = 0; i < 4 && expected == UIR_STATUS_OK; i++) {
        /* An answer between a run and its outputs leaves them as they are. */
        const int64_t one[] = {3, 4};
        int64_t other[2];
        assert_int_equal(uir_session_get_output_shape(w->session, (uir_input_shape[]){{2, one}, {2, one}}, 2, 0, other),
                         UIR_STATUS_OK);
        assert_int_equal(other[0], 6);
        assert_int_equal(uir_session_get_output(w->session, i, &output), UIR_STATUS_OK);
        assert_int_equal(uir_value_get_rank(output), 2);
        for (uint32_t d = 0; d < 2; d++) {
            bool told = asked[i][d] >= 0;
            assert_true(told == (i != 2 || d == 0));
            if (told) assert_int_equal(asked[i][d], uir_value_get_shape(output)[d]);
        }
    }
    uir_value_destroy(x);
    uir_value_destroy(y);
}

static void ask(world *w) {
    const int64_t good[] = {3, 4}, bad[] = {3, 5}, negative[] = {-1, 4};
    const uir_input_shape shapes[] = {{2, good}, {2, good}};
    int64_t dims[2];
    compare_with_run(w, 3, 3, UIR_STATUS_OK);
    compare_with_run(w, 6, 1, UIR_STATUS_OK);
    compare_with_run(w, 1, 3, UIR_STATUS_BAD_DATA); /* 4 elements are no 3 rows */
    compare_with_run(w, 3, 2, UIR_STATUS_BAD_DATA); /* no broadcast */
    compare_with_run(w, 0, 1, UIR_STATUS_OK);
    assert_int_equal(uir_session_get_output_shape(w->session, (uir_input_shape[]){{2, good}, {2, bad}}, 2, 0, dims),
                     UIR_STATUS_BAD_DATA);
    assert_non_null(strstr(last_message(w), "input 'w' is f32[3,5], but the model requires f32[m, 4]"));
    assert_int_equal(uir_session_get_output_shape(w->session, (uir_input_shape[]){{2, good}, {1, good}}, 2, 0, dims),
                     UIR_STATUS_BAD_DATA);
    assert_int_equal(
        uir_session_get_output_shape(w->session, (uir_input_shape[]){{2, good}, {2, negative}}, 2, 0, dims),
        UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_session_get_output_shape(w->session, (uir_input_shape[]){{2, good}, {2, NULL}}, 2, 0, dims),
                     UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_session_get_output_shape(w->session, shapes, 1, 0, dims), UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_session_get_output_shape(w->session, NULL, 2, 0, dims), UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_session_get_output_shape(w->session, shapes, 2, 4, dims), UIR_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(last_message(w), "the model has no output 4: it has 4, counted from 0"));
}

static void shapes_are_those_of_the_run(void **state) {
    static const char *const devices[] = {"interpreter", "vm", "cpu"};
    world w;
    (void)state;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        open_on(&w, devices[i], false);
        ask(&w);
        close_all(&w);
    }
}

static void packages_tell_shapes(void **state) {
    world w;
    (void)state;
    open_on(&w, "vm", true);
    ask(&w);
    close_all(&w);
}

/* The answer of a buffer's size does not need the buffer. */
static void a_buffer_too_small_is_no_matter(void **state) {
    const int64_t five[] = {6, 4};
    int64_t dims[2];
    char small[4];
    world w;
    (void)state;
    open_on(&w, "vm", false);
    assert_int_equal(uir_session_bind_output(w.session, 0, small, sizeof small), UIR_STATUS_OK);
    assert_int_equal(uir_session_get_output_shape(w.session, (uir_input_shape[]){{2, five}, {2, five}}, 2, 0, dims),
                     UIR_STATUS_OK);
    assert_true(dims[0] == 12 && dims[1] == 4);
    close_all(&w);
}

int main(void) {
    here_keep_what_runs();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_are_those_of_the_run),
        cmocka_unit_test(packages_tell_shapes),
        cmocka_unit_test(a_buffer_too_small_is_no_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
