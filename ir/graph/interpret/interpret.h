/* The interpreter of primitives: defines what each of them means.
 *
 * In: a module of primitives and run-time values. Out: the values that the main graph gives. interpret.c walks the
 * nodes, learns run-time dims, checks every result against its type and frees what is no longer needed; each row of
 * ops_primitive.def has one function here that computes it, in the interpret_*.c file of its kind.
 *
 * Numbers: f32 and f64 are computed as such; narrower floats are computed in f32 and rounded once per primitive;
 * integers wrap. Sums are accumulated in a fixed order that does not depend on the number of threads. */
#ifndef UIR_IR_INTERPRET_H
#define UIR_IR_INTERPRET_H

#include "ir/graph/graph.h"

/* One primitive being run. */
typedef struct uir_call {
    uir_interpreter *interpreter;
    const uir_module *module;
    uir_node_id node_id;
    const uir_node_info *node;
    const uir_allocator *allocator; /* counts what is alive */
    uir_datum *const *inputs;       /* NULL where an operand is absent */
    const bool *last_use;           /* per operand: the value dies with this node */
    uir_datum **outputs;            /* to be set; NULL at first */
} uir_call;

/* Reports a run-time fault of the node and returns the status. */
uir_status uir_call_fail(uir_call *call, uir_status status, const char *format, ...) UIR_PRINTF(3, 4);
/* The tensor of operand `index`; NULL when it is absent. */
const uir_tensor *uir_call_tensor(const uir_call *call, uint32_t index);
int64_t uir_call_int(const uir_call *call, const char *name, int64_t fallback);
/* The integer scalar that operand `index` is (also of one element in rank 1), or `fallback` when it is absent. */
int64_t uir_call_scalar(const uir_call *call, uint32_t index, int64_t fallback);
/* Evaluates a DIMS attribute into `out_values`, UIR_MAX_RANK of them at most. */
uir_status uir_call_dims(uir_call *call, const char *name, int64_t *out_values, uint32_t *out_count);
/* The dim's value where it has one, without a message. */
bool uir_call_knows(const uir_call *call, uir_dim dim, int64_t *out_value);
/* interpret_demands.c: BAD_DATA with a message where the sizes are not what the node demands. */
uir_status uir_call_check_demands(uir_call *call);
/* Evaluates one dim; a symbol without a value is an error. */
uir_status uir_call_evaluate(uir_call *call, uir_dim dim, int64_t *out_value);
/* Creates the tensor of output `index`, zeroed. */
uir_status uir_call_create(uir_call *call, uint32_t index, uir_dtype dtype, uint32_t rank, const int64_t *shape,
                           uir_tensor **out_tensor);
/* Makes a datum the output `index`; takes over the reference, also on failure. */
uir_status uir_call_set(uir_call *call, uint32_t index, uir_datum *datum);
/* The tensor of operand `index` when nobody else will read it: it may be changed and given out as the result. */
uir_tensor *uir_call_take(uir_call *call, uint32_t index);
bool uir_call_cancelled(const uir_call *call);
/* Counts bytes, or steps of like cost, of a long walk in *walked, which begins at 0; at times it looks at the above. */
bool uir_call_stops(const uir_call *call, uint64_t *walked, uint64_t steps);
uir_budget *uir_call_budget(const uir_call *call); /* of the run; NULL: none */
/* Runs it with an arena that ends with it. */
uir_status uir_call_with_arena(uir_call *call, uir_status (*run)(uir_call *call, uir_arena *arena));
uint32_t uir_call_threads(const uir_call *call); /* that the run may use */

/* Runs jobs 0..count-1, on several threads when the run has them and `cost` (an estimate of elementary steps over all
 * jobs) is worth it. Which thread runs a job must not matter. Jobs are skipped once the run is cancelled. */
uint32_t uir_call_workers(const uir_call *call, uint64_t count, uint64_t cost); /* `worker` is below this */
void uir_call_parallel(uir_call *call, uint64_t count, uint64_t cost,
                       void (*job)(void *user, uint64_t index, uint32_t worker), void *user);

/* ---- elements as bytes ----
 * Movement works on elements of a whole number of bytes: packed ones are spread out to a byte each first, and strings
 * move as views that are copied at the end. */
typedef struct uir_elements {
    uint8_t *data;
    size_t size;     /* of an element */
    void *temporary; /* to be released */
    size_t temporary_size;
} uir_elements;

