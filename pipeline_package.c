#include "pipeline_package.h"

#include "backends/cpu/driver/driver.h"
#include "backends/vm/vm.h"
#include "planner/planner.h"

#include <string.h>

/* ---- devices ---- */
/* What makes packages. A name may go on with ":variant". */
typedef struct device_row {
    const char *name;
    bool native;
    const uir_driver *drivers[2];
} device_row;

static const device_row rows[] = {
    {"cpu", true, {&uir_cpu_driver, &uir_vm_driver}},
    {"vm", false, {&uir_vm_driver}},
};

static const device_row *find_row(const char *device, const char **out_variant) {
    size_t length = device ? strcspn(device, ":") : 0;
    *out_variant = device && device[length] ? device + length + 1 : NULL;
    if (!device) return &rows[0];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strlen(rows[i].name) == length && !memcmp(rows[i].name, device, length)) return &rows[i];
    return NULL;
}

bool uir_packaging_knows(const char *device) {
    const char *variant;
    return find_row(device, &variant) != NULL;
}

const char *uir_packaging_device(size_t index) {
    return index < sizeof rows / sizeof *rows ? rows[index].name : NULL;
}

const uir_driver *const *uir_packaging_drivers(const char *device, uint32_t *out_count) {
    const char *variant;
    const device_row *row = find_row(device, &variant);
    *out_count = 0;
    if (!row) return NULL;
    while (*out_count < 2 && row->drivers[*out_count]) ++*out_count;
    return row->drivers;
}

/* ---- packaging ---- */
struct uir_packaging {
    uir_allocator allocator;
    uir_arena arena;
    const device_row *row;
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
    p->row = find_row(options->device, &variant);
    if (!p->row)
        return uir_error(diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "no packages are made for the device '%s'",
                         options->device);
    UIR_TRY(uir_cpu_describe(variant, diagnostics, &p->cpu));
    uir_middle_options middle = {.device = &p->cpu.device,
                                 .last = UIR_MIDDLE_RUNS,
                                 .each_alone = options->each_alone,
                                 .progress = options->progress,
                                 .progress_user = options->progress_user};
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

const uir_middle *uir_packaging_get_middle(const uir_packaging *p) {
    return &p->middle;
}

const char *uir_packaging_isa(const uir_packaging *p) {
    return p->row->native ? uir_cpu_variant_name(p->cpu.variant) : NULL;
}

uint32_t uir_packaging_kernel_count(const uir_packaging *p) {
    return p->middle.kernels.count;
}

uir_status uir_packaging_describe(const uir_packaging *p, uir_text *text) {
    uir_text_append_format(text, "uir %s, %s\n", uir_version(), uir_cpu_variant_name(p->cpu.variant));
    for (uint32_t i = 0; i < p->igraph_count; i++) uir_igraph_print(p->igraphs[i], text);
    return uir_text_status(text);
}

uir_status uir_packaging_compile(const uir_packaging *p, const uir_cpu_build_options *options,
                                 uir_diagnostics *diagnostics, uir_cpu_object *out_object) {
    uir_cpu_build_options build = *options;
    build.compile.variant = p->cpu.variant;
    return uir_cpu_build(&p->allocator, &build, p->igraphs, p->igraph_count, diagnostics, out_object);
}

static uir_status write(const uir_packaging *p, uir_arena *scratch, const uir_cpu_object *object,
                        uir_diagnostics *diagnostics, uir_text *bytes) {
    uint32_t kernel_count = p->middle.kernels.count;
    uir_plan_source *sources;
    const char **symbols;
    uir_dim *scratch_bytes;
    UIR_TRY_ALLOCATE(sources, uir_arena_allocate_array(scratch, kernel_count + 1, sizeof *sources));
    UIR_TRY_ALLOCATE(symbols, uir_arena_allocate_array(scratch, p->igraph_count + 1, sizeof *symbols));
    UIR_TRY_ALLOCATE(scratch_bytes, uir_arena_allocate_array(scratch, p->igraph_count + 1, sizeof *scratch_bytes));
    for (uint32_t k = 0; k < kernel_count; k++) {
        const uir_middle_kernel *kernel = &p->middle.kernels.data[k];
        sources[k] = (uir_plan_source){kernel->name, &kernel->lowered.igraphs};
    }
    for (uint32_t i = 0; i < p->igraph_count && p->row->native; i++) {
        symbols[i] = p->names.symbols[i];
        scratch_bytes[i] = uir_cpu_scratch_bytes(p->igraphs[i]);
        if (!scratch_bytes[i].id)
            return uir_error(diagnostics, UIR_STATUS_LIMIT, NULL, "kernel %s needs more memory than can be said",
                             p->igraphs[i]->name);
    }
    uir_plan_object native = {.isa = uir_packaging_isa(p), .symbols = symbols};
    if (object) {
        native.bytes = object->bytes;
        native.size = object->size;
    }
    uir_plan_options options = {
        .objects = &native, .object_count = p->row->native, .scratch = scratch_bytes, .foreign = true};
    return uir_plan_build(p->middle.module, sources, kernel_count, &options, &p->allocator, diagnostics, bytes);
}

uir_status uir_packaging_write(const uir_packaging *p, const uir_cpu_object *object, uir_diagnostics *diagnostics,
                               uir_text *bytes) {
    uir_arena scratch;
    uir_arena_init(&scratch, &p->allocator);
    uir_status status = write(p, &scratch, object, diagnostics, bytes);
    uir_arena_deinit(&scratch);
    return status;
}
