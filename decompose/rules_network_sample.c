/* Pixels at computed coordinates: GridSample, AffineGrid, RoiAlign, MaxRoiPool, DeformConv, and CenterCropPad.
 *
 * An image becomes rows of channels, so that one gather takes a pixel of all channels; a coordinate outside reads a
 * pixel inside whose weight is zero. */
#include "decompose/rules_network.h"

#include <math.h>

/* ---- the sampler ---- */

uir_sampler uir_network_sampler(uir_rule_context *context, uir_value_id x) {
    uir_builder *b = &context->builder;
    uir_sampler s = {.context = context, .shape = uir_network_shape(context, x)};
    if (b->status != UIR_STATUS_OK || s.shape.rank < 3) return s;
    s.axes = s.shape.rank - 2;
    uir_shape flat = {
        2, {dim_mul(b, s.shape.dims[0], uir_network_dim_product(b, &s.shape, 2, s.shape.rank)), s.shape.dims[1]}};
    s.rows = uir_network_reshape(b, uir_network_move_axis(b, x, 1, s.shape.rank - 1), &flat);
    s.batch = uir_network_range(b, UIR_DTYPE_I64, s.shape.dims[0]);
    return s;
}

static uir_value_id extent_of(uir_builder *b, uir_dim dim) {
    return uir_network_dim_value(b, dim, UIR_DTYPE_I64);
}

uir_value_id uir_network_sampler_take(uir_sampler *s, const uir_value_id *indices) {
    uir_builder *b = &s->context->builder;
    const int64_t second = 1;
    uir_value_id at = uir_build_unsqueeze(b, s->batch, &second, 1);
    for (uint32_t i = 0; i < s->axes; i++) at = add(b, multiply(b, at, extent_of(b, s->shape.dims[i + 2])), indices[i]);
    return uir_build_gather(b, s->rows, at, 0);
}

/* i64 index within 0 .. extent-1 of a whole real coordinate. */
static uir_value_id inside_index(uir_builder *b, uir_value_id whole, uir_dim extent) {
    uir_value_id index = uir_build_cast(b, whole, UIR_DTYPE_I64);
    index = minimum(b, index, extent_of(b, dim_plus(b, extent, -1)));
    return maximum(b, index, uir_build_integer_scalar(b, UIR_DTYPE_I64, 0));
}

static uir_value_id is_inside(uir_builder *b, uir_value_id whole, uir_dim extent) {
    uir_value_id limit = uir_network_dim_value(b, extent, dtype_of(b, whole));
    return both(b, greater_equal(b, whole, scalar_like(b, whole, 0)), less(b, whole, limit));
}

#define MAX_TAPS 4

/* Per spatial axis, `taps` pixels with an index and a weight each. */
typedef struct tap_table {
    uint32_t taps;
    uir_value_id index[UIR_MAX_RANK][MAX_TAPS];  /* i64 [M, P] */
    uir_value_id weight[UIR_MAX_RANK][MAX_TAPS]; /* [M, P], or none: 1 */
} tap_table;

/* Sum over all combinations of taps of pixel times product of weights: [M, P, C]. */
static uir_value_id combine_taps(uir_sampler *s, const tap_table *table) {
    uir_builder *b = &s->context->builder;
    const int64_t third = 2;
    uint32_t combinations = 1;
    for (uint32_t i = 0; i < s->axes; i++) combinations *= table->taps;
    uir_value_id sum = {0};
    for (uint32_t c = 0; c < combinations && b->status == UIR_STATUS_OK; c++) {
        uir_value_id indices[UIR_MAX_RANK], weight = {0};
        for (uint32_t i = 0, rest = c; i < s->axes; i++, rest /= table->taps) {
            uir_value_id w = table->weight[i][rest % table->taps];
            indices[i] = table->index[i][rest % table->taps];
            if (!is_none(w)) weight = is_none(weight) ? w : multiply(b, weight, w);
        }
        uir_value_id pixel = uir_network_sampler_take(s, indices);
        if (!is_none(weight))
            pixel =
                multiply(b, pixel, uir_build_unsqueeze(b, uir_build_cast(b, weight, dtype_of(b, pixel)), &third, 1));
        sum = c == 0 ? pixel : add(b, sum, pixel);
    }
    return sum;
}

