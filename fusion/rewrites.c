/* The rewrites that join clusters. */
#include "fusion/clusters.h"

/* A reshape by itself moves nothing. */
static void leave_reshapes(uir_clusters *c) {
    for (uint32_t i = 0; i < c->clusters.count; i++) {
        uir_cluster *cluster = &c->clusters.data[i];
        bool moves = false;
        for (uint32_t k = 0; k < cluster->places.count; k++)
            moves |= c->items[cluster->places.data[k]].class != UIR_FUSION_CLASS_RESHAPE;
        if (!moves) cluster->is_plain = true;
    }
}

uir_status uir_clusters_rewrite(uir_clusters *c) {
    leave_reshapes(c);
    return UIR_STATUS_OK;
}
