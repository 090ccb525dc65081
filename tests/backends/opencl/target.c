/* The OpenCL target: names of chips and devices, and what chips need of a device. */
#include "tests/base/support.h"

#include "backends/opencl/chips.h"
#include "backends/opencl/target/opencl.h"
#include "base/allocator.h"

#include <string.h>

/* ---- names ---- */
static void test_parameters(void **state) {
    static const struct {
        const char *text, *chip; /* chip NULL: none is named */
        bool is_good, has_device;
        uint32_t device;
    } rows[] = {
        {NULL, NULL, true, false, 0},     {"gpu", "gpu", true, false, 0},   {"cpu", "cpu", true, false, 0},
        {"1", NULL, true, true, 1},       {"gpu:1", "gpu", true, true, 1},  {"cpu:12", "cpu", true, true, 12},
        {"9999", NULL, true, true, 9999}, {"", NULL, false, false, 0},      {"GPU", NULL, false, false, 0},
        {"gpu:", "gpu", false, false, 0}, {"gpus", NULL, false, false, 0},  {"1:gpu", NULL, false, false, 0},
        {"-1", NULL, false, false, 0},    {"10000", NULL, false, false, 0}, {"gpu:cpu", NULL, false, false, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uir_opencl_parameter p;
        assert_int_equal(uir_opencl_read_parameter(rows[i].text, &p), rows[i].is_good);
        if (!rows[i].is_good) {
            assert_null(uir_opencl_target.find_chip(rows[i].text));
            continue;
        }
        assert_int_equal(p.has_device, rows[i].has_device);
        assert_int_equal(p.device, rows[i].device);
        const char *chip = uir_opencl_target.find_chip(rows[i].text);
        assert_true(rows[i].chip ? chip && !strcmp(chip, rows[i].chip) : !chip);
    }
}

/* Each chip is described, and its machine needs no more than the table says. */
static void test_chips(void **state) {
    const uir_opencl_chip *chip;
    uir_allocator allocator = uir_allocator_system();
    uir_diagnostics diagnostics;
    uir_target_machine machine;
    uir_arena arena;
    (void)state;
    uir_arena_init(&arena, &allocator);
    uir_diagnostics_init(&diagnostics, &allocator);
    for (size_t i = 0; (chip = uir_opencl_get_chip(i)) != NULL; i++) {
        assert_int_equal(uir_opencl_target.describe(chip->name, &arena, &diagnostics, &machine), UIR_STATUS_OK);
        assert_string_equal(machine.description.name, "opencl");
        assert_string_equal(machine.description.chip, chip->name);
        assert_string_equal(machine.variant, chip->name);
        for (uint32_t s = 0; s < machine.description.space_count && chip->work_group > 1; s++) {
            const uir_space *space = &machine.description.spaces[s];
            if (space->roles & UIR_SPACE_SCRATCH) assert_true(space->capacity <= chip->local_memory);
        }
    }
    assert_int_equal(uir_opencl_target.describe("gpu:3", &arena, &diagnostics, &machine), UIR_STATUS_OK);
    assert_string_equal(machine.variant, "gpu");
    assert_int_equal(uir_opencl_target.describe("fast", &arena, &diagnostics, &machine), UIR_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(diagnostics.first->hint, "gpu or cpu"));
    uir_diagnostics_deinit(&diagnostics);
    uir_arena_deinit(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parameters), cmocka_unit_test(test_chips)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
