/* Sessions: statistics of one run and of the next, kinds of inputs, stopping. */
#include "tests/api/small.h"
#include "tools/run/query.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

enum { TENSOR_KIND = 1 };

typedef struct world {
    const char *device;
    uir_context *context;
    uir_model *model;
    uir_session *session;
    uir_value *input;
} world;

static int begin_on(void **state, const char *device) {
    static world w;
    w.device = device;
    const int64_t trips = 4;
    blob bytes = loop_model("n", &trips);
    assert_int_equal(uir_context_create(NULL, &w.context), UIR_STATUS_OK);
    uir_model_options options = {.struct_size = sizeof options, .device = w.device, .no_cache = true};
    uir_status status = uir_model_load_memory(w.context, bytes.data, bytes.length, NULL, &options, &w.model);
    for (size_t i = 0; status != UIR_STATUS_OK && i < uir_context_message_count(w.context); i++)
        print_message("%s\n", uir_context_get_message_text(w.context, i));
    blob_free(&bytes);
    assert_int_equal(status, UIR_STATUS_OK);
    assert_int_equal(uir_session_create(w.model, NULL, &w.session), UIR_STATUS_OK);
    assert_int_equal(uir_value_create_tensor(w.context, UIR_DTYPE_F32, 1, (int64_t[]){2}, &w.input), UIR_STATUS_OK);
    ((float *)uir_value_get_data(w.input))[1] = 3;
    *state = &w;
    return 0;
}

static int begin(void **state) {
    return begin_on(state, "interpreter");
}

static int begin_vm(void **state) {
    return begin_on(state, "vm");
}

static int end(void **state) {
    world *w = *state;
    uir_session_destroy(w->session);
    uir_model_destroy(w->model);
    uir_value_destroy(w->input);
    uir_context_destroy(w->context);
    return 0;
}

static void run(world *w) {
    uir_value *output;
    assert_int_equal(uir_session_set_input(w->session, 0, w->input), UIR_STATUS_OK);
    assert_int_equal(uir_session_run(w->session), UIR_STATUS_OK);
    assert_int_equal(uir_session_get_output(w->session, 0, &output), UIR_STATUS_OK);
    assert_true(uir_value_get_double(output, 0) == 0 && uir_value_get_double(output, 1) == 48);
}

/* What is told is of the last run: the same after each, and its calls add up. */
static void statistics_are_of_the_last_run(void **state) {
    world *w = *state;
    uir_node_statistics node;
    assert_false(query_node(w->session, 0, &node));
    for (int repeat = 0; repeat < 3; repeat++) {
        run(w);
        uint64_t calls = 0, doubled = 0;
        for (size_t i = 0; query_node(w->session, i, &node); i++) {
            assert_true(node.calls > 0);
            assert_true(node.ms >= 0);
            calls += node.calls;
            if (!strcmp(node.name, "double") && !strcmp(node.kernel, "add")) doubled += node.calls;
        }
        assert_int_equal(doubled, 4);
        assert_int_equal(calls, query_statistics(w->session).interpreter_calls);
    }
}

/* A cancel that came before the run is the next run's, and that one's alone. */
static void a_cancel_before_the_run_is_not_lost(void **state) {
    world *w = *state;
    assert_int_equal(uir_session_set_input(w->session, 0, w->input), UIR_STATUS_OK);
    for (int times = 1; times < 3; times++) {
        for (int i = 0; i < times; i++) uir_session_cancel(w->session);
        assert_int_equal(uir_session_run(w->session), UIR_STATUS_CANCELLED);
        run(w);
        run(w);
    }
}

static void *cancel_soon(void *session) {
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    uir_session_cancel(session);
    return NULL;
}

