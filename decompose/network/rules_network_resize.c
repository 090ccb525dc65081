/* Resize and Upsample: axis by axis, source coordinates made from an iota, gathers, and weights.
 *
 * Interpolation is separable, so an axis that keeps its extent costs nothing. Coordinates that weights are made of are
 * f32, as in the exporters' own runtimes. Which element is nearest is decided by the position itself, a quotient of
 * integers: a rounded one beside an integer, or half way, would be an element off. Formulas: the operator's text in
 * ONNX; antialiasing widens the filter by 1/scale and normalises it. */
#include "decompose/network/rules_network.h"

#include <math.h>
#include <string.h>

#define MODES(X) X(NEAREST, "nearest") X(LINEAR, "linear") X(CUBIC, "cubic")
#define TRANSFORMS(X)                                                                                                  \
    X(HALF_PIXEL, "half_pixel")                                                                                        \
    X(HALF_PIXEL_SYMMETRIC, "half_pixel_symmetric")                                                                    \
    X(PYTORCH_HALF_PIXEL, "pytorch_half_pixel")                                                                        \
    X(ALIGN_CORNERS, "align_corners")                                                                                  \
    X(ASYMMETRIC, "asymmetric")                                                                                        \
    X(CROP, "tf_crop_and_resize")
#define ROUNDINGS(X)                                                                                                   \
    X(PREFER_FLOOR, "round_prefer_floor") X(PREFER_CEIL, "round_prefer_ceil") X(FLOOR, "floor") X(CEIL, "ceil")
#define CONSTANT(constant, name) constant,
#define NAME(constant, name)     name,
enum { MODES(CONSTANT) };
enum { TRANSFORMS(CONSTANT) };
enum { ROUNDINGS(CONSTANT) LEGACY }; /* LEGACY (Resize-10): floor growing, ceil shrinking */
static const char *const mode_names[] = {MODES(NAME) NULL};
static const char *const transform_names[] = {TRANSFORMS(NAME) NULL};
static const char *const rounding_names[] = {ROUNDINGS(NAME) NULL};

enum { MOST_SHIFT = 62, MOST_SCALE = 1000000 };

typedef struct resize {
    uir_rule_context *context;
    uint32_t mode, transform, nearest;
    bool antialias, exclude_outside;
    double cubic_a, extrapolation;
} resize;

/* One axis of it. */
typedef struct resize_axis {
    uir_dim in, out;
    uir_value_id scale;                  /* f32, rank 0 */
    uir_value_id numerator, denominator; /* the same exactly, i64, rank 0 */
    bool scale_known;
    double scale_number;
    bool from_size;                  /* the scale is out / in */
    bool from_sizes;                 /* numerator and denominator are sizes, of this axis or another */
    uir_value_id roi_start, roi_end; /* f32, rank 0; for CROP */
} resize_axis;

/* ---- coordinates ---- */

static uir_value_id number(uir_builder *b, double value) {
    return uir_build_scalar(b, UIR_DTYPE_F32, value);
}
static uir_value_id extent_number(uir_builder *b, uir_dim dim) {
    return uir_network_dim_value(b, dim, UIR_DTYPE_F32);
}

static uir_value_id whole(uir_builder *b, int64_t value) {
    return uir_build_integer_scalar(b, UIR_DTYPE_I64, value);
}
static uir_value_id extent_whole(uir_builder *b, uir_dim dim) {
    return uir_network_dim_value(b, dim, UIR_DTYPE_I64);
}

/* x * span / (length - 1), `when_one` where length is 1. */
static uir_value_id spread(uir_builder *b, uir_value_id x, uir_value_id span, uir_value_id length,
                           uir_value_id when_one) {
    uir_value_id one = scalar_like(b, x, 1), single = equal(b, length, one);
    uir_value_id steps = uir_build_select(b, single, one, subtract(b, length, one));
    return uir_build_select(b, single, when_one, divide(b, multiply(b, x, span), steps));
}