uir_value_id uir_network_sampler_linear(uir_sampler *s, const uir_value_id *coordinates) {
    uir_builder *b = &s->context->builder;
    tap_table table = {.taps = 2};
    for (uint32_t i = 0; i < s->axes; i++) {
        uir_dim extent = s->shape.dims[i + 2];
        uir_value_id base = floor_of(b, coordinates[i]), fraction = subtract(b, coordinates[i], base);
        uir_value_id next = add_scalar(b, base, 1), none = scalar_like(b, base, 0);
        uir_value_id rest = subtract(b, scalar_like(b, base, 1), fraction);
        table.index[i][0] = inside_index(b, base, extent);
        table.index[i][1] = inside_index(b, next, extent);
        table.weight[i][0] = uir_build_select(b, is_inside(b, base, extent), rest, none);
        table.weight[i][1] = uir_build_select(b, is_inside(b, next, extent), fraction, none);
    }
    return combine_taps(s, &table);
}

/* ---- GridSample ---- */

enum { PAD_ZEROS, PAD_BORDER, PAD_REFLECTION };

/* The least and greatest coordinate that is not reflected. */
static void borders(uir_builder *b, uir_dim extent, bool align, uir_dtype real, uir_value_id *out_low,
                    uir_value_id *out_high) {
    uir_value_id length = uir_network_dim_value(b, extent, real);
    *out_low = uir_build_scalar(b, real, align ? 0 : -0.5);
    *out_high = add_scalar(b, length, align ? -1 : -0.5);
}

/* A triangle wave between the borders. */
static uir_value_id reflect(uir_builder *b, uir_value_id x, uir_value_id low, uir_value_id high) {
    uir_value_id range = subtract(b, high, low), zero = scalar_like(b, x, 0), one = scalar_like(b, x, 1);
    uir_value_id flat = less_equal(b, range, zero), span = uir_build_select(b, flat, one, range);
    uir_value_id distance = absolute(b, subtract(b, x, low)), turns = floor_of(b, divide(b, distance, span));
    uir_value_id rest = subtract(b, distance, multiply(b, turns, span));
    uir_value_id even = equal(b, modulo(b, turns, scalar_like(b, x, 2)), zero);
    return uir_build_select(b, flat, low, uir_build_select(b, even, add(b, low, rest), subtract(b, high, rest)));
}

/* Normalised -1 .. 1 to pixels, then what the padding mode makes of coordinates outside. */
static uir_value_id grid_coordinate(uir_builder *b, uir_value_id n, uir_dim extent, bool align, bool nearest,
                                    uint32_t padding) {
    uir_value_id length = uir_network_dim_value(b, extent, dtype_of(b, n)), low, high, x;
    n = add_scalar(b, n, 1);
    if (align)
        x = multiply(b, divide_scalar(b, n, 2), add_scalar(b, length, -1));
    else
        x = divide_scalar(b, add_scalar(b, multiply(b, n, length), -1), 2);
    if (nearest) x = round_even(b, x);
    if (padding == PAD_ZEROS) return x;
    borders(b, extent, align, dtype_of(b, n), &low, &high);
    uir_value_id outside = either(b, less(b, x, low), greater(b, x, high)), moved;
    if (padding == PAD_BORDER)
        moved = minimum(b, maximum(b, x, scalar_like(b, x, 0)), add_scalar(b, length, -1));
    else
        moved = reflect(b, x, low, high);
    return uir_build_select(b, outside, moved, x);
}

/* A tap's index, and its weight where padding is zeros. */
static void grid_tap(uir_builder *b, uir_value_id whole, uir_value_id weight, uir_dim extent, bool align,
                     uint32_t padding, uir_value_id *out_index, uir_value_id *out_weight) {
    if (padding == PAD_REFLECTION) {
        uir_value_id low, high;
        borders(b, extent, align, dtype_of(b, whole), &low, &high);
        whole = reflect(b, whole, low, high);
    }
    *out_index = inside_index(b, whole, extent);
    *out_weight = weight;
    if (padding != PAD_ZEROS) return;
    uir_value_id some = is_none(weight) ? scalar_like(b, whole, 1) : weight;
    *out_weight = uir_build_select(b, is_inside(b, whole, extent), some, scalar_like(b, whole, 0));
}

