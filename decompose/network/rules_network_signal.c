/* Signals: DFT, STFT, the window functions, MelWeightMatrix.
 *
 * A Fourier transform is a product with cosine and sine matrices. Both are made in f64 from exact angles (j*k reduced
 * modulo the length as integers), and the product is taken in f64 too, so that bins which cancel come out as small as
 * they should. */
#include "decompose/network/rules_network.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

static uir_value_id real_number(uir_builder *b, double value) {
    return uir_build_scalar(b, UIR_DTYPE_F64, value);
}

/* ---- Fourier ---- */

/* cos and sin of 2 pi j k / length for j < rows, k < columns: f64 [rows, columns]. */
static void fourier_matrices(uir_builder *b, uir_dim rows, uir_dim columns, uir_dim length, uir_value_id *out_cos,
                             uir_value_id *out_sin) {
    const int64_t second = 1;
    uir_value_id j = uir_build_unsqueeze(b, uir_network_range(b, UIR_DTYPE_I64, rows), &second, 1);
    uir_value_id turns = multiply(b, j, uir_network_range(b, UIR_DTYPE_I64, columns));
    turns = modulo(b, turns, uir_network_dim_value(b, length, UIR_DTYPE_I64));
    uir_value_id angle = multiply_scalar(b, uir_build_cast(b, turns, UIR_DTYPE_F64), 2 * pi);
    angle = divide(b, angle, uir_network_dim_value(b, length, UIR_DTYPE_F64));
    *out_cos = cosine(b, angle);
    *out_sin = sine(b, angle);
}

typedef struct fourier {
    uir_dim length; /* of the transform */
    uint32_t axis;
    bool inverse, onesided;
} fourier;

/* The axis cut or filled with zeros to an extent. */
static uir_value_id fit_axis(uir_builder *b, uir_value_id x, uint32_t axis, uir_dim extent) {
    uir_dim low[UIR_NETWORK_AXES], high[UIR_NETWORK_AXES], have = uir_build_extent(b, x, axis);
    int64_t interior[UIR_NETWORK_AXES] = {0};
    if (uir_dim_equal(have, extent)) return x;
    for (uint32_t i = 0; i < rank_of(b, x); i++) low[i] = high[i] = dim_int(b, 0);
    high[axis] = dim_sub(b, extent, have);
    return uir_build_pad(b, x, scalar_like(b, x, 0), low, high, interior);
}

static uir_value_id product64(uir_rule_context *context, uir_value_id a, uir_value_id matrix) {
    return uir_network_matmul(context, a, matrix, UIR_DTYPE_F64);
}

/* x [.., n, .., 1 or 2] along an axis. Real and imaginary parts are the last axis. */
static uir_value_id transform(uir_rule_context *context, uir_value_id x, const fourier *f) {
    uir_builder *b = &context->builder;
    uir_dtype dtype = dtype_of(b, x);
    uir_shape shape = uir_network_shape(context, x);
    if (b->status != UIR_STATUS_OK) return x;
    uint32_t last = shape.rank - 1;
    const int64_t parts_axis = last;
    int64_t parts;
    if (!uir_dim_is_const(b->module->dims, shape.dims[last], &parts) || (parts != 1 && parts != 2)) {
        bool known = uir_dim_is_const(b->module->dims, shape.dims[last], NULL);
        (void)uir_builder_fail(b, known ? UIR_STATUS_BAD_FILE : UIR_STATUS_UNSUPPORTED,
                               "the signal's last axis must have extent 1 (real) or 2 (complex)");
        return x;
    }
    bool to_real = f->inverse && f->onesided;
    uir_dim half = dim_plus(b, dim_over(b, f->length, 2), 1), in = to_real ? half : f->length;
    uir_dim out = f->onesided && !f->inverse ? half : f->length;
    x = fit_axis(b, uir_build_cast(b, x, UIR_DTYPE_F64), f->axis, in);
    /* Each part with the axis last: [.., n]. */
    uir_value_id part[2] = {{0}, {0}};
    for (int64_t i = 0; i < parts; i++) {
        uir_value_id one = uir_network_slice(b, x, last, dim_int(b, i), dim_int(b, 1), 1);
        part[i] = uir_network_move_axis(b, uir_build_squeeze(b, one, &parts_axis, 1), f->axis, last - 1);
    }
    uir_value_id cosines, sines, re, im = {0};
    fourier_matrices(b, in, out, f->length, &cosines, &sines);
    if (to_real) { /* the bins that the other half mirrors count twice */
        const int64_t second = 1;
        uir_value_id k = uir_network_range(b, UIR_DTYPE_I64, in), zero = uir_build_integer_scalar(b, UIR_DTYPE_I64, 0);
        uir_value_id twice = add(b, k, k), length = uir_network_dim_value(b, f->length, UIR_DTYPE_I64);
        uir_value_id single = either(b, equal(b, k, zero), equal(b, twice, length));
        uir_value_id weight = uir_build_select(b, single, real_number(b, 1), real_number(b, 2));
        weight = uir_build_unsqueeze(b, weight, &second, 1);
        cosines = multiply(b, cosines, weight);
        sines = multiply(b, sines, weight);
    }
    if (f->inverse) sines = negate(b, sines);
    re = product64(context, part[0], cosines);
    if (parts == 2) re = add(b, re, product64(context, part[1], sines));
    if (!to_real) {
        im = negate(b, product64(context, part[0], sines));
        if (parts == 2) im = add(b, im, product64(context, part[1], cosines));
    }
    uir_value_id results[2] = {re, im};
    for (uint32_t i = 0; i < (to_real ? 1u : 2u); i++) {
        if (f->inverse) results[i] = divide(b, results[i], uir_network_dim_value(b, f->length, UIR_DTYPE_F64));
        results[i] = uir_network_move_axis(b, results[i], last - 1, f->axis);
        results[i] = uir_build_unsqueeze(b, results[i], &parts_axis, 1);
    }
    return uir_build_cast(b, to_real ? results[0] : uir_build_concat(b, results, 2, last), dtype);
}

