/* Internal declarations of the public API: the structs behind its opaque handles.
 *
 * There are two libraries. libuir has the whole API; libuir_rt opens packages and runs them, without a compiler. Shared
 * code is declared here, and reaches the compiler through a model's table only. compiled.h declares the code that only
 * libuir has; runtime_only.c replaces it in libuir_rt.
 *
 * Several threads may use a context, so no call writes messages to it directly: each call has a sink of its own, whose
 * messages are moved to the context under its lock when the call ends. */
#ifndef UIR_API_INTERNAL_H
#define UIR_API_INTERNAL_H

#include "api/facts.h"
#include "api/structs.h"
#include "backends/devices/devices.h"
#include "base/datum.h"
#include "base/progress.h"
#include "base/text.h"
#include "base/vector.h"
#include "io/io.h"
#include "runtime/runtime.h"
#include "uir/device.h"
#include "uir/tools.h"
#include <pthread.h>

struct uir_context {
    uir_allocator allocator;
    uir_budget values; /* of the memory of values, and of files that they are read from */
    uir_allocator value_allocator;
    uint64_t device_used;  /* bytes of values on devices; atomic */
    pthread_mutex_t mutex; /* guards the members below */
    uir_arena arena;
    uir_vector(uir_message) messages;
    void (*hear)(void *user, const uir_message *message); /* receives messages instead of the list; NULL: the list */
    void *hear_user;
};

/* One call: its own sink, emptied into the context by uir_call_end. */
typedef struct uir_call {
    uir_context *context;
    uir_diagnostics diagnostics;
} uir_call;
void uir_call_begin(uir_call *call, uir_context *context);
/* As uir_call_end, but the call continues. */
uir_status uir_call_flush(uir_call *call, uir_status status, const char *what);
/* Moves the messages to the context and returns `status`. A failure without a message gets one that names `what`. */
uir_status uir_call_end(uir_call *call, uir_status status, const char *what);

/* Checks and copies the caller's limits, which may be NULL. */
uir_status uir_api_take_limits(uir_diagnostics *diagnostics, const uir_limits *given, uir_limits *out_limits);

/* ---- devices.c ---- */
struct uir_device {
    uir_context *context;
    const uir_device_row *row;
    const uir_driver *driver;  /* NULL: the device is the host */
    uir_driver_device *opened; /* NULL of the host */
    uir_driver_facts facts;
    char description[64];    /* of the host */
    const char *name;        /* as it was opened */
    uint32_t references;     /* of the caller, models and memories; atomic */
    pthread_mutex_t lock;    /* held during a transfer */
    uir_driver_queue *queue; /* of transfers; NULL until the first */
};
/* A value's memory on a device, shared with the sessions that it is bound to. */
typedef struct uir_device_memory {
    uir_device *device;        /* a reference */
    uir_driver_buffer *buffer; /* NULL: the memory is the host's */
    char *host;                /* its address then; else NULL */
    uint64_t size, charged;    /* bytes; those that the context counts, 0 of imported memory */
    bool is_imported;
    uint32_t references; /* atomic */
} uir_device_memory;
/* Whether the host has no address of it; NULL: memory of no device. */
static inline bool uir_api_is_away(const uir_device_memory *memory) {
    return memory && memory->buffer;
}
void uir_api_release_device(uir_device *device); /* NULL is fine in these */
uir_device_memory *uir_api_retain_memory(uir_device_memory *memory);
void uir_api_release_memory(uir_device_memory *memory);
/* Allocates memory, or imports that of a handle. */
uir_status uir_api_create_memory(uir_device *device, uint64_t size, void *native, uir_diagnostics *diagnostics,
                                 uir_device_memory **out_memory);
void *uir_api_get_native(const uir_device_memory *memory); /* its handle, or address */
/* Copies between the device and the host, and waits. */
uir_status uir_api_copy_memory(const uir_device_memory *memory, uint64_t offset, void *data, uint64_t size,
                               bool to_device, uir_diagnostics *diagnostics);
uir_status uir_api_zero_memory(const uir_device_memory *memory, uir_diagnostics *diagnostics);

