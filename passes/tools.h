/* Tools of the clean-up passes: replacing values, dropping nodes, rewriting graphs.
 *
 * In: a module of primitives that verifies. Out: a smaller one with the same results. Nodes are dropped from their
 * graph's list; handles remain valid, so a pass may keep tables by handle. */
#ifndef UIR_PASSES_TOOLS_H
#define UIR_PASSES_TOOLS_H

#include "ir/graph/build.h"

/* Values to be replaced by others, by handle. Chains are followed. */
typedef struct uir_replacement {
    uir_module *module;
    uir_value_id *to; /* none: not replaced */
    uint32_t count;   /* later values are never replaced */
} uir_replacement;

uir_status uir_replacement_init(uir_replacement *replacement, uir_module *module, uir_arena *scratch);
/* Notes a replacement, of values of one type (see uir_types_interchangeable). If their layouts differ, the remaining
 * value becomes row-major, which all its readers accept. */
void uir_replacement_set(uir_replacement *replacement, uir_value_id from, uir_value_id to);
/* Replaces a node's operands. */
uir_status uir_replacement_apply_node(const uir_replacement *replacement, uir_module *module, uir_node_id node);
/* Replaces the operands of all nodes and the outputs of all graphs. */
uir_status uir_replacement_apply(const uir_replacement *replacement, uir_module *module);

/* Whether values of two types may replace each other: same kind, dtype and rank, provably equal dims. */
bool uir_types_interchangeable(const uir_module *module, const uir_type *a, const uir_type *b);
/* Keeps the nodes for which `keep` (by node handle) is true. */
void uir_graph_keep_nodes(uir_module *module, uir_graph_id graph, const bool *keep);
/* Rewrites node by node. `rewrite` returns a replacement for the only result of `node`: an existing value, or a new one
 * made with `builder`, whose nodes are inserted right before the node; or the none value. A value of another type is
 * ignored. `taken` (may be NULL) is called for each replacement. */
typedef struct uir_rewriter {
    uir_value_id (*rewrite)(void *user, uir_builder *builder, const uir_node_info *node);
    uir_status (*taken)(void *user, uir_value_id from, uir_value_id to);
    void *user;
} uir_rewriter;
uir_status uir_rewrite_nodes(uir_module *module, uir_pass_context *context, const uir_rewriter *rewriter);
/* The number of uses of each value, by handle: operands of nodes and outputs of graphs. */
uir_status uir_count_uses(const uir_module *module, uir_arena *scratch, uint32_t **out_uses);
/* The node that computes the value if it is this primitive, else NULL. */
const uir_node_info *uir_value_made_by(const uir_module *module, uir_value_id value, uir_op op);

/* Moves the data of a large constant that is not read for now to a file, so that it need not remain in memory. NULL is
 * accepted. */
void uir_put_aside(uir_tensor *constant);

#define UIR_PASS(name, function, purpose) uir_status function(uir_module *module, uir_pass_context *context);
#include "passes/cleanup.def"
#undef UIR_PASS

#endif
