/* Fusion: makes groups of the nodes that one kernel computes.
 *
 * In: a module of primitives that verifies, cleaned up. Out: the same module, changed in place, with `group` nodes
 * (ir/graph/ops_primitive.def) and their body graphs in all graphs, bodies of control flow included. Nodes that no
 * kernel computes remain single: dims and the nodes that bind them, control flow, host ops, and reshapes between
 * groups, which move no data. When interpreted, both have the same results to the bit: a group's body has the same
 * primitives on the same operands.
 *
 * Bodies use scalar constants of the graphs around them directly; all other values are operands of the group, once
 * each. A value is a result of its group if another node uses it. A `trace` attribute has a string per step that made a
 * group of more than one node. */
#ifndef UIR_FUSION_FUSION_H
#define UIR_FUSION_FUSION_H

#include "ir/machine/device.h"
#include "ir/graph/graph.h"

/* The rewrites in their order, and the clauses of the legality function (described in fusion.def). */
typedef enum uir_fusion_rewrite {
#define UIR_FUSION_REWRITE(constant, name, standard, purpose) UIR_FUSION_##constant,
#include "fusion/fusion.def"
    UIR_FUSION_REWRITE_COUNT
} uir_fusion_rewrite;

typedef enum uir_fusion_clause {
#define UIR_FUSION_CLAUSE(constant, name, purpose) UIR_FUSION_CLAUSE_##constant,
#include "fusion/fusion.def"
    UIR_FUSION_CLAUSE_COUNT
} uir_fusion_clause;

const char *uir_fusion_rewrite_name(uir_fusion_rewrite rewrite);
const char *uir_fusion_clause_name(uir_fusion_clause clause);
/* Bits, 1u << rewrite, of the rewrites that run by default. */
uint32_t uir_fusion_standard_rewrites(void);

typedef struct uir_fusion_options {
    const uir_machine *machine; /* rows must fit its spaces; NULL: not checked */
    /* The machine of the host beside it, whose kernels compute the nodes of a dtype that `machine` lacks: those are in
     * groups of their own. NULL: none. */
    const uir_machine *host;
    uint32_t rewrites_off;  /* bits of standard rewrites to disable */
    uint32_t rewrites_on;   /* bits of other rewrites to enable */
    uint32_t clauses_off;   /* bits, for tests: the resulting groups need not be right */
    bool within_nodes;      /* all nodes of a group come from one node of the source */
    uint32_t most_operands; /* maximum of operands plus results of a group; 0: 64 */
    uint32_t most_nodes;    /* maximum of a group, so that time is proportional to the graph's nodes; 0: 128 */
    uint64_t *fired;        /* UIR_FUSION_REWRITE_COUNT counters, incremented; may be NULL */
} uir_fusion_options;

/* Fuses a module. `options` may be NULL. A module that already has groups does not change. */
uir_status uir_fuse(uir_module *module, const uir_fusion_options *options, uir_diagnostics *diagnostics);

/* Whether only the host's kernels can compute the node, by the dtypes of its operands and results; `*out_dtype`: the
 * first that the machine lacks. */
bool uir_fusion_is_for_host(const uir_module *module, const uir_node_info *node, const uir_fusion_options *options,
                            uir_dtype *out_dtype);

/* Splits groups that have no kernel: their nodes are fused again by `options`, which should allow less than those that
 * made them. New groups have higher numbers than all earlier nodes. Groups of one node do not change, nor those of a
 * text with an output that is repeated or not computed by the body (uir_can_unfuse). */
uir_status uir_unfuse(uir_module *module, const uir_node_id *groups, uint32_t count, const uir_fusion_options *options,
                      uir_diagnostics *diagnostics);
bool uir_can_unfuse(const uir_module *module, uir_node_id group);
/* Adds layout conversions before and after these groups, which no kernel computes, so that they read and write
 * row-major values. The conversions become groups of their own, with higher numbers than all earlier nodes. */
uir_status uir_convert_around(uir_module *module, const uir_node_id *groups, uint32_t count,
                              const uir_fusion_options *options, uir_diagnostics *diagnostics);

#endif
