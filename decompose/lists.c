#include "decompose/lists.h"
#include "decompose/math/rules_math.h"

#include <string.h>

/* A longer list is no known one: each insertion copies all of it. */
enum { MAX_KNOWN = 1024 };

/* ---- forms ---- */

static uir_list_form form_of(const uir_rule_context *context, uir_value_id value) {
    const uir_decomposer *d = context->decomposer;
    if (!value.id) return UIR_LIST_NONE;
    if (value.id < d->forms.count && d->forms.data[value.id]) return d->forms.data[value.id];
    return uir_rule_type(context, value)->kind == UIR_VALUE_SEQUENCE ? UIR_LIST_SEQUENCE : UIR_LIST_NONE;
}

void uir_list_mark(uir_rule_context *context, uir_value_id value, uir_list_form form) {
    uir_decomposer *d = context->decomposer;
    while (value.id && d->forms.count <= value.id && context->builder.status == UIR_STATUS_OK)
        context->builder.status = uir_vector_push(d->scratch, &d->forms, UIR_LIST_NONE);
    if (value.id && context->builder.status == UIR_STATUS_OK) d->forms.data[value.id] = form;
}

bool uir_list_is(const uir_rule_context *context, uir_value_id value) {
    return form_of(context, value) != UIR_LIST_NONE;
}

bool uir_list_is_stacked(const uir_rule_context *context, uir_value_id value) {
    return form_of(context, value) == UIR_LIST_STACKED;
}

const uir_value_id *uir_list_elements(const uir_rule_context *context, uir_value_id value, uint32_t *out_count) {
    static const uir_value_id none[1];
    uir_list_form form = form_of(context, value);
    *out_count = 0;
    if (form == UIR_LIST_HOLLOW) return none;
    if (form != UIR_LIST_SEQUENCE) return NULL;
    const uir_module *m = context->builder.module;
    const uir_value_info *info = uir_value_info_get(m, value);
    if (!info->producer.id) return NULL;
    const uir_node_info *node = uir_node_get(m, info->producer);
    if (node->op != UIR_OP_SEQUENCE_CONSTRUCT) return NULL;
    *out_count = node->input_count;
    return node->input_count ? node->inputs : none;
}

bool uir_list_is_hollow(const uir_rule_context *context, uir_value_id value) {
    uint32_t count;
    return uir_list_elements(context, value, &count) && !count;
}

static bool types_agree(const uir_rule_context *context, const uir_type *a, const uir_type *b) {
    if (a->kind != UIR_VALUE_TENSOR || b->kind != UIR_VALUE_TENSOR || !a->dtype || a->dtype != b->dtype) return false;
    if (!a->rank_known || !b->rank_known || a->rank != b->rank || a->dtype == UIR_DTYPE_STRING) return false;
    for (uint32_t d = 0; d < a->rank; d++)
        if (uir_dim_compare(context->builder.module->dims, a->dims[d], UIR_RELATION_EQ, b->dims[d]) != UIR_TRUE)
            return false;
    return true;
}

bool uir_list_has_type(const uir_rule_context *context, uir_value_id value, const uir_type *element) {
    uint32_t count;
    if (element->rank >= UIR_MAX_RANK) return false;
    if (uir_list_is_stacked(context, value)) {
        uir_type own;
        return uir_list_find_type(context, value, &own) && types_agree(context, &own, element);
    }
    const uir_value_id *elements = uir_list_elements(context, value, &count);
    for (uint32_t i = 0; elements && i < count; i++)
        if (!types_agree(context, uir_rule_type(context, elements[i]), element)) return false;
    return elements != NULL;
}

bool uir_list_find_type(const uir_rule_context *context, uir_value_id value, uir_type *out_element) {
    uint32_t count;
    if (uir_list_is_stacked(context, value)) {
        *out_element = *uir_rule_type(context, value);
        out_element->dims++;
        out_element->rank--;
        return true;
    }
    const uir_value_id *elements = uir_list_elements(context, value, &count);
    if (!elements || !count) return false;
    *out_element = *uir_rule_type(context, elements[0]);
    return uir_list_has_type(context, value, out_element);
}

/* ---- from form to form ---- */

uir_value_id uir_list_make_empty(uir_rule_context *context, uir_dtype dtype, int64_t rank) {
    uir_builder *b = &context->builder;
    uir_attribute attributes[2];
    uint32_t count = 0;
    uir_value_id result;
    if (dtype) attributes[count++] = uir_attribute_dtype(b, "dtype", dtype);
    if (rank >= 0) attributes[count++] = uir_attribute_int(b, "rank", rank);
    uir_build_node(b, UIR_OP_SEQUENCE_CONSTRUCT, NULL, 0, attributes, count, &result, 1);
    return result;
}

