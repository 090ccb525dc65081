/* Copy forwarding: local pointers that only ever hold a copy of an argument's rows. In: an iGraph. Out: for each
 * pointer the move that fills it, so that its readers may read the argument instead. It is used where a cache backs the
 * on-chip memory, which such a move need not fill. */
#ifndef UIR_IR_IGRAPH_FORWARDING_H
#define UIR_IR_IGRAPH_FORWARDING_H

#include "ir/kernel/igraph.h"

/* `out_moves` has an entry per pointer: the one instruction that writes it, slices[0] from slices[1], or NULL if it is
 * not a mirror. A local pointer is a mirror under these conditions.
 *   - One unguarded move writes it, row by row, from an argument that the kernel never writes and that no result
 *     aliases.
 *   - Every read follows that move, in its list of items or deeper, and has the same slice.
 *   - No product reads it, since the layout of a product's operands is chosen on purpose. */
uir_status uir_igraph_find_forwarded(const uir_igraph *igraph, const uir_iinstruction **out_moves);

#endif
