/* Attention (ai.onnx 23 and 24), FlexAttention, RotaryEmbedding (ai.onnx and com.microsoft).
 *
 * Scores are computed, masked and normalised in at least f32. Query heads that share a key head are laid one after the
 * other along the sequence axis, so that keys and values are never repeated in memory. */
#include "decompose/network/rules_network.h"

#include <math.h>

typedef struct attention {
    uir_value_id q, k, v; /* [B, heads, sequence, head size] each */
    uir_dim batch, heads, kv_heads, queries, keys, size, value_size;
    uir_dim past; /* keys that come from the past */
    uir_dtype real;
    bool flat; /* the inputs were [B, sequence, heads * size] */
} attention;

/* [B, S, heads * size] to [B, heads, S, size]. */
static uir_value_id split_heads(uir_rule_context *context, uir_value_id x, const uir_shape *shape, int64_t heads,
                                const char *name) {
    uir_builder *b = &context->builder;
    int64_t width;
    if (uir_dim_is_const(b->module->dims, shape->dims[2], &width) && width % heads != 0) {
        (void)uir_builder_fail(b, UIR_STATUS_BAD_FILE, "input %s's last extent (%lld) does not divide into %lld heads",
                               name, (long long)width, (long long)heads);
        return x;
    }
    uir_shape split = {4, {shape->dims[0], shape->dims[1], dim_int(b, heads), dim_over(b, shape->dims[2], heads)}};
    return uir_network_swap(b, uir_network_reshape(b, x, &split), 1, 2);
}

static bool read_operands(uir_rule_context *context, attention *a) {
    uir_builder *b = &context->builder;
    static const char *const names[3] = {"Q", "K", "V"};
    uir_value_id operands[3];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < 3; i++) {
        operands[i] = uir_rule_input(context, i);
        uir_shape shape = uir_network_shape_between(context, operands[i], names[i], i ? rank : 3, i ? rank : 4);
        if (b->status != UIR_STATUS_OK) return false;
        rank = shape.rank;
        if (rank == 4) continue;
        const char *attribute = i == 0 ? "q_num_heads" : "kv_num_heads";
        int64_t heads = uir_rule_int(context, attribute, 0);
        if (heads < 1 || heads > INT32_MAX) {
            (void)uir_builder_fail(b, UIR_STATUS_BAD_FILE, "attribute %s is missing; inputs of rank 3 need it",
                                   attribute);
            return false;
        }
        operands[i] = split_heads(context, operands[i], &shape, heads, names[i]);
    }
    a->flat = rank == 3;
    uir_dim q_size = uir_build_extent(b, operands[0], 3);
    if (!uir_network_same_extent(context, q_size, "Q's head size", uir_build_extent(b, operands[1], 3), "K's"))
        return false;
    a->q = operands[0], a->k = operands[1], a->v = operands[2];
    uir_shape q = uir_network_shape(context, a->q), k = uir_network_shape(context, a->k);
    uir_shape v = uir_network_shape(context, a->v);
    if (b->status != UIR_STATUS_OK) return false;
    a->batch = q.dims[0], a->heads = q.dims[1], a->queries = q.dims[2], a->size = q.dims[3];
    a->kv_heads = k.dims[1], a->keys = k.dims[2], a->value_size = v.dims[3];
    a->past = dim_int(b, 0);
    a->real = uir_network_working_dtype(dtype_of(b, a->q));
    return true;
}

/* The past's keys and values before the new ones; what is given out as present. */
static void join_past(uir_rule_context *context, attention *a, uir_value_id past_key, uir_value_id past_value) {
    uir_builder *b = &context->builder;
    if (!is_none(past_key)) {
        uir_shape shape = uir_network_shape_between(context, past_key, "past_key", 4, 4);
        uir_value_id parts[2] = {past_key, a->k};
        a->past = shape.dims[2];
        a->k = uir_build_concat(b, parts, 2, 2);
    }
    if (!is_none(past_value)) {
        uir_value_id parts[2] = {past_value, a->v};
        (void)uir_network_shape_between(context, past_value, "past_value", 4, 4);
        a->v = uir_build_concat(b, parts, 2, 2);
    }
    if (b->status == UIR_STATUS_OK) a->keys = uir_build_extent(b, a->k, 2);
}

