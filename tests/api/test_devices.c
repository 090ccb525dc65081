/* Devices with memory of their own, by the null device: opened, shared by models, their values as inputs and outputs.
 */
#include "tests/api/counted.h"
#include "tests/api/device.h"
#include "uir/tools.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

static const int64_t two[] = {2, 3}, four[] = {4, 3};
static const float x[] = {1, 2, 3, -4, 5, -6}, y[] = {0, 2, 4, 0, 5, 0}, z[] = {-1, -2, -3, 4, -5, 6};

/* ---- devices ---- */
static void devices_are_counted_opened_and_described(void **state) {
    const uir_device_options second = {.struct_size = sizeof second, .index = 1};
    uir_context *c = *state;
    uir_device *device;
    uir_device_info info;
    uint32_t count = 7;
    assert_int_equal(uir_device_count(c, "null", NULL, &count), UIR_STATUS_OK);
    assert_int_equal(count, 1);
    expect_message(c, uir_device_count(c, "nul", NULL, &count), UIR_STATUS_INVALID_ARGUMENT, "device 'nul' is unknown");
    expect_message(c, uir_device_open(c, NULL, NULL, &device), UIR_STATUS_INVALID_ARGUMENT, "'NULL' is unknown");
    expect_message(c, uir_device_open(c, "nul", NULL, &device), UIR_STATUS_INVALID_ARGUMENT, "which has cpu, vm, null");
    expect_message(c, uir_device_open(c, "null:x", NULL, &device), UIR_STATUS_INVALID_ARGUMENT, "'x' is not a seed");
    expect_message(c, uir_device_open(c, "null", &second, &device), UIR_STATUS_INVALID_ARGUMENT, "not 1");
    assert_null(device);
    device = open_device(c, "null:7");
    UIR_INIT(&info);
    assert_int_equal(uir_device_get_info(device, &info), UIR_STATUS_OK);
    assert_string_equal(info.name, "null:7");
    assert_string_equal(info.description, "null, seed 7");
    assert_string_equal(info.chip, "full");
    assert_true(info.memory > 0 && info.alignment >= 64 && !(info.alignment & (info.alignment - 1)));
    assert_true(info.queue_count >= 1 && info.is_simulated && !info.shares_memory && !info.is_harmful);
    uir_device_close(device);
    uir_device_close(NULL);
}

/* The device closes with the last that uses it, whichever that is. */
static void keep_open(uir_context *c, const char *name) {
    uir_device *device = open_device(c, name);
    uir_value *value = put_on(c, device, 2, two, x), *output;
    uir_model *model = load_on(c, small_model(), device, NULL);
    assert_ptr_equal(uir_model_get_device(model), device);
    uir_device_close(device);
    uir_session *session = new_session(c, model, NULL);
    assert_int_equal(uir_session_set_input(session, 0, value), UIR_STATUS_OK);
    uir_value_destroy(value); /* the session keeps its memory */
    expect_ok(c, uir_session_run(session), "a run");
    expect_ok(c, uir_session_run(session), "a run");
    assert_int_equal(uir_session_get_output(session, 0, &output), UIR_STATUS_OK);
    assert_true(has_floats(output, y, 6));
    uir_session_destroy(session);
    value = put_on(c, uir_model_get_device(model), 2, two, x); /* the model has it */
    uir_model_destroy(model);
    assert_true(has_floats(value, x, 6));
    uir_value_destroy(value);
}

static void what_uses_a_device_keeps_it_open(void **state) {
    uir_context *c = *state;
    keep_open(c, "null:2");
    keep_open(c, "vm");
    keep_open(c, "cpu");
    uir_model *model = load_on(c, small_model(), NULL, "null");
    assert_non_null(uir_model_get_device(model));
    uir_value *value = put_on(c, uir_model_get_device(model), 2, two, x);
    uir_model_destroy(model);
    assert_true(has_floats(value, x, 6));
    uir_value_destroy(value);
    model = load_on(c, small_model(), NULL, "vm"); /* the host, not opened */
    assert_null(uir_model_get_device(model));
    uir_model_destroy(model);
}

