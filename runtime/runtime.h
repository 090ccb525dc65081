/* The runtime: opens a package and runs it.
 *
 * In: package bytes, formats for its kernels, tensors. Out: tensors. Any number of runtimes (sessions) on any threads
 * share an opened package; a runtime belongs to one thread at a time. Memory is planned for the dims of a run and kept
 * at its high-water mark: a run with the dims of the preceding run allocates nothing. Results are the same bits at any
 * thread count. */
#ifndef UIR_RUNTIME_RUNTIME_H
#define UIR_RUNTIME_RUNTIME_H

#include "base/dtype.h"
#include "base/fate.h"
#include "base/text.h"
#include "runtime/format.h"

typedef struct uir_package uir_package;
typedef struct uir_runtime uir_runtime;
struct uir_region; /* runtime/driver.h */

/* ---- packages ---- */
/* A call of the package opener's function for a node: the host operator "custom". Operands are in the runtime's memory.
 * For each result, the function passes the shape to uir_custom_call_give, and writes to the returned address. */
typedef struct uir_custom_tensor {
    uir_dtype dtype;
    uint32_t rank;
    const int64_t *shape;
    const void *data;
} uir_custom_tensor;
typedef struct uir_custom_symbol {
    uint32_t symbol; /* number of the caller's symbol */
    int64_t value;
} uir_custom_symbol;
typedef struct uir_custom_call {
    uint32_t node;                   /* the number given to the planner */
    uint64_t turn;                   /* number of earlier calls for the node in this run */
    const uir_custom_tensor *inputs; /* data NULL: absent */
    uint32_t input_count, output_count;
    const uir_custom_symbol *symbols; /* dims bound so far */
    uint32_t symbol_count;
    const volatile bool *cancel;
    const uir_allocator *allocator;
    uir_diagnostics *diagnostics;
    struct uir_runtime *runtime; /* for uir_custom_call_give */
    uint32_t step;
} uir_custom_call;
uir_status uir_custom_call_give(const uir_custom_call *call, uint32_t output, const int64_t *shape, void **out_data);
typedef uir_status uir_custom_function(void *user, const uir_custom_call *call);

/* Keeps what a driver has compiled of a package's program, for later processes. Any thread. */
typedef struct uir_package_keeper {
    /* Finds code of a driver's format that was made of this program. It is valid until the package is closed. */
    bool (*find)(void *user, const char *format, const void *program, size_t program_size, const void **out_bytes,
                 size_t *out_size);
    void (*keep)(void *user, const char *format, const void *program, size_t program_size, const void *bytes,
                 size_t size); /* after the first run */
    void *user;
} uir_package_keeper;

typedef struct uir_package_options {
    uir_custom_function *custom; /* NULL: refuses a package with such nodes */
    void *custom_user;
    const struct uir_image_extras *pictures; /* picture formats besides those of image/; NULL: none */
    const uir_kernel_format *const *formats; /* in order of preference: the first that has a kernel runs it */
    uint32_t format_count;
    /* The device of a package that is made for one: it outlives the package. NULL: the package is refused. */
    const struct uir_driver *driver;
    struct uir_driver_device *device;
    uir_package_keeper keeper; /* its functions may be NULL */
    /* Told the share of the device's kernels that are loaded, which its library may compile; a status other than OK
     * ends the opening. NULL: not called. */
    uir_status (*loaded)(void *user, double share);
    void *loaded_user;
    bool no_fallback; /* UNSUPPORTED for a launch that only the host has a variant for */
    bool trusted;     /* loads its native objects */
    bool checked;     /* its constants are known to be intact (just made by this process): no hashing */
    bool copy;        /* never maps a file */
    /* For a file: returns OK if the bytes may be trusted. The package is then opened as trusted, from a copy of the
     * file; any other status refuses it. NULL: not called. */
    uir_status (*vouch)(void *user, const void *bytes, size_t size, uir_diagnostics *diagnostics);
    void *vouch_user;
} uir_package_options;

