/* What the runtime's files share: a package as opened, what is known of its plan, a runtime's state. Private to them.
 *
 * Epochs. Sizes become known in epochs: epoch 0 when inputs are set, one more whenever a step learns symbols (bind, a
 * loop's iteration, results whose extents depend on data). A tensor and a launch belong to the last epoch among their
 * symbols; entering an epoch gives its tensors their shapes and places and prepares its launches. An epoch whose
 * symbols have the values that they had before is entered for nothing. */
#ifndef UIR_RUNTIME_INTERNAL_H
#define UIR_RUNTIME_INTERNAL_H

#include "base/file.h"
#include "base/tensor.h"
#include "base/vector.h"
#include "package/package.h"
#include "package/plan.h"
#include "runtime/runtime.h"
#include <stdatomic.h>

enum { RT_ALIGN = 64, RT_MAX_DRIVERS = 8, RT_POLL = 1024 /* steps of a loop between looks at cancel */ };

/* ---- a package ---- */
/* The kernels of one driver: per variant, NULL where the driver has none. Never changed once it can be seen. */
typedef struct uir_rt_kernels {
    const uir_driver *driver;
    uint32_t rank; /* of a native object's isa here */
    const uir_driver_kernel **variants;
} uir_rt_kernels;

typedef struct uir_rt_tensor_info {
    uint32_t root;        /* itself, or what it is an alias of in the end */
    uint32_t epoch;       /* when its extents are known */
    uint32_t first, last; /* positions between which a root's contents matter */
    uint32_t shape;       /* where its extents are among all shapes */
    uint32_t writer;      /* of a root: the one step that gives it its contents; NONE: none does */
    bool conditional;     /* only steps in bodies touch it: its size need not make sense in every run */
    uint32_t slack;       /* of the root: the symbol of the room behind each stretch of `slack_axis`; NONE: packed */
    uint32_t slack_axis;
} uir_rt_tensor_info;
typedef struct uir_rt_step_info {
    uint32_t position, end; /* in the order of the walk; a body's lie between */
    uint32_t epoch;         /* that it opens when it has run; NONE */
    uint32_t index;         /* among launches, or among loops */
    uint32_t launch_epoch;  /* that prepares a launch */
    bool conditional;       /* in a body */
} uir_rt_step_info;
typedef struct uir_rt_block_info {
    uint32_t epoch;                  /* that binding its inputs opens; NONE */
    uint32_t first_epoch, end_epoch; /* opened inside: forgotten when it begins */
    uir_vector(uint32_t) checks;     /* of sizes that are known before it begins */
    uir_vector(uint32_t) tensors; /* that are where they are until it ends: ports, and what its steps make room for */
} uir_rt_block_info;
/* The most that a variant of a kernel has. */
typedef struct uir_rt_kernel_info {
    uint32_t symbols, pointers, phases, works;
} uir_rt_kernel_info;
typedef struct uir_rt_epoch_info {
    uir_vector(uint32_t) tensors;
    uir_vector(uint32_t) launches; /* steps */
    uir_vector(uint32_t) checks;
    uir_vector(uint32_t) symbols; /* that its sizes use */
    uir_vector(uint32_t) learned; /* that get their values when it opens */
} uir_rt_epoch_info;
typedef struct uir_rt_analysis {
    uir_rt_tensor_info *tensors;
    uir_rt_step_info *steps;
    uir_rt_block_info *blocks;
    uir_rt_kernel_info *kernels;
    uir_vector(uir_rt_epoch_info) epochs;
    uint32_t *symbol_epoch; /* NONE: never bound */
    uint32_t shape_count, launch_count, loop_count, depth;
} uir_rt_analysis;

struct uir_package {
    uir_arena arena;
    uir_allocator allocator;
    uir_plan plan;
    uir_rt_analysis analysis;
    uir_package_section sections[UIR_PACKAGE_MAX_SECTIONS];
    uint32_t section_count;
    const unsigned char *weights;
    const uir_driver *drivers[RT_MAX_DRIVERS];
    uint32_t driver_count;
    bool trusted;
    const char *not_native; /* why no native object was loaded; NULL: none was to be */
    uir_custom_function *custom;
    void *custom_user;
    const struct uir_image_extras *pictures; /* NULL: none */
    /* By driver. Published once filled; replaced whole. */
    _Atomic(const uir_rt_kernels *) kernels[RT_MAX_DRIVERS];
    atomic_flag lock; /* held while something is attached */
    struct uir_rt_loaded *loaded;
    _Atomic(bool) *verified; /* per constant */
    atomic_bool all_verified;
    uir_file file;  /* that was opened; all zero: bytes were */
    int descriptor; /* of it, where it is mapped */
    const char *path;
    char maker[40], signer[2 * UIR_SIGNATURE_KEY_SIZE + 1];
    const int64_t **port_dims; /* inputs, then outputs */
    const char **node_names;   /* by node of the model's file */
    uint32_t *node_steps;      /* by node of the model's file: the first step that it stands in, + 1 */
    const char ***port_names;
};

