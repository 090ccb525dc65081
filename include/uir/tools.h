/* The API of uir for tools that inspect it: stages of a compile, checks, tuning, subgraphs, costs of runs.
 *
 * This header promises nothing: it follows the compiler's structure and may change in any version. The rules of uir.h
 * for structures, statuses, messages and threads apply. Functions that compile are UNSUPPORTED in libuir_rt. */
#ifndef UIR_TOOLS_H
#define UIR_TOOLS_H

#include "uir/uir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- ops ------------------------------------------------------------------------------------------------------- */
/* An op of ONNX that uir knows. */
typedef struct uir_op_info {
    size_t struct_size;
    const char *domain, *name; /* live as long as the program */
    int since_version;         /* the newest supported version */
    bool supported;
} uir_op_info;
/* Op `index`; NOT_FOUND, without a message, past the end. */
UIR_API UIR_WARN_UNUSED uir_status uir_op_get_info(size_t index, uir_op_info *out_info);
/* Engine of op `index` for numbers; NULL past the end. The interpreter always computes ops on text. The text lives as
 * long as the program.
 *   - "kernels"
 *   - "host": a function of the runtime, in packages too
 *   - "interpreter": not in packages
 *   - "kernels, else host", "kernels, else interpreter": depends on the operands
 *   - "not supported" */
UIR_API const char *uir_op_get_engine(size_t index);

/* ---- devices --------------------------------------------------------------------------------------------------- */
typedef struct uir_device_list uir_device_list;
/* A device that this build knows. Texts and arrays live as long as the list. */
typedef struct uir_device_report {
    size_t struct_size;
    const char *name;
    bool is_there;   /* models and packages can run on it now */
    const char *why; /* why not: the library or function that its driver misses, or that it has no driver; "" */
    /* Chips, or variants of a CPU, that kernels are made for, as behind the colon of a device's name; libuir only. */
    const char *const *chips;
    size_t chip_count;
} uir_device_report;
/* Lists the devices of uir_device_name in its order, then machines that are only described. Drivers are asked whether
 * they find a device. */
UIR_API UIR_WARN_UNUSED uir_status uir_device_list_create(uir_context *context, uir_device_list **out_list);
UIR_API void uir_device_list_destroy(uir_device_list *list);
/* Device `index`; INVALID_ARGUMENT, without a message, past the end. */
UIR_API UIR_WARN_UNUSED uir_status uir_device_list_get(const uir_device_list *list, size_t index,
                                                       uir_device_report *out_report);

/* ---- a compile, watched ---------------------------------------------------------------------------------------- */
/* Debugging options of a load (`debug` of uir_model_options). */
typedef struct uir_debug_options {
    size_t struct_size;
    /* Stage or pass after which the IR's text is passed to `dump_text`: "onnx", "primitives", a clean-up pass; "all":
     * after each one. */
    const char *dump;
    void (*dump_text)(void *user, const char *stage, const char *text, size_t length); /* may not keep its pointers */
    void *dump_user; /* first argument of `dump_text` */
    /* Existing folders of the kernels' C source. Both compile anew, without the cache, before the load returns.
     * INVALID_ARGUMENT if no native code would run the model.
     * dump_source: gets the source, with a script build.sh.
     * source: a folder by `dump_source`, edited or not, whose kernels replace the model's own. It must be of this model
     * and device, since its code is not checked for its meaning. */
    const char *dump_source, *source;
    bool overwrite_source; /* dump_source overwrites edited files */
    bool round_trip;       /* prints, parses and compares the text after every pass */
    /* Tuning records as text (compile/records.h), used for tile sizes instead of the cache's; NULL: the cache's.
     * Records that do not fit are ignored with a warning. BAD_FILE if the text has no records. Compiles anew, without
     * the packages in the cache. */
    const char *records;
    bool anew; /* compiles anew, and replaces the model's entries in the cache */
} uir_debug_options;

