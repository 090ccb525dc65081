/* Splits an ONNX model at its nodes, and writes models with some of them.
 *
 * In: a model's bytes. Out: the operands and results of each node of the main graph; the bytes of models of selected
 * nodes. Results of the other nodes become inputs, or constants, whose values the caller knows from a run. Nodes,
 * initializers and types are copied byte for byte. Nodes with subgraphs and calls of local functions stay whole. */
#ifndef UIR_FRONTEND_EXTRACTOR_H
#define UIR_FRONTEND_EXTRACTOR_H

#include "base/intern.h"
#include "base/text.h"
#include "ir/graph/graph.h"

typedef struct uir_onnx_bytes {
    const uint8_t *data; /* NULL: none */
    uint64_t length;
} uir_onnx_bytes;

typedef struct uir_onnx_part {
    uir_onnx_bytes field;       /* the node's bytes in the file, with its key */
    const char *name, *op;      /* zero terminated; a node without a name has that of its first result */
    uir_vector(uint32_t) reads; /* values, including those that subgraphs read */
    uir_vector(uint32_t) makes; /* values */
} uir_onnx_part;

/* A value of the main graph. */
typedef struct uir_onnx_part_value {
    bool known;                        /* it belongs to the main graph */
    uint32_t maker;                    /* number of the part that makes it, plus 1; 0: none */
    uir_onnx_bytes initializer, input; /* of the graph: fields with their keys */
    bool external;                     /* the initializer's elements are in another file */
    bool is_output;                    /* of the graph */
    const uir_datum *datum;            /* its value in a run, set by the caller; NULL: unknown */
    uir_onnx_bytes type;               /* a TypeProto with names for free dims, set by the caller */
} uir_onnx_part_value;

typedef struct uir_onnx_extractor {
    uir_arena arena;
    uir_strings names;
    uir_vector(uir_onnx_part) parts;
    uir_vector(uir_onnx_part_value) values; /* by the name's id; [0] unused */
    uir_vector(uint32_t) inputs, outputs;   /* of the graph: values */
    uir_vector(uint32_t) recorded;          /* outputs of uir_onnx_extractor_print_all */
    uir_vector(uir_onnx_bytes) head;        /* fields of the model besides its graph and version */
    int64_t ir_version;
} uir_onnx_extractor;

/* Borrows `data` until the parts are deinitialised, which is needed after a failure too; `out_parts` must not move.
 * BAD_FILE if it is not a model. */
uir_status uir_onnx_extractor_init(const void *data, uint64_t size, const char *file, const uir_allocator *allocator,
                                   uir_diagnostics *diagnostics, uir_onnx_extractor *out_parts);
void uir_onnx_extractor_deinit(uir_onnx_extractor *parts);
const char *uir_onnx_extractor_name(const uir_onnx_extractor *parts, uint32_t value);

/* Appends the whole model with the values of parts->recorded as outputs, in their order: all results of nodes, and
 * initializers in other files. */
uir_status uir_onnx_extractor_print_all(const uir_onnx_extractor *parts, uir_text *text);

/* Appends a TypeProto: a dim that is not a number has its text as its name. */
uir_status uir_onnx_print_type(const uir_module *module, const uir_type *type, uir_text *text);

typedef struct uir_onnx_cut {
    const bool *kept;                     /* by part */
    const bool *left_out;                 /* by value: not an output; NULL: none */
    bool fixed;                           /* dims of inputs are those of their values; else named */
    uir_vector(uint32_t) inputs, outputs; /* set by printing: values, in the parts' arena */
} uir_onnx_cut;
/* Appends the model of the kept parts. Its outputs are those of their results that are outputs of the graph or operands
 * of other parts. Small integer results of others, of rank 0 or 1, become constants, as shapes and axes must be; so do
 * initializers in other files. Other values become inputs. BAD_DATA if a value is unknown. */
uir_status uir_onnx_extractor_print(uir_onnx_extractor *parts, uir_onnx_cut *cut, uir_text *text);

#endif
