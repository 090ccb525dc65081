/* Inside the tactic of contractions: what is decided for one variant, and the steps that carry it out. */
#ifndef UIR_LOWER_CONTRACTION_PLAN_H
#define UIR_LOWER_CONTRACTION_PLAN_H

#include "lower/tactics/products/contraction_internal.h"
#include "lower/select/contraction_layout.h"
#include "lower/schedule/schedule.h"

/* One of m, n, k: the axis that is tiled. */
typedef struct uir_contraction_side {
    uint32_t axis; /* NONE: the contraction has no such axis */
    uir_dim extent, tile;
    bool split;           /* extent goes beyond one tile */
    bool guarded;         /* the last tile may be in part */
    uir_dim outer, inner; /* loop variables of now */
    const char *tile_name;
} uir_contraction_side;

typedef struct uir_contraction_plan {
    uir_contraction c;
    uir_loop_function *f;
    const uir_device *device;
    uir_text *steps;
    uir_parameter_choice *choice;   /* NULL: nothing is given, and nobody asks */
    uir_contraction_side sides[4];  /* by class; [BATCH] unused */
    uir_dim at[UIR_LOOP_MAX_ITERS]; /* per axis that is not tiled: its loop's variable */
    bool few;
    uint32_t products; /* whose tiles lie on chip at once */
    uint32_t crossed;  /* outputs that are made on chip and copied out across */
    bool by_tiles;     /* what follows works on whole tiles: an output has its columns along the rows */
    bool copied[2];
    uint32_t raw[2];     /* factors without the cast that mma makes itself */
    uir_dtype dtypes[2]; /* of the factors as mma reads them */
    uint32_t copies[2];  /* tensors */
    uint32_t sums;       /* tensor on chip */
    uint32_t *local;     /* per tensor: its tensor on chip, or NONE */
    uint32_t local_count;
} uir_contraction_plan;

/* The contractions of one function: products of one first factor, side by side in the same loops over its tiles. The
 * leader is the one with the longest columns; all have its tiles. */
typedef struct uir_contraction_plans {
    uir_contraction_plan *plans;
    uint32_t count, leader;
} uir_contraction_plans;

/* Adds a line to the steps. */
void uir_contraction_plan_say(uir_contraction_plan *p, const char *format, ...) UIR_PRINTF(2, 3);

/* ---- choices (contraction_choose.c) ---- */
/* Which factor's axes are columns, which axis of each class is tiled, what mma reads, how far, where from. */
void uir_contraction_plan_choose_sides(uir_contraction_plan *p);
void uir_contraction_plan_choose_axes(uir_contraction_plan *p);
uir_status uir_contraction_plan_choose_dtypes(uir_contraction_plan *p);
bool uir_contraction_plan_is_direct_a(uir_contraction_plan *p);
bool uir_contraction_plan_is_direct_b(uir_contraction_plan *p);
/* The dim of the load's tensor that runs along the axis; NONE. */
uint32_t uir_contraction_plan_dim_of(uir_contraction_plan *p, uint32_t expression, uint32_t axis);
uir_status uir_contraction_plan_choose_tiles(uir_contraction_plan *p);
/* The axis of the class that is another contraction's as well; NONE. */
uint32_t uir_contraction_plan_axis_like(const uir_contraction_plan *p, uint32_t class, const uir_loop_iter *like);
/* The axes and tiles of the leader, for the columns of another. */
void uir_contraction_plan_follow_axes(uir_contraction_plan *p, const uir_contraction_plan *leader);
void uir_contraction_plan_follow_tiles(uir_contraction_plan *p, const uir_contraction_plan *leader);
/* The axis along which the last dim of what a block stores to runs; NONE. */
uint32_t uir_contraction_plan_last_axis(const uir_contraction_plan *p, const uir_contraction_block *b);

/* Bytes that tiles may take: what stays near, and what no tile may go beyond. Tiles keep to the first where any do; a
 * cache that holds none of them makes the least one slower, not impossible. */
typedef struct uir_contraction_room {
    int64_t near, most;
} uir_contraction_room;
uir_contraction_room uir_contraction_plan_room(const uir_contraction_plan *p);

/* Tiles of two products of which the second one multiplies what is made of the first one's rows: rows, keys. */
uir_status uir_contraction_plan_choose_chain(uir_contraction_plan *first, uir_contraction_plan *second);

/* ---- the variants (contraction_schedule.c) ---- */
/* What is decided before there are tiles. `left_out`: uir_contraction_find. */
uir_status uir_contraction_plan_choose(uir_contraction_plan *p, uint32_t number, const bool *left_out, uir_arena *arena,
                                       uir_diagnostics *diagnostics);

/* ---- carrying out by schedule primitives (contraction_steps.c) ---- */
/* What is computed before the contractions goes into what reads it; the first thing that is done. */
uir_status uir_contraction_inline(uir_schedule *schedule);
/* Which outputs go out across; nothing is changed yet. */
void uir_contraction_plan_find_crossed(uir_contraction_plan *p);
/* Tiles, places, spaces, layouts and kinds of all that the plans are about. */
uir_status uir_contraction_plans_apply(uir_contraction_plans *all, uir_schedule *schedule);

/* ---- what they share (contraction_plan.c) ---- */
/* `base`, or `base_2` ...: a name that the function has not. */
uir_status uir_contraction_plan_fresh_name(uir_loop_function *f, const char *base, const char **out);
bool uir_contraction_plan_is_const(uir_contraction_plan *p, uir_dim dim, int64_t *out);
uir_dim uir_contraction_plan_number(uir_contraction_plan *p, int64_t value);
/* The only statement of a block. */
uint32_t uir_contraction_plan_statement_of(const uir_loop_function *f, uint32_t block);

#endif