static void models_are_loaded_for_opened_devices(void **state) {
    uir_context *c = *state;
    uir_device *device = open_device(c, "null:5");
    uir_model *first, *second;
    blob bytes = small_model();
    uir_model_options options = {
        .struct_size = sizeof options, .opened = device, .device = "null", .no_cache = true, .wait = true};
    expect_ok(c, uir_model_load_memory(c, bytes.data, bytes.length, NULL, &options, &first), "by the device's name");
    options.device = "null:5";
    expect_ok(c, uir_model_load_memory(c, bytes.data, bytes.length, NULL, &options, &second), "as it was opened");
    uir_model_destroy(second);
    expect_others_refused(c, bytes, device, (const char *const[]){"null:6", "vm"}, 2, "the opened device is null:5");
    blob_free(&bytes);
    uir_model_destroy(first);
    uir_device_close(device);
}

/* ---- values ---- */
static void values_are_in_a_devices_memory(void **state) {
    uir_context *c = *state;
    uir_device *device = open_device(c, "null:3");
    const float zeros[6] = {0};
    float part[2];
    uir_value *value = put_on(c, device, 2, two, NULL), *other;
    uir_comparison comparison = {.struct_size = sizeof comparison};
    assert_true(has_floats(value, zeros, 6));
    assert_int_equal(uir_value_write(value, 0, x, sizeof x), UIR_STATUS_OK);
    assert_int_equal(uir_value_write(value, 4, x, 8), UIR_STATUS_OK);
    assert_int_equal(uir_value_read(value, 8, part, 8), UIR_STATUS_OK);
    assert_true(part[0] == x[1] && part[1] == x[3]);
    assert_int_equal(uir_value_read(value, 24, part, 0), UIR_STATUS_OK);
    expect_message(c, uir_value_read(value, 20, part, 8), UIR_STATUS_INVALID_ARGUMENT, "8 bytes from byte 20 on");
    expect_message(c, uir_value_write(value, UINT64_MAX, x, 8), UIR_STATUS_INVALID_ARGUMENT, "tensor of 24 bytes");
    assert_ptr_equal(uir_value_get_device(value), device);
    assert_non_null(uir_value_get_native(value));
    assert_null(uir_value_get_data(value));
    assert_true(uir_value_get_double(value, 0) == 0);
    assert_int_equal(uir_value_get_byte_size(value), sizeof x);
    assert_int_equal(uir_value_get_shape(value)[1], 3);
    expect_message(c, uir_value_fill_random(value, 1, 0, 1), UIR_STATUS_INVALID_ARGUMENT, "memory of device null:3");
    expect_message(c, uir_value_compare(value, value, NULL, &comparison), UIR_STATUS_INVALID_ARGUMENT, "device null:3");
    expect_message(c, uir_value_save_file(c, value, "never.npy", ""), UIR_STATUS_INVALID_ARGUMENT, "device null:3");
    expect_message(c, uir_value_create_on_device(device, UIR_DTYPE_STRING, 2, two, &other), UIR_STATUS_UNSUPPORTED,
                   "strings");
    expect_message(c, uir_value_create_on_device(device, UIR_DTYPE_F32, 1, (int64_t[]){-1}, &other),
                   UIR_STATUS_INVALID_ARGUMENT, "negative");
    assert_null(other);
    uir_value_destroy(value);
    value = put_on(c, device, 1, (int64_t[]){0}, NULL); /* of no elements */
    assert_int_equal(uir_value_read(value, 0, part, 0), UIR_STATUS_OK);
    uir_value_destroy(value);
    uir_device_close(device);
}

static void bytes_of_host_values_are_copied_too(void **state) {
    uir_context *c = *state;
    uir_value *value;
    assert_int_equal(uir_value_create_tensor(c, UIR_DTYPE_F32, 2, two, &value), UIR_STATUS_OK);
    assert_int_equal(uir_value_write(value, 0, x, sizeof x), UIR_STATUS_OK);
    assert_true(has_floats(value, x, 6));
    assert_null(uir_value_get_device(value));
    assert_null(uir_value_get_native(value));
    uir_value_destroy(value);
    assert_int_equal(uir_value_create_tensor_borrowed(c, UIR_DTYPE_F32, 2, two, x, sizeof x, &value), UIR_STATUS_OK);
    expect_message(c, uir_value_write(value, 0, y, sizeof y), UIR_STATUS_INVALID_ARGUMENT, "borrows its data");
    uir_value_destroy(value);
    assert_int_equal(uir_value_create_tensor(c, UIR_DTYPE_STRING, 0, NULL, &value), UIR_STATUS_OK);
    expect_message(c, uir_value_write(value, 0, y, 1), UIR_STATUS_INVALID_ARGUMENT, "fixed-size elements");
    uir_value_destroy(value);
}

