/* Softmax, LogSoftmax, Hardmax, the losses made of them, and Dropout.
 *
 * Before opset 13 the three flatten their input to a matrix at `axis`: the same as working over all axes from it on. */
#include "decompose/network/rules_network.h"

#include <math.h>
#include <string.h>

static uint32_t softmax_axes(uir_rule_context *context, uint32_t rank, int64_t *axes) {
    bool flattens = context->since_version < 13;
    if (rank == 0) return 0;
    int64_t axis = uir_rule_int(context, "axis", flattens ? 1 : -1);
    uint32_t count = 0;
    if (flattens && axis == rank) return 0; /* rows of one element */
    axis = uir_rule_axis(context, axis, rank);
    if (context->builder.status != UIR_STATUS_OK) return 0;
    axes[count++] = axis;
    for (int64_t i = axis + 1; flattens && i < rank; i++) axes[count++] = i;
    return count;
}

uir_status uir_rule_softmax(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    int64_t axes[UIR_NETWORK_AXES];
    uint32_t count = softmax_axes(context, uir_network_shape(context, x).rank, axes);
    context->outputs[0] =
        uir_build_cast(b, uir_network_softmax(b, uir_network_widen(b, x), axes, count), dtype_of(b, x));
    return b->status;
}

uir_status uir_rule_log_softmax(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    int64_t axes[UIR_NETWORK_AXES];
    uint32_t count = softmax_axes(context, uir_network_shape(context, x).rank, axes);
    context->outputs[0] =
        uir_build_cast(b, uir_network_log_softmax(b, uir_network_widen(b, x), axes, count), dtype_of(b, x));
    return b->status;
}

/* Rows that may have no element get one behind all others, less than any: there is a greatest of each row then. */
static uir_value_id with_one(uir_builder *b, uir_value_id rows, const uir_shape *shape, uint32_t axis) {
    uir_dims *dims = b->module->dims;
    uir_dim low[UIR_MAX_RANK], high[UIR_MAX_RANK];
    const int64_t interior[UIR_MAX_RANK] = {0};
    uir_dim one = uir_dim_const(dims, 1);
    if (uir_dim_compare(dims, shape->dims[axis], UIR_RELATION_GE, one) == UIR_TRUE) return rows;
    for (uint32_t d = 0; d < shape->rank; d++) {
        low[d] = uir_dim_const(dims, 0);
        high[d] = d == axis ? one : low[d];
    }
    return uir_build_pad(b, rows, scalar_like(b, rows, -HUGE_VAL), low, high, interior);
}

/* 1 at the first greatest element along the axis, 0 elsewhere. */
uir_status uir_rule_hardmax(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    uir_shape shape = uir_network_shape(context, x), flat = shape;
    int64_t axes[UIR_NETWORK_AXES] = {0};
    uint32_t count = softmax_axes(context, shape.rank, axes);
    if (b->status != UIR_STATUS_OK) return b->status;
    if (count == 0) {
        context->outputs[0] = uir_network_full(b, dtype_of(b, x), 1, &shape);
        return b->status;
    }
    uint32_t axis = (uint32_t)axes[0];
    flat.rank = shape.rank - count + 1;
    flat.dims[axis] = uir_network_dim_product(b, &shape, axis, axis + count);
    uir_value_id rows = with_one(b, uir_network_reshape(b, x, &flat), &flat, axis), best = {0};
    uir_attribute attributes[3] = {uir_attribute_int(b, "axis", axis), uir_attribute_int(b, "keep", 1),
                                   uir_attribute_int(b, "last", 0)};
    uir_build_node(b, UIR_OP_ARG_MAX, &rows, 1, attributes, 3, &best, 1);
    uir_value_id here = uir_build_iota(b, UIR_DTYPE_I64, flat.dims, flat.rank, axis);
    uir_value_id y = uir_build_select(b, equal(b, here, best), scalar_like(b, x, 1), scalar_like(b, x, 0));
    context->outputs[0] = uir_network_reshape(b, y, &shape);
    return b->status;
}

/* ---- losses ---- */

/* -log_p at the target class times its weight, reduced. log_p [N, C, d..], target [N, d..], weights [C] or none. */
static uir_value_id nll(uir_rule_context *context, uir_value_id log_p, uir_value_id target, uir_value_id weights) {
    static const char *const reductions[] = {"none", "sum", "mean", NULL};
    uir_builder *b = &context->builder;
    uint32_t reduction = uir_network_choice(context, "reduction", "mean", reductions);
    const uir_attribute *ignore = uir_node_find_attribute(context->source, context->node, "ignore_index");
    uir_shape shape = uir_network_shape_between(context, target, "target", 1, UIR_MAX_RANK);
    if (b->status != UIR_STATUS_OK) return (uir_value_id){0};
    const int64_t classes = 1;
    uir_value_id index = uir_build_cast(b, target, UIR_DTYPE_I64), kept = {0}, factor = {0};
    if (ignore) {
        uir_value_id ignored = uir_build_integer_scalar(b, UIR_DTYPE_I64, uir_rule_int(context, "ignore_index", 0));
        kept = different(b, index, ignored);
        index = uir_build_select(b, kept, index, uir_build_integer_scalar(b, UIR_DTYPE_I64, 0));
    }
    uir_rule_check_below(context, index, target, uir_build_extent(b, log_p, 1));
    if (!is_none(weights)) weights = uir_build_expect(b, weights, 0, uir_build_extent(b, log_p, 1));
    uir_value_id inputs[2] = {log_p, uir_build_unsqueeze(b, index, &classes, 1)}, picked = {0};
    uir_attribute axis = uir_attribute_int(b, "axis", 1);
    uir_build_node(b, UIR_OP_GATHER_ELEMENTS, inputs, 2, &axis, 1, &picked, 1);
    uir_value_id loss = negate(b, uir_build_squeeze(b, picked, &classes, 1));
    if (!is_none(weights)) factor = uir_build_gather(b, uir_build_cast(b, weights, dtype_of(b, loss)), index, 0);
    if (!is_none(kept)) {
        uir_value_id some = is_none(factor) ? scalar_like(b, loss, 1) : factor;
        factor = uir_build_select(b, kept, some, scalar_like(b, loss, 0));
    }
    if (!is_none(factor)) loss = multiply(b, loss, factor);
    /* An ignored element's own log probability may be infinite: it must not make a NaN of the product. */
    if (!is_none(kept)) loss = uir_build_select(b, kept, loss, scalar_like(b, loss, 0));
    if (reduction == 0) return loss;
    int64_t axes[UIR_NETWORK_AXES];
    for (uint32_t i = 0; i < shape.rank; i++) axes[i] = i;
    uir_value_id total = uir_build_reduce(b, UIR_OP_REDUCE_SUM, loss, axes, shape.rank, false);
    if (reduction == 1) return total;
    uir_value_id weight =
        is_none(factor) ? uir_network_dim_value(b, uir_network_dim_product(b, &shape, 0, shape.rank), dtype_of(b, loss))
                        : uir_build_reduce(b, UIR_OP_REDUCE_SUM, factor, axes, shape.rank, false);
    return divide(b, total, weight);
}

