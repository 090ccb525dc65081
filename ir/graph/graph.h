/* The graph IR: a DAG of nodes over tensors in device memory.
 *
 * In: built by the frontend (ONNX ops) and by decompose (primitives). Out: read by passes, printed, verified,
 * interpreted.
 *
 * A module owns everything: graphs (the main one and the bodies of control flow), nodes, values, types, names, dims,
 * constants. All are 32-bit handles into the module's arrays; handle 0 is "none". A body may use values of the graphs
 * around it. A graph's node list is in topological order, and that order is also the order in which run-time dims are
 * learned (see BIND_DIMS in ops_primitive.def). */
#ifndef UIR_IR_GRAPH_H
#define UIR_IR_GRAPH_H

#include "base/datum.h"
#include "base/dims/dim.h"
#include "base/fate.h"
#include "base/progress.h"
#include "ir/machine/layout.h"

typedef struct uir_graph_id {
    uint32_t id;
} uir_graph_id;
typedef struct uir_node_id {
    uint32_t id;
} uir_node_id;
typedef struct uir_value_id {
    uint32_t id; /* 0: none (an absent optional input or output) */
} uir_value_id;

/* Every op of both sections, by the tables that ops.def includes. */
typedef enum uir_op {
    UIR_OP_NONE,
#define UIR_ONNX_OP(constant, domain, name, versions, min_inputs, max_inputs, min_outputs, max_outputs, traits)        \
    UIR_OP_ONNX_##constant,
#define UIR_PRIMITIVE(constant, name, min_inputs, max_inputs, outputs, traits, dtypes, attributes, infer, run)         \
    UIR_OP_##constant,
#include "ir/graph/ops.def"
    UIR_OP_COUNT
} uir_op;

typedef enum uir_op_section { UIR_SECTION_NONE, UIR_SECTION_ONNX, UIR_SECTION_PRIMITIVE } uir_op_section;

/* Traits, or-ed in the op table. */
enum {
    UIR_TRAIT_UNARY = 1u << 0,   /* elementwise, one operand */
    UIR_TRAIT_BINARY = 1u << 1,  /* elementwise, two operands of one dtype */
    UIR_TRAIT_TERNARY = 1u << 2, /* elementwise, three operands */
    UIR_TRAIT_ELEMENTWISE = UIR_TRAIT_UNARY | UIR_TRAIT_BINARY | UIR_TRAIT_TERNARY,
    UIR_TRAIT_COMPARISON = 1u << 3, /* result is bool */
    UIR_TRAIT_REDUCTION = 1u << 4,
    UIR_TRAIT_MOVEMENT = 1u << 5, /* moves elements, computes none */
    UIR_TRAIT_CONTRACTION = 1u << 6,
    UIR_TRAIT_EFFECT = 1u << 7,  /* binds dims: never removed or reordered before its operands' makers */
    UIR_TRAIT_RANDOM = 1u << 8,  /* two equal nodes may differ: no CSE, no folding */
    UIR_TRAIT_CONTROL = 1u << 9, /* has subgraphs */
    UIR_TRAIT_HOST = 1u << 10,   /* remains a host or library op */
    UIR_TRAIT_COMMUTATIVE = 1u << 11,
    UIR_TRAIT_CHECK = 1u << 12, /* no result, may fault; removed only if proved or a duplicate */
};

/* Dtype classes that the data operands of a primitive may have. 0 in the table: the op's inference checks them. */
enum {
    UIR_DTYPES_BOOL = 1u << UIR_DTYPE_CLASS_BOOL,
    UIR_DTYPES_SIGNED = 1u << UIR_DTYPE_CLASS_SIGNED,
    UIR_DTYPES_INTEGER = UIR_DTYPES_SIGNED | 1u << UIR_DTYPE_CLASS_UNSIGNED,
    UIR_DTYPES_FLOAT = 1u << UIR_DTYPE_CLASS_FLOAT,
    UIR_DTYPES_NUMBER = UIR_DTYPES_INTEGER | UIR_DTYPES_FLOAT,
    UIR_DTYPES_REAL = UIR_DTYPES_NUMBER | UIR_DTYPES_BOOL,
    UIR_DTYPES_ANY = UIR_DTYPES_REAL | 1u << UIR_DTYPE_CLASS_COMPLEX | 1u << UIR_DTYPE_CLASS_STRING,
};

