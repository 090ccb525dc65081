/* Memory of the caller's: strides, capacity, a cache that grows where it lies; threads of the caller's; a run's cost.
 */
#include "tests/backends/cpu/here.h"
#include "tests/api/small.h"
#include "tools/run/query.h"

enum { HEADS = CACHE_HEADS, CHANNELS = CACHE_CHANNELS, CAPACITY = 10, GRAPH_SIZE = HEADS * CAPACITY * CHANNELS };

/* A past that grows twice, by new and by other; one of the results is given twice, and the past given back if asked. */
static blob several_model(bool kept) {
    blob graph = blob_new();
    put_text(&graph, GRAPH_NAME, "several");
    put_message(&graph, GRAPH_INPUT, make_value("past", UIR_DTYPE_F32, "2,p,4"));
    put_message(&graph, GRAPH_INPUT, make_value("new", UIR_DTYPE_F32, "2,n,4"));
    put_message(&graph, GRAPH_INPUT, make_value("other", UIR_DTYPE_F32, "2,m,4"));
    put_message(&graph, GRAPH_OUTPUT, make_value("present", UIR_DTYPE_F32, "2,t,4"));
    put_message(&graph, GRAPH_OUTPUT, make_value("again", UIR_DTYPE_F32, "2,t,4"));
    put_message(&graph, GRAPH_OUTPUT, make_value("longer", UIR_DTYPE_F32, "2,l,4"));
    if (kept) put_message(&graph, GRAPH_OUTPUT, make_value("kept", UIR_DTYPE_F32, "2,p,4"));
    if (kept) put_message(&graph, GRAPH_NODE, make_node("Identity", "keep", "past", "kept"));
    put_message(&graph, GRAPH_NODE, make_append("once", "past,new", "present"));
    put_message(&graph, GRAPH_NODE, make_node("Identity", "repeat", "present", "again"));
    put_message(&graph, GRAPH_NODE, make_append("other", "past,other", "longer"));
    return make_model(graph);
}

typedef struct world {
    uir_context *context;
    uir_model *model;
    uir_session *session;
    float past[GRAPH_SIZE], fresh[GRAPH_SIZE];
    uint32_t tasks;
} world;

static void parallel(void *user, uint32_t count, void (*task)(void *context, uint32_t i), void *context) {
    ((world *)user)->tasks += count;
    for (uint32_t i = count; i-- > 0;) task(context, i);
}

static void open_session_of(world *w, blob bytes, const char *device, bool own_threads) {
    uir_model_options options = {.struct_size = sizeof options, .device = device, .wait = true, .no_cache = true};
    uir_session_options session = {.struct_size = sizeof session, .threads = 2};
    if (own_threads) {
        session.parallel = parallel;
        session.parallel_user = w;
    }
    *w = (world){.context = NULL};
    assert_int_equal(uir_context_create(NULL, &w->context), UIR_STATUS_OK);
    uir_status status = uir_model_load_memory(w->context, bytes.data, bytes.length, NULL, &options, &w->model);
    for (size_t i = 0; status != UIR_STATUS_OK && i < uir_context_message_count(w->context); i++)
        print_message("%s\n", uir_context_get_message_text(w->context, i));
    blob_free(&bytes);
    assert_int_equal(status, UIR_STATUS_OK);
    assert_int_equal(uir_session_create(w->model, &session, &w->session), UIR_STATUS_OK);
    for (int i = 0; i < GRAPH_SIZE; i++) w->past[i] = (float)i, w->fresh[i] = (float)(1000 + i);
}

static void open_session(world *w, const char *device, bool own_threads) {
    open_session_of(w, cache_model(), device, own_threads);
}

static void close_session(world *w) {
    uir_session_destroy(w->session);
    uir_model_destroy(w->model);
    uir_context_destroy(w->context);
}

static const int64_t room[] = {CAPACITY * CHANNELS, CHANNELS, 1};

static void bind_past(world *w, int64_t rows, const int64_t *strides) {
    assert_int_equal(
        uir_session_bind_input(w->session, 0, 3, (int64_t[]){HEADS, rows, CHANNELS}, strides, w->past, sizeof w->past),
        UIR_STATUS_OK);
}

static void bind_new(world *w, int64_t rows) {
    assert_int_equal(
        uir_session_bind_input(w->session, 1, 3, (int64_t[]){HEADS, rows, CHANNELS}, NULL, w->fresh, sizeof w->fresh),
        UIR_STATUS_OK);
}