/* Opens a package; borrows `bytes`, 64-byte aligned, until the package is closed. All bytes are validated; constants
 * are checked against their hashes before the first run. With a message: BAD_FILE; UNSUPPORTED for an unknown host
 * operator; DEVICE_FAILED for a kernel that no format has. */
uir_status uir_package_open(const void *bytes, size_t size, const uir_package_options *options,
                            const uir_allocator *allocator, uir_diagnostics *diagnostics, uir_package **out_package);
/* Opens a package file, mapped if no other user can change the file, else copied (base/file.h). The file must not
 * change while open; replacing it by rename is fine. */
uir_status uir_package_open_file(const char *path, const uir_package_options *options, const uir_allocator *allocator,
                                 uir_diagnostics *diagnostics, uir_package **out_package);
/* Closes a package; destroy its runtimes first. NULL is fine. */
void uir_package_close(uir_package *package);
/* BAD_FILE with a message if the mapped file has changed. Any thread. */
uir_status uir_package_check_file(const uir_package *package, uir_diagnostics *diagnostics);

/* Attaches a shared object for `isa`, compiled after the package was made; copied. Runs that begin afterwards use its
 * kernels. Any thread. `symbols` has the prefixes of the phases' names, per variant, kernel by kernel in the package's
 * order; NULL for a missing kernel. `symbols` NULL: the names in the package. NOT_FOUND if the package was made without
 * that isa, or this machine cannot run it. */
uir_status uir_package_attach_native(uir_package *package, const char *isa, const void *object, size_t size,
                                     const char *const *symbols, uir_diagnostics *diagnostics);
/* Where the code of a device whose driver compiles it came from: "its source", "the cache"; else "". */
const char *uir_package_get_code_origin(const uir_package *package);
/* Whether every kernel has native code by now. */
bool uir_package_is_native(const uir_package *package);

/* The native objects in the package, by index; false past the last. */
typedef struct uir_package_native {
    const char *isa;
    size_t size;
    bool runs_here; /* a format given at opening can run it on this machine */
} uir_package_native;
bool uir_package_get_native(const uir_package *package, uint32_t index, uir_package_native *out_native);
/* The maker, "uir 0.1.0"; and the public key named in the file's signature, in hexadecimal digits, "" if unsigned. Only
 * `vouch` checks the signature. */
const char *uir_package_get_maker(const uir_package *package);
const char *uir_package_get_signer(const uir_package *package);
/* Why no native object was loaded although expected; else "". */
const char *uir_package_explain_not_native(const uir_package *package);

typedef struct uir_package_port {
    const char *name;
    uir_dtype dtype;
    uint32_t rank;
    const int64_t *dims;          /* -1 if not fixed */
    const char *const *dim_names; /* "" if fixed */
} uir_package_port;
uint32_t uir_package_input_count(const uir_package *package);
uint32_t uir_package_output_count(const uir_package *package);
uir_package_port uir_package_get_input(const uir_package *package, uint32_t index);
uir_package_port uir_package_get_output(const uir_package *package, uint32_t index);
typedef struct uir_package_dim {
    const char *name;
    int64_t value;
} uir_package_dim;
/* The extents of input `index` (`out_dims` holds its rank) if the named dims have the given values and all others are
 * 1. NOT_FOUND with a message for a name that no input has. */
uir_status uir_package_get_input_shape(const uir_package *package, uint32_t index, const uir_package_dim *dims,
                                       size_t count, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                                       int64_t *out_dims);
/* The pair at `index`, in the package's order; false past the last. */
bool uir_package_get_metadata_at(const uir_package *package, uint32_t index, const char **out_key,
                                 const char **out_value);
/* A node of the model's file. */
typedef struct uir_package_node {
    const char *name, *op;
    uir_fate fate;    /* STANDS: part of `step` */
    uint32_t into;    /* the node that it was merged into; UINT32_MAX: none */
    const char *step; /* kind of the first step that computes the node; "" */
} uir_package_node;
/* False past the last. */
bool uir_package_get_node(const uir_package *package, uint32_t index, uir_package_node *out_node);
/* Counts of a package's contents. */
typedef struct uir_package_facts {
    uint32_t version; /* of its format */
    uint32_t kernels, variants, steps, launches, constants;
    uint32_t native_objects;
    uint64_t weight_bytes;
} uir_package_facts;
uir_package_facts uir_package_get_facts(const uir_package *package);