/* By a handle of the vendor's library: here one that another value has. */
static void memory_is_imported(void **state) {
    uir_context *c = *state;
    uir_device *device = open_device(c, "null");
    uir_value *owner = put_on(c, device, 2, four, NULL), *imported, *none;
    void *native = uir_value_get_native(owner);
    expect_ok(c, uir_value_import(device, UIR_DTYPE_F32, 2, two, native, sizeof x, &imported), "importing");
    assert_ptr_equal(uir_value_get_native(imported), native);
    assert_int_equal(uir_value_write(imported, 0, x, sizeof x), UIR_STATUS_OK);
    assert_true(has_floats(owner, x, 6)); /* the same memory */
    expect_message(c, uir_value_import(device, UIR_DTYPE_F32, 2, two, native, 20, &none), UIR_STATUS_INVALID_ARGUMENT,
                   "has 20 bytes, and the tensor requires 24");
    expect_message(c, uir_value_import(device, UIR_DTYPE_F32, 2, two, native, 4096, &none), UIR_STATUS_INVALID_ARGUMENT,
                   "no memory of 4096 bytes");
    expect_message(c, uir_value_import(device, UIR_DTYPE_F32, 2, two, &none, 24, &none), UIR_STATUS_INVALID_ARGUMENT,
                   "no memory of 24 bytes");
    expect_message(c, uir_value_import(device, UIR_DTYPE_F32, 2, two, NULL, 24, &none), UIR_STATUS_INVALID_ARGUMENT,
                   "is NULL");
    assert_null(none);
    uir_value_destroy(imported);
    assert_true(has_floats(owner, x, 6));
    uir_value_destroy(owner);
    uir_device_close(device);
}

/* ---- inputs and outputs ---- */
static uint64_t get_bus_bytes(const uir_session *session) {
    const uir_run_statistics s = query_statistics(session);
    return s.bytes_to_device + s.bytes_from_device;
}

/* The result of one model is the input of another: nothing of it crosses the bus. */
static void values_stay_on_the_device(void **state) {
    uir_context *c = *state;
    for (int seed = 0; seed < 6; seed++) {
        char name[24];
        snprintf(name, sizeof name, "null:%d", seed);
        uir_device *device = open_device(c, name);
        uir_model *model = load_on(c, small_model(), device, NULL), *next = load_on(c, small_model(), device, NULL);
        uir_session *a = new_session(c, model, NULL), *b = new_session(c, next, NULL);
        uir_value *in = put_on(c, device, 2, two, x), *room = put_on(c, device, 2, four, NULL),
                  *negative = put_on(c, device, 2, two, NULL), *result, *last;
        assert_int_equal(uir_session_set_input(a, 0, in), UIR_STATUS_OK);
        expect_ok(c, uir_session_bind_output_value(a, 0, 0, NULL, room), "a larger value");
        expect_ok(c, uir_session_bind_output_value(a, 1, 0, NULL, negative), "a value");
        expect_ok(c, uir_session_run(a), "the first model");
        assert_int_equal(get_bus_bytes(a), 0);
        assert_int_equal(uir_session_get_output(a, 0, &result), UIR_STATUS_OK);
        assert_ptr_equal(uir_value_get_device(result), device);
        assert_int_equal(uir_value_get_shape(result)[0], 2);
        assert_true(has_floats(result, y, 6) && has_floats(room, y, 6) && has_floats(negative, z, 6));
        assert_int_equal(uir_session_set_input(b, 0, result), UIR_STATUS_OK);
        expect_ok(c, uir_session_run(b), "the second model");
        assert_int_equal(get_bus_bytes(b), 2 * sizeof y); /* its outputs, which the host has */
        assert_int_equal(uir_session_get_output(b, 1, &last), UIR_STATUS_OK);
        assert_null(uir_value_get_device(last));
        for (int i = 0; i < 6; i++) assert_true(uir_value_get_double(last, (uint64_t)i) == -y[i]);
        /* In place: the output is where the input is. */
        expect_ok(c, uir_session_bind_output_value(a, 1, 0, NULL, in), "in place");
        expect_message(c, uir_session_get_output(a, 1, &last), UIR_STATUS_INVALID_ARGUMENT, "after the last run");
        expect_ok(c, uir_session_run(a), "in place");
        assert_true(has_floats(in, z, 6));
        uir_session_destroy(a), uir_session_destroy(b);
        uir_model_destroy(model), uir_model_destroy(next);
        uir_value_destroy(in), uir_value_destroy(room), uir_value_destroy(negative);
        uir_device_close(device);
    }
}

