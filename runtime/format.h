/* Kernel formats: each loads the kernels of a package in one encoding, binds one to sizes, runs a range of a phase.
 *
 * In: bytes of a package. Out: kernels that run on the runtime's threads. A format is a table of functions; the runtime
 * knows code only through it. The runtime owns the memory: a format allocates when it loads, never when it runs. */
#ifndef UIR_RUNTIME_FORMAT_H
#define UIR_RUNTIME_FORMAT_H

#include "base/status.h"

typedef struct uir_kernel_format uir_kernel_format;
typedef struct uir_loaded_module uir_loaded_module; /* the result of one load; private to the format */
typedef struct uir_loaded_kernel uir_loaded_kernel; /* one variant of a kernel; lives as long as its module */

/* A loadable image: all bytecode of a package, or one shared object. */
typedef struct uir_kernel_image {
    const char *isa; /* of a native object: "avx2"; of bytecode: of the routines that run it, NULL: the best */
    const void *bytes;
    size_t size;
} uir_kernel_image;

/* A kernel of an image. */
typedef struct uir_kernel_entry {
    const char *symbol;                                         /* native: phases are <symbol>_phase<k> */
    size_t offset, size;                                        /* bytecode: within the image */
    uint32_t dim_count, tile_count, pointer_count, phase_count; /* counts at each launch */
    const bool *writable; /* per pointer; the others must not be written, whatever the bytes say */
} uir_kernel_entry;

/* A kernel bound to sizes. The runtime fills in all members except those that `prepare` sets. */
typedef struct uir_kernel_launch {
    const uir_loaded_kernel *kernel;
    const int64_t *symbols; /* values of the dims, then of the tiles */
    uint32_t dim_count, tile_count, pointer_count, phase_count;
    void *const *pointers;  /* pointers into device memory, in order; set before each run */
    const size_t *sizes;    /* bytes accessible at each */
    const int64_t *indices; /* per phase: number of flat parallel indices */
    const int64_t *begins;  /* per phase: the first index to run */
    void *state;            /* state_size(kernel) bytes, 64-byte aligned, zeroed once; private to the format */
    size_t scratch_size;    /* scratch needed per thread; before `prepare`: that of a native kernel, by the plan */
    const volatile bool *cancel;
} uir_kernel_launch;

/* A thread's scratch memory, 64-byte aligned, at least scratch_size bytes. If the data need more, a format may allocate
 * temporarily and store the needed size in `wanted`: the next run provides it. */
typedef struct uir_kernel_scratch {
    char *data;
    size_t size, wanted;
    const uir_allocator *allocator;
    char failure[256]; /* failure of a run, for a message */
} uir_kernel_scratch;

struct uir_kernel_format {
    const char *name; /* "vm", "native": the name in statistics */
    bool native;      /* loads shared objects, for trusted packages only */
    /* Rank of an object for `isa` on this machine: 0 cannot run, larger is better. NULL for a format that is not
     * native. */
    uint32_t (*rank)(const char *isa);
    const char *(*get_isa)(size_t index); /* those that this machine can run; NULL past the end */
    /* The instruction set of that name, if this machine executes it; `isa` NULL: the best. NULL: it does not. Lives as
     * long as the format. Required of a device that is the host. */
    const char *(*find_isa)(const char *isa);
    uir_status (*load)(const uir_allocator *allocator, const uir_kernel_image *image, uir_diagnostics *diagnostics,
                       uir_loaded_module **out_module);
    void (*unload)(uir_loaded_module *module);
    /* NOT_FOUND if the image lacks the kernel. */
    uir_status (*find)(uir_loaded_module *module, const uir_kernel_entry *entry, uir_diagnostics *diagnostics,
                       const uir_loaded_kernel **out_kernel);
    size_t (*state_size)(const uir_loaded_kernel *kernel);
    /* Called after symbols, sizes or indices have changed; allocates nothing. Sets scratch_size. */
    uir_status (*prepare)(uir_kernel_launch *launch, uir_diagnostics *diagnostics);
    /* Runs flat indices begin..end of a phase. Called from several threads at once, each with its own scratch. */
    uir_status (*run)(const uir_kernel_launch *launch, uint32_t phase, uir_kernel_scratch *scratch, int64_t begin,
                      int64_t end);
    /* Counts bytes of device memory that a prepared launch reads and writes, and its element operations (NULL: not
     * counted), without running it. NULL: the format cannot count. */
    uir_status (*count_traffic)(const uir_kernel_launch *launch, uir_kernel_scratch *scratch, uint64_t *out_bytes,
                                uint64_t *out_flops);
    /* Measures the two limits of a roofline of this machine, on `threads` threads. NULL: the format cannot. */
    uir_status (*measure_limits)(const uir_allocator *allocator, uint32_t threads, double *out_flops_per_second,
                                 double *out_bytes_per_second);
};

#endif
