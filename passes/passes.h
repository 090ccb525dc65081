/* passes: what is done to a module of primitives before it is cut into groups.
 *
 * In: a module of primitives that verifies. Out: the same module, smaller or faster, with the same results. */
#ifndef UIR_PASSES_PASSES_H
#define UIR_PASSES_PASSES_H

#include "ir/graph/graph.h"

/* The clean-up passes in their order (table in cleanup.def): fold constants, merge equal nodes, fold BatchNorm into
 * contractions, drop dead ones. */
extern const uir_pass uir_cleanup_passes[];
extern const size_t uir_cleanup_pass_count;

#endif
