#include "compile/kernel.h"
#include "compile/device_kernel.h"

#include "backends/descriptions/descriptions.h"
#include "base/target_name.h"
#include "compile/targets.h"

#include <stdio.h>
#include <string.h>

/* ---- devices ---- */
struct uir_compile_machines {
    uir_allocator allocator;
    uir_arena arena;
    uir_target_machine here;
    uir_machine_vector devices;
    uir_machine_list list;
};

static uir_status read_devices(uir_compile_machines *d, const char *device, uir_diagnostics *diagnostics) {
    const uir_target *target = uir_target_of(uir_device_find(NULL, NULL));
    const uir_target_name named = uir_target_name_split(device ? device : target->name);
    const char *variant = uir_target_name_is(named, target->name) ? named.variant : NULL;
    UIR_TRY(target->describe(variant, diagnostics, &d->here));
    UIR_TRY(uir_vector_push(&d->arena, &d->devices, &d->here.description));
    UIR_TRY(uir_descriptions_read(&d->arena, diagnostics, &d->devices));
    d->list = (uir_machine_list){d->devices.data, d->devices.count};
    return UIR_STATUS_OK;
}

uir_status uir_compile_machines_create(const uir_allocator *allocator, const char *device, uir_diagnostics *diagnostics,
                                       uir_compile_machines **out_devices) {
    uir_compile_machines *d;
    *out_devices = NULL;
    UIR_TRY_ALLOCATE(d, uir_allocate_zeroed(allocator, sizeof *d));
    d->allocator = *allocator;
    uir_arena_init(&d->arena, allocator);
    uir_status status = read_devices(d, device, diagnostics);
    if (status != UIR_STATUS_OK) {
        uir_compile_machines_destroy(d);
        return status;
    }
    *out_devices = d;
    return UIR_STATUS_OK;
}

static bool has_name(const uir_machine_vector *devices, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(devices->data[i]->name, name)) return true;
    return false;
}

uir_status uir_compile_machines_add(uir_compile_machines *d, const char *text, size_t length, const char *file,
                                    uir_diagnostics *diagnostics, const uir_machine **out_first) {
    uir_machine_vector all = {0}; /* the processor this runs on, whose description is no file's; then the file's own */
    UIR_TRY(uir_vector_push(&d->arena, &all, d->devices.data[0]));
    UIR_TRY(uir_machine_parse(text, length, file, &d->arena, diagnostics, &all));
    uint32_t own = all.count;
    *out_first = all.data[1];
    for (uint32_t i = 1; i < d->devices.count; i++)
        if (!has_name(&all, own, d->devices.data[i]->name))
            UIR_TRY(uir_vector_push(&d->arena, &all, d->devices.data[i]));
    d->devices = all;
    d->list = (uir_machine_list){d->devices.data, d->devices.count};
    return UIR_STATUS_OK;
}

typedef struct named_machines {
    const uir_machine_vector *devices;
    uir_target_name wanted;
} named_machines;

static const char *get_machine_name(void *user, size_t index) {
    const named_machines *named = user;
    return index < named->devices->count ? named->devices->data[index]->name : NULL;
}

/* Of the machine that is wanted. */
static const char *get_chip_name(void *user, size_t index) {
    const named_machines *named = user;
    for (uint32_t i = 0; i < named->devices->count; i++)
        if (uir_target_name_is(named->wanted, named->devices->data[i]->name) && index-- == 0)
            return named->devices->data[i]->chip;
    return NULL;
}

/* The machine, or its chip, that an unknown name may mean, as the end of a message; "" none. */
static const char *guess_machine(const uir_machine_vector *devices, uir_target_name wanted, char *buffer,
                                 size_t capacity) {
    named_machines named = {devices, wanted};
    char word[64];
    bool is_chip = wanted.variant && get_chip_name(&named, 0);
    snprintf(word, sizeof word, "%.*s", (int)wanted.length, wanted.name);
    const char *meant = is_chip ? uir_find_nearest(wanted.variant, get_chip_name, &named)
                                : uir_find_nearest(word, get_machine_name, &named);
    *buffer = 0;
    if (meant) snprintf(buffer, capacity, "; did you mean '%s%s%s'?", is_chip ? word : "", is_chip ? ":" : "", meant);
    return buffer;
}

