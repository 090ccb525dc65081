/* The list of devices: names, chips, and why one is not there. */
#include "api/internal.h"
#include "tests/api/small.h"
#include "tools/run/query.h"

static int begin(void **state) {
    static uir_context *context;
    assert_int_equal(uir_context_create(NULL, &context), UIR_STATUS_OK);
    *state = context;
    return 0;
}

static int end(void **state) {
    uir_context_destroy(*state);
    return 0;
}

static bool has_chip(const uir_device_report *device, const char *chip) {
    for (size_t i = 0; i < device->chip_count; i++)
        if (!strcmp(device->chips[i], chip)) return true;
    return false;
}

/* Those that run models in the order of their names; then machines without a driver. */
static void devices_have_chips_and_reasons(void **state) {
    uir_device_list *list;
    uir_device_report device;
    size_t names = 0, found = 0;
    assert_int_equal(uir_device_list_create(*state, &list), UIR_STATUS_OK);
    for (; uir_device_name(names); names++) {
        assert_true(query_device(list, names, &device));
        assert_string_equal(device.name, uir_device_name(names));
        assert_true(device.is_there && !*device.why);
        if (!strcmp(device.name, "cpu")) assert_true(has_chip(&device, "generic"));
        if (!strcmp(device.name, "null")) assert_true(has_chip(&device, "full") && has_chip(&device, "f32"));
    }
    for (size_t i = names; query_device(list, i, &device); i++) {
        assert_false(device.is_there);
        assert_true(strstr(device.why, "no driver") && device.chip_count > 0);
        found += !strcmp(device.name, "ascend") && has_chip(&device, "910B1");
    }
    assert_int_equal(found, 1);
    UIR_INIT(&device);
    assert_int_equal(uir_device_list_get(list, 1000, &device), UIR_STATUS_INVALID_ARGUMENT);
    assert_int_equal(uir_context_message_count(*state), 0);
    uir_device_list_destroy(list);
}

static uir_status count_none(const uir_driver_options *options, uir_diagnostics *diagnostics, uint32_t *out_count) {
    (void)options, (void)diagnostics;
    *out_count = 0;
    return UIR_STATUS_OK;
}

static uir_status miss_library(const uir_driver_options *options, uir_diagnostics *diagnostics, uint32_t *out_count) {
    (void)options, (void)out_count;
    return uir_error(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL,
                     "the library libmadeup.so.1 lacks the function begin");
}

static void a_missing_device_is_explained(void **state) {
    const uir_driver drivers[] = {{.name = "none", .count = count_none}, {.name = "lacking", .count = miss_library}};
    static const char *const reasons[] = {"finds no device", "libmadeup.so.1 lacks the function begin"};
    uir_device_list *list;
    uir_device_report device;
    assert_int_equal(uir_device_list_create(*state, &list), UIR_STATUS_OK);
    size_t before = list->entries.count;
    for (size_t i = 0; i < 2; i++) {
        const uir_device_row row = {
            drivers[i].name, 0, {uir_device_get(1)->formats[0], uir_device_get(1)->formats[1]}, &drivers[i]};
        assert_int_equal(uir_device_list_add_row(list, &row), UIR_STATUS_OK);
        assert_true(query_device(list, before + i, &device));
        assert_string_equal(device.name, drivers[i].name);
        assert_true(!device.is_there && strstr(device.why, reasons[i]));
    }
    assert_int_equal(uir_context_message_count(*state), 0);
    uir_device_list_destroy(list);
}

static void a_mistyped_device_is_guessed(void **state) {
    static const char *const rows[][2] = {
        {"nul", "'null'"}, {"nulll:7", "'null'"}, {"interpreterr", "'interpreter'"}, {"cpu:avx22", "'avx2'"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char expected[64];
        uir_model *model;
        blob bytes = small_model();
        const uir_model_options options = {.struct_size = sizeof options, .device = rows[i][0], .no_cache = true};
        snprintf(expected, sizeof expected, "did you mean %s?", rows[i][1]);
        assert_int_equal(uir_model_load_memory(*state, bytes.data, bytes.length, NULL, &options, &model),
                         UIR_STATUS_INVALID_ARGUMENT);
        if (!has_message(*state, expected)) fail_msg("%s: %s", rows[i][0], uir_context_get_message_text(*state, 0));
        uir_context_clear_messages(*state);
        blob_free(&bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_have_chips_and_reasons),
        cmocka_unit_test(a_missing_device_is_explained),
        cmocka_unit_test(a_mistyped_device_is_guessed),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
