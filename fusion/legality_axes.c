/* The checks of a candidate by its axes: the domain of each kind of group, and what is to fit on the chip. */
#include "fusion/legality.h"

/* ---- axes as sets ---- */
uir_status uir_fusion_check_find_axes(uir_inspection *l, bool *out_fits) {
    uir_status status = uir_axes_analyse(l->c->module, l->nodes, uir_inspection_count(l), l->arena, &l->axes, NULL);
    *out_fits = l->has_axes = status == UIR_STATUS_OK;
    return status == UIR_STATUS_UNSUPPORTED ? UIR_STATUS_OK : status;
}

static uir_status make_set(const uir_inspection *l, uir_axis_list list, uir_fusion_axis_set *out_set) {
    *out_set = (uir_fusion_axis_set){.count = list.count};
    UIR_TRY_ALLOCATE(out_set->has, uir_arena_allocate_array(l->arena, l->axes.count + 1u, sizeof *out_set->has));
    for (uint32_t i = 0; i < list.count; i++) out_set->has[list.axes[i]] = true;
    return UIR_STATUS_OK;
}

static bool is_within(uir_axis_list list, const uir_fusion_axis_set *set) {
    for (uint32_t i = 0; i < list.count; i++)
        if (!set->has[list.axes[i]]) return false;
    return true;
}

static bool is_set(uir_axis_list list, const uir_fusion_axis_set *set) {
    return list.count == set->count && is_within(list, set);
}

static uir_axis_list axes_of(const uir_inspection *l, uint32_t index) {
    return uir_axes_of_value(&l->axes, uir_inspection_node(l, index)->outputs[0]);
}

