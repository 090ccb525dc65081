/* Sequences and optionals. Meaning: the operator documents of ONNX. */
#include "decompose/rules_math.h"

static uir_value_id build(uir_rule_context *context, uir_op op, const uir_value_id *inputs, uint32_t count) {
    uir_value_id result;
    uir_build_node(&context->builder, op, inputs, count, NULL, 0, &result, 1);
    return result;
}

uir_status uir_rule_sequence_construct(uir_rule_context *context) {
    context->outputs[0] = build(context, UIR_OP_SEQUENCE_CONSTRUCT, context->inputs, context->input_count);
    return context->builder.status;
}

static uir_value_id empty_sequence(uir_rule_context *context, uir_dtype dtype) {
    uir_builder *b = &context->builder;
    uir_attribute attribute = uir_attribute_dtype(b, "dtype", dtype);
    uir_value_id result;
    uir_build_node(b, UIR_OP_SEQUENCE_CONSTRUCT, NULL, 0, &attribute, 1, &result, 1);
    return result;
}

uir_status uir_rule_sequence_empty(uir_rule_context *context) {
    int64_t dtype = uir_rule_int(context, "dtype", UIR_DTYPE_F32);
    if (dtype <= 0 || dtype >= UIR_DTYPE_COUNT || !uir_dtype_is_valid((int)dtype))
        return uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE,
                                "attribute dtype is %lld, which is no element type", (long long)dtype);
    context->outputs[0] = empty_sequence(context, (uir_dtype)dtype);
    return context->builder.status;
}

/* A sequence, perhaps an element, perhaps a position (a scalar). */
static uir_status with_position(uir_rule_context *context, uir_op op, uint32_t position) {
    uir_value_id inputs[3];
    uint32_t count = uir_rule_has_input(context, position) ? position + 1 : position;
    for (uint32_t i = 0; i < count; i++) inputs[i] = uir_rule_input(context, i);
    if (count > position) inputs[position] = uir_rule_scalar(context, inputs[position]);
    context->outputs[0] = build(context, op, inputs, count);
    return context->builder.status;
}

uir_status uir_rule_sequence_at(uir_rule_context *context) {
    return with_position(context, UIR_OP_SEQUENCE_AT, 1);
}
uir_status uir_rule_sequence_erase(uir_rule_context *context) {
    return with_position(context, UIR_OP_SEQUENCE_ERASE, 1);
}
uir_status uir_rule_sequence_insert(uir_rule_context *context) {
    return with_position(context, UIR_OP_SEQUENCE_INSERT, 2);
}

uir_status uir_rule_sequence_length(uir_rule_context *context) {
    context->outputs[0] = build(context, UIR_OP_SEQUENCE_LENGTH, context->inputs, 1);
    return context->builder.status;
}

/* ---- to and from one tensor ---- */

typedef struct chunking {
    uint32_t axis;
    bool squeeze;
    uir_value_id chunk; /* extent of each part, i64 of rank 0 */
} chunking;

static uir_value_id part(uir_rule_context *context, const chunking *c, uir_dim start, uir_dim size) {
    uir_value_id piece = uir_math_cut(context, uir_rule_input(context, 0), c->axis, start, size);
    int64_t axis = c->axis;
    return c->squeeze ? uir_build_squeeze(&context->builder, piece, &axis, 1) : piece;
}

/* Appends part `iteration` to the sequence. */
static uir_status make_chunk_body(uir_rule_context *context, void *user, const uir_type *types, uint32_t type_count,
                                  uir_graph_id *out_graph) {
    const chunking *c = user;
    uir_builder saved, *b = &context->builder;
    UIR_TRY(uir_math_begin_body(context, types, type_count, out_graph, &saved));
    const uir_value_id *given = uir_graph_get(b->module, *out_graph)->inputs.data;
    uir_value_id iteration = given[0], condition = given[1], sequence = given[2];
    const uir_dim *extents = uir_rule_extents(context, uir_rule_input(context, 0));
    uint32_t count;
    const uir_dim *chunk = uir_rule_dims(context, c->chunk, 1, &count);
    uir_value_id position = uir_build_binary(b, UIR_OP_MUL, iteration, c->chunk);
    const uir_dim *start = uir_rule_dims(context, position, 0, &count);
    uir_value_id outputs[2] = {condition, {0}};
    if (b->status == UIR_STATUS_OK) {
        uir_dim left = uir_math_sub(context, extents[c->axis], *start);
        uir_dim size = c->squeeze ? uir_rule_dim(context, 1) : uir_dim_min(b->module->dims, *chunk, left);
        uir_value_id pair[] = {sequence, part(context, c, *start, size)};
        outputs[1] = build(context, UIR_OP_SEQUENCE_INSERT, pair, 2);
    }
    return uir_math_end_body(context, saved, outputs, 2);
}

