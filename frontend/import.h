/* Internal declarations of the frontend: the state of an import, and its functions.
 *
 * Two kinds of failure: a status other than OK ends the import at once (memory, limits); a problem of the model is
 * reported with uir_import_problem, and the import continues to find further ones. */
#ifndef UIR_FRONTEND_IMPORT_H
#define UIR_FRONTEND_IMPORT_H

#include "frontend/frontend.h"
#include "frontend/tensor_proto.h"

/* Bounds the work of inlining, which doubles with each level if functions call others twice. Units: a name, an
 * attribute's element, 64 bytes of a tensor. */
#define UIR_IMPORT_MAX_INLINED_WORK 4000000
#define UIR_IMPORT_MAX_CALL_DEPTH   64
#define UIR_IMPORT_MAX_ATTRIBUTES   256  /* of a function */
#define UIR_IMPORT_MAX_OPSETS       4096 /* imported by a model or function; the search is linear */
#define UIR_IMPORT_MAX_UNSUPPORTED  256  /* distinct problems */

/* An interned name of the file; 0 is the empty name: absent. */
typedef uir_string uir_name;

/* The meaning of a name in the current scope. */
typedef struct uir_import_binding {
    uir_value_id value;
    bool bound;
    uint32_t scope; /* serial of the graph or function body that bound it */
    uint32_t body;  /* serial of the function body (0: the model); names of other bodies are not visible */
} uir_import_binding;

typedef struct uir_import_undo {
    uir_name name;
    uir_import_binding before;
} uir_import_undo;

/* Version of an imported domain. */
typedef struct uir_import_opset {
    uir_name domain;
    int64_t version;
} uir_import_opset;
typedef struct uir_import_opsets {
    uir_import_opset *data;
    uint32_t count;
} uir_import_opsets;

typedef struct uir_import_function {
    uir_name domain, name, overload;
    const UirOnnx__FunctionProto *proto;
    uir_import_opsets opsets; /* read at the first call */
    bool opsets_read;
} uir_import_function;

/* A function being inlined. */
typedef struct uir_import_frame {
    const struct uir_import_frame *caller;
    uir_import_function *function;
    uint32_t depth;
    const UirOnnx__AttributeProto **attributes; /* by position in attribute_names */
    const uir_name *attribute_names;
    uint32_t attribute_count;
} uir_import_frame;

/* The name shown for an output inside an inlined function: that at its call. */
typedef struct uir_import_alias {
    uir_name shown;
    uint32_t scope; /* in which it is valid */
} uir_import_alias;

/* A kind of problem that many nodes may share, reported once. */
typedef struct uir_import_unsupported {
    uir_name text, hint;
    const char *node, *op;
    uint32_t count;
} uir_import_unsupported;

typedef struct uir_importer {
    const uir_onnx_source *source;
    const char *file;
    const uir_allocator *allocator;
    uir_diagnostics *diagnostics;
    uir_arena scratch;
    uir_module *module;
    uir_tensor_source tensors;

    uir_strings names;
    uir_vector(uir_import_binding) bindings; /* by name */
    uir_vector(uir_import_undo) undo;
    uir_vector(uir_dim) symbols;          /* by name: the dim of a dim_param of that text, or none */
    uir_vector(bool) is_dim_name;         /* by name: a dim of a main input has it */
    uir_vector(uir_op) ops;               /* by name of a default domain op: its row; NONE: not looked up yet */
    uir_vector(uint32_t) makers;          /* by name: number of its node in the graph being ordered, plus 1 */
    uir_vector(uir_import_alias) aliases; /* by name */
    uir_vector(uint32_t) calls;           /* by name (see uir_import_find_function): number of a function, plus 1 */
    uir_strings texts;                    /* value names in use */
    uir_vector(uint32_t) suffixes;        /* by text: the last number appended to it */
    uint32_t scope, next_scope;
    uint32_t body, next_body;

    uir_import_opsets opsets;
    uir_vector(uir_import_function) functions;
    const uir_import_frame *frame; /* NULL outside functions */
    uint32_t node_count;
    uint64_t inlined_work;

    uir_vector(uir_import_unsupported) unsupported; /* each text once */
    uint32_t unsupported_count;                     /* number of times found */
    uir_status worst;                               /* of the problems so far; OK: none */
} uir_importer;

/* ---- scope.c: problems, names, bindings ---- */
/* Reports and remembers a problem. Returns OK, so that the import continues. */
uir_status uir_import_problem(uir_importer *importer, uir_status status, const uir_location *place, const char *hint,
                              const char *format, ...) UIR_PRINTF(5, 6);
/* For a status whose message was given: remembers it and returns OK, or returns it if it ends the import. */
uir_status uir_import_absorb(uir_importer *importer, uir_status status);
/* Reports something unsupported: one message for all nodes with the same text. */
uir_status uir_import_unsupported_found(uir_importer *importer, const uir_location *place, const char *hint,
                                        const char *format, ...) UIR_PRINTF(4, 5);
void uir_import_report_unsupported(uir_importer *importer);

uir_status uir_import_name(uir_importer *importer, uir_bytes bytes, uir_name *out_name);
/* The name for messages and IR text: zero bytes as \x00. Never NULL on success. */
uir_status uir_import_text(uir_importer *importer, uir_bytes bytes, uir_arena *arena, const char **out_text);
uir_bytes uir_import_bytes(const uir_importer *importer, uir_name name);

