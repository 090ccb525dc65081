/* If, Loop, Scan and SequenceMap. The three repeating ops become one primitive loop: see carry.c. */
#include "decompose/lists.h"
#include "decompose/math/rules_math.h"

static uint32_t graph_output_count(uir_rule_context *context, const char *attribute) {
    const uir_attribute *found = uir_rule_attribute(context, attribute);
    if (!found || found->kind != UIR_ATTRIBUTE_GRAPH) return 0;
    return uir_graph_get(context->source, found->value.graph)->outputs.count;
}

/* Whether a result is of one rank in one branch and of another in the other: then it has no rank at all. */
static bool ranks_differ(const uir_module *module, const uir_graph_id branches[2]) {
    const uir_graph_info *then_graph = uir_graph_get(module, branches[0]);
    const uir_graph_info *else_graph = uir_graph_get(module, branches[1]);
    for (uint32_t i = 0; i < then_graph->outputs.count; i++) {
        const uir_type *a = uir_value_type(module, then_graph->outputs.data[i]);
        const uir_type *b = uir_value_type(module, else_graph->outputs.data[i]);
        bool tensors = a->kind == UIR_VALUE_TENSOR && b->kind == UIR_VALUE_TENSOR;
        if (tensors && a->rank_known && b->rank_known && a->rank != b->rank) return true;
    }
    return false;
}

/* The rank of a list's elements; -1: unknown. */
static int64_t element_rank(const uir_rule_context *context, uir_value_id list) {
    const uir_type *type = uir_rule_type(context, list);
    return type->rank_known ? (int64_t)type->rank - uir_list_is_stacked(context, list) : -1;
}

/* Result `index` of both branches as a list of one form. */
static uir_status join_lists(uir_rule_context *context, const uir_graph_id branches[2], uint32_t index,
                             uint32_t first_own, uir_list_form *out_form) {
    const uir_module *m = context->builder.module;
    uir_value_id values[2];
    for (int i = 0; i < 2; i++) values[i] = uir_graph_get(m, branches[i])->outputs.data[index];
    bool lists[2] = {uir_list_is(context, values[0]), uir_list_is(context, values[1])};
    *out_form = UIR_LIST_NONE;
    if (!lists[0] && !lists[1]) return UIR_STATUS_OK;
    for (int i = 0; i < 2; i++)
        if (!lists[i] && uir_rule_type(context, values[i])->kind == UIR_VALUE_TENSOR)
            return uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE,
                                    "result %u is a sequence in one branch and a tensor in the other", index);
    uir_list_carried joined = {.form = UIR_LIST_SEQUENCE};
    if (lists[0] && lists[1]) joined = uir_list_join(context, values[0], values[1], first_own);
    int64_t ranks[2] = {element_rank(context, values[0]), element_rank(context, values[1])};
    for (int i = 0; i < 2; i++) {
        if (joined.form == UIR_LIST_STACKED)
            UIR_TRY(uir_math_change_output(context, branches[i], index, uir_list_stack_output, &joined.element));
        else if (lists[i])
            UIR_TRY(uir_math_change_output(context, branches[i], index, uir_list_sequence_output, &ranks[1 - i]));
    }
    *out_form = joined.form;
    return UIR_STATUS_OK;
}

/* Of a trial: whatever a branch could make. Nothing made on it is kept. */
static bool take_what_there_is(uir_rule_context *context, const uir_graph_id branches[2]) {
    const uir_graph_info *graphs[2];
    bool whole = true;
    for (int i = 0; i < 2; i++) graphs[i] = uir_graph_get(context->builder.module, branches[i]);
    for (uint32_t i = 0; i < context->output_count; i++) {
        uir_value_id a = graphs[0]->outputs.data[i], b = graphs[1]->outputs.data[i];
        whole &= a.id && b.id;
        context->outputs[i] = a.id ? a : b;
    }
    return !whole;
}

