/* Local pointers that mirror an argument: all that they ever hold is a copy of its rows. In: an iGraph. Out: for each
 * pointer the move that fills it, so that who reads the one may read the other. Where the memory on the chip is a
 * cache, what such a move does has happened by the first read; elsewhere nobody asks. */
#ifndef UIR_IR_IGRAPH_FORWARDING_H
#define UIR_IR_IGRAPH_FORWARDING_H

#include "ir/kernel/igraph.h"

/* `out_moves` has an entry for each pointer: the one instruction that writes it, slices[0] from slices[1], or NULL
 * where it is no mirror. A local pointer is one where one unguarded move writes it, row by row from an argument that
 * the kernel never writes and with which no result shares its memory; every read comes behind that move, in its list of
 * items or deeper, and takes the very slice that it wrote; and no product reads it, whose operands are laid out on
 * purpose. */
uir_status uir_igraph_find_forwarded(const uir_igraph *igraph, const uir_iinstruction **out_moves);

#endif