/* Fills in `analysis`; BAD_FILE when a size is used before it is known. */
uir_status uir_rt_analyse(uir_arena *arena, const uir_plan *plan, uir_diagnostics *diagnostics,
                          uir_rt_analysis *analysis);
/* Proves what a run relies on (verify.c), of a plan that was analysed; notes who writes what. */
uir_status uir_rt_verify(uir_arena *arena, const uir_plan *plan, uir_diagnostics *diagnostics,
                         uir_rt_analysis *analysis);
uir_status uir_rt_verify_constant(uir_package *package, uint32_t constant, uir_diagnostics *diagnostics);

/* ---- threads ---- */
typedef struct uir_rt_pool uir_rt_pool;
typedef void uir_rt_task(void *context, uint32_t thread);
/* Threads beyond the caller's. */
uir_status uir_rt_pool_create(const uir_allocator *allocator, uint32_t workers, uir_rt_pool **out_pool);
void uir_rt_pool_destroy(uir_rt_pool *pool);
/* Runs task(context, 0) here and task(context, t) on those of the other threads below `threads` that come in time: a
 * task shares its work out as it goes, so that any of them can do all of it. Returns when all who began are done. */
void uir_rt_pool_run(uir_rt_pool *pool, uint32_t threads, uir_rt_task *task, void *context);
/* Between begin and end workers wait awake for a little while. */
void uir_rt_pool_begin(uir_rt_pool *pool);
void uir_rt_pool_end(uir_rt_pool *pool);

/* ---- a runtime ---- */
typedef struct uir_rt_buffer {
    char *data;
    size_t capacity;
} uir_rt_buffer;

typedef struct uir_rt_tensor {
    char *address;    /* of a root */
    size_t available; /* bytes there */
    size_t bytes;     /* that its shape takes, packed */
    size_t span;      /* that it takes with its slack */
    bool invalid;     /* conditional, and it has no shape for these dims */
} uir_rt_tensor;

typedef struct uir_rt_launch {
    uir_driver_launch base;
    const uir_driver *driver;
    const uir_plan_variant *variant;
    uint32_t variant_index; /* within the kernel */
    uint32_t candidate;     /* within the variant, of the tiling function; NONE: it has none */
    int64_t units, cost;    /* of that candidate: of work, and of one */
    bool invalid;           /* conditional, and it cannot be prepared for these dims */
    bool idle;              /* no result has elements: it is not prepared, and does nothing */
    size_t state_capacity;
    int64_t *symbols, *indices;
    void **pointers;
    size_t *sizes;
    uint32_t first_constant; /* of this variant's CONST pointers, among the step's constants */
    uint32_t first_work;     /* of its work pointers, among the epoch's places */
    uint64_t bytes;          /* of its tensors */
    int64_t *begins;         /* per phase: where this run begins */
    int64_t *halves; /* per phase: the indices that copy each address to itself once both tensors begin at one */
} uir_rt_launch;

/* How the caller holds an input or an output. */
typedef struct uir_rt_binding {
    char *data; /* NULL: not bound; an output is the runtime's own then */
    size_t capacity;
    bool strided; /* strides[d], in elements, apply; else it is packed */
    int64_t strides[UIR_PLAN_MAX_RANK];
    bool in_place; /* its strides are those of the slack that this run gave the port; else it is copied */
} uir_rt_binding;

typedef struct uir_rt_loop {
    uir_rt_buffer *slots; /* two per carried value */
    int64_t iteration;
    unsigned char condition;
} uir_rt_loop;

/* Something that needs room in an epoch's block from `first` to `last`. */
typedef struct uir_rt_place {
    uint64_t size, offset;
    uint32_t first, last;
    uint32_t tensor; /* NONE: a work pointer of a launch */
} uir_rt_place;

typedef struct uir_rt_epoch {
    int64_t *snapshot; /* of its symbols */
    bool valid;
    uir_rt_buffer block;
    uint64_t block_size; /* that the places take */
    uir_rt_place *places;
    uint32_t *order; /* what assigning offsets works in: three a place */
    uint32_t place_count;
} uir_rt_epoch;

