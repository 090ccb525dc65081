/* Axis identities by union and splitting. Each operand read from outside and each value made inside is an instance: a
 * list of atoms per dim. Relating two lists from their fast ends unites atoms of equal extent and splits the larger of
 * two unequal ones. */
#include "ir/graph/axes_internal.h"
#include <string.h>

enum { MOST_FACTORS = 16 };

#define APART_NONE 0
#define APART_ALL  UINT32_MAX

/* ---- atoms ---- */
static uint32_t find(const uir_axes_table *t, uint32_t a) {
    uir_axes_atom *atoms = t->atoms.data;
    while (atoms[a].parent != a) a = atoms[a].parent = atoms[atoms[a].parent].parent;
    return a;
}

static uir_status add_atom(uir_axes_table *t, uir_dim extent, uint32_t *out_atom) {
    if (!extent.id) return UIR_STATUS_OUT_OF_MEMORY;
    uir_axes_atom made = {t->atoms.count, UIR_AXES_NONE, UIR_AXES_NONE, extent, false};
    *out_atom = t->atoms.count;
    return uir_vector_push(t->arena, &t->atoms, made);
}

/* Appends the leaves that an atom is made of now. Splits halve nothing, so the depth is bounded by the factors. */
static uir_status push_leaves(uir_axes_table *t, uint32_t a, uir_axes_atoms *list) {
    a = find(t, a);
    if (t->atoms.data[a].slow == UIR_AXES_NONE) return uir_vector_push(t->arena, list, a);
    uint32_t fast = t->atoms.data[a].fast;
    UIR_TRY(push_leaves(t, t->atoms.data[a].slow, list));
    return push_leaves(t, fast, list);
}

uir_status uir_axes_push_dim(uir_axes_table *t, const uir_axes_instance *of, uint32_t dim, uir_axes_atoms *list) {
    for (uint32_t i = 0; i < of->dims[dim].count; i++) UIR_TRY(push_leaves(t, of->dims[dim].axes[i], list));
    return UIR_STATUS_OK;
}

static uir_status unite(uir_axes_table *t, uint32_t a, uint32_t b) {
    if (a == b) return UIR_STATUS_OK;
    bool unsplittable = t->atoms.data[a].unsplittable || t->atoms.data[b].unsplittable;
    /* A constant extent says more than an expression. */
    if (uir_dim_is_const(t->module->dims, t->atoms.data[b].extent, NULL))
        t->atoms.data[a].extent = t->atoms.data[b].extent;
    t->atoms.data[a].unsplittable = unsplittable;
    t->atoms.data[b].parent = a;
    return UIR_STATUS_OK;
}

/* ---- exact division ---- */
typedef struct factors {
    int64_t number;
    uir_dim other[MOST_FACTORS];
    uint32_t count;
} factors;

static bool take_factors(const uir_dims *dims, uir_dim dim, factors *out) {
    *out = (factors){.number = 1};
    const uir_dim_node *node = uir_dim_get(dims, dim);
    const uir_dim *operands = node->kind == UIR_DIM_MUL ? node->operands : &dim;
    uint32_t count = node->kind == UIR_DIM_MUL ? node->count : 1;
    for (uint32_t i = 0; i < count; i++) {
        int64_t value;
        if (uir_dim_is_const(dims, operands[i], &value)) {
            out->number *= value;
        } else {
            if (out->count == MOST_FACTORS) return false;
            out->other[out->count++] = operands[i];
        }
    }
    return out->number > 0;
}

/* The dim q with q*b = a for every binding; none when there is no such expression in sight. */
static uir_dim divide(uir_dims *dims, uir_dim a, uir_dim b) {
    factors of, by;
    if (!take_factors(dims, a, &of) || !take_factors(dims, b, &by) || of.number % by.number) return UIR_DIM_NONE;
    for (uint32_t i = 0; i < by.count; i++) {
        uint32_t at = 0;
        while (at < of.count && !uir_dim_equal(of.other[at], by.other[i])) at++;
        if (at == of.count) return UIR_DIM_NONE;
        of.other[at] = of.other[--of.count];
    }
    uir_dim result = uir_dim_const(dims, of.number / by.number);
    for (uint32_t i = 0; i < of.count; i++) result = uir_dim_mul(dims, result, of.other[i]);
    return result;
}

