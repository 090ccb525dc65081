/* The runtime: opens a package and runs it.
 *
 * In: package bytes, the drivers that may run its kernels, tensors. Out: tensors. A package is opened once and shared
 * by any number of runtimes (sessions) on any threads; a runtime belongs to one thread at a time. Memory is planned for
 * the dims of a run and kept at its high-water mark: a run with the dims of the one before allocates nothing. Results
 * are the same bits at any thread count. */
#ifndef UIR_RUNTIME_RUNTIME_H
#define UIR_RUNTIME_RUNTIME_H

#include "base/dtype.h"
#include "base/fate.h"
#include "runtime/device.h"

typedef struct uir_package uir_package;
typedef struct uir_runtime uir_runtime;

/* ---- packages ---- */
/* A node that the package leaves to whoever opened it: the host operator "custom". Operands lie in the runtime's
 * memory; results are given by shape and written where uir_custom_call_give says. */
typedef struct uir_custom_tensor {
    uir_dtype dtype;
    uint32_t rank;
    const int64_t *shape;
    const void *data;
} uir_custom_tensor;
typedef struct uir_custom_symbol {
    uint32_t symbol; /* of the caller's */
    int64_t value;
} uir_custom_symbol;
typedef struct uir_custom_call {
    uint32_t node;                   /* what the planner was told */
    uint64_t turn;                   /* how often this run has run it before */
    const uir_custom_tensor *inputs; /* data NULL: absent */
    uint32_t input_count, output_count;
    const uir_custom_symbol *symbols; /* dims that have a value by now */
    uint32_t symbol_count;
    const volatile bool *cancel;
    const uir_allocator *allocator;
    uir_diagnostics *diagnostics;
    struct uir_runtime *runtime; /* for uir_custom_call_give */
    uint32_t step;
} uir_custom_call;
uir_status uir_custom_call_give(const uir_custom_call *call, uint32_t output, const int64_t *shape, void **out_data);
typedef uir_status uir_custom_function(void *user, const uir_custom_call *call);

typedef struct uir_package_options {
    uir_custom_function *custom; /* NULL: a package with such nodes is refused */
    void *custom_user;
    const struct uir_image_extras *pictures; /* more formats than image/ has; NULL: none */
    const uir_driver *const *drivers; /* by preference: the first that can run a kernel does */
    uint32_t driver_count;
    bool trusted; /* native objects in it may be loaded */
    bool checked; /* its constants are known to be sound (this process has just made them): no hashing */
    bool copy;    /* a file is never mapped */
    /* Of a file: OK when its bytes, which are copied then and used as they are, may be trusted; else the package is not
     * opened. NULL: nobody is asked. */
    uir_status (*vouch)(void *user, const void *bytes, size_t size, uir_diagnostics *diagnostics);
    void *vouch_user;
    const char *folder; /* where a file-system is needed to load an object, or NULL: memory only */
} uir_package_options;

/* Borrows `bytes`, 64-byte aligned, until the package is closed. Everything is validated; what a constant holds is
 * checked against its hash before its first use. BAD_FILE with a message; DEVICE_FAILED when no driver runs a kernel.
 */
uir_status uir_package_open(const void *bytes, size_t size, const uir_package_options *options,
                            const uir_allocator *allocator, uir_diagnostics *diagnostics, uir_package **out_package);
/* Of a file: mapped where nobody but the caller can change it, else copied (base/file.h); it must not be changed while
 * it is open (replacing it by rename is fine). */
uir_status uir_package_open_file(const char *path, const uir_package_options *options, const uir_allocator *allocator,
                                 uir_diagnostics *diagnostics, uir_package **out_package);
/* The runtimes over it must be destroyed before. NULL is fine. */
void uir_package_close(uir_package *package);
/* BAD_FILE with a message when the file that it maps is not what it was. Any thread. */
uir_status uir_package_check_file(const uir_package *package, uir_diagnostics *diagnostics);

