/* Messages: kept in the context in their order, or handed to a function of the caller's by the thread that they are of,
 * so that threads that share a context and a model tell theirs apart. */
#include "tests/api/small.h"
#include "uir/tools.h"

#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, ROUNDS = 12, MOST_HEARD = 64 };

/* What this thread heard. */
typedef struct heard {
    uint32_t count;
    char texts[MOST_HEARD][200];
} heard;
static _Thread_local heard *mine;

static void hear(void *user, const uir_message *message) {
    assert_true(*(const int *)user == 7);
    assert_int_equal(message->struct_size, sizeof *message);
    assert_true(mine && mine->count < MOST_HEARD);
    snprintf(mine->texts[mine->count++], sizeof mine->texts[0], "%s", message->text);
}

static uir_status load(uir_context *context, blob bytes, const char *device, uir_model **out_model) {
    uir_model_options options = {.struct_size = sizeof options, .device = device, .no_cache = true};
    uir_status status = uir_model_load_memory(context, bytes.data, bytes.length, NULL, &options, out_model);
    blob_free(&bytes);
    return status;
}

typedef struct worker {
    pthread_t thread;
    uir_context *context;
    uir_model *model; /* of all */
    int number;
    heard heard;
} worker;

static void expect_heard(worker *w, const char *text) {
    assert_int_equal(w->heard.count, 1);
    if (!strstr(w->heard.texts[0], text)) fail_msg("'%s' is not in '%s'", text, w->heard.texts[0]);
    w->heard.count = 0;
}

/* Each of its calls goes wrong in a way of its own. */
static void *go_wrong(void *user) {
    worker *w = user;
    char name[32], other[32], text[64];
    uir_model *model;
    uir_session *session, *interpreted;
    size_t index;
    mine = &w->heard;
    snprintf(name, sizeof name, "Op%d", w->number);
    snprintf(other, sizeof other, "no input %d", 100 + w->number);
    uir_session_options options = {.struct_size = sizeof options, .threads = 1};
    assert_int_equal(uir_session_create(w->model, &options, &session), UIR_STATUS_OK);
    options.device = "interpreter";
    assert_int_equal(uir_session_create(w->model, &options, &interpreted), UIR_STATUS_OK);
    for (int round = 0; round < ROUNDS; round++) {
        assert_int_equal(load(w->context, make_model(make_graph_of(make_node(name, "node", "x", "y"))), "vm", &model),
                         UIR_STATUS_UNSUPPORTED);
        expect_heard(w, name);
        assert_int_equal(uir_model_find_input(w->model, name, &index), UIR_STATUS_NOT_FOUND);
        expect_heard(w, name);
        assert_int_equal(uir_session_bind_input(session, 100 + (size_t)w->number, 0, NULL, NULL, NULL, 0),
                         UIR_STATUS_INVALID_ARGUMENT);
        expect_heard(w, other);
        int64_t shape[2] = {1 + w->number, 4};
        uir_value *value;
        assert_int_equal(uir_value_create_tensor(w->context, UIR_DTYPE_F32, 2, shape, &value), UIR_STATUS_OK);
        assert_int_equal(uir_session_set_input(session, 0, value), UIR_STATUS_BAD_DATA);
        snprintf(text, sizeof text, "f32[%d,4]", 1 + w->number);
        expect_heard(w, text);
        uir_value_destroy(value);
        assert_int_equal(uir_session_run(round % 2 ? session : interpreted), UIR_STATUS_INVALID_ARGUMENT);
        expect_heard(w, "input 'x' is not bound to a value");
    }
    uir_session_destroy(session);
    uir_session_destroy(interpreted);
    mine = NULL;
    return NULL;
}

