/* What a session tells of a device's queues: the bus before a run and for it, and when each request was executed. */
#include "tests/api/small.h"
#include "tools/run/query.h"

#include <stdlib.h>

typedef struct world {
    uir_context *context;
    uir_model *model;
    uir_session *session;
    uir_value *input;
} world;

static void open_world(world *w, const char *device, const uir_session_options *options, const int64_t *trips) {
    blob bytes = trips ? loop_model("n", trips) : small_model();
    const int64_t shape[] = {2, 3};
    uir_model_options loading = {.struct_size = sizeof loading, .device = device, .no_cache = true};
    assert_int_equal(uir_context_create(NULL, &w->context), UIR_STATUS_OK);
    assert_int_equal(uir_model_load_memory(w->context, bytes.data, bytes.length, NULL, &loading, &w->model),
                     UIR_STATUS_OK);
    blob_free(&bytes);
    assert_int_equal(uir_session_create(w->model, options, &w->session), UIR_STATUS_OK);
    assert_int_equal(uir_value_create_tensor(w->context, UIR_DTYPE_F32, trips ? 1 : 2, shape, &w->input),
                     UIR_STATUS_OK);
    assert_int_equal(uir_session_set_input(w->session, 0, w->input), UIR_STATUS_OK);
}

static void close_world(world *w) {
    uir_session_destroy(w->session);
    uir_value_destroy(w->input);
    uir_model_destroy(w->model);
    uir_context_destroy(w->context);
}

static uir_bus_cost get_bus(world *w, bool of_run) {
    uir_bus_cost cost = {.struct_size = sizeof cost};
    assert_int_equal(uir_session_get_bus_cost(w->session, of_run, &cost), UIR_STATUS_OK);
    return cost;
}

/* The second run: the first one's memory is allocated, and the weights are there. */
static uir_run_statistics run_steady(world *w) {
    assert_int_equal(uir_session_run(w->session), UIR_STATUS_OK);
    assert_int_equal(uir_session_run(w->session), UIR_STATUS_OK);
    return query_statistics(w->session);
}

static void the_bus_is_known_before_a_run(void **state) {
    (void)state;
    uir_cost cost = {.struct_size = sizeof cost};
    uir_bus_cost before, of_run;
    world w;
    open_world(&w, "null", NULL, NULL);
    before = (uir_bus_cost){.struct_size = sizeof before};
    assert_int_equal(uir_session_get_bus_cost(w.session, false, &before), UIR_STATUS_INVALID_ARGUMENT);
    assert_true(has_message(w.context, "no run was planned"));
    assert_int_equal(uir_session_get_bus_cost(w.session, true, &before), UIR_STATUS_INVALID_ARGUMENT);
    assert_true(has_message(w.context, "no run was made"));
    assert_int_equal(uir_session_get_cost(w.session, &(uir_dim_binding){"batch", 2}, 1, &cost), UIR_STATUS_OK);
    before = get_bus(&w, false);
    uir_run_statistics counted = run_steady(&w);
    of_run = get_bus(&w, true);
    assert_memory_equal(&before, &of_run, sizeof before);
    assert_true(before.waits == counted.waits && before.bytes_to_device == counted.bytes_to_device &&
                before.bytes_from_device == counted.bytes_from_device);
    assert_true(before.waits == 1 && before.bytes_to_device == 24 && before.bytes_from_device == 48);
    uir_run_statistics again = run_steady(&w); /* counting changes nothing */
    assert_true(again.waits == counted.waits && again.bytes_to_device == counted.bytes_to_device);
    close_world(&w);
}

static void loops_of_unknown_turns_count_one(void **state) {
    (void)state;
    const int64_t trips = 4;
    uir_loop_cost loop = {.struct_size = sizeof loop};
    uir_cost cost = {.struct_size = sizeof cost};
    world w;
    open_world(&w, "null", NULL, &trips);
    assert_int_equal(uir_session_get_cost(w.session, &(uir_dim_binding){"n", 2}, 1, &cost), UIR_STATUS_OK);
    uir_bus_cost before = get_bus(&w, false);
    uir_run_statistics counted = run_steady(&w);
    assert_true(!before.unknown_turns && before.waits == counted.waits);
    assert_int_equal(uir_session_get_loop_cost(w.session, 0, &loop), UIR_STATUS_NOT_FOUND);
    close_world(&w);
}

static void the_host_has_no_bus(void **state) {
    (void)state;
    static const char *const devices[] = {"vm", "interpreter"};
    for (size_t i = 0; i < 2; i++) {
        uir_bus_cost cost = {.struct_size = sizeof cost};
        world w;
        open_world(&w, devices[i], NULL, NULL);
        assert_int_equal(uir_session_run(w.session), UIR_STATUS_OK);
        assert_int_equal(uir_session_get_bus_cost(w.session, true, &cost), i ? UIR_STATUS_UNSUPPORTED : UIR_STATUS_OK);
        assert_true(!cost.waits && !cost.bytes_to_device && !cost.bytes_from_device);
        close_world(&w);
    }
}

static size_t count_slices(world *w, const char *queue) {
    uir_trace_slice slice;
    size_t count = 0;
    for (size_t i = 0; query_slice(w->session, i, &slice); i++) {
        count += !strcmp(slice.queue, queue);
        assert_true(slice.ms >= 0 && slice.begin_ms >= 0);
        if (*slice.queue) assert_true(slice.is_modelled && (slice.bytes > 0) == !*slice.kernel);
    }
    return count;
}

static void queues_have_times(void **state) {
    (void)state;
    static const char *const devices[] = {"null", "vm"};
    for (uint32_t i = 0; i < 3; i++) {
        const uir_session_options options = {.struct_size = sizeof options, .queue_times = i == 0, .trace = i == 1};
        for (uint32_t d = 0; d < 2; d++) {
            world w;
            open_world(&w, devices[d], &options, NULL);
            uir_run_statistics counted = run_steady(&w);
            bool has_queues = !d && i < 2;
            assert_int_equal(count_slices(&w, "compute"), has_queues ? counted.device_calls : 0);
            assert_int_equal(count_slices(&w, "upload"), has_queues);
            assert_int_equal(count_slices(&w, "download"), has_queues ? 2 : 0);
            assert_int_equal(count_slices(&w, "") > 0, i == 1);
            if (has_queues) assert_int_equal(counted.waits, 1); /* none for the sake of the times */
            close_world(&w);
        }
    }
}

/* More requests than a runtime remembers at once. */
static void long_runs_have_all_times(void **state) {
    (void)state;
    const int64_t trips = 2500;
    const uir_session_options options = {.struct_size = sizeof options, .queue_times = true};
    world w;
    open_world(&w, "null", &options, &trips);
    uir_run_statistics counted = run_steady(&w);
    assert_true(counted.device_calls >= 2500 && count_slices(&w, "upload") == 1 && count_slices(&w, "download") == 1);
    uir_trace_slice slice;
    size_t launches = 0;
    for (size_t i = 0; query_slice(w.session, i, &slice); i++) launches += *slice.queue && *slice.kernel;
    assert_int_equal(launches, counted.device_calls);
    close_world(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bus_is_known_before_a_run), cmocka_unit_test(loops_of_unknown_turns_count_one),
        cmocka_unit_test(the_host_has_no_bus),           cmocka_unit_test(queues_have_times),
        cmocka_unit_test(long_runs_have_all_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
