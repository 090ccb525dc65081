/* How long what the library gives lives, and how long what it was given is needed: each pointer used to the end that
 * the header states, each argument gone as soon as it may be. The address sanitizer sees what is used too late. */
#include "tests/api/sequences.h"
#include "tests/api/small.h"
#include "tests/backends/cpu/here.h"
#include "tools/run/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct world {
    char folder[64], onnx[96], package[96];
} world;

/* A copy that is the caller's, gone when it is freed. */
static char *copy(const char *text) {
    char *made = malloc(strlen(text) + 1);
    assert_non_null(made);
    strcpy(made, text);
    return made;
}

static int begin(void **state) {
    static world w;
    snprintf(w.folder, sizeof w.folder, "/tmp/uir-lifetimes-XXXXXX");
    assert_non_null(mkdtemp(w.folder));
    snprintf(w.onnx, sizeof w.onnx, "%s/small.onnx", w.folder);
    snprintf(w.package, sizeof w.package, "%s/small.uir", w.folder);
    setenv("XDG_CACHE_HOME", w.folder, 1);
    write_bytes(w.onnx, small_model());
    *state = &w;
    return 0;
}

static int end(void **state) {
    world *w = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", w->folder);
    return system(command);
}

/* ---- models ---- */
typedef enum source { INTERPRETED, ON_VM, COMPILED, CACHED, PACKAGED, SOURCE_COUNT } source;
static const char *const devices[SOURCE_COUNT] = {"interpreter", "vm", "cpu", "cpu", "vm"};

/* Everything that is given is gone when the load returns. */
static uir_model *load(const world *w, uir_context *context, source from) {
    char *path = copy(from == PACKAGED ? w->package : w->onnx), *device = copy(devices[from]), *cache = copy(w->folder),
         *keep = copy("the addition"), *external = copy(w->folder);
    const char **names = malloc(sizeof *names);
    names[0] = keep;
    uir_model *model;
    uir_status status;
    if (from == PACKAGED) {
        uir_package_open_options *options = calloc(1, sizeof *options);
        UIR_INIT(options);
        options->device = device;
        status = uir_model_open_package_file(context, path, options, &model);
        free(options);
    } else {
        uir_debug_options *debug = calloc(1, sizeof *debug);
        uir_model_options *options = calloc(1, sizeof *options);
        UIR_INIT(debug);
        UIR_INIT(options);
        options->device = device;
        options->cache = cache;
        options->no_cache = from < COMPILED;
        options->wait = from == CACHED;
        options->keep = names;
        options->keep_count = 1;
        options->external_data = external;
        options->debug = debug;
        status = uir_model_load_file(context, path, options, &model);
        free(options);
        free(debug);
    }
    free(path), free(device), free(cache), free(keep), free(external), free(names);
    assert_int_equal(status, UIR_STATUS_OK);
    return model;
}

/* What is asked of a model once: pointers that live as long as it does. */
typedef struct answers {
    uir_port x, y;
    uir_model_info info;
    uir_model_contents contents;
    uir_opset opset;
    uir_op_count op;
    uir_metadata pair;
    uir_output_maker maker;
    const char *input_name, *output_name, *author;
} answers;

static answers ask(const uir_model *model) {
    answers a = {.x = query_input(model, 0),
                 .y = query_output(model, 0),
                 .info = query_info(model),
                 .input_name = uir_model_get_input_name(model, 0),
                 .output_name = uir_model_get_output_name(model, 0),
                 .author = uir_model_get_metadata(model, "author")};
    UIR_INIT(&a.contents), UIR_INIT(&a.opset), UIR_INIT(&a.op), UIR_INIT(&a.pair), UIR_INIT(&a.maker);
    assert_int_equal(uir_model_get_contents(model, &a.contents), UIR_STATUS_OK);
    assert_int_equal(uir_model_get_opset(model, 0, &a.opset), UIR_STATUS_OK);
    assert_int_equal(uir_model_get_op_count(model, 0, &a.op), UIR_STATUS_OK);
    assert_int_equal(uir_model_get_metadata_at(model, 0, &a.pair), UIR_STATUS_OK);
    assert_int_equal(uir_model_get_output_maker(model, 0, &a.maker), UIR_STATUS_OK);
    return a;
}

