/* The structures of the runtime: an opened package, the analysis of its plan, a runtime's state.
 *
 * Epochs. Sizes become known in epochs: epoch 0 when inputs are set, one more whenever a step binds symbols (bind, a
 * loop's iteration, results with data-dependent extents). A tensor and a launch belong to the last epoch among their
 * symbols. Entering an epoch computes the shapes of its tensors, plans their memory and prepares its launches. An epoch
 * whose symbols keep their values does no new work. */
#ifndef UIR_RUNTIME_INTERNAL_H
#define UIR_RUNTIME_INTERNAL_H

#include "base/file.h"
#include "base/tensor.h"
#include "base/vector.h"
#include "package/order.h"
#include "package/package.h"
#include "package/plan.h"
#include "runtime/driver.h"
#include "runtime/phase.h"
#include "runtime/runtime.h"
#include <pthread.h>
#include <stdatomic.h>

enum {
    RT_ALIGN = 64,
    RT_MAX_FORMATS = 8,
    RT_TURNS = 64 /* of a loop whose numbers are kept */,
    RT_POLL = 1024 /* steps of a loop between polls of cancel */
};

/* ---- memory ---- */
/* Memory of the host, or of the device. */
typedef struct uir_rt_buffer {
    char *data; /* NULL: there is none, or the host cannot follow it */
    size_t capacity;
    uir_driver_buffer *device; /* NULL: of the host */
    uir_driver_buffer *locked; /* of the host, page-locked by the device's driver; NULL: ordinary */
} uir_rt_buffer;

/* ---- a package ---- */
/* Kernels of one format, per variant; NULL where the format has none. Immutable once published. */
typedef struct uir_rt_kernels {
    const uir_kernel_format *format;
    uint32_t rank; /* of a native object's isa on this machine */
    const uir_loaded_kernel **variants;
} uir_rt_kernels;

/* A device as a package uses it: its kernels, and the constants that they read, there once for all runtimes. */
typedef struct uir_rt_device {
    const uir_driver *driver; /* NULL: none was given */
    uir_driver_device *device;
    const uir_driver_facts *facts;
    uint32_t alignment;                /* of tensors in its memory, in bytes: the device's, and at least RT_ALIGN */
    uir_driver_code *code;             /* NULL: the plan is the host's alone */
    const uir_driver_kernel **kernels; /* by variant */
    uint32_t variant_count;
    uint64_t *offsets; /* by constant: in `weights`; UINT64_MAX: not on the device */
    uint64_t weights_size;
    pthread_mutex_t lock; /* held while the weights are copied */
    bool has_lock;
    uir_rt_buffer weights; /* empty until the first run */
    atomic_bool has_weights;
    uir_package_keeper keeper;
    uir_status (*loaded)(void *user, double share); /* of the opening; NULL behind it */
    void *loaded_user;
    uir_driver_image image; /* that the package has for the device */
    char origin[320];       /* of the code, if the driver has compiled it; else "" */
    atomic_bool is_unsaved; /* the keeper wants the code after a run */
} uir_rt_device;

/* What uir_rt_find_kernels looks for. */
typedef struct uir_rt_search {
    /* `same`: a variant of the same code that was found; NONE: none. */
    uir_status (*find)(void *user, uint32_t variant, uint32_t same, const uir_kernel_entry *entry,
                       uir_diagnostics *diagnostics);
    bool (*has)(void *user, uint32_t variant);
    void *user;
    uir_plan_domain domain;     /* whose kernels are looked for */
    uint32_t native;            /* the native object; NONE: bytecode */
    const char *const *symbols; /* of a native object, by variant; NULL: those in the package */
    size_t code_size;           /* of the bytecode */
} uir_rt_search;

