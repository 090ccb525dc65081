/* An If whose branches give tensors of different ranks ("squeeze it if there is one frame").
 *
 * No one graph of primitives can follow such a value, so what follows the If is decomposed inside each branch, where
 * the rank is known. Often the rest of the model makes sense for one of the ranks alone: the other branch is then left
 * out, and a check that the condition chooses the one that is there stands in its place. */
#include "decompose/decomposer.h"
#include <string.h>

typedef struct splitting {
    uir_decomposer *decomposer;
    uir_graph_id source_graph, target_graph;
    uint32_t position;
    const uir_walk_frame *frame;
    const uir_node_info *node;
    uir_value_id *open; /* outputs of the source graph that are not made yet */
    uint32_t open_count;
    uir_value_id *map; /* as it was before the If */
    bool *poisoned;
} splitting;

static void restore(const splitting *s) {
    uint32_t count = s->decomposer->source->values.count + 1u;
    memcpy(s->decomposer->map, s->map, count * sizeof *s->map);
    memcpy(s->decomposer->poisoned, s->poisoned, count * sizeof *s->poisoned);
}

static uir_status take_snapshot(splitting *s) {
    uir_decomposer *d = s->decomposer;
    uint32_t count = d->source->values.count + 1u;
    UIR_TRY_ALLOCATE(s->map, uir_arena_copy(d->scratch, d->map, count * sizeof *s->map));
    UIR_TRY_ALLOCATE(s->poisoned, uir_arena_copy(d->scratch, d->poisoned, count * sizeof *s->poisoned));
    uir_graph_id root = s->source_graph;
    for (const uir_walk_frame *frame = s->frame; frame; frame = frame->outer) root = frame->graph;
    const uir_graph_info *graph = uir_graph_get(d->source, root);
    UIR_TRY_ALLOCATE(s->open, uir_arena_allocate_array(d->scratch, graph->outputs.count + 1u, sizeof *s->open));
    for (uint32_t i = 0; i < graph->outputs.count; i++) {
        uir_value_id output = graph->outputs.data[i];
        bool seen = d->map[output.id].id || uir_value_info_get(d->source, output)->constant;
        for (uint32_t k = 0; k < s->open_count && !seen; k++) seen = s->open[k].id == output.id;
        if (!seen) s->open[s->open_count++] = output;
    }
    return UIR_STATUS_OK;
}

/* A rule's context for the If, so that its branch can be placed and messages name it. */
static uir_status make_context(const splitting *s, uir_graph_id graph, uir_rule_context *out) {
    uir_decomposer *d = s->decomposer;
    *out = (uir_rule_context){.source = d->source,
                              .node = s->node,
                              .op = s->node->op,
                              .since_version = s->node->since_version,
                              .decomposer = d,
                              .output_count = s->node->output_count};
    return uir_decomposer_begin_node(d, s->node, graph, &out->builder);
}

/* The branch and all that follows it, in `graph`. */
static uir_status follow(const splitting *s, bool taken, uir_graph_id graph) {
    uir_decomposer *d = s->decomposer;
    uir_rule_context context;
    uir_value_id *outputs;
    UIR_TRY(make_context(s, graph, &context));
    UIR_TRY_ALLOCATE(outputs, uir_arena_allocate_array(d->scratch, s->node->output_count + 1u, sizeof *outputs));
    UIR_TRY(uir_rule_inline(&context, taken ? "then_branch" : "else_branch", NULL, 0, outputs, s->node->output_count));
    for (uint32_t i = 0; i < s->node->output_count; i++)
        if (s->node->outputs[i].id) UIR_TRY(uir_decomposer_bind(d, s->node->outputs[i], outputs[i]));
    uint32_t failures = d->failures;
    UIR_TRY(uir_decomposer_walk_from(d, s->source_graph, s->position + 1, s->frame, graph));
    return d->failures == failures ? UIR_STATUS_OK : d->status;
}

static bool is_fatal(uir_status status) {
    return status == UIR_STATUS_OUT_OF_MEMORY || status == UIR_STATUS_LIMIT || status == UIR_STATUS_CANCELLED;
}

/* Tries one branch in a graph of its own; messages are not kept. *out_graph is none when the rest makes no sense for
 * it. */