/* A loop that would take years. */
static void another_thread_cancels_a_run(void **state) {
    static const char *const devices[] = {"interpreter", "vm"};
    world w = {0};
    (void)state;
    assert_int_equal(uir_context_create(NULL, &w.context), UIR_STATUS_OK);
    assert_int_equal(uir_value_create_tensor(w.context, UIR_DTYPE_F32, 1, (int64_t[]){2}, &w.input), UIR_STATUS_OK);
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        const int64_t trips = (int64_t)1 << 60;
        blob bytes = loop_model("n", &trips);
        uir_model_options options = {.struct_size = sizeof options, .device = devices[i], .no_cache = true};
        pthread_t thread;
        uir_value *output;
        assert_int_equal(uir_model_load_memory(w.context, bytes.data, bytes.length, NULL, &options, &w.model),
                         UIR_STATUS_OK);
        blob_free(&bytes);
        assert_int_equal(uir_session_create(w.model, NULL, &w.session), UIR_STATUS_OK);
        assert_int_equal(uir_session_set_input(w.session, 0, w.input), UIR_STATUS_OK);
        assert_int_equal(pthread_create(&thread, NULL, cancel_soon, w.session), 0);
        assert_int_equal(uir_session_run(w.session), UIR_STATUS_CANCELLED);
        pthread_join(thread, NULL);
        assert_int_equal(uir_session_get_output(w.session, 0, &output), UIR_STATUS_INVALID_ARGUMENT);
        assert_null(output);
        uir_session_destroy(w.session);
        uir_model_destroy(w.model);
    }
    uir_value_destroy(w.input);
    uir_context_destroy(w.context);
}

/* Each input fits by itself; that the two have one dim is seen when they run. */
static void shared_dims_are_checked_by_the_run(void **state) {
    static const char *const devices[] = {"interpreter", "vm"};
    world w = {0};
    (void)state;
    assert_int_equal(uir_context_create(NULL, &w.context), UIR_STATUS_OK);
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        blob graph = blob_new();
        uir_value *two, *three, *output;
        put_text(&graph, GRAPH_NAME, "sum");
        put_message(&graph, GRAPH_INPUT, make_value("a", UIR_DTYPE_F32, "n"));
        put_message(&graph, GRAPH_INPUT, make_value("b", UIR_DTYPE_F32, "n"));
        put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_F32, NULL));
        put_message(&graph, GRAPH_NODE, make_node("Add", "sum", "a,b", "y"));
        blob bytes = make_model(graph);
        uir_model_options options = {.struct_size = sizeof options, .device = devices[i], .no_cache = true};
        assert_int_equal(uir_model_load_memory(w.context, bytes.data, bytes.length, NULL, &options, &w.model),
                         UIR_STATUS_OK);
        blob_free(&bytes);
        assert_int_equal(uir_session_create(w.model, NULL, &w.session), UIR_STATUS_OK);
        assert_int_equal(uir_value_create_tensor(w.context, UIR_DTYPE_F32, 1, (int64_t[]){2}, &two), UIR_STATUS_OK);
        assert_int_equal(uir_value_create_tensor(w.context, UIR_DTYPE_F32, 1, (int64_t[]){3}, &three), UIR_STATUS_OK);
        assert_int_equal(uir_session_set_input(w.session, 0, two), UIR_STATUS_OK);
        assert_int_equal(uir_session_set_input(w.session, 1, three), UIR_STATUS_OK);
        assert_int_equal(uir_session_run(w.session), UIR_STATUS_BAD_DATA);
        assert_int_equal(uir_session_get_output(w.session, 0, &output), UIR_STATUS_INVALID_ARGUMENT);
        assert_int_equal(uir_session_set_input(w.session, 0, three), UIR_STATUS_OK);
        assert_int_equal(uir_session_run(w.session), UIR_STATUS_OK);
        assert_int_equal(uir_session_get_output(w.session, 0, &output), UIR_STATUS_OK);
        assert_int_equal(uir_value_get_element_count(output), 3);
        /* After a run that did not go well there is none, though there was one before. */
        assert_int_equal(uir_session_set_input(w.session, 1, two), UIR_STATUS_OK);
        assert_int_equal(uir_session_run(w.session), UIR_STATUS_BAD_DATA);
        assert_int_equal(uir_session_get_output(w.session, 0, &output), UIR_STATUS_INVALID_ARGUMENT);
        uir_value_destroy(two);
        uir_value_destroy(three);
        uir_session_destroy(w.session);
        uir_model_destroy(w.model);
    }
    uir_context_destroy(w.context);
}