/* ---- a compile, checked ---------------------------------------------------------------------------------------- */
/* Result of the comparison of a stage. Texts live until `report` returns. */
typedef struct uir_check_line {
    size_t struct_size;
    const char *stage, *kernel, *node; /* kernel and node are "" at a stage's end */
    bool agrees;
    uint64_t checked; /* comparisons of this stage */
    uint64_t skipped; /* kernel launches that were too large without `all` */
    const char *text; /* the difference; "" */
} uir_check_line;
/* Options of a check. */
typedef struct uir_model_check_options {
    size_t struct_size;
    const char *device;                                     /* as for loading */
    double rtol, atol_relative;                             /* 0: 1e-3 and 1e-4 */
    const volatile bool *cancel;                            /* as for loading */
    void (*report)(void *user, const uir_check_line *line); /* gets the first difference and each stage's end */
    void *user;                                             /* first argument of `report` and `progress` */
    const char *external_data;                              /* as for loading */
    bool no_map;                                            /* likewise */
    bool (*progress)(void *user, const char *stage, double fraction); /* of the check, as for loading; may be NULL */
    bool all;                     /* the interpreters of loops and iGraphs also run large kernels */
    const uir_limits *limits;     /* of the whole check; NULL: defaults */
    bool exact;                   /* as for loading */
    const char *precision;        /* likewise; the stage that rounds is compared with the half type's tolerance */
    bool strict;                  /* as for loading */
    const char *const *overrides; /* likewise */
    size_t override_count;
    const char *source; /* as in uir_debug_options: native code or the device runs these kernels; NULL: the model's */
} uir_model_check_options;
/* Compiles the model for a device and compares every stage with the one before, on these inputs: primitives, cleaned
 * graph, groups, loop ASTs, iGraphs, the VM, native code or a device of its own (docs/design.md). UIR_STATUS_DIFFERENT
 * if a stage differs. */
UIR_API UIR_WARN_UNUSED uir_status uir_model_check_file(uir_context *context, const char *path,
                                                        uir_value *const *inputs, size_t input_count,
                                                        const uir_model_check_options *options);

/* ---- a compile, tuned ------------------------------------------------------------------------------------------- */
/* Tuning result of a kernel. Texts live until `report` returns. */
typedef struct uir_tune_line {
    size_t struct_size;
    const char *kernel;
    const char *record; /* its tuning record, as text: the new one if it is kept, else the old one */
    /* Times of its launches in one run before and after, lower quartiles of alternating runs; equal if no new record is
     * kept. */
    double before_ms, after_ms;
    uint64_t tried; /* tile sizes that were measured */
    bool kept;      /* the new record is kept */
} uir_tune_line;
/* Options of a tuning. */
typedef struct uir_model_tune_options {
    size_t struct_size;
    const char *device; /* "cpu" or a variant of it; NULL: "cpu" */
    uint32_t threads;   /* 0: the cores that affinity and cgroup quota allow */
    double seconds;     /* time limit, which one compile may exceed; 0: 60 */
    const char *cache;  /* as for loading; gets the records */
    uint64_t cache_limit;
    bool no_cache;       /* writes nothing to the cache; `keep` has the records */
    const char *records; /* to start from, as in uir_debug_options; NULL: the cache's */
    /* Sets the inputs of a session before its run; called for several sessions of equal models. */
    uir_status (*bind)(void *user, uir_model *model, uir_session *session);
    void (*report)(void *user, const uir_tune_line *line); /* gets each kernel, the heaviest first; may be NULL */
    void (*keep)(void *user, const char *records, size_t length); /* gets the records of all measured kernels as text;
                                                                     may be NULL */
    bool (*progress)(void *user, const char *stage, double fraction); /* as for loading; may be NULL */
    const volatile bool *cancel;                                      /* as for loading; may be NULL */
    void *user;                                                       /* first argument of the functions above */
    const char *external_data;                                        /* as for loading */
    bool no_map;                                                      /* likewise */
    const uir_limits *limits;                                         /* of each load and each run */
    bool exact;                                                       /* as for loading */
    const char *precision;                                            /* likewise */
    const char *const *overrides;                                     /* likewise */
    size_t override_count;
} uir_model_tune_options;
/* Totals of a tuning. */
typedef struct uir_tune_result {
    size_t struct_size;
    /* kernel_count: kernels that were measured.
     * kept_count: kernels with a new record. */
    uint32_t kernel_count, kept_count;
    uint64_t tried;             /* tile sizes, of all kernels */
    double before_ms, after_ms; /* time of a run before and after */
} uir_tune_result;
/* Measures tuning records of the model's heaviest kernels, in runs of the whole model. The best are stored in the cache
 * for every later compile of these kernels, and the model's package there is compiled anew. No record changes a bit of
 * a result: INTERNAL, with nothing kept, if outputs of the last run differ from those of the first. UNSUPPORTED if no
 * native code runs the model. */
UIR_API UIR_WARN_UNUSED uir_status uir_model_tune_file(uir_context *context, const char *path,
                                                       const uir_model_tune_options *options,
                                                       uir_tune_result *out_result);

