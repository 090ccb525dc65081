/* Inside lowering: makes an iGraph of a scheduled loop AST. kernel.c handles loops and blocks, kernel_lanes.c
 * vectorised loops, kernel_statements.c the statements of a block, kernel_header.c declarations, instructions.c the
 * expressions of a block, and kernel_operands.c the spaces of operands; contractions use them too.
 *
 * A block is under loops that became loops of the iGraph (their variables are symbols of it) and under vectorised ones,
 * the lanes, which become the dims of slices. Values are in single assignment form while a block is made; temporaries
 * get their memory at its end.
 *
 * All dims are the iGraph's own: uir_kernel_substitute translates one of the function. While the body is made, a
 * slice's pointer is the index of the function's tensor, or, behind these, of a temporary's memory; declared pointers
 * are numbered last. */
#ifndef UIR_LOWER_KERNEL_H
#define UIR_LOWER_KERNEL_H

#include "ir/kernel/igraph_places.h"
#include "ir/kernel/igraph_build.h"
#include "lower/internal.h"

#define UIR_KERNEL_MAX_LANES 8

/* A vectorised loop around the block being made, outermost first. */
typedef struct uir_kernel_lane {
    uir_symbol symbol; /* its symbol in indices */
    uir_dim extent;
    uir_dim count; /* after the block's `where`: min(extent, ...) - first */
    uir_dim first; /* lower bound by the `where`; NONE: 0 */
} uir_kernel_lane;

typedef enum uir_kernel_value_kind { UIR_KERNEL_SLICE, UIR_KERNEL_NUMBER, UIR_KERNEL_RESULT } uir_kernel_value_kind;

typedef struct uir_kernel_value {
    uir_kernel_value_kind kind;
    uir_dtype dtype;
    uint32_t lanes;          /* bit per lane that it varies along */
    const uir_islice *slice; /* SLICE; RESULT: of its memory, once allocated */
    uint32_t block; /* RESULT: not 0: it is so many equal elements, which instructions repeat along the last lane */
    const struct uir_kernel_cover *cover; /* RESULT: not NULL: a box of a tensor's elements, in their order */
    double number;                        /* NUMBER */
    uint32_t pool;                        /* RESULT: its memory */
    uint32_t uses;
} uir_kernel_value;

/* The part of an instruction without its operands; as in uir_iinstruction. */
typedef struct uir_kernel_operation {
    uir_iop_code code;
    uir_dtype dtype, dtype_b, dtype_c;
    uir_iaxis axis;
    bool accumulate, saturate;
    uir_dim start; /* IOTA */
} uir_kernel_operation;

/* The smallest box of a tensor that contains all elements of a slice: per dim of the tensor. */
typedef struct uir_kernel_cover {
    uint32_t rank;
    uir_dim extents[UIR_IGRAPH_MAX_RANK]; /* maximum */
    uir_dim counts[UIR_IGRAPH_MAX_RANK];
} uir_kernel_cover;

/* One instruction of a block. */
typedef struct uir_kernel_instruction {
    uir_kernel_operation operation;
    uint32_t result; /* value; NONE: `target` is written */
    const uir_islice *target;
    uint32_t target_lanes; /* lanes that it varies along */
    uint32_t operands[4], operand_count;
    const uir_islice *seen; /* not NULL: the window of the first operand, or of the result, that is a cover */
    bool stream;            /* the kernel does not read the result */
    uir_dim scratch;        /* elements of scratch that the machine requires; NONE: none */
} uir_kernel_instruction;

/* Memory for temporaries: values with disjoint lifetimes share it. */
typedef struct uir_kernel_memory {
    const char *name;
    uir_dtype dtype;
    uir_dim extents[UIR_IGRAPH_MAX_RANK];
    uint32_t rank;
    int space;
    bool taken;
} uir_kernel_memory;

