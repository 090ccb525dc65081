/* Processes and threads together: four threads of each of two processes load, run, cancel, pack and open models that
 * share one cache, while their files are replaced. Every answer is that of a version that the file had; what was
 * cancelled says so; nothing is left. */
#include "small.h"
#include "tests/backends/cpu/here.h"

#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 2, THREADS = 4, FILES = 3, VERSIONS = 3, WIDTH = 40, ROWS = 5 };
static int rounds = 60; /* of each thread: the first argument */

typedef struct world world;
typedef struct thread {
    world *w;
    uint64_t random;
    uint32_t number;
    pthread_t id;
    volatile bool cancel;    /* of its load */
    pthread_mutex_t mutex;   /* of `session` */
    uir_session *session;    /* that others may cancel; NULL: none */
    uint32_t done, answered; /* rounds */
} thread;

struct world {
    uir_context *context;
    const char *folder;
    uint32_t process;
    thread threads[THREADS];
};

/* cmocka's assertions belong to the thread that runs the test. */
static void expect(bool holds, const char *what, const world *w) {
    if (holds) return;
    fprintf(stderr, "test_together: %s\n", what);
    for (size_t i = 0; w && i < uir_context_message_count(w->context); i++)
        fprintf(stderr, "  %s\n", uir_context_get_message_text(w->context, i));
    _exit(1);
}

static uint32_t draw(thread *t, uint32_t below) {
    t->random = t->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(t->random >> 33) % below;
}

/* ---- files ---- */
static float weight(uint32_t file, uint32_t version, uint32_t i) {
    return (float)(file * 1000 + version * 100 + i);
}

/* y = x + w; the files differ in their first dim's name, so that they share kernels, not models. */
static void write_version(const char *folder, const char *own, uint32_t file, uint32_t version) {
    float weights[WIDTH];
    char path[160], final[160], dims[32];
    blob graph = blob_new(), tensor = make_tensor("w", UIR_DTYPE_F32, 1, (int64_t[]){WIDTH});
    for (uint32_t i = 0; i < WIDTH; i++) weights[i] = weight(file, version, i);
    snprintf(dims, sizeof dims, "rows%u,%d", file, WIDTH);
    snprintf(final, sizeof final, "%s/model%u.onnx", folder, file);
    snprintf(path, sizeof path, "%s/new%s.onnx", folder, own);
    put_bytes(&tensor, TENSOR_RAW, weights, sizeof weights);
    put_text(&graph, GRAPH_NAME, "sum");
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F32, dims));
    put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_F32, NULL));
    put_message(&graph, GRAPH_INITIALIZER, tensor);
    put_message(&graph, GRAPH_NODE, make_node("Add", "the addition", "x,w", "y"));
    blob model = make_model(graph);
    FILE *f = fopen(path, "wb");
    expect(f && fwrite(model.data, 1, model.length, f) == model.length && fclose(f) == 0, "a file is not written",
           NULL);
    blob_free(&model);
    expect(rename(path, final) == 0, "a file is not renamed", NULL);
}

static void empty_folder(const char *path) {
    DIR *directory = opendir(path);
    for (struct dirent *e; directory && (e = readdir(directory)) != NULL;) {
        if (e->d_name[0] != '.') unlinkat(dirfd(directory), e->d_name, 0);
    }
    if (directory) closedir(directory);
    rmdir(path);
}

/* ---- what a thread does ---- */
static void publish(thread *t, uir_session *session) {
    pthread_mutex_lock(&t->mutex);
    t->session = session;
    pthread_mutex_unlock(&t->mutex);
}

/* Any thread's load or run. */
static void disturb(thread *t) {
    thread *other = &t->w->threads[draw(t, THREADS)];
    __atomic_store_n(&other->cancel, true, __ATOMIC_RELAXED);
    pthread_mutex_lock(&other->mutex);
    if (other->session) uir_session_cancel(other->session);
    pthread_mutex_unlock(&other->mutex);
}

