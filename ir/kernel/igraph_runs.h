/* What may be computed together, element block by element block, in registers. In: instructions in program order. Out:
 * whether they form one run. Shared by the pass that forms runs and by emitters, which are handed runs that people
 * wrote. */
#ifndef UIR_IR_IGRAPH_RUNS_H
#define UIR_IR_IGRAPH_RUNS_H

#include "ir/kernel/igraph.h"

/* A row reduction over a unit whose result is the operand's shape with a last dim of 1, or without it. */
bool uir_iinstruction_ends_run(const uir_igraph *igraph, const uir_iinstruction *instruction);
/* `next` may follow the `count` instructions of a run (0: it may start one). Same shape; what is written in the run is
 * touched in it through one slice only; after a reduction only reductions, and nothing reads their results. */
bool uir_igraph_run_accepts(const uir_igraph *igraph, const uir_iinstruction *const *run, uint32_t count,
                            const uir_iinstruction *next);
/* Same pointer, same box, same fill. Windows are never the same: their axes are their own. */
bool uir_islice_equal(const uir_islice *a, const uir_islice *b);

#endif
