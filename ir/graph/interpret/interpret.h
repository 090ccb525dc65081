/* The interpreter of primitives, which defines their semantics.
 *
 * In: a module of primitives and run-time values. Out: the main graph's results. interpret.c runs the nodes in order,
 * binds run-time dims, checks every result against its type and frees values after their last use
 * (interpret_liveness.c). Each row of ops_primitive.def has one function here that computes it, in the interpret_*.c
 * file of its kind; interpret_call.c has what these functions share.
 *
 * Numbers: f32 and f64 are computed as such; narrower floats are computed in f32 and rounded once per primitive;
 * integers wrap. Sums are accumulated in a fixed order that does not depend on the number of threads. */
#ifndef UIR_IR_INTERPRET_H
#define UIR_IR_INTERPRET_H

#include "ir/graph/graph.h"

/* One run of one primitive. */
typedef struct uir_call {
    uir_interpreter *interpreter;
    const uir_module *module;
    uir_node_id node_id;
    const uir_node_info *node;
    const uir_allocator *allocator; /* counts live bytes */
    uir_datum *const *inputs;       /* NULL: an absent operand */
    const bool *last_use;           /* per operand: this node is the value's last use */
    uir_datum **outputs;            /* the function sets them; NULL at first */
} uir_call;

/* Reports a run-time fault of the node and returns the status. */
uir_status uir_call_fail(uir_call *call, uir_status status, const char *format, ...) UIR_PRINTF(3, 4);
/* The tensor of operand `index`; NULL if absent. */
const uir_tensor *uir_call_tensor(const uir_call *call, uint32_t index);
int64_t uir_call_int(const uir_call *call, const char *name, int64_t fallback);
/* The value of operand `index`, an integer scalar (or rank 1 with one element); `fallback` if it is absent. */
int64_t uir_call_scalar(const uir_call *call, uint32_t index, int64_t fallback);
/* Evaluates a DIMS attribute into `out_values`, at most UIR_MAX_RANK of them. */
uir_status uir_call_dims(uir_call *call, const char *name, int64_t *out_values, uint32_t *out_count);
/* The dim's value, without a message; false if it has none. */
bool uir_call_knows(const uir_call *call, uir_dim dim, int64_t *out_value);
/* interpret_demands.c: checks the node's size constraints; BAD_DATA with a message if one is broken. */
uir_status uir_call_check_demands(uir_call *call);
/* Evaluates one dim; a symbol without a value is an error. */
uir_status uir_call_evaluate(uir_call *call, uir_dim dim, int64_t *out_value);
/* Creates the tensor of output `index`, zeroed. */
uir_status uir_call_create(uir_call *call, uint32_t index, uir_dtype dtype, uint32_t rank, const int64_t *shape,
                           uir_tensor **out_tensor);
/* Makes a datum output `index`; takes over the reference, also on failure. */
uir_status uir_call_set(uir_call *call, uint32_t index, uir_datum *datum);
/* The tensor of operand `index` if this is its last use, for computing in place: it may be changed and returned as the
 * result. Else NULL. */
uir_tensor *uir_call_take(uir_call *call, uint32_t index);
bool uir_call_cancelled(const uir_call *call);
/* Adds the steps (bytes, or steps of like cost) of a long loop to *walked, which begins at 0; polls the above at
 * times. */
bool uir_call_stops(const uir_call *call, uint64_t *walked, uint64_t steps);
uir_budget *uir_call_budget(const uir_call *call); /* of the run; NULL: none */
/* Runs a function with an arena that is released afterwards. */
uir_status uir_call_with_arena(uir_call *call, uir_status (*run)(uir_call *call, uir_arena *arena));
uint32_t uir_call_threads(const uir_call *call); /* that the run may use */

/* Runs jobs 0..count-1, on several threads if the run has them and `cost` (an estimate of elementary steps of all jobs)
 * is worth it. Results must not depend on the thread of a job. Once the run is cancelled, jobs are skipped. */
uint32_t uir_call_workers(const uir_call *call, uint64_t count, uint64_t cost); /* `worker` is below this */
void uir_call_parallel(uir_call *call, uint64_t count, uint64_t cost,
                       void (*job)(void *user, uint64_t index, uint32_t worker), void *user);

/* ---- elements as bytes ----
 * Movement copies elements of whole bytes: packed ones are first unpacked to a byte each, and strings are views, copied
 * at the end. */
typedef struct uir_elements {
    uint8_t *data;
    size_t size;     /* of an element */
    void *temporary; /* to be released */
    size_t temporary_size;
} uir_elements;