/* ---- subgraphs: to find the nodes of a fault -------------------------------------------------------------------- */
/* A model's nodes with all values of one run on the interpreter. Subgraphs of the main graph can be written as models,
 * with data sets. */
typedef struct uir_extractor uir_extractor;
/* A node of the main graph. */
typedef struct uir_extractor_node {
    size_t struct_size;
    const char *name, *op; /* as in the file; live as long as the extractor */
} uir_extractor_node;

/* Runs the model of the file on the inputs and keeps all values. The inputs, in the model's order, must live as long as
 * the extractor. `external_data`, as for loading, and `cancel` may be NULL. Statuses as for loading and running. */
UIR_API UIR_WARN_UNUSED uir_status uir_extractor_create(uir_context *context, const char *path,
                                                        uir_value *const *inputs, size_t input_count,
                                                        const char *external_data, const volatile bool *cancel,
                                                        uir_extractor **out_extractor);
UIR_API void uir_extractor_destroy(uir_extractor *extractor);
UIR_API size_t uir_extractor_node_count(const uir_extractor *extractor);
/* Node `index`; INVALID_ARGUMENT, without a message, past the end. */
UIR_API UIR_WARN_UNUSED uir_status uir_extractor_get_node(const uir_extractor *extractor, size_t index,
                                                          uir_extractor_node *out_node);
/* Sets the expected value of an output of the model, instead of the interpreter's. `value` must live as long as the
 * extractor. */
UIR_API UIR_WARN_UNUSED uir_status uir_extractor_set_expected(uir_extractor *extractor, size_t output,
                                                              const uir_value *value);

/* A part of a model. */
typedef struct uir_subgraph {
    size_t struct_size;
    const bool *nodes; /* by index: whether the node is in it */
    /* Name of the only output; NULL: all values of its nodes that the model outputs or other nodes read. */
    const char *output;
    bool static_shapes; /* dims of inputs and outputs are the run's sizes; else those of the model */
} uir_subgraph;
/* Removes from `nodes` those that neither an output of the model nor a node outside needs; with `output`, all that this
 * value does not need. INVALID_ARGUMENT if no node of the subgraph computes `output`. */
UIR_API UIR_WARN_UNUSED uir_status uir_extractor_prune(uir_extractor *extractor, const char *output, bool *nodes);
/* Writes the subgraph as a model, and its inputs and expected outputs as input_N.pb and output_N.pb to an existing
 * folder. Values of other nodes become inputs; shapes become constants. INVALID_ARGUMENT if no output is left. */
UIR_API UIR_WARN_UNUSED uir_status uir_extractor_write(uir_extractor *extractor, const uir_subgraph *subgraph,
                                                       const char *model_path, const char *data_folder);
/* Name of output `index` of the model that was written last; NULL past the end. It lives as long as the extractor. */
UIR_API const char *uir_extractor_get_output_name(const uir_extractor *extractor, size_t index);
/* Number of inputs of the model that was written last. */
UIR_API size_t uir_extractor_input_count(const uir_extractor *extractor);

/* ---- a run, measured ------------------------------------------------------------------------------------------- */
/* An executed node of the last run, for --explain and --profile. Texts live as long as the session. */
typedef struct uir_node_statistics {
    size_t struct_size;
    const char *name;   /* of its ONNX node */
    const char *op;     /* the ONNX op */
    const char *kernel; /* the kernel or primitive */
    const char *by;     /* the engine, as "interpreter" */
    const char *why;    /* why no faster engine ran it; "" if none is faster */
    const char *joined; /* rewrites that joined primitives in its kernel, with these primitives; "": unknown */
    double ms;
    uint64_t calls;
    uint64_t tensor_bytes; /* bytes that its launches read and wrote, each tensor once a launch */
    uint64_t dram_bytes;   /* the same; after uir_session_count_traffic, the bytes that slices moved */
    uint64_t flops;        /* arithmetic operations of its launches; 0 before uir_session_count_traffic */
    uint64_t phases;       /* phases of a launch; 0 on the interpreter, as the three members before */
    /* The kernel variant for the sizes of the run, counted from 1, and the number of variants; 0: no choice. */
    uint32_t variant, variant_count;
    /* The row of its table of tile sizes, counted from 1, and the number of rows; 0: no choice. */
    uint32_t candidate, candidate_count;
    const int64_t *tiles; /* the tile sizes, until the next run */
    size_t tile_count;
    /* units: units of work that the threads share.
     * unit_cost: estimated cost of one, comparable within a table only. */
    uint64_t units, unit_cost;
    /* is_fallback: the device has no kernel for it, so the host ran it; false on the interpreter.
     * bus_bytes: bytes copied between the host and a device with memory of its own because of that. */
    bool is_fallback;
    uint64_t bus_bytes;
} uir_node_statistics;
/* Statistics of executed node `index`; NOT_FOUND, without a message, past the end. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_get_node_statistics(const uir_session *session, size_t index,
                                                                   uir_node_statistics *out_node);

/* A node of the model's file, of a body, or a call of a local function. Texts live as long as the model. */
typedef struct uir_model_node {
    size_t struct_size;
    const char *name, *op; /* a node without a name has that of its first output */
    const char *fate;      /* "": a step of the run computes it; else "folded", "merged", "alias", "inlined", "dead" */
    const char *why;       /* the fate in a sentence; "" */
    const char *step;      /* kind of the first step that runs it, as "launch", "host", "if"; "" */
    uint32_t into;         /* index of the node that replaced it; UINT32_MAX: none */
} uir_model_node;
/* Node `index`, in the file's order after all calls of functions. NOT_FOUND, without a message, past the end, and for a
 * model that is only described. */
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_node(const uir_model *model, size_t index, uir_model_node *out_node);