static bool is_same(const uir_axes_table *t, uir_dim a, uir_dim b) {
    return uir_dim_equal(a, b) || uir_dim_compare(t->module->dims, a, UIR_RELATION_EQ, b) == UIR_TRUE;
}

static bool is_one(const uir_axes_table *t, uir_dim dim) {
    int64_t value;
    return uir_dim_is_const(t->module->dims, dim, &value) && value == 1;
}

/* ---- relating ---- */
/* Splits a leaf into (extent / fast, fast). */
static uir_status split(uir_axes_table *t, uint32_t a, uint32_t fast) {
    if (t->atoms.data[a].unsplittable) return UIR_AXES_UNRELATED;
    uir_dim rest = divide(t->module->dims, t->atoms.data[a].extent, t->atoms.data[fast].extent);
    if (!rest.id) return UIR_AXES_UNRELATED;
    uint32_t slow;
    UIR_TRY(add_atom(t, rest, &slow));
    t->atoms.data[a].slow = slow;
    t->atoms.data[a].fast = fast;
    return UIR_STATUS_OK;
}

/* Makes two lists of atoms, of which the products of extents are equal, the same list. */
static uir_status relate(uir_axes_table *t, const uir_axes_atoms *left, const uir_axes_atoms *right) {
    uir_axes_atoms a = {0}, b = {0}; /* stacks: the fastest atom last */
    for (uint32_t i = 0; i < left->count; i++) UIR_TRY(push_leaves(t, left->data[i], &a));
    for (uint32_t i = 0; i < right->count; i++) UIR_TRY(push_leaves(t, right->data[i], &b));
    while (a.count || b.count) {
        if (!a.count || !b.count) return UIR_AXES_UNRELATED;
        uint32_t x = find(t, a.data[a.count - 1]), y = find(t, b.data[b.count - 1]);
        /* What an earlier step split is taken apart here. */
        uir_axes_atoms *apart = t->atoms.data[x].slow != UIR_AXES_NONE   ? &a
                                : t->atoms.data[y].slow != UIR_AXES_NONE ? &b
                                                                         : NULL;
        if (apart) {
            uint32_t whole = apart == &a ? x : y;
            apart->count--;
            UIR_TRY(push_leaves(t, whole, apart));
            continue;
        }
        if (x == y || is_same(t, t->atoms.data[x].extent, t->atoms.data[y].extent)) {
            UIR_TRY(unite(t, x, y));
            a.count--, b.count--;
            continue;
        }
        uir_status status = split(t, x, y);
        if (status == UIR_AXES_UNRELATED) status = split(t, y, x);
        UIR_TRY(status);
    }
    return UIR_STATUS_OK;
}

static uir_status relate_dims(uir_axes_table *t, const uir_axes_instance *a, uint32_t dim_a, const uir_axes_instance *b,
                              uint32_t dim_b) {
    uir_axes_atoms left = {0}, right = {0};
    UIR_TRY(uir_axes_push_dim(t, a, dim_a, &left));
    UIR_TRY(uir_axes_push_dim(t, b, dim_b, &right));
    return relate(t, &left, &right);
}

static uir_status make_unsplittable(uir_axes_table *t, const uir_axes_instance *of, uint32_t dim) {
    uir_axes_atoms list = {0};
    UIR_TRY(uir_axes_push_dim(t, of, dim, &list));
    if (list.count > 1) return UIR_AXES_UNRELATED;
    if (list.count) t->atoms.data[list.data[0]].unsplittable = true;
    return UIR_STATUS_OK;
}

/* ---- rules: how a node relates its operands' dims to its result's ---- */
typedef struct rule_call {
    uir_axes_table *t;
    const uir_node_info *node;
    const uir_axes_instance *result;    /* of result 0; NULL when it has none */
    const uir_axes_instance **operands; /* per operand */
} rule_call;

static uir_status relate_all(rule_call *c, const uir_axes_instance *a, const uir_axes_instance *b) {
    if (a->rank != b->rank) return UIR_AXES_UNRELATED;
    for (uint32_t d = 0; d < a->rank; d++) UIR_TRY(relate_dims(c->t, a, d, b, d));
    return UIR_STATUS_OK;
}

static uir_status rule_same(rule_call *c) {
    for (uint32_t i = 0; i < c->node->input_count; i++) UIR_TRY(relate_all(c, c->operands[i], c->result));
    return UIR_STATUS_OK;
}