/* The source coordinate of each output element: [out] of the float `real`. */
static uir_value_id coordinates(uir_builder *b, const resize *r, const resize_axis *a, uir_dtype real) {
    uir_value_id x = uir_network_range(b, real, a->out), half = scalar_like(b, x, 0.5), one = scalar_like(b, x, 1);
    uir_value_id in = uir_network_dim_value(b, a->in, real), out = uir_network_dim_value(b, a->out, real);
    uir_value_id scale = uir_build_cast(b, a->scale, real);
    /* The length that the scale asks for; not rounded. */
    uir_value_id length = a->from_size ? out : multiply(b, in, scale);
    uir_value_id centred = subtract(b, divide(b, add(b, x, half), scale), half);
    switch (r->transform) {
    case HALF_PIXEL:
        return centred;
    case HALF_PIXEL_SYMMETRIC: {
        uir_value_id adjustment = divide(b, out, length);
        return add(b, multiply(b, multiply(b, in, half), subtract(b, one, adjustment)), centred);
    }
    case PYTORCH_HALF_PIXEL:
        return uir_build_select(b, greater(b, out, one), centred, scalar_like(b, x, 0));
    case ALIGN_CORNERS:
        return spread(b, x, subtract(b, in, one), length, scalar_like(b, x, 0));
    case ASYMMETRIC:
        return divide(b, x, scale);
    default: { /* CROP */
        uir_value_id start = uir_build_cast(b, a->roi_start, real), end = uir_build_cast(b, a->roi_end, real);
        uir_value_id last = subtract(b, in, one), span = multiply(b, subtract(b, end, start), last);
        return add(b, spread(b, x, span, length, multiply(b, span, half)), multiply(b, start, last));
    }
    }
}

static uir_value_id clamp_index(uir_builder *b, uir_value_id index, uir_dim extent) {
    uir_value_id last = extent_whole(b, dim_plus(b, extent, -1));
    return maximum(b, minimum(b, index, last), whole(b, 0));
}

static uir_value_id to_index(uir_builder *b, uir_value_id x) {
    return uir_build_cast(b, x, UIR_DTYPE_I64);
}

static uir_value_id nearest_of_reals(uir_builder *b, const resize *r, const resize_axis *a, uir_value_id x) {
    uir_value_id half = scalar_like(b, x, 0.5);
    switch (r->nearest) {
    case PREFER_FLOOR:
        x = ceil_of(b, subtract(b, x, half));
        break;
    case PREFER_CEIL:
        x = floor_of(b, add(b, x, half));
        break;
    case CEIL:
        x = ceil_of(b, x);
        break;
    case LEGACY:
        x = uir_build_select(b, less(b, a->scale, number(b, 1)), ceil_of(b, x), floor_of(b, x));
        break;
    default:
        x = floor_of(b, x);
        break;
    }
    return clamp_index(b, to_index(b, x), a->in);
}

/* ---- positions as quotients ---- */

/* n / d, at least 0: what is below is outside the image, where its first element is nearest. */
static uir_value_id quotient(uir_builder *b, uir_value_id n, uir_value_id d, bool up) {
    n = maximum(b, n, whole(b, 0));
    return divide(b, up ? subtract(b, add(b, n, d), whole(b, 1)) : n, d);
}

/* The source coordinate of each output element as *out_n / *out_d, i64 [out] by a positive i64. False where it is no
 * quotient of numbers of 63 bits: a scale has 24 bits, a region of interest is floats. */
static bool find_position(uir_builder *b, const resize *r, const resize_axis *a, uir_value_id *out_n,
                          uir_value_id *out_d) {
    uir_value_id x = uir_network_range(b, UIR_DTYPE_I64, a->out), p = a->numerator, q = a->denominator;
    uir_value_id one = whole(b, 1), in = extent_whole(b, a->in);
    uir_value_id centred = subtract(b, multiply(b, add(b, add(b, x, x), one), q), p);
    *out_d = add(b, p, p);
    switch (r->transform) {
    case HALF_PIXEL:
        *out_n = centred;
        return true;
    case HALF_PIXEL_SYMMETRIC: /* and in/2 * (1 - out / (in * p/q)) */
        *out_n = a->from_size
                     ? centred
                     : add(b, centred, subtract(b, multiply(b, in, p), multiply(b, extent_whole(b, a->out), q)));
        return true;
    case PYTORCH_HALF_PIXEL:
        *out_n = uir_build_select(b, greater(b, extent_whole(b, a->out), one), centred, whole(b, 0));
        return true;
    case ASYMMETRIC:
        *out_n = multiply(b, x, q);
        *out_d = p;
        return true;
    case ALIGN_CORNERS: { /* x * (in - 1) / (length - 1), length = in * p/q; of length 1: 0 */
        if (!a->from_sizes) return false;
        uir_value_id steps =
            a->from_size ? subtract(b, extent_whole(b, a->out), one) : subtract(b, multiply(b, in, p), q);
        x = multiply(b, x, subtract(b, in, one));
        *out_n = a->from_size ? x : multiply(b, x, q);
        uir_value_id single = less_equal(b, steps, whole(b, 0));
        *out_n = uir_build_select(b, single, whole(b, 0), *out_n);
        *out_d = uir_build_select(b, single, one, steps);
        return true;
    }
    default:
        return false;
    }
}

