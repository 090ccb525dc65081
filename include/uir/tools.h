/* uir for tools that look inside: what a compile does stage by stage, what a run costs, which node goes wrong.
 *
 * No promise: what is here follows how the compiler is built, and may change or go in any version. Rules of structures,
 * statuses, messages and threads are those of uir.h. Functions that need the compiler are UNSUPPORTED in libuir_rt. */
#ifndef UIR_TOOLS_H
#define UIR_TOOLS_H

#include "uir/uir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- ops ------------------------------------------------------------------------------------------------------- */
/* Ops known to the project. */
typedef struct uir_op_info {
    size_t struct_size;
    const char *domain, *name; /* live as long as the program */
    int since_version;         /* the newest one supported */
    bool supported;
} uir_op_info;
/* NOT_FOUND, without a message, past the end. */
UIR_API UIR_WARN_UNUSED uir_status uir_op_get_info(size_t index, uir_op_info *out_info);
/* How the op of that index runs: "kernels"; "host", a function of the runtime, in packages too; "interpreter", which
 * packages do not have; "kernels, else host" and "kernels, else interpreter" where that depends on operands; "not
 * supported"; NULL past the end. That is said of numbers: what takes or gives text is always the interpreter's. Lives as
 * long as the program. */
UIR_API const char *uir_op_get_engine(size_t index);

/* ---- a compile, watched ---------------------------------------------------------------------------------------- */
/* What uir_model_options points to. */
typedef struct uir_debug_options {
    size_t struct_size;
    /* The IR's text after the stage or pass `dump` ("onnx", "primitives", a clean-up pass; "all": after each) is handed
     * to `dump_text`, which keeps no pointer to it. */
    const char *dump;
    void (*dump_text)(void *user, const char *stage, const char *text, size_t length);
    void *dump_user;
    /* `dump_source`: an existing folder that the kernels' C source is written to, with a script build.sh. `source`:
     * such a folder, its files edited or not, whose kernels run in place of the model's own; it must be of this model
     * and device, for what its code does is not checked. Both compile anew, apart from the cache, before the load
     * returns; INVALID_ARGUMENT where no native code would run the model. */
    const char *dump_source, *source;
    bool overwrite_source; /* dump_source writes over files that were edited */
    bool round_trip; /* after every pass the text is printed, parsed and compared */
    /* Records of parameters as text (compile/records.h), from which kernels have their tiles, in place of those that
     * tuning left in the cache; what does not fit is left out with a warning. BAD_FILE for what are no records. Compiles
     * anew, apart from the packages in the cache. NULL: the cache's. */
    const char *records;
    bool anew; /* compiles anew, and what the cache has of the model is replaced */
} uir_debug_options;

/* ---- a compile, checked ---------------------------------------------------------------------------------------- */
/* Compiles the model for a device and compares, on these inputs, every stage with the one before: primitives, cleaned
 * graph, groups, loop ASTs, iGraphs, the VM, native code; see docs/design.md. `report` is called at the first
 * difference and at each stage's end (kernel and node are "" then). UIR_STATUS_DIFFERENT when a stage differs. */
typedef struct uir_check_line {
    size_t struct_size;
    const char *stage, *kernel, *node; /* these and `text` live until `report` returns */
    bool agrees;
    uint64_t checked; /* what was compared at this stage */
    uint64_t skipped; /* kernels' launches that were too large for it without `all` */
    const char *text; /* what differs; "" */
} uir_check_line;
typedef struct uir_model_check_options {
    size_t struct_size;
    const char *device;         /* as for loading */
    double rtol, atol_relative; /* 0: 1e-3 and 1e-4 */
    const volatile bool *cancel; /* as for loading */
    void (*report)(void *user, const uir_check_line *line);
    void *user;
    const char *external_data; /* as for loading */
    bool no_map;               /* likewise */
    /* As for loading: how far the check is. May be NULL. */
    bool (*progress)(void *user, const char *stage, double fraction);
    bool all; /* large kernels too go through the interpreters of loops and iGraphs */
    const uir_limits *limits; /* of the whole check; NULL: defaults */
    bool exact;               /* as for loading */
    const char *precision;    /* likewise; the stage that rounds is held to what its half type may differ by */
    bool strict;              /* as for loading */
    const char *const *overrides; /* likewise */
    size_t override_count;
} uir_model_check_options;
UIR_API UIR_WARN_UNUSED uir_status uir_model_check_file(uir_context *context, const char *path,
                                                        uir_value *const *inputs, size_t input_count,
                                                        const uir_model_check_options *options);

