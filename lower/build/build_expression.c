/* What a node computes, as an expression of elements: movements are their operand at other coordinates. */
#include "lower/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_inside(uir_lower_builder *b, uir_dim index, uir_dim extent) {
    uir_dims *dims = b->f->dims;
    return uir_dim_compare(dims, index, UIR_RELATION_GE, uir_dim_const(dims, 0)) == UIR_TRUE &&
           uir_dim_compare(dims, index, UIR_RELATION_LT, extent) == UIR_TRUE;
}

/* The operand at other coordinates along its own axes; `fill` where they may be outside. */
static uir_status operand_at(uir_lower_builder *b, uint32_t node, const uir_dim *at, bool padding, double fill,
                             uint32_t *out_expression) {
    uint32_t rank = uir_value_type(b->module, uir_lower_node_info(b, node)->inputs[0])->rank;
    uir_dim kept[UIR_MAX_RANK + 1] = {{0}};
    bool inside = true;
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t axis = uir_axes_of_operand_dim(&b->axes, node, 0, d);
        if (!at[d].id || axis == UIR_AXES_NONE) continue;
        kept[d] = b->coord[axis];
        b->coord[axis] = at[d];
        inside = inside && is_inside(b, at[d], b->extents[axis]);
    }
    uir_status status = uir_lower_operand(b, node, 0, out_expression);
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t axis = uir_axes_of_operand_dim(&b->axes, node, 0, d);
        if (at[d].id && axis != UIR_AXES_NONE) b->coord[axis] = kept[d];
    }
    UIR_TRY(status);
    if (inside && !padding) return UIR_STATUS_OK;
    uir_loop_expression *e = &b->f->expressions.data[*out_expression];
    if (e->kind != UIR_LOOP_LOAD || (e->has_fill && e->fill != fill))
        return uir_lower_refuse(b, node, "an operand computed in the group may be read out of bounds");
    e->has_fill = true;
    e->fill = fill;
    return UIR_STATUS_OK;
}

/* A coordinate of the result, along a dim that is one axis or of extent 1. */
static uir_dim coord_of_result(uir_lower_builder *b, uint32_t node, uint32_t dim) {
    uint32_t axis = uir_axes_of_value_dim(&b->axes, uir_lower_node_info(b, node)->outputs[0], dim);
    return axis == UIR_AXES_NONE ? uir_dim_const(b->f->dims, 0) : b->coord[axis];
}

static uir_status slice_expression(uir_lower_builder *b, uint32_t node, uint32_t *out_expression) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    uint32_t rank, count;
    const uir_dim *starts = uir_node_dims(b->module, info, "starts", &rank);
    const int64_t *steps = uir_node_ints(b->module, info, "steps", &count);
    uir_dim at[UIR_MAX_RANK + 1] = {{0}};
    for (uint32_t d = 0; d < rank; d++) {
        if (uir_axes_slice_keeps(b->module, info, d)) continue;
        if (uir_axes_of_operand_dim(&b->axes, node, 0, d) == UIR_AXES_NONE) continue; /* of one element */
        uir_dim start;
        UIR_TRY(uir_lower_dim(b, starts[d], &start));
        uir_dim coord = coord_of_result(b, node, d);
        at[d] = uir_dim_add(b->f->dims, start, uir_dim_mul(b->f->dims, coord, uir_dim_const(b->f->dims, steps[d])));
        if (!at[d].id) return coord.id ? UIR_STATUS_OUT_OF_MEMORY : UIR_STATUS_UNSUPPORTED;
    }
    return operand_at(b, node, at, false, 0, out_expression);
}

