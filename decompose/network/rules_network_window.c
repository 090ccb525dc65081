/* Windows: the attributes that convolutions and pools share, read and checked once, and the nodes made of them.
 *
 * Padding is kept as dims, since auto_pad = SAME depends on extents that may be symbolic. */
#include "decompose/network/rules_network.h"

#include <string.h>

/* SAME: ceil(in / stride) positions. The span is at least the stride minus what the last step does not reach, so the
 * total is (positions - 1) * stride + span - in where that is not negative. */
static void same_padding(uir_builder *b, uir_dim in, uir_dim span, int64_t stride, bool upper, uir_dim *out_low,
                         uir_dim *out_high) {
    uir_dims *dims = b->module->dims;
    uir_dim positions = uir_dim_ceildiv(dims, in, dim_int(b, stride));
    uir_dim total = dim_sub(b, dim_add(b, dim_times(b, dim_plus(b, positions, -1), stride), span), in);
    int64_t span_value;
    if (!uir_dim_is_const(dims, span, &span_value) || span_value < stride)
        total = uir_dim_max(dims, total, dim_int(b, 0));
    uir_dim half = dim_over(b, total, 2), rest = dim_sub(b, total, half);
    *out_low = upper ? half : rest;
    *out_high = upper ? rest : half;
}

/* What ceil_mode reads beyond `high`, so that the last, partial window is a position too; a window that would begin in
 * the padding at the end is none (as PyTorch and ONNX since opset 19 have it). */
static uir_dim ceil_padding(uir_builder *b, uir_dim in, uir_dim low, uir_dim high, uir_dim span, int64_t stride) {
    uir_dims *dims = b->module->dims;
    if (stride == 1) return high;
    uir_dim padded = dim_add(b, in, low);
    uir_dim reach = dim_sub(b, dim_add(b, padded, high), span);
    uir_dim by_reach = dim_plus(b, uir_dim_ceildiv(dims, reach, dim_int(b, stride)), 1);
    uir_dim by_start = dim_plus(b, dim_over(b, dim_plus(b, padded, -1), stride), 1);
    uir_dim positions = uir_dim_min(dims, by_reach, by_start);
    uir_dim needed = dim_sub(b, dim_add(b, dim_times(b, dim_plus(b, positions, -1), stride), span), padded);
    return uir_dim_max(dims, needed, dim_int(b, 0));
}

static bool read_kernel(uir_rule_context *context, const uir_dim *kernel, uir_window *window) {
    uir_builder *b = &context->builder;
    const int64_t *given = NULL;
    int64_t count = uir_rule_ints(context, "kernel_shape", &given);
    if (count <= 0 && !kernel) {
        (void)uir_builder_fail(b, UIR_STATUS_BAD_FILE, "attribute kernel_shape is missing");
        return false;
    }
    if (count > 0 && count != window->rank) {
        (void)uir_builder_fail(b, UIR_STATUS_BAD_FILE,
                               "attribute kernel_shape has %lld elements; the input has %u spatial axes",
                               (long long)count, window->rank);
        return false;
    }
    for (uint32_t i = 0; i < window->rank; i++) {
        int64_t known;
        if (count > 0 && (given[i] < 1 || given[i] > INT32_MAX)) {
            (void)uir_builder_fail(b, UIR_STATUS_BAD_FILE, "attribute kernel_shape holds %lld; extents are at least 1",
                                   (long long)given[i]);
            return false;
        }
        window->kernel[i] = kernel ? kernel[i] : dim_int(b, given[i]);
        if (kernel && count > 0 && uir_dim_is_const(b->module->dims, kernel[i], &known) && known != given[i]) {
            (void)uir_builder_fail(b, UIR_STATUS_BAD_FILE,
                                   "attribute kernel_shape is %lld on spatial axis %u; the weights have %lld",
                                   (long long)given[i], i, (long long)known);
            return false;
        }
        uir_dim steps = dim_plus(b, window->kernel[i], -1);
        window->span[i] = dim_plus(b, dim_times(b, steps, window->dilations[i]), 1);
    }
    return true;
}