typedef struct uir_op_row {
    uir_op_section section;
    const char *constant; /* "CONV" */
    const char *domain;   /* "" for ai.onnx; NULL for a primitive */
    const char *name;     /* "Conv", "matmul" */
    const char *versions; /* ONNX: the known since-versions, "1,11,13"; NULL for a primitive */
    int min_inputs, max_inputs, min_outputs, max_outputs; /* -1: unlimited */
    uint32_t traits;
    uint32_t dtypes;        /* primitive: UIR_DTYPES_ of its data operands */
    const char *attributes; /* primitive: "axis:int keep:int" (see ops_primitive.def) */
} uir_op_row;

const uir_op_row *uir_op_get_row(uir_op op); /* never NULL; the NONE row for a bad value */
uir_op uir_op_find_primitive(const char *name, size_t length);
/* The op in any version; UIR_OP_NONE if the table lacks it. "ai.onnx" and "" are one domain. */
uir_op uir_op_find_onnx(const char *domain, const char *name);
/* The since-version in force for `opset`: the largest one <= opset; 0 when the op is newer than that. */
int uir_op_since_version(uir_op op, int opset);
/* The op's name in messages: "Conv", "matmul". */
const char *uir_op_name(uir_op op);
/* Prefix of the op's messages: its name, or "" for a check, whose messages are complete. */
const char *uir_op_said_name(uir_op op);

/* ---- types and values ---- */
typedef struct uir_type {
    uir_value_kind kind; /* of a sequence or optional: dtype and shape of its elements */
    uir_dtype dtype;     /* NONE: unknown */
    bool rank_known;
    uint32_t rank;
    const uir_dim *dims; /* in the module's arena; each a valid dim (fresh symbols where unknown) */
} uir_type;

typedef struct uir_value_info {
    uir_string name; /* unique in the module; "" until printed */
    uir_type type;
    uir_node_id producer; /* none: an input, or a constant */
    uint32_t output_index;
    uir_tensor *constant;     /* not NULL: the value is this (owned reference, released with the module) */
    const uir_layout *layout; /* its layout in memory, which does not change its contents; NULL: row-major */
    /* The symbolic contents of an integer value of rank 0 or 1, if known: shape arithmetic is folded through these. */
    const uir_dim *elements;
    uint32_t element_count;
    bool elements_known;
} uir_value_info;

/* The kinds of attribute and their names in the op table and in text. */
#define UIR_ATTRIBUTE_KINDS(UIR_ATTRIBUTE_KIND)                                                                        \
    UIR_ATTRIBUTE_KIND(INT, "int")                                                                                     \
    UIR_ATTRIBUTE_KIND(INTS, "ints")                                                                                   \
    UIR_ATTRIBUTE_KIND(FLOAT, "float")                                                                                 \
    UIR_ATTRIBUTE_KIND(FLOATS, "floats")                                                                               \
    UIR_ATTRIBUTE_KIND(STRING, "string")                                                                               \
    UIR_ATTRIBUTE_KIND(STRINGS, "strings")                                                                             \
    UIR_ATTRIBUTE_KIND(TENSOR, "tensor")                                                                               \
    UIR_ATTRIBUTE_KIND(DIMS, "dims") /* symbolic dims */                                                               \
    UIR_ATTRIBUTE_KIND(DTYPE, "dtype")                                                                                 \
    UIR_ATTRIBUTE_KIND(GRAPH, "graph")

typedef enum uir_attribute_kind {
#define UIR_ATTRIBUTE_KIND_ENUM(constant, name) UIR_ATTRIBUTE_##constant,
    UIR_ATTRIBUTE_KINDS(UIR_ATTRIBUTE_KIND_ENUM)
#undef UIR_ATTRIBUTE_KIND_ENUM
        UIR_ATTRIBUTE_KIND_COUNT
} uir_attribute_kind;

typedef struct uir_attribute {
    uir_string name;
    uir_attribute_kind kind;
    uint32_t count; /* INTS, FLOATS, STRINGS, DIMS */
    union {
        int64_t integer;
        const int64_t *integers;
        double real; /* ONNX floats are f32 and exact here */
        const double *reals;
        uir_string string;
        const uir_string *strings;
        uir_tensor *tensor; /* owned reference */
        const uir_dim *dims;
        uir_dtype dtype;
        uir_graph_id graph;
    } value;
} uir_attribute;

