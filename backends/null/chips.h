/* The chips of the null device: names, and how a device's parameter names one.
 *
 * In: the text behind "null:", as "7", "f32" or "f32:7". Out: a row of the table, and the seed behind it. */
#ifndef UIR_BACKENDS_NULL_CHIPS_H
#define UIR_BACKENDS_NULL_CHIPS_H

#include <stddef.h>
#include <string.h>

typedef enum uir_null_chip { UIR_NULL_FULL, UIR_NULL_F32, UIR_NULL_SMALL, UIR_NULL_CHIP_COUNT } uir_null_chip;

static inline const char *uir_null_chip_name(uir_null_chip chip) {
    static const char *const names[UIR_NULL_CHIP_COUNT] = {
        [UIR_NULL_FULL] = "full", [UIR_NULL_F32] = "f32", [UIR_NULL_SMALL] = "small"};
    return names[chip];
}

/* The chip that the parameter begins with, or the first. `*out_seed`: the text behind its colon; NULL: none. */
static inline uir_null_chip uir_null_find_chip(const char *parameter, const char **out_seed) {
    *out_seed = parameter;
    for (int chip = 0; parameter && chip < UIR_NULL_CHIP_COUNT; chip++) {
        const char *name = uir_null_chip_name((uir_null_chip)chip);
        size_t length = strlen(name);
        if (strncmp(parameter, name, length) != 0 || (parameter[length] && parameter[length] != ':')) continue;
        *out_seed = parameter[length] ? parameter + length + 1 : NULL;
        return (uir_null_chip)chip;
    }
    return UIR_NULL_FULL;
}

#endif
