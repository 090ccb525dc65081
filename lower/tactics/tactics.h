/* Inside the tactics: their state, their queries (tactics_look.c) and common steps (tactics_steps.c). */
#ifndef UIR_LOWER_TACTICS_H
#define UIR_LOWER_TACTICS_H

#include "lower/internal.h"
#include "lower/schedule/schedule.h"

#define UIR_TACTIC_MOST_BLOCKS 256

enum {
    UIR_TACTIC_LANES = 4096, /* elements of a slice, maximum: fewer if the space is too small */
    UIR_TACTIC_FEWEST = 32,  /* minimum with double buffering */
    UIR_TACTIC_LEAST = 4,    /* minimum */
    UIR_TACTIC_TILE = 16384, /* elements of an index of the parallel axis, minimum */
    UIR_TACTIC_COLUMN = 256, /* columns reduced at once */
    UIR_TACTIC_PARTED = 8,   /* reductions by parts, maximum */
};

typedef struct uir_tactic {
    uir_loop_function *f;
    const uir_machine *machine;
    uir_schedule *s;
    uir_parameter_choice *choice; /* NULL: no record is given or returned */
    uir_diagnostics *diagnostics;
    bool reduces;
    bool stream;           /* rows of any length: no row is kept on the chip */
    bool shares;           /* all rows read some operand at the same coordinates */
    bool products;         /* some nests are complete products */
    bool plain;            /* products are scheduled as ordinary sums */
    bool apart;            /* the epilogue is always a nest of its own */
    bool follows;          /* some epilogue is fused, computed on the finished accumulators */
    bool few;              /* the variant for small-M products, for rows whose number is unknown before the run */
    bool unknown_rows;     /* some product has an unknown number of rows, and other tiles if they are few */
    uint32_t segment;      /* the segment between complete products that is scheduled; UIR_LOOP_NONE: all of them */
    int64_t lanes, column; /* maximum of elements of a slice, and of columns reduced at once */
    uint32_t names;
    uir_dim tile_of[8], tile[8]; /* tile sizes of rows, by the number of a row's elements */
    uint32_t tile_count;
    uint32_t stores[UIR_TACTIC_PARTED], store_count; /* blocks that store partial states, or a product's sums, in
                                                      * memory */
} uir_tactic;

typedef struct uir_tactic_cost {
    uint32_t instructions, loads;
    bool heavy; /* it has a transcendental, a root or a division */
} uir_tactic_cost;

static inline const uir_loop_statement *uir_tactic_at(const uir_tactic *t, uint32_t id) {
    return &t->f->statements.data[id];
}
/* Adds the cost of an expression; stops counting once it is high. */
void uir_tactic_add_cost(const uir_loop_function *f, uint32_t expression, uir_tactic_cost *out);
/* The number of loads of a tensor in all blocks. */
uint32_t uir_tactic_count_uses(const uir_tactic *t, uint32_t tensor, bool *out_read_as_index);
/* Tensors that a statement, or the blocks under it, write and read: a flag per tensor. The old state of a reduction is
 * not counted as read. Begins as {0}; reuse allocates nothing. */
typedef struct uir_tactic_touched {
    bool *written, *read;
} uir_tactic_touched;
uir_status uir_tactic_find_touched(uir_tactic *t, uint32_t statement, uir_tactic_touched *out);
/* Whether one writes a tensor that the other reads, which computing at its position requires. */
bool uir_tactic_feeds(const uir_tactic *t, const uir_tactic_touched *from, const uir_tactic_touched *to);
/* A block's access to a tensor: the target of its first statement, else the first load in that; NULL: none. */
const uir_loop_access *uir_tactic_find_access(const uir_tactic *t, uint32_t block, uint32_t tensor);
/* The call that multiplies the two operands, in a block that sums products into a TEMP; NULL: another block. */
const uir_loop_expression *uir_tactic_find_product(const uir_tactic *t, uint32_t block);
/* The statement of a block with one; NULL: several. */
const uir_loop_statement *uir_tactic_only_statement(const uir_tactic *t, uint32_t block);
bool uir_tactic_is_temp(const uir_tactic *t, uint32_t tensor);
bool uir_tactic_has_kind(const uir_tactic *t, uint32_t block, uir_loop_statement_kind kind);
bool uir_tactic_mentions(const uir_tactic *t, uir_dim dim, uir_symbol symbol);
/* The first iteration variable of the block that a loop of its unscheduled nest determines; NONE: none. */
uint32_t uir_tactic_iter_of_loop(const uir_tactic *t, uint32_t block, uint32_t loop);
/* Whether the loop cannot be vectorised: it determines no iteration variable, a load is not linear in it, an index read
 * from data depends on it, or the block reads an element that another iteration stores. */
bool uir_tactic_decides_position(const uir_tactic *t, uint32_t block, uint32_t loop);
/* How the blocks under a loop read a tensor. */
typedef struct uir_tactic_reading {
    uint32_t loads;
    bool moves;     /* an index depends on the loop */
    bool spans;     /* on a loop inside it */
    bool irregular; /* on data, or is outside the extents or strided; or a block outside the loop reads it too */
} uir_tactic_reading;
uir_tactic_reading uir_tactic_find_reading(const uir_tactic *t, uint32_t tensor, uint32_t loop);
/* The index, among a block's loops, of the loop along a load's last dim where the block's last loop is along another
 * one: a transposed read. */
uint32_t uir_tactic_crossed_loop(const uir_tactic *t, uint32_t block, const uint32_t *loops, uint32_t count);