/* The same tensor as another value, which the clean-up takes away. */
static uir_value_id make_twin(uir_rule_context *context, uir_value_id value) {
    uir_builder *b = &context->builder;
    const uir_dim *extents = uir_rule_extents(context, value);
    uir_value_id result = value;
    if (!extents) return value;
    uir_attribute attribute = uir_attribute_dims(b, "dims", extents, uir_rule_rank(context, value));
    uir_build_node(b, UIR_OP_RESHAPE, &value, 1, &attribute, 1, &result, 1);
    return result;
}

uir_value_id uir_list_of_rows(uir_rule_context *context, uir_value_id tensor) {
    uir_value_id twin = make_twin(context, tensor);
    uir_list_mark(context, twin, UIR_LIST_STACKED);
    return twin;
}

uir_value_id uir_list_rows(uir_rule_context *context, uir_value_id stacked) {
    return make_twin(context, stacked);
}

/* [0, dims]: nothing of it is ever read. */
static uir_value_id stack_nothing(uir_rule_context *context, const uir_type *element) {
    uir_builder *b = &context->builder;
    uir_dim dims[UIR_MAX_RANK] = {uir_rule_dim(context, 0)};
    uir_value_id zero = uir_build_scalar(b, element->dtype, 0);
    for (uint32_t d = 0; d < element->rank; d++) dims[d + 1] = element->dims[d];
    return uir_build_broadcast(b, zero, dims, element->rank + 1);
}

uir_value_id uir_list_stack(uir_rule_context *context, uir_value_id value, const uir_type *element) {
    uint32_t count;
    uir_value_id result;
    if (uir_list_is_stacked(context, value) || context->builder.status != UIR_STATUS_OK) return value;
    const uir_value_id *elements = uir_list_elements(context, value, &count);
    if (count) {
        uir_value_id *parts = uir_rule_allocate(context, count, sizeof *parts);
        for (uint32_t i = 0; parts && i < count; i++) parts[i] = uir_math_insert_axis(context, elements[i], 0);
        result = count == 1 && parts ? parts[0] : parts ? uir_build_concat(&context->builder, parts, count, 0) : value;
    } else {
        result = stack_nothing(context, element);
    }
    uir_list_mark(context, result, UIR_LIST_STACKED);
    return result;
}

/* Appends row `iteration` of the stacked list to the sequence. */
static uir_status make_row_body(uir_rule_context *context, void *user, const uir_type *types, uint32_t type_count,
                                uir_graph_id *out_graph) {
    const uir_value_id *stacked = user;
    uir_builder saved, *b = &context->builder;
    UIR_TRY(uir_math_begin_body(context, types, type_count, out_graph, &saved));
    const uir_value_id *given = uir_graph_get(b->module, *out_graph)->inputs.data;
    uir_value_id iteration = given[0], outputs[2] = {given[1], given[2]};
    uir_value_id pair[] = {outputs[1], uir_build_gather(b, *stacked, iteration, 0)};
    uir_build_node(b, UIR_OP_SEQUENCE_INSERT, pair, 2, NULL, 0, &outputs[1], 1);
    return uir_math_end_body(context, saved, outputs, 2);
}

uir_value_id uir_list_to_sequence(uir_rule_context *context, uir_value_id value, int64_t rank) {
    uir_builder *b = &context->builder;
    if (b->status != UIR_STATUS_OK) return value;
    const uir_type *type = uir_rule_type(context, value);
    if (uir_list_is_hollow(context, value)) return uir_list_make_empty(context, type->dtype, rank);
    if (!uir_list_is_stacked(context, value)) return value;
    uir_value_id result = {0}, empty = uir_list_make_empty(context, type->dtype, (int64_t)type->rank - 1);
    uir_value_id trips = uir_build_dim_values(b, type->dims, 1, true, UIR_DTYPE_I64);
    if (b->status != UIR_STATUS_OK) return value;
    bool saved = context->decomposer->keeps_sequences;
    context->decomposer->keeps_sequences = true;
    (void)!uir_math_loop(context, trips, (uir_value_id){0}, &empty, 1, make_row_body, &value, &result, 1);
    context->decomposer->keeps_sequences = saved;
    return result;
}

uir_value_id uir_list_stack_output(uir_rule_context *context, uir_value_id value, const void *element) {
    return uir_list_stack(context, value, element);
}

uir_value_id uir_list_sequence_output(uir_rule_context *context, uir_value_id value, const void *rank) {
    return uir_list_to_sequence(context, value, *(const int64_t *)rank);
}

