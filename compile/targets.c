#include "compile/targets.h"

#include "base/allocator.h"

#include <stdio.h>
#include <string.h>

static const uir_target_engine uir_no_engine;

#define UIR_BACKEND(name, target, engine, format, fallback, driver)                                                    \
    extern const uir_target target;                                                                                    \
    extern const uir_target_engine engine;
#include "backends/backends.def"
#undef UIR_BACKEND

static const struct backend_row {
    const uir_target *target;
    const uir_target_engine *engine;
} rows[] = {
#define UIR_BACKEND(name, target, engine, format, fallback, driver) {&target, &engine},
#include "backends/backends.def"
#undef UIR_BACKEND
};
enum { ROW_COUNT = sizeof rows / sizeof *rows };

bool uir_target_is_narrowed(const uir_device_row *row) {
    return rows[row->backend].target->narrow != NULL;
}

const char *uir_target_get_chip(const uir_device_row *row, size_t index) {
    return uir_target_is_narrowed(row) ? rows[row->backend].target->get_chip(index) : NULL;
}

const uir_target *uir_target_of(const uir_device_row *row) {
    return rows[(uir_target_is_narrowed(row) ? uir_device_find_host(row) : row)->backend].target;
}

bool uir_target_leaves_chip(const uir_device_row *row, const char *variant) {
    const uir_target *target = rows[row->backend].target;
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

uir_status uir_target_describe(const uir_device_row *row, const char *variant, uir_diagnostics *diagnostics,
                               uir_target_machine *out_machine) {
    bool is_narrowed = uir_target_is_narrowed(row);
    char chip[64];
    if (uir_target_leaves_chip(row, variant) && ask_chip(row, variant, chip, sizeof chip)) variant = chip;
    UIR_TRY(uir_target_of(row)->describe(is_narrowed ? NULL : variant, diagnostics, out_machine));
    if (is_narrowed) rows[row->backend].target->narrow(variant, &out_machine->description);
    return UIR_STATUS_OK;
}

void uir_target_describe_key(const uir_device_row *row, const uir_target_machine *machine, uir_text *text) {
    uir_target_of(row)->describe_key(machine, text);
    if (uir_target_is_narrowed(row)) uir_text_append_format(text, ", chip %s", machine->description.chip);
}

static bool is_first(size_t row) {
    if (rows[row].target->narrow) return false;
    for (size_t i = 0; i < row; i++)
        if (rows[i].target == rows[row].target) return false;
    return true;
}

const uir_target *uir_target_get(size_t index) {
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (is_first(i) && index-- == 0) return rows[i].target;
    return NULL;
}

const uir_target *uir_target_find(const char *name) {
    const uir_target *target;
    for (size_t i = 0; (target = uir_target_get(i)) != NULL; i++)
        if (!strcmp(target->name, name)) return target;
    return NULL;
}

/* ---- engines ---- */
typedef struct interpreted_kernel {
    uir_allocator allocator;
    const uir_igraph *igraph;
    const volatile bool *cancel;
} interpreted_kernel;

static void close_kernel(void *state) {
    interpreted_kernel *k = state;
    if (!k) return;
    uir_allocator allocator = k->allocator;
    uir_release(&allocator, k, sizeof *k);
}

static uir_status open_kernel(const uir_allocator *allocator, const uir_igraph *igraph, const char *variant,
                              const volatile bool *cancel, uir_diagnostics *diagnostics, void **out_state) {
    interpreted_kernel *k;
    (void)variant, (void)diagnostics;
    UIR_TRY_ALLOCATE(k, uir_allocate_zeroed(allocator, sizeof *k));
    *k = (interpreted_kernel){*allocator, igraph, cancel};
    *out_state = k;
    return UIR_STATUS_OK;
}

static uir_status run_kernel(void *state, const uir_kernel_arguments *arguments, const size_t *sizes, uint32_t threads,
                             uir_diagnostics *diagnostics) {
    const interpreted_kernel *k = state;
    (void)sizes, (void)threads;
    return uir_igraph_interpret(k->igraph, arguments, k->cancel, diagnostics);
}

static const char *no_variant(size_t index) {
    (void)index;
    return NULL;
}

static const uir_target_engine interpreter = {
    .name = "interpreter", .open = open_kernel, .close = close_kernel, .run = run_kernel, .get_variant = no_variant};

const uir_target_engine *uir_engine_get(size_t index) {
    if (index-- == 0) return &interpreter;
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (rows[i].engine->name && index-- == 0) return rows[i].engine;
    return NULL;
}