/* What row `row` of head `head` is to be after `past` rows of the cache as it was filled. */
static float wanted(int64_t head, int64_t row, int64_t channel, int64_t past, int64_t rows) {
    if (row < past) return (float)((head * CAPACITY + row) * CHANNELS + channel);
    return (float)(1000 + (head * rows + row - past) * CHANNELS + channel);
}

static void check_present(world *w, const float *data, const int64_t *strides, int64_t past, int64_t rows) {
    uir_value *present, *total;
    assert_int_equal(uir_session_get_output(w->session, 0, &present), UIR_STATUS_OK);
    assert_int_equal(uir_session_get_output(w->session, 1, &total), UIR_STATUS_OK);
    assert_int_equal(uir_value_get_shape(present)[1], past + rows);
    const float *packed = uir_value_get_data(present), *sums = uir_value_get_data(total);
    for (int64_t h = 0; h < HEADS; h++) {
        for (int64_t c = 0; c < CHANNELS; c++) {
            float sum = 0;
            for (int64_t t = 0; t < past + rows; t++) {
                float value = wanted(h, t, c, past, rows);
                sum += value;
                assert_true(packed[(h * (past + rows) + t) * CHANNELS + c] == value);
                if (data) assert_true(data[h * strides[0] + t * strides[1] + c * strides[2]] == value);
            }
            assert_true(sums[h * CHANNELS + c] == sum);
        }
    }
}

static void run(world *w) {
    uir_status status = uir_session_run(w->session);
    for (size_t i = 0; status != UIR_STATUS_OK && i < uir_context_message_count(w->context); i++)
        print_message("%s\n", uir_context_get_message_text(w->context, i));
    assert_int_equal(status, UIR_STATUS_OK);
}

/* Rows 0 to 7 of the past, 0 to 2 new ones: in place, and the bytes of the past are not moved. */
static void grow(world *w, bool counted) {
    for (int64_t past = 0; past <= 7; past++) {
        for (int64_t rows = 0; rows <= 2; rows++) {
            const int64_t strides[] = {room[0], past == 1 ? 3 : room[1], 1}; /* of a single row the stride is any */
            for (int i = 0; i < GRAPH_SIZE; i++) w->past[i] = (float)i;
            bind_past(w, past, strides);
            bind_new(w, rows);
            assert_int_equal(uir_session_bind_output(w->session, 0, NULL, 0), UIR_STATUS_OK);
            run(w);
            check_present(w, NULL, NULL, past, rows);
            uint64_t all = query_statistics(w->session).dram_bytes;
            assert_int_equal(uir_session_bind_output_strided(w->session, 0, 3, room, w->past, sizeof w->past),
                             UIR_STATUS_OK);
            run(w);
            check_present(w, w->past, room, past, rows);
            uint64_t saved = all - query_statistics(w->session).dram_bytes;
            if (counted) assert_int_equal(saved, 2 * HEADS * CHANNELS * sizeof(float) * (uint64_t)past);
        }
    }
}

static void a_cache_grows_in_place(void **state) {
    static const char *const devices[] = {"vm", "cpu", "interpreter"};
    (void)state;
    for (int d = 0; d < 3; d++) {
        world w;
        open_session(&w, devices[d], false);
        grow(&w, d < 2);
        close_session(&w);
    }
}

/* Strides that no kernel knows: channels outermost, rows apart; memory that overlaps in other ways than a cache's. */
static void any_strides_will_do(void **state) {
    static const char *const devices[] = {"vm", "interpreter"};
    (void)state;
    for (int d = 0; d < 2; d++) {
        world w;
        float result[400];
        const int64_t turned[] = {1, 2, 40}, apart[] = {100, 10, 2};
        open_session(&w, devices[d], false);
        for (int64_t h = 0; h < HEADS; h++)
            for (int64_t t = 0; t < 3; t++)
                for (int64_t c = 0; c < CHANNELS; c++) w.past[h + 2 * t + 40 * c % GRAPH_SIZE] = 0;
        float past[3 * 40 + 20];
        for (int64_t h = 0; h < HEADS; h++)
            for (int64_t t = 0; t < 3; t++)
                for (int64_t c = 0; c < CHANNELS; c++) past[h + 2 * t + 40 * c] = wanted(h, t, c, 3, 2);
        assert_int_equal(
            uir_session_bind_input(w.session, 0, 3, (int64_t[]){HEADS, 3, CHANNELS}, turned, past, sizeof past),
            UIR_STATUS_OK);
        bind_new(&w, 2);
        assert_int_equal(uir_session_bind_output_strided(w.session, 0, 3, apart, result, sizeof result), UIR_STATUS_OK);
        run(&w);
        check_present(&w, result, apart, 3, 2);
        /* Packed over the input's own memory, and one element further on. */
        for (int shift = 0; shift < 2; shift++) {
            for (int i = 0; i < GRAPH_SIZE; i++) w.past[i] = (float)i;
            bind_past(&w, 3, room);
            assert_int_equal(uir_session_bind_output(w.session, 0, w.past + shift, sizeof w.past - sizeof(float)),
                             UIR_STATUS_OK);
            run(&w);
            check_present(&w, w.past + shift, (int64_t[]){5 * CHANNELS, CHANNELS, 1}, 3, 2);
        }
        close_session(&w);
    }
}

