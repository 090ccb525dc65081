/* frontend: ONNX files to the graph IR.
 *
 * In: a model's bytes (hostile until shown otherwise). Out: a module of ONNX ops, with the types that the file declares
 * for graph inputs and outputs, local functions inlined, initializers as constants, nodes in topological order. Types
 * of everything else are inferred by decompose. All of a model's problems are reported, not just the first.
 *
 * What becomes of what:
 * - A graph input that is also an initializer is the constant (the way of IR versions before 4): it is no input, unless
 *   the caller overrides it.
 * - A symbolic dim is a symbol shared by name over the whole model. A dim_param such as "past + sequence" becomes that
 *   expression when it has names and all are plain dims of main inputs, else a symbol with the whole text as its name.
 * - A dim of which the file says nothing is a symbol of its own, called after its value and axis: "x_0", or "x_0_2"
 *   where a dim is called so.
 * - A node without a name is called after its first output.
 * - Value names are made unique in the module; a zero byte in a name is written \x00.
 * - Attributes of kind TYPE_PROTO become strings: "seq(tensor(f32))". Sparse tensors are made dense; Constant's
 *   sparse_value becomes its value.
 * - What the caller wants to keep are outputs after the graph's own.
 * - Attributes that refer to a function's (ref_attr_name) are resolved; one the caller did not give is absent. */
#ifndef UIR_FRONTEND_FRONTEND_H
#define UIR_FRONTEND_FRONTEND_H

#include "ir/graph/graph.h"

/* The range that is understood. An older opset will do where it means the same versions of the model's ops. */
#define UIR_ONNX_MAX_OPSET      27
#define UIR_ONNX_MIN_IR_VERSION 3
#define UIR_ONNX_MAX_IR_VERSION 13

/* Values that become outputs of the main graph after its own: all that its nodes make, or those of the given names,
 * which are names of values, or of nodes, and then mean all that these make. */
typedef struct uir_onnx_keep {
    bool all;
    const char *const *names;
    size_t count;
} uir_onnx_keep;

/* Inputs of the main graph that have a default, an initializer of their name, and stay inputs. */
typedef struct uir_onnx_overrides {
    const char *const *names;
    size_t count;
} uir_onnx_overrides;

typedef struct uir_onnx_source {
    const char *path; /* a file, which is mapped where `data` is NULL; NULL: it is from none */
    const void *data; /* read during the call only */
    size_t size;
    const char *folder;        /* of external data; NULL: those of `path` and of its real path, without a path none */
    const char *external_data; /* another, which comes first; NULL: none */
    bool no_map;               /* files are copied, also where nobody but the caller can change them (base/file.h) */
    const struct uir_onnx_keep *keep; /* NULL: the graph's own outputs alone */
    const struct uir_onnx_overrides *overrides; /* NULL: none */
    /* Whether something can be done with an op; NULL: with all in the table. Others join the report of what is
     * unsupported. */
    bool (*is_supported)(uir_op op);
} uir_onnx_source;

/* Where an output of the main graph comes from. */
typedef struct uir_onnx_output {
    const char *node, *op; /* that makes it; "" where no node does */
    uint32_t place;        /* of the node among all of the main graph, from 1; 0: none */
    bool is_kept;          /* for the caller; not an output in the file */
} uir_onnx_output;

/* An input with a default. */
typedef struct uir_onnx_default {
    const char *name;
    uint32_t place;     /* among all inputs that the file lists, from 0 */
    bool is_overridden; /* it is an input; else the constant */
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
    uint64_t count; /* nodes in all graphs and their bodies, and in local functions as they are written */
} uir_onnx_op_count;

/* Facts of the file. Texts are zero terminated and live in the arena given to uir_onnx_load. */
typedef struct uir_onnx_info {
    const char *producer, *producer_version, *domain, *graph;
    int64_t ir_version, model_version;
    const uir_onnx_opset *opsets;
    const uir_onnx_op_count *ops; /* the most used first */
    uint32_t opset_count, op_count, function_count;
    uint64_t parameter_count;              /* elements of initializers */
    uint64_t weight_bytes, external_bytes; /* of initializers; of these, in other files */
    uint32_t node_count; /* in all graphs, functions inlined */
    const uir_onnx_pair *metadata;
    uint32_t metadata_count;
    const uir_port *declared_inputs, *declared_outputs; /* as the file declares them; inputs that are initializers too are
                                                           constants and not among them */
    uint32_t declared_input_count, declared_output_count;
    bool described; /* all of the above is there */
    const char *const *input_names; /* as in the file, of the main graph's inputs and outputs in order */
    const char **output_names;
    const uir_onnx_default *defaults;
    uint32_t default_count;
    uir_onnx_output *outputs; /* in their order */
    uint32_t output_count;    /* with what was kept */
} uir_onnx_info;

/* `allocator` must outlive the module and all that shares its constants. Status: UNSUPPORTED when that is all that is
 * wrong. */
uir_status uir_onnx_load(const uir_onnx_source *source, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                         uir_arena *arena, uir_onnx_info *out_info, uir_module **out_module);

/* Takes away again what uir_onnx_keep.all has kept and is no tensor of numbers: no kernel makes such outputs. `module` has
 * the types of the outputs, in the order of the info, which is cut as well. */
uir_status uir_onnx_drop_kept(uir_module *module, uir_onnx_info *info, uint32_t *out_dropped);

/* The files of external data that the module's constants lie in, by index; false past the last. `name` is below
 * one of the folders; all of it lives as long as the module. */
typedef struct uir_onnx_file {
    const char *name;
    const void *data;
    uint64_t size;
    uint64_t device, inode; /* which file it was */
} uir_onnx_file;
bool uir_onnx_get_file(const uir_module *module, uint32_t index, uir_onnx_file *out_file);
/* BAD_FILE with a message when a mapped one is not what it was when it was loaded. Any thread. */
uir_status uir_onnx_check_files(const uir_module *module, uir_diagnostics *diagnostics);

/* A TensorProto, SequenceProto or OptionalProto. The datum owns its data. `out_name` is the name stored in it, "" when
 * none. */
uir_status uir_onnx_read_datum(const uir_allocator *allocator, uir_diagnostics *diagnostics, const char *file,
                               const void *data, size_t size, uir_value_kind kind, uir_arena *arena,
                               const char **out_name, uir_datum **out_datum);
/* Appends the proto's bytes. */
uir_status uir_onnx_write_datum(const uir_datum *datum, const char *name, uir_text *out);

#endif