uir_status uir_compile_machines_find(const uir_compile_machines *d, const char *name, uir_diagnostics *diagnostics,
                                     const uir_machine **out_device) {
    const uir_target_name wanted = uir_target_name_split(name);
    size_t used = 0;
    char known[512] = "";
    for (uint32_t i = 0; i < d->devices.count; i++) {
        const uir_machine *machine = d->devices.data[i];
        *out_device = machine;
        if (uir_target_name_is(wanted, machine->name) &&
            (!wanted.variant || !i || !strcmp(machine->chip, wanted.variant)))
            return UIR_STATUS_OK;
        if (used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, i ? ", %s%s%s" : "%s%s%s", machine->name,
                                     i ? ":" : "", i ? machine->chip : "[:VARIANT]");
    }
    char meant[160];
    *out_device = NULL;
    return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "device '%s' is unknown; choose one of %s%s", name,
                     known, guess_machine(&d->devices, wanted, meant, sizeof meant));
}

void uir_compile_machines_destroy(uir_compile_machines *d) {
    if (!d) return;
    uir_allocator allocator = d->allocator;
    uir_arena_deinit(&d->arena);
    uir_release(&allocator, d, sizeof *d);
}

const uir_machine_list *uir_compile_machines_get(const uir_compile_machines *d) {
    return &d->list;
}

/* ---- emitters ---- */
const char *uir_compile_emitter_name(size_t index) {
    const uir_target *target = uir_target_get(index);
    return target ? target->name : NULL;
}

uir_status uir_compile_emit_kernel(const uir_igraph *igraph, const char *emitter, uint32_t index, uir_text *text,
                                   uir_diagnostics *diagnostics) {
    const char *name = emitter ? emitter : igraph->machine->name;
    const uir_target *target = uir_target_find(name);
    if (target) return target->emit(igraph, index, text, diagnostics);
    if (emitter) return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "unknown emitter '%s'", emitter);
    return uir_error(diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                     "no emitter for the device '%s'; see docs/porting.md to write one, or use the emitter 'null', "
                     "which prints kernels of any device for an imaginary machine",
                     name);
}

/* ---- runners ---- */
struct uir_kernel_runner {
    uir_allocator allocator;
    const uir_target_engine *engine;
    void *state;                  /* the engine's own; NULL: not open */
    uir_device_kernel *on_device; /* NULL: the engine runs it */
};

const char *uir_kernel_runner_name(size_t index) {
    const uir_target_engine *engine = uir_engine_get(index);
    return engine ? engine->name : NULL;
}

const char *uir_kernel_runner_variant(size_t index, size_t variant) {
    const uir_target_engine *engine = uir_engine_get(index);
    return engine ? engine->get_variant(variant) : NULL;
}

static const uir_target_engine *find_engine(uir_target_name name) {
    const uir_target_engine *engine;
    for (size_t i = 0; (engine = uir_engine_get(i)) != NULL; i++)
        if (uir_target_name_is(name, engine->name)) return engine;
    return NULL;
}

bool uir_kernel_runner_is_threaded(const char *name) {
    const uir_target_engine *engine = find_engine(uir_target_name_split(name));
    return !engine || engine->threaded;
}

static uir_status check_variant(const uir_target_engine *engine, const char *variant, uir_diagnostics *diagnostics) {
    char have[160] = "";
    for (size_t i = 0; engine->get_variant(i); i++) {
        size_t used = strlen(have);
        if (!strcmp(engine->get_variant(i), variant)) return UIR_STATUS_OK;
        snprintf(have + used, sizeof have - used, "%s%s", i ? ", " : "", engine->get_variant(i));
    }
    if (!have[0])
        return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "'%s' has no variants: leave out ':%s'",
                         engine->name, variant);
    return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                     "'%s' has no variant '%s' on this machine; it has %s", engine->name, variant, have);
}

