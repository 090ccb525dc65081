/* Compiled C sources of kernels, loaded and run as those of packages are. In: a text of uir_cpu_emit. Out: runs of its
 * kernels. */
#ifndef UIR_TESTS_BACKENDS_CPU_NATIVE_H
#define UIR_TESTS_BACKENDS_CPU_NATIVE_H

#include "backends/cpu/driver/driver.h"
#include "backends/cpu/target/cpu.h"
#include "backends/source/source.h"
#include "compile/single.h"

static inline uir_status native_compile(const uir_allocator *allocator, const uir_cpu_compile_options *options,
                                        const uir_text *source, uir_diagnostics *diagnostics,
                                        uir_loaded_module **out_module) {
    uir_kernel_image image = {.isa = uir_cpu_variant_name(options->variant)};
    void *bytes;
    *out_module = NULL;
    UIR_TRY(uir_cpu_compile(allocator, options, source->data, source->length, diagnostics, &bytes, &image.size));
    image.bytes = bytes;
    uir_status status = uir_cpu_format.load(allocator, &image, diagnostics, out_module);
    uir_release(allocator, bytes, image.size);
    return status;
}

static inline void native_unload(uir_loaded_module *module) {
    uir_cpu_format.unload(module);
}

/* Kernel `index` of the source. */
static inline uir_status native_find(uir_loaded_module *module, const uir_igraph *igraph, uint32_t index,
                                     uir_diagnostics *diagnostics, uir_single **out_single) {
    char symbol[UIR_C_SYMBOL_SIZE];
    uir_c_symbol(igraph, index, symbol);
    const uir_single_kernel kernel = {.igraph = igraph, .symbol = symbol, .scratch = uir_cpu_scratch_bytes(igraph)};
    return uir_single_find(&igraph->allocator, &kernel, &uir_cpu_format, module, diagnostics, out_single);
}

/* `sizes[i]`: bytes of `arguments->pointers[i]`. */
static inline uir_status native_run(uir_loaded_module *module, const uir_igraph *igraph, uint32_t index,
                                    const uir_kernel_arguments *arguments, const size_t *sizes, uint32_t threads,
                                    uir_diagnostics *diagnostics) {
    uir_single *single;
    UIR_TRY(native_find(module, igraph, index, diagnostics, &single));
    uir_status status = uir_single_run_once(single, arguments, sizes, threads, diagnostics);
    uir_single_destroy(single);
    return status;
}

#endif
