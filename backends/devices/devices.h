/* The devices that packages are made for and run on. In: a name, optionally with ":variant". Out: its row. */
#ifndef UIR_BACKENDS_DEVICES_H
#define UIR_BACKENDS_DEVICES_H

#include "runtime/device.h"

typedef struct uir_device_row {
    const char *name;
    bool native;                  /* its packages may contain native code */
    const uir_driver *drivers[2]; /* in order of preference; NULL past the last */
    uint32_t driver_count;
} uir_device_row;

/* NULL past the end. */
const uir_device_row *uir_device_get(size_t index);
/* Finds a device; `device` NULL: the first. `out_variant` may be NULL; `*out_variant` is the text after the colon, or
 * NULL. NULL for an unknown name. */
const uir_device_row *uir_device_find(const char *device, const char **out_variant);

#endif