/* Rows of one head are the next rows of the other: slack would be less than none. */
static void stretches_may_overlap(void **state) {
    static const char *const devices[] = {"vm", "interpreter"};
    (void)state;
    for (int d = 0; d < 2; d++) {
        world w;
        uir_value *present;
        open_session(&w, devices[d], false);
        bind_past(&w, 3, (int64_t[]){CHANNELS, CHANNELS, 1});
        bind_new(&w, 1);
        run(&w);
        assert_int_equal(uir_session_get_output(w.session, 0, &present), UIR_STATUS_OK);
        const float *data = uir_value_get_data(present);
        for (int h = 0; h < HEADS; h++)
            for (int i = 0; i < 3 * CHANNELS; i++) assert_true(data[h * 4 * CHANNELS + i] == w.past[h * CHANNELS + i]);
        close_session(&w);
    }
}

/* Whichever result lies in the past's memory. What a copy is made of is packed: it does not grow in place. */
static void a_past_may_have_several_uses(void **state) {
    static const char *const devices[] = {"vm", "cpu", "interpreter"};
    static const int64_t past = 3, rows[] = {2, 2, 4, 0}; /* what each output has more */
    (void)state;
    for (int d = 0; d < 6; d++) {
        world w;
        bool kept = d >= 3;
        uint64_t bytes[4];
        uint32_t count = kept ? 4 : 3;
        open_session_of(&w, several_model(kept), devices[d % 3], false);
        for (uint32_t placed = 0; placed < count; placed++) {
            for (int i = 0; i < GRAPH_SIZE; i++) w.past[i] = (float)i;
            bind_past(&w, past, room);
            bind_new(&w, rows[0]);
            assert_int_equal(uir_session_bind_input(w.session, 2, 3, (int64_t[]){HEADS, rows[2], CHANNELS}, NULL,
                                                    w.fresh, sizeof w.fresh),
                             UIR_STATUS_OK);
            for (uint32_t k = 0; k < count; k++)
                assert_int_equal(uir_session_bind_output_strided(w.session, k, 3, room, k == placed ? w.past : NULL,
                                                                 k == placed ? sizeof w.past : 0),
                                 UIR_STATUS_OK);
            run(&w);
            bytes[placed] = query_statistics(w.session).dram_bytes;
            for (uint32_t k = 0; k < count; k++) {
                uir_value *value;
                int64_t all = past + rows[k];
                assert_int_equal(uir_session_get_output(w.session, k, &value), UIR_STATUS_OK);
                assert_int_equal(uir_value_get_shape(value)[1], all);
                const float *data = uir_value_get_data(value);
                for (int64_t h = 0; h < HEADS; h++)
                    for (int64_t t = 0; t < all; t++)
                        for (int64_t c = 0; c < CHANNELS; c++) {
                            float number = wanted(h, t, c, past, rows[k]);
                            assert_true(data[(h * all + t) * CHANNELS + c] == number);
                            if (k == placed) assert_true(w.past[h * room[0] + t * room[1] + c] == number);
                        }
            }
        }
        if (d % 3 < 2) assert_int_equal(bytes[0] - bytes[2], kept ? 0 : 2 * HEADS * CHANNELS * sizeof(float) * past);
        close_session(&w);
    }
}

