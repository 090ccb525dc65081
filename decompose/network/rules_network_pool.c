/* Pools: MaxPool (with indices), AveragePool, LpPool, their global forms, MaxUnpool.
 *
 * A window reduction ignores what is outside, so padding never competes for a maximum and never counts in an average
 * unless it is asked to. */
#include "decompose/network/rules_network.h"

#include <math.h>

/* Integers of 8 bits compare as themselves; window_max of a narrow float needs no widening either. */
static bool begin_pool(uir_rule_context *context, uir_value_id *out_x, uir_shape *out_shape, uir_window *out_window) {
    *out_x = uir_rule_input(context, 0);
    *out_shape = uir_network_shape_between(context, *out_x, "X", 3, UIR_MAX_RANK);
    return uir_network_window(context, out_shape, NULL, out_window);
}

/* ---- MaxPool's indices ---- */

/* Flat position (row-major over the spatial axes) that each window element reads, [positions, elements], and whether it
 * lies inside. Outside ones read position 0. */
static void window_positions(uir_builder *b, const uir_shape *shape, const uir_window *window, bool column_major,
                             uir_value_id *out_read, uir_value_id *out_named, uir_value_id *out_inside) {
    uint32_t n = window->rank;
    uir_value_id read = {0}, named = {0}, inside = {0};
    uir_dim stride = dim_int(b, 1), other = dim_int(b, 1);
    uir_dim read_strides[UIR_MAX_RANK], named_strides[UIR_MAX_RANK];
    for (uint32_t i = n; i-- > 0;) {
        read_strides[i] = stride;
        stride = dim_mul(b, stride, shape->dims[i + 2]);
    }
    for (uint32_t i = 0; i < n; i++) {
        named_strides[i] = column_major ? other : read_strides[i];
        other = dim_mul(b, other, shape->dims[i + 2]);
    }
    for (uint32_t i = 0; i < n; i++) {
        /* [out, kernel] laid out as [1.., out, 1.., kernel, 1..] over n output axes, then n window axes. */
        uir_value_id at = uir_network_window_coordinates(b, window, i);
        uir_shape spread = {2 * n, {{0}}};
        for (uint32_t j = 0; j < 2 * n; j++) spread.dims[j] = dim_int(b, 1);
        spread.dims[i] = window->out[i];
        spread.dims[n + i] = window->kernel[i];
        at = uir_network_reshape(b, at, &spread);
        uir_value_id zero = uir_build_integer_scalar(b, UIR_DTYPE_I64, 0);
        uir_value_id extent = uir_network_dim_value(b, shape->dims[i + 2], UIR_DTYPE_I64);
        uir_value_id in = both(b, greater_equal(b, at, zero), less(b, at, extent));
        uir_value_id r = multiply(b, at, uir_network_dim_value(b, read_strides[i], UIR_DTYPE_I64));
        uir_value_id m = multiply(b, at, uir_network_dim_value(b, named_strides[i], UIR_DTYPE_I64));
        read = i == 0 ? r : add(b, read, r);
        named = i == 0 ? m : add(b, named, m);
        inside = i == 0 ? in : both(b, inside, in);
    }
    uir_shape whole = {2 * n, {{0}}};
    for (uint32_t i = 0; i < n; i++) {
        whole.dims[i] = window->out[i];
        whole.dims[n + i] = window->kernel[i];
    }
    uir_shape flat = {2, {uir_network_dim_product(b, &whole, 0, n), uir_network_dim_product(b, &whole, n, 2 * n)}};
    *out_inside = uir_network_reshape(b, uir_network_broadcast(b, inside, &whole), &flat);
    *out_named = uir_network_reshape(b, uir_network_broadcast(b, named, &whole), &flat);
    read = uir_network_reshape(b, uir_network_broadcast(b, read, &whole), &flat);
    *out_read = uir_build_select(b, *out_inside, read, uir_build_integer_scalar(b, UIR_DTYPE_I64, 0));
}

