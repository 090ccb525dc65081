/* The host as an opened device, "cpu" and "vm": a program has one path for all devices. */
#include "tests/api/counted.h"
#include "tests/api/device.h"
#include "uir/tools.h"

#include <stdlib.h>
#include <unistd.h>

static const char *const hosts[] = {"cpu", "vm", "vm:generic"};
enum { HOSTS = sizeof hosts / sizeof *hosts };
static const int64_t two[] = {2, 3}, four[] = {4, 3};
static const float x[] = {1, 2, 3, -4, 5, -6}, y[] = {0, 2, 4, 0, 5, 0}, z[] = {-1, -2, -3, 4, -5, 6};

/* ---- devices ---- */
/* A chip of the device that the list of devices has under that name. */
static bool is_listed(uir_context *context, const char *name, const char *chip) {
    uir_device_list *list;
    uir_device_report report = {.struct_size = sizeof report};
    bool is_there = false;
    expect_ok(context, uir_device_list_create(context, &list), "the list");
    for (size_t i = 0; uir_device_list_get(list, i, &report) == UIR_STATUS_OK; i++)
        for (size_t k = 0; !strcmp(report.name, name) && k < report.chip_count; k++)
            is_there |= !strcmp(report.chips[k], chip);
    uir_device_list_destroy(list);
    return is_there;
}

static void expect_host(uir_context *context, const char *name, const char *row, bool is_harmful) {
    const uir_device_options second = {.struct_size = sizeof second, .index = 1},
                             first = {.struct_size = sizeof first, .library = "/none", .native = &context};
    uir_device *device, *other;
    uir_device_info info = {.struct_size = sizeof info};
    uint32_t count = 0;
    assert_int_equal(uir_device_count(context, name, &second, &count), UIR_STATUS_OK);
    assert_int_equal(count, 1);
    expect_message(context, uir_device_open(context, name, &second, &device), UIR_STATUS_INVALID_ARGUMENT, "not 1");
    expect_ok(context, uir_device_open(context, name, &first, &device), name);
    assert_int_equal(uir_device_get_info(device, &info), UIR_STATUS_OK);
    assert_string_equal(info.name, name);
    assert_true(is_listed(context, row, info.chip));
    if (strchr(name, ':')) assert_string_equal(info.chip, strchr(name, ':') + 1);
    assert_non_null(strstr(info.description, row));
    assert_non_null(strstr(info.description, info.chip));
    assert_true(info.memory == 0 || info.memory >= 1 << 20);
    assert_int_equal(info.alignment, 64);
    assert_int_equal(info.queue_count, 1);
    assert_true(info.shares_memory && !info.is_simulated && info.is_harmful == is_harmful);
    other = open_device(context, info.name); /* as often as one likes */
    uir_device_close(device);
    uir_device_close(other);
}

/* The devices that are the host: native code can reach all of the process, the VM's bytecode cannot. */
static void the_host_is_a_device_too(void **state) {
    uir_context *c = *state;
    uir_device *device;
    expect_host(c, "cpu", "cpu", true);
    expect_host(c, "cpu:generic", "cpu", true);
    expect_host(c, "vm", "vm", false);
    expect_host(c, "vm:generic", "vm", false);
    expect_message(c, uir_device_open(c, "cpu:avx9", NULL, &device), UIR_STATUS_INVALID_ARGUMENT,
                   "device cpu: this machine does not execute 'avx9'");
    expect_message(c, uir_device_open(c, "vm:", NULL, &device), UIR_STATUS_INVALID_ARGUMENT, "does not execute ''");
    assert_null(device);
}

static void models_are_loaded_for_the_host(void **state) {
    uir_context *c = *state;
    uir_device *device = open_device(c, "vm:generic");
    uir_model *model;
    blob bytes = small_model();
    uir_model_options options = {
        .struct_size = sizeof options, .opened = device, .device = "vm", .no_cache = true, .wait = true};
    expect_ok(c, uir_model_load_memory(c, bytes.data, bytes.length, NULL, &options, &model), "by the device's name");
    assert_ptr_equal(uir_model_get_device(model), device);
    uir_model_destroy(model);
    expect_others_refused(c, bytes, device, (const char *const[]){"cpu"}, 1, "the opened device is vm:generic");
    blob_free(&bytes);
    uir_device_close(device);
    model = load_on(c, small_model(), NULL, "cpu");
    assert_null(uir_model_get_device(model)); /* the host, which was not opened */
    uir_model_destroy(model);
}

