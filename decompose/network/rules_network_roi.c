/* Regions of interest: RoiAlign and MaxRoiPool. */
#include "decompose/network/rules_network.h"

#include <math.h>

/* Column `index` of [R, n], as [R]. */
static uir_value_id column(uir_builder *b, uir_value_id rows, uint32_t index) {
    const int64_t second = 1;
    return uir_build_squeeze(b, uir_network_slice(b, rows, 1, dim_int(b, index), dim_int(b, 1), 1), &second, 1);
}

typedef struct roi_axis {
    uir_dim bins, samples; /* per bin, at most */
    uir_value_id at;       /* [R, bins * samples]: coordinates */
    uir_value_id counted;  /* bool of that shape: the sample is one of this region's, or none: all are */
    uir_value_id used;     /* [R]: samples per bin of each region */
} roi_axis;

/* Sampling coordinates on one axis of each region. */
static roi_axis roi_coordinates(uir_rule_context *context, uir_value_id start, uir_value_id end, int64_t bins,
                                bool half_pixel) {
    uir_builder *b = &context->builder;
    roi_axis a = {.bins = dim_int(b, bins)};
    int64_t ratio = uir_rule_int(context, "sampling_ratio", 0);
    uir_value_id length = subtract(b, end, start), bin;
    if (!half_pixel) length = maximum(b, length, scalar_like(b, length, 1));
    bin = divide_scalar(b, length, (double)bins);
    if (ratio > 0) {
        a.samples = dim_int(b, ratio);
        a.used = scalar_like(b, bin, (double)ratio);
    } else { /* as many as the bin is long: bound by the longest region's */
        const int64_t first = 0;
        uint32_t count = 0;
        a.used = maximum(b, ceil_of(b, bin), scalar_like(b, bin, 0));
        uir_value_id most = uir_build_reduce(b, UIR_OP_REDUCE_MAX, a.used, &first, 1, false);
        most = maximum(b, uir_build_cast(b, most, UIR_DTYPE_I64), uir_build_integer_scalar(b, UIR_DTYPE_I64, 0));
        const uir_dim *dims = uir_rule_dims(context, most, 0, &count);
        a.samples = dims && count == 1 ? dims[0] : dim_int(b, 1);
    }
    const int64_t inner[2] = {1, 2}, middle = 1;
    uir_dtype real = dtype_of(b, bin);
    uir_value_id sample = uir_network_range(b, real, a.samples);
    uir_value_id used = ratio > 0 ? a.used : uir_build_unsqueeze(b, a.used, inner, 2);
    uir_value_id wide = uir_build_unsqueeze(b, bin, inner, 2);
    uir_value_id step = divide(b, multiply(b, add_scalar(b, sample, 0.5), wide), used); /* [R, 1, samples] */
    uir_value_id bin_start = multiply(b, uir_build_unsqueeze(b, uir_network_range(b, real, a.bins), &middle, 1), wide);
    uir_value_id at = add(b, add(b, uir_build_unsqueeze(b, start, inner, 2), bin_start), step);
    uir_shape flat = {2, {uir_build_extent(b, start, 0), dim_mul(b, a.bins, a.samples)}};
    a.at = uir_network_reshape(b, at, &flat);
    if (ratio > 0) return a;
    uir_shape full = {3, {flat.dims[0], a.bins, a.samples}};
    a.counted = uir_network_reshape(b, uir_network_broadcast(b, less(b, sample, used), &full), &flat);
    return a;
}

/* Indices and weights of both pixels beside each coordinate, [R, n] each. */
static void roi_taps(uir_builder *b, const roi_axis *a, uir_dim extent, uir_value_id *index, uir_value_id *weight) {
    uir_value_id length = uir_network_dim_value(b, extent, dtype_of(b, a->at)), zero = scalar_like(b, a->at, 0);
    uir_value_id valid = both(b, greater_equal(b, a->at, scalar_like(b, a->at, -1)), less_equal(b, a->at, length));
    if (!is_none(a->counted)) valid = both(b, valid, a->counted);
    uir_value_id at = minimum(b, maximum(b, a->at, zero), add_scalar(b, length, -1)), low = floor_of(b, at);
    uir_value_id fraction = subtract(b, at, low);
    index[0] = uir_network_inside_index(b, low, extent);
    index[1] = uir_network_inside_index(b, add_scalar(b, low, 1), extent);
    weight[0] = uir_build_select(b, valid, subtract(b, scalar_like(b, at, 1), fraction), zero);
    weight[1] = uir_build_select(b, valid, fraction, zero);
}

