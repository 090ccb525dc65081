/* The one legality function: whether a candidate may be a group. It goes along the checks of fusion.def, each of which
 * belongs to a clause; what each kind of group holds is the contract with lowering (README.md). */
#include "fusion/clusters.h"
#include "ir/graph/axes.h"

#include <math.h>
#include <string.h>

enum { MOST_OPERANDS = 64, MOST_NODES = 128, MOST_SIBLINGS = 8 };

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

/* ---- a candidate inspected ---- */
typedef enum place_role {
    ROLE_SIDE,     /* leads to what depends on the seed, does not depend on it */
    ROLE_PROLOGUE, /* leads to the seed */
    ROLE_SEED,     /* a reduction or contraction */
    ROLE_AFTER,    /* depends on one */
} place_role;

/* What the checks of fusion.def tell apart. */
typedef enum uir_fusion_kind { KIND_PLAIN, KIND_REDUCTION, KIND_SIBLINGS, KIND_ATTENTION, KIND_ANY } uir_fusion_kind;

typedef struct axis_set {
    bool *has;
    uint32_t count;
} axis_set;

typedef struct reduce_axes {
    axis_set kept, all; /* S, and S with R */
} reduce_axes;

typedef struct inspection {
    uir_clusters *c;
    const uir_candidate *candidate;
    uir_arena *arena;
    place_role *roles; /* per place of the candidate */
    uint32_t contractions, reduces, opaques, concats;
    uir_fusion_kind kind;
    uir_axes axes;
    bool has_axes;
    reduce_axes reduced; /* of a kind with reductions */
    uir_node_id *nodes;
} inspection;

static uint32_t count_of(const inspection *l) {
    return l->candidate->places.count;
}
static uint32_t place_of(const inspection *l, uint32_t index) {
    return l->candidate->places.data[index];
}
static const uir_node_info *node_of(const inspection *l, uint32_t index) {
    return uir_clusters_node(l->c, place_of(l, index));
}
static uir_fusion_class class_of(const inspection *l, uint32_t index) {
    return l->c->items[place_of(l, index)].class;
}

/* The candidate's index of an operand's maker; NONE: it comes from outside. */
static uint32_t maker_of(const inspection *l, uint32_t index, uint32_t operand) {
    uint32_t maker = uir_clusters_maker(l->c, node_of(l, index)->inputs[operand]);
    if (maker == UIR_FUSION_NONE) return UIR_FUSION_NONE;
    uint32_t at = uir_node_set_find(&l->candidate->places, maker);
    return at < count_of(l) && place_of(l, at) == maker ? at : UIR_FUSION_NONE;
}

static bool gives(const inspection *l, uint32_t index) {
    return uir_candidate_gives(l->c, l->candidate, place_of(l, index));
}

static bool depends_on(const inspection *l, uint32_t index, uint32_t on) {
    if (index == UIR_FUSION_NONE || index < on) return false;
    if (index == on) return true;
    for (uint32_t k = 0; k < node_of(l, index)->input_count; k++)
        if (depends_on(l, maker_of(l, index, k), on)) return true;
    return false;
}

/* A product of what is made of another one. */
static bool are_chained(const inspection *l) {
    for (uint32_t i = 0; i < count_of(l); i++)
        for (uint32_t k = i + 1; k < count_of(l) && class_of(l, i) == UIR_FUSION_CLASS_CONTRACTION; k++)
            if (class_of(l, k) == UIR_FUSION_CLASS_CONTRACTION && depends_on(l, k, i)) return true;
    return false;
}

static uir_status inspect(inspection *l, bool *out_fits) {
    *out_fits = true;
    UIR_TRY_ALLOCATE(l->roles, uir_arena_allocate_array(l->arena, count_of(l) + 1u, sizeof *l->roles));
    UIR_TRY_ALLOCATE(l->nodes, uir_arena_allocate_array(l->arena, count_of(l) + 1u, sizeof *l->nodes));
    for (uint32_t i = 0; i < count_of(l); i++) {
        uir_fusion_class class = class_of(l, i);
        l->nodes[i] = l->c->items[place_of(l, i)].node;
        l->contractions += class == UIR_FUSION_CLASS_CONTRACTION;
        l->reduces += class == UIR_FUSION_CLASS_REDUCE;
        l->opaques += class == UIR_FUSION_CLASS_OPAQUE;
        l->concats += class == UIR_FUSION_CLASS_CONCAT;
    }
    if (l->contractions > 1) l->kind = l->reduces || are_chained(l) ? KIND_ATTENTION : KIND_SIBLINGS;
    if (l->reduces && !l->contractions) l->kind = KIND_REDUCTION;
    uir_fusion_class seed = l->contractions ? UIR_FUSION_CLASS_CONTRACTION : UIR_FUSION_CLASS_REDUCE;
    for (uint32_t i = 0; i < count_of(l); i++) {
        if (class_of(l, i) == seed) l->roles[i] = ROLE_SEED;
        for (uint32_t k = 0; k < node_of(l, i)->input_count && l->roles[i] == ROLE_SIDE; k++) {
            uint32_t maker = maker_of(l, i, k);
            if (maker != UIR_FUSION_NONE && l->roles[maker] >= ROLE_SEED) l->roles[i] = ROLE_AFTER;
        }
    }
    for (uint32_t i = count_of(l); i-- > 0;) {
        if (l->roles[i] != ROLE_SEED && l->roles[i] != ROLE_PROLOGUE) continue;
        for (uint32_t k = 0; k < node_of(l, i)->input_count; k++) {
            uint32_t maker = maker_of(l, i, k);
            if (maker != UIR_FUSION_NONE && l->roles[maker] == ROLE_SIDE) l->roles[maker] = ROLE_PROLOGUE;
        }
    }
    return UIR_STATUS_OK;
}

