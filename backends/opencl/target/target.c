/* The OpenCL target's table of functions. */
#include "backends/opencl/chips.h"
#include "backends/opencl/target/opencl.h"

#include "backends/descriptions/descriptions.h"

static const char *find_chip(const char *variant) {
    uir_opencl_parameter parameter;
    return uir_opencl_read_parameter(variant, &parameter) && parameter.chip ? parameter.chip->name : NULL;
}

static uir_status describe(const char *variant, uir_arena *arena, uir_diagnostics *diagnostics,
                           uir_target_machine *out) {
    uir_opencl_parameter parameter;
    const uir_machine *machine;
    if (!uir_opencl_read_parameter(variant, &parameter))
        return uir_error_hint(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "use " UIR_OPENCL_PARAMETERS,
                              "'%s' names no chip and no device of OpenCL", variant);
    const uir_opencl_chip *chip = parameter.chip ? parameter.chip : uir_opencl_get_chip(UIR_OPENCL_GPU);
    UIR_TRY(uir_descriptions_find(uir_opencl_target.name, chip->name, arena, diagnostics, &machine));
    *out = (uir_target_machine){.description = *machine, .variant = chip->name};
    return UIR_STATUS_OK;
}

static void describe_key(const uir_target_machine *machine, uir_text *text) {
    uir_text_append_format(text, "chip %s", machine->variant);
}

/* A whole program of one kernel. */
static uir_status emit(const uir_igraph *igraph, uint32_t index, uir_text *text, uir_diagnostics *diagnostics) {
    UIR_TRY(uir_opencl_emit_prelude(&igraph, 1, text));
    return uir_opencl_emit_kernel(igraph, index, text, diagnostics);
}

const uir_target uir_opencl_target = {.name = "opencl",
                                      .find_chip = find_chip,
                                      .describe = describe,
                                      .describe_key = describe_key,
                                      .emit = emit,
                                      .scratch_bytes = uir_opencl_scratch_bytes,
                                      .name_symbols = uir_target_name_symbols,
                                      .program = "opencl-c",
                                      .build = uir_opencl_build};
