/* If, Loop, Scan and SequenceMap. The three repeating ops become one primitive loop.
 *
 * A carried value whose dims change from one iteration to the next has, in the body, dims that are symbols of the body.
 * Which ones those are is found by decomposing: the body is built with the types at hand, and when it gives back other
 * ones, it is thrown away and built again with those dims made symbols. Each dim changes at most once, so this ends. */
#include "decompose/decomposer.h"
#include "decompose/rules_math.h"

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

uir_status uir_rule_if(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id condition = uir_rule_input(context, 0);
    double known;
    if (uir_rule_constant_number(context, condition, &known))
        return uir_rule_inline(context, known ? "then_branch" : "else_branch", NULL, 0, context->outputs,
                               context->output_count);
    bool may_split = context->decomposer->may_split; /* before the branches are walked */
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
            return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "a branch gives %u values instead of %u",
                                    uir_graph_get(b->module, branches[i])->outputs.count, context->output_count);
    if (may_split && ranks_differ(b->module, branches)) {
        for (int i = 0; i < 2; i++) uir_decomposer_discard(context->decomposer, branches[i]);
        context->decomposer->split = true;
        return UIR_STATUS_OK;
    }
    condition = uir_rule_scalar(context, condition);
    uir_attribute attributes[] = {uir_attribute_graph(b, "then", branches[0]),
                                  uir_attribute_graph(b, "else", branches[1])};
    uir_build_node(b, UIR_OP_IF, &condition, 1, attributes, 2, context->outputs, context->output_count);
    return b->status;
}

/* ---- loops ---- */

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

static uir_status make_body(uir_rule_context *context, uir_math_body maker, void *user, uir_type *types,
                            uint32_t type_count, uir_graph_id *out_graph) {
    uir_module *m = context->builder.module;
    uint32_t carried = type_count - 2, first_own = uir_dims_symbol_count(m->dims);
    for (;;) {
        UIR_TRY(maker(context, user, types, type_count, out_graph));
        if (uir_graph_get(m, *out_graph)->outputs.count < carried + 1)
            return uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE,
                                    "the body gives %u values; the condition and %u carried ones are needed",
                                    uir_graph_get(m, *out_graph)->outputs.count, carried);
        bool changed = false;
        for (uint32_t i = 0; i < carried; i++) {
            uir_type next = *uir_value_type(m, uir_graph_get(m, *out_graph)->outputs.data[i + 1]);
            UIR_TRY(widen_type(context, &types[i + 2], &next, first_own, &changed));
        }
        if (!changed) return UIR_STATUS_OK;
        uir_decomposer_discard(context->decomposer, *out_graph);
    }
}

/* Output `index` of a body replaced by what `change` makes of it there. */
static uir_status change_output(uir_rule_context *context, uir_graph_id graph, uint32_t index,
                                uir_value_id (*change)(uir_rule_context *context, uir_value_id value)) {
    uir_builder saved = context->builder;
    context->builder.graph = graph;
    uir_value_id value = change(context, uir_graph_get(saved.module, graph)->outputs.data[index]);
    saved.status = context->builder.status;
    context->builder = saved;
    uir_graph_get(saved.module, graph)->outputs.data[index] = value;
    return saved.status;
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

uir_status uir_math_loop(uir_rule_context *context, uir_value_id trips, uir_value_id condition,
                         const uir_value_id *initial, uint32_t carried, uir_math_body maker, void *user,
                         uir_value_id *out_outputs, uint32_t output_count) {
    uir_builder *b = &context->builder;
    uir_type *types = uir_rule_allocate(context, carried + 2u, sizeof *types);
    uir_value_id *operands = uir_rule_allocate(context, carried + 2u, sizeof *operands);
    if (b->status != UIR_STATUS_OK) return b->status;
    operands[0] = trips.id ? uir_build_cast(b, uir_rule_scalar(context, trips), UIR_DTYPE_I64) : trips;
    operands[1] = condition.id ? uir_rule_scalar(context, condition) : condition;
    types[0] = scalar_type(UIR_DTYPE_I64);
    types[1] = scalar_type(UIR_DTYPE_BOOL);
    for (uint32_t i = 0; i < carried; i++) {
        if (!initial[i].id) return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "carried value %u has no initial value", i);
        operands[i + 2] = initial[i];
        types[i + 2] = *uir_rule_type(context, initial[i]);
    }
    if (b->status != UIR_STATUS_OK) return b->status;
    uir_graph_id body;
    UIR_TRY(make_body(context, maker, user, types, carried + 2, &body));
    uint32_t outputs = uir_graph_get(b->module, body)->outputs.count;
    if (outputs != output_count + 1)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "the body gives %u values; %u are needed", outputs,
                                output_count + 1);
    UIR_TRY(change_output(context, body, 0, uir_rule_scalar)); /* some write it as [1] */
    uir_attribute attribute = uir_attribute_graph(b, "body", body);
    uir_build_node(b, UIR_OP_LOOP, operands, carried + 2, &attribute, 1, out_outputs, output_count);
    if (b->status == UIR_STATUS_OK)
        refine_counts(context, operands[0], operands[1], body, out_outputs + carried, output_count - carried);
    return b->status;
}

