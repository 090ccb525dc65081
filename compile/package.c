#include "compile/package.h"

#include "api/device.h"
#include "planner/planner.h"

/* ---- devices ---- */
bool uir_packaging_knows(const char *device) {
    return uir_device_find(device, NULL) != NULL;
}

const char *uir_packaging_device(size_t index) {
    const uir_device_row *row = uir_device_get(index);
    return row ? row->name : NULL;
}

const uir_driver *const *uir_packaging_drivers(const char *device, uint32_t *out_count) {
    const uir_device_row *row = uir_device_find(device, NULL);
    *out_count = row ? row->driver_count : 0;
    return row ? row->drivers : NULL;
}

/* ---- packaging ---- */
struct uir_packaging {
    uir_allocator allocator;
    uir_arena arena;
    const uir_device_row *row;
    uir_cpu_device cpu;
    uir_middle middle;
    const uir_igraph **igraphs; /* all variants of all kernels */
    uint32_t igraph_count;
    uir_cpu_object names; /* symbols only */
};

static uir_status list_igraphs(uir_packaging *p) {
    for (uint32_t k = 0; k < p->middle.kernels.count; k++)
        p->igraph_count += p->middle.kernels.data[k].lowered.igraphs.count;
    UIR_TRY_ALLOCATE(p->igraphs, uir_arena_allocate_array(&p->arena, p->igraph_count + 1, sizeof *p->igraphs));
    uint32_t at = 0;
    for (uint32_t k = 0; k < p->middle.kernels.count; k++) {
        const uir_igraph_list *list = &p->middle.kernels.data[k].lowered.igraphs;
        for (uint32_t v = 0; v < list->count; v++) p->igraphs[at++] = list->igraphs[v];
    }
    if (!p->row->native) return UIR_STATUS_OK;
    return uir_cpu_build_symbols(&p->allocator, p->igraphs, p->igraph_count, &p->names);
}

static uir_status fill(uir_packaging *p, uir_module *module, const uir_packaging_options *options,
                       uir_diagnostics *diagnostics) {
    const char *variant;
    p->row = uir_device_find(options->device, &variant);
    if (!p->row)
        return uir_error(diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "no packages are made for the device '%s'",
                         options->device);
    UIR_TRY(uir_cpu_describe(variant, diagnostics, &p->cpu));
    uir_middle_options middle = {.device = &p->cpu.device,
                                 .last = UIR_MIDDLE_RUNS,
                                 .within_nodes = options->within_nodes,
                                 .progress = options->progress};
    UIR_TRY(uir_middle_run(module, &middle, &p->allocator, diagnostics, &p->middle));
    return list_igraphs(p);
}

uir_status uir_packaging_create(uir_module *module, const uir_packaging_options *options,
                                const uir_allocator *allocator, uir_diagnostics *diagnostics,
                                uir_packaging **out_packaging) {
    uir_packaging *p;
    *out_packaging = NULL;
    UIR_TRY_ALLOCATE(p, uir_allocate_zeroed(allocator, sizeof *p));
    p->allocator = *allocator;
    uir_arena_init(&p->arena, allocator);
    uir_status status = fill(p, module, options, diagnostics);
    if (status == UIR_STATUS_OK)
        *out_packaging = p;
    else
        uir_packaging_destroy(p);
    return status;
}

void uir_packaging_destroy(uir_packaging *p) {
    if (!p) return;
    uir_allocator allocator = p->allocator;
    if (p->names.symbols) uir_cpu_object_deinit(&p->names);
    uir_middle_deinit(&p->middle);
    uir_arena_deinit(&p->arena);
    uir_release(&allocator, p, sizeof *p);
}

const char *uir_packaging_isa(const uir_packaging *p) {
    return p->row->native ? uir_cpu_variant_name(p->cpu.variant) : NULL;
}

uint32_t uir_packaging_kernel_count(const uir_packaging *p) {
    return p->middle.kernels.count;
}

uir_status uir_packaging_describe(const uir_packaging *p, uir_text *text) {
    uir_text_append_format(text, "%s\n", uir_cpu_variant_name(p->cpu.variant));
    for (uint32_t i = 0; i < p->igraph_count; i++) uir_igraph_print(p->igraphs[i], text);
    return uir_text_status(text);
}