/* ---- width ---- */
bool uir_candidate_fits(const uir_clusters *c, const uir_candidate *candidate) {
    uint32_t most = c->options->most_nodes ? c->options->most_nodes : MOST_NODES;
    return !uir_clusters_checks(c, UIR_FUSION_CLAUSE_WIDTH) || candidate->places.count <= most;
}

static uir_status fits_nodes(inspection *l, bool *out_fits) {
    *out_fits = uir_candidate_fits(l->c, l->candidate);
    return UIR_STATUS_OK;
}

/* ---- order ---- */
static uir_status is_acyclic(inspection *l, bool *out_fits) {
    *out_fits = !uir_candidate_has_cycle(l->c, l->candidate);
    return UIR_STATUS_OK;
}

static uir_status fits_operands(inspection *l, bool *out_fits) {
    uint32_t most = l->c->options->most_operands ? l->c->options->most_operands : MOST_OPERANDS, count = 0;
    l->c->turn++;
    for (uint32_t i = 0; i < count_of(l); i++) {
        const uir_node_info *node = node_of(l, i);
        count += gives(l, i);
        for (uint32_t k = 0; k < node->input_count; k++) {
            uir_value_id value = node->inputs[k];
            if (maker_of(l, i, k) != UIR_FUSION_NONE || uir_fusion_is_scalar_constant(l->c->module, value)) continue;
            count += l->c->met[value.id] != l->c->turn;
            l->c->met[value.id] = l->c->turn;
        }
    }
    *out_fits = count <= most;
    return UIR_STATUS_OK;
}

/* ---- kind ---- */
/* Whether the value is one from outside in another order, so that a slice of it is a slice of that. */
static bool is_view_of_outside(const inspection *l, uint32_t index) {
    while (index != UIR_FUSION_NONE) {
        uir_fusion_class class = class_of(l, index);
        bool looks_through =
            class == UIR_FUSION_CLASS_VIEW || class == UIR_FUSION_CLASS_RESHAPE || class == UIR_FUSION_CLASS_SLICE;
        if (!looks_through) return false;
        index = maker_of(l, index, 0);
    }
    return true;
}

static bool depends_on_concat(const inspection *l, uint32_t index) {
    if (index == UIR_FUSION_NONE) return false;
    if (class_of(l, index) == UIR_FUSION_CLASS_CONCAT) return true;
    for (uint32_t k = 0; k < node_of(l, index)->input_count; k++)
        if (depends_on_concat(l, maker_of(l, index, k))) return true;
    return false;
}

/* What holds in every group. */
static bool is_placed_right(const inspection *l, uint32_t index) {
    uint32_t first = node_of(l, index)->input_count ? maker_of(l, index, 0) : UIR_FUSION_NONE;
    switch (class_of(l, index)) {
    case UIR_FUSION_CLASS_GATHER: /* the data lies in memory; the indices may be computed, but not of pieces */
        if (depends_on_concat(l, maker_of(l, index, 1))) return false;
        return first == UIR_FUSION_NONE;
    case UIR_FUSION_CLASS_PAD:
        return first == UIR_FUSION_NONE;
    case UIR_FUSION_CLASS_SLICE: /* what lies outside windows does so of what is in memory */
        return node_of(l, index)->op == UIR_OP_WINDOWS ? first == UIR_FUSION_NONE : is_view_of_outside(l, first);
    case UIR_FUSION_CLASS_CONCAT: /* pieces of pieces are not told apart */
        for (uint32_t k = 0; k < node_of(l, index)->input_count; k++)
            if (depends_on_concat(l, maker_of(l, index, k))) return false;
        return true;
    default:
        return true;
    }
}

enum {
    CLASSES_ARITHMETIC =
        1u << UIR_FUSION_CLASS_ELEMENTWISE | 1u << UIR_FUSION_CLASS_VIEW | 1u << UIR_FUSION_CLASS_RESHAPE,
    CLASSES_LOADED = CLASSES_ARITHMETIC | 1u << UIR_FUSION_CLASS_SLICE,
    CLASSES_IN_REDUCE = CLASSES_LOADED | 1u << UIR_FUSION_CLASS_IOTA | 1u << UIR_FUSION_CLASS_REDUCE,
};