typedef struct uir_node_info {
    uir_op op;
    int since_version; /* ONNX ops: the schema version in force */
    uir_string name;   /* the ONNX node's name, kept through decomposition */
    uir_op origin;     /* primitive: the ONNX op it came from; else NONE */
    uint32_t source;   /* number of its node of the file, of ir/graph/origins.h; 0: unknown */
    const uir_value_id *inputs;
    uint32_t input_count;
    const uir_value_id *outputs;
    uint32_t output_count;
    const uir_attribute *attributes;
    uint32_t attribute_count;
    uir_graph_id graph;
    uint32_t line;   /* in the module's file, if read from a text; else 0 */
    bool is_again;   /* in a group's body: recomputed, an earlier group computes it too */
    uint32_t kernel; /* a group's: number of its kernel, from 1; 0: none. Not part of the text, which names it */
} uir_node_info;

/* A node of the model's file: see ir/graph/origins.h. */
typedef struct uir_origin {
    uir_string name, op;
    uint32_t into; /* the origin that does its work, by the last note; 0: none */
    uir_fate fate; /* by the last note; STANDS: no note */
    bool is_met;   /* its decomposition has begun */
    bool is_output;
} uir_origin;
typedef struct uir_origin_read {
    uint32_t by, of;
} uir_origin_read;

typedef struct uir_graph_info {
    uir_string name;
    uir_graph_id parent; /* none: a top graph */
    uir_vector(uir_value_id) inputs;
    uir_vector(uir_value_id) outputs; /* may repeat a value, an input or a constant */
    uir_vector(uir_node_id) nodes;
} uir_graph_info;

/* Declared type of a node's result in the file; an undeclared dim is none. */
typedef struct uir_declaration {
    uir_value_id value;
    uir_type type;
    bool varies; /* decomposed with several shapes, or only in a branch: it has no one shape */
} uir_declaration;

typedef struct uir_module {
    uir_arena arena;
    const uir_allocator *allocator; /* points at arena.allocator */
    uir_dims *dims;
    uir_strings strings;
    uir_diagnostics *diagnostics;         /* borrowed */
    uir_vector(uir_graph_info) graphs;    /* [0] unused */
    uir_vector(uir_node_info) nodes;      /* [0] unused */
    uir_vector(uir_value_info) values;    /* [0] unused */
    uir_vector(uir_declaration) declared; /* in the file, of ONNX values; not part of the text */
    uir_graph_id main;
    int opset;        /* of ai.onnx, as imported */
    const char *file; /* name of the text's file; NULL: not read from a text */
    /* Data that constants borrow (mapped files); closed with the module. */
    void (*release_storage)(void *storage);
    void *storage;
    uir_vector(uir_origin) origins; /* [0] unused; empty: none are known */
    uir_vector(uir_origin_read) origin_reads;
} uir_module;

uir_status uir_module_create(const uir_allocator *allocator, uir_diagnostics *diagnostics, uir_module **out_module);
void uir_module_destroy(uir_module *module);
/* A module of the same contents, by the same handles. Constants are shared; what they borrow stays the original's:
 * uir_module_take_storage. */
uir_status uir_module_clone(const uir_module *module, const uir_allocator *allocator, uir_module **out_clone);
/* Moves the data that constants borrow to another module, which closes it from now on. */
void uir_module_take_storage(uir_module *module, uir_module *from);

/* ---- building (all copy their arguments into the module's arena) ---- */
uir_status uir_module_add_graph(uir_module *module, uir_graph_id parent, const char *name, uir_graph_id *out_graph);
uir_status uir_module_add_value(uir_module *module, const char *name, uir_type type, uir_value_id *out_value);
/* Takes over the caller's reference to the tensor on success. */
uir_status uir_module_add_constant(uir_module *module, const char *name, uir_tensor *tensor, uir_value_id *out_value);
/* Sets the value's layout; NULL: row-major. INVALID_ARGUMENT if its storage overflows. */
uir_status uir_module_set_layout(uir_module *module, uir_value_id value, const uir_layout *layout);
uir_status uir_graph_add_input(uir_module *module, uir_graph_id graph, uir_value_id value);
uir_status uir_graph_add_output(uir_module *module, uir_graph_id graph, uir_value_id value);
/* Appends a node; sets producer and output_index of its outputs. The caller sets the outputs' types (ir/graph/build.h
 * infers them for primitives). */
uir_status uir_graph_add_node(uir_module *module, uir_graph_id graph, const uir_node_info *node, uir_node_id *out_node);

static inline uir_graph_info *uir_graph_get(const uir_module *m, uir_graph_id g) {
    return &m->graphs.data[g.id];
}
static inline uir_node_info *uir_node_get(const uir_module *m, uir_node_id n) {
    return &m->nodes.data[n.id];
}
static inline uir_value_info *uir_value_info_get(const uir_module *m, uir_value_id v) {
    return &m->values.data[v.id];
}
static inline const uir_type *uir_value_type(const uir_module *m, uir_value_id v) {
    return &m->values.data[v.id].type;
}

