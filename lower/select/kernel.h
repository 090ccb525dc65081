/* Inside lowering: from a scheduled loop AST to an iGraph. kernel.c walks loops and blocks, kernel_header.c declares
 * what stands before them, instructions.c turns the expressions of a block into instructions; contractions use both.
 *
 * A block stands under loops that became loops of the iGraph (their variables are symbols of it) and under vectorised
 * ones, the lanes, which become the dims of slices. Values are kept in single assignment while a block is made;
 * temporaries get their memory when it is ended.
 *
 * All dims are the iGraph's own: one of the function is brought over by uir_kernel_substitute. While the body is made,
 * a slice's pointer is the function's tensor, or behind them a temporary's memory; the declared ones are numbered last.
 */
#ifndef UIR_LOWER_KERNEL_H
#define UIR_LOWER_KERNEL_H

#include "ir/kernel/igraph_places.h"
#include "ir/kernel/igraph_build.h"
#include "lower/internal.h"

#define UIR_KERNEL_MAX_LANES 8

/* A vectorised loop around the block being made, outermost first. */
typedef struct uir_kernel_lane {
    uir_symbol symbol; /* what stands for it in indices */
    uir_dim extent;
    uir_dim count; /* after the block's `where`: min(extent, ...) - first */
    uir_dim first; /* what the `where` begins with; NONE: 0 */
} uir_kernel_lane;

typedef enum uir_kernel_value_kind { UIR_KERNEL_SLICE, UIR_KERNEL_NUMBER, UIR_KERNEL_RESULT } uir_kernel_value_kind;

typedef struct uir_kernel_value {
    uir_kernel_value_kind kind;
    uir_dtype dtype;
    uint32_t lanes;          /* bit per lane that it varies along */
    const uir_islice *slice; /* SLICE; RESULT: of its memory, once it has some */
    uint32_t block; /* RESULT: not 0: of so many equal elements, which instructions repeat along the last lane */
    const struct uir_kernel_cover *cover; /* RESULT: not NULL: elements of a tensor as they lie there */
    double number;                        /* NUMBER */
    uint32_t pool;                        /* RESULT: its memory */
    uint32_t uses;
} uir_kernel_value;

/* What an instruction is, apart from what it works on; as in uir_iinstruction. */
typedef struct uir_kernel_operation {
    uir_iop_code code;
    uir_dtype dtype, dtype_b, dtype_c;
    uir_iaxis axis;
    bool accumulate, saturate;
    uir_dim start; /* IOTA */
} uir_kernel_operation;

/* The least box of a tensor that has all elements of a slice: per dim of the tensor. */
typedef struct uir_kernel_cover {
    uint32_t rank;
    uir_dim extents[UIR_IGRAPH_MAX_RANK]; /* at most */
    uir_dim counts[UIR_IGRAPH_MAX_RANK];
} uir_kernel_cover;

/* One instruction of a block. */
typedef struct uir_kernel_instruction {
    uir_kernel_operation operation;
    uint32_t result; /* value; NONE: `target` is written */
    const uir_islice *target;
    uint32_t target_lanes; /* that it varies along */
    uint32_t operands[4], operand_count;
    const uir_islice *seen; /* not NULL: what the one of the first operand and the result that is a cover is seen by */
    bool stream;            /* the kernel does not read what is written */
    uir_dim scratch;        /* elements that the machine wants for itself; NONE: it wants none */
} uir_kernel_instruction;

/* Memory for temporaries: shared by values that are not alive together. */
typedef struct uir_kernel_memory {
    const char *name;
    uir_dtype dtype;
    uir_dim extents[UIR_IGRAPH_MAX_RANK];
    uint32_t rank;
    int space;
    bool taken;
} uir_kernel_memory;

/* What a tensor of the loop AST is in the iGraph: dims of extent 1 of what is on chip are left out. */
typedef struct uir_kernel_pointer {
    const char *name;
    int space; /* of the device; -1: it has none of that name */
    bool on_chip;
    bool used;
    uint32_t rank;                      /* of the pointer */
    int32_t dims[UIR_LOOP_MAX_RANK];    /* per pointer dim: the tensor's, or -1: one element */
    uir_dim extents[UIR_LOOP_MAX_RANK]; /* per dim of the tensor */
    uir_layout layout;                  /* of the pointer's dims */
    bool constant;                      /* packed ahead: CONST instead of IN */
    uir_dim span;                       /* elements with the gaps of its layout; NONE: those of its extents */
} uir_kernel_pointer;