/* A package, and one that is for another device. */
static void packages_are_opened_for_the_host(void **state) {
    static const char *const makers[] = {"vm", "null"};
    uir_context *c = *state;
    char path[] = "/tmp/uir-host-XXXXXX", source[64];
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    snprintf(source, sizeof source, "%s.onnx", path);
    write_bytes(source, small_model());
    for (int i = 0; i < 2; i++) {
        const uir_package_write_options write = {.struct_size = sizeof write, .devices = &makers[i], .device_count = 1};
        uir_device *device = open_device(c, "vm");
        const uir_package_open_options options = {.struct_size = sizeof options, .opened = device};
        uir_model *model;
        expect_ok(c, uir_package_write_file(c, source, path, &write, NULL), "the package");
        if (i) {
            expect_message(c, uir_model_open_package_file(c, path, &options, &model), UIR_STATUS_DEVICE_FAILED,
                           "the package is for device null");
        } else {
            expect_ok(c, uir_model_open_package_file(c, path, &options, &model), "opening the package");
            assert_ptr_equal(uir_model_get_device(model), device);
        }
        uir_model_destroy(model);
        uir_device_close(device);
    }
    unlink(path), unlink(source);
}

/* ---- values ---- */
static void values_are_tensors_of_the_host(void **state) {
    uir_context *c = *state;
    uir_comparison comparison = {.struct_size = sizeof comparison};
    for (int i = 0; i < HOSTS; i++) {
        uir_device *device = open_device(c, hosts[i]);
        uir_value *value = put_on(c, device, 2, two, NULL), *other;
        const float zeros[6] = {0};
        float *data = uir_value_get_data(value), part[2];
        assert_true(data && (uintptr_t)data % 64 == 0);
        assert_memory_equal(data, zeros, sizeof zeros);
        assert_ptr_equal(uir_value_get_native(value), data);
        assert_ptr_equal(uir_value_get_device(value), device);
        assert_int_equal(uir_value_write(value, 0, x, sizeof x), UIR_STATUS_OK);
        assert_memory_equal(data, x, sizeof x);
        assert_true(uir_value_get_double(value, 3) == -4);
        assert_int_equal(uir_value_read(value, 8, part, 8), UIR_STATUS_OK);
        assert_true(part[0] == x[2] && part[1] == x[3]);
        expect_message(c, uir_value_read(value, 20, part, 8), UIR_STATUS_INVALID_ARGUMENT, "8 bytes from byte 20 on");
        assert_int_equal(uir_value_compare(value, value, NULL, &comparison), UIR_STATUS_OK);
        assert_int_equal(uir_value_fill_random(value, 1, 0, 1), UIR_STATUS_OK);
        expect_message(c, uir_value_create_on_device(device, UIR_DTYPE_STRING, 2, two, &other), UIR_STATUS_UNSUPPORTED,
                       "strings");
        expect_message(c, uir_value_create_on_device(device, UIR_DTYPE_F32, 1, (int64_t[]){-1}, &other),
                       UIR_STATUS_INVALID_ARGUMENT, "negative");
        assert_null(other);
        uir_value_destroy(value);
        value = put_on(c, device, 1, (int64_t[]){0}, NULL); /* of no elements */
        assert_int_equal(uir_value_read(value, 0, part, 0), UIR_STATUS_OK);
        uir_device_close(device);
        uir_value_destroy(value); /* the last that uses the device */
    }
}

/* At the address of the caller's memory. */
static void memory_is_imported(void **state) {
    uir_context *c = *state;
    uir_device *device = open_device(c, "cpu");
    float memory[8] = {9, 9, 9, 9, 9, 9, 9, 9};
    uir_value *value, *none;
    expect_ok(c, uir_value_import(device, UIR_DTYPE_F32, 2, two, memory, sizeof memory, &value), "importing");
    assert_ptr_equal(uir_value_get_native(value), memory);
    assert_ptr_equal(uir_value_get_data(value), memory);
    assert_true(memory[5] == 9 && uir_value_get_byte_size(value) == sizeof x);
    assert_int_equal(uir_value_write(value, 0, x, sizeof x), UIR_STATUS_OK);
    assert_memory_equal(memory, x, sizeof x);
    assert_true(memory[6] == 9);
    expect_message(c, uir_value_write(value, 24, x, 4), UIR_STATUS_INVALID_ARGUMENT, "tensor of 24 bytes");
    expect_message(c, uir_value_import(device, UIR_DTYPE_F32, 2, two, memory, 20, &none), UIR_STATUS_INVALID_ARGUMENT,
                   "has 20 bytes, and the tensor requires 24");
    expect_message(c, uir_value_import(device, UIR_DTYPE_F32, 2, two, NULL, 24, &none), UIR_STATUS_INVALID_ARGUMENT,
                   "is NULL");
    assert_null(none);
    uir_value_destroy(value);
    assert_memory_equal(memory, x, sizeof x);
    uir_device_close(device);
}

