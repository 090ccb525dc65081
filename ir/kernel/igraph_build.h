/* Building kernels in memory: phases and the items in them, one after the other.
 *
 * In: an iGraph, whose symbols the caller adds (uir_igraph_add_symbol) before what uses them. Out: its phases, items
 * and instructions, in the order of the calls; pointers, requires and candidates are pushed by the caller, at any time
 * before the kernel is verified. A kernel that grows beyond what a text may hold is refused: LIMIT. */
#ifndef UIR_IR_IGRAPH_BUILD_H
#define UIR_IR_IGRAPH_BUILD_H

#include "ir/kernel/igraph.h"

typedef struct uir_ibuilder {
    uir_igraph *igraph;
    uint32_t depth; /* blocks that are open; 0: between phases */
    struct {
        uint32_t item; /* whose block it is; UINT32_MAX: the phase's */
        uint32_t last; /* item in it; UINT32_MAX: none yet */
    } open[UIR_IGRAPH_MAX_DEPTH];
} uir_ibuilder;

void uir_ibuilder_init(uir_ibuilder *builder, uir_igraph *igraph);
/* Opens a phase of one body. `parallel`: its axes, outermost first. */
uir_status uir_ibuilder_begin_phase(uir_ibuilder *builder, const uir_iparallel *parallel, uint32_t count,
                                    uint32_t unit_kind);
/* An item at the end of the block that is open. */
uir_status uir_ibuilder_add(uir_ibuilder *builder, const uir_iitem *item);
uir_status uir_ibuilder_add_instruction(uir_ibuilder *builder, const uir_iinstruction *instruction,
                                        const uir_iguard *guard);
/* The same for one whose block is open from now on: LOOP, IF, RUN. */
uir_status uir_ibuilder_begin(uir_ibuilder *builder, const uir_iitem *item);
/* Closes the block, or the phase, that was opened last. */
void uir_ibuilder_end(uir_ibuilder *builder);

#endif