uir_status uir_rule_negative_log_likelihood_loss(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    (void)uir_network_shape_between(context, x, "input", 2, UIR_MAX_RANK);
    uir_value_id loss = nll(context, uir_network_widen(b, x), uir_rule_input(context, 1), uir_rule_input(context, 2));
    context->outputs[0] = uir_build_cast(b, loss, dtype_of(b, x));
    return b->status;
}

uir_status uir_rule_softmax_cross_entropy_loss(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    (void)uir_network_shape_between(context, x, "scores", 2, UIR_MAX_RANK);
    if (b->status != UIR_STATUS_OK) return b->status;
    const int64_t classes = 1;
    uir_value_id log_p = uir_network_log_softmax(b, uir_network_widen(b, x), &classes, 1);
    uir_value_id loss = nll(context, log_p, uir_rule_input(context, 1), uir_rule_input(context, 2));
    context->outputs[0] = uir_build_cast(b, loss, dtype_of(b, x));
    if (uir_rule_has_output(context, 1)) context->outputs[1] = uir_build_cast(b, log_p, dtype_of(b, x));
    return b->status;
}

/* ---- Dropout ---- */

/* Inference passes the data on and keeps every element. Training (opset 12 on, training_mode true) draws a mask and
 * scales what it keeps by 1/(1 - ratio); a training_mode known only at run time chooses by a select. */
uir_status uir_rule_dropout(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), ratio = uir_rule_input(context, 1);
    uir_value_id training = context->since_version >= 12 ? uir_rule_input(context, 2) : (uir_value_id){0};
    uir_shape shape = uir_network_shape(context, x);
    if (b->status != UIR_STATUS_OK) return b->status;
    uir_tensor *known = is_none(training) ? NULL : uir_rule_constant(context, training);
    const bool first = context->since_version < 7, train = first && !uir_rule_int(context, "is_test", 0);
    bool off =
        (is_none(training) && !train) || (known && known->element_count == 1 && *(const uint8_t *)known->data == 0);
    double rate = first ? uir_rule_float(context, "ratio", 0.5) : 0.5;
    bool rate_known = is_none(ratio) || uir_rule_constant_number(context, ratio, &rate);
    if (off || (rate_known && rate == 0)) {
        context->outputs[0] = x;
        uir_dtype mask = context->since_version < 10 ? dtype_of(b, x) : UIR_DTYPE_BOOL;
        if (uir_rule_has_output(context, 1)) context->outputs[1] = uir_network_full(b, mask, 1, &shape);
        return b->status;
    }
    uir_value_id wide = uir_network_widen(b, x), drawn = {0};
    uir_dtype real = dtype_of(b, wide);
    uir_value_id fraction = is_none(ratio) ? uir_build_scalar(b, real, rate)
                                           : uir_build_cast(b, uir_network_as_scalar(context, ratio, "ratio"), real);
    uir_attribute attributes[5] = {uir_attribute_dims(b, "dims", shape.dims, shape.rank),
                                   uir_attribute_dtype(b, "dtype", real), uir_attribute_float(b, "low", 0),
                                   uir_attribute_float(b, "high", 1)};
    uint32_t count = 4;
    if (uir_node_find_attribute(context->source, context->node, "seed"))
        attributes[count++] = uir_attribute_int(b, "seed", uir_rule_int(context, "seed", 0));
    uir_build_node(b, UIR_OP_RANDOM_UNIFORM, NULL, 0, attributes, count, &drawn, 1);
    uir_value_id kept = greater_equal(b, drawn, fraction), zero = scalar_like(b, wide, 0);
    uir_value_id factor = uir_network_reciprocal(b, subtract(b, scalar_like(b, wide, 1), fraction));
    uir_value_id y = uir_build_select(b, kept, multiply(b, wide, factor), zero);
    if (!known && !train) {
        uir_value_id on = uir_network_as_scalar(context, training, "training_mode");
        y = uir_build_select(b, on, y, wide);
        kept = either(b, kept, negation(b, on));
    }
    context->outputs[0] = uir_build_cast(b, y, dtype_of(b, x));
    if (uir_rule_has_output(context, 1)) context->outputs[1] = first ? uir_build_cast(b, kept, dtype_of(b, x)) : kept;
    return b->status;
}