uir_status uir_rule_if(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id condition = uir_rule_input(context, 0);
    double known;
    if (uir_rule_constant_number(context, condition, &known))
        return uir_rule_enter(context, known ? "then_branch" : "else_branch");
    bool may_split = context->decomposer->may_split; /* before the branches are walked */
    uint32_t first_own = uir_dims_symbol_count(b->module->dims);
    uir_graph_id branches[2];
    uir_status then_status = uir_rule_subgraph(context, "then_branch", NULL, 0, &branches[0]);
    if (then_status == UIR_STATUS_OUT_OF_MEMORY || then_status == UIR_STATUS_LIMIT) return then_status;
    b->status = UIR_STATUS_OK; /* so that the problems of both branches are found */
    UIR_TRY(uir_rule_subgraph(context, "else_branch", NULL, 0, &branches[1]));
    if (then_status != UIR_STATUS_OK) {
        context->decomposer->quiet = true;
        return b->status = then_status;
    }
    for (int i = 0; i < 2; i++)
        if (uir_graph_get(b->module, branches[i])->outputs.count != context->output_count)
            return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "a branch returns %u values instead of %u",
                                    uir_graph_get(b->module, branches[i])->outputs.count, context->output_count);
    if (context->decomposer->is_trial && take_what_there_is(context, branches)) return UIR_STATUS_OK;
    uir_list_form *forms = uir_rule_allocate(context, context->output_count + 1u, sizeof *forms);
    for (uint32_t i = 0; forms && i < context->output_count; i++)
        UIR_TRY(join_lists(context, branches, i, first_own, &forms[i]));
    if (!forms) return b->status;
    if (may_split && ranks_differ(b->module, branches)) {
        for (int i = 0; i < 2; i++) uir_decomposer_discard(context->decomposer, branches[i]);
        context->decomposer->split = true;
        return UIR_STATUS_OK;
    }
    condition = uir_rule_scalar(context, condition);
    uir_attribute attributes[] = {uir_attribute_graph(b, "then", branches[0]),
                                  uir_attribute_graph(b, "else", branches[1])};
    uir_build_node(b, UIR_OP_IF, &condition, 1, attributes, 2, context->outputs, context->output_count);
    for (uint32_t i = 0; i < context->output_count; i++)
        if (forms[i] == UIR_LIST_STACKED) uir_list_mark(context, context->outputs[i], forms[i]);
    return b->status;
}

/* ---- loop ---- */

static uir_value_id wrap(uir_rule_context *context, uir_value_id value, const void *user) {
    uir_value_id result;
    (void)user;
    if (uir_list_is(context, value)) value = uir_list_to_sequence(context, value, -1);
    uir_build_node(&context->builder, UIR_OP_OPTIONAL, &value, 1, NULL, 0, &result, 1);
    return result;
}

/* ONNX lets a carried value start as an optional and go on as what it holds. Here it stays an optional: `kinds[i]` says
 * what the body gives, which is wrapped inside and taken out after the loop. */
static uir_status make_onnx_body(uir_rule_context *context, void *user, const uir_type *types, uint32_t type_count,
                                 uir_graph_id *out_graph) {
    uir_value_kind *kinds = user;
    uir_module *m = context->builder.module;
    UIR_TRY(uir_rule_subgraph(context, "body", types, type_count, out_graph));
    for (uint32_t i = 2; i < type_count && i - 1 < uir_graph_get(m, *out_graph)->outputs.count; i++) {
        uir_value_id given = uir_graph_get(m, *out_graph)->outputs.data[i - 1];
        if (!given.id) continue;
        kinds[i - 2] = uir_list_is(context, given) ? UIR_VALUE_SEQUENCE : uir_value_type(m, given)->kind;
        if (types[i].kind == UIR_VALUE_OPTIONAL && kinds[i - 2] != UIR_VALUE_OPTIONAL)
            UIR_TRY(uir_math_change_output(context, *out_graph, i - 1, wrap, NULL));
    }
    return UIR_STATUS_OK;
}