static uir_status try_branch(const splitting *s, bool taken, uir_graph_id *out_graph) {
    uir_decomposer *d = s->decomposer;
    uir_diagnostics muted, *real = d->diagnostics;
    uint32_t failures = d->failures;
    uir_status before = d->status;
    uir_graph_id graph;
    UIR_TRY(uir_module_add_graph(d->target, s->target_graph, taken ? "then" : "else", &graph));
    uir_diagnostics_init(&muted, &d->scratch->allocator);
    d->diagnostics = d->target->diagnostics = &muted;
    uir_status status = follow(s, taken, graph);
    for (uint32_t i = 0; i < s->open_count && status == UIR_STATUS_OK; i++) {
        uir_value_id output;
        bool poisoned = false;
        status = uir_decomposer_map(d, s->open[i], &output, &poisoned);
        if (poisoned) status = UIR_STATUS_UNSUPPORTED;
        if (status == UIR_STATUS_OK) status = uir_decomposer_give_sequence(d, graph, &output);
        if (status == UIR_STATUS_OK) status = uir_graph_add_output(d->target, graph, output);
    }
    d->diagnostics = d->target->diagnostics = real;
    uir_diagnostics_deinit(&muted);
    d->failures = failures;
    d->status = before;
    d->quiet = d->split = false;
    restore(s);
    if (status != UIR_STATUS_OK)
        uir_decomposer_discard(d, graph);
    else
        uir_decomposer_forget_names(d, graph);
    *out_graph = status == UIR_STATUS_OK ? graph : (uir_graph_id){0};
    return is_fatal(status) ? status : UIR_STATUS_OK;
}

static uir_status build_if(const splitting *s, uir_rule_context *context, uir_value_id condition,
                           const uir_graph_id branches[2]) {
    uir_builder *b = &context->builder;
    uir_value_id *results = uir_rule_allocate(context, s->open_count + 1u, sizeof *results);
    if (!results) return UIR_STATUS_OUT_OF_MEMORY;
    uir_attribute attributes[] = {uir_attribute_graph(b, "then", branches[0]),
                                  uir_attribute_graph(b, "else", branches[1])};
    uir_build_node(b, UIR_OP_IF, &condition, 1, attributes, 2, results, s->open_count);
    UIR_TRY(b->status);
    for (uint32_t i = 0; i < s->open_count; i++) UIR_TRY(uir_decomposer_bind(s->decomposer, s->open[i], results[i]));
    return UIR_STATUS_OK;
}

uir_status uir_decomposer_split(uir_decomposer *decomposer, uir_graph_id source_graph, uint32_t position,
                                const uir_walk_frame *frame, uir_graph_id target_graph) {
    uir_decomposer *d = decomposer;
    uir_node_info node = *uir_node_get(d->source, uir_graph_get(d->source, source_graph)->nodes.data[position]);
    splitting s = {.decomposer = d,
                   .source_graph = source_graph,
                   .target_graph = target_graph,
                   .position = position,
                   .frame = frame,
                   .node = &node};
    uir_rule_context context;
    uir_value_id condition;
    bool poisoned = false;
    UIR_TRY(make_context(&s, target_graph, &context));
    UIR_TRY(uir_decomposer_map(d, node.inputs[0], &condition, &poisoned));
    condition = uir_rule_scalar(&context, condition);
    UIR_TRY(take_snapshot(&s));
    uir_graph_id branches[2];
    UIR_TRY(try_branch(&s, true, &branches[0]));
    UIR_TRY(try_branch(&s, false, &branches[1]));
    if (branches[0].id && branches[1].id) return build_if(&s, &context, condition, branches);
    /* One branch, in place; where neither works, this reports what is wrong with the first. */
    bool taken = branches[0].id || !branches[1].id;
    for (int i = 0; i < 2; i++)
        if (branches[i].id) uir_decomposer_discard(d, branches[i]);
    if (branches[0].id || branches[1].id)
        uir_build_demand(&context.builder, uir_build_cast(&context.builder, condition, UIR_DTYPE_I64), taken, "taken",
                         5);
    UIR_TRY(context.builder.status);
    uint32_t failures = d->failures;
    uir_status status = follow(&s, taken, target_graph);
    if (status == UIR_STATUS_OK || is_fatal(status) || d->failures != failures)
        return is_fatal(status) ? status : UIR_STATUS_OK;
    uir_decomposer_record_failure(d, status);
    return UIR_STATUS_OK;
}
