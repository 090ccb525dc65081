/* Convolutions: Conv, ConvTranspose, ConvInteger, QLinearConv, CausalConvWithState.
 *
 * All become `conv`, whose padding reads zeros. A transposed convolution is a convolution of the input by the weights
 * turned round, one for each place between the input's elements (phases), or of the input with zeros between its
 * elements; an integer one corrects for zero points by sums, so that the contraction itself stays one of 8-bit
 * operands. */
#include "decompose/network/rules_network.h"

#include <string.h>

typedef struct convolution {
    uir_value_id x, w;
    uir_shape x_shape, w_shape;
    int64_t groups;
    uir_window window;
} convolution;

static bool begin(uir_rule_context *context, uint32_t x_index, uint32_t w_index, convolution *c) {
    uir_builder *b = &context->builder;
    c->x = uir_rule_input(context, x_index);
    c->w = uir_rule_input(context, w_index);
    c->x_shape = uir_network_shape_between(context, c->x, "X", 3, UIR_MAX_RANK);
    if (b->status != UIR_STATUS_OK) return false;
    c->w_shape = uir_network_shape_between(context, c->w, "W", c->x_shape.rank, c->x_shape.rank);
    if (b->status != UIR_STATUS_OK) return false;
    c->groups = uir_rule_int(context, "group", 1);
    if (c->groups < 1 || c->groups > INT32_MAX) {
        (void)uir_builder_fail(b, UIR_STATUS_BAD_FILE, "attribute group is %lld; at least 1 is required",
                               (long long)c->groups);
        return false;
    }
    return uir_network_window(context, &c->x_shape, c->w_shape.dims + 2, &c->window);
}

/* y + bias along the channels; in the working dtype, then cast. */
static uir_value_id add_bias(uir_builder *b, uir_value_id y, uir_value_id bias, uint32_t rank, uir_dtype to) {
    if (!is_none(bias)) y = add(b, y, uir_network_along(b, uir_build_cast(b, bias, dtype_of(b, y)), 1, rank));
    return uir_build_cast(b, y, to);
}

uir_status uir_rule_conv(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    convolution c;
    if (!begin(context, 0, 1, &c)) return b->status;
    uir_value_id bias = uir_rule_input(context, 2);
    uir_dtype dtype = dtype_of(b, c.x);
    uir_dtype to = is_none(bias) ? dtype : uir_network_working_dtype(dtype);
    uir_value_id y = uir_network_conv_node(b, c.x, c.w, c.groups, &c.window, c.window.low, c.window.high, to);
    context->outputs[0] = add_bias(b, y, bias, c.x_shape.rank, dtype);
    return b->status;
}

/* ---- transposed ---- */

/* [C, OC/groups, kernel..] to [OC, C/groups, kernel..], kernel axes reversed. */
static uir_value_id turn_weights(uir_rule_context *context, const convolution *c) {
    uir_builder *b = &context->builder;
    uir_value_id w = c->w;
    for (uint32_t i = 0; i < c->window.rank; i++) w = uir_network_flip(b, w, i + 2);
    if (c->groups == 1) return uir_network_swap(b, w, 0, 1);
    uir_shape split = {c->w_shape.rank + 1, {{0}}}, joined = c->w_shape;
    split.dims[0] = dim_int(b, c->groups);
    split.dims[1] = dim_over(b, c->w_shape.dims[0], c->groups);
    for (uint32_t i = 1; i < c->w_shape.rank; i++) split.dims[i + 1] = c->w_shape.dims[i];
    joined.dims[0] = dim_times(b, c->w_shape.dims[1], c->groups);
    joined.dims[1] = split.dims[1];
    return uir_network_reshape(b, uir_network_swap(b, uir_network_reshape(b, w, &split), 1, 2), &joined);
}