/* ---- values ---- */
struct uir_value {
    uir_context *context;
    uir_datum *datum;            /* owned reference */
    uir_device_memory *memory;   /* a reference, of a tensor of an opened device; NULL: the tensor's own */
    char *name;                  /* owned, zero terminated; NULL: "" */
    struct uir_value **elements; /* of a list: wrappers owned by this one */
    uint32_t element_count;
};
/* Takes over the reference to `datum` on success. `name` is copied; NULL: none. */
uir_status uir_value_wrap(uir_context *context, uir_datum *datum, const char *name, uir_value **out_value);
/* The same for a tensor. */
uir_status uir_value_wrap_tensor(uir_context *context, uir_tensor *tensor, uir_value **out_value);
/* The same for a tensor in a device's memory, which gets one more reference. */
uir_status uir_value_wrap_memory(uir_device_memory *memory, uir_dtype dtype, uint32_t rank, const int64_t *shape,
                                 uir_value **out_value);
/* Whether a tensor can have this type and shape; else INVALID_ARGUMENT with a message. */
uir_status uir_value_check_shape(uir_call *call, uir_dtype dtype, uint32_t rank, const int64_t *shape,
                                 size_t *out_size);
/* INVALID_ARGUMENT for a value that the host has no address of; `what` begins the message. */
uir_status uir_value_check_on_host(uir_call *call, const uir_value *value, const char *what);

/* A graph input or output as a session checks it. */
typedef struct uir_api_port {
    uir_port port;
    int64_t *dims;
    const char **dim_names;
} uir_api_port;

/* The functions of a model that depend on its origin. */
typedef struct uir_model_table {
    void (*destroy)(uir_model *model); /* releases what `origin` owns */
    uir_status (*wait)(uir_call *call, uir_model *model);
    uint32_t (*count_compiled)(const uir_model *model);
    uir_status (*get_input_shape)(uir_call *call, const uir_model *model, size_t index, const uir_dim_binding *bindings,
                                  size_t binding_count, int64_t *out_dims);
    /* Why the VM ran a kernel of the model; any thread. */
    const char *(*explain_vm)(const uir_model *model);
    /* Called before the first interpreted session is created; may be NULL. Any thread. */
    uir_status (*prepare_interpreter)(uir_call *call, uir_model *model);
    /* Before each run: BAD_FILE with a message if a mapped file that the run reads has changed. */
    uir_status (*check_files)(uir_call *call, const uir_model *model, bool interpreted);
    /* Runs the interpreter; NULL without a graph. */
    uir_status (*interpret)(uir_call *call, uir_session *session);
    /* The shape of an output for given shapes of the inputs, which have no data. */
    uir_status (*find_shape)(uir_call *call, const uir_model *model, uir_datum *const *inputs, uint32_t output,
                             int64_t *out_dims);
    bool (*get_node_statistics)(const uir_session *session, size_t index, uir_node_statistics *out_node);
    bool (*get_slice)(const uir_session *session, size_t index, uir_trace_slice *out_slice);
    /* For a model without a package: a node of its file; the nodes of a row or slice, by their numbers. */
    bool (*get_node)(const uir_model *model, size_t index, uir_model_node *out_node);
    bool (*get_row_node)(const uir_session *session, size_t row, size_t index, uint32_t *out_node, bool *out_again);
    bool (*get_slice_node)(const uir_session *session, size_t slice, size_t index, uint32_t *out_node, bool *out_again);
    /* Estimates of kernels on a described machine; NULL without any. */
    bool (*get_estimate)(const uir_session *session, size_t index, uir_machine_estimate *out_estimate);
    bool (*get_space_estimate)(const uir_session *session, size_t index, size_t space,
                               uir_space_estimate *out_estimate);
} uir_model_table;