/* 1 / sqrt(head size), or what the attribute says. */
static uir_value_id score_scale(uir_rule_context *context, const attention *a) {
    uir_builder *b = &context->builder;
    int64_t size;
    if (uir_node_find_attribute(context->source, context->node, "scale"))
        return uir_build_scalar(b, a->real, uir_rule_float(context, "scale", 1));
    if (uir_dim_is_const(b->module->dims, a->size, &size) && size > 0)
        return uir_build_scalar(b, a->real, 1.0 / sqrt((double)size));
    return uir_network_reciprocal(b, square_root(b, uir_network_dim_value(b, a->size, a->real)));
}

/* [B, heads, M, ..] as [B, kv_heads, heads/kv_heads * M, ..], and back. */
static uir_value_id share_heads(uir_builder *b, const attention *a, uir_value_id x, uir_dim last) {
    if (uir_dim_equal(a->heads, a->kv_heads)) return x;
    uir_dim group = uir_dim_floordiv(b->module->dims, a->heads, a->kv_heads);
    uir_shape shape = {4, {a->batch, a->kv_heads, dim_mul(b, group, a->queries), last}};
    return uir_network_reshape(b, x, &shape);
}

static uir_value_id unshare_heads(uir_builder *b, const attention *a, uir_value_id x, uir_dim last) {
    if (uir_dim_equal(a->heads, a->kv_heads)) return x;
    uir_shape shape = {4, {a->batch, a->heads, a->queries, last}};
    return uir_network_reshape(b, x, &shape);
}

/* Q K^T * scale, [B, heads, queries, keys]. */
static uir_value_id scores_of(uir_rule_context *context, const attention *a) {
    uir_builder *b = &context->builder;
    int64_t heads, kv_heads;
    if (b->status != UIR_STATUS_OK) return (uir_value_id){0};
    if (uir_dim_is_const(b->module->dims, a->heads, &heads) &&
        uir_dim_is_const(b->module->dims, a->kv_heads, &kv_heads) && (kv_heads < 1 || heads % kv_heads != 0)) {
        (void)uir_builder_fail(b, UIR_STATUS_BAD_FILE, "%lld query heads do not share %lld key heads evenly",
                               (long long)heads, (long long)kv_heads);
        return (uir_value_id){0};
    }
    uir_value_id q = multiply(b, uir_build_cast(b, a->q, a->real), score_scale(context, a));
    uir_value_id k = uir_network_swap(b, uir_build_cast(b, a->k, a->real), 2, 3);
    return unshare_heads(b, a, uir_build_matmul(b, share_heads(b, a, q, a->size), k, a->real), a->keys);
}

/* Probabilities [B, heads, queries, keys] times V, in the shape and dtype of Q. */
static uir_value_id weighted_values(uir_builder *b, const attention *a, uir_value_id weights, uir_dtype to) {
    weights = uir_build_cast(b, weights, a->real);
    uir_value_id y =
        uir_build_matmul(b, share_heads(b, a, weights, a->keys), uir_build_cast(b, a->v, a->real), a->real);
    y = uir_build_cast(b, unshare_heads(b, a, y, a->value_size), to);
    if (!a->flat) return y;
    uir_shape flat = {3, {a->batch, a->queries, dim_mul(b, a->heads, a->value_size)}};
    return uir_network_reshape(b, uir_network_swap(b, y, 1, 2), &flat);
}

static uir_value_id softmax_in(uir_rule_context *context, uir_value_id scores) {
    uir_builder *b = &context->builder;
    const int64_t last = 3;
    uir_dtype wanted =
        uir_network_working_dtype(uir_network_dtype_attribute(context, "softmax_precision", dtype_of(b, scores)));
    return uir_network_softmax(b, uir_build_cast(b, scores, wanted), &last, 1);
}

/* ---- masks ---- */

static uir_value_id keep_where(uir_builder *b, uir_value_id condition, uir_value_id scores) {
    return uir_build_select(b, condition, scores, scalar_like(b, scores, -HUGE_VAL));
}

