/* Constant factors per channel after a convolution or product (what inference BatchNorm is) move into its weights, and
 * constant shifts after one another add up:
 *
 *   conv(x, w) * a          ->  conv(x, w*a)
 *   (conv(x, w) + b) * a    ->  conv(x, w*a) + b*a
 *   (conv(x, w) + b) + c    ->  conv(x, w) + (b + c)
 *
 * The products of constants are built as nodes; folding computes them. Only where the contraction has no other user, so
 * that nothing is computed twice. */
#include "passes/tools.h"

typedef struct scaler {
    uir_module *module;
    const uir_node_info *node; /* at hand */
    uir_builder *builder;
    uir_arena *scratch;
    uint32_t *uses; /* by value; a value that takes another's place takes over its uses */
    uint32_t use_count;
    uir_vector(
        uint32_t) new_uses; /* of values made here, from use_count on; 0: it serves the one node it was made for */
} scaler;

static uint32_t uses_of(const scaler *s, uir_value_id value) {
    if (value.id < s->use_count) return s->uses[value.id];
    uint32_t index = value.id - s->use_count;
    return index < s->new_uses.count && s->new_uses.data[index] ? s->new_uses.data[index] : 1;
}

static uir_status take_over_uses(void *user, uir_value_id from, uir_value_id to) {
    scaler *s = user;
    uint32_t uses = uses_of(s, from);
    if (to.id < s->use_count) {
        s->uses[to.id] += uses;
        return UIR_STATUS_OK;
    }
    while (s->new_uses.count <= to.id - s->use_count) UIR_TRY(uir_vector_push(s->scratch, &s->new_uses, 0));
    s->new_uses.data[to.id - s->use_count] = uses;
    return UIR_STATUS_OK;
}

/* A constant, or arithmetic on constants that this pass built and folding will compute. */
static bool is_constant(const scaler *s, uir_value_id value, int depth) {
    const uir_value_info *info = uir_value_info_get(s->module, value);
    if (info->constant) return true;
    if (!info->producer.id || depth > 8) return false;
    const uir_node_info *node = uir_node_get(s->module, info->producer);
    if (node->op != UIR_OP_MUL && node->op != UIR_OP_ADD && node->op != UIR_OP_RESHAPE && node->op != UIR_OP_BROADCAST)
        return false;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (!is_constant(s, node->inputs[i], depth + 1)) return false;
    return true;
}

/* A contraction with constant weights that one node alone reads. */
typedef struct contraction {
    const uir_node_info *node;
    uir_value_id weights;  /* constant: [out, in, kernel..] or [.., k, n] */
    uint32_t axis;         /* of the result: its channels */
    uint32_t weights_axis; /* of the weights: the same channels */
} contraction;

static bool find_contraction(const scaler *s, uir_value_id value, contraction *out) {
    const uir_type *type = uir_value_type(s->module, value);
    if (uses_of(s, value) != 1 || !uir_dtype_is_float(type->dtype)) return false;
    out->node = uir_value_made_by(s->module, value, UIR_OP_CONV);
    bool conv = out->node != NULL;
    if (!conv) out->node = uir_value_made_by(s->module, value, UIR_OP_MATMUL);
    if (!out->node) return false;
    out->weights = out->node->inputs[1];
    const uir_node_info *spread = conv ? NULL : uir_value_made_by(s->module, out->weights, UIR_OP_BROADCAST);
    if (spread) out->weights = spread->inputs[0];
    const uir_type *weights = uir_value_type(s->module, out->weights);
    if (!is_constant(s, out->weights, 0) || weights->dtype != type->dtype || weights->rank < 2) return false;
    out->axis = conv ? 1 : type->rank - 1;
    out->weights_axis = conv ? 0 : weights->rank - 1;
    return true;
}

/* A constant that varies along `axis` of a rank-`rank` tensor at most: given as a rank-1 constant value, or none. */
static uir_value_id per_channel(scaler *s, uir_value_id value, uint32_t axis, uint32_t rank) {
    const uir_node_info *spread = uir_value_made_by(s->module, value, UIR_OP_BROADCAST);
    if (spread) value = spread->inputs[0];
    const uir_type *type = uir_value_type(s->module, value);
    if (!is_constant(s, value, 0) || !uir_dtype_is_float(type->dtype) || type->rank > rank) return (uir_value_id){0};
    uint32_t missing = rank - type->rank;
    int64_t extent = 1;
    for (uint32_t d = 0; d < type->rank; d++) {
        int64_t own;
        if (!uir_dim_is_const(s->module->dims, type->dims[d], &own)) return (uir_value_id){0};
        if (d + missing == axis)
            extent = own;
        else if (own != 1)
            return (uir_value_id){0};
    }
    uir_dim dim = uir_dim_const(s->module->dims, extent);
    return uir_build_reshape(s->builder, value, &dim, 1);
}