struct uir_model {
    uir_context *context;
    uir_budget budget;       /* of the load, and of the model's memory */
    uir_allocator allocator; /* the budget's; for all but the model itself */
    uir_arena arena;
    const uir_model_table *table;
    void *origin;         /* for the table's functions: a uir_model_source, or NULL */
    uir_package *package; /* run by sessions; NULL: the interpreter runs */
    uir_device *device;   /* a reference; NULL: the host, which was not opened */
    bool is_description;  /* the model is unsupported: it can be queried, not run */
    bool is_file;         /* opened from a package file */
    bool is_vouched;      /* its signature was checked */
    bool no_fallback;     /* the host computes nothing instead of the device */
    const char *vm_why;   /* of an opened package: why the VM runs its kernels, or NULL */
    uir_api_port *inputs, *outputs;
    uint32_t input_count, output_count;
    uint32_t node_count; /* nodes of the graph, for times by node */
    uir_model_info info;
    uir_facts facts;
};
/* Creates a model with only its table. `limits` are those of the caller. */
uir_status uir_model_create(uir_call *call, const uir_model_table *table, const uir_limits *limits,
                            uir_model **out_model);
/* devices.c: takes a reference to the caller's device, if there is one, and sets the name that the model is loaded for;
 * INVALID_ARGUMENT for another name. */
uir_status uir_api_take_opened(uir_model *model, uir_diagnostics *diagnostics, uir_device *opened,
                               const char **inout_device);
/* Opens the model's device, unless it has one, and sets the formats, driver and device of the options. `name` NULL: the
 * row's. */
uir_status uir_api_open_device(uir_model *model, const uir_device_row *row, const char *name,
                               uir_diagnostics *diagnostics, uir_package_options *package);
/* device_list.c: the device that a mistyped name (of a device, perhaps with ":parameter") may mean: one of
 * uir_device_name. NULL: none is near enough. */
const char *uir_api_guess_device(const char *name);
/* fallback.c: counts the nodes of an opened package that the host computes because the device cannot. UNSUPPORTED if
 * there are some and the caller wants none; else a warning. */
uir_status uir_api_judge_fallbacks(uir_model *model, uir_diagnostics *diagnostics);
/* package.c: the ports of a model opened from a package, and shape queries. */
uir_status uir_api_take_package_ports(uir_model *model);
uir_status uir_api_get_package_shape(uir_call *call, const uir_model *model, size_t index,
                                     const uir_dim_binding *bindings, size_t binding_count, int64_t *out_dims);
/* Sets the keys of outputs from the facts. */
uir_status uir_api_take_keys(uir_model *model);
/* Allocates `rank` dims in the model's arena. */
uir_status uir_api_port_init(uir_model *model, const uir_port *port, uir_api_port *out_port);

/* ---- lists of devices ---- */
typedef struct uir_device_entry {
    const char *name, *why; /* why: it is not there; "" */
    uir_vector(const char *) chips;
} uir_device_entry;
struct uir_device_list {
    uir_allocator allocator;
    uir_arena arena;
    uir_vector(uir_device_entry) entries;
};
/* Adds a device after the others; texts are copied. */
uir_status uir_device_list_add(uir_device_list *list, const char *name, const char *why);
/* The same of a row of backends.def, whose driver is asked. */
uir_status uir_device_list_add_row(uir_device_list *list, const uir_device_row *row);
/* Adds a chip to an entry; the text is copied. */
uir_status uir_device_list_add_chip(uir_device_list *list, uint32_t entry, const char *chip);
/* Adds the chips of the compiler's machine descriptions, and machines without a driver. Each library defines it. */
uir_status uir_device_list_add_machines(uir_call *call, uir_device_list *list);

/* ---- sessions ---- */
#define UIR_INTERPRETER_NAME "interpreter"

typedef struct uir_node_time {
    double ms;
    uint64_t calls;
} uir_node_time;

enum { UIR_API_MAX_RANK = 16 };
typedef struct uir_bound_output {
    void *data;                /* NULL: the session allocates, or `memory` is away */
    uir_device_memory *memory; /* a reference to what has the bytes; NULL: the caller's */
    size_t capacity;
    bool strided; /* strides apply; else packed */
    int64_t strides[UIR_API_MAX_RANK];
    uint64_t made; /* number of the run that wrote the output's value */
    bool is_moved; /* bound to or from a device's memory after the last run, whose result is not there */
} uir_bound_output;
/* An input in a buffer of the caller. */
typedef struct uir_bound_input {
    const void *data;
    uir_device_memory *memory; /* a reference to what has the bytes; NULL: the caller's */
    size_t capacity;
    uint32_t rank;
    bool bound, strided; /* bound: used instead of a value */
    int64_t shape[UIR_API_MAX_RANK], strides[UIR_API_MAX_RANK];
} uir_bound_input;