typedef struct uir_import_scope {
    uint32_t undo_count, scope, body;
} uir_import_scope;
/* Enters a graph's scope within the current body; or that of a function body, which sees no outer names. */
uir_import_scope uir_import_enter(uir_importer *importer, bool new_body);
void uir_import_leave(uir_importer *importer, uir_import_scope saved);
/* Binds in the current scope; a second binding there is a problem. */
uir_status uir_import_bind(uir_importer *importer, uir_name name, uir_value_id value, const uir_location *place);
const uir_import_binding *uir_import_find(const uir_importer *importer, uir_name name); /* NULL: not visible */
/* Adds a value with the name, made unique. */
uir_status uir_import_new_value(uir_importer *importer, uir_name name, const uir_type *type, uir_tensor *constant,
                                uir_value_id *out_value);

/* ---- types.c ---- */
/* Records the dim_params of the graph's inputs; adds symbols for plain ones, which expressions may then use. */
uir_status uir_import_declare_dims(uir_importer *importer, const UirOnnx__GraphProto *graph);
/* The declared type of the value `owner`; unknown parts if it is NULL or incomplete. */
uir_status uir_import_type(uir_importer *importer, const uir_location *place, uir_bytes owner,
                           const UirOnnx__TypeProto *proto, uir_type *out_type);
/* Records the graph's declared types for results of its nodes. */
uir_status uir_import_declared(uir_importer *importer, const UirOnnx__GraphProto *graph);
/* "seq(tensor(f32))". */
uir_status uir_import_type_text(uir_importer *importer, const UirOnnx__TypeProto *proto, uir_text *text);

/* ---- attributes.c ---- */
/* The node's attributes, resolved in the current frame and checked against attributes.def. uir_import_graph reads
 * graphs into `graph`'s children. After a problem the list is incomplete and *out_good false. Tensors in the list are
 * owned. */
uir_status uir_import_attributes(uir_importer *importer, uir_graph_id graph, uir_op op, int since_version,
                                 const UirOnnx__NodeProto *node, const uir_location *place,
                                 uir_attribute **out_attributes, uint32_t *out_count, bool *out_good);
/* The attribute itself, or the one that its ref_attr_name refers to in the current frame; NULL: absent. */
uir_status uir_import_resolve_attribute(uir_importer *importer, const UirOnnx__AttributeProto *attribute,
                                        const uir_location *place, const UirOnnx__AttributeProto **out_attribute);

/* ---- order.c ---- */
/* A topological order of nodes; NULL: the given one. A cycle is a problem, and results in the given order. */
uir_status uir_import_order(uir_importer *importer, UirOnnx__NodeProto *const *nodes, size_t count,
                            const uint32_t **out_order);

/* ---- nodes.c, functions.c ---- */
uir_status uir_import_nodes(uir_importer *importer, uir_graph_id graph, UirOnnx__NodeProto *const *nodes, size_t count);
/* Reads inputs, initializers, nodes and outputs of a graph, in a scope of its own. `info` of the main graph, else
 * NULL. */
uir_status uir_import_graph(uir_importer *importer, uir_graph_id graph, const UirOnnx__GraphProto *proto,
                            uir_arena *arena, uir_onnx_info *info);
uir_status uir_import_read_functions(uir_importer *importer, const UirOnnx__ModelProto *model);
/* NULL if the node does not call a local function. */
uir_status uir_import_find_function(uir_importer *importer, const UirOnnx__NodeProto *node,
                                    uir_import_function **out_function);
uir_status uir_import_call(uir_importer *importer, uir_graph_id graph, const UirOnnx__NodeProto *node,
                           uir_import_function *function, const uir_location *place);
/* inspect.c: fills the facts of the file. */
uir_status uir_import_inspect(uir_importer *importer, const UirOnnx__ModelProto *model, uir_arena *arena,
                              uir_onnx_info *info);
/* keep.c: adds the outputs that the source asks for, and describes all outputs; called in the main graph's scope, after
 * reading it. INVALID_ARGUMENT with a message for each unknown name. */
uir_status uir_import_keep(uir_importer *importer, uir_graph_id graph, const UirOnnx__GraphProto *proto,
                           uir_arena *arena, uir_onnx_info *info);
/* Counts work inside functions; beyond the limit the import ends. */
uir_status uir_import_spend(uir_importer *importer, uint64_t amount);
/* The value named by a node's input or a graph's output; NONE for the empty name; a problem if unknown. */
uir_status uir_import_use(uir_importer *importer, uir_bytes bytes, const uir_location *place, const char *what,
                          uir_value_id *out_value);
/* The location of a node: file, name, op, as texts of the scratch arena. */
uir_status uir_import_place(uir_importer *importer, const UirOnnx__NodeProto *node, uir_location *out_place);
uir_status uir_import_read_opsets(uir_importer *importer, UirOnnx__OperatorSetIdProto *const *protos, size_t count,
                                  uir_import_opsets *out_opsets);
/* Version of a domain imported in the current body; 0: none. */
int64_t uir_import_opset_version(const uir_importer *importer, uir_name domain);

#endif