/* attn_mask made as long as the keys: what it does not reach is masked out. */
static uir_value_id apply_mask(uir_rule_context *context, const attention *a, uir_value_id mask, uir_value_id scores) {
    uir_builder *b = &context->builder;
    if (is_none(mask)) return scores;
    uir_shape shape = uir_network_shape_between(context, mask, "attn_mask", 1, 4);
    if (b->status != UIR_STATUS_OK) return scores;
    bool is_bool = dtype_of(b, mask) == UIR_DTYPE_BOOL;
    if (!is_bool) mask = uir_build_cast(b, mask, a->real);
    uir_dim reach = shape.dims[shape.rank - 1];
    if (!uir_dim_equal(reach, a->keys)) {
        uir_dim low[4], high[4];
        int64_t interior[4] = {0};
        for (uint32_t i = 0; i < shape.rank; i++) low[i] = high[i] = dim_int(b, 0);
        high[shape.rank - 1] = dim_sub(b, a->keys, reach);
        mask = uir_build_pad(b, mask, scalar_like(b, mask, is_bool ? 0 : -HUGE_VAL), low, high, interior);
    }
    return is_bool ? keep_where(b, mask, scores) : add(b, scores, mask);
}

/* Query i sees keys up to past + i. */
static uir_value_id apply_causal(uir_rule_context *context, const attention *a, uir_value_id scores) {
    uir_builder *b = &context->builder;
    const int64_t second = 1;
    if (uir_rule_int(context, "is_causal", 0) == 0 || b->status != UIR_STATUS_OK) return scores;
    uir_value_id row = uir_build_unsqueeze(b, uir_network_range(b, UIR_DTYPE_I64, a->queries), &second, 1);
    row = add(b, row, uir_network_dim_value(b, a->past, UIR_DTYPE_I64));
    return keep_where(b, less_equal(b, uir_network_range(b, UIR_DTYPE_I64, a->keys), row), scores);
}

/* nonpad_kv_seqlen [B]: keys at and beyond it are padding. */
static uir_value_id apply_lengths(uir_rule_context *context, const attention *a, uir_value_id lengths,
                                  uir_value_id scores) {
    uir_builder *b = &context->builder;
    if (is_none(lengths)) return scores;
    (void)uir_network_shape_between(context, lengths, "nonpad_kv_seqlen", 1, 1);
    const int64_t axes[3] = {1, 2, 3};
    uir_value_id limit = uir_build_unsqueeze(b, uir_build_cast(b, lengths, UIR_DTYPE_I64), axes, 3);
    return keep_where(b, less(b, uir_network_range(b, UIR_DTYPE_I64, a->keys), limit), scores);
}

uir_status uir_rule_attention(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    attention a;
    if (!read_operands(context, &a)) return b->status;
    uir_dtype dtype = dtype_of(b, a.q);
    join_past(context, &a, uir_rule_input(context, 4), uir_rule_input(context, 5));
    uir_value_id stages[4];
    stages[0] = scores_of(context, &a);
    double cap = uir_rule_float(context, "softcap", 0);
    stages[1] = cap > 0 ? multiply_scalar(b, tangent_hyperbolic(b, divide_scalar(b, stages[0], cap)), cap) : stages[0];
    stages[2] = apply_mask(context, &a, uir_rule_input(context, 3), stages[1]);
    stages[2] = apply_causal(context, &a, stages[2]);
    stages[2] = apply_lengths(context, &a, uir_rule_input(context, 6), stages[2]);
    stages[3] = softmax_in(context, stages[2]);
    context->outputs[0] = weighted_values(b, &a, stages[3], dtype);
    if (uir_rule_has_output(context, 1)) context->outputs[1] = a.k;
    if (uir_rule_has_output(context, 2)) context->outputs[2] = a.v;
    if (!uir_rule_has_output(context, 3)) return b->status;
    int64_t mode = uir_rule_int(context, "qk_matmul_output_mode", 0);
    if (mode < 0 || mode > 3)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "attribute qk_matmul_output_mode is %lld; 0 to 3 are defined",
                                (long long)mode);
    context->outputs[3] = uir_build_cast(b, stages[mode], dtype);
    return b->status;
}

