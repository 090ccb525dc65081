/* The devices that packages are made for and run on. In: a name, which may go on with ":variant". Out: its row. */
#ifndef UIR_BACKENDS_DEVICES_H
#define UIR_BACKENDS_DEVICES_H

#include "runtime/device.h"

typedef struct uir_device_row {
    const char *name;
    bool native;                  /* its packages may hold compiled kernels */
    const uir_driver *drivers[2]; /* by preference; NULL past the last */
    uint32_t driver_count;
} uir_device_row;

/* NULL past the end. */
const uir_device_row *uir_device_get(size_t index);
/* NULL: the first. `*out_variant` is what follows the colon, or NULL; may be NULL. NULL for a name that is none. */
const uir_device_row *uir_device_find(const char *device, const char **out_variant);

#endif