typedef struct uir_rt_tensor_info {
    uint32_t root;        /* itself, or the tensor at the end of its aliases */
    uint32_t epoch;       /* epoch in which its extents are known */
    uint32_t first, last; /* lifetime of a root, as positions */
    uint32_t shape;       /* offset of its extents in all shapes */
    uint32_t writer;      /* of a root: its only writer; NONE: no step writes it */
    bool conditional;     /* used by steps in bodies only: its size may be invalid in some runs */
    uint32_t home;        /* of a root: the LOOP or IF that it is a result of, and is written in the place of; NONE */
    uint32_t home_index;  /* which carried value or result of that step */
    uint32_t slack;       /* of the root: symbol of the slack behind each stretch of `slack_axis`; NONE: packed */
    uint32_t slack_axis;
} uir_rt_tensor_info;
typedef struct uir_rt_step_info {
    uint32_t position, end; /* in execution order; those of a body are in between */
    uint32_t epoch;         /* opened after the step has run; NONE */
    uint32_t index;         /* index among launches, or among loops */
    uint32_t launch_epoch;  /* in which a launch is prepared */
    uint32_t block;
    bool conditional; /* in a body */
    bool is_awaited;  /* another step waits for it */
} uir_rt_step_info;
typedef struct uir_rt_block_info {
    uint32_t epoch;                  /* opened by binding its inputs; NONE */
    uint32_t first_epoch, end_epoch; /* opened inside; forgotten when the block begins */
    uir_vector(uint32_t) checks;     /* of sizes known before the block begins */
    uir_vector(uint32_t) tensors;    /* placed until the block ends: ports, and results allocated by its steps */
    uir_vector(uint32_t) homed;      /* tensors with a home whose sizes are known before the block begins */
} uir_rt_block_info;
/* Maxima over a kernel's variants. */
typedef struct uir_rt_kernel_info {
    uint32_t symbols, pointers, phases, works;
    bool on_host, on_device; /* where it is launched */
} uir_rt_kernel_info;
typedef struct uir_rt_epoch_info {
    uir_vector(uint32_t) tensors;
    uir_vector(uint32_t) launches; /* steps */
    uir_vector(uint32_t) checks;
    uir_vector(uint32_t) symbols; /* used by its sizes */
    uir_vector(uint32_t) learned; /* bound when the epoch opens */
    uir_vector(uint32_t) homed;   /* tensors with a home whose sizes it knows */
} uir_rt_epoch_info;
typedef struct uir_rt_analysis {
    uir_rt_tensor_info *tensors;
    uir_rt_step_info *steps;
    uir_rt_block_info *blocks;
    uir_rt_kernel_info *kernels;
    uir_vector(uir_rt_epoch_info) epochs;
    uint32_t *symbol_epoch; /* NONE: never bound */
    uint32_t shape_count, launch_count, loop_count, depth;
    uir_plan_release *releases; /* by root; NULL: the plan is the host's alone */
    uint32_t awaited_count;     /* steps that others wait for */
    uint32_t last_request;      /* the last step of block 0 that a queue of the device takes */
    bool *is_host_input;        /* by input: steps of the host read it; NULL: the plan is the host's alone */
} uir_rt_analysis;

struct uir_package {
    uir_arena arena;
    uir_allocator allocator;
    uir_plan plan;
    uir_rt_analysis analysis;
    uir_package_section sections[UIR_PACKAGE_MAX_SECTIONS];
    uint32_t section_count;
    const unsigned char *weights;
    const uir_kernel_format *formats[RT_MAX_FORMATS];
    uint32_t format_count;
    bool trusted;
    bool no_fallback;       /* the host computes nothing instead of the device */
    const char *not_native; /* why no native object was loaded; NULL: none was expected */
    uir_custom_function *custom;
    void *custom_user;
    const struct uir_image_extras *pictures; /* NULL: none */
    uir_rt_device device;
    uint32_t version;
    /* By format. Published when complete; replaced as a whole. */
    _Atomic(const uir_rt_kernels *) kernels[RT_MAX_FORMATS];
    atomic_flag lock; /* held while an object is attached */
    struct uir_rt_loaded *loaded;
    _Atomic(bool) *verified; /* per constant */
    atomic_bool all_verified;
    uir_file file;  /* the opened file; all zero: opened from bytes */
    int descriptor; /* of the file, if mapped */
    const char *path;
    char maker[40], signer[2 * UIR_SIGNATURE_KEY_SIZE + 1];
    const int64_t **port_dims; /* inputs, then outputs */
    const char **node_names;   /* by node of the model's file */
    uint32_t *node_steps;      /* by node of the model's file: its first step, + 1 */
    const char ***port_names;
};

/* Analyses a plan; BAD_FILE if a size is used before it is known. */
uir_status uir_rt_analyse(uir_arena *arena, const uir_plan *plan, uir_diagnostics *diagnostics,
                          uir_rt_analysis *analysis);
/* Verifies the properties that a run relies on (verify.c), for an analysed plan; records the writers of tensors. */
uir_status uir_rt_verify(uir_arena *arena, const uir_plan *plan, uir_diagnostics *diagnostics,
                         uir_rt_analysis *analysis);
