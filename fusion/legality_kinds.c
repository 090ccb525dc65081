/* The checks of a candidate that need no axes: its size, its order, and the kind of group that it is. */
#include "fusion/legality.h"

enum { MOST_OPERANDS = 64, MOST_SIBLINGS = 8 };

/* ---- the kind and the roles ---- */
/* A product of what is made of another one. */
static bool are_chained(const uir_inspection *l) {
    for (uint32_t i = 0; i < uir_inspection_count(l); i++)
        for (uint32_t k = i + 1;
             k < uir_inspection_count(l) && uir_inspection_class(l, i) == UIR_FUSION_CLASS_CONTRACTION; k++)
            if (uir_inspection_class(l, k) == UIR_FUSION_CLASS_CONTRACTION && uir_inspection_depends(l, k, i))
                return true;
    return false;
}

uir_status uir_fusion_check_inspect(uir_inspection *l, bool *out_fits) {
    *out_fits = true;
    UIR_TRY_ALLOCATE(l->roles, uir_arena_allocate_array(l->arena, uir_inspection_count(l) + 1u, sizeof *l->roles));
    UIR_TRY_ALLOCATE(l->nodes, uir_arena_allocate_array(l->arena, uir_inspection_count(l) + 1u, sizeof *l->nodes));
    for (uint32_t i = 0; i < uir_inspection_count(l); i++) {
        uir_fusion_class class = uir_inspection_class(l, i);
        l->nodes[i] = l->c->items[uir_inspection_place(l, i)].node;
        l->contractions += class == UIR_FUSION_CLASS_CONTRACTION;
        l->reduces += class == UIR_FUSION_CLASS_REDUCE;
        l->opaques += class == UIR_FUSION_CLASS_OPAQUE;
        l->concats += class == UIR_FUSION_CLASS_CONCAT;
    }
    if (l->contractions > 1)
        l->kind = l->reduces || are_chained(l) ? UIR_FUSION_KIND_ATTENTION : UIR_FUSION_KIND_SIBLINGS;
    if (l->reduces && !l->contractions) l->kind = UIR_FUSION_KIND_REDUCTION;
    uir_fusion_class seed = l->contractions ? UIR_FUSION_CLASS_CONTRACTION : UIR_FUSION_CLASS_REDUCE;
    for (uint32_t i = 0; i < uir_inspection_count(l); i++) {
        if (uir_inspection_class(l, i) == seed) l->roles[i] = UIR_FUSION_ROLE_SEED;
        for (uint32_t k = 0; k < uir_inspection_node(l, i)->input_count && l->roles[i] == UIR_FUSION_ROLE_SIDE; k++) {
            uint32_t maker = uir_inspection_maker(l, i, k);
            if (maker != UIR_FUSION_NONE && l->roles[maker] >= UIR_FUSION_ROLE_SEED)
                l->roles[i] = UIR_FUSION_ROLE_AFTER;
        }
    }
    for (uint32_t i = uir_inspection_count(l); i-- > 0;) {
        if (l->roles[i] != UIR_FUSION_ROLE_SEED && l->roles[i] != UIR_FUSION_ROLE_PROLOGUE) continue;
        for (uint32_t k = 0; k < uir_inspection_node(l, i)->input_count; k++) {
            uint32_t maker = uir_inspection_maker(l, i, k);
            if (maker != UIR_FUSION_NONE && l->roles[maker] == UIR_FUSION_ROLE_SIDE)
                l->roles[maker] = UIR_FUSION_ROLE_PROLOGUE;
        }
    }
    return UIR_STATUS_OK;
}

/* ---- width ---- */
uir_status uir_fusion_check_fits_nodes(uir_inspection *l, bool *out_fits) {
    *out_fits = uir_candidate_fits(l->c, l->candidate);
    return UIR_STATUS_OK;
}

/* ---- order ---- */
uir_status uir_fusion_check_is_acyclic(uir_inspection *l, bool *out_fits) {
    *out_fits = !uir_candidate_has_cycle(l->c, l->candidate);
    return UIR_STATUS_OK;
}

