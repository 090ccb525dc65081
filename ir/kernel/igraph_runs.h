/* Loop fusion of elementwise instructions: whether they form a run, computed block by block in registers. In:
 * instructions in program order. Out: whether they form one run. Shared by the pass that forms runs and by emitters,
 * whose input may have hand-written runs. */
#ifndef UIR_IR_IGRAPH_RUNS_H
#define UIR_IR_IGRAPH_RUNS_H

#include "ir/kernel/igraph.h"

/* Whether it is a row reduction over a unit whose result has the operand's shape with a last dim of 1, or without
 * it. */
bool uir_iinstruction_ends_run(const uir_igraph *igraph, const uir_iinstruction *instruction);
/* Whether `next` may follow the `count` instructions of a run (0: start one). All have the same shape. Within the run,
 * a written pointer is accessed by one slice only. After a reduction only reductions follow, and nothing reads their
 * results. */
bool uir_igraph_run_accepts(const uir_igraph *igraph, const uir_iinstruction *const *run, uint32_t count,
                            const uir_iinstruction *next);
/* Same pointer, box, fill and block. Windows are never equal: their axes are their own. */
bool uir_islice_equal(const uir_islice *a, const uir_islice *b);

#endif
