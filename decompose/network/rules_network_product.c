/* Products: MatMul, Gemm, MatMulInteger, QLinearMatMul and com.microsoft's MatMulNBits and FusedMatMul. All become
 * `matmul`. */
#include "decompose/network/rules_network.h"

#include <math.h>

/* a [.., M, K] by b [K, N]: one product of two matrices rather than a batch over a repeated b. */
static uir_value_id matmul_folded(uir_rule_context *context, uir_value_id a, uir_value_id b_matrix, uir_dtype to) {
    uir_builder *b = &context->builder;
    uir_shape shape = uir_network_shape(context, a), columns = uir_network_shape(context, b_matrix);
    if (b->status != UIR_STATUS_OK) return (uir_value_id){0};
    uir_shape flat = {2, {uir_network_dim_product(b, &shape, 0, shape.rank - 1), shape.dims[shape.rank - 1]}};
    uir_value_id y = uir_build_matmul(b, uir_network_reshape(b, a, &flat), b_matrix, to);
    shape.dims[shape.rank - 1] = columns.dims[1];
    return uir_network_reshape(b, y, &shape);
}

/* [.., M, N] without the axes that a vector operand got for the product. */
static uir_value_id drop_vector_axes(uir_builder *b, uir_value_id y, bool a_vector, bool b_vector) {
    int64_t axes[2], rank = rank_of(b, y);
    uint32_t count = 0;
    if (a_vector) axes[count++] = rank - 2;
    if (b_vector) axes[count++] = rank - 1;
    return count > 0 ? uir_build_squeeze(b, y, axes, count) : y;
}

uir_value_id uir_network_matmul(uir_rule_context *context, uir_value_id x, uir_value_id y, uir_dtype to) {
    uir_builder *b = &context->builder;
    uir_shape x_shape = uir_network_shape_between(context, x, "A", 1, UIR_MAX_RANK);
    uir_shape y_shape = uir_network_shape_between(context, y, "B", 1, UIR_MAX_RANK);
    if (b->status != UIR_STATUS_OK) return (uir_value_id){0};
    uir_dim rows = y_shape.dims[y_shape.rank == 1 ? 0 : y_shape.rank - 2];
    if (!uir_network_same_extent(context, x_shape.dims[x_shape.rank - 1], "A's last extent", rows, "B's rows"))
        return (uir_value_id){0};
    const int64_t first = 0, second = 1;
    if (x_shape.rank == 1) x = uir_build_unsqueeze(b, x, &first, 1);
    if (y_shape.rank == 1) y = uir_build_unsqueeze(b, y, &second, 1);
    uir_value_id product =
        rank_of(b, x) > 2 && rank_of(b, y) == 2 ? matmul_folded(context, x, y, to) : uir_build_matmul(b, x, y, to);
    return drop_vector_axes(b, product, x_shape.rank == 1, y_shape.rank == 1);
}

uir_status uir_rule_matmul(uir_rule_context *context) {
    uir_value_id a = uir_rule_input(context, 0);
    context->outputs[0] = uir_network_matmul(context, a, uir_rule_input(context, 1), dtype_of(&context->builder, a));
    return context->builder.status;
}

/* x * factor, where integers take integral factors only. */
static uir_value_id scaled(uir_rule_context *context, uir_value_id x, double factor, const char *name) {
    uir_builder *b = &context->builder;
    if (factor == 1.0) return x;
    if (!uir_dtype_is_float(dtype_of(b, x)) && factor != floor(factor)) {
        (void)uir_builder_fail(b, UIR_STATUS_UNSUPPORTED, "attribute %s is %g for an integer product; use floats", name,
                               factor);
        return x;
    }
    return multiply_scalar(b, x, factor);
}

uir_status uir_rule_gemm(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id a = uir_rule_input(context, 0), w = uir_rule_input(context, 1), c = uir_rule_input(context, 2);
    (void)uir_network_shape_between(context, a, "A", 2, 2);
    (void)uir_network_shape_between(context, w, "B", 2, 2);
    if (b->status != UIR_STATUS_OK) return b->status;
    if (uir_rule_int(context, "transA", 0)) a = uir_network_swap(b, a, 0, 1);
    if (uir_rule_int(context, "transB", 0)) w = uir_network_swap(b, w, 0, 1);
    if (!uir_network_same_extent(context, uir_build_extent(b, a, 1), "A's reduction extent", uir_build_extent(b, w, 0),
                                 "B's"))
        return b->status;
    double alpha = uir_rule_float(context, "alpha", 1), beta = uir_rule_float(context, "beta", 1);
    uir_dtype dtype = dtype_of(b, a);
    bool plain = alpha == 1 && (is_none(c) || beta == 0);
    uir_dtype to = plain ? dtype : uir_network_working_dtype(dtype);
    uir_value_id y = scaled(context, uir_build_matmul(b, a, w, to), alpha, "alpha");
    if (!is_none(c) && beta != 0) y = add(b, y, scaled(context, uir_build_cast(b, c, to), beta, "beta"));
    context->outputs[0] = uir_build_cast(b, y, dtype);
    return b->status;
}