static uir_value_id nearest_index(uir_builder *b, const resize *r, const resize_axis *a) {
    uir_value_id n, d;
    if (!find_position(b, r, a, &n, &d)) return nearest_of_reals(b, r, a, coordinates(b, r, a, UIR_DTYPE_F64));
    uir_value_id twice_n = add(b, n, n), twice_d = add(b, d, d), index;
    switch (r->nearest) {
    case PREFER_FLOOR:
        index = quotient(b, subtract(b, twice_n, d), twice_d, true);
        break;
    case PREFER_CEIL:
        index = quotient(b, add(b, twice_n, d), twice_d, false);
        break;
    case LEGACY:
        index = uir_build_select(b, less(b, a->numerator, a->denominator), quotient(b, n, d, true),
                                 quotient(b, n, d, false));
        break;
    default:
        index = quotient(b, n, d, r->nearest == CEIL);
        break;
    }
    return clamp_index(b, index, a->in);
}

/* ---- weights ---- */

/* Keys' cubic at distance |d|: (a+2)d^3 - (a+3)d^2 + 1 up to 1, a d^3 - 5a d^2 + 8a d - 4a up to 2, then 0. */
static uir_value_id cubic_weight(uir_builder *b, uir_value_id d, double a) {
    d = absolute(b, d);
    uir_value_id inner = multiply_scalar(b, d, a + 2);
    inner = add_scalar(b, multiply(b, multiply(b, add_scalar(b, inner, -(a + 3)), d), d), 1);
    uir_value_id outer = add_scalar(b, multiply_scalar(b, d, a), -5 * a);
    outer = add_scalar(b, multiply(b, add_scalar(b, multiply(b, outer, d), 8 * a), d), -4 * a);
    uir_value_id zero = number(b, 0);
    return uir_build_select(b, less_equal(b, d, number(b, 1)), inner,
                            uir_build_select(b, less(b, d, number(b, 2)), outer, zero));
}

static uir_value_id linear_weight(uir_builder *b, uir_value_id d) {
    return maximum(b, subtract(b, number(b, 1), absolute(b, d)), number(b, 0));
}

/* Weights of source elements outside become 0. */
static uir_value_id without_outside(uir_builder *b, uir_value_id weights, uir_value_id index, uir_dim extent) {
    uir_value_id zero = uir_build_integer_scalar(b, UIR_DTYPE_I64, 0);
    uir_value_id inside =
        both(b, greater_equal(b, index, zero), less(b, index, uir_network_dim_value(b, extent, UIR_DTYPE_I64)));
    return uir_build_select(b, inside, weights, number(b, 0));
}

/* ---- one axis ---- */

