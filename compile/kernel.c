/* The table of what runs kernels. */
#include "compile/kernel.h"

#include "backends/cpu/target/cpu.h"
#include "backends/descriptions/descriptions.h"
#include "backends/null/target/null.h"
#include "backends/vm/encode/encode.h"
#include "backends/vm/vm.h"

#include <stdio.h>
#include <string.h>

/* ---- devices ---- */
struct uir_compile_devices {
    uir_allocator allocator;
    uir_arena arena;
    uir_cpu_device cpu;
    uir_device_vector devices;
    uir_device_list list;
};

static uir_status read_devices(uir_compile_devices *d, const char *cpu_variant, uir_diagnostics *diagnostics) {
    UIR_TRY(uir_cpu_describe(cpu_variant, diagnostics, &d->cpu));
    UIR_TRY(uir_vector_push(&d->arena, &d->devices, &d->cpu.device));
    UIR_TRY(uir_descriptions_read(&d->arena, diagnostics, &d->devices));
    d->list = (uir_device_list){d->devices.data, d->devices.count};
    return UIR_STATUS_OK;
}

uir_status uir_compile_devices_create(const uir_allocator *allocator, const char *cpu_variant,
                                      uir_diagnostics *diagnostics, uir_compile_devices **out_devices) {
    uir_compile_devices *d;
    *out_devices = NULL;
    UIR_TRY_ALLOCATE(d, uir_allocate_zeroed(allocator, sizeof *d));
    d->allocator = *allocator;
    uir_arena_init(&d->arena, allocator);
    uir_status status = read_devices(d, cpu_variant, diagnostics);
    if (status != UIR_STATUS_OK) {
        uir_compile_devices_destroy(d);
        return status;
    }
    *out_devices = d;
    return UIR_STATUS_OK;
}

static bool has_name(const uir_device_vector *devices, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(devices->data[i]->name, name)) return true;
    return false;
}

uir_status uir_compile_devices_add(uir_compile_devices *d, const char *text, size_t length, const char *file,
                                   uir_diagnostics *diagnostics, const uir_device **out_first) {
    uir_device_vector all = {0}; /* the processor this runs on, whose description is no file's; then the file's own */
    UIR_TRY(uir_vector_push(&d->arena, &all, d->devices.data[0]));
    UIR_TRY(uir_device_parse(text, length, file, &d->arena, diagnostics, &all));
    uint32_t own = all.count;
    *out_first = all.data[1];
    for (uint32_t i = 1; i < d->devices.count; i++)
        if (!has_name(&all, own, d->devices.data[i]->name))
            UIR_TRY(uir_vector_push(&d->arena, &all, d->devices.data[i]));
    d->devices = all;
    d->list = (uir_device_list){d->devices.data, d->devices.count};
    return UIR_STATUS_OK;
}

uir_status uir_compile_devices_find(const uir_compile_devices *d, const char *name, uir_diagnostics *diagnostics,
                                    const uir_device **out_device) {
    size_t length = strcspn(name, ":"), used = 0;
    const char *chip = name[length] ? name + length + 1 : NULL;
    char known[512] = "";
    for (uint32_t i = 0; i < d->devices.count; i++) {
        const uir_device *device = d->devices.data[i];
        bool named = strlen(device->name) == length && !memcmp(device->name, name, length);
        *out_device = device;
        if (named && (!chip || !i || !strcmp(device->chip, chip))) return UIR_STATUS_OK;
        if (used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, i ? ", %s%s%s" : "%s%s%s", device->name,
                                     i ? ":" : "", i ? device->chip : "[:VARIANT]");
    }
    *out_device = NULL;
    return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "the devices are %s; '%s' is unknown", known,
                     name);
}

void uir_compile_devices_destroy(uir_compile_devices *d) {
    if (!d) return;
    uir_allocator allocator = d->allocator;
    uir_arena_deinit(&d->arena);
    uir_release(&allocator, d, sizeof *d);
}

const uir_device_list *uir_compile_devices_get(const uir_compile_devices *d) {
    return &d->list;
}

/* ---- emitters ---- */
/* Every source is a file by itself, of one kernel. */
static uir_status cpu_emit(const uir_igraph *igraph, uint32_t index, uir_text *text, uir_diagnostics *diagnostics) {
    (void)index;
    return uir_cpu_emit(&igraph, 1, text, diagnostics);
}