uir_status uir_rule_loop(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uint32_t carried = context->input_count > 2 ? context->input_count - 2 : 0;
    uir_value_kind *kinds = uir_rule_allocate(context, carried + 1u, sizeof *kinds);
    if (!kinds) return b->status;
    UIR_TRY(uir_math_loop(context, uir_rule_input(context, 0), uir_rule_input(context, 1), context->inputs + 2, carried,
                          make_onnx_body, kinds, context->outputs, context->output_count));
    for (uint32_t i = 0; i < carried; i++) {
        if (kinds[i] == UIR_VALUE_OPTIONAL || uir_rule_type(context, context->outputs[i])->kind != UIR_VALUE_OPTIONAL)
            continue;
        uir_value_id held = context->outputs[i];
        uir_attribute attribute = uir_attribute_int(b, "sequence", 1);
        uir_build_node(b, UIR_OP_OPTIONAL_GET_ELEMENT, &held, 1, &attribute, kinds[i] == UIR_VALUE_SEQUENCE,
                       &context->outputs[i], 1);
    }
    return b->status;
}

/* ---- bodies made here: Scan and SequenceMap ---- */

/* A graph with inputs of the types, and the context's builder pointed at it; *out_saved is the builder to go back to.
 */
uir_status uir_math_begin_body(uir_rule_context *context, const uir_type *types, uint32_t count,
                               uir_graph_id *out_graph, uir_builder *out_saved) {
    uir_module *m = context->builder.module;
    UIR_TRY(uir_module_add_graph(m, context->builder.graph, "body", out_graph));
    for (uint32_t i = 0; i < count; i++) {
        uir_value_id input;
        UIR_TRY(uir_module_add_value(m, "", types[i], &input));
        UIR_TRY(uir_graph_add_input(m, *out_graph, input));
        UIR_TRY(uir_decomposer_mark_input(context->decomposer, input, i));
    }
    context->decomposer->input_forms = NULL;
    *out_saved = context->builder;
    context->builder.graph = *out_graph;
    return UIR_STATUS_OK;
}

uir_status uir_math_end_body(uir_rule_context *context, uir_builder saved, const uir_value_id *outputs,
                             uint32_t count) {
    uir_status status = context->builder.status;
    for (uint32_t i = 0; i < count && status == UIR_STATUS_OK; i++)
        status = uir_graph_add_output(saved.module, context->builder.graph, outputs[i]);
    saved.status = status;
    context->builder = saved;
    return status;
}

typedef struct scan {
    uint32_t states, scanned; /* inputs of each sort */
    const int64_t *axes;      /* of the scanned inputs */
    bool *backward;
    uir_dim trips;
    uir_value_id length; /* i64 of rank 0: the steps that count, of opset 8; none: all */
} scan;

/* The element that step `iteration` takes of a scanned input that is gone through from its end; behind the last any. */
static uir_value_id index_from_end(uir_rule_context *context, const scan *s, uir_value_id iteration) {
    uir_builder *b = &context->builder;
    uir_dim last = uir_dim_sub(b->module->dims, s->trips, uir_rule_dim(context, 1));
    if (s->length.id) {
        uir_value_id end = uir_math_with(context, UIR_OP_SUB, s->length, 1);
        return uir_math_with(context, UIR_OP_MAX, uir_build_binary(b, UIR_OP_SUB, end, iteration), 0);
    }
    return uir_build_binary(b, UIR_OP_SUB, uir_build_dim_values(b, &last, 1, true, UIR_DTYPE_I64), iteration);
}