/* A scalar integer input as a dim. */
static uir_dim input_dim(uir_rule_context *context, uint32_t index, const char *name) {
    const uir_dim *dims = uir_network_input_dims(context, uir_rule_input(context, index), name, 1);
    return dims ? dims[0] : dim_int(&context->builder, 1);
}

/* The transform's length along an axis: dft_length, or what the input's extent implies. */
static uir_dim dft_length(uir_rule_context *context, const uir_shape *shape, const fourier *f) {
    uir_builder *b = &context->builder;
    if (uir_rule_has_input(context, 1)) return input_dim(context, 1, "dft_length");
    uir_dim extent = shape->dims[f->axis];
    return f->inverse && f->onesided ? dim_times(b, dim_plus(b, extent, -1), 2) : extent;
}

/* A body that is only a transform along f's axis: a branch of an `if`. */
static bool dft_branch(uir_rule_context *context, uir_value_id x, const uir_shape *shape, fourier f,
                       uir_value_id (*make)(uir_rule_context *, uir_value_id, const uir_shape *, const fourier *,
                                            uir_value_id),
                       uir_value_id axis, uir_graph_id *out_graph) {
    uir_builder outer = context->builder, body;
    if (!uir_network_body(&context->builder, "axis", &body)) return false;
    *out_graph = body.graph;
    context->builder = body;
    uir_value_id y = make(context, x, shape, &f, axis);
    uir_network_body_output(&context->builder, y);
    uir_status status = context->builder.status;
    context->builder = outer;
    if (status != UIR_STATUS_OK) context->builder.status = status;
    return status == UIR_STATUS_OK;
}

static uir_value_id dft_along(uir_rule_context *context, uir_value_id x, const uir_shape *shape, const fourier *f,
                              uir_value_id axis) {
    (void)axis;
    fourier known = *f;
    known.length = dft_length(context, shape, f);
    return transform(context, x, &known);
}

/* The axis is known only at run time: whether it is f's, else one of those before it. */
static uir_value_id dft_choose(uir_rule_context *context, uir_value_id x, const uir_shape *shape, const fourier *f,
                               uir_value_id axis) {
    uir_builder *b = &context->builder;
    if (f->axis == 0) return dft_along(context, x, shape, f, axis);
    fourier earlier = *f;
    earlier.axis--;
    uir_graph_id graphs[2];
    if (!dft_branch(context, x, shape, *f, dft_along, axis, &graphs[0]) ||
        !dft_branch(context, x, shape, earlier, dft_choose, axis, &graphs[1]))
        return x;
    uir_value_id here = uir_build_integer_scalar(b, UIR_DTYPE_I64, f->axis), y = {0};
    uir_value_id condition = equal(b, axis, here);
    uir_attribute attributes[2] = {uir_attribute_graph(b, "then", graphs[0]),
                                   uir_attribute_graph(b, "else", graphs[1])};
    uir_build_node(b, UIR_OP_IF, &condition, 1, attributes, 2, &y, 1);
    return y;
}