static uir_status windows_expression(uir_lower_builder *b, uint32_t node, uint32_t *out_expression) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    uint32_t rank, count;
    const uir_dim *starts = uir_node_dims(b->module, info, "starts", &rank);
    const int64_t *steps = uir_node_ints(b->module, info, "steps", &count);
    const int64_t *axes = uir_node_ints(b->module, info, "axes", &count);
    const int64_t *dilations = uir_node_ints(b->module, info, "dilations", &count);
    uir_dims *dims = b->f->dims;
    uir_dim at[UIR_MAX_RANK + 1] = {{0}};
    for (uint32_t d = 0; d < rank; d++) {
        if (uir_axes_windows_keep(b->module, info, d)) continue;
        if (uir_axes_of_operand_dim(&b->axes, node, 0, d) == UIR_AXES_NONE)
            return uir_lower_refuse(b, node, "an axis of one element has windows");
        UIR_TRY(uir_lower_dim(b, starts[d], &at[d]));
        at[d] = uir_dim_add(dims, at[d], uir_dim_mul(dims, coord_of_result(b, node, d), uir_dim_const(dims, steps[d])));
        for (uint32_t j = 0; j < count; j++) {
            uir_dim place = axes[j] == d ? coord_of_result(b, node, rank + j) : uir_dim_const(dims, 0);
            at[d] = uir_dim_add(dims, at[d], uir_dim_mul(dims, place, uir_dim_const(dims, dilations[j])));
        }
        if (!at[d].id) return UIR_STATUS_OUT_OF_MEMORY;
    }
    return operand_at(b, node, at, false, 0, out_expression);
}

static uir_status pad_expression(uir_lower_builder *b, uint32_t node, uint32_t *out_expression) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    uint32_t rank, count, number;
    const uir_dim *low = uir_node_dims(b->module, info, "low", &rank);
    const int64_t *interior = uir_node_ints(b->module, info, "interior", &count);
    const uir_value_info *value = uir_value_info_get(b->module, info->inputs[1]);
    uir_dim at[UIR_MAX_RANK + 1] = {{0}};
    if (!value->constant || value->constant->element_count != 1)
        return uir_lower_refuse(b, node, "the pad value is not a known constant");
    UIR_TRY(uir_lower_constant(b, value->constant, &number));
    const uir_loop_expression *e = &b->f->expressions.data[number];
    double fill = uir_dtype_is_float(e->dtype) ? e->real : (double)e->integer;
    bool exact = uir_dtype_is_float(e->dtype) || (e->integer <= (int64_t)1 << 53 && e->integer >= -((int64_t)1 << 53));
    if (!exact) return uir_lower_refuse(b, node, "the pad value needs more bits than a fill has");
    for (uint32_t d = 0; d < rank; d++) {
        if (uir_axes_pad_keeps(b->module, info, d)) continue;
        if (interior[d]) return uir_lower_refuse(b, node, "the pad has padding between elements");
        if (uir_axes_of_operand_dim(&b->axes, node, 0, d) == UIR_AXES_NONE)
            return uir_lower_refuse(b, node, "an axis of one element is padded");
        uir_dim start, coord = coord_of_result(b, node, d);
        UIR_TRY(uir_lower_dim(b, low[d], &start));
        at[d] = uir_dim_sub(b->f->dims, coord, start);
        if (!at[d].id) return coord.id ? UIR_STATUS_OUT_OF_MEMORY : UIR_STATUS_UNSUPPORTED;
    }
    return operand_at(b, node, at, true, fill, out_expression);
}

static uir_status index_expression(uir_lower_builder *b, uir_dim index, uir_dtype dtype, uint32_t *out_expression) {
    if (!index.id) return UIR_STATUS_UNSUPPORTED;
    uir_loop_expression e = {.kind = UIR_LOOP_INDEX, .dtype = UIR_DTYPE_I64, .index = index};
    UIR_TRY(uir_loop_add_expression(b->f, e, out_expression));
    return uir_loop_add_cast(b->f, *out_expression, dtype, out_expression);
}

static uir_status iota_expression(uir_lower_builder *b, uint32_t node, uint32_t *out_expression) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    uint32_t dim = (uint32_t)uir_node_int(b->module, info, "axis", 0);
    return index_expression(b, coord_of_result(b, node, dim), uir_value_type(b->module, info->outputs[0])->dtype,
                            out_expression);
}

static uir_status dim_values_expression(uir_lower_builder *b, uint32_t node, uint32_t *out_expression) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    uint32_t count;
    const uir_dim *dims = uir_node_dims(b->module, info, "dims", &count);
    uir_dim dim;
    if (count != 1) return uir_lower_refuse(b, node, "more than one size is read as data");
    UIR_TRY(uir_lower_dim(b, dims[0], &dim));
    return index_expression(b, dim, uir_value_type(b->module, info->outputs[0])->dtype, out_expression);
}

bool uir_lower_is_gather(uir_op op) {
    return op == UIR_OP_GATHER || op == UIR_OP_GATHER_ELEMENTS || op == UIR_OP_GATHER_ND;
}

