/* The clean-up passes over a module of primitives, which precede fusion.
 *
 * In: a module of primitives that verifies. Out: the same module, smaller or faster, with the same results. */
#ifndef UIR_PASSES_PASSES_H
#define UIR_PASSES_PASSES_H

#include "ir/graph/graph.h"

/* The passes in the order of their table, cleanup.def. */
extern const uir_pass uir_cleanup_passes[];
extern const size_t uir_cleanup_pass_count;

#endif