/* ---- steps ---- */
/* Maps a primitive's refusal to *out_done false; other failures end the tactic. */
uir_status uir_tactic_asked(uir_status status, bool *out_done);
/* Inlines casts that widen the operands of a product if the machine multiplies the narrow ones, so that tiles are
 * copied in their stored dtype. */
uir_status uir_tactic_inline_widenings(uir_tactic *t);
/* Inlines values that have one use, or are cheaper to recompute than to store. */
uir_status uir_tactic_inline_all(uir_tactic *t);
bool uir_tactic_wants_inline(const uir_tactic *t, uint32_t block);
/* Whether it has one state, and an update of one instruction. */
bool uir_tactic_is_simple(const uir_loop_function *f, const uir_loop_monoid *m);
uir_dim uir_tactic_number(const uir_tactic *t, int64_t value);
uir_dim uir_tactic_product_of(const uir_tactic *t, const uint32_t *loops, uint32_t count); /* of their extents */
bool uir_tactic_is_short(const uir_tactic *t, uir_dim extent, int64_t most);
bool uir_tactic_is_in(const uint32_t *list, uint32_t count, uint32_t id);
/* Makes outer loops the parallel axes, as many as possible, the last one tiled by rows of `elements` each. *out_at: the
 * loop that everything else is computed under. */
uir_status uir_tactic_bind_outer(uir_tactic *t, const uint32_t *loops, uint32_t count, uir_dim elements,
                                 uint32_t *out_at);
/* Sets t->shares if every iteration of the loop reads some operand at the same coordinates. */
void uir_tactic_find_sharing(uir_tactic *t, uint32_t loop);
uir_status uir_tactic_vectorise(uir_tactic *t, uint32_t loop);
/* Vectorises the last loop of a block under the loop. */
uir_status uir_tactic_vectorise_block(uir_tactic *t, uint32_t block, uint32_t loop);
uint32_t uir_tactic_top_of(const uir_tactic *t, uint32_t statement);
bool uir_tactic_is_under(const uir_tactic *t, uint32_t statement, uint32_t loop);
/* The loops of a block inside `loop`. */
uint32_t uir_tactic_own_loops(const uir_tactic *t, uint32_t block, uint32_t loop, uint32_t *out_loops);
/* Moves all blocks outside the loop under it, last first, their producers too. */
uir_status uir_tactic_compute_producers(uir_tactic *t, uint32_t loop);
/* Caches operands that are read more than once on the chip: `of_rows`: for a row, if several passes read it; for a tile
 * of rows, if all its rows read the same elements. */
uir_status uir_tactic_cache_operands(uir_tactic *t, uint32_t loop, bool of_rows);
/* The number of units with a scratch space of their own; 0: they share one, or a cache replaces it. */
int64_t uir_tactic_count_units_apart(const uir_machine *machine);
/* Parallelises nests that could not be moved under the anchor's. */
uir_status uir_tactic_bind_strays(uir_tactic *t);
/* Places temporaries on the chip. */
uir_status uir_tactic_place_temps(uir_tactic *t);
/* On a machine that requires rows, lays out a constant so that the dim that slices read along is last. */
uir_status uir_tactic_pack_constants(uir_tactic *t);

/* Schedules the nest of a block without reduction, with its producers (tactics.c). */
uir_status uir_tactic_schedule_elementwise(uir_tactic *t, uint32_t block);

/* ---- groups that reduce (tactics_reduce.c) ---- */
uir_status uir_tactic_schedule_reduction(uir_tactic *t);
/* Whether the reduction runs across the last of the varying indices of its operand: it then reduces several columns at
 * once. false: it reads no operand that varies. */
bool uir_tactic_has_columns(const uir_tactic *t, uint32_t block, bool *out_columns);

/* ---- products through several spaces (products/levels.c) ---- */
/* Schedules products that the machine multiplies in spaces of its own, in nests of their own, which are then complete,
 * like those of parts. */
uir_status uir_tactic_schedule_products(uir_tactic *t);
/* The block that stores finished sums in memory: one that only does that, or a new one. UNSUPPORTED: no block reads
 * them, or several do. */
uir_status uir_tactic_find_sums(uir_tactic *t, uint32_t sums, uint32_t update, uint32_t *out_block);

/* ---- products by vectors (products/multiply_adds.c) ---- */
/* Schedules the nest of the block, with its producers, if they are one product without a multiplier, on a machine with
 * on-chip memory for tiles. */
uir_status uir_tactic_schedule_multiply_adds(uir_tactic *t, uint32_t anchor, bool *out_done);
/* Schedules one of several products in a nest of its own, which is then complete: its sums are stored in memory. */
uir_status uir_tactic_schedule_sums(uir_tactic *t, uint32_t update);

/* ---- reductions by parts (tactics_parts.c) ---- */
/* Whether a reduction is so long, with so few results, that splitting it is worth a second phase. */
bool uir_tactic_wants_parts(const uir_tactic *t);
/* Splits such reductions into parts, in nests of their own, which are then complete. */
uir_status uir_tactic_reduce_by_parts(uir_tactic *t);
/* Whether the block is in a nest that is not to be changed: a complete one, or one of another segment. */
bool uir_tactic_is_of_parts(const uir_tactic *t, uint32_t block);
/* The same if there are complete products: nests of parts are shaped like others once they exist. */
static inline bool uir_tactic_is_left(const uir_tactic *t, uint32_t block) {
    return t->products && uir_tactic_is_of_parts(t, block);
}
/* Whether the statement is at the top of such a nest. */
bool uir_tactic_is_complete(const uir_tactic *t, uint32_t top);
/* Whether the current nests compute the tensor for others: an output, or an operand of a complete nest. */
bool uir_tactic_leaves(const uir_tactic *t, uint32_t tensor);

#endif
