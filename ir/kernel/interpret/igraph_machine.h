/* The state of the iGraph interpreter, shared by its files: igraph_interpret.c (control), igraph_interpret_ops.c (one
 * instruction) and igraph_interpret_interleave.c (pipes that run apart). Private to them.
 *
 * A group's units take turns: each runs until it waits for another (a barrier, a flag, a reduction over the group) or
 * has ended. Every stored element carries a shadow that says whether it is defined and who wrote and read it last, and
 * when. */
#ifndef UIR_IR_IGRAPH_MACHINE_H
#define UIR_IR_IGRAPH_MACHINE_H

#include "ir/kernel/igraph.h"

/* Who touched an element last, and when: units of one group are ordered by the group's epoch (its barriers so far), all
 * units by the phase, what one unit does by its program (`sequence`, 0 where it runs in that order). A unit number is
 * never 0. */
typedef struct itouch {
    uint32_t unit, epoch, phase, sequence;
} itouch;
typedef struct ishadow {
    itouch writer, reader;
    uint32_t turn; /* of the loop whose instance it was when it was written; what another turn left is not defined */
    bool defined;
} ishadow;

/* One instance (or all instances of xN, one after the other) of a pointer. */
typedef struct istorage {
    char *data;
    ishadow *shadow;
    int64_t span; /* elements of one instance */
    int64_t instances;
    uint32_t holder; /* of a place: the pointer that was written last, plus 1; 0: none yet */
    uint32_t taken;  /* of a place: the sequence of what made that pointer its holder */
    uint32_t latest; /* the greatest sequence of what touched it */
    bool owned;
} istorage;

typedef struct iframe {
    uint32_t item; /* LOOP whose children run, or the IF / RUN / body around them (UINT32_MAX: the body) */
    int64_t index, trips;
    uint32_t next; /* the child to run next; UINT32_MAX: none left */
} iframe;

typedef struct iunit {
    uint32_t number; /* 1.. over the whole phase */
    uint32_t kind;   /* of its body */
    int64_t *values; /* per symbol */
    bool *bound;
    bool *outside;     /* per symbol: an index that put its slices outside */
    int64_t *trips;    /* per symbol: of the running loops */
    uint32_t *turns;   /* per symbol: iterations of the loop begun so far */
    istorage *storage; /* per pointer: LOCAL of unit scope */
    iframe *frames;
    uint32_t depth;
    bool ended;
    uint32_t waiting;       /* instruction it waits at, UINT32_MAX: none */
    uint32_t *signals;      /* per (from kind): signals taken so far */
    uint32_t sequence;      /* of the instruction that runs, in the unit's program; 0: they run in its order */
    struct iqueues *queues; /* of its pipes, where they run apart; NULL: they do not */
    uint32_t queued;        /* instructions and waits in them */
    bool draining;          /* some of them have to be done before it goes on */
    bool moved;             /* its symbols have other values than those that its queues took last */
} iunit;

typedef struct igroup {
    iunit *units;
    uint32_t unit_count;
    istorage *storage; /* per pointer: LOCAL of group scope */
    uint32_t epoch;
    uint32_t raised[UIR_DEVICE_MAX_UNIT_KINDS][UIR_DEVICE_MAX_UNIT_KINDS]; /* signals from kind to kind */
} igroup;

typedef struct imachine {
    const uir_igraph *igraph;
    uir_diagnostics *diagnostics;
    uir_arena arena;   /* of the whole run */
    uir_arena scratch; /* of one instruction */
    istorage *storage; /* per pointer: dram */
    uint32_t symbol_count;
    uint32_t phase;
    igroup group;  /* the one that runs */
    uint32_t line; /* of the instruction that runs */
    const volatile bool *cancel;
    const uir_interleaving *interleaving; /* NULL: program order */
    uint64_t random;                      /* state of the choices among pipes */
    uint32_t last_unit, last_pipe;        /* that were chosen */
} imachine;

/* A slice at one place: for every element, row-major over the slice's dims, its offset in the storage or -1 outside. */
typedef struct iview {
    const istorage *storage;
    char *data; /* of the live instance */
    ishadow *shadow;
    uir_dtype dtype;
    uint32_t pointer;
    uint32_t turn; /* of the loop that it belongs to; 0: of none */
    uint32_t rank;
    int64_t counts[UIR_IGRAPH_MAX_RANK];
    int64_t total;
    const int64_t *offsets;
    bool has_fill;
    double fill;
    bool block;
} iview;

uir_status uir_imachine_fail(imachine *machine, const char *format, ...) UIR_PRINTF(2, 3);
uir_status uir_imachine_evaluate(imachine *machine, const iunit *unit, uir_dim dim, int64_t *out_value);
/* Lives until the scratch arena is reset. */
uir_status uir_imachine_view(imachine *machine, const iunit *unit, const uir_islice *slice, iview *out_view);

/* One element's value, exact for every dtype: floats in `real`, integers and bool in `integer` (u64 as the same bits).
 */
typedef struct icell {
    double real;
    int64_t integer;
    bool defined;
} icell;
/* Offset -1 gives the fill or an undefined cell. */
uir_status uir_imachine_load(imachine *machine, const iunit *unit, const iview *view, int64_t offset, icell *out_cell);
/* Offset -1 drops it. */
uir_status uir_imachine_store(imachine *machine, const iunit *unit, const iview *view, int64_t offset, icell cell);

/* igraph_interpret_ops.c: executes one instruction for one unit (group reductions: for all units of the group at once).
 */
uir_status uir_imachine_execute(imachine *machine, iunit *unit, const uir_iinstruction *instruction);
uir_status uir_imachine_execute_group(imachine *machine, const uir_iinstruction *instruction);

/* igraph_interpret_interleave.c: a unit's queues, one for each pipe. */
/* For a body that begins with this item. */
uir_status uir_imachine_open_queues(imachine *machine, uir_arena *arena, uint32_t first_item, iunit *unit);
/* The unit has come to an instruction: it lies in a queue from now on, or the unit stays there until all in the queues
 * is done; else (false) it is to be done now. */
uir_status uir_imachine_give(imachine *machine, iunit *unit, uint32_t item, bool *out_given);
/* It has come to an index: does it stay there until what touches the place that it reads is done? */
bool uir_imachine_hold_index(const imachine *machine, iunit *unit, uint32_t item);
/* Is something that it stays for still to be done? */
bool uir_imachine_is_held(const iunit *unit);
/* An iteration of the loop is over: what its instructions were is what later waits are for. */
void uir_imachine_end_turn(const imachine *machine, iunit *unit, uint32_t loop_item, int64_t index);
/* Executes one instruction of the group's queues that may be next. False: no queue has got shorter. */
uir_status uir_imachine_step(imachine *machine, bool *out_stepped);

#endif
