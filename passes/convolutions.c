/* The shapes of convolutions and of reductions over windows. Elements of a window that see padding alone, wherever it
 * is, are cut off: around an image of one element along an axis, or where dilations reach beyond the image.
 *
 *   conv(x [.., n, ..], w [.., k, ..]) [.., m, ..]  ->  conv(x, w at the elements that meet x)
 *   window_sum(x [.., n, ..], k) [.., m, ..]        ->  window_sum(x, as many as meet x)
 *
 * and where several windows, or none, meet an image of one element, the padding is made: an axis of one element is
 * none, and has no outside. */
#include "passes/tools.h"

#include <math.h>

typedef struct convolution {
    uir_module *module;
    uir_builder *b;
    uint32_t rank; /* of image, weights and result */
    uir_dim x[UIR_MAX_RANK], w[UIR_MAX_RANK];
    uir_type y;
    uir_op op;
    uir_value_id image, weights; /* no weights: a reduction, of which `w` holds the window alone */
    uir_value_id given;          /* the node's own weights */
    uint32_t spatial;
    int64_t groups, strides[UIR_MAX_RANK], dilations[UIR_MAX_RANK];
    uir_dim low[UIR_MAX_RANK], high[UIR_MAX_RANK];
} convolution;

static void read_convolution(convolution *c, const uir_node_info *node) {
    const uir_module *module = c->module;
    uint32_t count;
    const int64_t *strides = uir_node_ints(module, node, "strides", &c->spatial);
    const int64_t *dilations = uir_node_ints(module, node, "dilations", &count);
    const uir_dim *low = uir_node_dims(module, node, "low", &count),
                  *high = uir_node_dims(module, node, "high", &count);
    const uir_dim *window = uir_node_dims(module, node, "window", &count);
    c->y = *uir_value_type(module, node->outputs[0]);
    c->rank = c->y.rank;
    c->op = node->op;
    c->image = node->inputs[0];
    if (node->op == UIR_OP_CONV) c->weights = c->given = node->inputs[1];
    for (uint32_t d = 0; d < c->rank; d++) {
        c->x[d] = uir_value_type(module, c->image)->dims[d];
        if (c->weights.id)
            c->w[d] = uir_value_type(module, c->weights)->dims[d];
        else if (d >= 2)
            c->w[d] = window[d - 2];
    }
    c->groups = uir_node_int(module, node, "groups", 1);
    for (uint32_t i = 0; i < c->spatial; i++) {
        c->strides[i] = strides[i], c->dilations[i] = dilations[i];
        c->low[i] = low[i], c->high[i] = high[i];
    }
}

static bool is_number(const convolution *c, uir_dim dim, int64_t wanted) {
    int64_t value;
    return uir_dim_is_const(c->module->dims, dim, &value) && value == wanted;
}

#define FAR (INT64_C(1) << 40) /* numbers up to here are added and multiplied without a thought */

typedef struct range {
    int64_t first, last;
} range;

/* Which elements of a window are somewhere inside along an axis: those before and behind see padding alone. */
static bool find_met(const convolution *c, uint32_t axis, range *out) {
    const uir_dims *dims = c->module->dims;
    int64_t image, results, window, low, high;
    if (!uir_dim_is_const(dims, c->x[axis + 2], &image) || !uir_dim_is_const(dims, c->y.dims[axis + 2], &results) ||
        !uir_dim_is_const(dims, c->w[axis + 2], &window) || !uir_dim_is_const(dims, c->low[axis], &low) ||
        !uir_dim_is_const(dims, c->high[axis], &high) || image < 1 || image > FAR || results < 1 || window < 2 ||
        window > FAR || low < 0 || low > FAR || high < 0 || high > FAR || c->dilations[axis] > FAR)
        return false;
    int64_t dilation = c->dilations[axis], before = low - (results - 1) * c->strides[axis], behind = image - 1 + low;
    *out = (range){before > 0 ? (before + dilation - 1) / dilation : 0, behind / dilation};
    if (out->last > window - 1) out->last = window - 1;
    /* What is left begins in the padding, or at the image's first element. */
    return out->first <= out->last && out->last - out->first + 1 < window && out->first * dilation <= low &&
           (window - 1 - out->last) * dilation <= high;
}

/* What a reduction sees outside; a convolution sees 0. */
static double outside_of(const convolution *c) {
    uir_dtype dtype = uir_value_type(c->module, c->image)->dtype;
    if (c->op != UIR_OP_WINDOW_MAX) return 0;
    return uir_dtype_is_float(dtype) ? -INFINITY : (double)uir_dtype_integer_min(dtype);
}

/* What is outside counts for nothing. As an element that is there it must do so too: have its value in the image's
 * type, and make no NaN of the weights that it meets. */
