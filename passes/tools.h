/* The clean-up passes' shared tools: replacing values, dropping nodes, walking graphs.
 *
 * In: a module of primitives that verifies. Out: a smaller one with the same results. Nodes are dropped from their
 * graph's list; handles stay valid, so a pass may keep tables by handle. */
#ifndef UIR_PASSES_TOOLS_H
#define UIR_PASSES_TOOLS_H

#include "ir/graph/build.h"

/* Values to be replaced by others, by handle. Chains are followed. */
typedef struct uir_replacement {
    uir_module *module;
    uir_value_id *to; /* none: stays */
    uint32_t count;   /* values made later are never replaced */
} uir_replacement;

uir_status uir_replacement_init(uir_replacement *replacement, uir_module *module, uir_arena *scratch);
/* Only between values of one type (see uir_types_interchangeable). Where they lie in different layouts the one that
 * stays is row-major, which all that reads them takes. */
void uir_replacement_set(uir_replacement *replacement, uir_value_id from, uir_value_id to);
/* Rewrites a node's operands. */
uir_status uir_replacement_apply_node(const uir_replacement *replacement, uir_module *module, uir_node_id node);
/* Rewrites the operands of all nodes and the outputs of all graphs. */
uir_status uir_replacement_apply(const uir_replacement *replacement, uir_module *module);

/* Whether a value of one type may stand where the other is expected: kind, dtype, rank, provably equal dims. */
bool uir_types_interchangeable(const uir_module *module, const uir_type *a, const uir_type *b);
/* Keeps the nodes for which `keep` (by node handle) is true. */
void uir_graph_keep_nodes(uir_module *module, uir_graph_id graph, const bool *keep);
/* Rewrites node by node: `rewrite` gives the value that stands for the (one) result of `node`, one that was there or
 * one built with `builder`, whose nodes come to stand right before the node; or the none value. Values of another type
 * than the result are not taken. `taken` (may be NULL) hears of each replacement. */
typedef struct uir_rewriter {
    uir_value_id (*rewrite)(void *user, uir_builder *builder, const uir_node_info *node);
    uir_status (*taken)(void *user, uir_value_id from, uir_value_id to);
    void *user;
} uir_rewriter;
uir_status uir_rewrite_nodes(uir_module *module, uir_pass_context *context, const uir_rewriter *rewriter);
/* How often each value is used, by handle: operands of nodes and outputs of graphs. */
uir_status uir_count_uses(const uir_module *module, uir_arena *scratch, uint32_t **out_uses);
/* The value's maker when it is this primitive, else NULL. */
const uir_node_info *uir_value_made_by(const uir_module *module, uir_value_id value, uir_op op);

/* A constant that was made and that nobody reads for now: a large one lies in a file from here on, and need not stay in
 * memory. NULL is fine. */
void uir_put_aside(uir_tensor *constant);

#define UIR_PASS(name, function, purpose) uir_status function(uir_module *module, uir_pass_context *context);
#include "passes/cleanup.def"
#undef UIR_PASS

#endif
