/* The threads that execute a unit together: which of them computes which element (docs/igraph.md, "Threads").
 *
 * In: an instruction of a verified kernel whose machine has units of several threads. Out: the slice whose owners
 * execute it, what each slice's elements have to do with their owners, and whether two uses of a pointer may meet
 * without a barrier between. The pass that writes barriers, the verifier that requires them and the interpreter that
 * finds those that are missing share this. */
#ifndef UIR_IR_IGRAPH_THREADS_H
#define UIR_IR_IGRAPH_THREADS_H

#include "ir/kernel/igraph_order.h"

#define UIR_ITHREADS_RESULT UINT32_MAX /* no owners: the elements of the result in turn */

/* Threads of a unit of the kernel's machine; 1: nothing here matters. */
static inline uint32_t uir_ithreads_count(const uir_igraph *igraph) {
    return uir_machine_threads(igraph->machine);
}
/* Whether each thread has a copy of the pointer: one element, in registers. */
bool uir_ithreads_is_copied(const uir_igraph *igraph, uint32_t pointer);
/* Whether elements of the pointer have owners: it is of a unit's own, on the chip. */
bool uir_ithreads_has_owners(const uir_igraph *igraph, uint32_t pointer);
/* The slice (an index) whose elements' owners execute the instruction; UIR_ITHREADS_RESULT: none. Reductions of rows
 * and scans have none. */
uint32_t uir_ithreads_find_frame(const uir_igraph *igraph, const uir_iinstruction *instruction);
/* Per dim of the pointer the slice's dim that goes along it; UINT32_MAX: none. False: a window has other axes. */
bool uir_ithreads_find_dims(const uir_igraph *igraph, const uir_islice *slice, uint32_t *out_dims);
/* Whether each element that the instruction touches through a slice is touched by its owner alone. */
bool uir_ithreads_is_own(const uir_igraph *igraph, const uir_iinstruction *instruction, uint32_t slice);
/* Whether all threads meet at the instruction's end: a row reduction whose result each thread has. */
bool uir_ithreads_meet(const uir_igraph *igraph, const uir_iinstruction *instruction);

/* Whether the elements of both instructions' results that go together are of one thread, so that one pass over the
 * elements may compute both. */
bool uir_ithreads_go_alike(const uir_igraph *igraph, const uir_iinstruction *a, const uir_iinstruction *b);

/* Whether two uses need a barrier between: different threads may touch one element, and one of them writes. `a` comes
 * first. `around`: the block of a loop, in whose earlier iteration `a` was; UINT32_MAX: both are in one iteration of
 * all loops. */
bool uir_ithreads_conflict(const uir_iorder *order, const uir_iorder_use *a, const uir_iorder_use *b, uint32_t around);
/* Whether a barrier stands between the uses, wherever both run. */
bool uir_ithreads_are_apart(const uir_iorder *order, const uir_iorder_use *a, const uir_iorder_use *b, uint32_t around);

#endif
