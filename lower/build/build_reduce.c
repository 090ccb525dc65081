/* Reductions, over axes or windows, of a group's body: an init, an update by one element, and a finish where the state
 * is not the result. */
#include "lower/internal.h"

#include <stdio.h>
#include <string.h>

/* Axes of the operand that the result has not. */
static uir_status reduced_axes(uir_lower_builder *b, uint32_t node, uir_axis_list *out_axes) {
    uir_axis_list from = uir_axes_of_operand(&b->axes, node, 0),
                  to = uir_axes_of_value(&b->axes, uir_lower_node_info(b, node)->outputs[0]);
    uint32_t *axes, count = 0;
    UIR_TRY_ALLOCATE(axes, uir_arena_allocate_array(b->arena, from.count + 1, sizeof *axes));
    for (uint32_t i = 0; i < from.count; i++) {
        bool kept = false;
        for (uint32_t k = 0; k < to.count; k++) kept = kept || to.axes[k] == from.axes[i];
        if (!kept) axes[count++] = from.axes[i];
    }
    *out_axes = (uir_axis_list){axes, count};
    return UIR_STATUS_OK;
}

/* The tensors that hold the state. */
typedef struct states {
    uint32_t tensors[UIR_LOOP_MAX_STATE];
    uint32_t count;
} states;

static uir_status make_states(uir_lower_builder *b, uint32_t node, const uir_loop_monoid *m, states *out) {
    uir_value_id value = uir_lower_node_info(b, node)->outputs[0];
    uir_axis_list list = uir_axes_of_value(&b->axes, value);
    uir_dim extents[UIR_LOOP_MAX_RANK];
    uint32_t result;
    UIR_TRY(uir_lower_add_result(b, node, 0, &result));
    *out = (states){.count = m->state_count};
    for (uint32_t i = 0; i < list.count; i++) extents[i] = b->extents[list.axes[i]];
    for (uint32_t k = 0; k < m->state_count; k++) {
        char name[48];
        snprintf(name, sizeof name, "s%u_%s", b->names++, m->state_names[k]);
        UIR_TRY(uir_loop_add_tensor(b->f, name, m->state_dtypes[k], UIR_LOOP_ROLE_TEMP, 0, extents, list.count,
                                    &out->tensors[k]));
    }
    return UIR_STATUS_OK;
}

static void target_states(const uir_lower_builder *b, uint32_t node, const states *s, uir_loop_access *out) {
    uir_axis_list list = uir_axes_of_value(&b->axes, uir_lower_node_info(b, node)->outputs[0]);
    for (uint32_t k = 0; k < s->count; k++) {
        out[k] = (uir_loop_access){.tensor = s->tensors[k]};
        for (uint32_t i = 0; i < list.count; i++) out[k].indices[i] = b->coord[list.axes[i]];
    }
}

static uir_status update_nest(uir_lower_builder *b, uint32_t node, uint32_t number, uint32_t monoid, const states *s,
                              uir_axis_list list, uir_axis_list reduced) {
    uir_nest nest;
    uir_loop_access targets[UIR_LOOP_MAX_STATE];
    uint32_t values[UIR_LOOP_MAX_STATE];
    const uir_loop_monoid *m = &b->f->monoids.data[monoid];
    uint32_t elements = m->element_count;
    uir_dtype dtype = m->element_dtypes[0];
    uir_loop_expression nothing = b->f->expressions.data[m->identity[0]];
    bool padded = false;
    UIR_TRY(uir_lower_begin_nest(b, &nest, number, "", list));
    if (uir_lower_is_window(uir_lower_node_info(b, node)->op))
        UIR_TRY(uir_lower_iterate_window(b, node, &padded));
    else
        UIR_TRY(uir_lower_iterate(b, reduced, true));
    UIR_TRY(uir_lower_operand(b, node, 0, &values[0]));
    if (padded) /* outside is as if it were not there */
        UIR_TRY(uir_lower_fill_outside(b, node, values[0],
                                       uir_dtype_is_float(dtype) ? nothing.real : (double)nothing.integer));
    UIR_TRY(uir_loop_add_cast(b->f, values[0], dtype, &values[0]));
    if (elements == 2) { /* the position along the one axis */
        uir_loop_expression e = {.kind = UIR_LOOP_INDEX, .dtype = UIR_DTYPE_I64};
        e.index = reduced.count ? b->coord[reduced.axes[0]] : uir_dim_const(b->f->dims, 0);
        UIR_TRY(uir_loop_add_expression(b->f, e, &values[1]));
    }
    target_states(b, node, s, targets);
    UIR_TRY(uir_nest_add_statement(&nest, UIR_LOOP_STATEMENT_UPDATE, monoid, targets, s->count, values, elements));
    return uir_lower_end_nest(b, &nest);
}

uir_status uir_lower_reduction(uir_lower_builder *b, uint32_t node) {
    const uir_node_info *info = uir_lower_node_info(b, node);
    uir_dtype dtype = uir_value_type(b->module, info->inputs[0])->dtype;
    bool last = uir_node_int(b->module, info, "last", 0) != 0;
    uint32_t monoid, number = b->names++;
    uir_axis_list reduced, list = uir_axes_of_value(&b->axes, info->outputs[0]);
    uir_nest nest;
    uir_loop_access targets[UIR_LOOP_MAX_STATE], result;
    states s;
    uir_status status = uir_loop_get_monoid(b->f, info->op, last, dtype, &monoid);
    if (status == UIR_STATUS_UNSUPPORTED) return uir_lower_refuse(b, node, "%s has no kernel", uir_op_name(info->op));
    UIR_TRY(status);
    for (uint32_t i = 0; i < b->values.count; i++)
        if (b->values.data[i].value.id == info->inputs[0].id && b->values.data[i].cut != UIR_LOWER_NONE)
            return uir_lower_refuse(b, node, "the reduced operand is concatenated in the group");
    UIR_TRY(reduced_axes(b, node, &reduced));
    UIR_TRY(make_states(b, node, &b->f->monoids.data[monoid], &s));
    UIR_TRY(uir_lower_begin_nest(b, &nest, number, "_init", list));
    target_states(b, node, &s, targets);
    UIR_TRY(uir_nest_add_statement(&nest, UIR_LOOP_STATEMENT_INIT, monoid, targets, s.count, NULL, 0));
    UIR_TRY(uir_lower_end_nest(b, &nest));
    UIR_TRY(update_nest(b, node, number, monoid, &s, list, reduced));
    UIR_TRY(uir_lower_begin_nest(b, &nest, number, "_finish", list));
    target_states(b, node, &s, targets);
    uint32_t values[UIR_LOOP_MAX_STATE];
    for (uint32_t k = 0; k < s.count; k++)
        UIR_TRY(uir_loop_add_load(b->f, s.tensors[k], targets[k].indices, &values[k]));
    UIR_TRY(uir_lower_target(b, info->outputs[0], &result));
    UIR_TRY(uir_nest_add_statement(&nest, UIR_LOOP_STATEMENT_FINISH, monoid, &result, 1, values, s.count));
    return uir_lower_end_nest(b, &nest);
}