/* Weights of the taps at -1, 0, 1, 2 from the floor (cubic, a = -0.75) or 0, 1 (linear). */
static uir_value_id grid_weight(uir_builder *b, uir_value_id fraction, int offset, bool cubic) {
    const double a = -0.75;
    uir_value_id d = absolute(b, add_scalar(b, fraction, -(double)offset));
    if (!cubic) return subtract(b, scalar_like(b, d, 1), d);
    if (offset == 0 || offset == 1) {
        uir_value_id t = add_scalar(b, multiply_scalar(b, d, a + 2), -(a + 3));
        return add_scalar(b, multiply(b, multiply(b, t, d), d), 1);
    }
    uir_value_id t = add_scalar(b, multiply_scalar(b, d, a), -5 * a);
    return add_scalar(b, multiply(b, add_scalar(b, multiply(b, t, d), 8 * a), d), -4 * a);
}

uir_status uir_rule_grid_sample(uir_rule_context *context) {
    static const char *const modes16[] = {"bilinear", "nearest", "bicubic", NULL};
    static const char *const modes20[] = {"linear", "nearest", "cubic", NULL};
    static const char *const paddings[] = {"zeros", "border", "reflection", NULL};
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), grid = uir_rule_input(context, 1);
    uir_shape shape = uir_network_shape_between(context, x, "X", 3, 5);
    uir_shape out = uir_network_shape_between(context, grid, "grid", shape.rank, shape.rank);
    bool old = context->since_version < 20, align = uir_rule_int(context, "align_corners", 0) != 0;
    uint32_t mode = uir_network_choice(context, "mode", old ? "bilinear" : "linear", old ? modes16 : modes20);
    uint32_t padding = uir_network_choice(context, "padding_mode", "zeros", paddings);
    if (b->status != UIR_STATUS_OK) return b->status;
    uir_dtype dtype = dtype_of(b, x);
    bool computes = mode != 1;
    uir_sampler s = uir_network_sampler(context, computes ? uir_network_widen(b, x) : x);
    tap_table table = {.taps = mode == 1 ? 1 : mode == 0 ? 2 : 4};
    uir_shape points = {2, {out.dims[0], uir_network_dim_product(b, &out, 1, out.rank - 1)}};
    grid = uir_network_widen(b, grid);
    for (uint32_t i = 0; i < s.axes; i++) {
        /* The grid's last axis names the spatial axes from the last to the first. */
        uir_value_id n = uir_network_slice(b, grid, out.rank - 1, dim_int(b, s.axes - 1 - i), dim_int(b, 1), 1);
        n = uir_network_reshape(b, n, &points);
        uir_dim extent = shape.dims[i + 2];
        uir_value_id at = grid_coordinate(b, n, extent, align, mode == 1, padding), base = floor_of(b, at);
        uir_value_id fraction = subtract(b, at, base);
        for (uint32_t t = 0; t < table.taps; t++) {
            int offset = mode == 2 ? (int)t - 1 : (int)t;
            uir_value_id weight = mode == 1 ? (uir_value_id){0} : grid_weight(b, fraction, offset, mode == 2);
            grid_tap(b, add_scalar(b, base, offset), weight, extent, align, padding, &table.index[i][t],
                     &table.weight[i][t]);
        }
    }
    uir_shape result = {shape.rank, {out.dims[0]}};
    for (uint32_t i = 1; i + 1 < out.rank; i++) result.dims[i] = out.dims[i];
    result.dims[shape.rank - 1] = shape.dims[1];
    uir_value_id y = uir_network_reshape(b, combine_taps(&s, &table), &result);
    context->outputs[0] = uir_build_cast(b, uir_network_move_axis(b, y, shape.rank - 1, 1), dtype);
    return b->status;
}