static const struct emitter_row {
    const char *device; /* whose kernels it is for where none is named */
    uir_status (*emit)(const uir_igraph *igraph, uint32_t index, uir_text *text, uir_diagnostics *diagnostics);
} emitters[] = {
    {"cpu", cpu_emit},
    {"null", uir_null_emit},
};
enum { EMITTER_COUNT = sizeof emitters / sizeof emitters[0] };

const char *uir_compile_emitter_name(size_t index) {
    return index < EMITTER_COUNT ? emitters[index].device : NULL;
}

uir_status uir_compile_emit_kernel(const uir_igraph *igraph, const char *emitter, uint32_t index, uir_text *text,
                                   uir_diagnostics *diagnostics) {
    const char *name = emitter ? emitter : igraph->device->name;
    for (size_t i = 0; i < EMITTER_COUNT; i++)
        if (!strcmp(emitters[i].device, name)) return emitters[i].emit(igraph, index, text, diagnostics);
    if (emitter) return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "unknown emitter '%s'", emitter);
    return uir_error(diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                     "no emitter for the device '%s'; see docs/porting.md to write one, or use the emitter 'null', "
                     "which prints kernels of any device for an imaginary machine",
                     name);
}

/* ---- runners ---- */
struct uir_kernel_runner {
    uir_allocator allocator;
    const struct runner_row *row;
    const uir_igraph *igraph;
    uir_vm_kernel *vm;
    uir_cpu_module *cpu;
    const volatile bool *cancel;
    char variant[32]; /* after the colon; "" for none */
};

typedef struct runner_row {
    const char *name;
    const char *device; /* whose kernels it runs; NULL: any device's */
    uir_status (*open)(uir_kernel_runner *runner, uir_diagnostics *diagnostics);
    uir_status (*run)(uir_kernel_runner *runner, const uir_kernel_arguments *arguments, const size_t *sizes,
                      uint32_t threads, uir_diagnostics *diagnostics);
    const char *(*variant)(size_t index); /* names after the colon; NULL past the end */
} runner_row;

static uir_status interpreter_open(uir_kernel_runner *runner, uir_diagnostics *diagnostics) {
    (void)runner, (void)diagnostics;
    return UIR_STATUS_OK;
}

static uir_status interpreter_run(uir_kernel_runner *runner, const uir_kernel_arguments *arguments, const size_t *sizes,
                                  uint32_t threads, uir_diagnostics *diagnostics) {
    (void)sizes, (void)threads;
    return uir_igraph_interpret(runner->igraph, arguments, runner->cancel, diagnostics);
}

static uir_status vm_open(uir_kernel_runner *runner, uir_diagnostics *diagnostics) {
    uir_text bytes;
    uir_text_init(&bytes, &runner->allocator);
    uir_status status = uir_vm_encode(runner->igraph, diagnostics, &bytes);
    if (status == UIR_STATUS_OK)
        status = uir_vm_load(&runner->allocator, bytes.data, bytes.length, diagnostics, &runner->vm);
    uir_text_deinit(&bytes);
    return status;
}

static uir_status vm_run(uir_kernel_runner *runner, const uir_kernel_arguments *arguments, const size_t *sizes,
                         uint32_t threads, uir_diagnostics *diagnostics) {
    uir_vm_options options = {.isa = runner->variant[0] ? runner->variant : NULL, .cancel = runner->cancel};
    (void)threads;
    return uir_vm_run(runner->vm, arguments, sizes, &options, diagnostics);
}

static const char *vm_variant(size_t index) {
    const char *name;
    return uir_vm_isa(index, &name) ? name : NULL;
}

static uir_status cpu_open(uir_kernel_runner *runner, uir_diagnostics *diagnostics) {
    uir_cpu_device device;
    uir_text source;
    UIR_TRY(uir_cpu_describe(runner->variant[0] ? runner->variant : NULL, diagnostics, &device));
    if (!device.runs_here)
        return uir_error(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, "this machine cannot run '%s' kernels",
                         uir_cpu_variant_name(device.variant));
    uir_text_init(&source, &runner->allocator);
    uir_status status = cpu_emit(runner->igraph, 0, &source, diagnostics);
    uir_cpu_compile_options options = {.variant = device.variant, .cancel = runner->cancel};
    if (status == UIR_STATUS_OK)
        status = uir_cpu_compile(&runner->allocator, &options, source.data, source.length, diagnostics, &runner->cpu);
    uir_text_deinit(&source);
    return status;
}

static uir_status cpu_run(uir_kernel_runner *runner, const uir_kernel_arguments *arguments, const size_t *sizes,
                          uint32_t threads, uir_diagnostics *diagnostics) {
    (void)sizes;
    return uir_cpu_run(runner->cpu, runner->igraph, 0, arguments, threads, diagnostics);
}

