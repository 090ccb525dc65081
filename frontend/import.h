/* Inside the frontend: the state of one import, and what its files offer each other.
 *
 * Two kinds of failure: a status other than OK ends the import at once (memory, limits); a problem of the model is
 * reported with uir_import_problem, remembered, and the import goes on to find the others. */
#ifndef UIR_FRONTEND_IMPORT_H
#define UIR_FRONTEND_IMPORT_H

#include "frontend/frontend.h"
#include "frontend/tensor_proto.h"

/* Functions that call each other twice double with each level: what inlining makes is bounded, in units of a name, an
 * attribute's element or 64 bytes of a tensor. */
#define UIR_IMPORT_MAX_INLINED_WORK 4000000
#define UIR_IMPORT_MAX_CALL_DEPTH   64
#define UIR_IMPORT_MAX_ATTRIBUTES   256  /* of a function */
#define UIR_IMPORT_MAX_OPSETS       4096 /* imported by a model or function: they are looked up one by one */
#define UIR_IMPORT_MAX_UNSUPPORTED  256  /* kinds of problems told apart */

/* An interned name of the file; 0 is the empty name: absent. */
typedef uir_string uir_name;

/* What a name means in the scope being read. */
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

/* Version of each imported domain. */
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

/* What a name of an inlined function's output is shown as: the name that its caller gives it. */
typedef struct uir_import_alias {
    uir_name shown;
    uint32_t scope; /* in which it holds */
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
    uir_vector(uir_dim) symbols;          /* by name: the dim that a dim_param of that text means, or none */
    uir_vector(bool) is_dim_name;         /* by name: a dim of a main input is called so */
    uir_vector(uir_op) ops;               /* by name of a default domain op: found rows, NONE when not looked up */
    uir_vector(uint32_t) makers;          /* by name: index of the node in the graph being ordered, plus 1 */
    uir_vector(uir_import_alias) aliases; /* by name */
    uir_vector(uint32_t) calls;           /* by name (see uir_import_find_function): index of a function, plus 1 */
    uir_strings texts;                    /* value names given out */
    uir_vector(uint32_t) suffixes;        /* by text: the last number appended to it */
    uint32_t scope, next_scope;
    uint32_t body, next_body;

    uir_import_opsets opsets;
    uir_vector(uir_import_function) functions;
    const uir_import_frame *frame; /* NULL outside functions */
    uint32_t node_count;
    uint64_t inlined_work;

    uir_vector(uir_import_unsupported) unsupported; /* each text once */
    uint32_t unsupported_count;                     /* times that any was found */
    uir_status worst;                               /* of the problems so far; OK when none */
} uir_importer;

/* ---- scope.c: problems, names, bindings ---- */
/* Reports and remembers. Returns OK, so that the import goes on. */
uir_status uir_import_problem(uir_importer *importer, uir_status status, const uir_location *place, const char *hint,
                              const char *format, ...) UIR_PRINTF(5, 6);
/* A status from below whose message has been given: OK to go on after having remembered it, else the status itself. */
uir_status uir_import_absorb(uir_importer *importer, uir_status status);
/* Something unsupported: one message for all nodes with the same text. */
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
/* A graph's scope within the current body; or a function body's, from which nothing outside is seen. */
uir_import_scope uir_import_enter(uir_importer *importer, bool new_body);
void uir_import_leave(uir_importer *importer, uir_import_scope saved);
/* Binds in the current scope; a name bound twice there is a problem. */
uir_status uir_import_bind(uir_importer *importer, uir_name name, uir_value_id value, const uir_location *place);
const uir_import_binding *uir_import_find(const uir_importer *importer, uir_name name); /* NULL: not visible */
/* A new value called after the name, made unique. */
uir_status uir_import_new_value(uir_importer *importer, uir_name name, const uir_type *type, uir_tensor *constant,
                                uir_value_id *out_value);