/* [R, rows] against [R, columns] laid out over [R, rows, columns], flat. */
static uir_value_id over_plane(uir_builder *b, uir_value_id x, const uir_shape *plane, bool is_row) {
    const int64_t axis = is_row ? 2 : 1;
    uir_shape flat = {2, {plane->dims[0], dim_mul(b, plane->dims[1], plane->dims[2])}};
    return uir_network_reshape(b, uir_network_broadcast(b, uir_build_unsqueeze(b, x, &axis, 1), plane), &flat);
}

uir_status uir_rule_roi_align(uir_rule_context *context) {
    static const char *const modes[] = {"avg", "max", NULL};
    static const char *const transforms[] = {"half_pixel", "output_half_pixel", NULL};
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), rois = uir_rule_input(context, 1);
    uir_shape shape = uir_network_shape_between(context, x, "X", 4, 4);
    uir_shape regions = uir_network_shape_between(context, rois, "rois", 2, 2);
    int64_t rows = uir_rule_int(context, "output_height", 1), columns = uir_rule_int(context, "output_width", 1);
    bool maximal = uir_network_choice(context, "mode", "avg", modes) == 1;
    bool half_pixel = context->since_version >= 16 &&
                      uir_network_choice(context, "coordinate_transformation_mode", "half_pixel", transforms) == 0;
    if (b->status != UIR_STATUS_OK) return b->status;
    if (rows < 1 || columns < 1 || rows > INT32_MAX || columns > INT32_MAX)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "attributes output_height and output_width must be at least 1");
    uir_sampler s = uir_network_sampler(context, uir_network_widen(b, x));
    uir_rule_check_below(context, uir_rule_input(context, 2), uir_rule_input(context, 2), shape.dims[0]);
    s.batch = uir_build_cast(b, uir_rule_input(context, 2), UIR_DTYPE_I64);
    rois = multiply_scalar(b, uir_network_widen(b, rois), uir_rule_float(context, "spatial_scale", 1));
    if (half_pixel) rois = add_scalar(b, rois, -0.5);
    roi_axis v = roi_coordinates(context, column(b, rois, 1), column(b, rois, 3), rows, half_pixel);
    roi_axis h = roi_coordinates(context, column(b, rois, 0), column(b, rois, 2), columns, half_pixel);
    uir_value_id y_index[2], y_weight[2], x_index[2], x_weight[2], total = {0};
    roi_taps(b, &v, shape.dims[2], y_index, y_weight);
    roi_taps(b, &h, shape.dims[3], x_index, x_weight);
    uir_shape plane = {3, {regions.dims[0], dim_mul(b, v.bins, v.samples), dim_mul(b, h.bins, h.samples)}};
    const int64_t third = 2;
    for (uint32_t i = 0; i < 4; i++) {
        uir_value_id at[2] = {over_plane(b, y_index[i / 2], &plane, true),
                              over_plane(b, x_index[i % 2], &plane, false)};
        uir_value_id weight =
            multiply(b, over_plane(b, y_weight[i / 2], &plane, true), over_plane(b, x_weight[i % 2], &plane, false));
        uir_value_id pixel = uir_network_sampler_take(&s, at);
        pixel = multiply(b, pixel, uir_build_unsqueeze(b, uir_build_cast(b, weight, dtype_of(b, pixel)), &third, 1));
        total = i == 0 ? pixel : maximal ? maximum(b, total, pixel) : add(b, total, pixel);
    }
    uir_shape bins = {6, {regions.dims[0], v.bins, v.samples, h.bins, h.samples, shape.dims[1]}};
    const int64_t sampled[2] = {2, 4}, perm[4] = {0, 3, 1, 2};
    total = uir_network_reshape(b, total, &bins);
    if (maximal && !is_none(v.counted)) { /* samples that a region does not have must not win */
        uir_value_id counted = both(b, over_plane(b, v.counted, &plane, true), over_plane(b, h.counted, &plane, false));
        uir_shape without_channels = bins;
        without_channels.dims[5] = dim_int(b, 1);
        counted = uir_network_reshape(b, counted, &without_channels);
        total = uir_build_select(b, counted, total, scalar_like(b, total, -HUGE_VAL));
    }
    uir_value_id y = uir_build_reduce(b, maximal ? UIR_OP_REDUCE_MAX : UIR_OP_REDUCE_SUM, total, sampled, 2, false);
    uir_value_id used = multiply(b, v.used, h.used); /* [R] or rank 0 */
    if (rank_of(b, used) == 1) used = uir_network_along(b, used, 0, 4);
    used = uir_build_cast(b, used, dtype_of(b, y));
    if (maximal)
        y = uir_build_select(b, greater(b, used, scalar_like(b, used, 0)), y, scalar_like(b, y, 0));
    else
        y = divide(b, y, maximum(b, used, scalar_like(b, used, 1)));
    context->outputs[0] = uir_build_cast(b, uir_build_transpose(b, y, perm), dtype_of(b, x));
    return b->status;
}

