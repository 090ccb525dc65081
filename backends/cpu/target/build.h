/* Builds one shared object of all kernels of a model.
 *
 * In: verified iGraphs `on cpu`, up to all variants of all kernels of a model. Out: the bytes of a shared object for
 * one variant, and for each iGraph the symbol prefix of its phases. The source is split into files of about equal cost,
 * which the system's C compiler compiles in parallel. The split depends on the kernels only: with one compiler, the
 * same kernels result in the same bytes in any folder, on any number of cores. */
#ifndef UIR_BACKENDS_CPU_TARGET_BUILD_H
#define UIR_BACKENDS_CPU_TARGET_BUILD_H

#include "backends/cpu/target/cpu.h"
#include "backends/source/target.h"

typedef struct uir_cpu_build_options {
    uir_cpu_compile_options compile; /* times apply to the whole build; keep_source and cancel are not read */
    uir_target_build_options build;
} uir_cpu_build_options;

/* Whether the compiler can be found; DEVICE_FAILED with a message that names it. Starts nothing. */
uir_status uir_cpu_check_compiler(const uir_cpu_compile_options *options, uir_diagnostics *diagnostics);
/* iGraphs that differ only in their names become one function. Temporary files are removed in any case. DEVICE_FAILED
 * with the compiler's first lines; CANCELLED; IO_FAILED for the temporary folder. */
uir_status uir_cpu_build(const uir_allocator *allocator, const uir_cpu_build_options *options,
                         const uir_igraph *const *igraphs, uint32_t count, uir_diagnostics *diagnostics,
                         uir_target_object *out_object);
/* The same from a folder written by `source_folder` for these kernels, its .c files edited or not; the symbols are the
 * same. INVALID_ARGUMENT for a folder of other kernels or another variant. */
uir_status uir_cpu_build_folder(const uir_allocator *allocator, const uir_cpu_build_options *options,
                                const char *folder, const uir_igraph *const *igraphs, uint32_t count,
                                uir_diagnostics *diagnostics, uir_target_object *out_object);
/* The same from the sources that a build of these kernels, in any process, passed to its keeper: the same bytes,
 * without a list of symbols. source_folder is ignored. BAD_FILE if they are damaged. */
uir_status uir_cpu_build_sources(const uir_allocator *allocator, const uir_cpu_build_options *options,
                                 const void *sources, size_t size, uir_diagnostics *diagnostics,
                                 uir_target_object *out_object);

#endif