/* Behind the sequence's end states stay what they were, and what is scanned is zeros. */
static void end_at_length(uir_rule_context *context, const scan *s, uir_value_id iteration, const uir_value_id *states,
                          uir_value_id *outputs, uint32_t output_count) {
    uir_builder *b = &context->builder;
    if (!s->length.id) return;
    uir_value_id inside = uir_build_binary(b, UIR_OP_LT, iteration, s->length);
    for (uint32_t i = 0; i < output_count && b->status == UIR_STATUS_OK; i++) {
        uir_value_id other = i < s->states ? states[i] : uir_rule_number(context, outputs[i], 0);
        outputs[i] = uir_build_select(b, inside, outputs[i], other);
    }
}

static uir_status make_scan_body(uir_rule_context *context, void *user, const uir_type *types, uint32_t type_count,
                                 uir_graph_id *out_graph) {
    const scan *s = user;
    uir_builder saved, *b = &context->builder;
    UIR_TRY(uir_math_begin_body(context, types, type_count, out_graph, &saved));
    uint32_t output_count = graph_output_count(context, "body");
    uir_value_id *operands = uir_rule_allocate(context, s->states + s->scanned + 1u, sizeof *operands);
    uir_value_id *outputs = uir_rule_allocate(context, output_count + 1u, sizeof *outputs);
    const uir_value_id *inputs = uir_graph_get(b->module, *out_graph)->inputs.data;
    uir_value_id iteration = inputs[0];
    for (uint32_t i = 0; operands && i < s->states; i++) operands[i] = inputs[2 + i];
    for (uint32_t i = 0; operands && i < s->scanned; i++) {
        uir_value_id index = s->backward[i] ? index_from_end(context, s, iteration) : iteration;
        operands[s->states + i] = uir_build_gather(b, uir_rule_input(context, s->states + i), index, s->axes[i]);
    }
    if (b->status == UIR_STATUS_OK) {
        outputs[0] = uir_graph_get(b->module, *out_graph)->inputs.data[1];
        uir_rule_inline(context, "body", operands, s->states + s->scanned, outputs + 1, output_count);
        end_at_length(context, s, iteration, operands, outputs + 1, output_count);
    }
    return uir_math_end_body(context, saved, outputs, output_count + 1);
}

/* Scanned outputs come stacked along axis 0: reversed and moved as the attributes say. */
static uir_status place_scanned_outputs(uir_rule_context *context, const scan *s) {
    uir_builder *b = &context->builder;
    const int64_t *axes, *directions;
    int64_t axis_count = uir_rule_ints(context, "scan_output_axes", &axes);
    int64_t direction_count = uir_rule_ints(context, "scan_output_directions", &directions);
    for (uint32_t i = s->states; i < context->output_count; i++) {
        int64_t at = i - s->states;
        uint32_t rank = uir_rule_rank(context, context->outputs[i]);
        const uir_dim *extents = uir_rule_extents(context, context->outputs[i]);
        if (b->status != UIR_STATUS_OK) return b->status;
        if (at < direction_count && directions[at]) {
            uir_dim starts[UIR_MAX_RANK];
            int64_t steps[UIR_MAX_RANK];
            for (uint32_t d = 0; d < rank; d++) {
                starts[d] = uir_rule_dim(context, 0);
                steps[d] = 1;
            }
            starts[0] = uir_dim_sub(b->module->dims, extents[0], uir_rule_dim(context, 1));
            steps[0] = -1;
            context->outputs[i] = uir_build_slice(b, context->outputs[i], starts, extents, steps);
        }
        int64_t axis = at < axis_count ? uir_rule_axis(context, axes[at], rank) : 0;
        int64_t perm[UIR_MAX_RANK];
        for (uint32_t d = 0; d < rank; d++) perm[d] = d < axis ? d + 1 : d == axis ? 0 : d;
        if (axis) context->outputs[i] = uir_build_transpose(b, context->outputs[i], perm);
    }
    return b->status;
}