/* ---- types.c ---- */
/* Notes the dim_params of the graph's inputs; makes the symbols of plain ones, which expressions may then use. */
uir_status uir_import_declare_dims(uir_importer *importer, const UirOnnx__GraphProto *graph);
/* The declared type of the value called `owner`; NULL or an incomplete one gives unknown parts. */
uir_status uir_import_type(uir_importer *importer, const uir_location *place, uir_bytes owner,
                           const UirOnnx__TypeProto *proto, uir_type *out_type);
/* Notes what the graph declares of what its nodes make, when these are read. */
uir_status uir_import_declared(uir_importer *importer, const UirOnnx__GraphProto *graph);
/* "seq(tensor(f32))". */
uir_status uir_import_type_text(uir_importer *importer, const UirOnnx__TypeProto *proto, uir_text *text);

/* ---- attributes.c ---- */
/* The node's attributes, resolved in the current frame, checked against attributes.def. Graphs are read with
 * uir_import_graph into `graph`'s children. In case of a problem the list is incomplete and *out_good false. Tensors in
 * the list are owned. */
uir_status uir_import_attributes(uir_importer *importer, uir_graph_id graph, uir_op op, int since_version,
                                 const UirOnnx__NodeProto *node, const uir_location *place,
                                 uir_attribute **out_attributes, uint32_t *out_count, bool *out_good);
/* The attribute proto that is meant: itself, or what its ref_attr_name stands for in the current frame; NULL: absent.
 */
uir_status uir_import_resolve_attribute(uir_importer *importer, const UirOnnx__AttributeProto *attribute,
                                        const uir_location *place, const UirOnnx__AttributeProto **out_attribute);

/* ---- order.c ---- */
/* The order in which nodes can be read: NULL when it is the given one. A cycle is a problem, and gives the given order.
 */
uir_status uir_import_order(uir_importer *importer, UirOnnx__NodeProto *const *nodes, size_t count,
                            const uint32_t **out_order);

/* ---- nodes.c, functions.c ---- */
uir_status uir_import_nodes(uir_importer *importer, uir_graph_id graph, UirOnnx__NodeProto *const *nodes, size_t count);
/* Inputs, initializers, nodes and outputs of a graph, in a scope of its own. `info` of the main graph, else NULL. */
uir_status uir_import_graph(uir_importer *importer, uir_graph_id graph, const UirOnnx__GraphProto *proto,
                            uir_arena *arena, uir_onnx_info *info);
uir_status uir_import_read_functions(uir_importer *importer, const UirOnnx__ModelProto *model);
/* NULL when no local function is meant. */
uir_status uir_import_find_function(uir_importer *importer, const UirOnnx__NodeProto *node,
                                    uir_import_function **out_function);
uir_status uir_import_call(uir_importer *importer, uir_graph_id graph, const UirOnnx__NodeProto *node,
                           uir_import_function *function, const uir_location *place);
/* inspect.c: what the file says of itself, and what it holds. */
uir_status uir_import_inspect(uir_importer *importer, const UirOnnx__ModelProto *model, uir_arena *arena,
                              uir_onnx_info *info);
/* keep.c: within the main graph's scope, when all of it is read: adds the outputs that the source asks for, and
 * describes all of them. INVALID_ARGUMENT with a message for each name that is none. */
uir_status uir_import_keep(uir_importer *importer, uir_graph_id graph, const UirOnnx__GraphProto *proto,
                           uir_arena *arena, uir_onnx_info *info);
/* Counts work done inside functions; over the limit the import ends. */
uir_status uir_import_spend(uir_importer *importer, uint64_t amount);
/* The value that a node's input or a graph's output names; the none value for the empty name; a problem when there is
 * none. */
uir_status uir_import_use(uir_importer *importer, uir_bytes bytes, const uir_location *place, const char *what,
                          uir_value_id *out_value);
/* Where a node is: file, its name, its op, in texts of the scratch arena. */
uir_status uir_import_place(uir_importer *importer, const UirOnnx__NodeProto *node, uir_location *out_place);
uir_status uir_import_read_opsets(uir_importer *importer, UirOnnx__OperatorSetIdProto *const *protos, size_t count,
                                  uir_import_opsets *out_opsets);
/* The version imported for a domain in the current body; 0: none. */
int64_t uir_import_opset_version(const uir_importer *importer, uir_name domain);

#endif
