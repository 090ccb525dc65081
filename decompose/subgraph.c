/* Subgraphs of control flow: decomposed into graphs of their own, or in place. */
#include "decompose/decomposer.h"

static const uir_graph_info *source_graph(uir_rule_context *context, const char *attribute, uint32_t input_count,
                                          uir_graph_id *out_graph) {
    const uir_attribute *found = uir_rule_attribute(context, attribute);
    if (!found || found->kind != UIR_ATTRIBUTE_GRAPH) {
        uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "the graph attribute %s is missing", attribute);
        return NULL;
    }
    const uir_graph_info *graph = uir_graph_get(context->source, found->value.graph);
    if (graph->inputs.count != input_count) {
        uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "graph %s expects %u values, but %u are given",
                         attribute, graph->inputs.count, input_count);
        return NULL;
    }
    *out_graph = found->value.graph;
    return graph;
}

/* Leaves quietly when something inside was already reported. */
static uir_status fail_quietly(uir_rule_context *context) {
    context->decomposer->quiet = true;
    context->builder.status = context->decomposer->failures ? context->decomposer->status : UIR_STATUS_UNSUPPORTED;
    return context->builder.status;
}

static uir_status finish(uir_rule_context *context, uir_status status) {
    if (status != UIR_STATUS_OK && context->builder.status == UIR_STATUS_OK) context->builder.status = status;
    return status;
}

/* Walks the source graph into `target`; `outputs` gets the target's values. */
static uir_status walk(uir_rule_context *context, uir_graph_id source, uir_graph_id target, uir_value_id *outputs) {
    uir_decomposer *d = context->decomposer;
    uint32_t failures = d->failures;
    UIR_TRY(uir_decomposer_walk(d, source, target));
    if (d->failures != failures && !d->is_trial) return fail_quietly(context);
    const uir_graph_info *graph = uir_graph_get(d->source, source);
    for (uint32_t i = 0; i < graph->outputs.count; i++) {
        bool poisoned = false;
        UIR_TRY(uir_decomposer_map(d, graph->outputs.data[i], &outputs[i], &poisoned));
        if (poisoned && !d->is_trial) return fail_quietly(context);
        if (poisoned) outputs[i] = (uir_value_id){0};
    }
    return UIR_STATUS_OK;
}

static uir_status make_inputs(uir_rule_context *context, uir_graph_id source, uir_graph_id target,
                              const uir_type *types) {
    uir_decomposer *d = context->decomposer;
    for (uint32_t i = 0; i < uir_graph_get(d->source, source)->inputs.count; i++) {
        uir_value_id made;
        UIR_TRY(uir_module_add_value(d->target, "", types[i], &made));
        UIR_TRY(uir_graph_add_input(d->target, target, made));
        UIR_TRY(uir_decomposer_mark_input(d, made, i));
        UIR_TRY(uir_decomposer_bind(d, uir_graph_get(d->source, source)->inputs.data[i], made));
    }
    d->input_forms = NULL;
    return UIR_STATUS_OK;
}

static uir_status make_graph(uir_rule_context *context, uir_graph_id source, const uir_type *types,
                             uir_graph_id *out_graph) {
    uir_decomposer *d = context->decomposer;
    const char *name = uir_string_text(&d->source->strings, uir_graph_get(d->source, source)->name);
    uir_graph_id graph;
    UIR_TRY(uir_module_add_graph(d->target, context->builder.graph, name, &graph));
    *out_graph = graph;
    UIR_TRY(make_inputs(context, source, graph, types));
    uint32_t count = uir_graph_get(d->source, source)->outputs.count;
    uir_value_id *outputs;
    UIR_TRY_ALLOCATE(outputs, uir_arena_allocate_array(d->scratch, count + 1u, sizeof *outputs));
    UIR_TRY(walk(context, source, graph, outputs));
    for (uint32_t i = 0; i < count; i++) UIR_TRY(uir_graph_add_output(d->target, graph, outputs[i]));
    return UIR_STATUS_OK;
}

uir_status uir_rule_subgraph(uir_rule_context *context, const char *attribute, const uir_type *input_types,
                             uint32_t input_count, uir_graph_id *out_graph) {
    if (context->builder.status != UIR_STATUS_OK) return context->builder.status;
    uir_graph_id source;
    *out_graph = (uir_graph_id){0};
    if (!source_graph(context, attribute, input_count, &source)) return context->builder.status;
    uir_status status = make_graph(context, source, input_types, out_graph);
    if (status != UIR_STATUS_OK && out_graph->id) uir_decomposer_discard(context->decomposer, *out_graph);
    return finish(context, status);
}

static uir_status place(uir_rule_context *context, uir_graph_id source, const uir_value_id *inputs,
                        uir_value_id *out_outputs) {
    const uir_graph_info *graph = uir_graph_get(context->source, source);
    for (uint32_t i = 0; i < graph->inputs.count; i++)
        UIR_TRY(uir_decomposer_bind(context->decomposer, graph->inputs.data[i], inputs[i]));
    return walk(context, source, context->builder.graph, out_outputs);
}

uir_status uir_rule_enter(uir_rule_context *context, const char *attribute) {
    uir_graph_id source;
    const uir_graph_info *graph = source_graph(context, attribute, 0, &source);
    if (!graph) return context->builder.status;
    if (graph->outputs.count != context->output_count)
        return uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "graph %s returns %u values instead of %u",
                                attribute, graph->outputs.count, context->output_count);
    context->decomposer->enter = source;
    return UIR_STATUS_OK;
}

uir_status uir_rule_inline(uir_rule_context *context, const char *attribute, const uir_value_id *inputs,
                           uint32_t input_count, uir_value_id *out_outputs, uint32_t output_count) {
    if (context->builder.status != UIR_STATUS_OK) return context->builder.status;
    uir_graph_id source;
    const uir_graph_info *graph = source_graph(context, attribute, input_count, &source);
    if (!graph) return context->builder.status;
    if (graph->outputs.count != output_count)
        return uir_builder_fail(&context->builder, UIR_STATUS_BAD_FILE, "graph %s returns %u values instead of %u",
                                attribute, graph->outputs.count, output_count);
    return finish(context, place(context, source, inputs, out_outputs));
}