uir_status uir_rule_split_to_sequence(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0), split = uir_rule_input(context, 1);
    uint32_t rank = uir_rule_rank(context, x), count;
    const uir_dim *extents = uir_rule_extents(context, x);
    chunking c = {.axis = (uint32_t)uir_rule_axis(context, uir_rule_int(context, "axis", 0), rank)};
    c.squeeze = !split.id && !uir_rule_int(context, "keepdims", 1);
    if (b->status != UIR_STATUS_OK) return b->status;
    if (split.id && uir_rule_rank(context, split) == 1) {
        const uir_dim *sizes = uir_rule_dims(context, split, 0, &count);
        uir_value_id *parts = uir_rule_allocate(context, count + 1u, sizeof *parts);
        uir_dim start = uir_rule_dim(context, 0);
        for (uint32_t i = 0; parts && sizes && i < count; i++) {
            parts[i] = part(context, &c, start, sizes[i]);
            start = uir_math_add(context, start, sizes[i]);
        }
        context->outputs[0] = build(context, UIR_OP_SEQUENCE_CONSTRUCT, parts, count);
        return b->status;
    }
    c.chunk = split.id ? uir_build_cast(b, split, UIR_DTYPE_I64) : uir_build_integer_scalar(b, UIR_DTYPE_I64, 1);
    const uir_dim *chunk = uir_rule_dims(context, c.chunk, 1, &count);
    if (!chunk) return b->status;
    uir_dim parts = uir_dim_ceildiv(b->module->dims, extents[c.axis], *chunk);
    uir_value_id trips = uir_build_dim_values(b, &parts, 1, true, UIR_DTYPE_I64);
    uir_value_id initial = empty_sequence(context, uir_rule_dtype(context, x));
    return uir_math_loop(context, trips, (uir_value_id){0}, &initial, 1, make_chunk_body, &c, context->outputs, 1);
}

typedef struct joining {
    int64_t axis;
    bool new_axis;
} joining;

static uir_value_id element_at(uir_rule_context *context, const joining *j, uir_value_id position) {
    uir_value_id pair[] = {uir_rule_input(context, 0), position};
    uir_value_id element = build(context, UIR_OP_SEQUENCE_AT, pair, 2);
    return j->new_axis ? uir_math_insert_axis(context, element, (uint32_t)j->axis) : element;
}

static uir_status make_join_body(uir_rule_context *context, void *user, const uir_type *types, uint32_t type_count,
                                 uir_graph_id *out_graph) {
    uir_builder saved, *b = &context->builder;
    UIR_TRY(uir_math_begin_body(context, types, type_count, out_graph, &saved));
    const uir_value_id *given = uir_graph_get(b->module, *out_graph)->inputs.data;
    uir_value_id iteration = given[0], outputs[2] = {given[1], given[2]};
    const joining *j = user;
    uir_value_id pair[] = {outputs[1], element_at(context, j, uir_math_with(context, UIR_OP_ADD, iteration, 1))};
    outputs[1] = uir_build_concat(b, pair, 2, j->axis);
    return uir_math_end_body(context, saved, outputs, 2);
}

/* The operands of the node that made the sequence, when it is at hand. */
static const uir_node_info *maker_of(uir_rule_context *context, uir_value_id sequence) {
    const uir_value_info *info = uir_value_info_get(context->builder.module, sequence);
    if (!info->producer.id) return NULL;
    const uir_node_info *node = uir_node_get(context->builder.module, info->producer);
    return node->op == UIR_OP_SEQUENCE_CONSTRUCT && node->input_count ? node : NULL;
}

uir_status uir_rule_concat_from_sequence(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id sequence = uir_rule_input(context, 0);
    joining j = {.new_axis = uir_rule_int(context, "new_axis", 0) != 0};
    const uir_node_info *maker = maker_of(context, sequence);
    uir_value_id first;
    if (maker)
        first = maker->inputs[0];
    else
        first = element_at(context, &(joining){0}, uir_build_integer_scalar(b, UIR_DTYPE_I64, 0));
    uint32_t rank = uir_rule_rank(context, first) + j.new_axis;
    j.axis = uir_rule_axis(context, uir_rule_int(context, "axis", 0), rank);
    if (b->status != UIR_STATUS_OK) return b->status;
    if (maker) {
        uint32_t count = maker->input_count;
        uir_value_id *parts = uir_rule_allocate(context, count, sizeof *parts);
        const uir_value_id *elements = maker->inputs; /* in the arena: stays where it is */
        for (uint32_t i = 0; parts && i < count; i++)
            parts[i] = j.new_axis ? uir_math_insert_axis(context, elements[i], (uint32_t)j.axis) : elements[i];
        context->outputs[0] = uir_build_concat(b, parts, count, j.axis);
        return b->status;
    }
    if (j.new_axis) first = uir_math_insert_axis(context, first, (uint32_t)j.axis);
    uir_value_id trips = build(context, UIR_OP_SEQUENCE_LENGTH, &sequence, 1);
    trips = uir_math_with(context, UIR_OP_SUB, trips, 1);
    return uir_math_loop(context, trips, (uir_value_id){0}, &first, 1, make_join_body, &j, context->outputs, 1);
}

/* ---- optionals ---- */

uir_status uir_rule_optional(uir_rule_context *context) {
    context->outputs[0] = build(context, UIR_OP_OPTIONAL, context->inputs, uir_rule_has_input(context, 0));
    return context->builder.status;
}

uir_status uir_rule_optional_has_element(uir_rule_context *context) {
    context->outputs[0] = build(context, UIR_OP_OPTIONAL_HAS_ELEMENT, context->inputs, uir_rule_has_input(context, 0));
    return context->builder.status;
}

/* What an optional holds is not part of its type here; the model declares what comes out. */
uir_status uir_rule_optional_get_element(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id x = uir_rule_input(context, 0);
    bool sequence = uir_value_type(context->source, context->node->outputs[0])->kind == UIR_VALUE_SEQUENCE;
    if (uir_rule_type(context, x)->kind != UIR_VALUE_OPTIONAL) {
        context->outputs[0] = x;
        return b->status;
    }
    uir_attribute attribute = uir_attribute_int(b, "sequence", 1);
    uir_build_node(b, UIR_OP_OPTIONAL_GET_ELEMENT, &x, 1, &attribute, sequence, context->outputs, 1);
    return b->status;
}
