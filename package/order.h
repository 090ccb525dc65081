/* The order of a plan's requests: proves that each access to a tensor is behind the earlier ones it depends on.
 *
 * In: a plan for a device. Out: the accesses that nothing orders, or the waits that order them. Each queue has a vector
 * clock (Mattern, "Virtual time and global states of distributed systems", 1989): for each other queue the last request
 * that is done before the queue's next request. A request of the device is behind all that the host has waited for. A
 * loop's body is walked twice, so that a turn is compared with the turn before.
 *
 * Bodies. A LOOP or IF on the compute queue joins the device's queues: at the beginning, and at the end of each body it
 * waits on the host for the steps of that body among its waits, all queues of the device wait for each other, it copies
 * what the body returns, and all wait for that. So no wait leads out of a body. A loop's number and condition are
 * written to new memory in each turn. */
#ifndef UIR_PACKAGE_ORDER_H
#define UIR_PACKAGE_ORDER_H

#include "base/vector.h"
#include "package/plan.h"

/* An access that is not behind another access to the same tensor. */
typedef struct uir_plan_race {
    uint32_t step, before; /* `step` must wait until `before` is done */
    uint32_t tensor;
    bool writes; /* `step` writes what `before` reads; else it reads what `before` writes */
} uir_plan_race;

/* When all accesses to a root tensor are known to be done: for places in memory. Positions are those of `positions`. */
typedef struct uir_plan_release {
    uint32_t queues; /* that access it: a bit each */
    uint32_t begin;  /* its memory is taken from this position on; UINT32_MAX: from its first access on */
    uint32_t end;    /* the last position before any queue may take it; UINT32_MAX: that of the run */
} uir_plan_release;

typedef uir_vector(uint32_t) uir_plan_step_list;

typedef struct uir_plan_positions {
    uint32_t begin, end; /* of a step, in the order of execution; those of its bodies lie between */
} uir_plan_positions;

typedef struct uir_plan_order {
    bool adds;                           /* adds the missing waits; else the first race ends the walk */
    const uir_plan_positions *positions; /* by step, for `releases`; NULL: none */
    uir_plan_release *releases;          /* by tensor, of roots; set by the walk */
    /* Out. */
    uir_plan_step_list *waits; /* by step: those of the plan, and the added ones */
    bool has_race;
    uir_plan_race race;
    const char *fault; /* what is wrong with the plan's waits; NULL: nothing */
    uint32_t fault_step;
} uir_plan_order;

/* Walks a plan whose records are valid and whose `schedules` are there. LIMIT if loops are nested so deeply that the
 * walk would take too long; OUT_OF_MEMORY. */
uir_status uir_plan_walk_order(uir_arena *arena, const uir_plan *plan, uir_plan_order *order);

#endif