/* x [.., in, ..] f32 summed over taps whose number is fixed: 2 or 4 gathers. */
static uir_value_id interpolate(uir_builder *b, const resize *r, const resize_axis *a, uir_value_id x, uint32_t axis,
                                uir_value_id at) {
    uint32_t rank = rank_of(b, x), taps = r->mode == CUBIC ? 4 : 2;
    int first = r->mode == CUBIC ? -1 : 0;
    uir_value_id base = floor_of(b, at), fraction = subtract(b, at, base), start = to_index(b, base);
    uir_value_id weights[4], indices[4], total = {0}, sum = {0};
    for (uint32_t i = 0; i < taps; i++) {
        int offset = first + (int)i;
        uir_value_id distance = add_scalar(b, fraction, -(double)offset);
        weights[i] = r->mode == CUBIC ? cubic_weight(b, distance, r->cubic_a) : linear_weight(b, distance);
        indices[i] = add(b, start, uir_build_integer_scalar(b, UIR_DTYPE_I64, offset));
        if (r->exclude_outside) {
            weights[i] = without_outside(b, weights[i], indices[i], a->in);
            total = i == 0 ? weights[i] : add(b, total, weights[i]);
        }
    }
    for (uint32_t i = 0; i < taps; i++) {
        if (r->exclude_outside) {
            uir_value_id none = equal(b, total, number(b, 0));
            weights[i] = divide(b, weights[i], uir_build_select(b, none, number(b, 1), total));
        }
        uir_value_id tap = uir_build_gather(b, x, clamp_index(b, indices[i], a->in), axis);
        tap = multiply(b, tap, uir_network_along(b, uir_build_cast(b, weights[i], dtype_of(b, x)), axis, rank));
        sum = i == 0 ? tap : add(b, sum, tap);
    }
    return sum;
}

/* Half of the antialiasing filter's taps: ceil(radius / min(scale, 1)). */
static uir_dim half_footprint(const resize *r, const resize_axis *a) {
    uir_builder *b = &r->context->builder;
    int64_t radius = r->mode == CUBIC ? 2 : 1;
    if (a->scale_known) return dim_int(b, (int64_t)ceil((double)radius / fmin(a->scale_number, 1)));
    if (a->from_size)
        return uir_dim_max(b->module->dims, dim_int(b, radius),
                           uir_dim_ceildiv(b->module->dims, dim_times(b, a->in, radius), a->out));
    uir_value_id narrow = minimum(b, a->scale, number(b, 1));
    uir_value_id reach = to_index(b, ceil_of(b, divide(b, number(b, (double)radius), narrow)));
    uint32_t count = 0;
    const uir_dim *dims = uir_rule_dims(r->context, reach, 1, &count);
    return dims && count == 1 ? dims[0] : dim_int(b, radius);
}

static uir_value_id interpolate_widened(uir_builder *b, const resize *r, const resize_axis *a, uir_value_id x,
                                        uint32_t axis, uir_value_id at) {
    const int64_t second = 1, reduced = axis + 1;
    uir_dim half = half_footprint(r, a);
    uir_value_id base = floor_of(b, at), narrow = minimum(b, a->scale, number(b, 1));
    uir_value_id offsets = uir_network_range(b, UIR_DTYPE_I64, dim_times(b, half, 2));
    offsets = add(b, offsets, uir_network_dim_value(b, dim_sub(b, dim_int(b, 1), half), UIR_DTYPE_I64));
    uir_value_id indices = add(b, uir_build_unsqueeze(b, to_index(b, base), &second, 1), offsets);
    uir_value_id fraction = uir_build_unsqueeze(b, subtract(b, at, base), &second, 1);
    uir_value_id distance = multiply(b, subtract(b, uir_build_cast(b, offsets, UIR_DTYPE_F32), fraction), narrow);
    uir_value_id weights = r->mode == CUBIC ? cubic_weight(b, distance, r->cubic_a) : linear_weight(b, distance);
    if (r->exclude_outside) weights = without_outside(b, weights, indices, a->in);
    weights = divide(b, weights, reduce_sum(b, weights, &second, 1));
    uir_value_id taps = uir_build_gather(b, x, clamp_index(b, indices, a->in), axis); /* [.., out, taps, ..] */
    uir_value_id factors = weights;
    if (b->status != UIR_STATUS_OK) return x;
    uint32_t after = rank_of(b, x) - axis - 1;
    if (after > 0) {
        int64_t axes[UIR_NETWORK_AXES];
        for (uint32_t i = 0; i < after; i++) axes[i] = 2 + i;
        factors = uir_build_unsqueeze(b, weights, axes, after);
    }
    taps = multiply(b, taps, uir_build_cast(b, factors, dtype_of(b, taps)));
    return uir_build_reduce(b, UIR_OP_REDUCE_SUM, taps, &reduced, 1, false);
}