static uir_status rule_broadcast(rule_call *c) {
    const uir_axes_instance *a = c->operands[0];
    const uir_type *from = uir_value_type(c->t->module, c->node->inputs[0]);
    uint32_t shift = c->result->rank - a->rank;
    for (uint32_t d = 0; d < a->rank; d++) {
        if (is_one(c->t, from->dims[d])) continue; /* whether another is one as well only the run tells: unrelated */
        UIR_TRY(relate_dims(c->t, a, d, c->result, d + shift));
    }
    return UIR_STATUS_OK;
}

static uir_status rule_reshape(rule_call *c) {
    uir_axes_atoms left = {0}, right = {0};
    for (uint32_t d = 0; d < c->operands[0]->rank; d++) UIR_TRY(uir_axes_push_dim(c->t, c->operands[0], d, &left));
    for (uint32_t d = 0; d < c->result->rank; d++) UIR_TRY(uir_axes_push_dim(c->t, c->result, d, &right));
    return relate(c->t, &left, &right);
}

static uir_status rule_transpose(rule_call *c) {
    uint32_t count;
    const int64_t *perm = uir_node_ints(c->t->module, c->node, "perm", &count);
    for (uint32_t d = 0; d < count; d++) UIR_TRY(relate_dims(c->t, c->operands[0], (uint32_t)perm[d], c->result, d));
    return UIR_STATUS_OK;
}

static uir_status relate_kept(rule_call *c, const bool *reduced, bool keep) {
    uint32_t to = 0;
    for (uint32_t d = 0; d < c->operands[0]->rank; d++) {
        if (!reduced[d]) UIR_TRY(relate_dims(c->t, c->operands[0], d, c->result, to));
        to += !reduced[d] || keep;
    }
    return UIR_STATUS_OK;
}

static uir_status rule_reduce(rule_call *c) {
    bool reduced[UIR_MAX_RANK + 1] = {false};
    uint32_t count;
    const int64_t *axes = uir_node_ints(c->t->module, c->node, "axes", &count);
    for (uint32_t i = 0; i < count; i++) reduced[axes[i]] = true;
    return relate_kept(c, reduced, uir_node_int(c->t->module, c->node, "keep", 0) != 0);
}

/* The position along the axis is the result: it must stay one axis. */
static uir_status rule_arg(rule_call *c) {
    bool reduced[UIR_MAX_RANK + 1] = {false};
    uint32_t axis = (uint32_t)uir_node_int(c->t->module, c->node, "axis", 0);
    reduced[axis] = true;
    UIR_TRY(make_unsplittable(c->t, c->operands[0], axis));
    return relate_kept(c, reduced, uir_node_int(c->t->module, c->node, "keep", 0) != 0);
}

static uir_status rule_scan(rule_call *c) {
    uint32_t axis = (uint32_t)uir_node_int(c->t->module, c->node, "axis", 0);
    UIR_TRY(make_unsplittable(c->t, c->operands[0], axis));
    UIR_TRY(make_unsplittable(c->t, c->result, axis));
    return rule_same(c);
}

/* Dims that a movement leaves as they are, are the same axis; the others are unsplittable on both sides. */
static uir_status relate_or_fix(rule_call *c, const uir_axes_instance *a, uint32_t dim, bool same) {
    if (same) return relate_dims(c->t, a, dim, c->result, dim);
    UIR_TRY(make_unsplittable(c->t, a, dim));
    return make_unsplittable(c->t, c->result, dim);
}

static uir_status rule_slice(rule_call *c) {
    uint32_t rank = uir_value_type(c->t->module, c->node->inputs[0])->rank;
    for (uint32_t d = 0; d < rank; d++)
        UIR_TRY(relate_or_fix(c, c->operands[0], d, uir_axes_slice_keeps(c->t->module, c->node, d)));
    return UIR_STATUS_OK;
}

static uir_status rule_pad(rule_call *c) {
    for (uint32_t d = 0; d < c->result->rank; d++)
        UIR_TRY(relate_or_fix(c, c->operands[0], d, uir_axes_pad_keeps(c->t->module, c->node, d)));
    return UIR_STATUS_OK;
}

