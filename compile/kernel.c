#include "compile/kernel.h"

#include "backends/descriptions/descriptions.h"
#include "base/target_name.h"
#include "compile/single.h"
#include "compile/targets.h"
#include "package/plan.h"

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
    UIR_TRY(target->describe(variant, &d->arena, diagnostics, &d->here));
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
/* The one runner that is no device. */
static const char interpreter[] = "interpreter";

struct uir_kernel_runner {
    uir_allocator allocator;
    const uir_igraph *igraph;
    const uir_kernel_code *code;
    const volatile bool *cancel;
    uir_target_object object; /* of a device that runs native code or a program, where it is not in the code */
    uir_text bytecode;        /* of another */
    uir_arena arena;          /* of a description */
    const uir_kernel_format *format;
    uir_loaded_module *module;
    uir_single *single; /* NULL: the interpreter runs it */
};

/* The devices that are the host, which runs their first format; NULL past the end. */
static const uir_device_row *get_host(size_t index) {
    const uir_device_row *row;
    for (size_t i = 0; (row = uir_device_get(i)) != NULL; i++)
        if (!uir_device_has_driver(row) && index-- == 0) return row;
    return NULL;
}

const char *uir_kernel_runner_name(size_t index) {
    const uir_device_row *row = index ? get_host(index - 1) : NULL;
    return !index ? interpreter : row ? row->name : NULL;
}

const char *uir_kernel_runner_variant(size_t index, size_t variant) {
    const uir_device_row *row = index ? get_host(index - 1) : NULL;
    return row ? row->formats[0]->get_isa(variant) : NULL;
}

/* SIZE_MAX for an unknown name. */
static size_t find_runner(uir_target_name name) {
    for (size_t i = 0; uir_kernel_runner_name(i); i++)
        if (uir_target_name_is(name, uir_kernel_runner_name(i))) return i;
    return SIZE_MAX;
}

bool uir_kernel_runner_is_threaded(const char *name) {
    return !uir_target_name_is(uir_target_name_split(name), interpreter);
}

static uir_status check_variant(size_t runner, const char *variant, uir_diagnostics *diagnostics) {
    char have[160] = "";
    const char *known;
    for (size_t i = 0; (known = uir_kernel_runner_variant(runner, i)) != NULL; i++) {
        size_t used = strlen(have);
        if (!strcmp(known, variant)) return UIR_STATUS_OK;
        snprintf(have + used, sizeof have - used, "%s%s", i ? ", " : "", known);
    }
    if (!have[0])
        return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "'%s' has no variants: leave out ':%s'",
                         uir_kernel_runner_name(runner), variant);
    return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL,
                     "'%s' has no variant '%s' on this machine; it has %s", uir_kernel_runner_name(runner), variant,
                     have);
}

uir_status uir_kernel_runner_check(const char *text, uir_diagnostics *diagnostics) {
    const uir_target_name name = uir_target_name_split(text);
    char have[160] = "";
    size_t runner = find_runner(name);
    if (runner != SIZE_MAX) return name.variant ? check_variant(runner, name.variant, diagnostics) : UIR_STATUS_OK;
    for (size_t i = 0; uir_kernel_runner_name(i); i++)
        snprintf(have + strlen(have), sizeof have - strlen(have), "%s%s", i ? ", " : "", uir_kernel_runner_name(i));
    return uir_error(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "unknown runner of kernels '%s'; use one of %s",
                     text, have);
}

static uir_status encode(uir_kernel_runner *r, const uir_device_row *row, uir_diagnostics *diagnostics) {
    const uir_target *target = uir_target_of(row);
    if (!target->encode)
        return uir_error(diagnostics, UIR_STATUS_UNSUPPORTED, NULL,
                         "device %s runs no bytecode: its kernels cannot be run one by one", row->name);
    UIR_TRY(target->encode(r->igraph, diagnostics, &r->bytecode));
    return uir_text_status(&r->bytecode);
}