const uir_package_section *uir_rt_find_section(const uir_package *package, uir_package_section_kind kind,
                                               uint32_t index); /* NULL: it has none */
/* Finds the variants of all kernels in an image. */
uir_status uir_rt_find_kernels(const uir_package *package, const uir_rt_search *search, uir_diagnostics *diagnostics);
uir_status uir_rt_verify_constant(uir_package *package, uint32_t constant, uir_diagnostics *diagnostics);

/* ---- threads ---- */
typedef struct uir_rt_pool uir_rt_pool;
typedef void uir_rt_task(void *context, uint32_t thread);
/* `workers`: threads besides the caller's. */
uir_status uir_rt_pool_create(const uir_allocator *allocator, uint32_t workers, uir_rt_pool **out_pool);
void uir_rt_pool_destroy(uir_rt_pool *pool);
/* Runs task(context, 0) on the caller's thread, and task(context, t) on the other threads below `threads` that are
 * ready in time. A task takes work dynamically, so that any thread can do all of it. Returns when all begun tasks are
 * done. */
void uir_rt_pool_run(uir_rt_pool *pool, uint32_t threads, uir_rt_task *task, void *context);
/* Between begin and end, idle workers spin for a short time before they sleep. */
void uir_rt_pool_begin(uir_rt_pool *pool);
void uir_rt_pool_end(uir_rt_pool *pool);

/* ---- a runtime ---- */
typedef struct uir_rt_tensor {
    uir_region at; /* of a root tensor; size: its accessible bytes; no buffer and no `host`: not placed */
    size_t bytes;  /* of its shape, packed */
    size_t span;   /* with its slack or layout */
    bool invalid;  /* conditional, and without a shape for these dims */
} uir_rt_tensor;

typedef struct uir_rt_launch {
    uir_kernel_launch base;
    const uir_kernel_format *format;
    const uir_plan_variant *variant;
    uint32_t variant_index; /* within the kernel */
    uint32_t candidate;     /* in the variant's tiling function; NONE: none */
    int64_t units, cost;    /* units of work of that candidate, and the cost of one */
    bool invalid;           /* conditional, and not prepared for these dims */
    bool by_host;           /* of the device, with a variant that only the host has */
    uint64_t host_bytes;    /* copied for that in the last execution */
    bool idle;              /* no result has elements: not prepared, does nothing */
    size_t state_capacity;
    int64_t *symbols, *indices;
    void **pointers;
    size_t *sizes;
    uint32_t first_constant;                /* of this variant's CONST pointers, among the step's constants */
    uint32_t first_work;                    /* of its work pointers, among the epoch's storage requests */
    uint64_t bytes;                         /* of its tensors */
    int64_t *begins;                        /* per phase: first index of this run */
    int64_t *halves;                        /* per phase: indices that only copy in place once input and output alias */
    struct uir_rt_device_launch *on_device; /* NULL: the host launches it */
} uir_rt_launch;

/* A launch of the device. */
typedef struct uir_rt_device_launch {
    uir_driver_launch base;
    uir_region *pointers;
    uint64_t *needed; /* per pointer */
    size_t state_capacity;
} uir_rt_device_launch;

/* A request of a queue between two points: a launch, or a copy. */
typedef struct uir_rt_request {
    uint32_t queue, step; /* step: NONE: of no step */
    uint64_t begin, end;  /* points */
    uint64_t bytes;       /* of a copy */
} uir_rt_request;
typedef struct uir_rt_queue_slice {
    uir_rt_request request;
    double begin_ms, end_ms; /* on the device's clock */
} uir_rt_queue_slice;
/* times.c: when the requests of the last run were executed. */
typedef struct uir_rt_times {
    uir_rt_request *pending; /* whose times the device does not know yet */
    uint32_t pending_count;
    uir_rt_queue_slice *slices;
    size_t count, capacity;
    uint64_t origin_point; /* of the compute queue, as the run begins */
    double origin;         /* its time */
    bool has_origin;
} uir_rt_times;