static uir_status scan_rows(uir_rule_context *context, uir_value_id length) {
    uir_builder *b = &context->builder;
    int64_t scanned = uir_rule_int(context, "num_scan_inputs", 0);
    if (scanned < 1 || scanned > context->input_count)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "num_scan_inputs is %lld for %u inputs", (long long)scanned,
                                context->input_count);
    scan s = {.states = context->input_count - (uint32_t)scanned, .scanned = (uint32_t)scanned, .length = length};
    int64_t *axes = uir_rule_allocate(context, s.scanned, sizeof *axes);
    s.backward = uir_rule_allocate(context, s.scanned, sizeof *s.backward);
    const int64_t *given, *directions;
    int64_t axis_count = uir_rule_ints(context, "scan_input_axes", &given);
    const char *direction_name = context->since_version < 9 ? "directions" : "scan_input_directions";
    int64_t direction_count = uir_rule_ints(context, direction_name, &directions);
    for (uint32_t i = 0; i < s.scanned && b->status == UIR_STATUS_OK; i++) {
        uir_value_id input = uir_rule_input(context, s.states + i);
        uint32_t rank = uir_rule_rank(context, input);
        axes[i] = uir_rule_axis(context, i < axis_count ? given[i] : 0, rank);
        s.backward[i] = i < direction_count && directions[i];
        const uir_dim *extents = uir_rule_extents(context, input);
        if (extents && (i == 0 || uir_dim_is_const(b->module->dims, extents[axes[i]], NULL)))
            s.trips = extents[axes[i]];
    }
    if (b->status != UIR_STATUS_OK) return b->status;
    s.axes = axes;
    for (uint32_t i = 0; i < s.scanned; i++)
        uir_build_equal_sizes(b, uir_build_extent(b, uir_rule_input(context, s.states + i), (uint32_t)axes[i]), s.trips);
    uir_value_id trips = uir_build_dim_values(b, &s.trips, 1, true, UIR_DTYPE_I64);
    UIR_TRY(uir_math_loop(context, trips, (uir_value_id){0}, context->inputs, s.states, make_scan_body, &s,
                          context->outputs, context->output_count));
    return place_scanned_outputs(context, &s);
}

/* Scan of opset 8 has a batch: an outer loop gives each sample to a scan of its own. */
static uir_status make_sample_body(uir_rule_context *context, void *user, const uir_type *types, uint32_t type_count,
                                   uir_graph_id *out_graph) {
    (void)user;
    uir_builder saved, *b = &context->builder;
    UIR_TRY(uir_math_begin_body(context, types, type_count, out_graph, &saved));
    uir_value_id sample = uir_graph_get(b->module, *out_graph)->inputs.data[0];
    uir_value_id *inputs = uir_rule_allocate(context, context->input_count + 1u, sizeof *inputs);
    uir_value_id *outputs = uir_rule_allocate(context, context->output_count + 1u, sizeof *outputs);
    for (uint32_t i = 1; inputs && i < context->input_count; i++)
        inputs[i - 1] = uir_build_gather(b, uir_rule_input(context, i), sample, 0);
    if (b->status == UIR_STATUS_OK) {
        uir_rule_context inner = *context;
        inner.inputs = inputs;
        inner.input_count = context->input_count - 1;
        inner.outputs = outputs + 1;
        outputs[0] = uir_graph_get(b->module, *out_graph)->inputs.data[1];
        uir_value_id length = uir_rule_input(context, 0);
        if (length.id) length = uir_build_cast(b, uir_build_gather(b, length, sample, 0), UIR_DTYPE_I64);
        uir_status status = scan_rows(&inner, length);
        if (b->status == UIR_STATUS_OK) b->status = status;
    }
    return uir_math_end_body(context, saved, outputs, context->output_count + 1);
}