static uir_status open_on_device(uir_kernel_runner *r, const uir_device_row *row, const char *parameter,
                                 uir_diagnostics *diagnostics) {
    UIR_TRY(encode(r, row, diagnostics));
    const uir_driver_image image = {UIR_PLAN_BYTECODE, r->bytecode.data, r->bytecode.length};
    const uir_single_kernel kernel = {.igraph = r->igraph, .size = r->bytecode.length, .cancel = r->cancel};
    return uir_single_open(&r->allocator, &kernel, row, parameter, &image, diagnostics, &r->single);
}

/* The object that has the kernel, and its symbol there: in the caller's code, or built of the kernel alone. */
static uir_status find_object(uir_kernel_runner *r, const uir_target *target, const char *variant,
                              uir_diagnostics *diagnostics, const uir_target_object **out_object,
                              const char **out_symbol) {
    const uir_target_build_options options = {.cancel = r->cancel};
    const uir_target_build_input input = {.variant = variant, .igraphs = &r->igraph, .count = 1};
    for (uint32_t i = 0; r->code && i < r->code->count; i++) {
        if (r->code->igraphs[i] != r->igraph) continue;
        *out_object = r->code->object;
        *out_symbol = r->code->object->symbols[i];
        return UIR_STATUS_OK;
    }
    UIR_TRY(target->build(&r->allocator, &options, &input, diagnostics, &r->object));
    *out_object = &r->object;
    *out_symbol = r->object.symbols[0];
    return UIR_STATUS_OK;
}

/* A program that the driver compiles. */
static uir_status open_program(uir_kernel_runner *r, const uir_device_row *row, const char *parameter,
                               uir_diagnostics *diagnostics) {
    const uir_target *target = uir_target_of(row);
    const uir_machine *machine = r->igraph->machine;
    const uir_target_object *object;
    const char *symbol;
    if (strcmp(machine->name, target->name) != 0)
        return uir_error(diagnostics, UIR_STATUS_UNSUPPORTED, NULL, "kernel @%s is for %s:%s, and the device is %s",
                         r->igraph->name, machine->name, machine->chip, row->name);
    UIR_TRY(find_object(r, target, machine->chip, diagnostics, &object, &symbol));
    const uir_driver_image image = {target->program, object->bytes, object->size};
    const uir_single_kernel kernel = {.igraph = r->igraph,
                                      .symbol = symbol,
                                      .scratch = target->scratch_bytes(r->igraph),
                                      .size = object->size,
                                      .cancel = r->cancel};
    if (!kernel.scratch.id) return UIR_STATUS_OUT_OF_MEMORY; /* kernels fit their device: sizes overflow nothing */
    return uir_single_open(&r->allocator, &kernel, row, parameter, &image, diagnostics, &r->single);
}

const char *uir_kernel_runner_of(const char *name, const uir_igraph *igraph) {
    const uir_device_row *row = uir_device_find(name, NULL);
    if (!row || !uir_device_has_driver(row) || !strcmp(igraph->machine->name, uir_target_of(row)->name)) return name;
    return uir_device_find_host(row)->name;
}

static uir_status load(uir_kernel_runner *r, const uir_kernel_image *image, const uir_single_kernel *kernel,
                       uir_diagnostics *diagnostics) {
    UIR_TRY(r->format->load(&r->allocator, image, diagnostics, &r->module));
    return uir_single_find(&r->allocator, kernel, r->format, r->module, diagnostics, &r->single);
}

static uir_status open_bytecode(uir_kernel_runner *r, const uir_device_row *row, const char *variant,
                                uir_diagnostics *diagnostics) {
    UIR_TRY(encode(r, row, diagnostics));
    const uir_kernel_image image = {variant, r->bytecode.data, r->bytecode.length};
    const uir_single_kernel kernel = {.igraph = r->igraph, .size = r->bytecode.length, .cancel = r->cancel};
    return load(r, &image, &kernel, diagnostics);
}

