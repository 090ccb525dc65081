/* An ONNX model split at its nodes, and put together again with some of them.
 *
 * In: a model's bytes. Out: what each node of the main graph reads and makes; the bytes of models in which only some
 * nodes are left. What the others made is then an input, or a constant, whose value the caller knows from a run. Nodes,
 * initializers and types are copied as they lie in the file, so that nothing of them is lost or changed. Nodes with
 * subgraphs and calls of local functions stay whole. */
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
    uir_onnx_bytes field;       /* the node as it lies in the file, with its key */
    const char *name, *op;      /* zero terminated; a node without a name is called after its first result */
    uir_vector(uint32_t) reads; /* values, those that subgraphs read too */
    uir_vector(uint32_t) makes; /* values */
} uir_onnx_part;

/* A value of the main graph. */
typedef struct uir_onnx_part_value {
    bool known;                        /* the main graph has it */
    uint32_t maker;                    /* part plus 1; 0: none */
    uir_onnx_bytes initializer, input; /* of the graph: fields with their keys */
    bool external;                     /* the initializer's elements lie in another file */
    bool is_output;                    /* of the graph */
    const uir_datum *datum;            /* what it is in a run, set by the caller; NULL: unknown */
    uir_onnx_bytes type;               /* a TypeProto with names for free dims, set by the caller */
} uir_onnx_part_value;

typedef struct uir_onnx_extractor {
    uir_arena arena;
    uir_strings names;
    uir_vector(uir_onnx_part) parts;
    uir_vector(uir_onnx_part_value) values; /* by the name's id; [0] unused */
    uir_vector(uint32_t) inputs, outputs;   /* of the graph: values */
    uir_vector(uint32_t) recorded;          /* what uir_onnx_extractor_print_all makes outputs */
    uir_vector(uir_onnx_bytes) head;        /* fields of the model besides its graph and version */
    int64_t ir_version;
} uir_onnx_extractor;

/* Borrows `data` until the parts are gone; `out_parts`, which must not move, is to be deinitialised also after a
 * failure. BAD_FILE for what is no model. */
uir_status uir_onnx_extractor_init(const void *data, uint64_t size, const char *file, const uir_allocator *allocator,
                                   uir_diagnostics *diagnostics, uir_onnx_extractor *out_parts);
void uir_onnx_extractor_deinit(uir_onnx_extractor *parts);
const char *uir_onnx_extractor_name(const uir_onnx_extractor *parts, uint32_t value);

/* Appends the whole model, whose outputs are the values of parts->recorded in their order: all that a node makes, and
 * initializers that lie in other files. */
uir_status uir_onnx_extractor_print_all(const uir_onnx_extractor *parts, uir_text *text);

/* Appends a TypeProto: a dim that is no number has its text as its name. */
uir_status uir_onnx_print_type(const uir_module *module, const uir_type *type, uir_text *text);

typedef struct uir_onnx_cut {
    const bool *kept;                     /* by part */
    const bool *left_out;                 /* by value: not to be outputs; NULL: none */
    bool fixed;                           /* dims of inputs are those of their values; else they have names */
    uir_vector(uint32_t) inputs, outputs; /* set by printing: values, in the arena of the parts */
} uir_onnx_cut;
/* Appends the model of the kept parts. Its outputs are what these make and the graph gives or others read. Integers of
 * rank 0 and 1 that others made are constants, as shapes and axes are wanted; other values become inputs. */
uir_status uir_onnx_extractor_print(uir_onnx_extractor *parts, uir_onnx_cut *cut, uir_text *text);

#endif