/* Index into the whole input of each window's first greatest element. */
static uir_value_id max_indices(uir_rule_context *context, uir_value_id x, const uir_shape *shape,
                                const uir_window *window) {
    uir_builder *b = &context->builder;
    uir_value_id read, named, inside, best = {0}, position = {0};
    window_positions(b, shape, window, uir_rule_int(context, "storage_order", 0) != 0, &read, &named, &inside);
    uir_dim image = uir_network_dim_product(b, shape, 2, shape->rank);
    uir_shape rows = {3, {shape->dims[0], shape->dims[1], image}};
    uir_value_id elements = uir_build_gather(b, uir_network_reshape(b, x, &rows), read, 2);
    uir_dtype dtype = dtype_of(b, x);
    uir_value_id least = uir_dtype_is_float(dtype) ? uir_build_scalar(b, dtype, -HUGE_VAL)
                                                   : uir_build_integer_scalar(b, dtype, uir_dtype_integer_min(dtype));
    elements = uir_build_select(b, inside, elements, least);
    uir_attribute attributes[3] = {uir_attribute_int(b, "axis", 3), uir_attribute_int(b, "keep", 1),
                                   uir_attribute_int(b, "last", 0)};
    uir_build_node(b, UIR_OP_ARG_MAX, &elements, 1, attributes, 3, &best, 1);
    if (b->status != UIR_STATUS_OK) return best;
    uir_shape full = {4,
                      {shape->dims[0], shape->dims[1], uir_build_extent(b, named, 0), uir_build_extent(b, named, 1)}};
    uir_value_id inputs[2] = {uir_network_broadcast(b, named, &full), best};
    uir_attribute axis = uir_attribute_int(b, "axis", 3);
    uir_build_node(b, UIR_OP_GATHER_ELEMENTS, inputs, 2, &axis, 1, &position, 1);
    uir_shape planes = {1, {dim_mul(b, shape->dims[0], shape->dims[1])}};
    uir_shape column = {4, {shape->dims[0], shape->dims[1], dim_int(b, 1), dim_int(b, 1)}};
    uir_value_id plane = uir_network_reshape(b, uir_build_iota(b, UIR_DTYPE_I64, planes.dims, 1, 0), &column);
    position = add(b, position, multiply(b, plane, uir_network_dim_value(b, image, UIR_DTYPE_I64)));
    uir_shape out = *shape;
    for (uint32_t i = 0; i < window->rank; i++) out.dims[i + 2] = window->out[i];
    return uir_network_reshape(b, position, &out);
}

uir_status uir_rule_max_pool(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x;
    uir_shape shape;
    uir_window window;
    if (!begin_pool(context, &x, &shape, &window)) return b->status;
    context->outputs[0] = uir_network_window_node(b, UIR_OP_WINDOW_MAX, x, &window, window.low, window.ceil_high);
    if (uir_rule_has_output(context, 1)) context->outputs[1] = max_indices(context, x, &shape, &window);
    return b->status;
}

/* ---- averages ---- */

/* How many elements each window counts, [1, 1, out..] or rank 0 when all windows are whole. */
static uir_value_id window_counts(uir_builder *b, const uir_shape *shape, const uir_window *window, bool with_padding,
                                  uir_dtype dtype) {
    uir_dims *dims = b->module->dims;
    const uir_dim zero = dim_int(b, 0);
    bool whole = true;
    uir_dim volume = dim_int(b, 1), low[UIR_MAX_RANK], high[UIR_MAX_RANK];
    uir_shape ones = {shape->rank, {dim_int(b, 1), dim_int(b, 1)}};
    for (uint32_t i = 0; i < window->rank; i++) {
        uir_dim padding = dim_add(b, window->low[i], window->high[i]);
        volume = dim_mul(b, volume, window->kernel[i]);
        ones.dims[i + 2] = with_padding ? dim_add(b, shape->dims[i + 2], padding) : shape->dims[i + 2];
        low[i] = with_padding ? zero : window->low[i];
        high[i] = with_padding ? dim_sub(b, window->ceil_high[i], window->high[i]) : window->ceil_high[i];
        whole = whole && uir_dim_compare(dims, low[i], UIR_RELATION_LE, zero) == UIR_TRUE &&
                uir_dim_compare(dims, high[i], UIR_RELATION_LE, zero) == UIR_TRUE;
    }
    if (whole) return uir_network_dim_value(b, volume, dtype);
    uir_value_id one = uir_network_full(b, dtype, 1, &ones);
    return uir_network_window_node(b, UIR_OP_WINDOW_SUM, one, window, low, high);
}

uir_status uir_rule_average_pool(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x;
    uir_shape shape;
    uir_window window;
    if (!begin_pool(context, &x, &shape, &window)) return b->status;
    uir_value_id wide = uir_network_widen(b, x);
    uir_value_id sum = uir_network_window_node(b, UIR_OP_WINDOW_SUM, wide, &window, window.low, window.ceil_high);
    bool with_padding = uir_rule_int(context, "count_include_pad", 0) != 0;
    uir_value_id counts = window_counts(b, &shape, &window, with_padding, dtype_of(b, wide));
    context->outputs[0] = uir_build_cast(b, divide(b, sum, counts), dtype_of(b, x));
    return b->status;
}

/* |x|^p and its inverse; 1 and 2 without powers. */
static uir_value_id to_power(uir_builder *b, uir_value_id x, int64_t p) {
    if (p == 2) return square(b, x);
    return p == 1 ? absolute(b, x) : power(b, absolute(b, x), scalar_like(b, x, (double)p));
}

static uir_value_id root(uir_builder *b, uir_value_id x, int64_t p) {
    if (p == 2) return square_root(b, x);
    return p == 1 ? x : power(b, x, scalar_like(b, x, 1.0 / (double)p));
}

