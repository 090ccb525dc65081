/* Inside the tactic of contractions: what is decided for one variant, and the steps that carry it out. */
#ifndef UIR_LOWER_CONTRACTION_PLAN_H
#define UIR_LOWER_CONTRACTION_PLAN_H

#include "lower/contraction_internal.h"

/* One of m, n, k: the axis that is tiled. */
typedef struct uir_contraction_side {
    uint32_t axis; /* NONE: the contraction has no such axis */
    uir_dim extent, tile;
    bool split;           /* extent goes beyond one tile */
    bool guarded;         /* the last tile may be in part */
    uir_dim outer, inner; /* loop variables of now */
    const char *loop_name, *tile_name, *local_name;
} uir_contraction_side;

typedef struct uir_contraction_plan {
    uir_contraction c;
    uir_loop_function *f;
    const uir_device *device;
    uir_text *steps;
    uir_contraction_side sides[4];  /* by class; [BATCH] unused */
    uir_dim at[UIR_LOOP_MAX_ITERS]; /* per axis that is not tiled: its loop's variable */
    bool few;
    bool by_tiles; /* what follows works on whole tiles: an output has its columns along the rows */
    bool copied[2];
    uint32_t raw[2];     /* factors without the cast that mma makes itself */
    uir_dtype dtypes[2]; /* of the factors as mma reads them */
    uint32_t copies[2];  /* tensors */
    uint32_t sums;       /* tensor on chip */
    uint32_t *local;     /* per tensor: its tensor on chip, or NONE */
    uint32_t local_count;
} uir_contraction_plan;

/* Adds a line to the steps. */
void uir_contraction_plan_say(uir_contraction_plan *p, const char *format, ...) UIR_PRINTF(2, 3);

/* ---- choices (contraction_choose.c) ---- */
/* Which factor's axes are columns, which axis of each class is tiled, what mma reads, how far, where from. */
void uir_contraction_plan_choose_sides(uir_contraction_plan *p);
void uir_contraction_plan_choose_axes(uir_contraction_plan *p);
uir_status uir_contraction_plan_choose_dtypes(uir_contraction_plan *p);
bool uir_contraction_plan_is_direct_a(uir_contraction_plan *p);
bool uir_contraction_plan_is_direct_b(uir_contraction_plan *p);
uir_status uir_contraction_plan_choose_tiles(uir_contraction_plan *p);
/* The axis along which the last dim of what a block stores to runs; NONE. */
uint32_t uir_contraction_plan_last_axis(const uir_contraction_plan *p, const uir_contraction_block *b);

/* ---- carrying out (contraction_place.c) ---- */
/* `base`, or `base_2` ...: a name that the function has not. */
uir_status uir_contraction_plan_fresh_name(uir_loop_function *f, const char *base, const char **out);
uir_status uir_contraction_plan_add_statement(uir_loop_function *f, const uir_loop_statement *s, uint32_t *out);
uir_status uir_contraction_plan_add_iter(uir_loop_function *f, uir_loop_statement *block, const char *name,
                                         uir_dim extent, bool reduce, uir_dim value, uir_dim *out);
uir_status uir_contraction_plan_add_tensor(uir_loop_function *f, const char *base, uir_dtype dtype,
                                           const uir_dim *extents, uint32_t rank, uint32_t *out);
bool uir_contraction_plan_is_const(uir_contraction_plan *p, uir_dim dim, int64_t *out);
uir_dim uir_contraction_plan_number(uir_contraction_plan *p, int64_t value);
/* The only statement of a block. */
uint32_t uir_contraction_plan_statement_of(const uir_loop_function *f, uint32_t block);
/* Loops around, blocks in their places; tensors that nothing uses any more are gone. */
uir_status uir_contraction_plan_place(uir_contraction_plan *p);

#endif
