/* The table of functions that backends.def names, over this folder's own interfaces. */
#include "backends/cpu/target/target.h"

#include "backends/cpu/target/build.h"
#include "backends/vm/encode/encode.h"

static uir_status describe(const char *variant, uir_arena *arena, uir_diagnostics *diagnostics,
                           uir_target_machine *out) {
    uir_cpu_device cpu;
    (void)arena;
    UIR_TRY(uir_cpu_describe(variant, diagnostics, &cpu));
    *out = (uir_target_machine){cpu.machine, uir_cpu_variant_name(cpu.variant), cpu.runs_here};
    return UIR_STATUS_OK;
}

static void describe_key(const uir_target_machine *machine, uir_text *text) {
    const uir_machine *description = &machine->description;
    uir_text_append_format(text, "%s, %u cores, caches", machine->variant, description->group_count);
    for (size_t i = 0; i < sizeof description->cache_bytes / sizeof *description->cache_bytes; i++)
        uir_text_append_format(text, " %llu", (unsigned long long)description->cache_bytes[i]);
}

/* Every source is a file by itself, of one kernel. */
static uir_status emit(const uir_igraph *igraph, uint32_t index, uir_text *text, uir_diagnostics *diagnostics) {
    (void)index;
    return uir_cpu_emit(&igraph, 1, text, diagnostics);
}

static uir_status check_compiler(const char *variant, uir_diagnostics *diagnostics) {
    uir_cpu_device cpu;
    UIR_TRY(uir_cpu_describe(variant, diagnostics, &cpu));
    const uir_cpu_compile_options options = {.variant = cpu.variant};
    return uir_cpu_check_compiler(&options, diagnostics);
}

static uir_status build(const uir_allocator *allocator, const uir_target_build_options *options,
                        const uir_target_build_input *input, uir_diagnostics *diagnostics,
                        uir_target_object *out_object) {
    uir_cpu_device cpu;
    UIR_TRY(uir_cpu_describe(input->variant, diagnostics, &cpu));
    const uir_cpu_build_options own = {.compile = {.variant = cpu.variant}, .build = *options};
    if (input->sources)
        return uir_cpu_build_sources(allocator, &own, input->sources, input->sources_size, diagnostics, out_object);
    return uir_cpu_build_folder(allocator, &own, input->folder, input->igraphs, input->count, diagnostics, out_object);
}

const uir_target uir_cpu_target = {.name = "cpu",
                                   .describe = describe,
                                   .describe_key = describe_key,
                                   .emit = emit,
                                   .scratch_bytes = uir_cpu_scratch_bytes,
                                   .check_compiler = check_compiler,
                                   .name_symbols = uir_target_name_symbols,
                                   .build = build,
                                   .encode = uir_vm_encode};
