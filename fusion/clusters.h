/* The working state of fusion on one graph: its nodes by place, their uses, and the clusters that become groups.
 * Private to fusion/.
 *
 * In: a graph. Out: clusters, which the rewrites join; emit.c makes groups of them.
 *
 * A place is a node's index in the graph's list. Each place has one home cluster, which writes its results for other
 * clusters; recomputed nodes are in other clusters as well. Values used by a body of control flow count as used by its
 * node. */
#ifndef UIR_FUSION_CLUSTERS_H
#define UIR_FUSION_CLUSTERS_H

#include "fusion/fusion.h"

#define UIR_FUSION_NONE UINT32_MAX

typedef enum uir_fusion_class {
    UIR_FUSION_CLASS_PLAN, /* no kernel computes it */
    UIR_FUSION_CLASS_ELEMENTWISE,
    UIR_FUSION_CLASS_VIEW,
    UIR_FUSION_CLASS_RESHAPE,
    UIR_FUSION_CLASS_SLICE,
    UIR_FUSION_CLASS_IOTA,
    UIR_FUSION_CLASS_PAD,
    UIR_FUSION_CLASS_CONCAT,
    UIR_FUSION_CLASS_GATHER,
    UIR_FUSION_CLASS_REDUCE,
    UIR_FUSION_CLASS_CONTRACTION,
    UIR_FUSION_CLASS_OPAQUE,
} uir_fusion_class;

typedef uir_vector(uint32_t) uir_node_set;

typedef struct uir_fusion_item {
    uir_node_id node;
    uir_fusion_class class;
    bool is_heavy;
    uint32_t home;      /* cluster; NONE: recomputed by every reader */
    uir_node_set where; /* clusters that compute it, the home among them */
    uir_node_set uses;  /* places whose results it reads, or that bind dims it uses; sorted, each once */
    uir_node_set users; /* the inverse */
} uir_fusion_item;

typedef struct uir_cluster {
    uir_node_set places; /* sorted */
    bool is_plain;       /* unchanged: no group is made of it */
    uir_vector(const char *) trace;
} uir_cluster;

/* A set of places that may become a cluster: some whole clusters, and copies of single places. */
typedef struct uir_candidate {
    uir_node_set places;  /* sorted */
    uir_node_set members; /* clusters */
} uir_candidate;

typedef struct uir_clusters {
    uir_module *module;
    uir_graph_id graph;
    const uir_fusion_options *options;
    uint32_t rewrites; /* bits of the rewrites that run */
    uir_arena *arena;  /* lives as long as the work on this graph */
    uir_fusion_item *items;
    uint32_t count;
    uir_vector(uir_cluster) clusters; /* cluster i begins with only node i; emptied ones remain in the list */
    uint32_t *maker;                  /* by value: the place that computes it in this graph, or NONE */
    bool *is_result;                  /* by value: it is an output of the graph */
    uint32_t value_count;
    struct uir_cluster_order *order; /* order.c */
    double *bytes;                   /* by value: bytes at nominal sizes; 0: not computed yet */
    /* By value: the number of the last traversal of a candidate's operands that reached it, and the most bytes that
     * this read of it. */
    uint32_t *met;
    double *bytes_met;
    uint32_t turn;
    int64_t *nominal; /* by symbol */
    uint32_t symbol_count;
    uint64_t row_capacity; /* maximum bytes of a row that is used more than once; 0: any */
} uir_clusters;

uir_status uir_clusters_init(uir_clusters *c, uir_module *module, uir_graph_id graph, const uir_fusion_options *options,
                             uir_arena *arena);
static inline const uir_node_info *uir_clusters_node(const uir_clusters *c, uint32_t place) {
    return uir_node_get(c->module, c->items[place].node);
}
/* The place that computes the value in this graph; NONE: another graph, an input or a constant. */
static inline uint32_t uir_clusters_maker(const uir_clusters *c, uir_value_id value) {
    return value.id && value.id < c->value_count ? c->maker[value.id] : UIR_FUSION_NONE;
}
/* Whether the place is a cast that mma does itself, for both operands: as part of a product it costs nothing. */
bool uir_clusters_widens_factor(const uir_clusters *c, uint32_t place);
/* The same, or a cast of a stored constant. */
bool uir_clusters_widens_stored(const uir_clusters *c, uint32_t place);
/* The index of the first place >= `place`. */
uint32_t uir_node_set_find(const uir_node_set *places, uint32_t place);
bool uir_node_set_has(const uir_node_set *places, uint32_t place);
/* Whether the value is a constant that bodies may use directly. */
bool uir_fusion_is_scalar_constant(const uir_module *module, uir_value_id value);

/* ---- order (order.c) ---- */
uir_status uir_clusters_init_order(uir_clusters *c);
/* Whether joining the members would make a cycle between clusters; true too if the search takes too long. */
bool uir_candidate_has_cycle(const uir_clusters *c, const uir_candidate *candidate);
/* Joins all members into the first one; `line` (not NULL) is added to its trace. */
uir_status uir_clusters_join(uir_clusters *c, const uir_node_set *members, const char *line);
/* Makes the cluster compute the place too. */
uir_status uir_clusters_copy(uir_clusters *c, uint32_t cluster, uint32_t place, const char *line);
/* Removes a place from a cluster; a place without a home then gets a cluster of its own. */
uir_status uir_clusters_drop(uir_clusters *c, uint32_t cluster, uint32_t place);
/* Removes places from home clusters whose results nothing reads any more. */
void uir_clusters_sweep(uir_clusters *c);
uir_status uir_node_set_add(uir_arena *arena, uir_node_set *places, uint32_t place); /* sorted, once */

/* ---- candidates, cost and legality (legality.c, cost.c) ---- */
uir_status uir_candidate_of(uir_clusters *c, uint32_t cluster, uir_candidate *out_candidate);
/* Whether it has no more nodes than a kernel may have. */
bool uir_candidate_fits(const uir_clusters *c, const uir_candidate *candidate);
uir_status uir_candidate_add(uir_clusters *c, uir_candidate *candidate, uint32_t cluster);
/* Whether the place's results are outputs of the graph, or read by a cluster that does not compute them itself, were
 * the candidate a cluster. */
bool uir_candidate_gives(const uir_clusters *c, const uir_candidate *candidate, uint32_t place);
bool uir_clusters_is_trivial(const uir_clusters *c, uint32_t cluster);
bool uir_fusion_is_trivial(uir_fusion_class class);
/* Checks every clause except the disabled ones. */
uir_status uir_candidate_is_legal(uir_clusters *c, const uir_candidate *candidate, bool *out_legal);
uir_status uir_clusters_init_cost(uir_clusters *c);
double uir_clusters_bytes(uir_clusters *c, uir_value_id value);
/* Bytes read and written by the candidate as one kernel. */
double uir_candidate_traffic(uir_clusters *c, const uir_candidate *candidate);
static inline bool uir_clusters_checks(const uir_clusters *c, uir_fusion_clause clause) {
    return !(c->options->clauses_off >> clause & 1);
}

/* The rewrites (rewrites.c) and the last step (emit.c). */
uir_status uir_clusters_rewrite(uir_clusters *c);
uir_status uir_clusters_emit(uir_clusters *c, uir_diagnostics *diagnostics);
/* Fuses one graph (fuse.c); its existing groups do not change. */
uir_status uir_fuse_graph(uir_module *module, uir_graph_id graph, const uir_fusion_options *options,
                          uir_diagnostics *diagnostics, uir_arena *arena);

#endif