static uir_status find_runner(const char *text, uir_diagnostics *diagnostics, const uir_target_engine **out_engine) {
    const uir_target_name name = uir_target_name_split(text);
    char have[160] = "";
    *out_engine = find_engine(name);
    if (*out_engine) return name.variant ? check_variant(*out_engine, name.variant, diagnostics) : UIR_STATUS_OK;
    for (size_t i = 0; uir_engine_get(i); i++)
        snprintf(have + strlen(have), sizeof have - strlen(have), "%s%s", i ? ", " : "", uir_engine_get(i)->name);
    return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "unknown runner of kernels '%s'; use one of %s",
                     text, have);
}

uir_status uir_kernel_runner_check(const char *name, uir_diagnostics *diagnostics) {
    const uir_target_engine *engine;
    return find_runner(name, diagnostics, &engine);
}

static bool is_on_device(const char *name) {
    const uir_device_row *row = uir_device_find(name, NULL);
    return row && uir_device_has_driver(row);
}

const char *uir_kernel_runner_of(const char *name, const uir_igraph *igraph) {
    const uir_device_row *row = uir_device_find(name, NULL);
    if (!is_on_device(name) || !strcmp(igraph->machine->name, uir_target_of(row)->name)) return name;
    return uir_device_find_host(row)->name;
}

static uir_status create_on_device(const uir_allocator *allocator, const char *name, const uir_igraph *igraph,
                                   const volatile bool *cancel, uir_diagnostics *diagnostics,
                                   uir_kernel_runner **out_runner) {
    const char *parameter;
    const uir_device_row *row = uir_device_find(name, &parameter);
    uir_kernel_runner *runner;
    UIR_TRY_ALLOCATE(runner, uir_allocate_zeroed(allocator, sizeof *runner));
    *runner = (uir_kernel_runner){.allocator = *allocator};
    uir_status status =
        uir_device_kernel_open(allocator, row, parameter, igraph, cancel, diagnostics, &runner->on_device);
    if (status == UIR_STATUS_OK)
        *out_runner = runner;
    else
        uir_kernel_runner_destroy(runner);
    return status;
}

uir_status uir_kernel_runner_create(const uir_allocator *allocator, const char *name, const uir_igraph *igraph,
                                    const volatile bool *cancel, uir_diagnostics *diagnostics,
                                    uir_kernel_runner **out_runner) {
    const uir_target_engine *engine;
    uir_kernel_runner *runner;
    *out_runner = NULL;
    if (is_on_device(name)) return create_on_device(allocator, name, igraph, cancel, diagnostics, out_runner);
    UIR_TRY(find_runner(name, diagnostics, &engine));
    if (engine->machine && strcmp(engine->machine, igraph->machine->name)) {
        return uir_error_hint(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "run the kernel on the interpreter",
                              "kernel @%s is for '%s', not for '%s'", igraph->name, igraph->machine->name, name);
    }
    UIR_TRY_ALLOCATE(runner, uir_allocate_zeroed(allocator, sizeof *runner));
    *runner = (uir_kernel_runner){.allocator = *allocator, .engine = engine};
    uir_status status =
        engine->open(allocator, igraph, uir_target_name_split(name).variant, cancel, diagnostics, &runner->state);
    if (status != UIR_STATUS_OK) {
        runner->state = NULL;
        uir_kernel_runner_destroy(runner);
        return status;
    }
    *out_runner = runner;
    return UIR_STATUS_OK;
}

void uir_kernel_runner_destroy(uir_kernel_runner *runner) {
    if (!runner) return;
    uir_allocator allocator = runner->allocator;
    if (runner->state) runner->engine->close(runner->state);
    uir_device_kernel_close(runner->on_device);
    uir_release(&allocator, runner, sizeof *runner);
}

uir_status uir_kernel_runner_run(uir_kernel_runner *runner, const uir_kernel_arguments *arguments, const size_t *sizes,
                                 uint32_t threads, uir_diagnostics *diagnostics) {
    if (runner->on_device) return uir_device_kernel_run(runner->on_device, arguments, sizes, diagnostics);
    return runner->engine->run(runner->state, arguments, sizes, threads, diagnostics);
}
