/* The last stages: iGraphs to a package, which runs on the VM as it is, and to native code, which takes over. */
#include "compile/stages.h"
#include "package/plan.h"
#include "planner/planner.h"

#include <string.h>

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

/* ---- the device's program ---- */
bool uir_compile_has_program(const uir_compile *c) {
    return c->row && uir_device_has_driver(c->row) && c->target->program;
}

/* The others are kernels of the host's machine. */
static bool is_of_device(const uir_compile *c, const uir_igraph *igraph) {
    return !strcmp(igraph->machine->name, c->machine.description.name);
}

static uir_status list_own(const uir_compile *c, uir_arena *arena, const uir_igraph ***out_igraphs,
                           uint32_t *out_count) {
    *out_count = 0;
    UIR_TRY_ALLOCATE(*out_igraphs, uir_arena_allocate_array(arena, (size_t)c->igraph_count + 1, sizeof **out_igraphs));
    for (uint32_t i = 0; i < c->igraph_count; i++)
        if (is_of_device(c, c->igraphs[i])) (*out_igraphs)[(*out_count)++] = c->igraphs[i];
    return UIR_STATUS_OK;
}

static uir_status build_program(uir_compile *c, const uir_compile_build *build, uir_arena *scratch,
                                uir_diagnostics *diagnostics) {
    static const uir_target_build_options plain;
    const uir_igraph **igraphs;
    uint32_t count;
    UIR_TRY(list_own(c, scratch, &igraphs, &count));
    const uir_target_build_input input = {
        .variant = c->machine.variant, .igraphs = igraphs, .count = count, .folder = build ? build->folder : NULL};
    return c->target->build(&c->allocator, build && build->options ? build->options : &plain, &input, diagnostics,
                            &c->program);
}

uir_status uir_compile_build_folder(const uir_compile *c, const char *folder, const volatile bool *cancel,
                                    uir_arena *arena, uir_diagnostics *diagnostics, uir_target_object *out_object,
                                    const uir_igraph ***out_igraphs, uint32_t *out_count) {
    const uir_target_build_options options = {.cancel = cancel};
    *out_object = (uir_target_object){.allocator = c->allocator};
    if (!uir_compile_has_program(c) && !(c->row && uir_device_is_native(c->row)))
        return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "device %s runs no kernels that are built from sources",
                         c->options.device ? c->options.device : "cpu");
    UIR_TRY(list_own(c, arena, out_igraphs, out_count));
    const uir_target_build_input input = {
        .variant = c->machine.variant, .igraphs = *out_igraphs, .count = *out_count, .folder = folder};
    return c->target->build(&c->allocator, &options, &input, diagnostics, out_object);
}

/* What a plan needs of objects. */
typedef struct plan_objects {
    uir_plan_object *objects;
    uint32_t count;
    const char **symbols; /* by iGraph, as is the next */
    uir_dim *scratch;
} plan_objects;

/* Once for the kernels, unless a folder has its part in it. */
static uir_status add_program(uir_compile *c, const uir_compile_build *build, uir_arena *scratch,
                              uir_diagnostics *diagnostics, plan_objects *out) {
    if (build && c->program.symbols) uir_target_object_deinit(&c->program);
    if (!c->program.symbols) UIR_TRY(build_program(c, build, scratch, diagnostics));
    for (uint32_t i = 0, at = 0; i < c->igraph_count; i++) {
        if (!is_of_device(c, c->igraphs[i])) continue;
        out->symbols[i] = c->program.symbols[at++];
        out->scratch[i] = c->target->scratch_bytes(c->igraphs[i]);
        if (!out->scratch[i].id) return UIR_STATUS_OUT_OF_MEMORY; /* kernels fit their device: sizes overflow nothing */
    }
    out->objects[out->count++] = (uir_plan_object){c->target->program, c->program.bytes, c->program.size, out->symbols};
    return UIR_STATUS_OK;
}

