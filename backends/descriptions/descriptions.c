#include "backends/descriptions/descriptions.h"

uir_status uir_descriptions_read(uir_arena *arena, uir_diagnostics *diagnostics, uir_machine_vector *devices) {
    for (uint32_t i = 0; i < uir_description_count; i++)
        UIR_TRY(uir_machine_parse(uir_description_parts[i], uir_description_sizes[i], uir_description_names[i], arena,
                                  diagnostics, devices));
    return UIR_STATUS_OK;
}