/* ---- integer products ---- */

/* The i32 product of 8-bit integers less their zero points (none: 0). Zero points are rank 0, or shaped to broadcast
 * against [.., M, 1] (a) and [.., 1, N] (b). */
static uir_value_id network_matmul_integer(uir_rule_context *context, uir_value_id x, uir_value_id y,
                                           uir_value_id x_zero, uir_value_id y_zero) {
    uir_builder *b = &context->builder;
    uir_value_id product = uir_network_matmul(context, x, y, UIR_DTYPE_I32);
    if (b->status != UIR_STATUS_OK) return product;
    if (uir_network_is_zero(context, x_zero)) x_zero = (uir_value_id){0};
    if (uir_network_is_zero(context, y_zero)) y_zero = (uir_value_id){0};
    int64_t inner = rank_of(b, x) - 1, outer = rank_of(b, y) - 2;
    uir_value_id zx = cast_present(b, x_zero, UIR_DTYPE_I32), zy = cast_present(b, y_zero, UIR_DTYPE_I32);
    if (!is_none(y_zero))
        product = subtract(b, product, multiply(b, reduce_sum(b, uir_build_cast(b, x, UIR_DTYPE_I32), &inner, 1), zy));
    if (!is_none(x_zero))
        product = subtract(b, product, multiply(b, reduce_sum(b, uir_build_cast(b, y, UIR_DTYPE_I32), &outer, 1), zx));
    if (!is_none(x_zero) && !is_none(y_zero)) {
        uir_value_id count = uir_network_dim_value(b, uir_build_extent(b, x, (uint32_t)inner), UIR_DTYPE_I32);
        product = add(b, product, multiply(b, multiply(b, count, zx), zy));
    }
    return product;
}

/* A scale or zero point of a matrix operand as it broadcasts against the product: per row [M] becomes [M, 1]; per
 * column [N],
 * [.., M, 1] and [.., 1, N] stay; one element becomes rank 0. */
static uir_value_id operand_parameter(uir_rule_context *context, uir_value_id value, bool rows) {
    uir_builder *b = &context->builder;
    if (is_none(value)) return value;
    uir_shape shape = uir_network_shape(context, value);
    int64_t extent;
    if (b->status != UIR_STATUS_OK || shape.rank != 1) return value;
    if (uir_dim_is_const(b->module->dims, shape.dims[0], &extent) && extent == 1)
        return uir_build_reshape(b, value, NULL, 0);
    return rows ? uir_network_along(b, value, 0, 2) : value;
}

typedef struct operands {
    uir_value_id a, b;
    bool a_vector, b_vector;
} operands;

static operands as_matrices(uir_rule_context *context, uir_value_id x, uir_value_id y) {
    uir_builder *b = &context->builder;
    const int64_t first = 0, second = 1;
    operands o = {x, y, false, false};
    uir_shape x_shape = uir_network_shape_between(context, x, "A", 1, UIR_MAX_RANK);
    uir_shape y_shape = uir_network_shape_between(context, y, "B", 1, UIR_MAX_RANK);
    if (b->status != UIR_STATUS_OK) return o;
    o.a_vector = x_shape.rank == 1;
    o.b_vector = y_shape.rank == 1;
    if (o.a_vector) o.a = uir_build_unsqueeze(b, x, &first, 1);
    if (o.b_vector) o.b = uir_build_unsqueeze(b, y, &second, 1);
    return o;
}

uir_integer_weights uir_network_integer_weights(uir_rule_context *context, uir_value_id weights, uir_value_id scale,
                                                uir_value_id zero) {
    uir_builder *b = &context->builder;
    const int64_t first = 0;
    uir_integer_weights w = {.weights = weights,
                             .scale = uir_network_widen(b, operand_parameter(context, scale, false))};
    if (!uir_network_is_zero(context, zero))
        w.zero = cast_present(b, operand_parameter(context, zero, false), UIR_DTYPE_I32);
    w.sums = reduce_sum(b, uir_build_cast(b, weights, UIR_DTYPE_I32), &first, 1);
    return w;
}