/* Kernels in a shared object for `isa`, which were not there when the package was made; copied. Runs that begin
 * afterwards use them. Any thread. `symbols`: per variant, kernel by kernel in the package's order, what its phases are
 * named after, NULL where it is not there; or NULL: the names in the package. NOT_FOUND when the package was made
 * without that isa, or this machine does not run it. */
uir_status uir_package_attach_native(uir_package *package, const char *isa, const void *object, size_t size,
                                     const char *const *symbols, uir_diagnostics *diagnostics);
/* Whether every kernel has a native implementation by now. */
bool uir_package_is_native(const uir_package *package);

/* The native objects that lie in the package, by index; false past the last. */
typedef struct uir_package_native {
    const char *isa;
    size_t size;
    bool runs_here; /* a driver that the package was opened with would run it on this machine */
} uir_package_native;
bool uir_package_get_native(const uir_package *package, uint32_t index, uir_package_native *out_native);
/* Who made and signed it: "uir 0.1.0"; the public key that its file's signature names, in hexadecimal digits, "" where
 * there is none. Whether the signature is by that key is known where `vouch` was asked. */
const char *uir_package_get_maker(const uir_package *package);
const char *uir_package_get_signer(const uir_package *package);
/* Why none of them was loaded though it was to be; "" when that is not so. */
const char *uir_package_explain_not_native(const uir_package *package);

typedef struct uir_package_port {
    const char *name;
    uir_dtype dtype;
    uint32_t rank;
    const int64_t *dims;          /* -1 where it is not fixed */
    const char *const *dim_names; /* "" for a fixed one */
} uir_package_port;
uint32_t uir_package_input_count(const uir_package *package);
uint32_t uir_package_output_count(const uir_package *package);
uir_package_port uir_package_get_input(const uir_package *package, uint32_t index);
uir_package_port uir_package_get_output(const uir_package *package, uint32_t index);
typedef struct uir_package_dim {
    const char *name;
    int64_t value;
} uir_package_dim;
/* The extents of input `index` (`out_dims` has room for its rank) when the named dims have the given values and every
 * other is 1. NOT_FOUND with a message for a name that is no dim of an input. */
uir_status uir_package_get_input_shape(const uir_package *package, uint32_t index, const uir_package_dim *dims,
                                       size_t count, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                                       int64_t *out_dims);
/* The pair at `index`, in the package's order; false past the last. */
bool uir_package_get_metadata_at(const uir_package *package, uint32_t index, const char **out_key,
                                 const char **out_value);
/* A node of the model's file that the package was made from. */
typedef struct uir_package_node {
    const char *name, *op;
    uir_fate fate;    /* STANDS: `step` has it */
    uint32_t into;    /* the node that took it over; UINT32_MAX: none */
    const char *step; /* the kind of the first step that it stands in; "" */
} uir_package_node;
/* False past the last. */
bool uir_package_get_node(const uir_package *package, uint32_t index, uir_package_node *out_node);
/* Figures of what the package holds. */
typedef struct uir_package_facts {
    uint32_t kernels, variants, steps, launches, constants;
    uint32_t native_objects;
    uint64_t weight_bytes;
} uir_package_facts;
uir_package_facts uir_package_get_facts(const uir_package *package);

/* ---- runtimes ---- */
typedef struct uir_runtime_options {
    uint32_t threads; /* 0: the cores that affinity and cgroup quota allow */
    bool measure;     /* time per step */
    bool trace;       /* what each thread does when: uir_runtime_get_slice */
    /* The caller's threads: runs task(context, i) for every i < count, on any threads, and returns when all are done;
     * NULL: the runtime's own pool. */
    void (*parallel)(void *user, uint32_t count, void (*task)(void *context, uint32_t i), void *context);
    void *parallel_user;
} uir_runtime_options;

