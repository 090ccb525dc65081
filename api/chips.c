/* The devices of the library with the compiler: their names, and their chips by its descriptions. */
#include "api/compiled.h"
#include "compile/targets.h"

#include <string.h>

const char *uir_device_name(size_t index) {
    size_t count = 0;
    while (uir_device_get(count)) count++;
    return index < count ? uir_device_get(index)->name : index == count ? UIR_INTERPRETER_NAME : NULL;
}

static uint32_t find_entry(const uir_device_list *list, const char *name) {
    uint32_t i = 0;
    while (i < list->entries.count && strcmp(list->entries.data[i].name, name) != 0) i++;
    return i;
}

/* Those of the engines that run single kernels: variants of the CPU that this machine executes. */
static uir_status add_variants(uir_device_list *list) {
    const char *name, *variant;
    for (size_t i = 0; (name = uir_kernel_runner_name(i)) != NULL; i++) {
        uint32_t entry = find_entry(list, name);
        for (size_t k = 0; entry < list->entries.count && (variant = uir_kernel_runner_variant(i, k)) != NULL; k++)
            UIR_TRY(uir_device_list_add_chip(list, entry, variant));
    }
    return UIR_STATUS_OK;
}

static uir_status add_narrowed(uir_device_list *list) {
    const uir_device_row *row;
    const char *chip;
    for (size_t i = 0; (row = uir_device_get(i)) != NULL; i++) {
        uint32_t entry = find_entry(list, row->name);
        for (size_t k = 0; entry < list->entries.count && (chip = uir_target_get_chip(row, k)) != NULL; k++)
            UIR_TRY(uir_device_list_add_chip(list, entry, chip));
    }
    return UIR_STATUS_OK;
}

/* The first description is this processor's. */
static uir_status add_described(uir_device_list *list, const uir_machine_list *machines) {
    for (uint32_t i = 1; i < machines->count; i++) {
        uint32_t entry = find_entry(list, machines->devices[i]->name);
        if (entry == list->entries.count)
            UIR_TRY(uir_device_list_add(list, machines->devices[i]->name,
                                        "this build has no driver for it; --interpret runs its kernels on the "
                                        "interpreter, slowly"));
        UIR_TRY(uir_device_list_add_chip(list, entry, machines->devices[i]->chip));
    }
    return UIR_STATUS_OK;
}

uir_status uir_device_list_add_machines(uir_call *call, uir_device_list *list) {
    uir_compile_machines *machines;
    UIR_TRY(add_variants(list));
    UIR_TRY(add_narrowed(list));
    UIR_TRY(uir_compile_machines_create(&list->allocator, NULL, &call->diagnostics, &machines));
    uir_status status = add_described(list, uir_compile_machines_get(machines));
    uir_compile_machines_destroy(machines);
    return status;
}
