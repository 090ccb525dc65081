/* Fusion: nodes that one kernel computes become groups.
 *
 * In: a module of primitives that verifies, cleaned up. Out: the same module, in place, whose graphs hold `group` nodes
 * (ir/graph/ops_primitive.def) with body graphs; every body that control flow has is treated alike. What no kernel computes
 * stays a node of its own: dims and what binds them, control flow, host ops, and reshapes between groups, which move
 * nothing. Results are the same to the bit when both are interpreted: a group's body holds the same primitives on the
 * same operands.
 *
 * Bodies see scalar constants of the graphs around them directly; all else comes in as the group's operands, once each.
 * A value is a result of its group when something outside uses it. A `trace` attribute says in words, a string a step,
 * how a group of more than one node came about. */
#ifndef UIR_FUSION_FUSION_H
#define UIR_FUSION_FUSION_H

#include "ir/machine/device.h"
#include "ir/graph/graph.h"

/* The rewrites in their order, and the clauses of the legality function (fusion.def says what each means). */
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
/* Bits, 1u << rewrite, of the rewrites that run when nothing is said. */
uint32_t uir_fusion_standard_rewrites(void);

typedef struct uir_fusion_options {
    const uir_device *device; /* what rows must fit; NULL: not asked */
    uint32_t rewrites_off;    /* bits of the standard rewrites that do not run */
    uint32_t rewrites_on;     /* bits of others that do */
    uint32_t clauses_off;     /* bits; for tests: what is then made need not be right */
    bool within_nodes;        /* a group holds what became of one node of the source, and nothing else */
    uint32_t most_operands;   /* operands plus results of a group; 0: 64 */
    uint32_t most_nodes;      /* of a group, so that a graph takes time proportional to its nodes; 0: 128 */
    uint64_t *fired;          /* UIR_FUSION_REWRITE_COUNT counters, added to; may be NULL */
} uir_fusion_options;

/* `options` may be NULL. A module that has groups already is left as it is. */
uir_status uir_fuse(uir_module *module, const uir_fusion_options *options, uir_diagnostics *diagnostics);

/* Takes groups apart of which no kernel could be made: their nodes become groups by `options` again, which should allow
 * less than what made them. New groups have higher numbers than all nodes had; what cannot be taken apart (a group of
 * one node, or a text's own) stays. */
uir_status uir_unfuse(uir_module *module, const uir_node_id *groups, uint32_t count, const uir_fusion_options *options,
                      uir_diagnostics *diagnostics);
bool uir_can_unfuse(const uir_module *module, uir_node_id group);
/* What no kernel computes reads and writes what is row-major: conversions before and after these groups, to and from
 * the layouts of values, which become groups of their own, with higher numbers than all nodes had. */
uir_status uir_convert_around(uir_module *module, const uir_node_id *groups, uint32_t count,
                              const uir_fusion_options *options, uir_diagnostics *diagnostics);

#endif
