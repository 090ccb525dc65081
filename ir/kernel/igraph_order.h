/* The order of instructions on parallel pipes: which instructions of a body have finished before others begin, by the
 * body's syncs. The pass that writes waits and the verifier that requires them share this order.
 *
 * In: a body whose instructions have their legal rows. Out: its steps (instructions) in the order of the text, their
 * uses of pointers, its syncs, and queries of the order. A pipe executes its own steps in order. `sync.A.B %p` lets B
 * continue once A has finished its accesses to %p's storage; with `dist d`, its accesses up to the end of an earlier
 * iteration. Order is transitive through an intermediate instruction that runs whenever one of the two does. */
#ifndef UIR_IR_IGRAPH_ORDER_H
#define UIR_IR_IGRAPH_ORDER_H

#include "base/vector.h"
#include "ir/kernel/igraph.h"

#define UIR_IORDER_GIVEN UINT32_MAX

typedef struct uir_iorder_use {
    uint32_t pointer, step;
    uint32_t slice; /* of the instruction; UINT32_MAX: its scratch */
    bool write;
    bool own; /* of units of several threads: each element's owner alone touches it */
} uir_iorder_use;

typedef struct uir_iorder_step {
    uint32_t item, instruction, line;
    int32_t pipe; /* -1: in order with all steps; an index: with later steps, and earlier steps on its storage */
    bool is_index;
    uint32_t block; /* the innermost around it; its own if it has a condition */
    uint32_t first_use, use_count;
} uir_iorder_step;

/* A body, a loop or a conditional: the steps from `first` to `last`, none if first > last. */
typedef struct uir_iorder_block {
    uint32_t parent; /* UINT32_MAX: the body itself */
    uint32_t item;   /* UINT32_MAX: the body itself */
    uint32_t first, last;
    bool is_loop;
} uir_iorder_block;

/* A sync, or an instruction that is a barrier of a group's units or of a unit's threads. */
typedef struct uir_iorder_sync {
    uint32_t at;    /* twice the index of the next step; for an instruction: twice its own index, plus 1 */
    uint32_t block; /* the innermost around it; its own if it has a condition */
    uint32_t loop;  /* the innermost loop's block; UINT32_MAX: none */
    uint32_t line;
    uint32_t from, to, distance;
    uint32_t pointer; /* UINT32_MAX: all accesses of the pipe */
    bool of_pipes, is_barrier, is_off;
    bool is_unit; /* a barrier of the unit: threads meet, pipes have finished */
    uint32_t
        before; /* of a sync that the pass adds: the item before which it is inserted; UIR_IORDER_GIVEN: of others */
} uir_iorder_sync;

typedef struct uir_iorder {
    const uir_igraph *igraph;
    uir_arena *arena;
    uir_vector(uir_iorder_use) uses;
    uir_vector(uir_iorder_step) steps;
    uir_vector(uir_iorder_block) blocks; /* the first is the body */
    uir_vector(uir_iorder_sync) syncs;
    uint32_t block, loop; /* of the current position while collecting */
    uint32_t words;       /* of 64 steps, in `before` */
    uint64_t *before;     /* by step: a bit for each step that has finished before this one begins */
} uir_iorder;

uir_status uir_iorder_collect(const uir_igraph *igraph, uint32_t first_item, uir_arena *arena, uir_iorder *out);
/* Find the steps that have finished before this step, or before all steps from this one on. The result for earlier
 * steps must be known. Call them again after each change of the syncs. */
void uir_iorder_find_step(uir_iorder *order, uint32_t step);
void uir_iorder_find_from(uir_iorder *order, uint32_t step);

/* Whether two uses, `b` the later one, conflict on different pipes: one of them writes the pointer, or `b` writes
 * another pointer of the same storage. */
bool uir_iorder_conflicts(const uir_iorder *order, const uir_iorder_use *a, const uir_iorder_use *b);
/* Whether step a has finished before step b, later in the text, begins: in this iteration of the loops around both and
 * in earlier ones. */
bool uir_iorder_is_before(const uir_iorder *order, uint32_t a, uint32_t b);
/* For a use later in the text and an earlier one: the innermost loop (a block) in which the earlier use accesses
 * storage that the later use accessed in a previous iteration. `*out_distance` is the distance in iterations. False if
 * no loop is around both. */
bool uir_iorder_find_turn(const uir_iorder *order, const uir_iorder_use *later, const uir_iorder_use *earlier,
                          uint32_t *out_loop, uint32_t *out_distance);
/* Whether step a of the iteration `distance` before, and of earlier ones, has finished before step b begins. */
bool uir_iorder_is_before_turn(const uir_iorder *order, uint32_t a, uint32_t b, uint32_t loop, uint32_t distance);
/* The flags of a sync's pair of pipes that are in use at that sync. A wait with a distance in a loop around the sync
 * uses `distance` flags, one per iteration in flight. They are in use from the begin to the end of the wait's loop. All
 * other waits share one flag. */
uint32_t uir_iorder_count_flags(const uir_iorder *order, const uir_iorder_sync *at);
/* Whether `wait` has a distance, the same pipes as `at`, and a loop around `at`. */
bool uir_iorder_holds_flags(const uir_iorder *order, const uir_iorder_sync *wait, const uir_iorder_sync *at);
/* Whether the block contains the step, so that the step runs when the block does. */
static inline bool uir_iorder_holds(const uir_iorder *order, uint32_t block, uint32_t step) {
    return order->blocks.data[block].first <= step && step <= order->blocks.data[block].last;
}
/* Whether the block is `around`, or inside it. */
bool uir_iorder_is_inside(const uir_iorder *order, uint32_t block, uint32_t around);
bool uir_iorder_uses_place(const uir_iorder *order, uint32_t step, uint32_t pointer);

#endif