uir_status uir_elements_open(uir_call *call, const uir_tensor *tensor, uir_elements *out_elements);
/* Elements for a result; `fill`: those of the tensor are kept, else undefined. */
uir_status uir_elements_open_result(uir_call *call, uir_tensor *tensor, bool fill, uir_elements *out_elements);
/* Writes a result's elements to its tensor where they are not there already, and releases. */
uir_status uir_elements_close_result(uir_call *call, uir_tensor *tensor, uir_elements *elements);
void uir_elements_close(uir_call *call, uir_elements *elements);

/* Copies a box of `shape` between two strided layouts; strides in elements, 0 and negative allowed. `call` NULL: on this
 * thread. */
void uir_copy_strided(uir_call *call, uint8_t *target, const int64_t *target_strides, const uint8_t *source,
                      const int64_t *source_strides, const int64_t *shape, uint32_t rank, size_t size);
/* Row-major strides. */
void uir_shape_strides(const int64_t *shape, uint32_t rank, int64_t *out_strides);
/* With which strides a broadcast or transpose to `shape` reads an operand of `from`, which lies in row-major order. False
 * for other nodes. */
bool uir_movement_strides(const uir_module *module, const uir_node_info *node, const int64_t *from, uint32_t from_rank,
                          const int64_t *shape, uint32_t rank, int64_t *out_strides);

/* A tensor's elements as another dtype: borrowed when it is that dtype already, else converted into `*out_temporary`,
 * which uir_call_release_array releases. */
uir_status uir_call_convert(uir_call *call, const uir_tensor *tensor, uir_dtype to, const void **out_data,
                            void **out_temporary, size_t *out_size);
void uir_call_release(uir_call *call, void *temporary, size_t size);

/* The dtype that an op computes a dtype's elements in: f32 f64 i64 u64, or bool itself. */
uir_dtype uir_compute_dtype(uir_dtype dtype);

/* The cast between strings and numbers. */
uir_status uir_interpret_cast_string(uir_call *call, uir_dtype to);

/* What a unary or binary elementwise primitive without attributes computes, on arrays of `count` elements of one dtype;
 * a comparison gives bool. False when the op has no meaning for the dtype. For the other IRs' interpreters: one meaning
 * for all. */
bool uir_elementwise_apply(uir_op op, uir_dtype dtype, const void *const *operands, void *result, int64_t count);

/* ---- for interpret.c and interpret_shape.c ---- */
/* The caller's allocator, counted. */
typedef struct uir_interpreter_counter {
    const uir_allocator *inner;
    uint64_t alive, peak, limit;
    bool limit_hit;
} uir_interpreter_counter;

struct uir_interpreter {
    const uir_module *module;
    uir_diagnostics *diagnostics;
    uir_interpreter_options options;
    uir_interpreter_counter counter;
    uir_allocator allocator; /* through the counter */
    uir_arena arena;
    uir_datum **slots; /* by value id */
    uint32_t *freed;   /* by node id: first value that dies with it */
    uint32_t *next;    /* by value id: next one that dies with the same node */
    int64_t *symbol_values;
    bool *symbol_bound;
    uint32_t symbol_count;
    uint32_t *bound_log; /* symbols in the order they were bound, so that a body's can be unbound */
    uint32_t bound_count;
    uint64_t *draws; /* by node id: how often it has drawn random numbers; NULL while none has */
};

/* Whatever it returns, the arena is to be ended. */
uir_status uir_interpreter_init(uir_interpreter *interpreter, const uir_module *module, const uir_allocator *allocator,
                                uir_diagnostics *diagnostics, const uir_interpreter_options *options);
/* The main graph's: dims by their shapes, and into the slots, which must be there. */
uir_status uir_interpreter_bind_inputs(uir_interpreter *interpreter, uir_datum *const *inputs, uint32_t count);

/* ---- for control flow ---- */
/* Runs a body: binds its inputs (references are taken over), runs it, gives out its outputs. */
uir_status uir_interpreter_run_body(uir_call *call, uir_graph_id graph, uir_datum **inputs, uir_datum **out_outputs);
/* Evaluates the dims of a type as far as they are bound; others become 0. */
void uir_interpreter_guess_shape(uir_call *call, const uir_type *type, int64_t *out_shape);
/* Binds a symbol to what a node has learned. */
uir_status uir_interpreter_bind(uir_call *call, uir_symbol symbol, int64_t value);
/* How often the run has run this node before: what it draws differs from time to time, and is the same in every run. */
uir_status uir_interpreter_next_draw(uir_call *call, uint64_t *out_draw);

#define UIR_PRIMITIVE(constant, name, min_inputs, max_inputs, outputs, traits, dtypes, attributes, infer, run)         \
    uir_status uir_interpret_##run(uir_call *call);
#include "ir/graph/ops.def"

#endif
