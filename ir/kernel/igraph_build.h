/* Builds kernels in memory: phases and their items, in order.
 *
 * In: an iGraph; the caller adds a symbol (uir_igraph_add_symbol) before its first use. Out: its phases, items and
 * instructions, in the order of the calls. The caller pushes pointers, requires and candidates itself, at any time
 * before the kernel is verified. LIMIT for a kernel over the limits of a text. */
#ifndef UIR_IR_IGRAPH_BUILD_H
#define UIR_IR_IGRAPH_BUILD_H

#include "ir/kernel/igraph.h"

typedef struct uir_ibuilder {
    uir_igraph *igraph;
    uint32_t depth; /* open blocks; 0: between phases */
    struct {
        uint32_t item; /* the block's item; UINT32_MAX: the phase */
        uint32_t last; /* its last item; UINT32_MAX: none yet */
    } open[UIR_IGRAPH_MAX_DEPTH];
} uir_ibuilder;

void uir_ibuilder_init(uir_ibuilder *builder, uir_igraph *igraph);
/* Opens a phase with one body. `parallel`: its axes, outermost first. */
uir_status uir_ibuilder_begin_phase(uir_ibuilder *builder, const uir_iparallel *parallel, uint32_t count,
                                    uint32_t unit_kind);
/* Appends an item to the open block. */
uir_status uir_ibuilder_add(uir_ibuilder *builder, const uir_iitem *item);
uir_status uir_ibuilder_add_instruction(uir_ibuilder *builder, const uir_iinstruction *instruction,
                                        const uir_iguard *guard);
/* The same for a LOOP, IF or RUN, and opens its block. */
uir_status uir_ibuilder_begin(uir_ibuilder *builder, const uir_iitem *item);
/* Closes the last opened block, or the phase. */
void uir_ibuilder_end(uir_ibuilder *builder);

#endif