/* ---- runtimes ---- */
typedef struct uir_runtime_options {
    uint32_t threads; /* 0: the cores that affinity and cgroup quota allow */
    bool measure;     /* time per step */
    bool trace;       /* records the work of each thread: uir_runtime_get_slice */
    bool queue_times; /* the same of the queues of a device that has a clock */
    /* The caller's threads: runs task(context, i) for every i < count, on any threads, and returns when all are done;
     * NULL: the runtime's own pool. */
    void (*parallel)(void *user, uint32_t count, void (*task)(void *context, uint32_t i), void *context);
    void *parallel_user;
} uir_runtime_options;

/* `options` may be NULL. */
uir_status uir_runtime_create(uir_package *package, const uir_runtime_options *options, const uir_allocator *allocator,
                              uir_diagnostics *diagnostics, uir_runtime **out_runtime);
void uir_runtime_destroy(uir_runtime *runtime); /* NULL is fine */

/* Sets an input; `data` is borrowed until another is set; row-major. dtype, rank and fixed extents are checked here,
 * other extents in the run. */
uir_status uir_runtime_set_input(uir_runtime *runtime, uint32_t index, uir_dtype dtype, uint32_t rank,
                                 const int64_t *shape, const void *data);
/* The same in a buffer of `capacity` bytes with `strides`, per axis in elements, 0 and up; NULL: packed. Kernels read
 * the buffer in place if it is a cache. A cache has the strides of a packed tensor with spare capacity along an axis
 * that an output appends to, and `capacity` holds all of it. Otherwise the run first makes a packed copy. */
uir_status uir_runtime_set_input_strided(uir_runtime *runtime, uint32_t index, uir_dtype dtype, uint32_t rank,
                                         const int64_t *shape, const int64_t *strides, const void *data,
                                         size_t capacity);
/* The same in memory of the host or of the package's device (runtime/driver.h). A region of the device is read there
 * without a copy; its strides must be those of a cache, else UNSUPPORTED. */
uir_status uir_runtime_set_input_region(uir_runtime *runtime, uint32_t index, uir_dtype dtype, uint32_t rank,
                                        const int64_t *shape, const int64_t *strides, const struct uir_region *at);
/* Writes results to the caller's buffer of `capacity` bytes, packed; the buffer may be that of an input. `data` NULL:
 * results are written to the runtime's memory again. */
uir_status uir_runtime_bind_output(uir_runtime *runtime, uint32_t index, void *data, size_t capacity);
/* The same with strides as above (elements must not overlap; NULL: packed). If an output appends to an input, and both
 * are bound to the same memory with the same strides, only the new elements are written. */
uir_status uir_runtime_bind_output_strided(uir_runtime *runtime, uint32_t index, const int64_t *strides, void *data,
                                           size_t capacity);
/* The same in memory of the host or of the package's device; a region without memory: the runtime's memory again. */
uir_status uir_runtime_bind_output_region(uir_runtime *runtime, uint32_t index, const int64_t *strides,
                                          const struct uir_region *at);
/* Runs the package on the inputs. With a message that names the input or node: BAD_DATA, INVALID_ARGUMENT, LIMIT,
 * BAD_FILE, OUT_OF_MEMORY; CANCELLED. */