/* A runtime's queues of a device. Those of the plan may be one of the device. */
typedef struct uir_rt_queues {
    const uir_driver *driver;                       /* the package's, or one that only counts: forecast.c */
    uir_driver_queue *queues[UIR_PLAN_QUEUE_COUNT]; /* HOST: NULL */
    bool is_pending;    /* requests of the compute queue, or that it follows, and nobody has waited for */
    uint32_t last_step; /* of the last kernel or copy that was submitted; UIR_PLAN_NONE: none of a step */
    bool has_news[UIR_PLAN_QUEUE_COUNT];   /* requests since the queues were joined */
    uint64_t waited[UIR_PLAN_QUEUE_COUNT]; /* the last point that the host has waited for */
    uint64_t *points;                      /* by step: of its last request in this run; 0: none */
    uir_rt_buffer workspaces[2];           /* of launches; the second is zero between them */
    uint64_t workspace_sizes[2];           /* that launches need */
    bool is_zero;                          /* the second workspace; a failed launch leaves it in any state */
    bool has_weights;                      /* the package's constants were there when sizes became known */
    bool is_lost;                          /* the device executes nothing any more */
    uir_watch watch;                       /* of the time of a wait, if it is limited */
    volatile bool is_late;                 /* the wait has taken too long */
    bool is_timed;                         /* points are marked around the requests of this run */
    uir_rt_times times;
} uir_rt_queues;

/* The caller's buffer of an input or an output. */
typedef struct uir_rt_binding {
    uir_region at; /* not placed: not bound; an output is then in the runtime's memory */
    bool strided;  /* strides[d], in elements, apply; else packed */
    int64_t strides[UIR_PLAN_MAX_RANK];
    bool in_place; /* its strides match the slack of the port in this run; else it is copied */
} uir_rt_binding;

/* A value that a loop carries: where the present turn reads it, and two buffers that turns write in turn. */
typedef struct uir_rt_carried {
    uir_rt_buffer slots[2];
    uint32_t next; /* the slot that this turn writes */
    uir_region at;
    bool is_given; /* `at` is the memory of the loop's operand, which the loop does not change */
} uir_rt_carried;

/* The inputs 0 and 1 of the body of a LOOP, of the last turns: a queue may still copy those of earlier ones. */
typedef struct uir_rt_kept {
    int64_t iterations[RT_TURNS];
    unsigned char conditions[RT_TURNS];
} uir_rt_kept;

typedef struct uir_rt_loop {
    uir_rt_carried *carried;
    uir_rt_buffer kept; /* a uir_rt_kept */
    uint64_t turns;     /* of this run */
    int64_t iteration;
    unsigned char condition;
    /* Of the forecast: what each further turn adds, if only the run knows how often it turns. */
    bool is_open;
    uir_runtime_bus turn;
} uir_rt_loop;

/* A storage request in an epoch's block, with its lifetime from `first` to `last`. */
typedef struct uir_rt_place {
    uint64_t size, offset;
    uint32_t first, last;
    uint32_t tensor; /* NONE: a work pointer of a launch */
    uint32_t domain; /* places of one domain share a block */
    /* The queues that access it, a bit each, and the lifetime that places of other queues see. */
    uint32_t queues, begin, end;
} uir_rt_place;

typedef struct uir_rt_epoch {
    int64_t *snapshot; /* of its symbols */
    bool valid;
    uir_rt_buffer blocks[UIR_PLAN_DOMAIN_COUNT];
    uint64_t block_sizes[UIR_PLAN_DOMAIN_COUNT]; /* used by the places */
    uir_rt_place *places;
    uint32_t *order; /* scratch for assigning offsets: three numbers a place */
    uint32_t place_count;
} uir_rt_epoch;

typedef struct uir_rt_step_statistics {
    uint64_t calls, nanoseconds;
    uint64_t traffic, flops; /* per call */
    bool counted;            /* traffic and flops of the last run are counted */
    bool planned;            /* traffic and flops of a planned run are counted */
} uir_rt_step_statistics;

/* A thread's work on a step, in a traced run. */
typedef struct uir_rt_slice {
    uint64_t begin, end; /* nanoseconds */
    uint32_t step, phase;
    uint64_t indices; /* parallel indices of the phase; 0: none */
} uir_rt_slice;
typedef struct uir_rt_track {
    uir_rt_slice *slices;
    size_t count, capacity;
} uir_rt_track;

