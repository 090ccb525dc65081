/* What the tests of devices with memory of their own share: a device, models loaded for it, values on it. */
#ifndef UIR_TESTS_API_DEVICE_H
#define UIR_TESTS_API_DEVICE_H

#include "tests/api/small.h"
#include "tools/run/query.h"
#include "uir/device.h"

static inline void expect_ok(uir_context *context, uir_status status, const char *what) {
    if (status == UIR_STATUS_OK) return;
    print_message("%s: %s\n", what, uir_status_text(status));
    for (size_t i = 0; i < uir_context_message_count(context); i++)
        print_message("%s\n", uir_context_get_message_text(context, i));
    assert_int_equal(status, UIR_STATUS_OK);
}

static inline void expect_message(uir_context *context, uir_status got, uir_status expected, const char *text) {
    if (got != expected || !has_message(context, text))
        for (size_t i = 0; i < uir_context_message_count(context); i++)
            print_message("%s\n", uir_context_get_message_text(context, i));
    assert_int_equal(got, expected);
    assert_true(has_message(context, text));
    uir_context_clear_messages(context);
}

static inline uir_device *open_device(uir_context *context, const char *name) {
    uir_device *device;
    expect_ok(context, uir_device_open(context, name, NULL, &device), name);
    return device;
}

/* `bytes` are freed. `device`: an opened one, or NULL for that named. */
static inline uir_model *load_on(uir_context *context, blob bytes, uir_device *device, const char *name) {
    const uir_model_options options = {
        .struct_size = sizeof options, .device = name, .opened = device, .wait = true, .no_cache = true};
    uir_model *model;
    uir_status status = uir_model_load_memory(context, bytes.data, bytes.length, NULL, &options, &model);
    blob_free(&bytes);
    expect_ok(context, status, "loading");
    return model;
}

/* A model is not loaded for `device` where the options name one of the `others` or ask for the interpreter. `words`: of
 * the message about another device. */
static inline void expect_others_refused(uir_context *context, blob bytes, uir_device *device,
                                         const char *const *others, size_t count, const char *words) {
    uir_model_options options = {.struct_size = sizeof options, .opened = device, .no_cache = true, .wait = true};
    uir_model *model;
    for (size_t i = 0; i < count; i++) {
        options.device = others[i];
        expect_message(context, uir_model_load_memory(context, bytes.data, bytes.length, NULL, &options, &model),
                       UIR_STATUS_INVALID_ARGUMENT, words);
        assert_null(model);
    }
    options.device = NULL;
    options.interpret = true;
    expect_message(context, uir_model_load_memory(context, bytes.data, bytes.length, NULL, &options, &model),
                   UIR_STATUS_INVALID_ARGUMENT, "leave `opened` out");
    assert_null(model);
}

static inline uir_session *new_session(uir_context *context, uir_model *model, const uir_limits *limits) {
    const uir_session_options options = {.struct_size = sizeof options, .threads = 1, .limits = limits};
    uir_session *session;
    expect_ok(context, uir_session_create(model, &options, &session), "a session");
    return session;
}

/* A value of f32 on the device; `data` NULL: zeros. */
static inline uir_value *put_on(uir_context *context, uir_device *device, uint32_t rank, const int64_t *shape,
                                const float *data) {
    uir_value *value;
    expect_ok(context, uir_value_create_on_device(device, UIR_DTYPE_F32, rank, shape, &value), "a value");
    if (data) expect_ok(context, uir_value_write(value, 0, data, uir_value_get_byte_size(value)), "writing");
    return value;
}

static inline bool has_floats(const uir_value *value, const float *expected, size_t count) {
    float got[256];
    if (count > 256 || uir_value_read(value, 0, got, count * sizeof *got) != UIR_STATUS_OK) return false;
    return !memcmp(got, expected, count * sizeof *got);
}

#endif