static uir_status rule_windows(rule_call *c) {
    uint32_t rank = uir_value_type(c->t->module, c->node->inputs[0])->rank;
    for (uint32_t d = 0; d < rank; d++)
        UIR_TRY(relate_or_fix(c, c->operands[0], d, uir_axes_windows_keep(c->t->module, c->node, d)));
    for (uint32_t d = rank; d < c->result->rank; d++) UIR_TRY(make_unsplittable(c->t, c->result, d));
    return UIR_STATUS_OK;
}

static uir_status rule_concat(rule_call *c) {
    uint32_t axis = (uint32_t)uir_node_int(c->t->module, c->node, "axis", 0);
    for (uint32_t i = 0; i < c->node->input_count; i++)
        for (uint32_t d = 0; d < c->result->rank; d++) UIR_TRY(relate_or_fix(c, c->operands[i], d, d != axis));
    return UIR_STATUS_OK;
}

/* Result dims: data before the axis, the indices', data after it. */
static uir_status rule_gather(rule_call *c) {
    uint32_t axis = (uint32_t)uir_node_int(c->t->module, c->node, "axis", 0);
    const uir_axes_instance *data = c->operands[0], *indices = c->operands[1];
    UIR_TRY(make_unsplittable(c->t, data, axis));
    for (uint32_t d = 0; d < data->rank; d++) {
        if (d == axis) continue;
        UIR_TRY(relate_dims(c->t, data, d, c->result, d < axis ? d : d + indices->rank - 1));
    }
    for (uint32_t d = 0; d < indices->rank; d++) UIR_TRY(relate_dims(c->t, indices, d, c->result, axis + d));
    return UIR_STATUS_OK;
}

/* The indices have the result's dims; the data is read at the result's coordinates but for the axis, in dims that may
 * be longer. */
static uir_status rule_gather_elements(rule_call *c) {
    for (uint32_t d = 0; d < c->result->rank; d++) {
        UIR_TRY(make_unsplittable(c->t, c->operands[0], d));
        UIR_TRY(make_unsplittable(c->t, c->result, d));
    }
    return relate_all(c, c->operands[1], c->result);
}

static uir_status rule_gather_nd(rule_call *c) {
    const uir_axes_instance *data = c->operands[0], *indices = c->operands[1];
    uint32_t batch = (uint32_t)uir_node_int(c->t->module, c->node, "batch", 0);
    int64_t depth;
    const uir_type *type = uir_value_type(c->t->module, c->node->inputs[1]);
    if (!uir_dim_is_const(c->t->module->dims, type->dims[type->rank - 1], &depth)) return UIR_AXES_UNRELATED;
    UIR_TRY(make_unsplittable(c->t, indices, indices->rank - 1));
    for (uint32_t d = 0; d + 1 < indices->rank; d++) UIR_TRY(relate_dims(c->t, indices, d, c->result, d));
    for (uint32_t d = 0; d < data->rank; d++) {
        if (d < batch)
            UIR_TRY(relate_dims(c->t, data, d, c->result, d));
        else if (d < batch + depth)
            UIR_TRY(make_unsplittable(c->t, data, d));
        else
            UIR_TRY(relate_dims(c->t, data, d, c->result, indices->rank - 1 + d - batch - (uint32_t)depth));
    }
    return UIR_STATUS_OK;
}

static uir_status rule_alone(rule_call *c) {
    for (uint32_t d = 0; c->result && d < c->result->rank; d++) UIR_TRY(make_unsplittable(c->t, c->result, d));
    return UIR_STATUS_OK;
}

static uir_status rule_matmul(rule_call *c) {
    const uir_axes_instance *a = c->operands[0], *b = c->operands[1];
    uint32_t last = a->rank - 1;
    for (uint32_t d = 0; d + 2 < a->rank; d++) {
        UIR_TRY(relate_dims(c->t, a, d, c->result, d));
        UIR_TRY(relate_dims(c->t, b, d, c->result, d));
    }
    UIR_TRY(relate_dims(c->t, a, last - 1, c->result, last - 1));
    UIR_TRY(relate_dims(c->t, a, last, b, last - 1));
    return relate_dims(c->t, b, last, c->result, last);
}