static void check_answers(const answers *a, const char *device) {
    assert_string_equal(a->x.name, "x");
    assert_true(a->x.dims[0] == -1 && a->x.dims[1] == 3);
    assert_string_equal(a->x.dim_names[0], "batch");
    assert_string_equal(a->x.dim_names[1], "");
    assert_string_equal(a->y.name, "y");
    assert_string_equal(a->input_name, "x");
    assert_string_equal(a->output_name, "y");
    assert_string_equal(a->author, "nobody");
    assert_string_equal(a->info.producer, "");
    assert_string_equal(a->info.why, "");
    assert_string_equal(a->info.device, device);
    assert_string_equal(a->contents.graph, "small");
    assert_string_equal(a->contents.domain, "");
    assert_string_equal(a->contents.producer_version, "");
    assert_string_equal(a->opset.domain, "");
    assert_true(!strcmp(a->op.op, "Add") || !strcmp(a->op.op, "Relu") || !strcmp(a->op.op, "Neg"));
    assert_string_equal(a->op.domain, "");
    assert_string_equal(a->pair.key, "author");
    assert_string_equal(a->pair.value, "nobody");
    assert_string_equal(a->maker.node, "the end");
    assert_string_equal(a->maker.op, "Relu");
}

static uir_value *make_x(uir_context *context, int64_t batch, float first) {
    uir_value *x;
    int64_t *shape = malloc(2 * sizeof *shape);
    shape[0] = batch;
    shape[1] = 3;
    assert_int_equal(uir_value_create_tensor(context, UIR_DTYPE_F32, 2, shape, &x), UIR_STATUS_OK);
    free(shape); /* it was copied */
    for (int64_t i = 0; i < batch * 3; i++) ((float *)uir_value_get_data(x))[i] = first + (float)i;
    return x;
}

/* A session's life beside the model's answers. */
static void run_a_session(uir_context *context, uir_model *model) {
    uir_session_options *options = calloc(1, sizeof *options);
    uir_session *session;
    uir_value *y;
    UIR_INIT(options);
    options->threads = 1;
    assert_int_equal(uir_session_create(model, options, &session), UIR_STATUS_OK);
    free(options);
    uir_value *x = make_x(context, 2, 1);
    assert_int_equal(uir_session_set_input(session, 0, x), UIR_STATUS_OK);
    assert_int_equal(uir_session_run(session), UIR_STATUS_OK);
    uir_value_destroy(x); /* the run has ended */
    uir_run_statistics statistics = query_statistics(session);
    assert_int_equal(uir_session_get_output(session, 0, &y), UIR_STATUS_OK);
    const int64_t *shape = uir_value_get_shape(y);
    const float *data = uir_value_get_data(y);
    /* Until the next run: whatever else is asked. */
    x = make_x(context, 3, 7);
    assert_int_equal(uir_session_set_input(session, 0, x), UIR_STATUS_OK);
    uir_value *again;
    assert_int_equal(uir_session_get_output(session, 0, &again), UIR_STATUS_OK);
    assert_ptr_equal(again, y);
    const int64_t dims[2] = {5, 3};
    int64_t out_dims[2];
    uir_cost cost = {.struct_size = sizeof cost};
    uir_status costed = uir_session_get_cost(session, &(uir_dim_binding){"batch", 5000}, 1, &cost);
    assert_int_equal(costed, *statistics.ran_on == 'i' ? UIR_STATUS_UNSUPPORTED : UIR_STATUS_OK);
    assert_int_equal(uir_session_get_output(session, 0, &again), UIR_STATUS_OK);
    assert_ptr_equal(again, y);
    assert_int_equal(uir_session_get_output(session, 1, &again), UIR_STATUS_OK); /* the first time after it */
    assert_true(uir_value_get_shape(again)[0] == 2 && uir_value_get_double(again, 5) == -6);
    uir_node_statistics node;
    assert_true(query_node(session, 0, &node));
    assert_int_equal(uir_session_get_output_shape(session, &(uir_input_shape){2, dims}, 1, 0, out_dims), UIR_STATUS_OK);
    assert_true(out_dims[0] == 5 && shape[0] == 2 && shape[1] == 3);
    for (int i = 0; i < 6; i++) assert_true(data[i] == (float)i + (float)(i % 3));
    assert_int_equal(uir_session_run(session), UIR_STATUS_OK);
    assert_int_equal(uir_session_get_output(session, 0, &y), UIR_STATUS_OK);
    assert_true(uir_value_get_shape(y)[0] == 3 && uir_value_get_double(y, 0) == 6);
    uir_value_destroy(x);
    uir_session_destroy(session); /* which does not look at what is bound */
    assert_non_null(strchr("ivc", *statistics.ran_on));
}

