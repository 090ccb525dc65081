/* Normalisations. All variances are two-pass (so never below 0), all arithmetic at least f32, cast back once at the
 * end. */
#include "decompose/network/rules_network.h"

#include <string.h>

/* x / sqrt(variance + epsilon), as a factor. */
static uir_value_id inverse_deviation(uir_builder *b, uir_value_id variance, double epsilon) {
    return uir_network_reciprocal(b, square_root(b, add_scalar(b, variance, epsilon)));
}

static uint32_t axes_from(int64_t *axes, uint32_t first, uint32_t last) {
    uint32_t count = 0;
    for (uint32_t i = first; i < last; i++) axes[count++] = i;
    return count;
}

/* Whether a statistic is of a channel. Until opset 8 BatchNormalization may have one of each element of a sample. */
static bool is_spatial(const uir_rule_context *context) {
    return context->op != UIR_OP_ONNX_BATCH_NORMALIZATION || context->since_version >= 9 ||
           uir_rule_int(context, "spatial", 1) != 0;
}

/* A per-channel input [C] against [N, C, ..], in a dtype. */
static uir_value_id channels(uir_rule_context *context, uint32_t index, const char *name, uint32_t rank, uir_dtype to) {
    uir_builder *b = &context->builder;
    uir_value_id value = uir_rule_input(context, index);
    if (!is_spatial(context)) {
        (void)uir_network_shape_between(context, value, name, rank - 1, rank - 1);
        return uir_build_cast(b, value, to);
    }
    (void)uir_network_shape_between(context, value, name, 1, 1);
    return uir_network_along(b, uir_build_cast(b, value, to), 1, rank);
}

/* ---- BatchNormalization ---- */

/* Per channel y = x*a + c: what folding into a convolution needs. */
static uir_value_id scale_and_shift(uir_builder *b, uir_value_id x, uir_value_id scale, uir_value_id bias,
                                    uir_value_id mean, uir_value_id variance, double epsilon) {
    uir_value_id a = divide(b, scale, square_root(b, add_scalar(b, variance, epsilon)));
    return add(b, multiply(b, x, a), subtract(b, bias, multiply(b, mean, a)));
}

/* momentum * old + (1 - momentum) * new. */
static uir_value_id running(uir_rule_context *context, uint32_t index, const char *name, uir_value_id now,
                            uint32_t rank) {
    uir_builder *b = &context->builder;
    double momentum = uir_rule_float(context, "momentum", 0.9f);
    uir_value_id old = channels(context, index, name, rank, dtype_of(b, now));
    uir_value_id mixed = add(b, multiply_scalar(b, old, momentum), multiply_scalar(b, now, 1.0 - momentum));
    uir_dim extent = uir_build_extent(b, uir_rule_input(context, index), 0);
    return uir_build_cast(b, uir_build_reshape(b, mixed, &extent, 1), dtype_of(b, uir_rule_input(context, index)));
}

uir_status uir_rule_batch_normalization(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    uir_shape shape = uir_network_shape_between(context, x, "X", 1, UIR_MAX_RANK);
    if (b->status != UIR_STATUS_OK) return b->status;
    bool training =
        context->since_version >= 14 ? uir_rule_int(context, "training_mode", 0) != 0 : uir_rule_has_output(context, 1);
    if (context->since_version < 7 && uir_rule_int(context, "is_test", 0)) training = false;
    if (training && !is_spatial(context))
        return uir_builder_fail(b, UIR_STATUS_UNSUPPORTED, "training with spatial = 0 is not supported");
    double epsilon = uir_rule_float(context, "epsilon", 1e-5f);
    /* A tensor of rank 1 is one channel per element of N: [N] as [N, 1]. */
    uint32_t rank = shape.rank < 2 ? 2 : shape.rank;
    uir_value_id wide = uir_network_widen(b, x);
    if (shape.rank == 1) {
        const int64_t second = 1;
        wide = uir_build_unsqueeze(b, wide, &second, 1);
    }
    uir_dtype real = dtype_of(b, wide);
    uir_value_id scale = channels(context, 1, "scale", rank, real), bias = channels(context, 2, "B", rank, real);
    uir_value_id mean, variance;
    if (training) {
        int64_t axes[UIR_NETWORK_AXES] = {0};
        uint32_t count = 1 + axes_from(axes + 1, 2, rank);
        uir_value_id difference;
        uir_network_moments(context, wide, axes, count, &difference, &mean, &variance);
        uir_value_id inverse = inverse_deviation(b, variance, epsilon);
        wide = add(b, multiply(b, multiply(b, difference, inverse), scale), bias);
    } else {
        mean = channels(context, 3, "input_mean", rank, real);
        variance = channels(context, 4, "input_var", rank, real);
        wide = scale_and_shift(b, wide, scale, bias, mean, variance, epsilon);
    }
    context->outputs[0] = uir_build_cast(b, uir_network_reshape(b, wide, &shape), dtype_of(b, x));
    if (training && uir_rule_has_output(context, 1))
        context->outputs[1] = running(context, 3, "input_mean", mean, rank);
    if (training && uir_rule_has_output(context, 2))
        context->outputs[2] = running(context, 4, "input_var", variance, rank);
    for (uint32_t i = 1; i < context->output_count; i++)
        if (uir_rule_has_output(context, i) && (!training || i > 2))
            return uir_builder_fail(b, UIR_STATUS_UNSUPPORTED,
                                    "output %u of BatchNormalization exists only in training mode; remove it", i);
    return b->status;
}