enum { HEADS = CACHE_HEADS, CHANNELS = CACHE_CHANNELS, CAPACITY = 10 };
static const int64_t room[] = {CAPACITY * CHANNELS, CHANNELS, 1}, whole[] = {HEADS, CAPACITY, CHANNELS};

/* Row `row` of a head: the host's copy of the cache is its own witness. */
static float cache_row(int64_t head, int64_t row, int64_t channel) {
    return (float)(100 * head + 10 * row + channel);
}

static void check_cache(const uir_value *cache, uir_value *present, uir_value *total, int64_t rows) {
    float data[HEADS * CAPACITY * CHANNELS];
    const float *packed = uir_value_get_data(present), *sums = uir_value_get_data(total);
    assert_int_equal(uir_value_read(cache, 0, data, sizeof data), UIR_STATUS_OK);
    assert_int_equal(uir_value_get_shape(present)[1], rows);
    for (int64_t h = 0; h < HEADS; h++)
        for (int64_t c = 0; c < CHANNELS; c++) {
            float sum = 0;
            for (int64_t t = 0; t < CAPACITY; t++) {
                float expected = t < rows ? cache_row(h, t, c) : 0;
                sum += expected;
                assert_true(data[h * room[0] + t * room[1] + c] == expected);
                if (t < rows) assert_true(packed[(h * rows + t) * CHANNELS + c] == expected);
            }
            assert_true(sums[h * CHANNELS + c] == sum);
        }
}

/* Past and present are one value with the strides of its capacity: new rows alone go over, and the sums come back. */
static void a_cache_grows_on_the_device(void **state) {
    uir_context *c = *state;
    uir_device *device = open_device(c, "null:1");
    uir_model *model = load_on(c, cache_model(), device, NULL);
    uir_session *session = new_session(c, model, NULL);
    uir_value *cache = put_on(c, device, 3, whole, NULL), *present, *total;
    for (int64_t past = 0; past < CAPACITY; past++) {
        float fresh[HEADS * CHANNELS];
        for (int64_t i = 0; i < HEADS * CHANNELS; i++) fresh[i] = cache_row(i / CHANNELS, past, i % CHANNELS);
        expect_ok(c, uir_session_bind_input_value(session, 0, 3, (int64_t[]){HEADS, past, CHANNELS}, room, cache),
                  "past");
        expect_ok(c, uir_session_bind_input(session, 1, 3, (int64_t[]){HEADS, 1, CHANNELS}, NULL, fresh, sizeof fresh),
                  "new");
        expect_ok(c, uir_session_bind_output_value(session, 0, 3, room, cache), "present");
        expect_ok(c, uir_session_run(session), "a step");
        assert_int_equal(get_bus_bytes(session), 2 * sizeof fresh);
        assert_int_equal(uir_session_get_output(session, 0, &present), UIR_STATUS_OK);
        assert_int_equal(uir_session_get_output(session, 1, &total), UIR_STATUS_OK);
        check_cache(cache, present, total, past + 1);
    }
    uir_session_destroy(session);
    uir_value_destroy(cache);
    uir_model_destroy(model);
    uir_device_close(device);
}