static bool fits_contraction(const inspection *l, uint32_t index) {
    uint32_t class = 1u << class_of(l, index);
    switch (l->roles[index]) {
    case ROLE_SEED:
        return true;
    case ROLE_AFTER:
        return class & CLASSES_ARITHMETIC;
    case ROLE_SIDE:
        return class & CLASSES_LOADED;
    default: { /* a prologue is computed once for each tile that reads it */
        bool windows = false;
        for (uint32_t i = 0; i < count_of(l); i++) windows |= node_of(l, i)->op == UIR_OP_CONV;
        return class & CLASSES_LOADED && !l->c->items[place_of(l, index)].is_heavy &&
               (!windows || uir_clusters_widens_stored(l->c, place_of(l, index)));
    }
    }
}

static bool runs(const inspection *l, uir_fusion_rewrite rewrite) {
    return l->c->rewrites >> rewrite & 1;
}

/* Products of one left operand, which lies in memory. */
static bool are_siblings(const inspection *l) {
    uir_value_id left = {0};
    if (!runs(l, UIR_FUSION_SIBLINGS) || l->reduces || l->contractions > MOST_SIBLINGS) return false;
    for (uint32_t i = 0; i < count_of(l); i++) {
        const uir_node_info *node = node_of(l, i);
        if (class_of(l, i) != UIR_FUSION_CLASS_CONTRACTION) continue;
        uint32_t maker = maker_of(l, i, 0);
        if (maker != UIR_FUSION_NONE && uir_clusters_widens_factor(l->c, place_of(l, maker)))
            maker = maker_of(l, maker, 0);
        if (node->op != UIR_OP_MATMUL || !is_view_of_outside(l, maker)) return false;
        if (left.id && left.id != node->inputs[0].id) return false;
        left = node->inputs[0];
        for (uint32_t k = i + 1; k < count_of(l); k++)
            if (class_of(l, k) == UIR_FUSION_CLASS_CONTRACTION && depends_on(l, k, i)) return false;
    }
    return true;
}

/* The maker of an operand, movements looked through. */
static uint32_t origin_of(const inspection *l, uint32_t index, uint32_t operand) {
    uint32_t maker = maker_of(l, index, operand);
    while (maker != UIR_FUSION_NONE &&
           (class_of(l, maker) == UIR_FUSION_CLASS_VIEW || class_of(l, maker) == UIR_FUSION_CLASS_RESHAPE))
        maker = maker_of(l, maker, 0);
    return maker;
}

static bool is_op(const inspection *l, uint32_t index, uir_op op) {
    return index != UIR_FUSION_NONE && node_of(l, index)->op == op;
}

/* The value that an operand is, movements looked through: a constant that bodies use directly. */
static bool is_constant_operand(const inspection *l, uint32_t index, uint32_t operand) {
    uir_value_id value = node_of(l, index)->inputs[operand];
    for (uint32_t maker; (maker = maker_of(l, index, operand)) != UIR_FUSION_NONE; index = maker, operand = 0) {
        if (class_of(l, maker) != UIR_FUSION_CLASS_VIEW && class_of(l, maker) != UIR_FUSION_CLASS_RESHAPE) return false;
        value = node_of(l, maker)->inputs[0];
    }
    return uir_fusion_is_scalar_constant(l->c->module, value);
}

typedef struct softmax {
    uint32_t scores, parts[7], count; /* the nodes of it */
} softmax;

static bool take(const inspection *l, softmax *s, uint32_t index, uir_op op) {
    if (!is_op(l, index, op)) return false;
    s->parts[s->count++] = index;
    return true;
}

/* exp(x - max x), divided by its sum; NaNs in it may be replaced by a number. */
static bool find_softmax(const inspection *l, uint32_t index, softmax *s) {
    *s = (softmax){.scores = UIR_FUSION_NONE};
    if (take(l, s, index, UIR_OP_SELECT)) {
        uint32_t test = origin_of(l, index, 0), weights = origin_of(l, index, 2);
        if (!take(l, s, test, UIR_OP_IS_NAN) || origin_of(l, test, 0) != weights || !is_constant_operand(l, index, 1))
            return false;
        index = weights;
    }
    if (!take(l, s, index, UIR_OP_DIV)) return false;
    uint32_t powers = origin_of(l, index, 0), sum = origin_of(l, index, 1);
    if (!take(l, s, sum, UIR_OP_REDUCE_SUM) || origin_of(l, sum, 0) != powers || !take(l, s, powers, UIR_OP_EXP))
        return false;
    uint32_t difference = origin_of(l, powers, 0);
    if (!take(l, s, difference, UIR_OP_SUB)) return false;
    uint32_t greatest = origin_of(l, difference, 1);
    s->scores = origin_of(l, difference, 0);
    if (!take(l, s, greatest, UIR_OP_REDUCE_MAX) || origin_of(l, greatest, 0) != s->scores) return false;
    return s->scores != UIR_FUSION_NONE &&
           uir_value_type(l->c->module, node_of(l, s->scores)->outputs[0])->dtype == UIR_DTYPE_F32;
}