typedef struct uir_kernel {
    const uir_loop_function *f;
    const uir_device *device;
    uir_igraph *graph; /* being made */
    uir_ibuilder builder;
    uir_dims *dims; /* of the graph */
    uir_arena *arena;
    uir_diagnostics *diagnostics;
    uir_status status; /* the first failure; everything after it does nothing */
    uint32_t names;    /* made so far */
    uir_dim *replaced; /* by symbol of f: what stands for it in the graph; NONE: it is not known where the walk is */
    uint32_t replaced_count;
    uint8_t *in_scope; /* by symbol of the graph */
    uint32_t in_scope_count;
    uir_kernel_pointer *pointers; /* per tensor */
    uir_vector(uir_kernel_memory) memories;
    uint32_t first_memory;           /* of those that may be taken again */
    uir_vector(uir_condition) given; /* hold where the walk is; of the graph */
    uir_kernel_lane lanes[UIR_KERNEL_MAX_LANES];
    uint32_t lane_count;
    uint32_t row_lanes;    /* not 0: slices are matrices, the first lanes their rows, the others their columns */
    uir_doubling doubling; /* which of what is moved in a loop gets two instances */
    uint32_t unit_kind;    /* of the phase being made */
    bool *fresh;           /* per statement: an update whose init was left out: it does not go on from an old state */
    const char *block;
    /* the block being made */
    uir_vector(uir_kernel_value) values;
    uir_vector(uir_kernel_instruction) instructions;
    uint32_t *memo;             /* per expression of f: its value + 1 */
    const uint32_t *parameters; /* values of the monoid's parameters; NULL outside monoids */
} uir_kernel;

/* ---- kernel.c ---- */
/* The kernel of a scheduled function, not yet verified. */
uir_status uir_lower_kernel_build(const uir_loop_function *f, const uir_device *device, uir_doubling doubling,
                                  const uir_allocator *allocator, uir_diagnostics *diagnostics,
                                  uir_igraph **out_igraph);
/* Records that the function has no kernel, and why. */
void uir_kernel_refuse(uir_kernel *k, const char *format, ...) UIR_PRINTF(2, 3);
void uir_kernel_fail(uir_kernel *k, uir_status status);
/* A dim of the function, of what is known where the walk is, as one of the graph. */
uir_dim uir_kernel_substitute(uir_kernel *k, uir_dim dim);
/* A new symbol of the graph with a name of its own, in scope; its definition is `extent`. */
uir_symbol uir_kernel_new_symbol(uir_kernel *k, const char *prefix, uir_isymbol_kind kind, uir_dim extent);
/* What a symbol of the function stands for from now on. */
void uir_kernel_replace(uir_kernel *k, uir_symbol symbol, uir_dim by);
/* dim = base + sum of coefficients[lane] * lane; false when it is not so. */
bool uir_kernel_split_lanes(uir_kernel *k, uir_dim dim, uir_dim *out_base, int64_t *out_coefficients);
bool uir_kernel_is_one(const uir_kernel *k, uir_dim extent);
/* The instruction on slices, put where the walk is. */
void uir_kernel_put(uir_kernel *k, const uir_iinstruction *instruction);

/* ---- kernel_header.c ---- */
/* What a tensor is as a pointer. */
void uir_kernel_describe_pointer(uir_kernel *k, uint32_t tensor);
/* The pointer's layout, as the tensor says; once the pointer's dims are set. */
void uir_kernel_take_layout(uir_kernel *k, uint32_t tensor);
/* Sizes, tiles and their tiling function, which all else is said with. */
void uir_kernel_declare_sizes(uir_kernel *k);
/* Pointers and what they take, once all that the phases use is known. */
void uir_kernel_declare_pointers(uir_kernel *k);
/* Refuses tensors whose elements have no address of their own. */
void uir_kernel_check_dtypes(uir_kernel *k);

/* ---- instructions.c ---- */
void uir_kernel_begin_block(uir_kernel *k); /* forgets values and instructions */
/* The slice of a tensor; lanes it varies along. With has_fill, what lies outside is `fill`. */
const uir_islice *uir_kernel_slice(uir_kernel *k, const uir_loop_access *access, bool has_fill, double fill,
                                   uint32_t *out_lanes);
uint32_t uir_kernel_slice_value(uir_kernel *k, uir_dtype dtype, uint32_t lanes, const uir_islice *slice);
/* The value of an expression of f. */
uint32_t uir_kernel_expression(uir_kernel *k, uint32_t expression);
/* The value of a primitive of values. */
uint32_t uir_kernel_call(uir_kernel *k, uir_op op, uir_dtype result, const uint32_t *operands, uint32_t count);
uint32_t uir_kernel_cast(uir_kernel *k, uint32_t value, uir_dtype to);
/* An instruction; its result varies along `lanes`. */
uint32_t uir_kernel_instruct(uir_kernel *k, const uir_kernel_operation *operation, uir_dtype dtype, uint32_t lanes,
                             const uint32_t *operands, uint32_t count);
/* An instruction that writes a given slice. */
void uir_kernel_instruct_to(uir_kernel *k, const uir_kernel_operation *operation, const uir_islice *target,
                            uint32_t lanes, const uint32_t *operands, uint32_t count);
uint32_t uir_kernel_add_value(uir_kernel *k, uir_kernel_value value);
void uir_kernel_add_instruction(uir_kernel *k, const uir_kernel_instruction *instruction);
/* As memory that varies along all of `lanes`, for instructions that do not broadcast. */
uint32_t uir_kernel_materialise(uir_kernel *k, uint32_t value, uint32_t lanes);
/* target = value: the instruction that makes the value writes the target where it can. */
void uir_kernel_store(uir_kernel *k, const uir_islice *target, uint32_t target_lanes, uir_dtype dtype, uint32_t value);

/* ---- kernel_operands.c ---- */
/* Brings operands to where the machine has them, gives temporaries their memory and puts the instructions where the
 * walk is. */
void uir_kernel_end_block(uir_kernel *k);

#endif