/* ---- norms over the trailing axes ---- */

uir_status uir_rule_instance_normalization(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    uir_shape shape = uir_network_shape_between(context, x, "input", 3, UIR_MAX_RANK);
    if (b->status != UIR_STATUS_OK) return b->status;
    int64_t axes[UIR_NETWORK_AXES];
    uint32_t count = axes_from(axes, 2, shape.rank);
    uir_value_id difference, variance;
    uir_network_moments(context, uir_network_widen(b, x), axes, count, &difference, NULL, &variance);
    uir_value_id inverse = inverse_deviation(b, variance, uir_rule_float(context, "epsilon", 1e-5f));
    uir_dtype real = dtype_of(b, difference);
    uir_value_id y = multiply(b, multiply(b, difference, inverse), channels(context, 1, "scale", shape.rank, real));
    y = add(b, y, channels(context, 2, "B", shape.rank, real));
    context->outputs[0] = uir_build_cast(b, y, dtype_of(b, x));
    return b->status;
}

/* The dtype that statistics are computed and given out in. */
static uir_dtype stash_dtype(uir_rule_context *context, uir_dtype dtype) {
    uir_dtype stash = uir_network_dtype_attribute(context, "stash_type", UIR_DTYPE_F32);
    if (uir_dtype_bits(stash) < 32) stash = UIR_DTYPE_F32;
    return dtype == UIR_DTYPE_F64 ? UIR_DTYPE_F64 : stash;
}

/* Axis attribute to the list of axes from it to the last. */
static uint32_t trailing_axes(uir_rule_context *context, uint32_t rank, int64_t *axes) {
    int64_t first = uir_rule_axis(context, uir_rule_int(context, "axis", -1), rank);
    return context->builder.status == UIR_STATUS_OK ? axes_from(axes, (uint32_t)first, rank) : 0;
}

uir_status uir_rule_layer_normalization(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), scale = uir_rule_input(context, 1), bias = uir_rule_input(context, 2);
    uir_shape shape = uir_network_shape_between(context, x, "X", 1, UIR_MAX_RANK);
    if (b->status != UIR_STATUS_OK) return b->status;
    int64_t axes[UIR_NETWORK_AXES];
    uint32_t count = trailing_axes(context, shape.rank, axes);
    uir_dtype real = stash_dtype(context, dtype_of(b, x));
    uir_value_id difference, mean, variance;
    uir_network_moments(context, uir_build_cast(b, x, real), axes, count, &difference, &mean, &variance);
    uir_value_id inverse = inverse_deviation(b, variance, uir_rule_float(context, "epsilon", 1e-5f));
    uir_value_id y = multiply(b, multiply(b, difference, inverse), uir_build_cast(b, scale, real));
    if (!is_none(bias)) y = add(b, y, uir_build_cast(b, bias, real));
    context->outputs[0] = uir_build_cast(b, y, dtype_of(b, x));
    if (uir_rule_has_output(context, 1)) context->outputs[1] = mean;
    if (uir_rule_has_output(context, 2)) context->outputs[2] = inverse;
    return b->status;
}