static const char *cpu_variant(size_t index) {
    for (int v = 0; v < UIR_CPU_VARIANT_COUNT; v++) {
        if (uir_cpu_variant_runs_here((uir_cpu_variant)v) && index-- == 0)
            return uir_cpu_variant_name((uir_cpu_variant)v);
    }
    return NULL;
}

static const char *no_variant(size_t index) {
    (void)index;
    return NULL;
}

static const runner_row rows[] = {
    {"interpreter", NULL, interpreter_open, interpreter_run, no_variant},
    {"vm", NULL, vm_open, vm_run, vm_variant},
    {"cpu", "cpu", cpu_open, cpu_run, cpu_variant},
};
enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

const char *uir_kernel_runner_name(size_t index) {
    return index < ROW_COUNT ? rows[index].name : NULL;
}

const char *uir_kernel_runner_variant(size_t index, size_t variant) {
    return index < ROW_COUNT ? rows[index].variant(variant) : NULL;
}

static const runner_row *find_row(const char *name, size_t length) {
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (strlen(rows[i].name) == length && !memcmp(rows[i].name, name, length)) return &rows[i];
    }
    return NULL;
}

static uir_status check_variant(const runner_row *row, const char *variant, uir_diagnostics *diagnostics) {
    char have[160] = "";
    for (size_t i = 0; row->variant(i); i++) {
        size_t used = strlen(have);
        if (!strcmp(row->variant(i), variant)) return UIR_STATUS_OK;
        snprintf(have + used, sizeof have - used, "%s%s", i ? ", " : "", row->variant(i));
    }
    if (!have[0])
        return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "'%s' has no variants: leave out ':%s'",
                         row->name, variant);
    return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                     "'%s' has no variant '%s' on this machine; it has %s", row->name, variant, have);
}

uir_status uir_kernel_runner_check(const char *name, uir_diagnostics *diagnostics) {
    const char *colon = strchr(name, ':');
    const runner_row *row = find_row(name, colon ? (size_t)(colon - name) : strlen(name));
    if (row) return colon ? check_variant(row, colon + 1, diagnostics) : UIR_STATUS_OK;
    char have[160] = "";
    for (size_t i = 0; i < ROW_COUNT; i++)
        snprintf(have + strlen(have), sizeof have - strlen(have), "%s%s", i ? ", " : "", rows[i].name);
    return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "unknown runner of kernels '%s'; use one of %s",
                     name, have);
}

uir_status uir_kernel_runner_create(const uir_allocator *allocator, const char *name, const uir_igraph *igraph,
                                    const volatile bool *cancel, uir_diagnostics *diagnostics,
                                    uir_kernel_runner **out_runner) {
    const char *colon = strchr(name, ':');
    const runner_row *row = find_row(name, colon ? (size_t)(colon - name) : strlen(name));
    uir_kernel_runner *runner;
    *out_runner = NULL;
    UIR_TRY(uir_kernel_runner_check(name, diagnostics));
    if (row->device && strcmp(row->device, igraph->device->name)) {
        return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                         "kernel @%s is for '%s': '%s' cannot run it, the interpreter can", igraph->name,
                         igraph->device->name, name);
    }
    UIR_TRY_ALLOCATE(runner, uir_allocate_zeroed(allocator, sizeof *runner));
    runner->allocator = *allocator;
    runner->row = row;
    runner->igraph = igraph;
    runner->cancel = cancel;
    snprintf(runner->variant, sizeof runner->variant, "%s", colon ? colon + 1 : "");
    uir_status status = row->open(runner, diagnostics);
    if (status != UIR_STATUS_OK) {
        uir_kernel_runner_destroy(runner);
        return status;
    }
    *out_runner = runner;
    return UIR_STATUS_OK;
}

void uir_kernel_runner_destroy(uir_kernel_runner *runner) {
    if (!runner) return;
    uir_allocator allocator = runner->allocator;
    uir_vm_destroy(runner->vm);
    uir_cpu_module_destroy(runner->cpu);
    uir_release(&allocator, runner, sizeof *runner);
}

uir_status uir_kernel_runner_run(uir_kernel_runner *runner, const uir_kernel_arguments *arguments, const size_t *sizes,
                                 uint32_t threads, uir_diagnostics *diagnostics) {
    return runner->row->run(runner, arguments, sizes, threads, diagnostics);
}
