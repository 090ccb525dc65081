/* What a loop carries.
 *
 * A carried value whose dims change from one iteration to the next has, in the body, dims that are symbols of the body.
 * Which ones those are is found by decomposing: the body is built with the types at hand, and when it gives back other
 * ones, it is thrown away and built again with those dims made symbols. Each dim changes at most once, so this ends.
 *
 * A list that is empty at first has no type to begin with. The body is tried with it as an empty list, to see what is
 * put into it; from then on it is a stacked one (see lists.h) or a sequence, and never goes back. One that does nothing
 * but grow at its end, by an element an iteration, is not carried at all: the elements are what the loop stacks. */
#include "decompose/lists.h"
#include "decompose/math/rules_math.h"

#include <string.h>

uir_status uir_math_change_output(uir_rule_context *context, uir_graph_id graph, uint32_t index,
                                  uir_math_output_change *change, const void *user) {
    uir_builder saved = context->builder;
    context->builder.graph = graph;
    uir_value_id value = change(context, uir_graph_get(saved.module, graph)->outputs.data[index], user);
    saved.status = context->builder.status;
    context->builder = saved;
    uir_graph_get(saved.module, graph)->outputs.data[index] = value;
    return saved.status;
}

static uir_type scalar_type(uir_dtype dtype) {
    return (uir_type){.kind = UIR_VALUE_TENSOR, .dtype = dtype, .rank_known = true};
}

/* Makes `type` wide enough for `next` as well; *changed when it had to grow. Symbols from `first_own` on were made
 * here: such a dim already stands for whatever an iteration gives. */
static uir_status widen_type(uir_rule_context *context, uir_type *type, const uir_type *next, uint32_t first_own,
                             bool *changed) {
    uir_module *m = context->builder.module;
    if (!type->dtype && next->dtype) {
        type->dtype = next->dtype;
        *changed = true;
    }
    if (!type->rank_known) return UIR_STATUS_OK;
    if (!next->rank_known || next->rank != type->rank) {
        type->rank_known = false;
        *changed = true;
        return UIR_STATUS_OK;
    }
    uir_dim *dims = NULL;
    for (uint32_t i = 0; i < type->rank; i++) {
        uir_symbol symbol;
        if (uir_dim_is_symbol(m->dims, type->dims[i], &symbol) && symbol.id >= first_own) continue;
        if (uir_dim_compare(m->dims, type->dims[i], UIR_RELATION_EQ, next->dims[i]) == UIR_TRUE) continue;
        if (!dims) UIR_TRY_ALLOCATE(dims, uir_arena_copy(&m->arena, type->dims, type->rank * sizeof *dims));
        UIR_TRY(uir_dims_add_symbol(m->dims, "carried", 7, UIR_SYMBOL_FACTS_SIZE, &symbol));
        dims[i] = uir_dim_symbol(m->dims, symbol);
        if (!dims[i].id) return UIR_STATUS_OUT_OF_MEMORY;
        *changed = true;
    }
    if (dims) type->dims = dims;
    return UIR_STATUS_OK;
}

/* What a loop carries: the types in its body of the iteration, the condition and the values, and the lists among these.
 */
typedef struct carrying {
    uint32_t count;
    uir_type *types;
    uir_list_carried *lists;
    uir_list_form *forms; /* by input of the body */
    uint32_t first_own;   /* symbols from it on are made for the body */
} carrying;

static uir_status call_maker(uir_rule_context *context, uir_math_body maker, void *user, carrying *c,
                             uir_graph_id *out_graph) {
    for (uint32_t i = 0; i < c->count; i++) c->forms[i + 2] = c->lists[i].form;
    context->decomposer->input_forms = c->forms;
    uir_status status = maker(context, user, c->types, c->count + 2, out_graph);
    context->decomposer->input_forms = NULL;
    return status;
}

/* The type that a sequence has in the body when what it is given there has the type `next`: dims that are not older
 * than the body are open. */