/* x / sqrt(mean(x*x) + epsilon), and that factor. */
static uir_value_id root_mean_square(uir_rule_context *context, uir_value_id x, const int64_t *axes, uint32_t count,
                                     uir_value_id *out_inverse) {
    uir_builder *b = &context->builder;
    *out_inverse = inverse_deviation(b, uir_network_mean(context, square(b, x), axes, count),
                                     uir_rule_float(context, "epsilon", 1e-5f));
    return multiply(b, x, *out_inverse);
}

uir_status uir_rule_rms_normalization(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), scale = uir_rule_input(context, 1), inverse;
    uir_shape shape = uir_network_shape_between(context, x, "X", 1, UIR_MAX_RANK);
    if (b->status != UIR_STATUS_OK) return b->status;
    int64_t axes[UIR_NETWORK_AXES];
    uint32_t count = trailing_axes(context, shape.rank, axes);
    uir_dtype real = stash_dtype(context, dtype_of(b, x));
    uir_value_id y = root_mean_square(context, uir_build_cast(b, x, real), axes, count, &inverse);
    y = multiply(b, y, uir_build_cast(b, scale, real));
    context->outputs[0] = uir_build_cast(b, y, dtype_of(b, scale));
    if (uir_rule_has_output(context, 1)) context->outputs[1] = inverse;
    return b->status;
}

/* com.microsoft: x + skip (+ bias) is normalised over the last axis, and given out as output 3. */
static uir_value_id skip_sum(uir_rule_context *context, uint32_t bias_index) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), skip = uir_rule_input(context, 1);
    uir_value_id bias = uir_rule_input(context, bias_index);
    uir_value_id sum = add(b, uir_network_widen(b, x), uir_network_widen(b, skip));
    if (!is_none(bias)) sum = add(b, sum, uir_build_cast(b, bias, dtype_of(b, sum)));
    if (uir_rule_has_output(context, 3)) context->outputs[3] = uir_build_cast(b, sum, dtype_of(b, x));
    return sum;
}

/* The sum normalised over its last axis, times gamma, plus beta (none: 0). */
static uir_value_id last_normalised(uir_rule_context *context, uir_value_id sum, uir_value_id gamma, uir_value_id beta,
                                    uir_value_id *out_mean, uir_value_id *out_inverse) {
    uir_builder *b = &context->builder;
    uir_value_id difference, variance;
    int64_t last = uir_rule_rank(context, sum);
    if (b->status != UIR_STATUS_OK) return sum;
    last -= 1;
    uir_network_moments(context, sum, &last, 1, &difference, out_mean, &variance);
    *out_inverse = inverse_deviation(b, variance, uir_rule_float(context, "epsilon", 1e-12f));
    uir_dtype real = dtype_of(b, sum);
    uir_value_id y = multiply(b, multiply(b, difference, *out_inverse), uir_build_cast(b, gamma, real));
    return is_none(beta) ? y : add(b, y, uir_build_cast(b, beta, real));
}

uir_status uir_rule_skip_layer_normalization(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id sum = skip_sum(context, 4), mean = {0}, inverse = {0};
    uir_value_id y =
        last_normalised(context, sum, uir_rule_input(context, 2), uir_rule_input(context, 3), &mean, &inverse);
    context->outputs[0] = uir_build_cast(b, y, dtype_of(b, uir_rule_input(context, 0)));
    if (uir_rule_has_output(context, 1)) context->outputs[1] = mean;
    if (uir_rule_has_output(context, 2)) context->outputs[2] = inverse;
    return b->status;
}

/* Rows of a table [n, hidden], by ids that must be 0 .. n-1. */
static uir_value_id embedded(uir_rule_context *context, uint32_t table_index, const char *name, uir_value_id ids) {
    uir_builder *b = &context->builder;
    uir_value_id table = uir_rule_input(context, table_index);
    uir_shape shape = uir_network_shape_between(context, table, name, 2, 2);
    if (b->status != UIR_STATUS_OK) return table;
    uir_rule_check_below(context, ids, ids, shape.dims[0]);
    return uir_network_widen(b, uir_build_gather(b, table, uir_build_cast(b, ids, UIR_DTYPE_I64), 0));
}

/* How many ones each row of the mask has; 0 where there is no mask. */
static uir_value_id mask_index(uir_rule_context *context, uir_value_id mask, uir_dim batch) {
    uir_builder *b = &context->builder;
    const uir_shape shape = {1, {batch}};
    const int64_t second = 1;
    if (is_none(mask)) return uir_network_full(b, UIR_DTYPE_I32, 0, &shape);
    uir_value_id ones = uir_build_cast(b, equal(b, mask, scalar_like(b, mask, 1)), UIR_DTYPE_I32);
    return uir_build_reduce(b, UIR_OP_REDUCE_SUM, ones, &second, 1, false);
}

