/* Which instructions of a body are done before which others begin, where its pipes run apart: what its syncs promise,
 * and what follows from that. The pass that writes waits and the verifier that demands them both ask here.
 *
 * In: a body whose instructions have their legal rows. Out: its steps (instructions) in the order of the text, what
 * they use, its syncs, and answers about them. A pipe keeps its own order; `sync.A.B %p` lets B go on once A is done
 * with what it had to do with %p's place; `dist d` makes that what it had to do there up to the end of an earlier
 * iteration. From instructions on the way, which run whenever one end does, orders follow. */
#ifndef UIR_IR_IGRAPH_ORDER_H
#define UIR_IR_IGRAPH_ORDER_H

#include "base/vector.h"
#include "ir/kernel/igraph.h"

typedef struct uir_iorder_use {
    uint32_t pointer, step;
    bool write;
} uir_iorder_use;

typedef struct uir_iorder_step {
    uint32_t item, instruction, line;
    int32_t pipe; /* -1: in order with all; of an index with all behind it, and those before it in its place */
    bool is_index;
    uint32_t block; /* the innermost around it; one of its own where it has a condition */
    uint32_t first_use, use_count;
} uir_iorder_step;

/* A body, a loop, what a condition holds: with the steps `first` to `last`; none where first is greater. */
typedef struct uir_iorder_block {
    uint32_t parent; /* UINT32_MAX: the body itself */
    uint32_t item;   /* UINT32_MAX: the body itself */
    uint32_t first, last;
    bool is_loop;
} uir_iorder_block;

/* A sync, or an instruction at which a group's units meet. */
typedef struct uir_iorder_sync {
    uint32_t at;    /* twice the step that it stands before; twice the step and 1: it is that step */
    uint32_t block; /* likewise one of its own where it has a condition */
    uint32_t loop;  /* the innermost loop's block; UINT32_MAX: there is none */
    uint32_t line;
    uint32_t from, to, distance;
    uint32_t pointer; /* UINT32_MAX: whatever the pipe had to do */
    bool of_pipes, is_barrier, is_off;
    uint32_t before; /* of a wait that the pass adds: the item that it is to stand before */
} uir_iorder_sync;

typedef struct uir_iorder {
    const uir_igraph *igraph;
    uir_arena *arena;
    uir_vector(uir_iorder_use) uses;
    uir_vector(uir_iorder_step) steps;
    uir_vector(uir_iorder_block) blocks; /* the first is the body */
    uir_vector(uir_iorder_sync) syncs;
    uint32_t block, loop; /* that are being walked */
    uint32_t words;       /* of 64 steps */
    uint64_t *before;     /* by step: a bit for each that is done before it begins */
} uir_iorder;

uir_status uir_iorder_collect(const uir_igraph *igraph, uint32_t first_item, uir_arena *arena, uir_iorder *out);
/* What is done before this step and those behind it; before it is known for those in front. Again after each change of
 * the syncs. */
void uir_iorder_find_step(uir_iorder *order, uint32_t step);
void uir_iorder_find_from(uir_iorder *order, uint32_t step);

/* Is one of two uses by pipes that run apart changed where the other one is used? `b` is the later one. */
bool uir_iorder_conflicts(const uir_iorder *order, const uir_iorder_use *a, const uir_iorder_use *b);
/* Is what step a does done before step b, which is behind it in the text, begins: in this iteration of the loops around
 * both and in those before? */
bool uir_iorder_is_before(const uir_iorder *order, uint32_t a, uint32_t b);
/* A use is behind another one in the text. Gives the loop (a block) in whose iterations the earlier one in the text
 * meets what the later one did before, and how many iterations before that is; false: there is none. */
bool uir_iorder_find_turn(const uir_iorder *order, const uir_iorder_use *later, const uir_iorder_use *earlier,
                          uint32_t *out_loop, uint32_t *out_distance);
/* Is what step a did so many iterations of the loop before, and earlier, done before step b begins? */
bool uir_iorder_is_before_turn(const uir_iorder *order, uint32_t a, uint32_t b, uint32_t loop, uint32_t distance);
/* Flags of its pair of pipes that are taken where a sync stands: a distance for each wait of a loop around it, from the
 * loop's begin to its end, as so many iterations are under way; and one that all other waits use in turn. */
uint32_t uir_iorder_count_flags(const uir_iorder *order, const uir_iorder_sync *at);
/* Is it a wait of a loop that `at` stands in, and of the same pipes? */
bool uir_iorder_holds_flags(const uir_iorder *order, const uir_iorder_sync *wait, const uir_iorder_sync *at);
/* Does the block hold the step? Then it runs when that does. */
static inline bool uir_iorder_holds(const uir_iorder *order, uint32_t block, uint32_t step) {
    return order->blocks.data[block].first <= step && step <= order->blocks.data[block].last;
}
/* Is the block the other one, or in it? */
bool uir_iorder_is_inside(const uir_iorder *order, uint32_t block, uint32_t around);
bool uir_iorder_uses_place(const uir_iorder *order, uint32_t step, uint32_t pointer);

#endif