/* A slice of an interpreted run's trace. */
typedef struct uir_session_slice {
    uint32_t node;
    double begin_ms, ms;
} uir_session_slice;

enum { UIR_API_MAX_SPACES = 8 };
/* Estimate of a node's kernel on a described machine, summed over its launches in a run. */
typedef struct uir_session_estimate {
    uint32_t node;
    uint64_t launches;
    const struct uir_machine *machine;
    double cycles;
    uint64_t units, read[UIR_API_MAX_SPACES], written[UIR_API_MAX_SPACES]; /* by space of the device */
} uir_session_estimate;

struct uir_session {
    uir_model *model;
    uir_budget budget;       /* of each run, and of the session's memory */
    uir_allocator allocator; /* the budget's; for all but the session itself */
    uint32_t threads;
    uir_runtime *runtime; /* NULL: the interpreter runs */
    /* Answers cost queries without running, while `runtime` keeps the results of the last run. NULL until the first
     * query. */
    uir_runtime *costing;
    uir_call call; /* of the runtime; its messages are passed to the context */
    volatile bool cancel;
    uir_value **inputs;      /* borrowed; NULL until bound */
    uir_value **outputs;     /* owned; NULL until a run writes them */
    uir_bound_output *bound; /* by output */
    uir_bound_input *held;   /* by input */
    uint64_t runs;           /* runs begun by the runtime */
    uir_datum **datums;      /* scratch for a run: inputs, then outputs */
    uir_node_time *times;    /* by node of the graph, when the interpreter runs it */
    uint32_t time_count;
    bool trace;
    double began_ms; /* start of an interpreted run */
    uir_vector(uir_session_slice) slices;
    bool estimate;
    uir_vector(uir_session_estimate) estimates;
    uir_arena slice_arena; /* of slices and estimates */
    uir_run_statistics statistics;
    struct uir_session_worker *worker; /* the thread of submitted runs; NULL until the first */
    bool in_flight;                    /* a run was submitted, and not waited for */
};
/* session.c: a run; its messages stay in the session's call. */
uir_status uir_session_execute(uir_session *session);
/* session_submit.c: INVALID_ARGUMENT, with a message, while a run is in flight. */
uir_status uir_session_check_idle(const uir_session *session, const char *what);
void uir_session_end_worker(uir_session *session); /* waits for a run in flight */
/* session_bind.c: gives back the references to memory of devices. */
void uir_session_release_bindings(uir_session *session);
/* The memory that is bound, for the runtime. */
uir_region uir_session_get_input_region(const uir_bound_input *held);
uir_region uir_session_get_output_region(const uir_bound_output *bound);
/* Whether the value can be bound to input `index`; BAD_DATA with a message that has both types. */
uir_status uir_session_check_input(uir_call *call, const uir_session *session, size_t index, const uir_datum *datum);
/* Bytes from the first element to the end of the last; `strides` NULL: packed. False if they overflow. */
bool uir_session_measure_footprint(uir_dtype dtype, uint32_t rank, const int64_t *shape, const int64_t *strides,
                                   size_t *out_bytes);
/* Fills the session's datums with its inputs; INVALID_ARGUMENT with a message for each unbound input. */
uir_status uir_session_take_inputs(uir_call *call, uir_session *session);
/* Makes values of the output datums, and takes ownership of them. */
uir_status uir_session_take_outputs(uir_call *call, uir_session *session);
double uir_api_now_ms(void);
/* A fate's word, and the reason as a sentence; both "" for STANDS. */
const char *uir_api_explain_fate(uir_fate fate, const char **out_why);

/* ---- value files ---- */
uir_status uir_value_load_as(uir_context *context, const char *path, const char *member, uir_value_kind expected_kind,
                             const uir_io_formats *formats, uir_value **out_value);
uir_status uir_value_save_as(uir_context *context, const uir_value *value, const char *path, const char *name,
                             const uir_io_formats *formats);

/* ---- pictures ---- */
/* Picture formats of this library besides those of image/; NULL: none. Each library defines it. */
const struct uir_image_extras *uir_api_pictures(void);

#endif