uir_status uir_rule_dft(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), axis_input = uir_rule_input(context, 2);
    uir_shape shape = uir_network_shape_between(context, x, "input", 2, UIR_MAX_RANK);
    fourier f = {.inverse = uir_rule_int(context, "inverse", 0) != 0,
                 .onesided = uir_rule_int(context, "onesided", 0) != 0};
    if (b->status != UIR_STATUS_OK) return b->status;
    bool by_input = context->since_version >= 20;
    int64_t axis = by_input ? -2 : uir_rule_int(context, "axis", 1);
    double given;
    if (by_input && !is_none(axis_input)) {
        if (!uir_network_constant_number(context, axis_input, 0, &given)) {
            axis_input = uir_build_cast(b, uir_network_as_scalar(context, axis_input, "axis"), UIR_DTYPE_I64);
            axis_input = modulo(b, axis_input, uir_build_integer_scalar(b, UIR_DTYPE_I64, shape.rank));
            f.axis = shape.rank - 2;
            context->outputs[0] = dft_choose(context, x, &shape, &f, axis_input);
            return b->status;
        }
        axis = (int64_t)given;
    }
    axis = uir_rule_axis(context, axis, shape.rank);
    if (b->status != UIR_STATUS_OK) return b->status;
    if (axis == shape.rank - 1)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE,
                                "axis names the last axis, which holds the real and imaginary parts");
    f.axis = (uint32_t)axis;
    context->outputs[0] = dft_along(context, x, &shape, &f, axis_input);
    return b->status;
}

/* signal [B, L, 1 or 2] in frames of a window, each transformed: [B, frames, bins, 2]. */
uir_status uir_rule_stft(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), window = uir_rule_input(context, 2);
    uir_shape shape = uir_network_shape_between(context, x, "signal", 2, 3);
    if (b->status != UIR_STATUS_OK) return b->status;
    const int64_t last = 2, second = 1, third = 2;
    if (shape.rank == 2) x = uir_build_unsqueeze(b, x, &last, 1); /* real, written without its last axis */
    uir_dim step = input_dim(context, 1, "frame_step"), length = shape.dims[1];
    if (uir_rule_has_input(context, 3))
        length = input_dim(context, 3, "frame_length");
    else if (!is_none(window))
        length = uir_network_shape_between(context, window, "window", 1, 1).dims[0];
    if (b->status != UIR_STATUS_OK) return b->status;
    uir_dim frames = uir_dim_floordiv(b->module->dims, dim_sub(b, shape.dims[1], length), step);
    frames = uir_dim_max(b->module->dims, dim_plus(b, frames, 1), dim_int(b, 0));
    uir_value_id start =
        multiply(b, uir_network_range(b, UIR_DTYPE_I64, frames), uir_network_dim_value(b, step, UIR_DTYPE_I64));
    uir_value_id at = add(b, uir_build_unsqueeze(b, start, &second, 1), uir_network_range(b, UIR_DTYPE_I64, length));
    x = uir_build_gather(b, x, at, 1); /* [B, frames, length, parts] */
    if (!is_none(window)) {
        /* A window shorter than the frame is centred in it by none: the standard wants equal lengths. */
        x = multiply(b, x, uir_network_along(b, uir_build_cast(b, window, dtype_of(b, x)), (uint32_t)third, 4));
    }
    fourier f = {.length = length, .axis = 2, .onesided = uir_rule_int(context, "onesided", 1) != 0};
    context->outputs[0] = transform(context, x, &f);
    return b->status;
}

/* ---- windows ---- */

/* The angle pi * n / N for n < size, N = size when periodic, else size - 1: f64 [size]. */
static uir_value_id window_angle(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_dim size = input_dim(context, 0, "size"), period = size;
    if (uir_rule_int(context, "periodic", 1) == 0)
        period = uir_dim_max(b->module->dims, dim_plus(b, size, -1), dim_int(b, 1));
    uir_value_id n = multiply_scalar(b, uir_network_range(b, UIR_DTYPE_F64, size), pi);
    return divide(b, n, uir_network_dim_value(b, period, UIR_DTYPE_F64));
}

