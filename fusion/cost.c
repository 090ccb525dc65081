/* What a cluster costs: bytes moved, at nominal sizes where the sizes are open. */
#include "fusion/clusters.h"
#include "ir/graph/origins.h"

#include <math.h>

uir_status uir_clusters_init_cost(uir_clusters *c) {
    UIR_TRY(uir_nominal_sizes(c->module->dims, c->arena, &c->nominal, &c->symbol_count));
    UIR_TRY_ALLOCATE(c->bytes, uir_arena_allocate_array(c->arena, c->value_count + 1u, sizeof *c->bytes));
    UIR_TRY_ALLOCATE(c->met, uir_arena_allocate_array(c->arena, c->value_count + 1u, sizeof *c->met));
    UIR_TRY_ALLOCATE(c->bytes_met, uir_arena_allocate_array(c->arena, c->value_count + 1u, sizeof *c->bytes_met));
    return UIR_STATUS_OK;
}

double uir_clusters_bytes(uir_clusters *c, uir_value_id value) {
    if (c->bytes[value.id] == 0) {
        const uir_type *type = uir_value_type(c->module, value);
        c->bytes[value.id] =
            uir_nominal_elements(c->module->dims, c->nominal, c->symbol_count, type) * uir_dtype_bits(type->dtype) / 8;
    }
    return c->bytes[value.id];
}

/* Of a slice or a gather's data only what is picked is read. */
static double bytes_read(uir_clusters *c, uint32_t place, uint32_t index) {
    const uir_node_info *node = uir_clusters_node(c, place);
    uir_fusion_class class = c->items[place].class;
    double all = uir_clusters_bytes(c, node->inputs[index]);
    bool picks = class == UIR_FUSION_CLASS_SLICE || (class == UIR_FUSION_CLASS_GATHER && !index);
    return picks ? fmin(all, uir_clusters_bytes(c, node->outputs[0])) : all;
}

/* Whether an operand of this turn, before this one, reads as much of the value. */
static bool is_read_before(uir_clusters *c, uir_value_id value, double bytes) {
    bool met = c->met[value.id] == c->turn, covered = met && c->bytes_met[value.id] >= bytes;
    c->met[value.id] = c->turn;
    if (!covered) c->bytes_met[value.id] = bytes;
    return covered;
}

double uir_candidate_traffic(uir_clusters *c, const uir_candidate *candidate) {
    double sum = 0;
    c->turn++;
    for (uint32_t i = 0; i < candidate->places.count; i++) {
        uint32_t place = candidate->places.data[i];
        const uir_node_info *node = uir_clusters_node(c, place);
        for (uint32_t k = 0; k < node->input_count; k++) {
            uint32_t maker = uir_clusters_maker(c, node->inputs[k]);
            if (maker != UIR_FUSION_NONE && uir_node_set_has(&candidate->places, maker)) continue;
            double bytes = bytes_read(c, place, k);
            if (!is_read_before(c, node->inputs[k], bytes)) sum += bytes;
        }
        if (uir_candidate_gives(c, candidate, place)) sum += uir_clusters_bytes(c, node->outputs[0]);
    }
    return sum;
}