static void answers_live_as_long_as_the_model(void **state) {
    const world *w = *state;
    uir_context *context;
    assert_int_equal(uir_context_create(NULL, &context), UIR_STATUS_OK);
    uir_package_write_options writing = {.struct_size = sizeof writing, .no_native = true};
    assert_int_equal(uir_package_write_file(context, w->onnx, w->package, &writing, NULL), UIR_STATUS_OK);
    for (source from = 0; from < SOURCE_COUNT; from++) {
        uir_model *model = load(w, context, from);
        answers a = ask(model);
        if (from == PACKAGED) { /* another takes its name: the file that is open stays */
            char other[128];
            snprintf(other, sizeof other, "%s.other", w->package);
            write_bytes(other, small_model());
            assert_int_equal(rename(other, w->package), 0);
        }
        run_a_session(context, model);
        assert_int_equal(uir_model_wait(model), UIR_STATUS_OK);
        run_a_session(context, model);
        uir_context_clear_messages(context);
        check_answers(&a, devices[from]);
        uir_model_destroy(model);
    }
    uir_context_destroy(context);
}

/* The package and its code are read while somebody else empties the cache. */
static void a_model_outlives_its_cache(void **state) {
    const world *w = *state;
    uir_context *context;
    assert_int_equal(uir_context_create(NULL, &context), UIR_STATUS_OK);
    uir_model *model = load(w, context, CACHED);
    answers a = ask(model);
    assert_int_equal(uir_context_clear_cache(context, w->folder, NULL), UIR_STATUS_OK);
    run_a_session(context, model);
    check_answers(&a, "cpu");
    uir_model_destroy(model);
    uir_context_destroy(context);
}

/* ---- messages ---- */
static void messages_live_until_they_are_cleared(void **state) {
    (void)state;
    uir_context *context;
    uir_model *model;
    assert_int_equal(uir_context_create(NULL, &context), UIR_STATUS_OK);
    blob bytes = make_model(make_graph_of(make_node("Foo", "the node", "x", "y")));
    assert_int_equal(uir_model_load_memory(context, bytes.data, bytes.length, NULL, NULL, &model),
                     UIR_STATUS_UNSUPPORTED);
    blob_free(&bytes);
    uir_message first = query_message(context, 0);
    const char *text = uir_context_get_message_text(context, 0);
    for (int i = 0; i < 2000; i++)
        assert_int_equal(uir_model_open_package_file(context, "/nonexistent", NULL, &model), UIR_STATUS_NOT_FOUND);
    assert_ptr_equal(text, first.text);
    assert_non_null(strstr(text, "Foo"));
    assert_string_equal(first.op, "Foo");
    assert_non_null(strstr(first.node, "the node"));
    uir_context_destroy(context);
}