static uir_status open_type(uir_rule_context *context, const carrying *c, const uir_type *next, uir_type *type) {
    uir_module *m = context->builder.module;
    uir_dim *dims;
    *type = *next;
    type->kind = UIR_VALUE_SEQUENCE;
    if (!next->rank_known) return UIR_STATUS_OK;
    UIR_TRY_ALLOCATE(dims, uir_arena_allocate_array(&m->arena, next->rank + 1u, sizeof *dims));
    for (uint32_t d = 0; d < next->rank; d++) {
        uir_type one = {.rank_known = true, .rank = 1, .dims = &next->dims[d]};
        uir_symbol symbol;
        dims[d] = next->dims[d];
        if (uir_list_type_is_older(context, &one, c->first_own)) continue;
        UIR_TRY(uir_dims_add_symbol(m->dims, "carried", 7, UIR_SYMBOL_FACTS_SIZE, &symbol));
        dims[d] = uir_dim_symbol(m->dims, symbol);
        if (!dims[d].id) return UIR_STATUS_OUT_OF_MEMORY;
    }
    type->dims = dims;
    return UIR_STATUS_OK;
}

static uir_status carry_stacked(uir_rule_context *context, uir_list_carried *list, const uir_type *element,
                                uir_dim length, uir_type *type) {
    uir_dim *dims;
    UIR_TRY_ALLOCATE(dims, uir_arena_allocate_array(&context->builder.module->arena, element->rank + 1u, sizeof *dims));
    dims[0] = length;
    for (uint32_t d = 0; d < element->rank; d++) dims[d + 1] = element->dims[d];
    *list = (uir_list_carried){UIR_LIST_STACKED, *element};
    *type = (uir_type){UIR_VALUE_TENSOR, element->dtype, true, element->rank + 1, dims};
    return UIR_STATUS_OK;
}

/* What a trial tells of a list that is empty at first; *changed when it tells something. */
static uir_status learn(uir_rule_context *context, carrying *c, uint32_t index, uir_value_id given, bool *changed) {
    uir_type element;
    uir_list_carried *list = &c->lists[index];
    if (!given.id || !uir_list_is(context, given) || uir_list_is_hollow(context, given)) return UIR_STATUS_OK;
    *changed = true;
    if (uir_list_find_type(context, given, &element) && element.rank < UIR_MAX_RANK &&
        uir_list_type_is_older(context, &element, c->first_own))
        return carry_stacked(context, list, &element, uir_rule_dim(context, 0), &c->types[index + 2]);
    list->form = UIR_LIST_SEQUENCE;
    element = *uir_rule_type(context, given);
    if (uir_list_is_stacked(context, given)) element.rank--, element.dims++;
    return open_type(context, c, &element, &c->types[index + 2]);
}

static bool is_fatal(uir_status status) {
    return status == UIR_STATUS_OUT_OF_MEMORY || status == UIR_STATUS_CANCELLED;
}

/* Makes the body with the lists that are empty at first as empty ones, to see what is put into them; what cannot be
 * made on that footing is passed over without a word. */
static uir_status try_body(uir_rule_context *context, uir_math_body maker, void *user, carrying *c, bool *changed) {
    uir_decomposer *d = context->decomposer;
    uir_diagnostics muted, *real = d->diagnostics, *module_real = d->target->diagnostics;
    uint32_t failures = d->failures, values = d->source->values.count + 1u;
    uir_status before = d->status;
    bool *poisoned, trial = d->is_trial;
    uir_graph_id graph = {0};
    UIR_TRY_ALLOCATE(poisoned, uir_arena_copy(d->scratch, d->poisoned, values * sizeof *poisoned));
    uir_diagnostics_init(&muted, &d->scratch->allocator);
    d->diagnostics = d->target->diagnostics = &muted;
    d->is_trial = true;
    uir_status status = call_maker(context, maker, user, c, &graph);
    d->is_trial = trial;
    d->diagnostics = real;
    d->target->diagnostics = module_real;
    uir_diagnostics_deinit(&muted);
    d->failures = failures;
    d->status = before;
    d->quiet = d->split = false;
    context->builder.status = UIR_STATUS_OK;
    memcpy(d->poisoned, poisoned, values * sizeof *poisoned);
    if (is_fatal(status)) return status;
    for (uint32_t i = 0; i < c->count && status == UIR_STATUS_OK; i++) {
        const uir_graph_info *body = uir_graph_get(context->builder.module, graph);
        if (c->lists[i].form == UIR_LIST_HOLLOW && i + 1 < body->outputs.count)
            status = learn(context, c, i, body->outputs.data[i + 1], changed);
    }
    if (graph.id) uir_decomposer_discard(d, graph);
    return is_fatal(status) ? status : UIR_STATUS_OK;
}