/* Padding of the result (what is cut from its full extent) on one axis. */
static void transposed_padding(uir_rule_context *context, const convolution *c, uint32_t axis, int64_t extra,
                               const int64_t *output_shape, uir_dim *out_low, uir_dim *out_high) {
    uir_builder *b = &context->builder;
    uir_dims *dims = b->module->dims;
    const char *mode = uir_rule_string(context, "auto_pad", "NOTSET");
    bool same = strncmp(mode, "SAME", 4) == 0, upper = strcmp(mode, "SAME_UPPER") == 0;
    uir_dim in = c->x_shape.dims[axis + 2];
    uir_dim full = dim_add(b, dim_times(b, dim_plus(b, in, -1), c->window.strides[axis]),
                           dim_plus(b, c->window.span[axis], extra));
    if (!output_shape && !same) {
        *out_low = c->window.low[axis];
        *out_high = dim_plus(b, c->window.high[axis], -extra);
        return;
    }
    uir_dim out = output_shape ? dim_int(b, output_shape[axis]) : dim_times(b, in, c->window.strides[axis]);
    uir_dim total = uir_dim_max(dims, dim_sub(b, full, out), dim_int(b, 0));
    uir_dim half = dim_over(b, total, 2);
    *out_low = upper ? half : dim_sub(b, total, half);
    *out_high = dim_plus(b, dim_sub(b, dim_sub(b, full, out), *out_low), -extra);
}

/* One spatial axis by phases: the result's element q*stride + r is a window of `taps` elements of the input by every
 * stride-th element of the kernel. `low`, `high`: what is cut from the phases side by side. */
typedef struct phases {
    int64_t stride, kernel, taps, low;
    uir_dim out;
} phases;

/* A convolution of the input itself, by phases as channels of their own, which then go between each other: no zeros are
 * multiplied. False where kernel or padding are of unknown size, or nothing lies between the input's elements. */
static bool choose_phases(uir_rule_context *context, const convolution *c, const int64_t *extra, phases *out) {
    uir_builder *b = &context->builder;
    bool any = false;
    for (uint32_t i = 0; i < c->window.rank; i++) {
        phases *p = &out[i];
        int64_t cut_high;
        uir_dim low, high;
        transposed_padding(context, c, i, extra[i], NULL, &low, &high);
        p->stride = c->window.strides[i];
        if (c->window.dilations[i] != 1 || !uir_dim_is_const(b->module->dims, c->w_shape.dims[i + 2], &p->kernel) ||
            p->kernel < 1 || p->kernel > 4096 || p->stride > 64 || extra[i] > 64 ||
            !uir_dim_is_const(b->module->dims, low, &p->low) || !uir_dim_is_const(b->module->dims, high, &cut_high) ||
            p->low < 0 || cut_high < -extra[i])
            return false;
        p->taps = (p->kernel + extra[i] + p->stride - 1) / p->stride;
        p->out = dim_plus(b, dim_times(b, dim_plus(b, c->x_shape.dims[i + 2], -1), p->stride),
                          p->kernel - p->low - cut_high);
        any |= p->stride > 1;
    }
    return any && c->x_shape.rank + c->window.rank <= UIR_MAX_RANK && c->window.rank <= UIR_NETWORK_AXES;
}

/* Do the phases' channels stand before the model's, so that these are the innermost? Those of a group stand together.
 */
static bool has_phases_first(const convolution *c) {
    return c->groups == 1;
}

/* [OC, C/groups, kernel..] turned round to [strides.. * OC or OC * strides.., C/groups, taps..]. */
static uir_value_id phase_weights(uir_rule_context *context, const convolution *c, const phases *p) {
    uir_builder *b = &context->builder;
    uint32_t n = c->window.rank;
    uir_value_id w = turn_weights(context, c);
    uir_dim low[UIR_MAX_RANK], high[UIR_MAX_RANK];
    int64_t interior[UIR_MAX_RANK] = {0}, perm[UIR_MAX_RANK];
    uir_shape split = {2 * n + 2, {{0}}}, joined = {n + 2, {{0}}};
    split.dims[0] = joined.dims[0] = dim_times(b, c->w_shape.dims[1], c->groups);
    split.dims[1] = joined.dims[1] = dim_over(b, c->w_shape.dims[0], c->groups);
    bool first = has_phases_first(c);
    perm[first ? n : 0] = 0, perm[n + 1] = 1;
    for (uint32_t i = 0; i < n + 2; i++) low[i] = high[i] = dim_int(b, 0);
    for (uint32_t i = 0; i < n; i++) {
        low[i + 2] = dim_int(b, p[i].taps * p[i].stride - p[i].kernel);
        split.dims[2 * i + 2] = joined.dims[i + 2] = dim_int(b, p[i].taps);
        split.dims[2 * i + 3] = dim_int(b, p[i].stride);
        joined.dims[0] = dim_times(b, joined.dims[0], p[i].stride);
        perm[first ? i : i + 1] = 2 * i + 3;
        perm[n + 2 + i] = 2 * i + 2;
    }
    w = uir_network_reshape(b, uir_build_pad(b, w, scalar_like(b, w, 0), low, high, interior), &split);
    for (uint32_t i = 0; i < n; i++) w = uir_network_flip(b, w, 2 * i + 3);
    return uir_network_reshape(b, uir_build_transpose(b, w, perm), &joined);
}