/* A node of the model's file in a row of the node statistics. */
typedef struct uir_row_node {
    size_t struct_size;
    uint32_t node;         /* for uir_model_get_node */
    bool again;            /* an earlier row computes it too */
    const char *name, *op; /* as in uir_model_node */
} uir_row_node;
/* Node `index` of row `row` of the node statistics, the one with most of the work first. NOT_FOUND, without a message,
 * past the end. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_get_row_node(const uir_session *session, size_t row, size_t index,
                                                            uir_row_node *out_node);
/* The same of trace slice `slice`. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_get_slice_node(const uir_session *session, size_t slice, size_t index,
                                                              uir_row_node *out_node);

/* An interval of a thread's time on one node, in the last run of a session with `trace`. Slices of loops and branches
 * contain those of their nodes. A device with queues and a clock has slices of queues too: launches and copies, by its
 * clock. Texts live as long as the session. */
typedef struct uir_trace_slice {
    size_t struct_size;
    const char *name, *op; /* of its ONNX node */
    /* As in uir_node_statistics; of a step that computes nothing "" and its kind ("copy"). */
    const char *kernel, *by;
    uint32_t thread;  /* 0: the caller of the run */
    uint32_t phase;   /* of the kernel */
    uint64_t indices; /* parallel indices of the phase that this thread computed; 0: there are none */
    /* begin_ms: from the beginning of the run.
     * ms: duration. */
    double begin_ms, ms;
    const char *queue; /* of a device: "compute", "upload", "download"; "": the slice is a thread's */
    uint64_t bytes;    /* of a queue's copy; else 0 */
    bool is_modelled;  /* the device is simulated: its times are modelled, not measured */
} uir_trace_slice;
/* Slice `index`, by thread and then by end, those of queues last; NOT_FOUND, without a message, past the end. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_get_trace_slice(const uir_session *session, size_t index,
                                                               uir_trace_slice *out_slice);

/* Counts the bytes that slices of the last run's launches moved in device memory, by walking the kernels without
 * computing. Until the next run, dram_bytes of the statistics and of the nodes are these. A slice counts at every read,
 * whatever caches would keep; copies that the run skipped do not count. UNSUPPORTED in a session of the interpreter. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_count_traffic(uir_session *session);

/* ---- a run, modelled ------------------------------------------------------------------------------------------- */
/* The cost of a run, without running. */
typedef struct uir_cost {
    size_t struct_size;
    uint64_t tensor_bytes;  /* session memory of tensors between and within kernels, without outputs */
    uint64_t scratch_bytes; /* scratch memory of all threads */
    uint64_t weight_bytes;  /* constants, shared by all sessions of the model */
    uint64_t dram_bytes;    /* device memory that slices of kernels read and write, without caches */
    uint64_t flops;         /* arithmetic operations; a multiplication with an addition is two */
    uint64_t launches;
} uir_cost;
/* Cost of a run with the given sizes of named dims; other free dims of the inputs are 1. Dims that depend on data are
 * unknown: work that depends on them is not counted, and loops count one iteration. Bound inputs, outputs and
 * statistics of the session do not change. NOT_FOUND for a name that is not a dim of an input; UNSUPPORTED in a session
 * of the interpreter; other statuses as for a run with such inputs. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_get_cost(uir_session *session, const uir_dim_binding *bindings,
                                                        size_t binding_count, uir_cost *out_cost);

/* The cost of one launch. Texts live as long as the model. */
typedef struct uir_launch_cost {
    size_t struct_size;
    const char *kernel;
    const char *name, *op; /* of its ONNX node */
    uint64_t tensor_bytes; /* bytes that it reads and writes, each tensor once */
    uint64_t dram_bytes;   /* bytes that its slices move, without caches */
    uint64_t flops;
} uir_launch_cost;
/* Launch `index` of the last uir_session_get_cost; NOT_FOUND, without a message, past the end. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_get_launch_cost(const uir_session *session, size_t index,
                                                               uir_launch_cost *out_cost);

/* What a run asks of the bus of a device with memory of its own, by its plan; 0 on other devices. It is that of a
 * steady run: the weights are on the device. */
