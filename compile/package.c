/* The last stages: iGraphs to a package, which runs on the VM as it is, and to native code, which takes over. */
#include "compile/stages.h"
#include "package/plan.h"
#include "planner/planner.h"

uir_status uir_compile_list_igraphs(uir_compile *c) {
    uint32_t count = 0, at = 0;
    for (uint32_t k = 0; k < c->lowering.kernels.count; k++) count += c->lowering.kernels.data[k].lowered.igraphs.count;
    UIR_TRY_ALLOCATE(c->igraphs, uir_allocate_zeroed(&c->allocator, ((size_t)count + 1) * sizeof *c->igraphs));
    c->igraph_count = count;
    for (uint32_t k = 0; k < c->lowering.kernels.count; k++) {
        const uir_igraph_list *list = &c->lowering.kernels.data[k].lowered.igraphs;
        for (uint32_t v = 0; v < list->count; v++) c->igraphs[at++] = list->igraphs[v];
    }
    if (!c->row || !uir_device_is_native(c->row)) return UIR_STATUS_OK;
    return c->target->name_symbols(&c->allocator, c->igraphs, c->igraph_count, &c->names);
}

const char *uir_compile_get_isa(const uir_compile *c) {
    return c->row && uir_device_is_native(c->row) ? c->machine.variant : NULL;
}

uir_status uir_compile_build_native(uir_compile *c, uir_stage stage, const uir_compile_call *call) {
    (void)stage;
    const uir_compile_build *build = call->build;
    const uir_target_build_input input = {.variant = build->isa ? build->isa : c->machine.variant,
                                          .igraphs = c->igraphs,
                                          .count = c->igraph_count,
                                          .folder = build->folder};
    return c->target->build(&c->allocator, build->options, &input, call->diagnostics, build->object);
}

/* Where the kernel's code can run. */
static uint32_t find_domains(const uir_compile *c, const uir_lowering_kernel *kernel) {
    if (!c->host_target || uir_lowering_is_host_kernel(&c->lowering, kernel)) return 1u << UIR_PLAN_ON_HOST;
    return 1u << UIR_PLAN_ON_DEVICE | (uir_target_is_narrowed(c->row) ? 1u << UIR_PLAN_ON_HOST : 0);
}

static uir_status write(const uir_compile *c, uir_arena *scratch, const uir_compile_contents *contents,
                        uir_diagnostics *diagnostics) {
    uint32_t kernel_count = c->lowering.kernels.count,
             native_count = uir_device_is_native(c->row) ? contents->native_count : 0;
    uir_plan_source *sources;
    uir_plan_object *objects;
    const char **symbols, **reasons;
    uir_dim *scratch_bytes;
    UIR_TRY_ALLOCATE(sources, uir_arena_allocate_array(scratch, kernel_count + 1, sizeof *sources));
    UIR_TRY_ALLOCATE(objects, uir_arena_allocate_array(scratch, native_count + 1, sizeof *objects));
    UIR_TRY_ALLOCATE(symbols, uir_arena_allocate_array(scratch, c->igraph_count + 1, sizeof *symbols));
    UIR_TRY_ALLOCATE(scratch_bytes, uir_arena_allocate_array(scratch, c->igraph_count + 1, sizeof *scratch_bytes));
    for (uint32_t k = 0; k < kernel_count; k++) {
        const uir_lowering_kernel *kernel = &c->lowering.kernels.data[k];
        sources[k] = (uir_plan_source){kernel->name, &kernel->lowered.igraphs, find_domains(c, kernel),
                                       kernel->lowered.own_variants, NULL};
    }
    for (uint32_t i = 0; i < c->igraph_count && native_count; i++) {
        symbols[i] = c->names.symbols[i];
        scratch_bytes[i] = c->target->scratch_bytes(c->igraphs[i]);
        if (!scratch_bytes[i].id)
            return UIR_STATUS_OUT_OF_MEMORY; /* kernels fit their device: sizes overflow nothing */
    }
    for (uint32_t i = 0; i < native_count; i++) {
        const uir_compile_native *native = &contents->natives[i];
        objects[i] = (uir_plan_object){.isa = native->isa, .symbols = symbols};
        if (!native->object) continue;
        objects[i].bytes = native->object->bytes;
        objects[i].size = native->object->size;
    }
    const uir_lowering *lowering = &c->lowering;
    UIR_TRY_ALLOCATE(reasons, uir_arena_allocate_array(scratch, lowering->module->nodes.count + 1, sizeof *reasons));
    for (uint32_t i = 0; i < lowering->placed.count; i++) {
        uint32_t kernel = uir_node_get(lowering->module, lowering->placed.data[i].group)->kernel;
        if (kernel) sources[kernel - 1].why = lowering->placed.data[i].why;
    }
    for (uint32_t i = 0; i < lowering->refusals.count; i++)
        reasons[lowering->refusals.data[i].group.id] = lowering->refusals.data[i].why;
    uir_plan_options options = {.objects = objects,
                                .object_count = native_count,
                                .scratch = scratch_bytes,
                                .encode = c->host_target ? c->host_target->encode : c->target->encode,
                                .device = uir_device_has_driver(c->row) ? c->row->name : NULL,
                                .chip = c->machine.description.chip,
                                .no_fallback = contents->no_fallback,
                                .custom = contents->custom,
                                .reasons = reasons,
                                .reason_count = lowering->module->nodes.count,
                                .input_names = c->info.input_names,
                                .output_names = c->info.output_names,
                                .metadata = contents->metadata,
                                .metadata_count = contents->metadata_count};
    return uir_plan_build(c->lowering.module, sources, kernel_count, &options, &c->allocator, diagnostics,
                          contents->sink);
}

uir_status uir_compile_write_package(uir_compile *c, uir_stage stage, const uir_compile_call *call) {
    (void)stage;
    uir_arena scratch;
    uir_arena_init(&scratch, &c->allocator);
    uir_status status = write(c, &scratch, call->contents, call->diagnostics);
    uir_arena_deinit(&scratch);
    return status;
}