/* Of a phase: the first tap that is no zero, and how many elements of the input lie before the first window's. */
static int64_t phase_offset(const phases *p, int64_t phase, int64_t *out_low) {
    int64_t zeros = p->taps * p->stride - p->kernel, turned = p->stride - 1 - (phase + p->low) % p->stride;
    int64_t first = (zeros - turned + p->stride - 1) / p->stride;
    first = zeros > turned && first < p->taps ? first : 0;
    *out_low = p->taps - 1 - (phase + p->low) / p->stride - first;
    return first;
}

enum { LEAST_FILTERS = 16, MOST_PHASES = 9 };

/* Side by side all phases have the windows of the widest, also where these are cut off. Is each by itself, where it
 * begins and ends, less to multiply by a tenth? Of known extents, and filters that fill vectors. */
static bool are_better_apart(uir_rule_context *context, const convolution *c, const phases *p) {
    uir_builder *b = &context->builder;
    double together = 1, apart = 1;
    int64_t filters, in, out, low, count = 1;
    if (!has_phases_first(c) || !uir_dim_is_const(b->module->dims, c->w_shape.dims[1], &filters) ||
        filters < LEAST_FILTERS)
        return false;
    for (uint32_t i = 0; i < c->window.rank; i++) {
        if (!uir_dim_is_const(b->module->dims, c->x_shape.dims[i + 2], &in) ||
            !uir_dim_is_const(b->module->dims, p[i].out, &out) || in < 1 || out < 1 || out % p[i].stride)
            return false;
        int64_t taps = 0;
        for (int64_t r = 0; r < p[i].stride; r++) taps += p[i].taps - phase_offset(&p[i], r, &low);
        together *= (double)(in + p[i].taps - 1) * (double)(p[i].taps * p[i].stride);
        apart *= (double)(out / p[i].stride) * (double)taps;
        count *= p[i].stride;
    }
    return count <= MOST_PHASES && 10 * together > 11 * apart;
}

/* Each phase by itself, as channels of its own, the phases of the last axis fastest. */
static uir_value_id conv_apart(uir_rule_context *context, const convolution *c, const phases *p, uir_dtype to) {
    uir_builder *b = &context->builder;
    uint32_t n = c->window.rank, total = 1;
    uir_value_id all = phase_weights(context, c, p), made[MOST_PHASES];
    uir_window window = c->window;
    for (uint32_t i = 0; i < n; i++) total *= (uint32_t)p[i].stride, window.strides[i] = 1;
    for (uint32_t k = 0; k < total; k++) {
        uir_dim starts[UIR_MAX_RANK], sizes[UIR_MAX_RANK], before[UIR_NETWORK_AXES], after[UIR_NETWORK_AXES];
        int64_t steps[UIR_MAX_RANK], block = 0;
        uint32_t rest = k;
        int64_t phase[UIR_NETWORK_AXES];
        for (uint32_t i = n; i-- > 0; rest /= (uint32_t)p[i].stride) phase[i] = rest % (uint32_t)p[i].stride;
        for (uint32_t i = 0; i < n; i++) {
            int64_t low, first = phase_offset(&p[i], phase[i], &low), taps = p[i].taps - first;
            uir_dim places = dim_over(b, p[i].out, p[i].stride);
            block = block * p[i].stride + (phase[i] + p[i].low) % p[i].stride;
            starts[i + 2] = dim_int(b, first);
            sizes[i + 2] = dim_int(b, taps);
            before[i] = dim_int(b, low);
            after[i] = dim_plus(b, dim_sub(b, places, c->x_shape.dims[i + 2]), taps - 1 - low);
        }
        for (uint32_t d = 0; d < n + 2; d++) steps[d] = 1;
        starts[0] = dim_times(b, c->w_shape.dims[1], block);
        sizes[0] = c->w_shape.dims[1];
        starts[1] = dim_int(b, 0);
        sizes[1] = c->w_shape.dims[0];
        uir_value_id weights = uir_build_slice(b, all, starts, sizes, steps);
        made[k] = uir_network_conv_node(b, c->x, weights, 1, &window, before, after, to);
    }
    return uir_build_concat(b, made, total, 1);
}