/* The image's channels are those of each group, the result's and the weights' filters are. */
static uir_status relate_groups(rule_call *c, const uir_axes_instance *x, const uir_axes_instance *w) {
    uir_axes_table *t = c->t;
    int64_t groups = uir_node_int(t->module, c->node, "groups", 1), filters;
    uir_axes_atoms seen = {0}, made = {0}, list = {0};
    uint32_t group, filter;
    if (!uir_dim_is_const(t->module->dims, uir_value_type(t->module, c->node->inputs[1])->dims[0], &filters))
        return UIR_STATUS_INTERNAL;
    UIR_TRY(add_atom(t, uir_dim_const(t->module->dims, groups), &group));
    UIR_TRY(add_atom(t, uir_dim_const(t->module->dims, filters / groups), &filter));
    UIR_TRY(uir_vector_push(t->arena, &seen, group));
    UIR_TRY(uir_axes_push_dim(t, w, 1, &seen));
    UIR_TRY(uir_axes_push_dim(t, x, 1, &list));
    UIR_TRY(relate(t, &list, &seen));
    UIR_TRY(uir_vector_push(t->arena, &made, group));
    UIR_TRY(uir_vector_push(t->arena, &made, filter));
    list.count = 0;
    UIR_TRY(uir_axes_push_dim(t, w, 0, &list));
    UIR_TRY(relate(t, &list, &made));
    return relate_dims(t, w, 0, c->result, 1);
}

/* A spatial dim along which each element of the result is one of the image, at its place. */
static bool is_pointwise(const rule_call *c, uint32_t dim) {
    const uir_module *module = c->t->module;
    uint32_t count, s = dim - 2;
    uir_dim window = c->node->op == UIR_OP_CONV ? uir_value_type(module, c->node->inputs[1])->dims[dim]
                                                : uir_node_dims(module, c->node, "window", &count)[s];
    uir_dim zero = uir_dim_const(module->dims, 0);
    return is_one(c->t, window) && uir_node_ints(module, c->node, "strides", &count)[s] == 1 &&
           uir_dim_equal(uir_node_dims(module, c->node, "low", &count)[s], zero) &&
           uir_dim_equal(uir_node_dims(module, c->node, "high", &count)[s], zero);
}

static uir_status relate_window(rule_call *c, uint32_t dim) {
    if (is_pointwise(c, dim)) return relate_dims(c->t, c->operands[0], dim, c->result, dim);
    UIR_TRY(make_unsplittable(c->t, c->operands[0], dim));
    return make_unsplittable(c->t, c->result, dim);
}

/* Spatial dims are read by windows; of groups of one channel or one filter, channels are, too. */
static uir_status rule_conv(rule_call *c) {
    const uir_axes_instance *x = c->operands[0], *w = c->operands[1];
    bool split = uir_axes_splits_channels(c->t->module, c->node),
         grouped = !split && uir_node_int(c->t->module, c->node, "groups", 1) != 1;
    UIR_TRY(relate_dims(c->t, x, 0, c->result, 0));
    UIR_TRY(split ? relate_groups(c, x, w) : relate_dims(c->t, w, 0, c->result, 1));
    if (!grouped && !split) UIR_TRY(relate_dims(c->t, x, 1, w, 1));
    for (uint32_t d = grouped ? 1 : 2; d < x->rank; d++) {
        UIR_TRY(make_unsplittable(c->t, w, d));
        if (d > 1) UIR_TRY(relate_window(c, d));
    }
    if (!grouped) return UIR_STATUS_OK;
    UIR_TRY(make_unsplittable(c->t, x, 1));
    return make_unsplittable(c->t, c->result, 1);
}

static uir_status rule_window(rule_call *c) {
    for (uint32_t d = 0; d < 2; d++) UIR_TRY(relate_dims(c->t, c->operands[0], d, c->result, d));
    for (uint32_t d = 2; d < c->result->rank; d++) UIR_TRY(relate_window(c, d));
    return UIR_STATUS_OK;
}

