/* Cancel asked at random moments of loads, compiles and runs: the call comes back with CANCELLED or whole, everything
 * is released, and the next call works. `test_api_cancel MOMENTS [MODEL...]` tries models in place of its own, tells
 * how long each call took to come back, and the median and the greatest of it. */
#include "tests/api/small.h"
#include "tests/backends/cpu/here.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MOST_MOMENTS = 10000, LONGEST_MS = 3000 };
static uint64_t seed = 1;
static int moments = 12;
static char **files;
static int file_count;
static _Atomic size_t alive; /* bytes that are not given back */

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static double draw(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) / (double)(1ull << 53);
}

/* ---- what is cancelled ---- */
typedef struct attempt {
    uir_context *context;
    const char *path;
    const char *device;
    bool runs; /* a run is cancelled, again and again until it is; else the load */
    uir_model *model;
    uir_session *session;
    volatile bool cancel;
    _Atomic bool begun;
    uir_status status;
    double ended_ms;
    pthread_t thread;
} attempt;

static uir_status load(attempt *a, const volatile bool *cancel) {
    const uir_model_options options = {
        .struct_size = sizeof options, .device = a->device, .no_cache = true, .wait = true, .cancel = cancel};
    return uir_model_load_file(a->context, a->path, &options, &a->model);
}

static uir_status bind_inputs(uir_session *session, const uir_model *model, uir_context *context, uir_value **values) {
    for (size_t i = 0; i < uir_model_input_count(model); i++) {
        int64_t shape[16];
        uir_port port = {.struct_size = sizeof port};
        uir_status status = uir_model_get_input(model, i, &port);
        if (status == UIR_STATUS_OK && port.rank > 16) status = UIR_STATUS_UNSUPPORTED;
        if (status == UIR_STATUS_OK) status = uir_model_get_input_shape(model, i, NULL, 0, shape);
        if (status == UIR_STATUS_OK)
            status = uir_value_create_tensor(context, port.dtype, port.rank, shape, &values[i]);
        if (status == UIR_STATUS_OK) status = uir_value_fill_random(values[i], 1, 0, 1);
        if (status == UIR_STATUS_OK) status = uir_session_set_input(session, i, values[i]);
        if (status != UIR_STATUS_OK) return status;
    }
    return UIR_STATUS_OK;
}

static void *work(void *user) {
    attempt *a = user;
    a->begun = true;
    a->status = a->runs ? UIR_STATUS_OK : load(a, &a->cancel);
    /* A wish that comes as a run ends is that run's: the next one would not hear of it. */
    while (a->runs && a->status == UIR_STATUS_OK && !__atomic_load_n(&a->cancel, __ATOMIC_RELAXED))
        a->status = uir_session_run(a->session);
    a->ended_ms = now_ms();
    return NULL;
}

/* The context that a call was cancelled in goes on. */
static void check_next_call(uir_context *context, const char *small) {
    attempt a = {.context = context, .path = small, .device = "vm"};
    uir_value *x;
    assert_int_equal(load(&a, NULL), UIR_STATUS_OK);
    assert_int_equal(uir_session_create(a.model, NULL, &a.session), UIR_STATUS_OK);
    assert_int_equal(bind_inputs(a.session, a.model, context, &x), UIR_STATUS_OK);
    assert_int_equal(uir_session_run(a.session), UIR_STATUS_OK);
    uir_session_destroy(a.session);
    uir_value_destroy(x);
    uir_model_destroy(a.model);
}

/* Milliseconds from the wish to the return; -1: it was over before. */
static double cancel_after(attempt *a, double ms) {
    assert_int_equal(pthread_create(&a->thread, NULL, work, a), 0);
    while (!a->begun) nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
    nanosleep(&(struct timespec){(time_t)(ms / 1e3), (long)((uint64_t)(ms * 1e6) % 1000000000)}, NULL);
    double asked = now_ms();
    __atomic_store_n(&a->cancel, true, __ATOMIC_RELAXED);
    if (a->runs) uir_session_cancel(a->session);
    pthread_join(a->thread, NULL);
    return a->ended_ms < asked ? -1 : a->ended_ms - asked;
}

