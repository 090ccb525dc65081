/* What a machine's instructions lack, in terms of what they have, where that takes memory of its own: on the graph, so
 * that it is fused and scheduled like all else. What takes none are the substitutes of lower/select/elementwise.def. */
#ifndef UIR_PASSES_LEGALISE_H
#define UIR_PASSES_LEGALISE_H

#include "ir/graph/graph.h"

/* In: a module of primitives; the context's device. Out: the same results, bit by bit. */
uir_status uir_legalise(uir_module *module, uir_pass_context *context);

#endif