/* Ops that are not elementwise; one without a row has no axes to share. */
static const struct {
    uir_op op;
    uir_status (*relate)(rule_call *call);
} rules[] = {
    {UIR_OP_BROADCAST, rule_broadcast},
    {UIR_OP_RESHAPE, rule_reshape},
    {UIR_OP_TRANSPOSE, rule_transpose},
    {UIR_OP_REDUCE_SUM, rule_reduce},
    {UIR_OP_REDUCE_PROD, rule_reduce},
    {UIR_OP_REDUCE_MAX, rule_reduce},
    {UIR_OP_REDUCE_MIN, rule_reduce},
    {UIR_OP_ARG_MAX, rule_arg},
    {UIR_OP_ARG_MIN, rule_arg},
    {UIR_OP_SCAN_SUM, rule_scan},
    {UIR_OP_SCAN_PROD, rule_scan},
    {UIR_OP_SLICE, rule_slice},
    {UIR_OP_PAD, rule_pad},
    {UIR_OP_WINDOWS, rule_windows},
    {UIR_OP_CONCAT, rule_concat},
    {UIR_OP_GATHER, rule_gather},
    {UIR_OP_GATHER_ELEMENTS, rule_gather_elements},
    {UIR_OP_GATHER_ND, rule_gather_nd},
    {UIR_OP_IOTA, rule_alone},
    {UIR_OP_MATMUL, rule_matmul},
    {UIR_OP_CONV, rule_conv},
    {UIR_OP_WINDOW_SUM, rule_window},
    {UIR_OP_WINDOW_MAX, rule_window},
};

static uir_status apply_rule(rule_call *c) {
    if (uir_op_get_row(c->node->op)->traits & UIR_TRAIT_ELEMENTWISE) return rule_same(c);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].op == c->node->op) return rules[i].relate(c);
    return UIR_AXES_UNRELATED;
}

/* ---- instances ---- */
void uir_axes_order_dims(const uir_module *module, uir_value_id value, uint32_t *out_order) {
    const uir_value_info *info = uir_value_info_get(module, value);
    if (info->layout && uir_layout_find_order(info->layout, info->type.dims, info->type.rank, module->dims, out_order))
        return;
    for (uint32_t d = 0; d < info->type.rank; d++) out_order[d] = d;
}

static uir_status add_instance(uir_axes_table *t, uir_value_id value, uint32_t *out_instance) {
    const uir_type *type = uir_value_type(t->module, value);
    if (type->kind != UIR_VALUE_TENSOR || !type->rank_known) return UIR_AXES_UNRELATED;
    uir_axes_instance made = {.rank = type->rank};
    UIR_TRY_ALLOCATE(made.dims, uir_arena_allocate_array(t->arena, type->rank + 1, sizeof *made.dims));
    for (uint32_t d = 0; d < type->rank; d++) {
        if (is_one(t, type->dims[d])) continue;
        uint32_t *atoms;
        UIR_TRY_ALLOCATE(atoms, uir_arena_allocate_array(t->arena, 1, sizeof *atoms));
        UIR_TRY(add_atom(t, type->dims[d], atoms));
        made.dims[d] = (uir_axis_list){atoms, 1};
    }
    uir_axes_order_dims(t->module, value, made.order);
    *out_instance = t->instances.count;
    return uir_vector_push(t->arena, &t->instances, made);
}

static uint32_t instance_of_value(const uir_axes_table *t, uir_value_id value) {
    for (uint32_t i = 0; i < t->values.count; i++)
        if (t->values.data[i].id == value.id) return t->value_instances.data[i];
    return UIR_AXES_NONE;
}

/* The instance of a value that is read from outside. */
static uir_status open_outside(uir_axes_table *t, uir_value_id value, uint32_t *out_instance) {
    bool apart = t->apart == APART_ALL || t->apart == value.id;
    for (uint32_t i = 0; i < t->outside.count && !apart; i++) {
        if (t->outside.data[i].id != value.id) continue;
        *out_instance = t->outside_instances.data[i];
        return UIR_STATUS_OK;
    }
    UIR_TRY(add_instance(t, value, out_instance));
    UIR_TRY(uir_vector_push(t->arena, &t->outside, value));
    return uir_vector_push(t->arena, &t->outside_instances, *out_instance);
}

