/* Half types compute in f32: f16 and bf16 arithmetic is done on f32 values, and a result is rounded to its half type
 * only where it is stored as such (an output, an operand of something that stays half), not between two steps of
 * arithmetic.
 *
 * Every step here alone is exact: an operation on halves is the f32 operation on the same values, rounded once. What
 * changes results (for the better) is that rounding which the model did not ask for by a Cast is left out when f32 is
 * wanted next. */
#include "passes/tools.h"

static const uir_value_id none = {0};

typedef struct widener {
    uir_module *module;
    uir_builder *builder;
} widener;

static bool is_half(uir_dtype dtype) {
    return dtype == UIR_DTYPE_F16 || dtype == UIR_DTYPE_BF16;
}

static uir_dtype dtype_of(const widener *w, uir_value_id value) {
    return value.id ? uir_value_type(w->module, value)->dtype : UIR_DTYPE_NONE;
}

/* A rounding that the model itself asks for. */
static bool is_explicit(const uir_node_info *cast) {
    return cast->origin == UIR_OP_ONNX_CAST || cast->origin == UIR_OP_ONNX_CAST_LIKE;
}

/* The f32 value that this half value is the rounding of, where the rounding was not asked for. */
static uir_value_id before_rounding(const widener *w, uir_value_id value) {
    const uir_node_info *cast = uir_value_made_by(w->module, value, UIR_OP_CAST);
    if (!cast || is_explicit(cast) || dtype_of(w, cast->inputs[0]) != UIR_DTYPE_F32) return none;
    return cast->inputs[0];
}

static uir_value_id widened(widener *w, uir_value_id value) {
    if (!is_half(dtype_of(w, value))) return value;
    uir_value_id wide = before_rounding(w, value);
    return wide.id ? wide : uir_build_cast(w->builder, value, UIR_DTYPE_F32);
}

/* The node on f32 operands, its result rounded. */
static uir_value_id rebuild(widener *w, const uir_node_info *node) {
    uir_builder *b = w->builder;
    uir_arena *arena = &w->module->arena;
    uir_dtype result_dtype = dtype_of(w, node->outputs[0]);
    uir_value_id *inputs = uir_arena_allocate_array(arena, node->input_count + 1u, sizeof *inputs), result;
    uir_attribute *attributes = uir_arena_allocate_array(arena, node->attribute_count + 1u, sizeof *attributes);
    if (!inputs || !attributes) {
        b->status = UIR_STATUS_OUT_OF_MEMORY;
        return none;
    }
    for (uint32_t i = 0; i < node->input_count; i++) inputs[i] = widened(w, node->inputs[i]);
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        attributes[i] = node->attributes[i];
        if (attributes[i].kind == UIR_ATTRIBUTE_DTYPE && is_half(attributes[i].value.dtype))
            attributes[i].value.dtype = UIR_DTYPE_F32;
    }
    uir_build_node(b, node->op, inputs, node->input_count, attributes, node->attribute_count, &result, 1);
    return dtype_of(w, result) == result_dtype ? result : uir_build_cast(b, result, result_dtype);
}

/* A movement of rounded values is the rounded movement of them; halves that come from elsewhere are moved as they are.
 */
static bool moves_rounded(const widener *w, const uir_node_info *node) {
    bool any = false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!is_half(dtype_of(w, node->inputs[i]))) continue;
        if (before_rounding(w, node->inputs[i]).id)
            any = true;
        else if (!uir_value_info_get(w->module, node->inputs[i])->constant)
            return false;
    }
    return any;
}

static bool touches_half(const widener *w, const uir_node_info *node) {
    for (uint32_t i = 0; i < node->input_count; i++)
        if (is_half(dtype_of(w, node->inputs[i]))) return true;
    return false;
}

static uir_value_id widen_node(void *user, uir_builder *builder, const uir_node_info *node) {
    (void)user;
    widener pass = {builder->module, builder}, *w = &pass;
    uint32_t traits = uir_op_get_row(node->op)->traits;
    if (!touches_half(w, node)) return none;
    if (node->op == UIR_OP_CAST) {
        uir_value_id wide = before_rounding(w, node->inputs[0]);
        uir_dtype to = dtype_of(w, node->outputs[0]);
        if (!wide.id || (to != UIR_DTYPE_F32 && to != UIR_DTYPE_F64)) return none;
        return uir_build_cast(w->builder, wide, to);
    }
    if (node->op == UIR_OP_BIT_CAST) return none;
    if (traits & UIR_TRAIT_MOVEMENT) return moves_rounded(w, node) ? rebuild(w, node) : none;
    bool computes = traits & (UIR_TRAIT_ELEMENTWISE | UIR_TRAIT_REDUCTION | UIR_TRAIT_CONTRACTION);
    return computes || node->op == UIR_OP_SCAN_SUM || node->op == UIR_OP_SCAN_PROD ? rebuild(w, node) : none;
}

uir_status uir_cleanup_widen_half(uir_module *module, uir_pass_context *context) {
    return uir_rewrite_nodes(module, context, &(uir_rewriter){.rewrite = widen_node});
}