/* com.microsoft: words, places and (where there are any) segments looked up, added and normalised. */
uir_status uir_rule_embed_layer_normalization(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id ids = uir_rule_input(context, 0), segments = uir_rule_input(context, 1);
    uir_value_id places = uir_rule_input(context, 8), mean, inverse = {0};
    uir_dtype dtype = dtype_of(b, uir_rule_input(context, 2));
    uir_shape shape = uir_network_shape_between(context, ids, "input_ids", 2, 2);
    if (b->status != UIR_STATUS_OK) return b->status;
    if (is_none(segments) != is_none(uir_rule_input(context, 4)))
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE,
                                "segment_ids and segment_embedding must both be given, or neither");
    if (is_none(places)) places = uir_network_range(b, UIR_DTYPE_I64, shape.dims[1]);
    uir_value_id sum =
        add(b, embedded(context, 2, "word_embedding", ids), embedded(context, 3, "position_embedding", places));
    if (!is_none(segments)) sum = add(b, sum, embedded(context, 4, "segment_embedding", segments));
    uir_value_id y =
        last_normalised(context, sum, uir_rule_input(context, 5), uir_rule_input(context, 6), &mean, &inverse);
    context->outputs[0] = uir_build_cast(b, y, dtype);
    if (uir_rule_has_output(context, 1))
        context->outputs[1] = mask_index(context, uir_rule_input(context, 7), shape.dims[0]);
    if (uir_rule_has_output(context, 2)) context->outputs[2] = uir_build_cast(b, sum, dtype);
    return b->status;
}

uir_status uir_rule_skip_simplified_layer_normalization(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id sum = skip_sum(context, 3), inverse;
    uint32_t rank = uir_rule_rank(context, sum);
    if (b->status != UIR_STATUS_OK) return b->status;
    int64_t last = rank;
    last -= 1;
    uir_value_id y = root_mean_square(context, sum, &last, 1, &inverse);
    y = multiply(b, y, uir_build_cast(b, uir_rule_input(context, 2), dtype_of(b, sum)));
    context->outputs[0] = uir_build_cast(b, y, dtype_of(b, uir_rule_input(context, 0)));
    if (uir_rule_has_output(context, 2)) context->outputs[2] = inverse;
    if (uir_rule_has_output(context, 1))
        return uir_builder_fail(b, UIR_STATUS_UNSUPPORTED,
                                "output mean does not exist for a root mean square; remove it");
    return b->status;
}

/* ---- GroupNormalization: [N, C, ..] as [N, groups, C/groups * ..]; scale and bias per group before version 21 ---- */

uir_status uir_rule_group_normalization(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    uir_shape shape = uir_network_shape_between(context, x, "X", 2, UIR_MAX_RANK - 1);
    int64_t groups = uir_rule_int(context, "num_groups", 0);
    if (b->status != UIR_STATUS_OK) return b->status;
    if (groups < 1 || groups > INT32_MAX)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "attribute num_groups is %lld; at least 1 is required",
                                (long long)groups);
    uir_dtype real = stash_dtype(context, dtype_of(b, x));
    uir_shape grouped = {shape.rank + 1, {shape.dims[0], dim_int(b, groups), dim_over(b, shape.dims[1], groups)}};
    for (uint32_t i = 2; i < shape.rank; i++) grouped.dims[i + 1] = shape.dims[i];
    int64_t axes[UIR_NETWORK_AXES];
    uint32_t count = axes_from(axes, 2, grouped.rank);
    uir_value_id difference, variance;
    uir_network_moments(context, uir_network_reshape(b, uir_build_cast(b, x, real), &grouped), axes, count, &difference,
                        NULL, &variance);
    uir_value_id y = multiply(b, difference, inverse_deviation(b, variance, uir_rule_float(context, "epsilon", 1e-5f)));
    bool by_group = context->since_version < 21;
    if (!by_group) y = uir_network_reshape(b, y, &shape);
    uint32_t rank = by_group ? grouped.rank : shape.rank;
    y = multiply(b, y, channels(context, 1, "scale", rank, real));
    y = add(b, y, channels(context, 2, "bias", rank, real));
    if (by_group) y = uir_network_reshape(b, y, &shape);
    context->outputs[0] = uir_build_cast(b, y, dtype_of(b, x));
    return b->status;
}

