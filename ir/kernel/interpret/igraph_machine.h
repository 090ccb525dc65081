/* The state of the iGraph interpreter, private to its files: igraph_interpret.c (control), igraph_interpret_ops.c (one
 * instruction) and igraph_interpret_interleave.c (parallel pipes).
 *
 * A group's units run as coroutines: each runs until it waits for another (a barrier, a flag, a reduction over the
 * group) or has ended. Every stored element has a shadow: whether it is defined, its last writer and reader, and
 * when. */
#ifndef UIR_IR_IGRAPH_MACHINE_H
#define UIR_IR_IGRAPH_MACHINE_H

#include "ir/kernel/igraph.h"

/* The last access to an element. Units of one group are ordered by the group's epoch (its barriers so far), all units
 * by the phase, accesses of one unit by its program (`sequence`, 0 if it runs in program order). A unit number is never
 * 0. */
typedef struct itouch {
    uint32_t unit, epoch, phase, sequence;
} itouch;
typedef struct ishadow {
    itouch writer, reader;
    uint32_t turn; /* iteration of the instance's loop that wrote it; for other iterations it is undefined */
    bool defined;
} ishadow;

/* The threads of a unit that touched an element since they last met: which one, and whether several. */
typedef struct imeeting {
    uint32_t unit, phase, meets; /* when; other values: nobody has since */
    uint32_t writer, reader;     /* a thread's number + 1; 0: none; UIR_ITHREAD_ALL: several */
} imeeting;
#define UIR_ITHREAD_ALL UINT32_MAX

/* One instance (or all instances of xN, one after the other) of a pointer. */
typedef struct istorage {
    char *data;
    ishadow *shadow;
    imeeting *meetings; /* per element; NULL: threads are not told apart */
    int64_t span;       /* elements of one instance */
    int64_t instances;
    uint32_t holder; /* of shared storage: the pointer written last, plus 1; 0: none yet */
    uint32_t taken;  /* of shared storage: the sequence of the write that made that pointer the holder */
    uint32_t latest; /* the greatest sequence of an access to it */
    bool owned;
} istorage;

typedef struct iframe {
    uint32_t item; /* LOOP whose children run, or the IF or RUN around them (UINT32_MAX: the body) */
    int64_t index, trips;
    uint32_t next; /* the next child to run; UINT32_MAX: none left */
} iframe;

typedef struct iunit {
    uint32_t number; /* 1.. over the whole phase */
    uint32_t kind;   /* of its body */
    int64_t *values; /* per symbol */
    bool *bound;
    bool *outside;     /* per symbol: an index out of range, which puts its slices outside */
    int64_t *trips;    /* per symbol: trip counts of the running loops */
    uint32_t *turns;   /* per symbol: iterations of the loop begun so far */
    istorage *storage; /* per pointer: LOCAL of unit scope */
    iframe *frames;
    uint32_t depth;
    bool ended;
    uint32_t waiting;       /* instruction it waits at, UINT32_MAX: none */
    uint32_t *signals;      /* per (from kind): signals consumed so far */
    uint32_t sequence;      /* of the running instruction, in the unit's program; 0: program order */
    struct iqueues *queues; /* of its parallel pipes; NULL: none */
    uint32_t queued;        /* instructions and waits in the queues */
    uint32_t meets;         /* times that its threads have met */
    bool draining;          /* it continues once the awaited ones of these are done */
    bool moved;             /* its symbols have changed since the queues' last snapshot */
} iunit;

typedef struct igroup {
    iunit *units;
    uint32_t unit_count;
    istorage *storage; /* per pointer: LOCAL of group scope */
    uint32_t epoch;
    uint32_t raised[UIR_MACHINE_MAX_UNIT_KINDS][UIR_MACHINE_MAX_UNIT_KINDS]; /* signals from kind to kind */
} igroup;

