#include "backends/devices/devices.h"

#include "base/target_name.h"

static const uir_kernel_format uir_no_format;
static const uir_driver uir_no_driver;

#define UIR_BACKEND(name, target, format, fallback, driver)                                                            \
    extern const uir_kernel_format format, fallback;                                                                   \
    extern const uir_driver driver;
#include "backends/backends.def"
#undef UIR_BACKEND

enum {
#define UIR_BACKEND(name, ...) BACKEND_##name,
#include "backends/backends.def"
#undef UIR_BACKEND
    BACKEND_COUNT
};

static const uir_device_row rows[BACKEND_COUNT] = {
#define UIR_BACKEND(name, target, format, fallback, driver) {#name, BACKEND_##name, {&format, &fallback}, &driver},
#include "backends/backends.def"
#undef UIR_BACKEND
};

uint32_t uir_device_count_formats(const uir_device_row *row) {
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof row->formats / sizeof *row->formats; i++) count += row->formats[i]->name != NULL;
    return count;
}

const uir_device_row *uir_device_get(size_t index) {
    for (size_t i = 0; i < BACKEND_COUNT; i++) {
        if (uir_device_count_formats(&rows[i]) && index-- == 0) return &rows[i];
    }
    return NULL;
}

const uir_device_row *uir_device_find_host(const uir_device_row *row) {
    for (size_t i = 0; i < BACKEND_COUNT && uir_device_has_driver(row); i++)
        if (!uir_device_has_driver(&rows[i]) && rows[i].formats[0] == row->formats[0]) return &rows[i];
    return NULL;
}

const uir_device_row *uir_device_find(const char *device, const char **out_variant) {
    const uir_target_name name = uir_target_name_split(device ? device : rows[0].name);
    const uir_device_row *row;
    if (out_variant) *out_variant = name.variant;
    for (size_t i = 0; (row = uir_device_get(i)) != NULL; i++)
        if (uir_target_name_is(name, row->name)) return row;
    return NULL;
}