typedef struct uir_rt_step_statistics {
    uint64_t calls, nanoseconds;
    uint64_t traffic, flops; /* of a call */
    bool counted;            /* the traffic and operations of the last run's calls */
    bool planned;            /* those of a planned one */
} uir_rt_step_statistics;

/* What one thread did of a step, while a run is traced. */
typedef struct uir_rt_slice {
    uint64_t begin, end; /* nanoseconds */
    uint32_t step, phase;
    uint64_t indices; /* parallel ones of the phase; 0: the step has none */
} uir_rt_slice;
typedef struct uir_rt_track {
    uir_rt_slice *slices;
    size_t count, capacity;
} uir_rt_track;

/* A thread's share of a phase: the indices that are left of it. Shares lie so far apart that no two threads write into
 * lines of the caches that are fetched together. */
typedef struct uir_rt_share {
    _Atomic(int64_t) next;
    int64_t end;
    char apart[128 - 2 * sizeof(int64_t)];
} uir_rt_share;

struct uir_runtime {
    uir_arena arena; /* what is sized by the plan */
    uir_allocator allocator;
    uir_package *package;
    const uir_plan *plan;
    const uir_rt_analysis *analysis;
    uir_diagnostics *diagnostics;
    const uir_rt_kernels *kernels[RT_MAX_DRIVERS]; /* as seen when the run began */
    uir_rt_pool *pool;
    uir_runtime_options options;
    uint32_t threads;
    uir_driver_scratch *scratch; /* per thread */
    uir_rt_track *tracks;        /* the same */
    uir_rt_share *shares;        /* the same */
    uint64_t began;              /* the last run */
    size_t scratch_needed;
    int64_t *values; /* per symbol */
    bool *bound;
    int64_t *shapes;      /* by the plan's extents */
    int64_t *actual;      /* of what a step has given, where that is known only then */
    int64_t *environment; /* of a kernel variant while it is chosen */
    bool *environment_bound;
    uir_rt_tensor *tensors;
    uir_rt_epoch *epochs;
    uir_rt_launch *launches;
    uir_rt_loop *loops;
    uir_rt_buffer host;     /* what host operators work in */
    uir_rt_buffer *owned;   /* per tensor with storage OWN */
    uir_rt_buffer *results; /* per output: the runtime's own */
    uir_rt_binding *bound_outputs;
    bool *copied_out; /* per output: written beside the caller's buffer, copied when the run ends */
    uir_rt_binding *bound_inputs;
    uir_rt_buffer *staged; /* per input: a packed copy of one whose strides no kernel knows */
    const void **inputs;   /* where this run reads them */
    size_t *input_sizes;   /* packed */
    int64_t *input_shapes; /* MAX_RANK each */
    bool *input_set;
    uir_rt_step_statistics *steps;
    uir_runtime_statistics statistics;
    uint32_t *wanted; /* per kernel: the candidate that whoever measures wants; NULL: nobody does */
    volatile bool cancel;
    bool ran;
};

static inline bool uir_rt_cancelled(const uir_runtime *r) {
    return __atomic_load_n(&r->cancel, __ATOMIC_RELAXED);
}
static inline char *uir_rt_address(const uir_runtime *r, uint32_t tensor) {
    return r->tensors[r->analysis->tensors[tensor].root].address;
}
static inline const int64_t *uir_rt_shape(const uir_runtime *r, uint32_t tensor) {
    return r->shapes + r->analysis->tensors[tensor].shape;
}
static inline uint32_t uir_rt_rank(const uir_runtime *r, uint32_t tensor) {
    return r->plan->tensors[tensor].extents.count;
}
/* The address of a tensor with all its bytes behind it; a message otherwise. */
uir_status uir_rt_locate(uir_runtime *r, uint32_t tensor, char **out_address);
void uir_rt_place_tensor(uir_runtime *r, uint32_t tensor, void *address, size_t available);
/* Makes room for `size` bytes, contents lost. Where there is none, `tensor` is named; NONE: it is scratch memory. */
uir_status uir_rt_buffer_grow(uir_runtime *r, uir_rt_buffer *buffer, uint64_t size, uint32_t tensor);
void uir_rt_buffer_release(uir_runtime *r, uir_rt_buffer *buffer);

/* Binds the plain symbols among the tensor's extents that have no value from a shape; checks facts. */
uir_status uir_rt_learn_shape(uir_runtime *r, uint32_t tensor, const int64_t *shape);
/* Compares with the shape that the plan's extents give. `port`: whose names the dims have; NULL: none. */
uir_status uir_rt_check_shape(uir_runtime *r, uint32_t tensor, const int64_t *shape, const char *what,
                              const uir_plan_port *port);
