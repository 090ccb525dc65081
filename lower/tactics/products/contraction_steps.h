/* The steps, by schedule primitives, that apply a contraction's plan; for tactics that combine several contractions.
 *
 * In: plans, and the schedule of their function. Out: loops that are tiled, placed, marked. `which`: 0 for operand A, 1
 * for operand B. Statuses are those of the schedule's primitives, or UNSUPPORTED with a message. */
#ifndef UIR_LOWER_CONTRACTION_STEPS_H
#define UIR_LOWER_CONTRACTION_STEPS_H

#include "lower/tactics/products/contraction_plan.h"

enum { UIR_CONTRACTION_MAX_LOOPS = 2 * UIR_LOOP_MAX_ITERS };

typedef struct uir_contraction_steps {
    uir_contraction_plan *p;
    const uir_contraction_plan *leader; /* of all products; the product itself if it is the only one */
    uir_schedule *s;
    uir_loop_function *f;
    uint32_t unit;      /* the loop of a unit's work; NONE: none */
    uint32_t inside;    /* the loop around a step along k; else `unit` */
    uint32_t row;       /* the loop over the rows of a finished tile; else `unit` */
    uint32_t copies[2]; /* blocks; NONE: the operand is read in place, or another product copies it */
    uint32_t places[2]; /* their loops; NONE: `inside` */
    uint32_t outer[UIR_CONTRACTION_MAX_LOOPS], outer_count, parallel;
    uint32_t deep[UIR_CONTRACTION_MAX_LOOPS], deep_count; /* loops around a step along k */
} uir_contraction_steps;

/* One or two dims of a tensor, and the sides (M, N or K) of the contraction along them. */
typedef struct uir_contraction_tile_dims {
    uint32_t dims[2], sides[2], count;
} uir_contraction_tile_dims;

void uir_contraction_steps_init(uir_contraction_steps *t, uir_contraction_plan *p, const uir_contraction_plan *leader,
                                uir_schedule *s);

/* Loop reordering: puts the loops in this order, from the outermost. */
uir_status uir_contraction_order(uir_contraction_steps *t, const uint32_t *loops, uint32_t count);
/* The loops around a block inside `under` (NONE: all), from the outermost; returns their number. */
uint32_t uir_contraction_loops_below(const uir_contraction_steps *t, uint32_t block, uint32_t under, uint32_t *out);
/* Among these loops, the one that determines the block's iteration variable; NONE: none does. */
uint32_t uir_contraction_loop_below(const uir_contraction_steps *t, uint32_t block, uint32_t under, uint32_t iter);
/* Vectorises these loops. */
uir_status uir_contraction_vectorise(uir_contraction_steps *t, uint32_t block, uint32_t under);

/* Tiles the loops of each product's first epilogue block, the same for all products. Then computes the accumulators
 * inside these loops, tiled along K (compute_at). */
uir_status uir_contraction_tile(uir_contraction_steps *products, uint32_t count);
/* Computes the accumulator in the loop of the unit's work (compute_at), tiled along K. */
uir_status uir_contraction_place_sums(uir_contraction_steps *t);
/* Copies an operand's tile to the chip. Operand A is copied by the product `rows_of` for all products. */
uir_status uir_contraction_copy_factor(uir_contraction_steps *t, uint32_t which, const uir_contraction_steps *rows_of);
/* Computes the rest of the epilogue at the rows of a finished tile; makes on-chip copies of outputs that are stored
 * transposed. */
uir_status uir_contraction_place_after(uir_contraction_steps *t);
/* Moves a tensor to an on-chip space and shrinks it to its live region. */
uir_status uir_contraction_keep_alive(uir_contraction_steps *t, uint32_t tensor, const char *space);
/* Arranges a tensor's dims in this order, and pads them to the tiles of their sides. */
uir_status uir_contraction_fit_tile(uir_contraction_steps *t, uint32_t tensor, const uir_contraction_tile_dims *of);
/* The same for the accumulator, an operand's copy, and the temporaries of the epilogue: a tile of each is on the
 * chip. */
uir_status uir_contraction_keep_sums(uir_contraction_steps *t);
uir_status uir_contraction_keep_copy(uir_contraction_steps *t, uint32_t which);
uir_status uir_contraction_keep_values(const uir_contraction_steps *products, uint32_t count, uir_contraction_steps *t);
/* Set the layouts of operands; make loops parallel; vectorise loops and mark mma. */
uir_status uir_contraction_lay_out(uir_contraction_steps *t);
uir_status uir_contraction_share_out(uir_contraction_steps *t);
uir_status uir_contraction_mark(uir_contraction_steps *t);

#endif
