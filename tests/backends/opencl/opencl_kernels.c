/* OpenCL kernels, run: `uir-opencl-kernels SIZES [--device-file FILE] [--from SEED] [--random N] [--instructions]
 * FILE...`.
 *
 * Every kernel of the files, N random ones, from a seed on, and those of every instruction of the chip that
 * $UIR_OPENCL_CHIP names
 * ("cpu" by default), is emitted as OpenCL C, many a program, and run by the driver on the system's first device
 * (tests/backends/kernels.h). Ends with "N passed, M failed, S skipped". */
#include "backends/opencl/driver/opencl.h"
#include "backends/opencl/target/opencl.h"
#include "backends/source/source.h"
#include "tests/backends/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 64, POINTERS = 64, PHASES = 16 };

typedef struct opencl_tests {
    const uir_driver *driver;
    uir_driver_device *device;
    uir_driver_queue *queue;
    uir_driver_code *code;
    const uir_driver_kernel *kernels[BATCH];
} opencl_tests;

static opencl_tests *opencl_of(const kernel_tests *t) {
    return t->user;
}

static bool has_type(uir_dtype dtype) {
    return uir_dtype_bits(dtype) >= 8;
}

/* ---- programs ---- */
static bool load(kernel_tests *t, const uir_igraph *const *kernels, uint32_t count) {
    opencl_tests *o = opencl_of(t);
    uir_text text;
    uir_text_init(&text, &t->h.allocator);
    bool fine = uir_opencl_emit_prelude(kernels, count, &text) == UIR_STATUS_OK;
    for (uint32_t i = 0; i < count && fine; i++)
        fine = uir_opencl_emit_kernel(kernels[i], i, &text, &t->h.diagnostics) == UIR_STATUS_OK;
    const char *dump = getenv("UIR_OPENCL_DUMP");
    FILE *file = dump ? fopen(dump, "wb") : NULL;
    if (file) {
        fwrite(text.data, 1, text.length, file);
        fclose(file);
    }
    const uir_driver_image image = {"opencl-c", text.data, text.length};
    fine = fine && o->driver->load(o->device, &image, &t->h.diagnostics, &o->code) == UIR_STATUS_OK;
    uir_text_deinit(&text);
    if (!fine) kernel_tests_fail(t, "%u kernels from @%s on are no program", count, kernels[0]->name);
    return fine;
}

static bool find(kernel_tests *t, const uir_igraph *g, uint32_t index) {
    opencl_tests *o = opencl_of(t);
    char symbol[UIR_C_SYMBOL_SIZE];
    bool writable[POINTERS];
    uir_kernel_entry entry = {.symbol = symbol,
                              .dim_count = uir_igraph_count_symbols(g, UIR_ISYMBOL_DIM),
                              .tile_count = uir_igraph_count_symbols(g, UIR_ISYMBOL_TILE),
                              .phase_count = g->phases.count,
                              .writable = writable};
    for (uint32_t i = 0; i < g->pointers.count && entry.pointer_count < POINTERS; i++)
        if (g->pointers.data[i].role != UIR_IPOINTER_LOCAL) writable[entry.pointer_count++] = true;
    uir_c_symbol(g, index, symbol);
    if (o->driver->find(o->code, &entry, &t->h.diagnostics, &o->kernels[index]) == UIR_STATUS_OK) return true;
    kernel_tests_fail(t, "@%s is not found", g->name);
    return false;
}

/* ---- running ---- */
typedef struct launched {
    uir_driver_launch launch;
    int64_t symbols[2 * KERNEL_TESTS_MAX_DIMS + 1], indices[PHASES], begins[PHASES];
    uint64_t needed[POINTERS];
    uir_region pointers[POINTERS];
} launched;

static void bind(const kernel_tests *t, uint32_t index, const harness_case *c, launched *l) {
    const opencl_tests *o = opencl_of(t);
    const uir_igraph *g = c->igraph;
    const uir_driver_kernel *k = o->kernels[index];
    int64_t extent, scratch = 0;
    memset(l, 0, sizeof *l);
    memcpy(l->symbols, c->dims, k->dim_count * sizeof *l->symbols);
    memcpy(l->symbols + k->dim_count, c->tiles, k->tile_count * sizeof *l->symbols);
    for (uint32_t p = 0; p < g->phases.count; p++) {
        l->indices[p] = 1;
        for (uint32_t a = 0; a < g->phases.data[p].parallel_count; a++) {
            (void)uir_dim_evaluate(g->dims, g->phases.data[p].parallel[a].extent, c->values, c->bound, c->symbol_count,
                                   &extent);
            l->indices[p] *= extent;
        }
    }
    (void)uir_dim_evaluate(g->dims, uir_opencl_scratch_bytes(g), c->values, c->bound, uir_dims_symbol_count(g->dims),
                           &scratch);
    for (uint32_t i = 0; i < c->count; i++) l->needed[i] = c->size[i];
    l->launch = (uir_driver_launch){.kernel = k,
                                    .symbols = l->symbols,
                                    .dim_count = k->dim_count,
                                    .tile_count = k->tile_count,
                                    .pointer_count = k->pointer_count,
                                    .phase_count = k->phase_count,
                                    .needed = l->needed,
                                    .indices = l->indices,
                                    .pointers = l->pointers,
                                    .begins = l->begins,
                                    .scratch_size = (uint64_t)scratch,
                                    .state = calloc(1, o->driver->state_size(k) + 1)};
}