static uir_value_id conv_by_phases(uir_rule_context *context, const convolution *c, const phases *p, uir_dtype to) {
    uir_builder *b = &context->builder;
    uint32_t n = c->window.rank;
    bool apart = are_better_apart(context, c, p);
    uir_dim around[UIR_NETWORK_AXES], starts[UIR_MAX_RANK], sizes[UIR_MAX_RANK];
    int64_t perm[UIR_MAX_RANK], steps[UIR_MAX_RANK];
    uir_window window = c->window;
    uir_shape split = {2 * n + 2, {{0}}}, joined = {n + 2, {{0}}};
    uint32_t channels = has_phases_first(c) ? n + 1 : 1, phase = has_phases_first(c) ? 1 : 2; /* dims when split */
    split.dims[0] = joined.dims[0] = c->x_shape.dims[0];
    split.dims[channels] = joined.dims[1] = dim_times(b, c->w_shape.dims[1], c->groups);
    perm[0] = 0, perm[1] = channels;
    for (uint32_t i = 0; i < n; i++) {
        uir_dim places =
            apart ? dim_over(b, p[i].out, p[i].stride) : dim_plus(b, c->x_shape.dims[i + 2], p[i].taps - 1);
        window.strides[i] = 1;
        around[i] = dim_int(b, p[i].taps - 1);
        split.dims[i + phase] = dim_int(b, p[i].stride);
        split.dims[i + 2 + n] = places;
        joined.dims[i + 2] = dim_times(b, places, p[i].stride);
        perm[2 * i + 2] = i + 2 + n;
        perm[2 * i + 3] = i + phase;
    }
    for (uint32_t i = 0; i < n + 2; i++) {
        steps[i] = 1;
        starts[i] = dim_int(b, i < 2 || apart ? 0 : p[i - 2].low);
        sizes[i] = i < 2 ? joined.dims[i] : p[i - 2].out;
    }
    uir_value_id y =
        apart ? conv_apart(context, c, p, to)
              : uir_network_conv_node(b, c->x, phase_weights(context, c, p), c->groups, &window, around, around, to);
    y = uir_network_reshape(b, uir_build_transpose(b, uir_network_reshape(b, y, &split), perm), &joined);
    return uir_build_slice(b, y, starts, sizes, steps);
}

/* Of an image of one element: each of the result's is its channels by one place of the kernel. False: it is none, or
 * the kernel is of unknown size. */
static bool is_one_element(uir_rule_context *context, const convolution *c, const int64_t *extra) {
    uir_builder *b = &context->builder;
    if (c->groups != 1) return false;
    for (uint32_t i = 0; i < c->window.rank; i++) {
        int64_t in, kernel, low_cut, high_cut;
        uir_dim low, high;
        transposed_padding(context, c, i, extra[i], NULL, &low, &high);
        if (!uir_dim_is_const(b->module->dims, c->x_shape.dims[i + 2], &in) || in != 1 || extra[i] ||
            c->window.dilations[i] != 1 || !uir_dim_is_const(b->module->dims, c->w_shape.dims[i + 2], &kernel) ||
            !uir_dim_is_const(b->module->dims, low, &low_cut) || !uir_dim_is_const(b->module->dims, high, &high_cut) ||
            low_cut < 0 || high_cut < 0 || kernel < 1 || kernel - low_cut - high_cut < 0)
            return false;
    }
    return true;
}