/* Between the products is nothing but what leads to the softmax, and the softmax. What else read of it would be over
 * other axes than the second product. */
static bool is_only_softmax(const inspection *l, uint32_t first, uint32_t last) {
    softmax s;
    if (l->reduces != 2 || !find_softmax(l, origin_of(l, last, 0), &s) || !depends_on(l, s.scores, first)) return false;
    for (uint32_t i = first; i < count_of(l); i++) {
        bool after = i == last || depends_on(l, i, last), between = !after && depends_on(l, i, first), part = false;
        bool moves = class_of(l, i) == UIR_FUSION_CLASS_VIEW || class_of(l, i) == UIR_FUSION_CLASS_RESHAPE;
        for (uint32_t k = 0; k < s.count; k++) part |= s.parts[k] == i;
        if (between && !part && !moves && !depends_on(l, s.scores, i)) return false;
    }
    return true;
}

/* Weights that are elementwise work on the scores, divided by a sum over the keys or not. Constant operands make layers
 * of them, whose weights are packed ahead. */
static bool is_elementwise_weight(const inspection *l, uint32_t first, uint32_t last) {
    const uir_module *m = l->c->module;
    uint32_t weights = origin_of(l, last, 0), sum = UIR_FUSION_NONE;
    if (weights == UIR_FUSION_NONE || l->reduces > 1 ||
        uir_value_type(m, node_of(l, weights)->outputs[0])->dtype != UIR_DTYPE_F32 ||
        uir_value_info_get(m, node_of(l, first)->inputs[1])->constant ||
        uir_value_info_get(m, node_of(l, last)->inputs[1])->constant)
        return false;
    if (l->reduces) {
        if (!is_op(l, weights, UIR_OP_DIV)) return false;
        sum = origin_of(l, weights, 1);
        if (!is_op(l, sum, UIR_OP_REDUCE_SUM)) return false;
    }
    for (uint32_t i = first + 1; i < last && sum != UIR_FUSION_NONE; i++) {
        bool moves = class_of(l, i) == UIR_FUSION_CLASS_VIEW || class_of(l, i) == UIR_FUSION_CLASS_RESHAPE;
        if (i != sum && i != weights && !moves && depends_on(l, i, sum)) return false;
    }
    return sum == UIR_FUSION_NONE || !depends_on(l, origin_of(l, weights, 0), sum);
}

/* A product, a function of the rows that it gives, and a product of what that gives. */
static bool is_attention(const inspection *l) {
    uint32_t first = UIR_FUSION_NONE, last = UIR_FUSION_NONE;
    if (!runs(l, UIR_FUSION_ATTENTION) || l->contractions != 2) return false;
    for (uint32_t i = 0; i < count_of(l); i++) {
        if (class_of(l, i) != UIR_FUSION_CLASS_CONTRACTION) continue;
        if (node_of(l, i)->op != UIR_OP_MATMUL) return false;
        if (first == UIR_FUSION_NONE) first = i;
        last = i;
    }
    for (uint32_t i = 0; i < count_of(l); i++) {
        bool reduces = class_of(l, i) == UIR_FUSION_CLASS_REDUCE;
        if (reduces && (!depends_on(l, i, first) || depends_on(l, i, last))) return false;
        if (gives(l, i) && !depends_on(l, i, last)) return false;
    }
    return depends_on(l, maker_of(l, last, 0), first) && !depends_on(l, maker_of(l, last, 1), first) &&
           (is_only_softmax(l, first, last) || is_elementwise_weight(l, first, last));
}

static bool is_of_a_kind(const inspection *l) {
    if (l->opaques) return count_of(l) == 1;
    bool attends = is_attention(l);
    if (l->contractions > 1 && !attends && !are_siblings(l)) return false;
    for (uint32_t i = 0; i < count_of(l); i++) {
        if (!is_placed_right(l, i)) return false;
        if (attends && class_of(l, i) == UIR_FUSION_CLASS_REDUCE) continue;
        if (attends && !fits_contraction(l, i)) return false;
        if (attends) continue;
        if (l->contractions && l->reduces) return false;
        if (l->contractions && !fits_contraction(l, i)) return false;
        if (l->reduces && count_of(l) > 1 && !(1u << class_of(l, i) & CLASSES_IN_REDUCE)) return false;
        bool is_slice = class_of(l, i) == UIR_FUSION_CLASS_SLICE;
        if (l->reduces && is_slice && maker_of(l, i, 0) != UIR_FUSION_NONE) return false;
    }
    return true;
}

