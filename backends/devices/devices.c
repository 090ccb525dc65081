#include "backends/devices/devices.h"

#include "backends/cpu/driver/driver.h"
#include "backends/vm/vm.h"

#include <string.h>

static const uir_device_row rows[] = {
    {"cpu", true, {&uir_cpu_driver, &uir_vm_driver}, 2},
    {"vm", false, {&uir_vm_driver, NULL}, 1},
};

const uir_device_row *uir_device_get(size_t index) {
    return index < sizeof rows / sizeof *rows ? &rows[index] : NULL;
}

const uir_device_row *uir_device_find(const char *device, const char **out_variant) {
    size_t length = device ? strcspn(device, ":") : 0;
    if (out_variant) *out_variant = device && device[length] ? device + length + 1 : NULL;
    if (!device) return &rows[0];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strlen(rows[i].name) == length && !memcmp(rows[i].name, device, length)) return &rows[i];
    return NULL;
}