static uir_value_id product_by_kernel(uir_rule_context *context, const convolution *c, uir_dtype to) {
    uir_builder *b = &context->builder;
    uint32_t n = c->window.rank;
    uir_shape rows = {2, {c->x_shape.dims[0], c->x_shape.dims[1]}}, places = {n + 2, {{0}}};
    uir_shape columns = {2, {c->w_shape.dims[0], c->w_shape.dims[1]}};
    uir_dim starts[UIR_MAX_RANK], sizes[UIR_MAX_RANK], low, high;
    int64_t steps[UIR_MAX_RANK];
    for (uint32_t d = 0; d < n + 2; d++) {
        places.dims[d] = d ? c->w_shape.dims[d] : c->x_shape.dims[0];
        starts[d] = dim_int(b, 0);
        sizes[d] = places.dims[d];
        steps[d] = 1;
        if (d < 2) continue;
        columns.dims[1] = uir_dim_mul(b->module->dims, columns.dims[1], places.dims[d]);
        transposed_padding(context, c, d - 2, 0, NULL, &low, &high);
        starts[d] = low;
        sizes[d] = dim_sub(b, dim_sub(b, sizes[d], low), high);
    }
    uir_value_id y =
        uir_build_matmul(b, uir_network_reshape(b, c->x, &rows), uir_network_reshape(b, c->w, &columns), to);
    return uir_build_slice(b, uir_network_reshape(b, y, &places), starts, sizes, steps);
}

uir_status uir_rule_conv_transpose(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    convolution c;
    if (!begin(context, 0, 1, &c)) return b->status;
    uint32_t n = c.window.rank;
    int64_t extra[UIR_MAX_RANK];
    if (!uir_network_int_list(context, "output_padding", n, 0, 0, extra)) return b->status;
    const int64_t *output_shape = NULL;
    int64_t given = uir_rule_ints(context, "output_shape", &output_shape);
    if (given <= 0)
        output_shape = NULL;
    else if (given == n + 2)
        output_shape += 2; /* some exporters write batch and channels too */
    else if (given != n)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE,
                                "attribute output_shape has %lld elements; the input has %u spatial axes",
                                (long long)given, n);
    uir_dim low[UIR_NETWORK_AXES], high[UIR_NETWORK_AXES], none[UIR_MAX_RANK];
    int64_t interior[UIR_NETWORK_AXES];
    uir_window step = c.window;
    for (uint32_t i = 0; i < c.x_shape.rank; i++) {
        low[i] = high[i] = dim_int(b, 0);
        interior[i] = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        uir_dim cut_low, cut_high, reach = dim_plus(b, c.window.span[i], -1);
        transposed_padding(context, &c, i, extra[i], output_shape, &cut_low, &cut_high);
        low[i + 2] = dim_sub(b, reach, cut_low);
        high[i + 2] = dim_sub(b, reach, cut_high);
        interior[i + 2] = c.window.strides[i] - 1;
        step.strides[i] = 1;
        none[i] = dim_int(b, 0);
    }
    uir_value_id bias = uir_rule_input(context, 2);
    uir_dtype dtype = dtype_of(b, c.x);
    uir_dtype to = is_none(bias) ? dtype : uir_network_working_dtype(dtype);
    phases by_phases[UIR_NETWORK_AXES];
    if (!output_shape && is_one_element(context, &c, extra)) {
        context->outputs[0] = add_bias(b, product_by_kernel(context, &c, to), bias, c.x_shape.rank, dtype);
        return b->status;
    }
    if (!output_shape && choose_phases(context, &c, extra, by_phases)) {
        context->outputs[0] = add_bias(b, conv_by_phases(context, &c, by_phases, to), bias, c.x_shape.rank, dtype);
        return b->status;
    }
    uir_value_id x = uir_build_pad(b, c.x, scalar_like(b, c.x, 0), low, high, interior);
    uir_value_id y = uir_network_conv_node(b, x, turn_weights(context, &c), c.groups, &step, none, none, to);
    context->outputs[0] = add_bias(b, y, bias, c.x_shape.rank, dtype);
    return b->status;
}

/* ---- integer ---- */