/* ---- positions ---- */

/* Where a constant position lies among `count` places; false when it is not constant or not among them. */
static bool known_position(uir_rule_context *context, uir_value_id position, int64_t count, int64_t *out_position) {
    const int64_t *given;
    uint32_t given_count;
    if (!uir_rule_constant_integers(context, position, &given, &given_count) || given_count != 1) return false;
    *out_position = given[0];
    return *out_position >= 0 && *out_position < count;
}

/* The same for a position that may count from the end of a list of `length`. */
static bool known_place(uir_rule_context *context, uir_value_id position, int64_t length, bool past_end,
                        int64_t *out_position) {
    const int64_t *given;
    uint32_t count;
    if (!uir_rule_constant_integers(context, position, &given, &count) || count != 1) return false;
    *out_position = given[0] < 0 ? given[0] + length : given[0];
    return *out_position >= 0 && *out_position < length + past_end;
}

/* A position in a stacked list as a dim of 0 and more; a negative one counts from the end. */
static uir_dim place_as_dim(uir_rule_context *context, uir_value_id position, uir_dim length) {
    uint32_t count;
    int64_t known;
    if (known_position(context, position, INT64_MAX, &known)) return uir_rule_dim(context, known);
    uir_value_id place = uir_rule_indices(context, uir_rule_scalar(context, position), length);
    const uir_dim *dims = uir_rule_dims(context, place, 0, &count);
    return dims ? dims[0] : uir_rule_dim(context, 0);
}

static uir_value_id build(uir_rule_context *context, uir_op op, const uir_value_id *inputs, uint32_t count) {
    uir_value_id result;
    uir_build_node(&context->builder, op, inputs, count, NULL, 0, &result, 1);
    return result;
}

/* ---- the ops ---- */

uir_value_id uir_list_at(uir_rule_context *context, uir_value_id list, uir_value_id position) {
    uint32_t count;
    int64_t place;
    uir_type element;
    const uir_value_id *elements = uir_list_elements(context, list, &count);
    if (elements && known_place(context, position, count, false, &place)) return elements[place];
    if (uir_list_find_type(context, list, &element)) {
        uir_value_id stacked = uir_list_stack(context, list, &element);
        uir_dim length = uir_build_extent(&context->builder, stacked, 0);
        if (context->builder.status != UIR_STATUS_OK) return list;
        uir_value_id index = uir_rule_checked_indices(context, uir_rule_scalar(context, position), length);
        return uir_build_gather(&context->builder, stacked, index, 0);
    }
    uir_value_id pair[] = {uir_list_to_sequence(context, list, -1), uir_rule_scalar(context, position)};
    return build(context, UIR_OP_SEQUENCE_AT, pair, 2);
}

static uir_value_id insert_known(uir_rule_context *context, const uir_value_id *elements, uint32_t count,
                                 uir_value_id element, int64_t place) {
    uir_value_id *longer = uir_rule_allocate(context, count + 1u, sizeof *longer);
    for (uint32_t i = 0; longer && i <= count; i++)
        longer[i] = i < place ? elements[i] : i == place ? element : elements[i - 1];
    return longer ? build(context, UIR_OP_SEQUENCE_CONSTRUCT, longer, count + 1) : element;
}

static uir_value_id insert_stacked(uir_rule_context *context, uir_value_id stacked, uir_value_id element,
                                   uir_value_id position) {
    uir_builder *b = &context->builder;
    uir_value_id row = uir_math_insert_axis(context, element, 0), parts[3] = {stacked, row};
    uint32_t count = 2;
    if (position.id) {
        uir_dim length = uir_build_extent(b, stacked, 0);
        if (b->status != UIR_STATUS_OK) return stacked;
        uir_dim place = place_as_dim(context, position, length), start = uir_rule_dim(context, 0);
        parts[0] = uir_math_cut(context, stacked, 0, start, place);
        parts[2] = uir_math_cut(context, stacked, 0, place, uir_math_sub(context, length, place));
        count = 3;
    }
    uir_value_id result = uir_build_concat(b, parts, count, 0);
    uir_list_mark(context, result, UIR_LIST_STACKED);
    return result;
}