/* ---- the package ---- */
static uir_status add_natives(const uir_compile *c, const uir_compile_contents *contents, plan_objects *out) {
    for (uint32_t i = 0; i < c->igraph_count && contents->native_count; i++) {
        out->symbols[i] = c->names.symbols[i];
        out->scratch[i] = c->target->scratch_bytes(c->igraphs[i]);
        if (!out->scratch[i].id) return UIR_STATUS_OUT_OF_MEMORY; /* as above */
    }
    for (uint32_t i = 0; i < contents->native_count; i++) {
        const uir_compile_native *native = &contents->natives[i];
        uir_plan_object *object = &out->objects[out->count++];
        *object = (uir_plan_object){.isa = native->isa, .symbols = out->symbols};
        if (!native->object) continue;
        object->bytes = native->object->bytes;
        object->size = native->object->size;
    }
    return UIR_STATUS_OK;
}

static uir_status make_objects(uir_compile *c, const uir_compile_call *call, uir_arena *scratch, plan_objects *out) {
    uint32_t native_count = call->contents->native_count;
    UIR_TRY_ALLOCATE(out->objects, uir_arena_allocate_array(scratch, native_count + 2, sizeof *out->objects));
    UIR_TRY_ALLOCATE(out->symbols, uir_arena_allocate_array(scratch, c->igraph_count + 1, sizeof *out->symbols));
    UIR_TRY_ALLOCATE(out->scratch, uir_arena_allocate_array(scratch, c->igraph_count + 1, sizeof *out->scratch));
    if (uir_device_is_native(c->row)) UIR_TRY(add_natives(c, call->contents, out));
    return uir_compile_has_program(c) ? add_program(c, call->build, scratch, call->diagnostics, out) : UIR_STATUS_OK;
}

static uir_status write(uir_compile *c, uir_arena *scratch, const uir_compile_call *call) {
    const uir_compile_contents *contents = call->contents;
    uint32_t kernel_count = c->lowering.kernels.count;
    plan_objects objects = {.count = 0};
    uir_plan_source *sources;
    const char **reasons;
    UIR_TRY(make_objects(c, call, scratch, &objects));
    UIR_TRY_ALLOCATE(sources, uir_arena_allocate_array(scratch, kernel_count + 1, sizeof *sources));
    for (uint32_t k = 0; k < kernel_count; k++) {
        const uir_lowering_kernel *kernel = &c->lowering.kernels.data[k];
        sources[k] = (uir_plan_source){kernel->name, &kernel->lowered.igraphs, find_domains(c, kernel),
                                       kernel->lowered.own_variants, NULL};
    }
    const uir_lowering *lowering = &c->lowering;
    UIR_TRY_ALLOCATE(reasons, uir_arena_allocate_array(scratch, lowering->module->nodes.count + 1, sizeof *reasons));
    for (uint32_t i = 0; i < lowering->placed.count; i++) {
        uint32_t kernel = uir_node_get(lowering->module, lowering->placed.data[i].group)->kernel;
        if (kernel) sources[kernel - 1].why = lowering->placed.data[i].why;
    }
    for (uint32_t i = 0; i < lowering->refusals.count; i++)
        reasons[lowering->refusals.data[i].group.id] = lowering->refusals.data[i].why;
    uir_plan_options options = {.objects = objects.objects,
                                .object_count = objects.count,
                                .scratch = objects.scratch,
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
    return uir_plan_build(c->lowering.module, sources, kernel_count, &options, &c->allocator, call->diagnostics,
                          contents->sink);
}

uir_status uir_compile_write_package(uir_compile *c, uir_stage stage, const uir_compile_call *call) {
    (void)stage;
    uir_arena scratch;
    uir_arena_init(&scratch, &c->allocator);
    uir_status status = write(c, &scratch, call);
    uir_arena_deinit(&scratch);
    return status;
}
