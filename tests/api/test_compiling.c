/* The compiler's thread when memory runs out: whichever of its allocations fails, the VM answers, nothing is lost,
 * nothing is left lying, and the next start works. */
#include "tests/backends/cpu/here.h"
#include "tests/frontend/make.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Fails one allocation of those that other threads than the caller's ask for. */
typedef struct memory {
    pthread_t caller;
    atomic_ulong asked, fail_at;
    atomic_llong live;
} memory;

typedef struct world {
    char folder[64], cache[96], temporary[96];
    unsigned long step;
} world;

static void *resize(void *user, void *pointer, size_t old_size, size_t new_size) {
    memory *m = user;
    if (!new_size) {
        atomic_fetch_sub(&m->live, (long long)old_size);
        free(pointer);
        return NULL;
    }
    if (!pthread_equal(pthread_self(), m->caller) && atomic_fetch_add(&m->asked, 1) + 1 == atomic_load(&m->fail_at))
        return NULL;
    void *block = NULL;
    if (posix_memalign(&block, 64, new_size) != 0) return NULL;
    if (pointer) memcpy(block, pointer, old_size < new_size ? old_size : new_size);
    free(pointer);
    atomic_fetch_add(&m->live, (long long)new_size - (long long)(pointer ? old_size : 0));
    return block;
}

/* y = Relu(-x). */
static blob make_bytes(void) {
    blob graph = blob_new();
    put_text(&graph, GRAPH_NAME, "small");
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F32, "batch,3"));
    put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_F32, NULL));
    put_message(&graph, GRAPH_NODE, make_node("Neg", "first", "x", "s"));
    put_message(&graph, GRAPH_NODE, make_node("Relu", "last", "s", "y"));
    return make_model(graph);
}

static void run_model(uir_context *context, uir_model *model) {
    uir_session_options options = {.struct_size = sizeof options, .threads = 1};
    uir_session *session;
    uir_value *x, *y;
    assert_int_equal(uir_session_create(model, &options, &session), UIR_STATUS_OK);
    assert_int_equal(uir_value_create_tensor(context, UIR_DTYPE_F32, 2, (int64_t[]){2, 3}, &x), UIR_STATUS_OK);
    for (int i = 0; i < 6; i++) ((float *)uir_value_get_data(x))[i] = (float)(2 - i);
    assert_int_equal(uir_session_set_input(session, 0, x), UIR_STATUS_OK);
    assert_int_equal(uir_session_run(session), UIR_STATUS_OK);
    assert_int_equal(uir_session_get_output(session, 0, &y), UIR_STATUS_OK);
    for (int i = 0; i < 6; i++) assert_true(uir_value_get_double(y, (uint64_t)i) == (i > 2 ? i - 2 : 0));
    uir_session_destroy(session);
    uir_value_destroy(x);
}

/* Whether compiled code is there in the end. */
static bool start(const world *w, memory *m) {
    uir_allocator allocator = {resize, m};
    uir_model_options options = {.struct_size = sizeof options, .device = "cpu", .cache = w->cache};
    uir_context *context;
    uir_model *model;
    blob bytes = make_bytes();
    assert_int_equal(uir_context_create(&allocator, &context), UIR_STATUS_OK);
    assert_int_equal(uir_model_load_memory(context, bytes.data, bytes.length, NULL, &options, &model), UIR_STATUS_OK);
    run_model(context, model);
    uir_status status = uir_model_wait(model);
    if (status != UIR_STATUS_OK && status != UIR_STATUS_OUT_OF_MEMORY && uir_context_message_count(context))
        print_error("allocation %lu: %s\n", atomic_load(&m->fail_at), uir_context_get_message_text(context, 0));
    assert_true(status == UIR_STATUS_OK || status == UIR_STATUS_OUT_OF_MEMORY);
    run_model(context, model);
    uir_model_destroy(model);
    uir_context_destroy(context);
    blob_free(&bytes);
    assert_int_equal(atomic_load(&m->live), 0);
    return status == UIR_STATUS_OK;
}

/* Removes what lies there; how many of the names began with `prefix`. */
static int empty_folder(const char *path, const char *prefix) {
    DIR *directory = opendir(path);
    int count = 0;
    for (struct dirent *e; directory && (e = readdir(directory)) != NULL;) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        if (!strncmp(e->d_name, prefix, strlen(prefix))) count++;
        unlinkat(dirfd(directory), e->d_name, 0);
    }
    if (directory) closedir(directory);
    return count;
}

static void the_compilers_thread_may_run_out_of_memory(void **state) {
    world *w = *state;
    unsigned long failures = 0;
    for (unsigned long at = 1;; at += w->step) {
        memory failing = {.caller = pthread_self(), .fail_at = at}, plain = {.caller = pthread_self()};
        bool compiled = start(w, &failing);
        assert_int_equal(empty_folder(w->temporary, ""), 0);
        bool all = atomic_load(&failing.asked) < at;
        if (all) {
            assert_true(compiled && failures > 0);
            break;
        }
        failures += !compiled;
        if (at % 16 == 1) assert_true(start(w, &plain));
        assert_int_equal(empty_folder(w->cache, "tmp-"), 0);
        assert_true(at < 100000);
    }
    memory plain = {.caller = pthread_self()};
    assert_true(start(w, &plain));
    print_message("%lu failures\n", failures);
}

static int begin(void **state) {
    world *w = *state;
    snprintf(w->folder, sizeof w->folder, "/tmp/uir-compiling-XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    snprintf(w->cache, sizeof w->cache, "%s/cache", w->folder);
    snprintf(w->temporary, sizeof w->temporary, "%s/tmp", w->folder);
    assert_int_equal(mkdir(w->temporary, 0700), 0);
    return setenv("TMPDIR", w->temporary, 1);
}

static int end(void **state) {
    world *w = *state;
    empty_folder(w->cache, "");
    empty_folder(w->temporary, "");
    return rmdir(w->cache) | rmdir(w->temporary) | rmdir(w->folder);
}

/* The argument: every how manieth allocation fails. */
int main(int argc, char **argv) {
    here_keep_what_runs();
    static world w = {.step = 1};
    if (argc > 1) w.step = strtoul(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate_setup_teardown(the_compilers_thread_may_run_out_of_memory, begin, end, &w)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
