/* Pixels at computed coordinates: the sampler, GridSample, AffineGrid, and CenterCropPad.
 *
 * An image becomes rows of channels, so that one gather takes a pixel of all channels; a coordinate outside reads a
 * pixel inside whose weight is zero. */
#include "decompose/network/rules_network.h"

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

uir_value_id uir_network_inside_index(uir_builder *b, uir_value_id whole, uir_dim extent) {
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
        table.index[i][0] = uir_network_inside_index(b, base, extent);
        table.index[i][1] = uir_network_inside_index(b, next, extent);
        table.weight[i][0] = uir_build_select(b, is_inside(b, base, extent), rest, none);
        table.weight[i][1] = uir_build_select(b, is_inside(b, next, extent), fraction, none);
    }
    return combine_taps(s, &table);
}

/* ---- GridSample ---- */

#define PADDINGS(X)              X(PAD_ZEROS, "zeros") X(PAD_BORDER, "border") X(PAD_REFLECTION, "reflection")
#define CONSTANT(constant, name) constant,
#define NAME(constant, name)     name,
/* Before version 20 and since then. */
#define MODES(X)                                X(LINEAR, "bilinear", "linear") X(NEAREST, "nearest", "nearest") X(CUBIC, "bicubic", "cubic")
#define MODE_CONSTANT(constant, old_name, name) constant,
#define MODE_OLD_NAME(constant, old_name, name) old_name,
#define MODE_NAME(constant, old_name, name)     name,
enum { PADDINGS(CONSTANT) };
enum { MODES(MODE_CONSTANT) };
static const char *const padding_names[] = {PADDINGS(NAME) NULL};
static const char *const old_mode_names[] = {MODES(MODE_OLD_NAME) NULL};
static const char *const mode_names[] = {MODES(MODE_NAME) NULL};

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

/* Normalised -1 .. 1 to pixels, then what the padding mode makes of coordinates outside. Cubic interpolation leaves
 * them: its taps are moved inside one by one. */
static uir_value_id grid_coordinate(uir_builder *b, uir_value_id n, uir_dim extent, bool align, uint32_t mode,
                                    uint32_t padding) {
    uir_value_id length = uir_network_dim_value(b, extent, dtype_of(b, n)), low, high, x;
    n = add_scalar(b, n, 1);
    if (align)
        x = multiply(b, divide_scalar(b, n, 2), add_scalar(b, length, -1));
    else
        x = divide_scalar(b, add_scalar(b, multiply(b, n, length), -1), 2);
    if (mode == NEAREST) x = round_even(b, x);
    if (padding == PAD_ZEROS || mode == CUBIC) return x;
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
    *out_index = uir_network_inside_index(b, whole, extent);
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
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), grid = uir_rule_input(context, 1);
    uir_shape shape = uir_network_shape_between(context, x, "X", 3, 5);
    uir_shape out = uir_network_shape_between(context, grid, "grid", shape.rank, shape.rank);
    bool old = context->since_version < 20, align = uir_rule_int(context, "align_corners", 0) != 0;
    uint32_t mode = uir_network_choice(context, "mode", old ? "bilinear" : "linear", old ? old_mode_names : mode_names);
    uint32_t padding = uir_network_choice(context, "padding_mode", "zeros", padding_names);
    if (b->status != UIR_STATUS_OK) return b->status;
    uir_dtype dtype = dtype_of(b, x);
    bool computes = mode != NEAREST;
    uir_sampler s = uir_network_sampler(context, computes ? uir_network_widen(b, x) : x);
    tap_table table = {.taps = mode == NEAREST ? 1 : mode == LINEAR ? 2 : 4};
    uir_shape points = {2, {out.dims[0], uir_network_dim_product(b, &out, 1, out.rank - 1)}};
    grid = uir_network_widen(b, grid);
    for (uint32_t i = 0; i < s.axes; i++) {
        /* The grid's last axis names the spatial axes from the last to the first. */
        uir_value_id n = uir_network_slice(b, grid, out.rank - 1, dim_int(b, s.axes - 1 - i), dim_int(b, 1), 1);
        n = uir_network_reshape(b, n, &points);
        uir_dim extent = shape.dims[i + 2];
        uir_value_id at = grid_coordinate(b, n, extent, align, mode, padding), base = floor_of(b, at);
        uir_value_id fraction = subtract(b, at, base);
        for (uint32_t t = 0; t < table.taps; t++) {
            int offset = mode == CUBIC ? (int)t - 1 : (int)t;
            uir_value_id weight = mode == NEAREST ? (uir_value_id){0} : grid_weight(b, fraction, offset, mode == CUBIC);
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
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "input size has %u elements; 4 or 5 are required", count);
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