static uir_status fits_kind(inspection *l, bool *out_fits) {
    *out_fits = is_of_a_kind(l);
    return UIR_STATUS_OK;
}

/* ---- axes as sets ---- */
static uir_status find_axes(inspection *l, bool *out_fits) {
    uir_status status = uir_axes_analyse(l->c->module, l->nodes, count_of(l), l->arena, &l->axes, NULL);
    *out_fits = l->has_axes = status == UIR_STATUS_OK;
    return status == UIR_STATUS_UNSUPPORTED ? UIR_STATUS_OK : status;
}

static uir_status make_set(const inspection *l, uir_axis_list list, axis_set *out_set) {
    *out_set = (axis_set){.count = list.count};
    UIR_TRY_ALLOCATE(out_set->has, uir_arena_allocate_array(l->arena, l->axes.count + 1u, sizeof *out_set->has));
    for (uint32_t i = 0; i < list.count; i++) out_set->has[list.axes[i]] = true;
    return UIR_STATUS_OK;
}

static bool is_within(uir_axis_list list, const axis_set *set) {
    for (uint32_t i = 0; i < list.count; i++)
        if (!set->has[list.axes[i]]) return false;
    return true;
}

static bool is_set(uir_axis_list list, const axis_set *set) {
    return list.count == set->count && is_within(list, set);
}

static uir_axis_list axes_of(const inspection *l, uint32_t index) {
    return uir_axes_of_value(&l->axes, node_of(l, index)->outputs[0]);
}

static bool extents_agree(const inspection *l, uint32_t a, uint32_t b) {
    const uir_node_info *first = node_of(l, a), *second = node_of(l, b);
    uint32_t axis_a = (uint32_t)uir_node_int(l->c->module, first, "axis", 0),
             axis_b = (uint32_t)uir_node_int(l->c->module, second, "axis", 0);
    if (first->input_count != second->input_count) return false;
    for (uint32_t k = 0; k < first->input_count; k++) {
        uir_dim x = uir_value_type(l->c->module, first->inputs[k])->dims[axis_a],
                y = uir_value_type(l->c->module, second->inputs[k])->dims[axis_b];
        if (uir_dim_compare(l->c->module->dims, x, UIR_RELATION_EQ, y) != UIR_TRUE) return false;
    }
    return true;
}

/* All concats cut one axis at the same places. */
static bool cut_alike(const inspection *l) {
    uint32_t first = UIR_FUSION_NONE, axis = UIR_AXES_NONE;
    for (uint32_t i = 0; i < count_of(l) && l->concats > 1; i++) {
        if (class_of(l, i) != UIR_FUSION_CLASS_CONCAT) continue;
        const uir_node_info *node = node_of(l, i);
        uint32_t own =
            uir_axes_of_value_dim(&l->axes, node->outputs[0], (uint32_t)uir_node_int(l->c->module, node, "axis", 0));
        if (first != UIR_FUSION_NONE && (own != axis || own == UIR_AXES_NONE || !extents_agree(l, first, i)))
            return false;
        first = i, axis = own;
    }
    return true;
}

static uir_status concats_agree(inspection *l, bool *out_fits) {
    *out_fits = cut_alike(l);
    return UIR_STATUS_OK;
}

/* ---- reductions ---- */
static uir_status agree_on_axes(inspection *l, bool *out_fits) {
    reduce_axes *axes = &l->reduced;
    bool first = true;
    *out_fits = true;
    for (uint32_t i = 0; i < count_of(l); i++) {
        if (class_of(l, i) != UIR_FUSION_CLASS_REDUCE) continue;
        uir_axis_list all = uir_axes_of_operand(&l->axes, i, 0), kept = axes_of(l, i);
        if (first) {
            UIR_TRY(make_set(l, all, &axes->all));
            UIR_TRY(make_set(l, kept, &axes->kept));
        } else if (!is_set(all, &axes->all) || !is_set(kept, &axes->kept)) {
            *out_fits = false;
        }
        first = false;
    }
    return UIR_STATUS_OK;
}

static uir_status fits_reduce_domain(inspection *l, bool *out_fits) {
    *out_fits = true;
    for (uint32_t i = 0; i < count_of(l); i++) {
        uir_axis_list own = axes_of(l, i);
        if (gives(l, i) && !is_set(own, &l->reduced.kept) && !is_set(own, &l->reduced.all)) *out_fits = false;
    }
    return UIR_STATUS_OK;
}

/* Rows that are used more than once stay on the chip, unless they are known not to fit. */
static bool rows_fit(const inspection *l) {
    const reduce_axes *axes = &l->reduced;
    double bytes = 4;
    uint32_t uses = 0;
    if (!l->c->row_capacity) return true;
    for (uint32_t a = 0; a < l->axes.count; a++) {
        int64_t extent;
        if (!axes->all.has[a] || axes->kept.has[a]) continue;
        if (!uir_dim_is_const(l->c->module->dims, l->axes.axes[a].extent, &extent)) return true;
        bytes *= (double)extent;
    }
    for (uint32_t i = 0; i < count_of(l); i++) {
        bool over_row = is_set(axes_of(l, i), &axes->all) && axes->all.count > axes->kept.count;
        uses += class_of(l, i) == UIR_FUSION_CLASS_REDUCE || (over_row && gives(l, i));
    }
    return uses < 2 || bytes <= (double)l->c->row_capacity;
}