/* The limit of the host's memory, not that of a device's. */
static void values_are_limited_as_the_hosts(void **state) {
    uir_context *c = *state;
    const uir_limits limits = {.struct_size = sizeof limits, .memory = 1 << 20, .device_memory = 1},
                     none = {.struct_size = sizeof none, .device_memory = UIR_NO_LIMIT};
    uir_device *device = open_device(c, "cpu");
    uir_value *large;
    assert_int_equal(uir_context_set_value_limits(c, &limits), UIR_STATUS_OK);
    uir_value *value = put_on(c, device, 2, two, x);
    expect_message(c, uir_value_create_on_device(device, UIR_DTYPE_F32, 1, (int64_t[]){1 << 20}, &large),
                   UIR_STATUS_LIMIT, "memory");
    assert_null(large);
    uir_value_destroy(value);
    assert_int_equal(uir_context_set_value_limits(c, &none), UIR_STATUS_OK);
    uir_device_close(device);
}

/* ---- sessions ---- */
/* The memory of a value is read and written where it is, and stays while it is bound. */
static void values_are_bound_where_they_are(void **state) {
    uir_context *c = *state;
    for (int i = 0; i < HOSTS; i++) {
        uir_device *device = open_device(c, hosts[i]);
        uir_model *model = load_on(c, small_model(), device, NULL);
        uir_session *session = new_session(c, model, NULL);
        uir_value *in = put_on(c, device, 2, two, x), *room = put_on(c, device, 2, four, NULL), *result, *last;
        float *at = uir_value_get_data(room);
        assert_int_equal(uir_session_set_input(session, 0, in), UIR_STATUS_OK);
        expect_ok(c, uir_session_bind_output_value(session, 0, 0, NULL, room), "a larger value");
        uir_value_destroy(in);
        expect_ok(c, uir_session_run(session), "a run");
        assert_memory_equal(at, y, sizeof y);
        uir_value_destroy(room);
        expect_ok(c, uir_session_run(session), "a run");
        assert_int_equal(uir_session_get_output(session, 0, &result), UIR_STATUS_OK);
        assert_ptr_equal(uir_value_get_device(result), device);
        assert_ptr_equal(uir_value_get_native(result), at);
        assert_int_equal(uir_value_get_shape(result)[0], 2);
        assert_true(has_floats(result, y, 6));
        assert_int_equal(uir_session_get_output(session, 1, &last), UIR_STATUS_OK);
        assert_null(uir_value_get_device(last));
        assert_true(has_floats(last, z, 6));
        in = put_on(c, device, 2, two, z);
        expect_ok(c, uir_session_bind_input_value(session, 0, 2, two, NULL, in), "an input");
        expect_ok(c, uir_session_bind_output_value(session, 0, 0, NULL, NULL), "no value");
        expect_message(c, uir_session_get_output(session, 0, &last), UIR_STATUS_INVALID_ARGUMENT, "after the last run");
        expect_ok(c, uir_session_run(session), "a run");
        assert_int_equal(uir_session_get_output(session, 1, &last), UIR_STATUS_OK);
        assert_true(has_floats(last, x, 6));
        const int64_t turned[] = {1, 2}; /* strides of no cache, which the host's memory may have */
        expect_ok(c, uir_session_bind_input_value(session, 0, 2, two, turned, in), "other strides");
        expect_ok(c, uir_session_run(session), "other strides");
        assert_int_equal(uir_session_get_output(session, 1, &last), UIR_STATUS_OK);
        assert_true(has_floats(last, (const float[]){1, 3, 5, 2, -4, -6}, 6));
        expect_message(c, uir_session_bind_input_value(session, 0, 2, four, NULL, in), UIR_STATUS_INVALID_ARGUMENT,
                       "requires 48 bytes, but the buffer bound to it has 24");
        uir_session_destroy(session);
        uir_value_destroy(in);
        uir_model_destroy(model);
        uir_device_close(device);
    }
}