/* ---- indices that follow from coordinates ---- */
static uir_status coordinate_of_node(uir_lower_builder *b, uint32_t node, uint32_t depth, uir_dim *out_dim);

static uir_status coordinate_of_operand(uir_lower_builder *b, uint32_t node, uint32_t index, uint32_t depth,
                                        uir_dim *out_dim) {
    uir_value_id id = uir_lower_node_info(b, node)->inputs[index];
    const uir_lower_value *value = uir_lower_find_value(b, id);
    const uir_value_info *info = uir_value_info_get(b->module, id);
    *out_dim = UIR_DIM_NONE;
    if (value) return depth < 64 ? coordinate_of_node(b, value->node, depth + 1, out_dim) : UIR_STATUS_OK;
    if (!info->constant || info->constant->element_count != 1 || !uir_dtype_is_integer(info->constant->dtype))
        return UIR_STATUS_OK;
    *out_dim = uir_dim_const(b->f->dims, uir_dtype_load_integer(info->constant->dtype, info->constant->data, 0));
    return UIR_STATUS_OK;
}

static const struct {
    uir_op op;
    uir_dim (*make)(uir_dims *dims, uir_dim x, uir_dim y);
} arithmetic[] = {{UIR_OP_ADD, uir_dim_add}, {UIR_OP_SUB, uir_dim_sub}, {UIR_OP_MUL, uir_dim_mul}};

static const struct {
    uir_op op;
    uir_relation relation;
} relations[] = {{UIR_OP_LT, UIR_RELATION_LT}, {UIR_OP_LE, UIR_RELATION_LE}, {UIR_OP_GT, UIR_RELATION_GT},
                 {UIR_OP_GE, UIR_RELATION_GE}, {UIR_OP_EQ, UIR_RELATION_EQ}, {UIR_OP_NE, UIR_RELATION_NE}};

/* A condition that holds at every coordinate, or at none. */
static uir_status truth_of_operand(uir_lower_builder *b, uint32_t node, uint32_t index, uint32_t depth,
                                   uir_truth *out_truth) {
    const uir_lower_value *value = uir_lower_find_value(b, uir_lower_node_info(b, node)->inputs[index]);
    *out_truth = UIR_UNKNOWN;
    if (!value || depth > 64) return UIR_STATUS_OK;
    const uir_node_info *info = uir_lower_node_info(b, value->node);
    if (info->op == UIR_OP_BROADCAST || info->op == UIR_OP_RESHAPE || info->op == UIR_OP_TRANSPOSE)
        return truth_of_operand(b, value->node, 0, depth + 1, out_truth);
    for (size_t i = 0; i < sizeof relations / sizeof *relations; i++) {
        uir_dim x, y;
        if (relations[i].op != info->op) continue;
        UIR_TRY(coordinate_of_operand(b, value->node, 0, depth + 1, &x));
        UIR_TRY(coordinate_of_operand(b, value->node, 1, depth + 1, &y));
        if (x.id && y.id) *out_truth = uir_dim_compare(b->f->dims, x, relations[i].relation, y);
    }
    return UIR_STATUS_OK;
}

/* Of a concatenation at a coordinate that is a number: the piece that it is in. */
static uir_status coordinate_of_concat(uir_lower_builder *b, uint32_t node, uint32_t depth, uir_dim *out_dim) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    uint32_t dim = (uint32_t)uir_node_int(b->module, info, "axis", 0);
    int64_t at, extent;
    if (!uir_dim_is_const(b->f->dims, coord_of_result(b, node, dim), &at)) return UIR_STATUS_OK;
    for (uint32_t i = 0; i < info->input_count; i++) {
        if (!uir_dim_is_const(b->module->dims, uir_value_type(b->module, info->inputs[i])->dims[dim], &extent))
            return UIR_STATUS_OK;
        if (at >= extent) {
            at -= extent;
            continue;
        }
        uint32_t axis = uir_axes_of_operand_dim(&b->axes, node, i, dim);
        uir_dim kept = axis == UIR_AXES_NONE ? UIR_DIM_NONE : b->coord[axis];
        if (axis != UIR_AXES_NONE) b->coord[axis] = uir_dim_const(b->f->dims, at);
        uir_status status = coordinate_of_operand(b, node, i, depth, out_dim);
        if (axis != UIR_AXES_NONE) b->coord[axis] = kept;
        return status;
    }
    return UIR_STATUS_OK;
}