static uir_status fits_chip(inspection *l, bool *out_fits) {
    *out_fits = rows_fit(l);
    return UIR_STATUS_OK;
}

/* ---- domains of the other kinds ---- */
static uir_status fits_domain(inspection *l, bool *out_fits) {
    axis_set domain = {0};
    *out_fits = true;
    for (uint32_t i = 0; i < count_of(l) && !domain.has; i++)
        if (l->contractions ? l->roles[i] == ROLE_SEED : gives(l, i)) UIR_TRY(make_set(l, axes_of(l, i), &domain));
    for (uint32_t i = 0; i < count_of(l) && domain.has; i++) {
        uir_axis_list own = axes_of(l, i);
        if (l->contractions && l->roles[i] == ROLE_AFTER && !is_set(own, &domain)) *out_fits = false;
        if (l->contractions && gives(l, i) && l->roles[i] < ROLE_SEED) *out_fits = false;
        if (gives(l, i) && !is_set(own, &domain)) *out_fits = false;
    }
    return UIR_STATUS_OK;
}

static bool has_axis(uir_axis_list list, uint32_t axis) {
    for (uint32_t i = 0; i < list.count; i++)
        if (list.axes[i] == axis) return true;
    return false;
}

/* A product whose columns are the right operand's alone, and of known number: lowering walks the columns of several
 * such products together. */
static bool has_own_columns(const inspection *l, uint32_t index) {
    uir_axis_list left = uir_axes_of_operand(&l->axes, index, 0), right = uir_axes_of_operand(&l->axes, index, 1),
                  to = axes_of(l, index);
    uint32_t columns = 0;
    for (uint32_t i = 0; i < to.count; i++) {
        int64_t extent;
        if (!has_axis(right, to.axes[i])) continue;
        if (has_axis(left, to.axes[i])) return false;
        if (!uir_dim_is_const(l->c->module->dims, l->axes.axes[to.axes[i]].extent, &extent) || extent < 1) return false;
        columns++;
    }
    return columns > 0;
}

static bool same_dtypes(const inspection *l, uint32_t a, uint32_t b) {
    const uir_node_info *first = node_of(l, a), *second = node_of(l, b);
    const uir_module *module = l->c->module;
    return uir_value_type(module, first->inputs[1])->dtype == uir_value_type(module, second->inputs[1])->dtype &&
           uir_value_type(module, first->outputs[0])->dtype == uir_value_type(module, second->outputs[0])->dtype;
}

/* Each value is over the axes of every product that it depends on; side operands over some of them. */
static uir_status fits_siblings_domain(inspection *l, bool *out_fits) {
    uint32_t first = UIR_FUSION_NONE;
    *out_fits = true;
    for (uint32_t s = 0; s < count_of(l); s++) {
        axis_set domain;
        if (class_of(l, s) != UIR_FUSION_CLASS_CONTRACTION) continue;
        if (first == UIR_FUSION_NONE) first = s;
        if (!has_own_columns(l, s) || !same_dtypes(l, first, s)) *out_fits = false;
        UIR_TRY(make_set(l, axes_of(l, s), &domain));
        for (uint32_t i = s + 1; i < count_of(l); i++)
            if (depends_on(l, i, s) && !is_set(axes_of(l, i), &domain)) *out_fits = false;
    }
    for (uint32_t i = 0; i < count_of(l); i++)
        if (gives(l, i) && l->roles[i] < ROLE_SEED) *out_fits = false;
    return UIR_STATUS_OK;
}

/* What follows a product may take its columns apart: into parts of less than a vector, and each would be multiplied by
 * itself. */
static uir_status keeps_vectors(inspection *l, bool *out_fits) {
    int64_t extent, lanes = l->c->options->device ? uir_machine_lanes(l->c->options->device) : 0;
    *out_fits = true;
    for (uint32_t i = 0, seed = UIR_FUSION_NONE; i < count_of(l) && l->contractions == 1; i++) {
        uint32_t columns = 0, last = UIR_FUSION_NONE;
        if (l->roles[i] == ROLE_SEED) seed = i;
        if (seed == UIR_FUSION_NONE || (i != seed && !gives(l, i))) continue;
        uir_axis_list left = uir_axes_of_operand(&l->axes, seed, 0), right = uir_axes_of_operand(&l->axes, seed, 1),
                      to = axes_of(l, i);
        for (uint32_t k = 0; k < to.count; k++) {
            if (has_axis(left, to.axes[k]) || !has_axis(right, to.axes[k])) continue;
            columns++;
            last = to.axes[k];
        }
        if (columns > 1 && uir_dim_is_const(l->c->module->dims, l->axes.axes[last].extent, &extent) && extent < lanes)
            *out_fits = false;
    }
    return UIR_STATUS_OK;
}