/* Lists of which nothing is known at first get a type; one in which nothing is put is a sequence. */
static uir_status find_list_types(uir_rule_context *context, uir_math_body maker, void *user, carrying *c) {
    bool more = true;
    while (more) {
        more = false;
        bool hollow = false;
        for (uint32_t i = 0; i < c->count; i++) hollow |= c->lists[i].form == UIR_LIST_HOLLOW;
        if (hollow) UIR_TRY(try_body(context, maker, user, c, &more));
    }
    for (uint32_t i = 0; i < c->count; i++)
        if (c->lists[i].form == UIR_LIST_HOLLOW) c->lists[i].form = UIR_LIST_SEQUENCE;
    return UIR_STATUS_OK;
}

/* The list that a body gives back in the form that it takes it in; *changed when that form has to be another. */
static uir_status settle_list(uir_rule_context *context, carrying *c, uint32_t index, uir_graph_id body,
                              bool *changed) {
    uir_list_carried *list = &c->lists[index];
    uir_type *type = &c->types[index + 2];
    uir_value_id given = uir_graph_get(context->builder.module, body)->outputs.data[index + 1];
    bool is_list = uir_list_is(context, given);
    if (list->form == UIR_LIST_NONE && !uir_list_is_stacked(context, given)) return UIR_STATUS_OK;
    if (is_list != (list->form != UIR_LIST_NONE))
        return uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE,
                                "carried value %u is %s at first and %s in the body", index,
                                is_list ? "a tensor" : "a sequence", is_list ? "a sequence" : "a tensor");
    if (list->form == UIR_LIST_STACKED) {
        if (uir_list_has_type(context, given, &list->element))
            return uir_math_change_output(context, body, index + 1, uir_list_stack_output, &list->element);
        uir_type was = list->element;
        was.kind = UIR_VALUE_SEQUENCE;
        list->form = UIR_LIST_SEQUENCE;
        *changed = true;
        UIR_TRY(open_type(context, c, &was, type));
    }
    int64_t rank = type->rank_known ? (int64_t)type->rank : -1;
    return uir_math_change_output(context, body, index + 1, uir_list_sequence_output, &rank);
}

static uir_status make_body(uir_rule_context *context, uir_math_body maker, void *user, carrying *c,
                            uir_graph_id *out_graph) {
    uir_module *m = context->builder.module;
    c->first_own = uir_dims_symbol_count(m->dims);
    UIR_TRY(find_list_types(context, maker, user, c));
    for (;;) {
        UIR_TRY(call_maker(context, maker, user, c, out_graph));
        if (uir_graph_get(m, *out_graph)->outputs.count < c->count + 1)
            return uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE,
                                    "the body returns %u values; the condition and %u carried values are required",
                                    uir_graph_get(m, *out_graph)->outputs.count, c->count);
        bool changed = false;
        for (uint32_t i = 0; i < uir_graph_get(m, *out_graph)->outputs.count; i++)
            if (!uir_graph_get(m, *out_graph)->outputs.data[i].id) /* in a trial around this one */
                return uir_builder_fail(&context->builder, UIR_STATUS_UNSUPPORTED, "the body lacks a value");
        for (uint32_t i = 0; i < c->count; i++) {
            UIR_TRY(settle_list(context, c, i, *out_graph, &changed));
            uir_value_id given = uir_graph_get(m, *out_graph)->outputs.data[i + 1];
            uir_type next = *uir_value_type(m, given);
            UIR_TRY(widen_type(context, &c->types[i + 2], &next, c->first_own, &changed));
        }
        if (!changed) return UIR_STATUS_OK;
        uir_decomposer_discard(context->decomposer, *out_graph);
    }
}

/* How a value goes into a body that takes it in the given form. */
static uir_value_id enter(uir_rule_context *context, const carrying *c, uint32_t index, uir_value_id initial) {
    const uir_type *type = &c->types[index + 2];
    if (c->lists[index].form == UIR_LIST_STACKED) return uir_list_stack(context, initial, &c->lists[index].element);
    if (c->lists[index].form != UIR_LIST_SEQUENCE) return initial;
    return uir_list_to_sequence(context, initial, type->rank_known ? (int64_t)type->rank : -1);
}