uir_value_id uir_network_dynamic_product(uir_builder *b, uir_value_id x, const uir_integer_weights *w) {
    uir_value_id scale, zero, q = uir_network_quantize_dynamically(b, x, &scale, &zero);
    int64_t inner = rank_of(b, x);
    inner -= 1;
    zero = uir_build_cast(b, zero, UIR_DTYPE_I32);
    uir_value_id sums = w->sums;
    uir_value_id product = uir_build_matmul(b, q, w->weights, UIR_DTYPE_I32);
    if (!is_none(w->zero)) {
        uir_value_id count = uir_network_dim_value(b, uir_build_extent(b, x, (uint32_t)inner), UIR_DTYPE_I32);
        sums = subtract(b, sums, multiply(b, count, w->zero));
        product =
            subtract(b, product, multiply(b, reduce_sum(b, uir_build_cast(b, q, UIR_DTYPE_I32), &inner, 1), w->zero));
    }
    product = subtract(b, product, multiply(b, sums, zero));
    return multiply(b, uir_build_cast(b, product, UIR_DTYPE_F32), multiply(b, scale, w->scale));
}

uir_status uir_rule_matmul_integer(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    operands o = as_matrices(context, uir_rule_input(context, 0), uir_rule_input(context, 1));
    uir_value_id a_zero = operand_parameter(context, uir_rule_input(context, 2), true);
    uir_value_id b_zero = operand_parameter(context, uir_rule_input(context, 3), false);
    uir_value_id y = network_matmul_integer(context, o.a, o.b, a_zero, b_zero);
    context->outputs[0] = drop_vector_axes(b, y, o.a_vector, o.b_vector);
    return b->status;
}

uir_status uir_rule_qlinear_matmul(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    operands o = as_matrices(context, uir_rule_input(context, 0), uir_rule_input(context, 3));
    uir_value_id a_scale = operand_parameter(context, uir_rule_input(context, 1), true);
    uir_value_id a_zero = operand_parameter(context, uir_rule_input(context, 2), true);
    uir_value_id b_scale = operand_parameter(context, uir_rule_input(context, 4), false);
    uir_value_id b_zero = operand_parameter(context, uir_rule_input(context, 5), false);
    uir_value_id y_scale = operand_parameter(context, uir_rule_input(context, 6), true);
    uir_value_id y_zero = operand_parameter(context, uir_rule_input(context, 7), true);
    if (b->status != UIR_STATUS_OK) return b->status;
    a_scale = uir_network_widen(b, a_scale);
    b_scale = uir_network_widen(b, b_scale);
    y_scale = uir_network_widen(b, y_scale);
    uir_value_id real;
    if (uir_dtype_is_integer(dtype_of(b, o.a))) {
        uir_value_id sum = network_matmul_integer(context, o.a, o.b, a_zero, b_zero);
        uir_value_id factor = divide(b, multiply(b, a_scale, b_scale), y_scale);
        real = multiply(b, uir_build_cast(b, sum, UIR_DTYPE_F32), factor);
    } else { /* 8-bit floats: their zero points are zero */
        uir_value_id x = multiply(b, uir_build_cast(b, o.a, UIR_DTYPE_F32), a_scale);
        uir_value_id w = multiply(b, uir_build_cast(b, o.b, UIR_DTYPE_F32), b_scale);
        real = divide(b, uir_network_matmul(context, x, w, UIR_DTYPE_F32), y_scale);
    }
    uir_value_id y = uir_network_quantize(b, real, y_zero, dtype_of(b, y_zero), true);
    context->outputs[0] = drop_vector_axes(b, y, o.a_vector, o.b_vector);
    return b->status;
}

/* ---- com.microsoft ---- */

/* Bytes [.., n] to their fields of `bits` bits, lowest first, as bytes [.., n * 8/bits]. */
static uir_value_id unpack(uir_rule_context *context, uir_value_id bytes, int64_t bits) {
    uir_builder *b = &context->builder;
    if (bits == 8) return bytes;
    uir_shape shape = uir_network_shape(context, bytes);
    if (b->status != UIR_STATUS_OK || shape.rank == 0) return bytes;
    uint32_t per_byte = (uint32_t)(8 / bits);
    int64_t axis = shape.rank;
    uir_value_id parts[8];
    for (uint32_t i = 0; i < per_byte; i++) {
        uir_value_id part = bytes;
        if (i > 0)
            part = uir_build_binary(b, UIR_OP_SHIFT_RIGHT, part,
                                    uir_build_integer_scalar(b, UIR_DTYPE_U8, (int64_t)i * bits));
        if (i + 1 < per_byte)
            part = uir_build_binary(b, UIR_OP_BIT_AND, part,
                                    uir_build_integer_scalar(b, UIR_DTYPE_U8, ((int64_t)1 << bits) - 1));
        parts[i] = uir_build_unsqueeze(b, part, &axis, 1);
    }
    shape.dims[shape.rank - 1] = dim_times(b, shape.dims[shape.rank - 1], per_byte);
    return uir_network_reshape(b, uir_build_concat(b, parts, per_byte, axis), &shape);
}

