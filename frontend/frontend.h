/* The ONNX frontend: reads a model's file into a module.
 *
 * In: a model's bytes (untrusted). Out: a module of ONNX ops, with the types that the file declares for graph inputs
 * and outputs, local functions inlined, initializers as constants, nodes in topological order. Decompose infers all
 * other types. All of a model's problems are reported, not just the first.
 *
 * Rules:
 * - A graph input that is also an initializer is a constant, not an input (as in IR versions before 4), unless the
 *   caller overrides it.
 * - A symbolic dim is a symbol shared by name over the whole model. A dim_param such as "past + sequence" becomes that
 *   expression when it has names and all are plain dims of main inputs, else a symbol with the whole text as its name.
 * - A dim of -1, with an empty dim_param, or unset, is a symbol of its own, named after its value and axis: "x_0", or
 *   "x_0_2" if a dim has that name.
 * - A node without a name has that of its first output.
 * - Value names are made unique in the module; a zero byte in a name is written \x00.
 * - Attributes of kind TYPE_PROTO become strings: "seq(tensor(f32))". Sparse tensors are made dense; Constant's
 *   sparse_value becomes its value.
 * - Values that the caller keeps are outputs after the graph's own.
 * - Attributes that refer to a function's (ref_attr_name) are resolved; one that the call lacks is absent. */
#ifndef UIR_FRONTEND_FRONTEND_H
#define UIR_FRONTEND_FRONTEND_H

#include "ir/graph/graph.h"

/* The supported range. An older opset is accepted if it means the same versions of the model's ops. */
#define UIR_ONNX_MAX_OPSET      27
#define UIR_ONNX_MIN_IR_VERSION 3
#define UIR_ONNX_MAX_IR_VERSION 13

/* Values to be outputs of the main graph, after its own: all results of its nodes, or those of the given names. A name
 * is that of a value, or of a node, for all its results. */
typedef struct uir_onnx_keep {
    bool all;
    const char *const *names;
    size_t count;
} uir_onnx_keep;

/* Inputs of the main graph that stay inputs although they have a default, an initializer of the same name. */
typedef struct uir_onnx_overrides {
    const char *const *names;
    size_t count;
} uir_onnx_overrides;

typedef struct uir_onnx_source {
    const char *path; /* a file, mapped if `data` is NULL; NULL: none */
    const void *data; /* read during the call only */
    size_t size;
    const char *folder;                         /* of external data; NULL: those of `path` and its real path */
    const char *external_data;                  /* another, searched first; NULL: none */
    bool no_map;                                /* always copies files, never maps them (base/file.h) */
    const struct uir_onnx_keep *keep;           /* NULL: the graph's own outputs only */
    const struct uir_onnx_overrides *overrides; /* NULL: none */
    /* Whether an op is supported; NULL: all in the table. Others are reported as unsupported. */
    bool (*is_supported)(uir_op op);
} uir_onnx_source;

/* The producer of an output of the main graph. */
typedef struct uir_onnx_output {
    const char *node, *op; /* its node; "" without one */
    uint32_t place;        /* number of the node in the main graph, from 1; 0: none */
    bool is_kept;          /* kept for the caller; not an output in the file */
} uir_onnx_output;

/* An input with a default. */
typedef struct uir_onnx_default {
    const char *name;
    uint32_t place;     /* among all inputs in the file, from 0 */
    bool is_overridden; /* an input; else a constant */
} uir_onnx_default;

typedef struct uir_onnx_pair {
    const char *key, *value;
} uir_onnx_pair;

typedef struct uir_onnx_opset {
    const char *domain;
    int64_t version;
} uir_onnx_opset;
typedef struct uir_onnx_op_count {
    const char *domain, *name;
    uint64_t count; /* nodes in all graphs and bodies, and in local functions before inlining */
} uir_onnx_op_count;

/* Facts of the file. Texts are zero terminated and live in the arena given to uir_onnx_load. */
typedef struct uir_onnx_info {
    const char *producer, *producer_version, *domain, *graph;
    int64_t ir_version, model_version;
    const uir_onnx_opset *opsets;
    const uir_onnx_op_count *ops; /* most used first */
    uint32_t opset_count, op_count, function_count;
    uint64_t parameter_count;              /* elements of initializers */
    uint64_t weight_bytes, external_bytes; /* of initializers; of these, in other files */
    uint32_t node_count;                   /* in all graphs, functions inlined */
    const uir_onnx_pair *metadata;
    uint32_t metadata_count;
    const uir_port *declared_inputs, *declared_outputs; /* as declared; without inputs that are also initializers */
    uint32_t declared_input_count, declared_output_count;
    bool described;                 /* all members above are set */
    const char *const *input_names; /* names in the file of the main graph's inputs and outputs, in order */
    const char **output_names;
    const uir_onnx_default *defaults;
    uint32_t default_count;
    uir_onnx_output *outputs; /* in order */
    uint32_t output_count;    /* with those kept */
} uir_onnx_info;

/* Loads a model. `allocator` must outlive the module and all that shares its constants. UNSUPPORTED if that is its only
 * kind of problem. */
uir_status uir_onnx_load(const uir_onnx_source *source, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                         uir_arena *arena, uir_onnx_info *out_info, uir_module **out_module);

/* Removes outputs kept by uir_onnx_keep.all that are not tensors of numbers, since no kernel makes them, also from the
 * info. `module` must have the types of the outputs, in the order of the info. */
uir_status uir_onnx_drop_kept(uir_module *module, uir_onnx_info *info, uint32_t *out_dropped);

/* The external data files of the module's constants, by index; false past the last. `name` is below one of the folders.
 * All of it lives as long as the module. */
typedef struct uir_onnx_file {
    const char *name;
    const void *data;
    uint64_t size;
    uint64_t device, inode; /* identity of the file */
} uir_onnx_file;
bool uir_onnx_get_file(const uir_module *module, uint32_t index, uir_onnx_file *out_file);
/* BAD_FILE with a message if a mapped file has changed since it was loaded. Any thread. */
uir_status uir_onnx_check_files(const uir_module *module, uir_diagnostics *diagnostics);

/* Reads a TensorProto, SequenceProto or OptionalProto. The datum owns its data. `out_name` is the name stored in it, or
 * "". */
uir_status uir_onnx_read_datum(const uir_allocator *allocator, uir_diagnostics *diagnostics, const char *file,
                               const void *data, size_t size, uir_value_kind kind, uir_arena *arena,
                               const char **out_name, uir_datum **out_datum);
/* Appends the proto's bytes. */
uir_status uir_onnx_write_datum(const uir_datum *datum, const char *name, uir_text *out);

#endif
