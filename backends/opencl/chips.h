/* The chips of OpenCL devices, and how a device's parameter names one.
 *
 * In: the text behind "opencl:", as "gpu", "1" or "cpu:1". Out: a row of the table, which any device that has enough
 * may run, and the number of a device. */
#ifndef UIR_BACKENDS_OPENCL_CHIPS_H
#define UIR_BACKENDS_OPENCL_CHIPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What the kernels of a chip need of a device: the limits of its description in opencl.device. */
typedef struct uir_opencl_chip {
    const char *name;
    uint32_t work_group;   /* work-items */
    uint32_t local_memory; /* bytes of a work-group */
    bool needs_f64;
} uir_opencl_chip;

enum { UIR_OPENCL_GPU, UIR_OPENCL_CPU, UIR_OPENCL_CHIPS };

static inline const uir_opencl_chip *uir_opencl_get_chip(size_t index) {
    static const uir_opencl_chip chips[UIR_OPENCL_CHIPS] = {
        [UIR_OPENCL_GPU] = {"gpu", 256, 16384, false},
        [UIR_OPENCL_CPU] = {"cpu", 1, 0, true},
    };
    return index < UIR_OPENCL_CHIPS ? &chips[index] : NULL;
}

typedef struct uir_opencl_parameter {
    const uir_opencl_chip *chip; /* NULL: that of the device */
    uint32_t device;             /* its number */
    bool has_device;
} uir_opencl_parameter;

#define UIR_OPENCL_PARAMETERS "gpu or cpu, the number of a device, or both, as opencl:gpu:1"

/* CHIP, NUMBER or CHIP:NUMBER; NULL: neither. False for another text. */
static inline bool uir_opencl_read_parameter(const char *text, uir_opencl_parameter *out) {
    *out = (uir_opencl_parameter){.chip = NULL};
    for (size_t i = 0; text && i < UIR_OPENCL_CHIPS; i++) {
        const uir_opencl_chip *chip = uir_opencl_get_chip(i);
        size_t length = strlen(chip->name);
        if (strncmp(text, chip->name, length) != 0 || (text[length] && text[length] != ':')) continue;
        out->chip = chip;
        text = text[length] ? text + length + 1 : NULL;
        break;
    }
    if (!text) return true;
    out->has_device = true;
    size_t digits = strspn(text, "0123456789");
    for (size_t i = 0; i < digits && i < 4; i++) out->device = out->device * 10 + (uint32_t)(text[i] - '0');
    return digits && digits < 5 && !text[digits];
}

#endif