static uir_status coordinate_of_node(uir_lower_builder *b, uint32_t node, uint32_t depth, uir_dim *out_dim) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    uir_dim x, y;
    uint32_t count;
    *out_dim = UIR_DIM_NONE;
    if (!uir_dtype_is_integer(uir_value_type(b->module, info->outputs[0])->dtype)) return UIR_STATUS_OK;
    switch (info->op) {
    case UIR_OP_IOTA:
        *out_dim = coord_of_result(b, node, (uint32_t)uir_node_int(b->module, info, "axis", 0));
        return UIR_STATUS_OK;
    case UIR_OP_DIM_VALUES: {
        const uir_dim *dims = uir_node_dims(b->module, info, "dims", &count);
        return count == 1 ? uir_lower_dim(b, dims[0], out_dim) : UIR_STATUS_OK;
    }
    case UIR_OP_BROADCAST:
    case UIR_OP_RESHAPE:
    case UIR_OP_TRANSPOSE:
    case UIR_OP_CAST:
        return coordinate_of_operand(b, node, 0, depth, out_dim);
    case UIR_OP_CONCAT:
        return coordinate_of_concat(b, node, depth, out_dim);
    case UIR_OP_SELECT: {
        uir_truth truth;
        UIR_TRY(truth_of_operand(b, node, 0, depth, &truth));
        if (truth == UIR_UNKNOWN) return UIR_STATUS_OK;
        return coordinate_of_operand(b, node, truth == UIR_TRUE ? 1 : 2, depth, out_dim);
    }
    default:
        for (size_t i = 0; i < sizeof arithmetic / sizeof *arithmetic; i++) {
            if (arithmetic[i].op != info->op) continue;
            UIR_TRY(coordinate_of_operand(b, node, 0, depth, &x));
            UIR_TRY(coordinate_of_operand(b, node, 1, depth, &y));
            *out_dim = x.id && y.id ? arithmetic[i].make(b->f->dims, x, y) : UIR_DIM_NONE;
        }
        return UIR_STATUS_OK;
    }
}

static uir_status lower_coordinate(uir_lower_builder *b, uint32_t node, uint32_t index, uir_dim *out_dim) {
    return coordinate_of_operand(b, node, index, 0, out_dim);
}

/* The element that the indices' operand names becomes an iteration variable of the block. */
static uir_status read_index(uir_lower_builder *b, uint32_t node, uint32_t expression, uir_dim extent,
                             uir_dim *out_index) {
    const uir_loop_expression *e = &b->f->expressions.data[expression];
    char name[24];
    if (e->kind != UIR_LOOP_LOAD || e->has_fill || !b->nest)
        return uir_lower_refuse(b, node, "the indices are not in memory");
    for (uint32_t i = 0; i < b->nest->block.iter_count; i++) {
        const uir_loop_iter *iter = &b->nest->block.iters[i];
        if (!iter->data || iter->from->tensor != e->load.tensor || !uir_dim_equal(iter->extent, extent)) continue;
        if (memcmp(iter->from->indices, e->load.indices, sizeof e->load.indices)) continue;
        *out_index = uir_dim_symbol(b->f->dims, iter->symbol);
        return UIR_STATUS_OK;
    }
    uir_loop_access from = e->load;
    snprintf(name, sizeof name, "g%u", b->nest->block.iter_count);
    return uir_nest_add_read(b->nest, name, extent, &from, UIR_INDEX_CLAMP, out_index);
}

static uir_status gather_expression(uir_lower_builder *b, uint32_t node, uint32_t *out_expression) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    uint32_t rank = uir_value_type(b->module, info->inputs[0])->rank, indices;
    uir_dim at[UIR_MAX_RANK + 1] = {{0}};
    uint32_t dim = (uint32_t)uir_node_int(b->module, info, "axis", 0);
    uint32_t axis = uir_axes_of_operand_dim(&b->axes, node, 0, dim);
    if (axis != UIR_AXES_NONE) {
        UIR_TRY(lower_coordinate(b, node, 1, &at[dim]));
        if (!at[dim].id) {
            UIR_TRY(uir_lower_operand(b, node, 1, &indices));
            UIR_TRY(read_index(b, node, indices, b->extents[axis], &at[dim]));
        }
    }
    for (uint32_t d = 0; info->op == UIR_OP_GATHER_ELEMENTS && d < rank; d++)
        if (d != dim) at[d] = coord_of_result(b, node, d);
    UIR_TRY(operand_at(b, node, at, false, 0, out_expression));
    int64_t low, high;
    if (axis == UIR_AXES_NONE) return UIR_STATUS_OK;
    uir_dim_bounds(b->f->dims, b->extents[axis], &low, &high);
    uir_loop_expression *e = &b->f->expressions.data[*out_expression];
    if (low < 1 && e->kind == UIR_LOOP_LOAD) e->has_fill = true; /* an empty axis has no element to name */
    return UIR_STATUS_OK;
}

