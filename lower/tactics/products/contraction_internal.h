/* Finds the parts of a contraction in a naive function: its operands, accumulator, axes and epilogue. */
#ifndef UIR_LOWER_CONTRACTION_INTERNAL_H
#define UIR_LOWER_CONTRACTION_INTERNAL_H

#include "lower/tactics/products/contraction.h"
#include "lower/schedule/contraction_classify.h"
#include "lower/internal.h"

enum { UIR_CONTRACTION_MAX_BLOCKS = 64 };

/* uir_loop_class of an axis that has one. */
typedef enum uir_contraction_class {
    UIR_CONTRACTION_BATCH = UIR_LOOP_CLASS_BATCH - 1,
    UIR_CONTRACTION_M = UIR_LOOP_CLASS_M - 1,
    UIR_CONTRACTION_N = UIR_LOOP_CLASS_N - 1,
    UIR_CONTRACTION_K = UIR_LOOP_CLASS_K - 1
} uir_contraction_class;

typedef struct uir_contraction_axis {
    uir_contraction_class class;
    uir_dim extent;
    bool shared;   /* in both operands */
    int32_t place; /* among the dims of the last output; -1: not in it */
} uir_contraction_axis;

/* A block, with the axis of each of its iteration variables. */
typedef struct uir_contraction_block {
    uint32_t id;
    uint32_t axes[UIR_LOOP_MAX_ITERS];
} uir_contraction_block;

typedef struct uir_contraction {
    uir_loop_function *f;
    uir_arena *arena;
    uir_diagnostics *diagnostics;
    uint32_t number;                               /* of the contraction among those of the function */
    uint32_t init, update;                         /* blocks */
    uint32_t sum;                                  /* the update statement */
    uint32_t tensor;                               /* the accumulator */
    uint32_t factors[2];                           /* expressions: operand A (rows m), operand B (columns n) */
    uir_contraction_axis axes[UIR_LOOP_MAX_ITERS]; /* the update's iteration variables */
    uint32_t axis_count;
    uint32_t tensor_axes[UIR_LOOP_MAX_RANK]; /* of the accumulator */
    uir_contraction_block after[UIR_CONTRACTION_MAX_BLOCKS];
    uint32_t after_count;
} uir_contraction;

/* Finds contraction `number` and inlines its prologue; changes `f`. The epilogue of several contractions belongs to the
 * last of them. The caller keeps the blocks that are `left_out` (by statement; may be NULL). UNSUPPORTED with a message
 * if a part is not supported. */
uir_status uir_contraction_find(uir_loop_function *f, uint32_t number, const bool *left_out, uir_arena *arena,
                                uir_diagnostics *diagnostics, uir_contraction *out);
/* Exchanges operands A and B, rows and columns. */
void uir_contraction_exchange(uir_contraction *c);
/* Returns UNSUPPORTED, with a message that gives the reason. */
uir_status uir_contraction_refuse(const uir_contraction *c, const char *why);
bool uir_contraction_is_constant(const uir_contraction *c, uint32_t tensor);

#endif