/* The form in which a list is carried, as far as its first value tells. */
static uir_status begin_list(uir_rule_context *context, carrying *c, uint32_t index, uir_value_id initial) {
    uir_type element;
    uir_list_carried *list = &c->lists[index];
    uint32_t count;
    *list = (uir_list_carried){.form = UIR_LIST_NONE};
    if (!uir_list_is(context, initial)) return UIR_STATUS_OK;
    list->form = uir_list_is_hollow(context, initial) ? UIR_LIST_HOLLOW : UIR_LIST_SEQUENCE;
    if (!uir_list_find_type(context, initial, &element) || element.rank >= UIR_MAX_RANK) return UIR_STATUS_OK;
    bool known = uir_list_elements(context, initial, &count) != NULL;
    uir_dim length = known ? uir_rule_dim(context, count) : uir_rule_type(context, initial)->dims[0];
    return carry_stacked(context, list, &element, length, &c->types[index + 2]);
}

/* When nothing but the count ends the loop, the first dim of what it stacks is that count. */
static void refine_counts(uir_rule_context *context, uir_value_id trips, uir_value_id condition, uir_graph_id body,
                          const uir_value_id *stacked, uint32_t stacked_count) {
    uir_builder *b = &context->builder;
    const uir_graph_info *graph = uir_graph_get(b->module, body);
    double known;
    bool endless = !condition.id || (uir_rule_constant_number(context, condition, &known) && known);
    uir_value_id next = graph->outputs.data[0];
    if (next.id != graph->inputs.data[1].id && !(uir_rule_constant_number(context, next, &known) && known)) return;
    if (b->status != UIR_STATUS_OK || !endless || !trips.id) return;
    const uir_value_info *count = uir_value_info_get(b->module, trips);
    if (!count->elements_known || count->element_count != 1) return;
    uir_dim trip_count = uir_dim_max(b->module->dims, count->elements[0], uir_rule_dim(context, 0));
    for (uint32_t i = 0; i < stacked_count && trip_count.id; i++) {
        const uir_type *type = uir_value_type(b->module, stacked[i]);
        if (!type->rank_known || !type->rank) continue;
        uir_dim *dims = uir_arena_copy(&b->module->arena, type->dims, type->rank * sizeof *dims);
        if (!dims) return;
        dims[0] = trip_count;
        uir_value_info_get(b->module, stacked[i])->type.dims = dims;
    }
}

/* ---- lists that only grow ---- */

static uint32_t count_uses(const uir_module *m, uir_graph_id graph, uir_value_id value) {
    const uir_graph_info *info = uir_graph_get(m, graph);
    uint32_t count = 0;
    for (uint32_t i = 0; i < info->outputs.count; i++) count += info->outputs.data[i].id == value.id;
    for (uint32_t n = 0; n < info->nodes.count; n++) {
        const uir_node_info *node = uir_node_get(m, info->nodes.data[n]);
        for (uint32_t i = 0; i < node->input_count; i++) count += node->inputs[i].id == value.id;
        for (uint32_t a = 0; a < node->attribute_count; a++)
            if (node->attributes[a].kind == UIR_ATTRIBUTE_GRAPH)
                count += count_uses(m, node->attributes[a].value.graph, value);
    }
    return count;
}

/* Whether anything in the body but the two values has a size that depends on the symbol. */
typedef struct size_use {
    const uir_module *module;
    uir_symbol symbol;
    bool found;
} size_use;

static void meet_symbol(void *user, uir_symbol symbol) {
    size_use *use = user;
    use->found |= symbol.id == use->symbol.id;
}

static void look_at_dims(size_use *use, const uir_dim *dims, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) uir_dim_visit_symbols(use->module->dims, dims[i], meet_symbol, use);
}

static void look_at_value(size_use *use, uir_value_id value) {
    const uir_value_info *info = uir_value_info_get(use->module, value);
    if (info->type.rank_known) look_at_dims(use, info->type.dims, info->type.rank);
    if (info->elements_known) look_at_dims(use, info->elements, info->element_count);
}