/* ---- values ---- */
static void what_a_value_gives_lives_as_long(void **state) {
    const world *w = *state;
    uir_context *context;
    char path[128];
    uir_value *named, *loaded, *strings;
    assert_int_equal(uir_context_create(NULL, &context), UIR_STATUS_OK);
    snprintf(path, sizeof path, "%s/x.pb", w->folder);
    named = make_x(context, 2, 1);
    assert_int_equal(uir_value_save_file(context, named, path, "the name"), UIR_STATUS_OK);
    uir_value_destroy(named);
    assert_int_equal(uir_value_load_file(context, path, NULL, UIR_VALUE_TENSOR, &loaded), UIR_STATUS_OK);
    assert_int_equal(unlink(path), 0); /* it was read as a whole */
    const char *name = uir_value_get_name(loaded);
    const int64_t *shape = uir_value_get_shape(loaded);
    const float *data = uir_value_get_data(loaded);
    assert_int_equal(uir_value_create_tensor(context, UIR_DTYPE_STRING, 1, (int64_t[]){2}, &strings), UIR_STATUS_OK);
    const uir_string_view *views = uir_value_get_data(strings);
    assert_true(views[0].length == 0 && views[1].length == 0);
    char *text = copy("longer than any short form of a string would be");
    assert_int_equal(uir_value_set_string(strings, 1, text, strlen(text)), UIR_STATUS_OK);
    assert_true(views[1].length == strlen(text) && !memcmp(views[1].text, text, strlen(text)));
    free(text); /* it was copied */
    assert_int_equal(uir_value_set_string(strings, 0, "a", 1), UIR_STATUS_OK);
    assert_true(views[1].text[0] == 'l' && views[0].text[0] == 'a');
    assert_int_equal(uir_value_set_string(strings, 2, "a", 1), UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_value_set_string(loaded, 0, "a", 1), UIR_STATUS_INVALID_ARGUMENT);
    uir_value_destroy(strings);
    assert_string_equal(name, "the name");
    assert_true(shape[0] == 2 && shape[1] == 3 && data[5] == 6);
    assert_int_equal(uir_value_get_byte_size(loaded), 24);
    assert_int_equal(uir_value_get_element_count(loaded), 6);
    uir_value_destroy(loaded);
    uir_context_destroy(context);
}

static void elements_live_as_long_as_their_value(void **state) {
    (void)state;
    uir_context *context;
    assert_int_equal(uir_context_create(NULL, &context), UIR_STATUS_OK);
    uir_value *sequence = make_sequence(context, "");
    uir_value *element = uir_value_get_element(sequence, 0);
    assert_non_null(element);
    assert_null(uir_value_get_element(sequence, uir_value_get_count(sequence)));
    assert_ptr_equal(uir_value_get_element(sequence, 0), element);
    assert_true(uir_value_get_rank(sequence) == 0 && !uir_value_get_shape(sequence) && !uir_value_get_data(sequence));
    assert_true(uir_value_get_element_count(sequence) == 0 && uir_value_get_byte_size(sequence) == 0);
    assert_true(uir_value_get_double(sequence, 0) == 0);
    assert_non_null(uir_value_get_data(element));
    uir_value_destroy(sequence);
    uir_context_destroy(context);
}

/* ---- contexts ---- */
static void an_allocator_is_copied(void **state) {
    const world *w = *state;
    failing_memory memory = {0};
    uir_allocator *allocator = malloc(sizeof *allocator);
    uir_context *context;
    *allocator = failing_allocator(&memory);
    assert_int_equal(uir_context_create(allocator, &context), UIR_STATUS_OK);
    free(allocator);
    uir_model *model = load(w, context, ON_VM);
    run_a_session(context, model);
    assert_true(memory.allocations > 100);
    uir_model_destroy(model);
    uir_context_destroy(context);
    assert_int_equal(memory.live_bytes, 0);
}