/* ---- the rest ---- */

/* x / the p-norm along the axis; where that is 0 the result is 0. */
uir_status uir_rule_lp_normalization(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    uir_shape shape = uir_network_shape_between(context, x, "input", 1, UIR_MAX_RANK);
    if (b->status != UIR_STATUS_OK) return b->status;
    int64_t axis = uir_rule_axis(context, uir_rule_int(context, "axis", -1), shape.rank);
    int64_t p = uir_rule_int(context, "p", 2);
    if (p != 1 && p != 2)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "attribute p is %lld; 1 and 2 are defined", (long long)p);
    uir_value_id wide = uir_network_widen(b, x);
    uir_value_id norm =
        p == 1 ? reduce_sum(b, absolute(b, wide), &axis, 1) : square_root(b, reduce_sum(b, square(b, wide), &axis, 1));
    uir_value_id zero = scalar_like(b, wide, 0);
    norm = uir_build_select(b, equal(b, norm, zero), scalar_like(b, wide, 1), norm);
    context->outputs[0] = uir_build_cast(b, divide(b, wide, norm), dtype_of(b, x));
    return b->status;
}

uir_status uir_rule_mean_variance_normalization(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    uir_shape shape = uir_network_shape_between(context, x, "X", 0, UIR_MAX_RANK);
    if (b->status != UIR_STATUS_OK) return b->status;
    static const int64_t usual[3] = {0, 2, 3};
    const int64_t *given = usual;
    int64_t count = uir_rule_ints(context, "axes", &given);
    if (count < 0) {
        count = 3;
        given = usual;
    }
    bool reduced[UIR_MAX_RANK] = {false};
    int64_t axes[UIR_NETWORK_AXES];
    uint32_t used = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t axis = uir_rule_axis(context, given[i], shape.rank);
        if (b->status != UIR_STATUS_OK) return b->status;
        reduced[axis] = true;
    }
    for (uint32_t i = 0; i < shape.rank; i++)
        if (reduced[i]) axes[used++] = i;
    uir_value_id difference, variance;
    uir_network_moments(context, uir_network_widen(b, x), axes, used, &difference, NULL, &variance);
    /* The 1e-9 is the op's own: it keeps a constant channel finite. */
    uir_value_id y = divide(b, difference, add_scalar(b, square_root(b, variance), 1e-9));
    context->outputs[0] = uir_build_cast(b, y, dtype_of(b, x));
    return b->status;
}

/* x / (bias + alpha/size * sum of squares over `size` neighbouring channels) ^ beta. */
uir_status uir_rule_lrn(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    uir_shape shape = uir_network_shape_between(context, x, "X", 2, UIR_MAX_RANK);
    int64_t size = uir_rule_int(context, "size", 0);
    if (b->status != UIR_STATUS_OK) return b->status;
    if (size < 1 || size > INT32_MAX)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "attribute size is %lld; at least 1 is required",
                                (long long)size);
    double alpha = uir_rule_float(context, "alpha", 1e-4f), beta = uir_rule_float(context, "beta", 0.75);
    double bias = uir_rule_float(context, "bias", 1);
    uir_value_id wide = uir_network_widen(b, x);
    /* [N, 1, C, rest]: a window over the channels alone. */
    uir_shape flat = {4,
                      {shape.dims[0], dim_int(b, 1), shape.dims[1], uir_network_dim_product(b, &shape, 2, shape.rank)}};
    uir_dim one = dim_int(b, 1), zero = dim_int(b, 0);
    uir_window window = {.rank = 2, .kernel = {dim_int(b, size), one}, .strides = {1, 1}, .dilations = {1, 1}};
    uir_dim low[2] = {dim_int(b, (size - 1) / 2), zero}, high[2] = {dim_int(b, size - 1 - (size - 1) / 2), zero};
    uir_value_id sum = uir_network_window_node(b, UIR_OP_WINDOW_SUM, uir_network_reshape(b, square(b, wide), &flat),
                                               &window, low, high);
    sum = uir_network_reshape(b, sum, &shape);
    uir_value_id base = add_scalar(b, multiply_scalar(b, sum, alpha / (double)size), bias);
    context->outputs[0] =
        uir_build_cast(b, divide(b, wide, power(b, base, scalar_like(b, base, beta))), dtype_of(b, x));
    return b->status;
}