typedef struct imachine {
    const uir_igraph *igraph;
    uir_diagnostics *diagnostics;
    uir_arena arena;   /* of the whole run */
    uir_arena scratch; /* of one instruction */
    istorage *storage; /* per pointer: dram */
    uint32_t symbol_count;
    uint32_t phase;
    igroup group;    /* the running one */
    uint32_t line;   /* of the running instruction */
    uint32_t thread; /* of the running element: its number + 1; 0: they are not told apart; UIR_ITHREAD_ALL */
    const volatile bool *cancel;
    const uir_interleaving *interleaving; /* NULL: program order */
    uint64_t random;                      /* state of the choices among pipes */
    uint32_t last_unit, last_pipe;        /* the last choice */
} imachine;

/* A slice at one point of the program: for every element, row-major over the slice's dims, its offset in the storage;
 * -1: outside. */
typedef struct iview {
    const istorage *storage;
    char *data; /* of the live instance */
    ishadow *shadow;
    imeeting *meetings; /* as of the storage */
    uir_dtype dtype;
    uint32_t pointer;
    uint32_t turn; /* iteration of the loop of its instances; 0: no such loop */
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
/* Valid until the scratch arena is reset. */
uir_status uir_imachine_view(imachine *machine, const iunit *unit, const uir_islice *slice, iview *out_view);

/* One element's value, exact for every dtype: floats in `real`, integers and bool in `integer` (u64 as the same bits).
 */
typedef struct icell {
    double real;
    int64_t integer;
    bool defined;
} icell;
/* Loads an element. Offset -1: the fill, or an undefined cell. */
uir_status uir_imachine_load(imachine *machine, const iunit *unit, const iview *view, int64_t offset, icell *out_cell);
/* Stores an element. Offset -1: no effect. */
uir_status uir_imachine_store(imachine *machine, const iunit *unit, const iview *view, int64_t offset, icell cell);

/* igraph_interpret_threads.c: whether threads are told apart: kernels with barriers, in an order of their own. */
bool uir_imachine_has_threads(const imachine *machine);
/* By element of the result, row-major: its thread as in `imachine.thread`; NULL: not told apart. */
uir_status uir_imachine_find_threads(imachine *machine, const iunit *unit, const uir_iinstruction *instruction,
                                     const iview *result, const uint32_t **out_threads);
/* The running thread reads or writes an element. *out_alone false: another one has touched it since they met. */
uir_status uir_imachine_touch(imachine *machine, const iunit *unit, const iview *view, int64_t offset, bool writes,
                              bool *out_alone);

/* igraph_interpret_ops.c: executes one instruction for one unit (group reductions: for all units of the group at once).
 */
uir_status uir_imachine_execute(imachine *machine, iunit *unit, const uir_iinstruction *instruction);
uir_status uir_imachine_execute_group(imachine *machine, const uir_iinstruction *instruction);

/* igraph_interpret_interleave.c: a unit's queues, one for each pipe. */
/* Opens the queues of a unit for a body that begins with this item. */
uir_status uir_imachine_open_queues(imachine *machine, uir_arena *arena, uint32_t first_item, iunit *unit);
/* Handles the unit's next instruction. *out_given true: it is in a queue, or the unit waits there until its queues have
 * drained. False: the caller executes it now. */
uir_status uir_imachine_give(imachine *machine, iunit *unit, uint32_t item, bool *out_given);
/* Whether the unit waits at an index for queued instructions that touch the storage it reads. */
bool uir_imachine_hold_index(const imachine *machine, iunit *unit, uint32_t item);
/* Whether an awaited instruction is still queued. */
bool uir_imachine_is_held(const iunit *unit);
/* Ends an iteration of the loop: records its instructions for later waits with a distance. */
void uir_imachine_end_turn(const imachine *machine, iunit *unit, uint32_t loop_item, int64_t index);
/* Executes one ready instruction of the group's queues. *out_stepped false: no queue got shorter. */
uir_status uir_imachine_step(imachine *machine, bool *out_stepped);

#endif