static void what_is_not_made_is_null(void **state) {
    const world *w = *state;
    uir_context *context;
    uir_model *model = (uir_model *)1;
    uir_session *session = (uir_session *)1;
    uir_value *value = (uir_value *)1;
    assert_int_equal(uir_context_create(NULL, NULL), UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_context_create(NULL, &context), UIR_STATUS_OK);
    assert_true(uir_model_load_file(context, "/nonexistent", NULL, &model) != UIR_STATUS_OK && !model);
    model = (uir_model *)1;
    assert_true(uir_model_load_memory(context, "x", 1, NULL, NULL, &model) != UIR_STATUS_OK && !model);
    model = (uir_model *)1;
    assert_true(uir_model_open_package_file(context, "/nonexistent", NULL, &model) != UIR_STATUS_OK && !model);
    assert_true(uir_value_create_tensor(context, UIR_DTYPE_F32, 1, (int64_t[]){-1}, &value) != UIR_STATUS_OK && !value);
    value = (uir_value *)1;
    assert_true(uir_value_create_tensor_borrowed(context, UIR_DTYPE_F32, 1, (int64_t[]){4}, "", 1, &value) ==
                    UIR_STATUS_INVALID_ARGUMENT &&
                !value);
    value = (uir_value *)1;
    assert_true(uir_value_load_file(context, "/nonexistent.npy", NULL, UIR_VALUE_TENSOR, &value) != UIR_STATUS_OK &&
                !value);
    value = (uir_value *)1;
    assert_true(uir_value_load_raw(context, "/nonexistent", UIR_DTYPE_F32, 0, NULL, &value) != UIR_STATUS_OK && !value);
    model = load(w, context, ON_VM);
    uir_session_options options = {.struct_size = sizeof options, .device = "toaster"};
    assert_true(uir_session_create(model, &options, &session) != UIR_STATUS_OK && !session);
    assert_int_equal(uir_session_create(model, NULL, &session), UIR_STATUS_OK);
    value = (uir_value *)1;
    assert_true(uir_session_get_output(session, 0, &value) == UIR_STATUS_INVALID_ARGUMENT && !value);
    uir_session_destroy(session);
    uir_model_destroy(model);
    uir_context_destroy(context);
}

/* Of the program. */
static void texts_of_the_program_stay(void **state) {
    (void)state;
    uir_context *context;
    const char *version = uir_version(), *ok = uir_status_text(UIR_STATUS_OK), *f32 = uir_dtype_get_name(UIR_DTYPE_F32),
               *device = uir_device_name(0);
    assert_int_equal(uir_context_create(NULL, &context), UIR_STATUS_OK);
    uir_context_destroy(context);
    assert_string_equal(version, "0.1.0");
    assert_int_equal(uir_version_number(), UIR_VERSION_NUMBER);
    assert_string_equal(ok, "ok");
    assert_string_equal(f32, "f32");
    assert_string_equal(device, "cpu");
    size_t count = 0;
    while (uir_device_name(count)) count++;
    assert_true(count == 5 && !uir_device_name(count + 1));
    assert_true(*uir_status_text(UIR_STATUS_COUNT));
    assert_true(uir_status_exit_code(UIR_STATUS_OK) == 0 && uir_status_exit_code(UIR_STATUS_BAD_FILE) == 3);
}

int main(void) {
    here_keep_what_runs();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_live_as_long_as_the_model),
        cmocka_unit_test(a_model_outlives_its_cache),
        cmocka_unit_test(messages_live_until_they_are_cleared),
        cmocka_unit_test(what_a_value_gives_lives_as_long),
        cmocka_unit_test(elements_live_as_long_as_their_value),
        cmocka_unit_test(an_allocator_is_copied),
        cmocka_unit_test(what_is_not_made_is_null),
        cmocka_unit_test(texts_of_the_program_stay),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