/* theta [N, k, k+1] times the homogeneous coordinates of each pixel's centre. */
uir_status uir_rule_affine_grid(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id theta = uir_rule_input(context, 0);
    uir_shape shape = uir_network_shape_between(context, theta, "theta", 3, 3);
    bool align = uir_rule_int(context, "align_corners", 0) != 0;
    uint32_t count = 0;
    const uir_dim *size = uir_rule_dims(context, uir_rule_input(context, 1), 0, &count);
    if (b->status != UIR_STATUS_OK) return b->status;
    if (!size || count < 4 || count > 5)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "input size has %u elements; 4 or 5 are wanted", count);
    uint32_t axes = count - 2;
    uir_dtype real = uir_network_working_dtype(dtype_of(b, theta));
    uir_shape grid = {axes + 1, {{0}}};
    for (uint32_t i = 0; i < axes; i++) grid.dims[i] = size[i + 2];
    grid.dims[axes] = dim_int(b, 1);
    uir_value_id parts[4], one = uir_build_scalar(b, real, 1);
    for (uint32_t i = 0; i < axes; i++) {
        uir_value_id length = uir_network_dim_value(b, grid.dims[i], real),
                     at = uir_network_range(b, real, grid.dims[i]);
        if (align) {
            uir_value_id single = less_equal(b, length, one);
            uir_value_id steps = uir_build_select(b, single, one, subtract(b, length, one));
            at = add_scalar(b, divide(b, multiply_scalar(b, at, 2), steps), -1);
            at = uir_build_select(b, single, scalar_like(b, at, 0), at);
        } else {
            at = add_scalar(b, divide(b, add_scalar(b, multiply_scalar(b, at, 2), 1), length), -1);
        }
        parts[axes - 1 - i] = uir_network_broadcast(b, uir_network_along(b, at, i, axes + 1), &grid);
    }
    parts[axes] = uir_network_broadcast(b, one, &grid);
    uir_shape points = {2, {uir_network_dim_product(b, &grid, 0, axes), dim_int(b, axes + 1)}};
    uir_value_id base = uir_network_reshape(b, uir_build_concat(b, parts, axes + 1, axes), &points);
    uir_value_id y = uir_build_matmul(b, base, uir_network_swap(b, uir_build_cast(b, theta, real), 1, 2), real);
    uir_shape result = {axes + 2, {shape.dims[0]}};
    for (uint32_t i = 0; i < axes; i++) result.dims[i + 1] = grid.dims[i];
    result.dims[axes + 1] = dim_int(b, axes);
    context->outputs[0] = uir_build_cast(b, uir_network_reshape(b, y, &result), dtype_of(b, theta));
    return b->status;
}

/* ---- regions of interest ---- */

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
    index[0] = inside_index(b, low, extent);
    index[1] = inside_index(b, add_scalar(b, low, 1), extent);
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

/* ---- DeformConv: pixels at shifted positions, then a product with the weights ---- */

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

/* ---- CenterCropPad: a pad whose amounts may be negative ---- */

uir_status uir_rule_center_crop_pad(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_dims *dims = b->module->dims;
    uir_value_id x = uir_rule_input(context, 0);
    uir_shape shape = uir_network_shape_between(context, x, "input_data", 1, UIR_MAX_RANK);
    if (b->status != UIR_STATUS_OK) return b->status;
    const int64_t *given = NULL;
    int64_t count = uir_rule_ints(context, "axes", &given);
    if (count < 0) count = shape.rank;
    const uir_dim *wanted = uir_network_input_dims(context, uir_rule_input(context, 1), "shape", (uint32_t)count);
    uir_dim low[UIR_NETWORK_AXES], high[UIR_NETWORK_AXES], zero = dim_int(b, 0);
    int64_t interior[UIR_NETWORK_AXES] = {0};
    for (uint32_t i = 0; i < shape.rank; i++) low[i] = high[i] = zero;
    for (int64_t i = 0; i < count && wanted; i++) {
        int64_t axis = given ? uir_rule_axis(context, given[i], shape.rank) : i;
        if (b->status != UIR_STATUS_OK) return b->status;
        uir_dim more = dim_sub(b, wanted[i], shape.dims[axis]), less_by = dim_sub(b, shape.dims[axis], wanted[i]);
        uir_dim padded = dim_over(b, uir_dim_max(dims, more, zero), 2);
        uir_dim cropped = dim_over(b, uir_dim_max(dims, less_by, zero), 2);
        low[axis] = dim_sub(b, padded, cropped);
        high[axis] = dim_sub(b, more, low[axis]);
    }
    context->outputs[0] = uir_build_pad(b, x, scalar_like(b, x, 0), low, high, interior);
    return b->status;
}