/* B [N, blocks, block * bits / 8] bytes, scales [N * blocks], zero points packed like B (one per block, rows padded to
 * whole bytes) or floats [N * blocks]; absent: the middle of the range. */
uir_status uir_rule_matmul_n_bits(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    int64_t k = uir_rule_int(context, "K", 0), n = uir_rule_int(context, "N", 0);
    int64_t bits = uir_rule_int(context, "bits", 4), block = uir_rule_int(context, "block_size", 0);
    if (k < 1 || n < 1 || k > INT32_MAX || n > INT32_MAX || block < 1 || block > INT32_MAX)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "attributes K, N and block_size must be at least 1");
    if (bits != 2 && bits != 4 && bits != 8)
        return uir_builder_fail(b, UIR_STATUS_UNSUPPORTED, "attribute bits is %lld; 2, 4 and 8 are supported",
                                (long long)bits);
    if (uir_rule_has_input(context, 4))
        return uir_builder_fail(b, UIR_STATUS_UNSUPPORTED, "input g_idx (reordered groups) is not supported");
    uir_value_id a = uir_rule_input(context, 0), scales = uir_rule_input(context, 2);
    uir_value_id zero = uir_rule_input(context, 3), bias = uir_rule_input(context, 5);
    uir_dtype dtype = dtype_of(b, a);
    int64_t blocks = (k + block - 1) / block;
    uir_shape by_block = {3, {dim_int(b, n), dim_int(b, blocks), dim_int(b, block)}};
    uir_shape per_block = {3, {dim_int(b, n), dim_int(b, blocks), dim_int(b, 1)}};
    uir_shape flat = {2, {dim_int(b, n), dim_int(b, blocks * block)}};
    uir_value_id w = uir_network_reshape(b, unpack(context, uir_rule_input(context, 1), bits), &by_block);
    w = uir_build_cast(b, w, UIR_DTYPE_F32);
    if (is_none(zero)) {
        zero = uir_build_scalar(b, UIR_DTYPE_F32, (double)((int64_t)1 << (bits - 1)));
    } else if (dtype_of(b, zero) == UIR_DTYPE_U8) {
        int64_t row = (blocks * bits + 7) / 8;
        uir_shape rows = {2, {dim_int(b, n), dim_int(b, row)}};
        zero = unpack(context, uir_network_reshape(b, zero, &rows), bits);
        zero = uir_network_slice(b, zero, 1, dim_int(b, 0), dim_int(b, blocks), 1);
        zero = uir_network_reshape(b, zero, &per_block);
    } else {
        zero = uir_network_reshape(b, zero, &per_block);
    }
    w = subtract(b, w, uir_build_cast(b, zero, UIR_DTYPE_F32));
    w = multiply(b, w, uir_network_reshape(b, uir_build_cast(b, scales, UIR_DTYPE_F32), &per_block));
    w = uir_network_slice(b, uir_network_reshape(b, w, &flat), 1, dim_int(b, 0), dim_int(b, k), 1);
    uir_value_id y =
        uir_network_matmul(context, uir_build_cast(b, a, UIR_DTYPE_F32), uir_network_swap(b, w, 0, 1), UIR_DTYPE_F32);
    if (!is_none(bias)) y = add(b, y, uir_build_cast(b, bias, UIR_DTYPE_F32));
    context->outputs[0] = uir_build_cast(b, y, dtype);
    return b->status;
}

uir_status uir_rule_fused_matmul(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), y = uir_rule_input(context, 1);
    uint32_t x_rank = uir_rule_rank(context, x), y_rank = uir_rule_rank(context, y);
    if (b->status != UIR_STATUS_OK) return b->status;
    if (uir_rule_int(context, "transBatchA", 0) || uir_rule_int(context, "transBatchB", 0))
        return uir_builder_fail(b, UIR_STATUS_UNSUPPORTED, "attributes transBatchA and transBatchB are not supported");
    if (uir_rule_int(context, "transA", 0) && x_rank > 1) x = uir_network_swap(b, x, x_rank - 2, x_rank - 1);
    if (uir_rule_int(context, "transB", 0) && y_rank > 1) y = uir_network_swap(b, y, y_rank - 2, y_rank - 1);
    double alpha = uir_rule_float(context, "alpha", 1);
    uir_dtype dtype = dtype_of(b, x), to = alpha == 1 ? dtype : uir_network_working_dtype(dtype);
    uir_value_id product = scaled(context, uir_network_matmul(context, x, y, to), alpha, "alpha");
    context->outputs[0] = uir_build_cast(b, product, dtype);
    return b->status;
}