static uir_status add_node(uir_axes_table *t, uint32_t at) {
    const uir_node_info *node = uir_node_get(t->module, t->nodes[at]);
    UIR_TRY_ALLOCATE(t->operands[at],
                     uir_arena_allocate_array(t->arena, node->input_count + 1, sizeof *t->operands[at]));
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!node->inputs[i].id) return UIR_AXES_UNRELATED;
        uint32_t found = instance_of_value(t, node->inputs[i]);
        if (found == UIR_AXES_NONE) UIR_TRY(open_outside(t, node->inputs[i], &found));
        t->operands[at][i] = found;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        uint32_t made;
        if (!node->outputs[i].id) return UIR_AXES_UNRELATED;
        UIR_TRY(add_instance(t, node->outputs[i], &made));
        UIR_TRY(uir_vector_push(t->arena, &t->values, node->outputs[i]));
        UIR_TRY(uir_vector_push(t->arena, &t->value_instances, made));
    }
    rule_call call = {.t = t, .node = node};
    UIR_TRY_ALLOCATE(call.operands, uir_arena_allocate_array(t->arena, node->input_count + 1, sizeof *call.operands));
    for (uint32_t i = 0; i < node->input_count; i++) call.operands[i] = &t->instances.data[t->operands[at][i]];
    if (node->output_count) call.result = &t->instances.data[instance_of_value(t, node->outputs[0])];
    return apply_rule(&call);
}

static uir_status analyse(const uir_module *module, const uir_node_id *nodes, uint32_t count, uir_arena *arena,
                          uint32_t apart, uir_axes *out_axes, uint32_t *out_node) {
    uir_axes_table *t;
    *out_axes = (uir_axes){0};
    UIR_TRY_ALLOCATE(t, uir_arena_allocate(arena, sizeof *t));
    *t = (uir_axes_table){.module = module, .arena = arena, .nodes = nodes, .node_count = count, .apart = apart};
    UIR_TRY_ALLOCATE(t->operands, uir_arena_allocate_array(arena, count + 1, sizeof *t->operands));
    out_axes->table = t;
    for (uint32_t i = 0; i < count; i++) {
        if (out_node) *out_node = i;
        UIR_TRY(add_node(t, i));
    }
    return uir_axes_finish(t, out_axes);
}

/* Whether a value is read at several places. */
static bool is_read_again(const uir_module *module, const uir_node_id *nodes, uint32_t count, uir_value_id value) {
    uint32_t places = 0;
    for (uint32_t n = 0; n < count; n++) {
        const uir_node_info *node = uir_node_get(module, nodes[n]);
        for (uint32_t i = 0; i < node->input_count; i++) places += node->inputs[i].id == value.id;
    }
    return places > 1;
}

uir_status uir_axes_analyse(const uir_module *module, const uir_node_id *nodes, uint32_t count, uir_arena *arena,
                            uir_axes *out_axes, uint32_t *out_node) {
    uint32_t failed = 0;
    uir_status status = analyse(module, nodes, count, arena, APART_NONE, out_axes, &failed);
    if (out_node) *out_node = failed;
    if (status != UIR_AXES_UNRELATED) return status;
    /* Perhaps one value, or several, is read in two ways. */
    uir_vector(uir_value_id) again = {0};
    const uir_axes_table *t = out_axes->table;
    for (uint32_t i = 0; i < t->outside.count; i++)
        if (is_read_again(module, nodes, count, t->outside.data[i]))
            UIR_TRY(uir_vector_push(arena, &again, t->outside.data[i]));
    for (uint32_t i = 0; i < again.count && status == UIR_AXES_UNRELATED; i++)
        status = analyse(module, nodes, count, arena, again.data[i].id, out_axes, NULL);
    if (again.count > 1 && status == UIR_AXES_UNRELATED)
        status = analyse(module, nodes, count, arena, APART_ALL, out_axes, NULL);
    return status;
}

/* ---- asking ---- */
uir_axis_list uir_axes_of_value(const uir_axes *axes, uir_value_id value) {
    uint32_t at = instance_of_value(axes->table, value);
    return at == UIR_AXES_NONE ? (uir_axis_list){NULL, 0} : axes->table->instances.data[at].list;
}

uir_axis_list uir_axes_of_operand(const uir_axes *axes, uint32_t node, uint32_t index) {
    return axes->table->instances.data[axes->table->operands[node][index]].list;
}

uint32_t uir_axes_of_value_dim(const uir_axes *axes, uir_value_id value, uint32_t dim) {
    uint32_t at = instance_of_value(axes->table, value);
    return at == UIR_AXES_NONE ? UIR_AXES_NONE : axes->table->instances.data[at].dim_axes[dim];
}

uint32_t uir_axes_of_operand_dim(const uir_axes *axes, uint32_t node, uint32_t index, uint32_t dim) {
    return axes->table->instances.data[axes->table->operands[node][index]].dim_axes[dim];
}
