/* frontend: ONNX files to the graph IR.
 *
 * In: a model's bytes (hostile until shown otherwise). Out: a module of ONNX ops, with the types that the file declares
 * for graph inputs and outputs, local functions inlined, initializers as constants, nodes in topological order. Types
 * of everything else are inferred by decompose. All of a model's problems are reported, not just the first.
 *
 * What becomes of what:
 * - A graph input that is also an initializer is the constant (the way of IR versions before 4): it is no input.
 * - A symbolic dim is a symbol shared by name over the whole model. A dim_param such as "past + sequence" becomes that
 *   expression when all its names are plain dims of main inputs, else a symbol with the whole text as its name.
 * - A dim of which the file says nothing is a symbol of its own, called after its value and axis: "x_0".
 * - A node without a name is called after its first output.
 * - Value names are made unique in the module; a zero byte in a name is written \x00.
 * - Attributes of kind TYPE_PROTO become strings: "seq(tensor(f32))". Sparse tensors are made dense; Constant's
 *   sparse_value becomes its value.
 * - Attributes that refer to a function's (ref_attr_name) are resolved; one the caller did not give is absent. */
#ifndef UIR_FRONTEND_FRONTEND_H
#define UIR_FRONTEND_FRONTEND_H

#include "ir/graph.h"

/* The range that is understood. An older opset will do where it means the same versions of the model's ops. */
#define UIR_ONNX_MAX_OPSET      27
#define UIR_ONNX_MIN_IR_VERSION 3
#define UIR_ONNX_MAX_IR_VERSION 13

typedef struct uir_onnx_source {
    const char *path; /* a file, which is mapped where `data` is NULL; NULL: it is from none */
    const void *data; /* read during the call only */
    size_t size;
    const char *folder;        /* of external data; NULL: those of `path` and of its real path, without a path none */
    const char *external_data; /* another, which comes first; NULL: none */
    /* Whether something can be done with an op; NULL: with all in the table. Others join the report of what is
     * unsupported. */
    bool (*is_supported)(uir_op op);
} uir_onnx_source;

typedef struct uir_onnx_pair {
    const char *key, *value;
} uir_onnx_pair;

/* Facts of the file. Texts are zero terminated and live in the arena given to uir_onnx_load. */
typedef struct uir_onnx_info {
    const char *producer;
    int64_t ir_version;
    uint32_t node_count; /* in all graphs, functions inlined */
    const uir_onnx_pair *metadata;
    uint32_t metadata_count;
    const char *const *input_names; /* as in the file, of the main graph's inputs and outputs in order */
    const char *const *output_names;
} uir_onnx_info;

/* `allocator` must outlive the module and all that shares its constants. Status: UNSUPPORTED when that is all that is
 * wrong. */
uir_status uir_onnx_load(const uir_onnx_source *source, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                         uir_arena *arena, uir_onnx_info *out_info, uir_module **out_module);

/* The files of external data that the module's constants lie in, by index; false past the last. `name` is below
 * one of the folders; all of it lives as long as the module. */
typedef struct uir_onnx_file {
    const char *name;
    const void *data;
    uint64_t size;
    uint64_t device, inode; /* which file it was */
} uir_onnx_file;
bool uir_onnx_get_file(const uir_module *module, uint32_t index, uir_onnx_file *out_file);

/* A TensorProto, SequenceProto or OptionalProto. The datum owns its data. `out_name` is the name stored in it, "" when
 * none. */
uir_status uir_onnx_read_datum(const uir_allocator *allocator, uir_diagnostics *diagnostics, const char *file,
                               const void *data, size_t size, uir_value_kind kind, uir_arena *arena,
                               const char **out_name, uir_datum **out_datum);
/* Appends the proto's bytes. */
uir_status uir_onnx_write_datum(const uir_datum *datum, const char *name, uir_text *out);

#endif