/* The iGraph pointer of a tensor of the loop AST: on the chip, dims of extent 1 are left out. */
typedef struct uir_kernel_pointer {
    const char *name;
    int space; /* of the device; -1: unknown name */
    bool on_chip;
    bool used;
    uint32_t rank;                      /* of the pointer */
    int32_t dims[UIR_LOOP_MAX_RANK];    /* per pointer dim: the tensor's, or -1: one element */
    uir_dim extents[UIR_LOOP_MAX_RANK]; /* per dim of the tensor */
    uir_layout layout;                  /* of the pointer's dims */
    bool constant;                      /* packed ahead: CONST instead of IN */
    uir_dim span;                       /* elements with the padding of its layout; NONE: those of its extents */
} uir_kernel_pointer;

typedef struct uir_kernel {
    const uir_loop_function *f;
    const uir_machine *machine;
    uir_igraph *graph; /* being made */
    uir_ibuilder builder;
    uir_dims *dims; /* of the graph */
    uir_arena *arena;
    uir_diagnostics *diagnostics;
    uir_status status; /* the first failure; later calls do nothing */
    uint32_t names;    /* made so far */
    uir_dim *replaced; /* by symbol of f: its dim in the graph; NONE: not in scope */
    uint32_t replaced_count;
    uint8_t *in_scope; /* by symbol of the graph */
    uint32_t in_scope_count;
    uir_kernel_pointer *pointers; /* per tensor */
    uir_vector(uir_kernel_memory) memories;
    uint32_t first_memory;           /* of those that may be reused */
    uir_vector(uir_condition) given; /* conditions that hold here; of the graph */
    uir_kernel_lane lanes[UIR_KERNEL_MAX_LANES];
    uint32_t lane_count;
    int tile_space; /* of the block's temporaries along all lanes: finished sums' registers; -1: scratch */
    uir_dim tile_extents[UIR_KERNEL_MAX_LANES]; /* of these sums, by lane: their temporaries' too */
    uint32_t row_lanes;    /* not 0: slices are matrices, the first lanes their rows, the others their columns */
    uir_doubling doubling; /* which buffers moved in a loop are doubled */
    uint32_t unit_kind;    /* of the phase being made */
    bool *fresh;           /* per statement: an update whose init was left out, so that it begins with the identity */
    const char *block;
    /* the block being made */
    uir_vector(uir_kernel_value) values;
    uir_vector(uir_kernel_instruction) instructions;
    uint32_t *memo;             /* per expression of f: its value + 1 */
    const uint32_t *parameters; /* values of the monoid's parameters; NULL outside monoids */
} uir_kernel;

/* ---- kernel.c ---- */
/* Builds the kernel of a scheduled function, not yet verified. */
uir_status uir_lower_kernel_build(const uir_loop_function *f, const uir_machine *machine, uir_doubling doubling,
                                  const uir_allocator *allocator, uir_diagnostics *diagnostics,
                                  uir_igraph **out_igraph);
/* Records that the function has no kernel, with the reason. */
void uir_kernel_refuse(uir_kernel *k, const char *format, ...) UIR_PRINTF(2, 3);
void uir_kernel_fail(uir_kernel *k, uir_status status);
/* Translates a dim of the function, over symbols in scope, to the graph. */
uir_dim uir_kernel_substitute(uir_kernel *k, uir_dim dim);
/* A new symbol of the graph with a name of its own, in scope; its definition is `extent`. */
uir_symbol uir_kernel_new_symbol(uir_kernel *k, const char *prefix, uir_isymbol_kind kind, uir_dim extent);
/* Sets the dim that replaces a symbol of the function. */
void uir_kernel_replace(uir_kernel *k, uir_symbol symbol, uir_dim by);
bool uir_kernel_is_one(const uir_kernel *k, uir_dim extent);
/* Appends an instruction on slices to the open block. */
void uir_kernel_put(uir_kernel *k, const uir_iinstruction *instruction);

