#include "compile/targets.h"

#include "base/allocator.h"

#include <stdio.h>
#include <string.h>

#define UIR_BACKEND(name, target, format, fallback, driver) extern const uir_target target;
#include "backends/backends.def"
#undef UIR_BACKEND

static const uir_target *const rows[] = {
#define UIR_BACKEND(name, target, format, fallback, driver) &target,
#include "backends/backends.def"
#undef UIR_BACKEND
};
enum { ROW_COUNT = sizeof rows / sizeof *rows };

bool uir_target_is_narrowed(const uir_device_row *row) {
    return rows[row->backend]->narrow != NULL;
}

const char *uir_target_get_chip(const uir_device_row *row, size_t index) {
    return uir_target_is_narrowed(row) ? rows[row->backend]->get_chip(index) : NULL;
}

const uir_target *uir_target_of(const uir_device_row *row) {
    return rows[(uir_target_is_narrowed(row) ? uir_device_find_host(row) : row)->backend];
}

bool uir_target_leaves_chip(const uir_device_row *row, const char *variant) {
    const uir_target *target = rows[row->backend];
    return uir_device_has_driver(row) && target->find_chip && !target->find_chip(variant);
}

/* The chip of the device at hand, if it can be opened. */
static bool ask_chip(const uir_device_row *row, const char *variant, char *chip, size_t capacity) {
    const uir_allocator allocator = uir_allocator_system();
    const uir_driver_options options = {.allocator = &allocator, .parameter = variant};
    uir_driver_device *device;
    if (row->driver->open(&options, NULL, &device) != UIR_STATUS_OK) return false;
    snprintf(chip, capacity, "%s", row->driver->get_facts(device)->chip);
    row->driver->close(device);
    return true;
}

uir_status uir_target_describe(const uir_device_row *row, const char *variant, uir_arena *arena,
                               uir_diagnostics *diagnostics, uir_target_machine *out_machine) {
    bool is_narrowed = uir_target_is_narrowed(row);
    char chip[64];
    if (uir_target_leaves_chip(row, variant) && ask_chip(row, variant, chip, sizeof chip)) variant = chip;
    UIR_TRY(uir_target_of(row)->describe(is_narrowed ? NULL : variant, arena, diagnostics, out_machine));
    if (is_narrowed) rows[row->backend]->narrow(variant, &out_machine->description);
    return UIR_STATUS_OK;
}

void uir_target_describe_key(const uir_device_row *row, const uir_target_machine *machine, uir_text *text) {
    uir_target_of(row)->describe_key(machine, text);
    if (uir_target_is_narrowed(row)) uir_text_append_format(text, ", chip %s", machine->description.chip);
}

static bool is_first(size_t row) {
    if (rows[row]->narrow) return false;
    for (size_t i = 0; i < row; i++)
        if (rows[i] == rows[row]) return false;
    return true;
}

const uir_target *uir_target_get(size_t index) {
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (is_first(i) && index-- == 0) return rows[i];
    return NULL;
}

const uir_target *uir_target_find(const char *name) {
    const uir_target *target;
    for (size_t i = 0; (target = uir_target_get(i)) != NULL; i++)
        if (!strcmp(target->name, name)) return target;
    return NULL;
}
