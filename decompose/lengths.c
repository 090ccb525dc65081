/* Operands that are lists of a length which the op's other operands, its attributes or the declared rank of its result
 * tell, where the model does not declare it. */
#include "decompose/decomposer.h"

static int64_t known_rank(uir_rule_context *context, uir_value_id value) {
    const uir_type *type = value.id ? uir_rule_type(context, value) : NULL;
    return type && type->rank_known ? (int64_t)type->rank : -1;
}

/* The elements of a list, where they are declared. */
static int64_t known_length(uir_rule_context *context, uir_value_id value) {
    int64_t extent;
    const uir_type *type = uir_rule_type(context, value);
    if (!type->rank_known || type->rank > 1) return -1;
    if (!type->rank) return 1;
    return uir_dim_is_const(context->builder.module->dims, type->dims[0], &extent) ? extent : -1;
}

/* Of output 0, as the model declares it. */
static int64_t declared_rank(uir_rule_context *context) {
    const uir_type *type = context->output_count && context->node->outputs[0].id
                               ? uir_value_type(context->source, context->node->outputs[0])
                               : NULL;
    return type && type->rank_known ? (int64_t)type->rank : -1;
}

static int64_t less(int64_t a, int64_t b) {
    return a >= 0 && b >= 0 && a >= b ? a - b : -1;
}

static int64_t find_one(uir_rule_context *context) {
    (void)context;
    return 1;
}

static int64_t find_any(uir_rule_context *context) {
    (void)context;
    return -1;
}

static int64_t find_rank(uir_rule_context *context) {
    return known_rank(context, uir_rule_input(context, 0));
}

static int64_t find_axes(uir_rule_context *context) {
    const int64_t *axes;
    int64_t count = uir_rule_ints(context, "axes", &axes);
    return count < 0 ? find_rank(context) : count;
}

static int64_t find_constant_axes_input(uir_rule_context *context) {
    return uir_rule_has_input(context, 3) ? known_length(context, uir_rule_input(context, 3)) : -1;
}

static int64_t find_axes_input(uir_rule_context *context) {
    return uir_rule_has_input(context, 3) ? find_constant_axes_input(context) : find_rank(context);
}

static int64_t find_outputs(uir_rule_context *context) {
    return context->output_count;
}

static int64_t find_old_scales(uir_rule_context *context) {
    return context->since_version < 11 ? find_rank(context) : -1;
}

/* Beside sizes, scales have no elements. */
static int64_t find_scales(uir_rule_context *context) {
    return uir_rule_has_input(context, 3) ? -1 : find_axes(context);
}

static int64_t find_roi(uir_rule_context *context) {
    bool wanted = uir_rule_string_is(context, "coordinate_transformation_mode", "half_pixel", "tf_crop_and_resize");
    return context->since_version >= 11 && wanted ? find_axes(context) : -1;
}

/* theta [N, axes, axes + 1]. */
static int64_t find_sizes_of_theta(uir_rule_context *context) {
    int64_t axes;
    const uir_type *type = uir_rule_type(context, uir_rule_input(context, 0));
    bool known =
        type->rank_known && type->rank == 3 && uir_dim_is_const(context->builder.module->dims, type->dims[1], &axes);
    return known ? axes + 2 : -1;
}

static int64_t find_spatial(uir_rule_context *context) {
    static const struct {
        const char *name;
        int64_t each;
    } rows[] = {{"dilations", 1}, {"strides", 1}, {"pads", 2}};
    const int64_t *values;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t count = uir_rule_ints(context, rows[i].name, &values);
        if (count >= 0) return count / rows[i].each;
    }
    for (uint32_t i = 1; i < 3; i++) {
        int64_t count = uir_rule_has_input(context, i) ? known_length(context, uir_rule_input(context, i)) : -1;
        if (count >= 0) return count;
    }
    return less(declared_rank(context), 2);
}

static int64_t find_result_rank(uir_rule_context *context) {
    return declared_rank(context);
}

static int64_t find_removed(uir_rule_context *context) {
    return less(find_rank(context), declared_rank(context));
}

static int64_t find_added(uir_rule_context *context) {
    return less(declared_rank(context), find_rank(context));
}

/* Where reduced axes stay their number does not matter; where all go there may be none, which means all. */
static int64_t find_reduced(uir_rule_context *context) {
    return uir_rule_int(context, "keepdims", 1) || !declared_rank(context) ? -1 : find_removed(context);
}

typedef struct length_row {
    uir_op op;
    uint32_t input;
    int first;
    int64_t factor;
    int64_t (*find)(uir_rule_context *context);
} length_row;

static const length_row rows[] = {
#define UIR_LENGTH(op, input, first, factor, length) {UIR_OP_ONNX_##op, input, first, factor, find_##length},
#include "decompose/lengths.def"
#undef UIR_LENGTH
};

uir_status uir_rule_expect_lengths(uir_rule_context *context, uir_value_id *inputs) {
    uir_builder *b = &context->builder;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const length_row *row = &rows[i];
        if (row->op != context->op || context->since_version < row->first || row->input >= context->input_count)
            continue;
        if (!inputs[row->input].id || known_length(context, inputs[row->input]) >= 0) continue;
        const uir_type *type = uir_rule_type(context, inputs[row->input]);
        if (!type->rank_known || type->rank != 1) continue;
        int64_t length = row->find(context);
        if (length < 0) continue;
        inputs[row->input] = uir_build_expect(b, inputs[row->input], 0, uir_rule_dim(context, length * row->factor));
        if (b->status != UIR_STATUS_OK) return b->status;
    }
    return UIR_STATUS_OK;
}

bool uir_decomposer_is_list(const uir_node_info *node, uint32_t input) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].op == node->op && rows[i].input == input && node->since_version >= rows[i].first) return true;
    return false;
}
