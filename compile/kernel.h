/* Kernels on the devices of this build: one table of what can run an iGraph, for tools and tests.
 *
 * In: a verified iGraph and the name of a runner: "interpreter", "vm[:isa]", "cpu[:variant]". Out: its run on a
 * caller's buffers. */
#ifndef UIR_COMPILE_KERNEL_H
#define UIR_COMPILE_KERNEL_H

#include "ir/kernel/igraph.h"

/* The descriptions that kernel texts may name after `on`. */
typedef struct uir_compile_devices uir_compile_devices;
/* `cpu_variant`: whose registers and caches "cpu" means, or NULL for this machine's best. */
uir_status uir_compile_devices_create(const uir_allocator *allocator, const char *cpu_variant,
                                      uir_diagnostics *diagnostics, uir_compile_devices **out_devices);
/* The devices of a description besides, of which `*out_first` is the first, in place of what is there by their names,
 * but for the processor's own. What is wrong
 * with the text is told by its line. */
uir_status uir_compile_devices_add(uir_compile_devices *devices, const char *text, size_t length, const char *file,
                                   uir_diagnostics *diagnostics, const uir_device **out_first);
/* By "name" or "name:chip"; "cpu:variant" is the CPU's, of the variant that it was made for. INVALID_ARGUMENT, saying
 * what there is. */
uir_status uir_compile_devices_find(const uir_compile_devices *devices, const char *name, uir_diagnostics *diagnostics,
                                    const uir_device **out_device);
void uir_compile_devices_destroy(uir_compile_devices *devices);
const uir_device_list *uir_compile_devices_get(const uir_compile_devices *devices);

/* Appends the source that the kernel's device compiles, or that of another emitter, by its name (NULL: none); `index`
 * tells the kernels of one text apart. UNSUPPORTED for a device without an emitter in this build. */
uir_status uir_compile_emit_kernel(const uir_igraph *igraph, const char *emitter, uint32_t index, uir_text *text,
                                   uir_diagnostics *diagnostics);
const char *uir_compile_emitter_name(size_t index); /* NULL past the end */

typedef struct uir_kernel_runner uir_kernel_runner;
/* INVALID_ARGUMENT, saying what there is, for a name that no runner has. */
uir_status uir_kernel_runner_check(const char *name, uir_diagnostics *diagnostics);
/* `name` as above. INVALID_ARGUMENT with a message that lists the runners when there is none of that name. `cancel` (or
 * NULL) is polled here and in runs, where the runner can: CANCELLED. */
uir_status uir_kernel_runner_create(const uir_allocator *allocator, const char *name, const uir_igraph *igraph,
                                    const volatile bool *cancel, uir_diagnostics *diagnostics,
                                    uir_kernel_runner **out_runner);
void uir_kernel_runner_destroy(uir_kernel_runner *runner);
/* `sizes[i]`: bytes of `arguments->pointers[i]`. */
uir_status uir_kernel_runner_run(uir_kernel_runner *runner, const uir_kernel_arguments *arguments, const size_t *sizes,
                                 uint32_t threads, uir_diagnostics *diagnostics);
/* Names of runners that work on this machine; NULL past the end. */
const char *uir_kernel_runner_name(size_t index);
/* What may stand after the colon of runner `index`; NULL past the end. */
const char *uir_kernel_runner_variant(size_t index, size_t variant);

#endif