/* The indices' operand at number k along its last axis, along which it may be cut. */
static uir_status piece_operand(uir_lower_builder *b, uint32_t node, uint32_t which, uint32_t k,
                                uint32_t *out_expression) {
    const uir_lower_value *value = uir_lower_find_value(b, uir_lower_node_info(b, node)->inputs[1]);
    if (!value || value->cut == UIR_LOWER_NONE || which == UIR_AXES_NONE || b->cuts.data[value->cut].axis != which)
        return uir_lower_operand(b, node, 1, out_expression);
    const uir_lower_cut *cut = &b->cuts.data[value->cut];
    uint32_t kept = b->piece;
    for (uint32_t p = 0; p < cut->count; p++) {
        int64_t offset, extent;
        if (!uir_dim_is_const(b->f->dims, cut->pieces[p].offset, &offset) ||
            !uir_dim_is_const(b->f->dims, cut->pieces[p].extent, &extent) || k < offset || k >= offset + extent)
            continue;
        uir_dim local = b->local[which];
        b->piece = p;
        b->local[which] = uir_dim_const(b->f->dims, k - offset);
        uir_status status = uir_lower_operand(b, node, 1, out_expression);
        b->local[which] = local;
        b->piece = kept;
        return status;
    }
    return uir_lower_refuse(b, node, "the coordinates are concatenated at run time");
}

static uir_status gather_nd_expression(uir_lower_builder *b, uint32_t node, uint32_t *out_expression) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    const uir_type *type = uir_value_type(b->module, info->inputs[1]);
    uir_dim at[UIR_MAX_RANK + 1] = {{0}};
    int64_t depth;
    uint32_t batch = (uint32_t)uir_node_int(b->module, info, "batch", 0);
    uint32_t which = uir_axes_of_operand_dim(&b->axes, node, 1, type->rank - 1);
    if (!uir_dim_is_const(b->module->dims, type->dims[type->rank - 1], &depth)) return UIR_STATUS_UNSUPPORTED;
    for (uint32_t k = 0; k < (uint32_t)depth; k++) {
        uint32_t axis = uir_axes_of_operand_dim(&b->axes, node, 0, batch + k), indices;
        if (axis == UIR_AXES_NONE) continue;
        uir_dim kept = UIR_DIM_NONE;
        if (which != UIR_AXES_NONE) {
            kept = b->coord[which];
            b->coord[which] = uir_dim_const(b->f->dims, k);
        }
        uir_status status = lower_coordinate(b, node, 1, &at[batch + k]);
        if (status == UIR_STATUS_OK && !at[batch + k].id) {
            status = piece_operand(b, node, which, k, &indices);
            if (status == UIR_STATUS_OK) status = read_index(b, node, indices, b->extents[axis], &at[batch + k]);
        }
        if (which != UIR_AXES_NONE) b->coord[which] = kept;
        UIR_TRY(status);
    }
    UIR_TRY(operand_at(b, node, at, false, 0, out_expression));
    uir_loop_expression *e = &b->f->expressions.data[*out_expression];
    if (e->kind == UIR_LOOP_LOAD) e->has_fill = true; /* as for gather; free where the axis is known to have elements */
    return UIR_STATUS_OK;
}