uir_status uir_packaging_compile(const uir_packaging *p, const uir_cpu_build_options *options,
                                 uir_diagnostics *diagnostics, uir_cpu_object *out_object) {
    return uir_packaging_compile_for(p, uir_packaging_isa(p), options, diagnostics, out_object);
}

uir_status uir_packaging_compile_for(const uir_packaging *p, const char *isa, const uir_cpu_build_options *options,
                                     uir_diagnostics *diagnostics, uir_cpu_object *out_object) {
    uir_cpu_build_options build = *options;
    uir_cpu_device device;
    UIR_TRY(uir_cpu_describe(isa, diagnostics, &device));
    build.compile.variant = device.variant;
    return uir_cpu_build(&p->allocator, &build, p->igraphs, p->igraph_count, diagnostics, out_object);
}

uir_status uir_packaging_compile_folder(const uir_packaging *p, const uir_cpu_build_options *options,
                                        const char *folder, uir_diagnostics *diagnostics, uir_cpu_object *out_object) {
    uir_cpu_build_options build = *options;
    build.compile.variant = p->cpu.variant;
    return uir_cpu_build_folder(&p->allocator, &build, folder, p->igraphs, p->igraph_count, diagnostics, out_object);
}

static uir_status write(const uir_packaging *p, uir_arena *scratch, const uir_packaging_contents *contents,
                        uir_diagnostics *diagnostics, const uir_package_sink *sink) {
    uint32_t kernel_count = p->middle.kernels.count, native_count = p->row->native ? contents->native_count : 0;
    uir_plan_source *sources;
    uir_plan_object *objects;
    const char **symbols, **reasons;
    uir_dim *scratch_bytes;
    UIR_TRY_ALLOCATE(sources, uir_arena_allocate_array(scratch, kernel_count + 1, sizeof *sources));
    UIR_TRY_ALLOCATE(objects, uir_arena_allocate_array(scratch, native_count + 1, sizeof *objects));
    UIR_TRY_ALLOCATE(symbols, uir_arena_allocate_array(scratch, p->igraph_count + 1, sizeof *symbols));
    UIR_TRY_ALLOCATE(scratch_bytes, uir_arena_allocate_array(scratch, p->igraph_count + 1, sizeof *scratch_bytes));
    for (uint32_t k = 0; k < kernel_count; k++) {
        const uir_middle_kernel *kernel = &p->middle.kernels.data[k];
        sources[k] = (uir_plan_source){kernel->name, &kernel->lowered.igraphs};
    }
    for (uint32_t i = 0; i < p->igraph_count && native_count; i++) {
        symbols[i] = p->names.symbols[i];
        scratch_bytes[i] = uir_cpu_scratch_bytes(p->igraphs[i]);
        if (!scratch_bytes[i].id)
            return UIR_STATUS_OUT_OF_MEMORY; /* kernels fit their device: sizes overflow nothing */
    }
    for (uint32_t i = 0; i < native_count; i++) {
        const uir_packaging_native *native = &contents->natives[i];
        objects[i] = (uir_plan_object){.isa = native->isa, .symbols = symbols};
        if (!native->object) continue;
        objects[i].bytes = native->object->bytes;
        objects[i].size = native->object->size;
    }
    const uir_middle *middle = &p->middle;
    UIR_TRY_ALLOCATE(reasons, uir_arena_allocate_array(scratch, middle->module->nodes.count + 1, sizeof *reasons));
    for (uint32_t i = 0; i < middle->refusals.count; i++)
        reasons[middle->refusals.data[i].group.id] = middle->refusals.data[i].why;
    uir_plan_options options = {.objects = objects,
                                .object_count = native_count,
                                .scratch = scratch_bytes,
                                .foreign = contents->foreign,
                                .reasons = reasons,
                                .reason_count = middle->module->nodes.count,
                                .input_names = contents->input_names,
                                .output_names = contents->output_names,
                                .metadata = contents->metadata,
                                .metadata_count = contents->metadata_count};
    return uir_plan_build(p->middle.module, sources, kernel_count, &options, &p->allocator, diagnostics, sink);
}

uir_status uir_packaging_write_contents(const uir_packaging *p, const uir_packaging_contents *contents,
                                        uir_diagnostics *diagnostics, const uir_package_sink *sink) {
    uir_arena scratch;
    uir_arena_init(&scratch, &p->allocator);
    uir_status status = write(p, &scratch, contents, diagnostics, sink);
    uir_arena_deinit(&scratch);
    return status;
}
