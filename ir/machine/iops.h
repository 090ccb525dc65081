/* The instruction set and enums that the iGraph and its bytecode share.
 *
 * In: ir/machine/iops.def. Out: names and numbers; no code of the compiler. A runtime that only runs bytecode needs no
 * other part of the iGraph. */
#ifndef UIR_IR_IOPS_H
#define UIR_IR_IOPS_H

#include "base/dtype.h"
#include "base/status.h"

#include <string.h>

#define UIR_IGRAPH_MAX_RANK  8
#define UIR_IGRAPH_MAX_MODES 4
#define UIR_REDUCE_LANES     32

typedef enum uir_iop_family {
    UIR_IOP_FAMILY_MOVE,
    UIR_IOP_FAMILY_FILL,
    UIR_IOP_FAMILY_IOTA,
    UIR_IOP_FAMILY_UNARY,
    UIR_IOP_FAMILY_BINARY,
    UIR_IOP_FAMILY_COMPARE,
    UIR_IOP_FAMILY_TERNARY,
    UIR_IOP_FAMILY_CAST,
    UIR_IOP_FAMILY_BROADCAST,
    UIR_IOP_FAMILY_REDUCE,
    UIR_IOP_FAMILY_SCAN,
    UIR_IOP_FAMILY_MMA,
    UIR_IOP_FAMILY_SYNC
} uir_iop_family;

typedef enum uir_iop_code {
#define UIR_IOP(constant, name, family, results, operands, classes, arithmetic) UIR_IOP_##constant,
#include "ir/machine/iops.def"
    UIR_IOP_COUNT
} uir_iop_code;

typedef struct uir_iop_row {
    const char *constant, *name;
    uir_iop_family family;
    uint32_t results, operands;
    const char *classes;
    bool arithmetic;
} uir_iop_row;
static inline const uir_iop_row *uir_iop_get_row(uir_iop_code code) {
    static const uir_iop_row rows[UIR_IOP_COUNT] = {
#define UIR_IOP(constant, name, family, results, operands, classes, arithmetic)                                        \
    {#constant, name, UIR_IOP_FAMILY_##family, results, operands, classes, arithmetic},
#include "ir/machine/iops.def"
    };
    return &rows[code];
}

/* Whether the instruction is defined for the dtype. */
static inline bool uir_iop_is_defined_for(uir_iop_code code, uir_dtype dtype) {
    char letter = uir_dtype_is_float(dtype)                            ? 'F'
                  : uir_dtype_is_integer(dtype)                        ? 'I'
                  : uir_dtype_get_class(dtype) == UIR_DTYPE_CLASS_BOOL ? 'B'
                                                                       : '?';
    return strchr(uir_iop_get_row(code)->classes, letter) != NULL;
}

/* The dtype of operand k of an elementwise instruction of `dtype`: the first operand of a select is its bool
 * condition. */
static inline uir_dtype uir_iop_operand_dtype(uir_iop_code code, uir_dtype dtype, uint32_t k) {
    return code == UIR_IOP_SELECT && k == 0 ? UIR_DTYPE_BOOL : dtype;
}

typedef enum uir_iop_identity {
    UIR_IOP_IDENTITY_ZERO,
    UIR_IOP_IDENTITY_ONE,
    UIR_IOP_IDENTITY_LEAST,
    UIR_IOP_IDENTITY_GREATEST
} uir_iop_identity;

/* The operation that a reduction or scan repeats, and its initial value. */
typedef struct uir_iop_monoid {
    uir_iop_code operation;
    uir_iop_identity identity;
} uir_iop_monoid;
static inline uir_iop_monoid uir_iop_get_monoid(uir_iop_code code) {
    static const uir_iop_monoid rows[UIR_IOP_COUNT] = {
#define UIR_IOP_MONOID(constant, operation, identity)                                                                  \
    [UIR_IOP_##constant] = {UIR_IOP_##operation, UIR_IOP_IDENTITY_##identity},
#include "ir/machine/iops.def"
    };
    return rows[code];
}

/* An identity as a number of a float dtype, or of an integer dtype (a u64's bits). */
static inline double uir_iop_identity_real(uir_iop_identity identity) {
    static const double values[] = {0, 1, -__builtin_inf(), __builtin_inf()};
    return values[identity];
}
static inline int64_t uir_iop_identity_integer(uir_iop_identity identity, uir_dtype dtype) {
    const int64_t values[] = {0, 1, uir_dtype_integer_min(dtype), (int64_t)uir_dtype_integer_max(dtype)};
    return values[identity];
}

typedef enum uir_isymbol_kind {
    UIR_ISYMBOL_DIM,      /* run-time size: dim M in 1..4096 mult 16 */
    UIR_ISYMBOL_TILE,     /* set by the tiling function */
    UIR_ISYMBOL_CONSTANT, /* dim K = 768 */
    UIR_ISYMBOL_DEVICE,   /* a space's name: its capacity; or "cores" ... (facts min = max = value) */
    UIR_ISYMBOL_LET,      /* names an expression; header or body */
    UIR_ISYMBOL_PARALLEL, /* index of a parallel axis */
    UIR_ISYMBOL_LOOP,     /* index of a loop */
    UIR_ISYMBOL_INDEX,    /* read from data: index i = %t[...] in 0..D-1 clamp */
    UIR_ISYMBOL_AXIS      /* an axis of a window slice */
} uir_isymbol_kind;

typedef enum uir_ipointer_role {
    UIR_IPOINTER_IN,
    UIR_IPOINTER_OUT,
    UIR_IPOINTER_CONST,
    UIR_IPOINTER_WORK,
    UIR_IPOINTER_LOCAL
} uir_ipointer_role;

typedef enum uir_iatom_kind { UIR_IATOM_RELATION, UIR_IATOM_FIRST, UIR_IATOM_LAST } uir_iatom_kind;

typedef enum uir_iaxis { UIR_IAXIS_NONE, UIR_IAXIS_ROW, UIR_IAXIS_COL } uir_iaxis;
#define UIR_IOP_MAX_SLICES 4 /* results first, then operands */

typedef enum uir_index_mode { UIR_INDEX_CLAMP, UIR_INDEX_WRAP, UIR_INDEX_SKIP } uir_index_mode;

typedef enum uir_iitem_kind {
    UIR_IITEM_LOOP,
    UIR_IITEM_IF,
    UIR_IITEM_LET,
    UIR_IITEM_INDEX,
    UIR_IITEM_INSTRUCTION,
    UIR_IITEM_RUN
} uir_iitem_kind;

/* ---- arguments of a run, for the interpreter, the VM and compiled kernels ---- */
/* Arguments of a kernel. `pointers` are the storage of IN, OUT, CONST, WORK pointers in declaration order: element_span
 * elements each, in the pointer's layout. */
typedef struct uir_kernel_arguments {
    const int64_t *dim_values;  /* DIM symbols in declaration order */
    const int64_t *tile_values; /* TILE symbols in declaration order */
    void *const *pointers;
} uir_kernel_arguments;

#endif