uir_status uir_elements_open(uir_call *call, const uir_tensor *tensor, uir_elements *out_elements);
/* Elements of a result; `fill`: begin as those of the tensor, else undefined. */
uir_status uir_elements_open_result(uir_call *call, uir_tensor *tensor, bool fill, uir_elements *out_elements);
/* Writes a result's elements to its tensor unless they are its own memory, and releases them. */
uir_status uir_elements_close_result(uir_call *call, uir_tensor *tensor, uir_elements *elements);
void uir_elements_close(uir_call *call, uir_elements *elements);

/* Copies a box of `shape` between two strided layouts; strides are in elements and may be 0 or negative. `call` NULL:
 * on this thread only. */
void uir_copy_strided(uir_call *call, uint8_t *target, const int64_t *target_strides, const uint8_t *source,
                      const int64_t *source_strides, const int64_t *shape, uint32_t rank, size_t size);
/* Row-major strides. */
void uir_shape_strides(const int64_t *shape, uint32_t rank, int64_t *out_strides);
/* The strides with which a broadcast or transpose to `shape` reads a row-major operand of shape `from`. False for other
 * nodes. */
bool uir_movement_strides(const uir_module *module, const uir_node_info *node, const int64_t *from, uint32_t from_rank,
                          const int64_t *shape, uint32_t rank, int64_t *out_strides);

/* A tensor's elements as another dtype: borrowed if it is that dtype already, else converted into `*out_temporary`,
 * which uir_call_release releases. */
uir_status uir_call_convert(uir_call *call, const uir_tensor *tensor, uir_dtype to, const void **out_data,
                            void **out_temporary, size_t *out_size);
void uir_call_release(uir_call *call, void *temporary, size_t size);

/* The dtype that an op computes a dtype's elements in: f32 f64 i64 u64, or bool itself. */
uir_dtype uir_compute_dtype(uir_dtype dtype);

/* The cast between strings and numbers. */
uir_status uir_interpret_cast_string(uir_call *call, uir_dtype to);

/* Computes a unary or binary elementwise primitive without attributes on arrays of `count` elements of one dtype; a
 * comparison's results are bools. False if the op does not support the dtype. The interpreters of the other IRs use it
 * too, so that all agree. */
bool uir_elementwise_apply(uir_op op, uir_dtype dtype, const void *const *operands, void *result, int64_t count);

/* ---- for interpret.c, interpret_call.c, interpret_liveness.c and interpret_shape.c ---- */
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
    uint32_t *freed;   /* by node id: the first value that the node frees */
    uint32_t *next;    /* by value id: the next one that the same node frees */
    int64_t *symbol_values;
    bool *symbol_bound;
    uint32_t symbol_count;
    uint32_t *bound_log; /* symbols in the order of binding, so that a body's can be unbound */
    uint32_t bound_count;
    uint64_t *draws; /* by node id: how often it has drawn random numbers; NULL: none has */
};

/* The caller deinits the arena, whatever the status. */
uir_status uir_interpreter_init(uir_interpreter *interpreter, const uir_module *module, const uir_allocator *allocator,
                                uir_diagnostics *diagnostics, const uir_interpreter_options *options);
/* Finds the values that each node frees, into `freed` and `next`. */
uir_status uir_interpreter_find_last_uses(uir_interpreter *interpreter);
/* The dim's value; false if a symbol in it is not bound. */
bool uir_interpreter_evaluate(const uir_interpreter *interpreter, uir_dim dim, int64_t *out_value);
/* The dim as a person reads it, into a caller's buffer. */
const char *uir_interpreter_dim_text(const uir_interpreter *interpreter, uir_dim dim, char *buffer, size_t capacity);
/* Binds the main graph's inputs: dims from their shapes, values into the slots, which must be allocated. */
uir_status uir_interpreter_bind_inputs(uir_interpreter *interpreter, uir_datum *const *inputs, uint32_t count);

/* ---- for control flow ---- */
/* Runs a body: binds its inputs (takes over the references), runs it and returns its outputs. */
uir_status uir_interpreter_run_body(uir_call *call, uir_graph_id graph, uir_datum **inputs, uir_datum **out_outputs);
/* Evaluates the dims of a type as far as they are bound; others become 0. */
void uir_interpreter_guess_shape(uir_call *call, const uir_type *type, int64_t *out_shape);
/* Binds a symbol to a size that the node has computed. */
uir_status uir_interpreter_bind(uir_call *call, uir_symbol symbol, int64_t value);
/* How often this run has run the node before: its draws differ from one time to the next, and are the same in every
 * run. */
uir_status uir_interpreter_next_draw(uir_call *call, uint64_t *out_draw);

#define UIR_PRIMITIVE(constant, name, min_inputs, max_inputs, outputs, traits, dtypes, attributes, infer, run)         \
    uir_status uir_interpret_##run(uir_call *call);
#include "ir/graph/ops.def"

#endif