/* Whether each element simply comes `times` times in a row. */
static bool repeats(uir_builder *b, const resize *r, const resize_axis *a, int64_t *out_times) {
    if (r->mode != NEAREST || !a->scale_known || a->scale_number < 1 || a->scale_number != floor(a->scale_number) ||
        a->scale_number > 64)
        return false;
    *out_times = (int64_t)a->scale_number;
    if (!uir_dim_equal(a->out, dim_times(b, a->in, *out_times))) return false;
    if (r->transform == ASYMMETRIC) return r->nearest == FLOOR || r->nearest == LEGACY;
    return r->transform == HALF_PIXEL && (r->nearest == PREFER_FLOOR || r->nearest == PREFER_CEIL);
}

static uir_value_id resize_along(const resize *r, const resize_axis *a, uir_value_id x, uint32_t axis) {
    uir_builder *b = &r->context->builder;
    int64_t times;
    bool same = uir_dim_equal(a->in, a->out) && (a->from_size || (a->scale_known && a->scale_number == 1));
    if (same && r->transform != CROP) return x;
    if (repeats(b, r, a, &times)) return uir_network_repeat(r->context, x, axis, dim_int(b, times));
    uir_dtype real = r->transform == CROP ? UIR_DTYPE_F64 : UIR_DTYPE_F32; /* what is outside is told by it */
    uir_value_id at = {0}, y;
    if (r->transform == CROP || r->mode != NEAREST) at = coordinates(b, r, a, real);
    uir_value_id near = is_none(at) ? at : uir_build_cast(b, at, UIR_DTYPE_F32);
    if (r->mode == NEAREST)
        y = uir_build_gather(b, x, nearest_index(b, r, a), axis);
    else if (r->antialias)
        y = interpolate_widened(b, r, a, x, axis, near);
    else
        y = interpolate(b, r, a, x, axis, near);
    if (r->transform != CROP) return y;
    uir_value_id last = subtract(b, uir_network_dim_value(b, a->in, real), scalar_like(b, at, 1));
    uir_value_id outside = either(b, less(b, at, scalar_like(b, at, 0)), greater(b, at, last));
    return uir_build_select(b, uir_network_along(b, outside, axis, rank_of(b, y)), scalar_like(b, y, r->extrapolation),
                            y);
}

/* ---- scales and sizes ---- */

/* floor(in * scale), the product rounded to f32. Exact arithmetic on dims where the scale is a short binary fraction.
 */
static uir_dim scaled_extent(uir_rule_context *context, const resize_axis *a) {
    uir_builder *b = &context->builder;
    int64_t in;
    if (a->scale_known && uir_dim_is_const(b->module->dims, a->in, &in)) {
        float product = (float)in * (float)a->scale_number;
        return dim_int(b, (int64_t)floorf(product));
    }
    double scaled = a->scale_number * 4096;
    if (a->scale_known && scaled == floor(scaled) && scaled <= 1 << 24) {
        int64_t numerator = (int64_t)scaled, denominator = 4096;
        while (numerator % 2 == 0 && denominator > 1) numerator /= 2, denominator /= 2;
        return dim_over(b, dim_times(b, a->in, numerator), denominator);
    }
    uir_value_id extent = to_index(b, floor_of(b, multiply(b, extent_number(b, a->in), a->scale)));
    uint32_t count = 0;
    const uir_dim *dims = uir_rule_dims(context, extent, 0, &count);
    return dims && count == 1 ? dims[0] : dim_int(b, 0);
}

/* Element `index` of a float tensor of rank 1 as f32, rank 0. */
static uir_value_id element(uir_builder *b, uir_value_id values, uint32_t index) {
    uir_value_id one = uir_network_slice(b, values, 0, dim_int(b, index), dim_int(b, 1), 1);
    return uir_build_cast(b, uir_build_reshape(b, one, NULL, 0), UIR_DTYPE_F32);
}

/* The extent of a rank-1 input; -1 when it is absent, not rank 1, or unknown. */
static int64_t list_length(uir_rule_context *context, uir_value_id value) {
    int64_t extent = -1;
    if (is_none(value)) return -1;
    uir_shape shape = uir_network_shape(context, value);
    if (shape.rank == 1) (void)uir_dim_is_const(context->builder.module->dims, shape.dims[0], &extent);
    return extent;
}