typedef struct uir_bus_cost {
    size_t struct_size;
    uint64_t waits;                              /* times that the host waits for the device */
    uint64_t bytes_to_device, bytes_from_device; /* of copies between its memory and the host's */
    /* What only a run knows; all 0: the counts are exact.
     * unknown_sizes: copies whose size depends on data, which are not counted, and sizes that may change from iteration
     * to iteration of a loop.
     * unknown_turns: loops whose number of iterations depends on data; one iteration of each is counted.
     * unknown_branches: Ifs whose condition depends on data; the first branch of each is counted. */
    uint64_t unknown_sizes, unknown_turns, unknown_branches;
} uir_bus_cost;
/* Of the run of the last uir_session_get_cost; `of_run`: of the last run, for its sizes, iterations and branches.
 * INVALID_ARGUMENT if there was none, UNSUPPORTED in a session of the interpreter. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_get_bus_cost(uir_session *session, bool of_run, uir_bus_cost *out_cost);

/* What each further iteration of a loop adds to a uir_bus_cost that counts one. Texts live as long as the model. */
typedef struct uir_loop_cost {
    size_t struct_size;
    const char *name, *op; /* of its ONNX node */
    uint64_t waits, bytes_to_device, bytes_from_device;
} uir_loop_cost;
/* Loop `index` of `unknown_turns` of the last uir_session_get_bus_cost without `of_run`; NOT_FOUND, without a message,
 * past the end. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_get_loop_cost(const uir_session *session, size_t index,
                                                             uir_loop_cost *out_cost);

/* Estimate of all launches of a node's kernel on a described machine, in the last run of a session with `estimate`. It
 * is modelled from the costs in the machine's description, not measured. Texts live as long as the session. */
typedef struct uir_machine_estimate {
    size_t struct_size;
    const char *kernel;
    const char *name, *op; /* of its ONNX node */
    uint64_t launches;
    double cycles;
    double ms;      /* 0: the description has no clock rate */
    uint64_t units; /* greatest number of units with work at one time */
} uir_machine_estimate;
/* Estimate `index`, in the order of the first launches; NOT_FOUND, without a message, past the end. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_get_estimate(const uir_session *session, size_t index,
                                                            uir_machine_estimate *out_estimate);

/* Bytes of a memory space of the machine in an estimate. */
typedef struct uir_space_estimate {
    size_t struct_size;
    const char *space;      /* its name in the description */
    uint64_t read, written; /* by instructions whose operands or results are in the space */
} uir_space_estimate;
/* Space `space` of estimate `index`; NOT_FOUND, without a message, past the last. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_get_space_estimate(const uir_session *session, size_t index,
                                                                  size_t space, uir_space_estimate *out_estimate);

/* A roofline: the limits of a machine. */
typedef struct uir_roofline {
    size_t struct_size;
    double flops_per_second; /* of f32, in fused multiply-adds */
    double bytes_per_second; /* read from memory */
    uint64_t threads;
} uir_roofline;
/* Measures the roofline of as many threads as the session has; takes a part of a second. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_measure_roofline(uir_session *session, uir_roofline *out_roofline);
/* The least time, in milliseconds, for these bytes and operations; modelled, not measured. Each byte moves once, and
 * the longer of moving and computing hides the other. 0 if a limit is unknown. */
UIR_API double uir_roofline_get_ms(const uir_roofline *roofline, uint64_t bytes, uint64_t flops);

#ifdef __cplusplus
}
#endif

#endif