/* Values of the host serve sessions of every device, the interpreter's too; those of another memory do not. */
static void values_serve_every_session(void **state) {
    static const char *const names[] = {"null:1", "cpu", "vm", "interpreter"};
    uir_context *c = *state;
    uir_device *device = open_device(c, "vm"), *away = open_device(c, "null:2");
    uir_value *in = put_on(c, device, 2, two, x), *out = put_on(c, device, 2, two, NULL),
              *foreign = put_on(c, away, 2, two, x), *result;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uir_model *model = load_on(c, small_model(), NULL, names[i]);
        uir_session *session = new_session(c, model, NULL);
        expect_ok(c, uir_session_set_input(session, 0, in), "an input");
        expect_ok(c, uir_session_bind_output_value(session, 1, 0, NULL, out), "an output");
        expect_ok(c, uir_session_run(session), names[i]);
        assert_int_equal(uir_session_get_output(session, 1, &result), UIR_STATUS_OK);
        assert_true(has_floats(result, z, 6));
        assert_true(has_floats(out, z, 6));
        assert_int_equal(uir_value_write(out, 0, x, sizeof x), UIR_STATUS_OK);
        expect_ok(c, uir_session_bind_input_value(session, 0, 2, two, NULL, in), "an input");
        expect_ok(c, uir_session_run(session), names[i]);
        assert_true(has_floats(out, z, 6));
        uir_session_destroy(session);
        uir_model_destroy(model);
    }
    uir_model *model = load_on(c, small_model(), device, NULL);
    uir_session *session = new_session(c, model, NULL);
    expect_message(c, uir_session_set_input(session, 0, foreign), UIR_STATUS_INVALID_ARGUMENT,
                   "memory of device null:2, and the session runs on another device, vm");
    expect_message(c, uir_session_bind_output_value(session, 0, 0, NULL, foreign), UIR_STATUS_INVALID_ARGUMENT,
                   "runs on another device");
    uir_session_destroy(session);
    uir_model_destroy(model);
    uir_value_destroy(in), uir_value_destroy(out), uir_value_destroy(foreign);
    uir_device_close(device), uir_device_close(away);
}

enum { HEADS = CACHE_HEADS, CHANNELS = CACHE_CHANNELS, CAPACITY = 6 };

/* Past and present are one value with the strides of its capacity. */
static void a_cache_grows_in_place(void **state) {
    uir_context *c = *state;
    const int64_t strides[] = {CAPACITY * CHANNELS, CHANNELS, 1}, whole[] = {HEADS, CAPACITY, CHANNELS};
    uir_device *device = open_device(c, "vm");
    uir_model *model = load_on(c, cache_model(), device, NULL);
    uir_session *session = new_session(c, model, NULL);
    uir_value *cache = put_on(c, device, 3, whole, NULL);
    const float *rows = uir_value_get_data(cache);
    for (int64_t past = 0; past < CAPACITY; past++) {
        float fresh[HEADS * CHANNELS];
        for (int i = 0; i < HEADS * CHANNELS; i++) fresh[i] = (float)(100 * past + i);
        expect_ok(c, uir_session_bind_input_value(session, 0, 3, (int64_t[]){HEADS, past, CHANNELS}, strides, cache),
                  "past");
        expect_ok(c, uir_session_bind_input(session, 1, 3, (int64_t[]){HEADS, 1, CHANNELS}, NULL, fresh, sizeof fresh),
                  "new");
        expect_ok(c, uir_session_bind_output_value(session, 0, 3, strides, cache), "present");
        expect_ok(c, uir_session_run(session), "a step");
    }
    for (int64_t h = 0; h < HEADS; h++)
        for (int64_t t = 0; t < CAPACITY; t++)
            for (int64_t k = 0; k < CHANNELS; k++)
                assert_true(rows[h * strides[0] + t * strides[1] + k] == (float)(100 * t + h * CHANNELS + k));
    uir_session_destroy(session);
    uir_value_destroy(cache);
    uir_model_destroy(model);
    uir_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_host_is_a_device_too, begin, end),
        cmocka_unit_test_setup_teardown(models_are_loaded_for_the_host, begin, end),
        cmocka_unit_test_setup_teardown(packages_are_opened_for_the_host, begin, end),
        cmocka_unit_test_setup_teardown(values_are_tensors_of_the_host, begin, end),
        cmocka_unit_test_setup_teardown(memory_is_imported, begin, end),
        cmocka_unit_test_setup_teardown(values_are_limited_as_the_hosts, begin, end),
        cmocka_unit_test_setup_teardown(values_are_bound_where_they_are, begin, end),
        cmocka_unit_test_setup_teardown(values_serve_every_session, begin, end),
        cmocka_unit_test_setup_teardown(a_cache_grows_in_place, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