static bool extents_agree(const uir_inspection *l, uint32_t a, uint32_t b) {
    const uir_node_info *first = uir_inspection_node(l, a), *second = uir_inspection_node(l, b);
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
static bool cut_alike(const uir_inspection *l) {
    uint32_t first = UIR_FUSION_NONE, axis = UIR_AXES_NONE;
    for (uint32_t i = 0; i < uir_inspection_count(l) && l->concats > 1; i++) {
        if (uir_inspection_class(l, i) != UIR_FUSION_CLASS_CONCAT) continue;
        const uir_node_info *node = uir_inspection_node(l, i);
        uint32_t own =
            uir_axes_of_value_dim(&l->axes, node->outputs[0], (uint32_t)uir_node_int(l->c->module, node, "axis", 0));
        if (first != UIR_FUSION_NONE && (own != axis || own == UIR_AXES_NONE || !extents_agree(l, first, i)))
            return false;
        first = i, axis = own;
    }
    return true;
}

uir_status uir_fusion_check_concats_agree(uir_inspection *l, bool *out_fits) {
    *out_fits = cut_alike(l);
    return UIR_STATUS_OK;
}

/* ---- reductions ---- */
uir_status uir_fusion_check_agree_on_axes(uir_inspection *l, bool *out_fits) {
    uir_fusion_reduce_axes *axes = &l->reduced;
    bool first = true;
    *out_fits = true;
    for (uint32_t i = 0; i < uir_inspection_count(l); i++) {
        if (uir_inspection_class(l, i) != UIR_FUSION_CLASS_REDUCE) continue;
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

uir_status uir_fusion_check_fits_reduce_domain(uir_inspection *l, bool *out_fits) {
    *out_fits = true;
    for (uint32_t i = 0; i < uir_inspection_count(l); i++) {
        uir_axis_list own = axes_of(l, i);
        if (uir_inspection_gives(l, i) && !is_set(own, &l->reduced.kept) && !is_set(own, &l->reduced.all))
            *out_fits = false;
    }
    return UIR_STATUS_OK;
}

/* Rows that are used more than once stay on the chip, unless they are known not to fit. */
static bool rows_fit(const uir_inspection *l) {
    const uir_fusion_reduce_axes *axes = &l->reduced;
    double bytes = 4;
    uint32_t uses = 0;
    if (!l->c->row_capacity) return true;
    for (uint32_t a = 0; a < l->axes.count; a++) {
        int64_t extent;
        if (!axes->all.has[a] || axes->kept.has[a]) continue;
        if (!uir_dim_is_const(l->c->module->dims, l->axes.axes[a].extent, &extent)) return true;
        bytes *= (double)extent;
    }
    for (uint32_t i = 0; i < uir_inspection_count(l); i++) {
        bool over_row = is_set(axes_of(l, i), &axes->all) && axes->all.count > axes->kept.count;
        uses += uir_inspection_class(l, i) == UIR_FUSION_CLASS_REDUCE || (over_row && uir_inspection_gives(l, i));
    }
    return uses < 2 || bytes <= (double)l->c->row_capacity;
}

uir_status uir_fusion_check_fits_chip(uir_inspection *l, bool *out_fits) {
    *out_fits = rows_fit(l);
    return UIR_STATUS_OK;
}

/* ---- domains of the other kinds ---- */
uir_status uir_fusion_check_fits_domain(uir_inspection *l, bool *out_fits) {
    uir_fusion_axis_set domain = {0};
    *out_fits = true;
    for (uint32_t i = 0; i < uir_inspection_count(l) && !domain.has; i++)
        if (l->contractions ? l->roles[i] == UIR_FUSION_ROLE_SEED : uir_inspection_gives(l, i))
            UIR_TRY(make_set(l, axes_of(l, i), &domain));
    for (uint32_t i = 0; i < uir_inspection_count(l) && domain.has; i++) {
        uir_axis_list own = axes_of(l, i);
        if (l->contractions && l->roles[i] == UIR_FUSION_ROLE_AFTER && !is_set(own, &domain)) *out_fits = false;
        if (l->contractions && uir_inspection_gives(l, i) && l->roles[i] < UIR_FUSION_ROLE_SEED) *out_fits = false;
        if (uir_inspection_gives(l, i) && !is_set(own, &domain)) *out_fits = false;
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
static bool has_own_columns(const uir_inspection *l, uint32_t index) {
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

static bool same_dtypes(const uir_inspection *l, uint32_t a, uint32_t b) {
    const uir_node_info *first = uir_inspection_node(l, a), *second = uir_inspection_node(l, b);
    const uir_module *module = l->c->module;
    return uir_value_type(module, first->inputs[1])->dtype == uir_value_type(module, second->inputs[1])->dtype &&
           uir_value_type(module, first->outputs[0])->dtype == uir_value_type(module, second->outputs[0])->dtype;
}

/* Each value is over the axes of every product that it depends on; side operands over some of them. */
uir_status uir_fusion_check_fits_siblings_domain(uir_inspection *l, bool *out_fits) {
    uint32_t first = UIR_FUSION_NONE;
    *out_fits = true;
    for (uint32_t s = 0; s < uir_inspection_count(l); s++) {
        uir_fusion_axis_set domain;
        if (uir_inspection_class(l, s) != UIR_FUSION_CLASS_CONTRACTION) continue;
        if (first == UIR_FUSION_NONE) first = s;
        if (!has_own_columns(l, s) || !same_dtypes(l, first, s)) *out_fits = false;
        UIR_TRY(make_set(l, axes_of(l, s), &domain));
        for (uint32_t i = s + 1; i < uir_inspection_count(l); i++)
            if (uir_inspection_depends(l, i, s) && !is_set(axes_of(l, i), &domain)) *out_fits = false;
    }
    for (uint32_t i = 0; i < uir_inspection_count(l); i++)
        if (uir_inspection_gives(l, i) && l->roles[i] < UIR_FUSION_ROLE_SEED) *out_fits = false;
    return UIR_STATUS_OK;
}

/* What follows a product may take its columns apart: into parts of less than a vector, and each would be multiplied by
 * itself. */
uir_status uir_fusion_check_keeps_vectors(uir_inspection *l, bool *out_fits) {
    int64_t extent, lanes = l->c->options->machine ? uir_machine_lanes(l->c->options->machine) : 0;
    *out_fits = true;
    for (uint32_t i = 0, seed = UIR_FUSION_NONE; i < uir_inspection_count(l) && l->contractions == 1; i++) {
        uint32_t columns = 0, last = UIR_FUSION_NONE;
        if (l->roles[i] == UIR_FUSION_ROLE_SEED) seed = i;
        if (seed == UIR_FUSION_NONE || (i != seed && !uir_inspection_gives(l, i))) continue;
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
static bool are_side_by_side(const uir_inspection *l, uir_axis_list result, uint32_t at) {
    for (uint32_t i = 0; i < uir_inspection_count(l); i++)
        for (uint32_t k = 0; k < uir_inspection_node(l, i)->input_count; k++) {
            uir_axis_list from = uir_axes_of_operand(&l->axes, i, k);
            bool has_both = false;
            if (uir_inspection_maker(l, i, k) != UIR_FUSION_NONE) continue;
            for (uint32_t n = 1; n < from.count && !has_both; n++)
                has_both = from.axes[n] == result.axes[at] && from.axes[n - 1] == result.axes[at - 1];
            if (!has_both && (has_axis(from, result.axes[at]) || has_axis(from, result.axes[at - 1]))) return false;
        }
    return true;
}

/* Is a layout changed here, so that an operand from outside is read along another axis than the result is written? */
static bool is_turned(const uir_inspection *l, uir_axis_list result) {
    bool converts = false, turns = false;
    for (uint32_t i = 0; i < uir_inspection_count(l) && result.count; i++) {
        converts = converts || (uir_inspection_node(l, i)->op == UIR_OP_RESHAPE &&
                                uir_inspection_class(l, i) == UIR_FUSION_CLASS_VIEW);
        for (uint32_t k = 0; k < uir_inspection_node(l, i)->input_count; k++) {
            uir_axis_list from = uir_axes_of_operand(&l->axes, i, k);
            if (uir_inspection_maker(l, i, k) != UIR_FUSION_NONE || from.count < 2) continue;
            uint32_t last = from.axes[from.count - 1];
            turns = turns || (last != result.axes[result.count - 1] && has_axis(result, last));
        }
    }
    return converts && turns;
}

/* Then as many elements of the result lie side by side as a vector has. (In a conversion alone all do.) */
uir_status uir_fusion_check_converts_vectors(uir_inspection *l, bool *out_fits) {
    int64_t lanes = l->c->options->machine ? uir_machine_lanes(l->c->options->machine) : 0;
    *out_fits = true;
    for (uint32_t i = 0; i < uir_inspection_count(l) && !l->contractions; i++) {
        uir_axis_list result = axes_of(l, i);
        int64_t width = 1, extent;
        if (!uir_inspection_gives(l, i) || !is_turned(l, result)) continue;
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

static product_axes axes_of_product(const uir_inspection *l, uint32_t index) {
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

static bool is_known(const uir_inspection *l, uint32_t axis, int64_t most, int64_t *out_extent) {
    return uir_dim_is_const(l->c->module->dims, l->axes.axes[axis].extent, out_extent) && *out_extent >= 1 &&
           *out_extent <= most;
}

enum { MOST_DEPTH = 256, MOST_WIDTH = 128, KEYS_AT_ONCE = 256 };

/* Keys along one axis, heads of known size; rows that the values know nothing of. `*out_bytes`: of a tile of keys and
 * values. */
static bool can_stream(const uir_inspection *l, uint32_t first, uint32_t last, uint64_t *out_bytes) {
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

static void find_products(const uir_inspection *l, uint32_t *out_first, uint32_t *out_last) {
    *out_first = *out_last = UIR_FUSION_NONE;
    for (uint32_t i = 0; i < uir_inspection_count(l); i++) {
        if (uir_inspection_class(l, i) != UIR_FUSION_CLASS_CONTRACTION) continue;
        if (*out_first == UIR_FUSION_NONE) *out_first = i;
        *out_last = i;
    }
}

uir_status uir_fusion_check_fits_keys(uir_inspection *l, bool *out_fits) {
    uint32_t first, last;
    uint64_t bytes = 0;
    find_products(l, &first, &last);
    *out_fits = !can_stream(l, first, last, &bytes) || !l->c->row_capacity || bytes <= l->c->row_capacity;
    return UIR_STATUS_OK;
}

/* The first product's result, and all up to the second one, is over the rows S and keys R that the reductions have (if
 * there are any); R is what the second one sums over. */
uir_status uir_fusion_check_fits_attention_domain(uir_inspection *l, bool *out_fits) {
    uir_fusion_axis_set domain = {0};
    uint32_t first, last;
    uint64_t bytes;
    UIR_TRY(uir_fusion_check_agree_on_axes(l, out_fits));
    find_products(l, &first, &last);
    if (!l->reduces) {
        product_axes q = axes_of_product(l, last);
        UIR_TRY(make_set(l, axes_of(l, first), &l->reduced.all));
        UIR_TRY(make_set(l, axes_of(l, first), &l->reduced.kept));
        if (q.summed) l->reduced.kept.count -= l->reduced.kept.has[q.sum];
        if (q.summed) l->reduced.kept.has[q.sum] = false;
    }
    const uir_fusion_reduce_axes axes = l->reduced;
    UIR_TRY(make_set(l, axes_of(l, last), &domain));
    if (!can_stream(l, first, last, &bytes) || !is_set(axes_of(l, first), &axes.all)) *out_fits = false;
    if (!is_set(uir_axes_of_operand(&l->axes, last, 0), &axes.all)) *out_fits = false;
    for (uint32_t a = 0; a < l->axes.count; a++) {
        if (axes.all.has[a] && !axes.kept.has[a] && domain.has[a]) *out_fits = false;
        if (axes.kept.has[a] && !domain.has[a]) *out_fits = false;
    }
    for (uint32_t i = first; i < uir_inspection_count(l); i++) {
        bool after = uir_inspection_depends(l, i, last), between = !after && uir_inspection_depends(l, i, first);
        if (after && !is_set(axes_of(l, i), &domain)) *out_fits = false;
        if (between && !is_within(axes_of(l, i), &axes.all)) *out_fits = false;
    }
    return UIR_STATUS_OK;
}