/* `options` may be NULL. */
uir_status uir_runtime_create(uir_package *package, const uir_runtime_options *options, const uir_allocator *allocator,
                              uir_diagnostics *diagnostics, uir_runtime **out_runtime);
void uir_runtime_destroy(uir_runtime *runtime); /* NULL is fine */

/* Borrowed until another is set; row-major. dtype, rank and fixed extents are checked here, the others when it runs. */
uir_status uir_runtime_set_input(uir_runtime *runtime, uint32_t index, uir_dtype dtype, uint32_t rank,
                                 const int64_t *shape, const void *data);
/* The same in a buffer of `capacity` bytes with `strides`, per axis in elements, 0 and up; NULL: packed. Kernels read
 * it where it lies when the strides are those of a packed tensor but for room behind each stretch of an axis along
 * which an output grows it (a cache), and the buffer has that room; else the run copies it together first. */
uir_status uir_runtime_set_input_strided(uir_runtime *runtime, uint32_t index, uir_dtype dtype, uint32_t rank,
                                         const int64_t *shape, const int64_t *strides, const void *data,
                                         size_t capacity);
/* Results are written to the caller's buffer of `capacity` bytes, packed; which may be that of an input. `data` NULL:
 * the runtime's own memory again. */
uir_status uir_runtime_bind_output(uir_runtime *runtime, uint32_t index, void *data, size_t capacity);
/* The same with strides as above (elements must not overlap; NULL: packed). An output that appends to an
 * input, bound to the same memory with the same strides, writes what is new and nothing else. */
uir_status uir_runtime_bind_output_strided(uir_runtime *runtime, uint32_t index, const int64_t *strides, void *data,
                                           size_t capacity);
/* BAD_DATA, INVALID_ARGUMENT, LIMIT or CANCELLED with a message that names the input or node. */
uir_status uir_runtime_run(uir_runtime *runtime);
/* What the last run gave; valid until the next. */
typedef struct uir_runtime_output {
    uir_dtype dtype;
    uint32_t rank;
    const int64_t *shape;
    const void *data;
    size_t size;            /* packed */
    const int64_t *strides; /* of the caller's; NULL: packed */
} uir_runtime_output;
uir_status uir_runtime_get_output(const uir_runtime *runtime, uint32_t index, uir_runtime_output *out_output);
/* From any thread or a signal handler: a run in progress (or one that is planned), or else the next one, ends soon with
 * CANCELLED. */
void uir_runtime_cancel(uir_runtime *runtime);
/* Forgets a wish to stop that came before the run. */
void uir_runtime_forget_cancel(uir_runtime *runtime);
/* The flag that uir_runtime_cancel sets; as long as the runtime lives. */
volatile bool *uir_runtime_get_cancel(uir_runtime *runtime);
/* Plans the memory for the inputs' shapes, which may be set with data NULL, without running; bytes of the arena. Dims
 * that are learned in a run are not in it. */
uir_status uir_runtime_plan(uir_runtime *runtime, uint64_t *out_bytes);

/* The shape that output `index` would have in a run with inputs of such shapes (by input, as many extents as its rank,
 * none negative), -1 where only the run tells. What is set and what the last run gave stay. Statuses of
 * a run. */
uir_status uir_runtime_find_shape(uir_runtime *runtime, const int64_t *const *input_shapes, uint32_t index,
                                  int64_t *out_dims);

/* What a run with the inputs that uir_runtime_plan has planned for would do: bytes that slices move and operations, by
 * walking the bytecode of every launch whose sizes are known. Call it after uir_runtime_plan. */
typedef struct uir_runtime_cost {
    uint64_t dram_bytes, flops, launches, scratch_bytes;
} uir_runtime_cost;
uir_status uir_runtime_count_cost(uir_runtime *runtime, uir_runtime_cost *out_cost);

