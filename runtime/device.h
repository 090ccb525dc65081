/* What the runtime asks of a device: load kernels, bind one to sizes, run a range of a phase.
 *
 * In: bytes of a package. Out: kernels that run on the runtime's threads. A driver is a table of functions; the runtime
 * knows no device but through it. Memory is the runtime's: a driver allocates when it loads, never when it runs. */
#ifndef UIR_RUNTIME_DEVICE_H
#define UIR_RUNTIME_DEVICE_H

#include "base/status.h"

typedef struct uir_driver uir_driver;
typedef struct uir_driver_module uir_driver_module; /* what one load gave; the driver's own */
typedef struct uir_driver_kernel uir_driver_kernel; /* one variant of a kernel; lives as long as its module */

/* What is loaded: all bytecode of a package, or one shared object. */
typedef struct uir_driver_image {
    const char *isa; /* of a native object: "avx2"; NULL: not native */
    const void *bytes;
    size_t size;
} uir_driver_image;

/* Which kernel of an image. */
typedef struct uir_driver_entry {
    const char *symbol;                                         /* native: phases are <symbol>_phase<k> */
    size_t offset, size;                                        /* bytecode: within the image */
    uint32_t dim_count, tile_count, pointer_count, phase_count; /* what a launch will give */
    const bool *writable; /* per pointer: the others are never to be written, whatever the bytes say */
} uir_driver_entry;

/* A kernel bound to sizes. The runtime fills in all but what `prepare` says it does. */
typedef struct uir_driver_launch {
    const uir_driver_kernel *kernel;
    const int64_t *symbols; /* values of the dims, then of the tiles */
    uint32_t dim_count, tile_count, pointer_count, phase_count;
    void *const *pointers;  /* the pointers in device memory, in order; set anew before every run */
    const size_t *sizes;    /* bytes of each that may be touched */
    const int64_t *indices; /* per phase: how many flat parallel indices */
    const int64_t *begins;  /* per phase: the first one that is run */
    void *state;            /* state_size(kernel) bytes, 64-byte aligned, zeroed once: what the driver keeps */
    size_t scratch_size;    /* a thread's scratch that a run needs; before `prepare`: a native kernel's, by the plan */
    const volatile bool *cancel;
} uir_driver_launch;

/* A thread's scratch memory, 64-byte aligned, at least scratch_size bytes. A driver that finds it too small for what
 * the data asked may allocate for the moment and says in `wanted` what would have been enough: the next run has it. */
typedef struct uir_driver_scratch {
    char *data;
    size_t size, wanted;
    const uir_allocator *allocator;
    char failure[256]; /* what went wrong in a run, for a message */
} uir_driver_scratch;

struct uir_driver {
    const char *name; /* "vm", "native": what statistics say */
    bool native;      /* loads shared objects, for trusted packages only */
    /* How well this machine runs an object for `isa`: 0 not at all, more is better. NULL for a driver that is not
     * native. */
    uint32_t (*rank)(const char *isa);
    uir_status (*load)(const uir_allocator *allocator, const uir_driver_image *image, uir_diagnostics *diagnostics,
                       uir_driver_module **out_module);
    void (*unload)(uir_driver_module *module);
    /* NOT_FOUND when the image has no such kernel. */
    uir_status (*find)(uir_driver_module *module, const uir_driver_entry *entry, uir_diagnostics *diagnostics,
                       const uir_driver_kernel **out_kernel);
    size_t (*state_size)(const uir_driver_kernel *kernel);
    /* After symbols, sizes or indices have changed; allocates nothing. Sets scratch_size. */
    uir_status (*prepare)(uir_driver_launch *launch, uir_diagnostics *diagnostics);
    /* Flat indices begin..end of a phase. Called from several threads at once, each with a scratch of its own. */
    uir_status (*run)(const uir_driver_launch *launch, uint32_t phase, uir_driver_scratch *scratch, int64_t begin,
                      int64_t end);
    /* Bytes of device memory that a prepared launch reads and writes, and its operations on elements (NULL: not asked),
     * found without running it; NULL: it cannot tell. */
    uir_status (*count_traffic)(const uir_driver_launch *launch, uir_driver_scratch *scratch, uint64_t *out_bytes,
                                uint64_t *out_flops);
};

#endif
