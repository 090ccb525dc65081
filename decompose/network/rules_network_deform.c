/* DeformConv: pixels at shifted positions, then a product with the weights. */
#include "decompose/network/rules_network.h"

uir_status uir_rule_deform_conv(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), w = uir_rule_input(context, 1), offset = uir_rule_input(context, 2);
    uir_value_id bias = uir_rule_input(context, 3), mask = uir_rule_input(context, 4);
    uir_shape shape = uir_network_shape_between(context, x, "X", 3, 5);
    uir_shape kernel = uir_network_shape_between(context, w, "W", shape.rank, shape.rank);
    int64_t groups = uir_rule_int(context, "group", 1), shifts = uir_rule_int(context, "offset_group", 1);
    uir_window window;
    if (b->status != UIR_STATUS_OK || !uir_network_window(context, &shape, kernel.dims + 2, &window)) return b->status;
    if (groups < 1 || shifts < 1 || groups > INT32_MAX || shifts > INT32_MAX)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "attributes group and offset_group must be at least 1");
    uint32_t n = window.rank;
    uir_dtype dtype = dtype_of(b, x);
    /* Each offset group's channels are images of their own: [N * shifts, C / shifts, ..]. */
    uir_shape images = shape;
    images.dims[0] = dim_times(b, shape.dims[0], shifts);
    images.dims[1] = dim_over(b, shape.dims[1], shifts);
    uir_sampler s = uir_network_sampler(context, uir_network_reshape(b, uir_network_widen(b, x), &images));
    uir_dtype real = uir_network_working_dtype(dtype);
    uir_shape full = {1 + 2 * n, {images.dims[0]}}, taps = {1, {{0}}}, places = {1, {{0}}};
    for (uint32_t i = 0; i < n; i++) {
        full.dims[1 + i] = window.kernel[i];
        full.dims[1 + n + i] = window.out[i];
    }
    taps.dims[0] = uir_network_dim_product(b, &full, 1, 1 + n);
    places.dims[0] = uir_network_dim_product(b, &full, 1 + n, 1 + 2 * n);
    uir_shape shifted = {4, {images.dims[0], taps.dims[0], dim_int(b, n), places.dims[0]}};
    uir_shape flat = {2, {images.dims[0], dim_mul(b, taps.dims[0], places.dims[0])}};
    offset = uir_network_reshape(b, uir_build_cast(b, offset, real), &shifted);
    uir_value_id at[UIR_MAX_RANK];
    for (uint32_t i = 0; i < n; i++) {
        /* [out, kernel] as [kernel at i, out at i] of the full shape. */
        uir_value_id base = uir_network_swap(b, uir_network_window_coordinates(b, &window, i), 0, 1);
        uir_shape laid = {1 + 2 * n, {{0}}};
        for (uint32_t j = 0; j < laid.rank; j++) laid.dims[j] = dim_int(b, 1);
        laid.dims[1 + i] = window.kernel[i];
        laid.dims[1 + n + i] = window.out[i];
        base = uir_network_broadcast(b, uir_network_reshape(b, uir_build_cast(b, base, real), &laid), &full);
        uir_value_id shift = uir_network_slice(b, offset, 2, dim_int(b, i), dim_int(b, 1), 1);
        at[i] = add(b, uir_network_reshape(b, base, &flat), uir_network_reshape(b, shift, &flat));
    }
    uir_value_id pixels = uir_network_sampler_linear(&s, at); /* [images, taps * places, C / shifts] */
    if (!is_none(mask)) {
        uir_shape weights = {3, {flat.dims[0], flat.dims[1], dim_int(b, 1)}};
        pixels = multiply(b, pixels, uir_network_reshape(b, uir_build_cast(b, mask, real), &weights));
    }
    uir_shape split = {4, {images.dims[0], taps.dims[0], places.dims[0], images.dims[1]}};
    const int64_t perm[4] = {0, 3, 1, 2};
    pixels = uir_build_transpose(b, uir_network_reshape(b, pixels, &split), perm);
    uir_dim inner = dim_mul(b, kernel.dims[1], taps.dims[0]);
    uir_shape columns = {4, {shape.dims[0], dim_int(b, groups), inner, places.dims[0]}};
    uir_shape rows = {4, {dim_int(b, 1), dim_int(b, groups), dim_over(b, kernel.dims[0], groups), inner}};
    uir_value_id y = uir_build_matmul(b, uir_network_reshape(b, uir_build_cast(b, w, real), &rows),
                                      uir_network_reshape(b, pixels, &columns), real);
    uir_shape result = shape;
    result.dims[1] = kernel.dims[0];
    for (uint32_t i = 0; i < n; i++) result.dims[i + 2] = window.out[i];
    y = uir_network_reshape(b, y, &result);
    if (!is_none(bias)) y = add(b, y, uir_network_along(b, uir_build_cast(b, bias, real), 1, shape.rank));
    context->outputs[0] = uir_build_cast(b, y, dtype);
    return b->status;
}