/* ---- kernel_lanes.c ---- */
/* dim = base + sum of coefficients[lane] * lane; false if it has no such form. */
bool uir_kernel_split_lanes(uir_kernel *k, uir_dim dim, uir_dim *out_base, int64_t *out_coefficients);
/* Whether a lane's symbol occurs in a dim of the graph. */
bool uir_kernel_mentions_lane(const uir_kernel *k, uir_dim dim);
/* Bounds the lane that the condition mentions by it; refuses a condition that is not a bound of one lane. */
void uir_kernel_clip(uir_kernel *k, uir_condition c);
/* Makes lanes that begin later begin at 0: their first value is added in every dim that mentions them. */
void uir_kernel_shift_lanes(uir_kernel *k);

/* ---- kernel_statements.c ---- */
/* The primitive that a monoid is, if the machine reduces by it; else NONE. */
uir_op uir_kernel_simple_monoid(const uir_kernel *k, const uir_loop_monoid *m);
/* Appends one statement of a block. `fresh`: an update begins with the identity. */
void uir_kernel_emit_statement(uir_kernel *k, const uir_loop_statement *block, const uir_loop_statement *s, bool fresh);

/* ---- kernel_header.c ---- */
/* Describes the pointer of a tensor. */
void uir_kernel_describe_pointer(uir_kernel *k, uint32_t tensor);
/* Sets the pointer's layout from the tensor's, once the pointer's dims are set. */
void uir_kernel_take_layout(uir_kernel *k, uint32_t tensor);
/* Declares sizes, tiles and the tiling function, which all other declarations use. */
void uir_kernel_declare_sizes(uir_kernel *k);
/* Declares pointers and requires on capacity, once everything that the phases use is known. */
void uir_kernel_declare_pointers(uir_kernel *k);
/* Refuses tensors with elements of less than a byte. */
void uir_kernel_check_dtypes(uir_kernel *k);

/* ---- instructions.c ---- */
void uir_kernel_begin_block(uir_kernel *k); /* clears values and instructions */
/* The slice of a tensor, and the lanes it varies along. With has_fill, elements outside are `fill`. */
const uir_islice *uir_kernel_slice(uir_kernel *k, const uir_loop_access *access, bool has_fill, double fill,
                                   uint32_t *out_lanes);
uint32_t uir_kernel_slice_value(uir_kernel *k, uir_dtype dtype, uint32_t lanes, const uir_islice *slice);
/* The value of an expression of f. */
uint32_t uir_kernel_expression(uir_kernel *k, uint32_t expression);
/* The value of a primitive applied to values. */
uint32_t uir_kernel_call(uir_kernel *k, uir_op op, uir_dtype result, const uint32_t *operands, uint32_t count);
uint32_t uir_kernel_cast(uir_kernel *k, uint32_t value, uir_dtype to);
/* Adds an instruction; its result varies along `lanes`. */
uint32_t uir_kernel_instruct(uir_kernel *k, const uir_kernel_operation *operation, uir_dtype dtype, uint32_t lanes,
                             const uint32_t *operands, uint32_t count);
/* Adds an instruction that writes a given slice. */
void uir_kernel_instruct_to(uir_kernel *k, const uir_kernel_operation *operation, const uir_islice *target,
                            uint32_t lanes, const uint32_t *operands, uint32_t count);
uint32_t uir_kernel_add_value(uir_kernel *k, uir_kernel_value value);
void uir_kernel_add_instruction(uir_kernel *k, const uir_kernel_instruction *instruction);
/* The value as memory that varies along all of `lanes`, for instructions that do not broadcast. */
uint32_t uir_kernel_materialise(uir_kernel *k, uint32_t value, uint32_t lanes);
/* target = value: the instruction that computes the value writes the target if it can. */
void uir_kernel_store(uir_kernel *k, const uir_islice *target, uint32_t target_lanes, uir_dtype dtype, uint32_t value);

/* ---- kernel_operands.c ---- */
/* Moves operands to the spaces that the machine requires, allocates temporaries and appends the instructions to the
 * open block. */
void uir_kernel_end_block(uir_kernel *k);

#endif
