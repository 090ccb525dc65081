/* The devices that packages are made for and run on: the rows of backends.def, as the runtime sees them.
 *
 * In: a name, optionally with ":variant". Out: its row. */
#ifndef UIR_BACKENDS_DEVICES_H
#define UIR_BACKENDS_DEVICES_H

#include "runtime/driver.h"

typedef struct uir_device_row {
    const char *name;
    size_t backend;                      /* its number in backends.def */
    const uir_kernel_format *formats[2]; /* in order of preference; those without a name are none */
    const uir_driver *driver;            /* of a device with memory of its own; without a name: none */
} uir_device_row;

/* NULL past the end. */
const uir_device_row *uir_device_get(size_t index);
/* Finds a device; `device` NULL: the first. `out_variant` may be NULL; `*out_variant` is the text after the colon, or
 * NULL. NULL for an unknown name. */
const uir_device_row *uir_device_find(const char *device, const char **out_variant);
/* Number of its formats. */
uint32_t uir_device_count_formats(const uir_device_row *row);
/* Whether it has memory of its own; its formats are the host's. */
static inline bool uir_device_has_driver(const uir_device_row *row) {
    return row->driver->name != NULL;
}
/* The device that is the host of one with memory of its own: it runs the same formats. NULL: the device is the host. */
const uir_device_row *uir_device_find_host(const uir_device_row *row);
/* Whether its packages may contain native code. */
static inline bool uir_device_is_native(const uir_device_row *row) {
    return row->formats[0]->native;
}

#endif