static void look_for_size(size_use *use, uir_graph_id graph, uir_value_id but, uir_value_id but_also) {
    const uir_graph_info *info = uir_graph_get(use->module, graph);
    for (uint32_t i = 0; i < info->inputs.count; i++)
        if (info->inputs.data[i].id != but.id) look_at_value(use, info->inputs.data[i]);
    for (uint32_t n = 0; n < info->nodes.count && !use->found; n++) {
        const uir_node_info *node = uir_node_get(use->module, info->nodes.data[n]);
        for (uint32_t i = 0; i < node->output_count; i++)
            if (node->outputs[i].id && node->outputs[i].id != but_also.id) look_at_value(use, node->outputs[i]);
        for (uint32_t a = 0; a < node->attribute_count; a++) {
            const uir_attribute *attribute = &node->attributes[a];
            if (attribute->kind == UIR_ATTRIBUTE_DIMS) look_at_dims(use, attribute->value.dims, attribute->count);
            if (attribute->kind == UIR_ATTRIBUTE_GRAPH) look_for_size(use, attribute->value.graph, but, but_also);
        }
    }
}

static bool is_in(const uir_graph_info *graph, uir_node_id node) {
    for (uint32_t n = graph->nodes.count; n-- > 0;)
        if (graph->nodes.data[n].id == node.id) return true;
    return false;
}

/* What the body puts at the end of carried list `index`, [1, element]; none when it does more to it than that.
 * *out_joint is the node that puts it there. */
static uir_value_id find_appended(uir_rule_context *context, const carrying *c, uint32_t index, uint32_t input,
                                  uir_graph_id body, uir_node_id *out_joint) {
    const uir_module *m = context->builder.module;
    const uir_graph_info *graph = uir_graph_get(m, body);
    uir_value_id taken = graph->inputs.data[input], given = graph->outputs.data[input - 1];
    const uir_value_id none = {0};
    if (c->lists[index].form != UIR_LIST_STACKED || given.id == taken.id) return none;
    *out_joint = uir_value_info_get(m, given)->producer;
    if (!out_joint->id || !is_in(graph, *out_joint)) return none;
    const uir_node_info *joint = uir_node_get(m, *out_joint);
    if (joint->op != UIR_OP_CONCAT || joint->input_count != 2 || joint->inputs[0].id != taken.id ||
        uir_node_int(m, joint, "axis", 0) != 0)
        return none;
    uir_value_id row = joint->inputs[1];
    bool one = uir_math_is(context, uir_value_type(m, row)->dims[0], 1);
    if (!one || count_uses(m, body, taken) != 1 || count_uses(m, body, given) != 1) return none;
    size_use use = {.module = m};
    if (!uir_dim_is_symbol(m->dims, uir_value_type(m, taken)->dims[0], &use.symbol)) return none;
    look_for_size(&use, body, taken, given);
    return use.found ? none : row;
}

static void remove_value(uir_value_id *values, uint32_t *count, uint32_t index) {
    memmove(values + index, values + index + 1, (--*count - index) * sizeof *values);
}

/* The list is no longer carried; the element becomes the last of what the loop stacks. */
static uir_status collect(uir_rule_context *context, const carrying *c, uint32_t index, uint32_t input,
                          uir_graph_id body, uir_node_id joint, uir_value_id row) {
    const uir_type *element = &c->lists[index].element;
    uir_module *m = context->builder.module;
    uir_builder saved = context->builder;
    context->builder.graph = body;
    uir_value_id value = uir_build_reshape(&context->builder, row, element->dims, element->rank);
    saved.status = context->builder.status;
    context->builder = saved;
    UIR_TRY(saved.status);
    uir_graph_info *graph = uir_graph_get(m, body);
    for (uint32_t n = 0; n < graph->nodes.count; n++) {
        if (graph->nodes.data[n].id != joint.id) continue;
        graph->nodes.count--;
        memmove(graph->nodes.data + n, graph->nodes.data + n + 1, (graph->nodes.count - n) * sizeof *graph->nodes.data);
        break;
    }
    remove_value(graph->inputs.data, &graph->inputs.count, input);
    remove_value(graph->outputs.data, &graph->outputs.count, input - 1);
    return uir_graph_add_output(m, body, value);
}

/* Which lists only grow; `operands` lose them. */
static uir_status collect_lists(uir_rule_context *context, const carrying *c, uir_graph_id body, bool *collected,
                                uir_value_id *operands, uint32_t *operand_count) {
    uint32_t input = 2;
    for (uint32_t i = 0; i < c->count; i++) {
        uir_node_id joint;
        uir_value_id row = find_appended(context, c, i, input, body, &joint);
        collected[i] = row.id != 0;
        if (!row.id) {
            input++;
            continue;
        }
        UIR_TRY(collect(context, c, i, input, body, joint, row));
        remove_value(operands, operand_count, input);
    }
    return UIR_STATUS_OK;
}