struct uir_runtime {
    uir_arena arena; /* for all that is sized by the plan */
    uir_allocator allocator;
    uir_package *package;
    const uir_plan *plan;
    const uir_rt_analysis *analysis;
    uir_diagnostics *diagnostics;
    const uir_rt_kernels *kernels[RT_MAX_FORMATS]; /* as published when the run began */
    uir_rt_pool *pool;
    uir_runtime_options options;
    uint32_t threads;
    uir_kernel_scratch *scratch; /* per thread */
    uir_rt_track *tracks;        /* per thread */
    uir_rt_share *shares;        /* per thread */
    uint64_t began;              /* start of the last run */
    size_t scratch_needed;
    int64_t *values; /* per symbol */
    bool *bound;
    int64_t *shapes;      /* in the order of the plan's extents */
    int64_t *actual;      /* extents of results whose shape is known only after their step */
    int64_t *environment; /* symbols of a kernel variant while it is chosen */
    bool *environment_bound;
    uir_rt_tensor *tensors;
    uir_rt_epoch *epochs;
    uir_rt_launch *launches;
    uir_rt_loop *loops;
    uir_rt_buffer host;     /* scratch memory of host operators */
    uir_rt_buffer by_host;  /* what launches of the device access that the host runs */
    bool has_host_launches; /* a warning has said so */
    uir_rt_buffer *owned;   /* per tensor with storage OWN */
    uir_rt_buffer *results; /* per output: in the runtime's memory on the host */
    uir_rt_binding *bound_outputs;
    bool *copied_out; /* per output: written elsewhere, copied to the caller's buffer at the end of the run */
    uir_rt_binding *bound_inputs;
    uir_rt_buffer
        *staged; /* per input: a packed copy of one whose strides no kernel supports, or that the device has */
    uir_rt_buffer *device_inputs, *device_results; /* per input, per output: on the device */
    uir_rt_queues queues;                          /* of the device */
    uint64_t device_used, device_peak;             /* bytes of the device that it holds, with the package's constants */
    uir_region *inputs;                            /* where they are in this run */
    size_t *input_sizes;                           /* packed */
    int64_t *input_shapes;                         /* MAX_RANK each */
    bool *input_set;
    uir_rt_step_statistics *steps;
    uir_runtime_statistics statistics;
    uint32_t *wanted; /* per kernel: the candidate set by uir_runtime_want_candidate; NULL: none */
    volatile bool cancel;
    bool ran;
};

static inline bool uir_rt_cancelled(const uir_runtime *r) {
    return __atomic_load_n(&r->cancel, __ATOMIC_RELAXED);
}
static inline char *uir_rt_address(const uir_runtime *r, uint32_t tensor) {
    return r->tensors[r->analysis->tensors[tensor].root].at.host;
}
static inline uir_region uir_rt_on_host(const void *address, size_t size) {
    return (uir_region){.size = size, .host = (char *)(uintptr_t)address};
}
static inline uir_region uir_rt_in_buffer(const uir_rt_buffer *buffer, uint64_t offset, uint64_t size) {
    return (uir_region){buffer->device, buffer->device ? offset : 0, size, buffer->data ? buffer->data + offset : NULL};
}
static inline bool uir_rt_is_same_place(const uir_region *a, const uir_region *b) {
    return a->buffer == b->buffer && (a->buffer ? a->offset == b->offset : a->host == b->host);
}
static inline bool uir_rt_is_placed(const uir_region *at) {
    return at->buffer || at->host;
}
static inline const int64_t *uir_rt_shape(const uir_runtime *r, uint32_t tensor) {
    return r->shapes + r->analysis->tensors[tensor].shape;
}
static inline uint32_t uir_rt_rank(const uir_runtime *r, uint32_t tensor) {
    return r->plan->tensors[tensor].extents.count;
}
/* Where a tensor is: fails with a message if the tensor lacks some of its bytes. */
uir_status uir_rt_locate(uir_runtime *r, uint32_t tensor, uir_region *out_region);
/* The same for a tensor of the host. */
uir_status uir_rt_locate_host(uir_runtime *r, uint32_t tensor, char **out_address);
void uir_rt_place_tensor(uir_runtime *r, uint32_t tensor, uir_region at);
/* Grows a buffer of the domain to `size` bytes; contents are lost. The host's is page-locked if the device offers that.
 * `tensor` is named in the message on failure; NONE: scratch memory. */
uir_status uir_rt_buffer_grow(uir_runtime *r, uir_rt_buffer *buffer, uir_plan_domain domain, uint64_t size,
                              uint32_t tensor);
