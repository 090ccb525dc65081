/* One null device, shared: four threads with two sessions each run, submit and cancel at random moments. Each answer is
 * right or CANCELLED, the weights are on the device once, and nothing is left. `test_api_shared [MOMENTS]`. */
#include "tests/api/device.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 4, SESSIONS = 2, WIDTH = 1024, ROWS = 16, LONGEST_US = 400 };
static int moments = 200;             /* of all threads together */
static _Atomic size_t alive, highest; /* bytes of the context, and so of the simulated device */

static void *note_resize(void *user, void *pointer, size_t old_size, size_t new_size) {
    void *block = count_resize(user, pointer, old_size, new_size);
    size_t now = atomic_load(&alive), before = atomic_load(&highest);
    while (now > before && !atomic_compare_exchange_weak(&highest, &before, now)) {
    }
    return block;
}

/* y = x w, with w[i][j] = 1 where j is i + 1, else 0: a shift of the row; 4 MB. */
static blob shift_model(void) {
    const int64_t dims[] = {WIDTH, WIDTH};
    float *weights = calloc(WIDTH * WIDTH, sizeof *weights);
    blob graph = blob_new(), tensor = make_tensor("w", UIR_DTYPE_F32, 2, dims);
    for (int i = 0; i + 1 < WIDTH; i++) weights[i * WIDTH + i + 1] = 1;
    put_bytes(&tensor, TENSOR_RAW, weights, WIDTH * WIDTH * sizeof *weights);
    free(weights);
    put_text(&graph, GRAPH_NAME, "shift");
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F32, "rows,1024"));
    put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_F32, NULL));
    put_message(&graph, GRAPH_INITIALIZER, tensor);
    put_message(&graph, GRAPH_NODE, make_node("MatMul", "the shift", "x,w", "y"));
    return make_model(graph);
}

typedef struct lane {
    uir_context *context;
    uir_device *device;
    uir_session *sessions[SESSIONS];
    float x[SESSIONS][ROWS][WIDTH];
    uir_value *results[SESSIONS]; /* on the device; NULL: on the host */
    uint64_t random;
    pthread_t thread;
    int moments, cancelled, wrong;
} lane;

static uint32_t draw(lane *l, uint32_t below) {
    l->random = l->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(l->random >> 33) % below;
}

/* cmocka's assertions belong to the thread that runs the test. */
static bool is_right(lane *l, uint32_t s) {
    uir_value *output;
    float got[ROWS][WIDTH];
    if (uir_session_get_output(l->sessions[s], 0, &output) != UIR_STATUS_OK) return false;
    if ((uir_value_get_device(output) != NULL) != (l->results[s] != NULL)) return false;
    if (uir_value_read(output, 0, got, sizeof got) != UIR_STATUS_OK) return false;
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < WIDTH; i++)
            if (got[r][i] != (i ? l->x[s][r][i - 1] : 0)) return false;
    return true;
}

static void pause_for(lane *l) {
    nanosleep(&(struct timespec){.tv_nsec = (long)draw(l, LONGEST_US) * 1000}, NULL);
}

static void end_run(lane *l, uint32_t s, uir_status status) {
    l->cancelled += status == UIR_STATUS_CANCELLED;
    if (status == UIR_STATUS_OK ? !is_right(l, s) : status != UIR_STATUS_CANCELLED) l->wrong++;
}

static void *work(void *user) {
    lane *l = user;
    for (int m = 0; m < l->moments; m++) {
        uint32_t s = draw(l, SESSIONS), other = (s + 1) % SESSIONS;
        for (int i = 0; i < ROWS * WIDTH; i++) l->x[s][i / WIDTH][i % WIDTH] = (float)draw(l, 1000);
        if (uir_session_submit(l->sessions[s]) != UIR_STATUS_OK) l->wrong++;
        if (draw(l, 2)) end_run(l, other, uir_session_run(l->sessions[other]));
        pause_for(l);
        uir_session_cancel(l->sessions[s]);
        while (draw(l, 2) && !uir_session_poll(l->sessions[s])) pause_for(l);
        end_run(l, s, uir_session_wait(l->sessions[s]));
    }
    return NULL;
}

static void open_lane(lane *l, uir_context *context, uir_device *device, uir_model *model, uint32_t number) {
    const int64_t shape[] = {ROWS, WIDTH};
    *l = (lane){.context = context, .device = device, .random = number + 1, .moments = moments / THREADS};
    for (uint32_t s = 0; s < SESSIONS; s++) {
        l->sessions[s] = new_session(context, model, NULL);
        expect_ok(context, uir_session_bind_input(l->sessions[s], 0, 2, shape, NULL, l->x[s], sizeof l->x[s]), "x");
        if (s) l->results[s] = put_on(context, device, 2, shape, NULL);
        if (s) expect_ok(context, uir_session_bind_output_value(l->sessions[s], 0, 0, NULL, l->results[s]), "y");
    }
}

static void threads_share_a_device(void **state) {
    static lane lanes[THREADS];
    const uir_allocator counting = {note_resize, &alive};
    uir_context *context;
    int cancelled = 0;
    (void)state;
    assert_int_equal(uir_context_create(&counting, &context), UIR_STATUS_OK);
    uir_device *device = open_device(context, "null:9");
    uir_model *model = load_on(context, shift_model(), device, NULL);
    size_t loaded = atomic_load(&alive);
    atomic_store(&highest, loaded);
    for (uint32_t t = 0; t < THREADS; t++) open_lane(&lanes[t], context, device, model, t);
    for (uint32_t t = 0; t < THREADS; t++) assert_int_equal(pthread_create(&lanes[t].thread, NULL, work, &lanes[t]), 0);
    for (uint32_t t = 0; t < THREADS; t++) pthread_join(lanes[t].thread, NULL);
    uint64_t weights = WIDTH * WIDTH * sizeof(float), most = query_statistics(lanes[0].sessions[0]).device_bytes;
    for (uint32_t t = 0; t < THREADS; t++) {
        for (size_t i = 0; lanes[t].wrong && i < uir_context_message_count(context); i++)
            print_message("%s\n", uir_context_get_message_text(context, i));
        assert_int_equal(lanes[t].wrong, 0);
        cancelled += lanes[t].cancelled;
        for (uint32_t s = 0; s < SESSIONS; s++) uir_session_destroy(lanes[t].sessions[s]);
        for (uint32_t s = 0; s < SESSIONS; s++) uir_value_destroy(lanes[t].results[s]);
    }
    print_message("%d of about %d runs were cancelled; %zu bytes at most beside the model, %llu of weights\n",
                  cancelled, moments, atomic_load(&highest) - loaded, (unsigned long long)weights);
    assert_true(cancelled > 0 || moments < 100);
    assert_true(most == 0 || most >= weights);
    assert_true(atomic_load(&highest) - loaded > weights && atomic_load(&highest) - loaded < 2 * weights);
    uir_model_destroy(model);
    uir_device_close(device);
    uir_context_destroy(context);
    assert_int_equal(atomic_load(&alive), 0);
}

int main(int argc, char **argv) {
    if (argc > 1) moments = atoi(argv[1]);
    const struct CMUnitTest tests[] = {cmocka_unit_test(threads_share_a_device)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
