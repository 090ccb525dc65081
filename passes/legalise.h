/* Legalisation: rewrites products that a machine lacks as ones it has, if that needs intermediate tensors. It works on
 * the graph, so that these are fused and scheduled like all others. Substitutes without intermediate tensors are in
 * lower/select/elementwise.def. */
#ifndef UIR_PASSES_LEGALISE_H
#define UIR_PASSES_LEGALISE_H

#include "ir/graph/graph.h"

/* In: a module of primitives; the context's device. Out: the same results, to the bit. */
uir_status uir_legalise(uir_module *module, uir_pass_context *context);

#endif