/* One launch of it, by index; false past the end. */
typedef struct uir_runtime_launch_cost {
    const char *kernel, *node, *op;
    uint64_t tensor_bytes; /* of what it reads and writes, each tensor once */
    uint64_t dram_bytes, flops;
} uir_runtime_launch_cost;
bool uir_runtime_get_launch_cost(const uir_runtime *runtime, uint32_t index, uir_runtime_launch_cost *out_cost);

/* Counts what the slices of the last run's launches moved, by walking their bytecode without computing: dram_bytes of
 * the statistics are these from then on, until the next run. Launches in a loop count with their last sizes. */
uir_status uir_runtime_count_traffic(uir_runtime *runtime);

/* ---- statistics: of the last run ---- */
typedef struct uir_runtime_statistics {
    double run_ms;
    uint64_t native_calls, vm_calls, vendor_calls, host_calls, copies;
    uint64_t kernels, phases; /* launches, and the phases in them */
    uint64_t dram_bytes;      /* of the tensors that launches read and write, each once a launch */
    uint64_t arena_bytes;     /* reserved for tensors that are neither inputs, outputs nor constants */
    uint64_t scratch_bytes;   /* of all threads */
    uint32_t threads;
} uir_runtime_statistics;
uir_runtime_statistics uir_runtime_get_statistics(const uir_runtime *runtime);

typedef struct uir_runtime_step {
    const char *kind;   /* "launch", "host" ... */
    const char *by;     /* "native", "vm", "host", "" for what is no computation */
    const char *kernel; /* name of a kernel or host operator, "" */
    const char *node;   /* the nodes it came from */
    const char *op;
    const char *remark; /* what was joined in it, or why no kernel computes it */
    uint32_t variant, phases;
    uint64_t calls, tensor_bytes, dram_bytes;
    uint64_t flops; /* 0 until uir_runtime_count_traffic */
    double ms;
} uir_runtime_step;
/* false past the end. */
bool uir_runtime_get_step(const uir_runtime *runtime, uint32_t index, uir_runtime_step *out_step);

/* Which nodes of the model's file step `step` stands for, the one that most of its work is for first; `*out_again`: a
 * step before it computes the node as well. False past the last. */
bool uir_runtime_get_step_node(const uir_runtime *runtime, uint32_t step, uint32_t index, uint32_t *out_node,
                               bool *out_again);

/* What the sizes of the last run made of a launch. */
typedef struct uir_runtime_choice {
    uint32_t variant, variant_count;     /* of the kernel; counted from 0 */
    uint32_t candidate, candidate_count; /* of the variant's tiling function; 0 of 0: it has none */
    const int64_t *tiles;                /* until the next run */
    uint32_t tile_count;
    int64_t units, cost; /* of work, that the threads share; of one, in the kernel's own measure */
} uir_runtime_choice;
/* false: the step is no launch, or did nothing. */
bool uir_runtime_get_choice(const uir_runtime *runtime, uint32_t step, uir_runtime_choice *out_choice);
/* From the next run on launches of the kernel of that name take this candidate of their variant, where it is valid for
 * their sizes, whatever it costs; UINT32_MAX: the least cost again. NOT_FOUND, without a message: no such kernel. */
uir_status uir_runtime_want_candidate(uir_runtime *runtime, const char *kernel, uint32_t candidate);

/* One stretch of time that a thread gave to a step of the last run, by thread and in the order of their ends; false
 * past the end, and where the runtime does not trace. */
typedef struct uir_runtime_slice {
    uint32_t thread;         /* 0: who called the run */
    uint32_t step, phase;    /* for uir_runtime_get_step; of a launch */
    uint64_t indices;        /* of the phase's parallel indices; 0 where there are none */
    double begin_ms, end_ms; /* from the beginning of the run */
} uir_runtime_slice;
bool uir_runtime_get_slice(const uir_runtime *runtime, size_t index, uir_runtime_slice *out_slice);

/* Cores that affinity and cgroup quota allow this process. */
uint32_t uir_core_count(void);

#endif