/* Sum over each window of x (already padded) and the channels of its group: [N, groups, out..], as [N, OC, out..]. */
static uir_value_id window_sums(uir_rule_context *context, const convolution *c, uir_value_id x, const uir_dim *none) {
    uir_builder *b = &context->builder;
    uir_shape ones = c->w_shape;
    ones.dims[0] = dim_int(b, c->groups);
    uir_value_id w = uir_network_full(b, dtype_of(b, c->w), 1, &ones);
    uir_value_id sums = uir_network_conv_node(b, x, w, c->groups, &c->window, none, none, UIR_DTYPE_I32);
    return c->groups == 1 ? sums : uir_network_repeat(context, sums, 1, dim_over(b, c->w_shape.dims[0], c->groups));
}

/* The i32 convolution of (x - x_zero) by (w - w_zero): sum xw - x_zero*sum w - w_zero*sum x + count*x_zero*w_zero.
 * Padding is x_zero, which stands for zero. x_zero has rank 0, w_zero rank 0 or 1 (per output channel). */
static uir_value_id integer_conv(uir_rule_context *context, const convolution *c, uir_value_id x_zero,
                                 uir_value_id w_zero) {
    uir_builder *b = &context->builder;
    uint32_t n = c->window.rank;
    uir_dim low[UIR_NETWORK_AXES], high[UIR_NETWORK_AXES], none[UIR_MAX_RANK];
    int64_t interior[UIR_NETWORK_AXES] = {0};
    if (uir_network_is_zero(context, x_zero)) x_zero = (uir_value_id){0};
    if (uir_network_is_zero(context, w_zero)) w_zero = (uir_value_id){0};
    if (is_none(x_zero) && is_none(w_zero))
        return uir_network_conv_node(b, c->x, c->w, c->groups, &c->window, c->window.low, c->window.high,
                                     UIR_DTYPE_I32);
    low[0] = low[1] = high[0] = high[1] = dim_int(b, 0);
    for (uint32_t i = 0; i < n; i++) {
        low[i + 2] = c->window.low[i];
        high[i + 2] = c->window.high[i];
        none[i] = dim_int(b, 0);
    }
    uir_value_id x = uir_build_pad(b, c->x, is_none(x_zero) ? scalar_like(b, c->x, 0) : x_zero, low, high, interior);
    uir_value_id y = uir_network_conv_node(b, x, c->w, c->groups, &c->window, none, none, UIR_DTYPE_I32);
    uir_value_id zx = cast_present(b, x_zero, UIR_DTYPE_I32);
    uir_value_id zw = uir_network_along(b, cast_present(b, w_zero, UIR_DTYPE_I32), 1, n + 2);
    if (!is_none(x_zero)) {
        int64_t axes[UIR_NETWORK_AXES];
        for (uint32_t i = 0; i <= n; i++) axes[i] = i + 1;
        uir_value_id sums =
            uir_build_reduce(b, UIR_OP_REDUCE_SUM, uir_build_cast(b, c->w, UIR_DTYPE_I32), axes, n + 1, false);
        y = subtract(b, y, multiply(b, uir_network_along(b, sums, 1, n + 2), zx));
    }
    if (!is_none(w_zero)) {
        y = subtract(b, y, multiply(b, window_sums(context, c, x, none), zw));
        if (!is_none(x_zero)) {
            uir_value_id count =
                uir_network_dim_value(b, uir_network_dim_product(b, &c->w_shape, 1, n + 2), UIR_DTYPE_I32);
            y = add(b, y, multiply(b, multiply(b, count, zx), zw));
        }
    }
    return y;
}

/* A zero point or scale of the weights: rank 0, or rank 1 of one element as rank 0, or per output channel. */
static uir_value_id per_channel(uir_rule_context *context, uir_value_id value, const char *name) {
    if (is_none(value)) return value;
    uir_shape shape = uir_network_shape_between(context, value, name, 0, 1);
    int64_t extent;
    if (shape.rank == 1 && uir_dim_is_const(context->builder.module->dims, shape.dims[0], &extent) && extent == 1)
        return uir_build_reshape(&context->builder, value, NULL, 0);
    return value;
}