/* An infinity whose sign is asked for. */
static uir_status is_inf_expression(uir_lower_builder *b, uint32_t node, uint32_t *out_expression) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    bool positive = uir_node_int(b->module, info, "positive", 1) != 0,
         negative = uir_node_int(b->module, info, "negative", 1) != 0;
    uint32_t arguments[2];
    UIR_TRY(uir_lower_operand(b, node, 0, &arguments[0]));
    uir_dtype dtype = b->f->expressions.data[arguments[0]].dtype;
    if (positive && negative) UIR_TRY(uir_loop_add_call(b->f, UIR_OP_ABS, dtype, arguments, 1, &arguments[0]));
    UIR_TRY(uir_loop_add_number(b->f, dtype, positive ? INFINITY : -INFINITY, 0, &arguments[1]));
    if (!positive && !negative) return uir_loop_add_number(b->f, UIR_DTYPE_BOOL, 0, 0, out_expression);
    return uir_loop_add_call(b->f, UIR_OP_EQ, UIR_DTYPE_BOOL, arguments, 2, out_expression);
}

static uir_status elementwise_expression(uir_lower_builder *b, uint32_t node, uint32_t *out_expression) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    uint32_t arguments[3];
    if (info->op == UIR_OP_IS_INF) return is_inf_expression(b, node, out_expression);
    if (info->input_count > 3) return uir_lower_refuse(b, node, "no instruction has more than 3 operands");
    if (info->op == UIR_OP_BIT_CAST) { /* a bool is 0 or 1, as it is stored */
        uir_dtype to = uir_value_type(b->module, info->outputs[0])->dtype;
        UIR_TRY(uir_lower_operand(b, node, 0, &arguments[0]));
        if (b->f->expressions.data[arguments[0]].dtype == UIR_DTYPE_BOOL)
            return uir_loop_add_cast(b->f, arguments[0], to, out_expression);
        if (to == UIR_DTYPE_BOOL) return uir_lower_refuse(b, node, "the bits may not be a bool");
        return uir_loop_add_call(b->f, UIR_OP_BIT_CAST, to, arguments, 1, out_expression);
    }
    if (info->op == UIR_OP_CAST) {
        UIR_TRY(uir_lower_operand(b, node, 0, &arguments[0]));
        uir_dtype to = uir_value_type(b->module, info->outputs[0])->dtype;
        UIR_TRY(uir_loop_add_cast(b->f, arguments[0], to, out_expression));
        b->f->expressions.data[*out_expression].overflows = *out_expression != arguments[0] &&
                                                            uir_dtype_bits(to) == 8 && uir_dtype_is_float(to) &&
                                                            !uir_node_int(b->module, info, "saturate", 1);
        return UIR_STATUS_OK;
    }
    for (uint32_t i = 0; i < info->input_count; i++) UIR_TRY(uir_lower_operand(b, node, i, &arguments[i]));
    return uir_loop_add_call(b->f, info->op, uir_value_type(b->module, info->outputs[0])->dtype, arguments,
                             info->input_count, out_expression);
}

static uir_status pass_expression(uir_lower_builder *b, uint32_t node, uint32_t *out_expression) {
    return uir_lower_operand(b, node, 0, out_expression);
}

static const struct {
    uir_op op;
    uir_status (*expression)(uir_lower_builder *b, uint32_t node, uint32_t *out_expression);
} movements[] = {
    {UIR_OP_BROADCAST, pass_expression},
    {UIR_OP_RESHAPE, pass_expression},
    {UIR_OP_TRANSPOSE, pass_expression},
    {UIR_OP_SLICE, slice_expression},
    {UIR_OP_PAD, pad_expression},
    {UIR_OP_WINDOWS, windows_expression},
    {UIR_OP_IOTA, iota_expression},
    {UIR_OP_GATHER, gather_expression},
    {UIR_OP_GATHER_ELEMENTS, gather_expression},
    {UIR_OP_GATHER_ND, gather_nd_expression},
    {UIR_OP_DIM_VALUES, dim_values_expression},
};

bool uir_lower_is_movement(uir_op op) {
    for (size_t i = 0; i < sizeof movements / sizeof *movements; i++)
        if (movements[i].op == op) return true;
    return false;
}

uir_status uir_lower_expression(uir_lower_builder *b, uint32_t node, uint32_t *out_expression) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    for (size_t i = 0; i < sizeof movements / sizeof *movements; i++)
        if (movements[i].op == info->op) return movements[i].expression(b, node, out_expression);
    if (uir_op_get_row(info->op)->traits & UIR_TRAIT_ELEMENTWISE)
        return elementwise_expression(b, node, out_expression);
    return uir_lower_refuse(b, node, "%s is not an elementwise expression", uir_op_name(info->op));
}