/* The same of scratch memory that the device never copies: the host's, ordinary. */
uir_status uir_rt_buffer_grow_scratch(uir_runtime *r, uir_rt_buffer *buffer, uint64_t size);
void uir_rt_buffer_release(uir_runtime *r, uir_rt_buffer *buffer);

/* ---- homes.c: results of bodies, written where the LOOP or IF has them ---- */
/* Finds the home of each tensor; after uir_rt_verify. */
uir_status uir_rt_find_homes(uir_arena *arena, const uir_plan *plan, uir_rt_analysis *analysis);
/* The buffer of a tensor with a home, or with storage OWN. */
uir_rt_buffer *uir_rt_home(const uir_runtime *r, uint32_t tensor);
/* Gives memory to tensors that have a home. */
uir_status uir_rt_place_homed(uir_runtime *r, const uint32_t *tensors, uint32_t count);
/* Whether a LOOP or IF copies what its body returns as carried value or result `index`, `inner`. */
bool uir_rt_copies_result(const uir_runtime *r, uint32_t step, uint32_t index, uint32_t inner);
/* Whether `result` of an IF, and `inner` that the branch returns, are the same value that a loop carries: the result
 * then has its place. */
bool uir_rt_is_carried_on(const uir_runtime *r, uint32_t result, uint32_t inner);

/* Binds the plain symbols among the tensor's extents that are still unbound; checks facts. */
uir_status uir_rt_learn_shape(uir_runtime *r, uint32_t tensor, const int64_t *shape);
/* Compares `shape` with the tensor's extents in the plan. `port`: for the names of dims; NULL: none. */
uir_status uir_rt_check_shape(uir_runtime *r, uint32_t tensor, const int64_t *shape, const char *what,
                              const uir_plan_port *port);
uir_status uir_rt_bind_symbol(uir_runtime *r, uint32_t symbol, int64_t value);

/* ---- binding.c: tensors in buffers of the caller ---- */
/* Binds the slack of a port for a tensor of this shape; sets binding->in_place. */
uir_status uir_rt_bind_slack(uir_runtime *r, const uir_plan_port *port, const int64_t *shape, uir_rt_binding *binding);
/* Bytes from the first element to the end of the last. */
bool uir_rt_footprint(const uir_rt_binding *binding, uir_dtype dtype, uint32_t rank, const int64_t *shape, size_t *out);
/* Copies elements from memory that is packed except for slack to the binding, and from the binding to packed memory. */
void uir_rt_scatter(const uir_rt_binding *binding, uir_dtype dtype, uint32_t rank, const int64_t *shape,
                    uint32_t slack_axis, int64_t slack, const void *from);
void uir_rt_gather(const uir_rt_binding *binding, uir_dtype dtype, uint32_t rank, const int64_t *shape, void *to);
/* Enters an epoch: computes shapes, plans memory, prepares launches. */
uir_status uir_rt_enter_epoch(uir_runtime *r, uint32_t epoch);
/* Memory planning: assigns offsets to the places of a domain so that those with overlapping lifetimes share no bytes;
 * returns the total size. `work` holds three numbers a place. */
uint64_t uir_rt_assign_offsets(uir_rt_place *places, uint32_t count, uir_plan_domain domain, uint32_t *work);
/* Checks the constraints on sizes that are known before the block begins. */
uir_status uir_rt_check_block(uir_runtime *r, uint32_t block);
/* Checks sizes as uir_rt_enter_epoch would, without memory planning; the last run's results are unchanged. */
uir_status uir_rt_check_epoch(uir_runtime *r, uint32_t epoch);
/* Clears the symbols and addresses of the block, since none outlives an iteration. */
void uir_rt_forget_block(uir_runtime *r, uint32_t block);

/* Runs a launch of the device whose variant is the host's. */
uir_status uir_rt_launch_by_host(uir_runtime *runtime, uint32_t step, uir_rt_launch *launch);
/* Says once that there is one; UNSUPPORTED if the package's opener forbids it. */
uir_status uir_rt_judge_by_host(uir_runtime *runtime, uint32_t step);
/* Runs all phases of a prepared launch on the host. */
uir_status uir_rt_run_phases(uir_runtime *runtime, uint32_t step, uir_rt_launch *launch);
/* Bytes that the last run copied between host and device for a step that the device cannot execute. */
uint64_t uir_rt_count_fallback_bytes(const uir_runtime *runtime, uint32_t step);