uir_status uir_runtime_run(uir_runtime *runtime);
/* A result of the last run; valid until the next. */
typedef struct uir_runtime_output {
    uir_dtype dtype;
    uint32_t rank;
    const int64_t *shape;
    const void *data;       /* NULL: the caller has it on the device */
    size_t size;            /* packed */
    const int64_t *strides; /* those of a strided buffer; NULL: packed */
} uir_runtime_output;
uir_status uir_runtime_get_output(const uir_runtime *runtime, uint32_t index, uir_runtime_output *out_output);
/* From any thread or a signal handler: the current run or plan, else the next run, ends soon with CANCELLED. */
void uir_runtime_cancel(uir_runtime *runtime);
/* Withdraws a cancellation that was requested before the run. */
void uir_runtime_forget_cancel(uir_runtime *runtime);
/* The flag that uir_runtime_cancel sets; lives as long as the runtime. */
volatile bool *uir_runtime_get_cancel(uir_runtime *runtime);
/* Plans memory for the inputs' shapes, without a run; data of inputs may be NULL. `*out_bytes`: the arena's size,
 * without tensors whose dims are known only during a run. */
uir_status uir_runtime_plan(uir_runtime *runtime, uint64_t *out_bytes);

/* The shape of output `index` in a run with inputs of these shapes (by input, its rank in extents, none negative); -1
 * for an extent known only during the run. Inputs and the last run's results are unchanged. Statuses of a run. */
uir_status uir_runtime_find_shape(uir_runtime *runtime, const int64_t *const *input_shapes, uint32_t index,
                                  int64_t *out_dims);

/* Cost of the run planned by uir_runtime_plan: bytes that slices move, and operations. The cost is found by walking the
 * bytecode of all launches of known sizes. */
typedef struct uir_runtime_cost {
    uint64_t dram_bytes, flops, launches, scratch_bytes;
} uir_runtime_cost;
uir_status uir_runtime_count_cost(uir_runtime *runtime, uir_runtime_cost *out_cost);

/* Cost of one launch, by index; false past the end. */
typedef struct uir_runtime_launch_cost {
    const char *kernel, *node, *op;
    uint64_t tensor_bytes; /* of its operands and results, each tensor once */
    uint64_t dram_bytes, flops;
} uir_runtime_launch_cost;
bool uir_runtime_get_launch_cost(const uir_runtime *runtime, uint32_t index, uir_runtime_launch_cost *out_cost);

/* The copies between the memories of the device and the host, and the host's waits, as the plan has them: those of a
 * steady run, which has the constants on the device. 0 without a device. */
typedef struct uir_runtime_bus {
    uint64_t waits, bytes_to_device, bytes_from_device;
    /* What only a run knows. sizes: copies of unknown size, which are not counted, and sizes that may change from turn
     * to turn of a loop. turns: loops, which count one turn. branches: IFs, which count their first branch. */
    uint32_t unknown_sizes, unknown_turns, unknown_branches;
} uir_runtime_bus;
/* Of the run that uir_runtime_plan planned; `of_run`: for the sizes, turns and branches of the last run. Nothing runs.
 * INVALID_ARGUMENT with a message if there is no such run; LIMIT if the plan's loops turn too often to be followed. */
uir_status uir_runtime_count_bus(uir_runtime *runtime, bool of_run, uir_runtime_bus *out_bus);
/* What each further turn of a loop adds to the last uir_runtime_count_bus, by index of its loops of unknown turns;
 * false past the end. */
bool uir_runtime_get_turn_bus(const uir_runtime *runtime, uint32_t index, const char **out_node, const char **out_op,
                              uir_runtime_bus *out_bus);

/* Counts the bytes moved by slices of the last run's launches, by walking their bytecode without computing. The counts
 * replace dram_bytes of the statistics until the next run. Launches in a loop count with their last sizes. */
uir_status uir_runtime_count_traffic(uir_runtime *runtime);

/* ---- steps that the host executes because the device cannot ---- */
typedef struct uir_package_fallbacks {
    uint32_t groups, operators; /* of kernels for the host; host operators */
} uir_package_fallbacks;
bool uir_package_has_device(const uir_package *package); /* it is for a device with memory of its own */
uir_package_fallbacks uir_package_count_fallbacks(const uir_package *package);
/* Appends their numbers, `after`, and the first nodes with their reasons. */
void uir_package_describe_fallbacks(const uir_package *package, const char *after, uir_text *text);
/* UNSUPPORTED, with a message that names the first nodes, if there are any. */
uir_status uir_package_refuse_fallbacks(const uir_package *package, uir_diagnostics *diagnostics);

