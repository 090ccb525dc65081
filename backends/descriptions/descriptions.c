#include "backends/descriptions/descriptions.h"

#include <string.h>

uir_status uir_descriptions_read(uir_arena *arena, uir_diagnostics *diagnostics, uir_machine_vector *devices) {
    for (uint32_t i = 0; i < uir_description_count; i++)
        UIR_TRY(uir_machine_parse(uir_description_parts[i], uir_description_sizes[i], uir_description_names[i], arena,
                                  diagnostics, devices));
    return UIR_STATUS_OK;
}

/* A file lies in the folder of its device. */
static bool is_of_device(const char *file, const char *device) {
    size_t length = strlen(device);
    return !strncmp(file, device, length) && file[length] == '/';
}

uir_status uir_descriptions_find(const char *device, const char *chip, uir_arena *arena, uir_diagnostics *diagnostics,
                                 const uir_machine **out_machine) {
    uir_machine_vector machines = {0};
    for (uint32_t i = 0; i < uir_description_count; i++)
        if (is_of_device(uir_description_names[i], device))
            UIR_TRY(uir_machine_parse(uir_description_parts[i], uir_description_sizes[i], uir_description_names[i],
                                      arena, diagnostics, &machines));
    for (uint32_t i = 0; i < machines.count; i++) {
        *out_machine = machines.data[i];
        if (!strcmp((*out_machine)->name, device) && !strcmp((*out_machine)->chip, chip)) return UIR_STATUS_OK;
    }
    *out_machine = NULL;
    return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "no description of chip %s of device %s", chip,
                     device);
}