static void buffers_that_do_not_fit_are_refused(void **state) {
    world w;
    const int64_t shape[] = {HEADS, 3, CHANNELS}, backwards[] = {12, -4, 1};
    (void)state;
    open_session(&w, "vm", false);
    /* The last stretch's slack need not be there. */
    size_t least = (CAPACITY * CHANNELS + 3 * CHANNELS) * sizeof(float);
    assert_int_equal(uir_session_bind_input(w.session, 0, 3, shape, room, w.past, least - 1),
                     UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_session_bind_input(w.session, 0, 3, shape, backwards, w.past, sizeof w.past),
                     UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_session_bind_input(w.session, 0, 2, shape, NULL, w.past, sizeof w.past), UIR_STATUS_BAD_DATA);
    assert_int_equal(uir_session_bind_input(w.session, 7, 3, shape, NULL, w.past, sizeof w.past),
                     UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_session_bind_input(w.session, 0, 3, shape, NULL, NULL, sizeof w.past),
                     UIR_STATUS_INVALID_ARGUMENT);
    static const int64_t many[40] = {0};
    assert_int_equal(uir_session_bind_input(w.session, 0, 40, many, many, w.past, sizeof w.past),
                     UIR_STATUS_UNSUPPORTED);
    assert_int_equal(uir_session_bind_input(w.session, 0, 3, shape, room, w.past, least), UIR_STATUS_OK);
    bind_new(&w, 1);
    run(&w);
    check_present(&w, NULL, NULL, 3, 1);
    least += CHANNELS * sizeof(float);
    assert_int_equal(uir_session_bind_output_strided(w.session, 0, 3, room, w.past, least - 1), UIR_STATUS_OK);
    assert_int_equal(uir_session_run(w.session), UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_session_bind_output_strided(w.session, 0, 3, room, w.past, least), UIR_STATUS_OK);
    run(&w);
    check_present(&w, w.past, room, 3, 1);
    assert_int_equal(uir_session_bind_output_strided(w.session, 0, 2, room, w.past, least),
                     UIR_STATUS_INVALID_ARGUMENT);
    close_session(&w);
}

static void the_callers_threads_run_it(void **state) {
    world w;
    (void)state;
    open_session(&w, "vm", true);
    grow(&w, true);
    close_session(&w);
}

static void a_runs_cost_is_told_without_it(void **state) {
    world w;
    uir_cost small = {.struct_size = sizeof small}, large = {.struct_size = sizeof large};
    uir_dim_binding dims[] = {{"p", 100}, {"n", 1}}, wrong = {"q", 1};
    (void)state;
    open_session(&w, "vm", false);
    assert_int_equal(uir_session_get_cost(w.session, dims, 2, &small), UIR_STATUS_OK);
    dims[0].value = 1000;
    assert_int_equal(uir_session_get_cost(w.session, dims, 2, &large), UIR_STATUS_OK);
    assert_int_equal(small.launches, 2);
    uint64_t row = HEADS * CHANNELS * sizeof(float);
    assert_int_equal(small.dram_bytes, (3 * 101 + 1) * row); /* past and new to present, present to the sums */
    assert_int_equal(large.dram_bytes, (3 * 1001 + 1) * row);
    uir_launch_cost launch;
    uint64_t bytes = 0, flops = 0, count = 0;
    while (query_launch(w.session, count, &launch)) {
        bytes += launch.dram_bytes;
        flops += launch.flops;
        count++;
        assert_true(*launch.kernel && *launch.op && launch.tensor_bytes > 0);
    }
    assert_true(count == large.launches && bytes == large.dram_bytes && flops == large.flops);
    uir_roofline limits = {.struct_size = sizeof limits, .flops_per_second = 2e9, .bytes_per_second = 1e9},
                 unknown = {.struct_size = sizeof unknown};
    assert_true(uir_roofline_get_ms(&limits, 3000000, 2000000) == 3 && uir_roofline_get_ms(&limits, 0, 8000000) == 4);
    assert_true(uir_roofline_get_ms(&unknown, 1, 1) == 0);
    assert_int_equal(uir_session_measure_roofline(w.session, &limits), UIR_STATUS_OK);
    assert_true(limits.threads > 0 && limits.flops_per_second > 1e6 && limits.bytes_per_second > 1e6);
    assert_true(large.flops > small.flops && small.flops >= 100 * HEADS * CHANNELS);
    assert_int_equal(uir_session_get_cost(w.session, &wrong, 1, &small), UIR_STATUS_NOT_FOUND);
    bind_past(&w, 3, room);
    bind_new(&w, 1);
    run(&w);
    check_present(&w, NULL, NULL, 3, 1);
    close_session(&w);
    open_session(&w, "interpreter", false);
    assert_int_equal(uir_session_get_cost(w.session, dims, 2, &small), UIR_STATUS_UNSUPPORTED);
    close_session(&w);
}

int main(void) {
    here_keep_what_runs();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cache_grows_in_place),
        cmocka_unit_test(any_strides_will_do),
        cmocka_unit_test(stretches_may_overlap),
        cmocka_unit_test(a_past_may_have_several_uses),
        cmocka_unit_test(buffers_that_do_not_fit_are_refused),
        cmocka_unit_test(the_callers_threads_run_it),
        cmocka_unit_test(a_runs_cost_is_told_without_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