/* An f32 above 0 as a quotient: the 24 bits of it by a power of 2. */
static void split_known(uir_builder *b, resize_axis *a) {
    int exponent;
    int64_t bits = (int64_t)ldexp(frexp((float)a->scale_number, &exponent), 24);
    int shift = 24 - exponent;
    for (; shift > 0 && bits % 2 == 0; shift--) bits /= 2;
    a->numerator = whole(b, shift < 0 ? bits << -shift : bits);
    a->denominator = whole(b, (int64_t)1 << (shift < 0 ? 0 : shift > MOST_SHIFT ? MOST_SHIFT : shift));
}

/* The same when the model runs. */
static void split_unknown(uir_builder *b, resize_axis *a) {
    uir_attribute to = uir_attribute_dtype(b, "to", UIR_DTYPE_I32);
    uir_value_id bits = {0}, fraction = whole(b, 1 << 23);
    uir_build_node(b, UIR_OP_BIT_CAST, &a->scale, 1, &to, 1, &bits, 1);
    bits = uir_build_cast(b, bits, UIR_DTYPE_I64);
    uir_value_id mantissa = add(b, uir_build_binary(b, UIR_OP_MOD, bits, fraction), fraction);
    uir_value_id shift = subtract(b, whole(b, 150), divide(b, bits, fraction));
    shift = minimum(b, maximum(b, shift, whole(b, 0)), whole(b, MOST_SHIFT));
    a->numerator = mantissa;
    a->denominator = uir_build_binary(b, UIR_OP_SHIFT_LEFT, whole(b, 1), shift);
}

static bool known_scale(uir_rule_context *context, resize_axis *a, double value) {
    a->scale_known = true;
    a->scale_number = value;
    a->scale = number(&context->builder, value);
    if (value > 0 && value <= MOST_SCALE) {
        split_known(&context->builder, a);
        return true;
    }
    (void)uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "a scale is %g; values above 0 are required", value);
    return false;
}

static bool axes_from_scales(uir_rule_context *context, uir_value_id scales, resize_axis *axes, const uint32_t *which,
                             uint32_t count) {
    uir_builder *b = &context->builder;
    for (uint32_t i = 0; i < count; i++) {
        resize_axis *a = &axes[which[i]];
        double value;
        if (uir_network_constant_number(context, scales, i, &value)) {
            if (!known_scale(context, a, value)) return false;
        } else {
            a->scale = element(b, scales, i);
            a->scale_known = false;
            split_unknown(b, a);
        }
        a->out = scaled_extent(context, a);
    }
    return b->status == UIR_STATUS_OK;
}

/* One scale for all axes, the least or greatest of sizes/extents; extents are that scale's, rounded half up. */
static void keep_aspect_ratio(uir_rule_context *context, bool larger, resize_axis *axes, const uint32_t *which,
                              uint32_t count) {
    uir_builder *b = &context->builder;
    uir_value_id p = axes[which[0]].numerator, q = axes[which[0]].denominator;
    for (uint32_t i = 1; i < count; i++) {
        const resize_axis *a = &axes[which[i]];
        uir_value_id own = multiply(b, a->numerator, q), best = multiply(b, p, a->denominator);
        uir_value_id better = larger ? greater(b, own, best) : less(b, own, best);
        p = uir_build_select(b, better, a->numerator, p);
        q = uir_build_select(b, better, a->denominator, q);
    }
    uir_value_id scale = divide(b, uir_build_cast(b, p, UIR_DTYPE_F32), uir_build_cast(b, q, UIR_DTYPE_F32));
    double value = 0;
    bool known = uir_network_constant_number(context, scale, 0, &value);
    for (uint32_t i = 0; i < count && b->status == UIR_STATUS_OK; i++) {
        resize_axis *a = &axes[which[i]];
        a->scale = scale;
        a->numerator = p;
        a->denominator = q;
        a->from_size = false;
        a->scale_known = known;
        a->scale_number = value;
        uir_value_id product = multiply(b, p, extent_whole(b, a->in));
        uir_value_id extent = quotient(b, add(b, add(b, product, product), q), add(b, q, q), false);
        uint32_t found = 0;
        const uir_dim *dims = uir_rule_dims(context, extent, 0, &found);
        if (dims && found == 1) a->out = dims[0];
    }
}