static void check_sum(thread *t, uir_session *session, uint32_t file, const float *x) {
    uir_value *y;
    expect(uir_session_get_output(session, 0, &y) == UIR_STATUS_OK, "there is no output", t->w);
    const float *data = uir_value_get_data(y);
    uint32_t version = 0;
    while (version < VERSIONS && data[0] != x[0] + weight(file, version, 0)) version++;
    expect(version < VERSIONS, "an answer is of no version", t->w);
    for (uint32_t i = 0; i < ROWS * WIDTH; i++)
        expect(data[i] == x[i] + weight(file, version, i % WIDTH), "an answer is of several versions", t->w);
    t->answered++;
}

static void run_model(thread *t, uir_model *model, uint32_t file) {
    float x[ROWS * WIDTH];
    const int64_t shape[2] = {ROWS, WIDTH};
    uir_value *input;
    uir_session *session;
    for (uint32_t i = 0; i < ROWS * WIDTH; i++) x[i] = (float)draw(t, 1000);
    expect(uir_value_create_tensor_borrowed(t->w->context, UIR_DTYPE_F32, 2, shape, x, sizeof x, &input) ==
               UIR_STATUS_OK,
           "there is no input", t->w);
    expect(uir_session_create(model, NULL, &session) == UIR_STATUS_OK, "there is no session", t->w);
    expect(uir_session_set_input(session, 0, input) == UIR_STATUS_OK, "the input is refused", t->w);
    publish(t, session);
    for (int run = 0; run < 4; run++) {
        uir_status status = uir_session_run(session);
        expect(status == UIR_STATUS_OK || status == UIR_STATUS_CANCELLED, "a run fails", t->w);
        if (status == UIR_STATUS_OK) check_sum(t, session, file, x);
        if (draw(t, 3) == 0) disturb(t);
    }
    publish(t, NULL);
    uir_session_destroy(session);
    uir_value_destroy(input);
}

/* A value as a file: to a name that only this thread has, and back. */
static void save_and_load(thread *t) {
    char path[160];
    const int64_t shape[1] = {WIDTH};
    uir_value *value, *again;
    snprintf(path, sizeof path, "%s/own%u-%u.npy", t->w->folder, t->w->process, t->number);
    expect(uir_value_create_tensor(t->w->context, UIR_DTYPE_F32, 1, shape, &value) == UIR_STATUS_OK,
           "there is no value", t->w);
    float *data = uir_value_get_data(value);
    for (uint32_t i = 0; i < WIDTH; i++) data[i] = (float)draw(t, 1000);
    expect(uir_value_save_file(t->w->context, value, path, NULL) == UIR_STATUS_OK, "a value is not saved", t->w);
    expect(uir_value_load_file(t->w->context, path, NULL, UIR_VALUE_TENSOR, &again) == UIR_STATUS_OK,
           "a value is not read", t->w);
    expect(!memcmp(uir_value_get_data(again), data, WIDTH * sizeof *data), "a value is another", t->w);
    uir_value_destroy(again);
    uir_value_destroy(value);
}

static uir_model *load(thread *t, const char *path, const char *cache) {
    uir_model_options options = {
        .struct_size = sizeof options, .cache = cache, .wait = draw(t, 2), .no_map = draw(t, 2), .cancel = &t->cancel};
    uir_model *model;
    uir_status status = uir_model_load_file(t->w->context, path, &options, &model);
    expect(status == UIR_STATUS_OK || status == UIR_STATUS_CANCELLED, "a load fails", t->w);
    expect((status == UIR_STATUS_OK) == (model != NULL), "a model of a load that failed", t->w);
    return model;
}