uir_status uir_rule_conv_integer(uir_rule_context *context) {
    convolution c;
    if (!begin(context, 0, 1, &c)) return context->builder.status;
    uir_value_id x_zero = uir_network_as_scalar(context, uir_rule_input(context, 2), "x_zero_point");
    uir_value_id w_zero = per_channel(context, uir_rule_input(context, 3), "w_zero_point");
    context->outputs[0] = integer_conv(context, &c, x_zero, w_zero);
    return context->builder.status;
}

uir_status uir_rule_qlinear_conv(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    convolution c;
    if (!begin(context, 0, 3, &c)) return b->status;
    uint32_t rank = c.x_shape.rank;
    uir_value_id x_scale = uir_network_as_scalar(context, uir_rule_input(context, 1), "x_scale");
    uir_value_id x_zero = uir_network_as_scalar(context, uir_rule_input(context, 2), "x_zero_point");
    uir_value_id w_scale = per_channel(context, uir_rule_input(context, 4), "w_scale");
    uir_value_id w_zero = per_channel(context, uir_rule_input(context, 5), "w_zero_point");
    uir_value_id y_scale = uir_network_as_scalar(context, uir_rule_input(context, 6), "y_scale");
    uir_value_id y_zero = uir_network_as_scalar(context, uir_rule_input(context, 7), "y_zero_point");
    uir_value_id bias = uir_rule_input(context, 8);
    uir_value_id sum = integer_conv(context, &c, x_zero, w_zero);
    if (!is_none(bias)) sum = add(b, sum, uir_network_along(b, bias, 1, rank));
    uir_value_id factor = divide(b, multiply(b, x_scale, w_scale), y_scale);
    uir_value_id scaled = multiply(b, uir_build_cast(b, sum, UIR_DTYPE_F32), uir_network_along(b, factor, 1, rank));
    context->outputs[0] = uir_network_quantize(b, scaled, y_zero, dtype_of(b, y_zero), true);
    return b->status;
}

/* ---- with state (ai.onnx 27): a depthwise convolution over time that sees the past alone ---- */

uir_status uir_rule_causal_conv_with_state(uir_rule_context *context) {
    static const char *const activations[] = {"none", "silu", "swish", NULL};
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), w = uir_rule_input(context, 1), bias = uir_rule_input(context, 2);
    uir_value_id past = uir_rule_input(context, 3);
    uir_shape shape = uir_network_shape_between(context, x, "input", 3, 3);
    uir_shape kernel = uir_network_shape_between(context, w, "weight", 3, 3);
    uint32_t activation = uir_network_choice(context, "activation", "none", activations);
    int64_t channels;
    if (b->status != UIR_STATUS_OK) return b->status;
    if (!uir_dim_is_const(b->module->dims, shape.dims[1], &channels) &&
        !uir_dim_is_const(b->module->dims, kernel.dims[0], &channels))
        return uir_builder_fail(b, UIR_STATUS_UNSUPPORTED,
                                "the number of channels is unknown; give input or weight a fixed one");
    uir_dtype dtype = dtype_of(b, x);
    uir_shape state = {3, {shape.dims[0], shape.dims[1], dim_plus(b, kernel.dims[2], -1)}};
    uir_value_id parts[2] = {is_none(past) ? uir_network_full(b, dtype, 0, &state) : past, x};
    uir_value_id padded = uir_build_concat(b, parts, 2, 2);
    uir_window window = {.rank = 1, .kernel = {kernel.dims[2]}, .strides = {1}, .dilations = {1}};
    uir_dim none = dim_int(b, 0);
    uir_value_id y =
        uir_network_conv_node(b, padded, w, channels, &window, &none, &none, uir_network_working_dtype(dtype));
    y = add_bias(b, y, bias, 3, dtype);
    if (activation > 0) {
        uir_value_id wide = uir_network_widen(b, y);
        y = uir_build_cast(b, multiply(b, wide, sigmoid(b, wide)), dtype);
    }
    context->outputs[0] = y;
    if (uir_rule_has_output(context, 1))
        context->outputs[1] = uir_network_slice(b, padded, 2, shape.dims[2], state.dims[2], 1);
    return b->status;
}
