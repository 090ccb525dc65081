/* The steps that carry out a contraction's plan, one by one: for what is made of several contractions. */
#ifndef UIR_LOWER_CONTRACTION_STEPS_H
#define UIR_LOWER_CONTRACTION_STEPS_H

#include "lower/tactics/products/contraction_plan.h"

enum { UIR_CONTRACTION_MAX_LOOPS = 2 * UIR_LOOP_MAX_ITERS };

typedef struct uir_contraction_steps {
    uir_contraction_plan *p;
    const uir_contraction_plan *leader; /* of all products; itself, where it is alone */
    uir_schedule *s;
    uir_loop_function *f;
    uint32_t unit;      /* the loop that a unit's work stands in; NONE: there is none */
    uint32_t inside;    /* the loop around a step along k; that, where there is none */
    uint32_t row;       /* the loop over the rows of a finished tile; `unit`, when there is none */
    uint32_t copies[2]; /* blocks; NONE: the factor is read where it lies, or where another product copies it */
    uint32_t places[2]; /* the loops that they stand in; NONE: `inside` */
    uint32_t outer[UIR_CONTRACTION_MAX_LOOPS], outer_count, parallel;
    uint32_t deep[UIR_CONTRACTION_MAX_LOOPS], deep_count; /* loops around a step along k */
} uir_contraction_steps;

/* Two dims, or one, of a tensor along sides of the contraction. */
typedef struct uir_contraction_tile_dims {
    uint32_t dims[2], sides[2], count;
} uir_contraction_tile_dims;

void uir_contraction_steps_init(uir_contraction_steps *t, uir_contraction_plan *p, const uir_contraction_plan *leader,
                                uir_schedule *s);

/* Loops in this order, unless they stand so. */
uir_status uir_contraction_order(uir_contraction_steps *t, const uint32_t *loops, uint32_t count);
/* The loops around a block that stand in `under` (NONE: all); of those, the one that decides an iteration variable
 * (NONE: it stands still there). */
uint32_t uir_contraction_loops_below(const uir_contraction_steps *t, uint32_t block, uint32_t under, uint32_t *out);
uint32_t uir_contraction_loop_below(const uir_contraction_steps *t, uint32_t block, uint32_t under, uint32_t iter);
uir_status uir_contraction_vectorise(uir_contraction_steps *t, uint32_t block, uint32_t under);

/* The first blocks that read the products' sums are tiled alike, and the sums stand in their tiles, along k by tiles.
 */
uir_status uir_contraction_tile(uir_contraction_steps *products, uint32_t count);
/* The sums in the unit's loop, along k by tiles. */
uir_status uir_contraction_place_sums(uir_contraction_steps *t);
/* A factor's block; the first one is copied by `rows_of` for all. */
uir_status uir_contraction_copy_factor(uir_contraction_steps *t, uint32_t which, const uir_contraction_steps *rows_of);
uir_status uir_contraction_place_after(uir_contraction_steps *t);
/* What is on chip is as large as it is alive. */
uir_status uir_contraction_keep_alive(uir_contraction_steps *t, uint32_t tensor, const char *space);
/* A tensor's dims become these, as long as the sides' tiles. */
uir_status uir_contraction_fit_tile(uir_contraction_steps *t, uint32_t tensor, const uir_contraction_tile_dims *of);
uir_status uir_contraction_keep_sums(uir_contraction_steps *t);
uir_status uir_contraction_keep_copy(uir_contraction_steps *t, uint32_t which);
uir_status uir_contraction_keep_values(const uir_contraction_steps *products, uint32_t count, uir_contraction_steps *t);
/* Layouts; loops that units share out; vectors, and mma. */
uir_status uir_contraction_lay_out(uir_contraction_steps *t);
uir_status uir_contraction_share_out(uir_contraction_steps *t);
uir_status uir_contraction_mark(uir_contraction_steps *t);

#endif