/* sequence_lens: one of each sample, from 0 to the extent of what is scanned. */
static uir_status check_lengths(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id lengths = uir_rule_input(context, 0), last = uir_rule_input(context, context->input_count - 1u);
    const uir_dim *extents = uir_rule_extents(context, last);
    if (!lengths.id || !extents) return b->status;
    if (uir_rule_rank(context, lengths) != 1 || uir_rule_rank(context, last) < 2)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE,
                                "sequence_lens has rank %u and the scanned input %u; 1 and at least 2 are required",
                                uir_rule_rank(context, lengths), uir_rule_rank(context, last));
    uir_build_equal_sizes(b, uir_build_extent(b, lengths, 0), extents[0]);
    uir_rule_check_below(context, lengths, lengths, uir_dim_add(b->module->dims, extents[1], uir_rule_dim(context, 1)));
    return b->status;
}

uir_status uir_rule_scan(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    if (context->since_version >= 9) return scan_rows(context, (uir_value_id){0});
    const uir_dim *extents = uir_rule_extents(context, uir_rule_input(context, context->input_count - 1u));
    if (!extents || context->input_count < 2 ||
        !uir_rule_rank(context, uir_rule_input(context, context->input_count - 1u)))
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "an input has no batch axis");
    UIR_TRY(check_lengths(context));
    uir_value_id samples = uir_build_dim_values(b, &extents[0], 1, true, UIR_DTYPE_I64);
    return uir_math_loop(context, samples, (uir_value_id){0}, NULL, 0, make_sample_body, NULL, context->outputs,
                         context->output_count);
}

/* Each input that is a sequence gives its element of the iteration, the others are what they are. */
static uir_status make_map_body(uir_rule_context *context, void *user, const uir_type *types, uint32_t type_count,
                                uir_graph_id *out_graph) {
    (void)user;
    uir_builder saved, *b = &context->builder;
    UIR_TRY(uir_math_begin_body(context, types, type_count, out_graph, &saved));
    uint32_t output_count = context->output_count;
    uir_value_id *operands = uir_rule_allocate(context, context->input_count + 1u, sizeof *operands);
    uir_value_id *outputs = uir_rule_allocate(context, output_count + 1u, sizeof *outputs);
    uir_value_id iteration = uir_graph_get(b->module, *out_graph)->inputs.data[0];
    for (uint32_t i = 0; operands && i < context->input_count; i++) {
        operands[i] = uir_rule_input(context, i);
        if (uir_list_is(context, operands[i])) operands[i] = uir_list_at(context, operands[i], iteration);
    }
    if (b->status == UIR_STATUS_OK) {
        outputs[0] = uir_graph_get(b->module, *out_graph)->inputs.data[1];
        uir_rule_inline(context, "body", operands, context->input_count, outputs + 1, output_count);
    }
    for (uint32_t i = 0; i < output_count && b->status == UIR_STATUS_OK; i++) {
        uir_value_id list = uir_graph_get(b->module, *out_graph)->inputs.data[2 + i];
        outputs[i + 1] = uir_list_insert(context, list, outputs[i + 1], (uir_value_id){0});
    }
    return uir_math_end_body(context, saved, outputs, output_count + 1);
}

uir_status uir_rule_sequence_map(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id *initial = uir_rule_allocate(context, context->output_count + 1u, sizeof *initial);
    const uir_attribute *body = uir_rule_attribute(context, "body");
    if (!body || body->kind != UIR_ATTRIBUTE_GRAPH || graph_output_count(context, "body") != context->output_count)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "the body does not return the %u values of the node",
                                context->output_count);
    const uir_graph_info *graph = uir_graph_get(context->source, body->value.graph);
    for (uint32_t i = 0; initial && i < context->output_count; i++) {
        uir_dtype dtype = uir_value_type(context->source, graph->outputs.data[i])->dtype;
        initial[i] = uir_list_make_empty(context, dtype, -1);
    }
    uir_value_id trips = uir_list_length(context, uir_rule_input(context, 0));
    if (b->status != UIR_STATUS_OK) return b->status;
    return uir_math_loop(context, trips, (uir_value_id){0}, initial, context->output_count, make_map_body, NULL,
                         context->outputs, context->output_count);
}