uir_status uir_fusion_check_fits_operands(uir_inspection *l, bool *out_fits) {
    uint32_t most = l->c->options->most_operands ? l->c->options->most_operands : MOST_OPERANDS, count = 0;
    l->c->turn++;
    for (uint32_t i = 0; i < uir_inspection_count(l); i++) {
        const uir_node_info *node = uir_inspection_node(l, i);
        count += uir_inspection_gives(l, i);
        for (uint32_t k = 0; k < node->input_count; k++) {
            uir_value_id value = node->inputs[k];
            if (uir_inspection_maker(l, i, k) != UIR_FUSION_NONE || uir_fusion_is_scalar_constant(l->c->module, value))
                continue;
            count += l->c->met[value.id] != l->c->turn;
            l->c->met[value.id] = l->c->turn;
        }
    }
    *out_fits = count <= most;
    return UIR_STATUS_OK;
}

/* ---- kind ---- */
/* Whether the value is one from outside in another order, so that a slice of it is a slice of that. */
static bool is_view_of_outside(const uir_inspection *l, uint32_t index) {
    while (index != UIR_FUSION_NONE) {
        uir_fusion_class class = uir_inspection_class(l, index);
        bool looks_through =
            class == UIR_FUSION_CLASS_VIEW || class == UIR_FUSION_CLASS_RESHAPE || class == UIR_FUSION_CLASS_SLICE;
        if (!looks_through) return false;
        index = uir_inspection_maker(l, index, 0);
    }
    return true;
}

static bool depends_on_concat(const uir_inspection *l, uint32_t index) {
    if (index == UIR_FUSION_NONE) return false;
    if (uir_inspection_class(l, index) == UIR_FUSION_CLASS_CONCAT) return true;
    for (uint32_t k = 0; k < uir_inspection_node(l, index)->input_count; k++)
        if (depends_on_concat(l, uir_inspection_maker(l, index, k))) return true;
    return false;
}

