/* Sequences and optionals. Meaning: the operator documents of ONNX. */
#include "decompose/lists.h"
#include "decompose/math/rules_math.h"

static uir_value_id build(uir_rule_context *context, uir_op op, const uir_value_id *inputs, uint32_t count) {
    uir_value_id result;
    uir_build_node(&context->builder, op, inputs, count, NULL, 0, &result, 1);
    return result;
}

uir_status uir_rule_sequence_construct(uir_rule_context *context) {
    context->outputs[0] = build(context, UIR_OP_SEQUENCE_CONSTRUCT, context->inputs, context->input_count);
    return context->builder.status;
}

uir_status uir_rule_sequence_empty(uir_rule_context *context) {
    int64_t dtype = uir_rule_int(context, "dtype", UIR_DTYPE_F32);
    if (dtype <= 0 || dtype >= UIR_DTYPE_COUNT || !uir_dtype_is_valid((int)dtype))
        return uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE,
                                "attribute dtype is %lld, which is not an element type", (long long)dtype);
    context->outputs[0] = uir_list_make_empty(context, (uir_dtype)dtype, -1);
    return context->builder.status;
}

static bool check_list(uir_rule_context *context) {
    if (uir_list_is(context, uir_rule_input(context, 0))) return true;
    uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "operand 0 is not a sequence");
    return false;
}

uir_status uir_rule_sequence_at(uir_rule_context *context) {
    if (check_list(context))
        context->outputs[0] = uir_list_at(context, uir_rule_input(context, 0), uir_rule_input(context, 1));
    return context->builder.status;
}

uir_status uir_rule_sequence_erase(uir_rule_context *context) {
    if (check_list(context))
        context->outputs[0] = uir_list_erase(context, uir_rule_input(context, 0), uir_rule_input(context, 1));
    return context->builder.status;
}

uir_status uir_rule_sequence_insert(uir_rule_context *context) {
    if (check_list(context))
        context->outputs[0] = uir_list_insert(context, uir_rule_input(context, 0), uir_rule_input(context, 1),
                                              uir_rule_input(context, 2));
    return context->builder.status;
}

uir_status uir_rule_sequence_length(uir_rule_context *context) {
    if (check_list(context)) context->outputs[0] = uir_list_length(context, uir_rule_input(context, 0));
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
        outputs[1] = uir_list_insert(context, sequence, part(context, c, *start, size), (uir_value_id){0});
    }
    return uir_math_end_body(context, saved, outputs, 2);
}

enum { MAX_PARTS = 256 }; /* of one tensor, as a list of its slices; more are cut by a loop */

static uir_status split_known(uir_rule_context *context, const chunking *c, int64_t extent, int64_t size) {
    uint32_t count = (uint32_t)((extent + size - 1) / size);
    uir_value_id *parts = uir_rule_allocate(context, count + 1u, sizeof *parts);
    for (uint32_t i = 0; parts && i < count; i++) {
        int64_t start = i * size, left = extent - start;
        parts[i] = part(context, c, uir_rule_dim(context, start), uir_rule_dim(context, left < size ? left : size));
    }
    if (count && parts)
        context->outputs[0] = build(context, UIR_OP_SEQUENCE_CONSTRUCT, parts, count);
    else
        context->outputs[0] = uir_list_make_empty(context, uir_rule_dtype(context, uir_rule_input(context, 0)), -1);
    return context->builder.status;
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
    if (uir_math_is(context, *chunk, 1)) { /* the axis is the list's */
        int64_t perm[UIR_MAX_RANK];
        for (uint32_t d = 0; d < rank; d++) perm[d] = d > c.axis ? d : d ? d - 1 : c.axis;
        uir_value_id rows = uir_build_transpose(b, x, perm);
        if (!c.squeeze && rank < UIR_MAX_RANK) rows = uir_math_insert_axis(context, rows, c.axis + 1);
        if (c.squeeze || rank < UIR_MAX_RANK) {
            context->outputs[0] = uir_list_of_rows(context, rows);
            return b->status;
        }
    }
    int64_t extent, size;
    if (uir_dim_is_const(b->module->dims, extents[c.axis], &extent) &&
        uir_dim_is_const(b->module->dims, *chunk, &size) && size > 0 && (extent - 1) / size < MAX_PARTS)
        return split_known(context, &c, extent, size);
    uir_dim parts = uir_dim_ceildiv(b->module->dims, extents[c.axis], *chunk);
    uir_value_id trips = uir_build_dim_values(b, &parts, 1, true, UIR_DTYPE_I64);
    uir_value_id initial = uir_list_make_empty(context, uir_rule_dtype(context, x), -1);
    return uir_math_loop(context, trips, (uir_value_id){0}, &initial, 1, make_chunk_body, &c, context->outputs, 1);
}