/* A modifier's subgraph over [B, heads, queries, keys], built in place. */
static uir_value_id modified(uir_rule_context *context, const char *attribute, uir_value_id x) {
    uir_value_id y = {0};
    if (!uir_node_find_attribute(context->source, context->node, attribute)) return x;
    (void)uir_rule_inline(context, attribute, &x, 1, &y, 1);
    return y;
}

uir_status uir_rule_flex_attention(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    attention a;
    if (!read_operands(context, &a)) return b->status;
    if (a.flat)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "inputs Q, K and V have rank 3; the op requires rank 4");
    uir_dtype dtype = dtype_of(b, a.q);
    uir_dtype precision = uir_network_dtype_attribute(context, "softmax_precision", a.real);
    uir_value_id scores = uir_build_cast(b, scores_of(context, &a), precision);
    scores = modified(context, "score_mod", scores);
    uir_value_id weights = modified(context, "prob_mod", uir_build_cast(b, softmax_in(context, scores), precision));
    context->outputs[0] = weighted_values(b, &a, weights, dtype);
    return b->status;
}

/* ---- rotary embedding ---- */

typedef struct rotary {
    uir_value_id x;
    uir_value_id cosines, sines; /* [B, S, half] or [S, half]... broadcast against x's halves */
    int64_t heads, width;        /* width 0: the whole head */
    bool interleaved;
} rotary;

/* Pairs (x1, x2) of the first `width` elements of each head turn to (x1*cos - x2*sin, x1*sin + x2*cos). */
static uir_value_id rotate(uir_rule_context *context, const rotary *r) {
    uir_builder *b = &context->builder;
    uir_shape given = uir_network_shape_between(context, r->x, "X", 3, 4), shape = given;
    if (b->status != UIR_STATUS_OK) return r->x;
    const int64_t head_axis = given.rank == 3 ? 2 : 1; /* [B, S, H, D] or [B, H, S, D] */
    uir_value_id x = uir_network_widen(b, r->x);
    if (given.rank == 3) {
        if (r->heads < 1 || r->heads > INT32_MAX) {
            (void)uir_builder_fail(b, UIR_STATUS_BAD_FILE,
                                   "attribute num_heads is missing; an input of rank 3 needs it");
            return r->x;
        }
        shape =
            (uir_shape){4, {given.dims[0], given.dims[1], dim_int(b, r->heads), dim_over(b, given.dims[2], r->heads)}};
        x = uir_network_reshape(b, x, &shape);
    }
    uir_value_id c = uir_build_unsqueeze(b, uir_build_cast(b, r->cosines, dtype_of(b, x)), &head_axis, 1);
    uir_value_id s = uir_build_unsqueeze(b, uir_build_cast(b, r->sines, dtype_of(b, x)), &head_axis, 1);
    uir_dim none = dim_int(b, 0), width = r->width > 0 ? dim_int(b, r->width) : shape.dims[3],
            half = dim_over(b, width, 2);
    int64_t step = r->interleaved ? 2 : 1;
    uir_value_id x1 = uir_network_slice(b, x, 3, none, half, step);
    uir_value_id x2 = uir_network_slice(b, x, 3, r->interleaved ? dim_int(b, 1) : half, half, step);
    uir_value_id parts[2] = {subtract(b, multiply(b, c, x1), multiply(b, s, x2)),
                             add(b, multiply(b, s, x1), multiply(b, c, x2))};
    uir_value_id turned;
    if (r->interleaved) {
        const int64_t last = 4;
        parts[0] = uir_build_unsqueeze(b, parts[0], &last, 1);
        parts[1] = uir_build_unsqueeze(b, parts[1], &last, 1);
        uir_shape merged = shape;
        merged.dims[3] = dim_times(b, half, 2);
        turned = uir_network_reshape(b, uir_build_concat(b, parts, 2, 4), &merged);
    } else {
        turned = uir_build_concat(b, parts, 2, 3);
    }
    if (r->width > 0 && !uir_dim_equal(width, shape.dims[3])) {
        uir_value_id both_parts[2] = {turned, uir_network_slice(b, x, 3, width, dim_sub(b, shape.dims[3], width), 1)};
        turned = uir_build_concat(b, both_parts, 2, 3);
    }
    return uir_build_cast(b, uir_network_reshape(b, turned, &given), dtype_of(b, r->x));
}