/* The axes at `at` and before it of a result lie one after the other in every operand from outside that has one of
 * them. */
static bool are_side_by_side(const inspection *l, uir_axis_list result, uint32_t at) {
    for (uint32_t i = 0; i < count_of(l); i++)
        for (uint32_t k = 0; k < node_of(l, i)->input_count; k++) {
            uir_axis_list from = uir_axes_of_operand(&l->axes, i, k);
            bool has_both = false;
            if (maker_of(l, i, k) != UIR_FUSION_NONE) continue;
            for (uint32_t n = 1; n < from.count && !has_both; n++)
                has_both = from.axes[n] == result.axes[at] && from.axes[n - 1] == result.axes[at - 1];
            if (!has_both && (has_axis(from, result.axes[at]) || has_axis(from, result.axes[at - 1]))) return false;
        }
    return true;
}

/* Is a layout changed here, so that an operand from outside is read along another axis than the result is written? */
static bool is_turned(const inspection *l, uir_axis_list result) {
    bool converts = false, turns = false;
    for (uint32_t i = 0; i < count_of(l) && result.count; i++) {
        converts = converts || (node_of(l, i)->op == UIR_OP_RESHAPE && class_of(l, i) == UIR_FUSION_CLASS_VIEW);
        for (uint32_t k = 0; k < node_of(l, i)->input_count; k++) {
            uir_axis_list from = uir_axes_of_operand(&l->axes, i, k);
            if (maker_of(l, i, k) != UIR_FUSION_NONE || from.count < 2) continue;
            uint32_t last = from.axes[from.count - 1];
            turns = turns || (last != result.axes[result.count - 1] && has_axis(result, last));
        }
    }
    return converts && turns;
}

/* Then as many elements of the result lie side by side as a vector has. (In a conversion alone all do.) */
static uir_status converts_vectors(inspection *l, bool *out_fits) {
    int64_t lanes = l->c->options->device ? uir_machine_lanes(l->c->options->device) : 0;
    *out_fits = true;
    for (uint32_t i = 0; i < count_of(l) && !l->contractions; i++) {
        uir_axis_list result = axes_of(l, i);
        int64_t width = 1, extent;
        if (!gives(l, i) || !is_turned(l, result)) continue;
        for (uint32_t at = result.count; at-- > 0 && width < lanes;) {
            bool known = uir_dim_is_const(l->c->module->dims, l->axes.axes[result.axes[at]].extent, &extent);
            width = known ? width * extent : lanes;
            if (at && !are_side_by_side(l, result, at)) break;
        }
        if (width < lanes) *out_fits = false;
    }
    return UIR_STATUS_OK;
}

/* Of a product: the axes that are the one's operand's alone. */
typedef struct product_axes {
    uint32_t rows, columns, summed; /* how many */
    uint32_t column, sum;           /* the last of these */
} product_axes;

static product_axes axes_of_product(const inspection *l, uint32_t index) {
    uir_axis_list left = uir_axes_of_operand(&l->axes, index, 0), right = uir_axes_of_operand(&l->axes, index, 1),
                  to = axes_of(l, index);
    product_axes p = {0};
    for (uint32_t i = 0; i < to.count; i++) {
        bool in_left = has_axis(left, to.axes[i]), in_right = has_axis(right, to.axes[i]);
        p.rows += in_left && !in_right;
        if (in_right && !in_left) p.columns++, p.column = to.axes[i];
    }
    for (uint32_t i = 0; i < right.count; i++)
        if (!has_axis(to, right.axes[i])) p.summed++, p.sum = right.axes[i];
    return p;
}

static bool is_known(const inspection *l, uint32_t axis, int64_t most, int64_t *out_extent) {
    return uir_dim_is_const(l->c->module->dims, l->axes.axes[axis].extent, out_extent) && *out_extent >= 1 &&
           *out_extent <= most;
}

enum { MOST_DEPTH = 256, MOST_WIDTH = 128, KEYS_AT_ONCE = 256 };

/* Keys along one axis, heads of known size; rows that the values know nothing of. `*out_bytes`: of a tile of keys and
 * values. */