static void what_does_not_fit_is_refused(void **state) {
    uir_context *c = *state;
    uir_device *device = open_device(c, "null:1"), *other = open_device(c, "null:1");
    uir_model *model = load_on(c, small_model(), device, NULL), *host = load_on(c, small_model(), NULL, "vm");
    uir_session *session = new_session(c, model, NULL), *on_host = new_session(c, host, NULL), *interpreted;
    const uir_session_options plain = {.struct_size = sizeof plain, .device = "interpreter"};
    uir_value *value = put_on(c, device, 2, two, x), *foreign = put_on(c, other, 2, two, x), *integers, *row;
    expect_ok(c, uir_session_create(model, &plain, &interpreted), "the interpreter");
    expect_ok(c, uir_value_create_on_device(device, UIR_DTYPE_I32, 2, two, &integers), "integers");
    row = put_on(c, device, 2, (int64_t[]){1, 3}, NULL);
    expect_message(c, uir_session_set_input(session, 0, foreign), UIR_STATUS_INVALID_ARGUMENT,
                   "runs on another device");
    expect_message(c, uir_session_set_input(on_host, 0, value), UIR_STATUS_INVALID_ARGUMENT, "runs on the host");
    expect_message(c, uir_session_set_input(interpreted, 0, value), UIR_STATUS_INVALID_ARGUMENT, "runs on the host");
    expect_message(c, uir_session_bind_output_value(session, 0, 0, NULL, foreign), UIR_STATUS_INVALID_ARGUMENT,
                   "runs on another device");
    expect_message(c, uir_session_bind_output_value(on_host, 0, 0, NULL, value), UIR_STATUS_INVALID_ARGUMENT,
                   "runs on the host");
    expect_message(c, uir_session_set_input(session, 0, integers), UIR_STATUS_BAD_DATA, "i32[2,3]");
    expect_message(c, uir_session_bind_input_value(session, 0, 2, two, NULL, integers), UIR_STATUS_INVALID_ARGUMENT,
                   "is a tensor of f32, not of i32");
    expect_message(c, uir_session_bind_output_value(session, 0, 0, NULL, integers), UIR_STATUS_INVALID_ARGUMENT,
                   "is a tensor of f32, not of i32");
    expect_message(c, uir_session_bind_input_value(session, 0, 2, four, NULL, value), UIR_STATUS_INVALID_ARGUMENT,
                   "requires 48 bytes, but the buffer bound to it has 24");
    expect_message(c, uir_session_bind_input_value(session, 0, 2, two, NULL, NULL), UIR_STATUS_INVALID_ARGUMENT,
                   "no value is given");
    expect_message(c, uir_session_bind_input_value(session, 5, 2, two, NULL, value), UIR_STATUS_INVALID_ARGUMENT,
                   "no input 5");
    expect_message(c, uir_session_bind_output_value(session, 5, 2, NULL, value), UIR_STATUS_INVALID_ARGUMENT,
                   "no output 5");
    expect_ok(c, uir_session_set_input(session, 0, value), "an input");
    expect_ok(c, uir_session_bind_output_value(session, 0, 0, NULL, row), "bound before its size is known");
    expect_message(c, uir_session_run(session), UIR_STATUS_INVALID_ARGUMENT, "12 bytes, 24 are needed");
    expect_ok(c, uir_session_bind_output_value(session, 0, 0, NULL, NULL), "no value");
    const int64_t apart[] = {5, 1}, turned[] = {1, 2};
    expect_ok(c, uir_session_bind_input_value(session, 0, 2, two, turned, value), "strides of no cache");
    expect_message(c, uir_session_run(session), UIR_STATUS_UNSUPPORTED, "no kernel reads");
    expect_ok(c, uir_session_bind_input_value(session, 0, 2, two, NULL, value), "packed");
    expect_ok(c, uir_session_run(session), "after refusals");
    expect_message(c, uir_session_bind_input_value(session, 0, 2, two, apart, row), UIR_STATUS_INVALID_ARGUMENT,
                   "requires 32 bytes");
    uir_session_destroy(session), uir_session_destroy(on_host), uir_session_destroy(interpreted);
    uir_model_destroy(model), uir_model_destroy(host);
    uir_value_destroy(value), uir_value_destroy(foreign), uir_value_destroy(integers), uir_value_destroy(row);
    uir_device_close(device), uir_device_close(other);
}