static uir_status give_window(uir_rule_context *context, uir_value_id y) {
    uir_dtype to = uir_network_dtype_attribute(context, "output_datatype", UIR_DTYPE_F32);
    context->outputs[0] = uir_build_cast(&context->builder, y, to);
    return context->builder.status;
}

uir_status uir_rule_hann_window(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    return give_window(context, square(b, sine(b, window_angle(context))));
}

uir_status uir_rule_hamming_window(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id wave = cosine(b, multiply_scalar(b, window_angle(context), 2));
    return give_window(context, add_scalar(b, multiply_scalar(b, wave, -21.0 / 46.0), 25.0 / 46.0));
}

uir_status uir_rule_blackman_window(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id angle = window_angle(context);
    uir_value_id slow = multiply_scalar(b, cosine(b, multiply_scalar(b, angle, 2)), -0.5);
    uir_value_id fast = multiply_scalar(b, cosine(b, multiply_scalar(b, angle, 4)), 0.08);
    return give_window(context, add_scalar(b, add(b, slow, fast), 0.42));
}

/* ---- MelWeightMatrix: triangles over the spectrum's bins, evenly spaced on the mel scale ---- */

static uir_value_id to_mel(uir_builder *b, uir_value_id hertz) {
    uir_value_id ratio = add_scalar(b, divide_scalar(b, hertz, 700), 1);
    return multiply_scalar(b, logarithm(b, ratio), 2595 / log(10.0));
}

uir_status uir_rule_mel_weight_matrix(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_dim bins = input_dim(context, 0, "num_mel_bins"), length = input_dim(context, 1, "dft_length");
    uir_value_id parts[3];
    for (uint32_t i = 0; i < 3; i++)
        parts[i] = uir_build_cast(
            b, uir_network_as_scalar(context, uir_rule_input(context, 2 + i), "sample_rate or edge"), UIR_DTYPE_F64);
    if (b->status != UIR_STATUS_OK) return b->status;
    uir_value_id low = to_mel(b, parts[1]), high = to_mel(b, parts[2]);
    uir_dim corners = dim_plus(b, bins, 2);
    uir_value_id step = divide(b, subtract(b, high, low), uir_network_dim_value(b, corners, UIR_DTYPE_F64));
    uir_value_id mel = add(b, multiply(b, uir_network_range(b, UIR_DTYPE_F64, corners), step), low);
    uir_value_id hertz = add_scalar(b, exponential(b, multiply_scalar(b, mel, log(10.0) / 2595)), -1);
    hertz = multiply_scalar(b, hertz, 700);
    uir_value_id scale = uir_network_dim_value(b, dim_plus(b, length, 1), UIR_DTYPE_F64);
    uir_value_id corner = floor_of(b, divide(b, multiply(b, hertz, scale), parts[0]));
    uir_value_id left = uir_network_slice(b, corner, 0, dim_int(b, 0), bins, 1);
    uir_value_id centre = uir_network_slice(b, corner, 0, dim_int(b, 1), bins, 1);
    uir_value_id right = uir_network_slice(b, corner, 0, dim_int(b, 2), bins, 1);
    const int64_t second = 1;
    uir_dim spectrum = dim_plus(b, dim_over(b, length, 2), 1);
    uir_value_id j = uir_build_unsqueeze(b, uir_network_range(b, UIR_DTYPE_F64, spectrum), &second, 1);
    uir_value_id zero = real_number(b, 0), one = real_number(b, 1);
    uir_value_id rise = subtract(b, centre, left), fall = subtract(b, right, centre);
    uir_value_id steep = equal(b, rise, zero), no_fall = less_equal(b, fall, zero);
    uir_value_id up = divide(b, subtract(b, j, left), uir_build_select(b, steep, one, rise));
    uir_value_id down = divide(b, subtract(b, right, j), uir_build_select(b, no_fall, one, fall));
    uir_value_id rising = both(b, greater_equal(b, j, left), less_equal(b, j, centre));
    uir_value_id falling = both(b, both(b, greater_equal(b, j, centre), less(b, j, right)), negation(b, no_fall));
    uir_value_id peak = uir_build_select(b, equal(b, j, centre), one, zero);
    uir_value_id y = uir_build_select(b, steep, peak, uir_build_select(b, rising, up, zero));
    return give_window(context, uir_build_select(b, falling, down, y));
}