static bool axes_from_sizes(uir_rule_context *context, uir_value_id sizes, resize_axis *axes, const uint32_t *which,
                            uint32_t count) {
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller", NULL};
    uir_builder *b = &context->builder;
    const uir_dim *dims = uir_network_input_dims(context, sizes, "sizes", count);
    uint32_t policy = uir_network_choice(context, "keep_aspect_ratio_policy", "stretch", policies);
    if (!dims || b->status != UIR_STATUS_OK) return false;
    for (uint32_t i = 0; i < count; i++) {
        resize_axis *a = &axes[which[i]];
        int64_t in, out;
        a->out = dims[i];
        a->from_size = a->from_sizes = true;
        a->numerator = extent_whole(b, a->out);
        a->denominator = extent_whole(b, a->in);
        a->scale_known = uir_dim_is_const(b->module->dims, a->in, &in) &&
                         uir_dim_is_const(b->module->dims, a->out, &out) && in > 0 && out > 0;
        if (a->scale_known) a->scale_number = (float)out / (float)in;
        a->scale =
            a->scale_known ? number(b, a->scale_number) : divide(b, extent_number(b, a->out), extent_number(b, a->in));
    }
    if (policy > 0) keep_aspect_ratio(context, policy == 2, axes, which, count);
    return b->status == UIR_STATUS_OK;
}

/* ---- the ops ---- */

static uir_value_id resize_all(const resize *r, const resize_axis *axes, uir_value_id x, uint32_t rank) {
    uir_builder *b = &r->context->builder;
    uir_dtype dtype = dtype_of(b, x);
    bool computes = r->mode != NEAREST;
    uir_value_id y = computes ? uir_build_cast(b, x, dtype == UIR_DTYPE_F64 ? dtype : UIR_DTYPE_F32) : x;
    /* The last axis first: along the others whole runs of elements are added. */
    for (uint32_t i = rank; i-- > 0;) y = resize_along(r, &axes[i], y, i);
    if (computes && uir_dtype_is_integer(dtype))
        y = uir_network_clamp(b, y, (double)uir_dtype_integer_min(dtype), (double)uir_dtype_integer_max(dtype));
    return uir_build_cast(b, y, dtype);
}

static bool begin_axes(uir_rule_context *context, const uir_shape *shape, resize_axis *axes, uint32_t *which,
                       uint32_t *out_count) {
    uir_builder *b = &context->builder;
    const int64_t *given = NULL;
    int64_t count = uir_rule_ints(context, "axes", &given);
    bool taken[UIR_MAX_RANK] = {false};
    memset(axes, 0, sizeof *axes * UIR_MAX_RANK);
    for (uint32_t i = 0; i < shape->rank; i++) {
        axes[i].in = axes[i].out = shape->dims[i];
        if (!known_scale(context, &axes[i], 1)) return false;
        which[i] = i;
    }
    *out_count = shape->rank;
    if (count <= 0) return true;
    if (count > shape->rank) {
        (void)uir_builder_fail(b, UIR_STATUS_BAD_FILE, "attribute axes has %lld elements for an input of rank %u",
                               (long long)count, shape->rank);
        return false;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t axis = uir_rule_axis(context, given[i], shape->rank);
        if (b->status != UIR_STATUS_OK) return false;
        if (taken[axis]) {
            (void)uir_builder_fail(b, UIR_STATUS_BAD_FILE, "attribute axes names axis %lld twice", (long long)axis);
            return false;
        }
        taken[axis] = true;
        which[i] = (uint32_t)axis;
    }
    *out_count = (uint32_t)count;
    return true;
}

/* A list whose length is not known now is not supported; one of a wrong length is wrong. */
static uir_status wrong_length(int64_t length) {
    return length < 0 ? UIR_STATUS_UNSUPPORTED : UIR_STATUS_BAD_FILE;
}

/* roi: starts of all axes, then ends. */
static bool read_roi(uir_rule_context *context, uir_value_id roi, resize_axis *axes, const uint32_t *which,
                     uint32_t count, uint32_t rank) {
    uir_builder *b = &context->builder;
    if (list_length(context, roi) != 2 * (int64_t)count) {
        (void)uir_builder_fail(b, wrong_length(list_length(context, roi)),
                               "input roi must have %u elements for coordinate_transformation_mode tf_crop_and_resize",
                               2 * count);
        return false;
    }
    for (uint32_t i = 0; i < rank; i++) {
        axes[i].roi_start = number(b, 0);
        axes[i].roi_end = number(b, 1);
    }
    for (uint32_t i = 0; i < count; i++) {
        axes[which[i]].roi_start = element(b, roi, i);
        axes[which[i]].roi_end = element(b, roi, count + i);
    }
    return b->status == UIR_STATUS_OK;
}