static uir_status open_native(uir_kernel_runner *r, const uir_device_row *row, const char *variant,
                              uir_diagnostics *diagnostics) {
    const uir_target *target = uir_target_of(row);
    uir_target_machine machine;
    UIR_TRY(target->describe(variant, &r->arena, diagnostics, &machine));
    if (!machine.runs_here)
        return uir_error(diagnostics, UIR_STATUS_DEVICE_FAILED, NULL, "this machine cannot run '%s' kernels",
                         machine.variant);
    const uir_target_object *object;
    const char *symbol;
    UIR_TRY(find_object(r, target, machine.variant, diagnostics, &object, &symbol));
    const uir_kernel_image image = {machine.variant, object->bytes, object->size};
    const uir_single_kernel kernel = {
        .igraph = r->igraph, .symbol = symbol, .scratch = target->scratch_bytes(r->igraph), .cancel = r->cancel};
    return kernel.scratch.id ? load(r, &image, &kernel, diagnostics) : UIR_STATUS_OUT_OF_MEMORY;
}

static uir_status open_runner(uir_kernel_runner *r, const char *name, uir_diagnostics *diagnostics) {
    const char *variant;
    const uir_device_row *row = uir_device_find(name, &variant);
    if (row && uir_device_has_driver(row))
        return uir_target_of(row)->program ? open_program(r, row, variant, diagnostics)
                                           : open_on_device(r, row, variant, diagnostics);
    UIR_TRY(uir_kernel_runner_check(name, diagnostics));
    if (!row) return UIR_STATUS_OK;
    r->format = row->formats[0];
    if (!r->format->native) return open_bytecode(r, row, variant, diagnostics);
    if (strcmp(uir_target_of(row)->name, r->igraph->machine->name) != 0)
        return uir_error_hint(diagnostics, UIR_STATUS_INVALID_ARGUMENT, NULL, "run the kernel on the interpreter",
                              "kernel @%s is for '%s', not for '%s'", r->igraph->name, r->igraph->machine->name, name);
    return open_native(r, row, variant, diagnostics);
}

uir_status uir_kernel_runner_create(const uir_allocator *allocator, const char *name, const uir_igraph *igraph,
                                    const uir_kernel_code *code, const volatile bool *cancel,
                                    uir_diagnostics *diagnostics, uir_kernel_runner **out_runner) {
    uir_kernel_runner *runner;
    *out_runner = NULL;
    UIR_TRY_ALLOCATE(runner, uir_allocate_zeroed(allocator, sizeof *runner));
    *runner = (uir_kernel_runner){
        .allocator = *allocator, .igraph = igraph, .code = code, .cancel = cancel, .object = {.allocator = *allocator}};
    uir_text_init(&runner->bytecode, allocator);
    uir_arena_init(&runner->arena, allocator);
    uir_status status = open_runner(runner, name, diagnostics);
    if (status == UIR_STATUS_OK)
        *out_runner = runner;
    else
        uir_kernel_runner_destroy(runner);
    return status;
}

void uir_kernel_runner_destroy(uir_kernel_runner *runner) {
    if (!runner) return;
    uir_allocator allocator = runner->allocator;
    uir_single_destroy(runner->single);
    if (runner->module) runner->format->unload(runner->module);
    uir_text_deinit(&runner->bytecode);
    uir_arena_deinit(&runner->arena);
    uir_target_object_deinit(&runner->object);
    uir_release(&allocator, runner, sizeof *runner);
}

uir_status uir_kernel_runner_run(uir_kernel_runner *runner, const uir_kernel_arguments *arguments, const size_t *sizes,
                                 uint32_t threads, uir_diagnostics *diagnostics) {
    return runner->single ? uir_single_run_once(runner->single, arguments, sizes, threads, diagnostics)
                          : uir_igraph_interpret(runner->igraph, arguments, runner->cancel, diagnostics);
}