/* Chooses the kernel variant and tiles for the sizes, and calls the format's `prepare`; addresses are set later. */
uir_status uir_rt_launch_prepare(uir_runtime *r, uint32_t step);
uir_status uir_rt_launch_run(uir_runtime *r, uint32_t step);
/* Bytes that the launch's slices move, and operations (NULL: not counted). */
uir_status uir_rt_launch_count_traffic(uir_runtime *r, uint32_t step, uint64_t *out_bytes, uint64_t *out_flops);
uir_status uir_rt_launch_create(uir_runtime *r, uint32_t step);
/* Grows the private state of a launch to `size` zeroed bytes; its contents are lost. */
uir_status uir_rt_grow_state(uir_runtime *r, void **state, size_t *capacity, size_t size);
/* Grows the scratch of all threads to the needs of launches and earlier runs. */
uir_status uir_rt_ensure_scratch(uir_runtime *r);

uir_status uir_rt_run_block(uir_runtime *r, uint32_t block);
/* Whether no result of a LOOP has an element, however often it turns: then it does not. */
bool uir_rt_gives_nothing(const uir_runtime *r, uint32_t step);
/* Adds a slice of the calling thread. The slice is dropped if memory is exhausted. */
void uir_rt_trace(uir_runtime *r, uint32_t thread, uir_rt_slice slice);
/* Reports `status` with a message that names the step's node. */
uir_status uir_rt_fail_step(uir_runtime *r, uint32_t step, uir_status status, const char *format, ...) UIR_PRINTF(4, 5);

/* ---- a device: runtime/device/ ---- */
/* attach.c: the kernels and constants of a package on its device. */
uir_status uir_rt_device_load_code(uir_package *package, uir_diagnostics *diagnostics); /* code.c */
void uir_rt_device_save_code(uir_package *package); /* code.c: gives it to the keeper, once, after a run */
uir_status uir_rt_device_load(uir_package *package, uir_diagnostics *diagnostics);
void uir_rt_device_unload(uir_package *package);
/* Memory of the device, of buffer->capacity bytes; false if there is none left. */
bool uir_rt_device_allocate(uir_package *package, uir_rt_buffer *buffer);
void uir_rt_device_release(uir_package *package, uir_rt_buffer *buffer);
/* Page-locked memory of the host, of buffer->capacity bytes, counted as the runtime's own; false if there is none. */
bool uir_rt_device_lock(uir_runtime *r, uir_rt_buffer *buffer);
void uir_rt_device_unlock(uir_runtime *r, uir_rt_buffer *buffer);
/* Counts bytes of the device that the runtime is to hold; LIMIT beyond its budget's. `purpose` is for the message. */
uir_status uir_rt_device_take(uir_runtime *r, uint64_t bytes, const char *purpose);
void uir_rt_device_give(uir_runtime *r, uint64_t bytes);
/* Counts the constants as the runtime's, and copies them to the device if nobody has: once a runtime. */
uir_status uir_rt_device_need_weights(uir_runtime *r);
uir_region uir_rt_constant_region(const uir_package *package, uint32_t constant, uir_plan_domain domain);

/* queues.c: requests, and what waits for what. Without a device they do nothing. */
uir_status uir_rt_queues_create(uir_runtime *r); /* once */
void uir_rt_queues_destroy(uir_runtime *r);
/* Waits for all requests, and gives the queues back: after a failure. */
void uir_rt_queues_close(uir_runtime *r);
/* Before a run: queues, the package's constants, and inputs that the host reads of the device. */
uir_status uir_rt_queues_begin(uir_runtime *r);
/* After its steps: waits for all requests, whatever the status; then outputs are copied. */
uir_status uir_rt_queues_end(uir_runtime *r, uir_status status);
/* The waits before a step, and the point after it. */
uir_status uir_rt_begin_step(uir_runtime *r, uint32_t step);
uir_status uir_rt_end_step(uir_runtime *r, uint32_t step);
/* At the end of a body of a LOOP or IF: its waits; then the compute queue is behind all requests. */
uir_status uir_rt_end_body(uir_runtime *r, uint32_t step, uint32_t block);
/* All queues are behind the requests of the compute queue. */
uir_status uir_rt_spread(uir_runtime *r, uint32_t step);
/* Waits until no request is pending. */
uir_status uir_rt_drain(uir_runtime *r);
/* A point behind the requests of a queue of the plan, and a wait of the host until it is reached. */
uir_status uir_rt_mark(uir_runtime *r, uint32_t queue, uint64_t *out_point);
uir_status uir_rt_wait(uir_runtime *r, uint32_t queue, uint64_t point);
/* Notes that a request was given to the queue. */
void uir_rt_note_request(uir_runtime *r, uint32_t queue);
/* The same of a copy, which is counted; one of no bytes is no request. */
void uir_rt_count_copy(uir_runtime *r, uint32_t queue, bool from_device, bool to_device, uint64_t bytes);
/* The queue of the device that takes the requests of a queue of the plan. */
uint32_t uir_rt_find_owner(const uir_runtime *r, uint32_t queue);
/* Before a turn of a LOOP. `*out_kept`: where its number and condition are kept; whatever was there is used no more. */
uir_status uir_rt_begin_turn(uir_runtime *r, uint32_t step, uint32_t *out_kept);
/* Copies bytes; between host and host at once, else on the queue. */
uir_status uir_rt_copy(uir_runtime *r, uint32_t step, uir_plan_queue queue, const uir_region *to,
                       const uir_region *from, uint64_t bytes);