uir_status uir_rule_resize(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    uir_shape shape = uir_network_shape_between(context, x, "X", 1, UIR_MAX_RANK);
    bool old = context->since_version < 11;
    resize r = {.context = context};
    r.mode = uir_network_choice(context, "mode", "nearest", mode_names);
    r.transform =
        old ? ASYMMETRIC : uir_network_choice(context, "coordinate_transformation_mode", "half_pixel", transform_names);
    r.nearest = old ? LEGACY : uir_network_choice(context, "nearest_mode", "round_prefer_floor", rounding_names);
    r.antialias = uir_rule_int(context, "antialias", 0) != 0;
    r.exclude_outside = uir_rule_int(context, "exclude_outside", 0) != 0;
    r.cubic_a = uir_rule_float(context, "cubic_coeff_a", -0.75);
    r.extrapolation = uir_rule_float(context, "extrapolation_value", 0);
    resize_axis axes[UIR_MAX_RANK];
    uint32_t which[UIR_MAX_RANK], count = 0;
    if (b->status != UIR_STATUS_OK || !begin_axes(context, &shape, axes, which, &count)) return b->status;
    uir_value_id roi = old ? (uir_value_id){0} : uir_rule_input(context, 1);
    uir_value_id scales = uir_rule_input(context, old ? 1 : 2);
    uir_value_id sizes = old ? (uir_value_id){0} : uir_rule_input(context, 3);
    /* Before opset 13 an input that is not meant is an empty tensor. */
    if (list_length(context, scales) == 0) scales = (uir_value_id){0};
    if (!is_none(sizes) && list_length(context, sizes) == 0) sizes = (uir_value_id){0};
    if (b->status != UIR_STATUS_OK) return b->status;
    if (is_none(scales) == is_none(sizes))
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "exactly one of the inputs scales and sizes must be given");
    if (!is_none(scales) && list_length(context, scales) != (int64_t)count)
        return uir_builder_fail(b, wrong_length(list_length(context, scales)), "input scales must have %u elements",
                                count);
    bool ok = is_none(sizes) ? axes_from_scales(context, scales, axes, which, count)
                             : axes_from_sizes(context, sizes, axes, which, count);
    if (ok && r.transform == CROP) ok = read_roi(context, roi, axes, which, count, shape.rank);
    if (ok) context->outputs[0] = resize_all(&r, axes, x, shape.rank);
    return b->status;
}

uir_status uir_rule_upsample(uir_rule_context *context) {
    static const char *const modes[] = {"nearest", "linear", NULL};
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), scales = uir_rule_input(context, 1);
    uir_shape shape = uir_network_shape_between(context, x, "X", 1, UIR_MAX_RANK);
    resize r = {.context = context, .transform = ASYMMETRIC, .nearest = FLOOR};
    r.mode = uir_network_choice(context, "mode", "nearest", modes);
    resize_axis axes[UIR_MAX_RANK];
    uint32_t which[UIR_MAX_RANK], count = 0;
    if (b->status != UIR_STATUS_OK || !begin_axes(context, &shape, axes, which, &count)) return b->status;
    if (!is_none(scales)) {
        if (list_length(context, scales) != (int64_t)count)
            return uir_builder_fail(b, wrong_length(list_length(context, scales)), "input scales must have %u elements",
                                    count);
        if (!axes_from_scales(context, scales, axes, which, count)) return b->status;
    } else {
        for (uint32_t i = 0; i < count; i++) {
            double value = 1;
            if (context->since_version < 7) { /* height and width are the last two */
                if (i + 2 >= count) value = uir_rule_float(context, i + 1 == count ? "width_scale" : "height_scale", 1);
            } else if (!uir_network_float_at(context, "scales", i, &value))
                return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "attribute scales must have %u elements", count);
            if (!known_scale(context, &axes[i], value)) return b->status;
            axes[i].out = scaled_extent(context, &axes[i]);
        }
    }
    context->outputs[0] = resize_all(&r, axes, x, shape.rank);
    return b->status;
}