/* The whole list: what it began with, and what was stacked. */
static uir_value_id join_collected(uir_rule_context *context, uir_value_id initial, uir_value_id stacked) {
    uir_value_id parts[] = {initial, stacked};
    const uir_type *type = uir_rule_type(context, initial);
    if (!uir_math_is(context, type->dims[0], 0)) stacked = uir_build_concat(&context->builder, parts, 2, 0);
    uir_list_mark(context, stacked, UIR_LIST_STACKED);
    return stacked;
}

static uir_value_id as_scalar(uir_rule_context *context, uir_value_id value, const void *user) {
    (void)user;
    return uir_rule_scalar(context, value);
}

uir_status uir_math_loop(uir_rule_context *context, uir_value_id trips, uir_value_id condition,
                         const uir_value_id *initial, uint32_t carried, uir_math_body maker, void *user,
                         uir_value_id *out_outputs, uint32_t output_count) {
    uir_builder *b = &context->builder;
    uir_type *types = uir_rule_allocate(context, carried + 2u, sizeof *types);
    uir_value_id *operands = uir_rule_allocate(context, carried + 2u, sizeof *operands);
    carrying c = {carried, types, uir_rule_allocate(context, carried + 1u, sizeof *c.lists),
                  uir_rule_allocate(context, carried + 2u, sizeof *c.forms), 0};
    bool keeps_sequences = context->decomposer->keeps_sequences;
    context->decomposer->keeps_sequences = false; /* of this loop alone */
    if (b->status != UIR_STATUS_OK) return b->status;
    operands[0] = trips.id ? uir_build_cast(b, uir_rule_scalar(context, trips), UIR_DTYPE_I64) : trips;
    operands[1] = condition.id ? uir_rule_scalar(context, condition) : condition;
    types[0] = scalar_type(UIR_DTYPE_I64);
    types[1] = scalar_type(UIR_DTYPE_BOOL);
    for (uint32_t i = 0; i < carried; i++) {
        if (!initial[i].id) return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "carried value %u has no initial value", i);
        operands[i + 2] = initial[i];
        types[i + 2] = *uir_rule_type(context, initial[i]);
        if (!keeps_sequences) UIR_TRY(begin_list(context, &c, i, initial[i]));
    }
    if (b->status != UIR_STATUS_OK) return b->status;
    uir_graph_id body;
    UIR_TRY(make_body(context, maker, user, &c, &body));
    for (uint32_t i = 0; i < carried; i++) operands[i + 2] = enter(context, &c, i, initial[i]);
    uint32_t outputs = uir_graph_get(b->module, body)->outputs.count;
    if (outputs != output_count + 1)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "the body returns %u values; %u are required", outputs,
                                output_count + 1);
    UIR_TRY(uir_math_change_output(context, body, 0, as_scalar, NULL)); /* some write it as [1] */
    uir_value_id *results = uir_rule_allocate(context, output_count + 1u, sizeof *results);
    uir_value_id *initials = uir_rule_allocate(context, carried + 1u, sizeof *initials);
    bool *collected = uir_rule_allocate(context, carried + 1u, sizeof *collected);
    if (b->status != UIR_STATUS_OK) return b->status;
    uint32_t operand_count = carried + 2;
    if (carried) memcpy(initials, operands + 2, carried * sizeof *initials);
    UIR_TRY(collect_lists(context, &c, body, collected, operands, &operand_count));
    uir_attribute attribute = uir_attribute_graph(b, "body", body);
    uir_build_node(b, UIR_OP_LOOP, operands, operand_count, &attribute, 1, results, output_count);
    if (b->status != UIR_STATUS_OK) return b->status;
    uint32_t kept = operand_count - 2, next = 0, last = output_count - (carried - kept);
    refine_counts(context, operands[0], operands[1], body, results + kept, output_count - kept);
    for (uint32_t i = 0; i < carried; i++) {
        out_outputs[i] = collected[i] ? join_collected(context, initials[i], results[last++]) : results[next++];
        if (c.lists[i].form == UIR_LIST_STACKED) uir_list_mark(context, out_outputs[i], UIR_LIST_STACKED);
    }
    for (uint32_t i = carried; i < output_count; i++) out_outputs[i] = results[next++];
    return b->status;
}