uir_status uir_rt_bind_symbol(uir_runtime *r, uint32_t symbol, int64_t value);

/* ---- binding.c: tensors that the caller holds ---- */
/* Binds the slack of a port whose tensor has this shape; sets binding->in_place. */
uir_status uir_rt_bind_slack(uir_runtime *r, const uir_plan_port *port, const int64_t *shape, uir_rt_binding *binding);
/* Bytes from the first element to the end of the last. */
bool uir_rt_footprint(const uir_rt_binding *binding, uir_dtype dtype, uint32_t rank, const int64_t *shape, size_t *out);
/* Elements to where they are bound, from memory that is packed but for slack; and from there to packed memory. */
void uir_rt_scatter(const uir_rt_binding *binding, uir_dtype dtype, uint32_t rank, const int64_t *shape,
                    uint32_t slack_axis, int64_t slack, const void *from);
void uir_rt_gather(const uir_rt_binding *binding, uir_dtype dtype, uint32_t rank, const int64_t *shape, void *to);
/* See above: shapes, places, launches. */
uir_status uir_rt_enter_epoch(uir_runtime *r, uint32_t epoch);
/* Offsets at which no two places that are alive together share bytes; how many bytes there are in all. `work` has room
 * for three numbers a place. */
uint64_t uir_rt_assign_offsets(uir_rt_place *places, uint32_t count, uint32_t *work);
/* What sizes that are known before the block begins must be. */
uir_status uir_rt_check_block(uir_runtime *r, uint32_t block);
/* What entering it would say of the sizes; nothing is laid out, and the last run's results stay. */
uir_status uir_rt_check_epoch(uir_runtime *r, uint32_t epoch);
/* What it learned and where its tensors were is forgotten: no symbol and no address outlives a turn. */
void uir_rt_forget_block(uir_runtime *r, uint32_t block);

/* Chooses variant and tiles for the sizes, and has the driver prepare; everything but addresses. */
uir_status uir_rt_launch_prepare(uir_runtime *r, uint32_t step);
uir_status uir_rt_launch_run(uir_runtime *r, uint32_t step);
/* Bytes that the launch's slices move, and operations (NULL: not asked). */
uir_status uir_rt_launch_count_traffic(uir_runtime *r, uint32_t step, uint64_t *out_bytes, uint64_t *out_flops);
uir_status uir_rt_launch_create(uir_runtime *r, uint32_t step);
/* Scratch of every thread is at least what launches and earlier runs need. */
uir_status uir_rt_ensure_scratch(uir_runtime *r);

uir_status uir_rt_run_block(uir_runtime *r, uint32_t block);
/* Of the thread that calls; without memory for it the slice is left out. */
void uir_rt_trace(uir_runtime *r, uint32_t thread, uir_rt_slice slice);
/* BAD_DATA and the like, naming the step's node. */
uir_status uir_rt_fail_step(uir_runtime *r, uint32_t step, uir_status status, const char *format, ...) UIR_PRINTF(4, 5);

/* ---- host operators ---- */
typedef uir_status uir_rt_host_function(uir_runtime *r, uint32_t step);
uir_rt_host_function *uir_rt_host_find(const char *name);
/* Operand `k`, which is there, and where it lies. */
uir_status uir_rt_host_operand(uir_runtime *r, uint32_t step, uint32_t k, uint32_t *out_tensor, char **out_data);
uir_status uir_rt_non_max_suppression(uir_runtime *r, uint32_t step); /* host_boxes.c */
uir_status uir_rt_image_decode(uir_runtime *r, uint32_t step);        /* host_image.c */
uir_status uir_rt_run_custom(uir_runtime *r, uint32_t step);          /* custom.c */
/* Output `k` of a step that has its shape only now: learns its symbols, makes room. Then uir_rt_finish_outputs. */
uir_status uir_rt_give_output(uir_runtime *r, uint32_t step, uint32_t k, const int64_t *shape, char **out_data);
const uir_plan_attribute *uir_rt_find_attribute(const uir_runtime *r, uint32_t step, const char *name);
int64_t uir_rt_attribute_int(const uir_runtime *r, uint32_t step, const char *name, int64_t fallback);

static inline uint64_t uir_rt_align(uint64_t size) {
    return (size + RT_ALIGN - 1) / RT_ALIGN * RT_ALIGN;
}
uint64_t uir_rt_now(void); /* nanoseconds, monotonic */

#endif