static int64_t norm_order(uir_rule_context *context) {
    if (context->since_version < 2) { /* a float then */
        double real = uir_rule_float(context, "p", 2);
        if (real >= 1 && real <= INT32_MAX && real == (double)(int64_t)real) return (int64_t)real;
        (void)uir_builder_fail(&context->builder, UIR_STATUS_UNSUPPORTED,
                               "attribute p is %g; whole numbers from 1 on are supported", real);
        return 2;
    }
    int64_t p = uir_rule_int(context, "p", 2);
    if (p < 1)
        (void)uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "attribute p is %lld; at least 1 is required",
                               (long long)p);
    return p;
}

uir_status uir_rule_lp_pool(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x;
    uir_shape shape;
    uir_window window;
    int64_t p = norm_order(context);
    if (!begin_pool(context, &x, &shape, &window)) return b->status;
    uir_value_id powers = to_power(b, uir_network_widen(b, x), p);
    uir_value_id sum = uir_network_window_node(b, UIR_OP_WINDOW_SUM, powers, &window, window.low, window.ceil_high);
    context->outputs[0] = uir_build_cast(b, root(b, sum, p), dtype_of(b, x));
    return b->status;
}

/* ---- global forms: reductions over the spatial axes ---- */

static uint32_t spatial_axes(uir_rule_context *context, uir_value_id x, int64_t *axes) {
    uir_shape shape = uir_network_shape_between(context, x, "X", 2, UIR_MAX_RANK);
    uint32_t count = 0;
    for (uint32_t i = 2; i < shape.rank; i++) axes[count++] = i;
    return count;
}

uir_status uir_rule_global_average_pool(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    int64_t axes[UIR_NETWORK_AXES];
    uint32_t count = spatial_axes(context, x, axes);
    uir_value_id mean = uir_network_mean(context, uir_network_widen(b, x), axes, count);
    context->outputs[0] = uir_build_cast(b, mean, dtype_of(b, x));
    return b->status;
}

uir_status uir_rule_global_max_pool(uir_rule_context *context) {
    int64_t axes[UIR_NETWORK_AXES];
    uir_value_id x = uir_rule_input(context, 0);
    uint32_t count = spatial_axes(context, x, axes);
    context->outputs[0] = reduce_max(&context->builder, x, axes, count);
    return context->builder.status;
}

uir_status uir_rule_global_lp_pool(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    int64_t axes[UIR_NETWORK_AXES], p = norm_order(context);
    uint32_t count = spatial_axes(context, x, axes);
    uir_value_id sum = reduce_sum(b, to_power(b, uir_network_widen(b, x), p), axes, count);
    context->outputs[0] = uir_build_cast(b, root(b, sum, p), dtype_of(b, x));
    return b->status;
}

/* ---- MaxUnpool: each element back to where MaxPool's index says, zeros elsewhere ---- */

uir_status uir_rule_max_unpool(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), index = uir_rule_input(context, 1),
                 wanted = uir_rule_input(context, 2);
    uir_shape shape = uir_network_shape_between(context, x, "X", 3, UIR_MAX_RANK);
    uir_window window;
    if (!uir_network_window(context, &shape, NULL, &window)) return b->status;
    uir_shape out = shape;
    for (uint32_t i = 0; i < window.rank; i++) {
        uir_dim full =
            dim_add(b, dim_times(b, dim_plus(b, shape.dims[i + 2], -1), window.strides[i]), window.kernel[i]);
        out.dims[i + 2] = dim_sub(b, full, dim_add(b, window.low[i], window.high[i]));
    }
    /* Indices count in the tensor that the attributes imply; a larger output_shape keeps it in its corner. */
    uir_shape count = {1, {uir_network_dim_product(b, &shape, 0, shape.rank)}};
    uir_shape space = {1, {uir_network_dim_product(b, &out, 0, out.rank)}};
    uir_value_id inputs[3] = {uir_network_full(b, dtype_of(b, x), 0, &space), uir_network_reshape(b, index, &count),
                              uir_network_reshape(b, x, &count)};
    uir_attribute attributes[2] = {uir_attribute_int(b, "axis", 0), uir_attribute_string(b, "reduction", "none")};
    uir_value_id y = {0};
    uir_rule_check_below(context, index, index, space.dims[0]);
    if (is_none(wanted)) {
        uir_build_node(b, UIR_OP_SCATTER_ELEMENTS, inputs, 3, attributes, 2, &y, 1);
        context->outputs[0] = uir_network_reshape(b, y, &out);
        return b->status;
    }
    const uir_dim *dims = uir_network_input_dims(context, wanted, "output_shape", shape.rank);
    if (!dims) return b->status;
    uir_build_node(b, UIR_OP_SCATTER_ELEMENTS, inputs, 3, attributes, 2, &y, 1);
    uir_dim low[UIR_NETWORK_AXES], high[UIR_NETWORK_AXES];
    int64_t interior[UIR_NETWORK_AXES] = {0};
    for (uint32_t i = 0; i < shape.rank; i++) {
        low[i] = dim_int(b, 0);
        high[i] = dim_sub(b, dims[i], out.dims[i]);
    }
    context->outputs[0] = uir_build_pad(b, uir_network_reshape(b, y, &out), scalar_like(b, x, 0), low, high, interior);
    return b->status;
}