static uir_status allocate(const kernel_tests *t, uint64_t size, uir_region *out) {
    const opencl_tests *o = opencl_of(t);
    char *host;
    UIR_TRY(o->driver->allocate(o->device, UIR_MEMORY_DEVICE, size + 256, NULL, &out->buffer, &host));
    out->size = size;
    return UIR_STATUS_OK;
}

static uir_status copy(kernel_tests *t, const uir_region *device, void *host, bool to_device) {
    const opencl_tests *o = opencl_of(t);
    const uir_region here = {.size = device->size, .host = host};
    const uir_driver_copy c = {
        to_device ? here : *device, to_device ? *device : here, 1, device->size, device->size, device->size, 0};
    return device->size ? o->driver->copy(o->queue, &c, &t->h.diagnostics) : UIR_STATUS_OK;
}

static uir_status execute(kernel_tests *t, launched *l, harness_case *c) {
    opencl_tests *o = opencl_of(t);
    uir_driver_failure failure;
    uint64_t point;
    UIR_TRY(o->driver->prepare(o->device, &l->launch, &t->h.diagnostics));
    if (l->launch.workspace_size) UIR_TRY(allocate(t, l->launch.workspace_size, &l->launch.workspace));
    for (uint32_t i = 0; i < c->count; i++) {
        UIR_TRY(allocate(t, c->size[i], &l->pointers[i]));
        UIR_TRY(copy(t, &l->pointers[i], c->buffer[i], true));
    }
    for (uint32_t p = 0; p < l->launch.phase_count; p++)
        UIR_TRY(o->driver->launch(o->queue, &l->launch, p, 1, &t->h.diagnostics));
    for (uint32_t i = 0; i < c->count; i++) UIR_TRY(copy(t, &l->pointers[i], c->buffer[i], false));
    UIR_TRY(o->driver->mark(o->queue, &t->h.diagnostics, &point));
    return o->driver->wait(o->queue, point, NULL, &failure);
}

static bool run(kernel_tests *t, uint32_t index, harness_case *c) {
    const opencl_tests *o = opencl_of(t);
    launched l;
    bind(t, index, c, &l);
    bool fine = execute(t, &l, c) == UIR_STATUS_OK;
    if (l.launch.is_prepared) o->driver->retire(o->device, &l.launch);
    for (uint32_t i = 0; i < c->count; i++)
        if (l.pointers[i].buffer) o->driver->release(o->device, l.pointers[i].buffer);
    if (l.launch.workspace.buffer) o->driver->release(o->device, l.launch.workspace.buffer);
    free(l.launch.state);
    return fine;
}

static void run_all(kernel_tests *t) {
    opencl_tests *o = opencl_of(t);
    for (uint32_t first = 0; first < t->count; first += BATCH) {
        uint32_t count = t->count - first < BATCH ? t->count - first : BATCH;
        uir_igraph **kernels = t->kernels + first;
        bool loaded = load(t, (const uir_igraph *const *)kernels, count);
        for (uint32_t i = 0; i < count && loaded; i++)
            if (find(t, kernels[i], i)) kernel_tests_run(t, kernels[i], i);
        if (o->code) o->driver->unload(o->device, o->code);
        o->code = NULL;
        for (uint32_t i = 0; i < count; i++) uir_igraph_destroy(kernels[i]);
    }
}

/* ---- the device ---- */
static uir_status open_device(kernel_tests *t, const char *chip) {
    opencl_tests *o = opencl_of(t);
    const uir_driver_options options = {.allocator = &t->h.allocator, .parameter = chip};
    UIR_TRY(o->driver->open(&options, &t->h.diagnostics, &o->device));
    return o->driver->create_queue(o->device, 8, NULL, &t->h.diagnostics, &o->queue);
}

int main(int argc, char **argv) {
    static opencl_tests own = {.driver = &uir_opencl_driver};
    static kernel_tests t = {.has_type = has_type, .run = run, .user = &own};
    char machine[64];
    const char *chip = getenv("UIR_OPENCL_CHIP") ? getenv("UIR_OPENCL_CHIP") : "cpu";
    snprintf(machine, sizeof machine, "opencl:%s", chip);
    t.machine = machine;
    if (!kernel_tests_read(&t, argc, argv)) {
        fputs("uir-opencl-kernels SIZES [--device-file FILE] [--from SEED] [--random N] [--instructions] FILE...\n",
              stderr);
        return 2;
    }
    if (open_device(&t, chip) != UIR_STATUS_OK) {
        const char *required = getenv("UIR_REQUIRE");
        harness_say(&t.h, "no device");
        if (required && strstr(required, "opencl")) return 1;
        printf("skip: %u kernels: there is no OpenCL device\n0 passed, 0 failed, %u skipped\n", t.count, t.count);
        return 0;
    }
    run_all(&t);
    own.driver->destroy_queue(own.queue);
    own.driver->close(own.device);
    printf("%u kernels\n%llu passed, %llu failed, %llu skipped\n", t.count, (unsigned long long)t.passed,
           (unsigned long long)t.failed, (unsigned long long)t.skipped);
    harness_deinit(&t.h);
    return t.failed != 0 || t.passed == 0;
}