typedef struct joining {
    int64_t axis;
    bool new_axis;
} joining;

static uir_value_id element_at(uir_rule_context *context, const joining *j, uir_value_id position) {
    uir_value_id element = uir_list_at(context, uir_rule_input(context, 0), position);
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

/* The list's axis goes where the elements are joined, and with `new_axis` stays one. */
static uir_status join_stacked(uir_rule_context *context, uir_value_id stacked, const joining *j) {
    uir_builder *b = &context->builder;
    uint32_t rank = uir_rule_rank(context, stacked), axis = (uint32_t)j->axis, count = 0;
    int64_t perm[UIR_MAX_RANK];
    uir_dim dims[UIR_MAX_RANK];
    for (uint32_t d = 0; d < rank; d++) perm[d] = d < axis ? d + 1 : d == axis ? 0 : d;
    uir_value_id moved = uir_build_transpose(b, stacked, perm);
    const uir_dim *extents = uir_rule_extents(context, moved);
    if (!extents || j->new_axis) {
        context->outputs[0] = moved.id == stacked.id ? uir_list_rows(context, stacked) : moved;
        return b->status;
    }
    for (uint32_t d = 0; d < rank; d++) {
        if (d == axis + 1) continue;
        dims[count++] = d == axis ? uir_math_mul(context, extents[d], extents[d + 1]) : extents[d];
    }
    context->outputs[0] = uir_build_reshape(b, moved, dims, count);
    return b->status;
}

static uir_status join_known(uir_rule_context *context, const uir_value_id *elements, uint32_t count,
                             const joining *j) {
    uir_value_id *parts = uir_rule_allocate(context, count, sizeof *parts);
    for (uint32_t i = 0; parts && i < count; i++)
        parts[i] = j->new_axis ? uir_math_insert_axis(context, elements[i], (uint32_t)j->axis) : elements[i];
    if (parts) context->outputs[0] = uir_build_concat(&context->builder, parts, count, j->axis);
    return context->builder.status;
}

uir_status uir_rule_concat_from_sequence(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id sequence = uir_rule_input(context, 0), first = {0};
    joining j = {.new_axis = uir_rule_int(context, "new_axis", 0) != 0};
    uint32_t count, rank = 0;
    if (!check_list(context)) return b->status;
    const uir_value_id *elements = uir_list_elements(context, sequence, &count);
    bool stacked = uir_list_is_stacked(context, sequence);
    if (!stacked)
        first = count ? elements[0] : element_at(context, &(joining){0}, uir_build_integer_scalar(b, UIR_DTYPE_I64, 0));
    rank = uir_rule_rank(context, stacked ? sequence : first) - stacked + j.new_axis;
    j.axis = uir_rule_axis(context, uir_rule_int(context, "axis", 0), rank);
    if (b->status != UIR_STATUS_OK) return b->status;
    if (stacked) return join_stacked(context, sequence, &j);
    if (count) return join_known(context, elements, count, &j);
    if (j.new_axis) first = uir_math_insert_axis(context, first, (uint32_t)j.axis);
    uir_value_id trips = uir_math_with(context, UIR_OP_SUB, uir_list_length(context, sequence), 1);
    return uir_math_loop(context, trips, (uir_value_id){0}, &first, 1, make_join_body, &j, context->outputs, 1);
}

/* ---- optionals ---- */

uir_status uir_rule_optional(uir_rule_context *context) {
    uir_value_id held = uir_rule_input(context, 0);
    if (held.id && uir_list_is(context, held)) held = uir_list_to_sequence(context, held, -1);
    context->outputs[0] = build(context, UIR_OP_OPTIONAL, &held, held.id != 0);
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