/* What holds in every group. */
static bool is_placed_right(const uir_inspection *l, uint32_t index) {
    uint32_t first = uir_inspection_node(l, index)->input_count ? uir_inspection_maker(l, index, 0) : UIR_FUSION_NONE;
    switch (uir_inspection_class(l, index)) {
    case UIR_FUSION_CLASS_GATHER: /* the data lies in memory; the indices may be computed, but not of pieces */
        if (depends_on_concat(l, uir_inspection_maker(l, index, 1))) return false;
        return first == UIR_FUSION_NONE;
    case UIR_FUSION_CLASS_PAD:
        return first == UIR_FUSION_NONE;
    case UIR_FUSION_CLASS_SLICE: /* what lies outside windows does so of what is in memory */
        return uir_inspection_node(l, index)->op == UIR_OP_WINDOWS ? first == UIR_FUSION_NONE
                                                                   : is_view_of_outside(l, first);
    case UIR_FUSION_CLASS_CONCAT: /* pieces of pieces are not told apart */
        for (uint32_t k = 0; k < uir_inspection_node(l, index)->input_count; k++)
            if (depends_on_concat(l, uir_inspection_maker(l, index, k))) return false;
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

static bool fits_contraction(const uir_inspection *l, uint32_t index) {
    uint32_t class = 1u << uir_inspection_class(l, index);
    switch (l->roles[index]) {
    case UIR_FUSION_ROLE_SEED:
        return true;
    case UIR_FUSION_ROLE_AFTER:
        return class & CLASSES_ARITHMETIC;
    case UIR_FUSION_ROLE_SIDE:
        return class & CLASSES_LOADED;
    default: { /* a prologue is computed once for each tile that reads it */
        bool windows = false;
        for (uint32_t i = 0; i < uir_inspection_count(l); i++) windows |= uir_inspection_node(l, i)->op == UIR_OP_CONV;
        return class & CLASSES_LOADED && !l->c->items[uir_inspection_place(l, index)].is_heavy &&
               (!windows || uir_clusters_widens_stored(l->c, uir_inspection_place(l, index)));
    }
    }
}

static bool runs(const uir_inspection *l, uir_fusion_rewrite rewrite) {
    return l->c->rewrites >> rewrite & 1;
}

/* Products of one left operand, which lies in memory. */
static bool are_siblings(const uir_inspection *l) {
    uir_value_id left = {0};
    if (!runs(l, UIR_FUSION_SIBLINGS) || l->reduces || l->contractions > MOST_SIBLINGS) return false;
    for (uint32_t i = 0; i < uir_inspection_count(l); i++) {
        const uir_node_info *node = uir_inspection_node(l, i);
        if (uir_inspection_class(l, i) != UIR_FUSION_CLASS_CONTRACTION) continue;
        uint32_t maker = uir_inspection_maker(l, i, 0);
        if (maker != UIR_FUSION_NONE && uir_clusters_widens_factor(l->c, uir_inspection_place(l, maker)))
            maker = uir_inspection_maker(l, maker, 0);
        if (node->op != UIR_OP_MATMUL || !is_view_of_outside(l, maker)) return false;
        if (left.id && left.id != node->inputs[0].id) return false;
        left = node->inputs[0];
        for (uint32_t k = i + 1; k < uir_inspection_count(l); k++)
            if (uir_inspection_class(l, k) == UIR_FUSION_CLASS_CONTRACTION && uir_inspection_depends(l, k, i))
                return false;
    }
    return true;
}

/* The maker of an operand, movements looked through. */
static uint32_t origin_of(const uir_inspection *l, uint32_t index, uint32_t operand) {
    uint32_t maker = uir_inspection_maker(l, index, operand);
    while (maker != UIR_FUSION_NONE && (uir_inspection_class(l, maker) == UIR_FUSION_CLASS_VIEW ||
                                        uir_inspection_class(l, maker) == UIR_FUSION_CLASS_RESHAPE))
        maker = uir_inspection_maker(l, maker, 0);
    return maker;
}

static bool is_op(const uir_inspection *l, uint32_t index, uir_op op) {
    return index != UIR_FUSION_NONE && uir_inspection_node(l, index)->op == op;
}

/* The value that an operand is, movements looked through: a constant that bodies use directly. */
static bool is_constant_operand(const uir_inspection *l, uint32_t index, uint32_t operand) {
    uir_value_id value = uir_inspection_node(l, index)->inputs[operand];
    for (uint32_t maker; (maker = uir_inspection_maker(l, index, operand)) != UIR_FUSION_NONE;
         index = maker, operand = 0) {
        if (uir_inspection_class(l, maker) != UIR_FUSION_CLASS_VIEW &&
            uir_inspection_class(l, maker) != UIR_FUSION_CLASS_RESHAPE)
            return false;
        value = uir_inspection_node(l, maker)->inputs[0];
    }
    return uir_fusion_is_scalar_constant(l->c->module, value);
}

typedef struct softmax {
    uint32_t scores, parts[7], count; /* the nodes of it */
} softmax;

static bool take(const uir_inspection *l, softmax *s, uint32_t index, uir_op op) {
    if (!is_op(l, index, op)) return false;
    s->parts[s->count++] = index;
    return true;
}

/* exp(x - max x), divided by its sum; NaNs in it may be replaced by a number. */
static bool find_softmax(const uir_inspection *l, uint32_t index, softmax *s) {
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
           uir_value_type(l->c->module, uir_inspection_node(l, s->scores)->outputs[0])->dtype == UIR_DTYPE_F32;
}

/* Between the products is nothing but what leads to the softmax, and the softmax. What else read of it would be over
 * other axes than the second product. */
static bool is_only_softmax(const uir_inspection *l, uint32_t first, uint32_t last) {
    softmax s;
    if (l->reduces != 2 || !find_softmax(l, origin_of(l, last, 0), &s) || !uir_inspection_depends(l, s.scores, first))
        return false;
    for (uint32_t i = first; i < uir_inspection_count(l); i++) {
        bool after = i == last || uir_inspection_depends(l, i, last),
             between = !after && uir_inspection_depends(l, i, first), part = false;
        bool moves = uir_inspection_class(l, i) == UIR_FUSION_CLASS_VIEW ||
                     uir_inspection_class(l, i) == UIR_FUSION_CLASS_RESHAPE;
        for (uint32_t k = 0; k < s.count; k++) part |= s.parts[k] == i;
        if (between && !part && !moves && !uir_inspection_depends(l, s.scores, i)) return false;
    }
    return true;
}

/* Weights that are elementwise work on the scores, divided by a sum over the keys or not. Constant operands make layers
 * of them, whose weights are packed ahead. */
static bool is_elementwise_weight(const uir_inspection *l, uint32_t first, uint32_t last) {
    const uir_module *m = l->c->module;
    uint32_t weights = origin_of(l, last, 0), sum = UIR_FUSION_NONE;
    if (weights == UIR_FUSION_NONE || l->reduces > 1 ||
        uir_value_type(m, uir_inspection_node(l, weights)->outputs[0])->dtype != UIR_DTYPE_F32 ||
        uir_value_info_get(m, uir_inspection_node(l, first)->inputs[1])->constant ||
        uir_value_info_get(m, uir_inspection_node(l, last)->inputs[1])->constant)
        return false;
    if (l->reduces) {
        if (!is_op(l, weights, UIR_OP_DIV)) return false;
        sum = origin_of(l, weights, 1);
        if (!is_op(l, sum, UIR_OP_REDUCE_SUM)) return false;
    }
    for (uint32_t i = first + 1; i < last && sum != UIR_FUSION_NONE; i++) {
        bool moves = uir_inspection_class(l, i) == UIR_FUSION_CLASS_VIEW ||
                     uir_inspection_class(l, i) == UIR_FUSION_CLASS_RESHAPE;
        if (i != sum && i != weights && !moves && uir_inspection_depends(l, i, sum)) return false;
    }
    return sum == UIR_FUSION_NONE || !uir_inspection_depends(l, origin_of(l, weights, 0), sum);
}

/* A product, a function of the rows that it gives, and a product of what that gives. */
static bool is_attention(const uir_inspection *l) {
    uint32_t first = UIR_FUSION_NONE, last = UIR_FUSION_NONE;
    if (!runs(l, UIR_FUSION_ATTENTION) || l->contractions != 2) return false;
    for (uint32_t i = 0; i < uir_inspection_count(l); i++) {
        if (uir_inspection_class(l, i) != UIR_FUSION_CLASS_CONTRACTION) continue;
        if (uir_inspection_node(l, i)->op != UIR_OP_MATMUL) return false;
        if (first == UIR_FUSION_NONE) first = i;
        last = i;
    }
    for (uint32_t i = 0; i < uir_inspection_count(l); i++) {
        bool reduces = uir_inspection_class(l, i) == UIR_FUSION_CLASS_REDUCE;
        if (reduces && (!uir_inspection_depends(l, i, first) || uir_inspection_depends(l, i, last))) return false;
        if (uir_inspection_gives(l, i) && !uir_inspection_depends(l, i, last)) return false;
    }
    return uir_inspection_depends(l, uir_inspection_maker(l, last, 0), first) &&
           !uir_inspection_depends(l, uir_inspection_maker(l, last, 1), first) &&
           (is_only_softmax(l, first, last) || is_elementwise_weight(l, first, last));
}

static bool is_of_a_kind(const uir_inspection *l) {
    if (l->opaques) return uir_inspection_count(l) == 1;
    bool attends = is_attention(l);
    if (l->contractions > 1 && !attends && !are_siblings(l)) return false;
    for (uint32_t i = 0; i < uir_inspection_count(l); i++) {
        if (!is_placed_right(l, i)) return false;
        if (attends && uir_inspection_class(l, i) == UIR_FUSION_CLASS_REDUCE) continue;
        if (attends && !fits_contraction(l, i)) return false;
        if (attends) continue;
        if (l->contractions && l->reduces) return false;
        if (l->contractions && !fits_contraction(l, i)) return false;
        if (l->reduces && uir_inspection_count(l) > 1 && !(1u << uir_inspection_class(l, i) & CLASSES_IN_REDUCE))
            return false;
        bool is_slice = uir_inspection_class(l, i) == UIR_FUSION_CLASS_SLICE;
        if (l->reduces && is_slice && uir_inspection_maker(l, i, 0) != UIR_FUSION_NONE) return false;
    }
    return true;
}

uir_status uir_fusion_check_fits_kind(uir_inspection *l, bool *out_fits) {
    *out_fits = is_of_a_kind(l);
    return UIR_STATUS_OK;
}
