#include "backends/descriptions/descriptions.h"

#include <pthread.h>
#include <string.h>

uir_status uir_descriptions_read(uir_arena *arena, uir_diagnostics *diagnostics, uir_machine_vector *devices) {
    for (uint32_t i = 0; i < uir_description_count; i++)
        UIR_TRY(uir_machine_parse(uir_description_parts[i], uir_description_sizes[i], uir_description_names[i], arena,
                                  diagnostics, devices));
    return UIR_STATUS_OK;
}

/* ---- one of them, for good ---- */
static struct {
    pthread_once_t once;
    uir_allocator allocator;
    uir_arena arena;
    uir_machine_vector machines;
    uir_status status;
} all = {.once = PTHREAD_ONCE_INIT};

static void read_all(void) {
    all.allocator = uir_allocator_system();
    uir_arena_init(&all.arena, &all.allocator);
    all.status = uir_descriptions_read(&all.arena, NULL, &all.machines);
}

uir_status uir_descriptions_find(const char *device, const char *chip, uir_diagnostics *diagnostics,
                                 const uir_machine **out_machine) {
    pthread_once(&all.once, read_all);
    UIR_TRY(all.status);
    for (uint32_t i = 0; i < all.machines.count; i++) {
        *out_machine = all.machines.data[i];
        if (!strcmp((*out_machine)->name, device) && !strcmp((*out_machine)->chip, chip)) return UIR_STATUS_OK;
    }
    *out_machine = NULL;
    return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "no description of chip %s of device %s", chip,
                     device);
}