static bool read_rotary(uir_rule_context *context, rotary *r) {
    r->x = uir_rule_input(context, 0);
    r->heads = uir_rule_int(context, "num_heads", 0);
    r->width = uir_rule_int(context, "rotary_embedding_dim", 0);
    r->interleaved = uir_rule_int(context, "interleaved", 0) != 0;
    if (r->width >= 0 && r->width <= INT32_MAX && r->width % 2 == 0) return true;
    (void)uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE,
                           "attribute rotary_embedding_dim is %lld; an even number from 0 is required",
                           (long long)r->width);
    return false;
}

uir_status uir_rule_rotary_embedding(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    rotary r;
    if (!read_rotary(context, &r)) return b->status;
    r.cosines = uir_rule_input(context, 1), r.sines = uir_rule_input(context, 2);
    uir_value_id positions = uir_rule_input(context, 3);
    uint32_t rank = is_none(positions) ? 3 : 2;
    uir_shape cache = uir_network_shape_between(context, r.cosines, "cos_cache", rank, rank);
    (void)uir_network_shape_between(context, r.sines, "sin_cache", rank, rank);
    if (b->status != UIR_STATUS_OK) return b->status;
    if (!is_none(positions)) {
        uir_value_id index = uir_rule_checked_indices(context, positions, cache.dims[0]);
        r.cosines = uir_build_gather(b, r.cosines, index, 0);
        r.sines = uir_build_gather(b, r.sines, index, 0);
    }
    context->outputs[0] = rotate(context, &r);
    return b->status;
}

/* com.microsoft: inputs X, position_ids (one offset, or [B, S]), caches. */
uir_status uir_rule_ms_rotary_embedding(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    rotary r;
    if (!read_rotary(context, &r)) return b->status;
    uir_value_id positions = uir_rule_input(context, 1);
    r.cosines = uir_rule_input(context, 2), r.sines = uir_rule_input(context, 3);
    uir_shape given = uir_network_shape_between(context, r.x, "input", 3, 4);
    uir_shape index_shape = uir_network_shape_between(context, positions, "position_ids", 1, 2);
    uir_shape cache = uir_network_shape_between(context, r.cosines, "cos_cache", 2, 2);
    if (b->status != UIR_STATUS_OK) return b->status;
    if (uir_rule_int(context, "is_packed_batching", 0) != 0)
        return uir_builder_fail(b, UIR_STATUS_UNSUPPORTED, "attribute is_packed_batching is not supported");
    int64_t hidden, half;
    if (r.heads == 0 && r.width == 0 && given.rank == 3 && uir_dim_is_const(b->module->dims, given.dims[2], &hidden) &&
        uir_dim_is_const(b->module->dims, cache.dims[1], &half) && half > 0)
        r.heads = hidden / (2 * half); /* the caches tell the head's size */
    uir_dim sequence = given.rank == 3 ? given.dims[1] : given.dims[2];
    uir_value_id index = {0};
    if (index_shape.rank == 2) index = uir_rule_checked_indices(context, positions, cache.dims[0]);
    if (index_shape.rank == 1) {
        const int64_t first = 0;
        uir_rule_check_below(context, positions, positions, dim_plus(b, dim_sub(b, cache.dims[0], sequence), 1));
        index = uir_build_cast(b, positions, UIR_DTYPE_I64);
        index = add(b, uir_network_as_scalar(context, index, "position_ids"),
                    uir_network_range(b, UIR_DTYPE_I64, sequence));
        index = uir_build_unsqueeze(b, index, &first, 1);
    }
    r.cosines = uir_build_gather(b, r.cosines, index, 0);
    r.sines = uir_build_gather(b, r.sines, index, 0);
    context->outputs[0] = rotate(context, &r);
    return b->status;
}