static void threads_hear_their_own(void **state) {
    (void)state;
    uir_context *context;
    worker workers[THREADS] = {0};
    int user = 7;
    heard main_heard = {0};
    mine = &main_heard;
    assert_int_equal(uir_context_create(NULL, &context), UIR_STATUS_OK);
    uir_context_set_message_callback(context, hear, &user);
    uir_model *model;
    assert_int_equal(load(context, small_model(), "vm", &model), UIR_STATUS_OK);
    for (int i = 0; i < THREADS; i++) {
        workers[i].context = context;
        workers[i].model = model;
        workers[i].number = i;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, go_wrong, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(workers[i].thread, NULL);
    assert_int_equal(main_heard.count, 0);
    assert_int_equal(uir_context_message_count(context), 0); /* none was kept */
    uir_model_destroy(model);
    uir_context_set_message_callback(context, NULL, NULL);
    assert_int_equal(uir_model_load_file(context, "/nonexistent", NULL, &model), UIR_STATUS_NOT_FOUND);
    assert_int_equal(uir_context_message_count(context), 1); /* kept again */
    assert_int_equal(main_heard.count, 0);
    uir_context_destroy(context);
    mine = NULL;
}

/* It may use the context, and its memory. */
static void ask_again(void *user, const uir_message *message) {
    uir_context *context = user;
    uir_value *value;
    assert_non_null(message->text);
    assert_int_equal(message->severity, UIR_SEVERITY_ERROR);
    (void)uir_context_message_count(context);
    if (message->status != UIR_STATUS_NOT_FOUND) return;
    if (uir_value_create_tensor(context, UIR_DTYPE_F32, 1, (int64_t[]){4}, &value) == UIR_STATUS_OK)
        uir_value_destroy(value);
}

static bool hear_with(const uir_allocator *allocator) {
    uir_context *context;
    uir_model *model;
    if (uir_context_create(allocator, &context) != UIR_STATUS_OK) return false;
    uir_context_set_message_callback(context, ask_again, context);
    uir_status status = uir_model_load_file(context, "/nonexistent", NULL, &model);
    uir_context_destroy(context);
    assert_true(status == UIR_STATUS_NOT_FOUND || status == UIR_STATUS_OUT_OF_MEMORY);
    return ((failing_memory *)allocator->user)->allocations < ((failing_memory *)allocator->user)->fail_at;
}

static void memory_may_run_out_for_what_is_heard(void **state) {
    (void)state;
    run_with_failures(hear_with);
}

/* Contexts are apart, and what belongs to one may be used with what belongs to another. */
static void contexts_keep_their_own(void **state) {
    (void)state;
    uir_context *first, *second;
    uir_model *model, *none;
    uir_session *session;
    uir_value *x, *y;
    assert_int_equal(uir_context_create(NULL, &first), UIR_STATUS_OK);
    assert_int_equal(uir_context_create(NULL, &second), UIR_STATUS_OK);
    assert_int_equal(load(first, small_model(), "vm", &model), UIR_STATUS_OK);
    assert_int_equal(uir_value_create_tensor(second, UIR_DTYPE_F32, 2, (int64_t[]){2, 3}, &x), UIR_STATUS_OK);
    assert_int_equal(uir_session_create(model, NULL, &session), UIR_STATUS_OK);
    assert_int_equal(uir_session_set_input(session, 0, x), UIR_STATUS_OK);
    assert_int_equal(uir_session_run(session), UIR_STATUS_OK);
    assert_int_equal(uir_session_get_output(session, 0, &y), UIR_STATUS_OK);
    assert_true(uir_value_get_double(y, 2) == 1);
    assert_int_equal(uir_model_load_file(second, "/nonexistent", NULL, &none), UIR_STATUS_NOT_FOUND);
    assert_int_equal(uir_session_set_input(session, 5, x), UIR_STATUS_INVALID_ARGUMENT);
    assert_true(uir_context_message_count(first) == 1 && has_message(first, "no input 5"));
    assert_true(uir_context_message_count(second) == 1 && has_message(second, "/nonexistent"));
    uir_session_destroy(session);
    uir_value_destroy(x);
    uir_context_destroy(second);
    uir_model_destroy(model);
    uir_context_destroy(first);
}

/* In their order, and of very many the first. */
static void messages_are_kept_in_their_order(void **state) {
    (void)state;
    uir_context *context;
    uir_model *model;
    char path[32];
    assert_int_equal(uir_context_create(NULL, &context), UIR_STATUS_OK);
    for (int i = 0; i < 10010; i++) {
        snprintf(path, sizeof path, "/nonexistent/%d", i);
        assert_int_equal(uir_model_open_package_file(context, path, NULL, &model), UIR_STATUS_NOT_FOUND);
    }
    assert_int_equal(uir_context_message_count(context), 10000);
    for (size_t i = 0; i < 10000; i += 1111) {
        snprintf(path, sizeof path, "/nonexistent/%zu", i);
        assert_non_null(strstr(uir_context_get_message_text(context, i), path));
    }
    assert_string_equal(uir_context_get_message_text(context, 10000), "");
    uir_message message = {.struct_size = sizeof message};
    assert_int_equal(uir_context_get_message(context, 10000, &message), UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_context_message_count(context), 10000);
    uir_context_clear_messages(context);
    assert_int_equal(uir_context_message_count(context), 0);
    uir_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_hear_their_own),
        cmocka_unit_test(memory_may_run_out_for_what_is_heard),
        cmocka_unit_test(contexts_keep_their_own),
        cmocka_unit_test(messages_are_kept_in_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