/* ---- limits ---- */
static uir_status run_within(uir_context *c, uir_model *model, uint64_t device_memory, uint64_t *out_bytes) {
    const uir_limits limits = {.struct_size = sizeof limits, .device_memory = device_memory};
    uir_session *session = new_session(c, model, &limits);
    uir_status status = uir_session_bind_input(session, 0, 2, four, NULL, (float[12]){1}, 48);
    if (status == UIR_STATUS_OK) status = uir_session_run(session);
    *out_bytes = query_statistics(session).device_bytes;
    uir_session_destroy(session);
    return status;
}

static void a_devices_memory_is_limited(void **state) {
    uir_context *c = *state;
    uir_device *device = open_device(c, "null:4");
    uir_model *model = load_on(c, small_model(), device, NULL), *refused;
    uint64_t bytes = 0, again = 0;
    char text[80];
    expect_ok(c, run_within(c, model, 0, &bytes), "without a limit");
    assert_true(bytes > 0);
    expect_ok(c, run_within(c, model, bytes, &again), "as much as it takes");
    assert_int_equal(bytes, again);
    snprintf(text, sizeof text, "more than %llu bytes of device memory: %llu requested with ",
             (unsigned long long)bytes - 1, (unsigned long long)bytes);
    expect_message(c, run_within(c, model, bytes - 1, &again), UIR_STATUS_LIMIT, text);
    expect_ok(c, run_within(c, model, bytes, &again), "after a refusal");
    expect_message(c, run_within(c, model, 1, &again), UIR_STATUS_LIMIT, "requested with the model's weights");
    uir_model_destroy(model);
    blob model_bytes = small_model();
    const uir_limits one = {.struct_size = sizeof one, .device_memory = 1};
    const uir_model_options options = {
        .struct_size = sizeof options, .opened = device, .no_cache = true, .limits = &one};
    expect_message(c, uir_model_load_memory(c, model_bytes.data, model_bytes.length, NULL, &options, &refused),
                   UIR_STATUS_LIMIT, "--limit-device-memory");
    assert_null(refused);
    blob_free(&model_bytes);
    uir_device_close(device);
}

static void values_on_devices_are_limited(void **state) {
    uir_context *c = *state;
    const uir_limits limits = {.struct_size = sizeof limits, .device_memory = 47},
                     none = {.struct_size = sizeof none, .device_memory = UIR_NO_LIMIT};
    uir_device *device = open_device(c, "null:4");
    uir_value *second;
    assert_int_equal(uir_context_set_value_limits(c, &limits), UIR_STATUS_OK);
    uir_value *first = put_on(c, device, 2, two, x);
    expect_message(c, uir_value_create_on_device(device, UIR_DTYPE_F32, 2, two, &second), UIR_STATUS_LIMIT,
                   "more than 47 bytes of device memory: 48 requested");
    expect_message(c, uir_context_set_value_limits(c, &none), UIR_STATUS_INVALID_ARGUMENT,
                   "before the context has values");
    uir_value_destroy(first);
    second = put_on(c, device, 2, two, x);
    uir_value_destroy(second);
    assert_int_equal(uir_context_set_value_limits(c, &none), UIR_STATUS_OK);
    uir_device_close(device);
}

/* ---- memory that runs out ---- */
static uir_status use_device(uir_context *context, uir_device *device, const blob *bytes) {
    const uir_model_options options = {.struct_size = sizeof options, .opened = device, .wait = true, .no_cache = true};
    const uir_session_options one = {.struct_size = sizeof one, .threads = 1};
    uir_model *model = NULL;
    uir_session *session = NULL;
    uir_value *in = NULL, *out = NULL, *result;
    float got[6];
    uir_status status = uir_model_load_memory(context, bytes->data, bytes->length, NULL, &options, &model);
    if (status == UIR_STATUS_OK) status = uir_session_create(model, &one, &session);
    if (status == UIR_STATUS_OK) status = uir_value_create_on_device(device, UIR_DTYPE_F32, 2, two, &in);
    if (status == UIR_STATUS_OK) status = uir_value_create_on_device(device, UIR_DTYPE_F32, 2, two, &out);
    if (status == UIR_STATUS_OK) status = uir_value_write(in, 0, x, sizeof x);
    if (status == UIR_STATUS_OK) status = uir_session_set_input(session, 0, in);
    if (status == UIR_STATUS_OK) status = uir_session_bind_output_value(session, 0, 0, NULL, out);
    if (status == UIR_STATUS_OK) status = uir_session_submit(session);
    if (status == UIR_STATUS_OK) status = uir_session_wait(session);
    if (status == UIR_STATUS_OK) status = uir_session_get_output(session, 0, &result);
    if (status == UIR_STATUS_OK) status = uir_value_read(result, 0, got, sizeof got);
    if (status == UIR_STATUS_OK) assert_memory_equal(got, y, sizeof y);
    uir_value_destroy(in), uir_value_destroy(out);
    uir_session_destroy(session);
    uir_model_destroy(model);
    return status;
}

