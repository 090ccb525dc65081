/* Runs in flight: submitted, polled, waited for and cancelled, on every device; what is refused meanwhile. */
#include "tests/api/counted.h"
#include "tests/api/device.h"
#include "uir/tools.h"

#include <time.h>

static const char *const devices[] = {"vm", "null:3", "interpreter"};
enum { DEVICES = sizeof devices / sizeof *devices };

static const int64_t two[] = {2, 3};
static const float y[] = {0, 2, 4, 0, 5, 0};
static float x[] = {1, 2, 3, -4, 5, -6};

typedef struct world {
    uir_context *context;
    uir_model *model;
    uir_session *session;
} world;

static world open_world(uir_context *context, blob bytes, const char *device) {
    world w = {.context = context};
    w.model = load_on(context, bytes, NULL, device);
    w.session = new_session(context, w.model, NULL);
    return w;
}

static void close_world(world *w) {
    uir_session_destroy(w->session);
    uir_model_destroy(w->model);
}

static void bind_x(world *w) {
    expect_ok(w->context, uir_session_bind_input(w->session, 0, 2, two, NULL, x, sizeof x), "x");
}

static void rest(void) {
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void a_submitted_run_is_a_run(void **state) {
    for (int d = 0; d < DEVICES; d++) {
        world w = open_world(*state, small_model(), devices[d]);
        uir_value *output;
        bind_x(&w);
        for (int turn = 0; turn < 3; turn++) {
            assert_true(uir_session_poll(w.session));
            expect_ok(*state, uir_session_submit(w.session), "a submission");
            while (turn == 1 && !uir_session_poll(w.session)) rest();
            expect_ok(*state, uir_session_wait(w.session), "the wait");
            assert_true(uir_session_poll(w.session));
            assert_int_equal(uir_session_get_output(w.session, 0, &output), UIR_STATUS_OK);
            assert_true(has_floats(output, y, 6));
            expect_ok(*state, uir_session_run(w.session), "a run after it");
        }
        close_world(&w);
    }
}

static void expect_status(uir_context *context, uir_status status, uir_status expected) {
    if (status != expected) expect_ok(context, status, "another status");
    assert_int_equal(status, expected);
}

static void expect_refusal(uir_context *context, uir_status status, const char *text) {
    assert_int_equal(status, UIR_STATUS_INVALID_ARGUMENT);
    assert_true(has_message(context, text));
    uir_context_clear_messages(context);
}

/* Until it is waited for, whether it has ended or not. */
static void a_session_in_flight_refuses_the_rest(void **state) {
    static const char in_flight[] = "a run of the session is in flight";
    for (int d = 0; d < DEVICES; d++) {
        world w = open_world(*state, small_model(), devices[d]);
        uir_value *value, *output = NULL;
        uir_run_statistics statistics = {.struct_size = sizeof statistics};
        int64_t dims[2];
        const uir_input_shape shape = {2, two};
        expect_refusal(*state, uir_session_wait(w.session), "none of the session is in flight");
        assert_int_equal(uir_value_create_tensor(*state, UIR_DTYPE_F32, 2, two, &value), UIR_STATUS_OK);
        bind_x(&w);
        expect_ok(*state, uir_session_submit(w.session), "a submission");
        for (int ended = 0; ended < 2; ended++) {
            expect_refusal(*state, uir_session_submit(w.session), in_flight);
            expect_refusal(*state, uir_session_run(w.session), in_flight);
            expect_refusal(*state, uir_session_set_input(w.session, 0, value), in_flight);
            expect_refusal(*state, uir_session_bind_input(w.session, 0, 2, two, NULL, x, sizeof x), in_flight);
            expect_refusal(*state, uir_session_bind_input_value(w.session, 0, 2, two, NULL, value), in_flight);
            expect_refusal(*state, uir_session_bind_output(w.session, 0, NULL, 0), in_flight);
            expect_refusal(*state, uir_session_bind_output_strided(w.session, 0, 2, two, x, sizeof x), in_flight);
            expect_refusal(*state, uir_session_bind_output_value(w.session, 0, 0, NULL, value), in_flight);
            expect_refusal(*state, uir_session_get_output(w.session, 0, &output), in_flight);
            expect_refusal(*state, uir_session_get_statistics(w.session, &statistics), in_flight);
            expect_refusal(*state, uir_session_get_output_shape(w.session, &shape, 1, 0, dims), in_flight);
            assert_null(output);
            while (!uir_session_poll(w.session)) rest();
        }
        expect_ok(*state, uir_session_wait(w.session), "the wait");
        expect_refusal(*state, uir_session_wait(w.session), "call uir_session_submit first");
        assert_int_equal(uir_session_get_output(w.session, 0, &output), UIR_STATUS_OK);
        assert_true(has_floats(output, y, 6));
        uir_value_destroy(value);
        close_world(&w);
    }
}

/* Messages come with the wait, from its thread. */
static void what_fails_is_told_by_the_wait(void **state) {
    for (int d = 0; d < DEVICES; d++) {
        world w = open_world(*state, small_model(), devices[d]);
        expect_ok(*state, uir_session_submit(w.session), "a submission");
        while (!uir_session_poll(w.session)) rest();
        assert_int_equal(uir_context_message_count(*state), 0);
        expect_refusal(*state, uir_session_wait(w.session), "input 'x' is not bound");
        bind_x(&w);
        expect_ok(*state, uir_session_submit(w.session), "a submission");
        expect_ok(*state, uir_session_wait(w.session), "the next run");
        close_world(&w);
    }
}

static void a_run_in_flight_is_cancelled(void **state) {
    for (int d = 0; d < DEVICES; d++) {
        world w = open_world(*state, loop_model("2,3", NULL), devices[d]),
              small = open_world(*state, small_model(), devices[d]);
        bind_x(&w);
        for (int turn = 0; turn < 4; turn++) {
            expect_ok(*state, uir_session_submit(w.session), "a submission");
            if (turn % 2) rest();
            assert_false(uir_session_poll(w.session));
            uir_session_cancel(w.session);
            expect_status(*state, uir_session_wait(w.session), UIR_STATUS_CANCELLED);
        }
        uir_context_clear_messages(*state);
        /* A request that comes when the run has ended is that run's, and not the next one's. */
        bind_x(&small);
        expect_ok(*state, uir_session_submit(small.session), "a submission");
        while (!uir_session_poll(small.session)) rest();
        uir_session_cancel(small.session);
        expect_ok(*state, uir_session_wait(small.session), "a run that had ended");
        expect_ok(*state, uir_session_run(small.session), "the next run");
        close_world(&w);
        close_world(&small);
    }
}

static void destroying_waits_for_the_run(void **state) {
    for (int d = 0; d < DEVICES; d++) {
        static const int64_t trips = 20000;
        world w = open_world(*state, loop_model("2,3", &trips), devices[d]);
        bind_x(&w);
        expect_ok(*state, uir_session_submit(w.session), "a submission");
        close_world(&w);
        w = open_world(*state, loop_model("2,3", NULL), devices[d]);
        bind_x(&w);
        expect_ok(*state, uir_session_submit(w.session), "a submission");
        uir_session_cancel(w.session);
        close_world(&w);
        uir_context_clear_messages(*state);
    }
}

/* A value in a device's memory may be destroyed while a run uses it: the memory stays. */
static void memory_in_flight_stays(void **state) {
    static const int64_t trips = 2000;
    uir_context *c = *state;
    uir_device *device = open_device(c, "null:6");
    uir_model *model = load_on(c, loop_model("2,3", &trips), device, NULL);
    uir_session *session = new_session(c, model, NULL);
    uir_value *value = put_on(c, device, 2, two, (float[6]){0}), *result = put_on(c, device, 2, two, x), *output;
    expect_ok(c, uir_session_set_input(session, 0, value), "x");
    expect_ok(c, uir_session_bind_output_value(session, 0, 0, NULL, result), "y");
    expect_ok(c, uir_session_submit(session), "a submission");
    uir_value_destroy(value);
    uir_value_destroy(result);
    uir_device_close(device);
    expect_ok(c, uir_session_wait(session), "the wait");
    assert_int_equal(uir_session_get_output(session, 0, &output), UIR_STATUS_OK);
    assert_true(has_floats(output, (float[6]){0}, 6));
    uir_session_destroy(session);
    uir_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_submitted_run_is_a_run, begin, end),
        cmocka_unit_test_setup_teardown(a_session_in_flight_refuses_the_rest, begin, end),
        cmocka_unit_test_setup_teardown(what_fails_is_told_by_the_wait, begin, end),
        cmocka_unit_test_setup_teardown(a_run_in_flight_is_cancelled, begin, end),
        cmocka_unit_test_setup_teardown(destroying_waits_for_the_run, begin, end),
        cmocka_unit_test_setup_teardown(memory_in_flight_stays, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