/* Copies the array that an attribute points at into the module's arena; tensors are not retained. */
uir_status uir_module_copy_attribute(uir_module *module, uir_attribute *attribute);
/* Sets an attribute of a node, in place of one of that name; its data is copied. */
uir_status uir_node_set_attribute(uir_module *module, uir_node_id node, const char *name,
                                  const uir_attribute *attribute);
/* Removes an attribute, if present. */
void uir_node_remove_attribute(uir_module *module, uir_node_id node, const char *name);

const char *uir_attribute_kind_name(uir_attribute_kind kind);
bool uir_attribute_kind_from_name(const char *name, size_t length, uir_attribute_kind *out_kind);
/* Row `index` of a primitive's attribute list; false past its end. The name is `length` bytes of the table's text. */
typedef struct uir_attribute_spec {
    const char *name;
    size_t length;
    uir_attribute_kind kind;
    bool optional;
} uir_attribute_spec;
bool uir_op_get_attribute_spec(uir_op op, uint32_t index, uir_attribute_spec *out_spec);
bool uir_op_find_attribute_spec(uir_op op, const char *name, size_t length, uir_attribute_spec *out_spec);

/* Attribute by name; NULL if absent. The typed forms return `fallback` if it is absent or of another kind. */
const uir_attribute *uir_node_find_attribute(const uir_module *module, const uir_node_info *node, const char *name);
int64_t uir_node_int(const uir_module *module, const uir_node_info *node, const char *name, int64_t fallback);
double uir_node_float(const uir_module *module, const uir_node_info *node, const char *name, double fallback);
const char *uir_node_string(const uir_module *module, const uir_node_info *node, const char *name,
                            const char *fallback);

/* DIMS attribute; NULL with *out_count 0 if absent. */
const uir_dim *uir_node_dims(const uir_module *module, const uir_node_info *node, const char *name,
                             uint32_t *out_count);
const int64_t *uir_node_ints(const uir_module *module, const uir_node_info *node, const char *name,
                             uint32_t *out_count);
uir_dtype uir_node_dtype(const uir_module *module, const uir_node_info *node, const char *name, uir_dtype fallback);
/* The symbol, if the dim is only that. */
bool uir_dim_is_symbol(const uir_dims *dims, uir_dim dim, uir_symbol *out_symbol);
/* The location of messages about the node: its ONNX name and op. */
uir_location uir_node_location(const uir_module *module, const uir_node_info *node);

/* ---- text, verifier, interpreter ---- */
/* "f32[N, 3]", "seq(i64[*])": for messages. */
void uir_type_print(const uir_module *module, const uir_type *type, uir_text *text);
/* Prints every value, type, attribute and subgraph. Constants of more than `inline_limit` elements (unless it is
 * SIZE_MAX) are printed as a hash, which only a reader with the same module's constants can resolve. */
uir_status uir_module_print(const uir_module *module, size_t inline_limit, uir_text *text);
/* The same, but a constant over the limit is written out if `elide` returns false. */
typedef struct uir_print_options {
    size_t inline_limit;
    bool (*elide)(void *user, const uir_tensor *constant); /* NULL: all over the limit are hashes */
    void *user;
} uir_print_options;
uir_status uir_module_print_with(const uir_module *module, const uir_print_options *options, uir_text *text);
/* Whether the name is one that the text makes for a value without a name: "v12". A value with such a name of its own
 * has it in quotes as well. */
bool uir_graph_is_number_name(const char *name, size_t length);
/* Parses a module. `constants`: a module whose constants, including tensors of attributes, the hashes refer to, or
 * NULL. */
uir_status uir_module_parse(const uir_allocator *allocator, uir_diagnostics *diagnostics, const char *text,
                            size_t length, const char *file, const uir_module *constants, uir_module **out_module);

/* Reports every error: arity, dtypes, shapes (each primitive's inference run again and compared), order, unbound dims,
 * uses of values that are not visible, attributes missing or of the wrong kind. */
uir_status uir_module_verify(const uir_module *module, uir_diagnostics *diagnostics);

