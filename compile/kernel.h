/* Runs kernels on the devices of this build, by name, for tools and tests.
 *
 * In: a verified iGraph and the name of a runner: "interpreter", "vm[:isa]", "cpu[:variant]", or a device with memory
 * of its own as "null:7". Out: its run on a caller's buffers. */
#ifndef UIR_COMPILE_KERNEL_H
#define UIR_COMPILE_KERNEL_H

#include "backends/source/target.h"

/* The device descriptions that kernel texts may name after `on`. */
typedef struct uir_compile_machines uir_compile_machines;
/* The first description is this processor's: of the variant that `device` names, as "cpu:avx2" does; of the best
 * variant of this machine for NULL and for any other device. INVALID_ARGUMENT for an unknown variant. */
uir_status uir_compile_machines_create(const uir_allocator *allocator, const char *device, uir_diagnostics *diagnostics,
                                       uir_compile_machines **out_devices);
/* Adds the devices of a text, replacing those of the same name except the CPU of this machine. `*out_first` is the
 * first one added. Errors in the text are reported with their line. */
uir_status uir_compile_machines_add(uir_compile_machines *devices, const char *text, size_t length, const char *file,
                                    uir_diagnostics *diagnostics, const uir_machine **out_first);
/* Finds by "name" or "name:chip"; "cpu:variant" finds the CPU, whatever its variant. INVALID_ARGUMENT with a message
 * that lists the devices. */
uir_status uir_compile_machines_find(const uir_compile_machines *devices, const char *name,
                                     uir_diagnostics *diagnostics, const uir_machine **out_device);
void uir_compile_machines_destroy(uir_compile_machines *devices);
const uir_machine_list *uir_compile_machines_get(const uir_compile_machines *devices);

/* Appends the kernel's source by its device's emitter, or by the one named `emitter` (or NULL); `index` distinguishes
 * the kernels of one text. UNSUPPORTED for a device without an emitter in this build; INVALID_ARGUMENT for an unknown
 * name. */
uir_status uir_compile_emit_kernel(const uir_igraph *igraph, const char *emitter, uint32_t index, uir_text *text,
                                   uir_diagnostics *diagnostics);
const char *uir_compile_emitter_name(size_t index); /* NULL past the end */

typedef struct uir_kernel_runner uir_kernel_runner;
/* Whether a run shares its work among threads; true for an unknown name. */
bool uir_kernel_runner_is_threaded(const char *name);
/* INVALID_ARGUMENT with a message that lists the runners, for an unknown name. */
uir_status uir_kernel_runner_check(const char *name, uir_diagnostics *diagnostics);
/* An object of several kernels, in the order of its symbols. It outlives the runners. */
typedef struct uir_kernel_code {
    const uir_target_object *object;
    const uir_igraph *const *igraphs;
    uint32_t count;
} uir_kernel_code;
/* The same for `name`, and for a runner of another device. `cancel` (or NULL) is polled here and in runs, by runners
 * that can: CANCELLED. `code` (or NULL): a kernel of it is not built again, by runners of native code and programs. */
uir_status uir_kernel_runner_create(const uir_allocator *allocator, const char *name, const uir_igraph *igraph,
                                    const uir_kernel_code *code, const volatile bool *cancel,
                                    uir_diagnostics *diagnostics, uir_kernel_runner **out_runner);
void uir_kernel_runner_destroy(uir_kernel_runner *runner);
/* The runner of a kernel in a model for the device `name`: `name`, or the host beside it for a kernel of its machine.
 */
const char *uir_kernel_runner_of(const char *name, const uir_igraph *igraph);
/* `sizes[i]`: bytes of `arguments->pointers[i]`. */
uir_status uir_kernel_runner_run(uir_kernel_runner *runner, const uir_kernel_arguments *arguments, const size_t *sizes,
                                 uint32_t threads, uir_diagnostics *diagnostics);
/* Names of runners that work on this machine; NULL past the end. */
const char *uir_kernel_runner_name(size_t index);
/* Variant names after the colon of runner `index`; NULL past the end. */
const char *uir_kernel_runner_variant(size_t index, size_t variant);

#endif