static bool bears_padding(const convolution *c) {
    uir_dtype dtype = uir_value_type(c->module, c->image)->dtype;
    unsigned char element[16] = {0};
    if (uir_dtype_is_float(dtype)) {
        uir_dtype_store_double(dtype, element, 0, outside_of(c), UIR_ROUND_NEAREST_EVEN);
        if (uir_dtype_load_double(dtype, element, 0) != outside_of(c)) return false;
    }
    if (!c->given.id) return true;
    const uir_tensor *w = uir_value_info_get(c->module, c->given)->constant;
    if (!w || !uir_dtype_is_float(w->dtype)) return w || !uir_dtype_is_float(c->y.dtype);
    for (uint64_t i = 0; i < w->element_count; i++)
        if (!isfinite(uir_dtype_load_double(w->dtype, w->data, i))) return false;
    return true;
}

static bool cut_windows(convolution *c) {
    uir_dims *dims = c->module->dims;
    uir_dim starts[UIR_MAX_RANK], zero = uir_dim_const(dims, 0);
    int64_t steps[UIR_MAX_RANK], window;
    range met;
    bool cut = false;
    for (uint32_t d = 0; d < c->rank; d++) starts[d] = zero, steps[d] = 1;
    for (uint32_t i = 0; i < c->spatial; i++) {
        if (!find_met(c, i, &met) || !uir_dim_is_const(dims, c->w[i + 2], &window)) continue;
        bool meets_one = is_number(c, c->x[i + 2], 1) && is_number(c, c->y.dims[i + 2], 1);
        if (!meets_one && !bears_padding(c)) continue;
        cut = true;
        starts[i + 2] = uir_dim_const(dims, met.first);
        c->w[i + 2] = uir_dim_const(dims, met.last - met.first + 1);
        c->low[i] = uir_dim_sub(dims, c->low[i], uir_dim_const(dims, met.first * c->dilations[i]));
        c->high[i] = uir_dim_sub(dims, c->high[i], uir_dim_const(dims, (window - 1 - met.last) * c->dilations[i]));
        if (met.first == met.last) c->dilations[i] = 1;
        if (is_number(c, c->y.dims[i + 2], 1)) c->strides[i] = 1;
    }
    if (cut && c->weights.id) c->weights = uir_build_slice(c->b, c->weights, starts, c->w, steps);
    return cut;
}

/* Makes the padding around axes of one element that several windows see, or none. */
static bool pad_elements(convolution *c) {
    uir_dim zero = uir_dim_const(c->module->dims, 0), low[UIR_MAX_RANK], high[UIR_MAX_RANK];
    int64_t interior[UIR_MAX_RANK] = {0}, before, after;
    uir_dtype dtype = uir_value_type(c->module, c->image)->dtype;
    bool pads = false;
    for (uint32_t d = 0; d < c->rank; d++) low[d] = high[d] = zero;
    for (uint32_t i = 0; i < c->spatial; i++) {
        if (!is_number(c, c->x[i + 2], 1) || !uir_dim_is_const(c->module->dims, c->low[i], &before) || before < 0 ||
            !uir_dim_is_const(c->module->dims, c->high[i], &after) || after < 0 || before + after == 0)
            continue;
        if (!pads && !bears_padding(c)) return false;
        pads = true;
        low[i + 2] = c->low[i], high[i + 2] = c->high[i];
        c->low[i] = c->high[i] = zero;
        c->x[i + 2] = uir_dim_const(c->module->dims, 1 + before + after);
    }
    if (!pads) return false;
    c->image = uir_build_pad(c->b, c->image, uir_build_scalar(c->b, dtype, outside_of(c)), low, high, interior);
    return true;
}

static uir_value_id shape_convolution(void *user, uir_builder *b, const uir_node_info *node) {
    convolution c = {.module = user, .b = b};
    uir_value_id result = {0};
    if (node->op != UIR_OP_CONV && node->op != UIR_OP_WINDOW_SUM && node->op != UIR_OP_WINDOW_MAX) return result;
    read_convolution(&c, node);
    bool cut = cut_windows(&c), padded = pad_elements(&c);
    if (!cut && !padded) return result;
    uir_value_id inputs[2] = {c.image, c.weights};
    uir_attribute attributes[6] = {uir_attribute_ints(b, "strides", c.strides, c.spatial),
                                   uir_attribute_ints(b, "dilations", c.dilations, c.spatial),
                                   uir_attribute_dims(b, "low", c.low, c.spatial),
                                   uir_attribute_dims(b, "high", c.high, c.spatial)};
    uint32_t count = 4;
    if (c.weights.id) {
        attributes[count++] = uir_attribute_int(b, "groups", c.groups);
        attributes[count++] = uir_attribute_dtype(b, "to", c.y.dtype);
    } else {
        attributes[count++] = uir_attribute_dims(b, "window", c.w + 2, c.spatial);
    }
    uir_build_node(b, c.op, inputs, c.weights.id ? 2 : 1, attributes, count, &result, 1);
    return result;
}

uir_status uir_cleanup_shape_convolutions(uir_module *module, uir_pass_context *context) {
    uir_rewriter rewriter = {.rewrite = shape_convolution, .user = module};
    return uir_rewrite_nodes(module, context, &rewriter);
}