static bool can_stream(const inspection *l, uint32_t first, uint32_t last, uint64_t *out_bytes) {
    product_axes p = axes_of_product(l, first), q = axes_of_product(l, last);
    uir_axis_list left = uir_axes_of_operand(&l->axes, first, 0), right = uir_axes_of_operand(&l->axes, first, 1),
                  values = uir_axes_of_operand(&l->axes, last, 1);
    int64_t depth = 1, width;
    if (!p.rows || p.columns != 1 || p.summed > 1 || q.columns != 1 || q.summed != 1 || p.column != q.sum) return false;
    if (p.summed && !is_known(l, p.sum, MOST_DEPTH, &depth)) return false;
    if (!is_known(l, q.column, MOST_WIDTH, &width)) return false;
    for (uint32_t i = 0; i < left.count; i++)
        if (has_axis(axes_of(l, first), left.axes[i]) && !has_axis(right, left.axes[i]) &&
            has_axis(values, left.axes[i]))
            return false;
    *out_bytes = 4 * KEYS_AT_ONCE * (uint64_t)(depth + width + 64);
    return true;
}

static void find_products(const inspection *l, uint32_t *out_first, uint32_t *out_last) {
    *out_first = *out_last = UIR_FUSION_NONE;
    for (uint32_t i = 0; i < count_of(l); i++) {
        if (class_of(l, i) != UIR_FUSION_CLASS_CONTRACTION) continue;
        if (*out_first == UIR_FUSION_NONE) *out_first = i;
        *out_last = i;
    }
}

static uir_status fits_keys(inspection *l, bool *out_fits) {
    uint32_t first, last;
    uint64_t bytes = 0;
    find_products(l, &first, &last);
    *out_fits = !can_stream(l, first, last, &bytes) || !l->c->row_capacity || bytes <= l->c->row_capacity;
    return UIR_STATUS_OK;
}

/* The first product's result, and all up to the second one, is over the rows S and keys R that the reductions have (if
 * there are any); R is what the second one sums over. */
static uir_status fits_attention_domain(inspection *l, bool *out_fits) {
    axis_set domain = {0};
    uint32_t first, last;
    uint64_t bytes;
    UIR_TRY(agree_on_axes(l, out_fits));
    find_products(l, &first, &last);
    if (!l->reduces) {
        product_axes q = axes_of_product(l, last);
        UIR_TRY(make_set(l, axes_of(l, first), &l->reduced.all));
        UIR_TRY(make_set(l, axes_of(l, first), &l->reduced.kept));
        if (q.summed) l->reduced.kept.count -= l->reduced.kept.has[q.sum];
        if (q.summed) l->reduced.kept.has[q.sum] = false;
    }
    const reduce_axes axes = l->reduced;
    UIR_TRY(make_set(l, axes_of(l, last), &domain));
    if (!can_stream(l, first, last, &bytes) || !is_set(axes_of(l, first), &axes.all)) *out_fits = false;
    if (!is_set(uir_axes_of_operand(&l->axes, last, 0), &axes.all)) *out_fits = false;
    for (uint32_t a = 0; a < l->axes.count; a++) {
        if (axes.all.has[a] && !axes.kept.has[a] && domain.has[a]) *out_fits = false;
        if (axes.kept.has[a] && !domain.has[a]) *out_fits = false;
    }
    for (uint32_t i = first; i < count_of(l); i++) {
        bool after = depends_on(l, i, last), between = !after && depends_on(l, i, first);
        if (after && !is_set(axes_of(l, i), &domain)) *out_fits = false;
        if (between && !is_within(axes_of(l, i), &axes.all)) *out_fits = false;
    }
    return UIR_STATUS_OK;
}

/* ---- all of it ---- */

static bool is_of_one_node(const inspection *l) {
    for (uint32_t i = 1; i < count_of(l); i++)
        if (!node_of(l, i)->source || node_of(l, i)->source != node_of(l, 0)->source) return false;
    return true;
}

/* A clause that is switched off forbids nothing; what its checks find out is there all the same. */
static uir_status check(inspection *l, bool *out_legal) {
    static const struct {
        uir_fusion_clause clause;
        uir_fusion_kind kind;
        bool needs_axes;
        uir_status (*check)(inspection *l, bool *out_fits);
    } rows[] = {
#define UIR_FUSION_CHECK(clause, kind, needs_axes, check, purpose)                                                     \
    {UIR_FUSION_CLAUSE_##clause, KIND_##kind, needs_axes, check},
#include "fusion/fusion.def"
    };
    *out_legal = !l->c->options->within_nodes || is_of_one_node(l);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && *out_legal; i++) {
        bool fits = true;
        if (rows[i].needs_axes && !l->has_axes) continue;
        if (rows[i].kind != KIND_ANY && rows[i].kind != l->kind) continue;
        UIR_TRY(rows[i].check(l, &fits));
        *out_legal = fits || !uir_clusters_checks(l->c, rows[i].clause);
    }
    return UIR_STATUS_OK;
}

uir_status uir_candidate_is_legal(uir_clusters *c, const uir_candidate *candidate, bool *out_legal) {
    uir_arena scratch;
    uir_arena_init(&scratch, c->module->allocator);
    inspection l = {.c = c, .candidate = candidate, .arena = &scratch};
    uir_status status = check(&l, out_legal);
    uir_arena_deinit(&scratch);
    return status;
}
