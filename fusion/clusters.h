/* The working state of fusion on one graph: its nodes by place, who uses what, and the clusters that become groups.
 *
 * In: a graph. Out: clusters, which the rewrites join; emit.c makes them groups. Private to fusion/.
 *
 * A place is a node's index in the graph's list. Each place has one home cluster, the one that gives its results to
 * others; recomputed nodes are in other clusters as well. What a body of control flow uses, its node uses. */
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

typedef uir_vector(uint32_t) uir_places;

typedef struct uir_fusion_item {
    uir_node_id node;
    uir_fusion_class class;
    uint32_t home;    /* cluster */
    uir_places uses;  /* places whose results it reads, or that bind what it speaks of; sorted, each once */
    uir_places users; /* the other way */
} uir_fusion_item;

typedef struct uir_cluster {
    uir_places places; /* sorted */
    bool is_plain;     /* stays as it is: no group is made of it */
    uir_vector(const char *) trace;
} uir_cluster;

typedef struct uir_clusters {
    uir_module *module;
    uir_graph_id graph;
    const uir_fusion_options *options;
    uint32_t rewrites; /* bits that run */
    uir_arena *arena;  /* of this graph's work */
    uir_fusion_item *items;
    uint32_t count;
    uir_vector(uir_cluster) clusters; /* cluster i begins as node i alone; emptied ones stay in the list */
    uint32_t *maker;                  /* by value: the place that makes it here, or NONE */
    bool *is_result;                  /* by value: the graph's own result */
    uint32_t value_count;
} uir_clusters;

uir_status uir_clusters_init(uir_clusters *c, uir_module *module, uir_graph_id graph, const uir_fusion_options *options,
                             uir_arena *arena);
static inline const uir_node_info *uir_clusters_node(const uir_clusters *c, uint32_t place) {
    return uir_node_get(c->module, c->items[place].node);
}
/* The place that makes the value in this graph; NONE: it comes from elsewhere. */
static inline uint32_t uir_clusters_maker(const uir_clusters *c, uir_value_id value) {
    return value.id && value.id < c->value_count ? c->maker[value.id] : UIR_FUSION_NONE;
}
bool uir_places_has(const uir_places *places, uint32_t place);
/* Whether the value is a constant that bodies may use directly. */
bool uir_fusion_is_scalar_constant(const uir_module *module, uir_value_id value);

/* The rewrites (rewrites.c) and the end (emit.c). */
uir_status uir_clusters_rewrite(uir_clusters *c);
uir_status uir_clusters_emit(uir_clusters *c, uir_diagnostics *diagnostics);

#endif