/* ---- a compile, tuned ------------------------------------------------------------------------------------------- */
/* What was found of one kernel, the heaviest first. */
typedef struct uir_tune_line {
    size_t struct_size;
    const char *kernel; /* these texts live until `report` returns */
    const char *record; /* of parameters, as text: what is kept, else what was there */
    double before_ms, after_ms; /* of its launches in one run, lower quartiles of runs in turn; equal where nothing is kept */
    uint64_t tried;             /* tiles that were measured */
    bool kept;
} uir_tune_line;
typedef struct uir_model_tune_options {
    size_t struct_size;
    const char *device; /* "cpu" or a variant of it; NULL: "cpu" */
    uint32_t threads;   /* 0: the cores that affinity and cgroup quota allow */
    double seconds;     /* within which it is to end, as far as one compile allows; 0: 60 */
    const char *cache;  /* as for loading; what was found is kept there */
    uint64_t cache_limit;
    bool no_cache; /* nothing is kept but by `keep` */
    const char *records; /* to begin with, as in uir_debug_options; NULL: the cache's */
    /* Sets the inputs of a session that is to run; called for several sessions, whose models are the same. */
    uir_status (*bind)(void *user, uir_model *model, uir_session *session);
    void (*report)(void *user, const uir_tune_line *line); /* may be NULL, as the others below */
    void (*keep)(void *user, const char *records, size_t length); /* the records of all kernels that
                                                  were measured, as text */
    bool (*progress)(void *user, const char *stage, double fraction); /* as for loading */
    const volatile bool *cancel;
    void *user;
    const char *external_data; /* as for loading */
    bool no_map;
    const uir_limits *limits; /* of each load and each run */
    bool exact;               /* as for loading */
    const char *precision;    /* likewise */
    const char *const *overrides; /* likewise */
    size_t override_count;
} uir_model_tune_options;
typedef struct uir_tune_result {
    size_t struct_size;
    uint32_t kernel_count, kept_count; /* that were measured; for which another record is kept */
    uint64_t tried;                    /* tiles, of all kernels */
    double before_ms, after_ms;        /* a run, likewise */
} uir_tune_result;
/* Measures records of parameters of the model's heaviest kernels, by runs of the whole model, and keeps the best in the
 * cache for every later compile of these kernels; the model's package there is made anew. Which is chosen changes no bit of
 * any result: INTERNAL, with nothing kept, should the last run's outputs not be the first one's. UNSUPPORTED where no native
 * code runs the model. */
UIR_API UIR_WARN_UNUSED uir_status uir_model_tune_file(uir_context *context, const char *path,
                                                       const uir_model_tune_options *options,
                                                       uir_tune_result *out_result);

/* ---- subgraphs: to find which of a model's nodes go wrong ------------------------------------------------------- */
/* A model taken apart at the nodes of its main graph, with every value of one run on the interpreter: subgraphs can be
 * written as models of their own, with data sets. */
typedef struct uir_extractor uir_extractor;
typedef struct uir_extractor_node {
    size_t struct_size;
    const char *name, *op; /* as in the file; live as long as the extractor */
} uir_extractor_node;

/* Runs the model of the file on the inputs (in the order of its inputs; they must live as long as the extractor) and
 * keeps what each node made. `external_data`, as for loading, and `cancel` may be NULL. Statuses as for loading and running. */
UIR_API UIR_WARN_UNUSED uir_status uir_extractor_create(uir_context *context, const char *path,
                                                        uir_value *const *inputs, size_t input_count,
                                                        const char *external_data, const volatile bool *cancel, uir_extractor **out_extractor);
UIR_API void uir_extractor_destroy(uir_extractor *extractor);
UIR_API size_t uir_extractor_node_count(const uir_extractor *extractor);
/* INVALID_ARGUMENT, without a message, past the end. */
UIR_API UIR_WARN_UNUSED uir_status uir_extractor_get_node(const uir_extractor *extractor, size_t index,
                                                          uir_extractor_node *out_node);
/* In place of what the interpreter made of an output of the model: what is expected of it. `value` must live as long.
 */
UIR_API UIR_WARN_UNUSED uir_status uir_extractor_set_expected(uir_extractor *extractor, size_t output,
                                                              const uir_value *value);

typedef struct uir_subgraph {
    size_t struct_size;
    const bool *nodes; /* which are in it, by index */
    const char
        *output; /* the only output, by name; NULL: all values that its nodes make and the model gives or others read */
    bool static_shapes; /* dims of inputs and outputs are those of the run; else what the model says of them */
} uir_subgraph;
/* Takes from `nodes` those that neither outputs of the model nor nodes outside need; with `output`, all that this value
 * does not need. INVALID_ARGUMENT when no node of it makes such a value. */