/* ---- interpreter (ir/graph/interpret/interpret.h has the per-op functions) ---- */
typedef struct uir_interpreter uir_interpreter;
typedef struct uir_node_values {
    const uir_module *module;
    uir_node_id node;
    uir_datum *const *inputs, *const *outputs;
    const int64_t *symbol_values; /* by symbol id */
    const bool *symbol_bound;
    uint32_t symbol_count;
} uir_node_values;
typedef struct uir_interpreter_options {
    const volatile bool *cancel; /* polled between nodes and inside long loops; may be NULL */
    /* Called after each node; may be NULL. */
    void (*after_node)(void *user, const uir_module *module, uir_node_id node, double ms);
    /* Called after each node with its operands, results and bound symbols; may be NULL. A status other than OK ends the
     * run. */
    uir_status (*after_values)(void *user, const struct uir_node_values *values);
    /* Computes a group instead of interpreting its body, into results that are allocated and zeroed; may be NULL. Not
     * called if an extent of a result is unknown before. *out_ran false: the body is interpreted after all. */
    uir_status (*run_group)(void *user, const struct uir_node_values *values, bool *out_ran);
    void *user;
    uint64_t turn;       /* of a single node: how often its run has run it before */
    uint64_t byte_limit; /* limit of the bytes of live tensors; 0: none. Over it: UIR_STATUS_LIMIT */
    uint32_t threads; /* 0: 1. Big contractions and elementwise ops are split among them; results do not depend on it */
} uir_interpreter_options;

/* Runs the main graph of a module of primitives. Inputs are in graph order; the caller owns the outputs. Dims are bound
 * from the inputs' shapes and checked. A mismatch, an index out of range or any other run-time fault is an error that
 * names the node. */
uir_status uir_module_interpret(const uir_module *module, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                                const uir_interpreter_options *options, uir_datum *const *inputs, uint32_t input_count,
                                uir_datum **out_outputs, uint32_t output_count, uint64_t *out_peak_bytes);

/* The shape of output `output` of the main graph, a tensor of known rank, from the inputs' shapes; no data is read. -1:
 * an extent that depends on data. Size constraints of the main graph's nodes are checked, and refused as by a run. */
uir_status uir_module_find_shape(const uir_module *module, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                                 uir_datum *const *inputs, uint32_t input_count, uint32_t output, int64_t *out_dims);

/* Runs one node of a run that another engine leads: a primitive or a group; INVALID_ARGUMENT for other control flow.
 * `symbols` have the values; those that the operands' extents determine may be left out. */
typedef struct uir_bound_symbol {
    uir_symbol symbol;
    int64_t value;
} uir_bound_symbol;
uir_status uir_node_interpret_bound(const uir_module *module, const uir_allocator *allocator,
                                    uir_diagnostics *diagnostics, const uir_interpreter_options *options,
                                    uir_node_id node, const uir_bound_symbol *symbols, uint32_t symbol_count,
                                    uir_datum *const *inputs, uir_datum **out_outputs);

/* Runs one primitive on constant operands, for constant folding. The caller owns the outputs. */
uir_status uir_node_interpret(const uir_module *module, const uir_allocator *allocator, uir_diagnostics *diagnostics,
                              uir_node_id node, uir_datum *const *inputs, uir_datum **out_outputs);

/* ---- passes ---- */
typedef struct uir_pass_context {
    uir_diagnostics *diagnostics;
    uir_arena *scratch;                /* reset after each pass */
    uint32_t changes;                  /* the pass adds the number of its changes */
    const struct uir_machine *machine; /* the target of kernels; NULL: unknown */
    uint32_t layouts_left_out;         /* a bit per rule of passes/layouts.h */
    uint32_t precision;                /* of passes/precision.h, as are the counts, which may be NULL */
    struct uir_precision_counts *precision_counts;
} uir_pass_context;
typedef struct uir_pass {
    const char *name;
    uir_status (*run)(uir_module *module, uir_pass_context *context);
    const char *purpose; /* one line */
} uir_pass;
/* Runs passes in order, each followed by the verifier and, if `check_text`, by print -> parse -> equal. `dump` names a
 * pass after which `dump_text` (may be NULL) gets the module's text; "all" is every one. */
typedef struct uir_pass_options {
    bool check_text;
    size_t inline_limit; /* for the text: see uir_module_print; 0: 16 */
    const char *dump;
    void (*dump_text)(void *user, const char *pass, const char *text, size_t length);
    void *user;
    uir_progress progress; /* of all passes */
    const char *stage;     /* their name in `progress` */
    const struct uir_machine *machine;
    uint32_t layouts_left_out;
    uint32_t precision; /* as in the context */
    struct uir_precision_counts *precision_counts;
} uir_pass_options;
uir_status uir_passes_run(uir_module *module, const uir_pass *passes, size_t count, const uir_pass_options *options);

#endif
