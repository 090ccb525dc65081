/* Inside the tactic of contractions: the plan of one variant, and the steps that apply it. */
#ifndef UIR_LOWER_CONTRACTION_PLAN_H
#define UIR_LOWER_CONTRACTION_PLAN_H

#include "lower/tactics/products/contraction_internal.h"
#include "lower/select/contraction_layout.h"
#include "lower/schedule/schedule.h"

/* One of m, n, k: the axis that is tiled. */
typedef struct uir_contraction_side {
    uint32_t axis; /* NONE: the contraction has no such axis */
    uir_dim extent, tile;
    bool split;           /* extent is larger than one tile */
    bool guarded;         /* the last tile may be partial */
    uir_dim outer, inner; /* current loop variables */
    const char *tile_name;
} uir_contraction_side;

typedef struct uir_contraction_plan {
    uir_contraction c;
    uir_loop_function *f;
    const uir_machine *machine;
    uir_text *steps;
    uir_parameter_choice *choice;   /* NULL: no record is given or returned */
    uir_contraction_side sides[4];  /* by class; [BATCH] unused */
    uir_dim at[UIR_LOOP_MAX_ITERS]; /* per axis without tiles: its loop's variable */
    bool few;
    uint32_t products; /* number of products with tiles on the chip together */
    uint32_t crossed;  /* outputs computed on the chip and copied out transposed */
    bool by_tiles;     /* the epilogue works on whole tiles: an output has its columns along the rows */
    bool copied[2];
    uint32_t raw[2];     /* operands without the cast that mma does itself */
    uir_dtype dtypes[2]; /* of the operands as mma reads them */
    uint32_t copies[2];  /* tensors */
    uint32_t sums;       /* tensor on chip */
    uint32_t *local;     /* per tensor: its tensor on chip, or NONE */
    uint32_t local_count;
} uir_contraction_plan;

/* The contractions of one function: products that share operand A, in the same loops over its tiles. The leader is the
 * one with the most columns; all have its tiles. */
typedef struct uir_contraction_plans {
    uir_contraction_plan *plans;
    uint32_t count, leader;
} uir_contraction_plans;

/* Adds a line to the steps. */
void uir_contraction_plan_say(uir_contraction_plan *p, const char *format, ...) UIR_PRINTF(2, 3);

/* ---- choices (contraction_choose.c) ---- */
/* Chooses the operand of columns, the tiled axis of each class, mma's dtypes, and operands that mma reads in place. */
void uir_contraction_plan_choose_sides(uir_contraction_plan *p);
void uir_contraction_plan_choose_axes(uir_contraction_plan *p);
uir_status uir_contraction_plan_choose_dtypes(uir_contraction_plan *p);
bool uir_contraction_plan_is_direct_a(uir_contraction_plan *p);
bool uir_contraction_plan_is_direct_b(uir_contraction_plan *p);
/* The dim of the load's tensor along the axis; NONE. */
uint32_t uir_contraction_plan_dim_of(uir_contraction_plan *p, uint32_t expression, uint32_t axis);
uir_status uir_contraction_plan_choose_tiles(uir_contraction_plan *p);
/* The axis of the class that another contraction shares; NONE. */
uint32_t uir_contraction_plan_axis_like(const uir_contraction_plan *p, uint32_t class, const uir_loop_iter *like);
/* Copies the axes and tiles of the leader, with the columns of this one. */
void uir_contraction_plan_follow_axes(uir_contraction_plan *p, const uir_contraction_plan *leader);
void uir_contraction_plan_follow_tiles(uir_contraction_plan *p, const uir_contraction_plan *leader);
/* The axis along the last dim of a block's target; NONE. */
uint32_t uir_contraction_plan_last_axis(const uir_contraction_plan *p, const uir_contraction_block *b);

/* Bytes for tiles: `near`, of the working set, and `most`, of the capacity. Tiles keep to `near` if any tile can; if
 * none fits the cache, the smallest one is slower, not impossible. */
typedef struct uir_contraction_room {
    int64_t near, most;
} uir_contraction_room;
uir_contraction_room uir_contraction_plan_room(const uir_contraction_plan *p);

/* Chooses tiles (rows, keys) of two products, the second one of values computed from the first one's rows. */
uir_status uir_contraction_plan_choose_chain(uir_contraction_plan *first, uir_contraction_plan *second);

/* ---- the variants (contraction_schedule.c) ---- */
/* Makes the choices that precede tiles. `left_out`: as for uir_contraction_find. */
uir_status uir_contraction_plan_choose(uir_contraction_plan *p, uint32_t number, const bool *left_out, uir_arena *arena,
                                       uir_diagnostics *diagnostics);

/* ---- steps by schedule primitives (contraction_steps.c) ---- */
/* Inlines the prologue of contractions; the first step. */
uir_status uir_contraction_inline(uir_schedule *schedule);
/* Finds the outputs that are copied out transposed; changes no statement. */
void uir_contraction_plan_find_crossed(uir_contraction_plan *p);
/* Sets tiles, positions, spaces, layouts and loop kinds of all plans. */
uir_status uir_contraction_plans_apply(uir_contraction_plans *all, uir_schedule *schedule);

/* ---- what they share (contraction_plan.c) ---- */
/* `base`, or `base_2` ...: a name that the function lacks. */
uir_status uir_contraction_plan_fresh_name(uir_loop_function *f, const char *base, const char **out);
bool uir_contraction_plan_is_const(uir_contraction_plan *p, uir_dim dim, int64_t *out);
uir_dim uir_contraction_plan_number(uir_contraction_plan *p, int64_t value);
/* The only statement of a block. */
uint32_t uir_contraction_plan_statement_of(const uir_loop_function *f, uint32_t block);

#endif