/* Whether pixel p of an axis lies in bin k of each region: bool [R, bins, extent]. */
static uir_value_id roi_bins(uir_builder *b, uir_value_id start, uir_value_id end, int64_t bins, uir_dim extent) {
    const int64_t inner[2] = {1, 2}, second = 1;
    uir_value_id half = scalar_like(b, start, 0.5), one = scalar_like(b, start, 1);
    start = floor_of(b, add(b, start, half));
    end = floor_of(b, add(b, end, half));
    uir_value_id bin = divide_scalar(b, maximum(b, add(b, subtract(b, end, start), one), one), (double)bins);
    bin = uir_build_unsqueeze(b, bin, inner, 2);
    start = uir_build_unsqueeze(b, start, inner, 2);
    uir_value_id k = uir_build_unsqueeze(b, uir_network_range(b, dtype_of(b, start), dim_int(b, bins)), &second, 1);
    uir_value_id low = add(b, floor_of(b, multiply(b, k, bin)), start);
    uir_value_id high = add(b, ceil_of(b, multiply(b, add(b, k, one), bin)), start);
    uir_value_id p = uir_network_range(b, dtype_of(b, start), extent);
    return both(b, greater_equal(b, p, low), less(b, p, high));
}

/* Two maxima, first along the columns of each bin, then along its rows; an empty bin gives 0. */
uir_status uir_rule_max_roi_pool(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), rois = uir_rule_input(context, 1);
    uir_shape shape = uir_network_shape_between(context, x, "X", 4, 4);
    (void)uir_network_shape_between(context, rois, "rois", 2, 2);
    int64_t pooled[2];
    if (!uir_network_int_list(context, "pooled_shape", 2, 1, 1, pooled)) return b->status;
    uir_value_id image = uir_build_cast(b, column(b, rois, 0), UIR_DTYPE_I64);
    uir_rule_check_below(context, image, rois, shape.dims[0]);
    uir_value_id scaled = multiply_scalar(b, uir_network_widen(b, rois), uir_rule_float(context, "spatial_scale", 1));
    uir_value_id in_row = roi_bins(b, column(b, scaled, 2), column(b, scaled, 4), pooled[0], shape.dims[2]);
    uir_value_id in_column = roi_bins(b, column(b, scaled, 1), column(b, scaled, 3), pooled[1], shape.dims[3]);
    uir_value_id least = scalar_like(b, x, -HUGE_VAL), y = uir_build_gather(b, x, image, 0);
    const int64_t third = 3, last = 4, second = 2, row_axes[2] = {1, 4}, column_axes[2] = {1, 2};
    /* [R, C, H, 1, W] under [R, 1, 1, bins, W]; then [R, C, 1, H, bins] under [R, 1, rows, H, 1]. */
    y = uir_build_select(b, uir_build_unsqueeze(b, in_column, column_axes, 2), uir_build_unsqueeze(b, y, &third, 1),
                         least);
    y = uir_build_reduce(b, UIR_OP_REDUCE_MAX, y, &last, 1, false);
    y = uir_build_select(b, uir_build_unsqueeze(b, in_row, row_axes, 2), uir_build_unsqueeze(b, y, &second, 1), least);
    y = uir_build_reduce(b, UIR_OP_REDUCE_MAX, y, &third, 1, false);
    context->outputs[0] = uir_build_select(b, equal(b, y, least), scalar_like(b, y, 0), y);
    return b->status;
}