/* Rank 1 laid along an axis. */
static uir_value_id along(scaler *s, uir_value_id vector, uint32_t axis, uint32_t rank) {
    uir_dim dims[UIR_MAX_RANK];
    if (rank > UIR_MAX_RANK) return (uir_value_id){0};
    for (uint32_t d = 0; d < rank; d++) dims[d] = uir_dim_const(s->module->dims, 1);
    dims[axis] = uir_build_extent(s->builder, vector, 0);
    return uir_build_reshape(s->builder, vector, dims, rank);
}

static uir_value_id rebuild(scaler *s, const contraction *c, uir_value_id factor) {
    uir_builder *b = s->builder;
    uir_node_info node = *c->node; /* a copy: building may move the array */
    uint32_t weights_rank = uir_value_type(s->module, c->weights)->rank;
    uir_value_id weights = uir_build_binary(b, UIR_OP_MUL, c->weights, along(s, factor, c->weights_axis, weights_rank));
    uir_value_id operands[] = {node.inputs[0], weights}, result;
    uir_builder_stand_for(b, &node);
    if (node.op == UIR_OP_MATMUL)
        result = uir_build_matmul(b, node.inputs[0], weights, uir_node_dtype(s->module, &node, "to", UIR_DTYPE_F32));
    else
        uir_build_node(b, UIR_OP_CONV, operands, 2, node.attributes, node.attribute_count, &result, 1);
    uir_builder_stand_for(b, s->node);
    return result;
}

/* Splits `value` into a contraction and a constant shift per channel (none when there is none). */
static bool find_shifted(scaler *s, uir_value_id value, contraction *out, uir_value_id *out_shift) {
    *out_shift = (uir_value_id){0};
    if (find_contraction(s, value, out)) return true;
    const uir_node_info *sum = uir_value_made_by(s->module, value, UIR_OP_ADD);
    if (!sum || uses_of(s, value) != 1) return false;
    uir_value_id operands[2] = {sum->inputs[0], sum->inputs[1]};
    for (int i = 0; i < 2; i++) {
        if (!find_contraction(s, operands[i], out)) continue;
        *out_shift = per_channel(s, operands[1 - i], out->axis, uir_value_type(s->module, value)->rank);
        if (out_shift->id) return true;
    }
    return false;
}

/* The value that stands for `node`'s result, or none. */
static uir_value_id rewrite(void *user, uir_builder *b, const uir_node_info *node) {
    scaler *s = user;
    s->builder = b;
    s->node = node;
    if (node->op != UIR_OP_MUL && node->op != UIR_OP_ADD) return (uir_value_id){0};
    bool scales = node->op == UIR_OP_MUL;
    uint32_t rank = uir_value_type(s->module, node->outputs[0])->rank;
    uir_value_id operands[2] = {node->inputs[0], node->inputs[1]};
    for (int i = 0; i < 2; i++) {
        contraction c;
        uir_value_id shift;
        if (!find_shifted(s, operands[i], &c, &shift) || (!scales && !shift.id)) continue;
        uir_value_id number = per_channel(s, operands[1 - i], c.axis, rank);
        if (!number.id) continue;
        if (scales) {
            uir_value_id result = rebuild(s, &c, number);
            if (shift.id) shift = uir_build_binary(b, UIR_OP_MUL, shift, number);
            return shift.id ? uir_build_binary(b, UIR_OP_ADD, result, along(s, shift, c.axis, rank)) : result;
        }
        uir_value_id sum = uir_build_binary(b, UIR_OP_ADD, shift, number);
        return uir_build_binary(b, UIR_OP_ADD, c.node->outputs[0], along(s, sum, c.axis, rank));
    }
    return (uir_value_id){0};
}

uir_status uir_cleanup_fold_scales(uir_module *module, uir_pass_context *context) {
    scaler s = {.module = module, .scratch = context->scratch, .use_count = module->values.count};
    UIR_TRY(uir_count_uses(module, context->scratch, &s.uses));
    return uir_rewrite_nodes(module, context, &(uir_rewriter){rewrite, take_over_uses, &s});
}