/* Whether the caller has the input or output of a port's tensor on the device: it is not copied. */
bool uir_rt_is_bound_there(const uir_runtime *r, uint32_t tensor);
/* A step COPY of the device's queues. */
uir_status uir_rt_device_copy(uir_runtime *r, uint32_t step);
uir_status uir_rt_device_place_input(uir_runtime *r, uint32_t input, uint32_t tensor);

/* times.c: without options.queue_times, or where the device has no clock, they do nothing. */
uint32_t uir_rt_times_points(const uir_runtime *r); /* that a queue needs for them */
uir_status uir_rt_times_begin_run(uir_runtime *r);
void uir_rt_times_end_run(uir_runtime *r); /* after the run has waited for all requests */
/* Before and after a request; the latter with the point that the former gave. */
uir_status uir_rt_times_begin(uir_runtime *r, uint32_t queue, uint64_t *out_point);
uir_status uir_rt_times_end(uir_runtime *r, uir_rt_request request);
const uir_rt_queue_slice *uir_rt_times_get(const uir_runtime *r, size_t index); /* NULL past the end */
void uir_rt_times_destroy(uir_runtime *r);

/* launches.c */
uir_status uir_rt_device_launch_create(uir_runtime *r, uir_rt_launch *launch, const uir_rt_kernel_info *most);
void uir_rt_device_launch_destroy(uir_runtime *r, uir_rt_launch *launch);
uir_status uir_rt_device_prepare(uir_runtime *r, uint32_t step, uir_rt_launch *launch);
uir_status uir_rt_device_launch_run(uir_runtime *r, uint32_t step, const uir_rt_launch *launch);

static inline bool uir_rt_is_on_device(const uir_runtime *r, uint32_t step) {
    return uir_plan_get_queue(r->plan, step) != UIR_PLAN_QUEUE_HOST;
}

/* ---- host operators ---- */
typedef uir_status uir_rt_host_function(uir_runtime *r, uint32_t step);
uir_rt_host_function *uir_rt_host_find(const char *name);
/* Operand `k`, which must be present, and its address. */
uir_status uir_rt_host_operand(uir_runtime *r, uint32_t step, uint32_t k, uint32_t *out_tensor, char **out_data);
uir_status uir_rt_non_max_suppression(uir_runtime *r, uint32_t step); /* host_boxes.c */
uir_status uir_rt_image_decode(uir_runtime *r, uint32_t step);        /* host_image.c */
uir_status uir_rt_run_custom(uir_runtime *r, uint32_t step);          /* custom.c */
/* Gives storage to output `k` of a step, on the host, whose shape is known only now: checks the shape, or binds its
 * symbols and allocates. */
uir_status uir_rt_give_host_output(uir_runtime *r, uint32_t step, uint32_t k, const int64_t *shape, char **out_data);
const uir_plan_attribute *uir_rt_find_attribute(const uir_runtime *r, uint32_t step, const char *name);
int64_t uir_rt_attribute_int(const uir_runtime *r, uint32_t step, const char *name, int64_t fallback);

static inline uint64_t uir_rt_align_to(uint64_t size, uint64_t alignment) {
    return (size + alignment - 1) / alignment * alignment;
}
static inline uint64_t uir_rt_align(uint64_t size) {
    return uir_rt_align_to(size, RT_ALIGN);
}
uint64_t uir_rt_now(void); /* nanoseconds, monotonic */

#endif