UIR_API UIR_WARN_UNUSED uir_status uir_extractor_prune(uir_extractor *extractor, const char *output, bool *nodes);
/* Writes the subgraph as a model, and its inputs and expected outputs as input_N.pb and output_N.pb to an existing
 * folder. What others made is an input, or where it is a shape a constant. INVALID_ARGUMENT when nothing is left to
 * give. */
UIR_API UIR_WARN_UNUSED uir_status uir_extractor_write(uir_extractor *extractor, const uir_subgraph *subgraph,
                                                       const char *model_path, const char *data_folder);
/* Outputs of what was written last, by index; NULL past the end. Lives as long as the extractor. */
UIR_API const char *uir_extractor_get_output_name(const uir_extractor *extractor, size_t index);
UIR_API size_t uir_extractor_input_count(const uir_extractor *extractor); /* inputs of it */

/* ---- a run, measured ------------------------------------------------------------------------------------------- */
/* One executed node of the last run, for --explain and --profile. */
typedef struct uir_node_statistics {
    size_t struct_size;
    const char *name;   /* of the ONNX node it came from; the texts live as long as the session */
    const char *op;     /* the ONNX op */
    const char *kernel; /* the primitive */
    const char *by;     /* "interpreter" */
    const char *why;    /* by that one and no faster; "" where nothing is faster */
    const char *joined; /* which rewrites joined which primitives in its kernel; "" where none is known */
    double ms;
    uint64_t calls;
    uint64_t tensor_bytes; /* of what the launches read and wrote, each tensor once a launch */
    uint64_t dram_bytes;   /* the same, or after uir_session_count_traffic what the launches' slices moved */
    uint64_t flops;        /* arithmetic operations of the launches; 0 until uir_session_count_traffic */
    uint64_t phases;       /* of a launch; 0 in the interpreter, as are the three before */
    /* What was chosen for the sizes of the run, of what the kernel can do; 0 where nothing is to choose. */
    uint32_t variant, variant_count;     /* the kernel's form, counted from 1 */
    uint32_t candidate, candidate_count; /* the row of its table of tiles, counted from 1 */
    const int64_t *tiles;                /* until the next run */
    size_t tile_count;
    uint64_t units, unit_cost; /* pieces of work that the threads share; what one is estimated to take, in a measure
                                  of the kernel's own */
} uir_node_statistics;
/* NOT_FOUND, without a message, past the end. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_get_node_statistics(const uir_session *session, size_t index,
                                                                   uir_node_statistics *out_node);

/* A node of the model's file; those of bodies, and calls of local functions, are among them. One without a name is
 * called after its first output. In the file's order but for calls, which come first. NOT_FOUND, without a message, past
 * the end, and where nothing is known of them (a model that is only described). */
typedef struct uir_model_node {
    size_t struct_size;
    const char *name, *op; /* the texts live as long as the model */
    const char *fate;      /* "": it stands in the run; else what became of it: "folded", "merged", "alias", "inlined",
                              "dead" */
    const char *why;       /* that, in a sentence; "" */
    const char *step;      /* of one that stands: what runs it first, as "launch", "host", "if"; "" */
    uint32_t into;         /* the node that took it over, by index; UINT32_MAX: none */
} uir_model_node;
UIR_API UIR_WARN_UNUSED uir_status uir_model_get_node(const uir_model *model, size_t index, uir_model_node *out_node);

/* Which of them row `row` of the node statistics stands for, the one that most of its work is for first, by `index`.
 * NOT_FOUND, without a message, past the end. */
typedef struct uir_row_node {
    size_t struct_size;
    uint32_t node;           /* for uir_model_get_node */
    bool again;              /* a row before this one computes it as well */
    const char *name, *op;   /* as there */
} uir_row_node;
UIR_API UIR_WARN_UNUSED uir_status uir_session_get_row_node(const uir_session *session, size_t row, size_t index,
                                                            uir_row_node *out_node);
/* The same of trace slice `slice`. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_get_slice_node(const uir_session *session, size_t slice, size_t index,
                                                              uir_row_node *out_node);

/* A stretch of time that one thread gave to a node in the last run of a session with `trace`, by thread and in the order of
 * their ends; those of loops and branches hold those of the nodes in them. NOT_FOUND, without a message, past the end. Texts live as long as the
 * session. */
typedef struct uir_trace_slice {
    size_t struct_size;
    const char *name, *op;  /* of the ONNX node it came from */
    const char *kernel, *by; /* as in uir_node_statistics; "" and what the step is ("copy") where nothing is computed */
    uint32_t thread;         /* 0: the one that called the run */
    uint32_t phase;          /* of the kernel */
    uint64_t indices;        /* how many of the phase's parallel indices this thread did; 0 where there are none */
    double begin_ms, ms;     /* from the beginning of the run; how long */
} uir_trace_slice;
UIR_API UIR_WARN_UNUSED uir_status uir_session_get_trace_slice(const uir_session *session, size_t index,
                                                               uir_trace_slice *out_slice);