static const char *used_device;

static bool use_once(const uir_allocator *allocator) {
    uir_context *context;
    uir_device *device = NULL;
    blob bytes = small_model();
    uir_status status = uir_context_create(allocator, &context);
    if (status == UIR_STATUS_OK) {
        status = uir_device_open(context, used_device, NULL, &device);
        if (status == UIR_STATUS_OK) status = use_device(context, device, &bytes);
        uir_device_close(device);
        uir_context_destroy(context);
    }
    blob_free(&bytes);
    if (status != UIR_STATUS_OK) assert_int_equal(status, UIR_STATUS_OUT_OF_MEMORY);
    return status == UIR_STATUS_OK;
}

static void memory_may_run_out_anywhere(void **state) {
    static const char *const names[] = {"null:1", "vm"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        used_device = names[i];
        run_with_failures(use_once);
    }
}

/* ---- the host's pages ---- */
enum { WIDTH = 2048, TMPFS = 0x01021994 };

/* y = x w, where w has 16 MB and no two rows alike. */
static blob heavy_model(void) {
    const int64_t dims[] = {WIDTH, WIDTH};
    const size_t size = (size_t)WIDTH * WIDTH * sizeof(float);
    float *weights = malloc(size);
    blob graph = blob_new(), tensor = make_tensor("w", UIR_DTYPE_F32, 2, dims);
    for (size_t i = 0; i < (size_t)WIDTH * WIDTH; i++) weights[i] = (float)(i * 2654435761u % 1000) / 1000;
    put_bytes(&tensor, TENSOR_RAW, weights, size);
    free(weights);
    put_text(&graph, GRAPH_NAME, "heavy");
    put_message(&graph, GRAPH_INPUT, make_value("x", UIR_DTYPE_F32, "1,2048"));
    put_message(&graph, GRAPH_OUTPUT, make_value("y", UIR_DTYPE_F32, NULL));
    put_message(&graph, GRAPH_INITIALIZER, tensor);
    put_message(&graph, GRAPH_NODE, make_node("MatMul", "the product", "x,w", "y"));
    return make_model(graph);
}

/* Pages of the process's mappings of a file that are in the host's memory; `*out_all`: all of them. */
static size_t count_resident(const char *path, size_t *out_all) {
    static unsigned char resident[1 << 16];
    FILE *maps = fopen("/proc/self/maps", "r");
    size_t count = 0, page = (size_t)sysconf(_SC_PAGESIZE);
    char line[600];
    assert_non_null(maps);
    *out_all = 0;
    while (fgets(line, sizeof line, maps)) {
        unsigned long begin, end;
        if (!strstr(line, path) || sscanf(line, "%lx-%lx", &begin, &end) != 2) continue;
        size_t pages = (end - begin) / page;
        assert_true(pages <= sizeof resident && mincore((void *)begin, end - begin, resident) == 0);
        for (size_t i = 0; i < pages; i++) count += resident[i] & 1;
        *out_all += pages;
    }
    fclose(maps);
    return count;
}

static void write_package(uir_context *context, const char *model, const char *package) {
    const char *const names[] = {"null"};
    const uir_package_write_options options = {.struct_size = sizeof options, .devices = names, .device_count = 1};
    write_bytes(model, heavy_model());
    expect_ok(context, uir_package_write_file(context, model, package, &options, NULL), "the package");
    int file = open(package, O_RDONLY); /* what is not written yet cannot leave memory */
    assert_true(file >= 0 && fsync(file) == 0);
    close(file);
}

