/* Candidates, and the one legality function: whether a candidate may be a group. It goes along the checks of
 * fusion.def, each of which belongs to a clause (legality_kinds.c, legality_axes.c); what each kind of group holds is
 * the contract with lowering (README.md). */
#include "fusion/legality.h"

enum { MOST_NODES = 128 };

/* ---- sides ---- */
bool uir_fusion_is_for_host(const uir_module *module, const uir_node_info *node, const uir_fusion_options *options,
                            uir_dtype *out_dtype) {
    for (uint32_t i = 0; options->host && i < node->input_count + node->output_count; i++) {
        uir_value_id value = i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
        if (!value.id || uir_value_type(module, value)->kind != UIR_VALUE_TENSOR) continue;
        *out_dtype = uir_value_type(module, value)->dtype;
        if (!uir_machine_has_dtype(options->machine, *out_dtype) && uir_machine_has_dtype(options->host, *out_dtype))
            return true;
    }
    return false;
}

/* ---- candidates ---- */
uir_status uir_candidate_of(uir_clusters *c, uint32_t cluster, uir_candidate *out_candidate) {
    *out_candidate = (uir_candidate){0};
    return uir_candidate_add(c, out_candidate, cluster);
}

uir_status uir_candidate_add(uir_clusters *c, uir_candidate *candidate, uint32_t cluster) {
    const uir_node_set *places = &c->clusters.data[cluster].places;
    for (uint32_t i = 0; i < places->count; i++)
        UIR_TRY(uir_node_set_add(c->arena, &candidate->places, places->data[i]));
    for (uint32_t i = 0; i < candidate->members.count; i++)
        if (candidate->members.data[i] == cluster) return UIR_STATUS_OK;
    return uir_vector_push(c->arena, &candidate->members, cluster);
}

static bool is_member(const uir_candidate *candidate, uint32_t cluster) {
    for (uint32_t i = 0; i < candidate->members.count; i++)
        if (candidate->members.data[i] == cluster) return true;
    return false;
}

bool uir_candidate_gives(const uir_clusters *c, const uir_candidate *candidate, uint32_t place) {
    const uir_fusion_item *item = &c->items[place];
    if (!is_member(candidate, item->home)) return false;
    const uir_node_info *node = uir_clusters_node(c, place);
    for (uint32_t i = 0; i < node->output_count; i++)
        if (c->is_result[node->outputs[i].id]) return true;
    for (uint32_t i = 0; i < item->users.count; i++) {
        const uir_node_set *where = &c->items[item->users.data[i]].where;
        for (uint32_t k = 0; k < where->count; k++) {
            if (is_member(candidate, where->data[k])) continue;
            if (!uir_node_set_has(&c->clusters.data[where->data[k]].places, place)) return true;
        }
    }
    return false;
}

bool uir_fusion_is_trivial(uir_fusion_class class) {
    return class >= UIR_FUSION_CLASS_ELEMENTWISE && class <= UIR_FUSION_CLASS_GATHER;
}

bool uir_clusters_is_trivial(const uir_clusters *c, uint32_t cluster) {
    const uir_cluster *of = &c->clusters.data[cluster];
    for (uint32_t i = 0; i < of->places.count; i++)
        if (!uir_fusion_is_trivial(c->items[of->places.data[i]].class)) return false;
    return of->places.count && !of->is_plain;
}

bool uir_candidate_fits(const uir_clusters *c, const uir_candidate *candidate) {
    uint32_t most = c->options->most_nodes ? c->options->most_nodes : MOST_NODES;
    return !uir_clusters_checks(c, UIR_FUSION_CLAUSE_WIDTH) || candidate->places.count <= most;
}

/* ---- a candidate inspected ---- */
/* The candidate's index of an operand's maker; NONE: it comes from outside. */
uint32_t uir_inspection_maker(const uir_inspection *l, uint32_t index, uint32_t operand) {
    uint32_t maker = uir_clusters_maker(l->c, uir_inspection_node(l, index)->inputs[operand]);
    if (maker == UIR_FUSION_NONE) return UIR_FUSION_NONE;
    uint32_t at = uir_node_set_find(&l->candidate->places, maker);
    return at < uir_inspection_count(l) && uir_inspection_place(l, at) == maker ? at : UIR_FUSION_NONE;
}

bool uir_inspection_gives(const uir_inspection *l, uint32_t index) {
    return uir_candidate_gives(l->c, l->candidate, uir_inspection_place(l, index));
}

bool uir_inspection_depends(const uir_inspection *l, uint32_t index, uint32_t on) {
    if (index == UIR_FUSION_NONE || index < on) return false;
    if (index == on) return true;
    for (uint32_t k = 0; k < uir_inspection_node(l, index)->input_count; k++)
        if (uir_inspection_depends(l, uir_inspection_maker(l, index, k), on)) return true;
    return false;
}

/* ---- all of it ---- */

static bool is_of_one_node(const uir_inspection *l) {
    for (uint32_t i = 1; i < uir_inspection_count(l); i++)
        if (!uir_inspection_node(l, i)->source ||
            uir_inspection_node(l, i)->source != uir_inspection_node(l, 0)->source)
            return false;
    return true;
}

/* The device computes all of it, or the host. */
static bool is_of_one_side(const uir_inspection *l) {
    const uir_fusion_options *options = l->c->options;
    uir_dtype dtype;
    if (!options->host || !uir_inspection_count(l)) return true;
    bool side = uir_fusion_is_for_host(l->c->module, uir_inspection_node(l, 0), options, &dtype);
    for (uint32_t i = 1; i < uir_inspection_count(l); i++)
        if (uir_fusion_is_for_host(l->c->module, uir_inspection_node(l, i), options, &dtype) != side) return false;
    return true;
}

/* A clause that is switched off forbids nothing; what its checks find out is there all the same. */
static uir_status check(uir_inspection *l, bool *out_legal) {
    static const struct {
        uir_fusion_clause clause;
        uir_fusion_kind kind;
        bool needs_axes;
        uir_status (*check)(uir_inspection *l, bool *out_fits);
    } rows[] = {
#define UIR_FUSION_CHECK(clause, kind, needs_axes, check, purpose)                                                     \
    {UIR_FUSION_CLAUSE_##clause, UIR_FUSION_KIND_##kind, needs_axes, uir_fusion_check_##check},
#include "fusion/fusion.def"
    };
    *out_legal = (!l->c->options->within_nodes || is_of_one_node(l)) && is_of_one_side(l);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && *out_legal; i++) {
        bool fits = true;
        if (rows[i].needs_axes && !l->has_axes) continue;
        if (rows[i].kind != UIR_FUSION_KIND_ANY && rows[i].kind != l->kind) continue;
        UIR_TRY(rows[i].check(l, &fits));
        *out_legal = fits || !uir_clusters_checks(l->c, rows[i].clause);
    }
    return UIR_STATUS_OK;
}

uir_status uir_candidate_is_legal(uir_clusters *c, const uir_candidate *candidate, bool *out_legal) {
    uir_arena scratch;
    uir_arena_init(&scratch, c->module->allocator);
    uir_inspection l = {.c = c, .candidate = candidate, .arena = &scratch};
    uir_status status = check(&l, out_legal);
    uir_arena_deinit(&scratch);
    return status;
}