/* Counts what the slices of the last run's launches moved in device memory, by walking the kernels without computing:
 * dram_bytes of the statistics, and of the nodes', are these from then on, until the next run. A slice counts each time
 * it is read, whatever a cache would have kept; copies that a run left out do not count. UNSUPPORTED in a session of
 * the interpreter. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_count_traffic(uir_session *session);

/* ---- a run, modelled ------------------------------------------------------------------------------------------- */
/* What a run would take, found without one. */
typedef struct uir_cost {
    size_t struct_size;
    uint64_t tensor_bytes;  /* of what lies between kernels and within them, in the session's own memory; not outputs */
    uint64_t scratch_bytes; /* of all threads */
    uint64_t weight_bytes;  /* of constants, shared by all sessions of the model */
    uint64_t dram_bytes;    /* that the kernels' slices read and write in device memory, caches not counted */
    uint64_t flops;         /* arithmetic operations; a multiplication with an addition is two */
    uint64_t launches;
} uir_cost;
/* The cost of a run in which every named dim has the given value and every other free dim of the inputs is 1. Dims that
 * only a run's data tell are taken to be unknown: what depends on them is not counted, and loops count one iteration.
 * The session's inputs stay bound, its outputs and statistics as they are. NOT_FOUND for a name that is no dim of an
 * input; UNSUPPORTED in a session of the interpreter; other statuses as for a run with such inputs. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_get_cost(uir_session *session, const uir_dim_binding *bindings,
                                                        size_t binding_count, uir_cost *out_cost);

/* The same for one launch of those that the last uir_session_get_cost counted, by index. */
typedef struct uir_launch_cost {
    size_t struct_size;
    const char *kernel;    /* which one; the texts live as long as the model */
    const char *name, *op; /* of the ONNX node it came from */
    uint64_t tensor_bytes; /* of what it reads and writes, each tensor once */
    uint64_t dram_bytes;   /* that its slices move, caches not counted */
    uint64_t flops;
} uir_launch_cost;
/* NOT_FOUND, without a message, past the end. */
UIR_API UIR_WARN_UNUSED uir_status uir_session_get_launch_cost(const uir_session *session, size_t index,
                                                               uir_launch_cost *out_cost);

/* What a node's kernel took of a described machine in the last run of a session with `estimate`, all its launches
 * together: modelled by the costs of the machine's description, never measured. In the order in which they first ran.
 * NOT_FOUND, without a message, past the end. The texts live as long as the session. */
typedef struct uir_machine_estimate {
    size_t struct_size;
    const char *kernel;
    const char *name, *op; /* of the ONNX node it came from */
    uint64_t launches;
    double cycles;
    double ms;      /* 0: the description does not say how long a cycle is */
    uint64_t units; /* that have work at once, at most */
} uir_machine_estimate;
UIR_API UIR_WARN_UNUSED uir_status uir_session_get_estimate(const uir_session *session, size_t index,
                                                            uir_machine_estimate *out_estimate);

/* Of that, the bytes of operands that lie in a space of the machine, results included: what the spaces' own
 * instructions read and write. By index of the space; NOT_FOUND, without a message, past the last. */
typedef struct uir_space_estimate {
    size_t struct_size;
    const char *space; /* as the description names it */
    uint64_t read, written;
} uir_space_estimate;
UIR_API UIR_WARN_UNUSED uir_status uir_session_get_space_estimate(const uir_session *session, size_t index,
                                                                  size_t space, uir_space_estimate *out_estimate);

/* A roofline: what the machine can do at best. */
typedef struct uir_roofline {
    size_t struct_size;
    double flops_per_second; /* of f32, in fused multiply-adds */
    double bytes_per_second; /* read from memory */
    uint64_t threads;
} uir_roofline;
/* That of as many threads as the session has, found by measuring the machine, which takes a part of a second each time.
 */
UIR_API UIR_WARN_UNUSED uir_status uir_session_measure_roofline(uir_session *session, uir_roofline *out_roofline);
/* Modelled, not measured: the milliseconds that this takes at least on such a machine when it moves each byte once and
 * the greater of moving and computing hides the other. 0 where a limit is unknown. */
UIR_API double uir_roofline_get_ms(const uir_roofline *roofline, uint64_t bytes, uint64_t flops);

#ifdef __cplusplus
}
#endif

#endif