/* A sequence is no tensor, though its elements have the dtype that is wanted. */
static void kinds_are_checked(void **state) {
    world *w = *state;
    enum { SEQUENCE_ELEMENT_TYPE = 2 };
    char path[64] = "/tmp/uir_kind_XXXXXX.pb";
    blob bytes = blob_new();
    put_int(&bytes, SEQUENCE_ELEMENT_TYPE, TENSOR_KIND);
    int descriptor = mkstemps(path, 3);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, bytes.data, bytes.length), bytes.length);
    close(descriptor);
    blob_free(&bytes);
    uir_value *value;
    uir_status status = uir_value_load_file(w->context, path, NULL, UIR_VALUE_SEQUENCE, &value);
    unlink(path);
    assert_int_equal(status, UIR_STATUS_OK);
    assert_int_equal(uir_session_set_input(w->session, 0, value), UIR_STATUS_BAD_DATA);
    uir_value_destroy(value);
}

/* A dim of 0 is a size like any other: nothing else fits it, and what fits runs. */
static void no_elements_are_a_size(void **state) {
    world w = {0};
    blob graph = blob_new();
    uir_value *some, *none, *output;
    (void)state;
    put_text(&graph, GRAPH_NAME, "nothing");
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F32, "0,3"));
    put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_F32, NULL));
    put_message(&graph, GRAPH_NODE, make_node("Neg", "n", "x", "y"));
    blob bytes = make_model(graph);
    assert_int_equal(uir_context_create(NULL, &w.context), UIR_STATUS_OK);
    assert_int_equal(uir_model_load_memory(w.context, bytes.data, bytes.length, NULL, NULL, &w.model), UIR_STATUS_OK);
    blob_free(&bytes);
    assert_int_equal(uir_session_create(w.model, NULL, &w.session), UIR_STATUS_OK);
    assert_int_equal(uir_value_create_tensor(w.context, UIR_DTYPE_F32, 2, (int64_t[]){2, 3}, &some), UIR_STATUS_OK);
    assert_int_equal(uir_value_create_tensor(w.context, UIR_DTYPE_F32, 2, (int64_t[]){0, 3}, &none), UIR_STATUS_OK);
    assert_int_equal(uir_session_set_input(w.session, 0, some), UIR_STATUS_BAD_DATA);
    assert_int_equal(uir_session_set_input(w.session, 0, none), UIR_STATUS_OK);
    assert_int_equal(uir_session_run(w.session), UIR_STATUS_OK);
    assert_int_equal(uir_session_get_output(w.session, 0, &output), UIR_STATUS_OK);
    uir_value_destroy(some);
    uir_value_destroy(none);
    uir_session_destroy(w.session);
    uir_model_destroy(w.model);
    uir_context_destroy(w.context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_elements_are_a_size),
        cmocka_unit_test(another_thread_cancels_a_run),
        cmocka_unit_test(shared_dims_are_checked_by_the_run),
        cmocka_unit_test_setup_teardown(statistics_are_of_the_last_run, begin, end),
        cmocka_unit_test_setup_teardown(a_cancel_before_the_run_is_not_lost, begin, end),
        cmocka_unit_test_setup_teardown(a_cancel_before_the_run_is_not_lost, begin_vm, end),
        cmocka_unit_test_setup_teardown(kinds_are_checked, begin, end),
        cmocka_unit_test_setup_teardown(kinds_are_checked, begin_vm, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
