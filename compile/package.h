/* The end of the compile: a module of primitives to a package for a device, and the native code for it.
 *
 * In: a module of primitives (grouped in place), a device's name. Out: the package's bytes, which run on the VM as they
 * are, and, from a C compiler, the object that takes over. */
#ifndef UIR_COMPILE_PACKAGE_H
#define UIR_COMPILE_PACKAGE_H

#include "backends/cpu/target/build.h"
#include "compile/kernel.h"
#include "compile/lower.h"
#include "package/package.h"
#include "runtime/runtime.h"

typedef struct uir_packaging uir_packaging;

typedef struct uir_packaging_options {
    const char *device; /* "cpu", "cpu:avx2", "vm", "vm:avx2"; NULL: "cpu" */
    bool within_nodes; /* no fusion across nodes of the model */
    uir_progress progress;
} uir_packaging_options;

/* Whether packages are made for the device of that name. */
bool uir_packaging_knows(const char *device);
const char *uir_packaging_device(size_t index); /* their names; NULL past the end */
/* The drivers that run its packages, by preference; `out_count` of them. */
const uir_driver *const *uir_packaging_drivers(const char *device, uint32_t *out_count);

/* Groups, schedules, lowers. The module must outlive the result. */
uir_status uir_packaging_create(uir_module *module, const uir_packaging_options *options,
                                const uir_allocator *allocator, uir_diagnostics *diagnostics,
                                uir_packaging **out_packaging);
void uir_packaging_destroy(uir_packaging *packaging); /* NULL is fine */
/* The instruction set of its native code; NULL: it has none. */
const char *uir_packaging_isa(const uir_packaging *packaging);
uint32_t uir_packaging_kernel_count(const uir_packaging *packaging);

/* Appends all that decides what the native code does: its instruction set and the kernels' texts. Compilers agree on
 * every bit, so none is named; of another build of this library nothing is known. */
uir_status uir_packaging_describe(const uir_packaging *packaging, uir_text *text);
/* Compiles the native code. May run on another thread than the rest. */
uir_status uir_packaging_compile(const uir_packaging *packaging, const uir_cpu_build_options *options,
                                 uir_diagnostics *diagnostics, uir_cpu_object *out_object);
/* The same for a variant of the CPU by its name, which may be another than the kernels were cut for. */
uir_status uir_packaging_compile_for(const uir_packaging *packaging, const char *isa,
                                     const uir_cpu_build_options *options, uir_diagnostics *diagnostics,
                                     uir_cpu_object *out_object);

/* The same from a folder that options->source_folder has filled, its files edited or not. */
uir_status uir_packaging_compile_folder(const uir_packaging *packaging, const uir_cpu_build_options *options,
                                        const char *folder, uir_diagnostics *diagnostics, uir_cpu_object *out_object);

typedef struct uir_packaging_native {
    const char *isa;
    const uir_cpu_object *object; /* NULL: attached when the package is opened */
} uir_packaging_native;
typedef struct uir_packaging_contents {
    const uir_packaging_native *natives; /* one per variant of the CPU */
    uint32_t native_count;
    bool foreign;                   /* nodes without a kernel are left to the opener; else each of them is an error */
    const char *const *input_names; /* as the model has them, in order */
    const char *const *output_names;
    const char *const *metadata; /* key, value, key, value ... */
    uint32_t metadata_count;     /* pairs */
} uir_packaging_contents;
/* Hands over the package's bytes; `sink` NULL: only looks whether there is a package, and says why not. */
uir_status uir_packaging_write_contents(const uir_packaging *packaging, const uir_packaging_contents *contents,
                                        uir_diagnostics *diagnostics, const uir_package_sink *sink);

#endif