/* ---- statistics: of the last run ---- */
typedef struct uir_runtime_statistics {
    double run_ms;
    uint64_t native_calls, vm_calls, vendor_calls, host_calls, copies;
    uint64_t device_calls, waits; /* launches of the device; waits of the host for it */
    uint64_t bytes_to_device, bytes_from_device;
    uint64_t kernels, phases; /* launches, and the phases in them */
    uint64_t dram_bytes;      /* of operands and results of launches, each once per launch */
    uint64_t arena_bytes;     /* reserved for tensors that are neither inputs, outputs nor constants */
    uint64_t device_bytes;    /* most device memory held at once by now: weights, tensors and workspaces */
    uint64_t scratch_bytes;   /* of all threads */
    uint32_t threads;
} uir_runtime_statistics;
uir_runtime_statistics uir_runtime_get_statistics(const uir_runtime *runtime);

typedef struct uir_runtime_step {
    const char *kind;   /* "launch", "host" ... */
    const char *by;     /* "native", "vm", "host"; "" for a step without computation */
    const char *kernel; /* name of a kernel or host operator, "" */
    const char *node;   /* the nodes that the step came from */
    const char *op;
    const char *remark; /* the nodes fused into the step, or the reason that it has no kernel */
    const char *why;    /* why the device cannot execute it, so that the host does; NULL: it can, or there is none */
    uint64_t bus_bytes; /* copied between host and device for such a step */
    uint32_t variant, phases;
    uint64_t calls, tensor_bytes, dram_bytes;
    uint64_t flops; /* 0 until uir_runtime_count_traffic */
    double ms;
} uir_runtime_step;
/* False past the end. */
bool uir_runtime_get_step(const uir_runtime *runtime, uint32_t index, uir_runtime_step *out_step);

/* Nodes of the model's file that step `step` computes, the main one first; `*out_again`: an earlier step computes the
 * node too. False past the last. */
bool uir_runtime_get_step_node(const uir_runtime *runtime, uint32_t step, uint32_t index, uint32_t *out_node,
                               bool *out_again);

/* The kernel variant and tiles chosen for a launch in the last run. */
typedef struct uir_runtime_choice {
    uint32_t variant, variant_count;     /* of the kernel; counted from 0 */
    uint32_t candidate, candidate_count; /* of the variant's tiling function; 0 of 0: none */
    const int64_t *tiles;                /* valid until the next run */
    uint32_t tile_count;
    int64_t units, cost; /* units of work, shared by the threads; cost of one, in the kernel's own measure */
} uir_runtime_choice;
/* False for a step that is not a launch or did nothing. */
bool uir_runtime_get_choice(const uir_runtime *runtime, uint32_t step, uir_runtime_choice *out_choice);
/* Makes launches of the kernel use this candidate of their variant, if valid for their sizes, from the next run on;
 * UINT32_MAX: the cheapest again. NOT_FOUND, without a message, for an unknown kernel. */
uir_status uir_runtime_want_candidate(uir_runtime *runtime, const char *kernel, uint32_t candidate);

/* A time interval of a thread on a step of the last run, by thread and in the order of their ends; then those of a
 * device's queues. False past the end, and if the runtime does not trace. */
typedef struct uir_runtime_slice {
    uint32_t thread;         /* 0: the caller of the run */
    uint32_t step, phase;    /* for uir_runtime_get_step, UINT32_MAX: none; of a launch */
    uint64_t indices;        /* parallel indices of the phase; 0: none */
    double begin_ms, end_ms; /* since the beginning of the run */
    const char *queue;       /* "compute", "upload", "download"; NULL: of a thread */
    uint64_t bytes;          /* of a queue's copy */
    bool is_modelled;        /* by the clock of a simulated device */
} uir_runtime_slice;
bool uir_runtime_get_slice(const uir_runtime *runtime, size_t index, uir_runtime_slice *out_slice);

/* Cores that affinity and cgroup quota allow this process. */
uint32_t uir_core_count(void);

#endif