/* Runs the model twice: of its mappings of the file less than 5 % are resident then. */
static void expect_absent(uir_context *c, uir_model *model, const char *path) {
    uir_session *session = new_session(c, model, NULL);
    float *row = calloc(WIDTH, sizeof *row);
    size_t all, before = count_resident(path, &all), after;
    expect_ok(c, uir_session_bind_input(session, 0, 2, (int64_t[]){1, WIDTH}, NULL, row, WIDTH * sizeof *row), "x");
    expect_ok(c, uir_session_run(session), "a run");
    expect_ok(c, uir_session_run(session), "a steady run");
    after = count_resident(path, &all);
    print_message("%s: %zu of %zu pages before the first run, %zu after it\n", path, before, all, after);
    assert_true(all * (size_t)sysconf(_SC_PAGESIZE) >= (size_t)WIDTH * WIDTH * sizeof(float));
    assert_true(after * 20 < all);
    uir_session_destroy(session);
    free(row);
}

/* A folder whose files' pages can leave memory. */
static void make_folder(char *folder) {
    struct statfs about;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(statfs(folder, &about), 0);
    if (about.f_type != TMPFS) return;
    rmdir(folder);
    print_message("skip: /tmp is in memory: its files' pages cannot leave it\n");
    skip();
}

/* Once the device has the weights of a mapped package, the host's memory does not. */
static void weights_leave_the_hosts_memory(void **state) {
    uir_context *c = *state;
    char folder[] = "/tmp/uir-devices-XXXXXX", model_path[64], path[64];
    make_folder(folder);
    snprintf(model_path, sizeof model_path, "%s/m.onnx", folder);
    snprintf(path, sizeof path, "%s/m.uir", folder);
    write_package(c, model_path, path);
    uir_device *device = open_device(c, "null:4");
    const uir_package_open_options options = {.struct_size = sizeof options, .opened = device};
    uir_model *model;
    expect_ok(c, uir_model_open_package_file(c, path, &options, &model), "opening the package");
    expect_absent(c, model, path);
    uir_model_destroy(model);
    uir_device_close(device);
    unlink(model_path), unlink(path), rmdir(folder);
}

/* Nor of the package in the compile cache. */
static void cached_weights_leave_it_too(void **state) {
    uir_context *c = *state;
    char folder[] = "/tmp/uir-devices-XXXXXX", path[64], command[80];
    uir_model *model;
    make_folder(folder);
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    write_bytes(path, heavy_model());
    const uir_model_options options = {
        .struct_size = sizeof options, .device = "null:4", .cache = folder, .wait = true};
    expect_ok(c, uir_model_load_file(c, path, &options, &model), "the first load");
    uir_model_destroy(model);
    sync();
    expect_ok(c, uir_model_load_file(c, path, &options, &model), "a load from the cache");
    expect_absent(c, model, folder);
    uir_model_destroy(model);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(devices_are_counted_opened_and_described, begin, end),
        cmocka_unit_test_setup_teardown(what_uses_a_device_keeps_it_open, begin, end),
        cmocka_unit_test_setup_teardown(models_are_loaded_for_opened_devices, begin, end),
        cmocka_unit_test_setup_teardown(values_are_in_a_devices_memory, begin, end),
        cmocka_unit_test_setup_teardown(bytes_of_host_values_are_copied_too, begin, end),
        cmocka_unit_test_setup_teardown(memory_is_imported, begin, end),
        cmocka_unit_test_setup_teardown(values_stay_on_the_device, begin, end),
        cmocka_unit_test_setup_teardown(a_cache_grows_on_the_device, begin, end),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(a_devices_memory_is_limited, begin, end),
        cmocka_unit_test_setup_teardown(values_on_devices_are_limited, begin, end),
        cmocka_unit_test(memory_may_run_out_anywhere),
        cmocka_unit_test_setup_teardown(weights_leave_the_hosts_memory, begin, end),
        cmocka_unit_test_setup_teardown(cached_weights_leave_it_too, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