/* One moment; `a` says of what. */
static double try_moment(attempt *a, double ms, const char *small) {
    const uir_allocator counting = counting_allocator(&alive);
    uir_value *values[64] = {0};
    double took = -1;
    assert_int_equal(uir_context_create(&counting, &a->context), UIR_STATUS_OK);
    if (!a->runs) {
        took = cancel_after(a, ms);
    } else if (load(a, NULL) == UIR_STATUS_OK && uir_model_input_count(a->model) <= 64 &&
               uir_session_create(a->model, NULL, &a->session) == UIR_STATUS_OK) {
        if (bind_inputs(a->session, a->model, a->context, values) == UIR_STATUS_OK) took = cancel_after(a, ms);
        uir_session_destroy(a->session);
    }
    /* A file may end by a limit of its own accord. */
    bool ended = a->status == UIR_STATUS_CANCELLED || a->status == UIR_STATUS_OK || a->status == UIR_STATUS_LIMIT;
    if (took >= 0 && !ended)
        fail_msg("%s: %s: %s", a->path, uir_status_text(a->status), uir_context_get_message_text(a->context, 0));
    assert_true(a->runs || !a->model == (a->status != UIR_STATUS_OK));
    uir_model_destroy(a->model);
    for (int i = 0; i < 64; i++) uir_value_destroy(values[i]);
    check_next_call(a->context, small);
    uir_context_destroy(a->context);
    assert_int_equal(atomic_load(&alive), 0);
    return took;
}

/* ---- models ---- */
static void make_own(const char *folder, char paths[2][96]) {
    blob graph = blob_new();
    snprintf(paths[0], 96, "%s/endless.onnx", folder);
    write_bytes(paths[0], loop_model("batch,3", NULL));

    put_text(&graph, GRAPH_NAME, "curves");
    put_message(&graph, GRAPH_INPUT, make_value("v0", UIR_DTYPE_F32, "batch,3"));
    for (int i = 0; i < 60; i++) {
        char from[16], to[16];
        snprintf(from, sizeof from, "v%d", i);
        snprintf(to, sizeof to, "v%d", i + 1);
        put_message(&graph, GRAPH_NODE, make_node(i % 3 ? "Tanh" : "Softmax", to, from, to));
    }
    put_message(&graph, GRAPH_OUTPUT, make_value("v60", UIR_DTYPE_F32, NULL));
    snprintf(paths[1], 96, "%s/curves.onnx", folder);
    write_bytes(paths[1], make_model(graph));
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void cancel_comes_at_any_moment(void **state) {
    static const struct {
        const char *device;
        bool runs;
    } ways[] = {{"cpu", false}, {"vm", false}, {"vm", true}, {"interpreter", true}, {"cpu", true}};
    enum { WAYS = sizeof ways / sizeof *ways };
    char folder[] = "/tmp/uir-cancel-XXXXXX", small[96], own[2][96];
    char *own_list[2] = {own[0], own[1]};
    double *times = calloc((size_t)moments, sizeof *times);
    int count = 0, tries = 0;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(small, sizeof small, "%s/small.onnx", folder);
    write_bytes(small, small_model());
    make_own(folder, own);
    char **models = file_count ? files : own_list;
    int model_count = file_count ? file_count : 2;
    while (count < moments && tries++ < 20 * moments) {
        int way = (int)(draw() * WAYS), model = (int)(draw() * model_count);
        attempt a = {.path = models[model], .device = ways[way].device, .runs = ways[way].runs};
        double ms = draw() * draw() * LONGEST_MS, took = try_moment(&a, ms, small);
        if (took < 0) continue;
        times[count++] = took;
        if (file_count)
            printf("%8.1f ms after %6.0f ms of the %s of %s on %s\n", took, ms, a.runs ? "run" : "load", a.path,
                   a.device);
    }
    qsort(times, (size_t)count, sizeof *times, compare);
    assert_true(count > 0);
    printf("%d moments: back after %.1f ms in the median, %.1f ms at most\n", count, times[count / 2],
           times[count - 1]);
    free(times);
    unlink(small);
    for (int i = 0; i < 2; i++) unlink(own[i]);
    rmdir(folder);
}

int main(int argc, char **argv) {
    here_keep_what_runs();
    const struct CMUnitTest tests[] = {cmocka_unit_test(cancel_comes_at_any_moment)};
    if (argc > 1) moments = atoi(argv[1]);
    if (moments < 1 || moments > MOST_MOMENTS) return 2;
    files = argv + 2;
    file_count = argc > 2 ? argc - 2 : 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