uir_value_id uir_list_insert(uir_rule_context *context, uir_value_id list, uir_value_id element,
                             uir_value_id position) {
    uint32_t count;
    int64_t place;
    uir_type type = *uir_rule_type(context, element);
    const uir_value_id *elements = uir_list_elements(context, list, &count);
    place = count;
    if (elements && count < MAX_KNOWN && (!position.id || known_place(context, position, count, true, &place)) &&
        (!count || uir_rule_dtype(context, elements[0]) == type.dtype))
        return insert_known(context, elements, count, element, place);
    if (types_agree(context, &type, &type) && uir_list_has_type(context, list, &type))
        return insert_stacked(context, uir_list_stack(context, list, &type), element, position);
    uir_value_id inputs[] = {uir_list_to_sequence(context, list, type.rank_known ? (int64_t)type.rank : -1), element,
                             position};
    if (position.id) inputs[2] = uir_rule_scalar(context, position);
    return build(context, UIR_OP_SEQUENCE_INSERT, inputs, position.id ? 3 : 2);
}

static uir_value_id erase_stacked(uir_rule_context *context, uir_value_id stacked, uir_value_id position) {
    uir_builder *b = &context->builder;
    uir_dim length = uir_build_extent(b, stacked, 0), zero = uir_rule_dim(context, 0), one = uir_rule_dim(context, 1);
    if (b->status != UIR_STATUS_OK) return stacked;
    uir_dim shorter = uir_dim_max(b->module->dims, uir_math_sub(context, length, one), zero), place = shorter;
    if (position.id) place = place_as_dim(context, position, length);
    uir_value_id parts[] = {
        uir_math_cut(context, stacked, 0, zero, place),
        uir_math_cut(context, stacked, 0, uir_math_add(context, place, one), uir_math_sub(context, shorter, place))};
    uir_value_id result = position.id ? uir_build_concat(b, parts, 2, 0) : parts[0];
    uir_list_mark(context, result, UIR_LIST_STACKED);
    return result;
}

uir_value_id uir_list_erase(uir_rule_context *context, uir_value_id list, uir_value_id position) {
    uint32_t count;
    uir_type element;
    const uir_value_id *elements = uir_list_elements(context, list, &count);
    int64_t place = (int64_t)count - 1;
    if (elements && count && (!position.id || known_place(context, position, count, false, &place))) {
        uir_value_id *shorter = uir_rule_allocate(context, count, sizeof *shorter);
        if (!shorter) return list;
        for (uint32_t i = 0; i + 1 < count; i++) shorter[i] = elements[i < place ? i : i + 1];
        return count > 1 ? build(context, UIR_OP_SEQUENCE_CONSTRUCT, shorter, count - 1)
                         : uir_list_make_empty(context, uir_rule_dtype(context, elements[0]), -1);
    }
    if (uir_list_find_type(context, list, &element))
        return erase_stacked(context, uir_list_stack(context, list, &element), position);
    uir_value_id inputs[] = {uir_list_to_sequence(context, list, -1), position};
    if (position.id) inputs[1] = uir_rule_scalar(context, position);
    return build(context, UIR_OP_SEQUENCE_ERASE, inputs, position.id ? 2 : 1);
}

uir_value_id uir_list_length(uir_rule_context *context, uir_value_id list) {
    uint32_t count;
    uir_builder *b = &context->builder;
    if (uir_list_elements(context, list, &count)) return uir_build_integer_scalar(b, UIR_DTYPE_I64, count);
    if (!uir_list_is_stacked(context, list)) return build(context, UIR_OP_SEQUENCE_LENGTH, &list, 1);
    uir_dim length = uir_build_extent(b, list, 0);
    return uir_build_dim_values(b, &length, 1, true, UIR_DTYPE_I64);
}

/* ---- lists that control flow carries ---- */

typedef struct newest {
    uint32_t first_own;
    bool found;
} newest;

static void look_at_symbol(void *user, uir_symbol symbol) {
    newest *n = user;
    n->found |= symbol.id >= n->first_own;
}

bool uir_list_type_is_older(const uir_rule_context *context, const uir_type *type, uint32_t first_own) {
    newest n = {first_own, false};
    for (uint32_t d = 0; type->rank_known && d < type->rank; d++)
        uir_dim_visit_symbols(context->builder.module->dims, type->dims[d], look_at_symbol, &n);
    return !n.found;
}

uir_list_carried uir_list_join(const uir_rule_context *context, uir_value_id a, uir_value_id b, uint32_t first_own) {
    uir_list_carried joined = {.form = UIR_LIST_SEQUENCE};
    if (uir_list_is_hollow(context, a) && uir_list_is_hollow(context, b)) return joined;
    bool found = uir_list_find_type(context, a, &joined.element) || uir_list_find_type(context, b, &joined.element);
    if (found && uir_list_has_type(context, a, &joined.element) && uir_list_has_type(context, b, &joined.element) &&
        uir_list_type_is_older(context, &joined.element, first_own))
        joined.form = UIR_LIST_STACKED;
    return joined;
}