static void pack_and_open(thread *t, const char *path, uint32_t file) {
    char package[160];
    uir_package_write_options options = {.struct_size = sizeof options, .cancel = &t->cancel};
    uir_model *model;
    snprintf(package, sizeof package, "%s/own%u-%u.uir", t->w->folder, t->w->process, t->number);
    uir_status status = uir_package_write_file(t->w->context, path, package, &options, NULL);
    expect(status == UIR_STATUS_OK || status == UIR_STATUS_CANCELLED, "a package is not written", t->w);
    if (status != UIR_STATUS_OK) return;
    expect(uir_model_open_package_file(t->w->context, package, NULL, &model) == UIR_STATUS_OK,
           "a package does not open", t->w);
    run_model(t, model, file);
    uir_model_destroy(model);
}

static void *work(void *user) {
    thread *t = user;
    char path[160], cache[160], own[16];
    snprintf(cache, sizeof cache, "%s/cache", t->w->folder);
    snprintf(own, sizeof own, "%u-%u", t->w->process, t->number);
    for (int round = 0; round < rounds; round++) {
        uint32_t file = draw(t, FILES);
        snprintf(path, sizeof path, "%s/model%u.onnx", t->w->folder, file);
        __atomic_store_n(&t->cancel, false, __ATOMIC_RELAXED);
        switch (draw(t, 7)) {
        case 0:
            write_version(t->w->folder, own, file, draw(t, VERSIONS));
            break;
        case 1:
            pack_and_open(t, path, file);
            break;
        case 2:
            save_and_load(t);
            break;
        default: {
            uir_model *model = load(t, path, cache);
            if (model) run_model(t, model, file);
            uir_model_destroy(model);
        }
        }
        if (draw(t, 4) == 0) disturb(t);
        t->done++;
    }
    return NULL;
}

/* ---- processes ---- */
static void run_process(const char *folder, uint32_t process) {
    _Atomic size_t alive = 0;
    const uir_allocator allocator = counting_allocator(&alive);
    world w = {.folder = folder, .process = process};
    uint32_t answered = 0;
    expect(uir_context_create(&allocator, &w.context) == UIR_STATUS_OK, "there is no context", NULL);
    for (uint32_t i = 0; i < THREADS; i++) {
        w.threads[i] = (thread){.w = &w, .random = process * 1000 + i, .number = i};
        expect(pthread_mutex_init(&w.threads[i].mutex, NULL) == 0, "there is no mutex", NULL);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        expect(pthread_create(&w.threads[i].id, NULL, work, &w.threads[i]) == 0, "there is no thread", NULL);
    for (uint32_t i = 0; i < THREADS; i++) {
        expect(pthread_join(w.threads[i].id, NULL) == 0 && w.threads[i].done == (uint32_t)rounds, "a thread is lost",
               NULL);
        answered += w.threads[i].answered;
    }
    expect(answered > 0, "nothing was answered", NULL);
    uir_context_destroy(w.context);
    expect(alive == 0, "memory is left", NULL);
}

static void threads_and_processes_share_a_cache(void **state) {
    char folder[64] = "/tmp/uir-together-XXXXXX", cache[96];
    pid_t children[PROCESSES];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(cache, sizeof cache, "%s/cache", folder);
    for (uint32_t i = 0; i < FILES; i++) write_version(folder, "", i, 0);
    for (uint32_t p = 0; p < PROCESSES; p++) {
        children[p] = fork();
        assert_true(children[p] >= 0);
        if (children[p] == 0) {
            run_process(folder, p);
            exit(0);
        }
    }
    int statuses[PROCESSES];
    for (uint32_t p = 0; p < PROCESSES; p++) assert_int_equal(waitpid(children[p], &statuses[p], 0), children[p]);
    empty_folder(cache);
    empty_folder(folder);
    for (uint32_t p = 0; p < PROCESSES; p++) assert_int_equal(statuses[p], 0);
}

int main(int argc, char **argv) {
    here_keep_what_runs();
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_and_processes_share_a_cache)};
    if (argc > 1) rounds = atoi(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