bool uir_network_window(uir_rule_context *context, const uir_shape *input, const uir_dim *kernel,
                        uir_window *out_window) {
    static const char *const modes[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER", NULL};
    uir_builder *b = &context->builder;
    uir_window *window = out_window;
    memset(window, 0, sizeof *window);
    if (b->status != UIR_STATUS_OK) return false;
    window->rank = input->rank - 2;
    int64_t pads[2 * UIR_MAX_RANK];
    if (!uir_network_int_list(context, "strides", window->rank, 1, 1, window->strides) ||
        !uir_network_int_list(context, "dilations", window->rank, 1, 1, window->dilations) ||
        !uir_network_int_list(context, "pads", 2 * window->rank, INT32_MIN, 0, pads) ||
        !read_kernel(context, kernel, window))
        return false;
    uint32_t mode = uir_network_choice(context, "auto_pad", "NOTSET", modes);
    bool ceil_mode = uir_rule_int(context, "ceil_mode", 0) != 0;
    for (uint32_t i = 0; i < window->rank; i++) {
        uir_dim in = input->dims[i + 2];
        int64_t stride = window->strides[i];
        if (mode >= 2) {
            same_padding(b, in, window->span[i], stride, mode == 2, &window->low[i], &window->high[i]);
            window->ceil_high[i] = window->high[i];
        } else {
            window->low[i] = dim_int(b, mode == 0 ? pads[i] : 0);
            window->high[i] = dim_int(b, mode == 0 ? pads[i + window->rank] : 0);
            window->ceil_high[i] = ceil_mode
                                       ? ceil_padding(b, in, window->low[i], window->high[i], window->span[i], stride)
                                       : window->high[i];
        }
        uir_dim reach = dim_sub(b, dim_add(b, dim_add(b, in, window->low[i]), window->ceil_high[i]), window->span[i]);
        window->out[i] = uir_dim_max(b->module->dims, dim_int(b, 0), dim_plus(b, dim_over(b, reach, stride), 1));
    }
    return b->status == UIR_STATUS_OK;
}

/* Attributes of one node, in the order of its row. */
static uint32_t window_attributes(uir_builder *b, const uir_window *window, const uir_dim *low, const uir_dim *high,
                                  uir_attribute *out) {
    uint32_t n = 0;
    out[n++] = uir_attribute_ints(b, "strides", window->strides, window->rank);
    out[n++] = uir_attribute_ints(b, "dilations", window->dilations, window->rank);
    out[n++] = uir_attribute_dims(b, "low", low, window->rank);
    out[n++] = uir_attribute_dims(b, "high", high, window->rank);
    return n;
}

/* The image has `groups` times the channels of the weights. */
static void expect_channels(uir_builder *b, uir_value_id inputs[2], int64_t groups) {
    uir_dim image = uir_build_extent(b, inputs[0], 1), weights = uir_build_extent(b, inputs[1], 1);
    if (b->status != UIR_STATUS_OK) return;
    if (groups == 1 && !uir_dim_is_const(b->module->dims, weights, NULL))
        inputs[1] = uir_build_expect(b, inputs[1], 1, image);
    else
        inputs[0] = uir_build_expect(b, inputs[0], 1, dim_times(b, weights, groups));
}

uir_value_id uir_network_conv_node(uir_builder *b, uir_value_id x, uir_value_id w, int64_t groups,
                                   const uir_window *window, const uir_dim *low, const uir_dim *high, uir_dtype to) {
    uir_attribute attributes[6];
    uir_value_id inputs[2] = {x, w}, output = {0};
    expect_channels(b, inputs, groups);
    attributes[0] = uir_attribute_int(b, "groups", groups);
    uint32_t n = 1 + window_attributes(b, window, low, high, attributes + 1);
    attributes[n++] = uir_attribute_dtype(b, "to", to);
    uir_build_node(b, UIR_OP_CONV, inputs, 2, attributes, n, &output, 1);
    return output;
}

uir_value_id uir_network_window_node(uir_builder *b, uir_op op, uir_value_id x, const uir_window *window,
                                     const uir_dim *low, const uir_dim *high) {
    uir_attribute attributes[5];
    uir_value_id output = {0};
    attributes[0] = uir_attribute_dims(b, "window", window->kernel, window->rank);
    uint32_t n = 1 + window_attributes(b, window, low, high, attributes + 1);
    uir_build_node(b, op, &x, 1, attributes, n, &output, 1);
    return output;
}

uir_value_id uir_network_window_coordinates(uir_builder *b, const uir_window *window, uint32_t axis) {
    const int64_t second = 1;
    uir_value_id o = uir_network_range(b, UIR_DTYPE_I64, window->out[axis]);
    uir_value_id k = uir_network_range(b, UIR_DTYPE_I64, window->kernel[axis]);
    o = multiply(b, o, uir_build_integer_scalar(b, UIR_DTYPE_I64, window->strides[axis]));
    o = subtract(b, o, uir_network_dim_value(b, window->low[axis], UIR_DTYPE_I64));
    k = multiply(b, k, uir_build_integer_scalar(b, UIR_DTYPE_I64, window->dilations[axis]));
    return add(b, uir_build_unsqueeze(b, o, &second, 1), k);
}