static uir_value_id wrap(uir_rule_context *context, uir_value_id value) {
    uir_value_id result;
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
        kinds[i - 2] = uir_value_type(m, uir_graph_get(m, *out_graph)->outputs.data[i - 1])->kind;
        if (types[i].kind == UIR_VALUE_OPTIONAL && kinds[i - 2] != UIR_VALUE_OPTIONAL)
            UIR_TRY(change_output(context, *out_graph, i - 1, wrap));
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
    }
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
} scan;

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
        uir_value_id index = iteration;
        if (s->backward[i]) {
            uir_dim last = uir_dim_sub(b->module->dims, s->trips, uir_rule_dim(context, 1));
            index = uir_build_binary(b, UIR_OP_SUB, uir_build_dim_values(b, &last, 1, true, UIR_DTYPE_I64), index);
        }
        operands[s->states + i] = uir_build_gather(b, uir_rule_input(context, s->states + i), index, s->axes[i]);
    }
    if (b->status == UIR_STATUS_OK) {
        outputs[0] = uir_graph_get(b->module, *out_graph)->inputs.data[1];
        uir_rule_inline(context, "body", operands, s->states + s->scanned, outputs + 1, output_count);
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

static uir_status scan_rows(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    int64_t scanned = uir_rule_int(context, "num_scan_inputs", 0);
    if (scanned < 1 || scanned > context->input_count)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "num_scan_inputs is %lld for %u inputs", (long long)scanned,
                                context->input_count);
    scan s = {.states = context->input_count - (uint32_t)scanned, .scanned = (uint32_t)scanned};
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
        uir_status status = scan_rows(&inner);
        if (b->status == UIR_STATUS_OK) b->status = status;
    }
    return uir_math_end_body(context, saved, outputs, context->output_count + 1);
}

uir_status uir_rule_scan(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    if (context->since_version >= 9) return scan_rows(context);
    if (uir_rule_has_input(context, 0))
        return uir_builder_fail(b, UIR_STATUS_UNSUPPORTED, "Scan of opset 8 with sequence_lens is not supported");
    const uir_dim *extents = uir_rule_extents(context, uir_rule_input(context, context->input_count - 1u));
    if (!extents || context->input_count < 2 ||
        !uir_rule_rank(context, uir_rule_input(context, context->input_count - 1u)))
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "an input has no batch axis");
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
        if (uir_rule_type(context, operands[i])->kind != UIR_VALUE_SEQUENCE) continue;
        uir_value_id pair[] = {operands[i], iteration};
        uir_build_node(b, UIR_OP_SEQUENCE_AT, pair, 2, NULL, 0, &operands[i], 1);
    }
    if (b->status == UIR_STATUS_OK) {
        outputs[0] = uir_graph_get(b->module, *out_graph)->inputs.data[1];
        uir_rule_inline(context, "body", operands, context->input_count, outputs + 1, output_count);
    }
    for (uint32_t i = 0; i < output_count && b->status == UIR_STATUS_OK; i++) {
        uir_value_id pair[] = {uir_graph_get(b->module, *out_graph)->inputs.data[2 + i], outputs[i + 1]};
        uir_build_node(b, UIR_OP_SEQUENCE_INSERT, pair, 2, NULL, 0, &outputs[i + 1], 1);
    }
    return uir_math_end_body(context, saved, outputs, output_count + 1);
}

uir_status uir_rule_sequence_map(uir_rule_context *context) {
    uir_builder *b = &context->builder;
    uir_value_id *initial = uir_rule_allocate(context, context->output_count + 1u, sizeof *initial);
    const uir_attribute *body = uir_rule_attribute(context, "body");
    if (!body || body->kind != UIR_ATTRIBUTE_GRAPH || graph_output_count(context, "body") != context->output_count)
        return uir_builder_fail(b, UIR_STATUS_BAD_FILE, "the body does not give the %u values of the node",
                                context->output_count);
    const uir_graph_info *graph = uir_graph_get(context->source, body->value.graph);
    for (uint32_t i = 0; initial && i < context->output_count; i++) {
        uir_dtype dtype = uir_value_type(context->source, graph->outputs.data[i])->dtype;
        uir_attribute attribute = uir_attribute_dtype(b, "dtype", dtype);
        uir_build_node(b, UIR_OP_SEQUENCE_CONSTRUCT, NULL, 0, &attribute, dtype ? 1 : 0, &initial[i], 1);
    }
    uir_value_id trips, sequence = uir_rule_input(context, 0);
    uir_build_node(b, UIR_OP_SEQUENCE_LENGTH, &sequence, 1, NULL, 0, &trips, 1);
    if (b->status != UIR_STATUS_OK) return b->status;
    return uir_math_loop(context, trips, (uir_value_id){0}, initial, context->output_count, make_map_body, NULL,
                         context->outputs, context->output_count);
}
