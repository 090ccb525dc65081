/* Inside the legality function: a candidate as its checks inspect it. legality.c goes along the checks,
 * legality_kinds.c has those of nodes, legality_axes.c those of axes. */
#ifndef UIR_FUSION_LEGALITY_H
#define UIR_FUSION_LEGALITY_H

#include "fusion/clusters.h"
#include "ir/graph/axes.h"

typedef enum uir_fusion_role {
    UIR_FUSION_ROLE_SIDE,     /* leads to what depends on the seed, does not depend on it */
    UIR_FUSION_ROLE_PROLOGUE, /* leads to the seed */
    UIR_FUSION_ROLE_SEED,     /* a reduction or contraction */
    UIR_FUSION_ROLE_AFTER,    /* depends on one */
} uir_fusion_role;

/* What the checks of fusion.def tell apart. */
typedef enum uir_fusion_kind {
    UIR_FUSION_KIND_PLAIN,
    UIR_FUSION_KIND_REDUCTION,
    UIR_FUSION_KIND_SIBLINGS,
    UIR_FUSION_KIND_ATTENTION,
    UIR_FUSION_KIND_ANY,
} uir_fusion_kind;

typedef struct uir_fusion_axis_set {
    bool *has;
    uint32_t count;
} uir_fusion_axis_set;

typedef struct uir_fusion_reduce_axes {
    uir_fusion_axis_set kept, all; /* S, and S with R */
} uir_fusion_reduce_axes;

typedef struct uir_inspection {
    uir_clusters *c;
    const uir_candidate *candidate;
    uir_arena *arena;
    uir_fusion_role *roles; /* per place of the candidate */
    uint32_t contractions, reduces, opaques, concats;
    uir_fusion_kind kind;
    uir_axes axes;
    bool has_axes;
    uir_fusion_reduce_axes reduced; /* of a kind with reductions */
    uir_node_id *nodes;
} uir_inspection;

/* Indices are those of the candidate's places. */
static inline uint32_t uir_inspection_count(const uir_inspection *l) {
    return l->candidate->places.count;
}
static inline uint32_t uir_inspection_place(const uir_inspection *l, uint32_t index) {
    return l->candidate->places.data[index];
}
static inline const uir_node_info *uir_inspection_node(const uir_inspection *l, uint32_t index) {
    return uir_clusters_node(l->c, uir_inspection_place(l, index));
}
static inline uir_fusion_class uir_inspection_class(const uir_inspection *l, uint32_t index) {
    return l->c->items[uir_inspection_place(l, index)].class;
}
/* The candidate's index of an operand's maker; NONE: it comes from outside. */
uint32_t uir_inspection_maker(const uir_inspection *l, uint32_t index, uint32_t operand);
/* Whether the place's results leave the candidate. */
bool uir_inspection_gives(const uir_inspection *l, uint32_t index);
/* Whether a node is another one, or depends on it within the candidate. */
bool uir_inspection_depends(const uir_inspection *l, uint32_t index, uint32_t on);

/* ---- the checks of fusion.def (legality_kinds.c, legality_axes.c) ---- */
#define UIR_FUSION_CHECK(clause, kind, needs_axes, check, purpose)                                                     \
    uir_status uir_fusion_check_##check(uir_inspection *l, bool *out_fits);
#include "fusion/fusion.def"

#endif
